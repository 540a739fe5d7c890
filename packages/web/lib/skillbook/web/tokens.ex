defmodule Skillbook.Web.Tokens do
  @moduledoc """
  Makes, lists and revokes the tokens of a book's web, and makes links to sign in.

  A client sends a token as `authorization: Bearer sb_…`, and a person types it at the page to
  sign in. A token belongs to one profile, opens some areas, and may expire. Only its SHA-256 is
  stored, so its text is shown once.

  On the command line, `skillbook token` has the same functions.

  ## Examples

  A token for code that a model runs in a sandbox, which reads skills for ten minutes:

      iex> {:ok, _pid} = Skillbook.start_link(name: :tokens_example, store: ":memory:")
      iex> {:ok, token} =
      ...>   Skillbook.Web.Tokens.create(:tokens_example, scopes: [:api], expires_in: 600)
      iex> String.starts_with?(token.secret.(), "sb_")
      true
      iex> {:ok, [listed]} = Skillbook.Web.Tokens.list(:tokens_example)
      iex> {listed.id == token.id, listed.secret}
      {true, nil}
      iex> Skillbook.Web.Tokens.revoke(:tokens_example, token.id)
      :ok
  """

  alias Skillbook.{Book, OptionError, SQL, TokenError}
  alias Skillbook.Book.Profiles
  alias Skillbook.Support.{Arguments, Options}
  alias Skillbook.Web.{Access, Secrets, Sessions, Token}

  @scopes [:page, :mcp, :api, :chat, :discovery]
  @names Map.new(@scopes, &{Atom.to_string(&1), &1})
  @columns "id, profile, operator, scopes, label, created_at, expires_at, used_at"
  # Tokens of a profile, characters of a label, and seconds between two writes of `last_used`.
  @max_tokens 1_000
  @max_label 200
  @touch 60
  # Seconds in ten years.
  @max_expiry 315_360_000

  @doc """
  Makes a token. Its text is in the field `:secret`, and cannot be read again.

  ## Options

    * `:profile` (text) - the id of its profile. Defaults to `"default"`
    * `:scopes` (list) - the areas that it opens. Defaults to `[:mcp, :api, :discovery]`, which
      leaves out `:page`
    * `:operator` (boolean) - whether it may see the book as every profile. Defaults to `false`
    * `:label` (text or `nil`) - a note for people. Defaults to `nil`
    * `:expires_in` (seconds or `nil`) - how long it is valid. Defaults to `nil`, until it is
      revoked

  Expired tokens of the profile are deleted.
  """
  @spec create(Skillbook.book(), Skillbook.options()) ::
          {:ok, Token.t()} | {:error, OptionError.t() | TokenError.t() | SQL.Error.t()}
  def create(book, options \\ []) do
    function = "Skillbook.Web.Tokens.create/2"
    Arguments.check!(function, book: {:book, book}, options: {:options, options})
    options = Options.keywords(options)

    with :ok <- Options.validate(options, "a token", schema()),
         book = Book.fetch!(book),
         profile = options[:profile] || "default",
         :ok <- known(book, profile, "a token"),
         {:ok, sql} <- sql(book) do
      now = now(book)

      insert(sql, now, %Token{
        id: "t-" <> Base.encode32(:crypto.strong_rand_bytes(10), case: :lower),
        profile: profile,
        operator?: options[:operator] == true,
        scopes: Enum.filter(@scopes, &(&1 in (options[:scopes] || [:mcp, :api, :discovery]))),
        label: options[:label],
        created_at: DateTime.from_unix!(now),
        expires_at: options[:expires_in] && DateTime.from_unix!(now + options[:expires_in]),
        secret: Secrets.token()
      })
    end
  end

  defp schema do
    [
      profile: {"the id of a profile", &Options.text?/1},
      scopes: {"a list of :page, :mcp, :api, :chat, :discovery", &scopes?/1},
      operator: {"true or false", &is_boolean/1},
      label:
        {"text of at most #{@max_label} characters or nil",
         &(is_nil(&1) or (Options.text?(&1) and String.length(&1) <= @max_label))},
      expires_in:
        {"a number of seconds up to #{@max_expiry} or nil", &(is_nil(&1) or &1 in 1..@max_expiry)}
    ]
  end

  defp scopes?(scopes),
    do: is_list(scopes) and scopes != [] and Enum.all?(scopes, &(&1 in @scopes))

  defp known(book, profile, subject) do
    case Profiles.fetch(book, profile) do
      {:ok, _profile} ->
        :ok

      :error ->
        problem = {:invalid, Profiles.names(book), profile}
        {:error, %OptionError{subject: subject, option: :profile, problem: problem}}

      {:error, error} ->
        {:error, error}
    end
  end

  defp insert(sql, now, token) do
    expired = "delete from skillbook_tokens where profile = $1 and expires_at <= $2"
    count = "select count(*) from skillbook_tokens where profile = $1"

    insert =
      "insert into skillbook_tokens (#{@columns}, hash) " <>
        "values ($1, $2, $3, $4, $5, $6, $7, $8, $9)"

    values = [
      token.id,
      token.profile,
      if(token.operator?, do: 1, else: 0),
      Enum.join(token.scopes, " "),
      token.label,
      now,
      token.expires_at && DateTime.to_unix(token.expires_at),
      nil,
      Secrets.hash(token.secret.())
    ]

    SQL.transaction(sql, fn sql ->
      with {:ok, _} <- SQL.query(sql, expired, [token.profile, now]),
           {:ok, %{rows: [[count]]}} when count < @max_tokens <-
             SQL.query(sql, count, [token.profile]),
           {:ok, _} <- SQL.query(sql, insert, values) do
        {:ok, token}
      else
        {:ok, _full} -> {:error, %TokenError{kind: :full, id: token.profile}}
        error -> error
      end
    end)
  end

  @doc """
  Lists the tokens, the newest first: all, or those of the option `:profile`. Expired ones are
  listed until the profile gets another.
  """
  @spec list(Skillbook.book(), Skillbook.options()) ::
          {:ok, [Token.t()]} | {:error, OptionError.t() | TokenError.t() | SQL.Error.t()}
  def list(book, options \\ []) do
    function = "Skillbook.Web.Tokens.list/2"
    Arguments.check!(function, book: {:book, book}, options: {:options, options})
    options = Options.keywords(options)
    schema = [profile: {"the id of a profile or nil", &(is_nil(&1) or Options.text?(&1))}]

    with :ok <- Options.validate(options, "a list of tokens", schema),
         {:ok, sql} <- book |> Book.fetch!() |> sql() do
      {where, values} =
        if id = options[:profile], do: {"where profile = $1", [id]}, else: {"", []}

      query =
        "select #{@columns} from skillbook_tokens #{where} order by created_at desc, id desc"

      with {:ok, %{rows: rows}} <- SQL.query(sql, query, values),
           do: {:ok, Enum.map(rows, &token/1)}
    end
  end

  @doc "Revokes a token: requests with it, and sessions that began with it, end at once."
  @spec revoke(Skillbook.book(), String.t()) :: :ok | {:error, TokenError.t() | SQL.Error.t()}
  def revoke(book, id) do
    Arguments.check!("Skillbook.Web.Tokens.revoke/2", book: {:book, book}, id: {:text, id})

    with {:ok, sql} <- book |> Book.fetch!() |> sql(),
         {:ok, %{num_rows: count}} <-
           SQL.query(sql, "delete from skillbook_tokens where id = $1", [id]) do
      if count == 1, do: :ok, else: {:error, %TokenError{kind: :unknown, id: id}}
    end
  end

  @doc """
  Makes a link that signs in one browser at the page, once and within five minutes. Returns a
  function that returns it. The browser's session is of the profile, and has no token.

  ## Options

    * `:profile` (text) - the id of the profile. Defaults to `"default"`
    * `:operator` (boolean) - whether it may see the book as every profile. Defaults to `false`
    * `:url` (URL) - the address of the server. Defaults to `"http://127.0.0.1:4004"`

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :link_example, store: ":memory:")
      iex> {:ok, link} = Skillbook.Web.Tokens.link(:link_example, url: "https://example.com/")
      iex> String.starts_with?(link.(), "https://example.com/open/")
      true
  """
  @spec link(Skillbook.book(), Skillbook.options()) ::
          {:ok, (() -> String.t())} | {:error, OptionError.t() | TokenError.t() | SQL.Error.t()}
  def link(book, options \\ []) do
    function = "Skillbook.Web.Tokens.link/2"
    Arguments.check!(function, book: {:book, book}, options: {:options, options})
    options = Options.keywords(options)
    url = options[:url] || "http://127.0.0.1:4004"
    profile = options[:profile] || "default"

    with :ok <- Options.validate(options, "a link", link_schema()),
         book = Book.fetch!(book),
         :ok <- known(book, profile, "a link"),
         {:ok, secret} <- Sessions.link(book, profile, options[:operator] == true) do
      {:ok, fn -> "#{String.trim_trailing(url, "/")}/open/#{secret.()}" end}
    end
  end

  defp link_schema do
    [
      profile: {"the id of a profile", &Options.text?/1},
      operator: {"true or false", &is_boolean/1},
      url: {~s(a URL such as "https://skills.example.com"), &Access.url?/1}
    ]
  end

  @doc false
  @spec max_expiry() :: pos_integer()
  def max_expiry, do: @max_expiry

  @doc false
  # Returns the token of a text that is valid now, and notes its use.
  @spec verify(Book.t(), String.t()) :: {:ok, Token.t()} | :error | {:error, SQL.Error.t()}
  def verify(book, text) do
    hash = Secrets.hash(text)

    with true <- Secrets.token?(text),
         {:ok, token, stored} <- read(book, "hash", hash),
         true <- Secrets.same?(stored, hash) do
      touch(book, token)
      {:ok, token}
    else
      {:error, error} -> {:error, error}
      _other -> :error
    end
  end

  @doc false
  # Returns the token of an id, if it is valid now.
  @spec find(Book.t(), String.t()) :: {:ok, Token.t()} | :error | {:error, SQL.Error.t()}
  def find(book, id) do
    with {:ok, token, _hash} <- read(book, "id", id), do: {:ok, token}
  end

  # The valid token with a value in a column, and its hash.
  defp read(book, column, value) do
    query = "select hash, #{@columns} from skillbook_tokens where #{column} = $1"

    with {:ok, sql} <- sql(book),
         {:ok, %{rows: [[hash | row]]}} <- SQL.query(sql, query, [value]),
         token = token(row),
         true <- valid?(token, now(book)) do
      {:ok, token, hash}
    else
      {:error, %SQL.Error{} = error} -> {:error, error}
      _other -> :error
    end
  end

  defp valid?(%Token{expires_at: nil}, _now), do: true
  defp valid?(%Token{expires_at: at}, now), do: DateTime.to_unix(at) > now

  # A token that is used often is written once a minute. A database that cannot be written does
  # not end the request.
  defp touch(book, token) do
    now = now(book)
    update = "update skillbook_tokens set used_at = $1 where id = $2"

    if token.last_used == nil or DateTime.to_unix(token.last_used) <= now - @touch,
      do: with({:ok, sql} <- sql(book), do: SQL.query(sql, update, [now, token.id]))
  end

  defp token([id, profile, operator, scopes, label, created, expires, used]) do
    %Token{
      id: id,
      profile: profile,
      operator?: operator == 1,
      # A scope of a newer version opens nothing here.
      scopes: for(name <- String.split(scopes), scope = @names[name], do: scope),
      label: label,
      created_at: DateTime.from_unix!(created),
      expires_at: expires && DateTime.from_unix!(expires),
      last_used: used && DateTime.from_unix!(used)
    }
  end

  @doc false
  # The database of tokens and sessions.
  def sql(book) do
    case Book.sql(book) do
      nil -> {:error, %TokenError{kind: :store}}
      sql -> {:ok, sql}
    end
  end

  @doc false
  # The book's time, in seconds.
  def now(book), do: book |> Book.now() |> DateTime.to_unix()
end
