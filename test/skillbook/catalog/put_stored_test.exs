defmodule Skillbook.Catalog.PutStoredTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.StoredRows, only: [rows: 1]

  alias Skillbook.Catalog.Search
  alias Skillbook.{Catalog, Change, Help, Lint, Native, Source, Stored, View}

  @moduletag :tmp_dir

  defp stored(id, name, fields \\ []) do
    defaults = [
      id: id,
      name: name,
      kind: :note,
      title: "About #{name}",
      content: "Body of #{name}",
      source: :user
    ]

    struct!(Stored, Keyword.merge(defaults, fields))
  end

  defp put(catalog, entries, which \\ :some) do
    {change, []} = Catalog.put_stored(catalog, rows(entries), which)
    change
  end

  defp load(sources \\ []) do
    {:ok, catalog} = Catalog.load(sources ++ [Source.stored()])
    catalog
  end

  defp names(catalog), do: for(entry <- View.entries(View.all(catalog)), do: entry.name)

  test "adds, changes and removes entries and returns the change" do
    catalog = load()
    assert put(catalog, []) == %Change{generation: 1}

    both = [stored(1, "milk"), stored(2, "bread")]
    assert put(catalog, both) == %Change{generation: 2, added: ["bread", "milk"]}
    assert put(catalog, both ++ [stored(3, "rye", enabled: false)]) == %Change{generation: 2}

    tagged = stored(1, "milk", tags: ["shopping"])
    assert put(catalog, [tagged]) == %Change{generation: 3, changed: ["milk"]}
    gone = %{tagged | deleted_at: ~U[2026-03-01 09:30:00Z]}
    assert put(catalog, [stored(2, "rye"), gone]).removed == ["bread", "milk"]
    assert names(catalog) == ["rye"]
    assert {:ok, 5} = Catalog.reload(catalog)
    assert names(catalog) == ["rye"]

    # All that there are.
    assert put(catalog, both, :all) == %Change{
             generation: 6,
             added: ["bread", "milk"],
             removed: ["rye"]
           }

    assert put(catalog, [], :all).removed == ["bread", "milk"]
  end

  test "rows of a tenant that is fetched are shown at the end, as the catalog has them" do
    catalog = load()
    Catalog.limit(catalog, 1_000_000, 0)
    fetch = Catalog.begin(catalog, :all)
    unread = %{stored(3, "rye") | title: 7}
    fields = [content: "---\nname: x\ndescription: d\nlabels: [home]\n---\nText"]
    first = [stored(1, "milk"), stored(2, "bread", fields)]
    assert Catalog.take_in(fetch, rows(first)) == []
    assert [{3, _reason}] = Catalog.take_in(fetch, rows([unread, stored(4, "oats")]))
    # Changes that come meanwhile are newer, whatever was fetched.
    newer = [stored(1, "milk", title: "Newer"), stored(5, "spelt")]
    assert put(catalog, newer).added == ["milk", "spelt"]
    # Nobody knows whether it was there.
    assert put(catalog, [stored(6, "maize", enabled: false)]).changed == ["maize"]
    assert Catalog.take_in(fetch, rows([stored(6, "maize")])) == []
    assert Catalog.fetched(fetch) == :ok

    assert names(catalog) == ["bread", "milk", "oats", "spelt"]
    assert View.fetch!(View.all(catalog), "milk").title == "Newer"
    assert {Catalog.generation(catalog), Catalog.size(catalog)} == {3, 4}
    bread = View.fetch!(View.all(catalog), "bread")
    assert {bread.kind, bread.labels, bread.body} == {:skill, ["home"], "Text"}

    # They are changed as all others are.
    changed = %Change{generation: 4, changed: ["milk"], removed: ["bread"]}
    gone = stored(2, "bread", enabled: false)
    assert put(catalog, [stored(1, "milk", tags: ["a"]), gone]) == changed
  end

  test "a row that cannot be read is left out, with the reason" do
    catalog = load()
    put(catalog, [stored(1, "milk"), stored(2, "rye")])
    unread = %{stored(1, "milk") | title: 7}
    reason = "expected a text in the column title, got 7"

    assert {change, [{1, ^reason}]} =
             Catalog.put_stored(catalog, rows([unread, stored(2, "oats")]), :some)

    assert {change.added, change.removed} == {["oats"], ["milk", "rye"]}
  end

  test "an entry has its columns" do
    catalog = load()

    fields = [
      kind: :skill,
      description: "What to buy",
      content: "---\nname: x\nhandler: X\n---\nText",
      tags: ["a"],
      labels: ["home"],
      source: :import,
      version: 3
    ]

    put(catalog, [stored(7, "milk", fields)])
    entry = View.fetch!(View.all(catalog), "milk")
    assert {entry.kind, entry.description, entry.body} == {:skill, "What to buy", "Text"}
    assert {entry.tags, entry.labels, entry.handler} == {["a"], ["home"], nil}
    assert {entry.path, entry.source, entry.trust} == {"store/milk.md", "store", :low}

    assert entry.data == %{
             "name" => "milk",
             "title" => "About milk",
             "description" => "What to buy",
             "tags" => ["a"],
             "visibility_labels" => ["home"],
             "include_in_prompt" => true,
             "version" => 3,
             "source" => "import"
           }
  end

  test "does not affect entries from files", %{tmp_dir: root} do
    write(root, %{
      "pdf/SKILL.md" => "---\nname: pdf\ndescription: About pdf\n---\nSee a.md",
      "pdf/a.md" => "A resource"
    })

    catalog = load([root])
    put(catalog, [stored(1, "milk", kind: :skill, description: "About milk")])
    view = View.all(catalog)

    assert Help.skill(view, "milk") |> elem(1) =~ "Body of milk"
    assert {:ok, text} = Help.get(view, "pdf/a.md")
    assert text =~ "A resource"
    assert {:error, _} = Help.get(view, "milk/a.md")
    assert [%{name: "milk"}] = Search.search(view, "milk")
    assert Catalog.diagnostics(catalog) == []

    write(root, %{"new.md" => "---\nname: new\ndescription: About new\n---\n"})
    assert Catalog.refresh(catalog, [Path.join(root, "new.md")]).added == ["new"]
    assert Catalog.refresh(catalog, ["store/milk.md"]).changed == []
    assert names(catalog) == ["milk", "new", "pdf"]
    assert is_list(Lint.run([root]))
  end

  test "has the visibility of views" do
    rows = [
      {"p", :all, [], [1, 2, 3, 4]},
      {"p", [], [], [1, 3, 4]},
      {"p", ["home"], [], [1, 2, 3, 4]},
      # An excluded skill is not there, an excluded note only leaves prompts.
      {"guest", :all, [], [1, 2, 3]},
      {"p", :all, [["m*"]], [1, 2]},
      {"p", :all, [["*"], ["milk"]], [1]}
    ]

    entries = [
      stored(1, "milk"),
      stored(2, "money", labels: ["home"]),
      stored(3, "bread", excluded_for: ["guest"]),
      stored(4, "rye", kind: :skill, description: "d", excluded_for: ["guest"])
    ]

    catalog = load()
    put(catalog, entries)

    for {id, grants, globs, expected} <- rows do
      seen = Native.stored_visible([id], nil, grants, globs, entries)
      assert for({entry, true} <- Enum.zip(entries, seen), do: entry.id) == expected
      profile = %{Skillbook.Profile.unrestricted() | id: id, grants: grants, within: globs}
      {:ok, view} = View.new(catalog, profile)
      seen = for entry <- View.entries(view), do: entry.name
      assert seen == Enum.sort(for entry <- entries, entry.id in expected, do: entry.name)
    end

    # Lists are read without contents.
    assert Native.stored_visible(["p"], nil, [], [], [stored(1, "milk", content: nil)]) == [true]
    reason = "expected a text in the column content, got nil"

    assert {_, [{1, ^reason}]} =
             Catalog.put_stored(catalog, rows([stored(1, "milk", content: nil)]), :some)
  end

  test "needs a catalog with a store", %{tmp_dir: root} do
    {:ok, catalog} = Catalog.load([root])

    assert_raise ArgumentError,
                 "expected a catalog with the source of a store, got one of files alone",
                 fn -> put(catalog, []) end
  end

  test "options cannot create the source of a store" do
    assert {:error, error} = Source.new(path: "store", kind: :stored)
    assert Exception.message(error) =~ "expected :skills or :notes"
  end
end
