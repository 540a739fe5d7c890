defmodule Skillbook.SQL.Migrations.V6 do
  @moduledoc false
  # Adds the deadline of a workflow run, and the report of the agent that ran it.

  def up(_dialect) do
    [
      # Milliseconds since 1970; null in rows of an older version.
      "alter table skillbook_runs add column deadline bigint",
      "alter table skillbook_runs add column report text"
    ]
  end

  def down(_dialect),
    do: for(column <- ~w(report deadline), do: "alter table skillbook_runs drop column #{column}")
end
