defmodule Skillbook.Package.TravelTest do
  # Entries of every kind are published, installed by another book, and compared.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.{Catalog, Package, Profile, Store, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  @site "https://example.com"

  # Publishes the entries of a view and installs them into a folder.
  defp travel(view, folder) do
    [out, to] = for name <- ~w(out to), do: Path.join(folder, name)
    {:ok, published} = Package.publish(view, out)
    for outcome <- published, do: assert(outcome.error == nil)

    serve = fn @site <> path ->
      case File.read(out <> path) do
        {:ok, bytes} -> bytes
        {:error, _} -> nil
      end
    end

    {:ok, installed} =
      Package.install(@site, network(serve, [to: to, names: :all] ++ accept_all()))

    for outcome <- installed,
        do: assert({outcome.name, outcome.action} == {outcome.name, :installed})

    assert length(installed) == length(published)
    to
  end

  defp all(book), do: Skillbook.view(book, %Profile{id: "ann", grants: :all})

  # Everything of an entry by which a book runs it or shows it to a model.
  defp behavior(view, name) do
    entry = View.fetch!(view, name)
    fields = ~w(kind name description aliases requires effects limits strict allowed_tools body
                triggers license compatibility hidden_from_model user_invocable usage domain)a

    {Map.take(entry, fields), View.flags(view, name)}
  end

  defp run(view, line) do
    [result] = Skillbook.run(view, "```cmd\n#{line}\n```").results
    {result.status, result.content, result.effects}
  end

  # Random commands

  defp pick(values), do: Enum.random(values)
  defp maybe(value), do: pick([nil, value])

  defp command(name) do
    flag = pick(~w(to who at))

    fields =
      [
        title: maybe("Late #{name}"),
        tags: maybe("[a, b]"),
        on_error: maybe(pick(~w(continue stop))),
        aliases: maybe("[#{name}s]"),
        effects: maybe(pick(~w(read write))),
        approval: maybe("required"),
        timeout: maybe(pick([1_000, 5_000])),
        max_running: maybe(pick([1, 3])),
        strict: maybe(pick([true, false])),
        flags: maybe("{#{flag}: {values: [ann, bob], default: #{pick(~w(ann bob))}}}"),
        trigger_keywords: maybe("[late, #{name}]"),
        "disable-model-invocation": maybe(pick([true, false])),
        "user-invocable": maybe(pick([true, false])),
        "allowed-tools": maybe("memory.save tasks.search"),
        license: maybe("MIT"),
        requires: maybe("[]"),
        schedule: maybe(~s("0 8 * * *"))
      ]
      |> Enum.reject(fn {_, value} -> value == nil end)

    steps =
      pick([
        "",
        "```cmd\nmemory.save --content {#{flag}}\n```\n",
        "```cmd\nmemory.save\nmemory.save --content b\n```\n\nTell them.\n",
        "Say hello to them.\n"
      ])

    page(
      name,
      fields,
      "## Usage\n\n#{name} [--#{flag} <name>]\n\n## Flags\n\n--#{flag}  Who (default: ann)\n\n" <>
        "## Behavior\n\n" <> steps
    )
  end

  test "a workflow and a page of prose run as where they come from", %{tmp_dir: root} do
    for seed <- 1..12 do
      :rand.seed(:exsss, {seed, 1, 2})
      folder = Path.join(root, "#{seed}")
      names = for number <- 1..8, do: "w.c#{number}"
      files = for name <- names, into: %{}, do: {"w/#{name}.md", command(name)}
      files = Map.put(files, "w/index.md", "---\nname: w\ndescription: Ws\n---\n")
      source = write(Path.join(folder, "source"), files)

      here = book(sources: [source], store: ":memory:")
      {:ok, catalog} = Catalog.load([source])
      to = travel(View.all(catalog), folder)
      there = book(sources: [{:installed, to, trust: :medium}], store: ":memory:")
      distrusted = book(sources: [{:installed, to}], store: ":memory:")

      for name <- names do
        assert behavior(all(there), name) == behavior(all(here), name), "#{name}, seed #{seed}"

        # The schedule stays off until somebody writes it again.
        assert View.fetch!(all(there), name).schedule == nil

        for line <- [
              name,
              "#{name} --to bob",
              "#{name} --who zoe",
              "#{name} --zap",
              "#{name}s",
              "#{name} --help"
            ] do
          assert run(all(there), line) == run(all(here), line), "#{line}, seed #{seed}"
        end

        # With low trust nothing runs.
        assert {status, _content, []} = run(all(distrusted), name)
        assert status in [:template, :error, :pending, :denied], "#{status}"
      end
    end
  end

  test "a skill with files, a stored skill, a note and the page of a handler travel as texts", %{
    tmp_dir: folder
  } do
    files = %{
      "pdf/SKILL.md" => skill("pdf", "See ref/a.md.\n"),
      "pdf/ref/a.md" => "A\n",
      "pdf/scripts/run.sh" => "ls\n",
      "c/code.md" => page("c.code", handler: "Skillbook.TestHandlers.Picky")
    }

    notes = write(Path.join(folder, "notes"), %{"family/dinner.md" => "# Dinner\n\nSoup.\n"})
    source = write(Path.join(folder, "source"), files)

    here =
      book(
        sources: [source, [path: notes, kind: :notes]],
        store: ":memory:",
        builtins: false
      )

    {:ok, _} =
      Store.create(all(here), %{
        title: "Weekly Report",
        description: "How the report is built",
        content: "# Steps\n\nAdd it up.\n",
        tags: ["finance"]
      })

    to = travel(all(here), folder)
    there = book(sources: [{:installed, to, trust: :medium}], builtins: false)

    assert for(entry <- View.entries(all(there)), do: {entry.name, entry.kind}) == [
             {"c-code", :skill},
             {"family-dinner", :skill},
             {"pdf", :skill},
             {"weekly-report", :skill}
           ]

    for {name, other} <- [
          {"pdf", "pdf"},
          {"weekly-report", "weekly-report"},
          {"family/dinner", "family-dinner"},
          {"c.code", "c-code"}
        ] do
      [here, there] = [View.fetch!(all(here), name), View.fetch!(all(there), other)]
      assert there.body == here.body
      assert there.files == here.files
      assert there.handler == nil
      if name != other, do: assert(there.metadata["skillbook-name"] == name)
    end

    assert behavior(all(there), "pdf") == behavior(all(here), "pdf")
    assert File.read!(Path.join(to, "pdf/scripts/run.sh")) == "ls\n"
    assert {:error, _} = Skillbook.View.fetch(all(there), "c.code")
  end
end
