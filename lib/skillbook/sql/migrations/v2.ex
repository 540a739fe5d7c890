defmodule Skillbook.SQL.Migrations.V2 do
  @moduledoc false
  # The store: entries that people and agents write, their versions, how skills are used, and settings.
  #
  # Times are text as in V1, lists are JSON. Labels and profiles' ids stand in them sorted and once each.

  # As V1, without saying so that it has the callback.
  def up(dialect) do
    [
      # `scope` is a digest of kind, labels and excluded profiles, on which it depends who sees the entry: so a name that is
      # taken within one was taken by an entry that whoever writes into it sees. The lists themselves are too long for an
      # index of PostgreSQL. `revision` is that of the write which made the row what it is.
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
      "create unique index skillbook_entries_name_index on skillbook_entries (name, scope) where deleted_at is null",
      "create index skillbook_entries_names_index on skillbook_entries (name)",
      "create index skillbook_entries_title_index on skillbook_entries (title)",
      "create index skillbook_entries_revision_index on skillbook_entries (revision)",
      # `action` made this version, `made_by` says whether a user, an agent or an import did, for the profile `author`.
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
      # `bucket` is the beginning of a day or an hour; `duration` is the sum in microseconds.
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
      # The revision is raised by each write to the entries, first of all it does: so writers take turns. The database's
      # id is how nodes find out that they share it.
      "insert into skillbook_settings (key, value) values ('revision', '0'), ('database', #{random(dialect)})"
    ]
  end

  defp id(:sqlite), do: "integer primary key autoincrement"
  defp id(:postgres), do: "bigint generated always as identity primary key"

  defp random(:sqlite), do: "lower(hex(randomblob(16)))"
  defp random(:postgres), do: "replace(cast(gen_random_uuid() as text), '-', '')"
end
