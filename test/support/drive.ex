defmodule Skillbook.TestDrive do
  @moduledoc false
  # A remote drive as a process: files with stable ids, pages of two, changes sent to subscribers,
  # and failures on demand.

  use GenServer

  @page 2

  def start_link(_options \\ []), do: GenServer.start_link(__MODULE__, nil)

  # Changes on the drive

  def put(drive, id, fields), do: GenServer.call(drive, {:put, id, Map.new(fields)})
  def delete(drive, id), do: GenServer.call(drive, {:delete, id})

  @doc """
  Sets the response to calls of a kind (`:files`, `{:files, cursor}`, `{:download, id}`); `nil`
  removes it.
  """
  def fail(drive, call, answer), do: GenServer.call(drive, {:fail, call, answer})

  @doc "The number of downloads."
  def downloads(drive), do: GenServer.call(drive, :downloads)

  # The interface of the drive

  def files(drive, cursor), do: ask(drive, {:files, cursor || 0})
  def file(drive, id), do: ask(drive, {:file, id})
  def download(drive, id), do: ask(drive, {:download, id})
  def subscribe(drive), do: ask(drive, {:subscribe, self()})

  defp ask(drive, call) do
    case GenServer.call(drive, call) do
      {:raise, message} -> raise message
      {:exit, reason} -> exit(reason)
      answer -> answer
    end
  end

  @impl true
  def init(nil), do: {:ok, %{files: %{}, fail: %{}, subscribers: [], downloads: 0}}

  @impl true
  def handle_call({:put, id, fields}, _from, state) do
    before =
      Map.get(state.files, id, %{
        path: id,
        text: "",
        labels: [],
        modified: ~U[2026-01-01 00:00:00Z]
      })

    file = before |> Map.merge(fields) |> Map.update!(:modified, &DateTime.add(&1, 10))
    file = Map.merge(file, %{id: id, size: byte_size(file.text)})
    {:reply, :ok, tell(put_in(state.files[id], file), id)}
  end

  def handle_call({:delete, id}, _from, state),
    do: {:reply, :ok, tell(%{state | files: Map.delete(state.files, id)}, id)}

  def handle_call({:fail, call, nil}, _from, state),
    do: {:reply, :ok, %{state | fail: Map.delete(state.fail, call)}}

  def handle_call({:fail, call, answer}, _from, state),
    do: {:reply, :ok, put_in(state.fail[call], answer)}

  def handle_call(:downloads, _from, state), do: {:reply, state.downloads, state}

  def handle_call({:subscribe, pid}, _from, state),
    do: {:reply, :ok, %{state | subscribers: [pid | state.subscribers]}}

  def handle_call(call, _from, %{fail: fail} = state) when is_map_key(fail, call),
    do: {:reply, fail[call], state}

  def handle_call({:files, cursor}, _from, state) do
    files = state.files |> Map.values() |> Enum.sort_by(& &1.id)
    next = if cursor + @page < length(files), do: cursor + @page
    {:reply, {:ok, Enum.slice(files, cursor, @page), next}, state}
  end

  def handle_call({:file, id}, _from, state), do: {:reply, fetch(state, id), state}

  def handle_call({:download, id}, _from, state) do
    answer = with {:ok, file} <- fetch(state, id), do: {:ok, file, file.text}
    {:reply, answer, %{state | downloads: state.downloads + 1}}
  end

  defp fetch(state, id), do: with(:error <- Map.fetch(state.files, id), do: {:error, :not_found})

  defp tell(state, id) do
    for pid <- state.subscribers, do: send(pid, {:drive_changed, [id]})
    state
  end
end
