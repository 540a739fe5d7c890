defmodule Skillbook.DatabaseProxy do
  @moduledoc false
  # A proxy in front of a PostgreSQL server, which fails as networks and servers do.
  #
  # It counts the messages of its clients: each is what one client sends until the server has
  # answered it. A fault is one of
  #
  #   * `:pass` - none
  #   * `:refuse` - closes all connections, and each new one
  #   * `:hang` - keeps connections open and forwards nothing
  #   * `{:before, n}` - closes the connection on which the n-th message arrives, unsent
  #   * `{:after, n}` - forwards the n-th message, waits for the answer, and closes the connection
  #     without it
  #   * `{:hang_after, n}` - the same, but keeps the connection open in silence
  #   * `{:delay, milliseconds}` - forwards each message later

  use GenServer

  def start_link(url) do
    GenServer.start_link(__MODULE__, URI.parse(url))
  end

  @doc "The URL of the server, through the proxy."
  def url(proxy), do: GenServer.call(proxy, :url)

  @doc "Sets the fault, and counts messages from 0 again."
  def fault(proxy, fault), do: GenServer.call(proxy, {:fault, fault})

  @doc "The number of messages since the fault was set."
  def count(proxy), do: GenServer.call(proxy, :count)

  @impl true
  def init(uri) do
    {:ok, listener} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(listener)
    proxy = self()
    spawn_link(fn -> accept(proxy, listener) end)
    address = {String.to_charlist(uri.host), uri.port}
    url = URI.to_string(%{uri | host: "127.0.0.1", port: port, query: "sslmode=disable"})
    {:ok, %{url: url, address: address, fault: :pass, count: 0, pipes: MapSet.new()}}
  end

  defp accept(proxy, listener) do
    {:ok, client} = :gen_tcp.accept(listener)
    pid = spawn(fn -> receive(do: (:go -> pipe(proxy, client))) end)
    :ok = :gen_tcp.controlling_process(client, pid)
    send(pid, :go)
    accept(proxy, listener)
  end

  @impl true
  def handle_call(:url, _from, state), do: {:reply, state.url, state}
  def handle_call(:count, _from, state), do: {:reply, state.count, state}

  def handle_call({:fault, fault}, _from, state) do
    if fault == :refuse, do: for(pid <- state.pipes, do: Process.exit(pid, :kill))
    for pid <- state.pipes, do: send(pid, :fault)
    {:reply, :ok, %{state | fault: fault, count: 0}}
  end

  def handle_call({:open, pid}, _from, state) do
    Process.monitor(pid)
    reply = if state.fault == :refuse, do: :refuse, else: {:ok, state.address}
    {:reply, reply, %{state | pipes: MapSet.put(state.pipes, pid)}}
  end

  def handle_call(:message, _from, state) do
    state = %{state | count: state.count + 1}

    action =
      case state.fault do
        {fault, at} when fault in [:before, :after, :hang_after] ->
          if state.count == at, do: fault, else: :pass

        fault ->
          fault
      end

    {:reply, action, state}
  end

  @impl true
  def handle_info({:DOWN, _ref, :process, pid, _reason}, state),
    do: {:noreply, %{state | pipes: MapSet.delete(state.pipes, pid)}}

  # One connection

  defp pipe(proxy, client) do
    with {:ok, {host, port}} <- GenServer.call(proxy, {:open, self()}) do
      {:ok, server} = :gen_tcp.connect(host, port, [:binary, active: false])
      :ok = :inet.setopts(client, active: true)
      :ok = :inet.setopts(server, active: true)
      state = %{proxy: proxy, client: client, server: server}
      forward(Map.merge(state, %{answered: true, tail: "", drop: nil}))
    end
  end

  defp forward(state) do
    receive do
      {:tcp, socket, bytes} when socket == state.client ->
        action =
          if state.answered, do: GenServer.call(state.proxy, :message, :infinity), else: :pass

        from_client(action, bytes, %{state | answered: false})

      {:tcp, _server, bytes} ->
        # The end of an answer, which may come in pieces: ready for the next query.
        tail = state.tail <> bytes
        tail = binary_part(tail, byte_size(tail), -min(byte_size(tail), 6))
        answered = match?(<<?Z, 5::32, _>>, tail)
        state = %{state | answered: state.answered or answered, tail: tail}
        from_server(bytes, state, answered)

      :fault ->
        forward(state)

      {:tcp_closed, _socket} ->
        :ok
    end
  end

  defp from_client(:before, _bytes, _state), do: :ok
  defp from_client(:hang, bytes, state), do: hang(bytes, state)

  defp from_client({:delay, time}, bytes, state) do
    Process.sleep(time)
    from_client(:pass, bytes, state)
  end

  defp from_client(action, bytes, state) do
    :ok = :gen_tcp.send(state.server, bytes)
    drop = if action in [:after, :hang_after], do: action, else: state.drop
    forward(%{state | drop: drop})
  end

  defp from_server(_bytes, %{drop: :after}, true), do: :ok
  defp from_server(_bytes, %{drop: :hang_after} = state, true), do: hang("", state)
  defp from_server(_bytes, %{drop: drop} = state, false) when drop != nil, do: forward(state)

  defp from_server(bytes, state, _answered) do
    _ = :gen_tcp.send(state.client, bytes)
    forward(state)
  end

  # Until another fault is set. What was held back is sent then, as by a network that is back.
  defp hang(bytes, state) do
    receive do
      :fault ->
        _ = :gen_tcp.send(state.server, bytes)
        forward(%{state | drop: nil})

      {:tcp_closed, _socket} ->
        :ok
    end
  end
end
