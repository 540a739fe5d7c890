defmodule Skillbook.Test.Pairs do
  @moduledoc false
  # Finds the pairs of entries that compete: those that take each other's examples, those whose
  # descriptions have the same words, and those that mean the same.

  alias Skillbook.Test.Ranking
  alias Skillbook.{Native, Test}

  # Descriptions that are less alike have little in common but the words of their subject.
  @least_alike 0.3
  @least_meaning 0.6
  # The pairs that are looked at when only some are wanted.
  @max_pairs 1_000

  @doc "Those that take examples first, then those that are most alike."
  @spec find(Ranking.t(), [Test.result()], [String.t()] | nil) :: [Test.pair()]
  def find(ranking, results, only) do
    taken = taken(results)
    by_words = by_words(ranking)
    by_meaning = by_meaning(ranking)
    names = for {{name, other}, _count} <- taken, do: Enum.sort([name, other])
    only = only && MapSet.new(only)

    (names ++ Map.keys(by_words) ++ Map.keys(by_meaning))
    |> Enum.uniq()
    |> Enum.filter(&(only == nil or Enum.any?(&1, fn name -> name in only end)))
    |> Enum.map(fn [one, other] = names ->
      {similarity, words} = Map.get(by_words, names, {0.0, []})

      %{
        names: names,
        similarity: similarity,
        words: words,
        meaning: by_meaning[names],
        taken: [Map.get(taken, {one, other}, 0), Map.get(taken, {other, one}, 0)]
      }
    end)
    |> Enum.sort_by(&{-Enum.sum(&1.taken), -max(&1.similarity, &1.meaning || 0.0), &1.names})
  end

  # How many examples of the first name have the second one before it.
  defp taken(results) do
    for %{not: false, rank: rank} = result <- results,
        other <- result.ranking,
        rank == nil or other.rank < rank,
        reduce: %{} do
      taken -> Map.update(taken, {result.name, other.name}, 1, &(&1 + 1))
    end
  end

  defp by_words(%{view: view}) do
    for %{names: names} = pair <- Native.view_rivals(view.ref, @least_alike, @max_pairs),
        into: %{},
        do: {Enum.sort(names), {pair.similarity, pair.words}}
  end

  defp by_meaning(%{book: nil}), do: %{}

  defp by_meaning(%{view: view, book: book}) do
    pairs = Native.view_alike(view.ref, book.vectors, @least_meaning, @max_pairs)
    for {names, cosine} <- pairs, into: %{}, do: {Enum.sort(names), cosine}
  end
end
