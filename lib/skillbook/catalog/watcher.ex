defmodule Skillbook.Catalog.Watcher do
  @moduledoc false
  # Makes the new generations of a running book: when files change, on `Skillbook.reload/1`, and
  # when its store changes. One process does all of it, so subscribers get the changes in order.
  # Readers do not go through it.
  #
  # Generations survive a crash, since the supervisor keeps the catalog. A restarted watcher
  # checks all roots again (unless the book has `watch: false`), because its new thread reports
  # each of them first.

  use GenServer

  alias Skillbook.Catalog.{ChangedFiles, ProblemLog}
  alias Skillbook.{Catalog, Change, Native, Source, Telemetry}

  require Logger

  # The group of all subscribers, which outlast a restart of their book.
  @subscribers Skillbook.Subscribers

  # The interval in milliseconds for polling folders and checking that the roots exist.
  @interval 1_000

  @few_problems 1_000

  # Entries of the store that were not read for so long are packed.
  @rest 300_000

  # A burst of writes is looked at once, and records of the store soon after somebody reads them.
  @log_after 100
  @look 5_000

  @doc "Starts the watcher of a running book."
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  # `:pg` instead of a registry, because it is not linked to the subscribers.
  @doc "The child that tracks the subscribers of all books of a node."
  def subscribers, do: %{id: @subscribers, start: {:pg, :start_link, [@subscribers]}}

  @doc "Reads all sources again. Subscribers are notified before it returns."
  @spec reload(atom()) :: Change.t()
  def reload(book), do: GenServer.call(name(book), :reload, :infinity)

  @doc "Takes the pages of code and of servers again; see `Skillbook.Catalog.refresh_pages/1`."
  @spec refresh_pages(atom()) :: Change.t()
  def refresh_pages(book), do: GenServer.call(name(book), :refresh_pages, :infinity)

  @doc """
  Passes rows of the database to `Skillbook.Catalog.put_stored/3`. Subscribers are notified before
  it returns.
  """
  @spec put_stored(
          atom(),
          %{columns: [String.t()], rows: [[term()]]},
          :some | :all | :replaced
        ) :: [{integer(), String.t()}]
  def put_stored(book, rows, which),
    do: GenServer.call(name(book), {:put_stored, rows, which}, :infinity)

  @doc "Subscribes a process to the changes of a book, or to the messages of another group."
  @spec subscribe(atom(), term(), pid()) :: :ok
  def subscribe(book, group \\ :changes, pid \\ self()) do
    if pid in subscribed(book, group),
      do: :ok,
      else: :pg.join(@subscribers, {book, group}, pid)
  end

  @spec unsubscribe(atom(), term()) :: :ok | :not_joined
  def unsubscribe(book, group \\ :changes), do: :pg.leave(@subscribers, {book, group}, self())

  @doc "Sends a message to the subscribers of a book on this node, or of another group."
  @spec publish(atom(), term(), term()) :: :ok
  def publish(book, message, group \\ :changes),
    do: Enum.each(subscribed(book, group), &send(&1, message))

  @doc "The subscribers of a group on all nodes."
  @spec everywhere(atom(), term()) :: [pid()]
  def everywhere(book, group), do: :pg.get_members(@subscribers, {book, group})

  defp subscribed(book, group \\ :changes),
    do: :pg.get_local_members(@subscribers, {book, group})

  defp name(book), do: Module.concat(book, Watcher)

  @impl true
  def init(book) do
    %{catalog: catalog} = book

    state = %{
      book: book.name,
      catalog: catalog,
      generation: Catalog.generation(catalog),
      # There is a book for each test.
      severities: if(book.test, do: [:error], else: [:error, :warning]),
      # Those that were logged, how many there were when all were looked at, and the generation
      # then.
      problems: MapSet.new(),
      found: 0,
      logged: nil,
      # Whether problems are logged soon.
      logs?: false
    }

    Process.send_after(self(), :rest, @rest)
    Process.send_after(self(), :look, @look)
    # A start leaves much free memory.
    Process.send_after(self(), :give_back, @look)
    {:ok, state |> log_problems() |> Map.put(:watch, watch(book))}
  end

  # The thread reports all roots first, so changes between the last load and the watch are not
  # missed.
  defp watch(%{watch: false}), do: nil

  defp watch(%{watch: watch, sources: sources}) do
    poll = if is_list(watch), do: watch[:poll]
    Native.watch_start(roots(sources), poll != nil, poll || @interval)
  end

  defp roots(sources), do: sources |> Enum.flat_map(&Source.folders/1) |> Enum.uniq()

  @impl true
  def handle_call(:reload, _from, state) do
    {{change, []}, state} = next(state, &{Catalog.refresh(&1, :all), []})
    {:reply, change, log_problems(state)}
  end

  def handle_call(:refresh_pages, _from, state) do
    {{change, []}, state} = next(state, &{Catalog.refresh_pages(&1), []})
    {:reply, change, state, {:continue, :log_problems}}
  end

  def handle_call({:put_stored, rows, which}, _from, state) do
    {{_change, unread}, state} = next(state, &Catalog.put_stored(&1, rows, which))

    if which != :some or disabled?(rows),
      do: publish(state.book, {:skillbook_disabled, state.book, :changed})

    # A writer does not wait for the log.
    {:reply, unread, log_later(state)}
  end

  @impl true
  def handle_continue(:log_problems, state), do: {:noreply, log_problems(state)}

  @impl true
  def handle_info({:skillbook_paths, paths}, state) do
    paths = queued(paths)
    {{change, []}, state} = next(state, &{Catalog.refresh(&1, paths), []})
    if subscribed(state.book) != [], do: publish_files(state, paths, change)
    {:noreply, log_problems(state)}
  end

  def handle_info(:log_problems, state) do
    # Problems that are gone stay among those that were logged, until they are the most.
    all? = MapSet.size(state.problems) > @few_problems + 2 * state.found
    {:noreply, log_problems(%{state | logs?: false}, all?, 0, MapSet.new())}
  end

  def handle_info({:log_problems, all?, from, found}, state),
    do: {:noreply, log_problems(state, all?, from, found)}

  def handle_info(:look, state) do
    Process.send_after(self(), :look, @look)
    {:noreply, log_problems(state, false, 0, MapSet.new())}
  end

  def handle_info(:give_back, state) do
    Native.memory_give_back()
    {:noreply, state}
  end

  def handle_info(:rest, state) do
    Catalog.rest(state.catalog)
    Process.send_after(self(), :rest, @rest)
    {:noreply, state}
  end

  def handle_info({:skillbook_polling, reason}, state) do
    Logger.warning(
      "the book #{inspect(state.book)} gets no notifications of changed files " <>
        "and polls its folders instead: #{reason}"
    )

    {:noreply, state}
  end

  def handle_info(:skillbook_watch_ended, state), do: {:stop, :watch_ended, state}

  # A change of a skill counts for its files too.
  defp publish_files(state, paths, change) do
    names = change.added ++ change.changed ++ change.removed

    case ChangedFiles.of(paths, roots(state.catalog.sources)) do
      :all -> publish(state.book, {:skillbook_files, state.book, :all})
      files -> publish_files(state, Enum.reject(files, fn {name, _path} -> name in names end))
    end
  end

  defp publish_files(_state, []), do: :ok
  defp publish_files(state, files), do: publish(state.book, {:skillbook_files, state.book, files})

  # The catalog has no disabled entries, so their changes make no generation.
  defp disabled?(%{columns: columns, rows: rows}) do
    at = Enum.find_index(columns, &(&1 == "enabled"))
    Enum.any?(rows, &(Enum.at(&1, at) in [0, false]))
  end

  # Merges the reports that arrived during the last reload into one.
  defp queued(paths) do
    receive do
      {:skillbook_paths, more} -> queued(merge(paths, more))
    after
      0 -> paths
    end
  end

  defp merge(paths, more) when is_list(paths) and is_list(more), do: Enum.uniq(more ++ paths)
  defp merge(_paths, _more), do: :all

  defp next(state, make) do
    began = System.monotonic_time()
    {change, _unread} = made = make.(state.catalog)

    if change.generation != state.generation do
      report(state, change, System.monotonic_time() - began)
      publish(state.book, {:skillbook, state.book, change})
    end

    {made, %{state | generation: change.generation}}
  end

  defp log_later(%{logs?: true} = state), do: state

  defp log_later(state) do
    Process.send_after(self(), :log_problems, @log_after)
    %{state | logs?: true}
  end

  defp log_problems(%{generation: generation, logged: generation} = state), do: state

  defp log_problems(state),
    do: log_problems(%{state | logged: state.generation}, true, 0, MapSet.new())

  # Some at a time, since writers wait for this process. `found` are those of the times before.
  defp log_problems(state, all?, from, found) do
    %{book: book, catalog: catalog, severities: severities, problems: problems} = state
    {current, next} = ProblemLog.log_new(book, catalog, severities, problems, all?, from)
    found = MapSet.union(found, current)
    if next, do: send(self(), {:log_problems, all?, next, found})

    if next == nil and all?,
      do: %{state | problems: found, found: MapSet.size(found)},
      else: %{state | problems: MapSet.union(problems, current)}
  end

  defp report(%{book: book, catalog: catalog}, change, duration) do
    counts = Map.new([:added, :changed, :removed], &{&1, length(Map.fetch!(change, &1))})
    measurements = Map.merge(counts, %{duration: duration, entries: Catalog.size(catalog)})
    metadata = %{book: book, generation: change.generation}
    Telemetry.event([:skillbook, :catalog, :reload], measurements, metadata)
  end
end
