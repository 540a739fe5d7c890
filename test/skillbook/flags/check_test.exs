defmodule Skillbook.Flags.CheckTest do
  use ExUnit.Case, async: true

  alias Skillbook.{FlagError, Flags}

  defp message({:error, %FlagError{} = e}), do: Exception.message(e)

  describe "known/2" do
    test "keeps known flags under their declared names" do
      rows = [
        {%{}, %{}},
        {%{"due-before" => "x"}, %{"due-before" => "x"}},
        {%{"due_before" => "x"}, %{"due-before" => "x"}},
        {%{"Due-Before" => "x"}, %{"due-before" => "x"}},
        {%{"due-before" => "x", "due_before" => "y"}, %{"due-before" => ["x", "y"]}},
        {%{"limit" => nil}, %{}},
        {%{"limit" => []}, %{}},
        {%{"limit" => false}, %{"limit" => false}}
      ]

      for {flags, expected} <- rows,
          do: assert(Flags.known(flags, ["due-before", "limit"]) == {:ok, expected})
    end

    test "rejects unknown flags and suggests similar ones" do
      rows = [
        {%{"limt" => "5"},
         "unknown flag --limt; did you mean --limit? Known flags: --due-before, --limit"},
        {%{"zebra" => "5"}, "unknown flag --zebra. Known flags: --due-before, --limit"},
        {%{"zebra" => nil}, "unknown flag --zebra. Known flags: --due-before, --limit"},
        {%{"limt" => "5", "due-befor" => true},
         "unknown flags --due-befor and --limt; did you mean --due-before or --limit? Known " <>
           "flags: --due-before, --limit"},
        {%{String.duplicate("x", 100) => true},
         "unknown flag --#{String.duplicate("x", 60)}.... Known flags: --due-before, --limit"}
      ]

      for {flags, text} <- rows,
          do: assert(message(Flags.known(flags, ["due-before", "limit"])) == text)
    end

    test "says that the command has no flags" do
      assert message(Flags.known(%{"x" => true}, [])) ==
               "unknown flag --x. This command takes no flags"
    end

    test "returns an error with its data" do
      assert {:error, %FlagError{} = e} = Flags.known(%{"limt" => "5"}, ["limit"])

      assert %{
               kind: :unknown,
               flag: "limt",
               flags: ["limt"],
               expected: ["limit"],
               suggestions: ["limit"]
             } = e
    end
  end

  describe "cast_args/3" do
    test "assigns words to flags in order" do
      rows = [
        {%{}, [], ["id"], %{}},
        {%{}, ["T-1"], ["id"], %{"id" => "T-1"}},
        {%{"id" => "T-1"}, [], ["id"], %{"id" => "T-1"}},
        {%{"id" => nil}, ["T-1"], ["id"], %{"id" => "T-1"}},
        {%{}, ["a", "b"], ["from", "to"], %{"from" => "a", "to" => "b"}},
        {%{"from" => "x"}, ["b"], ["from", "to"], %{"from" => "x", "to" => "b"}}
      ]

      for {flags, args, names, expected} <- rows,
          do: assert(Flags.cast_args(flags, args, names) == {:ok, expected})
    end

    test "rejects further words" do
      rows = [
        {%{}, ["report"], [], ~s("report" has no flag. Put a flag in front: --FLAG "report")},
        {%{}, ["-due", "x"], [], ~s("-due x" has no flag. A flag begins with two dashes: --due)},
        {%{}, ["/due"], [], ~s("/due" has no flag. A flag begins with two dashes: --due)},
        {%{}, ["due=x y"], [], ~s("due=x y" has no flag. A flag begins with two dashes: --due)},
        {%{}, ["-5"], [], ~s("-5" has no flag. Put a flag in front: --FLAG "-5")},
        {%{}, ["/a/b"], [], ~s("/a/b" has no flag. Put a flag in front: --FLAG "/a/b")},
        {%{}, ["T-1", "T-2"], ["id"],
         ~s("T-2" is one word too many: only --id may be given without the flag's name, once. ) <>
           ~s(Put a flag in front: --FLAG "T-2")},
        {%{"id" => "T-1"}, ["T-1"], ["id"],
         ~s("T-1" is one word too many: only --id may be given without the flag's name, once. ) <>
           ~s(Put a flag in front: --FLAG "T-1")}
      ]

      for {flags, args, names, text} <- rows,
          do: assert(message(Flags.cast_args(flags, args, names)) == text)
    end
  end

  describe "require/2" do
    test "passes if all are given" do
      for value <- ["x", "", true, false, 0, ["x"], ["x", "y"]],
          do: assert(Flags.require(%{"a" => value, "b" => "y"}, ["a", "b"]) == :ok)
    end

    test "names all missing flags" do
      rows = [
        {%{}, ["a"], "--a is required and missing. Add it as: --a VALUE"},
        {%{"a" => nil}, ["a"], "--a is required and missing. Add it as: --a VALUE"},
        {%{"a" => []}, ["a"], "--a is required and missing. Add it as: --a VALUE"},
        {%{"b" => "x"}, ["a", "b", "c"],
         "--a and --c are required and missing. Add them as: --a VALUE --c VALUE"},
        {%{}, ["a", "b", "c"],
         "--a, --b and --c are required and missing. Add them as: --a VALUE --b VALUE --c VALUE"}
      ]

      for {flags, names, text} <- rows, do: assert(message(Flags.require(flags, names)) == text)
    end
  end

  test "apply_defaults/2" do
    defaults = %{"limit" => 20, "sort" => "due"}
    assert Flags.apply_defaults(%{}, defaults) == defaults
    assert Flags.apply_defaults(%{"limit" => 5}, defaults) == %{"limit" => 5, "sort" => "due"}
    assert Flags.apply_defaults(%{"limit" => nil, "sort" => []}, defaults) == defaults
    assert Flags.apply_defaults(%{"sort" => false}, defaults) == %{"limit" => 20, "sort" => false}

    assert Flags.apply_defaults(%{"x" => 1}, defaults) == %{
             "limit" => 20,
             "sort" => "due",
             "x" => 1
           }
  end
end
