defmodule Skillbook.Calendar.Series do
  @moduledoc false
  # Moves times of a series by as much as one of its events moves. By the clock of the series'
  # zone: a series that moves by an hour keeps its time of day when the clocks change.

  alias Skillbook.Calendar.{ICalendar, TimeZones}

  @type time :: DateTime.t() | Date.t()
  @type span :: {time(), time() | nil}

  @doc """
  Returns the times of the first event, `first`, after an event of the series moves from `old` to
  `new`.
  """
  @spec move(span(), span(), span()) :: span()
  def move({%Date{} = first, _}, {%Date{} = old, _}, {%Date{} = start, ends}) do
    first = Date.add(first, Date.diff(start, old))
    {first, Date.add(first, Date.diff(ends, start))}
  end

  def move({%DateTime{} = first, _}, {%DateTime{} = old, _}, {%DateTime{} = start, ends}) do
    first = by(first, in_zone(old, first.time_zone), start)
    {first, DateTime.add(first, DateTime.diff(ends, start), :second, TimeZones)}
  end

  # Between whole days and times: the day moves, and the time of day is the new one.
  def move({first, _}, {old, _}, {start, ends}) do
    day = Date.add(day(first), Date.diff(day(start), day(old)))

    case start do
      %Date{} ->
        {day, Date.add(day, Date.diff(ends, start))}

      %DateTime{} ->
        {first, _} =
          day |> NaiveDateTime.new!(DateTime.to_time(start)) |> TimeZones.local(start.time_zone)

        {first, DateTime.add(first, DateTime.diff(ends, start), :second, TimeZones)}
    end
  end

  @doc """
  Returns the times of a series that goes on from one of its events on, after `changes` of the
  event. An event that was moved alone before leaves the series where it was.

      iex> alias Skillbook.Calendar.Series
      iex> day = &Date.new!(2026, 3, &1)
      iex> event = %{original: day.(2), start: day.(4), end: day.(5)}
      iex> Series.rest({day.(1), day.(2)}, event, %{title: "New"})
      {~D[2026-03-02], ~D[2026-03-03]}
      iex> Series.rest({day.(1), day.(2)}, event, %{start: day.(5), end: day.(6)})
      {~D[2026-03-03], ~D[2026-03-04]}
  """
  @spec rest({time(), time()}, map(), map()) :: {time(), time()}
  def rest({%DateTime{} = first, ends}, %{original: %DateTime{}} = event, changes) do
    from = TimeZones.shift(event.original, first.time_zone)

    go_on(
      {from, DateTime.add(from, DateTime.diff(ends, first), :second, TimeZones)},
      event,
      changes
    )
  end

  def rest({first, ends}, event, changes),
    do: go_on({event.original, Date.add(event.original, Date.diff(ends, first))}, event, changes)

  defp go_on(span, event, %{start: start, end: ends}),
    do: move(span, {event.start, event.end}, {start, ends})

  defp go_on(span, _event, _changes), do: span

  defp naive(time, zone), do: time |> TimeZones.shift(zone) |> DateTime.to_naive()

  defp day(%Date{} = day), do: day
  defp day(time), do: DateTime.to_date(time)

  @weekdays ~w(MO TU WE TH FR SA SU)

  @doc """
  Returns the rule of a series in a zone whose first event moves from one time to another, or
  `:error` if its days cannot be moved. They are those of the series' own clock.

      iex> alias Skillbook.Calendar.Series
      iex> Series.rule("FREQ=WEEKLY;BYDAY=MO,SU", nil, ~D[2026-03-02], ~D[2026-03-03])
      {:ok, "FREQ=WEEKLY;BYDAY=TU,MO"}
      iex> Series.rule("FREQ=MONTHLY;BYDAY=1MO", nil, ~D[2026-03-02], ~D[2026-03-03])
      :error
      iex> {from, to} = {~U[2026-03-01 23:30:00Z], ~U[2026-03-02 00:30:00Z]}
      iex> Series.rule("FREQ=MONTHLY;BYDAY=1MO", "Asia/Tokyo", from, to)
      {:ok, "FREQ=MONTHLY;BYDAY=1MO"}
  """
  @spec rule(String.t(), String.t() | nil, time(), time()) :: {:ok, String.t()} | :error
  def rule(rule, zone, from, to) do
    case Date.diff(day(in_zone(to, zone)), day(in_zone(from, zone))) do
      0 -> {:ok, rule}
      days -> rotate(rule, days)
    end
  end

  @doc """
  Returns a date of a series, such as one that is excluded, after the series moves from one time
  to another. `nil` if one of them is a day and another none.

      iex> Skillbook.Calendar.Series.by(~D[2026-03-09], ~D[2026-03-02], ~D[2026-03-03])
      ~D[2026-03-10]
  """
  @spec by(time(), time(), time()) :: time() | nil
  def by(%Date{} = day, %Date{} = from, %Date{} = to), do: Date.add(day, Date.diff(to, from))

  def by(%DateTime{} = time, %DateTime{time_zone: zone} = from, %DateTime{} = to) do
    shift = NaiveDateTime.diff(naive(to, zone), naive(from, zone), :second)
    {moved, _} = time |> naive(zone) |> NaiveDateTime.add(shift, :second) |> TimeZones.local(zone)
    moved
  end

  def by(_date, _from, _to), do: nil

  @doc """
  Returns the rule of a series in a zone that moves from one time to another. Its last event stays
  the last one.

      iex> alias Skillbook.Calendar.Series
      iex> Series.until("FREQ=DAILY;UNTIL=20260303", nil, ~D[2026-03-01], ~D[2026-03-02])
      "FREQ=DAILY;UNTIL=20260304"
      iex> {from, to} = {~U[2026-03-01 09:00:00Z], ~U[2026-03-02 09:00:00Z]}
      iex> Series.until("FREQ=DAILY;UNTIL=20260328T090000Z", "Europe/Rome", from, to)
      "FREQ=DAILY;UNTIL=20260329T080000Z"
  """
  @spec until(String.t(), String.t() | nil, time(), time()) :: String.t()
  def until(rule, zone, from, to) do
    ICalendar.until(rule, fn
      %Date{} = day ->
        by(day, from, to) || day

      until ->
        time = DateTime.from_naive!(until, "Etc/UTC")
        (by(time, in_zone(from, zone), to) || time) |> naive("Etc/UTC")
    end)
  end

  defp in_zone(%DateTime{} = time, zone) when zone != nil, do: TimeZones.shift(time, zone)
  defp in_zone(time, _zone), do: time

  defp rotate(rule, days) do
    parts = String.split(rule, ";")

    case Enum.filter(parts, &String.starts_with?(&1, "BY")) do
      [] ->
        {:ok, rule}

      ["BYDAY=" <> list = part] ->
        names = String.split(list, ",")

        if "FREQ=WEEKLY" in parts and Enum.all?(names, &(&1 in @weekdays)) do
          moved = Enum.map_join(names, ",", &weekday(&1, days))
          {:ok, Enum.map_join(parts, ";", &if(&1 == part, do: "BYDAY=" <> moved, else: &1))}
        else
          :error
        end

      _ ->
        :error
    end
  end

  defp weekday(name, days) do
    index = Enum.find_index(@weekdays, &(&1 == name))
    Enum.at(@weekdays, Integer.mod(index + days, 7))
  end
end
