defmodule Skillbook.Store.FollowerTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.StoredRows

  alias Skillbook.Catalog.Watcher
  alias Skillbook.Store.Follower
  alias Skillbook.{Book, Change, FakeSQL, SQL, View}

  @moduletag :tmp_dir

  # Long, for busy machines.
  @timeout 30_000

  # Longer than the test, so updates come from notifications or `sync/2`.
  @never 3_600_000

  defp sql(book), do: Book.sql(Book.fetch!(book))
  defp names(book), do: for(entry <- View.entries(View.all(book)), do: entry.name)
  defp body(book, name), do: View.fetch!(View.all(book), name).body

  defp id(book, name) do
    [[id]] =
      SQL.query!(sql(book), "select id from skillbook_entries where name = $1", [name]).rows

    id
  end

  defp open(folder, options \\ []) do
    defaults = [builtins: false, store: Path.join(folder, "store.db"), store_poll: @never]
    book = book(Keyword.merge(defaults, options))
    :ok = Skillbook.subscribe(book)
    book
  end

  defp change(book) do
    assert_receive {:skillbook, ^book, %Change{} = change}, @timeout
    Map.take(change, [:added, :changed, :removed])
  end

  defp process(book, what),
    do: Process.whereis(Module.concat(book, List.last(Module.split(what))))

  # The process that replaces another.
  defp another(book, what, pid) do
    case process(book, what) do
      other when other in [nil, pid] -> Process.sleep(5) && another(book, what, pid)
      other -> other
    end
  end

  test "the first view of a book has all entries of its database", %{tmp_dir: folder} do
    first = open(folder)

    write_rows(sql(first), [
      stored("milk"),
      stored("off", enabled: false),
      stored("old", deleted_at: ~U[2026-03-01 09:30:00Z])
    ])

    stop_supervised!(first)

    book = book(builtins: false, store: Path.join(folder, "store.db"))
    assert names(book) == ["milk"]
    assert Follower.sync(book, 1) == :ok
  end

  test "a book starts with more entries than it reads at once", %{tmp_dir: folder} do
    first = open(folder)
    many = for n <- 1..4_001, do: stored("n#{n}", tenant: if(rem(n, 2) == 0, do: "even"))
    unread = stored("unread", tags: "no list")
    last = write_rows(sql(first), many ++ [unread])
    stop_supervised!(first)

    options = [builtins: false, store: Path.join(folder, "store.db")]
    {book, log} = with_log(fn -> book(options) end)
    assert Enum.sort(names(book)) == Enum.sort(Enum.map(many, & &1.name))
    assert View.count(Skillbook.view(book, Skillbook.Profile.new!(id: "anna"))) == 2_001
    assert body(book, "n4001") == "Body of n4001"
    assert log =~ "which cannot be read: expected a list of texts in JSON in the column tags"
    assert Follower.sync(book, last) == :ok
  end

  test "a book does not start with a database of another schema", %{tmp_dir: folder} do
    book = open(folder)
    SQL.query!(sql(book), "drop table skillbook_entries")
    stop_supervised!(book)
    Process.flag(:trap_exit, true)

    assert {:error, error} =
             Skillbook.start_link(name: :no_entries, store: Path.join(folder, "store.db"))

    assert Exception.message(error) =~ "no such table: skillbook_entries"
  end

  test "the store's entries go before files, also before written ones", %{tmp_dir: folder} do
    skill = "---\nname: milk\ndescription: d\n---\nA file"
    write(folder, %{"one/milk.md" => skill, "two/milk.md" => skill})

    book =
      open(folder,
        sources: [Path.join(folder, "one")],
        write_to: Path.join(folder, "two"),
        watch: false
      )

    assert body(book, "milk") == "A file"
    assert Follower.sync(book, write_rows(sql(book), [stored("milk")])) == :ok
    assert body(book, "milk") == "Body of milk"
  end

  test "sync returns after the write is visible", %{tmp_dir: folder} do
    book = open(folder)
    :telemetry.listen(book)
    assert Follower.sync(book, write_rows(sql(book), [stored("milk"), stored("bread")])) == :ok
    assert names(book) == ["bread", "milk"]
    assert_receive {:skillbook, ^book, %Change{generation: 2, added: ["bread", "milk"]}}

    assert_receive {[:skillbook, :catalog, :reload], %{added: 2, entries: 2},
                    %{book: ^book, generation: 2}}

    milk = id(book, "milk")

    Follower.sync(
      book,
      write_rows(sql(book), [stored("milk", id: milk, content: "Other", version: 2)])
    )

    assert body(book, "milk") == "Other"
    assert change(book).changed == ["milk"]

    # Disabled, enabled, deleted.
    Follower.sync(book, write_rows(sql(book), [stored("milk", id: milk, enabled: false)]))
    assert names(book) == ["bread"]
    Follower.sync(book, write_rows(sql(book), [stored("milk", id: milk)]))
    assert names(book) == ["bread", "milk"]
    gone = stored("milk", id: milk, deleted_at: ~U[2026-03-01 09:30:00Z])
    Follower.sync(book, write_rows(sql(book), [gone]))
    assert names(book) == ["bread"]
    # A visible revision needs no wait.
    assert Follower.sync(book, 1) == :ok
  end

  test "another book on the same file sees a write by polling", %{tmp_dir: folder} do
    writer = open(folder)
    reader = open(folder, store_poll: 20)
    # No process is notified.
    write_rows(sql(writer), [stored("milk")])
    assert change(reader).added == ["milk"]
    assert names(reader) == ["milk"]
    assert names(writer) == []
  end

  test "another book on the same database is notified of a write", %{tmp_dir: folder} do
    {writer, reader} = {open(folder), open(folder)}
    # After its first query, its database is known to be shared.
    :sys.get_state(process(reader, Follower))
    Follower.sync(writer, write_rows(sql(writer), [stored("milk")]))
    assert change(reader).added == ["milk"]
    assert names(reader) == ["milk"]
  end

  test "a listening connection is rarely polled", %{tmp_dir: folder} do
    options = [path: Path.join(folder, "store.db"), test: self()]
    book = open(folder, store: {FakeSQL, options}, store_poll: 10)
    assert_receive {:listens, follower, "skillbook"}, @timeout
    :sys.get_state(follower)

    for {payload, name} <- [{"1", "a"}, {"what is this", "b"}] do
      write_rows(sql(book), [stored(name)])
      send(follower, {:skillbook_notify, "skillbook", payload})
      assert change(book).added == [name]
    end

    # A notification of a visible revision causes no query.
    write_rows(sql(book), [stored("c")])
    send(follower, {:skillbook_notify, "skillbook", "2"})
    :sys.get_state(follower)
    assert names(book) == ["a", "b"]

    # Missed notifications cause a query.
    send(follower, {:skillbook_notify_lost, "skillbook"})
    assert change(book).added == ["c"]
    refute_received {:listens, _, _}
    send(follower, :refresh)
    assert_receive {:listens, ^follower, "skillbook"}, @timeout
  end

  test "after an outage the database is read from the last revision on", %{tmp_dir: folder} do
    name = :"away_#{System.unique_integer([:positive])}"
    store = {FakeSQL, path: Path.join(folder, "store.db"), name: name}
    book = open(folder, store: store, store_poll: 10)
    :telemetry.listen(book)
    Follower.sync(book, write_rows(sql(book), [stored("milk"), stored("bread"), stored("rye")]))
    assert change(book).added == ["bread", "milk", "rye"]
    {milk, bread} = {id(book, "milk"), id(book, "bread")}

    log =
      capture_log(fn ->
        FakeSQL.away(name, true)
        send(process(book, Follower), :refresh)

        assert_receive {[:skillbook, :store, :away], %{system_time: _},
                        %{book: ^book, kind: :other}},
                       @timeout

        # Reads continue, and a writer waits.
        assert names(book) == ["bread", "milk", "rye"]
        path = Path.join(folder, "store.db")
        {:ok, other} = SQL.SQLite.start_link(path: path, name: :"#{name}_other")
        sql = SQL.SQLite.handle(:"#{name}_other")

        revision =
          write_rows(sql, [
            stored("milk", id: milk, enabled: false),
            stored("bread", id: bread, deleted_at: ~U[2026-03-01 09:30:00Z]),
            stored("oats")
          ])

        writer = Task.async(fn -> Follower.sync(book, revision) end)
        FakeSQL.away(name, false)
        assert Task.await(writer, @timeout) == :ok
        assert names(book) == ["oats", "rye"]
        assert change(book) == %{added: ["oats"], changed: [], removed: ["bread", "milk"]}
        assert_receive {[:skillbook, :store, :back], %{duration: _}, %{book: ^book}}, @timeout
        GenServer.stop(other)
      end)

    lines = for line <- String.split(log, "\n"), line =~ "cannot read its database", do: line
    assert [line] = lines

    assert line =~
             "the book #{inspect(book)} cannot read its database; its catalog stays as it " <>
               "is: the server is gone"

    refute_received {[:skillbook, :store, :away], _, _}
  end

  test "a writer waits for a lost database for a limited time", %{tmp_dir: folder} do
    name = :"late_#{System.unique_integer([:positive])}"
    book = open(folder, store: {FakeSQL, path: Path.join(folder, "store.db"), name: name})
    :telemetry.listen(book)
    revision = write_rows(sql(book), [stored("milk")])
    FakeSQL.away(name, true)

    text =
      "the catalog of the book #{inspect(book)} does not show revision #{revision} yet; " <>
        "the write is in the database, and is shown once the database answers"

    log =
      capture_log(fn ->
        assert {:error, %SQL.Error{kind: :timeout} = error} = Follower.sync(book, revision, 10)

        assert Exception.message(error) == text
      end)

    assert log =~ text
    assert_receive {[:skillbook, :store, :late], %{revision: ^revision}, %{book: ^book}}
    assert names(book) == []
    FakeSQL.away(name, false)
    assert Follower.sync(book, revision) == :ok
    assert names(book) == ["milk"]
  end

  test "a restored older database replaces the catalog's entries", %{tmp_dir: folder} do
    book = open(folder)
    Follower.sync(book, write_rows(sql(book), [stored("milk")]))
    Follower.sync(book, write_rows(sql(book), [stored("bread")]))
    SQL.query!(sql(book), "delete from skillbook_entries where name = 'bread'")
    SQL.query!(sql(book), "update skillbook_settings set value = '1' where key = 'revision'")
    send(process(book, Follower), :refresh)
    :sys.get_state(process(book, Follower))
    assert names(book) == ["milk"]
  end

  test "a database with another history replaces the catalog's entries", %{tmp_dir: folder} do
    book = open(folder)
    path = Path.join(folder, "store.db")
    {:ok, other} = SQL.SQLite.start_link(path: path, name: :"#{book}_other")
    copy = SQL.SQLite.handle(:"#{book}_other")
    all = fn statement -> SQL.query!(copy, statement).rows |> Enum.concat() end
    {:ok, _} = Skillbook.Store.put_note(book, "first", "in both")

    refresh = fn ->
      send(process(book, Follower), :refresh)
      :sys.get_state(process(book, Follower))
    end

    # The other writes have the revisions of those that are lost: fewer, as many, or more of them.
    for {lost, gained} <- [{1, 2}, {2, 2}, {3, 1}, {1, 1}] do
      refresh.()
      [revision] = all.("select value from skillbook_settings where key = 'revision'")
      kept = Enum.join(all.("select id from skillbook_entries"), ", ")

      for n <- 1..lost,
          do: {:ok, _} = Skillbook.Store.put_note(book, "lost #{lost} #{gained} #{n}", "lost")

      :ok =
        SQL.execute_batch(copy, """
        delete from skillbook_entry_versions where entry_id not in (#{kept});
        delete from skillbook_entries where id not in (#{kept});
        update skillbook_settings set value = '#{revision}' where key = 'revision';
        """)

      write_rows(copy, for(n <- 1..gained, do: stored("gained-#{lost}-#{gained}-#{n}")))
      assert capture_log(refresh) =~ "lacks a write that the catalog shows"
      assert names(book) == all.("select name from skillbook_entries order by name")
      refute capture_log(refresh) =~ "lacks a write"
    end

    GenServer.stop(other)
  end

  test "an unreadable row is skipped and logged", %{tmp_dir: folder} do
    book = open(folder)

    texts = "expected a list of texts in JSON in the column"

    rows = [
      {"kind", "poem", ~s(expected skill or note in the column kind, got "poem")},
      {"source", "", ~s(expected user or agent or import in the column source, got "")},
      {"tags", "[1]", ~s(#{texts} tags, got "[1]")},
      {"labels", "no list", ~s(#{texts} labels, got "no list")},
      {"writers", ~s([{"a": 1}]), texts <> ~S( writers, got "[{\"a\": 1}]")},
      {"enabled", "on", ~s(expected 1 or 0 in the column enabled, got "on")}
    ]

    for {column, value, reason} <- rows do
      [bad, good, other] = for name <- ~w(bad good other), do: "#{name}-#{column}"
      write_rows(sql(book), [stored(bad), stored(good)])
      update = "update skillbook_entries set #{column} = $1 where name = $2"
      SQL.query!(sql(book), update, [value, bad])
      log = capture_log(fn -> Follower.sync(book, write_rows(sql(book), [stored(other)])) end)

      assert log =~
               "skips the row #{id(book, bad)} of skillbook_entries, which cannot be read: " <>
                 reason

      assert good in names(book) and bad not in names(book)
    end
  end

  test "readers see whole generations during a thousand changes", %{tmp_dir: folder} do
    book = open(folder)

    change = fn n ->
      for {id, name} <- [{1, "a"}, {2, "b"}], do: stored(name, id: id, content: "#{n}")
    end

    Watcher.put_stored(book, rows(change.(0)), :some)

    readers =
      for _ <- 1..2 do
        Task.async(fn ->
          Enum.reduce_while(Stream.cycle([0]), 0, fn _, seen ->
            view = View.all(book)
            # Both come in one change.
            [one, other] =
              for name <- ["a", "b"], do: String.to_integer(View.fetch!(view, name).body)

            assert one == other and one >= seen
            if one == 1000, do: {:halt, one}, else: {:cont, one}
          end)
        end)
      end

    for n <- 1..1000, do: Watcher.put_stored(book, rows(change.(n)), :some)
    assert Task.await_many(readers, @timeout) == [1000, 1000]
  end

  test "each of many writers sees its write, also during a reload of files", %{tmp_dir: folder} do
    files = Path.join(folder, "files")
    write(files, for(n <- 1..300, do: {"x/n#{n}.md", page("x.n#{n}")}))
    book = open(folder, sources: [files], watch: false)
    reloads = Task.async(fn -> for _ <- 1..20, do: Skillbook.reload(book) end)

    writers =
      for writer <- 1..8 do
        Task.async(fn ->
          for n <- 1..10 do
            name = "w#{writer}-#{n}"
            assert Follower.sync(book, write_rows(sql(book), [stored(name)])) == :ok
            assert body(book, name) == "Body of #{name}"
          end
        end)
      end

    Task.await_many([reloads | writers], @timeout)
    assert length(names(book)) == 380
  end

  for what <- [Follower, Watcher] do
    @tag capture_log: true
    test "nothing is lost when the #{inspect(what)} crashes", %{tmp_dir: folder} do
      book = open(folder)
      Follower.sync(book, write_rows(sql(book), [stored("before")]))
      pid = process(book, unquote(what))
      # The writer waits while the watcher is suspended, and then for a process that no longer
      # exists.
      :sys.suspend(process(book, unquote(what)))
      revision = write_rows(sql(book), [stored("milk")])
      writer = Task.async(fn -> Follower.sync(book, revision) end)
      Process.exit(pid, :kill)
      assert Task.await(writer, @timeout) == :ok
      assert names(book) == ["before", "milk"]
      another(book, unquote(what), pid)
      Follower.sync(book, write_rows(sql(book), [stored("rye")]))
      assert names(book) == ["before", "milk", "rye"]
    end
  end

  @tag capture_log: true
  test "a crash of an in-memory database loses its entries", %{tmp_dir: folder} do
    book = open(folder, store: ":memory:")
    Follower.sync(book, write_rows(sql(book), [stored("milk")]))
    assert names(book) == ["milk"]
    pid = process(book, Store)
    follower = process(book, Follower)
    Process.exit(pid, :kill)
    another(book, Follower, follower)
    assert names(book) == []
    assert Follower.sync(book, write_rows(sql(book), [stored("bread")])) == :ok
    assert names(book) == ["bread"]
  end

  test "a writer gets an error when the book stops", %{tmp_dir: folder} do
    name = :"stopped_#{System.unique_integer([:positive])}"

    book =
      open(folder,
        store: {FakeSQL, path: Path.join(folder, "store.db"), name: name},
        store_poll: @never
      )

    capture_log(fn ->
      FakeSQL.away(name, true)
      :telemetry.listen(book)
      writer = Task.async(fn -> Follower.sync(book, 7) end)
      assert_receive {[:skillbook, :store, :away], _, %{book: ^book}}, @timeout
      stop_supervised!(book)

      text =
        "the book #{inspect(book)} stopped before its catalog showed revision 7; the write " <>
          "is in the database"

      assert {:error, %SQL.Error{kind: :closed} = error} = Task.await(writer, @timeout)
      assert Exception.message(error) == text
      assert {:error, ^error} = Follower.sync(book, 7)
    end)
  end

  test "the option store_poll" do
    for value <- [0, :infinity, "1"] do
      assert {:error, error} = Skillbook.start_link(name: :polled, store_poll: value)

      assert Exception.message(error) ==
               "expected a number of milliseconds as the option :store_poll of a book, got: " <>
                 "#{inspect(value)}"
    end
  end
end
