defmodule Skillbook.Catalog.Watcher do
  @moduledoc false
  # The one place where a running book gets new generations: when files changed, when somebody asks for it, and when its
  # store changed. So one comes after another, and subscribers hear of them in their order. Reading goes on without it.

  use GenServer

  alias Skillbook.{Catalog, Change, Native, Telemetry}

  require Logger

  # How often folders are looked through that report no changes, and roots are checked to be there.
  @interval 1_000

  @doc "Starts it for a running book."
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "The process that knows a book's subscribers; unlike a registry it is not linked to them."
  def subscribers(book), do: %{id: :pg, start: {:pg, :start_link, [scope(book)]}}

  @doc "Reads everything again; subscribers have been told when it returns."
  @spec reload(atom()) :: Change.t()
  def reload(book), do: GenServer.call(name(book), :reload, :infinity)

  @doc "Takes in rows of the database, as `Skillbook.Catalog.put_stored/3`; subscribers have been told when it returns."
  @spec put_stored(atom(), %{columns: [String.t()], rows: [[term()]]}, :all | :some) :: [
          {integer(), String.t()}
        ]
  def put_stored(book, rows, which),
    do: GenServer.call(name(book), {:put_stored, rows, which}, :infinity)

  @spec subscribe(atom()) :: :ok
  def subscribe(book) do
    if self() in subscribed(book), do: :ok, else: :pg.join(scope(book), :changes, self())
  end

  @spec unsubscribe(atom()) :: :ok
  def unsubscribe(book) do
    :pg.leave(scope(book), :changes, self())
    :ok
  end

  defp subscribed(book), do: :pg.get_local_members(scope(book), :changes)
  defp name(book), do: Module.concat(book, Watcher)
  defp scope(book), do: Module.concat(book, Subscribers)

  @impl true
  def init(book) do
    %{catalog: catalog} = book
    {generation, entries} = {Catalog.generation(catalog), Catalog.count(catalog)}
    state = %{book: book.name, catalog: catalog, generation: generation, entries: entries}
    {:ok, Map.put(state, :watch, watch(book))}
  end

  # What happened until the folders are watched, since the catalog was loaded or since this process was started again, the
  # thread makes up for by naming all roots first.
  defp watch(%{watch: false}), do: nil

  defp watch(%{watch: watch, sources: sources}) do
    roots =
      for source <- sources,
          source.trust != :none,
          source.kind != :stored,
          uniq: true,
          do: source.path

    poll = if is_list(watch), do: watch[:poll]
    Native.watch_start(roots, poll != nil, poll || @interval)
  end

  @impl true
  def handle_call(:reload, _from, state) do
    {{change, []}, state} = next(state, &{Catalog.refresh(&1, :all), []})
    {:reply, change, state}
  end

  def handle_call({:put_stored, rows, which}, _from, state) do
    {{_change, unread}, state} = next(state, &Catalog.put_stored(&1, rows, which))
    {:reply, unread, state}
  end

  @impl true
  def handle_info({:skillbook_paths, paths}, state) do
    paths = waiting(paths)
    {_change, state} = next(state, &{Catalog.refresh(&1, paths), []})
    {:noreply, state}
  end

  def handle_info({:skillbook_polling, reason}, state) do
    Logger.warning(
      "the book #{inspect(state.book)} gets no reports of changed files and looks through its folders instead: #{reason}"
    )

    {:noreply, state}
  end

  def handle_info(:skillbook_watch_ended, state), do: {:stop, :watch_ended, state}

  # What was told of while the last reload went on is one reload more, not many.
  defp waiting(paths) do
    receive do
      {:skillbook_paths, more} -> waiting(merge(paths, more))
    after
      0 -> paths
    end
  end

  defp merge(paths, more) when is_list(paths) and is_list(more), do: Enum.uniq(more ++ paths)
  defp merge(_paths, _more), do: :all

  defp next(state, make) do
    began = System.monotonic_time()
    {change, _unread} = made = make.(state.catalog)

    entries = state.entries + length(change.added) - length(change.removed)

    if change.generation != state.generation do
      tell(state.book, change, entries, System.monotonic_time() - began)
      publish(state.book, change)
    end

    {made, %{state | generation: change.generation, entries: entries}}
  end

  defp tell(book, change, entries, duration) do
    counts = Map.new([:added, :changed, :removed], &{&1, length(Map.fetch!(change, &1))})
    measurements = Map.merge(counts, %{duration: duration, entries: entries})
    metadata = %{book: book, generation: change.generation}
    Telemetry.event([:skillbook, :catalog, :reload], measurements, metadata)
  end

  defp publish(book, change) do
    for pid <- subscribed(book), do: send(pid, {:skillbook, book, change})
  end
end
