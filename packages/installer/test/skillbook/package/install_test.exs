defmodule Skillbook.Package.InstallTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.{Catalog, Package, View}

  @moduletag :tmp_dir

  test "does not replace a folder that was not installed, or a skill of another source", %{
    tmp_dir: folder
  } do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = write(Path.join(folder, "to"), %{"one/own.md" => "own"})
    assert [message] = messages(Package.install(from, [to: to] ++ accept_all()))

    assert message ==
             "#{to}/one already exists and was not installed; " <>
               "move it away, or replace it with --force"

    assert actions(Package.install(from, [to: to, force: true] ++ accept_all())) == [
             {"one", :installed}
           ]

    assert File.ls!(Path.join(to, "one")) == ["SKILL.md"]

    other = write(Path.join(folder, "other"), %{"one/SKILL.md" => skill("one", "other")})

    assert messages(Package.install(other, [to: to] ++ accept_all())) == [
             "one is installed from #{from}; remove that first, or replace it with --force"
           ]
  end

  test "refuses broken skills, skills that fail the strict check, and skills not accepted", %{
    tmp_dir: folder
  } do
    from =
      write(Path.join(folder, "from"), %{
        "bare/SKILL.md" => "# No fields\n",
        "Odd Name/SKILL.md" => skill("Odd Name"),
        "fine/SKILL.md" => skill("fine")
      })

    to = Path.join(folder, "to")

    assert messages(Package.install(from, to: to, names: ["fine"])) == [
             "fine was not accepted; review the findings, then accept it with --yes"
           ]

    assert {:ok, outcomes} =
             Package.install(from, [to: to, names: :all, strict: true] ++ accept_all())

    assert Enum.map(outcomes, &{&1.name, &1.action}) == [
             {"bare", :failed},
             {"fine", :installed},
             {"odd-name", :failed}
           ]

    assert hd(messages({:ok, outcomes})) == "bare has no description in its SKILL.md"

    assert actions(Package.install(from, [to: to, names: ["odd-name"]] ++ accept_all())) == [
             {"odd-name", :installed}
           ]

    assert Enum.sort(File.ls!(to)) == ["fine", "odd-name", "skills.lock.json"]
  end

  test "reads installed skills with low trust and a label", %{tmp_dir: folder} do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = Path.join(folder, "to")
    {:ok, _} = Package.install(from, [to: to] ++ accept_all())
    {:ok, catalog} = Catalog.load([{:installed, to}])

    assert %{trust: :low, labels: ["imported"], source: "installed"} =
             View.fetch!(View.all(catalog), "one")

    {:ok, view} = View.new(catalog, id: "guest")
    assert View.count(view) == 0
    {:ok, catalog} = Catalog.load([{:installed, to, name: "vendor", labels: []}])
    assert %{trust: :low, labels: [], source: "vendor"} = View.fetch!(View.all(catalog), "one")
  end
end
