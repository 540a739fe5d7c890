defmodule Skillbook.Calendar.ICalendar do
  @moduledoc false
  # Reads and writes iCalendar (RFC 5545): components with their properties, as texts, so that a
  # change of an event keeps every property that nobody here knows.
  #
  # Events come from strangers. Size, nesting and counts have limits, and a file has a budget of
  # steps, in which its zones and rules are expanded. Beyond it, functions throw `:budget`, which
  # `budgeted/1` catches. Steps are counted, so a file that is read once is read on any machine.

  alias Skillbook.Calendar.TimeZones
  alias Skillbook.Connections.Library
  alias Skillbook.Support.Number

  @typedoc "A property: its name, its parameters and its value as written."
  @type property :: {String.t(), [{String.t(), String.t()}], String.t()}
  @type component :: %{
          required(:name) => String.t(),
          required(:properties) => [property()],
          required(:components) => [component()],
          # Of a calendar that was read: its zones by their ids, and the steps that it may take.
          optional(:zones) => %{String.t() => zone() | :budget},
          optional(:steps) => steps()
        }

  @typedoc "A zone of the database, offsets of the file, or none: a floating time."
  @type zone :: String.t() | {:rules, offsets()} | nil

  @typedoc """
  The changes of a clock in order, each as the second in which it happens, the first local second
  after it and the new offset; and the offset before them.
  """
  @type offsets :: {tuple(), integer()}

  @typedoc "A counter of the steps that are left."
  @opaque steps :: :counters.counters_ref()

  @typedoc "A day, or a local time with its zone."
  @type time :: Date.t() | {NaiveDateTime.t(), zone()}

  @typedoc "Gives a time of a property another one, itself, or `nil` to leave it out."
  @type change :: (time() -> time() | DateTime.t() | nil)

  @max_bytes 1_048_576
  @max_lines 50_000
  @max_depth 4
  # Repetitions of one event that are looked at.
  @max_dates 20_000
  # Zones of a file that are no zones of the database, and the parts and changes of one.
  @max_zones 16
  @max_parts 64
  @max_changes 1_000
  # The steps that the zones and rules of a file may take: each date of a rule is one, and each
  # period without a date, such as a day or a month, one or several.
  @steps 300_000
  # The end of the year 2199, in seconds.
  @far 7_258_118_400
  @day 86_400
  # The rules of a zone are made from its changes of 80 years. At least 20 of them make a rule.
  @ahead 80 * 366 * @day
  @years 20
  @epoch ~N[1970-01-01 00:00:00]

  # Reading

  @doc "Reads a calendar, whose zones and rules may take some steps, of its own or of a call."
  @spec parse(String.t(), steps()) :: {:ok, component()} | :error
  def parse(text, steps \\ steps(@steps))
  def parse(text, _steps) when byte_size(text) > @max_bytes, do: :error

  def parse(text, steps) do
    with true <- String.valid?(text),
         lines when length(lines) <= @max_lines <- lines(text),
         {:ok, calendar} <- components(lines, []) do
      {:ok, Map.merge(calendar, %{zones: zones(calendar, steps), steps: steps})}
    else
      _ -> :error
    end
  end

  @doc "Steps that a file may take, at most 300,000 of those that are left of a call."
  @spec steps(integer()) :: steps()
  def steps(left) do
    steps = :counters.new(1, [])
    :counters.put(steps, 1, min(left, @steps))
    steps
  end

  @doc "The steps that are left. They are negative if the last rule took too many."
  @spec left(steps()) :: integer()
  def left(steps), do: :counters.get(steps, 1)

  @doc "The result of a function, or `:budget` if a file takes more steps or space than it may."
  @spec budgeted((() -> result)) :: result | :budget when result: term()
  def budgeted(function) do
    function.()
  catch
    :throw, :budget -> :budget
  end

  # A line that begins with a blank continues the one before.
  defp lines(text) do
    text
    |> String.replace(~r/\r?\n[ \t]/, "")
    |> String.split(~r/\r?\n/, trim: true)
  end

  defp components([], _open), do: :error

  defp components([line | lines], open) do
    case {property(line), open} do
      {{"BEGIN", [], name}, _} when length(open) < @max_depth ->
        components(lines, [new(String.upcase(name)) | open])

      {{"END", [], name}, [last | rest]} ->
        close(String.upcase(name), finished(last), rest, lines)

      {{name, parameters, value}, [last | rest]} when name not in ["BEGIN", "END"] ->
        last = %{last | properties: [{name, parameters, value} | last.properties]}
        components(lines, [last | rest])

      _ ->
        :error
    end
  end

  defp close(name, %{name: name} = done, [], []), do: {:ok, done}

  defp close(name, %{name: name} = done, [parent | rest], lines),
    do: components(lines, [%{parent | components: [done | parent.components]} | rest])

  defp close(_, _, _, _), do: :error

  defp new(name), do: %{name: name, properties: [], components: []}

  defp finished(component) do
    %{
      component
      | properties: Enum.reverse(component.properties),
        components: Enum.reverse(component.components)
    }
  end

  # The parts of a line (RFC 5545, section 3.1). No part matches in two ways, so a long line takes
  # time in proportion to its length.
  @values ~S{(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*}
  @line Regex.compile!("\\A([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=#{@values})*+):(.*)\\z", "s")
  @parameter Regex.compile!(";([A-Za-z0-9-]+)=(#{@values})")

  @doc "The parts of a line."
  @spec property(String.t()) :: property() | :error
  def property(line) do
    case Regex.run(@line, line) do
      [_, name, parameters, value] ->
        parameters =
          for [_, name, value] <- Regex.scan(@parameter, parameters),
              do: {String.upcase(name), parameter(value)}

        {String.upcase(name), parameters, value}

      nil ->
        :error
    end
  end

  # A list keeps its quotes, by which it differs from one value with commas.
  defp parameter(value) do
    case value |> String.split("\"") |> parts() do
      [_, _ | _] = list -> Enum.map_join(list, ",", &~s("#{&1}"))
      _ -> unquoted(value)
    end
  end

  # Each second one is in quotes, unless they do not end.
  defp parts([plain, quoted, next | rest]),
    do: String.split(plain, ",", trim: true) ++ [quoted | parts([next | rest])]

  defp parts(rest), do: Enum.flat_map(rest, &String.split(&1, ",", trim: true))

  defp unquoted(value), do: String.replace(value, "\"", "")

  # Writing

  @doc "Writes a calendar. Lines have at most 75 bytes."
  @spec write(component()) :: String.t()
  def write(component), do: component |> written() |> IO.iodata_to_binary()

  defp written(component) do
    [
      "BEGIN:#{component.name}\r\n",
      Enum.map(component.properties, &line/1),
      Enum.map(component.components, &written/1),
      "END:#{component.name}\r\n"
    ]
  end

  defp line(property), do: property |> unfolded() |> fold(75)

  @doc "Writes a property as one line, as long as it is."
  @spec unfolded(property()) :: String.t()
  def unfolded({name, parameters, value}) do
    parameters = for {name, value} <- parameters, do: ";#{name}=#{quoted(value)}"
    "#{name}#{parameters}:#{value}"
  end

  defp quoted(value) do
    value = String.replace(value, ~r/[\r\n]/, "")
    if value =~ ~r/\A[^"]*[:;,][^"]*\z/, do: ~s("#{value}"), else: value
  end

  defp fold(text, size) when byte_size(text) <= size, do: [text, "\r\n"]

  defp fold(text, size) do
    {first, rest} = split(text, size)
    [first, "\r\n " | fold(rest, 74)]
  end

  # At the last character that fits.
  defp split(text, size) do
    case :erlang.split_binary(text, size) do
      {_first, <<1::1, 0::1, _::bitstring>>} -> split(text, size - 1)
      parts -> parts
    end
  end

  # Properties

  @doc "The first property of a name, or `nil`."
  @spec get(component(), String.t()) :: property() | nil
  def get(component, name), do: List.keyfind(component.properties, name, 0)

  @doc "All properties of a name."
  @spec all(component(), String.t()) :: [property()]
  def all(component, name), do: Enum.filter(component.properties, &(elem(&1, 0) == name))

  @doc "The text of a property, or `nil`."
  @spec text(component(), String.t()) :: String.t() | nil
  def text(component, name) do
    case get(component, name) do
      {_, _, value} -> unescape(value)
      nil -> nil
    end
  end

  @doc "Replaces all properties of a name by those given."
  @spec put(component(), String.t(), [property()]) :: component()
  def put(component, name, properties) do
    rest = Enum.reject(component.properties, &(elem(&1, 0) == name))
    %{component | properties: rest ++ properties}
  end

  @doc "Sets a text, or removes the property for `nil`."
  @spec put_text(component(), String.t(), String.t() | nil) :: component()
  def put_text(component, name, nil), do: put(component, name, [])
  def put_text(component, name, text), do: put(component, name, [{name, [], escape(text)}])

  defp unescape(value), do: unescape(value, [])
  defp unescape("", done), do: done |> Enum.reverse() |> IO.iodata_to_binary()
  defp unescape("\\n" <> rest, done), do: unescape(rest, ["\n" | done])
  defp unescape("\\N" <> rest, done), do: unescape(rest, ["\n" | done])

  defp unescape(<<"\\", char::utf8, rest::binary>>, done),
    do: unescape(rest, [<<char::utf8>> | done])

  defp unescape(<<char::utf8, rest::binary>>, done), do: unescape(rest, [<<char::utf8>> | done])

  @doc "A text as a value."
  @spec escape(String.t()) :: String.t()
  def escape(text) do
    text
    |> String.replace(~r/\r\n?/, "\n")
    |> String.replace(~r/[\x00-\x08\x0B-\x1F\x7F]/, "")
    |> String.replace("\\", "\\\\")
    |> String.replace(";", "\\;")
    |> String.replace(",", "\\,")
    |> String.replace("\n", "\\n")
  end

  # Times

  @doc "The time of a property, or `nil`. `calendar` has the rules of zones."
  @spec time(property() | nil, component()) :: time() | nil
  def time(nil, _calendar), do: nil

  def time({_, parameters, value}, calendar) do
    case times({"", parameters, value}, calendar) do
      [time] -> time
      _ -> nil
    end
  end

  @doc "All times of a property with a list of them, such as EXDATE."
  @spec times(property(), component()) :: [time()]
  def times(property, calendar), do: for({time, _} <- spans(property, calendar), do: time)

  @doc """
  The times of a property with a list of them. Those that are periods have an end as a time or a
  duration, the others `nil`.
  """
  @spec spans(property(), component()) :: [{time(), time() | String.t() | nil}]
  def spans({_, parameters, value}, calendar) do
    zone = zone(List.keyfind(parameters, "TZID", 0), calendar)

    for part <- String.split(value, ","),
        [start | ends] = part |> String.trim() |> String.split("/", parts: 2),
        time = point(start, zone),
        do: {time, span_end(ends, zone)}
  end

  defp span_end([], _zone), do: nil
  defp span_end(["P" <> _ = duration], _zone), do: duration
  defp span_end(["+P" <> _ = duration], _zone), do: duration
  defp span_end([ends], zone), do: point(ends, zone)

  @doc "The times of all properties of a name, at most `limit`."
  @spec all_times(component(), String.t(), component(), pos_integer()) :: [time()]
  def all_times(component, name, calendar, limit \\ @max_dates),
    do: for({time, _} <- all_spans(component, name, calendar, limit), do: time)

  @doc "The same, with the ends of periods as in `spans/2`."
  @spec all_spans(component(), String.t(), component(), pos_integer()) ::
          [{time(), time() | String.t() | nil}]
  def all_spans(component, name, calendar, limit \\ @max_dates) do
    properties = all(component, name)
    commas = for {_, _, value} <- properties, do: length(:binary.matches(value, ","))
    if length(properties) + Enum.sum(commas) > limit, do: throw(:budget)
    Enum.flat_map(properties, &spans(&1, calendar))
  end

  defp point(<<day::binary-8>>, _zone), do: basic(day)

  defp point(<<day::binary-8, "T", time::binary-6, rest::binary>>, zone) when rest in ["", "Z"] do
    with %Date{} = day <- basic(day),
         <<hour::binary-2, minute::binary-2, second::binary-2>> = time,
         # A leap second is the second before it.
         second = if(second == "60", do: "59", else: second),
         {:ok, time} <- Time.from_iso8601("#{hour}:#{minute}:#{second}") do
      {NaiveDateTime.new!(day, time), if(rest == "Z", do: "UTC", else: zone)}
    else
      _ -> nil
    end
  end

  defp point(_, _), do: nil

  defp basic(<<year::binary-4, month::binary-2, day::binary-2>>) do
    case Date.from_iso8601("#{year}-#{month}-#{day}") do
      {:ok, %{year: year} = day} when year in 1..9_999 -> day
      _ -> nil
    end
  end

  defp zone(nil, _calendar), do: nil

  defp zone({_, id}, calendar) do
    case calendar do
      %{zones: %{^id => :budget}} -> throw(:budget)
      %{zones: %{^id => zone}} -> zone
      _ -> known_zone(id, nil)
    end
  end

  defp known_zone(id, location) do
    # Some programs put a prefix before the name: `/example.com/Europe/Berlin`.
    tail = id |> String.split("/", trim: true) |> Enum.take(-2) |> Enum.join("/")

    Enum.find_value([id, location, tail], fn name ->
      with true <- is_binary(name),
           {:ok, name} <- TimeZones.fetch(name),
           do: name,
           else: (_ -> nil)
    end)
  end

  # The zones that a file describes, worked out once.
  defp zones(calendar, steps) do
    described =
      for %{name: "VTIMEZONE"} = rules <- calendar.components,
          id = text(rules, "TZID"),
          do: {id, rules}

    {zones, _own} =
      described
      |> Enum.uniq_by(&elem(&1, 0))
      |> Enum.map_reduce(0, fn {id, rules}, own ->
        case known_zone(id, text(rules, "X-LIC-LOCATION")) do
          nil when own < @max_zones -> {{id, offsets(rules, steps)}, own + 1}
          nil -> {{id, :budget}, own}
          name -> {{id, name}, own}
        end
      end)

    Map.new(zones)
  end

  defp offsets(%{components: parts}, _steps) when length(parts) > @max_parts, do: :budget

  defp offsets(rules, steps) do
    budgeted(fn ->
      changes = rules.components |> Enum.flat_map(&changes(&1, steps)) |> Enum.sort()
      before = with [{_, _, _, before} | _] <- changes, do: before, else: ([] -> 0)

      {:rules, {List.to_tuple(for({at, local, to, _} <- changes, do: {at, local, to})), before}}
    end)
  end

  @doc "The instant of a time. Floating times and unknown zones are those of `default`."
  @spec instant(time(), String.t()) :: DateTime.t()
  def instant(%Date{} = day, default),
    do: instant({NaiveDateTime.new!(day, ~T[00:00:00]), nil}, default)

  def instant({local, nil}, default), do: instant({local, default}, default)

  def instant({local, zone}, _default) when is_binary(zone),
    do: local |> TimeZones.local(zone) |> elem(0)

  def instant({local, {:rules, rules}}, _default) do
    offset = offset(rules, seconds(local), 1)
    local |> NaiveDateTime.add(-offset, :second) |> DateTime.from_naive!("Etc/UTC")
  end

  @doc "An instant as the clocks of a zone show it. No zone stands for `default`."
  @spec local(DateTime.t(), zone(), String.t()) :: NaiveDateTime.t()
  def local(time, nil, default), do: local(time, default, default)

  def local(time, zone, _default) when is_binary(zone),
    do: time |> TimeZones.shift(zone) |> DateTime.to_naive()

  def local(time, {:rules, rules}, _default) do
    at = DateTime.to_unix(time)
    naive(at + offset(rules, at, 0))
  end

  # The offset that began last, by the instants of the changes or by their local times. A time
  # that occurs twice is the first, and one that clocks skip counts from before they change.
  defp offset({changes, first}, at, by),
    do: offset(changes, first, at, by, 0, tuple_size(changes))

  defp offset(_changes, found, _at, _by, low, low), do: found

  defp offset(changes, found, at, by, low, high) do
    middle = div(low + high, 2)
    change = elem(changes, middle)

    if elem(change, by) <= at,
      do: offset(changes, elem(change, 2), at, by, middle + 1, high),
      else: offset(changes, found, at, by, low, middle)
  end

  # The changes to a part of a zone: when, the first local second, the offsets after and before.
  defp changes(part, steps) do
    with {_, _, to} <- get(part, "TZOFFSETTO"),
         offset when is_integer(offset) <- utc_offset(to),
         {start, _} <- time(get(part, "DTSTART"), part) do
      before = offset_before(part) || offset
      start = seconds(start)
      given = for {date, _} <- all_times(part, "RDATE", part, @max_changes), do: seconds(date)

      repeated =
        for {_, _, rule} <- all(part, "RRULE"),
            rule = in_offset(rule, before),
            date <- dates(rule, start, start, @far, steps, @max_changes),
            do: date

      for at <- Enum.uniq([start | given ++ repeated]),
          do: {at - before, at - before + max(before, offset), offset, before}
    else
      _ -> []
    end
  end

  # The end of a rule is in UTC, its dates are in the offset before them.
  defp in_offset(rule, offset),
    do: until(rule, &NaiveDateTime.add(&1, offset, :second))

  defp offset_before(part) do
    with {_, _, from} <- get(part, "TZOFFSETFROM"),
         offset when is_integer(offset) <- utc_offset(from),
         do: offset,
         else: (_ -> nil)
  end

  defp utc_offset(<<sign, hours::binary-2, minutes::binary-2, _::binary>>)
       when sign in [?+, ?-] do
    with {hours, ""} <- Number.integer(hours), {minutes, ""} <- Number.integer(minutes) do
      offset = hours * 3_600 + minutes * 60
      if sign == ?-, do: -offset, else: offset
    end
  end

  defp utc_offset(_), do: nil

  @doc "Seconds of a local time since 1970."
  @spec seconds(NaiveDateTime.t()) :: integer()
  def seconds(local), do: NaiveDateTime.diff(local, @epoch, :second)

  @doc "The local time of such seconds."
  @spec naive(integer()) :: NaiveDateTime.t()
  def naive(seconds), do: NaiveDateTime.add(@epoch, seconds, :second)

  # Repetitions

  @doc """
  The dates of a rule within a range of local seconds, found in the steps that are left. An
  unreadable rule has none.
  """
  @spec dates(String.t(), integer(), integer(), integer(), steps(), pos_integer()) ::
          [integer()]
  def dates(rule, start, from, to, steps, limit \\ @max_dates) do
    left = left(steps)
    if left <= 0, do: throw(:budget)
    # In the library, UNTIL is a local time too.
    rule = Regex.replace(~r/(UNTIL=\d{8})(?=;|\z)/, rule, "\\1T235959Z")
    rule = Regex.replace(~r/(UNTIL=\d{8}T\d{6})(?=;|\z)/, rule, "\\1Z")

    case Library.ical_dates(rule, start, from, to, limit, left) do
      {:ok, dates, cut, taken} ->
        :counters.sub(steps, 1, taken)
        if cut, do: throw(:budget), else: dates

      :error ->
        []
    end
  end

  @doc """
  A rule as `dates/6` expects it, whose UNTIL is a local time, and the second in which its last
  date may be, or `nil`. A day later by the clock, so that no date is missed which the clocks skip
  or show twice.
  """
  @spec local_rule(String.t(), time()) :: {String.t(), integer() | nil}
  def local_rule(rule, {_, zone}) when zone != nil do
    with [_, until] <- Regex.run(~r/UNTIL=(\d{8}T\d{6})Z/, rule),
         {until, _} <- point(until, nil) do
      later = &(&1 |> DateTime.from_naive!("Etc/UTC") |> local(zone, "UTC") |> add_day())
      {until(rule, later), seconds(until)}
    else
      _ -> {rule, nil}
    end
  end

  def local_rule(rule, _start), do: {rule, nil}

  defp add_day(local), do: NaiveDateTime.add(local, @day, :second)

  @doc "Changes the UNTIL of a rule, if it is a day or in UTC."
  @spec until(String.t(), (NaiveDateTime.t() | Date.t() -> NaiveDateTime.t() | Date.t())) ::
          String.t()
  def until(rule, change) do
    Regex.replace(~r/UNTIL=(\d{8})(T\d{6}Z)?(?=;|\z)/, rule, fn all, day, time ->
      case point(day <> time, nil) do
        nil -> all
        {until, _} -> "UNTIL=#{until |> change.() |> basic_time()}Z"
        day -> "UNTIL=#{day |> change.() |> Date.to_iso8601(:basic)}"
      end
    end)
  rescue
    # Beyond the year 9999.
    ArgumentError -> rule
  end

  # Zones

  @doc """
  The rules of a zone for a calendar, from a year before a time on. A change of clocks that comes
  each year is a rule without an end. Others, as those of Morocco by the moon, are listed, each in
  a property of its own: ical.js reads the first date of a list alone.
  """
  @spec zone_component(String.t(), DateTime.t()) :: component()
  def zone_component(zone, from) do
    start = DateTime.to_unix(from) - 366 * @day
    stretches = TimeZones.stretches(zone, start, start + @ahead)
    [{_, before, _} | _] = stretches

    {changes, _} =
      Enum.map_reduce(stretches, before, fn {from, offset, abbreviation}, before ->
        {{{before, offset, abbreviation}, naive(from + before)}, offset}
      end)

    components =
      changes
      |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
      |> Enum.flat_map(fn {part, dates} -> parts(part, dates) end)
      |> Enum.sort_by(fn component -> component |> get("DTSTART") |> elem(2) end)

    %{new("VTIMEZONE") | properties: [{"TZID", [], zone}], components: components}
  end

  # The changes to a part of a zone: those of single years, and a rule from a year on.
  defp parts(part, dates) do
    yearly = dates |> Enum.reverse() |> yearly()
    {single, ruled} = Enum.split(dates, length(dates) - length(yearly))
    rule = if length(yearly) >= @years, do: rule(yearly)

    if rule,
      do: single_part(part, single) ++ [part(part, hd(ruled), [{"RRULE", [], rule}])],
      else: single_part(part, dates)
  end

  defp single_part(_part, []), do: []

  defp single_part(part, [first | more]),
    do: [part(part, first, for(date <- more, do: {"RDATE", [], basic_time(date)}))]

  # From the last one back, as long as one rule of years has all of them.
  defp yearly([last | earlier]) do
    Enum.reduce_while(earlier, [last], fn date, [next | _] = found ->
      if date.year + 1 == next.year and rule([date | found]),
        do: {:cont, [date | found]},
        else: {:halt, found}
    end)
  end

  # Such as the second or the last Sunday of a month, or the one from the 23rd on.
  defp rule([first | _] = dates) do
    same? = &(Enum.uniq(Enum.map(dates, &1)) |> length() == 1)
    days = for date <- dates, do: date.day
    {low, high} = Enum.min_max(days)
    weekday = Enum.at(~w(MO TU WE TH FR SA SU), Date.day_of_week(first) - 1)

    cond do
      not same?.(&{&1.month, Date.day_of_week(&1), NaiveDateTime.to_time(&1)}) ->
        nil

      same?.(&div(&1.day - 1, 7)) ->
        "FREQ=YEARLY;BYMONTH=#{first.month};BYDAY=#{div(low - 1, 7) + 1}#{weekday}"

      Enum.all?(dates, &(&1.day + 7 > Date.days_in_month(&1))) ->
        "FREQ=YEARLY;BYMONTH=#{first.month};BYDAY=-1#{weekday}"

      high - low <= 6 and low + 6 <= Date.days_in_month(first) ->
        days = Enum.join(low..(low + 6), ",")
        "FREQ=YEARLY;BYMONTH=#{first.month};BYMONTHDAY=#{days};BYDAY=#{weekday}"

      true ->
        nil
    end
  end

  defp part({before, offset, name}, first, dates) do
    properties = [
      {"DTSTART", [], basic_time(first)},
      {"TZOFFSETFROM", [], offset_text(before)},
      {"TZOFFSETTO", [], offset_text(offset)},
      {"TZNAME", [], name}
    ]

    name = if offset > before, do: "DAYLIGHT", else: "STANDARD"
    %{new(name) | properties: properties ++ dates}
  end

  defp offset_text(offset) do
    sign = if offset < 0, do: "-", else: "+"
    minutes = div(abs(offset), 60)

    [hours, minutes] =
      for n <- [div(minutes, 60), rem(minutes, 60)], do: String.pad_leading("#{n}", 2, "0")

    sign <> hours <> minutes
  end

  @doc "A local time as a value."
  @spec basic_time(NaiveDateTime.t() | DateTime.t()) :: String.t()
  def basic_time(local), do: Calendar.strftime(local, "%Y%m%dT%H%M%S")

  @doc "A property with a day or a time in its zone."
  @spec time_property(String.t(), DateTime.t() | Date.t()) :: property()
  def time_property(name, %Date{} = day),
    do: {name, [{"VALUE", "DATE"}], Date.to_iso8601(day, :basic)}

  def time_property(name, %DateTime{time_zone: zone} = time) when zone in ["UTC", "Etc/UTC"],
    do: {name, [], basic_time(time) <> "Z"}

  def time_property(name, time), do: {name, [{"TZID", time.time_zone}], basic_time(time)}

  @doc """
  A property with a time in the form of another one: in its zone, in UTC or floating. `default`
  is the zone of floating times. A time that the form cannot say, the second of one that occurs
  twice, is in UTC.
  """
  @spec property_like(String.t(), DateTime.t() | Date.t(), property(), component(), String.t()) ::
          property()
  def property_like(name, %Date{} = day, _like, _calendar, _default), do: time_property(name, day)

  def property_like(name, time, {_, parameters, value} = like, calendar, default) do
    utc = time_property(name, TimeZones.shift(time, "Etc/UTC"))

    case time(like, calendar) do
      {_, zone} ->
        local = local(time, zone, default)
        zone_only = Enum.filter(parameters, &(elem(&1, 0) == "TZID"))

        cond do
          String.ends_with?(value, "Z") -> utc
          DateTime.compare(instant({local, zone}, default), time) != :eq -> utc
          true -> {name, zone_only, basic_time(local)}
        end

      _day ->
        time_property(name, time)
    end
  end

  @doc """
  Changes the times of a property, and keeps their form. Those for which `change` returns `nil`
  are left out; without any, there is no property.
  """
  @spec change(property(), component(), String.t(), change()) :: property() | nil
  def change({name, parameters, _} = property, calendar, default, change) do
    written = &written(&1, &2, parameters, default)

    times =
      for {start, ends} <- spans(property, calendar), changed = change.(start) do
        start = written.(start, changed)

        case ends do
          nil -> start
          duration when is_binary(duration) -> "#{start}/#{duration}"
          ends -> "#{start}/#{written.(ends, change.(ends) || ends)}"
        end
      end

    if times != [], do: {name, parameters, Enum.join(times, ",")}
  end

  defp written(_time, %Date{} = day, _, _), do: Date.to_iso8601(day, :basic)

  defp written({_, zone} = time, changed, parameters, default) do
    local = if changed == time, do: elem(time, 0), else: local(changed, zone, default)
    text = basic_time(local)
    if zone == "UTC" and not List.keymember?(parameters, "TZID", 0), do: text <> "Z", else: text
  end
end
