defmodule Skillbook.Web.Page.Agents do
  @moduledoc false
  # The durable runs of agents, for operators, who continue and stop them. Others have their own
  # texts in them, also about entries that they no longer see.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Agent.Runs
  alias Skillbook.Run.Worker
  alias Skillbook.{Part, RunError}
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Layout, Parts, Rights}

  @page_size 100
  # Milliseconds that a continued run is waited for. It goes on after it, and the page shows its
  # end.
  @wait 5_000

  @common "The run belongs to no tenant, so an operator of one tenant cannot change it."

  @doc "The newest runs, or those after one."
  def index(request, _values) do
    for_operators(request, fn ->
      last = field(request, "after", 100)
      options = if last == "", do: [], else: [after: last]

      # One more, to know whether there is a next page.
      case Runs.list(book(request), tenant(request) ++ [limit: @page_size + 1] ++ options) do
        {:ok, runs} ->
          {shown, more} = Enum.split(runs, @page_size)
          last = if more != [], do: List.last(shown).ref
          data = %{durable: true, runs: Enum.map(shown, &fields/1), next: last}
          index_page(request, data, list_of(request, shown, last))

        {:error, %RunError{kind: :off}} ->
          index_page(request, %{durable: false, runs: [], next: nil}, off())

        {:error, error} ->
          without(request, error)
      end
    end)
  end

  defp index_page(request, data, content),
    do: reply(request, data, :activity, :agents, "Agents", fn -> content end)

  @doc "One run."
  def show(request, %{ref: ref}) do
    for_operators(request, fn ->
      case fetch(request, ref) do
        {:ok, run} -> run_page(request, run)
        {:error, error} -> without(request, error)
      end
    end)
  end

  @doc "Continues or stops a run."
  def operate(request, %{ref: ref}) do
    for_operators(request, fn ->
      Rights.with_writes(request, fn ->
        with {:ok, run} <- fetch(request, ref),
             :ok <- if(changes?(request, run), do: :ok, else: :common),
             {:ok, fields} <- Request.form(request),
             :ok <- act(fields["action"], run) do
          Response.redirect(303, Layout.path(request, ["agents", ref]))
        else
          {:error, error} -> without(request, error)
          :common -> Layout.failed(request, 403, @common)
          :error -> Layout.failed(request, 400, "The form could not be read.")
        end
      end)
    end)
  end

  defp act("stop", run), do: Runs.stop(run.book, run.ref)

  defp act("continue", run) do
    # Not linked: a person who closes the page does not interrupt the run.
    task =
      Task.Supervisor.async_nolink(Worker.supervisor(run.book), fn ->
        Runs.continue(run.book, run.ref)
      end)

    case Task.yield(task, @wait) do
      # Its own errors are shown by its page.
      {:ok, {:error, %RunError{} = error}} -> {:error, error}
      _ended_or_running -> :ok
    end
  end

  defp act(_other, _run), do: :error

  defp fetch(request, ref), do: Runs.fetch(book(request), ref, tenant(request))
  defp tenant(request), do: [tenant: request.caller.profile.tenant]
  defp changes?(request, run), do: Caller.writes?(request.caller, run.tenant)

  defp without(request, %RunError{kind: kind}) when kind in [:unknown, :off],
    do: Layout.not_found(request)

  defp without(request, %RunError{} = error), do: refused(request, 409, error)
  defp without(_request, error), do: {:error, error}

  defp fields(run), do: :durable_runs |> Part.json([run]) |> hd()

  # Pages

  defp off do
    Parts.empty([
      "This book keeps no journal of runs. The options ",
      tag(:code, [], "durable: true"),
      " and ",
      tag(:code, [], "store:"),
      " make them go on after a crash or a restart."
    ])
  end

  defp list_of(request, [], _last),
    do: Parts.empty(request, "No agent has run yet.", {"Start a conversation", ["chat"]})

  defp list_of(request, runs, last) do
    table =
      Parts.table(
        "Runs, the newest first",
        ["Input", "Profile", "Tenant", "Began", "Turns", "Status"],
        for run <- runs do
          [
            tag(:a, [href: Layout.path(request, ["agents", run.ref])], title(run)),
            run.profile,
            run.tenant || "–",
            Parts.time(run.started_at),
            Parts.number(run.turns),
            status(run.status)
          ]
        end
      )

    [Parts.live("agents", "agents", table), Parts.further(request, "agents", last)]
  end

  defp title(%{title: ""}), do: "(no input)"
  defp title(%{title: title}), do: title

  defp run_page(request, run) do
    content = fn ->
      Parts.live("agent", "agents", [facts(run), text(run), buttons(request, run)])
    end

    back = {"Agents", Layout.path(request, ["agents"])}
    reply(request, fields(run), :activity, :agents, title(run), content, back: back)
  end

  defp facts(run) do
    Parts.facts([
      {"Status", status(run.status)},
      {"Reason", run.reason},
      {"Run", tag(:code, [], run.ref)},
      {"Conversation", run.conversation},
      {"Profile", run.profile},
      {"Tenant", run.tenant},
      {"Began", Parts.time(run.started_at)},
      {"Ended", Parts.time(run.ended_at)},
      {"Turns", Parts.number(run.turns)},
      {"Continued", if(run.continued > 0, do: Parts.count(run.continued, "time", "times"))}
    ])
  end

  defp text(%{text: text}) when text in [nil, ""], do: nil

  defp text(%{text: text}) do
    section("answer", "Answer", tag(:pre, [class: "result", tabindex: "0"], text))
  end

  defp buttons(request, run) do
    actions =
      Enum.concat([
        if(run.status in [:interrupted, :failed],
          do: [{"continue", "Continue", "primary"}],
          else: []
        ),
        if(run.status in [:running, :interrupted], do: [{"stop", "Stop", "quiet"}], else: [])
      ])

    cond do
      actions == [] or not operates?(request) -> nil
      not changes?(request, run) -> tag(:p, [class: "help"], @common)
      true -> tag(:div, [class: "actions"], Enum.map(actions, &button(request, run, &1)))
    end
  end

  defp button(request, run, {action, text, class}) do
    Parts.button(request, ["agents", run.ref], text, class: class, fields: [action: action])
  end

  @good [:done, :pending]
  @open [:running]
  @warn [:interrupted, :stopped, :cut_off]

  defp status(status) when status in @good, do: Parts.badge(to_string(status), :good)
  defp status(status) when status in @open, do: Parts.badge(to_string(status), :info)
  defp status(status) when status in @warn, do: Parts.badge(to_string(status), :warn)
  defp status(status), do: Parts.badge(to_string(status), :bad)
end
