defmodule Skillbook.Store.Follower do
  @moduledoc false
  # Keeps the catalog of a running book at what its database holds, whoever writes there.
  #
  # Each write raises `revision` in the settings and stamps it on the row, and revisions are committed in their order. So
  # what came after a revision is all that is missing; a notice, wherever it comes from, only says that it is time to look.
  # The revision that the catalog shows stands in a counter of the book, which outlives this process and the watcher.

  use GenServer

  alias Skillbook.Catalog.Watcher
  alias Skillbook.SQL.Error
  alias Skillbook.Store.Table
  alias Skillbook.{Catalog, SQL, Stored, Telemetry}

  require Logger

  # The processes of all connected nodes that follow a database, by its id.
  @nodes Skillbook.Store.Nodes

  @channel "skillbook"

  # How often a database is asked that tells by itself, and one that is away, in the end.
  @calm 30_000

  @columns Enum.join(Table.columns(), ", ")

  @doc "Starts it for a running book."
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "What knows the followers on all nodes."
  def nodes, do: %{id: @nodes, start: {:pg, :start_link, [@nodes]}}

  @doc "Brings a book's catalog to what the database holds, before anybody can see it."
  @spec load(Skillbook.Book.t()) :: {:ok, non_neg_integer()} | {:error, Error.t()}
  def load(book) do
    # In a process that ends: all rows at once are garbage that the caller, which lives on, would keep.
    fn ->
      with {:ok, settings} <- settings(sql(book)),
           {:ok, found} <- read(book, settings.revision, :all) do
        {_change, unread} = Catalog.put_stored(book.catalog, found.rows, :all)
        left_out(book, unread)
        :atomics.put(book.revision, 1, found.revision)
        {:ok, found.revision}
      end
    end
    |> Task.async()
    |> Task.await(:infinity)
  end

  # As long as a database takes to be there again, but no longer than one who wrote can be kept waiting.
  @patience 15_000

  @doc """
  Returns once the catalog of a running book with a store shows what was written up to a revision, at the latest after so
  many milliseconds: a database that went away right after the write may stay away. What was written is there all the same,
  and shown once it can be read. Must not be called inside a transaction, whose end it would wait for.

  Who knows that an entry is all that was written at the revision gives it, so that it need not be
  read.
  """
  @spec sync(atom(), pos_integer(), Stored.t() | nil, pos_integer()) :: :ok | {:error, Error.t()}
  def sync(book, revision, written \\ nil, patience \\ @patience) do
    case Process.whereis(book) do
      nil ->
        {:error, stopped(book, revision)}

      supervisor ->
        sync(book, supervisor, revision, written, System.monotonic_time(:millisecond) + patience)
    end
  end

  defp sync(book, supervisor, revision, written, deadline) do
    left = max(deadline - System.monotonic_time(:millisecond), 0)
    GenServer.call(name(book), {:sync, revision, written}, left)
  catch
    :exit, {:timeout, _call} ->
      {:error, late(book, revision)}

    :exit, _reason ->
      if Process.alive?(supervisor) do
        # It crashed, and is started again.
        Process.sleep(10)
        sync(book, supervisor, revision, written, deadline)
      else
        {:error, stopped(book, revision)}
      end
  end

  defp late(book, revision) do
    message =
      "the catalog of the book #{inspect(book)} does not show revision #{revision} yet; what was written is in the " <>
        "database, and is shown once it can be read"

    Logger.warning(message)
    Telemetry.event([:skillbook, :store, :late], %{revision: revision}, %{book: book})
    %Error{kind: :timeout, message: message}
  end

  defp stopped(book, revision) do
    message =
      "the book #{inspect(book)} stopped before its catalog showed revision #{revision}; " <>
        "what was written is in the database"

    %Error{kind: :closed, message: message}
  end

  defp name(book), do: Module.concat(book, Follower)

  @impl true
  def init(book) do
    state = %{
      book: Map.take(book, [:name, :store, :catalog, :revision]),
      poll: book.store_poll,
      timer: nil,
      group: nil,
      listening: false,
      # How long to wait before asking again what could not be asked, and since when; nil while all is well.
      away: nil,
      waiting: []
    }

    {:ok, state, {:continue, :follow}}
  end

  @impl true
  def handle_continue(:follow, state), do: {:noreply, state |> listen() |> look()}

  @impl true
  def handle_call({:sync, revision, written}, from, state) do
    before = shown(state)

    if before >= revision do
      {:reply, :ok, state}
    else
      state = %{state | waiting: [{revision, from} | state.waiting]}
      state = if written, do: take_in(state, revision, written), else: look(state)
      if shown(state) > before, do: tell_others(state)
      {:noreply, state}
    end
  end

  @impl true
  def handle_info(:look, state), do: {:noreply, state |> listen() |> look()}

  def handle_info({:skillbook_revision, revision}, state),
    do: {:noreply, look_for(state, revision)}

  def handle_info({:skillbook_notify, @channel, payload}, state) do
    case Integer.parse(payload) do
      {revision, ""} -> {:noreply, look_for(state, revision)}
      _ -> {:noreply, look(state)}
    end
  end

  # The connection that listens was lost and is back.
  def handle_info({:skillbook_notify_lost, @channel}, state), do: {:noreply, look(state)}

  def handle_info(_message, state), do: {:noreply, state}

  # Notices

  # Before each look, so that nothing between the two is missed; who listens already is not made to again.
  defp listen(%{book: %{store: {module, options}}} = state) do
    listens? = Code.ensure_loaded?(module) and function_exported?(module, :listen, 2)
    %{state | listening: listens? and module.listen(options[:name], @channel) == :ok}
  catch
    :exit, _reason -> %{state | listening: false}
  end

  defp look_for(state, revision), do: if(shown(state) >= revision, do: state, else: look(state))

  defp tell_others(state) do
    for pid <- :pg.get_members(@nodes, state.group),
        pid != self(),
        do: send(pid, {:skillbook_revision, shown(state)})
  end

  defp join(%{group: group} = state, group), do: state

  defp join(state, group) do
    if state.group, do: :pg.leave(@nodes, state.group, self())
    :ok = :pg.join(@nodes, group, self())
    %{state | group: group}
  end

  # Looking

  defp look(state) do
    case catch_up(state) do
      {:ok, state} -> state |> back() |> answer() |> schedule()
      {:error, error} -> state |> away(error) |> schedule()
    end
  end

  # Nothing came between what shows and what was written. A database that was never read may be any.
  defp take_in(%{group: group} = state, revision, written) when group != nil do
    with true <- shown(state) == revision - 1,
         :ok <- put(state, %{revision: revision, rows: Table.row(written), which: :some}) do
      answer(state)
    else
      _ -> look(state)
    end
  end

  defp take_in(state, _revision, _written), do: look(state)

  defp catch_up(state) do
    with {:ok, settings} <- settings(sql(state.book)),
         {:ok, found} <- read(state.book, settings.revision, shown(state)),
         :ok <- put(state, found) do
      {:ok, join(state, settings.database)}
    end
  end

  # All new generations are made by the watcher. If it crashes, this process ends with it.
  defp put(state, %{revision: revision, rows: rows, which: which}) do
    if which == :all or rows.rows != [],
      do: left_out(state.book, Watcher.put_stored(state.book.name, rows, which))

    :atomics.put(state.book.revision, 1, revision)
  catch
    :exit, _reason -> {:error, %Error{kind: :other, message: "the book's watcher is gone"}}
  end

  defp settings(sql) do
    statement = "select key, value from skillbook_settings where key in ('database', 'revision')"

    with {:ok, %{rows: rows}} <- SQL.query(sql, statement) do
      values = Map.new(rows, &List.to_tuple/1)
      {:ok, %{database: values["database"], revision: String.to_integer(values["revision"])}}
    end
  end

  # The revision was read before the rows, so that none up to it is missed; rows that came since are there as well.
  defp read(_book, revision, revision),
    do: {:ok, %{revision: revision, rows: %{rows: []}, which: :some}}

  # Somebody put an older state of the database back.
  defp read(book, revision, last) when is_integer(last) and revision < last,
    do: read(book, revision, :all)

  defp read(book, revision, :all) do
    found(book, revision, :all, "where enabled = 1 and deleted_at is null order by id", [])
  end

  # The sign keeps SQLite from walking through all entries by their ids, where the index of
  # revisions names a few.
  defp read(book, revision, last),
    do: found(book, revision, :some, "where revision > $1 order by +id", [last])

  defp found(book, revision, which, rest, params) do
    with {:ok, rows} <-
           SQL.query(
             sql(book),
             "select #{@columns}, revision from skillbook_entries #{rest}",
             params
           ) do
      revision = Enum.reduce(rows.rows, revision, &max(List.last(&1), &2))
      {:ok, %{revision: revision, rows: rows, which: which}}
    end
  end

  # A row that some other program wrote in its own way does not keep the rest away.
  defp left_out(book, unread) do
    for {id, reason} <- unread do
      Logger.error(
        "the book #{inspect(book.name)} leaves the row #{id} of skillbook_entries out, which it cannot read: #{reason}"
      )
    end
  end

  defp sql(%{store: {module, options}}), do: module.handle(options[:name])
  defp shown(state), do: :atomics.get(state.book.revision, 1)

  defp answer(state) do
    {done, waiting} =
      Enum.split_with(state.waiting, fn {revision, _from} -> shown(state) >= revision end)

    for {_revision, from} <- done, do: GenServer.reply(from, :ok)
    %{state | waiting: waiting}
  end

  # The database may be away for a while; reading the catalog goes on meanwhile.

  defp away(%{away: nil} = state, error) do
    Logger.warning(
      "the book #{inspect(state.book.name)} cannot read its database and goes on with what it has: " <>
        Exception.message(error)
    )

    metadata = %{book: state.book.name, kind: error.kind}
    Telemetry.event([:skillbook, :store, :away], %{system_time: System.system_time()}, metadata)
    %{state | away: {state.poll, System.monotonic_time()}}
  end

  defp away(%{away: {delay, since}} = state, _error), do: %{state | away: {later(delay), since}}

  defp back(%{away: nil} = state), do: state

  defp back(%{away: {_delay, since}} = state) do
    Logger.info("the book #{inspect(state.book.name)} reads its database again")
    measurements = %{duration: System.monotonic_time() - since}
    Telemetry.event([:skillbook, :store, :back], measurements, %{book: state.book.name})
    %{state | away: nil}
  end

  defp later(delay), do: max(delay, min(2 * delay, @calm))

  defp schedule(state) do
    if state.timer, do: Process.cancel_timer(state.timer)
    %{state | timer: Process.send_after(self(), :look, delay(state))}
  end

  defp delay(%{away: {delay, _since}}), do: delay
  defp delay(%{listening: true, waiting: []} = state), do: max(state.poll, @calm)
  defp delay(state), do: state.poll
end
