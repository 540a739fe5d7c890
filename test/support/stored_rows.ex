defmodule Skillbook.StoredRows do
  @moduledoc false
  # Writes rows of the store without notifications, like another program.

  alias Skillbook.Store.Table
  alias Skillbook.{SQL, Stored}

  @doc "A valid entry with the given name and fields."
  def stored(name, fields \\ []) do
    now = ~U[2026-03-01 09:30:00Z]

    defaults = [
      name: name,
      kind: :note,
      title: "About #{name}",
      content: "Body of #{name}",
      source: :user
    ]

    times = [created_at: now, updated_at: now, author: "ann", hash: ""]
    struct!(Stored, Keyword.merge(defaults ++ times, fields))
  end

  @doc "Entries as rows of a query."
  defdelegate rows(entries), to: Table

  @doc "Inserts or replaces entries (by id) in one write, and returns its revision."
  def write_rows(sql, entries) do
    {:ok, revision} =
      SQL.transaction(sql, fn sql ->
        revision = raise_revision(sql)
        for entry <- entries, do: write_row(sql, entry, revision)
        {:ok, revision}
      end)

    revision
  end

  defp raise_revision(sql) do
    SQL.query!(
      sql,
      "update skillbook_settings set value = cast(cast(value as bigint) + 1 as text) where " <>
        "key = 'revision'"
    )

    [[revision]] =
      SQL.query!(sql, "select value from skillbook_settings where key = 'revision'").rows

    String.to_integer(revision)
  end

  defp write_row(sql, entry, revision) do
    if entry.id, do: SQL.query!(sql, "delete from skillbook_entries where id = $1", [entry.id])
    columns = if entry.id, do: Table.columns(), else: Table.columns() -- [:id]
    values = Enum.map(columns, &Table.to_column(&1, Map.fetch!(entry, &1)))
    names = Enum.join(columns ++ [:scope, :revision], ", ")
    places = Enum.map_join(1..(length(columns) + 2), ", ", &"$#{&1}")
    statement = "insert into skillbook_entries (#{names}) values (#{places})"
    SQL.query!(sql, statement, values ++ ["#{entry.id || System.unique_integer()}", revision])
  end
end
