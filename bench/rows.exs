# Measures commands over 100,000 tasks and 100,000 memories of one profile, with 100,000
# memories of another profile: search, list, create and update. The peer is plain SQL over the
# same texts in the same run, with FTS5 or a tsvector. Without SKILLBOOK_POSTGRES, only SQLite
# is measured:
#
#     bin/bench rows [ROWS, default 100000]
#     bin/postgres-for-tests run bin/bench rows
#
# The peer's statements return the rows of the command and their total number. A command is
# measured from its line to its report. FTS5 and the tsvector index the memories of both
# profiles.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Rows do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.Search.Backfill
  alias Skillbook.{Book, SQL}

  @rounds 9
  @writes 50
  @batch 100
  @words ~w(budget travel audit launch garden report invoice meeting carol friday server) ++
           ~w(backup review design)

  def run(count) do
    Logger.configure(level: :error)
    head()
    path = Path.join(System.tmp_dir!(), "skillbook_bench_rows_#{System.pid()}.db")

    try do
      database("SQLite", path, count)

      case System.get_env("SKILLBOOK_POSTGRES") do
        nil -> IO.puts("PostgreSQL: skipped, SKILLBOOK_POSTGRES is not set")
        url -> database("PostgreSQL", {SQL.Postgres, url: url, ssl: false}, count)
      end
    after
      for file <- Path.wildcard(path <> "*"), do: File.rm!(file)
    end
  end

  defp database(label, store, count) do
    options = [builtins: ["tasks", "memory"], store: store, watch: false]
    {:ok, book} = Skillbook.start_link([name: :bench_rows] ++ options)
    sql = Book.sql(Book.fetch!(:bench_rows))
    fill(sql, count)
    {indexed, :ok} = time(fn -> Backfill.index(Book.fetch!(:bench_rows)) end)

    SQL.query!(
      sql,
      "update skillbook_tasks set segment_id = (select id from skillbook_search_segments " <>
        "where kind = 'task')"
    )

    {peer, _} = time(fn -> peer_index(sql) end)
    rate = "#{label}: #{3 * count} indexed, #{round(3 * count / indexed * 1.0e9)}/s"
    print(rate, "#{kind(sql)}, #{2 * count}", [indexed, peer])
    view = Skillbook.view(:bench_rows)

    for {kind, words} <- [
          {"a rare word", "word77"},
          {"a common word", "budget"},
          {"two common words", "budget garden"},
          {"a prefix", "lau"}
        ] do
      tasks = best(fn -> command(view, "tasks.search --query #{words}") end)

      print("#{label}: tasks.search of #{kind}", kind(sql), [
        tasks,
        best(fn -> peer_search(sql, "tasks", words) end)
      ])

      memories = best(fn -> command(view, "memory.search --query #{words}") end)
      theirs = best(fn -> peer_search(sql, "memories", words) end)
      print("#{label}: memory.search of #{kind}", kind(sql), [memories, theirs])
    end

    for {line, table, order} <- [
          {"tasks.search --status todo", "tasks", "due_date is null, due_date, id"},
          {"tasks.search --tags t7", "tasks", "id"},
          {"memory.search", "memories", "created_at desc, id desc"},
          {"memory.search --category fact", "memories", "created_at desc, id desc"}
        ] do
      ours = best(fn -> command(view, line) end)

      print("#{label}: #{line}", "all columns by SQL", [
        ours,
        best(fn -> peer_list(sql, table, line, order) end)
      ])
    end

    for {kind, line, statement} <- writes() do
      ours = each(fn at -> command(view, String.replace(line, "N", "#{at}")) end)
      theirs = each(fn at -> SQL.query!(sql, statement, ["A new title of word#{at}", at]) end)
      print("#{label}: #{kind}", "the row alone", [ours, theirs])
    end

    Supervisor.stop(book)
  end

  defp writes do
    row =
      "(title, status, priority, created_by, created_at, updated_at) " <>
        "select $1, 'todo', 'low', 'x', 'x', 'x'"

    [
      {"tasks.create", "tasks.create --title Task of word N",
       "insert into skillbook_tasks #{row} where $2 > 0"},
      {"tasks.update of a title", "tasks.update T-N --title Budget of word N",
       "update skillbook_tasks set title = $1 where id = $2"},
      {"tasks.update of a status", "tasks.update T-N --status in_progress",
       "update skillbook_tasks set status = substr($1, 1, 1) where id = $2"},
      {"memory.save", "memory.save --content Memory of word N",
       "update skillbook_memories set category = $1 where id = $2"}
    ]
  end

  defp command(view, line) do
    report = Skillbook.run(view, "```cmd\n#{line}\n```")
    [%{status: :ok}] = report.results
    report
  end

  # Texts of 12 words, one of them rare.
  defp fill(sql, count) do
    :rand.seed(:exsss, {1, 2, 3})

    text = fn number ->
      "#{Enum.map_join(1..11, " ", fn _ -> Enum.random(@words) end)} word#{number}"
    end

    tasks =
      "skillbook_tasks (number, title, description, status, priority, due_date, " <>
        "created_by, created_at, updated_at)"

    memories = "skillbook_memories (number, content, category, tags, owner, created_at)"
    at = "2026-02-17T12:00:00Z"

    for numbers <- Enum.chunk_every(1..count, @batch * 10) do
      {:ok, _} =
        SQL.transaction(sql, fn sql ->
          insert(sql, tasks, numbers, fn number ->
            status = if rem(number, 2) == 0, do: "todo", else: "done"

            [
              number,
              "Task #{number}",
              text.(number),
              status,
              "low",
              "2026-03-#{10 + rem(number, 20)}",
              "default",
              at,
              at
            ]
          end)

          for owner <- ["default", "other"],
              do:
                insert(sql, memories, numbers, fn number ->
                  [number, text.(number), Enum.at(~w(fact person), rem(number, 2)), "", owner, at]
                end)

          {:ok, :filled}
        end)
    end

    SQL.query!(
      sql,
      "insert into skillbook_task_tags (task_id, key, tag) " <>
        "select id, 't' || (id % 100), 't' || (id % 100) from skillbook_tasks"
    )

    for {kind, table} <- [task: "tasks", memory: "memories"],
        do:
          SQL.query!(
            sql,
            "insert into skillbook_search_unindexed " <>
              "select '#{kind}', id from skillbook_#{table}"
          )
  end

  defp insert(sql, into, numbers, row) do
    for part <- Enum.chunk_every(numbers, @batch),
        do: {:ok, _} = SQL.Values.insert(sql, into, Enum.map(part, row))
  end

  # The peers

  defp kind(sql),
    do: if(SQL.dialect(sql) == :sqlite, do: "SQLite FTS5", else: "PostgreSQL tsvector")

  defp peer_index(sql) do
    for {table, column} <- [tasks: "description", memories: "content"] do
      case SQL.dialect(sql) do
        :sqlite ->
          options = "tokenize = 'porter unicode61 remove_diacritics 2'"
          SQL.query!(sql, "create virtual table bench_#{table} using fts5 (body, #{options})")

          SQL.query!(
            sql,
            "insert into bench_#{table} (rowid, body) " <>
              "select id, #{column} from skillbook_#{table}"
          )

        :postgres ->
          for statement <- [
                "drop table if exists bench_#{table}",
                "create table bench_#{table} as " <>
                  "select id, to_tsvector('english', #{column}) as body from skillbook_#{table}",
                "create index bench_#{table}_body on bench_#{table} using gin (body)",
                "analyze"
              ],
              do: SQL.execute_batch(sql, statement)
      end
    end
  end

  defp peer_search(sql, table, words) do
    words = String.split(words)

    {id, where, order, query} =
      case SQL.dialect(sql) do
        :sqlite ->
          {"rowid", "bench_#{table} match $1", "rank",
           Enum.map_join(words, " AND ", &~s("#{&1}")) <> "*"}

        :postgres ->
          {"id", "body @@ q", "ts_rank(body, q) desc", Enum.join(words, " & ") <> ":*"}
      end

    from = if SQL.dialect(sql) == :sqlite, do: "", else: ", to_tsquery('english', $1) q"

    statement =
      "select #{id}, count(*) over () from bench_#{table}#{from} " <>
        "where #{where} order by #{order} limit 10"

    SQL.query!(sql, statement, [query])
  end

  defp peer_list(sql, table, line, order) do
    where =
      cond do
        line =~ "todo" -> "where status = 'todo'"
        line =~ "t7" -> "where id in (select task_id from skillbook_task_tags where key = 't7')"
        line =~ "fact" -> "where owner = 'default' and category = 'fact'"
        true -> "where owner = 'default'"
      end

    SQL.query!(
      sql,
      "select *, count(*) over () from skillbook_#{table} t " <>
        "#{where} order by #{order} limit 20"
    )
  end

  # Nanoseconds

  defp best(fun), do: for(_ <- 1..@rounds, do: elem(time(fun), 0)) |> Enum.min()

  defp each(fun),
    do:
      for(at <- 1..@writes, do: elem(time(fn -> fun.(at) end), 0))
      |> Enum.sort()
      |> Enum.at(div(@writes, 2))

  defp time(fun) do
    {time, result} = :timer.tc(fun)
    {time * 1000, result}
  end
end

System.argv() |> List.first("100000") |> String.to_integer() |> Bench.Rows.run()
