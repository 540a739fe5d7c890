defmodule Skillbook.Handlers.Tasks.Create do
  @moduledoc false
  # `tasks.create`: adds a task.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.SQL.Tenants
  alias Skillbook.{Context, Profile, Result, SQL, Store}

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Task.cast_id(flags, "parent"),
         labels = Enum.uniq(Map.get(flags, "labels", []) ++ context.profile.labels),
         :ok <- Store.check_held_labels(context.view, labels),
         task = task(flags, Enum.sort(labels), context),
         {:ok, task} <- insert(sql, context.profile, task) do
      line = Task.line(task, DateTime.to_date(context.now))
      {:ok, Result.ok("Created #{line}", data: task, effects: [:task_created])}
    end
  end

  defp insert(sql, profile, task) do
    sql
    |> Tenants.own(profile)
    |> SQL.transaction(fn sql ->
      with {:ok, scope} <- Table.scope(sql, profile),
           :ok <- Table.check_parent(sql, scope, nil, task.parent_id),
           do: Table.insert(sql, task)
    end)
  end

  defp task(flags, labels, context) do
    now = DateTime.truncate(context.now, :second)

    %Task{
      title: flags["title"],
      description: flags["description"],
      status: flags["status"],
      priority: flags["priority"],
      assignee: Task.assignee(flags["assignee"], context),
      due_date: flags["due"],
      parent_id: flags["parent"],
      tags: Table.normalize_tags(flags["tags"] || []),
      labels: labels,
      tenant: Profile.home(context.profile),
      created_by: context.profile.id,
      created_at: now,
      updated_at: now
    }
  end
end
