defmodule Skillbook.Calendar.GoogleTest do
  # The adapter for Google Calendar, against a server that refuses what Google's description does
  # not allow.
  use ExUnit.Case, async: true

  alias Skillbook.Calendar.TimeZones
  alias Skillbook.Test.{GoogleVendor, Services}

  doctest Skillbook.CalendarError

  test "a rule of a stranger is quoted in errors" do
    error = %Skillbook.CalendarError{kind: :rule, id: "e1", rule: "FREQ=DAILY;X=\n```cmd\nx\n```"}
    assert Exception.message(error) =~ ~S|names days ("FREQ=DAILY;X= ```cmd x ```"); give|
  end

  doctest Skillbook.Calendar.Recurrence
  doctest Skillbook.Calendar.Series

  @ann "ann@example.com"
  @bob "bob@example.com"
  @berlin "Europe/Berlin"

  use Skillbook.CalendarConformance, start: &__MODULE__.account/0

  def account(seed \\ %{}) do
    world = Services.world(calendar: Map.put_new(seed, :zones, %{@ann => @berlin}))
    account(world, @ann)
  end

  defdelegate account(world, user, options \\ []), to: GoogleVendor

  setup context do
    if context[:conformance] do
      :ok
    else
      seed = Map.put_new(context[:seed] || %{}, :zones, %{@ann => @berlin, @bob => "Asia/Tokyo"})
      world = Services.world(calendar: seed)
      %{world: world, account: account(world, @ann), bob: account(world, @bob)}
    end
  end

  defp judge(world, query \\ []),
    do: Services.judge(world, "calendar.events", Keyword.put_new(query, :user, @ann))

  # The parameters of the calls of a method.
  defp calls(world, method),
    do: for(entry <- Services.log(world), entry["method"] == method, do: entry)

  describe "writing" do
    test "an event is made once, whatever happens to the answer", %{
      world: world,
      account: account
    } do
      for fault <- [
            [status: 503, applied: true],
            [cut: 0, applied: true],
            [cut: 20, applied: true],
            [status: 429, reason: "rateLimitExceeded"],
            [status: 403, reason: "userRateLimitExceeded"]
          ] do
        Services.fault(world, [method: "calendar.events.insert"] ++ fault)
        new = hour(inspect(fault), "2026-03-02 09:00")
        assert {:ok, event} = Calendar.create(account, nil, new)
        assert event.title == inspect(fault)
        assert {fault, 1} == {fault, Enum.count(judge(world), &(&1["summary"] == inspect(fault)))}
      end
    end

    test "what Google's own client reads", %{world: world, account: account} do
      new =
        hour("Q1", "2026-03-02 09:00",
          repeat: "FREQ=WEEKLY;COUNT=3",
          attendees: [@bob, "eve@elsewhere.example"],
          conference: true,
          location: "Room 1"
        )

      assert {:ok, event} = Calendar.create(account, nil, new)
      assert [judged] = judge(world)
      assert judged["id"] == new.key

      assert %{
               "summary" => "Q1",
               "location" => "Room 1",
               "recurrence" => ["RRULE:FREQ=WEEKLY;COUNT=3"],
               "start" => %{"dateTime" => "2026-03-02T09:00:00+01:00", "timeZone" => @berlin},
               "attendees" => [%{"email" => @bob}, %{"email" => "eve@elsewhere.example"}],
               "hangoutLink" => "https://meet.google.com/" <> _ = link
             } = judged

      assert event.conference == link
      assert length(judge(world, expand: true)) == 3
      # Bob sees it in his calendar, at his time.
      assert [%{"start" => %{"dateTime" => "2026-03-02T17:00:00+09:00"}}] =
               judge(world, user: @bob)
    end

    test "guests are told, or not", %{world: world, account: account} do
      for {notify, sent} <- [{true, "all"}, {false, "none"}] do
        Services.clear_log(world)
        new = hour("E", "2026-03-02 09:00", attendees: [@bob], notify: notify)
        assert {:ok, event} = Calendar.create(account, nil, new)
        options = options(:one, notify: notify)
        assert {:ok, event} = Calendar.update(account, nil, event, %{title: "F"}, options)
        assert :ok = Calendar.delete(account, nil, event, options)

        for method <- ~w(insert patch delete) do
          assert [%{"params" => %{"sendUpdates" => ^sent}}] =
                   calls(world, "calendar.events." <> method)
        end
      end
    end

    test "adds and removes guests, and keeps the answers of others",
         %{world: world, account: account} do
      many = for n <- 1..60, do: "g#{n}@example.org"
      new = hour("E", "2026-03-02 09:00", attendees: [@bob | many])
      assert {:ok, event} = Calendar.create(account, nil, new)
      assert event.more_attendees

      changes = %{add_attendees: ["NEW@example.org", "G1@example.org"], remove_attendees: [@bob]}
      assert {:ok, _} = Calendar.update(account, nil, event, changes, options())
      assert [%{"attendees" => guests}] = judge(world)
      assert Enum.map(guests, & &1["email"]) == many ++ ["NEW@example.org"]
    end

    test "a series is divided with all of its fields, and deleted events count",
         %{world: world, account: account} do
      new =
        hour("w", "2026-03-02 09:00",
          repeat: "FREQ=WEEKLY;COUNT=6",
          attendees: [@bob],
          location: "Room 1"
        )

      assert {:ok, _} = Calendar.create(account, nil, new)
      [_, second, third | _] = events(account, "2026-03-01", "2026-05-01")
      assert :ok = Calendar.delete(account, nil, second, options())
      options = options(:following)
      assert {:ok, _} = Calendar.update(account, nil, third, %{title: "later"}, options)

      assert [old, later] =
               Enum.sort_by(
                 judge(world) |> Enum.filter(& &1["recurrence"]),
                 &(&1["summary"] == "later")
               )

      assert old["recurrence"] == ["RRULE:FREQ=WEEKLY;UNTIL=20260316T075959Z"]
      assert later["recurrence"] == ["RRULE:FREQ=WEEKLY;COUNT=4"]
      assert {"Room 1", [%{"email" => @bob}]} = {later["location"], later["attendees"]}
      assert later["id"] == options.key

      assert listed(account, "2026-03-01", "2026-05-01") |> Enum.map(&elem(&1, 0)) ==
               ["w", "later", "later", "later", "later"]
    end

    # Mondays, without the 23rd of March, and a Wednesday.
    @dated %{
      events: [
        %{
          calendar: @ann,
          id: "dated",
          summary: "w",
          start: %{dateTime: "2026-03-02T09:00:00+01:00", timeZone: @berlin},
          end: %{dateTime: "2026-03-02T10:00:00+01:00", timeZone: @berlin},
          recurrence: [
            "EXDATE;TZID=Europe/Berlin:20260323T090000",
            "RDATE:20260318T080000Z",
            "RRULE:FREQ=WEEKLY;COUNT=6"
          ]
        }
      ]
    }
    @dates ~w(03-02 03-09 03-16 03-18 03-30 04-06)

    for {scope, index, change, expected} <- [
          {:all, 1, :title, @dates},
          {:all, 1, :move, ~w(03-03 03-10 03-17 03-19 03-31 04-07)},
          {:following, 2, :title, @dates},
          {:following, 2, :move, ~w(03-02 03-09 03-17 03-19 03-31 04-07)},
          # The Wednesday is none of the rule, which goes on from the Monday before.
          {:following, 3, :title, @dates},
          {:following, 3, :move, ~w(03-02 03-09 03-16 03-19 03-31 04-07)},
          {:following, 4, :move, ~w(03-02 03-09 03-16 03-18 03-31 04-07)},
          {:following, 2, :delete, ~w(03-02 03-09)},
          {:following, 3, :delete, ~w(03-02 03-09 03-16)},
          {:one, 3, :delete, ~w(03-02 03-09 03-16 03-30 04-06)}
        ] do
      @tag seed: @dated, row: {scope, index, change, expected}
      test "dates given and excluded go with their series: #{scope}, #{change} #{index}",
           %{account: account, row: {scope, index, change, expected}} do
        all = events(account, "2026-03-01", "2026-05-01")
        assert days(all) == @dates
        event = Enum.at(all, index)

        if change == :delete do
          assert :ok = Calendar.delete(account, nil, event, options(scope))
        else
          day_later = &DateTime.add(&1, 86_400, :second, TimeZones)
          moved = %{start: day_later.(event.start), end: day_later.(event.end)}
          changes = if change == :title, do: %{title: "later"}, else: moved
          assert {:ok, _} = Calendar.update(account, nil, event, changes, options(scope))
        end

        all = events(account, "2026-03-01", "2026-05-01")
        assert days(all) == expected

        if change == :title do
          first = if scope == :all, do: 0, else: index
          assert Enum.find_index(all, &(&1.title == "later")) == first
          assert Enum.count(all, &(&1.title == "later")) == length(all) - first
        end
      end
    end

    defp days(events) do
      assert Enum.all?(events, &(&1.start.hour == 9))
      for event <- events, do: Elixir.Calendar.strftime(event.start, "%m-%d")
    end

    test "a series that cannot be ended is not doubled", %{world: world, account: account} do
      new = hour("w", "2026-03-02 09:00", repeat: "FREQ=WEEKLY;COUNT=3")
      assert {:ok, _} = Calendar.create(account, nil, new)
      [_, second, _] = events(account, "2026-03-01", "2026-05-01")

      Services.fault(world,
        method: "calendar.events.patch",
        status: 412,
        reason: "conditionNotMet"
      )

      assert {:error, %ServiceError{kind: :conflict}} =
               Calendar.update(account, nil, second, %{title: "x"}, options(:following))

      assert [{"w", _}, {"w", _}, {"w", _}] = listed(account, "2026-03-01", "2026-05-01")
    end

    test "a repeated deletion succeeds", %{world: world, account: account} do
      assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 09:00"))
      Services.fault(world, method: "calendar.events.delete", status: 503, applied: true)
      assert :ok = Calendar.delete(account, nil, event, options())
      assert judge(world) == []
    end

    test "only the organizer changes a meeting", %{account: account, bob: bob} do
      assert {:ok, _} =
               Calendar.create(account, nil, hour("E", "2026-03-02 09:00", attendees: [@bob]))

      [event] = events(bob, "2026-03-02", "2026-03-03")
      assert {event.mine, event.organizer} == {false, @ann}

      assert {:error, %ServiceError{kind: :forbidden}} =
               Calendar.update(bob, nil, event, %{title: "mine"}, options())
    end
  end

  describe "reading" do
    @tag seed: %{page: 1}
    test "pages are read until there are enough", %{world: world, account: account} do
      for n <- 1..4,
          do: {:ok, _} = Calendar.create(account, nil, hour("e#{n}", "2026-03-0#{n} 09:00"))

      assert length(events(account, "2026-03-01", "2026-03-09")) == 4
      Services.clear_log(world)

      query = %{
        calendar: nil,
        from: at("2026-03-01 00:00"),
        to: at("2026-03-09 00:00"),
        text: nil,
        limit: 2,
        zone: @berlin
      }

      assert {:ok, %{events: [%{title: "e1"}, %{title: "e2"}], more: true}} =
               Calendar.list(account, query)

      assert [%{"params" => first} | _] = calls(world, "calendar.events.list")

      assert %{"singleEvents" => true, "orderBy" => "startTime", "timeZone" => @berlin} = first
      assert first["timeMin"] == "2026-03-01T00:00:00+01:00"
    end

    # An invitation bomb: guests, texts and repetitions of a stranger.
    @tag seed: %{
           events: [
             %{
               calendar: "bob@example.com",
               id: "b0b0",
               summary: String.duplicate("x", 100_000),
               description: String.duplicate("y", 200_000),
               start: %{dateTime: "2026-03-02T09:00:00+01:00", timeZone: "Europe/Berlin"},
               end: %{dateTime: "2026-03-02T09:00:01+01:00", timeZone: "Europe/Berlin"},
               recurrence: ["RRULE:FREQ=MINUTELY;UNTIL=99991231T235959Z"],
               attendees:
                 for(n <- 1..5_000, do: %{email: "g#{n}@example.org"}) ++
                   [%{email: "ann@example.com"}]
             }
           ]
         }
    test "an invitation bomb stays small", %{account: account} do
      query = %{
        calendar: nil,
        from: at("2026-03-02 00:00"),
        to: at("2026-03-03 00:00"),
        text: nil,
        limit: 3,
        zone: @berlin
      }

      assert {:ok, %{events: [event, _, _], more: true}} = Calendar.list(account, query)
      assert {length(event.attendees), event.more_attendees} == {1, true}
      assert {:ok, ^event} = Calendar.get(account, nil, event.id, @berlin)
    end

    @tag seed: %{hidden: ["eve@example.com"]}
    test "the busy times of several people", %{account: account} do
      new = hour("E", "2026-03-02 09:00", attendees: [@bob])
      assert {:ok, _} = Calendar.create(account, nil, new)
      people = ["me", @bob, "eve@example.com", "nobody@example.org"]
      from = at("2026-03-02 00:00")
      assert {:ok, busy} = Calendar.busy(account, people, from, at("2026-03-03 00:00"))
      assert {:ok, [_]} = busy["me"]
      assert busy[@bob] == busy["me"]

      for person <- ["eve@example.com", "nobody@example.org"] do
        assert {person, busy[person]} ==
                 {person, {:error, "Google shows no calendar of this address to the account"}}
      end
    end

    @tag seed: %{
           calendars: %{
             "team@group.calendar.google.com" => %{
               summary: "Team",
               timeZone: "America/New_York",
               access: %{"ann@example.com" => "reader", "bob@example.com" => "owner"}
             }
           }
         }
    test "other calendars", %{account: account, bob: bob} do
      team = "team@group.calendar.google.com"

      assert {:ok, [own, shared]} = Calendar.calendars(account)
      assert {own.id, own.writable, own.primary} == {@ann, true, true}

      assert shared == %{
               id: team,
               name: "Team",
               zone: "America/New_York",
               primary: false,
               writable: false
             }

      assert {:ok, "America/New_York"} = Calendar.zone(account, team)
      assert {:ok, event} = Calendar.create(bob, team, hour("E", "2026-03-02 09:00"))
      assert [{"E", _}] = listed(account, "2026-03-02", "2026-03-03", @berlin, calendar: team)
      assert events(account, "2026-03-02", "2026-03-03") == []

      assert {:error, %ServiceError{kind: :forbidden}} =
               Calendar.delete(account, team, event, options())
    end
  end

  describe "scopes and faults" do
    test "each command works with its least scope, and with no other's", %{world: world} do
      vendor = Skillbook.Connections.Google
      event = fn account -> hd(events(account, "2026-03-02", "2026-03-03")) end
      full = account(world, @ann)
      from = at("2026-03-02 00:00")

      calls = %{
        "calendar.list" => fn account ->
          Calendar.list(account, %{
            calendar: nil,
            from: from,
            to: at("2026-03-03 00:00"),
            text: nil,
            limit: 1,
            zone: @berlin
          })
        end,
        "calendar.get" => fn account -> Calendar.get(account, nil, event.(full).id, @berlin) end,
        "calendar.calendars" => &Calendar.calendars/1,
        "calendar.create" => &Calendar.create(&1, nil, hour("E", "2026-03-02 09:00")),
        "calendar.invite" =>
          &Calendar.create(&1, nil, hour("E", "2026-03-02 09:00", attendees: [@bob])),
        "calendar.update" => &Calendar.update(&1, nil, event.(full), %{title: "F"}, options()),
        # Nobody has invited the user, which is known before a request.
        "calendar.answer" => fn account ->
          guests = [%{email: @ann, self: true}]
          event = %{event.(full) | attendees: guests}
          answer = %{response: "accepted", comment: nil}

          with {:ok, event, _} <- Calendar.answer(account, nil, event, answer, options()),
               do: {:ok, event}
        end,
        "calendar.delete" => &Calendar.delete(&1, nil, event.(full), options()),
        "calendar.free" => &Calendar.busy(&1, ["me"], from, at("2026-03-03 00:00"))
      }

      calendar = for {"calendar." <> _ = command, _} <- vendor.commands(), do: command
      assert Enum.sort(Map.keys(calls)) == Enum.sort(calendar)
      for _ <- 1..3, do: {:ok, _} = calls["calendar.create"].(full)

      for {command, call} <- calls do
        [least | _] = vendor.scopes(command)
        token = Services.token(world, user: @ann, scopes: [least])["access_token"]
        account = account(world, @ann, token: token)

        assert {command, true} ==
                 {command, match?({:ok, _}, call.(account)) or call.(full) == :ok}

        # Every command needs the zone.
        unless command == "calendar.calendars",
          do: assert({command, {:ok, @berlin}} == {command, Calendar.zone(account, nil)})

        token = Services.token(world, user: @ann, scopes: ["openid"])["access_token"]
        account = account(world, @ann, token: token)
        assert {^command, {:error, %ServiceError{kind: :scope}}} = {command, call.(account)}
      end
    end

    @faults [
      {[status: 401, reason: "authError"], :unauthorized},
      {[status: 403, reason: "dailyLimitExceeded"], :quota},
      {[status: 403, reason: "forbidden"], :forbidden},
      {[status: 400, reason: "badRequest"], :invalid},
      {[body: "no json"], :bad_answer}
    ]

    for {fault, kind} <- @faults do
      @tag fault: fault, kind: kind
      test "a fault of every method: #{inspect(fault)}",
           %{world: world, account: account, fault: fault, kind: kind} do
        assert {:ok, event} = Calendar.create(account, nil, hour("E", "2026-03-02 09:00"))
        from = at("2026-03-02 00:00")
        to = at("2026-03-03 00:00")

        query = %{calendar: nil, from: from, to: to, text: nil, limit: 1, zone: @berlin}
        Services.fault(world, [method: "calendar.*", times: nil] ++ fault)

        for call <- [
              fn -> Calendar.list(account, query) end,
              fn -> Calendar.get(account, nil, event.id, @berlin) end,
              fn -> Calendar.zone(account, nil) end,
              fn -> Calendar.calendars(account) end,
              fn -> Calendar.create(account, nil, hour("F", "2026-03-02 09:00")) end,
              fn -> Calendar.update(account, nil, event, %{title: "G"}, options()) end,
              fn -> Calendar.delete(account, nil, event, options()) end,
              fn -> Calendar.busy(account, ["me"], from, to) end
            ] do
          assert {:error, %ServiceError{kind: ^kind}} = call.()
        end
      end
    end

    test "rate limits that never end keep the time limit", %{world: world} do
      Services.fault(world,
        method: "calendar.*",
        times: nil,
        status: 429,
        reason: "rateLimitExceeded",
        retry_after: 60
      )

      account = account(world, @ann, time: 700)
      began = System.monotonic_time(:millisecond)
      assert {:error, %ServiceError{kind: :rate_limited}} = Calendar.calendars(account)
      assert System.monotonic_time(:millisecond) - began < 5_000
    end
  end
end
