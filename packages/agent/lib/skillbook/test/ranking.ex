defmodule Skillbook.Test.Ranking do
  @moduledoc false
  # The entries that search finds for requests, and why: the words of the request that find each
  # and, if the book has an embedder, its similarity and the sentence of its description that is
  # most similar.
  #
  # Vectors are made without the time limit of a search. With words alone for some of the
  # requests, a result would say nothing.

  alias Skillbook.Embedding.{Entries, QueryVectors}
  alias Skillbook.Preflight.{Settings, Stages}
  alias Skillbook.Search.Candidates
  alias Skillbook.{Book, Embedder, Native, Test, View}

  # An entry behind the tenth place is as good as lost.
  @max 10
  @shown 3
  # Milliseconds. A test prefers a late answer to none.
  @router_timeout 60_000
  # Of a description, for the comparison of sentences.
  @max_sentences 8

  @enforce_keys [:view]
  defstruct [:view, :book, of: %{}]

  @typedoc "A view, its book if that has vectors, and the vectors of requests."
  @type t :: %__MODULE__{
          view: View.t(),
          book: Book.t() | nil,
          of: %{String.t() => Embedder.vector()}
        }

  @doc "How many places are looked at."
  def max, do: @max

  @doc "How many entries are shown before the one in question."
  def shown, do: @shown

  @doc """
  Prepares to rank the entries of a view for some requests.

  If the view's book has an embedder, this waits until all entries have vectors. Raises
  `Skillbook.EmbedderError` if the embedder fails.
  """
  @spec new(View.t(), [String.t()], (atom(), map() -> term())) :: t()
  def new(view, requests, progress \\ fn _what, _count -> :ok end) do
    case view.book && Book.find(view.book) do
      %Book{vectors: vectors} = book when vectors != nil ->
        with {:error, error} <- Entries.await(view, &progress.(:entries, &1)), do: raise(error)
        requests = requests |> Enum.filter(&String.valid?/1) |> Enum.uniq()
        total = length(requests)
        report = &progress.(:requests, %{done: &1, total: total})
        %__MODULE__{view: view, book: book, of: vectors!(book, requests, report)}

      _ ->
        %__MODULE__{view: view}
    end
  end

  defp vectors!(book, texts, report) do
    case QueryVectors.vectors(book, texts, report) do
      {:ok, vectors} -> vectors
      {:error, error} -> raise error
    end
  end

  @doc "The entries of the first #{@max} places for a request."
  @spec find(t(), String.t()) :: [Candidates.t()]
  def find(%__MODULE__{view: view} = ranking, request),
    do: Candidates.find(view, utf8(request), @max, meaning(ranking, request))

  defp meaning(%{book: book, of: of}, request) do
    with %{^request => vector} <- of, do: {book.vectors, vector}, else: (_ -> nil)
  end

  @doc "The place of a name, from 1; `nil` if it is not among these."
  @spec rank([%{name: String.t()}], String.t()) :: pos_integer() | nil
  def rank(candidates, name) do
    with at when is_integer(at) <- Enum.find_index(candidates, &(&1.name == name)), do: at + 1
  end

  @doc """
  The first `count` entries for a request and the one of this name, with the words that find them.
  `explain_sentences/2` adds the sentences.
  """
  @spec explained(t(), String.t(), String.t() | nil, pos_integer()) :: [Test.ranked()]
  def explained(%{view: view} = ranking, request, name, count),
    do: Native.view_ranking(view.ref, utf8(request), meaning(ranking, request), name, count)

  @doc """
  Where the request of an example leads: whether as it should, the place of its entry, and the
  entries in question. `router` says whether the router is on, and `picked` what it does.
  """
  @spec outcome(t(), {String.t(), String.t(), boolean()}, boolean(), boolean()) ::
          {boolean(), pos_integer() | nil, [Test.ranked()]}
  def outcome(%{view: view} = ranking, {_name, request, _not} = example, picked, router),
    do: Native.view_outcome(view.ref, example, meaning(ranking, request), picked, router)

  @doc "Candidates of a search for a request, with the words and the sentence of each."
  @spec explain(t(), String.t(), [candidate]) :: [candidate]
        when candidate: %{required(:name) => String.t(), optional(atom()) => term()}
  def explain(ranking, request, candidates) do
    names = Enum.map(candidates, & &1.name)
    words = Native.view_why(ranking.view.ref, utf8(request), names)

    candidates =
      for {candidate, words} <- Enum.zip(candidates, words),
          do: Map.merge(candidate, %{words: words, sentence: nil})

    [candidates] = explain_sentences(ranking, [{request, candidates}])
    candidates
  end

  @doc "Adds the most similar sentence to the entries of rankings, each with its request."
  @spec explain_sentences(t(), [{String.t(), [Test.ranked()]}]) :: [[Test.ranked()]]
  def explain_sentences(%{book: nil}, rankings), do: for({_, ranked} <- rankings, do: ranked)

  def explain_sentences(ranking, rankings) do
    names =
      for {_request, ranked} <- rankings, %{similarity: s, name: name} <- ranked, s, do: name

    sentences =
      for name <- Enum.uniq(names),
          {:ok, entry} <- [View.fetch(ranking.view, name)],
          into: %{},
          do: {name, sentences(entry.description)}

    # The only sentence of a description needs no vector.
    several = for {_name, [_, _ | _] = sentences} <- sentences, text <- sentences, do: text
    vectors = vectors!(ranking.book, several, fn _count -> :ok end)

    for {request, ranked} <- rankings do
      for entry <- ranked do
        own = if entry.similarity, do: sentences[entry.name] || [], else: []
        %{entry | sentence: closest(own, ranking.of[request], vectors)}
      end
    end
  end

  defp closest([], _vector, _vectors), do: nil
  defp closest([sentence], _vector, _vectors), do: sentence

  defp closest(sentences, vector, vectors),
    do: Enum.max_by(sentences, &product(vector, vectors[&1], 0.0))

  defp product(<<a::float-32-little, rest::binary>>, <<b::float-32-little, others::binary>>, sum),
    do: product(rest, others, sum + a * b)

  defp product(_vector, _other, sum), do: sum

  @doc "The first sentences of a text."
  @spec sentences(String.t()) :: [String.t()]
  def sentences(text) do
    text
    |> String.split(~r/(?<=[.!?。！？;])\s+|\n+/u, parts: @max_sentences + 1, trim: true)
    |> Enum.take(@max_sentences)
    |> Enum.map(&String.trim/1)
    |> Enum.reject(&(&1 == ""))
    |> Enum.uniq()
  end

  @doc """
  Whether the router is on for a view, with these options or those of its book and profile, as in
  a conversation.
  """
  @spec router?(View.t(), keyword() | false | nil) :: boolean()
  def router?(view, preflight), do: Settings.of_run(view, preflight) != nil

  @doc """
  The names that the router picks for a request: as it is set if it is on, and otherwise without a
  model. Raises if a stage fails, since the picks would say nothing.
  """
  @spec picked(t(), String.t(), keyword() | false | nil) :: [String.t()]
  def picked(%{view: view}, request, preflight) do
    settings =
      Settings.of_run(view, preflight) ||
        Settings.of_call(view, enabled: true, stages: [:keywords, :retrieval])

    result = Stages.run(view, utf8(request), %{settings | timeout: @router_timeout}, true)

    for %{stage: stage, status: status, error: error} <- result.stages,
        status in [:failed, :timeout],
        do: raise("the stage #{inspect(stage)} of the router failed: #{error}")

    for pick <- result.picks, do: pick.name
  end

  @doc "A ranking as a table: a line for each entry, and one for its sentence."
  @spec lines([Test.ranked()]) :: [String.t()]
  def lines(ranking), do: Native.ranking_lines(ranking)

  # A text that is not UTF-8 has no words.
  defp utf8(text), do: if(String.valid?(text), do: text, else: "")
end
