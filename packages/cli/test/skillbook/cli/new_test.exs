defmodule Skillbook.CLI.NewTest do
  # Not async: the command line has one book, and these tests change the current folder.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    here = File.cwd!()
    File.cd!(folder)
    on_exit(fn -> File.cd!(here) end)
  end

  test "a new page is right at once" do
    for {args, path, next} <- [
          {["tea-rules", "How to make tea for guests"], "skills/tea-rules/SKILL.md",
           "get tea-rules"},
          {["tea.make", ~s(Makes: "tea" #1 for guests)], "skills/tea/make.md", "get tea.make"},
          {["reports.late", "What is late this week", "--kind", "workflow"],
           "skills/reports/late.md", "run -c 'reports.late'"}
        ] do
      assert {output, 0, ""} = run_cli(["new" | args])
      assert output == "wrote      #{path}\nNext: change #{path}, then\n  skillbook #{next}\n"
      assert {"No problems found.\n", 0, ""} = run_cli(["lint", path])
      assert {_output, 0, ""} = run_cli(["test", path])
      assert {_output, 0, ""} = run_cli(~w(--db :memory:) ++ OptionParser.split(next))
    end

    assert {_output, 0, ""} = run_cli(~w(--db :memory: run -c) ++ ["tea.make --topic tea"])
    File.mkdir_p!("more")

    assert {"wrote      more/b/c.md\n" <> _, 0, ""} =
             run_cli(~w(--dir more new b.c) ++ ["What b has to do with c"])
  end

  test "wrong usage" do
    {_output, 0, ""} = run_cli(["new", "tea", "How to make tea for guests"])

    for {args, message} <- [
          {[], "`new` expects a name"},
          {["tea"], "`new` expects a description in quotes"},
          {["tea", " "], "`new` expects a description in quotes"},
          {["tea", "a", "b"], "`new` takes a name and a description in quotes, got also: b"},
          {["tea", "Tea"],
           "skills/tea/SKILL.md exists already; choose another name, or remove it"},
          {["Tea", "Tea"],
           "expected a name of lowercase letters, digits and hyphens, such as tea-rules, " <>
             "got: Tea"},
          {["tea", "Tea", "--kind", "workflow"],
           "expected a name of a domain, a dot and a verb, such as reports.morning, got: tea"},
          {["../x.y", "Tea"],
           "expected a name of a domain, a dot and a verb, such as reports.morning, got: ../x.y"},
          {["tea.find", "Tea", "--kind", "handler"],
           "a handler is a module of an application; run `mix skillbook new` in its project"}
        ] do
      assert run_cli(["new" | args]) ==
               {"", 2, "skillbook: #{message}\nSee: skillbook new --help\n"}
    end
  end

  test "init makes a folder that is right at once, and changes nothing twice" do
    assert {output, 0, ""} = run_cli(["init"])

    assert output =~
             "wrote      skills/house-style/SKILL.md\nwrote      skills/reports/mine.md\nNext: "

    assert {"No problems found.\n", 0, ""} = run_cli(["lint"])
    assert {_output, 0, ""} = run_cli(["test"])
    assert {output, 0, ""} = run_cli(~w(--db :memory: run -c) ++ ["reports.mine --name Ann"])
    assert output =~ "tasks.search --assignee Ann"
    assert {output, 0, ""} = run_cli(["init"])
    assert output =~ "unchanged  skills/reports/mine.md\n"
  end
end
