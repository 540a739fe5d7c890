defmodule Skillbook.Run.CircuitBreaker do
  @moduledoc false
  # Circuit breaker for handlers. After `:failures` failures in a row a skill is out of service;
  # after `:cooldown` one call is let through, and its success closes the breaker. Editing the
  # page or the handler's code resets it.
  #
  # Callers read an ETS table. Only failures, successes after a failure and the trial call go
  # through the process.

  use GenServer

  alias Skillbook.{Book, Diagnostic, Entry, OutOfServiceError, Telemetry, View}

  # A row is {name, fingerprint, state, failures, since, retry_at}. The state is :closed, :open,
  # :half_open (the next call is the trial) or :trial (it is running). `since` and `retry_at` are
  # nil while it is closed. The fingerprint covers the page and the handler's code.

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "Returns whether the skill may be called."
  @spec check(Book.t(), Entry.t(), module()) :: :ok | {:error, OutOfServiceError.t()}
  def check(book, entry, module) do
    case row(book, entry, module) do
      {_, _, state, _, _, _} = row when state in [:open, :trial] -> {:error, error(row)}
      _ -> :ok
    end
  end

  @doc """
  Like `check/3`, for a call that will run. The calling process may become the trial; in any case
  it reports the outcome with `leave/4`.
  """
  @spec enter(Book.t(), Entry.t(), module()) :: :ok | {:error, OutOfServiceError.t()}
  def enter(book, entry, module) do
    case row(book, entry, module) do
      {name, fingerprint, :half_open, _, _, _} ->
        with {:error, row} <- GenServer.call(name(book.name), {:try, name, fingerprint}),
             do: {:error, error(row)}

      _ ->
        check(book, entry, module)
    end
  end

  @doc "Reports the outcome of a call after `enter/3`; `:unused` if it did not run."
  @spec leave(Book.t(), Entry.t(), module(), :answered | :failed | :unused) :: :ok
  def leave(%{breaker: false}, _entry, _module, _outcome), do: :ok

  def leave(book, entry, module, outcome) do
    if outcome == :failed or row(book, entry, module) != nil,
      do: GenServer.call(name(book.name), {outcome, entry.name, fingerprint(entry, module)}),
      else: :ok
  end

  @doc "Returns a diagnostic for each skill that is out of service."
  @spec diagnostics(Book.t()) :: [Diagnostic.t()]
  def diagnostics(%{breaker: false}), do: []

  def diagnostics(book) do
    view = View.all(book.catalog)

    for {name, fingerprint, state, failures, since, _} <-
          Enum.sort(:ets.tab2list(name(book.name))),
        state != :closed,
        {:ok, entry} <- [View.fetch(view, name)],
        {:ok, module} <- [Entry.fetch_handler(entry)],
        fingerprint(entry, module) == fingerprint do
      %Diagnostic{
        code: :out_of_service,
        severity: :error,
        path: entry.path,
        message:
          "expected results of the handler #{entry.handler}, got #{times(failures)} in a row; " <>
            "`#{name}` is out of service since " <>
            DateTime.to_iso8601(DateTime.truncate(since, :second)),
        hint: "see the log for the cause; after the cooldown the next call tries it again"
      }
    end
  end

  defp times(1), do: "a failure"
  defp times(failures), do: "#{failures} failures"

  defp row(%{breaker: false}, _entry, _module), do: nil

  defp row(book, entry, module) do
    case :ets.lookup(name(book.name), entry.name) do
      [] -> nil
      [row] -> if elem(row, 1) == fingerprint(entry, module), do: row
    end
  rescue
    # The book has stopped and its table with it.
    ArgumentError -> nil
  end

  defp fingerprint(entry, module),
    do: :erlang.phash2({entry.data, entry.body, module.module_info(:md5)}, 4_294_967_296)

  defp error({name, _, state, failures, since, retry_at}) do
    retry_in = if state == :open, do: max(1, DateTime.diff(retry_at, DateTime.utc_now()))
    %OutOfServiceError{name: name, failures: failures, since: since, retry_in: retry_in}
  end

  defp name(book), do: Module.concat(book, CircuitBreaker)

  # State: `trials` maps monitor references to {pid, name} of the running trials.

  @impl true
  def init(%{breaker: false}), do: :ignore

  def init(book) do
    table = :ets.new(name(book.name), [:named_table, :protected, read_concurrency: true])
    {:ok, Map.merge(%{book: book.name, table: table, trials: %{}}, Map.new(book.breaker))}
  end

  @impl true
  def handle_call({:try, name, fingerprint}, {pid, _}, state) do
    case find(state, name, fingerprint) do
      {_, _, :half_open, _, _, _} = row ->
        put(state, put_elem(row, 2, :trial))
        {:reply, :ok, put_in(state.trials[Process.monitor(pid)], {pid, name})}

      {_, _, taken, _, _, _} = row when taken in [:open, :trial] ->
        {:reply, {:error, row}, state}

      _ ->
        {:reply, :ok, state}
    end
  end

  def handle_call({outcome, name, fingerprint}, {pid, _}, state) do
    {trial, state} = end_trial(state, {pid, name})
    row = find(state, name, fingerprint) || new(outcome, name, fingerprint)
    {:reply, :ok, record(state, outcome, trial, row)}
  end

  @impl true
  def handle_info({:cooled, name, fingerprint}, state) do
    with {_, _, :open, _, _, _} = row <- find(state, name, fingerprint), do: half_open(state, row)
    {:noreply, state}
  end

  # The trial ended without reporting: the next call is the trial.
  def handle_info({:DOWN, ref, :process, _pid, _reason}, state) do
    {{_pid, name}, state} = pop_in(state.trials[ref])

    with [{_, _, :trial, _, _, _} = row] <- :ets.lookup(state.table, name),
         do: half_open(state, row)

    {:noreply, state}
  end

  defp end_trial(state, trial) do
    case Enum.find(state.trials, fn {_, running} -> running == trial end) do
      nil ->
        {false, state}

      {ref, _} ->
        Process.demonitor(ref, [:flush])
        {true, %{state | trials: Map.delete(state.trials, ref)}}
    end
  end

  defp new(:failed, name, fingerprint), do: {name, fingerprint, :closed, 0, nil, nil}
  defp new(_outcome, _name, _fingerprint), do: nil

  # Once it is open only the trial counts: other calls were started before.
  defp record(state, :answered, _, {name, _, :closed, _, _, _}), do: delete(state, name)
  defp record(state, :failed, _, {_, _, :closed, _, _, _} = row), do: fail(state, row)
  defp record(state, :failed, true, {_, _, :trial, _, _, _} = row), do: fail(state, row)

  defp record(state, :unused, true, {_, _, :trial, _, _, _} = row), do: half_open(state, row)

  defp record(state, :answered, true, {name, _, :trial, failures, _, _}) do
    notify(state, :closed, name, failures)
    delete(state, name)
  end

  defp record(state, _, _, _), do: state

  defp fail(state, {name, fingerprint, _, failures, since, _}) do
    if failures + 1 < state.failures do
      put(state, {name, fingerprint, :closed, failures + 1, nil, nil})
    else
      now = DateTime.utc_now()

      row =
        {name, fingerprint, :open, failures + 1, since || now,
         DateTime.add(now, state.cooldown, :millisecond)}

      put(state, row)
      Process.send_after(self(), {:cooled, name, fingerprint}, state.cooldown)
      notify(state, :opened, name, failures + 1)
    end

    state
  end

  defp half_open(state, {name, _, _, failures, _, _} = row) do
    put(state, put_elem(row, 2, :half_open))
    notify(state, :half_open, name, failures)
    state
  end

  defp find(state, name, fingerprint) do
    case :ets.lookup(state.table, name) do
      [{_, ^fingerprint, _, _, _, _} = row] -> row
      _ -> nil
    end
  end

  defp put(state, row), do: :ets.insert(state.table, row)

  defp delete(state, name) do
    :ets.delete(state.table, name)
    state
  end

  defp notify(state, event, name, failures) do
    Telemetry.event(
      [:skillbook, :breaker, event],
      %{failures: failures, system_time: System.system_time()},
      %{book: state.book, skill: name}
    )
  end
end
