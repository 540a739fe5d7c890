defmodule Skillbook.Agent.Conversation do
  @moduledoc false
  # Keeps the conversation up to date between turns: its system prompt, messages about changed
  # skills, texts that the profile may no longer see, and compaction.

  alias Skillbook.Agent.{SkillsRead, State}
  alias Skillbook.{Prompt, Transcript, View}
  alias Skillbook.Transcript.Message

  @doc "Starts a conversation, or prepares the one of the option `:transcript` for more input."
  def resume(state, input), do: state |> put_first_input(input) |> resume()

  # A prompt that is too long keeps the entries nearest to the first input, so that it is the same
  # for all inputs.
  defp put_first_input(%{prompt: options, transcript: transcript} = state, input) do
    if options[:nearest] || options[:messages] do
      state
    else
      first = Enum.find_value(transcript.messages, input, &(&1.kind == :input && &1.content))
      %{state | prompt: Keyword.put(options, :messages, [%{role: :user, content: first}])}
    end
  end

  defp resume(%{transcript: %{messages: []}} = state) do
    prompt = prompt(state)
    state = put_view(state)
    if prompt == "", do: state, else: State.add_message(state, :prompt, prompt)
  end

  # A transcript read from JSON has no view. If its prompt differs, the model needs the new one.
  defp resume(%{view: view, transcript: %{view: old} = transcript} = state) do
    same_profile? = old != nil and old.profile == view.profile
    state = %{state | transcript: SkillsRead.remove_hidden(transcript, view, same_profile?)}

    cond do
      not same_profile? -> state |> renew_prompt() |> put_view()
      lost_entries?(old, view) -> state |> renew_prompt() |> add_news()
      true -> add_news(state)
    end
  end

  # The prompt may contain the text of an entry that the profile can no longer see.
  defp lost_entries?(%{generation: generation}, %{generation: generation}), do: false

  defp lost_entries?(old, view) do
    names = MapSet.new(View.entries(view), & &1.name)
    Enum.any?(View.entries(old), &(&1.name not in names))
  end

  defp renew_prompt(%{transcript: transcript} = state) do
    {prompts, messages} = Enum.split_with(transcript.messages, &(&1.kind == :prompt))
    content = prompt(state)

    prompt =
      case prompts do
        [%{content: ^content} = prompt | _] -> prompt
        _ -> %Message{kind: :prompt, content: content, at: state.clock.()}
      end

    messages = if content == "", do: messages, else: [prompt | messages]
    %{state | transcript: %{transcript | messages: messages}}
  end

  defp prompt(state) do
    [state.system, Prompt.text(state.view, state.prompt)]
    |> Enum.reject(&(String.trim(&1) == ""))
    |> Enum.join("\n\n")
  end

  # The view whose skills the model knows about.
  defp put_view(state), do: put_in(state.transcript.view, state.view)

  @doc "Adds a message about the skills that changed since the model was last informed."
  def add_news(%{transcript: %{view: old}, view: view} = state) do
    news =
      if old.generation == view.generation, do: "", else: String.trim(Prompt.changes(old, view))

    state = put_view(state)

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
    compacted =
      if Transcript.tokens(transcript) > max,
        do: SkillsRead.compact(transcript, div(max, 2)),
        else: transcript

    if compacted == transcript do
      state
    else
      {compacted, restored} = SkillsRead.restore(compacted, state.view, div(max, 4))

      details = %{
        messages: length(transcript.messages) - length(compacted.messages) + 1,
        restored: Enum.map(restored.activations, & &1.name),
        left_out: restored.left_out
      }

      State.emit(state, {:compacted, details})
      %{state | transcript: compacted}
    end
  end
end
