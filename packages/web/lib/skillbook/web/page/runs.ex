defmodule Skillbook.Web.Page.Runs do
  @moduledoc false
  # Runs of workflows, firings of schedules and the next ones, on a time line and as tables.
  # Operators pause and resume schedules, and run them.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Profiles
  alias Skillbook.Support.Number
  alias Skillbook.Web.{Caller, Html, Request, Response}
  alias Skillbook.Web.Page.{Chart, Layout, Parts, Rights}
  alias Skillbook.{Book, OptionError, Profile, UnknownSkillError, View, Workflow}

  @periods [{"6", "6 hours", 6}, {"24", "24 hours", 24}, {"168", "7 days", 168}]
  @default "24"
  # Runs and firings that are read for the time line, and rows of a table.
  @max_read 50
  @max_rows 20
  # Rows of the time line, and marks in each.
  @max_lines 20
  @max_marks 100
  @times 3
  @runner "that runs schedules, such as skillbook serve --schedules"
  @actions %{"pause" => :pause_schedule, "resume" => :resume_schedule, "run" => :run_schedule}

  def index(request, _values) do
    view = Caller.view(request)
    now = view |> Book.of!() |> Book.now()
    {id, _text, hours} = List.keyfind(@periods, field(request, "hours"), 0) || default()

    # Those after a run or a firing that is not there any more begin with the newest.
    with {:ok, runs} <- from(request, "run", &Workflow.runs(view, [limit: @max_read] ++ &1)),
         agenda = &Skillbook.schedule(view, [now: now, times: @times, last: @max_read] ++ &1),
         {:ok, agenda} <- from(request, "firing", agenda) do
      next = Enum.filter(agenda.next, &runs?(view, &1))
      shown = if field(request, "next") == "all", do: length(next), else: @max_rows

      data = %{
        profile: view.profile.id,
        now: now,
        hours: hours,
        runs: Enum.map(runs, &%{&1 | started_at: time(&1.started_at)}),
        firings: agenda.last,
        next: Enum.take(next, shown),
        more: max(length(next) - shown, 0)
      }

      reply(request, data, :activity, :runs, "Runs", fn ->
        content(request, view, %{data | next: next}, shown, id)
      end)
    end
  end

  defp from(request, query, list) do
    text = field(request, query, 300)

    last =
      case query == "run" && Number.integer(text) do
        {id, ""} -> id
        _other -> if query == "firing" and text != "", do: text
      end

    with {:error, %OptionError{}} <- list.(after: last), do: list.([])
  end

  @doc "Pauses or resumes the schedule of a skill, or runs it, for an operator."
  def operate(request, _values) do
    # The page says what the button has done.
    asked = &%{"asked" => &1, "action" => &2["action"]}
    submit(request, &Caller.view/1, ["runs"], @actions, asked)
  end

  @doc """
  Whether a row of the agenda will run: it is on, and this book runs it as one of its profiles.
  Another process may have others, and a restricted profile is not told.
  """
  @spec runs?(View.t(), map()) :: boolean()
  def runs?(_view, %{off: true}), do: false

  def runs?(view, %{run_as: run_as}) do
    book = Book.of!(view)

    cond do
      book.of_parts.scheduler == false -> true
      run_as == nil -> not Profile.unrestricted?(view.profile)
      true -> book.fetch_profile != nil or Profiles.find(book, run_as) != nil
    end
  end

  # Milliseconds that the result of a firing is waited for.
  @wait 20_000

  @doc "Runs a skill as its schedule would, and shows the result on its page."
  def fire(request, %{name: name}) do
    view = Caller.view(request)

    for_operators(request, fn ->
      Rights.with_writes(request, fn ->
        by = [by: Caller.by(request.caller), operator: true]
        # A process of its own gets the messages of the book.
        task = Task.async(fn -> fire(view, name, by) end)

        case Task.await(task, :infinity) do
          {:ok, firing} ->
            at = DateTime.to_iso8601(firing.at)
            Response.redirect(303, Layout.path(request, ["skills", name], fired: at))

          {:error, %UnknownSkillError{}} ->
            Layout.not_found(request)

          {:error, error} ->
            refused(request, 409, error)
        end
      end)
    end)
  end

  defp fire(view, name, by) do
    :ok = Skillbook.subscribe(view.book)

    with {:ok, firing} <- Skillbook.run_schedule(view, name, by) do
      if Book.of!(view).of_parts.scheduler != false,
        do: await(view, firing, System.monotonic_time(:millisecond) + @wait)

      {:ok, firing}
    end
  end

  defp await(%{book: book} = view, %{name: name} = firing, until) do
    unless match?(%{finished_at: %DateTime{}}, firing_of(view, name, firing.at)) do
      receive do
        {:skillbook_run, ^book, %{name: ^name}} -> await(view, firing, until)
      after
        max(until - System.monotonic_time(:millisecond), 0) -> :ok
      end
    end
  end

  # A firing that the view shows.
  defp firing_of(view, name, at) do
    case Skillbook.schedule(view, names: [name], last: 20) do
      {:ok, %{last: last}} ->
        Enum.find(last, &(&1.name == name and DateTime.compare(&1.at, at) == :eq))

      {:error, _error} ->
        nil
    end
  end

  @doc "What became of the firing that the query names."
  @spec fired(Request.t(), String.t()) :: Html.content()
  def fired(request, name) do
    view = Caller.view(request)

    with {:ok, at, _offset} <- DateTime.from_iso8601(field(request, "fired", 40)) do
      case firing_of(view, name, at) do
        %{finished_at: %DateTime{}} = one ->
          kind = if failed?(one.status), do: "bad", else: "good"

          tag(:div, [class: "notice #{kind}", role: "status"], [
            tag(:p, [], [
              tag(:strong, [], if(failed?(one.status), do: "It failed", else: "It ran")),
              " as #{one.profile}, in #{milliseconds(one.duration)}."
            ]),
            if(one.text, do: tag(:pre, [class: "result", tabindex: "0"], one.text))
          ])

        _not_yet ->
          runs? = Book.of!(view).of_parts.scheduler != false
          Parts.done(if(runs?, do: "It runs now.", else: "It waits for a process #{@runner}."))
      end
    else
      _none -> nil
    end
  end

  defp default, do: List.keyfind(@periods, @default, 0)

  @doc "A run with its steps."
  def show(request, %{id: id}) do
    view = Caller.view(request)

    with {id, ""} <- Number.integer(id),
         {:ok, %{results: steps} = run} <- Workflow.fetch_run(view, id) do
      run = %{Map.delete(run, :results) | started_at: time(run.started_at)}
      data = %{run: run, steps: steps}
      back = {"Runs", Layout.path(request, ["runs"])}
      title = "Run R-#{run.id} of #{run.name}"

      content = fn -> run(request, run, steps) end
      reply(request, data, :activity, :runs, title, content, back: back)
    else
      {:error, error} -> {:error, error}
      _none -> Layout.not_found(request)
    end
  end

  defp content(request, view, data, shown, id) do
    {firings, older_firings} = Enum.split(data.firings, @max_rows)
    {runs, older_runs} = Enum.split(data.runs, @max_rows)
    marks = marks(data.runs, %{last: data.firings, next: data.next}, data.now, data.hours)

    [
      form(request, id),
      asked(request, view, data.next),
      Parts.live("runs", "runs", [
        section("time-line", "Time line", time_line(request, marks, data.now)),
        next(request, view, Enum.take(data.next, shown)),
        if(data.more > 0,
          do: link(request, "All #{Parts.number(length(data.next))} schedules", next: "all")
        ),
        firings(request, firings),
        if(older_firings != [],
          do: link(request, "Older firings", firing: place(List.last(firings)))
        ),
        runs(request, runs),
        if(older_runs != [], do: link(request, "Older runs", run: List.last(runs).id))
      ])
    ]
  end

  defp link(request, text, query),
    do: tag(:p, [class: "more"], tag(:a, [href: Layout.path(request, ["runs"], query)], text))

  defp place(firing), do: "#{DateTime.to_iso8601(firing.at)} #{firing.name}"

  # What became of the last button; only for a skill that the table has.
  defp asked(request, view, rows) do
    name = field(request, "asked")
    runs? = Book.of!(view).of_parts.scheduler != false

    case Enum.any?(rows, &(&1.name == name)) && field(request, "action") do
      "pause" -> Parts.done("#{name} is paused.")
      "resume" -> Parts.done("#{name} runs on its schedule again.")
      "run" when runs? -> Parts.done("#{name} runs now; the result comes under Last firings.")
      "run" -> Parts.done("#{name} waits for a process with this database #{@runner}.")
      _none -> nil
    end
  end

  defp form(request, id) do
    periods = for {value, text, _hours} <- @periods, do: {value, "±" <> text}
    query_form(request, ["runs"], select("hours", "Period", id, periods))
  end

  @doc """
  The span of a time line around `now`, its rows of marks by name, and how many more there are.
  """
  def marks(runs, agenda, now, hours) do
    {first, last} = {DateTime.add(now, -hours * 3600), DateTime.add(now, hours * 3600)}
    span = milliseconds_of(first)..milliseconds_of(last)

    marks =
      for {kind, from, row} <-
            Enum.concat([
              for(run <- runs, do: {"run", run.started_at, run}),
              for(one <- agenda.last, do: {"firing", one.started_at, one}),
              for(%{paused: nil} = one <- agenda.next, at <- one.at, do: {:next, at, one})
            ]),
          at = milliseconds_of(from),
          at in span,
          do: {row.name, {kind, from, at, row}}

    {rows, more} =
      marks
      |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
      |> Enum.sort()
      |> Enum.split(@max_lines)

    rows =
      for {name, marks} <- rows,
          do: {name, marks |> Enum.take(@max_marks) |> Enum.map(&mark/1)}

    {{first, last}, rows, length(more)}
  end

  @doc "The time line of such marks."
  def time_line(request, {_span, [], _more}, _now),
    do: Parts.empty(request, "Nothing ran, and nothing is due.", {"Try a command", ["try"]})

  def time_line(_request, {span, rows, more}, now) do
    about = %{
      id: "time-line",
      title: "Runs and firings over time",
      description: "#{Parts.count(length(rows) + more, "skill", "skills")} ran or will run."
    }

    [
      Chart.time_line(about, span, now, rows),
      if(more > 0, do: tag(:p, [], "and #{more} more skills"))
    ]
  end

  @doc "Whether a status of a run or of a firing is a failure."
  def failed?(status), do: class(status) == "bad"

  defp mark({:next, from, at, _row}),
    do: %{from: at, to: nil, class: "mark next", text: "next firing at #{from}"}

  defp mark({kind, from, at, %{duration: duration, status: status}}) do
    to = duration && at + round(duration)
    %{from: at, to: to, class: "mark #{class(status)}", text: "#{kind} at #{from}: #{status}"}
  end

  defp milliseconds_of(time), do: DateTime.to_unix(time, :millisecond)

  defp class(status) when status in [:ok, :template, "done", "ok"], do: "good"

  defp class(status) when status in [:running, :queued, :pending, "running", "pending"],
    do: "open"

  defp class(_failed), do: "bad"

  defp next(request, view, rows) do
    runs? = Book.of!(view).of_parts.scheduler != false
    operates? = operates?(request) and Book.of!(view).store != nil

    section("next", "Next firings", [
      if(rows != [] and not runs?,
        do:
          tag(:p, [class: "help"], [
            "This book runs no schedules. At these times they run only in another process " <>
              "with this database, such as ",
            tag(:code, [], "skillbook serve --schedules"),
            "."
          ])
      ),
      if(rows == [],
        do: Parts.none("Nothing is scheduled."),
        else:
          Parts.table(
            "Scheduled skills, the soonest first",
            ["Skill", "Schedule", "Runs as", "Next", "Run now"] ++
              if(operates?, do: ["Change"], else: []),
            for row <- rows do
              [
                entry(request, row.name),
                [row.means, " ", tag(:code, [class: "cron"], row.schedule)],
                row.run_as || if(runs?, do: "–", else: "the profile of that process"),
                times(row),
                try_link(request, view, row.name)
              ] ++ if(operates?, do: [buttons(request, row)], else: [])
            end
          )
      )
    ])
  end

  defp times(%{paused: %{} = pause}) do
    [
      Parts.badge("paused", :warn),
      " since ",
      Parts.time(pause.at),
      if(pause.by, do: [" by ", pause.by]),
      if(pause.reason, do: [": ", pause.reason])
    ]
  end

  defp times(%{at: []}), do: "never"
  defp times(row), do: Parts.time(hd(row.at))

  defp buttons(request, row) do
    pause = if row.paused, do: {"resume", "Resume"}, else: {"pause", "Pause"}

    for {action, text} <- [pause, {"run", "Run as scheduled"}] do
      # Only the names differ, for users of screen readers.
      text = [text, tag(:span, [class: "hidden"], [" ", row.name])]

      Parts.button(request, ["runs"], text,
        class: "quiet",
        fields: [name: row.name, action: action]
      )
    end
  end

  # A command has a form, which runs it as the caller.
  defp try_link(request, view, name) do
    case View.fetch(view, name) do
      {:ok, %{kind: :command, user_invocable: true}} ->
        tag(:a, [href: Layout.path(request, ["try", name])], "Run it")

      _other ->
        "–"
    end
  end

  defp firings(request, rows) do
    section("firings", "Last firings", [
      if(rows == [],
        do: Parts.none("Nothing has run on its schedule yet."),
        else:
          Parts.table(
            "Firings, the newest first",
            ["Skill", "For", "Status", "As", "Took", "Result"],
            for row <- rows do
              [
                entry(request, row.name),
                Parts.time(row.at),
                status(row.status),
                row.profile,
                milliseconds(row.duration),
                long(row.text)
              ]
            end
          )
      )
    ])
  end

  defp runs(request, rows) do
    section("workflows", "Runs of workflows", [
      if(rows == [],
        do: Parts.none("No workflow has run yet."),
        else:
          Parts.table(
            "Runs, the newest first",
            ["Run", "Workflow", "Began", "Status", "Steps", "Took", "As"],
            for run <- rows do
              [
                tag(:a, [href: Layout.path(request, ["runs", "#{run.id}"])], "R-#{run.id}"),
                entry(request, run.name),
                Parts.time(run.started_at),
                status(run.status),
                steps(run),
                milliseconds(run.duration),
                "#{run.profile} (#{run.by})"
              ]
            end
          )
      )
    ])
  end

  defp steps(%{steps: 0, ran: ran}), do: "#{ran}"

  defp steps(%{steps: steps, ran: ran}) when is_integer(steps) and is_integer(ran),
    do: "#{ran} of #{max(steps, ran)}"

  defp run(request, run, steps) do
    [
      Parts.facts([
        {"Workflow", entry(request, run.name)},
        {"Command", tag(:code, [], run.command)},
        {"Began", Parts.time(run.started_at)},
        {"Took", milliseconds(run.duration)},
        {"Status", status(run.status)},
        {"As", "#{run.profile} (#{run.by})"}
      ]),
      if(run.report, do: [tag(:h2, [], "Report"), tag(:pre, [tabindex: "0"], run.report)]),
      tag(:h2, [], "Steps"),
      if(steps == [], do: Parts.none("No step has ended.")),
      tag(
        :ol,
        [class: "steps"],
        for step <- steps do
          tag(:li, [], [
            tag(:p, [], [
              tag(:code, [], step.command),
              " ",
              status(step.status),
              " ",
              tag(:span, [class: "help"], milliseconds(step.duration))
            ]),
            long(step.content)
          ])
        end
      )
    ]
  end

  defp status(status) do
    kind = %{"good" => :good, "open" => :info, "bad" => :bad}[class(status)]
    Parts.badge(to_string(status), kind)
  end
end
