defmodule Skillbook.SQL.Migrations.V1 do
  @moduledoc false
  # Creates the tables of the built-in commands `tasks.…` and `memory.…`.
  #
  # Days and times are text in both dialects: ISO 8601 in UTC with whole seconds. Texts of one
  # length sort like times, and each query is written once.

  import Skillbook.SQL.Migrations.Types, only: [id: 1]

  # The searched columns and their weights.
  @searched [
    {"skillbook_tasks", [{"title", 4}, {"description", 1}]},
    {"skillbook_memories", [{"content", 4}, {"category", 1}, {"tags", 2}]}
  ]

  # A callback of `Skillbook.SQL.Migrations`. No `@behaviour`, because that module lists this one,
  # and the cycle would compile both twice.
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
      "create index skillbook_tasks_status_index on skillbook_tasks (status, due_date) where " <>
        "archived_at is null",
      "create index skillbook_tasks_parent_index on skillbook_tasks (parent_id)",
      # `key` is the tag in lowercase. A tag is found in any case and displayed as first written.
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
    ] ++ search(dialect)
  end

  def down(dialect) do
    tables = [
      "drop table skillbook_task_tags",
      "drop table skillbook_tasks",
      "drop table skillbook_memories"
    ]

    # The index of SQLite is a separate table.
    fts = for {table, _} <- @searched, dialect == :sqlite, do: "drop table #{table}_fts"
    tables ++ fts
  end

  @doc "The statements that make tasks and memories searchable up to V8: FTS5 and tsvector."
  def search(:sqlite) do
    Enum.flat_map(@searched, fn {table, columns} ->
      names = Enum.map_join(columns, ", ", &elem(&1, 0))
      weights = Enum.map_join(columns, ", ", &elem(&1, 1))
      values = fn row -> Enum.map_join(columns, ", ", fn {name, _} -> "#{row}.#{name}" end) end
      insert = "insert into #{table}_fts (rowid, #{names}) values (new.id, #{values.("new")});"

      delete =
        "insert into #{table}_fts (#{table}_fts, rowid, #{names}) values ('delete', old.id, " <>
          "#{values.("old")});"

      [
        "create virtual table #{table}_fts using fts5 " <>
          "(#{names}, content = '#{table}', content_rowid = 'id', tokenize = 'porter " <>
          "unicode61 remove_diacritics 2')",
        "insert into #{table}_fts (#{table}_fts, rank) values ('rank', 'bm25(#{weights})')",
        "create trigger #{table}_insert after insert on #{table} begin #{insert} end",
        "create trigger #{table}_delete after delete on #{table} begin #{delete} end",
        "create trigger #{table}_update after update on #{table} begin #{delete} #{insert} end"
      ]
    end)
  end

  # PostgreSQL has four classes of weights.
  def search(:postgres) do
    Enum.flat_map(@searched, fn {table, columns} ->
      vectors =
        columns
        |> Enum.sort_by(fn {_, weight} -> -weight end)
        |> Enum.zip(~w(A B C D))
        |> Enum.map_join(" || ", fn {{name, _}, class} ->
          "setweight(to_tsvector('english', coalesce(#{name}, '')), '#{class}')"
        end)

      [
        "alter table #{table} add column search tsvector generated always as (#{vectors}) stored",
        "create index #{table}_search_index on #{table} using gin (search)"
      ]
    end)
  end

  @doc "The statements that undo `search/1`."
  def unsearch(:sqlite) do
    for {table, _} <- @searched,
        thing <- [
          "trigger #{table}_insert",
          "trigger #{table}_delete",
          "trigger #{table}_update",
          "table #{table}_fts"
        ],
        do: "drop #{thing}"
  end

  def unsearch(:postgres),
    do: for({table, _} <- @searched, do: "alter table #{table} drop column search")
end
