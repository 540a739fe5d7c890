defmodule Skillbook.SQL.Postgres.Listener do
  @moduledoc false
  # Holds the one connection that listens for notifications, for all subscribers of this node.
  #
  # It is opened for the first subscriber. After a loss it is reopened, and all subscribers are
  # told that they may have missed notifications.

  use GenServer

  alias Skillbook.SQL.Postgres.Library
  alias Skillbook.SQL.Postgres.Reply

  # Milliseconds between attempts to connect.
  @min_pause 50
  @max_pause 1000

  def start_link({name, server}),
    do: GenServer.start_link(__MODULE__, server, name: listener(name))

  def listener(name), do: Module.concat(name, Listener)

  @impl true
  def init(server) do
    # `channels` holds the subscribers of each channel. `new` holds the callers that still wait
    # for the connection.
    {:ok,
     %{
       server: server,
       channels: %{},
       monitors: %{},
       session: nil,
       reference: nil,
       pause: @min_pause,
       new: []
     }}
  end

  @impl true
  def handle_call({:listen, channel, pid}, from, state) do
    state = subscribe(state, channel, pid)

    cond do
      state.session != nil -> {:reply, :ok, listen(state, channel)}
      state.reference != nil -> {:reply, :ok, state}
      true -> {:noreply, connect(%{state | new: [{from, channel, pid}]})}
    end
  end

  @impl true
  def handle_info(
        {:skillbook_postgres_notification, reference, channel, payload},
        %{reference: reference} = state
      ) do
    broadcast(state, channel, {:skillbook_notify, channel, payload})
    {:noreply, state}
  end

  def handle_info({:skillbook_postgres_end, reference}, %{reference: reference} = state)
      when state.session != nil do
    {:noreply, connect(%{state | session: nil})}
  end

  def handle_info({reference, {:ok, session}}, %{reference: reference} = state) do
    state =
      Enum.reduce(
        Map.keys(state.channels),
        %{state | session: session, pause: @min_pause},
        &listen(&2, &1)
      )

    if state.session do
      # Callers that waited for the connection have missed nothing; all other subscribers may
      # have.
      fresh =
        for {from, channel, pid} <- state.new do
          GenServer.reply(from, :ok)
          {channel, pid}
        end

      for {channel, pids} <- state.channels, pid <- pids, {channel, pid} not in fresh do
        send(pid, {:skillbook_notify_lost, channel})
      end

      {:noreply, %{state | new: []}}
    else
      {:noreply, state}
    end
  end

  def handle_info({reference, {:error, _error, _passing}}, %{reference: reference} = state) do
    for {from, _channel, _pid} <- state.new, do: GenServer.reply(from, :ok)
    {:noreply, connect_later(%{state | new: []})}
  end

  def handle_info(:connect, state), do: {:noreply, connect(state)}

  def handle_info({:DOWN, _monitor, :process, pid, _reason}, state) do
    channels =
      for {channel, pids} <- state.channels, into: %{} do
        {channel, List.delete(pids, pid)}
      end

    {unused, channels} = Map.split(channels, for({channel, []} <- channels, do: channel))
    state = %{state | channels: channels, monitors: Map.delete(state.monitors, pid)}
    {:noreply, Enum.reduce(Map.keys(unused), state, &call(&2, &1, false))}
  end

  def handle_info(_message, state), do: {:noreply, state}

  defp subscribe(state, channel, pid) do
    monitors = Map.put_new_lazy(state.monitors, pid, fn -> Process.monitor(pid) end)
    channels = Map.update(state.channels, channel, [pid], &Enum.uniq([pid | &1]))
    %{state | monitors: monitors, channels: channels}
  end

  defp broadcast(state, channel, message) do
    for pid <- Map.get(state.channels, channel, []), do: send(pid, message)
  end

  defp connect(state) do
    reference = make_ref()
    Library.postgres_connect(state.server, reference)
    %{state | reference: reference}
  end

  defp connect_later(state) do
    Process.send_after(self(), :connect, state.pause)
    %{state | session: nil, pause: min(state.pause * 2, @max_pause)}
  end

  defp listen(state, channel), do: call(state, channel, true)

  defp call(%{session: nil} = state, _channel, _listens), do: state

  defp call(state, channel, listens) do
    reference = make_ref()
    Library.postgres_listen(state.session, reference, channel, listens)

    case Reply.await(reference) do
      :ok ->
        state

      {:error, _error} ->
        Library.postgres_close(state.session)
        connect_later(state)
    end
  end
end
