defmodule Skillbook.Agent.Loop do
  @moduledoc false
  # The turns of a run: checks the limits, updates the conversation, calls the model, runs the
  # commands and calls of its reply, and decides whether there is another turn.

  alias Skillbook.Agent.{Budget, Calls, Commands, Continuation, Conversation, DailyLimits}
  alias Skillbook.Agent.{Journal, Leader, ModelCall, Output, Preloading, Prices, Result, Settings}
  alias Skillbook.Agent.State
  alias Skillbook.Model.Content
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.Drain
  alias Skillbook.Transcript.Conversations

  alias Skillbook.{
    AgentError,
    Approval,
    Book,
    BudgetError,
    Extractor,
    Hook,
    Model,
    ModelError,
    OptionError,
    Profile,
    Report,
    SQL,
    StoppedError,
    Telemetry,
    Transcript,
    TranscriptError,
    View
  }

  @max_breaks 3
  # Failures after which the same request may succeed, so a reply that they cut off is continued.
  @breaks [:cut_off, :connection, :server, :rate_limited]
  @broken "The connection broke at the end of your reply. Go on from there, and repeat nothing."
  @not_answered "The connection broke in the middle of the reply above. Its commands did not run."
  @token_limit "Your reply reached its limit of tokens and ends there."
  @waits "Not run, because a call before it waits for an approval. If it is still wanted, " <>
           "write it again when that is decided."
  @empty %{
    blocks: "Your reply was empty. Write your answer to the user, or a command.",
    tools: "Your reply was empty. Write your answer to the user, or call a tool."
  }
  @no_call "Nothing ran: your reply has text that looks like commands, but calls no tool, and " <>
             "its text is for the user. If you meant to run them, call their tools; " <>
             "run_command runs any command. If they were only meant to be read, repeat your " <>
             "answer."

  @doc """
  As `Skillbook.Agent.run/3`. `profile` is that of the view, or an id that is read for each turn.
  """
  def run(view, profile, input, options) do
    state = %{start(view, options) | profile: profile}
    state = %{state | journal: Journal.new(state, profile, options)} |> Leader.begin(options)

    case before_turn(Hook.of(state.view), state, input) do
      {:refuse, text} -> span(state, "", &refused(&1, text))
      {_how, %{input: input}} -> start_turn(state, input)
    end
  end

  defp before_turn([], _state, input), do: {:cont, %{input: input}}

  defp before_turn(hooks, state, input),
    do: Hook.before(hooks, :before_turn, State.event(state, input: input), :input)

  defp start_turn(state, input) do
    Content.check!("the callback before_turn/2 of a hook", :input, input)

    span(state, Content.text(input), fn state ->
      # A conversation with an input that the model does not take could not be continued.
      case Model.check(state.model, [%{role: :user, content: input}]) do
        :ok -> take(state, input)
        {:error, error} -> failed(state, error)
      end
    end)
  end

  defp take(state, input) do
    state
    |> Conversation.resume(input)
    |> join_decided()
    |> wait_again()
    |> State.add_message(:input, input)
    |> add_instruction()
    |> guarded(fn state ->
      open = &Journal.open(&1, :input, Content.text(input))
      journalled(state, open, &(&1 |> Preloading.load() |> turn()))
    end)
  end

  # A run without its journal could not be continued without harm. An answer that is not stored is
  # not handled, so it is no part of the conversation, which is `transcript` without it.
  defp journalled(state, write, fun, transcript \\ nil) do
    case write.(state) do
      {:ok, state} ->
        fun.(state)

      {:error, error} ->
        finish(%{state | transcript: transcript || state.transcript}, :error, error)
    end
  end

  defp add_instruction(%{output: nil} = state), do: state

  defp add_instruction(%{output: output} = state),
    do: State.add_message(state, :note, Output.instruction(output))

  defp refused(state, text), do: finish(%{state | text: text}, :refused)

  @doc """
  Goes on with a conversation in which a call waited for an approval, with the result of the call.

  `id` is the id of the run that made the call; `options` are those of `run/4`.
  """
  def resume(view, id, ref, result, options) do
    state = %{start(view, options) | id: id}
    state = put_in(state.transcript.run, id)
    join = &(&1 |> waits_no_more(ref) |> join_decided() |> join(ref, result))
    go_on(state, view.profile, options, result.command || "", join)
  end

  @doc """
  Goes on with a conversation in which calls were decided that waited, and were not told.
  `profile` is that of `run/4`.
  """
  def tell(view, profile, options),
    do: view |> start(options) |> go_on(profile, options, "", &join_decided/1)

  defp go_on(state, profile, options, title, join) do
    state = %{state | profile: profile}
    state = %{state | journal: Journal.new(state, profile, options)} |> Leader.begin(options)

    span(state, "", fn state ->
      state
      |> Conversation.resume("")
      |> join.()
      |> guarded(fn state -> journalled(state, &Journal.open(&1, :turn, title), &next/1) end)
    end)
  end

  # Calls that were decided elsewhere: by another process, or without this conversation. In the
  # result of one that ran, others may have waited that were decided too.
  defp join_decided(%{transcript: transcript} = state) do
    case Approval.SuspendedRun.waiting(state.book, transcript) do
      {_open, []} -> state
      {_open, decided} -> decided |> Enum.reduce(state, &join/2) |> join_decided()
    end
  end

  defp join({ref, _approval, result}, state) do
    state = waits_no_more(state, ref)
    if result, do: join(state, ref, result), else: state
  end

  defp join(%{pending: pending} = state, ref, result) do
    introduction = "The result of the call that waited for #{ref}:\n\n"

    state =
      state
      |> Commands.note_results([result], [])
      |> Leader.note([result])
      |> Commands.add_report(%Report{results: [result]}, introduction)

    refs = for approval <- state.pending, do: approval.ref
    update_in(%{state | pending: pending ++ state.pending}.transcript.waiting, &(&1 ++ refs))
  end

  defp waits_no_more(state, ref) do
    state = %{state | pending: Enum.reject(state.pending, &(&1.ref == ref))}
    update_in(state.transcript.waiting, &List.delete(&1, ref))
  end

  # The model reads it before the input, which it answers.
  defp wait_again(%{pending: []} = state), do: state

  defp wait_again(state) do
    state = wait(state)
    %{state | again: state.pending, pending: []}
  end

  @doc """
  Goes on with a durable run from its journal: prepares its conversation, and handles the last
  answer of the model once more.
  """
  def continue(view, profile, journal, stored, options) do
    state = start(view, options)
    state = %{state | id: journal.values.run, profile: profile}
    {state, stage} = Journal.restore(state, journal, stored)
    state = Leader.begin(state, options)

    span(state, "", fn state -> guarded(state, &go_on(&1, stage)) end)
  end

  defp go_on(state, :input),
    do: state |> Conversation.resume("") |> Preloading.load() |> turn()

  defp go_on(state, :turn), do: state |> Conversation.resume("") |> next()

  defp go_on(state, {:reply, %{message: message} = reply}) do
    state = Conversation.resume(state, "")
    state = if message, do: State.restore_message(state, message), else: state
    text = if message, do: message.content, else: ""

    case reply do
      %{broken: kind, reason: reason} ->
        handle_break(state, %ModelError{kind: kind, reason: reason, text: text})

      %{finish_reason: reason, names: names} ->
        calls = if message, do: Enum.zip(message.tool_calls, names), else: []
        handle_reply(state, %{text: text, finish_reason: reason}, calls)
    end
  end

  @doc "`context.agent` for a command outside of a turn, from the options of `run/4`."
  def agent(view, options) do
    {state, run} = {start(view, options), self()}
    fn -> Commands.agent(state, run) end
  end

  defp start(view, options) do
    with {:error, error} <- Settings.validate_run(options), do: raise(error)
    transcript = options[:transcript] || Transcript.new(view.profile.id)

    # Raises for wrong options of commands now, not at the first command. Making the grammar below
    # does the same for its options.
    _ = Pipeline.run(view, "", Settings.commands(options))

    if transcript.profile != view.profile.id do
      raise TranscriptError,
        expected: "one of the profile #{inspect(view.profile.id)}",
        got: "one of #{inspect(transcript.profile)}"
    end

    view |> State.new(transcript, options) |> check_prices(options) |> ModelCall.make_grammar()
  end

  # A limit that cannot be counted is none.
  defp check_prices(%{prices: prices} = state, options) do
    if options[:max_cost] || state.limits != [] do
      if name = Prices.missing(prices, state.model) do
        expected = "a price of the model #{inspect(name)}, since costs are limited,"
        problem = {:invalid, expected, Map.keys(prices)}
        raise %OptionError{subject: "a book", option: :prices, problem: problem}
      end
    end

    state
  end

  defp span(state, input, fun) do
    metadata = State.run_metadata(state)
    %{id: profile} = own = state.view.profile
    tenant = Profile.home(own)
    run = %{run: state.id, profile: profile, tenant: tenant, depth: state.depth, input: input}

    Telemetry.span([:skillbook, :agent], metadata, fn ->
      record = Conversations.start(state.book, run, state.clock)

      result =
        Journal.run(state.journal, fn ->
          state |> State.recorded(record) |> fun.() |> after_turn(state)
        end)

      Conversations.finish(record, result)
      # Calls of the conversation that still wait go on from here.
      Approval.SuspendedRun.renew(state.book, result.transcript)
      # Those that no result has.
      Approval.Notice.let_go(state.book)
      {:stop, outcome(result), Map.take(result, [:status, :turns, :usage, :cost])}
    end)
  end

  defp after_turn(result, %{view: view} = state) do
    case Hook.of(view) do
      [] ->
        result

      hooks ->
        event = State.event(state, result: result, text: result.text)
        %{result | text: Hook.after_text(hooks, :after_turn, event)}
    end
  end

  defp outcome(%Result{status: :error, error: error} = result),
    do: {:error, %AgentError{error: error, result: result}}

  defp outcome(result), do: {:ok, result}

  # A book may stop at any moment, and its database may end. Nothing of the conversation is lost.
  defp guarded(state, fun) do
    fun.(state)
  rescue
    error in ArgumentError ->
      if ended = ended(state.book),
        do: finish(state, :error, ended),
        else: reraise(error, __STACKTRACE__)
  catch
    :exit, reason ->
      if ended = ended(state.book),
        do: finish(state, :error, ended),
        else: :erlang.raise(:exit, reason, __STACKTRACE__)
  end

  defp ended(nil), do: nil

  defp ended(name) do
    book = Book.find(name)

    cond do
      book == nil or Drain.state(name) != :open -> %StoppedError{book: name}
      database?(book) -> nil
      true -> SQL.Error.closed()
    end
  end

  defp database?(book) do
    _ = Book.sql(book)
    true
  rescue
    ArgumentError -> false
  end

  defp turn(%{book: book} = state) do
    if book != nil and Drain.state(book) != :open,
      do: finish(state, :error, %StoppedError{book: book}),
      else: next_turn(state)
  end

  defp next_turn(state) do
    case reached_limit(state) || DailyLimits.reached(state) do
      nil ->
        %{state | turns: state.turns + 1}
        |> Conversation.add_news()
        |> Conversation.compact()
        |> ModelCall.make_grammar()
        |> call_model()

      %BudgetError{} = error ->
        finish(state, :over_budget, error)

      status ->
        finish(state, status)
    end
  end

  defp call_model(state) do
    case ModelCall.check(state, Conversation.for_model(state)) do
      {:ok, messages} ->
        Budget.use_turn(state.budget)
        State.emit(state, {:turn, state.turns})
        call_model(state, messages)

      # The model was not called.
      {:refused, text} ->
        refused(%{state | turns: state.turns - if(state.halved, do: 0, else: 1)}, text)
    end
  end

  defp call_model(state, messages) do
    before = state.transcript

    case ModelCall.chat(state, messages) do
      {:ok, answer} ->
        calls = Calls.read(state, answer.tool_calls)
        for call <- calls, do: State.emit(state, {:command, Calls.line(state.view, call)})

        %{state | halved: false}
        |> ModelCall.add_reply(answer, Enum.map(calls, &elem(&1, 0)), messages)
        |> guarded(fn state ->
          reply = %{finish_reason: answer.finish_reason, names: Enum.map(calls, &elem(&1, 1))}
          reply = Map.put(reply, :added, calls != [] or String.trim(answer.text) != "")
          journalled(state, &Journal.reply(&1, reply), &handle_reply(&1, answer, calls), before)
        end)

      {:error, %{kind: :too_long, text: ""} = error} when not state.halved ->
        halve(state, error)

      {:error, %{text: ""} = error} ->
        failed(state, error)

      {:error, error} ->
        state
        |> ModelCall.add_reply(%{text: error.text, usage: nil, opaque: nil}, [], messages)
        |> guarded(fn state ->
          reply = %{broken: error.kind, reason: to_string(error.reason)}
          reply = Map.put(reply, :added, String.trim(error.text) != "")
          journalled(state, &Journal.reply(&1, reply), &handle_break(&1, error), before)
        end)
    end
  end

  # The server's limit is not known before, or its tokens are not those that were counted.
  defp halve(state, error) do
    with nil <- reached_limit(state),
         {:ok, state} <- Conversation.halve(state) do
      call_model(%{state | halved: true})
    else
      :error -> failed(state, error)
      status -> finish(state, status, error)
    end
  end

  # Further commands of the model may depend on the decision, so they do not run.
  defp handle_reply(%{closing: true} = state, answer, calls) do
    report = Commands.skip(state, answer.text, @waits)
    results = for call <- calls, do: Commands.skipped(state, Calls.line(state.view, call), @waits)
    text = Continuation.join(state, answer.text, report.text)

    %{state | text: if(text == "", do: state.text, else: text)}
    |> Calls.add_results(calls, results)
    |> Commands.add_report(report)
    |> State.emit_transcript()
    |> finish(:pending)
  end

  defp handle_reply(state, %{finish_reason: finish_reason} = answer, calls) do
    cut_off? = finish_reason in [:length, :filtered]
    if cut_off?, do: State.emit(state, {:cut_off, finish_reason})
    report = Commands.run(state, answer.text, not cut_off?)
    results = Calls.run(state, calls, finish_reason, report.results)
    ran? = report.results != [] or report.incomplete != [] or calls != []

    text = Continuation.join(state, answer.text, report.text)
    done? = state.broken != nil and not state.broken.ran? and text != ""

    # Results come directly after their calls.
    state =
      %{state | text: text, breaks: 0, broken: nil}
      |> Commands.note_results(report.results ++ results, report.incomplete)
      |> Leader.note(report.results ++ results)
      |> Calls.add_results(calls, results)

    cond do
      ran? ->
        %{state | empty: false}
        |> Commands.add_report(report)
        |> add_token_limit(finish_reason)
        |> Commands.add_circle()
        |> State.emit_transcript()
        |> next()

      cut_off? ->
        state |> State.emit_transcript() |> finish(:cut_off)

      # The connection may break after the last word.
      String.trim(answer.text) == "" and not done? ->
        empty(state)

      report.notes != [] and not state.noted ->
        note(%{state | noted: true, empty: false}, :note, not_run(state, report))

      true ->
        answered(state)
    end
  end

  defp answered(%{output: nil} = state), do: state |> State.emit_transcript() |> finish(:done)

  defp answered(%{output: output} = state) do
    case Output.parse(output, state.text) do
      {:ok, object} ->
        state |> State.emit_transcript() |> finish(:done) |> Map.put(:output, object)

      {:error, error} when state.repaired ->
        state |> State.emit_transcript() |> finish(:invalid_output, error)

      {:error, error} ->
        note(%{state | repaired: true, empty: false}, :invalid_output, Output.repair(error))
    end
  end

  defp add_token_limit(state, :length), do: State.add_message(state, :note, @token_limit)
  defp add_token_limit(state, _reason), do: state

  # The user would get no answer. Small models sometimes do this after a result.
  defp empty(%{empty: true} = state), do: state |> State.emit_transcript() |> finish(:empty)
  defp empty(state), do: note(%{state | empty: true}, :empty, @empty[state.protocol])

  defp not_run(%{protocol: :blocks}, report), do: to_string(report)
  defp not_run(%{protocol: :tools}, _report), do: @no_call

  defp note(state, event, text) do
    State.emit(state, {event, text})
    state |> State.add_message(:note, text) |> State.emit_transcript() |> next()
  end

  # Text that was emitted cannot be taken back, so the call is not repeated; the model continues.
  defp handle_break(%{breaks: breaks, closing: false} = state, %ModelError{} = error)
       when error.kind in @breaks and breaks + 1 < @max_breaks do
    %{text: text} = error
    State.emit(state, {:cut_off, :broken})
    report = Commands.run(state, text, false)
    ran? = report.results != [] or report.incomplete != []

    %{state | breaks: breaks + 1}
    |> Continuation.broken(text, report.text, ran?)
    |> Commands.note_results(report.results, report.incomplete)
    |> Leader.note(report.results)
    |> Commands.add_report(report)
    |> State.add_message(:note, @broken)
    |> State.emit_transcript()
    |> next()
  end

  defp handle_break(state, error) do
    {:ok, %{text: text}} =
      with {:error, _} <- Extractor.extract(error.text), do: {:ok, %{text: error.text}}

    %{state | text: Continuation.join(state, error.text, text)}
    |> State.add_message(:note, @not_answered)
    |> State.emit_transcript()
    |> failed(error)
  end

  # The model is asked once more, to tell the user that the call waits.
  defp next(%{pending: [_ | _]} = state),
    do: guarded(%{wait(state) | closing: true}, &turn_as(&1, Leader.profile(&1)))

  defp next(state) do
    if Commands.stuck?(state),
      do: finish(state, :stuck),
      else: guarded(state, &turn_as(&1, Leader.profile(&1)))
  end

  # The conversation is stored with the calls, since they may be approved at any time.
  defp wait(%{pending: pending} = state) do
    waiting = Enum.uniq(state.transcript.waiting ++ Enum.map(pending, & &1.ref))
    state = %{state | transcript: %{state.transcript | run: state.id, waiting: waiting}}
    stored = Approval.SuspendedRun.store(state.book, pending, state.id, state.transcript)
    %{state | pending: stored}
  end

  defp turn_as(state, {:ok, profile}), do: turn(%{state | view: View.of(state.book, profile)})
  defp turn_as(state, {:error, error}), do: finish(state, :error, error)

  defp reached_limit(state) do
    case Budget.left(state.budget) do
      %{turns: 0} -> :max_turns
      %{time: 0} -> :max_time
      %{tokens: 0} -> :max_tokens
      %{cost: 0} -> :max_cost
      _ -> nil
    end
  end

  # A model that is stopped at the run's own time limit has not failed.
  defp failed(state, %{kind: :timeout} = error),
    do: finish(state, if(State.time_left(state) == 0, do: :max_time, else: :error), error)

  defp failed(state, error), do: finish(state, :error, error)

  # Calls wait, also if a limit or a failure kept the model from saying so.
  defp finish(state, status, error \\ nil) do
    %Result{
      status: if(state.closing, do: :pending, else: status),
      text: state.text,
      transcript: state.transcript,
      usage: Budget.usage(state.budget),
      cost: Budget.cost(state.budget),
      turns: state.turns,
      pending: state.again ++ state.pending,
      leader: Leader.id(state),
      error: error
    }
  end
end
