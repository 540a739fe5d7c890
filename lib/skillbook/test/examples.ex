defmodule Skillbook.Test.Examples do
  @moduledoc false
  # Runs the `examples` of the entries of a view, and finds the pairs of entries that compete.

  alias Skillbook.Test.Ranking
  alias Skillbook.{Native, Test, View}

  # A model is seldom shown more entries, and the router picks no more.
  @enough 3
  # Descriptions that are less alike have little in common but the words of their subject.
  @alike 0.3
  # The pairs that are looked at when only some are wanted.
  @max_pairs 1_000

  @spec run(View.t(), [String.t()] | nil, non_neg_integer()) :: Test.t()
  def run(view, only, pairs) do
    listed = view |> View.listed() |> Enum.map(& &1.name)
    tested = with_examples(view, listed, only)
    results = for {name, examples} <- tested, result <- results(view, name, examples), do: result
    ranks = for %{not: false, rank: rank} <- results, do: rank

    %Test{
      results: results,
      hit1: share(ranks, 1),
      hit3: share(ranks, @enough),
      pairs: view |> pairs(results, only) |> Enum.take(pairs),
      entries: length(if only, do: listed -- listed -- only, else: listed),
      unlisted: unlisted(view, listed, only),
      vectors: vectors?(view)
    }
  end

  defp with_examples(view, names, only) do
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

  defp results(view, name, examples) do
    for(request <- examples.requests, do: wanted(view, name, request)) ++
      for request <- examples.not, do: unwanted(view, name, request)
  end

  defp wanted(view, name, request) do
    rank = view |> Ranking.find(request) |> Ranking.rank(name)

    %{
      name: name,
      request: request,
      not: false,
      passed: rank != nil and rank <= @enough,
      rank: rank,
      ranking: if(rank == 1, do: [], else: explained(view, request, name, rank))
    }
  end

  # Those after its own did not take the request.
  defp explained(view, request, name, rank) do
    ranking = Ranking.explained(view, request, name, Ranking.shown())
    Enum.reject(ranking, &(rank != nil and &1.rank > rank))
  end

  defp unwanted(view, name, request) do
    picked? = name in Ranking.picked(view, request)
    rank = view |> Ranking.find(request) |> Ranking.rank(name)

    %{
      name: name,
      request: request,
      not: true,
      passed: not picked?,
      rank: rank,
      ranking: if(picked?, do: explained(view, request, name, rank), else: [])
    }
  end

  defp share([], _first), do: nil
  defp share(ranks, first), do: Enum.count(ranks, &(&1 != nil and &1 <= first)) / length(ranks)

  # Those that take each other's examples first, then those that are most alike.
  defp pairs(view, results, only) do
    taken =
      for %{not: false, name: name, ranking: ranking, rank: rank} <- results,
          %{name: other} = ranked <- ranking,
          rank == nil or ranked.rank < rank,
          reduce: %{} do
        taken -> Map.update(taken, {name, other}, 1, &(&1 + 1))
      end

    alike =
      for %{names: names} = pair <- Native.view_rivals(view.ref, @alike, @max_pairs),
          names = Enum.sort(names),
          into: %{},
          do: {names, %{pair | names: names}}

    names = for {{name, other}, _count} <- taken, do: Enum.sort([name, other])

    (Map.keys(alike) ++ names)
    |> Enum.uniq()
    |> Enum.filter(&(only == nil or Enum.any?(&1, fn name -> name in only end)))
    |> Enum.map(fn [one, other] = names ->
      alike
      |> Map.get(names, %{names: names, similarity: 0.0, words: []})
      |> Map.put(:taken, [Map.get(taken, {one, other}, 0), Map.get(taken, {other, one}, 0)])
    end)
    |> Enum.sort_by(&{-Enum.sum(&1.taken), -&1.similarity, &1.names})
  end

  defp vectors?(_view), do: false
end
