defmodule Skillbook.Connections.Tokens do
  @moduledoc false
  # The connections of a running book, and the tokens in use, in an ETS table that the book's
  # supervisor owns. Readers ask the table. This process keeps it like the database, and renews
  # tokens: once for all callers of this node, in a task, while they wait until their deadlines.
  #
  # A token is renewed in the background when a part of its life is left, and callers wait only if
  # hardly any is.

  use GenServer

  require Logger

  alias Skillbook.Connections.{Account, Config, OAuth, Renewal, ServiceAccount, Table}
  alias Skillbook.Run.Worker
  alias Skillbook.{Book, ConnectionError, Profile, SQL, Telemetry}
  alias Skillbook.Store.Follower

  @typedoc "The key of a token: a connection, or the scopes of a service account for a profile."
  @type key :: {String.t(), String.t()} | {String.t(), String.t(), [String.t()]}

  # Milliseconds.
  # The pause between two attempts in the background, and between two tokens that a vendor
  # refuses, and the time that a failure is remembered.
  @pause 1_000
  # How often tokens that have expired are removed.
  @sweep 600_000

  # The table

  @doc "Makes the table, in the process of the book's supervisor."
  @spec new(atom()) :: :ok
  def new(book) do
    :ets.new(table(book), [:named_table, :public, read_concurrency: true])
    :ok
  end

  @doc "The status, scopes and address of a connection; `nil` if there is none."
  @spec fact(atom(), String.t(), atom() | String.t()) ::
          {:connected | :revoked, [String.t()], String.t() | nil} | nil
  def fact(book, profile, account) do
    with {fact, _tenant} <- lookup_fact(book, profile, account), do: fact
  end

  @doc "The same for a profile; `nil` also if the connection was made in another tenant."
  @spec own_fact(atom(), Profile.t(), atom()) ::
          {:connected | :revoked, [String.t()], String.t() | nil} | nil
  def own_fact(book, profile, account) do
    with {fact, tenant} <- lookup_fact(book, profile.id, account),
         do: if(tenant == Profile.home(profile), do: fact)
  end

  defp lookup_fact(book, profile, account) do
    case lookup(book, {:fact, {profile, to_string(account)}}) do
      [{_key, status, scopes, identity, _version, tenant}] -> {{status, scopes, identity}, tenant}
      [] -> nil
    end
  end

  defp lookup(book, key) do
    :ets.lookup(table(book), key)
  rescue
    # The book has stopped since.
    ArgumentError -> []
  end

  defp table(book), do: Module.concat(book, ConnectionsTable)
  defp name(book), do: Module.concat(book, Connections)

  @doc """
  Brings the table up to date with the database. Only changed rows are read; all of them if one
  was deleted.
  """
  @spec load(Book.t()) :: :ok | {:error, SQL.Error.t()}
  def load(book) do
    last =
      case :ets.lookup(table(book.name), :revision) do
        [{:revision, revision}] -> revision
        [] -> -1
      end

    load(book, last)
  end

  defp load(book, last) do
    with {:ok, revision, facts, count} <- Table.changes(Book.sql(book), last) do
      table = table(book.name)
      Enum.each(facts, &put_fact(table, &1))
      if last == -1, do: delete_others(table, facts)
      :ets.insert(table, {:revision, revision})

      # A row was deleted, or the database was replaced by an older copy.
      if last != -1 and (revision < last or count != count_facts(table)),
        do: load(book, -1),
        else: :ok
    end
  end

  defp put_fact(table, {key, status, scopes, identity, version, tenant}) do
    :ets.insert(table, {{:fact, key}, status, scopes, identity, version, tenant})

    case :ets.lookup(table, {:token, key}) do
      [{_key, _access, known, _, _}] when status != :connected or known < version ->
        :ets.delete(table, {:token, key})

      _none_or_new ->
        :ok
    end
  end

  defp delete_others(table, facts) do
    kept = MapSet.new(facts, &elem(&1, 0))

    for [key] <- :ets.match(table, {{:fact, :"$1"}, :_, :_, :_, :_, :_}), key not in kept do
      :ets.delete(table, {:fact, key})
      :ets.delete(table, {:token, key})
    end
  end

  defp count_facts(table),
    do: :ets.select_count(table, [{{{:fact, :_}, :_, :_, :_, :_, :_}, [], [true]}])

  # Tokens

  @doc "The token of a connection, or of a service account with one of the scopes."
  @spec fetch(Account.t(), [String.t()]) ::
          {:ok, (() -> String.t())} | {:error, ConnectionError.t()}
  def fetch(account, scopes) do
    key = key(account, scopes)
    now = System.os_time(:millisecond)

    case lookup(account.book, {:token, key}) do
      [{_key, access, version, renew_at, wait_at}] when now < wait_at ->
        if refused(account.book, key) == version do
          wait(account, key, scopes)
        else
          if now >= renew_at, do: GenServer.cast(name(account.book), {:renew, account, scopes})
          {:ok, access}
        end

      _none_or_old ->
        wait(account, key, scopes)
    end
  end

  defp key(account, scopes) do
    name = to_string(account.name)

    case account.vendor.auth(account.options) do
      :service_account -> {account.profile, name, scopes}
      :oauth -> {account.profile, name}
    end
  end

  defp refused(book, key) do
    case lookup(book, {:refused, key}) do
      [{_key, version, _at}] -> version
      [] -> nil
    end
  end

  @doc """
  Marks a token that the vendor refused, if it is the one in use. Vendors that refuse new tokens
  too are not asked for one again and again.
  """
  @spec refuse(Account.t(), (() -> String.t())) :: :ok
  def refuse(account, token) do
    table = table(account.book)
    now = System.monotonic_time(:millisecond)

    for {{:token, key}, access, version, _, _} <- in_use(table, key(account, :_)),
        access.() == token.(),
        not recent?(table, key, now),
        do: :ets.insert(table, {{:refused, key}, version, now})

    :ok
  rescue
    ArgumentError -> :ok
  end

  defp in_use(table, {_profile, _name} = key), do: :ets.lookup(table, {:token, key})
  defp in_use(table, pattern), do: :ets.match_object(table, {{:token, pattern}, :_, :_, :_, :_})

  defp recent?(table, key, now) do
    case :ets.lookup(table, {:refused, key}) do
      [{_key, _version, at}] -> now - at < @pause
      [] -> false
    end
  end

  defp wait(account, key, scopes) do
    left =
      if account.deadline,
        do: account.deadline - System.monotonic_time(:millisecond),
        else: Renewal.limit()

    if left > 0,
      do: call(account, key, scopes, left),
      else: {:error, error(account, :timeout, nil)}
  end

  defp call(account, key, scopes, left) do
    GenServer.call(name(account.book), {:token, account, scopes}, left)
  catch
    :exit, {:timeout, _call} ->
      {:error, error(account, :timeout, nil)}

    :exit, _reason ->
      # The process crashed and is being restarted, or the book has stopped.
      if Book.find(account.book) do
        Process.sleep(10)
        wait(with_deadline(account, left), key, scopes)
      else
        {:error, error(account, :unavailable, "the book has stopped")}
      end
  end

  defp with_deadline(%{deadline: nil} = account, left),
    do: %{account | deadline: System.monotonic_time(:millisecond) + left}

  defp with_deadline(account, _left), do: account

  @doc "Takes in the changes of the database, here and on the other nodes."
  @spec changed(Book.t()) :: :ok
  def changed(book) do
    _ = GenServer.call(name(book.name), :load, 15_000)
    Follower.changed(book.name)
  catch
    # They come with the next look at the database.
    :exit, _reason -> :ok
  end

  @doc "Says that the database has a new revision of connections."
  @spec follow(atom()) :: :ok
  def follow(book), do: GenServer.cast(name(book), :load)

  # The process

  @doc "Starts the process of a running book."
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book))

  def child_spec(book), do: %{id: __MODULE__, start: {__MODULE__, :start_link, [book.name]}}

  @impl true
  def init(book) do
    Process.send_after(self(), :sweep, @sweep)
    # `running` has the task of each key, with its waiting callers; `failed` the last errors.
    {:ok, %{book: book, running: %{}, failed: %{}}}
  end

  @impl true
  def handle_call({:token, account, scopes}, from, state) do
    key = key(account, scopes)
    now = System.monotonic_time(:millisecond)

    case {usable(account.book, key), state.failed} do
      {{:ok, access}, _failed} ->
        {:reply, {:ok, access}, state}

      {:error, %{^key => {until, error}}} when now < until ->
        {:reply, {:error, %{error | command: account.command}}, state}

      _renew ->
        {:noreply, start(state, key, account, scopes, [from])}
    end
  end

  def handle_call(:load, _from, state), do: {:reply, load_now(state), state}

  @impl true
  def handle_cast({:renew, account, scopes}, state),
    do: {:noreply, start(state, key(account, scopes), account, scopes, [])}

  def handle_cast(:load, state) do
    _ = load_now(state)
    {:noreply, state}
  end

  @impl true
  def handle_info({ref, result}, state) when is_reference(ref) do
    Process.demonitor(ref, [:flush])
    {:noreply, finish(state, ref, result)}
  end

  def handle_info({:DOWN, ref, :process, _pid, _reason}, state),
    do: {:noreply, finish(state, ref, {:error, :crash})}

  def handle_info(:sweep, state) do
    now = System.os_time(:millisecond)
    table = table(state.book)

    for {{:token, key}, _, _, _, wait_at} <-
          :ets.match_object(table, {{:token, :_}, :_, :_, :_, :_}),
        wait_at < now do
      :ets.delete(table, {:token, key})
      :ets.delete(table, {:refused, key})
    end

    Process.send_after(self(), :sweep, @sweep)
    now = System.monotonic_time(:millisecond)
    failed = Map.filter(state.failed, fn {_key, {until, _error}} -> until > now end)
    {:noreply, %{state | failed: failed}}
  end

  def handle_info(_message, state), do: {:noreply, state}

  defp usable(book, key) do
    now = System.os_time(:millisecond)

    with [{_key, access, version, _renew_at, wait_at}] when now < wait_at <-
           lookup(book, {:token, key}),
         false <- refused(book, key) == version,
         do: {:ok, access},
         else: (_ -> :error)
  end

  defp load_now(state) do
    with book when book != nil <- Book.find(state.book),
         {:error, error} <- load(book) do
      Logger.warning(fn ->
        "the book #{inspect(state.book)} cannot read its connections: " <>
          Exception.message(error)
      end)
    end

    :ok
  end

  # Renewing

  defp start(state, key, account, scopes, callers) do
    case state.running do
      %{^key => renewal} ->
        renewal = %{renewal | callers: callers ++ renewal.callers}
        put_in(state.running[key], renewal)

      _none ->
        refused = refused(state.book, key)

        # Without callers it runs in the background, before it is needed.
        margin = if callers == [], do: :soft, else: :hard
        work = fn -> guarded(account, fn -> renew(account, scopes, refused, margin) end) end
        task = Task.Supervisor.async_nolink(Worker.supervisor(state.book), work)
        started = System.monotonic_time()
        renewal = %{ref: task.ref, account: account, scopes: scopes, callers: callers}
        renewal = Map.put(renewal, :started, started)
        put_in(state.running[key], renewal)
    end
  end

  defp finish(state, ref, result) do
    case Enum.find(state.running, fn {_key, renewal} -> renewal.ref == ref end) do
      nil ->
        state

      {key, renewal} ->
        report(renewal, result)
        state = %{state | running: Map.delete(state.running, key)}
        finish(state, key, renewal, result)
    end
  end

  # The vendor refused it while it was read.
  defp finish(state, key, %{callers: [_ | _]} = renewal, {:ok, %{version: version}} = result) do
    if refused(state.book, key) == version,
      do: start(state, key, renewal.account, renewal.scopes, renewal.callers),
      else: reply(state, key, renewal, result)
  end

  defp finish(state, key, renewal, result), do: reply(state, key, renewal, result)

  defp reply(state, key, renewal, {:ok, token}) do
    put_token(state.book, key, token)
    for from <- renewal.callers, do: GenServer.reply(from, {:ok, token.access})
    %{state | failed: Map.delete(state.failed, key)}
  end

  defp reply(state, key, renewal, {:error, error}) do
    error =
      if error == :crash,
        do: error(renewal.account, :unavailable, "its process crashed"),
        else: error

    for from <- renewal.callers, do: GenServer.reply(from, {:error, error})
    until = System.monotonic_time(:millisecond) + @pause

    # The table knows connections that are withdrawn or gone, and a sign-in mends them at once.
    if error.kind in [:none, :revoked],
      do: state,
      else: %{state | failed: Map.put(state.failed, key, {until, error})}
  end

  defp put_token(book, key, token) do
    now = System.os_time(:millisecond)
    wait_at = token.expires_at - Renewal.margin(:hard, token.lasts)
    # A token that hardly lasts any longer is used while it does.
    wait_at = if wait_at <= now, do: min(token.expires_at, now + @pause), else: wait_at
    renew_at = max(token.expires_at - Renewal.margin(:soft, token.lasts), now + @pause)
    entry = {{:token, key}, token.access, token.version, renew_at, wait_at}
    :ets.insert(table(book), entry)
  end

  defp renew(account, scopes, refused, margin) do
    case account.vendor.auth(account.options) do
      :service_account ->
        with {:error, failure} <- ServiceAccount.token(account, scopes, Renewal.limit()) do
          {:error, service_error(account, scopes, failure)}
        else
          {:ok, grant} ->
            {:ok,
             %{
               access: grant.access,
               lasts: grant.lasts,
               version: System.unique_integer([:positive, :monotonic]),
               expires_at: System.os_time(:millisecond) + grant.lasts
             }}
        end

      :oauth ->
        book = Book.fetch!(account.book)
        changed = fn -> withdrawn(book, account) end
        options = [keys: Config.keys(book), on_revoked: changed]
        Renewal.run(Book.sql(book), account, refused, margin, options)
    end
  end

  # Asynchronous, because the process may wait for this task.
  defp withdrawn(book, account) do
    Logger.warning(
      "the connection #{account.name} of the profile #{inspect(account.profile)} was " <>
        "withdrawn; it must be made again",
      book: book.name,
      profile: account.profile
    )

    follow(book.name)
    Follower.changed(book.name)
    event(account, :revoked)
  end

  @doc "Sends the event of a changed connection."
  @spec event(Account.t(), :connected | :revoked | :disconnected) :: :ok
  def event(account, status) do
    metadata = %{
      book: account.book,
      profile: account.profile,
      account: account.name,
      status: status
    }

    measurements = %{system_time: System.system_time()}
    Telemetry.event([:skillbook, :connection, :changed], measurements, metadata)
  end

  defp service_error(account, scopes, failure) do
    case failure do
      {:unavailable, reason, _after} -> error(account, :unavailable, reason)
      {:secret, reason} -> error(account, :secret, reason)
      other -> %{error(account, :refused, OAuth.text(other)) | scopes: scopes}
    end
  end

  # An exception may have a token in it, and so may the arguments in a stack.
  defp guarded(account, fun) do
    fun.()
  rescue
    error ->
      stack =
        Enum.map(__STACKTRACE__, fn
          {module, function, arguments, place} when is_list(arguments) ->
            {module, function, length(arguments), place}

          frame ->
            frame
        end)

      Logger.error(
        "renewing the token of #{account.name} crashed: #{inspect(error.__struct__)}\n" <>
          Exception.format_stacktrace(stack)
      )

      {:error, error(account, :unavailable, "its renewal crashed")}
  catch
    kind, _reason -> {:error, error(account, :unavailable, "its renewal ended with #{kind}")}
  end

  defp report(renewal, result) do
    status =
      case result do
        {:ok, _token} -> :ok
        {:error, %{kind: kind}} -> kind
        {:error, :crash} -> :crash
      end

    account = renewal.account
    measurements = %{duration: System.monotonic_time() - renewal.started}

    metadata = %{
      book: account.book,
      profile: account.profile,
      account: account.name,
      status: status
    }

    Telemetry.event([:skillbook, :connection, :renewed], measurements, metadata)
  end

  defp error(account, kind, reason), do: ConnectionError.new(account, kind, reason)
end
