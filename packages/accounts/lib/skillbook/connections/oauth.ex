defmodule Skillbook.Connections.OAuth do
  @moduledoc false
  # OAuth 2 by RFC 6749, with PKCE by RFC 7636 and revocation by RFC 7009: addresses of sign-ins,
  # and requests to the vendor's token endpoint. It stores nothing.

  alias Skillbook.Connections.{Account, Discovery}
  alias Skillbook.HTTP
  alias Skillbook.HTTP.{Failure, Response}
  alias Skillbook.Support.{Hidden, JSON, Number, Redact, Secret}

  @typedoc """
  An answer of the token endpoint. Tokens are functions, so that no report shows them; `lasts` is
  in milliseconds, `scopes` is `nil` if they are those of the request.
  """
  @type grant :: %{
          access: (() -> String.t()),
          refresh: (() -> String.t()) | nil,
          id: (() -> String.t()) | nil,
          lasts: pos_integer(),
          scopes: [String.t()] | nil
        }

  @typedoc """
  A failed request: the grant is not valid (any more), the request is refused for another reason,
  or another try may succeed, after so many milliseconds if the vendor says so.
  """
  @type failure ::
          {:invalid_grant, String.t()}
          | {:refused, code :: String.t() | nil, String.t()}
          | {:unavailable, String.t(), non_neg_integer() | nil}
          | {:secret, String.t()}
          | {:discovery, String.t()}

  @max_body 64 * 1024
  # Without `expires_in` a token is used for so long (RFC 6749, 5.1: recommended, not required).
  @lasts 3_600
  # The longest lifetime in seconds that is believed.
  @longest 30 * 24 * 3_600
  @connect_timeout 5_000
  # Bytes of a token, and of a scope.
  @max_token 16 * 1024
  @max_scope 1_000

  # PKCE

  @doc "A new code verifier: 43 characters from 32 random bytes (RFC 7636, 4.1)."
  @spec verifier() :: String.t()
  def verifier, do: random(32)

  @doc """
  The challenge of a verifier by the method S256 (RFC 7636, 4.2).

      iex> Skillbook.Connections.OAuth.challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
      "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
  """
  @spec challenge(String.t()) :: String.t()
  def challenge(verifier), do: base64url(:crypto.hash(:sha256, verifier))

  @doc "A new state, of 256 random bits."
  @spec state() :: String.t()
  def state, do: random(32)

  defp random(bytes), do: base64url(:crypto.strong_rand_bytes(bytes))

  @doc false
  @spec base64url(binary()) :: String.t()
  def base64url(bytes), do: Base.url_encode64(bytes, padding: false)

  # The address of a sign-in

  @doc "The address at which a person signs in (RFC 6749, 4.1.1)."
  @spec address(Account.t(), keyword()) :: {:ok, String.t()} | {:error, failure()}
  def address(account, request) do
    oauth = endpoints(account)

    # A secret that cannot be read is an error before the person signs in, not after.
    with {:ok, client} <- client(account) do
      scope = Enum.join(request[:scopes], " ")

      query =
        [
          {"response_type", "code"},
          {"client_id", client.() |> List.keyfind!("client_id", 0) |> elem(1)},
          {"redirect_uri", request[:redirect]}
        ] ++
          if(scope == "", do: [], else: [{"scope", scope}]) ++
          [
            {"state", request[:state]},
            {"code_challenge", challenge(request[:verifier].())},
            {"code_challenge_method", "S256"}
          ] ++
          oauth.parameters ++
          if(request[:consent], do: oauth.consent, else: []) ++
          if request[:identity], do: [{"login_hint", request[:identity]}], else: []

      url = Account.url(account, oauth.authorize)
      mark = if String.contains?(url, "?"), do: "&", else: "?"
      {:ok, url <> mark <> URI.encode_query(query, :rfc3986)}
    end
  end

  # Requests for tokens

  @doc "Exchanges the code of a sign-in for tokens (RFC 6749, 4.1.3; RFC 7636, 4.5)."
  @spec exchange(Account.t(), (() -> String.t()), String.t(), (() -> String.t()), timeout()) ::
          {:ok, grant()} | {:error, failure()}
  def exchange(account, code, redirect, verifier, timeout) do
    with {:ok, client} <- client(account) do
      form = fn ->
        [
          {"grant_type", "authorization_code"},
          {"code", code.()},
          {"redirect_uri", redirect},
          {"code_verifier", verifier.()}
          | resource(account) ++ client.()
        ]
      end

      request_token(account, endpoints(account).token, form, timeout)
    end
  end

  @doc "Renews an access token (RFC 6749, 6)."
  @spec refresh(Account.t(), (() -> String.t()), timeout()) ::
          {:ok, grant()} | {:error, failure()}
  def refresh(account, refresh, timeout) do
    with {:ok, client} <- client(account) do
      form = fn ->
        [{"grant_type", "refresh_token"}, {"refresh_token", refresh.()}] ++
          resource(account) ++ client.()
      end

      request_token(account, endpoints(account).token, form, timeout)
    end
  end

  # Those of the vendor, or of the authorization server of a server.
  defp endpoints(%{oauth: nil} = account), do: account.vendor.oauth(account.options)
  defp endpoints(%{oauth: oauth}), do: oauth

  # The server that the token is for (RFC 8707).
  defp resource(%{oauth: nil}), do: []
  defp resource(%{oauth: %{resource: resource}}), do: [{"resource", resource}]

  @doc "Asks a token endpoint for a token with the pairs of a form."
  @spec request_token(Account.t(), String.t(), (() -> [{String.t(), String.t()}]), timeout()) ::
          {:ok, grant()} | {:error, failure()}
  def request_token(account, url, form, timeout) do
    case post(account, url, form, timeout) do
      {:ok, %{status: 200} = response} -> grant(account, response, form)
      {:ok, response} -> {:error, failure(response, form)}
      {:error, error} -> {:error, broken(error)}
    end
  end

  @doc "Revokes a token at the vendor (RFC 7009). A token that is not valid is revoked."
  @spec revoke(Account.t(), (() -> String.t()), timeout()) :: :ok | {:error, String.t()}
  def revoke(account, token, timeout) do
    with url when url != nil <- endpoints(account).revoke,
         {:ok, form} <- revocation(account, token) do
      case post(account, url, form, timeout) do
        {:ok, %{status: 200}} ->
          :ok

        {:ok, response} ->
          if code(response, form) in ["invalid_token", "invalid_grant"],
            do: :ok,
            else: {:error, text(failure(response, form))}

        {:error, error} ->
          {:error, text(broken(error))}
      end
    else
      nil -> {:error, "the vendor has no way to do it"}
      {:error, failure} -> {:error, text(failure)}
    end
  end

  defp revocation(%{oauth: nil}, token), do: {:ok, fn -> [{"token", token.()}] end}

  defp revocation(account, token) do
    with {:ok, client} <- client(account),
         do: {:ok, fn -> [{"token", token.()} | client.()] end}
  end

  @doc "The person's address, from the id token or the vendor's userinfo; `nil` if unknown."
  @spec identity(Account.t(), grant(), timeout()) :: String.t() | nil
  def identity(%{oauth: oauth}, _grant, _timeout) when oauth != nil, do: nil

  def identity(account, grant, timeout) do
    with nil <- grant.id && claimed(account, grant.id), do: userinfo(account, grant, timeout)
  end

  # The token came from the vendor itself, over TLS, so its signature need not be checked; its
  # audience must be this client (OpenID Connect Core 1.0, 3.1.3.7).
  defp claimed(account, id) do
    with {:ok, client} <- value(account, :client_id),
         [_head, claims, _signature] <- String.split(id.(), "."),
         {:ok, json} <- Base.url_decode64(claims, padding: false),
         {:ok, %{"aud" => audience} = claims} <- JSON.decode(json),
         true <- client.() in List.wrap(audience),
         do: address_in(claims, endpoints(account)[:claims]),
         else: (_ -> nil)
  end

  defp userinfo(account, grant, timeout) do
    with url when url != nil <- endpoints(account).userinfo,
         headers = fn -> [{"authorization", "Bearer " <> grant.access.()}] end,
         request = [url: Account.url(account, url), headers: headers],
         {:ok, %{status: 200, body: body}} <- HTTP.request(request, options(account, timeout)),
         {:ok, claims} <- JSON.decode(body),
         do: address_in(claims, endpoints(account)[:claims]),
         else: (_ -> nil)
  end

  defp address_in(claims, nil) do
    if is_map(claims) and claims["email_verified"] in [true, "true"] and
         address?(claims["email"]),
       do: claims["email"]
  end

  defp address_in(claims, names) when is_map(claims),
    do: names |> Enum.map(&claims[&1]) |> Enum.find(&(address?(&1) and &1 =~ "@"))

  defp address_in(_claims, _names), do: nil

  defp address?(text), do: is_binary(text) and text =~ ~r/\A[^\s\p{C}]{1,320}\z/u

  # The client

  # One that an authorization server has registered, or knows by its address.
  defp client(%{oauth: %{client: %{id: id, secret: secret}}}) when id != nil do
    {:ok,
     fn -> [{"client_id", id} | if(secret, do: [{"client_secret", secret.()}], else: [])] end}
  end

  # Its secret is in the form, which all vendors here take (RFC 6749, 2.3.1).
  defp client(account) do
    with {:ok, id} <- value(account, :client_id) do
      case account.options do
        %{client_secret: _secret} ->
          with {:ok, secret} <- value(account, :client_secret),
               do: {:ok, fn -> [{"client_id", id.()}, {"client_secret", secret.()}] end}

        # A public client, which PKCE protects.
        _none ->
          {:ok, fn -> [{"client_id", id.()}] end}
      end
    end
  end

  defp value(account, option) do
    case account.options do
      %{^option => text} when is_binary(text) ->
        {:ok, fn -> text end}

      %{^option => secret} ->
        with {:error, reason} <- Secret.read(secret, account.profile),
             do: {:error, {:secret, "the option #{inspect(option)}: #{reason}"}}

      _missing ->
        {:error, {:secret, "the option #{inspect(option)} is missing"}}
    end
  end

  # HTTP

  defp post(account, url, form, timeout) do
    headers = fn ->
      [
        {"content-type", "application/x-www-form-urlencoded"},
        {"accept", "application/json"}
        | basic(account, form)
      ]
    end

    body = URI.encode_query(in_form(account, form.()))
    request = [method: :post, url: Account.url(account, url), headers: headers, body: body]
    HTTP.request(request, options(account, timeout))
  end

  # RFC 6749, 2.3.1
  defp basic(%{oauth: %{client: %{method: :client_secret_basic}}}, form) do
    with {_, secret} <- List.keyfind(form.(), "client_secret", 0),
         {_, id} <- List.keyfind(form.(), "client_id", 0) do
      pair = URI.encode_www_form(id) <> ":" <> URI.encode_www_form(secret)
      [{"authorization", "Basic " <> Base.encode64(pair)}]
    else
      nil -> []
    end
  end

  defp basic(_account, _form), do: []

  # Servers look for the id there, too.
  defp in_form(%{oauth: %{client: %{method: :client_secret_basic}}}, form) do
    List.keydelete(form, "client_secret", 0)
  end

  defp in_form(_account, form), do: form

  defp options(%{server: server} = account, timeout) when server != nil,
    do: Discovery.options(account, timeout, @max_body)

  defp options(account, timeout) do
    [
      adapter: account.http,
      timeout: timeout,
      idle_timeout: timeout,
      connect_timeout: min(timeout, @connect_timeout),
      max_body: @max_body
    ]
  end

  # RFC 6749, 5.1
  defp grant(account, response, form) do
    with {:ok, %{"access_token" => access} = fields} <- JSON.decode(response.body),
         true <- token?(access),
         type when is_binary(type) <- Map.get(fields, "token_type", "Bearer"),
         "bearer" <- String.downcase(type) do
      {:ok,
       %{
         access: fn -> access end,
         refresh: hidden(fields["refresh_token"]),
         id: hidden(fields["id_token"]),
         lasts: lasts(fields["expires_in"]) * 1000,
         scopes: scopes(fields["scope"], endpoints(account)[:scope_prefix] || "")
       }}
    else
      _ ->
        # Some vendors write errors with the status of a success.
        if code(response, form),
          do: {:error, failure(response, form)},
          else: {:error, {:unavailable, "it answered with something else than a token", nil}}
    end
  end

  @doc "Whether a text can be a token, which a header has to hold."
  @spec token?(term()) :: boolean()
  def token?(text),
    do: is_binary(text) and byte_size(text) <= @max_token and text =~ ~r/\A[\x21-\x7e]+\z/

  defp hidden(text), do: if(token?(text), do: fn -> text end)

  # A number that is none must not lose the tokens: a refresh token may be new, and its former one
  # used up. A token that has expired is renewed after its first refusal.
  defp lasts(seconds) when is_integer(seconds), do: seconds |> max(1) |> min(@longest)
  defp lasts(seconds) when is_float(seconds), do: lasts(trunc(seconds))

  # Some vendors write the number as text.
  defp lasts(text) when is_binary(text) do
    case Number.integer(text) do
      {seconds, _rest} -> lasts(seconds)
      :error -> @lasts
    end
  end

  defp lasts(_none), do: @lasts

  # RFC 6749, 3.3
  defp scopes(text, resource) when is_binary(text) and byte_size(text) <= @max_body do
    text
    |> String.split()
    |> Enum.filter(&scope?/1)
    |> Enum.map(&String.replace_prefix(&1, resource, ""))
    |> Enum.uniq()
    |> Enum.sort()
  end

  defp scopes(_none, _resource), do: nil

  @doc "Whether a text can be a scope."
  @spec scope?(term()) :: boolean()
  def scope?(text),
    do:
      is_binary(text) and byte_size(text) <= @max_scope and
        text =~ ~r/\A[\x21\x23-\x5b\x5d-\x7e]+\z/

  # RFC 6749, 5.2
  defp failure(response, form) do
    code = code(response, form)

    cond do
      response.status in [408, 425, 429] or response.status >= 500 ->
        {:unavailable, describe(response, code, form), retry_after(response)}

      # Google's name for a fault of its own.
      code in ["temporarily_unavailable", "server_error", "internal_failure", "slow_down"] ->
        {:unavailable, describe(response, code, form), retry_after(response)}

      code == "invalid_grant" ->
        {:invalid_grant, describe(response, code, form)}

      # Without a code of RFC 6749 this is not the token endpoint's own answer.
      code == nil ->
        {:unavailable, describe(response, code, form), nil}

      true ->
        {:refused, code, describe(response, code, form)}
    end
  end

  # Not if it repeats a secret.
  defp code(response, form) do
    case JSON.decode(response.body) do
      {:ok, %{"error" => code}} when is_binary(code) ->
        if code =~ ~r/\A[a-z0-9_.-]{1,60}\z/ and redacted(code, form) == code, do: code

      _ ->
        nil
    end
  end

  # The vendor's text is a stranger's, and may repeat a secret.
  defp describe(response, code, form) do
    description =
      with {:ok, %{"error_description" => text}} when is_binary(text) <-
             JSON.decode(response.body) do
        ": " <> (text |> redacted(form) |> Failure.excerpt() |> Hidden.visible() |> inspect())
      else
        _ -> ""
      end

    "status #{response.status}#{if code, do: ", #{code}"}#{description}"
  end

  @public ["grant_type", "client_id", "redirect_uri", "resource"]

  defp redacted(text, form) do
    secrets = for {name, value} <- form.(), name not in @public, do: value
    Redact.secrets(text, secrets, "[secret]")
  end

  defp retry_after(response) do
    with text when is_binary(text) <- Response.header(response.headers, "retry-after"),
         {seconds, ""} when seconds >= 0 <- Number.integer(String.trim(text)),
         do: seconds * 1000,
         else: (_ -> nil)
  end

  defp broken(error), do: {:unavailable, Exception.message(error), nil}

  @doc "The reason of a failure as text."
  @spec text(failure()) :: String.t()
  def text({:invalid_grant, reason}), do: reason
  def text({:refused, _code, reason}), do: reason
  def text({:unavailable, reason, _after}), do: reason
  def text({:secret, reason}), do: reason
  def text({:discovery, reason}), do: reason
end
