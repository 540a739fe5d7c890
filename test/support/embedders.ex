defmodule Skillbook.Embedders do
  @moduledoc false
  # Embedders for tests: their vectors count words of a few topics, so texts about the same topic
  # are similar without a common word. They report each call to a process.

  alias Skillbook.Embedder

  @topics [
    ~w(weather rain forecast sky umbrella storm sunny dry wet),
    ~w(mail letter message send post write greet hello),
    ~w(money pay invoice bill bank price cost),
    ~w(cook recipe eat food dinner stew hungry)
  ]

  @doc "The size of the vectors: a topic each, and one number that is never 0."
  def size, do: length(@topics) + 1

  @doc """
  An embedder that sends `{:embedded, texts}` to the calling process.

  `before` is called with the texts first, and may raise, wait or return `{:error, error}`.
  """
  def topics(model \\ "topics", before \\ fn _texts -> :ok end) do
    test = self()

    Embedder.Function.new(model, fn texts ->
      send(test, {:embedded, texts})
      with :ok <- before.(texts), do: Enum.map(texts, &vector/1)
    end)
  end

  @doc "The vector of a text, not normalised."
  def vector(text) do
    words = String.split(String.downcase(text), ~r/[^a-z]+/, trim: true)
    [0.2 | for(topic <- @topics, do: Enum.count(words, &(&1 in topic)) * 1.0)]
  end

  @doc "The texts of all calls so far, in order, each call a list."
  def calls do
    receive do
      {:embedded, texts} -> [texts | calls()]
    after
      0 -> []
    end
  end
end
