defmodule Skillbook.SQL.Migrations.V1 do
  @moduledoc false
  # The tables of the built-in commands `tasks.…` and `memory.…`.
  #
  # Days and times are text, ISO 8601 in UTC with whole seconds, in both dialects: text of one length sorts as time
  # does, and a query is written once.

  alias Skillbook.SQL.FullText

  # It has the callback of `Skillbook.SQL.Migrations` without saying so: that module lists this one, and a circle of
  # modules compiles twice.
  def up(dialect) do
    [
      """
      create table skillbook_tasks (
        id #{id(dialect)},
        title text not null,
        description text,
        status text not null,
        priority text not null,
        assignee text,
        due_date text,
        parent_id bigint references skillbook_tasks (id),
        created_by text not null,
        created_at text not null,
        updated_at text not null,
        archived_at text
      )
      """,
      "create index skillbook_tasks_status_index on skillbook_tasks (status, due_date) where archived_at is null",
      "create index skillbook_tasks_parent_index on skillbook_tasks (parent_id)",
      # `key` is the tag in small letters: a tag is found in any case and shown as it was first written.
      """
      create table skillbook_task_tags (
        task_id bigint not null references skillbook_tasks (id) on delete cascade,
        key text not null,
        tag text not null,
        primary key (task_id, key)
      )
      """,
      "create index skillbook_task_tags_key_index on skillbook_task_tags (key)",
      """
      create table skillbook_memories (
        id #{id(dialect)},
        content text not null,
        category text not null,
        tags text not null,
        owner text not null,
        created_at text not null
      )
      """,
      "create index skillbook_memories_owner_index on skillbook_memories (owner, category)"
    ] ++
      FullText.create(dialect, "skillbook_tasks", [{"title", 4}, {"description", 1}]) ++
      FullText.create(dialect, "skillbook_memories", [{"content", 4}, {"category", 1}, {"tags", 2}])
  end

  def down(dialect) do
    ["drop table skillbook_task_tags", "drop table skillbook_tasks", "drop table skillbook_memories"] ++
      FullText.drop(dialect, "skillbook_tasks") ++ FullText.drop(dialect, "skillbook_memories")
  end

  # Identifiers are handed to models and people, so one that is gone must not come back as another's.
  defp id(:sqlite), do: "integer primary key autoincrement"
  defp id(:postgres), do: "bigint generated always as identity primary key"
end
