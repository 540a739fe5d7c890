defmodule Skillbook.Reply.ExcerptTest do
  use ExUnit.Case, async: true

  alias Skillbook.Reply.Excerpt

  doctest Skillbook.Reply.Excerpt

  test "cuts after a line or between graphemes" do
    family = "👨‍👩‍👧"
    accent = "e\u0301"

    rows = [
      {"abc", 3, :fits},
      {"", 1, :fits},
      {"äöü", 3, :fits},
      {"abc", :infinity, :fits},
      {"abc", 2, {"ab", 2}},
      {"äöü", 2, {"äö", 2}},
      # Behind a line, if that is not before the half.
      {"ab\ncdef", 5, {"ab\n", 3}},
      {"a\nbcdef", 6, {"a\nbcde", 6}},
      {"ab\ncd\ne", 6, {"ab\ncd\n", 6}},
      {"\n\n\n", 2, {"\n\n", 2}},
      # A grapheme is not cut.
      {"ab" <> accent, 3, {"ab", 2}},
      {"ab" <> accent <> "c", 4, {"ab" <> accent, 4}},
      {"ab" <> family <> "c", 6, {"ab", 2}},
      {"ä" <> family, 3, {"ä", 1}},
      {"ab\r\ncd", 3, {"ab", 2}},
      # One that is larger than all there is room for is parted.
      {family <> "b", 2, {"👨\u200D", 2}}
    ]

    for {text, max, expected} <- rows,
        do: assert({text, max, Excerpt.cut(text, max)} == {text, max, expected})
  end

  test "pieces add up to the text, and none is empty or too long" do
    pieces = ["a", "\n", "ä", "e\u0301", "👨‍👩‍👧", "日本語", " ", "\r\n", "word\n"]

    for seed <- 1..300 do
      :rand.seed(:exsss, {seed, 1, 1})
      text = Enum.map_join(0..:rand.uniform(40), "", fn _ -> Enum.random(pieces) end)
      max = :rand.uniform(12)
      assert {seed, text |> pages(max, 1) |> Enum.join()} == {seed, text}
    end
  end

  defp pages(text, max, from) do
    rest = Excerpt.from(text, from)

    case Excerpt.cut(rest, max) do
      :fits ->
        [rest]

      {page, shown} ->
        assert shown in 1..max and Excerpt.size(page) == shown
        [page | pages(text, max, from + shown)]
    end
  end

  test "a piece does not keep the full text in memory" do
    {page, _} = Excerpt.cut(String.duplicate("x", 1_000_000), 100)
    assert :binary.referenced_byte_size(page) == 100
  end

  test "returns the text from a character on" do
    rows = [
      {"aäb", 1, "aäb"},
      {"aäb", 2, "äb"},
      {"aäb", 3, "b"},
      {"aäb", 4, ""},
      {"aäb", 9, ""},
      {"", 1, ""}
    ]

    for {text, from, rest} <- rows, do: assert(Excerpt.from(text, from) == rest)
  end
end
