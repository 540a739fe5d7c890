defmodule Skillbook.Web.Page.Excerpt do
  @moduledoc false
  # The sentence of a snippet that a search has matched, without the marks of Markdown.

  # They stand around matches while the text is cut, and are removed from texts of strangers.
  @open "\x0E"
  @close "\x0F"
  # Graphemes of a sentence; shorter ones get the next one too.
  @max 220
  @few 60

  @doc ~S"""
  The texts of the sentence with the first match; a match is `{:mark, text}`.

      iex> text = "# Refunds Up to **50 EUR** you [refund](https://a.b) at once. Else ask."
      iex> Skillbook.Web.Page.Excerpt.sentence(text, [{32, 6}])
      ["Refunds Up to 50 EUR you ", {:mark, "refund"}, " at once. Else ask."]
      iex> Skillbook.Web.Page.Excerpt.sentence("One. *Two* has a long tail", [{6, 3}])
      [{:mark, "Two"}, " has a long tail"]
      iex> Skillbook.Web.Page.Excerpt.sentence("a\x0Eb", [])
      ["ab"]
  """
  @spec sentence(String.t(), [{non_neg_integer(), pos_integer()}]) :: [
          String.t() | {:mark, String.t()}
        ]
  def sentence(text, highlights) do
    text
    |> mark(0, highlights)
    |> IO.iodata_to_binary()
    |> without_marks()
    |> chosen()
    |> String.slice(0, @max)
    |> split()
  end

  # Most texts have none.
  defp without_marks(text) do
    if String.contains?(text, ["[", "*", "`", "~", "_"]) do
      text
      |> String.replace(~r/!?\[([^\]]*)\]\([^)\s]*\)/, "\\1")
      |> String.replace(~r/[*`]+|~~|(?<![\w])__?|__?(?![\w])/u, "")
    else
      text
    end
  end

  defp mark(text, from, [{at, length} | rest]) do
    [
      clean(binary_part(text, from, at - from)),
      @open,
      clean(binary_part(text, at, length)),
      @close | mark(text, at + length, rest)
    ]
  end

  defp mark(text, from, []), do: [clean(binary_part(text, from, byte_size(text) - from))]

  defp clean(text), do: String.replace(text, [@open, @close], "")

  defp chosen(text) do
    parts = ends() |> Regex.split(text) |> Enum.map(&String.trim/1) |> Enum.reject(&(&1 == ""))
    at = Enum.find_index(parts, &String.contains?(&1, @open)) || 0
    parts |> Enum.drop(at) |> longer("")
  end

  # The end of a sentence, a mark of a heading or of a list, the border of a table's cell.
  defp ends,
    do: ~r/(?<=[.!?:])\s+|\s+(?:\#{1,6}|[-*+])\s+|\A(?:…\s*)?(?:\#{1,6}|[-*+])\s+|\s*\|[\s|:-]*/

  defp longer([next | rest], text) do
    text = if text == "", do: next, else: text <> " " <> next
    if String.length(text) < @few, do: longer(rest, text), else: text
  end

  defp longer([], text), do: text

  # A match whose end was cut off ends with the text.
  defp split(text) do
    case String.split(text, @open, parts: 2) do
      [text] -> nonempty(text)
      [before, rest] -> nonempty(before) ++ split_match(String.split(rest, @close, parts: 2))
    end
  end

  defp split_match([match | rest]),
    do: [{:mark, String.replace(match, @open, "")} | Enum.flat_map(rest, &split/1)]

  defp nonempty(text) do
    case String.replace(text, @close, "") do
      "" -> []
      text -> [text]
    end
  end
end
