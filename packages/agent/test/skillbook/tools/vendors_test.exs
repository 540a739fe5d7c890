defmodule Skillbook.Tools.VendorsTest do
  # Tools in the formats of vendors, checked by the vendors' own types and by llama.cpp: those of
  # the built-in commands, of files, and of random declarations.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Grammar, Skill, Source, Tools, View}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{HTTPServer, Vendors}

  @shapes %{
    "openai" => [:openai, :openai_strict, :llama],
    "responses" => [:openai_responses],
    "anthropic" => [:anthropic],
    "gemini" => [:gemini]
  }
  @random 400

  defp builtin do
    {:ok, catalog} = Catalog.load([Source.builtin(), Source.builtin(:agent)])
    view = View.all(catalog)
    Tools.list(view, run_command: true) ++ few(view)
  end

  # Under names of their own, since vendors refuse two tools of one name.
  defp few(view) do
    for tool <- Tools.list(view, form: :few), do: %{tool | name: "few_" <> tool.name}
  end

  # The application's and the tests' own skills, and a corpus of skills if there is one.
  defp files do
    folders = [
      Skillbook.Test.Checkout.path("test/support/fixtures/skills")
      | List.wrap(System.get_env("SKILLBOOK_CORPUS"))
    ]

    for folder <- folders,
        {:ok, catalog} = Catalog.load([folder]),
        tool <- Tools.list(View.all(catalog), limit: 100_000),
        do: tool
  end

  defp random do
    :rand.seed(:exsss, {16, 2, 1})

    skills =
      for number <- 1..@random do
        flags = for n <- 1..Enum.random(1..8)//1, do: flag(n)
        run = fn _flags, _context -> :ok end
        Skill.new!(name: "random.x#{number}", description: "X", flags: flags, run: run)
      end

    {:ok, catalog} = Catalog.load(skills)
    tools = Tools.list(View.all(catalog), limit: @random + 1)
    for %{entry: "random." <> _} = tool <- tools, do: tool
  end

  @types [:one_of, :integer, :number, :date, :datetime, :email, :url, :text, :boolean]
  @words ["open", "a b", "it's", "\"q\"", "c\\d", "ü", "1", "true", "-x", "a,b"]

  defp flag(number) do
    type = Enum.random(@types)

    name =
      Enum.random(["f#{number}", "due-day-#{number}", "#{number}f", "F_#{number}", "ä#{number}"])

    options =
      [type: type, required: Enum.random([true, false])] ++
        Enum.random([[], [description: "About it"], [description: "\u202eHidden \"q\" \\d"]]) ++
        if(type == :boolean, do: [], else: [repeatable: Enum.random([true, false])]) ++
        of_type(type)

    default = if options[:required], do: nil, else: default(type, options)
    {String.to_atom(name), if(default, do: [default: default] ++ options, else: options)}
  end

  defp of_type(:one_of), do: [values: Enum.take_random(@words, Enum.random(1..6))]
  defp of_type(:date), do: [words: Enum.random([true, false])]

  defp of_type(:text) do
    most = Enum.random([nil, 1, 100, 1_024, 10_000, 100_000])
    pattern = Enum.random([nil, "[A-Z]{2,3}-[0-9]+", "(a|b)*c?", "\\."])
    for {key, value} <- [max_length: most, pattern: pattern], value, do: {key, value}
  end

  defp of_type(type) when type in [:integer, :number] do
    limit = fn -> Enum.random([nil, -9_000_000_000_000_000, -5, 0, 1, 20, 3_000_000_000]) end
    {min, max} = {limit.(), limit.()}
    {min, max} = if min && max && min > max, do: {max, min}, else: {min, max}
    for {key, value} <- [min: min, max: max], value, do: {key, value}
  end

  defp of_type(_type), do: []

  defp default(:one_of, options), do: Enum.random([nil, hd(options[:values])])
  defp default(:integer, options), do: Enum.random([nil, options[:min] || options[:max] || 1])
  defp default(_type, _options), do: nil

  # A tool for each construct of JSON Schema, as an MCP server or a page has it.
  @constructs %{
    "object" => %{"type" => "object", "properties" => %{"a" => %{"type" => "string"}}},
    "open" => %{"type" => "object"},
    "values" => %{"type" => "object", "additionalProperties" => %{"type" => "integer"}},
    "list" => %{"type" => "array", "items" => %{"type" => "object", "required" => ["a"]}},
    "tuple" => %{"type" => "array", "prefixItems" => [%{"type" => "string"}, true]},
    "nullable" => %{"anyOf" => [%{"type" => "string"}, %{"type" => "null"}], "default" => nil},
    "types" => %{"type" => ["integer", "null"], "minimum" => 1},
    "one" => %{"oneOf" => [%{"const" => "a"}, %{"type" => "number", "multipleOf" => 0.5}]},
    "both" => %{"allOf" => [%{"type" => "string"}, %{"minLength" => 2, "pattern" => "^a"}]},
    "numbers" => %{"enum" => [1, 2.5, nil, "x"]},
    "reference" => %{"$ref" => "#/$defs/node"},
    "not" => %{"not" => %{"type" => "string"}},
    "if" => %{"if" => %{"type" => "string"}, "then" => %{"maxLength" => 9}, "else" => true},
    "patterns" => %{"type" => "object", "patternProperties" => %{"^x" => %{"type" => "null"}}},
    "format" => %{"type" => "string", "format" => "uuid", "maxLength" => 36},
    "any" => true
  }

  defp rich do
    node = %{
      "type" => "object",
      "properties" => %{
        "children" => %{"type" => "array", "items" => %{"$ref" => "#/$defs/node"}}
      }
    }

    skills =
      for {name, property} <- @constructs do
        Skill.new!(
          name: "rich.#{name}",
          description: "Has #{name}",
          input_schema: %{
            "$schema" => "https://json-schema.org/draft/2020-12/schema",
            "type" => "object",
            "properties" => %{"x" => property, "$filter" => property, "größe" => property},
            "required" => ["x", "$filter"],
            "allOf" => [%{"anyOf" => [%{"required" => ["x"]}, %{"required" => ["größe"]}]}],
            "$defs" => %{"node" => node}
          },
          run: fn _arguments, _context -> :ok end
        )
      end

    {:ok, catalog} = Catalog.load(skills)
    tools = Tools.list(View.all(catalog))
    for %{entry: "rich." <> _} = tool <- tools, do: tool
  end

  defp all, do: builtin() ++ files() ++ random()

  test "a schema goes to models as it is, but for what no vendor allows" do
    for %{entry: "rich." <> name} = tool <- rich() do
      property = @constructs[name]
      allowed = if property == true, do: %{}, else: property
      assert parameters(tool, :mcp)["properties"]["größe"] == property
      assert parameters(tool, :mcp)["required"] == ["x", "$filter"]

      for shape <- [:openai, :anthropic] do
        schema = parameters(tool, shape)
        assert schema["properties"] == %{"x" => allowed, "filter" => allowed, "gr--e" => allowed}
        assert schema["required"] == ["x", "filter"]
        assert schema["$defs"] == parameters(tool, :mcp)["$defs"]
        assert object?(schema) and not is_map_key(schema, "allOf")
      end
    end
  end

  test "the vendors' types take them" do
    for {vendor, shapes} <- @shapes,
        shape <- shapes,
        tools <- [builtin(), files(), random(), rich()] do
      assert tools != []
      definitions = Enum.map(tools, &Tools.shape(&1, shape))
      assert {shape, Vendors.refused_tools(vendor, definitions)} == {shape, []}
    end
  end

  test "the types refuse others" do
    [tool] = Tools.list(View.all(elem(Catalog.load([]), 1)))

    for {vendor, shape} <- [
          {"openai", :anthropic},
          {"responses", :openai},
          {"anthropic", :openai},
          {"gemini", :mcp}
        ],
        do: assert([_] = Vendors.refused_tools(vendor, [Tools.shape(tool, shape)]))
  end

  # The vendors' types take any schema; their servers do not.
  test "names and schemas follow the published rules" do
    for tool <- all() do
      assert tool.name =~ ~r/\A[a-zA-Z_][a-zA-Z0-9_-]{0,63}\z/
      assert String.length(tool.description) in 1..1024
      for shape <- [:openai, :anthropic, :mcp], do: assert(object?(parameters(tool, shape)))

      for shape <- [:openai_strict, :openai_responses] do
        assert object?(parameters(tool, shape))
        if strict(tool, shape), do: assert(strict?(parameters(tool, shape)), inspect(tool))
      end

      if schema = parameters(tool, :gemini), do: assert(gemini?(schema), inspect(schema))
    end

    # A page without flags takes any.
    for tool <- builtin(),
        not strict(tool, :openai_strict),
        do: assert(tool.schema["properties"] == %{})

    assert Enum.count(builtin(), &strict(&1, :openai_strict)) > 25
  end

  defp parameters(tool, shape) do
    definition = Tools.shape(tool, shape)
    definition = definition["function"] || definition
    definition["parameters"] || definition["input_schema"] || definition["inputSchema"]
  end

  defp strict(tool, :openai_strict), do: Tools.shape(tool, :openai_strict)["function"]["strict"]
  defp strict(tool, :openai_responses), do: Tools.shape(tool, :openai_responses)["strict"]

  defp object?(%{"type" => "object", "properties" => properties} = schema) do
    Enum.all?(schema["required"] || [], &is_map_key(properties, &1)) and
      Enum.all?(Map.keys(properties), &(&1 =~ ~r/\A[a-zA-Z0-9_.-]{1,64}\z/)) and
      not Map.has_key?(schema, "anyOf")
  end

  @strict ~w(type description enum items anyOf properties required additionalProperties pattern
             format minimum maximum minItems maxItems)

  defp strict?(%{} = schema) do
    Map.keys(schema) -- @strict == [] and closed?(schema) and
      (is_map_key(schema, "type") or is_map_key(schema, "anyOf")) and
      Enum.all?(Map.values(schema["properties"] || %{}), &strict?/1) and
      Enum.all?(schema["anyOf"] || [], &strict?/1) and
      (schema["items"] == nil or strict?(schema["items"]))
  end

  defp closed?(%{"properties" => properties} = schema) do
    schema["additionalProperties"] == false and
      Enum.sort(schema["required"]) == Enum.sort(Map.keys(properties))
  end

  defp closed?(_schema), do: true

  @gemini ~w(type description enum items properties required nullable format pattern minimum
             maximum minItems maxItems maxLength minLength)

  defp gemini?(%{} = schema) do
    is_binary(schema["type"]) and Map.keys(schema) -- @gemini == [] and
      schema["format"] in [nil, "date-time"] and
      (schema["enum"] == nil or (schema["type"] == "string" and "" not in schema["enum"])) and
      (schema["type"] != "array" or gemini?(schema["items"])) and
      (schema["type"] != "object" or schema["properties"] != %{}) and
      Enum.all?(schema["properties"] || %{}, fn {name, property} ->
        name =~ ~r/\A[a-zA-Z_][a-zA-Z0-9_]{0,63}\z/ and gemini?(property)
      end)
  end

  describe "llama.cpp" do
    defp refused(schemas) do
      command =
        System.get_env("SKILLBOOK_LLAMA_SCHEMAS") ||
          raise "SKILLBOOK_LLAMA_SCHEMAS is not set. To start a server and set it: " <>
                  "bin/llama-for-tests run mix test"

      [program | arguments] = String.split(command, " ")
      path = Path.join(System.tmp_dir!(), "schemas-#{System.unique_integer([:positive])}.json")
      File.write!(path, JSON.encode(schemas))
      shell = ~s(exec "$0" "$@" < "#{path}" 2> /dev/null)
      {output, 0} = System.cmd("sh", ["-c", shell, program | arguments])
      File.rm!(path)
      {:ok, reasons} = JSON.decode(output)
      for {schema, reason} <- Enum.zip(schemas, reasons), reason, do: {schema, reason}
    end

    test "makes a grammar of each" do
      assert refused(for tool <- all() ++ rich(), do: parameters(tool, :llama)) == []
    end

    test "reads the grammar of the built-in commands" do
      {:ok, catalog} = Catalog.load([Source.builtin(), Source.builtin(:agent)])
      assert refused([Grammar.gbnf(View.all(catalog))]) == []
      assert [_] = refused(["root ::= word"])
    end

    test "makes none of some other schemas" do
      schema = fn property -> %{"type" => "object", "properties" => %{"a" => property}} end

      for property <- [
            %{"type" => "string", "maxLength" => 10_000},
            %{"type" => "string", "pattern" => "^\\d+$"},
            %{"enum" => ["\""]}
          ],
          do: assert([_] = refused([schema.(property)]))
    end

    test "'s server answers a request with tools" do
      model =
        Skillbook.Model.OpenAI.new!(
          url: HTTPServer.llama(),
          model: "chat",
          tools: true,
          retries: 0
        )

      messages = [%{role: :user, content: "Hi"}]
      options = [tools: Enum.take(builtin(), 3), max_tokens: 4, timeout: 120_000]
      assert {:ok, _answer} = Skillbook.Model.chat(model, messages, options, fn _text -> :ok end)
    end
  end
end
