defmodule Skillbook.Closest do
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
  def to(word, _candidates, _threshold) when byte_size(word) > @longest, do: nil

  def to(word, candidates, threshold) do
    case candidates
         |> Enum.map(&{closeness(key(word), key(&1)), &1})
         |> Enum.max_by(&elem(&1, 0), fn -> nil end) do
      {closeness, candidate} when closeness >= threshold -> candidate
      _ -> nil
    end
  end

  defp closeness(one, other) do
    if letters(one) == letters(other),
      do: max(@shuffled, String.jaro_distance(one, other)),
      else: String.jaro_distance(one, other)
  end

  defp letters(word), do: word |> String.graphemes() |> Enum.sort()

  defp key(name), do: name |> String.downcase() |> String.replace("_", "-")
end
