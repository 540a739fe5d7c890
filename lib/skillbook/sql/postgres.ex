defmodule Skillbook.SQL.Postgres do
  @moduledoc """
  A connection pool for a PostgreSQL server, as the database of a book or as a child of a
  supervisor.

  As the store of a book:

      {Skillbook,
       name: MyApp.Skills,
       sources: ["skills"],
       store: {Skillbook.SQL.Postgres, url: fn -> System.fetch_env!("DATABASE_URL") end}}

  Without a book:

      {:ok, _} =
        Skillbook.SQL.Postgres.start_link(
          url: "postgres://app:secret@db.example/skills?sslmode=verify-full",
          name: MyApp.SkillStore
        )

      sql = Skillbook.SQL.Postgres.handle(MyApp.SkillStore)
      Skillbook.SQL.query!(sql, "select version()").rows

  ## Options

    * `:name` - an atom for `handle/1`. Required
    * `:url` - `"postgres://user:password@host:port/database"`, or a function without arguments
      that returns it, which keeps the password out of supervisor reports. Missing parts have the
      defaults below. It takes libpq's parameters `sslmode`, `sslrootcert`, `connect_timeout`
      (seconds), `application_name`, `host`, `port`, `user`, `password` and `dbname`
    * `:host` - a name, an address, or the folder of a socket (from `/`). Default: `"localhost"`
    * `:port` - default: 5432
    * `:user` - default: the environment variable `USER`
    * `:password` - a text, or a function without arguments that returns it. Errors, logs and
      reports never contain it
    * `:database` - default: the user's name
    * `:application_name` - the name in the server's list of connections. Default: `"skillbook"`
    * `:ssl` - `true` (`"verify-full"`), `false` (`"disable"`), or a value of libpq's `sslmode`.
      Default: `"prefer"`
      * `"disable"` - no TLS
      * `"prefer"` - TLS if the server supports it; the certificate is not verified
      * `"require"` - TLS; the certificate is verified only with `:ssl_ca_file`, as in
        `"verify-ca"`
      * `"verify-ca"` - TLS; a trusted authority must have signed the certificate
      * `"verify-full"` - the same, and the certificate must be for `:host`
    * `:ssl_ca_file` - a PEM file with the authorities' certificates. Default: the system's
    * `:pool_size` - the largest number of connections; they are opened on demand. Default: 10
    * `:timeout` - milliseconds after which the server cancels a statement, with an error of the
      kind `:timeout`, and after which it ends a transaction that sends no statement, since other
      writers wait for it. Default: 15000
    * `:queue_timeout` - milliseconds that a call waits for a free connection, and a write for
      other writers, before it fails with `:busy`. Opening a connection does not count. Default:
      5000
    * `:connect_timeout` - milliseconds that opening a connection may take. Default: 5000

  Other options override parts of the URL.

  ## Concurrency

  Network IO runs on separate threads, not on schedulers. If the calling process dies, its
  statement is cancelled and its transaction rolled back.

  Reads run concurrently, each on its own connection. Writes of all nodes on the database run one
  after another: each takes an advisory lock of this library (`pg_advisory_xact_lock`), so a
  transaction reads the state that it changes. Entries, tasks and memories of a tenant, and the
  documents of a vault, have a lock of their own, so these writers wait only for those of the same
  tenant or vault, and for those that may change everything. The row that orders their
  revisions is locked only by the last statements of a transaction, which are sent with its
  commit. The locks do not affect other programs that write to the tables.

  ## Errors in transactions

  After a failed statement the server rejects the rest of a transaction: later statements and the
  commit fail with `:closed`. To continue after an error, run the statement in a nested
  transaction.

  ## Lost connections

  A lost connection is replaced. A statement that was not yet sent is sent on another connection.
  If it was sent and not answered, the error is `:lost`, because the statement may have been
  executed. While the server cannot be reached, calls wait for `:queue_timeout` and fail with
  `:cannot_open`. If a network goes silent, a call ends at most five seconds after `:timeout` and
  `:queue_timeout` together.

  A server that is a standby refuses writes with `:readonly`. Its connection is then replaced, so
  calls reach the server that is at the address after a failover.

  ## Values

  Parameters are converted to the type that the server expects. A conversion that would lose data
  is an error of the kind `:params`. A text can be used for any type; the server parses it.
  Results are read as

    * `bool`: 1 or 0; integers: integers; `float4` and `float8`: floats
    * `numeric`: an integer if the type has no decimals and the value fits into 64 bits, such as a
      sum of integers; otherwise the nearest float
    * texts, enums, `json`, `jsonb` and `uuid`: strings; `bytea`: a binary
    * `date`: `"2026-03-01"`; `timestamptz`: `"2026-03-01T09:30:00Z"`; `timestamp`: the same
      without the `Z`; `time`: `"09:30:00"`; all truncated to seconds

  Other types are an error that suggests `column::text`. Texts with NUL characters are refused,
  because PostgreSQL cannot store them.
  """

  use Supervisor

  alias Skillbook.SQL.Postgres.{Library, Listener, Pool, Reply, Settings}
  alias Skillbook.SQL.{Error, Transaction}
  alias Skillbook.SQL
  alias Skillbook.SQL.Native

  @behaviour SQL

  @typedoc "A handle. Its fields are private."
  @type t :: %__MODULE__{pool: pid(), parts: [integer()], waits: :wait | :now}

  @enforce_keys [:pool]
  defstruct [:pool, parts: [], waits: :wait]

  @doc false
  def child_spec(options) do
    %{
      id: {__MODULE__, options[:name]},
      start: {__MODULE__, :start_link, [Settings.hide(options)]},
      type: :supervisor
    }
  end

  @doc """
  Starts the pool and opens the first connection.

  If the database cannot be opened, it returns `{:error, %Skillbook.SQL.Error{}}` with host, port,
  database and the reason. If the server cannot be reached, it retries for `:queue_timeout` first.
  """
  @spec start_link(keyword()) :: Supervisor.on_start() | {:error, Error.t()}
  def start_link(options) do
    {name, size, address, limits} = Settings.read!(options)

    arg = {name, size, limits.queue_timeout}

    with {:ok, server} <- Error.result(Library.postgres_server(address, limits)),
         {:ok, supervisor} <- Supervisor.start_link(__MODULE__, {server, arg}, name: name) do
      with {:error, error} <- open_first(name) do
        # Otherwise the caller would get an exit signal.
        Process.unlink(supervisor)
        Supervisor.stop(supervisor)
        {:error, error}
      else
        :ok -> {:ok, supervisor}
      end
    end
  end

  defp open_first(name) do
    pool = handle(name).pool

    with {:ok, _session} <- Pool.checkout(pool, :read) do
      Pool.checkin(pool)
    end
  end

  @impl Supervisor
  def init({server, {name, size, queue_timeout}}) do
    children = [{Pool, {name, server, size, queue_timeout}}, {Listener, {name, server}}]
    Supervisor.init(children, strategy: :one_for_one)
  end

  @doc """
  The handle of the running database `name`, for `Skillbook.SQL`.

  The handle changes when the pool restarts, so long-lived processes should not store it. Raises
  `ArgumentError` if no such database is running.
  """
  @spec handle(atom()) :: t()
  def handle(name) when is_atom(name),
    do: %__MODULE__{pool: Pool.of(name) || SQL.not_running!(__MODULE__, name)}

  @doc """
  Subscribes the calling process to a channel of PostgreSQL's `notify`, a text of 1 to 63 bytes.

  The process gets `{:skillbook_notify, channel, payload}` for each notification. It gets
  `{:skillbook_notify_lost, channel}` when the listening connection was lost and is back, or if
  the server could not be reached at first; it may have missed notifications then.

  All subscriptions share one connection outside the pool. A subscription ends with its process.
  Subscribing again has no effect.

      Skillbook.SQL.Postgres.listen(MyApp.SkillStore, "orders")

      receive do
        {:skillbook_notify, "orders", payload} -> payload
      end
  """
  @spec listen(atom(), String.t()) :: :ok
  def listen(name, channel) when is_atom(name) do
    unless is_binary(channel) and byte_size(channel) in 1..63 and String.valid?(channel) and
             not String.contains?(channel, "\0") do
      raise ArgumentError, "expected a channel, a text of 1 to 63 bytes, got: #{inspect(channel)}"
    end

    GenServer.call(Listener.listener(name), {:listen, channel, self()}, :infinity)
  end

  @impl SQL
  def dialect(%__MODULE__{}), do: :postgres

  @impl SQL
  def of_parts(%__MODULE__{} = sql, keys, waits), do: %{sql | parts: keys, waits: waits}

  @impl SQL
  def query(%__MODULE__{} = sql, statement, params) do
    case transaction_of(sql) do
      nil ->
        read_or_write(sql, statement, params)

      {session, _level} ->
        rows(call(&Library.postgres_query(session, &1, :inside, statement, params)))
    end
  end

  @impl SQL
  def query_all(%__MODULE__{} = sql, statements) do
    {session, _level} = transaction_of(sql)
    all(call(&Library.postgres_query_all(session, &1, statements)))
  end

  @impl SQL
  def execute_batch(%__MODULE__{} = sql, statements) do
    case transaction_of(sql) do
      nil -> with_session(sql, {:write, [], :wait}, &batch(&1, :write, statements))
      {session, _level} -> batch(session, :inside, statements)
    end
  end

  @impl SQL
  def in_transaction?(%__MODULE__{} = sql), do: transaction_of(sql) != nil

  @impl SQL
  def transaction(%__MODULE__{} = sql, fun), do: transaction(sql, [], fn sql, [] -> fun.(sql) end)

  @impl SQL
  def transaction(%__MODULE__{} = sql, statements, fun) do
    case transaction_of(sql) do
      nil ->
        begin = &begin(&1, 0, sql, statements)
        run = fn session, found -> run(sql, session, 0, &fun.(&1, found)) end
        with_session(sql, {:write, sql.parts, sql.waits}, begin, run)

      {session, level} ->
        with {:ok, found} <- begin(session, level + 1, sql, statements),
             do: run(sql, session, level + 1, &fun.(&1, found))
    end
  end

  @impl SQL
  def commit(%__MODULE__{} = sql, statements) do
    {session, 0} = transaction_of(sql)

    with {:ok, _found} = done <- commit(session, 0, statements) do
      Process.put(key(sql), :committed)
      done
    end
  end

  # Only the server knows whether a statement writes. One that may be a read first runs in a
  # read-only transaction.
  defp read_or_write(sql, statement, params) do
    run = fn place ->
      fn session -> call(&Library.postgres_query(session, &1, place, statement, params)) end
    end

    found =
      if Native.postgres_may_read(statement),
        do: with_session(sql, :read, run.(:read)),
        else: :writes

    writes = {:write, [], :wait}
    rows(if found == :writes, do: with_session(sql, writes, run.(:write)), else: found)
  end

  defp batch(session, place, statements),
    do: call(&Library.postgres_batch(session, &1, place, statements))

  defp begin(session, level, %{parts: parts, waits: waits}, statements),
    do: all(call(&Library.postgres_begin(session, &1, level, parts, waits == :wait, statements)))

  defp commit(session, level, statements),
    do: all(call(&Library.postgres_commit(session, &1, level, statements)))

  defp run(sql, session, level, fun) do
    commit = fn ->
      if transaction_of(sql) == :committed,
        do: :ok,
        else: with({:ok, []} <- commit(session, level, []), do: :ok)
    end

    rollback = fn -> call(&Library.postgres_rollback(session, &1, level)) end
    Transaction.run(key(sql), {session, level}, fn -> fun.(sql) end, commit, rollback)
  end

  defp transaction_of(sql), do: Process.get(key(sql))

  defp key(sql), do: {__MODULE__, sql.pool}

  # If the connection is lost before `first` was sent, it is tried on another one. `rest` is not.
  defp with_session(sql, kind, first, rest \\ nil), do: with_session(sql, kind, first, rest, 2)

  defp with_session(sql, kind, first, rest, attempts) do
    with {:ok, session} <- Pool.checkout(sql.pool, kind) do
      done =
        try do
          case first.(session) do
            {:ok, found} when rest != nil -> rest.(session, found)
            other -> other
          end
        after
          Pool.checkin(sql.pool)
        end

      case done do
        {:error, %Error{kind: :not_sent}} when attempts > 1 ->
          with_session(sql, kind, first, rest, attempts - 1)

        {:error, %Error{kind: :not_sent} = error} ->
          {:error, %{error | kind: :closed}}

        other ->
          other
      end
    end
  end

  defp call(send) do
    reference = make_ref()
    :ok = send.(reference)
    Reply.await(reference)
  end

  defp all({:ok, found}),
    do:
      {:ok,
       for({columns, rows, count} <- found, do: %{columns: columns, rows: rows, num_rows: count})}

  defp all(failed), do: failed

  defp rows({:ok, {columns, rows, count}}),
    do: {:ok, %{columns: columns, rows: rows, num_rows: count}}

  defp rows(failed), do: failed
end
