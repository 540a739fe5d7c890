defmodule Skillbook.Model.ObjectGrammar do
  @moduledoc false
  # The grammar (GBNF) of the JSON texts of a schema, for servers that accept grammars and no
  # schemas. Properties come in the order of their names.

  alias Skillbook.Grammar
  alias Skillbook.Support.JSON

  # No lone surrogates, which are not Unicode.
  @common ~S"""
  char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" unicode)
  unicode ::= [0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex
  hex ::= [0-9a-fA-F]
  space ::= [ \n]{0,8}
  whole ::= "0" | [1-9] [0-9]{0,14}
  """

  # llama.cpp refuses larger repetitions. The answer is checked in any case.
  @max_repeated 1_000

  @spec gbnf(map()) :: String.t()
  def gbnf(schema), do: IO.iodata_to_binary(["root ::= ", value(schema), "\n", @common])

  defp value(%{"type" => "object"} = schema) do
    required = schema["required"] || []

    {first, rest} =
      (schema["properties"] || %{}) |> Enum.sort() |> Enum.split_with(&(elem(&1, 0) in required))

    [~S("{" space ), members(first, rest), ~S( "}")]
  end

  defp value(%{"type" => "array", "items" => items} = schema) do
    {min, max} = {schema["minItems"] || 0, schema["maxItems"]}
    item = ["(", value(items), " space)"]

    case {min, max} do
      {_, 0} ->
        ~S("[" space "]")

      _ ->
        more = ["(", comma(), item, ")", repeated(max(min - 1, 0), max && max - 1)]
        all = ["(", item, " ", more, ")", if(min == 0, do: "?", else: "")]
        [~S("[" space ), all, ~S( "]")]
    end
  end

  defp value(%{"type" => "string", "enum" => values}),
    do: ["(", values |> Enum.map(&text/1) |> Grammar.alternatives(), ")"]

  defp value(%{"type" => "string"} = schema),
    do: [~S("\"" char), repeated(0, schema["maxLength"]), ~S( "\"")]

  defp value(%{"type" => "boolean"}), do: ~S/("true" | "false")/
  defp value(%{"type" => "integer"} = schema), do: ["(", whole(schema), ")"]

  # Between two whole numbers: the fraction of each one, and the last.
  defp value(%{"minimum" => min, "maximum" => max})
       when is_integer(min) and is_integer(max) and min >= 0 and max > min do
    below = Grammar.integer(min, max - 1)
    ["((", below, ~S/) ("." [0-9]{1,6})? | "/, to_string(max), ~S/" (".0")?)/]
  end

  defp value(%{"type" => "number"} = schema),
    do: ["(", sign(schema), ~S/whole ("." [0-9]{1,15})?)/]

  defp whole(%{"minimum" => min} = schema) when min >= 0 do
    max = schema["maximum"]
    Grammar.integer(ceil(min), max && floor(max))
  end

  # `-0` is no integer to many readers.
  defp whole(schema), do: ["\"0\" | ", sign(schema), "[1-9] [0-9]{0,14}"]

  defp sign(%{"minimum" => min}) when min >= 0, do: ""
  defp sign(_schema), do: ~S("-"? )

  # The required properties, then those that may be missing.
  defp members([], []), do: ""

  defp members([], optional) do
    starts =
      for {property, place} <- Enum.with_index(optional) do
        [member(property), Enum.map(Enum.drop(optional, place + 1), &optional_member/1)]
      end

    ["(", Grammar.alternatives(starts), ")?"]
  end

  defp members(required, optional) do
    [
      required |> Enum.map(&member/1) |> Enum.intersperse([" ", comma()]),
      Enum.map(optional, &optional_member/1)
    ]
  end

  defp optional_member(property), do: [" (", comma(), member(property), ")?"]

  defp member({name, schema}), do: [text(name), ~S( ":" space ), value(schema), " space"]

  defp comma, do: ~S("," space )

  defp text(text), do: text |> JSON.encode() |> Grammar.literal()

  defp repeated(0, nil), do: "*"
  defp repeated(_min, max) when is_integer(max) and max > @max_repeated, do: "*"
  defp repeated(min, max), do: "{#{min},#{max}}"
end
