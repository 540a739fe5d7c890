defmodule Skillbook.Handlers.Workflow.List do
  @moduledoc false
  # `workflow.list`: lists workflows with their schedules and next runs.

  @behaviour Skillbook.Handler

  alias Skillbook.Support.Count
  alias Skillbook.Workflow.Pages
  alias Skillbook.Scheduler.Job
  alias Skillbook.{Book, Result, Schedule, View}

  @impl true
  def execute(flags, context) do
    workflows =
      for entry <- View.entries(context.view, kind: :command),
          Pages.workflow?(entry),
          flags["domain"] in [nil, entry.domain],
          do: workflow(entry, context)

    {lines, data} = Enum.unzip(workflows)
    {:ok, Result.ok(text(lines, flags["domain"]), data: data)}
  end

  defp text(lines, domain) do
    scope = if domain, do: " in the domain #{domain}", else: ""

    if lines == [],
      do: "No workflows#{scope}; `workflow.build` writes one",
      else: Enum.join(["#{Count.text(length(lines), "workflow")}#{scope}:" | lines], "\n")
  end

  defp workflow(%{schedule: nil} = entry, _context),
    do: {"#{entry.name} - #{entry.description}", data(entry, nil)}

  defp workflow(entry, context) do
    text = [entry.schedule, entry.timezone] |> Enum.filter(& &1) |> Enum.join(" ")
    {run, next} = if off?(entry, context), do: {", off", nil}, else: next(entry, context.now)
    {"#{entry.name} [#{text}#{run}] - #{entry.description}", data(entry, next)}
  end

  defp next(entry, now) do
    schedule = Schedule.parse!(entry.schedule, entry.timezone || "UTC")
    next = Schedule.next(schedule, now)
    {if(next, do: ", next #{Schedule.local(schedule, next)}", else: ""), next}
  end

  defp off?(_entry, %{book: nil}), do: false
  defp off?(entry, %{book: book}), do: not Job.enabled?(Book.fetch!(book), entry)

  defp data(entry, next),
    do: entry |> Map.take([:name, :description, :schedule, :timezone]) |> Map.put(:next_run, next)
end
