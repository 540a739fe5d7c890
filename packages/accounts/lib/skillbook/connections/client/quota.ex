defmodule Skillbook.Connections.Client.Quota do
  @moduledoc false
  # Keeps the requests of an account on this node within the vendor's quotas. A request over one
  # waits for its turn, in the order of arrival, or is refused if that is after its deadline.
  #
  # This is the generic cell rate algorithm: a row has the time at which the bucket is empty
  # again. A bucket holds a tenth of a quota, and the rest arrives evenly, so no window of time
  # has more than the whole quota.

  use GenServer

  alias Skillbook.Connections.Client.Rules

  # Microseconds, as all times here.
  @second 1_000_000
  @sweep 60_000

  @spec start_link(term()) :: GenServer.on_start()
  def start_link(_options), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc "The form of the option `:quota` of an account."
  @spec expected() :: String.t()
  def expected, do: "a keyword list of quotas, each {units, seconds} or :infinity"

  @spec option?(term()) :: boolean()
  def option?(quotas) do
    Keyword.keyword?(quotas) and
      Enum.all?(quotas, fn
        {_name, :infinity} ->
          true

        {_name, {units, seconds}} ->
          is_integer(units) and is_integer(seconds) and units in 1..1_000_000_000 and
            seconds in 1..86_400

        _other ->
          false
      end)
  end

  @doc """
  Waits until `units` of the bucket `key` are free. `deadline` is in milliseconds of monotonic
  time. A wait beyond it returns its milliseconds at once, and takes nothing.
  """
  @spec take(term(), pos_integer(), Rules.quota(), integer()) :: :ok | {:error, pos_integer()}
  def take(key, units, quota, deadline) do
    case reserve(key, units, quota, deadline) do
      {:ok, 0} -> :ok
      {:ok, wait} -> Process.sleep(milliseconds(wait))
      {:error, wait} -> {:error, milliseconds(wait)}
    end
  end

  defp reserve(key, units, {limit, seconds} = quota, deadline) do
    now = System.monotonic_time(:microsecond)
    {burst, per_unit} = shape(quota)
    # A request that costs more than the bucket holds takes a full one.
    cost = min(units, limit) * per_unit
    old = empty_at(key)
    empty = max(old || now, now) + cost
    wait = max(empty - now - max(burst * per_unit, cost), 0)

    cond do
      wait > 0 and now + wait >= deadline * 1000 -> {:error, wait}
      swap(key, old, empty) -> {:ok, wait}
      true -> reserve(key, units, {limit, seconds}, deadline)
    end
  end

  @doc "How many units a bucket holds, and the microseconds in which one more arrives."
  @spec shape(Rules.quota()) :: {pos_integer(), pos_integer()}
  def shape({1, seconds}), do: {1, seconds * @second}

  def shape({limit, seconds}) do
    burst = max(div(limit, 10), 1)
    {burst, ceil(seconds * @second / (limit - burst))}
  end

  defp empty_at(key) do
    case :ets.lookup(__MODULE__, key) do
      [{^key, empty}] -> empty
      [] -> nil
    end
  end

  defp swap(key, nil, empty), do: :ets.insert_new(__MODULE__, {key, empty})

  defp swap(key, old, empty),
    do: :ets.select_replace(__MODULE__, [{{key, old}, [], [{:const, {key, empty}}]}]) == 1

  defp milliseconds(wait), do: ceil(wait / 1000)

  # The table

  @impl true
  def init(nil) do
    options = [:named_table, :public, :set, read_concurrency: true, write_concurrency: true]
    :ets.new(__MODULE__, options)
    Process.send_after(self(), :sweep, @sweep)
    {:ok, nil}
  end

  # An empty bucket is as good as none.
  @impl true
  def handle_info(:sweep, state) do
    now = System.monotonic_time(:microsecond)
    :ets.select_delete(__MODULE__, [{{:_, :"$1"}, [{:<, :"$1", now}], [true]}])
    Process.send_after(self(), :sweep, @sweep)
    {:noreply, state}
  end
end
