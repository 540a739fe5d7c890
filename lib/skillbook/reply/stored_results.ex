defmodule Skillbook.Reply.StoredResults do
  @moduledoc false
  # Results that were too long for the model, kept for a while so that it can read on. Whoever reads must be who they were
  # for, with the same rights; an id that cannot be guessed is needed besides.
  #
  # Readers read a table; the process lets in what is new and drops what is old.

  use GenServer

  alias Skillbook.Profile
  alias Skillbook.Reply.Excerpt

  # For this long, in milliseconds, for this many bytes in all, and of one result this many from its beginning.
  @time 15 * 60 * 1000
  @bytes 32 * 1024 * 1024
  @most 4 * 1024 * 1024

  @typedoc "What a result is of: an entry's name, or the generation of which `get_skill` told."
  @type origin :: {:entry, String.t()} | {:generation, pos_integer()}

  @spec start_link(atom()) :: GenServer.on_start()
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book))

  @typedoc """
  What is known of a kept result: how many characters it has, how many from its beginning are kept, and which entries'
  texts it has parts of.
  """
  @type about :: %{
          id: String.t(),
          total: pos_integer(),
          kept: pos_integer(),
          parts: [%{name: String.t(), hash: String.t()}]
        }

  @spec put(atom(), Profile.t(), origin(), [map()], String.t()) :: about()
  def put(book, profile, origin, parts, text) do
    beginning = beginning(text)
    id = 10 |> :crypto.strong_rand_bytes() |> Base.encode32(case: :lower)
    about = %{id: id, total: Excerpt.size(text), kept: Excerpt.size(beginning), parts: parts}
    :ok = GenServer.call(name(book), {:put, {id, rights(profile), origin, beginning, about}})
    about
  end

  @doc "The text of an id, for whom it was put; for all others it is as if it had never been."
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

    {Profile.ids(profile), sorted.(profile.grants), Profile.globs(profile),
     sorted.(profile.tools), profile.writes}
  end

  # A part of a binary would keep the whole of it.
  defp beginning(text) when byte_size(text) <= @most, do: :binary.copy(text)
  defp beginning(text), do: text |> binary_part(0, character(text, @most)) |> :binary.copy()

  # No byte of a character but its first can begin one.
  defp character(text, at),
    do: if(:binary.at(text, at) in 0x80..0xBF, do: character(text, at - 1), else: at)

  defp name(book), do: Module.concat(book, Kept)

  @impl true
  def init(book) do
    table = :ets.new(name(book), [:named_table, :protected, read_concurrency: true])
    {:ok, %{table: table, bytes: 0, order: :queue.new()}}
  end

  @impl true
  def handle_call({:put, {id, _, _, text, _} = row}, _from, state) do
    :ets.insert(state.table, row)
    Process.send_after(self(), {:expired, id}, @time)
    order = :queue.in({id, byte_size(text)}, state.order)
    {:reply, :ok, bound(%{state | order: order, bytes: state.bytes + byte_size(text)})}
  end

  # All are kept equally long, so those that came before are gone too.
  @impl true
  def handle_info({:expired, id}, state) do
    if :ets.member(state.table, id),
      do: {:noreply, drop_until(state, id)},
      else: {:noreply, state}
  end

  defp bound(state),
    do: if(state.bytes > @bytes, do: state |> drop() |> elem(1) |> bound(), else: state)

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
