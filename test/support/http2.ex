defmodule Skillbook.Test.HTTP2 do
  @moduledoc false
  # As much of HTTP/2 (RFC 9113) as a server of tests needs. It does not read the headers of
  # requests, which are packed; those it sends are not. `serve` is called in a process of its own
  # for each request, with a function that sends frames of its stream. The test gets `{:stream,
  # id}` for each request, `{:reset, id}` for one that is cancelled, and `:hung_up`.

  import Bitwise

  @preface "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  @end_stream 1
  @end_headers 4

  def serve({module, socket} = connection, serve, test) do
    {:ok, @preface} = module.recv(socket, byte_size(@preface))
    put(connection, 4, 0, 0, "")
    frames(connection, serve, test)
  end

  @doc "A frame with the status 200 and these headers; `:end` if nothing follows."
  def head(headers, ends \\ nil) do
    literals =
      for {name, value} <- headers,
          do: <<0, byte_size(name), name::binary, byte_size(value), value::binary>>

    {1, @end_headers + if(ends, do: @end_stream, else: 0), [0x88 | literals]}
  end

  def data(bytes, ends \\ nil), do: {0, if(ends, do: @end_stream, else: 0), bytes}

  @doc "The stream is refused, or broken off."
  def reset(code), do: {3, 0, <<code::32>>}

  defp frames({module, socket} = connection, serve, test) do
    with {:ok, <<length::24, type, flags, _::1, id::31>>} <- module.recv(socket, 9),
         {:ok, payload} <- if(length > 0, do: module.recv(socket, length), else: {:ok, ""}) do
      frame(type, flags, id, payload, connection, serve, test)
      frames(connection, serve, test)
    else
      {:error, _} -> send(test, :hung_up)
    end
  end

  # Data and headers end a request if they say so; settings and pings are answered.
  defp frame(type, flags, id, _payload, connection, serve, test)
       when type in [0, 1] and (flags &&& 1) == 1 do
    send(test, {:stream, id})

    spawn_link(fn ->
      serve.(fn {type, flags, bytes} -> put(connection, type, flags, id, bytes) end)
    end)
  end

  defp frame(4, 0, 0, _payload, connection, _serve, _test), do: put(connection, 4, 1, 0, "")
  defp frame(6, 0, 0, payload, connection, _serve, _test), do: put(connection, 6, 1, 0, payload)
  defp frame(3, _flags, id, _payload, _connection, _serve, test), do: send(test, {:reset, id})
  defp frame(_type, _flags, _id, _payload, _connection, _serve, _test), do: :ok

  defp put({module, socket}, type, flags, id, payload),
    do: module.send(socket, [<<IO.iodata_length(payload)::24, type, flags, id::32>>, payload])
end
