defmodule Skillbook.MCP.Call do
  @moduledoc false
  # Answers one request for a transport. The command runs in a worker, and the process of the
  # request, which may write to the client, waits for it: it passes on the worker's messages, and
  # ends the worker if the client has gone or has cancelled the request.
  #
  # Messages to the process of a request: `{:mcp_cancelled, id}` (`Skillbook.MCP.Session`), and
  # those of `Skillbook.subscribe/1` for a stream.

  alias Skillbook.Catalog.ChangedFiles
  alias Skillbook.MCP.{Context, Error, Protocol, Server, Session, Sessions, Subscriptions}
  alias Skillbook.Run.Worker
  alias Skillbook.Support.Hidden
  alias Skillbook.{Change, View}

  @typedoc """
  Sends a message to the client, or with `:beat` bytes that keep a quiet connection open. An
  exit or a throw of it ends the request.
  """
  @type write :: (map() | :beat -> any())

  # Milliseconds without a message after which `:beat` is written.
  @beat 15_000
  # Milliseconds between two messages of progress.
  @progress 50
  # Milliseconds after which a stream ends, so that its client authenticates again.
  @max_stream 3_600_000
  # Streams of a profile on a node.
  @max_streams 256

  @doc "Answers a request that has an id, and returns when the answer is written."
  @spec run(Protocol.message(), Context.t(), write()) :: :ok
  def run({:request, id, "subscriptions/listen", _params} = message, context, write) do
    case Server.handle(message, context) do
      {:listen, ^id, filter} -> listen(id, filter, context, write)
      {:reply, answer} -> written(write, answer)
    end
  end

  def run({:request, id, _method, _params} = message, context, write) do
    owner = self()
    fun = fn -> Server.handle(message, with_client(message, context, owner)) end
    worker = Worker.start(context.view.book, [], fun)
    Worker.begin(worker)
    await(worker, id, write, {-1, now() - @progress})
  end

  defp written(write, message) do
    write.(message)
    :ok
  end

  # The worker's side

  defp with_client({:request, _id, _method, params}, context, owner) do
    emit = &emit(owner, &1)
    ask = if asks?(context), do: &ask(context.session, emit, &1, &2, &3)
    %{context | ask_client: ask, progress: progress(params, emit)}
  end

  defp asks?(context), do: context.session != nil and not Context.stateless?(context)

  # Waits until the client has taken it, so that no handler is faster than its client.
  defp emit(owner, message) do
    ref = Process.monitor(owner)
    send(owner, {__MODULE__, :emit, ref, self(), message})

    receive do
      {^ref, :ok} -> Process.demonitor(ref, [:flush])
      {:DOWN, ^ref, :process, _pid, _reason} -> :ok
    end

    :ok
  end

  defp ask(session, emit, method, params, timeout) do
    with {:ok, id} <- Session.expect(session) do
      emit.(Protocol.request(id, method, params))

      receive do
        {:mcp_answer, ^id, answer} -> answer
      after
        timeout -> {:error, :timeout}
      end
    end
  end

  defp progress(%{"_meta" => %{"progressToken" => token}}, emit)
       when is_binary(token) or is_integer(token) do
    fn progress, total, message ->
      params = %{"progressToken" => token, "progress" => progress}
      params = if is_number(total), do: Map.put(params, "total", total), else: params
      params = if is_binary(message), do: Map.put(params, "message", shown(message)), else: params
      emit.(Protocol.notification("notifications/progress", params))
    end
  end

  defp progress(_params, _emit), do: nil

  defp shown(text), do: text |> String.slice(0, 200) |> Hidden.visible()

  # The side of the process that writes. `progress` is the last that was written, and when.

  defp await(%{ref: ref} = worker, id, write, progress) do
    receive do
      {__MODULE__, :emit, tag, pid, message} ->
        progress = emitted(message, write, progress)
        send(pid, {tag, :ok})
        await(worker, id, write, progress)

      {^ref, {:reply, answer}} ->
        Process.demonitor(ref, [:flush])
        written(write, answer)

      {:DOWN, ^ref, :process, _pid, _reason} ->
        error = Error.internal("the server stopped before the request had its answer")
        written(write, Protocol.error(id, error))

      {:mcp_cancelled, ^id} ->
        Worker.stop(worker)
        :ok
    after
      @beat ->
        write.(:beat)
        await(worker, id, write, progress)
    end
  end

  # Progress only goes up, and not more often than a person can read.
  defp emitted(
         %{"params" => %{"progressToken" => _, "progress" => done} = params} = message,
         write,
         {last, at}
       ) do
    ends? = params["total"] == done

    if done > last and (ends? or now() - at >= @progress) do
      write.(message)
      {done, now()}
    else
      {last, at}
    end
  end

  defp emitted(message, write, progress) do
    write.(message)
    progress
  end

  @doc "Writes the changes for a session until its client has gone."
  @spec follow(Context.t(), write()) :: :ok
  def follow(%Context{session: session} = context, write) do
    filter = fn -> Subscriptions.all(Session.uris(session)) end
    stream(nil, filter, context, write)
  end

  defp listen(id, filter, context, write) do
    group = {:streams, context.view.book, context.profile.id}

    case Sessions.join(group, @max_streams) do
      :ok ->
        try do
          Skillbook.subscribe(context.view.book)
          write.(Subscriptions.opened(id, filter))
          stream(id, fn -> filter end, context, write)
        after
          Sessions.leave(group)
        end

      :full ->
        text = "expected at most #{@max_streams} streams of a caller"
        written(write, Protocol.error(id, Error.limit(text)))
    end
  end

  # The view is made after the subscription, so that no change falls between them.
  defp stream(id, filter, context, write) do
    book = context.view.book
    Skillbook.subscribe(book)
    monitor = Process.monitor(book)
    context = %{context | view: View.of(book, context.profile)}
    ends = now() + @max_stream
    follow(%{id: id, filter: filter, book: book, monitor: monitor, ends: ends}, context, write)
  after
    # An adapter may use its process for the next request too.
    Skillbook.unsubscribe(context.view.book)
  end

  defp follow(%{book: book, monitor: monitor, id: id} = stream, context, write) do
    left = stream.ends - now()

    receive do
      {:skillbook, ^book, %Change{} = change} ->
        change = merge(change, book)
        {messages, context} = Subscriptions.changed(change, context, stream.filter.(), id)
        Enum.each(messages, write)
        follow(stream, context, write)

      {:skillbook_files, ^book, files} ->
        messages =
          files |> merge_files(book) |> Subscriptions.files(context, stream.filter.(), id)

        Enum.each(messages, write)
        follow(stream, context, write)

      {:DOWN, ^monitor, :process, _pid, _reason} ->
        close(id, write)

      {:mcp_cancelled, ^id} ->
        :ok

      # Other messages of the book, such as those of approvals.
      _other ->
        follow(stream, context, write)
    after
      min(max(left, 0), @beat) ->
        if left <= 0 do
          close(id, write)
        else
          write.(:beat)
          follow(stream, context, write)
        end
    end
  end

  defp close(nil, _write), do: :ok
  defp close(id, write), do: written(write, Subscriptions.closed(id))

  # Changes that came while a client was slow are one.
  defp merge(change, book) do
    receive do
      {:skillbook, ^book, %Change{} = next} ->
        merge(
          %{
            next
            | added: Enum.uniq(change.added ++ next.added),
              changed: Enum.uniq(change.changed ++ next.changed),
              removed: Enum.uniq(change.removed ++ next.removed)
          },
          book
        )
    after
      0 -> change
    end
  end

  defp merge_files(files, book) do
    receive do
      {:skillbook_files, ^book, more} -> files |> ChangedFiles.merge(more) |> merge_files(book)
    after
      0 -> files
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
