defmodule Skillbook.Calendar.Outlook do
  @moduledoc """
  Calendars of Microsoft 365 and Outlook.com by
  [Microsoft Graph](https://learn.microsoft.com/graph/api/resources/calendar), version 1.0.

  New events carry a key of ours, so a repeated call makes no second event, and changes carry the
  version that was read. Microsoft expands series, and always tells the guests.

  A calendar has no time zone of its own; that of the mailbox is known for accounts of an
  organization. Microsoft keeps fewer repetitions than iCalendar: daily, weekly on days, monthly
  and yearly on a day or on a weekday such as the second Tuesday.
  """

  @behaviour Skillbook.Calendar

  alias Skillbook.Calendar
  alias Skillbook.Calendar.Outlook.{Pattern, Zones}
  alias Skillbook.Calendar.{Recurrence, Series, TimeZones}
  alias Skillbook.Connections.Graph
  alias Skillbook.Support.UntilError
  alias Skillbook.{CalendarError, NotFoundError, ServiceError}

  # The scopes of requests: any one of them suffices, the first is the least.
  @read ["Calendars.Read", "Calendars.ReadWrite"]
  @write ["Calendars.ReadWrite"]

  @max_attendees 50
  @max_attachments 50
  @max_attachment 64 * 1024 * 1024
  # Events of a span that are looked through for invitations.
  @max_looked 1_000
  @max_pages 10
  @max_counted 2_500
  # People in one request for busy times, and days.
  @max_people 20

  # Texts as text, times in UTC, and ids that stay.
  @prefer [
    {"prefer", ~s(IdType="ImmutableId", outlook.timezone="UTC", outlook.body-content-type="text")}
  ]

  @fields ~w(id subject body location start end originalStartTimeZone originalStart isAllDay
    isCancelled isOrganizer organizer attendees seriesMasterId type recurrence onlineMeeting
    showAs transactionId responseStatus isReminderOn reminderMinutesBeforeStart hasAttachments)
  @select Enum.join(@fields, ",")

  @impl true
  def conferences?(_account), do: true

  @impl true
  def invitations?(_account), do: true

  # Calendars

  @impl true
  def calendars(account) do
    query = ["$select": "id,name,canEdit,isDefaultCalendar", "$top": 100]
    options = [query: query, headers: @prefer, scopes: @read, limit: 250]

    with {:ok, %{items: items}} <- Graph.list(account, "/me/calendars", [], options),
         {:ok, zone} <- mailbox_zone(account) do
      calendars =
        for %{"id" => id} = item when is_binary(id) <- items do
          name = if is_binary(item["name"]), do: item["name"], else: id
          primary = item["isDefaultCalendar"] == true
          %{id: id, name: name, zone: zone, primary: primary, writable: item["canEdit"] == true}
        end

      {:ok, Enum.sort_by(calendars, &{not &1.primary, &1.name})}
    end
  end

  @impl true
  def zone(account, nil), do: mailbox_zone(account)

  def zone(account, calendar) do
    options = [query: ["$select": "id"], headers: @prefer, scopes: @read]

    with :ok <- check_calendar(calendar),
         {:ok, _} <-
           account
           |> Graph.object(:get, "/me/calendars/{id}", [calendar], options)
           |> found(calendar),
         do: mailbox_zone(account)
  end

  # The working hours of the account itself name its zone. Personal accounts have none.
  defp mailbox_zone(%{identity: nil}), do: {:ok, nil}

  defp mailbox_zone(account) do
    now = DateTime.utc_now()

    case schedule(account, [account.identity], now, DateTime.add(now, 3_600)) do
      {:ok, [%{"workingHours" => %{"timeZone" => %{"name" => name}}} | _]} ->
        {:ok, Zones.zone(name)}

      {:ok, _none} ->
        {:ok, nil}

      {:error, %ServiceError{kind: kind}} when kind in [:invalid, :not_found, :forbidden] ->
        {:ok, nil}

      {:error, error} ->
        {:error, error}
    end
  end

  # Reading

  @impl true
  def list(account, query) do
    with {:ok, %{items: items, more: more}} <- view(account, query) do
      events =
        items
        |> Enum.map(&event(&1, query.zone, account))
        |> Enum.sort_by(&order(&1, query.zone))

      events = if query[:unanswered], do: Calendar.unanswered(events), else: events
      {events, rest} = Enum.split(events, query.limit)
      {:ok, %{events: events, more: more or rest != []}}
    end
  end

  defp order(%{start: %Date{} = day}, zone), do: {unix(midnight(day, zone)), 0}
  defp order(%{start: time}, _zone), do: {unix(time), 1}

  defp unix(time), do: DateTime.to_unix(time)

  defp midnight(day, zone),
    do: day |> NaiveDateTime.new!(~T[00:00:00]) |> TimeZones.local(zone) |> elem(0)

  # Whole days have no zone, so those around the span are checked again. Words and invitations are
  # looked for here: a view takes no filter for them.
  defp view(account, query) do
    keep = fn raw ->
      event?(raw) and overlaps?(event(raw, query.zone), query) and words?(raw, query.text) and
        (!query[:unanswered] or unanswered?(raw))
    end

    parameters = [
      startDateTime: iso(query.from),
      endDateTime: iso(query.to),
      "$select": @select,
      "$orderby": "start/dateTime",
      "$top": if(query.text || query[:unanswered], do: 100, else: min(query.limit + 10, 100))
    ]

    # Those of a series count once.
    limit = if query[:unanswered], do: @max_looked, else: query.limit + 1

    options = [query: parameters, headers: @prefer, scopes: @read, keep: keep]
    options = options ++ [limit: limit, max_pages: @max_pages]

    with :ok <- check_calendar(query.calendar) do
      {path, ids} = place(query.calendar, "/calendarView")
      account |> Graph.list(path, ids, options) |> found(query.calendar)
    end
  end

  # The account's own calendar needs no id.
  defp place(nil, rest), do: {"/me" <> rest, []}
  defp place(calendar, rest), do: {"/me/calendars/{id}" <> rest, [calendar]}

  defp overlaps?(%{start: %Date{} = first, end: last}, query) do
    from = query.from |> TimeZones.shift(query.zone) |> DateTime.to_date()

    until =
      query.to
      |> DateTime.add(-1, :second, TimeZones)
      |> TimeZones.shift(query.zone)
      |> DateTime.to_date()

    Date.compare(last, from) == :gt and Date.compare(first, until) != :gt
  end

  defp overlaps?(_event, _query), do: true

  defp unanswered?(raw), do: event(raw, "UTC").answer == "needs_action"

  defp words?(_raw, nil), do: true

  defp words?(raw, text) do
    guests =
      for guest <- raw["attendees"] || [], {_, value} <- guest["emailAddress"] || %{}, do: value

    texts = [raw["subject"], raw["body"]["content"], raw["location"]["displayName"] | guests]
    all = texts |> Enum.filter(&is_binary/1) |> Enum.join("\n") |> String.downcase()
    text |> String.downcase() |> String.split() |> Enum.all?(&String.contains?(all, &1))
  end

  @impl true
  def get(account, _calendar, id, zone) do
    with {:ok, raw} <- fetch(account, id, @read),
         {:ok, files} <- files(account, raw),
         do: {:ok, %{event(raw, zone, account) | attachments: shown_files(files)}}
  end

  defp files(account, %{"hasAttachments" => true, "id" => id}) do
    options = [query: ["$select": "id,name,contentType,size"], headers: @prefer, scopes: @read]
    options = options ++ [limit: @max_attachments, keep: &file?/1]

    with {:ok, %{items: files}} <-
           account |> Graph.list("/me/events/{id}/attachments", [id], options) |> there(id),
         do: {:ok, files}
  end

  defp files(_account, _none), do: {:ok, []}

  defp file?(%{"id" => id} = file),
    do: is_binary(id) and Graph.texts?(file, ~w(@odata.type name contentType))

  defp file?(_other), do: false

  # Microsoft does not tell the address of a link.
  defp shown_files(files) do
    for {file, part} <- Enum.with_index(files, 1) do
      size = file["size"]

      %{
        part: part,
        name: file["name"],
        type: file["contentType"],
        size: if(is_integer(size) and size >= 0, do: size),
        url: nil
      }
    end
  end

  @impl true
  def attachment(account, _calendar, id, part) do
    options = [headers: @prefer, scopes: @read, decode: :raw, max_body: @max_attachment]

    with {:ok, raw} <- fetch(account, id, @read),
         {:ok, files} <- files(account, raw),
         {:ok, file} <- bytes(account, Enum.at(files, part - 1), part),
         {:ok, %{body: data}} <-
           account
           |> Graph.call(
             :get,
             "/me/events/{id}/attachments/{id}/$value",
             [id, file["id"]],
             options
           )
           |> there(id) do
      type = file["contentType"] || "application/octet-stream"
      {:ok, %{name: file["name"] || "attachment", type: type, data: data}}
    end
  end

  defp bytes(_account, nil, part),
    do: {:error, %NotFoundError{kind: "attachment", id: "#{part}", find: "calendar.get"}}

  defp bytes(account, %{"@odata.type" => "#microsoft.graph.referenceAttachment"}, _part) do
    hint = "this attachment is a link, whose address Microsoft does not tell; open it in Outlook"
    {:error, %{error(account, :invalid) | hint: hint}}
  end

  defp bytes(_account, file, _part), do: {:ok, file}

  defp fetch(account, id, scopes, more \\ "") do
    options = [query: ["$select": @select <> more], headers: @prefer, scopes: scopes]

    with :ok <- check_id(id),
         {:ok, raw} <-
           account |> Graph.object(:get, "/me/events/{id}", [id], options) |> there(id) do
      if event?(raw), do: {:ok, raw}, else: {:error, Graph.bad_answer("/me/events")}
    end
  end

  # Writing

  @impl true
  def create(account, calendar, new) do
    with :ok <- check_notify(account, new.attendees, new.notify),
         :ok <- check_kept(new),
         {:ok, recurrence} <- recurrence(new.repeat, new.start),
         fields = Map.merge(span({new.start, new.end}), conference(new.conference)),
         fields = Map.merge(fields, if(new.reminders, do: reminders(new.reminders), else: %{})),
         body =
           Map.merge(fields, %{
             "subject" => new.title,
             "body" => new.description && text(new.description),
             "location" => new.location && %{"displayName" => new.location},
             "recurrence" => recurrence,
             "attendees" => if(new.attendees != [], do: Enum.map(new.attendees, &guest/1)),
             "transactionId" => new.key
           }),
         body = Map.reject(body, fn {_, value} -> is_nil(value) end),
         {:ok, raw} <- insert(account, calendar, body) do
      {:ok, event(raw, zone_of(new.start), account)}
    end
  end

  # The key makes the call safe to repeat: the answer to a repeated one is that the event exists.
  defp insert(account, calendar, body) do
    {path, ids} = place(calendar, "/events")
    options = [json: body, headers: @prefer, scopes: @write, repeat: true]

    with :ok <- check_calendar(calendar),
         {:error, %ServiceError{code: "ErrorDuplicateTransactionId"} = error} <-
           account |> Graph.object(:post, path, ids, options) |> found(calendar) do
      inserted(account, calendar, body, error)
    else
      {:ok, raw} ->
        if event?(raw), do: {:ok, raw}, else: {:error, unclear(Graph.bad_answer("/me/events"))}

      {:error, error} ->
        {:error, error}
    end
  end

  # The event is there, even if it cannot be read now.
  defp inserted(account, calendar, body, error) do
    {path, ids} = place(calendar, "/events")
    query = ["$select": @select, "$filter": "subject eq " <> Graph.quoted(body["subject"])]
    options = [query: query ++ ["$top": 50], headers: @prefer, scopes: @write, limit: 500]

    with {:ok, %{items: items}} <- Graph.list(account, path, ids, options),
         %{} = raw <-
           Enum.find(items, &(event?(&1) and &1["transactionId"] == body["transactionId"])) do
      {:ok, raw}
    else
      {:error, %ServiceError{} = failure} -> {:error, unclear(failure)}
      {:error, other} -> {:error, other}
      nil -> {:error, unclear(error)}
    end
  end

  defp unclear(error), do: %{error | unclear: true}

  defp conference(true), do: %{"isOnlineMeeting" => true}
  defp conference(_none), do: %{}

  # Microsoft does not say what the reminder of the mailbox is.
  defp reminders([minutes]),
    do: %{"isReminderOn" => true, "reminderMinutesBeforeStart" => minutes}

  defp reminders(_none), do: %{"isReminderOn" => false}

  defp check_kept(%{reminders: [_, _ | _]}), do: {:error, %CalendarError{kind: :reminders}}
  defp check_kept(%{attach: [_ | _]}), do: {:error, %CalendarError{kind: :links}}
  defp check_kept(_fields), do: :ok

  defp guest(address), do: %{"emailAddress" => %{"address" => address}, "type" => "required"}
  defp text(text), do: %{"contentType" => "text", "content" => text || ""}

  # Microsoft tells guests of every change.
  defp check_notify(account, [_ | _], false) do
    hint = "Microsoft always tells the guests; leave out --notify none, or ask the user"

    {:error, %{error(account, :invalid) | hint: hint}}
  end

  defp check_notify(_account, _guests, _notify), do: :ok

  defp recurrence(nil, _start), do: {:ok, nil}

  defp recurrence(rule, start) do
    with :error <- Pattern.write(rule, start),
         do: {:error, %CalendarError{kind: :repeat, rule: rule}}
  end

  @impl true
  def update(account, calendar, event, changes, options) do
    with :ok <- check_notify(account, guests(event, changes), options.notify),
         :ok <- check_kept(changes),
         do: change(account, calendar, event, changes, options)
  end

  # Those who would be told.
  defp guests(%{mine: false}, _changes), do: []
  defp guests(event, changes), do: event.attendees ++ Map.get(changes, :add_attendees, [])

  defp change(account, _calendar, event, changes, %{scope: scope})
       when event.series == nil or scope == :one do
    with {:ok, raw} <- fetch(account, event.id, @write),
         :ok <- check_version(account, raw, event) do
      patch(account, raw, event, changes, span_of(event, changes))
    end
  end

  defp change(account, calendar, event, changes, %{scope: scope} = options) do
    with {:ok, series} <- fetch(account, event.series, @write, ",cancelledOccurrences"),
         :ok <- check_occurrence(account, event) do
      if scope == :all or first?(series, event),
        do: patch(account, series, event, changes, new_span(series, event, changes)),
        else: update_following(account, calendar, event, series, changes, options)
    end
  end

  # The version of the event that was read.
  defp check_occurrence(account, event) do
    with {:ok, raw} <- fetch(account, event.id, @write), do: check_version(account, raw, event)
  end

  defp check_version(_account, %{"@odata.etag" => etag}, %{version: version})
       when etag == version or version == nil,
       do: :ok

  defp check_version(account, _raw, _event) do
    {:error, %{error(account, :conflict) | status: 412}}
  end

  defp span_of(event, changes) do
    if start = changes[:start],
      do: in_zone({start, changes.end}, event.zone || zone_of(start))
  end

  defp patch(account, raw, event, changes, span) do
    zone = zone_of(event.start)

    with {:ok, recurrence} <- changed_rule(raw, event, span, changes) do
      body =
        raw
        |> body(changes)
        |> Map.merge(if(span, do: span(span), else: %{}))
        |> Map.merge(if(recurrence == :same, do: %{}, else: %{"recurrence" => recurrence}))

      with {:ok, raw} <- patch_as_read(account, raw, body, event.id) do
        if event?(raw),
          do: {:ok, event(raw, zone, account)},
          else: {:error, unclear(Graph.bad_answer("/me/events"))}
      end
    end
  end

  # Of the state that was read.
  defp patch_as_read(account, raw, body, id) do
    headers = [{"if-match", raw["@odata.etag"]} | @prefer]
    options = [json: body, headers: headers, scopes: @write]
    account |> Graph.object(:patch, "/me/events/{id}", [raw["id"]], options) |> there(id)
  end

  # The recurrence that a patch sets: with another start, the range begins there.
  defp changed_rule(_raw, _event, nil, changes) when not is_map_key(changes, :repeat),
    do: {:ok, :same}

  defp changed_rule(raw, event, span, changes) do
    {start, _} = span || own_span(raw)

    case changes do
      %{repeat: rule} ->
        recurrence(rule, start)

      _moved ->
        if is_map(raw["recurrence"]),
          do: with({:ok, rule} <- moved_rule(raw, event, changes), do: recurrence(rule, start)),
          else: {:ok, :same}
    end
  end

  defp moved_rule(series, event, changes) do
    {start, _} = own_span(series)

    case Pattern.read(series["recurrence"], start) do
      nil ->
        {:error, %CalendarError{kind: :rule, id: event.id, rule: "unknown"}}

      rule ->
        zone = if is_struct(start, DateTime), do: start.time_zone
        to = changes[:start] || event.start

        case Series.rule(rule, zone, event.start, to) do
          {:ok, rule} ->
            {:ok, Series.until(rule, zone, event.start, days_later(event.start, to, zone))}

          :error ->
            {:error, %CalendarError{kind: :rule, id: event.id, rule: rule}}
        end
    end
  end

  # A series ends after a day, which moves by whole days.
  defp days_later(%DateTime{} = from, %DateTime{} = to, zone) do
    [from, to] = for time <- [from, to], do: TimeZones.shift(time, zone)

    {later, _} =
      to
      |> DateTime.to_date()
      |> NaiveDateTime.new!(DateTime.to_time(from))
      |> TimeZones.local(zone)

    later
  end

  defp days_later(_from, to, _zone), do: to

  # The times of an event in the zone that it was written in.
  defp own_span(raw) do
    zone = Zones.zone(raw["originalStartTimeZone"]) || "UTC"
    event = event(raw, zone)
    {event.start, event.end}
  end

  # A new series from this event on; then the old one ends before it. If that fails, the new one
  # is removed again.
  defp update_following(account, calendar, event, series, changes, options) do
    span = series |> own_span() |> Series.rest(event, changes)

    with {:ok, recurrence} <- following_rule(account, event, series, span, changes),
         body = new_series(series, changes, span, recurrence, options.key),
         {:ok, raw} <- insert(account, calendar, body) do
      case end_series(account, event, series) do
        :ok ->
          {:ok, event(raw, zone_of(event.start), account)}

        error ->
          _ = delete_event(account, raw["id"], raw["@odata.etag"])
          error
      end
    end
  end

  defp following_rule(_account, _event, _series, {start, _}, %{repeat: rule}),
    do: recurrence(rule, start)

  defp following_rule(account, event, series, {start, _}, changes) do
    with {:ok, rule} <- moved_rule(series, event, changes),
         {:ok, rule} <- rest_of_rule(account, event, series, rule),
         do: recurrence(rule, start)
  end

  # The rest of a series with a number of events: those before this one are counted, deleted ones
  # too.
  defp rest_of_rule(account, event, series, rule) do
    case Recurrence.count_of(rule) do
      nil ->
        {:ok, rule}

      count ->
        with {:ok, earlier} <- earlier(account, event, series),
             do: {:ok, Recurrence.put_count(rule, max(count - earlier, 1))}
    end
  end

  defp earlier(account, event, series) do
    {start, _} = own_span(series)

    query = [
      startDateTime: iso(DateTime.add(instant(start), -86_400, :second, TimeZones)),
      endDateTime: iso(DateTime.add(instant(event.original), 366 * 86_400, :second, TimeZones))
    ]

    query = query ++ ["$select": "originalStart,start,isAllDay", "$top": 100]
    options = [query: query, headers: @prefer, scopes: @write, limit: @max_counted]

    with {:ok, %{items: items, more: false}} <-
           Graph.list(account, "/me/events/{id}/instances", [event.series], options) do
      original = DateTime.to_unix(instant(event.original))
      there = Enum.count(items, &before?(&1, original))

      gone =
        Enum.count(
          Graph.items(series["cancelledOccurrences"]),
          &cancelled_before?(&1, event.original)
        )

      {:ok, there + gone}
    else
      {:ok, _more} -> {:error, %CalendarError{kind: :long_series, id: event.id}}
      error -> error
    end
  end

  defp before?(%{"originalStart" => text}, original) when is_binary(text) do
    case DateTime.from_iso8601(text) do
      {:ok, time, _} -> DateTime.to_unix(time) < original
      _ -> false
    end
  end

  defp before?(_other, _original), do: false

  # Such as "OID.AAMk….2026-03-23".
  defp cancelled_before?(text, original) when is_binary(text) do
    with day when byte_size(day) == 10 <- String.slice(text, -10..-1//1),
         {:ok, day} <- Date.from_iso8601(day),
         do: Date.compare(day, date(original)) == :lt,
         else: (_ -> false)
  end

  defp cancelled_before?(_other, _original), do: false

  defp date(%Date{} = day), do: day
  defp date(time), do: DateTime.to_date(time)

  defp new_series(series, changes, span, recurrence, key) do
    copied = ~w(subject body location attendees showAs isReminderOn reminderMinutesBeforeStart)

    series
    |> Map.take(copied)
    |> Map.update("attendees", [], fn guests ->
      Enum.map(Graph.items(guests), &Map.take(&1, ~w(emailAddress type)))
    end)
    |> Map.merge(body(series, changes))
    |> Map.merge(span(span))
    |> Map.merge(%{"recurrence" => recurrence, "transactionId" => key})
    |> Map.reject(fn {_, value} -> value in [nil, []] end)
  end

  defp end_series(account, event, series) do
    {start, _} = own_span(series)

    original =
      if is_struct(event.original, DateTime),
        do: TimeZones.shift(event.original, zone_of(start)),
        else: event.original

    range = %{
      "type" => "endDate",
      "endDate" => original |> date() |> Date.add(-1) |> Date.to_iso8601()
    }

    old =
      series["recurrence"]["range"]
      |> Map.take(~w(startDate recurrenceTimeZone))
      |> Map.merge(range)

    body = %{"recurrence" => %{"pattern" => series["recurrence"]["pattern"], "range" => old}}

    with {:ok, _} <- patch_as_read(account, series, body, event.id), do: :ok
  end

  defp first?(series, event) do
    {start, _} = own_span(series)
    DateTime.to_unix(instant(start)) == DateTime.to_unix(instant(event.original))
  end

  defp instant(%DateTime{} = time), do: time
  defp instant(%Date{} = day), do: DateTime.new!(day, ~T[00:00:00])

  # The times of the series' first event, or `nil` if they stay.
  defp new_span(_series, _event, changes) when not is_map_key(changes, :start), do: nil

  defp new_span(series, event, changes),
    do: Series.move(own_span(series), {event.start, event.end}, {changes.start, changes.end})

  defp in_zone({%DateTime{} = start, ends}, zone),
    do: {TimeZones.shift(start, zone), TimeZones.shift(ends, zone)}

  defp in_zone(days, _zone), do: days

  defp body(raw, changes) do
    for {name, value} <- changes, {field, value} <- field(name, value), into: %{} do
      {field, value}
    end
    |> Map.merge(guest_changes(raw, changes))
  end

  defp field(:title, title), do: [{"subject", title}]
  defp field(:description, text), do: [{"body", text(text)}]
  defp field(:location, place), do: [{"location", %{"displayName" => place || ""}}]
  defp field(:conference, true), do: [{"isOnlineMeeting", true}]
  defp field(:reminders, minutes), do: Map.to_list(reminders(minutes))
  defp field(_other, _value), do: []

  defp guest_changes(raw, changes) do
    if Map.has_key?(changes, :add_attendees) or Map.has_key?(changes, :remove_attendees) do
      removed = changes |> Map.get(:remove_attendees, []) |> MapSet.new(&String.downcase/1)
      kept = raw["attendees"] |> Graph.items() |> Enum.reject(&(address(&1) in removed))
      known = MapSet.new(kept, &address/1)

      added =
        for email <- Map.get(changes, :add_attendees, []),
            String.downcase(email) not in known,
            do: guest(email)

      %{"attendees" => Enum.map(kept, &Map.take(&1, ~w(emailAddress type))) ++ added}
    else
      %{}
    end
  end

  defp address(%{"emailAddress" => %{"address" => address}}) when is_binary(address),
    do: String.downcase(address)

  defp address(_none), do: ""

  @impl true
  def delete(account, _calendar, event, options) do
    with :ok <- check_notify(account, guests(event, %{}), options.notify),
         do: delete_scope(account, event, options.scope)
  end

  defp delete_scope(account, event, scope) when event.series == nil or scope == :one do
    with {:ok, raw} <- fetch(account, event.id, @write),
         :ok <- check_version(account, raw, event),
         do: account |> delete_event(event.id, raw["@odata.etag"]) |> there(event.id)
  end

  defp delete_scope(account, event, scope) do
    with {:ok, series} <- fetch(account, event.series, @write) do
      if scope == :all or first?(series, event),
        do: account |> delete_event(event.series, series["@odata.etag"]) |> there(event.id),
        else: end_series(account, event, series)
    end
  end

  defp delete_event(account, id, etag) do
    options = [headers: [{"if-match", etag} | @prefer], scopes: @write]

    case Graph.call(account, :delete, "/me/events/{id}", [id], options) do
      {:ok, _} -> :ok
      # The answer to a repeated call.
      {:error, %ServiceError{kind: :not_found, attempts: attempts}} when attempts > 1 -> :ok
      {:error, error} -> {:error, error}
    end
  end

  # Answers

  @actions %{
    "accepted" => "accept",
    "declined" => "decline",
    "tentative" => "tentativelyAccept"
  }

  # Microsoft answers without the event, and takes a declined one out of the calendar.
  @impl true
  def answer(_account, _calendar, %{answer: answer, mine: mine} = event, _new, _options)
      when answer == nil or mine,
      do: {:error, %CalendarError{kind: :not_invited, id: event.id}}

  def answer(account, _calendar, event, answer, options) do
    id = if options.scope == :one, do: event.id, else: event.series || event.id
    path = "/me/events/{id}/" <> @actions[answer.response]
    body = %{"SendResponse" => options.notify}
    body = if answer.comment, do: Map.put(body, "Comment", answer.comment), else: body

    # Each request may send a mail.
    call = [json: body, headers: @prefer, scopes: @write, repeat: not options.notify]

    with :ok <- check_id(id) do
      case Graph.call(account, :post, path, [id], call) do
        {:ok, _} ->
          {:ok, answered(event, answer), options.notify}

        # A repeated call, after the event was declined.
        {:error, %ServiceError{kind: :not_found, attempts: attempts}}
        when attempts > 1 and answer.response == "declined" ->
          {:ok, answered(event, answer), options.notify}

        {:error, error} ->
          there({:error, error}, id)
      end
    end
  end

  defp answered(event, answer) do
    attendees =
      for guest <- event.attendees,
          do: if(guest.self, do: %{guest | response: answer.response}, else: guest)

    %{event | version: nil, answer: answer.response, attendees: attendees}
  end

  # Free and busy

  @impl true
  def busy(account, people, from, to) do
    {me, others} = Enum.split_with(people, &(&1 == "me"))

    with {:ok, own} <- own_busy(account, me, from, to),
         {:ok, busy} <- others_busy(account, others, from, to),
         do: {:ok, Map.merge(own, busy)}
  end

  # Of personal accounts too, which have no schedules.
  defp own_busy(_account, [], _from, _to), do: {:ok, %{}}

  defp own_busy(account, _me, from, to) do
    query = %{calendar: nil, from: from, to: to, text: nil, limit: 1_000, zone: "UTC"}

    with {:ok, %{items: items}} <- view(account, query) do
      spans =
        for raw <- items,
            raw["showAs"] not in ["free", "workingElsewhere"],
            raw["isCancelled"] != true do
          event = event(raw, "UTC")
          {instant(event.start), instant(event.end)}
        end

      {:ok, %{"me" => {:ok, Enum.sort_by(spans, &unix(elem(&1, 0)))}}}
    end
  end

  defp others_busy(account, people, from, to) do
    people
    |> Enum.chunk_every(@max_people)
    |> UntilError.reduce(%{}, fn chunk, found ->
      with {:ok, schedules} <- schedule(account, chunk, from, to),
           do: {:ok, Map.merge(found, schedules(chunk, schedules))}
    end)
  end

  defp schedules(people, schedules) do
    known =
      for %{"scheduleId" => id} = one when is_binary(id) <- schedules,
          into: %{},
          do: {String.downcase(id), one}

    Map.new(people, &{&1, busy_times(known[String.downcase(&1)])})
  end

  defp busy_times(%{"scheduleItems" => items, "error" => nil}) when is_list(items),
    do: busy_items(items)

  defp busy_times(%{"scheduleItems" => items} = one)
       when is_list(items) and not is_map_key(one, "error"),
       do: busy_items(items)

  defp busy_times(_none), do: {:error, "Microsoft does not say when this address is busy"}

  defp busy_items(items) do
    spans =
      for %{"start" => start, "end" => ends, "status" => status} <- items,
          status not in ["free", "workingElsewhere", "unknown"],
          {:ok, start} <- [time(start)],
          {:ok, ends} <- [time(ends)],
          do: {start, ends}

    {:ok, Enum.sort_by(spans, &unix(elem(&1, 0)))}
  end

  defp schedule(account, people, from, to) do
    body = %{
      "Schedules" => people,
      "StartTime" => utc(from),
      "EndTime" => utc(to),
      "AvailabilityViewInterval" => 60
    }

    options = [json: body, headers: @prefer, scopes: @read, repeat: true, changes: false]

    with {:ok, answer} <- Graph.object(account, :post, "/me/calendar/getSchedule", [], options),
         do: {:ok, Graph.items(answer["value"])}
  end

  defp utc(time),
    do: %{"dateTime" => time |> naive() |> NaiveDateTime.to_iso8601(), "timeZone" => "UTC"}

  defp naive(time),
    do:
      time
      |> DateTime.shift_zone!("Etc/UTC")
      |> DateTime.to_naive()
      |> NaiveDateTime.truncate(:second)

  # Values

  defp iso(time),
    do:
      time
      |> DateTime.shift_zone!("Etc/UTC")
      |> DateTime.truncate(:second)
      |> DateTime.to_iso8601()

  defp span({%Date{} = start, ends}) do
    point = &%{"dateTime" => Date.to_iso8601(&1) <> "T00:00:00", "timeZone" => "UTC"}
    %{"isAllDay" => true, "start" => point.(start), "end" => point.(ends)}
  end

  defp span({start, ends}) do
    point =
      &%{
        "dateTime" =>
          &1
          |> DateTime.to_naive()
          |> NaiveDateTime.truncate(:second)
          |> NaiveDateTime.to_iso8601(),
        "timeZone" => Zones.name(&1.time_zone)
      }

    %{"isAllDay" => false, "start" => point.(start), "end" => point.(ends)}
  end

  defp zone_of(%DateTime{time_zone: zone}), do: zone
  defp zone_of(%Date{}), do: "UTC"

  # Times are in UTC, as all requests ask for.
  defp time(%{"dateTime" => text}) when is_binary(text) do
    with {:ok, naive} <- NaiveDateTime.from_iso8601(text),
         do: {:ok, naive |> NaiveDateTime.truncate(:second) |> DateTime.from_naive!("Etc/UTC")}
  end

  defp time(_other), do: :error

  defp time!(point) do
    {:ok, time} = time(point)
    time
  end

  defp point(raw, name, zone) do
    time = time!(raw[name])
    if raw["isAllDay"] == true, do: whole_day(time, raw), else: TimeZones.shift(time, zone)
  end

  # A day begins at midnight in UTC, or in the zone of the event.
  defp whole_day(%{hour: 0, minute: 0} = time, _raw), do: DateTime.to_date(time)

  defp whole_day(time, raw) do
    zone = Zones.zone(raw["originalStartTimeZone"]) || "UTC"
    time |> TimeZones.shift(zone) |> DateTime.to_date()
  end

  defp original(%{"originalStart" => text} = raw, zone) when is_binary(text) do
    case DateTime.from_iso8601(text) do
      {:ok, time, _} ->
        time = DateTime.truncate(time, :second)
        if raw["isAllDay"] == true, do: whole_day(time, raw), else: TimeZones.shift(time, zone)

      _ ->
        nil
    end
  end

  defp original(_raw, _zone), do: nil

  @answers %{
    "accepted" => "accepted",
    "declined" => "declined",
    "tentativelyAccepted" => "tentative"
  }
  @responses Map.put(@answers, "organizer", "accepted")

  defp event(raw, zone, account \\ nil) do
    attendees =
      for %{"emailAddress" => %{}} = guest <- Graph.items(raw["attendees"]),
          guest["type"] != "resource",
          do: attendee(guest, account)

    # The user is among those that are shown.
    {own, others} = Enum.split_with(attendees, & &1.self)
    shown = if length(attendees) > @max_attendees, do: own ++ others, else: attendees
    start = point(raw, "start", zone)

    %{
      id: raw["id"],
      version: raw["@odata.etag"],
      series: raw["seriesMasterId"],
      original: original(raw, zone),
      title: raw["subject"] || "",
      description: filled(raw["body"]["content"]),
      location: filled(raw["location"]["displayName"]),
      start: start,
      end: point(raw, "end", zone),
      zone: if(is_struct(start, DateTime), do: Zones.zone(raw["originalStartTimeZone"])),
      repeat: Pattern.read(raw["recurrence"], start),
      attendees: Enum.take(shown, @max_attendees),
      more_attendees: length(attendees) > @max_attendees,
      organizer: raw["organizer"]["emailAddress"]["address"],
      mine: raw["isOrganizer"] != false,
      answer: own_answer(raw["responseStatus"], own),
      status: if(raw["isCancelled"] == true, do: "cancelled", else: "confirmed"),
      conference: raw["onlineMeeting"]["joinUrl"],
      reminders: shown_reminders(raw),
      attachments: []
    }
  end

  # Lists of people are invited too, so the user need not be among the guests.
  defp own_answer(%{"response" => "notResponded"}, _own), do: "needs_action"

  defp own_answer(%{"response" => response}, _own) when is_map_key(@answers, response),
    do: @answers[response]

  defp own_answer(_none, [own | _]), do: own.response
  defp own_answer(_none, []), do: nil

  defp shown_reminders(%{"isReminderOn" => true, "reminderMinutesBeforeStart" => minutes})
       when is_integer(minutes),
       do: [%{method: "display", minutes: minutes, at: nil}]

  defp shown_reminders(_none), do: []

  # Exchange writes other line ends, and one more.
  defp filled(nil), do: nil

  defp filled(text) do
    text = text |> String.replace("\r\n", "\n") |> String.trim_trailing()
    if text != "", do: text
  end

  defp attendee(%{"emailAddress" => mailbox} = guest, account) do
    address = mailbox["address"] || ""

    %{
      email: address,
      name: if(mailbox["name"] not in ["", address], do: mailbox["name"]),
      response: Map.get(@responses, guest["status"]["response"], "needs_action"),
      comment: nil,
      optional: guest["type"] == "optional",
      self: account != nil and self?(account.identity, address)
    }
  end

  defp self?(nil, _address), do: false
  defp self?(identity, address), do: String.downcase(identity) == String.downcase(address)

  # Answers of the service

  defp event?(%{"id" => id, "start" => start, "end" => ends} = raw) when is_binary(id) do
    match?({:ok, _}, time(start)) and match?({:ok, _}, time(ends)) and
      Graph.texts?(raw, ~w(@odata.etag subject seriesMasterId originalStartTimeZone)) and
      Graph.object?(raw["body"], ~w(content)) and
      Graph.object?(raw["location"], ~w(displayName)) and
      Graph.object?(raw["onlineMeeting"], ~w(joinUrl)) and
      Graph.object?(raw["responseStatus"], ~w(response)) and guest?(raw["organizer"]) and
      (is_nil(raw["attendees"]) or
         (is_list(raw["attendees"]) and Enum.all?(raw["attendees"], &guest?/1)))
  end

  defp event?(_other), do: false

  defp guest?(nil), do: true

  defp guest?(%{} = guest),
    do:
      Graph.object?(guest["emailAddress"], ~w(address name)) and
        Graph.object?(guest["status"], ~w(response))

  defp guest?(_other), do: false

  defp error(account, kind),
    do: %ServiceError{kind: kind, service: "Outlook Calendar", account: account.name}

  # Ids become parts of paths.
  defp check_id(id), do: if(id?(id), do: :ok, else: {:error, missing(id)})

  defp check_calendar(calendar) do
    if calendar == nil or id?(calendar), do: :ok, else: {:error, no_calendar(calendar)}
  end

  defp id?(id), do: id =~ ~r/\A[A-Za-z0-9_=-]{1,512}\z/

  defp there({:error, %ServiceError{kind: :not_found}}, id), do: {:error, missing(id)}
  defp there(result, _id), do: result

  defp missing(id), do: %NotFoundError{kind: "event", id: id, find: "calendar.list"}

  # A missing calendar, not a missing event.
  defp found({:error, %ServiceError{kind: :not_found}}, calendar) when calendar != nil,
    do: {:error, no_calendar(calendar)}

  defp found(result, _calendar), do: result

  defp no_calendar(calendar),
    do: %NotFoundError{kind: "calendar", id: calendar, find: "calendar.calendars"}
end
