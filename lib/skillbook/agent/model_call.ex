defmodule Skillbook.Agent.ModelCall do
  @moduledoc false
  # Calls the model once per turn: streams its reply as events, reports retries, sends the
  # grammar, and counts tokens.

  alias Skillbook.Agent.{Budget, State}
  alias Skillbook.{Extractor, Grammar, Model, Telemetry, Transcript}

  @doc "Sends the messages to the model."
  def chat(state, messages) do
    Telemetry.span([:skillbook, :model], metadata(state), fn ->
      case stream(state, messages) do
        {:ok, answer} = ok -> {:stop, ok, Map.take(answer, [:finish_reason, :usage])}
        {:error, error} = failed -> {:exception, failed, %{kind: error.kind}}
      end
    end)
  end

  defp metadata(state), do: Map.put(State.metadata(state), :turn, state.turns)

  defp stream(state, messages) do
    # `Skillbook.Model.chat/4` passes no accumulator, so the extractor is kept in the process
    # dictionary between chunks.
    key = {__MODULE__, make_ref()}
    Process.put(key, Extractor.new(Keyword.take(state.commands, [:unclosed])))

    try do
      answer =
        Model.chat(state.model, messages, chat_options(state), fn chunk ->
          emit_events(state, key, &Extractor.feed(&1, chunk))
        end)

      emit_events(state, key, &Extractor.finish/1)
      answer
    after
      Process.delete(key)
    end
  end

  defp emit_events(state, key, step) do
    {events, extractor} = step.(Process.get(key))
    Process.put(key, extractor)
    for {kind, _} = event when kind in [:text, :command] <- events, do: State.emit(state, event)
    :ok
  end

  defp chat_options(state) do
    left = State.time_left(state)
    timeout = min(state.chat[:timeout] || left, left)
    options = [timeout: max(timeout, 1), on_retry: &report_retry(state, &1)]
    state |> chat_with_grammar() |> Keyword.merge(options)
  end

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

  @doc "Adds the reply to the conversation and its tokens to the budget."
  def add_reply(state, answer, messages) do
    usage = answer.usage || estimate(messages, answer.text)
    estimated = answer.usage == nil
    State.emit(state, {:usage, Map.put(usage, :estimated, estimated)})
    Budget.use_tokens(state.budget, usage, estimated)
    State.add_message(state, :reply, answer.text, usage: answer.usage)
  end

  defp estimate(messages, text) do
    prompt = messages |> Enum.map(&Transcript.estimate(&1.content)) |> Enum.sum()
    %{prompt_tokens: prompt, completion_tokens: Transcript.estimate(text)}
  end
end
