defmodule Skillbook.Package.ExportTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Lint, Package, View}

  @moduletag :tmp_dir

  test "exports valid skills, and replaces other content only with force", %{tmp_dir: folder} do
    {:ok, catalog} =
      Catalog.load([
        "test/support/fixtures/skills",
        [path: "test/support/fixtures/notes", kind: :notes]
      ])

    view = View.all(catalog)

    for name <- ["pdf-processing", "email.send", "shopping", "family/dinner"] do
      {:ok, path} = Package.export(view, name, folder)

      assert for(
               one <- Lint.run([path], strict: true),
               one.code == :spec_violation,
               do: one.message
             ) == []

      assert {:ok, ^path} = Package.export(view, name, folder)
      File.write!(Path.join(path, "more.md"), "more")
      assert {:error, %{kind: :exists}} = Package.export(view, name, folder)
      assert {:ok, ^path} = Package.export(view, name, folder, force: true)
      refute File.exists?(Path.join(path, "more.md"))
    end

    assert {:error, %Skillbook.UnknownSkillError{}} = Package.export(view, "nothing", folder)

    assert Enum.sort(File.ls!(folder)) == [
             "email-send",
             "family-dinner",
             "pdf-processing",
             "shopping"
           ]
  end
end
