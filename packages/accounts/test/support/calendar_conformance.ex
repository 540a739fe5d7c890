defmodule Skillbook.CalendarConformance do
  @moduledoc """
  The tests of `Skillbook.Calendar` that run on every service.

      use Skillbook.CalendarConformance, start: &MyTest.start_calendar/0

  ## Options

    * `:start` - called for each test, gives an account with an empty calendar in the zone
      Europe/Berlin
    * `:without` - `:many_reminders`, if an event has one reminder, and `:links`, if none can be
      attached
  """

  alias Skillbook.Calendar.TimeZones
  alias Skillbook.{Calendar, Handlers}

  @berlin "Europe/Berlin"

  @doc "A time of a zone."
  def at(local, zone \\ @berlin) do
    {:ok, naive} = NaiveDateTime.from_iso8601(local <> ":00")
    {time, nil} = TimeZones.local(naive, zone)
    time
  end

  @doc "A new event."
  def new(title, start, ends, fields \\ []) do
    Map.merge(
      %{
        key: Handlers.Calendar.Create.key(),
        title: title,
        description: nil,
        location: nil,
        start: start,
        end: ends,
        repeat: nil,
        attendees: [],
        conference: false,
        reminders: nil,
        attach: [],
        notify: true
      },
      Map.new(fields)
    )
  end

  @doc "An event of an hour, in Berlin."
  def hour(title, local, fields \\ []) do
    start = at(local)
    new(title, start, DateTime.add(start, 3_600, :second, TimeZones), fields)
  end

  @doc "The options of a change."
  def options(scope \\ :one, fields \\ []),
    do:
      Map.merge(
        %{scope: scope, notify: true, key: Handlers.Calendar.Create.key()},
        Map.new(fields)
      )

  @doc "The events between two days, as titles with their times."
  def events(account, from, to, zone \\ @berlin, fields \\ []) do
    query = %{
      calendar: nil,
      from: at(from <> " 00:00", zone),
      to: at(to <> " 00:00", zone),
      text: nil,
      limit: 100,
      zone: zone
    }

    {:ok, %{events: events, more: false}} =
      Calendar.list(account, Map.merge(query, Map.new(fields)))

    events
  end

  @doc "Like `events/5`, but each event as its title and its start."
  def listed(account, from, to, zone \\ @berlin, fields \\ []) do
    for event <- events(account, from, to, zone, fields), do: {event.title, shown(event.start)}
  end

  @doc "The minutes of the reminders of an event."
  def reminders(event), do: for(%{method: "display"} = one <- event.reminders, do: one.minutes)

  @doc "A time with its offset, or a day."
  def shown(%Date{} = day), do: Date.to_iso8601(day)
  def shown(time), do: Elixir.Calendar.strftime(time, "%Y-%m-%d %H:%M %z")

  defmacro __using__(options) do
    quote location: :keep do
      import Skillbook.CalendarConformance

      alias Skillbook.Calendar.TimeZones
      alias Skillbook.{Calendar, NotFoundError, ServiceError}

      @without Keyword.get(unquote(options), :without, [])

      setup context do
        if context[:conformance],
          do: {:ok, account: unquote(options[:start]).()},
          else: :ok
      end

      describe "every calendar service" do
        @describetag :conformance

        test "creates an event, once for a key", %{account: account} do
          fields = [description: "Bring\nthe \"figures\"; all, of them\\", location: "Room 1"]
          new = hour("Überblick, \"Q1\"", "2026-03-02 14:30", fields)
          assert {:ok, event} = Calendar.create(account, nil, new)
          assert {:ok, same} = Calendar.create(account, nil, new)
          assert same.id == event.id
          assert {:ok, ^event} = Calendar.get(account, nil, event.id, "Europe/Berlin")
          assert [^event] = events(account, "2026-03-02", "2026-03-03")

          assert %{
                   title: "Überblick, \"Q1\"",
                   description: "Bring\nthe \"figures\"; all, of them\\",
                   location: "Room 1",
                   zone: "Europe/Berlin",
                   series: nil,
                   original: nil,
                   repeat: nil,
                   attendees: [],
                   more_attendees: false,
                   mine: true,
                   status: "confirmed",
                   conference: nil
                 } = event

          assert {shown(event.start), shown(event.end)} ==
                   {"2026-03-02 14:30 +0100", "2026-03-02 15:30 +0100"}
        end

        test "lists what overlaps a span, in order", %{account: account} do
          for new <- [
                hour("late", "2026-03-02 23:30"),
                hour("early", "2026-03-02 08:00"),
                new("day", ~D[2026-03-02], ~D[2026-03-03]),
                new("days", ~D[2026-02-28], ~D[2026-03-04]),
                hour("before", "2026-03-01 23:00"),
                hour("after", "2026-03-03 00:30"),
                new("day before", ~D[2026-03-01], ~D[2026-03-02]),
                new("day after", ~D[2026-03-03], ~D[2026-03-04])
              ],
              do: assert({:ok, _} = Calendar.create(account, nil, new))

          assert listed(account, "2026-03-02", "2026-03-03") == [
                   {"days", "2026-02-28"},
                   {"day", "2026-03-02"},
                   {"early", "2026-03-02 08:00 +0100"},
                   {"late", "2026-03-02 23:30 +0100"}
                 ]

          assert listed(account, "2026-03-02", "2026-03-03", "Europe/Berlin", text: "LATE") ==
                   [{"late", "2026-03-02 23:30 +0100"}]

          query = %{
            calendar: nil,
            from: at("2026-03-02 00:00"),
            to: at("2026-03-03 00:00"),
            text: nil,
            limit: 2,
            zone: "Europe/Berlin"
          }

          assert {:ok, %{events: [%{title: "days"}, %{title: "day"}], more: true}} =
                   Calendar.list(account, query)

          assert {:ok, %{events: [_, _, _, _], more: false}} =
                   Calendar.list(account, %{query | limit: 4})
        end

        test "shows times in the reader's zone", %{account: account} do
          start = at("2026-03-20 09:00", "America/New_York")
          ends = at("2026-03-20 10:00", "America/New_York")
          assert {:ok, _} = Calendar.create(account, nil, new("call", start, ends))

          for {zone, shown} <- [
                # The clocks of New York have changed already, those of Berlin have not.
                {"Europe/Berlin", "2026-03-20 14:00 +0100"},
                {"America/New_York", "2026-03-20 09:00 -0400"},
                {"Australia/Lord_Howe", "2026-03-21 00:00 +1100"},
                {"Pacific/Apia", "2026-03-21 02:00 +1300"},
                {"UTC", "2026-03-20 13:00 +0000"}
              ] do
            assert {zone, [{"call", ^shown}]} =
                     {zone, listed(account, "2026-03-20", "2026-03-22", zone)}

            assert [%{zone: "America/New_York"}] =
                     events(account, "2026-03-20", "2026-03-22", zone)
          end
        end

        test "a weekly meeting keeps its time of day when the clocks change",
             %{account: account} do
          new = hour("weekly", "2026-03-22 09:00", repeat: "FREQ=WEEKLY;COUNT=3")
          assert {:ok, _} = Calendar.create(account, nil, new)

          assert listed(account, "2026-03-01", "2026-05-01") == [
                   {"weekly", "2026-03-22 09:00 +0100"},
                   {"weekly", "2026-03-29 09:00 +0200"},
                   {"weekly", "2026-04-05 09:00 +0200"}
                 ]
        end

        test "a meeting moves across a change of the clocks", %{account: account} do
          assert {:ok, event} = Calendar.create(account, nil, hour("moving", "2026-03-28 09:00"))

          changes = %{start: at("2026-03-30 09:00"), end: at("2026-03-30 10:00")}
          assert {:ok, moved} = Calendar.update(account, nil, event, changes, options())
          assert DateTime.diff(moved.start, event.start) == 47 * 3600
          assert shown(moved.start) == "2026-03-30 09:00 +0200"

          assert listed(account, "2026-03-01", "2026-05-01") ==
                   [{"moving", "2026-03-30 09:00 +0200"}]
        end

        test "a daily meeting in the hour that the clocks skip, and in the one that comes twice",
             %{account: account} do
          for {title, first} <- [spring: "2026-03-28 02:30", autumn: "2026-10-24 02:30"] do
            new = hour("#{title}", first, repeat: "FREQ=DAILY;COUNT=3")
            assert {:ok, _} = Calendar.create(account, nil, new)
          end

          assert listed(account, "2026-03-01", "2026-05-01") == [
                   {"spring", "2026-03-28 02:30 +0100"},
                   {"spring", "2026-03-29 03:30 +0200"},
                   {"spring", "2026-03-30 02:30 +0200"}
                 ]

          assert listed(account, "2026-10-01", "2026-11-01") == [
                   {"autumn", "2026-10-24 02:30 +0200"},
                   {"autumn", "2026-10-25 02:30 +0200"},
                   {"autumn", "2026-10-26 02:30 +0100"}
                 ]
        end

        # Across the change of the clocks on the 29th of March.
        @from_second %{start: "2026-03-23 11:00", end: "2026-03-23 12:30"}
        @moves [
          one: [
            "2026-03-16 09:00 +0100",
            "2026-03-23 11:00 +0100",
            "2026-03-30 09:00 +0200",
            "2026-04-06 09:00 +0200"
          ],
          following: [
            "2026-03-16 09:00 +0100",
            "2026-03-23 11:00 +0100",
            "2026-03-30 11:00 +0200",
            "2026-04-06 11:00 +0200"
          ],
          all: [
            "2026-03-16 11:00 +0100",
            "2026-03-23 11:00 +0100",
            "2026-03-30 11:00 +0200",
            "2026-04-06 11:00 +0200"
          ]
        ]

        for {scope, times} <- @moves do
          @tag scope: scope, times: times
          test "moves events of a series: #{scope}",
               %{account: account, scope: scope, times: times} do
            rule = "FREQ=WEEKLY;COUNT=4"

            assert {:ok, _} =
                     Calendar.create(account, nil, hour("w", "2026-03-16 09:00", repeat: rule))

            [_, second, _, _] = events(account, "2026-03-01", "2026-05-01")

            changes = Map.new(@from_second, fn {name, local} -> {name, at(local)} end)
            assert {:ok, moved} = Calendar.update(account, nil, second, changes, options(scope))

            listed = listed(account, "2026-03-01", "2026-05-01")
            assert for({"w", time} <- listed, do: time) == times

            lengths =
              for event <- events(account, "2026-03-01", "2026-05-01"),
                  do: div(DateTime.diff(event.end, event.start), 60)

            assert Enum.count(lengths, &(&1 == 90)) ==
                     %{one: 1, following: length(listed) - 1, all: length(listed)}[scope]
          end
        end

        test "a series moves to another day with its weekdays", %{account: account} do
          new = hour("w", "2026-03-02 09:00", repeat: "FREQ=WEEKLY;BYDAY=MO,TH;COUNT=4")
          assert {:ok, _} = Calendar.create(account, nil, new)
          [first | _] = events(account, "2026-03-01", "2026-05-01")
          changes = %{start: at("2026-03-03 10:00"), end: at("2026-03-03 11:00")}
          assert {:ok, _} = Calendar.update(account, nil, first, changes, options(:all))

          assert listed(account, "2026-03-01", "2026-05-01") ==
                   for(
                     day <- ["03-03", "03-06", "03-10", "03-13"],
                     do: {"w", "2026-#{day} 10:00 +0100"}
                   )

          [first | _] = events(account, "2026-03-01", "2026-05-01")
          changes = %{repeat: "FREQ=MONTHLY;BYMONTHDAY=3;COUNT=2"}
          assert {:ok, _} = Calendar.update(account, nil, first, changes, options(:all))

          assert listed(account, "2026-03-01", "2026-05-01") ==
                   [{"w", "2026-03-03 10:00 +0100"}, {"w", "2026-04-03 10:00 +0200"}]

          [first | _] = events(account, "2026-03-01", "2026-05-01")
          changes = %{start: at("2026-03-04 10:00"), end: at("2026-03-04 11:00")}

          assert {:error, %Skillbook.CalendarError{kind: :rule}} =
                   Calendar.update(account, nil, first, changes, options(:all))
        end

        test "the last event of a series stays the last one", %{account: account} do
          # By hours, and to the day after.
          for {to, times} <- [
                {"2026-03-27 20:00",
                 ["03-27 20:00 +0100", "03-28 20:00 +0100", "03-29 20:00 +0200"]},
                {"2026-03-28 08:00",
                 ["03-28 08:00 +0100", "03-29 08:00 +0200", "03-30 08:00 +0200"]}
              ] do
            repeat = "FREQ=DAILY;UNTIL=20260329T070000Z"
            new = hour(to, "2026-03-27 09:00", repeat: repeat)
            assert {:ok, _} = Calendar.create(account, nil, new)

            [first, _, _] =
              for event <- events(account, "2026-03-01", "2026-05-01"),
                  event.title == to,
                  do: event

            changes = %{
              start: at(to),
              end: DateTime.add(at(to), 3_600, :second, Skillbook.Calendar.TimeZones)
            }

            assert {:ok, _} = Calendar.update(account, nil, first, changes, options(:all))
            listed = for {^to, time} <- listed(account, "2026-03-01", "2026-05-01"), do: time
            assert listed == Enum.map(times, &("2026-" <> &1))
          end
        end

        test "an event that was moved alone leaves the later ones where they are",
             %{account: account} do
          new = hour("w", "2026-03-16 09:00", repeat: "FREQ=WEEKLY;COUNT=4")
          assert {:ok, _} = Calendar.create(account, nil, new)
          [_, second | _] = events(account, "2026-03-01", "2026-05-01")
          changes = %{start: at("2026-03-24 11:00"), end: at("2026-03-24 13:00")}
          assert {:ok, moved} = Calendar.update(account, nil, second, changes, options(:one))

          assert {:ok, _} =
                   Calendar.update(account, nil, moved, %{title: "n"}, options(:following))

          listed = listed(account, "2026-03-01", "2026-05-01")
          assert {"w", "2026-03-16 09:00 +0100"} in listed
          assert {"n", "2026-03-30 09:00 +0200"} in listed
          assert {"n", "2026-04-06 09:00 +0200"} in listed
          assert length(listed) == 4

          [_, _, third, _] = events(account, "2026-03-01", "2026-05-01")
          assert DateTime.diff(third.end, third.start) == 3_600
        end

        for {scope, left} <- [
              one: ["2026-03-02", "2026-03-16"],
              following: ["2026-03-02"],
              all: []
            ] do
          @tag scope: scope, left: left
          test "deletes events of a series: #{scope}",
               %{account: account, scope: scope, left: left} do
            new = new("w", ~D[2026-03-02], ~D[2026-03-03], repeat: "FREQ=WEEKLY;COUNT=3")
            assert {:ok, _} = Calendar.create(account, nil, new)
            [_, second, _] = events(account, "2026-03-01", "2026-05-01")
            assert :ok = Calendar.delete(account, nil, second, options(scope))

            assert listed(account, "2026-03-01", "2026-05-01") ==
                     Enum.map(left, &{"w", &1})
          end
        end

        test "deleting the first and all following events deletes the series",
             %{account: account} do
          new = hour("w", "2026-03-02 09:00", repeat: "FREQ=WEEKLY;COUNT=3")
          assert {:ok, _} = Calendar.create(account, nil, new)
          [first | _] = events(account, "2026-03-01", "2026-05-01")
          assert :ok = Calendar.delete(account, nil, first, options(:following))
          assert events(account, "2026-03-01", "2026-05-01") == []
        end

        test "changes texts, and empties them", %{account: account} do
          new = hour("Lunch", "2026-03-02 12:00", location: "Canteen", description: "Soup")
          assert {:ok, event} = Calendar.create(account, nil, new)

          assert {:ok, event} =
                   Calendar.update(
                     account,
                     nil,
                     event,
                     %{title: "Dinner", location: nil},
                     options()
                   )

          assert {:ok, ^event} = Calendar.get(account, nil, event.id, "Europe/Berlin")

          assert {event.title, event.location, event.description, shown(event.start)} ==
                   {"Dinner", nil, "Soup", "2026-03-02 12:00 +0100"}
        end

        test "changes between times, whole days and series", %{account: account} do
          assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 12:00"))
          days = %{start: ~D[2026-03-03], end: ~D[2026-03-05]}
          assert {:ok, event} = Calendar.update(account, nil, event, days, options())
          assert {event.start, event.end, event.zone} == {~D[2026-03-03], ~D[2026-03-05], nil}
          rule = %{repeat: "FREQ=WEEKLY;UNTIL=20260310"}
          assert {:ok, _} = Calendar.update(account, nil, event, rule, options())

          assert [first, _] = events(account, "2026-03-01", "2026-05-01")

          assert listed(account, "2026-03-01", "2026-05-01") == [
                   {"E", "2026-03-03"},
                   {"E", "2026-03-10"}
                 ]

          times = %{start: at("2026-03-03 08:00"), end: at("2026-03-03 09:00"), repeat: nil}
          assert {:ok, _} = Calendar.update(account, nil, first, times, options(:all))

          assert listed(account, "2026-03-01", "2026-05-01") ==
                   [{"E", "2026-03-03 08:00 +0100"}]
        end

        test "an event keeps its zone when it moves, and so does a series",
             %{account: account} do
          start = at("2026-03-02 09:00", "America/New_York")
          ends = at("2026-03-02 10:00", "America/New_York")
          moved = %{start: at("2026-03-02 17:00"), end: at("2026-03-02 18:00")}

          for repeat <- [nil, "FREQ=WEEKLY;COUNT=3"] do
            new = new("E", start, ends, repeat: repeat)
            assert {:ok, event} = Calendar.create(account, nil, new)
            assert {:ok, event} = Calendar.get(account, nil, event.id, "Europe/Berlin")
            assert {:ok, event} = Calendar.update(account, nil, event, moved, options())
            assert event.zone == "America/New_York"
            assert :ok = Calendar.delete(account, nil, event, options(:all))
          end
        end

        test "refuses to overwrite the changes of others", %{account: account} do
          assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 12:00"))
          assert {:ok, _} = Calendar.update(account, nil, event, %{title: "other"}, options())

          assert {:error, %ServiceError{kind: :conflict}} =
                   Calendar.update(account, nil, event, %{title: "mine"}, options())

          assert {:error, %ServiceError{kind: :conflict}} =
                   Calendar.delete(account, nil, event, options())

          assert [{"other", _}] = listed(account, "2026-03-02", "2026-03-03")
        end

        @reminders if :many_reminders in @without,
                     do: {[15], [[60], [20], []]},
                     else: {[15, 1440], [[60, 15, 0, 20], [20], []]}

        test "reminders are set, replaced and removed", %{account: account} do
          {first, others} = @reminders
          new = hour("E", "2026-03-02 12:00", reminders: first)
          assert {:ok, event} = Calendar.create(account, nil, new)
          assert reminders(event) == first

          for minutes <- others do
            assert {:ok, event} = Calendar.get(account, nil, event.id, "Europe/Berlin")
            changes = %{reminders: minutes}
            assert {:ok, event} = Calendar.update(account, nil, event, changes, options())
            assert {minutes, Enum.sort(reminders(event))} == {minutes, Enum.sort(minutes)}
            assert [same] = events(account, "2026-03-02", "2026-03-03")
            assert reminders(same) == reminders(event)
          end

          # Those of the calendar.
          assert {:ok, event} = Calendar.get(account, nil, event.id, "Europe/Berlin")
          changes = %{reminders: nil}
          assert {:ok, event} = Calendar.update(account, nil, event, changes, options())
          assert event.reminders in [:default, []]
        end

        test "a reminder of one event of a series, and of all of them", %{account: account} do
          new = hour("E", "2026-03-02 12:00", repeat: "FREQ=DAILY;COUNT=3", reminders: [10])
          assert {:ok, _} = Calendar.create(account, nil, new)
          [_, second, _] = events(account, "2026-03-02", "2026-03-06")
          changes = %{reminders: [5]}
          assert {:ok, _} = Calendar.update(account, nil, second, changes, options())
          listed = events(account, "2026-03-02", "2026-03-06")
          assert Enum.map(listed, &reminders/1) == [[10], [5], [10]]
          [first | _] = listed
          changes = %{reminders: [30]}
          assert {:ok, _} = Calendar.update(account, nil, first, changes, options(:all))
          listed = events(account, "2026-03-02", "2026-03-06")
          assert [[30], _, [30]] = Enum.map(listed, &reminders/1)
        end

        if :links not in @without do
          test "links are attached, once, and stay", %{account: account} do
            [first, second] = for n <- 1..2, do: "https://example.com/files/agenda%20#{n}.pdf?x=1"
            new = hour("E", "2026-03-02 12:00", attach: [first])
            assert {:ok, event} = Calendar.create(account, nil, new)
            changes = %{attach: [first, second]}
            assert {:ok, event} = Calendar.update(account, nil, event, changes, options())
            assert {:ok, event} = Calendar.update(account, nil, event, %{title: "F"}, options())

            assert for(file <- event.attachments, do: {file.part, file.url}) == [
                     {1, first},
                     {2, second}
                   ]

            assert {:error, %NotFoundError{}} = Calendar.attachment(account, nil, event.id, 1)
            assert {:error, %NotFoundError{}} = Calendar.attachment(account, nil, event.id, 3)
          end
        end

        test "an event without the user among its guests has nothing to answer",
             %{account: account} do
          assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 12:00"))
          assert {event.answer, event.mine} == {nil, true}
          answer = %{response: "accepted", comment: nil}

          assert {:error, %Skillbook.CalendarError{kind: :not_invited}} =
                   Calendar.answer(account, nil, event, answer, options())

          assert events(account, "2026-03-02", "2026-03-03", "Europe/Berlin", unanswered: true) ==
                   []
        end

        test "deleted and unknown events do not exist", %{account: account} do
          assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 12:00"))
          assert :ok = Calendar.delete(account, nil, event, options())
          assert events(account, "2026-03-02", "2026-03-03") == []

          for id <- [event.id, "0123456789abcdef0123456789abcdef"] do
            assert {:error, %NotFoundError{kind: "event", id: ^id}} =
                     Calendar.get(account, nil, id, "Europe/Berlin")
          end
        end

        test "knows the zone, the calendars and the busy times", %{account: account} do
          assert {:ok, "Europe/Berlin"} = Calendar.zone(account, nil)

          assert {:ok, [%{primary: true, writable: true, zone: "Europe/Berlin"} = own | _]} =
                   Calendar.calendars(account)

          # The id of the own calendar names it too.
          assert {:ok, "Europe/Berlin"} = Calendar.zone(account, own.id)

          for new <- [
                hour("a", "2026-03-02 09:00", repeat: "FREQ=DAILY;COUNT=2"),
                hour("b", "2026-03-02 13:00")
              ],
              do: assert({:ok, _} = Calendar.create(account, nil, new))

          from = at("2026-03-02 00:00")

          assert {:ok, %{"me" => {:ok, busy}}} =
                   Calendar.busy(account, ["me"], from, at("2026-03-04 00:00"))

          assert for({from, to} <- busy, do: {shown(from), shown(to)}) == [
                   {"2026-03-02 08:00 +0000", "2026-03-02 09:00 +0000"},
                   {"2026-03-02 12:00 +0000", "2026-03-02 13:00 +0000"},
                   {"2026-03-03 08:00 +0000", "2026-03-03 09:00 +0000"}
                 ]
        end

        test "a calendar that does not exist", %{account: account} do
          assert {:error, %NotFoundError{kind: "calendar", id: "nowhere"}} =
                   Calendar.create(account, "nowhere", hour("E", "2026-03-02 12:00"))

          assert {:error, %NotFoundError{kind: "calendar", id: "nowhere"}} =
                   Calendar.zone(account, "nowhere")
        end
      end
    end
  end
end
