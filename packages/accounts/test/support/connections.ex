defmodule Skillbook.Test.Connections do
  @moduledoc false
  # Books with an account of Google on a world of `Skillbook.Test.Services`, and sign-ins there.

  alias Skillbook.{Connections, Context}
  alias Skillbook.Test.Services

  @key "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
  @redirect "http://127.0.0.1:4567/back"

  @google "https://www.googleapis.com/auth/"

  defmodule Vendor do
    @moduledoc false
    # Google, with a table of commands that does not change.

    @behaviour Skillbook.Connections.Vendor
    @google "https://www.googleapis.com/auth/"

    @impl true
    defdelegate schema, to: Connections.Google
    @impl true
    defdelegate auth(options), to: Connections.Google
    @impl true
    defdelegate services(options), to: Connections.Google
    @impl true
    defdelegate oauth(options), to: Connections.Google

    @impl true
    def commands do
      %{
        "email.search" => [@google <> "gmail.readonly", @google <> "gmail.modify"],
        "email.archive" => [@google <> "gmail.modify"],
        "email.send" => [@google <> "gmail.send", @google <> "gmail.modify"],
        "calendar.list" => [@google <> "calendar.readonly"]
      }
    end
  end

  def key, do: @key
  def redirect, do: @redirect
  def scope(name), do: @google <> name

  @doc """
  A world with a client to which nobody has consented yet; `refresh_tokens` are the first one's.
  """
  def world(seed \\ [], options \\ []) do
    redirects = ["http://127.0.0.1", "https://skills.example.com/connections/google/callback"]

    clients =
      for name <- ["first", "app"],
          do: %{id: name, secret: name <> "-s3cret", redirects: redirects}

    world = Services.world(Keyword.put_new(seed, :clients, clients), options)
    %{world | client: %{"id" => "app", "secret" => "app-s3cret"}}
  end

  @doc "The options of an account on a world, by OAuth."
  def account(world, more \\ []) do
    secret = world.client["secret"]
    client = [client_id: world.client["id"], client_secret: fn -> secret end]
    [vendor: Vendor, url: world.url] ++ Keyword.merge(client, more)
  end

  @doc "A book with the accounts, under the test's supervisor."
  def book(accounts, options \\ []) do
    name = :"connections_#{System.unique_integer([:positive])}"
    connections = if accounts[:key], do: accounts, else: [key: fn -> @key end] ++ accounts

    defaults = [
      name: name,
      watch: false,
      builtins: false,
      store: ":memory:",
      connections: connections
    ]

    ExUnit.Callbacks.start_supervised!({Skillbook, Keyword.merge(defaults, options)}, id: name)
    name
  end

  @doc "Signs a person in: opens the address, and ends with the parameters of the redirect."
  def connect(book, account, options \\ []) do
    with {:ok, parameters} <- answer(book, account, options),
         do: Connections.complete(book, parameters, Keyword.take(options, [:profile]))
  end

  @doc "The parameters that the vendor's redirect has."
  def answer(book, account, options \\ []) do
    options = Keyword.put_new(options, :redirect, @redirect)

    with {:ok, %{url: url}} <- Connections.authorize(book, account, options) do
      {302, location} = Services.open(url)
      @redirect <> "?" <> query = location
      {:ok, URI.decode_query(query)}
    end
  end

  @doc "The context of a call."
  def context(book, profile \\ "default", options \\ []) do
    profile = Skillbook.Book.profile(Skillbook.Book.fetch!(book), profile)
    command = Skillbook.Command.parse!("email.search --query tea")
    fields = [view: nil, profile: profile, entry: nil, command: command, book: book]
    struct!(Context, fields ++ [now: ~U[2026-03-01 08:00:00Z]] ++ options)
  end

  @doc "The account for mail of a profile."
  def mail(book, profile \\ "default", options \\ []) do
    {:ok, account} = Connections.account(context(book, profile, options), :mail)
    account
  end

  @doc "A token as text, or its error."
  def token(account, scopes \\ [@google <> "gmail.readonly"]) do
    with {:ok, token} <- Connections.token(account, scopes), do: token.()
  end

  @doc "Calls the vendor as a client does, once again after a refused token."
  def call(account, scopes \\ [@google <> "gmail.readonly"]), do: call(account, scopes, 2)

  defp call(account, scopes, tries) do
    with {:ok, token} <- Connections.token(account, scopes) do
      headers = fn -> [{"authorization", "Bearer " <> token.()}] end
      url = Connections.Account.url(account, "https://openidconnect.googleapis.com/v1/userinfo")
      {:ok, response} = Skillbook.HTTP.request(url: url, headers: headers)

      cond do
        response.status == 200 ->
          :ok

        tries > 1 ->
          Connections.refused(account, token)
          call(account, scopes, tries - 1)

        true ->
          {:status, response.status}
      end
    end
  end

  @doc "How often the token endpoint was called with a grant type."
  def asked(world, grant_type \\ "refresh_token") do
    Enum.count(Services.log(world), fn entry ->
      entry["method"] == "oauth.token" and entry["params"]["grant_type"] == grant_type
    end)
  end

  # For other virtual machines

  @doc "The options of a book for a node, without functions of a test."
  def node_options(world, store) do
    System.put_env("SKILLBOOK_TEST_KEY", @key)
    System.put_env("SKILLBOOK_TEST_CLIENT_SECRET", "app-s3cret")
    secret = {:env, "SKILLBOOK_TEST_CLIENT_SECRET"}
    account = [vendor: Vendor, url: world.url, client_id: "app", client_secret: secret]

    [
      name: :accounts,
      watch: false,
      builtins: false,
      usage: false,
      scheduler: false,
      store: store,
      connections: [key: {:env, "SKILLBOOK_TEST_KEY"}, google: account]
    ]
  end

  @doc "Starts a book of `node_options/2` on a node."
  def start_node(world, store),
    do: Skillbook.Peers.hold(node_options(world, store))

  @doc "Calls of so many processes at the same time, and their different results."
  def calls(book, count, timeout) do
    fn -> token(mail(book, "default", timeout: timeout)) end
    |> List.duplicate(count)
    |> Enum.map(&Task.async/1)
    |> Task.await_many(timeout + 30_000)
    |> Enum.uniq()
  end

  @doc "The same without waiting for the results."
  def calls_later(book, count, timeout) do
    spawn(fn -> calls(book, count, timeout) end)
    :ok
  end

  @doc "Moves the end of the stored token, and forgets the one in use as a new node does."
  def expire(book, milliseconds \\ 0) do
    at = System.system_time(:millisecond) + milliseconds
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    Skillbook.SQL.query!(sql, "update skillbook_connections set expires_at = $1", [at])
    forget(book)
  end

  @doc "Forgets the tokens in use."
  def forget(book) do
    :ets.match_delete(Module.concat(book, ConnectionsTable), {{:token, :_}, :_, :_, :_, :_})
    :ok
  end
end
