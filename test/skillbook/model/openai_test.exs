defmodule Skillbook.Model.OpenAITest do
  use ExUnit.Case, async: true

  import ExUnit.CaptureLog

  alias Skillbook.Model.OpenAI
  alias Skillbook.Test.{Certificates, ChatServer}
  alias Skillbook.{Model, ModelError}

  doctest Skillbook.Model
  doctest Skillbook.Model.Function
  doctest Skillbook.Model.OpenAI
  doctest Skillbook.ModelError

  @hello [%{role: :user, content: "Hello"}]
  @key "sk-test-0123456789abcdef"

  # The answer, the texts in order, and the delays before retries.
  defp chat(script, options \\ [], call \\ []) do
    {server, url} = ChatServer.start(script, Keyword.take(options, [:tls]))
    ask(url, Keyword.delete(options, :tls), call, server)
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

    assert_receive {:chat, %{headers: headers, body: body}}, 5_000
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

  test "options become fields that the server accepts" do
    call = [
      stop: ["\n```"],
      temperature: 0.2,
      max_tokens: 50,
      grammar: "root ::= \"a\"",
      extra: %{"top_p" => 0.5}
    ]

    assert {{:ok, _}, _, _} = chat([ChatServer.answer("a")], [], call)
    assert_receive {:chat, %{body: body}}, 5_000
    assert %{"stop" => ["\n```"], "temperature" => 0.2, "max_tokens" => 50, "top_p" => 0.5} = body
    assert body["stream_options"] == %{"include_usage" => true}

    assert {{:ok, _}, _, _} =
             chat([ChatServer.answer("a")], [], extra: %{"stream_options" => nil})

    assert_receive {:chat, %{body: body}}, 5_000
    refute Map.has_key?(body, "stream_options")
  end

  test "without system messages the prompt is the user's" do
    [system, user, reply] = [
      %{role: :system, content: "S"},
      %{role: :user, content: "U"},
      %{role: :assistant, content: "A"}
    ]

    for {role, messages, expected} <- [
          {:system, [system, user],
           [%{"role" => "system", "content" => "S"}, %{"role" => "user", "content" => "U"}]},
          {:user, [system, user], [%{"role" => "user", "content" => "S\n\nU"}]},
          {:user, [user, reply, user],
           for(m <- [user, reply, user], do: %{"role" => "#{m.role}", "content" => m.content})},
          {:user, [system], [%{"role" => "user", "content" => "S"}]}
        ] do
      {_server, url} = ChatServer.start([ChatServer.answer("a")])
      model = OpenAI.new!(url: url, model: "m", system_role: role)
      assert {:ok, %{text: "a"}} = Skillbook.Model.chat(model, messages, [], fn _ -> :ok end)
      assert_receive {:chat, %{body: %{"messages" => ^expected}}}, 5_000
    end
  end

  test "the limit of tokens has another name for OpenAI" do
    for {url, field} <- [
          {"https://api.openai.com/v1", "max_completion_tokens"},
          {"https://example.com/api.openai.com", "max_tokens"},
          {"http://localhost:8080", "max_tokens"}
        ] do
      assert OpenAI.limit_field(OpenAI.new!(url: url, model: "m").url) == field
    end
  end

  test "an unknown field is refused with the server's reason" do
    assert {{:error, %{kind: :refused, status: 400} = error}, [], []} =
             chat([[]], [], extra: %{"x" => 1})

    assert Exception.message(error) =~
             ~r"\Athe model's server refused the request \(400\): http://.*: unknown field x\z"
  end

  test "finish reasons" do
    for {reason, expected} <- [
          {"stop", :stop},
          {"length", :length},
          {"content_filter", :filtered},
          {"tool_calls", :other}
        ] do
      assert {{:ok, %{finish_reason: ^expected}}, _, _} =
               chat([ChatServer.answer("a", finish_reason: reason)])
    end
  end

  describe "calls of servers that differ from OpenAI's" do
    defp calls(deltas, reason \\ "stop") do
      deltas =
        for calls <- deltas,
            do: ChatServer.json(%{choices: [%{index: 0, delta: %{tool_calls: calls}}]})

      stream = ChatServer.stream(deltas ++ [ChatServer.finish(reason), "[DONE]"])
      assert {{:ok, answer}, [], []} = chat([stream])
      {answer.finish_reason, for(call <- answer.tool_calls, do: {call.name, call.arguments})}
    end

    defp delta(name, arguments, fields \\ []),
      do: Map.merge(%{function: %{name: name, arguments: arguments}}, Map.new(fields))

    @two {:tool_calls, [{"a", "{}"}, {"b", ~s({"c":1})}]}

    test "are told apart" do
      for {name, deltas} <- [
            {"an index of each",
             [
               [delta("a", "{}", index: 0, id: "1")],
               [delta("b", ~s({"c":1}), index: 1, id: "2")]
             ]},
            {"one index for all, with ids",
             [
               [delta("a", "{}", index: 0, id: "1")],
               [delta("b", ~s({"c":1}), index: 0, id: "2")]
             ]},
            {"no index, with ids",
             [[delta("a", "{}", id: "1"), delta("b", ~s({"c":1}), id: "2")]]},
            {"neither index nor ids", [[delta("a", "{}")], [delta("b", ~s({"c":1}))]]},
            {"ids that are empty",
             [[delta("a", "{}", id: "")], [delta("b", ~s({"c":1}), id: "")]]},
            {"an id in every piece",
             [
               [delta("a", "", index: 0, id: "1")],
               [delta(nil, "{}", index: 0, id: "1")],
               [delta("b", ~s({"c"), index: 1, id: "2")],
               [delta(nil, ":1}", index: 1, id: "2")]
             ]},
            {"another id in every piece",
             [
               [delta("a", "", index: 0, id: "1")],
               [delta(nil, "{}", index: 0, id: "2")],
               [delta("b", ~s({"c"), index: 1, id: "3")],
               [delta("", ":1}", index: 1, id: "4")]
             ]},
            {"a name in every piece",
             [
               [delta("a", "{}", index: 0, id: "1")],
               [delta("b", ~s({"c"), index: 1, id: "2")],
               [delta("b", ":1}", index: 1, id: "2")]
             ]},
            {"arguments that are no text",
             [[delta("a", nil, index: 0), delta("b", %{"c" => 1}, index: 1)]]},
            {"values without a call",
             [
               [nil, 1, "x"],
               [delta("a", "{}", index: 0), %{}],
               [],
               [delta("b", ~s({"c":1}), index: 1)]
             ]}
          ] do
        assert {name, calls(deltas)} == {name, @two}
      end
    end

    test "have ids, and end for the right reason" do
      one = [[delta("a", "{}", index: 0)]]
      assert {:tool_calls, [{"a", "{}"}]} = calls(one, "stop")
      assert {:tool_calls, [{"a", "{}"}]} = calls(one, "tool_calls")
      assert {:tool_calls, [{"a", "{}"}]} = calls(one, "function_call")
      assert {:length, [{"a", "{}"}]} = calls(one, "length")
      assert {:filtered, [{"a", "{}"}]} = calls(one, "content_filter")

      stream =
        ChatServer.json(%{choices: [%{delta: %{tool_calls: [delta("a", ""), delta("b", "")]}}]})

      {{:ok, answer}, _, _} = chat([ChatServer.stream([stream, "[DONE]"])])
      assert [%{id: "call_" <> one}, %{id: "call_" <> other}] = answer.tool_calls
      assert one != other and byte_size(one) == 24
    end
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

    test "that are retried" do
      for {name, steps} <- [
            {"an error of the server", ChatServer.refusal(500, "oh")},
            {"an overloaded server", ChatServer.refusal(503, "oh")},
            {"too many requests", ChatServer.refusal(429, "oh")},
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

    test "that persist return the last error after growing delays" do
      script = [
        [],
        ChatServer.refusal(500, "first"),
        ChatServer.refusal(502, "second"),
        ChatServer.refusal(503, "third")
      ]

      assert {{:error, error}, [], [first, second, third]} = chat(script, retries: 3)
      assert Exception.message(error) == "the model's server failed (503): third"
      assert first in 250..500 and second in 500..1000 and third in 1000..2000

      assert {{:error, %{status: 500}}, [], []} =
               chat([ChatServer.refusal(500, "oh")], retries: 0)
    end

    test "delays have a maximum" do
      script = List.duplicate([], 12)
      assert {{:error, %{kind: :connection}}, [], delays} = chat(script, retries: 11)
      assert Enum.max(delays) <= 30_000
    end

    test "retries are reported" do
      test = self()
      script = [ChatServer.refusal(500, "oh"), ChatServer.answer("fine")]
      assert {{:ok, _}, _, _} = chat(script, [], on_retry: &send(test, {:retry, &1}))
      assert_receive {:retry, %{attempt: 2, delay: _, error: %ModelError{status: 500}}}, 5_000
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

  describe "Retry-After" do
    test "sets the delay" do
      now = "Sun, 06 Nov 1994 08:49:37 GMT"

      for {headers, delay} <- [
            {[{"retry-after", "7"}], 7_000},
            {[{"retry-after", "0"}], 0},
            {[{"retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"}, {"date", now}], 3_000},
            {[{"retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"}, {"date", now}], 0},
            {[{"retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"}], 0}
          ] do
        assert {{:ok, _}, _, [^delay]} =
                 chat([ChatServer.refusal(429, "slow", headers), ChatServer.answer("a")])
      end
    end

    test "that is invalid is ignored" do
      for value <- ["soon", "-1", "1.5", "Sun, 06 Foo 1994 08:49:40 GMT", ""] do
        script = [
          ChatServer.refusal(503, "slow", [{"retry-after", value}]),
          ChatServer.answer("a")
        ]

        assert {{:ok, _}, _, [delay]} = chat(script)
        assert delay in 250..500
      end
    end

    test "that is too long returns the error" do
      for {headers, options} <- [
            {[{"retry-after", "61"}], []},
            {[{"retry-after", "5"}], [timeout: 4_000]}
          ] do
        assert {{:error, error}, [], []} =
                 chat([ChatServer.refusal(429, "slow", headers)], options)

        assert error.kind == :rate_limited

        assert Exception.message(error) =~
                 ~r/no more requests for now \(429\), again in \d+ s: slow/
      end
    end
  end

  describe "the connection" do
    test "is retried, then fails with host and port" do
      # A port that was free a moment ago.
      {:ok, socket} = :gen_tcp.listen(0, [])
      {:ok, port} = :inet.port(socket)
      :gen_tcp.close(socket)

      assert {{:error, error}, [], [_, _]} = ask("http://localhost:#{port}", [])

      assert Exception.message(error) ==
               "no connection to the model's server: localhost:#{port}: connection refused"
    end

    test "closes with the calling process" do
      {server, url} = ChatServer.start([[ChatServer.head(), {:chunk, @partial}, :silent]])
      pid = spawn(fn -> ask(url, [], [], server) end)
      assert_receive {:chat, _}, 5_000
      Process.exit(pid, :kill)
      assert_receive :hung_up, 5_000
    end

    test "leaves no messages in the mailbox" do
      assert {{:ok, _}, _, _} = chat([ChatServer.answer(["a", "b"])])
      assert_receive {:chat, _}, 5_000
      assert_receive :played, 5_000
      refute_received _
    end
  end

  test "accepts an IPv6 address" do
    {:ok, socket} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(socket)

    assert {{:error, %{kind: :connection} = error}, [], []} =
             ask("http://[::1]:#{port}", retries: 0)

    message = Exception.message(error)
    assert message =~ "[::1]:#{port}: "
    refute message =~ "domain"
  end

  describe "TLS" do
    setup do
      {tls, authority} = Certificates.make(["localhost"])
      {:ok, tls: tls, cacertfile: authority}
    end

    test "with a trusted certificate", %{tls: tls, cacertfile: path} do
      assert {{:ok, %{text: "a"}}, ["a"], []} =
               chat([ChatServer.answer("a")], tls: tls, cacertfile: path)
    end

    test "with an untrusted certificate fails without a retry", %{tls: tls} do
      assert {{:error, error}, [], []} = chat([[], []], tls: tls)

      assert error |> Exception.message() |> String.replace(~r/localhost:\d+/, "localhost") ==
               "no connection to the model's server: localhost: TLS: the authority of its " <>
                 "certificate is not trusted"
    end

    test "with a missing file of authorities", %{tls: tls} do
      assert {{:error, error}, [], []} = chat([[]], tls: tls, cacertfile: "/none.pem")

      assert error
             |> Exception.message()
             |> String.replace(~r/localhost:\d+/, "localhost")
             |> String.ends_with?(
               "server: localhost: expected certificates in PEM in the file /none.pem: " <>
                 "no such file or directory"
             )
    end
  end

  describe "the key" do
    test "is sent but never shown" do
      model = OpenAI.new!(url: "http://localhost", model: "m", key: fn -> @key end)
      refute inspect(model) =~ @key
      refute inspect(model, structs: false) =~ @key

      script = [ChatServer.refusal(401, "Incorrect API key provided: #{@key}.")]
      log = capture_log(fn -> send(self(), chat(script, key: fn -> @key end)) end)
      assert_receive {{:error, error}, [], []}
      assert_receive {:chat, %{headers: %{"authorization" => "Bearer " <> @key}}}, 5_000
      assert Exception.message(error) =~ "(401): "
      assert Exception.message(error) =~ "Incorrect API key provided: [key]."
      refute inspect(error) =~ @key
      refute log =~ @key
    end

    test "is not shown in part either" do
      # As long as errors are, so that they are cut within the key, wherever it begins.
      for before <- 299..275//-6 do
        script = [ChatServer.refusal(401, String.duplicate("x", before) <> @key)]
        {_server, url} = ChatServer.start(script)
        assert {{:error, error}, [], []} = ask(url, key: fn -> @key end)
        message = Exception.message(error)
        assert message =~ "x[key]"
        refute message =~ "sk-"
      end
    end

    test "may be in the URL's query, which no error shows" do
      {_server, url} = ChatServer.start([[]])
      assert {{:error, error}, [], []} = ask(url <> "/v1?key=" <> @key, [])
      # The server's own text is not changed.
      assert Exception.message(error) =~
               ~r"\(400\): http://localhost:\d+/v1/chat/completions: request line "
    end

    test "is in no crash report" do
      {_server, url} = ChatServer.start([ChatServer.answer("a")])
      model = OpenAI.new!(url: url, model: "m", key: fn -> @key end)

      log =
        capture_log(fn ->
          # A task writes its report before it ends.
          {:ok, pid} =
            Task.start(fn ->
              receive do: (:go -> Model.chat(model, @hello, [], fn _ -> raise "oh" end))
            end)

          monitor = Process.monitor(pid)
          send(pid, :go)
          assert_receive {:DOWN, ^monitor, _, ^pid, {%RuntimeError{}, _} = reason}, 5_000
          refute inspect(reason, limit: :infinity) =~ @key
          Logger.flush()
        end)

      assert log =~ "oh"
      refute log =~ @key
    end

    test "comes from the environment" do
      name = "SKILLBOOK_TEST_KEY_#{System.unique_integer([:positive])}"

      assert {{:error, error}, [], []} = ask("http://localhost", key: {:env, name})
      assert error.kind == :key

      assert Exception.message(error) ==
               "no key for the model's server: the environment variable #{name} is not set, " <>
                 "or empty"

      System.put_env(name, "two words")
      assert {{:error, error}, [], []} = ask("http://localhost", key: {:env, name})

      assert Exception.message(error) ==
               "no key for the model's server: the environment variable #{name} has invalid " <>
                 "characters for a key, such as a space or line break"

      System.put_env(name, @key <> "\n")
      assert {{:ok, _}, _, _} = chat([ChatServer.answer("a")], key: {:env, name})
      assert_receive {:chat, %{headers: %{"authorization" => "Bearer " <> @key}}}, 5_000
    after
      for {name, _} <- System.get_env(),
          String.starts_with?(name, "SKILLBOOK_TEST_KEY_"),
          do: System.delete_env(name)
    end

    test "must be returned by the function" do
      for {function, message} <- [
            {fn -> nil end, "the function in the option :key returned nil"},
            {fn -> :key end, "the function in the option :key did not return text"}
          ] do
        assert {{:error, %{kind: :key, reason: ^message}}, [], []} =
                 ask("http://localhost", key: function)
      end
    end
  end

  test "options are validated" do
    for {options, message} <- [
          {[model: "m"], "a model needs the option :url"},
          {[url: "http://a"], "a model needs the option :model"},
          {[url: "http://a", model: ""],
           "expected text as the option :model of a model, got: \"\""},
          {[url: "http://a", modle: "m"],
           "unknown option :modle for a model, did you mean :model? The options are :url, " <>
             ":model, :key, :system_role, :structured, :tools, :strict, :cache, :extra, " <>
             ":connect_timeout, :idle_timeout, " <>
             ":timeout, " <>
             ":retries, :backoff, :cacertfile, :proxy, :http, :sleep"},
          {[url: "http://a", model: "m", key: "sk"],
           "expected {:env, name}, a function without arguments, or nil as the option :key " <>
             "of a model, got: :hidden"}
        ] do
      assert {:error, error} = OpenAI.new(options)
      assert Exception.message(error) == message
    end

    for url <- [
          "",
          "a",
          "ftp://a",
          "http://",
          "http:///v1",
          "http://u:p@a",
          "http://a:0",
          "http://a:65536",
          "http://a b",
          "http://a\r\nx: y",
          1
        ] do
      assert {:error, %{option: :url}} = OpenAI.new(url: url, model: "m"), inspect(url)
    end
  end

  test "no error shows text before the host of a URL" do
    for {url, shown} <- [
          {"https://ann:hunter2@a/v1", "https://[hidden]@a/v1"},
          {"https://ann:hun/ter2@a@b", "https://[hidden]@b"},
          {"ftp://hunter2@a", "ftp://[hidden]@a"},
          {"ann:hunter2@a", "[hidden]@a"},
          {"https://ann:hun\nter2@a", "https://[hidden]@a"}
        ] do
      assert {:error, error} = OpenAI.new(url: url, model: "m")
      assert Exception.message(error) =~ "option :url of a model, got: \"#{shown}\""
      refute inspect(error) =~ "ter2"
    end

    assert {:ok, _model} = OpenAI.new(url: "https://a/@b/v1", model: "m")
  end

  test "URLs" do
    for {url, endpoint} <- [
          {"http://a", "http://a/v1/chat/completions"},
          {"http://a/", "http://a/v1/chat/completions"},
          {"https://a:1/v1", "https://a:1/v1/chat/completions"},
          {"https://a/v1/", "https://a/v1/chat/completions"},
          {"https://a/x/v4", "https://a/x/v4/chat/completions"},
          {"https://a/v1/chat/completions", "https://a/v1/chat/completions"},
          {"https://a/v1?b=c", "https://a/v1/chat/completions?b=c"}
        ] do
      assert to_string(OpenAI.new!(url: url, model: "m").url) == endpoint
    end
  end

  test "the options of a chat are validated" do
    for {options, message} <- [
          {[temprature: 1],
           "unknown option :temprature for a model's answer, did you mean :temperature? The " <>
             "options are :stop, :temperature, :max_tokens, :tools, :tool_choice, " <>
             ":on_tool_call, :grammar, :schema, :extra, :timeout, :on_retry"},
          {[stop: "x"],
           "expected a list of texts as the option :stop of a model's answer, got: \"x\""}
        ] do
      model = Model.Function.new(fn _, _ -> "a" end)

      assert_raise Skillbook.OptionError, message, fn ->
        Model.chat(model, @hello, options, fn _ -> :ok end)
      end
    end
  end

  test "a function may stream its text, fail, or count tokens" do
    said = fn function ->
      Model.chat(Model.Function.new(function), @hello, [], &send(self(), {:text, &1}))
    end

    assert {:ok, %{text: "ab"}} =
             said.(fn _, _, on_text ->
               on_text.("a")
               on_text.("b")
               "ab"
             end)

    assert received(:text) == ["a", "b"]
    assert {:ok, %{text: "ab"}} = said.(fn _, _ -> ["a", "", "b"] end)
    assert received(:text) == ["a", "b"]
    error = %ModelError{kind: :server, reason: "oh"}
    assert {:error, ^error} = said.(fn _, _ -> {:error, error} end)

    answer = %{
      text: "a",
      usage: %{prompt_tokens: 1, completion_tokens: 1},
      finish_reason: :length
    }

    full = Map.merge(answer, %{usage: tokens(1, 1), tool_calls: [], opaque: nil, model: nil})
    assert {:ok, ^full} = said.(fn _, _ -> answer end)
    assert {:ok, ^full} = said.(fn _, _ -> {:ok, answer} end)
    assert {:ok, %{text: "abc"}} = said.(fn _, _ -> ["a", [?b, "c"]] end)
    assert received(:text) == ["a", "a", "abc"]
  end

  test "a function may call tools" do
    earlier = %{id: "call_1", name: "one", arguments: "{}"}

    messages =
      @hello ++
        [
          %{role: :assistant, content: "", tool_calls: [earlier]},
          %{role: :tool, id: "call_1", name: "one", content: "ok", error: false}
        ]

    calls = [
      %{name: "two", arguments: %{"b" => 1, "a" => "x"}},
      %{id: "own", name: "three", arguments: ~s({"broken)},
      %{name: "four"}
    ]

    model = Model.Function.new(fn _, _ -> %{text: "Wait.", tool_calls: calls} end)
    options = [on_tool_call: &send(self(), {:piece, &1})]
    {:ok, answer} = Model.chat(model, messages, options, &send(self(), {:text, &1}))

    assert answer.tool_calls == [
             %{id: "call_2", name: "two", arguments: ~s({"a":"x","b":1})},
             %{id: "own", name: "three", arguments: ~s({"broken)},
             %{id: "call_4", name: "four", arguments: "{}"}
           ]

    assert {answer.text, answer.finish_reason} == {"Wait.", :tool_calls}

    assert received(:piece) ==
             for(
               {call, index} <- Enum.with_index(answer.tool_calls),
               do: Map.put(call, :index, index)
             )
  end
end
