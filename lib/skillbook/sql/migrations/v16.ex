defmodule Skillbook.SQL.Migrations.V16 do
  @moduledoc false
  # Adds the conversations of agents, for people to look at: a row for each run, and one for each
  # message or result of a command, as JSON.
  #
  # `run` is the random id of the run. A run that goes on after an approval has the same row.

  import Skillbook.SQL.Migrations.Types, only: [id: 1, text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    {text, id} = {text(dialect), id(dialect)}

    [
      """
      create table skillbook_conversations (
        id #{id},
        run #{text} not null,
        profile #{text} not null,
        depth bigint not null,
        title #{text} not null,
        status #{text} not null,
        turns bigint not null,
        started_at #{text} not null,
        ended_at #{text}
      )
      """,
      "create unique index skillbook_conversations_run_index on skillbook_conversations (run)",
      "create index skillbook_conversations_time_index on skillbook_conversations (started_at)",
      "create index skillbook_conversations_profile_index " <>
        "on skillbook_conversations (profile, id)",
      """
      create table skillbook_conversation_parts (
        id #{id},
        run #{text} not null,
        kind #{text} not null,
        at #{text} not null,
        content #{text} not null
      )
      """,
      "create index skillbook_conversation_parts_run_index " <>
        "on skillbook_conversation_parts (run, id)"
    ]
  end

  def down(_dialect),
    do: ["drop table skillbook_conversation_parts", "drop table skillbook_conversations"]
end
