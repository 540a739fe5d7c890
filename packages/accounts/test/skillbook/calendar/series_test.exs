defmodule Skillbook.Calendar.CalDAV.SeriesTest do
  # Series of other programs in twelve zones with rules of their own: expanded, and changed, as
  # other programs read them. `fixtures/series/make.py` wrote the tables.
  use ExUnit.Case, async: true

  alias Skillbook.Calendar
  alias Skillbook.Calendar.{ICalendar, TimeZones}
  alias Skillbook.CalendarConformance
  alias Skillbook.Connections.Account
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{CalDAVServer, HTTPServer}

  @folder Path.expand("../../fixtures/series", __DIR__)
  @files @folder |> Path.join("*.ics") |> Path.wildcard() |> Enum.sort()
  @key "0123456789abcdef0123456789abcdef"
  @span {~U[2026-09-01 00:00:00Z], ~U[2029-09-01 00:00:00Z]}
  @minutes 90

  # The change, and the text or move that it makes of the fourth event.
  @changes [
    title_one: {:update, :one, %{title: "New"}},
    title_following: {:update, :following, %{title: "New"}},
    title_all: {:update, :all, %{title: "New"}},
    move_one: {:update, :one, :move},
    move_following: {:update, :following, :move},
    move_all: {:update, :all, :move},
    delete_one: {:delete, :one, nil},
    delete_following: {:delete, :following, nil},
    remind_one: {:update, :one, %{reminders: [30]}},
    remind_all: {:update, :all, %{reminders: [5, 15]}},
    answer_one: {:answer, :one, "declined"},
    answer_all: {:answer, :all, "accepted"}
  ]

  # {name, digest of the file, events} as other programs read a file.
  defp table(file) do
    for line <- @folder |> Path.join(file) |> File.stream!(),
        not String.starts_with?(line, "#"),
        [name, digest | events] = String.split(line),
        into: %{},
        do: {name, {digest, events}}
  end

  # A server that keeps files as they are, since Radicale writes them anew.
  defp plain(file) do
    files = if file, do: %{"series.ics" => File.read!(file)}, else: %{}
    {:ok, files} = Agent.start_link(fn -> files end)

    check = fn %{line: line, body: body} ->
      [method, path, _] = String.split(line, " ")
      {:instead, answer(method, Path.basename(path), body, files)}
    end

    {_pid, url} = HTTPServer.start(List.duplicate([], 20), check: check)

    account = %Account{
      book: nil,
      name: :calendar,
      vendor: Skillbook.Connections.CalDAV,
      profile: "ann",
      # A busy machine takes its time.
      deadline: System.monotonic_time(:millisecond) + 600_000,
      options: options(url <> "/own/")
    }

    {account, files}
  end

  defp options(url),
    do: %{url: url, username: "ann", password: fn -> "secret" end, address: "ann@example.com"}

  defp answer("PROPFIND", _name, _body, _files) do
    kind = "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype>"
    multistatus(response("/own/", kind))
  end

  defp answer("REPORT", _name, _body, files) do
    for {name, text} <- Agent.get(files, & &1), into: "" do
      data = "<d:getetag>#{etag(text)}</d:getetag><c:calendar-data>#{text}</c:calendar-data>"
      response("/own/" <> name, data)
    end
    |> multistatus()
  end

  defp answer("GET", name, _body, files) do
    text = Agent.get(files, &Map.fetch!(&1, name))
    HTTPServer.answer(text, [{"etag", etag(text)}, {"content-type", "text/calendar"}])
  end

  defp answer("PUT", name, body, files) do
    Agent.update(files, &Map.put(&1, name, body))
    [{:head, 204, []}]
  end

  defp response(href, properties) do
    "<d:response><d:href>#{href}</d:href><d:propstat><d:prop>#{properties}</d:prop>" <>
      "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
  end

  defp multistatus(text) do
    names = ~s(xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav")
    body = "<d:multistatus #{names}>#{text}</d:multistatus>"
    [{:head, 207, [{"content-length", "#{byte_size(body)}"}]}, {:raw, body}]
  end

  defp etag(text), do: "v#{:erlang.phash2(text)}"

  # An account on Radicale for each file, with a calendar for each test: it has few users.
  setup_all do
    accounts =
      Map.new(@files, fn file ->
        {file, put_in(CalDAVServer.user().options[:address], "ann@example.com")}
      end)

    {:ok, accounts: accounts}
  end

  defp on_radicale(%{accounts: accounts, ics: file} = context, files) do
    deadline = System.monotonic_time(:millisecond) + 60_000
    account = %{accounts[file] | deadline: deadline}
    calendar = Atom.to_string(context[:change] || :read)
    CalDAVServer.make(account, calendar)
    for {name, text} <- files, do: CalDAVServer.put(account, name, text, calendar)
    account |> read(calendar) |> shown()
  end

  defp read(account, calendar \\ nil) do
    {from, to} = @span
    query = %{calendar: calendar, from: from, to: to, text: nil, limit: 100, zone: "UTC"}
    {:ok, %{events: events} = listing} = Calendar.list(account, query)
    assert listing[:unreadable] in [nil, []]
    events
  end

  defp shown(events), do: events |> Enum.map(&text/1) |> Enum.sort()

  # With what differs from the series as it was made, as make.py shows events.
  defp text(event) do
    minutes = div(DateTime.diff(event.end, event.start), 60)
    title = if event.title == "Series", do: "", else: "/" <> event.title
    answer = if event.answer == "needs_action", do: "", else: "/" <> (event.answer || "-")

    reminders =
      case event |> CalendarConformance.reminders() |> Enum.sort() do
        [15] -> ""
        minutes -> "/r" <> Enum.join(minutes, ",")
      end

    start = Elixir.Calendar.strftime(event.start, "%Y%m%dT%H%MZ")
    "#{start}+#{minutes}#{title}#{reminders}#{answer}"
  end

  defp zone(file) do
    file |> Path.basename() |> String.split(".") |> hd() |> String.replace("-", "/")
  end

  describe "series of other programs" do
    for file <- @files do
      @tag ics: file
      test "#{Path.basename(file)} has the events that two libraries find", context do
        {_, expected} = table("series.txt")[Path.basename(context.ics, ".ics")]
        {account, files} = plain(context.ics)
        assert account |> read() |> shown() == expected
        assert on_radicale(context, Agent.get(files, & &1)) == expected
      end
    end
  end

  # A file for each cause of differences, which make.py shows to the other programs.
  test "what other programs read otherwise is read as the table of causes says" do
    {:ok, causes} = @folder |> Path.join("causes.json") |> File.read!() |> JSON.decode()
    assert length(causes) == 5

    for %{"cause" => cause, "read" => %{"Skillbook" => events}} <- causes do
      {account, _files} = plain(Path.join([@folder, "causes", cause <> ".ics"]))
      assert {cause, account |> read() |> shown()} == {cause, events}
    end
  end

  describe "changes of series of other programs" do
    for file <- @files, {change, what} <- @changes do
      @tag ics: file, change: change, what: what
      test "#{Path.basename(file)}: #{change}", context do
        %{ics: file, change: change, what: what} = context
        {later, expected, files} = changed(file, what)
        assert later == expected
        assert on_radicale(context, files) == later

        name = "#{Path.basename(file, ".ics")}.#{change}"
        assert as_others(name, files) == later
      end
    end

    # The events after a change, those that are expected, and the files.
    defp changed(file, {kind, scope, what} = change) do
      {account, files} = plain(file)
      before = read(account)
      event = chosen(before)
      options = %{scope: scope, notify: true, key: @key}

      case kind do
        :update ->
          assert {:ok, _} = Calendar.update(account, nil, event, changes(change, event), options)

        :delete ->
          assert :ok = Calendar.delete(account, nil, event, options)

        :answer ->
          answer = %{response: what, comment: nil}
          assert {:ok, _, false} = Calendar.answer(account, nil, event, answer, options)
      end

      later = account |> read() |> shown()
      {later, before |> expected(change, clock(file)) |> shown(), Agent.get(files, & &1)}
    end

    # The fourth event that is like its series, or the last of few.
    defp chosen(events) do
      like = Enum.filter(events, &(&1.title == "Series"))
      Enum.at(like, min(3, length(like) - 1))
    end

    defp changes({:update, _, :move}, event) do
      for field <- [:start, :end],
          into: %{},
          do:
            {field, event |> Map.fetch!(field) |> DateTime.add(@minutes * 60, :second, TimeZones)}
    end

    defp changes({_, _, changes}, _event), do: changes

    # The zone of a series: by its file, if that alone knows its name.
    defp clock(file) do
      {:ok, calendar} = file |> File.read!() |> ICalendar.parse()
      event = Enum.find(calendar.components, &(&1.name == "VEVENT"))
      {_, zone} = event |> ICalendar.get("DTSTART") |> ICalendar.time(calendar)
      zone
    end

    # What becomes of the events: moved by the clock of the zone, or gone.
    defp expected(events, {_, scope, what}, zone) do
      changed = chosen(events)
      # The series moves by the clock, and its event to where it was asked to be.
      clock = &ICalendar.local(&1, zone, "UTC")
      times = Enum.frequencies_by(events, &NaiveDateTime.to_time(clock.(&1.start)))
      {daily, _} = Enum.max_by(times, &elem(&1, 1))
      moved = clock.(DateTime.add(changed.start, @minutes * 60, :second, TimeZones))
      shift = NaiveDateTime.diff(moved, local(changed.start, zone, daily))

      Enum.flat_map(events, fn event ->
        if meant?(scope, event, changed),
          do: become(event, what, {zone, daily, shift}),
          else: [event]
      end)
    end

    defp meant?(:one, event, changed), do: event == changed
    defp meant?(:all, _event, _changed), do: true

    defp meant?(:following, event, changed),
      do: DateTime.compare(event.original, changed.original) != :lt

    defp become(_event, nil, _clock), do: []
    # An answer is for whom is asked.
    defp become(%{answer: nil} = event, answer, _clock) when is_binary(answer), do: [event]
    defp become(event, answer, _clock) when is_binary(answer), do: [%{event | answer: answer}]
    # An event that differs from its series keeps its own fields.
    defp become(%{title: "Moved"} = event, %{}, _clock), do: [event]
    defp become(event, %{title: title}, _clock), do: [%{event | title: title}]

    defp become(event, %{reminders: minutes}, _clock) do
      reminders = for before <- minutes, do: %{method: "display", minutes: before, at: nil}
      [%{event | reminders: reminders}]
    end

    defp become(event, :move, {zone, daily, shift}) do
      local = local(event.start, zone, daily)
      start = ICalendar.instant({NaiveDateTime.add(local, shift, :second), zone}, "UTC")
      ends = DateTime.add(start, DateTime.diff(event.end, event.start), :second, TimeZones)
      [%{event | start: TimeZones.shift(start, "UTC"), end: TimeZones.shift(ends, "UTC")}]
    end

    # The time by the rule, also where the clocks skip it.
    defp local(start, zone, daily) do
      local = ICalendar.local(start, zone, "UTC")
      ruled = local |> NaiveDateTime.to_date() |> NaiveDateTime.new!(daily)

      if DateTime.compare(start, ICalendar.instant({ruled, zone}, "UTC")) == :eq,
        do: ruled,
        else: local
    end
  end

  # The 300 series of make.py, which compares our reading after each change with those of others.
  if folder = System.get_env("SKILLBOOK_SERIES") do
    @tag timeout: :infinity
    test "all kinds of changes of all series" do
      folder = unquote(folder)
      File.mkdir_p!(Path.join(folder, "changed"))

      files = folder |> Path.join("*.ics") |> Path.wildcard() |> Enum.sort()

      # A run that was stopped goes on. The kinds take turns, so a part of it has all of them.
      wrong =
        for turn <- 0..12,
            {file, number} <- Enum.with_index(files),
            {kind, what} = if(turn == 0, do: {:read, nil}, else: kind(number + turn)),
            name = "#{Path.basename(file, ".ics")}.#{kind}",
            not File.exists?(Path.join([folder, "changed", name <> ".txt"])),
            {later, expected, files} = if(what, do: changed(file, what), else: unchanged(file)),
            later != expected or written(folder, name, later, files) != :ok,
            do: {name, later -- expected, expected -- later}

      assert wrong == []
    end

    defp kind(number), do: Enum.at(@changes, rem(number, length(@changes)))

    defp unchanged(file) do
      {account, files} = plain(file)
      events = account |> read() |> shown()
      {events, events, Agent.get(files, & &1)}
    end

    # The files, and the events as we read them.
    defp written(folder, case, events, files) do
      path = &Path.join([folder, "changed", &1])

      for {{_, text}, part} <- Enum.with_index(files),
          do: File.write!(path.("#{case}.#{part}.ics"), text)

      File.write!(path.(case <> ".txt"), Enum.join(events, " "))
    end
  end

  # The rules of a zone hold for as long as its series runs, which is without an end here.
  describe "new series" do
    for file <- @files do
      @tag ics: file, change: :new
      test "in #{Path.basename(file, ".ics")} are read by other programs", context do
        {account, files} = plain(nil)
        zone = zone(context.ics)
        {start, _} = TimeZones.local(~N[2026-09-14 09:00:00], zone)
        ends = DateTime.add(start, 3_600, :second, TimeZones)
        fields = [key: @key, repeat: "FREQ=WEEKLY;INTERVAL=5"]
        new = CalendarConformance.new("New", start, ends, fields)
        assert {:ok, _} = Calendar.create(account, nil, new)

        events = account |> read() |> shown()
        assert [first | _] = events
        start = start |> TimeZones.shift("UTC") |> Elixir.Calendar.strftime("%Y%m%dT%H%MZ")
        assert first == start <> "+60/New/r/-"
        files = Agent.get(files, & &1)
        assert on_radicale(context, files) == events
        assert as_others(Path.basename(context.ics, ".ics") <> ".new", files) == events
      end
    end
  end

  # The events that other programs find in these files, which are those of the table.
  defp as_others(change, files) do
    digests =
      for {name, text} <- files, into: %{} do
        row = "#{change}.#{String.slice(name, 0, 6)}"
        kept(row, text)
        {row, digest(text)}
      end

    table = Map.take(table("changed.txt"), Map.keys(digests))
    assert Map.new(table, fn {row, {digest, _events}} -> {row, digest} end) == digests
    table |> Enum.flat_map(fn {_, {_, events}} -> events end) |> Enum.sort()
  end

  # The files for make.py.
  defp kept(row, text) do
    if folder = System.get_env("SKILLBOOK_CHANGED"),
      do: folder |> Path.join(row <> ".ics") |> File.write!(text)
  end

  defp digest(text) do
    text
    |> String.replace("\r\n ", "")
    |> String.split("\r\n")
    |> Enum.reject(&String.starts_with?(&1, ~w(UID: DTSTAMP: LAST-MODIFIED: CREATED:)))
    |> Enum.join("\n")
    |> then(&:crypto.hash(:sha256, &1))
    |> Base.encode16(case: :lower)
    |> binary_part(0, 16)
  end
end
