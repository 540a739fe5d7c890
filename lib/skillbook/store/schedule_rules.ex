defmodule Skillbook.Store.ScheduleRules do
  @moduledoc false
  # Which schedules what commands write may have: assistants write them too, and nobody looks on when they run.

  alias Skillbook.{Schedule, StoreError, Stored}

  # A time of two days can be followed closely by one of the next day only.
  @looked 600

  # What fires so many seconds apart, the shortest first.
  @examples [
    {1, "* * * * * *"},
    {5, "*/5 * * * * *"},
    {15, "*/15 * * * * *"},
    {60, "* * * * *"},
    {300, "*/5 * * * *"},
    {900, "*/15 * * * *"},
    {1_800, "*/30 * * * *"},
    {3_600, "0 * * * *"},
    {14_400, "0 */4 * * *"},
    {43_200, "0 */12 * * *"},
    {86_400, "0 8 * * *"},
    {604_800, "0 8 * * 1"}
  ]

  @doc "The entry with its schedule and its time zone, of which it has one, as they are kept."
  @spec settle(Stored.t()) :: {:ok, Stored.t()} | {:error, Exception.t()}
  def settle(%Stored{schedule: nil}) do
    {:error,
     %StoreError{
       kind: :missing,
       field: :schedule,
       expected: "when it runs in its timezone",
       example: "0 8 * * 1"
     }}
  end

  def settle(%Stored{timezone: timezone} = stored) do
    with {:ok, schedule} <- Schedule.parse(stored.schedule, timezone || "UTC"),
         do:
           {:ok,
            %{stored | schedule: schedule.expression, timezone: timezone && schedule.timezone}}
  end

  @doc "Whether it leaves so many seconds between two times, from now on."
  @spec apart(Schedule.t(), pos_integer(), DateTime.t()) :: :ok | {:error, StoreError.t()}
  def apart(schedule, seconds, now) do
    times = Schedule.upcoming(schedule, now, @looked)
    pairs = Enum.zip(times, Enum.drop(times, 1))

    case Enum.find(pairs, fn {one, next} -> DateTime.diff(next, one) < seconds end) do
      nil ->
        :ok

      {one, next} ->
        {_seconds, example} =
          Enum.find(@examples, List.last(@examples), fn {apart, _} -> apart >= seconds end)

        {:error,
         %StoreError{
           kind: :too_often,
           value: schedule.expression,
           expected: seconds,
           actual: DateTime.diff(next, one),
           at: one,
           example: example
         }}
    end
  end
end
