defmodule Skillbook.Search.Backfill do
  @moduledoc false
  # Indexes the documents that a migration left in the table `skillbook_search_unindexed`.
  #
  # A migration has only statements, and the core splits text into words. So a book indexes these
  # documents when it starts, a batch per transaction. If it is killed, the next start continues.
  # Several nodes may do this at once: each transaction takes documents that are left.

  alias Skillbook.SQL.Values
  alias Skillbook.Search.Index
  alias Skillbook.{Handlers, SQL, Vault}

  require Logger

  @batch 500

  # Each module has `searched/2`, which returns the segment's key, the id and the document of each
  # id.
  @sources %{
    "task" => Handlers.Tasks.Table,
    "memory" => Handlers.Memory.Table,
    "vault" => Vault.Table
  }

  @doc "Indexes the remaining documents."
  @spec index(SQL.t()) :: :ok | {:error, SQL.Error.t()}
  def index(sql) do
    with {:ok, %{rows: [[total]]}} when total > 0 <-
           SQL.query(sql, "select count(*) from skillbook_search_unindexed") do
      Logger.info(
        "#{total} notes, tasks and memories of an earlier version are indexed for search"
      )

      batches(sql)
    else
      {:ok, _none} -> :ok
      error -> error
    end
  end

  defp batches(sql) do
    case SQL.transaction(sql, &batch/1) do
      {:ok, :done} -> :ok
      {:ok, :more} -> batches(sql)
      error -> error
    end
  end

  defp batch(sql) do
    query =
      "select kind, document_id from skillbook_search_unindexed " <>
        "order by kind, document_id limit #{@batch}"

    with {:ok, %{rows: [_ | _] = rows}} <- SQL.query(sql, query),
         kinds = Enum.group_by(rows, &hd/1, &List.last/1),
         {:ok, _} <-
           Skillbook.Support.Options.each(kinds, fn {kind, ids} -> take(sql, kind, ids) end) do
      {:ok, :more}
    else
      {:ok, _none} -> {:ok, :done}
      error -> error
    end
  end

  defp take(sql, kind, ids) do
    {these, params} = Values.ids(sql, "document_id", ids, 2)

    with {:ok, documents} <- @sources[kind].searched(sql, ids),
         segments = Enum.group_by(documents, &elem(&1, 0)),
         {:ok, _} <-
           Skillbook.Support.Options.each(segments, fn {key, documents} ->
             put(sql, key, documents)
           end) do
      SQL.query(sql, "delete from skillbook_search_unindexed where kind = $1 and #{these}", [
        kind | params
      ])
    end
  end

  # A document that was written since the migration is indexed already.
  defp put(sql, key, documents) do
    documents = for {_key, id, document} <- documents, do: {id, document}

    with {:ok, segment} <- Index.join(sql, key, length(documents)),
         :ok <- Index.remove(sql, segment, Enum.map(documents, &elem(&1, 0))),
         :ok <- Index.put(sql, segment, Index.pack(documents)),
         do: {:ok, segment}
  end
end
