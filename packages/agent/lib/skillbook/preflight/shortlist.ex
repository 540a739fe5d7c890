defmodule Skillbook.Preflight.Shortlist do
  @moduledoc false
  # The entries that the model of the router sees: all, if they are few. Else those that keywords,
  # words and vectors find for the message, and words for the messages before it. They come from
  # the view, so no hidden entry is among them, and none that is not in the prompt.

  alias Skillbook.Preflight.Subject
  alias Skillbook.Search.Candidates
  alias Skillbook.{Model, Native}

  # A catalog of so many entries is shown whole. Of a larger one the model sees at most so many,
  # and at least `@least`.
  @most 20
  @least 12

  # Entries with a keyword in the message, of which there may be any number.
  @max_keywords 8
  # Candidates of a search. Notes and entries that are not in the prompt are left out afterwards.
  @searched 40

  @doc "Their names; `triggered` are those with a keyword in the message."
  @spec names(Subject.t(), [Model.message()], [String.t()]) :: [String.t()]
  def names(%Subject{view: view} = subject, messages, triggered) do
    # By name, so that servers can cache the prompt up to the message.
    case Native.view_pickables(view.ref, @most + 1) do
      first when length(first) > @most -> best(subject, messages, triggered, first)
      all -> all
    end
  end

  defp best(subject, messages, triggered, first) do
    {earlier, [request]} = Enum.split(messages, -1)
    found = search(subject, request.content, subject.meaning.(request.content))
    {nearest, others} = Enum.split(found, @least)
    before = search(subject, earlier |> Enum.reverse() |> Enum.map_join("\n", & &1.content), nil)

    names =
      (Enum.take(triggered, @max_keywords) ++ nearest ++ before ++ others)
      |> Enum.uniq()
      |> Enum.take(@most)

    # The model may know better than a search that found next to nothing.
    Enum.uniq(names ++ Enum.take(first -- names, max(@least - length(names), 0)))
  end

  defp search(_subject, "", _meaning), do: []

  defp search(%{view: view}, text, meaning) do
    names = for found <- Candidates.find(view, text, @searched, meaning), do: found.name
    Native.view_pickable(view.ref, names)
  end
end
