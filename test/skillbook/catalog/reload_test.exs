defmodule Skillbook.Catalog.ReloadTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Change, View}

  @moduletag :tmp_dir

  defp skill(name, more \\ ""),
    do: "---\nname: #{name}\ndescription: About #{name}\n#{more}---\n\nBody of #{name}\n"

  defp load(sources) do
    {:ok, catalog} = Catalog.load(List.wrap(sources))
    catalog
  end

  defp names(catalog), do: for(entry <- View.entries(View.all(catalog)), do: entry.name)
  defp body(catalog, name), do: View.fetch!(View.all(catalog), name).body

  defp refresh(catalog, root, paths),
    do: Catalog.refresh(catalog, Enum.map(paths, &Path.join(root, &1)))

  defp findings(catalog, root) do
    for found <- Catalog.diagnostics(catalog),
        do: {found.code, Path.relative_to(found.path, root)}
  end

  defp contents(catalog), do: {View.entries(View.all(catalog)), Catalog.diagnostics(catalog)}

  describe "ignore files" do
    test "exclude the files that they name", %{tmp_dir: root} do
      # The ignore files, and the files that remain of a.md, b.md, x/a.md, x/b.md, x/y/a.md.
      rows = [
        {%{}, ~w(a.md b.md x/a.md x/b.md x/y/a.md)},
        {%{".gitignore" => "a.md\n"}, ~w(b.md x/b.md)},
        {%{".ignore" => "a.md\n"}, ~w(b.md x/b.md)},
        {%{".gitignore" => "/a.md\n"}, ~w(b.md x/a.md x/b.md x/y/a.md)},
        {%{".gitignore" => "# a.md\n\n*.txt\n"}, ~w(a.md b.md x/a.md x/b.md x/y/a.md)},
        {%{".gitignore" => "\uFEFFa.md\r\n"}, ~w(b.md x/b.md)},
        {%{".gitignore" => "x/\n"}, ~w(a.md b.md)},
        {%{".gitignore" => "x/y\n"}, ~w(a.md b.md x/a.md x/b.md)},
        {%{".gitignore" => "y/\n!y/\n"}, ~w(a.md b.md x/a.md x/b.md x/y/a.md)},
        {%{".gitignore" => "**/y/*.md\n"}, ~w(a.md b.md x/a.md x/b.md)},
        {%{".gitignore" => "*.md\n!b.md\n"}, ~w(b.md x/b.md)},
        {%{".gitignore" => "*.md\n", ".ignore" => "!b.md\n"}, ~w(b.md x/b.md)},
        {%{".gitignore" => "!b.md\n", ".ignore" => "*.md\n"}, []},
        {%{".gitignore" => "*.md\n", "x/.gitignore" => "!a.md\n"}, ~w(x/a.md x/y/a.md)},
        {%{".ignore" => "*.md\n", "x/.gitignore" => "!a.md\n"}, ~w(x/a.md x/y/a.md)},
        {%{"x/.gitignore" => "a.md\n"}, ~w(a.md b.md x/b.md)},
        {%{"x/.gitignore" => "/a.md\n"}, ~w(a.md b.md x/b.md x/y/a.md)},
        {%{".gitignore" => "x/\n", "x/.gitignore" => "!*\n"}, ~w(a.md b.md)},
        {%{"x/.gitignore" => "*\n", "x/y/.ignore" => "!a.md\n"}, ~w(a.md b.md)}
      ]

      for {{ignores, left}, n} <- Enum.with_index(rows) do
        folder = Path.join(root, "#{n}")
        files = ~w(a.md b.md x/a.md x/b.md x/y/a.md)
        write(folder, for(path <- files, do: {path, "text"}))
        write(folder, ignores)
        entries = View.entries(View.all(load([[path: folder, kind: :notes]])))
        assert Enum.map(entries, &Path.relative_to(&1.path, folder)) == left, inspect(ignores)
      end
    end

    test "above the source are ignored", %{tmp_dir: root} do
      write(root, %{".gitignore" => "*\n", "s/a.md" => skill("a")})
      assert names(load(Path.join(root, "s"))) == ["a"]
    end

    test "are reported with the files that they exclude", %{tmp_dir: root} do
      write(root, %{
        ".gitignore" => "*.tmp\nbuild/\n",
        "x/.ignore" => "draft*\n",
        "a.tmp" => "",
        "b.md.tmp" => "",
        "build/c.md" => skill("c"),
        "x/draft.md" => skill("draft"),
        "x/draft.txt" => "",
        "x/kept.md" => skill("kept")
      })

      catalog = load(root)
      assert names(catalog) == ["kept"]

      assert for(
               found <- Catalog.diagnostics(catalog),
               do: {found.severity, found.code, found.path, found.message}
             ) ==
               [
                 {:info, :ignored, Path.join(root, "build"),
                  "ignored by the line `build/` of #{root}/.gitignore"},
                 {:info, :ignored, Path.join(root, "x/draft.md"),
                  "ignored by the line `draft*` of #{root}/x/.ignore"}
               ]
    end

    test "report invalid lines", %{tmp_dir: root} do
      write(root, %{
        ".gitignore" => "a.md\n{b\n",
        "a.md" => skill("a"),
        "{b" => "",
        "b.md" => skill("b")
      })

      catalog = load(root)
      assert names(catalog) == ["b"]
      assert [invalid, %{code: :ignored}] = Catalog.diagnostics(catalog)

      assert {invalid.code, invalid.severity, invalid.path, invalid.line} ==
               {:ignore_invalid, :warning, Path.join(root, ".gitignore"), 2}

      assert invalid.message =~ "expected a glob pattern, got `{b`: "
    end

    test "that are not regular files are ignored", %{tmp_dir: root} do
      write(root, %{"rules" => "*\n", "a.md" => skill("a"), "x/.ignore/b" => ""})
      File.ln_s!(Path.join(root, "rules"), Path.join(root, ".gitignore"))
      catalog = load(root)
      assert names(catalog) == ["a"]
      assert findings(catalog, root) == [unreadable: ".gitignore", unreadable: "x/.ignore"]
    end

    test "exclude files of a skill, also through links", %{tmp_dir: root} do
      write(root, %{
        ".gitignore" => "*.log\nstore/\n",
        "s/SKILL.md" => skill("s"),
        "s/a.log" => "",
        "s/a.txt" => "",
        "store/b/SKILL.md" => skill("b"),
        "store/b/b.log" => ""
      })

      File.ln_s!(Path.join(root, "store/b"), Path.join(root, "b"))
      view = View.all(load(root))
      assert {:ok, text} = Skillbook.Help.get(view, "s")
      assert text =~ "a.txt"
      refute text =~ "a.log"
      assert {:ok, text} = Skillbook.Help.get(view, "b")
      refute text =~ "b.log"
    end

    test "are read again after a change", %{tmp_dir: root} do
      write(root, %{"a.md" => skill("a"), "x/b.md" => skill("b")})
      catalog = load(root)

      write(root, %{".gitignore" => "b.md\n"})

      assert refresh(catalog, root, [".gitignore"]) == %Change{
               generation: 2,
               added: [],
               changed: [],
               removed: ["b"]
             }

      write(root, %{"x/.ignore" => "!b.md\n"})
      assert refresh(catalog, root, ["x/.ignore"]).added == ["b"]
      File.rm!(Path.join(root, ".gitignore"))
      assert refresh(catalog, root, [".gitignore"]) == %Change{generation: 3}
    end
  end

  describe "refresh/2" do
    test "returns the entries that differ", %{tmp_dir: root} do
      write(root, %{"a.md" => skill("a"), "b.md" => skill("b"), "x/c.md" => skill("c")})
      catalog = load(root)
      write(root, %{"a.md" => skill("a", "title: A\n"), "x/d.md" => skill("d")})
      File.rm!(Path.join(root, "b.md"))

      assert refresh(catalog, root, ["a.md", "b.md", "x/d.md"]) ==
               %Change{generation: 2, added: ["d"], changed: ["a"], removed: ["b"]}

      assert refresh(catalog, root, ["a.md", "b.md", "x/d.md"]) == %Change{generation: 2}
      assert Catalog.generation(catalog) == 2
      assert Catalog.refresh(catalog, :all) == %Change{generation: 3}
    end

    test "checks only the given paths", %{tmp_dir: root} do
      write(root, %{"a.md" => skill("a"), "x/b.md" => skill("b"), "x/c.md" => skill("c")})
      catalog = load(root)

      write(root, %{
        "a.md" => skill("a", "title: A\n"),
        "x/b.md" => skill("b", "title: B\n"),
        "x/d.md" => skill("d")
      })

      assert refresh(catalog, root, ["x/b.md"]) == %Change{generation: 2, changed: ["b"]}
      assert refresh(catalog, root, ["x"]) == %Change{generation: 3, added: ["d"]}
      assert Catalog.refresh(catalog, [root]) == %Change{generation: 4, changed: ["a"]}
    end

    test "makes no generation for ignored files", %{tmp_dir: root} do
      write(root, %{
        "s/a/SKILL.md" => skill("a"),
        "s/a/x.md" => "x",
        "s/a/x.txt" => "x",
        "s/b.md" => skill("b")
      })

      catalog = load(Path.join(root, "s"))

      write(root, %{
        "s/a/x.md" => "y",
        "s/a/x.txt" => "y",
        "s/.git/c.md" => skill("c"),
        "s/.d.md" => skill("d"),
        "s/node_modules/e.md" => skill("e"),
        "f.md" => skill("f")
      })

      paths = ~w(s/a/x.md s/a/x.txt s/.git/c.md s/.git s/.d.md s/node_modules s/node_modules/e.md
           f.md s/gone s/b.md/x)

      assert refresh(catalog, root, paths) == %Change{generation: 1}
      assert Catalog.refresh(catalog, []) == %Change{generation: 1}
      assert Catalog.refresh(catalog, [Path.join(root, "s") <> "/\xff"]) == %Change{generation: 1}
    end

    test "accepts paths below the target of a linked root, and names that are not UTF-8", %{
      tmp_dir: root
    } do
      write(root, %{"real/a.md" => skill("a")})
      File.ln_s!(Path.join(root, "real"), Path.join(root, "link"))
      catalog = load(Path.join(root, "link"))
      write(root, %{"real/a.md" => skill("a", "title: A\n")})
      assert refresh(catalog, root, ["real/a.md"]) == %Change{generation: 2, changed: ["a"]}

      odd = Path.join(root, "real") <> <<"/odd", 0xFF, ".md">>
      File.write!(odd, "x")
      assert Catalog.refresh(catalog, [odd]).generation == 3
      assert findings(catalog, Path.join(root, "link")) == [unreadable: "odd\uFFFD.md"]
    end

    test "follows links that are created, changed and deleted", %{tmp_dir: root} do
      write(root, %{
        "s/.store/a.md" => skill("a"),
        "s/.store/b/SKILL.md" => skill("b"),
        "s/x/c.md" => skill("c")
      })

      source = Path.join(root, "s")
      catalog = load(source)

      File.ln_s!(Path.join(source, ".store"), Path.join(source, "x/link"))
      assert refresh(catalog, source, ["x/link"]).added == ["a", "b"]
      write(source, %{".store/a.md" => skill("a", "title: A\n")})
      assert refresh(catalog, source, [".store/a.md"]).changed == ["a"]
      File.rm!(Path.join(source, "x/link"))
      assert refresh(catalog, source, ["x/link"]).removed == ["a", "b"]

      File.mkdir_p!(Path.join(source, "y"))
      File.ln_s!(Path.join(source, ".store"), Path.join(source, "y/link"))
      assert refresh(catalog, source, ["y"]).added == ["a", "b"]
    end

    test "notices a source that is created and deleted", %{tmp_dir: root} do
      source = Path.join(root, "x/s")
      catalog = load([[path: source, optional: true]])
      assert refresh(catalog, root, ["other"]) == %Change{generation: 1}
      write(source, %{"a.md" => skill("a")})
      assert refresh(catalog, root, ["x"]) == %Change{generation: 2, added: ["a"]}
      File.rm_rf!(source)
      assert refresh(catalog, root, ["x/s"]) == %Change{generation: 3, removed: ["a"]}
      write(source, %{"a.md" => skill("a")})
      assert refresh(catalog, root, ["x/s/a.md"]) == %Change{generation: 4, added: ["a"]}
    end

    test "does not affect other sources", %{tmp_dir: root} do
      write(root, %{"1/a.md" => skill("a"), "2/a.md" => skill("a", "title: Two\n")})
      catalog = load([Path.join(root, "1"), Path.join(root, "2")])
      File.rm!(Path.join(root, "2/a.md"))
      write(root, %{"1/b.md" => skill("b")})
      assert refresh(catalog, root, ["1/b.md"]) == %Change{generation: 2, added: ["b"]}
      assert View.fetch!(View.all(catalog), "a").title == "Two"
      assert refresh(catalog, root, ["2/a.md"]) == %Change{generation: 3, changed: ["a"]}
      assert View.fetch!(View.all(catalog), "a").title == nil
    end

    test "reads a file again even if its size and time are unchanged", %{tmp_dir: root} do
      write(root, %{"a.md" => skill("a", "title: Uno\n")})
      path = Path.join(root, "a.md")
      File.touch!(path, 1_000_000_000)
      catalog = load(root)
      write(root, %{"a.md" => skill("a", "title: Due\n")})
      File.touch!(path, 1_000_000_000)
      assert Catalog.refresh(catalog, :all).changed == ["a"]
    end
  end

  # For random changes to a tree, refreshing the changed paths equals a full reload.
  test "refreshing changed paths equals a full reload", %{tmp_dir: root} do
    for seed <- 1..25 do
      :rand.seed(:exsss, {seed, seed, seed})
      {folder, away} = {Path.join(root, "#{seed}"), Path.join(root, "away#{seed}")}
      File.mkdir_p!(away)
      write(folder, for(_ <- 1..12, do: {random_file(), random_text()}))
      sources = [folder, [path: folder, kind: :notes, name: "notes", labels: ["l"]]]
      catalog = load(sources)

      for step <- 1..12 do
        before = Catalog.generation(catalog)
        old = contents(catalog)
        changed = Enum.flat_map(1..:rand.uniform(3), fn _ -> random_edit(folder, away) end)
        change = refresh(catalog, folder, changed)
        fresh = contents(load(sources))
        assert contents(catalog) == fresh, "seed #{seed}, step #{step}: #{inspect(changed)}"
        assert change.generation == if(old == fresh, do: change.generation, else: before + 1)
        assert Map.take(change, [:added, :removed]) == difference(old, fresh)
      end
    end
  end

  defp difference({old, _}, {new, _}) do
    [old, new] = for entries <- [old, new], do: Enum.map(entries, & &1.name)
    %{added: new -- old, removed: old -- new}
  end

  defp random_name, do: Enum.random(~w(a b c a-b SKILL.md x.md y.md z.md x.txt README.md))

  defp random_file,
    do: Enum.join(random_folder() ++ [Enum.random(~w(SKILL.md x.md y.md z.md x.txt))], "/")

  defp random_folder, do: Enum.take_random(~w(a b c a-b .d), :rand.uniform(3) - 1)
  defp random_path, do: Enum.join(random_folder() ++ [random_name()], "/")

  # Never broken: the last good version of a broken file is another matter.
  defp random_text do
    name = Enum.random(["s", "t", "d.one", "d.two", "d.three"])

    Enum.random([
      skill(name),
      skill(name, "title: T\n"),
      skill(name, "domain: d\n"),
      skill(name, "visibility_labels: [m]\n")
    ])
  end

  defp random_edit(folder, away) do
    path = random_path()
    full = Path.join(folder, path)
    parent? = full |> Path.dirname() |> parents_are_folders?(folder)

    case :rand.uniform(8) do
      n when n in 1..3 and parent? ->
        if File.dir?(full), do: File.rm_rf!(full)
        write(folder, [{path, random_text()}])
        [path]

      4 ->
        File.rm_rf!(full)
        [path]

      5 ->
        to = random_path()
        target = Path.join(folder, to)
        fits = File.exists?(full) and parents_are_folders?(Path.dirname(target), folder)

        if fits and not String.starts_with?(to <> "/", path <> "/") and
             not String.starts_with?(path <> "/", to <> "/") do
          File.rm_rf!(target)
          File.mkdir_p!(Path.dirname(target))
          File.rename!(full, target)
          [path, to]
        else
          []
        end

      6 when parent? ->
        # A complete folder from elsewhere replaces the old one.
        inner = Path.join(away, "#{System.unique_integer([:positive])}")
        write(inner, for(_ <- 1..3, do: {random_file(), random_text()}))
        File.rm_rf!(full)
        File.mkdir_p!(Path.dirname(full))
        File.rename!(inner, full)
        [path]

      7 when parent? ->
        File.rm_rf!(full)
        File.mkdir_p!(Path.dirname(full))

        File.ln_s!(
          Enum.random([folder, Path.join(folder, "a"), Path.join(folder, "x.md"), "gone"]),
          full
        )

        [path]

      8 ->
        ignore = Enum.join(random_folder() ++ [Enum.random([".gitignore", ".ignore"])], "/")

        if parents_are_folders?(Path.dirname(Path.join(folder, ignore)), folder) do
          write(folder, [
            {ignore, Enum.random(["", "b/\n", "x.md\n!a/x.md\n", "*.txt\n", "!x.md\n"])}
          ])

          [ignore]
        else
          []
        end

      _ ->
        []
    end
  end

  # Real folders, or nothing yet; not a file, and no link that would lead elsewhere.
  defp parents_are_folders?(path, folder) do
    cond do
      path == folder -> true
      match?({:ok, %{type: type}} when type != :directory, File.lstat(path)) -> false
      true -> parents_are_folders?(Path.dirname(path), folder)
    end
  end

  describe "a file that an edit breaks" do
    setup %{tmp_dir: root} do
      write(root, %{"a.md" => skill("a", "visibility_labels: [x]\n"), "b.md" => skill("b")})
      {:ok, catalog: load(root)}
    end

    test "keeps its last valid version, or is removed", %{catalog: catalog, tmp_dir: root} do
      good = skill("a", "visibility_labels: [x]\n")

      # The new text, and the codes of its diagnostics, or nil if the entry is removed.
      rows = [
        {good, []},
        {skill("a"), []},
        {"---\nname: a\n", [:frontmatter_unclosed, :kept_last_good]},
        {"---\nname: [\n---\n", [:frontmatter_invalid, :kept_last_good]},
        {"---\nname: a\n---\n\xFF", [:invalid_utf8, :kept_last_good]},
        {String.pad_trailing(skill("a"), 1_048_577), [:file_too_large, :kept_last_good]},
        {"", [:document_empty, :kept_last_good]},
        {"---\nname: a\n---\nText\n", [:description_missing, :kept_last_good]},
        {"Text\n", [:description_missing, :kept_last_good]},
        {"---\nvisibility_labels: [x]\n", [:frontmatter_unclosed, :kept_last_good]},
        {"---\nvisibility_labels: [x, y]\n", nil},
        {"---\nvisibility_labels: {x: y}\n---\n", nil},
        {"---\nvisibility_labels: [y]\n---\n\xFF", nil},
        {String.pad_trailing(skill("a", "visibility_labels: [y]\n"), 1_048_577), nil}
      ]

      for {text, codes} <- rows, how <- [:all, [Path.join(root, "a.md")]] do
        write(root, %{"a.md" => good})
        Catalog.refresh(catalog, :all)
        write(root, %{"a.md" => text})
        change = Catalog.refresh(catalog, how)

        case codes do
          nil ->
            assert {change.removed, names(catalog)} == {["a"], ["b"]},
                   inspect(String.slice(text, 0, 60))

            assert contents(catalog) == contents(load(root))

          codes ->
            assert names(catalog) == ["a", "b"]
            assert body(catalog, "a") == "\nBody of a\n"

            found =
              for found <- Catalog.diagnostics(catalog),
                  found.path == Path.join(root, "a.md"),
                  do: found.code

            assert Enum.sort(found) == Enum.sort(codes), inspect(String.slice(text, 0, 60))
        end
      end
    end

    test "is reported to profiles that see it", %{catalog: catalog, tmp_dir: root} do
      write(root, %{"a.md" => "---\nname: a\n", "b.md" => "---\nname: b\n"})
      assert refresh(catalog, root, ["a.md", "b.md"]) == %Change{generation: 2}
      {:ok, view} = View.new(catalog, %Skillbook.Profile{id: "p", grants: []})

      assert [kept, unclosed] = View.diagnostics(view)
      assert {unclosed.code, unclosed.path} == {:frontmatter_unclosed, Path.join(root, "b.md")}
      assert {kept.code, kept.severity} == {:kept_last_good, :warning}

      assert kept.message ==
               "the version before this edit stays in use, because this one cannot be used"

      assert kept.hint == "fix the file, or delete it to remove the entry"
    end

    test "is kept until it is valid again or deleted", %{catalog: catalog, tmp_dir: root} do
      for text <- ["---\nname: b\n", "---\nname: c\n", ""] do
        write(root, %{"b.md" => text})
        refresh(catalog, root, ["b.md"])
        assert body(catalog, "b") == "\nBody of b\n"
        {generation, contents} = {Catalog.generation(catalog), contents(catalog)}
        assert refresh(catalog, root, ["b.md"]) == %Change{generation: generation}
        Catalog.refresh(catalog, :all)
        assert contents(catalog) == contents
      end

      write(root, %{"b.md" => skill("b")})
      assert refresh(catalog, root, ["b.md"]).changed == []
      assert Catalog.diagnostics(catalog) == []

      write(root, %{"b.md" => ""})
      refresh(catalog, root, ["b.md"])
      File.rm!(Path.join(root, "b.md"))
      assert refresh(catalog, root, ["b.md"]).removed == ["b"]
      write(root, %{"b.md" => "---\nname: b\n"})
      refresh(catalog, root, ["b.md"])
      assert names(catalog) == ["a"]
    end

    test "is not kept if it was invalid on the first load", %{tmp_dir: root} do
      write(root, %{"c.md" => "---\nname: c\n"})
      catalog = load(root)
      write(root, %{"c.md" => "---\nname: cc\n"})
      refresh(catalog, root, ["c.md"])
      assert names(catalog) == ["a", "b"]
    end

    test "does not change the kind of its folder", %{tmp_dir: root} do
      folder = Path.join(root, "s")

      write(folder, %{
        "SKILL.md" => skill("s"),
        "more.md" => skill("more"),
        "d/SKILL.md" => "---\ndomain: mail\ndescription: Mail\n---\n",
        "d/send.md" => "---\ndescription: Send\n---\n"
      })

      catalog = load(folder)
      assert names(catalog) == ["mail.send", "s"]
      write(folder, %{"SKILL.md" => "---\nname: s\n", "d/SKILL.md" => "---\ndomain: mail\n"})
      refresh(catalog, folder, ["SKILL.md", "d/SKILL.md"])
      assert names(catalog) == ["mail.send", "s"]
      codes = for found <- Catalog.diagnostics(catalog), do: found.code
      assert Enum.count(codes, &(&1 == :kept_last_good)) == 2

      write(folder, %{"d/SKILL.md" => "---\ndomain: mail\n---\n"})
      refresh(catalog, folder, ["d/SKILL.md"])
      codes = for found <- Catalog.diagnostics(catalog), do: found.code
      assert Enum.count(codes, &(&1 == :kept_last_good)) == 1
    end

    test "is read unchanged if it is a note", %{tmp_dir: root} do
      write(root, %{"n/a.md" => skill("a"), "n/b.md" => "Text"})
      catalog = load([[path: Path.join(root, "n"), kind: :notes]])
      write(root, %{"n/a.md" => "Only text", "n/b.md" => ""})
      refresh(catalog, root, ["n/a.md", "n/b.md"])
      assert names(catalog) == ["a", "b"]
      assert {body(catalog, "a"), body(catalog, "b")} == {"Only text", "Text"}
    end
  end

  test "readers see complete generations during a refresh", %{tmp_dir: root} do
    page = fn n -> {"s/#{n}.md", skill("s#{n}", "title: T\n")} end
    write(root, Enum.map(1..10, page))
    catalog = load(root)
    parent = self()

    readers =
      for _ <- 1..3 do
        Task.async(fn ->
          # The writer gets its turns, and they read while it waits.
          Process.flag(:priority, :low)
          send(parent, :ready)

          Stream.repeatedly(fn -> View.all(catalog) end)
          |> Enum.reduce_while(0, fn view, last ->
            entries = View.entries(view)
            assert view.generation >= last
            assert length(entries) == View.count(view)
            # Each step of the writer renames all of them at once.
            assert [_] = entries |> Enum.map(& &1.title) |> Enum.uniq()
            if view.generation > 30, do: {:halt, :done}, else: {:cont, view.generation}
          end)
        end)
      end

    for _ <- readers, do: assert_receive(:ready)

    for step <- 1..30 do
      for n <- 1..40, do: write(root, [{"s/#{n}.md", skill("s#{n}", "title: T#{step}\n")}])
      assert refresh(catalog, root, for(n <- 1..40, do: "s/#{n}.md")).generation == step + 1
    end

    assert Task.await_many(readers, :infinity) == [:done, :done, :done]
  end
end
