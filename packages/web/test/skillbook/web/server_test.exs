defmodule Skillbook.Web.ServerTest do
  use ExUnit.Case, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.HTTP
  alias Skillbook.Test.{Certificates, RawHTTP}
  alias Skillbook.Web.{Response, Server}

  doctest Server
  doctest Server.Error

  # Echoes a request as text, or does as its path says.
  defp handler(test) do
    fn request ->
      case request.path do
        ["echo"] ->
          Response.text(200, request.body)

        ["request"] ->
          send(test, {:request, Map.from_struct(request)})
          Response.text(200, "")

        ["status", status] ->
          Response.text(String.to_integer(status), "text")

        ["large", size] ->
          Response.text(200, :binary.copy("x", String.to_integer(size)))

        ["crash"] ->
          raise "a secret #{request.query}"

        ["exit"] ->
          Process.exit(self(), :kill)

        ["wait"] ->
          send(test, {:waiting, self()})

          receive do
            {:answer, text} -> Response.text(200, text)
          end

        ["header"] ->
          %Response{headers: [{request.query, "x"}]}

        ["stream"] ->
          stream(test, "text/plain")

        ["events"] ->
          stream(test, "text/event-stream")

        _path ->
          Response.text(404, "missing")
      end
    end
  end

  # Writes the messages of the test, and tells it the outcomes.
  defp stream(test, type) do
    %Response{
      headers: [{"content-type", type}],
      body:
        {:stream,
         fn write ->
           send(test, {:writer, self()})
           write_messages(write, test)
         end}
    }
  end

  defp write_messages(write, test) do
    receive do
      {:write, data} ->
        send(test, {:wrote, write.(data)})
        write_messages(write, test)

      :crash ->
        raise "broken"

      :finish ->
        :ok
    end
  end

  defp start(options \\ []) do
    options = Keyword.merge([handler: handler(self()), port: 0], options)
    server = start_supervised!({Server, options}, id: make_ref())
    {server, Server.info(server).url}
  end

  defp get(path, more \\ ""), do: "GET #{path} HTTP/1.1\r\nhost: a\r\n#{more}\r\n"
  defp post(path, more), do: "POST #{path} HTTP/1.1\r\nhost: a\r\n#{more}"

  defp once(url, bytes, options \\ []) do
    socket = RawHTTP.connect(url)
    RawHTTP.put(socket, bytes)
    response = RawHTTP.response(socket, options)
    RawHTTP.close(socket)
    response
  end

  describe "a request" do
    test "comes with its parts" do
      {_server, url} = start()

      headers = "Cookie: x=1\r\nX-É: \xFF\r\ncontent-length: 3\r\n"
      bytes = post("/request?a=b%20c", headers <> "\r\nabc")

      assert {400, _, _} = once(url, bytes)
      once(url, String.replace(bytes, "X-É", "X-E"))

      assert_receive {:request,
                      %{
                        method: "POST",
                        scheme: :http,
                        host: "a",
                        path: ["request"],
                        base: "",
                        query: "a=b%20c",
                        body: "abc",
                        peer: {127, 0, 0, 1},
                        headers: headers
                      }}

      assert {"cookie", "x=1"} in headers
      assert {"x-e", "\xFF"} in headers
    end

    test "keeps a connection, also with pipelining" do
      {_server, url} = start()
      socket = RawHTTP.connect(url)

      for text <- ["one", "two"] do
        RawHTTP.put(socket, post("/echo", "content-length: 3\r\n\r\n#{text}"))
        assert {200, headers, ^text} = RawHTTP.response(socket)
        assert %{"date" => date, "content-length" => "3"} = headers
        assert date =~ ~r/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/
      end

      RawHTTP.put(socket, for(n <- 1..20, do: get("/status/#{400 + n}")))
      for n <- 1..20, do: assert(elem(RawHTTP.response(socket), 0) == 400 + n)
    end

    test "with a path that cannot be decoded is refused" do
      {_server, url} = start()

      for path <- ["/%", "/%zz", "/a%2", "/%ff", "/%00", "/status/%C3%28"] do
        {status, _headers, body} = once(url, get(path))
        assert {path, status, body} == {path, 400, "The path is not valid.\n"}
      end

      for {path, segments} <- [
            {"//", []},
            {"//request/", ["request"]},
            {"/re%71uest", ["request"]}
          ] do
        assert {status, _, _} = once(url, get(path))
        assert status == if(segments == [], do: 404, else: 200)
        if segments != [], do: assert_receive({:request, %{path: ^segments}})
      end
    end

    test "that waits for 100 Continue gets it, unless its body is refused" do
      {_server, url} = start(max_body: 10)
      socket = RawHTTP.connect(url)
      expect = "expect: 100-continue\r\ncontent-length: "
      RawHTTP.put(socket, post("/echo", expect <> "3\r\n\r\n"))
      assert {:ok, "HTTP/1.1 100 Continue\r\n\r\n"} = :gen_tcp.recv(socket, 25, 5_000)
      RawHTTP.put(socket, "abc")
      assert {200, _, "abc"} = RawHTTP.response(socket)

      assert RawHTTP.all(url, post("/echo", expect <> "11\r\n\r\n")) |> statuses() == [413]
      other = "expect: lunch\r\ncontent-length: 3\r\n\r\nabc"
      assert RawHTTP.all(url, post("/echo", other)) |> statuses() == [417]
    end
  end

  defp statuses(bytes) do
    for [status] <- Regex.scan(~r/HTTP\/1\.[01] (\d{3})/, bytes, capture: :all_but_first),
        do: String.to_integer(status)
  end

  # The statuses of these bytes and of a request after them, which gets 299 if it is read as one.
  # All rows end with a closed connection.
  defp sequence(url, bytes) do
    url |> RawHTTP.all([bytes, get("/status/299", "connection: close\r\n")]) |> statuses()
  end

  # The rows whose outcome differs.
  defp same(rows, outcome) do
    for {name, given, expected} <- rows, got = outcome.(given), got != expected, do: {name, got}
  end

  describe "the bytes of a request" do
    test "are understood in one way, or refused" do
      {_server, url} = start()
      smuggled = "GET /status/298 HTTP/1.1\r\nhost: a\r\n\r\n"
      te = "transfer-encoding: "

      rows = [
        {"plain", get("/echo"), [200, 299]},
        {"a body", post("/echo", "content-length: 3\r\n\r\nabc"), [200, 299]},
        {"chunks", post("/echo", "#{te}chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), [200, 299]},
        {"extensions", post("/echo", "#{te}chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n"),
         [200, 299]},
        {"trailers", post("/echo", "#{te}chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n"),
         [200, 299]},
        {"a length beside chunks, after which nothing is read",
         post("/echo", "content-length: 5\r\n#{te}chunked\r\n\r\n0\r\n\r\n#{smuggled}"), [200]},
        {"chunks beside a length",
         post("/echo", "#{te}chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n#{smuggled}"), [200]},
        {"the same length twice",
         post("/echo", "content-length: 3\r\ncontent-length: 3\r\n\r\nabc"), [200, 299]},
        {"two lengths", post("/echo", "content-length: 3\r\ncontent-length: 4\r\n\r\nabc"),
         [400]},
        {"a list of lengths", post("/echo", "content-length: 3, 3\r\n\r\nabc"), [400]},
        {"a length with a sign", post("/echo", "content-length: +3\r\n\r\nabc"), [400]},
        {"a negative length", post("/echo", "content-length: -3\r\n\r\nabc"), [400]},
        {"a length in base 16", post("/echo", "content-length: 0x3\r\n\r\nabc"), [400]},
        {"a length that is too large for a number",
         post("/echo", "content-length: 99999999999999999999\r\n\r\nabc"), [400]},
        {"an empty length", post("/echo", "content-length: \r\n\r\n"), [400]},
        {"identity", post("/echo", "#{te}identity\r\n\r\n"), [400]},
        {"two codings", post("/echo", "#{te}gzip, chunked\r\n\r\n0\r\n\r\n"), [501]},
        {"chunked twice", post("/echo", "#{te}chunked\r\n#{te}chunked\r\n\r\n0\r\n\r\n"), [501]},
        {"chunked is not last", post("/echo", "#{te}chunked, gzip\r\n\r\n0\r\n\r\n"), [400]},
        {"another coding", post("/echo", "#{te}xchunked\r\n\r\n0\r\n\r\n"), [400]},
        {"a quoted coding", post("/echo", "#{te}\"chunked\"\r\n\r\n0\r\n\r\n"), [400]},
        {"a vertical tab", post("/echo", "#{te}\vchunked\r\n\r\n0\r\n\r\n"), [400]},
        {"chunks of HTTP/1.0", "POST /echo HTTP/1.0\r\nhost: a\r\n#{te}chunked\r\n\r\n0\r\n\r\n",
         [400]},
        {"a size of a chunk that is no number",
         post("/echo", "#{te}chunked\r\n\r\nx\r\nabc\r\n0\r\n\r\n"), [400]},
        {"a chunk that is longer than its size",
         post("/echo", "#{te}chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"), [400]},
        {"a size that is too large",
         post("/echo", "#{te}chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n"), [400]},
        {"a bare line feed after a size",
         post("/echo", "#{te}chunked\r\n\r\n3\nabc\r\n0\r\n\r\n"), [400]},
        {"a bare line feed in an extension",
         post("/echo", "#{te}chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n"), [400]},
        # RFC 9112, 2.2: a line feed alone may end a line. Nothing reads it in another way.
        {"bare line feeds", "GET /echo HTTP/1.1\nhost: a\n\n", [200, 299]},
        {"a bare carriage return", "GET /echo HTTP/1.1\r\nhost: a\rx: y\r\n\r\n", [400]},
        {"a folded line", get("/echo", "x: a\r\n b\r\n"), [400]},
        {"a folded first line", "GET /echo HTTP/1.1\r\n x: y\r\nhost: a\r\n\r\n", [400]},
        {"a space before the colon", get("/echo", "x : y\r\n"), [400]},
        {"a space before the colon of a length", post("/echo", "content-length : 3\r\n\r\nabc"),
         [400]},
        {"a zero byte", get("/echo", "x: a\0b\r\n"), [400]},
        {"a zero byte in a name", get("/echo", "x\0: a\r\n"), [400]},
        {"a header without a colon", get("/echo", "x\r\n"), [400]},
        {"an empty name", get("/echo", ": x\r\n"), [400]},
        {"a name that is no token", get("/echo", "x(: y\r\n"), [400]},
        {"no host", "GET /echo HTTP/1.1\r\n\r\n", [400]},
        {"two hosts", get("/echo", "host: b\r\n"), [400]},
        {"the same host twice", get("/echo", "host: a\r\n"), [400]},
        {"an empty host", "GET /echo HTTP/1.1\r\nhost: \r\n\r\n", [400]},
        {"a host with a path", "GET /echo HTTP/1.1\r\nhost: a/b\r\n\r\n", [400]},
        {"a host with a user", "GET /echo HTTP/1.1\r\nhost: b@a\r\n\r\n", [400]},
        {"a host with a space", "GET /echo HTTP/1.1\r\nhost: a b\r\n\r\n", [400]},
        {"HTTP/1.0 without a host, whose connection ends", "GET /echo HTTP/1.0\r\n\r\n", [200]},
        {"an absolute target", "GET http://a/echo HTTP/1.1\r\nhost: a\r\n\r\n", [200, 299]},
        {"one for another host", "GET http://b/echo HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"one without the header", "GET http://a/echo HTTP/1.1\r\n\r\n", [400]},
        {"one of another scheme", "GET ftp://a/echo HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"one with a user", "GET http://b@a/echo HTTP/1.1\r\nhost: b@a\r\n\r\n", [400]},
        {"a target without a path", "GET a:80 HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"a target without a slash", "GET echo HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"the server as a whole", "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", [204, 299]},
        {"the same for another method", "GET * HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"a tunnel", "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n", [501]},
        {"an upgrade that is not made",
         get("/echo", "connection: upgrade\r\nupgrade: websocket\r\n"), [200, 299]},
        {"an upgrade to HTTP/2",
         get(
           "/echo",
           "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: \r\n"
         ), [200, 299]},
        {"a space in the target", "GET /echo x HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"two spaces", "GET  /echo HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"another version", "GET /echo HTTP/1.2\r\nhost: a\r\n\r\n", [400]},
        {"HTTP/2 without its preface", "GET /echo HTTP/2.0\r\nhost: a\r\n\r\n", [400]},
        {"no version", "GET /echo\r\nhost: a\r\n\r\n", [400]},
        {"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", [400]},
        {"TLS", <<22, 3, 1, 0, 5, 1, 0, 0, 1, 0>>, [400]},
        {"an empty line before a request", "\r\n" <> get("/echo"), [200, 299]},
        {"a method that is no token", "G[T /echo HTTP/1.1\r\nhost: a\r\n\r\n", [400]},
        {"a connection that ends", get("/echo", "connection: close\r\n"), [200]}
      ]

      assert same(rows, &sequence(url, &1)) == []
    end

    test "are limited" do
      {_server, url} = start(max_body: 1_000)
      fill = &String.duplicate("x", &1)

      rows = [
        {"a head just within", get("/echo", "x: #{fill.(32 * 1024 - 40)}\r\n"), [200, 299]},
        {"a head just beyond", get("/echo", "x: #{fill.(32 * 1024 - 30)}\r\n"), [431]},
        {"a head of a megabyte", get("/echo", "x: #{fill.(1_000_000)}\r\n"), [431]},
        {"a head without end", "GET /echo HTTP/1.1\r\n" <> fill.(100_000), [431]},
        {"a target just within", get("/echo?" <> fill.(8 * 1024 - 5)), [200, 299]},
        {"a target just beyond", get("/echo?" <> fill.(8 * 1024 - 4)), [414]},
        {"a target of 40 KB", get("/echo?" <> fill.(40_000)), [431]},
        {"100 headers", get("/echo", for(n <- 1..99, do: "x#{n}: y\r\n")), [200, 299]},
        {"101 headers", get("/echo", for(n <- 1..100, do: "x#{n}: y\r\n")), [431]},
        {"10,000 headers", get("/echo", for(n <- 1..10_000, do: "x#{n}:\r\n")), [431]},
        {"a body just within", post("/echo", "content-length: 1000\r\n\r\n#{fill.(1_000)}"),
         [200, 299]},
        {"a body beyond", post("/echo", "content-length: 1001\r\n\r\n#{fill.(1_001)}"), [413]},
        {"a body that is said to be large",
         post("/echo", "content-length: 1000000000000\r\n\r\n"), [413]},
        {"chunks beyond",
         post("/echo", [
           "transfer-encoding: chunked\r\n\r\n",
           List.duplicate("64\r\n#{fill.(100)}\r\n", 11),
           "0\r\n\r\n"
         ]), [413]},
        {"trailers without end",
         post("/echo", ["transfer-encoding: chunked\r\n\r\n0\r\n", "x: #{fill.(100_000)}"]),
         [400]}
      ]

      assert same(rows, &sequence(url, IO.iodata_to_binary(&1))) == []
    end
  end

  describe "a response" do
    test "has no body for HEAD and for statuses without one" do
      {_server, url} = start()
      socket = RawHTTP.connect(url)

      rows = [{"/status/200", "4"}, {"/large/100000", "100000"}, {"/events", nil}]

      for {path, length} <- rows do
        RawHTTP.put(socket, "HEAD #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
        assert {200, headers, ""} = RawHTTP.response(socket, method: "HEAD")
        assert {path, headers["content-length"]} == {path, length}
      end

      for status <- [204, 304] do
        RawHTTP.put(socket, get("/status/#{status}"))
        assert {^status, headers, ""} = RawHTTP.response(socket)
        assert Map.take(headers, ["content-length", "transfer-encoding"]) == %{}
      end

      RawHTTP.put(socket, get("/status/299"))
      assert {299, _, "text"} = RawHTTP.response(socket)
    end

    test "of any size arrives whole" do
      {_server, url} = start()

      for size <- [0, 1, 65_535, 65_536, 65_537, 131_072, 5_000_001] do
        assert {200, %{"content-length" => length}, body} = once(url, get("/large/#{size}"))
        assert {String.to_integer(length), byte_size(body)} == {size, size}
      end
    end

    test "that is not valid is an error of the handler" do
      {_server, url} = start()

      rows = [
        {"/status/100", "expected a status from 200 to 599, got: 100"},
        {"/status/600", "expected a status from 200 to 599, got: 600"},
        {"/header?a%20b", ~s(expected the name of a header, got: "a%20b")},
        {"/header?transfer-encoding",
         "the header transfer-encoding is the server's; leave it out"},
        {"/header?content-length", "the header content-length is the server's; leave it out"},
        {"/header?connection", "the header connection is the server's; leave it out"}
      ]

      for {path, message} <- rows do
        path = String.replace(path, "%20", "(")
        message = String.replace(message, "%20", "(")
        log = capture_log(fn -> assert {500, _, _} = once(url, get(path)) end)
        assert log =~ "a request failed: GET\n"
        assert log =~ "** (ArgumentError) " <> message
      end
    end

    test "of a handler that fails is 500, and the log has nothing of the request" do
      {_server, url} = start()

      log =
        capture_log(fn ->
          head = get("/crash?x", "cookie: session=hidden\r\n")
          assert {500, _, "Internal Server Error\n"} = once(url, head)
        end)

      assert log =~ "a request failed: GET\n** (RuntimeError) a secret x"
      refute log =~ "hidden"

      capture_log(fn ->
        assert {500, _, "Internal Server Error\n"} = once(url, get("/exit"))
      end)
    end
  end

  describe "a stream" do
    test "sends each part at once, and ends" do
      {server, url} = start()
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, get("/events"))
      head = RawHTTP.begun(socket)
      assert head =~ "content-type: text/event-stream"
      assert head =~ "transfer-encoding: chunked"
      assert_receive {:writer, writer}
      assert %{streams: 1, requests: 0, connections: 1} = Server.info(server)

      for part <- ["one", ["t", ?w, "o"]] do
        send(writer, {:write, part})
        assert RawHTTP.chunk(socket) == IO.iodata_to_binary(part)
        assert_receive {:wrote, :ok}
      end

      send(writer, {:write, ""})
      assert_receive {:wrote, :ok}
      send(writer, :finish)
      assert RawHTTP.chunk(socket) == ""
      # The connection goes on.
      RawHTTP.put(socket, get("/status/299"))
      assert {299, _, _} = RawHTTP.response(socket)
      assert eventually(fn -> match?(%{streams: 0}, Server.info(server)) end)
    end

    test "kills its process when the client has gone" do
      {server, url} = start()

      for path <- ["/events", "/stream"] do
        socket = RawHTTP.connect(url)
        RawHTTP.put(socket, get(path))
        RawHTTP.begun(socket)
        assert_receive {:writer, writer}
        monitor = monitor(writer)
        RawHTTP.close(socket)
        assert_receive {:DOWN, ^monitor, :process, _, :killed}
      end

      assert eventually(fn -> match?(%{streams: 0, connections: 0}, Server.info(server)) end)
    end

    test "that breaks has no end" do
      {_server, url} = start()
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, get("/stream"))
      RawHTTP.begun(socket)
      assert_receive {:writer, writer}
      send(writer, {:write, "part"})
      assert RawHTTP.chunk(socket) == "part"

      assert capture_log(fn ->
               send(writer, :crash)
               assert RawHTTP.chunk(socket) == :closed
             end) =~ "broken"
    end

    test "waits for its client, which is closed after a time without reading" do
      {server, url} = start(write_timeout: 300)
      socket = RawHTTP.connect(url, recbuf: 4_096)
      RawHTTP.put(socket, get("/stream"))
      assert_receive {:writer, writer}
      monitor = monitor(writer)
      part = :binary.copy("x", 1024 * 1024)
      for _ <- 1..200, do: send(writer, {:write, part})
      assert_receive {:wrote, :ok}
      # The system's buffers are full long before.
      assert_receive {:DOWN, ^monitor, :process, _, reason} when reason in [:killed, :normal]

      assert count_messages({:wrote, :ok}) < 100
      assert eventually(fn -> match?(%{streams: 0, connections: 0}, Server.info(server)) end)
      RawHTTP.close(socket)
    end

    test "counts apart from requests, up to a limit" do
      {server, url} = start(max_streams: 2, max_requests: 1)

      sockets =
        for _ <- 1..2 do
          socket = RawHTTP.connect(url)
          RawHTTP.put(socket, get("/stream"))
          assert RawHTTP.begun(socket) =~ "HTTP/1.1 200"
          socket
        end

      assert %{streams: 2, requests: 0} = Server.info(server)
      assert {503, %{"retry-after" => "1"}, _} = once(url, get("/stream"))
      assert {299, _, _} = once(url, get("/status/299"))
      Enum.each(sockets, &RawHTTP.close/1)
    end
  end

  defp count_messages(message, count \\ 0) do
    receive do
      ^message -> count_messages(message, count + 1)
    after
      0 -> count
    end
  end

  # Milliseconds until the server has closed, and the statuses.
  defp closed_after(socket) do
    {time, bytes} = :timer.tc(fn -> RawHTTP.rest(socket) end)
    {div(time, 1000), statuses(bytes)}
  end

  describe "a slow client" do
    test "is closed: no head" do
      {server, url} = start(idle_timeout: 300, head_timeout: 100)
      assert {time, []} = closed_after(RawHTTP.connect(url))
      assert time in 250..2_000
      assert eventually(fn -> match?(%{connections: 0}, Server.info(server)) end)
    end

    test "is closed: part of a head, also byte by byte" do
      {_server, url} = start(idle_timeout: 5_000, head_timeout: 300)

      for first <- ["G", "GET /echo HTTP/1.1\r\nhost: a\r\n"] do
        socket = RawHTTP.connect(url)
        RawHTTP.put(socket, first)
        pid = self()

        spawn_link(fn ->
          # A closed socket ends it.
          Enum.find(1..50, fn _ ->
            Process.sleep(20)
            RawHTTP.put(socket, "x") != :ok
          end)

          send(pid, :done)
        end)

        assert {time, [408]} = closed_after(socket)
        assert time in 250..2_000
      end
    end

    test "is closed: part of a second head" do
      {_server, url} = start(idle_timeout: 5_000, head_timeout: 200)
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, get("/status/299"))
      assert {299, _, _} = RawHTTP.response(socket)
      RawHTTP.put(socket, "GET / HT")
      assert {_time, [408]} = closed_after(socket)
    end

    test "is closed: nothing after a response" do
      {_server, url} = start(idle_timeout: 200)
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, get("/status/299"))
      assert {299, _, _} = RawHTTP.response(socket)
      assert {time, []} = closed_after(socket)
      assert time in 150..2_000
    end

    test "is refused: a body that is too slow" do
      {_server, url} = start(body_timeout: 200, body_rate: 1_000)

      for more <- ["content-length: 100000\r\n\r\n", "transfer-encoding: chunked\r\n\r\n"] do
        assert {time, [408]} =
                 (fn ->
                    socket = RawHTTP.connect(url)
                    RawHTTP.put(socket, post("/echo", more))
                    closed_after(socket)
                  end).()

        assert time in 150..2_000
      end

      # At twice the rate it may go on.
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, post("/echo", "content-length: 1000\r\n\r\n"))

      for _ <- 1..10 do
        Process.sleep(50)
        RawHTTP.put(socket, String.duplicate("x", 100))
      end

      assert {200, _, body} = RawHTTP.response(socket)
      assert byte_size(body) == 1_000
    end

    test "costs no process" do
      {_server, url} = start()
      before = length(Process.list())
      sockets = for _ <- 1..500, do: RawHTTP.connect(url)
      heads = for socket <- Enum.take(sockets, 250), do: RawHTTP.put(socket, "GET /echo HT")
      body = post("/echo", "content-length: 1000\r\n\r\nabc")
      for socket <- Enum.drop(sockets, 250), do: RawHTTP.put(socket, body)
      assert Enum.all?(heads, &(&1 == :ok))
      assert {299, _, _} = once(url, get("/status/299"))
      # Other tests start processes too.
      assert length(Process.list()) - before < 200
      Enum.each(sockets, &RawHTTP.close/1)
    end
  end

  describe "a handler" do
    test "that takes too long is killed" do
      {server, url} = start(request_timeout: 200)
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, post("/wait", "content-length: 0\r\n\r\n"))
      assert_receive {:waiting, pid}
      monitor = monitor(pid)
      assert {503, %{"retry-after" => "1"}, "Service Unavailable\n"} = RawHTTP.response(socket)
      assert_receive {:DOWN, ^monitor, :process, _, :killed}
      assert eventually(fn -> match?(%{requests: 0}, Server.info(server)) end)
    end

    test "is killed when the client of a request that changes nothing has gone" do
      {server, url} = start()

      for {bytes, reason} <- [
            {get("/wait"), :killed},
            {post("/wait", "content-length: 0\r\n\r\n"), :normal}
          ] do
        socket = RawHTTP.connect(url)
        RawHTTP.put(socket, bytes)
        assert_receive {:waiting, pid}
        monitor = monitor(pid)
        RawHTTP.close(socket)
        assert eventually(fn -> match?(%{connections: 0}, Server.info(server)) end)
        send(pid, {:answer, "nobody reads it"})
        assert_receive {:DOWN, ^monitor, :process, _, ^reason}
      end

      assert eventually(fn -> match?(%{requests: 0}, Server.info(server)) end)
    end

    test "gets requests up to a limit; others wait, up to a limit and for a time" do
      {server, url} = start(max_requests: 1, max_queue: 1, queue_timeout: 400)
      ask = fn path -> RawHTTP.connect(url) |> tap(&RawHTTP.put(&1, get(path))) end
      first = ask.("/wait")
      assert_receive {:waiting, pid}
      second = ask.("/status/299")
      assert eventually(fn -> match?(%{requests: 1, waiting: 1}, Server.info(server)) end)
      assert {503, %{"retry-after" => "1"}, _} = RawHTTP.response(ask.("/status/299"))
      send(pid, {:answer, "done"})
      assert {200, _, "done"} = RawHTTP.response(first)
      assert {299, _, _} = RawHTTP.response(second)

      _third = ask.("/wait")
      assert_receive {:waiting, _pid}
      assert {503, _, _} = RawHTTP.response(ask.("/status/299"))
    end

    test "is called while all bodies together are within a limit" do
      {_server, url} = start(max_bodies: 1_500)
      body = String.duplicate("x", 1_000)
      bytes = &post(&1, "content-length: 1000\r\n\r\n#{body}")
      first = RawHTTP.connect(url)
      RawHTTP.put(first, bytes.("/wait"))
      assert_receive {:waiting, pid}
      assert {503, _, _} = once(url, bytes.("/echo"))
      send(pid, {:answer, "done"})
      assert {200, _, "done"} = RawHTTP.response(first)
      # The count ends with the process; the test has parts of the bodies in its messages still.
      for _ <- 1..5 do
        assert eventually(fn -> match?({200, _, ""}, once(url, bytes.("/request"))) end)
      end

      assert {:messages, [_, _, _, _, _ | _]} = Process.info(self(), :messages)
    end
  end

  describe "connections" do
    test "are limited, in all and of one address" do
      for {option, limit} <- [max_connections: 3, max_connections_per_address: 3] do
        {server, url} = start([{option, limit}])
        sockets = for _ <- 1..3, do: RawHTTP.connect(url)
        assert eventually(fn -> match?(%{connections: 3}, Server.info(server)) end)
        turned_away = RawHTTP.connect(url)

        assert {503, %{"retry-after" => "1", "connection" => "close"}, ""} =
                 RawHTTP.response(turned_away)

        assert RawHTTP.rest(turned_away) == ""
        RawHTTP.close(hd(sockets))
        assert eventually(fn -> match?({299, _, _}, once(url, get("/status/299"))) end)
        Enum.each(sockets, &RawHTTP.close/1)
      end
    end

    test "ten thousand of them are idle at no cost" do
      # Both ends are files of the system.
      {limit, 0} = System.cmd("sh", ["-c", "ulimit -n"])
      limit = limit |> String.trim() |> Integer.parse()
      limit = with {number, ""} <- limit, do: number, else: (_unlimited -> 1_000_000)
      count = min(10_000, limit - 2_000)
      {server, url} = start(max_connections: count + 1, max_connections_per_address: count + 1)
      before = length(Process.list())
      script = Path.expand("../../support/web_clients.py", __DIR__)
      arguments = [script, to_string(URI.parse(url).port), to_string(count), "fresh"]
      python = System.find_executable("python3")
      clients = Port.open({:spawn_executable, python}, [:binary, line: 100, args: arguments])
      assert_receive {^clients, {:data, {:eol, "ready"}}}, 60_000
      assert eventually(fn -> match?(%{connections: ^count}, Server.info(server)) end)
      {time, response} = :timer.tc(fn -> once(url, get("/status/299")) end)
      assert {299, _, _} = response
      assert time < 1_000_000
      # Tests beside this one start some processes too.
      assert length(Process.list()) - before < 1_000
      Port.close(clients)
      assert eventually(fn -> match?(%{connections: 0}, Server.info(server)) end)
    end

    test "of IPv6 and of a unix socket" do
      {_server, url} = start(ip: {0, 0, 0, 0, 0, 0, 0, 1})
      assert "http://[::1]:" <> _ = url
      once(url, get("/request"))
      assert_receive {:request, %{peer: {0, 0, 0, 0, 0, 0, 0, 1}}}

      path = socket_path()
      {server, url} = start(socket: path, max_connections_per_address: 1)
      assert %{port: nil, url: "unix:" <> ^path} = Server.info(server)
      assert Bitwise.band(File.stat!(path).mode, 0o777) == 0o600
      _open = RawHTTP.connect(url)
      once(url, get("/request"))
      assert_receive {:request, %{peer: :unix}}

      refute path
             |> Path.dirname()
             |> File.ls!()
             |> Enum.any?(&(&1 =~ Path.basename(path) <> "."))
    end
  end

  # Short, since the path of a socket has at most 107 bytes.
  defp socket_path do
    path = Path.join(System.tmp_dir!(), "skb#{System.unique_integer([:positive])}.sock")
    on_exit(fn -> File.rm(path) end)
    path
  end

  describe "a book" do
    test "is served with the options of Skillbook.Web" do
      book = :"web_server_#{System.unique_integer([:positive])}"
      start_supervised!({Skillbook, name: book, watch: false})
      none = [book: book, authenticate: :none, port: 0]
      server = start_supervised!({Server, none})
      %{url: "http://" <> host = url} = Server.info(server)
      get = &String.replace(get(&1), "host: a", "host: #{host}")
      assert {200, %{"content-length" => length}, body} = once(url, get.("/api/skills"))
      assert byte_size(body) == String.to_integer(length)
      # As long as GET's, and without the body.
      head = String.replace(get.("/api/skills"), "GET", "HEAD")
      assert {200, %{"content-length" => ^length}, ""} = once(url, head, method: "HEAD")
      assert {421, _, _} = once(url, get("/api/skills"))

      assert {:error, error} = Server.start_link(none ++ [ip: {0, 0, 0, 0}])
      assert Exception.message(error) =~ "0.0.0.0:0 can be reached from other machines"
      assert {:error, error} = Server.start_link(book: book, sever: 1)
      assert Exception.message(error) =~ "unknown option :sever for Skillbook.Web.Server"
      assert {:error, error} = Server.start_link(book: book, serve: [:pages])
      assert Exception.message(error) =~ "as the option :serve of Skillbook.Web, got: [:pages]"
      assert {:error, error} = Server.start_link(book: book, handler: & &1)
      assert Exception.message(error) =~ "expected no :handler beside a book"
    end
  end

  describe "a start" do
    test "is refused with a text that says how to go on" do
      {_server, "http://" <> address} = start()
      [_ip, port] = String.split(address, ":")
      path = socket_path()
      {_server, _url} = start(socket: path)
      file = socket_path()
      File.write!(file, "text")

      rows = [
        {[port: String.to_integer(port)],
         "#{address} is in use by another program; stop it, or choose another :port (0 takes " <>
           "any that is free)"},
        {[ip: {203, 0, 113, 1}, port: 0],
         "this machine has no address 203.0.113.1:0; choose another :ip, such as {127, 0, 0, 1}"},
        {[socket: path],
         "the socket #{path} is in use by another server; stop it, or choose another :socket"},
        {[socket: file], "cannot listen on #{file}: there is a file that is no socket"},
        {[socket: "/missing/x.sock"],
         "cannot listen on /missing/x.sock: no such file or directory"},
        {[port: 70_000],
         "expected a port from 0 to 65535 as the option :port of Skillbook.Web.Server, " <>
           "got: 70000"},
        {[ip: "127.0.0.1"],
         "expected an address such as {127, 0, 0, 1} as the option :ip of " <>
           ~s(Skillbook.Web.Server, got: "127.0.0.1")},
        {[max_body: 0],
         "expected a number from 1 on as the option :max_body of Skillbook.Web.Server, got: 0"},
        {[head_timeout: -1],
         "expected a number of milliseconds as the option :head_timeout of " <>
           "Skillbook.Web.Server, got: -1"},
        {[tls: [certfile: "x"]],
         "expected both :certfile and :keyfile as the option :tls of Skillbook.Web.Server, " <>
           ~s(got: [certfile: "x"])},
        {[tls: [certfile: "/missing/a", keyfile: "/missing/b"]],
         "TLS: the certfile /missing/a cannot be read: no such file or directory"},
        {[tls: [certfile: file, keyfile: file]], "TLS: the certfile #{file} has no certificate"}
      ]

      for {options, text} <- rows do
        options = Keyword.merge([handler: handler(self())], options)
        assert {:error, error} = Server.start_link(options)
        assert {options[:x], Exception.message(error)} == {nil, text}
      end

      assert File.read!(file) == "text"
      assert {:error, error} = Server.start_link(port: 0)
      assert Exception.message(error) == "Skillbook.Web.Server needs the option :book"
    end

    test "takes the place of a unix socket that nobody answers" do
      path = socket_path()
      {:ok, listener} = :gen_tcp.listen(0, [:local, ifaddr: {:local, path}])
      :gen_tcp.close(listener)
      assert File.exists?(path)
      {_server, url} = start(socket: path)
      assert {299, _, _} = once(url, get("/status/299"))
    end

    # The supervisor of the requests reports its end.
    @tag :capture_log
    test "after a crash takes the port again at once" do
      Process.flag(:trap_exit, true)
      options = [handler: handler(self())]
      {:ok, server} = Server.start_link(options ++ [port: 0])
      %{port: port, url: url} = Server.info(server)
      sockets = for _ <- 1..5, do: RawHTTP.connect(url)
      for socket <- sockets, do: RawHTTP.put(socket, get("/wait"))
      for _ <- 1..5, do: assert_receive({:waiting, _pid})

      {:links, links} = Process.info(server, :links)
      [tasks] = for pid <- links, is_pid(pid), pid != self(), do: pid
      monitor = monitor(tasks)
      Process.exit(server, :kill)
      assert_receive {:EXIT, ^server, :killed}
      {:ok, _server} = Server.start_link(options ++ [port: port])
      assert_receive {:DOWN, ^monitor, :process, _, _}
      assert {299, _, _} = once(url, get("/status/299"))

      # Their processes may die before the connections.
      for socket <- sockets, do: assert(statuses(RawHTTP.rest(socket)) in [[], [500]])
    end
  end

  describe "a stop" do
    test "ends event streams at once, and lets requests finish" do
      {:ok, server} = Server.start_link(handler: handler(self()), port: 0, drain: 5_000)
      url = Server.info(server).url
      idle = RawHTTP.connect(url)
      used = RawHTTP.connect(url)
      RawHTTP.put(used, get("/status/299"))
      assert {299, _, _} = RawHTTP.response(used)
      events = RawHTTP.connect(url)
      RawHTTP.put(events, get("/events"))
      RawHTTP.begun(events)
      assert_receive {:writer, writer}
      monitor = monitor(writer)
      request = RawHTTP.connect(url)
      RawHTTP.put(request, get("/wait"))
      assert_receive {:waiting, pid}
      stop = Task.async(fn -> GenServer.stop(server) end)

      assert_receive {:DOWN, ^monitor, :process, _, :killed}
      assert RawHTTP.chunk(events) == ""
      for socket <- [idle, used, events], do: assert(RawHTTP.rest(socket) == "")
      %URI{port: port} = URI.parse(url)
      assert {:error, :econnrefused} = :gen_tcp.connect(~c"127.0.0.1", port, [])
      assert Task.yield(stop, 100) == nil

      send(pid, {:answer, "in time"})
      assert {200, %{"connection" => "close"}, "in time"} = RawHTTP.response(request)
      assert RawHTTP.rest(request) == ""
      assert Task.await(stop, :infinity) == :ok
    end

    test "cuts requests after a time" do
      {:ok, server} = Server.start_link(handler: handler(self()), port: 0, drain: 200)
      url = Server.info(server).url
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, post("/wait", "content-length: 0\r\n\r\n"))
      assert_receive {:waiting, pid}
      monitor = monitor(pid)
      {time, :ok} = :timer.tc(fn -> GenServer.stop(server) end)
      assert div(time, 1000) in 150..3_000
      assert RawHTTP.response(socket) == :closed
      assert_receive {:DOWN, ^monitor, :process, _, _}
    end

    test "removes a unix socket" do
      path = socket_path()
      {:ok, server} = Server.start_link(handler: handler(self()), socket: path)
      assert File.exists?(path)
      GenServer.stop(server)
      assert eventually(fn -> not File.exists?(path) end)
    end
  end

  describe "TLS" do
    setup do
      {certfile, keyfile, authority} = certificate()
      {:ok, certfile: certfile, keyfile: keyfile, authority: authority}
    end

    defp certificate do
      {tls, authority} = Certificates.make(["localhost"])
      # PKCS 8, RFC 8410.
      {_type, der} = tls[:key]
      private = :public_key.der_decode(:ECPrivateKey, der) |> elem(2)
      key = Base.decode16!("302E020100300506032B657004220420") <> private
      folder = Path.join(System.tmp_dir!(), "skb-tls-#{System.unique_integer([:positive])}")
      File.mkdir_p!(folder)
      on_exit(fn -> File.rm_rf(folder) end)
      [certfile, keyfile] = for name <- ["cert.pem", "key.pem"], do: Path.join(folder, name)
      File.write!(certfile, :public_key.pem_encode([{:Certificate, tls[:cert], :not_encrypted}]))
      key = "-----BEGIN PRIVATE KEY-----\n#{Base.encode64(key)}\n-----END PRIVATE KEY-----\n"
      File.write!(keyfile, key)
      {certfile, keyfile, authority}
    end

    defp fetch(url, authority, options \\ []) do
      url = String.replace(url, "127.0.0.1", "localhost")
      HTTP.request([url: url <> "/request", method: :get], [cacertfile: authority] ++ options)
    end

    test "over HTTP/1.1 and HTTP/2", context do
      {_server, url} = start(tls: [certfile: context.certfile, keyfile: context.keyfile])

      for protocol <- [:http1, :http2] do
        assert {:ok, %{status: 200}} = fetch(url, context.authority, protocol: protocol)
        assert_receive {:request, %{scheme: :https, host: "localhost:" <> _}}
      end

      # OTP has no signatures of this key in TLS 1.2.
      script = """
      import socket, ssl, sys, warnings
      warnings.simplefilter("ignore")
      context = ssl._create_unverified_context()
      # Otherwise Debian's OpenSSL itself refuses the old version.
      context.set_ciphers("DEFAULT:@SECLEVEL=0")
      context.minimum_version = context.maximum_version = ssl.TLSVersion[sys.argv[2]]
      try:
          plain = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
          print(context.wrap_socket(plain).version())
      except ssl.SSLError:
          print("refused")
      """

      for {version, outcome} <- [TLSv1_3: "TLSv1.3", TLSv1_2: "TLSv1.2", TLSv1_1: "refused"] do
        arguments = ["-c", script, to_string(URI.parse(url).port), to_string(version)]
        assert System.cmd("python3", arguments) == {outcome <> "\n", 0}
      end

      # A client without TLS.
      assert once(String.replace(url, "https", "http"), get("/request")) == :closed
    end

    test "a handshake that is none, or never ends, ends the connection", context do
      files = [certfile: context.certfile, keyfile: context.keyfile]
      {_server, url} = start(tls: files, head_timeout: 200)

      for bytes <- [
            "",
            <<22, 3, 1>>,
            <<22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3>>,
            <<22, 3, 3, 255, 255>> <> String.duplicate("a", 70_000),
            <<21, 3, 3, 0, 2, 2, 40>>,
            String.duplicate("a", 1_000)
          ] do
        socket = RawHTTP.connect(url)
        RawHTTP.put(socket, bytes)
        # At most an alert.
        assert <<21, 3, 3, 0, 2, _level, _reason>> = closed(RawHTTP.rest(socket, "", 5_000))
      end
    end

    test "a client without a name, or with another one, is served", context do
      {_server, url} = start(tls: [certfile: context.certfile, keyfile: context.keyfile])

      for name <- [:disable, 'other.example'] do
        options = [verify: :verify_none, server_name_indication: name, log_level: :none]
        port = URI.parse(url).port
        assert {:ok, tls} = :ssl.connect('127.0.0.1', port, options, 5_000)
        :ssl.close(tls)
      end
    end

    defp closed(""), do: <<21, 3, 3, 0, 2, 0, 0>>
    defp closed(bytes), do: bytes

    test "reads changed files again, and keeps the certificate if they are wrong", context do
      {_server, url} = start(tls: [certfile: context.certfile, keyfile: context.keyfile])
      assert {:ok, _} = fetch(url, context.authority)
      {certfile, keyfile, authority} = certificate()

      log =
        capture_log(fn ->
          File.cp!(certfile, context.certfile)
          # The files are looked at every two seconds.
          Process.sleep(5_000)
          assert {:ok, _} = fetch(url, context.authority)
          File.cp!(keyfile, context.keyfile)
          assert eventually(fn -> match?({:ok, _}, fetch(url, authority)) end)
        end)

      assert log =~
               "#{url} keeps its certificate: the key of #{context.keyfile} is not that of " <>
                 "the certificate in #{context.certfile}"

      assert {:error, _} = fetch(url, context.authority, connect_timeout: 1_000)
    end
  end
end
