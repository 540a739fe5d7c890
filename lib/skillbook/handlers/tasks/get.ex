defmodule Skillbook.Handlers.Tasks.Get do
  @moduledoc false
  # `tasks.get`: shows a task with its parent and children.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.{Context, Result}

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, %{"id" => id}} <- Task.cast_id(flags, "id"),
         {:ok, scope} <- Table.scope(sql, context.profile),
         {:ok, task} <- Table.fetch(sql, scope, id),
         {:ok, parent} <- parent(sql, scope, task),
         {:ok, children} <- Table.children(sql, scope, id) do
      text = text(task, parent, children, DateTime.to_date(context.now))
      {:ok, Result.ok(text, data: %{task: task, parent: parent, children: children})}
    end
  end

  defp parent(_sql, _scope, %{parent_id: nil}), do: {:ok, nil}
  defp parent(sql, scope, %{parent_id: id}), do: Table.fetch(sql, scope, id)

  defp text(task, parent, children, today) do
    facts = [
      {"status", task.status},
      {"priority", task.priority},
      {"due", task.due_date && Task.due(task, today)},
      {"assignee", task.assignee},
      {"tags", if(task.tags != [], do: Enum.join(task.tags, ", "))},
      {"labels", if(task.labels != [], do: Enum.join(task.labels, ", "))},
      {"parent", parent && Task.line(parent, today)},
      {"created", "#{DateTime.to_iso8601(task.created_at)} by #{task.created_by}"},
      {"updated", DateTime.to_iso8601(task.updated_at)},
      {"deleted", task.archived_at && DateTime.to_iso8601(task.archived_at)}
    ]

    Enum.join(
      ["#{Task.reference(task)} #{task.title}"] ++
        for({name, fact} <- facts, fact, do: "#{name}: #{fact}") ++
        if(children == [],
          do: [],
          else: ["children:" | Enum.map(children, &("  " <> Task.line(&1, today)))]
        ) ++
        if(task.description, do: ["", task.description], else: []),
      "\n"
    )
  end
end
