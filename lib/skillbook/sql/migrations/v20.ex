defmodule Skillbook.SQL.Migrations.V20 do
  @moduledoc false
  # The titles of entries in the form in which other spellings of them are equal, so that a title
  # that does not exist is looked up and not compared with all others. And the live entries in the
  # order of lists, so that a page of a list reads only its entries.
  #
  # A migration has statements only, and the form needs the core: `Skillbook.Store.Table.spell/1`
  # fills the column of existing rows when a book starts.

  import Skillbook.SQL.Migrations.Types, only: [text: 1]

  @behaviour Skillbook.SQL.Migrations

  @impl true
  def up(dialect) do
    [
      "alter table skillbook_entries add column title_spelling #{text(dialect)}",
      # Rows of many tenants may share a title.
      "drop index skillbook_entries_title_index",
      "create index skillbook_entries_title_index on skillbook_entries (title, tenant)",
      "create index skillbook_entries_spelling_index on skillbook_entries " <>
        "(title_spelling, tenant)",
      "create index skillbook_entries_unspelled_index on skillbook_entries (id) where " <>
        "title_spelling is null"
    ] ++
      for {index, columns} <- lists(dialect),
          do:
            "create index skillbook_entries_#{index}_index on skillbook_entries (#{columns}) " <>
              "where deleted_at is null"
  end

  # For one tenant, and for all of them, where SQLite has the unique index of names. Lists are in
  # the order of bytes, as views are; on PostgreSQL the column has the server's collation.
  defp lists(:sqlite), do: [{"list", "tenant, name, id"}]

  defp lists(:postgres),
    do: [{"list", ~s(tenant, name collate "C", id)}, {"lists", ~s(name collate "C", id)}]

  @impl true
  def down(dialect) do
    indexes = ~w(unspelled spelling title) ++ for({index, _columns} <- lists(dialect), do: index)

    for(index <- indexes, do: "drop index skillbook_entries_#{index}_index") ++
      [
        "create index skillbook_entries_title_index on skillbook_entries (title)",
        "alter table skillbook_entries drop column title_spelling"
      ]
  end
end
