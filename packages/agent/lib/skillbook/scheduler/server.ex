defmodule Skillbook.Scheduler.Server do
  @moduledoc false
  # Registers scheduled entries with the book's engine, runs due firings up to a limit, renews the
  # leases of those that run here, and takes over or fails those of dead nodes.
  #
  # After a restart it clears the engine, registers all entries again, and continues from the last
  # stored firing of each. So neither this process nor an engine has state that must survive.

  use GenServer

  alias Skillbook.Agent.State
  alias Skillbook.Catalog.Watcher
  alias Skillbook.Run.{Drain, Worker}
  alias Skillbook.SQL.{Error, GroupCommit}
  alias Skillbook.Schedule.Clock
  alias Skillbook.Scheduler.{Firings, Job, Operations, Runner}
  alias Skillbook.Support.Outline
  alias Skillbook.{Book, Change, Entry, Firing, Schedule}

  require Logger

  # A firing that crashes its node must not crash all nodes.
  @max_attempts 3
  # With more changed names, all entries are looked at.
  @most_names 100
  @late "No node could run it in time."

  @doc "The processes of the book's engine, and this server."
  @spec children(Book.t()) :: [Supervisor.child_spec() | {module(), Book.t()}]
  def children(%Book{of_parts: %{scheduler: {module, argument}}} = book),
    do: module.children(book.name, argument) ++ [writer_spec(book.name), {__MODULE__, book}]

  defp writer_spec(book) do
    start = {GroupCommit, :start_link, [writer(book), fn _values -> :ok end]}
    %{id: writer(book), start: start}
  end

  @doc "The process that commits claims and results of firings together."
  @spec writer(atom()) :: atom()
  def writer(book), do: Module.concat(book, "Scheduler.Write")

  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  def fire(book, key), do: GenServer.cast(name(book), {:fire, key})
  def fire(book, key, first, last), do: GenServer.cast(name(book), {:fire, key, first, last})
  def run(%Firing{} = firing), do: GenServer.call(name(firing.book), {:run, firing}, :infinity)
  def registered(book), do: GenServer.call(name(book), :registered, :infinity)

  @doc "Returns the tenant of each registered job's entry, `nil` for common ones."
  @spec tenants(atom()) :: [String.t() | nil]
  def tenants(book), do: GenServer.call(name(book), :tenants, :infinity)

  def await(book), do: GenServer.call(name(book), :await, :infinity)

  @doc "Says that somebody has paused or resumed a schedule, or asked for a run."
  def follow(book), do: GenServer.cast(name(book), :follow)

  @doc "Renews and checks leases now, for tests."
  def heartbeat(book), do: GenServer.call(name(book), :heartbeat)

  defp name(book), do: Module.concat(book, "Scheduler")

  @impl true
  def init(book) do
    Process.flag(:trap_exit, true)
    Watcher.subscribe(book.name)

    state = %{
      book: book,
      engine: book.of_parts.scheduler,
      by: by(book),
      jobs: %{},
      problems: %{},
      # The keys among both, by the names of their entries.
      keys: %{},
      # The times since which schedules are paused, by their keys.
      paused: %{},
      # Firings, each with `:new` or `:asked`.
      waiting: :queue.new(),
      # By the references of their tasks.
      running: %{},
      # When all leases were last renewed, in monotonic milliseconds.
      renewed: monotonic(),
      # Leases of others that end too late, with the monotonic milliseconds when each was found.
      ahead: %{},
      # Whether the last heartbeat could not reach the database.
      disconnected: false,
      # The day on which old firings were last deleted.
      awaiting: []
    }

    {:ok, state, {:continue, :register}}
  end

  defp by(book) do
    %{
      holder: State.new_id(),
      node: Atom.to_string(node()),
      lease: book.schedules[:lease],
      attempts: if(book.schedules[:interrupted] == :run, do: @max_attempts, else: 1)
    }
  end

  @impl true
  def handle_continue(:register, state) do
    {module, argument} = state.engine
    :ok = module.clear(state.book.name, argument)
    now = Clock.now(state.book)

    {:noreply,
     state
     |> register_all(now)
     |> follow_earlier(now)
     |> catch_up(now)
     |> schedule_heartbeat()
     |> start_next()}
  end

  # Queues firings missed since the last one of each entry, while no node ran or none could reach
  # the database. Those of paused schedules wait for the end of the pause.
  defp catch_up(state, now) do
    with_last(state, fn last ->
      queue_missed(
        state,
        Map.drop(last, Map.keys(state.paused)),
        now,
        @late
      )
    end)
  end

  # The same for schedules that were resumed. One that has not fired yet missed what came after
  # the beginning of its pause.
  defp catch_up_resumed(state, resumed, _now) when resumed == %{}, do: state

  defp catch_up_resumed(state, resumed, now) do
    with_last(%{state | paused: Map.merge(resumed, state.paused)}, fn last ->
      last = Map.merge(resumed, Map.take(last, Map.keys(resumed)))
      queue_missed(state, last, now, "The schedule was paused.")
    end)
  end

  defp queue_missed(state, last, now, reason) do
    for {key, at} <- last,
        %{job: job} <- [state.jobs[key]],
        first = Schedule.next(job.schedule, at),
        first != nil and DateTime.compare(first, now) != :gt,
        latest = Schedule.previous(job.schedule, now),
        latest != nil,
        reduce: state do
      state -> enqueue(state, key, first, latest, now, reason)
    end
  end

  # If the database fails, the state stays as it is, and the next heartbeat tries again.
  defp with_last(state, fun) do
    case Firings.last(sql(state)) do
      {:ok, last} ->
        fun.(for {name, record, at} <- last, into: %{}, do: {Job.key(name, record), at})

      {:error, error} ->
        Logger.error(
          "the book #{inspect(state.book.name)} cannot check for missed firings: " <>
            Exception.message(error)
        )

        state
    end
  end

  @impl true
  def handle_call({:run, firing}, {caller, _} = from, state),
    do: {:noreply, start(state, firing, :queued, {from, Process.monitor(caller)})}

  def handle_call(:registered, _from, state),
    do: {:reply, Map.new(state.jobs, fn {key, %{job: job}} -> {key, job.schedule} end), state}

  def handle_call(:tenants, _from, state),
    do: {:reply, for({_key, %{job: job}} <- state.jobs, do: Entry.tenant(job.entry)), state}

  def handle_call(:await, from, state),
    do: {:noreply, reply_if_idle(%{state | awaiting: [from | state.awaiting]})}

  def handle_call(:heartbeat, _from, state), do: {:reply, :ok, beat(state)}

  @impl true
  def handle_cast({:fire, key}, state) do
    now = Clock.now(state.book)

    with %{job: job} <- state.jobs[key],
         # Timers of other engines may be a moment early.
         %DateTime{} = at <-
           Schedule.previous(job.schedule, DateTime.add(now, 999, :millisecond)),
         true <- DateTime.diff(now, at) <= Clock.max_delay() do
      {:noreply, state |> enqueue(key, at, at, now) |> start_next()}
    else
      _ -> {:noreply, state}
    end
  end

  def handle_cast({:fire, key, first, last}, state) do
    now = Clock.now(state.book)
    {:noreply, state |> enqueue(key, first, last, now) |> start_next()}
  end

  def handle_cast(:follow, state),
    do: {:noreply, state |> follow(Clock.now(state.book)) |> start_next()}

  @impl true
  def handle_info({:skillbook, _book, %Change{added: [], changed: [], removed: []}}, state),
    do: {:noreply, state}

  # All entries are registered again, since a changed entry may replace or uncover others, and may
  # do so for one profile only.
  def handle_info({:skillbook, _book, %Change{} = change}, state) do
    names = Enum.uniq(changed([change]))
    now = Clock.now(state.book)

    {:noreply,
     if(length(names) > @most_names,
       do: register_all(state, now),
       else: register_named(state, names, now)
     )}
  end

  def handle_info(:heartbeat, state), do: {:noreply, state |> beat() |> schedule_heartbeat()}

  def handle_info({:claimed, pid}, state) do
    running =
      Map.new(state.running, fn {ref, run} ->
        {ref, %{run | claimed: run.claimed or run.task.pid == pid}}
      end)

    {:noreply, %{state | running: running}}
  end

  def handle_info({ref, result}, state) when is_map_key(state.running, ref) do
    Process.demonitor(ref, [:flush])
    {:noreply, finished(state, ref, result)}
  end

  def handle_info({:DOWN, ref, :process, _pid, reason}, state) do
    case state.running do
      %{^ref => %{firing: firing}} ->
        Logger.error("#{firing.name}, due at #{firing.at}, failed: #{Outline.crash(reason)}")

        store_failure(state, firing, "It crashed.")
        {:noreply, finished(state, ref, {:error, %RuntimeError{message: "it crashed"}})}

      running ->
        {:noreply, Enum.reduce(running, state, &stop_without_caller(&1, &2, ref))}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state) do
    {module, argument} = state.engine
    clear(module, state.book.name, argument)

    for {_ref, %{task: task, firing: firing}} <- state.running do
      Worker.stop(task)
      result = Runner.interrupted()
      Logger.error("#{firing.name}, due at #{firing.at}, interrupted: #{result.text}")
      if state.by.attempts == 1, do: store(state, firing, result)
    end
  end

  # The engine may have stopped already.
  defp clear(module, book, argument) do
    module.clear(book, argument)
  catch
    :exit, _reason -> :ok
  end

  # Registration

  # The names in these changes and those that were announced since: the catalog has them all.
  defp changed(changes) do
    receive do
      {:skillbook, _book, %Change{} = change} -> changed([change | changes])
    after
      0 -> Enum.flat_map(changes, &(&1.added ++ &1.changed ++ &1.removed))
    end
  end

  defp register_all(state, now),
    do: register_jobs(state, Job.all(state.book), Map.keys(state.keys), now)

  # Whether an entry is a job depends on those of its name only.
  defp register_named(state, names, now),
    do: register_jobs(state, Enum.flat_map(names, &Job.named(state.book, &1)), names, now)

  defp register_jobs(state, jobs, names, now) do
    keys = MapSet.new(jobs, &elem(&1, 0))

    removed =
      for name <- names, key <- Map.get(state.keys, name, []), key not in keys, do: {key, :none}

    Enum.reduce(removed ++ jobs, state, fn {key, job}, state ->
      state |> register(key, job, now) |> note_key(key)
    end)
  end

  defp note_key(state, key) do
    {name, _record} = entry(key)
    others = state.keys |> Map.get(name, []) |> List.delete(key)

    keys =
      if is_map_key(state.jobs, key) or is_map_key(state.problems, key),
        do: [key | others],
        else: others

    keys = if keys == [], do: Map.delete(state.keys, name), else: Map.put(state.keys, name, keys)

    %{state | keys: keys}
  end

  defp register(state, key, {:ok, job}, now) do
    case state.jobs do
      # The engine only needs to know about changes of the schedule.
      %{^key => %{job: %{schedule: %{expression: expression, timezone: timezone}}} = registered}
      when expression == job.schedule.expression and timezone == job.schedule.timezone ->
        put_in(state.jobs[key], %{registered | job: job})

      _ ->
        {module, argument} = state.engine
        state = unregister(state, key)

        case module.put(state.book.name, argument, job, now) do
          {:ok, handle} -> put_in(state.jobs[key], %{job: job, handle: handle})
          {:error, text} -> put_problem(state, key, text)
        end
    end
    |> clear_problem(key)
  end

  defp register(state, key, {:error, text}, _now),
    do: state |> unregister(key) |> put_problem(key, text)

  defp register(state, key, :none, _now),
    do: %{unregister(state, key) | problems: Map.delete(state.problems, key)}

  defp clear_problem(%{jobs: jobs} = state, key) when is_map_key(jobs, key),
    do: %{state | problems: Map.delete(state.problems, key)}

  defp clear_problem(state, _key), do: state

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

  # Logged once, not after each change of the page.
  defp put_problem(state, key, text) do
    if state.problems[key] != text,
      do: Logger.warning("#{elem(entry(key), 0)} does not run by its schedule: #{text}")

    put_in(state.problems[key], text)
  end

  defp entry({name, record}), do: {name, record}
  defp entry(name), do: {name, nil}

  # Due firings

  defp enqueue(state, key, first, last, now, reason \\ @late) do
    late = DateTime.diff(now, last) > Clock.max_delay()

    cond do
      not is_map_key(state.jobs, key) ->
        state

      # The end of the pause decides. A pause that this node has not seen is found by the claim.
      is_map_key(state.paused, key) ->
        state

      late and state.book.schedules[:missed] == :skip ->
        since = if first == last, do: "", else: " Others were missed since #{first}."
        store_missed(state, key, last, now, reason <> since)

      true ->
        if first != last,
          do: store_missed(state, key, first, now, "It was late and ran once, for #{last}.")

        wait(state, firing(state, key, last), :new)
    end
  end

  defp wait(state, firing, from),
    do: %{state | waiting: :queue.in({firing, from}, state.waiting)}

  # Operations of people

  # Most databases have none when a book starts.
  defp follow_earlier(state, now),
    do: if(:atomics.get(state.book.revision, 2) == 0, do: state, else: follow(state, now))

  # If the database fails, the next heartbeat tries again.
  defp follow(state, now) do
    case operations(state, now) do
      {:ok, operations} -> apply_operations(state, operations, now)
      {:error, _error} -> state
    end
  end

  defp operations(state, now) do
    with {:ok, pauses} <- Operations.pauses(sql(state)),
         {:ok, asked} <- Operations.asked(sql(state), now),
         do:
           {:ok, %{paused: Map.new(pauses, fn {key, pause} -> {key, pause.at} end), asked: asked}}
  end

  defp apply_operations(state, %{paused: paused, asked: asked}, now) do
    resumed = Map.drop(state.paused, Map.keys(paused))
    state = catch_up_resumed(%{state | paused: paused}, resumed, now)
    Enum.reduce(asked, state, fn {key, at}, state -> ask(state, key, at, now) end)
  end

  # A run that somebody asked for is late by the same rule as one of the schedule.
  defp ask(state, key, at, now) do
    firing = firing(state, key, at)
    late = DateTime.diff(now, at) > Clock.max_delay()

    cond do
      not is_map_key(state.jobs, key) or under_way?(state, firing) ->
        state

      late and state.book.schedules[:missed] == :skip ->
        store_missed(state, key, at, now, @late)

      true ->
        wait(state, firing, :asked)
    end
  end

  defp under_way?(state, firing) do
    Enum.any?(state.running, fn {_ref, run} -> run.firing == firing end) or
      :queue.any(fn {waiting, _from} -> waiting == firing end, state.waiting)
  end

  # The next look at the operations finds it resumed, even if this node never saw the pause.
  defp note_pause(state, firing) do
    key = Job.key(firing.name, firing.record)
    %{state | paused: Map.put_new(state.paused, key, DateTime.add(firing.at, -1))}
  end

  defp store_missed(state, key, at, now, text) do
    firing = firing(state, key, at)

    with {:error, error} <- Firings.missed(sql(state), firing, state.by, now, text) do
      Logger.warning(
        "#{firing.name}, due at #{at}, was missed, which could not be stored: " <>
          Exception.message(error)
      )
    end

    state
  end

  defp firing(state, key, at) do
    {name, record} = entry(key)
    Firing.new(state.book.name, name, at, record)
  end

  # Running firings

  defp start_next(state) do
    with true <- map_size(state.running) < state.book.schedules[:max_running],
         :open <- Drain.state(state.book.name),
         {{:value, {firing, from}}, waiting} <- :queue.out(state.waiting) do
      %{state | waiting: waiting} |> start(firing, from, nil) |> start_next()
    else
      _ -> reply_if_idle(state)
    end
  end

  # `caller` waits for the result in `run/1`; nil for firings of the engine.
  defp start(state, firing, from, caller) do
    by = state.by
    server = self()

    task =
      Worker.start(state.book.name, [skillbook_firing: firing.name], fn ->
        Runner.run(firing, from, by, fn -> send(server, {:claimed, self()}) end)
      end)

    :ok = Worker.begin(task)
    # Not claimed yet: another node may have it, or the database may be down.
    put_in(state.running[task.ref], %{firing: firing, task: task, caller: caller, claimed: false})
  end

  defp finished(state, ref, result) do
    {%{firing: firing, caller: caller}, state} = pop_in(state.running[ref])

    case {caller, result} do
      {{from, caller_ref}, _} ->
        Process.demonitor(caller_ref, [:flush])
        GenServer.reply(from, result)
        start_next(state)

      {nil, {:error, :paused}} ->
        state |> note_pause(firing) |> start_next()

      {nil, {:error, error}} when is_exception(error) ->
        Logger.error("#{firing.name}, due at #{firing.at}: #{Exception.message(error)}")
        start_next(state)

      _ ->
        start_next(state)
    end
  end

  defp stop_without_caller(
         {ref, %{caller: {_from, caller_ref}, task: task, firing: firing}},
         state,
         caller_ref
       ) do
    Worker.stop(task)
    fail(state, firing, "The process that ran it exited; part of its work may be done.")
    {_, state} = pop_in(state.running[ref])
    start_next(state)
  end

  defp stop_without_caller(_running, state, _ref), do: state

  defp fail(state, firing, text) do
    Logger.error("#{firing.name}, due at #{firing.at}, failed: #{text}")
    store_failure(state, firing, text)
  end

  # If this fails, the lease expires and another node stores the failure.
  defp store_failure(state, firing, text),
    do: store(state, firing, %{status: :failed, text: text, duration: nil})

  defp store(state, firing, result) do
    Firings.finish(sql(state), firing, state.by, Clock.now(state.book), result)
  rescue
    error in ArgumentError -> {:error, error}
  catch
    :exit, _reason -> {:error, Error.closed()}
  end

  # Replies to the callers of `await/1`.
  defp reply_if_idle(%{running: running, awaiting: [_ | _] = awaiting} = state)
       when running == %{} do
    if :queue.is_empty(state.waiting) do
      Enum.each(awaiting, &GenServer.reply(&1, :ok))
      %{state | awaiting: []}
    else
      state
    end
  end

  defp reply_if_idle(state), do: state

  # Leases

  defp schedule_heartbeat(state) do
    Process.send_after(self(), :heartbeat, interval(state))
    state
  end

  defp interval(state), do: max(div(state.by.lease, 3), 1)

  # The state changes last, after all queries have succeeded.
  defp beat(state) do
    started = monotonic()
    now = Clock.now(state.book)

    with {:ok, lost} <- renew(state, now),
         {:ok, ahead} <- follow_ahead(state, now),
         :ok <- expire(state, now),
         {:ok, firings} <- take_over(state, now),
         {:ok, operations} <- operations(state, now) do
      state = %{state | renewed: started, ahead: ahead}
      state = Enum.reduce(lost, state, &stop_lost(&2, &1))

      state =
        Enum.reduce(firings, state, fn {firing, attempt}, state ->
          start(state, firing, {:claimed, attempt}, nil)
        end)

      state = apply_operations(state, operations, now)
      state = if state.disconnected, do: catch_up(state, now), else: state
      start_next(%{state | disconnected: false})
    else
      {:error, _error} -> fence(%{state | disconnected: true}, started)
    end
  end

  # Renews all leases and returns the references of those that are lost.
  defp renew(state, now) do
    Enum.reduce_while(state.running, {:ok, []}, fn
      {_ref, %{claimed: false}}, done ->
        {:cont, done}

      {ref, %{firing: firing}}, {:ok, lost} ->
        case Firings.renew(sql(state), firing, state.by, now) do
          {:ok, :lost} -> {:cont, {:ok, [ref | lost]}}
          {:ok, _renewed_or_finished} -> {:cont, {:ok, lost}}
          error -> {:halt, error}
        end
    end)
  end

  # The machine was suspended, or its clock was set forward, for longer than the lease.
  defp stop_lost(state, ref) do
    %{firing: firing, task: task} = state.running[ref]
    Worker.stop(task)

    Logger.error(
      "#{firing.name}, due at #{firing.at}, is stopped: its lease was lost to another node, " <>
        "or it was stored as failed"
    )

    finished(state, ref, {:error, :taken})
  end

  # Stops all firings if their leases might expire before the next heartbeat succeeds, so that no
  # other node runs them at the same time.
  defp fence(state, started) do
    now = monotonic()
    claimed = for {_ref, %{claimed: true, task: task}} <- state.running, do: task.pid
    next_heartbeat_done = now - state.renewed + interval(state) + (now - started)

    if next_heartbeat_done >= state.by.lease and claimed != [] do
      Logger.error(
        "the book #{inspect(state.book.name)} stops its scheduled runs: it could not renew " <>
          "their leases in the database"
      )

      Enum.each(claimed, &Process.exit(&1, :kill))
    end

    state
  end

  # The end of a lease that comes from a clock ahead of this one says nothing. It is over if
  # nobody renews it during three leases.
  defp follow_ahead(state, now) do
    with {:ok, leases} <- Firings.ahead(sql(state), state.book.name, state.by, now) do
      found = Map.new(leases, &{&1, Map.get(state.ahead, &1, monotonic())})

      {over, ahead} =
        Enum.split_with(found, fn {_, at} -> monotonic() - at > 3 * state.by.lease end)

      with :ok <- Firings.end_leases(sql(state), Enum.map(over, &elem(&1, 0))),
           do: {:ok, Map.new(ahead)}
    end
  end

  defp expire(state, now) do
    with {:ok, count} <- Firings.expire(sql(state), state.by, now) do
      if count > 0,
        do: Logger.error("#{count} firings failed because their nodes died")

      :ok
    end
  end

  defp take_over(%{book: book} = state, now) do
    free = max(book.schedules[:max_running] - map_size(state.running), 0)
    slots = if Drain.state(book.name) == :open, do: free, else: 0
    Firings.take_over(sql(state), book.name, state.by, now, slots)
  end

  defp sql(state), do: Book.sql(state.book)
  defp monotonic, do: System.monotonic_time(:millisecond)
end
