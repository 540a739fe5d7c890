defmodule Skillbook.Web.Sessions do
  @moduledoc false
  # The sessions of browsers, and the one-time links that begin them, in the database: so they
  # hold on all nodes, and after a restart. A session that began with a token has the rights that
  # the token has now, and ends with it.

  alias Skillbook.{Book, SQL, TokenError}
  alias Skillbook.Web.{Secrets, Tokens}

  @type session :: %{
          profile: String.t(),
          operator?: boolean(),
          token: String.t() | nil,
          scopes: :all | [Skillbook.Web.area()]
        }

  # Seconds that a link can be opened, seconds between two writes of the last use, and sessions of
  # a profile: the oldest end.
  @link 300
  @touch 60
  @max_sessions 100

  @doc "How long a link can be opened, in seconds."
  def link_seconds, do: @link

  @doc "Makes a one-time link for a profile; returns its secret in a function."
  @spec link(Book.t(), String.t(), boolean()) ::
          {:ok, (() -> String.t())} | {:error, TokenError.t() | SQL.Error.t()}
  def link(book, profile, operator?), do: insert(book, "link", profile, operator?, nil, @link)

  @doc "Uses a link up. It can be used once, by one of all nodes."
  @spec redeem(Book.t(), String.t()) :: {:ok, session()} | :error | {:error, SQL.Error.t()}
  def redeem(book, secret) do
    delete =
      "delete from skillbook_sessions where hash = $1 and kind = 'link' " <>
        "returning profile, operator, expires_at"

    with {:ok, sql} <- Tokens.sql(book),
         {:ok, %{rows: [[profile, operator, expires]]}} when is_integer(expires) <-
           SQL.query(sql, delete, [Secrets.hash(secret)]),
         true <- expires > Tokens.now(book) do
      {:ok, %{profile: profile, operator?: operator == 1, token: nil, scopes: :all}}
    else
      {:error, %SQL.Error{} = error} -> {:error, error}
      _other -> :error
    end
  end

  @doc "Begins a session that ends after `seconds`; returns its secret in a function."
  @spec start(Book.t(), session(), pos_integer()) ::
          {:ok, (() -> String.t())} | {:error, TokenError.t() | SQL.Error.t()}
  def start(book, session, seconds),
    do: insert(book, "session", session.profile, session.operator?, session.token, seconds)

  defp insert(book, kind, profile, operator?, token, seconds) do
    secret = Secrets.random()
    now = Tokens.now(book)
    operator = if operator?, do: 1, else: 0
    values = [Secrets.hash(secret.()), kind, profile, operator, token, now, now, now + seconds]

    statements = [
      {"delete from skillbook_sessions where expires_at <= $1", [now]},
      {"""
       delete from skillbook_sessions where profile = $1 and hash not in
         (select hash from skillbook_sessions where profile = $1
         order by used_at desc limit #{@max_sessions - 1})
       """, [profile]},
      {"insert into skillbook_sessions (hash, kind, profile, operator, token, created_at, " <>
         "used_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)", values}
    ]

    with {:ok, sql} <- Tokens.sql(book),
         {:ok, _} <- SQL.transaction(sql, statements, fn _sql, _results -> {:ok, nil} end),
         do: {:ok, secret}
  end

  @doc "Returns the session of a secret that has not ended, and notes its use."
  @spec fetch(Book.t(), String.t(), pos_integer()) ::
          {:ok, session()} | :error | {:error, SQL.Error.t()}
  def fetch(book, secret, idle) do
    with {:ok, session, used} <- read(book, secret, idle) do
      touch(book, secret, used)
      {:ok, session}
    end
  end

  @doc "The same, without noting a use."
  @spec find(Book.t(), String.t(), pos_integer()) ::
          {:ok, session()} | :error | {:error, SQL.Error.t()}
  def find(book, secret, idle) do
    with {:ok, session, _used} <- read(book, secret, idle), do: {:ok, session}
  end

  defp read(book, secret, idle) do
    now = Tokens.now(book)
    hash = Secrets.hash(secret)

    query =
      "select profile, operator, token, used_at from skillbook_sessions " <>
        "where hash = $1 and kind = 'session' and expires_at > $2 and used_at > $3"

    with {:ok, sql} <- Tokens.sql(book),
         {:ok, %{rows: [[profile, operator, token, used]]}} <-
           SQL.query(sql, query, [hash, now, now - idle]),
         session = %{profile: profile, operator?: operator == 1, token: token, scopes: :all},
         {:ok, session} <- of_token(book, session) do
      {:ok, session, used}
    else
      {:error, %SQL.Error{} = error} -> {:error, error}
      _other -> :error
    end
  end

  # Written once a minute.
  defp touch(book, secret, used) do
    now = Tokens.now(book)
    update = "update skillbook_sessions set used_at = $1 where hash = $2"

    with true <- used <= now - @touch,
         {:ok, sql} <- Tokens.sql(book),
         do: SQL.query(sql, update, [now, Secrets.hash(secret)])
  end

  defp of_token(_book, %{token: nil} = session), do: {:ok, session}

  defp of_token(book, session) do
    with {:ok, token} <- Tokens.find(book, session.token) do
      {:ok, %{session | profile: token.profile, operator?: token.operator?, scopes: token.scopes}}
    end
  end

  @doc "Ends a session."
  @spec stop(Book.t(), String.t()) :: :ok
  def stop(book, secret) do
    delete = "delete from skillbook_sessions where hash = $1"
    with {:ok, sql} <- Tokens.sql(book), do: SQL.query(sql, delete, [Secrets.hash(secret)])
    :ok
  end
end
