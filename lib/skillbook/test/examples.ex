defmodule Skillbook.Test.Examples do
  @moduledoc false
  # Runs the `examples` of the entries of a view, and finds the pairs of entries that compete.

  alias Skillbook.Test.{Pairs, Ranking}
  alias Skillbook.{Test, View}

  # A model is seldom shown more entries, and the router picks no more.
  @enough 3

  @spec run(View.t(), [String.t()] | nil, non_neg_integer(), (atom(), map() -> term())) ::
          Test.t()
  def run(view, only, pairs, progress \\ fn _what, _count -> :ok end) do
    listed = view |> View.listed() |> Enum.map(& &1.name)
    tested = with_examples(view, listed, only)
    requests = for {_name, examples} <- tested, request <- examples.requests, do: request
    ranking = Ranking.new(view, requests ++ Enum.flat_map(tested, &elem(&1, 1).not), progress)

    results =
      for {name, examples} <- tested, result <- results(ranking, name, examples), do: result

    ranks = for %{not: false, rank: rank} <- results, do: rank

    %Test{
      results: with_sentences(ranking, results),
      hit1: share(ranks, 1),
      hit3: share(ranks, @enough),
      pairs: ranking |> Pairs.find(results, only) |> Enum.take(pairs),
      entries: length(if only, do: listed -- listed -- only, else: listed),
      unlisted: unlisted(view, listed, only),
      vectors: ranking.book != nil
    }
  end

  defp with_examples(view, names, only) do
    only = only && MapSet.new(only)

    for name <- names,
        only == nil or name in only,
        {:ok, examples} = View.examples(view, name),
        examples != %{requests: [], not: []},
        do: {name, examples}
  end

  defp unlisted(view, listed, only) do
    others = (view |> View.entries() |> Enum.map(& &1.name)) -- listed
    for {name, _examples} <- with_examples(view, others, only), do: name
  end

  defp results(ranking, name, examples) do
    for(request <- examples.requests, do: wanted(ranking, name, request)) ++
      for request <- examples.not, do: unwanted(ranking, name, request)
  end

  defp wanted(ranking, name, request) do
    rank = ranking |> Ranking.find(request) |> Ranking.rank(name)

    %{
      name: name,
      request: request,
      not: false,
      passed: rank != nil and rank <= @enough,
      rank: rank,
      ranking: if(rank == 1, do: [], else: explained(ranking, name, request, rank))
    }
  end

  # Those after its own did not take the request.
  defp explained(ranking, name, request, rank) do
    entries = Ranking.explained(ranking, request, name, Ranking.shown())
    Enum.reject(entries, &(rank != nil and &1.rank > rank))
  end

  defp unwanted(ranking, name, request) do
    picked? = name in Ranking.picked(ranking, request)
    rank = ranking |> Ranking.find(request) |> Ranking.rank(name)

    %{
      name: name,
      request: request,
      not: true,
      passed: not picked?,
      rank: rank,
      ranking: if(picked?, do: explained(ranking, name, request, rank), else: [])
    }
  end

  defp with_sentences(ranking, results) do
    rankings = Ranking.explain_sentences(ranking, Enum.map(results, &{&1.request, &1.ranking}))
    for {result, ranked} <- Enum.zip(results, rankings), do: %{result | ranking: ranked}
  end

  defp share([], _first), do: nil
  defp share(ranks, first), do: Enum.count(ranks, &(&1 != nil and &1 <= first)) / length(ranks)
end
