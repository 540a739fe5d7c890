defmodule Skillbook.Agent.Preloading do
  @moduledoc false
  # Loads skills for the user's message, if the book or the profile has a `:preflight`: those that
  # the profile always gets, and those that the router picks. They are in a message after the
  # user's, since servers cache the prompt before it.

  alias Skillbook.Agent.{SkillsRead, State}
  alias Skillbook.Model.Content
  alias Skillbook.{Native, View}
  alias Skillbook.Preflight.{Settings, Stages}

  @doc "Adds the message with the skills, if there are any."
  def load(%{view: view} = state) do
    case Settings.of_run(view, state.preflight) do
      nil -> state
      settings -> load(state, settings)
    end
  end

  defp load(%{view: view, transcript: transcript} = state, settings) do
    timeout = min(settings.timeout, max(State.time_left(state), 1))
    result = Stages.run(view, messages(transcript), %{settings | timeout: timeout}, false)
    model = settings.model || state.model
    if result.usage, do: State.spend(state, model, nil, result.usage, false)

    names = Enum.uniq(Native.view_proactive(view.ref) ++ Enum.map(result.picks, & &1.name))
    names = Enum.reject(names, &in_prompt?(view, &1))
    loaded = SkillsRead.preload(view, transcript, names, max_tokens(state, settings))

    if loaded.text == "" do
      state
    else
      names = Enum.map(loaded.activations, & &1.name)
      details = %{picks: result.picks, loaded: names, left_out: loaded.left_out}
      State.emit(state, {:preloaded, details})
      State.add_message(state, :preloaded, loaded.text, activations: loaded.activations)
    end
  end

  # The words of the user and the model; reports and notes are no request.
  defp messages(transcript) do
    for %{kind: kind, content: content} when kind in [:input, :reply] <- transcript.messages,
        do: %{
          role: if(kind == :input, do: :user, else: :assistant),
          content: Content.text(content)
        }
  end

  # All formats of the prompt have the inline entries whole.
  defp in_prompt?(view, name), do: match?({:ok, %{selection: :inline}}, View.fetch(view, name))

  # As for skills that are restored.
  defp max_tokens(%{max_context: nil}, settings), do: settings.max_tokens
  defp max_tokens(%{max_context: max}, settings), do: min(settings.max_tokens, div(max, 4))
end
