# Migrates a database of version 8, with data in every table, to the common search index.
for dialect <- [:sqlite, :postgres] do
  defmodule Module.concat(Skillbook.SQL.SearchMigrationTest, Macro.camelize("#{dialect}")) do
    use Skillbook.SkillsCase, async: true

    import Skillbook.HandlerCase, only: [context: 1, execute: 2, run: 2]

    alias Skillbook.SQL.Migrations
    alias Skillbook.{Book, SQL, Vault, View}

    @moduletag :tmp_dir
    @moduletag :capture_log
    @moduletag dialect: dialect
    @moduletag timeout: 300_000

    @from_9 Enum.to_list(9..24)
    @from_10 tl(@from_9)
    @back_to_9 Enum.reverse(@from_9)
    @back_to_10 Enum.reverse(@from_10)
    @time "2026-02-17T12:00:00Z"

    # Referenced tables come first. Values of a row other than the texts "x" and the numbers 1.
    @tables [
      tasks: [
        title: "Water the beans",
        description: "In the garden",
        status: "todo",
        priority: "medium",
        archived_at: nil,
        parent_id: nil,
        due_date: nil
      ],
      task_tags: [],
      memories: [content: "Likes tea", category: "general", tags: "drinks,morning", owner: "ann"],
      entries: [
        name: "x",
        kind: "note",
        source: "user",
        deleted_at: nil,
        schedule: nil,
        timezone: nil,
        excluded_for: "[]"
      ],
      entry_versions: [kind: "note", excluded_for: "[]"],
      usage: [],
      settings: [],
      runs: [],
      run_steps: [],
      firings: [],
      document_segments: [vault: "drive", labels: "[]", documents: 1],
      documents: [
        vault: "drive",
        external_id: "1",
        producer: "put",
        path: "work/Plan.md",
        folder: "work",
        name: "Plan",
        title: "The quarter",
        aliases: ~s(["Outlook"]),
        tags: ~s(["finance/budget"]),
        links: "[]",
        frontmatter: ~s({"status":"open"})
      ],
      document_texts: [content: "Spending less on travel"],
      document_fields: [],
      document_terms: [documents: {:blob, <<1>>}, places: {:blob, <<1>>}]
    ]
    # Derived tables.
    @replaced ~w(skillbook_document_fields skillbook_document_segments skillbook_document_terms)

    defp old_database(%{tmp_dir: folder, dialect: dialect}) do
      place =
        if dialect == :sqlite,
          do: Path.join(folder, "old.db"),
          else: Skillbook.PostgresCase.database()

      {place, store} =
        {place, if(dialect == :sqlite, do: place, else: {SQL.Postgres, url: place})}

      sql = open(dialect, place)
      {:ok, [1 | _]} = Migrations.run(sql, Migrations.list(8))
      for {table, row} <- @tables, do: fill(sql, "skillbook_#{table}", row)
      {sql, place, store}
    end

    defp open(:sqlite, path) do
      name = :"old_#{System.unique_integer([:positive])}"
      start_supervised!({SQL.SQLite, path: path, name: name}, id: name)
      SQL.SQLite.handle(name)
    end

    defp open(:postgres, url), do: Skillbook.PostgresCase.start(url: url)

    defp fill(sql, table, given) do
      given = Map.new(given, fn {column, value} -> {to_string(column), value} end)

      pairs =
        for [column, type] <- columns(sql, table), column != "id" do
          {column, Map.get_lazy(given, column, fn -> value(column, type) end)}
        end

      {columns, values} = Enum.unzip(pairs)
      places = Enum.map_join(1..length(values), ", ", &"$#{&1}")

      SQL.query!(
        sql,
        "insert into #{table} (#{Enum.join(columns, ", ")}) values (#{places})",
        values
      )
    end

    defp value(column, _type)
         when column in ~w(tags labels proactive_for attachments writers aliases),
         do: "[]"

    defp value("bucket", _type), do: "2026-02-17"
    defp value(column, "text"), do: if(String.ends_with?(column, "at"), do: @time, else: "x")
    defp value(_column, _number), do: 1

    defp columns(sql, table) do
      query =
        if SQL.dialect(sql) == :sqlite,
          do: "select name, lower(type) from pragma_table_info($1) order by cid",
          else:
            "select column_name, data_type from information_schema.columns where table_name " <>
              "= $1 and is_generated = 'NEVER' order by ordinal_position"

      SQL.query!(sql, query, [table]).rows
    end

    defp tables(sql) do
      query =
        if SQL.dialect(sql) == :sqlite,
          do:
            "select name from sqlite_master where type = 'table' and name like 'skillbook%' " <>
              "and name not like '%_fts%'",
          else:
            "select table_name from information_schema.tables where table_name like 'skillbook%'"

      for [table] <- SQL.query!(sql, query).rows, do: table
    end

    # The rows of all remaining tables, with the columns of both versions.
    defp rows(sql, columns) do
      for {table, names} <- columns, into: %{} do
        {table, Enum.sort(SQL.query!(sql, "select #{Enum.join(names, ", ")} from #{table}").rows)}
      end
    end

    test "data of the previous version stays and is found", context do
      {sql, _place, store} = old_database(context)
      # A second segment with the same labels, and one with others.
      fill(sql, "skillbook_document_segments", vault: "drive", labels: "[]")
      fill(sql, "skillbook_document_segments", vault: "drive", labels: ~s(["board"]))

      for {segment, id, text} <- [
            {2, "2", "Spending on hotels"},
            {3, "3", "Spending on lawyers"}
          ] do
        note = [vault: "drive", external_id: id, path: "#{id}.md", links: "[]", frontmatter: "{}"]
        fill(sql, "skillbook_documents", [segment_id: segment] ++ note)
        fill(sql, "skillbook_document_texts", document_id: String.to_integer(id), content: text)
      end

      fill(sql, "skillbook_memories", content: "Of somebody else", owner: "bob")
      fill(sql, "skillbook_memories", content: "Owns a teapot", owner: "ann")
      fill(sql, "skillbook_tasks", title: "Deleted", archived_at: @time, parent_id: 1)

      tables = tables(sql)

      for table <- tables,
          do: assert({table, SQL.query!(sql, "select 1 from #{table}").rows} != {table, []})

      columns =
        for table <- tables -- ["skillbook_migrations" | @replaced],
            do: {table, for([name, _] <- columns(sql, table), name != "segment_id", do: name)}

      before = rows(sql, columns)
      book = book(builtins: false, store: store, vaults: [[name: "drive"]], watch: false)
      sql = Book.sql(Book.fetch!(book))
      # Later migrations add settings.
      new = for key <- ~w(connections operations server_approvals usage), do: [key, "0"]
      assert Map.update!(rows(sql, columns), "skillbook_settings", &(&1 -- new)) == before
      assert SQL.query!(sql, "select * from skillbook_search_unindexed").rows == []

      context = context(sql: sql)

      assert {:ok, %{data: %{tasks: [%{id: 1, title: "Water the beans"}]}}} =
               execute(context, "tasks.search --query garden")

      assert {:ok, %{data: %{total: 0}}} = execute(context, "tasks.search --query deleted")
      ann = %{context | profile: %{context.profile | id: "ann"}}
      # Existing numbers stay; new ones are counted per owner.
      assert {:ok, %{data: %{memories: memories}}} = execute(ann, "memory.search --query tea")
      assert Enum.map(memories, & &1.id) == [3, 1]
      assert run(ann, "memory.save --content New") =~ "Saved M-4 "

      found = fn view, query, options ->
        {:ok, found} = Vault.search(view, query, options)
        {found.total, Enum.map(found.hits, & &1.path)}
      end

      everyone = Skillbook.view(book, %Skillbook.Profile{id: "p"})
      all = View.all(book)
      assert found.(all, "spend", []) == {3, ["2.md", "3.md", "work/Plan.md"]}
      assert found.(everyone, "spend", []) == {2, ["2.md", "work/Plan.md"]}
      assert found.(everyone, nil, []) == {2, ["2.md", "work/Plan.md"]}

      for {query, options} <- [
            {"outlook", []},
            {"quarter", []},
            {"travel", [tags: ["finance"]]},
            {"travel", [folder: "work"]},
            {"travel", [fields: [{"Status", "open"}]]},
            {~s("less on travel"), []}
          ],
          do: assert({query, found.(everyone, query, options)} == {query, {1, ["work/Plan.md"]}})

      # Documents are replaced and deleted as before.
      :ok = Vault.put(book, "drive", %{id: "1", path: "work/Plan.md", content: "Saving"})
      assert found.(all, "travel", []) == {0, []}
      :ok = Vault.delete(book, "drive", "2")
      assert found.(all, "spend", []) == {1, ["3.md"]}
    end

    test "undoing the migration keeps tasks and memories", context do
      {sql, _place, _store} = old_database(context)

      columns =
        for table <- ~w(skillbook_tasks skillbook_memories),
            do: {table, for([name, _] <- columns(sql, table), do: name)}

      before = rows(sql, columns)
      {:ok, @from_9} = Migrations.run(sql)
      {:ok, @back_to_9} = Migrations.undo(sql, 9)

      assert rows(sql, columns) == before
      # The old index contains them again.
      match =
        if SQL.dialect(sql) == :sqlite,
          do: "skillbook_tasks_fts match 'bean'",
          else: "search @@ to_tsquery('english', 'bean')"

      from = if SQL.dialect(sql) == :sqlite, do: "skillbook_tasks_fts", else: "skillbook_tasks"
      assert [[1]] = SQL.query!(sql, "select count(*) from #{from} where #{match}").rows
      {:ok, @from_9} = Migrations.run(sql)
    end

    test "existing tasks and runs keep their ids, and have no labels", context do
      {_sql, _place, store} = old_database(context)
      book = book(builtins: false, store: store, watch: false)
      sql = Book.sql(Book.fetch!(book))

      for table <- ~w(skillbook_tasks skillbook_runs) do
        query = "select count(*) from #{table} where number is null or number <> id"
        assert SQL.query!(sql, query).rows == [[0]]
      end

      guest = %{context(sql: sql) | profile: %Skillbook.Profile{id: "guest"}}
      assert {:ok, %{data: %{task: %{id: 1, labels: []}}}} = execute(guest, "tasks.get T-1")
    end

    test "undoing the migration deletes tasks with labels", context do
      {sql, _place, _store} = old_database(context)
      {:ok, @from_9} = Migrations.run(sql)
      ann = %Skillbook.Profile{id: "ann", grants: ["private"]}
      view = %View{ref: nil, profile: ann, generation: 1}
      context = %{context(sql: sql) | profile: ann, view: view}
      run(context, "tasks.create --title Secret --labels private")
      run(context, "tasks.create --title Open --parent T-2")
      {:ok, @back_to_10} = Migrations.undo(sql, 10)

      assert SQL.query!(sql, "select title, parent_id from skillbook_tasks order by id").rows ==
               [["Water the beans", nil], ["Open", nil]]

      segments = "select labels from skillbook_search_segments where kind = 'task'"
      assert SQL.query!(sql, segments).rows == [["[]"]]
      {:ok, @from_10} = Migrations.run(sql)
    end

    @many 2_000
    @kills 6

    # Prints a line when it begins, and ends with its standard input. With `itself`, it ends in
    # the middle of the backfill, however fast the machine is: at the fourth of about nine puts.
    @script ~S"""
    [dialect, place | itself] = System.argv()
    {:ok, _} = Application.ensure_all_started(:skillbook)
    Code.ensure_loaded!(Skillbook.Search.Index)

    if itself != [] do
      tracer =
        spawn(fn ->
          for _ <- 1..4, do: receive(do: ({:trace, _pid, :call, _put} -> :ok))
          :erlang.halt(137, flush: false)
        end)

      :erlang.trace(:new, true, [:call, {:tracer, tracer}])
      :erlang.trace_pattern({Skillbook.Search.Index, :put, 3}, true, [:global])
    end

    store = if dialect == "sqlite", do: place, else: {Skillbook.SQL.Postgres, url: place}
    IO.puts("begins")
    {:ok, _} = Skillbook.start_link(name: :killed, store: store, watch: false, builtins: false)
    IO.puts("done")
    IO.read(:stdio, :line)
    System.halt(1)
    """

    test "after a crash the backfill continues when the database is opened", context do
      {sql, place, store} = old_database(context)

      {:ok, _} =
        SQL.transaction(sql, fn sql ->
          for number <- 2..@many do
            task = [
              title: "Task of word#{number}",
              status: "todo",
              priority: "low",
              archived_at: nil,
              due_date: nil
            ]

            fill(sql, "skillbook_tasks", task)
            fill(sql, "skillbook_memories", content: "Memory of word#{number}", owner: "ann")
          end

          {:ok, :filled}
        end)

      # The first ends itself in the middle, because a fast machine needs a few milliseconds for
      # everything; the others are killed at any time.
      assert interrupt(context.dialect, place, ["itself"], & &1) == :begun

      listed = "select count(*) from skillbook_search_unindexed"
      assert [[left]] = SQL.query!(sql, listed).rows
      assert left in 1..(2 * @many)

      for round <- 1..@kills,
          do: interrupt(context.dialect, place, [], &kill(&1, (round - 1) * 10))

      for table <- ~w(tasks memories),
          do: assert(SQL.query!(sql, "select count(*) from skillbook_#{table}").rows == [[@many]])

      book = book(builtins: false, store: store, vaults: [[name: "drive"]], watch: false)
      context = context(sql: Book.sql(Book.fetch!(book)))
      ann = %{context | profile: %{context.profile | id: "ann"}}

      assert {:ok, %{data: %{total: 1, tasks: [%{id: 77}]}}} =
               execute(context, "tasks.search --query word77 task")

      assert {:ok, %{data: %{total: 1, memories: [%{id: 77}]}}} =
               execute(ann, "memory.search --query word77 memory")

      assert {:ok, %{data: %{total: total}}} =
               execute(context, "tasks.search --query task --limit 1")

      assert total == @many - 1

      assert {:ok, %{data: %{total: ^total}}} =
               execute(ann, "memory.search --query memory --limit 1")

      assert {:ok, %{total: 1}} = Vault.search(View.all(book), "travel")
    end

    defp interrupt(dialect, place, more, stop) do
      ebin = Application.app_dir(:skillbook, "ebin")
      arguments = ["-pa", ebin, "-e", @script, to_string(dialect), place | more]
      options = [:binary, :exit_status, :stderr_to_stdout, args: arguments]
      port = Port.open({:spawn_executable, System.find_executable("elixir")}, options)
      said = await(port, "", "begins")
      stop.(port)
      if await(port, said, :end) =~ "done", do: :done, else: :begun
    end

    defp kill(port, milliseconds) do
      {:os_pid, os_pid} = Port.info(port, :os_pid)
      Process.sleep(milliseconds)
      {_, 0} = System.cmd("kill", ["-KILL", to_string(os_pid)])
    end

    defp await(port, said, wanted) do
      if is_binary(wanted) and said =~ wanted do
        said
      else
        receive do
          {^port, {:data, text}} -> await(port, said <> text, wanted)
          {^port, {:exit_status, 137}} when wanted == :end -> said
          {^port, {:exit_status, status}} -> flunk("ended with #{status}: #{said}")
        after
          60_000 -> flunk("nothing was said: #{said}")
        end
      end
    end
  end
end
