defmodule Skillbook.Agent.ModelCall do
  @moduledoc false
  # Calls the model once per turn: streams its reply as events, reports retries, sends the tools
  # or the grammar, and counts tokens.

  alias Skillbook.Agent.{Calls, Continuation, Prices, State}
  alias Skillbook.{Extractor, Grammar, Hook, Model, Telemetry, Tools, Transcript}

  @doc "Sends the messages to the model."
  def chat(state, messages) do
    Telemetry.span([:skillbook, :model], metadata(state), fn ->
      case stream(state, messages) do
        {:ok, answer} = ok -> {:stop, ok, told(state, answer, messages)}
        {:error, error} = failed -> {:exception, failed, %{kind: error.kind}}
      end
    end)
  end

  @doc "The messages as hooks let them pass; `{:refused, text}` if one refuses them."
  @spec check(State.t(), [Model.message()]) ::
          {:ok, [Model.message()]} | {:refused, String.t()}
  def check(state, messages) do
    with [_ | _] = hooks <- Hook.of(state.view),
         event = State.event(state, messages: messages),
         {_how, %{messages: messages}} <- Hook.before(hooks, :before_model, event, :messages) do
      {:ok, messages}
    else
      [] -> {:ok, messages}
      {:refuse, text} -> {:refused, text}
    end
  end

  defp metadata(state) do
    state
    |> State.metadata()
    |> Map.put(:turn, state.turns)
    |> Map.merge(Model.describe(state.model))
  end

  # The cost is that of the run, by the same estimate if the model does not count tokens.
  defp told(state, answer, messages) do
    by = answer[:model]
    calls = fn -> for {call, _name} <- Calls.read(state, answer.tool_calls), do: call end
    usage = answer.usage || estimate(state, messages, answer.text, calls.())
    cost = Prices.cost(state.prices, state.model, by, usage)

    answer
    |> Map.take([:finish_reason, :usage])
    |> Map.merge(%{answered_by: by, cost: cost && Prices.amount(cost)})
  end

  defp stream(state, messages) do
    # `Skillbook.Model.chat/4` passes no accumulator, so the extractor is kept in the process
    # dictionary between chunks.
    key = {__MODULE__, make_ref()}
    extractor = Extractor.new(Keyword.take(state.commands, [:unclosed]))
    Process.put(key, {extractor, state.broken && ""})
    feed = fn text -> emit_events(state, key, text, &Extractor.feed(&1, text)) end
    hooks = Hook.of(state.view)
    # Nobody reads a text before hooks have checked it.
    held? = Hook.any?(hooks, :after_model)

    try do
      on_text = if held?, do: fn _chunk -> :ok end, else: feed
      answer = Model.chat(state.model, messages, chat_options(state), on_text)
      answer = if held?, do: checked(answer, hooks, state, feed), else: answer
      emit_events(state, key, "", &Extractor.finish/1)
      answer
    after
      Process.delete(key)
    end
  end

  defp checked({_how, %{text: ""}} = answer, _hooks, _state, _feed), do: answer

  defp checked({how, %{text: text} = answer}, hooks, state, feed) do
    case Hook.after_text(hooks, :after_model, State.event(state, text: text)) do
      ^text ->
        feed.(text)
        {how, answer}

      other ->
        feed.(other)
        # The vendor's data are of the text that was.
        answer = if how == :ok, do: %{answer | opaque: nil}, else: answer
        {how, %{answer | text: other}}
    end
  end

  defp emit_events(state, key, chunk, step) do
    {extractor, start} = Process.get(key)
    {events, extractor} = step.(extractor)
    {events, start} = continue(state, events, start && start <> chunk)
    Process.put(key, {extractor, start})
    for {kind, _} = event when kind in [:text, :command] <- events, do: State.emit(state, event)
    :ok
  end

  # The first text of a reply that goes on after a break. `start` is the reply up to it.
  defp continue(_state, events, nil), do: {events, nil}

  defp continue(state, events, start) do
    case Enum.find_index(events, &match?({:text, _}, &1)) do
      nil ->
        {events, start}

      place ->
        gap = &Continuation.gap(state, start, &1)
        {List.update_at(events, place, fn {:text, text} -> {:text, gap.(text) <> text} end), nil}
    end
  end

  defp chat_options(state) do
    left = State.time_left(state)
    timeout = min(state.chat[:timeout] || left, left)
    options = [timeout: max(timeout, 1), on_retry: &report_retry(state, &1)]
    state |> chat_with_grammar() |> Keyword.merge(options) |> Keyword.merge(tools(state))
  end

  defp tools(%{transcript: %{tools: [_ | _] = tools}} = state),
    do: [tools: tools, on_tool_call: &State.emit(state, {:tool_call, &1})]

  defp tools(_state), do: []

  defp report_retry(state, retry) do
    metadata = Map.merge(metadata(state), %{attempt: retry.attempt, kind: retry.error.kind})
    delay = System.convert_time_unit(retry.delay, :millisecond, :native)
    Telemetry.event([:skillbook, :model, :retry], %{delay: delay}, metadata)
    State.emit(state, {:retry, retry})
  end

  @doc """
  Makes the grammar of the view, if the run uses one.

  The grammar of a large book takes a while, so it is made once per generation.
  """
  def make_grammar(%{grammar: nil} = state), do: state

  def make_grammar(%{made_grammar: {generation, _}, view: %{generation: generation}} = state),
    do: state

  def make_grammar(%{view: view} = state),
    do: %{state | made_grammar: {view.generation, Grammar.gbnf(view, state.grammar)}}

  defp chat_with_grammar(%{grammar: nil, chat: chat}), do: chat

  defp chat_with_grammar(%{made_grammar: {_generation, grammar}, chat: chat}),
    do: Keyword.put(chat, :grammar, grammar)

  @doc """
  Adds the reply with its calls to the conversation, and its tokens to the budget.

  A reply without text and calls is left out, since many models refuse an empty message.
  """
  def add_reply(state, answer, calls, messages) do
    usage = answer.usage || estimate(state, messages, answer.text, calls)
    estimated = answer.usage == nil
    State.emit(state, {:usage, Map.put(usage, :estimated, estimated)})
    State.spend(state, state.model, answer[:model], usage, estimated)

    if calls == [] and String.trim(answer.text) == "" do
      state
    else
      State.add_message(state, :reply, answer.text,
        usage: answer.usage,
        tool_calls: calls,
        opaque: answer.opaque
      )
    end
  end

  defp estimate(state, messages, text, calls) do
    prompt = messages |> Enum.map(&Transcript.message_tokens/1) |> Enum.sum()

    %{
      prompt_tokens: prompt + Tools.tokens(state.transcript.tools || []),
      completion_tokens: Transcript.message_tokens(%{content: text, tool_calls: calls}),
      cached_tokens: 0,
      cache_write_tokens: 0
    }
  end
end
