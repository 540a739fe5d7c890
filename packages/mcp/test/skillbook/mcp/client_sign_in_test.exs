defmodule Skillbook.MCP.ClientSignInTest do
  # Servers and authorization servers that break the rules of a sign-in, one row for each rule.
  use ExUnit.Case, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Connections, SQL, View}
  alias Skillbook.MCP.Client
  alias Skillbook.MCP.Client.Settings
  alias Skillbook.Test.Connections, as: Expired
  alias Skillbook.Test.SignInWorld, as: World

  doctest Skillbook.MCP.Client.Auth

  @moduletag :capture_log
  @redirect "https://app.example/connections/docs/callback"
  @resource "GET https://203.0.113.5/.well-known/oauth-protected-resource/mcp"
  @root "GET https://203.0.113.5/.well-known/oauth-protected-resource"
  @metadata "GET https://203.0.113.9/.well-known/oauth-authorization-server"
  @openid "GET https://203.0.113.9/.well-known/openid-configuration"
  @register "POST https://203.0.113.9/register"

  defp book(world, oauth \\ true, options \\ []) do
    name = :"mcp_sign_in_#{System.unique_integer([:positive])}"
    key = Connections.generate_key()
    http = [adapter: {World, world: world}]
    place = Keyword.get(options, :place, World.server())

    source = {:mcp, place, label: "docs", oauth: oauth, approve: :all, read: ["*"], http: http}

    key = Keyword.get(options, :key, key)

    options = [
      name: name,
      watch: false,
      builtins: false,
      usage: false,
      store: Keyword.get(options, :store, ":memory:"),
      sources: [source],
      connections: [key: fn -> key end]
    ]

    start_supervised!(Supervisor.child_spec({Skillbook, options}, id: name))
    :ok = Client.await(name)
    name
  end

  defp begin(book, options \\ []),
    do: Connections.authorize(book, "docs", [redirect: @redirect] ++ options)

  defp query(url), do: url |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query()

  # The person agrees to all scopes, or to the given ones.
  defp sign_in(book, options \\ []) do
    {:ok, %{url: url, state: state}} = begin(book)
    code = options[:scopes] || String.replace(query(url)["scope"], " ", "+")
    answer = Map.merge(%{"state" => state, "code" => code}, Map.new(options[:answer] || []))
    Connections.complete(book, answer, redirect: @redirect)
  end

  defp run(book, line), do: hd(Skillbook.run(View.all(book), "```cmd\n#{line}\n```").results)

  defp message({:error, error}), do: Exception.message(error)

  @prefix "the sign-in of the MCP server docs cannot be used: "

  # Documents, and the error of the sign-in that they lead to.
  @documents [
    {"another resource",
     %{@resource => {200, World.resource(%{"resource" => "https://a.example"})}},
     ~s(the server's metadata is for another resource than "https://203.0.113.5/mcp")},
    {"a resource below the address",
     %{@resource => {200, World.resource(%{"resource" => "https://203.0.113.5/mcp/x"})}},
     ~s(the server's metadata is for another resource than "https://203.0.113.5/mcp")},
    {"a resource that begins alike",
     %{@resource => {200, World.resource(%{"resource" => "https://203.0.113.5/mc"})}},
     ~s(the server's metadata is for another resource than "https://203.0.113.5/mcp")},
    {"no resource", %{@resource => {200, %{}}}, "the server's metadata has no `resource`"},
    {"no metadata of the server", %{@resource => {404, ""}, @root => {404, ""}},
     "expected the server's metadata at " <>
       ~s("https://203.0.113.5/.well-known/oauth-protected-resource/mcp" \(status 404\), ) <>
       ~s("https://203.0.113.5/.well-known/oauth-protected-resource" \(status 404\))},
    {"redirects", %{@resource => {302, [{"location", "https://a.example/"}], ""}},
     "expected the server's metadata at " <>
       ~s("https://203.0.113.5/.well-known/oauth-protected-resource/mcp" \(status 302\), ) <>
       ~s("https://203.0.113.5/.well-known/oauth-protected-resource" \(status 404\))},
    {"a huge document", %{@resource => {200, String.duplicate(" ", 131_073)}},
     "the server's metadata has more than 131072 bytes"},
    {"a list", %{@resource => {200, "[]"}},
     "expected a JSON object as the server's metadata at " <>
       ~s("https://203.0.113.5/.well-known/oauth-protected-resource/mcp")},
    {"no authorization server",
     %{@resource => {200, World.resource(%{"authorization_servers" => []})}},
     "the server's metadata names no authorization server"},
    {"authorization servers that are none",
     %{@resource => {200, World.resource(%{"authorization_servers" => %{}})}},
     "the server's metadata names no authorization server"},
    {"an issuer without TLS",
     %{@resource => {200, World.resource(%{"authorization_servers" => ["http://a.example"]})}},
     ~s(expected an https URL as its issuer, got: "http://a.example")},
    {"an issuer with a query",
     %{@resource => {200, World.resource(%{"authorization_servers" => ["https://a.example?b"]})}},
     ~s(expected an issuer without a query, got: "https://a.example?b")},
    {"an issuer in a private network",
     %{@resource => {200, World.resource(%{"authorization_servers" => ["https://10.0.0.1"]})}},
     "10.0.0.1:443: its address is in a private network"},
    {"no metadata of the issuer", %{@metadata => {404, ""}},
     "expected the issuer's metadata at " <>
       ~s("https://203.0.113.9/.well-known/oauth-authorization-server" \(status 404\), ) <>
       ~s("https://203.0.113.9/.well-known/openid-configuration" \(status 404\))},
    {"another issuer",
     %{@metadata => {200, World.metadata(%{"issuer" => "https://203.0.113.9/"})}},
     ~s(expected the issuer "https://203.0.113.9" in its metadata, got: "https://203.0.113.9/")},
    {"no PKCE",
     %{@metadata => {200, Map.delete(World.metadata(), "code_challenge_methods_supported")}},
     "its authorization server does not offer PKCE with S256"},
    {"PKCE without S256",
     %{@metadata => {200, World.metadata(%{"code_challenge_methods_supported" => ["plain"]})}},
     "its authorization server does not offer PKCE with S256"},
    {"a token endpoint without TLS",
     %{@metadata => {200, World.metadata(%{"token_endpoint" => "http://203.0.113.9/token"})}},
     ~s(expected an https URL as its token_endpoint, got: "http://203.0.113.9/token")},
    {"no authorization endpoint",
     %{@metadata => {200, Map.delete(World.metadata(), "authorization_endpoint")}},
     "expected an https URL as its authorization_endpoint, got: none"},
    {"an authorization endpoint that runs a script",
     %{@metadata => {200, World.metadata(%{"authorization_endpoint" => "javascript:alert(1)"})}},
     ~s(expected an https URL as its authorization_endpoint, got: "javascript:alert\(1\)")},
    {"no registration",
     %{@metadata => {200, Map.delete(World.metadata(), "registration_endpoint")}},
     ~s(its authorization server "https://203.0.113.9" registers no clients by itself; ) <>
       "register one there, and set the options `client_id` and `issuer`"},
    {"a registration endpoint without TLS",
     %{@metadata => {200, World.metadata(%{"registration_endpoint" => "http://a.example"})}},
     ~s(expected an https URL as its registration_endpoint, got: "http://a.example")},
    {"a refused registration",
     %{@register => {400, %{error: "invalid_redirect_uri", error_description: "no\nway"}}},
     ~s(it did not register a client \(status 400: "no way"\))},
    {"a registration without a client", %{@register => {201, %{client_name: "a"}}},
     "its authorization server registered no client that can be used"},
    {"a client with a line break", %{@register => {201, %{client_id: "a\r\nb"}}},
     "its authorization server registered no client that can be used"},
    {"a client with an unknown method",
     %{@register => {201, %{client_id: "a", token_endpoint_auth_method: "private_key_jwt"}}},
     "its authorization server registered no client that can be used"}
  ]

  for {name, changes, reason} <- @documents do
    test "a sign-in does not begin: #{name}" do
      world = World.start(unquote(Macro.escape(changes)))
      assert message(begin(book(world))) == @prefix <> unquote(reason)
      # Nothing was sent to addresses that another rule refuses.
      refute Enum.any?(World.log(world), &(&1.url =~ "a.example" or &1.url =~ "10.0.0.1"))
    end
  end

  test "metadata is looked for where the server says, and else in the order of the spec" do
    path = "https://203.0.113.9/tenant"
    metadata = World.metadata(%{"issuer" => path})
    resource = World.resource(%{"authorization_servers" => [path]})
    place = "https://203.0.113.5/own"
    challenge = ~s(Bearer realm="a, b", resource_metadata="#{place}", error="invalid_token")

    rows = [
      {%{}, [@resource, @metadata, @register]},
      {%{@resource => {404, ""}, @root => {200, World.resource()}},
       [@resource, @root, @metadata, @register]},
      {%{@metadata => {404, ""}, @openid => {200, World.metadata()}},
       [@resource, @metadata, @openid, @register]},
      {%{
         @resource => {200, resource},
         "GET #{path}/.well-known/openid-configuration" => {200, metadata}
       },
       [
         @resource,
         @metadata <> "/tenant",
         @openid <> "/tenant",
         "GET #{path}/.well-known/openid-configuration",
         @register
       ]},
      {%{
         "POST #{World.server()}" => {401, [{"www-authenticate", challenge}], ""},
         "GET #{place}" => {200, World.resource()}
       }, ["GET #{place}", @metadata, @register]},
      # A resource that covers the server.
      {%{@resource => {200, World.resource(%{"resource" => "https://203.0.113.5"})}},
       [@resource, @metadata, @register]}
    ]

    for {changes, asked} <- rows do
      world = World.start(changes)
      assert {:ok, %{url: url}} = begin(book(world))
      assert World.asked(world) == asked

      assert %{"code_challenge_method" => "S256", "resource" => "https://203.0.113.5" <> _} =
               query(url)
    end
  end

  test "an address of metadata without TLS is not asked" do
    challenge = ~s(Bearer resource_metadata="http://203.0.113.5/own")
    answer = {401, [{"www-authenticate", challenge}], ""}
    world = World.start(%{"POST #{World.server()}" => answer})

    assert message(begin(book(world))) ==
             @prefix <>
               ~s(expected an https URL as its address of metadata, got: "http://203.0.113.5/own")

    assert World.asked(world) == []
  end

  test "a server in a private network may have its authorization server there" do
    server = "https://10.1.1.1/mcp"
    issuer = "https://10.1.1.2"

    resource = %{"resource" => server, "authorization_servers" => [issuer]}

    world =
      World.start(%{
        "POST #{server}" => {401, [], ""},
        "GET https://10.1.1.1/.well-known/oauth-protected-resource/mcp" => {200, resource},
        "GET #{issuer}/.well-known/oauth-authorization-server" =>
          {200, World.metadata(%{"issuer" => issuer})}
      })

    assert {:ok, %{url: "https://203.0.113.9/authorize?" <> _}} =
             begin(book(world, true, place: server))
  end

  test "the client: of the options, a document, or a registered one" do
    document = "https://app.example/client.json"
    supported = World.metadata(%{"client_id_metadata_document_supported" => true})
    options = [client_id: "own", client_secret: fn -> "s3cret-own" end, issuer: World.issuer()]

    basic = World.metadata(%{"token_endpoint_auth_methods_supported" => ["client_secret_basic"]})

    rows = [
      {options, %{}, "own", false},
      {[client_metadata: document], %{@metadata => {200, supported}}, document, false},
      {[client_metadata: document], %{}, "client-1", true},
      {true, %{@metadata => {200, supported}}, "client-1", true}
    ]

    for {oauth, changes, id, registered?} <- rows do
      world = World.start(changes)
      assert {:ok, %{url: url}} = begin(book(world, oauth))
      assert query(url)["client_id"] == id
      assert @register in World.asked(world) == registered?
    end

    # A secret goes as the server takes it, and to no other authorization server.
    world = World.start(%{@metadata => {200, basic}})
    assert {:ok, _connection} = sign_in(book(world, options))

    %{headers: headers, body: body} =
      List.last(for one <- World.log(world), one.url =~ "/token", do: one)

    assert headers["authorization"] == "Basic " <> Base.encode64("own:s3cret-own")
    refute body =~ "s3cret-own"

    world =
      World.start(%{
        @resource => {200, World.resource(%{"authorization_servers" => ["https://203.0.113.8"]})}
      })

    assert message(begin(book(world, options))) ==
             @prefix <>
               ~s(its authorization servers \("https://203.0.113.8"\) do not include the ) <>
               "option `issuer`"
  end

  test "an answer counts only with the issuer that was asked" do
    advertised = World.metadata(%{"authorization_response_iss_parameter_supported" => true})
    issuer = World.issuer()
    wrong = "expected the issuer #{issuer} in the answer, got: "

    rows = [
      {World.metadata(), %{}, :ok},
      {World.metadata(), %{"iss" => issuer}, :ok},
      {World.metadata(), %{"iss" => "https://a.example"}, wrong <> ~s("https://a.example")},
      {World.metadata(), %{"iss" => ["x"]}, wrong <> ~s("a list")},
      {advertised, %{"iss" => issuer}, :ok},
      {advertised, %{"iss" => issuer <> "/"}, wrong <> ~s("#{issuer}/")},
      {advertised, %{}, wrong <> ~s("none")},
      # Nothing of such an answer is shown.
      {advertised, %{"error" => "access_denied", "iss" => "https://a.example"},
       wrong <> ~s("https://a.example")}
    ]

    for {metadata, answer, expected} <- rows do
      world = World.start(%{@metadata => {200, metadata}})
      result = sign_in(book(world), answer: answer)
      tokens = Enum.count(World.asked(world), &(&1 == "POST #{issuer}/token"))

      case expected do
        :ok -> assert {{:ok, _connection}, 1} = {result, tokens}
        reason -> assert {message(result), tokens} == {@prefix <> reason, 0}
      end
    end
  end

  test "an answer with another state, or a second one, is none" do
    world = World.start()
    book = book(world)
    assert {:error, %{kind: :state}} = sign_in(book, answer: %{"state" => "x"})
    {:ok, %{state: state}} = begin(book)
    answer = %{"state" => state, "code" => "read"}
    assert {:ok, _connection} = Connections.complete(book, answer)
    assert {:error, %{kind: :state}} = Connections.complete(book, answer)
  end

  test "the token goes to the server alone, with the resource, and is in no log and no row" do
    world = World.start()

    log =
      capture_log(fn ->
        book = book(world)
        assert {:ok, _connection} = sign_in(book)
        assert Client.refresh(book) == []
        assert run(book, "docs.search").content =~ "| done"

        rows =
          SQL.query!(
            Skillbook.Book.sql(Skillbook.Book.fetch!(book)),
            "select * from skillbook_connections"
          )

        refute inspect(rows, limit: :infinity, printable_limit: :infinity) =~ "s3cret"
        update = &%{&1 | tokens: %{}, refresh: nil}
        World.update(world, update)
        refute run(book, "docs.search").content =~ "s3cret"
      end)

    refute log =~ "s3cret"

    with_token =
      for one <- World.log(world), one.headers["authorization"], uniq: true, do: one.url

    assert with_token == [World.server()]

    for %{url: url, body: body} <- World.log(world),
        url =~ "/token",
        do: assert(URI.decode_query(body)["resource"] == World.server())
  end

  @tag :tmp_dir
  test "a server of the same name at another address gets no token", %{tmp_dir: folder} do
    world = World.start()
    kept = [store: Path.join(folder, "book.db"), key: Connections.generate_key()]
    assert {:ok, _connection} = sign_in(book(world, true, kept))

    tokens = fn url ->
      for one <- World.log(world), one.url == url, do: one.headers["authorization"]
    end

    # The same server, and two others: another host, and another path.
    assert Client.refresh(book(world, true, kept)) == []
    assert Enum.any?(tokens.(World.server()))

    for url <- ["https://203.0.113.7/mcp", "https://203.0.113.5/mcp2"] do
      other = book(world, true, [place: url] ++ kept)
      assert [{"docs", error}] = Client.refresh(other)
      assert Exception.message(error) =~ "404"
      assert Enum.uniq(tokens.(url)) == [nil]
    end

    # Nor does the authorization server get the client of another one.
    own = [client_id: "own", client_secret: fn -> "s3cret-own" end, issuer: "https://203.0.113.8"]
    other = book(world, own, kept)
    World.update(world, &%{&1 | tokens: %{}})
    assert [{"docs", _error}] = Client.refresh(other)
    assert {:ok, %{revoked: false, reason: reason}} = Connections.disconnect(other, "docs")
    assert reason == "they are of another server, which had this name before"
    refute inspect(World.log(world), limit: :infinity, printable_limit: :infinity) =~ "-own"
  end

  test "an expired token is renewed once by many callers, with a new refresh token each time" do
    world = World.start()
    book = book(world)
    {:ok, _connection} = sign_in(book)
    assert Client.refresh(book) == []

    # The server has forgotten the token; then its time is over here.
    forgotten = fn -> World.update(world, &%{&1 | tokens: %{}}) end

    for {ended, round} <- [{forgotten, 1}, {fn -> Expired.expire(book) end, 2}] do
      ended.()

      results =
        1..8
        |> Enum.map(fn _ -> Task.async(fn -> run(book, "docs.search").status end) end)
        |> Task.await_many(:infinity)

      assert Enum.uniq(results) == [:ok]
      tokens = for one <- World.log(world), one.url =~ "/token", do: URI.decode_query(one.body)
      assert length(tokens) == 1 + round
      refresh = for %{"refresh_token" => token} <- tokens, do: token
      assert refresh == for(number <- 1..round, do: "s3cret-refresh-#{number}")
    end
  end

  test "a refresh token that is withdrawn tells what to run" do
    world = World.start()
    book = book(world)
    {:ok, _connection} = sign_in(book)
    assert Client.refresh(book) == []
    World.update(world, &%{&1 | tokens: %{}, refresh: nil})

    for _ <- 1..2 do
      assert run(book, "docs.search").content =~
               "the MCP server docs: the connection docs of the profile default was " <>
                 "withdrawn; a person can renew it with `bin/skillbook --mcp " <>
                 "'docs=#{World.server()}' connect docs`"
    end

    # It was tried once.
    assert Enum.count(World.asked(world), &(&1 =~ "/token")) == 2
    assert {:ok, _connection} = sign_in(book)
    assert run(book, "docs.search").content =~ "| done"
  end

  test "a missing scope leads to another sign-in only while the connection lacks it" do
    world = World.start()
    book = book(world)
    {:ok, _connection} = sign_in(book)
    assert Client.refresh(book) == []
    calls = fn -> Enum.count(World.log(world), &(&1.body =~ "tools/call")) end

    assert run(book, "docs.write").content =~
             "lacks the scope write; a person can grant it with " <>
               "`bin/skillbook --mcp 'docs=#{World.server()}' connect docs --scope write`"

    assert calls.() == 1

    # The person grants less than what is asked for.
    {:ok, %{url: url}} = begin(book)
    assert query(url)["scope"] == "read write"
    assert {:ok, %{scopes: ["read"]}} = sign_in(book, scopes: "read")
    assert run(book, "docs.write").content =~ "lacks the scope write"

    assert {:ok, %{scopes: ["read", "write"]}} = sign_in(book)
    assert run(book, "docs.write").content =~ "| done"

    # The server asks for what the connection has.
    World.update(world, &%{&1 | refuses: true})
    before = calls.()

    assert run(book, "docs.write").content =~
             @prefix <> "it asks for the scopes write, which the connection has"

    assert calls.() == before + 1
    assert {:ok, %{url: url}} = begin(book, scopes: ["more"])
    assert query(url)["scope"] == "read write more"
  end

  test "the options of a sign-in" do
    secret = fn -> "s3cret" end

    rows = [
      {[oauth: 1],
       "expected true, false or a list of options as the option :oauth of an MCP " <>
         "source, got: :hidden"},
      {[oauth: [client_id: "a"]], "the :oauth of an MCP source needs the option :issuer"},
      {[oauth: [client_secret: secret, issuer: "https://a.example"]],
       "the :oauth of an MCP source needs the option :client_id"},
      {[oauth: [client_metadata: "http://a.example/a"]],
       "expected an https URL with a path as the option :client_metadata of the :oauth of an " <>
         "MCP source, got: \"http://…\""},
      {[oauth: [client_metadata: "https://a.example"]],
       "expected an https URL with a path as the option :client_metadata of the :oauth of an " <>
         "MCP source, got: \"https://…\""},
      {[oauth: true, token: {:env, "A"}],
       "expected no option :token for a server with :oauth, as the option :token of an MCP " <>
         "source, got: :hidden"}
    ]

    for {options, message} <- rows do
      assert {:error, error} = Settings.new("https://a.example", [label: "a"] ++ options)
      assert Exception.message(error) == message
    end

    assert {:error, error} = Settings.new(["program"], label: "a", oauth: true)
    assert Exception.message(error) =~ "no option :oauth for a server that is a command"
    assert {:ok, %{oauth: nil}} = Settings.new("https://a.example", label: "a", oauth: false)

    assert {:ok, %{oauth: [profile: "default"]}} =
             Settings.new("https://a.example", label: "a", oauth: true)
  end

  test "a server and an account have different names" do
    options = [
      name: :mcp_sign_in_names,
      store: ":memory:",
      builtins: false,
      sources: [{:mcp, World.server(), label: "docs", oauth: true}],
      connections: [docs: [vendor: :hubspot, token: {:env, "A"}]]
    ]

    assert {:error, error} = start_supervised({Skillbook, options})
    assert inspect(error) =~ "accounts with different names"
  end
end
