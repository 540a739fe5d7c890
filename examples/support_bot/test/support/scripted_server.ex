defmodule SupportBot.ScriptedServer do
  @moduledoc false
  # A server of the OpenAI interface on the loopback. It answers each request with the next item
  # of a script, and sends the request to the test as `{:request, json}`.
  #
  # An item is a text, or a list of tool calls `{name, arguments}`.

  def start(script) do
    test = self()
    {:ok, socket} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(socket)

    ExUnit.Callbacks.start_supervised!(
      {Task, fn -> Enum.each(script, &serve(socket, &1, test)) end}
    )

    "http://127.0.0.1:#{port}/v1"
  end

  defp serve(socket, item, test) do
    {:ok, connection} = :gen_tcp.accept(socket)
    send(test, {:request, read(connection, "")})

    events =
      events(item) ++ [~s({"choices":[{"delta":{},"finish_reason":"#{reason(item)}"}]}), "[DONE]"]

    :gen_tcp.send(connection, [
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
      Enum.map(events, &"data: #{&1}\n\n")
    ])

    :gen_tcp.close(connection)
  end

  defp read(connection, data) do
    with [head, body] <- String.split(data, "\r\n\r\n", parts: 2),
         [_, length] = Regex.run(~r/content-length: (\d+)/i, head),
         true <- byte_size(body) >= String.to_integer(length) do
      body
    else
      _ ->
        {:ok, more} = :gen_tcp.recv(connection, 0, 5_000)
        read(connection, data <> more)
    end
  end

  defp reason(text) when is_binary(text), do: "stop"
  defp reason(_calls), do: "tool_calls"

  defp events(text) when is_binary(text), do: [~s({"choices":[{"delta":{"content":"#{text}"}}]})]

  defp events(calls) do
    for {{name, arguments}, index} <- Enum.with_index(calls) do
      call =
        ~s({"index":#{index},"id":"call_#{index}","type":"function",) <>
          ~s("function":{"name":"#{name}","arguments":#{inspect(arguments)}}})

      ~s({"choices":[{"delta":{"tool_calls":[#{call}]}}]})
    end
  end
end
