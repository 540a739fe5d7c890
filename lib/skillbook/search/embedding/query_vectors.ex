defmodule Skillbook.Embedding.QueryVectors do
  @moduledoc false
  # The vector of a search query: from a cache of recent queries, or from the book's embedder
  # within its time limit. A search never fails because of the embedder; without a vector it goes
  # by words alone.
  #
  # The cache is an ETS table of the book's supervisor. Its keys are digests, so it keeps no text.

  alias Skillbook.Embedding.{Documents, Vectors}
  alias Skillbook.Search.{Index, Query}
  alias Skillbook.Support.UntilError
  alias Skillbook.{Book, Embedder, Telemetry}

  # The number of queries in the cache.
  @max_queries 256
  # Milliseconds without another attempt after a failure, so that not every search waits for a
  # server that does not answer.
  @pause 5_000

  @doc "Creates the cache of a book, in the process of its supervisor."
  @spec new(atom()) :: :ok
  def new(book) do
    table = :ets.new(table(book), [:named_table, :public, read_concurrency: true])
    :ets.insert(table, {:count, 0})
    :ok
  end

  @doc """
  Returns the meaning of a query of documents; `nil` if none has a vector, or if there is no
  vector of the query.
  """
  @spec meaning(Book.t() | nil, String.t()) :: Index.meaning() | nil
  def meaning(%Book{document_vectors: vectors} = book, text) when vectors != nil do
    {sentence, exact?} = Query.meaning(text)

    # Nothing is embedded yet.
    with true <- Vectors.count(vectors) > 0,
         vector when vector != nil <- vector(book, sentence) do
      size = div(byte_size(vector), 4)
      {vectors, vector, not exact?, &Documents.read(book, size, &1)}
    else
      _ -> nil
    end
  end

  def meaning(_book, _text), do: nil

  @doc "Returns the vector of a query, or `nil` if the book has no embedder or it fails."
  @spec vector(Book.t() | nil, String.t()) :: Embedder.vector() | nil
  def vector(%Book{embedder: embedder} = book, text) when embedder != nil do
    key = :crypto.hash(:sha256, text)

    case lookup(book.name, key) do
      {:ok, vector} -> vector
      :paused -> nil
      :unknown -> if String.trim(text) == "", do: nil, else: embed(book, key, text)
    end
  end

  def vector(_book, _text), do: nil

  # Of a call of the embedder.
  @max_texts 64

  @doc """
  Returns the vectors of many texts, without the cache and its time limit, for trusted code.

  `progress` is called with the number of vectors so far.
  """
  @spec vectors(Book.t(), [String.t()], (non_neg_integer() -> term())) ::
          {:ok, %{String.t() => Embedder.vector()}} | {:error, Skillbook.EmbedderError.t()}
  def vectors(book, texts, progress) do
    texts
    |> Enum.uniq()
    |> Enum.reject(&(String.trim(&1) == ""))
    |> Enum.chunk_every(@max_texts)
    |> UntilError.reduce(%{}, fn texts, done ->
      with {:ok, vectors} <- Embedder.embed(book.embedder, texts) do
        done = texts |> Enum.zip(vectors) |> Enum.into(done)
        progress.(map_size(done))
        {:ok, done}
      end
    end)
  end

  defp lookup(book, key) do
    table = table(book)

    with [] <- :ets.lookup(table, key),
         [{:paused, until}] <- :ets.lookup(table, :paused),
         true <- System.monotonic_time(:millisecond) < until do
      :paused
    else
      [{^key, vector}] -> {:ok, vector}
      _ -> :unknown
    end
  rescue
    # The book has stopped since.
    ArgumentError -> :paused
  end

  defp embed(book, key, text) do
    began = System.monotonic_time()
    result = Embedder.embed(book.embedder, [text], timeout: book.embedder_timeout)

    kind =
      case result do
        {:ok, [vector]} ->
          put(book.name, key, vector)
          nil

        {:error, error} ->
          # Another query may be answered if only this one was refused.
          unless error.kind in [:refused, :bad_answer, :failed], do: pause(book.name)
          error.kind
      end

    measurements = %{duration: System.monotonic_time() - began}

    metadata = %{book: book.name, kind: kind}
    Telemetry.event([:skillbook, :embedding, :query], measurements, metadata)

    with {:ok, [vector]} <- result, do: vector, else: (_ -> nil)
  end

  # The oldest query leaves its slot.
  defp put(book, key, vector) do
    table = table(book)
    slot = {:slot, rem(:ets.update_counter(table, :count, 1), @max_queries)}
    for {_slot, oldest} <- :ets.lookup(table, slot), do: :ets.delete(table, oldest)
    :ets.insert(table, [{slot, key}, {key, vector}])
  rescue
    ArgumentError -> false
  end

  defp pause(book) do
    :ets.insert(table(book), {:paused, System.monotonic_time(:millisecond) + @pause})
  rescue
    ArgumentError -> false
  end

  defp table(book), do: Module.concat(book, QueryVectors)
end
