defmodule Skillbook.Agent.Runs.Server do
  @moduledoc false
  # Holds the leases of a book's durable runs: renews them, gives back the run of a process that
  # is gone, and continues runs that nobody holds, some at a time.
  #
  # A book that stops gives its runs back at once; those of a node that died wait for the end of
  # their leases. A run is continued a few times only, since one that ends its node would end
  # every node in turn.

  use GenServer

  require Logger

  alias Skillbook.Agent.{Runs, State}
  alias Skillbook.Agent.Runs.Table
  alias Skillbook.Run.{Drain, Worker}
  alias Skillbook.SQL.Error
  alias Skillbook.{Book, RunError}

  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  defp name(book), do: Module.concat(book, AgentRuns)

  @doc "Notes that the calling process runs a run, and returns its lease."
  @spec enter(Book.t(), String.t()) :: Table.lease()
  def enter(book, ref), do: GenServer.call(name(book.name), {:enter, ref, self()}, :infinity)

  @doc """
  Gives a run back: `:stopping` with its book, `:gone` with its process; `:lost` if it belongs to
  another one.
  """
  @spec leave(Book.t(), String.t(), :stopping | :gone | :lost) :: :ok
  def leave(book, ref, why), do: call(book, {:leave, ref, why})

  @doc "Stores the end of a run."
  @spec finish(Book.t(), String.t(), map()) :: :ok
  def finish(book, ref, ended), do: call(book, {:finish, ref, ended})

  @doc "Takes a run that nobody holds for the calling process, and returns its holder."
  @spec claim(Book.t(), String.t(), :any | :interrupted) ::
          {:ok, String.t()} | {:error, :lost | Error.t()}
  def claim(book, ref, which),
    do: GenServer.call(name(book.name), {:claim, ref, which, self()}, :infinity)

  @doc "Gives a run up."
  @spec fail(Book.t(), String.t(), String.t()) :: :ok
  def fail(book, ref, reason), do: call(book, {:fail, ref, reason})

  @doc "Kills the task of a run that was stopped, if the book has continued it."
  @spec stopped(Book.t(), String.t()) :: :ok
  def stopped(book, ref), do: call(book, {:stopped, ref})

  @doc "Continues the runs that nobody holds, for tests."
  @spec sweep(atom()) :: :ok
  def sweep(book), do: GenServer.call(name(book), :sweep, :infinity)

  # The lease of a book that has stopped passes, and its run is continued.
  defp call(book, request) do
    GenServer.call(name(book.name), request, :infinity)
  catch
    :exit, _reason -> :ok
  end

  @impl true
  def init(book) do
    Process.flag(:trap_exit, true)
    # `runs` has the monitors of processes by the references of their runs; `tasks` the runs that
    # are continued here by the monitors of their tasks.
    state = %{book: book, holder: State.new_id(), runs: %{}, tasks: %{}, failed: false}
    {:ok, state, {:continue, :sweep}}
  end

  @impl true
  def handle_continue(:sweep, state), do: {:noreply, state |> sweep_now() |> later()}

  @impl true
  def handle_call({:enter, ref, pid}, _from, state),
    do: {:reply, lease(state), put_in(state.runs[ref], Process.monitor(pid))}

  def handle_call({:claim, ref, _which, _pid}, _from, %{runs: runs} = state)
      when is_map_key(runs, ref),
      do: {:reply, {:error, :lost}, state}

  def handle_call({:claim, ref, which, pid}, _from, state) do
    times = Runs.times(state.book)

    case query(state, &Table.claim(&1, ref, lease(state), times, which)) do
      :ok -> {:reply, {:ok, state.holder}, put_in(state.runs[ref], Process.monitor(pid))}
      error -> {:reply, error, state}
    end
  end

  def handle_call({:fail, ref, reason}, _from, state) do
    now = DateTime.truncate(Book.now(state.book), :second)
    query(state, &Table.fail(&1, ref, state.holder, now, reason))
    Runs.publish(state.book, ref)
    {:reply, :ok, forget(state, ref)}
  end

  def handle_call({:stopped, ref}, _from, state) do
    for {_monitor, {^ref, pid}} <- state.tasks, do: Process.exit(pid, :kill)
    {:reply, :ok, state}
  end

  def handle_call({:leave, ref, why}, _from, state) do
    if why != :lost, do: query(state, &Table.release(&1, state.holder, ref, why))
    {:reply, :ok, state |> forget(ref) |> sweep_soon()}
  end

  def handle_call({:finish, ref, ended}, _from, state) do
    with {:error, error} <- query(state, &Table.finish(&1, ref, state.holder, ended)),
         do: log(state, ref, error)

    Runs.publish(state.book, ref)
    {:reply, :ok, forget(state, ref)}
  end

  def handle_call(:sweep, _from, state), do: {:reply, :ok, sweep_now(state)}

  @impl true
  def handle_info(:beat, state), do: {:noreply, state |> renew() |> sweep_now() |> later()}
  def handle_info(:sweep, state), do: {:noreply, sweep_now(state)}

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, %{tasks: tasks} = state)
      when is_map_key(tasks, monitor) do
    send(self(), :sweep)
    {:noreply, %{state | tasks: Map.delete(tasks, monitor)}}
  end

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    case Enum.find(state.runs, fn {_ref, other} -> other == monitor end) do
      {ref, _monitor} ->
        query(state, &Table.release(&1, state.holder, ref, :gone))
        {:noreply, state |> forget(ref) |> sweep_soon()}

      nil ->
        {:noreply, state}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  # The database stops after this process.
  @impl true
  def terminate(_reason, state),
    do: query(state, &Table.release(&1, state.holder, nil, :stopping))

  defp forget(state, ref) do
    {monitor, runs} = Map.pop(state.runs, ref)
    if monitor, do: Process.demonitor(monitor, [:flush])
    %{state | runs: runs}
  end

  defp renew(%{runs: runs} = state) when runs == %{}, do: state

  defp renew(state) do
    query(state, &Table.renew(&1, lease(state), Map.keys(state.runs)))
    state
  end

  # Continues as many runs as there is room for.
  defp sweep_now(state) do
    room = options(state)[:max_running] - map_size(state.tasks)

    if room > 0 and state.book.of_parts.agent != nil and options(state)[:continue] and
         Drain.state(state.book.name) == :open do
      case query(state, &Table.interrupted(&1, Runs.times(state.book), room)) do
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

  # One that a task is about to claim is found again by the next sweep.
  defp sweep_soon(state) do
    send(self(), :sweep)
    state
  end

  defp later(state) do
    Process.send_after(self(), :beat, max(div(options(state)[:lease], 3), 1))
    state
  end

  # While the database restarts there is no handle, and its processes may end during a call.
  defp query(state, fun) do
    fun.(Book.sql(state.book))
  rescue
    ArgumentError -> {:error, Error.closed()}
  catch
    :exit, _reason -> {:error, Error.closed()}
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

  defp log(_state, ref, error) do
    reason = if is_exception(error), do: Exception.message(error), else: "it belongs to another"
    Logger.warning("the end of the durable run #{ref} was not stored: #{reason}")
  end

  defp lease(state), do: %{holder: state.holder, until: clock() + options(state)[:lease]}
  defp options(state), do: state.book.of_parts.durable
  defp clock, do: System.os_time(:millisecond)
end
