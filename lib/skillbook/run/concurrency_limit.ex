defmodule Skillbook.Run.ConcurrencyLimit do
  @moduledoc false
  # How many handlers run at a time, in a book and of one skill. Who finds no room waits; the longest waiting whose skill
  # has room comes first, so that a skill that is full holds up no other. A handler's own commands take no room of the
  # book's, and none of a skill that it is called for: their caller has it, and waits for them.

  use GenServer

  alias Skillbook.{Book, BusyError, Telemetry}

  # What a slot or a waiting call takes: room of the book, of the skill, or of neither.
  @typep share :: {name :: String.t(), of_book :: boolean(), of_skill :: boolean()}

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc """
  Waits for room for the worker of a skill, which the calling process is going to let run. So many of the skill run at a time;
  the room is free again at `leave/2` and when the worker ends.
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

  @spec leave(Book.t(), pid()) :: :ok
  def leave(book, worker), do: GenServer.cast(name(book.name), {:leave, worker})

  defp name(book), do: Module.concat(book, Gate)

  # State: `running` and `skills` count the slots; `calls` has all calls by their worker, those that run and those that wait;
  # `waiting` has the latter in their order, by share.

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
       waiting: %{},
       number: 0
     }}
  end

  @impl true
  def handle_call({:enter, worker, callers, skill, limit}, from, state) do
    held = for pid <- callers, %{since: nil, share: {name, _, _}} <- [state.calls[pid]], do: name
    share = {skill, held == [], skill not in held}
    call = %{share: share, limit: limit, ref: Process.monitor(worker), since: nil}

    if room?(state, share, limit) do
      {:reply, :ok, take(state, worker, call)}
    else
      timer = Process.send_after(self(), {:expired, worker}, state.max_wait)

      call =
        Map.merge(call, %{
          from: from,
          timer: timer,
          since: System.monotonic_time(),
          number: state.number
        })

      {:noreply, put_waiting(%{state | number: state.number + 1}, worker, call)}
    end
  end

  @impl true
  def handle_cast({:leave, worker}, state), do: {:noreply, gone(state, worker)}

  @impl true
  def handle_info({:DOWN, _ref, :process, worker, _reason}, state),
    do: {:noreply, gone(state, worker)}

  def handle_info({:expired, worker}, state) do
    case state.calls do
      %{^worker => %{since: since} = call} when since != nil ->
        GenServer.reply(call.from, :busy)
        tell(state, call, false)
        {:noreply, gone(state, worker)}

      # It got its room when the time was just over.
      _ ->
        {:noreply, state}
    end
  end

  @spec room?(map(), share(), pos_integer() | :infinity) :: boolean()
  defp room?(state, {skill, of_book, of_skill}, limit) do
    # Every number is less than :infinity.
    (not of_book or state.running < state.limit) and
      (not of_skill or Map.get(state.skills, skill, 0) < limit)
  end

  defp take(state, worker, call), do: count(put_in(state.calls[worker], call), call.share, 1)

  defp gone(state, worker) do
    case pop_in(state.calls[worker]) do
      {nil, state} ->
        state

      {%{since: nil} = call, state} ->
        Process.demonitor(call.ref, [:flush])
        state |> count(call.share, -1) |> serve()

      {call, state} ->
        Process.demonitor(call.ref, [:flush])
        Process.cancel_timer(call.timer)
        drop_waiting(state, call)
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

  # Of each share only the first can be next, so this takes as long as there are shares, not as there are calls.
  defp serve(state) do
    heads = for {_share, queue} <- state.waiting, do: :gb_trees.smallest(queue)

    next =
      Enum.filter(heads, fn {_, worker} ->
        room?(state, state.calls[worker].share, state.calls[worker].limit)
      end)

    case Enum.min(next, fn -> nil end) do
      nil ->
        state

      {_number, worker} ->
        call = state.calls[worker]
        Process.cancel_timer(call.timer)
        GenServer.reply(call.from, :ok)
        tell(state, call, true)
        state |> drop_waiting(call) |> take(worker, %{call | since: nil}) |> serve()
    end
  end

  defp put_waiting(state, worker, call) do
    queue = Map.get(state.waiting, call.share, :gb_trees.empty())
    waiting = Map.put(state.waiting, call.share, :gb_trees.insert(call.number, worker, queue))
    %{state | waiting: waiting, calls: Map.put(state.calls, worker, call)}
  end

  defp drop_waiting(state, call) do
    queue = :gb_trees.delete(call.number, state.waiting[call.share])

    if :gb_trees.is_empty(queue),
      do: %{state | waiting: Map.delete(state.waiting, call.share)},
      else: put_in(state.waiting[call.share], queue)
  end

  defp tell(state, call, granted) do
    {skill, _, _} = call.share

    Telemetry.event(
      [:skillbook, :queue, :wait],
      %{duration: System.monotonic_time() - call.since},
      %{
        book: state.book,
        skill: skill,
        granted: granted
      }
    )
  end
end
