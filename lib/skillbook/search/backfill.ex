defmodule Skillbook.Search.Backfill do
  @moduledoc false
  # Documents that a migration left to be indexed, in the table `skillbook_search_unindexed`.
  #
  # A migration is statements alone, and words are cut by the core. So a book indexes what is left when it starts, some
  # documents in each transaction: killed in the middle, the next start goes on. Several nodes may do it at once, for each
  # transaction takes what the others have left.

  alias Skillbook.SQL.Values
  alias Skillbook.Search.Index
  alias Skillbook.{Handlers, SQL, Vault}

  require Logger

  @batch 500

  # Each has `searched/2`: of ids, a segment's key, the id and the document.
  @sources %{
    "task" => Handlers.Tasks.Table,
    "memory" => Handlers.Memory.Table,
    "vault" => Vault.Table
  }

  @doc "Indexes what is left."
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
      "select kind, document_id from skillbook_search_unindexed order by kind, document_id limit #{@batch}"

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

  # One that was written since the migration is indexed already.
  defp put(sql, key, documents) do
    documents = for {_key, id, document} <- documents, do: {id, document}

    with {:ok, segment} <- Index.join(sql, key, length(documents)),
         :ok <- Index.remove(sql, segment, Enum.map(documents, &elem(&1, 0))),
         :ok <- Index.put(sql, segment, Index.pack(documents)),
         do: {:ok, segment}
  end
end
