defmodule Skillbook.Connections.AuthorizationServerTest do
  # The authorization server of test/support/services keeps the rules of OAuth 2. Tests of sign-in
  # and of tokens rely on that.
  use ExUnit.Case, async: true

  alias Skillbook.HTTP
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Services

  # RFC 7636, appendix B.
  @verifier "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
  @challenge "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
  @redirect "http://127.0.0.1:51004/callback"
  @scope "https://www.googleapis.com/auth/gmail.send"

  setup context do
    %{world: Services.world(Map.put(context[:seed] || %{}, :echo, true), violations: true)}
  end

  @asked [
    client_id: "client",
    redirect_uri: @redirect,
    response_type: "code",
    scope: @scope,
    state: "0123456789abcdef",
    code_challenge: @challenge,
    code_challenge_method: "S256",
    access_type: "offline"
  ]

  @refused [
    {[response_type: "token"], "unsupported_response_type", "response_type is 'token', not code"},
    {[code_challenge: nil], "invalid_request",
     "code_challenge is no SHA-256 in base64url (RFC 7636, 4.2)"},
    {[code_challenge_method: "plain"], "invalid_request",
     "code_challenge_method is not S256 (RFC 7636, 4.2)"},
    {[state: nil], "invalid_request", "state is missing or shorter than 16 characters"},
    {[scope: "mail"], "invalid_scope", "unknown or repeated scopes ['mail']"},
    {[scope: ""], "invalid_scope", "unknown or repeated scopes ['']"},
    {[scope: @scope <> " " <> @scope], "invalid_scope",
     "unknown or repeated scopes ['#{@scope}', '#{@scope}']"},
    {[approval: "force"], "invalid_request", "unknown parameters ['approval']"},
    {[access_type: "always"], "invalid_request", "access_type"}
  ]

  test "a wrong request for consent is answered at the redirect, with the state", context do
    for {changes, error, description} <- @refused do
      {302, location} = ask(context.world, changes)
      answer = answered(location)
      assert {changes, answer["error"]} == {changes, error}
      assert answer["error_description"] == description
      assert answer["state"] == Keyword.get(changes, :state, "0123456789abcdef")
      assert List.last(Services.log(context.world))["violation"] == description
    end
  end

  test "without a known client and redirect nothing is sent to the redirect", context do
    for changes <- [
          [client_id: "other"],
          [client_id: nil],
          [redirect_uri: "https://127.0.0.1:51004/callback"],
          [redirect_uri: "http://127.0.0.2/callback"],
          [redirect_uri: "http://127.0.0.1.example.com/"],
          [redirect_uri: "http://ann@127.0.0.1/"],
          [redirect_uri: "http://127.0.0.1:51004/#x"],
          [redirect_uri: nil]
        ] do
      assert {changes, {400, nil}} == {changes, ask(context.world, changes)}
    end

    for port <- [80, 1024, 65_535] do
      assert {302, _} = ask(context.world, redirect_uri: "http://127.0.0.1:#{port}/")
    end
  end

  test "the scripted person allows, denies, or grants a part", %{world: world} do
    Services.browser(world, answer: "deny")
    {302, location} = ask(world)
    assert answered(location) == %{"error" => "access_denied", "state" => "0123456789abcdef"}

    Services.browser(world, user: "bob@example.com", answer: ["openid"])
    {302, location} = ask(world, scope: "openid #{@scope}")
    assert %{"code" => code, "scope" => "openid"} = answered(location)
    assert {200, %{"scope" => "openid", "id_token" => id}} = token(world, for_code(code))
    [_, claims, _] = String.split(id, ".")
    {:ok, claims} = claims |> Base.url_decode64!(padding: false) |> JSON.decode()
    assert %{"aud" => "client", "iss" => "https://accounts.google.com"} = claims
  end

  test "a code: once, by its client, for its redirect, with its verifier, for a time", context do
    %{world: world} = context

    for {changes, error, description} <- [
          {[grant_type: "password"], "unsupported_grant_type", "Invalid grant_type: password"},
          {[code: "4/x"], "invalid_grant", "Malformed auth code."},
          {[code: nil], "invalid_request", "code is missing"},
          {[redirect_uri: @redirect <> "/"], "invalid_request",
           "redirect_uri is not that of the code"},
          {[code_verifier: nil], "invalid_request", "code_verifier is missing"},
          {[code_verifier: String.duplicate("a", 42)], "invalid_request",
           "code_verifier is not 43 to 128 unreserved characters (RFC 7636, 4.1)"},
          {[code_verifier: String.duplicate("a", 43)], "invalid_grant", "Invalid code verifier."},
          {[client_secret: "x"], "invalid_client", "The OAuth client was not found."},
          {[client_id: "x"], "invalid_client", "The OAuth client was not found."},
          {[scope: "openid"], "invalid_request", "authorization_code has no parameters ['scope']"}
        ] do
      {_status, answer} = token(world, Keyword.merge(for_code(code(world)), changes))
      assert {changes, answer["error"]} == {changes, error}
      assert answer["error_description"] == description
    end

    code = code(world)
    assert {200, answer} = token(world, for_code(code))

    assert %{"token_type" => "Bearer", "expires_in" => 3600, "scope" => @scope} = answer
    assert {200, _} = send_mail(world, answer["access_token"])
    # A code that comes twice takes the tokens of its first use with it.
    assert {400, %{"error" => "invalid_grant"}} = token(world, for_code(code))
    assert {401, _} = send_mail(world, answer["access_token"])

    code = code(world)
    Services.advance(world, 601)
    assert {400, %{"error" => "invalid_grant"}} = token(world, for_code(code))
  end

  test "forms: encoding, repeated and misplaced parameters, Basic", %{world: world} do
    form = "application/x-www-form-urlencoded"
    body = URI.encode_query(for_code("4/x"))

    for {type, path, body, description} <- [
          {"application/json", "/token", JSON.encode(%{grant_type: "refresh_token"}),
           "content type 'application/json' of a form"},
          {form, "/token?client_id=client", body,
           "parameters of a form belong into the body (RFC 6749, 3.2)"},
          {form, "/token", body <> "&code=4%2Fy", "a parameter is given twice (RFC 6749, 3.2)"},
          {form, "/token", "grant_type", "'grant_type' has no ="}
        ] do
      assert {400, answer} = post(world, path, type, body)
      assert answer == %{"error" => "invalid_request", "error_description" => description}
    end

    basic = {"authorization", "Basic " <> Base.encode64("client:client-secret")}
    fields = Keyword.drop(for_code(code(world)), [:client_id, :client_secret])
    assert {200, _} = post(world, "/token", form, URI.encode_query(fields), [basic])
    assert {400, answer} = post(world, "/token", form, body, [basic])
    assert answer["error_description"] == "the client authenticates twice"
  end

  test "refresh tokens: with the first consent, and again if asked", %{world: world} do
    # The world's own grant for ann is that of a first consent.
    assert {200, answer} = token(world, for_code(code(world)))
    refute answer["refresh_token"]
    assert {200, answer} = token(world, for_code(code(world, prompt: "consent")))
    assert refresh = answer["refresh_token"]
    assert {200, next} = token(world, for_refresh(refresh))
    refute Map.has_key?(next, "refresh_token")
    # The scopes of the consent may be narrowed, not widened.
    assert {200, %{"scope" => @scope}} = token(world, for_refresh(refresh) ++ [scope: @scope])
    assert {400, %{"error" => "invalid_grant"}} = token(world, for_refresh("1//x"))

    assert {200, %{}} = revoke(world, refresh)
    assert {400, %{"error" => "invalid_grant"}} = token(world, for_refresh(refresh))
    assert {401, _} = send_mail(world, next["access_token"])
    assert {400, %{"error" => "invalid_token"}} = revoke(world, refresh)
  end

  @tag seed: %{rotate: true}
  test "rotated refresh tokens: using an old one revokes the consent", %{world: world} do
    first = world.refresh_tokens["ann@example.com"]
    assert {200, %{"refresh_token" => second}} = token(world, for_refresh(first))
    assert {200, %{"refresh_token" => third}} = token(world, for_refresh(second))
    assert {400, %{"error" => "invalid_grant"}} = token(world, for_refresh(first))
    assert {400, %{"error" => "invalid_grant"}} = token(world, for_refresh(third))
  end

  test "assertions of a service account", %{world: world} do
    account = world.service_account
    now = System.os_time(:second)

    claims = %{
      iss: account["client_email"],
      sub: "ann@example.com",
      scope: @scope,
      aud: account["token_uri"],
      iat: now,
      exp: now + 3600
    }

    assert {200, %{"access_token" => access, "expires_in" => 3600}} = assertion(world, claims)
    assert {200, _} = send_mail(world, access)

    for {changes, head, error, description} <- [
          {%{sub: "eve@example.com"}, %{}, "invalid_grant", "Invalid email or User ID"},
          {%{iss: "x@example.com"}, %{}, "invalid_grant",
           "Invalid issuer: Not a valid email or user ID."},
          {%{aud: "https://example.com"}, %{}, "invalid_grant", "Invalid JWT: wrong audience."},
          {%{exp: now + 3601}, %{}, "invalid_grant",
           "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable " <>
             "timeframe."},
          {%{iat: now - 7200, exp: now - 3600}, %{}, "invalid_grant",
           "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable " <>
             "timeframe."},
          {%{exp: now + 60.5}, %{}, "invalid_request", "iat and exp are whole seconds"},
          {%{scope: "mail"}, %{}, "invalid_scope",
           "Invalid OAuth scope or ID token audience provided."},
          {%{}, %{alg: "none"}, "invalid_request", "alg 'none' is not RS256"},
          {%{}, %{key: :other}, "invalid_grant", "Invalid JWT Signature."}
        ] do
      {400, answer} = assertion(world, Map.merge(claims, changes), head)
      assert {changes, head, answer["error"]} == {changes, head, error}
      assert answer["error_description"] == description
    end
  end

  @tag seed: %{delegated: ["https://www.googleapis.com/auth/gmail.readonly"]}
  test "a service account acts for people only with the scopes that are delegated", context do
    now = System.os_time(:second)
    account = context.world.service_account

    claims = %{iss: account["client_email"], sub: "ann@example.com", scope: @scope}
    claims = Map.merge(claims, %{aud: account["token_uri"], iat: now, exp: now + 60})
    assert {401, %{"error" => "unauthorized_client"}} = assertion(context.world, claims)
  end

  test "faults of the token endpoint", %{world: world} do
    refresh = world.refresh_tokens["ann@example.com"]

    Services.faults(world, [
      %{method: "oauth.token", status: 503},
      %{method: "oauth.token", status: 400, reason: "invalid_grant", message: "Gone."},
      %{method: "oauth.token", body: "<html>"},
      %{method: "oauth.token", cut: 0}
    ])

    assert {503, %{"error" => "temporarily_unavailable"}} = token(world, for_refresh(refresh))

    assert {400, %{"error" => "invalid_grant", "error_description" => "Gone."}} =
             token(world, for_refresh(refresh))

    assert {200, :not_json} = token(world, for_refresh(refresh))
    assert {:error, %HTTP.Error{}} = token(world, for_refresh(refresh))
    assert {200, _} = token(world, for_refresh(refresh))
  end

  defp ask(world, changes \\ []) do
    fields = for {name, value} <- Keyword.merge(@asked, changes), value, do: {name, value}
    Services.open("#{world.url}/o/oauth2/v2/auth?" <> URI.encode_query(fields))
  end

  defp answered(location), do: URI.decode_query(URI.parse(location).query)

  defp code(world, changes \\ []) do
    {302, location} = ask(world, changes)
    answered(location)["code"]
  end

  defp for_code(code) do
    [
      grant_type: "authorization_code",
      client_id: "client",
      client_secret: "client-secret",
      code: code,
      code_verifier: @verifier,
      redirect_uri: @redirect
    ]
  end

  defp for_refresh(token) do
    [
      grant_type: "refresh_token",
      client_id: "client",
      client_secret: "client-secret",
      refresh_token: token
    ]
  end

  defp token(world, fields) do
    fields = for {name, value} <- fields, value, do: {name, value}
    post(world, "/token", "application/x-www-form-urlencoded", URI.encode_query(fields))
  end

  defp revoke(world, token) do
    post(
      world,
      "/revoke",
      "application/x-www-form-urlencoded",
      "token=" <> URI.encode_www_form(token)
    )
  end

  defp assertion(world, claims, head \\ %{}) do
    [entry] = :public_key.pem_decode(world.service_account["private_key"])
    key = :public_key.pem_entry_decode(entry)
    key = if head[:key] == :other, do: :public_key.generate_key({:rsa, 2048, 65_537}), else: key
    head = Map.merge(%{alg: "RS256", typ: "JWT"}, Map.delete(head, :key))
    encode = &Base.url_encode64(&1, padding: false)
    text = encode.(JSON.encode(head)) <> "." <> encode.(JSON.encode(claims))
    signature = :public_key.sign(text, :sha256, key)

    token(world,
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: text <> "." <> encode.(signature)
    )
  end

  defp send_mail(world, token) do
    post(world, "/gmail/v1/users/me/messages/send", "application/json", ~s({"raw":"YQ"}), [
      {"authorization", "Bearer " <> token}
    ])
  end

  defp post(world, path, type, body, headers \\ []) do
    request = [method: :post, url: world.url <> path, body: body]

    case HTTP.request(request ++ [headers: [{"content-type", type} | headers]]) do
      {:ok, %{status: status, body: body}} ->
        case JSON.decode(body) do
          {:ok, value} -> {status, value}
          _ -> {status, :not_json}
        end

      {:error, error} ->
        {:error, error}
    end
  end
end
