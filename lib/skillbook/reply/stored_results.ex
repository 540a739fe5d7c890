defmodule Skillbook.Reply.StoredResults do
  @moduledoc false
  # Stores results that were too long for the model, so that it can page through them with
  # `results.read`. Only the profile that a result was made for can read it, with the same rights
  # and a random id. Reads go to an ETS table; the process writes it and removes old entries.

  use GenServer

  alias Skillbook.Profile
  alias Skillbook.Reply.Excerpt

  @max_age_ms 15 * 60 * 1000
  @max_total_bytes 32 * 1024 * 1024
  # Of a longer result only the beginning is stored.
  @max_result_bytes 4 * 1024 * 1024

  @typedoc """
  The origin of a result: the name of an entry, or the generation of the view that `get_skill`
  read. A change of hidden entries is no new generation for the view.
  """
  @type origin :: {:entry, String.t()} | {:generation, pos_integer()}

  @spec start_link(atom()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book))

  @typedoc """
  A stored result: its number of characters, how many of them are stored, the entries whose texts
  it has parts of, and whether it has texts from outside.
  """
  @type about :: %{
          id: String.t(),
          total: pos_integer(),
          kept: pos_integer(),
          parts: [%{name: String.t(), hash: String.t()}],
          external: boolean()
        }

  @doc "Stores a result for a profile."
  @spec put(atom(), Profile.t(), origin(), map(), String.t()) :: about()
  def put(book, profile, origin, about, text) do
    beginning = beginning(text)
    id = 10 |> :crypto.strong_rand_bytes() |> Base.encode32(case: :lower)
    sizes = %{id: id, total: Excerpt.size(text), kept: Excerpt.size(beginning)}
    about = Map.merge(about, sizes)
    :ok = GenServer.call(name(book), {:put, {id, rights(profile), origin, beginning, about}})
    about
  end

  @doc "Returns the stored text of an id to the profile that it was stored for."
  @spec fetch(atom(), Profile.t(), String.t()) :: {:ok, origin(), String.t(), about()} | :error
  def fetch(book, profile, id) do
    rights = rights(profile)

    case :ets.lookup(name(book), id) do
      [{_, ^rights, origin, text, about}] -> {:ok, origin, text, about}
      _ -> :error
    end
  end

  defp rights(%Profile{} = profile) do
    sorted = fn list -> if is_list(list), do: Enum.sort(list), else: list end

    {Profile.ids(profile), profile.tenant, sorted.(profile.grants), Profile.globs(profile),
     sorted.(profile.tools), profile.writes}
  end

  # Copied, because a part of a binary keeps the whole binary in memory.
  defp beginning(text) when byte_size(text) <= @max_result_bytes, do: :binary.copy(text)

  defp beginning(text),
    do: text |> binary_part(0, character(text, @max_result_bytes)) |> :binary.copy()

  # Steps back from the continuation bytes of a character to its first byte.
  defp character(text, at),
    do: if(:binary.at(text, at) in 0x80..0xBF, do: character(text, at - 1), else: at)

  defp name(book), do: Module.concat(book, StoredResults)

  @impl true
  def init(book) do
    table = :ets.new(name(book), [:named_table, :protected, read_concurrency: true])
    {:ok, %{table: table, bytes: 0, order: :queue.new()}}
  end

  @impl true
  def handle_call({:put, {id, _, _, text, _} = row}, _from, state) do
    :ets.insert(state.table, row)
    Process.send_after(self(), {:expired, id}, @max_age_ms)
    order = :queue.in({id, byte_size(text)}, state.order)
    {:reply, :ok, evict(%{state | order: order, bytes: state.bytes + byte_size(text)})}
  end

  # All entries have the same age limit, so older ones are removed too.
  @impl true
  def handle_info({:expired, id}, state) do
    if :ets.member(state.table, id),
      do: {:noreply, drop_until(state, id)},
      else: {:noreply, state}
  end

  defp evict(state),
    do: if(state.bytes > @max_total_bytes, do: state |> drop() |> elem(1) |> evict(), else: state)

  defp drop_until(state, id) do
    case drop(state) do
      {^id, state} -> state
      {_, state} -> drop_until(state, id)
    end
  end

  defp drop(state) do
    {{:value, {id, bytes}}, order} = :queue.out(state.order)
    :ets.delete(state.table, id)
    {id, %{state | order: order, bytes: state.bytes - bytes}}
  end
end
