defmodule Skillbook.Handlers.Workflow.Show do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Workflow.Named
  alias Skillbook.Workflow.Runs
  alias Skillbook.{Context, Flags, NotFoundError, Report, Result, View, Workflow}

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, flags} <- Flags.cast(flags, "run", "a run such as R-1", "R-1", &run_id/1),
         {:ok, entry} <- Named.fetch(context.view, flags["name"]) do
      if flags["run"],
        do: run(entry, flags["run"], context),
        else: show(entry, flags["runs"], context)
    end
  end

  defp run_id(text) do
    with [_, number] <- is_binary(text) && Regex.run(~r/\A[rR]-(\d{1,18})\z/, text),
         do: {:ok, String.to_integer(number)},
         else: (_ -> :error)
  end

  defp show(entry, limit, context) do
    with {:ok, runs} <- runs(entry, limit, context) do
      parts = ["#{entry.name} - #{entry.description}", schedule(entry), steps(entry), ran(runs)]
      {:ok, Result.ok(parts |> Enum.reject(&is_nil/1) |> Enum.join("\n"), data: runs)}
    end
  end

  defp schedule(%{schedule: nil}), do: nil

  defp schedule(entry),
    do: "Schedule: #{Enum.join(Enum.reject([entry.schedule, entry.timezone], &is_nil/1), " ")}"

  defp steps(entry) do
    if Workflow.workflow?(entry) do
      case Workflow.lines(entry) do
        {:ok, lines, rest} ->
          shown =
            for {{name, line}, number} <- Enum.with_index(lines, 1),
                do: "#{number}#{if name, do: " #{name}"}: #{String.replace(line, "\n", "\n   ")}"

          below = if rest == "", do: [], else: ["Then: " <> String.replace(rest, "\n", "\n   ")]
          Enum.join(["Steps:" | shown] ++ below, "\n")

        {:error, error} ->
          Exception.message(error)
      end
    else
      "It is a page to follow: get_skill #{entry.name}"
    end
  end

  # Without a database no run is kept.
  defp runs(_entry, _limit, %Context{sql: nil}), do: {:ok, []}

  defp runs(entry, limit, context),
    do: Runs.list(context.sql, context.profile, entry.name, limit, context.now)

  defp ran([]), do: "No runs."

  defp ran(runs), do: Enum.join(["Last runs:" | Enum.map(runs, &line/1)], "\n")

  defp line(run) do
    took = if run.duration, do: ", #{run.duration} ms", else: ""

    "R-#{run.id}  #{run.started_at}  #{status(run)}, #{ran_steps(run)}#{took}  (#{run.by} #{inspect(run.profile)})"
  end

  # How many steps an agent needs is not known before.
  defp ran_steps(%{steps: 0, ran: 1}), do: "1 step"
  defp ran_steps(%{steps: steps, ran: ran}) when steps == 0 or ran > steps, do: "#{ran} steps"
  defp ran_steps(run), do: "#{run.ran} of #{run.steps} steps"

  defp status(%{status: "stopped"}), do: "stopped by an error"
  defp status(%{status: "steps"}), do: "stopped by the limit of steps"
  defp status(%{status: time}) when time in ["time", "max_time"], do: "stopped by its time limit"
  defp status(%{status: "max_turns"}), do: "stopped by the limit of turns"
  defp status(%{status: "max_tokens"}), do: "stopped by the limit of tokens"
  defp status(%{status: "error"}), do: "stopped, for the model did not answer"
  defp status(%{status: "cut_off"}), do: "ended in the middle of its report"
  defp status(%{status: status}), do: status

  defp run(entry, id, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, run, steps} <- Runs.fetch(sql, context.profile, entry.name, id, context.now) do
      report = %Report{results: Enum.map(steps, &result(&1, context.view))}

      parts = [
        "#{run.command}\n#{line(run)}",
        to_string(report),
        reported(run, steps, context.view)
      ]

      {:ok,
       Result.ok(parts |> Enum.reject(&(&1 == "")) |> Enum.join("\n\n"),
         data: Map.put(run, :results, steps)
       )}
    else
      {:ok, nil} ->
        {:error, %NotFoundError{kind: "run", id: "R-#{id}", find: "workflow.show #{entry.name}"}}

      error ->
        error
    end
  end

  # It may tell of what any of the commands gave.
  defp reported(%{report: nil}, _steps, _view), do: ""

  defp reported(run, steps, view),
    do:
      if(Enum.all?(steps, &shown?(&1, view)),
        do: "Report:\n\n#{run.report}",
        else: "Report: (not shown)"
      )

  defp shown?(step, view), do: step.skill == nil or match?({:ok, _}, View.fetch(view, step.skill))

  # What a command gave that may no longer be seen is not shown either.
  defp result(step, view) do
    if shown?(step, view),
      do: %Result{status: step_status(step.status), command: step.command, content: step.content},
      else: %Result{status: step_status(step.status), command: "(not shown)", content: ""}
  end

  for status <- ~w(ok error template help)a do
    defp step_status(unquote(to_string(status))), do: unquote(status)
  end
end
