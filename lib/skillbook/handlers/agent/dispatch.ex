defmodule Skillbook.Handlers.Agent.Dispatch do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Agent, Context, DispatchError, Flags, Result}
  alias Skillbook.Agent.{Budget, Scope}

  @dispatch "agent.dispatch"
  # How many lines the list of commands has, and how long a line is.
  @lines 30
  @line 120

  @system """
  You are an agent with one mission. Carry it out with the commands below, step by step, and with no others. Nobody answers
  questions: decide what is open by what you know, and if something cannot be done, go on with the rest. When you are done, reply
  without commands: a short report of what you did, what you found, and what is left to do.\
  """

  # Without domains: they are of use where there are many commands.
  @sections [:rules, :commands, :skills, :inline_skills, :notes, :other_notes]

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, flags} <- Flags.known(flags, ~w(mission skills context max-turns id)),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, []),
         :ok <- Flags.require(flags, ~w(mission skills)),
         {:ok, flags} <- Flags.cast_text(flags, "mission"),
         {:ok, flags} <- Flags.cast_list(flags, "skills"),
         {:ok, flags} <- Flags.cast_text(flags, "context"),
         {:ok, flags} <- Flags.cast_integer(flags, "max-turns", min: 1),
         {:ok, flags} <- Flags.cast(flags, "id", "one word of at most 40 characters", "report", &id/1),
         {:ok, agent} <- fetch_agent(context),
         {:ok, profile, names} <- Scope.narrow(context.view, flags["skills"]),
         :ok <- check_depth(agent, names),
         {:ok, limits} <- limits(agent, context, flags) do
      dispatch(flags, context, [profile: profile] ++ limits)
    end
  end

  defp id(text) do
    if is_binary(text) and text =~ ~r/\A[[:alnum:]_.-]{1,40}\z/u, do: {:ok, text}, else: :error
  end

  defp fetch_agent(%Context{agent: agent, book: book}) when agent != nil and book != nil, do: {:ok, agent}
  defp fetch_agent(_context), do: {:error, %DispatchError{kind: :no_run}}

  defp check_depth(%{depth: depth, max_depth: max}, _names) when depth >= max,
    do: {:error, %DispatchError{kind: :depth, max_depth: max}}

  defp check_depth(%{depth: depth, max_depth: max}, names) do
    if depth + 1 >= max and @dispatch in names,
      do: {:error, %DispatchError{kind: :handed_on, max_depth: max}},
      else: :ok
  end

  # A turn, and a tenth of the rest, is kept for who waits for the report, so that it is of use.
  defp limits(agent, context, flags) do
    turns = min(agent.turns_left - 1, flags["max-turns"] || agent.turns_left)
    time = most(min(agent.time_left, context.timeout))
    tokens = agent.tokens_left && most(agent.tokens_left)

    case Enum.find([turns: turns, time: time, tokens: tokens || 1], fn {_, left} -> left < 1 end) do
      nil -> {:ok, [max_turns: turns, max_time: time, max_tokens: tokens]}
      {limit, _} -> {:error, %DispatchError{kind: :limit, limit: limit}}
    end
  end

  defp most(number), do: div(number * 9, 10)

  defp dispatch(flags, %{agent: agent} = context, options) do
    id = flags["id"] || "agent-#{Budget.next_agent(agent.options[:parent])}"
    on_event = agent.options[:on_event]
    # The agent runs in this process; what it ran is known here as it goes.
    ran = {__MODULE__, make_ref()}
    Process.put(ran, [])

    tell = fn event ->
      with {:result, result} <- event,
           do: Process.put(ran, [{result.effects, line(result)} | Process.get(ran)])

      on_event.({:agent, id, event})
    end

    options = options ++ [system: @system, prompt: [sections: @sections], on_event: tell]
    result = Agent.run(context.book, input(flags), Keyword.merge(agent.options, options))
    {effects, lines} = ran |> Process.delete() |> Enum.reverse() |> Enum.unzip()
    effects = effects |> List.flatten() |> Enum.uniq()
    answer(result, text(id, result, lines, effects), effects)
  end

  defp input(%{"mission" => mission} = flags) do
    if flags["context"], do: "#{mission}\n\nWhat you have to know:\n\n#{flags["context"]}", else: mission
  end

  defp answer(%{status: :done} = result, text, effects),
    do: {:ok, Result.ok(text, data: result, effects: effects)}

  # What it did until then is done.
  defp answer(result, text, effects) do
    error = %DispatchError{kind: :ended, status: result.status, text: text}
    {:ok, %{Result.error(error) | data: result, effects: effects}}
  end

  # The report

  defp text(id, result, lines, effects) do
    turns = if result.turns == 1, do: "1 turn", else: "#{result.turns} turns"
    head = "#{id} #{ended(result)}, after #{turns}."
    changed = if effects != [], do: "Effects: #{Enum.join(effects, ", ")}"

    [head, commands(lines), changed, reported(result)] |> Enum.reject(&is_nil/1) |> Enum.join("\n\n")
  end

  defp ended(%{status: :done}), do: "is done"
  defp ended(%{status: :cut_off}), do: "ended with a report that is not whole"
  defp ended(%{status: :max_turns}), do: "was not done when it had no turns left"
  defp ended(%{status: :max_time}), do: "was not done when its time was over"
  defp ended(%{status: :max_tokens}), do: "was not done when it had no tokens left"
  defp ended(%{status: :stuck}), do: "was stuck: a command failed in the same way again and again"
  defp ended(%{status: :error, error: error}), do: "ended because its model did not answer (#{error.kind})"

  defp commands([]), do: "It ran no commands."

  # The last ones are those that say where it is now.
  defp commands(lines) do
    {left_out, shown} = Enum.split(lines, -@lines)
    more = if left_out != [], do: ["- #{length(left_out)} more before these"], else: []
    Enum.join(["It ran:" | more ++ shown], "\n")
  end

  defp line(%Result{status: :error} = result),
    do: "- #{first_line(result.command)}: error: #{first_line(result.content)}"

  defp line(%Result{status: :skipped} = result), do: "- #{first_line(result.command)}: skipped"
  defp line(result), do: "- #{first_line(result.command)}: ok"

  defp first_line(nil), do: "(its whole reply)"

  defp first_line(text) do
    [line | more] = text |> String.trim() |> String.split(~r/\R/u, parts: 2)
    shown = String.slice(line, 0, @line)
    if more == [] and shown == line, do: shown, else: shown <> " …"
  end

  defp reported(result) do
    case {String.trim(result.text), result.status} do
      {"", _} -> "It reported nothing."
      {text, :done} -> "It reported:\n\n#{text}"
      {text, _} -> "Its last words:\n\n#{text}"
    end
  end
end
