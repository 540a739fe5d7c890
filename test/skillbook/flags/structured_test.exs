defmodule Skillbook.Flags.StructuredTest do
  use ExUnit.Case, async: true

  alias Skillbook.Run.Policy
  alias Skillbook.Support.JSON

  alias Skillbook.{
    Catalog,
    Command,
    Declaration,
    Entry,
    FlagError,
    Flags,
    RoutedCommand,
    Skill,
    View
  }

  @schema %{
    "type" => "object",
    "properties" => %{
      "people" => %{"type" => "array", "items" => %{"$ref" => "#/$defs/person"}},
      "author" => %{"anyOf" => [%{"type" => "string"}, %{"type" => "null"}], "default" => nil},
      "mode" => %{"enum" => ["fast", "safe"], "type" => "string"},
      "place" => %{"enum" => ["New York", "Rome"]},
      "level" => %{"enum" => [1, 2, 3]},
      "limit" => %{"type" => "integer", "minimum" => 1, "maximum" => 9},
      "tags" => %{"type" => "array", "items" => %{"type" => "string"}},
      "filter" => %{
        "oneOf" => [
          %{
            "type" => "object",
            "properties" => %{"kind" => %{"const" => "tag"}, "tag" => %{"type" => "string"}},
            "required" => ["kind", "tag"]
          },
          %{
            "type" => "object",
            "properties" => %{"kind" => %{"const" => "all"}},
            "required" => ["kind"],
            "additionalProperties" => false
          }
        ]
      },
      "dry run" => %{"type" => "boolean"},
      "$top" => %{"type" => ["integer", "null"]},
      "user.name" => %{"type" => "string"},
      "größe" => %{"type" => "number"},
      "id" => %{"type" => "string"},
      "ID" => %{"type" => "string"},
      "help" => %{"type" => "string"}
    },
    "required" => ["people"],
    "$defs" => %{
      "person" => %{
        "type" => "object",
        "properties" => %{
          "name" => %{"type" => "string", "minLength" => 1},
          "friends" => %{"type" => "array", "items" => %{"$ref" => "#/$defs/person"}}
        },
        "required" => ["name"],
        "additionalProperties" => false
      }
    }
  }

  defp view do
    skill =
      Skill.new!(
        name: "crm.add",
        description: "Adds people",
        input_schema: @schema,
        run: fn arguments, _context -> {:ok, JSON.encode(arguments) |> to_string()} end
      )

    {:ok, catalog} = Catalog.load([skill])
    View.all(catalog)
  end

  # What a handler gets, as JSON, or the error.
  defp run(line, options \\ []) do
    [result] = Skillbook.run(view(), "```cmd\ncrm.add #{line}\n```", options).results
    result.content
  end

  test "a line has the arguments that its words mean" do
    rows = [
      {~S(--people '[{"name": "Ann"}]'), %{"people" => [%{"name" => "Ann"}]}},
      {~S(--people '{"name": "Ann"}'), %{"people" => [%{"name" => "Ann"}]}},
      {~S(--people {"name": "Ann"}), %{"people" => [%{"name" => "Ann"}]}},
      {~S('[{"name": "Ann"}]'), %{"people" => [%{"name" => "Ann"}]}},
      {~S(--people [] --author ann), %{"people" => [], "author" => "ann"}},
      {~S(--people [] --author null), %{"people" => [], "author" => nil}},
      {~S(--people [] --author 'Ann B'), %{"people" => [], "author" => "Ann B"}},
      {~S(--people [] --mode fast), %{"people" => [], "mode" => "fast"}},
      {~S(--people [] --place "New York"), %{"people" => [], "place" => "New York"}},
      {~S(--people [] --level 2), %{"people" => [], "level" => 2}},
      {~S(--people [] --limit 9), %{"people" => [], "limit" => 9}},
      {~S(--people [] --tags a --tags "b, c"), %{"people" => [], "tags" => ["a", "b, c"]}},
      {~S(--people [] --tags a b), %{"people" => [], "tags" => ["a", "b"]}},
      {~S(--people [] --filter '{"kind": "all"}'),
       %{"people" => [], "filter" => %{"kind" => "all"}}},
      {~S(--people [] --dry-run), %{"people" => [], "dry run" => true}},
      {~S(--people [] --dry-run off), %{"people" => [], "dry run" => false}},
      {~S(--people [] --top 5), %{"people" => [], "$top" => 5}},
      {~S(--people [] --top null), %{"people" => [], "$top" => nil}},
      {~S(--people [] --user-name ann), %{"people" => [], "user.name" => "ann"}},
      {~S(--people [] --größe 1.5), %{"people" => [], "größe" => 1.5}},
      {~S(--people [] --id a --ID b), %{"people" => [], "id" => "a", "ID" => "b"}},
      {~S(--people [] --id-2 a --ID b), %{"people" => [], "id" => "a", "ID" => "b"}}
    ]

    for {line, arguments} <- rows, do: assert({line, run(line)} == {line, json(arguments)})
  end

  test "members of an object keep their names and values" do
    for arguments <- [
          %{"people" => [%{"name" => "Ann", "friends" => [%{"name" => "Bob"}]}]},
          %{"people" => [], "author" => nil, "$top" => nil, "größe" => 1.5},
          %{"people" => [], "id" => "a", "ID" => "b", "user.name" => "c", "dry run" => false},
          %{"people" => [], "level" => 3, "help" => "me"}
        ] do
      assert run(json(arguments)) == json(arguments)
    end

    # As models write them.
    assert run(~S({"people": "[{\"name\": \"Ann\"}]", "limit": "3", "dry_run": "yes"})) ==
             json(%{"people" => [%{"name" => "Ann"}], "limit" => 3, "dry run" => true})

    assert run(~S({"people": {"name": "Ann"}, "mode": null, "limit": [4]})) ==
             json(%{"people" => [%{"name" => "Ann"}], "limit" => 4})
  end

  test "mistakes have their places, all at once" do
    rows = [
      {"--mode fast", "--people is required and missing. Add it as: --people VALUE"},
      {~S(--people '[{"name": ""}, {"nam": "Ann"}]' --limit 12),
       ~S(--limit must be a number up to 9, got 12) <>
         "\n" <>
         ~S(--people must be a text of at least 1 characters at [0].name, got "") <>
         "\n--people needs [1].name, which is missing\n" <>
         "--people has [1].nam, which is unknown. Known: friends, name"},
      {"--people 7 --mode slow",
       ~S(--mode must be one of "fast", "safe", got "slow") <>
         "\n--people must be an object at [0], got 7"},
      {"--people [] --author",
       "--author needs a value and has none. Write for example: --author VALUE"},
      {"--people [] --filter '{}'",
       ~S(--filter must be JSON: {kind: "tag", tag: text} or {kind: "all"}, got {})},
      {"--people [] --tags",
       "--tags needs a value and has none. Write for example: --tags VALUE"},
      {"--peopel [] --limit 12 --mode",
       "unknown flag --peopel; did you mean --people? Known flags: --people, --top, --ID, " <>
         "--author, --dry-run, --filter, --größe, --help-2, --id-2, --level, --limit, --mode, " <>
         "--place, --tags, --user-name\n" <>
         "--mode needs a value and has none. Write for example: --mode VALUE\n" <>
         "--limit must be a number up to 9, got 12"},
      {"--peopel []",
       "unknown flag --peopel; did you mean --people? Known flags: --people, --top, --ID, " <>
         "--author, --dry-run, --filter, --größe, --help-2, --id-2, --level, --limit, --mode, " <>
         "--place, --tags, --user-name"}
    ]

    for {line, message} <- rows, do: assert({line, run(line)} == {line, message})

    assert run(~S({"people": [{"name": 5}], "mode": "slow"}), json: true) ==
             ~S("mode" must be one of "fast", "safe", got "slow") <>
               "\n" <> ~S("people" must be a text at [0].name, got 5)

    # By the names that the properties of the tool have.
    wrong = ~S({"people": [], "user.name": [1, 2], "dry run": "x", "$top": "y", "größe": "z"})

    assert wrong |> run(json: true) |> String.split("\n") |> Enum.sort() == [
             ~S("dry-run" must be true or false, got "x"),
             ~S("gr--e" must be a number, got "z"),
             ~S("top" must be a whole number or null, got "y"),
             ~S("user.name" must be a text, got [1,2])
           ]
  end

  test "a value that breaks a rule of its structure is answered with the rule" do
    list = %{"type" => "array", "items" => %{"type" => ["integer", "object"]}}

    rows = [
      {Map.put(list, "maxItems", 1), "[1, 2]", "a list of at most 1 items, got 2"},
      {Map.put(list, "uniqueItems", true), ~S([{"a": 1}, {"a": 1}]),
       ~S(a list without repetitions, got {"a":1} twice)},
      {Map.put(list, "contains", %{"type" => "integer"}), ~S([{"a": 1}]),
       "a list with at least 1 items of a form, got 0"},
      {Map.put(list, "not", %{"const" => [1]}), "[1]", "a value other than [1], got [1]"},
      {%{"enum" => [1, %{"a" => 2}]}, ~S({"a": 3}), ~S(one of 1, {"a":2}, got an object)},
      {list, ~S({"a": {}}), nil},
      {list, "true", "a whole number or an object at [0], got true"}
    ]

    for {schema, value, message} <- rows do
      schema = %{"type" => "object", "properties" => %{"value" => schema}}
      skill = [name: "a.b", description: "A", input_schema: schema]
      skill = Skill.new!([run: fn _arguments, _context -> {:ok, "done"} end] ++ skill)
      {:ok, catalog} = Catalog.load([skill])
      text = hd(Skillbook.run(View.all(catalog), "```cmd\na.b --value '#{value}'\n```").results)

      assert {value, text.content} ==
               {value, (message && "--value must be " <> message) || "done"}
    end
  end

  test "five mistakes are told at most" do
    line = "--people [] --limit 12 --mode slow --level x --place y --top q --größe z --dry-run=p"

    lines = line |> run() |> String.split("\n")
    assert length(lines) == 5
    assert Enum.uniq(lines) == lines
  end

  test "a flag can have a schema of its own" do
    page = """
    ---
    name: shop.order
    description: Orders
    handler: Shop
    flags:
      lines:
        required: true
        schema: {type: array, items: {type: object, required: [sku]}, minItems: 1}
      limit: {type: integer, default: 3}
      note: json
    ---
    Orders.
    """

    declaration = Declaration.read(page)
    assert [%{type: :json, structure: "list of object"}, _limit, note] = declaration.flags
    assert {note.type, note.structure} == {:json, "any value"}

    cast = &Flags.cast_declared(&1, declaration, &2)

    assert cast.(%{"lines" => ~S([{"sku": "A"}])}, []) ==
             {:ok, %{"lines" => [%{"sku" => "A"}], "limit" => 3}}

    assert cast.(%{"lines" => [%{"sku" => "A"}], "note" => %{"a" => [1]}}, json: true) ==
             {:ok, %{"lines" => [%{"sku" => "A"}], "limit" => 3, "note" => %{"a" => [1]}}}

    assert {:error, %FlagError{} = error} = cast.(%{"lines" => ~S([{}]), "limit" => "x"}, [])

    assert Exception.message(error) ==
             "--lines needs [0].sku, which is missing\n" <>
               ~S(--limit must be a whole number, got "x". Write for example: --limit 10)
  end

  # OpenAI's strict mode requires all fields, so a model writes `null` for the others.
  test "null of a field that may be absent counts as absent, at every depth" do
    line = {:map, sku: [type: :text, required: true], count: :integer, at: {:map, row: :integer}}

    skill =
      Skill.new!(
        name: "orders.add",
        description: "Adds an order",
        flags: [
          line: line,
          lines: {:list, line},
          deep: {:map, lines: {:list, {:map, line: line}}}
        ],
        run: fn _flags, _context -> {:ok, ""} end
      )

    {:ok, catalog} = Catalog.load([skill])
    {:ok, declaration} = View.flags(View.all(catalog), "orders.add")
    cast = &Flags.cast_declared(&1, declaration, json: &2)
    given = %{"sku" => "A", "count" => nil, "at" => %{"row" => nil}}
    meant = %{"sku" => "A", "at" => %{}}

    for {flag, given, meant} <- [
          {"line", given, meant},
          {"line", %{given | "at" => nil}, %{"sku" => "A"}},
          {"lines", [given, %{"sku" => "B"}], [meant, %{"sku" => "B"}]},
          {"lines", given, [meant]},
          {"deep", %{"lines" => [%{"line" => given}]}, %{"lines" => [%{"line" => meant}]}},
          {"deep", %{"lines" => nil}, %{}}
        ] do
      assert {flag, cast.(%{flag => given}, true)} == {flag, {:ok, %{flag => meant}}}
      assert {flag, cast.(%{flag => json(given)}, true)} == {flag, {:ok, %{flag => meant}}}
      assert {flag, cast.(%{flag => json(given)}, false)} == {flag, {:ok, %{flag => meant}}}
    end

    assert {:error, error} = cast.(%{"line" => %{"sku" => nil, "count" => nil}}, true)
    assert Exception.message(error) =~ "--line must be a text at sku, got null"
    assert {:error, error} = cast.(%{"line" => %{"sku" => "A", "more" => nil}}, true)
    assert Exception.message(error) =~ "more"
  end

  test "null counts as absent by the alternative of its object, and stays where it is allowed" do
    alternative = fn kind, fields, required ->
      fields = Map.put(fields, "kind", %{"const" => kind})
      %{"type" => "object", "properties" => fields, "required" => ["kind" | required]}
    end

    integer = %{"type" => "integer"}
    maybe = %{"type" => ["integer", "null"]}

    schema = %{
      "type" => "object",
      "properties" => %{
        "node" => %{"$ref" => "#/$defs/node"},
        "either" => %{
          "anyOf" => [
            alternative.("a", %{"x" => integer}, []),
            alternative.("b", %{"x" => maybe, "y" => integer}, []),
            alternative.("c", %{"x" => integer}, ["x"])
          ]
        },
        "names" => %{"type" => "object", "additionalProperties" => integer}
      },
      "$defs" => %{
        "node" => %{
          "allOf" => [%{"properties" => %{"own" => integer}}],
          "type" => "object",
          "properties" => %{
            "kind" => %{"enum" => ["leaf", "tree"]},
            "next" => %{"anyOf" => [%{"$ref" => "#/$defs/node"}, %{"$ref" => "#/$defs/node"}]}
          }
        }
      }
    }

    page = fn schema ->
      "---\nname: a.b\ndescription: D\nhandler: H\ninput_schema: #{json(schema)}\n---\n"
    end

    declaration = Declaration.read(page.(schema))
    assert declaration.error == nil
    cast = &Flags.cast_declared(&1, declaration, json: true)
    leaf = %{"kind" => nil, "next" => nil, "own" => nil}

    for {given, meant} <- [
          {%{"node" => leaf}, %{"node" => %{}}},
          {%{"node" => %{"next" => %{"next" => leaf, "kind" => "tree"}}},
           %{"node" => %{"next" => %{"next" => %{}, "kind" => "tree"}}}},
          {%{"either" => %{"kind" => "a", "x" => nil}}, %{"either" => %{"kind" => "a"}}},
          {%{"either" => %{"kind" => "b", "x" => nil, "y" => nil}},
           %{"either" => %{"kind" => "b", "x" => nil}}}
        ] do
      assert {given, cast.(given)} == {given, {:ok, meant}}
    end

    for given <- [%{"either" => %{"kind" => "c", "x" => nil}}, %{"names" => %{"ann" => nil}}],
        do: assert({^given, {:error, %FlagError{}}} = {given, cast.(given)})

    # References without an end, and many alternatives of one value, take little time.
    tree = fn depth -> Enum.reduce(1..depth, leaf, fn _, next -> %{leaf | "next" => next} end) end
    {time, {:ok, _value}} = :timer.tc(fn -> cast.(%{"node" => tree.(20)}) end)
    assert time < 5_000_000
  end

  test "a schema with a mistake refuses every call" do
    for {field, message} <- [
          {"input_schema: {type: array}", ~S(expected the type "object" in `input_schema`)},
          {"input_schema: {properties: {a: {type: strin}}}",
           "expected one of string, integer, number, boolean, array, object, null for `type`, " <>
             ~S(got "strin" in `input_schema`)},
          {"input_schema: '{'",
           "expected JSON: EOF while parsing an object at line 1 column 1 " <>
             "in `input_schema`"},
          {"inputSchema: {type: object}", "expected `input_schema`, got `inputSchema`"},
          {"input_schema: {type: object}\nflags: {}",
           "expected `flags` or `input_schema`, got both"},
          {"flags: {a: {schema: [1]}}", "expected an object, got [1] in `schema` of --a"}
        ] do
      page = "---\nname: a.b\ndescription: D\nhandler: H\n#{field}\n---\n"
      assert {field, Declaration.read(page).error} == {field, message}
    end
  end

  test "an approval by a flag holds for its property, however it is written" do
    page = """
    ---
    name: crm.drop
    description: Drops
    handler: MyApp.Drop
    approval: [--top]
    input_schema: {properties: {$top: {type: integer}, id: {type: string}}}
    ---
    Drops.
    """

    declaration = Declaration.read(page)

    entry = %Entry{
      name: "crm.drop",
      kind: :command,
      description: "Drops",
      path: "drop.md",
      source: ".",
      body: "",
      limits: %{approval: ["top"]}
    }

    for {flags, json?, asked?} <- [
          {%{"top" => "5"}, false, true},
          {%{"$top" => 5}, true, true},
          {%{"top" => 5}, true, true},
          {%{"id" => "a"}, true, false}
        ] do
      {:ok, cast} = Flags.cast_declared(flags, declaration, json: json?)
      command = %Command{name: "crm.drop", raw: "", flags: cast}

      routed = %RoutedCommand{
        name: "crm.drop",
        command: command,
        entry: entry,
        declaration: declaration
      }

      assert {flags, Policy.approval?(routed)} == {flags, asked?}
    end

    undeclared = %{entry | limits: %{approval: ["$top"]}}
    command = %Command{name: "crm.drop", raw: "", flags: %{}}
    routed = %RoutedCommand{name: "crm.drop", command: command, entry: undeclared}
    assert Policy.approval?(routed)
    assert Policy.approval?(%{routed | declaration: declaration})
  end

  @tag :tmp_dir
  test "a placeholder has the value of its property", %{tmp_dir: folder} do
    page = """
    ---
    name: crm.plan
    description: Plans
    input_schema:
      properties:
        people: {type: array, items: {type: object}}
        tags: {type: array, items: {type: string}}
        $top: {type: integer}
      required: [people]
    ---
    Of {people}: {tags}, {top}.
    """

    File.write!(Path.join(folder, "plan.md"), page)
    {:ok, catalog} = Catalog.load([folder])
    line = ~S(crm.plan --people '[{"a": 1}, {"b": 2}]' --tags x y --top 7)
    [result] = Skillbook.run(View.all(catalog), "```cmd\n#{line}\n```").results
    assert result.content == ~S(Of "[{\"a\":1},{\"b\":2}]": x, y, 7.)
  end

  test "the page shows the structure" do
    text = to_string(Skillbook.run(view(), "```cmd\nget_skill: crm.add\n```"))

    assert text =~
             ~r/^  --people +JSON: list of \{friends\?: list of .*name: text\}, required$/m

    assert text =~ ~r/^  --place +One of: "New York" or "Rome"$/m
  end

  defp json(value), do: value |> JSON.encode() |> to_string()
end
