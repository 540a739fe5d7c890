defmodule Skillbook.Support.Diff do
  @moduledoc false
  # Compares two texts. The output is a unified diff, like `diff -u` without its header.

  @doc "Returns the hunks with three lines of context; `\"\"` for equal texts."
  @spec unified(String.t(), String.t()) :: String.t()
  def unified(from, to), do: Skillbook.Native.diff_unified(from, to)
end
