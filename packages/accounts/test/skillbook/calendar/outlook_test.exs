defmodule Skillbook.Calendar.OutlookTest do
  # The adapter for Outlook's calendars, against a server that refuses what Microsoft's
  # description does not allow.
  use ExUnit.Case, async: true

  alias Skillbook.Calendar.Outlook.{Pattern, Zones}
  alias Skillbook.Test.{MicrosoftVendor, Services}

  doctest Zones

  @ann "ann@example.com"
  @bob "bob@example.com"
  @berlin "Europe/Berlin"

  use Skillbook.CalendarConformance,
    start: &__MODULE__.account/0,
    without: [:many_reminders, :links]

  def account(seed \\ %{}) do
    world = Services.world(outlook_calendar: Map.put_new(seed, :zones, %{@ann => @berlin}))
    account(world, @ann)
  end

  defdelegate account(world, user, options \\ []), to: MicrosoftVendor

  @start DateTime.from_naive!(~N[2026-03-03 09:00:00], "Etc/UTC")

  # {rule, its pattern without the interval 1, the rule that is read from it or :same}
  @rules [
    {"FREQ=DAILY", %{"type" => "daily"}, :same},
    {"FREQ=DAILY;INTERVAL=3", %{"type" => "daily", "interval" => 3}, :same},
    {"FREQ=DAILY;BYDAY=MO,TU",
     %{"type" => "weekly", "daysOfWeek" => ["monday", "tuesday"], "firstDayOfWeek" => "monday"},
     "FREQ=WEEKLY;BYDAY=MO,TU"},
    {"FREQ=WEEKLY",
     %{"type" => "weekly", "daysOfWeek" => ["tuesday"], "firstDayOfWeek" => "monday"},
     "FREQ=WEEKLY;BYDAY=TU"},
    {"FREQ=WEEKLY;BYDAY=SU;WKST=SU",
     %{"type" => "weekly", "daysOfWeek" => ["sunday"], "firstDayOfWeek" => "sunday"}, :same},
    {"FREQ=MONTHLY", %{"type" => "absoluteMonthly", "dayOfMonth" => 3},
     "FREQ=MONTHLY;BYMONTHDAY=3"},
    {"FREQ=MONTHLY;BYMONTHDAY=28", %{"type" => "absoluteMonthly", "dayOfMonth" => 28}, :same},
    {"FREQ=MONTHLY;BYDAY=-1FR",
     %{"type" => "relativeMonthly", "index" => "last", "daysOfWeek" => ["friday"]}, :same},
    {"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
     %{
       "type" => "relativeMonthly",
       "index" => "last",
       "daysOfWeek" => ~w(monday tuesday wednesday thursday friday)
     }, :same},
    {"FREQ=YEARLY", %{"type" => "absoluteYearly", "dayOfMonth" => 3, "month" => 3},
     "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=3"},
    {"FREQ=YEARLY;BYMONTH=5;BYDAY=2TU",
     %{
       "type" => "relativeYearly",
       "index" => "second",
       "daysOfWeek" => ["tuesday"],
       "month" => 5
     }, :same}
  ]

  @refused [
    "FREQ=DAILY;INTERVAL=2;BYDAY=MO",
    "FREQ=DAILY;BYMONTH=3",
    "FREQ=WEEKLY;BYDAY=1MO",
    "FREQ=WEEKLY;BYSETPOS=1",
    "FREQ=MONTHLY;BYMONTHDAY=29",
    "FREQ=MONTHLY;BYMONTHDAY=1,15",
    "FREQ=MONTHLY;BYMONTHDAY=-2",
    "FREQ=MONTHLY;BYDAY=5MO",
    "FREQ=MONTHLY;BYDAY=1MO,3MO",
    "FREQ=MONTHLY;BYDAY=MO",
    "FREQ=YEARLY;BYMONTH=1,2",
    "FREQ=YEARLY;BYDAY=1MO",
    "FREQ=YEARLY;BYYEARDAY=1",
    "FREQ=YEARLY;BYWEEKNO=1"
  ]

  describe "repetitions" do
    test "are written as Microsoft's, and read back" do
      for {rule, pattern, read} <- @rules,
          {ending, range} <- [
            {"", %{"type" => "noEnd"}},
            {";COUNT=4", %{"type" => "numbered", "numberOfOccurrences" => 4}},
            {";UNTIL=20261231T235959Z", %{"type" => "endDate", "endDate" => "2026-12-31"}}
          ] do
        {:ok, written} = Pattern.write(rule <> ending, @start)
        range = Map.merge(range, %{"startDate" => "2026-03-03", "recurrenceTimeZone" => "UTC"})

        assert {rule, written} ==
                 {rule, %{"pattern" => Map.put_new(pattern, "interval", 1), "range" => range}}

        read = if read == :same, do: rule, else: read
        assert {rule, rules(Pattern.read(written, @start))} == {rule, rules(read <> ending)}
      end
    end

    defp rules(rule), do: rule |> String.split(";") |> Enum.sort()

    test "that Microsoft cannot keep are errors that say so" do
      account = account()

      for rule <- @refused do
        assert {rule, Pattern.write(rule, @start)} == {rule, :error}
        new = hour("E", "2026-03-02 09:00", repeat: rule)

        assert {:error, %Skillbook.CalendarError{kind: :repeat} = error} =
                 Calendar.create(account, nil, new)

        assert Exception.message(error) ==
                 "the calendar's service cannot keep the repetition #{rule}; it takes daily, " <>
                   "weekly on days, and monthly or yearly on a day up to the 28th, on the " <>
                   "last day (BYMONTHDAY=-1), or on a weekday such as BYDAY=2TU"
      end

      assert {:ok, %{"pattern" => pattern}} = Pattern.write("FREQ=MONTHLY;BYMONTHDAY=-1", @start)
      assert length(pattern["daysOfWeek"]) == 7

      assert Pattern.read(%{"pattern" => pattern, "range" => %{"type" => "noEnd"}}, @start) ==
               "FREQ=MONTHLY;BYMONTHDAY=-1"
    end

    test "of strangers that cannot be read are none" do
      for recurrence <- [
            nil,
            7,
            %{},
            %{"pattern" => %{"type" => "x"}, "range" => %{"type" => "noEnd"}},
            %{
              "pattern" => %{"type" => "daily"},
              "range" => %{"type" => "endDate", "endDate" => "x"}
            }
          ],
          do: assert(Pattern.read(recurrence, @start) == nil)
    end
  end

  describe "writing" do
    setup do
      zones = %{@ann => @berlin, @bob => "Asia/Tokyo"}
      world = Services.world(outlook_calendar: %{zones: zones})
      %{world: world, account: account(world, @ann), bob: account(world, @bob)}
    end

    defp judge(world, user), do: Services.judge(world, "outlook.events", user: user)

    test "an event is made once, whatever happens to the answer", %{
      world: world,
      account: account
    } do
      for fault <- [
            [status: 503, applied: true],
            [cut: 0, applied: true],
            [cut: 20, applied: true],
            [status: 429, reason: "TooManyRequests", retry_after: 0]
          ] do
        Services.fault(world, [method: "POST /me/events"] ++ fault)
        title = inspect(fault)

        assert {:ok, %{title: ^title}} =
                 Calendar.create(account, nil, hour(title, "2026-03-02 09:00"))

        assert {fault, Enum.count(judge(world, @ann), &(&1["subject"] == title))} == {fault, 1}
      end
    end

    test "guests are invited, added and removed, and always told", %{
      world: world,
      account: account,
      bob: bob
    } do
      assert {:ok, event} =
               Calendar.create(
                 account,
                 nil,
                 hour("Plan", "2026-03-02 09:00", attendees: [@bob], conference: true)
               )

      assert [%{email: @bob, name: nil, response: "needs_action", optional: false}] =
               event.attendees

      assert event.conference =~ "https://teams.example.com/"

      assert [%{title: "Plan", mine: false, organizer: @ann}] =
               events(bob, "2026-03-02", "2026-03-03")

      changes = %{add_attendees: ["eve@example.org", "BOB@example.com"]}
      assert {:ok, event} = Calendar.update(account, nil, event, changes, options())
      assert Enum.map(event.attendees, & &1.email) == [@bob, "eve@example.org"]

      assert {:error, %ServiceError{kind: :invalid, hint: hint}} =
               Calendar.update(account, nil, event, %{title: "x"}, options(:one, notify: false))

      assert hint == "Microsoft always tells the guests; leave out --notify none, or ask the user"

      assert {:ok, event} =
               Calendar.update(account, nil, event, %{remove_attendees: [@bob]}, options())

      assert events(bob, "2026-03-02", "2026-03-03") == []
      assert :ok = Calendar.delete(account, nil, event, options())
      assert judge(world, @ann) == []
    end

    test "more reminders than one, and links, are errors that change nothing",
         %{world: world, account: account} do
      for {field, value, kind, message} <- [
            {:reminders, [15, 60], :reminders,
             "this calendar's service keeps one reminder of an event; give --remind one time"},
            {:attach, ["https://example.com/a.pdf"], :links,
             "this calendar's service attaches no links to events; leave out --attach, and " <>
               "write the links into the description"}
          ] do
        assert {:error, %Skillbook.CalendarError{kind: ^kind} = error} =
                 Calendar.create(account, nil, hour("E", "2026-03-02 09:00", [{field, value}]))

        assert Exception.message(error) == message
        assert judge(world, @ann) == []
        assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 09:00"))
        changes = %{field => value}

        assert Calendar.update(account, nil, event, changes, options()) == {:error, error}
        assert {:ok, ^event} = Calendar.get(account, nil, event.id, @berlin)
        assert :ok = Calendar.delete(account, nil, event, options())
      end
    end

    test "without a reminder given, an event has that of the mailbox", %{account: account} do
      assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 09:00"))
      assert event.reminders == [%{method: "display", minutes: 15, at: nil}]
    end

    test "the rest of a series counts deleted events too", %{account: account} do
      assert {:ok, _} =
               Calendar.create(
                 account,
                 nil,
                 hour("w", "2026-03-02 09:00", repeat: "FREQ=WEEKLY;COUNT=4")
               )

      [first | _] = events(account, "2026-03-01", "2026-05-01")
      assert :ok = Calendar.delete(account, nil, first, options())
      [_, third | _] = events(account, "2026-03-01", "2026-05-01")
      assert {:ok, _} = Calendar.update(account, nil, third, %{title: "x"}, options(:following))

      assert listed(account, "2026-03-01", "2026-05-01") == [
               {"w", "2026-03-09 09:00 +0100"},
               {"x", "2026-03-16 09:00 +0100"},
               {"x", "2026-03-23 09:00 +0100"}
             ]
    end

    test "times have the zones of the database, by Microsoft's names or their own", %{
      world: world,
      account: account
    } do
      for {zone, name} <- [
            {"Europe/Paris", "Romance Standard Time"},
            {"Europe/Vienna", "Europe/Vienna"},
            {"Etc/UTC", "UTC"}
          ] do
        start = at("2026-03-02 09:00", zone)
        new = new(zone, start, DateTime.add(start, 3_600, :second, TimeZones))
        assert {:ok, %{zone: read}} = Calendar.create(account, nil, new)
        assert read == String.replace_prefix(zone, "Etc/", "")

        assert [%{"originalStartTimeZone" => ^name}] =
                 Enum.filter(judge(world, @ann), &(&1["subject"] == zone))
      end
    end
  end

  describe "answers" do
    setup do
      world = Services.world(outlook_calendar: %{zones: %{@ann => @berlin, @bob => @berlin}})
      %{world: world, account: account(world, @ann), bob: account(world, @bob)}
    end

    defp invite(account, fields \\ []) do
      fields = [attendees: [@bob, "eve@example.org"]] ++ fields
      {:ok, event} = Calendar.create(account, nil, hour("Plan", "2026-03-02 09:00", fields))
      event
    end

    defp waiting(account),
      do: listed(account, "2026-03-01", "2026-04-01", @berlin, unanswered: true)

    defp responses(account) do
      for event <- events(account, "2026-03-01", "2026-04-01"),
          do: Enum.map(event.attendees, & &1.response)
    end

    # {answer, whether the organizer is told, the event in the user's calendar afterwards}
    @answers [
      {"accepted", true, ["accepted"]},
      {"tentative", true, ["tentative"]},
      {"declined", true, []},
      {"accepted", false, ["accepted"]},
      {"declined", false, []}
    ]

    for {response, notify, left} <- @answers do
      @tag response: response, notify: notify, left: left
      test "#{response}, told: #{notify}", %{account: account, bob: bob} = context do
        %{response: response, notify: notify, world: world} = context
        invite(account)
        assert [{"Plan", _}] = waiting(bob)
        assert [event] = events(bob, "2026-03-02", "2026-03-03")
        assert {event.answer, event.mine} == {"needs_action", false}
        assert [%{email: @bob, self: true, comment: nil}, %{self: false}] = event.attendees
        answer = %{response: response, comment: "I am on a train"}
        options = options(:one, notify: notify)

        assert {:ok, answered, ^notify} = Calendar.answer(bob, nil, event, answer, options)
        assert answered.answer == response
        assert [^response, "needs_action"] = Enum.map(answered.attendees, & &1.response)
        assert waiting(bob) == []
        kept = events(bob, "2026-03-02", "2026-03-03")
        assert Enum.map(kept, & &1.answer) == context.left
        told = if notify, do: response, else: "needs_action"
        assert responses(account) == [[told, "needs_action"]]

        assert [%{"SendResponse" => ^notify, "Comment" => "I am on a train"}] =
                 for(%{"body" => %{"SendResponse" => _} = body} <- Services.log(world), do: body)
      end
    end

    # Of a daily series of three events the second is answered.
    for {scope, answers} <- [
          one: ~w(needs_action accepted needs_action),
          all: ~w(accepted accepted accepted)
        ] do
      @tag scope: scope, answers: answers
      test "events of a series: #{scope}", %{account: account, bob: bob} = context do
        invite(account, repeat: "FREQ=DAILY;COUNT=3")
        assert [{"Plan", "2026-03-02 09:00 +0100"}] = waiting(bob)
        [_, second, _] = events(bob, "2026-03-01", "2026-04-01")
        answer = %{response: "accepted", comment: nil}
        options = options(context.scope)

        assert {:ok, %{answer: "accepted"}, true} =
                 Calendar.answer(bob, nil, second, answer, options)

        assert Enum.map(events(bob, "2026-03-01", "2026-04-01"), & &1.answer) == context.answers
        assert Enum.map(responses(account), &hd/1) == context.answers
      end
    end

    test "the organizer has nothing to answer, even as a guest", %{account: account} do
      {:ok, event} =
        Calendar.create(account, nil, hour("E", "2026-03-02 09:00", attendees: [@ann]))

      answer = %{response: "accepted", comment: nil}

      assert {:error, %Skillbook.CalendarError{kind: :not_invited}} =
               Calendar.answer(account, nil, event, answer, options())
    end

    test "an event that is gone is an error", %{account: account, bob: bob} do
      event = invite(account)
      [invitation] = events(bob, "2026-03-02", "2026-03-03")
      assert :ok = Calendar.delete(account, nil, event, options())
      answer = %{response: "declined", comment: nil}

      for notify <- [true, false] do
        assert {:error, %NotFoundError{kind: "event"}} =
                 Calendar.answer(bob, nil, invitation, answer, options(:one, notify: notify))
      end
    end
  end

  describe "attachments" do
    test "are listed with an event got by itself; files have bytes, links none" do
      event = %{
        id: "AAkAE-review=",
        subject: "Review",
        start: %{dateTime: "2026-03-02T10:00:00", timeZone: "UTC"},
        end: %{dateTime: "2026-03-02T11:00:00", timeZone: "UTC"},
        attachments: [
          %{name: "n.txt", type: "text/plain", text: "1 2 3"},
          %{name: "Plan.docx"}
        ]
      }

      world = Services.world(outlook_calendar: %{events: %{@ann => [event]}})
      account = account(world, @ann)
      assert {:ok, %{attachments: files}} = Calendar.get(account, nil, event.id, @berlin)

      assert files == [
               %{part: 1, name: "n.txt", type: "text/plain", size: 5, url: nil},
               %{part: 2, name: "Plan.docx", type: nil, size: 0, url: nil}
             ]

      assert [%{attachments: []}] = events(account, "2026-03-02", "2026-03-03")

      assert Calendar.attachment(account, nil, event.id, 1) ==
               {:ok, %{name: "n.txt", type: "text/plain", data: "1 2 3"}}

      assert {:error, %ServiceError{kind: :invalid, hint: hint}} =
               Calendar.attachment(account, nil, event.id, 2)

      assert hint ==
               "this attachment is a link, whose address Microsoft does not tell; " <>
                 "open it in Outlook"

      assert {:error, %NotFoundError{kind: "attachment", id: "3"}} =
               Calendar.attachment(account, nil, event.id, 3)
    end
  end

  describe "reading" do
    test "busy times are those of the calendar, and of others as far as they are shown" do
      seed = %{zones: %{@ann => @berlin}, hidden: [@bob]}
      world = Services.world(outlook_calendar: seed)
      account = account(world, @ann)
      assert {:ok, _} = Calendar.create(account(world, @bob), nil, hour("b", "2026-03-02 10:00"))
      people = ["me", @bob, "eve@example.org"]

      assert {:ok, busy} =
               Calendar.busy(account, people, at("2026-03-02 00:00"), at("2026-03-03 00:00"))

      unknown = {:error, "Microsoft does not say when this address is busy"}
      assert busy == %{"me" => {:ok, []}, @bob => unknown, "eve@example.org" => unknown}
    end

    test "personal accounts have no zone, and no schedules of others" do
      world = Services.world(outlook_calendar: %{personal: [@ann]})
      account = account(world, @ann)
      assert Calendar.zone(account, nil) == {:ok, nil}
      assert Calendar.zone(%{account | identity: nil}, nil) == {:ok, nil}
      span = {at("2026-03-02 00:00"), at("2026-03-03 00:00")}

      assert {:ok, %{"me" => {:ok, []}}} =
               Calendar.busy(account, ["me"], elem(span, 0), elem(span, 1))

      assert {:error, %ServiceError{kind: :invalid}} =
               Calendar.busy(account, [@bob], elem(span, 0), elem(span, 1))
    end

    test "answers that are no event are errors" do
      world = Services.world()
      account = account(world, @ann)
      time = ~s({"dateTime": "2026-03-02T09:00:00.0000000", "timeZone": "UTC"})

      for answer <- [
            "",
            "null",
            "[]",
            "{}",
            ~s({"id": "a"}),
            ~s({"id": "a", "start": #{time}, "end": {}}),
            ~s({"id": "a", "start": #{time}, "end": #{time}, "attendees": [7]}),
            ~s({"id": "a", "start": #{time}, "end": #{time}, "body": "x"})
          ] do
        Services.fault(world, method: "GET /me/events/{id}", body: answer)

        assert {^answer, {:error, %ServiceError{kind: :bad_answer}}} =
                 {answer, Calendar.get(account, nil, "a", @berlin)}
      end

      Services.fault(world,
        method: "GET /me/events/{id}",
        body: ~s({"id": "a", "start": #{time}, "end": #{time}})
      )

      assert {:ok, %{title: "", description: nil, attendees: [], organizer: nil}} =
               Calendar.get(account, nil, "a", @berlin)
    end
  end
end
