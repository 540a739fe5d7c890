defmodule Skillbook.Connections.Discovery do
  @moduledoc false
  # Finds out how people sign in at a server, by the authorization of MCP (2026-07-28): the
  # metadata of the server (RFC 9728) names its authorization servers, and the metadata of one of
  # these (RFC 8414, or OpenID Connect Discovery 1.0) its endpoints. The client is the one of the
  # options, a document of the application, or one that is registered here (RFC 7591) and used for
  # all sign-ins that it fits.
  #
  # All of it comes from strangers: addresses need https, except on this machine; they are not in
  # a private network, except for a server in one; no redirect is followed; and documents are
  # small. A token is only for the server: the metadata must name it as its resource.

  alias Skillbook.Connections.{Account, OAuth}
  alias Skillbook.HTTP
  alias Skillbook.HTTP.{Addresses, Failure}
  alias Skillbook.Support.{External, JSON, Options}

  @typedoc """
  The endpoints of an authorization server, as in `t:Skillbook.Connections.Vendor.oauth/0`, with
  its `issuer`, whether its answers name it (`iss`), the `resource` that tokens are for, and the
  client. A client of the account's options has no `id` here.
  """
  @type t :: %{
          authorize: String.t(),
          token: String.t(),
          revoke: String.t() | nil,
          userinfo: nil,
          identity_scopes: [],
          parameters: [{String.t(), String.t()}],
          consent: [{String.t(), String.t()}],
          issuer: String.t(),
          iss: boolean(),
          resource: String.t(),
          client: %{
            id: String.t() | nil,
            secret: (() -> String.t()) | nil,
            method: :client_secret_basic | :client_secret_post | :none,
            registered: registered() | nil
          }
        }

  @typedoc """
  The redirect address and the scopes with which a client was registered, and the time at which
  its secret expires, in seconds of Unix time; 0 if it does not. `nil` for a client that was not
  registered here.
  """
  @type registered :: %{
          redirect: String.t(),
          scopes: [String.t()],
          expires_at: non_neg_integer()
        }

  # Milliseconds for a document, and its bytes.
  @timeout 10_000
  @max_body 128 * 1024
  # Bytes of an address, and of the id of a client.
  @max_url 2_000
  @max_servers 20
  @max_scopes 100

  @doc """
  The account with its endpoints and client, and the scopes to ask for: the given ones, and those
  that the server asks for. `known` returns what is kept of other sign-ins at the server.
  """
  @spec run(Account.t(), String.t(), [String.t()], (() -> [t()])) ::
          {:ok, Account.t(), [String.t()]} | {:error, OAuth.failure() | Exception.t()}
  def run(%Account{server: server} = account, redirect, scopes, known) do
    with {:ok, challenge} <- server.challenge.(account.profile),
         {:ok, resource} <- resource(account, challenge.metadata),
         {:ok, issuer} <- issuer(account, resource["authorization_servers"]),
         {:ok, metadata} <- metadata(account, issuer),
         {:ok, oauth} <- endpoints(metadata),
         asked = challenge.scopes || scopes(resource["scopes_supported"]) || [],
         scopes = Enum.uniq(scopes ++ asked ++ offline(metadata)),
         {:ok, client} <- client(account, metadata, redirect, scopes, known) do
      consent = if "offline_access" in scopes, do: [{"prompt", "consent"}], else: []
      parameters = [{"resource", resource["resource"]}]
      own = %{client: client, resource: resource["resource"], parameters: parameters}
      {:ok, %{account | oauth: Map.merge(oauth, Map.put(own, :consent, consent))}, scopes}
    end
  end

  # A token that renews itself, if the authorization server says that it has those.
  defp offline(metadata),
    do: Enum.filter(scopes(metadata["scopes_supported"]) || [], &(&1 == "offline_access"))

  defp scopes(list) when is_list(list),
    do: list |> Enum.filter(&OAuth.scope?/1) |> Enum.take(@max_scopes)

  defp scopes(_none), do: nil

  # The metadata of the server (RFC 9728)

  defp resource(%{server: server} = account, metadata) do
    uri = URI.parse(server.url)
    path = String.trim_trailing(uri.path || "", "/")
    root = "/.well-known/oauth-protected-resource"
    known = for path <- Enum.uniq([root <> path, root]), do: at(uri, path)
    places = if metadata, do: [metadata], else: known

    with {:ok, %{"resource" => resource} = found} <- first(account, places, "the server's"),
         true <- covers?(resource, server.url) do
      {:ok, found}
    else
      {:ok, _found} -> wrong("the server's metadata has no `resource`")
      false -> wrong("the server's metadata is for another resource than #{shown(server.url)}")
      error -> error
    end
  end

  # Of the same origin, and the address or a folder that it is in.
  defp covers?(resource, url) do
    with true <- text?(resource),
         {:ok, %URI{fragment: nil, userinfo: nil} = resource} <- URI.new(resource) do
      url = URI.parse(url)
      folder = String.trim_trailing(resource.path || "", "/")
      path = String.trim_trailing(url.path || "", "/")

      origin(resource) == origin(url) and
        (path == folder or String.starts_with?(path, folder <> "/"))
    else
      _ -> false
    end
  end

  defp origin(uri), do: {uri.scheme, String.downcase(uri.host || ""), uri.port}

  defp issuer(%{options: options}, list) when is_list(list) do
    issuers = list |> Enum.take(@max_servers) |> Enum.filter(&text?/1)

    case options[:issuer] || List.first(issuers) do
      nil ->
        none()

      issuer ->
        cond do
          issuer not in issuers ->
            named = Enum.map_join(issuers, ", ", &shown/1)
            wrong("its authorization servers (#{named}) do not include the option `issuer`")

          # RFC 8414, 2
          URI.parse(issuer).query != nil ->
            wrong("expected an issuer without a query, got: #{shown(issuer)}")

          true ->
            with :ok <- check(issuer, "issuer"), do: {:ok, issuer}
        end
    end
  end

  defp issuer(_account, _none), do: none()

  defp none, do: wrong("the server's metadata names no authorization server")

  # The metadata of the authorization server

  defp metadata(account, issuer) do
    uri = URI.parse(issuer)

    places =
      case String.trim_trailing(uri.path || "", "/") do
        "" ->
          ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]

        path ->
          [
            "/.well-known/oauth-authorization-server#{path}",
            "/.well-known/openid-configuration#{path}",
            "#{path}/.well-known/openid-configuration"
          ]
      end

    with {:ok, found} <- first(account, Enum.map(places, &at(uri, &1)), "the issuer's"),
         :ok <- same(issuer, found["issuer"]),
         :ok <- challenges(found["code_challenge_methods_supported"]),
         do: {:ok, found}
  end

  # Without any change of their spelling (RFC 8414, 3.3).
  defp same(issuer, issuer), do: :ok

  defp same(issuer, other),
    do: wrong("expected the issuer #{shown(issuer)} in its metadata, got: #{shown(other)}")

  defp challenges(methods) do
    if is_list(methods) and "S256" in methods,
      do: :ok,
      else: wrong("its authorization server does not offer PKCE with S256")
  end

  defp endpoints(found) do
    oauth = %{
      authorize: found["authorization_endpoint"],
      token: found["token_endpoint"],
      revoke: found["revocation_endpoint"],
      userinfo: nil,
      identity_scopes: [],
      issuer: found["issuer"],
      iss: found["authorization_response_iss_parameter_supported"] == true
    }

    with :ok <- check(oauth.authorize, "authorization_endpoint"),
         :ok <- check(oauth.token, "token_endpoint"),
         :ok <-
           if(oauth.revoke, do: check(oauth.revoke, "revocation_endpoint"), else: :ok),
         do: {:ok, oauth}
  end

  # The client

  defp client(account, found, redirect, scopes, known) do
    document = account.options[:client_metadata]
    registration = found["registration_endpoint"]

    cond do
      account.options[:client_id] ->
        method = if account.options[:client_secret], do: secret_method(found), else: :none
        {:ok, %{id: nil, secret: nil, method: method, registered: nil}}

      document != nil and found["client_id_metadata_document_supported"] == true ->
        {:ok, %{id: document, secret: nil, method: :none, registered: nil}}

      registration != nil ->
        with :ok <- check(registration, "registration_endpoint"),
             nil <- Enum.find_value(known.(), &fitting(&1, account, found, redirect, scopes)),
             do: register(account, found, redirect, scopes)

      true ->
        wrong(
          "its authorization server #{shown(found["issuer"])} registers no clients by itself; " <>
            "register one there, and set the options `client_id` and `issuer`"
        )
    end
  end

  # A client of another sign-in: of the same authorization server, address and scopes.
  defp fitting(oauth, account, %{"issuer" => issuer}, redirect, scopes) do
    with %{issuer: ^issuer, client: %{registered: %{redirect: ^redirect}} = client} <- oauth,
         registered = client.registered,
         true <- of?(oauth, account),
         [] <- scopes -- registered.scopes,
         true <- registered.expires_at == 0 or registered.expires_at > System.os_time(:second),
         do: {:ok, client},
         else: (_ -> nil)
  end

  @methods ~w(none client_secret_post client_secret_basic)a

  # RFC 8414, 2: without the list, Basic.
  defp methods(found) do
    case found["token_endpoint_auth_methods_supported"] do
      list when is_list(list) -> Enum.filter(@methods, &(Atom.to_string(&1) in list))
      _none -> [:client_secret_basic]
    end
  end

  defp secret_method(found),
    do: Enum.find(methods(found), :client_secret_basic, &(&1 != :none))

  defp register(account, found, redirect, scopes) do
    asked = found |> methods() |> List.first(:none)

    fields = %{
      "client_name" => "Skillbook",
      "redirect_uris" => [redirect],
      "grant_types" => ["authorization_code", "refresh_token"],
      "response_types" => ["code"],
      "token_endpoint_auth_method" => Atom.to_string(asked),
      "application_type" => application(URI.parse(redirect).host)
    }

    fields = if scopes == [], do: fields, else: Map.put(fields, "scope", Enum.join(scopes, " "))

    request = [
      method: :post,
      url: found["registration_endpoint"],
      headers: [{"content-type", "application/json"}, {"accept", "application/json"}],
      body: JSON.encode(fields)
    ]

    case HTTP.request(request, options(account, @timeout, @max_body)) do
      {:ok, %{status: status, body: body}} when status in [200, 201] ->
        registered(body, asked, redirect, scopes)

      {:ok, response} ->
        {:error, refused(response)}

      {:error, error} ->
        {:error, {:unavailable, Exception.message(error), nil}}
    end
  end

  defp application(host), do: if(Addresses.loopback?(host), do: "native", else: "web")

  defp registered(body, asked, redirect, scopes) do
    with {:ok, %{"client_id" => id} = client} <- JSON.decode(body),
         true <- OAuth.token?(id),
         secret when secret == nil or is_binary(secret) <- client["client_secret"],
         true <- secret == nil or OAuth.token?(secret),
         given = client["token_endpoint_auth_method"] || Atom.to_string(asked),
         method when method != nil <- Enum.find(@methods, &(Atom.to_string(&1) == given)) do
      method = if secret, do: method, else: :none
      registered = %{redirect: redirect, scopes: scopes, expires_at: expires_at(client)}
      {:ok, %{id: id, secret: secret && fn -> secret end, method: method, registered: registered}}
    else
      _ -> wrong("its authorization server registered no client that can be used")
    end
  end

  # RFC 7591, 3.2.1
  defp expires_at(%{"client_secret_expires_at" => seconds})
       when is_integer(seconds) and seconds > 0,
       do: seconds

  defp expires_at(_client), do: 0

  defp refused(response) do
    reason =
      case JSON.decode(response.body) do
        {:ok, %{"error_description" => text}} when is_binary(text) -> text
        {:ok, %{"error" => text}} when is_binary(text) -> text
        _ -> nil
      end

    about = if reason, do: ": " <> (reason |> Failure.excerpt() |> shown())
    {:discovery, "it did not register a client (status #{response.status}#{about})"}
  end

  # Documents

  # The first of the addresses that has an object.
  defp first(account, places, whose), do: first(account, places, whose, [])

  defp first(_account, [], whose, seen) do
    wrong("expected #{whose} metadata at #{seen |> Enum.reverse() |> Enum.join(", ")}")
  end

  defp first(account, [url | places], whose, seen) do
    request = [url: url, headers: [{"accept", "application/json"}]]

    with :ok <- check(url, "address of metadata"),
         {:ok, %{status: 200, body: body}} <-
           HTTP.request(request, options(account, @timeout, @max_body)) do
      case JSON.decode(body) do
        {:ok, %{} = found} -> {:ok, found}
        _ -> wrong("expected a JSON object as #{whose} metadata at #{shown(url)}")
      end
    else
      {:ok, %{status: status}} ->
        first(account, places, whose, ["#{shown(url)} (status #{status})" | seen])

      {:error, %HTTP.Error{kind: :too_large}} ->
        wrong("#{whose} metadata has more than #{@max_body} bytes")

      {:error, %HTTP.Error{kind: :private} = error} ->
        wrong(Exception.message(error))

      {:error, %HTTP.Error{} = error} ->
        {:error, {:unavailable, Exception.message(error), nil}}

      error ->
        error
    end
  end

  defp at(uri, path), do: URI.to_string(%{uri | path: path, query: nil, fragment: nil})

  # Addresses of strangers

  defp check(url, name) do
    with true <- text?(url) and not (url =~ ~r/[\s\x00-\x1f\x7f]/),
         {:ok, %URI{scheme: scheme, host: host, userinfo: nil, fragment: nil}} <- URI.new(url),
         true <- host not in [nil, ""],
         true <- scheme == "https" or (scheme == "http" and Addresses.loopback?(host)) do
      :ok
    else
      _ -> wrong("expected an https URL as its #{name}, got: #{shown(url)}")
    end
  end

  defp text?(text), do: Options.text?(text) and byte_size(text) <= @max_url

  defp shown(text) when is_binary(text), do: External.line(text, 200)
  defp shown(nil), do: "none"
  defp shown(_other), do: "another type"

  @doc """
  The options of `Skillbook.HTTP` for a request to a server's authorization server, which is in a
  private network only if the server itself is.
  """
  @spec options(Account.t(), pos_integer(), pos_integer()) :: keyword()
  def options(%Account{server: server}, timeout, max_body) do
    connect = min(timeout, 5_000)

    addresses =
      case Addresses.check_public(URI.parse(server.url).host, connect) do
        :ok -> :public
        {:error, _private} -> :any
      end

    own = [connect_timeout: connect, idle_timeout: timeout, timeout: timeout, redirects: 0]
    Keyword.merge(server.http, [max_body: max_body, addresses: addresses] ++ own)
  end

  defp wrong(reason), do: {:error, {:discovery, reason}}

  # With a connection

  @doc """
  Whether the endpoints and tokens of a connection are those of an account: a server of the same
  name may have another address or client now, which must not get them.
  """
  @spec of?(t() | nil, Account.t()) :: boolean()
  def of?(nil, %{server: server}), do: server == nil
  def of?(_oauth, %{server: nil}), do: false

  def of?(oauth, %{server: server, options: options}),
    do: covers?(oauth.resource, server.url) and options[:issuer] in [nil, oauth.issuer]

  @doc "As a map for JSON. It has the secret of a registered client."
  @spec encode(t() | nil) :: map() | nil
  def encode(nil), do: nil

  def encode(oauth) do
    %{client: client} = oauth
    secret = client.secret && client.secret.()

    %{
      authorize: oauth.authorize,
      token: oauth.token,
      revoke: oauth.revoke,
      issuer: oauth.issuer,
      iss: oauth.iss,
      resource: oauth.resource,
      client: %{
        id: client.id,
        secret: secret,
        method: client.method,
        registered: client.registered
      }
    }
  end

  @doc "Reads such a map again."
  @spec decode(map() | nil) :: t() | nil
  def decode(%{"client" => client} = kept) do
    secret = client["secret"]
    method = Enum.find(@methods, :none, &(Atom.to_string(&1) == client["method"]))

    %{
      authorize: kept["authorize"],
      token: kept["token"],
      revoke: kept["revoke"],
      userinfo: nil,
      identity_scopes: [],
      parameters: [],
      consent: [],
      issuer: kept["issuer"],
      iss: kept["iss"],
      resource: kept["resource"],
      client: %{
        id: client["id"],
        secret: secret && fn -> secret end,
        method: method,
        registered: decode_registered(client["registered"])
      }
    }
  end

  def decode(_none), do: nil

  defp decode_registered(%{"redirect" => redirect, "scopes" => scopes, "expires_at" => at}),
    do: %{redirect: redirect, scopes: scopes, expires_at: at}

  defp decode_registered(_none), do: nil
end
