defmodule Skillbook.Reply.Excerpt do
  @moduledoc false
  # Cuts the beginning of a text to a number of characters, after a line or at least between two
  # graphemes. Characters are counted as code points.

  @doc """
  Returns `:fits`, or the beginning of the text and its number of characters.

      iex> Skillbook.Reply.Excerpt.cut("one\\ntwo\\nthree", 13)
      :fits
      iex> Skillbook.Reply.Excerpt.cut("one\\ntwo\\nthree", 12)
      {"one\\ntwo\\n", 8}
      iex> Skillbook.Reply.Excerpt.cut("a long line", 6)
      {"a long", 6}
  """
  @spec cut(String.t(), pos_integer() | :infinity) :: :fits | {String.t(), pos_integer()}
  def cut(_text, :infinity), do: :fits
  def cut(text, max) when byte_size(text) <= max, do: :fits

  def cut(text, max) do
    case offset(text, max) do
      at when at == byte_size(text) -> :fits
      at -> text |> binary_part(0, boundary(text, at)) |> counted()
    end
  end

  @doc "Returns the text from a character on, counted from 1; empty if the text is shorter."
  @spec from(String.t(), pos_integer()) :: String.t()
  def from(text, number) do
    at = offset(text, number - 1)
    binary_part(text, at, byte_size(text) - at)
  end

  @doc "Returns the number of characters of a text."
  @spec size(String.t()) :: non_neg_integer()
  def size(text), do: count(text, 0)

  # Copied, because a part of a binary keeps the whole binary in memory.
  defp counted(part), do: {:binary.copy(part), size(part)}

  # A line break counts in the second half only: before a very long line the part would be too
  # short.
  defp boundary(text, at) do
    half = div(at, 2)

    case :binary.matches(text, "\n", scope: {half, at - half}) do
      [] -> between(text, at)
      breaks -> breaks |> List.last() |> elem(0) |> Kernel.+(1)
    end
  end

  # A printable ASCII character starts a grapheme, so the search for a boundary can begin there.
  defp between(text, at) do
    start = ascii(text, at - 1)
    walk(binary_part(text, start, byte_size(text) - start), start, at)
  end

  defp ascii(_text, at) when at <= 0, do: 0

  defp ascii(text, at),
    do: if(:binary.at(text, at) in 0x20..0x7E, do: at, else: ascii(text, at - 1))

  defp walk(text, at, limit) do
    case String.next_grapheme(text) do
      # A grapheme that is longer than the limit is cut nevertheless.
      {grapheme, rest} when at + byte_size(grapheme) <= limit ->
        walk(rest, at + byte_size(grapheme), limit)

      _ when at == 0 ->
        limit

      _ ->
        at
    end
  end

  defp offset(text, characters), do: offset(text, characters, 0)

  defp offset(<<c::utf8, rest::binary>>, left, at) when left > 0,
    do: offset(rest, left - 1, at + bytes(c))

  defp offset(_text, _left, at), do: at

  defp bytes(c) when c < 0x80, do: 1
  defp bytes(c) when c < 0x800, do: 2
  defp bytes(c) when c < 0x10000, do: 3
  defp bytes(_c), do: 4

  defp count(<<_::utf8, rest::binary>>, count), do: count(rest, count + 1)
  defp count(_text, count), do: count
end
