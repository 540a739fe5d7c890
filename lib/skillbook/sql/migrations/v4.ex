defmodule Skillbook.SQL.Migrations.V4 do
  @moduledoc false
  # What fires by its schedule: a row for each entry and time, which is what makes it fire once.

  # As V1, without saying so that it has the callback.
  def up(_dialect) do
    [
      # A lease ends at a time in milliseconds, since it is shorter than what the texts of times can tell apart. `holder` is
      # the running book that has it, `duration` is in microseconds.
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
      # One at a time of each name.
      "create unique index skillbook_firings_running_index on skillbook_firings (name) where status = 'running'",
      "create index skillbook_firings_time_index on skillbook_firings (fire_at)"
    ]
  end

  def down(_dialect), do: ["drop table skillbook_firings"]
end
