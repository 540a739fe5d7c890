defmodule :telemetry do
  @moduledoc false
  # Replaces the library of this name, which is not a dependency: sends each event to the attached
  # processes, and calls attached handlers, which it detaches if they raise. An event that differs
  # from `Skillbook.Telemetry.events/0` raises in the code that sent it.

  # When this compiles, so that a trace of the library's calls does not have those of the tests.
  @events Skillbook.Telemetry.Events.all()
  @table :skillbook_test_telemetry

  def execute(name, measurements, metadata) do
    with {:error, message} <- check(name, measurements, metadata),
         do: raise(ArgumentError, message)

    if :ets.whereis(@table) != :undefined do
      for {pid, _book} <- :ets.match_object(@table, {:_, metadata[:book]}),
          do: send(pid, {name, measurements, metadata})

      for {{:handler, id}, names, handler, config} <- :ets.tab2list(@table), name in names do
        try do
          handler.(name, measurements, metadata, config)
        rescue
          _ -> detach(id)
        end
      end
    end

    :ok
  end

  @doc "Returns an error text if an event differs from the list."
  def check(name, measurements, metadata) do
    case Enum.find(@events, &(&1.name == name)) do
      nil ->
        {:error, "expected an event of Skillbook.Telemetry.events/0, got: #{inspect(name)}"}

      event ->
        with :ok <- fields(event, "measurements", event.measurements, Map.keys(measurements)),
             do: fields(event, "metadata", event.metadata, Map.keys(metadata) -- event.optional)
    end
  end

  defp fields(event, kind, expected, got) do
    if Enum.sort(expected) == Enum.sort(got),
      do: :ok,
      else:
        {:error,
         "expected the #{kind} #{inspect(Enum.sort(expected))} of #{inspect(event.name)}, " <>
           "got: #{inspect(Enum.sort(got))}"}
  end

  def attach_many(id, names, handler, config) do
    if :ets.match_object(@table, {{:handler, id}, :_, :_, :_}) == [] do
      :ets.insert(@table, {{:handler, id}, names, handler, config})
      :ok
    else
      {:error, :already_exists}
    end
  end

  def detach(id) do
    if :ets.match_object(@table, {{:handler, id}, :_, :_, :_}) == [],
      do: {:error, :not_found},
      else: :ets.match_delete(@table, {{:handler, id}, :_, :_, :_}) && :ok
  end

  @doc "Makes the table, which ends with the calling process."
  def start, do: :ets.new(@table, [:named_table, :public, :bag])

  @doc "Sends a message to the processes that listen to a book, by its inspected name."
  def tell(book, message) do
    for {pid, name} when is_pid(pid) <- :ets.match_object(@table, {:_, :_}),
        inspect(name) == book,
        do: send(pid, message)
  end

  @doc "Sends the calling process the events of a book."
  def listen(book), do: :ets.insert(@table, {self(), book})
end
