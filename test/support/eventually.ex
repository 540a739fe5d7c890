defmodule Skillbook.Eventually do
  @moduledoc false
  # For what other machines, or processes that tell nobody, bring about: asked again until it
  # holds.

  @doc "Whether `fun` gives something true within a minute."
  def eventually(fun, left \\ 6_000) do
    cond do
      fun.() -> true
      left > 0 -> Process.sleep(10) && eventually(fun, left - 1)
      true -> false
    end
  end
end
