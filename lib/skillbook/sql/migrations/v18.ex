defmodule Skillbook.SQL.Migrations.V18 do
  @moduledoc false
  # Adds what operators do to schedules and circuit breakers: a row for each, with its author.
  #
  # `record` is that of a firing, and `profile` that of a reset breaker, null for all. A pause is
  # `active` until the schedule is resumed. Each row raises the setting `operations`, by which
  # nodes see it.

  import Skillbook.SQL.Migrations.Types, only: [text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    text = text(dialect)

    [
      """
      create table skillbook_operations (
        revision bigint primary key,
        action #{text} not null,
        skill #{text} not null,
        record bigint not null,
        profile #{text},
        at #{text} not null,
        made_by #{text} not null,
        reason #{text},
        active bigint not null
      )
      """,
      "create index skillbook_operations_skill_index on skillbook_operations (skill, record)",
      "insert into skillbook_settings (key, value) values ('operations', '0')"
    ]
  end

  def down(_dialect) do
    [
      "delete from skillbook_settings where key = 'operations'",
      "drop table skillbook_operations"
    ]
  end
end
