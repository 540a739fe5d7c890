defmodule Skillbook.Embedding.Documents do
  @moduledoc false
  # The documents in the database as texts to embed: memories, and those of parts. Their vectors
  # are apart from those of entries, and in memory only while they are searched.
  #
  # Each run of the full-text index has the digests of its documents' texts
  # (`Skillbook.Search.Index`), so an unchanged document has the same ones. A search compares a
  # query only with the runs that its reader sees.

  @behaviour Skillbook.Embedding.Texts

  alias Skillbook.Embedding.{Indexer, Table, Vectors}
  alias Skillbook.Handlers.Memory
  alias Skillbook.Search.Index
  alias Skillbook.{Book, Native, Part}

  # As `c:Skillbook.Part.documents/1`. Other books of the database have the same memories.
  @tables %{"memory" => {Memory.Table, :all}}

  # A transaction may commit its runs after one that got higher ids.
  @overlap 64

  # Runs never change, so those that were looked at need not be read again.
  @impl true
  def follow(book, place) do
    from = place || 0
    found = for {kind, runs} <- runs(book, from - @overlap), do: {kind, Enum.unzip(runs)}

    last =
      for {_kind, {ids, _runs}} <- found, id <- ids, reduce: from, do: (last -> max(id, last))

    runs = for {kind, {_ids, runs}} <- found, do: {kind, runs}
    {Native.search_follow(book.document_vectors, runs, place == nil), last}
  end

  @impl true
  def texts(book, missing) do
    wanted = MapSet.new(missing, &elem(&1, 0))
    ids = Enum.group_by(missing, fn {_, {kind, _}} -> kind end, fn {_, {_, id}} -> id end)

    tables = tables(book)

    for {kind, ids} <- ids,
        {table, _scopes} = tables[kind],
        documents = result(table.searched(Book.sql(book), Enum.uniq(ids))),
        documents = for({_key, id, document} <- documents, do: {id, document}),
        {digest, text} <- documents |> Native.search_chunks() |> Enum.uniq_by(&elem(&1, 0)),
        digest in wanted,
        do: {digest, text}
  end

  @impl true
  def vectors(book), do: book.document_vectors

  @impl true
  def in_memory?, do: false

  @doc """
  Reads vectors of this size into memory that a search is about to compare with that of its query.
  """
  @spec read(Book.t(), pos_integer(), [Table.digest()]) :: :ok
  def read(book, size, digests) do
    # Those that nobody searches make room. The vectors of a search itself have no limit: they are
    # as many as its documents.
    Vectors.forget(book.document_vectors, book.store_memory)

    # Somebody has deleted rows, or the model has vectors of another size now.
    with [_ | _] = lost <- Vectors.read(book.document_vectors, book, digests, size) do
      :ok = Vectors.lost(book.document_vectors, lost)
      Indexer.lost(book.name, size)
    end

    :ok
  end

  defp tables(book), do: Part.merged(book.parts, :documents, [book], @tables)

  defp runs(book, after_id) do
    for {kind, {_table, scopes}} <- tables(book), scopes != [], book.store != nil do
      {kind, result(book |> Book.sql() |> Index.runs(kind, scopes, after_id))}
    end
  end

  # The indexer takes it as a failed attempt.
  defp result({:ok, result}), do: result
  defp result({:error, error}), do: throw({:error, error})
end
