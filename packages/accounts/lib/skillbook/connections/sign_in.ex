defmodule Skillbook.Connections.SignIn do
  @moduledoc false
  # Sign-ins of people by OAuth 2, from the address that they open to the stored tokens.
  #
  # The state is random, stored as its hash, and deleted by the first answer. It belongs to a
  # profile and an account: the answer must come with the profile that began, at the address that
  # the vendor was given, and with the session if it began with one.

  alias Skillbook.Book.Profiles
  alias Skillbook.Connections.{Account, Cipher, Config, Discovery, OAuth, Renewal, Table, Tokens}
  alias Skillbook.Connections.Vendor
  alias Skillbook.{Book, ConnectionError, Profile, SQL, View}
  alias Skillbook.HTTP.Failure
  alias Skillbook.Support.{Closest, JSON}

  # Milliseconds: the life of a state, and the limit of a request to the vendor.
  @lasts 600_000
  @request 10_000
  # Bytes of a state and of a code.
  @max_state 200
  @max_code 4_096
  # Connections in which a registered client is looked for, and the seconds since their last
  # token. An authorization server may forget a client, and tells only the person who wants to
  # sign in.
  @known 10
  @lately 86_400

  @doc """
  Begins a sign-in with the options of `Skillbook.Connections.authorize/3`: `:for` commands, or
  those that the profile may use, and more `:scopes`. `:session` is a secret of the browser that
  begins.
  """
  @spec begin(Book.t(), Account.t(), String.t(), keyword()) ::
          {:ok, %{url: String.t(), state: String.t(), expires_at: DateTime.t()}}
          | {:error, Exception.t()}
  def begin(book, account, redirect, options) do
    with {:ok, sql} <- sql(book, account),
         {:ok, keys} <- keys(book, account),
         {:ok, commands} <- commands(book, account, options[:for]),
         {:ok, row} <- Table.get(sql, key(account)) |> store_error(account),
         scopes = Enum.uniq(scopes(account, commands, row) ++ (options[:scopes] || [])),
         known = fn -> known(sql, keys, account) end,
         {:ok, account, scopes} <-
           discover(account, redirect, scopes, known) |> failed(account) do
      now = System.os_time(:millisecond)
      state = OAuth.state()
      verifier = OAuth.verifier()
      hash = hash(state, options[:session])
      text = JSON.encode(%{verifier: verifier, oauth: Discovery.encode(account.oauth)})
      {key_id, sealed} = Cipher.encrypt(keys, place(account, hash), text)

      sign_in = %{
        state: hash,
        profile: account.profile,
        account: to_string(account.name),
        scopes: scopes,
        redirect: redirect,
        key_id: key_id,
        verifier: sealed,
        expires_at: now + @lasts
      }

      request = [
        redirect: redirect,
        scopes: scopes,
        state: state,
        verifier: fn -> verifier end,
        consent: consent?(keys, row),
        identity: row && row.identity
      ]

      with {:ok, url} <- OAuth.address(account, request) |> failed(account),
           :ok <- Table.put_sign_in(sql, sign_in, now) |> store_error(account) do
        {:ok, expires_at} = DateTime.from_unix(div(now + @lasts, 1000))
        {:ok, %{url: url, state: state, expires_at: expires_at}}
      end
    end
  end

  defp discover(%{server: nil} = account, _redirect, scopes, _known),
    do: {:ok, account, scopes}

  defp discover(account, redirect, scopes, known),
    do: Discovery.run(account, redirect, scopes, known)

  # Of the last connections of any profile to the server: a client is the application's.
  defp known(sql, keys, account) do
    with {:ok, rows} <- Table.latest(sql, to_string(account.name), @known) do
      for row <- rows,
          DateTime.diff(DateTime.utc_now(), row.renewed_at) < @lately,
          {:ok, tokens} <- [Renewal.open(keys, row)],
          oauth = tokens.().oauth,
          oauth != nil,
          do: oauth
    else
      # Another registration is better than no sign-in.
      {:error, _error} -> []
    end
  end

  # The person is asked again only if there is no token that renews the connection.
  defp consent?(_keys, nil), do: true
  defp consent?(_keys, %{status: :revoked}), do: true
  # Nobody knows whose token it is.
  defp consent?(_keys, %{identity: nil}), do: true

  defp consent?(keys, row) do
    case Renewal.open(keys, row) do
      {:ok, tokens} -> tokens.().refresh == nil
      {:error, _reason} -> true
    end
  end

  # Those that the connection has stay, and the commands that they cover need no more.
  defp scopes(%{vendor: vendor} = account, commands, row) do
    granted = if row && row.status == :connected, do: row.scopes, else: []
    covered? = fn command -> Vendor.granted?(Vendor.scopes(vendor, command), granted) end
    new = Vendor.least(vendor, Enum.reject(commands, covered?))
    identity = if account.server, do: [], else: vendor.oauth(account.options).identity_scopes
    Enum.uniq(identity ++ granted ++ new)
  end

  defp commands(_book, %{server: server}, nil) when server != nil, do: {:ok, []}

  defp commands(book, account, nil) do
    case visible(book, account, Book.profile(book, account.profile)) do
      [] -> {:error, %{ConnectionError.new(account, :command) | command: nil}}
      commands -> {:ok, commands}
    end
  end

  defp commands(_book, account, given) do
    used = used(account)

    case Enum.find(given, &(&1 not in used)) do
      nil ->
        {:ok, given}

      other ->
        close = Closest.to(other, used, 0.7)
        reason = if close, do: "did you mean #{close}?", else: Enum.join(used, ", ")
        reason = if reason != "", do: reason
        error = ConnectionError.new(account, :command, reason)
        {:error, %{error | command: String.slice(other, 0, 100)}}
    end
  end

  @doc "The commands of an account that a profile may use once it has the connection."
  @spec visible(Book.t(), Account.t(), Profile.t()) :: [String.t()]
  def visible(book, account, profile) do
    services = Enum.map(account.services, &Atom.to_string/1)
    {:ok, view} = View.new(book.catalog, %{profile | services: services})
    commands = used(account)
    commands -- View.missing(view, commands)
  end

  # The commands of the account's services.
  defp used(account) do
    for {command, _scopes} <- account.vendor.commands(),
        Vendor.service(command) in account.services,
        do: command
  end

  @doc """
  Ends a sign-in with the parameters of the vendor's redirect. `redirect` is the address at which
  they came, or `nil` if the application has one alone.
  """
  @spec complete(Book.t(), map(), String.t(), String.t() | nil, String.t() | nil) ::
          {:ok, Account.t(), Table.row()} | {:error, Exception.t()}
  def complete(book, parameters, profile, redirect, session) do
    unknown = %Account{book: book.name, name: nil, vendor: nil, profile: profile}

    with {:ok, sql} <- sql(book, unknown),
         {:ok, keys} <- keys(book, unknown),
         {:ok, state} <- text(parameters, "state", @max_state) |> state_error(),
         hash = hash(state, session),
         {:ok, sign_in} <- take(sql, hash, unknown),
         :ok <- check_redirect(sign_in, redirect),
         {:ok, account} <- account(book, sign_in, profile),
         {:ok, account, verifier} <- verifier(keys, sign_in, account, hash),
         :ok <- check_issuer(parameters, account),
         {:ok, code} <- code(parameters, account),
         {:ok, grant} <-
           OAuth.exchange(account, code, sign_in.redirect, verifier, @request) |> failed(account),
         identity = OAuth.identity(account, grant, @request),
         {:ok, row} <- store(sql, keys, account, sign_in, grant, identity) do
      Tokens.changed(book)
      Tokens.event(account, :connected)
      {:ok, account, row}
    end
  end

  defp text(parameters, name, max) do
    case parameters do
      %{^name => text} when is_binary(text) and text != "" and byte_size(text) <= max ->
        if String.valid?(text), do: {:ok, text}, else: :error

      _ ->
        :error
    end
  end

  defp state_error(:error), do: {:error, %ConnectionError{kind: :state}}
  defp state_error(ok), do: ok

  defp take(sql, hash, account) do
    now = System.os_time(:millisecond)

    case Table.take_sign_in(sql, hash, account.profile, now) |> store_error(account) do
      {:ok, nil} -> state_error(:error)
      taken -> taken
    end
  end

  # Each account may have an address of its own, so that the answer of one vendor is not sent to
  # another one (RFC 9700, 4.4).
  defp check_redirect(_sign_in, nil), do: :ok
  defp check_redirect(%{redirect: redirect}, redirect), do: :ok
  defp check_redirect(_sign_in, _other), do: state_error(:error)

  # The options may have changed since the sign-in began.
  defp account(book, sign_in, profile) do
    with {:ok, account} <- Config.find(book, sign_in.account),
         true <- account.profiles == :all or profile in account.profiles,
         :oauth <- account.vendor.auth(account.options) do
      {:ok, %{account | profile: profile}}
    else
      _ -> state_error(:error)
    end
  end

  # RFC 6749, 4.1.2
  defp code(parameters, account) do
    with :error <- text(parameters, "code", @max_code) do
      case text(parameters, "error", @max_code) do
        {:ok, "access_denied"} ->
          {:error, ConnectionError.new(account, :denied, "the person has not allowed it")}

        {:ok, code} ->
          code = if code =~ ~r/\A[a-z_]{1,60}\z/, do: code, else: "an unknown error"
          {:error, ConnectionError.new(account, :denied, "the vendor answered #{code}")}

        :error ->
          {:error, ConnectionError.new(account, :denied, "the answer has neither code nor error")}
      end
    else
      {:ok, code} -> {:ok, fn -> code end}
    end
  end

  defp verifier(keys, sign_in, account, hash) do
    case Cipher.decrypt(keys, sign_in.key_id, place(account, hash), sign_in.verifier) do
      {:ok, text} -> opened(text, account)
      {:error, reason} -> {:error, ConnectionError.new(account, :key, reason)}
    end
  end

  # An account may have become a server of the same name since, or the other way round.
  defp opened(text, %{server: server} = account) do
    case JSON.decode(text.()) do
      {:ok, %{"verifier" => verifier, "oauth" => oauth}} when oauth == nil == (server == nil) ->
        {:ok, %{account | oauth: Discovery.decode(oauth)}, fn -> verifier end}

      _other ->
        state_error(:error)
    end
  end

  # Compared without any change of their spelling, and before anything else of the answer is read
  # (RFC 9207, 2.4).
  defp check_issuer(_parameters, %{oauth: nil}), do: :ok

  defp check_issuer(parameters, %{oauth: %{issuer: issuer, iss: iss}} = account) do
    case {parameters, iss} do
      {%{"iss" => ^issuer}, _iss} ->
        :ok

      {%{"iss" => other}, _iss} ->
        issuer_error(account, if(is_binary(other), do: Failure.excerpt(other), else: "a list"))

      {_none, true} ->
        issuer_error(account, "none")

      {_none, false} ->
        :ok
    end
  end

  defp issuer_error(account, got) do
    reason = "expected the issuer #{account.oauth.issuer} in the answer, got: #{inspect(got)}"
    {:error, ConnectionError.new(account, :discovery, reason)}
  end

  defp store(sql, keys, account, sign_in, grant, identity) do
    row = fn kept ->
      with {:ok, refresh} <- renewing(keys, account, grant, kept, identity) do
        place = Renewal.place(%{profile: account.profile, account: sign_in.account})
        tokens = %{access: grant.access, refresh: refresh, oauth: account.oauth}
        sealed = Renewal.seal(keys, place, tokens, grant.lasts)
        scopes = grant.scopes || sign_in.scopes
        tenant = tenant(account)
        connected = %{status: :connected, tenant: tenant, identity: identity, scopes: scopes}
        {:ok, Map.merge(sealed, connected)}
      end
    end

    Table.put(sql, key(account), DateTime.utc_now(), row) |> store_error(account)
  end

  # The connection belongs to the tenant that the profile has now.
  defp tenant(account) do
    profile = Profiles.find(Book.fetch!(account.book), account.profile)
    profile && Profile.home(profile)
  end

  # The refresh token of the answer, or the kept one of the same person.
  defp renewing(_keys, _account, %{refresh: refresh}, _kept, _identity) when refresh != nil,
    do: {:ok, refresh}

  # A server need not give one.
  defp renewing(_keys, %{server: server}, _grant, _kept, _identity) when server != nil,
    do: {:ok, nil}

  defp renewing(keys, account, _grant, kept, identity) do
    with %{identity: ^identity, status: :connected} when identity != nil <- kept,
         {:ok, tokens} <- Renewal.open(keys, kept),
         text when text != nil <- tokens.().refresh do
      {:ok, fn -> text end}
    else
      _ ->
        reason =
          "the vendor gave no token to renew it with; withdraw the access of this application " <>
            "in the settings of the vendor's account, and connect again"

        {:error, ConnectionError.new(account, :denied, reason)}
    end
  end

  defp key(account), do: {account.profile, to_string(account.name)}

  defp place(account, hash), do: ["sign-in", account.profile, to_string(account.name), hash]

  # The database has no state that could be used. One with a session is not found without it, nor
  # used up.
  defp hash(state, nil), do: OAuth.base64url(:crypto.hash(:sha256, state))
  defp hash(state, session), do: OAuth.base64url(:crypto.mac(:hmac, :sha256, session, state))

  defp sql(book, account) do
    case Book.sql(book) do
      nil -> {:error, ConnectionError.new(account, :store)}
      sql -> {:ok, sql}
    end
  end

  defp keys(book, account) do
    with {:error, reason} <- Cipher.keys(Config.keys(book)),
         do: {:error, ConnectionError.new(account, :key, reason)}
  end

  defp store_error({:error, %SQL.Error{} = error}, account),
    do: {:error, ConnectionError.new(account, :store, Exception.message(error))}

  defp store_error(other, _account), do: other

  defp failed({:error, {:unavailable, reason, _after}}, account),
    do: {:error, ConnectionError.new(account, :unavailable, reason)}

  defp failed({:error, {:secret, reason}}, account),
    do: {:error, ConnectionError.new(account, :secret, reason)}

  defp failed({:error, {:discovery, reason}}, account),
    do: {:error, ConnectionError.new(account, :discovery, reason)}

  defp failed({:error, %{__exception__: true} = error}, _account), do: {:error, error}

  defp failed({:error, failure}, account),
    do: {:error, ConnectionError.new(account, :refused, OAuth.text(failure))}

  defp failed(ok, _account), do: ok
end
