defmodule Skillbook.SQL.Migrations.V12 do
  @moduledoc false
  # Adds to each run of the full-text index the digests of its documents' texts, by which their
  # vectors are found.
  #
  # The core computes digests. So notes and memories are listed in `skillbook_search_unindexed`,
  # and `Skillbook.Search.Backfill` indexes them again.

  import Skillbook.SQL.Migrations.Types, only: [blob: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    add = "alter table skillbook_search_runs add column digests"

    ["#{add} #{blob(dialect)} not null default ''"] ++
      packed(dialect) ++
      [
        "delete from skillbook_search_unindexed where kind in ('vault', 'memory')",
        """
        insert into skillbook_search_unindexed (kind, document_id)
        select 'vault', id from skillbook_documents
        union all select 'memory', id from skillbook_memories
        """
      ]
  end

  def down(_dialect), do: ["alter table skillbook_search_runs drop column digests"]

  # Digests cannot be compressed.
  defp packed(:sqlite), do: []

  defp packed(:postgres),
    do: ["alter table skillbook_search_runs alter column digests set storage external"]
end
