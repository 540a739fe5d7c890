defmodule Skillbook.ServiceConformance do
  @moduledoc """
  Tests for clients of a model's server, which `Skillbook.HTTP.Service` makes.

      use Skillbook.ServiceConformance,
        client: Skillbook.Embedder.OpenAI,
        subject: "an embedder",
        whose: "the embedder",
        call: &Skillbook.Embedder.embed(&1, ["a"]),
        own: [:dimensions, :encoding],
        urls: [{"http://a", "http://a/v1/embeddings"}]

  ## Options

    * `:client` - its module
    * `:subject`, `:whose` - its name in errors of options and of requests
    * `:call` - a function that sends a request of a client
    * `:own` - the names of its own options, in the order of errors
    * `:urls` - URLs of servers, and those of their requests with the model `m`
  """

  @doc "The options in a module's docs, each with the text of its default, or `nil`."
  def documented(module) do
    {:docs_v1, _, _, _, %{"en" => text}, _, _} = Code.fetch_docs(module)
    [_, section] = Regex.run(~r/^## Options\n(.*?)(?:^## |\z)/ms, text)

    for item <- section |> String.split("\n  * ") |> tl(),
        [names, text] = String.split(item, " - ", parts: 2),
        [_, name] <- Regex.scan(~r/`:(\w+)`/, names) do
      default = Regex.run(~r/Default:\s+(?:`([^`]+)`|([\d,]+\d|true|false))/, text)
      {String.to_existing_atom(name), default && String.replace(List.last(default), ",", "")}
    end
  end

  defmacro __using__(options) do
    quote location: :keep do
      defp client, do: unquote(options[:client])
      defp call(client), do: unquote(options[:call]).(client)

      @subject unquote(options[:subject])
      @whose unquote(options[:whose])
      @own unquote(options[:own])
      @urls unquote(options[:urls])

      describe "a client of a server" do
        alias Skillbook.Test.{Certificates, ChatServer, HTTPServer}

        import ExUnit.CaptureLog

        @secret "sk-test-0123456789abcdef"
        @first [:url, :model, :key]
        @rest [:connect_timeout, :idle_timeout, :timeout, :retries, :backoff, :cacertfile] ++
                [:proxy, :http, :sleep]

        # The result of a request and the delays before retries.
        defp sent(url, options) do
          test = self()
          options = [url: url, model: "m", key: nil, sleep: &send(test, {:slept, &1})] ++ options
          options = Enum.reverse(options) |> Enum.uniq_by(&elem(&1, 0))
          {options |> client().new!() |> call(), delays()}
        end

        defp delays do
          receive do
            {:slept, delay} -> [delay | delays()]
          after
            0 -> []
          end
        end

        # The error of a request that a server answers so.
        defp failed(script, options \\ []) do
          {_server, url} = HTTPServer.start(script)
          assert {{:error, error}, slept} = sent(url, options)
          {error, slept}
        end

        test "has documented options" do
          documented = Skillbook.ServiceConformance.documented(client())
          assert Enum.sort(Keyword.keys(documented)) == Enum.sort(@first ++ @own ++ @rest)
          assert for({name, _} <- documented, name in @own, do: name) == @own
          client = client().new!(url: "http://a", model: "m")

          # Those of other options depend on the server.
          for {name, text} <- documented,
              text != nil,
              name not in [:url, :key, :tools],
              do: assert({name, text} == {name, inspect(Map.fetch!(client, name))})
        end

        test "checks its options" do
          for {options, message} <- [
                {[url: "http://a"], "#{@subject} needs the option :model"},
                {[url: "http://a", model: ""],
                 "expected text as the option :model of #{@subject}, got: \"\""},
                {[url: "http://a", modle: "m"],
                 "unknown option :modle for #{@subject}, did you mean :model? The options are " <>
                   Enum.map_join(@first ++ @own ++ @rest, ", ", &inspect/1)},
                {[url: "http://a", model: "m", key: @secret],
                 "expected {:env, name}, a function without arguments, or nil as the option " <>
                   ":key of #{@subject}, got: :hidden"},
                {[url: "http://a", model: "m", retries: -1],
                 "expected a whole number from 0 as the option :retries of #{@subject}, got: -1"},
                {[url: "http://a", model: "m", timeout: 0],
                 "expected a number of milliseconds as the option :timeout of #{@subject}, " <>
                   "got: 0"}
              ] do
            assert {:error, error} = client().new(options)
            assert Exception.message(error) == message
            assert_raise Skillbook.OptionError, message, fn -> client().new!(options) end
          end

          assert {:error, %{option: nil}} = client().new(:m)
          assert {:error, %{option: nil}} = client().new(%{"model" => "m"})

          assert client().new(%{url: "http://a", model: "m"}) ==
                   client().new(url: "http://a", model: "m")
        end

        test "checks its URL" do
          for url <-
                ["", "a", "ftp://a", "http://", "http:///v1", "http://u:p@a"] ++
                  ["http://a:0", "http://a:65536", "http://a b", "http://a\r\nx: y", 1, nil] do
            assert {:error, %{option: :url}} = client().new(url: url, model: "m"), inspect(url)
          end

          for {url, endpoint} <- @urls,
              do: assert(to_string(client().new!(url: url, model: "m").url) == endpoint)
        end

        test "shows no text before the host of a URL" do
          for {url, shown} <- [
                {"https://ann:hunter2@a/v1", "https://[hidden]@a/v1"},
                {"https://ann:hun/ter2@a@b", "https://[hidden]@b"},
                {"ftp://hunter2@a", "ftp://[hidden]@a"},
                {"ann:hunter2@a", "[hidden]@a"},
                {"https://ann:hun\nter2@a", "https://[hidden]@a"}
              ] do
            assert {:error, error} = client().new(url: url, model: "m")
            assert Exception.message(error) =~ "option :url of #{@subject}, got: \"#{shown}\""
            refute inspect(error) =~ "ter2"
          end

          assert {:ok, _client} = client().new(url: "https://a/@b/v1", model: "m")
        end

        test "sends its key and never shows it" do
          client = client().new!(url: "http://a", model: "m", key: fn -> @secret end)
          refute inspect(client) =~ @secret
          refute inspect(client, structs: false, limit: :infinity) =~ @secret

          refused = ChatServer.refusal(401, "Incorrect key: #{@secret}.")

          log =
            capture_log(fn ->
              {error, []} = failed([refused], key: fn -> @secret end)
              assert {error.kind, error.status} == {:refused, 401}
              assert Exception.message(error) =~ ~r/\(401\): .*: Incorrect key: \[key\]\.\z/
              refute inspect(error, limit: :infinity) =~ @secret
            end)

          refute log =~ @secret
          assert_receive {:request, %{headers: headers}}
          assert inspect(headers) =~ @secret

          # As long as errors are, so that they are cut within the key, wherever it begins.
          for before <- 299..275//-6 do
            refused = ChatServer.refusal(401, String.duplicate("x", before) <> @secret)
            {error, []} = failed([refused], key: fn -> @secret end)
            assert Exception.message(error) =~ "x[key]"
            refute Exception.message(error) =~ "sk-"
          end
        end

        test "has its key in no crash report" do
          {_server, url} = HTTPServer.start([ChatServer.refusal(500, "oh")])
          raising = fn _delay -> raise "oh" end
          options = [url: url, model: "m", key: fn -> @secret end, sleep: raising, backoff: 1]
          client = client().new!(options)

          log =
            capture_log(fn ->
              # A task writes its report before it ends.
              {:ok, pid} = Task.start(fn -> receive do: (:go -> raised(call(client))) end)
              monitor = Process.monitor(pid)
              send(pid, :go)
              assert_receive {:DOWN, ^monitor, _, ^pid, {%RuntimeError{}, _} = reason}
              refute inspect(reason, limit: :infinity) =~ @secret
              Logger.flush()
            end)

          assert log =~ "oh"
          refute log =~ @secret
        end

        # An embedder's request has a process of its own, whose exception is an error.
        defp raised({:error, error}), do: raise(Exception.message(error))

        test "shows no query of its URL, which may have a key" do
          refused = ChatServer.refusal(400, "no")
          {_server, url} = HTTPServer.start([refused])
          assert {{:error, error}, []} = sent(url <> "/v1?key=" <> @secret, [])
          assert Exception.message(error) =~ ~r"refused the request \(400\): http://\S+: no\z"
          refute Exception.message(error) =~ @secret
        end

        test "reads its key for each request" do
          name = "SKILLBOOK_KEY_#{System.unique_integer([:positive])}"
          on_exit(fn -> System.delete_env(name) end)
          variable = "the environment variable #{name} "
          wrong = "has invalid characters for a key, such as a space or line break"

          for {key, value, reason} <- [
                {{:env, name}, nil, variable <> "is not set, or empty"},
                {{:env, name}, " ", variable <> "is not set, or empty"},
                {{:env, name}, "two words", variable <> wrong},
                {fn -> nil end, nil, "the function in the option :key returned nil"},
                {fn -> :key end, nil, "the function in the option :key did not return text"},
                {fn -> "a\nb" end, nil, "the result of the function in the option :key " <> wrong}
              ] do
            if value, do: System.put_env(name, value)
            assert {{:error, error}, []} = sent("http://localhost", key: key)

            assert {error.kind, Exception.message(error)} ==
                     {:key, "no key for #{@whose}'s server: #{reason}"}
          end

          System.put_env(name, @secret <> "\n")
          failed([ChatServer.refusal(401, "no")], key: {:env, name})
          assert_receive {:request, %{headers: headers}}
          assert inspect(headers) =~ @secret
          refute inspect(headers) =~ @secret <> "\\n"
        end

        test "repeats a request after failures that may pass" do
          should = fn text -> [{"x-should-retry", text}] end

          for {steps, delays} <- [
                {ChatServer.refusal(408, "oh"), 250..500},
                {ChatServer.refusal(409, "oh"), 250..500},
                {ChatServer.refusal(429, "oh"), 250..500},
                {ChatServer.refusal(500, "oh"), 250..500},
                {ChatServer.refusal(503, "oh"), 250..500},
                {ChatServer.refusal(529, "oh"), 250..500},
                {ChatServer.refusal(400, "oh", should.("true")), 250..500},
                {[], 250..500},
                {ChatServer.refusal(429, "oh", [{"retry-after", "7"}]), 7_000..7_000},
                {ChatServer.refusal(429, "oh", [{"retry-after", "0"}]), 0..0},
                {ChatServer.refusal(503, "oh", [{"retry-after", "soon"}]), 250..500},
                {ChatServer.refusal(429, "oh", [
                   {"retry-after-ms", "350.5"},
                   {"retry-after", "9"}
                 ]), 351..351}
              ] do
            {error, slept} = failed([steps, ChatServer.refusal(400, "last")])
            assert [delay] = slept
            assert delay in delays
            assert error.status == 400
          end
        end

        test "repeats no request after others, nor too late" do
          accepts = "#{@whose}'s server accepts no more requests for now (429)"

          for {steps, options, message} <- [
                {ChatServer.refusal(401, "no"), [],
                 "#{@whose}'s server refused the request (401): URL: no"},
                {ChatServer.refusal(429, "no", [{"x-should-retry", "false"}]), [],
                 accepts <> ": no"},
                {ChatServer.refusal(429, "slow", [{"retry-after", "61"}]), [],
                 accepts <> ", again in 61 s: slow"},
                {ChatServer.refusal(429, "slow", [{"retry-after", "5"}]), [timeout: 4_000],
                 accepts <> ", again in 5 s: slow"},
                {ChatServer.refusal(500, "oh"), [retries: 0],
                 "#{@whose}'s server failed (500): oh"},
                {[:silent], [idle_timeout: 300],
                 "#{@whose} took too long: no data came for 300 ms"},
                {[:silent], [timeout: 300],
                 "#{@whose} took too long: the time limit for the whole response has passed"}
              ] do
            {error, []} = failed([steps, []], options)
            assert String.replace(Exception.message(error), ~r"http://\S+: ", "URL: ") == message
          end
        end

        test "returns the last error after growing delays" do
          script = for status <- [500, 502, 503], do: ChatServer.refusal(status, "s#{status}")
          {error, [first, second]} = failed(script)
          assert Exception.message(error) == "#{@whose}'s server failed (503): s503"
          assert first in 250..500 and second in 500..1000

          {error, delays} = failed(List.duplicate([], 12), retries: 11)
          assert error.kind == :connection
          assert Enum.max(delays) <= 30_000
        end

        test "reports a connection that cannot be opened, with host and port" do
          # A port that was free a moment ago.
          {:ok, socket} = :gen_tcp.listen(0, [:binary, ip: {127, 0, 0, 1}])
          {:ok, port} = :inet.port(socket)

          assert {{:error, error}, [_, _]} = sent("http://[::1]:#{port}", [])
          assert error.kind == :connection
          assert Exception.message(error) =~ "[::1]:#{port}: "
          refute Exception.message(error) =~ "domain"

          :gen_tcp.close(socket)
          assert {{:error, error}, [_, _]} = sent("http://localhost:#{port}", [])

          assert Exception.message(error) ==
                   "no connection to #{@whose}'s server: localhost:#{port}: connection refused"
        end

        test "trusts the certificates that it is given" do
          {tls, authority} = Certificates.make(["localhost"])

          ask = fn url, options ->
            assert {{:error, error}, []} = sent(url, options)
            String.replace(Exception.message(error), ~r/localhost:\d+/, "localhost")
          end

          server = fn ->
            HTTPServer.start([ChatServer.refusal(400, "no")], tls: tls) |> elem(1)
          end

          assert ask.(server.(), cacertfile: authority) =~ "refused the request (400)"
          no = "no connection to #{@whose}'s server: localhost: "

          assert ask.(server.(), []) ==
                   no <> "TLS: the authority of its certificate is not trusted"

          assert ask.("https://localhost:1", cacertfile: "/none.pem") ==
                   no <>
                     "expected certificates in PEM in the file /none.pem: " <>
                     "no such file or directory"
        end
      end
    end
  end
end
