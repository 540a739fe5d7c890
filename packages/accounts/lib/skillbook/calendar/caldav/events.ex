defmodule Skillbook.Calendar.CalDAV.Events do
  @moduledoc false
  # The events of a calendar's file: a single one, or a series with its rule and the events that
  # differ from it. Reads them as maps of `Skillbook.Calendar`, and changes the file.
  #
  # An event of a series is known by its original start, as an instant: programs write it in any
  # zone. Properties that are not changed stay as they are.

  alias Skillbook.Calendar.{ICalendar, Recurrence, TimeZones}
  alias Skillbook.Support.Number

  @type resource :: Skillbook.Calendar.CalDAV.Server.resource()
  @type component :: ICalendar.component()
  @type event :: Skillbook.Calendar.event()
  @type point :: DateTime.t() | Date.t()

  @max_attendees 50
  # Events of a series that differ from it.
  @max_overrides 2_000
  @day 86_400
  # Local time is less than two days from UTC.
  @reach 2 * @day

  # Ids

  @doc "The file of an id, and the original start of an event of a series."
  @spec split_id(String.t()) :: {String.t(), DateTime.t() | Date.t() | nil}
  def split_id(id) do
    # A slash would leave the calendar.
    safe = Regex.replace(~r/[^A-Za-z0-9._~@!$&'()*+,;=:%-]/, id, &percent/1)

    case Regex.run(~r/\A(.+)_(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)Z)?\z/, id) do
      [_, file, year, month, day | time] ->
        case original("#{year}-#{month}-#{day}", time) do
          nil -> {safe, nil}
          original -> {Regex.replace(~r/[\/?#\s]/, file, &percent/1), original}
        end

      nil ->
        {safe, nil}
    end
  end

  @doc ~S"""
  Whether a name is that of a file in the calendar. `..` is the folder above, and `.` the calendar
  itself, which one request deletes with all events.

      iex> names = ["a.ics", "b%2Fa.ics", ".", "%2e%2E", "a%2F..%2F..%2Fb.ics", "b%2F"]
      iex> Enum.map(names, &Skillbook.Calendar.CalDAV.Events.file?/1)
      [true, true, false, false, false, false]
  """
  @spec file?(String.t()) :: boolean()
  def file?(name) do
    # Servers decode a name before they look for its folders.
    decoded =
      Regex.replace(~r/%([0-9A-Fa-f]{2})/, name, fn _, hex ->
        Base.decode16!(hex, case: :mixed)
      end)

    decoded |> :binary.split(["/", "\\"], [:global]) |> Enum.all?(&(&1 not in ["", ".", ".."]))
  end

  defp percent(text), do: for(<<byte <- text>>, into: "", do: "%" <> Base.encode16(<<byte>>))

  defp original(day, []) do
    case Date.from_iso8601(day) do
      {:ok, day} -> day
      _ -> nil
    end
  end

  defp original(day, time) do
    case DateTime.from_iso8601("#{day}T#{Enum.join(time, ":")}Z") do
      {:ok, time, _} -> time
      _ -> nil
    end
  end

  # The separator of ids is written otherwise in a file's name.
  defp file_id(file), do: String.replace(file, "_", "%5F")

  defp id(file, nil), do: file_id(file)
  defp id(file, %Date{} = day), do: "#{file_id(file)}_#{Date.to_iso8601(day, :basic)}"
  defp id(file, time), do: "#{file_id(file)}_#{Recurrence.utc(time)}"

  # Reading

  @doc "Whether the file has an event with a start."
  @spec readable?(resource()) :: boolean()
  def readable?(resource) do
    master = master(resource)
    master != nil and time(master, "DTSTART", resource) != nil
  end

  @doc "The event itself, or the series without the events that differ."
  @spec master(%{:calendar => component(), optional(atom()) => term()}) :: component() | nil
  def master(%{calendar: calendar}) do
    Enum.find(calendar.components, &(event?(&1) and not differs?(&1))) ||
      Enum.find(calendar.components, &event?/1)
  end

  defp event?(component), do: component.name == "VEVENT"
  defp differs?(component), do: ICalendar.get(component, "RECURRENCE-ID") != nil

  defp events(calendar), do: Enum.filter(calendar.components, &event?/1)

  defp time(component, name, %{calendar: calendar}),
    do: component |> ICalendar.get(name) |> ICalendar.time(calendar)

  @doc """
  The events of a readable file that overlap a span; at most `limit` of them, and those that
  differ.
  """
  @spec between(resource(), DateTime.t(), DateTime.t(), String.t(), pos_integer()) :: [event()]
  def between(resource, from, to, default, limit) do
    resource
    |> Map.put(:default, default)
    |> instances(from, to)
    |> Stream.filter(&overlaps?(&1, from, to, default))
    |> Enum.take(limit)
  end

  defp overlaps?(event, from, to, zone) do
    {starts, ends} = {start(event, zone), ends(event, zone)}

    DateTime.compare(starts, to) == :lt and
      (DateTime.compare(ends, from) == :gt or
         (starts == ends and DateTime.compare(starts, from) != :lt))
  end

  defp instances(resource, from, to) do
    master = master(resource)
    overrides = overrides(resource)

    if recurring?(master) do
      first = time(master, "DTSTART", resource)
      {length, unit} = duration(master, first, resource)
      seconds = if unit == :days, do: length * @day, else: length
      low = DateTime.to_unix(from) - seconds - @reach
      high = DateTime.to_unix(to) + @reach
      excluded = master |> times("EXDATE", resource) |> MapSet.new(&key(&1, resource))

      # One at a time: most callers want a few of what may be thousands.
      regular =
        master
        |> dates(first, resource, low, high)
        |> Stream.map(&like(first, &1))
        |> Stream.reject(fn time ->
          key = key(time, resource)
          key in excluded or is_map_key(overrides, key)
        end)
        |> Stream.map(&event(master, resource, &1, point(&1, resource)))

      moved = for {_key, {component, time}} <- overrides, do: differing(component, time, resource)
      Stream.concat(Enum.reject(moved, &is_nil/1), regular)
    else
      [event(master, resource, time(master, "DTSTART", resource), nil)]
    end
  end

  defp recurring?(master),
    do: ICalendar.get(master, "RRULE") != nil or ICalendar.get(master, "RDATE") != nil

  # Local seconds of all starts in a range.
  defp dates(master, first, resource, low, high) do
    start = local_seconds(first)

    ruled =
      for {_, _, rule} <- master |> ICalendar.all("RRULE") |> Enum.take(4),
          rule = ICalendar.local_rule(rule, with_zone(first, resource)),
          date <- ICalendar.dates(rule, start, low, high, resource.calendar.deadline),
          do: date

    given = for time <- times(master, "RDATE", resource), do: local_seconds(time)
    # Without a rule, the start is one of the dates.
    given = if ICalendar.get(master, "RRULE"), do: given, else: [start | given]
    (ruled ++ Enum.filter(given, &(&1 in low..high//1))) |> Enum.sort() |> Enum.dedup()
  end

  defp local_seconds(%Date{} = day),
    do: day |> NaiveDateTime.new!(~T[00:00:00]) |> ICalendar.seconds()

  defp local_seconds({local, _zone}), do: ICalendar.seconds(local)

  defp like(%Date{}, local), do: local |> ICalendar.naive() |> NaiveDateTime.to_date()
  defp like({_, zone}, local), do: {ICalendar.naive(local), zone}

  defp with_zone({local, nil}, resource), do: {local, default(resource)}
  defp with_zone(time, _resource), do: time

  defp default(resource), do: Map.get(resource, :default, "UTC")

  defp times(component, name, %{calendar: calendar}),
    do: ICalendar.all_times(component, name, calendar)

  # The value by which original starts are compared.
  defp key(%Date{} = day, _resource), do: day
  defp key(time, resource), do: time |> ICalendar.instant(default(resource)) |> DateTime.to_unix()

  defp key_of(%Date{} = day), do: day
  defp key_of(time), do: DateTime.to_unix(time)

  defp point(%Date{} = day, _resource), do: day
  defp point(time, resource), do: ICalendar.instant(time, default(resource))

  defp overrides(resource) do
    differing = Enum.filter(resource.calendar.components, &(event?(&1) and differs?(&1)))
    if length(differing) > @max_overrides, do: throw(:budget)

    for component <- differing,
        time = time(component, "RECURRENCE-ID", resource),
        into: %{},
        do: {key(time, resource), {component, time}}
  end

  defp differing(component, original, resource) do
    case time(component, "DTSTART", resource) do
      nil -> nil
      start -> event(component, resource, start, point(original, resource))
    end
  end

  # The length of an event: DTEND, DURATION, a day, or nothing.
  defp duration(component, start, resource) do
    case {start, time(component, "DTEND", resource), ICalendar.get(component, "DURATION")} do
      {%Date{}, %Date{} = ends, _} ->
        {max(Date.diff(ends, start), 1), :days}

      {{_, _}, {_, _} = ends, _} ->
        [start, ends] = for time <- [start, ends], do: key(time, resource)
        {max(ends - start, 0), :seconds}

      {%Date{}, _, duration} ->
        {max(div(seconds(duration), @day), 1), :days}

      {_, _, duration} ->
        {seconds(duration), :seconds}
    end
  end

  @duration ~r/\A\+?P (?:(\d{1,4})W)? (?:(\d{1,5})D)?
               (?:T (?:(\d{1,6})H)? (?:(\d{1,7})M)? (?:(\d{1,8})S)?)?\z/x

  defp seconds({_, _, value}) do
    case Regex.run(@duration, value) do
      [_ | parts] ->
        parts
        |> Enum.zip([7 * @day, @day, 3_600, 60, 1])
        |> Enum.map(fn {text, unit} ->
          if text == "", do: 0, else: Number.integer!(text) * unit
        end)
        |> Enum.sum()

      nil ->
        0
    end
  end

  defp seconds(nil), do: 0

  @doc "The event of an original start, or with `nil` the event or series itself."
  @spec find(resource(), point() | nil, String.t()) :: event() | nil
  def find(resource, original, default) do
    resource = Map.put(resource, :default, default)

    cond do
      not readable?(resource) ->
        nil

      original == nil ->
        master = master(resource)
        event = event(master, resource, time(master, "DTSTART", resource), nil)
        %{event | repeat: rule(resource)}

      true ->
        from = start(%{start: original}, default)
        key = key_of(original)

        # An event that was moved is found by its original start.
        resource
        |> instances(DateTime.add(from, -1, :second), DateTime.add(from, 1, :second))
        |> Enum.find(&(&1.original != nil and key_of(&1.original) == key))
    end
  end

  @responses %{
    "ACCEPTED" => "accepted",
    "DECLINED" => "declined",
    "TENTATIVE" => "tentative"
  }

  defp event(component, resource, start, original) do
    {length, unit} = duration_of(component, resource)
    first = point(start, resource)

    ends =
      if unit == :days and match?(%Date{}, first),
        do: Date.add(first, length),
        else: DateTime.add(first, length, :second, TimeZones)

    guests = ICalendar.all(component, "ATTENDEE")
    organizer = address(ICalendar.get(component, "ORGANIZER"))

    %{
      id: id(resource.file, original),
      version: resource.version,
      series: if(original, do: file_id(resource.file)),
      original: original,
      title: ICalendar.text(component, "SUMMARY") || "",
      description: ICalendar.text(component, "DESCRIPTION"),
      location: ICalendar.text(component, "LOCATION"),
      start: first,
      end: ends,
      zone: zone_name(start, resource),
      repeat: nil,
      attendees: for(guest <- Enum.take(guests, @max_attendees), do: attendee(guest)),
      more_attendees: length(guests) > @max_attendees,
      organizer: organizer,
      mine: organizer == nil,
      status: status(component),
      conference: conference(component)
    }
  end

  defp duration_of(component, resource),
    do: duration(component, time(component, "DTSTART", resource), resource)

  defp zone_name(%Date{}, _resource), do: nil
  defp zone_name({_, zone}, _resource) when is_binary(zone), do: zone
  defp zone_name({_, nil}, resource), do: default(resource)
  defp zone_name({_, _rules}, _resource), do: nil

  defp attendee({_, parameters, _} = guest) do
    %{
      email: address(guest),
      name: parameter(parameters, "CN"),
      response: Map.get(@responses, parameter(parameters, "PARTSTAT"), "needs_action"),
      optional: parameter(parameters, "ROLE") == "OPT-PARTICIPANT"
    }
  end

  defp parameter(parameters, name) do
    case List.keyfind(parameters, name, 0) do
      {_, value} -> value
      nil -> nil
    end
  end

  defp address(nil), do: nil
  defp address({_, _, value}), do: Regex.replace(~r/\Amailto:/i, value, "")

  defp status(component) do
    case ICalendar.text(component, "STATUS") do
      status when status in ~w(CANCELLED TENTATIVE) -> String.downcase(status)
      _ -> "confirmed"
    end
  end

  defp conference(component) do
    case ICalendar.get(component, "CONFERENCE") do
      {_, _, value} -> value
      nil -> nil
    end
  end

  @doc "The events that do not leave their time free."
  @spec busy([event()], resource()) :: [event()]
  def busy(events, resource) do
    overrides = overrides(resource)
    series_free? = transparent?(master(resource))

    Enum.reject(events, fn event ->
      case event.original && Map.get(overrides, key_of(event.original)) do
        {component, _} -> transparent?(component)
        nil -> series_free?
      end
    end)
  end

  defp transparent?(component), do: ICalendar.text(component, "TRANSP") == "TRANSPARENT"

  @doc "The file of an event that cannot be shown, with its title and the reason."
  @spec unreadable(map(), component() | nil, :budget | :invalid) ::
          Skillbook.Calendar.unreadable()
  def unreadable(%{file: file}, calendar, reason) do
    event = calendar && master(%{calendar: calendar})
    title = event && ICalendar.text(event, "SUMMARY")
    %{id: file_id(file), title: title || "", reason: reason}
  end

  @doc "The event with its times as the clocks of a zone show them."
  @spec in_zone(event(), String.t()) :: event()
  def in_zone(event, zone) do
    Enum.reduce([:start, :end, :original], event, fn field, event ->
      case event do
        %{^field => %DateTime{} = time} -> %{event | field => TimeZones.shift(time, zone)}
        _ -> event
      end
    end)
  end

  @doc "The first moment of an event."
  @spec start(map(), String.t()) :: DateTime.t()
  def start(%{start: start}, zone), do: moment(start, zone)

  @doc "The first moment after an event."
  @spec ends(event(), String.t()) :: DateTime.t()
  def ends(%{end: ends}, zone), do: moment(ends, zone)

  defp moment(%Date{} = day, zone), do: ICalendar.instant(day, zone)
  defp moment(time, _zone), do: time

  # Writing

  @doc "The file of a new event."
  @spec new(Skillbook.Calendar.new()) :: component()
  def new(new) do
    event =
      %{name: "VEVENT", properties: [], components: []}
      |> ICalendar.put("UID", [{"UID", [], new.key}])
      |> put_times(new.start, new.end)
      |> ICalendar.put_text("SUMMARY", new.title)
      |> ICalendar.put_text("DESCRIPTION", new.description)
      |> ICalendar.put_text("LOCATION", new.location)
      |> put_rule(new.repeat)
      |> touch()

    properties = [{"VERSION", [], "2.0"}, {"PRODID", [], "-//Skillbook//Skillbook//EN"}]
    with_zones(%{name: "VCALENDAR", properties: properties, components: [event]})
  end

  # The number of changes, and when the last was made, which other programs compare.
  defp touch(event) do
    now = Recurrence.utc(DateTime.utc_now())

    sequence =
      case ICalendar.get(event, "SEQUENCE") do
        {_, _, value} ->
          case Number.integer(value) do
            {number, ""} when number in 0..1_000_000 -> number + 1
            _ -> 1
          end

        nil ->
          0
      end

    event
    |> ICalendar.put("SEQUENCE", [{"SEQUENCE", [], "#{sequence}"}])
    |> ICalendar.put("DTSTAMP", [{"DTSTAMP", [], now}])
    |> ICalendar.put("LAST-MODIFIED", [{"LAST-MODIFIED", [], now}])
  end

  # Rules of the zones that events name and the file lacks.
  defp with_zones(calendar) do
    known =
      for %{name: "VTIMEZONE"} = zone <- calendar.components, do: ICalendar.text(zone, "TZID")

    used =
      for event <- events(calendar),
          {_, parameters, _} = property <- event.properties,
          {"TZID", id} <- parameters,
          id not in known,
          {:ok, zone} <- [TimeZones.fetch(id)],
          time = ICalendar.time(property, calendar),
          do: {zone, ICalendar.instant(time, zone)}

    zones =
      for {zone, times} <- Enum.group_by(used, &elem(&1, 0), &elem(&1, 1)),
          do: ICalendar.zone_component(zone, Enum.min(times, DateTime))

    %{calendar | components: zones ++ calendar.components}
  end

  @doc "Replaces the event or the series."
  @spec put_master(resource(), component()) :: resource()
  def put_master(resource, master) do
    old = master(resource)
    replace(resource, fn component -> if component == old, do: touch(master), else: component end)
  end

  defp replace(resource, change) do
    components = resource.calendar.components |> Enum.map(change) |> Enum.reject(&is_nil/1)
    %{resource | calendar: with_zones(%{resource.calendar | components: components})}
  end

  @doc "The event of a series that differs from it, made from the series if there is none."
  @spec override(resource(), event()) :: component()
  def override(resource, event) do
    case Map.get(overrides(resource), key_of(event.original)) do
      {component, _} ->
        component

      nil ->
        Enum.reduce(~w(RRULE RDATE EXDATE), master(resource), &ICalendar.put(&2, &1, []))
        |> ICalendar.put("RECURRENCE-ID", [time_like("RECURRENCE-ID", event.original, resource)])
        |> put_times_like(event.start, event.end, resource)
    end
  end

  # In the zone of the series, as its own dates.
  defp time_like(name, %DateTime{} = time, resource) do
    case time(master(resource), "DTSTART", resource) do
      {_, zone} when is_binary(zone) -> ICalendar.time_property(name, TimeZones.shift(time, zone))
      _ -> ICalendar.time_property(name, TimeZones.shift(time, "UTC"))
    end
  end

  defp time_like(name, day, _resource), do: ICalendar.time_property(name, day)

  defp put_times_like(component, start, ends, resource) do
    component
    |> ICalendar.put("DURATION", [])
    |> ICalendar.put("DTSTART", [time_like("DTSTART", start, resource)])
    |> ICalendar.put("DTEND", [time_like("DTEND", ends, resource)])
  end

  @doc "Adds or replaces an event that differs from its series."
  @spec put_override(resource(), component(), event()) :: resource()
  def put_override(resource, override, event) do
    resource = without_override(resource, event)
    components = resource.calendar.components ++ [touch(override)]
    %{resource | calendar: with_zones(%{resource.calendar | components: components})}
  end

  defp without_override(resource, event) do
    key = key_of(event.original)
    keep_overrides(resource, &(&1 != key))
  end

  defp keep_overrides(resource, keep?) do
    replace(resource, fn component ->
      case component.name == "VEVENT" and time(component, "RECURRENCE-ID", resource) do
        time when time in [nil, false] -> component
        time -> if keep?.(key(time, resource)), do: component
      end
    end)
  end

  @doc "Removes one event of a series."
  @spec exclude(resource(), event()) :: resource()
  def exclude(resource, event) do
    resource = without_override(resource, event)
    master = master(resource)
    date = time_like("EXDATE", event.original, resource)
    put_master(resource, %{master | properties: master.properties ++ [date]})
  end

  @doc "Changes the texts that are given."
  @spec apply_texts(component(), Skillbook.Calendar.changes()) :: component()
  def apply_texts(component, changes) do
    for {field, name} <- [title: "SUMMARY", description: "DESCRIPTION", location: "LOCATION"],
        Map.has_key?(changes, field),
        reduce: component do
      component -> ICalendar.put_text(component, name, changes[field])
    end
  end

  @doc "Changes the rule, if one is given."
  @spec apply_rule(component(), Skillbook.Calendar.changes()) :: component()
  def apply_rule(component, %{repeat: rule}), do: put_rule(component, rule)
  def apply_rule(component, _changes), do: component

  defp put_rule(component, nil),
    do: Enum.reduce(~w(RRULE RDATE EXDATE), component, &ICalendar.put(&2, &1, []))

  defp put_rule(component, rule), do: ICalendar.put(component, "RRULE", [{"RRULE", [], rule}])

  @doc "Sets the times of an event."
  @spec put_times(component(), point(), point()) :: component()
  def put_times(component, start, ends) do
    component
    |> ICalendar.put("DURATION", [])
    |> ICalendar.put("DTSTART", [ICalendar.time_property("DTSTART", start)])
    |> ICalendar.put("DTEND", [ICalendar.time_property("DTEND", ends)])
  end

  # Series

  @doc "The rule of a series, or `nil`."
  @spec rule(resource()) :: String.t() | nil
  def rule(resource) do
    case ICalendar.get(master(resource), "RRULE") do
      {_, _, rule} -> rule
      nil -> nil
    end
  end

  @doc "The times of the first event of a series, in its zone."
  @spec span(resource()) :: {point(), point()}
  def span(resource) do
    master = master(resource)
    first = time(master, "DTSTART", resource)
    event = event(master, resource, first, nil)

    # A zone of the file alone has no name in the database; then it is the calendar's from now on.
    case first do
      {_, {:rules, _}} -> in_zone(event, default(resource))
      _ -> event
    end
    |> then(&{&1.start, &1.end})
  end

  @doc "Whether an event is the first of its series."
  @spec first?(resource(), event()) :: boolean()
  def first?(resource, event) do
    start = time(master(resource), "DTSTART", resource)
    key(start, resource) == key_of(event.original)
  end

  @doc "Moves a series, with its exceptions, so that its first event has these times."
  @spec move(resource(), {point(), point()}, String.t() | nil) :: resource()
  def move(resource, {start, ends}, rule) do
    old = master(resource)
    first = time(old, "DTSTART", resource)

    if match?(%Date{}, first) == match?(%Date{}, start) do
      shift = local_seconds(local(start)) - local_seconds(local(elem(span(resource), 0)))
      resource = replace(resource, &shift_exceptions(&1, shift, resource))
      master = resource |> master() |> put_times(start, ends)
      put_master(resource, if(rule, do: put_rule(master, rule), else: master))
    else
      # Exceptions of days are none of times.
      resource = keep_overrides(resource, fn _ -> false end)
      master = Enum.reduce(~w(RDATE EXDATE), master(resource), &ICalendar.put(&2, &1, []))
      master = put_times(master, start, ends)
      put_master(resource, if(rule, do: put_rule(master, rule), else: master))
    end
  end

  defp local(%Date{} = day), do: day
  defp local(time), do: {DateTime.to_naive(time), time.time_zone}

  @dates ~w(EXDATE RDATE RECURRENCE-ID)
  @own ~w(DTSTART DTEND)

  defp shift_exceptions(%{name: "VEVENT"} = component, shift, resource) do
    names = if ICalendar.get(component, "RECURRENCE-ID"), do: @dates ++ @own, else: @dates

    properties =
      Enum.flat_map(component.properties, fn {name, _, _} = property ->
        if name in names, do: shifted(property, shift, resource), else: [property]
      end)

    %{component | properties: properties}
  end

  defp shift_exceptions(component, _shift, _resource), do: component

  defp shifted({name, _, _} = property, shift, resource) do
    {_, zone} = local(elem(span(resource), 0)) |> zone_of()

    for time <- ICalendar.times(property, resource.calendar) do
      case time do
        %Date{} = day ->
          ICalendar.time_property(name, Date.add(day, div(shift, @day)))

        time ->
          local = time |> ICalendar.instant(default(resource)) |> TimeZones.shift(zone)
          local = local |> DateTime.to_naive() |> NaiveDateTime.add(shift, :second)
          ICalendar.time_property(name, local |> TimeZones.local(zone) |> elem(0))
      end
    end
  end

  defp zone_of(%Date{} = day), do: {day, "UTC"}
  defp zone_of({local, zone}), do: {local, zone}

  @doc "Divides a series at an event: the part before it, and the rest with a name of its own."
  @spec divide(resource(), event(), String.t()) :: {resource(), resource()}
  def divide(resource, event, key) do
    at = key_of(event.original)
    earlier? = &(compare(&1, at) == :lt)
    master = master(resource)
    first = time(master, "DTSTART", resource)
    rule = rule(resource)

    old =
      resource
      |> keep_overrides(earlier?)
      |> then(fn old ->
        master = old |> master() |> keep_dates(earlier?, resource)
        rule = rule && Recurrence.before(rule, event.original)
        put_master(old, if(rule, do: put_rule(master, rule), else: master))
      end)

    {length, _} = duration(master, first, resource)
    original = original_point(event.original, first)

    ends =
      if match?(%Date{}, original),
        do: Date.add(original, length),
        else: DateTime.add(original, length, :second, TimeZones)

    later =
      resource
      |> keep_overrides(&(not earlier?.(&1)))
      |> then(fn later ->
        master =
          later
          |> master()
          |> keep_dates(&(not earlier?.(&1)), resource)
          |> put_times(original, ends)

        rule = rule && rest(rule, first, event, resource)
        put_master(later, if(rule, do: put_rule(master, rule), else: master))
      end)
      |> replace(fn component ->
        if component.name == "VEVENT",
          do: ICalendar.put(component, "UID", [{"UID", [], key}]),
          else: component
      end)

    {old, %{later | file: key <> ".ics"}}
  end

  defp compare(%Date{} = one, %Date{} = other), do: Date.compare(one, other)
  defp compare(one, other) when is_integer(one) and is_integer(other) and one < other, do: :lt
  defp compare(_, _), do: :gt

  defp original_point(%DateTime{} = time, {_, zone}) when is_binary(zone),
    do: TimeZones.shift(time, zone)

  defp original_point(original, _first), do: original

  defp keep_dates(component, keep?, resource) do
    properties =
      Enum.flat_map(component.properties, fn {name, _, _} = property ->
        if name in ["EXDATE", "RDATE"] do
          for time <- ICalendar.times(property, resource.calendar),
              keep?.(key(time, resource)),
              do: time_like(name, point(time, resource), resource)
        else
          [property]
        end
      end)

    %{component | properties: properties}
  end

  # The rest of a series with a number of events; deleted ones count.
  defp rest(rule, first, event, resource) do
    case Recurrence.count_of(rule) do
      nil ->
        rule

      count ->
        start = local_seconds(first)
        original = local(original_point(event.original, first))
        deadline = resource.calendar.deadline
        earlier = ICalendar.dates(rule, start, start, local_seconds(original), deadline)
        Recurrence.put_count(rule, max(count - length(earlier), 1))
    end
  end
end
