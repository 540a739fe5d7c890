defmodule Skillbook.Web.Form do
  @moduledoc false
  # Reads the fields of queries and forms: urlencoded (WHATWG) and multipart/form-data (RFC 7578).
  # Names and texts are UTF-8. More fields than the limit, or a body that breaks the format, are
  # no form: half of one is never returned.

  alias Skillbook.Web.Upload

  # Fields of a query or a form, parts of a multipart body, and bytes of the head of a part.
  @max_fields 1_000
  @max_parts 200
  @max_head 4_096

  @type fields :: %{String.t() => term()}

  @doc "Reads a body of the media type in the header `content-type`."
  @spec read(String.t(), binary()) :: {:ok, fields()} | :error
  def read(type, body) do
    case type |> String.split(";", parts: 2) |> hd() |> String.trim() |> String.downcase() do
      "application/x-www-form-urlencoded" -> urlencoded(body)
      "multipart/form-data" -> multipart(type, body)
      _other -> :error
    end
  end

  @doc "Reads urlencoded fields."
  @spec urlencoded(binary()) :: {:ok, fields()} | :error
  def urlencoded(text) do
    # One more, for an "&" at the end.
    with {:ok, pairs} <- split(text, "&", @max_fields + 1),
         pairs = Enum.reject(pairs, &(&1 == "")),
         true <- length(pairs) <= @max_fields do
      collect(pairs, &pair/1)
    else
      _too_many -> :error
    end
  end

  # A body of 32 MiB may have as many separators, and splitting at all of them takes gigabytes. So
  # the splitting ends at the limit.
  defp split(text, separator, max),
    do: split(text, :binary.compile_pattern(separator), max, 0, [])

  defp split(_text, _pattern, 0, _from, _done), do: :error

  defp split(text, pattern, left, from, done) do
    size = byte_size(text)

    case :binary.match(text, pattern, scope: {from, size - from}) do
      {at, length} ->
        done = [binary_part(text, from, at - from) | done]
        split(text, pattern, left - 1, at + length, done)

      :nomatch ->
        {:ok, Enum.reverse([binary_part(text, from, size - from) | done])}
    end
  end

  defp pair(text) do
    {name, value} =
      case :binary.split(text, "=") do
        [name, value] -> {name, value}
        [name] -> {name, ""}
      end

    with {:ok, name} <- decode(name), {:ok, value} <- decode(value), do: {:ok, {name, value}}
  end

  defp decode(text) do
    text = URI.decode_www_form(text)
    if String.valid?(text), do: {:ok, text}, else: :error
  end

  # `%{"a" => last}`, and for names that end in `[]` lists.
  defp collect(items, read) do
    result =
      Enum.reduce_while(items, [], fn item, done ->
        case read.(item) do
          {:ok, field} -> {:cont, [field | done]}
          :skip -> {:cont, done}
          :error -> {:halt, :error}
        end
      end)

    if result == :error, do: :error, else: {:ok, group(result)}
  end

  # From the last field to the first.
  defp group(fields) do
    Enum.reduce(fields, %{}, fn {name, value}, group ->
      case list_name(name) do
        nil -> Map.update(group, name, value, &if(is_list(&1), do: [value | &1], else: &1))
        name -> Map.update(group, name, [value], &[value | List.wrap(&1)])
      end
    end)
  end

  defp list_name(name) do
    if byte_size(name) > 2 and String.ends_with?(name, "[]"),
      do: binary_part(name, 0, byte_size(name) - 2)
  end

  defp multipart(type, body) do
    with {:ok, boundary} <- boundary(type),
         {:ok, parts} <- parts("\r\n" <> body, "\r\n--" <> boundary),
         do: collect(parts, &part/1)
  end

  # RFC 2046, 5.1.1.
  @boundary ~r<;\s*boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'+.-]{1,70}))\s*(?:;|\z)>i

  defp boundary(type) do
    case Regex.run(@boundary, type, capture: :all_but_first) do
      ["", boundary] -> {:ok, boundary}
      [boundary] -> {:ok, boundary}
      nil -> :error
    end
  end

  # The text before the first boundary and after the last is to be ignored.
  defp parts(body, delimiter) do
    # Beside the parts, there are the texts before the first and after the last boundary.
    with {:ok, [_preamble | parts]} <- split(body, delimiter, @max_parts + 2),
         {parts, ["--" <> _epilogue | _]} <-
           Enum.split_while(parts, &(not String.starts_with?(&1, "--"))) do
      {:ok, parts}
    else
      _other -> :error
    end
  end

  defp part(part) do
    with ["", rest] <- :binary.split(String.trim_leading(part, " "), "\r\n"),
         {:ok, head, data} <- head(rest),
         {:ok, headers} <- headers(head),
         {:ok, name, file} <- disposition(headers["content-disposition"]) do
      field(name, file, headers["content-type"], data)
    else
      _other -> :error
    end
  end

  defp head(rest) do
    case :binary.split(rest, "\r\n\r\n") do
      [head, data] when byte_size(head) <= @max_head -> {:ok, head, data}
      _other -> :error
    end
  end

  defp headers(head) do
    if String.valid?(head) do
      lines = for line <- String.split(head, "\r\n"), do: String.split(line, ":", parts: 2)

      if Enum.all?(lines, &match?([_, _], &1)),
        do:
          {:ok,
           Map.new(lines, fn [name, value] -> {String.downcase(name), String.trim(value)} end)},
        else: :error
    else
      :error
    end
  end

  defp disposition("form-data" <> parameters) do
    case parameter(parameters, "name") do
      nil -> :error
      name -> {:ok, name, parameter(parameters, "filename")}
    end
  end

  defp disposition(_other), do: :error

  # Browsers write `%22`, `%0D` and `%0A` for a quote and line breaks in a name (HTML, 4.10.21.8).
  defp parameter(parameters, name) do
    with [value] <-
           Regex.run(~r/;\s*#{name}="([^"]*)"/i, parameters, capture: :all_but_first) do
      value
      |> String.replace("%22", "\"")
      |> String.replace("%0D", "\r")
      |> String.replace("%0A", "\n")
    end
  end

  defp field(name, nil, _type, data),
    do: if(String.valid?(data), do: {:ok, {name, data}}, else: :error)

  # An input for a file without a choice.
  defp field(_name, "", _type, ""), do: :skip

  defp field(name, file, type, data),
    do: {:ok, {name, %Upload{name: file, type: type || "application/octet-stream", data: data}}}
end
