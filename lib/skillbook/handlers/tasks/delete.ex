defmodule Skillbook.Handlers.Tasks.Delete do
  @moduledoc false
  # `tasks.delete`: marks a task as deleted.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.SQL.Tenants
  alias Skillbook.{Context, Result, SQL}

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, %{"id" => id}} <- Task.cast_id(flags, "id") do
      sql
      |> Tenants.own(context.profile)
      |> SQL.transaction(fn sql ->
        with {:ok, scope} <- Table.scope(sql, context.profile),
             {:ok, task} <- Table.fetch(sql, scope, id),
             :ok <- Task.check_owned(task, context.profile),
             do: archive(sql, scope, task, DateTime.truncate(context.now, :second))
      end)
    end
  end

  defp archive(sql, scope, %{archived_at: nil} = task, now) do
    with {:ok, task} <- Table.update(sql, scope, %{task | archived_at: now, updated_at: now}),
         {:ok, note} <- Table.open_children_note(sql, scope, task) do
      text = "Deleted #{Task.reference(task)} #{task.title}" <> note
      {:ok, Result.ok(text, data: task, effects: [:task_deleted])}
    end
  end

  defp archive(_sql, _scope, task, _now) do
    text =
      "#{Task.reference(task)} was already deleted, at #{DateTime.to_iso8601(task.archived_at)}"

    {:ok, Result.ok(text, data: task)}
  end
end
