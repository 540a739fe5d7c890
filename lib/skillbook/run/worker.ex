defmodule Skillbook.Run.Worker do
  @moduledoc false
  # Runs a handler in a supervised, unlinked process that is killed at the time limit or when its
  # caller exits. A crash becomes an error result.

  alias Skillbook.Telemetry

  @type t :: Task.t()

  @doc "Starts a worker, which waits for `run/2`."
  @spec start(atom() | nil, keyword(), (() -> term())) :: t()
  def start(book, logger_metadata, fun) do
    caller = self()
    fun = Telemetry.in_trace(fun)

    Task.Supervisor.async_nolink(supervisor(book), fn ->
      exit_with(caller)
      Logger.metadata(logger_metadata)

      receive do
        {__MODULE__, :run} -> guarded(fun)
      end
    end)
  end

  @doc "Starts the work without waiting; the caller receives the messages of a `Task`."
  @spec begin(t()) :: :ok
  def begin(worker) do
    send(worker.pid, {__MODULE__, :run})
    :ok
  end

  @doc "Starts the work and waits for the result. The worker is killed at the time limit."
  @spec run(t(), timeout()) :: {:ok, term()} | {:crash, term()} | :timeout
  def run(worker, timeout) do
    begin(worker)
    await(worker, timeout)
  end

  @doc "Waits for the result of a worker that was begun."
  @spec await(t(), timeout()) :: {:ok, term()} | {:crash, term()} | :timeout
  def await(worker, timeout) do
    case Task.yield(worker, timeout) || stop(worker) do
      {:ok, value} -> {:ok, value}
      {:exit, {:shutdown, {__MODULE__, reason}}} -> {:crash, reason}
      {:exit, reason} -> {:crash, reason}
      nil -> :timeout
    end
  catch
    # `Task.yield/2` exits if the worker ended with `:noconnection`, as after a link to another
    # node.
    :exit, reason -> {:crash, reason}
  end

  @doc "Kills the worker."
  @spec stop(t()) :: {:ok, term()} | {:exit, term()} | nil
  def stop(worker), do: Task.shutdown(worker, :brutal_kill)

  @doc "The supervisor of a book's workers; without a book, the one of the application."
  @spec supervisor(atom() | nil) :: atom()
  def supervisor(nil), do: Skillbook.Tasks
  def supervisor(book), do: Module.concat(book, Tasks)

  # Exits with `:shutdown`, so that linked processes end too and the crash is logged only once, by
  # the executor, with the skill's name.
  defp guarded(fun) do
    fun.()
  catch
    kind, reason ->
      exit({:shutdown, {__MODULE__, reason(kind, reason, without_arguments(__STACKTRACE__))}})
  end

  defp reason(:error, error, stack), do: {Exception.normalize(:error, error, stack), stack}
  defp reason(:throw, value, stack), do: {{:nocatch, value}, stack}
  defp reason(:exit, reason, _stack), do: reason

  # A stack frame may contain the arguments of its call, which include the flags.
  defp without_arguments(stack) do
    Enum.map(stack, fn
      {module, function, arguments, location} when is_list(arguments) ->
        {module, function, length(arguments), location}

      frame ->
        frame
    end)
  end

  @doc "Kills the calling process when another one exits."
  @spec exit_with(pid()) :: pid()
  def exit_with(caller) do
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
