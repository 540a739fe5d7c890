defmodule Skillbook.Agent.Prose do
  @moduledoc false
  # Lets an agent follow prose: pages without steps, and the text below the steps of a workflow.
  # For `Skillbook.carry_out/3` and schedules, which have no conversation whose model could do it.

  alias Skillbook.Agent.{NonInteractive, Settings}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.{Book, Command, Context, Entry, Executor, Profile, Result, Router, View}
  alias Skillbook.Workflow.{Page, Run, Runs}
  alias Skillbook.Support.Hidden
  alias Skillbook.WorkflowError

  @opening "You are an agent with one page of instructions, which is the first message."

  # As long as a workflow may take.
  @default_timeout 600_000

  @doc "As `Skillbook.carry_out/3`."
  @spec carry_out(View.t(), String.t(), keyword()) :: Result.t()
  def carry_out(view, line, options) do
    {agent, options} = pop_agent(view, options)
    [result] = Pipeline.commands(view, [line], options)

    with true <- agent != nil and instructions?(result),
         {:ok, %{entry: entry} = routed} <- Router.find(view, line),
         true <- trusted_page?(entry),
         context = Executor.context(view, routed, Keyword.take(options, [:now, :assigns])),
         {:ok, state} <- Run.enter(entry, context, timeout(entry, result, agent, options)) do
      answer = follow(entry, result, context, state, agent, options)
      %{answer | name: result.name, command: result.command}
    else
      _ -> result
    end
  end

  defp pop_agent(view, options) do
    book = Book.of!(view)
    {agent, options} = Keyword.pop_lazy(options, :agent, fn -> book.of_parts.agent end)

    case Settings.read_book(agent) do
      {:ok, agent} -> {agent, options}
      {:error, error} -> raise error
    end
  end

  # Whether the result has instructions that only a model can follow.
  defp instructions?(%Result{status: :template}), do: true
  defp instructions?(%Result{status: :ok, data: %{rest: rest, steps: _}}), do: rest != ""
  defp instructions?(_result), do: false

  # Notes and pages of low trust are never instructions.
  defp trusted_page?(%Entry{handler: nil, kind: kind, trust: trust}),
    do: kind in [:command, :skill] and trust != :low

  defp trusted_page?(_entry), do: false

  # Milliseconds left after the page's commands.
  defp timeout(entry, %Result{duration: taken}, agent, options) do
    limit = options[:timeout] || entry.limits[:timeout] || agent[:max_time] || @default_timeout
    left = max(limit - div(taken, 1000), 1)
    min(left, agent[:max_time] || left)
  end

  defp follow(entry, result, context, state, agent, options) do
    started = System.monotonic_time(:microsecond)

    answer =
      record(entry, result, context, state, fn run, ran ->
        {ended, results} =
          NonInteractive.run(
            context.book,
            input(entry, result, context),
            run_options(context, state, agent, options),
            add_step(context, run, ran)
          )

        answer = answer(entry, ended, results, run)
        {ended.status, ran + length(results), answer.content, answer}
      end)

    effects = Enum.uniq(result.effects ++ answer.effects)
    %{answer | duration: System.monotonic_time(:microsecond) - started, effects: effects}
  end

  # Numbers of steps go on after those of the page.
  defp add_step(context, run, ran) do
    counter = :counters.new(1, [])
    :counters.add(counter, 1, ran)

    fn result ->
      :counters.add(counter, 1, 1)
      step = %{number: :counters.get(counter, 1), name: nil}
      Runs.add_step(context, run, step, %{result | command: result.command || ""})
    end
  end

  defp record(entry, %Result{status: :template}, context, state, fun),
    do: Run.record(entry, context, nil, state, &fun.(&1, 0))

  # Continues the stored run of the page's commands.
  defp record(_entry, %Result{data: %{run: run}} = result, context, _state, fun) do
    started = System.monotonic_time(:microsecond)
    {status, _ran, report, answer} = fun.(run, length(result.data.steps))
    duration = result.duration + System.monotonic_time(:microsecond) - started
    Runs.finish(context, run, status, div(duration, 1000), report)
    answer
  end

  defp run_options(context, state, agent, options) do
    commands = [
      now: context.now,
      by: :agent,
      assigns: context.call_assigns,
      ask: options[:ask],
      workflow: state
    ]

    Keyword.merge(agent,
      profile: context.profile,
      system: system(agent),
      skill: context.entry.name,
      max_time: max(Context.time_left(%{context | workflow: state}), 1),
      commands: commands ++ Keyword.take(options, [:max_result, :ask_timeout])
    )
  end

  @doc "The start of the system prompt of a book's agent; the sections of the view follow."
  @spec system(keyword()) :: String.t()
  def system(agent) do
    [agent[:system] || "", NonInteractive.system(@opening, agent)]
    |> Enum.reject(&(String.trim(&1) == ""))
    |> Enum.join("\n\n")
  end

  # The agent's first message.
  defp input(entry, %Result{status: :template}, context) do
    # The same call has filled the page before.
    {:ok, text} = Page.fill(entry, context.command, context)
    page(entry, text, context.command, context)
  end

  defp input(entry, %Result{content: content}, context) do
    "The commands of this page have run. Do what is left of it. " <>
      "#{call(entry, context.command, context)}\n\n#{content}"
  end

  defp page(entry, text, command, context),
    do:
      "Carry out this page. #{call(entry, command, context)}\n\n" <>
        Hidden.visible(String.trim(text))

  defp call(entry, command, %Context{now: now, profile: %Profile{id: id}}) do
    user = if id == "", do: "", else: " You act for #{inspect(id)}."
    now = now |> DateTime.truncate(:second) |> DateTime.to_iso8601()
    "It was called as: #{Command.line(%{command | name: entry.name})}\nIt is #{now}, UTC.#{user}"
  end

  defp answer(entry, %{status: :done} = ended, results, run) do
    text = String.trim(ended.text)
    text = if text == "", do: NonInteractive.last_text(ended), else: text
    Result.ok(text, fields(entry, ended, results, run))
  end

  defp answer(entry, %{status: :pending} = ended, results, run) do
    fields = fields(entry, ended, results, run)
    fields = Keyword.update!(fields, :metadata, &Map.put(&1, :pending, ended.pending))
    text = NonInteractive.text(entry.name, ended, results)
    struct!(%Result{status: :pending, content: text}, fields)
  end

  defp answer(entry, ended, results, run) do
    text = NonInteractive.text(entry.name, ended, results)
    error = %WorkflowError{kind: :agent, name: entry.name, text: text}
    struct!(Result.error(error), fields(entry, ended, results, run))
  end

  defp fields(entry, ended, results, run) do
    data = %{run: run, agent: ended, steps: results}
    [data: data, effects: NonInteractive.effects(results), metadata: %{path: entry.path}]
  end

  @doc "Describes a page: the visible commands that it names, and the agent's first message."
  @spec preview(Entry.t(), Command.t(), Context.t()) :: String.t()
  def preview(entry, command, context) do
    commands =
      case named_commands(entry, context.view) do
        [] -> "It names no commands."
        names -> "It names the commands #{Enum.join(names, ", ")}."
      end

    "#{entry.name} is a page for a model to follow; it runs no commands itself. #{commands}\n" <>
      "In a conversation, calling it returns its text. #{preview_agent(entry, command, context)}"
  end

  defp preview_page(entry, command, context) do
    case Page.fill(entry, command, context) do
      {:ok, text} -> page(entry, text, command, context)
      {:error, error} -> "The call is refused: #{Exception.message(error)}"
    end
  end

  defp named_commands(entry, view) do
    # A name is tried only where a word begins: trying it at each letter takes quadratic time.
    name = ~r/(?<![\p{L}\p{N}_-])[\p{L}\p{N}_-]++\.[\p{L}\p{N}_-]+/u

    for [name] <- Regex.scan(name, entry.body),
        name != entry.name,
        {:ok, %Entry{kind: :command, name: ^name}} <- [View.fetch(view, name)],
        uniq: true,
        do: name
  end

  defp preview_agent(%Entry{trust: :low}, _command, _context),
    do: "Elsewhere it is not carried out, since it is of low trust."

  defp preview_agent(entry, command, %Context{book: book} = context) do
    if book && Book.fetch!(book).of_parts.agent do
      "Elsewhere, for example on a schedule, an agent gets this message:\n\n" <>
        preview_page(entry, command, context)
    else
      "Elsewhere it is not carried out, since this book has no agent."
    end
  end
end
