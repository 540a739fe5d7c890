defmodule Skillbook.Model.GeminiTest do
  use ExUnit.Case, async: true

  use Skillbook.ModelConformance,
    vendor: "gemini",
    own: [:structured, :cache, :platform, :media, :extra],
    urls: [
      {"https://a", "https://a/v1beta/models/m:streamGenerateContent?alt=sse"},
      {"https://a/v1/publishers/google?b=c",
       "https://a/v1/publishers/google/models/m:streamGenerateContent?b=c&alt=sse"}
    ],
    interface: %{
      fields: %{
        "generationConfig" => %{
          "temperature" => 0.5,
          "maxOutputTokens" => 50,
          "stopSequences" => ["END"]
        }
      },
      extra:
        {%{"generationConfig" => %{"thinkingConfig" => %{"thinkingLevel" => "LOW"}}},
         [max_tokens: 5],
         %{
           "generationConfig" => %{
             "maxOutputTokens" => 5,
             "thinkingConfig" => %{"thinkingLevel" => "LOW"}
           }
         }},
      wrong: %{"generationConfig" => %{"candidateCount" => "two"}},
      tool_choice:
        {["toolConfig", "functionCallingConfig", "mode"],
         %{auto: "AUTO", none: "NONE", required: "ANY"}},
      schema: {["generationConfig", "responseJsonSchema"], 0},
      fault:
        {~s(data: {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}\n\n),
         1},
      error: ~s("response":{"error":"no"}),
      written: 0
    }

  doctest Skillbook.Model.Gemini

  test "answers that the server withheld are filtered" do
    for reason <- ~w(SAFETY RECITATION PROHIBITED_CONTENT) do
      answer = answer!(ask(Vendors.answer("a", reason: reason)))
      assert %{text: "a", finish_reason: :filtered} = answer
    end
  end

  test "answers with a call that the model could not write are asked for again" do
    broken = Vendors.answer([], reason: "MALFORMED_FUNCTION_CALL")
    asked = ask([broken, Vendors.answer("fine")])
    assert answer!(asked).text == "fine"
    assert [_] = asked.slept
    error = error!(ask(Vendors.answer("some", reason: "MALFORMED_FUNCTION_CALL")))

    assert {error.kind, error.text, error.reason} ==
             {:server, "some", "it ended with MALFORMED_FUNCTION_CALL"}
  end

  test "faults with a delay in Google's error wait for it" do
    failure = %{status: 429, error: %{message: "quota", delay: "3.5s"}}
    asked = ask([failure, Vendors.answer("fine")])
    assert {answer!(asked).text, asked.slept} == {"fine", [3_500]}
  end

  test "calls without a signature are marked for Gemini 3 and later" do
    call = %{id: "id1", name: "one", arguments: "{}"}
    calling = %{role: :assistant, content: "", tool_calls: [call]}

    for {name, marked?} <- [
          {"gemini-3-pro", true},
          {"gemini-10-pro", true},
          {"other", true},
          {"gemini-2.5-flash", false},
          {"gemini-2", false}
        ] do
      model = Model.Gemini.new!(model: name)
      body = Model.Client.encode(model, @hello ++ [calling], [])
      assert {name, body =~ "skip_thought_signature_validator"} == {name, marked?}
    end
  end

  test "the key comes from the vendor's variable by default" do
    model = Model.Gemini.new!(model: "m")
    assert model.key == {:env, "GEMINI_API_KEY"}
    refute inspect(model) =~ "GEMINI_API_KEY"
    assert %{key: nil} = Model.Gemini.new!(model: "m", key: nil)
    assert Model.Gemini.new!(model: "m", key: {:env, "X"}).key == {:env, "X"}
  end

  test "a tuned model has a path of its own" do
    assert Model.Gemini.new!(model: "tunedModels/a b").url.path ==
             "/v1beta/tunedModels/a%20b:streamGenerateContent"
  end

  test "the cache has no settings" do
    {:error, error} = Model.Gemini.new(model: "m", cache: [ttl: "1h"])

    assert Exception.message(error) ==
             ~s(expected true or false as the option :cache of a model, got: [ttl: "1h"])
  end
end
