defmodule Skillbook.Test.Ranking do
  @moduledoc false
  # The entries that search finds for a request, and why: the words of the request that find each,
  # and its similarity.

  alias Skillbook.Search.Candidates
  alias Skillbook.{Native, Test, View}

  # An entry behind the tenth place is as good as lost.
  @max 10
  @shown 3

  @doc "How many places are looked at."
  def max, do: @max

  @doc "How many entries are shown before the one in question."
  def shown, do: @shown

  @doc "The entries of the first #{@max} places."
  @spec find(View.t(), String.t()) :: [Candidates.t()]
  def find(view, request), do: Candidates.find(view, utf8(request), @max)

  @doc "The place of a name, from 1; `nil` if it is not among these."
  @spec rank([%{name: String.t()}], String.t()) :: pos_integer() | nil
  def rank(candidates, name) do
    with at when is_integer(at) <- Enum.find_index(candidates, &(&1.name == name)), do: at + 1
  end

  @doc "The first `count` entries and the one of this name, with the words that find them."
  @spec explained(View.t(), String.t(), String.t() | nil, pos_integer()) :: [Test.ranked()]
  def explained(%View{ref: ref} = view, request, name, count) do
    chosen =
      for {candidate, rank} <- view |> find(request) |> Enum.with_index(1),
          rank <= count or candidate.name == name,
          do: Map.put(candidate, :rank, rank)

    words = Native.view_why(ref, utf8(request), Enum.map(chosen, & &1.name))

    for {candidate, words} <- Enum.zip(chosen, words) do
      candidate |> Map.take([:rank, :name, :score, :similarity]) |> Map.put(:words, words)
    end
  end

  @doc "The names that the router picks for a request."
  @spec picked(View.t(), String.t()) :: [String.t()]
  def picked(view, request),
    do: for(%{name: name} <- view |> find(request) |> Enum.take(1), do: name)

  @doc "A ranking as a table, a line for each entry."
  @spec lines([Test.ranked()]) :: [String.t()]
  def lines(ranking) do
    width = ranking |> Enum.map(&String.length(&1.name)) |> Enum.max(fn -> 0 end)

    for entry <- ranking do
      [
        String.pad_leading("#{entry.rank}", 3),
        "  ",
        String.pad_trailing(entry.name, width),
        "  ",
        decimals(entry.score, 3),
        if(entry.similarity, do: ["  ~", decimals(entry.similarity, 2)], else: []),
        words(entry.words)
      ]
      |> IO.iodata_to_binary()
      |> String.trim_trailing()
    end
  end

  @max_words 5

  defp words([]), do: []

  defp words(words) do
    words = Enum.take(words, @max_words)
    ["  ", Enum.map_intersperse(words, ", ", &[&1.word, " ", decimals(&1.part, 1)])]
  end

  defp decimals(number, count), do: :erlang.float_to_binary(number, decimals: count)

  # A text that is not UTF-8 has no words.
  defp utf8(text), do: if(String.valid?(text), do: text, else: "")
end
