defmodule Skillbook.MCP.Sessions do
  @moduledoc false
  # The sessions of the revisions that have them, on this node and on those that it is connected
  # to. A session belongs to a profile of a book; for others its id does not exist. It ends when
  # its client ends it, when it was not used for an hour, with its book, or when its profile
  # begins more sessions than it may have.
  #
  # Nodes that are not connected do not know each other's sessions. A client begins a new one when
  # a node answers that it does not know its own.

  use GenServer

  alias Skillbook.MCP.Session

  @table __MODULE__
  @scope __MODULE__.Groups
  # Of a profile, and of the node.
  @max_of_profile 64
  @max 10_000
  @id_bytes 32

  @doc "The processes of an application."
  @spec children() :: [Supervisor.child_spec() | {module(), term()}]
  def children do
    [
      %{id: @scope, start: {:pg, :start_link, [@scope]}},
      __MODULE__,
      {DynamicSupervisor, name: __MODULE__.Supervisor, max_children: @max}
    ]
  end

  def start_link(_options), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc "Begins a session of a profile. Returns its id and its process."
  @spec begin(atom(), String.t(), map()) :: {:ok, String.t(), pid()} | :full
  def begin(book, profile, fields) do
    make_room(book, profile)
    id = Base.url_encode64(:crypto.strong_rand_bytes(@id_bytes), padding: false)
    session = {Session, %{id: id, book: book, profile: profile, fields: fields}}

    case DynamicSupervisor.start_child(__MODULE__.Supervisor, session) do
      {:ok, pid} ->
        :ok = GenServer.call(__MODULE__, {:put, id, book, profile, pid})
        :ok = :pg.join(@scope, id, pid)
        {:ok, id, pid}

      {:error, :max_children} ->
        :full
    end
  end

  @doc "The process of a profile's session."
  @spec find(String.t(), atom(), String.t()) :: {:ok, pid()} | Session.failure()
  def find(id, book, profile) do
    case :ets.lookup(@table, id) do
      [{^id, ^book, ^profile, pid, _used}] ->
        :ets.update_element(@table, id, {5, now()})
        {:ok, pid}

      [_of_another_profile] ->
        {:error, :gone}

      [] ->
        elsewhere(id, book, profile)
    end
  end

  # The session of another node says whose it is.
  defp elsewhere(id, book, profile) do
    with [pid | _] when node(pid) != node() <- :pg.get_members(@scope, id),
         true <- Session.of?(pid, book, profile) do
      {:ok, pid}
    else
      {:error, reason} -> {:error, reason}
      _missing_or_of_another_profile -> {:error, :gone}
    end
  end

  @doc "The number of sessions of a profile on this node."
  @spec count(atom(), String.t()) :: non_neg_integer()
  def count(book, profile), do: length(of(book, profile))

  defp of(book, profile),
    do: :ets.select(@table, [{{:_, book, profile, :"$1", :"$2"}, [], [{{:"$2", :"$1"}}]}])

  @doc "Joins the calling process to a group of this node that has at most `max`; `:full` else."
  @spec join(term(), pos_integer()) :: :ok | :full
  def join(group, max), do: GenServer.call(__MODULE__, {:join, group, max, self()}, :infinity)

  @spec leave(term(), pid()) :: :ok
  def leave(group, pid \\ self()) do
    :pg.leave(@scope, group, pid)
    :ok
  end

  # The one that was not used for the longest time makes room.
  defp make_room(book, profile) do
    case of(book, profile) do
      sessions when length(sessions) < @max_of_profile ->
        :ok

      sessions ->
        {_used, pid} = Enum.min(sessions)
        Session.stop(pid)
    end
  end

  defp now, do: System.monotonic_time(:millisecond)

  @impl true
  def init(nil) do
    :ets.new(@table, [:named_table, :public, read_concurrency: true, write_concurrency: true])
    {:ok, %{}}
  end

  @impl true
  def handle_call({:put, id, book, profile, pid}, _from, state) do
    :ets.insert(@table, {id, book, profile, pid, now()})
    {:reply, :ok, Map.put(state, Process.monitor(pid), id)}
  end

  # Here, so that of processes that join at once each sees the others.
  def handle_call({:join, group, max, pid}, _from, state) do
    full? = length(:pg.get_local_members(@scope, group)) >= max
    {:reply, if(full?, do: :full, else: :pg.join(@scope, group, pid)), state}
  end

  @impl true
  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    {id, state} = Map.pop(state, monitor)
    if id, do: :ets.delete(@table, id)
    {:noreply, state}
  end

  def handle_info(_message, state), do: {:noreply, state}
end
