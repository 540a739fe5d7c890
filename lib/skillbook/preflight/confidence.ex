defmodule Skillbook.Preflight.Confidence do
  @moduledoc false
  # How likely a message needs a skill, if its best candidate has the scores of this one: a
  # logistic function, fitted by `bench/preflight.exs --fit` on requests and remarks, of which
  # there are as many. There is one for words alone and one for words with vectors.

  alias Skillbook.Search.{Candidates, Query}

  # The weights of the features below, the constant first.
  @words [-20.17, 2.78, 9.59]
  @vectors [-12.0, 0.4, 3.0, 17.0]

  # A message with more words of content is no likelier to be a request.
  @max_content 4

  @function_words MapSet.new(Query.function_words())

  @doc "The confidence of each candidate, from 0.0 to 1.0."
  @spec of([Candidates.t()], String.t()) :: [float()]
  def of(candidates, text) do
    for {kind, features} <- features(candidates, text),
        do: logistic(if(kind == :vectors, do: @vectors, else: @words), features)
  end

  @doc "The features of each candidate, for fitting."
  @spec features([Candidates.t()], String.t()) :: [{:words | :vectors, [float()]}]
  def features(candidates, text) do
    content = :math.log(1 + min(content(text), @max_content))

    for %{words: words, similarity: similarity} <- candidates do
      features = [:math.log(1 + max(words, 0.0)), content]
      if similarity, do: {:vectors, features ++ [similarity]}, else: {:words, features}
    end
  end

  # The number of different words that say something about the subject.
  defp content(text) do
    for({form, _stem} <- Query.words(text), form not in @function_words, do: form)
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
