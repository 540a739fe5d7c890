defmodule Skillbook.Model.AnthropicTest do
  use ExUnit.Case, async: true

  use Skillbook.ModelConformance,
    vendor: "anthropic",
    own: [:max_tokens, :structured, :cache, :platform, :credentials, :media, :extra],
    urls: [
      {"https://a", "https://a/v1/messages"},
      {"https://a/x/v1", "https://a/x/v1/messages"}
    ],
    interface: %{
      fields: %{"max_tokens" => 50, "stop_sequences" => ["END"], "temperature" => nil},
      extra:
        {%{"thinking" => %{"type" => "adaptive"}}, [extra: %{"metadata" => %{"user_id" => "u"}}],
         %{"thinking" => %{"type" => "adaptive"}, "metadata" => %{"user_id" => "u"}}},
      wrong: %{"max_tokens" => "two"},
      tool_choice: {["tool_choice", "type"], %{auto: "auto", none: "none", required: "any"}},
      # Its structured output refuses limits.
      schema: {["output_config", "format", "schema"], nil},
      fault:
        {~s(event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", ) <>
           ~s("message": "Overloaded"}}\n\n), 4},
      overloaded: %{type: "overloaded_error", message: "Overloaded"},
      error: ~s("is_error":true)
    }

  doctest Skillbook.Model.Anthropic

  test "requests leave out messages without content" do
    messages = [
      %{role: :user, content: "Hi"},
      %{role: :assistant, content: " \n"},
      %{role: :user, content: "Still there?"}
    ]

    asked = ask(Vendors.answer("a"), messages: messages)
    answer!(asked)
    assert [%{"messages" => [%{"content" => [_, _]}]} = body] = asked.record["requests"]
    refute Map.has_key?(body, "system")
  end

  test "the key comes from the vendor's variable by default" do
    model = Model.Anthropic.new!(model: "m")
    assert model.key == {:env, "ANTHROPIC_API_KEY"}
    refute inspect(model) =~ "ANTHROPIC_API_KEY"
    assert %{key: nil} = Model.Anthropic.new!(model: "m", key: nil)
    assert Model.Anthropic.new!(model: "m", key: {:env, "X"}).key == {:env, "X"}
  end

  describe "the cache" do
    @tools for name <- ["one", "two"],
               schema = %{"type" => "object", "properties" => %{}},
               do: %Skillbook.Tool{name: name, description: "A tool", schema: schema}

    defp marks(value, path \\ [])

    defp marks(%{} = map, path) do
      own = if mark = map["cache_control"], do: [{Enum.reverse(path), mark}], else: []
      own ++ Enum.flat_map(map, fn {name, value} -> marks(value, [name | path]) end)
    end

    defp marks(list, path) when is_list(list),
      do: list |> Enum.with_index() |> Enum.flat_map(fn {v, i} -> marks(v, [i | path]) end)

    defp marks(_value, _path), do: []

    test "gets marks at the tools, the system prompt and the last two turns" do
      long =
        for n <- 1..5,
            m <- [%{role: :user, content: "Q#{n}"}, %{role: :assistant, content: "A#{n}"}],
            do: m

      messages = [%{role: :system, content: "S"}] ++ long ++ [%{role: :user, content: "Q6"}]

      for {cache, mark} <- [
            {true, %{"type" => "ephemeral"}},
            {[], %{"type" => "ephemeral"}},
            {[ttl: "1h"], %{"type" => "ephemeral", "ttl" => "1h"}}
          ] do
        asked = ask(Vendors.answer("a"), [messages: messages, cache: cache], tools: @tools)

        answer!(asked)
        [body] = asked.record["requests"]

        assert Enum.sort(marks(body)) ==
                 Enum.sort([
                   {["tools", 1], mark},
                   {["system", 0], mark},
                   {["messages", 8, "content", 0], mark},
                   {["messages", 10, "content", 0], mark}
                 ])
      end

      asked = ask(Vendors.answer("a"), [messages: messages, cache: false], tools: @tools)

      answer!(asked)
      assert asked.record["requests"] |> hd() |> marks() == []
    end

    test "has no other settings" do
      for cache <- [[ttl: "2h"], [key: "a"]] do
        {:error, error} = Model.Anthropic.new(url: "http://a", model: "m", cache: cache)

        assert Exception.message(error) ==
                 ~s(expected true, false or [ttl: "5m"] or [ttl: "1h"] as the option :cache of) <>
                   " a model, got: #{inspect(cache)}"
      end
    end
  end
end
