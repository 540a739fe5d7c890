defmodule Skillbook.SQL.Migrations.V4 do
  @moduledoc false
  # Creates the table of firings: a row per scheduled entry and time, so that each fires once.

  # Without `@behaviour`, like V1.
  def up(_dialect) do
    [
      # `lease_until` is in milliseconds, because a lease may be shorter than a second. `holder`
      # is the running book that has the lease, `duration` is in microseconds.
      """
      create table skillbook_firings (
        name text not null,
        fire_at text not null,
        status text not null,
        profile text not null,
        node text not null,
        holder text not null,
        attempts bigint not null,
        lease_until bigint,
        started_at text not null,
        finished_at text,
        duration bigint,
        text text not null,
        primary key (name, fire_at)
      )
      """,
      # At most one running firing per name.
      "create unique index skillbook_firings_running_index on skillbook_firings (name) where " <>
        "status = 'running'",
      "create index skillbook_firings_time_index on skillbook_firings (fire_at)"
    ]
  end

  def down(_dialect), do: ["drop table skillbook_firings"]
end
