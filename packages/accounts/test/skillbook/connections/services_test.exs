defmodule Skillbook.Connections.ServicesTest do
  # The server of test/support/services refuses what Google's descriptions do not allow. Tests of
  # commands rely on that.
  use ExUnit.Case, async: true

  alias Skillbook.HTTP
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Services

  setup context do
    world = Services.world(Map.merge(%{echo: true}, context[:seed] || %{}), violations: true)
    %{world: world, token: world.tokens["ann@example.com"]}
  end

  @gmail "/gmail/v1/users/me"
  @label %{name: "Work", labelListVisibility: "labelShow", messageListVisibility: "show"}
  @events "/calendar/v3/calendars/primary/events"
  @files "/drive/v3/files"
  @start %{start: %{date: "2026-03-01"}, end: %{date: "2026-03-02"}}

  # {method, path and query, body, violation or the status of an allowed request}
  @table [
    # Routes
    {:get, @gmail <> "/messages", nil, 200},
    {:get, "/gmail/v2/users/me/messages", nil,
     "GET /gmail/v2/users/me/messages: no service has this path"},
    {:get, @gmail <> "/letters", nil,
     "GET /gmail/v1/users/me/letters: no method of gmail:v1 has this path"},
    {:put, @gmail <> "/messages", nil,
     "PUT /gmail/v1/users/me/messages: gmail.users.messages.insert is POST"},
    {:get, @files <> "/generateIds?count=3", nil, 200},
    {:get, "/calendar/v3/calendars/ann%40example.com/events/e1", nil, 200},
    # Parameters
    {:get, @gmail <> "/messages?maxResults=5&labelIds=A&labelIds=B&q=from%3Aann", nil, 200},
    {:get, @gmail <> "/messages?max_results=5", nil,
     "gmail.users.messages.list has no parameter 'max_results'"},
    {:get, @gmail <> "/messages?maxResults=five", nil, "maxResults: 'five' is no integer"},
    {:get, @gmail <> "/messages?maxResults=-1", nil,
     "maxResults: -1 is not between 0 and 4294967295"},
    {:get, @gmail <> "/messages?includeSpamTrash=1", nil,
     "includeSpamTrash: '1' is neither true nor false"},
    {:get, @gmail <> "/messages?q=a&q=b", nil, "q is given twice"},
    {:get, @gmail <> "/messages?q", nil, "'q' has no ="},
    {:get, @gmail <> "/messages?q=%ff", nil, "'q=%ff' is not in UTF-8"},
    {:get, @gmail <> "/messages?q=%zz", nil, "'q=%zz' is not encoded (RFC 3986, 3.4)"},
    {:get, @gmail <> "/messages/m1?format=metadata&metadataHeaders=To", nil, 200},
    {:get, @gmail <> "/messages/m1?format=long", nil,
     "format: 'long' is none of ['minimal', 'full', 'raw', 'metadata']"},
    {:get, @gmail <> "/messages?access_token=x", nil, "a token in the query: access_token"},
    {:get, @files <> "?pageSize=1001", nil, "pageSize: 1001 is not between 1 and 1000"},
    {:get, @files <> "?pageSize=1000", nil, 200},
    {:get, @files <> "/f1/export", nil, "mimeType is missing"},
    {:get, @files <> "/f1/export?mimeType=text/plain", nil, 200},
    {:get, @events <> "?timeMin=2026-03-01T00:00:00Z", nil, 200},
    {:get, @events <> "?timeMin=2026-03-01T00:00:00%2B01:00", nil, 200},
    {:get, @events <> "?timeMin=2026-03-01T00:00:00+01:00", nil,
     "timeMin: '2026-03-01T00:00:00 01:00' is no time of RFC 3339 with a zone"},
    {:get, @events <> "?timeMin=2026-03-01", nil,
     "timeMin: '2026-03-01' is no time of RFC 3339 with a zone"},
    {:get, @events <> "?timeMin=2026-02-30T00:00:00Z", nil,
     "timeMin: '2026-02-30T00:00:00Z' is no time of RFC 3339 with a zone"},
    # Partial responses
    {:get, @gmail <> "/messages?fields=messages(id,threadId),nextPageToken", nil, 200},
    {:get, @gmail <> "/messages?fields=messages/id", nil, 200},
    {:get, @gmail <> "/messages?fields=messages(id,subject)", nil,
     "Invalid field selection subject (fields/messages)"},
    {:get, @gmail <> "/messages?fields=messages(id", nil,
     "fields: cannot read 'messages(id' at ''"},
    {:get, @gmail <> "/messages?fields=", nil, "fields: cannot read '' at ''"},
    {:get, @files <> "?fields=files(id,owners/emailAddress,appProperties/x)", nil, 200},
    # Bodies
    {:post, @gmail <> "/messages/send", %{raw: "YWJj"}, 200},
    {:post, @gmail <> "/messages/send", %{raw: "YWI_"}, 200},
    {:post, @gmail <> "/messages/send", %{raw: "YWI/"},
     "body.raw: this is not base64url: 'YWI/'"},
    {:post, @gmail <> "/messages/send", %{raw: "YWJja"},
     "body.raw: this is not base64url: 'YWJja'"},
    {:post, @gmail <> "/messages/send", %{body: "hello"},
     "body: unknown field 'body' of Message"},
    {:post, @gmail <> "/messages/send", %{raw: 5}, "body.raw: expected a string, got 5"},
    {:post, @gmail <> "/messages/send", %{raw: "YWJj", historyId: "18446744073709551615"}, 200},
    {:post, @gmail <> "/messages/send", %{raw: "YWJj", historyId: 5},
     "body.historyId: expected a string, got 5"},
    {:post, @gmail <> "/messages/send", %{raw: "YWJj", historyId: "-5"},
     "body.historyId: '-5' is no uint64"},
    {:post, @gmail <> "/messages/send", [], "body: expected an object, got []"},
    {:post, @gmail <> "/messages/send", {:json, ~S({"raw":"YWJj","raw":"YWJj"})},
     "the body has the name 'raw' twice"},
    {:post, @gmail <> "/messages/send", {:json, ~S({"sizeEstimate":NaN})},
     "the body has NaN, which is not JSON"},
    {:post, @gmail <> "/messages/send", {"text/plain", ~S({"raw":"YWJj"})},
     "content type 'text/plain' where JSON is sent"},
    {:post, @gmail <> "/messages/m1/trash", nil, 200},
    {:post, @gmail <> "/messages/m1/trash", %{}, "gmail.users.messages.trash takes no body"},
    {:post, @gmail <> "/labels", @label, 200},
    {:post, @gmail <> "/labels", Map.delete(@label, :name), "body.name is missing"},
    {:post, @gmail <> "/labels", nil, "body.labelListVisibility is missing"},
    {:post, @gmail <> "/labels", %{@label | messageListVisibility: "all"},
     "body.messageListVisibility: 'all' is none of ['show', 'hide']"},
    {:post, @gmail <> "/messages/batchModify", %{ids: ["m1"], addLabelIds: ["A"]}, 204},
    {:post, @gmail <> "/messages/batchModify", %{ids: "m1"},
     ~S(body.ids: expected a list, got "m1")},
    {:delete, @gmail <> "/messages/m1", nil, 204},
    {:post, @events, @start, 200},
    {:post, @events, %{start: @start.start}, "body.end is missing"},
    {:post, @events, %{@start | start: %{dateTime: "2026-03-01T09:00:00+01:00"}}, 200},
    {:post, @events, %{@start | start: %{dateTime: "2026-03-01T09:00:00"}},
     "body.start.dateTime has neither offset nor timeZone"},
    {:post, @events,
     %{@start | start: %{dateTime: "2026-03-01T09:00:00", timeZone: "Europe/Berlin"}}, 200},
    {:post, @events, %{@start | start: %{dateTime: "2026-03-01 09:00", timeZone: "UTC"}},
     "body.start.dateTime: '2026-03-01 09:00' is no time"},
    {:post, @events, %{@start | start: %{date: "2026-02-29"}},
     "body.start.date: '2026-02-29' is no date"},
    {:post, @events, Map.put(@start, :attendees, [%{email: "b@example.com", name: "B"}]),
     "body.attendees[0]: unknown field 'name' of EventAttendee"},
    {:patch, @events <> "/e1", %{description: nil}, 200},
    {:post, @events, Map.put(@start, :description, nil),
     "body.description: expected a string, got null"},
    {:patch, @files <> "/f1?addParents=a", %{name: "b"}, 200},
    {:post, @files <> "/f1/permissions", %{role: "reader", type: "anyone"}, 200},
    {:post, @files <> "/f1/permissions", %{role: "reader"}, "body.type is missing"},
    # Uploads and downloads
    {:get, @files <> "/f1?alt=media", nil, 200},
    {:get, @gmail <> "/messages/m1?alt=media", nil,
     "alt=media: gmail.users.messages.get gives no media"},
    {:post, "/upload/drive/v3/files?uploadType=media", {"text/plain", "hello"}, 200},
    {:post, "/upload/drive/v3/files", {"text/plain", "hello"}, "uploadType is None in an upload"},
    {:post, @files <> "?uploadType=media", %{name: "a"},
     "uploadType belongs to the paths below /upload/"},
    {:post, "/upload/gmail/v1/users/me/messages/send?uploadType=media",
     {"message/rfc822", "To: bob@example.com\r\n\r\nHi"}, 200},
    {:post, "/upload/gmail/v1/users/me/messages/send?uploadType=media", {"text/plain", "Hi"},
     "the type 'text/plain' of the upload is none of ['message/*']"},
    {:post, "/upload/drive/v3/files?uploadType=multipart",
     {"multipart/related; boundary=x",
      "--x\r\nContent-Type: application/json\r\n\r\n{\"name\":\"a\"}\r\n" <>
        "--x\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n"}, 200},
    {:post, "/upload/drive/v3/files?uploadType=multipart",
     {"multipart/related; boundary=x",
      "--x\r\nContent-Type: application/json\r\n\r\n{\"title\":\"a\"}\r\n" <>
        "--x\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n"},
     "body: unknown field 'title' of File"},
    {:post, "/upload/drive/v3/files?uploadType=multipart",
     {"multipart/related; boundary=x",
      "--x\r\nContent-Type: application/json\r\n\r\n{}\r\n--x--\r\n"},
     "a multipart upload has 2 parts, not 1"},
    {:post, "/upload/drive/v3/files?uploadType=multipart",
     {"multipart/form-data; boundary=x", "--x--\r\n"},
     "content type 'multipart/form-data; boundary=x', not multipart/related"},
    {:post, "/upload/drive/v3/files?uploadType=resumable", %{name: "a"},
     "a resumable upload without X-Upload-Content-Type"}
  ]

  test "requests that the descriptions do not allow are refused, others are not", context do
    for {method, path, body, expected} <- @table do
      {status, _headers, answer} = send_to(context, method, path, body)
      entry = List.last(Services.log(context.world))
      row = "#{method} #{path} #{inspect(body)}"

      if is_integer(expected) do
        assert {row, entry["violation"], status} == {row, nil, expected}
      else
        assert {row, entry["violation"]} == {row, expected}
        assert status in [400, 404]
        assert String.contains?(answer, "error")
      end
    end

    check = fn -> Services.check(context.world) end
    flunked = assert_raise(ExUnit.AssertionError, check)
    assert flunked.message =~ "Requests that the vendor does not allow:"
    assert flunked.message =~ "GET /gmail/v1/users/me/messages: q is given twice"
  end

  test "tokens: missing, unknown, expired, or without a scope of the method", context do
    %{world: world} = context
    path = @gmail <> "/messages"

    assert {401, _, _} = send_to(%{context | token: nil}, :get, path)
    assert List.last(Services.log(world))["violation"] == "no Authorization header"
    assert {401, _, _} = send_to(%{context | token: {:header, "Basic eDp5"}}, :get, path)
    assert List.last(Services.log(world))["violation"] == "Authorization is not 'Bearer TOKEN'"

    # Proper requests that Google refuses.
    assert {401, headers, answer} = send_to(%{context | token: "ya29.x"}, :get, path)
    assert %{"www-authenticate" => ["Bearer" <> _]} = headers

    assert {:ok,
            %{
              "error" => %{
                "code" => 401,
                "status" => "UNAUTHENTICATED",
                "errors" => [
                  %{"reason" => "authError", "location" => "Authorization", "domain" => "global"}
                ]
              }
            }} = JSON.decode(answer)

    token = fn scopes ->
      Services.token(world, user: "ann@example.com", scopes: scopes)["access_token"]
    end

    least = token.(["https://www.googleapis.com/auth/gmail.readonly"])
    assert {200, _, _} = send_to(%{context | token: least}, :get, path)
    wrong = token.(["https://www.googleapis.com/auth/gmail.send"])
    assert {403, headers, answer} = send_to(%{context | token: wrong}, :get, path)
    assert answer =~ "insufficientPermissions"
    assert %{"www-authenticate" => [challenge]} = headers
    assert challenge =~ "https://www.googleapis.com/auth/gmail.readonly"
    assert {403, _, _} = send_to(context, :get, "/gmail/v1/users/bob@example.com/messages")
    assert List.last(Services.log(world))["violation"] == nil

    Services.advance(world, 3_600)
    assert {401, _, _} = send_to(%{context | token: least}, :get, path)
    assert {200, _, _} = send_to(context, :get, path)
  end

  test "a partial response has the asked fields only", context do
    body = Map.merge(@start, %{summary: "A", attendees: [%{email: "b@x.com", optional: true}]})
    path = @events <> "?fields=summary,attendees(email),start/date"
    {200, _, answer} = send_to(context, :post, path, body)

    assert JSON.decode(answer) ==
             {:ok,
              %{
                "summary" => "A",
                "attendees" => [%{"email" => "b@x.com"}],
                "start" => %{"date" => "2026-03-01"}
              }}
  end

  test "resumable uploads: parts, a lost part, a wrong range", context do
    %{world: world} = context
    headers = [{"x-upload-content-type", "text/plain"}, {"x-upload-content-length", "300000"}]
    path = "/upload/drive/v3/files?uploadType=resumable"
    {200, answered, _} = send_to(context, :post, path, %{name: "a"}, headers)
    %{"location" => ["http" <> _ = url]} = answered
    data = :binary.copy("a", 300_000)
    path = String.replace_prefix(url, world.url, "")

    put = fn first, last, total ->
      bytes = if first, do: binary_part(data, first, last - first + 1), else: ""
      range = if first, do: "#{first}-#{last}", else: "*"

      send_to(context, :put, path, {"text/plain", bytes}, [
        {"content-range", "bytes #{range}/#{total}"}
      ])
    end

    assert {308, headers, _} = put.(nil, nil, 300_000)
    refute Map.has_key?(headers, "range")
    assert {400, _, _} = put.(0, 999, 300_000)
    assert List.last(Services.log(world))["violation"] =~ "a part of 1000 bytes, not a multiple"
    assert {308, headers, _} = put.(0, 262_143, 300_000)
    assert %{"range" => ["bytes=0-262143"]} = headers
    assert {400, _, _} = put.(262_200, 299_999, 300_000)
    assert {200, _, answer} = put.(262_144, 299_999, 300_000)
    assert {:ok, %{"name" => "a", "size" => "300000"}} = JSON.decode(answer)
    # The answer was lost, and the client asks for it again.
    assert {200, _, ^answer} = put.(nil, nil, 300_000)
    assert length(Enum.filter(Services.methods(world), &(&1 == "drive.files.create"))) == 1
  end

  test "batches: each call is checked by itself, and answered by its id", context do
    part = fn id, text ->
      "--b\r\nContent-Type: application/http\r\nContent-ID: <#{id}>\r\n\r\n#{text}\r\n"
    end

    body =
      part.("one", "GET /gmail/v1/users/me/messages/m1?format=minimal\r\n\r\n") <>
        part.("two", "GET /gmail/v1/users/me/messages/m1?format=tiny\r\n\r\n") <>
        part.("three", "POST /gmail/v1/users/me/labels\r\n\r\n") <> "--b--\r\n"

    type = "multipart/mixed; boundary=b"
    assert {200, _, answer} = send_to(context, :post, "/batch/gmail/v1", {type, body})
    assert answer =~ ~r/Content-ID: <response-one>\r\n\r\nHTTP\/1.1 200/
    assert answer =~ ~r/Content-ID: <response-two>\r\n\r\nHTTP\/1.1 400/
    log = Services.log(context.world)

    assert Enum.map(log, &{&1["method"], &1["batch"]}) == [
             {"gmail.batch", nil},
             {"gmail.users.messages.get", 1},
             {"gmail.users.messages.get", 1},
             {"gmail.users.labels.create", 1}
           ]

    for {body, type, violation} <- [
          {part.("one", "GET /drive/v3/files\r\n\r\n") <> "--b--\r\n", type,
           "/drive/v3/files is not of gmail"},
          {part.("one", "GET /batch/gmail/v1\r\n\r\n") <> "--b--\r\n", type,
           "/batch/gmail/v1 is not of gmail"},
          {String.duplicate(part.("one", "GET /gmail/v1/users/me/labels\r\n\r\n"), 2) <>
             "--b--\r\n", type, "Content-ID '<one>'"},
          {Enum.map_join(1..101, &part.(&1, "GET /gmail/v1/users/me/labels\r\n\r\n")) <>
             "--b--\r\n", type, "101 calls, more than 100"},
          {part.("one", "GET /gmail/v1/users/me/labels\r\n\r\n"), type,
           "the last boundary is missing"},
          {body, "multipart/form-data; boundary=b",
           "content type 'multipart/form-data; boundary=b', not multipart/mixed"}
        ] do
      Services.clear_log(context.world)
      assert {400, _, _} = send_to(context, :post, "/batch/gmail/v1", {type, body})
      assert violation in Enum.map(Services.log(context.world), & &1["violation"])
    end
  end

  test "Google's own client is understood, and understands the answers", %{world: world} do
    assert Services.judge(world, "client.uses") == %{
             "multipart" => %{"size" => "600000"},
             "resumable" => %{"size" => "600000"},
             "batch" => %{"labels" => %{"labels" => []}, "message" => 403},
             "download" => "0123456789",
             "error" => %{"status" => 403, "reason" => "Delegation denied for ann@example.com"}
           }

    assert Services.check(world) == :ok
  end

  test "faults: which calls they hit, and with or without effect", context do
    %{world: world} = context
    list = fn -> send_to(context, :get, @gmail <> "/messages") end

    Services.faults(world, [
      %{method: "gmail.users.messages.*", skip: 1, times: 2, status: 429}
      |> Map.merge(%{reason: "rateLimitExceeded", retry_after: 1})
    ])

    assert {200, _, _} = list.()
    assert {429, headers, answer} = list.()
    assert %{"retry-after" => ["1"]} = headers
    assert {:ok, %{"error" => %{"errors" => [error]}}} = JSON.decode(answer)
    assert %{"reason" => "rateLimitExceeded", "domain" => "usageLimits"} = error
    # A wrong request is a violation, whatever the fault.
    send_to(context, :get, @gmail <> "/messages?x=1")
    assert List.last(Services.log(world))["violation"]
    assert {429, _, _} = list.()
    assert {200, _, _} = list.()

    # Without an answer the HTTP client repeats a GET on another connection, but never a POST.
    label = fn -> send_to(context, :post, @gmail <> "/labels", @label) end
    Services.clear_log(world)
    Services.fault(world, method: "gmail.users.labels.create", cut: 0)
    assert {:error, %HTTP.Error{}} = label.()
    Services.fault(world, method: "gmail.users.labels.create", cut: 0, applied: true)
    assert {:error, %HTTP.Error{}} = label.()
    Services.fault(world, method: "gmail.users.labels.create", status: 500, applied: true)
    assert {500, _, _} = label.()
    assert length(Services.log(world)) == 3
    Services.fault(world, method: "gmail.users.messages.list", cut: 95)
    assert {:error, %HTTP.Error{}} = list.()
    Services.fault(world, method: "gmail.users.messages.list", body: "<html>oops")
    assert {200, _, "<html>oops"} = list.()
    Services.fault(world, method: "gmail.users.messages.list", silent: true)
    assert {:error, %HTTP.Error{}} = send_to(context, :get, @gmail <> "/messages", nil, [], 100)
    assert {200, _, _} = list.()
  end

  test "a thousand requests at once", context do
    answers =
      1..1000
      |> Task.async_stream(fn _ -> send_to(context, :get, @gmail <> "/messages") end,
        max_concurrency: 1000,
        timeout: 60_000
      )
      |> Enum.frequencies_by(fn {:ok, answer} -> elem(answer, 0) end)

    assert answers == %{200 => 1000}
  end

  defp send_to(context, method, path, body \\ nil, headers \\ [], timeout \\ 30_000) do
    %{world: world, token: token} = context

    authorization =
      case token do
        nil -> []
        {:header, value} -> [{"authorization", value}]
        token -> [{"authorization", "Bearer " <> token}]
      end

    {type, data} =
      case body do
        nil -> {[], []}
        {:json, text} -> {[{"content-type", "application/json"}], [body: text]}
        {type, data} -> {[{"content-type", type}], [body: data]}
        value -> {[{"content-type", "application/json"}], [body: JSON.encode(value)]}
      end

    request =
      [method: method, url: world.url <> path, headers: authorization ++ type ++ headers] ++ data

    case HTTP.request(request, timeout: timeout) do
      {:ok, %{status: status, headers: headers, body: body}} -> {status, headers, body}
      {:error, error} -> {:error, error}
    end
  end
end
