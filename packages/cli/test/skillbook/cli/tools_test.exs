defmodule Skillbook.CLI.ToolsTest do
  # Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "notes/SKILL.md" => "---\ndomain: notes\ndescription: Notes\n---\n# Notes\n",
      "notes/look.md" => page("notes.look", effects: "read"),
      "notes/secret.md" => page("notes.secret", visibility_labels: "[inner]")
    })

    :ok
  end

  defp cli(folder, args) do
    test = self()
    argv = ["--dir", folder, "--no-builtins", "--db", ":memory:" | args]

    errors =
      capture_io(:stderr, fn ->
        send(test, {:output, capture_io(fn -> send(test, {:status, CLI.run(argv)}) end)})
      end)

    assert_receive {:status, status}
    assert_receive {:output, output}
    {status, output, errors}
  end

  test "prints tools in the shape of each API", %{tmp_dir: folder} do
    for {args, path, names} <- [
          {[], ["function", "name"], ["get_skill", "notes__look"]},
          {["--shape", "anthropic", "--grant", "inner"], ["name"],
           ["get_skill", "notes__look", "notes__secret"]},
          {["--shape", "mcp", "--grant", "inner", "--names", "*.s*", "--names", "x"], ["name"],
           ["get_skill", "notes__secret"]},
          {["--limit", "1"], ["function", "name"], ["get_skill"]}
        ] do
      assert {0, output, ""} = cli(folder, ["tools" | args])
      assert {:ok, tools} = JSON.decode(output)
      assert Enum.map(tools, &get_in(&1, path)) == names
    end
  end

  test "prints the grammar of the profile", %{tmp_dir: folder} do
    for {args, look?, secret?} <- [
          {[], true, false},
          {["--grant", "inner"], true, true},
          {["--grant", "inner", "--names", "*.secret"], false, true}
        ] do
      assert {0, "root ::= " <> _ = grammar, ""} = cli(folder, ["grammar" | args])
      assert grammar =~ ~r/^command-\d+ ::= "notes\.look"/m == look?
      assert grammar =~ ~r/^command-\d+ ::= "notes\.secret"/m == secret?
    end
  end

  test "reports wrong options", %{tmp_dir: folder} do
    for {args, message} <- [
          {["tools", "x"], "`tools` takes no argument, got: x\nSee: skillbook tools --help"},
          {["grammar", "x"],
           "`grammar` takes no argument, got: x\nSee: skillbook grammar --help"},
          {["tools", "--shape", "google"],
           "--shape expects one of openai, openai_strict, openai_responses, anthropic, " <>
             "gemini, mcp, llama, got: google"},
          {["tools", "--limit", "0"], "--limit expects a whole number from 1, got: 0"},
          {["tools", "--names", "a{"], "--names expects globs ("},
          {["grammar", "--names", "["], "--names expects globs ("}
        ] do
      assert {2, "", "skillbook: " <> errors} = cli(folder, args)
      assert errors =~ message
    end
  end
end
