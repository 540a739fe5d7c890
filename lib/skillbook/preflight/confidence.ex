defmodule Skillbook.Preflight.Confidence do
  @moduledoc false
  # How likely the candidates of a search help with its text: a logistic function of their scores,
  # fitted by `bench/preflight.exs --fit` on requests and remarks. There is one for words alone
  # and one for words with vectors, since a similarity says more than any score of words.

  alias Skillbook.Search.Candidates

  # The weights of the features below, the constant first.
  @words [-3.0, 1.0, 1.0, 0.0]
  @vectors [-8.0, 0.0, 1.0, 0.0, 14.0]

  @doc "The confidence of each candidate, from 0.0 to 1.0; the candidates are the best first."
  @spec of([Candidates.t()], String.t()) :: [float()]
  def of(candidates, text) do
    for {kind, features} <- features(candidates, text) do
      weights = if kind == :vectors, do: @vectors, else: @words
      logistic(weights, features)
    end
  end

  @doc "The features of each candidate, for fitting."
  @spec features([Candidates.t()], String.t()) :: [{:words | :vectors, [float()]}]
  def features(candidates, text) do
    length = :math.log(1 + length(String.split(text)))

    for candidate <- candidates do
      rivals = for other <- candidates, other.name != candidate.name, do: other
      words = :math.log(1 + max(candidate.words, 0.0))
      lead = words - :math.log(1 + max(best(rivals, & &1.words), 0.0))

      case candidate.similarity do
        nil ->
          {:words, [words, lead, length]}

        similarity ->
          ahead = similarity - max(best(rivals, &(&1.similarity || 0.0)), 0.0)
          {:vectors, [words, ahead, length, similarity]}
      end
    end
  end

  @doc "The value of a logistic function."
  @spec logistic([float()], [float()]) :: float()
  def logistic([constant | weights], features) do
    sum =
      weights |> Enum.zip(features) |> Enum.reduce(constant, fn {w, x}, sum -> sum + w * x end)

    Float.round(1 / (1 + :math.exp(-max(min(sum, 30.0), -30.0))), 3)
  end

  defp best([], _score), do: 0.0
  defp best(candidates, score), do: candidates |> Enum.map(score) |> Enum.max()
end
