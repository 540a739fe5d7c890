defmodule Skillbook.Calendar.Outlook.Pattern do
  @moduledoc false
  # Rules of iCalendar (RFC 5545, section 3.3.10) as Graph's `patternedRecurrence`, and back.
  # Graph knows fewer of them. It moves the 31st to the last day of shorter months, where
  # iCalendar leaves these months out, so days after the 28th are refused.

  alias Skillbook.Calendar.Outlook.Zones
  alias Skillbook.Calendar.{Recurrence, TimeZones}
  alias Skillbook.Support.Number

  @type start :: DateTime.t() | Date.t()

  @days [{"MO", "monday"}, {"TU", "tuesday"}, {"WE", "wednesday"}, {"TH", "thursday"}] ++
          [{"FR", "friday"}, {"SA", "saturday"}, {"SU", "sunday"}]
  @names Map.new(@days)
  @codes Map.new(@days, fn {code, name} -> {name, code} end)
  @indexes %{"1" => "first", "2" => "second", "3" => "third", "4" => "fourth", "-1" => "last"}
  @numbers Map.new(@indexes, fn {number, name} -> {name, number} end)

  @doc "The recurrence of a series with a rule, or `:error` if Graph cannot keep it."
  @spec write(String.t(), start()) :: {:ok, map()} | :error
  def write(rule, start) do
    parts =
      for part <- String.split(rule, ";"),
          [name, value] <- [String.split(part, "=")],
          into: %{} do
        {name, value}
      end

    with {:ok, pattern} <- pattern(parts, day(start)),
         {:ok, range} <- range(parts, start) do
      interval = Number.integer!(parts["INTERVAL"] || "1")
      {:ok, %{"pattern" => Map.put(pattern, "interval", interval), "range" => range}}
    end
  end

  defp day(%Date{} = day), do: day
  defp day(time), do: DateTime.to_date(time)

  defp by(parts),
    do: for({"BY" <> _ = name, value} <- parts, into: %{}, do: {name, value})

  defp pattern(%{"FREQ" => "DAILY"} = parts, day) do
    case by(parts) do
      none when none == %{} -> {:ok, %{"type" => "daily"}}
      %{"BYDAY" => _} when not is_map_key(parts, "INTERVAL") -> weekly(parts, day)
      _ -> :error
    end
  end

  defp pattern(%{"FREQ" => "WEEKLY"} = parts, day), do: weekly(parts, day)

  defp pattern(%{"FREQ" => "MONTHLY"} = parts, day), do: monthly(by(parts), day, "Monthly", %{})

  defp pattern(%{"FREQ" => "YEARLY"} = parts, day) do
    {month, by} = Map.pop(by(parts), "BYMONTH", "#{day.month}")

    case Number.integer(month) do
      # The other parts count from the year's beginning without a month.
      {month, ""} when is_map_key(parts, "BYMONTH") or by == %{} ->
        monthly(by, day, "Yearly", %{"month" => month})

      _ ->
        :error
    end
  end

  defp pattern(_parts, _day), do: :error

  defp weekly(parts, day) do
    default = @days |> Enum.at(Date.day_of_week(day) - 1) |> elem(0)
    days = parts |> Map.get("BYDAY", default) |> String.split(",")

    with true <- by(parts) |> Map.delete("BYDAY") |> map_size() == 0,
         {:ok, names} <- names(days),
         {:ok, first} <- Map.fetch(@names, Map.get(parts, "WKST", "MO")) do
      {:ok, %{"type" => "weekly", "daysOfWeek" => names, "firstDayOfWeek" => first}}
    else
      _ -> :error
    end
  end

  defp names(codes) do
    if Enum.all?(codes, &is_map_key(@names, &1)),
      do: {:ok, Enum.map(codes, &@names[&1])},
      else: :error
  end

  defp monthly(by, day, unit, more) when by == %{},
    do: monthly(%{"BYMONTHDAY" => "#{day.day}"}, day, unit, more)

  # The last day, of whatever weekday.
  defp monthly(%{"BYMONTHDAY" => "-1"} = by, _day, unit, more) when map_size(by) == 1,
    do: {:ok, relative(unit, "last", Map.values(@names), more)}

  defp monthly(%{"BYMONTHDAY" => text} = by, _day, unit, more) when map_size(by) == 1 do
    case Number.integer(text) do
      {number, ""} when number in 1..28 ->
        {:ok, Map.merge(%{"type" => "absolute" <> unit, "dayOfMonth" => number}, more)}

      _ ->
        :error
    end
  end

  defp monthly(%{"BYDAY" => text, "BYSETPOS" => number} = by, _day, unit, more)
       when map_size(by) == 2 do
    with {:ok, names} <- text |> String.split(",") |> names(),
         {:ok, index} <- Map.fetch(@indexes, number),
         do: {:ok, relative(unit, index, names, more)}
  end

  defp monthly(%{"BYDAY" => text} = by, _day, unit, more) when map_size(by) == 1 do
    with [_, number, code] <- Regex.run(~r/\A\+?(-?[0-9]+)([A-Z]{2})\z/, text),
         {:ok, names} <- names([code]),
         {:ok, index} <- Map.fetch(@indexes, number) do
      {:ok, relative(unit, index, names, more)}
    else
      _ -> :error
    end
  end

  defp monthly(_by, _day, _unit, _more), do: :error

  defp relative(unit, index, names, more) do
    Map.merge(%{"type" => "relative" <> unit, "index" => index, "daysOfWeek" => names}, more)
  end

  defp range(parts, start) do
    range = %{"startDate" => Date.to_iso8601(day(start))}
    range = Map.merge(range, zone(start))

    case parts do
      %{"COUNT" => count} ->
        numbered = %{"type" => "numbered", "numberOfOccurrences" => Number.integer!(count)}
        {:ok, Map.merge(range, numbered)}

      %{"UNTIL" => until} ->
        with {:ok, last} <- last(until, start),
             do:
               {:ok, Map.merge(range, %{"type" => "endDate", "endDate" => Date.to_iso8601(last)})}

      _ ->
        {:ok, Map.put(range, "type", "noEnd")}
    end
  end

  defp zone(%DateTime{time_zone: zone}), do: %{"recurrenceTimeZone" => Zones.name(zone)}
  defp zone(%Date{}), do: %{}

  # The last day in the zone of the series.
  defp last(<<y::binary-4, m::binary-2, d::binary-2>>, _start),
    do: Date.from_iso8601("#{y}-#{m}-#{d}")

  defp last(
         <<y::binary-4, m::binary-2, d::binary-2, "T", hour::binary-2, min::binary-2, s::binary-2,
           "Z">>,
         start
       ) do
    with {:ok, time, _} <- DateTime.from_iso8601("#{y}-#{m}-#{d}T#{hour}:#{min}:#{s}Z") do
      case start do
        %DateTime{time_zone: zone} = start ->
          local = TimeZones.shift(time, zone)
          # An end before the time of day of the series excludes that day.
          early? = Time.compare(DateTime.to_time(local), DateTime.to_time(start)) == :lt
          {:ok, Date.add(DateTime.to_date(local), if(early?, do: -1, else: 0))}

        %Date{} ->
          {:ok, DateTime.to_date(time)}
      end
    else
      _ -> :error
    end
  end

  defp last(_other, _start), do: :error

  @doc "The rule of a series, or `nil` if there is none that can be read."
  @spec read(term(), start()) :: String.t() | nil
  def read(%{"pattern" => %{} = pattern, "range" => %{} = range}, start) do
    with {:ok, rule} <- rule(pattern), {:ok, ending} <- ending(range, start) do
      interval =
        if pattern["interval"] in [nil, 0, 1], do: "", else: ";INTERVAL=#{pattern["interval"]}"

      rule <> interval <> ending
    else
      _ -> nil
    end
  end

  def read(_none, _start), do: nil

  defp rule(%{"type" => "daily"}), do: {:ok, "FREQ=DAILY"}

  defp rule(%{"type" => "weekly"} = pattern) do
    with {:ok, days} <- codes(pattern) do
      first = @codes[pattern["firstDayOfWeek"]] || "SU"
      {:ok, "FREQ=WEEKLY;BYDAY=#{days}" <> if(first == "MO", do: "", else: ";WKST=#{first}")}
    end
  end

  defp rule(%{"type" => "absoluteMonthly", "dayOfMonth" => day}) when day in 1..31,
    do: {:ok, "FREQ=MONTHLY;BYMONTHDAY=#{day}"}

  defp rule(%{"type" => "absoluteYearly", "dayOfMonth" => day, "month" => month})
       when day in 1..31 and month in 1..12,
       do: {:ok, "FREQ=YEARLY;BYMONTH=#{month};BYMONTHDAY=#{day}"}

  defp rule(%{"type" => "relativeMonthly"} = pattern) do
    with {:ok, days} <- relative_days(pattern), do: {:ok, "FREQ=MONTHLY;" <> days}
  end

  defp rule(%{"type" => "relativeYearly", "month" => month} = pattern) when month in 1..12 do
    with {:ok, days} <- relative_days(pattern), do: {:ok, "FREQ=YEARLY;BYMONTH=#{month};" <> days}
  end

  defp rule(_other), do: :error

  defp relative_days(pattern) do
    with {:ok, number} <- Map.fetch(@numbers, pattern["index"] || "first"),
         {:ok, days} <- codes(pattern) do
      case String.split(days, ",") do
        [day] -> {:ok, "BYDAY=#{number}#{day}"}
        days when length(days) == 7 and number == "-1" -> {:ok, "BYMONTHDAY=-1"}
        _ -> {:ok, "BYDAY=#{days};BYSETPOS=#{number}"}
      end
    end
  end

  defp codes(%{"daysOfWeek" => [_ | _] = names}) do
    if Enum.all?(names, &is_map_key(@codes, &1)),
      do: {:ok, Enum.map_join(names, ",", &@codes[&1])},
      else: :error
  end

  defp codes(_none), do: :error

  defp ending(%{"type" => "noEnd"}, _start), do: {:ok, ""}

  defp ending(%{"type" => "numbered", "numberOfOccurrences" => count}, _start)
       when count in 1..9_999,
       do: {:ok, ";COUNT=#{count}"}

  defp ending(%{"type" => "endDate", "endDate" => text}, start) when is_binary(text) do
    with {:ok, day} <- Date.from_iso8601(text),
         do: {:ok, ";UNTIL=" <> Recurrence.last(day, start)}
  end

  defp ending(_other, _start), do: :error
end
