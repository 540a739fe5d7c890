defmodule Skillbook.Test.Examples do
  @moduledoc false
  # Runs the `examples` of the entries of a view, and finds the pairs of entries that compete.

  alias Skillbook.Test.{Pairs, Ranking}
  alias Skillbook.{Test, View}

  # A model is seldom shown more entries, and the router picks no more.
  @enough 3

  @spec run(
          View.t(),
          [String.t()] | nil,
          non_neg_integer(),
          keyword() | false | nil,
          (atom(), map() -> term())
        ) :: Test.t()
  def run(view, only, pairs, preflight, progress \\ fn _what, _count -> :ok end) do
    router = %{on: Ranking.router?(view, preflight), options: preflight}
    listed = view |> View.listed() |> Enum.map(& &1.name)
    tested = with_examples(view, listed, only)
    requests = for {_name, examples} <- tested, request <- examples.requests, do: request
    ranking = Ranking.new(view, requests ++ Enum.flat_map(tested, &elem(&1, 1).not), progress)

    results =
      for {name, examples} <- tested,
          result <- results(ranking, name, examples, router),
          do: result

    wanted = Enum.reject(results, & &1.not)

    %Test{
      results: with_sentences(ranking, results),
      hit1: share(wanted, &(&1.rank == 1)),
      hit3: share(wanted, &(&1.rank in 1..@enough)),
      picked: share(wanted, & &1.picked),
      router: router.on,
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

  defp results(ranking, name, examples, router) do
    for(request <- examples.requests, do: wanted(ranking, name, request, router)) ++
      for request <- examples.not, do: unwanted(ranking, name, request, router)
  end

  # A conversation with a router begins with the pages that it picks, whatever their order.
  defp wanted(ranking, name, request, router) do
    rank = ranking |> Ranking.find(request) |> Ranking.rank(name)
    picked? = name in Ranking.picked(ranking, request, router.options)

    %{
      name: name,
      request: request,
      not: false,
      passed: if(router.on, do: picked?, else: rank != nil and rank <= @enough),
      picked: picked?,
      rank: rank,
      ranking: if(rank == 1, do: [], else: explained(ranking, name, request, rank))
    }
  end

  # Those after its own did not take the request.
  defp explained(ranking, name, request, rank) do
    entries = Ranking.explained(ranking, request, name, Ranking.shown())
    Enum.reject(entries, &(rank != nil and &1.rank > rank))
  end

  defp unwanted(ranking, name, request, router) do
    picked? = name in Ranking.picked(ranking, request, router.options)
    rank = ranking |> Ranking.find(request) |> Ranking.rank(name)

    %{
      name: name,
      request: request,
      not: true,
      passed: not picked?,
      picked: picked?,
      rank: rank,
      ranking: if(picked?, do: explained(ranking, name, request, rank), else: [])
    }
  end

  defp with_sentences(ranking, results) do
    rankings = Ranking.explain_sentences(ranking, Enum.map(results, &{&1.request, &1.ranking}))
    for {result, ranked} <- Enum.zip(results, rankings), do: %{result | ranking: ranked}
  end

  defp share([], _counts?), do: nil
  defp share(results, counts?), do: Enum.count(results, counts?) / length(results)
end
