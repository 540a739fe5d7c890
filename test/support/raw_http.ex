defmodule Skillbook.Test.RawHTTP do
  @moduledoc false
  # A client that sends the bytes it is given, and reads responses of HTTP/1.1 without a library
  # that would mend them. `connect` takes the URL of a server.

  @time 5_000

  def connect(url, options \\ [])

  def connect("unix:" <> path, options),
    do: open({:local, path}, 0, options)

  def connect(url, options) do
    %URI{port: port, host: host} = URI.parse(url)
    host = host |> String.trim_leading("[") |> String.trim_trailing("]") |> String.to_charlist()
    open(host, port, options)
  end

  defp open(host, port, options) do
    inet6 = if is_list(host) and ?: in host, do: [:inet6], else: []

    {:ok, socket} =
      :gen_tcp.connect(host, port, inet6 ++ [:binary, active: false] ++ options, @time)

    socket
  end

  def put(socket, bytes), do: :gen_tcp.send(socket, bytes)
  def close(socket), do: :gen_tcp.close(socket)

  @doc "Sends a request on a connection of its own, and reads all until the server closes it."
  def all(url, bytes, time \\ @time) do
    socket = connect(url)
    _ = put(socket, bytes)
    received = rest(socket, "", time)
    close(socket)
    received
  end

  @doc "All bytes until the connection is closed; `{:open, bytes}` if it is not."
  def rest(socket, got \\ "", time \\ @time) do
    case :gen_tcp.recv(socket, 0, time) do
      {:ok, bytes} -> rest(socket, got <> bytes, time)
      {:error, :closed} -> got
      {:error, :econnreset} -> got
      {:error, :timeout} -> {:open, got}
    end
  end

  @doc "The next response: `{status, headers, body}`, or `:closed`."
  def response(socket, options \\ []) do
    time = options[:time] || @time

    case head(socket, "", time) do
      {:ok, head, rest} ->
        [line | lines] = String.split(head, "\r\n")
        "HTTP/1.1 " <> <<status::binary-size(3), _rest::binary>> = line

        headers =
          Map.new(lines, fn line ->
            [name, value] = String.split(line, ": ", parts: 2)
            {name, value}
          end)

        {body, rest} = body(socket, headers, rest, options[:method], time)
        # The bytes of the next response.
        Process.put({__MODULE__, socket}, rest)
        {String.to_integer(status), headers, body}

      :closed ->
        :closed
    end
  end

  defp head(socket, "", time) do
    case Process.delete({__MODULE__, socket}) do
      empty when empty in [nil, ""] -> more_head(socket, "", time)
      kept -> head_of(socket, kept, time)
    end
  end

  defp head_of(socket, got, time) do
    case String.split(got, "\r\n\r\n", parts: 2) do
      [head, rest] -> {:ok, head, rest}
      [_part] -> more_head(socket, got, time)
    end
  end

  defp more_head(socket, got, time) do
    case :gen_tcp.recv(socket, 0, time) do
      {:ok, bytes} -> head_of(socket, got <> bytes, time)
      {:error, reason} when reason in [:closed, :econnreset] -> :closed
    end
  end

  defp body(_socket, _headers, rest, "HEAD", _time), do: {"", rest}

  defp body(socket, %{"content-length" => length}, rest, _method, time) do
    length = String.to_integer(length)
    socket |> read(rest, length, time) |> :erlang.split_binary(length)
  end

  defp body(socket, %{"transfer-encoding" => "chunked"}, rest, _method, time),
    do: chunks(socket, rest, "", time)

  defp body(_socket, _headers, rest, _method, _time), do: {"", rest}

  @doc "The next chunk of a body: its bytes, or `:closed`."
  def chunk(socket, time \\ @time) do
    got = Process.delete({__MODULE__, socket}) || ""

    with [size, rest] <- line(socket, got, time) do
      size = String.to_integer(size, 16)
      got = read(socket, rest, size + 2, time)
      {data, "\r\n" <> rest} = :erlang.split_binary(got, size)
      Process.put({__MODULE__, socket}, rest)
      data
    end
  end

  @doc "The head of a response, before its body."
  def begun(socket, time \\ @time) do
    {:ok, head, rest} = head(socket, "", time)
    Process.put({__MODULE__, socket}, rest)
    head
  end

  defp chunks(socket, rest, body, time) do
    Process.put({__MODULE__, socket}, rest)

    case chunk(socket, time) do
      "" -> {body, Process.delete({__MODULE__, socket})}
      data -> chunks(socket, Process.delete({__MODULE__, socket}), body <> data, time)
    end
  end

  defp line(socket, got, time) do
    case String.split(got, "\r\n", parts: 2) do
      [_, _] = found ->
        found

      [_part] ->
        case :gen_tcp.recv(socket, 0, time) do
          {:ok, bytes} -> line(socket, got <> bytes, time)
          {:error, _closed} -> :closed
        end
    end
  end

  defp read(_socket, got, length, _time) when byte_size(got) >= length, do: got

  defp read(socket, got, length, time) do
    {:ok, bytes} = :gen_tcp.recv(socket, 0, time)
    read(socket, got <> bytes, length, time)
  end
end
