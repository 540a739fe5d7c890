defmodule Skillbook.SQL.Migrations.V7 do
  @moduledoc false
  # Adds schedules to the entries of the store, and separates their firings from those of files.

  # Without `@behaviour`, like V1.
  def up(dialect) do
    # `writers` are the ids of the profiles that wrote the entry, the creator first, as
    # JSON.
    columns =
      for table <- ~w(entries entry_versions),
          column <- ["schedule text", "timezone text", "writers text not null default '[]'"],
          do: "alter table skillbook_#{table} add column #{column}"

    columns ++
      [
        # Existing entries have no schedule. All authors of an entry become writers of all its
        # versions.
        """
        update skillbook_entries set writers = coalesce((select #{list(dialect)} from
          (select author, min(version) as first from skillbook_entry_versions where \
        entry_id = skillbook_entries.id
            group by author order by min(version)) as authors), '[]')
        """,
        """
        update skillbook_entry_versions set writers =
          (select writers from skillbook_entries where id = skillbook_entry_versions.entry_id)
        """,
        "create index skillbook_entries_schedule_index on skillbook_entries (id) where " <>
          "schedule is not null"
      ] ++ firings(["record bigint not null default 0"], "record", "name, record")
  end

  # Firings of the store's entries are deleted, because the old key cannot hold them.
  def down(_dialect) do
    [
      "delete from skillbook_firings where record <> 0",
      "drop index skillbook_entries_schedule_index"
    ] ++
      firings([], nil, "name") ++
      for(
        table <- ~w(entries entry_versions),
        column <- ~w(schedule timezone writers),
        do: "alter table skillbook_#{table} drop column #{column}"
      )
  end

  # SQLite cannot change a primary key, so the table is copied. `record` is the id of the store's
  # entry, since entries may share a name; it is 0 for files.
  defp firings(more, added, key) do
    columns =
      ["name text not null"] ++
        more ++
        [
          "fire_at text not null",
          "status text not null",
          "profile text not null",
          "node text not null",
          "holder text not null",
          "attempts bigint not null",
          "lease_until bigint",
          "started_at text not null",
          "finished_at text",
          "duration bigint",
          "text text not null"
        ]

    kept = for column <- columns, [name | _] = String.split(column), name != added, do: name

    kept = Enum.join(kept, ", ")

    [
      "alter table skillbook_firings rename to skillbook_firings_before",
      "create table skillbook_firings (#{Enum.join(columns, ", ")}, primary key (#{key}, " <>
        "fire_at))",
      "insert into skillbook_firings (#{kept}) select #{kept} from skillbook_firings_before",
      "drop table skillbook_firings_before",
      "create unique index skillbook_firings_running_index on skillbook_firings (#{key}) " <>
        "where status = 'running'",
      "create index skillbook_firings_time_index on skillbook_firings (fire_at)"
    ]
  end

  defp list(:sqlite), do: "json_group_array(author)"
  defp list(:postgres), do: "cast(json_agg(author order by first) as text)"
end
