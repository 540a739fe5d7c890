defmodule Skillbook.Store.DurabilityTest do
  # Writers in another operating system process, which is killed at random moments: while it
  # writes, starts or migrates a database, repeatedly on the same one.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Store.Follower
  alias Skillbook.{PostgresCase, SQL, View}

  @moduletag :tmp_dir
  @moduletag timeout: 3_600_000

  # Of each kind. SKILLBOOK_KILLS=200 for a long run.
  @rounds %{
    sqlite: String.to_integer(System.get_env("SKILLBOOK_KILLS", "40")),
    postgres: String.to_integer(System.get_env("SKILLBOOK_KILLS", "3"))
  }
  # Each of a tenant, which on PostgreSQL write at the same time.
  @notes 4
  @group 20

  # Each acknowledged write becomes a line of `log`, without a process or buffer of the virtual
  # machine in between.
  @script ~S"""
  [database, log, round, notes, group, began] = System.argv()
  {:ok, _} = Application.ensure_all_started(:skillbook)
  File.write!(began, "")
  numbers = 0..String.to_integer(notes)
  profiles = for number <- numbers, do: [id: "#{number}", tenant: "t#{number}"]
  store = if database =~ "://", do: {Skillbook.SQL.Postgres, url: database}, else: database
  options = [store: store, profiles: profiles, watch: false, builtins: false]
  {:ok, _} = Skillbook.start_link([name: :killed] ++ options)

  writer = fn number ->
    view = Skillbook.view(:killed, "#{number}")
    {:ok, log} = File.open(log, [:append, :raw])
    name = "note-#{round}-#{number}"

    for line <- Stream.iterate(1, &(&1 + 1)) do
      text = "#{round} #{number} #{line}\n"

      written =
        case Skillbook.Store.fetch(view, name) do
          {:ok, _} -> Skillbook.Store.update(view, name, %{edit: {:append, text}})
          {:error, _} ->
            fields = %{name: name, kind: :note, title: name, content: text}
            Skillbook.Store.create(view, fields)
        end

      {:ok, stored} = written
      stored = Map.get(stored, :entry, stored)
      :ok = :file.write(log, "#{name} #{stored.version} #{text}")
    end
  end

  # Each is an entry of its own, and several are committed together.
  importer = fn ->
    view = Skillbook.view(:killed, "0")
    {:ok, log} = File.open(log, [:append, :raw])

    for line <- Stream.iterate(1, &(&1 + 1)) do
      entries =
        for number <- 1..String.to_integer(group) do
          name = "import-#{round}-#{line}-#{number}"
          %{name: name, kind: :note, title: name, content: "#{name}\n"}
        end

      {:ok, results} = Skillbook.Store.put_all(view, entries)

      for {:ok, %{entry: entry}} <- results,
          do: :ok = :file.write(log, "#{entry.name} #{entry.version} #{entry.content}")
    end
  end

  spawn_link(importer)
  for number <- 1..String.to_integer(notes), do: spawn_link(fn -> writer.(number) end)
  # The process ends with its standard input.
  IO.read(:stdio, :line)
  System.halt(1)
  """

  for dialect <- [:sqlite, :postgres] do
    test "a killed process loses no acknowledged write and repeats no version: #{dialect}",
         %{tmp_dir: folder} do
      {database, rounds} = {database(unquote(dialect), folder), @rounds[unquote(dialect)]}
      reader = if unquote(dialect) == :postgres, do: reader(database)
      log = Path.join(folder, "acknowledged")

      for round <- 1..rounds do
        File.rm(log)
        kill(database, log, round, log, 60)
        verify(database, log, reader)
      end

      # While the book starts on what is there.
      for round <- (rounds + 1)..(2 * rounds) do
        File.rm(log)
        File.touch!(log)
        kill(database, log, round, Path.join(folder, "began"), 120)
        verify(database, log, reader)
      end
    end

    test "a killed migration is none, or whole, and the next start goes on: #{dialect}",
         %{tmp_dir: folder} do
      whole = database(unquote(dialect), folder)
      schema = schema(whole)

      all = versions(whole)

      # The next one is killed later if this one was killed before all migrations, or earlier.
      {stopped, _within} =
        Enum.map_reduce(1..@rounds[unquote(dialect)], 200, fn round, within ->
          database = database(unquote(dialect), folder)
          log = Path.join(folder, "acknowledged-#{round}")
          File.touch!(log)
          kill(database, log, round, Path.join(folder, "began"), within)
          found = versions(database)
          assert schema(database) == schema
          verify(database, log, nil)
          {found, within(within, found, all)}
        end)

      # Not all were killed before the first one, or after the last.
      if @rounds[unquote(dialect)] >= 40, do: assert(stopped |> Enum.uniq() |> length() > 1)
    end
  end

  defp within(within, [], _all), do: 2 * within
  defp within(within, all, all), do: div(within, 2) + 1
  defp within(within, _found, _all), do: within

  defp database(:sqlite, folder),
    do: Path.join(folder, "#{System.unique_integer([:positive])}.db")

  defp database(:postgres, _folder), do: PostgresCase.database()

  # A book on another node, which lives on.
  defp reader(url), do: book(store: {SQL.Postgres, [url: url]}, watch: false, builtins: false)

  # The versions that are marked as done. No lock may be left.
  defp versions(database) do
    with_database(database, fn sql ->
      case SQL.query(sql, "select version from skillbook_migrations order by version") do
        {:ok, %{rows: rows}} -> List.flatten(rows)
        {:error, %{kind: :no_such_table}} -> []
      end
    end)
  end

  # The tables after all migrations.
  defp schema(database) do
    with_database(database, fn sql ->
      {:ok, _} = SQL.Migrations.run(sql)
      SQL.query!(sql, schema_of(SQL.dialect(sql))).rows
    end)
  end

  defp schema_of(:sqlite), do: "select name, sql from sqlite_master order by name"

  defp schema_of(:postgres) do
    """
    select table_name || ' ' || column_name || ' ' || data_type from information_schema.columns
    where table_schema = 'public'
    union all select indexdef from pg_indexes where schemaname = 'public' order by 1
    """
  end

  # Kills the process up to so many milliseconds after it has written a file.
  defp kill(database, log, round, file, within) do
    began = Path.join(Path.dirname(log), "began")
    File.rm(began)
    ebin = Application.app_dir(:skillbook, "ebin")
    numbers = Enum.map([round, @notes, @group], &to_string/1)
    arguments = ["-pa", ebin, "-e", @script, database, log] ++ numbers ++ [began]

    port =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: arguments
      ])

    {:os_pid, os_pid} = Port.info(port, :os_pid)
    await_file(port, file, if(file == log, do: 1, else: 0))
    Process.sleep(:rand.uniform(within))
    {_, 0} = System.cmd("kill", ["-KILL", to_string(os_pid)])
    assert_receive {^port, {:exit_status, 137}}
  end

  defp await_file(port, file, size) do
    receive do
      {^port, {:data, output}} ->
        flunk("the writers failed: #{output}")

      {^port, {:exit_status, status}} ->
        flunk("the writers ended by themselves with status #{status}")
    after
      5 ->
        if match?({:ok, %{size: found}} when found >= size, File.stat(file)),
          do: :ok,
          else: await_file(port, file, size)
    end
  end

  # A lock that stays with the killed process would be an error.
  defp with_database(database, fun) do
    name = :"durability_#{System.unique_integer([:positive])}"

    {module, options} =
      if database =~ "://",
        do: {SQL.Postgres, [url: database, queue_timeout: 2_000]},
        else: {SQL.SQLite, [path: database, busy_timeout: 0]}

    {:ok, server} = module.start_link([name: name] ++ options)
    sql = module.handle(name)

    if module == SQL.SQLite,
      do: assert(SQL.query!(sql, "pragma integrity_check").rows == [["ok"]])

    result = fun.(sql)
    GenServer.stop(server)
    result
  end

  defp verify(database, log, reader) do
    with_database(database, fn sql ->
      verify_entries(sql, log)
      {:ok, revision} = Skillbook.Store.Table.revision(sql)

      # A revision of the future would be one that a reader misses.
      outside = "revision < 1 or revision > $1"
      count = "select count(*) from skillbook_entries where " <> outside
      assert SQL.query!(sql, count, [String.to_integer(revision)]).rows == [[0]]
      if reader, do: verify_reader(reader, sql, String.to_integer(revision))
    end)
  end

  defp verify_reader(reader, sql, revision) do
    :ok = Follower.sync(reader, revision)
    stored = SQL.query!(sql, "select name, content from skillbook_entries").rows

    shown =
      for %{source: "store"} = entry <- View.entries(View.all(reader)),
          do: [entry.name, entry.body]

    assert Enum.sort(shown) == Enum.sort(stored)
  end

  defp verify_entries(sql, log) do
    versions =
      SQL.query!(sql, """
      select e.name, v.version, v.content
      from skillbook_entry_versions v join skillbook_entries e on e.id = v.entry_id
      order by v.version
      """).rows

    by_name =
      Enum.group_by(versions, &hd/1, fn [_name, version, content] -> {version, content} end)

    for {_name, versions} <- by_name do
      assert Enum.map(versions, &elem(&1, 0)) == Enum.to_list(1..length(versions))
    end

    for line <- log |> File.read!() |> String.split("\n", trim: true) do
      [name, version, text] = String.split(line, " ", parts: 3)
      {_version, content} = Enum.at(by_name[name], String.to_integer(version) - 1)
      assert String.ends_with?(content, text <> "\n")
    end

    current = SQL.query!(sql, "select name, version, content from skillbook_entries").rows

    for [name, version, content] <- current do
      assert List.last(by_name[name]) == {version, content}
      lines = String.split(content, "\n", trim: true)
      assert lines == Enum.uniq(lines)
    end
  end
end
