defmodule Skillbook.SQL.Migrations.V2 do
  @moduledoc false

  def up(_dialect) do
    [
      # `bucket` is an hour (2026-03-01T09) or a day (2026-03-01) in UTC; `duration` is microseconds.
      """
      create table skillbook_usage (
        bucket text not null,
        name text not null,
        profile text not null,
        event text not null,
        count bigint not null,
        duration bigint not null,
        primary key (bucket, name, profile, event)
      )
      """
    ]
  end

  def down(_dialect), do: ["drop table skillbook_usage"]
end
