defmodule Skillbook.Test.SignInWorld do
  @moduledoc false
  # An MCP server and its authorization server, played by an adapter of `Skillbook.HTTP`. Tests
  # change single documents, and read all requests that were sent.

  @behaviour Skillbook.HTTP.Adapter

  alias Skillbook.Support.JSON

  @server "https://203.0.113.5/mcp"
  @issuer "https://203.0.113.9"
  @scopes %{"search" => "read", "write" => "write"}

  def server, do: @server
  def issuer, do: @issuer

  @doc """
  Starts a world. `changes` are answers by `"METHOD URL"`: `{status, body}`, or with headers
  between them. With `many: true` a grant leaves the tokens of others as they are, and with
  `older: true` the server has the sessions of 2025-11-25, each for one token.
  """
  def start(changes \\ %{}, options \\ []) do
    {:ok, world} =
      Agent.start_link(fn ->
        state = %{changes: changes, log: [], tokens: %{}, refresh: nil, count: 0, refuses: false}
        Map.merge(state, %{many: options[:many], older: options[:older], granted: %{}})
      end)

    world
  end

  def update(world, fun), do: Agent.update(world, fun)
  def get(world, key), do: Agent.get(world, &Map.fetch!(&1, key))

  @doc "The requests that were sent, as `\"METHOD URL\"`, without those to the server itself."
  def asked(world), do: for(one <- log(world), one.url != @server, do: one.line)

  def log(world), do: world |> get(:log) |> Enum.reverse()

  @doc "The metadata of the server."
  def resource(changes \\ %{}) do
    Map.merge(%{"resource" => @server, "authorization_servers" => [@issuer]}, changes)
  end

  @doc "The metadata of the authorization server."
  def metadata(changes \\ %{}) do
    Map.merge(
      %{
        "issuer" => @issuer,
        "authorization_endpoint" => @issuer <> "/authorize",
        "token_endpoint" => @issuer <> "/token",
        "registration_endpoint" => @issuer <> "/register",
        "revocation_endpoint" => @issuer <> "/revoke",
        "code_challenge_methods_supported" => ["plain", "S256"],
        "token_endpoint_auth_methods_supported" => ["none"]
      },
      changes
    )
  end

  # The adapter

  @impl true
  def stream(request, _settings, [world: world], acc, fun) do
    url = URI.to_string(request.url)
    line = "#{request.method |> to_string() |> String.upcase()} #{url}"
    headers = Map.new(request.headers.())
    body = IO.iodata_to_binary(request.body || "")
    sent = %{line: line, url: url, headers: headers, body: body}
    {status, head, body} = Agent.get_and_update(world, &answer(&1, sent), :infinity)

    with {:cont, acc} <- fun.({:head, status, head}, acc),
         {:cont, acc} <- fun.({:data, body}, acc) do
      {:ok, acc}
    else
      {:halt, acc} -> {:halted, acc}
    end
  end

  defp answer(world, sent) do
    world = %{world | log: [sent | world.log]}

    case world.changes[sent.line] do
      {status, body} -> {{status, [], encode(body)}, world}
      {status, head, body} -> {{status, head, encode(body)}, world}
      nil -> usual(sent.line, sent, world)
    end
  end

  defp encode(body) when is_binary(body), do: body
  defp encode(body), do: JSON.encode(body)

  defp usual("POST " <> @server, sent, world) do
    {:ok, message} = JSON.decode(sent.body)
    "Bearer " <> token = Map.get(sent.headers, "authorization", "Bearer ")
    scopes = world.tokens[token]
    needed = @scopes[message["params"]["name"]]

    cond do
      scopes == nil ->
        {{401, [{"www-authenticate", ~s(Bearer scope="read")}], ""}, world}

      world.refuses or (needed != nil and needed not in scopes) ->
        challenge = ~s(Bearer error="insufficient_scope", scope="#{needed || "write"}")
        {{403, [{"www-authenticate", challenge}], ""}, world}

      world.older ->
        {older(message, token, sent.headers["mcp-session-id"]), world}

      true ->
        {reply(message, result(message["method"])), world}
    end
  end

  defp usual("GET https://203.0.113.5/.well-known/oauth-protected-resource/mcp", _sent, world),
    do: {{200, [], JSON.encode(resource())}, world}

  defp usual("GET #{@issuer}/.well-known/oauth-authorization-server", _sent, world),
    do: {{200, [], JSON.encode(metadata())}, world}

  defp usual("POST #{@issuer}/register", _sent, world),
    do: {{201, [], JSON.encode(%{client_id: "client-1"})}, world}

  defp usual("POST #{@issuer}/token", sent, world) do
    case URI.decode_query(sent.body) do
      %{"grant_type" => "authorization_code", "code" => code} ->
        grant(world, String.split(code, "+"))

      %{"grant_type" => "refresh_token", "refresh_token" => token} ->
        if token == world.refresh,
          do: grant(world, ["read"]),
          else: {{400, [], ~s({"error": "invalid_grant"})}, world}
    end
  end

  defp usual("POST #{@issuer}/revoke", _sent, world),
    do: {{200, [], ""}, %{world | tokens: %{}, refresh: nil}}

  defp usual(_line, _sent, world), do: {{404, [], ""}, world}

  defp reply(message, result, headers \\ []) do
    reply = %{jsonrpc: "2.0", id: message["id"], result: result}
    {200, [{"content-type", "application/json"} | headers], JSON.encode(reply)}
  end

  defp older(%{"method" => "server/discover"}, _token, _session), do: {404, [], ""}

  defp older(%{"method" => "initialize"} = message, token, _session) do
    result = %{protocolVersion: "2025-11-25", capabilities: %{tools: %{}}}
    reply(message, result, [{"mcp-session-id", "of-" <> token}])
  end

  # 400 says that the session is another token's.
  defp older(message, token, session) do
    cond do
      session != "of-" <> token -> {400, [], ""}
      message["id"] == nil -> {202, [], ""}
      true -> reply(message, result(message["method"]))
    end
  end

  # Each grant replaces the tokens of the one before. A code has the scopes that it grants.
  defp grant(world, scopes) do
    count = world.count + 1
    {access, refresh} = {"s3cret-access-#{count}", "s3cret-refresh-#{count}"}
    fields = %{access_token: access, refresh_token: refresh, token_type: "Bearer"}
    fields = Map.merge(fields, %{expires_in: 3_600, scope: Enum.join(scopes, " ")})
    tokens = if world.many, do: world.tokens, else: %{}
    tokens = Map.put(tokens, access, scopes)
    granted = Map.put(world.granted, access, Enum.find(scopes, &(&1 =~ ~r/\Ais-/)))
    world = %{world | tokens: tokens, granted: granted, refresh: refresh, count: count}
    {{200, [], JSON.encode(fields)}, world}
  end

  defp result("server/discover") do
    %{supportedVersions: ["2026-07-28"], capabilities: %{tools: %{}}, resultType: "complete"}
  end

  defp result("tools/list") do
    tools = for {name, _scope} <- @scopes, do: %{name: name, inputSchema: %{type: "object"}}

    %{tools: tools, resultType: "complete"}
  end

  defp result("tools/call"),
    do: %{content: [%{type: "text", text: "done"}], resultType: "complete"}

  defp result(_other), do: %{resultType: "complete"}
end
