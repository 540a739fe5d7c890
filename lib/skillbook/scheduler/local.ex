defmodule Skillbook.Scheduler.Local do
  @moduledoc """
  The engine that comes with Skillbook: a process of the book, which sleeps until the next time of `Skillbook.Schedule`.

  It is what a book with a database uses if nothing else is said.
  """

  @behaviour Skillbook.Scheduler

  use GenServer

  alias Skillbook.Scheduler.{Clock, Queue, Server}
  alias Skillbook.{Book, Scheduler}

  # A clock may be put forward or back while it sleeps, and a machine may sleep itself.
  @longest 60_000

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

  @doc "Looks at the book's clock at once, for tests that set it."
  @spec tick(atom()) :: :ok
  def tick(book), do: GenServer.call(name(book), :tick)

  defp name(book), do: Module.concat(book, "Scheduler.Local")

  @impl GenServer
  def init(book), do: {:ok, %{book: book, queue: Queue.new(), timer: nil, looked: nil}}

  @impl GenServer
  def handle_call(:clear, _from, state), do: {:reply, :ok, sleep(%{state | queue: Queue.new()})}

  def handle_call({:put, key, schedule, now}, _from, state),
    do: {:reply, {:ok, key}, sleep(%{state | queue: Queue.put(state.queue, key, schedule, now)})}

  def handle_call({:delete, key}, _from, state),
    do: {:reply, :ok, sleep(%{state | queue: Queue.delete(state.queue, key)})}

  def handle_call(:tick, _from, state), do: {:reply, :ok, look(state)}

  @impl GenServer
  def handle_info(:look, state), do: {:noreply, look(state)}

  defp look(state) do
    now = now(state)
    {due, queue} = state.queue |> since(state.looked, now) |> Queue.due(now)
    for {key, first, last} <- due, do: Server.due(state.book, key, first, last)
    sleep(%{state | queue: queue, looked: now})
  end

  # A clock that was wrong and is put right again would have all wait for times that are far away. What has fired is not
  # fired again.
  defp since(queue, looked, now) do
    if looked != nil and DateTime.diff(looked, now) > Clock.late(),
      do: Queue.again(queue, now),
      else: queue
  end

  defp sleep(state) do
    if state.timer, do: Process.cancel_timer(state.timer)
    next = Queue.next(state.queue)
    %{state | timer: next && Process.send_after(self(), :look, delay(next, state))}
  end

  # Rounded up: a millisecond too early would find nothing due.
  defp delay(next, state),
    do: next |> DateTime.diff(now(state), :millisecond) |> Kernel.+(1) |> max(0) |> min(@longest)

  # A process of the book is started before the book can be asked for.
  defp now(state) do
    case Book.find(state.book) do
      nil -> DateTime.utc_now()
      book -> Clock.now(book)
    end
  end
end
