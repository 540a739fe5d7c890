defmodule Skillbook.Model.HTTP do
  @moduledoc false
  # One POST over a connection of its own, whose answer is handed out as it arrives. Everything happens in the calling
  # process, which reads when it is ready for more: that is the back-pressure, it leaves no messages in a mailbox, and
  # the connection ends with the process.
  #
  # OTP's :httpc is not used for this: it holds the first piece of a streamed body back until the second arrives (and
  # loses it if the connection breaks before), goes on after the process that asked has died, and sets no limit to what
  # it keeps of other answers than 200.
  #
  # It does not do: redirects, proxies, compression, connections that are kept.

  @type url :: %URI{}
  @type options :: [
          connect_timeout: timeout(),
          idle_timeout: timeout(),
          deadline: integer(),
          cacertfile: Path.t() | nil
        ]
  @type part :: {:head, status :: pos_integer(), headers :: %{String.t() => String.t()}} | {:data, binary()}
  @type reason ::
          {:connect, String.t()}
          | {:certificate, String.t()}
          | :connect_timeout
          | :idle_timeout
          | :deadline
          | :closed
          | {:malformed, String.t()}

  @head_limit 64 * 1024
  @line_limit 4 * 1024

  @doc """
  Sends the body and calls the function with each part of the answer: `{:cont, acc}` goes on, `{:halt, acc}` hangs up.

  `headers` is a function, so that no argument holds a secret that a crash could show. The deadline is a monotonic time
  in milliseconds.
  """
  @spec post(url(), (() -> [{String.t(), String.t()}]), iodata(), options(), acc, fun) ::
          {:ok, acc} | {:halted, acc} | {:error, reason(), acc}
        when acc: term(), fun: (part(), acc -> {:cont, acc} | {:halt, acc})
  def post(url, headers, body, options, acc, fun) do
    case connect(url, options) do
      {:ok, socket} ->
        connection = %{
          socket: socket,
          buffer: "",
          idle: options[:idle_timeout],
          deadline: options[:deadline],
          acc: acc,
          fun: fun
        }

        try do
          # A server may answer, and hang up, before it has read everything.
          _ = send_request(socket, url, headers, body)
          head(connection)
        catch
          {:done, outcome} -> outcome
        after
          close(socket)
        end

      {:error, reason} ->
        {:error, reason, acc}
    end
  end

  # Connecting

  defp connect(url, options) do
    host = String.to_charlist(url.host)
    connect_timeout = options[:connect_timeout]
    wait = min(connect_timeout, left(options[:deadline]))

    with {:ok, socket} <- connect_tcp(host, url.port, wait, options[:idle_timeout]),
         {:ok, socket} <- secure(url.scheme, socket, host, wait, options[:cacertfile]) do
      {:ok, socket}
    else
      {:error, :connect_timeout} when wait < connect_timeout -> {:error, :deadline}
      {:error, reason} -> {:error, reason}
    end
  end

  defp connect_tcp(host, port, wait, idle) do
    options = [:binary, active: false, nodelay: true, send_timeout: idle, send_timeout_close: true]

    [family | more] = if ?: in host, do: [:inet6], else: [:inet, :inet6]

    with {:error, reason} when reason != :timeout <- :gen_tcp.connect(host, port, [family | options], wait),
         :error <- Enum.find_value(more, :error, &another(:gen_tcp.connect(host, port, [&1 | options], wait))) do
      {:error, {:connect, reason |> :inet.format_error() |> to_string()}}
    else
      {:ok, socket} -> {:ok, {:gen_tcp, socket}}
      {:error, :timeout} -> {:error, :connect_timeout}
    end
  end

  defp another({:ok, _} = connected), do: connected
  defp another({:error, _}), do: nil

  defp secure("http", socket, _host, _wait, _cacertfile), do: {:ok, socket}

  defp secure("https", {:gen_tcp, socket}, host, wait, cacertfile) do
    with {:ok, trusted} <- trusted(cacertfile) do
      options = [
        verify: :verify_peer,
        server_name_indication: host,
        customize_hostname_check: [match_fun: :public_key.pkix_verify_hostname_match_fun(:https)],
        # What goes wrong is returned.
        log_level: :none
      ]

      case :ssl.connect(socket, trusted ++ options, wait) do
        {:ok, socket} ->
          {:ok, {:ssl, socket}}

        {:error, reason} ->
          :gen_tcp.close(socket)
          {:error, tls_error(reason)}
      end
    end
  end

  defp trusted(nil) do
    {:ok, [cacerts: :public_key.cacerts_get()]}
  rescue
    _none -> {:error, {:certificate, "the system has no certificates to check the server's with"}}
  end

  defp trusted(path) do
    if File.regular?(path),
      do: {:ok, [cacertfile: path]},
      else: {:error, {:certificate, "there is no file #{path}"}}
  end

  defp tls_error(:timeout), do: :connect_timeout
  defp tls_error({:tls_alert, {alert, _text}}), do: {:certificate, "TLS: #{alert}"}
  defp tls_error(reason), do: {:connect, "TLS: #{inspect(reason, limit: 5, printable_limit: 200)}"}

  # Sending

  defp send_request({module, socket}, url, headers, body) do
    head = [
      ["POST ", path(url), " HTTP/1.1\r\n"],
      ["host: ", host(url), "\r\n"],
      ["content-length: ", body |> IO.iodata_length() |> to_string(), "\r\n"],
      "connection: close\r\n",
      for({name, value} <- headers.(), do: [name, ": ", value, "\r\n"]),
      "\r\n"
    ]

    module.send(socket, [head, body])
  end

  defp path(url), do: [url.path || "/", if(url.query, do: ["?", url.query], else: [])]

  defp host(%{host: host, port: port, scheme: scheme}) do
    host = if String.contains?(host, ":"), do: ["[", host, "]"], else: host
    if port == URI.default_port(scheme), do: host, else: [host, ":", to_string(port)]
  end

  # Receiving

  defp head(connection) do
    {status, connection} = status(connection)
    {headers, connection} = headers(connection, %{}, @head_limit)

    # Interim answers come before the one that counts.
    if status in 100..199 do
      head(connection)
    else
      connection = hand_out(connection, {:head, status, headers})
      body(connection, status, headers)
    end
  end

  defp status(connection) do
    case packet(connection, :http_bin, @line_limit) do
      {{:http_response, {1, _}, status, _reason}, connection} -> {status, connection}
      {_other, connection} -> malformed(connection, "this is no HTTP/1.1")
    end
  end

  defp headers(connection, headers, limit) when limit > 0 do
    before = byte_size(connection.buffer)

    case packet(connection, :httph_bin, @head_limit) do
      {:http_eoh, connection} ->
        {headers, connection}

      {{:http_header, _, _, name, value}, connection} ->
        name = String.downcase(name)
        used = max(before - byte_size(connection.buffer), byte_size(name) + byte_size(value))
        headers = Map.update(headers, name, value, &(&1 <> ", " <> value))
        headers(connection, headers, limit - used)

      {_other, connection} ->
        malformed(connection, "its header is no HTTP/1.1")
    end
  end

  defp headers(connection, _headers, _limit), do: malformed(connection, "its header is too long")

  defp packet(connection, type, limit) do
    case :erlang.decode_packet(type, connection.buffer, []) do
      {:ok, packet, rest} ->
        {packet, %{connection | buffer: rest}}

      {:more, _} when byte_size(connection.buffer) > limit ->
        malformed(connection, "its header is too long")

      {:more, _} ->
        connection |> more!() |> packet(type, limit)

      {:error, _} ->
        malformed(connection, "this is no HTTP/1.1")
    end
  end

  defp body(connection, status, _headers) when status in [204, 304], do: done(connection, :ok)

  defp body(connection, _status, %{"transfer-encoding" => encoding}) do
    if String.downcase(encoding) == "chunked",
      do: chunks(connection),
      else: malformed(connection, "its transfer encoding is #{inspect(encoding)}")
  end

  defp body(connection, _status, %{"content-length" => length}) do
    case Integer.parse(length) do
      {length, ""} when length >= 0 -> connection |> sized(length) |> done(:ok)
      _ -> malformed(connection, "its content length is #{inspect(length)}")
    end
  end

  defp body(connection, status, headers) do
    connection = hand_out_buffer(connection)

    case more(connection) do
      {:ok, connection} -> body(connection, status, headers)
      {:error, :closed} -> done(connection, :ok)
      {:error, reason} -> failed(connection, reason)
    end
  end

  defp chunks(connection) do
    {line, connection} = line(connection)
    [size | _extensions] = String.split(line, ";", parts: 2)

    case size |> String.trim() |> Integer.parse(16) do
      {0, ""} ->
        trailers(connection, @head_limit)

      {size, ""} when size > 0 ->
        connection = sized(connection, size)

        case line(connection) do
          {"", connection} -> chunks(connection)
          {_, connection} -> malformed(connection, "a chunk is longer than it says")
        end

      _ ->
        malformed(connection, "a chunk has no size")
    end
  end

  defp trailers(connection, limit) when limit > 0 do
    case line(connection) do
      {"", connection} -> done(connection, :ok)
      {line, connection} -> trailers(connection, limit - byte_size(line))
    end
  end

  defp trailers(connection, _limit), do: malformed(connection, "what follows its chunks is too long")

  defp line(connection) do
    case :binary.split(connection.buffer, "\n") do
      [line, rest] -> {String.trim_trailing(line, "\r"), %{connection | buffer: rest}}
      [line] when byte_size(line) > @line_limit -> malformed(connection, "a line is too long")
      [_line] -> connection |> more!() |> line()
    end
  end

  # Hands out so many bytes, as they come.
  defp sized(connection, 0), do: connection

  defp sized(%{buffer: ""} = connection, size), do: connection |> more!() |> sized(size)

  defp sized(%{buffer: buffer} = connection, size) do
    case buffer do
      <<data::binary-size(size), rest::binary>> ->
        hand_out(%{connection | buffer: rest}, {:data, data})

      data ->
        hand_out(%{connection | buffer: ""}, {:data, data}) |> sized(size - byte_size(data))
    end
  end

  defp hand_out_buffer(%{buffer: ""} = connection), do: connection

  defp hand_out_buffer(%{buffer: buffer} = connection),
    do: hand_out(%{connection | buffer: ""}, {:data, buffer})

  defp hand_out(connection, part) do
    case connection.fun.(part, connection.acc) do
      {:cont, acc} -> %{connection | acc: acc}
      {:halt, acc} -> throw({:done, {:halted, acc}})
    end
  end

  defp more!(connection) do
    case more(connection) do
      {:ok, connection} -> connection
      {:error, reason} -> failed(connection, reason)
    end
  end

  defp more(%{socket: {module, socket}, idle: idle, deadline: deadline} = connection) do
    left = left(deadline)

    case module.recv(socket, 0, min(idle, left)) do
      {:ok, data} -> {:ok, %{connection | buffer: connection.buffer <> data}}
      {:error, :timeout} -> {:error, if(left <= idle, do: :deadline, else: :idle_timeout)}
      # A reset, or whatever else ends a connection.
      {:error, _} -> {:error, :closed}
    end
  end

  defp left(deadline), do: max(deadline - System.monotonic_time(:millisecond), 0)

  defp malformed(connection, text), do: failed(connection, {:malformed, text})
  defp failed(connection, reason), do: throw({:done, {:error, reason, connection.acc}})
  defp done(connection, outcome), do: throw({:done, {outcome, connection.acc}})

  defp close({module, socket}), do: module.close(socket)
end
