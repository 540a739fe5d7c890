defmodule Skillbook.Run.CircuitBreaker do
  @moduledoc false
  # Circuit breaker for handlers. After `:failures` failures in a row a skill is out of service
  # for the profile that called it; after `:cooldown` one call is let through, and its success
  # closes the breaker. Editing the page or the handler's code resets it, and so does an operator.
  #
  # Each profile has its own counts, because the cause may be its data: crashes for one tenant
  # must not take the skill away from the others, nor tell them of each other.
  #
  # Callers read an ETS table. Only failures, successes after a failure and the trial call go
  # through the process.

  use GenServer

  alias Skillbook.{Book, Context, Diagnostic, Entry, OutOfServiceError, Profile, Telemetry}
  alias Skillbook.View

  # A row is {{name, profile's id, tenant}, fingerprint, state, failures, since, retry_at}. The
  # tenant is that of the entry, or of the profile if the entry is common. The state is :closed,
  # :open, :half_open (the next call is the trial) or :trial (it is running). `since` and
  # `retry_at` are nil while it is closed. The fingerprint covers the page and the handler's code.

  # When the table has this many rows, the half whose last failure is the oldest is dropped.
  @max_rows 10_000
  # Profiles that a diagnostic names.
  @max_named 3

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "Returns whether the context's profile may call the skill."
  @spec check(Book.t(), Context.t(), module() | function()) ::
          :ok | {:error, OutOfServiceError.t()}
  def check(book, context, module) do
    case row(book, context, module) do
      {_, _, state, _, _, _} = row when state in [:open, :trial] -> {:error, error(book, row)}
      _ -> :ok
    end
  end

  @doc """
  Like `check/3`, for a call that will run. The calling process may become the trial; in any case
  it reports the outcome with `leave/4`.
  """
  @spec enter(Book.t(), Context.t(), module() | function()) ::
          :ok | {:error, OutOfServiceError.t()}
  def enter(book, context, module) do
    case row(book, context, module) do
      {key, fingerprint, :half_open, _, _, _} ->
        with {:error, row} <- GenServer.call(name(book.name), {:try, key, fingerprint}),
             do: {:error, error(book, row)}

      _ ->
        check(book, context, module)
    end
  end

  @doc "Reports the outcome of a call after `enter/3`; `:unused` if it did not run."
  @spec leave(Book.t(), Context.t(), module() | function(), :answered | :failed | :unused) :: :ok
  def leave(%{breaker: false}, _context, _module, _outcome), do: :ok

  def leave(book, context, module, outcome) do
    if outcome == :failed or row(book, context, module) != nil do
      fingerprint = fingerprint(context.entry, module)
      GenServer.call(name(book.name), {outcome, key(context), fingerprint})
    else
      :ok
    end
  end

  defp key(%{entry: entry, profile: profile}),
    do: {entry.name, profile.id, Entry.tenant(entry) || Profile.home(profile)}

  @doc """
  Returns a diagnostic for each skill that is out of service, and that a view shows, with the
  profiles of the tenants that the view's profile reads; of everything for `:all`.
  """
  @spec diagnostics(Book.t(), View.t() | :all) :: [Diagnostic.t()]
  def diagnostics(%{breaker: false}, _view), do: []

  def diagnostics(book, view) do
    reader = if view == :all, do: Profile.unrestricted(), else: view.profile

    rows =
      for {{name, profile, tenant}, fingerprint, state, failures, since, _} <-
            Enum.sort(:ets.tab2list(name(book.name))),
          state != :closed,
          Profile.reads?(reader, tenant),
          do: {{name, fingerprint}, {profile, failures, since}}

    # A view of everything opens all entries of the store.
    view = if rows != [] and view == :all, do: View.all(book.catalog), else: view

    for {{name, fingerprint}, rows} <-
          rows |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)) |> Enum.sort(),
        {:ok, entry} <- [View.fetch(view, name)],
        {:ok, module} <- [Entry.fetch_handler(entry, book.catalog.functions)],
        fingerprint(entry, module) == fingerprint do
      failures = rows |> Enum.map(&elem(&1, 1)) |> Enum.max()
      since = rows |> Enum.map(&elem(&1, 2)) |> Enum.min(DateTime)

      %Diagnostic{
        code: :out_of_service,
        severity: :error,
        path: entry.path,
        message:
          "expected results of the handler #{entry.handler}, got #{times(failures)} in a row; " <>
            "`#{name}` is out of service since " <>
            DateTime.to_iso8601(DateTime.truncate(since, :second)) <>
            " for #{profiles(Enum.map(rows, &elem(&1, 0)))}",
        hint: "see the log for the cause; after the cooldown the next call tries it again"
      }
    end
  end

  @typedoc """
  A skill that has failed for a profile, in a tenant. `:state` is `:closed` if it still runs;
  `:half_open` if the next call, and `:trial` if the running one, decides; or `:open`.
  """
  @type row :: %{
          name: String.t(),
          profile: String.t(),
          tenant: String.t() | nil,
          state: :closed | :open | :half_open | :trial,
          failures: pos_integer(),
          since: DateTime.t() | nil,
          retry_at: DateTime.t() | nil
        }

  @doc """
  Returns the skills that a view shows and whose last call failed, sorted by name: for its own
  profile, or for all profiles of its tenants if it is unrestricted or `all?`.
  """
  @spec list(Book.t(), View.t(), all? :: boolean()) :: [row()]
  def list(book, view, all? \\ false)
  def list(%{breaker: false}, _view, _all?), do: []

  def list(book, view, all?) do
    all? = all? or Profile.unrestricted?(view.profile)

    for {{name, profile, tenant}, fingerprint, state, failures, since, retry_at} <-
          Enum.sort(:ets.tab2list(name(book.name))),
        all? or profile == view.profile.id,
        Profile.reads?(view.profile, tenant),
        {:ok, %{name: ^name} = entry} <- [View.fetch(view, name)],
        {:ok, module} <- [Entry.fetch_handler(entry, book.catalog.functions)],
        fingerprint(entry, module) == fingerprint,
        do: %{
          name: name,
          profile: profile,
          tenant: tenant,
          state: state,
          failures: failures,
          since: since,
          retry_at: retry_at
        }
  end

  @doc """
  Forgets the failures of a skill on this node, for a profile or for all with `nil`, and of one
  tenant or of all with `nil`.
  """
  @spec reset(Book.t(), String.t(), String.t() | nil, String.t() | nil) :: :ok
  def reset(%{breaker: false}, _name, _profile, _tenant), do: :ok

  def reset(book, name, profile, tenant),
    do: GenServer.call(name(book.name), {:reset, name, profile, tenant})

  @doc "As `reset/4`, without waiting for it."
  @spec forget(atom(), String.t(), String.t() | nil, String.t() | nil) :: :ok
  def forget(book, name, profile, tenant),
    do: GenServer.cast(name(book), {:reset, name, profile, tenant})

  defp times(1), do: "a failure"
  defp times(failures), do: "#{failures} failures"

  defp profiles([profile]), do: "the profile #{inspect(profile)}"

  defp profiles(profiles) do
    {named, more} = profiles |> Enum.map(&inspect/1) |> Enum.split(@max_named)
    more = if more == [], do: "", else: " and #{length(more)} more"
    "the profiles #{Enum.join(named, ", ")}#{more}"
  end

  defp row(%{breaker: false}, _context, _module), do: nil

  defp row(book, context, module) do
    case :ets.lookup(name(book.name), key(context)) do
      [] -> nil
      [row] -> if elem(row, 1) == fingerprint(context.entry, module), do: row
    end
  rescue
    # The book has stopped and its table with it.
    ArgumentError -> nil
  end

  defp fingerprint(entry, module),
    do: :erlang.phash2({entry.data, entry.body, code(module)}, 4_294_967_296)

  defp code(function) when is_function(function), do: function
  defp code(module), do: module.module_info(:md5)

  # A timer ends the cooldown, also if the system's clock was put back since.
  defp error(book, {{name, _profile, _tenant}, _, state, failures, since, retry_at}) do
    cooldown = div(book.breaker[:cooldown] + 999, 1_000)
    left = if state == :open, do: DateTime.diff(retry_at, DateTime.utc_now())
    retry_in = left && left |> min(cooldown) |> max(1)
    %OutOfServiceError{name: name, failures: failures, since: since, retry_in: retry_in}
  end

  defp name(book), do: Module.concat(book, CircuitBreaker)

  # State: `trials` maps monitor references to {pid, key} of the running trials; `failed` has the
  # number of the last failure of each row.

  @impl true
  def init(%{breaker: false}), do: :ignore

  def init(book) do
    table = :ets.new(name(book.name), [:named_table, :protected, read_concurrency: true])
    state = %{book: book.name, table: table, trials: %{}, failed: %{}, count: 0}
    {:ok, Map.merge(state, Map.new(book.breaker))}
  end

  @impl true
  def handle_call({:try, key, fingerprint}, {pid, _}, state) do
    case find(state, key, fingerprint) do
      {_, _, :half_open, _, _, _} = row ->
        put(state, put_elem(row, 2, :trial))
        {:reply, :ok, put_in(state.trials[Process.monitor(pid)], {pid, key})}

      {_, _, taken, _, _, _} = row when taken in [:open, :trial] ->
        {:reply, {:error, row}, state}

      _ ->
        {:reply, :ok, state}
    end
  end

  def handle_call({:reset, name, profile, tenant}, _from, state),
    do: {:reply, :ok, forget_all(state, name, profile, tenant)}

  def handle_call({outcome, key, fingerprint}, {pid, _}, state) do
    {trial, state} = end_trial(state, {pid, key})
    row = find(state, key, fingerprint) || new(outcome, key, fingerprint)
    {:reply, :ok, record(state, outcome, trial, row)}
  end

  @impl true
  def handle_cast({:reset, name, profile, tenant}, state),
    do: {:noreply, forget_all(state, name, profile, tenant)}

  # After a reset it may be open anew, until a later time.
  @impl true
  def handle_info({:cooled, key, fingerprint, retry_at}, state) do
    with {_, _, :open, _, _, ^retry_at} = row <- find(state, key, fingerprint),
         do: half_open(state, row)

    {:noreply, state}
  end

  # The trial ended without reporting: the next call is the trial.
  def handle_info({:DOWN, ref, :process, _pid, _reason}, state) do
    {{_pid, key}, state} = pop_in(state.trials[ref])

    with [{_, _, :trial, _, _, _} = row] <- :ets.lookup(state.table, key),
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

  defp new(:failed, key, fingerprint), do: {key, fingerprint, :closed, 0, nil, nil}
  defp new(_outcome, _name, _fingerprint), do: nil

  # Once it is open only the trial counts: other calls were started before.
  defp record(state, :answered, _, {key, _, :closed, _, _, _}), do: delete(state, key)
  defp record(state, :failed, _, {_, _, :closed, _, _, _} = row), do: fail(state, row)
  defp record(state, :failed, true, {_, _, :trial, _, _, _} = row), do: fail(state, row)

  defp record(state, :unused, true, {_, _, :trial, _, _, _} = row), do: half_open(state, row)

  defp record(state, :answered, true, {key, _, :trial, failures, _, _}) do
    notify(state, :closed, key, failures)
    delete(state, key)
  end

  defp record(state, _, _, _), do: state

  defp fail(state, {key, fingerprint, _, failures, since, _}) do
    state = state |> make_room(key) |> note_failure(key)

    if failures + 1 < state.failures do
      put(state, {key, fingerprint, :closed, failures + 1, nil, nil})
    else
      now = DateTime.utc_now()
      retry_at = DateTime.add(now, state.cooldown, :millisecond)
      put(state, {key, fingerprint, :open, failures + 1, since || now, retry_at})
      Process.send_after(self(), {:cooled, key, fingerprint, retry_at}, state.cooldown)
      notify(state, :opened, key, failures + 1)
    end

    state
  end

  defp note_failure(state, key),
    do: %{state | failed: Map.put(state.failed, key, state.count), count: state.count + 1}

  defp make_room(%{failed: failed} = state, key)
       when map_size(failed) < @max_rows or is_map_key(failed, key),
       do: state

  defp make_room(state, _key) do
    oldest = state.failed |> Enum.sort_by(&elem(&1, 1)) |> Enum.take(div(@max_rows, 2))
    Enum.reduce(oldest, state, fn {key, _number}, state -> delete(state, key) end)
  end

  defp half_open(state, {key, _, _, failures, _, _} = row) do
    put(state, put_elem(row, 2, :half_open))
    notify(state, :half_open, key, failures)
    state
  end

  defp find(state, key, fingerprint) do
    case :ets.lookup(state.table, key) do
      [{_, ^fingerprint, _, _, _, _} = row] -> row
      _ -> nil
    end
  end

  defp put(state, row), do: :ets.insert(state.table, row)

  # A trial that still runs counts as any other call.
  defp forget_all(state, name, profile, tenant) do
    key = {name, profile || :_, tenant || :_}
    rows = :ets.match_object(state.table, {key, :_, :_, :_, :_, :_})

    Enum.reduce(rows, state, fn {key, _, _, failures, _, _}, state ->
      notify(state, :reset, key, failures)
      delete(state, key)
    end)
  end

  defp delete(state, key) do
    :ets.delete(state.table, key)
    %{state | failed: Map.delete(state.failed, key)}
  end

  defp notify(state, event, {name, profile, tenant}, failures) do
    Telemetry.event(
      [:skillbook, :breaker, event],
      %{failures: failures, system_time: System.system_time()},
      %{book: state.book, skill: name, profile: profile, tenant: tenant}
    )
  end
end
