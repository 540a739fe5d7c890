defmodule Skillbook.Workflow.Run do
  @moduledoc false
  # Runs the steps of a plan within the limits of steps, time and nesting, stores the run, and
  # reports its results.
  #
  # Each step runs through `Skillbook.Reply.Pipeline`, as a command in a reply does. So pipeline,
  # executor and workflow call each other in a circle, which the limit of nesting ends.

  alias Skillbook.Reply.{Pipeline, Placeholder}
  alias Skillbook.Run.Drain
  alias Skillbook.{Context, Entry, PlaceholderError, Report, Result, Telemetry, WorkflowError}
  alias Skillbook.Workflow.{Plan, Runs}

  # Steps of a run, including those of nested workflows.
  @max_steps 1000
  @max_depth 5
  @default_timeout 600_000
  # The results that end a run with `on_error: stop`.
  @ends %{error: :stopped, pending: :pending}

  @doc "As `Skillbook.Workflow.run/3`."
  def run(entry, context, options) do
    timeout = options[:timeout] || entry.limits[:timeout] || @default_timeout

    with {:ok, plan} <- Plan.new(entry, context.command, context),
         {:ok, state} <- enter(entry, context, timeout) do
      record(entry, context, length(plan.steps), state, fn run ->
        on_step = fn step, result ->
          Context.report(context, step.number, total: length(plan.steps), text: step.line)
          Runs.add_step(context, run, step, result)
        end

        {results, ended} = run_steps(plan, state, context, on_step, options)
        plan = without_nested_rest(plan, context)
        {ended || :done, length(results), nil, result(results, ended, entry, plan, run)}
      end)
    end
  end

  @doc "Starts a run of at most `timeout` milliseconds: its deadline, depth and count of steps."
  @spec enter(Entry.t(), Context.t(), pos_integer()) ::
          {:ok, Context.workflow()} | {:error, WorkflowError.t()}
  def enter(entry, %Context{workflow: workflow}, timeout) do
    deadline = now() + timeout

    case workflow do
      nil ->
        {:ok, %{depth: 1, deadline: deadline, ran: :counters.new(1, [])}}

      %{depth: depth} when depth >= @max_depth ->
        text = "workflows are already nested #{@max_depth} deep, which is the limit"
        {:error, %WorkflowError{kind: :depth, name: entry.name, text: text}}

      %{depth: depth} ->
        {:ok, %{workflow | depth: depth + 1, deadline: min(deadline, workflow.deadline)}}
    end
  end

  @doc """
  Calls `fun` with the id of a new run, stores how the run ended, and emits telemetry.

  `fun` returns `{status, steps, report, answer}`; `steps` is the number of steps that ran. The
  id is `nil` if the run is not stored.
  """
  @spec record(
          Entry.t(),
          Context.t(),
          non_neg_integer() | nil,
          Context.workflow(),
          (pos_integer() | nil -> {atom(), non_neg_integer(), String.t() | nil, answer})
        ) :: answer
        when answer: term()
  def record(entry, context, steps, state, fun) do
    metadata = %{book: context.book, profile: context.profile.id, skill: entry.name}

    Telemetry.span([:skillbook, :workflow], metadata, fn ->
      started = now()
      run = Runs.start(entry, context, steps, max(state.deadline - started, 0))
      {status, ran, report, answer} = fun.(run)
      status = if status == :stopped, do: stopped(context.book), else: status
      Runs.finish(context, run, status, now() - started, report)
      {:stop, answer, %{status: status, steps: ran}}
    end)
  end

  # A step that failed because the book stops.
  defp stopped(nil), do: :stopped
  defp stopped(book), do: if(Drain.failed(book) == :failed, do: :stopped, else: :interrupted)

  # Steps

  # Returns the results in order, and why the run ended before its last step.
  defp run_steps(plan, state, context, on_step, options) do
    {results, _values, ended} =
      Enum.reduce_while(plan.steps, {[], plan.values, nil}, fn step, {results, values, nil} ->
        case reached_limit(state) do
          nil ->
            {result, text} = run_step(step, values, state, context, options)
            on_step.(step, result)
            ended = if plan.on_error == :stop, do: @ends[result.status]
            values = Map.merge(values, result_values(step, result.status, text))
            {if(ended, do: :halt, else: :cont), {[result | results], values, ended}}

          limit ->
            {:halt, {results, values, limit}}
        end
      end)

    {Enum.reverse(results), ended}
  end

  defp reached_limit(%{deadline: deadline, ran: ran}) do
    cond do
      now() >= deadline ->
        :time

      :counters.get(ran, 1) >= @max_steps ->
        :steps

      true ->
        :counters.add(ran, 1, 1)
        nil
    end
  end

  defp run_step(step, values, state, context, options) do
    options =
      [
        now: context.now,
        by: context.by,
        assigns: context.call_assigns,
        agent: context.agent,
        shown: context.shown
      ] ++
        [ask: options[:ask], ask_timeout: options[:ask_timeout]] ++
        [workflow: state, max_result: :infinity]

    {result, text} = Pipeline.command(context.view, step.line, &fill(&1, values), options)
    {%{result | command: filled_line(step, values)}, text}
  end

  defp fill(command, values) do
    Placeholder.fill_page(command, fn name ->
      case values do
        %{^name => {kind, number}} when kind in [:failed, :pending] ->
          {:error, %PlaceholderError{kind: kind, reference: name, number: number}}

        %{^name => value} ->
          {:ok, value}
      end
    end)
  end

  defp filled_line(%{command: command, line: line}, values) do
    case fill(command, values) do
      {:ok, filled} -> filled.raw
      {:error, _} -> line
    end
  end

  # Values that later steps can use: the text as the handler returned it. A result shows hidden
  # characters by their codes, and a step must not store those.
  defp result_values(step, status, text) do
    value =
      case status do
        :error -> {:failed, step.number}
        :pending -> {:pending, step.number}
        _ -> text
      end

    for name <- ["last", "#{step.number}", step.name], name != nil, into: %{}, do: {name, value}
  end

  # Report

  # Another workflow cannot follow instructions for the results.
  defp without_nested_rest(plan, %Context{workflow: nil}), do: plan
  defp without_nested_rest(plan, _nested), do: %{plan | rest: ""}

  defp result(results, ended, entry, plan, run) do
    text = head(entry, plan, results, ended) <> "\n\n" <> to_string(%Report{results: results})
    text = String.trim_trailing(text)
    rest = if ended, do: "", else: plan.rest

    metadata =
      case pending(results) do
        [] -> %{path: entry.path}
        pending -> %{path: entry.path, pending: pending}
      end

    fields = [
      data: %{run: run, steps: Enum.zip(plan.steps, results), ended: ended || :done, rest: rest},
      effects: results |> Enum.flat_map(& &1.effects) |> Enum.uniq(),
      metadata: metadata
    ]

    cond do
      ended == :pending or (ended == nil and is_map_key(metadata, :pending)) ->
        {:ok, struct!(%Result{status: :pending, content: text}, fields)}

      ended ->
        step = length(results)
        error = %WorkflowError{kind: ended, name: entry.name, step: step, text: text}
        {:ok, struct!(Result.error(error), fields)}

      true ->
        {:ok, Result.ok(text, fields)}
    end
  end

  # The approvals for which its steps wait.
  defp pending(results), do: Enum.flat_map(results, &Map.get(&1.metadata, :pending, []))

  defp head(entry, plan, results, nil) do
    failed = for {%{status: :error}, number} <- Enum.with_index(results, 1), do: to_string(number)

    steps = if length(results) == 1, do: "its step", else: "its #{length(results)} steps"

    ran =
      case failed do
        [] -> "#{entry.name} ran #{steps}"
        [number] -> "#{entry.name} ran #{steps}; step #{number} failed"
        numbers -> "#{entry.name} ran #{steps}; steps #{Enum.join(numbers, ", ")} failed"
      end <> waits(results) <> "."

    # Comes first, since the end of a long report may be truncated.
    if plan.rest == "",
      do: ran,
      else: "#{ran} Its page says about the results:\n\n#{plan.rest}\n\nThe results:"
  end

  defp head(entry, plan, results, ended) do
    step = "step #{length(results)} of #{length(plan.steps)}"

    case ended do
      :stopped ->
        "#{entry.name} stopped at #{step}, which failed."

      :pending ->
        "#{entry.name} stopped at #{step}, which waits for an approval. An approval runs this " <>
          "step alone."

      :time ->
        "#{entry.name} stopped after #{step}: its time limit was reached."

      :steps ->
        "#{entry.name} stopped after #{step}: the limit of #{@max_steps} steps, nested " <>
          "workflows included, was reached."
    end
  end

  defp waits(results) do
    case for {%{status: :pending}, number} <- Enum.with_index(results, 1), do: number do
      [] -> ""
      [number] -> "; step #{number} waits for an approval"
      numbers -> "; steps #{Enum.join(numbers, ", ")} wait for approvals"
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
