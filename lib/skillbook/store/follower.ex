defmodule Skillbook.Store.Follower do
  @moduledoc false
  # Keeps the catalog of a running book in sync with its database, whichever node writes there.
  #
  # Each transaction that writes raises `revision` in the settings and stamps it on its rows, and
  # transactions commit in the order of their revisions. So the rows above the catalog's revision
  # are all that is missing. A notification carries no data: it only triggers a query. If it is
  # lost, the next poll finds the change. The catalog's revision is in a counter of the book,
  # which outlives this process and the watcher, and so is that of the operations that this node
  # has seen.
  #
  # A server that takes over from a lost one, or a restored copy, may lack the last writes and
  # have others at the same revisions. So the last write that was seen is looked for at each
  # query; if it is gone, all entries are read again. If there are many, those of tenants are
  # forgotten, and fetched when somebody reads them.

  use GenServer

  alias Skillbook.Catalog.Watcher
  alias Skillbook.Run.Operations
  alias Skillbook.SQL.Error
  alias Skillbook.Store.Table
  alias Skillbook.Support.{Number, UntilError}
  alias Skillbook.{Book, Catalog, Part, Profile, SQL, Stored, Telemetry}

  require Logger

  # The process group of all followers on connected nodes; a group per database id.
  @nodes Skillbook.Store.Nodes

  @channel "skillbook"

  # The longest poll interval: for a database that sends notifications, and for one that has been
  # unreachable for a while.
  @max_poll 30_000

  @columns Enum.join(Table.columns(), ", ")

  # The fields of a book that its parts get.
  @of_parts [:of_parts, :sources, :parts]

  @doc "Starts the follower of a running book."
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "The child specification of the process group."
  def nodes, do: %{id: @nodes, start: {:pg, :start_link, [@nodes]}}

  # So many records are in memory from the start, and stay. If there are more, those of a tenant
  # are fetched when somebody reads them.
  @few 10_000

  @doc "Returns the catalog of a book, which fetches records that are not in memory."
  @spec fetching(Catalog.t(), Skillbook.Book.t()) :: Catalog.t()
  def fetching(catalog, %{store: nil} = book) do
    Catalog.limit(catalog, book.store_memory, nil)
    catalog
  end

  def fetching(catalog, book) do
    Catalog.limit(catalog, book.store_memory, @few)
    %{catalog | fetch: {__MODULE__, :fetch, [Map.take(book, [:name, :store])]}}
  end

  @doc """
  Loads the database into the catalog of a book that is starting. If it has many records, these
  are the ones that are common to all tenants, and those with a schedule.
  """
  @spec load(Skillbook.Book.t()) :: {:ok, non_neg_integer()} | {:error, Error.t()}
  def load(book) do
    # In a short-lived process, because the rows are garbage that a long-lived caller would keep.
    fn ->
      with {:ok, settings} <- settings(book, nil),
           :ok <- load(book, :atomics.get(book.revision, 1)) do
        Catalog.rest(book.catalog)
        :atomics.put(book.revision, 1, settings.revision)
        :atomics.put(book.revision, 2, settings.operations)
        {:ok, settings.revision}
      end
    end
    |> Task.async()
    |> Task.await(:infinity)
  end

  defp load(book, 0) do
    with {:ok, parts} <- parts(book),
         do: UntilError.each(parts, fn part -> fetch(book.catalog, part, book, &ahead/1) end)
  end

  # The connection was lost and is back, maybe without some entries. Readers see all of them at
  # once.
  defp load(book, revision) do
    with {:ok, %{rows: rows, which: which}} <- read(book, revision, :all) do
      {_change, unread} = Catalog.put_stored(book.catalog, rows, which)
      log_unread(book, unread)
      :ok
    end
  end

  # The parts of the table that are read at a start.
  defp parts(book) do
    with {:ok, {all, common}} <- Table.counts(sql(book)) do
      cond do
        all <= @few -> {:ok, [:all]}
        common > all - common -> {:ok, [:common, :scheduled]}
        true -> {:ok, [nil, :scheduled]}
      end
    end
  end

  # Some rows at a time, since as terms they are larger than in the catalog.
  @fetched_at_once 2_000

  @doc """
  Fetches the records of a tenant into a catalog; with `:all`, `:common` and `:scheduled` those of
  `Skillbook.Store.Table.enabled/4`.

  The catalog may have seen later revisions than the rows, and knows which of its records are
  newer. A row that changes meanwhile has a later revision, and is read again.
  """
  @spec fetch(Catalog.t(), Profile.tenant() | :common | :scheduled, map()) ::
          :ok | {:error, Error.t()}
  def fetch(catalog, tenant, book) do
    # Its own rows, which it may roll back, must not get into the catalog.
    inside? = with {:ok, sql} <- handle(book), do: SQL.in_transaction?(sql), else: (_ -> false)
    fetch(catalog, tenant, book, if(inside?, do: &ahead/1, else: & &1))
  end

  defp fetch(catalog, tenant, book, ahead) do
    start = System.monotonic_time()
    to = if tenant == :common, do: nil, else: tenant
    fetch = Catalog.begin(catalog, to)

    {result, rows} =
      reduce_pages(book, tenant, ahead, 0, fn page, count ->
        log_unread(book, Catalog.take_in(fetch, page))
        count + length(page.rows)
      end)

    Catalog.fetched(fetch, result == :ok)
    measurements = %{duration: System.monotonic_time() - start, rows: rows}
    kind = with {:error, error} <- result, do: error.kind, else: (:ok -> nil)
    metadata = %{book: book.name, tenant: to, kind: kind}
    Telemetry.event([:skillbook, :store, :fetched], measurements, metadata)
    Book.embed(book.name, :entries)
    result
  end

  defp ahead(read) do
    task = Task.async(read)
    fn -> Task.await(task, :infinity) end
  end

  # Reduces the pages of a tenant's rows, up to an error. With `ahead/1` the next one is read
  # while the function has the one before.
  defp reduce_pages(book, tenant, ahead, acc, fun) do
    read = fn last -> ahead.(fn -> rows_after(book, tenant, last) end) end
    reduce_pages(read.(nil), read, acc, fun)
  end

  defp reduce_pages(page, read, acc, fun) do
    case page.() do
      {:ok, %{rows: rows} = page} ->
        next = if length(rows) == @fetched_at_once, do: read.(List.last(rows))
        acc = fun.(page, acc)
        if next, do: reduce_pages(next, read, acc, fun), else: {:ok, acc}

      error ->
        {error, acc}
    end
  end

  defp rows_after(book, tenant, last) do
    with {:ok, sql} <- handle(book), do: Table.enabled(sql, tenant, last, @fetched_at_once)
  end

  defp handle(book) do
    {:ok, sql(book)}
  rescue
    # The database is restarting.
    ArgumentError -> {:error, Error.closed()}
  end

  # Long enough for a database to restart, short enough for the caller of a write.
  @timeout 15_000

  @doc """
  Waits until the catalog of a running book shows a revision.

  After `timeout` milliseconds it returns an error, because a database that became unreachable
  right after the write may stay so. The write is stored, and shown once the database answers.
  Must not be called inside a transaction, because it would wait for the commit.
  """
  @spec sync(atom(), pos_integer(), pos_integer()) :: :ok | {:error, Error.t()}
  def sync(book, revision, timeout \\ @timeout) do
    case Process.whereis(book) do
      nil ->
        {:error, stopped(book, revision)}

      supervisor ->
        sync(book, supervisor, revision, System.monotonic_time(:millisecond) + timeout)
    end
  end

  defp sync(book, supervisor, revision, deadline) do
    left = max(deadline - System.monotonic_time(:millisecond), 0)
    GenServer.call(name(book), {:sync, revision}, left)
  catch
    :exit, {:timeout, _call} ->
      {:error, late(book, revision)}

    :exit, _reason ->
      if Process.alive?(supervisor) do
        # The follower crashed and is being restarted.
        Process.sleep(10)
        sync(book, supervisor, revision, deadline)
      else
        {:error, stopped(book, revision)}
      end
  end

  @doc """
  Passes the entries that this node has just written with a revision, in their order, so that they
  need not be read.
  """
  @spec written(atom(), pos_integer(), [Stored.t()]) :: :ok
  def written(book, revision, entries),
    do: GenServer.cast(name(book), {:written, revision, entries})

  @doc """
  Says that a change of the database has no revision of an entry, such as one of connections or
  of approvals of MCP servers. Followers look at the database, here and on connected nodes.
  """
  @spec changed(atom()) :: :ok
  def changed(book), do: GenServer.cast(name(book), :changed)

  defp late(book, revision) do
    message =
      "the catalog of the book #{inspect(book)} does not show revision #{revision} yet; " <>
        "the write is in the database, and is shown once the database answers"

    Logger.warning(message)
    Telemetry.event([:skillbook, :store, :late], %{revision: revision}, %{book: book})
    %Error{kind: :timeout, message: message}
  end

  defp stopped(book, revision) do
    message =
      "the book #{inspect(book)} stopped before its catalog showed revision #{revision}; " <>
        "the write is in the database"

    %Error{kind: :closed, message: message}
  end

  defp name(book), do: Module.concat(book, Follower)

  @impl true
  def init(book) do
    state = %{
      book: Map.take(book, [:name, :store, :catalog, :revision | @of_parts]),
      poll: book.store_poll,
      timer: nil,
      group: nil,
      listening: false,
      # The settings that parts were told, such as the revision of the connections.
      told: %{},
      # The last write in the catalog, `{entry's id, version, time}`.
      seen: nil,
      # `{delay, since}` while the database is unreachable: the delay until the next attempt.
      away: nil,
      waiting: []
    }

    {:ok, state, {:continue, :follow}}
  end

  @impl true
  def handle_continue(:follow, state), do: {:noreply, state |> listen() |> refresh()}

  @impl true
  def handle_call({:sync, revision}, from, state) do
    if current(state) >= revision,
      do: {:reply, :ok, state},
      else:
        {:noreply, notifying(%{state | waiting: [{revision, from} | state.waiting]}, &refresh/1)}
  end

  @impl true
  def handle_cast({:written, revision, entries}, state),
    do: {:noreply, notifying(state, &put_written(&1, revision, entries))}

  def handle_cast(:changed, state) do
    for pid <- members(state), do: send(pid, :refresh)
    {:noreply, refresh(state)}
  end

  @impl true
  def handle_info(:refresh, state), do: {:noreply, state |> listen() |> refresh()}

  def handle_info({:skillbook_revision, revision}, state),
    do: {:noreply, refresh(state, revision)}

  def handle_info({:skillbook_notify, @channel, payload}, state) do
    case Number.integer(payload) do
      {revision, ""} -> {:noreply, refresh(state, revision)}
      _ -> {:noreply, refresh(state)}
    end
  end

  # The listening connection was lost and is back.
  def handle_info({:skillbook_notify_lost, @channel}, state), do: {:noreply, refresh(state)}

  def handle_info(_message, state), do: {:noreply, state}

  # Notifications

  # Called before each query, so that no write between the two is missed. Listening twice is
  # harmless.
  defp listen(%{book: %{store: {module, options}}} = state) do
    listens? = Code.ensure_loaded?(module) and function_exported?(module, :listen, 2)
    %{state | listening: listens? and module.listen(options[:name], @channel) == :ok}
  catch
    :exit, _reason -> %{state | listening: false}
  end

  # Tells connected nodes of a write of this one.
  defp notifying(state, change) do
    before = current(state)
    state = change.(state)
    now = current(state)
    if now > before, do: for(pid <- members(state), do: send(pid, {:skillbook_revision, now}))
    state
  end

  defp members(state), do: :pg.get_members(@nodes, state.group) -- [self()]

  defp join(%{group: group} = state, group), do: state

  defp join(state, group) do
    if state.group, do: :pg.leave(@nodes, state.group, self())
    :ok = :pg.join(@nodes, group, self())
    %{state | group: group}
  end

  # Reading

  defp refresh(state, revision),
    do: if(current(state) >= revision, do: state, else: refresh(state))

  defp refresh(state) do
    case catch_up(state) do
      {:ok, state} -> state |> report_back() |> reply() |> schedule()
      {:error, error} -> state |> report_away(error) |> schedule()
    end
  end

  # Takes entries without reading them, if their revision is the next one. Otherwise their
  # writers, who ask for the revision next, have them read. Before the first query the database's
  # id is unknown, and with it the group of nodes to notify.
  defp put_written(%{group: nil} = state, _revision, _entries), do: state

  defp put_written(state, revision, entries) do
    last = List.last(entries)
    # Of an entry that was written twice, the newest state.
    newest = entries |> Map.new(&{&1.id, &1}) |> Map.values()

    with true <- revision == current(state) + 1,
         :ok <- put(state, %{revision: revision, rows: Table.rows(newest), which: :some}) do
      reply(%{state | seen: {last.id, last.version, last.updated_at}})
    else
      _ -> state
    end
  end

  defp catch_up(state) do
    with {:ok, settings} <- settings(state.book, state.seen),
         last = if(settings.seen?, do: current(state), else: replaced(state)),
         {:ok, update} <- read(state.book, settings.revision, last),
         {:ok, seen} <- seen(state, update),
         :ok <- put(state, update),
         :ok <- tell_operations(state.book, settings.operations) do
      state = join(%{state | seen: seen}, settings.database)
      {:ok, tell_parts(state, settings.values)}
    end
  end

  defp replaced(state) do
    Logger.warning(
      "the database of the book #{inspect(state.book.name)} lacks a write that the catalog " <>
        "shows, as after a failover or a restored copy; all its entries are read again"
    )

    :all
  end

  # The rows of an update are all entries that changed, or some of those that the catalog shows.
  defp seen(%{seen: seen}, %{which: :some, rows: %{rows: []}}) when seen != nil, do: {:ok, seen}

  defp seen(state, _update) do
    query = "select id, version, updated_at from skillbook_entries order by revision desc limit 1"

    with {:ok, %{rows: rows}} <- SQL.query(sql(state.book), query),
         do: {:ok, rows |> List.first() |> then(&(&1 && List.to_tuple(&1)))}
  end

  defp tell_parts(%{book: book} = state, values) do
    for part <- book.parts,
        setting <- Part.flat([part], :settings),
        values[setting] != state.told[setting],
        do: part.changed(book, setting)

    %{state | told: values}
  end

  # Schedules and breakers follow the operations of other nodes.
  defp tell_operations(book, revision) do
    case :atomics.get(book.revision, 2) do
      ^revision ->
        :ok

      last ->
        with :ok <- Operations.follow(book.name, sql(book), last),
             do: :atomics.put(book.revision, 2, revision)
    end
  end

  # Only the watcher makes new generations. If it crashes, this process is restarted with it.
  defp put(state, %{revision: revision, rows: rows, which: which}) do
    if which != :some or rows.rows != [],
      do: log_unread(state.book, Watcher.put_stored(state.book.name, rows, which))

    :atomics.put(state.book.revision, 1, revision)
  catch
    :exit, _reason -> {:error, %Error{kind: :other, message: "the book's watcher is gone"}}
  end

  @settings ["database", "revision", "operations"]
  # Writes of other programs may have no version.
  @seen " union all select 'seen', '' from skillbook_entry_versions " <>
          "where entry_id = $1 and version = $2 and at = $3 " <>
          "union all select 'seen', '' from skillbook_entries " <>
          "where id = $1 and version = $2 and updated_at = $3"

  defp settings(book, seen) do
    keys = Enum.map_join(@settings ++ Part.flat(book.parts, :settings), ", ", &"'#{&1}'")
    statement = "select key, value from skillbook_settings where key in (#{keys})"
    {more, values} = if seen, do: {@seen, Tuple.to_list(seen)}, else: {"", []}

    with {:ok, %{rows: rows}} <- SQL.query(sql(book), statement <> more, values) do
      values = Map.new(rows, &List.to_tuple/1)

      {:ok,
       %{
         database: values["database"],
         revision: Number.integer!(values["revision"]),
         operations: Number.integer!(values["operations"] || "0"),
         values: values,
         seen?: seen == nil or is_map_key(values, "seen")
       }}
    end
  end

  # The revision is read before the rows, so no row up to it is missed. Later rows may be
  # included.
  defp read(_book, revision, revision),
    do: {:ok, %{revision: revision, rows: %{rows: []}, which: :some}}

  # The database was replaced by an older copy.
  defp read(book, revision, last) when is_integer(last) and revision < last,
    do: read(book, revision, :all)

  defp read(book, revision, :all) do
    case parts(book) do
      {:ok, [:all]} ->
        select(book, revision, :all, "where enabled = 1 and deleted_at is null order by id", [])

      {:ok, parts} ->
        with {:ok, pages} <- UntilError.map(parts, &pages(book, &1)) do
          [%{columns: columns} | _] = pages = Enum.concat(pages)
          rows = %{columns: columns, rows: Enum.flat_map(pages, & &1.rows)}
          {:ok, %{revision: revision, rows: rows, which: :replaced}}
        end

      error ->
        error
    end
  end

  # The `+` makes SQLite use the index of revisions. By the ids it would scan all entries.
  defp read(book, revision, last),
    do: select(book, revision, :some, "where revision > $1 order by +id", [last])

  # All rows of a part. Those that were written meanwhile have later revisions, and are read
  # again.
  defp pages(book, part) do
    with {:ok, pages} <- reduce_pages(book, part, & &1, [], &[&1 | &2]),
         do: {:ok, Enum.reverse(pages)},
         else: ({error, _pages} -> error)
  end

  defp select(book, revision, which, rest, params) do
    statement = "select #{@columns}, revision from skillbook_entries #{rest}"

    with {:ok, rows} <- SQL.query(sql(book), statement, params) do
      revision = Enum.reduce(rows.rows, revision, &max(List.last(&1), &2))
      {:ok, %{revision: revision, rows: rows, which: which}}
    end
  end

  # An unreadable row, written by another program, does not stop the others from loading.
  defp log_unread(book, unread) do
    for {id, reason} <- unread do
      Logger.error(
        "the book #{inspect(book.name)} skips the row #{id} of skillbook_entries, " <>
          "which cannot be read: #{reason}"
      )
    end
  end

  defp sql(%{store: {module, options}}), do: module.handle(options[:name])

  # The revision that the catalog shows.
  defp current(state), do: :atomics.get(state.book.revision, 1)

  defp reply(state) do
    {done, waiting} =
      Enum.split_with(state.waiting, fn {revision, _from} -> current(state) >= revision end)

    for {_revision, from} <- done, do: GenServer.reply(from, :ok)
    %{state | waiting: waiting}
  end

  # While the database is unreachable, the catalog stays readable.

  defp report_away(%{away: nil} = state, error) do
    Logger.warning(
      "the book #{inspect(state.book.name)} cannot read its database; its catalog stays as " <>
        "it is: " <>
        Exception.message(error)
    )

    metadata = %{book: state.book.name, kind: error.kind}
    Telemetry.event([:skillbook, :store, :away], %{system_time: System.system_time()}, metadata)
    %{state | away: {state.poll, System.monotonic_time()}}
  end

  defp report_away(%{away: {delay, since}} = state, _error),
    do: %{state | away: {max(delay, min(2 * delay, @max_poll)), since}}

  defp report_back(%{away: nil} = state), do: state

  defp report_back(%{away: {_delay, since}} = state) do
    Logger.info("the book #{inspect(state.book.name)} reads its database again")
    measurements = %{duration: System.monotonic_time() - since}
    Telemetry.event([:skillbook, :store, :back], measurements, %{book: state.book.name})
    %{state | away: nil}
  end

  defp schedule(state) do
    if state.timer, do: Process.cancel_timer(state.timer)
    %{state | timer: Process.send_after(self(), :refresh, delay(state))}
  end

  defp delay(%{away: {delay, _since}}), do: delay
  defp delay(%{listening: true, waiting: []} = state), do: max(state.poll, @max_poll)
  defp delay(state), do: state.poll
end
