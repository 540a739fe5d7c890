defmodule Skillbook.SQL.Migrations.V2 do
  @moduledoc false
  # Creates the tables of the store: entries, their versions, usage counts and settings.
  #
  # Times are text as in V1, lists are JSON. Labels and profile ids are sorted and unique.

  import Skillbook.SQL.Migrations.Types, only: [id: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    [
      # `scope` is a digest of kind, labels and excluded profiles, which decide who sees the
      # entry. So an entry that conflicts within a scope is visible to the writer. The lists
      # themselves are too long for an index of PostgreSQL. `revision` is the revision of the
      # row's last write.
      """
      create table skillbook_entries (
        id #{id(dialect)},
        name text not null,
        scope text not null,
        kind text not null,
        title text not null,
        description text not null,
        content text not null,
        tags text not null,
        labels text not null,
        include_in_prompt bigint not null,
        proactive_for text not null,
        excluded_for text not null,
        source text not null,
        author text not null,
        version bigint not null,
        enabled bigint not null,
        created_at text not null,
        updated_at text not null,
        deleted_at text,
        hash text not null,
        attachments text not null,
        revision bigint not null
      )
      """,
      "create unique index skillbook_entries_name_index on skillbook_entries (name, scope) " <>
        "where deleted_at is null",
      "create index skillbook_entries_names_index on skillbook_entries (name)",
      "create index skillbook_entries_title_index on skillbook_entries (title)",
      "create index skillbook_entries_revision_index on skillbook_entries (revision)",
      # `action` created the version, `made_by` is user, agent or import, `author` is the profile.
      """
      create table skillbook_entry_versions (
        entry_id bigint not null references skillbook_entries (id) on delete cascade,
        version bigint not null,
        action text not null,
        made_by text not null,
        author text not null,
        at text not null,
        kind text not null,
        title text not null,
        description text not null,
        content text not null,
        tags text not null,
        labels text not null,
        include_in_prompt bigint not null,
        proactive_for text not null,
        excluded_for text not null,
        source text not null,
        enabled bigint not null,
        hash text not null,
        attachments text not null,
        primary key (entry_id, version)
      )
      """,
      # `bucket` is an hour (2026-03-01T09) or a day (2026-03-01) in UTC; `duration` is the sum in
      # microseconds.
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
      """,
      "create table skillbook_settings (key text primary key, value text not null)",
      # Each write to the entries first raises the revision, so writers run one after another.
      # Nodes recognize a shared database by its id.
      "insert into skillbook_settings (key, value) values ('revision', '0'), ('database', " <>
        "#{random(dialect)})"
    ]
  end

  def down(_dialect) do
    for table <- ~w(entry_versions entries usage settings), do: "drop table skillbook_#{table}"
  end

  defp random(:sqlite), do: "lower(hex(randomblob(16)))"
  defp random(:postgres), do: "replace(cast(gen_random_uuid() as text), '-', '')"
end
