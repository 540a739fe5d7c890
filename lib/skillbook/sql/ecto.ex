defmodule Skillbook.SQL.Ecto do
  @moduledoc """
  The database of an application, through the application's own Ecto repo, as a child of a supervisor.

  Skillbook does not depend on Ecto: the repo is met at run time, and the application brings Ecto and its adapter.

  ## Options

    * `:repo` - the repo's module, which runs already: it stands before the book in the application's supervisor. Its
      adapter is `Ecto.Adapters.Postgres` or `Ecto.Adapters.SQLite3`. Required.
    * `:name` - an atom by which `handle/1` finds it; a book gives its own. Required.
    * `:migrate` - whether a book makes its tables itself. Default: false; the tables come with a migration of the
      application, as `Skillbook.SQL.Migrations.Ecto` describes, and a book whose tables are missing does not start.
    * `:busy_timeout` - on PostgreSQL, how many milliseconds a write waits for other writers before it is an error
      of the kind `:busy`. Default: 5000. On SQLite the repo's own `:busy_timeout` counts.

  ## How it behaves

  As `Skillbook.SQL` says. Inside a transaction of the repo, its statements belong to that transaction, and a transaction
  of its own is a savepoint of it. On SQLite a transaction is an immediate one. On PostgreSQL the writers of Skillbook
  take turns by an advisory lock; other writes of the application do not wait for them.

  What a repo allows a statement in time (`:timeout`, 15 seconds) and waits for a connection (`:queue_target`) also
  counts here: the first is an error of the kind `:closed`, the second one of the kind `:busy`.

  Writers of SQLite that come through different connections of a pool do not queue, they try again until one of them has
  waited for too long: where many processes write at once, `pool_size: 1` in the repo's configuration lets them take turns.
  A read on SQLite whose process is killed runs on to its end.

  ## Examples

      children = [
        MyApp.Repo,
        {Skillbook, name: MyApp.Skills, sources: ["skills"], store: {Skillbook.SQL.Ecto, repo: MyApp.Repo}}
      ]
  """

  use GenServer

  alias Skillbook.SQL.{Error, Transaction}
  alias Skillbook.Support.Options
  alias Skillbook.{Native, SQL}

  @behaviour SQL

  @options [:repo, :name, :migrate, :busy_timeout]

  @adapters %{Ecto.Adapters.Postgres => :postgres, Ecto.Adapters.SQLite3 => :sqlite}

  @typedoc "A handle. Its fields are private."
  @type t :: %__MODULE__{
          repo: module(),
          dialect: SQL.dialect(),
          migrate: boolean(),
          busy_timeout: non_neg_integer()
        }

  @enforce_keys [:repo, :dialect]
  defstruct [:repo, :dialect, migrate: false, busy_timeout: 5000]

  @doc false
  def child_spec(options) do
    %{id: {__MODULE__, options[:name]}, start: {__MODULE__, :start_link, [options]}}
  end

  @doc """
  Makes the repo known by its name.

  Raises `ArgumentError` for a module that is no repo, and for an adapter whose SQL Skillbook does not speak.
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

  @doc "The handle of the name, for `Skillbook.SQL`. Raises `ArgumentError` if none runs."
  @spec handle(atom()) :: t()
  def handle(name) when is_atom(name),
    do: :persistent_term.get({__MODULE__, name}, nil) || SQL.not_running!(__MODULE__, name)

  @doc "A handle over a repo without a process: for scripts, migrations and tests. The options are `:migrate` and `:busy_timeout`."
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
            "expected the adapter of #{inspect(repo)} to be Ecto.Adapters.Postgres or Ecto.Adapters.SQLite3, " <>
              "got: #{inspect(adapter)}; give Skillbook a database of its own, such as store: \"skillbook.db\""
  end

  @impl SQL
  def dialect(%__MODULE__{dialect: dialect}), do: dialect

  @impl SQL
  def migrates?(%__MODULE__{migrate: migrate}), do: migrate

  @impl SQL
  def query(%__MODULE__{} = sql, text, params) do
    with {:ok, [statement]} <- statements(sql, text, length(params)) do
      in_turn(sql, statement, fn -> run(sql, statement, params, text) end)
    end
  end

  @impl SQL
  def execute_batch(%__MODULE__{} = sql, text) do
    with {:ok, statements} <- statements(sql, text, nil) do
      Enum.reduce_while(statements, :ok, fn {text, _kind} = statement, :ok ->
        done = in_turn(sql, statement, fn -> run(sql, statement, [], text) end)
        with {:ok, _result} <- done, do: {:cont, :ok}, else: (error -> {:halt, error})
      end)
    end
  end

  # Each as its text and what it does: `:read`, `:rows` (insert, update, delete, lock) or `:other`.
  defp statements(sql, text, params),
    do: Error.result(Native.sql_statements(text, sql.dialect, params))

  # On PostgreSQL a write outside a transaction would not wait for those inside one; on SQLite it would wait inside the
  # driver, and run in the end though its process was killed.
  defp in_turn(sql, {_text, kind}, fun) do
    if kind != :read and not sql.repo.in_transaction?(),
      do: transaction(sql, fn _sql -> fun.() end),
      else: fun.()
  end

  @impl SQL
  def in_transaction?(%__MODULE__{repo: repo}), do: repo.in_transaction?()

  @impl SQL
  def transaction(%__MODULE__{repo: repo} = sql, fun) do
    if repo.in_transaction?(), do: savepoint(sql, fun), else: outermost(sql, fun)
  end

  defp outermost(%{repo: repo} = sql, fun) do
    # What `fun` raises leaves the repo's transaction as a value, so that what is caught here is the database's.
    work = fn ->
      with {:ok, _} <- lock(sql),
           {:ok, value} <- outcome(sql, fun) do
        value
      else
        failed -> repo.rollback({__MODULE__, failed})
      end
    end

    case guarded(sql, nil, fn -> repo.transaction(work, begin(sql)) end) do
      {:error, {__MODULE__, failed}} -> give(failed)
      {:error, :rollback} -> {:error, rolled_back()}
      other -> other
    end
  end

  defp savepoint(sql, fun) do
    with {:ok, _} <- own(sql, "savepoint skillbook") do
      case with({:ok, _} <- lock(sql), do: outcome(sql, fun)) do
        {:ok, _value} = done ->
          with {:ok, _} <- own(sql, "release savepoint skillbook"), do: done

        failed ->
          own(sql, "rollback to savepoint skillbook")
          own(sql, "release savepoint skillbook")
          give(failed)
      end
    end
  end

  defp outcome(sql, fun) do
    Transaction.outcome!(fun.(sql))
  catch
    kind, reason -> {:raised, kind, reason, __STACKTRACE__}
  end

  defp give({:error, _reason} = failed), do: failed
  defp give({:raised, kind, reason, stack}), do: :erlang.raise(kind, reason, stack)

  # SQLite: what reads first and writes later would find that somebody else has written meanwhile.
  defp begin(%{dialect: :sqlite}), do: [mode: :immediate]
  defp begin(%{dialect: :postgres}), do: []

  # It waits as long as the connection's `lock_timeout` says, which goes back to what it was when the lock is there.
  defp lock(%{dialect: :sqlite}), do: {:ok, nil}

  defp lock(%{dialect: :postgres} = sql) do
    with {:ok, %{rows: [[before]]}} <- own(sql, "select current_setting('lock_timeout')"),
         {:ok, _} <- own(sql, "set local lock_timeout = #{sql.busy_timeout}"),
         {:ok, _} <- own(sql, "select pg_advisory_xact_lock(#{Native.postgres_writers()})"),
         do: own(sql, "set local lock_timeout = '#{before}'")
  end

  defp own(sql, text), do: run(sql, {text, :other}, [], nil)

  # A statement that fails takes back only itself, also on PostgreSQL.
  defp run(%{repo: repo, dialect: dialect} = sql, {written, kind}, params, text) do
    options =
      if dialect == :postgres and text != nil and repo.in_transaction?(),
        do: [mode: :savepoint],
        else: []

    params = if dialect == :postgres, do: Enum.map(params, &plain/1), else: params

    with {:ok, result} <- guarded(sql, text, fn -> repo.query(written, params, options) end) do
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

  # The adapter of SQLite does not say how many rows a statement changed. Such a statement is in a transaction, so the
  # connection is the same.
  defp affected(%{dialect: :sqlite} = sql, :rows, []) do
    with {:ok, %{rows: [[changes]]}} <- sql.repo.query("select changes()", [], []),
         do: changes,
         else: (_ -> nil)
  end

  defp affected(_sql, _kind, _columns), do: nil

  defp plain({:blob, bytes}), do: bytes
  defp plain(param), do: param

  # Both databases give back what the behaviour has: numbers, texts, bytes and nil.
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

  @known [DBConnection.ConnectionError, DBConnection.EncodeError, DBConnection.TransactionError] ++
           [Postgrex.Error, Postgrex.QueryError, Exqlite.Error, Exqlite.BindError, ArgumentError]

  # A repo that does not run has an error of no kind of its own.
  @not_running "could not lookup Ecto repo"

  # An encoder has an `ArgumentError` for what it cannot take; nothing else of ours runs inside.
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
      do: Error.busy(patience(sql)),
      else: %Error{kind: kind, constraint: constraint, message: message}
  end

  defp describe(_sql, %{__struct__: DBConnection.ConnectionError} = exception) do
    # Nobody gave back a connection in time, or it was lost.
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
    message = "the repo #{inspect(sql.repo)} does not run; it must be started before the book"
    %Error{kind: :closed, message: message}
  end

  defp describe(_sql, exception), do: %Error{kind: :other, message: Exception.message(exception)}

  defp rolled_back do
    %Error{
      kind: :closed,
      message: "this transaction was already rolled back by an earlier error; begin a new one"
    }
  end

  defp patience(sql), do: Keyword.get(sql.repo.config(), :busy_timeout, 2000)

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

  # Its errors come as texts alone.
  defp sqlite_kind(message) do
    message = to_string(message)
    found = Enum.find(@sqlite, fn {beginning, _} -> String.starts_with?(message, beginning) end)

    constraint =
      if String.contains?(message, "constraint failed"),
        do: {:constraint, :other},
        else: {:other, nil}

    if found, do: elem(found, 1), else: constraint
  end

  # The process only keeps the name.

  @impl GenServer
  def init({name, sql}) do
    Process.flag(:trap_exit, true)
    :persistent_term.put({__MODULE__, name}, sql)
    {:ok, name}
  end

  @impl GenServer
  def terminate(_reason, name), do: :persistent_term.erase({__MODULE__, name})
end
