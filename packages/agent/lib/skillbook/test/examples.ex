defmodule Skillbook.Test.Examples do
  @moduledoc false
  # Runs the `examples` of the entries of a view, and finds the pairs of entries that compete.

  alias Skillbook.Test.Ranking
  alias Skillbook.{Native, Test, View}

  @spec run(
          View.t(),
          [String.t()] | nil,
          non_neg_integer(),
          keyword() | false | nil,
          (atom(), map() -> term())
        ) :: Test.t()
  def run(view, only, pairs, preflight, progress \\ fn _what, _count -> :ok end) do
    {examples, entries, unlisted} = Native.view_plan(view.ref, only)
    requests = for {_name, request, _not} <- examples, do: request
    ranking = Ranking.new(view, requests, progress)
    router = Ranking.router?(view, preflight)
    results = for example <- examples, do: result(ranking, example, router, preflight)
    hits = for result <- results, do: {result.not, result.rank, result.picked}
    {hit1, hit3, picked} = Native.examples_shares(hits)

    %Test{
      results: with_sentences(ranking, results),
      hit1: hit1,
      hit3: hit3,
      picked: picked,
      router: router,
      pairs: ranking |> competitors(results, only) |> Enum.take(pairs),
      entries: entries,
      unlisted: unlisted,
      vectors: ranking.book != nil
    }
  end

  # A conversation with a router begins with the pages that it picks, whatever their order.
  defp result(ranking, {name, request, not?} = example, router, preflight) do
    picked = name in Ranking.picked(ranking, request, preflight)
    {passed, rank, ranked} = Ranking.outcome(ranking, example, picked, router)

    %{
      name: name,
      request: request,
      not: not?,
      passed: passed,
      picked: picked,
      rank: rank,
      ranking: ranked
    }
  end

  defp competitors(%{view: view, book: book}, results, only) do
    taken =
      for %{name: name, not: false} = result <- results,
          other <- result.ranking,
          other.name != name,
          do: {name, other.name}

    Native.view_competitors(view.ref, taken, book && book.vectors, only)
  end

  defp with_sentences(ranking, results) do
    rankings = Ranking.explain_sentences(ranking, Enum.map(results, &{&1.request, &1.ranking}))
    for {result, ranked} <- Enum.zip(results, rankings), do: %{result | ranking: ranked}
  end
end
