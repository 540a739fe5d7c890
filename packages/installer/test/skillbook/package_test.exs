defmodule Skillbook.PackageTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  doctest Skillbook.Package
  doctest Skillbook.PackageError

  alias Skillbook.Package

  @moduletag :tmp_dir

  test "installs, updates, restores and removes the skills of a git repository",
       %{tmp_dir: folder} do
    {root, first, to} = repository(folder)
    to_it = [to: to] ++ accept_all()

    assert {:ok, [two, one]} = Package.find(root)
    assert %{name: "two", path: ".claude/skills/two"} = two
    assert %{name: "one", path: "skills/one"} = one

    assert actions(Package.install(root, to_it)) =~
             "has 2 skills; name those that you want, or take all of them with --all: one, two"

    assert actions(Package.install(root, to_it ++ [names: ["oen"]])) =~
             ~s(has no skill "oen"; it has one, two)

    assert actions(Package.install(root, to_it ++ [names: :all])) == [
             {"one", :installed},
             {"two", :installed}
           ]

    assert {:ok, %{"one" => %{"commit" => ^first, "path" => "skills/one"}}} =
             Package.installed(to)

    assert actions(Package.install(root, to_it ++ [names: ["one"]])) == [{"one", :unchanged}]
    assert actions(Package.outdated([], to: to)) == [{"one", :current}, {"two", :current}]

    git!(root, ["tag", "-a", "v1", "-m", "x"])
    write(root, %{"skills/one/SKILL.md" => skill("one", "Call https://new.io\n")})
    second = commit(root)
    assert actions(Package.outdated([], to: to)) == [{"one", :outdated}, {"two", :outdated}]

    # The new host was not accepted, so the installed copy stays.
    assert {:ok, [one, %{name: "two", action: :unchanged, commit: ^second}]} =
             Package.update([], to: to)

    assert Exception.message(one.error) ==
             "one can do more than was accepted; review the findings, then accept it with --yes"

    assert [%{kind: :host, what: "new.io"}] = one.question.grown

    assert one.question.diffs == [
             {"SKILL.md",
              [
                "@@ -2,4 +2,4 @@",
                " name: one",
                " description: Does one well",
                " ---",
                "-# Page",
                "+Call https://new.io"
              ]}
           ]

    assert File.read!(Path.join(to, "one/SKILL.md")) == skill("one")

    assert actions(Package.update(["one"], to_it)) == [{"one", :updated}]
    assert File.read!(Path.join(to, "one/SKILL.md")) =~ "new.io"

    by_hand =
      "one was changed by hand (mine.md added); keep a copy of it, then replace it with --force"

    write(to, %{"one/mine.md" => "mine"})

    for change <- [&Package.update/2, &Package.remove/2, &Package.restore/2],
        do: assert(messages(change.(["one"], to_it)) == [by_hand])

    assert File.read!(Path.join(to, "one/mine.md")) == "mine"
    assert actions(Package.restore(["one"], to_it ++ [force: true])) == [{"one", :restored}]
    refute File.exists?(Path.join(to, "one/mine.md"))

    # An older revision, by tag and by commit
    assert actions(Package.install(root, to_it ++ [names: ["one"], tag: "v1"])) == [
             {"one", :updated}
           ]

    assert {:ok, %{"one" => %{"commit" => ^first, "tag" => "v1"}}} = Package.installed(to)

    assert actions(Package.install(root, to_it ++ [names: ["one"], commit: second])) == [
             {"one", :updated}
           ]

    assert actions(Package.outdated(["one"], to: to)) == [{"one", :pinned}]

    File.rm_rf!(Path.join(to, "one"))
    assert actions(Package.restore([], to: to)) == [{"one", :restored}, {"two", :unchanged}]

    assert actions(Package.remove(["one", "two"], to: to)) == [
             {"one", :removed},
             {"two", :removed}
           ]

    assert File.ls!(to) == ["skills.lock.json"]

    assert actions(Package.remove(["one"], to: to)) ==
             "one is not installed in #{to}; no skill is installed there"
  end

  test "still takes :patience, the old name of :lock_timeout", %{tmp_dir: folder} do
    warning =
      ExUnit.CaptureIO.capture_io(:stderr, fn ->
        assert Package.outdated([], to: folder, patience: 1) == {:ok, []}
      end)

    assert warning =~ ":patience of Skillbook.Package is deprecated; write :lock_timeout"
  end
end
