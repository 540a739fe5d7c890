defmodule Skillbook.Support.Closest do
  @moduledoc false
  # The name of a few that somebody meant, for errors: options, flags and values. Names of skills are many, and theirs
  # are found in Rust.

  # A whole sentence in the place of a name is no mistyped name, and comparing costs its length.
  @longest 40

  # The same letters in another order, which is how people mistype, are a hit though their distance may be large.
  @shuffled 0.9

  @doc "The candidate closest to `word`, from `threshold` (0.0 to 1.0) on, or nil."
  @spec to(String.t(), [String.t()], float()) :: String.t() | nil
  def to(word, candidates, threshold \\ 0.75)

  def to(word, candidates, threshold),
    do: word |> several(candidates, 1, threshold) |> List.first()

  @doc "Up to `count` candidates close to `word`, the closest first, from `threshold` (0.0 to 1.0) on."
  @spec several(String.t(), [String.t()], pos_integer(), float()) :: [String.t()]
  def several(word, candidates, count, threshold \\ 0.75)
  def several(word, _candidates, _count, _threshold) when byte_size(word) > @longest, do: []

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
      do: max(@shuffled, String.jaro_distance(one, other)),
      else: String.jaro_distance(one, other)
  end

  defp letters(word), do: word |> String.graphemes() |> Enum.sort()

  defp key(name), do: name |> String.downcase() |> String.replace("_", "-")
end
