defmodule Skillbook.Book.BuiltinsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Source, Tools, View}

  @memory ["memory.save", "memory.search"]

  # `book/1` of tests has all of them by default.
  defp names(options),
    do: options |> book() |> View.all() |> View.entries() |> Enum.map(& &1.name)

  test "a list of domains and globs selects built-in skills" do
    all = names([])

    for {builtins, expected} <- [
          {true, all},
          {["memory"], @memory},
          {["memory.*"], @memory},
          {["memory", "memory"], @memory},
          {["*.search"], Enum.filter(all, &String.ends_with?(&1, ".search"))},
          {["memory", "results.read"], @memory ++ ["results.read"]},
          {["*"], all}
        ] do
      assert {builtins, names(builtins: builtins)} == {builtins, expected}
    end
  end

  test "there are none by default" do
    for {options, number} <- [{[], 0}, {[builtins: []], 0}, {[builtins: false], 0}] do
      name = :"none_#{System.unique_integer([:positive])}"
      start_supervised!({Skillbook, [name: name] ++ options}, id: name)
      view = View.all(name)
      assert {options, length(View.entries(view))} == {options, number}
      assert Skillbook.prompt(view) == ""
      assert [%{name: "get_skill"}] = Tools.list(view)
    end
  end

  test "an explanation says how to add one that the book leaves out" do
    for {builtins, name, item} <- [
          {[], "tasks.get", "tasks"},
          {[], "tasks", "tasks"},
          {["memory"], "agent.dispatch", "agent"},
          {["memory"], "email.send", "email"},
          {["memory"], "meeting-notes", "meeting-notes"},
          {["memory"], "memory.save", nil},
          {[], "task", nil},
          {[], "tasks.git", nil},
          {[], "", nil}
        ] do
      explanation = Skillbook.explain(book(builtins: builtins), name)
      assert {name, explanation.builtin} == {name, item}

      if item do
        assert to_string(explanation) ==
                 "#{name}: no file has this name; it is built in, and the option " <>
                   ~s(builtins: ["#{item}"] of the book adds it)
      end
    end

    # What a model reads says nothing of them.
    {:error, error} = Skillbook.get(Skillbook.view(book(builtins: [])), "tasks.get")

    assert Exception.message(error) ==
             ~s(unknown skill "tasks.get". To list all skills, write: get_skill)
  end

  test "a name that selects nothing is an error" do
    with_near =
      &("expected domains of built-in skills or globs over their names, did you mean " <>
          "#{&1}? as the option :builtins of a book, got: ")

    for {builtins, message} <- [
          {["memry"], with_near.("memory") <> ~s("memry")},
          {["tasks", "memory.sav"], with_near.("memory.save") <> ~s("memory.sav")},
          {["billing"],
           "expected the domains agent, memory, notes, results, skills, tasks, workflow, " <>
             "workflows, email, calendar, drive, hubspot, google, microsoft, assistant or " <>
             ~s(globs over their commands as the option :builtins of a book, got: "billing")},
          {["meeting-note"], with_near.("meeting-notes") <> ~s("meeting-note")},
          {[:asistant], with_near.("assistant") <> ~s("asistant")},
          {["markdown"], nil},
          {["[a"],
           "expected globs (unclosed character class; missing ']') as the option :builtins of " <>
             ~s(a book, got: "[a")},
          {"tasks",
           "expected a boolean or a list of domains and globs as the option :builtins of a " <>
             ~s(book, got: "tasks")}
        ] do
      assert {:error, error} = Skillbook.start_link(name: :no_builtins, builtins: builtins)
      if message, do: assert(Exception.message(error) == message)
    end
  end

  test "trusted code sees the commands of connections listed, and can test their descriptions" do
    book = book(builtins: [:google, :hubspot])
    test = Skillbook.Test.run(View.all(book))
    assert {test.unlisted, test.entries} == {[], length(names(builtins: [:google, :hubspot]))}
    assert Skillbook.Test.run(Skillbook.view(book)).entries == 0
  end

  test "with the commands of all packs, requests lead to those of their examples" do
    test = Skillbook.Test.run(View.all(book(builtins: ["*", :google, :hubspot])))
    assert test.hit3 == 1.0
    assert test.hit1 > 0.88
  end

  test "each source gets the globs that select something in it" do
    for builtins <- [["*", :google], ["tasks", "email.*"], [:hubspot], ["memory"]] do
      found = Skillbook.diagnostics(book(builtins: builtins))
      assert {builtins, Enum.reject(found, &(&1.severity == :info))} == {builtins, []}
    end
  end

  test "those of the pack assistant are only there if the list names it or them" do
    all = names([])
    assistant = names(builtins: [:assistant])
    assert "meeting-notes" in assistant and "home-automation" in assistant

    for {builtins, expected} <- [
          {true, all},
          {["*"], all},
          {["assistant"], assistant},
          {["*", :assistant], Enum.sort(all ++ assistant)},
          {["meeting-notes"], ["meeting-notes"]},
          {["memory", "meeting-notes"], ["meeting-notes" | @memory]},
          {["*", "research"], Enum.sort(["research" | all])}
        ] do
      assert {builtins, names(builtins: builtins)} == {builtins, expected}
    end
  end

  @tag :tmp_dir
  test "a source has its own skill in place of one of the pack", %{tmp_dir: folder} do
    File.mkdir_p!(Path.join(folder, "meeting-notes"))
    page = "---\nname: meeting-notes\ndescription: Ours\n---\nOurs.\n"
    File.write!(Path.join(folder, "meeting-notes/SKILL.md"), page)
    view = View.all(book(builtins: [:assistant], sources: [folder], watch: false))
    assert {:ok, %{description: "Ours"}} = View.fetch(view, "meeting-notes")
  end

  @tag :tmp_dir
  test "those of vaults are only there with vaults", %{tmp_dir: folder} do
    options = [store: ":memory:", vaults: [[path: folder, name: "notes"]], watch: false]
    names = names([builtins: ["markdown"]] ++ options)
    assert names != [] and Enum.all?(names, &String.starts_with?(&1, "markdown."))
  end

  test "those of connections are only there with accounts, or if the list names them" do
    account = [host: "mail.example.com", username: "ann", password: fn -> "secret" end]
    client = [client_id: "id", client_secret: fn -> "secret" end]
    mail = [post: [vendor: :imap] ++ account]
    google = [google: client]
    domains = ["calendar", "drive", "email", "hubspot"]

    for {connections, builtins, expected} <- [
          {[], true, []},
          {mail, true, ["email"]},
          {google, true, ["calendar", "drive", "email"]},
          {google ++ mail, true, ["calendar", "drive", "email"]},
          {[google: [services: [:mail]] ++ client], true, ["email"]},
          {mail, false, []},
          {mail, ["tasks"], []},
          {mail, ["*"], ["email"]},
          {[], ["*", :google], ["calendar", "drive", "email"]},
          {[], ["*", "google"], ["calendar", "drive", "email"]},
          {[], ["email"], ["email"]},
          {[], ["drive.read", "tasks"], ["drive"]},
          {mail, ["*.search", "drive.read"], ["drive", "email"]}
        ] do
      names = names(connections: connections, builtins: builtins, store: ":memory:")
      found = names |> Enum.map(&(&1 |> String.split(".") |> hd())) |> Enum.uniq()
      row = {connections, builtins}
      assert {row, Enum.filter(found, &(&1 in domains))} == {row, expected}
    end

    assert names(builtins: ["drive.read", "email.s*"], store: ":memory:") ==
             ["drive.read", "email.search", "email.send"]

    assert {:error, error} = Skillbook.start_link(name: :no_builtins, builtins: [:gogle])

    assert Exception.message(error) ==
             "expected domains of built-in skills or globs over their names, did you mean " <>
               ~s(google? as the option :builtins of a book, got: "gogle")
  end

  test "each page has the name of its file" do
    sources = Enum.map([:skills, :vaults, :connections], &Source.builtin/1)
    {:ok, catalog} = Catalog.load(sources)

    for entry <- View.entries(View.all(catalog)) do
      [domain, action] = String.split(entry.name, ".")
      assert String.ends_with?(entry.path, "/#{domain}/#{action}.md")
    end
  end

  test "an application that wants few has a short prompt" do
    size = fn options ->
      view = View.all(book(options))
      {String.length(Skillbook.prompt(view)), length(Tools.list(view))}
    end

    {all, tools} = size.(builtins: true)
    {few, five} = size.(builtins: ["memory", "tasks.create", "tasks.search", "tasks.update"])
    assert five == 6 and tools > 30
    assert few < all * 0.6
  end
end
