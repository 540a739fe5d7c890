defmodule Skillbook.Agent.Loop do
  @moduledoc false
  # The turns of a run: checks the limits, updates the conversation, calls the model, runs the
  # commands of its reply, and decides whether there is another turn.

  alias Skillbook.Agent.{Budget, Commands, Conversation, ModelCall, Preloading, Result}
  alias Skillbook.Agent.{Settings, State}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.{Extractor, ModelError, Telemetry, Transcript, TranscriptError, View}

  @max_breaks 3
  @broken "The connection broke at the end of your reply. Go on from there, and repeat nothing."
  @not_answered "The connection broke in the middle of the reply above. Its commands did not run."
  @token_limit "Your reply reached its limit of tokens and ends there."

  @doc "As `Skillbook.Agent.run/3`."
  def run(book, input, options) do
    with {:error, error} <- Settings.validate_run(options), do: raise(error)
    view = View.of(book, options[:profile] || "default")
    transcript = options[:transcript] || Transcript.new(view.profile.id)

    # Raises for wrong options of commands now, not at the first command. Making the grammar below
    # does the same for its options.
    _ = Pipeline.run(view, "", options[:commands] || [])

    if transcript.profile != view.profile.id do
      raise TranscriptError,
        expected: "one of the profile #{inspect(view.profile.id)}",
        got: "one of #{inspect(transcript.profile)}"
    end

    state = book |> State.new(view, transcript, options) |> ModelCall.make_grammar()

    Telemetry.span(
      [:skillbook, :agent],
      Map.put(State.metadata(state), :depth, state.depth),
      fn ->
        result =
          state
          |> Conversation.resume(input)
          |> State.add_message(:input, input)
          |> Preloading.load()
          |> turn()

        {:stop, result, Map.take(result, [:status, :turns])}
      end
    )
  end

  defp turn(state) do
    case reached_limit(state) do
      nil ->
        %{state | turns: state.turns + 1}
        |> Conversation.add_news()
        |> Conversation.compact()
        |> ModelCall.make_grammar()
        |> call_model()

      status ->
        finish(state, status)
    end
  end

  defp call_model(state) do
    Budget.use_turn(state.budget)
    State.emit(state, {:turn, state.turns})
    messages = Transcript.for_model(state.transcript)

    case ModelCall.chat(state, messages) do
      {:ok, answer} ->
        state
        |> ModelCall.add_reply(answer, messages)
        |> handle_reply(answer.text, answer.finish_reason)

      {:error, %{text: ""} = error} ->
        failed(state, error)

      {:error, error} ->
        state
        |> ModelCall.add_reply(%{text: error.text, usage: nil}, messages)
        |> handle_break(error)
    end
  end

  defp handle_reply(state, text, finish_reason) do
    cut_off? = finish_reason in [:length, :filtered]
    if cut_off?, do: State.emit(state, {:cut_off, finish_reason})
    report = Commands.run(state, text, not cut_off?)
    state = %{state | text: report.text, breaks: 0}
    no_commands? = report.results == [] and report.incomplete == []

    cond do
      no_commands? and report.notes != [] and not state.noted and not cut_off? ->
        note = to_string(report)
        State.emit(state, {:note, note})

        %{state | noted: true}
        |> State.add_message(:note, note)
        |> State.emit_transcript()
        |> next()

      no_commands? ->
        state |> State.emit_transcript() |> finish(if(cut_off?, do: :cut_off, else: :done))

      finish_reason == :length ->
        state
        |> Commands.add_report(report)
        |> State.add_message(:note, @token_limit)
        |> State.emit_transcript()
        |> next()

      true ->
        state |> Commands.add_report(report) |> State.emit_transcript() |> next()
    end
  end

  # Text that was emitted cannot be taken back, so the call is not repeated; the model continues.
  defp handle_break(%{breaks: breaks} = state, %ModelError{kind: :cut_off, text: text})
       when breaks + 1 < @max_breaks do
    State.emit(state, {:cut_off, :broken})
    report = Commands.run(state, text, false)

    %{state | text: report.text, breaks: breaks + 1}
    |> Commands.add_report(report)
    |> State.add_message(:note, @broken)
    |> State.emit_transcript()
    |> next()
  end

  defp handle_break(state, error) do
    {:ok, %{text: text}} =
      with {:error, _} <- Extractor.extract(error.text), do: {:ok, %{text: error.text}}

    %{state | text: text}
    |> State.add_message(:note, @not_answered)
    |> State.emit_transcript()
    |> failed(error)
  end

  defp next(state) do
    if stuck?(state),
      do: finish(state, :stuck),
      else: turn(%{state | view: View.of(state.book, state.view.profile)})
  end

  defp stuck?(state),
    do: Enum.any?(state.failures, fn {_command, times} -> times >= state.max_repeats end)

  defp reached_limit(state) do
    case Budget.left(state.budget) do
      %{turns: 0} -> :max_turns
      %{time: 0} -> :max_time
      %{tokens: 0} -> :max_tokens
      _ -> nil
    end
  end

  # A model that is stopped at the run's own time limit has not failed.
  defp failed(state, %{kind: :timeout} = error),
    do: finish(state, if(State.time_left(state) == 0, do: :max_time, else: :error), error)

  defp failed(state, error), do: finish(state, :error, error)

  defp finish(state, status, error \\ nil) do
    %Result{
      status: status,
      text: state.text,
      transcript: state.transcript,
      usage: Budget.usage(state.budget),
      turns: state.turns,
      error: error
    }
  end
end
