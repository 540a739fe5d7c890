defmodule Skillbook.Agent.Commands do
  @moduledoc false
  # Runs the commands in the text of a reply and adds their report to the conversation. Counts
  # repetitions, and gives handlers the options for agents that they dispatch.

  alias Skillbook.Agent.{Budget, Journal, Leader, Prices, ResultMedia, SkillsRead, State}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.{Entry, Extractor, Report, Result}

  @circle "Your last replies ran commands that gave the same results as before. Do something " <>
            "else, or write your answer to the user: if your next reply gives nothing new, " <>
            "the run ends."

  @doc """
  Runs the commands of a reply.

  `complete?` is whether the model ended the reply itself. Only then may the end of the text close
  a block (`unclosed: :run`).
  """
  def run(state, text, complete?) do
    options = [journal: Journal.calls(state)] ++ options(state)
    options = if complete?, do: options, else: Keyword.delete(options, :unclosed)
    report = Pipeline.run(state.view, text, options)
    if report.incomplete != [], do: State.emit(state, {:incomplete, report.incomplete})
    report
  end

  @doc "The options of a command of the run."
  @spec options(State.t()) :: keyword()
  def options(state) do
    run = self()

    state.commands
    |> Keyword.put_new_lazy(:now, state.clock)
    |> Keyword.merge(
      # A function, since a command may use only what the commands before it have left.
      agent: fn -> agent(state, run) end,
      shown: state.shown,
      on_result: &State.emit(state, {:result, &1})
    )
  end

  @doc "`context.agent` of handlers; `run` is the process of the run."
  def agent(state, run) do
    left = Budget.left(state.budget)

    %{
      run: run,
      model: state.model,
      depth: state.depth,
      max_depth: state.max_depth,
      hand_over: Leader.check(state),
      turns_left: left.turns,
      time_left: left.time,
      tokens_left: left.tokens,
      cost_left: left.cost && Prices.amount(left.cost),
      options: [
        model: state.model,
        on_event: state.on_event,
        chat: state.chat,
        commands: state.commands,
        grammar: state.grammar,
        protocol: state.protocol,
        tools: state.tools,
        preflight: false,
        sections: [],
        max_repeats: state.max_repeats,
        max_context: state.max_context,
        summary: state.summary,
        max_depth: state.max_depth,
        depth: state.depth + 1,
        clock: state.clock,
        parent: state.budget
      ]
    }
  end

  @doc "`context.agent` of one of several agents at the same time. Their caller keeps a turn."
  @spec share(map(), pos_integer()) :: map()
  def share(agent, number) do
    %{
      agent
      | turns_left: div(agent.turns_left - 1, number) + 1,
        tokens_left: agent.tokens_left && div(agent.tokens_left, number),
        cost_left: agent.cost_left && agent.cost_left / number
    }
  end

  @doc "The report of a reply whose commands do not run, for this reason."
  @spec skip(State.t(), String.t(), String.t()) :: Report.t()
  def skip(state, text, reason) do
    case Extractor.extract(text) do
      {:ok, extraction} ->
        results = for line <- extraction.commands, do: skipped(state, :binary.copy(line), reason)
        %Report{text: extraction.text, results: results}

      {:error, _error} ->
        %Report{text: text}
    end
  end

  @doc "The result of a command that does not run, for this reason."
  @spec skipped(State.t(), String.t(), String.t()) :: Result.t()
  def skipped(state, line, reason) do
    result = %{Pipeline.skipped(line) | content: reason}
    State.emit(state, {:result, result})
    result
  end

  @doc """
  Adds the report to the conversation, without texts that are already in it, after a text that
  introduces it.
  """
  def add_report(state, report, introduction \\ "")
  def add_report(state, %Report{results: [], incomplete: []}, _introduction), do: state

  def add_report(state, report, introduction) do
    {results, activations} = SkillsRead.deduplicate(report.results, state.transcript)

    text = introduction <> to_string(%{report | results: results})
    content = ResultMedia.content(state, text, results)
    State.add_message(state, :report, content, activations: activations)
  end

  @doc """
  Notes the results of a reply's commands and calls: how often in a row each has failed with the
  same error, how many replies in a row gave no new result, and which wait for an approval.
  """
  @spec note_results(State.t(), [Result.t()], [String.t()]) :: State.t()
  def note_results(state, [], []), do: state

  def note_results(state, results, incomplete) do
    failed = for result <- results, result.status == :error, do: {result.command, result.content}
    failed = failed ++ Enum.map(incomplete, &{&1, :incomplete})
    failures = Map.new(failed, &{&1, Map.get(state.failures, &1, 0) + 1})

    given = for result <- results, do: {result.command, Entry.digest(result.content)}
    given = MapSet.new(given ++ Enum.map(incomplete, &{&1, :incomplete}))
    repeats = if MapSet.subset?(given, state.results), do: state.repeats + 1, else: 0

    pending = Enum.flat_map(results, &Map.get(&1.metadata, :pending, []))

    # A model that has run commands shows other command-like text to the user on purpose.
    %{
      state
      | failures: failures,
        results: MapSet.union(state.results, given),
        repeats: repeats,
        noted: true,
        pending: pending
    }
  end

  @doc """
  Tells the model that it goes in a circle, before its next reply without a new result ends the
  run.
  """
  @spec add_circle(State.t()) :: State.t()
  def add_circle(%{repeats: repeats} = state) do
    if repeats == circle(state) do
      State.emit(state, {:repeated, @circle})
      State.add_message(state, :note, @circle)
    else
      state
    end
  end

  @doc "Whether the model repeats a failure, or goes in a circle although it was told."
  @spec stuck?(State.t()) :: boolean()
  def stuck?(state) do
    state.repeats > circle(state) or
      Enum.any?(state.failures, fn {_command, times} -> times >= state.max_repeats end)
  end

  # The first of the results that are the same is no repetition.
  defp circle(state), do: max(state.max_repeats - 1, 1)
end
