defmodule Skillbook.Preflight.Retrieval do
  @moduledoc false
  # The candidates of a search for the request, with their confidence.

  alias Skillbook.Preflight.Confidence
  alias Skillbook.Search.Candidates
  alias Skillbook.{Native, View}

  # The candidates of a search, and those that the stages consider. Notes and entries that are not
  # in the prompt are left out in between.
  @searched 30
  @max_candidates 10

  @spec find(View.t(), String.t(), {reference(), binary()} | nil) ::
          [Skillbook.Preflight.candidate()]
  def find(view, text, meaning) do
    candidates = Candidates.find(view, text, @searched, meaning)
    pickable = MapSet.new(Native.view_pickable(view.ref, Enum.map(candidates, & &1.name)))
    candidates = for candidate <- candidates, candidate.name in pickable, do: candidate

    candidates = Enum.take(candidates, @max_candidates)

    candidates
    |> Enum.zip(Confidence.of(candidates, text, View.count(view)))
    |> Enum.map(fn {candidate, confidence} ->
      Map.merge(candidate, %{confidence: confidence, reason: reason(candidate)})
    end)
    |> Enum.sort_by(&(-&1.confidence))
  end

  defp reason(%{words: words, similarity: nil}), do: "words #{round(words, 2)}"

  defp reason(%{words: words, similarity: similarity}),
    do: "words #{round(words, 2)}, similarity #{round(similarity, 2)}"

  defp round(number, digits), do: Float.round(number * 1.0, digits)
end
