defmodule Skillbook.ScheduleTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Schedule, ScheduleError}

  doctest Skillbook.Schedule
  doctest Skillbook.ScheduleError

  test "normalizes the expression and the time zone" do
    for {expression, timezone, expected} <- [
          {" 0  9 * *\t1 ", "europe/berlin", {"0 9 * * 1", "Europe/Berlin"}},
          {"@Daily", "UTC", {"@Daily", "UTC"}}
        ] do
      schedule = Schedule.parse!(expression, timezone)
      assert {schedule.expression, schedule.timezone} == expected
    end
  end

  test "names the invalid part" do
    for {expression, timezone, part, message} <- [
          {"0 9 * *", "Mars", :expression,
           ~s(expected five fields, or six with the second first, got "0 9 * *"; write ) <>
             ~s(minute, hour, day of month, ) <>
             "month and day of week, such as 0 9 * * 1, or a name such as @daily"},
          {"@daily", "Mars", :timezone,
           ~s(expected the name of a time zone, got "Mars"; write a name such as ) <>
             ~s(Europe/Berlin, America/New_York or UTC)}
        ] do
      assert {:error, %ScheduleError{part: ^part} = error} = Schedule.parse(expression, timezone)
      assert Exception.message(error) == message
      assert_raise ScheduleError, message, fn -> Schedule.parse!(expression, timezone) end
    end
  end

  test "accepts fractions of seconds, and ends with the year 9999" do
    schedule = Schedule.parse!("@hourly")
    assert Schedule.next(schedule, ~U[2026-10-26 07:59:59.900000Z]) == ~U[2026-10-26 08:00:00Z]
    assert Schedule.next(schedule, ~U[2026-10-26 08:00:00.000000Z]) == ~U[2026-10-26 09:00:00Z]
    assert Schedule.next(schedule, ~U[1969-12-31 22:59:59.900000Z]) == ~U[1969-12-31 23:00:00Z]
    assert Schedule.next(schedule, ~U[9999-12-30 21:00:00Z]) == ~U[9999-12-30 22:00:00Z]
    assert Schedule.next(Schedule.parse!("@yearly"), ~U[9999-06-01 00:00:00Z]) == nil

    yearly = Schedule.parse!("@yearly")

    assert yearly |> Schedule.upcoming(~U[9997-06-01 00:00:00Z], 5) |> length() ==
             2

    assert Schedule.upcoming(schedule, ~U[2026-10-26 08:00:00Z], 0) == []
  end

  test "formats local times until the year 9999" do
    schedule = Schedule.parse!("@hourly", "America/New_York")
    assert Schedule.local(schedule, ~U[2026-10-26 08:00:30Z]) == "2026-10-26 04:00:30 -04:00"

    assert Schedule.local(
             Schedule.parse!("@hourly", "Pacific/Kiritimati"),
             ~U[9999-12-31 23:59:59Z]
           ) == nil
  end
end
