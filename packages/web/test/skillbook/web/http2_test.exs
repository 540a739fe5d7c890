defmodule Skillbook.Web.HTTP2Test do
  # HTTP/2 by the sections of RFC 9113 and RFC 7541: the answers to frames that are not valid, and
  # to the valid ones beside them. The cases are those of h2spec, a program in Go that is not in
  # Debian, and more.
  use ExUnit.Case, async: true

  import Bitwise
  import Skillbook.Eventually
  import Skillbook.Test.HTTP2Client

  alias Skillbook.Test.RawHTTP
  alias Skillbook.Web.{Response, Server}

  @end_stream 1
  @end_headers 4
  @padded 8
  @prioritized 0x20

  defp start(options \\ []) do
    test = self()

    handler = fn request ->
      case request.path do
        ["wait"] ->
          send(test, {:waiting, self()})
          Process.sleep(:infinity)

        ["echo"] ->
          Response.text(200, request.body)

        ["slow"] ->
          Process.sleep(1_000)
          Response.text(200, "ok")

        ["large"] ->
          Response.text(200, :binary.copy("x", 1_000_000))

        _path ->
          Response.text(200, "ok")
      end
    end

    options = [handler: handler, port: 0] ++ options
    server = start_supervised!({Server, options}, id: make_ref())
    {server, Server.info(server).url}
  end

  # The rows whose outcome differs.
  defp differing(rows, url, settings \\ "") do
    rows
    |> Task.async_stream(
      fn {name, bytes, expected} ->
        socket =
          case bytes do
            {:raw, bytes} -> RawHTTP.connect(url) |> tap(&RawHTTP.put(&1, bytes))
            bytes -> open(url, settings) |> tap(&RawHTTP.put(&1, bytes))
          end

        got = socket |> frames_until(&(outcome(&1) == expected)) |> outcome()
        RawHTTP.close(socket)
        if got != expected, do: {name, got}
      end,
      max_concurrency: 16,
      timeout: 20_000
    )
    |> Enum.flat_map(fn {:ok, differing} -> List.wrap(differing) end)
  end

  # h2 ends the connection with PROTOCOL_ERROR for frames that it cannot decode, in place of this
  # more specific code.
  defp generic(_code), do: {:goaway, :protocol}

  defp setting(id, value), do: <<id::16, value::32>>
  defp settings(payload, flags \\ 0, stream \\ 0), do: frame(:settings, flags, stream, payload)
  defp ping, do: frame(:ping, 0, 0, "12345678")
  defp post(stream, more \\ []), do: headers(stream, request("/echo", more, "POST"), @end_headers)
  defp window(stream, increment), do: frame(:window, 0, stream, <<increment::32>>)
  defp data(stream, bytes, flags \\ @end_stream), do: frame(:data, flags, stream, bytes)
  defp reset(stream, code \\ 8), do: frame(:reset, 0, stream, <<code::32>>)
  defp continuation(stream, block), do: frame(:continuation, @end_headers, stream, block)
  defp priority(stream, on), do: frame(:priority, 0, stream, <<on::32, 10>>)

  test "frames, streams and settings" do
    {_server, url} = start()
    get = headers(1, request())
    slow = headers(1, request("/slow"))
    half = headers(1, request(), @end_stream)

    rows = [
      {"3.4 a request", get, {:headers, 1}},
      # The RFC has an error of the connection; h2 goes on without the client's settings.
      {"3.4 no settings after the preface", {:raw, [preface(), ping()]}, :pong},
      {"3.4 a preface that ends in other bytes", {:raw, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"},
       :closed},
      {"4.1 an unknown type is ignored", [frame(0xFF, 0, 0, "x"), ping()], :pong},
      {"4.1 undefined flags are ignored", frame(:ping, 0xFE, 0, "12345678"), :pong},
      {"4.1 the reserved bit is ignored", frame(:ping, 0, 1 <<< 31, "12345678"), :pong},
      {"4.2 the largest frame", [post(1), data(1, :binary.copy("x", 16_384))], {:headers, 1}},
      {"4.2 data too large", [post(1), data(1, :binary.copy("x", 16_385))],
       {:goaway, :frame_size}},
      {"4.2 headers too large", headers(1, :binary.copy("x", 16_385)), {:goaway, :frame_size}},
      {"4.3 headers that cannot be decoded", headers(1, <<0x80>>), generic(:compression)},
      {"4.3 a frame between headers", [half, priority(1, 0)], {:goaway, :protocol}},
      {"4.3 headers of another stream between", [half, headers(3, request())],
       {:goaway, :protocol}},
      {"5.1 data on an idle stream", data(1, "x"), {:goaway, :protocol}},
      {"5.1 a reset of an idle stream", reset(1), {:goaway, :protocol}},
      {"5.1 a window of an idle stream", window(1, 100), {:goaway, :protocol}},
      {"5.1 a continuation on an idle stream", continuation(1, request()), {:goaway, :protocol}},
      {"5.1 data on a stream that has ended", [slow, data(1, "x")], generic(:stream_closed)},
      {"5.1 headers on a stream that has ended", [slow, get], generic(:stream_closed)},
      {"5.1 a continuation on a stream that has ended", [slow, continuation(1, request())],
       {:goaway, :protocol}},
      {"5.1 data after a reset", [post(1), reset(1), data(1, "x")], {:reset, 1, :stream_closed}},
      {"5.1 headers after a reset", [post(1), reset(1), get], generic(:stream_closed)},
      {"5.1.1 an even stream", headers(2, request()), {:goaway, :protocol}},
      {"5.1.1 a smaller stream", [headers(5, request()), headers(3, request())],
       {:goaway, :protocol}},
      {"5.3.1 headers that depend on themselves",
       headers(1, [<<1::32, 10>>, request()], 5 + @prioritized), {:reset, 1, :protocol}},
      {"5.3.1 a priority that depends on itself", [post(1), priority(1, 1)],
       {:reset, 1, :protocol}},
      {"5.5 an unknown frame between headers", [half, frame(0xFF, 0, 0, "x")],
       {:goaway, :protocol}},
      {"6.1 data on stream 0", data(0, "x"), {:goaway, :protocol}},
      {"6.1 padding", [post(1), data(1, [<<3>>, "a", "xyz"], @end_stream + @padded)],
       {:headers, 1}},
      {"6.1 too much padding", [post(1), data(1, [<<5>>, "a"], @end_stream + @padded)],
       {:goaway, :protocol}},
      {"6.2 headers on stream 0", headers(0, request()), {:goaway, :protocol}},
      {"6.2 padding", headers(1, [<<1>>, request(), "x"], 5 + @padded), {:headers, 1}},
      {"6.2 too much padding", headers(1, [<<200>>, request()], 5 + @padded),
       {:goaway, :protocol}},
      {"6.2 a priority", headers(1, [<<0::32, 10>>, request()], 5 + @prioritized), {:headers, 1}},
      {"6.3 a priority of stream 0", priority(0, 1), {:goaway, :protocol}},
      {"6.3 a priority of the wrong size", [post(1), frame(:priority, 0, 1, <<1::32>>)],
       generic(:frame_size)},
      {"6.3 a priority of an idle stream", [priority(1, 0), get], {:headers, 1}},
      {"6.4 a reset of stream 0", reset(0), {:goaway, :protocol}},
      {"6.4 a reset of the wrong size", [post(1), frame(:reset, 0, 1, "123")],
       generic(:frame_size)},
      {"6.5 an acknowledgement with a payload", settings(setting(1, 0), 1), generic(:frame_size)},
      {"6.5 settings on a stream", settings("", 0, 1), {:goaway, :protocol}},
      {"6.5 settings of the wrong size", settings("123"), generic(:frame_size)},
      {"6.5.2 a push that is neither on nor off", settings(setting(2, 2)), {:goaway, :protocol}},
      {"6.5.2 a window beyond 2^31 - 1", settings(setting(4, 1 <<< 31)), generic(:flow_control)},
      {"6.5.2 a frame size below 2^14", settings(setting(5, 16_383)), {:goaway, :protocol}},
      {"6.5.2 a frame size beyond 2^24 - 1", settings(setting(5, 1 <<< 24)),
       {:goaway, :protocol}},
      {"6.5.2 an unknown setting is ignored", [settings(setting(0xFF, 1)), ping()], :pong},
      {"6.6 a push of the client", [get, frame(:push, @end_headers, 1, [<<2::32>>, request()])],
       {:goaway, :protocol}},
      {"6.7 a ping", ping(), :pong},
      {"6.7 an answer to a ping is ignored", frame(:ping, 1, 0, "12345678"), :silent},
      {"6.7 a ping on a stream", frame(:ping, 0, 1, "12345678"), {:goaway, :protocol}},
      {"6.7 a ping of the wrong size", frame(:ping, 0, 0, "123456"), generic(:frame_size)},
      {"6.8 a farewell on a stream", frame(:goaway, 0, 1, <<0::32, 0::32>>),
       {:goaway, :protocol}},
      {"6.8 a farewell", [frame(:goaway, 0, 0, <<0::32, 0::32>>)], :closed},
      {"6.9 a window of zero", window(0, 0), {:goaway, :protocol}},
      {"6.9 a stream's window of zero", [post(1), window(1, 0)], {:goaway, :protocol}},
      {"6.9 a window of the wrong size", frame(:window, 0, 0, "123"), generic(:frame_size)},
      {"6.9.1 a window beyond 2^31 - 1", [window(0, 0x7FFFFFFF), window(0, 0x7FFFFFFF)],
       {:goaway, :flow_control}},
      {"6.9.1 a stream's window beyond 2^31 - 1",
       [post(1), window(1, 0x7FFFFFFF), window(1, 0x7FFFFFFF)], {:reset, 1, :flow_control}},
      {"6.9.2 a setting that makes a stream's window too large",
       [post(1), window(1, 0x7FFF0000), settings(setting(4, 0x7FFFFFFF))],
       {:goaway, :flow_control}},
      {"6.10 continuations",
       [headers(1, "", @end_stream), frame(:continuation, 0, 1, ""), continuation(1, request())],
       {:headers, 1}},
      {"6.10 data between headers", [half, data(1, "x")], {:goaway, :protocol}},
      {"6.10 a continuation on stream 0", [half, continuation(0, "")], {:goaway, :protocol}},
      {"6.10 a continuation of another stream", [half, continuation(3, "")],
       {:goaway, :protocol}},
      {"6.10 a continuation after the end of headers", [post(1), continuation(1, "")],
       {:goaway, :protocol}},
      {"6.10 a continuation after data", [post(1), data(1, "x", 0), continuation(1, "")],
       {:goaway, :protocol}},
      {"7 an unknown code of a reset", [post(1), reset(1, 0xFF), ping()], :pong}
    ]

    assert differing(rows, url) == []
  end

  test "requests" do
    {_server, url} = start()
    plain = [{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}]
    block = fn headers -> headers(1, literals(headers)) end
    # An error of the stream may end the connection as well (5.4.2).
    malformed = {:reset, 1, :protocol}

    rows = [
      {"8.1 trailers", [post(1), data(1, "x", 0), headers(1, literals([{"x", "y"}]))],
       {:headers, 1}},
      {"8.1 trailers that do not end the stream",
       [post(1), headers(1, literals([{"x", "y"}]), @end_headers)], malformed},
      # The RFC has an error of the stream; h2 drops it, and trailers go no further.
      {"8.1 a pseudo header in trailers", [post(1), headers(1, literals([{":method", "GET"}]))],
       {:headers, 1}},
      {"8.2.1 an upper-case name", block.(plain ++ [{"X-A", "b"}]), {:goaway, :protocol}},
      {"8.2.1 a name with a space", block.(plain ++ [{"x a", "b"}]), {:goaway, :protocol}},
      {"8.2.1 a value with a line break", block.(plain ++ [{"x", "a\r\nb: c"}]),
       {:goaway, :protocol}},
      {"8.2.1 a value with a zero byte", block.(plain ++ [{"x", "a\0b"}]), {:goaway, :protocol}},
      {"8.2.2 connection", block.(plain ++ [{"connection", "keep-alive"}]), malformed},
      {"8.2.2 transfer-encoding", block.(plain ++ [{"transfer-encoding", "chunked"}]), malformed},
      {"8.2.2 upgrade", block.(plain ++ [{"upgrade", "websocket"}]), malformed},
      {"8.2.2 keep-alive", block.(plain ++ [{"keep-alive", "x"}]), malformed},
      {"8.2.2 proxy-connection", block.(plain ++ [{"proxy-connection", "x"}]), malformed},
      {"8.2.2 te other than trailers", block.(plain ++ [{"te", "gzip"}]), malformed},
      {"8.2.2 te: trailers", block.(plain ++ [{"te", "trailers"}]), {:headers, 1}},
      {"8.3 an unknown pseudo header", block.(plain ++ [{":test", "x"}]), {:goaway, :protocol}},
      {"8.3 one of responses", block.(plain ++ [{":status", "200"}]), malformed},
      {"8.3 a pseudo header after others", block.([{"x", "y"} | plain]), malformed},
      {"8.3.1 no method", block.(List.delete_at(plain, 0)), malformed},
      {"8.3.1 no scheme", block.(List.delete_at(plain, 1)), malformed},
      {"8.3.1 no path", block.(List.delete_at(plain, 2)), malformed},
      {"8.3.1 an empty path", block.(List.replace_at(plain, 2, {":path", ""})), malformed},
      {"8.3.1 a path that is none", headers(1, request("x")), malformed},
      {"8.3.1 two methods", block.([{":method", "GET"} | plain]), malformed},
      {"8.3.1 two schemes", block.([{":scheme", "http"} | plain]), malformed},
      {"8.3.1 two paths", block.([{":path", "/"} | plain]), malformed},
      {"8.3.1 two authorities", block.([{":authority", "a"} | plain]), malformed},
      {"8.1.1 a length that is larger", [post(1, [{"content-length", "2"}]), data(1, "x")],
       malformed},
      {"8.1.1 a length that is smaller", [post(1, [{"content-length", "1"}]), data(1, "xy")],
       malformed},
      {"8.1.1 a length that is larger than two parts",
       [post(1, [{"content-length", "3"}]), data(1, "x", 0), data(1, "y")], malformed},
      {"8.5 a tunnel", block.([{":method", "CONNECT"}, {":authority", "a:80"}]), {:headers, 1}}
    ]

    assert differing(rows, url) == []
  end

  test "compression of headers" do
    {_server, url} = start()
    goaway = generic(:compression)
    block = &headers(1, [request() | &1])

    rows = [
      {"2.3.3 an index beyond the tables", block.([<<0x80 + 70>>]), goaway},
      {"2.3.3 a name beyond the tables", block.([<<0x40 + 62, 1, ?x>>]), goaway},
      {"4.2 a change of size after headers", block.([<<0x20>>]), goaway},
      {"4.2 a change of size before headers", headers(1, [<<0x20>>, request()]), {:headers, 1}},
      {"5.1 a number without end", block.([<<0xFF>>, :binary.copy(<<0xFF>>, 20)]), goaway},
      {"5.2 padding of Huffman longer than 7 bits",
       block.([<<0, 1, ?x, 0x84, 0x1D, 0x7F, 0xFF, 0xFF>>]), goaway},
      {"5.2 padding of Huffman with zeros", block.([<<0, 1, ?x, 0x81, 0x00>>]), goaway},
      {"5.2 the end of a string inside it", block.([<<0, 1, ?x, 0x84, 0xFF, 0xFF, 0xFF, 0xFF>>]),
       goaway},
      {"5.2 a text longer than its block", block.([<<0, 1, ?x, 100, ?y>>]), goaway},
      {"6.1 the index 0", block.([<<0x80>>]), goaway},
      {"6.3 a table larger than allowed", headers(1, [<<0x3F, 0xE2, 0x1F>>, request()]), goaway}
    ]

    assert differing(rows, url) == []
  end

  # A response with its status, as the client of the library sees it.
  defp statuses(url, rows) do
    for {name, block, expected} <- rows do
      socket = open(url)
      RawHTTP.put(socket, headers(1, block))
      answered? = &Enum.any?(&1, fn frame -> match?({:headers, _, 1, _}, frame) end)
      frames = frames_until(socket, answered?)
      found = for {:headers, _flags, 1, block} <- frames, do: block
      RawHTTP.close(socket)
      status = found |> List.first() |> status()
      if status != expected, do: {name, status, found}
    end
    |> Enum.reject(&is_nil/1)
  end

  test "hosts" do
    {_server, url} = start()
    plain = [{":method", "GET"}, {":scheme", "http"}, {":path", "/"}]

    rows = [
      {"the authority", literals(plain ++ [{":authority", "a"}]), 200},
      {"the header", literals(plain ++ [{"host", "a"}]), 200},
      {"both", literals(plain ++ [{":authority", "a"}, {"host", "A"}]), 200},
      {"neither", literals(plain), 400},
      {"two hosts", literals(plain ++ [{"host", "a"}, {"host", "a"}]), 400},
      {"different ones", literals(plain ++ [{":authority", "a"}, {"host", "b"}]), 400},
      {"a user", literals(plain ++ [{":authority", "u@a"}]), 400},
      {"a path of the server", request("*"), 400}
    ]

    assert statuses(url, rows) == []
  end

  test "flow control: a response waits for windows" do
    {_server, url} = start()
    socket = open(url, setting(4, 10))
    RawHTTP.put(socket, headers(1, request("/large")))
    data = fn frames -> for {:data, _, 1, data} <- frames, do: byte_size(data) end
    sizes = fn total -> data.(frames_until(socket, &(Enum.sum(data.(&1)) >= total))) end
    assert sizes.(10) == [10]
    RawHTTP.put(socket, window(1, 5))
    assert sizes.(5) == [5]
    RawHTTP.put(socket, settings(setting(4, 30)))
    assert sizes.(20) == [20]
    # It is less than nothing until the stream has its own increment.
    RawHTTP.put(socket, settings(setting(4, 10)))
    assert sizes.(0) == []
    RawHTTP.put(socket, window(1, 20))
    assert sizes.(0) == []
    RawHTTP.put(socket, window(1, 7))
    assert sizes.(7) == [7]
    RawHTTP.close(socket)
  end

  test "too many streams at once are refused" do
    {_server, url} = start(max_http2_streams: 3)
    socket = open(url)
    RawHTTP.put(socket, for(n <- 0..3, do: post(2 * n + 1)))

    assert [{:reset, 0, 7, <<7::32>>}] =
             for({:reset, _, _, _} = frame <- frames(socket), do: frame)

    RawHTTP.close(socket)
  end

  test "a client that takes nothing of a response is closed" do
    {server, url} = start(write_timeout: 300)

    for size <- [0, 1_000] do
      socket = open(url, setting(4, size))
      RawHTTP.put(socket, headers(1, request("/large")))
      assert List.last(frames(socket, 3_000)) == :closed
      assert eventually(fn -> Server.info(server).requests == 0 end)
    end
  end

  test "a reset of a stream ends its request, and no other" do
    {server, url} = start()
    socket = open(url)
    RawHTTP.put(socket, [headers(1, request("/wait")), headers(3, request("/slow"))])
    assert_receive {:waiting, pid}
    monitor = monitor(pid)
    RawHTTP.put(socket, reset(1))
    assert_receive {:DOWN, ^monitor, :process, _, :killed}
    streams = &for({:headers, _, stream, _} <- &1, do: stream)
    assert [3] = socket |> frames_until(&(streams.(&1) != [])) |> streams.()
    assert eventually(fn -> match?(%{requests: 0}, Server.info(server)) end)
    RawHTTP.close(socket)
  end

  test "a stop says farewell and lets streams finish" do
    {server, url} = start()
    socket = open(url)
    RawHTTP.put(socket, headers(1, request("/slow")))
    assert eventually(fn -> match?(%{requests: 1}, Server.info(server)) end)
    spawn(fn -> GenServer.stop(server) end)
    ping? = &match?({:ping, 0, 0, _}, &1)
    frames = frames_until(socket, &Enum.any?(&1, ping?))
    {:ping, 0, 0, payload} = Enum.find(frames, ping?)
    # The client has all frames before the farewell.
    RawHTTP.put(socket, frame(:ping, 1, 0, payload))
    frames = frames ++ frames_until(socket, fn _ -> false end)
    goaways = for {:goaway, _, _, <<_last::32, code::32, _::binary>>} <- frames, do: code
    assert Enum.uniq(goaways) == [0]
    assert Enum.any?(frames, &match?({:headers, _, 1, _}, &1))
    assert List.last(frames) == :closed
  end

  test "an idle connection is closed with a farewell" do
    {_server, url} = start(idle_timeout: 200)
    socket = open(url)
    RawHTTP.put(socket, headers(1, request()))
    frames = frames(socket, 3_000)
    assert Enum.any?(frames, &match?({:headers, _, 1, _}, &1))
    assert Enum.any?(frames, &match?({:goaway, _, _, <<_last::32, 0::32, _::binary>>}, &1))
    assert List.last(frames) == :closed
  end

  # Each sends its frames until the connection is closed, without reading.
  test "floods end the connection, and hold little memory" do
    {_server, url} = start(write_timeout: 500)

    floods = [
      {"resets (CVE-2023-44487)",
       fn n -> [headers(2 * n + 1, request("/large")), reset(2 * n + 1)] end},
      {"requests that reset themselves",
       fn n -> headers(2 * n + 1, [<<2 * n + 1::32, 1>>, request()], 5 + @prioritized) end},
      {"pings", fn _n -> List.duplicate(ping(), 100) end},
      {"settings", fn _n -> List.duplicate(settings(setting(4, 100)), 100) end},
      {"continuations",
       fn
         0 -> headers(1, request(), @end_stream)
         _n -> frame(:continuation, 0, 1, literals([{"x", :binary.copy("y", 1_000)}]))
       end},
      {"empty continuations",
       fn
         0 -> headers(1, request(), @end_stream)
         _n -> List.duplicate(frame(:continuation, 0, 1, ""), 100)
       end}
    ]

    endless =
      for {name, make} <- floods do
        socket = open(url)
        outcome = flood(socket, make, 0)
        RawHTTP.close(socket)
        if outcome != :closed, do: name
      end

    assert Enum.reject(endless, &is_nil/1) == []
  end

  @most 100_000
  defp flood(_socket, _make, @most), do: :open

  defp flood(socket, make, n) do
    case :gen_tcp.send(socket, make.(n)) do
      :ok -> flood(socket, make, n + 1)
      {:error, _closed} -> :closed
    end
  end

  test "a head that is too large is refused" do
    {_server, url} = start()
    socket = open(url)
    block = request("/", for(n <- 1..40, do: {"x#{n}", :binary.copy("y", 1_000)}))
    <<first::binary-size(16_000), second::binary-size(16_000), rest::binary>> = block

    RawHTTP.put(socket, [
      headers(1, first, @end_stream),
      frame(:continuation, 0, 1, second),
      continuation(1, rest),
      ping()
    ])

    refused? = &Enum.any?(&1, fn frame -> match?({:headers, _, 1, _}, frame) end)
    frames = frames_until(socket, refused?)
    assert [431] = for({:headers, _, 1, block} <- frames, do: status(block))
    RawHTTP.close(socket)
    many = request("/", for(n <- 1..200, do: {"x#{n}", "y"}))
    assert statuses(url, [{"many", many, 431}]) == []
  end
end
