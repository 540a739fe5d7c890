defmodule Skillbook.CLI.ModulesTest do
  # `mix skillbook` in the project of an application whose modules use `Skillbook.Skill`.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    ebin = Path.join(folder, "ebin")
    File.mkdir_p!(ebin)
    true = Code.prepend_path(ebin)

    code = """
    defmodule CLIModules.Tea do
      @moduledoc \"\"\"
      ## Usage

      tea.mak
      \"\"\"
      use Skillbook.Skill, name: "tea.make", description: "Makes a pot of tea for everybody"
      def execute(_flags, _context), do: {:ok, "A pot of tea"}
    end
    """

    [{module, binary}] = Code.compile_string(code, "lib/tea.ex")
    File.write!(Path.join(ebin, "#{module}.beam"), binary)
    properties = [vsn: ~c"1.0.0", modules: [module], applications: [:kernel]]
    file = :io_lib.format(~c"~p.~n", [{:application, :cli_modules, properties}])
    File.write!(Path.join(ebin, "cli_modules.app"), file)
    Application.put_env(:skillbook, :modules, [:cli_modules])

    on_exit(fn ->
      Application.delete_env(:skillbook, :modules)
      Application.unload(:cli_modules)
      Code.delete_path(ebin)
      :code.purge(module)
      :code.delete(module)
    end)
  end

  defp cli(args) do
    {output, status, _errors} = run_cli(["--no-builtins", "--db", ":memory:" | args])
    {output, status}
  end

  test "list, run and explain see them", %{tmp_dir: folder} do
    assert {list, 0} = cli(["list"])
    assert list =~ "tea.make"
    assert {explain, 0} = cli(["explain", "tea.make"])
    assert explain =~ "lib/tea.ex (CLIModules.Tea)\n  from the source `cli_modules`\n  used as"
    assert {run, 0} = cli(["run", "-c", "tea.make"])
    assert run =~ "A pot of tea"

    # A folder replaces them.
    write(Path.join(folder, "skills"), %{
      "tea/make.md" => "---\nname: tea.make\ndescription: Makes tea\n---\nBoil water.\n"
    })

    assert {explain, 0} = cli(["--dir", Path.join(folder, "skills"), "explain", "tea.make"])
    assert explain =~ "skills/tea/make.md\n  from the source `skills`\n  used as `tea.make`"
  end

  test "lint reads them without paths, and knows them with paths", %{tmp_dir: folder} do
    assert cli(["lint"]) ==
             {"""
              lib/tea.ex (CLIModules.Tea):5: warning: there is no command `tea.mak` \
              [example_unknown]
                hint: did you mean `tea.make`?

              1 warning
              """, 1}

    page =
      "---\nname: tea.pot\ndescription: Makes tea for ten people\n---\n" <>
        "## Usage\n\ntea.pot\n\n## Behavior\n\n```cmd\ntea.make\n```\n"

    write(Path.join(folder, "skills"), %{"tea/pot.md" => page})
    assert cli(["lint", Path.join(folder, "skills")]) == {"No problems found.\n", 0}
  end
end
