defmodule Skillbook.Handlers.Tasks.Search do
  @moduledoc false
  # `tasks.search`: searches and filters tasks.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Tasks.{Table, Task}
  alias Skillbook.Search.Query
  alias Skillbook.Support.Count
  alias Skillbook.{Context, FlagError, Flags, Result}

  @filters ~w(query status assignee priority tags due-before due-after overdue)
  @max_limit 100

  @impl true
  def execute(flags, context) do
    today = DateTime.to_date(context.now)

    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.cast(flags, "query", Query.expected(), ~s("some text"), &words/1),
         {:ok, place} <- place(flags["after"], sort(flags)),
         filters = Map.put(filters(flags, context, today), :after, place),
         {:ok, scope} <- Table.scope(sql, context.profile),
         {:ok, tasks, total, next} <- Table.search(sql, scope, filters) do
      data = Count.with_next(%{tasks: tasks, total: total}, next)
      {:ok, Result.ok(text(tasks, total, next, filters), data: data)}
    end
  end

  defp place(nil, _sort), do: {:ok, nil}

  # A rank changes with each write, so no page could begin after one.
  defp place(_place, "relevance"),
    do: FlagError.conflict(["after", "query"], "only a list with --sort has pages")

  defp place(place, sort) do
    with :error <- Task.place(place, sort) do
      expected = "the place that the last line of a list with the same --sort names"
      FlagError.invalid("after", place, expected, example(sort))
    end
  end

  defp example(sort) when sort in ["due_date", "priority"], do: "2026-03-01/high/T-12"
  defp example(_time), do: "2026-03-01T09:00:00Z/T-12"

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
      sort: sort(flags),
      limit: flags["limit"]
    }
  end

  defp sort(flags),
    do: Map.get(flags, "sort", if(flags["query"], do: "relevance", else: "due_date"))

  defp text([], _, _, %{after: nil} = filters), do: "No tasks found: #{describe(filters)}"
  defp text([], _, _, filters), do: "No more tasks: #{describe(filters)}"

  defp text(tasks, total, next, filters) do
    sort = String.replace(filters.sort, "_", " ")
    count = if total, do: Count.text(total, "task"), else: "Further tasks"
    lines = Enum.map(tasks, &Task.line(&1, filters.today))
    more = Count.more(total && total - length(tasks), @max_limit, next)
    Enum.join(["#{count}, by #{sort}: #{describe(filters)}" | lines] ++ more, "\n")
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
