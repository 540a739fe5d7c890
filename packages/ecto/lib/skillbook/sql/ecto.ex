defmodule Skillbook.SQL.Ecto do
  @moduledoc """
  Uses the application's Ecto repo as the database of a book.

      children = [
        MyApp.Repo,
        {Skillbook,
         name: MyApp.Skills,
         sources: ["skills"],
         store: {Skillbook.SQL.Ecto, repo: MyApp.Repo}}
      ]

  Skillbook does not depend on Ecto: the application brings Ecto and its adapter,
  `Ecto.Adapters.Postgres` or `Ecto.Adapters.SQLite3`.

  ## Options

    * `:repo` - the module of a repo with one of these adapters, started before the book. Required
    * `:name` - an atom for `handle/1`; a book sets it. Required
    * `:migrate` - whether the book creates its tables. Default: `false`: a migration of the
      application creates them (`Skillbook.SQL.Migrations.Ecto`), and a book without them does not
      start
    * `:busy_timeout` - on PostgreSQL, the milliseconds that a write waits for other writers
      before it fails with `:busy`. Default: 5000. On SQLite the repo's own `:busy_timeout`
      applies

  ## Transactions

  Inside a transaction of the repo, statements belong to that transaction, and
  `Skillbook.SQL.transaction/2` is a savepoint. On SQLite, transactions are immediate. On
  PostgreSQL, Skillbook's writers use advisory locks to run one after another, those of different
  tenants at the same time; other writes of the application do not wait for them.

  ## Time limits

  The repo's limits apply. A statement over `:timeout` (15 seconds) is an error of the kind
  `:closed`; no connection within `:queue_target` is one of the kind `:busy`.

  On SQLite, writers on different connections of the pool retry until `:busy_timeout`, without a
  queue. If many processes write at the same time, `pool_size: 1` in the repo's configuration
  makes them queue. A read on SQLite continues to its end if its process is killed.
  """

  use GenServer

  alias Skillbook.SQL.{Error, Transaction}
  alias Skillbook.Support.{Options, UntilError}
  alias Skillbook.SQL
  alias Skillbook.SQL.Native

  @behaviour SQL

  @options [:repo, :name, :migrate, :busy_timeout]

  @adapters %{Ecto.Adapters.Postgres => :postgres, Ecto.Adapters.SQLite3 => :sqlite}

  @typedoc "A handle. Its fields are private."
  @type t :: %__MODULE__{
          repo: module(),
          dialect: SQL.dialect(),
          migrate: boolean(),
          busy_timeout: non_neg_integer(),
          parts: [integer()],
          waits: :wait | :now
        }

  @enforce_keys [:repo, :dialect]
  defstruct [:repo, :dialect, migrate: false, busy_timeout: 5000, parts: [], waits: :wait]

  @doc false
  def child_spec(options) do
    %{id: {__MODULE__, options[:name]}, start: {__MODULE__, :start_link, [options]}}
  end

  @doc """
  Registers the repo under its name.

  Raises `ArgumentError` if the module is not a repo or has another adapter.
  """
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(options) do
    Options.known!(options, @options)
    name = options[:name]

    unless is_atom(name) and name != nil,
      do: raise(ArgumentError, "expected :name to be an atom, got: #{inspect(name)}")

    sql = over(options[:repo], Keyword.take(options, [:migrate, :busy_timeout]))
    GenServer.start_link(__MODULE__, {name, sql}, name: name)
  end

  @doc "The handle of a registered name, for `Skillbook.SQL`. Raises `ArgumentError` without one."
  @spec handle(atom()) :: t()
  def handle(name) when is_atom(name),
    do: :persistent_term.get({__MODULE__, name}, nil) || SQL.not_running!(__MODULE__, name)

  @doc """
  A handle of a repo without a process, for scripts, migrations and tests. Takes the options
  `:migrate` and `:busy_timeout`.
  """
  @spec over(module(), keyword()) :: t()
  def over(repo, options \\ []) do
    sql = struct!(%__MODULE__{repo: repo, dialect: dialect!(repo)}, options)

    unless is_boolean(sql.migrate),
      do: raise(ArgumentError, "expected :migrate to be a boolean, got: #{inspect(sql.migrate)}")

    unless is_integer(sql.busy_timeout) and sql.busy_timeout >= 0,
      do:
        raise(
          ArgumentError,
          "expected :busy_timeout to be milliseconds, got: #{inspect(sql.busy_timeout)}"
        )

    sql
  end

  defp dialect!(repo) do
    unless is_atom(repo) and Code.ensure_loaded?(repo) and
             function_exported?(repo, :__adapter__, 0),
           do: raise(ArgumentError, "expected :repo to be an Ecto repo, got: #{inspect(repo)}")

    adapter = repo.__adapter__()

    @adapters[adapter] ||
      raise ArgumentError,
            "expected the adapter of #{inspect(repo)} to be Ecto.Adapters.Postgres or " <>
              "Ecto.Adapters.SQLite3, got: #{inspect(adapter)}; " <>
              "give Skillbook its own database, such as store: \"skillbook.db\""
  end

  @impl SQL
  def dialect(%__MODULE__{dialect: dialect}), do: dialect

  @impl SQL
  def migrates?(%__MODULE__{migrate: migrate}), do: migrate

  @impl SQL
  def of_parts(%__MODULE__{} = sql, keys, waits), do: %{sql | parts: keys, waits: waits}

  @impl SQL
  def query(%__MODULE__{} = sql, text, params) do
    with {:ok, [statement]} <- statements(sql, text, length(params)) do
      in_order(sql, statement, fn -> run(sql, statement, params, text) end)
    end
  end

  @impl SQL
  def execute_batch(%__MODULE__{} = sql, text) do
    with {:ok, statements} <- statements(sql, text, nil) do
      UntilError.each(statements, fn {text, _kind} = statement ->
        in_order(sql, statement, fn -> run(sql, statement, [], text) end)
      end)
    end
  end

  # Each as `{text, kind}`; the kind is `:read`, `:rows` (insert, update, delete, lock) or
  # `:other`.
  defp statements(sql, text, params),
    do: Error.result(Native.sql_statements(text, sql.dialect, params))

  # Writes run in a transaction, so that they wait for other writers. Otherwise a write on
  # PostgreSQL would not wait at all; on SQLite it would wait inside the driver, and run even
  # after its process was killed.
  defp in_order(sql, {_text, kind}, fun) do
    if kind != :read and not sql.repo.in_transaction?(),
      do: transaction(%{sql | parts: []}, fn _sql -> fun.() end),
      else: fun.()
  end

  @impl SQL
  def in_transaction?(%__MODULE__{repo: repo}) do
    repo.in_transaction?()
  rescue
    # A repo that is not running has no transaction.
    exception in RuntimeError ->
      if known?(exception), do: false, else: reraise(exception, __STACKTRACE__)
  end

  @impl SQL
  def transaction(%__MODULE__{repo: repo} = sql, fun) do
    if repo.in_transaction?(), do: savepoint(sql, fun), else: outermost(sql, fun)
  end

  defp outermost(%{repo: repo} = sql, fun) do
    # An exception of `fun` leaves the repo's transaction as a value, so that `guarded/3` only
    # sees exceptions of the database.
    work = fn ->
      Process.put(locked(sql), true)

      with :ok <- lock(sql),
           {:ok, value} <- outcome(sql, fun) do
        value
      else
        failed -> repo.rollback({__MODULE__, failed})
      end
    end

    case guarded(sql, nil, fn -> repo.transaction(work, begin(sql)) end) do
      {:error, {__MODULE__, failed}} -> return(failed)
      {:error, :rollback} -> {:error, rolled_back()}
      other -> other
    end
  after
    Process.delete(locked(sql))
  end

  # Whether the transaction has its lock. That of the application has none yet. It takes the one
  # for all parts, since it may go on to others: two of them would wait for each other.
  defp locked(sql), do: {__MODULE__, sql.repo}

  defp savepoint(sql, fun) do
    with {:ok, _} <- run(sql, "savepoint skillbook") do
      locked = if Process.get(locked(sql), false), do: :ok, else: lock(%{sql | parts: []})

      case with(:ok <- locked, do: outcome(sql, fun)) do
        {:ok, _value} = done ->
          with {:ok, _} <- run(sql, "release savepoint skillbook"), do: done

        failed ->
          run(sql, "rollback to savepoint skillbook")
          run(sql, "release savepoint skillbook")
          return(failed)
      end
    end
  end

  defp outcome(sql, fun) do
    Transaction.outcome!(fun.(sql))
  catch
    kind, reason -> {:raised, kind, reason, __STACKTRACE__}
  end

  defp return({:error, _reason} = failed), do: failed
  defp return({:raised, kind, reason, stack}), do: :erlang.raise(kind, reason, stack)

  # In a deferred transaction of SQLite, a write after a read fails if another process wrote
  # between.
  defp begin(%{dialect: :sqlite}), do: [mode: :immediate]
  defp begin(%{dialect: :postgres}), do: []

  # The wait is limited by `lock_timeout`, which is restored after the lock is taken.
  defp lock(%{dialect: :sqlite}), do: :ok

  defp lock(%{dialect: :postgres} = sql) do
    with {:ok, %{rows: [[before]]}} <- run(sql, "select current_setting('lock_timeout')") do
      locks = [timeout(sql.busy_timeout) | locks(sql)] ++ [timeout("'#{before}'")]
      UntilError.each(locks, &run(sql, &1))
    end
  end

  defp timeout(value), do: "set local lock_timeout = #{value}"

  defp locks(%{parts: []}), do: ["select pg_advisory_xact_lock(#{Native.postgres_writers()})"]

  # Keys that are in order cannot lead to a deadlock.
  defp locks(%{parts: parts, waits: waits}) do
    ["select pg_advisory_xact_lock_shared(#{Native.postgres_writers()})"] ++
      if(waits == :now, do: [timeout(1)], else: []) ++
      for key <- Enum.sort(parts), do: "select pg_advisory_xact_lock(#{key})"
  end

  # Runs a statement of this module.
  defp run(sql, statement), do: run(sql, {statement, :other}, [], nil)

  # Runs a statement of the caller's `text`. In a savepoint on PostgreSQL, so that a failed
  # statement does not end the transaction.
  defp run(%{repo: repo, dialect: dialect} = sql, {statement, kind}, params, text) do
    options =
      if dialect == :postgres and text != nil and repo.in_transaction?(),
        do: [mode: :savepoint],
        else: []

    params = if dialect == :postgres, do: Enum.map(params, &plain/1), else: params

    with {:ok, result} <- guarded(sql, text, fn -> repo.query(statement, params, options) end) do
      rows = for row <- result.rows || [], do: Enum.map(row, &value/1)
      columns = result.columns || []

      {:ok,
       %{
         columns: columns,
         rows: rows,
         num_rows: affected(sql, kind, columns) || result.num_rows || 0
       }}
    end
  end

  # The adapter of SQLite does not return the number of changed rows. The statement runs in a
  # transaction, so this query uses the same connection.
  defp affected(%{dialect: :sqlite} = sql, :rows, []) do
    with {:ok, %{rows: [[changes]]}} <- sql.repo.query("select changes()", [], []),
         do: changes,
         else: (_ -> nil)
  end

  defp affected(_sql, _kind, _columns), do: nil

  defp plain({:blob, bytes}), do: bytes
  defp plain(param), do: param

  # The values of `Skillbook.SQL`: numbers, texts, bytes and nil.
  defp value(true), do: 1
  defp value(false), do: 0
  defp value(%{__struct__: Decimal} = decimal), do: number(decimal)

  defp value(%module{} = time) when module in [Date, Time, NaiveDateTime, DateTime],
    do: module.to_iso8601(time)

  defp value(value), do: value

  defp number(%{__struct__: decimal} = value) do
    if decimal.integer?(value), do: decimal.to_integer(value), else: decimal.to_float(value)
  end

  # Errors

  defp guarded(sql, text, fun) do
    with {:error, %{__exception__: true} = exception} <- fun.(),
         do: {:error, error(sql, text, exception)}
  rescue
    exception ->
      if known?(exception),
        do: {:error, error(sql, text, exception)},
        else: reraise(exception, __STACKTRACE__)
  end

  @known [DBConnection.ConnectionError, DBConnection.EncodeError] ++
           [
             DBConnection.TransactionError,
             Postgrex.Error,
             Postgrex.QueryError,
             Exqlite.Error,
             Exqlite.BindError,
             ArgumentError
           ]

  # Ecto raises a RuntimeError with this text for a repo that is not running.
  @not_running "could not lookup Ecto repo"

  # Encoders raise `ArgumentError` for invalid parameters. No other code of ours runs in the
  # guard.
  defp known?(%RuntimeError{message: @not_running <> _}), do: true
  defp known?(%module{}), do: module in @known

  defp error(sql, text, exception) do
    error = describe(sql, exception)
    if text != nil and error.kind != :busy, do: Error.in_statement(error, text), else: error
  end

  defp describe(sql, %{__struct__: Postgrex.Error, postgres: %{code: code} = postgres}) do
    {kind, constraint} = postgres_kind(code)

    cond do
      kind == :busy and code != :deadlock_detected ->
        Error.busy(sql.busy_timeout)

      kind == :closed ->
        rolled_back()

      true ->
        %Error{kind: kind, constraint: constraint, message: postgres[:message] || to_string(code)}
    end
  end

  defp describe(sql, %{__struct__: Exqlite.Error, message: message}) do
    {kind, constraint} = sqlite_kind(message)

    if kind == :busy,
      do: Error.busy(busy_timeout(sql)),
      else: %Error{kind: kind, constraint: constraint, message: message}
  end

  defp describe(_sql, %{__struct__: DBConnection.ConnectionError} = exception) do
    # No connection was free in time, or the connection was lost.
    kind = if Map.get(exception, :reason) == :queue_timeout, do: :busy, else: :closed
    %Error{kind: kind, message: Exception.message(exception)}
  end

  defp describe(_sql, %{__struct__: DBConnection.TransactionError}), do: rolled_back()

  defp describe(_sql, %{__struct__: module} = exception)
       when module in [
              DBConnection.EncodeError,
              Postgrex.QueryError,
              Exqlite.BindError,
              ArgumentError
            ],
       do: %Error{kind: :params, message: Exception.message(exception)}

  defp describe(sql, %RuntimeError{}) do
    message = "the repo #{inspect(sql.repo)} is not running; start it before the book"
    %Error{kind: :closed, message: message}
  end

  defp describe(_sql, exception), do: %Error{kind: :other, message: Exception.message(exception)}

  defp rolled_back do
    %Error{
      kind: :closed,
      message: "this transaction was already rolled back by an earlier error; begin a new one"
    }
  end

  # Exqlite's default.
  defp busy_timeout(sql), do: Keyword.get(sql.repo.config(), :busy_timeout, 2000)

  defp postgres_kind(code) do
    case code do
      :unique_violation ->
        {:constraint, :unique}

      :foreign_key_violation ->
        {:constraint, :foreign_key}

      :not_null_violation ->
        {:constraint, :not_null}

      :check_violation ->
        {:constraint, :check}

      code when code in [:exclusion_violation, :integrity_constraint_violation] ->
        {:constraint, :other}

      code when code in [:lock_not_available, :deadlock_detected, :serialization_failure] ->
        {:busy, nil}

      :undefined_table ->
        {:no_such_table, nil}

      :in_failed_sql_transaction ->
        {:closed, nil}

      :read_only_sql_transaction ->
        {:readonly, nil}

      code when code in [:active_sql_transaction, :invalid_transaction_termination] ->
        {:refused, nil}

      code
      when code in [:syntax_error, :undefined_column, :undefined_function, :ambiguous_column] ->
        {:syntax, nil}

      code when code in [:indeterminate_datatype, :datatype_mismatch, :undefined_parameter] ->
        {:params, nil}

      _ ->
        {:other, nil}
    end
  end

  @sqlite [
    {"UNIQUE constraint failed", {:constraint, :unique}},
    {"FOREIGN KEY constraint failed", {:constraint, :foreign_key}},
    {"NOT NULL constraint failed", {:constraint, :not_null}},
    {"CHECK constraint failed", {:constraint, :check}},
    {"no such table", {:no_such_table, nil}},
    {"near ", {:syntax, nil}},
    {"no such column", {:syntax, nil}},
    {"no such function", {:syntax, nil}},
    {"ambiguous column name", {:syntax, nil}},
    {"incomplete input", {:syntax, nil}},
    {"unrecognized token", {:syntax, nil}},
    {"database is locked", {:busy, nil}},
    {"Database is busy", {:busy, nil}},
    {"Database busy", {:busy, nil}},
    {"database table is locked", {:busy, nil}},
    {"attempt to write a readonly database", {:readonly, nil}},
    {"database disk image is malformed", {:corrupt, nil}},
    {"file is not a database", {:corrupt, nil}},
    {"unable to open database file", {:cannot_open, nil}}
  ]

  # Exqlite's errors have only a text.
  defp sqlite_kind(message) do
    message = to_string(message)
    found = Enum.find(@sqlite, fn {beginning, _} -> String.starts_with?(message, beginning) end)

    constraint =
      if String.contains?(message, "constraint failed"),
        do: {:constraint, :other},
        else: {:other, nil}

    if found, do: elem(found, 1), else: constraint
  end

  # The process only registers the handle.

  @impl GenServer
  def init({name, sql}) do
    Process.flag(:trap_exit, true)
    :persistent_term.put({__MODULE__, name}, sql)
    {:ok, name}
  end

  @impl GenServer
  def terminate(_reason, name), do: :persistent_term.erase({__MODULE__, name})
end
