defmodule Skillbook.SQL.GroupCommit do
  @moduledoc false
  # Commits transactions that wait at the same time together.
  #
  # A commit waits for the disk or for round trips to a server, and writers of one database follow
  # each other. So the functions of several run in one transaction, each in a savepoint: each has
  # its own answer, and its error or exception undoes its own changes only. A writer that is alone
  # has a transaction of its own.
  #
  # One group runs at a time, in a process of its own. It does not wait for other writers of its
  # parts, on this node or another: if one of them is at work, the group is taken apart, and each
  # part waits in a process of its own while others go on.
  #
  # The functions must not depend on the caller's process, and may run again: if one of them fails
  # in an unexpected way, nothing is committed, and each runs alone.

  use GenServer

  alias Skillbook.SQL

  @type transaction ::
          {[{String.t(), [SQL.param()]}],
           (SQL.t(), [SQL.result()] -> {:ok, term()} | {:error, term()})}

  # A writer that comes during a commit waits for it and the next one.
  @at_once 64

  # Processes that wait for other writers, each with a connection.
  @max_waiting 3

  # Long enough for a database to restart.
  @patience 15_000

  # Errors of the database and not of one transaction. The others would wait for the same.
  @common [:busy, :closed, :timeout, :lost, :cannot_open, :moved, :corrupt, :readonly]

  @doc """
  Starts a process of that name.

  `committed` is called with the values of transactions that are committed, in their order, before
  their callers get them. `last` is called with the handle and these values at the end of the
  transaction. It returns the values, and may run statements by `Skillbook.SQL.commit/2`.
  """
  @spec start_link(
          atom(),
          ([term()] -> term()),
          (SQL.t(), [term()] -> {:ok, [term()]} | {:error, SQL.Error.t()})
        ) :: GenServer.on_start()
  def start_link(name, committed, last \\ fn _sql, values -> {:ok, values} end) do
    # Its garbage has the texts of all writes.
    options = [name: name, hibernate_after: 1_000, spawn_opt: [fullsweep_after: 20]]
    GenServer.start_link(__MODULE__, {committed, last}, options)
  end

  @doc """
  Runs transactions, each as `Skillbook.SQL.transaction/3`, and returns their results in order.

  The caller must not be in a transaction of the same database. A transaction that has not begun
  after `patience` milliseconds has the error `:busy`. The parts are those of
  `Skillbook.SQL.of_parts/2`; transactions of different parts are committed together too.
  """
  @spec run(GenServer.server(), SQL.t(), [transaction()], [term()], integer()) ::
          [{:ok, term()} | {:error, term()}]
  def run(server, sql, transactions, parts \\ [:all], patience \\ @patience) do
    parts = if SQL.parts?(sql), do: parts, else: [:all]

    transactions
    |> Enum.chunk_every(@at_once)
    |> Enum.flat_map(&call(server, sql, &1, parts, patience))
    |> Enum.map(&answer/1)
  end

  defp call(server, sql, transactions, parts, patience) do
    deadline = System.monotonic_time(:millisecond) + patience

    request = %{
      sql: sql,
      transactions: transactions,
      parts: parts,
      deadline: deadline,
      alone?: false
    }

    GenServer.call(server, {:run, request}, :infinity)
  catch
    :exit, {:noproc, _call} ->
      all(transactions, error(:closed, "the database's writer does not run; nothing was written"))

    :exit, _reason ->
      all(transactions, stopped())
  end

  defp stopped do
    error(:lost, "the database's writer stopped before it answered; the write may have been made")
  end

  defp answer({:raised, kind, reason, stack}), do: :erlang.raise(kind, reason, stack)
  defp answer(result), do: result

  @impl true
  def init(callbacks) do
    Process.flag(:trap_exit, true)
    # `arrived` is in reverse. `running` has the requests of each process.
    {:ok, %{callbacks: callbacks, arrived: [], waiting: [], running: %{}}}
  end

  @impl true
  def handle_call({:run, request}, from, state) do
    # The message comes after those of all who wait already.
    if state.arrived == [], do: send(self(), :start)
    {:noreply, %{state | arrived: [Map.put(request, :from, from) | state.arrived]}}
  end

  @impl true
  def handle_info(:start, state) do
    waiting = state.waiting ++ Enum.reverse(state.arrived)
    {:noreply, start(%{state | arrived: [], waiting: waiting})}
  end

  def handle_info({:EXIT, pid, reason}, %{running: running} = state)
      when is_map_key(running, pid) do
    {requests, running} = Map.pop!(running, pid)
    state = %{state | running: running}

    case reason do
      :normal ->
        {:noreply, start(state)}

      :busy ->
        requests = Enum.map(requests, &%{&1 | alone?: true})
        {:noreply, start(%{state | waiting: requests ++ state.waiting})}

      _killed ->
        for request <- requests, do: reply(request, all(request.transactions, stopped()))
        {:noreply, start(state)}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  # Starts as many groups as may run now.
  defp start(state) do
    {alone, groups} =
      state.running |> Map.values() |> Enum.split_with(fn [first | _] -> first.alone? end)

    busy = for requests <- alone ++ groups, request <- requests, part <- request.parts, do: part
    free = %{true: length(alone) < @max_waiting, false: groups == []}

    case Enum.reduce(state.waiting, {[], [], busy}, &choose(&1, &2, free)) do
      {[], _rest, _busy} ->
        state

      {group, rest, _busy} ->
        {group, callbacks} = {Enum.reverse(group), state.callbacks}
        pid = spawn_link(fn -> commit(group, callbacks) end)
        running = Map.put(state.running, pid, group)
        start(%{state | waiting: Enum.reverse(rest), running: running})
    end
  end

  # A request that has to wait is not overtaken by later ones of its parts.
  defp choose(request, {group, rest, busy}, free) do
    if not conflict?(request.parts, busy) and fits?(request, group, free),
      do: {[request | group], rest, busy},
      else: {group, [request | rest], request.parts ++ busy}
  end

  defp conflict?(_parts, []), do: false
  defp conflict?(parts, busy), do: :all in parts or Enum.any?([:all | parts], &(&1 in busy))

  defp fits?(request, [], free), do: Map.fetch!(free, request.alone?)

  defp fits?(request, [last | _] = group, _free) do
    count = group |> Enum.map(&length(&1.transactions)) |> Enum.sum()

    request.sql == last.sql and request.alone? == last.alone? and
      count + length(request.transactions) <= @at_once and
      (not request.alone? or request.parts == last.parts)
  end

  # In the process of a group

  defp commit([%{sql: sql, alone?: alone?} | _] = requests, {committed, last}) do
    now = System.monotonic_time(:millisecond)
    {late, requests} = Enum.split_with(requests, &(&1.deadline < now))

    for request <- late do
      message = "the database was busy with other writes for too long; nothing was written"
      reply(request, all(request.transactions, error(:busy, message)))
    end

    parts = requests |> Enum.flat_map(& &1.parts) |> Enum.uniq()
    waits? = alone? or :all in parts
    handle = fn waits? -> SQL.of_parts(sql, parts, if(waits?, do: :wait, else: :now)) end
    transactions = Enum.flat_map(requests, & &1.transactions)

    results =
      case results(transactions, handle.(waits?), last) do
        {:error, %SQL.Error{kind: :busy}} when not waits? -> exit(:busy)
        {:error, :each_alone} -> Enum.map(transactions, &alone(&1, handle.(true), last))
        {:error, _error} = error -> all(transactions, error)
        {:ok, results} -> results
      end

    values = for {:ok, value} <- results, do: value
    if values != [], do: committed.(values)

    Enum.reduce(requests, results, fn request, results ->
      {own, others} = Enum.split(results, length(request.transactions))
      reply(request, own)
      others
    end)
  end

  # Their results, or the error of all.
  defp results([], _sql, _last), do: {:ok, []}

  defp results([one], sql, last) do
    case alone(one, sql, last) do
      {:error, %SQL.Error{kind: :busy}} = busy -> busy
      result -> {:ok, [result]}
    end
  end

  defp results(transactions, sql, last) do
    SQL.transaction(sql, fn sql ->
      with {:ok, results} <- in_savepoints(transactions, sql) do
        case for {:ok, value} <- results, do: value do
          [] -> {:ok, results}
          values -> with {:ok, values} <- last.(sql, values), do: {:ok, put(results, values)}
        end
      end
    end)
  end

  defp alone({statements, fun}, sql, last) do
    SQL.transaction(sql, statements, fn sql, found ->
      with {:ok, value} <- fun.(sql, found),
           {:ok, [value]} <- last.(sql, [value]),
           do: {:ok, value}
    end)
  catch
    kind, reason -> {:raised, kind, reason, __STACKTRACE__}
  end

  defp in_savepoints(transactions, sql) do
    results =
      Enum.reduce_while(transactions, [], fn {statements, fun}, results ->
        result =
          try do
            SQL.transaction(sql, statements, fun)
          catch
            _kind, _reason -> {:error, :each_alone}
          end

        case result do
          {:error, %SQL.Error{kind: :constraint}} -> {:cont, [result | results]}
          {:error, %SQL.Error{kind: kind}} when kind in @common -> {:halt, result}
          {:error, %SQL.Error{}} -> {:halt, {:error, :each_alone}}
          {:error, :each_alone} -> {:halt, result}
          result -> {:cont, [result | results]}
        end
      end)

    if is_list(results), do: {:ok, Enum.reverse(results)}, else: results
  end

  defp put([{:ok, _value} | results], [value | values]),
    do: [{:ok, value} | put(results, values)]

  defp put([error | results], values), do: [error | put(results, values)]
  defp put([], []), do: []

  defp reply(request, results), do: GenServer.reply(request.from, results)
  defp all(transactions, result), do: Enum.map(transactions, fn _ -> result end)
  defp error(kind, message), do: {:error, %SQL.Error{kind: kind, message: message}}
end
