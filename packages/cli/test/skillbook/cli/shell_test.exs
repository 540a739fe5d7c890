defmodule Skillbook.CLI.ShellTest do
  use ExUnit.Case, async: true

  alias Skillbook.CLI.Shell
  alias Skillbook.CLI.Shell.{Completion, Editor, Keys}

  test "a text is blank, incomplete or a reply" do
    for {text, kind} <- [
          {"", :blank},
          {"  \n", :blank},
          {"a.b --c d", {:run, "```cmd\na.b --c d\n```\n"}},
          {"a.b --c \"d", :more},
          {"a.b --c \"d\ne\"", {:run, "```cmd\na.b --c \"d\ne\"\n```\n"}},
          {"a.b --c <<END\nd", :more},
          {"a.b --c <<END\nd\nEND", {:run, "```cmd\na.b --c <<END\nd\nEND\n```\n"}},
          {"a.b \\", :more},
          {"a.b \\\\", {:run, "```cmd\na.b \\\\\n```\n"}},
          {"a.b --c \"```x```\"", {:run, "````cmd\na.b --c \"```x```\"\n````\n"}},
          {"```cmd", :more},
          {"```cmd\na.b", :more},
          {"```cmd\na.b\n```", {:run, "```cmd\na.b\n```"}}
        ] do
      kind = if kind == :more, do: {:more, text <> "\n"}, else: kind
      assert {text, Shell.read(text)} == {text, kind}
    end
  end

  describe "keys" do
    test "are decoded from the bytes of a terminal" do
      for {bytes, keys} <- [
            {"aé", [{:text, "a"}, {:text, "é"}]},
            {"\r", [:enter]},
            {"\n", [:enter]},
            {"\t", [:tab]},
            {<<127>>, [:backspace]},
            {<<3>>, [:interrupt]},
            {<<4>>, [:end_of_input]},
            {"\e[A\eOB\e[C\e[D", [:up, :down, :right, :left]},
            {"\e[1;5C\eb", [:word_right, :word_left]},
            {"\e[3~", [:delete]},
            {"\e[200~x\e[201~", [:paste_start, {:text, "x"}, :paste_end]},
            {"\e[99;99Zx", [{:text, "x"}]},
            {<<0, 255, ?x>>, [{:text, "x"}]}
          ] do
        assert Keys.decode(bytes) == {keys, ""}
      end
    end

    test "do not depend on the chunks of bytes" do
      bytes = "é\e[1;5C日x\e[200~\r"
      {expected, ""} = Keys.decode(bytes)

      {keys, ""} =
        for <<byte <- bytes>>, reduce: {[], ""} do
          {keys, rest} ->
            {more, rest} = Keys.decode(<<rest::binary, byte>>)
            {keys ++ more, rest}
        end

      assert keys == expected
    end
  end

  describe "the editor" do
    # Applies the keys to an empty line with two lines of history; `|` marks the cursor.
    defp edit(keys) do
      editor =
        Enum.reduce(keys, Editor.new(["newest", "oldest"]), fn key, editor ->
          key = if is_binary(key), do: {:text, key}, else: key
          {:edit, editor} = Editor.key(editor, key)
          editor
        end)

      Editor.left(editor) <> "|" <> Enum.join(editor.right)
    end

    test "moves and changes the line" do
      for {keys, line} <- [
            {["a", "b"], "ab|"},
            {["a", "b", :left, "c"], "ac|b"},
            {["a", :left, :left], "|a"},
            {["a", :right], "a|"},
            {["a", "b", :home, "c"], "c|ab"},
            {["a", "b", :home, :end], "ab|"},
            {["a", "b", :backspace], "a|"},
            {[:backspace], "|"},
            {["a", "b", :left, :delete], "a|"},
            {["a", "b", :left, :end_of_input], "a|"},
            {["a", "b", :left, :kill_left], "|b"},
            {["a", "b", :left, :kill_right], "a|"},
            {["a b", " ", "c", :kill_word], "a b |"},
            {["ab cd", :word_left, "x"], "ab x|cd"},
            {["ab cd", :home, :word_right], "ab| cd"},
            {["ab cd", :home, :kill_word_right], "| cd"},
            {["e", "\u0301", :left], "|e\u0301"},
            {[:up], "newest|"},
            {[:up, :up, :up], "oldest|"},
            {["x", :up, :down], "x|"},
            {["x", :up, "y", :up, :down], "newesty|"},
            {[:down], "|"}
          ] do
        assert edit(keys) == line
      end
    end

    test "returns keys that end the line" do
      {:edit, editor} = Editor.key(Editor.new([]), {:text, "x"})
      assert Editor.key(editor, :enter) == {:enter, "x"}
      assert Editor.key(editor, :interrupt) == :interrupt
      assert Editor.key(Editor.new([]), :end_of_input) == :end_of_input
    end

    test "draws the line and places the cursor" do
      for {text, lefts, columns, row, drawing, cursor_row} <- [
            {"ab", 0, 10, 0, "\r\e[J> ab\r\e[4C", 0},
            {"ab", 1, 10, 0, "\r\e[J> ab\r\e[3C", 0},
            {"ab", 0, 10, 2, "\e[2A\r\e[J> ab\r\e[4C", 0},
            {"abcdef", 0, 5, 0, "\r\e[J> abcdef\r\e[3C", 1},
            {"abcdef", 4, 5, 0, "\r\e[J> abcdef\e[1A\r\e[4C", 0},
            {"abc", 0, 5, 0, "\r\e[J> abc\n\r", 1},
            {"日本", 0, 5, 0, "\r\e[J> 日本\r\e[2C", 1}
          ] do
        editor = Editor.insert(Editor.new([]), text)

        editor =
          Enum.reduce(1..lefts//1, editor, fn _, editor ->
            {:edit, editor} = Editor.key(editor, :left)
            editor
          end)

        {drawn, drawn_row} = Editor.draw(editor, "> ", columns, row)
        assert {IO.iodata_to_binary(drawn), drawn_row} == {drawing, cursor_row}
      end
    end
  end

  test "Tab completes names, then flags" do
    flags = fn
      "tasks.create" -> ["--tags", "--title"]
      _ -> []
    end

    known = %{names: ["email", "get_skill", "tasks.create", "tasks.search"], flags: flags}

    for {left, completion} <- [
          {"e", {"mail ", []}},
          {"ta", {"sks.", ["tasks.create", "tasks.search"]}},
          {"tasks.", {"", ["tasks.create", "tasks.search"]}},
          {"x", {"", []}},
          {"get_skill e", {"mail ", []}},
          {"get_skill: tasks.c", {"reate ", []}},
          {"tasks.create --t", {"", ["--tags", "--title"]}},
          {"tasks.create --x 1 --ti", {"tle ", []}},
          {"tasks.create ta", {"", []}},
          {"unknown --t", {"", []}}
        ] do
      assert Completion.complete(left, known) == completion
    end
  end

  test "prints choices in as many columns as fit" do
    assert Completion.columns(["a", "bb", "ccc"], 11) == "a    bb\nccc"
    assert Completion.columns(["a", "bb"], 1) == "a\nbb"
  end
end
