defmodule Skillbook.Connections.Client.Multipart do
  @moduledoc false
  # Several requests in the body of one, as Google's batches have them: multipart/mixed (RFC 2046)
  # with a part of application/http for each request.

  alias Skillbook.HTTP.Response
  alias Skillbook.Support.Number

  @type part :: %{
          method: atom(),
          path: String.t(),
          headers: [{String.t(), String.t()}],
          body: iodata() | nil
        }

  # More than any batch has.
  @max_parts 1_000

  @doc "The type and the body of a request for all parts."
  @spec encode([part()]) :: {String.t(), iodata()}
  def encode(parts) do
    boundary = "batch_" <> Base.url_encode64(:crypto.strong_rand_bytes(18))
    numbered = Enum.with_index(parts, 1)
    body = [Enum.map(numbered, &part(&1, boundary)), "--", boundary, "--\r\n"]
    {"multipart/mixed; boundary=#{boundary}", body}
  end

  defp part({part, number}, boundary) do
    method = part.method |> to_string() |> String.upcase()
    body = IO.iodata_to_binary(part.body || "")
    length = if part.body, do: [{"content-length", to_string(byte_size(body))}], else: []
    headers = for {name, value} <- part.headers ++ length, do: [name, ": ", value, "\r\n"]

    [
      ["--", boundary, "\r\ncontent-type: application/http\r\n"],
      ["content-id: <item-", to_string(number), ">\r\n\r\n"],
      [method, " ", part.path, " HTTP/1.1\r\n", headers, "\r\n", body, "\r\n"]
    ]
  end

  @doc """
  The responses of `count` requests in their order; `nil` for one without a response. `:error` if
  the answer is something else.
  """
  @spec decode(Skillbook.HTTP.headers(), binary(), pos_integer()) ::
          {:ok, [%{status: 100..999, headers: Skillbook.HTTP.headers(), body: binary()} | nil]}
          | :error
  def decode(headers, body, count) do
    with {:ok, boundary} <- boundary(Response.header(headers, "content-type") || ""),
         [_before | parts] <- :binary.split(body, "--" <> boundary, [:global]) do
      responses = parts |> Enum.take(@max_parts) |> Enum.flat_map(&read/1) |> Map.new()
      {:ok, Enum.map(1..count, &Map.get(responses, &1))}
    else
      _ -> :error
    end
  end

  @type_with_boundary ~r{\Amultipart/mixed\s*;.*?boundary=(?:"([^"]+)"|([^\s;"]+))}i

  defp boundary(type) do
    case Regex.run(@type_with_boundary, type) do
      [_, quoted] -> {:ok, quoted}
      [_, "", plain] -> {:ok, plain}
      nil -> :error
    end
  end

  # The parts come in any order; their numbers are in `Content-ID: <response-item-2>`.
  defp read(part) do
    with {:ok, headers, response} <- head(skip_line(part)),
         [_, number] <- Regex.run(~r/item-(\d{1,4})>?\s*\z/, header(headers, "content-id")),
         [line, rest] <- :binary.split(response, "\n"),
         [_, status] <- Regex.run(~r/\AHTTP\S* ([1-9]\d\d)(?:\s|\z)/, line),
         {:ok, headers, body} <- head(rest) do
      response = %{status: Number.integer!(status), headers: headers, body: cut(headers, body)}
      [{Number.integer!(number), response}]
    else
      _ -> []
    end
  end

  # The rest of the line of the boundary.
  defp skip_line(part) do
    case :binary.split(part, "\n") do
      [_, rest] -> rest
      [_] -> ""
    end
  end

  @max_headers 100

  # The headers before the first empty line, and the text after it.
  defp head(text), do: head(text, %{}, @max_headers)

  defp head(_text, _headers, 0), do: :error

  defp head(text, headers, left) do
    case :binary.split(text, "\n") do
      [line, rest] -> line |> String.trim_trailing("\r") |> line(rest, headers, left - 1)
      [_] -> :error
    end
  end

  defp line("", rest, headers, _left), do: {:ok, headers, rest}

  defp line(line, rest, headers, left) do
    case :binary.split(line, ":") do
      [name, value] -> head(rest, add(headers, String.downcase(name), String.trim(value)), left)
      [_] -> head(rest, headers, left)
    end
  end

  defp add(headers, name, value), do: Map.update(headers, name, [value], &(&1 ++ [value]))
  defp header(headers, name), do: Response.header(headers, name) || ""

  # The line break before the next boundary is not part of the body.
  defp cut(headers, body) do
    with [text] <- headers["content-length"],
         {length, ""} <- Number.integer(text),
         true <- length >= 0 and length <= byte_size(body) do
      binary_part(body, 0, length)
    else
      _ -> body |> String.trim_trailing("\n") |> String.trim_trailing("\r")
    end
  end
end
