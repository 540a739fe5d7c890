defmodule Skillbook.CommandTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Command, CommandError}

  doctest Skillbook.Command
  doctest Skillbook.CommandError

  test "returns the words of the core" do
    for {line, words} <- [
          {"", []},
          {"# a comment", []},
          {"a 'b c' \"d \\\"e\\\"\"", ["a", "b c", ~S(d "e")]},
          {"a what's up", ["a", "what's", "up"]},
          {"a “b c” —d", ["a", "b c", "--d"]},
          {"a --b <<EOF\nx\n\ny\nEOF", ["a", "--b", "x\n\ny"]},
          {"$ a Grüße …", ["a", "Grüße", "…"]}
        ] do
      assert Command.tokenize(line) == {:ok, words}, line
    end
  end

  test "values are parts of the line if no character changes" do
    line = "notes.add --body " <> inspect(String.duplicate("x", 100)) <> " --tag y"
    {:ok, command} = Command.parse(line)
    assert :binary.referenced_byte_size(command.flags["body"]) == byte_size(line)
    assert command.raw == line
  end

  test "flags, arguments and help" do
    for {line, name, flags, args, help} <- [
          {"a", "a", %{}, [], false},
          {"a x --b --c d --c e -- --f", "a", %{"b" => true, "c" => ["d", "e"]}, ["x", "--f"],
           false},
          {"a --b -5 --c \"--d\"", "a", %{"b" => "-5", "c" => "--d"}, [], false},
          {"a --b c --help", "a", %{"b" => "c", "help" => true}, [], true},
          {"a -h", "a", %{}, ["-h"], true},
          {"get_skill: email.send", "get_skill", %{}, ["email.send"], false},
          {~S(a {"b": [1, null, {"c": false}], "d": true}), "a",
           %{"b" => [1, nil, %{"c" => false}], "d" => true}, [], false}
        ] do
      assert Command.parse(line) ==
               {:ok,
                %Command{
                  name: name,
                  flags: flags,
                  args: args,
                  raw: line,
                  json: line =~ "{",
                  help: help
                }}
    end
  end

  test "errors have a kind, a position, a line with a caret and a hint" do
    assert {:error, %CommandError{} = error} = Command.parse("tasks.create --title \"Call")
    assert %{kind: :unclosed_quote, offset: 21, length: 1, line: 1, column: 22} = error
    assert error.problem == "the double quote that opens here is never closed"

    assert Exception.message(error) =~
             "\n  tasks.create --title \"Call\n                       ^\nhint: close"

    assert {:error, %CommandError{kind: :invalid_utf8, offset: 2}} = Command.parse("a \xFF")
    assert {:error, %CommandError{kind: :empty_command}} = Command.parse(" ")

    assert {:error, %CommandError{kind: :command_too_large}} =
             Command.parse(String.duplicate("x", 1_048_577))

    assert {:error, %CommandError{kind: :too_many_words}} =
             Command.tokenize(String.duplicate("x ", 10_001))

    assert_raise CommandError, ~r/this is not a shell/, fn -> Command.parse!("a && b") end
    assert_raise FunctionClauseError, fn -> apply(Command, :parse, [~c"charlist"]) end
  end

  test "no flag of a command becomes an atom" do
    for i <- 1..100 do
      assert {:ok, _} = Command.parse("never_a_name_#{i}.run --never_an_atom_#{i} x")

      for text <- ["never_a_name_#{i}.run", "never_an_atom_#{i}"],
          do: assert_raise(ArgumentError, fn -> String.to_existing_atom(text) end)
    end
  end

  test "parsing a written line returns the same command" do
    for args <- [[], ["a"], ["{\"a\": 1}"], [" {}"], ["{", "b"], ["--x", "-y"], ["C:\n"], [""]],
        flags <- [%{}, %{"b" => true}, %{"b" => "{1}", "c" => ["x", "y z"]}] do
      command = %Command{name: "a.b", raw: "", args: args, flags: flags}
      line = Command.line(command)
      assert {line, Command.parse!(line)} == {line, %{command | raw: line}}
    end
  end
end
