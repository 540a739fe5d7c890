defmodule Skillbook.SQL.Migrations.V3 do
  @moduledoc false
  # Creates the tables of workflow runs and their steps.

  import Skillbook.SQL.Migrations.Types, only: [id: 1]

  def up(dialect) do
    [
      # `status` is running, done, stopped, steps or time. `duration` is in milliseconds; it is
      # null while the run is in progress, and if the virtual machine ended first. `steps` is the
      # number of steps on the page.
      """
      create table skillbook_runs (
        id #{id(dialect)},
        name text not null,
        profile text not null,
        made_by text not null,
        command text not null,
        status text not null,
        steps bigint not null,
        started_at text not null,
        duration bigint
      )
      """,
      "create index skillbook_runs_name_index on skillbook_runs (name, id)",
      # `skill` is the skill that the command ran; null if it is unknown.
      """
      create table skillbook_run_steps (
        run_id bigint not null references skillbook_runs (id) on delete cascade,
        number bigint not null,
        name text,
        skill text,
        command text not null,
        status text not null,
        content text not null,
        duration bigint not null,
        primary key (run_id, number)
      )
      """
    ]
  end

  def down(_dialect), do: for(table <- ~w(run_steps runs), do: "drop table skillbook_#{table}")
end
