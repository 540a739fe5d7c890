defmodule Skillbook.Tools.Schema do
  @moduledoc false
  # Converts a declaration to JSON Schema, draft 2020-12. Undeclared types are left open; with
  # `closed` other flags are rejected, unless vendors do not allow the name of one. Properties
  # have `_` for the dashes of flags, as models write them in JSON.

  alias Skillbook.Support.{Hidden, Number}
  alias Skillbook.{Declaration, Flag}

  # `\d` is not in all vendors' patterns.
  @day "[0-9]{4}-[0-9]{2}-[0-9]{2}"

  @spec object(Declaration.t() | nil, boolean()) :: map()
  def object(nil, _closed), do: %{"type" => "object", "properties" => %{}}

  # As its author wrote it.
  def object(%Declaration{schema: %{} = schema}, _closed), do: Map.put(schema, "type", "object")

  def object(%Declaration{flags: flags}, closed) do
    # `--help` asks for the page and belongs to every command.
    flags = Enum.reject(flags, &(&1.name == "help"))
    {named, unnamed} = Enum.split_with(flags, &Flag.allowed?(&1.name))
    required = for flag <- named, flag.required, uniq: true, do: name(flag.name)

    %{"type" => "object", "properties" => Map.new(named, &{name(&1.name), property(&1)})}
    |> put("required", required, required != [])
    |> put("additionalProperties", false, closed and unnamed == [])
    |> put("additionalProperties", true, unnamed != [])
  end

  @doc """
  The properties of a schema whose names vendors do not allow, with the names of their flags.
  """
  @spec renamed(Declaration.t() | nil) :: %{optional(String.t()) => String.t()}
  def renamed(%Declaration{schema: %{}, flags: flags}) do
    for %{property: property} = flag <- flags,
        name = Flag.in_json(flag),
        name != property,
        into: %{},
        do: {property, name}
  end

  def renamed(_declaration), do: %{}

  @doc "Returns the name of the property for a flag."
  @spec name(String.t()) :: String.t()
  def name(flag), do: String.replace(flag, "-", "_")

  defp property(%Flag{schema: %{} = schema} = flag) do
    described = Hidden.visible(flag.description)

    schema
    |> moved("#/properties/" <> name(flag.name))
    |> put("description", described, described != "")
  end

  defp property(%Flag{} = flag) do
    type = if flag.several, do: %{"type" => "array", "items" => item(flag)}, else: type(flag)
    default = default(flag)

    type
    |> put("description", Hidden.visible(flag.description), flag.description != "")
    |> put("default", default, default != nil)
  end

  # The references of a schema that is no longer the root.
  defp moved(%{} = schema, place) do
    Map.new(schema, fn
      {"$ref", "#" <> pointer} when pointer == "" or binary_part(pointer, 0, 1) == "/" ->
        {"$ref", place <> pointer}

      {key, value} ->
        {key, moved(value, place)}
    end)
  end

  defp moved(list, place) when is_list(list), do: Enum.map(list, &moved(&1, place))
  defp moved(value, _place), do: value

  defp type(%Flag{type: :switch}), do: %{"type" => "boolean"}

  defp type(%Flag{type: :value}),
    do: %{"type" => ["string", "array"], "items" => %{"type" => "string"}}

  defp type(%Flag{type: nil}),
    do: %{"type" => ["string", "array", "boolean"], "items" => %{"type" => "string"}}

  defp type(flag), do: item(flag)

  defp item(%Flag{type: :one_of} = flag), do: %{"type" => "string", "enum" => flag.values}
  defp item(%Flag{type: :date, values: []}), do: %{"type" => "string", "format" => "date"}

  defp item(%Flag{type: :date, values: words}),
    do: %{"type" => "string", "pattern" => "^(#{@day}|#{Enum.join(words, "|")})$"}

  defp item(%Flag{type: :text} = flag) do
    %{"type" => "string"}
    |> put("maxLength", flag.max, flag.max != nil)
    |> put("pattern", "^(#{flag.pattern})$", flag.pattern != nil)
  end

  defp item(%Flag{type: :datetime}), do: %{"type" => "string", "format" => "date-time"}
  defp item(%Flag{type: :email}), do: %{"type" => "string", "format" => "email"}
  defp item(%Flag{type: :url}), do: %{"type" => "string", "format" => "uri"}

  defp item(%Flag{type: type} = flag) when type in [:integer, :number] do
    %{"type" => to_string(type)}
    |> put("minimum", flag.min, flag.min != nil)
    |> put("maximum", flag.max, flag.max != nil)
  end

  defp item(%Flag{}), do: %{"type" => "string"}

  defp default(%Flag{default: []}), do: nil

  defp default(%Flag{several: true, default: values} = flag),
    do: Enum.map(values, &value(flag.type, &1))

  defp default(%Flag{default: [value]} = flag), do: value(flag.type, value)

  defp value(:switch, text), do: text == "true"
  defp value(:integer, text), do: Number.integer!(text)

  defp value(:number, text) do
    {number, ""} = Number.float(text)
    number
  end

  defp value(_, text), do: text

  defp put(map, _key, _value, false), do: map
  defp put(map, key, value, true), do: Map.put(map, key, value)
end
