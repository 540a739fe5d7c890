defmodule Skillbook.Test.HTTP2Client do
  @moduledoc false
  # Sends frames of HTTP/2 (RFC 9113), valid or not, and reads those of the server. Headers are
  # written as literals of HPACK (RFC 7541), without a table.

  import Bitwise

  alias Skillbook.Test.RawHTTP

  @preface "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  @types %{
    0 => :data,
    1 => :headers,
    2 => :priority,
    3 => :reset,
    4 => :settings,
    5 => :push,
    6 => :ping,
    7 => :goaway,
    8 => :window,
    9 => :continuation
  }
  @codes %{
    0 => :no_error,
    1 => :protocol,
    2 => :internal,
    3 => :flow_control,
    4 => :settings_timeout,
    5 => :stream_closed,
    6 => :frame_size,
    7 => :refused,
    8 => :cancel,
    9 => :compression,
    11 => :enhance_your_calm
  }

  def preface, do: @preface

  @doc "A frame with any type, flags, stream and payload."
  def frame(type, flags, stream, payload) do
    number = with atom when is_atom(atom) <- type, do: number(atom)
    payload = IO.iodata_to_binary(payload)
    <<byte_size(payload)::24, number, flags, stream::32, payload::binary>>
  end

  defp number(type), do: Enum.find_value(@types, fn {number, name} -> name == type && number end)

  @doc "The pseudo headers of a request, and more."
  def request(path \\ "/status/299", more \\ [], method \\ "GET") do
    literals(
      [{":method", method}, {":scheme", "http"}, {":path", path}, {":authority", "a"}] ++ more
    )
  end

  def literals(headers) do
    for {name, value} <- headers, into: "", do: <<0, text(name)::binary, text(value)::binary>>
  end

  defp text(text) when byte_size(text) < 127, do: <<byte_size(text), text::binary>>
  defp text(text), do: <<127, integer(byte_size(text) - 127)::binary, text::binary>>

  defp integer(number) when number < 128, do: <<number>>
  defp integer(number), do: <<(number &&& 127) + 128, integer(number >>> 7)::binary>>

  @doc "HEADERS that end the headers and the stream, unless `flags` say otherwise."
  def headers(stream, block, flags \\ 5), do: frame(:headers, flags, stream, block)

  @doc "A connection after both prefaces."
  def open(url, settings \\ "") do
    socket = RawHTTP.connect(url)
    RawHTTP.put(socket, [@preface, frame(:settings, 0, 0, settings)])
    socket
  end

  @doc """
  The frames of the server until it is silent for `time` or closes the connection, as
  `{type, flags, stream, payload}`; `:closed` at the end if it did.
  """
  def frames(socket, time \\ 300) do
    got = Process.delete({__MODULE__, socket}) || ""
    frames(socket, got, [], time)
  end

  defp frames(
         socket,
         <<length::24, type, flags, _::1, stream::31, payload::binary-size(length),
           rest::binary>>,
         found,
         time
       ) do
    frames(socket, rest, [{Map.get(@types, type, type), flags, stream, payload} | found], time)
  end

  defp frames(socket, got, found, time) do
    case :gen_tcp.recv(socket, 0, time) do
      {:ok, bytes} ->
        frames(socket, got <> bytes, found, time)

      {:error, :timeout} ->
        # Part of a frame.
        Process.put({__MODULE__, socket}, got)
        Enum.reverse(found)

      {:error, _closed} ->
        Enum.reverse([:closed | found])
    end
  end

  @doc """
  The frames until `done?` is true of them, for up to ten seconds, and those that follow at once.
  """
  def frames_until(socket, done?, found \\ [], left \\ 100) do
    found = found ++ frames(socket, 100)

    cond do
      List.last(found) == :closed or left == 0 -> found
      done?.(found) -> found ++ frames(socket, 100)
      true -> frames_until(socket, done?, found, left - 1)
    end
  end

  @doc """
  The outcome of bytes on a connection of their own: `{:goaway, code}`, `{:reset, stream, code}`,
  `:closed` without a word, `{:status, stream}` with a response's headers, `:pong`, `:settings`
  with an acknowledgement, or `:silent`. The first of these that is there, in this order.
  """
  def outcome(frames) do
    found = &Enum.find_value(frames, &1)

    found.(fn
      {:goaway, _, _, <<_last::32, code::32, _rest::binary>>} when code > 0 ->
        {:goaway, Map.get(@codes, code, code)}

      _other ->
        nil
    end) ||
      found.(fn
        {:reset, _, stream, <<code::32>>} -> {:reset, stream, Map.get(@codes, code, code)}
        _other -> nil
      end) ||
      found.(&(&1 == :closed && :closed)) ||
      found.(fn
        {:headers, _, stream, _block} -> {:headers, stream}
        _other -> nil
      end) ||
      found.(&(match?({:ping, 1, 0, _}, &1) && :pong)) || :silent
  end

  @doc "The indexed or literal status at the start of a block of headers."
  def status(<<1::1, index::7, _rest::binary>>) when index in 8..14,
    do: elem({200, 204, 206, 304, 400, 404, 500}, index - 8)

  # Digits in the code of Huffman (RFC 7541, appendix B).
  def status(<<0x48, 1::1, length::7, digits::binary-size(length), _rest::binary>>),
    do: digits |> digits("") |> String.to_integer()

  def status(_block), do: nil

  defp digits(<<0::3, low::2, rest::bitstring>>, done) when low < 3,
    do: digits(rest, done <> <<?0 + low>>)

  defp digits(<<1::2, 1::1, high::3, rest::bitstring>>, done),
    do: digits(rest, done <> <<?2 + high>>)

  defp digits(_padding, done), do: done
end
