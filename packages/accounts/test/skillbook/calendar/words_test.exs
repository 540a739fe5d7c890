defmodule Skillbook.Calendar.WordsTest do
  use ExUnit.Case, async: true

  alias Skillbook.Calendar.{TimeZones, Words}

  doctest Skillbook.Calendar.TimeZones

  # A Wednesday, 10:20 in Berlin.
  @now ~U[2026-02-18 09:20:30Z]

  defp read(text, zone \\ "Europe/Berlin", now \\ @now) do
    case Words.read(text, TimeZones.shift(now, zone)) do
      {:ok, {:day, day}} -> Date.to_iso8601(day)
      {:ok, {:time, time, nil}} -> DateTime.to_iso8601(time)
      {:ok, {:time, time, note}} -> {DateTime.to_iso8601(time), note}
      :error -> :error
    end
  end

  test "days" do
    for {text, day} <- [
          {"2026-03-01", "2026-03-01"},
          {"today", "2026-02-18"},
          {" Tomorrow ", "2026-02-19"},
          {"yesterday", "2026-02-17"},
          {"wednesday", "2026-02-18"},
          {"thu", "2026-02-19"},
          {"on Tuesday", "2026-02-24"},
          {"Monday", "2026-02-23"},
          # Of the next week, which begins on Monday.
          {"next wednesday", "2026-02-25"},
          {"next friday", "2026-02-27"},
          {"next monday", "2026-02-23"},
          {"next week", "2026-02-23"},
          {"in 3 days", "2026-02-21"},
          {"in 1 week", "2026-02-25"},
          {"in 0 days", "2026-02-18"}
        ],
        do: assert({text, read(text)} == {text, day})
  end

  test "times" do
    for {text, time} <- [
          {"14:30", "2026-02-18T14:30:00+01:00"},
          {"9am", "2026-02-18T09:00:00+01:00"},
          {"9:15 PM", "2026-02-18T21:15:00+01:00"},
          {"12am", "2026-02-18T00:00:00+01:00"},
          {"12 p.m.", "2026-02-18T12:00:00+01:00"},
          {"noon", "2026-02-18T12:00:00+01:00"},
          {"tomorrow noon", "2026-02-19T12:00:00+01:00"},
          {"tomorrow at 9:00", "2026-02-19T09:00:00+01:00"},
          {"tomorrow, 9:00", "2026-02-19T09:00:00+01:00"},
          {"monday 9:00", "2026-02-23T09:00:00+01:00"},
          {"next tuesday 14:30", "2026-02-24T14:30:00+01:00"},
          {"in 3 days at 8 am", "2026-02-21T08:00:00+01:00"},
          # Later today, or else in a week.
          {"wednesday 11:00", "2026-02-18T11:00:00+01:00"},
          {"wednesday 9:00", "2026-02-25T09:00:00+01:00"},
          {"today 9:00", "2026-02-18T09:00:00+01:00"},
          {"2026-07-01 09:00", "2026-07-01T09:00:00+02:00"},
          {"2026-07-01T09:00", "2026-07-01T09:00:00+02:00"},
          {"2026-07-01T09:00:30Z", "2026-07-01T11:00:30+02:00"},
          {"2026-07-01T09:00:00-04:00", "2026-07-01T15:00:00+02:00"},
          {"2026-07-01 24:00", "2026-07-02T00:00:00+02:00"},
          {"now", "2026-02-18T10:20:30+01:00"},
          {"in 90 minutes", "2026-02-18T11:50:30+01:00"},
          {"in 2 hours", "2026-02-18T12:20:30+01:00"}
        ],
        do: assert({text, read(text)} == {text, time})
  end

  test "everything else is an error" do
    for text <- [
          "",
          "9",
          "25:00",
          "13pm",
          "0am",
          "9:60",
          "24:01",
          "2026-02-30",
          "2026-02-30 9:00",
          "-2026-02-03",
          "mo",
          "someday",
          "monday or tuesday",
          "next 9:00",
          "in days",
          "in -1 days",
          "in 999999 days",
          "9:00 9:00",
          "monday monday 9:00",
          "tomorrow tomorrow",
          "2026-07-01T09:00:00+99:00",
          "today" <> String.duplicate(" ", 60),
          "९:००",
          "to\0day",
          String.duplicate("9", 1_000_000)
        ],
        do: assert({text, read(text)} == {text, :error})
  end

  test "local times that the clocks skip, or show twice" do
    twice = fn first, second, local, zone ->
      {first,
       "#{local} occurs twice in #{zone}; taken as the first, #{first}; " <>
         "the second is #{second}"}
    end

    skipped = fn time, local, taken, zone ->
      {time, "#{local} does not exist in #{zone}: the clocks skip it; taken as #{taken}"}
    end

    for {zone, text, expected} <- [
          {"Europe/Berlin", "2026-03-29 01:59", "2026-03-29T01:59:00+01:00"},
          {"Europe/Berlin", "2026-03-29 02:00",
           skipped.(
             "2026-03-29T03:00:00+02:00",
             "2026-03-29 02:00",
             "2026-03-29 03:00",
             "Europe/Berlin"
           )},
          {"Europe/Berlin", "2026-03-29 02:30",
           skipped.(
             "2026-03-29T03:30:00+02:00",
             "2026-03-29 02:30",
             "2026-03-29 03:30",
             "Europe/Berlin"
           )},
          {"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T03:00:00+02:00"},
          {"Europe/Berlin", "2026-10-25 01:59", "2026-10-25T01:59:00+02:00"},
          {"Europe/Berlin", "2026-10-25 02:00",
           twice.(
             "2026-10-25T02:00:00+02:00",
             "2026-10-25T02:00:00+01:00",
             "2026-10-25 02:00",
             "Europe/Berlin"
           )},
          {"Europe/Berlin", "2026-10-25 02:59",
           twice.(
             "2026-10-25T02:59:00+02:00",
             "2026-10-25T02:59:00+01:00",
             "2026-10-25 02:59",
             "Europe/Berlin"
           )},
          {"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T03:00:00+01:00"},
          {"America/New_York", "2026-03-08 02:30",
           skipped.(
             "2026-03-08T03:30:00-04:00",
             "2026-03-08 02:30",
             "2026-03-08 03:30",
             "America/New_York"
           )},
          {"America/New_York", "2026-11-01 01:30",
           twice.(
             "2026-11-01T01:30:00-04:00",
             "2026-11-01T01:30:00-05:00",
             "2026-11-01 01:30",
             "America/New_York"
           )},
          {"America/New_York", "2026-11-01 02:00", "2026-11-01T02:00:00-05:00"},
          # Half an hour.
          {"Australia/Lord_Howe", "2026-10-04 01:59", "2026-10-04T01:59:00+10:30"},
          {"Australia/Lord_Howe", "2026-10-04 02:15",
           skipped.(
             "2026-10-04T02:45:00+11:00",
             "2026-10-04 02:15",
             "2026-10-04 02:45",
             "Australia/Lord_Howe"
           )},
          {"Australia/Lord_Howe", "2026-10-04 02:30", "2026-10-04T02:30:00+11:00"},
          {"Australia/Lord_Howe", "2026-04-05 01:30",
           twice.(
             "2026-04-05T01:30:00+11:00",
             "2026-04-05T01:30:00+10:30",
             "2026-04-05 01:30",
             "Australia/Lord_Howe"
           )},
          {"Australia/Lord_Howe", "2026-04-05 02:00", "2026-04-05T02:00:00+10:30"},
          # A whole day: the clocks went from the end of the 29th to the 31st.
          {"Pacific/Apia", "2011-12-29 23:59", "2011-12-29T23:59:00-10:00"},
          {"Pacific/Apia", "2011-12-30 10:00",
           skipped.(
             "2011-12-31T10:00:00+14:00",
             "2011-12-30 10:00",
             "2011-12-31 10:00",
             "Pacific/Apia"
           )},
          {"Pacific/Apia", "2011-12-31 00:00", "2011-12-31T00:00:00+14:00"}
        ],
        do: assert({zone, text, read(text, zone)} == {zone, text, expected})
  end

  test "days that are shorter or longer than 24 hours" do
    for {zone, day, hours} <- [
          {"Europe/Berlin", ~D[2026-03-28], 24},
          {"Europe/Berlin", ~D[2026-03-29], 23},
          {"Europe/Berlin", ~D[2026-10-25], 25},
          {"Australia/Lord_Howe", ~D[2026-10-04], 23.5},
          {"Pacific/Apia", ~D[2011-12-30], 0},
          # The clocks skip midnight.
          {"Africa/Cairo", ~D[2026-04-24], 23},
          {"Asia/Beirut", ~D[2026-03-29], 23},
          {"UTC", ~D[2026-03-29], 24}
        ] do
      {from, to} = Words.day(day, zone)
      assert {zone, DateTime.diff(to, from) / 3600} == {zone, hours / 1}
    end
  end

  test "every hour of eight years reads back as itself, or as its twin" do
    for zone <- ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"],
        hour <- 0..70_000//7 do
      time = TimeZones.shift(DateTime.add(~U[2009-01-01 00:30:00Z], hour * 3600), zone)

      case TimeZones.local(DateTime.to_naive(time), zone) do
        {^time, nil} -> :ok
        {other, :twice} -> assert DateTime.to_naive(other) == DateTime.to_naive(time)
      end
    end
  end

  test "durations" do
    for {text, duration} <- [
          {"45m", {:ok, {:minutes, 45}}},
          {"1h30m", {:ok, {:minutes, 90}}},
          {"1h 30m", {:ok, {:minutes, 90}}},
          {"1 hour and 30 minutes", {:ok, {:minutes, 90}}},
          {"90 minutes", {:ok, {:minutes, 90}}},
          {"2 hours", {:ok, {:minutes, 120}}},
          {"1:30", {:ok, {:minutes, 90}}},
          {"1 day", {:ok, {:days, 1}}},
          {"2w", {:ok, {:days, 14}}},
          {"0m", :error},
          {"30", :error},
          {"", :error},
          {"-1h", :error},
          {"1.5h", :error},
          {"999999 days", :error},
          {"a while", :error}
        ],
        do: assert({text, Words.duration(text)} == {text, duration})
  end

  test "names of zones" do
    assert TimeZones.fetch("america/new_york") == {:ok, "America/New_York"}
    assert {:error, error} = TimeZones.fetch("Atlantis/Capital")
    assert {error.part, error.got} == {:timezone, ~s("Atlantis/Capital")}

    assert DateTime.new(~D[2026-01-01], ~T[00:00:00], "Mars/Base", TimeZones) ==
             {:error, :time_zone_not_found}
  end
end
