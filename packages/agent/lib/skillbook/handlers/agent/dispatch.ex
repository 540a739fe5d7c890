defmodule Skillbook.Handlers.Agent.Dispatch do
  @moduledoc false
  # `agent.dispatch`: runs another agent with a mission and a subset of the caller's skills,
  # within the limits of the caller's run, and returns its report.

  @behaviour Skillbook.Handler

  alias Skillbook.Agent.{Budget, NonInteractive, Scope}
  alias Skillbook.{Context, DispatchError, Flags, Result}

  @dispatch "agent.dispatch"
  @opening "You are an agent with one mission."

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, flags} <-
           Flags.cast(flags, "id", "one word of at most 40 characters", "report", &id/1),
         {:ok, agent} <- fetch_agent(context),
         {:ok, profile, names} <- Scope.narrow(context.view, List.wrap(flags["skills"])),
         :ok <- check_depth(agent, names),
         {:ok, limits} <- limits(agent, context, flags) do
      dispatch(flags, context, [profile: profile] ++ limits)
    end
  end

  defp id(text) do
    if is_binary(text) and text =~ ~r/\A[[:alnum:]_.-]{1,40}\z/u, do: {:ok, text}, else: :error
  end

  defp fetch_agent(%Context{agent: agent, book: book}) when agent != nil and book != nil,
    do: {:ok, agent}

  defp fetch_agent(_context), do: {:error, %DispatchError{kind: :no_run}}

  defp check_depth(%{depth: depth, max_depth: max}, _names) when depth >= max,
    do: {:error, %DispatchError{kind: :depth, max_depth: max}}

  defp check_depth(%{depth: depth, max_depth: max}, names) do
    if depth + 1 >= max and @dispatch in names,
      do: {:error, %DispatchError{kind: :handed_on, max_depth: max}},
      else: :ok
  end

  # The caller keeps one turn and a tenth of the rest, to use the report.
  defp limits(agent, context, flags) do
    turns = min(agent.turns_left - 1, flags["max-turns"] || agent.turns_left)
    time = share(min(agent.time_left, context.timeout))
    tokens = agent.tokens_left && share(agent.tokens_left)

    cost = agent.cost_left && agent.cost_left * 0.9
    left = [turns: turns, time: time, tokens: tokens || 1, cost: if(cost == 0.0, do: 0, else: 1)]

    case Enum.find(left, fn {_limit, left} -> left < 1 end) do
      nil -> {:ok, [max_turns: turns, max_time: time, max_tokens: tokens, max_cost: cost]}
      {limit, _} -> {:error, %DispatchError{kind: :limit, limit: limit}}
    end
  end

  defp share(number), do: div(number * 9, 10)

  defp dispatch(flags, %{agent: agent} = context, options) do
    id = flags["id"] || "agent-#{Budget.next_agent(agent.options[:parent])}"
    on_event = agent.options[:on_event]

    system = NonInteractive.system(@opening, agent.options)
    own = [system: system, skill: context.entry.name, on_event: &on_event.({:agent, id, &1})]
    options = Keyword.merge(agent.options, own ++ options)

    {result, results} =
      NonInteractive.run(context.book, input(flags), options, fn _result -> :ok end)

    text = NonInteractive.text(id, result, results)
    answer(result, text, NonInteractive.effects(results))
  end

  defp input(%{"mission" => mission} = flags) do
    if flags["context"],
      do: "#{mission}\n\nWhat you have to know:\n\n#{flags["context"]}",
      else: mission
  end

  defp answer(%{status: :done} = result, text, effects),
    do: {:ok, Result.ok(text, data: result, effects: effects)}

  defp answer(%{status: :pending} = result, text, effects) do
    metadata = %{pending: result.pending}

    {:ok,
     %Result{status: :pending, content: text, data: result, effects: effects, metadata: metadata}}
  end

  # The effects of an agent that did not finish count too.
  defp answer(result, text, effects) do
    error = %DispatchError{kind: :ended, status: result.status, text: text}
    {:ok, %{Result.error(error) | data: result, effects: effects}}
  end
end
