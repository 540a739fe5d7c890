defmodule Skillbook.Usage.Counter do
  @moduledoc false
  # Counts commands in an ETS table until `Skillbook.Usage.Writer` stores the counts.
  #
  # Processes that run commands write to the table directly. The book's supervisor owns it, so a
  # crash of the writer loses nothing. The number of rows is limited; beyond it, commands are
  # counted without name and profile, so the totals stay correct.

  alias Skillbook.SQL.Tenants

  @type key ::
          {hour :: integer(), tenant :: String.t(), name :: String.t(), profile :: String.t(),
           event :: String.t()}
  @type row :: {key(), count :: pos_integer(), microseconds :: non_neg_integer()}

  @spec new(atom(), pos_integer()) :: :ok
  def new(book, max_rows) do
    table = :ets.new(name(book), [:named_table, :public, write_concurrency: true])
    :ets.insert(table, {:max_rows, max_rows})
    :ok
  end

  @doc "Counts a finished command from its telemetry event, if its book counts."
  @spec count(:stop | :exception, map(), map()) :: :ok
  def count(_how, _measurements, %{book: nil}), do: :ok

  def count(how, %{duration: duration}, %{book: book} = metadata) do
    case event(how, metadata) do
      nil -> :ok
      {event, names} -> count(book, names, metadata, event, duration)
    end
  end

  defp event(:stop, %{reads: [_ | _] = names}), do: {"read", names}
  defp event(_how, %{skill: nil}), do: nil

  defp event(:stop, %{skill: name, status: status}) when status in [:ok, :template, :help],
    do: {"run", [name]}

  # It has not run yet.
  defp event(:stop, %{status: :pending}), do: nil
  defp event(_how, %{skill: name}), do: {"failed", [name]}

  defp count(book, names, %{profile: profile} = metadata, event, duration) do
    table = name(book)
    tenant = if metadata.tenant == :all, do: "", else: Tenants.to_column(metadata.tenant)

    if :ets.whereis(table) != :undefined do
      hour = div(System.os_time(:second), 3600)

      # The duration of a read is not counted: a report averages runs.
      time =
        if event == "read", do: 0, else: System.convert_time_unit(duration, :native, :microsecond)

      for name <- names, do: add(table, {{hour, tenant, name, profile, event}, 1, time})
    end

    :ok
  rescue
    # The book has stopped since.
    ArgumentError -> :ok
  end

  @doc """
  Counts what a call of a model used: tokens, and the cost in billionths. `name` is the skill that
  ran the agent, or empty.
  """
  @spec spend(atom(), String.t() | nil, String.t(), String.t(), keyword(non_neg_integer())) :: :ok
  def spend(nil, _tenant, _name, _profile, _amounts), do: :ok

  def spend(book, tenant, name, profile, amounts) do
    table = name(book)

    if :ets.whereis(table) != :undefined do
      hour = div(System.os_time(:second), 3600)

      for {event, amount} <- amounts, amount > 0 do
        key = {hour, Tenants.to_column(tenant), name, profile, Atom.to_string(event)}
        add(table, {key, amount, 0})
      end
    end

    :ok
  rescue
    # The book has stopped since.
    ArgumentError -> :ok
  end

  @doc """
  The costs of these hours that are not stored yet, of a tenant, a profile and the name of a skill
  if given.
  """
  @spec unstored_cost(atom(), integer(), keyword()) :: non_neg_integer()
  def unstored_cost(book, from_hour, scope) do
    tenant = if Keyword.has_key?(scope, :tenant), do: Tenants.to_column(scope[:tenant]), else: :_

    key = {:"$1", tenant, scope[:name] || :_, scope[:profile] || :_, "cost"}
    match = [{{key, :"$2", :_}, [{:>=, :"$1", from_hour}], [:"$2"]}]

    if :ets.whereis(name(book)) == :undefined,
      do: 0,
      else: Enum.sum(:ets.select(name(book), match))
  end

  @doc "Removes all counts from the table and returns them."
  @spec take(atom()) :: [row()]
  def take(book) do
    table = name(book)
    keys = :ets.select(table, [{{:"$1", :_, :_}, [], [:"$1"]}])
    Enum.flat_map(keys, &:ets.take(table, &1))
  end

  @doc "Puts back counts that could not be stored."
  @spec put_back(atom(), [row()]) :: :ok
  def put_back(book, rows), do: Enum.each(rows, &add(name(book), &1))

  # Updating an existing row is one operation. Only a new row checks the limit.
  defp add(table, {{hour, _tenant, _name, _profile, event} = key, count, time} = row) do
    :ets.update_counter(table, key, [{2, count}, {3, time}])
  rescue
    ArgumentError ->
      fits? = :ets.info(table, :size) <= :ets.lookup_element(table, :max_rows, 2)
      key = if fits?, do: key, else: {hour, "", "", "", event}
      :ets.update_counter(table, key, [{2, elem(row, 1)}, {3, elem(row, 2)}], {key, 0, 0})
  end

  defp name(book), do: Module.concat(book, Usage)
end
