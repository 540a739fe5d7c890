defmodule Skillbook.CatalogTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Catalog
  doctest Skillbook.Source
  doctest Skillbook.OptionError
  doctest Skillbook.Change

  alias Skillbook.{Catalog, Profile, Source, View}

  @moduletag :tmp_dir

  defp write(root, files) do
    for {path, text} <- files do
      path = Path.join(root, path)
      File.mkdir_p!(Path.dirname(path))
      File.write!(path, text)
    end
  end

  defp skill(name, more \\ ""),
    do: "---\nname: #{name}\ndescription: About #{name}\n#{more}---\n\nBody of #{name}\n"

  defp load(sources) do
    {:ok, catalog} = Catalog.load(List.wrap(sources))
    catalog
  end

  defp names(catalog), do: for(entry <- View.entries(View.all(catalog)), do: entry.name)

  defp findings(catalog, root) do
    for found <- Catalog.diagnostics(catalog),
        do: {found.code, Path.relative_to(found.path, root)}
  end

  describe "load/1" do
    test "returns complete entries", %{tmp_dir: root} do
      File.write!(Path.join(root, "send.md"), """
      ---
      name: email.send
      description: Send mail
      title: Send
      handler: My.Send
      tags: [a, b]
      visibility_labels: [out]
      aliases: [post]
      requires: [email.read]
      effects: write
      allowed-tools: Read Write
      schedule: "0 8 * * *"
      timezone: Europe/Berlin
      include_in_prompt: false
      disable-model-invocation: true
      user-invocable: false
      trigger_keywords: [mail, post]
      license: MIT
      compatibility: Needs a network
      metadata: {author: Ann, version: 1.5}
      priority: 3
      nested: {a: [1, 2.5, true, null]}
      ---
      ## Usage

      email.send --to ADDR
      """)

      assert [entry] =
               View.entries(View.all(load([[path: root, name: "mine", labels: ["inner"]]])))

      assert entry == %Skillbook.Entry{
               name: "email.send",
               kind: :command,
               domain: "email",
               title: "Send",
               description: "Send mail",
               handler: "My.Send",
               tags: ["a", "b"],
               labels: ["inner", "out"],
               aliases: ["post"],
               requires: ["email.read"],
               effects: :write,
               allowed_tools: ["Read", "Write"],
               schedule: "0 8 * * *",
               timezone: "Europe/Berlin",
               include_in_prompt: false,
               hidden_from_model: true,
               user_invocable: false,
               triggers: ["mail", "post"],
               license: "MIT",
               compatibility: "Needs a network",
               metadata: %{"author" => "Ann", "version" => "1.5"},
               selection: :available,
               trust: :medium,
               files: [],
               usage: "email.send --to ADDR",
               data: entry.data,
               body: "## Usage\n\nemail.send --to ADDR\n",
               path: Path.join(root, "send.md"),
               source: "mine"
             }

      assert entry.data["priority"] == 3
      assert entry.data["nested"] == %{"a" => [1, 2.5, true, nil]}
    end

    test "reads many folders the same way each time", %{tmp_dir: root} do
      write(root, for(n <- 1..200, do: {"s#{n}/SKILL.md", skill("s#{div(n, 2)}")}))
      first = load(root)
      assert Catalog.count(first) == 101
      for _ <- 1..3, do: assert(Catalog.diagnostics(load(root)) == Catalog.diagnostics(first))
    end

    test "ignores dot files, dot folders, node_modules and editors' copies", %{tmp_dir: root} do
      write(root, [
        {".hidden/SKILL.md", skill("a")},
        {".b.md", skill("b")},
        {"node_modules/c/SKILL.md", skill("c")},
        {"x/node_modules/c.md", skill("c")},
        {"e~/SKILL.md", skill("e")},
        {"#f.md#", skill("f")},
        {"d/SKILL.md", skill("d")},
        {"d/form.txt", ""},
        {"d/form.txt~", ""},
        {"d/#form.txt", ""},
        {"d/form.txt#", ""},
        {"d/SKILL.md~", skill("d")}
      ])

      catalog = load(root)
      assert names(catalog) == ["d"]
      assert View.fetch!(View.all(catalog), "d").files == ["#form.txt", "form.txt", "form.txt#"]
      assert Catalog.diagnostics(catalog) == []
    end

    test "ignores the files of evaluations and their recordings", %{tmp_dir: root} do
      write(root, [
        {"d/SKILL.md", skill("d")},
        {"d/evals.yaml", "evaluations: []"},
        {"d/EVAL.md", skill("eval")},
        {"d/evals/evals.json", "{}"},
        {"d/evals/files/input.txt", "x"},
        {"d/evals.recordings/one.json", "{}"},
        {"mail/send.md", skill("mail.send")},
        {"mail/send.evals.yaml", ""},
        {"mail/send.EVAL.md", skill("mail.eval")},
        {"mail/send.eval.md", skill("mail.eval")},
        # Other files of similar names.
        {"e/SKILL.md", skill("e")},
        {"e/evals/notes.txt", "x"},
        {"e/evals.json", "{}"},
        {"e/medieval.md", "x"},
        {"e/recordings/a.txt", "x"},
        {"e/my-evals.yaml", ""}
      ])

      catalog = load(root)
      assert names(catalog) == ["d", "e", "mail.send"]
      view = View.all(catalog)
      assert View.fetch!(view, "d").files == []

      assert View.fetch!(view, "e").files ==
               ~w(evals.json evals/notes.txt medieval.md my-evals.yaml recordings/a.txt)

      assert Catalog.diagnostics(catalog) == []

      # Nor can a model read them by their paths.
      for path <- ~w(d/EVAL.md d/evals.yaml d/evals/evals.json d/evals/files/input.txt) do
        assert {:error, _} = Skillbook.get(view, path)
      end

      # A folder becomes one of evaluations, and ends to be one.
      write(root, [{"e/evals/evals.json", "{}"}])
      Catalog.refresh(catalog, [Path.join(root, "e/evals/evals.json")])
      refute "evals/notes.txt" in View.fetch!(View.all(catalog), "e").files
      File.rm!(Path.join(root, "e/evals/evals.json"))
      Catalog.refresh(catalog, [Path.join(root, "e/evals/evals.json")])
      assert "evals/notes.txt" in View.fetch!(View.all(catalog), "e").files
    end

    test "reports unreadable files", %{tmp_dir: root} do
      write(root, [
        {"latin.md", "---\nname: a\n---\n\xe9"},
        {"large.md", skill("b") <> String.duplicate("x", 1_048_576)},
        {"fits.md", String.pad_trailing(skill("fits"), 1_048_576)},
        {Enum.map_join(1..15, "/", &"#{&1}") <> "/deep.md", skill("deep")},
        {Enum.map_join(1..17, "/", &"#{&1}") <> "/deeper.md", skill("deeper")}
      ])

      System.cmd("mkfifo", [Path.join(root, "pipe.md")])
      File.write!(root <> "/" <> <<"bad", 0xFF, ".md">>, "x")
      catalog = load(root)
      assert names(catalog) == ["deep", "fits"]

      assert Enum.sort(findings(catalog, root)) == [
               file_too_large: "large.md",
               invalid_utf8: "latin.md",
               too_deep: Enum.map_join(1..16, "/", &"#{&1}"),
               unreadable: "bad\uFFFD.md",
               unreadable: "pipe.md"
             ]
    end

    test "reports a source that is missing or a file", %{tmp_dir: root} do
      write(root, [{"a.md", skill("a")}])
      assert [%{code: :source_missing}] = Catalog.diagnostics(load(Path.join(root, "nowhere")))

      assert [%{code: :source_missing, message: message}] =
               Catalog.diagnostics(load(Path.join(root, "a.md")))

      assert message == "expected a folder, got a file"
    end

    test "follows links inside the source, once", %{tmp_dir: root} do
      write(root, [
        {"s/a/SKILL.md", skill("a")},
        {"s/.store/b/SKILL.md", skill("b")},
        {"s/.store/b/b.txt", ""},
        {"outside/c/SKILL.md", skill("c")}
      ])

      link = &File.ln_s!(Path.join(root, &1), Path.join([root, "s", &2]))
      link.("s/a", "again")
      link.("s/.store/b", "b")
      link.("s/.store/b", "twice")
      link.("outside/c", "c")
      link.("nowhere", "broken")
      link.("s/self", "self")
      link.("s", "a/up")
      catalog = load(Path.join(root, "s"))

      assert names(catalog) == ["a", "b"]
      assert View.fetch!(View.all(catalog), "b").path == Path.join(root, "s/b/SKILL.md")
      assert {:ok, text} = Skillbook.Help.get(View.all(catalog), "b/b.txt")
      assert text == ""

      assert findings(catalog, Path.join(root, "s")) == [
               broken_link: "a/up",
               broken_link: "broken",
               escaping_link: "c",
               broken_link: "self"
             ]
    end

    test "accepts a root that is a link", %{tmp_dir: root} do
      write(root, [{"real/a/SKILL.md", skill("a")}])
      File.ln_s!(Path.join(root, "real"), Path.join(root, "link"))
      catalog = load(Path.join(root, "link"))
      assert View.fetch!(View.all(catalog), "a").path == Path.join(root, "link/a/SKILL.md")
    end

    test "lets a later source replace an earlier one's entry", %{tmp_dir: root} do
      write(root, [{"1/a.md", skill("a")}, {"2/a.md", skill("a", "title: Two\n")}])
      catalog = load([Path.join(root, "1"), Path.join(root, "2")])
      assert View.fetch!(View.all(catalog), "a").title == "Two"
      assert findings(catalog, root) == [shadowed: "1/a.md"]
    end

    test "uses the replaced entry for profiles that do not see the other one", %{tmp_dir: root} do
      secret = skill("a", "title: Two\nvisibility_labels: [secret]\n")
      write(root, [{"1/a.md", skill("a", "title: One\n")}, {"2/a.md", secret}])
      catalog = load([Path.join(root, "1"), Path.join(root, "2")])
      {:ok, guest} = View.new(catalog, %Profile{id: "guest"})
      assert View.fetch!(guest, "a").title == "One"
      assert View.diagnostics(guest) == []
      assert View.fetch!(View.all(catalog), "a").title == "Two"
      assert Catalog.count(catalog) == 1

      write(root, [{"1/a.md", skill("a", "title: New\n")}])
      assert %{added: [], changed: ["a"], removed: []} = Catalog.refresh(catalog, :all)
      {:ok, guest} = View.new(catalog, %Profile{id: "guest"})
      assert View.fetch!(guest, "a").title == "New"
      File.rm!(Path.join(root, "1/a.md"))
      assert %{added: [], changed: ["a"], removed: []} = Catalog.refresh(catalog, :all)
      assert Catalog.count(catalog) == 1
    end

    test "makes no atoms from files", %{tmp_dir: root} do
      write(root, [{"a.md", skill("a", "zq_never_an_atom: zq_nor_this\nhandler: Zq.Handler\n")}])
      View.entries(View.all(load(root)))

      for text <- ["zq_never_an_atom", "zq_nor_this", "Elixir.Zq.Handler"] do
        assert_raise ArgumentError, fn -> String.to_existing_atom(text) end
      end
    end
  end

  describe "reload/1" do
    test "makes the next generation; views keep theirs", %{tmp_dir: root} do
      write(root, [{"a.md", skill("a")}, {"b.md", skill("b")}])
      catalog = load(root)
      before = View.all(catalog)
      body = View.fetch!(before, "a").body

      write(root, [{"a.md", skill("a", "title: New\n")}, {"c.md", skill("c")}])
      File.rm!(Path.join(root, "b.md"))
      assert Catalog.reload(catalog) == {:ok, 2}
      assert Catalog.generation(catalog) == 2

      assert Enum.map(View.entries(before), & &1.name) == ["a", "b"]
      # A view's number changes with its content only.
      after_it = View.all(catalog)
      assert before.generation != after_it.generation
      assert Catalog.reload(catalog) == {:ok, 3}
      assert View.all(catalog).generation == after_it.generation
      assert names(catalog) == ["a", "c"]
      assert View.fetch!(View.all(catalog), "a").title == "New"
      assert View.fetch!(before, "a").title == nil
      assert body == "\nBody of a\n"
    end

    test "counts the loads of each catalog separately", %{tmp_dir: root} do
      {one, two} = {load(root), load(root)}
      assert [Catalog.reload(one), Catalog.reload(one)] == [{:ok, 2}, {:ok, 3}]
      assert Catalog.generation(two) == 1
    end

    test "does not block readers", %{tmp_dir: root} do
      write(root, for(n <- 1..50, do: {"s#{n}.md", skill("s#{n}")}))
      catalog = load(root)

      readers =
        for _ <- 1..4 do
          Task.async(fn ->
            for n <- 1..200 do
              view = View.all(catalog)
              assert View.fetch!(view, "s#{rem(n, 50) + 1}").body =~ "Body of"
              assert View.count(view) == 50
            end
          end)
        end

      for _ <- 1..10, do: Catalog.reload(catalog)
      Task.await_many(readers, :infinity)
    end
  end

  describe "sources" do
    test "are rejected by name" do
      rows = [
        {{:path, "x"},
         ~s(expected a list of sources, such as ["skills"], for :sources, got: [path: "x"])},
        {:nonsense,
         "expected a keyword list or a map with atoms as keys for a source, got: :nonsense"},
        {[name: "x"], "a source needs the option :path"},
        {[path: "x", labels: "a"],
         "expected a list of texts as the option :labels of a source, got: \"a\""},
        {[path: ""], "expected a path as the option :path of a source, got: \"\""},
        {[path: "x", kind: :note],
         "expected :skills or :notes as the option :kind of a source, got: :note"}
      ]

      for {options, message} <- rows do
        assert {:error, error} = Catalog.load([options])
        assert Exception.message(error) == message
      end
    end

    test "expand their paths" do
      {:ok, home} = Source.new("~/skills")
      assert home.path == Path.expand("~/skills")
      {:ok, here} = Source.new("a/../b/")
      assert {here.path, here.name} == {Path.expand("b"), "b"}
    end

    test "include the built-in one" do
      assert Source.builtin().path =~ ~r"priv/skills$"
    end
  end
end
