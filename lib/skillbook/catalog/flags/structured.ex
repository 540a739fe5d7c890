defmodule Skillbook.Flags.Structured do
  @moduledoc false
  # Reads values by a JSON Schema: those of a page with `input_schema`, and of flags with a
  # `schema`. The core checks them.

  alias Skillbook.{Declaration, Flag, FlagError, Flags, Native}
  alias Skillbook.Flags.{Check, Nulls}
  alias Skillbook.Support.JSON

  @doc """
  Reads all arguments of a declaration with a schema. The result has the names of the schema's
  properties, and is as the schema allows.
  """
  @spec arguments(Flags.t(), Declaration.t(), Check.options()) :: Flags.cast()
  def arguments(flags, %Declaration{schema: schema, flags: declared} = declaration, opts) do
    {exact, others} = Map.split(flags, Enum.map(declared, & &1.property))

    {named, more, unknown} = named(others, declared, schema)
    names = Map.new(declared, &{&1.property, &1.name})
    exact = Map.new(exact, fn {key, value} -> {names[key], value} end)
    given = Map.merge(named, exact, fn _, one, two -> List.wrap(one) ++ List.wrap(two) end)

    with {:ok, given} <- Check.positional(given, declaration, opts[:args]),
         properties = Map.new(declared, &{&1.name, &1.property}),
         given = Map.new(given, fn {name, value} -> {properties[name], value} end),
         {:ok, arguments} <- read(schema, Map.merge(more, given), opts[:json], true) do
      if unknown == [], do: {:ok, arguments}, else: refuse(unknown, declared)
    else
      {:error, %FlagError{} = error} ->
        refuse(unknown ++ [error], declared)

      {:error, mistakes} ->
        # A misspelt flag may be the missing one.
        meant = Enum.flat_map(unknown, & &1.suggestions)
        refuse(unknown ++ errors(mistakes, declared, meant), declared)
    end
  end

  defp refuse(errors, declared) do
    own = Map.new(declared, &{&1.name, Flag.in_json(&1)})
    FlagError.all(for error <- errors, do: %{error | properties: own})
  end

  # The flags that other spellings mean, properties that have none, and an error for unknown
  # flags. An open schema takes any.
  defp named(others, declared, schema) do
    names = for flag <- declared, name <- flag.names, into: %{}, do: {name, flag.name}
    {known, unknown} = Check.named(others, Map.keys(names))
    known = Map.new(known, fn {name, value} -> {names[name], value} end)

    cond do
      unknown == [] -> {known, %{}, []}
      open?(schema) -> {known, Map.take(others, unknown), []}
      true -> {known, %{}, [Check.unknown(unknown, Enum.map(declared, & &1.name))]}
    end
  end

  # JSON Schema is open unless it says otherwise. Then a misspelt name would do nothing, so it
  # must say that it is open, or name no property.
  defp open?(schema) do
    more = Map.get(schema, "additionalProperties", schema["unevaluatedProperties"])

    more == true or is_map(more) or is_map(schema["patternProperties"]) or
      (more == nil and Map.get(schema, "properties", %{}) == %{})
  end

  @doc "Reads the value of one flag."
  @spec value(Flags.t(), Flag.t(), boolean()) :: Flags.cast()
  def value(flags, %Flag{name: name, schema: schema} = flag, json?) do
    case read(schema, flags[name], json?, false) do
      {:ok, value} ->
        {:ok, %{flags | name => value}}

      :absent ->
        {:ok, Map.delete(flags, name)}

      {:error, mistakes} ->
        inside =
          for {path, kind, expected, got} <- mistakes, do: {name, path, kind, expected, got}

        FlagError.all(for mistake <- inside, do: error(mistake, flag))
    end
  end

  defp read(schema, given, json?, whole?) do
    text = JSON.encode(schema)

    with {:error, mistakes} <- fit(text, given, json?, whole?) do
      less = if Nulls.any?(given), do: Nulls.drop(given, schema), else: given
      if less == given, do: {:error, mistakes}, else: fit(text, less, json?, whole?)
    end
  end

  defp fit(schema, given, json?, whole?) do
    with {:ok, json} <- Native.schema_read(schema, JSON.encode(given), not json?, whole?),
         do: JSON.decode(json)
  end

  # Missing flags are one error.
  defp errors(mistakes, declared, meant) do
    missing =
      for {path, :missing, _, _} <- mistakes,
          flag = Enum.find(declared, &(&1.property == path)),
          flag.name not in meant,
          do: flag.name

    missing =
      if missing != [], do: [%FlagError{kind: :missing, flag: hd(missing), flags: missing}]

    others =
      for {path, kind, expected, got} <- mistakes,
          not (kind == :missing and Enum.any?(declared, &(&1.property == path))) do
        {flag, inside} = place(path, declared)
        error({flag && flag.name, inside, kind, expected, got}, flag)
      end

    (missing || []) ++ others
  end

  # `people[0].name` is in the flag `people`.
  defp place(path, declared) do
    inside = fn flag ->
      case String.split_at(path, String.length(flag.property)) do
        {property, ""} when property == flag.property -> ""
        {property, "." <> rest} when property == flag.property -> rest
        {property, "[" <> rest} when property == flag.property -> "[" <> rest
        _other -> nil
      end
    end

    declared
    |> Enum.map(&{&1, inside.(&1)})
    |> Enum.reject(fn {_flag, inside} -> inside == nil end)
    |> Enum.max_by(fn {flag, _inside} -> byte_size(flag.property) end, fn -> {nil, path} end)
  end

  defp error({name, path, kind, expected, got}, flag) do
    fields =
      case kind do
        :missing ->
          [kind: :missing, flags: []]

        :unknown ->
          [kind: :unknown, flags: [], expected: expected]

        :no_value ->
          [kind: :no_value, example: example(flag)]

        :costly ->
          [kind: :invalid, expected: "shorter to be checked in time", value: "this value"]

        :form ->
          [kind: :invalid, expected: shape(expected, path, flag), value: got]

        :invalid ->
          [kind: :invalid, expected: expected, value: got]
      end

    path = if kind == :no_value, do: nil, else: path
    struct!(FlagError, [flag: name, path: path] ++ fields)
  end

  # The whole value of a structure is expected as JSON, with all that it has.
  defp shape(_expected, "", %Flag{type: :json, structure: structure})
       when structure != "any value",
       do: "JSON: #{structure}"

  defp shape(expected, _path, _flag), do: expected

  defp example(%Flag{type: :json, structure: structure}), do: "'#{structure}'"
  defp example(_flag), do: "VALUE"
end
