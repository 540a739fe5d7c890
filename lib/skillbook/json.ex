defmodule Skillbook.JSON do
  @moduledoc false
  # The JSON of the whole library. Every term has a form; reading is the core's.

  alias Skillbook.{JSONError, Native}

  @doc """
  The value that a JSON text stands for; objects are maps with string keys, and of two members of one name the last counts.

      iex> Skillbook.JSON.decode(~S({"a": [1, 2.5, null]}))
      {:ok, %{"a" => [1, 2.5, nil]}}
      iex> {:error, error} = Skillbook.JSON.decode(~S({"a": tru}))
      iex> Exception.message(error)
      "line 1, column 10: expected ident"
  """
  @spec decode(binary()) :: {:ok, term()} | {:error, JSONError.t()}
  def decode(text) do
    with {:error, {reason, line, column}} <- Native.json_decode(text),
         do: {:error, %JSONError{reason: reason, line: line, column: column}}
  end

  @doc "The value as JSON; atoms are strings, exceptions their messages, times ISO 8601; a keyword list is an object."
  @spec encode(term()) :: iodata()
  def encode(nil), do: "null"
  def encode(value) when is_boolean(value), do: to_string(value)
  def encode(value) when is_atom(value), do: value |> to_string() |> encode()
  def encode(value) when is_number(value), do: to_string(value)
  def encode(value) when is_binary(value), do: [?", escape(value), ?"]

  def encode([_ | _] = values) do
    if Keyword.keyword?(values), do: object(values), else: array(values)
  end

  def encode([]), do: "[]"
  def encode(%{__exception__: true} = error), do: error |> Exception.message() |> encode()

  def encode(%struct{} = value) when struct in [Date, DateTime, NaiveDateTime, Time],
    do: value |> to_string() |> encode()

  def encode(%_{} = value), do: value |> Map.from_struct() |> encode()
  def encode(%{} = map), do: map |> Enum.sort_by(&to_string(elem(&1, 0))) |> object()
  # What has no counterpart in JSON is shown, never a reason to fail.
  def encode(value), do: value |> inspect() |> encode()

  @doc "The fields of a diagnostic, its fix as an object too."
  @spec diagnostic(Skillbook.Diagnostic.t()) :: map()
  def diagnostic(diagnostic) do
    fix = with {offset, length, text} <- diagnostic.fix, do: %{offset: offset, length: length, text: text}

    %{Map.from_struct(diagnostic) | fix: fix}
  end

  defp array(values), do: [?[, Enum.map_intersperse(values, ?,, &encode/1), ?]]

  defp object(pairs) do
    [
      ?{,
      Enum.map_intersperse(pairs, ?,, fn {key, value} -> [encode(to_string(key)), ?:, encode(value)] end),
      ?}
    ]
  end

  defp escape(text) do
    if String.valid?(text), do: escape_valid(text), else: text |> inspect() |> escape_valid()
  end

  defp escape_valid(text) do
    Regex.replace(~r/["\\\x00-\x1f]/, text, fn
      "\"" -> "\\\""
      "\\" -> "\\\\"
      "\n" -> "\\n"
      "\t" -> "\\t"
      <<code>> -> "\\u" <> (code |> Integer.to_string(16) |> String.pad_leading(4, "0"))
    end)
  end
end
