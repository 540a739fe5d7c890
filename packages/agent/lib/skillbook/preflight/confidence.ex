defmodule Skillbook.Preflight.Confidence do
  @moduledoc false
  # How likely a message needs a skill, if its best candidate has the scores of this one: a
  # logistic function, fitted by `bench/preflight.exs --fit` on requests, remarks, and requests
  # for skills that the catalog does not have. Half of the messages are requests. There is one
  # function for words alone and one for words with vectors.

  alias Skillbook.Preflight.Form
  alias Skillbook.Search.{Candidates, Query}

  # The weights of the features below, the constant first.
  @words [-8.46, 3.32, 4.4, 2.56, 2.26, -0.17]
  @vectors [-7.49, 2.8, 3.93, 0.99, 0.13, -0.64, 16.34, 2.27]

  # A candidate is less confident if the odds of the best are more than so many times its own:
  # then another entry is meant, as by "Write a poem about rain" beside a skill for poems.
  @odds 2

  # A message with more words of content is no likelier to be a request.
  @max_content 3

  @doc "The confidence of each candidate of a view with so many entries, from 0.0 to 1.0."
  @spec of([Candidates.t()], String.t(), non_neg_integer()) :: [float()]
  def of(candidates, text, entries) do
    confidences =
      for {kind, features} <- features(candidates, text, entries),
          do: logistic(if(kind == :vectors, do: @vectors, else: @words), features)

    best = odds(Enum.max(confidences, fn -> 0.0 end))
    Enum.map(confidences, &Float.round(&1 * min(1.0, @odds * odds(&1) / max(best, 1.0)), 3))
  end

  defp odds(confidence), do: confidence / (1 - min(confidence, 0.999))

  @doc "The features of each candidate, for fitting."
  @spec features([Candidates.t()], String.t(), non_neg_integer()) ::
          [{:words | :vectors, [float()]}]
  def features(candidates, text, entries) do
    text = Form.head(text)
    {asks?, orders?} = Form.of(text)
    content = :math.log(1 + min(content(text), @max_content))
    # The best of many entries matches better by chance.
    size = :math.log(max(entries, 1))
    rarest = max(rarest(entries), 1.0)
    message = [content, number(asks?), number(orders?), size]

    for %{words: words, similarity: similarity} <- candidates do
      features = [:math.log(1 + max(words, 0.0) / rarest) | message]

      cond do
        similarity == nil -> {:words, features}
        # Remarks about a subject are as similar to its skill as requests.
        asks? or orders? -> {:vectors, features ++ [similarity, 0.0]}
        true -> {:vectors, features ++ [0.0, similarity]}
      end
    end
  end

  defp number(true), do: 1.0
  defp number(false), do: 0.0

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
