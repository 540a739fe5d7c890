defmodule Skillbook.Package.ExportTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Lint, Package, View}

  @moduletag :tmp_dir

  test "exports valid skills, and replaces other content only with force", %{tmp_dir: folder} do
    {:ok, catalog} =
      Catalog.load([
        Skillbook.Test.Checkout.path("test/support/fixtures/skills"),
        [path: Skillbook.Test.Checkout.path("test/support/fixtures/notes"), kind: :notes]
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

  test "flags of the frontmatter are the same where it is installed", %{tmp_dir: folder} do
    [source, out, there] = for name <- ~w(source out there), do: Path.join(folder, name)

    flags =
      "flags:\n  to: {required: true}\n  at: {type: date, required: true}\n" <>
        "  n: {type: number, max: 0.5, aliases: [m]}\n  by: {values: [b, a], default: b}\n"

    text = page("w.late", [], "Write to {to} at {at}.\n")
    text = String.replace(text, "---\nW", flags <> "---\nW")

    write(source, %{"w/late.md" => text})
    {:ok, catalog} = Catalog.load([source])
    {:ok, _path} = Package.export(View.all(catalog), "w.late", out)
    {:ok, [_]} = Package.install(out, to: there, accept: fn _question -> true end)
    {:ok, installed} = Catalog.load([{:installed, there}])
    [one, two] = for catalog <- [catalog, installed], do: View.flags(View.all(catalog), "w.late")
    assert {:ok, %{given: true, error: nil}} = one
    assert one == two
  end

  test "a workflow is a workflow again where it is installed", %{tmp_dir: folder} do
    [source, out, there] = for name <- ~w(source out there), do: Path.join(folder, name)

    write(source, %{
      "w/late.md" =>
        page(
          "w.late",
          [title: "Late", on_error: "continue"],
          "## Usage\n\nw.late [--to <name>]\n\n## Flags\n\n--to  Who (default: ann)\n\n" <>
            "## Behavior\n\n```cmd\nmemory.save\nmemory.save --content {to}\n```\n"
        ),
      "w/code.md" => page("w.code", handler: "Skillbook.TestHandlers.Quick")
    })

    {:ok, catalog} = Catalog.load([source])
    {:ok, path} = Package.export(View.all(catalog), "w.late", out)
    assert Path.basename(path) == "w-late"
    assert for(%{code: :spec_violation} = one <- Lint.run([path], strict: true), do: one) == []
    {:ok, [_]} = Package.install(out, to: there, accept: fn _question -> true end)

    run = fn options, line ->
      source = {:installed, there, options}
      book = book(sources: [source], store: ":memory:")
      view = Skillbook.view(book, %Skillbook.Profile{id: "ann", grants: :all})
      [result] = Skillbook.run(view, "```cmd\n#{line}\n```").results
      result
    end

    # As a folder of its own it runs, with its flags and `on_error`.
    assert %{status: :ok, effects: [:memory_saved]} = result = run.([trust: :medium], "w.late")
    assert result.content =~ "w.late ran its 2 steps; step 1 failed."
    assert result.content =~ "[2] memory.save --content ann\n"
    assert run.([trust: :medium], "w.late --to bob").content =~ "--content bob\n"
    assert run.([trust: :medium], "w.late --who bob").content =~ "unknown flag --who"

    # Installed without more trust it is text, and the answer says so.
    assert %{status: :template, content: content, effects: []} = run.([], "w.late")
    assert content =~ "`w.late` was not run: it is a workflow of low trust, and its steps do not"

    # The page of a handler needs the handler, so it stays a text.
    {:ok, path} = Package.export(View.all(catalog), "w.code", out)
    refute File.read!(Path.join(path, "SKILL.md")) =~ "skillbook-command"
  end

  test "metadata makes a command only of a command's name", %{tmp_dir: folder} do
    rows = [
      {"w.late", {:command, "w.late"}},
      {"late", {:skill, "a"}},
      {"npm run", {:skill, "a"}},
      {"w.all", nil},
      {"[w.late]", {:skill, "a"}}
    ]

    for {command, expected} <- rows do
      write(folder, %{"a/SKILL.md" => page("a", metadata: "{skillbook-command: #{command}}")})
      {:ok, catalog} = Catalog.load([folder])
      entries = for entry <- View.entries(View.all(catalog)), do: {entry.kind, entry.name}
      assert entries == List.wrap(expected)
    end

    # A page of low trust takes no command from another source.
    [own, other] = for name <- ~w(own other), do: Path.join(folder, name)
    write(own, %{"w/late.md" => page("w.late", title: "own")})
    write(other, %{"a/SKILL.md" => page("a", metadata: "{skillbook-command: w.late}")})
    {:ok, catalog} = Catalog.load([own, [path: other, trust: :low]])
    assert View.fetch!(View.all(catalog), "w.late").title == "own"
  end
end
