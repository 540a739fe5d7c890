defmodule Skillbook.Store.FrontmatterTest do
  # Frontmatter in the content of entries: a document in the store is like the same one in a
  # folder, however it got there.

  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.{Catalog, Entry, Package, Store, View}

  @moduletag :tmp_dir

  @page """
  ---
  name: forms
  description: Fills in forms
  allowed-tools: Read Bash(git:*)
  requires: [paper]
  trigger_keywords: [form, sign]
  examples:
    - I need to sign this
    - not: What is a form of verse?
  disable-model-invocation: no
  user-invocable: false
  proactive_for_profile_ids: [clerk]
  exclude_from_prompt_profile_ids: [guest]
  license: 1.0
  version: 1.10
  argument-hint: FILE
  metadata:
    author: Ann
    size: 0x1F
    openclaw:
      requires: {bins: [jq, 2.0]}
      always: true
  ---

  Fill in the form.
  """

  # The fields of an entry that the text of a document decides.
  @fields ~w(description requires triggers allowed_tools hidden_from_model user_invocable
             include_in_prompt aliases effects limits strict license compatibility metadata
             usage body labels)a

  defp in_folder(folder, page) do
    write(folder, %{"forms/SKILL.md" => page})
    view = view(folder)
    {View.fetch!(view, "forms"), view}
  end

  defp in_store(content \\ @page, more \\ %{}) do
    profiles = [[id: "default", grants: :all, writes: :run]]
    view = Skillbook.view(book(store: ":memory:", builtins: false, profiles: profiles))
    fields = %{name: "forms", title: "forms", content: content}
    {:ok, stored} = Store.create(view, Map.merge(fields, more))
    {stored, Skillbook.view(view.book)}
  end

  # Data of the store has the columns in it.
  defp data(entry) do
    Map.drop(entry.data, ~w(title version source include_in_prompt visibility_labels labels))
  end

  # An imported entry has low trust, and so no tools unless the profile lists them.
  defp assert_same(view, stored_view, tools \\ [:all, ["Bash", "Write"], ["Read"], []]) do
    one = View.fetch!(view, "forms")
    other = View.fetch!(stored_view, "forms")
    assert Map.take(one, @fields) == Map.take(other, @fields)
    assert data(one) == data(other)
    assert View.frontmatter(view, "forms") == View.frontmatter(stored_view, "forms")
    assert {:ok, %{requests: [_], not: [_]}} = View.examples(view, "forms")
    assert View.examples(view, "forms") == View.examples(stored_view, "forms")

    for tools <- tools do
      [one, other] =
        for view <- [view, stored_view],
            do: View.tools(%{view | profile: %{view.profile | tools: tools}}, "forms")

      assert one == other
    end
  end

  test "an entry of the store has the fields of its text", %{tmp_dir: folder} do
    {entry, view} = in_folder(folder, @page)
    {stored, stored_view} = in_store()
    assert_same(view, stored_view)
    assert stored.excluded_for == ["guest"]
    assert entry.allowed_tools == ["Read", "Bash(git:*)"]
    assert View.allows_tool?(stored_view, "forms", "Bash", "git log")
    refute View.allows_tool?(stored_view, "forms", "Bash", "rm x")

    assert entry.metadata == %{
             "author" => "Ann",
             "size" => "0x1F",
             "openclaw" => %{"requires" => %{"bins" => ["jq", "2.0"]}, "always" => "true"}
           }

    assert {entry.license, entry.data["version"]} == {"1.0", "1.10"}
    {:ok, frontmatter} = View.frontmatter(stored_view, "forms")
    assert frontmatter <> View.fetch!(stored_view, "forms").body == @page
  end

  test "columns decide, and restrictions are joined" do
    text = String.replace(@page, "name: forms", "name: forms\ntags: [a]\nlabels: [home]")

    profiles = [
      [id: "anna", grants: ["home", "work"]],
      [id: "bob", grants: ["work"]],
      [id: "carl", grants: ["home"]],
      [id: "guest", grants: :all]
    ]

    book = book(store: ":memory:", builtins: false, profiles: profiles)
    view = Skillbook.view(book, "anna")
    fields = %{name: "forms", title: "Forms", content: text, tags: ["b"], labels: ["work"]}
    {:ok, stored} = Store.create(view, Map.put(fields, :description, "From the column"))
    assert {stored.labels, stored.excluded_for} == {["home", "work"], ["guest"]}
    entry = View.fetch!(Skillbook.view(book, "anna"), "forms")
    assert {entry.tags, entry.description} == {["b"], "From the column"}

    for {id, own} <- [{"guest", "x"}, {"bob", "work"}, {"carl", "home"}] do
      view = Skillbook.view(book, id)
      assert {:error, %Skillbook.UnknownSkillError{}} = View.fetch(view, "forms")
      assert {:error, %{kind: :not_found}} = Store.fetch(view, "forms")
      assert Store.list(view) == {:ok, []}
      assert {:error, %{kind: :not_found}} = Store.history(view, "forms")
      # The name is free for those who do not see it.
      note = %{name: "forms", title: "x", content: id, kind: :note, labels: [own]}
      assert {:ok, _} = Store.create(view, note)
    end
  end

  test "a profile cannot set labels in a text that it does not hold" do
    book = book(store: ":memory:", builtins: false, profiles: [[id: "bob", grants: ["work"]]])
    view = Skillbook.view(book, "bob")
    text = "---\nlabels: [home]\n---\nText"

    for write <- [
          &Store.put_note(view, "Plan", &1),
          &Store.create(view, %{title: "Plan", kind: :note, content: &1})
        ] do
      assert {:error, %{kind: :label_not_held, labels: ["home"]}} = write.(text)
    end
  end

  test "nothing opens by an edit, a restored version or a new text", %{tmp_dir: _folder} do
    {stored, view} = in_store("---\nlabels: [home]\n---\nText", %{kind: :note})
    assert stored.labels == ["home"]

    {:ok, %{entry: open}} = Store.update(view, "forms", %{edit: {:replace, "Text"}})
    assert open.labels == ["home"]
    {:ok, %{entry: open}} = Store.update(view, "forms", %{labels: []})
    assert open.labels == []
    {:ok, restored} = Store.restore(view, "forms", 1)
    assert restored.labels == ["home"]

    # The text has it still, so the field cannot remove it.
    {:ok, %{entry: closed}} = Store.update(view, "forms", %{labels: []})
    assert closed.labels == ["home"]

    edit = %{edit: {:find_replace, "labels:", "label:", all?: false}}
    assert {:error, %{kind: :restriction}} = Store.update(view, "forms", edit)
  end

  test "import and export keep what a document says", %{tmp_dir: folder} do
    {_entry, view} = in_folder(Path.join(folder, "from"), @page)
    source = Path.join(folder, "from/forms")
    book = book(store: ":memory:", builtins: false)

    {:ok, [_]} = Package.into_store(Skillbook.view(book), source, [labels: []] ++ accept_all())

    stored_view = Skillbook.view(book)
    assert_same(view, stored_view, [["Bash", "Write"], ["Read"], []])

    {:ok, path} = Package.export(stored_view, "forms", Path.join(folder, "out"))
    {:ok, exported} = Catalog.load([Path.dirname(path)])
    back = View.fetch!(View.all(exported), "forms")
    one = View.fetch!(view, "forms")
    assert Map.take(back, @fields -- [:metadata]) == Map.take(one, @fields -- [:metadata])
    # Fields that the format does not have go into the metadata.
    assert Map.drop(back.metadata, ["title", "version"]) == one.metadata
    assert back.metadata["version"] == "1.10"
    assert back.data["argument-hint"] == "FILE"
    examples = View.examples(View.all(exported), "forms")
    assert examples == View.examples(view, "forms")

    # And once more.
    {:ok, again} = Package.export(View.all(exported), "forms", Path.join(folder, "again"))
    assert File.read!(Path.join(again, "SKILL.md")) == File.read!(Path.join(path, "SKILL.md"))
  end

  test "the commands of a model keep what a document says", %{tmp_dir: folder} do
    # A heredoc ends before the last line break.
    {_entry, view} = in_folder(folder, String.trim_trailing(@page))
    book = book(store: ":memory:")

    lines = [
      "skills.create --name forms --title forms --description d --content Old",
      "skills.update forms --description 'Fills in forms' --operation replace " <>
        "--content <<EOF\n#{@page}EOF",
      "notes.add --title Plan --content <<EOF\n---\nlabel: x\n---\nText\nEOF"
    ]

    [created, updated, refused] =
      for line <- lines do
        [result] = Skillbook.run(Skillbook.view(book), "````cmd\n#{line}\n````").results
        result
      end

    assert {created.status, updated.status} == {:ok, :ok}

    assert refused.content =~
             "the frontmatter of the content: line 2: expected `labels`, got `label`"

    assert_same(view, Skillbook.view(book))
  end

  @tag :corpus
  test "no public skill is hidden, and each is the same in the store" do
    folder = Application.fetch_env!(:skillbook, :corpus)
    {:ok, catalog} = Catalog.load([folder])

    hiding =
      for found <- Catalog.diagnostics(catalog),
          found.code in [:labels_invalid, :restriction_invalid],
          do: {found.path, found.message}

    assert hiding == []
    view = View.all(catalog)
    book = book(store: ":memory:", builtins: false)
    writer = Skillbook.view(book)

    entries =
      for %Entry{kind: :skill} = entry <- View.entries(view) |> Enum.take_every(5) do
        name = "s" <> Integer.to_string(:erlang.phash2(entry.name))
        content = File.read!(entry.path)
        title = entry.name |> String.slice(0, 200)
        {:ok, _} = Store.create(writer, %{name: name, title: title, content: content})
        {name, content, entry}
      end

    stored = Skillbook.view(book)

    for {name, content, entry} <- entries do
      other = View.fetch!(stored, name)
      # The name in the frontmatter is an alias.
      assert other.aliases -- [entry.name] == entry.aliases
      assert Map.take(other, @fields -- [:aliases]) == Map.take(entry, @fields -- [:aliases])
      assert Map.drop(data(other), ["name"]) == Map.drop(data(entry), ["name"])
      {:ok, frontmatter} = View.frontmatter(stored, name)
      assert frontmatter <> other.body == content
    end
  end

  test "a skill is listed, found and read by the name in its text" do
    name = book(store: ":memory:", builtins: false, profiles: [[id: "ann"], [id: "eve"]])
    view = Skillbook.view(name, "ann")
    text = "---\nname: Home Automation\ndescription: Turns lights on\n---\nUse the hub.\n"
    {:ok, %{entry: stored}} = Store.put_note(view, "Smart home", text)
    assert {stored.name, stored.title, stored.kind} == {"smart-home", "Smart home", :skill}

    for id <- ["ann", "eve"], view = Skillbook.view(name, id) do
      assert Skillbook.prompt(view) =~ "- Home Automation: Turns lights on\n"
      assert Skillbook.prompt(view, format: :notes) =~ "**Home Automation**: Turns lights on"
      assert {:ok, list} = Skillbook.get(view, nil)
      assert to_string(list) =~ "  Home Automation  Turns lights on\n"
      result = Skillbook.run(view, "```cmd\nget_skill: Home Automation\n```").results |> hd()
      assert result.content =~ "Use the hub."
      assert [%{name: "smart-home"} | _] = Skillbook.search(view, "Home Automation")
    end

    assert Skillbook.diagnostics(name) == []
    # With another entry of that name, each is listed by its own.
    fields = %{name: "other", title: "Other", description: "Other", content: text}
    {:ok, _} = Store.create(view, fields)
    prompt = Skillbook.prompt(Skillbook.view(name, "ann"))
    assert prompt =~ "- Home Automation: Other\n- smart-home: Turns lights on\n"

    assert for(one <- Skillbook.diagnostics(name), do: {one.code, one.message, one.hint}) == [
             {:alias_taken,
              "the name `Home Automation` is also an alias of store/other.md, which is found " <>
                "first", "choose another name"}
           ]
  end
end
