defmodule Skillbook.Support.Closest do
  @moduledoc false
  # Suggests similar names in errors about options, flags and values. For names of skills, which
  # are many, see `view/spelling.rs`.

  # A longer word is not a mistyped name, and the comparison takes time that grows with its
  # length.
  @max_bytes 40

  # The similarity of words with the same letters in another order, a common typing error.
  @same_letters 0.9

  @doc "Returns the candidate closest to `word` from a similarity of 0.0 to 1.0 on, or `nil`."
  @spec to(String.t(), [String.t()], float()) :: String.t() | nil
  def to(word, candidates, threshold \\ 0.75)

  def to(word, candidates, threshold),
    do: word |> several(candidates, 1, threshold) |> List.first()

  @doc "Returns up to `count` similar candidates like `to/3`, the closest first."
  @spec several(String.t(), [String.t()], pos_integer(), float()) :: [String.t()]
  def several(word, candidates, count, threshold \\ 0.75)
  def several(word, _candidates, _count, _threshold) when byte_size(word) > @max_bytes, do: []

  def several(word, candidates, count, threshold) do
    candidates
    |> Enum.map(&{closeness(key(word), key(&1)), &1})
    |> Enum.filter(&(elem(&1, 0) >= threshold))
    |> Enum.sort_by(&elem(&1, 0), :desc)
    |> Enum.take(count)
    |> Enum.map(&elem(&1, 1))
  end

  defp closeness(one, other) do
    if letters(one) == letters(other),
      do: max(@same_letters, String.jaro_distance(one, other)),
      else: String.jaro_distance(one, other)
  end

  defp letters(word), do: word |> String.graphemes() |> Enum.sort()

  defp key(name), do: name |> String.downcase() |> String.replace("_", "-")
end
