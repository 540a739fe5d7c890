defmodule Skillbook.Run.CircuitBreaker do
  @moduledoc false
  # Leaves a handler alone that fails again and again: after so many failures in a row its skill is out of service, after
  # the cooldown one call is let through, and if that one gives an answer, all are. A skill whose page or whose handler's
  # code is another one now has not failed.
  #
  # Callers read a table; only failures, what ends them and the one call that tries go through the process.

  use GenServer

  alias Skillbook.{Book, Diagnostic, Entry, OutOfServiceError, Telemetry}

  # A row is {name, fingerprint, state, failures, since, retry_at}. The state is :closed, :open, :half_open (somebody is to
  # try) or :trial (somebody does); the two times are nil while it is closed.

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "Whether the skill may be called."
  @spec check(Book.t(), Entry.t(), module()) :: :ok | {:error, OutOfServiceError.t()}
  def check(book, entry, module) do
    case row(book, entry, module) do
      {_, _, state, _, _, _} = row when state in [:open, :trial] -> {:error, error(row)}
      _ -> :ok
    end
  end

  @doc "As `check/3`; the calling process may be the one that tries it, and says with `leave/4` what came of it."
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

  @doc "What came of a call that was let through; `:unused` if it did not run after all."
  @spec leave(Book.t(), Entry.t(), module(), :answered | :failed | :unused) :: :ok
  def leave(%{breaker: false}, _entry, _module, _outcome), do: :ok

  def leave(book, entry, module, outcome) do
    if outcome == :failed or row(book, entry, module) != nil,
      do: GenServer.call(name(book.name), {outcome, entry.name, fingerprint(entry, module)}),
      else: :ok
  end

  @doc "What is out of service, of the entries that there are now, as `fetch` gives them."
  @spec diagnostics(Book.t(), (String.t() -> {:ok, Entry.t()} | {:error, Exception.t()})) :: [
          Diagnostic.t()
        ]
  def diagnostics(%{breaker: false}, _fetch), do: []

  def diagnostics(book, fetch) do
    for {name, fingerprint, state, failures, since, _} <-
          Enum.sort(:ets.tab2list(name(book.name))),
        state != :closed,
        {:ok, entry} <- [fetch.(name)],
        {:ok, module} <- [Entry.fetch_handler(entry)],
        fingerprint(entry, module) == fingerprint do
      %Diagnostic{
        code: :out_of_service,
        severity: :error,
        path: entry.path,
        message:
          "expected answers of the handler #{entry.handler}, got #{times(failures)} in a row; " <>
            "`#{name}` is out of service since #{DateTime.to_iso8601(DateTime.truncate(since, :second))}",
        hint: "the log says what went wrong; after the cooldown the next call tries it again"
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
    # The book stopped meanwhile, so nothing runs any more.
    ArgumentError -> nil
  end

  defp fingerprint(entry, module),
    do: :erlang.phash2({entry.data, entry.body, module.module_info(:md5)}, 4_294_967_296)

  defp error({name, _, state, failures, since, retry_at}) do
    retry_in = if state == :open, do: max(1, DateTime.diff(retry_at, DateTime.utc_now()))
    %OutOfServiceError{name: name, failures: failures, since: since, retry_in: retry_in}
  end

  defp name(book), do: Module.concat(book, Breaker)

  # State: `trials` has who tries what, by the reference of its monitor.

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
    {:reply, :ok, came(state, outcome, trial, row)}
  end

  @impl true
  def handle_info({:cooled, name, fingerprint}, state) do
    with {_, _, :open, _, _, _} = row <- find(state, name, fingerprint), do: half_open(state, row)
    {:noreply, state}
  end

  # Who tried it is gone without a word: the next one may.
  def handle_info({:DOWN, ref, :process, _pid, _reason}, state) do
    {{_pid, name}, state} = pop_in(state.trials[ref])

    with [{_, _, :trial, _, _, _} = row] <- :ets.lookup(state.table, name),
         do: half_open(state, row)

    {:noreply, state}
  end

  defp end_trial(state, trial) do
    case Enum.find(state.trials, fn {_, held} -> held == trial end) do
      nil ->
        {false, state}

      {ref, _} ->
        Process.demonitor(ref, [:flush])
        {true, %{state | trials: Map.delete(state.trials, ref)}}
    end
  end

  defp new(:failed, name, fingerprint), do: {name, fingerprint, :closed, 0, nil, nil}
  defp new(_outcome, _name, _fingerprint), do: nil

  # Calls from before it was open say nothing about what is tried now.
  defp came(state, :answered, _, {name, _, :closed, _, _, _}), do: delete(state, name)
  defp came(state, :failed, _, {_, _, :closed, _, _, _} = row), do: fail(state, row)
  defp came(state, :failed, true, {_, _, :trial, _, _, _} = row), do: fail(state, row)

  defp came(state, :unused, true, {_, _, :trial, _, _, _} = row), do: half_open(state, row)

  defp came(state, :answered, true, {name, _, :trial, failures, _, _}) do
    tell(state, :closed, name, failures)
    delete(state, name)
  end

  defp came(state, _, _, _), do: state

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
      tell(state, :opened, name, failures + 1)
    end

    state
  end

  defp half_open(state, {name, _, _, failures, _, _} = row) do
    put(state, put_elem(row, 2, :half_open))
    tell(state, :half_open, name, failures)
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

  defp tell(state, event, name, failures) do
    Telemetry.event(
      [:skillbook, :breaker, event],
      %{failures: failures, system_time: System.system_time()},
      %{
        book: state.book,
        skill: name
      }
    )
  end
end
