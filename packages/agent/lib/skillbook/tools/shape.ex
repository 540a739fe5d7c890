defmodule Skillbook.Tools.Shape do
  @moduledoc false
  # The formats of vendors, which native/skillbook_core/src/tool/shape.rs writes.

  @type t :: Skillbook.Tools.shape()

  @all [:openai, :openai_strict, :openai_responses, :anthropic, :gemini, :mcp, :llama]

  @spec all() :: [t()]
  def all, do: @all
end
