defmodule Skillbook.Calendar.CalDAV do
  @moduledoc """
  Calendars on servers with CalDAV (RFC 4791), such as Nextcloud, Radicale, Baïkal or Fastmail.

  The account's URL is that of the server or of one calendar. From a server's URL the calendars of
  the user are found (RFC 6764); the account's own calendar is then the first one by its address.

  Series are expanded here, since servers differ in it, and events are changed as texts, so
  properties that other programs wrote are kept. Most servers send no invitations, so guests
  cannot be invited, and free times are those of the user alone.

  The zones and rules of a file may take 300,000 steps, and those of all files of a call 15
  million: a date is a step, and a period in which none is found, such as a day or a month, one or
  several. An event that needs more is named in the result, and the others are shown. The same
  calendar has the same result on any machine, however busy it is.

  It needs the native library of connections: `config :skillbook, connections: true`.
  """

  @behaviour Skillbook.Calendar

  alias Skillbook.Calendar
  alias Skillbook.Calendar.CalDAV.{Events, Server}
  alias Skillbook.Calendar.{ICalendar, Series, TimeZones}
  alias Skillbook.Connections.Library
  alias Skillbook.Support.UntilError
  alias Skillbook.{CalendarError, NotFoundError, ServiceError}

  # The steps that the rules of all files of a call may take.
  @steps 15_000_000

  @impl true
  def conferences?(_account), do: false

  @impl true
  def invitations?(_account), do: false

  # Calendars

  @impl true
  def calendars(account) do
    with :ok <- Library.load(), {:ok, [own | others]} <- Server.calendars(account) do
      drop = [:path, :addresses, :tells]
      {:ok, Enum.map([%{own | primary: true} | others], &Map.drop(&1, drop))}
    else
      {:ok, []} -> {:ok, []}
      error -> error
    end
  end

  @impl true
  def zone(account, calendar) do
    with {:ok, calendar} <- calendar(account, calendar), do: {:ok, calendar.zone}
  end

  defp calendar(account, id) do
    with :ok <- Library.load(), {:ok, calendars} <- Server.calendars(account) do
      found = if id == nil, do: List.first(calendars), else: Enum.find(calendars, &(&1.id == id))

      cond do
        found -> {:ok, found}
        calendars == [] -> {:error, %CalendarError{kind: :no_calendar}}
        true -> {:error, %NotFoundError{kind: "calendar", id: id, find: "calendar.calendars"}}
      end
    end
  end

  # Reading

  @impl true
  def list(account, query) do
    with {:ok, calendar} <- calendar(account, query.calendar),
         {:ok, files} <- Server.files(account, calendar, query.from, query.to) do
      default = calendar.zone || query.zone
      between = &Events.between(&1, query.from, query.to, default, query.limit + 1)
      {events, unreadable} = read(files, calendar, between)

      events =
        events
        |> Enum.filter(&matches?(&1, query.text))
        |> Enum.map(&Events.in_zone(&1, query.zone))
        |> Enum.sort_by(&{DateTime.to_unix(Events.start(&1, query.zone)), &1.id})

      events = if query[:unanswered], do: Calendar.unanswered(events), else: events
      {shown, rest} = Enum.split(events, query.limit)
      {:ok, %{events: shown, more: rest != [], unreadable: unreadable}}
    end
  end

  # What a function makes of each file, and the files that cannot be read. One of them takes no
  # more than its budget, and never keeps the others from being shown.
  defp read(files, calendar, function) do
    {found, unreadable, _left} =
      Enum.reduce(files, {[], [], @steps}, fn file, {found, unreadable, left} ->
        steps = ICalendar.steps(left)
        given = ICalendar.left(steps)
        result = read_file(file, calendar, steps, function)
        left = left - (given - ICalendar.left(steps))

        case result do
          {:error, parsed, reason} ->
            {found, [Events.unreadable(file, parsed, reason) | unreadable], left}

          items ->
            {[items | found], unreadable, left}
        end
      end)

    {Enum.concat(found), Enum.reverse(unreadable)}
  end

  defp read_file(%{text: text} = file, %{addresses: addresses}, steps, function) do
    with {:ok, calendar} <- ICalendar.parse(text, steps) do
      resource = %{file: file.file, version: file.version, calendar: calendar}
      resource = Map.put(resource, :addresses, addresses)

      ICalendar.budgeted(fn ->
        cond do
          Events.readable?(resource) -> function.(resource)
          Events.master(resource) -> {:error, calendar, :invalid}
          # A task, or a file of nothing but zones.
          true -> []
        end
      end)
      |> case do
        :budget -> {:error, calendar, :budget}
        result -> result
      end
    else
      :error -> {:error, nil, :invalid}
    end
  end

  # A call for one event.
  defp budgeted(id, function) do
    with :budget <- ICalendar.budgeted(function),
         do: {:error, %CalendarError{kind: :budget, id: id}}
  end

  defp matches?(_event, nil), do: true

  defp matches?(event, text) do
    guests = Enum.flat_map(event.attendees, &[&1.email, &1.name || ""])
    texts = [event.title, event.description || "", event.location || ""] ++ guests
    all = texts |> Enum.join("\n") |> String.downcase()
    text |> String.downcase() |> String.split() |> Enum.all?(&String.contains?(all, &1))
  end

  @impl true
  def get(account, calendar, id, zone) do
    with {:ok, calendar} <- calendar(account, calendar),
         {:ok, resource, original} <- fetch(account, calendar, id),
         do: show(resource, original, calendar, id, zone)
  end

  defp show(resource, original, calendar, id, zone) do
    budgeted(id, fn ->
      with {:ok, event} <- event(resource, original, calendar.zone || zone, id),
           do: {:ok, Events.in_zone(event, zone)}
    end)
  end

  # The file of an event, and the original start of one event of a series.
  defp fetch(account, calendar, id) do
    {file, original} = Events.split_id(id)

    with true <- Events.file?(file), {:ok, resource} <- Server.get(account, calendar, file) do
      more = %{default: calendar.zone || "UTC", addresses: calendar.addresses}
      {:ok, Map.merge(resource, more), original}
    else
      false -> {:error, missing(id)}
      {:error, %ServiceError{status: status}} when status in [404, 410] -> {:error, missing(id)}
      error -> error
    end
  end

  defp event(resource, original, default, id) do
    case Events.find(resource, original, default) do
      nil -> {:error, missing(id)}
      event -> {:ok, event}
    end
  end

  defp missing(id), do: %NotFoundError{kind: "event", id: id, find: "calendar.list"}

  # Writing

  @impl true
  def create(account, calendar, new) do
    with {:ok, calendar} <- calendar(account, calendar) do
      file = new.key <> ".ics"
      text = new |> Events.new() |> ICalendar.write()

      case Server.put(account, calendar, file, text, :new) do
        # Also the answer to a repeated call: the key is the event's own.
        {:error, %ServiceError{status: 412}} -> written(account, calendar, file, new.start)
        :ok -> written(account, calendar, file, new.start)
        error -> error
      end
    end
  end

  defp written(account, calendar, id, start) do
    zone = if match?(%DateTime{}, start), do: start.time_zone, else: "UTC"

    with {:ok, resource, original} <- fetch(account, calendar, id),
         do: show(resource, original, calendar, id, zone)
  end

  @impl true
  def update(account, calendar, event, changes, options) do
    with {:ok, calendar} <- calendar(account, calendar),
         {:ok, resource} <- current(account, calendar, event) do
      scope = scope(resource, event, options)
      change = fn -> change(scope, account, calendar, resource, event, changes, options) end
      budgeted(event.id, change)
    end
  end

  # The file as it was when the event was read.
  defp current(account, calendar, event) do
    with {:ok, resource, _} <- fetch(account, calendar, event.id) do
      cond do
        resource.version != event.version -> {:error, Server.conflict(account)}
        readable?(resource) -> {:ok, resource}
        true -> {:error, %CalendarError{kind: :unreadable, id: event.id}}
      end
    end
  end

  defp readable?(resource),
    do: ICalendar.budgeted(fn -> Events.readable?(resource) end) == true

  # By its own id, a series is meant as a whole.
  defp scope(_resource, %{series: series}, options) when series != nil, do: options.scope

  defp scope(resource, _event, _options),
    do:
      if(ICalendar.budgeted(fn -> Events.series?(resource) end) == true, do: :all, else: :single)

  defp change(:single, account, calendar, resource, event, changes, _options) do
    master =
      resource
      |> Events.master()
      |> Events.apply_fields(changes, resource)
      |> Events.apply_rule(changes, resource)
      |> put_times(changes, resource)

    save(account, calendar, Events.put_master(resource, master, changes), event)
  end

  defp change(:one, account, calendar, resource, event, changes, _options) do
    override =
      resource
      |> Events.override(event)
      |> Events.apply_fields(changes, resource)
      |> put_times(changes, resource)

    save(account, calendar, Events.put_override(resource, override, event, changes), event)
  end

  defp change(scope, account, calendar, resource, event, changes, options) do
    if scope == :all or Events.first?(resource, event),
      do: change_all(account, calendar, resource, event, changes),
      else: change_following(account, calendar, resource, event, changes, options)
  end

  defp put_times(component, %{start: start, end: ends}, resource),
    do: Events.put_times_like(component, start, ends, resource)

  defp put_times(component, _changes, _resource), do: component

  defp change_all(account, calendar, resource, event, changes) do
    with {:ok, resource} <- move(resource, event, changes) do
      resource = Events.put_fields(resource, changes)

      master =
        resource
        |> Events.master()
        |> Events.apply_fields(changes, resource)
        |> Events.apply_rule(changes, resource)

      resource = Events.put_master(resource, master, changes)
      # The id of one event changes with its series, so the series is shown.
      save(account, calendar, resource, %{event | id: event.series || event.id})
    end
  end

  # The whole series moves by as much as its event.
  defp move(resource, event, %{start: start, end: ends} = changes) do
    with {:ok, rule} <- moved_rule(resource, event, changes),
         do: {:ok, Events.move(resource, event, {start, ends}, rule)}
  end

  defp move(resource, _event, _changes), do: {:ok, resource}

  defp moved_rule(_resource, _event, %{repeat: rule}), do: {:ok, rule}

  defp moved_rule(resource, event, changes) do
    case Events.rule(resource) do
      nil ->
        {:ok, nil}

      rule ->
        [from, to] = for time <- [event.start, changes.start], do: Events.day(resource, time)

        with :error <- Series.rule(rule, nil, from, to),
             do: {:error, %CalendarError{kind: :rule, id: event.id, rule: rule}}
    end
  end

  # A new series from this event on; then the old one ends before it. If that fails, the new one
  # is removed again.
  defp change_following(account, calendar, resource, event, changes, options) do
    {old, later} = Events.divide(resource, event, options.key)
    file = options.key <> ".ics"

    with {:ok, later} <- move(later, event, changes) do
      master =
        later
        |> Events.master()
        |> Events.apply_fields(changes, later)
        |> Events.apply_rule(changes, later)

      text = later |> Events.put_master(master) |> Map.fetch!(:calendar) |> ICalendar.write()

      with :ok <- Server.put(account, calendar, file, text, :new) do
        case put(account, calendar, old) do
          :ok ->
            written(account, calendar, file, event.start)

          error ->
            _ = Server.delete(account, calendar, file, nil)
            error
        end
      end
    end
  end

  defp save(account, calendar, resource, event) do
    with :ok <- put(account, calendar, resource),
         do: written(account, calendar, event.id, event.start)
  end

  # In place of the version that was read.
  defp put(account, calendar, %{file: file, version: version} = resource),
    do: Server.put(account, calendar, file, ICalendar.write(resource.calendar), version)

  @impl true
  def delete(account, calendar, event, options) do
    with {:ok, calendar} <- calendar(account, calendar),
         {:ok, resource} <- current(account, calendar, event) do
      scope = if event.series, do: options.scope, else: :all
      budgeted(event.id, fn -> remove(scope, account, calendar, resource, event) end)
    end
  end

  defp remove(:one, account, calendar, resource, event) do
    put(account, calendar, Events.exclude(resource, event))
  end

  defp remove(scope, account, calendar, resource, event) do
    if scope == :all or Events.first?(resource, event) do
      case Server.delete(account, calendar, resource.file, resource.version) do
        # The answer to a repeated call.
        {:error, %ServiceError{status: status}} when status in [404, 410] -> :ok
        result -> result
      end
    else
      {old, _later} = Events.divide(resource, event, "")
      put(account, calendar, old)
    end
  end

  # Answers

  @impl true
  def answer(account, calendar, event, answer, options) do
    with {:ok, calendar} <- calendar(account, calendar),
         {:ok, resource} <- current(account, calendar, event),
         told = calendar.tells and Events.told?(resource),
         :ok <- quiet(told, options),
         scope = if(event.series, do: options.scope, else: :all),
         answered = fn -> Events.answer(resource, event, scope, answer) end,
         {:ok, resource} <- budgeted(event.id, answered),
         # Of a series the first event is shown.
         event = if(scope == :all, do: %{event | id: event.series || event.id}, else: event),
         {:ok, event} <- save(account, calendar, resource, event) do
      {:ok, event, told}
    else
      :error -> {:error, %CalendarError{kind: :not_invited, id: event.id}}
      error -> error
    end
  end

  defp quiet(true, %{notify: false}), do: {:error, %CalendarError{kind: :told}}
  defp quiet(_told, _options), do: :ok

  @impl true
  def attachment(account, calendar, id, part) do
    with {:ok, calendar} <- calendar(account, calendar),
         {:ok, resource, original} <- fetch(account, calendar, id),
         :error <- budgeted(id, fn -> Events.attachment(resource, original, part) end),
         do: {:error, %NotFoundError{kind: "attachment", id: "#{part}", find: "calendar.get"}}
  end

  # Free and busy

  @impl true
  def busy(account, people, from, to) do
    own = [account.options[:username], account.identity, "me"]

    with :ok <- Library.load(), {:ok, calendars} <- Server.calendars(account) do
      found =
        calendars
        |> Enum.filter(& &1.writable)
        |> UntilError.map(fn calendar ->
          with {:ok, files} <- Server.files(account, calendar, from, to),
               do: {:ok, read(files, calendar, &spans(&1, calendar, from, to))}
        end)

      with {:ok, found} <- found do
        spans = Enum.flat_map(found, &elem(&1, 0))
        unreadable = Enum.flat_map(found, &elem(&1, 1))
        spans = spans |> Enum.sort_by(&DateTime.to_unix(elem(&1, 0))) |> Enum.uniq()
        mine = if unreadable == [], do: {:ok, spans}, else: {:ok, spans, unreadable}
        others = {:error, "this calendar's server shows the times of the user alone"}
        {:ok, Map.new(people, &{&1, if(&1 in own, do: mine, else: others)})}
      end
    end
  end

  # At most 1,000 times of an event.
  defp spans(resource, calendar, from, to) do
    zone = calendar.zone || "UTC"

    for event <- resource |> Events.between(from, to, zone, 1_000) |> Events.busy(resource),
        event.status != "cancelled",
        do: {utc(Events.start(event, zone)), utc(Events.ends(event, zone))}
  end

  defp utc(time), do: TimeZones.shift(time, "Etc/UTC")
end
