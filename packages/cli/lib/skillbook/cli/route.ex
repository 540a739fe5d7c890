defmodule Skillbook.CLI.Route do
  @moduledoc false
  # `skillbook route`: shows which skills the router picks for a request, and each of its stages.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, ModelFlags, Session, Terminal}
  alias Skillbook.{EmbedderError, Native, Preflight}
  alias Skillbook.Preflight.Settings
  alias Skillbook.Support.JSON
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

    report
    |> JSON.encode()
    |> Native.report_route(options.flags[:json] || false, Terminal.new(options.color))
    |> Terminal.printed()
  end

  # Only a search has words.
  defp explain(%{stage: :retrieval} = stage, ranking, request),
    do: %{stage | candidates: Ranking.explain(ranking, request, stage.candidates)}

  defp explain(stage, _ranking, _request), do: stage
end
