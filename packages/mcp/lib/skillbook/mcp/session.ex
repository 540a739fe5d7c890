defmodule Skillbook.MCP.Session do
  @moduledoc false
  # The declarations of one client, the URIs that it subscribes to, its requests that run, and the
  # requests to it that wait for an answer: of a session of an older revision, or of a process
  # that speaks with one client over its standard input and output.

  use GenServer, restart: :temporary

  # Milliseconds without a request or an open stream.
  @idle 3_600_000
  @max_requests 64
  @max_streams 4

  # Milliseconds for an answer of the process.
  @wait 5_000

  @type t :: GenServer.server()

  @typedoc "It did not answer within 5 seconds, or it has ended."
  @type failure :: {:error, :busy | :gone}

  def start_link(options), do: GenServer.start_link(__MODULE__, options)

  @doc "The number of its requests that may run at once."
  @spec max_requests() :: pos_integer()
  def max_requests, do: @max_requests

  @doc "What its client declared: fields of `Skillbook.MCP.Context`."
  @spec fields(t()) :: {:ok, map() | nil} | failure()
  def fields(session), do: call(session, :fields)

  @doc "Notes what the client declared, for a session that begins before that."
  @spec put_fields(t(), map()) :: :ok | failure()
  def put_fields(session, fields), do: call(session, {:put_fields, fields})

  @doc "Whether it belongs to a profile of a book."
  @spec of?(t(), atom(), String.t()) :: boolean() | failure()
  def of?(session, book, profile), do: call(session, {:of?, book, profile})

  @doc "Notes that the calling process answers a request, which may be cancelled by its id."
  @spec enter(t(), Skillbook.MCP.Protocol.id()) :: :ok | :full | :duplicate | failure()
  def enter(session, id), do: note(session, {:enter, id, self()})

  @doc "Notes that a request has its answer."
  @spec leave(t(), Skillbook.MCP.Protocol.id()) :: :ok | failure()
  def leave(session, id), do: call(session, {:leave, id, self()})

  @doc "Notes that the calling process is a stream of the session."
  @spec stream(t()) :: :ok | :full | failure()
  def stream(session), do: note(session, {:stream, self()})

  @doc "Cancels a request: its process gets `{:mcp_cancelled, id}`."
  @spec cancel(t(), term()) :: :ok
  def cancel(session, id), do: GenServer.cast(session, {:cancel, id})

  @doc "An id for a request to the client, whose answer the calling process gets."
  @spec expect(t()) :: {:ok, String.t()} | failure()
  def expect(session), do: note(session, {:expect, self()})

  @doc "Passes an answer of the client on, as `{:mcp_answer, id, answer}`."
  @spec answer(t(), term(), term()) :: :ok
  def answer(session, id, answer), do: GenServer.cast(session, {:answer, id, answer})

  @doc "Subscribes the client to a URI, of at most `max`."
  @spec subscribe(t(), String.t(), pos_integer()) :: :ok | :full | failure()
  def subscribe(session, uri, max), do: call(session, {:subscribe, uri, max})

  @spec unsubscribe(t(), String.t()) :: :ok | failure()
  def unsubscribe(session, uri), do: call(session, {:unsubscribe, uri})

  @doc "The URIs that the client subscribes to; none if the session has ended."
  @spec uris(t()) :: [String.t()]
  def uris(session) do
    # A stream that went on without them would lose changes.
    with {:error, :gone} <- call(session, :uris, :infinity), do: []
  end

  @spec stop(t()) :: :ok
  def stop(session) do
    GenServer.stop(session, :normal, @wait)
  catch
    :exit, _reason -> :ok
  end

  # A busy session handles the message later, when the calling process has given up.
  defp note(session, message) do
    with {:error, :busy} <- call(session, message) do
      GenServer.cast(session, {:forget, self()})
      {:error, :busy}
    end
  end

  defp call(session, message, timeout \\ @wait) do
    GenServer.call(session, message, timeout)
  catch
    :exit, {:timeout, _call} -> {:error, :busy}
    :exit, _reason -> {:error, :gone}
  end

  @impl true
  def init(options) do
    # The supervisor of a book has its name. The session ends with it.
    with pid when is_pid(pid) <- Process.whereis(options.book),
         do: :erlang.monitor(:process, pid, tag: :book)

    state = %{
      idle: @idle,
      uris: MapSet.new(),
      requests: %{},
      streams: %{},
      expecting: %{},
      number: 0
    }

    state = Map.merge(state, options)
    {:ok, state, state.idle}
  end

  @impl true
  def handle_call(message, from, state) do
    {answer, state} = handle(message, from, state)
    {:reply, answer, state, state.idle}
  end

  defp handle(:fields, _from, state), do: {{:ok, state.fields}, state}

  defp handle({:put_fields, fields}, _from, state), do: {:ok, %{state | fields: fields}}

  defp handle({:of?, book, profile}, _from, state),
    do: {{state.book, state.profile} == {book, profile}, state}

  defp handle({:enter, id, pid}, _from, state) do
    cond do
      is_map_key(state.requests, id) -> {:duplicate, state}
      map_size(state.requests) >= @max_requests -> {:full, state}
      true -> {:ok, put_in(state.requests[id], {pid, Process.monitor(pid)})}
    end
  end

  defp handle({:leave, id, pid}, _from, state) do
    case state.requests do
      %{^id => {^pid, monitor}} ->
        Process.demonitor(monitor, [:flush])
        {:ok, %{state | requests: Map.delete(state.requests, id)}}

      _ ->
        {:ok, state}
    end
  end

  defp handle({:stream, pid}, _from, state) do
    if map_size(state.streams) >= @max_streams,
      do: {:full, state},
      else: {:ok, put_in(state.streams[Process.monitor(pid)], pid)}
  end

  defp handle({:expect, pid}, _from, state) do
    number = state.number + 1
    id = "ask-#{number}"
    state = %{state | number: number}
    {{:ok, id}, put_in(state.expecting[id], {pid, Process.monitor(pid)})}
  end

  defp handle({:subscribe, uri, max}, _from, state) do
    if MapSet.size(state.uris) >= max and uri not in state.uris,
      do: {:full, state},
      else: {:ok, %{state | uris: MapSet.put(state.uris, uri)}}
  end

  defp handle({:unsubscribe, uri}, _from, state),
    do: {:ok, %{state | uris: MapSet.delete(state.uris, uri)}}

  defp handle(:uris, _from, state), do: {MapSet.to_list(state.uris), state}

  @impl true
  def handle_cast({:cancel, id}, state) do
    with {pid, _monitor} <- state.requests[id], do: send(pid, {:mcp_cancelled, id})
    {:noreply, state, state.idle}
  end

  def handle_cast({:forget, pid}, state) do
    left = fn map ->
      Map.reject(map, fn {_id, {of, monitor}} -> of == pid and forget(monitor) end)
    end

    streams = Map.reject(state.streams, fn {monitor, of} -> of == pid and forget(monitor) end)

    state = %{
      state
      | requests: left.(state.requests),
        expecting: left.(state.expecting),
        streams: streams
    }

    {:noreply, state, state.idle}
  end

  # An answer that nobody waits for is dropped.
  def handle_cast({:answer, id, answer}, state) do
    case Map.pop(state.expecting, id) do
      {nil, _expecting} ->
        {:noreply, state, state.idle}

      {{pid, monitor}, expecting} ->
        Process.demonitor(monitor, [:flush])
        send(pid, {:mcp_answer, id, answer})
        {:noreply, %{state | expecting: expecting}, state.idle}
    end
  end

  defp forget(monitor), do: Process.demonitor(monitor, [:flush])

  @impl true
  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    left = fn map -> Map.reject(map, fn {_id, {_pid, of}} -> of == monitor end) end

    state = %{
      state
      | requests: left.(state.requests),
        expecting: left.(state.expecting),
        streams: Map.delete(state.streams, monitor)
    }

    {:noreply, state, state.idle}
  end

  def handle_info({:book, _monitor, :process, _pid, _reason}, state), do: {:stop, :normal, state}

  def handle_info(:timeout, state) do
    if state.streams == %{} and state.requests == %{},
      do: {:stop, :normal, state},
      else: {:noreply, state, state.idle}
  end

  def handle_info(_message, state), do: {:noreply, state, state.idle}
end
