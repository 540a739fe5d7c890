defmodule Skillbook.Reply.Excerpt do
  @moduledoc false
  # The beginning of a text, of so many characters at most, cut behind a line or at least between two characters. The
  # characters that are counted are code points; none that are shown as one are parted.

  @doc """
  The text if it fits, else its beginning and how many characters that has.

      iex> Skillbook.Reply.Excerpt.cut("one\\ntwo\\nthree", 13)
      :whole
      iex> Skillbook.Reply.Excerpt.cut("one\\ntwo\\nthree", 12)
      {"one\\ntwo\\n", 8}
      iex> Skillbook.Reply.Excerpt.cut("a long line", 6)
      {"a long", 6}
  """
  @spec cut(String.t(), pos_integer() | :infinity) :: :whole | {String.t(), pos_integer()}
  def cut(_text, :infinity), do: :whole
  def cut(text, max) when byte_size(text) <= max, do: :whole

  def cut(text, max) do
    case offset(text, max) do
      at when at == byte_size(text) -> :whole
      at -> text |> binary_part(0, boundary(text, at)) |> counted()
    end
  end

  @doc "The text from a character on, counted from 1; empty if it has fewer."
  @spec from(String.t(), pos_integer()) :: String.t()
  def from(text, number) do
    at = offset(text, number - 1)
    binary_part(text, at, byte_size(text) - at)
  end

  @doc "How many characters a text has."
  @spec size(String.t()) :: non_neg_integer()
  def size(text), do: count(text, 0)

  # What is kept of a text must not keep the whole of it.
  defp counted(part), do: {:binary.copy(part), size(part)}

  # A line that is much longer than the rest would make the piece too short to be worth a call.
  defp boundary(text, at) do
    half = div(at, 2)

    case :binary.matches(text, "\n", scope: {half, at - half}) do
      [] -> between(text, at)
      breaks -> breaks |> List.last() |> elem(0) |> Kernel.+(1)
    end
  end

  # Where an ASCII character stands, other than a line feed, one begins; from there on they are counted.
  defp between(text, at) do
    start = ascii(text, at - 1)
    walk(binary_part(text, start, byte_size(text) - start), start, at)
  end

  defp ascii(_text, at) when at <= 0, do: 0

  defp ascii(text, at),
    do: if(:binary.at(text, at) in 0x20..0x7E, do: at, else: ascii(text, at - 1))

  defp walk(text, at, limit) do
    case String.next_grapheme(text) do
      # One that is larger than all that may be shown is parted nevertheless.
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
