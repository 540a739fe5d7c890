defmodule Skillbook.Mail.IMAP.UTF7 do
  @moduledoc false
  # The encoding of folders' names in IMAP (RFC 3501, 5.1.3), which is also that of keywords here:
  # UTF-7 with `&` for `+` and `,` for `/`.

  @doc """
  The text of a name. A name that is not encoded correctly stays as it is, as valid UTF-8.

      iex> Skillbook.Mail.IMAP.UTF7.decode("Entw&APw-rfe")
      "Entwürfe"
      iex> Skillbook.Mail.IMAP.UTF7.decode("a&-b &")
      "a&-b &"
  """
  @spec decode(binary()) :: String.t()
  def decode(raw) do
    case pieces(raw, []) do
      {:ok, text} -> text
      :error -> if String.valid?(raw), do: raw, else: :unicode.characters_to_binary(raw, :latin1)
    end
  end

  defp pieces("", done), do: {:ok, done |> Enum.reverse() |> IO.iodata_to_binary()}

  defp pieces("&" <> rest, done) do
    with [encoded, rest] <- :binary.split(rest, "-"),
         {:ok, text} <- shifted(encoded) do
      pieces(rest, [text | done])
    else
      _not_encoded -> :error
    end
  end

  defp pieces(<<byte, rest::binary>>, done) when byte in 0x20..0x7E,
    do: pieces(rest, [<<byte>> | done])

  defp pieces(_other, _done), do: :error

  defp shifted(""), do: {:ok, "&"}

  defp shifted(encoded) do
    with {:ok, bytes} <- Base.decode64(String.replace(encoded, ",", "/"), padding: false),
         text when is_binary(text) <- :unicode.characters_to_binary(bytes, {:utf16, :big}) do
      {:ok, text}
    else
      _invalid -> :error
    end
  end

  @doc """
  The name of a text. `plain` decides about the printable ASCII characters that stay as they are.

      iex> Skillbook.Mail.IMAP.UTF7.encode("Entwürfe & mehr")
      "Entw&APw-rfe &- mehr"
  """
  @spec encode(String.t(), (char() -> boolean())) :: String.t()
  def encode(text, plain \\ fn _character -> true end) do
    text
    |> String.to_charlist()
    |> Enum.chunk_by(&(&1 in 0x20..0x7E and &1 != ?& and plain.(&1)))
    |> Enum.map_join(&chunk(&1, plain))
  end

  defp chunk([first | _] = chunk, plain) do
    cond do
      first in 0x20..0x7E and first != ?& and plain.(first) -> List.to_string(chunk)
      Enum.all?(chunk, &(&1 == ?&)) -> String.duplicate("&-", length(chunk))
      true -> "&" <> base64(chunk) <> "-"
    end
  end

  defp base64(chunk) do
    chunk
    |> :unicode.characters_to_binary(:unicode, {:utf16, :big})
    |> Base.encode64(padding: false)
    |> String.replace("/", ",")
  end
end
