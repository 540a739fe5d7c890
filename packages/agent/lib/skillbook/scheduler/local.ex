defmodule Skillbook.Scheduler.Local do
  @moduledoc """
  The default engine: a process of the book that sleeps until the next time of a schedule.

  ## Usage

  A book with a database uses it unless `:scheduler` names another engine:

      {Skillbook, name: MyApp.Skills, sources: ["skills"], store: "skillbook.db"}

  On several nodes each book has such a process. All of them wake up at the same time, and the
  database decides which one runs the skill; see `Skillbook.Scheduler`.

  ## Tests

  `tick/1` checks the clock at once, so a test with `schedules: [clock: …]` need not wait:

      Skillbook.Scheduler.Local.tick(MyApp.Skills)
  """

  @behaviour Skillbook.Scheduler

  use GenServer

  alias Skillbook.Schedule.Clock
  alias Skillbook.Scheduler.{Queue, Server}
  alias Skillbook.{Book, Scheduler}

  # Milliseconds. The clock may be changed and the machine may be suspended during a sleep.
  @max_sleep 60_000

  @impl Scheduler
  def children(book, nil),
    do: [
      %{id: __MODULE__, start: {GenServer, :start_link, [__MODULE__, book, [name: name(book)]]}}
    ]

  @impl Scheduler
  def clear(book, nil), do: GenServer.call(name(book), :clear)

  @impl Scheduler
  def put(book, nil, job, now), do: GenServer.call(name(book), {:put, job.key, job.schedule, now})

  @impl Scheduler
  def delete(book, nil, key), do: GenServer.call(name(book), {:delete, key})

  @doc "Checks the book's clock now, for tests that set it."
  @spec tick(atom()) :: :ok
  def tick(book), do: GenServer.call(name(book), :tick)

  defp name(book), do: Module.concat(book, "Scheduler.Local")

  @impl GenServer
  def init(book), do: {:ok, %{book: book, queue: Queue.new(), timer: nil, last_tick: nil}}

  @impl GenServer
  def handle_call(:clear, _from, state), do: {:reply, :ok, sleep(%{state | queue: Queue.new()})}

  def handle_call({:put, key, schedule, now}, _from, state),
    do: {:reply, {:ok, key}, sleep(%{state | queue: Queue.put(state.queue, key, schedule, now)})}

  def handle_call({:delete, key}, _from, state),
    do: {:reply, :ok, sleep(%{state | queue: Queue.delete(state.queue, key)})}

  def handle_call(:tick, _from, state), do: {:reply, :ok, fire_due(state)}

  @impl GenServer
  def handle_info(:tick, state), do: {:noreply, fire_due(state)}

  defp fire_due(state) do
    now = now(state)
    {due, queue} = state.queue |> reset_after_jump(state.last_tick, now) |> Queue.due(now)
    for {key, first, last} <- due, do: Server.fire(state.book, key, first, last)
    sleep(%{state | queue: queue, last_tick: now})
  end

  # If the clock was set back, the next times are too far away. Nothing fires twice, since claims
  # are unique.
  defp reset_after_jump(queue, last_tick, now) do
    if last_tick != nil and DateTime.diff(last_tick, now) > Clock.max_delay(),
      do: Queue.reset(queue, now),
      else: queue
  end

  defp sleep(state) do
    if state.timer, do: Process.cancel_timer(state.timer)
    next = Queue.next(state.queue)
    %{state | timer: next && Process.send_after(self(), :tick, delay(next, state))}
  end

  # One more millisecond, so that the time is due after it.
  defp delay(next, state) do
    left = DateTime.diff(next, now(state), :millisecond)
    (left + 1) |> max(0) |> min(@max_sleep)
  end

  # This process starts before the book is registered.
  defp now(state) do
    case Book.find(state.book) do
      nil -> DateTime.utc_now()
      book -> Clock.now(book)
    end
  end
end
