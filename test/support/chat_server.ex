defmodule Skillbook.Test.ChatServer do
  @moduledoc false
  # A server of the published chat interface (POST /v1/chat/completions) that plays a script: for each connection, in
  # order, what it does once it has read a request. A request that is not as published gets a 400 that says why, and no
  # part of the script. The test process gets `{:chat, %{headers: map, body: map}}` for each request that is.
  #
  # The steps of a connection:
  #
  #   * `{:head, status, headers}` - the status and headers; without a length the body is chunked
  #   * `{:chunk, data}` - a chunk; `:end` - the last one
  #   * `{:raw, bytes}` - these bytes
  #   * `:silent` - nothing more, until the client hangs up; the test gets `:hung_up`
  #   * `{:tell, message}`, `{:await, message}` - says something to the test; goes on when the test says so
  #
  # After the last step the connection is closed.

  @fields %{
    "model" => :text,
    "messages" => :messages,
    "stream" => true,
    "stream_options" => :stream_options,
    "stop" => :stop,
    "temperature" => :temperature,
    "max_tokens" => :positive,
    "grammar" => :text,
    "top_p" => :temperature
  }

  @doc "Starts a server under the test's supervisor: `{pid, url}`. The option `:tls` takes options of `:ssl.listen/2`."
  def start(script, options \\ []) do
    test = self()
    socket = listen(options[:tls])
    {:ok, port} = port(socket)

    {:ok, pid} =
      ExUnit.Callbacks.start_supervised(
        %{
          id: {__MODULE__, port},
          start: {Task, :start_link, [fn -> play(accepting(socket), script, test) end]},
          restart: :temporary
        },
        restart: :temporary
      )

    hand_over(socket, pid)
    send(pid, :go)
    scheme = if options[:tls], do: "https", else: "http"
    {pid, "#{scheme}://localhost:#{port}"}
  end

  @doc "The steps of a whole answer in these pieces."
  def answer(texts, options \\ []) do
    events = for text <- List.wrap(texts), do: delta(text)
    reason = Keyword.get(options, :finish_reason, "stop")
    usage = if counts = options[:usage], do: [usage(counts)], else: []
    stream(events ++ [finish(reason)] ++ usage ++ ["[DONE]"])
  end

  @doc "The steps of a stream of these events' data."
  def stream(data), do: [head() | Enum.map(data, &{:chunk, "data: #{&1}\n\n"})] ++ [:end]

  def head, do: {:head, 200, [{"content-type", "text/event-stream; charset=utf-8"}]}
  def delta(text), do: json(%{choices: [%{index: 0, delta: %{content: text}, finish_reason: nil}]})
  def finish(reason), do: json(%{choices: [%{index: 0, delta: %{}, finish_reason: reason}]})

  def usage({prompt, completion}) do
    json(%{
      choices: [],
      usage: %{prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion}
    })
  end

  @doc "The steps of an error answer."
  def refusal(status, message, headers \\ []) do
    body = json(%{error: %{message: message, type: "error"}})

    headers = [
      {"content-type", "application/json"},
      {"content-length", to_string(byte_size(body))} | headers
    ]

    [{:head, status, headers}, {:raw, body}]
  end

  def json(value), do: value |> Skillbook.JSON.encode()

  # Sockets

  defp listen(nil) do
    {:ok, socket} = :gen_tcp.listen(0, [:binary, active: false, reuseaddr: true, ip: {127, 0, 0, 1}])
    {:gen_tcp, socket}
  end

  defp listen(tls) do
    {:ok, socket} = :ssl.listen(0, [:binary, active: false, reuseaddr: true, log_level: :none] ++ tls)
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
  defp play({module, listener}, [], test) do
    module.close(listener)
    send(test, :played)
  end

  defp play(listener, [steps | script], test) do
    case accept(listener) do
      {:ok, {module, socket} = connection} ->
        request = read(connection, "")

        case request && check(request) do
          nil -> :ok
          {:error, reason} -> Enum.each(refusal(400, reason), &step(&1, connection, test))
          {:ok, seen} -> serve(seen, steps, connection, test)
        end

        module.close(socket)

      # The client hung up during the handshake.
      {:error, _} ->
        :ok
    end

    play(listener, script, test)
  end

  defp serve(seen, steps, connection, test) do
    send(test, {:chat, seen})
    Enum.each(steps, &step(&1, connection, test))
  end

  defp step({:head, status, headers}, connection, _test) do
    sized = List.keymember?(headers, "content-length", 0)
    headers = if sized, do: headers, else: [{"transfer-encoding", "chunked"} | headers]
    lines = for {name, value} <- headers, do: [name, ": ", value, "\r\n"]
    put(connection, ["HTTP/1.1 ", to_string(status), " X\r\n", lines, "\r\n"])
  end

  defp step({:chunk, data}, connection, _test),
    do: put(connection, [Integer.to_string(byte_size(data), 16), "\r\n", data, "\r\n"])

  defp step(:end, connection, _test), do: put(connection, "0\r\n\r\n")
  defp step({:raw, bytes}, connection, _test), do: put(connection, bytes)
  defp step({:tell, message}, _connection, test), do: send(test, message)

  defp step({:await, message}, _connection, _test) do
    receive do
      ^message -> :ok
    end
  end

  defp step(:silent, {module, socket}, test) do
    {:error, _} = module.recv(socket, 0)
    send(test, :hung_up)
  end

  defp put({module, socket}, bytes), do: module.send(socket, bytes)

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

  defp check(%{line: line, headers: headers, body: body, length: length}) do
    with :ok <- must(line == "POST /v1/chat/completions HTTP/1.1", "request line #{line}"),
         :ok <- must(Map.has_key?(headers, "host"), "no host"),
         :ok <- must(headers["content-type"] == "application/json", "content type"),
         :ok <- must(byte_size(body) == length, "content length"),
         {:ok, %{} = fields} <- Skillbook.JSON.decode(body),
         :ok <- must(Map.has_key?(fields, "model") and Map.has_key?(fields, "messages"), "missing fields"),
         :ok <- each(fields, &field/1) do
      {:ok, %{headers: headers, body: fields}}
    else
      {:error, reason} when is_binary(reason) -> {:error, reason}
      other -> {:error, "body: #{inspect(other)}"}
    end
  end

  defp field({name, value}) do
    case Map.fetch(@fields, name) do
      {:ok, type} -> must(valid?(type, value), "#{name}: #{inspect(value)}")
      :error -> {:error, "unknown field #{name}"}
    end
  end

  defp valid?(:text, value), do: is_binary(value)
  defp valid?(true, value), do: value == true
  defp valid?(:stream_options, value), do: match?(%{"include_usage" => true}, value) and map_size(value) == 1
  defp valid?(:stop, value), do: is_list(value) and length(value) in 1..4 and Enum.all?(value, &is_binary/1)
  defp valid?(:temperature, value), do: is_number(value) and value >= 0 and value <= 2
  defp valid?(:positive, value), do: is_integer(value) and value > 0

  # As the strictest servers want it: the system first and once, then user and assistant in turns, the user last.
  defp valid?(:messages, messages) do
    is_list(messages) and Enum.all?(messages, &message?/1) and
      messages |> Enum.map_join(&String.first(&1["role"])) |> String.match?(~r/\As?(ua)*u\z/)
  end

  defp message?(%{"role" => role, "content" => content} = message),
    do: map_size(message) == 2 and role in ["system", "user", "assistant"] and is_binary(content)

  defp message?(_message), do: false

  defp each(fields, fun) do
    Enum.find_value(fields, :ok, fn field -> with :ok <- fun.(field), do: nil end)
  end

  defp must(true, _reason), do: :ok
  defp must(false, reason), do: {:error, reason}
end
