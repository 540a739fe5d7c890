defmodule Skillbook.Store.Slips do
  @moduledoc false
  # The names of entries that a mistyped name may mean.

  @letters for letter <- [?-] ++ Enum.to_list(?0..?9) ++ Enum.to_list(?a..?z), do: <<letter>>

  # Longer names are seldom typed, and the number of their slips grows with the length.
  @longest 32

  @doc """
  Names that are one slip away: a letter less, one more, another one, or two neighbours swapped.

      iex> slips = Skillbook.Store.Slips.of("Mlik_2")
      iex> {"milk-2" in slips, "mlik-2" in slips, length(slips)}
      {true, true, 493}
  """
  @spec of(String.t()) :: [String.t()]
  def of(name) do
    name = name |> String.downcase() |> String.replace([" ", "_"], "-")

    if String.length(name) in 2..@longest//1,
      do: slips("", String.next_codepoint(name), [name]),
      else: []
  end

  # `before` is the text before the next letter.
  defp slips(before, nil, slips), do: with_letters(before, "", slips)

  defp slips(before, {letter, rest}, slips) do
    slips = with_letters(before, letter <> rest, slips)
    slips = with_letters(before, rest, [before <> rest | slips])
    next = String.next_codepoint(rest)

    slips =
      case next do
        {other, rest} -> [before <> other <> letter <> rest | slips]
        nil -> slips
      end

    slips(before <> letter, next, slips)
  end

  defp with_letters(before, rest, slips),
    do: for(letter <- @letters, reduce: slips, do: (slips -> [before <> letter <> rest | slips]))
end
