defmodule Skillbook.Support.JSON do
  @moduledoc false
  # Reads and writes JSON, in Rust. Every term can be written.

  alias Skillbook.{JSONError, Native}

  # They take about 80 MB.
  @max_values 1_000_000

  @doc """
  Decodes a JSON text. Objects become maps with string keys; duplicate keys are an error, and so
  are more keys and values than `most`, a million if nothing is given.

      iex> Skillbook.Support.JSON.decode(~S({"a": [1, 2.5, null]}))
      {:ok, %{"a" => [1, 2.5, nil]}}
      iex> {:error, error} = Skillbook.Support.JSON.decode(~S({"a": tru}))
      iex> Exception.message(error)
      "line 1, column 10: expected ident"
  """
  @spec decode(binary(), pos_integer()) :: {:ok, term()} | {:error, JSONError.t()}
  def decode(text, most \\ @max_values) do
    with {:error, {reason, line, column, path}} <- Native.json_decode(text, most),
         do: {:error, %JSONError{reason: reason, line: line, column: column, path: path}}
  end

  @doc """
  Encodes a value as JSON.

  Atoms become strings, exceptions their messages, times ISO 8601, and keyword lists objects. Keys
  of maps are sorted.

      iex> Skillbook.Support.JSON.encode(%{"b" => [1, 2.5, nil], a: ~D[2026-11-23]})
      ~S({"a":"2026-11-23","b":[1,2.5,null]})
  """
  @spec encode(term()) :: String.t()
  def encode([]), do: "[]"

  def encode(value) do
    with :unknown <- Native.json_encode(value, false), do: Native.json_encode(plain(value), true)
  end

  @doc "Returns the fields of a diagnostic for encoding, with its fix as a map."
  @spec diagnostic(Skillbook.Diagnostic.t()) :: map()
  def diagnostic(diagnostic) do
    fix =
      with {offset, length, text} <- diagnostic.fix,
           do: %{offset: offset, length: length, text: text}

    %{Map.from_struct(diagnostic) | fix: fix}
  end

  # Converts a value to terms that the native library encodes. Other terms are inspected.
  defp plain(%{__exception__: true} = error), do: error |> Exception.message() |> plain()

  defp plain(%struct{} = value) when struct in [Date, DateTime, NaiveDateTime, Time],
    do: to_string(value)

  defp plain(%_{} = value), do: value |> Map.from_struct() |> plain()
  defp plain(%{} = map), do: Map.new(map, fn {key, value} -> {key(key), plain(value)} end)

  defp plain([_ | _] = values) do
    cond do
      List.improper?(values) -> inspect(values)
      Keyword.keyword?(values) -> for {key, value} <- values, do: {key(key), plain(value)}
      true -> Enum.map(values, &plain/1)
    end
  end

  # Integers larger than 64 bits are passed as text and written as digits.
  defp plain(value) when is_integer(value) and abs(value) > 0x7FFF_FFFF_FFFF_FFFF,
    do: {to_string(value)}

  defp plain(value) when is_binary(value),
    do: if(String.valid?(value), do: value, else: inspect(value))

  defp plain(value) when is_boolean(value) or value in [nil, []] or is_number(value), do: value
  defp plain(value) when is_atom(value), do: to_string(value)
  defp plain(value), do: inspect(value)

  defp key(key) when is_binary(key) or is_atom(key), do: key |> to_string() |> plain()
  defp key(key), do: if(String.Chars.impl_for(key), do: to_string(key), else: inspect(key))
end
