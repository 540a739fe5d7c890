defmodule Skillbook.Book.Pruner do
  @moduledoc false
  # Deletes rows of a book's database that are older than it keeps them.
  #
  # Each table that grows has a rule. Its steps each read or delete at most some hundred rows in a
  # transaction of their own, with a pause between them, so no writer waits long, and a step that
  # is killed or fails has no effect. The next pass begins from the start. Several nodes may prune
  # one database at once.
  #
  # A part adds rules for its tables with `c:Skillbook.Part.ages/1`.

  use GenServer

  require Logger

  alias Skillbook.Schedule.Clock
  alias Skillbook.SQL.Error
  alias Skillbook.Store.Table
  alias Skillbook.{Book, Part, SQL, Usage, Workflow}

  @typedoc """
  Deletes some of the rows before a time, after a place. Returns their number and the place for
  the next step, or `nil` if there are no others. `nil` is the place of the first step.
  """
  @type step ::
          (SQL.t(), DateTime.t(), place :: term() ->
             {:ok, non_neg_integer(), term()} | {:error, Error.t()})

  @typedoc "The name of a rule, the days for which it keeps rows, and its step."
  @type rule :: {atom(), days :: pos_integer() | :infinity, step()}

  @first 60_000
  @every 24 * 3_600_000
  @after_error 600_000
  @pause 10

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book),
    do: GenServer.start_link(__MODULE__, book, name: Module.concat(book.name, Pruner))

  @doc "Prunes all tables in the calling process. Returns the numbers of deleted rows by rule."
  @spec run(Book.t(), DateTime.t()) ::
          {:ok, %{atom() => non_neg_integer()}} | {:error, Error.t()}
  def run(book, now) do
    Enum.reduce_while(rules(book), {:ok, %{}}, fn {name, _days, _step} = rule, {:ok, counts} ->
      case all(rule, Book.sql(book), now, nil, 0) do
        {:ok, count} -> {:cont, {:ok, Map.put(counts, name, count)}}
        error -> {:halt, error}
      end
    end)
  end

  defp all({_name, days, step} = rule, sql, now, place, count) do
    case step.(sql, DateTime.add(now, -days * 86_400), place) do
      {:ok, deleted, nil} -> {:ok, count + deleted}
      {:ok, deleted, place} -> all(rule, sql, now, place, count + deleted)
      error -> error
    end
  end

  @doc "The rules of a book."
  @spec rules(Book.t()) :: [rule()]
  def rules(book) do
    own =
      [
        {:versions, book.keep[:versions], &Table.prune_versions/3},
        {:deleted, book.keep[:deleted], &Table.prune_deleted/3},
        {:runs, book.keep[:runs], &Workflow.Runs.prune/3}
      ] ++ usage(book.usage)

    for {_name, days, _step} = rule <- own ++ Part.flat(book.parts, :ages, [book]),
        days != :infinity,
        do: rule
  end

  defp usage(false), do: []

  # Hours are combined into days long before.
  defp usage(options) do
    [
      {:usage, options[:keep], &Usage.Writer.prune/3},
      {:usage_hours, Usage.Writer.keep_hours(), &Usage.Writer.combine/3}
    ]
  end

  @impl true
  def init(book), do: {:ok, later(%{book: book, rules: [], place: nil, failed: false}, @first)}

  # One step for each message, so that the book can stop between them.
  @impl true
  def handle_info(:step, %{rules: []} = state),
    do: {:noreply, later(%{state | rules: rules(state.book), place: nil}, @pause)}

  def handle_info(:step, %{rules: [rule | rules]} = state) do
    case step(rule, state) do
      {:ok, _count, nil} when rules == [] ->
        {:noreply, later(%{state | rules: [], failed: false}, @every)}

      {:ok, _count, nil} ->
        {:noreply, later(%{state | rules: rules, place: nil}, @pause)}

      {:ok, _count, place} ->
        {:noreply, later(%{state | place: place}, @pause)}

      {:error, error} ->
        {:noreply, later(%{report(state, error) | rules: []}, @after_error)}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  # While the database restarts there is no handle, and its processes may end during a call.
  defp step({_name, days, step}, %{book: book, place: place}) do
    step.(Book.sql(book), DateTime.add(Clock.now(book), -days * 86_400), place)
  rescue
    error in ArgumentError -> {:error, error}
  catch
    :exit, _reason -> {:error, Error.closed()}
  end

  defp report(%{failed: true} = state, _error), do: state

  defp report(state, error) do
    Logger.warning(
      "the book #{inspect(state.book.name)} cannot delete old rows of its database now: " <>
        Exception.message(error)
    )

    %{state | failed: true}
  end

  defp later(state, milliseconds) do
    Process.send_after(self(), :step, milliseconds)
    state
  end
end
