defmodule Skillbook.Agent.Runs.Server do
  @moduledoc false
  # Holds the leases of a book's durable runs: renews them, gives back the run of a process that
  # is gone, and continues runs that nobody holds, some at a time.
  #
  # Each process of a run writes its rows itself, with the holder of its own lease. This process
  # waits for no writer of the database, since all runs need it.
  #
  # A book that stops gives its runs back at once; those of a node that died wait for the end of
  # their leases. A run is continued a few times only, since one that ends its node would end
  # every node in turn.

  use GenServer

  require Logger

  alias Skillbook.Agent.{Runs, State}
  alias Skillbook.Agent.Runs.Table
  alias Skillbook.Run.{Drain, Worker}
  alias Skillbook.{Book, RunError}

  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  defp name(book), do: Module.concat(book, AgentRuns)

  @doc """
  Notes that the calling process runs a run, and returns its lease; `:running` if another process
  of the book does.
  """
  @spec enter(Book.t(), String.t()) :: {:ok, Table.lease()} | {:error, :running}
  def enter(book, ref), do: GenServer.call(name(book.name), {:enter, ref}, :infinity)

  @doc "The holder of a run that the calling process has entered, or `nil`."
  @spec holder(Book.t(), String.t()) :: String.t() | nil
  def holder(book, ref), do: call(book, {:holder, ref})

  @doc "Notes that the calling process does not run a run any more."
  @spec leave(Book.t(), String.t()) :: :ok
  def leave(book, ref), do: GenServer.cast(name(book.name), {:leave, ref, self()})

  @doc "Kills the task of a run that was stopped, if the book has continued it."
  @spec stopped(Book.t(), String.t()) :: :ok
  def stopped(book, ref), do: GenServer.cast(name(book.name), {:stopped, ref})

  @doc "Looks for runs that nobody holds, soon."
  @spec look(Book.t()) :: :ok
  def look(book), do: GenServer.cast(name(book.name), :sweep)

  @doc "Continues the runs that nobody holds, for tests."
  @spec sweep(atom()) :: :ok
  def sweep(book), do: GenServer.call(name(book), :sweep, :infinity)

  # A book that has stopped has no leases.
  defp call(book, request) do
    GenServer.call(name(book.name), request, :infinity)
  catch
    :exit, _reason -> nil
  end

  @impl true
  def init(book) do
    Process.flag(:trap_exit, true)
    # `runs` has the processes of runs with their holders, by their references; `tasks` the runs
    # that are continued here by the monitors of their tasks.
    state = %{book: book, runs: %{}, tasks: %{}, failed: false}
    {:ok, state, {:continue, :sweep}}
  end

  @impl true
  def handle_continue(:sweep, state), do: {:noreply, state |> sweep_now() |> later()}

  @impl true
  def handle_call({:enter, ref}, _from, %{runs: runs} = state) when is_map_key(runs, ref),
    do: {:reply, {:error, :running}, state}

  def handle_call({:enter, ref}, {pid, _tag}, state) do
    # Of this process alone, so that it writes nothing after its run was given back.
    lease = %{holder: State.new_id(), until: until(state)}
    run = %{pid: pid, monitor: Process.monitor(pid), holder: lease.holder}
    {:reply, {:ok, lease}, put_in(state.runs[ref], run)}
  end

  def handle_call({:holder, ref}, {pid, _tag}, state) do
    case state.runs do
      %{^ref => %{pid: ^pid, holder: holder}} -> {:reply, holder, state}
      _another -> {:reply, nil, state}
    end
  end

  def handle_call(:sweep, _from, state), do: {:reply, :ok, sweep_now(state)}

  @impl true
  def handle_cast({:leave, ref, pid}, state) do
    case state.runs do
      %{^ref => %{pid: ^pid}} -> {:noreply, forget(state, ref)}
      _another -> {:noreply, state}
    end
  end

  def handle_cast({:stopped, ref}, state) do
    for {_monitor, {^ref, pid}} <- state.tasks, do: Process.exit(pid, :kill)
    {:noreply, state}
  end

  def handle_cast(:sweep, state), do: {:noreply, sweep_now(state)}

  @impl true
  def handle_info(:beat, state), do: {:noreply, state |> renew() |> sweep_now() |> later()}
  def handle_info(:sweep, state), do: {:noreply, sweep_now(state)}

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, %{tasks: tasks} = state)
      when is_map_key(tasks, monitor) do
    send(self(), :sweep)
    {:noreply, %{state | tasks: Map.delete(tasks, monitor)}}
  end

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, %{book: book} = state) do
    case Enum.find(state.runs, fn {_ref, run} -> run.monitor == monitor end) do
      {ref, %{holder: holder}} ->
        apart(fn -> Runs.release(book, ref, holder, :gone) end)
        {:noreply, forget(state, ref)}

      nil ->
        {:noreply, state}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  # The database stops after this process.
  @impl true
  def terminate(_reason, state),
    do: Runs.once(state.book, &Table.release(&1, holders(state), :stopping))

  defp forget(state, ref) do
    {%{monitor: monitor}, runs} = Map.pop!(state.runs, ref)
    Process.demonitor(monitor, [:flush])
    %{state | runs: runs}
  end

  defp renew(%{runs: runs} = state) when runs == %{}, do: state

  defp renew(%{book: book} = state) do
    {holders, until} = {holders(state), until(state)}
    apart(fn -> Runs.once(book, &Table.renew(&1, holders, until)) end)
    state
  end

  defp holders(state), do: for({_ref, %{holder: holder}} <- state.runs, do: holder)

  # In a process of its own, which ends with this one.
  defp apart(fun), do: {:ok, _pid} = Task.start_link(fun)

  # Continues as many runs as there is room for.
  defp sweep_now(state) do
    room = options(state)[:max_running] - map_size(state.tasks)

    if room > 0 and state.book.of_parts.agent != nil and options(state)[:continue] and
         Drain.state(state.book.name) == :open do
      case Runs.once(state.book, &Table.interrupted(&1, Runs.times(state.book), room)) do
        {:ok, refs} ->
          own = for {_monitor, {ref, _pid}} <- state.tasks, do: ref
          Enum.reduce(refs -- own, noted(state, nil), &start/2)

        {:error, error} ->
          noted(state, error)
      end
    else
      state
    end
  end

  defp start(ref, %{book: book} = state) do
    {:ok, pid} =
      Task.Supervisor.start_child(Worker.supervisor(book.name), fn -> continue(book, ref) end)

    put_in(state.tasks[Process.monitor(pid)], {ref, pid})
  catch
    # The book is stopping.
    :exit, _reason -> state
  end

  defp continue(book, ref) do
    case Runs.take(book, ref, []) do
      # Another node was faster, or it has ended.
      {:error, %RunError{kind: kind}} when kind in [:running, :ended, :unknown] -> :ok
      {:error, %RunError{} = error} -> Logger.warning(Exception.message(error))
      _ended -> :ok
    end
  end

  defp later(state) do
    Process.send_after(self(), :beat, max(div(options(state)[:lease], 3), 1))
    state
  end

  defp noted(state, nil), do: %{state | failed: false}
  defp noted(%{failed: true} = state, _error), do: state

  defp noted(state, error) do
    Logger.warning(
      "the book #{inspect(state.book.name)} cannot look for interrupted runs now: " <>
        Exception.message(error)
    )

    %{state | failed: true}
  end

  defp until(state), do: System.os_time(:millisecond) + options(state)[:lease]
  defp options(state), do: state.book.of_parts.durable
end
