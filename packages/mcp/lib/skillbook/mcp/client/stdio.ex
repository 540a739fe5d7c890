defmodule Skillbook.MCP.Client.Stdio do
  @moduledoc false
  # The stdio transport: owns the server's program, writes messages to it line by line and hands
  # responses to the callers that wait.
  #
  # The program gets few environment variables, and ends with this process. One that ends or
  # misbehaves is started again when the next request comes, after a pause that doubles.

  use GenServer

  alias Skillbook.Support.Secret
  alias Skillbook.MCP.Client.{Error, Session, State}
  alias Skillbook.Support.JSON

  require Logger

  @kept ~w(PATH HOME USER LOGNAME LANG LANGUAGE LC_ALL LC_CTYPE TMPDIR TZ SHELL TERM
           SYSTEMROOT APPDATA LOCALAPPDATA)
  @chunk 65_536
  @first_pause 500
  @longest_pause 60_000
  # A program that ran so long has started well.
  @settled 60_000
  @max_pending 1_000
  # Requests of the server that are answered at once.
  @max_asked 16
  # A port reads as fast as its program writes, and its parts wait here as messages.
  @max_queue 5_000
  @deaf "its program does not read its input"
  # Seconds for the program to end by itself.
  @grace 1

  def start_link(settings), do: GenServer.start_link(__MODULE__, settings)

  @doc "As `Skillbook.MCP.Client.HTTP.request/5`."
  def request(settings, _session, message, answer, options) do
    left = max(options[:deadline] - now(), 1)
    line = IO.iodata_to_binary([JSON.encode(message), ?\n])
    max = options[:max] || settings.max_message

    case call(settings, {:request, message["id"], line, answer, max}, left) do
      {:ok, response} -> Session.response(settings, response)
      {:error, error} -> {:error, error}
    end
  end

  @doc "As `Skillbook.MCP.Client.HTTP.notify/4`."
  def notify(settings, _session, message, options) do
    left = max(options[:deadline] - now(), 1)
    call(settings, {:notify, IO.iodata_to_binary([JSON.encode(message), ?\n])}, left)
  end

  defp call(settings, request, timeout) do
    GenServer.call(State.stdio(settings) || throw(:stopped), request, timeout)
  catch
    :exit, {:timeout, _call} ->
      Session.error(settings, :timeout, "no answer within the time limit")

    kind, _reason when kind in [:exit, :throw] ->
      Session.error(settings, :stopped, "its program does not run")
  end

  @impl true
  def init(settings) do
    Process.flag(:trap_exit, true)
    State.put_session(settings, nil)
    State.put_stdio(settings, self())

    {:ok,
     %{
       settings: settings,
       port: nil,
       os_pid: nil,
       writer: nil,
       unwritten: nil,
       started: nil,
       not_before: now(),
       pause: @first_pause,
       line: [],
       size: 0,
       pending: %{},
       asked: %{}
     }}
  end

  @impl true
  def handle_call({:request, id, line, answer, max}, {caller, _} = from, state) do
    with {:ok, state} <- running(state),
         :ok <- room(state),
         :ok <- write(state, line) do
      monitor = Process.monitor(caller)
      pending = %{from: from, monitor: monitor, answer: answer, max: max}
      {:noreply, put_in(state.pending[id], pending)}
    else
      {:error, error, state} -> {:reply, {:error, error}, state}
      {:error, error} -> {:reply, {:error, error}, state}
    end
  end

  def handle_call({:notify, line}, _from, state) do
    with {:ok, state} <- running(state),
         :ok <- write(state, line) do
      {:reply, :ok, state}
    else
      {:error, error, state} -> {:reply, {:error, error}, state}
      {:error, error} -> {:reply, {:error, error}, state}
    end
  end

  @impl true
  def handle_info({port, {:data, {kind, part}}}, %{port: port} = state) do
    size = state.size + byte_size(part)
    {:message_queue_len, queue} = Process.info(self(), :message_queue_len)

    cond do
      queue > @max_queue ->
        {:noreply, stop(state, "it writes faster than its messages can be read")}

      size > max_line(state) ->
        {:noreply,
         stop(state, "expected lines of at most #{max_line(state)} bytes, got a longer one")}

      kind == :noeol ->
        {:noreply, %{state | line: [state.line, part], size: size}}

      true ->
        line = IO.iodata_to_binary([state.line, part])
        {:noreply, message(%{state | line: [], size: 0}, line)}
    end
  end

  def handle_info({port, {:exit_status, status}}, %{port: port} = state),
    do: {:noreply, ended(state, "its program ended with the status #{status}")}

  def handle_info({:EXIT, port, _reason}, %{port: port} = state),
    do: {:noreply, ended(state, "its program ended")}

  # The response to a request of the server.
  def handle_info({ref, response}, %{asked: asked} = state) when is_map_key(asked, ref) do
    Process.demonitor(ref, [:flush])
    {port, asked} = Map.pop!(asked, ref)
    state = %{state | asked: asked}
    {:noreply, if(port == state.port, do: respond(state, response), else: state)}
  end

  def handle_info({:DOWN, ref, :process, _pid, _reason}, %{asked: asked} = state)
      when is_map_key(asked, ref),
      do: {:noreply, %{state | asked: Map.delete(asked, ref)}}

  # A caller has gone: its request is cancelled.
  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    case Enum.find(state.pending, fn {_id, pending} -> pending.monitor == monitor end) do
      {id, _pending} ->
        if state.port, do: write(state, cancelled(id))
        {:noreply, %{state | pending: Map.delete(state.pending, id)}}

      nil ->
        {:noreply, state}
    end
  end

  def handle_info(_other, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state), do: close(state)

  # Messages

  defp message(state, line) do
    case JSON.decode(line) do
      {:ok, %{"method" => method, "id" => id} = message} when is_binary(method) ->
        asked(state, Map.put(message, "id", id))

      {:ok, %{"method" => method}} when is_binary(method) ->
        Skillbook.MCP.Client.notified(state.settings, method)
        state

      {:ok, %{"id" => id} = message} when is_map_key(state.pending, id) ->
        {pending, rest} = Map.pop!(state.pending, id)
        Process.demonitor(pending.monitor, [:flush])
        GenServer.reply(pending.from, {:ok, message})
        %{state | pending: rest}

      # The answer to a request that was cancelled.
      {:ok, %{"id" => id}} when is_integer(id) ->
        state

      _other ->
        stop(state, "expected messages of JSON-RPC on its standard output, got another line")
    end
  end

  defp asked(%{asked: asked} = state, message) when map_size(asked) >= @max_asked do
    error = %{"code" => -32_000, "message" => "Too many requests at once"}
    respond(state, response(message, %{"error" => error}))
  end

  # The function of the application may wait for a person.
  defp asked(%{port: port, settings: settings} = state, message) do
    answer =
      Enum.find_value(state.pending, fn {_id, pending} -> pending.answer end) ||
        fn _message -> %{"error" => %{"code" => -32_601, "message" => "Method not found"}} end

    task =
      Task.Supervisor.async_nolink(Skillbook.Run.Worker.supervisor(settings.book), fn ->
        response(message, answer.(message))
      end)

    put_in(state.asked[task.ref], port)
  catch
    :exit, _reason -> state
  end

  # Its program would wait for a response that is missing.
  defp respond(state, response) do
    case write(state, [JSON.encode(response), ?\n]) do
      :ok -> state
      {:error, _error} -> stop(state, @deaf)
    end
  end

  defp response(%{"id" => id}, answer), do: Map.merge(%{"jsonrpc" => "2.0", "id" => id}, answer)

  defp cancelled(id) do
    params = %{"requestId" => id}
    message = %{"jsonrpc" => "2.0", "method" => "notifications/cancelled", "params" => params}
    [JSON.encode(message), ?\n]
  end

  defp max_line(state) do
    Enum.reduce(state.pending, state.settings.max_message, fn {_id, pending}, max ->
      max(pending.max, max)
    end)
  end

  defp room(%{pending: pending} = state) do
    if map_size(pending) < @max_pending,
      do: :ok,
      else: Session.error(state.settings, :busy, "#{@max_pending} requests wait for it")
  end

  # A program that does not read, or only after it has written, must not stop this process. So
  # another one writes, and lines wait there; one that was dropped would be waited for.
  defp write(%{writer: writer, unwritten: unwritten} = state, line) do
    line = IO.iodata_to_binary(line)
    before = :atomics.get(unwritten, 1)

    if before > 0 and before + byte_size(line) > state.settings.max_message do
      Session.error(state.settings, :busy, @deaf)
    else
      :atomics.add(unwritten, 1, byte_size(line))
      send(writer, {:line, line})
      :ok
    end
  end

  # Ends with its port, whose end this module hears of.
  defp writer(port, unwritten) do
    receive do
      {:line, line} ->
        Port.command(port, line)
        :atomics.sub(unwritten, 1, byte_size(line))
        writer(port, unwritten)
    end
  rescue
    ArgumentError -> :ok
  end

  # The program

  defp running(%{port: port} = state) when port != nil, do: {:ok, state}

  defp running(%{settings: settings, not_before: not_before} = state) do
    left = not_before - now()

    if left > 0 do
      reason = "its program has ended; it is started again in #{div(left, 1000) + 1} s"
      {:error, %Error{kind: :stopped, server: settings.label, reason: reason}, state}
    else
      start(state)
    end
  end

  defp start(%{settings: %{place: {:command, [program | arguments]}} = settings} = state) do
    with {:ok, path} <- find(settings, program),
         {:ok, env} <- environment(settings) do
      # The text of the script is fixed; the words of the command are its arguments.
      stderr = settings.stderr || "/dev/null"
      script = ~S(errors=$1; shift; exec "$@" 2>>"$errors")

      options =
        [
          :binary,
          :exit_status,
          :use_stdio,
          :hide,
          line: @chunk,
          args: ["-c", script, "sh", stderr, path | arguments],
          env: env
        ] ++ if(settings.cd, do: [cd: settings.cd], else: [])

      port = Port.open({:spawn_executable, "/bin/sh"}, options)
      os_pid = with {:os_pid, pid} <- Port.info(port, :os_pid), do: pid
      State.put_session(settings, nil)
      unwritten = :atomics.new(1, [])
      writer = spawn_link(fn -> writer(port, unwritten) end)
      state = %{state | port: port, os_pid: os_pid, writer: writer, unwritten: unwritten}
      {:ok, %{state | started: now(), line: [], size: 0}}
    else
      {:error, error} -> {:error, error, later(state)}
    end
  rescue
    error ->
      reason = "its program cannot be started: #{Exception.message(error)}"
      {:error, %Error{kind: :stopped, server: settings.label, reason: reason}, later(state)}
  end

  defp find(settings, program) do
    case System.find_executable(program) do
      nil ->
        Session.error(settings, :stopped, "its program #{inspect(program)} was not found")

      path ->
        {:ok, path}
    end
  end

  # Secrets of the application must not reach a stranger's program.
  defp environment(settings) do
    unset = for {name, _value} <- System.get_env(), name not in @kept, do: {~c"#{name}", false}

    Enum.reduce_while(settings.env, {:ok, unset}, fn
      {name, value}, {:ok, env} when is_binary(value) ->
        {:cont, {:ok, env ++ [{to_charlist(name), to_charlist(value)}]}}

      {name, secret}, {:ok, env} ->
        case Secret.read(secret, nil) do
          {:ok, value} ->
            {:cont, {:ok, env ++ [{to_charlist(name), to_charlist(value.())}]}}

          {:error, reason} ->
            {:halt,
             Session.error(settings, :secret, "the variable #{name} cannot be read: #{reason}")}
        end
    end)
  end

  defp later(state) do
    ran? = state.started != nil and now() - state.started >= @settled
    pause = if ran?, do: @first_pause, else: state.pause
    next = min(pause * 2, @longest_pause)
    %{state | not_before: now() + pause, pause: next, started: nil}
  end

  defp stop(state, reason) do
    close(state)
    ended(state, reason)
  end

  defp ended(%{settings: settings} = state, reason) do
    Logger.warning("the MCP server #{settings.label}: #{reason}")
    State.put_session(settings, nil)

    for {_id, pending} <- state.pending do
      Process.demonitor(pending.monitor, [:flush])
      GenServer.reply(pending.from, Session.error(settings, :closed, reason))
    end

    Process.exit(state.writer, :kill)
    later(%{state | port: nil, os_pid: nil, writer: nil, line: [], size: 0, pending: %{}})
  end

  # Closes the standard input, then ends the program and those that it has started. A program of
  # a port leads a group of its own. The waiting is done outside of the virtual machine, which may
  # end now too.
  defp close(%{port: nil}), do: :ok

  defp close(%{port: port, os_pid: os_pid}) do
    if Port.info(port), do: Port.close(port)

    if is_integer(os_pid) do
      script =
        "(sleep #{@grace}; kill -s TERM -- -$1; sleep #{@grace}; kill -s KILL -- -$1) " <>
          ">/dev/null 2>&1 &"

      System.cmd("/bin/sh", ["-c", script, "sh", "#{os_pid}"])
    end

    :ok
  rescue
    _error in [ArgumentError, ErlangError] -> :ok
  end

  defp now, do: System.monotonic_time(:millisecond)
end
