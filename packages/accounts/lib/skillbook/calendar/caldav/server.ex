defmodule Skillbook.Calendar.CalDAV.Server do
  @moduledoc false
  # Requests to a server with CalDAV: finds the calendars of the user, and reads and writes files.
  #
  # The password is sent to the account's own server only: an address of another one in an answer
  # is refused.

  alias Skillbook.Calendar.CalDAV.Events
  alias Skillbook.Calendar.ICalendar
  alias Skillbook.Calendar.TimeZones
  alias Skillbook.Connections.{Client, Library}
  alias Skillbook.ServiceError

  @typedoc """
  `:path` is its address on the server, `:addresses` those of the user, by which invitations name
  them, and `:tells` whether the server sends answers to organizers (RFC 6638).
  """
  @type calendar :: %{
          id: String.t(),
          path: String.t(),
          name: String.t(),
          zone: String.t() | nil,
          primary: boolean(),
          writable: boolean(),
          addresses: [String.t()],
          tells: boolean()
        }

  @typedoc "A file of a calendar: its name, its version (an ETag) and its contents."
  @type resource :: %{
          required(:file) => String.t(),
          required(:version) => String.t() | nil,
          required(:calendar) => ICalendar.component(),
          optional(:default) => String.t() | nil,
          optional(:addresses) => [String.t()]
        }

  @type file :: %{file: String.t(), version: String.t() | nil, text: String.t()}

  @dav "DAV: "
  @cal "urn:ietf:params:xml:ns:caldav "
  @max_body 33_554_432
  @max_calendars 250

  # Finding calendars

  @properties "<d:resourcetype/><d:displayname/><d:current-user-principal/>" <>
                "<d:current-user-privilege-set/><c:calendar-home-set/>" <>
                "<c:calendar-timezone/><c:supported-calendar-component-set/>" <>
                "<c:calendar-user-address-set/><c:schedule-outbox-URL/>"

  @doc "The calendars of the user in the order of their addresses; at most 250."
  @spec calendars(struct()) :: {:ok, [calendar()]} | {:error, Exception.t()}
  def calendars(account) do
    with {:ok, responses} <- first(account) do
      case responses do
        [response | _] ->
          if calendar?(response),
            do: {:ok, [calendar(response, account, principal(account, response))]},
            else: home(account, response)

        [] ->
          {:error, bad(account, "it shows nothing at the account's URL")}
      end
    end
  end

  # The account's URL, or else the server's address for CalDAV (RFC 6764, section 5).
  defp first(account) do
    path = URI.parse(account.options.url).path || "/"

    case propfind(account, path, 0) do
      {:ok, [response | _] = responses} ->
        if calendar?(response) or href(response, @dav <> "current-user-principal") ||
             href(response, @cal <> "calendar-home-set"),
           do: {:ok, responses},
           else: well_known(account)

      {:error, %ServiceError{status: status}} when status in [403, 404, 405] ->
        well_known(account)

      result ->
        result
    end
  end

  defp well_known(account) do
    request = [method: :propfind, url: url(account, "/.well-known/caldav")]
    request = request ++ body(0, @properties)

    case call(account, request, answers: [301, 302, 303, 307, 308]) do
      {:ok, %{status: 207} = answer} ->
        responses(account, answer)

      {:ok, %{headers: %{"location" => [location | _]}}} ->
        with {:ok, path} <- path(account, location), do: propfind(account, path, 0)

      {:ok, _} ->
        {:error, bad(account, "it has no address for CalDAV")}

      error ->
        error
    end
  end

  # The user of a calendar, who is asked about if the server shows them.
  defp principal(account, response) do
    with href when is_binary(href) <- href(response, @dav <> "current-user-principal"),
         {:ok, path} <- path(account, href),
         {:ok, [user | _]} <- propfind(account, path, 0),
         do: user,
         else: (_ -> response)
  end

  defp home(account, response) do
    case {href(response, @cal <> "calendar-home-set"),
          href(response, @dav <> "current-user-principal")} do
      {nil, nil} ->
        {:error, bad(account, "it names no calendars of the user")}

      {nil, principal} ->
        with {:ok, path} <- path(account, principal),
             {:ok, [user | _]} <- propfind(account, path, 0),
             home when is_binary(home) <- href(user, @cal <> "calendar-home-set") do
          in_home(account, home, user)
        else
          {:error, error} -> {:error, error}
          _ -> {:error, bad(account, "it names no calendars of the user")}
        end

      {home, _} ->
        in_home(account, home, response)
    end
  end

  defp in_home(account, home, user) do
    with {:ok, path} <- path(account, home), {:ok, responses} <- propfind(account, path, 1) do
      calendars =
        for response <- responses,
            calendar?(response),
            events?(response),
            do: calendar(response, account, user)

      {:ok, calendars |> Enum.sort_by(& &1.path) |> Enum.take(@max_calendars)}
    end
  end

  defp calendar(response, account, user) do
    rights = names(response, @dav <> "current-user-privilege-set")
    zone = response |> text(@cal <> "calendar-timezone") |> zone()

    %{
      id: response.href |> segments() |> List.last("/"),
      path: response.href,
      name: text(response, @dav <> "displayname") || response.href,
      zone: zone,
      primary: false,
      writable: rights == [] or Enum.any?(~w(all write write-content), &((@dav <> &1) in rights)),
      addresses: addresses(account, user),
      tells: href(user, @cal <> "schedule-outbox-URL") != nil
    }
  end

  @max_addresses 50

  # Those that the server knows are addresses of mail, and of people on the server.
  defp addresses(account, user) do
    known =
      for {_, @dav <> "href", text, _} <- inner(user, @cal <> "calendar-user-address-set"),
          do: text

    own = account.options[:address] || account.options.username

    [own | Enum.take(known, @max_addresses)]
    |> Enum.map(&Events.bare/1)
    |> Enum.reject(&(&1 == ""))
    |> Enum.uniq()
  end

  defp calendar?(response), do: (@cal <> "calendar") in names(response, @dav <> "resourcetype")

  # A calendar of tasks has no events.
  defp events?(response) do
    case Enum.filter(response.elements, &(elem(&1, 1) == @cal <> "comp")) do
      [] -> true
      kinds -> Enum.any?(kinds, fn {_, _, _, attributes} -> {"name", "VEVENT"} in attributes end)
    end
  end

  defp zone(nil), do: nil

  defp zone(text) do
    with {:ok, calendar} <- ICalendar.parse(String.trim(text)),
         %{} = rules <- Enum.find(calendar.components, &(&1.name == "VTIMEZONE")),
         id when is_binary(id) <- ICalendar.text(rules, "TZID"),
         {:ok, name} <- TimeZones.fetch(id) do
      name
    else
      _ -> nil
    end
  end

  # Files

  @doc "The files of a calendar with events between two times, not yet read."
  @spec files(struct(), calendar(), DateTime.t(), DateTime.t()) ::
          {:ok, [file()]} | {:error, Exception.t()}
  def files(account, calendar, from, to) do
    # A day more on both sides, for events of whole days in any zone.
    [from, to] =
      for {time, days} <- [{from, -1}, {to, 1}] do
        time
        |> DateTime.shift_zone!("Etc/UTC")
        |> DateTime.add(days * 86_400, :second)
        |> ICalendar.basic_time()
      end

    xml =
      ~s(<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop>) <>
        "<d:getetag/><c:calendar-data/></d:prop>" <>
        ~s(<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT">) <>
        ~s(<c:time-range start="#{from}Z" end="#{to}Z"/>) <>
        "</c:comp-filter></c:comp-filter></c:filter></c:calendar-query>"

    request = [
      method: :report,
      url: url(account, calendar.path),
      headers: [{"depth", "1"}],
      body: {"application/xml; charset=utf-8", xml}
    ]

    with {:ok, answer} <- call(account, request, []),
         {:ok, responses} <- responses(account, answer) do
      {:ok,
       for(
         response <- Enum.uniq_by(responses, & &1.href),
         file = file(response, calendar),
         data = text(response, @cal <> "calendar-data"),
         do: %{file: file, version: text(response, @dav <> "getetag"), text: data}
       )}
    end
  end

  # The name of a file, but not of a folder, which one request would delete with all its files.
  defp file(response, calendar) do
    name = response.href |> String.split("/") |> List.last()
    own? = response.href == String.trim_trailing(calendar.path, "/")
    if Events.file?(name) and not own?, do: name
  end

  @doc "Reads a file."
  @spec get(struct(), calendar(), String.t()) :: {:ok, resource()} | {:error, Exception.t()}
  def get(account, calendar, file) do
    request = [method: :get, url: file_url(account, calendar, file)]

    with {:ok, answer} <- call(account, request, max_body: 1_048_576),
         {:ok, parsed} <- parsed(account, answer.body) do
      version = answer.headers |> Map.get("etag", []) |> List.first()
      {:ok, %{file: file, version: version, calendar: parsed}}
    end
  end

  defp parsed(account, body) do
    with :error <- ICalendar.parse(body),
         do: {:error, bad(account, "it has a file that is no calendar")}
  end

  @doc "Writes a file: a new one, or in place of a version."
  @spec put(struct(), calendar(), String.t(), String.t(), :new | String.t() | nil) ::
          :ok | {:error, Exception.t()}
  def put(account, calendar, file, text, version) do
    condition =
      case version do
        :new -> [{"if-none-match", "*"}]
        nil -> []
        version -> [{"if-match", version}]
      end

    request = [
      method: :put,
      url: file_url(account, calendar, file),
      headers: condition,
      body: {"text/calendar; charset=utf-8", text}
    ]

    with {:ok, _} <- call(account, request, []), do: :ok
  end

  @doc "Deletes a version of a file."
  @spec delete(struct(), calendar(), String.t(), String.t() | nil) ::
          :ok | {:error, Exception.t()}
  def delete(account, calendar, file, version) do
    condition = if version, do: [{"if-match", version}], else: []

    request = [
      method: :delete,
      url: file_url(account, calendar, file),
      headers: condition
    ]

    with {:ok, _} <- call(account, request, []), do: :ok
  end

  @doc "The error of an event that was changed since it was read."
  @spec conflict(struct()) :: ServiceError.t()
  def conflict(account),
    do: %ServiceError{kind: :conflict, service: service(account), account: account.name}

  # Requests

  defp propfind(account, path, depth) do
    request = [method: :propfind, url: url(account, path)] ++ body(depth, @properties)
    with {:ok, answer} <- call(account, request, []), do: responses(account, answer)
  end

  defp body(depth, properties) do
    xml =
      ~s(<d:propfind xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop>) <>
        properties <> "</d:prop></d:propfind>"

    [headers: [{"depth", "#{depth}"}], body: {"application/xml; charset=utf-8", xml}]
  end

  defp call(account, request, options) do
    user = account.options.username
    basic = &("Basic " <> Base.encode64("#{user}:#{&1}"))
    request = Keyword.put(request, :authorization, basic)
    # Addresses are complete, and of this server.
    account = %{account | url: origin(account)}
    options = Keyword.merge([decode: :raw, max_body: @max_body], options)
    Client.request(account, request, options)
  end

  defp origin(account) do
    uri = URI.parse(account.options.url)
    URI.to_string(%URI{scheme: uri.scheme, host: uri.host, port: uri.port})
  end

  defp url(account, path), do: origin(account) <> path

  defp file_url(account, calendar, file),
    do: url(account, String.trim_trailing(calendar.path, "/") <> "/" <> file)

  # The path of an address in an answer.
  defp path(account, href) do
    own = URI.parse(account.options.url)
    uri = URI.merge(own, String.trim(href))

    if {uri.scheme, uri.host, uri.port} == {own.scheme, own.host, own.port},
      do: {:ok, uri.path || "/"},
      else: {:error, bad(account, "it names another server: set the account's URL to it")}
  rescue
    _ in [ArgumentError, URI.Error] -> {:error, bad(account, "it names no readable address")}
  end

  defp bad(account, hint) do
    %ServiceError{
      kind: :bad_answer,
      service: service(account),
      account: account.name,
      hint: hint
    }
  end

  defp service(account), do: URI.parse(account.options.url).host

  # Answers: the elements of each response, with the depth below it

  defp responses(account, %{body: body}) do
    case Library.xml_elements(body) do
      {:ok, [{0, @dav <> "multistatus", _, _} | elements]} ->
        {:ok, elements |> split() |> Enum.flat_map(&response(account, &1))}

      _ ->
        {:error, bad(account, "its answer is not that of CalDAV")}
    end
  end

  defp split(elements) do
    elements
    |> Enum.chunk_while(
      [],
      fn
        {1, _, _, _} = element, [] -> {:cont, [element]}
        {1, _, _, _} = element, chunk -> {:cont, Enum.reverse(chunk), [element]}
        element, chunk -> {:cont, [element | chunk]}
      end,
      fn chunk -> {:cont, Enum.reverse(chunk), []} end
    )
    |> Enum.filter(&match?([{1, @dav <> "response", _, _} | _], &1))
  end

  # Only properties that the server found.
  defp response(account, [_ | elements]) do
    with {_, _, href, _} <- List.keyfind(elements, @dav <> "href", 1),
         {:ok, path} <- path(account, href),
         true <- path =~ ~r/\A[!-~]+\z/ do
      [%{href: path, elements: found(elements)}]
    else
      _ -> []
    end
  end

  defp found(elements) do
    elements
    |> Enum.chunk_while(
      [],
      fn
        {2, _, _, _} = element, chunk -> {:cont, Enum.reverse(chunk), [element]}
        element, chunk -> {:cont, [element | chunk]}
      end,
      fn chunk -> {:cont, Enum.reverse(chunk), []} end
    )
    |> Enum.filter(fn chunk ->
      match?([{2, @dav <> "propstat", _, _} | _], chunk) and ok?(chunk)
    end)
    |> Enum.concat()
  end

  defp ok?(chunk) do
    case List.keyfind(chunk, @dav <> "status", 1) do
      {_, _, status, _} -> status =~ ~r/\A\s*HTTP\/[0-9.]+ 2\d\d/
      nil -> true
    end
  end

  # Properties are at the depth 4: multistatus, response, propstat, prop.
  defp text(response, name) do
    case List.keyfind(response.elements, name, 1) do
      {4, _, text, _} when text != "" -> text
      _ -> nil
    end
  end

  defp inner(response, name) do
    response.elements
    |> Enum.drop_while(&(not match?({4, ^name, _, _}, &1)))
    |> Enum.drop(1)
    |> Enum.take_while(&(elem(&1, 0) > 4))
  end

  defp names(response, name), do: for({_, name, _, _} <- inner(response, name), do: name)

  defp href(response, name) do
    case List.keyfind(inner(response, name), @dav <> "href", 1) do
      {_, _, href, _} -> href
      nil -> nil
    end
  end

  defp segments(path), do: String.split(path, "/", trim: true)
end
