defmodule Skillbook.Web.Secrets do
  @moduledoc false
  # Makes and reads the secrets of tokens, sessions and links: 32 random bytes. Only their SHA-256
  # is stored, which is enough for random values of this length.
  #
  # The text of a token is `sb_`, the bytes in base 62, and their CRC-32: a scanner of leaked
  # secrets finds it, and a mistyped one is refused without a query.

  @bytes 32
  @digits 43
  @checksum 6
  @alphabet "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  @prefix "sb_"

  @doc "Returns a new token in a function, so that no report shows it."
  @spec token() :: (() -> String.t())
  def token do
    number = :binary.decode_unsigned(:crypto.strong_rand_bytes(@bytes))
    digits = base62(number, @digits)
    text = @prefix <> digits <> checksum(digits)
    fn -> text end
  end

  @doc "Returns a new secret of a session or a link, in a function."
  @spec random() :: (() -> String.t())
  def random do
    text = Base.url_encode64(:crypto.strong_rand_bytes(@bytes), padding: false)
    fn -> text end
  end

  @doc "Whether a text has the form of a token and its checksum is right."
  @spec token?(String.t()) :: boolean()
  def token?(<<@prefix, digits::binary-size(@digits), checksum::binary-size(@checksum)>>),
    do: checksum(digits) == checksum

  def token?(_text), do: false

  @doc "Whether a text is meant as a token of ours, right or wrong."
  @spec prefixed?(String.t()) :: boolean()
  def prefixed?(text), do: String.starts_with?(text, @prefix)

  @doc "The value that is stored."
  @spec hash(String.t()) :: String.t()
  def hash(text), do: :sha256 |> :crypto.hash(text) |> Base.encode16(case: :lower)

  @doc "The token of the forms of a session. It ends with the session, and does not tell it."
  @spec csrf(String.t()) :: String.t()
  def csrf(secret),
    do: :hmac |> :crypto.mac(:sha256, secret, "csrf") |> Base.url_encode64(padding: false)

  @doc "Compares two texts in a time that does not depend on where they differ."
  @spec same?(String.t(), String.t()) :: boolean()
  def same?(one, other),
    do: byte_size(one) == byte_size(other) and :crypto.hash_equals(one, other)

  defp checksum(digits), do: digits |> :erlang.crc32() |> base62(@checksum)

  defp base62(number, width) do
    {text, 0} =
      Enum.reduce(1..width, {"", number}, fn _digit, {text, number} ->
        {<<:binary.at(@alphabet, rem(number, 62))>> <> text, div(number, 62)}
      end)

    text
  end
end
