defmodule Skillbook.Connections.MicrosoftServerTest do
  # The server of test/support/services refuses what Microsoft's description does not allow, and
  # what Microsoft itself refuses. Tests of the commands rely on that.
  use ExUnit.Case, async: true

  alias Skillbook.HTTP
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Services

  @messages "/v1.0/me/messages"
  @event %{
    subject: "A",
    start: %{dateTime: "2026-03-02T09:00:00", timeZone: "UTC"},
    end: %{dateTime: "2026-03-02T10:00:00", timeZone: "UTC"}
  }
  @mime Base.encode64("To: bob@example.com\r\nSubject: A\r\n\r\nHi")

  # The folder that has all others.
  @top "/v1.0/me/drive/items/root"

  # {method, path and query, body, "violation", {status, code} or the status}
  @table [
    # Routes
    {:get, @messages, nil, 200},
    {:get, "/v1.0/me/letters", nil, "GET /me/letters: Graph's description has no such method"},
    {:put, @messages, nil, "PUT /me/messages: Graph's description has no such method"},
    {:get, "/v2.0/me/messages", nil, "GET /v2.0/me/messages: no service has this path"},
    {:get, @top <> "/children", nil, 200},
    {:get, "/v1.0/me/mailFolders/inbox/messages", nil, 200},
    # Queries
    {:get, @messages <> "?%24top=5&%24select=id", nil, 200},
    {:get, @messages <> "?%24limit=5", nil, "GET /me/messages has no parameter '$limit'"},
    {:get, @messages <> "?%24top=five", nil, "$top is no number"},
    {:get, @messages <> "?%24top=5&%24top=6", nil, "the parameter '$top' is given twice"},
    {:get, @messages <> "?%24top=5000", nil, {400, "ErrorInvalidUrlQuery"}},
    {:get, @messages <> "?%24filter=isRead+eq+true", nil, 200},
    {:get, @messages <> "?%24filter=isRead+is+true", nil, {400, "ErrorInvalidUrlQueryFilter"}},
    {:get, @messages <> "?%24filter=isRead+eq+true&%24orderby=receivedDateTime", nil,
     {400, "InefficientFilter"}},
    {:get, @messages <> "?%24search=%22tea%22&%24filter=isRead+eq+true", nil,
     {400, "SearchWithFilter"}},
    {:get, @messages <> "?%24search=tea", nil, {400, "BadRequest"}},
    {:get, "/v1.0/me/calendarView", nil, {400, "ErrorInvalidParameter"}},
    # Ids
    {:get, @messages <> "/AAkAL-9=", nil, {404, "ErrorItemNotFound"}},
    {:get, @messages <> "/x", nil, {400, "ErrorInvalidIdMalformed"}},
    # Bodies
    {:post, @messages, {"text/plain", @mime}, 201},
    {:post, "/v1.0/me/sendMail", {"text/plain", @mime}, 202},
    {:post, "/v1.0/me/sendMail", {"text/plain", "not base64!"},
     {400, "ErrorMimeContentInvalidBase64String"}},
    {:post, "/v1.0/me/sendMail", {"text/html", @mime},
     "content type 'text/html' where JSON is sent"},
    {:post, "/v1.0/me/events", {"text/plain", @mime},
     "content type 'text/plain' where JSON is sent"},
    {:post, "/v1.0/me/events", @event, 201},
    {:post, "/v1.0/me/events", Map.put(@event, :title, "A"),
     "the body has an unknown field of Event: title"},
    {:post, "/v1.0/me/events", %{@event | subject: 5}, "the body.subject is no text: 5"},
    {:post, "/v1.0/me/events", Map.put(@event, :isAllDay, "no"),
     "the body.isAllDay is no bool: 'no'"},
    {:post, "/v1.0/me/events", Map.put(@event, :showAs, "away"),
     "the body.showAs: 'away' is no FreeBusyStatus"},
    {:post, "/v1.0/me/events", Map.put(@event, :attendees, [%{email: "b@example.com"}]),
     "the body.attendees[0] has an unknown field of Attendee: email"},
    {:post, "/v1.0/me/events", Map.put(@event, :attendees, nil), "the body.attendees is null"},
    {:post, "/v1.0/me/events", put_in(@event.start.timeZone, "Mars"),
     {400, "TimeZoneNotSupportedException"}},
    {:post, "/v1.0/me/events", Map.put(@event, :isAllDay, true),
     {400, "ErrorPropertyValidationFailure"}},
    {:post, "/v1.0/me/calendar/getSchedule",
     %{Schedules: ["ann@example.com"], StartTime: @event.start, EndTime: @event.end}, 200},
    {:post, "/v1.0/me/calendar/getSchedule", %{schedules: ["ann@example.com"]},
     "the body has an unknown field of GetSchedulePostRequestBody: schedules"},
    {:post, @top <> "/children",
     %{:name => "A", :folder => %{}, "@microsoft.graph.conflictBehavior" => "fail"}, 201},
    {:delete, "/v1.0/me/drive/items/NONE", nil, {404, "itemNotFound"}},
    # Batches
    {:post, "/v1.0/$batch",
     %{requests: [%{id: "1", method: "GET", url: "/me/messages?%24top=1"}]}, 200},
    {:post, "/v1.0/$batch", %{requests: [%{id: "1", method: "GET", url: "https://x/me"}]},
     "the address 'https://x/me' of a batch"}
  ]

  test "requests that Microsoft's description does not allow are refused, others are not" do
    for {method, path, body, expected} <- @table do
      world = Services.world(%{}, violations: true)
      {status, json} = send_to(world, method, path, body, world.tokens["ann@example.com"])
      [entry | _] = Services.log(world)

      found =
        cond do
          entry["violation"] -> entry["violation"]
          status in 200..299 -> status
          true -> {status, json["error"]["code"]}
        end

      assert {method, path, body, found} == {method, path, body, expected}
    end
  end

  test "tokens: missing, unknown, or without a scope of the request" do
    world = Services.world(%{}, violations: true)
    token = &Services.token(world, user: "ann@example.com", scopes: &1)["access_token"]
    mail = token.(["Mail.Read"])

    for {method, path, body, token, expected} <- [
          {:get, @messages, nil, "x", {401, "InvalidAuthenticationToken"}},
          {:get, @messages, nil, mail, 200},
          {:post, @messages, {"text/plain", @mime}, mail, {403, "ErrorAccessDenied"}},
          {:post, "/v1.0/me/sendMail", {"text/plain", @mime}, mail, {403, "ErrorAccessDenied"}},
          {:post, "/v1.0/me/sendMail", {"text/plain", @mime}, token.(["Mail.Send"]), 202},
          {:get, "/v1.0/me/events", nil, mail, {403, "ErrorAccessDenied"}},
          {:get, "/v1.0/me/events", nil, token.(["Calendars.Read"]), 200},
          {:post, "/v1.0/me/events", @event, token.(["Calendars.Read"]),
           {403, "ErrorAccessDenied"}},
          {:get, "/v1.0/me/drive/items/root", nil, token.(["Files.Read"]), 200},
          {:delete, "/v1.0/me/drive/items/x", nil, token.(["Files.Read"]),
           {403, "ErrorAccessDenied"}}
        ] do
      {status, json} = send_to(world, method, path, body, token)
      found = if status in 200..299, do: status, else: {status, json["error"]["code"]}
      assert {method, path, found} == {method, path, expected}
    end
  end

  defp send_to(world, method, path, body, token) do
    {type, data} =
      case body do
        nil -> {[], []}
        {type, data} -> {[{"content-type", type}], [body: data]}
        value -> {[{"content-type", "application/json"}], [body: JSON.encode(value)]}
      end

    headers =
      [{"authorization", "Bearer " <> token}, {"prefer", ~s(IdType="ImmutableId")}] ++ type

    request = [method: method, url: world.url <> path, headers: headers] ++ data
    {:ok, response} = HTTP.request(request)

    case JSON.decode(response.body) do
      {:ok, json} -> {response.status, json}
      {:error, _empty} -> {response.status, nil}
    end
  end
end
