defmodule Skillbook.SQL.Migrations.V19 do
  @moduledoc false
  # The tenant of each row that somebody's writing made: a name, or an empty text for what is
  # common to all tenants. All rows that are there are common.

  import Skillbook.SQL.Migrations.Types, only: [text: 1]

  @behaviour Skillbook.SQL.Migrations

  # Each table with the columns that follow the tenant in its index.
  @tables [
    {"entries", "name"},
    {"tasks", "id"},
    {"memories", "owner, category"},
    {"runs", "profile, id"},
    {"approvals", "profile, id"},
    {"conversations", "profile, id"},
    {"connections", "profile"},
    {"sign_ins", "profile, expires_at"},
    {"operations", "revision"},
    {"firings", "fire_at"}
  ]

  # Its tenant is a part of the primary key. SQLite cannot change a key, so it is made again.
  @usage ~w(bucket name profile event count duration)

  @impl true
  def up(dialect) do
    text = text(dialect)

    for({table, _} <- @tables, do: add(table, text)) ++
      for({table, columns} <- @tables, do: index(table, columns)) ++
      [
        add("search_segments", text),
        "drop index skillbook_search_segments_index",
        "create unique index skillbook_search_segments_index on skillbook_search_segments " <>
          "(tenant, kind, scope, labels)"
      ] ++
      again("usage", usage(text, "tenant #{text} not null,", "tenant, "), @usage)
  end

  # What belongs to a tenant must not become common, so it is deleted.
  @impl true
  def down(dialect) do
    text = text(dialect)
    own = "select id from skillbook_search_segments where tenant <> ''"

    [
      "update skillbook_tasks set parent_id = null where parent_id in " <>
        "(select id from skillbook_tasks where tenant <> '')",
      "delete from skillbook_documents where segment_id in (#{own})"
    ] ++
      for({table, _} <- @tables, do: "delete from skillbook_#{table} where tenant <> ''") ++
      [
        "delete from skillbook_search_segments where tenant <> ''",
        "drop index skillbook_search_segments_index",
        "create unique index skillbook_search_segments_index on skillbook_search_segments " <>
          "(kind, scope, labels)",
        "alter table skillbook_search_segments drop column tenant"
      ] ++
      Enum.flat_map(@tables, fn {table, _columns} ->
        [
          "drop index skillbook_#{table}_tenant_index",
          "alter table skillbook_#{table} drop column tenant"
        ]
      end) ++
      back("usage", usage(text, "", ""), @usage)
  end

  defp add(table, text),
    do: "alter table skillbook_#{table} add column tenant #{text} not null default ''"

  defp index(table, columns) do
    "create index skillbook_#{table}_tenant_index on skillbook_#{table} (tenant, #{columns})"
  end

  defp again(table, create, columns) do
    columns = Enum.join(columns, ", ")

    [
      "alter table skillbook_#{table} rename to skillbook_#{table}_before",
      create,
      "insert into skillbook_#{table} (tenant, #{columns}) " <>
        "select '', #{columns} from skillbook_#{table}_before",
      "drop table skillbook_#{table}_before"
    ]
  end

  defp back(table, create, columns) do
    columns = Enum.join(columns, ", ")

    [
      "alter table skillbook_#{table} rename to skillbook_#{table}_before",
      create,
      "insert into skillbook_#{table} (#{columns}) " <>
        "select #{columns} from skillbook_#{table}_before where tenant = ''",
      "drop table skillbook_#{table}_before"
    ]
  end

  defp usage(text, tenant, key) do
    """
    create table skillbook_usage (
      #{tenant}
      bucket #{text} not null,
      name #{text} not null,
      profile #{text} not null,
      event #{text} not null,
      count bigint not null,
      duration bigint not null,
      primary key (#{key}bucket, name, profile, event)
    )
    """
  end
end
