# Measures what a write, a view and a search cost as the store grows: stored entries of 0.9 KB, 50
# for each tenant, apart by `tenant:` or only by a label and a grant:
#
#     bin/bench scale [SIZE...]                 by default 1000 10000 100000
#     bin/postgres-for-tests run bin/bench scale 1000 10000
#
# With a PostgreSQL server, which runs without fsync here, it measures both databases. The peer of
# a write is an insert by a prepared statement of the same driver. SKILLBOOK_PLOTS=FOLDER also
# writes a plot for each database, docs/images/scale-….svg with docs/images.

Code.require_file("measure.exs", __DIR__)
Code.require_file("plot.exs", __DIR__)

defmodule Bench.Scale do
  @moduledoc false

  import Bench.Measure, only: [driver: 3, duration: 1, rate: 1, resident: 0]

  alias Skillbook.SQL.{Postgres, SQLite}
  alias Skillbook.Store.Table
  alias Skillbook.{Entry, Profile, SQL, Store, Stored, View}

  @own 50
  @writes 200
  @changes 1_000
  @rounds 5

  @rows [
    insert: "an insert by the driver",
    start: "start of a book",
    memory: "memory of it, of the text",
    active: "the same when 200 tenants are read, of theirs",
    create: "created, one writer",
    together: "created, 8 writers of 8 tenants",
    append: "appended, and in the writer's next view",
    missing: "a name that is not there",
    first: "a tenant's view and prompt, the first",
    again: "the same again",
    other: "the same after another tenant's write",
    searched: "a tenant's search, the first",
    search: "the same again",
    written: "the same after the tenant's own write",
    list: "the tenant's entries listed from the store",
    page: "the first 50 of them",
    reads: "a read: 50, 99 and 99.9 of 100 in",
    reads_other: "the same during 1,000 changes of others",
    reads_own: "the same during 1,000 changes of its own"
  ]

  def run(sizes) do
    databases =
      [{"SQLite", fn -> sqlite() end}] ++
        case System.get_env("SKILLBOOK_POSTGRES") do
          nil -> []
          url -> [{"PostgreSQL", fn -> postgres(url) end}]
        end

    for {database, open} <- databases, by <- [:tenant, :label] do
      columns = for size <- sizes, do: measure(open, by, size)
      IO.puts("\n#{database}, apart by #{by}\n")
      IO.puts(row(["entries (tenants)" | Enum.map(sizes, &"#{&1} (#{div(&1, @own)})")]))

      for {key, name} <- @rows,
          do: IO.puts(row([name | Enum.map(columns, &cell(&1[key], &1.insert))]))

      if folder = System.get_env("SKILLBOOK_PLOTS"),
        do: plot(folder, "#{database}, apart by #{by}", sizes, columns)
    end
  end

  # Nanoseconds, with `:rate` shown as how many a second; or the memory beside that of the texts.
  defp cell({:rate, ns}, {:rate, ns}), do: rate(ns)
  defp cell({:rate, ns}, {:rate, insert}), do: "#{rate(ns)} #{Float.round(insert / ns, 2)}x"
  defp cell({:time, ns}, _insert), do: duration(ns)
  defp cell({:times, list}, _insert), do: Enum.map_join(list, "; ", &duration/1)

  defp cell({:memory, memory, bytes}, _insert),
    do: "#{Float.round(memory / bytes, 1)}x of #{Float.round(bytes / 1_000_000, 1)} MB"

  defp plot(folder, title, sizes, columns) do
    panels =
      for {key, name} <- @rows do
        values = for column <- columns, do: plotted(column[key])
        {name, Enum.zip([sizes, values, Enum.map(columns, &cell(&1[key], &1.insert))])}
      end

    name = title |> String.downcase() |> String.replace(~r/[^a-z]+/, "-")
    File.write!(Path.join(folder, "scale-#{name}.svg"), Bench.Plot.panels(title, panels))
  end

  defp plotted({:memory, memory, bytes}), do: memory / bytes
  defp plotted({:times, list}), do: List.last(list)
  defp plotted({_kind, ns}), do: ns

  defp row([name | cells]),
    do:
      String.pad_trailing(name, 46) <>
        Enum.map_join(cells, &String.pad_leading(to_string(&1), 18))

  defp sqlite do
    path =
      Path.join(System.tmp_dir!(), "skillbook_scale_#{System.unique_integer([:positive])}.db")

    {SQLite, [path: path], path,
     fn _sql -> for file <- Path.wildcard(path <> "*"), do: File.rm!(file) end}
  end

  defp postgres(url) do
    drop = fn sql ->
      for table <- ["skillbook_entry_versions", "skillbook_entries", "bench"],
          do: SQL.query!(sql, "delete from #{table}")
    end

    {Postgres, [url: url, ssl: false], url, drop}
  end

  defp measure(open, by, size) do
    {module, options, place, drop} = open.()
    name = Module.concat(__MODULE__, "Database#{System.unique_integer([:positive])}")
    {:ok, pid} = module.start_link([name: name] ++ options)
    sql = module.handle(name)
    store = {module, options}
    # This connection stays, so that the file's log does too.
    SQL.query!(
      sql,
      "create table if not exists bench (id bigint primary key, title text not null)"
    )

    # Migrates.
    {:ok, book} = start(store)
    Supervisor.stop(book)
    SQL.query!(sql, "delete from bench")
    [insert, _read] = driver(place, @writes, 10)
    bytes = fill(sql, by, size)

    # The first start after so many writes gives back memory that they took.
    {:ok, book} = start(store)
    Supervisor.stop(book)
    before = resident()
    {started, {:ok, book}} = :timer.tc(fn -> start(store) end)
    memory = resident() - before
    figures = read(by, size, before)

    try do
      Map.merge(figures, %{
        insert: {:rate, insert},
        start: {:time, started * 1000},
        memory: {:memory, memory, bytes}
      })
    after
      Supervisor.stop(book)
      drop.(sql)
      GenServer.stop(pid)
    end
  end

  defp start(store), do: Skillbook.start_link(name: :scale, store: store, watch: false)

  defp profile(:tenant, at), do: Profile.new!(id: "user", tenant: "tenant-#{at}")

  defp profile(:label, at),
    do: Profile.new!(id: "user-#{at}", grants: ["tenant-#{at}"], labels: ["tenant-#{at}"])

  defp fill(sql, by, size) do
    now = DateTime.truncate(DateTime.utc_now(), :second)

    for first <- 0..(size - 1)//1000, reduce: 0 do
      bytes ->
        {:ok, more} =
          SQL.transaction(sql, fn sql ->
            sizes =
              for at <- first..min(first + 999, size - 1) do
                content = content(at)
                tenant = "tenant-#{rem(at, div(size, @own))}"

                stored = %Stored{
                  name: "entry-#{at}",
                  kind: :skill,
                  title: "Entry number #{at}",
                  description: "Describes the work of number #{at}",
                  content: content,
                  tenant: if(by == :tenant, do: tenant),
                  labels: if(by == :label, do: [tenant], else: []),
                  source: :user,
                  author: "user",
                  created_at: now,
                  updated_at: now,
                  hash: Entry.digest(content)
                }

                {statements, fun} =
                  Table.transaction(nil, nil, fn sql, revision, _named ->
                    Table.put(sql, stored, :create, :user, revision)
                  end)

                {:ok, _} = SQL.transaction(sql, statements, fun)

                byte_size(content)
              end

            {:ok, Enum.sum(sizes)}
          end)

        bytes + more
    end
  end

  # 0.9 KB of words, of which some are rare.
  defp content(at) do
    words =
      for step <- 1..120 do
        n = :erlang.phash2({at, step}, if(rem(step, 4) == 0, do: 20_000, else: 300))
        "word#{n}"
      end

    Enum.join(words, " ")
  end

  defp read(by, size, before) do
    profiles = for at <- 0..min(div(size, @own) - 1, 199), do: profile(by, at)
    [one, two | _] = profiles
    turn = fn profile -> Skillbook.prompt(Skillbook.view(:scale, profile)) end
    search = fn profile -> Skillbook.search(Skillbook.view(:scale, profile), "word7 number") end

    first = each(Enum.take(profiles, 20), turn)
    Enum.each(profiles, turn)
    active = {:memory, resident() - before, byte_size(content(0)) * @own * length(profiles)}
    again = best(fn -> each(1..100, fn _ -> turn.(one) end) end)

    other = best(fn -> after_writes(two, fn -> turn.(one) end) end)
    searched = each(Enum.take(profiles, 20), search)
    again_searched = best(fn -> each(1..100, fn _ -> search.(one) end) end)

    written = best(fn -> after_writes(one, fn -> search.(one) end) end)
    created = each(1..@writes, fn at -> create(one, "one-#{at}") end)
    together = together(profiles)

    {:ok, _} =
      Store.create(Skillbook.view(:scale, one), %{title: "Appended", kind: :note, content: ""})

    append = fn _ ->
      mark = "#{System.unique_integer()}\n"
      view = Skillbook.view(:scale, one)
      {:ok, _} = Store.update(view, "appended", %{edit: {:append, mark}})
      true = String.ends_with?(View.fetch!(Skillbook.view(:scale, one), "appended").body, mark)
    end

    appended = each(1..@writes, append)
    view = Skillbook.view(:scale, one)

    missing =
      best(fn -> each(1..5, fn at -> {:error, _} = Store.fetch(view, "entri-#{at}x") end) end)

    list = best(fn -> each(1..5, fn _ -> {:ok, _} = Store.list(view) end) end)
    page = best(fn -> each(1..20, fn _ -> {:ok, _} = Store.list(view, limit: 50) end) end)

    changes = fn profile -> fn -> for at <- 1..@changes, do: create(profile, "read-#{at}") end end
    reads = reads(one, fn -> Process.sleep(1_000) end)
    reads_other = reads(one, changes.(two))
    reads_own = reads(one, changes.(one))

    %{
      create: {:rate, created},
      together: {:rate, together},
      append: {:rate, appended},
      missing: {:time, missing},
      active: active,
      first: {:time, first},
      again: {:time, again},
      other: {:time, other},
      searched: {:time, searched},
      search: {:time, again_searched},
      written: {:time, written},
      list: {:time, list},
      page: {:time, page},
      reads: {:times, reads},
      reads_other: {:times, reads_other},
      reads_own: {:times, reads_own}
    }
  end

  defp create(profile, name) do
    fields = %{
      title: "#{name}-#{System.unique_integer([:positive])}",
      kind: :note,
      content: content(7)
    }

    {:ok, entry} = Store.create(Skillbook.view(:scale, profile), fields)
    entry
  end

  defp together(profiles) do
    writers = Enum.take(profiles, 8)

    {time, _} =
      :timer.tc(fn ->
        writers
        |> Enum.map(&Task.async(fn -> for at <- 1..@writes, do: create(&1, "many-#{at}") end))
        |> Task.await_many(:infinity)
      end)

    time * 1000 / (@writes * length(writers))
  end

  # The nanoseconds of a tenant's reads while something else happens, at the 50th, 99th and 99.9th
  # of 100. On a busy machine the operating system is in them, as it is in those of a quiet book.
  defp reads(profile, meanwhile) do
    task = Task.async(meanwhile)
    times = timed(profile, task.pid, [])
    Task.await(task, :infinity)
    times = times |> Enum.sort() |> List.to_tuple()
    for part <- [0.5, 0.99, 0.999], do: elem(times, trunc(part * tuple_size(times)))
  end

  defp timed(profile, pid, times) do
    began = System.monotonic_time(:nanosecond)
    {:ok, _entry} = View.fetch(Skillbook.view(:scale, profile), "entry-0")
    times = [System.monotonic_time(:nanosecond) - began | times]
    if Process.alive?(pid), do: timed(profile, pid, times), else: times
  end

  defp best(fun), do: Enum.min(for _ <- 1..@rounds, do: fun.())

  # The nanoseconds of each.
  defp each(items, fun) do
    {time, _} = :timer.tc(fn -> Enum.each(items, fun) end)
    time * 1000 / Enum.count(items)
  end

  # The median over 20 writes of the nanoseconds that a function takes after one.
  defp after_writes(writer, fun) do
    times =
      for at <- 1..20 do
        create(writer, "written-#{at}")
        {time, _} = :timer.tc(fun)
        time * 1000
      end

    times |> Enum.sort() |> Enum.at(div(length(times), 2))
  end
end

case System.argv() do
  [] -> Bench.Scale.run([1_000, 10_000, 100_000])
  sizes -> sizes |> Enum.map(&String.to_integer/1) |> Bench.Scale.run()
end
