defmodule Skillbook.BuiltinSkillsTest do
  # Models read the pages in priv/skills and priv/vaults, so everything on them must be true.
  use Skillbook.HandlerCase, async: true

  alias Skillbook.Support.JSON
  alias Skillbook.{Catalog, Command, Flags, SQL, Source, Store, View}

  @moduletag :tmp_dir

  setup_all do
    {:ok, catalog} =
      Catalog.load(Enum.map([:skills, :agent, :hand_over, :vaults], &Source.builtin/1))

    view = View.all(catalog)
    {:ok, catalog: catalog, view: view, entries: View.entries(view)}
  end

  defp handled(entries), do: Enum.filter(entries, & &1.handler)

  defp section(entry, title) do
    case Regex.run(~r/^## #{title}\n\n(.*?)(?=\n## |\z)/ms, entry.body) do
      [_, text] -> text
      nil -> nil
    end
  end

  # All commands in a text: the lines of examples, the indented lines of workflows, and text in
  # backticks.
  defp commands(text) do
    domains = "(?:agent|markdown|memory|notes|results|skills|tasks|workflows?)"
    lines = Regex.scan(~r/^ *(#{domains}\.[a-z_]+(?: .*)?)$/m, text)
    inline = Regex.scan(~r/`(#{domains}\.[a-z_]+[^`]*)`/, text)

    for [_, line] <- lines ++ inline, not String.contains?(line, ["<", "["]), do: line
  end

  # Values that are known only when a workflow runs.
  defp fill(line) do
    Enum.reduce(
      %{
        "{id}" => "T-1",
        "{date}" => "2026-03-01",
        "{last}" => "2026-03-01",
        "{today}" => "2026-02-17",
        "{summary}" => "Done",
        "{until}" => "tomorrow",
        "{user}" => "me"
      },
      line,
      fn {name, value}, line -> String.replace(line, name, value) end
    )
  end

  # Without a model and without vectors. Search is by the words of the whole page, so the first
  # place is harder than it looks: pages mention each other.
  test "the examples of each page lead to it", %{view: view, entries: entries} do
    for entry <- entries,
        do: assert({:ok, %{requests: [_, _ | _]}} = View.examples(view, entry.name))

    # Those of vaults are not in every book.
    {:ok, catalog} = Catalog.load([Source.builtin()])

    for view <- [view, View.all(catalog)] do
      test = Skillbook.Test.run(view)
      lost = for result <- test.results, not result.passed, do: {result.name, result.request}
      assert {lost, test.hit3} == {[], 1.0}
      assert test.hit1 >= 0.9
    end
  end

  describe "the pack assistant" do
    setup do
      {:ok, catalog} = Catalog.load([Source.builtin(), Source.builtin(:assistant)])
      {:ok, alone} = Catalog.load([Source.builtin(:assistant)])
      {:ok, view: View.all(catalog), alone: View.all(alone), catalogs: [catalog, alone]}
    end

    test "loads without a diagnostic, also alone", %{alone: alone, catalogs: catalogs} do
      for catalog <- catalogs, do: assert(Catalog.diagnostics(catalog) == [])

      for entry <- View.entries(alone) do
        assert {entry.name, entry.kind} == {Path.basename(Path.dirname(entry.path)), :skill}
        assert entry.description =~ "Use when"
      end
    end

    test "leads its examples to it, beside the other commands and alone", context do
      for view <- [context.view, context.alone] do
        names = Enum.map(View.entries(context.alone), & &1.name)
        test = Skillbook.Test.run(view, only: names, pairs: 0)

        for {name, results} <- Enum.group_by(test.results, & &1.name) do
          assert {name, Enum.count(results, & &1.not)} == {name, 2}
          assert {name, Enum.count(results, &(not &1.not)) >= 4} == {name, true}
        end

        lost = for result <- test.results, not result.passed, do: {result.name, result.request}
        assert {lost, test.results |> Enum.map(& &1.name) |> Enum.uniq()} == {[], names}
        assert test.hit3 == 1.0
        assert test.hit1 >= 0.9
      end
    end

    test "writes only commands that exist, with flags that they have",
         %{alone: alone} = context do
      lines = for entry <- View.entries(alone), line <- commands(entry.body), do: line
      assert length(lines) >= 4

      for line <- lines do
        assert {:ok, routed} = Skillbook.Router.route(context.view, line)
        assert {:ok, declaration} = View.flags(context.view, routed.entry.name)
        known = Enum.map(declaration.flags, & &1.name)
        assert {line, Map.keys(routed.command.flags) -- known} == {line, []}
      end
    end

    test "has a row in the documentation for each skill", %{alone: alone} do
      docs = Skillbook.Test.Checkout.read!("docs/skills.md")
      for entry <- View.entries(alone), do: assert(docs =~ "| `#{entry.name}` |")
    end
  end

  test "pages load without a diagnostic", %{catalog: catalog, entries: entries} do
    assert Catalog.diagnostics(catalog) == []

    assert Enum.map(entries, & &1.name) == ~w(
             agent.dispatch agent.hand_over
             markdown.create markdown.edit markdown.read markdown.search
             memory.save memory.search
             notes.add notes.delete notes.get notes.list
             results.read
             skills.create skills.delete skills.diff skills.disable skills.enable skills.history
             skills.list skills.load skills.read skills.restore skills.search skills.update
             tasks.create tasks.delete tasks.get tasks.search tasks.update
             workflow.build workflow.delete workflow.list workflow.run workflow.show
             workflows.daily_digest workflows.weekly_review
           )
  end

  test "each page has the common sections", %{entries: entries} do
    for entry <- entries do
      assert entry.kind == :command
      assert entry.effects in [:read, :write], entry.name
      assert entry.tags != [], entry.name

      assert entry.body |> String.trim_leading() |> String.starts_with?("# #{entry.name}\n"),
             entry.name

      assert String.starts_with?(entry.usage, entry.name), entry.name

      for title <- ~w(Usage Behavior Examples),
          do: assert(section(entry, title), "#{entry.name}: #{title}")

      assert commands(section(entry, "Examples")) != [], entry.name

      for line <- String.split(section(entry, "Examples"), "\n", trim: true),
          do: assert(String.starts_with?(line, entry.name))
    end
  end

  # Flags with a form of their own, which the handler parses.
  @own_form ~w(agent.dispatch/id markdown.search/after memory.search/after notes.list/after
               skills.history/after skills.list/after tasks.create/parent tasks.delete/id
               tasks.get/id tasks.search/after tasks.update/id tasks.update/parent
               workflow.build/domain workflow.build/flags workflow.build/name workflow.build/steps
               workflow.run/with workflow.show/run)

  test "Usage lists all declared flags", %{
    view: view,
    entries: entries
  } do
    open =
      for entry <- handled(entries),
          {:ok, declaration} = View.flags(view, entry.name),
          used = for([_, flag] <- Regex.scan(~r/--([a-z-]+)/, entry.usage), do: flag),
          listed = Enum.map(declaration.flags, & &1.name),
          assert({entry.name, Enum.sort(used)} == {entry.name, Enum.sort(listed)}),
          flag <- declaration.flags,
          flag.type in [:value, nil] and not flag.several,
          do: "#{entry.name}/#{flag.name}"

    assert Enum.sort(open) == @own_form
  end

  # The flags for tags.
  @tagged %{
    "markdown.create" => ["tags"],
    "markdown.search" => ["tags"],
    "memory.save" => ["tags"],
    "notes.add" => ["tags"],
    "notes.list" => ["tags"],
    "skills.create" => ["tags"],
    "skills.list" => ["tags"],
    "skills.update" => ["tags"],
    "tasks.create" => ["tags"],
    "tasks.search" => ["tags"],
    "tasks.update" => ["tags", "add-tags", "remove-tags"],
    "workflow.build" => ["tags"]
  }

  test "every command takes tags in the same spellings", %{view: view, entries: entries} do
    declared =
      for entry <- handled(entries),
          {:ok, declaration} = View.flags(view, entry.name),
          flags = Enum.filter(declaration.flags, &(&1.name =~ ~r/(^|-)tags?$/)),
          flags != [],
          into: %{},
          do: {entry.name, {declaration, flags}}

    assert Map.new(declared, fn {name, {_, flags}} -> {name, Enum.map(flags, & &1.name)} end) ==
             @tagged

    for {name, {declaration, flags}} <- declared, %{name: tags, names: names} = flag <- flags do
      tag = String.trim_trailing(tags, "s")
      assert {name, names, flag.type, flag.several} == {name, [tags, tag], :value, true}
      assert flag.description =~ ~r/^One or more (tags|words)/
      assert View.fetch!(view, name).usage =~ ~r/\[--#{tags} <tags>\]/

      # The other flags that the command needs.
      others = for %{required: true} = flag <- declaration.flags, into: %{}, do: {flag.name, "x"}
      line = Enum.map_join(others, fn {flag, value} -> " --#{flag} #{value}" end)

      ways =
        for spelling <- [tags, tag, String.upcase(tag), String.replace(tags, "-", "_")],
            {given, values} <- [
              {"--S a", ["a"]},
              {"--S a,b", ["a", "b"]},
              {"--S=a,b", ["a", "b"]},
              {"--S \"a, b\"", ["a", "b"]},
              {"--S a b", ["a", "b"]},
              {"--S a --S b", ["a", "b"]},
              {"--S a,b --S b c", ["a", "b", "c"]},
              {"--S [a, b]", ["a", "b"]}
            ],
            do: {line <> " " <> String.replace(given, "S", spelling), values}

      json =
        for spelling <- [tags, tag, String.replace(tag, "-", "_")],
            {given, values} <- [
              {"a", ["a"]},
              {"a,b", ["a", "b"]},
              {["a"], ["a"]},
              {["a", "b"], ["a", "b"]},
              {["a,b", "c"], ["a", "b", "c"]}
            ],
            do: {" " <> JSON.encode(Map.put(others, spelling, given)), values}

      both = [
        {"#{line} --#{tag} a --#{tags} b", ["a", "b"]},
        {" " <> JSON.encode(Map.merge(others, %{tag => "a", tags => ["b"]})), ["a", "b"]}
      ]

      for {arguments, values} <- ways ++ json ++ both do
        flags = Command.parse!(name <> arguments).flags
        assert {:ok, cast} = Flags.cast_declared(flags, declaration, today: ~D[2026-02-17])
        assert {name, arguments, cast[tags]} == {name, arguments, values}
        refute Map.has_key?(cast, tag)
      end

      # The values are checked under both names, and no other name is taken.
      message = fn arguments ->
        flags = Command.parse!(name <> line <> arguments).flags
        {:error, error} = Flags.cast_declared(flags, declaration, today: ~D[2026-02-17])
        Exception.message(error)
      end

      for spelling <- [tags, tag] do
        assert message.(" --#{spelling}") ==
                 "--#{tags} needs a value and has none. Write for example: --#{tags} one two"
      end

      known = for flag <- declaration.flags, name <- flag.names, do: "--#{name}"

      assert message.(" --#{tag}z a") ==
               "unknown flag --#{tag}z; did you mean --#{tag}? Known flags: " <>
                 Enum.join(known, ", ")
    end
  end

  test "tags in any spelling mean the same to the handlers", %{tmp_dir: folder} do
    context = context(sql: database(folder))

    for {given, number} <-
          Enum.with_index(["--tags a,b", "--tag a --tag b", ~s(--tags "a, b")], 1) do
      assert run(context, "tasks.create --title T#{number} #{given}") =~ "#a #b"
      assert run(context, "tasks.search #{given}") =~ ~r/\A#{number} tasks?, .*tagged a and b/
    end

    assert run(context, ~s(tasks.update T-1 --add-tag c --remove-tag a)) =~ "#b #c"
    assert run(context, ~s(tasks.search {"tag": "b,c"})) =~ ~r/\A1 task, /
  end

  # Each in a book and a database of its own.
  @tag timeout: 300_000
  test "every command on a page works", %{entries: entries, view: view, tmp_dir: folder} do
    indexes = for domain <- View.domains(view), do: {domain.name, domain.body}
    names = Enum.map(entries, & &1.name)
    files = Path.join(folder, "files")
    File.mkdir_p!(files)
    File.write!(Path.join(files, "school.md"), "# School Schedule\n\nMonday: Math\n")

    File.write!(
      Path.join(files, "weekly.md"),
      "---\nname: weekly-report\ndescription: How it is written\n---\nSum the week up.\n"
    )

    by_name = Map.new(entries, &{&1.name, &1})

    for {page, body} <- indexes ++ Enum.map(entries, &{&1.name, &1.body}),
        {line, number} <- Enum.with_index(commands(body)),
        # Its id is made when a result is cut.
        not String.starts_with?(line, "results.read --id"),
        # They need a run, and have their own tests.
        not String.starts_with?(line, "agent.") do
      line = fill(line)
      assert {:ok, %Command{name: name}} = Command.parse(line)

      # A page may name a workflow that its own example has just built, and commands by name
      # alone.
      if name in names and by_name[name].handler && (line != name or page == name) do
        write_to = Path.join(folder, "#{page}-#{number}")

        context =
          context(view: view, write_to: write_to, profile: %Skillbook.Profile{id: "alice"})

        # A page that shows how to leave a required flag out shows it in an example of an error,
        # and there is none.
        assert {:ok, result} = in_book(name, line, files) || in_database(context, line),
               "#{page}: #{line}"

        assert result.content != ""
      end
    end
  end

  # Commands that need the entries on the pages run in a book of their own.
  defp in_book(name, line, files) do
    if name =~ ~r/\A(markdown|notes|skills)\./ or
         name in ["workflow.delete", "workflow.run", "workflow.show"] do
      book = :"pages_#{System.unique_integer([:positive])}"
      sources = [[path: files, kind: :notes]]

      options = [
        name: book,
        builtins: true,
        store: ":memory:",
        sources: sources,
        vaults: [vault(name, files, book)],
        write_to: Path.join([Path.dirname(files), to_string(book), "built"]),
        watch: false
      ]

      start_supervised!({Skillbook, options}, id: book)
      {:ok, _} = Skillbook.Vault.sync(book, "vault")
      view = Skillbook.view(book)

      fields = %{
        title: "Weekly report",
        description: "How it is written",
        content: "Sum the week up. Send it on Fridays."
      }

      {:ok, _} = Store.create(view, fields)
      {:ok, _} = Store.update(view, "weekly-report", %{tags: ["reports"]})

      {:ok, _} =
        Store.put_note(view, "School Schedule", "Monday: Math", fields: %{tags: ["family"]})

      if name == "workflow.delete" do
        built = "workflow.build --name weekly_report --description x"
        assert [%{status: :ok}] = Skillbook.run(view, "```cmd\n#{built}\n```").results
      end

      [result] = Skillbook.run(Skillbook.view(book), "```cmd\n#{line}\n```").results
      stop_supervised!(book)
      if result.status == :ok, do: {:ok, result}, else: flunk("#{line}: #{result.content}")
    end
  end

  # The notes that pages mention, except for `markdown.create`, which creates them.
  defp vault(name, files, book) do
    folder = Path.join([Path.dirname(files), to_string(book), "vault"])
    File.mkdir_p!(Path.join(folder, "projects"))

    if name != "markdown.create" do
      File.write!(Path.join(folder, "Call with Ann.md"), "She agreed.")
      File.write!(Path.join(folder, "projects/Plan.md"), "We begin in March.")
    end

    folder
  end

  test "no index has a table of its own", %{view: view} do
    for domain <- View.domains(view) do
      assert {domain.name, File.read!(domain.path) =~ ~r/^\|/m} == {domain.name, false}
      entries = View.entries(view, domain: domain.name)
      rows = Enum.map_join(entries, &"| #{&1.name} | #{&1.description} |\n")

      assert domain.body =~
               "\n## Available Skills\n\n| Skill | Description |\n|-------|-------------|\n" <>
                 "#{rows}\n## "
    end
  end

  test "workflows require existing commands", %{view: view, entries: entries} do
    for entry <- entries, entry.handler == nil do
      assert entry.requires != [], entry.name
      for name <- entry.requires, do: assert({:ok, _} = View.fetch(view, name))

      used = for line <- commands(section(entry, "Behavior")), do: line |> String.split() |> hd()
      assert Enum.sort(Enum.uniq(used)) == Enum.sort(entry.requires), entry.name
    end
  end

  test "reading commands declare it", %{entries: entries} do
    reads = for entry <- entries, entry.effects == :read, do: entry.name

    assert reads ==
             ~w(
               agent.hand_over
             markdown.read markdown.search memory.search notes.get notes.list results.read
               skills.diff skills.history skills.list skills.load skills.read skills.search
               tasks.get tasks.search
               workflow.list workflow.run workflow.show workflows.daily_digest
             )
  end

  # Runs a command with a database of its own, which has the tasks that pages mention.
  defp in_database(context, line) do
    name = :"pages_#{System.unique_integer([:positive])}"
    start_supervised!({SQL.SQLite, path: ":memory:", name: name}, id: name)
    context = %{context | sql: SQL.SQLite.handle(name)}
    {:ok, _} = SQL.Migrations.run(context.sql)

    for line <- ["--title One", "--title Two --parent T-1 --tags Q1"],
        do: assert({:ok, _} = execute(context, "tasks.create " <> line))

    result = execute(context, line)
    stop_supervised!(name)
    result
  end
end
