defmodule Skillbook.SQL.SQLite do
  @moduledoc """
  An embedded SQLite database, as the database of a book or as a child of a supervisor.

  A book with `store: "skillbook.db"` or `store: ":memory:"` starts one.

  ## Examples

      children = [{Skillbook.SQL.SQLite, path: "var/skills.db", name: MyApp.SkillStore}]

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :sqlite_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:sqlite_example)
      iex> Skillbook.SQL.query!(sql, "select 1 + 1").rows
      [[2]]
      iex> {:error, error} = Skillbook.SQL.SQLite.start_link(path: "/", name: :not_a_file)
      iex> Exception.message(error)
      "cannot open the database /: expected a file, it is a folder"

  ## Options

    * `:path` - the file, created with its folder if it does not exist, or `":memory:"` for a
      database that ends with its process. Required
    * `:name` - an atom for `handle/1`. Required
    * `:busy_timeout` - milliseconds that a write waits for other writers before it fails with
      `:busy`. Default: 5000

  ## Concurrency

  Reads run concurrently in the calling processes, do not wait, and see the last committed state.
  Writes run one after another. A committed write survives a crash of the virtual machine and a
  power failure. A `":memory:"` database has one connection, so its reads wait for writes.

  ## Deleted files

  If the file is deleted, moved or replaced while it is open, each write fails with an error of
  the kind `:moved`, and an error is logged within a second. Reads return the data from before.
  Writes work again once the file is back, or after a restart, which opens the file that is there
  or creates one.

  ## Statements

  Transactions need `Skillbook.SQL.transaction/2`. Statements that change the state of one
  connection, such as `begin`, `attach` or a `pragma` with a value, are refused. Foreign keys are
  enforced, and strings need single quotes.
  """

  use GenServer

  require Logger

  alias Skillbook.SQL.{Error, Location, Transaction}
  alias Skillbook.Support.{Options, PrivateFile}
  alias Skillbook.SQL
  alias Skillbook.SQL.Native

  @behaviour SQL

  @options [:path, :name, :busy_timeout]

  # Milliseconds between two checks that the file is still there; a check takes microseconds.
  @check_interval 500

  @typedoc "A handle. Its fields are private."
  @type t :: %__MODULE__{database: reference(), server: pid()}

  @enforce_keys [:database, :server]
  defstruct [:database, :server]

  @doc false
  def child_spec(options) do
    %{id: {__MODULE__, options[:name]}, start: {__MODULE__, :start_link, [options]}}
  end

  @doc """
  Opens the database and starts its process.

  If the database cannot be opened, it returns `{:error, %Skillbook.SQL.Error{}}` with the path
  and the reason.
  """
  @spec start_link(keyword()) :: GenServer.on_start() | {:error, Error.t()}
  def start_link(options) do
    {path, name, busy_timeout} = validate!(options)

    # Opened before the process starts, so that a failure does not send the caller an exit signal.
    with {:ok, database} <- Error.result(Native.sql_open(path, busy_timeout)) do
      warn_of_readers(path)
      GenServer.start_link(__MODULE__, {database, name, busy_timeout}, name: name)
    end
  end

  defp warn_of_readers(":memory:"), do: :ok

  defp warn_of_readers(path) do
    if advice = path |> PrivateFile.exposed() |> PrivateFile.advice(),
      do: Logger.warning("the database: " <> advice)
  end

  @doc """
  The handle of the running database `name`, for `Skillbook.SQL`.

  The handle changes when the database's process restarts, so long-lived processes should not
  store it. Raises `ArgumentError` if no such database is running.
  """
  @spec handle(atom()) :: t()
  def handle(name) when is_atom(name),
    do: :persistent_term.get({__MODULE__, name}, nil) || SQL.not_running!(__MODULE__, name)

  @impl SQL
  def dialect(%__MODULE__{}), do: :sqlite

  @impl SQL
  def query(%__MODULE__{} = sql, statement, params) do
    case transaction_of(sql) do
      nil -> read_or_write(sql, statement, params)
      {epoch, _level} -> rows(Native.sql_query(sql.database, epoch, true, statement, params))
    end
  end

  @impl SQL
  def query_all(%__MODULE__{} = sql, statements) do
    {epoch, _level} = transaction_of(sql)
    all(Native.sql_query_all(sql.database, epoch, statements))
  end

  @impl SQL
  def execute_batch(%__MODULE__{} = sql, statements) do
    case transaction_of(sql) do
      nil ->
        with_writer(sql, &Error.result(Native.sql_batch(sql.database, &1, false, statements)))

      {epoch, _level} ->
        Error.result(Native.sql_batch(sql.database, epoch, true, statements))
    end
  end

  @impl SQL
  def in_transaction?(%__MODULE__{} = sql), do: transaction_of(sql) != nil

  @impl SQL
  def transaction(%__MODULE__{} = sql, fun), do: transaction(sql, [], fn sql, [] -> fun.(sql) end)

  @impl SQL
  def transaction(%__MODULE__{} = sql, statements, fun) do
    case transaction_of(sql) do
      nil -> with_writer(sql, &run(sql, &1, 0, statements, fun))
      {epoch, level} -> run(sql, epoch, level + 1, statements, fun)
    end
  end

  @impl SQL
  def commit(%__MODULE__{} = sql, statements) do
    {epoch, 0} = transaction_of(sql)

    with {:ok, _found} = done <- commit(sql, epoch, 0, statements) do
      Process.put(key(sql), :committed)
      done
    end
  end

  defp commit(sql, epoch, level, statements),
    do: all(Native.sql_commit(sql.database, epoch, level, statements))

  # Only SQLite knows whether a statement writes, so it is first prepared on a reading connection.
  defp read_or_write(sql, statement, params) do
    case Native.sql_read(sql.database, statement, params) do
      :writes ->
        with_writer(sql, &rows(Native.sql_query(sql.database, &1, false, statement, params)))

      found ->
        rows(found)
    end
  end

  defp run(sql, epoch, level, statements, fun) do
    with {:ok, found} <- all(Native.sql_begin(sql.database, epoch, level, statements)) do
      commit = fn ->
        if transaction_of(sql) == :committed,
          do: :ok,
          else: with({:ok, []} <- commit(sql, epoch, level, []), do: :ok)
      end

      rollback = fn -> Native.sql_rollback(sql.database, epoch, level) end
      Transaction.run(key(sql), {epoch, level}, fn -> fun.(sql, found) end, commit, rollback)
    end
  end

  defp transaction_of(sql), do: Process.get(key(sql))

  defp key(sql), do: {__MODULE__, sql.database}

  defp with_writer(sql, fun) do
    with {:ok, epoch} <- checkout(sql.server) do
      try do
        fun.(epoch)
      after
        GenServer.cast(sql.server, {:checkin, self()})
      end
    end
  end

  # The server has its own time limit. One here would leave a late reply in the mailbox.
  defp checkout(server) do
    GenServer.call(server, :checkout, :infinity)
  catch
    :exit, _reason -> {:error, Error.closed()}
  end

  defp all({:ok, found}),
    do:
      {:ok,
       for({columns, rows, count} <- found, do: %{columns: columns, rows: rows, num_rows: count})}

  defp all(failed), do: Error.result(failed)

  defp rows({:ok, {columns, rows, count}}),
    do: {:ok, %{columns: columns, rows: rows, num_rows: count}}

  defp rows(failed), do: Error.result(failed)

  defp validate!(options) do
    Options.known!(options, @options)
    path = options[:path]
    name = options[:name]
    busy_timeout = Keyword.get(options, :busy_timeout, 5000)

    # The error must not contain the password of a URL.
    if Location.url?(path),
      do: raise(ArgumentError, "expected :path to be a file or \":memory:\", got a URL")

    unless is_binary(path) and path != "" and String.valid?(path) and
             not String.contains?(path, "\0") do
      raise ArgumentError, "expected :path to be a file or \":memory:\", got: #{inspect(path)}"
    end

    unless is_atom(name) and name != nil do
      raise ArgumentError, "expected :name to be an atom, got: #{inspect(name)}"
    end

    unless is_integer(busy_timeout) and busy_timeout >= 0 do
      raise ArgumentError,
            "expected :busy_timeout to be milliseconds, got: #{inspect(busy_timeout)}"
    end

    {path, name, busy_timeout}
  end

  # The process admits one writer at a time, and rolls back the transaction of a writer that died.

  @impl GenServer
  def init({database, name, busy_timeout}) do
    Process.flag(:trap_exit, true)
    :persistent_term.put({__MODULE__, name}, %__MODULE__{database: database, server: self()})
    Process.send_after(self(), :check, @check_interval)

    {:ok,
     %{
       database: database,
       name: name,
       busy_timeout: busy_timeout,
       epoch: 0,
       owner: nil,
       waiting: :queue.new(),
       moved: false
     }}
  end

  @impl GenServer
  def handle_call(:checkout, {pid, _tag} = from, state) do
    monitor = Process.monitor(pid)

    if state.owner do
      timer = Process.send_after(self(), {:waited, monitor}, state.busy_timeout)
      {:noreply, %{state | waiting: :queue.in({monitor, pid, from, timer}, state.waiting)}}
    else
      {:reply, {:ok, state.epoch}, %{state | owner: {monitor, pid}}}
    end
  end

  @impl GenServer
  def handle_cast({:checkin, pid}, %{owner: {monitor, pid}} = state) do
    Process.demonitor(monitor, [:flush])
    {:noreply, next(state)}
  end

  def handle_cast({:checkin, _pid}, state), do: {:noreply, state}

  @impl GenServer
  def handle_info({:DOWN, monitor, :process, _pid, _reason}, %{owner: {monitor, _}} = state) do
    {:noreply, next(%{state | epoch: Native.sql_abandon(state.database)})}
  end

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    {_from, state} = forget(monitor, state)
    {:noreply, state}
  end

  def handle_info({:waited, monitor}, state) do
    {from, state} = forget(monitor, state)
    if from, do: GenServer.reply(from, {:error, Error.busy(state.busy_timeout)})
    {:noreply, state}
  end

  def handle_info(:check, state) do
    Process.send_after(self(), :check, @check_interval)
    {:noreply, %{state | moved: moved?(state)}}
  end

  def handle_info(_message, state), do: {:noreply, state}

  @impl GenServer
  def terminate(_reason, state) do
    :persistent_term.erase({__MODULE__, state.name})
    Native.sql_close(state.database)
  end

  # Logged when it happens, not at each check.
  defp moved?(state) do
    case Error.result(Native.sql_check(state.database)) do
      :ok ->
        if state.moved, do: Logger.info("the database's file is back; writes work again")
        false

      {:error, error} ->
        unless state.moved, do: Logger.error(Exception.message(error))
        true
    end
  end

  defp next(state) do
    case :queue.out(state.waiting) do
      {{:value, {monitor, pid, from, timer}}, waiting} ->
        Process.cancel_timer(timer)
        GenServer.reply(from, {:ok, state.epoch})
        %{state | owner: {monitor, pid}, waiting: waiting}

      {:empty, _waiting} ->
        %{state | owner: nil}
    end
  end

  defp forget(monitor, state) do
    case Enum.split_with(:queue.to_list(state.waiting), &(elem(&1, 0) == monitor)) do
      {[{_monitor, _pid, from, timer}], others} ->
        Process.demonitor(monitor, [:flush])
        Process.cancel_timer(timer)
        {from, %{state | waiting: :queue.from_list(others)}}

      {[], _waiting} ->
        {nil, state}
    end
  end
end
