defmodule Skillbook.Calendar.TimeZones do
  @moduledoc """
  A `Calendar.TimeZoneDatabase` with the zones of the IANA database, which is built into the
  native library: results do not depend on the machine, and no package is needed.

      iex> zones = Skillbook.Calendar.TimeZones
      iex> {:ok, time} = DateTime.new(~D[2026-07-01], ~T[09:00:00], "Europe/Berlin", zones)
      iex> {time.zone_abbr, DateTime.to_unix(time)}
      {"CEST", 1_782_889_200}

  The whole offset from UTC is in `:utc_offset` of a time, summer time included, and
  `:std_offset` is 0.
  """

  @behaviour Calendar.TimeZoneDatabase

  alias Skillbook.{Native, ScheduleError}

  # Seconds from the year 0 to 1970.
  @epoch 62_167_219_200
  # No clock is further from UTC, and Samoa skipped a whole day.
  @reach 2 * 86_400

  @doc """
  Returns the name of a zone as the database spells it.

      iex> Skillbook.Calendar.TimeZones.fetch("europe/berlin")
      {:ok, "Europe/Berlin"}
      iex> {:error, error} = Skillbook.Calendar.TimeZones.fetch("Berlin")
      iex> Exception.message(error)
      ~s(expected the name of a time zone, got "Berlin"; write Europe/Berlin)
  """
  @spec fetch(String.t()) :: {:ok, String.t()} | {:error, ScheduleError.t()}
  def fetch(name) when is_binary(name) do
    case Native.zone_stretch(name, 0) do
      {:ok, {name, _, _, _, _}} ->
        {:ok, name}

      {:error, {expected, got, hint}} ->
        {:error, %ScheduleError{part: :timezone, expected: expected, got: got, hint: hint}}
    end
  end

  @doc """
  Returns the time that a clock of a zone shows, and what is odd about it.

  A time that the clocks skip counts from before they were changed, and so lies after the gap; of
  a time that occurs twice, the first is meant. These are the rules of iCalendar (RFC 5545,
  section 3.3.5).

      iex> local = ~N[2026-03-29 02:30:00]
      iex> {time, :skipped} = Skillbook.Calendar.TimeZones.local(local, "Europe/Berlin")
      iex> to_string(time)
      "2026-03-29 03:30:00+02:00 CEST Europe/Berlin"
  """
  @spec local(NaiveDateTime.t(), String.t()) :: {DateTime.t(), nil | :skipped | :twice}
  def local(%NaiveDateTime{} = local, zone) when is_binary(zone) do
    case DateTime.from_naive(local, zone, __MODULE__) do
      {:ok, time} ->
        {time, nil}

      {:ambiguous, first, _second} ->
        {first, :twice}

      {:gap, before, _after} ->
        seconds = NaiveDateTime.diff(local, ~N[1970-01-01 00:00:00], :second)
        {shift(DateTime.from_unix!(seconds - before.utc_offset), zone), :skipped}
    end
  end

  @doc """
  Returns a time as the clocks of a zone show it.

      iex> time = Skillbook.Calendar.TimeZones.shift(~U[2026-01-01 12:00:00Z], "Asia/Kolkata")
      iex> to_string(time)
      "2026-01-01 17:30:00+05:30 IST Asia/Kolkata"
  """
  @spec shift(DateTime.t(), String.t()) :: DateTime.t()
  def shift(%DateTime{} = time, zone) when is_binary(zone),
    do: DateTime.shift_zone!(time, zone, __MODULE__)

  @doc false
  # The stretches of constant offset of a zone from one time to another, each as its first second
  # (or `from`), its offset and its abbreviation; at most 300.
  @spec stretches(String.t(), integer(), integer()) :: [{integer(), integer(), String.t()}]
  def stretches(zone, from, to) do
    from
    |> Stream.unfold(fn at ->
      with true <- is_integer(at) and at < to,
           {:ok, {_, offset, abbreviation, _, ends}} <- stretch(zone, at) do
        {{at, offset, abbreviation}, ends}
      else
        _ -> nil
      end
    end)
    |> Enum.take(300)
  end

  @impl true
  def time_zone_period_from_utc_iso_days({days, {parts, per_day}}, zone) do
    with {:ok, stretch} <- stretch(zone, days * 86_400 + div(parts * 86_400, per_day) - @epoch),
         do: {:ok, period(stretch)}
  end

  @impl true
  def time_zone_periods_from_wall_datetime(wall, zone) do
    local = wall |> NaiveDateTime.diff(~N[1970-01-01 00:00:00], :second)

    with {:ok, first} <- stretch(zone, local - @reach) do
      case around(zone, first, local + @reach, []) do
        {:ok, stretches} -> choose(stretches, local)
        error -> error
      end
    end
  end

  # The stretches up to a time, the last one first.
  defp around(zone, stretch, until, found) do
    {_, _, _, _, ends} = stretch

    if is_integer(ends) and ends < until do
      with {:ok, next} <- stretch(zone, ends), do: around(zone, next, until, [stretch | found])
    else
      {:ok, [stretch | found]}
    end
  end

  defp choose(stretches, local) do
    stretches = Enum.reverse(stretches)

    case Enum.filter(stretches, &shows?(&1, local)) do
      [stretch] ->
        {:ok, period(stretch)}

      [first, second | _] ->
        {:ambiguous, period(first), period(second)}

      [] ->
        {before, later} = stretches |> Enum.zip(tl(stretches)) |> Enum.find(&skips?(&1, local))
        {_, offset, _, _, ends} = before
        {_, later_offset, _, _, _} = later

        {:gap, {period(before), naive(ends + offset)},
         {period(later), naive(ends + later_offset)}}
    end
  end

  # The first of two stretches ends before the local time, and the second begins after it.
  defp skips?({{_, offset, _, _, ends}, {_, later, _, _, _}}, local),
    do: ends + offset <= local and local < ends + later

  defp shows?({_, offset, _, starts, ends}, local) do
    (starts == nil or starts + offset <= local) and (ends == nil or local < ends + offset)
  end

  defp naive(seconds), do: NaiveDateTime.add(~N[1970-01-01 00:00:00], seconds, :second)

  defp period({_, offset, abbreviation, _, _}),
    do: %{utc_offset: offset, std_offset: 0, zone_abbr: abbreviation}

  defp stretch(zone, at) do
    case Native.zone_stretch(zone, at) do
      {:ok, {_, _, _, _, _} = stretch} -> {:ok, stretch}
      _ -> {:error, :time_zone_not_found}
    end
  end
end
