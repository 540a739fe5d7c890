defmodule Skillbook.Test.Checks do
  @moduledoc false
  # The checks of an evaluation, but for its rubric.

  alias Skillbook.Test.{Evaluation, Match, Run}
  alias Skillbook.View

  # Of an answer in a failure
  @max_shown 300

  @doc "Checks a run: the status of its last conversation, its calls, and its last answer."
  @spec run(Evaluation.t(), View.t(), atom(), [Match.call()], [String.t()], String.t()) ::
          [Run.check()]
  def run(evaluation, view, status, calls, read, text) do
    List.flatten([
      ended(status, evaluation),
      for(call <- evaluation.calls, do: called(Match.resolve(call, view), calls)),
      for(call <- evaluation.not_calls, do: not_called(Match.resolve(call, view), calls)),
      for(name <- evaluation.reads, do: read(name, read, view)),
      for(part <- evaluation.contains, do: answer(:contains, part, text, contains?(text, part))),
      for(
        part <- evaluation.not_contains,
        do: answer(:not_contains, part, text, not contains?(text, part))
      ),
      for(
        source <- evaluation.matches,
        do: answer(:matches, source, text, matches?(text, source))
      )
    ])
  end

  # A run that waits for an approval has ended too.
  defp ended(status, _evaluation) when status in [:done, :pending], do: []

  defp ended(status, evaluation) do
    limits =
      "#{evaluation.max_turns} turns and #{evaluation.max_time / 1000} seconds" <>
        if(evaluation.max_tokens, do: " and #{evaluation.max_tokens} tokens", else: "")

    [check(:ended, limits, false, to_string(status))]
  end

  defp called(call, calls) do
    got = if calls != [], do: Enum.map_join(calls, "; ", &Match.show/1)
    check(:call, Match.show(call), Enum.any?(calls, &Match.call?(call, &1)), got)
  end

  defp not_called(call, calls) do
    found = Enum.filter(calls, &Match.call?(call, &1))
    check(:no_call, Match.show(call), found == [], Enum.map_join(found, "; ", &Match.show/1))
  end

  defp read(name, read, view) do
    own = with {:ok, entry} <- View.fetch(view, name), do: entry.name, else: (_ -> name)
    check(:read, own, own in read, if(read != [], do: Enum.join(read, ", ")))
  end

  # Case and runs of blanks do not matter.
  defp contains?(text, part), do: String.contains?(plain(text), plain(part))
  defp plain(text), do: text |> String.downcase() |> String.replace(~r/\s+/u, " ")

  # Sources were checked when the file was read.
  defp matches?(text, source), do: Regex.match?(Regex.compile!(source, "u"), text)

  defp answer(kind, expected, text, passed), do: check(kind, expected, passed, shown(text))

  @doc "An answer, shortened for a line."
  @spec shown(String.t()) :: String.t() | nil
  def shown(text) do
    case String.trim(text) do
      "" ->
        nil

      text ->
        if String.length(text) > @max_shown,
          do: String.slice(text, 0, @max_shown) <> " …",
          else: text
    end
  end

  @doc "A check. `got` counts only if it failed."
  @spec check(atom(), String.t(), boolean(), String.t() | nil) :: Run.check()
  def check(kind, expected, passed, got),
    do: %{kind: kind, expected: expected, passed: passed, got: if(not passed, do: got)}
end
