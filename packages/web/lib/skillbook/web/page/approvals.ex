defmodule Skillbook.Web.Page.Approvals do
  @moduledoc false
  # Calls that wait for an approval, or had one. Operators see those of all profiles and decide;
  # others see their own, and cannot decide: no caller approves its own call.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.{Approval, ApprovalError, Book, Part}
  alias Skillbook.Run.Worker
  alias Skillbook.Support.Operation
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Layout, Parts}

  @limit 1_000
  @page_size 100
  # Milliseconds that a decision is waited for. The call goes on after it, and the page of the
  # approval shows its end.
  @wait 20_000
  @max_reason 1_000

  @common "The call belongs to no tenant, so an operator of one tenant cannot decide about it."

  @doc "The calls that wait, or with `status=all` all of them."
  def index(request, _values) do
    all? = field(request, "status") == "all"
    statuses = if all?, do: Approval.statuses(), else: [:pending, :running]

    case list(request, statuses) do
      {:ok, approvals} ->
        {page, pages, shown} = page_of(request, approvals, @page_size)

        data = %{
          status: if(all?, do: "all", else: "open"),
          page: page,
          pages: pages,
          approvals: Enum.map(shown, &fields/1)
        }

        reply(request, data, :activity, :approvals, "Approvals", fn ->
          [
            content(request, shown, all?),
            Parts.pages(request, ["approvals"], query(all?), page, pages)
          ]
        end)

      {:error, error} ->
        without(request, error)
    end
  end

  defp query(true), do: %{"status" => "all"}
  defp query(false), do: %{}

  @doc "One call."
  def show(request, %{ref: ref}) do
    case fetch(request, ref) do
      {:ok, approval} -> show(request, approval, nil, 200)
      {:error, error} -> without(request, error)
    end
  end

  @doc "Approves or denies a call."
  def decide(request, %{ref: ref}) do
    for_operators(request, fn ->
      with {:ok, approval} <- fetch(request, ref),
           :ok <- check_tenant(request, approval),
           {:ok, fields} <- Request.form(request),
           {:ok, operation} <- operation(fields["decision"]),
           {:ok, input} <- input(operation, fields) do
        decide(request, ref, operation, [by: Caller.by(request.caller)] ++ input)
      else
        {:error, error} -> without(request, error)
        :common -> Layout.failed(request, 403, @common)
        {:refused, text} -> Layout.failed(request, 422, text)
        :error -> Layout.failed(request, 400, "The form could not be read.")
      end
    end)
  end

  defp operation("yes"), do: {:ok, Part.operation(:approve)}
  defp operation("no"), do: {:ok, Part.operation(:deny)}
  defp operation(_other), do: {:refused, "Expected the decision yes or no."}

  @doc "`:ok` if an operator may decide about a call, else `:common`."
  def check_tenant(request, approval),
    do: if(Caller.writes?(request.caller, approval.tenant), do: :ok, else: :common)

  defp decide(request, ref, %{run: run} = operation, options) do
    book = book(request)

    # Not linked: a person who closes the page does not interrupt the call.
    task =
      Task.Supervisor.async_nolink(Worker.supervisor(book), fn -> run.(book, ref, options) end)

    case Task.yield(task, @wait) do
      {:ok, {:error, error}} ->
        with {:ok, approval} <- fetch(request, ref),
             do: show(request, approval, error, Operation.status(operation, error)),
             else: (_ -> Layout.not_found(request))

      _decided_or_running ->
        Response.redirect(303, Layout.path(request, ["approvals", ref]))
    end
  end

  defp list(request, statuses) do
    {whose, options} = whose(request)
    Skillbook.approvals(whose, [status: statuses, limit: @limit] ++ options)
  end

  @doc "A call that the caller may see."
  def fetch(request, ref) do
    {whose, options} = whose(request)
    Part.call(:approval, [whose, ref, options])
  end

  defp whose(%{caller: %{operator?: true, profile: profile}} = request),
    do: {book(request), [tenant: profile.tenant]}

  defp whose(request), do: {Caller.view(request), []}

  defp without(request, %ApprovalError{kind: :unknown}), do: Layout.not_found(request)

  defp without(request, %ApprovalError{kind: :store}) do
    reply(request, %{approvals: []}, :activity, :approvals, "Approvals", fn ->
      Parts.empty("Approvals need a database.")
    end)
  end

  defp without(_request, error), do: {:error, error}

  defp fields(approval), do: :approve |> Part.json(approval) |> Map.drop([:book, :run])

  # Pages

  defp content(request, approvals, all?) do
    [
      tag(:p, [], [
        if(all?,
          do: tag(:a, [href: Layout.path(request, ["approvals"])], "Waiting only"),
          else:
            tag(
              :a,
              [href: Layout.path(request, ["approvals"], status: "all")],
              "Show decided"
            )
        )
      ]),
      Parts.live("approvals", "approvals", list_of(request, approvals, all?))
    ]
  end

  defp list_of(_request, [], true), do: Parts.empty("No approvals yet.")

  defp list_of(request, [], false),
    do: Parts.empty(request, "Nothing waits for an approval.", {"See what ran", ["runs"]})

  defp list_of(request, approvals, _all?) do
    Parts.table(
      "Calls, the newest first",
      ["Approval", "Command", "Profile", "Asked", "Status", "Decided by"],
      for one <- approvals do
        [
          tag(:a, [href: Layout.path(request, ["approvals", one.ref])], one.ref),
          tag(:code, [], one.command),
          one.profile,
          Parts.time(one.asked_at),
          status(one.status),
          one.by || "–"
        ]
      end
    )
  end

  defp show(request, approval, error, status) do
    data = approval |> fields() |> Map.put(:error, error && Exception.message(error))

    content = fn ->
      [
        facts(request, approval),
        if(approval.result, do: result(approval.result)),
        if(approval.status == :pending, do: decision(request, approval, error))
      ]
    end

    reply(request, data, :activity, :approvals, "Approval #{approval.ref}", content,
      back: {"Approvals", Layout.path(request, ["approvals"])},
      errors: error && Parts.failure(Exception.message(error)),
      status: status
    )
  end

  defp facts(request, one) do
    Parts.live(
      "approval",
      "approvals",
      Parts.facts([
        {"Status", status(one.status)},
        {"Command", tag(:pre, [tabindex: "0"], tag(:code, [], one.command))},
        {"Skill", entry(request, one.name)},
        {"Called by", one.profile},
        {"Asked", Parts.time(one.asked_at)},
        {"Expires", if(one.status == :pending, do: Parts.time(one.expires_at))},
        {"Decided", Parts.time(one.decided_at)},
        {"Decided by", one.by},
        {"Reason", one.reason},
        {"Ended", Parts.time(one.finished_at)}
      ])
    )
  end

  defp result(result) do
    section("result", "Result", [
      tag(:p, [], status(result.status)),
      tag(:pre, [class: "result", tabindex: "0"], result.content)
    ])
  end

  defp decision(%{caller: %{operator?: true}} = request, approval, error) do
    if check_tenant(request, approval) == :ok,
      do: decision_form(request, approval, error),
      else: tag(:p, [class: "help"], @common)
  end

  defp decision(_request, _approval, _error), do: tag(:p, [class: "help"], "An operator decides.")

  defp decision_form(request, approval, error) do
    section(
      "decision",
      "Decision",
      Parts.form(request, ["approvals", approval.ref], [
        Parts.text_field("reason", "Reason", nil,
          optional: true,
          help: "It is kept with the decision. If you say no, the model gets it too.",
          maxlength: @max_reason
        ),
        if(approval.resumable and agent?(approval),
          do:
            Parts.checkbox("resume", "Go on with the conversation in which it was called", false)
        ),
        if(match?(%{kind: :changed}, error),
          do:
            Parts.checkbox("force", "Run it although its page has changed since the call", false)
        ),
        tag(:div, [class: "actions"], [
          tag(
            :button,
            [type: "submit", name: "decision", value: "yes", class: "primary"],
            "Yes, run it"
          ),
          tag(:button, [type: "submit", name: "decision", value: "no", class: "quiet"], "No")
        ])
      ])
    )
  end

  defp agent?(approval), do: match?(%{of_parts: %{agent: [_ | _]}}, Book.find(approval.book))

  defp status(:pending), do: Parts.badge("waits", :warn)
  defp status(:running), do: Parts.badge("runs", :info)

  defp status(good) when good in [:done, :ok, :template, :help],
    do: Parts.badge(to_string(good), :good)

  defp status(bad), do: Parts.badge(to_string(bad), :bad)
end
