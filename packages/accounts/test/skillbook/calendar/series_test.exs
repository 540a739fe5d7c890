defmodule Skillbook.Calendar.CalDAV.SeriesTest do
  # Series of other programs in twelve zones with rules of their own: expanded, and changed, as
  # other programs read them. `fixtures/series/make.py` wrote the tables.
  use ExUnit.Case, async: true

  alias Skillbook.Calendar
  alias Skillbook.Calendar.TimeZones
  alias Skillbook.CalendarConformance
  alias Skillbook.Connections.Account
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
    delete_following: {:delete, :following, nil}
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
    files = start_supervised!({Agent, fn -> files end})

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
      deadline: System.monotonic_time(:millisecond) + 60_000,
      options: %{url: url <> "/own/", username: "ann", password: fn -> "secret" end}
    }

    {account, files}
  end

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
    {:ok, accounts: Map.new(@files, &{&1, CalDAVServer.user()})}
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

  defp shown(events) do
    for event <- events do
      minutes = div(DateTime.diff(event.end, event.start), 60)
      Elixir.Calendar.strftime(event.start, "%Y%m%dT%H%MZ") <> "+#{minutes}"
    end
    |> Enum.sort()
  end

  defp zone(file), do: file |> Path.basename(".ics") |> String.replace("-", "/")

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

  describe "changes of series of other programs" do
    for file <- @files, {change, what} <- @changes do
      @tag ics: file, change: change, what: what
      test "#{Path.basename(file)}: #{change}", context do
        %{ics: file, change: change, what: what} = context
        {account, files} = plain(file)
        before = read(account)
        event = Enum.at(before, 3)
        changes = changes(what, event)
        options = %{scope: elem(what, 1), notify: true, key: @key}

        case what do
          {:update, _, _} ->
            assert {:ok, _} = Calendar.update(account, nil, event, changes, options)

          {:delete, _, _} ->
            assert :ok = Calendar.delete(account, nil, event, options)
        end

        later = account |> read() |> shown()
        assert later == before |> expected(what, zone(file)) |> shown()
        files = Agent.get(files, & &1)
        assert on_radicale(context, files) == later

        name = "#{Path.basename(file, ".ics")}.#{change}"
        assert as_others(name, files) == later
      end
    end

    defp changes({:update, _, :move}, event) do
      for field <- [:start, :end],
          into: %{},
          do:
            {field, event |> Map.fetch!(field) |> DateTime.add(@minutes * 60, :second, TimeZones)}
    end

    defp changes({_, _, changes}, _event), do: changes

    # What becomes of the events: moved by the clock of the zone, or gone.
    defp expected(events, {_, scope, what}, zone) do
      changed = Enum.at(events, 3)

      Enum.flat_map(events, fn event ->
        if meant?(scope, event, changed), do: become(event, what, zone), else: [event]
      end)
    end

    defp meant?(:one, event, changed), do: event == changed
    defp meant?(:all, _event, _changed), do: true

    defp meant?(:following, event, changed),
      do: DateTime.compare(event.original, changed.original) != :lt

    defp become(_event, nil, _zone), do: []
    defp become(event, %{title: _}, _zone), do: [event]

    defp become(event, :move, zone) do
      local = event.start |> TimeZones.shift(zone) |> DateTime.to_naive()
      {start, _} = local |> NaiveDateTime.add(@minutes * 60, :second) |> TimeZones.local(zone)
      ends = DateTime.add(start, DateTime.diff(event.end, event.start), :second, TimeZones)
      [%{event | start: TimeZones.shift(start, "UTC"), end: TimeZones.shift(ends, "UTC")}]
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
        assert first == shown([%{start: TimeZones.shift(start, "UTC"), end: ends}]) |> hd()
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
