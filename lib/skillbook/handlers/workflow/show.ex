defmodule Skillbook.Handlers.Workflow.Show do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, NotFoundError, Report, Result, View, Workflow}
  alias Skillbook.Handlers.Workflow.Named
  alias Skillbook.Workflow.Runs

  @runs 5

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, flags} <- Flags.known(flags, ~w(name run runs)),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ["name"]),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         {:ok, flags} <- Flags.cast_integer(flags, "runs", min: 1, max: 100),
         {:ok, flags} <- Flags.cast(flags, "run", "a run such as R-1", "R-1", &run_id/1),
         {:ok, entry} <- Named.fetch(context.view, flags["name"]) do
      if flags["run"],
        do: run(entry, flags["run"], context),
        else: show(entry, flags["runs"] || @runs, context)
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
  defp runs(entry, limit, context), do: Runs.list(context.sql, context.profile, entry.name, limit)

  defp ran([]), do: "No runs."

  defp ran(runs), do: Enum.join(["Last runs:" | Enum.map(runs, &line/1)], "\n")

  defp line(run) do
    took = if run.duration, do: ", #{run.duration} ms", else: ""

    "R-#{run.id}  #{run.started_at}  #{status(run)}, #{run.ran} of #{run.steps} steps#{took}  (#{run.by} #{inspect(run.profile)})"
  end

  defp status(%{status: "stopped"}), do: "stopped by an error"
  defp status(%{status: "steps"}), do: "stopped by the limit of steps"
  defp status(%{status: "time"}), do: "stopped by its time limit"
  defp status(%{status: status}), do: status

  defp run(entry, id, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, run, steps} <- Runs.fetch(sql, context.profile, entry.name, id) do
      report = %Report{results: Enum.map(steps, &result(&1, context.view))}
      {:ok, Result.ok("#{run.command}\n#{line(run)}\n\n#{report}", data: Map.put(run, :results, steps))}
    else
      {:ok, nil} -> {:error, %NotFoundError{kind: "run", id: "R-#{id}", find: "workflow.show #{entry.name}"}}
      error -> error
    end
  end

  # What a command gave that may no longer be seen is not shown either.
  defp result(step, view) do
    shown = step.skill == nil or match?({:ok, _}, View.fetch(view, step.skill))

    if shown,
      do: %Result{status: step_status(step.status), command: step.command, content: step.content},
      else: %Result{status: step_status(step.status), command: "(not shown)", content: ""}
  end

  for status <- ~w(ok error template help)a do
    defp step_status(unquote(to_string(status))), do: unquote(status)
  end
end
