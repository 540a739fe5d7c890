defmodule Skillbook.Handlers.Tasks.Update do
  @moduledoc false
  # `tasks.update`: changes fields of a task and reports the changes.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.SQL.Tenants
  alias Skillbook.{Context, FlagError, Flags, NotFoundError, Result, SQL}

  @fields [
    {"title", :title},
    {"description", :description},
    {"status", :status},
    {"priority", :priority},
    {"assignee", :assignee},
    {"due", :due_date},
    {"parent", :parent_id},
    {"tags", :tags}
  ]
  @names Enum.map(@fields, &elem(&1, 0))
  @changes @names ++ ~w(add-tags remove-tags clear)

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Task.cast_id(flags, "id"),
         {:ok, flags} <- Task.cast_id(flags, "parent"),
         :ok <- Flags.require_any(flags, @changes),
         :ok <- check_conflicts(flags) do
      flags = Map.replace(flags, "assignee", Task.assignee(flags["assignee"], context))

      sql
      |> Tenants.own(context.profile)
      |> SQL.transaction(fn sql -> update(sql, flags, context) end)
    end
  end

  defp check_conflicts(flags) do
    cleared = Map.get(flags, "clear", [])
    both = for name <- @names, name in cleared, Map.has_key?(flags, name), do: name

    cond do
      both != [] ->
        FlagError.conflict(both ++ ["clear"], "a field is either set or cleared, not both")

      Map.has_key?(flags, "tags") and
          (Map.has_key?(flags, "add-tags") or Map.has_key?(flags, "remove-tags")) ->
        FlagError.conflict(
          ["tags" | Enum.filter(["add-tags", "remove-tags"], &Map.has_key?(flags, &1))],
          "--tags replaces all tags"
        )

      true ->
        :ok
    end
  end

  defp update(sql, flags, context) do
    today = DateTime.to_date(context.now)

    with {:ok, scope} <- Table.scope(sql, context.profile),
         {:ok, task} <- Table.fetch(sql, scope, flags["id"]),
         :ok <- check_not_deleted(task),
         :ok <- Task.check_owned(task, context.profile),
         :ok <- Table.check_parent(sql, scope, task.id, flags["parent"]) do
      changed = apply_flags(task, flags)

      case changes(task, changed) do
        [] ->
          {:ok, Result.ok("Nothing changed: #{Task.line(task, today)}", data: task)}

        changes ->
          changed = %{changed | updated_at: DateTime.truncate(context.now, :second)}
          write(sql, scope, task, changed, changes, today)
      end
    end
  end

  defp check_not_deleted(%{archived_at: nil}), do: :ok

  defp check_not_deleted(task) do
    {:error,
     %NotFoundError{
       kind: "task",
       id: Task.reference(task),
       find: "tasks.search",
       deleted_at: task.archived_at
     }}
  end

  defp write(sql, scope, task, changed, changes, today) do
    finished? = Task.open?(task) and not Task.open?(changed)

    with {:ok, changed} <- Table.update(sql, scope, changed),
         {:ok, note} <- open_children_note(sql, scope, changed, finished?) do
      text = "Updated #{Task.line(changed, today)}\n#{Enum.join(changes, "\n")}#{note}"
      {:ok, Result.ok(text, data: changed, effects: [:task_updated])}
    end
  end

  defp open_children_note(_sql, _scope, _task, false), do: {:ok, ""}
  defp open_children_note(sql, scope, task, true), do: Table.open_children_note(sql, scope, task)

  defp apply_flags(task, flags) do
    cleared = Map.get(flags, "clear", [])

    task =
      Enum.reduce(@fields, task, fn {name, field}, task ->
        cond do
          name in cleared -> Map.replace!(task, field, if(field == :tags, do: []))
          Map.has_key?(flags, name) -> Map.replace!(task, field, flags[name])
          true -> task
        end
      end)

    tags =
      Table.reject_tags(task.tags, Map.get(flags, "remove-tags", [])) ++
        Map.get(flags, "add-tags", [])

    %{task | tags: Table.normalize_tags(tags)}
  end

  defp changes(before, later) do
    for {name, field} <- @fields,
        {old, new} = {Map.fetch!(before, field), Map.fetch!(later, field)},
        old != new,
        do: "  #{name}: #{show(name, old)} -> #{show(name, new)}"
  end

  defp show(_, empty) when empty in [nil, []], do: "none"
  defp show("parent", id), do: Task.reference(id)
  defp show("tags", tags), do: Enum.join(tags, ", ")
  # The model has just written the text, so its length is enough.
  defp show("description", text), do: "#{String.length(text)} characters"
  defp show(_, value), do: to_string(value)
end
