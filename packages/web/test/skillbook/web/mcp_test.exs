defmodule Skillbook.Web.MCPTest do
  use ExUnit.Case, async: true

  import Skillbook.Eventually
  import Skillbook.MCPCase, only: [letters: 1, subscribers: 1]

  alias Skillbook.MCP.Sessions
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Requests

  @version "io.modelcontextprotocol/protocolVersion"
  @capabilities "io.modelcontextprotocol/clientCapabilities"
  @both {"accept", "application/json, text/event-stream"}

  setup do
    book = letters(profiles: [[id: "ann", writes: :ask], [id: "bob", grants: ["bobs"]]])
    %{web: Requests.web(book), book: book}
  end

  # A message of the newest revision, with the headers that it needs.
  defp message(method, params \\ %{}, options \\ []) do
    meta = %{@version => "2026-07-28", @capabilities => options[:capabilities] || %{}}
    params = Map.put(params, "_meta", Map.merge(meta, options[:meta] || %{}))
    %{"jsonrpc" => "2.0", "id" => 1, "method" => method, "params" => params}
  end

  defp headers(message, more \\ []) do
    name = message["params"]["name"] || message["params"]["uri"]

    given =
      [@both, {"mcp-protocol-version", "2026-07-28"}, {"mcp-method", message["method"]}] ++
        if(name, do: [{"mcp-name", name}], else: [])

    Enum.reduce(more, given, fn
      {header, nil}, headers -> List.keydelete(headers, header, 0)
      {header, value}, headers -> List.keystore(headers, header, 0, {header, value})
    end)
  end

  defp post(web, message, options \\ []) do
    headers = Keyword.get_lazy(options, :headers, fn -> headers(message) end)
    Requests.call(web, "POST", "/mcp", json: message, headers: headers, as: options[:as] || "ann")
  end

  defp json(response) do
    {:ok, json} = JSON.decode(response.body)
    json
  end

  defp error(response) do
    error = json(response)["error"]
    {response.status, error["code"], error["message"]}
  end

  # The messages of a stream of events.
  defp events(body) do
    for "event: message\ndata: " <> data <- String.split(body, "\n\n"),
        {:ok, json} = JSON.decode(data),
        do: json
  end

  defp initialize(web, options \\ []) do
    message = %{
      "jsonrpc" => "2.0",
      "id" => 0,
      "method" => "initialize",
      "params" => %{
        "protocolVersion" => options[:version] || "2025-11-25",
        "capabilities" => options[:capabilities] || %{},
        "clientInfo" => %{"name" => "test", "version" => "1"}
      }
    }

    response = post(web, message, headers: [@both], as: options[:as] || "ann")
    assert response.status == 200
    {Requests.header(response, "mcp-session-id"), json(response)["result"]}
  end

  defp in_session(web, session, message, options \\ []) do
    headers = [@both, {"mcp-session-id", session} | options[:headers] || []]
    post(web, Map.put(message, "jsonrpc", "2.0"), headers: headers, as: options[:as] || "ann")
  end

  describe "the revision without sessions" do
    test "answers with JSON, and a call with a stream", %{web: web} do
      response = post(web, message("tools/list"))
      assert response.status == 200
      assert Requests.header(response, "content-type") == "application/json"
      assert %{"result" => %{"tools" => [_, _, _], "resultType" => "complete"}} = json(response)
      assert Requests.header(response, "mcp-session-id") == nil

      call = message("tools/call", %{"name" => "get_skill"})
      response = post(web, call)
      assert Requests.header(response, "content-type") == "text/event-stream"
      assert Requests.header(response, "x-accel-buffering") == "no"
      assert [%{"id" => 1, "result" => %{"isError" => false}}] = events(response.body)

      response = post(web, call, headers: headers(call, [{"accept", "application/json"}]))
      assert Requests.header(response, "content-type") == "application/json"
      assert %{"id" => 1, "result" => %{"isError" => false}} = json(response)
    end

    test "checks that headers are as the message", %{web: web} do
      call = message("tools/call", %{"name" => "letters__send"})
      list = message("tools/list")
      base64 = &"=?base64?#{Base.encode64(&1)}?="

      mismatch = fn header, value, got ->
        "expected the header #{header} to be as in the message, \"#{value}\", got: \"#{got}\""
      end

      for {message, more, status, code, text} <- [
            {list, [{"mcp-protocol-version", nil}], 400, -32_020,
             "the header MCP-Protocol-Version is missing"},
            {list, [{"mcp-protocol-version", "2025-11-25"}], 400, -32_020,
             mismatch.("MCP-Protocol-Version", "2026-07-28", "2025-11-25")},
            {list, [{"mcp-method", nil}], 400, -32_020, "the header Mcp-Method is missing"},
            {list, [{"mcp-method", "tools/call"}], 400, -32_020,
             mismatch.("Mcp-Method", "tools/list", "tools/call")},
            {list, [{"mcp-method", "TOOLS/LIST"}], 400, -32_020,
             mismatch.("Mcp-Method", "tools/list", "TOOLS/LIST")},
            {call, [{"mcp-name", nil}], 400, -32_020, "the header Mcp-Name is missing"},
            {call, [{"mcp-name", "get_skill"}], 400, -32_020,
             mismatch.("Mcp-Name", "letters__send", "get_skill")},
            {call, [{"mcp-name", base64.("get_skill")}], 400, -32_020,
             mismatch.("Mcp-Name", "letters__send", "get_skill")},
            {call, [{"mcp-name", "=?base64?%%?="}], 400, -32_020,
             "the header Mcp-Name cannot be read: \"=?base64?%%?=\""},
            {call, [{"mcp-name", "é"}], 400, -32_020, "the header Mcp-Name cannot be read: \"é\""}
          ] do
        response = post(web, message, headers: headers(message, more))
        assert error(response) == {status, code, text}
        assert json(response)["id"] == 1
      end

      for more <- [
            [],
            [{"mcp-name", " get_skill "}],
            [{"mcp-name", base64.("get_skill")}],
            [{"mcp-param-region", "x"}],
            [{"mcp-session-id", "ignored"}],
            [{"last-event-id", "7"}]
          ] do
        call = message("tools/call", %{"name" => "get_skill"})
        assert [%{"result" => _}] = events(post(web, call, headers: headers(call, more)).body)
      end
    end

    test "refuses what is no message of it", %{web: web} do
      other = message("tools/list", %{}, meta: %{@version => "v9"})

      assert {400, -32_022, "expected the protocol version " <> _} =
               error(post(web, other, headers: headers(other, [{"mcp-protocol-version", "v9"}])))

      assert {404, -32_601, _} = error(post(web, message("nothing")))
      assert {404, -32_601, _} = error(post(web, message("initialize")))
      assert {404, -32_601, _} = error(post(web, message("ping")))

      bare = %{"jsonrpc" => "2.0", "id" => 1, "method" => "tools/list"}
      assert {400, -32_602, "expected `_meta" <> _} = error(post(web, bare, headers: [@both]))

      for {body, headers, status, code} <- [
            {"", [@both], 400, -32_700},
            {"{", [@both], 400, -32_700},
            {"[]", [@both], 400, -32_600},
            {"[" <> JSON.encode(bare) <> "]", [@both], 400, -32_600},
            {String.duplicate(" ", 4_200_000), [@both], 413, -32_600},
            {JSON.encode(bare), [{"accept", "text/html"}], 406, -32_600},
            {JSON.encode(bare), [], 400, -32_602},
            {JSON.encode(bare), [{"accept", "*/*"}], 400, -32_602}
          ] do
        headers = [{"content-type", "application/json"} | headers]
        response = Requests.call(web, "POST", "/mcp", body: body, headers: headers, as: "ann")
        assert {response.status, json(response)["error"]["code"]} == {status, code}
        assert Requests.header(response, "content-type") == "application/json"
      end

      response = Requests.call(web, "POST", "/mcp", body: "{}", headers: [@both], as: "ann")
      assert {415, -32_600, "expected the content type application/json"} = error(response)
    end

    test "asks the user by a call that comes back", %{web: web} do
      call =
        message("tools/call", %{"name" => "letters__send", "arguments" => %{"to" => "bob"}},
          capabilities: %{"elicitation" => %{"form" => %{}}}
        )

      assert [%{"result" => %{"resultType" => "input_required"} = result}] =
               events(post(web, call).body)

      answer = %{"approval" => %{"action" => "accept", "content" => %{}}}

      again =
        update_in(
          call["params"],
          &Map.merge(&1, %{"requestState" => result["requestState"], "inputResponses" => answer})
        )

      assert [%{"error" => %{"code" => -32_602}}] = events(post(web, again, as: "bob").body)
      assert [%{"result" => %{"content" => [%{"text" => text}]}}] = events(post(web, again).body)
      assert text == "Sent to bob."
    end

    test "sends progress to a client that has a token for it, and ends with the client",
         %{web: web} do
      call = message("tools/call", %{"name" => "clock__wait"}, meta: %{"progressToken" => "p"})
      options = [json: call, headers: headers(call), as: "ann"]
      {_response, pid} = Requests.stream(web, "POST", "/mcp", options)
      assert_receive {:part, ^pid, part}

      assert [%{"method" => "notifications/progress", "params" => params}] = events(part)
      assert params == %{"progressToken" => "p", "progress" => 1, "message" => "waiting"}

      assert_receive {:waits, handler}
      monitor = monitor(handler)
      Process.unlink(pid)
      Process.exit(pid, :kill)
      assert_receive {:DOWN, ^monitor, :process, _, :killed}
    end

    test "has streams of changes, of which a caller hears its own", %{web: web, book: book} do
      listen =
        message("subscriptions/listen", %{
          "notifications" => %{"toolsListChanged" => true, "other" => true}
        })

      options = [json: listen, headers: headers(listen), as: "ann"]
      {response, pid} = Requests.stream(web, "POST", "/mcp", options)
      assert Requests.header(response, "content-type") == "text/event-stream"

      assert_receive {:part, ^pid, part}
      assert [%{"method" => "notifications/subscriptions/acknowledged"} = first] = events(part)
      assert first["params"]["notifications"] == %{"toolsListChanged" => true}
      assert first["params"]["_meta"] == %{"io.modelcontextprotocol/subscriptionId" => 1}

      # A note is no tool, and a skill of bob alone does not exist for ann.
      assert {:ok, _} = Skillbook.Store.put_note(Skillbook.view(book, "bob"), "Milk", "Two.")
      assert {:ok, _} = Skillbook.Store.put_note(Skillbook.view(book, "ann"), "Milk", "Two.")
      refute_receive {:part, ^pid, _}, 200

      fields = [name: "tea", title: "Tea", description: "Makes tea", content: "Boil."]
      of_bob = Keyword.put(fields, :labels, ["bobs"])
      assert {:ok, _} = Skillbook.Store.create(Skillbook.view(book, "bob"), of_bob)
      refute_receive {:part, ^pid, _}, 200
      assert {:ok, _} = Skillbook.Store.create(Skillbook.view(book, "ann"), fields)
      assert_receive {:part, ^pid, part}

      assert [%{"method" => "notifications/tools/list_changed", "params" => params}] =
               events(part)

      assert params == %{"_meta" => %{"io.modelcontextprotocol/subscriptionId" => 1}}

      Supervisor.stop(book)
      assert_receive {:part, ^pid, part}
      assert [%{"id" => 1, "result" => %{"resultType" => "complete"} = result}] = events(part)
      assert result["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
      assert_receive {:ended, ^pid}
    end

    test "refuses a stream to a client that does not take one, and a wrong filter", %{web: web} do
      listen = message("subscriptions/listen", %{"notifications" => %{}})
      headers = headers(listen, [{"accept", "application/json"}])

      assert {400, -32_600, "expected text/event-stream in the header accept"} =
               error(post(web, listen, headers: headers))

      for notifications <- [nil, [], "x"] do
        listen = message("subscriptions/listen", %{"notifications" => notifications})

        assert [%{"error" => %{"message" => "expected an object as `notifications`"}}] =
                 events(post(web, listen).body)
      end

      for uris <- ["x", [1], List.duplicate("a", 1_001), [String.duplicate("a", 3_000)]] do
        filter = %{"resourceSubscriptions" => uris}
        listen = message("subscriptions/listen", %{"notifications" => filter})

        assert [%{"error" => %{"code" => -32_602, "message" => text}}] =
                 events(post(web, listen).body)

        assert text ==
                 "expected at most 1000 URIs of at most 2048 bytes as `resourceSubscriptions`"
      end
    end
  end

  describe "sessions of the older revisions" do
    test "begin, answer and end", %{web: web} do
      for version <- ["2025-11-25", "2025-06-18"] do
        {session, result} = initialize(web, version: version)
        assert result["protocolVersion"] == version
        assert session =~ ~r/\A[\x21-\x7e]{43}\z/

        response = in_session(web, session, %{"method" => "notifications/initialized"})
        assert {response.status, response.body} == {202, ""}

        response = in_session(web, session, %{"id" => 5, "method" => "ping"})
        assert json(response) == %{"jsonrpc" => "2.0", "id" => 5, "result" => %{}}

        list = %{"id" => 6, "method" => "tools/list"}
        headers = [{"mcp-protocol-version", version}]
        result = json(in_session(web, session, list, headers: headers))["result"]
        assert Map.keys(result) == ["tools"]

        # An unknown method is no error of HTTP there.
        assert {200, -32_601, _} = error(in_session(web, session, %{"id" => 7, "method" => "x"}))

        delete = [headers: [{"mcp-session-id", session}], as: "ann"]
        assert Requests.call(web, "DELETE", "/mcp", delete).status == 204
        assert {404, -32_600, text} = error(in_session(web, session, list))
        assert text == "no such session; begin one with initialize"
        assert Requests.call(web, "DELETE", "/mcp", delete).status == 404
      end
    end

    test "belong to their caller", %{web: web} do
      {session, _result} = initialize(web)
      ping = %{"id" => 1, "method" => "ping"}
      missing = in_session(web, String.duplicate("A", 43), ping)
      others = in_session(web, session, ping, as: "bob")
      assert {others.status, others.body} == {missing.status, missing.body}
      assert others.status == 404

      for method <- ["DELETE", "GET"] do
        options = [
          headers: [{"mcp-session-id", session}, {"accept", "text/event-stream"}],
          as: "bob"
        ]

        assert Requests.call(web, method, "/mcp", options).status == 404
      end

      told = in_session(web, session, %{"method" => "notifications/cancelled"}, as: "bob")
      assert told.status == 404
      assert in_session(web, session, ping).status == 200
    end

    # The specification has 404 for each kind of message, and a new session by `initialize`.
    test "that do not exist get 404 until the client begins a new one", %{web: web} do
      {session, _result} = initialize(web)
      delete = [headers: [{"mcp-session-id", session}], as: "ann"]
      assert Requests.call(web, "DELETE", "/mcp", delete).status == 204

      for id <- [session, "x", String.duplicate("A", 43), String.duplicate("A", 5_000)] do
        messages = [
          %{"id" => 1, "method" => "tools/list"},
          %{"id" => 2, "method" => "tools/call", "params" => %{"name" => "get_skill"}},
          %{"method" => "notifications/initialized"},
          %{"id" => "ask-1", "result" => %{}}
        ]

        for message <- messages do
          response = in_session(web, id, message)
          expected = {404, -32_600, "no such session; begin one with initialize"}
          assert {id, message, error(response)} == {id, message, expected}
          assert json(response)["id"] == if(message["method"], do: message["id"])
        end

        for method <- ["GET", "DELETE"] do
          headers = [{"mcp-session-id", id}, {"accept", "text/event-stream"}]
          assert Requests.call(web, method, "/mcp", headers: headers, as: "ann").status == 404
        end

        # The id of a lost session may still come along.
        params = %{"protocolVersion" => "2025-11-25", "capabilities" => %{}}
        begin = %{"id" => 3, "method" => "initialize", "params" => params}
        response = in_session(web, id, begin)
        assert response.status == 200
        new = Requests.header(response, "mcp-session-id")
        assert in_session(web, new, %{"id" => 4, "method" => "ping"}).status == 200
      end

      # Without an id it is another error.
      without = %{"jsonrpc" => "2.0", "id" => 1, "method" => "tools/list"}
      assert post(web, without, headers: [@both]).status == 400
    end

    test "hold to their revision", %{web: web} do
      {session, _result} = initialize(web)
      headers = [{"mcp-protocol-version", "2025-06-18"}]

      assert {400, -32_022, "expected the protocol version 2025-11-25, got: \"2025-06-18\""} =
               error(in_session(web, session, %{"id" => 1, "method" => "ping"}, headers: headers))
    end

    test "ask the user on the stream of the call", %{web: web} do
      {session, _result} = initialize(web, capabilities: %{"elicitation" => %{}})

      for {answer, text, error?} <- [
            {%{"result" => %{"action" => "accept", "content" => %{}}}, "Sent to bob.", false},
            {%{"result" => %{"action" => "decline"}}, ~r/the user declined/, true},
            {%{"result" => %{"action" => "cancel"}}, ~r/closed without an answer/, true},
            {%{"result" => %{}}, ~r/closed without an answer/, true},
            {%{"error" => %{"code" => -1, "message" => "no"}}, ~r/did not ask its user/, true}
          ] do
        call = %{
          "jsonrpc" => "2.0",
          "id" => 9,
          "method" => "tools/call",
          "params" => %{"name" => "letters__send", "arguments" => %{"to" => "bob"}}
        }

        options = [json: call, headers: [@both, {"mcp-session-id", session}], as: "ann"]
        {_response, pid} = Requests.stream(web, "POST", "/mcp", options)
        assert_receive {:part, ^pid, part}
        assert [%{"id" => id, "method" => "elicitation/create"} = question] = events(part)
        assert question["params"]["message"] == "Run \"letters.send\"?\nto: \"bob\""

        # The answer of another caller, and to another question, is none.
        assert in_session(web, session, Map.put(answer, "id", id), as: "bob").status == 404
        assert in_session(web, session, Map.put(answer, "id", "ask-99")).status == 202
        refute_receive {:part, ^pid, _}, 50

        response = in_session(web, session, Map.put(answer, "id", id))
        assert {response.status, response.body} == {202, ""}
        assert_receive {:part, ^pid, part}
        assert [%{"id" => 9, "result" => result}] = events(part)
        assert result["isError"] == error?
        assert [%{"text" => got}] = result["content"]
        assert got =~ text
        assert_receive {:ended, ^pid}
      end
    end

    test "cancel a call, which stops its handler", %{web: web} do
      {session, _result} = initialize(web)

      call = %{
        "jsonrpc" => "2.0",
        "id" => 3,
        "method" => "tools/call",
        "params" => %{"name" => "clock__wait"}
      }

      options = [json: call, headers: [@both, {"mcp-session-id", session}], as: "ann"]
      {_response, pid} = Requests.stream(web, "POST", "/mcp", options)
      assert_receive {:waits, handler}
      monitor = monitor(handler)

      # The same id at the same time is refused.
      assert [%{"error" => %{"message" => text}}] = events(in_session(web, session, call).body)
      assert text == "expected an `id` of no other request that still runs"

      cancel = %{"method" => "notifications/cancelled", "params" => %{"requestId" => 4}}
      assert in_session(web, session, cancel).status == 202
      refute_receive {:DOWN, ^monitor, _, _, _}, 50

      assert in_session(web, session, put_in(cancel["params"]["requestId"], 3)).status == 202
      assert_receive {:DOWN, ^monitor, :process, _, :killed}
      assert_receive {:ended, ^pid}
      refute_received {:part, ^pid, _}
    end

    test "subscribe to resources", %{web: web} do
      {session, _result} = initialize(web)
      subscribe = %{"id" => 1, "method" => "resources/subscribe", "params" => %{"uri" => "x:0"}}
      assert json(in_session(web, session, subscribe))["result"] == %{}

      for number <- 1..999 do
        message = put_in(subscribe["params"]["uri"], "x:#{number}")
        assert json(in_session(web, session, message))["result"] == %{}
      end

      full = put_in(subscribe["params"]["uri"], "x:1000")

      assert {200, 429, "expected at most 1000 subscriptions of a session"} =
               error(in_session(web, session, full))

      assert json(in_session(web, session, subscribe))["result"] == %{}
      unsubscribe = %{subscribe | "method" => "resources/unsubscribe"}
      assert json(in_session(web, session, unsubscribe))["result"] == %{}
      assert json(in_session(web, session, full))["result"] == %{}

      assert {200, -32_602, "expected a `uri` of at most 2048 bytes"} =
               error(in_session(web, session, %{subscribe | "params" => %{}}))
    end

    test "have streams of changes", %{web: web, book: book} do
      {session, _result} = initialize(web)
      headers = [{"accept", "text/event-stream"}, {"mcp-session-id", session}]
      before = subscribers(book)

      pids =
        for _ <- 1..4 do
          {_response, pid} = Requests.stream(web, "GET", "/mcp", headers: headers, as: "ann")
          pid
        end

      # A stream hears of changes once it runs.
      assert eventually(fn -> subscribers(book) == before + 4 end)
      fields = [name: "tea", title: "Tea", description: "Makes tea", content: "Boil."]
      assert {:ok, _} = Skillbook.Store.create(Skillbook.view(book, "ann"), fields)

      for pid <- pids do
        for list <- ["tools", "prompts", "resources"] do
          method = "notifications/#{list}/list_changed"
          assert_receive {:part, ^pid, part}
          assert events(part) == [%{"jsonrpc" => "2.0", "method" => method}]
        end
      end

      response = Requests.call(web, "GET", "/mcp", headers: headers, as: "ann")
      assert {429, 429, "too many streams of one session"} = error(response)
    end

    test "need a stream to be asked for, and a session", %{web: web} do
      response = Requests.call(web, "GET", "/mcp", headers: [{"accept", "text/html"}], as: "ann")
      assert response.status == 405
      assert Requests.header(response, "allow") == "POST"
      headers = [{"accept", "text/event-stream"}]
      assert Requests.call(web, "GET", "/mcp", headers: headers, as: "ann").status == 405
      assert Requests.call(web, "DELETE", "/mcp", as: "ann").status == 400
      assert Requests.call(web, "PUT", "/mcp", as: "ann").status == 405
    end

    # A process in place of a session that answers some of its calls only.
    defmodule HalfSession do
      use GenServer, restart: :temporary

      def start_link(answers), do: GenServer.start_link(__MODULE__, answers)

      @impl true
      def init(answers), do: {:ok, answers}

      @impl true
      def handle_call(:fields, _from, %{fields: fields} = state), do: {:reply, fields, state}
      def handle_call(_call, _from, %{ends: true} = state), do: {:stop, :normal, state}
      def handle_call(_call, _from, state), do: {:noreply, state}

      @impl true
      def handle_cast(_cast, state), do: {:noreply, state}
    end

    test "that are busy or end meanwhile are named, not their limits", context do
      %{web: web, book: book} = context
      fields = {:ok, %{revision: "2025-11-25", capabilities: %{}, client: nil}}
      stream = [headers: [{"accept", "text/event-stream"}], as: "ann"]
      busy = {503, -32_603, "the session did not answer within 5 s; send it again"}
      gone = {404, -32_600, "no such session; begin one with initialize"}

      rows = [
        {"busy from the start", %{}, busy},
        {"busy when the request begins", %{fields: fields}, busy},
        {"ended from the start", %{ends: true}, gone},
        {"ended when the request begins", %{fields: fields, ends: true}, gone}
      ]

      answers =
        for {name, answers, expected} <- rows do
          pid = start_supervised!({HalfSession, answers}, id: name)
          :ets.insert(Sessions, {name, book, "ann", pid, 0})

          requests = [
            fn -> in_session(web, name, %{"id" => 1, "method" => "tools/list"}) end,
            fn ->
              headers = [{"mcp-session-id", name} | stream[:headers]]
              Requests.call(web, "GET", "/mcp", headers: headers, as: "ann")
            end
          ]

          for request <- requests, do: {name, Task.async(request), expected}
        end

      for {name, task, expected} <- List.flatten(answers),
          do: assert({name, error(Task.await(task, :infinity))} == {name, expected})

      # The answer to a call is a stream, which has begun.
      pid = start_supervised!({HalfSession, %{fields: fields}}, id: :stream)
      :ets.insert(Sessions, {"stream", book, "ann", pid, 0})
      call = %{"id" => 7, "method" => "tools/call", "params" => %{"name" => "clock__wait"}}
      response = in_session(web, "stream", call)
      assert [%{"id" => 7, "error" => error}] = events(response.body)
      assert error == %{"code" => -32_603, "message" => elem(busy, 2)}

      for {name, _answers, _expected} <- rows, do: :ets.delete(Sessions, name)
      :ets.delete(Sessions, "stream")
    end

    test "of a profile are limited; the oldest makes room", %{web: web, book: book} do
      {first, _result} = initialize(web)
      {second, _result} = initialize(web)
      # It was used, so it is not the oldest.
      Process.sleep(5)
      assert in_session(web, first, %{"id" => 1, "method" => "ping"}).status == 200
      for _ <- 1..63, do: initialize(web)
      assert Sessions.count(book, "ann") == 64
      assert in_session(web, first, %{"id" => 1, "method" => "ping"}).status == 200
      assert in_session(web, second, %{"id" => 1, "method" => "ping"}).status == 404
      {_of_bob, _result} = initialize(web, as: "bob")
      assert Sessions.count(book, "ann") == 64
    end

    test "end with their book", %{web: web, book: book} do
      initialize(web)
      Supervisor.stop(book)
      assert eventually(fn -> Sessions.count(book, "ann") == 0 end)
    end
  end

  describe "OAuth" do
    test "has metadata if there are servers for tokens", %{web: web} do
      for path <- [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp"
          ] do
        assert Requests.call(web, "GET", path).status == 404

        web = %{
          web
          | authorization_servers: ["https://login.example"],
            url: "https://skills.example"
        }

        options = [host: "skills.example", scheme: :https]
        response = Requests.call(web, "GET", path, options)
        assert response.status == 200

        assert json(response) == %{
                 "resource" => "https://skills.example/mcp",
                 "authorization_servers" => ["https://login.example"],
                 "bearer_methods_supported" => ["header"],
                 "resource_name" => "Skillbook"
               }

        response = Requests.call(web, "POST", "/mcp", options ++ [json: message("ping")])
        assert response.status == 401

        assert Requests.header(response, "www-authenticate") ==
                 "Bearer resource_metadata=\"https://skills.example/.well-known/" <>
                   "oauth-protected-resource/mcp\""
      end

      assert Requests.call(web, "GET", "/.well-known/oauth-protected-resource/api").status == 404
    end

    test "is told which scope a token lacks", %{web: web} do
      web = %{web | authenticate: fn _request -> {:forbidden, "skills:read skills:write"} end}
      refused = &Requests.call(&1, "POST", "/mcp", json: message("tools/list"))
      scopes = ~s(error="insufficient_scope", scope="skills:read skills:write")
      response = refused.(web)
      assert response.status == 403
      assert Requests.header(response, "www-authenticate") == "Bearer " <> scopes

      response = refused.(%{web | authorization_servers: ["https://login.example"]})
      url = "http://127.0.0.1:4004/.well-known/oauth-protected-resource/mcp"
      with_url = ~s(Bearer #{scopes}, resource_metadata="#{url}")
      assert Requests.header(response, "www-authenticate") == with_url

      for wrong <- ["", "a\"b", "a\r\nb", "é", 1, nil] do
        web = %{web | authenticate: fn _request -> {:forbidden, wrong} end}

        assert_raise ArgumentError, ~r/\Aexpected the scope of {:forbidden, scope}/, fn ->
          refused.(web)
        end
      end
    end
  end
end
