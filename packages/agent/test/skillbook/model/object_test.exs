defmodule Skillbook.Model.ObjectTest do
  use ExUnit.Case, async: true

  alias Skillbook.Model.{ObjectGrammar, OpenAI}
  alias Skillbook.Model.JSONSchema
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{ChatServer, HTTPServer}
  alias Skillbook.{GBNF, Model, ModelError, ObjectError, OptionError}

  doctest Skillbook.ObjectError

  @pick %{
    "type" => "object",
    "properties" => %{
      "name" => %{"type" => "string", "maxLength" => 20},
      "confidence" => %{"type" => "number", "minimum" => 0, "maximum" => 1}
    },
    "required" => ["name", "confidence"]
  }
  @schema %{
    "type" => "object",
    "properties" => %{
      "picks" => %{"type" => "array", "items" => @pick, "maxItems" => 2},
      "none" => %{"type" => "boolean"}
    },
    "required" => ["picks", "none"]
  }
  @messages [%{role: :user, content: "Choose."}]
  @good ~S({"picks": [{"name": "tea", "confidence": 0.9}], "none": false})
  @object %{"picks" => [%{"name" => "tea", "confidence" => 0.9}], "none" => false}

  # A model that answers with these texts, one after the other, and sends its messages here.
  defp scripted(answers) do
    {:ok, script} = Agent.start_link(fn -> answers end)
    test = self()

    Model.Function.new(fn messages, options ->
      send(test, {:asked, messages, options})
      Agent.get_and_update(script, fn [answer | rest] -> {answer, rest} end)
    end)
  end

  defp complete(answers, options \\ []),
    do: Model.complete_object(scripted(answers), @messages, @schema, options)

  describe "the object is found in an answer with" do
    for {name, text} <- [
          {"nothing else", @good},
          {"blanks around it", "\n  #{@good}\n"},
          {"a fence", "```json\n#{@good}\n```"},
          {"a fence without a language", "```\n#{@good}\n```"},
          {"prose around it", "I choose tea:\n\n#{@good}\n\nBecause it is tea."},
          {"a thought before it", "<think>Maybe {\"picks\": 1}? Or {x?</think>\n#{@good}"},
          {"braces in a string", "so: #{@good} (not {\"a\": \"}\"})"},
          {"an earlier attempt", ~S({"picks": [], "none": true} no: ) <> @good},
          {"a quote in the prose", ~s(The "best {one" is:\n) <> @good}
        ] do
      test name do
        assert {:ok, %{object: @object, usage: nil}} = complete([unquote(text)])
      end
    end
  end

  # The answer, and the error that the model and the caller get.
  @faults [
    {"", "expected a JSON object, got: nothing"},
    {"I would choose tea.", ~s(expected a JSON object, got: "I would choose tea.")},
    {"[1, 2]", ~s(expected a JSON object, got: "[1, 2]")},
    {~S({"picks": [}), ~S(expected a JSON object, got: "{\"picks\": [}")},
    {~S({"picks": []}), "expected the field `none`, got: none"},
    {~S({"picks": [], "none": true, "x": 1}), ~S(expected only the fields none, picks, got: "x")},
    {~S({"picks": 3, "none": true}), "at picks: expected a list, got: 3"},
    {~S({"picks": [3], "none": true}), "at picks[0]: expected an object, got: 3"},
    {~S({"picks": [{}], "none": true}), "at picks[0]: expected the field `name`, got: none"},
    {~S({"picks": [{"name": 1, "confidence": 1}], "none": true}),
     "at picks[0].name: expected text, got: 1"},
    {~S({"picks": [{"name": "a tea that is much too long", "confidence": 1}], "none": true}),
     "at picks[0].name: expected text of at most 20 characters, got: 27 characters"},
    {~S({"picks": [{"name": "tea", "confidence": 1.5}], "none": true}),
     "at picks[0].confidence: expected a number from 0 to 1, got: 1.5"},
    {~S({"picks": [{"name": "tea", "confidence": "high"}], "none": true}),
     ~S(at picks[0].confidence: expected a number, got: "high")},
    {~S({"picks": [], "none": null}), "at none: expected true or false, got: null"},
    {~S({"none": true, "picks": [{"name":"a","confidence":1},{"name":"b","confidence":1},) <>
       ~S({"name":"c","confidence":1}]}), "at picks: expected at most 2 items, got: 3 items"}
  ]

  test "a fault is repaired once, with the error" do
    for {fault, error} <- @faults do
      assert {:ok, %{object: @object}} = complete([fault, @good])
      assert_receive {:asked, [%{role: :system}, %{role: :user}], _options}
      assert_receive {:asked, [_system, _user, said, problem], _options}
      said_text = if fault == "", do: "(no answer)", else: fault
      assert said == %{role: :assistant, content: said_text}
      separator = if String.starts_with?(error, "at "), do: ", ", else: ": "

      assert problem == %{
               role: :user,
               content:
                 "This cannot be used: the model's answer#{separator}#{error}. Answer again, " <>
                   "with one JSON object that matches the schema and nothing else."
             }
    end
  end

  test "a second fault is the error" do
    for {fault, error} <- @faults do
      assert {:error, %ObjectError{text: ^fault} = object_error} = complete([fault, fault])
      assert String.ends_with?(Exception.message(object_error), error)
    end
  end

  test "an answer that was cut off, too long, dead or slow" do
    cut = %{text: ~S({"picks": [{"na), usage: nil, finish_reason: :length}

    assert {:error, %ObjectError{expected: "a JSON object", got: got}} = complete([cut, cut])
    assert got == "an answer that was cut off at its limit of tokens"

    long = List.duplicate(String.duplicate("x", 1_000), 20)
    assert {:error, error} = complete([long, long], max_bytes: 10_000)

    assert Exception.message(error) ==
             "the model's answer: expected an answer of at most 10000 bytes, got: more"

    dead = {:error, %ModelError{kind: :connection, reason: "refused"}}
    assert complete([dead]) == dead
    assert complete(["?", dead]) == dead

    slow = Model.Function.new(fn _messages, _options -> Process.sleep(:infinity) end)

    assert {:error, %ModelError{kind: :timeout, reason: "no object within 50 ms"}} =
             Model.complete_object(slow, @messages, @schema, timeout: 50)
  end

  test "a crash of the model's code is the caller's" do
    model = Model.Function.new(fn _messages, _options -> raise "broken" end)

    assert_raise RuntimeError, "broken", fn ->
      Model.complete_object(model, @messages, @schema)
    end
  end

  test "the tokens of both attempts count" do
    usage = &%{prompt_tokens: &1, completion_tokens: 1}
    answer = &%{text: &1, usage: usage.(&2), finish_reason: :stop}

    assert {:ok, %{usage: %{prompt_tokens: 30, completion_tokens: 2}}} =
             complete([answer.("?", 10), answer.(@good, 20)])
  end

  test "the schema is in the prompt, and narrower if asked for" do
    one = put_in(@schema, ["properties", "picks", "maxItems"], 1)
    assert {:ok, _} = complete([@good], constrain: one, temperature: 0, max_tokens: 50)
    assert_receive {:asked, [%{role: :system, content: system}, %{role: :user}], options}
    assert system =~ "Answer with one JSON object and nothing else."
    assert system =~ ~s("maxItems":1)
    assert options[:schema]["properties"]["picks"]["maxItems"] == 1
    assert options[:schema]["additionalProperties"] == false
    assert {options[:temperature], options[:max_tokens]} == {0, 50}

    messages = [%{role: :system, content: "Be brief."} | @messages]
    assert {:ok, _} = Model.complete_object(scripted([@good]), messages, @schema)
    assert_receive {:asked, [%{content: "Be brief.\n\nAnswer with" <> _}, _user], _options}
  end

  test "schemas with other keywords or invalid ones raise" do
    object = &%{"type" => "object", "properties" => &1}

    for {schema, message} <- [
          {%{"type" => "string"},
           ~s(expected a JSON schema with "type" => "object", got: %{"type" => "string"})},
          {object.(%{"a" => %{"type" => "string", "pattern" => "x"}}),
           "expected the keywords type, description, enum, maxLength at properties.a of a " <>
             ~s(JSON schema, got: "pattern")},
          {object.(%{"a" => %{"oneOf" => []}}),
           ~s(expected a map with "type" at properties.a of a JSON schema, ) <>
             ~s(got: %{"oneOf" => []})},
          {object.(%{"a" => %{"type" => "null"}}),
           "expected one of array, boolean, integer, number, object, string at " <>
             ~s(properties.a.type of a JSON schema, got: "null")},
          {Map.put(object.(%{}), "required", ["b"]),
           ~s(expected a list of its properties at required of a JSON schema, got: ["b"])},
          {object.(%{"a" => %{"type" => "array"}}),
           ~s(expected a map with "type" at properties.a.items of a JSON schema, got: nil)},
          {object.(%{"a" => %{"type" => "string", "enum" => []}}),
           "expected a list of texts at properties.a.enum of a JSON schema, got: []"},
          {object.(%{"a" => %{"type" => "string", "maxLength" => -1}}),
           "expected a whole number from 0 at properties.a.maxLength of a JSON schema, got: -1"},
          {object.(%{"a" => %{"type" => "number", "minimum" => "0"}}),
           ~s(expected a number at properties.a.minimum of a JSON schema, got: "0")},
          {Map.put(object.(%{}), "additionalProperties", true),
           "expected false at additionalProperties of a JSON schema, got: true"}
        ] do
      assert_raise ArgumentError, message, fn ->
        Model.complete_object(scripted([@good]), @messages, schema)
      end
    end

    deep = Enum.reduce(1..20, %{"type" => "boolean"}, fn _, inner -> object.(%{"a" => inner}) end)
    assert_raise ArgumentError, ~r/at most 16 levels/, fn -> JSONSchema.check!(deep) end
  end

  test "options are checked" do
    assert_raise OptionError, ~r/\Aunknown option :tiemout for an object of a model/, fn ->
      complete([@good], tiemout: 1)
    end

    assert_raise OptionError,
                 ~r/\Aexpected a number of milliseconds as the option :timeout/,
                 fn ->
                   complete([@good], timeout: 0)
                 end
  end

  describe "a server" do
    defp serve(script, options) do
      {_server, url} = ChatServer.start(script)
      model = OpenAI.new!([url: url, model: "m", sleep: fn _ -> :ok end] ++ options)
      Model.complete_object(model, @messages, @schema)
    end

    test "gets the schema as its response format" do
      assert {:ok, %{object: @object}} = serve([ChatServer.answer(@good)], [])
      assert_receive {:chat, %{body: body}}
      assert %{"name" => "answer", "strict" => true} = body["response_format"]["json_schema"]
      schema = body["response_format"]["json_schema"]["schema"]
      assert schema["properties"]["picks"]["items"]["properties"]["name"]["maxLength"] == 20
    end

    test "gets a grammar, or only the prompt" do
      assert {:ok, %{object: @object}} = serve([ChatServer.answer(@good)], structured: :grammar)

      assert_receive {:chat, %{body: %{"grammar" => "root ::= " <> _} = body}}
      refute Map.has_key?(body, "response_format")

      assert {:ok, %{object: @object}} = serve([ChatServer.answer(@good)], structured: :prompt)
      assert_receive {:chat, %{body: body}}
      refute Map.has_key?(body, "grammar") or Map.has_key?(body, "response_format")
    end

    test "that refuses schemas is asked without one" do
      for status <- [400, 422] do
        script = [
          ChatServer.refusal(status, "unknown field response_format"),
          ChatServer.answer(@good)
        ]

        assert {:ok, %{object: @object}} = serve(script, [])
        assert_receive {:chat, %{body: %{"response_format" => _}}}
        assert_receive {:chat, %{body: body}}
        refute Map.has_key?(body, "response_format")
      end

      assert {:error, %ModelError{kind: :refused, status: 401}} =
               serve([ChatServer.refusal(401, "no key")], [])
    end

    test "of OpenAI gets no keyword that it refuses, and others are not strict" do
      optional = Map.delete(@schema, "required")
      refute JSONSchema.all_required?(optional)
      assert JSONSchema.all_required?(@schema)
      pick = JSONSchema.without(@schema, ["maxLength"])["properties"]["picks"]["items"]
      assert pick["properties"]["name"] == %{"type" => "string"}
    end
  end

  # Its model has random weights, so only the grammar makes its texts JSON.
  describe "llama.cpp's server" do
    setup do: %{url: HTTPServer.llama()}

    test "is held to the schema by the grammar", %{url: url} do
      model = OpenAI.new!(url: url, model: "chat", structured: :grammar)
      limits = [max_tokens: 400, temperature: 1, timeout: 120_000]

      for _ <- 1..3 do
        assert {:ok, %{object: object}} = Model.complete_object(model, @messages, @schema, limits)

        assert JSONSchema.check(@schema, object) == :ok
      end
    end

    test "without a grammar gives an error, not a crash", %{url: url} do
      for structured <- [:json_schema, :prompt] do
        model = OpenAI.new!(url: url, model: "chat", structured: structured, retries: 0)
        limits = [max_tokens: 20, timeout: 120_000]
        result = Model.complete_object(model, @messages, @schema, limits)
        assert {^structured, {:error, %ObjectError{}}} = {structured, result}
      end
    end
  end

  describe "the grammar" do
    @all %{
      "type" => "object",
      "properties" => %{
        "flag" => %{"type" => "boolean"},
        "kind" => %{"type" => "string", "enum" => ["a \"b\"", "c\\d", "ü"]},
        "count" => %{"type" => "integer", "minimum" => 3, "maximum" => 120},
        "any" => %{"type" => "integer"},
        "below" => %{"type" => "integer", "minimum" => -5, "maximum" => 5},
        "share" => %{"type" => "number", "minimum" => 0, "maximum" => 1},
        "free" => %{"type" => "number"},
        "list" => %{
          "type" => "array",
          "items" => %{"type" => "string", "maxLength" => 3},
          "minItems" => 1,
          "maxItems" => 3
        },
        "empty" => %{"type" => "array", "items" => %{"type" => "boolean"}, "maxItems" => 0},
        "inner" => @pick
      },
      "required" => ["flag", "kind", "list"]
    }

    test "makes texts that are JSON and match the schema" do
      :rand.seed(:exsss, {1, 2, 3})
      # Limits of negative integers and of length are left to the check.
      lenient = put_in(@all, ["properties", "below"], %{"type" => "integer"})
      optional = Map.delete(lenient, "required")

      for schema <- [lenient, optional, @schema] do
        rules = GBNF.parse(ObjectGrammar.gbnf(schema))

        for _ <- 1..200 do
          text = GBNF.generate(rules)
          assert {:ok, object} = JSON.decode(text), text
          assert {JSONSchema.check(schema, object), text} == {:ok, text}
        end
      end
    end

    test "accepts what the check accepts" do
      rules = GBNF.parse(ObjectGrammar.gbnf(@schema))
      accepted = ~S({"none": false, "picks": [{"confidence": 0.9, "name": "t\u00e9"}]})
      assert GBNF.accepts?(rules, accepted)
      assert GBNF.accepts?(rules, ~S({"none":true,"picks":[]}))

      for text <- [
            ~S({"none":true}),
            ~S({"none":true,"picks":[1]}),
            ~S({"none":"x","picks":[]}),
            ~S({"none":true,"picks":[]} and more),
            ~S({"none":true,"picks":[{"confidence": 2, "name": "a"}]}),
            ~S({"none":true,"picks":[{"confidence": 1, "name": "\ud800"}]})
          ],
          do: refute(GBNF.accepts?(rules, text), text)
    end
  end
end
