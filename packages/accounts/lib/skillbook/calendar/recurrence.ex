defmodule Skillbook.Calendar.Recurrence do
  @moduledoc false
  # Reads how often an event repeats, in words or as a rule of iCalendar (RFC 5545, section
  # 3.3.10), and describes rules in words. Nothing here expands a rule.
  #
  # New rules repeat at most once a day, so that no event fills a calendar.

  alias Skillbook.Calendar.{TimeZones, Words}
  alias Skillbook.Flags.Cast
  alias Skillbook.Support.Number

  @type start :: DateTime.t() | Date.t()

  @days [MO: "monday", TU: "tuesday", WE: "wednesday", TH: "thursday"] ++
          [FR: "friday", SA: "saturday", SU: "sunday"]
  @units %{"day" => "DAILY", "week" => "WEEKLY", "month" => "MONTHLY", "year" => "YEARLY"}
  @adverbs %{"daily" => "day", "weekly" => "week", "monthly" => "month", "yearly" => "year"}
  @max_bytes 200
  @max_count 999

  @expected "a repetition: daily, weekdays, weekly, monthly, yearly, every 2 weeks, every " <>
              "monday and thursday, with `until YYYY-MM-DD` or `10 times` after it; or a rule " <>
              "such as FREQ=MONTHLY;BYDAY=-1FR"

  @doc "The forms of a repetition, for errors and pages."
  @spec expected() :: String.t()
  def expected, do: @expected

  @doc """
  Reads a repetition of an event that starts at `start`. Returns a rule.

      iex> start = ~D[2026-03-02]
      iex> Skillbook.Calendar.Recurrence.read("every 2 weeks, 10 times", start)
      {:ok, "FREQ=WEEKLY;INTERVAL=2;COUNT=10"}
  """
  @spec read(String.t(), start()) :: {:ok, String.t()} | :error
  def read(text, _start) when byte_size(text) > @max_bytes, do: :error

  def read(text, start) do
    text = String.trim(text)

    case text |> String.upcase() |> String.trim_leading("RRULE:") do
      "FREQ=" <> _ = rule -> rule(rule, start)
      _ -> words(text, start)
    end
  end

  # Words

  defp words(text, start) do
    words = text |> String.downcase() |> String.replace(~r/[\s,]+/u, " ") |> String.trim()

    with {:ok, words, ending} <- ending(words, start),
         {:ok, rule} <- frequency(String.split(words, " "), words) do
      {:ok, rule <> ending}
    end
  end

  defp ending(words, start) do
    case Regex.run(
           ~r/\A(.+?) (?:(?:for )?(\d{1,3}) times|(?:until|to) (\d{4}-\d\d-\d\d))\z/,
           words
         ) do
      [_, words, count] -> with {:ok, count} <- count(count), do: {:ok, words, ";COUNT=#{count}"}
      [_, words, "", day] -> with {:ok, until} <- until(day, start), do: {:ok, words, until}
      nil -> {:ok, words, ""}
    end
  end

  defp count(text) do
    case Number.integer!(text) do
      count when count in 1..@max_count -> {:ok, count}
      _ -> :error
    end
  end

  # Until the end of a day in the event's zone.
  defp until(day, start) do
    with {:ok, day} <- Cast.day(day, nil), do: {:ok, ";UNTIL=" <> last(day, start)}
  end

  @doc "The value of UNTIL for a last day, of the same type as the start of the series."
  @spec last(Date.t(), start()) :: String.t()
  def last(day, %Date{}), do: Date.to_iso8601(day, :basic)

  def last(day, %DateTime{time_zone: zone}) do
    {_, next} = Words.day(day, zone)
    utc(DateTime.add(next, -1, :second, TimeZones))
  end

  @doc "A time as iCalendar writes it in UTC."
  @spec utc(DateTime.t()) :: String.t()
  def utc(time),
    do: time |> DateTime.shift_zone!("Etc/UTC") |> Calendar.strftime("%Y%m%dT%H%M%SZ")

  defp frequency(["weekdays"], _), do: {:ok, "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"}

  defp frequency(["every", day], _) when day in ~w(weekday workday),
    do: frequency(["weekdays"], "")

  defp frequency([adverb], _) when is_map_key(@adverbs, adverb),
    do: {:ok, "FREQ=" <> @units[@adverbs[adverb]]}

  defp frequency(["every", "other", unit], _), do: every("2", unit)
  defp frequency(["every", count, unit], _) when count != "", do: every_or_days(count, unit)
  defp frequency(["every", unit], _) when is_map_key(@units, unit), do: every("1", unit)
  defp frequency(["every" | days], _), do: on_days("FREQ=WEEKLY", days)
  defp frequency(["weekly", "on" | days], _), do: on_days("FREQ=WEEKLY", days)

  defp frequency(_, words) do
    case Regex.run(~r/\Aevery (\d{1,3}) weeks on (.+)\z/, words) do
      [_, count, days] ->
        with {:ok, rule} <- every(count, "week"), do: on_days(rule, String.split(days, " "))

      nil ->
        :error
    end
  end

  defp every_or_days(count, unit) do
    case every(count, unit) do
      :error -> on_days("FREQ=WEEKLY", [count, unit])
      rule -> rule
    end
  end

  defp every(count, unit) do
    with %{^unit => frequency} <- with_plurals(),
         {count, ""} when count in 1..@max_count <- Number.integer(count) do
      {:ok, "FREQ=#{frequency}" <> if(count == 1, do: "", else: ";INTERVAL=#{count}")}
    else
      _ -> :error
    end
  end

  defp with_plurals,
    do: for({unit, value} <- @units, s <- ["", "s"], into: %{}, do: {unit <> s, value})

  defp on_days(rule, words) do
    days = for word <- words, word != "and", do: weekday(word)

    cond do
      days == [] or nil in days -> :error
      hd(words) == "and" or List.last(words) == "and" -> :error
      true -> {:ok, "#{rule};BYDAY=#{days |> Enum.uniq() |> Enum.join(",")}"}
    end
  end

  defp weekday(word) do
    word = String.trim_trailing(word, "s")

    Enum.find_value(@days, fn {code, day} ->
      if word == day or word == String.slice(day, 0, 3), do: Atom.to_string(code)
    end)
  end

  # Rules

  @number "[+-]?[1-9][0-9]{0,2}"
  @parts %{
    "FREQ" => "DAILY|WEEKLY|MONTHLY|YEARLY",
    "INTERVAL" => "[1-9][0-9]{0,2}",
    "COUNT" => "[1-9][0-9]{0,2}",
    "UNTIL" => "[0-9]{8}(T[0-9]{6}Z)?",
    "BYDAY" => "([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU)",
    "BYMONTHDAY" => @number,
    "BYYEARDAY" => @number,
    "BYWEEKNO" => @number,
    "BYMONTH" => "1[0-2]|[1-9]",
    "BYSETPOS" => @number,
    "WKST" => "MO|TU|WE|TH|FR|SA|SU"
  }

  defp rule(rule, start) do
    parts =
      for part <- rule |> String.trim_trailing(";") |> String.split(";"),
          do: part |> String.split("=", parts: 2) |> List.to_tuple()

    names = Enum.map(parts, &elem(&1, 0))

    if Enum.all?(parts, &part?/1) and names == Enum.uniq(names) and
         not ("COUNT" in names and "UNTIL" in names),
       do: in_type_of_start(parts, start),
       else: :error
  end

  defp part?({name, value}) when is_map_key(@parts, name) do
    values = if String.starts_with?(name, "BY"), do: String.split(value, ","), else: [value]
    Enum.all?(values, &Regex.match?(~r/\A(?:#{@parts[name]})\z/, &1))
  end

  defp part?(_), do: false

  # UNTIL has the type of the start (RFC 5545, section 3.3.10).
  defp in_type_of_start(parts, start) do
    parts =
      Enum.map(parts, fn
        {"UNTIL", <<day::binary-8, _::binary>> = value} ->
          if match?(%Date{}, start) == (byte_size(value) == 8),
            do: {:ok, {"UNTIL", value}},
            else: with({:ok, day} <- basic(day), do: {:ok, {"UNTIL", last(day, start)}})

        part ->
          {:ok, part}
      end)

    if Enum.all?(parts, &match?({:ok, _}, &1)),
      do: {:ok, Enum.map_join(parts, ";", fn {:ok, {name, value}} -> "#{name}=#{value}" end)},
      else: :error
  end

  defp basic(<<year::binary-4, month::binary-2, day::binary-2>>),
    do: Cast.day("#{year}-#{month}-#{day}", nil)

  @doc """
  Ends a rule, if it does not end sooner: its last event is before `start`, an event of the
  series.

      iex> alias Skillbook.Calendar.Recurrence
      iex> Recurrence.before("FREQ=DAILY;COUNT=9", ~D[2026-03-04])
      "FREQ=DAILY;UNTIL=20260303"
      iex> Recurrence.before("FREQ=DAILY;UNTIL=20260103", ~D[2026-03-04])
      "FREQ=DAILY;UNTIL=20260103"
  """
  @spec before(String.t(), start()) :: String.t()
  def before(rule, start) do
    last =
      case start do
        %Date{} = day -> Date.to_iso8601(Date.add(day, -1), :basic)
        time -> utc(DateTime.add(time, -1, :second, TimeZones))
      end

    if sooner?(Regex.run(~r/(?:\A|;)UNTIL=([0-9]{8})(T[0-9]{6})?/, rule), last),
      do: rule,
      else: "#{without(rule, ["COUNT", "UNTIL"])};UNTIL=#{last}"
  end

  # A day without a time lasts until its end.
  defp sooner?(nil, _last), do: false
  defp sooner?([_, day | _], <<_::binary-8>> = last), do: day < last
  defp sooner?([_, day], last), do: day <> "T235959" < last
  defp sooner?([_, day, time], last), do: day <> time < last

  @doc "The number of events of a rule that has one."
  @spec count_of(String.t()) :: pos_integer() | nil
  def count_of(rule) do
    case Regex.run(~r/(?:\A|;)COUNT=([0-9]{1,9})(?:;|\z)/, rule) do
      [_, count] -> Number.integer!(count)
      nil -> nil
    end
  end

  @doc "Sets the number of events of a rule."
  @spec put_count(String.t(), pos_integer()) :: String.t()
  def put_count(rule, count), do: "#{without(rule, ["COUNT", "UNTIL"])};COUNT=#{count}"

  defp without(rule, names) do
    rule
    |> String.split(";")
    |> Enum.reject(fn part -> hd(String.split(part, "=")) in names end)
    |> Enum.join(";")
  end

  @doc """
  Whether a rule is one that can be shown as it is: rules come from strangers too.
  """
  @spec plain?(String.t()) :: boolean()
  def plain?(rule),
    do: byte_size(rule) <= @max_bytes and Regex.match?(~r/\A[A-Z0-9=;,+-]+\z/, rule)
end
