defmodule Skillbook.SQL.Postgres.Pool do
  @moduledoc false
  # Lends connections to processes.
  #
  # Only one writer of this node gets a connection at a time, or one for each part of the
  # database; otherwise writers that wait for the server's lock could hold all connections.
  # Writers have at most half of them. A connection that is lost, or whose borrower died, is
  # closed, and replaced on demand. While the server cannot be reached, the pool makes one attempt
  # at a time, with growing pauses.

  use GenServer

  alias Skillbook.SQL.Postgres.Library
  alias Skillbook.SQL.Error

  # Milliseconds between attempts to connect.
  @min_pause 50
  @max_pause 1000

  def start_link({name, _server, _size, _queue_timeout} = arg),
    do: GenServer.start_link(__MODULE__, arg, name: pool(name))

  defp pool(name), do: Module.concat(name, Pool)

  @doc "The running pool of a database, or `nil`."
  def of(name), do: :persistent_term.get({__MODULE__, name}, nil)

  @typedoc """
  The parts that a writer changes; an empty list stands for all. With `:now` it does not wait for
  other writers of these parts.
  """
  @type kind :: :read | {:write, [integer()], :wait | :now}

  @doc "Borrows a connection to read, or to write when no other process here writes to the same."
  @spec checkout(pid(), kind()) :: {:ok, reference()} | {:error, Error.t()}
  def checkout(pool, kind) do
    # The pool has its own time limit. One here would leave a late reply in the mailbox.
    GenServer.call(pool, {:checkout, kind}, :infinity)
  catch
    :exit, _reason -> {:error, Error.closed()}
  end

  def checkin(pool), do: GenServer.cast(pool, {:checkin, self()})

  @impl true
  def init({name, server, size, queue_timeout}) do
    Process.flag(:trap_exit, true)
    :persistent_term.put({__MODULE__, name}, self())

    {:ok,
     %{
       name: name,
       server: server,
       size: size,
       queue_timeout: queue_timeout,
       idle: [],
       # `{monitor, connection, kind}` by the borrower's pid.
       lent: %{},
       # Waiting callers by their number, in order of arrival.
       waiting: :gb_trees.empty(),
       next: 0,
       connecting: MapSet.new(),
       pause: nil,
       failure: nil
     }}
  end

  @impl true
  def handle_call({:checkout, {:write, parts, :now} = kind}, from, state) do
    waiting = for %{kind: {:write, parts, _}} <- :gb_trees.values(state.waiting), do: parts
    taken = Enum.reduce(waiting ++ writers(state), MapSet.new(), &taken/2)

    if waits?(parts, taken),
      do: {:reply, {:error, Error.busy(0)}, state},
      else: checkout(kind, from, state)
  end

  def handle_call({:checkout, kind}, from, state), do: checkout(kind, from, state)

  defp checkout(kind, {pid, _tag} = from, state) do
    number = state.next
    timer = Process.send_after(self(), {:waited, number}, state.queue_timeout)

    waiter = %{
      from: from,
      kind: kind,
      timer: timer,
      monitor: Process.monitor(pid),
      pid: pid,
      is_late: false
    }

    {:noreply,
     serve(%{state | next: number + 1, waiting: :gb_trees.insert(number, waiter, state.waiting)})}
  end

  @impl true
  def handle_cast({:checkin, pid}, state) do
    case pop_in(state.lent[pid]) do
      {nil, state} ->
        {:noreply, state}

      {{monitor, session, _kind}, state} ->
        Process.demonitor(monitor, [:flush])
        {:noreply, state |> give_back(session) |> serve()}
    end
  end

  @impl true
  def handle_info({:DOWN, monitor, :process, pid, _reason}, state) do
    case state.lent do
      %{^pid => {^monitor, session, _kind}} ->
        Library.postgres_close(session)
        {:noreply, serve(%{state | lent: Map.delete(state.lent, pid)})}

      _ ->
        {:noreply, forget(state, &(&1.monitor == monitor))}
    end
  end

  def handle_info({:waited, number}, state) do
    case :gb_trees.lookup(number, state.waiting) do
      {:value, waiter} ->
        state = %{
          state
          | waiting: :gb_trees.update(number, %{waiter | is_late: true}, state.waiting)
        }

        # Opening a connection has its own time limit.
        {:noreply, if(opens_for?(state, waiter), do: state, else: dismiss_late(state))}

      :none ->
        {:noreply, state}
    end
  end

  def handle_info({reference, reply}, %{connecting: connecting} = state)
      when is_reference(reference) do
    if reference in connecting do
      state = connected(%{state | connecting: MapSet.delete(connecting, reference)}, reply)
      {:noreply, dismiss_late(state)}
    else
      {:noreply, state}
    end
  end

  def handle_info(:reconnect, %{pause: {:until, pause}} = state),
    do: {:noreply, serve(%{state | pause: {:over, pause}})}

  # An attempt that was already under way has succeeded or failed for good since.
  def handle_info(:reconnect, state), do: {:noreply, state}

  # A lost idle connection is noticed when it is lent.
  def handle_info(_message, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state) do
    :persistent_term.erase({__MODULE__, state.name})
    for session <- state.idle, do: Library.postgres_close(session)
    for {_pid, {_monitor, session, _kind}} <- state.lent, do: Library.postgres_close(session)
  end

  defp connected(state, {:ok, session}) do
    serve(%{state | idle: [session | state.idle], pause: nil, failure: nil})
  end

  defp connected(state, {:error, error, temporary?}) do
    error = Error.of(error)
    state = %{state | failure: error}

    if temporary? do
      pause = if state.pause, do: min(elem(state.pause, 1) * 2, @max_pause), else: @min_pause

      Process.send_after(self(), :reconnect, pause)
      %{state | pause: {:until, pause}}
    else
      for waiter <- :gb_trees.values(state.waiting), do: answer(waiter, {:error, error})
      %{state | waiting: :gb_trees.empty(), pause: nil}
    end
  end

  # Lends idle connections in order of arrival, and opens more if needed.
  defp serve(state) do
    case first(:gb_trees.iterator(state.waiting), busy(state)) do
      nil ->
        state

      {number, waiter} ->
        case take(state.idle) do
          {nil, []} ->
            connect(%{state | idle: []})

          {session, idle} ->
            Process.cancel_timer(waiter.timer)
            GenServer.reply(waiter.from, {:ok, session})
            lent = Map.put(state.lent, waiter.pid, {waiter.monitor, session, waiter.kind})
            waiting = :gb_trees.delete(number, state.waiting)
            serve(%{state | idle: idle, lent: lent, waiting: waiting})
        end
    end
  end

  # The parts to which nobody else may write now, or `:all`.
  defp busy(%{size: size} = state) do
    writers = writers(state)

    if length(writers) >= max(div(size, 2), 1),
      do: :all,
      else: Enum.reduce(writers, MapSet.new(), &taken/2)
  end

  # The parts of each writer.
  defp writers(state), do: for({_, {_, _, {:write, parts, _}}} <- state.lent, do: parts)

  defp taken(_parts, :all), do: :all
  defp taken([], _busy), do: :all
  defp taken(parts, busy), do: MapSet.union(busy, MapSet.new(parts))

  # A writer that has to wait is not overtaken by later ones of its parts.
  defp first(iterator, busy) do
    case :gb_trees.next(iterator) do
      :none ->
        nil

      {number, %{kind: {:write, parts, _}} = waiter, iterator} ->
        if waits?(parts, busy), do: first(iterator, taken(parts, busy)), else: {number, waiter}

      {number, waiter, _iterator} ->
        {number, waiter}
    end
  end

  defp waits?(_parts, :all), do: true
  defp waits?([], busy), do: MapSet.size(busy) > 0
  defp waits?(parts, busy), do: Enum.any?(parts, &MapSet.member?(busy, &1))

  defp take([]), do: {nil, []}

  defp take([session | idle]) do
    if Library.postgres_usable(session), do: {session, idle}, else: take(idle)
  end

  defp connect(%{pause: {:until, _}} = state), do: state

  defp connect(state) do
    opening = MapSet.size(state.connecting)
    # After a failure, one attempt shows whether the server is back.
    wanted = if state.pause, do: 1, else: :gb_trees.size(state.waiting)

    if opening < wanted and opening + map_size(state.lent) < state.size do
      reference = make_ref()
      Library.postgres_connect(state.server, reference)
      %{state | connecting: MapSet.put(state.connecting, reference)}
    else
      state
    end
  end

  defp give_back(state, session) do
    if Library.postgres_usable(session) do
      %{state | idle: [session | state.idle]}
    else
      Library.postgres_close(session)
      state
    end
  end

  defp forget(state, gone?) do
    waiting =
      for {number, waiter} <- :gb_trees.to_list(state.waiting),
          not gone?.(waiter),
          do: {number, waiter}

    %{state | waiting: :gb_trees.from_orddict(waiting)}
  end

  defp opens_for?(state, waiter) do
    MapSet.size(state.connecting) > 0 and not waits_for_writers?(state, waiter.kind)
  end

  defp waits_for_writers?(_state, :read), do: false
  defp waits_for_writers?(state, {:write, parts, _}), do: waits?(parts, busy(state))

  defp dismiss_late(state) do
    for %{is_late: true} = waiter <- :gb_trees.values(state.waiting),
        do: answer(waiter, {:error, timeout_error(state, waiter)})

    forget(state, & &1.is_late)
  end

  defp answer(waiter, reply) do
    Process.cancel_timer(waiter.timer)
    Process.demonitor(waiter.monitor, [:flush])
    GenServer.reply(waiter.from, reply)
  end

  defp timeout_error(%{failure: %Error{} = failure}, _waiter), do: failure

  defp timeout_error(state, %{kind: kind}) do
    if kind != :read and writers(state) != [],
      do: Error.busy(state.queue_timeout),
      else: none_free(state)
  end

  defp none_free(state) do
    message =
      "none of the #{state.size} connections was free within #{state.queue_timeout} ms; try again"

    %Error{kind: :busy, message: message}
  end
end
