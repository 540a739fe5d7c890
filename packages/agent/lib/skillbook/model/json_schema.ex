defmodule Skillbook.Model.JSONSchema do
  @moduledoc false
  # The part of JSON Schema that `Skillbook.Model.complete_object/4` knows, and that all servers
  # know: checks a schema, checks a value, and makes the forms that servers get.

  alias Skillbook.ObjectError
  alias Skillbook.Support.{Count, JSON}

  # The keywords of each type. `description` is allowed everywhere.
  @keywords %{
    "object" => ~w(properties required additionalProperties),
    "array" => ~w(items minItems maxItems),
    "string" => ~w(enum maxLength),
    "number" => ~w(minimum maximum),
    "integer" => ~w(minimum maximum),
    "boolean" => []
  }
  @types Map.keys(@keywords)

  # Schemas come from the application. The limit is for those that refer to themselves by mistake.
  @max_depth 16
  @max_shown 80

  @doc "Raises `ArgumentError` for a schema with unknown or invalid keywords."
  @spec check!(map()) :: :ok
  def check!(%{"type" => "object"} = schema), do: known!(schema, "", 0)

  def check!(schema) do
    raise ArgumentError,
          ~s(expected a JSON schema with "type" => "object", got: #{inspect(schema, limit: 5)})
  end

  defp known!(_schema, path, depth) when depth > @max_depth,
    do: invalid!(path, "at most #{@max_depth} levels", "more")

  defp known!(%{"type" => type} = schema, path, depth) when is_map_key(@keywords, type) do
    known = ["type", "description" | @keywords[type]]

    with [unknown | _] <- Map.keys(schema) -- known,
         do: invalid!(path, "the keywords #{Enum.join(known, ", ")}", inspect(unknown))

    for {keyword, value} <- schema,
        expected = expected(keyword, value, schema),
        do: invalid!(at(path, keyword), expected, inspect(value, limit: 5))

    for {name, property} <- schema["properties"] || %{},
        do: known!(property, at(path, "properties.#{name}"), depth + 1)

    if type == "array", do: known!(schema["items"], at(path, "items"), depth + 1)
    :ok
  end

  defp known!(%{"type" => type}, path, _depth),
    do: invalid!(at(path, "type"), "one of #{Enum.join(@types, ", ")}", inspect(type))

  defp known!(schema, path, _depth),
    do: invalid!(path, ~s(a map with "type"), inspect(schema, limit: 5))

  # The expected value of a keyword, or `nil` if it is valid.
  defp expected(keyword, value, schema) do
    {expected, valid?} = rule(keyword, value, schema)
    if valid?, do: nil, else: expected
  end

  defp rule("type", _value, _schema), do: {"", true}
  defp rule("description", value, _schema), do: {"text", is_binary(value)}
  defp rule("additionalProperties", value, _schema), do: {"false", value == false}
  defp rule("items", value, _schema), do: {"a schema", is_map(value)}

  defp rule("properties", value, _schema),
    do: {"a map of schemas", is_map(value) and Enum.all?(Map.keys(value), &is_binary/1)}

  defp rule("required", value, schema) do
    names = Map.keys(schema["properties"] || %{})
    {"a list of its properties", is_list(value) and value -- names == []}
  end

  defp rule("enum", value, _schema),
    do: {"a list of texts", is_list(value) and value != [] and Enum.all?(value, &is_binary/1)}

  defp rule(keyword, value, _schema) when keyword in ["minimum", "maximum"],
    do: {"a number", is_number(value)}

  defp rule(_count, value, _schema),
    do: {"a whole number from 0", is_integer(value) and value >= 0}

  @spec invalid!(String.t(), String.t(), String.t()) :: no_return()
  defp invalid!(path, expected, got) do
    place = if path == "", do: "in a JSON schema", else: "at #{path} of a JSON schema"
    raise ArgumentError, "expected #{expected} #{place}, got: #{got}"
  end

  @doc "Checks a decoded value against a schema that `check!/1` accepts."
  @spec check(map(), term()) :: :ok | {:error, ObjectError.t()}
  def check(schema, value) do
    with {path, expected, got} <- problem(schema, value, ""),
         do: {:error, %ObjectError{path: path, expected: expected, got: got}}
  end

  defp problem(%{"type" => "object"} = schema, %{} = object, path) do
    properties = schema["properties"] || %{}
    missing = (schema["required"] || []) -- Map.keys(object)
    unknown = Map.keys(object) -- Map.keys(properties)

    cond do
      missing != [] ->
        {path, "the field `#{hd(missing)}`", "none"}

      unknown != [] ->
        {path, "only the fields #{Enum.join(Map.keys(properties), ", ")}", show(hd(unknown))}

      true ->
        first(object, fn {name, value} -> problem(properties[name], value, at(path, name)) end)
    end
  end

  defp problem(%{"type" => "object"}, value, path), do: {path, "an object", show(value)}

  defp problem(%{"type" => "array", "items" => items} = schema, values, path)
       when is_list(values) do
    {min, max} = {schema["minItems"] || 0, schema["maxItems"]}

    cond do
      length(values) < min ->
        {path, "at least #{Count.text(min, "item")}", Count.text(length(values), "item")}

      max != nil and length(values) > max ->
        {path, "at most #{Count.text(max, "item")}", Count.text(length(values), "item")}

      true ->
        values
        |> Enum.with_index()
        |> first(fn {value, place} -> problem(items, value, "#{path}[#{place}]") end)
    end
  end

  defp problem(%{"type" => "array"}, value, path), do: {path, "a list", show(value)}

  defp problem(%{"type" => "string"} = schema, text, path) when is_binary(text) do
    {enum, max} = {schema["enum"], schema["maxLength"]}

    cond do
      enum != nil and text not in enum ->
        {path, "one of #{Enum.map_join(enum, ", ", &show/1)}", show(text)}

      max != nil and String.length(text) > max ->
        {path, "text of at most #{max} characters", "#{String.length(text)} characters"}

      true ->
        :ok
    end
  end

  defp problem(%{"type" => "string"}, value, path), do: {path, "text", show(value)}
  defp problem(%{"type" => "boolean"}, value, _path) when is_boolean(value), do: :ok
  defp problem(%{"type" => "boolean"}, value, path), do: {path, "true or false", show(value)}

  defp problem(%{"type" => type} = schema, number, path)
       when is_integer(number) or (type == "number" and is_float(number)) do
    {min, max} = {schema["minimum"], schema["maximum"]}

    if (min != nil and number < min) or (max != nil and number > max),
      do: {path, "#{article(type)}#{range(min, max)}", show(number)},
      else: :ok
  end

  defp problem(%{"type" => type}, value, path), do: {path, article(type), show(value)}

  defp first(values, fun) do
    Enum.find_value(values, :ok, fn value -> with :ok <- fun.(value), do: nil end)
  end

  defp article("integer"), do: "a whole number"
  defp article("number"), do: "a number"

  defp range(min, nil), do: " from #{min}"
  defp range(nil, max), do: " up to #{max}"
  defp range(min, max), do: " from #{min} to #{max}"

  defp at("", name), do: name
  defp at(path, name), do: "#{path}.#{name}"

  @doc "A value as JSON on one line, shortened."
  @spec show(term()) :: String.t()
  def show(value) do
    text = JSON.encode(value)
    short = String.slice(text, 0, @max_shown)
    if short == text, do: text, else: short <> " …"
  end

  @doc """
  The schema for a server: every object is closed, as servers require that hold a model to it.
  """
  @spec closed(map()) :: map()
  def closed(schema), do: map(schema, &close/1)

  defp close(%{"type" => "object"} = schema), do: Map.put(schema, "additionalProperties", false)
  defp close(schema), do: schema

  @doc "Removes keywords everywhere."
  @spec without(map(), [String.t()]) :: map()
  def without(schema, []), do: schema
  def without(schema, keywords), do: map(schema, &Map.drop(&1, keywords))

  @doc "Whether each property of each object is required."
  @spec all_required?(map()) :: boolean()
  def all_required?(%{"properties" => properties} = schema) do
    Map.keys(properties) -- (schema["required"] || []) == [] and
      Enum.all?(Map.values(properties), &all_required?/1)
  end

  def all_required?(%{"items" => items}), do: all_required?(items)
  def all_required?(_schema), do: true

  defp map(%{"properties" => properties} = schema, fun) do
    fun.(%{schema | "properties" => Map.new(properties, fn {k, v} -> {k, map(v, fun)} end)})
  end

  defp map(%{"items" => items} = schema, fun), do: fun.(%{schema | "items" => map(items, fun)})
  defp map(schema, fun), do: fun.(schema)
end
