defmodule Skillbook.Schedule do
  @moduledoc """
  A cron expression in a time zone, and the times at which it fires.

  The syntax is described in [Set a schedule](frontmatter.md#set-a-schedule). No function reads
  the clock: times are passed in and returned, all in UTC.

  ## Fields

    * `:expression` - the cron expression, its fields separated by single spaces
    * `:timezone` - the name of the time zone, as spelled in the IANA database
    * `:ref` - a reference to the schedule in the native library

  ## Examples

      iex> {:ok, schedule} = Skillbook.Schedule.parse("0 9 * * MON", "europe/berlin")
      iex> {schedule.expression, schedule.timezone}
      {"0 9 * * MON", "Europe/Berlin"}
      iex> Skillbook.Schedule.next(schedule, ~U[2026-10-24 12:00:00Z])
      ~U[2026-10-26 08:00:00Z]
  """

  alias Skillbook.{Native, ScheduleError}

  @type t :: %__MODULE__{expression: String.t(), timezone: String.t(), ref: reference()}

  @enforce_keys [:expression, :timezone, :ref]
  defstruct [:expression, :timezone, :ref]

  @doc """
  Parses a cron expression and the name of a time zone.

  Returns `{:error, %Skillbook.ScheduleError{}}` if one of them is invalid, or if the expression
  never fires, as on 30 February.

      iex> {:ok, schedule} = Skillbook.Schedule.parse("@daily")
      iex> schedule.timezone
      "UTC"
      iex> {:error, error} = Skillbook.Schedule.parse("0 25 * * 1")
      iex> error |> Exception.message() |> String.split(";") |> hd()
      ~s(expected a number from 0 to 23 in the hour, got "25")
  """
  @spec parse(String.t(), String.t()) :: {:ok, t()} | {:error, ScheduleError.t()}
  def parse(expression, timezone \\ "UTC") when is_binary(expression) and is_binary(timezone) do
    case Native.schedule_parse(expression, timezone) do
      {:ok, ref, timezone} ->
        expression = expression |> String.split() |> Enum.join(" ")
        {:ok, %__MODULE__{expression: expression, timezone: timezone, ref: ref}}

      {:error, {part, expected, got, hint}} ->
        {:error, %ScheduleError{part: part, expected: expected, got: got, hint: hint}}
    end
  end

  @doc "Like `parse/2`, but raises the error."
  @spec parse!(String.t(), String.t()) :: t()
  def parse!(expression, timezone \\ "UTC") do
    case parse(expression, timezone) do
      {:ok, schedule} -> schedule
      {:error, error} -> raise error
    end
  end

  @doc """
  Returns the first time after `later_than` at which it fires, or `nil` if there is none before
  the year 10000.

      iex> schedule = Skillbook.Schedule.parse!("30 2 * * *", "Europe/Berlin")
      iex> next = Skillbook.Schedule.next(schedule, ~U[2027-03-27 12:00:00Z])
      iex> {next, Skillbook.Schedule.local(schedule, next)}
      {~U[2027-03-28 01:00:00Z], "2027-03-28 03:00 +02:00"}
  """
  @spec next(t(), DateTime.t()) :: DateTime.t() | nil
  def next(%__MODULE__{ref: ref}, %DateTime{} = later_than) do
    with at when is_integer(at) <- Native.schedule_next(ref, DateTime.to_unix(later_than)),
         do: utc(at)
  end

  @doc """
  Returns the next `count` times after `later_than` in order, or fewer if the year 9999 ends
  first.

      iex> schedule = Skillbook.Schedule.parse!("0 0 L * *")
      iex> Skillbook.Schedule.upcoming(schedule, ~U[2028-01-31 00:00:00Z], 2)
      [~U[2028-02-29 00:00:00Z], ~U[2028-03-31 00:00:00Z]]
  """
  @spec upcoming(t(), DateTime.t(), 0..1_000) :: [DateTime.t()]
  def upcoming(%__MODULE__{ref: ref}, %DateTime{} = later_than, count) when count in 0..1_000,
    do: ref |> Native.schedule_upcoming(DateTime.to_unix(later_than), count) |> Enum.map(&utc/1)

  # Seconds: up to a day, a month, a year, and two leap years around a year without one, as 1900.
  @spans [2, 120, 7_200, 172_800, 40 * 86_400, 400 * 86_400, 3_000 * 86_400]

  @doc """
  Returns the last time up to and including `until` at which it fired, or `nil` if it did not fire
  in the eight years before.

      iex> schedule = Skillbook.Schedule.parse!("30 2 * * *", "Europe/Berlin")
      iex> Skillbook.Schedule.previous(schedule, ~U[2027-03-28 12:00:00Z])
      ~U[2027-03-28 01:00:00Z]
  """
  @spec previous(t(), DateTime.t()) :: DateTime.t() | nil
  def previous(%__MODULE__{} = schedule, %DateTime{} = until) do
    # Short spans first: most schedules fired recently, and a short span has few times.
    Enum.find_value(@spans, fn span ->
      latest(schedule, DateTime.add(until, -span, :second), until, nil)
    end)
  end

  defp latest(schedule, from, until, last) do
    times = upcoming(schedule, from, 100)

    case Enum.take_while(times, &(DateTime.compare(&1, until) != :gt)) do
      [] -> last
      fired when length(fired) < 100 -> List.last(fired)
      fired -> latest(schedule, List.last(fired), until, List.last(fired))
    end
  end

  @doc """
  Formats a time in the schedule's time zone, with its offset from UTC, for people to read.

  Returns `nil` after the year 9999.

      iex> schedule = Skillbook.Schedule.parse!("@hourly", "Asia/Kolkata")
      iex> Skillbook.Schedule.local(schedule, ~U[2026-10-26 08:00:00Z])
      "2026-10-26 13:30 +05:30"
  """
  @spec local(t(), DateTime.t()) :: String.t() | nil
  def local(%__MODULE__{ref: ref}, %DateTime{} = at),
    do: Native.schedule_local(ref, DateTime.to_unix(at))

  @doc """
  Describes the schedule in words, on one line.

      iex> schedule = Skillbook.Schedule.parse!("*/15 9-17 * * 1-5", "America/New_York")
      iex> Skillbook.Schedule.describe(schedule)
      "every 15 minutes of hours 9 to 17 on Mondays to Fridays, America/New_York"
  """
  @spec describe(t()) :: String.t()
  def describe(%__MODULE__{ref: ref}), do: Native.schedule_describe(ref)

  defp utc(at), do: DateTime.from_unix!(at)
end
