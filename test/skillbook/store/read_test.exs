defmodule Skillbook.Store.ReadTest do
  # Reads of the store cost as much as their result, not as the table.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Handlers.Memory.Memory
  alias Skillbook.Handlers.Memory.Table, as: Memories
  alias Skillbook.SQL.{Migrations, SQLite}
  alias Skillbook.Store.{Read, Table}
  alias Skillbook.{PostgresCase, Profile, QueryPlan, SQL, Store, StoreError, StoredRows}

  doctest Skillbook.Store.Slips

  @profiles [
    [id: "ann", tenant: "near", grants: ["a"]],
    [id: "bob", tenant: "near", grants: ["secret"]],
    [id: "far", tenant: "far"],
    [id: "boss", tenant: "near", grants: :all],
    [id: "none"],
    [id: "all", tenant: :all, grants: :all]
  ]

  defp start(_context) do
    name = :"plan_#{System.unique_integer([:positive])}"
    store = {QueryPlan, path: ":memory:", name: name}
    {:ok, book: book(store: store, profiles: @profiles), database: name}
  end

  defp note(book, profile, title, fields \\ %{}),
    do: {:ok, _} = Store.put_note(Skillbook.view(book, profile), title, "Text.", fields: fields)

  describe "a name that the store does not have" do
    setup :start

    setup %{book: book} do
      note(book, "ann", "Weekly Report")
      note(book, "ann", "Milk")
      note(book, "bob", "Milch", %{labels: ["secret"]})
      note(book, "far", "Milks")
      {:ok, _} = Store.disable(Skillbook.view(book, "ann"), "milk")
      :ok
    end

    test "costs no table, for a profile of each kind", %{book: book, database: database} do
      for profile <- ["ann", "none", "all"],
          name <- ["mlik", "weather", "WEEKLY report", "no such\0", String.duplicate("a", 300)],
          call <- [
            &Store.fetch(&1, &2),
            &Store.history(&1, &2),
            &Store.update(&1, &2, %{title: "x"}),
            &Store.restore(&1, &2, 9),
            &Store.put_note(&1, &2, "x", expected_version: 9)
          ],
          view = Skillbook.view(book, profile) do
        assert {name, QueryPlan.scans(database, fn -> call.(view, name) end)} == {name, []}
      end
    end

    test "suggests entries that the profile sees, disabled ones and those newer than the view",
         %{book: book} do
      old = Skillbook.view(book, "ann")
      note(book, "ann", "Bread")

      for {profile, name, suggestions} <- [
            {"ann", "mlik", ["milk"]},
            {"ann", "MLIK", ["milk"]},
            {"ann", "weekly-reports", ["weekly-report"]},
            {"ann", "bred", ["bread"]},
            {"ann", "report", []},
            {"ann", "weather", []},
            {"ann", "m", []},
            {"bob", "mlich", ["milch"]},
            {"far", "milk", ["milks"]},
            {"none", "mlik", []}
          ] do
        view = if profile == "ann", do: old, else: Skillbook.view(book, profile)
        assert {:error, %StoreError{kind: :not_found} = error} = Store.fetch(view, name)
        assert {profile, name, error.suggestions} == {profile, name, suggestions}
      end
    end

    test "that was deleted is not suggested, and named exactly", %{book: book} do
      view = Skillbook.view(book, "ann")
      {:ok, _} = Store.delete(view, "milk")
      assert {:error, %{deleted_at: %DateTime{}}} = Store.fetch(view, "milk")
      assert {:error, %{deleted_at: nil, suggestions: []}} = Store.fetch(view, "mlik")
      assert {:error, %{deleted_at: nil, suggestions: []}} = Store.fetch(view, "MILK")
    end
  end

  # As after an import, until the server makes them.
  test "PostgreSQL reads no other entries of a tenant for a name, also without statistics" do
    sql = PostgresCase.start()
    {:ok, _} = Migrations.run(sql)
    StoredRows.write_rows(sql, [StoredRows.stored("template")])
    columns = Enum.join(Table.columns() -- [:id, :name, :title], ", ")

    SQL.query!(sql, """
    insert into skillbook_entries (name, title, scope, revision, #{columns})
    select 'n-' || n, 'N ' || n, 'n-' || n, 1, #{columns}
    from skillbook_entries, generate_series(1, 5000) n
    """)

    plans = QueryPlan.over(sql)

    for tenant <- [nil, "near"],
        profile = Profile.new!(id: "ann", tenant: tenant),
        {name, call} <- [
          named: &Table.named(plans, &1, "n-7"),
          one_of: &Table.named_one_of(plans, &1, ["n-7", "n-8", "no"]),
          titled: &Table.titled(plans, &1, "N 7"),
          spelled: &Table.spelled(plans, &1, "n 7"),
          deleted: &Table.deleted(plans, &1, "n-7")
        ] do
      assert {name, QueryPlan.scans(plans, fn -> call.(profile) end)} == {name, []}
    end
  end

  describe "entries of one name" do
    setup :start

    test "have the author of the one that the profile sees", %{book: book} do
      for profile <- ["bob", "ann", "none"],
          do:
            note(book, profile, "Tea", if(profile == "bob", do: %{labels: ["secret"]}, else: %{}))

      note(book, "none", "Milk")

      for {profile, author} <- [{"bob", "bob"}, {"ann", "ann"}, {"far", "none"}] do
        view = Skillbook.view(book, profile)
        assert {:ok, %{"tea" => {:user, ^author}, "milk" => milk}} = Read.authors(view)
        assert milk == {:user, "none"}
        assert {:ok, %{"tea" => one}} = Read.named_one_of(view, ["tea", "no-such"])
        assert {profile, one.author, one.content} == {profile, author, nil}
      end

      {:ok, _} = Store.disable(Skillbook.view(book, "none"), "milk")
      {:ok, authors} = Read.authors(Skillbook.view(book, "far"))
      assert Map.keys(authors) == ["tea"]
    end
  end

  describe "entries that are fetched" do
    setup :start

    test "are read in the order of an index, and no others", %{database: database} do
      sql = QueryPlan.handle(database)

      for {tenant, step} <- [
            {nil, "SEARCH e USING INDEX skillbook_entries_tenant_index (tenant=?)"},
            {"acme", "SEARCH e USING INDEX skillbook_entries_tenant_index (tenant=?)"},
            {:all, "SCAN e USING INDEX skillbook_entries_list_index"},
            {:scheduled, "SCAN e USING INDEX skillbook_entries_schedule_index"},
            {:common, "SCAN e"}
          ] do
        steps = QueryPlan.steps(database, fn -> Table.enabled(sql, tenant, nil, 1) end)
        assert {tenant, steps} == {tenant, [step]}
      end
    end
  end

  describe "a page of a list" do
    setup :start

    test "reads the index in its order", %{book: book, database: database} do
      for title <- ["a", "b", "c"], do: note(book, "ann", title)
      note(book, "ann", "d", %{labels: ["a"]})
      list = "SEARCH e USING INDEX skillbook_entries_list_index"
      labels = "SEARCH e USING INDEX skillbook_entries_labels_index"
      # The labels that the profile holds, then the entries of each set of them.
      sets = [
        "#{labels} (tenant=? AND labels>? AND labels<?)",
        "#{labels} (tenant=? AND labels=?)"
      ]

      for {profile, place, steps} <- [
            {"ann", nil, sets ++ List.duplicate("#{labels} (tenant=? AND labels=?)", 2)},
            {"ann", "a",
             sets ++ List.duplicate("#{labels} (tenant=? AND labels=? AND name>?)", 2)},
            {"boss", nil, List.duplicate("#{list} (tenant=?)", 2)},
            {"boss", "a", List.duplicate("#{list} (tenant=? AND name>?)", 2)},
            {"all", nil, ["SCAN e USING INDEX skillbook_entries_name_index"]},
            {"all", "a", ["SEARCH e USING INDEX skillbook_entries_name_index (name>?)"]}
          ] do
        view = Skillbook.view(book, profile)
        found = QueryPlan.steps(database, fn -> Store.list(view, limit: 1, after: place) end)
        found = Enum.map(found, &String.replace(&1, ~r/ EXISTS| COVERING/, ""))
        reads = for step <- found, step =~ "skillbook_", do: step
        assert {profile, place, reads} == {profile, place, steps}
        # Each part comes in order; only their few rows are sorted together, and those of a name.
        others = ["SCAN part0", "SCAN part1", "SCAN begun", "MERGE (UNION ALL)"]
        sorted = ["USE TEMP B-TREE FOR LAST TERM OF ORDER BY" | others]
        parts = for [step, next] <- Enum.chunk_every(found, 2, 1), step in reads, do: next
        assert {profile, Enum.uniq(parts) -- sorted} == {profile, []}
      end
    end
  end

  describe "a page of memories, and of versions" do
    setup :start

    test "is read from an index in its order, from its place on", %{
      book: book,
      database: database
    } do
      view = Skillbook.view(book, "ann")
      for text <- ~w(a b c), do: {:ok, _} = Store.put_note(view, "Milk", text)
      sql = QueryPlan.handle(database)

      for text <- ~w(a b c) do
        memory = %Memory{content: text, category: "general", created_at: ~U[2026-03-01 08:00:00Z]}
        {:ok, _} = Memories.insert(sql, view.profile, memory)
      end

      for {call, step} <- [
            {fn -> Memories.newest(sql, view.profile, nil, 1, 2) end,
             "SEARCH t USING INDEX skillbook_memories_time_index (owner=? AND created_at<?)"},
            {fn -> Store.history(view, "milk", limit: 1, after: 3) end,
             "SEARCH v USING INDEX sqlite_autoindex_skillbook_entry_versions_1 " <>
               "(entry_id=? AND version<?)"}
          ] do
        steps = QueryPlan.steps(database, call)
        assert step in steps
        refute Enum.any?(steps, &(&1 =~ "B-TREE"))
      end
    end
  end

  test "entries of an earlier version get their spellings at the start" do
    {:ok, _} = SQLite.start_link(path: ":memory:", name: :unspelled)
    sql = SQLite.handle(:unspelled)
    {:ok, _} = Migrations.run(sql)
    stored = %Skillbook.Stored{name: "a", title: "A", content: "", author: "x", source: :user}
    stored = %{stored | kind: :note, hash: "", created_at: ~U[2026-03-01 09:30:00Z]}
    stored = %{stored | updated_at: stored.created_at}
    # More than are filled at once.
    rows = for at <- 1..1_203, do: %{stored | name: "weekly-#{at}", title: "The #{at}. Week!"}
    StoredRows.write_rows(sql, rows)
    profile = %Skillbook.Profile{id: "x"}
    assert Table.spelled(sql, profile, "the 1203 week") == {:ok, []}
    assert Table.spell(sql) == :ok
    assert {:ok, [%{name: "weekly-1203"}]} = Table.spelled(sql, profile, "the 1203 week")
    assert {:ok, [%{name: "weekly-7"}]} = Table.spelled(sql, profile, "WEEKLY 7")
    count = "select count(*) from skillbook_entries where title_spelling is null"
    assert SQL.query!(sql, count).rows == [[0]]
  end
end
