defmodule Skillbook.Approval.Assigns do
  @moduledoc false
  # Stores the assigns of a call as JSON, and reads them back as the same terms.
  #
  # Stored are texts in UTF-8, numbers, booleans, `nil`, atoms, times (`DateTime`), and lists and
  # maps of these, with texts or atoms as keys. Other terms, such as processes, functions and
  # structs, may mean something else when the call runs, so they are refused.

  alias Skillbook.Support.JSON

  # Bytes of the JSON.
  @max_bytes 100_000

  @doc "Encodes assigns, or describes the first value that cannot be stored."
  @spec encode(map(), pos_integer()) :: {:ok, String.t()} | {:error, String.t()}
  def encode(assigns, max \\ @max_bytes) do
    json = JSON.encode(value(assigns, []))

    if byte_size(json) <= max,
      do: {:ok, json},
      else: {:error, "expected assigns of at most #{max} bytes, got #{byte_size(json)}"}
  catch
    {__MODULE__, path, value} ->
      place = path |> Enum.reverse() |> Enum.map_join(".", &to_string/1)

      {:error,
       "expected assigns of texts, numbers, booleans, nil, atoms, times, lists and maps, got " <>
         "#{kind(value)} as `#{place}`"}
  end

  @doc "Decodes assigns. Atoms that do not exist in this virtual machine are an error."
  @spec decode(String.t()) :: {:ok, map()} | :error
  def decode(json) do
    with {:ok, value} <- JSON.decode(json), do: {:ok, term(value)}
  rescue
    # An atom of another release, or JSON of a hand-written row.
    _error in [ArgumentError, FunctionClauseError, MatchError] -> :error
  end

  # JSON has neither atoms nor maps with atoms as keys, so these are marked.
  defp value(value, _path) when is_boolean(value) or is_nil(value) or is_number(value), do: value
  defp value(atom, _path) when is_atom(atom), do: %{"atom" => Atom.to_string(atom)}

  defp value(text, path) when is_binary(text),
    do: if(String.valid?(text), do: text, else: throw({__MODULE__, path, text}))

  defp value(%DateTime{time_zone: "Etc/UTC"} = time, _path),
    do: %{"time" => DateTime.to_iso8601(time)}

  defp value(%_{} = struct, path), do: throw({__MODULE__, path, struct})

  defp value(%{} = map, path) do
    pairs =
      for {key, value} <- map do
        unless is_atom(key) or is_binary(key), do: throw({__MODULE__, ["a key" | path], key})
        [value(key, path), value(value, [key | path])]
      end

    %{"map" => Enum.sort(pairs)}
  end

  defp value(list, path) when is_list(list) do
    if List.improper?(list), do: throw({__MODULE__, path, list})
    for {item, index} <- Enum.with_index(list), do: value(item, [index | path])
  end

  defp value(other, path), do: throw({__MODULE__, path, other})

  defp term(%{"atom" => name}), do: String.to_existing_atom(name)

  defp term(%{"map" => pairs}),
    do: Map.new(pairs, fn [key, value] -> {term(key), term(value)} end)

  defp term(%{"time" => text}) do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end

  defp term(list) when is_list(list), do: Enum.map(list, &term/1)
  defp term(value) when not is_map(value), do: value

  # Only its kind: assigns may be secret.
  defp kind(%module{}), do: "a struct #{inspect(module)}"
  defp kind(value) when is_function(value), do: "a function"
  defp kind(value) when is_pid(value), do: "a process"
  defp kind(value) when is_tuple(value), do: "a tuple"
  defp kind(value) when is_reference(value), do: "a reference"
  defp kind(value) when is_binary(value), do: "bytes that are not UTF-8"
  defp kind(value) when is_list(value), do: "an improper list"
  defp kind(value) when is_number(value), do: "a number"
  defp kind(_value), do: "another term"
end
