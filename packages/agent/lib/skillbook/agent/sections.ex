defmodule Skillbook.Agent.Sections do
  @moduledoc false
  # Keeps the application's sections of the prompt (`Skillbook.Prompt.Sections`) in the
  # conversation: a message before an input whenever their text has changed. Messages before it
  # stay as they are, so that servers find them in their cache.

  alias Skillbook.Agent.State
  alias Skillbook.Prompt.Sections

  @replaced "This replaces the context that was given before.\n\n"
  @gone "The context from the application that was given before no longer applies."

  @doc "Adds the message for an input, if the text of the sections is new."
  def add(%{sections: sections, transcript: transcript} = state, input) do
    text = Sections.make(state.view, sections, options(state, input))
    last = transcript.messages |> Enum.reverse() |> Enum.find(&(&1.kind == :context))

    case {text, last && last.content} do
      {"", nil} -> state
      {"", @gone} -> state
      {"", _} -> add_message(state, @gone)
      {text, text} -> state
      {text, @replaced <> text_before} when text_before == text -> state
      {text, nil} -> add_message(state, text)
      {text, _} -> add_message(state, @replaced <> text)
    end
  end

  defp options(state, input) do
    [
      message: input,
      now: state.clock.(),
      assigns: state.commands[:assigns] || %{},
      time_left: State.time_left(state)
    ]
  end

  defp add_message(state, text) do
    State.emit(state, {:context, text})
    State.add_message(state, :context, text)
  end

  @doc "Removes all messages of sections, which may have texts that the profile no longer sees."
  def remove(state),
    do: update_in(state.transcript.messages, &Enum.reject(&1, fn m -> m.kind == :context end))
end
