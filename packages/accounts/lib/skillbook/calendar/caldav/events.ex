defmodule Skillbook.Calendar.CalDAV.Events do
  @moduledoc false
  # The events of a calendar's file: a single one, or a series with its rule and the events that
  # differ from it. Reads them as maps of `Skillbook.Calendar`, and changes the file.
  #
  # An event of a series is known by its original start, as an instant: programs write it in any
  # zone. Properties that are not changed stay as they are.

  alias Skillbook.Calendar.{ICalendar, Recurrence, Series, TimeZones}
  alias Skillbook.Drive.Types
  alias Skillbook.Support.Number

  @type resource :: Skillbook.Calendar.CalDAV.Server.resource()
  @type component :: ICalendar.component()
  @type event :: Skillbook.Calendar.event()
  @type point :: DateTime.t() | Date.t()

  @max_attendees 50
  @max_reminders 20
  @max_attachments 50
  # Events of a series that differ from it.
  @max_overrides 2_000
  # Changes of a series that hold for all later events.
  @max_ranges 50
  @day 86_400
  # The properties of a series that an event of it does not have.
  @repeating ~w(RRULE RDATE EXDATE)
  # How far the next event of a series is looked for.
  @carried 5 * 366 * @day
  @range {"RANGE", "THISANDFUTURE"}
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

    if recurring?(master) do
      changed = changed(resource)
      first = time(master, "DTSTART", resource)
      {low, high} = originals(changed, first, resource, from, to)
      excluded = excluded(master, resource)
      periods = periods(master, first, resource)

      # One at a time: most callers want a few of what may be thousands.
      regular =
        master
        |> dates(first, resource, low, high)
        |> Stream.map(&{&1, like(first, &1)})
        |> Stream.reject(fn {_, time} ->
          key = key(time, resource)
          key in excluded or is_map_key(changed.single, key)
        end)
        |> Stream.map(fn {local, time} ->
          {component, shift} = of_series(changed, key(time, resource))
          length = if shift == 0, do: periods[local]
          event(component, resource, like(first, local + shift), point(time, resource), length)
        end)

      moved =
        for {_key, {component, time}} <- changed.single,
            do: differing(component, time, resource)

      Stream.concat(Enum.reject(moved, &is_nil/1), regular)
    else
      [event(master, resource, time(master, "DTSTART", resource), nil)]
    end
  end

  # The local seconds between which events of a span have their original starts.
  defp originals(changed, first, resource, from, to) do
    components = [
      {master(resource), 0} | for({_, component, shift} <- changed.later, do: {component, shift})
    ]

    lengths =
      for {component, _} <- components, do: component |> duration_of(resource) |> in_seconds()

    shifts = for {_, shift} <- components, do: shift
    given = for {_, length} <- periods(master(resource), first, resource), do: in_seconds(length)
    longest = Enum.max(lengths ++ given)

    {DateTime.to_unix(from) - longest - @reach - Enum.max(shifts),
     DateTime.to_unix(to) + @reach - Enum.min(shifts)}
  end

  defp in_seconds({days, seconds}), do: days * @day + seconds

  defp recurring?(master),
    do: ICalendar.get(master, "RRULE") != nil or ICalendar.get(master, "RDATE") != nil

  # Local seconds of all starts in a range.
  defp dates(master, first, resource, low, high) do
    ruled =
      for {_, _, rule} <- master |> ICalendar.all("RRULE") |> Enum.take(4),
          date <- ruled(rule, first, resource, low, high),
          do: date

    given =
      for time <- times(master, "RDATE", resource), do: series_seconds(time, first, resource)

    # Without a rule, the start is one of the dates.
    given = if ICalendar.get(master, "RRULE"), do: given, else: [local_seconds(first) | given]
    (ruled ++ Enum.filter(given, &(&1 in low..high//1))) |> Enum.sort() |> Enum.dedup()
  end

  # The dates of a rule. Its end is an instant, and local times near a change of the clocks are
  # none in order: some are skipped, others come twice.
  defp ruled(rule, first, resource, low, high) do
    {rule, last} = ICalendar.local_rule(rule, with_zone(first, resource))

    for date <- ICalendar.dates(rule, local_seconds(first), low, high, resource.calendar.steps),
        last == nil or date + @reach <= last or key(like(first, date), resource) <= last,
        do: date
  end

  defp local_seconds(%Date{} = day),
    do: day |> NaiveDateTime.new!(~T[00:00:00]) |> ICalendar.seconds()

  defp local_seconds({local, _zone}), do: ICalendar.seconds(local)

  # The same, by the clock of a series. Times of its own zone stay as they are written, also where
  # the clocks skip them.
  defp series_seconds({local, zone}, {_, zone}, _resource), do: ICalendar.seconds(local)

  defp series_seconds({_, _} = time, {_, zone}, resource) do
    time
    |> ICalendar.instant(default(resource))
    |> ICalendar.local(zone, default(resource))
    |> ICalendar.seconds()
  end

  defp series_seconds(time, _first, _resource), do: local_seconds(time)

  # The lengths of dates that are given as periods, by their local seconds.
  defp periods(master, first, resource) do
    for {start, ends} <- ICalendar.all_spans(master, "RDATE", resource.calendar),
        ends != nil,
        into: %{} do
      length =
        if is_binary(ends),
          do: length_of(ends),
          else: {0, max(key(ends, resource) - key(start, resource), 0)}

      {series_seconds(start, first, resource), length}
    end
  end

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

  # The events that differ from their series: `single` by their original starts, and `later` those
  # of which the change holds for all later events too (RANGE=THISANDFUTURE), the last one first,
  # with the seconds by which it moves them.
  defp changed(resource) do
    differing = Enum.filter(resource.calendar.components, &(event?(&1) and differs?(&1)))
    if length(differing) > @max_overrides, do: throw(:budget)

    single =
      for component <- differing,
          time = time(component, "RECURRENCE-ID", resource),
          into: %{},
          do: {key(time, resource), {component, time}}

    later =
      for {key, {component, original}} <- single,
          range?(component),
          shift = shift(component, original, resource),
          do: {key, component, shift}

    {later, _} =
      later |> Enum.sort_by(&key_seconds(elem(&1, 0)), :desc) |> Enum.split(@max_ranges)

    %{series: master(resource), single: single, later: later}
  end

  defp range?(component) do
    {_, parameters, _} = ICalendar.get(component, "RECURRENCE-ID")
    @range in parameters
  end

  # By the clock of the series.
  defp shift(component, original, resource) do
    first = time(master(resource), "DTSTART", resource)

    case {time(component, "DTSTART", resource), original, first} do
      {%Date{} = start, %Date{}, %Date{}} ->
        Date.diff(start, original) * @day

      {{_, _} = start, {_, _}, {_, _}} ->
        series_seconds(start, first, resource) - series_seconds(original, first, resource)

      _ ->
        nil
    end
  end

  defp key_seconds(%Date{} = day), do: local_seconds(day)
  defp key_seconds(seconds), do: seconds

  # The event by which one without a change of its own is made, and by how much it is moved.
  defp of_series(changed, key) do
    at = key_seconds(key)

    Enum.find_value(changed.later, {changed.series, 0}, fn {from, component, shift} ->
      if key_seconds(from) < at, do: {component, shift}
    end)
  end

  defp differing(component, original, resource) do
    case time(component, "DTSTART", resource) do
      nil -> nil
      start -> event(component, resource, start, point(original, resource))
    end
  end

  # The length of an event in days and seconds: DTEND, DURATION, a day, or nothing. Days are those
  # of a calendar, which may have 23 hours (section 3.3.6).
  defp duration(component, start, resource) do
    case {start, time(component, "DTEND", resource), ICalendar.get(component, "DURATION")} do
      {%Date{}, %Date{} = ends, _} ->
        {max(Date.diff(ends, start), 1), 0}

      {{_, _}, {_, _} = ends, _} ->
        [start, ends] = for time <- [start, ends], do: key(time, resource)
        {0, max(ends - start, 0)}

      {%Date{}, _, duration} ->
        {duration |> length_of() |> elem(0) |> max(1), 0}

      {_, _, duration} ->
        length_of(duration)
    end
  end

  @duration ~r/\A\+?P (?:(\d{1,4})W)? (?:(\d{1,5})D)?
               (?:T (?:(\d{1,6})H)? (?:(\d{1,7})M)? (?:(\d{1,8})S)?)?\z/x

  defp length_of(nil), do: {0, 0}
  defp length_of({_, _, value}), do: length_of(value)

  defp length_of(value) do
    case Regex.run(@duration, value) do
      [_ | parts] ->
        numbers = for text <- parts, do: if(text == "", do: 0, else: Number.integer!(text))
        [weeks, days, hours, minutes, seconds] = Enum.take(numbers ++ [0, 0, 0, 0, 0], 5)
        {weeks * 7 + days, hours * 3_600 + minutes * 60 + seconds}

      nil ->
        {0, 0}
    end
  end

  @doc "The event of an original start, or with `nil` the event or series itself."
  @spec find(resource(), point() | nil, String.t()) :: event() | nil
  def find(resource, original, default) do
    resource = Map.put(resource, :default, default)

    cond do
      not readable?(resource) ->
        nil

      original == nil ->
        master = master(resource)
        %{event(master, resource, first(resource), nil) | repeat: rule(resource)}

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

  defp event(component, resource, start, original, length \\ nil) do
    first = point(start, resource)
    ends = later(start, length || duration_of(component, resource), resource)
    guests = ICalendar.all(component, "ATTENDEE")
    own = Enum.find(guests, &own?(&1, resource))
    named = named(guests, own)
    organizer = ICalendar.get(component, "ORGANIZER")

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
      attendees: for(guest <- named, do: attendee(guest, resource)),
      more_attendees: length(guests) > @max_attendees,
      organizer: address(organizer),
      mine: organizer == nil or own?(organizer, resource),
      answer: own && attendee(own, resource).response,
      status: status(component),
      conference: conference(component),
      reminders: reminders(component, first, ends, resource),
      attachments: component |> attachments() |> Enum.map(&Map.delete(&1, :data))
    }
  end

  defp duration_of(component, resource),
    do: duration(component, time(component, "DTSTART", resource), resource)

  # The end of an event: days by the clock of its zone, then seconds.
  defp later(%Date{} = start, {days, _}, _resource), do: Date.add(start, days)

  defp later({local, zone}, {days, seconds}, resource) do
    {NaiveDateTime.add(local, days * @day, :second), zone}
    |> point(resource)
    |> DateTime.add(seconds, :second, TimeZones)
  end

  defp zone_name(%Date{}, _resource), do: nil
  defp zone_name({_, zone}, _resource) when is_binary(zone), do: zone
  defp zone_name({_, nil}, resource), do: default(resource)
  defp zone_name({_, _rules}, _resource), do: nil

  # The user is among those that are shown.
  defp named(guests, own) do
    case Enum.split(guests, @max_attendees) do
      {shown, []} -> shown
      {shown, _} -> if own == nil or own in shown, do: shown, else: [own | tl(shown)]
    end
  end

  defp attendee({_, parameters, _} = guest, resource) do
    response = parameters |> parameter("PARTSTAT") |> to_string() |> String.upcase()

    %{
      email: address(guest),
      name: parameter(parameters, "CN"),
      response: Map.get(@responses, response, "needs_action"),
      comment: nil,
      optional: parameter(parameters, "ROLE") == "OPT-PARTICIPANT",
      self: own?(guest, resource)
    }
  end

  # Whether a guest or organizer is the user, by one of the addresses of the account. Some servers
  # write an address of their own, and the one of mail beside it.
  defp own?({_, parameters, value}, resource) do
    own = Map.get(resource, :addresses, [])
    own != [] and Enum.any?([value, parameter(parameters, "EMAIL")], &(&1 && bare(&1) in own))
  end

  @doc "An address as it is compared with others."
  @spec bare(String.t()) :: String.t()
  def bare(address),
    do: address |> String.trim() |> String.downcase() |> String.replace_prefix("mailto:", "")

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
    changed = changed(resource)

    Enum.reject(events, fn event ->
      event.answer == "declined" or transparent?(component(changed, event.original))
    end)
  end

  # The component by which an event is made.
  defp component(changed, nil), do: changed.series

  defp component(changed, original) do
    case Map.get(changed.single, key_of(original)) do
      {component, _} -> component
      nil -> changed |> of_series(key_of(original)) |> elem(0)
    end
  end

  defp transparent?(component), do: ICalendar.text(component, "TRANSP") == "TRANSPARENT"

  # Reminders (RFC 5545, section 3.6.6)

  defp alarms(component), do: Enum.filter(component.components, &(&1.name == "VALARM"))

  defp reminders(component, start, ends, resource) do
    for alarm <- component |> alarms() |> Enum.take(@max_reminders),
        {minutes, at} <- List.wrap(trigger(alarm, start, ends, resource)),
        do: %{method: action(alarm), minutes: minutes, at: at}
  end

  defp action(alarm), do: alarm |> ICalendar.text("ACTION") |> to_string() |> String.downcase()

  # Minutes before the start, or a time.
  defp trigger(alarm, start, ends, resource) do
    with {_, parameters, value} = property <- ICalendar.get(alarm, "TRIGGER") do
      case {parameter(parameters, "VALUE"), parameter(parameters, "RELATED")} do
        {"DATE-TIME", _} -> at(ICalendar.time(property, resource.calendar), resource)
        {_, "END"} -> {before(value) - span(start, ends), nil}
        _ -> {before(value), nil}
      end
    end
  end

  defp at({_, _} = time, resource), do: {nil, point(time, resource)}
  defp at(_, _resource), do: nil

  defp before("-" <> duration), do: duration |> length_of() |> in_seconds() |> div(60)
  defp before(duration), do: -(duration |> length_of() |> in_seconds() |> div(60))

  defp span(%Date{} = start, ends), do: Date.diff(ends, start) * 1_440
  defp span(start, ends), do: ends |> DateTime.diff(start) |> div(60)

  # Sets the reminders on the screen. Those that stay keep what other programs wrote into them,
  # and reminders of other kinds are not of the user's making here.
  defp put_reminders(component, minutes, resource) do
    {start, ends} = ends_of(component, resource)
    shown = &(action(&1) == "display" and &1.name == "VALARM")
    of = &(&1 |> trigger(start, ends, resource) |> then(fn at -> at && elem(at, 0) end))
    kept = Enum.reject(component.components, &(shown.(&1) and of.(&1) not in minutes))
    known = for alarm <- kept, shown.(alarm), do: of.(alarm)
    added = for before <- minutes, before not in known, do: alarm(before)
    %{component | components: kept ++ added}
  end

  defp ends_of(component, resource) do
    start = time(component, "DTSTART", resource)
    {point(start, resource), later(start, duration_of(component, resource), resource)}
  end

  defp alarm(minutes) do
    properties = [
      {"ACTION", [], "DISPLAY"},
      {"DESCRIPTION", [], "Reminder"},
      {"TRIGGER", [], trigger_text(minutes)}
    ]

    %{name: "VALARM", properties: properties, components: []}
  end

  defp trigger_text(0), do: "PT0S"
  defp trigger_text(minutes) when rem(minutes, 1_440) == 0, do: "-P#{div(minutes, 1_440)}D"
  defp trigger_text(minutes) when rem(minutes, 60) == 0, do: "-PT#{div(minutes, 60)}H"
  defp trigger_text(minutes), do: "-PT#{minutes}M"

  # Attachments (RFC 5545, section 3.8.1.1; RFC 8607)

  @names ~w(FILENAME X-FILENAME X-APPLE-FILENAME)

  defp attachments(component) do
    component
    |> ICalendar.all("ATTACH")
    |> Enum.take(@max_attachments)
    |> Enum.with_index(1)
    |> Enum.map(fn {{_, parameters, value}, part} ->
      inline? = parameter(parameters, "VALUE") == "BINARY"

      %{
        part: part,
        name: Enum.find_value(@names, &parameter(parameters, &1)),
        type: parameter(parameters, "FMTTYPE"),
        size:
          if(inline?, do: decoded_size(value), else: Types.size(parameter(parameters, "SIZE"))),
        url: unless(inline?, do: value),
        data: if(inline?, do: value)
      }
    end)
  end

  defp decoded_size(value) do
    padding = Enum.find_value([{"==", 2}, {"=", 1}, {"", 0}], &padding(&1, value))
    max(div(byte_size(value) * 3, 4) - padding, 0)
  end

  defp padding({mark, size}, value), do: if(String.ends_with?(value, mark), do: size)

  @doc "The bytes of an attachment in an event, `:error` if there is none of this number."
  @spec attachment(resource(), point() | nil, pos_integer()) ::
          {:ok, Skillbook.Drive.content()} | :error
  def attachment(resource, original, part) do
    found = resource |> changed() |> component(original) |> attachments()

    with %{data: data} = file when data != nil <- Enum.find(found, &(&1.part == part)),
         {:ok, bytes} <- Base.decode64(data, ignore: :whitespace, padding: false) do
      name = file.name || "attachment #{part}"
      {:ok, %{name: name, type: file.type || "application/octet-stream", data: bytes}}
    else
      _ -> :error
    end
  end

  defp add_attachments(component, urls) do
    known = for {_, _, value} <- ICalendar.all(component, "ATTACH"), do: value
    added = for url <- urls, url not in known, do: {"ATTACH", [], url}
    %{component | properties: component.properties ++ Enum.uniq(added)}
  end

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
      |> add_attachments(new.attach)
      |> touch()

    properties = [{"VERSION", [], "2.0"}, {"PRODID", [], "-//Skillbook//Skillbook//EN"}]
    event = %{event | components: Enum.map(new.reminders || [], &alarm/1)}
    with_zones(%{name: "VCALENDAR", properties: properties, components: [event]})
  end

  # The number of changes, and when the last was made, which other programs compare.
  defp touch(event) do
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
    |> stamp()
  end

  # Answers and reminders are no changes of the event that others would have to take up (RFC 5546,
  # section 2.1.4).
  defp stamp(event) do
    now = Recurrence.utc(DateTime.utc_now())

    event
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

  @doc "Replaces the event or the series, after changes of these fields."
  @spec put_master(resource(), component(), Skillbook.Calendar.changes()) :: resource()
  def put_master(resource, master, changes \\ %{}) do
    old = master(resource)
    new = mark(master, changes)
    replace(resource, fn component -> if component == old, do: new, else: component end)
  end

  defp mark(component, changes) do
    if Map.keys(changes) == [:reminders], do: stamp(component), else: touch(component)
  end

  defp replace(resource, change) do
    components = resource.calendar.components |> Enum.map(change) |> Enum.reject(&is_nil/1)
    %{resource | calendar: with_zones(%{resource.calendar | components: components})}
  end

  @doc "The event of a series that differs from it, made from the series if there is none."
  @spec override(resource(), event()) :: component()
  def override(resource, event) do
    changed = changed(resource)

    case Map.get(changed.single, key_of(event.original)) do
      {component, _} ->
        without_range(component)

      nil ->
        {component, _shift} = of_series(changed, key_of(event.original))

        @repeating
        |> Enum.reduce(component, &ICalendar.put(&2, &1, []))
        |> ICalendar.put("RECURRENCE-ID", [
          original_like("RECURRENCE-ID", event.original, resource)
        ])
        |> put_times_like(event.start, event.end, resource)
    end
  end

  defp without_range(component) do
    {name, parameters, value} = ICalendar.get(component, "RECURRENCE-ID")
    ICalendar.put(component, name, [{name, List.keydelete(parameters, "RANGE", 0), value}])
  end

  # In the zone of the series, as its own dates.
  defp time_like(name, point, resource),
    do: time_like(name, point, ICalendar.get(master(resource), "DTSTART"), resource)

  # The original start of an event: by its rule, also where the clocks skip it.
  defp original_like(name, %Date{} = day, resource), do: time_like(name, day, resource)

  defp original_like(name, point, resource) do
    {name, parameters, value} = time_like(name, point, resource)
    first = time(master(resource), "DTSTART", resource)
    by_clock = point |> original_time(first, resource) |> local_seconds()

    case by_rule(point, by_clock, first, resource) do
      ^by_clock -> {name, parameters, value}
      local -> {name, parameters, local |> ICalendar.naive() |> ICalendar.basic_time()}
    end
  end

  defp time_like(name, point, like, resource),
    do: ICalendar.property_like(name, point, like, resource.calendar, default(resource))

  @doc "Sets the times of an event, in the zones that it has."
  @spec put_times_like(component(), point(), point(), resource()) :: component()
  def put_times_like(component, start, ends, resource) do
    old = ICalendar.get(component, "DTSTART")

    # An end may have a zone of its own.
    old_end =
      if match?({_, _}, time(component, "DTEND", resource)),
        do: ICalendar.get(component, "DTEND"),
        else: old

    component
    |> ICalendar.put("DURATION", [])
    |> ICalendar.put("DTSTART", [time_like("DTSTART", start, old, resource)])
    |> ICalendar.put("DTEND", [time_like("DTEND", ends, old_end, resource)])
  end

  @doc "Adds or replaces an event that differs from its series, after changes of these fields."
  @spec put_override(resource(), component(), event(), Skillbook.Calendar.changes()) :: resource()
  def put_override(resource, override, event, changes \\ %{}),
    do: with_override(resource, mark(override, changes), event)

  defp with_override(resource, override, event) do
    resource = without_override(resource, event)
    components = resource.calendar.components ++ [override]
    %{resource | calendar: with_zones(%{resource.calendar | components: components})}
  end

  defp without_override(resource, event) do
    key = key_of(event.original)
    changed = changed(resource)

    resource =
      case List.keyfind(changed.later, key, 0) do
        {_, component, shift} ->
          carry(resource, {component, shift}, next(resource, changed, event), changed)

        nil ->
          resource
      end

    keep_overrides(resource, &(&1 != key))
  end

  # The next event of a series that is like the others.
  defp next(resource, changed, event) do
    first = time(changed.series, "DTSTART", resource)
    at = event.original |> original_time(first, resource) |> local_seconds()
    next(changed.series, first, resource, at + 1, &is_map_key(changed.single, &1))
  end

  # The first date from a local second on that is not excluded.
  defp next(master, first, resource, from, skip?) do
    excluded = excluded(master, resource)

    master
    |> dates(first, resource, from, from + @carried)
    |> Enum.find_value(fn date ->
      key = first |> like(date) |> key(resource)
      if key not in excluded and not skip?.(key), do: like(first, date)
    end)
  end

  defp excluded(master, resource),
    do: master |> times("EXDATE", resource) |> MapSet.new(&key(&1, resource))

  # The start of the first event, which may be a date before that of the series. The start of the
  # series may be excluded, and is kept nevertheless, since its rule counts from there (RFC 5545,
  # section 3.8.5.1).
  defp first(resource) do
    master = master(resource)
    start = time(master, "DTSTART", resource)

    given =
      for time <- times(master, "RDATE", resource), do: series_seconds(time, start, resource)

    from = Enum.min([local_seconds(start) | given])

    if from == local_seconds(start) and key(start, resource) not in excluded(master, resource),
      do: start,
      else: next(master, start, resource, from, fn _ -> false end) || start
  end

  # A change that holds for all later events holds from another one of them on.
  defp carry(resource, {component, shift}, original, changed) do
    if original == nil or component == changed.series or
         is_map_key(changed.single, key(original, resource)) do
      resource
    else
      start = like(original, local_seconds(original) + shift)
      ends = later(start, duration_of(component, resource), resource)
      id = time_like("RECURRENCE-ID", point(original, resource), resource)

      component =
        component
        |> ICalendar.put("RECURRENCE-ID", [put_elem(id, 1, [@range | elem(id, 1)])])
        |> put_times_like(point(start, resource), ends, resource)

      components = resource.calendar.components ++ [component]
      %{resource | calendar: %{resource.calendar | components: components}}
    end
  end

  defp keep_overrides(resource, keep?) do
    replace(resource, fn component ->
      case component.name == "VEVENT" and time(component, "RECURRENCE-ID", resource) do
        time when time in [nil, false] -> component
        time -> if keep?.(key(time, resource)), do: component
      end
    end)
  end

  @doc "Changes the fields of a series, also where a change holds for all later events."
  @spec put_fields(resource(), Skillbook.Calendar.changes()) :: resource()
  def put_fields(resource, changes) do
    replace(resource, fn component ->
      if event?(component) and differs?(component) and range?(component),
        do: component |> apply_fields(changes, resource) |> mark(changes),
        else: component
    end)
  end

  @doc "Answers the invitation to an event, or to all of a series. `:error` if there is none."
  @spec answer(resource(), event(), :one | :all, Skillbook.Calendar.answer()) ::
          {:ok, resource()} | :error
  def answer(resource, event, :one, answer) do
    override = override(resource, event)

    if invited?(override, resource),
      do: {:ok, with_override(resource, put_answer(override, answer, resource), event)},
      else: :error
  end

  def answer(resource, _event, :all, answer) do
    asked? = &(event?(&1) and invited?(&1, resource))

    if Enum.any?(resource.calendar.components, asked?) do
      put = &if(asked?.(&1), do: put_answer(&1, answer, resource), else: &1)
      {:ok, replace(resource, put)}
    else
      :error
    end
  end

  defp invited?(component, resource),
    do: component |> ICalendar.all("ATTENDEE") |> Enum.any?(&own?(&1, resource))

  defp put_answer(component, %{response: response, comment: comment}, resource) do
    answered = {"PARTSTAT", String.upcase(response)}

    properties =
      for property <- component.properties do
        with {"ATTENDEE", parameters, value} <- property, true <- own?(property, resource) do
          {"ATTENDEE", List.keystore(parameters, "PARTSTAT", 0, answered), value}
        else
          _ -> property
        end
      end

    comment = if comment, do: [{"COMMENT", [], ICalendar.escape(comment)}], else: []
    stamp(%{component | properties: properties ++ (comment -- properties)})
  end

  @doc """
  Whether the server tells the organizer of answers: it does so by itself, unless the event says
  that another program does (RFC 6638, section 7.1).
  """
  @spec told?(resource()) :: boolean()
  def told?(resource) do
    case ICalendar.get(master(resource), "ORGANIZER") do
      {_, parameters, _} -> parameter(parameters, "SCHEDULE-AGENT") in [nil, "SERVER"]
      nil -> false
    end
  end

  @doc "Removes one event of a series."
  @spec exclude(resource(), event()) :: resource()
  def exclude(resource, event) do
    resource = without_override(resource, event)
    put_master(resource, resource |> master() |> add_exdate(event.original, resource))
  end

  defp add_exdate(master, point, resource),
    do: %{master | properties: master.properties ++ [original_like("EXDATE", point, resource)]}

  @doc "Changes the texts, reminders and attachments that are given."
  @spec apply_fields(component(), Skillbook.Calendar.changes(), resource()) :: component()
  def apply_fields(component, changes, resource) do
    component =
      for {field, name} <- [title: "SUMMARY", description: "DESCRIPTION", location: "LOCATION"],
          Map.has_key?(changes, field),
          reduce: component do
        component -> ICalendar.put_text(component, name, changes[field])
      end

    component = add_attachments(component, Map.get(changes, :attach, []))

    # A calendar has no reminders of its own.
    if Map.has_key?(changes, :reminders),
      do: put_reminders(component, changes.reminders || [], resource),
      else: component
  end

  @doc "Changes the rule of a series, if one is given. It counts from the first event on."
  @spec apply_rule(component(), Skillbook.Calendar.changes(), resource()) :: component()
  def apply_rule(component, %{repeat: rule}, resource) do
    first = first(resource)

    if first == time(component, "DTSTART", resource),
      do: put_rule(component, rule),
      else: component |> put_start(first, resource) |> put_rule(rule)
  end

  def apply_rule(component, _changes, _resource), do: component

  defp put_rule(component, nil),
    do: Enum.reduce(@repeating, component, &ICalendar.put(&2, &1, []))

  defp put_rule(component, rule), do: ICalendar.put(component, "RRULE", [{"RRULE", [], rule}])

  @doc "Sets the times of an event."
  @spec put_times(component(), point(), point()) :: component()
  def put_times(component, start, ends) do
    component
    |> ICalendar.put("DURATION", [])
    |> ICalendar.put("DTSTART", [ICalendar.time_property("DTSTART", start)])
    |> ICalendar.put("DTEND", [ICalendar.time_property("DTEND", ends)])
  end

  # Sets the start of a series, whose events stay as long as they are.
  defp put_start(component, start, resource),
    do: put_start(component, start, duration_of(component, resource), resource)

  # A rule goes by the clock, so a start that the clocks skip stays the one of the rule. Its end
  # by the clock would be that of a longer event.
  defp put_start(component, start, {days, seconds} = length, resource) do
    point = point(start, resource)
    {name, parameters, _} = ICalendar.get(component, "DTSTART")

    if original_time(point, start, resource) == start do
      put_times_like(component, point, later(start, length, resource), resource)
    else
      component
      |> ICalendar.put("DTEND", [])
      |> ICalendar.put("DURATION", [{"DURATION", [], "P#{days}DT#{seconds}S"}])
      |> ICalendar.put(name, [{name, parameters, ICalendar.basic_time(elem(start, 0))}])
    end
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

  @doc "The day of a time by the clock of a series."
  @spec day(resource(), point()) :: Date.t()
  def day(_resource, %Date{} = day), do: day

  def day(resource, time) do
    case time(master(resource), "DTSTART", resource) do
      {_, zone} -> time |> ICalendar.local(zone, default(resource)) |> NaiveDateTime.to_date()
      %Date{} -> DateTime.to_date(time)
    end
  end

  @doc "Whether the file has a series."
  @spec series?(resource()) :: boolean()
  def series?(resource), do: recurring?(master(resource))

  @doc "Whether an event is the first of its series."
  @spec first?(resource(), event()) :: boolean()
  def first?(resource, event), do: key(first(resource), resource) == key_of(event.original)

  @doc """
  Moves a series with its exceptions by as much as one of its events moves, by the clock of the
  series, and gives it another rule or none. An event that the clocks moved, since they skip the
  time of its rule, moves from that time.
  """
  @spec move(resource(), event(), {point(), point()}, String.t() | nil) :: resource()
  def move(resource, event, {start, ends}, rule) do
    first = time(master(resource), "DTSTART", resource)

    case {first, event.start, start} do
      {%Date{}, %Date{} = old, %Date{}} ->
        move_by(resource, Date.diff(start, old) * @day, {Date.diff(ends, start), 0}, rule)

      {{_, zone}, %DateTime{} = old, %DateTime{}} ->
        [to, from] = for time <- [start, old], do: ICalendar.local(time, zone, default(resource))
        from = ICalendar.seconds(from)
        # An event that differs from its series moves by the clock.
        like_series? = event.original in [nil, old]
        from = if like_series?, do: by_rule(old, from, first, resource), else: from
        shift = ICalendar.seconds(to) - from
        move_by(resource, shift, {0, DateTime.diff(ends, start)}, rule)

      _ ->
        # Exceptions of days are none of times.
        resource = keep_overrides(resource, fn _ -> false end)

        span =
          Series.move({point(first(resource), resource), nil}, {event.start, nil}, {start, ends})

        master = Enum.reduce(~w(RDATE EXDATE), master(resource), &ICalendar.put(&2, &1, []))
        master = put_times(master, elem(span, 0), elem(span, 1))
        put_master(resource, put_rule_of(master, rule))
    end
  end

  # The local seconds of an instant by the rule of its series, which are those of the clock but
  # where it skips them. Those are within a day of a change of the clocks.
  defp by_rule(point, by_clock, first, resource) do
    before = point |> DateTime.add(-@day, :second, TimeZones) |> original_time(first, resource)

    if by_clock - local_seconds(before) == @day do
      by_clock
    else
      resource
      |> master()
      |> dates(first, resource, by_clock - @day, by_clock)
      |> Enum.find(by_clock, &(key(like(first, &1), resource) == key_of(point)))
    end
  end

  defp move_by(resource, shift, length, rule) do
    master = master(resource)
    first = time(master, "DTSTART", resource)
    moved = like(first, local_seconds(first) + shift)
    rule = rule && moved_until(rule, shift, first, resource)
    start = &put_start(&1, moved, length, resource)
    resource = replace(resource, &shift_exceptions(&1, shift, resource))
    put_master(resource, resource |> master() |> start.() |> put_rule_of(rule))
  end

  defp put_rule_of(master, nil), do: master
  defp put_rule_of(master, rule), do: put_rule(master, rule)

  # The last event of a rule stays the last one.
  defp moved_until(rule, shift, first, resource) do
    ICalendar.until(rule, fn
      %Date{} = day ->
        Date.add(day, div(shift, @day))

      until ->
        {_, zone} = with_zone(first, resource)

        local =
          until
          |> DateTime.from_naive!("Etc/UTC")
          |> ICalendar.local(zone, default(resource))
          |> NaiveDateTime.add(shift, :second)

        {local, zone} |> point(resource) |> TimeZones.shift("Etc/UTC") |> DateTime.to_naive()
    end)
  end

  @dates ~w(EXDATE RDATE RECURRENCE-ID)
  @own ~w(DTSTART DTEND)

  defp shift_exceptions(%{name: "VEVENT"} = component, shift, resource) do
    names = if ICalendar.get(component, "RECURRENCE-ID"), do: @dates ++ @own, else: @dates
    first = time(master(resource), "DTSTART", resource)
    change_times(component, names, &shifted(&1, shift, first, resource), resource)
  end

  defp shift_exceptions(component, _shift, _resource), do: component

  defp shifted(%Date{} = day, shift, _first, _resource), do: Date.add(day, div(shift, @day))

  defp shifted(time, shift, {_, _} = first, resource) do
    by_clock = series_seconds(time, first, resource)
    local = time |> point(resource) |> by_rule(by_clock, first, resource)
    first |> like(local + shift) |> point(resource)
  end

  defp shifted(time, shift, %Date{}, resource),
    do: time |> point(resource) |> DateTime.add(shift, :second, TimeZones)

  @doc "Divides a series at an event: the part before it, and the rest with a name of its own."
  @spec divide(resource(), event(), String.t()) :: {resource(), resource()}
  def divide(resource, event, key) do
    at = key_seconds(key_of(event.original))
    earlier? = &(key_seconds(&1) < at)
    first = time(master(resource), "DTSTART", resource)
    rule = rule(resource)
    {before, date} = before(rule, first, event.original, resource)

    old =
      resource
      |> keep_overrides(earlier?)
      |> then(fn old ->
        master = old |> master() |> keep_dates(earlier?, resource)
        rule = rule && ended(rule, {before, date}, first, event.original, resource)
        put_master(old, put_rule_of(master, rule))
      end)

    changed = changed(resource)
    original = original_time(event.original, first, resource)
    # The rule of a series counts from its start. So the new one starts at a date of the rule, and
    # if its first event is none of them, at the date before, which is excluded.
    start = like(first, date || List.last(before))

    later =
      resource
      |> carry(of_series(changed, key_of(event.original)), original, changed)
      |> keep_overrides(&(not earlier?.(&1)))
      |> then(fn later ->
        master =
          later
          |> master()
          |> keep_dates(&(not earlier?.(&1)), resource)
          |> put_start(start, resource)

        master = if date, do: master, else: add_exdate(master, point(start, resource), resource)
        counted = if date, do: length(before), else: length(before) - 1
        put_master(later, put_rule_of(master, rule && rest(rule, counted)))
      end)
      |> replace(fn component ->
        if component.name == "VEVENT",
          do: ICalendar.put(component, "UID", [{"UID", [], key}]),
          else: component
      end)

    {old, %{later | file: key <> ".ics"}}
  end

  # The dates of a rule before an event, and its own if it is one of them. All are counted for a
  # rule with a number of events, and of others the last ones are enough.
  defp before(nil, first, original, resource),
    do: {[], original |> original_time(first, resource) |> local_seconds()}

  defp before(rule, first, original, resource) do
    # Dates may be given that lie before the start.
    if key_seconds(key_of(original)) < key_seconds(key(first, resource)),
      do: {[], local_seconds(first)},
      else: ruled_before(rule, first, original, resource)
  end

  defp ruled_before(rule, first, original, resource) do
    at = key_seconds(key_of(original))
    start = local_seconds(first)
    by_clock = original |> original_time(first, resource) |> local_seconds()
    key = &key_seconds(key(like(first, &1), resource))
    all = by_clock - start
    reaches = if Recurrence.count_of(rule), do: [all], else: [@day, 366 * @day, all]

    Enum.find_value(reaches, {[start], nil}, fn reach ->
      # A day more, since the clocks may skip the date.
      dates = ruled(rule, first, resource, max(by_clock - reach, start), by_clock + @day)
      {before, rest} = Enum.split_while(dates, &(key.(&1) < at))
      date = Enum.find(rest, &(key.(&1) == at))
      if before != [] or date == start, do: {before, date}
    end)
  end

  defp original_time(%Date{} = day, _first, _resource), do: day

  defp original_time(time, {_, zone}, resource),
    do: {ICalendar.local(time, zone, default(resource)), zone}

  # A rule ends before an event, unless it ended sooner. Programs differ in when a skipped time
  # is, so before one it ends sooner by as much as the clocks skip, but not before its last event.
  defp ended(rule, {before, date}, first, original, resource) do
    count = Recurrence.count_of(rule)

    cond do
      count != nil and count <= length(before) ->
        rule

      is_struct(original, Date) ->
        Recurrence.before(rule, original)

      true ->
        by_clock = original |> original_time(first, resource) |> local_seconds()
        skipped = max(by_clock - (date || by_clock), 0)
        last = for date <- Enum.take(before, -1), do: key(like(first, date), resource) + 1
        ends = Enum.max([DateTime.to_unix(original) - skipped | last])
        rule |> Recurrence.before(DateTime.from_unix!(ends)) |> in_form(resource)
    end
  end

  # A rule ends in UTC, or for a floating series at a floating time (section 3.3.10).
  defp in_form(rule, resource) do
    case ICalendar.get(master(resource), "DTSTART") do
      {_, parameters, <<_::binary-15>>} ->
        if List.keymember?(parameters, "TZID", 0), do: rule, else: floating(rule, resource)

      _ ->
        rule
    end
  end

  defp floating(rule, resource) do
    local = &(&1 |> DateTime.from_naive!("Etc/UTC") |> ICalendar.local(nil, default(resource)))
    rule |> ICalendar.until(local) |> String.replace(~r/(UNTIL=\d{8}T\d{6})Z/, "\\1")
  end

  defp keep_dates(component, keep?, resource),
    do:
      change_times(component, ~w(EXDATE RDATE), &if(keep?.(key(&1, resource)), do: &1), resource)

  defp change_times(component, names, change, %{calendar: calendar} = resource) do
    properties =
      for {name, _, _} = property <- component.properties,
          property =
            if(name in names,
              do: ICalendar.change(property, calendar, default(resource), change),
              else: property
            ),
          do: property

    %{component | properties: properties}
  end

  # The rest of a series with a number of events, of which deleted ones count.
  defp rest(rule, before) do
    count = Recurrence.count_of(rule)
    if count, do: Recurrence.put_count(rule, max(count - before, 1)), else: rule
  end
end
