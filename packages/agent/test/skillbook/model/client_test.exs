defmodule Skillbook.Model.ClientTest do
  # The engine of the models that call a server: streams, whole answers, and what else servers
  # send.
  use ExUnit.Case, async: true

  alias Skillbook.Model.OpenAI
  alias Skillbook.Test.{ChatServer, CloudModel, HTTPServer}
  alias Skillbook.{Model, ModelError}

  doctest Skillbook.Model.Messages
  doctest Skillbook.ModelError

  @hello [%{role: :user, content: "Hello"}]

  # The answer, the texts in order, and the delays before retries.
  defp chat(script, options \\ [], call \\ []) do
    {server, url} = ChatServer.start(script)
    ask(url, options, call, server)
  end

  defp ask(url, options, call \\ [], server \\ nil) do
    test = self()
    sleep = &send(test, {:slept, &1})
    defaults = [url: url, model: "m", sleep: sleep, idle_timeout: 60_000]
    model = OpenAI.new!(Keyword.merge(defaults, options))

    answer =
      Model.chat(model, @hello, call, fn text ->
        send(test, {:text, text})
        if server, do: send(server, {:got, text})
      end)

    {answer, received(:text), received(:slept)}
  end

  defp tokens(prompt, completion) do
    %{
      prompt_tokens: prompt,
      completion_tokens: completion,
      cached_tokens: 0,
      cache_write_tokens: 0
    }
  end

  defp received(tag) do
    receive do
      {^tag, value} -> [value | received(tag)]
    after
      0 -> []
    end
  end

  test "an answer is streamed and its tokens counted" do
    script = [ChatServer.answer(["Hel", "lo ", "wörld"], usage: {12, 3})]
    assert {{:ok, answer}, ["Hel", "lo ", "wörld"], []} = chat(script)

    assert answer == %{
             text: "Hello wörld",
             tool_calls: [],
             usage: tokens(12, 3),
             finish_reason: :stop,
             opaque: nil,
             model: "m"
           }

    assert_receive {:chat, %{headers: headers, body: body}}
    refute Map.has_key?(headers, "authorization")
    assert body["messages"] == [%{"role" => "user", "content" => "Hello"}]
  end

  test "text is passed on before the next is sent" do
    script = [
      [
        ChatServer.head(),
        {:chunk, "data: #{ChatServer.delta("one")}\n\n"},
        {:await, {:got, "one"}},
        {:chunk, "data: #{ChatServer.delta("two")}\n\ndata: [DONE]\n\n"},
        :end
      ]
    ]

    assert {{:ok, %{text: "onetwo", usage: nil}}, ["one", "two"], []} = chat(script)
  end

  test "an unknown field is refused with the server's reason" do
    assert {{:error, %{kind: :refused, status: 400} = error}, [], []} =
             chat([[]], [], extra: %{"x" => 1})

    assert Exception.message(error) =~
             ~r"\Athe model's server refused the request \(400\): http://.*: unknown field x\z"
  end

  @partial "data: #{ChatServer.delta("some")}\n\n"

  test "other variants of events are read" do
    for {name, steps, text} <- [
          {"no end after the reason",
           [ChatServer.head(), {:chunk, @partial <> "data: #{ChatServer.finish("stop")}\n\n"}],
           "some"},
          {"no reason before the end",
           [ChatServer.head(), {:chunk, @partial <> "data: [DONE]\n\n"}, :end], "some"},
          {"no chunks",
           [
             {:raw,
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" <>
                @partial <> "data: [DONE]\n\n"}
           ], "some"},
          {"a byte at a time",
           [ChatServer.head()] ++
             for(<<b <- @partial <> "data: [DONE]\n\n">>, do: {:chunk, <<b>>}) ++ [:end], "some"},
          {"HTTP/1.0 without a length",
           [
             {:raw,
              "HTTP/1.0 200 OK\r\nContent-Type: Text/Event-Stream\r\n\r\n" <>
                @partial <> "data: [DONE]\n\n"}
           ], "some"},
          {"a length, and more than that",
           [
             {:raw,
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" <>
                "content-length: #{byte_size(@partial) + 14}\r\n\r\n" <>
                @partial <> "data: [DONE]\n\ndata: more\n\n"}
           ], "some"},
          {"interim answers",
           [{:raw, "HTTP/1.1 100 Continue\r\n\r\n"} | ChatServer.answer("some")], "some"},
          {"chunk extensions and trailers",
           [
             ChatServer.head(),
             {:raw, "#{Integer.to_string(byte_size(@partial), 16)};x=y\r\n#{@partial}\r\n"},
             {:chunk, "data: [DONE]\n\n"},
             {:raw, "0\r\nx: y\r\n\r\n"}
           ], "some"},
          {"comments and roles",
           ChatServer.stream([
             ChatServer.json(%{choices: [%{delta: %{role: "assistant", content: nil}}]}),
             ChatServer.json(%{choices: []}),
             ChatServer.delta(""),
             ChatServer.delta("some"),
             "[DONE]"
           ])
           |> List.insert_at(1, {:chunk, ": ping\n\n"}), "some"}
        ] do
      assert {{:ok, answer}, texts, []} = chat([steps]), name
      assert {answer.text, Enum.join(texts)} == {text, text}, name
    end
  end

  test "an answer that is not streamed is read as a whole" do
    head = {:head, 200, [{"content-type", "application/json; charset=utf-8"}]}

    message = fn content, reason ->
      json = %{
        choices: [%{index: 0, message: %{content: content}, finish_reason: reason}],
        usage: %{prompt_tokens: 7, completion_tokens: 2}
      }

      json |> Skillbook.Support.JSON.encode() |> IO.iodata_to_binary()
    end

    for {body, text, reason} <- [
          {message.("Hällo.", "stop"), "Hällo.", :stop},
          {message.("cut", "length"), "cut", :length},
          {message.("no reason", nil), "no reason", :stop},
          {message.("", "stop"), "", :stop}
        ] do
      chunks = for <<byte <- body>>, do: {:chunk, <<byte>>}
      assert {{:ok, answer}, texts, []} = chat([[head | chunks] ++ [:end]])
      assert {answer.text, Enum.join(texts), answer.finish_reason} == {text, text, reason}
      assert answer.usage == tokens(7, 2)
    end
  end

  describe "faults" do
    @empty_stream "the model's answer cannot be read: the server sent an empty stream; the " <>
                    "conversation is perhaps longer than the model's context: raise the " <>
                    "server's context size, or set max_context (chat: --max-context)"

    # Those after which there is no other attempt.
    test "that are not retried" do
      for {name, steps, options, kind, message, text} <- [
            {"cut off in a chunk", [ChatServer.head(), {:chunk, @partial}, {:raw, "ff\r\nda"}],
             [], :cut_off, "the model's answer was cut off: the connection broke", "some"},
            {"cut off without its last chunk", [ChatServer.head(), {:chunk, @partial}], [],
             :cut_off, "the model's answer was cut off: the connection broke", "some"},
            {"ended without an end", [ChatServer.head(), {:chunk, @partial}, :end], [], :cut_off,
             "the model's answer was cut off: the stream ended without a finish reason or [DONE]",
             "some"},
            {"an empty stream", [ChatServer.head(), :end], [], :bad_answer, @empty_stream, ""},
            {"an empty stream with its end", ChatServer.stream(["[DONE]"]), [], :bad_answer,
             @empty_stream, ""},
            {"a stream with usage only", ChatServer.stream([ChatServer.usage({9000, 0})]), [],
             :bad_answer, @empty_stream, ""},
            {"JSON that is not an answer",
             [{:head, 200, [{"content-type", "application/json"}]}, {:chunk, "{\"a\": 1}"}, :end],
             [], :bad_answer,
             "the model's answer cannot be read (200): expected a stream of events " <>
               "(text/event-stream), got application/json: {\"a\": 1}", ""},
            {"silent", [:silent], [idle_timeout: 500], :timeout,
             "the model took too long: no data came for 500 ms", ""},
            {"silent in the middle", [ChatServer.head(), {:chunk, @partial}, :silent],
             [idle_timeout: 500], :timeout, "the model took too long: no data came for 500 ms",
             "some"},
            {"too slow as a whole", [ChatServer.head(), {:chunk, @partial}, :silent],
             [timeout: 500], :timeout,
             "the model took too long: the time limit for the whole response has passed", "some"},
            {"no JSON", ChatServer.stream([ChatServer.delta("some"), "{\"choices\": ["]), [],
             :bad_answer,
             "the model's answer cannot be read: one of its events is not JSON (line 1, " <>
               "column 13: EOF while parsing a list): {\"choices\": [", "some"},
            {"no choices", ChatServer.stream(["{}"]), [], :bad_answer,
             "the model's answer cannot be read: one of its events has no choices: {}", ""},
            {"no delta", ChatServer.stream([~s({"choices": [1]})]), [], :bad_answer,
             "the model's answer cannot be read: one of its events has no delta: 1", ""},
            {"content that is no text",
             ChatServer.stream([~s({"choices": [{"delta": {"content": 1}}]})]), [], :bad_answer,
             "the model's answer cannot be read: expected text as the content of an event, " <>
               "got: 1", ""},
            {"an error after text",
             ChatServer.stream([
               ChatServer.delta("some"),
               ~s({"error": {"message": "out of memory"}})
             ]), [], :server, "the model's server failed: out of memory", "some"},
            {"another content type",
             [
               {:head, 200, [{"content-type", "text/html"}]},
               {:chunk, "<h1>\e[31mWelcome</h1>"},
               :end
             ], [], :bad_answer,
             "the model's answer cannot be read (200): expected a stream of events " <>
               "(text/event-stream), got text/html: <h1> [31mWelcome</h1>", ""},
            {"a redirect",
             [{:head, 307, [{"location", "https://b/v1"}, {"content-length", "0"}]}], [],
             :bad_answer,
             "the model's answer cannot be read (307): the server redirects to https://b/v1; " <>
               "use that as the URL", ""},
            {"an event without end",
             [ChatServer.head(), {:chunk, "data: " <> String.duplicate("a", 5_000_000)}], [],
             :bad_answer, "the model's answer cannot be read: one of its events is too large",
             ""},
            {"no HTTP", [{:raw, "SSH-2.0-OpenSSH\r\n\r\n"}], [], :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: invalid HTTP version parsed",
             ""},
            {"a header without end",
             [{:raw, ["HTTP/1.1 200 OK\r\n", String.duplicate("a: b\r\n", 20_000)]}], [],
             :bad_answer, "the model's answer cannot be read: its header is too long", ""},
            {"a long header",
             [{:raw, ["HTTP/1.1 200 OK\r\na: ", String.duplicate("b", 500_000)]}], [],
             :bad_answer, "the model's answer cannot be read: its header is too long", ""},
            {"a chunk without size", [ChatServer.head(), {:raw, "zz\r\nabc\r\n"}], [],
             :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: invalid chunk size line: " <>
               "missing size digit", ""},
            {"a chunk that is longer", [ChatServer.head(), {:raw, "1\r\nabc\r\n"}], [],
             :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: invalid chunk body CR", ""},
            {"an encoding that was not asked for",
             [
               {:head, 200, [{"content-type", "text/event-stream"}, {"content-encoding", "br"}]},
               {:chunk, <<31, 139>>}
             ], [], :bad_answer,
             "the model's answer cannot be read: its encoding is br, which was not requested",
             ""},
            {"an error in an encoding",
             [{:head, 401, [{"content-encoding", "br"}]}, {:chunk, <<31, 139>>}], [], :refused,
             ~r/\(401\): .*: no explanation\z/, ""},
            {"a chunk of a size beyond all bounds",
             [ChatServer.head(), {:raw, String.duplicate("f", 40) <> "\r\n" <> @partial}], [],
             :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: invalid chunk size: overflow",
             ""},
            {"a chunk's size without end",
             [ChatServer.head(), {:raw, String.duplicate("1", 100_000)}], [], :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: invalid chunk size: overflow",
             ""},
            {"trailers without end",
             [ChatServer.head(), {:raw, ["0\r\n", String.duplicate("a: b\r\n", 20_000)]}], [],
             :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: chunk trailers count overflow",
             ""},
            {"a length that is none",
             [
               {:raw,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: -1\r\n" <>
                  "\r\n"}
             ], [], :bad_answer,
             "the model's answer cannot be read: invalid HTTP/1.1: invalid content-length parsed",
             ""}
          ] do
        assert {{:error, %ModelError{} = error}, texts, []} = chat([steps, []], options), name
        assert {name, error.kind} == {name, kind}

        if is_binary(message),
          do: assert({name, Exception.message(error)} == {name, message}),
          else: assert(Exception.message(error) =~ message)

        assert {name, error.text, Enum.join(texts)} == {name, text, text}
      end
    end

    test "of a conversation that is too long have their kind" do
      for {status, message, kind} <- [
            {400, "This model's maximum context length is 8192 tokens. However, you requested",
             :too_long},
            {400, "Your input exceeds the context window of this model.", :too_long},
            {400, "prompt is too long: 213462 tokens > 200000 maximum", :too_long},
            {400, "The input token count (1200000) exceeds the maximum number of tokens allowed",
             :too_long},
            {400, "the request exceeds the available context size, try increasing it", :too_long},
            {400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context",
             :too_long},
            {400, "Please reduce the length of the messages or completion.", :too_long},
            {413, "Request exceeds the maximum size", :too_long},
            {422, "input is too long", :too_long},
            {400, "unknown field max_context", :refused},
            {400, "max_tokens is too large", :refused},
            {401, "prompt is too long", :refused},
            {404, "no model with this context length", :refused}
          ] do
        assert {{:error, error}, [], []} = chat([ChatServer.refusal(status, message)])
        assert {status, message, error.kind} == {status, message, kind}
      end
    end

    test "that are retried" do
      for {name, steps} <- [
            {"hung up at once", []},
            {"cut off before text", [ChatServer.head()]},
            {"an error in place of text", ChatServer.stream([~s({"error": "oh"})])}
          ] do
        assert {{:ok, %{text: "fine"}}, ["fine"], [delay]} =
                 chat([steps, ChatServer.answer("fine")]),
               name

        assert delay in 250..500, name
      end
    end

    test "retries are reported" do
      test = self()
      script = [ChatServer.refusal(500, "oh"), ChatServer.answer("fine")]
      assert {{:ok, _}, _, _} = chat(script, [], on_retry: &send(test, {:retry, &1}))
      assert_receive {:retry, %{attempt: 2, delay: _, error: %ModelError{status: 500}}}
    end
  end

  describe "random bytes" do
    # An answer as bytes, and the part before its end.
    @bytes "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" <>
             "transfer-encoding: chunked\r\n\r\n" <>
             for(
               data <- [
                 ChatServer.delta("Grüße, "),
                 ChatServer.delta("Ann"),
                 ChatServer.finish("stop"),
                 "[DONE]"
               ],
               event = "data: #{data}\n\n",
               into: "",
               do: "#{Integer.to_string(byte_size(event), 16)}\r\n#{event}\r\n"
             ) <> "0\r\n\r\n"

    defp answers(replies) do
      {_server, url} = ChatServer.start(Enum.map(replies, &[{:raw, &1}]))
      for reply <- replies, do: {reply, ask(url, retries: 0)}
    end

    test "text cut off anywhere is a prefix of the whole" do
      [finish, _] = String.split(@bytes, "[DONE]")
      [_, before] = Regex.run(~r/\A(.*"Ann".*?\n\n.*?\n\n)/s, finish)
      cuts = for size <- 0..(byte_size(@bytes) - 1)//3, do: binary_part(@bytes, 0, size)

      for {reply, {answer, texts, []}} <- answers(cuts ++ [@bytes]) do
        text = Enum.join(texts)
        assert String.starts_with?("Grüße, Ann", text)

        case answer do
          {:ok, answer} ->
            assert %{text: "Grüße, Ann", usage: nil, finish_reason: :stop} = answer
            assert byte_size(reply) >= byte_size(before)

          {:error, error} ->
            assert error.text == text
            assert error.kind in [:cut_off, :connection]
            assert byte_size(reply) < byte_size(before)
        end
      end
    end

    test "are an answer or an error" do
      :rand.seed(:exsss, {1, 2, 3})

      replies =
        for _ <- 1..200 do
          Enum.reduce(1..:rand.uniform(4), @bytes, fn _, bytes ->
            size = :rand.uniform(byte_size(bytes)) - 1
            {before, <<byte, rest::binary>>} = :erlang.split_binary(bytes, size)

            case :rand.uniform(4) do
              1 ->
                before <> rest

              2 ->
                before <> <<:rand.uniform(256) - 1>> <> rest

              3 ->
                before <>
                  <<byte, Enum.random(["\r\n", "\n\n", "0", ":", "{", <<255>>])::binary>> <> rest

              4 ->
                before <> rest <> <<byte>>
            end
          end)
        end

      for {reply, {answer, texts, _slept}} <- answers(replies) do
        case answer do
          {:ok, %{text: text}} ->
            assert text == Enum.join(texts), inspect(reply)

          {:error, %ModelError{} = error} ->
            assert error.text == Enum.join(texts) and Exception.message(error) != ""
        end
      end
    end
  end

  test "a date in Retry-After sets the delay" do
    now = "Sun, 06 Nov 1994 08:49:37 GMT"

    for {headers, delay} <- [
          {[{"retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"}, {"date", now}], 3_000},
          {[{"retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"}, {"date", now}], 0},
          {[{"retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"}], 0}
        ] do
      assert {{:ok, _}, _, [^delay]} =
               chat([ChatServer.refusal(429, "slow", headers), ChatServer.answer("a")])
    end

    for value <- ["-1", "1.5", "Sun, 06 Foo 1994 08:49:40 GMT", ""] do
      refused = ChatServer.refusal(503, "slow", [{"retry-after", value}])
      assert {{:ok, _}, _, [delay]} = chat([refused, ChatServer.answer("a")])
      assert delay in 250..500
    end
  end

  describe "the connection" do
    test "closes with the calling process" do
      {server, url} = ChatServer.start([[ChatServer.head(), {:chunk, @partial}, :silent]])
      pid = spawn(fn -> ask(url, [], [], server) end)
      assert_receive {:chat, _}
      Process.exit(pid, :kill)
      assert_receive :hung_up
    end

    test "leaves no messages in the mailbox" do
      assert {{:ok, _}, _, _} = chat([ChatServer.answer(["a", "b"])])
      assert_receive {:chat, _}
      assert_receive :played
      refute_received _
    end
  end

  describe "the module of a vendor" do
    defp cloud(steps, options, call \\ []) do
      {_server, url} = HTTPServer.start([steps])
      model = CloudModel.new!([url: url, model: "m1", retries: 0] ++ options)
      Model.chat(model, @hello, call, fn _text -> :ok end)
    end

    @tokens ~s("tokens": {"in": 9, "out": 2, "thought": 3, "of_them": {"cached": 4}})

    test "makes a model" do
      stream = [~s({"text": "Hel"}), ~s({"text": "lo", "end": "all", #{@tokens}})]
      key = fn -> "sk-1" end
      assert {:ok, answer} = cloud(ChatServer.stream(stream), [key: key], max_tokens: 5)
      assert %{text: "Hello", finish_reason: :stop, model: "m1"} = answer
      assert answer.usage == %{tokens(9, 5) | cached_tokens: 4}
      assert_receive {:request, %{line: line, headers: headers, body: body}}
      assert line == "POST /ai/deployments/m1/chat?api-version=2026-01-01 HTTP/1.1"
      assert {headers["api-key"], headers["authorization"]} == {"sk-1", nil}
      assert body == ~s({"limit":5,"prompt":"Hello"})

      whole =
        HTTPServer.answer(~s({"text": "a", "end": "x"}), [{"content-type", "application/json"}])

      assert {:ok, %{text: "a", finish_reason: :other, usage: nil}} =
               cloud(whole, key: key, auth: :bearer, version: "2")

      assert_receive {:request, %{line: line, headers: headers}}
      assert line =~ "/chat?api-version=2 "
      assert {headers["api-key"], headers["authorization"]} == {nil, "Bearer sk-1"}

      assert {:error, error} = cloud(ChatServer.stream(["{}"]), key: key)
      assert error.reason == "one of its events has no text: {}"
      assert {:error, error} = cloud(whole, [key: key], grammar: "g")
      assert error.reason =~ "the interface of #{inspect(CloudModel)} has no :grammar"
    end

    test "has the options of all models and its own" do
      assert {:ok, model} = CloudModel.new(model: "m")

      assert to_string(model.url) ==
               "https://api.cloud.example/ai/deployments/m/chat?api-version=2026-01-01"

      assert {model.key, model.timeout} == {{:env, "CLOUD_API_KEY"}, 600_000}
      assert Model.describe(model) == %{provider: "cloud.ai", model: "m"}
      assert Model.tools?(model)

      for {options, message} <- [
            {[auth: :basic],
             "expected :api_key or :bearer as the option :auth of a model, got: :basic"},
            {[extra: 1],
             "expected a map with texts as keys as the option :extra of a model, got: 1"},
            {[verison: "1"],
             "unknown option :verison for a model, did you mean :version? The options are " <>
               ":url, :model, :key, :auth, :version, :media, :extra, :connect_timeout, " <>
               ":idle_timeout, :timeout, :retries, :backoff, :cacertfile, :proxy, :http, :sleep"}
          ] do
        assert {:error, error} = CloudModel.new([model: "m"] ++ options)
        assert Exception.message(error) == message
      end
    end
  end
end
