defmodule Skillbook.SQL.Migrations.V20 do
  @moduledoc false
  # The names and titles of entries in the form in which other spellings of them are equal, so
  # that a name that does not exist is looked up and not compared with all others. And the live
  # entries in the order of lists, so that a page of a list reads only its entries.
  #
  # A migration has statements only, and the form needs the core: `Skillbook.Store.Table.spell/1`
  # fills the columns of existing rows when a book starts.

  import Skillbook.SQL.Migrations.Types, only: [text: 1]

  @behaviour Skillbook.SQL.Migrations

  @impl true
  def up(dialect) do
    text = text(dialect)

    [
      "alter table skillbook_entries add column name_spelling #{text}",
      "alter table skillbook_entries add column title_spelling #{text}",
      # Rows of many tenants may share a title.
      "drop index skillbook_entries_title_index",
      "create index skillbook_entries_title_index on skillbook_entries (title, tenant)",
      "create index skillbook_entries_name_spelling_index on skillbook_entries " <>
        "(name_spelling, tenant)",
      "create index skillbook_entries_title_spelling_index on skillbook_entries " <>
        "(title_spelling, tenant)",
      "create index skillbook_entries_unspelled_index on skillbook_entries (id) where " <>
        "name_spelling is null",
      # Lists are in the order of bytes, as views are; the column has the server's collation.
      "create index skillbook_entries_list_index on skillbook_entries " <>
        "(tenant, name#{bytes(dialect)}, id) where deleted_at is null",
      "create index skillbook_entries_lists_index on skillbook_entries " <>
        "(name#{bytes(dialect)}, id) where deleted_at is null"
    ]
  end

  defp bytes(:sqlite), do: ""
  defp bytes(:postgres), do: ~s( collate "C")

  @impl true
  def down(_dialect) do
    for(
      index <- ~w(lists list unspelled title_spelling name_spelling title),
      do: "drop index skillbook_entries_#{index}_index"
    ) ++
      [
        "create index skillbook_entries_title_index on skillbook_entries (title)",
        "alter table skillbook_entries drop column title_spelling",
        "alter table skillbook_entries drop column name_spelling"
      ]
  end
end
