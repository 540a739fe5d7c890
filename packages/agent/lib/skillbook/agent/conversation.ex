defmodule Skillbook.Agent.Conversation do
  @moduledoc false
  # Keeps the conversation up to date between turns: its system prompt and tools, messages about
  # changed skills, texts that the profile may no longer see, and compaction.

  alias Skillbook.Agent.{Calls, Leader, Sections, SkillsRead, State, Summary}
  alias Skillbook.Model.Content
  alias Skillbook.{Model, Profile, Prompt, Tools, Transcript, View}
  alias Skillbook.Transcript.Message

  @doc "Starts a conversation, or prepares the one of the option `:transcript` for more input."
  def resume(state, input),
    do: state |> put_first_input(input) |> resume() |> Sections.add(Content.text(input))

  # A prompt that is too long keeps the entries nearest to the first input, so that it is the same
  # for all inputs.
  defp put_first_input(%{prompt: options, transcript: transcript} = state, input) do
    if options[:nearest] || options[:messages] do
      state
    else
      first = Enum.find_value(transcript.messages, input, &(&1.kind == :input && &1.content))
      message = %{role: :user, content: Content.text(first)}
      %{state | prompt: Keyword.put(options, :messages, [message])}
    end
  end

  defp resume(%{transcript: %{messages: []}} = state) do
    prompt = prompt(state)
    state = state |> put_tools() |> put_view()
    if prompt == "", do: state, else: State.add_message(state, :prompt, prompt)
  end

  # A transcript read from JSON has no view. If its prompt differs, the model needs the new one.
  # The same for one that began with another protocol.
  defp resume(%{view: view, transcript: %{view: old} = transcript} = state) do
    same_profile? = old != nil and Profile.same?(old.profile, view.profile)
    same_protocol? = transcript.tools != nil == (state.protocol == :tools)
    state = %{state | transcript: SkillsRead.remove_hidden(transcript, view, same_profile?)}

    if same_profile? do
      prompted = prompted(transcript, view)
      # Sections may tell of any entry.
      lost? = prompted == :lost or lost_entries?(old, view)
      state = if lost?, do: Sections.remove(state), else: state

      if prompted == :lost or not same_protocol?,
        do: state |> renew_prompt() |> add_news() |> put_prompted(nil),
        else: add_news(state)
    else
      state = if seen?(transcript, view), do: state, else: Sections.remove(state)
      state |> renew_prompt() |> put_view()
    end
  end

  # Whether a conversation from JSON belongs to the same rights, and all of its entries are there.
  defp seen?(%{view: nil, seen: %{rights: rights, entries: [_ | _] = entries}}, view) do
    rights == Profile.fingerprint(view.profile) and
      MapSet.subset?(MapSet.new(entries), names(view))
  end

  defp seen?(_transcript, _view), do: false

  # They stay the same for the whole conversation, as the prompt does: servers cache both. Later
  # commands run through `run_command`.
  defp put_tools(%{protocol: :blocks} = state), do: put_in(state.transcript.tools, nil)

  defp put_tools(%{protocol: :tools, view: view} = state) do
    defaults = [run_command: true, form: :auto, messages: state.prompt[:messages] || []]
    options = Keyword.merge(defaults, state.tools)
    tools = if View.listed(view) == [], do: [], else: Tools.list(view, options)
    put_in(state.transcript.tools, tools)
  end

  defp lost_entries?(%{generation: generation}, %{generation: generation}), do: false
  defp lost_entries?(old, view), do: not MapSet.subset?(names(old), names(view))

  # The entries of which the prompt and the tools may tell; `:lost` if the profile can no longer
  # see one of them. Entries that were only in the news are not among them.
  defp prompted(%{view: %{generation: generation}} = transcript, %{generation: generation}),
    do: transcript.prompted

  defp prompted(%{prompted: :lost}, _view), do: :lost

  defp prompted(%{prompted: prompted, view: old}, view) do
    prompted = prompted || names(old)
    if MapSet.subset?(prompted, names(view)), do: prompted, else: :lost
  end

  defp put_prompted(state, prompted), do: put_in(state.transcript.prompted, prompted)

  defp names(view), do: view |> View.names() |> MapSet.new()

  defp renew_prompt(%{transcript: transcript} = state) do
    {prompts, messages} = Enum.split_with(transcript.messages, &(&1.kind == :prompt))
    content = prompt(state)

    prompt =
      case prompts do
        [%{content: ^content} = prompt | _] ->
          prompt

        _ ->
          prompt = %Message{kind: :prompt, content: content, at: state.clock.()}
          State.emit(state, {:message, prompt})
          prompt
      end

    messages = if content == "", do: messages, else: [prompt | messages]
    put_tools(%{state | transcript: %{transcript | messages: messages, prompted: nil}})
  end

  defp prompt(state) do
    text = Prompt.text(state.view, [protocol: state.protocol] ++ state.prompt)

    [state.system, text, Leader.section(state)]
    |> Enum.reject(&(String.trim(&1) == ""))
    |> Enum.join("\n\n")
  end

  # The view whose skills the model knows about.
  defp put_view(state), do: put_in(state.transcript.view, state.view)

  @doc "The messages for the model, in the protocol of the run."
  @spec for_model(State.t()) :: [Model.message()]
  def for_model(%{protocol: :tools} = state), do: Transcript.for_model(state.transcript)

  def for_model(%{protocol: :blocks} = state),
    do: Calls.as_blocks(state.view, Transcript.for_model(state.transcript))

  @doc "Adds a message about the skills that changed since the model was last informed."
  def add_news(%{transcript: %{view: old} = transcript, view: view} = state) do
    if Profile.same?(old.profile, view.profile) do
      add_news_of(state, old)
    else
      # The profile has other rights than in the last turn.
      transcript = SkillsRead.remove_hidden(transcript, view, false)

      %{state | transcript: transcript}
      |> Sections.remove()
      |> renew_prompt()
      |> put_view()
      |> add_sections()
    end
  end

  # Those of the last input, as the profile may read them now.
  defp add_sections(%{transcript: %{messages: messages}} = state) do
    case messages |> Enum.reverse() |> Enum.find(&(&1.kind == :input)) do
      nil -> state
      %{content: input} -> Sections.add(state, Content.text(input))
    end
  end

  defp add_news_of(%{view: view} = state, old) do
    news =
      if old.generation == view.generation, do: "", else: String.trim(Prompt.changes(old, view))

    state = state |> put_prompted(prompted(state.transcript, view)) |> put_view()

    if news == "" do
      state
    else
      State.emit(state, {:news, news})
      State.add_message(state, :news, news)
    end
  end

  @doc "Removes old messages if the conversation is larger than `:max_context`."
  def compact(%{max_context: nil} = state), do: state

  def compact(%{max_context: max, transcript: transcript} = state) do
    {tokens, _scale} = Transcript.context(transcript)
    if tokens > max, do: compact(state, div(max, 2)), else: state
  end

  @doc "Halves a conversation that is too long for the model; `:error` if all of it has to stay."
  @spec halve(State.t()) :: {:ok, State.t()} | :error
  def halve(%{transcript: transcript} = state) do
    {tokens, _scale} = Transcript.context(transcript)
    halved = compact(state, div(min(tokens, state.max_context || tokens), 2))
    if halved.transcript == transcript, do: :error, else: {:ok, halved}
  end

  defp compact(%{transcript: transcript} = state, max) do
    room = Summary.room(state)
    {compacted, dropped} = SkillsRead.leave_out(transcript, max, room)

    if dropped == [] do
      state
    else
      {_tokens, scale} = Transcript.context(transcript)
      {compacted, summary} = Summary.add(state, compacted, dropped)
      {compacted, restored} = SkillsRead.restore(compacted, state.view, trunc(max / 2 / scale))

      details = %{
        messages: length(dropped),
        restored: Enum.map(restored.activations, & &1.name),
        left_out: restored.left_out,
        summary: summary
      }

      State.emit(state, {:compacted, details})
      # The model may have to read again what was left out.
      %{state | transcript: compacted, results: MapSet.new(), repeats: 0}
    end
  end
end
