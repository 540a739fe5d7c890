defmodule Skillbook.Usage.Writer do
  @moduledoc false
  # Stores a book's counts in the database every few seconds and when it stops.
  #
  # A count is either in the ETS table or in the database: rows are taken from the table, added in
  # one transaction, and put back if that fails.

  use GenServer

  require Logger

  alias Skillbook.{Book, SQL}
  alias Skillbook.SQL.{OldRows, Values}
  alias Skillbook.Usage.Counter

  # Hours are combined into days after so many days.
  @keep_hours 30
  # Rows per statement, well below the databases' limits on parameters.
  @max_rows 500

  @spec start_link(Book.t()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc "Stores all counts now."
  @spec flush(atom()) :: :ok | {:error, SQL.Error.t()}
  def flush(book) do
    GenServer.call(name(book), :flush, :infinity)
  catch
    # The book's database is restarting, or the book is stopping.
    :exit, _reason -> {:error, SQL.Error.closed()}
  end

  defp name(book), do: Module.concat(book, UsageWriter)

  @impl true
  def init(book) do
    Process.flag(:trap_exit, true)
    {:ok, schedule(%{book: book, failed: false})}
  end

  @impl true
  def handle_call(:flush, _from, state) do
    {result, state} = write(state)
    {:reply, result, state}
  end

  @impl true
  def handle_info(:flush, state) do
    {_result, state} = write(state)
    {:noreply, schedule(state)}
  end

  def handle_info(_message, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state), do: write(state)

  defp schedule(state) do
    Process.send_after(self(), :flush, state.book.usage[:flush])
    state
  end

  defp write(state) do
    rows = Counter.take(state.book.name)

    case store_rows(state, rows) do
      :ok ->
        {:ok, %{state | failed: false}}

      {:error, error} ->
        Counter.put_back(state.book.name, rows)
        # Logged once per outage.
        unless state.failed,
          do: Logger.warning("usage counts cannot be stored: #{Exception.message(error)}")

        {{:error, error}, %{state | failed: true}}
    end
  end

  defp store_rows(_state, []), do: :ok
  defp store_rows(state, rows), do: with_sql(state, &store(&1, rows))

  # While the database restarts, there is no handle, and its processes may end during a call.
  defp with_sql(state, fun) do
    fun.(Book.sql(state.book))
  rescue
    error in ArgumentError -> {:error, error}
  catch
    :exit, _reason -> {:error, SQL.Error.closed()}
  end

  @doc "Adds counts to the stored ones in one transaction."
  @spec store(SQL.t(), [Counter.row()]) :: :ok | {:error, SQL.Error.t()}
  def store(sql, rows) do
    rows =
      for {{hour, tenant, name, profile, event}, count, time} <- rows,
          do: [hour(hour), tenant, name, profile, event, count, time]

    with {:ok, _} <- SQL.transaction(own(sql), &add(&1, rows)), do: :ok
  end

  # Writers of other tables do not wait for it.
  defp own(sql), do: SQL.of_parts(sql, [:usage])

  # See `Skillbook.Usage.state/3`.
  @changed Values.raise_setting("usage")

  # Sorted by key, with the number of all last, so that two writers cannot deadlock.
  defp add(sql, rows) do
    added =
      for some <- rows |> Enum.sort() |> Enum.chunk_every(@max_rows),
          do: {insert(length(some)), Enum.concat(some)}

    SQL.query_all(sql, added ++ [@changed])
  end

  defp insert(count) do
    values =
      Enum.map_join(0..(count - 1), ", ", fn row ->
        "(" <> Enum.map_join(1..7, ", ", &"$#{row * 7 + &1}") <> ")"
      end)

    """
    insert into skillbook_usage (bucket, tenant, name, profile, event, count, duration)
    values #{values}
    on conflict (tenant, bucket, name, profile, event) do update
    set count = skillbook_usage.count + excluded.count,
      duration = skillbook_usage.duration + excluded.duration
    """
  end

  defp hour(number),
    do:
      number
      |> Kernel.*(3600)
      |> DateTime.from_unix!()
      |> DateTime.to_iso8601()
      |> binary_part(0, 13)

  @doc "The days after which hours are combined."
  @spec keep_hours() :: pos_integer()
  def keep_hours, do: @keep_hours

  # No two writers take the same rows: a statement deletes and returns them.
  @key "(tenant, bucket, name, profile, event)"

  @doc "For `Skillbook.Book.Pruner`: deletes counts of the days before a time."
  def prune(sql, before, _place) do
    delete = "delete from skillbook_usage where #{some("bucket < $1")}"

    deleted = SQL.transaction(own(sql), &SQL.query_all(&1, [{delete, [day(before)]}, @changed]))

    with {:ok, [%{num_rows: count}, _changed]} <- deleted, do: {:ok, count, more(count)}
  end

  @doc "For `Skillbook.Book.Pruner`: combines the counts of hours before a time into days."
  def combine(sql, before, _place) do
    take =
      "delete from skillbook_usage where #{some("length(bucket) > 10 and bucket < $1")} " <>
        "returning bucket, tenant, name, profile, event, count, duration"

    combined =
      SQL.transaction(own(sql), fn sql ->
        with {:ok, %{rows: rows}} <- SQL.query(sql, take, [day(before)]),
             {:ok, _} <- add(sql, days(rows)),
             do: {:ok, length(rows)}
      end)

    with {:ok, count} <- combined, do: {:ok, count, more(count)}
  end

  defp some(old) do
    "#{@key} in (select tenant, bucket, name, profile, event from skillbook_usage " <>
      "where #{old} order by bucket limit #{OldRows.limit()})"
  end

  defp day(time), do: DateTime.to_date(time)

  defp more(count), do: if(count == OldRows.limit(), do: :more)

  defp days(rows) do
    rows
    |> Enum.group_by(
      fn [bucket | row] -> [binary_part(bucket, 0, 10) | Enum.take(row, 4)] end,
      &Enum.take(&1, -2)
    )
    |> Enum.map(fn {key, numbers} -> key ++ Enum.zip_with(numbers, &Enum.sum/1) end)
  end
end
