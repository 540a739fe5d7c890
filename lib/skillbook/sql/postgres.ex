defmodule Skillbook.SQL.Postgres do
  @moduledoc """
  A database on a PostgreSQL server, as a child of a supervisor.

  ## Options

    * `:name` - an atom by which `handle/1` finds the database. Required.
    * `:url` - `"postgres://user:password@host:port/database"`, with what it leaves out as below. Its parameters
      are those of libpq: `sslmode`, `sslrootcert`, `connect_timeout` (seconds), `application_name`, `host`, `port`,
      `user`, `password` and `dbname`. A text, or a function without arguments that gives it.
    * `:host` - a name, an address, or the folder of a socket (from `/`). Default: `"localhost"`.
    * `:port` - default: 5432.
    * `:user` - default: that of the environment variable `USER`.
    * `:password` - a text, or a function without arguments that gives it. It is in no error, log or report.
    * `:database` - default: the user's name.
    * `:application_name` - what the server's list of connections shows. Default: `"skillbook"`.
    * `:ssl` - `true` (as `"verify-full"`), `false` (as `"disable"`) or libpq's words, which are also those of
      `sslmode` in a URL. Default: `"prefer"`.
      * `"disable"` - no TLS
      * `"prefer"` - TLS where the server has it, else none; the certificate is not looked at
      * `"require"` - TLS; the certificate is looked at only with `:ssl_ca_file`, then as with `"verify-ca"`
      * `"verify-ca"` - TLS with a server whose certificate one of the authorities signed
      * `"verify-full"` - the same, and the certificate is for `:host`
    * `:ssl_ca_file` - a file with the authorities' certificates, in PEM. Default: those of the system.
    * `:pool_size` - how many connections there may be; they are opened when they are needed. Default: 10.
    * `:timeout` - how many milliseconds a statement may take before the server stops it, which is an error of the
      kind `:timeout`. Default: 15000.
    * `:queue_timeout` - how many milliseconds a call waits for a free connection, a write for another one that
      writes, before it is an error of the kind `:busy`. Opening a connection does not count. Default: 5000.
    * `:connect_timeout` - how many milliseconds opening a connection may take. Default: 5000.

  Options of their own count more than the URL.

  ## How it behaves

  All that waits for the network is done by threads of its own, never by a scheduler. If the process that called
  dies, its statement is stopped and its transaction rolled back.

  Reads run at the same time, on a connection each. Writes take turns, those of all nodes that use the database: each
  takes a lock that is this library's own (`pg_advisory_xact_lock`), so nothing changes between what a transaction
  reads and what it writes. Programs that write to the same tables by other ways are not kept out by it.

  After a statement that failed, the server takes no more of a transaction: what follows is an error of the kind
  `:closed`, and so is its commit. Where work is to go on after an error, put the statement into a transaction of
  its own in the other one.

  A connection that is lost is replaced. A statement that was not sent yet is then sent on the next one. If it was sent
  and no answer came, nobody knows whether it was carried out: that is an error of the kind `:lost`. While the server
  cannot be reached, calls wait for `:queue_timeout` and then are errors of the kind `:cannot_open`.

  Statements that would change one connection of several are refused, as `Skillbook.SQL` says.

  ## Values

  The server says which type it expects for a parameter; what was given is converted where nothing is lost, else it
  is an error of the kind `:params`. A text goes to any type, for the server to read. Read are

    * `bool` as 1 or 0, whole numbers as integers, `float4` and `float8` as floats
    * `numeric` as an integer if its type has no decimals and it fits into 64 bits, as it is with sums of whole
      numbers; else as the nearest float
    * texts, enums, `json`, `jsonb` and `uuid` as strings, `bytea` as a binary
    * `date` as `"2026-03-01"`, `timestamptz` as `"2026-03-01T09:30:00Z"`, `timestamp` the same without the `Z`,
      `time` as `"09:30:00"`; all cut to whole seconds

  Other types are an error that says to write `column::text`. Texts with NUL characters are refused: PostgreSQL
  stores none.

  ## Examples

      children = [{Skillbook.SQL.Postgres, url: "postgres://app:secret@db.example/skills?sslmode=verify-full", name: MyApp.SkillStore}]

      {Skillbook, name: MyApp.Skills, sources: [...], store: {Skillbook.SQL.Postgres, url: fn -> System.fetch_env!("DATABASE_URL") end}}
  """

  use Supervisor

  alias Skillbook.SQL.Postgres.{Listener, Pool, Reply, Settings}
  alias Skillbook.SQL.{Error, Transaction}
  alias Skillbook.{Native, SQL}

  @behaviour SQL

  @typedoc "A handle. Its fields are private."
  @type t :: %__MODULE__{pool: pid()}

  @enforce_keys [:pool]
  defstruct [:pool]

  @doc false
  def child_spec(options) do
    %{
      id: {__MODULE__, options[:name]},
      start: {__MODULE__, :start_link, [Settings.hide(options)]},
      type: :supervisor
    }
  end

  @doc """
  Opens a first connection and starts the database's processes.

  A database that cannot be opened is `{:error, %Skillbook.SQL.Error{}}`, whose text has host, port, database and the
  reason. A server that cannot be reached is tried again for `:queue_timeout`.
  """
  @spec start_link(keyword()) :: Supervisor.on_start() | {:error, Error.t()}
  def start_link(options) do
    {name, size, address, limits} = Settings.read!(options)

    arg = {name, size, limits.queue_timeout}

    with {:ok, server} <- Error.result(Native.postgres_server(address, limits)),
         {:ok, supervisor} <- Supervisor.start_link(__MODULE__, {server, arg}, name: name) do
      with {:error, error} <- reach(name) do
        # What ends here must not reach the caller as an exit signal.
        Process.unlink(supervisor)
        Supervisor.stop(supervisor)
        {:error, error}
      else
        :ok -> {:ok, supervisor}
      end
    end
  end

  defp reach(name) do
    pool = handle(name).pool

    with {:ok, _session} <- Pool.checkout(pool, :read) do
      Pool.checkin(pool)
    end
  end

  @impl Supervisor
  def init({server, {name, size, patience}}) do
    children = [{Pool, {name, server, size, patience}}, {Listener, {name, server}}]
    Supervisor.init(children, strategy: :one_for_one)
  end

  @doc """
  The handle of the running database `name`, for `Skillbook.SQL`.

  After a restart of the database's process it is another one, so ask for it anew where a process lives long.
  Raises `ArgumentError` if no such database runs.
  """
  @spec handle(atom()) :: t()
  def handle(name) when is_atom(name),
    do: %__MODULE__{pool: Pool.of(name) || SQL.not_running!(__MODULE__, name)}

  @doc """
  Makes the calling process hear of what is sent to a channel, a text of 1 to 63 bytes, with `notify` or `pg_notify`.

  It gets `{:skillbook_notify, channel, payload}`, and `{:skillbook_notify_lost, channel}` whenever the connection that
  listens was lost and is back: then it must look for itself what it has missed. That comes too if the server could
  not be reached when this was called. One connection beside those of the pool listens for all processes. It ends
  with the process; calling it again changes nothing.
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
  def query(%__MODULE__{} = sql, statement, params) do
    case transaction_of(sql) do
      nil ->
        read_or_write(sql, statement, params)

      {session, _level} ->
        rows(call(&Native.postgres_query(session, &1, :inside, statement, params)))
    end
  end

  @impl SQL
  def query_all(%__MODULE__{} = sql, statements) do
    {session, _level} = transaction_of(sql)
    all(call(&Native.postgres_query_all(session, &1, statements)))
  end

  @impl SQL
  def execute_batch(%__MODULE__{} = sql, statements) do
    case transaction_of(sql) do
      nil -> with_session(sql, :write, &batch(&1, :write, statements))
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
        with_session(sql, :write, &begin(&1, 0, statements), fn session, found ->
          run(sql, session, 0, &fun.(&1, found))
        end)

      {session, level} ->
        with {:ok, found} <- begin(session, level + 1, statements),
             do: run(sql, session, level + 1, &fun.(&1, found))
    end
  end

  # The server knows which statements only read; what may be one is first run where nothing can be written.
  defp read_or_write(sql, statement, params) do
    run = fn place ->
      fn session -> call(&Native.postgres_query(session, &1, place, statement, params)) end
    end

    found =
      if Native.postgres_may_read(statement),
        do: with_session(sql, :read, run.(:read)),
        else: :writes

    rows(if found == :writes, do: with_session(sql, :write, run.(:write)), else: found)
  end

  defp batch(session, place, statements),
    do: call(&Native.postgres_batch(session, &1, place, statements))

  defp begin(session, level, statements),
    do: all(call(&Native.postgres_begin(session, &1, level, statements)))

  defp run(sql, session, level, fun) do
    commit = fn -> call(&Native.postgres_commit(session, &1, level)) end
    rollback = fn -> call(&Native.postgres_rollback(session, &1, level)) end
    Transaction.run(key(sql), {session, level}, fn -> fun.(sql) end, commit, rollback)
  end

  defp transaction_of(sql), do: Process.get(key(sql))

  defp key(sql), do: {__MODULE__, sql.pool}

  # `first` is tried on another connection if the one that was lent is lost before it was sent; `rest` is not.
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
