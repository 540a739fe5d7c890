defmodule Skillbook.Run.Drain do
  @moduledoc false
  # Ends a book: from then on nothing starts, and what runs has a time to end. After it, the
  # handlers that still run are killed, and their callers have a moment to store that they were
  # interrupted; then the other processes of the book stop, the database last.
  #
  # A run is one that nobody waits for inside of the book: a command, a workflow, a scheduled run,
  # an approved call. Its process is in a table while it runs. Commands that its handler or its
  # steps run belong to it, so they start until the time is over.

  use GenServer

  alias Skillbook.Book
  alias Skillbook.Run.Worker

  # Milliseconds beyond the time: to store results, and for the supervisor's own limit.
  @store 2_000
  @margin 5_000
  # How often entries of callers that were killed are removed.
  @sweep 60_000

  @doc "Makes the table of a book, for the process that is its supervisor."
  @spec new(atom()) :: :ok
  def new(book) do
    concurrency = [write_concurrency: true, read_concurrency: true]
    :ets.new(table(book), [:named_table, :public] ++ concurrency)
    :ok
  end

  @spec child_spec(Book.t()) :: Supervisor.child_spec()
  def child_spec(book) do
    start = {GenServer, :start_link, [__MODULE__, book]}
    %{id: __MODULE__, start: start, shutdown: book.drain + @store + @margin}
  end

  @doc """
  Calls `run`, which may then take its time if the book stops. A book that is stopping calls
  `refuse` instead, unless the run belongs to one that it waits for.
  """
  @spec run(atom() | nil, (() -> result), (() -> result)) :: result when result: term()
  def run(nil, run, _refuse), do: run.()

  def run(book, run, refuse) do
    table = table(book)

    case enter(table) do
      :inside ->
        run.()

      :entered ->
        try do
          if state(book) == :open, do: run.(), else: refuse.()
        after
          leave(table)
        end

      # It has stopped, or has not started yet.
      :none ->
        run.()
    end
  end

  # The table goes with the book.
  defp enter(table) do
    callers = Process.get(:"$callers", [])

    cond do
      Enum.any?(callers, &:ets.member(table, &1)) -> :inside
      :ets.insert_new(table, {self()}) -> :entered
      true -> :inside
    end
  rescue
    ArgumentError -> :none
  end

  defp leave(table) do
    :ets.delete(table, self())
  rescue
    ArgumentError -> true
  end

  @doc """
  Whether a book runs (`:open`), waits for its runs (`:closed`), or kills them or has stopped
  (`:over`).
  """
  @spec state(atom()) :: :open | :closed | :over
  def state(book) do
    case :ets.lookup(table(book), :state) do
      [{:state, state}] -> state
      [] -> :open
    end
  rescue
    ArgumentError -> :over
  end

  @doc "The status of a run that ended in an error: it may have been interrupted."
  @spec failed(atom()) :: :failed | :interrupted
  def failed(book), do: if(state(book) == :over, do: :interrupted, else: :failed)

  defp table(book), do: Module.concat(book, Drain)

  @impl true
  def init(book) do
    Process.flag(:trap_exit, true)
    sweep_later()
    {:ok, book}
  end

  @impl true
  def handle_info(:sweep, book) do
    for {pid} <- runs(book.name), not Process.alive?(pid), do: :ets.delete(table(book.name), pid)
    sweep_later()
    {:noreply, book}
  end

  def handle_info(_message, book), do: {:noreply, book}

  defp sweep_later, do: Process.send_after(self(), :sweep, @sweep)

  @impl true
  def terminate(_reason, %{name: name} = book) do
    if :ets.whereis(table(name)) != :undefined, do: drain(name, book)
  end

  # The table is gone if the supervisor was killed, and with it everything that ran.
  defp drain(name, book) do
    :ets.insert(table(name), {:state, :closed})

    if wait(name, book.drain) == :late do
      :ets.insert(table(name), {:state, :over})
      callers = for {pid} <- runs(name), into: MapSet.new(), do: pid
      for worker <- workers(name), of?(worker, callers), do: Process.exit(worker, :kill)
      wait(name, @store)
    end

    :ets.insert(table(name), {:state, :over})
  end

  defp runs(book), do: :ets.match_object(table(book), {:_})

  # Waits until nothing runs, or its process has ended. A run that is not over when it is looked
  # at is looked at again soon.
  defp wait(book, milliseconds, delay \\ 1) do
    cond do
      Enum.all?(runs(book), fn {pid} -> not Process.alive?(pid) end) ->
        :done

      milliseconds <= 0 ->
        :late

      true ->
        delay = min(delay, milliseconds)
        Process.sleep(delay)
        wait(book, milliseconds - delay, min(2 * delay, 50))
    end
  end

  defp workers(book) do
    Task.Supervisor.children(Worker.supervisor(book))
  catch
    # The other processes of the book have failed.
    :exit, _reason -> []
  end

  # Tasks of the book that belong to no run end with their supervisor.
  defp of?(worker, callers) do
    with {:dictionary, dictionary} <- Process.info(worker, :dictionary),
         {_, of} <- List.keyfind(dictionary, :"$callers", 0) do
      worker not in callers and Enum.any?(of, &(&1 in callers))
    else
      _ -> false
    end
  end
end
