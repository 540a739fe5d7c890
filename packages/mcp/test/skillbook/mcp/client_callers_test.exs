defmodule Skillbook.MCP.ClientCallersTest do
  # A server at which each caller signs in: no token, session or file of one is another's.
  use ExUnit.Case, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Connections, Profile, SQL, View}
  alias Skillbook.MCP.Client
  alias Skillbook.MCP.Client.{Settings, State}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.SignInWorld, as: World

  @moduletag :capture_log
  @redirect "https://app.example/connections/docs/callback"
  @register "POST https://203.0.113.9/register"
  @people ["ann", "bob"]

  defp book(world, options \\ []) do
    name = :"mcp_callers_#{System.unique_integer([:positive])}"
    key = Connections.generate_key()
    oauth = Keyword.get(options, :oauth, profile: :caller, list_as: "ops")

    source =
      {:mcp, World.server(),
       [label: "docs", oauth: oauth, approve: :all, read: ["*"]] ++
         [http: [adapter: {World, world: world}]] ++ Keyword.get(options, :source, [])}

    profiles =
      options[:profiles] || for id <- ["ops", "eve" | @people], do: [id: id, grants: ["staff"]]

    options = [
      name: name,
      watch: false,
      builtins: false,
      usage: false,
      store: ":memory:",
      sources: [source],
      profiles: profiles,
      connections: [key: fn -> key end]
    ]

    start_supervised!(Supervisor.child_spec({Skillbook, options}, id: name))
    :ok = Client.await(name)
    name
  end

  defp sign_in(book, profile, scopes \\ "read") do
    options = [profile: profile, redirect: @redirect]
    {:ok, %{state: state}} = Connections.authorize(book, "docs", options)
    # The world writes the code into its token's scopes.
    answer = %{"state" => state, "code" => "#{scopes}+is-#{profile}"}
    {:ok, _connection} = Connections.complete(book, answer, profile: profile)
    :ok
  end

  defp ready(world, options \\ []) do
    book = book(world, options)
    for id <- ["ops" | @people], do: sign_in(book, id)
    assert Client.refresh(book) == []
    book
  end

  defp run(book, profile, line) do
    view = if is_binary(profile), do: Skillbook.view(book, profile), else: profile
    hd(Skillbook.run(view, "```cmd\n#{line}\n```").results)
  end

  # The person whose token came with each request of a method, with the argument `who`.
  defp calls(world, method) do
    tokens = World.get(world, :granted)

    for %{url: url, headers: headers, body: body} <- World.log(world),
        url == World.server(),
        {:ok, %{"method" => ^method} = message} <- [JSON.decode(body)] do
      "Bearer " <> token = Map.get(headers, "authorization", "Bearer ")
      {tokens[token], message["params"]["arguments"]["who"]}
    end
  end

  for older <- [false, true] do
    test "a call has the token of its caller, also among many (sessions: #{older})" do
      world = World.start(%{}, many: true, older: unquote(older))
      book = ready(world)

      results =
        for(_round <- 1..40, who <- @people, do: who)
        |> Task.async_stream(&run(book, &1, ~s(docs.search {"who": "#{&1}"})).status,
          max_concurrency: 16,
          timeout: :infinity
        )
        |> Enum.frequencies()

      assert results == %{{:ok, :ok} => 80}
      calls = calls(world, "tools/call")

      assert Enum.frequencies(calls) == %{{"is-ann", "ann"} => 40, {"is-bob", "bob"} => 40}
      # Lists are asked for with the connection that the option names.
      assert Enum.uniq(calls(world, "tools/list")) -- [{nil, nil}] == [{"is-ops", nil}]
    end
  end

  test "a caller without a connection of its own learns how to sign in, and nothing is sent" do
    world = World.start(%{}, many: true)
    book = ready(world)
    sends = fn -> length(calls(world, "tools/call")) end

    missing =
      "the MCP server docs: the profile eve has no connection for docs; a person can make it " <>
        "with `bin/skillbook --mcp 'docs=#{World.server()}' connect docs --profile eve`"

    assert %{status: :error, content: ^missing} = run(book, "eve", "docs.search")

    # The connection was made in no tenant; a view of trusted code is nobody's.
    moved = Skillbook.view(book, Profile.new!(id: "ann", grants: :all, tenant: "acme"))
    {:ok, both} = Profile.meet(Profile.new!(id: "ann"), Profile.new!(id: "bob"))

    for {view, reason} <- [
          {moved, "the profile ann has no connection for docs"},
          {View.all(book), "has no connection for docs"},
          {Skillbook.view(book, both), "the profile ann may not use the MCP server docs"}
        ] do
      assert %{status: :error, content: text} = run(book, view, "docs.search")
      assert text =~ reason
    end

    assert sends.() == 0
    assert sign_in(book, "eve") == :ok
    assert run(book, "eve", ~s(docs.search {"who": "eve"})).status == :ok
    assert calls(world, "tools/call") == [{"is-eve", "eve"}]
  end

  test "a refused token is replaced by none of somebody else" do
    world = World.start(%{}, many: true)
    book = ready(world)

    World.update(world, fn world ->
      tokens = Map.reject(world.tokens, fn {_token, scopes} -> "is-ann" in scopes end)
      %{world | tokens: tokens, refresh: nil}
    end)

    log =
      capture_log(fn ->
        assert run(book, "ann", "docs.search").content =~
                 "the connection docs of the profile ann was withdrawn; a person can renew it " <>
                   "with `bin/skillbook --mcp 'docs=#{World.server()}' connect docs " <>
                   "--profile ann`"

        assert run(book, "bob", ~s(docs.search {"who": "bob"})).status == :ok
      end)

    refute log =~ "s3cret"
    assert calls(world, "tools/call") == [{"is-bob", "bob"}]
  end

  test "a scope that one caller lacks is asked of that one" do
    world = World.start(%{}, many: true)
    book = ready(world)
    assert run(book, "ann", "docs.write").content =~ "the profile ann lacks the scope write"

    asked = fn profile ->
      {:ok, %{url: url}} =
        Connections.authorize(book, "docs", profile: profile, redirect: @redirect)

      scopes = url |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query()
      String.split(scopes["scope"]) -- ["is-#{profile}"]
    end

    assert {asked.("ann"), asked.("bob")} == {["read", "write"], ["read"]}
    sign_in(book, "ann", "read+write")
    assert run(book, "ann", "docs.write").status == :ok
    assert run(book, "bob", "docs.write").content =~ "the profile bob lacks the scope write"
  end

  test "files and sessions of one caller are not another's, and few are kept" do
    world = World.start(%{}, many: true)
    [settings] = Client.settings(Skillbook.Book.fetch!(book(world)))
    as = &Settings.called_by(settings, Profile.new!(id: &1))
    State.put_file(as.("ann"), "sha256:1", "secret of ann")
    assert State.file(as.("ann"), "sha256:1") == "secret of ann"
    assert {State.file(as.("bob"), "sha256:1"), State.file(settings, "sha256:1")} == {nil, nil}

    session = %Client.Session{revision: "2025-11-25", id: "own"}
    for number <- 1..1_001, do: State.put_session(as.("p#{number}"), session)
    kept = Enum.count(1..1_001, &State.session(as.("p#{&1}")))
    assert {kept, State.session(as.("p1")), State.session(settings)} == {1_000, nil, nil}
  end

  test "without the connection for lists, the diagnostic says whose it is" do
    for {oauth, profile} <- [
          {[profile: :caller, list_as: "ops"], " --profile ops"},
          {[profile: :caller], ""}
        ] do
      book = book(World.start(%{}, many: true), oauth: oauth)
      assert [%{code: :server_unavailable, message: message}] = Skillbook.diagnostics(book)
      assert message =~ "connect docs#{profile}`"
    end
  end

  test "profiles that do not see the server have no account there" do
    profiles = [
      [id: "ann", grants: ["staff"], tenant: "acme"],
      [id: "guest", tenant: "acme"],
      [id: "bob", grants: ["staff"], tenant: "globex"]
    ]

    source = [labels: ["staff"], tenant: "acme"]
    book = book(World.start(%{}, many: true), profiles: profiles, source: source)

    for {id, accounts} <- [{"ann", ["docs"]}, {"guest", []}, {"bob", []}] do
      {:ok, signs} = Connections.sign_ins(book, Skillbook.view(book, id).profile)
      assert {id, Enum.map(signs, & &1.account)} == {id, accounts}
      begun = Connections.authorize(book, "docs", profile: id, redirect: @redirect)
      assert {id, elem(begun, 0)} == {id, if(accounts == [], do: :error, else: :ok)}
    end
  end

  test "the options" do
    rows = [
      {[list_as: "ops"],
       "expected no option :list_as without profile: :caller, as the option :list_as of the " <>
         ":oauth of an MCP source, got: \"ops\""},
      {[profile: :everybody],
       "expected the id of a profile or :caller as the option :profile of the :oauth of an " <>
         "MCP source, got: :everybody"}
    ]

    for {oauth, message} <- rows do
      assert {:error, error} = Settings.new("https://a.example", label: "a", oauth: oauth)
      assert Exception.message(error) == message
    end
  end

  # Registrations

  test "a registered client is used for all sign-ins that it fits" do
    world = World.start(%{}, many: true)
    book = book(world)
    registered = fn -> Enum.count(World.asked(world), &(&1 == @register)) end

    for id <- ["ops", "ann", "bob"], do: sign_in(book, id)
    assert registered.() == 1

    begin = &Connections.authorize(book, "docs", &1)
    # Another address, or another scope, is none of that client's.
    {:ok, _} = begin.(profile: "eve", redirect: @redirect <> "/2")
    assert registered.() == 2
    {:ok, _} = begin.(profile: "eve", redirect: @redirect, scopes: ["more"])
    assert registered.() == 3
    {:ok, _} = begin.(profile: "eve", redirect: @redirect)
    assert registered.() == 3

    # Nor is one that gave no token for a day, since its server may have forgotten it.
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    renewed = "update skillbook_connections set renewed_at = $1"
    ago = &DateTime.add(DateTime.utc_now(), -&1, :second)

    for {seconds, count} <- [{86_000, 3}, {86_500, 4}, {0, 4}] do
      SQL.query!(sql, renewed, [ago.(seconds)])
      {:ok, _} = begin.(profile: "eve", redirect: @redirect)
      assert {seconds, registered.()} == {seconds, count}
    end

    # It is kept with the connections.
    for id <- ["ops" | @people], do: {:ok, _} = Connections.disconnect(book, "docs", profile: id)
    {:ok, _} = begin.(profile: "eve", redirect: @redirect)
    assert registered.() == 5
  end

  test "a client whose secret has expired is not used" do
    fields = %{client_id: "c", client_secret: "s3cret-c"}
    past = System.os_time(:second) - 1
    methods = %{"token_endpoint_auth_methods_supported" => ["client_secret_post"]}
    metadata = "GET https://203.0.113.9/.well-known/oauth-authorization-server"

    for {fields, again} <- [
          {fields, 1},
          {Map.put(fields, :client_secret_expires_at, 0), 1},
          {Map.put(fields, :client_secret_expires_at, past + 3_600), 1},
          {Map.put(fields, :client_secret_expires_at, past), 2}
        ] do
      world =
        World.start(
          %{@register => {201, fields}, metadata => {200, World.metadata(methods)}},
          many: true
        )

      book = book(world)
      for id <- @people, do: sign_in(book, id)
      assert Enum.count(World.asked(world), &(&1 == @register)) == again
      # The kept client has its secret.
      tokens = for one <- World.log(world), one.url =~ "/token", do: URI.decode_query(one.body)
      assert Enum.map(tokens, & &1["client_secret"]) == ["s3cret-c", "s3cret-c"]
    end
  end
end
