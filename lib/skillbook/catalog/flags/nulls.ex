defmodule Skillbook.Flags.Nulls do
  @moduledoc false
  # Leaves out the fields of structured values that are `null` and may be absent, but not `null`.
  # OpenAI's strict mode requires all fields, so a model writes `null` for those it does not need.
  #
  # A value is read with all schemas that may be its own: those of references and alternatives. So
  # the work is at most the size of the value times that of the schema. Alternatives for another
  # value of a constant do not count.

  alias Skillbook.Support.JSON

  # References and alternatives of one value that are followed to find `null`.
  @depth 8

  @doc "Whether a value has a `null` in an object."
  @spec any?(term()) :: boolean()
  def any?(%{} = map),
    do: Enum.any?(map, fn {_key, value} -> value == nil or any?(value) end)

  def any?(list) when is_list(list), do: Enum.any?(list, &any?/1)
  def any?("{" <> _ = text), do: String.contains?(text, "null")
  def any?("[" <> _ = text), do: String.contains?(text, "null")
  def any?(_value), do: false

  @doc "Removes them. A text with JSON, as in a line, is read as its value."
  @spec drop(term(), map() | boolean()) :: term()
  def drop(value, schema), do: drop(value, own([schema], schema), schema)

  defp drop(%{} = map, schemas, root) do
    # One value may stand for a list.
    schemas = Enum.filter(schemas ++ items(schemas, root), &for?(&1, map))

    for {key, value} <- map,
        below = below(schemas, key),
        value != nil or not absent?(below, root),
        into: %{},
        do: {key, drop(value, own(Enum.map(below, &elem(&1, 0)), root), root)}
  end

  defp drop(list, schemas, root) when is_list(list) do
    items = items(schemas, root)
    # The words of a flag that is one value.
    items = if items == [], do: schemas, else: items
    Enum.map(list, &drop(&1, items, root))
  end

  defp drop(<<first, _::binary>> = text, schemas, root) when first in [?{, ?[] do
    with {:ok, value} <- JSON.decode(text),
         less when less != value <- drop(value, schemas, root) do
      JSON.encode(less)
    else
      _same -> text
    end
  end

  defp drop(value, _schemas, _root), do: value

  # The schemas of a field, and whether it may be absent.
  defp below(schemas, key) do
    Enum.uniq(
      for %{} = schema <- schemas,
          {field, required} <- [field(schema, key)],
          do: {field, required}
    )
  end

  defp field(%{"properties" => %{} = properties} = schema, key) when is_map_key(properties, key),
    do: {properties[key], key in List.wrap(schema["required"])}

  # A name of the model's own is no field that it has to write.
  defp field(%{"additionalProperties" => %{} = more}, _key), do: {more, true}
  defp field(_schema, _key), do: nil

  defp absent?(below, root) do
    Enum.any?(below, fn {_schema, required} -> not required end) and
      not Enum.any?(below, fn {schema, _required} -> null?(schema, root, @depth) end)
  end

  defp null?(schema, _root, depth) when schema == false or depth == 0, do: false

  defp null?(%{} = schema, root, depth) do
    Enum.all?(schema, fn
      {"type", types} -> "null" in List.wrap(types)
      {"enum", values} when is_list(values) -> nil in values
      {"const", value} -> value == nil
      {"$ref", reference} -> reference |> referred(root) |> null?(root, depth - 1)
      {"allOf", all} -> Enum.all?(List.wrap(all), &null?(&1, root, depth - 1))
      {key, any} when key in ~w(anyOf oneOf) -> Enum.any?(any, &null?(&1, root, depth - 1))
      {_key, _value} -> true
    end)
  end

  defp null?(_any, _root, _depth), do: true

  # Schemas with those that they refer to, and their parts and alternatives.
  defp own(schemas, root), do: schemas |> own(root, MapSet.new()) |> MapSet.to_list()

  defp own(schemas, root, seen) do
    Enum.reduce(schemas, seen, fn schema, seen ->
      if not is_map(schema) or schema in seen,
        do: seen,
        else: schema |> parts(root) |> own(root, MapSet.put(seen, schema))
    end)
  end

  defp parts(schema, root) do
    referred =
      with %{"$ref" => reference} <- schema, do: [referred(reference, root)], else: (_ -> [])

    referred ++ Enum.flat_map(~w(allOf anyOf oneOf then else), &List.wrap(schema[&1]))
  end

  defp referred("#", root), do: root

  defp referred("#/" <> pointer, root) do
    pointer
    |> String.split("/")
    |> Enum.map(&(&1 |> String.replace("~1", "/") |> String.replace("~0", "~")))
    |> Enum.reduce(root, fn
      key, %{} = schema -> schema[key]
      _key, _other -> nil
    end)
  end

  defp referred(_elsewhere, _root), do: nil

  defp items(schemas, root) do
    schemas
    |> Enum.flat_map(&(List.wrap(&1["items"]) ++ List.wrap(&1["prefixItems"])))
    |> own(root)
  end

  # Whether a schema may be that of an object, by its type and constants.
  defp for?(schema, map) do
    "object" in List.wrap(schema["type"] || "object") and
      Enum.all?(properties(schema), fn {key, property} -> possible?(property, map[key]) end)
  end

  defp properties(%{"properties" => %{} = properties}), do: properties
  defp properties(_schema), do: %{}

  defp possible?(_property, nil), do: true
  defp possible?(%{"const" => constant}, value), do: value == constant
  defp possible?(%{"enum" => values}, value) when is_list(values), do: value in values
  defp possible?(_property, _value), do: true
end
