defmodule Skillbook.SQL.Migrations.V10 do
  @moduledoc false
  # Gives tasks visibility labels, and tasks and runs of workflows numbers that do not count rows.
  #
  # Labels of a task are those of its segment of the search index, as for the documents of vaults.
  # The numbers are shown to models and people; the ids of rows, which count the rows of all
  # profiles, are used only inside the database.

  # Without `@behaviour`, like V1.
  def up(_dialect) do
    [
      "alter table skillbook_tasks add column number bigint",
      # Existing tasks and runs keep their ids, because people may have noted them.
      "update skillbook_tasks set number = id",
      "create unique index skillbook_tasks_number_index on skillbook_tasks (number)",
      # Existing tasks have no labels. A task without a segment is hidden from everybody.
      "alter table skillbook_tasks add column segment_id bigint",
      """
      insert into skillbook_search_segments (kind, scope, labels, documents)
      values ('task', '', '[]', 0) on conflict (kind, scope, labels) do nothing
      """,
      """
      update skillbook_tasks set segment_id = (select s.id from skillbook_search_segments s
        where s.kind = 'task' and s.scope = '' and s.labels = '[]')
      """,
      "create index skillbook_tasks_segment_index on skillbook_tasks (segment_id)",
      "alter table skillbook_runs add column number bigint",
      "update skillbook_runs set number = id",
      "create unique index skillbook_runs_number_index on skillbook_runs (number)",
      # The newest runs of each workflow and profile are kept.
      "drop index skillbook_runs_name_index",
      "create index skillbook_runs_name_index on skillbook_runs (name, profile, id)"
    ]
  end

  # Without labels everybody would see these tasks, so they are deleted.
  def down(_dialect) do
    labelled =
      "select s.id from skillbook_search_segments s where s.kind = 'task' and s.labels <> '[]'"

    deleted =
      "select t.id from skillbook_tasks t where t.segment_id is null or " <>
        "t.segment_id in (#{labelled})"

    [
      "update skillbook_tasks set parent_id = null where parent_id in (#{deleted})",
      "delete from skillbook_tasks where id in (#{deleted})",
      "delete from skillbook_search_segments where id in (#{labelled})",
      "drop index skillbook_tasks_number_index",
      "drop index skillbook_tasks_segment_index",
      "drop index skillbook_runs_number_index",
      "drop index skillbook_runs_name_index",
      "create index skillbook_runs_name_index on skillbook_runs (name, id)",
      "alter table skillbook_tasks drop column number",
      "alter table skillbook_tasks drop column segment_id",
      "alter table skillbook_runs drop column number"
    ]
  end
end
