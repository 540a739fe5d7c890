defmodule Skillbook.CommandSkillsTest do
  # The requirements for command skills, part by part and end to end, with one test for each. The
  # tests of the modules have the details.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{
    Catalog,
    Command,
    Extractor,
    FlagError,
    Flags,
    Frontmatter,
    Help,
    Router,
    UnknownSkillError,
    View
  }

  @moduletag :tmp_dir

  defp reply(commands),
    do: "On it.\n\n```cmd\n#{Enum.join(List.wrap(commands), "\n")}\n```\n\nDone."

  defp mail(folder) do
    write(folder, %{
      "email/SKILL.md" =>
        "---\ndomain: email\ndescription: Write mail\n---\n# Email\n\nThe index.\n",
      "email/send.md" => page("email.send", handler("Text"), "# email.send\n\nSends it.\n"),
      "email/draft.md" => page("email.draft", [], "# email.draft\n\nDrafts it.\n")
    })
  end

  describe "the extractor" do
    test "extracts a single block" do
      assert {:ok, %{commands: ["email.send --to bob"]}} =
               Extractor.extract(reply("email.send --to bob"))
    end

    test "extracts multiple blocks" do
      text = "One.\n```cmd\na.b\n```\nTwo.\n```cmd\nc.d\ne.f\n```\n"
      assert {:ok, %{commands: ["a.b", "c.d", "e.f"]}} = Extractor.extract(text)
    end

    test "separates text from commands" do
      assert {:ok, %{text: "On it.\n\nDone.", incomplete: []}} = Extractor.extract(reply("a.b"))
    end

    test "handles empty output" do
      assert Extractor.extract("") == {:ok, %{commands: [], text: "", incomplete: []}}
    end

    test "handles output with only text" do
      assert Extractor.extract("Hello.\n") ==
               {:ok, %{commands: [], text: "Hello.", incomplete: []}}
    end
  end

  describe "the router" do
    test "tokenizes simple commands" do
      assert Command.tokenize("email.send --to bob") == {:ok, ["email.send", "--to", "bob"]}
    end

    test "handles quoted strings" do
      assert Command.tokenize(~s(email.send --subject "Q1 Report")) ==
               {:ok, ["email.send", "--subject", "Q1 Report"]}
    end

    test "matches a name to its skill", %{tmp_dir: folder} do
      view = folder |> mail() |> view()

      assert {:ok, %{name: "email.send", entry: %{domain: "email"}}} =
               Router.route(view, "email.send --to bob")
    end

    test "returns an error for unknown names", %{tmp_dir: folder} do
      view = folder |> mail() |> view()

      assert {:error, %UnknownSkillError{name: "email.sned", suggestions: ["email.send" | _]}} =
               Router.route(view, "email.sned")
    end

    test "parses flags as pairs of key and value" do
      assert Command.parse!("email.send --to bob --subject Hi").flags == %{
               "to" => "bob",
               "subject" => "Hi"
             }
    end

    test "handles boolean flags" do
      assert Command.parse!("tasks.search --overdue --sort due").flags == %{
               "overdue" => true,
               "sort" => "due"
             }
    end

    test "handles flags with several values" do
      assert Command.parse!("email.send --to bob ann --cc eve").flags == %{
               "to" => ["bob", "ann"],
               "cc" => "eve"
             }
    end
  end

  describe "help" do
    test "lists the domains at the top level", %{tmp_dir: folder} do
      {:ok, text} = folder |> mail() |> view() |> Help.top_level()
      assert text =~ "Domains:\n\n  email  Write mail\n"
    end

    test "returns the body of a skill", %{tmp_dir: folder} do
      assert folder |> mail() |> view() |> Help.skill("email.send") ==
               {:ok, "# email.send\n\nSends it."}
    end

    test "answers --help instead of running", %{tmp_dir: folder} do
      view = folder |> mail() |> view()

      assert Router.route(view, "email.send --to bob --help") ==
               {:help, "# email.send\n\nSends it."}
    end
  end

  describe "the catalog" do
    test "discovers all files of the tree", %{tmp_dir: folder} do
      write(mail(folder), %{"deep/er/act.md" => page("deep.act"), "haiku.md" => page("haiku")})
      names = for entry <- View.entries(view(folder)), do: entry.name
      assert names == ["deep.act", "email.draft", "email.send", "haiku"]
    end

    test "parses minimal frontmatter" do
      assert {:ok,
              %{
                data: %{"name" => "email.send", "description" => "Send mail"},
                body: "Body\n",
                diagnostics: []
              }} = Frontmatter.parse("---\nname: email.send\ndescription: Send mail\n---\nBody\n")
    end

    test "derives the domain from the folder", %{tmp_dir: folder} do
      write(mail(folder), %{"email/find.md" => "---\ndescription: Finds mail\n---\n"})
      assert %{name: "email.find", domain: "email"} = View.fetch!(view(folder), "email.find")
    end

    test "looks entries up by name", %{tmp_dir: folder} do
      view = folder |> mail() |> view()
      assert {:ok, %{description: "Does email.draft"}} = View.fetch(view, "email.draft")
      assert {:error, %UnknownSkillError{}} = View.fetch(view, "email.gone")
    end

    test "notices files that are created, changed and deleted", %{tmp_dir: folder} do
      book = book(sources: [mail(folder)], builtins: false)
      Skillbook.subscribe(book)
      fetch = fn -> View.fetch(View.all(book), "email.new") end

      write(folder, %{"email/new.md" => page("email.new", [], "one")})
      await(book, fn -> match?({:ok, %{body: "one"}}, fetch.()) end)
      write(folder, %{"email/new.md" => page("email.new", [], "two")})
      await(book, fn -> match?({:ok, %{body: "two"}}, fetch.()) end)
      File.rm!(Path.join(folder, "email/new.md"))
      await(book, fn -> match?({:error, _}, fetch.()) end)
    end

    test "checks files when it loads them", %{tmp_dir: folder} do
      write(folder, %{"a.md" => "---\nname: a\ndescription: A\ntags: {a: b}\n---\nText\n"})
      {:ok, catalog} = Catalog.load([folder])
      assert [%{code: :field_ignored, line: 4}] = Catalog.diagnostics(catalog)
    end

    # A missing name is derived from the path, with a warning; a missing description is an error.
    test "rejects files without a description, and derives missing names", %{tmp_dir: folder} do
      write(mail(folder), %{
        "email/nameless.md" => "---\ndescription: Has no name\n---\nText\n",
        "email/wordless.md" => "---\nname: email.wordless\n---\n"
      })

      {:ok, catalog} = Catalog.load([folder])

      codes =
        for diagnostic <- Catalog.diagnostics(catalog),
            do: {Path.basename(diagnostic.path), diagnostic.code}

      assert codes == [{"nameless.md", :name_missing}, {"wordless.md", :description_missing}]
      assert {:ok, _} = View.fetch(View.all(catalog), "email.nameless")
      assert {:error, _} = View.fetch(View.all(catalog), "email.wordless")
    end
  end

  describe "flags" do
    test "detects missing required flags" do
      assert {:error, %FlagError{kind: :missing, flags: ["subject"]}} =
               Flags.require(%{"to" => "bob"}, ["to", "subject"])

      assert Flags.require(%{"to" => "bob"}, ["to"]) == :ok
    end

    test "validates enum values" do
      assert Flags.validate_enum(%{"status" => ["todo", "done"]}, "status", ~w(todo done)) == :ok

      assert {:error, %FlagError{kind: :invalid}} =
               Flags.validate_enum(%{"status" => "odd"}, "status", ~w(todo done))
    end

    test "casts integers and dates" do
      assert Flags.cast_integer(%{"limit" => "5"}, "limit") == {:ok, %{"limit" => 5}}
      assert {:error, %FlagError{}} = Flags.cast_integer(%{"limit" => "many"}, "limit")
      assert Flags.cast_date(%{"due" => "2026-02-17"}, "due") == {:ok, %{"due" => ~D[2026-02-17]}}
      assert {:error, %FlagError{}} = Flags.cast_date(%{"due" => "2026-02-30"}, "due")
    end

    test "applies defaults" do
      assert Flags.apply_defaults(%{"limit" => 5}, %{"limit" => 20, "sort" => "due"}) == %{
               "limit" => 5,
               "sort" => "due"
             }
    end
  end

  describe "workflow.build" do
    defp build(book, line),
      do: hd(Skillbook.run(Skillbook.view(book), reply("workflow.build " <> line)).results)

    test "writes Markdown with minimal frontmatter", %{tmp_dir: folder} do
      book = book(write_to: folder, watch: false)

      assert build(
               book,
               ~s(--name digest --description "Sum the day up" --steps "Look around." "Write ) <>
                 ~s(it up.")
             ).status ==
               :ok

      {:ok, document} =
        folder |> Path.join("workflows/digest.md") |> File.read!() |> Frontmatter.parse()

      assert document.diagnostics == []

      assert Map.take(document.data, ~w(name description handler)) == %{
               "name" => "workflows.digest",
               "description" => "Sum the day up"
             }

      assert document.body =~ "1. Look around.\n2. Write it up.\n"
    end

    test "rejects existing names", %{tmp_dir: folder} do
      book = book(write_to: folder, watch: false)
      assert build(book, "--name digest --description One").status == :ok
      assert %{status: :error, content: content} = build(book, "--name digest --description Two")
      assert content =~ "workflows.digest"
    end

    test "rejects invalid names", %{tmp_dir: folder} do
      book = book(write_to: folder, watch: false)

      for name <- ["Digest", "di-gest", "1st", "\"a b\"", "../x", "all"],
          do:
            assert({name, build(book, "--name #{name} --description D").status} == {name, :error})

      assert File.ls!(folder) == []
    end

    test "makes the new skill available", %{tmp_dir: folder} do
      book = book(write_to: folder, watch: false)
      build(book, "--name digest --description D")
      assert {:ok, %{kind: :command}} = View.fetch(Skillbook.view(book), "workflows.digest")
    end
  end

  describe "as a whole" do
    test "runs a reply through extractor, router and handler", %{tmp_dir: folder} do
      view = Skillbook.view(book(sources: [mail(folder)]))
      report = Skillbook.run(view, reply("email.send --to bob"))
      assert report.text == "On it.\n\nDone."

      assert [%{status: :ok, name: "email.send", content: "flags: %{\"to\" => \"bob\"}"}] =
               report.results

      assert to_string(report) == "[1] email.send --to bob\nok\n  flags: %{\"to\" => \"bob\"}"
    end

    test "runs three commands in order and returns all results", %{tmp_dir: folder} do
      view = Skillbook.view(book(sources: [mail(folder)]))
      report = Skillbook.run(view, reply(for n <- 1..3, do: "email.send --n #{n}"))
      contents = for result <- report.results, do: result.content
      assert contents == for(n <- 1..3, do: "flags: %{\"n\" => \"#{n}\"}")
    end

    test "--help returns the body and runs nothing", %{tmp_dir: folder} do
      view = Skillbook.view(book(sources: [mail(folder)]))
      [result] = Skillbook.run(view, reply("email.send --help")).results
      assert {result.status, result.content} == {:help, "# email.send\n\nSends it."}
    end

    test "a command creates a skill file, and the book reads it", %{
      tmp_dir: folder
    } do
      book = book(write_to: folder)

      line =
        ~s(workflow.build --name test_skill --description "Tests it" --steps "Try tasks.search.")

      assert [%{status: :ok}] = Skillbook.run(Skillbook.view(book), reply(line)).results
      assert File.exists?(Path.join(folder, "workflows/test_skill.md"))
      [result] = Skillbook.run(Skillbook.view(book), reply("workflows.test_skill")).results
      assert result.status == :template
      assert result.content =~ "Try tasks.search."
    end

    test "a missing flag is a clear error" do
      book = book(store: ":memory:")
      [result] = Skillbook.run(Skillbook.view(book), reply("tasks.create --due tomorrow")).results

      assert {result.status, result.content} ==
               {:error, "--title is required and missing. Add it as: --title VALUE"}
    end
  end

  defp await(book, so?) do
    unless so?.() do
      assert_receive {:skillbook, ^book, _change}, 60_000
      await(book, so?)
    end
  end
end
