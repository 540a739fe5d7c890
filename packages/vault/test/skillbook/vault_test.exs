defmodule Skillbook.VaultTest do
  use ExUnit.Case, async: true
  use Skillbook.SkillsCase

  import ExUnit.CaptureLog

  alias Skillbook.Vault.Hit
  alias Skillbook.{Book, OptionError, SQL, Vault, View}

  doctest Skillbook.Vault
  doctest Skillbook.Vault.Hit
  doctest Skillbook.VaultError

  @moduletag :tmp_dir

  # Long, for busy machines.
  @timeout 20_000

  for dialect <- [:sqlite, :postgres] do
    describe "#{dialect}:" do
      @describetag dialect: dialect

      test "searches words, phrases and prefixes", context do
        book =
          vault(context, %{
            "strategy.md" => "# Q1 strategy\n\nWe meet on Monday to plan the quarter.\n",
            "meetings.md" =>
              "Notes of meetings. The Monday plan was dropped. Café au lait, naïve.\n",
            "deep/er/other.md" => "Nothing of the strategies: universities and organisations.\n",
            "numbers.md" => "Version 1e5 costs 007 of C++ and 3.14, AND or NOT near.\n"
          })

        rows = [
          {"strategy", :all, ["strategy.md", "deep/er/other.md"]},
          {"STRATEGIES", :all, ["strategy.md", "deep/er/other.md"]},
          {"meeting", :all, ["meetings.md", "strategy.md"]},
          {"monday plan", :all, ["meetings.md", "strategy.md"]},
          {~s("monday plan"), :all, ["meetings.md"]},
          {~s("plan monday"), :all, []},
          {"monday plan universities", :any, ["meetings.md", "strategy.md", "deep/er/other.md"]},
          {"meeti*", :all, ["meetings.md"]},
          {"mee*", :all, ["meetings.md", "strategy.md"]},
          {"universi*", :all, ["deep/er/other.md"]},
          {"cafe", :all, ["meetings.md"]},
          {"CAFÉ NAIVE", :all, ["meetings.md"]},
          {"1e5 007", :all, ["numbers.md"]},
          {"3.14", :all, ["numbers.md"]},
          {"plan NOT monday", :all, ["meetings.md", "strategy.md"]},
          {"lait NOT monday", :all, ["meetings.md"]},
          {"plan NEAR monday", :any, ["meetings.md", "strategy.md", "numbers.md"]},
          {"content : plan", :any, ["meetings.md", "strategy.md"]},
          {"-plan", :all, []},
          {"plan -strategy", :all, ["meetings.md"]},
          {"-meeting plan", :all, []},
          {"monday -q*", :all, ["meetings.md"]},
          {~s(plan -"monday plan"), :all, ["strategy.md"]},
          {"monday nowhere -strategy", :any, ["meetings.md"]},
          {"--strategy monday", :all, ["strategy.md"]},
          {"universities OR lait", :all, ["deep/er/other.md", "meetings.md"]},
          {"universities or lait", :any, ["deep/er/other.md", "meetings.md"]},
          {~s("monday plan" OR version), :all, ["meetings.md", "numbers.md"]},
          {"nowhere OR q1", :all, ["strategy.md"]},
          {"monday lait OR quarter", :all, ["meetings.md", "strategy.md"]},
          {"strategies OR plan -cafe", :all, ["strategy.md", "deep/er/other.md"]},
          {~s(plan" OR "), :any, ["numbers.md", "meetings.md", "strategy.md"]},
          {"title:plan", :any, ["meetings.md", "strategy.md"]},
          {~s("plan), :all, ["meetings.md", "strategy.md"]},
          {"plan' | !x & (y) <-> *:A \\", :any, ["meetings.md", "strategy.md"]},
          {"* ** ' %", :all, []},
          {"", :all, []},
          {"nowhere", :any, []}
        ]

        for {query, match, paths} <- rows do
          {:ok, found} = Vault.search(View.all(book), query)
          match = if paths == [], do: found.match, else: match

          assert {query, found.match, Enum.map(found.hits, & &1.path), found.total} ==
                   {query, match, paths, length(paths)}
        end
      end

      test "function words decide neither the order nor whether a note has all words", context do
        book =
          vault(context, %{
            "Plan.md" => "The budget of May is in this note.\n",
            "What is it for.md" => "What is the point of it, and for whom? We have a budget.\n",
            "Lunch.md" => "Soup. Salad. To be or not to be.\n"
          })

        for {query, match, paths} <- [
              {"what is the budget for May?", :all, ["Plan.md"]},
              {"do we have a plan for it", :all, ["Plan.md"]},
              {"what is our lunch for May", :any, ["Lunch.md", "Plan.md"]},
              {"what", :all, ["What is it for.md"]},
              {"what is it", :all, ["What is it for.md"]},
              {~s("what" budget), :all, ["What is it for.md"]},
              {~s(budget "is the point"), :all, ["What is it for.md"]},
              {~s(salad "to be or not to be"), :all, ["Lunch.md"]},
              {"budget -what", :all, ["Plan.md"]}
            ] do
          {:ok, found} = Vault.search(View.all(book), query)
          assert {query, match, paths} == {query, found.match, Enum.map(found.hits, & &1.path)}
        end
      end

      test "notes that a query leaves out change neither filters nor scores", context do
        book =
          vault(context, %{
            "f/one.md" => "plan may\n",
            "f/two.md" => "plan draft\n",
            "three.md" => "plan may may draft\n",
            "four.md" => "plan\n"
          })

        search = fn query, options ->
          {:ok, found} = Vault.search(View.all(book), query, options)
          for hit <- found.hits, do: {hit.path, hit.score}
        end

        within = search.("plan -draft", folder: "f")
        assert [{"f/one.md", _}] = within
        before = search.("may plan -draft", [])
        assert [{"f/one.md", _}] = before
        File.rm!(Path.join(context.tmp_dir, "notes/f/two.md"))
        File.rm!(Path.join(context.tmp_dir, "notes/three.md"))
        {:ok, _} = Vault.sync(book, "notes")
        assert search.("plan -draft", folder: "f") == within
        assert search.("may plan -draft", []) == before
      end

      test "filters", context do
        book =
          vault(context, %{
            "projects/alpha.md" =>
              "---\ntags: [Work, area/home]\nstatus: open\npriority: 2\npeople: [Ann, " <>
                "Bob]\n---\nPlan\n",
            "projects/old/beta.md" => "---\ntags: work, done\nstatus: closed\n---\nPlan\n",
            "projects2/gamma.md" =>
              "Plan #project/gamma and `#not` http://x.org/#nor #12\n\n```\n#code\n```\n"
          })

        rows = [
          {[tags: ["work"]], ["projects/alpha.md", "projects/old/beta.md"]},
          {[tags: ["#WORK", "done"]], ["projects/old/beta.md"]},
          {[tags: ["area"]], ["projects/alpha.md"]},
          {[tags: ["project"]], ["projects2/gamma.md"]},
          {[tags: ["project/gamma"]], ["projects2/gamma.md"]},
          {[tags: ["not"]], []},
          {[tags: ["nor"]], []},
          {[tags: ["12"]], []},
          {[tags: ["code"]], []},
          {[folder: "projects"], ["projects/alpha.md", "projects/old/beta.md"]},
          {[folder: "/projects/old/"], ["projects/old/beta.md"]},
          {[folder: "projects%"], []},
          {[folder: "old"], []},
          {[fields: [{"status", "OPEN"}]], ["projects/alpha.md"]},
          {[fields: [{"Priority", "2"}, {"people", "bob"}]], ["projects/alpha.md"]},
          {[fields: [{"status", "open"}, {"people", "carl"}]], []},
          {[vault: "notes"], ["projects/alpha.md", "projects/old/beta.md", "projects2/gamma.md"]}
        ]

        for {options, paths} <- rows, query <- ["plan", nil] do
          {:ok, found} = Vault.search(View.all(book), query, options)
          assert {options, Enum.sort(Enum.map(found.hits, & &1.path))} == {options, paths}
        end

        {:ok, found} = Vault.search(View.all(book), nil, limit: 2)

        assert {found.total, Enum.map(found.hits, & &1.path)} ==
                 {3, ["projects/alpha.md", "projects/old/beta.md"]}

        {:error, error} = Vault.search(View.all(book), "plan", vault: "nots")
        assert Exception.message(error) == ~s(there is no vault "nots"; the vaults are notes)
      end

      test "reads title, tags, links and frontmatter of a note", context do
        book =
          vault(context, %{
            "Named.md" =>
              "---\ntitle: The  title\naliases: [Other name]\ntags: [one]\n---\nSee " <>
                "[[Target#part|shown]], ![[image.png]], " <>
                "[[Target]] and #two.\n",
            "heading.MD" => "\n# A heading #\n\ntext\n",
            "plain.markdown" => "one two  three\n",
            "left.txt" => "one"
          })

        {:ok, %{hits: [named, heading, plain], total: 3}} = Vault.search(View.all(book), nil)

        assert %Hit{
                 title: "The title",
                 tags: ["one", "two"],
                 links: ["Target", "image.png"],
                 path: "Named.md"
               } = named

        assert named.frontmatter["aliases"] == ["Other name"]
        assert {heading.title, plain.title, plain.word_count} == {"A heading", "plain", 3}

        for name <- ["other", "named", "title"],
            do: assert({:ok, %{total: 1}} = Vault.search(View.all(book), name))
      end

      test "ranks titles before contents, and rare words before common ones", context do
        often = String.duplicate("budget ", 500)

        book =
          vault(context, %{
            "a.md" => "Text of the budget. " <> often,
            "budget.md" => "Nothing else.",
            "c.md" => "One rare word and the budget.",
            "d.md" => "The budget, the budget."
          })

        assert ["budget.md", "a.md", "d.md", "c.md"] == paths(book, "budget")
        assert "c.md" == hd(paths(book, "rare budget"))
        {:ok, %{hits: hits}} = Vault.search(View.all(book), "budget")
        # On both databases.
        assert Enum.map(hits, & &1.score) == [0.0801, 0.042, 0.032, 0.0256]
      end

      test "snippets highlight matches", context do
        long = String.duplicate("filler ", 60)

        book =
          vault(context, %{
            "a.md" => "#{long}\n\nThe *Strategies*   of plans. #{long}",
            "b.md" => "# Strategy\n\nshort"
          })

        {:ok, %{hits: hits}} = Vault.search(View.all(book), "strategy plan")
        assert [%{path: "a.md"} = hit] = hits

        assert Hit.marked(hit, "[", "]") =~
                 ~r/\A…(filler )+The \*\[Strategies\]\* of \[plans\]\. (filler )+filler…\z/

        assert byte_size(hit.snippet) < 220
        {:ok, %{hits: [_, hit]}} = Vault.search(View.all(book), "strat*")
        assert hit.path in ["a.md", "b.md"]
      end

      test "indexes hostile files as text or logs why not", context do
        File.mkdir_p!(Path.join(context.tmp_dir, "outside"))
        File.write!(Path.join(context.tmp_dir, "outside/secret.md"), "outside")

        log =
          capture_log(fn ->
            book =
              vault(
                context,
                %{
                  "broken.md" => "---\ntags: [a, b\n---\nbroken plan\n",
                  "hiding.md" => "---\nvisibility_labels: [a\n---\nhidden plan\n",
                  "map.md" => "---\nvisibility_labels: {a: b}\n---\nhidden plan\n",
                  "near.md" => "---\nvisibility-labels: [a]\n---\nhidden plan\n",
                  "twice.md" => "---\nlabels: [a]\nlabels: []\n---\nhidden plan\n",
                  "binary.md" => <<0, 255, 1, 2>>,
                  "zero.md" => "plan " <> <<0>>,
                  "yaml zero.md" => "---\ntitle: \"a\\0b\"\n---\nplan",
                  "huge.md" => String.duplicate("plan ", 500_000),
                  "long.md" => "plan " <> String.duplicate("x", 1_000_000),
                  "many.md" => Enum.map_join(1..150_000, " ", &"w#{&1}x#{rem(&1 * 7919, 1000)}"),
                  "empty.md" => "",
                  ".hidden/a.md" => "plan",
                  "it's \"odd\" %_.md" => "plan"
                },
                fn folder ->
                  File.ln_s!(Path.join(context.tmp_dir, "outside"), Path.join(folder, "link"))

                  File.ln_s!(
                    Path.join(context.tmp_dir, "outside/secret.md"),
                    Path.join(folder, "link.md")
                  )

                  File.ln_s!(folder, Path.join(folder, "circle"))
                end
              )

            assert Enum.sort(paths(book, "plan")) == [
                     "broken.md",
                     "it's \"odd\" %_.md",
                     "long.md",
                     "yaml zero.md"
                   ]

            {:ok, %{total: total}} = Vault.search(View.all(book), nil)
            assert total == 6
            assert paths(book, "w1x919") == ["many.md"]
            {:ok, counts} = Vault.sync(book, "notes")
            assert counts.skipped == 10
          end)

        for line <- [
              "broken.md: its frontmatter is read as text: ",
              "hiding.md is not indexed: line 2: expected frontmatter that can be read, " <>
                "since a line of it looks like `visibility_labels`; mend the frontmatter",
              "map.md is not indexed: line 2: expected a list of texts for " <>
                "`visibility_labels`, got a mapping; write for example " <>
                "visibility_labels: [private, family], or an empty list [] for none",
              "near.md is not indexed: line 2: expected `visibility_labels`, " <>
                "got `visibility-labels`; write for example " <>
                "visibility_labels: [private, family]",
              "twice.md is not indexed: line 2: expected `labels` once, " <>
                "got it more than once; keep one of them",
              "binary.md is not indexed: it is not text in UTF-8",
              "zero.md is not indexed: it is not text in UTF-8",
              "huge.md is not indexed: it has more than 2097152 bytes",
              "link is a symbolic link, and links are not followed",
              "link.md is a symbolic link, and links are not followed",
              "circle is a symbolic link, and links are not followed"
            ],
            do: assert(log =~ line)
      end

      test "follows new, changed, moved and deleted files and folders", context do
        book = vault(context, %{"a.md" => "one", "b/c.md" => "one"}, & &1, watch: true)
        folder = Path.join(context.tmp_dir, "notes")
        File.write!(Path.join(folder, "new.md"), "two")
        await(book, "two", ["new.md"])
        File.write!(Path.join(folder, "a.md"), "two")
        await(book, "two", ["a.md", "new.md"])
        File.rename!(Path.join(folder, "b"), Path.join(folder, "d"))
        await(book, "one", ["d/c.md"])
        File.rm_rf!(Path.join(folder, "d"))
        await(book, "one", [])
        File.rename!(Path.join(folder, "new.md"), Path.join(folder, "gone.txt"))
        await(book, "two", ["a.md"])
      end

      test "does not read unchanged files again", context do
        book = vault(context, %{"a.md" => "one", "b.md" => "one"})
        folder = Path.join(context.tmp_dir, "notes")

        for name <- ["a.md", "b.md"],
            do: File.touch!(Path.join(folder, name), {{2020, 1, 1}, {0, 0, 0}})

        # Other times, the same hashes.
        assert {:ok, %{indexed: 0, removed: 0, unchanged: 2, skipped: 0, failed: 0}} =
                 Vault.sync(book, "notes")

        # With the same size and time it is not read again.
        File.write!(Path.join(folder, "a.md"), "two")
        File.touch!(Path.join(folder, "a.md"), {{2020, 1, 1}, {0, 0, 0}})
        assert {:ok, %{indexed: 0}} = Vault.sync(book, "notes")
        File.write!(Path.join(folder, "a.md"), "three")
        File.rm!(Path.join(folder, "b.md"))

        assert {:ok, %{indexed: 1, removed: 1, unchanged: 0, skipped: 0}} =
                 Vault.sync(book, "notes")

        assert {paths(book, "one"), paths(book, "three")} == {[], ["a.md"]}
      end

      @tag :capture_log
      test "a missing folder keeps its index", context do
        book = vault(context, %{"a.md" => "one"})
        File.rename!(Path.join(context.tmp_dir, "notes"), Path.join(context.tmp_dir, "away"))
        assert Vault.sync(book, "notes") == {:error, :enoent}
        assert paths(book, "one") == ["a.md"]
      end

      test "two books with one database index a vault once", context do
        book = vault(context, %{"a.md" => "one", "b.md" => "two"})
        %Book{store: {module, options}} = Book.fetch!(book)

        other =
          book(
            store: {module, Keyword.delete(options, :name)},
            vaults: [Path.join(context.tmp_dir, "notes")],
            watch: false
          )

        syncs =
          for book <- [book, other, book, other],
              do: Task.async(fn -> Vault.sync(book, "notes") end)

        for {:ok, counts} <- Task.await_many(syncs, @timeout),
            do: assert({counts.indexed, counts.removed} == {0, 0})

        assert paths(other, "one") == ["a.md"]

        %{rows: [[count]]} =
          SQL.query!(Book.sql(Book.fetch!(book)), "select count(*) from skillbook_documents")

        assert count == 2
      end

      test "names and tags of a document have limits", context do
        book = book(store: store(context), vaults: [[name: "drive", labels: ["drive"]]])
        deep = &String.duplicate("a/", div(&1, 2))
        put = &Vault.put(book, "drive", Map.merge(%{id: "x", content: "A plan"}, &1))

        for {fields, reason} <- [
              {%{path: deep.(2_000)}, nil},
              {%{path: deep.(2_002)}, "its path has more than 2000 bytes"},
              {%{id: deep.(2_000)}, nil},
              {%{id: deep.(2_002), path: "x"}, "its id has more than 2000 bytes"},
              {%{content: "---\ntags: [#{deep.(1_000_000)}a]\n---\nA #plan/#{deep.(1_000_000)}a"},
               nil}
            ] do
          case put.(fields) do
            :ok -> assert reason == nil
            {:error, %{kind: :unreadable} = error} -> assert error.reason == reason
          end
        end

        {:error, error} = put.(%{path: deep.(2_002)})

        assert Exception.message(error) ==
                 "the note \"#{deep.(100)}...\" cannot be read or written: its path has more " <>
                   "than 2000 bytes"
      end

      test "applications put and delete documents", context do
        book = book(store: store(context), vaults: [[name: "drive", labels: ["drive"]]])

        assert :ok =
                 Vault.put(book, "drive", %{
                   id: "x1",
                   path: "docs/Plan.md",
                   content: "A plan",
                   labels: ["ann"]
                 })

        assert :ok =
                 Vault.put(book, "drive", %{
                   id: "x1",
                   path: "docs/Plan.md",
                   content: "A strategy",
                   labels: ["ann"]
                 })

        assert {paths(book, "plan"), paths(book, "strategy")} ==
                 {["docs/Plan.md"], ["docs/Plan.md"]}

        {:ok, %{hits: [%{id: "x1", snippet: "A strategy"}]}} = Vault.search(View.all(book), nil)

        assert :ok =
                 Vault.put(book, "drive", %{
                   id: "x2",
                   content: "---\nvisibility_labels: [bob]\n---\nA strategy"
                 })

        for {grants, total} <- [
              {["drive"], 0},
              {["drive", "ann"], 1},
              {["drive", "ann", "bob"], 2}
            ] do
          {:ok, found} =
            Vault.search(
              Skillbook.view(book, %Skillbook.Profile{id: "p", grants: grants}),
              "strategy"
            )

          assert {grants, found.total} == {grants, total}
        end

        assert {:error, error} = Vault.search(Skillbook.view(book), "strategy")
        assert Exception.message(error) =~ "there are no vaults. "
        assert :ok = Vault.delete(book, "drive", "x1")
        assert :ok = Vault.delete(book, "drive", "x1")
        assert paths(book, "strategy") == ["x2"]
      end
    end
  end

  test "validates options", %{tmp_dir: folder} do
    rows = [
      {[vaults: [folder]], :store},
      {[store: ":memory:", vaults: [[path: folder, colour: 1]]], :colour},
      {[store: ":memory:", vaults: [[labels: ["a"]]]], :name},
      {[store: ":memory:", vaults: [[path: folder, name: "a/b"]]], :name},
      {[store: ":memory:", vaults: [folder, folder]], :name},
      {[store: ":memory:", vaults: [[path: folder, watch: 1]]], :watch},
      {[store: ":memory:", vaults: [[path: folder, files: 1]]], :files},
      {[store: ":memory:", vaults: [[path: folder, files: [max_bytes: 0]]]], :files},
      {[store: ":memory:", vaults: [[name: "drive", files: true]]], :files},
      {[store: ":memory:", vaults: folder], :vaults}
    ]

    for {options, option} <- rows do
      assert {:error, %OptionError{option: ^option}} =
               Skillbook.start_link([name: :vault_options] ++ options)
    end
  end

  test "saves and opens files of a folder with files: true", %{tmp_dir: folder} do
    notes = Path.join(folder, "notes")
    write(notes, %{"Plan.md" => "Beans", "Board.md" => "---\nlabels: [board]\n---\nPeas"})
    vaults = [[path: notes, files: [max_bytes: 5]], [path: Path.join(folder, "b"), name: "b"]]
    File.mkdir_p!(Path.join(folder, "b"))
    book = book(store: ":memory:", vaults: vaults, watch: false, profiles: [[id: "ann"]])
    view = Skillbook.view(book, "ann")
    long = "vault:notes/" <> String.duplicate("a/", 2_048)
    read = fn file -> :file.read(file.device, 10) end
    save = fn data -> fn device, _max -> :file.write(device, data) end end
    open = &Vault.open_file(view, &1, read)

    assert {:ok, %{path: "a/b.bin", size: 2}} =
             Vault.save_file(view, "vault:notes/a/b.bin", save.(<<0, 255>>))

    assert {:ok, _} = Vault.save_file(view, "vault:notes/a/b.bin", save.("x"), replace: true)
    assert open.("vault:notes/a/b.bin") == {:ok, "x"}
    assert open.("vault:notes/Plan.md") == {:ok, "Beans"}
    stopped = fn device, _max -> with :ok <- :file.write(device, "y"), do: {:error, :enospc} end

    # A hidden note is like a missing one.
    for {found, message} <- [
          {open.("vault:notes/Board.md"), ~s(there is no file "vault:notes/Board.md")},
          {open.("vault:notes/Bord.md"), ~s(there is no file "vault:notes/Bord.md")},
          {open.("vault:notes/a"), "a: invalid argument"},
          {open.(long <> "b"),
           ~s(expected a file of a vault as vault:NAME/PATH, got ) <>
             inspect(String.slice(long, 0, 100) <> "...") <>
             ". Write for example: vault:notes/report.pdf. The vaults with files are notes"},
          {Vault.open_file(view, "vault:notes/Plan.md", read, max_bytes: 4),
           ~s("vault:notes/Plan.md" is too large: at most 4 bytes are allowed)},
          {Vault.save_file(view, "vault:notes/c", save.("123456")),
           ~s("vault:notes/c" is too large: at most 5 bytes are allowed)},
          {Vault.save_file(view, "vault:notes/c", stopped), "c: no space left on device"},
          {Vault.save_file(view, "vault:notes/a/b.bin", save.("z")),
           ~s(the file "vault:notes/a/b.bin" already exists. Write another name, or add ) <>
             "--overwrite to replace it"},
          {Vault.save_file(view, "vault:notes/a", save.("z")),
           ~s("vault:notes/a" is a folder. To keep the file's own name, write: vault:notes/a/)},
          {Vault.save_file(view, "vault:b/c", save.("z")),
           ~s(commands may not use the files of the vault "b". Start the book with files: ) <>
             "true for this vault"}
        ] do
      assert {:error, error} = found
      assert Exception.message(error) == message
    end

    names =
      notes |> Path.join("**") |> Path.wildcard(match_dot: true) |> Enum.map(&Path.basename/1)

    assert Enum.sort(names) == ["Board.md", "Plan.md", "a", "b.bin"]
  end

  defp vault(context, files, prepare \\ & &1, options \\ []) do
    folder = Path.join(context.tmp_dir, "notes")
    write(folder, files)
    prepare.(folder)

    book =
      book(
        ([store: store(context), vaults: [folder], watch: false] ++ options)
        |> Enum.reverse()
        |> Enum.uniq_by(&elem(&1, 0))
      )

    {:ok, _} = Vault.sync(book, "notes")
    book
  end

  defp store(%{dialect: :sqlite} = context), do: Path.join(context.tmp_dir, "skillbook.db")
  defp store(%{dialect: :postgres}), do: {SQL.Postgres, url: Skillbook.PostgresCase.database()}

  defp paths(book, query) do
    {:ok, %{hits: hits}} = Vault.search(View.all(book), query, limit: 100)
    Enum.map(hits, & &1.path)
  end

  defp await(book, query, paths) do
    :ok = Vault.subscribe(book)

    if Enum.sort(paths(book, query)) != paths do
      assert_receive {:skillbook_vault, ^book, "notes", _counts}, @timeout
      await(book, query, paths)
    end
  end
end
