defmodule Skillbook.Agent do
  @moduledoc ~S"""
  The loop around a model: it is asked, its commands run, and it is told what they gave, until a reply has no commands.

      iex> alias Skillbook.{Agent, Model}
      iex> {:ok, _pid} = Skillbook.start_link(name: :looped, sources: ["test/support/fixtures/skills"], store: ":memory:")
      iex> model = Model.Function.new(fn messages, _options ->
      ...>   case List.last(messages).content do
      ...>     "Remember that I like tea." -> "On it.\n\n```cmd\nmemory.save --content \"Likes tea\"\n```"
      ...>     "[1] memory.save" <> _report -> "I will remember it."
      ...>   end
      ...> end)
      iex> result = Agent.run(:looped, "Remember that I like tea.", model: model)
      iex> {result.status, result.text, result.turns}
      {:done, "I will remember it.", 2}
      iex> Enum.map(result.transcript.messages, & &1.kind)
      [:prompt, :input, :reply, :report, :reply]

  ## Turns

  Each turn takes a new view of the book, and works with it until it ends. The system prompt stays as it was made at first,
  so that what the model's server keeps of the conversation stays of use; what changed since is told in a message
  (`Skillbook.changes/2`).

  The text of a skill that is in the conversation already, and has not changed since, is not sent again: the report points to
  it.

  A block that a reply leaves open does not run, and the report says so. If the connection breaks in the middle of a reply, the
  blocks that were closed run, and the model is told where its reply ended; at the third break in a row the run ends with the
  error.

  A reply without commands that has what looks like one (`:notes` of `Skillbook.Report`) is not the answer yet if no
  command ran before: the model is told, once in a run.

  ## Events

  `:on_event` is told, in this order of a turn:

    * `{:turn, number}` - the model is asked
    * `{:retry, retry}` - an attempt failed and is made again, a `t:Skillbook.Model.retry/0`
    * `{:text, text}` - more of the text for the user, without blocks. Joined, it does not depend on how the reply came in
    * `{:command, line}` - a command, once its line is complete
    * `{:usage, usage}` - the turn's `:prompt_tokens`, `:completion_tokens`, and whether they are `:estimated`
    * `{:result, result}` - what a command gave, a `Skillbook.Result`
    * `{:incomplete, lines}` - commands that do not run, since their block was cut off
    * `{:note, text}` - the model is told that what looks like a command did not run
    * `{:cut_off, why}` - the reply is not whole: `:length`, it reached its limit of tokens; `:filtered`, the server withheld
      the rest; `:broken`, the connection broke
    * `{:transcript, transcript}` - the conversation with the turn in it

  and between turns:

    * `{:news, text}` - the model is told that skills changed
    * `{:compacted, %{messages: count, restored: names, left_out: names}}` - messages were left out to save room

  and while `agent.dispatch` runs, `{:agent, id, event}`: an event of the agent of this id, from the process of its command.
  """

  alias Skillbook.Agent.{Budget, Result, Settings, SkillsRead}

  alias Skillbook.Reply.Pipeline

  alias Skillbook.{
    Extractor,
    Grammar,
    Model,
    ModelError,
    Prompt,
    Report,
    Telemetry,
    Transcript,
    TranscriptError,
    View
  }

  alias Skillbook.Transcript.Message

  @breaks 3
  @broken "The connection broke at the end of your reply. Go on from there, and repeat nothing."
  @not_answered "The connection broke in the middle of the reply above. Its commands did not run."
  @reached "Your reply reached its limit of tokens and ends there."

  defstruct [
    :book,
    :view,
    :model,
    :transcript,
    :on_event,
    :system,
    :prompt,
    :chat,
    :grammar,
    :commands,
    :budget,
    :max_repeats,
    :max_context,
    :depth,
    :max_depth,
    :clock,
    turns: 0,
    breaks: 0,
    noted: false,
    held: {nil, nil},
    text: "",
    failing: %{}
  ]

  @doc """
  Says something to a model on behalf of a profile, and goes on until it has answered.

  It runs in the calling process: if that ends, so do the request and the commands.

  ## Options

    * `:model` - a model, such as a `Skillbook.Model.OpenAI`. Required
    * `:profile` - the id of one of the book's profiles, or a profile; `"default"` if it is left out
    * `:transcript` - a `Skillbook.Transcript` to go on from. One of another profile's id raises a
      `Skillbook.TranscriptError`. What it holds of skills that the profile may no longer see is taken out of it
    * `:system` - text that stands before the skills in the system prompt of a new conversation
    * `:prompt` - the options of `Skillbook.prompt/2`
    * `:chat` - the options of `Skillbook.Model.chat/4`, such as `temperature: 0.2`
    * `:grammar` - the options of `Skillbook.Grammar.gbnf/2`, such as `[]`: each reply is held to the grammar of what its turn's
      view shows, if the model's server knows how. `nil` (the default) holds it to none
    * `:commands` - the options of `Skillbook.run/3`, such as `assigns: %{user: 1}`
    * `:on_event` - a function that gets each event, or a process that gets `{:skillbook_agent, run, event}`, where `run` is
      the process of the run
    * `:max_turns` - how often the model may be asked; 20 by default. What agents use that it dispatches counts for this and
      the next two
    * `:max_time` - how many milliseconds all of it may take; 600,000 by default
    * `:max_tokens` - how many tokens all prompts and replies may have; `nil` (the default) for no limit. It is looked at
      between turns, by what the model counts, else by an estimate
    * `:max_repeats` - how often in a row the same command may fail in the same way; 3 by default
    * `:max_context` - how many tokens the conversation may have, by an estimate. Above that old messages are left out as
      of `compact/2` down to the half of it, and what was read in them is restored in up to a quarter of it. `nil` (the
      default) leaves nothing out
    * `:max_depth` - how many agents may be inside of each other, by `agent.dispatch`; 1 by default, 0 for none
    * `:depth` - how many runs this one is inside of; 0 by default. Handlers see it
    * `:parent` - what the run has that this one is inside of. `context.agent.options` has it, for handlers that make runs
    * `:clock` - the function that gives the time; `&DateTime.utc_now/0` by default
  """
  @spec run(Skillbook.book(), String.t(), keyword()) :: Result.t()
  def run(book, input, options) when is_binary(input) do
    with {:error, error} <- Settings.run(options), do: raise(error)
    view = View.of(book, options[:profile] || "default")
    transcript = options[:transcript] || Transcript.new(view.profile.id)

    # Wrong options are said now, not by the first command; those of a grammar when it is made, before the model is asked.
    _ = Pipeline.run(view, "", options[:commands] || [])

    if transcript.profile != view.profile.id do
      raise TranscriptError,
        expected: "one of the profile #{inspect(view.profile.id)}",
        got: "one of #{inspect(transcript.profile)}"
    end

    state = %__MODULE__{
      book: book,
      view: view,
      model: options[:model],
      transcript: transcript,
      on_event: teller(options[:on_event]),
      system: options[:system] || "",
      prompt: options[:prompt] || [],
      chat: options[:chat] || [],
      grammar: options[:grammar],
      commands: options[:commands] || [],
      budget: budget(options),
      max_repeats: Keyword.get(options, :max_repeats, 3),
      max_context: options[:max_context],
      depth: Keyword.get(options, :depth, 0),
      max_depth: Keyword.get(options, :max_depth, 1),
      clock: options[:clock] || (&DateTime.utc_now/0)
    }

    state = held(state)

    Telemetry.span([:skillbook, :agent], Map.put(about(state), :depth, state.depth), fn ->
      result = state |> begin() |> add(:input, input) |> turn()
      {:stop, result, Map.take(result, [:status, :turns])}
    end)
  end

  defp budget(options) do
    max_turns = Keyword.get(options, :max_turns, 20)
    max_time = Keyword.get(options, :max_time, 600_000)
    Budget.new(max_turns, max_time, options[:max_tokens], options[:parent])
  end

  @doc """
  The conversation without its oldest messages, if it has more than so many tokens by an estimate.

  Replies are left out together with the reports of their commands. The system prompt, what the user said last, and the last
  exchange always stay, so it may be larger than asked for. Which skills were read in what is left out is kept in `:left_out`,
  for `rehydrate/3`. A note says to the model that something is missing.
  """
  @spec compact(Transcript.t(), pos_integer()) :: Transcript.t()
  defdelegate compact(transcript, max_tokens), to: SkillsRead

  @doc """
  The shortest text that brings back the skills which were read in a conversation and are no longer in it.

  They are read again through the view: what it does not show is neither restored nor named. The most recent come first;
  those that have no room in so many tokens are named, and left out.

    * `:text` - the text for the model; empty if there is nothing to restore
    * `:activations` - those whose texts it holds, for the `Skillbook.Transcript.Message` that it becomes part of
    * `:left_out` - the names of those that had no room

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> read = %{name: "haiku", hash: "", command: "haiku", answer: ""}
      iex> transcript = %Skillbook.Transcript{profile: "", left_out: [read, %{read | name: "gone"}]}
      iex> Skillbook.Agent.rehydrate(Skillbook.View.all(catalog), transcript, 1_000).text
      "What you read before, as it is now:\\n\\n[1] get_skill: haiku\\nok\\n  Write three lines of five, seven and five syllables."
      iex> Skillbook.Agent.rehydrate(Skillbook.View.all(catalog), transcript, 10).text
      "You also read, and there is no room for it here: haiku. `get_skill: NAME` reads it again."
  """
  @spec rehydrate(View.t(), Transcript.t(), non_neg_integer()) :: %{
          text: String.t(),
          activations: [Message.activation()],
          left_out: [String.t()]
        }
  def rehydrate(view, transcript, max_tokens \\ 4_000),
    do: SkillsRead.rehydrate(view, transcript, max_tokens)

  # The beginning

  defp begin(%{transcript: %{messages: []}} = state) do
    state = told(state)
    if prompt(state) == "", do: state, else: add(state, :prompt, prompt(state))
  end

  # What was kept elsewhere meanwhile has no view: if its prompt is no longer the same, the model needs a new one.
  defp begin(%{view: view, transcript: %{view: old} = transcript} = state) do
    known = old != nil and old.profile == view.profile
    state = %{state | transcript: SkillsRead.withdraw(transcript, view, known)}

    cond do
      not known -> state |> renew_prompt() |> told()
      lost?(old, view) -> state |> renew_prompt() |> news()
      true -> news(state)
    end
  end

  # The prompt may have the text of an entry that can no longer be seen.
  defp lost?(%{generation: generation}, %{generation: generation}), do: false

  defp lost?(old, view) do
    names = MapSet.new(View.entries(view), & &1.name)
    Enum.any?(View.entries(old), &(&1.name not in names))
  end

  defp renew_prompt(%{transcript: transcript} = state) do
    messages = Enum.reject(transcript.messages, &(&1.kind == :prompt))
    kept = Enum.find(transcript.messages, &(&1.kind == :prompt))

    message =
      if kept && kept.content == prompt(state),
        do: kept,
        else: %Message{kind: :prompt, content: prompt(state), at: state.clock.()}

    messages = if message.content == "", do: messages, else: [message | messages]
    %{state | transcript: %{transcript | messages: messages}}
  end

  defp prompt(state) do
    [state.system, Prompt.text(state.view, state.prompt)]
    |> Enum.reject(&(String.trim(&1) == ""))
    |> Enum.join("\n\n")
  end

  defp told(state), do: put_in(state.transcript.view, state.view)

  defp news(%{transcript: %{view: old}, view: view} = state) do
    news =
      if old.generation == view.generation, do: "", else: String.trim(Prompt.changes(old, view))

    state = told(state)

    if news == "" do
      state
    else
      tell(state, {:news, news})
      add(state, :news, news)
    end
  end

  # Turns

  defp turn(state) do
    case limit(state) do
      nil -> state |> news() |> compacted() |> held() |> Map.update!(:turns, &(&1 + 1)) |> asked()
      status -> finish(state, status)
    end
  end

  defp asked(state) do
    Budget.use_turn(state.budget)
    tell(state, {:turn, state.turns})
    messages = Transcript.for_model(state.transcript)

    case Telemetry.span([:skillbook, :model], about_turn(state), fn ->
           state |> ask(messages) |> ended()
         end) do
      {:ok, answer} ->
        state |> replied(answer, messages) |> answered(answer.text, answer.finish_reason)

      {:error, %{text: ""} = error} ->
        failed(state, error)

      {:error, error} ->
        state |> replied(%{text: error.text, usage: nil}, messages) |> broken(error)
    end
  end

  defp next(state) do
    if stuck?(state),
      do: finish(state, :stuck),
      else: turn(%{state | view: View.of(state.book, state.view.profile)})
  end

  # A model that is stopped at the run's own limit has not failed.
  defp failed(state, %{kind: :timeout} = error),
    do: finish(state, if(time_left(state) == 0, do: :max_time, else: :error), error)

  defp failed(state, error), do: finish(state, :error, error)

  defp limit(state) do
    case Budget.left(state.budget) do
      %{turns: 0} -> :max_turns
      %{time: 0} -> :max_time
      %{tokens: 0} -> :max_tokens
      _ -> nil
    end
  end

  defp stuck?(state),
    do: Enum.any?(state.failing, fn {_failure, times} -> times >= state.max_repeats end)

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

  # The model's part

  defp ended({:ok, answer} = answered),
    do: {:stop, answered, Map.take(answer, [:finish_reason, :usage])}

  defp ended({:error, error} = failed), do: {:exception, failed, %{kind: error.kind}}

  defp about(state), do: %{book: state.book, profile: state.view.profile.id}
  defp about_turn(state), do: Map.put(about(state), :turn, state.turns)

  defp retried(state, retry) do
    metadata = Map.merge(about_turn(state), %{attempt: retry.attempt, kind: retry.error.kind})
    delay = System.convert_time_unit(retry.delay, :millisecond, :native)
    Telemetry.event([:skillbook, :model, :retry], %{delay: delay}, metadata)
    tell(state, {:retry, retry})
  end

  defp ask(state, messages) do
    left = time_left(state)
    timeout = min(state.chat[:timeout] || left, left)
    on_retry = &retried(state, &1)
    chat = Keyword.merge(grammar(state), timeout: max(timeout, 1), on_retry: on_retry)
    # The stream's state between two calls of the function.
    stream = {__MODULE__, make_ref()}
    Process.put(stream, Extractor.new(Keyword.take(state.commands, [:unclosed])))

    try do
      answer =
        Model.chat(
          state.model,
          messages,
          chat,
          &stream(state, stream, fn extractor -> Extractor.feed(extractor, &1) end)
        )

      stream(state, stream, &Extractor.finish/1)
      answer
    after
      Process.delete(stream)
    end
  end

  # A large book's grammar takes a while to make, and stays the same for a generation.
  defp held(%{grammar: nil} = state), do: state
  defp held(%{held: {generation, _}, view: %{generation: generation}} = state), do: state

  defp held(%{view: view} = state),
    do: %{state | held: {view.generation, Grammar.gbnf(view, state.grammar)}}

  defp grammar(%{grammar: nil, chat: chat}), do: chat

  defp grammar(%{held: {_generation, grammar}, chat: chat}),
    do: Keyword.put(chat, :grammar, grammar)

  defp stream(state, stream, step) do
    {events, extractor} = step.(Process.get(stream))
    Process.put(stream, extractor)
    for {kind, _} = event when kind in [:text, :command] <- events, do: tell(state, event)
    :ok
  end

  defp replied(state, answer, messages) do
    usage = answer.usage || estimated(messages, answer.text)
    estimated = answer.usage == nil
    tell(state, {:usage, Map.put(usage, :estimated, estimated)})

    Budget.use_tokens(state.budget, usage, estimated)
    add(state, :reply, answer.text, usage: answer.usage)
  end

  defp estimated(messages, text) do
    prompt = messages |> Enum.map(&Transcript.estimate(&1.content)) |> Enum.sum()
    %{prompt_tokens: prompt, completion_tokens: Transcript.estimate(text)}
  end

  # The commands' part

  defp answered(state, text, finish_reason) do
    cut_off? = finish_reason in [:length, :filtered]
    if cut_off?, do: tell(state, {:cut_off, finish_reason})
    report = execute(state, text, not cut_off?)
    state = %{state | text: report.text, breaks: 0}

    cond do
      report.results == [] and report.incomplete == [] and report.notes != [] and not state.noted and
          not cut_off? ->
        note = to_string(report)
        tell(state, {:note, note})
        %{state | noted: true} |> add(:note, note) |> transcribed() |> next()

      report.results == [] and report.incomplete == [] ->
        state |> transcribed() |> finish(if(cut_off?, do: :cut_off, else: :done))

      finish_reason == :length ->
        state |> reported(report) |> add(:note, @reached) |> transcribed() |> next()

      true ->
        state |> reported(report) |> transcribed() |> next()
    end
  end

  # What was handed out cannot be taken back, so the reply is not asked for again; but the model may go on with it.
  defp broken(%{breaks: breaks} = state, %ModelError{kind: :cut_off, text: text})
       when breaks + 1 < @breaks do
    tell(state, {:cut_off, :broken})
    report = execute(state, text, false)
    state = %{state | text: report.text, breaks: breaks + 1}
    state |> reported(report) |> add(:note, @broken) |> transcribed() |> next()
  end

  defp broken(state, error) do
    {:ok, %{text: text}} =
      with {:error, _} <- Extractor.extract(error.text), do: {:ok, %{text: error.text}}

    %{state | text: text} |> add(:note, @not_answered) |> transcribed() |> failed(error)
  end

  # Only where the model stopped by itself can the reply's end be that of a block.
  defp execute(state, text, whole) do
    commands = commands(state)

    report =
      Pipeline.run(
        state.view,
        text,
        if(whole, do: commands, else: Keyword.delete(commands, :unclosed))
      )

    if report.incomplete != [], do: tell(state, {:incomplete, report.incomplete})
    report
  end

  defp commands(state) do
    state.commands
    |> Keyword.put_new_lazy(:now, state.clock)
    |> Keyword.merge(agent: fn -> agent(state) end, on_result: &tell(state, {:result, &1}))
  end

  # What a command may use depends on what those before it used.
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
        max_repeats: state.max_repeats,
        max_context: state.max_context,
        max_depth: state.max_depth,
        depth: state.depth + 1,
        clock: state.clock,
        parent: state.budget
      ]
    }
  end

  defp reported(state, %Report{results: [], incomplete: []}), do: state

  defp reported(state, report) do
    {results, activations} = SkillsRead.results(report.results, state.transcript)

    # Who writes blocks knows how, and shows the rest to the user on purpose.
    %{state | failing: failing(report, state.failing), noted: true}
    |> add(:report, to_string(%{report | results: results}), activations: activations)
  end

  # How often in a row each command has failed with the same answer.
  defp failing(report, before) do
    failed =
      for result <- report.results, result.status == :error, do: {result.command, result.content}

    Map.new(
      failed ++ Enum.map(report.incomplete, &{&1, :incomplete}),
      &{&1, Map.get(before, &1, 0) + 1}
    )
  end

  defp compacted(%{max_context: nil} = state), do: state

  defp compacted(%{max_context: max, transcript: transcript} = state) do
    compacted =
      if Transcript.tokens(transcript) > max,
        do: SkillsRead.compact(transcript, div(max, 2)),
        else: transcript

    if compacted == transcript do
      state
    else
      {compacted, restored} = SkillsRead.restore(compacted, state.view, div(max, 4))

      tell(state, {
        :compacted,
        %{
          messages: length(transcript.messages) - length(compacted.messages) + 1,
          restored: Enum.map(restored.activations, & &1.name),
          left_out: restored.left_out
        }
      })

      %{state | transcript: compacted}
    end
  end

  # Small things

  defp add(state, kind, content, fields \\ []) do
    message = struct!(Message, [kind: kind, content: content, at: state.clock.()] ++ fields)
    %{state | transcript: Transcript.add(state.transcript, message)}
  end

  defp transcribed(state) do
    tell(state, {:transcript, state.transcript})
    state
  end

  defp tell(state, event), do: state.on_event.(event)

  defp teller(nil), do: fn _event -> :ok end
  defp teller(function) when is_function(function, 1), do: function

  defp teller(pid) when is_pid(pid) do
    run = self()
    &send(pid, {:skillbook_agent, run, &1})
  end

  defp time_left(state), do: Budget.left(state.budget).time
end
