# Measures the store on both databases against prepared statements of the same drivers in Rust,
# in the same run; the cost of a change in a book with many stored entries; and search, against
# FTS5 and `tsvector` over the same texts:
#
#     bin/postgres-for-tests run bin/bench store [ENTRIES, default 10000]
#
# That PostgreSQL server runs without fsync, so its writes measure the round trip only. SQLite
# syncs.

Code.require_file("measure.exs", __DIR__)
Code.require_file("peer.exs", __DIR__)

defmodule Bench.Store do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.SQL.{Postgres, SQLite}
  alias Skillbook.Store.Table
  alias Skillbook.{Catalog, Entry, SQL, Store, Stored, View}

  @writes 200
  @reads 2000
  @rounds 3

  @words ["accessibility", "write tests", "deploy a docker container"]

  def run(count, url) do
    head()
    path = Path.join(System.tmp_dir!(), "skillbook_bench_#{System.pid()}.db")

    try do
      database("SQLite", {SQLite, path: path}, path, count, fn _book -> :ok end)
      database("PostgreSQL", {Postgres, url: url, ssl: false}, url, count, &search/1)
    after
      for file <- Path.wildcard(path <> "*"), do: File.rm!(file)
    end
  end

  defp database(label, {module, options}, place, count, more) do
    name = Module.concat(__MODULE__, label)
    {:ok, pid} = module.start_link([name: name] ++ options)
    sql = module.handle(name)
    plain = sql(label, sql, place)

    {:ok, book} = Skillbook.start_link(book(:bench, {module, options}))
    writes("#{label}, a new book", plain)
    Supervisor.stop(book)

    for table <- ["skillbook_entry_versions", "skillbook_entries"],
        do: SQL.query!(sql, "delete from #{table}")

    bytes = fill(sql, count)
    book = start(label, {module, options}, sql, bytes, count)
    reads("#{label}, #{count} entries", sql, plain)
    writes("#{label}, #{count} entries", plain)
    other_book(label, {module, options}, count)
    more.(:bench)
    Supervisor.stop(book)
    GenServer.stop(pid)
  end

  defp book(name, store), do: [name: name, store: store, watch: false]

  # The nanoseconds of a write and a read by prepared statements.
  defp sql(label, sql, place) do
    SQL.query!(sql, "drop table if exists bench")
    SQL.query!(sql, "create table bench (id bigint primary key, title text not null)")

    write = fn id ->
      SQL.query!(sql, "insert into bench (id, title) values ($1, $2)", [id, "title number #{id}"])
    end

    read = fn at ->
      id = rem(at, @writes) + 1
      [[^id, _]] = SQL.query!(sql, "select id, title from bench where id = $1", [id]).rows
    end

    rounds =
      for _ <- 1..@rounds do
        SQL.query!(sql, "delete from bench")
        [writes, reads] = driver(place, @writes, @reads)
        SQL.query!(sql, "delete from bench")

        [
          each(1..@writes, fn ids -> Enum.each(ids, write) end),
          each(1..@reads, fn ats -> Enum.each(ats, read) end),
          each(1..@reads, fn ats -> concurrently(ats, read) end),
          writes,
          reads
        ]
      end

    [write, read, reads, plain_write, plain_read] =
      rounds |> Enum.zip_with(& &1) |> Enum.map(&Enum.min/1)

    print("#{label}, SQL writes", "a prepared statement", [write, plain_write], &rate/1)
    print("#{label}, SQL reads", "a prepared statement", [read, plain_read], &rate/1)

    print(
      "#{label}, SQL reads of 8 processes",
      "a prepared statement, of 1",
      [reads, plain_read],
      &rate/1
    )

    %{write: plain_write, read: plain_read}
  end

  # The nanoseconds per item.
  defp each(items, fun) do
    {time, _} = :timer.tc(fn -> fun.(items) end)
    time * 1000 / Enum.count(items)
  end

  defp concurrently(items, fun),
    do:
      items
      |> Task.async_stream(fun, max_concurrency: 8, ordered: false, timeout: :infinity)
      |> Stream.run()

  # The time of a write until it is in the writer's next view.
  defp writes(label, plain) do
    view = Skillbook.view(:bench)
    number = System.unique_integer([:positive])
    name = fn at -> "written-#{number}-#{at}" end

    create = fn at ->
      fields = %{
        title: name.(at),
        description: "Number #{at}, for the bench",
        content: String.duplicate("A line.\n", 20)
      }

      {:ok, _} = Store.create(view, fields)
    end

    append = fn at ->
      {:ok, %{entry: %{content: content}}} =
        Store.update(view, name.(at), %{edit: {:append, "Line #{at}.\n"}})

      true = String.ends_with?(content, View.fetch!(Skillbook.view(:bench), name.(at)).body)
    end

    ats = 1..@writes
    best = fn fun -> Enum.min(for _ <- 1..@rounds, do: fun.()) end
    created = each(ats, fn ats -> Enum.each(ats, create) end)
    appended = best.(fn -> each(ats, fn ats -> Enum.each(ats, append) end) end)
    together = best.(fn -> each(ats, fn ats -> concurrently(ats, append) end) end)
    peer = "an insert by a prepared statement"
    print("#{label}: created", peer, [created, plain.write], &rate/1)
    print("#{label}: appended to", peer, [appended, plain.write], &rate/1)
    print("#{label}: appended to by 8 processes", peer, [together, plain.write], &rate/1)
    print("#{label}: one written and read", nil, [appended])
  end

  defp reads(label, sql, plain) do
    view = Skillbook.view(:bench)
    peer = "a select by a prepared statement"
    name = "entry-7"

    for {kind, fun} <- [
          {"fetched from the store", fn -> {:ok, %{name: ^name}} = Store.fetch(view, name) end},
          {"fetched by a view", fn -> {:ok, %{name: ^name}} = View.fetch(view, name) end}
        ] do
      best =
        Enum.min(for _ <- 1..@rounds, do: each(1..@reads, fn ats -> for _ <- ats, do: fun.() end))

      print("#{label}: #{kind}", peer, [best, plain.read], &rate/1)
    end

    columns = Enum.join(Table.columns() -- [:content], ", ")

    compare("#{label}: listed", "the same columns by SQL", [
      fn -> {:ok, [_ | _]} = Store.list(view) end,
      fn ->
        SQL.query!(sql, "select #{columns} from skillbook_entries where deleted_at is null")
      end
    ])
  end

  # The bodies of the corpus, repeated under other names.
  defp fill(sql, count) do
    {:ok, catalog} = Catalog.load([corpus_folder()])
    entries = Enum.filter(View.entries(View.all(catalog)), &(&1.description != ""))
    now = DateTime.truncate(DateTime.utc_now(), :second)

    {:ok, bytes} =
      SQL.transaction(sql, fn sql ->
        sizes =
          for {entry, at} <-
                entries |> Stream.cycle() |> Stream.take(count) |> Stream.with_index() do
            stored = %Stored{
              name: "entry-#{at}",
              kind: :skill,
              title: "#{String.slice(entry.title || entry.name, 0, 100)} #{at}",
              description: String.slice(entry.description, 0, 1024),
              content: entry.body,
              tags: Enum.take(entry.tags, 8),
              source: :user,
              author: "default",
              created_at: now,
              updated_at: now,
              hash: Entry.digest(entry.body)
            }

            # Stores the version at the revision of the row.
            {statements, fun} =
              Table.transaction(nil, nil, fn sql, revision, _named ->
                Table.put(sql, stored, :create, :user, revision)
              end)

            {:ok, stored} = SQL.transaction(sql, statements, fun)

            byte_size(stored.content)
          end

        {:ok, Enum.sum(sizes)}
      end)

    bytes
  end

  defp start(label, store, sql, bytes, count) do
    before = resident()
    {time, {:ok, book}} = :timer.tc(fn -> Skillbook.start_link(book(:bench, store)) end)
    after_start = resident()
    columns = Enum.join(Table.columns(), ", ")
    {plain, _} = :timer.tc(fn -> SQL.query!(sql, "select #{columns} from skillbook_entries") end)
    figures = [time * 1000, plain * 1000]
    print("#{label}, #{count} entries: a book started", "the same rows by SQL", figures)
    memory("#{label}, #{count} entries: memory of a book", after_start - before, bytes)
    book
  end

  # The time from a write to the message in another book on the same database.
  defp other_book(label, store, count) do
    {:ok, other} = Skillbook.start_link(book(:bench_other, store))
    :ok = Skillbook.subscribe(:bench_other)
    view = Skillbook.view(:bench)

    visible = fn ->
      mark = "#{System.unique_integer()}\n"
      {:ok, _} = Store.update(view, "entry-7", %{edit: {:append, mark}})
      await(mark)
    end

    compare("#{label}, #{count} entries: written, read in another book", nil, [visible])
    Supervisor.stop(other)
  end

  defp await(mark) do
    receive do
      {:skillbook, :bench_other, _change} -> :ok
    end

    body = View.fetch!(View.all(:bench_other), "entry-7").body
    if not String.ends_with?(body, mark), do: await(mark)
  end

  # Stored entries and files together.
  defp search(book) do
    view = Skillbook.view(book)
    entries = View.entries(view)
    fts = Bench.Peer.fts(entries)
    vectors = Bench.Peer.tsvector(Skillbook.Book.sql(Skillbook.Book.fetch!(book)), entries)

    finders = [
      {"SQLite FTS5", &Bench.Peer.fts_search(fts, &1)},
      {"PostgreSQL tsvector", &Bench.Peer.tsvector_search(vectors, &1)}
    ]

    for query <- @words, {peer, find} <- finders do
      compare("search of #{View.count(view)}, #{length(String.split(query))} words", peer, [
        fn -> Skillbook.search(view, query) end,
        fn -> find.(query) end
      ])
    end

    # Each text once, so that a query has one expected result.
    {:ok, catalog} = Catalog.load([corpus_folder()])
    view = View.all(catalog)
    entries = View.entries(view)
    fts = Bench.Peer.fts(entries)
    vectors = Bench.Peer.tsvector(vectors, entries)

    quality(view, [
      {"SQLite FTS5", &Bench.Peer.fts_search(fts, &1)},
      {"PostgreSQL tsvector", &Bench.Peer.tsvector_search(vectors, &1)}
    ])
  end
end

url =
  System.get_env("SKILLBOOK_POSTGRES") ||
    raise "expected SKILLBOOK_POSTGRES; see the top of this file"

System.argv() |> List.first("10000") |> String.to_integer() |> Bench.Store.run(url)
