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

    assert messages(imported) == [
             ~s(w-late is the command "w.late", and the store holds skills and notes; use ) <>
               "`install`, which keeps it a command",
             ~s(w-prose is the command "w.prose", and the store holds skills and notes; use ) <>
               "`install`, which keeps it a command"
           ]

    assert for(entry <- Skillbook.View.entries(Skillbook.view(view.book)), do: entry.name) == [
             "fine"
           ]
  end
end
