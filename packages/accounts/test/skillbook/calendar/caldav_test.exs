defmodule Skillbook.Calendar.CalDAVTest do
  # The adapter for CalDAV, against Radicale.
  use ExUnit.Case, async: true

  alias Skillbook.Calendar.CalDAV.Events
  alias Skillbook.Calendar.ICalendar
  alias Skillbook.Test.{CalDAVServer, HTTPServer}

  use Skillbook.CalendarConformance, start: &CalDAVServer.account/0

  doctest Events

  @berlin "Europe/Berlin"

  describe "finding calendars" do
    # {the account's path, how the calendar is found}
    for {path, how} <- [
          {"/", "by the user's principal"},
          {"/nowhere/", "by the server's address for CalDAV"},
          {"/USER/", "by the user's home"},
          {"/USER/own/", "by its own address"}
        ] do
      @tag path: path
      test "#{how}: #{path}", %{path: path} do
        account = CalDAVServer.account(path)
        assert {:ok, [%{id: "own", name: "own", zone: @berlin}]} = Calendar.calendars(account)
        assert {:ok, _} = Calendar.create(account, nil, hour("E", "2026-03-02 09:00"))
        assert [{"E", _}] = listed(account, "2026-03-02", "2026-03-03")
      end
    end

    test "several calendars; a user without one; a wrong password" do
      account = CalDAVServer.account()
      CalDAVServer.make(account, "work")

      assert {:ok, [%{id: "own", primary: true}, %{id: "work", zone: nil, primary: false}]} =
               Calendar.calendars(account)

      assert {:ok, _} = Calendar.create(account, "work", hour("W", "2026-03-02 09:00"))
      assert [] = listed(account, "2026-03-02", "2026-03-03")

      assert [{"W", _}] = listed(account, "2026-03-02", "2026-03-03", @berlin, calendar: "work")
      # Both count as busy.
      assert {:ok, %{"me" => {:ok, [_]}, "bob@example.com" => {:error, reason}}} =
               Calendar.busy(
                 account,
                 ["me", "bob@example.com"],
                 at("2026-03-02 00:00"),
                 at("2026-03-03 00:00")
               )

      assert reason == "this calendar's server shows the times of the user alone"

      assert {:error, %NotFoundError{kind: "calendar", id: "other"}} =
               Calendar.create(account, "other", hour("E", "2026-03-02 09:00"))

      for result <- [
            Calendar.create(CalDAVServer.user(), nil, hour("E", "2026-03-02 09:00")),
            Calendar.create(CalDAVServer.user(), "other", hour("E", "2026-03-02 09:00"))
          ] do
        assert {:error, error} = result

        assert Exception.message(error) ==
                 "the account has no calendar yet; the user can make one in another program"
      end

      wrong = put_in(account.options.password, fn -> "wrong" end)
      assert {:error, %ServiceError{kind: :unauthorized}} = Calendar.calendars(wrong)
    end
  end

  describe "ids" do
    # The name of a folder in place of a file would delete all events of a calendar.
    for id <- ~w(. .. %2e %2E%2e ./ ../team ..%2Fteam ../team/ team/.. ./team.ics .._20260302) do
      @tag id: id
      test "that lead out of the calendar are unknown: #{id}", %{id: id} do
        account = CalDAVServer.account()
        CalDAVServer.make(account, "team")
        {:ok, _} = Calendar.create(account, nil, hour("E", "2026-03-02 09:00"))
        {:ok, event} = Calendar.create(account, "team", hour("W", "2026-03-02 09:00"))

        assert {:error, %NotFoundError{kind: "event", id: ^id}} =
                 Calendar.get(account, nil, id, @berlin)

        options = %{scope: :all, notify: false, key: "k"}
        forged = %{event | id: id}
        assert {:error, %NotFoundError{}} = Calendar.delete(account, nil, forged, options)

        assert {:error, %NotFoundError{}} =
                 Calendar.update(account, nil, forged, %{title: "X"}, options)

        assert [{"E", _}] = listed(account, "2026-03-02", "2026-03-03")
        assert [{"W", _}] = listed(account, "2026-03-02", "2026-03-03", @berlin, calendar: "team")
      end
    end
  end

  describe "files of other programs" do
    @outlook """
    BEGIN:VCALENDAR\r
    VERSION:2.0\r
    PRODID:-//Other//EN\r
    BEGIN:VTIMEZONE\r
    TZID:W. Europe Standard Time\r
    BEGIN:STANDARD\r
    DTSTART:16010101T030000\r
    TZOFFSETFROM:+0200\r
    TZOFFSETTO:+0100\r
    RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r
    END:STANDARD\r
    BEGIN:DAYLIGHT\r
    DTSTART:16010101T020000\r
    TZOFFSETFROM:+0100\r
    TZOFFSETTO:+0200\r
    RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r
    END:DAYLIGHT\r
    END:VTIMEZONE\r
    BEGIN:VEVENT\r
    UID:other-1\r
    DTSTAMP:20260101T000000Z\r
    DTSTART;TZID=W. Europe Standard Time:20260323T090000\r
    DURATION:PT1H30M\r
    RRULE:FREQ=WEEKLY;COUNT=3\r
    SUMMARY;LANGUAGE=de:Besprechung\\, wöchentlich mit einem Titel\\; der über die\r
     Zeile geht\r
    ORGANIZER;CN="Bob; B":mailto:bob@example.com\r
    ATTENDEE;CN="Ann, A";PARTSTAT=ACCEPTED:mailto:ann@example.com\r
    X-OTHER;X-P="a:b":kept\\nas it is\r
    BEGIN:VALARM\r
    ACTION:DISPLAY\r
    TRIGGER:-PT15M\r
    DESCRIPTION:Soon\r
    END:VALARM\r
    END:VEVENT\r
    BEGIN:VEVENT\r
    UID:other-1\r
    DTSTAMP:20260101T000000Z\r
    RECURRENCE-ID;TZID=W. Europe Standard Time:20260330T090000\r
    DTSTART;TZID=W. Europe Standard Time:20260331T150000\r
    DURATION:PT1H30M\r
    SUMMARY:Moved\r
    END:VEVENT\r
    END:VCALENDAR\r
    """

    test "are read with their own zones, and keep everything that is not changed" do
      account = CalDAVServer.account()
      CalDAVServer.put(account, "other_1.ics", @outlook)

      title = "Besprechung, wöchentlich mit einem Titel; der über dieZeile geht"

      assert listed(account, "2026-03-01", "2026-05-01") == [
               {title, "2026-03-23 09:00 +0100"},
               {"Moved", "2026-03-31 15:00 +0200"},
               {title, "2026-04-06 09:00 +0200"}
             ]

      [first, moved, last] = events(account, "2026-03-01", "2026-05-01")
      assert shown(moved.original) == "2026-03-30 09:00 +0200"
      assert moved.id == "other%5F1.ics_20260330T070000Z"
      assert {first.organizer, first.mine} == {"bob@example.com", false}

      assert first.attendees == [
               %{
                 email: "ann@example.com",
                 name: "Ann, A",
                 response: "accepted",
                 comment: nil,
                 optional: false,
                 self: false
               }
             ]

      # Another line break than the file's, at another place.
      assert {:ok, _} = Calendar.update(account, nil, last, %{location: "Room, 1"}, options())
      text = account |> CalDAVServer.read("other_1.ics") |> String.replace("\r\n ", "")

      for line <- [
            "TZID:W. Europe Standard Time",
            ~s(X-OTHER;X-P="a:b":kept\\nas it is),
            "TRIGGER:-PT15M",
            ~s(ORGANIZER;CN="Bob; B":mailto:bob@example.com),
            "LOCATION:Room\\, 1"
          ],
          do: assert(text =~ line)

      assert listed(account, "2026-03-01", "2026-05-01") |> length() == 3
      assert {:ok, found} = Calendar.get(account, nil, moved.id, @berlin)
      assert found.title == "Moved"
      # A moved event stays moved when the series moves by an hour.
      assert {:ok, first} = Calendar.get(account, nil, first.id, @berlin)
      changes = %{start: at("2026-03-23 10:00"), end: at("2026-03-23 11:30")}
      assert {:ok, _} = Calendar.update(account, nil, first, changes, options(:all))

      assert for({_, time} <- listed(account, "2026-03-01", "2026-05-01"), do: time) == [
               "2026-03-23 10:00 +0100",
               "2026-03-31 16:00 +0200",
               "2026-04-06 10:00 +0200"
             ]
    end

    # Without a server: some of them never finish with such a file.
    test "an event every second until 9999, with 5,000 guests" do
      guests = for n <- 1..5_000, do: "ATTENDEE;CN=G#{n}:mailto:g#{n}@example.org\r\n"

      :ok = Skillbook.Connections.Library.load()

      for rule <- ["FREQ=SECONDLY;UNTIL=99991231T235959Z", "FREQ=SECONDLY", "FREQ=MINUTELY"] do
        bomb =
          "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:bomb\r\nDTSTART:20260302T000000Z\r\n" <>
            "DTEND:20260302T000001Z\r\nRRULE:#{rule}\r\n#{guests}END:VEVENT\r\n" <>
            "END:VCALENDAR\r\n"

        assert {:ok, calendar} = ICalendar.parse(bomb)
        resource = %{file: "bomb.ics", version: "1", calendar: calendar}

        between = fn to ->
          ICalendar.budgeted(fn ->
            Events.between(resource, ~U[2026-03-02 00:00:00Z], to, "UTC", 6)
          end)
        end

        # Of a month it has too many dates, of a day too many if they are seconds.
        assert between.(~U[2026-03-30 00:00:00Z]) == :budget
        found = between.(~U[2026-03-03 00:00:00Z])
        assert rule == "FREQ=MINUTELY" or found == :budget

        if rule == "FREQ=MINUTELY" do
          assert [%{attendees: attendees, more_attendees: true} | _] = found
          assert {length(found), length(attendees)} == {6, 50}
        end
      end
    end
  end

  describe "dates of series" do
    @weekly "DTSTART;TZID=Europe/Berlin:20260302T090000\r\n" <>
              "DTEND;TZID=Europe/Berlin:20260302T100000\r\n" <>
              "RRULE:FREQ=WEEKLY;COUNT=4\r\n"

    defp parsed(events) do
      :ok = Skillbook.Connections.Library.load()

      events =
        for lines <- events, do: "BEGIN:VEVENT\r\nUID:a\r\nSUMMARY:S\r\n#{lines}END:VEVENT\r\n"

      {:ok, calendar} =
        ICalendar.parse("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n#{events}END:VCALENDAR\r\n")

      %{file: "a.ics", version: "1", calendar: calendar, default: @berlin}
    end

    defp dates(resource) do
      {from, to} = {~U[2026-01-01 00:00:00Z], ~U[2027-01-01 00:00:00Z]}

      for event <- Events.between(resource, from, to, @berlin, 100),
          event = Events.in_zone(event, @berlin) do
        minutes = div(DateTime.diff(event.end, event.start), 60)
        "#{event.title} #{Elixir.Calendar.strftime(event.start, "%m-%d %H:%M")}+#{minutes}"
      end
      |> Enum.sort()
    end

    # {lines of the series, further events, what is found}
    for {name, lines, others, found} <- [
          {"in another zone", "RDATE;TZID=America/New_York:20260304T030000\r\n", [],
           ["S 03-02 09:00+60", "S 03-04 09:00+60"]},
          {"in UTC", "RDATE:20260304T080000Z,20260805T080000Z\r\n", [],
           ["S 03-02 09:00+60", "S 03-04 09:00+60", "S 08-05 10:00+60"]},
          {"as periods",
           "RDATE;VALUE=PERIOD:20260304T080000Z/PT3H,20260305T080000Z/20260305T083000Z\r\n", [],
           ["S 03-02 09:00+60", "S 03-04 09:00+180", "S 03-05 09:00+30"]},
          {"twice the same", "RDATE:20260309T080000Z\r\nRRULE:FREQ=WEEKLY;COUNT=2\r\n", [],
           ["S 03-02 09:00+60", "S 03-09 09:00+60"]},
          {"of another length for this and all later ones", "RRULE:FREQ=WEEKLY;COUNT=4\r\n",
           [
             "RECURRENCE-ID;RANGE=THISANDFUTURE:20260309T080000Z\r\n" <>
               "DTSTART;TZID=Europe/Berlin:20260310T110000\r\nDURATION:PT2H\r\n"
           ],
           ["S 03-02 09:00+60", "S 03-10 11:00+120", "S 03-17 11:00+120", "S 03-24 11:00+120"]},
          {"of which one differs after a change for all later ones",
           "RRULE:FREQ=WEEKLY;COUNT=4\r\n",
           [
             "RECURRENCE-ID;RANGE=THISANDFUTURE:20260309T080000Z\r\n" <>
               "DTSTART:20260309T090000Z\r\nDTEND:20260309T093000Z\r\n",
             "RECURRENCE-ID:20260316T080000Z\r\nDTSTART:20260401T080000Z\r\nDURATION:PT1H\r\n",
             "RECURRENCE-ID;RANGE=THISANDFUTURE:20260323T080000Z\r\n" <>
               "DTSTART:20260323T100000Z\r\nDTEND:20260323T110000Z\r\n"
           ], ["S 03-02 09:00+60", "S 03-09 10:00+30", "S 03-23 11:00+60", "S 04-01 10:00+60"]},
          # The clocks change on the 29th: a day has 23 hours, and 24 hours are no day.
          {"of a day by the calendar", "RRULE:FREQ=WEEKLY;COUNT=5\r\nDURATION:P1D\r\n", [],
           for(day <- ["02", "09", "16", "23", "30"], do: "S 03-#{day} 09:00+1440")}
        ] do
      @tag lines: lines, others: others, found: found
      test "#{name}", %{lines: lines, others: others, found: found} do
        start = "DTSTART;TZID=Europe/Berlin:20260302T090000\r\n"
        ends = if lines =~ "DURATION", do: "", else: "DURATION:PT1H\r\n"
        assert dates(parsed([start <> ends <> lines | others])) == found
      end
    end

    test "a day by the calendar has 23 hours when the clocks change" do
      start = "DTSTART;TZID=Europe/Berlin:20260328T120000\r\n"
      assert dates(parsed([start <> "DURATION:P1D\r\n"])) == ["S 03-28 12:00+1380"]
      assert dates(parsed([start <> "DURATION:PT24H\r\n"])) == ["S 03-28 12:00+1440"]
    end

    test "a change for all later events stays one, whatever becomes of the event it began with" do
      range =
        "RECURRENCE-ID;RANGE=THISANDFUTURE:20260309T080000Z\r\n" <>
          "DTSTART;TZID=Europe/Berlin:20260309T110000\r\nDURATION:PT1H\r\n"

      resource = parsed([@weekly, range])

      [_, second, third, _] =
        Events.between(resource, at("2026-03-01 00:00"), at("2026-05-01 00:00"), @berlin, 9)
        |> Enum.sort_by(& &1.start, DateTime)

      assert dates(Events.exclude(resource, second)) ==
               ["S 03-02 09:00+60", "S 03-16 11:00+60", "S 03-23 11:00+60"]

      moved =
        Events.override(resource, second)
        |> Events.put_times_like(at("2026-03-10 08:00"), at("2026-03-10 09:00"), resource)

      assert dates(Events.put_override(resource, moved, second)) ==
               ["S 03-02 09:00+60", "S 03-10 08:00+60", "S 03-16 11:00+60", "S 03-23 11:00+60"]

      {old, later} = Events.divide(resource, third, "new")
      assert dates(old) == ["S 03-02 09:00+60", "S 03-09 11:00+60"]
      assert dates(later) == ["S 03-16 11:00+60", "S 03-23 11:00+60"]
    end

    test "exceptions keep their form when a series moves, and the last event stays the last" do
      lines =
        "EXDATE:20260309T080000Z\r\nRDATE;VALUE=PERIOD:20260304T080000Z/PT3H\r\n" <>
          "RRULE:FREQ=WEEKLY;UNTIL=20260330T070000Z\r\n"

      start = "DTSTART;TZID=Europe/Berlin:20260302T090000\r\nDURATION:PT1H\r\n"
      resource = parsed([start <> lines])
      event = Events.find(resource, ~U[2026-03-16 08:00:00Z], @berlin)
      span = {at("2026-03-16 11:00"), at("2026-03-16 11:30")}
      moved = Events.move(resource, event, span, Events.rule(resource))
      text = ICalendar.write(moved.calendar)

      for line <- [
            "DTSTART;TZID=Europe/Berlin:20260302T110000",
            "EXDATE:20260309T100000Z",
            "RDATE;VALUE=PERIOD:20260304T100000Z/PT3H",
            "RRULE:FREQ=WEEKLY;UNTIL=20260330T090000Z"
          ],
          do: assert(text =~ line <> "\r\n")

      assert dates(moved) == [
               "S 03-02 11:00+30",
               "S 03-04 11:00+180",
               "S 03-16 11:00+30",
               "S 03-23 11:00+30",
               "S 03-30 11:00+30"
             ]
    end

    # {the start, the lines, the events that are like those of the rule}
    @divided [
      {"20260302T090000", "RRULE:FREQ=WEEKLY;INTERVAL=5;BYDAY=MO,WE,FR;WKST=SU\r\n"},
      {"20260302T090000", "RRULE:FREQ=WEEKLY;INTERVAL=3;COUNT=9\r\nEXDATE:20260323T080000Z\r\n"},
      {"20260302T090000", "RRULE:FREQ=MONTHLY;BYDAY=1MO;COUNT=3\r\n"},
      {"20260302T090000", "RRULE:FREQ=WEEKLY;INTERVAL=2;UNTIL=20260420T070000Z\r\n"},
      {"20260302T090000", "RDATE:20260310T080000Z,20260311T080000Z\r\n"},
      # Skipped on 29 March, and twice on 25 October.
      {"20260301T023000", "RRULE:FREQ=WEEKLY;INTERVAL=2\r\n"},
      {"20260301T023000", "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=20\r\n"},
      {"20260301T023000", "RRULE:FREQ=WEEKLY;INTERVAL=34\r\n"},
      {"20260329T023000", "RRULE:FREQ=WEEKLY;COUNT=4\r\n"}
    ]

    test "divided at any event, the two parts have the events of the whole" do
      for {start, lines} <- @divided,
          given <- ["", "RDATE:20260325T130000Z,20260930T130000Z\r\n"] do
        start = "DTSTART;TZID=Europe/Berlin:#{start}\r\nDURATION:PT1H\r\n"
        resource = parsed([start <> lines <> given])
        all = dates(resource)
        {from, to} = {~U[2026-01-01 00:00:00Z], ~U[2027-01-01 00:00:00Z]}
        events = Events.between(resource, from, to, @berlin, 100)
        [first | later] = Enum.sort_by(events, & &1.start, DateTime)
        assert Events.first?(resource, first)

        numbered = Enum.with_index(later, 1)

        for {event, number} <- Enum.uniq(Enum.take(numbered, 6) ++ Enum.take(numbered, -2)) do
          refute Events.first?(resource, event)
          {old, new} = Events.divide(resource, event, "new")
          assert {lines, number, dates(old)} == {lines, number, Enum.take(all, number)}
          assert {lines, number, dates(new)} == {lines, number, Enum.drop(all, number)}
          assert Events.first?(new, event)
          # The series is shown from its first event on, also for a rule of another kind.
          assert Events.find(new, nil, @berlin).start == event.start
          weekly = %{repeat: "FREQ=WEEKLY;COUNT=1"}
          master = new |> Events.master() |> Events.apply_rule(weekly, new)
          [shown | _] = new |> Events.put_master(master) |> dates()
          assert shown == Enum.at(all, number)
        end
      end
    end

    test "a rule ends at an instant, also in the hour that the clocks skip or show twice" do
      for {day, until, found} <- [
            {"20260328", "20260329T005959Z", ["S 03-28 02:30+60"]},
            {"20260328", "20260329T012959Z", ["S 03-28 02:30+60"]},
            {"20260328", "20260329T013000Z", ["S 03-28 02:30+60", "S 03-29 03:30+60"]},
            {"20261024", "20261025T002959Z", ["S 10-24 02:30+60"]},
            {"20261024", "20261025T003000Z", ["S 10-24 02:30+60", "S 10-25 02:30+60"]},
            {"20261024", "20261025T011500Z", ["S 10-24 02:30+60", "S 10-25 02:30+60"]}
          ] do
        start = "DTSTART;TZID=Europe/Berlin:#{day}T023000\r\nDURATION:PT1H\r\n"
        resource = parsed([start <> "RRULE:FREQ=DAILY;UNTIL=#{until}\r\n"])
        assert {until, dates(resource)} == {until, found}
      end

      far = "DTSTART;TZID=Europe/Berlin:20260302T090000\r\nRRULE:FREQ=YEARLY;UNTIL=9999"
      assert dates(parsed([far <> "1231T235959Z\r\n"])) == ["S 03-02 09:00+0"]
    end

    test "a series that is moved to a skipped hour keeps it on other days" do
      start = "DTSTART;TZID=Europe/Berlin:20260329T013000\r\nDURATION:PT1H\r\n"
      resource = parsed([start <> "RRULE:FREQ=WEEKLY;COUNT=3\r\n"])
      event = Events.find(resource, ~U[2026-04-04 23:30:00Z], @berlin)
      span = {at("2026-04-05 02:30"), at("2026-04-05 04:00")}
      moved = Events.move(resource, event, span, Events.rule(resource))
      assert dates(moved) == ["S 03-29 03:30+90", "S 04-05 02:30+90", "S 04-12 02:30+90"]
      text = ICalendar.write(moved.calendar)
      assert text =~ "DTSTART;TZID=Europe/Berlin:20260329T023000\r\n"
      assert text =~ "DURATION:P0DT5400S\r\n"
    end

    test "a series of which an event at a skipped hour moves has it where it was asked to be" do
      start = "DTSTART;TZID=Europe/Berlin:20260322T023000\r\nDURATION:PT1H\r\n"
      resource = parsed([start <> "RRULE:FREQ=WEEKLY;COUNT=3\r\n"])
      event = Events.find(resource, ~U[2026-03-29 01:30:00Z], @berlin)
      assert to_string(event.start) == "2026-03-29 03:30:00+02:00 CEST Europe/Berlin"

      # Its original start is the one of the rule, by which other programs find it.
      excluded = Events.exclude(resource, event)
      assert ICalendar.write(excluded.calendar) =~ "EXDATE;TZID=Europe/Berlin:20260329T023000"
      assert dates(excluded) == ["S 03-22 02:30+60", "S 04-05 02:30+60"]
      override = Events.override(resource, event)
      assert {_, _, "20260329T023000"} = ICalendar.get(override, "RECURRENCE-ID")
      span = {at("2026-03-29 05:00"), at("2026-03-29 06:00")}
      moved = Events.move(resource, event, span, Events.rule(resource))
      assert dates(moved) == ["S 03-22 05:00+60", "S 03-29 05:00+60", "S 04-05 05:00+60"]
    end

    test "an event keeps its zone, and a floating series ends at a floating time" do
      start = "DTSTART;TZID=America/New_York:20260302T090000\r\nDURATION:PT1H\r\n"
      resource = parsed([start])

      master =
        resource
        |> Events.master()
        |> Events.put_times_like(at("2026-03-02 17:00"), at("2026-03-02 18:00"), resource)

      assert {_, [{"TZID", "America/New_York"}], "20260302T110000"} =
               ICalendar.get(master, "DTSTART")

      floating = parsed(["DTSTART:20260302T090000\r\nDURATION:PT1H\r\nRRULE:FREQ=WEEKLY\r\n"])
      event = Events.find(floating, ~U[2026-03-16 08:00:00Z], @berlin)
      {old, later} = Events.divide(floating, event, "new")
      assert Events.rule(old) == "FREQ=WEEKLY;UNTIL=20260316T085959"

      assert {"DTSTART", [], "20260316T090000"} =
               later |> Events.master() |> ICalendar.get("DTSTART")
    end
  end

  describe "iCalendar" do
    setup do
      :ok = Skillbook.Connections.Library.load()
    end

    @invitation """
    BEGIN:VCALENDAR
    VERSION:2.0
    PRODID:x
    BEGIN:VEVENT
    UID:i1
    DTSTAMP:20260101T000000Z
    SEQUENCE:4
    DTSTART:20260302T090000Z
    DTEND:20260302T100000Z
    RRULE:FREQ=DAILY;COUNT=3
    SUMMARY:Review
    COMMENT:By the organizer
    ORGANIZER;CN=Bob:mailto:bob@example.com
    ATTENDEE;CN="Ann, A.";PARTSTAT=NEEDS-ACTION;RSVP=TRUE;MEMBER="mailto:a@x.org","mailto:b@x
     .org":MAILTO:Ann@Example.com
    ATTENDEE;PARTSTAT=ACCEPTED:mailto:eve@example.com
    END:VEVENT
    END:VCALENDAR
    """

    # An account that is invited, by its option `address:`.
    defp invited(text \\ @invitation) do
      account = CalDAVServer.account()
      account = put_in(account.options[:address], "ann@example.com")
      CalDAVServer.put(account, "i.ics", String.replace(text, "\n", "\r\n"))
      account
    end

    test "answers: of one event of a series and of all, and nothing else changes" do
      account = invited()
      unanswered = &events(&1, "2026-03-02", "2026-03-06", @berlin, unanswered: true)
      # The series once.
      assert [%{answer: "needs_action", mine: false, organizer: "bob@example.com"} = event] =
               unanswered.(account)

      assert {:ok, %{"me" => {:ok, [_, _, _]}}} = busy(account)
      answer = %{response: "declined", comment: "On a train;\nsorry"}
      assert {:ok, changed, false} = Calendar.answer(account, nil, event, answer, options())
      assert {changed.answer, changed.id} == {"declined", event.id}

      assert Enum.map(events(account, "2026-03-02", "2026-03-06"), & &1.answer) ==
               ["declined", "needs_action", "needs_action"]

      # Others are still waiting, and the time of the declined one is free.
      assert [%{start: start}] = unanswered.(account)
      assert shown(start) == "2026-03-03 10:00 +0100"
      assert {:ok, %{"me" => {:ok, [_, _]}}} = busy(account)

      answer = %{response: "accepted", comment: nil}
      [event] = unanswered.(account)
      assert {:ok, series, false} = Calendar.answer(account, nil, event, answer, options(:all))
      assert {series.answer, series.series, series.id} == {"accepted", nil, event.series}
      assert unanswered.(account) == []

      text = account |> CalDAVServer.read("i.ics") |> String.replace("\r\n ", "")
      own = ~r/^ATTENDEE;CN="Ann, A.";(.*):MAILTO:Ann@Example.com\r$/im

      for [_, parameters] <- Regex.scan(own, text) do
        assert parameters =~ "PARTSTAT=ACCEPTED"
        assert parameters =~ "RSVP=TRUE"
      end

      assert length(Regex.scan(own, text)) == 2
      assert length(Regex.scan(~r/^ATTENDEE;PARTSTAT=ACCEPTED:mailto:eve/m, text)) == 2
      assert length(Regex.scan(~r/^SEQUENCE:4\r$/m, text)) == 2
      assert length(Regex.scan(~r/^COMMENT:By the organizer\r$/m, text)) == 2
      assert length(Regex.scan(~r/^COMMENT:On a train\\;\\nsorry\r$/m, text)) == 1
    end

    defp busy(account),
      do: Calendar.busy(account, ["me"], at("2026-03-02 00:00"), at("2026-03-06 00:00"))

    # {the organizer, the answer's `notify`, the result}
    @told [
      {"ORGANIZER:mailto:bob@example.com", true, {:ok, true}},
      {"ORGANIZER;SCHEDULE-AGENT=SERVER:mailto:bob@example.com", true, {:ok, true}},
      {"ORGANIZER;SCHEDULE-AGENT=CLIENT:mailto:bob@example.com", true, {:ok, false}},
      {"ORGANIZER;SCHEDULE-AGENT=NONE:mailto:bob@example.com", false, {:ok, false}},
      {"ORGANIZER:mailto:bob@example.com", false, {:error, :told}}
    ]

    for {organizer, notify, expected} <- @told do
      test "a server that schedules: #{organizer}, notify #{notify}" do
        text = String.replace(@invitation, ~r/ORGANIZER.*/, unquote(organizer))
        account = scheduling(String.replace(text, "\n", "\r\n"))
        assert {:ok, event} = Calendar.get(account, nil, "i.ics", @berlin)
        assert {event.answer, event.mine} == {"needs_action", false}
        answer = %{response: "tentative", comment: nil}
        options = options(:all, notify: unquote(notify))

        result =
          case Calendar.answer(account, nil, event, answer, options) do
            {:ok, %{answer: "tentative"}, told} -> {:ok, told}
            {:error, error} -> {:error, error.kind}
          end

        assert result == unquote(Macro.escape(expected))
      end
    end

    # A server with RFC 6638, which knows the address of the user.
    defp scheduling(text) do
      file = start_supervised!({Agent, fn -> text end})

      response =
        &("<d:response><d:href>#{&1}</d:href>" <>
            "<d:propstat><d:prop>#{&2}</d:prop></d:propstat></d:response>")

      check = fn %{line: line, body: body} ->
        answer =
          case String.split(line, " ") do
            ["PROPFIND", "/own/", _] ->
              kind = "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype>"
              user = "<d:current-user-principal><d:href>/ann/</d:href></d:current-user-principal>"
              multistatus(response.("/own/", kind <> user))

            ["PROPFIND", "/ann/", _] ->
              outbox = "<c:schedule-outbox-URL><d:href>/out/</d:href></c:schedule-outbox-URL>"
              set = "<d:href>/ann/</d:href><d:href>mailto:ann@example.com</d:href>"
              set = "<c:calendar-user-address-set>#{set}</c:calendar-user-address-set>"
              multistatus(response.("/ann/", outbox <> set))

            ["GET", _, _] ->
              HTTPServer.answer(Agent.get(file, & &1), [{"etag", "1"}])

            ["PUT", _, _] ->
              Agent.update(file, fn _ -> body end)
              [{:head, 204, []}]
          end

        {:instead, answer}
      end

      {_pid, url} = HTTPServer.start(List.duplicate([], 20), check: check)
      account = CalDAVServer.user()
      %{account | options: %{account.options | url: url <> "/own/"}}
    end

    defp multistatus(text) do
      names = ~s(xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav")
      body = "<d:multistatus #{names}>#{text}</d:multistatus>"
      [{:head, 207, [{"content-length", "#{byte_size(body)}"}]}, {:raw, body}]
    end

    @alarms """
    BEGIN:VALARM
    UID:a1
    ACTION:DISPLAY
    TRIGGER:-PT15M
    ACKNOWLEDGED:20260301T000000Z
    X-MOZ-LASTACK:1
    DESCRIPTION:Old
    END:VALARM
    BEGIN:VALARM
    ACTION:DISPLAY
    TRIGGER;RELATED=END:-PT5M
    DESCRIPTION:Old
    END:VALARM
    BEGIN:VALARM
    ACTION:EMAIL
    TRIGGER:-P1DT2H
    SUMMARY:S
    DESCRIPTION:D
    ATTENDEE:mailto:ann@example.com
    END:VALARM
    BEGIN:VALARM
    ACTION:AUDIO
    TRIGGER;VALUE=DATE-TIME:20260302T080000Z
    ATTACH;FMTTYPE=audio/basic:https://example.com/a.au
    END:VALARM
    BEGIN:VALARM
    ACTION:DISPLAY
    TRIGGER:PT10M
    DESCRIPTION:After
    END:VALARM
    """

    test "reminders of other programs are read, and kept but for those on the screen" do
      account = invited(String.replace(@invitation, "END:VEVENT\n", @alarms <> "END:VEVENT\n"))
      [event | _] = events(account, "2026-03-02", "2026-03-06")

      unix = &if(&1.at, do: %{&1 | at: DateTime.to_unix(&1.at)}, else: &1)

      assert Enum.map(event.reminders, unix) == [
               %{method: "display", minutes: 15, at: nil},
               %{method: "display", minutes: -55, at: nil},
               %{method: "email", minutes: 1_560, at: nil},
               %{method: "audio", minutes: nil, at: 1_772_438_400},
               %{method: "display", minutes: -10, at: nil}
             ]

      changes = %{reminders: [30, 15]}
      assert {:ok, _} = Calendar.update(account, nil, event, changes, options(:all))
      text = CalDAVServer.read(account, "i.ics")

      for line <- [
            "UID:a1",
            "ACKNOWLEDGED:20260301T000000Z",
            "X-MOZ-LASTACK:1",
            "ACTION:EMAIL",
            "TRIGGER:-P1DT2H",
            "ACTION:AUDIO",
            "TRIGGER:-PT30M",
            "SEQUENCE:4"
          ],
          do: assert(text =~ "\r\n#{line}\r\n", line)

      refute text =~ "RELATED=END"
      refute text =~ "After"
      assert {:ok, event} = Calendar.get(account, nil, event.series, @berlin)
      assert reminders(event) == [15, 30]
      assert {:ok, _} = Calendar.update(account, nil, event, %{reminders: []}, options(:all))
      text = CalDAVServer.read(account, "i.ics")
      refute text =~ "ACTION:DISPLAY"
      assert text =~ "ACTION:EMAIL" and text =~ "ACTION:AUDIO"
    end

    test "attachments: links and bytes, which stay when the event changes" do
      data = Base.encode64("Agenda: überall")

      lines = """
      ATTACH;FMTTYPE=application/pdf;FILENAME="a, b.pdf";SIZE=5000:https://example.com/a.pdf
      ATTACH;ENCODING=BASE64;VALUE=BINARY;FMTTYPE=text/plain;X-FILENAME=agenda.txt:#{data}
      ATTACH;ENCODING=BASE64;VALUE=BINARY:???
      """

      account = invited(String.replace(@invitation, "RRULE", lines <> "RRULE"))
      [event | _] = events(account, "2026-03-02", "2026-03-06")

      assert [
               %{part: 1, name: "a, b.pdf", type: "application/pdf", size: 5_000} = link,
               %{part: 2, name: "agenda.txt", type: "text/plain", size: 16, url: nil},
               %{part: 3, name: nil, url: nil}
             ] = event.attachments

      assert link.url == "https://example.com/a.pdf"
      changes = %{title: "New", attach: ["https://example.com/c"]}
      assert {:ok, event} = Calendar.update(account, nil, event, changes, options())
      assert length(event.attachments) == 4
      # Also of another event of the series.
      for id <- [event.id, event.series] do
        assert Calendar.attachment(account, nil, id, 2) ==
                 {:ok, %{name: "agenda.txt", type: "text/plain", data: "Agenda: überall"}}

        for part <- [1, 3, 5],
            do: assert({:error, %NotFoundError{}} = Calendar.attachment(account, nil, id, part))
      end

      assert CalDAVServer.read(account, "i.ics") =~ ~s(FILENAME="a, b.pdf")
    end

    test "texts read back as themselves, whatever they are" do
      for text <- [
            "",
            "a",
            "a,b;c\\d\ne\\n",
            String.duplicate("ü", 200),
            String.duplicate("👩‍👩‍👧", 60),
            "END:VEVENT\nBEGIN:VALARM",
            ~s(with "quotes": and; more,)
          ] do
        event = %{name: "VEVENT", properties: [], components: []}
        event = ICalendar.put_text(event, "SUMMARY", text)
        calendar = %{name: "VCALENDAR", properties: [], components: [event]}
        written = ICalendar.write(calendar)
        assert written |> String.split("\r\n") |> Enum.all?(&(byte_size(&1) <= 75))
        assert {:ok, %{components: [read]}} = ICalendar.parse(written)
        assert {text, ICalendar.text(read, "SUMMARY")} == {text, text}
      end
    end

    test "files that are no calendars are refused, and soon" do
      nested = String.duplicate("BEGIN:VEVENT\n", 100_000)

      for text <- [
            "",
            "BEGIN:VCALENDAR",
            "END:VCALENDAR",
            "BEGIN:VCALENDAR\nEND:VEVENT",
            "BEGIN:VCALENDAR\nno line\nEND:VCALENDAR",
            "BEGIN:VCALENDAR\nEND:VCALENDAR\nBEGIN:VCALENDAR\nEND:VCALENDAR",
            "SUMMARY:x",
            <<"BEGIN:VCALENDAR\nSUMMARY:", 255, "\nEND:VCALENDAR">>,
            nested,
            String.duplicate("x", 2_000_000),
            "BEGIN:VCALENDAR\nA;" <> String.duplicate("B=c,", 100_000) <> "\nEND:VCALENDAR"
          ],
          do: assert(ICalendar.parse(text) == :error)
    end

    # As Outlook writes them, from the year 1601 on; years with and without a change.
    test "the rules of a zone hold for all years" do
      text =
        "BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\n" <>
          "BEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\n" <>
          "TZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\r\n" <>
          "END:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:16010101T020000\r\n" <>
          "TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n" <>
          "RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\r\nEND:DAYLIGHT\r\n" <>
          "END:VTIMEZONE\r\nEND:VCALENDAR\r\n"

      {:ok, calendar} = ICalendar.parse(text)
      zone = [{"TZID", "W. Europe Standard Time"}]

      for {local, offset} <- [
            {"19700701T120000", 2},
            {"20260328T120000", 1},
            {"20260329T015959", 1},
            {"20260329T030000", 2},
            # Twice, and the first is meant.
            {"20261025T023000", 2},
            {"20261025T030000", 1},
            {"21990701T120000", 2}
          ] do
        {naive, _} = time = ICalendar.time({"DTSTART", zone, local}, calendar)
        instant = time |> ICalendar.instant("UTC") |> DateTime.to_naive()
        assert {local, NaiveDateTime.diff(naive, instant)} == {local, offset * 3_600}
      end
    end

    test "the rules of a zone are those of the database" do
      for {zone, year} <- [
            {"Europe/Berlin", 2026},
            {"America/New_York", 2004},
            {"Australia/Lord_Howe", 2026},
            {"Africa/Casablanca", 2010},
            {"Asia/Jerusalem", 2026},
            {"Asia/Gaza", 2026},
            {"Africa/Cairo", 2026},
            {"America/Nuuk", 2021},
            {"Pacific/Apia", 2009}
          ] do
        rules = ICalendar.zone_component(zone, DateTime.new!(Date.new!(year, 1, 1), ~T[00:00:00]))
        # Under a name that is none of the database.
        rules = ICalendar.put_text(rules, "TZID", "Ours")
        calendar = %{name: "VCALENDAR", properties: [], components: [rules]}
        {:ok, calendar} = calendar |> ICalendar.write() |> ICalendar.parse()

        for hour <- 0..500_000//397 do
          {time, oddity} =
            NaiveDateTime.new!(year, 1, 1, 0, 30, 0)
            |> NaiveDateTime.add(hour * 3_600, :second)
            |> TimeZones.local(zone)

          local = DateTime.to_naive(time)
          property = {"DTSTART", [{"TZID", "Ours"}], ICalendar.basic_time(local)}
          {_, own} = read = ICalendar.time(property, calendar)
          assert {zone, ICalendar.local(time, own, "UTC")} == {zone, local}

          # Times that clocks skip or repeat have no one offset.
          if oddity == nil do
            instant = ICalendar.instant(read, "UTC")

            assert {zone, local, DateTime.to_unix(time)} ==
                     {zone, local, DateTime.to_unix(instant)}
          end
        end
      end
    end

    # ical.js reads the first date of a list alone.
    test "the rules of a zone are rules, and other changes are written one by one" do
      count = fn zone, year, name ->
        from = DateTime.new!(Date.new!(year, 1, 1), ~T[00:00:00])
        parts = ICalendar.zone_component(zone, from).components
        for part <- parts, {^name, _, value} <- part.properties, do: value
      end

      assert count.("Europe/Berlin", 2026, "RDATE") == []

      assert count.("Europe/Berlin", 2026, "RRULE") |> Enum.sort() == [
               "FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU",
               "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU"
             ]

      assert "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=23,24,25,26,27,28,29;BYDAY=FR" in count.(
               "Asia/Jerusalem",
               2026,
               "RRULE"
             )

      # Until 2006, and from 2007 on.
      assert length(count.("America/New_York", 2004, "RRULE")) == 2
      assert [_ | _] = dates = count.("Asia/Gaza", 2026, "RDATE")
      assert Enum.all?(dates, &(byte_size(&1) == 15))
    end
  end
end
