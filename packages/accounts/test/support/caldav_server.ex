defmodule Skillbook.Test.CalDAVServer do
  @moduledoc false
  # Accounts on the calendar server of bin/radicale-for-tests, each of a user of its own.

  alias Skillbook.Calendar.ICalendar
  alias Skillbook.Connections.Account

  @doc "The account of a new user, with the calendar `own` in Europe/Berlin."
  def account(path \\ "/") do
    account = user(path)
    make(account, "own", ["Europe/Berlin"])
    account
  end

  @doc "The account of a new user without calendars. `USER` in the path is their name."
  def user(path \\ "/") do
    {server, password} = server()
    user = "test#{next()}"

    %Account{
      book: nil,
      name: :calendar,
      vendor: Skillbook.Connections.CalDAV,
      profile: user,
      deadline: System.monotonic_time(:millisecond) + 30_000,
      options: %{
        url: server <> String.replace(path, "USER", user),
        username: user,
        password: fn -> password end
      }
    }
  end

  # The server has 500 users. Runs of other packages may use it too, so a calendar of the user
  # `test0` takes a number.
  defp next(number \\ :persistent_term.get(__MODULE__, 1)) do
    case make_calendar("test0", "taken-#{number}", "") do
      "201" ->
        :persistent_term.put(__MODULE__, number + 1)
        number

      "409" ->
        next(number + 1)
    end
  end

  @doc "The server's URL and the password of every user."
  def server do
    url =
      System.get_env("SKILLBOOK_CALDAV") ||
        raise "SKILLBOOK_CALDAV is not set. To start a server and set it: " <>
                "bin/radicale-for-tests run mix test"

    [server, "password=" <> password] = String.split(url, "?")
    {server, password}
  end

  @doc "Makes a calendar, in a zone or without one."
  def make(account, name, zone \\ []) do
    calendar = %{
      name: "VCALENDAR",
      properties: [{"VERSION", [], "2.0"}, {"PRODID", [], "test"}],
      components: Enum.map(zone, &ICalendar.zone_component(&1, ~U[2026-01-01 00:00:00Z]))
    }

    zone =
      if zone == [],
        do: "",
        else: "<c:calendar-timezone>#{ICalendar.write(calendar)}</c:calendar-timezone>"

    "201" = make_calendar(account.options.username, name, zone)
  end

  defp make_calendar(user, name, zone) do
    xml =
      ~s(<?xml version="1.0"?><c:mkcalendar xmlns:d="DAV:" ) <>
        ~s(xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>) <>
        "<d:displayname>#{name}</d:displayname>#{zone}</d:prop></d:set></c:mkcalendar>"

    request(user, "MKCALENDAR", "/#{name}/", "application/xml", xml)
  end

  @doc "Puts a file into a calendar, as another program would."
  def put(account, name, text, calendar \\ "own") do
    path = "/#{calendar}/#{name}"
    "201" = request(account.options.username, "PUT", path, "text/calendar", text)
  end

  @doc "A file as it is on the server."
  def read(account, name, calendar \\ "own") do
    {server, password} = server()
    user = account.options.username
    basic = "Basic " <> Base.encode64("#{user}:#{password}")
    url = "#{server}/#{user}/#{calendar}/#{name}"

    {:ok, %{status: 200, body: body}} =
      Skillbook.HTTP.request(url: url, headers: [{"authorization", basic}])

    body
  end

  # `Skillbook.HTTP` has no MKCALENDAR.
  defp request(user, method, path, type, body) do
    {server, password} = server()
    %{host: host, port: port} = URI.parse(server)
    {:ok, socket} = :gen_tcp.connect(String.to_charlist(host), port, [:binary, active: false])

    :ok =
      :gen_tcp.send(socket, [
        "#{method} /#{user}#{path} HTTP/1.1\r\nhost: #{host}:#{port}\r\nconnection: close\r\n",
        "authorization: Basic #{Base.encode64("#{user}:#{password}")}\r\n",
        "content-type: #{type}; charset=utf-8\r\ncontent-length: #{byte_size(body)}\r\n\r\n",
        body
      ])

    {:ok, <<"HTTP/1.", _, " ", status::binary-3, _::binary>>} = :gen_tcp.recv(socket, 0)
    :gen_tcp.close(socket)
    status
  end
end
