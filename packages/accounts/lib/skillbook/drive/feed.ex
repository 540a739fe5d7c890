defmodule Skillbook.Drive.Feed do
  @moduledoc false
  # Asks a drive at intervals for the changes since the last time, and tells the indexer of a
  # vault.
  #
  # The token of the feed is kept in memory: with a new token, at a start and when the service no
  # longer knows the old one, the indexer compares everything, which reads only documents that
  # have changed. A token is fetched before that comparison, so no change falls between the two.

  use GenServer

  alias Skillbook.{ConnectionError, Drive}
  alias Skillbook.Drive.Folder

  # Milliseconds.
  @interval 60_000
  @time 60_000
  # Each is asked for alone; more are compared with the list of the folder.
  @max_alone 20

  @spec start_link(keyword(), pid()) :: GenServer.on_start()
  def start_link(options, indexer), do: GenServer.start_link(__MODULE__, {options, indexer})

  @impl true
  def init({options, indexer}) do
    # A link does not end this process if the indexer ends normally.
    Process.monitor(indexer)
    state = %{options: options, indexer: indexer, person: nil, drive: nil, token: nil}
    {:ok, state, {:continue, :poll}}
  end

  @impl true
  def handle_continue(:poll, state), do: {:noreply, poll(state)}

  @impl true
  def handle_info(:poll, state), do: {:noreply, poll(state)}
  def handle_info({:DOWN, _ref, :process, _pid, _reason}, state), do: {:stop, :normal, state}
  # Late answers of adapters that use messages.
  def handle_info(_message, state), do: {:noreply, state}

  # Failures are left to the next time. The indexer logs its own.
  defp poll(state) do
    state =
      case Folder.account(state.options, @time) do
        {:ok, account} -> ask(account, state)
        {:error, error} -> failed(error, state)
      end

    Process.send_after(self(), :poll, state.options[:poll] || @interval)
    state
  end

  defp ask(account, %{token: nil} = state) do
    with {:ok, folder} <- Drive.file(account, state.options[:folder]),
         {:ok, %{token: token}} <- Drive.changes(account, folder.drive, nil) do
      tell(state, :all)
      %{state | person: account.identity, drive: folder.drive, token: token}
    else
      {:error, error} -> failed(error, state)
    end
  end

  # The token of one person has another meaning for the next one who signs in.
  defp ask(%{identity: other} = account, %{person: person} = state) when other != person,
    do: ask(account, %{state | token: nil})

  defp ask(account, state) do
    case Drive.changes(account, state.drive, state.token) do
      {:ok, %{changes: changes, token: token}} ->
        tell(state, changed(changes))
        %{state | token: token}

      {:error, :expired} ->
        ask(account, %{state | token: nil})

      {:error, error} ->
        failed(error, state)
    end
  end

  # The person has signed out: the indexer finds that out, and removes the documents.
  defp failed(%ConnectionError{kind: kind}, %{token: token} = state)
       when kind in [:none, :revoked] and token != nil do
    tell(state, :all)
    %{state | token: nil}
  end

  defp failed(_error, state), do: state

  # A folder that was renamed, moved or deleted changes everything below it, and no one tells what
  # a file was that is gone.
  defp changed(changes) do
    ids = changes |> Enum.map(&elem(&1, 0)) |> Enum.uniq()

    if length(ids) > @max_alone or Enum.any?(changes, &wide?/1), do: :all, else: ids
  end

  defp wide?({_id, nil}), do: true
  defp wide?({_id, file}), do: file.kind == :folder

  defp tell(_state, []), do: :ok
  defp tell(state, changed), do: send(state.indexer, {:skillbook_drive, changed})
end
