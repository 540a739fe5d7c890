defmodule Skillbook.Usage.Counter do
  @moduledoc false
  # What a book counts since it last wrote its counts down: a table that whoever runs a command adds to. Its supervisor
  # owns it, so that a crash of the process that empties it loses nothing.
  #
  # Only so many different rows fit. What does not fit is counted under no name and no profile: the numbers stay right.

  @type key :: {hour :: integer(), name :: String.t(), profile :: String.t(), event :: String.t()}
  @type row :: {key(), count :: pos_integer(), microseconds :: non_neg_integer()}

  @spec new(atom(), pos_integer()) :: :ok
  def new(book, most) do
    table = :ets.new(name(book), [:named_table, :public, write_concurrency: true])
    :ets.insert(table, {:most, most})
    :ok
  end

  @doc "Counts a command that ended, as its event of `Skillbook.Telemetry` tells, if its book counts."
  @spec count(:stop | :exception, map(), map()) :: :ok
  def count(_how, _measurements, %{book: nil}), do: :ok

  def count(how, %{duration: duration}, %{book: book} = metadata) do
    case of(how, metadata) do
      nil -> :ok
      {event, names} -> count(book, names, metadata.profile, event, duration)
    end
  end

  # A text that was read took no time of its own.
  defp of(:stop, %{reads: [_ | _] = names}), do: {"read", names}
  defp of(_how, %{skill: nil}), do: nil

  defp of(:stop, %{skill: name, status: status}) when status in [:ok, :template, :help],
    do: {"run", [name]}

  defp of(_how, %{skill: name}), do: {"failed", [name]}

  defp count(book, names, profile, event, duration) do
    table = name(book)

    if :ets.whereis(table) != :undefined do
      hour = div(System.os_time(:second), 3600)

      time =
        if event == "read", do: 0, else: System.convert_time_unit(duration, :native, :microsecond)

      for name <- names, do: add(table, {{hour, name, profile, event}, 1, time})
    end

    :ok
  rescue
    # The book stopped meanwhile.
    ArgumentError -> :ok
  end

  @doc "Takes all that is counted out of the table."
  @spec take(atom()) :: [row()]
  def take(book) do
    table = name(book)
    keys = :ets.select(table, [{{:"$1", :_, :_}, [], [:"$1"]}])
    Enum.flat_map(keys, &:ets.take(table, &1))
  end

  @doc "Puts back what could not be written down."
  @spec put_back(atom(), [row()]) :: :ok
  def put_back(book, rows), do: Enum.each(rows, &add(name(book), &1))

  # A count that is there already needs one access; only a new one looks whether there is room.
  defp add(table, {{hour, _name, _profile, event} = key, count, time} = row) do
    :ets.update_counter(table, key, [{2, count}, {3, time}])
  rescue
    ArgumentError ->
      fits = :ets.info(table, :size) <= :ets.lookup_element(table, :most, 2)
      key = if fits, do: key, else: {hour, "", "", event}
      :ets.update_counter(table, key, [{2, elem(row, 1)}, {3, elem(row, 2)}], {key, 0, 0})
  end

  defp name(book), do: Module.concat(book, Usage)
end
