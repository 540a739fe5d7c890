defmodule Skillbook.Preflight.Confidence do
  @moduledoc false
  # How likely a message needs a skill, if its best candidate has the scores of this one: a
  # logistic function, fitted by `bench/preflight.exs --fit` on requests and remarks, of which
  # there are as many. There is one for words alone and one for words with vectors.

  alias Skillbook.Search.{Candidates, Query}

  # The weights of the features below, the constant first.
  @words [-10.76, 9.19, 3.86]
  @vectors [-11.06, 4.67, 3.53, 13.26]

  # A message with more words of content is no likelier to be a request.
  @max_content 4

  @doc "The confidence of each candidate of a view with so many entries, from 0.0 to 1.0."
  @spec of([Candidates.t()], String.t(), non_neg_integer()) :: [float()]
  def of(candidates, text, entries) do
    for {kind, features} <- features(candidates, text, entries),
        do: logistic(if(kind == :vectors, do: @vectors, else: @words), features)
  end

  @doc "The features of each candidate, for fitting."
  @spec features([Candidates.t()], String.t(), non_neg_integer()) ::
          [{:words | :vectors, [float()]}]
  def features(candidates, text, entries) do
    content = :math.log(1 + min(content(text), @max_content))
    rarest = max(rarest(entries), 1.0)

    for %{words: words, similarity: similarity} <- candidates do
      features = [:math.log(1 + max(words, 0.0) / rarest), content]
      if similarity, do: {:vectors, features ++ [similarity]}, else: {:words, features}
    end
  end

  # The weight of a word that only one entry has, as in the core's `search/scope.rs`. It grows
  # with the catalog, and the scores of words with it.
  defp rarest(entries), do: :math.log(1 + max(entries - 0.5, 0.0) / 1.5)

  # The number of different words that say something about the subject.
  defp content(text) do
    for({form, _stem, false} <- Query.words(text), do: form)
    |> Enum.uniq()
    |> length()
  end

  @doc "The value of a logistic function with these weights, the constant first."
  @spec logistic([float()], [float()]) :: float()
  def logistic([constant | weights], features) do
    sum =
      weights |> Enum.zip(features) |> Enum.reduce(constant, fn {w, x}, sum -> sum + w * x end)

    Float.round(1 / (1 + :math.exp(-max(min(sum, 30.0), -30.0))), 3)
  end
end
