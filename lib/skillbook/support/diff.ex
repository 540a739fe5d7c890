defmodule Skillbook.Support.Diff do
  @moduledoc false
  # Two texts as a unified diff: what `diff -u` prints after the names of the files.

  @doc "The hunks, with three lines around each change; `\"\"` for equal texts."
  @spec unified(String.t(), String.t()) :: String.t()
  def unified(from, to), do: Skillbook.Native.diff_unified(from, to)
end
