defmodule Skillbook.Test.HTTPServer do
  @moduledoc false
  # A server that plays a script: for each connection, in order, its steps after it has read a
  # request. The test process gets `{:request, %{line: text, headers: map, body: binary}}` for
  # each request.
  #
  # The steps of a connection:
  #
  #   * `{:head, status, headers}` - the status and headers; without a length the body is chunked,
  #     and without a later `:read` a header announces the end of the connection
  #   * `{:chunk, data}` - a chunk; `:end` - the last one
  #   * `{:raw, bytes}` - these bytes
  #   * `{:endless, bytes}` - these bytes, again and again, until the client hangs up; the test
  #     gets `{:sent, bytes}` and `:hung_up`
  #   * `:silent` - nothing more, until the client hangs up; the test gets `:hung_up`
  #   * `:read` - reads another request
  #   * `{:tls, options}` - a handshake; `{:http2, serve}` - see `Skillbook.Test.HTTP2`
  #   * `{:tell, message}` - sends a message to the test; `{:await, message}` - waits for one
  #
  # After the last step the connection is closed. `{:each, count, steps}` in place of a script
  # plays the steps on `count` connections at the same time; a message of the test goes to all of
  # them.
  #
  # Options: `:tls` takes options of `:ssl.listen/2`. `:check` is a function of a request that
  # returns the message for the test, or an answer's steps instead of the script's. `:first` is
  # `:nothing` if no request is read before the steps.

  alias Skillbook.Support.JSON
  alias Skillbook.Test.HTTP2

  @doc """
  The fields of a request that posts a JSON object to a path, or a text about the part that is
  wrong.
  """
  def fields(%{line: line, headers: headers, body: body, length: length}, path) do
    with :ok <- must(line == "POST #{path} HTTP/1.1", "request line #{line}"),
         :ok <- must(Map.has_key?(headers, "host"), "no host"),
         :ok <- must(headers["content-type"] == "application/json", "content type"),
         :ok <- must(byte_size(body) == length, "content length"),
         {:ok, %{} = fields} <- JSON.decode(body) do
      {:ok, fields}
    else
      {:error, reason} when is_binary(reason) -> {:error, reason}
      other -> {:error, "body: #{inspect(other)}"}
    end
  end

  @doc "An error with this reason unless something is true."
  def must(true, _reason), do: :ok
  def must(false, reason), do: {:error, reason}

  @doc "The URL of llama.cpp's server, for tests that need a real one."
  def llama do
    System.get_env("SKILLBOOK_LLAMA") ||
      raise "SKILLBOOK_LLAMA is not set. To start a server and set it: " <>
              "bin/llama-for-tests run mix test"
  end

  @doc "Starts a server under the test's supervisor: `{pid, url}`."
  def start(script, options \\ []) do
    socket = listen(options[:tls])
    {:ok, port} = port(socket)
    check = options[:check] || (&{:ok, {:request, Map.take(&1, [:line, :headers, :body])}})
    play = %{test: self(), check: check, first: Keyword.get(options, :first, :read)}

    {:ok, pid} =
      ExUnit.Callbacks.start_supervised(
        %{
          id: {__MODULE__, port},
          start: {Task, :start_link, [fn -> play(accepting(socket), script, play) end]},
          restart: :temporary
        },
        restart: :temporary
      )

    hand_over(socket, pid)
    send(pid, :go)
    scheme = if options[:tls], do: "https", else: "http"
    {pid, "#{scheme}://localhost:#{port}"}
  end

  @doc "The steps of an answer with a length."
  def answer(body, headers \\ []),
    do: [{:head, 200, [{"content-length", to_string(byte_size(body))} | headers]}, {:raw, body}]

  # Sockets

  @listen [:binary, active: false, reuseaddr: true, backlog: 1024, ip: {127, 0, 0, 1}]

  defp listen(nil) do
    {:ok, socket} = :gen_tcp.listen(0, @listen)
    {:gen_tcp, socket}
  end

  defp listen(tls) do
    {:ok, socket} = :ssl.listen(0, @listen ++ [log_level: :none] ++ tls)
    {:ssl, socket}
  end

  defp port({:gen_tcp, socket}), do: :inet.port(socket)
  defp port({:ssl, socket}), do: with({:ok, {_, port}} <- :ssl.sockname(socket), do: {:ok, port})

  defp hand_over({:gen_tcp, socket}, pid), do: :gen_tcp.controlling_process(socket, pid)
  defp hand_over({:ssl, _socket}, _pid), do: :ok

  defp accepting(socket) do
    receive do
      :go -> socket
    end
  end

  defp accept({:gen_tcp, socket}) do
    {:ok, socket} = :gen_tcp.accept(socket)
    {:ok, {:gen_tcp, socket}}
  end

  defp accept({:ssl, socket}) do
    {:ok, socket} = :ssl.transport_accept(socket)
    with {:ok, socket} <- :ssl.handshake(socket), do: {:ok, {:ssl, socket}}
  end

  # Playing

  # The connections after the script are refused, so that one request too many is seen.
  defp play({module, listener}, [], %{test: test}) do
    module.close(listener)
    send(test, :played)
  end

  defp play(listener, [steps | script], play) do
    connection(listener, &serve(&1, steps, play))
    play(listener, script, play)
  end

  defp play(listener, {:each, count, steps}, play) do
    for _ <- 1..count do
      connection(listener, fn {module, socket} = connection ->
        {:ok, pid} = Task.start_link(fn -> connection |> accepting() |> serve(steps, play) end)
        module.controlling_process(socket, pid)
        send(pid, :go)
        pid
      end)
    end
    |> all()
  end

  defp all(pids) do
    receive do
      message -> Enum.each(pids, &send(&1, message))
    end

    all(pids)
  end

  defp connection(listener, serve) do
    # The client may hang up during the handshake.
    with {:ok, connection} <- accept(listener), do: serve.(connection)
  end

  defp serve(connection, steps, %{first: :nothing} = play), do: run(connection, steps, play)

  defp serve(connection, steps, play) do
    case take(connection, play) do
      nil -> close(connection)
      :ok -> run(connection, steps, play)
      {:instead, steps} -> run(connection, steps, play)
    end
  end

  # A client that is not told would keep the connection.
  defp run(connection, steps, play) do
    play = Map.put(play, :closes, if(:read in steps, do: [], else: [{"connection", "close"}]))
    steps |> Enum.reduce(connection, &step(&1, &2, play)) |> close()
  end

  defp close({module, socket}), do: module.close(socket)

  defp take(connection, play) do
    with %{} = request <- read(connection, ""),
         {:ok, message} <- play.check.(request) do
      send(play.test, message)
      :ok
    end
  end

  defp step({:head, status, headers}, connection, play) do
    sized = List.keymember?(headers, "content-length", 0)
    headers = if sized, do: headers, else: [{"transfer-encoding", "chunked"} | headers]
    lines = for {name, value} <- headers ++ play.closes, do: [name, ": ", value, "\r\n"]
    put(connection, ["HTTP/1.1 ", to_string(status), " X\r\n", lines, "\r\n"])
  end

  defp step({:chunk, data}, connection, _play),
    do: put(connection, [Integer.to_string(byte_size(data), 16), "\r\n", data, "\r\n"])

  defp step(:end, connection, _play), do: put(connection, "0\r\n\r\n")
  defp step({:raw, bytes}, connection, _play), do: put(connection, bytes)

  defp step({:endless, bytes}, connection, play) do
    told(connection, play, {:sent, endless(connection, bytes, 0)})
    told(connection, play, :hung_up)
  end

  defp step({:tell, message}, connection, play), do: told(connection, play, message)

  defp step({:await, message}, connection, _play) do
    receive do
      ^message -> connection
    end
  end

  defp step(:silent, {module, socket} = connection, play) do
    {:error, _} = module.recv(socket, 0)
    told(connection, play, :hung_up)
  end

  defp step(:read, connection, play) do
    :ok = take(connection, play)
    connection
  end

  defp step({:tls, options}, {:gen_tcp, socket}, _play) do
    {:ok, socket} = :ssl.handshake(socket, [log_level: :none] ++ options)
    {:ssl, socket}
  end

  defp step({:http2, serve}, connection, play) do
    HTTP2.serve(connection, serve, play.test)
    connection
  end

  defp endless({module, socket} = connection, bytes, sent) do
    case module.send(socket, bytes) do
      :ok -> endless(connection, bytes, sent + IO.iodata_length(bytes))
      {:error, _} -> sent
    end
  end

  defp told(connection, play, message) do
    send(play.test, message)
    connection
  end

  defp put({module, socket} = connection, bytes) do
    _ = module.send(socket, bytes)
    connection
  end

  # Requests

  defp read({module, socket} = connection, buffer) do
    with [head, body] <- :binary.split(buffer, "\r\n\r\n"),
         {line, headers} <- head(head),
         length = headers |> Map.get("content-length", "0") |> String.to_integer(),
         true <- byte_size(body) >= length do
      %{line: line, headers: headers, body: body, length: length}
    else
      _ ->
        case module.recv(socket, 0) do
          {:ok, data} -> read(connection, buffer <> data)
          {:error, _} -> nil
        end
    end
  end

  defp head(head) do
    [line | lines] = String.split(head, "\r\n")

    headers =
      Map.new(lines, fn line ->
        [name, value] = String.split(line, ": ", parts: 2)
        {String.downcase(name), value}
      end)

    {line, headers}
  end
end
