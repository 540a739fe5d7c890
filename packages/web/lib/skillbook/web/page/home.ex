defmodule Skillbook.Web.Page.Home do
  @moduledoc false
  # The first page: what needs the reader, what ran and failed in the last day, what is due and
  # what a request costs, each with its action. A book without skills or runs has steps instead.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Cache
  alias Skillbook.{Book, Prompt, Tools, Usage, View, Workflow}
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Attention, Layout, Parts, Rights, Runs}

  # Firings and runs that are read, and rows of a list.
  @max_read 50
  @max_rows 5
  @day 86_400
  # Entries that are read at once.
  @some 50

  @doc "The first page."
  def show(request, %{web: web}) do
    view = Caller.view(request)
    book = Book.of!(view)
    now = Book.now(book)
    since = DateTime.add(now, -@day)

    with {:ok, runs} <- Workflow.runs(view, limit: @max_read),
         {:ok, agenda} <- Skillbook.schedule(view, now: now, last: @max_read),
         {:ok, usage} <- used(view, since, now) do
      agenda = %{agenda | next: Enum.filter(agenda.next, &Runs.runs?(view, &1))}
      runs = Enum.map(runs, &%{&1 | started_at: time(&1.started_at)})
      own = Cache.keep(view.book, {:own, View.state(view)}, fn -> own?(view, nil) end)
      needs = Attention.read(request)

      data = %{
        profile: view.profile.id,
        now: now,
        own: own,
        new: not own or (not usage.any? and runs == [] and agenda.last == []),
        ran: usage.ran,
        failed: failed(agenda.last, runs, usage.failed, since),
        approvals: Enum.map(needs.approvals, &approval/1),
        errors: needs.errors,
        offers: length(needs.offers),
        revoked: for(one <- needs.revoked, do: one.account),
        due: scheduled(view, agenda.next),
        tokens: tokens(view)
      }

      answer(request, data, Runs.marks(runs, agenda, now, 24), needs, web)
    end
  end

  # The runs of a period, and the skills that failed in it with how often. Sums over all skills
  # are made once for the counts.
  defp used(view, since, until) do
    with {:ok, counts} <- Usage.state(view, since, until) do
      Cache.keep_ok(view.book, {:used, counts}, fn ->
        with {:ok, report} <- Usage.report(view, since: since, until: until) do
          failed =
            for %{failed: count, key: name} when count > 0 <- report.rows, do: {name, count}

          {:ok, %{ran: report.total.run, any?: report.rows != [], failed: failed}}
        end
      end)
    end
  end

  # Whether the view has an entry that is not built in. The first ones nearly always say.
  defp own?(view, last) do
    case View.entries(view, limit: @some, after: last) do
      [] -> false
      some -> Enum.any?(some, &(&1.source != "builtin")) or own?(view, List.last(some).name)
    end
  end

  # The tokens of a request before the user's text. A change of the catalog makes them anew.
  defp tokens(view) do
    Cache.keep(view.book, {:tokens, View.state(view)}, fn ->
      %{
        prompt: view |> Prompt.text() |> Prompt.tokens(),
        tools: view |> Tools.list(run_command: true, form: :auto) |> Tools.tokens()
      }
    end)
  end

  defp approval(one), do: Map.take(one, [:ref, :name, :command, :profile, :asked_at])

  # Those that another process runs are not due here.
  defp scheduled(view, rows) do
    for %{paused: nil, at: [at | _]} = row <- rows,
        Book.of!(view).of_parts.scheduler != false,
        do: %{name: row.name, at: at, means: row.means, run_as: row.run_as}
  end

  # The last failure of each skill. A firing and a run of it have the reason.
  defp failed(firings, runs, counted, since) do
    late? = &(DateTime.compare(&1, since) != :lt)

    firings =
      for one <- firings, Runs.failed?(one.status), late?.(one.started_at) do
        %{name: one.name, at: one.started_at, text: one.text, run: nil, count: 1}
      end

    runs =
      for run <- runs, Runs.failed?(run.status), late?.(run.started_at) do
        %{name: run.name, at: run.started_at, text: run.report, run: run.id, count: 1}
      end

    known = Enum.sort_by(firings ++ runs, & &1.at, {:desc, DateTime})

    counts = Map.new(counted)

    counted =
      for {name, count} <- counted, do: %{name: name, at: nil, text: nil, run: nil, count: count}

    (known ++ counted)
    |> Enum.uniq_by(& &1.name)
    |> Enum.map(&%{&1 | count: Map.get(counts, &1.name, &1.count)})
  end

  defp answer(request, data, marks, needs, web) do
    if Request.wants_json?(request) do
      Response.json(200, data)
    else
      content = if data.new, do: steps(request, data, web), else: state(request, data, marks)

      content = Parts.live("home", topics(), content)
      Layout.page(request, "Home", content, section: :home, attention: needs)
    end
  end

  defp topics, do: ["skills", "runs", "approvals", "diagnostics"]

  # A new book

  defp steps(request, data, web) do
    link = fn text, segments, primary? ->
      class = if primary?, do: "button primary", else: "button"
      tag(:a, [class: class, href: Layout.path(request, segments)], text)
    end

    write? = Rights.check(request) == :ok

    [
      tag(:p, [class: "lead"], "Four steps to a working assistant"),
      tag(:ol, [class: "first-steps"], [
        step(data.own, "Write a skill", "A page of Markdown: its purpose, and what to do.", [
          if(write?, do: link.("New skill", ["new"], not data.own)),
          if(write?, do: link.("Import", ["import"], false))
        ]),
        step(false, "Ask for it", "Talk to the model, and see which skills it reads.", [
          link.("Start a conversation", ["chat"], data.own)
        ]),
        step(data.ran > 0, "See it run", "Each run, with its steps and results.", [
          link.("Open the runs", ["runs"], false)
        ]),
        step(false, "Connect a client", client(request, web), [
          link.("Accounts and servers", ["connections"], false)
        ])
      ])
    ]
  end

  defp step(done?, title, text, actions) do
    tag(:li, [class: if(done?, do: "done")], [
      tag(:div, [], [
        tag(:h2, [], [title, if(done?, do: [" ", Parts.badge("done", :good)])]),
        tag(:p, [], text)
      ]),
      tag(:p, [class: "buttons"], actions)
    ])
  end

  defp client(request, web) do
    if :mcp in web.serve do
      ["Clients of MCP connect to ", tag(:code, [], Request.url(request, web, ["mcp"])), "."]
    else
      "This server has no MCP. Start one with the area mcp."
    end
  end

  # How things are

  defp state(request, data, marks) do
    [
      tag(:ul, [class: "figures"], figures(request, data)),
      needs(request, data),
      time_line(request, marks, data.now),
      tag(:div, [class: "beside"], [due(request, data), recent(request, data)])
    ]
  end

  defp figures(request, data) do
    failed = data.failed |> Enum.map(& &1.count) |> Enum.sum()
    waiting = length(data.approvals) + data.offers + length(data.revoked)

    for {text, value, help, path, kind} <- [
          {"Ran", data.ran, "in 24 hours", Layout.path(request, ["usage"], days: 1), nil},
          {"Failed", failed, "in 24 hours", "#failed", if(failed > 0, do: "bad")},
          {"Waiting", waiting, "for you", "#needs", if(waiting > 0, do: "warn")},
          {"Due", length(data.due), "scheduled", "#due", nil},
          {"Cost", data.tokens.prompt + data.tokens.tools, "tokens a request",
           Layout.path(request, ["prompt"]), nil}
        ] do
      tag(:li, [class: kind], [
        tag(:a, [href: path], [
          tag(:span, [class: "figure-name"], text),
          tag(:strong, [], Parts.number(value)),
          tag(:span, [class: "help"], help)
        ])
      ])
    end
  end

  # Approvals, failures and errors, each with what to do.
  defp needs(request, data) do
    approvals =
      for one <- Enum.take(data.approvals, @max_rows) do
        need(
          Parts.badge("waits", :warn),
          [tag(:code, [], one.command), tag(:span, [class: "help"], [" for ", one.profile])],
          one.asked_at,
          Layout.path(request, ["approvals", one.ref]),
          {"Review", one.ref},
          data.now
        )
      end

    failed =
      for one <- Enum.take(data.failed, @max_rows) do
        times = if one.count > 1, do: " #{Parts.number(one.count)} times", else: ""

        need(
          Parts.badge("failed", :bad),
          [
            entry(request, one.name),
            times,
            if(one.text, do: tag(:span, [class: "help"], [" ", String.slice(one.text, 0, 160)]))
          ],
          one.at,
          path_of(request, one),
          {"See why", one.name},
          data.now
        )
      end

    others =
      for {count, one, more, segments, action} <- [
            {data.errors, "error", "errors", ["diagnostics"], "Mend"},
            {data.offers, "tool of a server is new", "tools of servers are new", ["servers"],
             "Review"},
            {length(data.revoked), "account was withdrawn", "accounts were withdrawn",
             ["connections"], "Connect again"}
          ],
          count > 0 do
        mark = Parts.badge(if(segments == ["diagnostics"], do: "error", else: "waits"), :warn)
        path = Layout.path(request, segments)
        need(mark, Parts.count(count, one, more), nil, path, {action, hd(segments)}, nil)
      end

    section("needs", "Needs you", [
      if(approvals ++ failed ++ others == [],
        do: tag(:p, [class: "calm"], "Nothing failed, and nothing waits for you."),
        else: tag(:ul, [class: "needs", id: "failed"], approvals ++ failed ++ others)
      )
    ])
  end

  defp need(mark, text, at, path, {action, about}, now) do
    tag(:li, [], [
      tag(:span, [class: "need-mark"], mark),
      tag(:span, [class: "need-text"], text),
      tag(:span, [class: "need-time"], if(at, do: Parts.short_time(at, now))),
      # Buttons with one text need different names.
      tag(:a, [class: "button", href: path], [
        action,
        tag(:span, [class: "hidden"], [" ", about])
      ])
    ])
  end

  defp path_of(request, %{run: nil, at: nil, name: name}),
    do:
      Layout.path(request, ["usage"], days: 1) <> "#" <> if(name, do: "failed-heading", else: "")

  defp path_of(request, %{run: nil}), do: Layout.path(request, ["runs"]) <> "#firings-heading"
  defp path_of(request, %{run: id}), do: Layout.path(request, ["runs", "#{id}"])

  defp time_line(request, marks, now) do
    section("day", "The day", [
      Runs.time_line(request, marks, now),
      tag(:p, [class: "more"], tag(:a, [href: Layout.path(request, ["runs"])], "All runs"))
    ])
  end

  defp due(request, data) do
    section("due", "Due next", [
      if(data.due == [],
        do: Parts.none("Nothing is scheduled."),
        else:
          tag(
            :ul,
            [class: "needs", id: "due"],
            for one <- Enum.take(data.due, @max_rows) do
              tag(:li, [], [
                tag(:span, [class: "need-text"], [
                  entry(request, one.name),
                  tag(:span, [class: "help"], [" ", one.means, run_as(one)])
                ]),
                tag(:span, [class: "need-time"], Parts.short_time(one.at, data.now))
              ])
            end
          )
      )
    ])
  end

  defp run_as(one), do: one.run_as && ", as #{one.run_as}"

  defp recent(request, data) do
    cost = fn count -> Parts.count(count, "token", "tokens") end

    open = fn room ->
      text = ["Open", tag(:span, [class: "hidden"], [" the ", room])]
      tag(:a, [class: "button", href: Layout.path(request, [room])], text)
    end

    section("cost", "Each request", [
      tag(:ul, [class: "needs"], [
        tag(:li, [], [
          tag(:span, [class: "need-text"], "System prompt"),
          tag(:span, [class: "need-time"], cost.(data.tokens.prompt)),
          open.("prompt")
        ]),
        tag(:li, [], [
          tag(:span, [class: "need-text"], "Tools"),
          tag(:span, [class: "need-time"], cost.(data.tokens.tools)),
          open.("tools")
        ])
      ])
    ])
  end
end
