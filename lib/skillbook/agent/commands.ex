defmodule Skillbook.Agent.Commands do
  @moduledoc false
  # Runs the commands of a reply and adds their report to the conversation. Counts repeated
  # failures, and gives handlers the options for agents that they dispatch.

  alias Skillbook.Agent.{Budget, SkillsRead, State}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Report

  @doc """
  Runs the commands of a reply.

  `complete?` is whether the model ended the reply itself. Only then may the end of the text close
  a block (`unclosed: :run`).
  """
  def run(state, text, complete?) do
    options = options(state)
    options = if complete?, do: options, else: Keyword.delete(options, :unclosed)
    report = Pipeline.run(state.view, text, options)
    if report.incomplete != [], do: State.emit(state, {:incomplete, report.incomplete})
    report
  end

  defp options(state) do
    state.commands
    |> Keyword.put_new_lazy(:now, state.clock)
    |> Keyword.merge(
      # A function, since a command may use only what the commands before it have left.
      agent: fn -> agent(state) end,
      on_result: &State.emit(state, {:result, &1})
    )
  end

  # `context.agent` of handlers.
  defp agent(state) do
    left = Budget.left(state.budget)

    %{
      model: state.model,
      depth: state.depth,
      max_depth: state.max_depth,
      turns_left: left.turns,
      time_left: left.time,
      tokens_left: left.tokens,
      options: [
        model: state.model,
        on_event: state.on_event,
        chat: state.chat,
        commands: state.commands,
        grammar: state.grammar,
        preflight: false,
        max_repeats: state.max_repeats,
        max_context: state.max_context,
        max_depth: state.max_depth,
        depth: state.depth + 1,
        clock: state.clock,
        parent: state.budget
      ]
    }
  end

  @doc "Adds the report to the conversation, without texts that are already in it."
  def add_report(state, %Report{results: [], incomplete: []}), do: state

  def add_report(state, report) do
    {results, activations} = SkillsRead.deduplicate(report.results, state.transcript)

    # A model that wrote command blocks shows other command-like text to the user on purpose.
    %{state | failures: count_failures(report, state.failures), noted: true}
    |> State.add_message(:report, to_string(%{report | results: results}),
      activations: activations
    )
  end

  defp count_failures(report, before) do
    failed =
      for result <- report.results, result.status == :error, do: {result.command, result.content}

    Map.new(
      failed ++ Enum.map(report.incomplete, &{&1, :incomplete}),
      &{&1, Map.get(before, &1, 0) + 1}
    )
  end
end
