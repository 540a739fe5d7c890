defmodule Skillbook.Store.ScheduleRules do
  @moduledoc false
  # Decides which schedules an entry may have: the shortest interval, the number of scheduled
  # entries per author, and the profile to run as.
  #
  # Assistants write schedules too, and nobody watches when they run, so the book sets limits.

  alias Skillbook.{Book, Schedule, StoreError, Stored}
  alias Skillbook.Store.{Authors, Read, Table}

  # How many upcoming times are checked. A schedule may run twice around midnight only, so the
  # first few times are not enough.
  @checked_times 600

  # Examples for error messages: a schedule for each interval in seconds.
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

  @doc "The entry with its schedule and time zone in their normal form; it has at least one."
  @spec normalize(Stored.t()) :: {:ok, Stored.t()} | {:error, Exception.t()}
  def normalize(%Stored{schedule: nil}) do
    {:error,
     %StoreError{
       kind: :missing,
       field: :schedule,
       expected: "the cron expression that the timezone is for",
       example: "0 8 * * 1"
     }}
  end

  def normalize(%Stored{timezone: timezone} = entry) do
    with {:ok, schedule} <- Schedule.parse(entry.schedule, timezone || "UTC") do
      timezone = timezone && schedule.timezone
      {:ok, %{entry | schedule: schedule.expression, timezone: timezone}}
    end
  end

  @doc """
  Whether a write may leave an entry with its schedule; `write` as in `Skillbook.Store.Write`.

  A schedule that the entry already had stays allowed when the book's limits become stricter.
  """
  # Imported entries never run.
  def check(%{by: by}, _before, %Stored{source: source}) when :import in [by, source], do: :ok

  def check(
        _write,
        %Stored{deleted_at: nil, schedule: schedule, timezone: timezone},
        %Stored{schedule: schedule, timezone: timezone}
      ),
      do: :ok

  def check(%{book: book} = write, before, entry) do
    limits = book.schedules

    with :ok <- check_runner(write),
         schedule = Schedule.parse!(entry.schedule, entry.timezone || "UTC"),
         :ok <- check_interval(schedule, limits[:min_interval], write.now) do
      if scheduled?(before), do: :ok, else: check_count(write, entry, limits[:max_per_profile])
    end
  end

  defp scheduled?(before),
    do: before != nil and before.deleted_at == nil and before.schedule != nil

  defp check_runner(%{writer: %{runs?: true}}), do: :ok

  defp check_runner(%{view: view}),
    do: {:error, %StoreError{kind: :no_runner, value: view.profile.id}}

  # Counts only entries that the profile sees, so the limit reveals no others.
  defp check_count(write, entry, limit) do
    with {:ok, entries} <- Table.scheduled(write.sql, write.view.profile) do
      creator = List.first(entry.writers, write.view.profile.id)

      count =
        entries
        |> Read.visible(write.view)
        |> Enum.count(&(&1.source != :import and List.first(&1.writers) == creator))

      if count < limit, do: :ok, else: {:error, %StoreError{kind: :too_many, expected: limit}}
    end
  end

  @doc "Whether a schedule leaves at least so many seconds between two times, from `now` on."
  @spec check_interval(Schedule.t(), pos_integer(), DateTime.t()) ::
          :ok | {:error, StoreError.t()}
  def check_interval(schedule, seconds, now) do
    times = Schedule.upcoming(schedule, now, @checked_times)
    pairs = Enum.zip(times, Enum.drop(times, 1))

    case Enum.find(pairs, fn {one, next} -> DateTime.diff(next, one) < seconds end) do
      nil ->
        :ok

      {one, next} ->
        {_interval, example} =
          Enum.find(@examples, List.last(@examples), fn {interval, _} -> interval >= seconds end)

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

  @doc "Whether the book has a profile that can run an entry by its schedule."
  def runs?(view, entry) do
    match?({:ok, _, _}, Authors.profile(entry.writers, Book.fetch!(view.book)))
  end
end
