defmodule Skillbook.MCP.Stdio do
  @moduledoc false
  # Speaks with one client over two devices: a message on each line. Every request has a process
  # of its own, so a long one holds up no other, and a writer puts one whole line after another on
  # the output. Ends with the input.

  alias Skillbook.MCP.{Call, Context, Error, Protocol, Server, Session}
  alias Skillbook.{Profile, View}

  @initialized "notifications/initialized"
  # Milliseconds for the requests that still run when the input has ended.
  @grace 5_000

  @doc """
  Serves a book until the input ends. `read` returns the next line, `:eof` or an error, and
  `write` takes iodata and returns `:ok` or `{:error, reason}`. `stop` is called before the
  requests that still run are stopped, and may stop the book, which lets them end.
  """
  @spec serve(
          atom(),
          Profile.t() | String.t(),
          keyword(),
          (() -> {:line, binary()} | :too_long | :eof | {:error, term()}),
          (iodata() -> :ok | {:error, term()}),
          (() -> :ok) | nil
        ) :: :ok | {:error, term()}
  def serve(book, profile, options, read, write, stop \\ nil) do
    profile = View.of(book, profile).profile
    session = %{id: nil, book: book, profile: profile.id, fields: nil, idle: :infinity}
    {:ok, session} = Session.start_link(session)
    # The session counts the requests.
    {:ok, tasks} = Task.Supervisor.start_link()
    server = self()
    writer = spawn(fn -> writer(write, Process.monitor(server)) end)

    state = %{
      book: book,
      profile: profile,
      options: options,
      session: session,
      tasks: tasks,
      writer: writer,
      follower: nil
    }

    {outcome, state} = loop(state, read)
    finish(state, stop)
    outcome
  end

  defp loop(state, read) do
    case read.() do
      {:line, line} ->
        state = if String.trim(line) == "", do: state, else: message(state, Protocol.read(line))
        loop(state, read)

      :too_long ->
        text = "expected a line of at most #{Protocol.max_bytes()} bytes, got more"
        put(state, Protocol.error(nil, Error.request(text)))
        loop(state, read)

      :eof ->
        {:ok, state}

      {:error, reason} ->
        {{:error, reason}, state}
    end
  end

  defp message(state, {:error, error, id}), do: put(state, Protocol.error(id, error))

  defp message(state, {:ok, {:request, id, "initialize", params} = message}) do
    if Server.says_everything?(params),
      do: request(state, message),
      else: initialize(state, id, params)
  end

  defp message(state, {:ok, {:request, _id, _method, _params} = message}),
    do: request(state, message)

  defp message(state, {:ok, {:notification, "notifications/cancelled", params}}) do
    Session.cancel(state.session, params["requestId"])
    state
  end

  # From here on the client hears of changes that it did not ask for.
  defp message(%{follower: nil} = state, {:ok, {:notification, @initialized, _params}}) do
    case Session.fields(state.session) do
      {:ok, %{} = fields} ->
        follow = fn -> state |> context(fields) |> Call.follow(write(state)) end
        {:ok, pid} = Task.Supervisor.start_child(state.tasks, follow)
        %{state | follower: pid}

      _ ->
        state
    end
  end

  defp message(state, {:ok, {:response, id, answer}}) do
    Session.answer(state.session, id, answer)
    state
  end

  defp message(state, {:ok, _notification}), do: state

  defp initialize(state, id, params) do
    with {:ok, result, fields} <- Server.initialize(params),
         :ok <- Session.put_fields(state.session, fields) do
      put(state, Protocol.result(id, result))
    else
      {:error, %Error{} = error} -> put(state, Protocol.error(id, error))
      {:error, reason} -> put(state, Protocol.error(id, Error.session(reason)))
    end
  end

  defp request(state, {:request, id, _method, params} = message) do
    with {:ok, fields} <- fields(state, params),
         :ok <- start(state, message, fields) do
      state
    else
      {:error, error} -> put(state, Protocol.error(id, error))
    end
  end

  # A request that says everything is answered by that alone, whatever came before.
  defp fields(state, params) do
    with false <- Server.says_everything?(params),
         {:ok, %{} = fields} <- Session.fields(state.session) do
      {:ok, fields}
    else
      {:error, reason} -> {:error, Error.session(reason)}
      _says_everything_or_not_initialized -> Server.fields(params)
    end
  end

  defp start(state, {:request, id, _method, _params} = message, fields) do
    starter = self()

    run = fn ->
      entered = Session.enter(state.session, id)
      send(starter, {:entered, self(), entered})
      if entered == :ok, do: Call.run(message, context(state, fields), write(state))
    end

    # The client's next message may cancel this request, so it has to be known by then.
    {:ok, pid} = Task.Supervisor.start_child(state.tasks, run)

    receive do
      {:entered, ^pid, :ok} -> :ok
      {:entered, ^pid, :duplicate} -> {:error, duplicate()}
      {:entered, ^pid, :full} -> {:error, full()}
      {:entered, ^pid, {:error, reason}} -> {:error, Error.session(reason)}
    end
  end

  defp duplicate, do: Error.request("expected an `id` of no other request that still runs")
  defp full, do: Error.limit("expected at most #{Session.max_requests()} requests at once")

  # The view is made for each request.
  defp context(state, fields) do
    view = View.of(state.book, state.profile)
    context = %Context{view: view, profile: view.profile, revision: fields.revision}
    struct!(context, [session: state.session, options: state.options] ++ Map.to_list(fields))
  end

  # Writing

  defp put(state, message) do
    write(state).(message)
    state
  end

  defp write(%{writer: writer}) do
    fn
      :beat ->
        :ok

      message ->
        line = [Protocol.encode(message), "\n"]
        ref = Process.monitor(writer)
        send(writer, {:line, ref, self(), line})

        receive do
          {^ref, :ok} -> Process.demonitor(ref, [:flush])
          {:DOWN, ^ref, :process, _pid, _reason} -> exit(:shutdown)
        end
    end
  end

  defp writer(write, monitor) do
    receive do
      {:line, ref, pid, line} ->
        # The client reads no more, so nobody waits for answers.
        with {:error, reason} <- write.(line), do: exit({:shutdown, reason})
        send(pid, {ref, :ok})
        writer(write, monitor)

      {:DOWN, ^monitor, :process, _pid, _reason} ->
        :ok

      :stop ->
        :ok
    end
  end

  # Requests that still run have a little time; then they are stopped with their commands.
  defp finish(state, stop) do
    if state.follower, do: Process.exit(state.follower, :kill)
    await(state.tasks)

    if stop do
      stop.()
      await(state.tasks)
    end

    Supervisor.stop(state.tasks)
    send(state.writer, :stop)
    Session.stop(state.session)
  end

  defp await(tasks), do: await(tasks, System.monotonic_time(:millisecond) + @grace)

  defp await(tasks, until) do
    if Task.Supervisor.children(tasks) != [] and System.monotonic_time(:millisecond) < until do
      Process.sleep(20)
      await(tasks, until)
    end
  end

  # Input

  @doc """
  Returns a function that reads the next line of a port, which sends its bytes as they come. The
  message `:stop_signal` is the end of the input, here and in `device_lines/1`. Of a line that is
  longer than a message may be, only the end is looked for.
  """
  @spec port_lines(port()) :: (() -> {:line, binary()} | :too_long | :eof)
  def port_lines(port) do
    key = {__MODULE__, port}
    Process.put(key, "")
    fn -> port_line(port, key, [Process.get(key)], byte_size(Process.get(key))) end
  end

  # `parts` are the bytes of the line so far, the last ones first; `:skip` if they are too many.
  defp port_line(port, key, parts, size) do
    with [last | before] <- parts, [line, rest] <- :binary.split(last, "\n") do
      Process.put(key, rest)
      if before == [:skip], do: :too_long, else: {:line, join([line | before])}
    else
      _ -> more(port, key, parts, size)
    end
  end

  defp more(port, key, parts, size) do
    receive do
      {^port, {:data, bytes}} ->
        size = size + byte_size(bytes)
        long? = size > Protocol.max_bytes() or match?([_, :skip], parts)
        port_line(port, key, if(long?, do: [bytes, :skip], else: [bytes | parts]), size)

      {^port, :eof} ->
        Process.put(key, "")
        send(self(), {port, :eof})
        # A last line without a line break is not whole.
        :eof

      :stop_signal ->
        :eof
    end
  end

  defp join(parts), do: parts |> Enum.reverse() |> IO.iodata_to_binary()

  @doc "Returns a function that reads the next line of a device."
  @spec device_lines(IO.device()) ::
          (() -> {:line, binary()} | :too_long | :eof | {:error, term()})
  def device_lines(device) do
    reader = spawn_link(fn -> read_device(device) end)

    fn ->
      send(reader, {:read, self()})

      receive do
        {^reader, line} when is_binary(line) ->
          if byte_size(line) > Protocol.max_bytes() + 1, do: :too_long, else: {:line, line}

        {^reader, ended} ->
          ended

        :stop_signal ->
          :eof
      end
    end
  end

  defp read_device(device) do
    receive do: ({:read, pid} -> send(pid, {self(), IO.binread(device, :line)}))
    read_device(device)
  end
end
