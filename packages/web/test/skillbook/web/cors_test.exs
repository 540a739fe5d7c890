defmodule Skillbook.Web.CORSTest do
  # Pages of other websites that use MCP and the API in a browser: the option `origins`.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.{RawHTTP, Requests}
  alias Skillbook.Web
  alias Skillbook.Web.Plug, as: WebPlug
  alias Skillbook.Web.Server

  @inspector "https://inspector.example"
  @exposed "mcp-session-id, www-authenticate, retry-after, etag, allow"
  @requested "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, " <>
               "mcp-name, last-event-id, if-none-match"

  defp web(options \\ []), do: web_of(book(sources: []), options)

  defp web_of(name, options),
    do: Requests.web(name, [origins: [@inspector, "http://localhost:6274"]] ++ options)

  defp call(web, method, target, origin, options \\ []) do
    {headers, options} = Keyword.pop(options, :headers, [])
    origin = if origin, do: [{"origin", origin}], else: []

    # Streams are not read: some have no end.
    case Requests.respond(web, method, target, [headers: origin ++ headers] ++ options) do
      %{body: {:stream, _fun}} = response -> response
      response -> %{response | body: IO.iodata_to_binary(response.body)}
    end
  end

  # The headers of CORS.
  defp shared(response) do
    for {"access-control-" <> name, value} <- response.headers, into: %{}, do: {name, value}
  end

  defp asks(method), do: [headers: [{"access-control-request-method", method}]]

  @mcp [
    "/mcp",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp"
  ]
  @api ["/api/skills", "/api/skills/x"]
  @never ~w(/ /skills /events /login /logout /open/x /assets/app.css
            /.well-known/agent-skills/index.json /.well-known/x)

  # {origin, whether it is one of the list}
  @origins [
    {@inspector, true},
    {"http://localhost:6274", true},
    {"http://inspector.example", false},
    {"https://inspector.example:8443", false},
    {"https://inspector.example.evil.example", false},
    {"https://evil.example", false},
    {"https://INSPECTOR.example", false},
    {"https://inspector.example, https://evil.example", false},
    {"null", false},
    {"*", false},
    {nil, false}
  ]

  test "a preflight is answered for the origins of the list, on the routes of MCP and the API" do
    web = web(authorization_servers: ["https://auth.example"])

    for {origin, listed?} <- @origins, target <- @mcp ++ @api ++ @never do
      response = call(web, "OPTIONS", target, origin, asks("POST"))
      methods = if target == "/mcp", do: "GET, POST, DELETE", else: "GET, HEAD"

      cond do
        target in @never or origin == nil ->
          assert {target, response.status} == {target, 405}
          assert shared(response) == %{}

        listed? ->
          assert {response.status, response.body} == {204, ""}

          assert shared(response) == %{
                   "allow-origin" => origin,
                   "allow-methods" => methods,
                   "allow-headers" => @requested,
                   "expose-headers" => @exposed,
                   "max-age" => "7200"
                 }

        true ->
          assert {target, origin, response.status} == {target, origin, 403}
          assert shared(response) == %{}
      end

      vary = if target in @never, do: nil, else: "origin"
      assert Requests.header(response, "vary") == vary
    end
  end

  test "a preflight asks nobody who they are, but for a host and an area of this server" do
    web = web(serve: [:mcp], authenticate: fn _ -> raise "not asked" end)
    assert call(web, "OPTIONS", "/mcp", @inspector, asks("POST")).status == 204
    assert call(web, "OPTIONS", "/api/skills", @inspector, asks("GET")).status == 404
    options = asks("POST") ++ [host: "evil.example"]
    assert call(web, "OPTIONS", "/mcp", @inspector, options).status == 421
    # Not a preflight.
    assert call(web, "OPTIONS", "/mcp", @inspector).status == 405
  end

  test "without the option no website may" do
    web = Requests.web(book(sources: []))

    for target <- @mcp ++ @api ++ @never, origin <- [@inspector, "http://127.0.0.1:4004"] do
      response = call(web, "OPTIONS", target, origin, asks("POST"))
      assert {target, response.status} == {target, 405}
      assert shared(response) == %{}
      response = call(web, "GET", target, origin, as: "default")
      assert shared(response) == %{}
      refute (Requests.header(response, "vary") || "") =~ "origin"
    end
  end

  # What a caller may keep depends on who it is, too.
  defp vary("/api" <> _, 200), do: "authorization, cookie, origin"
  defp vary(_target, _status), do: "origin"

  @sites [[], [{"sec-fetch-site", "cross-site"}], [{"sec-fetch-site", "same-site"}]]

  test "responses and errors have the headers, for the origins of the list" do
    web = web(authorization_servers: ["https://auth.example"])
    json = [json: %{jsonrpc: "2.0", id: 1, method: "ping"}]

    # {method, target, options, status, which has another one for an origin that is not listed}
    for {method, target, options, status} <- [
          {"GET", "/api/skills", [as: "default"], 200},
          {"HEAD", "/api/skills", [as: "default"], 200},
          {"GET", "/api/skills/none", [as: "default"], 404},
          {"GET", "/api/skills", [], 401},
          {"GET", "/api/%00", [as: "default"], 400},
          {"GET", "/api/skills", [as: "default", host: "evil.example"], 421},
          {"TRACE", "/api/skills", [as: "default"], 405},
          {"POST", "/mcp", [as: "default"] ++ json, 400},
          {"POST", "/mcp", [as: "default", body: "x"], 415},
          {"POST", "/mcp", json, 401},
          {"DELETE", "/mcp", [as: "default"], 400},
          {"GET", "/mcp", [as: "default"], 405},
          {"GET", "/.well-known/oauth-protected-resource", [], 200},
          {"GET", "/.well-known/oauth-protected-resource/mcp", [], 200},
          {"GET", "/.well-known/oauth-protected-resource/none", [], 404}
        ],
        {origin, listed?} <- @origins,
        site <- @sites do
      site = if origin, do: site, else: []
      response = call(web, method, target, origin, options ++ [headers: site])
      row = {method, target, origin, site}
      assert {row, Requests.header(response, "vary")} == {row, vary(target, response.status)}

      if listed? do
        assert {row, response.status} == {row, status}
        assert shared(response) == %{"allow-origin" => origin, "expose-headers" => @exposed}
      else
        # Another website, as without the option.
        refused? = origin != nil and target == "/mcp" and status != 421
        assert {row, response.status} == {row, if(refused?, do: 403, else: status)}
        assert shared(response) == %{}
      end
    end
  end

  test "pages have none, and a listed website may not change them" do
    web = web()

    for target <- @never, {origin, _listed?} <- @origins do
      response = call(web, "GET", target, origin, as: "default")
      assert shared(response) == %{}

      if origin do
        post = call(web, "POST", target, origin, as: "default")
        status = if target == "/.well-known/x", do: 404, else: 403
        assert {target, origin, post.status} == {target, origin, status}
        assert shared(post) == %{}
      end
    end
  end

  test "streams have the headers" do
    web = web_of(book(sources: []), authenticate: fn _ -> {:ok, "default"} end)
    accept = [{"accept", "application/json, text/event-stream"}, {"origin", @inspector}]

    initialize = %{
      protocolVersion: "2025-11-25",
      capabilities: %{},
      clientInfo: %{name: "t", version: "1"}
    }

    json = %{jsonrpc: "2.0", id: 1, method: "initialize", params: initialize}
    started = Requests.call(web, "POST", "/mcp", json: json, headers: accept)
    session = {"mcp-session-id", Requests.header(started, "mcp-session-id")}
    assert shared(started) == %{"allow-origin" => @inspector, "expose-headers" => @exposed}
    {response, pid} = Requests.stream(web, "GET", "/mcp", headers: [session | accept])
    assert Requests.header(response, "content-type") == "text/event-stream"
    assert shared(response) == %{"allow-origin" => @inspector, "expose-headers" => @exposed}
    Requests.close(pid)
    assert Requests.call(web, "DELETE", "/mcp", headers: [session | accept]).status == 204
  end

  test "no cookie counts for a page of another website" do
    web = web(authenticate: fn _ -> {:ok, "default"} end)
    cookie = [headers: [{"cookie", "session=1"}]]
    own = "http://127.0.0.1:4004"

    for {method, target, origin, options, status} <- [
          {"GET", "/api/skills", @inspector, cookie, 403},
          {"POST", "/mcp", @inspector, cookie, 403},
          {"GET", "/api/skills", @inspector, [], 200},
          {"GET", "/api/skills", own, cookie, 200},
          {"POST", "/mcp", own, cookie, 415},
          {"GET", "/api/skills", nil, cookie, 200}
        ] do
      response = call(web, method, target, origin, options)
      assert {method, target, origin, response.status} == {method, target, origin, status}
      refute Map.has_key?(shared(response), "allow-credentials")
    end

    assert call(web, "GET", "/api/skills", @inspector, cookie).body ==
             ~s({"error":"Send a token, and no cookie."})

    # Its own address in the list changes nothing.
    web = web_of(web.book, authenticate: fn _ -> {:ok, "default"} end, origins: [own])
    assert call(web, "GET", "/api/skills", own, cookie).status == 200
  end

  test "errors of the server itself have the headers" do
    options = [book: book(sources: [], store: ":memory:"), port: 0, max_body: 4]
    server = start_supervised!({Server, options ++ [origins: [@inspector]]})
    %{url: url, port: port} = Server.info(server)

    for {path, length, origin, status, shared?} <- [
          {"/mcp", 5, @inspector, 413, true},
          {"/api/skills", 5, @inspector, 413, true},
          {"/mcp", 4, @inspector, 401, true},
          {"/mcp", 5, "https://evil.example", 413, false},
          {"/mcp", 5, nil, 413, false},
          {"/mcpx", 5, @inspector, 413, false},
          {"/skills", 5, @inspector, 413, false}
        ] do
      socket = RawHTTP.connect(url)
      origin_line = if origin, do: "origin: #{origin}\r\n", else: ""
      head = "POST #{path} HTTP/1.1\r\nhost: localhost:#{port}\r\n#{origin_line}"
      body = String.duplicate("x", length)
      RawHTTP.put(socket, "#{head}content-length: #{length}\r\n\r\n#{body}")
      {got, headers, _body} = RawHTTP.response(socket)
      RawHTTP.close(socket)
      assert {path, origin, got} == {path, origin, status}
      shared = {headers["access-control-allow-origin"], headers["access-control-expose-headers"]}
      assert shared == if(shared?, do: {origin, @exposed}, else: {nil, nil})
    end
  end

  describe "the option" do
    for {origins, kept} <- [
          {["https://A.example"], ["https://a.example"]},
          {["https://a.example:443", "http://a.example:80"],
           ["https://a.example", "http://a.example"]},
          {["http://localhost:6274", "http://[::1]:8080"],
           ["http://localhost:6274", "http://[::1]:8080"]},
          {"https://a.example", :error},
          {["*"], :error},
          {["null"], :error},
          {["https://*.example"], :error},
          {["a.example"], :error},
          {["https://a.example/"], :error},
          {["https://a.example/x"], :error},
          {["https://a.example?x"], :error},
          {["https://u@a.example"], :error},
          {["https://a.example\n"], :error},
          {["ftp://a.example"], :error},
          {[""], :error}
        ] do
      test "#{inspect(origins)}" do
        kept =
          case Web.new(book: :b, origins: unquote(origins)) do
            {:ok, web} ->
              web.origins

            {:error, error} ->
              assert Exception.message(error) =~
                       ~s(expected a list of origins such as "https://inspector.example.com" ) <>
                         "as the option :origins of Skillbook.Web, got: "

              :error
          end

        assert kept == unquote(kept)
      end
    end
  end

  test "in an application with Plug" do
    options =
      WebPlug.init(
        book: book(sources: [], profiles: [[id: "ann"]]),
        url: "https://example.com",
        authenticate: fn _conn -> {:ok, "ann"} end,
        origins: [@inspector]
      )

    conn =
      struct!(Plug.Conn,
        method: "OPTIONS",
        scheme: :https,
        host: "example.com",
        port: 443,
        path_info: ["mcp"],
        req_headers: [{"origin", @inspector}, {"access-control-request-method", "POST"}]
      )

    answer = WebPlug.call(conn, options)
    assert answer.status == 204
    assert {"access-control-allow-origin", @inspector} in answer.resp_headers

    api = %{conn | method: "GET", path_info: ["api", "skills"]}
    answer = WebPlug.call(api, options)
    assert answer.status == 200
    assert {"access-control-allow-origin", @inspector} in answer.resp_headers
  end
end
