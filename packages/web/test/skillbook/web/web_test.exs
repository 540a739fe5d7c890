defmodule Skillbook.WebTest do
  # Which requests are answered at all: the method, the path, the host, the origin, the area.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.Requests
  alias Skillbook.{OptionError, Web}
  alias Skillbook.Web.{Request, Response}

  doctest Skillbook.Web
  doctest Skillbook.Web.Request
  doctest Skillbook.Web.Response

  # The API has its errors as JSON.
  defp error("/api" <> _, text), do: ~s({"error":"#{text}"})
  defp error(_target, text), do: text <> "\n"

  defp status(web, method, target, options),
    do: Requests.call(web, method, target, options).status

  describe "options" do
    for {options, message} <- [
          {[], "Skillbook.Web needs the option :book"},
          {[book: :b, serve: []],
           "expected a list of :page, :mcp, :api, :chat, :discovery as the option :serve of " <>
             "Skillbook.Web, got: []"},
          {[book: :b, authenticate: :nobody],
           "expected :tokens, :none, a function of the request or {module, function} as " <>
             "the option :authenticate of Skillbook.Web, got: :nobody"},
          {[book: :b, url: "skills.example.com"],
           ~s(expected a URL such as "https://skills.example.com" or nil as the option :url ) <>
             ~s(of Skillbook.Web, got: "skills.example.com")},
          {[book: :b, hosts: ["https://a"]],
           ~s(expected a list of hosts such as "skills.example.com:4004" as the option ) <>
             ~s(:hosts of Skillbook.Web, got: ["https://…"])},
          {[book: :b, sessions: [idle: 0]],
           "expected a number of seconds as the option :idle of the :sessions of a web, got: 0"},
          {[book: :b, max_streams_per_caller: 0],
           "expected a number from 1 on as the option :max_streams_per_caller of " <>
             "Skillbook.Web, got: 0"}
        ] do
      test "#{inspect(options)}" do
        {:error, %OptionError{} = error} = Web.new(unquote(Macro.escape(options)))
        assert Exception.message(error) == unquote(message)
      end
    end
  end

  describe "without authentication" do
    for {listener, allowed?} <- [
          {{:tcp, {127, 0, 0, 1}, 4004}, true},
          {{:tcp, {127, 8, 9, 1}, 4004}, true},
          {{:tcp, {0, 0, 0, 0, 0, 0, 0, 1}, 4004}, true},
          {:unix, true},
          {{:tcp, {0, 0, 0, 0}, 4004}, false},
          {{:tcp, {192, 168, 1, 5}, 4004}, false},
          {{:tcp, {0, 0, 0, 0, 0, 0, 0, 0}, 4004}, false},
          # An address of IPv4 in IPv6 is not taken for loopback.
          {{:tcp, {0, 0, 0, 0, 0, 0xFFFF, 0x7F00, 1}, 4004}, false},
          {:plug, false},
          {nil, false}
        ] do
      test "#{inspect(listener)} is #{if(allowed?, do: "served", else: "refused")}" do
        web = Web.new!(book: :b, authenticate: :none, url: "http://a.example")
        listener = unquote(Macro.escape(listener))

        if unquote(allowed?),
          do: assert({:ok, %Web{listener: ^listener}} = Web.listen(web, listener)),
          else: assert({:error, %OptionError{option: :authenticate}} = Web.listen(web, listener))
      end
    end

    test "needs the profile of its requests, and of what it publishes" do
      name = book(sources: [], profiles: [[id: "ann"], [id: "bob"]])

      for {options, message} <- [
            {[authenticate: :none],
             "expected one of the profiles ann, bob as the option :profile of Skillbook.Web, " <>
               ~s(got: "default")},
            {[authenticate: :none, profile: "ann", publish: "eve"],
             "expected one of the profiles ann, bob as the option :publish of Skillbook.Web, " <>
               ~s(got: "eve")}
          ] do
        {:error, error} = Web.listen(Web.new!([book: name] ++ options), :unix)
        assert Exception.message(error) == message
      end

      options = [book: name, authenticate: :none, profile: "ann", publish: "bob"]
      assert {:ok, _web} = Web.listen(Web.new!(options), :unix)
    end

    test "the error says what to do" do
      web = Web.new!(book: :b, authenticate: :none)
      {:error, error} = Web.listen(web, {:tcp, {0, 0, 0, 0}, 80})

      assert Exception.message(error) ==
               "expected :tokens or a function, since 0.0.0.0:80 can be reached from other " <>
                 "machines; listen on 127.0.0.1 for :none, as the option :authenticate of " <>
                 "Skillbook.Web, got: :none"
    end
  end

  # {listener, url, hosts, request's scheme, host, status}
  @hosts [
    {4004, nil, [], :http, "127.0.0.1:4004", 200},
    {4004, nil, [], :http, "localhost:4004", 200},
    {4004, nil, [], :http, "LOCALHOST:4004", 200},
    {4004, nil, [], :http, "[::1]:4004", 200},
    {4004, nil, [], :http, "127.0.0.1", 421},
    {4004, nil, [], :http, "127.0.0.1:4005", 421},
    {4004, nil, [], :http, "127.0.0.2:4004", 421},
    {4004, nil, [], :http, "localhost.evil.example:4004", 421},
    {4004, nil, [], :http, "evil.example:4004", 421},
    {4004, nil, [], :http, "localhost.:4004", 421},
    {4004, nil, [], :http, "a@localhost:4004", 421},
    {4004, nil, [], :http, "", 421},
    {4004, nil, [], :http, nil, 400},
    {80, nil, [], :http, "localhost", 200},
    {80, nil, [], :https, "localhost", 421},
    {443, nil, [], :https, "localhost", 200},
    {4004, "https://s.example", [], :http, "s.example:443", 200},
    {4004, "https://s.example", [], :http, "s.example", 200},
    {4004, "https://s.example", [], :https, "s.example", 200},
    {4004, "https://s.example:8443/x", [], :https, "s.example:8443", 200},
    {4004, "https://s.example:8443/x", [], :https, "s.example", 421},
    {4004, nil, ["S.example:4004"], :http, "s.example:4004", 200},
    {4004, nil, ["s.example"], :http, "s.example", 200},
    {4004, nil, ["s.example"], :http, "s.example:4004", 421},
    {:unix, nil, [], :http, "anything", 200},
    {:unix, nil, [], :http, nil, 200},
    {:plug, "https://s.example", [], :https, "s.example", 200},
    {:plug, "https://s.example", [], :https, "localhost:4004", 421},
    {nil, nil, [], :http, "localhost:4004", 421}
  ]

  for {listener, url, hosts, scheme, host, status} <- @hosts do
    address = if is_integer(listener), do: {:tcp, {127, 0, 0, 1}, listener}, else: listener

    test "host #{inspect(host)} of #{inspect({listener, url, hosts, scheme})}: #{status}" do
      name = book(sources: [])

      web = %{
        Web.new!(book: name, url: unquote(url), hosts: unquote(hosts))
        | listener: unquote(Macro.escape(address))
      }

      options = [as: "default", host: unquote(host), scheme: unquote(scheme)]
      assert status(web, "GET", "/api/skills", options) == unquote(status)
    end
  end

  test "the answer to a wrong host says what to do" do
    web = Requests.web(:b)

    assert Requests.call(web, "GET", "/", host: "evil.example").body ==
             "This server does not answer for the host \"evil.example\". Open " <>
               "http://127.0.0.1:4004, or add the host to the server: the option hosts: or " <>
               "url: of Skillbook.Web, --url on the command line.\n"
  end

  # {method, path, headers, whether it is refused as another website's}
  @same [{"origin", "http://127.0.0.1:4004"}]
  @https [{"origin", "https://127.0.0.1:4004"}]
  @cross [{"origin", "https://evil.example"}]
  @port [{"origin", "http://127.0.0.1:4005"}]
  @null [{"origin", "null"}]
  @origins [
    {[], false},
    {@same, false},
    {@https, false},
    {[{"origin", "https://s.example"}], false},
    {[{"origin", "http://s.example"}], true},
    {[{"origin", "https://s.example:8443"}], true},
    {@cross, true},
    {@port, true},
    {@null, true},
    {[{"sec-fetch-site", "same-origin"}], false},
    {[{"sec-fetch-site", "none"}], false},
    {[{"sec-fetch-site", "same-site"}], true},
    {[{"sec-fetch-site", "cross-site"}], true},
    {[{"sec-fetch-site", "anything"}], true},
    # A form of a page without a referrer.
    {@null ++ [{"sec-fetch-site", "same-origin"}], false},
    {@null ++ [{"sec-fetch-site", "cross-site"}], true},
    {@cross ++ [{"sec-fetch-site", "same-origin"}], true},
    {@same ++ [{"sec-fetch-site", "cross-site"}], true}
  ]

  for {headers, cross?} <- @origins,
      method <- ~w(GET HEAD POST PUT PATCH DELETE),
      target <- ["/skills", "/mcp", "/events", "/api/skills", "/login"] do
    checked? = method not in ["GET", "HEAD"] or target in ["/mcp", "/events"]

    test "#{method} #{target} with #{inspect(headers)}" do
      web = Requests.web(:b, url: "https://s.example", authenticate: fn _ -> :error end)
      response = Requests.call(web, unquote(method), unquote(target), headers: unquote(headers))
      refused? = response.status == 403
      assert refused? == unquote(checked? and cross?)

      if refused? and unquote(method) != "HEAD",
        do:
          assert(
            response.body == error(unquote(target), "This request comes from another website.")
          )
    end
  end

  test "a change with an application's cookie needs a browser that says where it comes from" do
    web = Requests.web(book(sources: []), authenticate: fn _ -> {:ok, "default"} end)
    cookie = [{"cookie", "session=1"}]

    for {headers, status} <- [
          {cookie, 403},
          {cookie ++ @same, 404},
          {cookie ++ [{"sec-fetch-site", "same-origin"}], 404},
          {[], 404}
        ] do
      response = Requests.call(web, "POST", "/api/nothing", headers: headers)
      assert response.status in [status, if(status == 404, do: 405, else: 403)]
    end

    assert Requests.call(web, "GET", "/api/skills", headers: cookie).status == 200
  end

  for {method, target, status, body} <- [
        {"TRACE", "/", 405, "This method is not served.\n"},
        {"OPTIONS", "/mcp", 405, "This method is not served.\n"},
        {"get", "/", 405, "This method is not served.\n"},
        {"GET", "/skills/%00", 400, "The path cannot be read.\n"},
        {"GET", "/skills/%FF", 400, "The path cannot be read.\n"},
        {"GET", "/assets/%2E%2E/skills", 400, "The path cannot be read.\n"},
        {"GET", "/?q=%FF", 400, "The query cannot be read.\n"},
        {"GET", "/?" <> String.duplicate("a&", 1_001), 400, "The query cannot be read.\n"},
        {"GET", "/?" <> String.duplicate("a", 8_193), 414,
         "The query is longer than 8192 bytes.\n"},
        {"GET", "/.well-known/security.txt", 404, "Not found.\n"}
      ] do
    test "#{method} #{String.slice(target, 0, 30)} is #{status}: #{body}" do
      web = Requests.web(book(sources: []))
      response = Requests.call(web, unquote(method), unquote(target), as: "default")
      assert {response.status, response.body} == {unquote(status), unquote(body)}
    end
  end

  test "an area that is not served does not exist, before anyone is asked who they are" do
    name = book(sources: [])

    for area <- [:page, :mcp, :api, :discovery],
        {own, target} <- [
          page: "/",
          page: "/events",
          page: "/login",
          page: "/assets/app.css",
          mcp: "/mcp",
          mcp: "/.well-known/oauth-protected-resource",
          api: "/api/skills",
          discovery: "/.well-known/agent-skills/index.json"
        ] do
      web = Requests.web(name, serve: [area], authenticate: fn _ -> :error end)
      response = Requests.call(web, "GET", target)

      if area != own do
        assert {response.status, response.body} == {404, error(target, "Not found.")}
      else
        assert response.status in [401, 404, 200, 303], "#{target}: #{response.status}"
      end
    end
  end

  test "every response has the headers that keep a browser from harm" do
    web = Requests.web(book(sources: []))

    for {target, options, kept} <- [
          {"/api/skills", [as: "default"], "private, no-cache"},
          {"/api/skills", [], "no-store"},
          {"/", [as: "default"], "no-store"},
          {"/", [host: "evil.example"], "no-store"},
          {"/nothing", [as: "default"], "no-store"}
        ] do
      headers = Map.new(Requests.call(web, "GET", target, options).headers)

      assert headers["content-security-policy"] ==
               "default-src 'none'; style-src 'self'; script-src 'self'; " <>
                 "img-src 'self' data:; connect-src 'self'; form-action 'self'; " <>
                 "base-uri 'none'; frame-ancestors 'none'"

      assert headers["x-content-type-options"] == "nosniff"
      assert headers["referrer-policy"] == "same-origin"
      assert headers["cache-control"] == kept
      assert headers["cross-origin-resource-policy"] == "same-origin"
      refute Map.has_key?(headers, "access-control-allow-origin")
    end
  end

  test "HEAD has the headers of GET, the length and no body" do
    web = Requests.web(book(sources: []))
    get = Requests.call(web, "GET", "/api/skills", as: "default")
    head = Requests.call(web, "HEAD", "/api/skills", as: "default")
    assert {head.status, head.body} == {200, ""}
    assert Requests.header(head, "content-length") == to_string(byte_size(get.body))
    assert head.headers -- get.headers == [{"content-length", to_string(byte_size(get.body))}]
  end

  describe "authenticate: a function of the application" do
    for {answer, status} <- [
          {{:ok, "default"}, 200},
          {{:ok, "default", [operator: true]}, 200},
          {{:ok, "gone"}, 401},
          {:error, 401},
          {nil, 401},
          {{:redirect, "https://app.example/login"}, 401}
        ] do
      test "#{inspect(answer)} answers #{status}" do
        web =
          Requests.web(book(sources: []),
            authenticate: fn %Request{} -> unquote(Macro.escape(answer)) end
          )

        response = Requests.call(web, "GET", "/api/skills")
        assert response.status == unquote(status)

        if response.status == 401,
          do: assert(Requests.header(response, "www-authenticate") == "Bearer")
      end
    end

    test "a page is sent to the application's sign-in" do
      web =
        Requests.web(book(sources: []),
          authenticate: fn _ -> {:redirect, "https://app.example/login"} end
        )

      response = Requests.call(web, "GET", "/skills")

      assert {response.status, Requests.header(response, "location")} ==
               {303, "https://app.example/login"}

      assert Requests.call(web, "GET", "/skills?format=json").status == 401
      assert Requests.call(web, "GET", "/events").status == 401
      assert Requests.call(web, "POST", "/skills").status == 401
    end

    test "another answer raises, without its value" do
      web = Requests.web(book(sources: []), authenticate: fn _ -> {:ok, "default", "s3cret"} end)
      error = assert_raise ArgumentError, fn -> Requests.call(web, "GET", "/skills") end
      refute Exception.message(error) =~ "s3cret"
    end
  end

  test "each request sends one event, without names and queries" do
    name = book(sources: [])
    :telemetry.listen(name)
    web = Requests.web(name)

    for {method, target, options, route, status} <- [
          {"GET", "/api/skills/hush?q=hush", [as: "default"], :api, 404},
          {"GET", "/skills/hush", [as: "default"], :page, 404},
          {"GET", "/hush", [], :page, 401},
          {"HUSH", "/mcp", [], :mcp, 405},
          {"GET", "/.well-known/hush", [], :none, 404},
          {"POST", "/login", [], :session, 404}
        ] do
      response = Requests.call(web, method, target, options)
      assert_receive {[:skillbook, :web, :request, :stop], %{duration: duration}, metadata}
      assert is_integer(duration)

      assert metadata == %{
               book: name,
               profile: options[:as],
               route: route,
               method: if(method == "HUSH", do: "other", else: method),
               status: response.status,
               client: "127.0.0.1"
             }

      assert response.status == status
    end
  end

  test "JSON that is nested too deeply is an error, not a crash" do
    for open <- ["[", ~s({"a":)], depth <- [200, 100_000] do
      body = String.duplicate(open, depth)
      assert {:error, %Skillbook.JSONError{}} = Request.json(%Request{body: body})
    end

    nested = String.duplicate("[", 100) <> String.duplicate("]", 100)
    assert {:ok, [_ | _]} = Request.json(%Request{body: nested})
    nested = String.duplicate("[", 200) <> String.duplicate("]", 200)
    assert {:error, error} = Request.json(%Request{body: nested})
    assert Exception.message(error) =~ "recursion limit"
  end

  test "nothing secret is shown by inspect" do
    request =
      Requests.request("POST", "/open/hush?q=hush",
        headers: [{"authorization", "hush"}],
        body: "hush"
      )

    response = Response.put_header(Response.text(200, "x"), "set-cookie", "a=hush")
    upload = %Skillbook.Web.Upload{name: "a", data: "hush"}
    {:ok, caller} = Skillbook.Web.Caller.new(book(sources: []), "default", via: :session)
    terms = [request, response, upload, %{caller | csrf: "hush"}]
    for term <- terms, do: refute(inspect(term) =~ "hush")
  end

  describe "streams" do
    test "events have their name and data, and go on with every message" do
      start = fn send_event ->
        send_event.("hello", "a\nb")
        fn {:next, term} -> send_event.("next", term) end
      end

      {response, pid} = Requests.stream(Response.events(start))
      assert Requests.header(response, "content-type") == "text/event-stream"
      assert_receive {:part, ^pid, ": \n\n"}
      assert_receive {:part, ^pid, "event: hello\ndata: a\ndata: b\n\n"}
      send(pid, {:next, %{n: 1}})
      assert_receive {:part, ^pid, "event: next\ndata: {\"n\":1}\n\n"}
    end

    test "a client that has gone ends the stream in the middle of a handler" do
      {_response, pid} =
        Requests.stream(
          Response.events(fn send_event ->
            fn :next -> send_event.("next", "") && send(self(), :not_reached) end
          end)
        )

      assert_receive {:part, ^pid, ": \n\n"}
      Requests.close(pid)
      send(pid, :next)
      assert_receive {:ended, ^pid}
    end
  end
end
