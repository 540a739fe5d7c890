defmodule Skillbook.Connections do
  @moduledoc """
  Accounts of a book at other vendors: mail, calendars, files and customers.

  The option `:connections` of a book names them:

      {Skillbook,
       name: MyApp.Skills,
       builtins: ["email", "calendar", "drive", "hubspot"],
       store: "skills.db",
       connections: [
         key: {:env, "SKILLBOOK_CONNECTIONS_KEY"},
         google: [client_id: "1234.apps.googleusercontent.com", client_secret: {:env, "GOOGLE"}],
         hubspot: [token: {:env, "HUBSPOT_TOKEN"}],
         post: [
           vendor: :imap,
           host: "mail.example.com",
           username: "ann@example.com",
           password: fn -> MyApp.Vault.read("mail") end
         ]
       ]}

  The list may also be a function without arguments that returns it. `:builtins` names the domains
  of the commands that use the accounts.

  An MCP server with `oauth:` is an account too, which people sign in to. Its name is the text of
  its label. See [MCP](docs/mcp.md#servers-that-ask-for-a-sign-in).

  ## Options of an account

    * `:vendor` (name or module) - `:google`, `:microsoft`, `:hubspot`, `:imap`, `:caldav` or a
      module with the behaviour `Skillbook.Connections.Vendor`. Defaults to the name of the
      account
    * `:profiles` (`:all` or list of ids) - the profiles that may use it. Defaults to `:all`
    * `:services` (list) - which of the vendor's services it is used for, such as `[:mail]`.
      Defaults to all of them
    * `:url` (URL) - a base URL in place of the vendor's hosts, for tests and gateways
    * `:http` (adapter) - the adapter of `Skillbook.HTTP`. Defaults to `Skillbook.HTTP.Native`
    * `:retries` (number) - how often a request is repeated after a failure that passes, such as a
      rate limit. Defaults to 4
    * `:quota` (keyword list) - how much a node may ask of a service, `{units, seconds}` or
      `:infinity`, instead of the limit that the vendor publishes: `[hubspot: {190, 10}]`. The
      names are `:gmail`, `:calendar` and `:drive` for Google, `:outlook` for Microsoft, and
      `:hubspot` and `:search` for HubSpot

  and those of the vendor: `Skillbook.Connections.Google`, `Skillbook.Connections.Microsoft`,
  `Skillbook.Connections.HubSpot`, `Skillbook.Connections.IMAP` and `Skillbook.Connections.CalDAV`
  describe them.

  The option `:key` encrypts the tokens of people in the `:store`: a secret with 32 bytes in
  base64, which `generate_key/0` makes, or a list of secrets. The first key encrypts and all of
  them decrypt, so a key is replaced by adding the next one in front; `rotate/1` then encrypts all
  tokens again.

  Secrets are `{:env, name}`, a function of no argument, or a function of the profile's id. They
  are read when they are needed. A text is refused, because reports of supervisors would show it.
  """

  alias Skillbook.Book.Profiles
  alias Skillbook.Connections.{Account, Cipher, Config, Discovery, OAuth, Renewal, Server}
  alias Skillbook.Connections.{SignIn, Table, Tokens, Vendor}
  alias Skillbook.Support.{Arguments, Options, Secret, UntilError}
  alias Skillbook.{Book, Connection, ConnectionError, Context, OptionError, Part, Profile, SQL}

  @typedoc "A token, in a function, so that no report shows it."
  @type token :: (() -> String.t())

  # Milliseconds, for calls without a time limit of their own.
  @timeout 30_000
  # Milliseconds for a request to the vendor's sign-in.
  @request 10_000

  # For handlers

  @doc """
  Returns the account for a service: the first one, in the book's order, that the profile has.

  Its deadline is a little before the time limit of the call.
  """
  @spec account(Context.t(), Vendor.service()) ::
          {:ok, Account.t()} | {:error, ConnectionError.t()}
  def account(%Context{} = context, service) do
    book = context.book && Book.find(context.book)
    offering = for account <- Config.accounts(book), service in account.services, do: account
    allowed = Enum.filter(offering, &allowed?(&1, Profile.ids(context.profile)))

    case Enum.find(allowed, &(service in connected(&1, context.profile))) do
      nil -> {:error, none(allowed, context, service)}
      account -> {:ok, of_call(account, context)}
    end
  end

  def account(context, _service),
    do: Arguments.check!("Skillbook.Connections.account/2", context: {Context, context})

  @doc false
  # Whether a call has the connection that its page names, with a scope that the command needs.
  # Reads no database, and asks no vendor.
  @spec check(Context.t()) :: :ok | {:error, ConnectionError.t()}
  def check(%Context{entry: %{name: name, data: %{"connection" => service}}} = context)
      when is_binary(service) do
    accounts = Config.accounts(Book.find(context.book))
    known = for account <- accounts, known <- account.services, do: known
    service = Enum.find(known ++ Vendor.services(), service, &(Atom.to_string(&1) == service))

    with {:ok, account} <- account(context, service) do
      if auth(account) == :oauth,
        do: check_scopes(account, Map.get(account.vendor.commands(), name, [])),
        else: :ok
    end
  end

  def check(%Context{}), do: :ok

  defp of_call(account, context) do
    limit = context.timeout || @timeout
    deadline = System.monotonic_time(:millisecond) + limit - min(div(limit, 10), 1_000)
    account = of_profile(account, context.profile.id)
    %{account | deadline: deadline, command: context.entry && context.entry.name}
  end

  # The account as a profile uses it, with the address of the person.
  defp of_profile(account, profile) do
    account = %{account | profile: profile}

    case auth(account) do
      :oauth ->
        with {_status, _scopes, identity} <- Tokens.fact(account.book, profile, account.name),
             do: %{account | identity: identity},
             else: (nil -> account)

      _secret ->
        account
    end
  end

  defp none(allowed, context, service) do
    account = Enum.find(allowed, &(auth(&1) == :oauth))

    %ConnectionError{
      kind: :none,
      account: account && account.name,
      profile: context.profile.id,
      service: service,
      command: context.entry && context.entry.name
    }
  end

  defp auth(account), do: account.vendor.auth(account.options)

  # A profile that acts for others has the rights that all of them have, and the mail of one
  # person is not the others'.
  defp allowed?(account, ids),
    do: listed?(account.profiles, ids) and (match?([_own], ids) or not personal?(account))

  defp listed?(:all, _ids), do: true
  defp listed?(listed, ids), do: ids -- listed == []

  # Whether each profile has a connection, or a secret, of its own.
  defp personal?(%{options: options} = account) do
    case auth(account) do
      :oauth -> true
      :service_account -> Enum.any?([:subject, :service_account], &is_function(options[&1], 1))
      {:secret, option} -> is_function(options[option], 1)
    end
  end

  # The services of an account that a profile has. A withdrawn connection stays, so that its
  # commands say how to renew it.
  defp connected(account, profile) do
    with :oauth <- auth(account),
         {_status, scopes, _identity} <- Tokens.own_fact(account.book, profile, account.name) do
      Enum.filter(account.services, &granted?(account.vendor, &1, scopes))
    else
      nil -> []
      _secret -> account.services
    end
  end

  # Whether any command of a service can run with these scopes.
  defp granted?(vendor, service, scopes) do
    Enum.any?(vendor.commands(), fn {command, any} ->
      Vendor.service(command) == service and Vendor.granted?(any, scopes)
    end)
  end

  @doc """
  Returns the token of an account, renewed before it expires.

  Any one of the scopes suffices; the first is the least. An account without scopes, such as one
  with a password, takes `[]`. Waits for a renewal at most until the deadline of the account.
  """
  @spec token(Account.t(), [String.t()]) :: {:ok, token()} | {:error, ConnectionError.t()}
  def token(%Account{} = account, scopes) do
    case auth(account) do
      {:secret, option} -> secret(account, option)
      :service_account -> Tokens.fetch(account, scopes)
      :oauth -> with :ok <- check_scopes(account, scopes), do: Tokens.fetch(account, scopes)
    end
  end

  def token(account, _scopes),
    do: Arguments.check!("Skillbook.Connections.token/2", account: {Account, account})

  defp secret(account, option) do
    with {:error, reason} <- Secret.read(Map.fetch!(account.options, option), account.profile),
         do: {:error, error(account, :secret, "the option #{inspect(option)}: #{reason}")}
  end

  defp check_scopes(account, scopes) do
    case Tokens.fact(account.book, account.profile, account.name) do
      nil ->
        {:error, error(account, :none)}

      {:revoked, _scopes, _identity} ->
        {:error, error(account, :revoked)}

      {:connected, granted, _identity} ->
        if scopes == [] or Vendor.granted?(scopes, granted),
          do: :ok,
          else: {:error, %{error(account, :scope) | scopes: scopes}}
    end
  end

  @doc """
  Says that the vendor refused a token as expired or unknown, so that it is renewed before its
  next use.
  """
  @spec refused(Account.t(), token()) :: :ok
  def refused(%Account{} = account, token) when is_function(token, 0) do
    case auth(account) do
      {:secret, _option} -> :ok
      _renewed -> Tokens.refuse(account, token)
    end
  end

  # The token is not shown.
  def refused(account, _token),
    do: Arguments.check!("Skillbook.Connections.refused/2", account: {Account, account})

  @doc """
  Returns the services for which a profile has a connection, in alphabetical order.

  Views call it, so it reads no database. A withdrawn connection counts, so that its commands say
  how to renew it.
  """
  @spec services(atom(), String.t()) :: [String.t()]
  def services(book, profile) when is_atom(book) and is_binary(profile) do
    found = Book.find(book)
    services_of(book, (found && Profiles.find(found, profile)) || Profile.new!(id: profile))
  end

  def services(book, profile) do
    function = "Skillbook.Connections.services/2"
    Arguments.check!(function, book: {:book, book}, profile: {:text, profile})
  end

  @doc false
  # Those of a profile and of the profiles that it also acts for.
  @spec services_of(atom(), Profile.t()) :: [String.t()]
  def services_of(book, profile) do
    for(
      account <- Config.accounts(Book.find(book)),
      allowed?(account, Profile.ids(profile)),
      service <- connected(account, profile),
      do: Atom.to_string(service)
    )
    |> Enum.uniq()
    |> Enum.sort()
  end

  # For servers at which people sign in

  @doc false
  # See `c:Skillbook.Part.token/5`.
  @spec server_token(
          atom(),
          String.t(),
          Profile.t() | String.t(),
          Part.refusal() | nil,
          integer()
        ) :: {:ok, token() | nil} | {:error, ConnectionError.t()}
  def server_token(book, name, profile, refusal, deadline) do
    with %Book{} = book <- Book.find(book),
         %Account{} = account <- Enum.find(Server.accounts(book), &(&1.name == name)) do
      id = if is_binary(profile), do: profile, else: profile.id
      account = %{account | profile: id, deadline: deadline}

      with :ok <- own(account, profile) do
        if Book.sql(book) == nil or Config.keys(book) == [],
          do: unsigned(account, refusal),
          else: signed(account, refusal)
      end
    else
      nil -> {:error, %ConnectionError{kind: :account, account: name}}
    end
  end

  # The connection of a caller is its own: made in its tenant, and not for others that it acts
  # for.
  defp own(_account, id) when is_binary(id), do: :ok

  defp own(account, profile) do
    cond do
      not allowed?(account, Profile.ids(profile)) -> {:error, error(account, :profile)}
      Tokens.own_fact(account.book, profile, account.name) -> :ok
      true -> {:error, error(account, :none)}
    end
  end

  # It may answer without a token. The sign-in says what the book lacks.
  defp unsigned(_account, nil), do: {:ok, nil}
  defp unsigned(account, _refusal), do: {:error, error(account, :none)}

  defp signed(account, nil) do
    with {:error, %ConnectionError{kind: :none}} <- Tokens.fetch(account, []), do: {:ok, nil}
  end

  defp signed(account, {:refused, nil}), do: Tokens.fetch(account, [])

  defp signed(account, {:refused, token}) do
    :ok = Tokens.refuse(account, token)
    other(account, token, error(account, :revoked))
  end

  # Another sign-in is of use only for scopes that the connection lacks.
  defp signed(account, {:scopes, scopes, token}) do
    granted =
      case Tokens.fact(account.book, account.profile, account.name) do
        {:connected, granted, _identity} -> granted
        _none -> []
      end

    case scopes -- granted do
      [] ->
        reason = "it asks for the scopes #{Enum.join(scopes, ", ")}, which the connection has"
        other(account, token, error(account, :discovery, reason))

      missing ->
        {:error, %{error(account, :scope) | scopes: missing}}
    end
  end

  # Another process may have renewed it meanwhile.
  defp other(account, token, error) do
    with {:ok, next} <- Tokens.fetch(account, []),
         do: if(token != nil and next.() == token.(), do: {:error, error}, else: {:ok, next})
  end

  # For people

  @doc """
  Lists the connections of a profile, or of all profiles: by account, in the book's order, and by
  profile.

  Accounts with a secret of the application are listed for a profile that may use them; without a
  profile once, with `profile: nil`.

  ## Options

    * `:profile` - the id of the profile; all profiles by default
    * `:tenant` - only those that a profile with this `:tenant` may see
    * `:limit` - the largest number of connections; all by default
    * `:after` - lists the connections after this one: the last one of the page before, or its
      `:account` and `:profile` as text, such as `"google ann"`

  ## Examples

      iex> options = [builtins: false, connections: [hubspot: [token: {:env, "HUBSPOT_TOKEN"}]]]
      iex> {:ok, _} = Skillbook.start_link([name: :listed] ++ options)
      iex> {:ok, [connection]} = Skillbook.Connections.list(:listed, profile: "default")
      iex> {connection.account, connection.status, connection.services}
      {:hubspot, :connected, [:hubspot]}
      iex> Skillbook.Connections.list(:listed, limit: 10, after: connection)
      {:ok, []}
  """
  @spec list(Skillbook.book(), Skillbook.options()) ::
          {:ok, [Connection.t()]} | {:error, Exception.t()}
  def list(book, options \\ []) do
    names = [:profile, :tenant, :limit, :after]

    with {:ok, book, options} <- start("Skillbook.Connections.list/2", book, options, names),
         {:ok, places} <- places(book, options[:after]) do
      UntilError.reduce(places, [], fn {account, last}, listed ->
        left = if limit = options[:limit], do: limit - length(listed)

        with {:ok, more} <- page(book, account, last, left, options),
             do: {:ok, listed ++ more}
      end)
    end
  end

  # The accounts of which connections are listed, each with the profile of the last one before.
  defp places(book, nil), do: {:ok, for(account <- Config.all(book), do: {account, nil})}

  defp places(book, last) do
    all = Config.all(book)
    {name, profile} = place(last, all)

    case Enum.drop_while(all, &(to_string(&1.name) != name)) do
      [] -> find(book, name)
      [account | rest] -> {:ok, [{account, profile} | for(other <- rest, do: {other, nil})]}
    end
  end

  defp place(%Connection{account: account, profile: profile}, _all),
    do: {to_string(account), profile || ""}

  # Names of accounts may have blanks, so the longest is meant.
  defp place(text, all) do
    names = for account <- all, do: to_string(account.name)
    found = Enum.filter(names, &String.starts_with?(text <> " ", &1 <> " "))

    case Enum.max_by(found, &byte_size/1, fn -> nil end) do
      nil -> {text, ""}
      name -> {name, text |> String.replace_prefix(name, "") |> String.replace_prefix(" ", "")}
    end
  end

  defp page(_book, _account, _last, 0, _options), do: {:ok, []}

  defp page(book, account, last, limit, options) do
    case {auth(account), Book.sql(book)} do
      {:oauth, nil} ->
        {:ok, []}

      {:oauth, sql} ->
        reader = %{Profile.unrestricted() | tenant: Keyword.get(options, :tenant, :all)}
        name = to_string(account.name)

        with {:ok, rows} <- Table.page(sql, name, options[:profile], reader, last, limit),
             do: {:ok, Enum.map(rows, &connection(account, &1))}

      _secret ->
        {:ok, if(last, do: [], else: listed(account, [], options[:profile]))}
    end
  end

  defp listed(account, rows, profile) do
    case auth(account) do
      :oauth ->
        for row <- rows, row.account == to_string(account.name), do: connection(account, row)

      _secret ->
        if profile == nil or allowed?(account, [profile]),
          do: [Connection.new(account, profile)],
          else: []
    end
  end

  defp connection(account, row) do
    services = Enum.filter(account.services, &granted?(account.vendor, &1, row.scopes))
    Connection.new(account, row, services)
  end

  @doc false
  # Whether a book has accounts, or servers at which people sign in.
  @spec any?(Book.t()) :: boolean()
  defdelegate any?(book), to: Skillbook.Connections.Part

  @doc false
  # The accounts that a profile signs in to itself: with its connection or `nil`, the commands
  # that it may use then, and those of them that the connection has no scope for, each with the
  # least scope.
  @spec sign_ins(Skillbook.book(), Profile.t()) ::
          {:ok,
           [
             %{
               account: atom() | String.t(),
               server: String.t() | nil,
               connection: Connection.t() | nil,
               services: [Vendor.service()],
               commands: [String.t()],
               missing: [%{command: String.t(), scope: String.t()}]
             }
           ]}
          | {:error, Exception.t()}
  def sign_ins(book, %Profile{id: id} = profile) do
    book = Book.fetch!(book)

    accounts =
      for account <- Config.all(book),
          account = %{account | profile: id},
          auth(account) == :oauth,
          check_allowed(book, account, :allowed) == :ok,
          do: account

    with {:ok, rows} <- rows(Book.sql(book), accounts, id),
         do: {:ok, Enum.map(accounts, &sign_in(book, profile, &1, rows))}
  end

  defp rows(sql, accounts, _profile) when sql == nil or accounts == [], do: {:ok, []}
  defp rows(sql, _accounts, profile), do: Table.list(sql, profile)

  defp sign_in(book, profile, account, rows) do
    connection = account |> listed(rows, profile.id) |> List.first()
    commands = book |> SignIn.visible(account, profile) |> Enum.sort()

    granted =
      case connection do
        %Connection{status: :connected, scopes: scopes} -> scopes
        _none_or_revoked -> []
      end

    missing =
      for command <- commands,
          [least | _] = any <- [Vendor.scopes(account.vendor, command)],
          not Vendor.granted?(any, granted),
          do: %{command: command, scope: least}

    %{
      account: account.name,
      server: account.server && account.server.url,
      connection: connection,
      services: account.services,
      commands: commands,
      missing: missing
    }
  end

  @doc """
  Begins a sign-in: returns the address that the person opens in a browser.

  The vendor sends the browser to the `:redirect` address with the parameters for `complete/3`.
  The answer counts once, for this profile and account, and for 10 minutes.

  It asks for the fewest scopes that the commands need, in addition to those that the connection
  has.

  ## Options

    * `:profile` (text) - the id of the profile. Defaults to `"default"`
    * `:redirect` (URL) - an address of the application that is registered with the vendor.
      Required
    * `:for` (list of names) - the commands that the connection is for. Defaults to those of the
      account that the profile may use
    * `:scopes` (list of texts) - more scopes to ask for, for an MCP server that names them
    * `:session` (text) - a secret that only the browser has in which the person begins, such as
      one in a cookie. The answer then counts only with the same text. Defaults to none
  """
  @spec authorize(Skillbook.book(), atom() | String.t(), Skillbook.options()) ::
          {:ok, %{url: String.t(), state: String.t(), expires_at: DateTime.t()}}
          | {:error, Exception.t()}
  def authorize(book, account, options) do
    names = [:profile, :redirect, :for, :scopes, :session]

    with {:ok, book, options} <-
           start("Skillbook.Connections.authorize/3", book, options, names, account),
         {:ok, redirect} <- Keyword.fetch(options, :redirect) |> required(:redirect),
         {:ok, account} <- fetch(book, account, options[:profile] || "default"),
         do: SignIn.begin(book, account, redirect, options)
  end

  defp required({:ok, value}, _option), do: {:ok, value}

  defp required(:error, option) do
    {:error, %OptionError{subject: "a sign-in", option: option, problem: :missing}}
  end

  @doc """
  Ends a sign-in with the parameters of the vendor's redirect, and stores its tokens.

  `parameters` is a map with the texts `"state"`, `"iss"` if it came, and `"code"` or `"error"`.
  The option `:profile`
  must be the profile that began it: the application takes it from its own session, so that nobody
  connects an account of somebody else. It defaults to `"default"`.

  With the option `:redirect`, the address at which the parameters came, an answer counts only for
  a sign-in with the same `:redirect`: an application with several vendors gives each account an
  address of its own. `:session` is that of `authorize/3`.
  """
  @spec complete(Skillbook.book(), map(), Skillbook.options()) ::
          {:ok, Connection.t()} | {:error, Exception.t()}
  def complete(book, parameters, options \\ []) do
    names = [:profile, :redirect, :session]

    with {:ok, book, options} <-
           start("Skillbook.Connections.complete/3", book, options, names),
         profile = options[:profile] || "default",
         {redirect, session} = {options[:redirect], options[:session]},
         {:ok, account, row} <- SignIn.complete(book, parameters, profile, redirect, session),
         do: {:ok, connection(account, row)}
  end

  @doc """
  Ends a connection: revokes its tokens at the vendor, and deletes them.

  They are deleted even if the vendor does not answer. Then the field `:revoked` is false, and
  `:reason` says why; the person can withdraw the access in the settings of the vendor's account.

  Takes the option `:profile`, which defaults to `"default"`.
  """
  @spec disconnect(Skillbook.book(), atom() | String.t(), Skillbook.options()) ::
          {:ok, %{revoked: boolean(), reason: String.t() | nil}} | {:error, Exception.t()}
  def disconnect(book, account, options \\ []) do
    with {:ok, book, options} <-
           start("Skillbook.Connections.disconnect/3", book, options, [:profile], account),
         {:ok, account} <- fetch(book, account, options[:profile] || "default", :any),
         {:ok, sql} <- sql(book, account),
         key = {account.profile, to_string(account.name)},
         {:ok, row} <- row(sql, key, account),
         # First at the vendor: if this node is killed between the two, the row still shows it.
         revoked = revoke(book, account, row),
         {:ok, _deleted?} <- Table.delete(sql, key) |> store_error(account) do
      Tokens.changed(book)
      Tokens.event(account, :disconnected)

      case revoked do
        :ok -> {:ok, %{revoked: true, reason: nil}}
        {:error, reason} -> {:ok, %{revoked: false, reason: reason}}
      end
    end
  end

  defp row(sql, key, account) do
    case Table.get(sql, key) |> store_error(account) do
      {:ok, nil} -> {:error, error(account, :none)}
      other -> other
    end
  end

  defp revoke(_book, _account, %{status: :revoked}), do: :ok

  defp revoke(book, account, row) do
    with {:ok, keys} <- Cipher.keys(Config.keys(book)),
         {:ok, tokens} <- Renewal.open(keys, row),
         true <- Discovery.of?(tokens.().oauth, account) do
      account = %{account | oauth: tokens.().oauth}
      OAuth.revoke(account, fn -> tokens.().refresh || tokens.().access end, @request)
    else
      false -> {:error, "they are of another server, which had this name before"}
      {:error, reason} -> {:error, reason}
    end
  end

  @doc """
  Encrypts all tokens again with the first key of the option `:key`, and returns the number of
  those that had another one.

  Run it after a new key was added in front of the list; then the other keys can be left out.
  Tokens are also encrypted with the first key when they are renewed.
  """
  @spec rotate(Skillbook.book()) :: {:ok, non_neg_integer()} | {:error, Exception.t()}
  def rotate(book) do
    with {:ok, book, _options} <- start("Skillbook.Connections.rotate/1", book, [], []),
         account = %Account{book: book.name, name: nil, vendor: nil},
         {:ok, sql} <- sql(book, account),
         {:ok, keys} <- keys(book, account),
         {:ok, rows} <- Table.list(sql, nil) |> store_error(account),
         [{first, _key} | _] = keys do
      rows
      |> Enum.reject(&(&1.key_id == first))
      |> UntilError.map(&rotate(sql, keys, &1))
      |> case do
        {:ok, rotated} -> {:ok, Enum.count(rotated, & &1)}
        error -> error
      end
    end
  end

  defp rotate(sql, keys, row) do
    place = Renewal.place(row)

    case Cipher.decrypt(keys, row.key_id, place, row.secret) do
      {:ok, text} ->
        {id, secret} = Cipher.encrypt(keys, place, text.())
        Table.encrypt_again(sql, row, id, secret)

      {:error, reason} ->
        {:error,
         %ConnectionError{
           kind: :key,
           account: row.account,
           profile: row.profile,
           reason: reason
         }}
    end
  end

  defp keys(book, account) do
    with {:error, reason} <- Cipher.keys(Config.keys(book)),
         do: {:error, error(account, :key, reason)}
  end

  @doc """
  Makes a key for the option `:key`: 32 random bytes in base64.

      iex> byte_size(Base.decode64!(Skillbook.Connections.generate_key()))
      32
  """
  @spec generate_key() :: String.t()
  defdelegate generate_key, to: Cipher, as: :generate

  # Arguments

  defp start(function, book, options, names, account \\ :none) do
    types = [book: {:book, book}, account: {:name, account}, options: {:options, options}]
    Arguments.check!(function, types)
    options = Options.keywords(options)

    with :ok <- Options.validate(options, "a connection", Keyword.take(schema(), names)),
         do: {:ok, Book.fetch!(book), options}
  end

  defp schema do
    [
      profile: {"the id of a profile", &Options.text?/1},
      tenant: {"text, nil or :all", &(&1 in [nil, :all] or Profile.name?(&1))},
      limit: {"a number from 1 or nil", &(is_nil(&1) or Options.positive?(&1))},
      after: {"a connection, its account and profile as text, or nil", &place?/1},
      redirect: {~s(a URL such as "https://example.com/callback"), &redirect?/1},
      for: {"a list of names of commands", &Options.texts?/1},
      scopes: {"a list of scopes", &scopes?/1},
      session: {"a text", &(is_binary(&1) and &1 != "")}
    ]
  end

  defp place?(last), do: is_nil(last) or is_struct(last, Connection) or Options.text?(last)

  defp scopes?(list), do: is_list(list) and Enum.all?(list, &OAuth.scope?/1)

  defp redirect?(url) do
    Options.text?(url) and byte_size(url) <= 2_000 and
      match?(
        {:ok, %URI{scheme: scheme, host: host, fragment: nil, userinfo: nil}}
        when scheme in ["http", "https"] and host not in [nil, ""],
        URI.new(url)
      )
  end

  # The account of a name, which the profile may use and people sign in to.
  defp fetch(book, name, profile, which \\ :allowed) do
    with {:ok, account} <- find(book, name),
         account = %{account | profile: profile},
         :ok <- check_allowed(book, account, which),
         :oauth <- auth(account) do
      {:ok, of_profile(account, profile)}
    else
      {:error, error} -> {:error, error}
      _secret -> {:error, %ConnectionError{kind: :sign_in, account: name}}
    end
  end

  # The profile of a connection may have been taken from the list since.
  defp check_allowed(_book, _account, :any), do: :ok

  defp check_allowed(book, account, :allowed) do
    with true <- allowed?(account, [account.profile]),
         {:ok, profile} <- Profiles.fetch(book, account.profile),
         true <- account.server == nil or account.server.sees?.(profile) do
      :ok
    else
      {:error, error} -> {:error, error}
      _not_allowed -> {:error, error(account, :profile)}
    end
  end

  defp find(book, name) do
    with :error <- Config.find(book, name) do
      names = book |> Config.all() |> Enum.map_join(", ", & &1.name)
      reason = if names != "", do: names
      name = if is_atom(name), do: name, else: String.slice(name, 0, 100)
      {:error, %ConnectionError{kind: :account, account: name, reason: reason}}
    end
  end

  defp sql(book, account) do
    case Book.sql(book) do
      nil -> {:error, error(account, :store)}
      sql -> {:ok, sql}
    end
  end

  defp store_error({:error, %SQL.Error{} = error}, account),
    do: {:error, error(account, :store, Exception.message(error))}

  defp store_error(ok, _account), do: ok

  defp error(account, kind, reason \\ nil),
    do: ConnectionError.new(account, kind, reason)
end
