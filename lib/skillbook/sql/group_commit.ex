defmodule Skillbook.SQL.GroupCommit do
  @moduledoc false
  # Commits transactions that wait at the same time together.
  #
  # A commit waits for the disk or for round trips to a server, and writers of one database follow
  # each other. So a process runs their functions in one transaction, each in a savepoint: each
  # has its own answer, and its error or exception undoes its own changes only. A writer that is
  # alone has a transaction of its own.
  #
  # The functions run in this process. They must not depend on the caller's, and may run again: if
  # one of them fails in an unexpected way, nothing is committed, and each runs alone.

  use GenServer

  alias Skillbook.SQL

  @type transaction ::
          {[{String.t(), [SQL.param()]}],
           (SQL.t(), [SQL.result()] -> {:ok, term()} | {:error, term()})}

  # A writer that comes during a commit waits for it and the next one.
  @at_once 64

  # Long enough for a database to restart.
  @patience 15_000

  # Errors of the database and not of one transaction. The others would wait for the same.
  @common [:busy, :closed, :timeout, :lost, :cannot_open, :moved, :corrupt, :readonly]

  @doc """
  Starts a process of that name.

  `committed` is called with the values of transactions that are committed, in their order, before
  their callers get them.
  """
  @spec start_link(atom(), ([term()] -> term())) :: GenServer.on_start()
  def start_link(name, committed) do
    # Its garbage has the texts of all writes.
    options = [name: name, hibernate_after: 1_000, spawn_opt: [fullsweep_after: 20]]
    GenServer.start_link(__MODULE__, committed, options)
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
    transactions
    |> Enum.chunk_every(@at_once)
    |> Enum.flat_map(&call(server, sql, &1, parts, patience))
    |> Enum.map(&answer/1)
  end

  defp call(server, sql, transactions, parts, patience) do
    deadline = System.monotonic_time(:millisecond) + patience
    request = %{sql: sql, transactions: transactions, parts: parts, deadline: deadline}
    GenServer.call(server, {:run, request}, :infinity)
  catch
    :exit, {:noproc, _call} ->
      all(transactions, error(:closed, "the database's writer does not run; nothing was written"))

    :exit, _reason ->
      message = "the database's writer stopped before it answered; the write may have been made"
      all(transactions, error(:lost, message))
  end

  defp answer({:raised, kind, reason, stack}), do: :erlang.raise(kind, reason, stack)
  defp answer(result), do: result

  @impl true
  def init(committed), do: {:ok, %{committed: committed, waiting: []}}

  @impl true
  def handle_call({:run, request}, from, state) do
    # The message comes after those of all who wait already.
    if state.waiting == [], do: send(self(), :commit)
    {:noreply, %{state | waiting: [Map.put(request, :from, from) | state.waiting]}}
  end

  @impl true
  def handle_info(:commit, state) do
    state.waiting
    |> Enum.reverse()
    |> Enum.chunk_while({[], 0}, &add/2, fn {group, _count} -> {:cont, group, nil} end)
    |> Enum.each(&commit(Enum.reverse(&1), state.committed))

    {:noreply, %{state | waiting: []}}
  end

  def handle_info(_message, state), do: {:noreply, state}

  # A group is of one handle.
  defp add(request, {[], 0}), do: {:cont, {[request], length(request.transactions)}}

  defp add(request, {[%{sql: sql} | _] = group, count}) do
    added = count + length(request.transactions)

    if added <= @at_once and sql == request.sql,
      do: {:cont, {[request | group], added}},
      else: {:cont, group, {[request], length(request.transactions)}}
  end

  defp commit([%{sql: sql} | _] = requests, committed) do
    now = System.monotonic_time(:millisecond)
    {late, requests} = Enum.split_with(requests, &(&1.deadline < now))

    for request <- late do
      message = "the database was busy with other writes for too long; nothing was written"
      GenServer.reply(request.from, all(request.transactions, error(:busy, message)))
    end

    parts = Enum.flat_map(requests, & &1.parts)
    results = requests |> Enum.flat_map(& &1.transactions) |> results(sql, parts)
    values = for {:ok, value} <- results, do: value
    if values != [], do: committed.(values)

    Enum.reduce(requests, results, fn request, results ->
      {own, others} = Enum.split(results, length(request.transactions))
      GenServer.reply(request.from, own)
      others
    end)
  end

  defp results([], _sql, _parts), do: []
  defp results(transactions, sql, parts), do: results(transactions, SQL.of_parts(sql, parts))

  defp results([one], sql), do: [alone(one, sql)]

  defp results(transactions, sql) do
    together =
      SQL.transaction(sql, fn sql ->
        Enum.reduce_while(transactions, {:ok, []}, fn transaction, {:ok, results} ->
          case alone(transaction, sql) do
            {:error, %SQL.Error{kind: :constraint}} = result -> {:cont, {:ok, [result | results]}}
            {:error, %SQL.Error{kind: kind}} = error when kind in @common -> {:halt, error}
            {:error, %SQL.Error{}} -> {:halt, {:error, :each_alone}}
            {:raised, _kind, _reason, _stack} -> {:halt, {:error, :each_alone}}
            result -> {:cont, {:ok, [result | results]}}
          end
        end)
      end)

    case together do
      {:ok, results} -> Enum.reverse(results)
      {:error, :each_alone} -> Enum.map(transactions, &alone(&1, sql))
      {:error, error} -> all(transactions, {:error, error})
    end
  end

  defp alone({statements, fun}, sql) do
    SQL.transaction(sql, statements, fun)
  catch
    kind, reason -> {:raised, kind, reason, __STACKTRACE__}
  end

  defp all(transactions, result), do: Enum.map(transactions, fn _ -> result end)
  defp error(kind, message), do: {:error, %SQL.Error{kind: kind, message: message}}
end
