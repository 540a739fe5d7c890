defmodule Skillbook.Handlers.Tasks.Search do
  @moduledoc false
  # `tasks.search`: searches and filters tasks.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.Search.Query
  alias Skillbook.Support.Count
  alias Skillbook.{Context, Flags, Result}

  @filters ~w(query status assignee priority tags due-before due-after overdue)
  @max_limit 100

  @impl true
  def execute(flags, context) do
    today = DateTime.to_date(context.now)

    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.cast(flags, "query", Query.expected(), ~s("some text"), &words/1),
         filters = filters(flags, context, today),
         {:ok, scope} <- Table.scope(sql, context.profile),
         {:ok, tasks, total} <- Table.search(sql, scope, filters) do
      {:ok, Result.ok(text(tasks, total, filters), data: %{tasks: tasks, total: total})}
    end
  end

  defp words(text) do
    with {:ok, clauses} <- Query.parse(text, :begun), do: {:ok, {text, clauses}}
  end

  defp filters(flags, context, today) do
    {query, clauses} = Map.get(flags, "query", {nil, nil})
    filtered? = Enum.any?(@filters, &Map.has_key?(flags, &1))

    %{
      query: query,
      clauses: clauses,
      statuses: Map.get(flags, "status", Task.open_statuses()),
      priorities: flags["priority"],
      tags: flags["tags"],
      assignee: Task.assignee(flags["assignee"], context),
      # Without any filter: the caller's own tasks.
      mine: if(filtered?, do: nil, else: context.profile.id),
      overdue: flags["overdue"] == true,
      due_before: flags["due-before"],
      due_after: flags["due-after"],
      today: today,
      sort: Map.get(flags, "sort", if(query, do: "relevance", else: "due_date")),
      limit: flags["limit"]
    }
  end

  defp text([], _, filters), do: "No tasks found: #{describe(filters)}"

  defp text(tasks, total, filters) do
    sort = String.replace(filters.sort, "_", " ")
    head = "#{Count.text(total, "task")}, by #{sort}: #{describe(filters)}"
    lines = Enum.map(tasks, &Task.line(&1, filters.today))
    Enum.join([head | lines] ++ Count.more(total - length(tasks), @max_limit), "\n")
  end

  defp describe(filters) do
    [
      filters.query && "text #{inspect(filters.query, printable_limit: 80)}",
      "status #{either(filters.statuses)}",
      filters.priorities && "priority #{either(filters.priorities)}",
      filters.assignee && "assigned to #{filters.assignee}",
      filters.mine && "assigned to #{filters.mine}, or to nobody and created by #{filters.mine}",
      filters.tags && "tagged #{Enum.join(filters.tags, " and ")}",
      filters.overdue && "due before #{filters.today}",
      filters.due_before && "due up to #{filters.due_before}",
      filters.due_after && "due from #{filters.due_after} on"
    ]
    |> Enum.filter(& &1)
    |> Enum.join("; ")
  end

  defp either([single]), do: single
  defp either(values), do: Enum.join(Enum.drop(values, -1), ", ") <> " or " <> List.last(values)
end
