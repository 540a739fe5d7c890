defmodule Skillbook.Tools.Shape do
  @moduledoc false
  # The formats of vendors, which native/skillbook_core/src/tool/shape.rs writes.

  alias Skillbook.{Native, Tool}

  @type t :: Skillbook.Tools.shape()

  @all [:openai, :openai_strict, :openai_responses, :anthropic, :gemini, :mcp, :llama]

  @spec all() :: [t()]
  def all, do: @all

  @spec of(Tool.t(), t()) :: map()
  def of(%Tool{} = tool, shape), do: Native.tool_shape(tool, shape)
end
