defmodule Skillbook.Search.Backfill do
  @moduledoc false
  # Indexes documents of an earlier version, which a migration listed in
  # `skillbook_search_unindexed`.
  #
  # A migration consists of statements only, but the core splits texts into words. So a book
  # indexes the listed documents when it starts, in several transactions; after a crash the next
  # start continues. Several nodes may do so at the same time, because each transaction removes
  # its documents from the list.

  alias Skillbook.SQL.Values
  alias Skillbook.Search.Index
  alias Skillbook.Support.UntilError
  alias Skillbook.{Book, Handlers, Part, SQL}

  require Logger

  @batch 500

  # As `c:Skillbook.Part.documents/1`; `searched/2` returns segment key, id and document.
  @sources %{"task" => {Handlers.Tasks.Table, :all}, "memory" => {Handlers.Memory.Table, :all}}

  @doc "Indexes the listed documents of the core and of a book's parts; others stay in the list."
  @spec index(Book.t()) :: :ok | {:error, SQL.Error.t()}
  def index(book) do
    sql = Book.sql(book)
    sources = Part.merged(book.parts, :documents, [book], @sources)
    kinds = "kind in (#{Enum.map_join(Map.keys(sources), ", ", &"'#{&1}'")})"
    query = "select count(*) from skillbook_search_unindexed where #{kinds}"

    with {:ok, %{rows: [[total]]}} when total > 0 <- SQL.query(sql, query) do
      Logger.info("indexing #{total} notes, tasks and memories of an earlier version for search")

      batches(sql, sources, kinds)
    else
      {:ok, _none} -> :ok
      error -> error
    end
  end

  defp batches(sql, sources, kinds) do
    case SQL.transaction(sql, &batch(&1, sources, kinds)) do
      {:ok, :done} -> :ok
      {:ok, :more} -> batches(sql, sources, kinds)
      error -> error
    end
  end

  defp batch(sql, sources, kinds) do
    query =
      "select kind, document_id from skillbook_search_unindexed " <>
        "where #{kinds} order by kind, document_id limit #{@batch}"

    with {:ok, %{rows: [_ | _] = rows}} <- SQL.query(sql, query),
         found = Enum.group_by(rows, &hd/1, &List.last/1),
         {:ok, _} <- UntilError.map(found, fn {kind, ids} -> move(sql, kind, ids, sources) end) do
      {:ok, :more}
    else
      {:ok, _none} -> {:ok, :done}
      error -> error
    end
  end

  defp move(sql, kind, ids, sources) do
    {these, params} = Values.ids(sql, "document_id", ids, 2)
    delete = "delete from skillbook_search_unindexed where kind = $1 and #{these}"

    {table, _scopes} = sources[kind]

    with {:ok, documents} <- table.searched(sql, ids),
         segments = Enum.group_by(documents, &elem(&1, 0)),
         {:ok, _} <- UntilError.map(segments, fn {key, some} -> put(sql, key, some) end),
         do: SQL.query(sql, delete, [kind | params])
  end

  # Documents that were written since the migration are already indexed, so they are removed
  # first.
  defp put(sql, key, documents) do
    documents = for {_key, id, document} <- documents, do: {id, document}

    with {:ok, segment} <- Index.join(sql, key, length(documents)),
         :ok <- Index.remove(sql, segment, Enum.map(documents, &elem(&1, 0))),
         :ok <- Index.put(sql, segment, Index.pack(documents)),
         do: {:ok, segment}
  end
end
