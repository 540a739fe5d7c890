defmodule Skillbook.SQL.Migrations.V23 do
  @moduledoc false
  # The live entries of each set of labels in the order of lists, so that a page of a profile that
  # may see few labels reads only its entries.

  @behaviour Skillbook.SQL.Migrations

  @impl true
  def up(dialect) do
    byte_order = if dialect == :postgres, do: ~s( collate "C"), else: ""

    [
      "create index skillbook_entries_labels_index on skillbook_entries " <>
        "(tenant, labels#{byte_order}, name#{byte_order}, id) where deleted_at is null"
    ]
  end

  @impl true
  def down(_dialect), do: ["drop index skillbook_entries_labels_index"]
end
