defmodule Skillbook.HTTPTest do
  use ExUnit.Case, async: true
  use Skillbook.HTTPConformance, adapter: Skillbook.HTTP.Native

  import ExUnit.CaptureLog
  import Skillbook.Eventually, only: [monitor: 1]
  alias Skillbook.HTTP
  alias Skillbook.HTTP.Library
  alias Skillbook.HTTP.{Error, Response}
  alias Skillbook.Test.{Certificates, HTTP2, HTTPServer}

  doctest Skillbook.HTTP
  doctest Skillbook.HTTP.Error
  doctest Skillbook.HTTP.Request
  doctest Skillbook.HTTP.Response

  @secret "s3cret-0123456789"

  describe "limits" do
    # Each of these comes as fast as it is read, and never ends.
    test "endless responses end at the timeout" do
      stream = {:head, 200, [{"content-type", "text/event-stream"}]}

      for {name, steps} <- [
            {"100 Continue", [{:endless, "HTTP/1.1 100 Continue\r\n\r\n"}]},
            {"comments", [stream, {:endless, "8\r\n: ping\n\n\r\n"}]},
            {"empty events", [stream, {:endless, "8\r\ndata: \n\n\r\n"}]},
            {"chunks of a byte", [stream, {:endless, "1\r\na\r\n"}]},
            {"a body without a length", [{:raw, "HTTP/1.0 200 OK\r\n\r\n"}, {:endless, "abc"}]}
          ] do
        {_server, url} = HTTPServer.start([steps])
        started = System.monotonic_time(:millisecond)
        ignore = fn _part, acc -> {:cont, acc} end
        assert {:error, error, :acc} = HTTP.stream(url, [timeout: 500], :acc, ignore), name
        assert {name, error.kind} == {name, :timeout}

        assert Exception.message(error) =~
                 ~r/\Alocalhost:\d+: the time limit for the whole response has passed\z/

        assert (System.monotonic_time(:millisecond) - started) in 490..3_000, name
        assert_receive :hung_up
      end
    end

    test "a reader that takes too long gets a timeout" do
      {_server, url} =
        HTTPServer.start([[{:head, 200, []}, {:chunk, "a"}, {:chunk, "b"}, :silent]])

      slow = fn part, parts ->
        if part == {:data, "a"}, do: assert_receive(:hung_up)
        {:cont, [part | parts]}
      end

      assert {:error, %{kind: :timeout}, [_ | _]} = HTTP.stream(url, [timeout: 400], [], slow)
      assert_receive {:request, _}
      assert_receive :played
      refute_received _
    end

    test "a whole body has a maximum size" do
      for {steps, size} <- [
            {HTTPServer.answer("12345678"), 8},
            {[{:head, 200, []}, {:chunk, "1234"}, {:chunk, "56789"}, :silent], 8}
          ] do
        {_server, url} = HTTPServer.start([steps])

        case HTTP.request(url, max_body: size) do
          {:ok, response} ->
            assert response.body == "12345678"

          {:error, error} ->
            assert Exception.message(error) =~
                     ~r/\Alocalhost:\d+: the response has more than 8 bytes\z/

            assert error.kind == :too_large
        end
      end

      assert_receive :hung_up
    end

    test "a slow reader slows the server, and its mailbox stays empty" do
      chunk = "ffff\r\n" <> String.duplicate("a", 65_535) <> "\r\n"
      {_server, url} = HTTPServer.start([[{:head, 200, []}, {:endless, chunk}]])

      slow = fn
        {:head, 200, _headers}, size ->
          assert_receive {:request, _}
          {:cont, size}

        {:data, data}, size ->
          Process.sleep(50)
          # Neither another part, nor word that the server could not send.
          assert {:message_queue_len, 0} = Process.info(self(), :message_queue_len)
          size = size + byte_size(data)
          {if(size > 300_000, do: :halt, else: :cont), size}
      end

      assert {:halted, _} = HTTP.stream(url, [], 0, slow)
      # As much as the system's own buffers take.
      assert_receive {:sent, sent}
      assert sent < 20_000_000
    end
  end

  test "a question after the end of a response is answered" do
    {_server, url} = HTTPServer.start([HTTPServer.answer("one")])
    client = %{protocol: :http1, connect_timeout: 5_000, cacertfile: nil}
    proxies = %{http_proxy: nil, https_proxy: nil, no_proxy: nil}
    {:ok, client} = Library.http_client(Map.merge(client, proxies))
    reference = make_ref()
    limits = %{idle_timeout: 5_000, timeout: 5_000}
    {:ok, stream} = Library.http_request(client, reference, "GET", url, [], nil, limits)
    assert_receive {^reference, {:head, 200, _}}
    Library.http_next(stream, reference)
    assert_receive {^reference, {:last, "one"}}

    # Nothing is left to read, and the one who would answer is gone or goes.
    for _ <- 1..100 do
      Library.http_next(stream, reference)
      assert_receive {^reference, {:error, :closed, "the client failed"}}
    end
  end

  describe "connections" do
    test "are pooled" do
      answer = HTTPServer.answer("one")

      {_server, url} =
        HTTPServer.start([
          answer ++ [:read] ++ HTTPServer.answer("two") ++ [:read, {:head, 204, []}]
        ])

      for {body, status} <- [{"one", 200}, {"two", 200}, {"", 204}] do
        assert {:ok, %{body: ^body, status: ^status}} = HTTP.request(url)
        # A new connection would be taken if the last one came back later than it.
        Process.sleep(20)
      end
    end

    test "are pooled after a halted response that ends at once" do
      steps = [
        {:head, 200, []},
        {:chunk, "one"},
        {:await, :go_on},
        :end,
        :read | HTTPServer.answer("two")
      ]

      {server, url} = HTTPServer.start([steps])

      assert {:halted, _} =
               HTTP.stream(url, [], nil, fn part, _ ->
                 {if(match?({:data, _}, part), do: :halt, else: :cont), nil}
               end)

      send(server, :go_on)
      Process.sleep(20)
      assert {:ok, %{body: "two"}} = HTTP.request(url)
    end

    test "closed by the server are replaced" do
      one = {:raw, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none"}
      {_server, url} = HTTPServer.start([[one], HTTPServer.answer("two")])
      assert {:ok, %{body: "one"}} = HTTP.request(url: url, method: :post, body: "x")
      Process.sleep(50)
      assert {:ok, %{body: "two"}} = HTTP.request(url: url, method: :post, body: "x")
    end

    test "closed at the next request: only safe requests are repeated" do
      for {method, body, expected} <- [
            {:get, nil, "two"},
            {:put, "x", "two"},
            {:delete, nil, "two"},
            {:post, "x", nil},
            {:patch, "x", nil}
          ] do
        {_server, url} =
          HTTPServer.start([HTTPServer.answer("one") ++ [:read], HTTPServer.answer("two")])

        assert {:ok, %{body: "one"}} = HTTP.request(url)
        # The connection returns to the pool in the background, shortly after the response.
        Process.sleep(50)
        outcome = HTTP.request(url: url, method: method, body: body)

        if expected,
          do: assert({:ok, %{body: ^expected}} = outcome),
          else: assert({:error, %{kind: :closed}} = outcome)
      end
    end

    test "that always close are not retried endlessly" do
      {_server, url} = HTTPServer.start([[], [], HTTPServer.answer("three")])
      assert {:error, %{kind: :closed} = error} = HTTP.request(url)
      assert Exception.message(error) =~ ~r/\Alocalhost:\d+: the connection broke\z/
    end

    test "may have interim responses" do
      {_server, url} =
        HTTPServer.start([[{:raw, "HTTP/1.1 100 Continue\r\n\r\n"} | HTTPServer.answer("fine")]])

      assert {:ok, %{status: 200, body: "fine"}} = HTTP.request(url)
    end

    test "with other settings are separate" do
      {_server, url} = HTTPServer.start([HTTPServer.answer("one"), HTTPServer.answer("two")])
      assert {:ok, %{body: "one"}} = HTTP.request(url)
      assert {:ok, %{body: "two"}} = HTTP.request(url, protocol: :http1)
    end

    test "a thousand streams at once" do
      {server, url} =
        HTTPServer.start(
          {:each, 1000, [{:head, 200, []}, {:chunk, "a"}, {:await, :all}, {:chunk, "b"}, :end]}
        )

      test = self()

      readers =
        for _ <- 1..1000 do
          Task.async(fn ->
            HTTP.stream(url, [timeout: 120_000], "", fn
              {:head, 200, _}, text ->
                {:cont, text}

              {:data, data}, text ->
                send(test, {:got, data})
                {:cont, text <> data}
            end)
          end)
        end

      for _ <- 1..1000, do: assert_receive({:got, "a"}, 60_000)
      send(server, :all)
      assert Enum.all?(Task.await_many(readers, :infinity), &(&1 == {:ok, "ab"}))
    end
  end

  describe "gzip" do
    test "is requested and unpacked" do
      body = String.duplicate("some text, ", 10_000)
      packed = :zlib.gzip(body)

      {_server, url} =
        HTTPServer.start(
          List.duplicate(HTTPServer.answer(packed, [{"content-encoding", "gzip"}]), 2)
        )

      assert {:ok, response} = HTTP.request(url)
      assert response.body == body
      assert Map.keys(response.headers) == ["connection"]
      assert_receive {:request, %{headers: %{"accept-encoding" => "gzip"}}}

      # It is unpacked though it was not asked for.
      assert {:ok, %{body: ^body}} = HTTP.request(url, compressed: false, protocol: :http1)
      assert_receive {:request, %{headers: %{"accept-encoding" => "identity"}}}
    end

    test "may have several members" do
      packed = :zlib.gzip("one, ") <> :zlib.gzip("two")

      {_server, url} =
        HTTPServer.start([HTTPServer.answer(packed, [{"content-encoding", "x-gzip"}])])

      assert {:ok, %{body: "one, two"}} = HTTP.request(url)
    end

    test "is unpacked as it arrives" do
      zlib = :zlib.open()
      :ok = :zlib.deflateInit(zlib, :default, :deflated, 31, 8, :default)
      one = IO.iodata_to_binary(:zlib.deflate(zlib, "one", :sync))
      two = IO.iodata_to_binary(:zlib.deflate(zlib, "two", :finish))
      head = {:head, 200, [{"content-encoding", "gzip"}]}

      {server, url} =
        HTTPServer.start([[head, {:chunk, one}, {:await, :one}, {:chunk, two}, :end]])

      assert {:ok, ["two", "one"]} =
               HTTP.stream(url, [], [], fn
                 {:head, _, _}, texts ->
                   {:cont, texts}

                 {:data, text}, texts ->
                   if text == "one", do: send(server, :one)
                   {:cont, [text | texts]}
               end)
    end

    test "that exceeds the maximum size" do
      # 128 MiB, in about 128 KiB.
      zlib = :zlib.open()
      :ok = :zlib.deflateInit(zlib, :default, :deflated, 31, 8, :default)
      zeros = :binary.copy(<<0>>, 1024 * 1024)

      packed =
        for n <- 1..128, do: :zlib.deflate(zlib, zeros, if(n == 128, do: :finish, else: :none))

      packed = IO.iodata_to_binary(packed)
      answer = HTTPServer.answer(packed, [{"content-encoding", "gzip"}])
      {_server, url} = HTTPServer.start([answer, answer])

      assert {:error, error} = HTTP.request(url)

      assert Exception.message(error) =~
               ~r/\Alocalhost:\d+: the response has more than 8388608 bytes\z/

      # A reader of parts gets small ones.
      largest = fn
        {:head, _, _}, _ -> {:cont, 0}
        {:data, data}, largest -> {:cont, max(byte_size(data), largest)}
      end

      assert {:ok, largest} = HTTP.stream(url, [], 0, largest)
      assert largest <= 64 * 1024
    end

    test "that is invalid or cut off" do
      packed = :zlib.gzip("some text")

      for {body, kind, reason} <- [
            {"no gzip at all, though it is long enough", :malformed, "its gzip data is broken"},
            {packed <> "and more", :malformed, "its gzip data is broken"},
            {binary_part(packed, 0, byte_size(packed) - 4), :closed,
             "its gzip data ends too early"}
          ] do
        {_server, url} =
          HTTPServer.start([HTTPServer.answer(body, [{"content-encoding", "gzip"}])])

        assert {:error, %Error{kind: ^kind, reason: ^reason}} = HTTP.request(url)
      end
    end

    test "without data is empty" do
      {_server, url} =
        HTTPServer.start([
          [{:head, 200, [{"content-encoding", "gzip"}, {"content-length", "20"}]}]
        ])

      assert {:ok, %{body: ""}} = HTTP.request(url: url, method: :head)
    end
  end

  describe "redirects" do
    defp redirect(status, to), do: [{:head, status, [{"location", to}, {"content-length", "0"}]}]

    test "are followed only with :redirects" do
      {_server, url} =
        HTTPServer.start([redirect(302, "/b"), redirect(302, "/b"), HTTPServer.answer("b")])

      assert {:ok, %{status: 302, headers: %{"location" => ["/b"]}}} =
               HTTP.request(url, protocol: :http1)

      assert {:ok, %{status: 200, body: "b"}} = HTTP.request(url <> "/a?b", redirects: 1)
      assert_receive {:request, %{line: "GET /a?b HTTP/1.1"}}
      assert_receive {:request, %{line: "GET /b HTTP/1.1"}}
    end

    test "are limited" do
      {_server, url} = HTTPServer.start(List.duplicate(redirect(302, "/"), 3))
      assert {:error, error} = HTTP.request(url, redirects: 2)
      assert error.kind == :redirect
      assert Exception.message(error) =~ ~r/\Alocalhost:\d+: there are more than 2 redirects\z/
      assert_receive :played
    end

    test "keep the method, or make it a GET" do
      for {status, method, line, body} <- [
            {301, :post, "GET", ""},
            {302, :post, "GET", ""},
            {302, :put, "PUT", "x"},
            {303, :post, "GET", ""},
            {303, :put, "GET", ""},
            {307, :post, "POST", "x"},
            {308, :patch, "PATCH", "x"}
          ] do
        {_server, url} = HTTPServer.start([redirect(status, "/b"), HTTPServer.answer("")])
        headers = [{"content-type", "text/plain"}]

        assert {:ok, %{status: 200}} =
                 HTTP.request([url: url, method: method, body: "x", headers: headers],
                   redirects: 1
                 )

        assert_receive {:request, %{line: first}}
        assert first =~ ~r/\A#{String.upcase(to_string(method))} /
        assert_receive {:request, %{line: second, body: ^body, headers: headers}}
        assert {status, second} == {status, "#{line} /b HTTP/1.1"}
        assert Map.has_key?(headers, "content-type") == (body == "x")
      end
    end

    test "send credentials to no other host" do
      headers = [{"Authorization", @secret}, {"cookie", @secret}, {"x-other", "kept"}]
      {_server, other} = HTTPServer.start([HTTPServer.answer("other")])
      {_server, url} = HTTPServer.start([redirect(302, "/b"), redirect(302, other <> "/c")])
      assert {:ok, %{body: "other"}} = HTTP.request([url: url, headers: headers], redirects: 5)

      assert_receive {:request, %{line: "GET / HTTP/1.1", headers: %{"authorization" => @secret}}}

      assert_receive {:request,
                      %{
                        line: "GET /b HTTP/1.1",
                        headers: %{"authorization" => @secret, "cookie" => _}
                      }}

      assert_receive {:request,
                      %{line: "GET /c HTTP/1.1", headers: %{"x-other" => "kept"} = headers}}

      refute Map.has_key?(headers, "authorization") or Map.has_key?(headers, "cookie")
    end

    test "without a valid target" do
      for {to, reason} <- [
            {"ftp://example.com", "it redirects to an address that cannot be used"},
            {"http://user:password@example.com",
             "it redirects to an address that cannot be used"},
            {"http://", "it redirects to an address that cannot be used"},
            {"a b", "it redirects to an address that cannot be used"}
          ] do
        {_server, url} = HTTPServer.start([redirect(302, to)])
        assert {:error, %{kind: :redirect, reason: ^reason}} = HTTP.request(url, redirects: 5), to
      end

      {tls, authority} = Certificates.make(["localhost"])
      {_server, url} = HTTPServer.start([redirect(302, "http://localhost:1/")], tls: tls)

      assert {:error, %{kind: :redirect, reason: reason}} =
               HTTP.request(url, redirects: 5, cacertfile: authority)

      assert reason == "it redirects to an address without https"
    end
  end

  describe "proxies" do
    test "get the full URL of an http request" do
      {_server, proxy} = HTTPServer.start([HTTPServer.answer("by proxy")])
      proxy = String.replace(proxy, "//", "//ann:#{@secret}@")
      assert {:ok, %{body: "by proxy"}} = HTTP.request("http://example.test/a?b", proxy: proxy)

      assert_receive {:request, %{line: "GET http://example.test/a?b HTTP/1.1", headers: headers}}

      assert headers["proxy-authorization"] == "Basic " <> Base.encode64("ann:#{@secret}")
    end

    test "tunnel https requests" do
      {tls, authority} = Certificates.make(["example.test"])

      {_server, proxy} =
        HTTPServer.start([
          [{:raw, "HTTP/1.1 200 OK\r\n\r\n"}, {:tls, tls}, :read | HTTPServer.answer("within")]
        ])

      options = [proxy: fn -> proxy end, cacertfile: authority]
      assert {:ok, %{body: "within"}} = HTTP.request("https://example.test/a", options)
      assert_receive {:request, %{line: "CONNECT example.test:443 HTTP/1.1"}}
      assert_receive {:request, %{line: "GET /a HTTP/1.1"}}
    end

    test "may refuse" do
      {_server, proxy} =
        HTTPServer.start([
          [{:head, 403, [{"content-length", "0"}]}],
          [{:head, 407, [{"content-length", "0"}]}]
        ])

      for reason <- [
            "the proxy refused the connection: unsuccessful",
            "the proxy refused the connection: proxy authorization required"
          ] do
        assert {:error, error} = HTTP.request("https://example.test/a", proxy: proxy)

        assert {error.kind, Exception.message(error)} ==
                 {:connect, "example.test:443: " <> reason}
      end
    end

    test "with an invalid URL" do
      for proxy <- ["http://", "::", "http://ann:#{@secret}@"] do
        assert {:error, error} = HTTP.request("http://example.test/a", proxy: proxy)

        assert Exception.message(error) ==
                 "example.test:80: expected the proxy's URL in the form http://proxy.example:3128"
      end

      message =
        "expected :env, nil, a URL or a function that returns one as the option :proxy of an " <>
          "HTTP request, got: :hidden"

      assert_raise Skillbook.OptionError, ~r/#{message}/, fn ->
        HTTP.request("http://a", proxy: ~c"http://ann:x@a")
      end
    end
  end

  describe "TLS" do
    test "to an address in the certificate" do
      {tls, authority} = Certificates.make([{127, 0, 0, 1}])

      {_server, "https://localhost:" <> port} =
        HTTPServer.start([HTTPServer.answer("a"), []], tls: tls)

      assert {:ok, %{body: "a"}} =
               HTTP.request("https://127.0.0.1:#{port}", cacertfile: authority)

      assert {:error, error} = HTTP.request("https://localhost:#{port}", cacertfile: authority)

      assert {error.kind, Exception.message(error)} ==
               {:certificate, "localhost:#{port}: TLS: its certificate is for another host"}
    end

    test "with invalid certificates" do
      over = [validity: {{2020, 1, 1}, {2020, 12, 31}}]
      {expired, authority} = Certificates.make(["localhost"], over)
      {trusted, other} = Certificates.make(["localhost"])

      for {tls, cacertfile, reason} <- [
            {expired, authority, "TLS: its certificate has expired"},
            {trusted, authority, "TLS: the authority of its certificate is not trusted"},
            {trusted, nil, "TLS: the authority of its certificate is not trusted"}
          ] do
        {_server, url} = HTTPServer.start([[]], tls: tls)

        assert {:error, %{kind: :certificate, reason: ^reason}} =
                 HTTP.request(url, cacertfile: cacertfile)
      end

      {_server, url} = HTTPServer.start([HTTPServer.answer("a")], tls: trusted)
      assert {:ok, %{body: "a"}} = HTTP.request(url, cacertfile: other)
    end

    test "with an invalid and a valid file of authorities" do
      {tls, authority} = Certificates.make(["localhost"])
      path = authority <> ".new"
      on_exit(fn -> File.rm(path) end)
      {_server, url} = HTTPServer.start([HTTPServer.answer("a")], tls: tls)

      for {content, reason} <- [
            {nil, "no such file or directory"},
            {"no PEM", "it contains none"}
          ] do
        if content, do: File.write!(path, content)
        assert {:error, %{kind: :certificate} = error} = HTTP.request(url, cacertfile: path)
        assert error.reason == "expected certificates in PEM in the file #{path}: #{reason}"
      end

      File.cp!(authority, path)
      assert {:ok, %{body: "a"}} = HTTP.request(url, cacertfile: path)
    end

    test "against a server without it" do
      {_server, "http" <> rest} =
        HTTPServer.start([[{:raw, "HTTP/1.1 400 Bad Request\r\n\r\n"}]], first: :nothing)

      assert {:error, %{kind: :connect, reason: "TLS: " <> _}} = HTTP.request("https" <> rest)
    end
  end

  describe "HTTP/2" do
    defp http2(serve, options \\ []),
      do: HTTPServer.start([[{:http2, serve}]], [first: :nothing] ++ options)

    test "is used if the server offers it" do
      {tls, authority} = Certificates.make(["localhost"])

      serve = fn send ->
        send.(HTTP2.head([{"content-type", "text/plain"}]))
        send.(HTTP2.data("hello", :end))
      end

      {_server, url} = http2(serve, tls: [alpn_preferred_protocols: ["h2", "http/1.1"]] ++ tls)
      assert {:ok, %Response{} = response} = HTTP.request(url, cacertfile: authority)

      assert {response.status, response.headers, response.body} ==
               {200, %{"content-type" => ["text/plain"]}, "hello"}

      {_server, url} =
        HTTPServer.start([HTTPServer.answer("one")],
          tls: [alpn_preferred_protocols: ["h2", "http/1.1"]] ++ tls
        )

      assert {:ok, %{body: "one"}} = HTTP.request(url, cacertfile: authority, protocol: :http1)
    end

    test "streams share a connection, and cancelling one affects no other" do
      test = self()

      serve = fn send ->
        send.(HTTP2.head([]))
        send(test, {:open, self()})
        receive do: (:go -> :ok)
        send.(HTTP2.data("hello", :end))
      end

      {_server, url} = http2(serve)
      readers = for _ <- 1..50, do: Task.async(fn -> HTTP.request(url, protocol: :http2) end)
      open = for _ <- 1..50, do: receive(do: ({:open, pid} -> pid))
      Task.shutdown(hd(readers), :brutal_kill)
      assert_receive {:reset, _}
      for pid <- open, do: send(pid, :go)

      assert Enum.all?(
               Task.await_many(tl(readers), :infinity),
               &match?({:ok, %{body: "hello"}}, &1)
             )

      refute_received :hung_up
    end

    test "faults" do
      for {name, frames, kind} <- [
            {"a stream that is broken off", [HTTP2.head([]), HTTP2.data("a"), HTTP2.reset(2)],
             :closed},
            {"one that is refused for good", [HTTP2.reset(11)], :closed},
            {"a frame that is none", [{0, 0xFF, <<200, 1>>}], :closed},
            {"silence", [HTTP2.head([])], :idle_timeout}
          ] do
        {_server, url} = http2(fn send -> Enum.each(frames, send) end)

        assert {:error, error} =
                 HTTP.request([url: url, method: :post], protocol: :http2, idle_timeout: 500),
               name

        assert {name, error.kind} == {name, kind}
      end
    end

    test "endless responses end at the timeout" do
      endless = fn send, frame, pause ->
        Stream.repeatedly(fn ->
          Process.sleep(pause)
          send.(frame)
        end)
        |> Enum.find(&(&1 != :ok))
      end

      # The client hangs up on data without anything in it, and on more small frames than it may
      # keep unread, which is why the others come at a pace that any reader can follow.
      for {data, pause, kind} <- [{"a", 1, :timeout}, {"", 0, :closed}] do
        {_server, url} =
          http2(fn send ->
            send.(HTTP2.head([]))
            endless.(send, HTTP2.data(data), pause)
          end)

        ignore = fn _part, acc -> {:cont, acc} end

        assert {:error, error, nil} =
                 HTTP.stream(url, [protocol: :http2, timeout: 500], nil, ignore)

        assert {data, error.kind} == {data, kind}
      end
    end
  end

  describe "secrets" do
    test "are in no error, log or crash report" do
      headers = [{"authorization", @secret}]
      body = "{\"key\": \"#{@secret}\"}"

      {_server, url} =
        HTTPServer.start([
          HTTPServer.answer(@secret),
          [{:raw, "no HTTP\r\n\r\n"}],
          HTTPServer.answer("a")
        ])

      request = [method: :post, url: url <> "/?key=#{@secret}", headers: headers, body: body]
      {:ok, response} = HTTP.request(request)
      refute inspect(response) =~ @secret

      assert {:error, error} = HTTP.request(request, protocol: :http1)
      refute inspect(error, structs: false) =~ @secret

      for url <- ["http://ann:#{@secret}@a", "ftp://#{@secret}"], into: MapSet.new() do
        assert {:error, error} = HTTP.request(url)
        refute Exception.message(error) =~ @secret
      end

      assert {:error, error} = HTTP.request(url: url, headers: [{"a", @secret <> "\r\nb: c"}])

      assert Exception.message(error) ==
               "a header is no pair of texts, or has characters that no header has, such as " <>
                 "a line break"

      log =
        capture_log(fn ->
          {:ok, pid} =
            Task.start(fn ->
              receive do:
                        (:go ->
                           HTTP.stream(
                             Keyword.put(request, :headers, fn -> headers end),
                             [],
                             nil,
                             fn _, _ ->
                               raise "oh"
                             end
                           ))
            end)

          monitor = monitor(pid)
          send(pid, :go)
          assert_receive {:DOWN, ^monitor, _, ^pid, {%RuntimeError{}, _} = reason}
          refute inspect(reason, limit: :infinity, structs: false) =~ @secret
          Logger.flush()
        end)

      assert log =~ "oh"
      refute log =~ @secret
    end
  end

  test "requests are validated" do
    for {request, message} <- [
          {"example.com",
           ~s(expected a URL such as "https://example.com/path", without a user name before ) <>
             ~s(its host)},
          {"http://a b",
           ~s(expected a URL such as "https://example.com/path", without a user name before ) <>
             ~s(its host)},
          {[url: "http://a", method: :get!],
           "expected one of the methods :get, :head, :post, :put, :patch, :delete, :options, " <>
             ":propfind, :report"},
          {[url: "http://a", headers: "b"],
           "expected the headers to be a list of names and values, or a function that gives it"},
          {[url: "http://a", header: []],
           "a request has the fields :method, :url, :headers and :body, got: :header"},
          {["http://a"], "expected a URL or a keyword list as a request"}
        ] do
      assert {:error, error} = HTTP.request(request)
      assert {error.kind, Exception.message(error)} == {:request, message}
    end

    for {options, message} <- [
          {[time: 1], "unknown option :time for an HTTP request, did you mean :timeout?"},
          {[redirects: -1],
           "expected a whole number from 0 to 20 as the option :redirects of an HTTP request, " <>
             "got: -1"},
          {[adapter: "x"],
           "expected an adapter of Skillbook.HTTP, a module or {module, options} as the " <>
             "option :adapter"}
        ] do
      assert_raise Skillbook.OptionError, ~r/\A#{Regex.escape(message)}/, fn ->
        HTTP.request("http://a", options)
      end
    end
  end
end
