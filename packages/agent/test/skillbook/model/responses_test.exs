defmodule Skillbook.Model.ResponsesTest do
  use ExUnit.Case, async: true

  use Skillbook.ModelConformance,
    vendor: "responses",
    own: [:structured, :cache, :media, :extra],
    urls: [{"https://a", "https://a/v1/responses"}, {"https://a/v1", "https://a/v1/responses"}],
    interface: %{
      fields: %{"temperature" => 0.5, "max_output_tokens" => 50, "store" => false},
      extra:
        {%{"metadata" => %{"a" => "1"}},
         [extra: %{"metadata" => %{"b" => "2"}, "user" => "u", "stream" => true}],
         %{"metadata" => %{"a" => "1", "b" => "2"}, "user" => "u"}},
      wrong: %{"max_output_tokens" => "two"},
      tool_choice: {["tool_choice"], %{auto: "auto", none: "none", required: "required"}},
      schema: {["text", "format", "schema"], 0},
      fault:
        {~s(event: error\ndata: {"type": "error", "code": "server_error", ) <>
           ~s("message": "Overloaded", "sequence_number": 3}\n\n), 4}
    }

  doctest Skillbook.Model.Responses

  test "errors of the request in the stream are not retried" do
    for {error, kind} <- [
          {%{code: "rate_limit_exceeded", message: "slow"}, :rate_limited},
          {%{code: "server_error", message: "oh"}, :server},
          {%{code: "invalid_prompt", message: "bad"}, :refused}
        ] do
      asked = ask([Vendors.answer([], failed: error), Vendors.answer("fine")])

      if kind == :refused do
        assert error!(asked).kind == :refused
        assert asked.slept == []
      else
        assert answer!(asked).text == "fine"
        assert [_] = asked.slept
      end
    end
  end

  test "the key comes from the vendor's variable by default" do
    model = Model.Responses.new!(model: "m")
    assert model.key == {:env, "OPENAI_API_KEY"}
    refute inspect(model) =~ "OPENAI_API_KEY"
    assert %{key: nil} = Model.Responses.new!(model: "m", key: nil)
    assert Model.Responses.new!(model: "m", key: {:env, "X"}).key == {:env, "X"}
  end

  describe "the cache" do
    @tools for name <- ["one", "two"],
               schema = %{"type" => "object", "properties" => %{}},
               do: %Skillbook.Tool{name: name, description: "A tool", schema: schema}

    defp cache_key(options, messages, tools) do
      {:ok, body} =
        [url: "https://api.openai.com/v1", model: "m"]
        |> Keyword.merge(options)
        |> Model.Responses.new!()
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
      {:error, error} = Model.Responses.new(url: "http://a", model: "m", cache: 1)

      assert Exception.message(error) ==
               ~s(expected true, false or [ttl: "30m"] or [ttl: "12h"] or [key: "…"] as ) <>
                 "the option :cache of a model, got: #{inspect(1)}"
    end
  end
end
