defmodule Skillbook.SQL.Migrations.V6 do
  @moduledoc false
  # When runs of workflows are over at the latest, and what an agent reported that carried one out.

  def up(_dialect) do
    [
      # Milliseconds since 1970. A row without it was written by an older version.
      "alter table skillbook_runs add column deadline bigint",
      "alter table skillbook_runs add column report text"
    ]
  end

  def down(_dialect),
    do: for(column <- ~w(report deadline), do: "alter table skillbook_runs drop column #{column}")
end
