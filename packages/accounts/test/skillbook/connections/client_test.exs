defmodule Skillbook.Connections.ClientTest do
  use ExUnit.Case, async: true

  alias Skillbook.Connections.{Account, Client}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.HTTPServer
  alias Skillbook.ServiceError

  doctest Skillbook.ServiceError

  defmodule Google do
    def auth(_options), do: {:secret, :token}
    def rules, do: Skillbook.Connections.Client.GoogleRules
  end

  defmodule Plain do
    def auth(_options), do: {:secret, :token}
  end

  @hubspot Skillbook.Connections.HubSpot
  @gmail "https://gmail.googleapis.com/gmail/v1/users/me/labels"
  @contacts "https://api.hubapi.com/crm/v3/objects/contacts"

  defp account(vendor, url, more \\ []) do
    token = more[:token] || fn -> "secret-token" end
    now = System.monotonic_time(:millisecond)

    %Account{
      book: nil,
      name: :vendor,
      vendor: vendor,
      # A bucket of its own for each test.
      profile: "p#{System.unique_integer([:positive])}",
      url: url,
      deadline: now + Keyword.get(more, :time, 20_000),
      options: Map.merge(%{token: token}, Map.new(more[:options] || []))
    }
  end

  defp steps({status, headers, body}) do
    body = if is_binary(body), do: body, else: JSON.encode(body)
    [{:head, status, [{"content-length", to_string(byte_size(body))} | headers]}, {:raw, body}]
  end

  defp google(status, reason, message \\ "No."),
    do:
      {status, [],
       %{error: %{code: status, message: message, errors: [%{reason: reason, domain: "global"}]}}}

  defp hubspot(status, fields, headers \\ []),
    do: {status, headers, Map.merge(%{"status" => "error", "message" => "No."}, fields)}

  @ok {200, [], %{"ok" => true}}

  # {vendor, answer, for a GET, for a POST}: `:again` is a repeat that succeeds.
  defp table do
    [
      {Google, google(429, "rateLimitExceeded"), :again, :again},
      {Google, google(403, "rateLimitExceeded"), :again, :again},
      {Google, google(403, "userRateLimitExceeded"), :again, :again},
      {Google,
       {403, [],
        %{error: %{status: "PERMISSION_DENIED", details: [%{reason: "RATE_LIMIT_EXCEEDED"}]}}},
       :again, :again},
      {Google, google(403, "dailyLimitExceeded"), :quota, :quota},
      {Google, google(403, "quotaExceeded"), :quota, :quota},
      {Google, google(403, "storageQuotaExceeded"), :quota, :quota},
      {Google, google(403, "sharingRateLimitExceeded"), :quota, :quota},
      {Google, google(403, "insufficientPermissions"), :scope, :scope},
      {Google, google(403, "accessNotConfigured"), :forbidden, :forbidden},
      {Google, google(403, "forbidden"), :forbidden, :forbidden},
      {Google, google(403, "domainPolicy"), :forbidden, :forbidden},
      {Google, {403, [], "<html>a proxy</html>"}, :forbidden, :forbidden},
      {Google, google(400, "badRequest"), :invalid, :invalid},
      {Google, google(401, "authError"), :unauthorized, :unauthorized},
      {Google, google(404, "notFound"), :not_found, :not_found},
      {Google, google(410, "deleted"), :not_found, :not_found},
      {Google, google(409, "duplicate"), :conflict, :conflict},
      {Google, google(412, "conditionNotMet"), :conflict, :conflict},
      {Google, google(413, "uploadTooLarge"), :too_large, :too_large},
      {Google, google(500, "backendError"), :again, {:server, :unclear}},
      {Google, google(502, "backendError"), :again, {:server, :unclear}},
      {Google, google(503, "backendError"), :again, {:server, :unclear}},
      {Google, google(504, "backendError"), :again, {:server, :unclear}},
      {Google, {302, [{"location", "https://evil.example"}], ""}, :bad_answer, :bad_answer},
      {@hubspot, hubspot(429, %{"policyName" => "SECONDLY"}), :again, :again},
      {@hubspot, hubspot(429, %{"policyName" => "TEN_SECONDLY_ROLLING"}), :again, :again},
      {@hubspot, hubspot(429, %{"policyName" => "DAILY"}), :quota, :quota},
      {@hubspot, hubspot(423, %{}, [{"retry-after", "0"}]), :again, :again},
      {@hubspot, hubspot(477, %{}), :again, :again},
      {@hubspot, hubspot(477, %{}, [{"retry-after", "86400"}]), :server, :server},
      {@hubspot, hubspot(500, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(502, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(503, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(504, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(521, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(523, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(524, %{}), :again, {:server, :unclear}},
      {@hubspot, hubspot(400, %{"category" => "VALIDATION_ERROR"}), :invalid, :invalid},
      {@hubspot, hubspot(401, %{"category" => "INVALID_AUTHENTICATION"}), :unauthorized,
       :unauthorized},
      {@hubspot, hubspot(403, %{"category" => "MISSING_SCOPES"}), :scope, :scope},
      {@hubspot, hubspot(403, %{"category" => "BANNED"}), :forbidden, :forbidden},
      {@hubspot, hubspot(404, %{"category" => "OBJECT_NOT_FOUND"}), :not_found, :not_found},
      {@hubspot, hubspot(409, %{"category" => "CONFLICT"}), :conflict, :conflict},
      {@hubspot, hubspot(414, %{}), :invalid, :invalid},
      {Plain, {429, [{"retry-after", "0"}], ""}, :again, :again},
      {Plain, {403, [], "rateLimitExceeded"}, :forbidden, :forbidden},
      {Plain, {408, [], ""}, :again, {:timeout, :unclear}},
      {Plain, {425, [], ""}, :again, :again},
      {Plain, {501, [], ""}, :invalid, :invalid},
      {Plain, {503, [], ""}, :again, {:server, :unclear}}
    ]
  end

  test "each failure is repeated, or not, by the vendor's rules" do
    for {vendor, answer, get, post} <- table(), {method, expected} <- [get: get, post: post] do
      more = if expected == :again, do: [@ok], else: []
      {_, url} = HTTPServer.start(Enum.map([answer | more], &steps/1))

      request =
        [method: method, url: url(vendor)] ++ if(method == :post, do: [json: %{}], else: [])

      # Waits are not slept; `{:slept, _}` says that there was one.
      test = self()
      options = [sleep: &send(test, {:slept, &1}), backoff: 10]
      result = Client.request(account(vendor, url), request, options)

      found =
        case result do
          {:ok, %{status: 200, body: %{"ok" => true}}} -> :again
          {:error, %ServiceError{unclear: true, kind: kind}} -> {kind, :unclear}
          {:error, %ServiceError{kind: kind}} -> kind
        end

      assert {vendor, answer, method, found} == {vendor, answer, method, expected}
      slept = receive(do: ({:slept, _} -> true), after: (0 -> false))
      assert {answer, slept} == {answer, expected == :again}
      assert_receive {:request, %{headers: %{"authorization" => "Bearer secret-token"}}}
    end
  end

  defp url(@hubspot), do: @contacts
  defp url(_vendor), do: @gmail

  test "`repeat: true` repeats a request that is harmless" do
    {_, url} = HTTPServer.start([steps(hubspot(502, %{})), steps(@ok)])
    request = [method: :post, url: @contacts <> "/search", json: %{"limit" => 1}]

    assert {:ok, %{body: %{"ok" => true}}} =
             Client.request(account(@hubspot, url), request, repeat: true, backoff: 1)

    assert_receive {:request, %{line: "POST /crm/v3/objects/contacts/search HTTP/1.1"} = first}
    assert_receive {:request, ^first}
  end

  describe "without a whole answer" do
    # {steps of the server, method, expected}
    test "a request is repeated if that is harmless" do
      cut = [{:head, 200, [{"content-length", "100"}]}, {:raw, "{"}]
      nothing = []

      rows = [
        {cut, :get, :again},
        {cut, :post, {:connection, :unclear}},
        {nothing, :get, :again},
        {nothing, :post, {:connection, :unclear}},
        {nothing, :patch, {:connection, :unclear}},
        {nothing, :put, :again},
        {nothing, :delete, :again}
      ]

      for {steps, method, expected} <- rows do
        more = if expected == :again, do: [steps(@ok)], else: []
        {_, url} = HTTPServer.start([steps | more])
        request = [method: method, url: @gmail]

        found =
          case Client.request(account(Google, url), request, backoff: 1) do
            {:ok, %{body: %{"ok" => true}}} -> :again
            {:error, %ServiceError{kind: kind, unclear: true}} -> {kind, :unclear}
          end

        assert {steps, method, found} == {steps, method, expected}
      end
    end

    test "a connection that was never opened has sent nothing, so every request is repeated" do
      {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
      {:ok, port} = :inet.port(socket)
      :gen_tcp.close(socket)
      account = account(Google, "http://127.0.0.1:#{port}")
      request = [method: :post, url: @gmail, json: %{}]
      assert {:error, error} = Client.request(account, request, backoff: 1, retries: 2)
      assert {error.kind, error.attempts, error.unclear} == {:connection, 3, false}

      assert Exception.message(error) =~
               ~r/\AGmail cannot be reached \(sent 3 times\): try again /
    end
  end

  describe "the time limit" do
    test "holds with rate limits that never end" do
      limited = steps(google(429, "rateLimitExceeded"))
      {_, url} = HTTPServer.start(List.duplicate(limited, 50))
      account = account(Google, url, time: 1_500, options: [retries: 20])
      {time, result} = :timer.tc(fn -> Client.request(account, [url: @gmail], backoff: 50) end)
      # The last attempt may be cut short.
      assert {:error, %ServiceError{kind: kind, attempts: sent}} = result
      assert kind in [:rate_limited, :timeout, :connection]
      assert sent in 2..21
      assert time < 1_700_000
    end

    test "or the number of repeats" do
      limited = steps(google(429, "rateLimitExceeded"))
      {_, url} = HTTPServer.start(List.duplicate(limited, 3))
      account = account(Google, url, options: [retries: 2])
      assert {:error, error} = Client.request(account, [url: @gmail], backoff: 1)

      assert Exception.message(error) ==
               "Gmail accepts no more requests for now (429, rateLimitExceeded; sent 3 " <>
                 "times): try again later. Gmail says: \"No.\""
    end

    test "ends before a wait that the server asks for" do
      answer = {429, [{"retry-after", "30"}], ""}
      {_, url} = HTTPServer.start([steps(answer)])
      account = account(Google, url, time: 2_000)
      {time, {:error, error}} = :timer.tc(fn -> Client.request(account, url: @gmail) end)
      assert time < 1_000_000

      assert Exception.message(error) ==
               "Gmail accepts no more requests for now (429): try again in 30 s"
    end

    test "holds with a server that says nothing, or never stops" do
      for steps <- [
            [:silent],
            [{:head, 200, []}, :silent],
            [{:head, 200, [{"content-length", "9999999999"}]}, {:endless, "x"}]
          ] do
        {_, url} = HTTPServer.start([steps])
        account = account(Google, url, time: 300)

        {time, {:error, error}} =
          :timer.tc(fn -> Client.request(account, [url: @gmail], max_body: 1_000_000_000) end)

        assert error.kind == :timeout
        assert time < 1_000_000
      end
    end

    test "and a limit of bytes: a change whose answer is too large may have been made" do
      for {method, unclear} <- [get: false, post: true] do
        {_, url} = HTTPServer.start([steps({200, [], String.duplicate("x", 100)})])
        request = [method: method, url: @gmail]
        {:error, error} = Client.request(account(Google, url), request, max_body: 50)
        assert {method, error.kind, error.unclear} == {method, :too_large, unclear}
      end
    end

    test "is over: nothing is sent" do
      account = account(Google, "http://127.0.0.1:1", time: -1)
      assert {:error, error} = Client.request(account, url: @gmail)
      assert {error.kind, error.attempts} == {:timeout, 0}
    end
  end

  describe "a refused token" do
    test "is renewed once" do
      {_, url} = HTTPServer.start([steps(google(401, "authError")), steps(@ok)])
      {:ok, count} = Agent.start_link(fn -> 0 end)
      token = fn -> "token-#{Agent.get_and_update(count, &{&1, &1 + 1})}" end
      request = [method: :post, url: @gmail, json: %{}]
      assert {:ok, _} = Client.request(account(Google, url, token: token), request)
      assert_receive {:request, %{headers: %{"authorization" => "Bearer token-0"}}}
      assert_receive {:request, %{headers: %{"authorization" => "Bearer token-1"}}}
    end

    test "twice is an error that names the command" do
      {_, url} = HTTPServer.start(List.duplicate(steps(google(401, "authError")), 2))
      {:ok, count} = Agent.start_link(fn -> 0 end)
      token = fn -> "token-#{Agent.get_and_update(count, &{&1, &1 + 1})}" end
      assert {:error, error} = Client.request(account(Google, url, token: token), url: @gmail)

      assert Exception.message(error) ==
               "Gmail no longer accepts the connection (401, authError; sent 2 times): the " <>
                 "operator has to replace the option :token of the account vendor. Gmail " <>
                 "says: \"No.\""
    end
  end

  test "the words of each kind" do
    rows = [
      {google(403, "dailyLimitExceeded"), Google,
       "Gmail has a limit that is used up (403, dailyLimitExceeded): repeating does not help; " <>
         "the account's owner can raise it. Gmail says: \"No.\""},
      {google(403, "insufficientPermissions"), Google,
       "Gmail needs a scope that the connection lacks (403, insufficientPermissions): " <>
         "somebody has to grant it. Gmail says: \"No.\""},
      {google(403, "accessNotConfigured"), Google,
       "Gmail does not allow this account to do it (403, accessNotConfigured): the operator " <>
         "has to enable this API at Google. Gmail says: \"No.\""},
      {google(404, "notFound"), Google,
       "Gmail has nothing there (404, notFound): check the id, or search for it. Gmail says: " <>
         "\"No.\""},
      {google(412, "conditionNotMet"), Google,
       "Gmail has another state than expected (412, conditionNotMet): read it again before " <>
         "you change it. Gmail says: \"No.\""},
      {hubspot(429, %{"policyName" => "DAILY"}), @hubspot,
       "HubSpot has a limit that is used up (429, DAILY): the account's requests are back " <>
         "tomorrow. HubSpot says: \"No.\""},
      {hubspot(403, %{
         "category" => "MISSING_SCOPES",
         "errors" => [
           %{"context" => %{"requiredGranularScopes" => ["crm.objects.contacts.read"]}}
         ]
       }), @hubspot,
       "HubSpot needs a scope that the connection lacks (403, MISSING_SCOPES): add " <>
         "crm.objects.contacts.read to the private app in HubSpot's settings. HubSpot says: " <>
         "\"No.\""},
      {{200, [], "<html>"}, Google,
       "Gmail gave an answer that cannot be read: it should be JSON: line 1, column 1: " <>
         "expected value"}
    ]

    for {answer, vendor, message} <- rows do
      {_, url} = HTTPServer.start([steps(answer)])
      assert {:error, error} = Client.request(account(vendor, url), url: url(vendor))
      assert Exception.message(error) == message
    end
  end

  test "a text of the server is one line, limited, without hidden characters or the token" do
    message = "Do\nthis:\u202E \e[2J ```cmd \"x\" secret-token " <> String.duplicate("y", 1000)
    {_, url} = HTTPServer.start([steps(google(400, "bad\nreason", message))])
    assert {:error, error} = Client.request(account(Google, url), url: @gmail)
    text = Exception.message(error)
    assert text =~ ~S(says: "Do this:\u{202E} [2J ```cmd \"x\" [key] yyy)
    assert String.length(text) < 450
    refute text =~ "secret"
    # A code with other characters than names have is left out.
    assert error.code == nil

    # An excerpt may end within the token.
    for filler <- 280..300 do
      message = String.duplicate("y", filler) <> "secret-token"
      {_, url} = HTTPServer.start([steps(google(400, "badRequest", message))])
      assert {:error, error} = Client.request(account(Google, url), url: @gmail)
      refute Exception.message(error) =~ "secret"
    end
  end

  test "an address of another server gets no token" do
    account = %{account(Google, nil) | url: nil}

    for url <- [
          "https://evil.example/gmail/v1/users/me/labels",
          "https://gmail.googleapis.com.evil.example/",
          "http://gmail.googleapis.com/gmail/v1/users/me/labels",
          "https://evilgoogleapis.com/"
        ] do
      assert {:error, %ServiceError{kind: :invalid, attempts: 0} = error} =
               Client.request(account, url: url)

      assert Exception.message(error) =~ "refused the request: it names another server"
    end
  end

  test "the account's URL replaces the vendor's hosts, and its path stays" do
    {_, url} = HTTPServer.start([steps(@ok), steps(@ok), steps({204, [], ""})])
    account = account(Google, url <> "/w/7/")
    request = [url: @gmail <> "?a=b", query: [q: "from:a b&c"], headers: [{"x-a", "1"}]]
    assert {:ok, _} = Client.request(account, request, fields: "labels(id,name)")

    assert_receive {:request, %{line: line, headers: %{"x-a" => "1"}}}

    assert line ==
             "GET /w/7/gmail/v1/users/me/labels?a=b&q=from%3Aa+b%26c" <>
               "&fields=labels%28id%2Cname%29 HTTP/1.1"

    # An address that the server gave, such as that of an upload.
    assert {:ok, _} = Client.request(account, url: url <> "/w/7/upload/1?part=2")
    assert_receive {:request, %{line: "GET /w/7/upload/1?part=2 HTTP/1.1"}}

    assert {:ok, %{status: 204, body: nil}} =
             Client.request(account, method: :delete, url: @gmail, body: {"text/plain", "x"})

    assert_receive {:request, %{headers: %{"content-type" => "text/plain"}, body: "x"}}
  end

  describe "pages/3" do
    defp page(name, items, token), do: steps({200, [], Map.merge(%{name => items}, token)})
    defp more(token), do: %{"nextPageToken" => token}

    test "reads as many as asked for" do
      script = [page("labels", [1, 2], more("a b")), page("labels", [3, 4], more("c"))]
      {_, url} = HTTPServer.start(script)
      request = [url: @gmail, query: [maxResults: 2]]

      assert {:ok, %{items: [1, 2, 3], more: true, last: %{"nextPageToken" => "c"}}} =
               Client.pages(account(Google, url), request, items: "labels", limit: 3)

      assert_receive {:request, %{line: "GET /gmail/v1/users/me/labels?maxResults=2 HTTP/1.1"}}
      assert_receive {:request, %{line: line}}
      assert line == "GET /gmail/v1/users/me/labels?maxResults=2&pageToken=a+b HTTP/1.1"
    end

    test "ends with the last page, also an empty one" do
      script = [page("labels", [1], more("x")), steps({200, [], %{"sync" => "t"}})]
      {_, url} = HTTPServer.start(script)

      assert {:ok, %{items: [1], more: false, last: %{"sync" => "t"}}} =
               Client.pages(account(Google, url), [url: @gmail], items: "labels", limit: 9)
    end

    test "keeps the token of a search in its body" do
      next = %{"paging" => %{"next" => %{"after" => "2"}}}
      script = [page("results", [1, 2], next), page("results", [3], %{})]
      {_, url} = HTTPServer.start(script)
      request = [method: :post, url: @contacts <> "/search", json: %{"limit" => 2}]

      assert {:ok, %{items: [1, 2, 3], more: false}} =
               Client.pages(account(@hubspot, url), request, items: "results")

      assert_receive {:request, %{body: ~s({"limit":2})}}
      assert_receive {:request, %{body: ~s({"after":"2","limit":2})}}
    end

    test "ends where a server goes round in a circle" do
      script = [page("labels", [1], more("a")), page("labels", [2], more("a"))]
      {_, url} = HTTPServer.start(script)

      assert {:ok, %{items: [1, 2], more: false}} =
               Client.pages(account(Google, url), [url: @gmail], items: "labels")
    end

    test "ends after :max_pages, and says that there are more" do
      script = [page("labels", [1], more("a")), page("labels", [2], more("b"))]
      {_, url} = HTTPServer.start(script)
      options = [items: "labels", max_pages: 2]

      assert {:ok, %{items: [1, 2], more: true}} =
               Client.pages(account(Google, url), [url: @gmail], options)
    end

    test "refuses something else than a list" do
      {_, url} = HTTPServer.start([steps({200, [], %{"labels" => "x"}})])

      assert {:error, %ServiceError{kind: :bad_answer}} =
               Client.pages(account(Google, url), [url: @gmail], items: "labels")
    end
  end

  describe "batch/3" do
    defp parts(parts) do
      body =
        for {number, text} <- parts do
          "--b_1\r\nContent-Type: application/http\r\nContent-ID: " <>
            "<response-item-#{number}>\r\n\r\n#{text}\r\n"
        end

      body = IO.iodata_to_binary([body, "--b_1--\r\n"])
      {200, [{"content-type", "multipart/mixed; boundary=b_1"}], body}
    end

    defp response(status, json) do
      body = JSON.encode(json)

      "HTTP/1.1 #{status} X\r\nContent-Type: application/json\r\n" <>
        "Content-Length: #{byte_size(body)}\r\n\r\n#{body}"
    end

    test "sends requests as one, and returns their answers in order" do
      answer =
        parts([{2, response(404, %{error: %{message: "Gone"}})}, {1, response(200, %{a: 1})}])

      {_, url} = HTTPServer.start([steps(answer)])

      requests = [
        [url: @gmail <> "/A", query: [format: "full"]],
        [method: :post, url: @gmail, json: %{"n" => 1}]
      ]

      assert [{:ok, %{status: 200, body: %{"a" => 1}}}, {:error, error}] =
               Client.batch(account(Google, url <> "/w/7"), requests, [])

      assert {error.kind, error.service, error.reason} == {:not_found, "Gmail", "Gone"}
      assert_receive {:request, %{line: "POST /w/7/batch/gmail/v1 HTTP/1.1"} = request}
      assert "multipart/mixed; boundary=" <> boundary = request.headers["content-type"]

      head = fn n ->
        "--#{boundary}\r\ncontent-type: application/http\r\ncontent-id: <item-#{n}>\r\n\r\n"
      end

      assert request.body ==
               head.(1) <>
                 "GET /gmail/v1/users/me/labels/A?format=full HTTP/1.1\r\n\r\n\r\n" <>
                 head.(2) <>
                 "POST /gmail/v1/users/me/labels HTTP/1.1\r\n" <>
                 "content-type: application/json\r\ncontent-length: 7\r\n\r\n{\"n\":1}\r\n" <>
                 "--#{boundary}--\r\n"
    end

    test "sends a part that was limited again alone, and a missing one" do
      limited = response(429, %{error: %{errors: [%{reason: "rateLimitExceeded"}]}})
      answer = parts([{1, limited}, {3, response(200, %{c: 3})}])
      {_, url} = HTTPServer.start([steps(answer), steps(@ok), steps(@ok)])
      requests = for id <- ~w(A B C), do: [url: @gmail <> "/" <> id]

      assert [
               {:ok, %{body: %{"ok" => true}}},
               {:ok, %{body: %{"ok" => true}}},
               {:ok, %{body: %{"c" => 3}}}
             ] = Client.batch(account(Google, url), requests, [])

      assert_receive {:request, %{line: "POST /batch/gmail/v1 HTTP/1.1"}}
      assert_receive {:request, %{line: "GET /gmail/v1/users/me/labels/A HTTP/1.1"}}
      assert_receive {:request, %{line: "GET /gmail/v1/users/me/labels/B HTTP/1.1"}}
    end

    test "a missing answer to a change leaves open whether it was made" do
      {_, url} = HTTPServer.start([steps(parts([]))])
      request = [method: :post, url: @gmail, json: %{}]

      assert [{:error, %ServiceError{kind: :bad_answer, unclear: true}}] =
               Client.batch(account(Google, url), [request], [])
    end

    test "a limit that lasts ends the rest" do
      limited = response(429, %{error: %{errors: [%{reason: "rateLimitExceeded"}]}})
      answer = parts(for n <- 1..3, do: {n, limited})
      whole = steps(google(429, "rateLimitExceeded"))
      {_, url} = HTTPServer.start([steps(answer), whole, whole])
      requests = for id <- ~w(A B C), do: [url: @gmail <> "/" <> id]
      results = Client.batch(account(Google, url), requests, retries: 1, backoff: 1)
      assert [{:error, %{kind: :rate_limited, attempts: 2} = error} | rest] = results
      assert rest == [{:error, error}, {:error, error}]
    end

    test "an answer that is no batch fails for all" do
      {_, url} = HTTPServer.start([steps(@ok)])
      requests = [[url: @gmail], [url: @gmail]]
      assert [{:error, error}, {:error, error}] = Client.batch(account(Google, url), requests, [])

      assert Exception.message(error) ==
               "Gmail gave an answer that cannot be read: its parts cannot be read"
    end

    test "a request with a line break cannot become two, alone or in a batch" do
      {_, url} = HTTPServer.start([steps(@ok)])
      header = [url: @gmail, headers: [{"if-match", "a\r\n\r\nDELETE /gmail/v1/x HTTP/1.1"}]]
      path = [url: @gmail <> "/a HTTP/1.1\r\nX: y"]
      account = account(Google, url)

      assert [{:error, one}, {:ok, _}, {:error, other}] =
               Client.batch(account, [header, [url: @gmail], path], [])

      assert Exception.message(one) ==
               "Gmail refused the request: a header is no pair of texts, or has characters " <>
                 "that no header has, such as a line break"

      assert {other.kind, other.unclear} == {:invalid, false}
      assert_receive {:request, %{line: "GET /gmail/v1/users/me/labels HTTP/1.1"}}
      assert {:error, %{kind: :invalid}} = Client.request(account, path)
    end

    test "without a batch of the vendor, they are sent one after another" do
      {_, url} = HTTPServer.start([steps(@ok), steps(hubspot(404, %{}))])
      requests = [[url: @contacts <> "/1"], [url: @contacts <> "/2"]]

      assert [{:ok, _}, {:error, %{kind: :not_found}}] =
               Client.batch(account(@hubspot, url), requests, [])
    end
  end

  describe "quotas" do
    test "wait for their turn, and refuse what would be after the time limit" do
      {_, url} = HTTPServer.start(List.duplicate(steps(@ok), 3))
      account = account(@hubspot, url, options: [quota: [hubspot: {10, 2}]], time: 20_000)
      {time, _} = :timer.tc(fn -> for _ <- 1..3, do: Client.request(account, url: @contacts) end)
      # One of ten at once, and nine in two seconds.
      assert time >= 444_000

      assert {:error, error} =
               Client.request(%{account | deadline: System.monotonic_time(:millisecond) + 100},
                 url: @contacts
               )

      assert Exception.message(error) ==
               "HubSpot accepts no more requests for now: this application keeps within the " <>
                 "quota; ask again later"

      assert error.retry_after in 1..445
    end
  end

  test "one event for a request, without its address or ids" do
    test = self()
    id = "client-#{inspect(test)}"
    event = [:skillbook, :connection, :request]
    handler = fn _, measurements, metadata, _ -> send(test, {:event, measurements, metadata}) end
    :ok = :telemetry.attach_many(id, [event], handler, nil)
    on_exit(fn -> :telemetry.detach(id) end)
    {_, url} = HTTPServer.start([steps(google(503, "backendError")), steps(@ok)])
    account = account(Google, url)
    profile = account.profile
    request = [url: @gmail <> "/ID?q=private"]

    assert {:ok, _} =
             Client.request(account, request, method: "gmail.users.labels.get", backoff: 1)

    assert_receive {:event, %{duration: duration}, %{profile: ^profile} = metadata}
    assert duration > 0

    assert metadata == %{
             book: nil,
             profile: profile,
             account: :vendor,
             method: "gmail.users.labels.get",
             status: 200,
             kind: nil,
             attempts: 2
           }

    %{profile: profile} = account = account(Google, url, time: -1)
    assert {:error, _} = Client.request(account, request)
    assert_receive {:event, _, %{profile: ^profile} = metadata}
    assert %{method: "GET gmail.googleapis.com", attempts: 0} = metadata
  end
end
