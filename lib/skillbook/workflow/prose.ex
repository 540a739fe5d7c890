defmodule Skillbook.Workflow.Prose do
  @moduledoc false
  # Pages of prose, and what pages say of the results of their commands, carried out by an agent where no conversation is under
  # way that could do it.

  alias Skillbook.Agent.{NonInteractive, Settings}

  alias Skillbook.Reply.Pipeline

  alias Skillbook.{
    Book,
    Command,
    Context,
    Entry,
    Executor,
    Profile,
    Result,
    Router,
    View,
    Workflow,
    WorkflowError
  }

  @opening "You are an agent with one page of instructions, which is the first message."

  # As long as other workflows may take.
  @max_time 600_000

  @doc "As `Skillbook.carry_out/3`."
  @spec carry_out(View.t(), String.t(), keyword()) :: Result.t()
  def carry_out(view, line, options) do
    {agent, options} = agent(view, options)
    [result] = Pipeline.commands(view, [line], options)

    with true <- agent != nil and left?(result),
         {:ok, %{entry: entry} = routed} <- Router.find(view, line),
         true <- prose?(entry),
         context = Executor.context(view, routed, Keyword.take(options, [:now, :assigns])),
         {:ok, state} <- Workflow.enter(entry, context, time(entry, result, agent, options)) do
      %{
        followed(entry, result, context, state, agent, options)
        | name: result.name,
          command: result.command
      }
    else
      _ -> result
    end
  end

  defp agent(%View{book: nil}, _options),
    do: raise(ArgumentError, "expected the view of a running book, got one of a catalog alone")

  defp agent(view, options) do
    {agent, options} = Keyword.pop_lazy(options, :agent, fn -> Book.fetch!(view.book).agent end)
    with {:error, error} <- Settings.validate_book(agent), do: raise(error)
    {agent, options}
  end

  # Whether there is something that only a model can do.
  defp left?(%Result{status: :template}), do: true
  defp left?(%Result{status: :ok, data: %{rest: rest, steps: _}}), do: rest != ""
  defp left?(_result), do: false

  # What a note says, or a stranger, is nothing to be done.
  defp prose?(%Entry{handler: nil, kind: kind, trust: trust}),
    do: kind in [:command, :skill] and trust != :low

  defp prose?(_entry), do: false

  # What its commands have left of it.
  defp time(entry, %Result{duration: taken}, agent, options) do
    limit = options[:timeout] || entry.limits[:timeout] || agent[:max_time] || @max_time
    left = max(limit - div(taken, 1000), 1)
    min(left, agent[:max_time] || left)
  end

  defp followed(entry, result, context, state, agent, options) do
    began = System.monotonic_time(:microsecond)

    answer =
      kept(entry, result, context, state, fn run, ran ->
        number = :counters.new(1, [])
        :counters.add(number, 1, ran)

        done = fn result ->
          :counters.add(number, 1, 1)
          step = %{number: :counters.get(number, 1), name: nil}
          Workflow.Runs.step(context, run, step, %{result | command: result.command || ""})
        end

        {ended, results} =
          NonInteractive.run(
            context.book,
            input(entry, result, context),
            run_options(context, state, agent, options),
            done
          )

        answer = answer(entry, ended, results, run)
        {ended.status, ran + length(results), answer.content, answer}
      end)

    effects = Enum.uniq(result.effects ++ answer.effects)
    %{answer | duration: System.monotonic_time(:microsecond) - began, effects: effects}
  end

  defp kept(entry, %Result{status: :template}, context, state, fun),
    do: Workflow.kept(entry, context, nil, state, &fun.(&1, 0))

  # The run of its commands goes on.
  defp kept(
         _entry,
         %Result{data: %{run: run, steps: steps}, duration: taken},
         context,
         _state,
         fun
       ) do
    began = System.monotonic_time(:microsecond)
    {status, _ran, report, answer} = fun.(run, length(steps))
    duration = div(taken + System.monotonic_time(:microsecond) - began, 1000)
    Workflow.Runs.finish(context, run, status, duration, report)
    answer
  end

  defp run_options(context, state, agent, options) do
    commands = [
      now: context.now,
      by: :agent,
      assigns: context.assigns,
      ask: options[:ask],
      workflow: state
    ]

    Keyword.merge(agent,
      profile: context.profile,
      system: system(agent),
      max_time: max(Context.time_left(%{context | workflow: state}), 1),
      commands: commands ++ Keyword.take(options, [:max_result])
    )
  end

  @doc "The system prompt of a book's agent, but for what the view gives."
  @spec system(keyword()) :: String.t()
  def system(agent) do
    [agent[:system] || "", NonInteractive.system(@opening)]
    |> Enum.reject(&(String.trim(&1) == ""))
    |> Enum.join("\n\n")
  end

  # What the agent is told to do.
  defp input(entry, %Result{status: :template}, context),
    do: page(entry, context.command, context)

  defp input(entry, %Result{content: content}, context) do
    "The commands of this page have run. Do what is left of it. #{called(entry, context.command, context)}\n\n" <>
      content
  end

  defp page(entry, command, context),
    do: "Carry out this page. #{called(entry, command, context)}\n\n#{String.trim(entry.body)}"

  defp called(entry, command, %Context{now: now, profile: %Profile{id: id}}) do
    user = if id == "", do: "", else: " You act for #{inspect(id)}."
    now = now |> DateTime.truncate(:second) |> DateTime.to_iso8601()
    "It was called as: #{Command.line(%{command | name: entry.name})}\nIt is #{now}, UTC.#{user}"
  end

  defp answer(entry, %{status: :done} = ended, results, run) do
    text =
      if String.trim(ended.text) == "",
        do: NonInteractive.last_text(ended),
        else: String.trim(ended.text)

    Result.ok(text, fields(entry, ended, results, run))
  end

  defp answer(entry, ended, results, run) do
    error = %WorkflowError{
      kind: :agent,
      name: entry.name,
      text: NonInteractive.text(entry.name, ended, results)
    }

    struct!(Result.error(error), fields(entry, ended, results, run))
  end

  defp fields(entry, ended, results, run) do
    data = %{run: run, agent: ended, steps: results}
    [data: data, effects: NonInteractive.effects(results), metadata: %{path: entry.path}]
  end

  @doc "What an agent would be given, and which commands the page names that the view shows."
  @spec preview(Entry.t(), Command.t(), Context.t()) :: String.t()
  def preview(entry, command, context) do
    named =
      for [name] <- Regex.scan(~r/[\p{L}\p{N}_-]+\.[\p{L}\p{N}_-]+/u, entry.body),
          uniq: true,
          do: name

    shown =
      for name <- named,
          name != entry.name,
          {:ok, %Entry{kind: :command, name: ^name}} <- [View.fetch(context.view, name)],
          do: name

    named =
      if shown == [],
        do: "It names no commands.",
        else: "It names the commands #{Enum.join(shown, ", ")}."

    "#{entry.name} is a page to follow, which runs nothing by itself. #{named}\n" <>
      "In a conversation it is given to the model. #{alone(entry, command, context)}"
  end

  defp alone(%Entry{trust: :low}, _command, _context),
    do: "Nobody carries it out elsewhere, for it is of low trust."

  defp alone(entry, command, %Context{book: book} = context) do
    case book && Book.fetch!(book).agent do
      nil ->
        "Elsewhere nobody carries it out, for this book has no agent of its own."

      _agent ->
        "Elsewhere, as by its schedule, an agent is told:\n\n#{page(entry, command, context)}"
    end
  end
end
