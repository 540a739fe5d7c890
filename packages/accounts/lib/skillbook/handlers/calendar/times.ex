defmodule Skillbook.Handlers.Calendar.Times do
  @moduledoc false
  # Reads the flags of the calendar commands that say when: in which zone, from when to when, and
  # how often.
  #
  # Times are those of `--zone`, else of the zone of the user (`:timezone` of the assigns), else
  # of the calendar, else of UTC.

  alias Skillbook.Calendar.{Recurrence, TimeZones, Words}
  alias Skillbook.Support.Number
  alias Skillbook.{Calendar, FlagError, Flags}

  @type notes :: [String.t()]

  @doc "The current time, as the clocks of the zone of a call show it."
  @spec now(Flags.t(), Skillbook.Context.t(), term()) ::
          {:ok, DateTime.t()} | {:error, Exception.t() | String.t()}
  def now(flags, context, account) do
    with {:ok, zone} <- zone(flags, context, account) do
      {:ok, context.now |> DateTime.truncate(:second) |> TimeZones.shift(zone)}
    end
  end

  @doc "The same, or `nil` if only the calendar knows the zone."
  @spec known_now(Flags.t(), Skillbook.Context.t()) ::
          {:ok, DateTime.t() | nil} | {:error, Exception.t() | String.t()}
  def known_now(flags, context) do
    if is_map_key(flags, "zone") or is_binary(context.assigns[:timezone]),
      do: now(flags, context, nil),
      else: {:ok, nil}
  end

  defp zone(%{"zone" => name}, _context, _account) do
    with {:error, error} <- TimeZones.fetch(to_string(name)),
         do: FlagError.invalid("zone", name, "the name of a time zone", zone_example(error.hint))
  end

  defp zone(_flags, %{assigns: %{timezone: name}}, _account) when is_binary(name) do
    with {:error, error} <- TimeZones.fetch(name) do
      {:error, "the user's time zone (:timezone of the assigns): #{Exception.message(error)}"}
    end
  end

  defp zone(flags, _context, account) do
    with {:ok, zone} <- Calendar.zone(account, flags["calendar"]), do: {:ok, zone || "UTC"}
  end

  defp zone_example("write a name" <> _), do: "Europe/Berlin"
  defp zone_example("write " <> name), do: name

  # When to look

  @doc """
  Reads `--date`, `--from` and `--to`: the span, and what it is in words. Without them it is the
  current day.
  """
  @spec span(Flags.t(), DateTime.t(), pos_integer()) ::
          {:ok, DateTime.t(), DateTime.t(), notes()} | {:error, FlagError.t()}
  def span(%{"date" => _} = flags, now, _days) do
    case Map.take(flags, ["from", "to"]) |> Map.keys() do
      [] -> with {:ok, day} <- day(flags, "date", now), do: of_day(day, now)
      others -> FlagError.conflict(["date" | others])
    end
  end

  def span(flags, now, days) do
    with {:ok, from, notes} <- edge(flags, "from", now, now),
         {:ok, to, more} <- edge(flags, "to", now, from) do
      from = from || if(flags["to"], do: {:time, now}, else: {:day, DateTime.to_date(now)})
      to = to || {:day, last_day(from, flags["from"], days)}
      between(flags, first(from, now), last(to, now), notes ++ more)
    end
  end

  defp last_day({:day, day}, nil, _days), do: day
  defp last_day({:day, day}, _from, days), do: Date.add(day, days - 1)
  defp last_day({:time, time}, _from, days), do: Date.add(DateTime.to_date(time), days - 1)

  defp first({:day, day}, now), do: Words.midnight(day, now.time_zone)
  defp first({:time, time}, _now), do: time

  # The last day is a part of the span.
  defp last({:day, day}, now), do: day |> Words.day(now.time_zone) |> elem(1)
  defp last({:time, time}, _now), do: time

  defp between(flags, from, to, notes) do
    if DateTime.compare(from, to) == :lt,
      do: {:ok, from, to, notes},
      else: later(flags, "to", from)
  end

  defp later(flags, name, than),
    do: FlagError.invalid(name, flags[name], "later than the start, #{shown(than)}")

  defp shown(%Date{} = day), do: Date.to_iso8601(day)
  defp shown(time), do: DateTime.to_iso8601(time)

  defp of_day(day, now) do
    case Words.day(day, now.time_zone) do
      {same, same} -> {:ok, same, same, ["#{day} does not exist in #{now.time_zone}"]}
      {from, to} -> {:ok, from, to, []}
    end
  end

  defp day(flags, name, now) do
    read = fn text ->
      with {:ok, {:day, day}} <- words(text, now, nil), do: {:ok, day}, else: (_ -> :error)
    end

    expected = "a day: YYYY-MM-DD, today, tomorrow, monday, next monday or in 3 days"
    with {:ok, flags} <- Flags.cast(flags, name, expected, "today", read), do: {:ok, flags[name]}
  end

  # A time without a day is on the day of the other edge.
  defp edge(flags, name, now, other) do
    day =
      case other do
        {:day, day} -> day
        {:time, time} -> DateTime.to_date(time)
        _ -> nil
      end

    case point(flags, name, now, day) do
      {:ok, nil} -> {:ok, nil, []}
      {:ok, {:day, day}} -> {:ok, {:day, day}, []}
      {:ok, {:time, time, note}} -> {:ok, {:time, time}, List.wrap(note)}
      error -> error
    end
  end

  defp point(flags, name, now, day) do
    read = &words(&1, now, day)

    with {:ok, flags} <- Flags.cast(flags, name, Words.expected(), Words.example(), read),
         do: {:ok, flags[name]}
  end

  defp words(text, now, day) when is_binary(text), do: Words.read(text, now, day)
  defp words(_, _now, _day), do: :error

  # When an event is

  @doc """
  Reads `--start`, `--end`, `--duration` and `--all-day` of an event. Without an end it takes an
  hour, or a day. `old` are the times of an event that is changed.
  """
  @spec event(Flags.t(), DateTime.t(), {term(), term()} | nil) ::
          {:ok, {DateTime.t(), DateTime.t()} | {Date.t(), Date.t()}, notes()}
          | {:error, FlagError.t()}
  def event(flags, now, old \\ nil) do
    with :ok <- one_of_both(flags, "end", "duration"),
         {:ok, start, notes} <- start(flags, now, old),
         {:ok, ends, more} <- ends(flags, now, start, old),
         do: in_order(flags, start, ends, notes ++ more)
  end

  defp one_of_both(flags, one, other) do
    if Map.has_key?(flags, one) and Map.has_key?(flags, other),
      do: FlagError.conflict([one, other]),
      else: :ok
  end

  defp start(flags, now, old) do
    day = if old, do: old |> elem(0) |> date()

    case point(flags, "start", now, day) do
      {:ok, nil} -> start_of(old, flags)
      {:ok, {:day, day}} -> {:ok, day, []}
      {:ok, {:time, time, _}} when :erlang.map_get("all-day", flags) == true -> whole(flags, time)
      {:ok, {:time, time, note}} -> {:ok, time, List.wrap(note)}
      error -> error
    end
  end

  # The day of an event that becomes one of whole days.
  defp start_of({start, _}, %{"all-day" => true}), do: {:ok, date(start), []}
  defp start_of({start, _}, _flags), do: {:ok, start, []}

  defp whole(flags, _time) do
    expected = "a day without a time, with --all-day"
    FlagError.invalid("start", flags["start"], expected, "2026-03-02")
  end

  defp date(%Date{} = day), do: day
  defp date(time), do: DateTime.to_date(time)

  defp ends(%{"duration" => _} = flags, _now, start, _old) do
    read = fn text -> if is_binary(text), do: Words.duration(text), else: :error end

    with {:ok, flags} <- Flags.cast(flags, "duration", Words.expected_duration(), "45m", read) do
      case {flags["duration"], start} do
        {{:days, days}, %Date{}} ->
          {:ok, Date.add(start, days), []}

        {{:days, days}, %DateTime{time_zone: zone}} ->
          local = start |> DateTime.to_naive() |> NaiveDateTime.add(days * 86_400, :second)
          {:ok, local |> TimeZones.local(zone) |> elem(0), []}

        {{:minutes, minutes}, %DateTime{}} ->
          {:ok, DateTime.add(start, minutes * 60, :second, TimeZones), []}

        {{:minutes, _}, %Date{}} ->
          expected = "a number of days, such as 2 days: an event of whole days has no times"
          FlagError.invalid("duration", flags_value(flags), expected, ~s("2 days"))
      end
    end
  end

  defp ends(%{"end" => value} = flags, now, start, _old) do
    case {point(flags, "end", now, date(start)), start} do
      # The last day is a part of the event.
      {{:ok, {:day, day}}, %Date{}} ->
        {:ok, Date.add(day, 1), []}

      {{:ok, {:time, time, note}}, %DateTime{}} ->
        {:ok, time, List.wrap(note)}

      {{:ok, {:day, _}}, %DateTime{}} ->
        FlagError.invalid("end", value, "a time, like the start", ~s("15:30"))

      {{:ok, {:time, _, _}}, %Date{}} ->
        FlagError.invalid("end", value, "a day, like the start", "2026-03-02")

      {error, _} ->
        error
    end
  end

  # As long as before.
  defp ends(_flags, _now, %Date{} = start, {%Date{} = old, ends}),
    do: {:ok, Date.add(start, Date.diff(ends, old)), []}

  defp ends(_flags, _now, %DateTime{} = start, {%DateTime{} = old, ends}),
    do: {:ok, DateTime.add(start, DateTime.diff(ends, old), :second, TimeZones), []}

  defp ends(_flags, _now, %Date{} = start, _old), do: {:ok, Date.add(start, 1), []}

  defp ends(_flags, _now, %DateTime{} = start, _old),
    do: {:ok, DateTime.add(start, 3_600, :second, TimeZones), []}

  defp flags_value(flags), do: flags["duration"] |> elem(1) |> Integer.to_string()

  defp in_order(flags, start, ends, notes) do
    order =
      case start do
        %Date{} -> Date.compare(start, ends)
        %DateTime{} -> DateTime.compare(start, ends)
      end

    if order == :lt,
      do: {:ok, {start, ends}, notes},
      else: later(flags, "end", start)
  end

  # How often

  @doc "Reads `--repeat`: a rule, or `nil` for `none`."
  @spec repeat(Flags.t(), Recurrence.start()) :: {:ok, String.t() | nil} | {:error, FlagError.t()}
  def repeat(flags, start) do
    read = fn
      text when is_binary(text) ->
        if String.downcase(String.trim(text)) in ["none", "never"],
          do: {:ok, nil},
          else: Recurrence.read(text, start)

      _ ->
        :error
    end

    with {:ok, flags} <- Flags.cast(flags, "repeat", Recurrence.expected(), "weekly", read),
         do: {:ok, flags["repeat"]}
  end

  # Reminders

  # Google takes no more.
  @max_reminders 5
  @max_before 4 * 7 * 1_440

  @doc """
  Reads `--remind` as minutes before the start: `[]` for `none`, and `nil` if it is missing.
  """
  @spec reminders(Flags.t()) :: {:ok, [non_neg_integer()] | nil} | {:error, FlagError.t()}
  def reminders(%{"remind" => ["none"]}), do: {:ok, []}

  def reminders(%{"remind" => texts}) do
    with {:ok, minutes} <- minutes_before(texts, []) do
      minutes = Enum.uniq(minutes)

      if length(minutes) <= @max_reminders do
        {:ok, minutes}
      else
        count = "#{length(minutes)} times"
        FlagError.invalid("remind", count, "at most #{@max_reminders} times, or none", "15m 1d")
      end
    end
  end

  def reminders(_flags), do: {:ok, nil}

  defp minutes_before([], done), do: {:ok, Enum.reverse(done)}

  defp minutes_before([text | rest], done) do
    case before(text) do
      minutes when minutes in 0..@max_before -> minutes_before(rest, [minutes | done])
      _ -> FlagError.invalid("remind", text, "durations of at most 4 weeks, or none", "15m 1d")
    end
  end

  defp before(text) when text in ["0", "0m"], do: 0

  defp before(text) do
    case Words.duration(text) do
      {:ok, {:minutes, minutes}} -> minutes
      {:ok, {:days, days}} -> days * 1_440
      :error -> nil
    end
  end

  # Hours of a day

  @doc "Reads `--hours` as minutes of the day."
  @spec hours(Flags.t()) :: {:ok, {0..1_440, 0..1_440}} | {:error, FlagError.t()}
  def hours(flags) do
    read = fn text ->
      with true <- is_binary(text),
           [_, first_hour, first, last_hour, last] <-
             Regex.run(~r/\A\s*(\d{1,2}):([0-5]\d)\s*(?:-|to)\s*(\d{1,2}):([0-5]\d)\s*\z/, text),
           {first, last} = {minute(first_hour, first), minute(last_hour, last)},
           true <- first < last and last <= 1_440 do
        {:ok, {first, last}}
      else
        _ -> :error
      end
    end

    expected = "hours of a day, the first before the last"

    with {:ok, flags} <- Flags.cast(flags, "hours", expected, "9:00-17:00", read),
         do: {:ok, flags["hours"] || {540, 1_020}}
  end

  defp minute(hour, minute), do: Number.integer!(hour) * 60 + Number.integer!(minute)

  @doc "Reads `--duration` in minutes, for a search of free times."
  @spec minutes(Flags.t()) :: {:ok, pos_integer()} | {:error, FlagError.t()}
  def minutes(flags) do
    read = fn text ->
      case is_binary(text) and Words.duration(text) do
        {:ok, {:minutes, minutes}} when minutes <= 1_440 -> {:ok, minutes}
        _ -> :error
      end
    end

    expected = "a duration of at most a day, such as 45m, 1h30m or 2 hours"

    with {:ok, flags} <- Flags.cast(flags, "duration", expected, "45m", read),
         do: {:ok, flags["duration"] || 30}
  end
end
