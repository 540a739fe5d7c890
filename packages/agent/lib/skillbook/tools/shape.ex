defmodule Skillbook.Tools.Shape do
  @moduledoc false
  # Writes tools in the formats of vendors. Each accepts another part of JSON Schema, and refuses
  # a whole request for one keyword that it does not know. So a format names the keywords that it
  # keeps; every other one is dropped. The command checks all values in any case.
  #
  # The schema of a page or of an MCP server may have all of JSON Schema. Vendors that read JSON
  # Schema itself get it as it is, but for the names of its properties and what no vendor allows
  # beside them: alternatives of the whole object.

  alias Skillbook.Support.JSON
  alias Skillbook.Tool

  @type t :: Skillbook.Tools.shape()

  @all [:openai, :openai_strict, :openai_responses, :anthropic, :gemini, :mcp, :llama]

  @spec all() :: [t()]
  def all, do: @all

  @spec of(Tool.t(), t()) :: map()
  def of(%Tool{} = tool, :mcp) do
    definition = %{
      "name" => tool.name,
      "description" => tool.description,
      "inputSchema" => tool.schema,
      "annotations" => %{"readOnlyHint" => tool.reads}
    }

    if tool.title, do: Map.put(definition, "title", tool.title), else: definition
  end

  def of(%Tool{} = tool, shape), do: vendor(%{tool | schema: allowed(tool)}, shape)

  defp vendor(tool, :openai), do: function(tool, %{"parameters" => tool.schema})
  defp vendor(tool, :llama), do: function(tool, %{"parameters" => llama(tool.schema)})

  defp vendor(tool, :openai_strict), do: function(tool, strict_fields(tool.schema))

  defp vendor(tool, :openai_responses) do
    %{"type" => "function", "name" => tool.name, "description" => tool.description}
    |> Map.merge(strict_fields(tool.schema))
  end

  defp vendor(tool, :anthropic),
    do: %{"name" => tool.name, "description" => tool.description, "input_schema" => tool.schema}

  defp vendor(tool, :gemini) do
    declaration = %{"name" => tool.name, "description" => tool.description}

    if rich?(tool.schema, ["anyOf"]) do
      Map.put(declaration, "parametersJsonSchema", tool.schema)
    else
      # It refuses an object without properties.
      case gemini(tool.schema) do
        %{"properties" => properties} when properties == %{} -> declaration
        schema -> Map.put(declaration, "parameters", schema)
      end
    end
  end

  @combined ~w(allOf anyOf oneOf not if then else)

  # The schema of a tool that is no declaration of flags, without what no vendor allows.
  defp allowed(%Tool{schema: schema, renamed: renamed}) do
    properties =
      for {name, property} <- properties(schema, schema, 2),
          into: %{},
          do: {Map.get(renamed, name, name), if(property == true, do: %{}, else: property)}

    required = for name <- List.wrap(schema["required"]), do: Map.get(renamed, name, name)

    schema =
      schema |> Map.drop(["$schema", "$id" | @combined]) |> Map.put("properties", properties)

    if required == [], do: schema, else: Map.put(schema, "required", required)
  end

  # With those of its parts and alternatives, which are dropped.
  defp properties(schema, root, depth) do
    parts =
      if depth == 0,
        do: [],
        else: Enum.flat_map(@combined -- ["not", "if"], &List.wrap(schema[&1]))

    parts
    |> Enum.map(&referred(&1, root))
    |> Enum.filter(&is_map/1)
    |> Enum.reduce(%{}, &Map.merge(&2, properties(&1, root, depth - 1)))
    |> Map.merge(with %{} = own <- schema["properties"], do: own, else: (_ -> %{}))
  end

  defp referred(%{"$ref" => "#/" <> pointer}, root) when is_binary(pointer) do
    pointer
    |> String.split("/")
    |> Enum.reduce(root, fn
      key, %{} = schema -> schema[key]
      _key, _other -> nil
    end)
  end

  defp referred(schema, _root), do: schema

  # Keywords without which a schema means something else. Flags have none of them.
  @structural ~w($ref $dynamicRef oneOf allOf not if prefixItems patternProperties propertyNames
                 dependentSchemas contains unevaluatedProperties unevaluatedItems)

  # Whether a schema has structures that formats of less than JSON Schema cannot show.
  defp rich?(schema, more \\ [])

  defp rich?(%{} = schema, more) do
    Enum.any?(schema, fn
      {"properties", %{} = properties} ->
        Enum.any?(properties, fn {_name, schema} -> below?(schema, more) end)

      {"items", items} ->
        below?(items, more)

      {"anyOf", schemas} when is_list(schemas) ->
        "anyOf" in more or Enum.any?(schemas, &below?(&1, more))

      {key, _value} ->
        key in @structural
    end)
  end

  defp rich?(_schema, _more), do: true

  # A value that is an object of any keys.
  defp below?(%{"additionalProperties" => more}, _keys) when more != false, do: true

  defp below?(%{"type" => "object"} = schema, _) when not is_map_key(schema, "properties"),
    do: true

  defp below?(schema, more), do: rich?(schema, more)

  defp function(tool, fields) do
    function = Map.merge(%{"name" => tool.name, "description" => tool.description}, fields)
    %{"type" => "function", "function" => function}
  end

  # OpenAI's strict mode: every property is required, so an optional one may be null, and objects
  # are closed. A tool that takes any property cannot be strict.

  @strict ~w(type description enum items anyOf properties required additionalProperties pattern
             format minimum maximum minItems maxItems)
  @strict_formats ~w(date-time time date duration email hostname ipv4 ipv6 uuid)

  # Its limits of a schema.
  @max_enum 1_000
  @max_long_enum 250
  @max_long_enum_size 15_000
  @max_size 120_000

  defp strict_fields(schema) do
    strict = if strict?(schema) and not rich?(schema), do: strict(schema)

    if strict && fits?(strict),
      do: %{"parameters" => strict, "strict" => true},
      else: %{"parameters" => schema, "strict" => false}
  end

  defp strict?(%{"additionalProperties" => false}), do: true
  defp strict?(%{"additionalProperties" => _}), do: false
  defp strict?(%{"properties" => properties}), do: properties != %{}
  defp strict?(_schema), do: false

  defp strict(schema) do
    schema
    |> with_default()
    |> Map.take(@strict)
    |> Map.filter(fn {key, value} -> strict?(key, value) end)
    |> alternatives()
    |> nested(&strict/1)
    |> all_required()
  end

  defp strict?("format", format), do: format in @strict_formats
  defp strict?("enum", values), do: values != []
  defp strict?(_key, _value), do: true

  defp all_required(%{"properties" => properties} = schema) do
    required = Map.get(schema, "required", [])

    properties =
      Map.new(properties, fn {name, property} ->
        {name, if(name in required, do: property, else: nullable(property))}
      end)

    Map.merge(schema, %{
      "properties" => properties,
      "required" => properties |> Map.keys() |> Enum.sort(),
      "additionalProperties" => false
    })
  end

  defp all_required(schema), do: schema

  defp nullable(%{"anyOf" => schemas} = schema),
    do: %{schema | "anyOf" => Enum.uniq(schemas ++ [%{"type" => "null"}])}

  defp nullable(%{"type" => type} = schema) when is_binary(type) and type != "null" do
    schema = %{schema | "type" => [type, "null"]}
    if schema["enum"], do: Map.update!(schema, "enum", &(&1 ++ [nil])), else: schema
  end

  defp nullable(schema), do: schema

  # A value of several types, as `anyOf` with one type each.
  defp alternatives(%{"type" => [_, _ | _] = types} = schema) do
    {outer, inner} = Map.split(schema, ["description"])
    Map.put(outer, "anyOf", Enum.map(types, &of_type(inner, &1)))
  end

  defp alternatives(%{"type" => [type]} = schema), do: of_type(schema, type)
  defp alternatives(schema), do: schema

  @of_types %{
    "string" => ~w(enum pattern format minLength maxLength),
    "integer" => ~w(enum minimum maximum),
    "number" => ~w(enum minimum maximum),
    "array" => ~w(items minItems maxItems),
    "object" => ~w(properties required additionalProperties)
  }

  defp of_type(schema, type) do
    keywords = ["type", "description", "default" | Map.get(@of_types, type, [])]
    schema |> Map.put("type", type) |> Map.take(keywords)
  end

  defp fits?(schema) do
    enums = enums(schema)
    texts = List.flatten(enums)

    length(texts) <= @max_enum and Enum.all?(enums, &short?/1) and
      size(texts) + size(names(schema)) <= @max_size
  end

  defp short?(values), do: length(values) <= @max_long_enum or size(values) <= @max_long_enum_size
  defp size(texts), do: texts |> Enum.map(&String.length(to_string(&1))) |> Enum.sum()

  defp enums(%{"enum" => values}), do: [values]
  defp enums(schema), do: schema |> below() |> Enum.flat_map(&enums/1)

  defp names(schema),
    do:
      Map.keys(Map.get(schema, "properties", %{})) ++
        (schema |> below() |> Enum.flat_map(&names/1))

  defp below(schema) do
    Map.values(Map.get(schema, "properties", %{})) ++
      Map.get(schema, "anyOf", []) ++ List.wrap(schema["items"])
  end

  # llama.cpp makes a grammar of all tools of a request. It refuses long repetitions and patterns
  # that it cannot read.

  @llama ~w(type description enum items anyOf properties required additionalProperties format
            pattern minimum maximum minItems maxItems maxLength minLength const oneOf allOf
            prefixItems $ref $defs definitions)
  @llama_formats ~w(date date-time time uuid)
  @max_repeats 100
  # Numbers of its older versions have 32 bits.
  @max_integer 2_147_483_647
  # The pattern of a date that may be a word too (`Skillbook.Tools.Schema`).
  @llama_pattern ~r/\A\^\(\[0-9\]\{4\}-\[0-9\]\{2\}-\[0-9\]\{2\}(\|[a-z]+)*\)\$\z/

  defp llama(schema) do
    schema
    |> with_default()
    |> Map.take(@llama)
    |> Map.filter(fn {key, value} -> llama?(key, value) end)
    |> alternatives()
    |> nested(&llama/1)
    |> open()
  end

  defp llama?("format", format), do: format in @llama_formats
  defp llama?("pattern", pattern), do: pattern =~ @llama_pattern

  defp llama?(limit, number) when limit in ~w(minItems maxItems minLength maxLength),
    do: number <= @max_repeats

  defp llama?(limit, number) when limit in ~w(minimum maximum), do: abs(number) <= @max_integer
  defp llama?("enum", values), do: values != [] and Enum.all?(values, &llama_word?/1)
  defp llama?(_key, _value), do: true

  # Some versions do not escape these characters.
  defp llama_word?(value), do: not (to_string(value) =~ ~r/["\\\x00-\x1f\x7f]/)

  # Without this, an object without properties is `{}`.
  defp open(%{"properties" => properties} = schema) when properties == %{},
    do: Map.put_new(schema, "additionalProperties", true)

  defp open(schema), do: schema

  # Gemini's `parameters`: a value has one type, only texts have `enum`, and names of properties
  # have neither dots nor dashes.

  @gemini ~w(type description enum items properties required nullable format pattern minimum
             maximum minItems maxItems minLength maxLength)
  @gemini_name ~r/\A[a-zA-Z_][a-zA-Z0-9_]{0,63}\z/
  @day "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

  defp gemini(schema) do
    schema
    |> with_default()
    |> one_type()
    |> gemini_format()
    |> Map.take(@gemini)
    |> gemini_enum()
    |> nested(&gemini/1)
    |> gemini_names()
  end

  # `null` is no type of its own. Text comes before lists, since most values are single ones.
  defp one_type(%{"type" => types} = schema) when is_list(types) do
    schema = if "null" in types, do: Map.put(schema, "nullable", true), else: schema
    of_type_and_null(schema, Enum.find(types, "string", &(&1 != "null")))
  end

  defp one_type(%{"anyOf" => [first | _]} = schema),
    do: schema |> Map.delete("anyOf") |> Map.merge(first) |> one_type()

  defp one_type(schema), do: schema

  defp of_type_and_null(schema, type),
    do: Map.merge(of_type(schema, type), Map.take(schema, ["nullable"]))

  defp gemini_format(%{"format" => "date"} = schema),
    do: schema |> Map.delete("format") |> Map.put_new("pattern", @day)

  defp gemini_format(%{"format" => format} = schema) when format != "date-time",
    do: Map.delete(schema, "format")

  defp gemini_format(schema), do: schema

  defp gemini_enum(%{"enum" => values} = schema) do
    texts? = values != [] and Enum.all?(values, &(is_binary(&1) and &1 != ""))
    if schema["type"] == "string" and texts?, do: schema, else: Map.delete(schema, "enum")
  end

  defp gemini_enum(schema), do: schema

  defp gemini_names(%{"properties" => properties} = schema) do
    named = Map.filter(properties, fn {name, _} -> name =~ @gemini_name end)
    required = for name <- Map.get(schema, "required", []), is_map_key(named, name), do: name
    schema = %{schema | "properties" => named}

    if required == [],
      do: Map.delete(schema, "required"),
      else: Map.put(schema, "required", required)
  end

  defp gemini_names(schema), do: schema

  # A format without `default` has it in the description.
  defp with_default(%{"default" => default} = schema) do
    text = if is_binary(default), do: default, else: JSON.encode(default)
    description = Map.get(schema, "description", "")

    if String.contains?(description, text),
      do: schema,
      else: Map.put(schema, "description", String.trim("#{description} (default: #{text})"))
  end

  defp with_default(schema), do: schema

  defp nested(schema, shape) do
    Map.new(schema, fn
      {"properties", properties} ->
        {"properties", Map.new(properties, fn {name, schema} -> {name, shape.(schema)} end)}

      {keyword, schemas} when keyword in ["$defs", "definitions"] and is_map(schemas) ->
        {keyword, Map.new(schemas, fn {name, schema} -> {name, shape.(schema)} end)}

      {keyword, %{} = schema} when keyword in ["items", "additionalProperties"] ->
        {keyword, shape.(schema)}

      {keyword, schemas}
      when keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] and is_list(schemas) ->
        {keyword, Enum.map(schemas, &if(is_map(&1), do: shape.(&1), else: %{}))}

      other ->
        other
    end)
  end
end
