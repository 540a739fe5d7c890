defmodule Skillbook.Run.ConcurrencyLimit do
  @moduledoc false
  # Limits how many handlers run at once, per book and per skill. Calls over the limit queue; the
  # oldest call whose skill has a free slot goes first, so a busy skill never blocks another.
  # Nested calls use their caller's slot, so a handler that runs commands cannot deadlock.

  use GenServer

  alias Skillbook.{Book, BusyError, Telemetry}

  # Which limits a call counts against: the book's, the skill's, or neither.
  @typep slot :: {name :: String.t(), of_book :: boolean(), of_skill :: boolean()}

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc """
  Waits for a slot for the worker of a skill, of which at most `limit` run at once.

  The caller starts the worker's work afterwards. The slot is released by `leave/2` or when the
  worker ends.
  """
  @spec enter(Book.t(), pid(), String.t(), pos_integer() | :infinity) ::
          :ok | {:error, BusyError.t()}
  def enter(book, worker, skill, limit) do
    callers = [self() | Process.get(:"$callers", [])]

    case GenServer.call(name(book.name), {:enter, worker, callers, skill, limit}, :infinity) do
      :ok -> :ok
      :busy -> {:error, %BusyError{name: skill, max_wait: book.max_wait}}
    end
  end

  @doc "Releases the slot of a worker."
  @spec leave(Book.t(), pid()) :: :ok
  def leave(book, worker), do: GenServer.cast(name(book.name), {:leave, worker})

  defp name(book), do: Module.concat(book, ConcurrencyLimit)

  # State: `running` and `skills` count the slots in use. `calls` maps workers to their calls,
  # running (`since: nil`) and queued. `queues` has the queued workers by slot, each queue ordered
  # by number.

  @impl true
  def init(book) do
    {:ok,
     %{
       book: book.name,
       limit: book.max_running,
       max_wait: book.max_wait,
       running: 0,
       skills: %{},
       calls: %{},
       queues: %{},
       number: 0
     }}
  end

  @impl true
  def handle_call({:enter, worker, callers, skill, limit}, from, state) do
    outer = for pid <- callers, %{since: nil, slot: {name, _, _}} <- [state.calls[pid]], do: name
    slot = {skill, outer == [], skill not in outer}
    call = %{slot: slot, limit: limit, ref: Process.monitor(worker), since: nil}

    if free?(state, slot, limit) do
      {:reply, :ok, grant(state, worker, call)}
    else
      timer = Process.send_after(self(), {:expired, worker}, state.max_wait)

      call =
        Map.merge(call, %{
          from: from,
          timer: timer,
          since: System.monotonic_time(),
          number: state.number
        })

      {:noreply, enqueue(%{state | number: state.number + 1}, worker, call)}
    end
  end

  @impl true
  def handle_cast({:leave, worker}, state), do: {:noreply, release(state, worker)}

  @impl true
  def handle_info({:DOWN, _ref, :process, worker, _reason}, state),
    do: {:noreply, release(state, worker)}

  def handle_info({:expired, worker}, state) do
    case state.calls do
      %{^worker => %{since: since} = call} when since != nil ->
        GenServer.reply(call.from, :busy)
        notify(state, call, false)
        {:noreply, release(state, worker)}

      # It got a slot just as its time was over.
      _ ->
        {:noreply, state}
    end
  end

  @spec free?(map(), slot(), pos_integer() | :infinity) :: boolean()
  defp free?(state, {skill, of_book, of_skill}, limit) do
    # Every number is less than :infinity.
    (not of_book or state.running < state.limit) and
      (not of_skill or Map.get(state.skills, skill, 0) < limit)
  end

  defp grant(state, worker, call), do: count(put_in(state.calls[worker], call), call.slot, 1)

  defp release(state, worker) do
    case pop_in(state.calls[worker]) do
      {nil, state} ->
        state

      {%{since: nil} = call, state} ->
        Process.demonitor(call.ref, [:flush])
        state |> count(call.slot, -1) |> serve()

      {call, state} ->
        Process.demonitor(call.ref, [:flush])
        Process.cancel_timer(call.timer)
        dequeue(state, call)
    end
  end

  defp count(state, {skill, of_book, of_skill}, by) do
    running = if of_book, do: state.running + by, else: state.running

    %{
      state
      | running: running,
        skills: if(of_skill, do: add(state.skills, skill, by), else: state.skills)
    }
  end

  defp add(counts, key, by) do
    case Map.get(counts, key, 0) + by do
      0 -> Map.delete(counts, key)
      count -> Map.put(counts, key, count)
    end
  end

  # Only the first of each queue can be next, so the time depends on the number of queues, not of
  # calls.
  defp serve(state) do
    heads = for {_slot, queue} <- state.queues, do: :gb_trees.smallest(queue)

    next =
      Enum.filter(heads, fn {_, worker} ->
        free?(state, state.calls[worker].slot, state.calls[worker].limit)
      end)

    case Enum.min(next, fn -> nil end) do
      nil ->
        state

      {_number, worker} ->
        call = state.calls[worker]
        Process.cancel_timer(call.timer)
        GenServer.reply(call.from, :ok)
        notify(state, call, true)
        state |> dequeue(call) |> grant(worker, %{call | since: nil}) |> serve()
    end
  end

  defp enqueue(state, worker, call) do
    queue = Map.get(state.queues, call.slot, :gb_trees.empty())
    queues = Map.put(state.queues, call.slot, :gb_trees.insert(call.number, worker, queue))
    %{state | queues: queues, calls: Map.put(state.calls, worker, call)}
  end

  defp dequeue(state, call) do
    queue = :gb_trees.delete(call.number, state.queues[call.slot])

    if :gb_trees.is_empty(queue),
      do: %{state | queues: Map.delete(state.queues, call.slot)},
      else: put_in(state.queues[call.slot], queue)
  end

  defp notify(state, call, granted) do
    {skill, _, _} = call.slot

    Telemetry.event(
      [:skillbook, :queue, :wait],
      %{duration: System.monotonic_time() - call.since},
      %{book: state.book, skill: skill, granted: granted}
    )
  end
end
