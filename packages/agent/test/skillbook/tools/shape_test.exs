defmodule Skillbook.Tools.ShapeTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Tool, Tools}

  doctest Skillbook.Tool

  @day "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
  @day_or_word "^([0-9]{4}-[0-9]{2}-[0-9]{2}|today|tomorrow)$"
  @texts %{"type" => "array", "items" => %{"type" => "string"}}

  defp text(fields \\ []), do: Map.merge(%{"type" => "string"}, Map.new(fields))
  defp number(type, fields), do: Map.merge(%{"type" => type}, Map.new(fields))
  defp null(schema), do: %{schema | "type" => [schema["type"], "null"]}

  defp tool(properties, fields \\ %{}) do
    schema = Map.merge(%{"type" => "object", "properties" => properties}, fields)
    %Tool{name: "a", description: "A", schema: schema}
  end

  defp schema(tool, shape) do
    case Tools.shape(tool, shape) do
      %{"function" => %{"parameters" => schema}} -> schema
      %{"parameters" => schema} -> schema
      %{"parametersJsonSchema" => schema} -> schema
      %{"input_schema" => schema} -> schema
      %{"inputSchema" => schema} -> schema
      %{} -> nil
    end
  end

  # The schema of an optional value, and what becomes of it for strict mode, Gemini and llama.cpp.
  defp rows do
    union = %{"type" => ["string", "array"], "items" => text()}
    any = %{union | "type" => ["string", "array", "boolean"]}
    null = %{"type" => "null"}
    boolean = %{"type" => "boolean"}
    words = text([{"enum", ["a", "b"]}])
    several = %{"type" => "array", "items" => words}

    [
      # A description, and a default that it has or has not.
      {text([{"description", "D"}]), null(text([{"description", "D"}])),
       text([{"description", "D"}]), text([{"description", "D"}])},
      {number("integer", [{"default", 20}, {"description", "D (default: 20)"}]),
       null(number("integer", [{"description", "D (default: 20)"}])),
       number("integer", [{"description", "D (default: 20)"}]),
       number("integer", [{"description", "D (default: 20)"}])},
      {text([{"default", "x"}, {"description", "D"}]),
       null(text([{"description", "D (default: x)"}])), text([{"description", "D (default: x)"}]),
       text([{"description", "D (default: x)"}])},
      {Map.put(@texts, "default", ["x"]),
       Map.put(null(@texts), "description", ~s{(default: ["x"])}),
       Map.put(@texts, "description", ~s{(default: ["x"])}),
       Map.put(@texts, "description", ~s{(default: ["x"])})},
      # Texts
      {text([{"maxLength", 100}]), null(text()), text([{"maxLength", 100}]),
       text([{"maxLength", 100}])},
      {text([{"maxLength", 101}]), null(text()), text([{"maxLength", 101}]), text()},
      {text([{"minLength", 1}]), null(text()), text([{"minLength", 1}]),
       text([{"minLength", 1}])},
      {words, words |> null() |> Map.put("enum", ["a", "b", nil]), words, words},
      {text([{"enum", []}]), null(text()), text(), text()},
      {text([{"enum", ["a", ""]}]), null(text([{"enum", ["a", "", nil]}])), text(),
       text([{"enum", ["a", ""]}])},
      {text([{"format", "date"}]), null(text([{"format", "date"}])), text([{"pattern", @day}]),
       text([{"format", "date"}])},
      {text([{"format", "date-time"}]), null(text([{"format", "date-time"}])),
       text([{"format", "date-time"}]), text([{"format", "date-time"}])},
      {text([{"format", "email"}]), null(text([{"format", "email"}])), text(), text()},
      {text([{"format", "uri"}]), null(text()), text(), text()},
      {text([{"pattern", @day_or_word}]), null(text([{"pattern", @day_or_word}])),
       text([{"pattern", @day_or_word}]), text([{"pattern", @day_or_word}])},
      {text([{"pattern", "^\\d+$"}]), null(text([{"pattern", "^\\d+$"}])),
       text([{"pattern", "^\\d+$"}]), text()},
      # Numbers
      {number("integer", [{"minimum", 1}, {"maximum", 2_147_483_647}]),
       null(number("integer", [{"minimum", 1}, {"maximum", 2_147_483_647}])),
       number("integer", [{"minimum", 1}, {"maximum", 2_147_483_647}]),
       number("integer", [{"minimum", 1}, {"maximum", 2_147_483_647}])},
      {number("integer", [{"maximum", 2_147_483_648}]),
       null(number("integer", [{"maximum", 2_147_483_648}])),
       number("integer", [{"maximum", 2_147_483_648}]), number("integer", [])},
      {number("integer", [{"enum", [1, 2]}]), null(number("integer", [{"enum", [1, 2, nil]}])),
       number("integer", []), number("integer", [{"enum", [1, 2]}])},
      {boolean, null(boolean), boolean, boolean},
      # Several types
      {union, %{"anyOf" => [text(), @texts, null]}, text(), %{"anyOf" => [text(), @texts]}},
      {Map.put(any, "description", "D"),
       %{"anyOf" => [text(), @texts, boolean, null], "description" => "D"},
       text([{"description", "D"}]),
       %{"anyOf" => [text(), @texts, boolean], "description" => "D"}},
      {%{"type" => ["integer", "null"]}, %{"anyOf" => [number("integer", []), null]},
       Map.put(number("integer", []), "nullable", true),
       %{"anyOf" => [number("integer", []), null]}},
      {%{"anyOf" => [number("integer", [{"minimum", 1}]), text()], "description" => "D"},
       %{
         "anyOf" => [number("integer", [{"minimum", 1}]), text(), null],
         "description" => "D"
       }, %{"anyOf" => [number("integer", [{"minimum", 1}]), text()], "description" => "D"},
       %{"anyOf" => [number("integer", [{"minimum", 1}]), text()], "description" => "D"}},
      # Lists
      {several, null(several), several, several},
      {Map.put(@texts, "uniqueItems", true), null(@texts), @texts, @texts},
      {Map.put(@texts, "maxItems", 100), null(Map.put(@texts, "maxItems", 100)),
       Map.put(@texts, "maxItems", 100), Map.put(@texts, "maxItems", 100)},
      {Map.put(@texts, "maxItems", 101), null(Map.put(@texts, "maxItems", 101)),
       Map.put(@texts, "maxItems", 101), @texts}
    ]
  end

  test "a value in the formats that have less than JSON Schema" do
    for {property, strict, gemini, llama} <- rows() do
      tool = tool(%{"x" => property})
      own = fn shape -> schema(tool, shape)["properties"]["x"] end
      assert {property, own.(:openai_strict)} == {property, strict}
      assert {property, own.(:openai_responses)} == {property, strict}
      assert {property, own.(:gemini)} == {property, gemini}
      assert {property, own.(:llama)} == {property, llama}
      for shape <- [:openai, :anthropic, :mcp], do: assert(own.(shape) == property)
    end
  end

  test "a required value may not be null" do
    tool = tool(%{"x" => text(), "y" => text()}, %{"required" => ["x"]})

    assert schema(tool, :openai_strict) == %{
             "type" => "object",
             "properties" => %{"x" => text(), "y" => null(text())},
             "required" => ["x", "y"],
             "additionalProperties" => false
           }
  end

  test "strict mode is used where it can be" do
    closed = %{"additionalProperties" => false}
    words = &Enum.map(1..&1, fn number -> String.duplicate("x", &2) <> "#{number}" end)

    rows = [
      {tool(%{}, closed), true},
      {tool(%{"x" => text()}), true},
      {tool(%{}), false},
      {tool(%{"x" => text()}, %{"additionalProperties" => true}), false},
      {tool(%{"x" => text([{"enum", words.(999, 1)}])}), true},
      {tool(%{"x" => text([{"enum", words.(1_000, 1)}])}), false},
      {tool(%{"x" => text([{"enum", words.(249, 100)}])}), true},
      {tool(%{"x" => text([{"enum", words.(251, 100)}])}), false},
      {tool(%{"x" => %{"type" => "array", "items" => text([{"enum", words.(251, 100)}])}}),
       false},
      {tool(%{String.duplicate("x", 120_001) => text()}), false}
    ]

    for {tool, strict} <- rows do
      assert %{"strict" => ^strict} = Tools.shape(tool, :openai_strict)["function"]
      assert %{"strict" => ^strict} = Tools.shape(tool, :openai_responses)
      if not strict, do: assert(schema(tool, :openai_strict) == tool.schema)
    end
  end

  test "an object of any properties" do
    open = tool(%{})
    assert schema(open, :llama)["additionalProperties"] == true
    assert schema(tool(%{}, %{"additionalProperties" => false}), :llama)["properties"] == %{}
    # Gemini refuses an object without properties.
    assert Tools.shape(open, :gemini) == %{"name" => "a", "description" => "A"}
  end

  test "names of properties that Gemini refuses are left out" do
    names = ["a", "a_b", "a.b", "a-b", "2a", String.duplicate("a", 64), String.duplicate("a", 65)]
    tool = tool(Map.new(names, &{&1, text()}), %{"required" => names})
    assert %{"properties" => properties, "required" => required} = schema(tool, :gemini)

    assert Map.keys(properties) |> Enum.sort() ==
             ["a", "a_b", String.duplicate("a", 64)] |> Enum.sort()

    assert Enum.sort(required) == Enum.sort(Map.keys(properties))

    refute Map.has_key?(
             schema(tool(%{"2a" => text()}, %{"required" => ["2a"]}), :gemini) || %{},
             "required"
           )
  end

  test "nested objects" do
    inner = %{"type" => "object", "properties" => %{"y" => text([{"maxLength", 1_000}])}}
    tool = tool(%{"x" => inner}, %{"required" => ["x"]})
    assert schema(tool, :llama)["properties"]["x"]["properties"]["y"] == text()

    assert schema(tool, :openai_strict)["properties"]["x"] == %{
             "type" => "object",
             "properties" => %{"y" => null(text())},
             "required" => ["y"],
             "additionalProperties" => false
           }
  end
end
