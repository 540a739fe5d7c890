defmodule Skillbook.CLI.TerminalTest do
  # Not async: it sets a variable of the environment.
  use ExUnit.Case, async: false

  alias Skillbook.CLI.Terminal

  @terminal %Terminal{color: true, width: 80}
  @pipe %Terminal{color: false, width: nil}

  test "the option decides on colours, then the output" do
    assert Terminal.color?(:always, nil)
    refute Terminal.color?(:never, 80)
    refute Terminal.color?(:auto, nil)
  end

  test "a person is there if bin/skillbook says so, or else if there is a terminal" do
    before = System.get_env("SKILLBOOK_PERSON")
    columns = System.get_env("SKILLBOOK_COLUMNS")

    on_exit(fn ->
      for {name, value} <- [SKILLBOOK_PERSON: before, SKILLBOOK_COLUMNS: columns] do
        if value, do: System.put_env("#{name}", value), else: System.delete_env("#{name}")
      end
    end)

    for {person, columns, expected} <- [
          {"1", "", true},
          {"0", "80", false},
          {nil, "80", true},
          {nil, "", false}
        ] do
      System.put_env("SKILLBOOK_COLUMNS", columns)
      System.delete_env("SKILLBOOK_PERSON")
      if person, do: System.put_env("SKILLBOOK_PERSON", person)
      assert {person, columns, Terminal.person?()} == {person, columns, expected}
    end
  end

  test "a style adds codes only with colours" do
    assert IO.iodata_to_binary(Terminal.style(@terminal, :red, "x")) == "\e[31mx\e[0m"
    assert Terminal.style(@pipe, :red, "x") == "x"
  end

  test "replaces hidden characters, on a terminal and in a pipe" do
    for {text, shown} <- [
          {"plain\n\ttext é 👩\u200D💻", "plain\n\ttext é 👩\u200D💻"},
          {"\e[2J", "\\u{1B}[2J"},
          {"a\rb", "a\\u{D}b"},
          {"\u007F", "\\u{7F}"},
          {"\u009B31m", "\\u{9B}31m"},
          {"a\u202Eb\u200B", "a\\u{202E}b\\u{200B}"},
          {<<"ab", 255, "c">>, "ab\uFFFD"}
        ],
        do: assert(Terminal.safe(text) == shown)

    assert Terminal.line("a\nb\r\nc\e") == "a\\nb\\nc\\u{1B}"
    assert Terminal.json(%{a: "x\u202E\u{E0041}"}) == ~S({"a":"x\u202e\udb40\udc41"})
  end

  test "indents text of others" do
    for {text, shown} <- [
          {"", ""},
          {"one", "  one"},
          {"one\n\n── To the model ──\n", "  one\n\n  ── To the model ──\n"},
          {"a\r\n── b", "  a\r\n  ── b"},
          {"a\r── b\u2028── c", "  a\\u{D}── b\\u{2028}── c"}
        ],
        do: assert(Terminal.foreign(text) == shown)
  end
end
