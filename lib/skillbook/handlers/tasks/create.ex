defmodule Skillbook.Handlers.Tasks.Create do
  @moduledoc false
  # `tasks.create`: adds a task.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.{Context, Result, SQL}

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Task.cast_id(flags, "parent"),
         {:ok, task} <- insert(sql, task(flags, context)) do
      line = Task.line(task, DateTime.to_date(context.now))
      {:ok, Result.ok("Created #{line}", data: task, effects: [:task_created])}
    end
  end

  defp insert(sql, task) do
    SQL.transaction(sql, fn sql ->
      with :ok <- Table.check_parent(sql, nil, task.parent_id), do: Table.insert(sql, task)
    end)
  end

  defp task(flags, context) do
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
      created_by: context.profile.id,
      created_at: now,
      updated_at: now
    }
  end
end
