defmodule Skillbook.Support.DiffTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.Diff

  defp lines(range), do: Enum.map_join(range, &"#{&1}\n")

  test "returns the differences of two texts" do
    end_mark = "\\ No newline at end of file\n"

    for {from, to, diff} <- [
          {"", "", ""},
          {"a\n", "a\n", ""},
          {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
          {"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
          {"a\nb\n", "a\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
          {"a", "a\n", "@@ -1 +1 @@\n-a\n#{end_mark}+a\n"},
          {"a\nb", "c\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n#{end_mark}"},
          {"a\r\n", "a\n", "@@ -1 +1 @@\n-a\r\n+a\n"},
          {lines(1..9), lines(1..4) <> lines(6..9),
           "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n"},
          # Six lines between two changes are in one hunk, seven are not.
          {lines(1..8), "x\n" <> lines(2..7) <> "y\n",
           "@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n"},
          {lines(1..9), "x\n" <> lines(2..8) <> "y\n",
           "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n"}
        ] do
      assert Diff.unified(from, to) == diff, inspect({from, to})
    end
  end

  test "a diff applied to one text returns the other" do
    :rand.seed(:exsss, {1, 2, 3})

    for _ <- 1..500 do
      from = random()
      to = if :rand.uniform(2) == 1, do: random(), else: touched(from)
      assert applied(Diff.unified(from, to), from) == to, inspect({from, to})
    end
  end

  test "long texts that differ in all lines are replaced completely" do
    from = lines(1..3_000)
    to = "0\n" <> lines(3_001..6_000) <> "3000\n"
    assert applied(Diff.unified(from, to), from) == to
  end

  defp random do
    lines = for _ <- 1..:rand.uniform(12), do: Enum.random(["a", "b", "c", "", "\r"])
    Enum.join(lines, "\n") <> Enum.random(["", "\n"])
  end

  defp touched(text) do
    text
    |> String.split("\n")
    |> Enum.map_join("\n", &if(:rand.uniform(4) == 1, do: "x", else: &1))
  end

  # Takes the lines of the text in turn: those that a hunk does not have stay.
  defp applied(diff, text) do
    old = text |> String.split(~r/(?<=\n)/) |> Enum.reject(&(&1 == ""))

    {rest, _at, done} =
      diff
      |> String.split(~r/(?<=\n)/)
      |> Enum.reject(&(&1 == ""))
      |> Enum.reduce({old, 1, []}, fn
        "@@" <> head, {old, at, done} ->
          [_, from, count] =
            Regex.run(~r/ -(\d+)(?:,(\d+))?/, head <> " ") |> Enum.concat([""]) |> Enum.take(3)

          from = String.to_integer(from) + if(count == "0", do: 1, else: 0)
          {same, old} = Enum.split(old, from - at)
          {old, from, Enum.reverse(same) ++ done}

        "\\" <> _, {old, at, [line | done]} ->
          {old, at, [String.trim_trailing(line, "\n") | done]}

        " " <> line, {[first | old], at, done} ->
          assert String.trim_trailing(first, "\n") == String.trim_trailing(line, "\n")
          {old, at + 1, [first | done]}

        "-" <> line, {[first | old], at, done} ->
          assert String.trim_trailing(first, "\n") == String.trim_trailing(line, "\n")
          {old, at + 1, ["" | done]}

        "+" <> line, {old, at, done} ->
          {old, at, [line | done]}
      end)

    IO.iodata_to_binary([Enum.reverse(done), rest])
  end
end
