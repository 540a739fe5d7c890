defmodule Skillbook.Scheduler.Server do
  @moduledoc false
  # What a book's engine works for: it registers the entries that have a schedule, runs what is due, a few at a time, keeps
  # the leases of what runs here, and looks after those that others left.

  use GenServer

  alias Skillbook.Catalog.Watcher
  alias Skillbook.Run.Worker
  alias Skillbook.SQL.Error
  alias Skillbook.Scheduler.{Clock, Firings, Job, Runner}
  alias Skillbook.{Book, Change, Firing, Schedule}

  require Logger

  # What ends its node each time must not end all of them.
  @attempts 3

  @doc "The engine of a book and the process that it works for."
  @spec children(Book.t()) :: [Supervisor.child_spec() | {module(), Book.t()}]
  def children(%Book{scheduler: {module, argument}} = book),
    do: module.children(book.name, argument) ++ [{__MODULE__, book}]

  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  def fire(book, key), do: GenServer.cast(name(book), {:fire, key})
  def due(book, key, first, last), do: GenServer.cast(name(book), {:due, key, first, last})
  def run(%Firing{} = firing), do: GenServer.call(name(firing.book), {:run, firing}, :infinity)
  def registered(book), do: GenServer.call(name(book), :registered)
  def await(book), do: GenServer.call(name(book), :await, :infinity)

  @doc false
  # Looks after leases at once.
  def beat(book), do: GenServer.call(name(book), :beat)

  defp name(book), do: Module.concat(book, "Scheduler")

  @impl true
  def init(book) do
    Process.flag(:trap_exit, true)
    Watcher.subscribe(book.name)

    state = %{
      book: book,
      engine: book.scheduler,
      by: by(book),
      jobs: %{},
      problems: %{},
      waiting: :queue.new(),
      # By the reference of its task.
      running: %{},
      renewed: monotonic(),
      # Whether the last beat could not reach the database.
      away: false,
      pruned: nil,
      awaiting: []
    }

    {:ok, state, {:continue, :register}}
  end

  defp by(book) do
    %{
      holder: 12 |> :crypto.strong_rand_bytes() |> Base.encode32(case: :lower, padding: false),
      node: Atom.to_string(node()),
      lease: book.schedules[:lease],
      attempts: if(book.schedules[:interrupted] == :run, do: @attempts, else: 1)
    }
  end

  @impl true
  def handle_continue(:register, state) do
    {module, argument} = state.engine
    :ok = module.clear(state.book.name, argument)
    now = Clock.now(state.book)

    {:noreply, state |> register_all(now) |> catch_up(now) |> beat_later() |> serve()}
  end

  # What came while no node was there, or none had the database: since the last firing of each.
  defp catch_up(state, now) do
    case Firings.last(sql(state)) do
      {:ok, last} ->
        for {name, record, at} <- last,
            key = Job.key(name, record),
            %{job: job} <- [state.jobs[key]],
            first = Schedule.next(job.schedule, at),
            first != nil and DateTime.compare(first, now) != :gt,
            latest = Schedule.previous(job.schedule, now),
            latest != nil,
            reduce: state do
          state -> take_due(state, key, first, latest, now)
        end

      {:error, error} ->
        Logger.error(
          "the book #{inspect(state.book.name)} cannot tell which schedules were missed: #{Exception.message(error)}"
        )

        state
    end
  end

  @impl true
  def handle_call({:run, firing}, {caller, _} = from, state),
    do: {:noreply, begin(state, firing, :queued, {from, Process.monitor(caller)})}

  def handle_call(:registered, _from, state),
    do: {:reply, Map.new(state.jobs, fn {key, %{job: job}} -> {key, job.schedule} end), state}

  def handle_call(:await, from, state),
    do: {:noreply, answer(%{state | awaiting: [from | state.awaiting]})}

  def handle_call(:beat, _from, state), do: {:reply, :ok, beat_now(state)}

  @impl true
  def handle_cast({:fire, key}, state) do
    now = Clock.now(state.book)

    with %{job: job} <- state.jobs[key],
         # Timers of others may be a moment early.
         %DateTime{} = at <-
           Schedule.previous(job.schedule, DateTime.add(now, 999, :millisecond)),
         true <- DateTime.diff(now, at) <= Clock.late() do
      {:noreply, state |> take_due(key, at, at, now) |> serve()}
    else
      _ -> {:noreply, state}
    end
  end

  def handle_cast({:due, key, first, last}, state),
    do: {:noreply, state |> take_due(key, first, last, Clock.now(state.book)) |> serve()}

  @impl true
  def handle_info({:skillbook, _book, %Change{added: [], changed: [], removed: []}}, state),
    do: {:noreply, state}

  # What differs in one entry may matter to others, which it takes the place of or leaves it to.
  def handle_info({:skillbook, _book, %Change{}}, state) do
    drain()
    {:noreply, register_all(state, Clock.now(state.book))}
  end

  def handle_info(:beat, state), do: {:noreply, state |> beat_now() |> beat_later()}

  def handle_info({:held, pid}, state) do
    running =
      Map.new(state.running, fn {ref, one} ->
        {ref, %{one | held: one.held or one.task.pid == pid}}
      end)

    {:noreply, %{state | running: running}}
  end

  def handle_info({ref, answer}, state) when is_map_key(state.running, ref) do
    Process.demonitor(ref, [:flush])
    {:noreply, ended(state, ref, answer)}
  end

  def handle_info({:DOWN, ref, :process, _pid, reason}, state) do
    case state.running do
      %{^ref => %{firing: firing}} ->
        Logger.error(
          "#{firing.name}, due at #{firing.at}, failed: #{Exception.format_exit(reason)}"
        )

        give_up(state, firing, "It crashed.")
        {:noreply, ended(state, ref, {:error, %RuntimeError{message: "it crashed"}})}

      running ->
        {:noreply, Enum.reduce(running, state, &without_caller(&1, &2, ref))}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state) do
    {module, argument} = state.engine
    clear(module, state.book.name, argument)

    for {_ref, %{task: task, firing: firing}} <- state.running do
      Worker.stop(task)
      give_up(state, firing, "The book stopped while it ran; a part of its work may be done.")
    end
  end

  # The engine may have stopped before.
  defp clear(module, book, argument) do
    module.clear(book, argument)
  catch
    :exit, _reason -> :ok
  end

  # Registering

  # All that was told of so far is in the catalog already.
  defp drain do
    receive do
      {:skillbook, _book, %Change{}} -> drain()
    after
      0 -> :ok
    end
  end

  defp register_all(state, now) do
    jobs = Job.all(state.book)
    there = MapSet.new(jobs, &elem(&1, 0))

    gone =
      for {key, _job} <- Map.merge(state.problems, state.jobs), key not in there, do: {key, :none}

    Enum.reduce(gone ++ jobs, state, fn {key, job}, state -> register(state, key, job, now) end)
  end

  defp register(state, key, {:ok, job}, now) do
    case state.jobs do
      # What else of the page changed does not matter to the engine.
      %{^key => %{job: %{schedule: %{expression: expression, timezone: timezone}}} = known}
      when expression == job.schedule.expression and timezone == job.schedule.timezone ->
        put_in(state.jobs[key], %{known | job: job})

      _ ->
        {module, argument} = state.engine
        state = unregister(state, key)

        case module.put(state.book.name, argument, job, now) do
          {:ok, handle} -> put_in(state.jobs[key], %{job: job, handle: handle})
          {:error, text} -> problem(state, key, text)
        end
    end
    |> solved(key)
  end

  defp register(state, key, {:error, text}, _now),
    do: state |> unregister(key) |> problem(key, text)

  defp register(state, key, :none, _now),
    do: %{unregister(state, key) | problems: Map.delete(state.problems, key)}

  defp solved(%{jobs: jobs} = state, key) when is_map_key(jobs, key),
    do: %{state | problems: Map.delete(state.problems, key)}

  defp solved(state, _key), do: state

  defp unregister(state, key) do
    case Map.pop(state.jobs, key) do
      {nil, _jobs} ->
        state

      {%{handle: handle}, jobs} ->
        {module, argument} = state.engine
        :ok = module.delete(state.book.name, argument, handle)
        %{state | jobs: jobs}
    end
  end

  # Once, not after each change of the page.
  defp problem(state, key, text) do
    if state.problems[key] != text,
      do: Logger.warning("#{elem(entry(key), 0)} does not run by its schedule: #{text}")

    put_in(state.problems[key], text)
  end

  defp entry({name, record}), do: {name, record}
  defp entry(name), do: {name, nil}

  # What is due

  defp take_due(state, key, first, last, now) do
    late = DateTime.diff(now, last) > Clock.late()

    cond do
      not is_map_key(state.jobs, key) ->
        state

      late and state.book.schedules[:missed] == :skip ->
        since = if first == last, do: "", else: " Others were missed since #{first}."
        missed(state, key, last, now, "No node was there to run it." <> since)

      true ->
        if first != last,
          do: missed(state, key, first, now, "It was not run until #{last}, when it ran once.")

        %{state | waiting: :queue.in(firing(state, key, last), state.waiting)}
    end
  end

  defp missed(state, key, at, now, text) do
    firing = firing(state, key, at)

    with {:error, error} <- Firings.missed(sql(state), firing, state.by, now, text),
         do:
           Logger.warning(
             "#{firing.name}, due at #{at}, was missed; that is not written down: #{Exception.message(error)}"
           )

    state
  end

  defp firing(state, key, at) do
    {name, record} = entry(key)
    Firing.new(state.book.name, name, at, record)
  end

  # Running

  defp serve(state) do
    with true <- map_size(state.running) < state.book.schedules[:max_running],
         {{:value, firing}, waiting} <- :queue.out(state.waiting) do
      %{state | waiting: waiting} |> begin(firing, :new, nil) |> serve()
    else
      _ -> answer(state)
    end
  end

  defp begin(state, firing, from, caller) do
    by = state.by
    server = self()

    task =
      Worker.start(state.book.name, [skillbook_firing: firing.name], fn ->
        Runner.run(firing, from, by, fn -> send(server, {:held, self()}) end)
      end)

    :ok = Worker.begin(task)
    # Not yet held: it may still be another node's, or wait for the database.
    put_in(state.running[task.ref], %{firing: firing, task: task, caller: caller, held: false})
  end

  defp ended(state, ref, answer) do
    {%{firing: firing, caller: caller}, state} = pop_in(state.running[ref])

    case {caller, answer} do
      {{from, caller_ref}, _} ->
        Process.demonitor(caller_ref, [:flush])
        GenServer.reply(from, answer)

      {nil, {:error, error}} when is_exception(error) ->
        Logger.error("#{firing.name}, due at #{firing.at}: #{Exception.message(error)}")

      _ ->
        :ok
    end

    serve(state)
  end

  defp without_caller(
         {ref, %{caller: {_from, caller_ref}, task: task, firing: firing}},
         state,
         caller_ref
       ) do
    Worker.stop(task)
    give_up(state, firing, "The process that ran it ended; a part of its work may be done.")
    {_, state} = pop_in(state.running[ref])
    serve(state)
  end

  defp without_caller(_running, state, _ref), do: state

  # If that cannot be written down now, the lease ends by itself.
  defp give_up(state, firing, text) do
    result = %{status: :failed, text: text, duration: nil}
    Firings.finish(sql(state), firing, state.by, Clock.now(state.book), result)
  rescue
    error in ArgumentError -> {:error, error}
  catch
    :exit, _reason -> {:error, Error.closed()}
  end

  defp answer(%{running: running, awaiting: [_ | _] = awaiting} = state) when running == %{} do
    if :queue.is_empty(state.waiting) do
      Enum.each(awaiting, &GenServer.reply(&1, :ok))
      %{state | awaiting: []}
    else
      state
    end
  end

  defp answer(state), do: state

  # Leases

  defp beat_later(state) do
    Process.send_after(self(), :beat, pause(state))
    state
  end

  defp pause(state), do: max(div(state.by.lease, 3), 1)

  # What runs changes at the end, when the database can refuse nothing any more.
  defp beat_now(state) do
    began = monotonic()
    now = Clock.now(state.book)

    with {:ok, lost} <- renew(state, now),
         {:ok, pruned} <- prune(state, now),
         :ok <- expire(state, now),
         {:ok, firings} <- take_over(state, now) do
      state = Enum.reduce(lost, %{state | renewed: began, pruned: pruned}, &lost(&2, &1))

      state =
        Enum.reduce(firings, state, fn {firing, attempt}, state ->
          begin(state, firing, {:held, attempt}, nil)
        end)

      state = if state.away, do: catch_up(state, now), else: state
      serve(%{state | away: false})
    else
      {:error, _error} -> fence(%{state | away: true}, began)
    end
  end

  # Those of which the lease is lost.
  defp renew(state, now) do
    Enum.reduce_while(state.running, {:ok, []}, fn
      {_ref, %{held: false}}, done ->
        {:cont, done}

      {ref, %{firing: firing}}, {:ok, lost} ->
        case Firings.renew(sql(state), firing, state.by, now) do
          {:ok, :lost} -> {:cont, {:ok, [ref | lost]}}
          {:ok, _there} -> {:cont, {:ok, lost}}
          error -> {:halt, error}
        end
    end)
  end

  # This machine slept, or its clock was put forward, for longer than the lease.
  defp lost(state, ref) do
    %{firing: firing, task: task} = state.running[ref]
    Worker.stop(task)

    Logger.error(
      "#{firing.name}, due at #{firing.at}, is another node's or was reported as failed, so it is stopped here"
    )

    ended(state, ref, {:error, :taken})
  end

  # Nobody else has the lease as long as this node may think that it has it: it stops if the lease may be over when the
  # database was asked in vain once more.
  defp fence(state, began) do
    now = monotonic()
    held = for {_ref, %{held: true, task: task}} <- state.running, do: task.pid

    if now - state.renewed + pause(state) + (now - began) >= state.by.lease and held != [] do
      Logger.error(
        "the book #{inspect(state.book.name)} stops what runs by schedule, for it could not renew its leases in the database"
      )

      Enum.each(held, &Process.exit(&1, :kill))
    end

    state
  end

  defp expire(state, now) do
    with {:ok, count} <- Firings.expire(sql(state), state.by, now) do
      if count > 0,
        do: Logger.error("#{count} firings failed, since the nodes that ran them ended")

      :ok
    end
  end

  defp take_over(%{book: book} = state, now) do
    room = max(book.schedules[:max_running] - map_size(state.running), 0)
    Firings.take_over(sql(state), book.name, state.by, now, room)
  end

  # The day of the last time.
  defp prune(state, now) do
    today = DateTime.to_date(now)
    before = DateTime.add(now, -state.book.schedules[:keep] * 86_400, :second)

    with true <- state.pruned != today,
         {:error, error} <- Firings.prune(sql(state), before),
         do: {:error, error},
         else: (_ -> {:ok, today})
  end

  defp sql(state), do: Book.sql(state.book)
  defp monotonic, do: System.monotonic_time(:millisecond)
end
