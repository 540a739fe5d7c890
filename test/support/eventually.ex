defmodule Skillbook.Eventually do
  @moduledoc false
  # Repeats a check until it is true, for effects of other machines and processes without
  # notification.

  @doc "Whether `fun` gives something true within a minute."
  def eventually(fun, left \\ 6_000) do
    cond do
      fun.() -> true
      left > 0 -> Process.sleep(10) && eventually(fun, left - 1)
      true -> false
    end
  end
end
