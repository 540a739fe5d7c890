defmodule Skillbook.CLI.Output do
  @moduledoc false
  # Writes to standard output and reports failed writes.
  #
  # The virtual machine's own device acknowledges a write before it happens, and drops the error.
  # So this writes through a port of its own, which exits with the error. Another group leader,
  # such as a remote shell, reports its errors itself.

  @key {__MODULE__, :port}
  @stopped {:shutdown, __MODULE__}
  @poll_interval 2

  @doc """
  Calls the function, and waits until its output is written.

  Returns `{:error, reason}`, with a reason of `t::file.posix/0`, if a write fails. The process
  that writes next exits with `stopped/0`.
  """
  @spec report_errors((() -> result)) :: {:ok, result} | {:error, atom()} when result: term()
  def report_errors(fun) do
    if Process.group_leader() == Process.whereis(:user), do: with_port(fun), else: call(fun)
  end

  defp with_port(fun) do
    port = Port.open({:fd, 1, 1}, [:out, :binary])
    monitor = Port.monitor(port)
    Process.unlink(port)
    :persistent_term.put(@key, port)

    try do
      result = call(fun)
      if flushed?(port), do: result, else: {:error, exit_reason(monitor)}
    after
      :persistent_term.erase(@key)
      Port.demonitor(monitor, [:flush])
      if Port.info(port), do: Port.close(port)
    end
  end

  defp call(fun) do
    {:ok, fun.()}
  catch
    :exit, @stopped -> {:error, :epipe}
  end

  defp flushed?(port) do
    case Port.info(port, :queue_size) do
      {:queue_size, 0} ->
        true

      {:queue_size, _} ->
        Process.sleep(@poll_interval)
        flushed?(port)

      nil ->
        false
    end
  end

  defp exit_reason(monitor) do
    receive do
      {:DOWN, ^monitor, :port, _port, reason} -> reason
    end
  end

  @doc "The exit reason of a process whose write failed."
  @spec stopped() :: {:shutdown, module()}
  def stopped, do: @stopped

  @doc "Writes chardata in UTF-8; exits with `stopped/0` if this or an earlier write failed."
  @spec write(IO.chardata()) :: :ok
  def write(text) do
    case :persistent_term.get(@key, nil) do
      nil -> IO.write(text)
      port -> Port.command(port, IO.chardata_to_string(text))
    end

    :ok
  rescue
    # A port that has exited is no argument of `Port.command/2`.
    error in [ArgumentError, ErlangError] ->
      if match?(%ArgumentError{}, error) or error.original in [:terminated, :epipe],
        do: exit(@stopped),
        else: reraise(error, __STACKTRACE__)
  end
end
