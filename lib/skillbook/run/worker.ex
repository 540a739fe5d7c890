defmodule Skillbook.Run.Worker do
  @moduledoc false
  # A process that works for a caller, under the supervisor of a book. It is not linked, so that a crash does not reach the
  # caller, but it ends when the caller does, whatever it is doing.

  @type t :: Task.t()

  @doc "Starts one that waits for `run/2`."
  @spec start(atom() | nil, keyword(), (() -> term())) :: t()
  def start(book, logger_metadata, fun) do
    caller = self()

    Task.Supervisor.async_nolink(supervisor(book), fn ->
      end_with(caller)
      Logger.metadata(logger_metadata)

      receive do
        {__MODULE__, :run} -> guarded(fun)
      end
    end)
  end

  @doc "Lets it work; its caller gets the messages of a task."
  @spec begin(t()) :: :ok
  def begin(worker) do
    send(worker.pid, {__MODULE__, :run})
    :ok
  end

  @doc "Lets it work, and waits; it is stopped when the time is over."
  @spec run(t(), timeout()) :: {:ok, term()} | {:crash, term()} | :timeout
  def run(worker, timeout) do
    begin(worker)

    case Task.yield(worker, timeout) || stop(worker) do
      {:ok, value} -> {:ok, value}
      {:exit, {:shutdown, {__MODULE__, reason}}} -> {:crash, reason}
      {:exit, reason} -> {:crash, reason}
      nil -> :timeout
    end
  catch
    # A task whose process ended with `:noconnection`, as one that was linked to another node, ends its caller.
    :exit, reason -> {:crash, reason}
  end

  @spec stop(t()) :: {:ok, term()} | {:exit, term()} | nil
  def stop(worker), do: Task.shutdown(worker, :brutal_kill)

  @doc "The supervisor of a book's workers; handlers of a catalog that no book holds run under one of the application."
  @spec supervisor(atom() | nil) :: atom()
  def supervisor(nil), do: Skillbook.Tasks
  def supervisor(book), do: Module.concat(book, Tasks)

  # What it was linked to ends with it, and the crash is logged once, by who knows what it was for.
  defp guarded(fun) do
    fun.()
  catch
    kind, reason ->
      exit({:shutdown, {__MODULE__, reason(kind, reason, without_values(__STACKTRACE__))}})
  end

  defp reason(:error, error, stack), do: {Exception.normalize(:error, error, stack), stack}
  defp reason(:throw, value, stack), do: {{:nocatch, value}, stack}
  defp reason(:exit, reason, _stack), do: reason

  # A frame may hold the arguments of its call, and these are the flags.
  defp without_values(stack) do
    Enum.map(stack, fn
      {module, function, arguments, location} when is_list(arguments) ->
        {module, function, length(arguments), location}

      frame ->
        frame
    end)
  end

  defp end_with(caller) do
    worker = self()

    spawn(fn ->
      worker_ref = Process.monitor(worker)
      caller_ref = Process.monitor(caller)

      receive do
        {:DOWN, ^worker_ref, :process, _, _} -> :ok
        {:DOWN, ^caller_ref, :process, _, _} -> Process.exit(worker, :kill)
      end
    end)
  end
end
