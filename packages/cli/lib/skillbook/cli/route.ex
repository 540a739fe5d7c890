defmodule Skillbook.CLI.Route do
  @moduledoc false
  # `skillbook route`: shows which skills the router picks for a request, and each of its stages.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, ModelFlags, Session, Terminal}
  alias Skillbook.{EmbedderError, Preflight}
  alias Skillbook.Preflight.Settings
  alias Skillbook.Test.Ranking

  # Milliseconds for all stages. A person waits longer than a conversation does.
  @timeout 60_000

  @impl true
  def switches, do: EmbedderFlags.switches() ++ ModelFlags.switches() ++ [json: :boolean]

  @impl true
  def args(words) do
    if Enum.all?(words, &(String.trim(&1) == "")),
      do: {:error, "`route` expects a request, such as \"Is it going to rain tomorrow?\""},
      else: {:ok, words}
  end

  @impl true
  def run(options) do
    with {:ok, options} <- EmbedderFlags.read(options),
         {:ok, model} <- model(options.flags) do
      Session.with_book(options, :read, &route(&1, options, model))
    else
      {:error, message} -> Terminal.usage_error(message, "route --help")
    end
  rescue
    error in EmbedderError ->
      Terminal.complain(["the request cannot be embedded: ", Exception.message(error)])
      3
  end

  # The model is the only stage that needs a server.
  defp model(flags) do
    if Enum.any?(ModelFlags.switches(), fn {name, _type} -> flags[name] end),
      do: ModelFlags.model("route", flags),
      else: {:ok, nil}
  end

  defp route(book, options, model) do
    view = Session.view(book, options)
    request = Enum.join(options.args, " ")
    given = [model: model, timeout: @timeout, enabled: true]
    result = Preflight.run(view, request, [explain: true] ++ given)
    ranking = Ranking.new(view, [request])

    report = %{
      request: request,
      needed: result.needed,
      threshold: Settings.of_call(view, given).threshold,
      picks: Enum.map(result.picks, &Map.from_struct/1),
      stages: for(stage <- result.stages, do: explain(stage, ranking, request))
    }

    if options.flags[:json],
      do: Terminal.put_json(report),
      else: report |> text(Terminal.new(options.color)) |> Terminal.put()

    if Enum.any?(result.stages, &(&1.status in [:failed, :timeout])), do: 1, else: 0
  end

  # Only a search has words.
  defp explain(%{stage: :retrieval} = stage, ranking, request),
    do: %{stage | candidates: Ranking.explain(ranking, request, stage.candidates)}

  defp explain(stage, _ranking, _request), do: stage

  defp text(report, terminal) do
    [
      for(stage <- report.stages, do: [stage(stage, terminal), "\n"]),
      picks(report, terminal)
    ]
  end

  defp stage(stage, terminal) do
    [
      Terminal.style(terminal, :bright, to_string(stage.stage)),
      Terminal.style(terminal, :faint, ["  ", milliseconds(stage.duration), " ms"]),
      outcome(stage, terminal),
      "\n",
      candidates(stage.candidates)
    ]
  end

  defp outcome(%{status: :ok, candidates: []}, _terminal), do: "  nothing"
  defp outcome(%{status: :ok}, _terminal), do: []
  defp outcome(%{status: :skipped}, _terminal), do: "  not needed"

  defp outcome(%{error: error}, terminal),
    do: ["  ", Terminal.style(terminal, :red, Terminal.line(error))]

  defp candidates(candidates) do
    width = candidates |> Enum.map(&String.length(&1.name)) |> Enum.max(fn -> 0 end)

    for candidate <- candidates do
      [
        ["  ", Terminal.line(String.pad_trailing(candidate.name, width))],
        ["  ", decimals(candidate.confidence, 2), "  ", Terminal.line(candidate.reason)],
        words(candidate[:words]),
        "\n",
        sentence(candidate[:sentence])
      ]
    end
  end

  defp words([_ | _] = words), do: [": ", Terminal.line(Ranking.strongest(words))]

  defp words(_none), do: []

  defp sentence(nil), do: []
  defp sentence(text), do: ["      ", Terminal.line(Ranking.quoted(text)), "\n"]

  defp picks(%{picks: []} = report, terminal) do
    [
      Terminal.style(terminal, :bright, "No skill needed"),
      ": none has a confidence of #{decimals(report.threshold, 2)}"
    ]
  end

  defp picks(report, terminal) do
    lines =
      for pick <- report.picks do
        ["  ", Terminal.line(pick.name), "  ", decimals(pick.confidence, 2), "  #{pick.stage}"]
      end

    [
      [Terminal.style(terminal, :bright, "Picked"), ", from a confidence of "],
      [decimals(report.threshold, 2), " on\n", Enum.intersperse(lines, "\n")]
    ]
  end

  defp milliseconds(microseconds), do: decimals(microseconds / 1000, 1)

  defp decimals(number, count), do: :erlang.float_to_binary(number * 1.0, decimals: count)
end
