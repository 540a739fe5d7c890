defmodule Skillbook.Model.OpenAITest do
  use ExUnit.Case, async: true

  use Skillbook.ModelConformance,
    vendor: "openai",
    own: [:system_role, :structured, :tools, :strict, :cache, :media, :extra],
    urls: [
      {"http://a", "http://a/v1/chat/completions"},
      {"http://a/", "http://a/v1/chat/completions"},
      {"https://a:1/v1", "https://a:1/v1/chat/completions"},
      {"https://a/v1/", "https://a/v1/chat/completions"},
      {"https://a/x/v4", "https://a/x/v4/chat/completions"},
      {"https://a/v1/chat/completions", "https://a/v1/chat/completions"},
      {"https://a/v1?b=c", "https://a/v1/chat/completions?b=c"}
    ],
    interface: %{
      fields: %{"temperature" => 0.5, "max_tokens" => 50, "stop" => ["END"]},
      extra:
        {%{"metadata" => %{"a" => "1"}},
         [extra: %{"metadata" => %{"b" => "2"}, "user" => "u", "stream" => true}],
         %{"metadata" => %{"a" => "1", "b" => "2"}, "user" => "u"}},
      wrong: %{"n" => "two"},
      tool_choice: {["tool_choice"], %{auto: "auto", none: "none", required: "required"}},
      schema: {["response_format", "json_schema", "schema"], 0},
      fault: {~s(data: {"error": {"message": "Overloaded", "type": "server_error"}}\n\n), 2},
      answers: [[mixed: true]],
      data: false
    }

  alias Skillbook.Model.OpenAI
  alias Skillbook.Test.ChatServer

  doctest Skillbook.Model.OpenAI

  # The result of a request to a server that plays a script.
  defp chat(script, options \\ [], call \\ []) do
    {_server, url} = ChatServer.start(script)
    model = OpenAI.new!([url: url, model: "m"] ++ options)
    Model.chat(model, [%{role: :user, content: "Hello"}], call, fn _text -> :ok end)
  end

  test "options become fields that the server accepts" do
    call = [
      stop: ["\n```"],
      temperature: 0.2,
      max_tokens: 50,
      grammar: "root ::= \"a\"",
      extra: %{"top_p" => 0.5}
    ]

    assert {:ok, _} = chat([ChatServer.answer("a")], [], call)
    assert_receive {:chat, %{body: body}}
    assert %{"stop" => ["\n```"], "temperature" => 0.2, "max_tokens" => 50, "top_p" => 0.5} = body
    assert body["stream_options"] == %{"include_usage" => true}

    assert {:ok, _} = chat([ChatServer.answer("a")], [], extra: %{"stream_options" => nil})

    assert_receive {:chat, %{body: body}}
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
      assert_receive {:chat, %{body: %{"messages" => ^expected}}}
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

  test "finish reasons" do
    for {reason, expected} <- [
          {"stop", :stop},
          {"length", :length},
          {"content_filter", :filtered},
          {"tool_calls", :other}
        ] do
      assert {:ok, %{finish_reason: ^expected}} =
               chat([ChatServer.answer("a", finish_reason: reason)])
    end
  end

  describe "calls of servers that differ from OpenAI's" do
    defp calls(deltas, reason \\ "stop") do
      deltas =
        for calls <- deltas,
            do: ChatServer.json(%{choices: [%{index: 0, delta: %{tool_calls: calls}}]})

      stream = ChatServer.stream(deltas ++ [ChatServer.finish(reason), "[DONE]"])
      assert {:ok, answer} = chat([stream])
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

      {:ok, answer} = chat([ChatServer.stream([stream, "[DONE]"])])
      assert [%{id: "call_" <> one}, %{id: "call_" <> other}] = answer.tool_calls
      assert one != other and byte_size(one) == 24
    end
  end

  test "the vendor's key is for its own server, by default" do
    assert OpenAI.new!(url: "http://localhost:8080", model: "m").key == nil
    own = [url: "https://api.openai.com/v1", model: "m"]
    assert OpenAI.new!(own).key == {:env, "OPENAI_API_KEY"}
    refute inspect(OpenAI.new!(own)) =~ "OPENAI_API_KEY"
    assert %{key: nil} = OpenAI.new!([key: nil] ++ own)
    assert OpenAI.new!([key: {:env, "X"}] ++ own).key == {:env, "X"}
    assert {:error, error} = OpenAI.new(model: "m")
    assert Exception.message(error) == "a model needs the option :url"
  end

  describe "the cache" do
    @tools for name <- ["one", "two"],
               schema = %{"type" => "object", "properties" => %{}},
               do: %Skillbook.Tool{name: name, description: "A tool", schema: schema}

    defp cache_key(options, messages, tools) do
      {:ok, body} =
        [url: "https://api.openai.com/v1", model: "m"]
        |> Keyword.merge(options)
        |> OpenAI.new!()
        |> Model.Client.encode(messages, tools: tools)
        |> JSON.decode()

      body["prompt_cache_key"]
    end

    test "gets a key that depends on the tools and the system prompt only" do
      one = cache_key([], @hello, @tools)
      assert one =~ ~r/\Askillbook-[0-9a-f]{32}\z/
      assert cache_key([], @hello ++ [%{role: :user, content: "More"}], @tools) == one
      refute cache_key([], @hello, tl(@tools)) == one
      refute cache_key([], [%{role: :system, content: "Other"}], @tools) == one
      assert cache_key([cache: false], @hello, @tools) == nil
    end

    test "of another server gets a key if it is set" do
      url = [url: "http://localhost"]
      assert cache_key(url, @hello, @tools) == nil
      own = [key: "own", ttl: "30m"]
      assert cache_key([cache: own] ++ url, @hello, @tools) == "own"

      assert [%{"prompt_cache_key" => "own", "prompt_cache_options" => %{"ttl" => "30m"}}] =
               requests(Vendors.answer("a"), [cache: own], tools: @tools)
    end

    test "has no other settings" do
      {:error, error} = OpenAI.new(url: "http://a", model: "m", cache: [ttl: "12h"])

      assert Exception.message(error) ==
               ~s(expected true, false or [ttl: "30m"] or [key: "…"] as ) <>
                 "the option :cache of a model, got: #{inspect(ttl: "12h")}"
    end
  end
end
