defmodule Skillbook.CLI.RunTest do
  # Not async: the command line has one book, and these tests change the current folder.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    here = File.cwd!()
    File.cd!(folder)
    on_exit(fn -> File.cd!(here) end)
  end

  test "the steps of a workflow are objects in JSON", %{tmp_dir: folder} do
    page = fn name, step ->
      "---\nname: a.#{name}\ndescription: Runs a step\n---\n## Behavior\n\n```cmd\n#{step}\n```\n"
    end

    write(folder, %{
      "skills/a/outer.md" => page.("outer", "# name: one\na.inner"),
      "skills/a/inner.md" => page.("inner", "tasks.search")
    })

    for format <- [["--json"], ["--format", "json"]] do
      {output, 0, ""} = run_cli(~w(--db :memory: run -c a.outer) ++ format)
      refute output =~ "%Skillbook"

      assert {:ok, %{"results" => [%{"name" => "a.outer", "data" => %{"steps" => [step]}}]}} =
               JSON.decode(output)

      assert %{"number" => 1, "step" => "one", "name" => "a.inner", "status" => "ok"} = step

      assert %{"data" => %{"steps" => [%{"command" => "tasks.search", "data" => data}]}} = step
      assert data["total"] == 0
    end
  end

  test "advice names the options of the command line" do
    for {command, what} <- [{"approvals", "approvals"}, {"token", "tokens"}] do
      assert run_cli([command]) ==
               {"", 1,
                "skillbook: expected a book with a database, which stores #{what}; " <>
                  "add --db FILE\n"}
    end
  end
end
