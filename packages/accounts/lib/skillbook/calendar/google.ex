defmodule Skillbook.Calendar.Google do
  @moduledoc """
  Calendars of Google, by version 3 of Google Calendar's interface.

  New events have ids of ours, so a repeated call makes no second event, and changes carry the
  version that was read, so they do not overwrite the changes of others. Google expands series
  and sends the invitations.
  """

  @behaviour Skillbook.Calendar

  alias Skillbook.Calendar
  alias Skillbook.Calendar.{ICalendar, Recurrence, Series, TimeZones}
  alias Skillbook.Connections.Client
  alias Skillbook.{CalendarError, NotFoundError, ServiceError}

  @base "https://www.googleapis.com/calendar/v3"
  # The table of scopes is the vendor's, by commands.
  @vendor Skillbook.Connections.Google

  # With more guests, Google returns the user alone.
  @max_attendees 50
  # Google may return short or empty pages.
  @max_pages 10
  @max_attachments 50
  # 2,500 events of a series.
  @max_counted_pages 10
  # Google knows the zones of its lines by their names.
  @no_zones %{name: "VCALENDAR", properties: [], components: []}
  @person "email,displayName,responseStatus,comment,optional,resource,self"
  @event "id,etag,status,summary,description,location,start,end,recurrence,recurringEventId," <>
           "originalStartTime,attendees(#{@person}),attendeesOmitted,organizer(email,self)," <>
           "hangoutLink,conferenceData(entryPoints(entryPointType,uri))," <>
           "reminders(useDefault,overrides(method,minutes)),attachments(fileUrl,title,mimeType)"
  # A page of which few events are wanted.
  @page 250

  @impl true
  def conferences?(_account), do: true

  @impl true
  def invitations?(_account), do: true

  @impl true
  def calendars(account) do
    fields = "items(id,summary,summaryOverride,timeZone,primary,accessRole)"
    request = [url: "#{@base}/users/me/calendarList", query: [maxResults: 250]]

    with {:ok, body} <- call(account, request, scopes: names(), fields: fields) do
      calendars =
        for item <- body["items"] || [] do
          %{
            id: item["id"],
            name: item["summaryOverride"] || item["summary"] || item["id"],
            zone: zone_name(item["timeZone"]),
            primary: item["primary"] == true,
            writable: item["accessRole"] in ["owner", "writer"]
          }
        end

      {:ok, Enum.sort_by(calendars, &{not &1.primary, &1.name})}
    end
  end

  @impl true
  def zone(account, calendar) do
    request = [url: events(calendar), query: [maxResults: 1]]

    with {:ok, body} <- found(account, request, [scopes: zones(), fields: "timeZone"], calendar),
         do: {:ok, zone_name(body["timeZone"])}
  end

  defp zone_name(nil), do: nil

  defp zone_name(name) do
    case TimeZones.fetch(name) do
      {:ok, name} -> name
      {:error, _} -> nil
    end
  end

  # Reading

  @impl true
  def list(account, query) do
    params = [
      singleEvents: true,
      orderBy: "startTime",
      timeMin: DateTime.to_iso8601(query.from),
      timeMax: DateTime.to_iso8601(query.to),
      timeZone: query.zone,
      maxAttendees: @max_attendees
    ]

    params = if query.text, do: [{:q, query.text} | params], else: params

    with {:ok, items, more} <- pages(account, query, params, nil, [], @max_pages),
         do: {:ok, %{events: Enum.map(items, &event(&1, query.zone)), more: more}}
  end

  # Google has no filter for the answers of the user.
  defp wanted(items, %{unanswered: true} = query) do
    kept =
      items |> Enum.map(&event(&1, query.zone)) |> Calendar.unanswered() |> MapSet.new(& &1.id)

    Enum.filter(items, &(&1["id"] in kept))
  end

  defp wanted(items, _query), do: items

  # Google leaves out cancelled events, but not the guests' own refusals.
  defp pages(account, query, params, page, found, pages) do
    wanted = query.limit - length(found)
    params = Keyword.put(params, :maxResults, if(query[:unanswered], do: @page, else: wanted + 1))
    request = [url: events(query.calendar), query: page(params, page)]
    fields = "nextPageToken,items(#{@event})"

    options = [scopes: read(), fields: fields]

    with {:ok, body} <- found(account, request, options, query.calendar) do
      items = wanted(found ++ (body["items"] || []), query)

      case body["nextPageToken"] do
        _ when length(items) > query.limit -> {:ok, Enum.take(items, query.limit), true}
        nil -> {:ok, items, false}
        _ when pages == 1 or length(items) == query.limit -> {:ok, items, true}
        next -> pages(account, query, params, next, items, pages - 1)
      end
    end
  end

  defp page(params, nil), do: params
  defp page(params, token), do: Keyword.put(params, :pageToken, token)

  @impl true
  def get(account, calendar, id, zone) do
    with {:ok, raw} <-
           fetch(account, calendar, id, read(), maxAttendees: @max_attendees, timeZone: zone),
         do: {:ok, event(raw, zone)}
  end

  # Google finds deleted events by their ids, too.
  defp fetch(account, calendar, id, scopes, params) do
    request = [url: event_url(calendar, id), query: params]

    case call(account, request, scopes: scopes) do
      {:ok, %{"status" => "cancelled"}} -> {:error, missing(id)}
      {:ok, raw} -> {:ok, raw}
      {:error, %ServiceError{status: status}} when status in [404, 410] -> {:error, missing(id)}
      error -> error
    end
  end

  # Writing

  @impl true
  def create(account, calendar, new) do
    body =
      %{
        "id" => new.key,
        "summary" => new.title,
        "description" => new.description,
        "location" => new.location,
        "start" => time(new.start),
        "end" => time(new.end),
        "recurrence" => new.repeat && ["RRULE:" <> new.repeat],
        "attendees" => if(new.attendees != [], do: Enum.map(new.attendees, &%{"email" => &1})),
        "conferenceData" => if(new.conference, do: conference(new.key)),
        "reminders" => new.reminders && reminders(new.reminders),
        "attachments" => if(new.attach != [], do: Enum.map(new.attach, &attachment/1))
      }
      |> Map.reject(fn {_, value} -> is_nil(value) end)

    with {:ok, raw} <- insert(account, calendar, body, new.notify),
         do: {:ok, event(raw, zone_of(new.start))}
  end

  # The id makes the call safe to repeat: the answer to a repeated one is that the event exists.
  defp insert(account, calendar, body, notify) do
    request = [method: :post, url: events(calendar), query: sending(notify), json: body]

    case found(account, request, [scopes: write(), repeat: true], calendar) do
      {:error, %ServiceError{status: 409}} ->
        # The event is there, even if it cannot be read now.
        with {:error, %ServiceError{} = error} <-
               fetch(account, calendar, body["id"], write(), maxAttendees: @max_attendees),
             do: {:error, %{error | unclear: true}}

      answer ->
        answer
    end
  end

  defp reminders(nil), do: %{"useDefault" => true, "overrides" => []}

  defp reminders(minutes) do
    overrides = for before <- minutes, do: %{"method" => "popup", "minutes" => before}
    %{"useDefault" => false, "overrides" => overrides}
  end

  defp attachment(url), do: %{"fileUrl" => url, "title" => url |> URI.parse() |> file_name(url)}

  defp file_name(%{path: path}, url) when path in [nil, "", "/"], do: url
  defp file_name(%{path: path}, _url), do: Path.basename(path)

  defp conference(key) do
    %{
      "createRequest" => %{
        "requestId" => key,
        "conferenceSolutionKey" => %{"type" => "hangoutsMeet"}
      }
    }
  end

  @impl true
  def update(account, calendar, %{series: nil} = event, changes, options),
    do: patch_event(account, calendar, event, changes, options)

  def update(account, calendar, event, changes, %{scope: :one} = options),
    do: patch_event(account, calendar, event, changes, options)

  def update(account, calendar, event, changes, options) do
    with {:ok, series} <- fetch(account, calendar, event.series, write(), []) do
      if options.scope == :all or first?(series, event),
        do: update_all(account, calendar, event, series, changes, options),
        else: update_following(account, calendar, event, series, changes, options)
    end
  end

  defp patch_event(account, calendar, event, changes, options) do
    # All guests are needed to add some, and so are attachments and reminders of other kinds.
    raw =
      if guests?(changes) or changes[:attach] || changes[:reminders],
        do: fetch(account, calendar, event.id, write(), []),
        else: {:ok, %{"etag" => event.version}}

    with {:ok, raw} <- raw do
      span =
        if start = changes[:start],
          do: in_zone({start, changes.end}, event.zone || zone_of(start))

      repeat = if Map.has_key?(changes, :repeat), do: repeat(changes.repeat)
      body = body(raw, changes, span, repeat, options.key)
      version = event.version || raw["etag"]
      patch(account, calendar, event.id, version, body, options.notify, event)
    end
  end

  defp update_all(account, calendar, event, series, changes, options) do
    with {:ok, rule} <- rule(series, event, changes) do
      span = span(series, event)

      moved =
        if start = changes[:start],
          do: Series.move(span, {event.start, event.end}, {start, changes.end})

      lines =
        if moved || Map.has_key?(changes, :repeat),
          do: lines(series, rule, changes, {span, moved || span}, fn _ -> true end)

      body = body(series, changes, moved, lines, options.key)
      id = event.series
      patch(account, calendar, id, series["etag"], body, options.notify, event)
    end
  end

  # A new series from this event on; then the old one ends before it. If that fails, the new one
  # is removed again.
  defp update_following(account, calendar, event, series, changes, options) do
    with {:ok, rule} <- rule(series, event, changes),
         {:ok, rule, first} <- rest_of_rule(account, calendar, event, series, rule, changes),
         body = new_series(series, event, changes, rule, first, options.key),
         {:ok, raw} <- insert(account, calendar, body, options.notify) do
      case end_series(account, calendar, event, series, options.notify) do
        {:ok, _} ->
          {:ok, event(raw, zone_of(event.start))}

        error ->
          _ = delete_event(account, calendar, options.key, raw["etag"], false)
          error
      end
    end
  end

  @copied ~w(summary description location attendees transparency visibility colorId reminders
             attachments guestsCanInviteOthers guestsCanModify guestsCanSeeOtherGuests)

  # The rule counts from `first`. If that is a date before the event, it is excluded.
  defp new_series(series, event, changes, rule, first, key) do
    [old, {start, ends} = new] =
      for changes <- [%{}, changes],
          do: series |> span(event) |> Series.rest(%{event | original: first}, changes)

    lines = lines(series, rule, changes, {old, new}, &(not before?(&1, event)))
    start_only = ICalendar.unfolded(ICalendar.time_property("EXDATE", start))
    lines = if first == event.original, do: lines, else: lines ++ [start_only]

    series
    |> Map.take(@copied)
    |> Map.merge(body(series, Map.drop(changes, [:start, :end, :repeat]), nil, nil, key))
    |> Map.merge(%{"id" => key, "start" => time(start), "end" => time(ends)})
    |> Map.merge(if(lines == [], do: %{}, else: %{"recurrence" => lines}))
    |> Map.reject(fn {_, value} -> is_nil(value) end)
  end

  # The rest of a series: its rule, and its first date. Of a rule with a number of events those
  # before are counted, deleted and excluded ones too. An event whose date was given is none of
  # the rule, which goes on from its last date before.
  defp rest_of_rule(_account, _calendar, event, _series, rule, %{repeat: _}),
    do: {:ok, rule, event.original}

  defp rest_of_rule(account, calendar, event, series, rule, _changes) do
    given = times(series, "RDATE", event)
    given? = instant(event.original) in given
    count = rule && Recurrence.count_of(rule)

    if rule && (count || given?) do
      with {:ok, listed} <- earlier(account, calendar, event, nil, @max_counted_pages) do
        # Excluded dates are not listed.
        excluded = series |> times("EXDATE", event) |> Enum.filter(&before?(&1, event))
        ruled = Enum.uniq(listed ++ excluded) -- given
        last = given? && Enum.max(ruled, DateTime, fn -> nil end)
        left = count && max(count - length(ruled) + if(last, do: 1, else: 0), 1)
        rule = if left, do: Recurrence.put_count(rule, left), else: rule
        {:ok, rule, if(last, do: like(last, event.original), else: event.original)}
      end
    else
      {:ok, rule, event.original}
    end
  end

  # The instants of the events before one.
  defp earlier(_account, _calendar, event, _page, 0),
    do: {:error, %CalendarError{kind: :long_series, id: event.id}}

  defp earlier(account, calendar, event, page, left) do
    params = [
      maxResults: 250,
      showDeleted: true,
      timeMax: DateTime.to_iso8601(instant(event.original))
    ]

    url = event_url(calendar, event.series) <> "/instances"
    fields = "nextPageToken,items(originalStartTime)"

    request = [url: url, query: page(params, page)]

    with {:ok, body} <- call(account, request, scopes: write(), fields: fields) do
      starts = for item <- body["items"] || [], do: parse(item["originalStartTime"], "UTC")
      before = for start <- starts, before?(start, event), do: instant(start)

      case body["nextPageToken"] do
        nil ->
          {:ok, before}

        next ->
          with {:ok, later} <- earlier(account, calendar, event, next, left - 1),
               do: {:ok, before ++ later}
      end
    end
  end

  defp before?(time, event),
    do: DateTime.compare(instant(time), instant(event.original)) == :lt

  # A day counts from its begin in UTC.
  defp instant(%DateTime{} = time), do: TimeZones.shift(time, "Etc/UTC")
  defp instant(%Date{} = day), do: DateTime.new!(day, ~T[00:00:00])

  defp end_series(account, calendar, event, series, notify) do
    rule = Enum.find_value(series["recurrence"] || [], &rule_of/1)
    rule = rule && Recurrence.before(rule, event.original)
    span = span(series, event)
    lines = lines(series, rule, %{}, {span, span}, &before?(&1, event))
    body = %{"recurrence" => lines}
    patch(account, calendar, event.series, series["etag"], body, notify, event)
  end

  defp first?(series, event) do
    start = parse(series["start"], "UTC")
    # A date may be given that is before the start.
    DateTime.compare(instant(event.original), instant(start)) != :gt
  end

  # The times of a series in its own zone.
  defp span(series, event) do
    zone = zone_name(series["start"]["timeZone"]) || zone_of(event.start)
    {parse(series["start"], zone), parse(series["end"], zone)}
  end

  defp in_zone({%DateTime{} = start, ends}, zone),
    do: {TimeZones.shift(start, zone), TimeZones.shift(ends, zone)}

  defp in_zone(days, _zone), do: days

  # The rule of the changed series. Its days move with its events.
  defp rule(_series, _event, %{repeat: rule}), do: {:ok, rule}

  defp rule(series, event, changes) do
    rule = Enum.find_value(series["recurrence"] || [], &rule_of/1)

    if rule == nil or is_nil(changes[:start]),
      do: {:ok, rule},
      else: moved_rule(rule, zone_name(series["start"]["timeZone"]), event, changes)
  end

  defp moved_rule(rule, zone, event, changes) do
    case Series.rule(rule, zone, event.start, changes.start) do
      {:ok, rule} -> {:ok, Series.until(rule, zone, event.start, changes.start)}
      :error -> {:error, %CalendarError{kind: :rule, id: event.id, rule: rule}}
    end
  end

  defp rule_of("RRULE:" <> rule), do: rule
  defp rule_of(_), do: nil

  defp guests?(changes),
    do: Map.has_key?(changes, :add_attendees) or Map.has_key?(changes, :remove_attendees)

  # The fields of a patch. A `nil` empties a field.
  defp body(raw, changes, span, lines, key) do
    texts =
      for {field, name} <- [title: "summary", description: "description", location: "location"],
          Map.has_key?(changes, field),
          into: %{},
          do: {name, changes[field]}

    texts
    |> put(span != nil, fn -> times(raw, span) end)
    |> put(lines != nil, fn -> %{"recurrence" => lines} end)
    |> put(guests?(changes), fn -> %{"attendees" => guests(raw, changes)} end)
    |> put(changes[:conference] == true, fn -> %{"conferenceData" => conference(key)} end)
    |> put(Map.has_key?(changes, :reminders), fn ->
      %{"reminders" => changed_reminders(raw, changes.reminders)}
    end)
    |> put(changes[:attach] != nil, fn ->
      %{"attachments" => attachments(raw, changes.attach)}
    end)
  end

  # Mails that remind of the event stay.
  defp changed_reminders(raw, minutes) do
    others = for %{"method" => "email"} = mail <- raw["reminders"]["overrides"] || [], do: mail
    changed = reminders(minutes)
    if minutes, do: Map.update!(changed, "overrides", &(&1 ++ others)), else: changed
  end

  defp attachments(raw, urls) do
    old = raw["attachments"] || []
    known = MapSet.new(old, & &1["fileUrl"])
    old ++ for(url <- Enum.uniq(urls), url not in known, do: attachment(url))
  end

  defp put(body, true, fields), do: Map.merge(body, fields.())
  defp put(body, false, _fields), do: body

  # A patch merges objects, so the fields of the other kind of time are emptied.
  defp times(_raw, {start, ends}),
    do: %{"start" => emptied(time(start)), "end" => emptied(time(ends))}

  defp emptied(%{"date" => _} = time),
    do: Map.merge(time, %{"dateTime" => nil, "timeZone" => nil})

  defp emptied(time), do: Map.put(time, "date", nil)

  # The lines of a series that moves from one span to another: its rule, and those of the dates
  # given and excluded that are kept.
  defp lines(_series, _rule, %{repeat: nil}, _spans, _keep?), do: []

  defp lines(series, rule, _changes, {{from, _}, {to, _}}, keep?) do
    change = fn time ->
      point = point(time, zone_of(from))
      if keep?.(point), do: if(from == to, do: time, else: Series.by(point, from, to))
    end

    dates = for line <- dates(series), line = change_line(line, zone_of(from), change), do: line
    repeat(rule) ++ dates
  end

  defp repeat(nil), do: []
  defp repeat(rule), do: ["RRULE:" <> rule]

  defp change_line(line, zone, change) do
    case ICalendar.property(line) do
      {name, _, _} = property when name in ["RDATE", "EXDATE"] ->
        changed = ICalendar.change(property, @no_zones, zone, change)
        changed && ICalendar.unfolded(changed)

      _ ->
        line
    end
  end

  defp dates(series),
    do: Enum.reject(series["recurrence"] || [], &String.starts_with?(&1, "RRULE:"))

  # The instants of the dates that are given beside a rule, or excluded from it.
  defp times(series, name, event) do
    for line <- dates(series),
        {^name, _, _} = property <- [ICalendar.property(line)],
        time <- ICalendar.times(property, @no_zones),
        do: time |> point(zone_of(event.original)) |> instant()
  end

  defp like(time, %Date{}), do: DateTime.to_date(time)
  defp like(time, %DateTime{time_zone: zone}), do: TimeZones.shift(time, zone)

  defp point(%Date{} = day, _zone), do: day
  defp point(time, zone), do: ICalendar.instant(time, zone)

  defp guests(raw, changes) do
    removed = changes |> Map.get(:remove_attendees, []) |> MapSet.new(&String.downcase/1)
    kept = Enum.reject(raw["attendees"] || [], &(address(&1) in removed))
    known = MapSet.new(kept, &address/1)

    added =
      for email <- Map.get(changes, :add_attendees, []),
          String.downcase(email) not in known,
          do: %{"email" => email}

    kept ++ added
  end

  defp address(guest), do: String.downcase(guest["email"] || "")

  defp patch(account, calendar, id, version, body, notify, event) do
    request = [
      method: :patch,
      url: event_url(calendar, id),
      query: sending(notify),
      json: body,
      headers: [{"if-match", version}]
    ]

    case call(account, request, scopes: write()) do
      {:ok, raw} -> {:ok, event(raw, zone_of(event.start))}
      {:error, %ServiceError{status: status}} when status in [404, 410] -> {:error, missing(id)}
      error -> error
    end
  end

  @impl true
  def delete(account, calendar, %{series: nil} = event, options),
    do: delete_event(account, calendar, event.id, event.version, options.notify)

  def delete(account, calendar, event, %{scope: :one} = options),
    do: delete_event(account, calendar, event.id, event.version, options.notify)

  def delete(account, calendar, event, options) do
    with {:ok, series} <- fetch(account, calendar, event.series, write(), []) do
      if options.scope == :all or first?(series, event) do
        delete_event(account, calendar, event.series, series["etag"], options.notify)
      else
        with {:ok, _} <- end_series(account, calendar, event, series, options.notify), do: :ok
      end
    end
  end

  defp delete_event(account, calendar, id, version, notify) do
    request = [
      method: :delete,
      url: event_url(calendar, id),
      query: Keyword.take(sending(notify), [:sendUpdates]),
      headers: [{"if-match", version}]
    ]

    case call(account, request, scopes: write()) do
      {:ok, _} -> :ok
      # Also the answer to a repeated call.
      {:error, %ServiceError{status: 410}} -> :ok
      {:error, %ServiceError{status: 404}} -> {:error, missing(id)}
      error -> error
    end
  end

  # Answers

  @impl true
  def answer(account, calendar, event, answer, options) do
    series? = event.series != nil and options.scope != :one

    with %{email: email} <- Enum.find(event.attendees, & &1.self),
         {:ok, raw} <- answered(account, calendar, event, series?),
         id = if(series?, do: event.series, else: event.id),
         body = own_answer(email, answer),
         {:ok, event} <- patch(account, calendar, id, raw["etag"], body, options.notify, event) do
      {:ok, event, options.notify and not event.mine}
    else
      nil -> {:error, %CalendarError{kind: :not_invited, id: event.id}}
      error -> error
    end
  end

  defp answered(account, calendar, event, true),
    do: fetch(account, calendar, event.series, write(), [])

  defp answered(_account, _calendar, event, false), do: {:ok, %{"etag" => event.version}}

  # The other guests stay as they are.
  defp own_answer(email, answer) do
    guest = %{"email" => email, "responseStatus" => answer.response}
    guest = if answer.comment, do: Map.put(guest, "comment", answer.comment), else: guest
    %{"attendees" => [guest], "attendeesOmitted" => true}
  end

  # Attachments are links.
  @impl true
  def attachment(_account, _calendar, _id, part),
    do: {:error, %NotFoundError{kind: "attachment", id: "#{part}", find: "calendar.get"}}

  # Free and busy

  @impl true
  def busy(account, people, from, to) do
    ids = Map.new(people, &{&1, if(&1 == "me", do: "primary", else: &1)})

    body = %{
      "timeMin" => DateTime.to_iso8601(from),
      "timeMax" => DateTime.to_iso8601(to),
      "items" => for({_, id} <- ids, do: %{"id" => id})
    }

    request = [method: :post, url: "#{@base}/freeBusy", json: body]

    with {:ok, answer} <- call(account, request, scopes: busy(), repeat: true, changes: false) do
      calendars = answer["calendars"] || %{}
      {:ok, Map.new(ids, fn {person, id} -> {person, busy_times(calendars[id])} end)}
    end
  end

  defp busy_times(%{"errors" => [error | _]}), do: {:error, busy_error(error["reason"])}

  defp busy_times(%{"busy" => busy}) do
    {:ok, for(span <- busy, do: {utc(span["start"]), utc(span["end"])})}
  end

  defp busy_times(_), do: {:error, busy_error(nil)}

  defp busy_error("notFound"), do: "Google shows no calendar of this address to the account"
  defp busy_error(_), do: "Google does not say when this address is busy"

  # Values

  # The account's own calendar has a name that needs no look-up.
  defp events(calendar), do: "#{@base}/calendars/#{segment(calendar || "primary")}/events"
  defp event_url(calendar, id), do: "#{events(calendar)}/#{segment(id)}"
  defp segment(text), do: URI.encode(text, &URI.char_unreserved?/1)

  defp time(%Date{} = day), do: %{"date" => Date.to_iso8601(day)}

  defp time(%DateTime{} = time),
    do: %{"dateTime" => DateTime.to_iso8601(time), "timeZone" => time.time_zone}

  defp parse(%{"dateTime" => text}, zone), do: text |> utc() |> TimeZones.shift(zone)
  defp parse(%{"date" => text}, _zone), do: Date.from_iso8601!(text)

  defp utc(text) do
    {:ok, time, _} = DateTime.from_iso8601(text)
    DateTime.truncate(time, :second)
  end

  defp zone_of(%DateTime{time_zone: zone}), do: zone
  defp zone_of(%Date{}), do: "UTC"

  defp event(raw, zone) do
    attendees = Enum.reject(raw["attendees"] || [], &(&1["resource"] == true))
    own = Enum.find(attendees, &(&1["self"] == true))

    %{
      id: raw["id"],
      version: raw["etag"],
      series: raw["recurringEventId"],
      original: if(raw["originalStartTime"], do: parse(raw["originalStartTime"], zone)),
      title: raw["summary"] || "",
      description: raw["description"],
      location: raw["location"],
      start: parse(raw["start"], zone),
      end: parse(raw["end"], zone),
      zone: zone_name(raw["start"]["timeZone"]),
      repeat: Enum.find_value(raw["recurrence"] || [], &rule_of/1),
      attendees: for(guest <- Enum.take(attendees, @max_attendees), do: attendee(guest)),
      more_attendees: raw["attendeesOmitted"] == true or length(attendees) > @max_attendees,
      organizer: raw["organizer"]["email"],
      mine: raw["organizer"] == nil or raw["organizer"]["self"] == true,
      answer: own && attendee(own).response,
      status: raw["status"] || "confirmed",
      conference: raw["hangoutLink"] || video(raw["conferenceData"]),
      reminders: shown_reminders(raw["reminders"]),
      attachments: shown_attachments(raw["attachments"] || [])
    }
  end

  @responses %{"needsAction" => "needs_action"}

  defp attendee(guest) do
    response = guest["responseStatus"] || "needsAction"

    %{
      email: guest["email"] || "",
      name: guest["displayName"],
      response: Map.get(@responses, response, response),
      comment: guest["comment"],
      optional: guest["optional"] == true,
      self: guest["self"] == true
    }
  end

  @methods %{"popup" => "display"}

  defp shown_reminders(%{"useDefault" => false} = reminders) do
    for %{"method" => method, "minutes" => minutes} <- reminders["overrides"] || [],
        do: %{method: Map.get(@methods, method, method), minutes: minutes, at: nil}
  end

  defp shown_reminders(_), do: :default

  defp shown_attachments(files) do
    for {file, part} <- files |> Enum.take(@max_attachments) |> Enum.with_index(1) do
      %{
        part: part,
        name: file["title"],
        type: file["mimeType"],
        size: nil,
        url: file["fileUrl"]
      }
    end
  end

  defp video(%{"entryPoints" => points}),
    do: Enum.find_value(points, &if(&1["entryPointType"] == "video", do: &1["uri"]))

  defp video(_), do: nil

  # Calls

  defp read, do: @vendor.scopes("calendar.list")
  defp write, do: @vendor.scopes("calendar.update")
  defp busy, do: @vendor.scopes("calendar.free")
  defp names, do: @vendor.scopes("calendar.calendars")
  # All commands need the zone.
  defp zones, do: Enum.uniq(read() ++ busy())

  # A missing calendar, not a missing event.
  defp found(account, request, options, calendar) do
    with {:error, %ServiceError{status: 404}} <- call(account, request, options) do
      {:error,
       %NotFoundError{kind: "calendar", id: calendar || "primary", find: "calendar.calendars"}}
    end
  end

  defp missing(id), do: %NotFoundError{kind: "event", id: id, find: "calendar.list"}

  defp call(account, request, options) do
    request = Keyword.put_new(request, :method, :get)
    with {:ok, %{body: body}} <- Client.request(account, request, options), do: {:ok, body || %{}}
  end

  defp sending(notify) do
    [
      sendUpdates: if(notify, do: "all", else: "none"),
      conferenceDataVersion: 1,
      supportsAttachments: true,
      maxAttendees: @max_attendees
    ]
  end
end
