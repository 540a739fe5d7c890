defmodule Skillbook.Calendar.Free do
  @moduledoc false
  # Finds the times at which nobody of several people is busy. Knows no service and no clock.

  alias Skillbook.Calendar.TimeZones

  @type span :: {DateTime.t(), DateTime.t()}

  @typedoc """
    * `:from`, `:to` - where to look
    * `:zone` - the zone of `:hours`
    * `:hours` - the first and last minute of a day's window, such as `{540, 1020}`
    * `:weekends` - whether Saturdays and Sundays count
    * `:minutes` - the shortest time that is of use
  """
  @type query :: %{
          from: DateTime.t(),
          to: DateTime.t(),
          zone: String.t(),
          hours: {0..1_440, 0..1_440},
          weekends: boolean(),
          minutes: pos_integer()
        }

  @doc "Returns the free times in order, at most `limit`. `busy` has the times of all people."
  @spec common([span()], query(), pos_integer()) :: [span()]
  def common(busy, query, limit) do
    busy = merge(busy)

    first = query.from |> TimeZones.shift(query.zone) |> DateTime.to_date()
    last = query.to |> TimeZones.shift(query.zone) |> DateTime.to_date()

    first
    |> Stream.iterate(&Date.add(&1, 1))
    |> Stream.take_while(&(Date.compare(&1, last) != :gt))
    |> Stream.filter(&(query.weekends or Date.day_of_week(&1) <= 5))
    |> Stream.map(&window(&1, query))
    |> Stream.transform(busy, &open/2)
    |> Stream.filter(fn {from, to} -> DateTime.diff(to, from) >= query.minutes * 60 end)
    |> Enum.take(limit)
  end

  # Overlapping times as one, in order.
  defp merge(busy) do
    busy
    |> Enum.reject(fn {from, to} -> DateTime.compare(from, to) != :lt end)
    |> Enum.sort_by(fn {from, to} -> {DateTime.to_unix(from), DateTime.to_unix(to)} end)
    |> Enum.reduce([], fn
      {from, to}, [{first, last} | merged] ->
        if DateTime.compare(from, last) == :gt,
          do: [{from, to}, {first, last} | merged],
          else: [{first, later(to, last)} | merged]

      span, [] ->
        [span]
    end)
    |> Enum.reverse()
  end

  defp window(day, %{hours: {first, last}, zone: zone} = query) do
    [from, to] = for minute <- [first, last], do: at(day, minute, zone)
    {later(from, query.from), earlier(to, query.to)}
  end

  defp at(day, minute, zone) do
    day
    |> NaiveDateTime.new!(~T[00:00:00])
    |> NaiveDateTime.add(minute * 60, :second)
    |> TimeZones.local(zone)
    |> elem(0)
  end

  # The open parts of a window. Busy times that end before it are of no more use.
  defp open({from, to}, busy) do
    busy = Enum.drop_while(busy, fn {_, ends} -> DateTime.compare(ends, from) != :gt end)
    {gaps(from, to, busy), busy}
  end

  defp gaps(from, to, busy) do
    case {DateTime.compare(from, to), busy} do
      {:lt, []} ->
        [{from, to}]

      {:lt, [{starts, ends} | busy]} ->
        before = earlier(starts, to)
        gap = if DateTime.compare(from, before) == :lt, do: [{from, before}], else: []
        gap ++ gaps(later(from, ends), to, busy)

      _ ->
        []
    end
  end

  defp later(one, other), do: if(DateTime.compare(one, other) == :lt, do: other, else: one)
  defp earlier(one, other), do: if(DateTime.compare(one, other) == :lt, do: one, else: other)
end
