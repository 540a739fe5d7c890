defmodule Skillbook.Eventually do
  @moduledoc false
  # Repeats a check until it is true, for effects of other machines and processes without
  # notification.

  @doc "Whether `fun` gives something true within a minute."
  def eventually(fun, left \\ 6_000) do
    cond do
      fun.() -> true
      left > 0 -> Process.sleep(10) && eventually(fun, left - 1)
      true -> false
    end
  end

  @doc """
  Monitors a process, and returns when the process has noted it. One that is killed before that
  is told with `:noproc` as its reason, though it lived when it was monitored.
  """
  def monitor(process) do
    monitor = Process.monitor(process)
    with pid when is_pid(pid) <- GenServer.whereis(process), do: noted(pid)
    monitor
  end

  defp noted(pid) do
    with {:monitored_by, pids} <- Process.info(pid, :monitored_by),
         false <- self() in pids,
         do: noted(pid)
  end
end
