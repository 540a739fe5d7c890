defmodule Skillbook.SQL.Migrations.V21 do
  @moduledoc false
  # Indexes of growing tables by the age of their rows, in which `Skillbook.Book.Pruner` finds the
  # old ones.

  @behaviour Skillbook.SQL.Migrations

  # The index, its table and columns, and the condition of its rows.
  @indexes [
    {"entries_deleted", "entries (deleted_at, id)", " where deleted_at is not null"},
    {"runs_time", "runs (started_at, id)", ""},
    {"approvals_time", "approvals (expires_at, id)", ""},
    {"usage_bucket", "usage (bucket)", ""},
    # Most counts are those of days.
    {"usage_hours", "usage (bucket)", " where length(bucket) > 10"},
    {"firings_time", "firings (fire_at, name, record)", ""}
  ]

  @impl true
  def up(_dialect) do
    ["drop index skillbook_firings_time_index"] ++
      for {index, columns, where} <- @indexes,
          do: "create index skillbook_#{index}_index on skillbook_#{columns}#{where}"
  end

  @impl true
  def down(_dialect) do
    for({index, _columns, _where} <- @indexes, do: "drop index skillbook_#{index}_index") ++
      ["create index skillbook_firings_time_index on skillbook_firings (fire_at)"]
  end
end
