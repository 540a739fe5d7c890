defmodule Skillbook.Skill.Types do
  @moduledoc false
  # The types of `use Skillbook.Skill` that have a structure, as JSON Schema.

  @formats %{date: "date", datetime: "date-time", email: "email", url: "uri"}
  @names %{text: "string", integer: "integer", number: "number", boolean: "boolean"}
  @bounds [min: "minimum", max: "maximum", max_length: "maxLength", pattern: "pattern"]

  @doc "The schema of a type, or of a field with its options."
  @spec schema(term()) :: map()
  def schema(:any), do: %{}
  def schema(nil), do: %{"type" => "null"}
  def schema(type) when is_map_key(@names, type), do: %{"type" => @names[type]}

  def schema(type) when is_map_key(@formats, type),
    do: %{"type" => "string", "format" => @formats[type]}

  def schema({:one_of, values}), do: %{"enum" => Enum.map(values, &word/1)}
  def schema({:list, type}), do: %{"type" => "array", "items" => schema(type)}
  def schema({:union, types}), do: %{"anyOf" => Enum.map(types, &schema/1)}

  def schema({:map, [{_name, _field} | _] = fields}) do
    required = for {name, [_ | _] = field} <- fields, field[:required], do: to_string(name)
    properties = Map.new(fields, fn {name, field} -> {to_string(name), schema(field)} end)

    schema = %{
      "type" => "object",
      "properties" => properties,
      "additionalProperties" => false
    }

    if required == [], do: schema, else: Map.put(schema, "required", required)
  end

  # A map from any texts to values of a type.
  def schema({:map, type}), do: %{"type" => "object", "additionalProperties" => schema(type)}

  def schema([{_key, _value} | _] = field) do
    described = if text = field[:description], do: %{"description" => text}, else: %{}
    bounds = for {key, name} <- @bounds, value = field[key], into: %{}, do: {name, bound(value)}
    field |> Keyword.get(:type, :text) |> schema() |> Map.merge(described) |> Map.merge(bounds)
  end

  def schema(other) do
    raise ArgumentError,
          "expected a type such as :text, {:list, :integer} or {:map, name: :text}, got: " <>
            inspect(other)
  end

  # All of a text must match the pattern of a flag.
  defp bound(%Regex{} = regex), do: "^(?:#{Regex.source(regex)})$"
  defp bound(text) when is_binary(text), do: "^(?:#{text})$"
  defp bound(number), do: number

  defp word(value) when is_atom(value) and not is_boolean(value) and value != nil,
    do: Atom.to_string(value)

  defp word(value), do: value
end
