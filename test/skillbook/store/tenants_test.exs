defmodule Skillbook.Store.TenantsTest do
  # A store with many entries, of which a book has those of the tenants that are read.
  # `native/skillbook_core/tests/leaks/parts.rs` has the property that views are right.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually
  import Skillbook.StoredRows

  alias Skillbook.Embedding.Entries
  alias Skillbook.Store.{Follower, Table}
  alias Skillbook.{Book, Catalog, Change, Embedders, FakeSQL, Native, PostgresCase, SQL}
  alias Skillbook.{Store, View}

  @moduletag :tmp_dir

  @timeout 30_000

  @tenants 100
  # Of each tenant, and some that are common: more than a book has in memory from the start.
  @own 100
  @common 5

  defp sql(book), do: Book.sql(Book.fetch!(book))

  defp profile(tenant), do: [id: tenant || "nobody", tenant: tenant]
  defp view(book, tenant), do: View.new!(Book.fetch!(book).catalog, profile(tenant))
  defp count(book, tenant), do: View.count(view(book, tenant))
  defp size(book), do: Catalog.size(Book.fetch!(book).catalog)

  defp vectors(book), do: Native.vectors_count(Book.fetch!(book).vectors)

  # Forgets what nobody has read since.
  defp rest(book) do
    %{catalog: catalog} = Book.fetch!(book)
    for _ <- 1..2, do: Catalog.rest(catalog)
    :ok
  end

  defp store(:sqlite, folder), do: {FakeSQL, path: Path.join(folder, "store.db")}
  defp store(:postgres, _folder), do: {SQL.Postgres, url: PostgresCase.database()}

  # The book and the name of its database. Unlike others it forgets those of few tenants too.
  defp open({module, options}, more \\ []) do
    name = :"store_#{System.unique_integer([:positive])}"
    store = {module, [name: name] ++ options}
    book = book([builtins: false, store: store, store_poll: 20, watch: false] ++ more)
    Catalog.limit(Book.fetch!(book).catalog, 128_000_000, 0)
    {book, name}
  end

  # A store with entries `n-1` and so on of each tenant, and some that are common.
  defp fill(store) do
    {book, _name} = open(store)
    write_rows(sql(book), [stored("template")])
    columns = Enum.join(Table.columns() -- [:id, :name, :tenant], ", ")

    SQL.query!(sql(book), """
    insert into skillbook_entries (name, tenant, scope, revision, #{columns})
    with recursive
      own (n) as (select 1 union all select n + 1 from own where n < #{@own}),
      tenants (t) as (select 1 union all select t + 1 from tenants where t < #{@tenants})
    select 'n-' || t || '-' || n, 't-' || t, t || '-' || n, 1, #{columns}
    from skillbook_entries, own, tenants
    """)

    SQL.query!(sql(book), """
    insert into skillbook_entries (name, tenant, scope, revision, #{columns})
    with recursive
      common (n) as (select 1 union all select n + 1 from common where n < #{@common})
    select 'common-' || n, '', 'common-' || n, 1, #{columns}
    from skillbook_entries, common where name = 'template'
    """)

    SQL.query!(sql(book), "delete from skillbook_entries where name = 'template'")
    stop_supervised!(book)
  end

  for dialect <- [:sqlite, :postgres] do
    test "those of a tenant are read when it comes, and forgotten: #{dialect}", context do
      store = store(unquote(dialect), context.tmp_dir)
      fill(store)
      {book, _} = open(store)
      {other, _} = open(store)
      assert size(book) == @common

      # One tenant, and nobody else's.
      :telemetry.listen(book)
      assert count(book, nil) == @common
      assert count(book, "t-1") == @common + @own
      assert_receive {[:skillbook, :store, :fetched], %{duration: _, rows: @own}, of_tenant}
      assert of_tenant == %{book: book, tenant: "t-1", kind: nil}
      assert size(book) == @common + @own
      assert count(book, "t-unknown") == @common

      # Writes of another node, to a tenant that is there, to one that is not, and to a new one.
      :ok = Skillbook.subscribe(book)

      for tenant <- ["t-1", "t-2", "t-new"] do
        fields = %{name: "new", kind: :note, title: "New", content: "Of #{tenant}"}
        {:ok, _} = Store.create(%{view(other, tenant) | book: other}, fields)
        assert_receive {:skillbook, ^book, %Change{} = change}, @timeout
        assert "new" in (change.added ++ change.changed)
        assert View.fetch!(view(book, tenant), "new").body == "Of #{tenant}"
      end

      {:ok, _} = Store.delete(%{view(other, "t-3") | book: other}, "n-3-7")
      assert_receive {:skillbook, ^book, %Change{changed: ["n-3-7"]}}, @timeout
      assert count(book, "t-3") == @common + @own - 1

      # A tenant that somebody reads stays.
      rest(book)
      assert size(book) == @common
      held = view(book, "t-2")
      Catalog.rest(Book.fetch!(book).catalog)
      assert size(book) == @common + @own + 1
      rest(book)
      assert size(book) == @common
      assert View.fetch!(held, "new").body == "Of t-2"
      assert count(book, "t-2") == @common + @own + 1

      # Everything.
      # One is deleted, and those that are new have one name.
      all = @common + @tenants * @own
      assert Catalog.count(Book.fetch!(book).catalog) == all
      rest(book)
      assert View.count(View.all(book)) == all
      rest(book)
      assert size(book) == @common
    end

    test "schedules are known before their tenant is read: #{dialect}", context do
      store = store(unquote(dialect), context.tmp_dir)
      fill(store)
      {book, _} = open(store)
      timed = [tenant: "t-4", schedule: "0 9 * * *", timezone: "UTC", writers: ["ann"]]
      :ok = Follower.sync(book, write_rows(sql(book), [stored("timed", timed)]))

      for again? <- [false, true] do
        {book, _} = if again?, do: open(store), else: {book, nil}

        scheduled = fn ->
          for {_, _, entry} <- Catalog.scheduled(Book.fetch!(book).catalog), do: entry.name
        end

        assert scheduled.() == ["timed"]
        assert size(book) == @common + 1
        assert count(book, "t-4") == @common + @own + 1
        rest(book)
        assert size(book) == @common + 1
        assert scheduled.() == ["timed"]
        assert count(book, "t-4") == @common + @own + 1
      end
    end
  end

  for dialect <- [:sqlite, :postgres] do
    test "only texts of tenants that are read are embedded: #{dialect}", context do
      store = store(unquote(dialect), context.tmp_dir)
      fill(store)
      {book, _} = open(store, embedder: Embedders.topics())
      embedded? = fn count -> eventually(fn -> vectors(book) == count end) end
      assert embedded?.(@common)
      assert length(Enum.concat(Embedders.calls())) == @common

      # Those of a tenant when it comes.
      view = %{view(book, "t-1") | book: book}
      assert Entries.await(view, fn _ -> :ok end) == :ok
      assert embedded?.(@common + @own)
      texts = Enum.concat(Embedders.calls())
      assert length(texts) == @own and Enum.all?(texts, &(&1 =~ ~r/^n 1 \d+/))

      # They leave memory with it, and come back from the database with the first search.
      rest(book)
      indexer = Process.whereis(Module.concat(book, "Embedding"))
      send(indexer, :rest)
      assert embedded?.(@common)
      :sys.suspend(indexer)
      view = %{view(book, "t-1") | book: book}
      assert Entries.progress(view) == %{done: @common, total: @common + @own}
      assert [%{name: _} | _] = Skillbook.search(view, "stew")
      assert Entries.progress(view) == %{done: @common + @own, total: @common + @own}
      :sys.resume(indexer)
      assert Embedders.calls() == [["stew"]]
    end
  end

  test "without the database, those that are there are read", %{tmp_dir: folder} do
    store = store(:sqlite, folder)
    fill(store)
    {book, name} = open(store)
    assert count(book, "t-1") == @common + @own

    capture_log(fn ->
      FakeSQL.away(name, true)
      assert count(book, nil) == @common
      assert count(book, "t-1") == @common + @own
      catalog = Book.fetch!(book).catalog
      :telemetry.listen(book)
      assert {:error, %SQL.Error{} = error} = View.new(catalog, profile("t-2"))
      assert_receive {[:skillbook, :store, :fetched], %{rows: 0}, %{kind: :other, tenant: "t-2"}}
      assert Exception.message(error) == "the server is gone"
      assert_raise SQL.Error, fn -> View.all(book) end
      assert Catalog.diagnostics(catalog) == []
      FakeSQL.away(name, false)
      assert count(book, "t-2") == @common + @own
    end)
  end

  for dialect <- [:sqlite, :postgres] do
    test "another database after a failover has other entries: #{dialect}", context do
      store = store(unquote(dialect), context.tmp_dir)
      fill(store)
      {book, _} = open(store)
      timed = [tenant: "t-4", schedule: "0 9 * * *", timezone: "UTC", writers: ["ann"]]
      rows = [stored("timed", timed), stored("lost", tenant: "t-1"), stored("common")]
      :ok = Follower.sync(book, write_rows(sql(book), rows))
      assert count(book, "t-1") == @common + 1 + @own + 1
      %{rows: [[revision]]} = SQL.query!(sql(book), "select max(revision) from skillbook_entries")

      :ok = Skillbook.subscribe(book)
      follower = Process.whereis(Module.concat(book, "Follower"))

      log =
        capture_log(fn ->
          # Without the last writes, and with others of as many revisions.
          {:ok, :ok} =
            SQL.transaction(sql(book), fn sql ->
              for name <- ~w(timed lost common common-1 n-1-7 n-2-7),
                  do: SQL.query!(sql, "delete from skillbook_entries where name = '#{name}'")

              SQL.query!(sql, "update skillbook_settings set value = '1' where key = 'revision'")
              for n <- 2..revision, do: write_rows(sql, [stored("other-#{n}", tenant: "t-#{n}")])
              {:ok, :ok}
            end)

          send(follower, :refresh)
          :sys.get_state(follower)
        end)

      assert log =~ "lacks a write that the catalog shows"
      assert_receive {:skillbook, ^book, %Change{} = change}, @timeout
      assert Enum.sort(change.removed) == ~w(common common-1 timed)
      assert size(book) == @common - 1
      assert Catalog.scheduled(Book.fetch!(book).catalog) == []
      for tenant <- ~w(t-1 t-2), do: assert(View.find(view(book, tenant), "n-1-7") == nil)
      assert count(book, "t-1") == @common - 1 + @own - 1
      assert count(book, "t-2") == @common - 1 + @own - 1 + 1
      assert count(book, "t-3") == @common - 1 + @own + if(revision > 2, do: 1, else: 0)
    end
  end

  test "a view within a transaction has none of its rows", %{tmp_dir: folder} do
    store = store(:sqlite, folder)
    fill(store)
    {book, _} = open(store)

    {:error, :back} =
      SQL.transaction(sql(book), fn sql ->
        SQL.query!(sql, "delete from skillbook_entries where tenant = 't-1'")
        assert count(book, "t-1") == @common + @own
        {:error, :back}
      end)

    assert count(book, "t-1") == @common + @own
  end

  test "readers and writers of tenants that come and go see all entries", %{tmp_dir: folder} do
    store = store(:sqlite, folder)
    fill(store)
    {book, _} = open(store)
    done = :atomics.new(1, [])

    forgetting = Task.async(fn -> forget_until(book, done) end)

    tasks =
      for at <- 1..8 do
        Task.async(fn ->
          tenant = "t-#{rem(at, 4) + 1}"

          for n <- 1..25 do
            name = "of-#{at}-#{n}"
            fields = %{name: name, kind: :note, title: name, content: name}
            {:ok, _} = Store.create(%{view(book, tenant) | book: book}, fields)
            view = view(book, tenant)
            assert View.fetch!(view, name).body == name
            # Its own, and at least those that it has written.
            assert View.count(view) >= @common + @own + n
          end
        end)
      end

    Task.await_many(tasks, 120_000)
    :atomics.put(done, 1, 1)
    :ok = Task.await(forgetting, @timeout)
    for tenant <- 1..4, do: assert(count(book, "t-#{tenant}") == @common + @own + 50)
  end

  defp forget_until(book, done) do
    rest(book)
    if :atomics.get(done, 1) == 1, do: :ok, else: forget_until(book, done)
  end
end
