defmodule Skillbook.Calendar.Words do
  @moduledoc false
  # Reads the days, times and durations that people write for events, such as `monday 9:00`, in a
  # time zone. Every text has one meaning, which docs/calendar.md tells, or is an error.
  #
  # The clock is an argument. Days are read by `Skillbook.Flags.Cast.day/2`, as for all flags.

  alias Skillbook.Calendar.TimeZones
  alias Skillbook.Flags.Cast
  alias Skillbook.Support.Number

  @typedoc "A whole day, or a time with a note if the clocks skip it or show it twice."
  @type t :: {:day, Date.t()} | {:time, DateTime.t(), String.t() | nil}

  @typedoc "The current time, as the clocks of the zone show it."
  @type now :: DateTime.t()

  @days ~w(monday tuesday wednesday thursday friday saturday sunday)
  @max_bytes 60
  # No event is further away than the last day with four digits, in either direction.
  @max_count 100_000
  @last_year 9_999

  @expected "a day (YYYY-MM-DD, today, tomorrow, monday, next monday, in 3 days), a time " <>
              "(14:30, 9am, noon), a day with a time, or a time in ISO 8601 with its offset"
  @example ~s("2026-03-02 14:30")

  @doc "The forms of a time, for errors and pages."
  @spec expected() :: String.t()
  def expected, do: @expected

  @doc "A time, as written in a command."
  @spec example() :: String.t()
  def example, do: @example

  @doc """
  Reads a day, a time, or both. A time without a day is on `day`.
  """
  @spec read(String.t(), now(), Date.t() | nil) :: {:ok, t()} | :error
  def read(text, now, day \\ nil)
  def read(text, _now, _day) when byte_size(text) > @max_bytes, do: :error

  def read(text, now, day) do
    words = words(text)

    with :error <- instant(text, now),
         :error <- elapsed(words, now),
         :error <- day_and_time(words, now, day || DateTime.to_date(now)),
         do: :error
  end

  defp words(text),
    do: text |> String.downcase() |> String.replace(~r/[\s,]+/u, " ") |> String.trim()

  # A time with its offset, as programs write it.
  defp instant(text, now) do
    case text |> String.trim() |> String.upcase() |> DateTime.from_iso8601() do
      {:ok, time, _} -> in_zone(DateTime.truncate(time, :second), now)
      _ -> :error
    end
  end

  defp in_zone(%{year: year} = time, now) when year in 1..@last_year,
    do: {:ok, {:time, TimeZones.shift(time, now.time_zone), nil}}

  defp in_zone(_, _), do: :error

  defp elapsed("now", now), do: {:ok, {:time, DateTime.truncate(now, :second), nil}}

  defp elapsed("in " <> words, now) do
    with {:ok, minutes} <- clock_duration(words) do
      now
      |> DateTime.truncate(:second)
      |> DateTime.add(minutes * 60, :second, TimeZones)
      |> in_zone(now)
    end
  end

  defp elapsed(_, _), do: :error

  # Minutes and hours are time that passes. Days are days of the calendar.
  defp clock_duration(words) do
    if words =~ ~r/day|week/, do: :error, else: minutes(words)
  end

  defp day_and_time(words, now, day) do
    with :error <- whole_day(words, now),
         :error <- of_day(words, day, now) do
      parts = String.split(words, ~r/(?: at | |(?<=\d)t(?=\d))/)

      # The time is the last word or the last two, such as `9 am`.
      Enum.find_value(1..2, :error, fn count ->
        {days, times} = Enum.split(parts, -count)

        with [_ | _] <- days,
             {:ok, {:day, day}} <- days |> Enum.join(" ") |> whole_day(now),
             day = future(day, days, times, now),
             {:ok, time} <- times |> Enum.join(" ") |> of_day(day, now) do
          {:ok, time}
        else
          _ -> nil
        end
      end)
    end
  end

  # `monday 9:00` on a Monday at 10:00 is in a week.
  defp future(day, [word], times, now) do
    with true <- weekday(word) != nil and day == DateTime.to_date(now),
         {:ok, {:time, time, _}} <- times |> Enum.join(" ") |> of_day(day, now),
         :lt <- DateTime.compare(time, now) do
      Date.add(day, 7)
    else
      _ -> day
    end
  end

  defp future(day, _, _, _), do: day

  defp whole_day(words, now) do
    today = DateTime.to_date(now)

    case {Cast.day(words, today), String.split(words, " ")} do
      {{:ok, %{year: year}} = day, _} when year in 1..@last_year -> day
      {_, [day]} -> next(today, weekday(day))
      {_, ["on", day]} -> next(today, weekday(day))
      {_, ["next", "week"]} -> next(monday(today, 7), 1)
      {_, ["next", day]} -> next(monday(today, 7), weekday(day))
      {_, ["in", count, unit]} -> counted(today, count, unit)
      _ -> :error
    end
    |> case do
      {:ok, day} -> {:ok, {:day, day}}
      _ -> :error
    end
  end

  defp monday(today, days), do: today |> Date.beginning_of_week() |> Date.add(days)

  defp next(_from, nil), do: :error

  defp next(from, weekday),
    do: {:ok, Date.add(from, Integer.mod(weekday - Date.day_of_week(from), 7))}

  defp weekday(word) do
    index =
      Enum.find_index(@days, &(word == &1 or (byte_size(word) in 3..5 and prefix?(&1, word))))

    index && index + 1
  end

  # `mon`, `tues`, `thurs`, but no other beginnings.
  defp prefix?(day, word), do: String.starts_with?(day, word) and word in ~w(mon tue tues wed
    thu thur thurs fri sat sun)

  defp counted(today, count, unit) do
    case {count(count), unit} do
      {count, unit} when is_integer(count) and unit in ~w(day days) ->
        {:ok, Date.add(today, count)}

      {count, unit} when is_integer(count) and unit in ~w(week weeks) ->
        {:ok, Date.add(today, 7 * count)}

      _ ->
        :error
    end
  end

  defp count(text) do
    case Number.integer(text) do
      {count, ""} when count in 0..@max_count -> count
      _ -> nil
    end
  end

  # A time of a day.
  defp of_day("at " <> words, day, now), do: of_day(words, day, now)

  defp of_day(words, day, now) do
    case clock(words) do
      {:ok, seconds} ->
        local = NaiveDateTime.new!(day, ~T[00:00:00]) |> NaiveDateTime.add(seconds, :second)
        {time, oddity} = TimeZones.local(local, now.time_zone)
        {:ok, {:time, time, note(oddity, local, time)}}

      :error ->
        :error
    end
  end

  defp clock("noon"), do: {:ok, 12 * 3_600}
  defp clock("midnight"), do: {:ok, 0}

  defp clock(words) do
    case Regex.run(~r/\A(\d{1,2})(?::(\d{2})(?::(\d{2}))?)? ?(am|pm|a\.m\.|p\.m\.)?\z/, words) do
      # A number alone is no time.
      [_, _hour] -> :error
      [_, hour, minute] -> seconds(hour, minute, "0", "")
      [_, hour, minute, second] -> seconds(hour, minute, second, "")
      [_, hour, minute, second, half] -> seconds(hour, minute, second, String.first(half))
      nil -> :error
    end
  end

  defp seconds(hour, minute, second, half) do
    [hour, minute, second] =
      for text <- [hour, minute, second], do: if(text == "", do: 0, else: Number.integer!(text))

    hour =
      case {half, hour} do
        {"", hour} when hour <= 23 -> hour
        # The end of a day.
        {"", 24} when minute == 0 and second == 0 -> 24
        {"a", hour} when hour in 1..12 -> rem(hour, 12)
        {"p", hour} when hour in 1..12 -> rem(hour, 12) + 12
        _ -> nil
      end

    if hour && minute <= 59 && second <= 59,
      do: {:ok, hour * 3_600 + minute * 60 + second},
      else: :error
  end

  defp note(nil, _local, _time), do: nil

  defp note(:skipped, local, time) do
    "#{minute(local)} does not exist in #{time.time_zone}: the clocks skip it; " <>
      "taken as #{minute(time)}"
  end

  defp note(:twice, local, time) do
    second = DateTime.from_naive(local, time.time_zone, TimeZones) |> elem(2)

    "#{minute(local)} occurs twice in #{time.time_zone}; taken as the first, " <>
      "#{DateTime.to_iso8601(time)}; the second is #{DateTime.to_iso8601(second)}"
  end

  defp minute(time), do: Calendar.strftime(time, "%Y-%m-%d %H:%M")

  # Days

  @doc """
  The first moment of a day, and the first one after it. Both are the same for a day that the zone
  skipped.
  """
  @spec day(Date.t(), String.t()) :: {DateTime.t(), DateTime.t()}
  def day(day, zone), do: {midnight(day, zone), midnight(Date.add(day, 1), zone)}

  @doc "The first moment of a day, in a zone where the clocks may skip midnight."
  @spec midnight(Date.t(), String.t()) :: DateTime.t()
  def midnight(day, zone),
    do: day |> NaiveDateTime.new!(~T[00:00:00]) |> TimeZones.local(zone) |> elem(0)

  # Durations

  @expected_duration "a duration such as 45m, 1h30m, 2 hours or 3 days"

  @doc "The forms of a duration, for errors and pages."
  @spec expected_duration() :: String.t()
  def expected_duration, do: @expected_duration

  @doc """
  Reads a duration: `45m`, `1h30m`, `90 minutes`, `2 hours`, `1:30`, `3 days`, `1 week`.
  """
  @spec duration(String.t()) :: {:ok, {:minutes | :days, pos_integer()}} | :error
  def duration(text) when byte_size(text) > @max_bytes, do: :error

  def duration(text) do
    words = words(text)

    case Regex.run(~r/\A(\d{1,6}) ?(d|day|days|w|week|weeks)\z/, words) do
      [_, count, unit] -> positive(:days, days(Number.integer!(count), unit))
      nil -> with {:ok, minutes} <- minutes(words), do: positive(:minutes, minutes)
    end
  end

  defp days(count, "w" <> _), do: 7 * count
  defp days(count, _), do: count

  defp positive(unit, count) when count in 1..@max_count, do: {:ok, {unit, count}}
  defp positive(_, _), do: :error

  @hours_and_minutes ~r/\A(?:(\d{1,5})[ ]?h(?:rs?|ours?)?)?(?:[ ]|[ ]and[ ])?
                        (?:(\d{1,5})[ ]?m(?:ins?|inutes?)?)?\z/x

  defp minutes(words) do
    case {Regex.run(@hours_and_minutes, words), Regex.run(~r/\A(\d{1,2}):([0-5]\d)\z/, words)} do
      {_, [_, hours, minutes]} -> {:ok, number(hours) * 60 + number(minutes)}
      {[_ | [_ | _] = parts], _} -> {:ok, total(parts)}
      _ -> :error
    end
  end

  defp total([hours]), do: number(hours) * 60
  defp total([hours, minutes]), do: number(hours) * 60 + number(minutes)

  defp number(""), do: 0
  defp number(digits), do: Number.integer!(digits)
end
