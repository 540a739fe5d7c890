defmodule Skillbook.Package.IntoStoreTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.{Lint, Package}

  @moduletag :tmp_dir

  test "exports and imports a schedule, which does not run", %{tmp_dir: folder} do
    view = Skillbook.view(book(store: ":memory:", builtins: false))

    digest = %{
      title: "Digest",
      description: "Sums up",
      content: "Sum up.",
      timezone: "Europe/Berlin"
    }

    {:ok, entry} = Skillbook.Store.create(view, Map.put(digest, :schedule, "0 8 * * 1"))
    {:ok, path} = Package.export(Skillbook.view(view.book), entry.name, folder)

    assert for(
             one <- Lint.run([path], strict: true),
             one.code == :spec_violation,
             do: one.message
           ) == []

    other = book(store: ":memory:", builtins: false)

    for {schedule, expected} <- [
          {"0 8 * * 1", {"0 8 * * 1", "Europe/Berlin"}},
          # A schedule that would run too often is stored but never runs; an invalid one is left
          # out.
          {"* * * * *", {"* * * * *", "Europe/Berlin"}},
          {"daily", {nil, nil}}
        ] do
      page = Path.join(path, "SKILL.md")

      text =
        page |> File.read!() |> String.replace(~r/schedule: .*/, "schedule: #{inspect(schedule)}")

      File.write!(page, text)

      {:ok, [_]} =
        Package.into_store(Skillbook.view(other), path, [labels: [], force: true] ++ accept_all())

      {:ok, imported} = Skillbook.Store.fetch(Skillbook.view(other), "digest")
      assert {imported.schedule, imported.timezone} == expected
      assert Skillbook.Scheduler.registered(other) == %{}
    end
  end

  test "writes many skills together, each with its own outcome", %{tmp_dir: folder} do
    write(folder, Map.new(1..60, &{"skill-#{&1}/SKILL.md", skill("skill-#{&1}")}))
    view = Skillbook.view(book(store: ":memory:", builtins: false))
    kept = %{name: "skill-7", title: "Seven", kind: :note, content: "Mine."}
    {:ok, _} = Skillbook.Store.create(view, kept)
    import = fn -> Package.into_store(view, folder, [names: :all, labels: []] ++ accept_all()) end
    assert {:ok, outcomes} = import.()
    assert length(outcomes) == 60

    assert for(%{action: :imported, name: name} <- outcomes, do: name) |> Enum.sort() ==
             for(n <- 1..60, n != 7, do: "skill-#{n}") |> Enum.sort()

    assert {:ok, %{content: "Mine."}} = Skillbook.Store.fetch(view, "skill-7")
    # One commit for the note, and two for the skills.
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(view.book))
    assert Skillbook.Store.Table.revision(sql) == {:ok, "3"}
  end

  test "does not make a text of a workflow", %{tmp_dir: folder} do
    [source, out] = for name <- ~w(source out), do: Path.join(folder, name)

    write(source, %{
      "w/late.md" => page("w.late", [], "## Behavior\n\n```cmd\nmemory.save --content a\n```\n"),
      "w/prose.md" => page("w.prose", [], "Say hello.\n"),
      "fine/SKILL.md" => skill("fine")
    })

    for name <- ~w(w.late w.prose fine), do: {:ok, _} = Package.export(view(source), name, out)
    view = Skillbook.view(book(store: ":memory:", builtins: false))
    imported = Package.into_store(view, out, [names: :all, labels: []] ++ accept_all())
    hint = "start the book with `write_to:`, or use `install`, which keeps it a command"

    assert messages(imported) ==
             for(
               name <- ["w.late", "w.prose"],
               do: "#{name} is a workflow, and the book has no folder for it; #{hint}"
             )

    assert for(entry <- Skillbook.View.entries(Skillbook.view(view.book)), do: entry.name) == [
             "fine"
           ]
  end

  describe "a workflow that was built elsewhere" do
    setup %{tmp_dir: folder} do
      [here, out, there] = for name <- ~w(here out there), do: Path.join(folder, name)
      for path <- [here, there], do: File.mkdir_p!(path)
      profiles = [[id: "ann", grants: ["imported"]], [id: "bob"], [id: "eve", grants: ["secret"]]]
      options = [store: ":memory:", builtins: ["workflow", "memory"], profiles: profiles]
      from = book([write_to: here, watch: false] ++ options)

      built = %{
        name: "tea_time",
        description: "Notes the tea",
        tags: ["tea", "daily"],
        flags: "--kind  Which tea (default: green)",
        schedule: "0 8 * * *",
        "on-error": "continue",
        steps: "```cmd\nmemory.save --content {kind}\nmemory.search tea\n```"
      }

      line = "workflow.build " <> Skillbook.Support.JSON.encode(built)

      assert %{results: [%{status: :ok}]} =
               Skillbook.run(Skillbook.view(from, "ann"), "```cmd\n#{line}\n```")

      view = Skillbook.view(from, "ann")
      {:ok, path} = Package.export(view, "workflows.tea_time", out)
      to = book([write_to: there, watch: false] ++ options)
      {:ok, from: from, to: to, path: path, folder: there, page: "#{there}/workflows/tea_time.md"}
    end

    defp import_as(book, id, path, options \\ []) do
      view = Skillbook.view(book, id)
      Package.into_store(view, path, options ++ accept_all())
    end

    defp run_as(book, id, line) do
      %{results: [result]} = Skillbook.run(Skillbook.view(book, id), "```cmd\n#{line}\n```")
      result
    end

    test "is a page that runs once it is reviewed", %{to: to, path: path, page: page} do
      assert {:ok, [%{action: :imported}]} = import_as(to, "ann", path)
      text = File.read!(page)

      assert {:ok, %{data: data, body: body}} = Skillbook.Frontmatter.parse(text)

      assert data == %{
               "name" => "workflows.tea_time",
               "description" => "Notes the tea",
               "tags" => ["tea", "daily"],
               "on_error" => "continue",
               "visibility_labels" => ["imported"],
               "trust" => "low",
               "replaces" => false,
               "author" => "ann"
             }

      assert body =~ "--kind  Which tea (default: green)"
      {:ok, entry} = Skillbook.View.fetch(Skillbook.view(to, "ann"), "workflows.tea_time")
      assert {entry.kind, entry.trust, entry.schedule} == {:command, :low, nil}
      # Hidden from everybody else, and not run by anybody yet.
      assert {:error, _} = Skillbook.View.fetch(Skillbook.view(to, "bob"), "workflows.tea_time")
      result = run_as(to, "ann", "workflows.tea_time")

      assert result.status == :template

      assert result.content =~
               "`workflows.tea_time` was not run: it is a workflow of low trust, and its " <>
                 "steps do not run. To run them, remove the field `trust` from its page once " <>
                 "it is reviewed."

      assert Skillbook.Scheduler.registered(to) == %{}
      File.write!(page, String.replace(text, "trust: low\n", ""))
      :ok = Skillbook.reload(to)
      result = run_as(to, "ann", "workflows.tea_time --kind oolong")
      assert result.status == :ok
      assert result.content =~ "oolong"
    end

    test "takes no name, and is replaced only while nobody has reviewed it", context do
      %{to: to, path: path, page: page} = context
      assert {:ok, [%{action: :imported}]} = import_as(to, "ann", path)

      taken =
        "workflows.tea_time already exists in the book; remove or rename that one; --force " <>
          "replaces only an import that nobody has reviewed"

      assert messages(import_as(to, "ann", path)) == [taken]
      assert {:ok, [%{action: :unchanged}]} = import_as(to, "ann", path, force: true)

      File.write!(
        Path.join(path, "SKILL.md"),
        File.read!(Path.join(path, "SKILL.md")) <> "More.\n"
      )

      assert {:ok, [%{action: :updated}]} = import_as(to, "ann", path, force: true)
      assert File.read!(page) =~ "More."
      File.write!(page, String.replace(File.read!(page), "trust: low\n", ""))
      :ok = Skillbook.reload(to)
      assert messages(import_as(to, "ann", path, force: true)) == [taken]
    end

    test "learns nothing of a hidden page of its name", context do
      %{to: to, path: path, page: page, folder: folder} = context
      hidden = page("workflows.tea_time", [visibility_labels: "[secret]"], "Secret.\n")
      write(folder, %{"workflows/tea_time.md" => hidden})
      :ok = Skillbook.reload(to)
      assert {:ok, [%{action: :imported}]} = import_as(to, "ann", path)
      assert File.read!(page) == hidden
      assert {:ok, entry} = Skillbook.View.fetch(Skillbook.view(to, "ann"), "workflows.tea_time")
      assert entry.description == "Notes the tea"
      assert {:ok, entry} = Skillbook.View.fetch(Skillbook.view(to, "eve"), "workflows.tea_time")
      assert entry.body =~ "Secret."
    end

    test "needs its labels, and a name and flags that a page keeps", context do
      %{to: to, path: path} = context
      page = Path.join(path, "SKILL.md")
      text = File.read!(page)

      assert [message] = messages(import_as(to, "bob", path))
      assert message =~ "imported"

      for {from, to_text, message} <- [
            {"workflows.tea_time", "../up",
             ~s("../up" is not the name of a workflow; write small letters, digits and ) <>
               "underscores, as in workflows.weekly_report"},
            {"workflows.tea_time", "tea.all",
             ~s("tea.all" is not the name of a workflow; write small letters, digits and ) <>
               "underscores, as in workflows.weekly_report"},
            {"metadata:", "flags: {b: {}, a: {}}\nmetadata:",
             "workflows.tea_time has its flags in the frontmatter, and an import would lose " <>
               "their order; use `install`, which keeps the page as it is"}
          ] do
        File.write!(page, String.replace(text, from, to_text, global: false))
        assert messages(import_as(to, "ann", path)) == [message]
      end

      # What it says of rights, code and times counts for nothing.
      more = "handler: System\nrun_as: eve\nvisibility_labels: []\ntrust: high\nmetadata:"
      File.write!(page, String.replace(text, "metadata:", more, global: false))
      assert {:ok, [%{action: :imported}]} = import_as(to, "ann", path)
      {:ok, entry} = Skillbook.View.fetch(Skillbook.view(to, "ann"), "workflows.tea_time")
      assert {entry.trust, entry.handler, entry.labels} == {:low, nil, ["imported"]}
      assert entry.data["run_as"] == nil
    end
  end
end
