defmodule Skillbook.HTTPConformance do
  @moduledoc """
  Tests for adapters of `Skillbook.HTTP`.

      use Skillbook.HTTPConformance, adapter: MyApp.Adapter

  ## Options

    * `:adapter` - as the option of `Skillbook.HTTP`
    * `:repeats` - whether it keeps all headers of one name. Default: true
  """

  defmacro __using__(options) do
    quote location: :keep do
      @adapter unquote(options[:adapter])
      @repeats unquote(Keyword.get(options, :repeats, true))

      describe "every adapter" do
        alias Skillbook.HTTP
        alias Skillbook.Test.HTTPServer

        defp with_adapter(options \\ []), do: [adapter: @adapter, proxy: nil] ++ options

        test "sends methods, headers and bodies" do
          for {method, body} <- [
                {:get, nil},
                {:post, ["a", ?b]},
                {:put, "c"},
                {:patch, "d"},
                {:delete, nil},
                {:options, nil},
                {:post, ""}
              ] do
            {_server, url} = HTTPServer.start([HTTPServer.answer("fine")])

            request = [
              method: method,
              url: url <> "/a%20b?c=d",
              headers: [{"x-one", "1"}],
              body: body
            ]

            assert {:ok, %{status: 200, body: "fine"}} = HTTP.request(request, with_adapter())
            assert_receive {:request, %{line: line, headers: headers, body: sent}}
            assert line == "#{method |> to_string() |> String.upcase()} /a%20b?c=d HTTP/1.1"
            assert sent == IO.iodata_to_binary(body || "")

            assert %{
                     "x-one" => "1",
                     "user-agent" => "skillbook/" <> _,
                     "accept-encoding" => "gzip"
                   } = headers

            assert headers["host"] == String.replace_prefix(url, "http://", "")
          end
        end

        test "returns status, headers and body for any status" do
          for {steps, method, status, body} <- [
                {HTTPServer.answer("fine"), :get, 200, "fine"},
                {[{:head, 404, []}, {:chunk, "no"}, {:chunk, "ne"}, :end], :get, 404, "none"},
                {[{:raw, "HTTP/1.1 204 X\r\n\r\n"}], :delete, 204, ""},
                {[{:raw, "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n"}], :post, 500, ""},
                {[{:raw, "HTTP/1.1 200 X\r\n\r\nto the end"}], :get, 200, "to the end"},
                {[{:raw, "HTTP/1.1 200 X\r\ncontent-length: 7\r\n\r\n"}], :head, 200, ""}
              ] do
            {_server, url} = HTTPServer.start([steps])
            assert {:ok, response} = HTTP.request([method: method, url: url], with_adapter())
            assert {response.status, response.body} == {status, body}
          end
        end

        test "returns all headers of one name" do
          head = "HTTP/1.1 200 X\r\nSet-Cookie: a\r\nset-cookie: b\r\ncontent-length: 0\r\n\r\n"
          {_server, url} = HTTPServer.start([[{:raw, head}]])
          assert {:ok, %{headers: %{"set-cookie" => values}}} = HTTP.request(url, with_adapter())
          assert values == if(@repeats, do: ["a", "b"], else: ["b"])
        end

        test "calls the function with each part, the head first" do
          {server, url} =
            HTTPServer.start([
              [{:head, 200, []}, {:chunk, "one"}, {:await, :one}, {:chunk, "two"}, :end]
            ])

          assert {:ok, ["two", "one", 200]} =
                   HTTP.stream(url, with_adapter(), [], fn
                     {:head, status, _headers}, parts ->
                       {:cont, [status | parts]}

                     {:data, data}, parts ->
                       send(server, String.to_existing_atom(data))
                       {:cont, [data | parts]}
                   end)
        end

        test "cancels the request if the function raises" do
          _atoms = [:one, :two]

          for ending <- [
                fn -> {:halt, :ended} end,
                fn -> throw(:ended) end,
                fn -> exit(:ended) end
              ] do
            {_server, url} = HTTPServer.start([[{:head, 200, []}, {:chunk, "one"}, :silent]])

            read = fn part, acc ->
              if match?({:data, _}, part), do: ending.(), else: {:cont, acc}
            end

            outcome =
              try do
                HTTP.stream(url, with_adapter(), nil, read)
              catch
                _kind, reason -> {:halted, reason}
              end

            assert outcome == {:halted, :ended}
            assert_receive :hung_up
          end
        end

        test "cancels the request when its process exits" do
          for steps <- [[:silent], [{:head, 200, []}, {:chunk, "one"}, :silent]] do
            {_server, url} = HTTPServer.start([steps])
            pid = spawn(fn -> HTTP.request(url, with_adapter()) end)
            assert_receive {:request, _}
            Process.sleep(50)
            Process.exit(pid, :kill)
            assert_receive :hung_up
          end
        end

        test "returns the error with the accumulator so far" do
          # A port that was free a moment ago.
          {:ok, socket} = :gen_tcp.listen(0, [])
          {:ok, port} = :inet.port(socket)
          :gen_tcp.close(socket)
          assert {:error, error} = HTTP.request("http://localhost:#{port}", with_adapter())

          assert {error.kind, Exception.message(error)} ==
                   {:connect, "localhost:#{port}: connection refused"}

          part = [{:head, 200, []}, {:chunk, "some"}]

          for {steps, kind, got} <- [
                {[], :closed, ""},
                {part, :closed, "some"},
                {part ++ [{:raw, "ff\r\nda"}], :closed, "some"},
                {[:silent], :idle_timeout, ""},
                {part ++ [:silent], :idle_timeout, "some"},
                {[{:raw, "SSH-2.0-OpenSSH\r\n\r\n"}], :malformed, ""},
                {[{:raw, "HTTP/1.1 abc\r\n\r\n"}], :malformed, ""},
                {[{:head, 200, []}, {:raw, "zz\r\nabc\r\n"}], :malformed, ""},
                {[{:raw, "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"}], :malformed, ""},
                {[{:raw, ["HTTP/1.1 200 OK\r\na: ", String.duplicate("b", 70_000), "\r\n\r\n"]}],
                 :too_large, ""},
                {part ++ [{:endless, "1\r\na\r\n"}], :timeout, nil}
              ] do
            {_server, url} = HTTPServer.start([steps])
            options = with_adapter(idle_timeout: 400, timeout: 1_000)

            collect = fn
              {:data, data}, text -> {:cont, text <> data}
              _head, text -> {:cont, text}
            end

            assert {:error, error, text} =
                     HTTP.stream([url: url, method: :post], options, "", collect)

            assert {steps, error.kind} == {steps, kind}
            assert got == nil or String.trim_trailing(text, "da") == got
            assert Exception.message(error) =~ ~r/\Alocalhost:\d+: [^\n]+\z/
          end
        end

        test "leaves no messages in the mailbox" do
          {_server, url} =
            HTTPServer.start([HTTPServer.answer("fine"), [{:head, 200, []}, {:chunk, "some"}]])

          HTTP.request(url, with_adapter())
          HTTP.request(url, with_adapter())
          assert_receive {:request, _}
          assert_receive {:request, _}
          assert_receive :played
          refute_receive _, 50
        end
      end
    end
  end
end
