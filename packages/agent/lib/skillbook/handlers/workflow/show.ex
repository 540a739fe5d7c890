defmodule Skillbook.Handlers.Workflow.Show do
  @moduledoc false
  # `workflow.show`: shows the steps of a workflow and its last runs, or one run with its results.

  @behaviour Skillbook.Handler

  alias Skillbook.Workflow.Pages
  alias Skillbook.Support.Number
  alias Skillbook.Workflow.Runs
  alias Skillbook.{Context, Flags, NotFoundError, Report, Result, View, Workflow}

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, flags} <- Flags.cast(flags, "run", "a run such as R-1", "R-1", &run_id/1),
         {:ok, entry} <- Pages.fetch(context.view, flags["name"]) do
      if flags["run"],
        do: show_run(entry, flags["run"], context),
        else: show_workflow(entry, flags["runs"], context)
    end
  end

  defp run_id(text) do
    with [_, number] <- is_binary(text) && Regex.run(~r/\A[rR]-(\d{1,18})\z/, text),
         do: {:ok, Number.integer!(number)},
         else: (_ -> :error)
  end

  # A workflow

  defp show_workflow(entry, limit, context) do
    with {:ok, runs} <- runs(entry, limit, context) do
      head = "#{entry.name} - #{entry.description}"
      parts = [head, schedule(entry), steps(entry), last_runs(runs)]
      {:ok, Result.ok(parts |> Enum.reject(&is_nil/1) |> Enum.join("\n"), data: runs)}
    end
  end

  defp schedule(%{schedule: nil}), do: nil

  defp schedule(entry),
    do: "Schedule: #{Enum.join(Enum.reject([entry.schedule, entry.timezone], &is_nil/1), " ")}"

  defp steps(%{handler: handler} = entry) when handler != nil,
    do: "Its handler runs it; its page: get_skill #{entry.name}"

  defp steps(entry) do
    if Workflow.workflow?(entry) do
      case Workflow.lines(entry) do
        {:ok, %{lines: lines, rest: rest}} ->
          rest = if rest == "", do: [], else: ["Then: " <> String.replace(rest, "\n", "\n   ")]
          Enum.join(["Steps:" | lines |> Enum.with_index(1) |> Enum.map(&step/1)] ++ rest, "\n")

        {:error, error} ->
          Exception.message(error)
      end
    else
      "It is a page to follow: get_skill #{entry.name}"
    end
  end

  defp step({{name, line}, number}),
    do: "#{number}#{if name, do: " #{name}"}: #{String.replace(line, "\n", "\n   ")}"

  # Runs are stored only in a database.
  defp runs(_entry, _limit, %Context{sql: nil}), do: {:ok, []}

  defp runs(entry, limit, context),
    do: Runs.list(context.sql, context.profile, entry.name, limit, context.now)

  defp last_runs([]), do: "No runs."
  defp last_runs(runs), do: Enum.join(["Last runs:" | Enum.map(runs, &run_line/1)], "\n")

  defp run_line(run) do
    duration = if run.duration, do: ", #{run.duration} ms", else: ""

    "R-#{run.id}  #{run.started_at}  #{status(run)}, #{step_count(run)}#{duration}  " <>
      "(#{run.by} #{inspect(run.profile)})"
  end

  # The number of an agent's steps is not known before it ends.
  defp step_count(%{steps: 0, ran: 1}), do: "1 step"
  defp step_count(%{steps: steps, ran: ran}) when steps == 0 or ran > steps, do: "#{ran} steps"
  defp step_count(run), do: "#{run.ran} of #{run.steps} steps"

  defp status(%{status: "pending"}), do: "stopped, and waits for an approval"
  defp status(%{status: "stopped"}), do: "stopped by an error"
  defp status(%{status: "steps"}), do: "stopped by the limit of steps"
  defp status(%{status: time}) when time in ["time", "max_time"], do: "stopped by its time limit"
  defp status(%{status: "max_turns"}), do: "stopped by the limit of turns"
  defp status(%{status: "max_tokens"}), do: "stopped by the limit of tokens"
  defp status(%{status: "error"}), do: "stopped because the model failed"
  defp status(%{status: "cut_off"}), do: "ended in the middle of its report"
  defp status(%{status: status}), do: status

  # A run

  defp show_run(entry, id, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, run, steps} <- Runs.fetch(sql, context.profile, entry.name, id, context.now) do
      results = %Report{results: Enum.map(steps, &result(&1, context.view))}
      head = "#{run.command}\n#{run_line(run)}"
      parts = [head, to_string(results), agent_report(run, steps, context.view)]
      text = parts |> Enum.reject(&(&1 == "")) |> Enum.join("\n\n")
      {:ok, Result.ok(text, data: Map.put(run, :results, steps))}
    else
      {:ok, nil} ->
        {:error, %NotFoundError{kind: "run", id: "R-#{id}", find: "workflow.show #{entry.name}"}}

      error ->
        error
    end
  end

  # The report may repeat the result of any step.
  defp agent_report(%{report: nil}, _steps, _view), do: ""

  defp agent_report(run, steps, view) do
    if Enum.all?(steps, &visible?(&1, view)),
      do: "Report:\n\n#{run.report}",
      else: "Report: (not shown)"
  end

  # The result of a command that the profile may no longer see is hidden.
  defp result(step, view) do
    if visible?(step, view),
      do: %Result{status: step_status(step.status), command: step.command, content: step.content},
      else: %Result{status: step_status(step.status), command: "(not shown)", content: ""}
  end

  defp visible?(step, view),
    do: step.skill == nil or match?({:ok, _}, View.fetch(view, step.skill))

  for status <- ~w(ok error template help pending)a do
    defp step_status(unquote(to_string(status))), do: unquote(status)
  end
end
