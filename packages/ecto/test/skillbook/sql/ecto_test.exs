defmodule Skillbook.SQL.EctoTest do
  use ExUnit.Case

  alias Skillbook.SQL.{Error, Migrations, SQLite}
  alias Skillbook.{EctoRepo, SQL}

  @moduletag :capture_log

  defmodule MySQL do
    def __adapter__, do: Ecto.Adapters.MyXQL
  end

  # Errors of each adapter for failed statements, from its documentation.
  defmodule Failing do
    def __adapter__, do: Ecto.Adapters.Postgres
    def in_transaction?, do: false

    def query(_statement, _params, []) do
      case Process.get(:fails) do
        {:returns, exception} -> {:error, exception}
        {:raises, exception} -> raise exception
        rows -> {:ok, %{columns: ["a"], rows: rows, num_rows: length(rows)}}
      end
    end
  end

  # A repo for PostgreSQL that sends its statements to the test.
  defmodule Turns do
    def __adapter__, do: Ecto.Adapters.Postgres
    def in_transaction?, do: Process.get(__MODULE__, false)

    def query(statement, _params, _options) do
      send(self(), {:asked, statement})
      {:ok, %{columns: ["a"], rows: [["0"]], num_rows: 1}}
    end

    def transaction(fun, []) do
      Process.put(__MODULE__, true)
      {:ok, fun.()}
    after
      Process.delete(__MODULE__)
      send(self(), {:asked, "commit"})
    end
  end

  setup do
    name = :"ecto_#{System.unique_integer([:positive])}"
    start_supervised!({SQLite, path: ":memory:", name: name})
    EctoRepo.put_database(name)
    start_supervised!({SQL.Ecto, repo: EctoRepo, name: :ecto_repo})
    {:ok, sql: SQL.Ecto.handle(:ecto_repo)}
  end

  defp table(sql), do: SQL.query!(sql, "create table t (id integer primary key, x text not null)")

  test "statements, parameters and counts pass through the repo", %{sql: sql} do
    table(sql)
    assert SQL.dialect(sql) == :sqlite

    for {statement, params, expected} <- [
          {"insert into t (x, id) values ($2, $1), ('$1', $3)", [1, "one", 2], {[], [], 2}},
          {"select x from t where id = $1", [2], {["x"], [["$1"]], 1}},
          {"update t set x = $1 where id > 5", ["a"], {[], [], 0}},
          {"delete from t where id = $1 returning x", [2], {["x"], [["$1"]], 1}}
        ] do
      {columns, rows, count} = expected

      assert SQL.query(sql, statement, params) ==
               {:ok, %{columns: columns, rows: rows, num_rows: count}}
    end
  end

  test "a batch runs up to the first statement that fails", %{sql: sql} do
    table(sql)

    batch = """
    create trigger a after insert on t begin update t set x = 'b;' where id = new.id; end;
    insert into t values (1, 'a'); insert into missing values (1); insert into t values (2, 'a')
    """

    assert {:error, %Error{kind: :no_such_table}} = SQL.execute_batch(sql, batch)
    assert SQL.query!(sql, "select * from t").rows == [[1, "b;"]]

    assert {:error, %Error{kind: :refused}} =
             SQL.execute_batch(sql, "insert into t values (3, 'a'); commit")
  end

  test "both dialects refuse statements before they reach the repo" do
    for {sql, dialect} <- [
          {SQL.Ecto.over(Failing), :postgres},
          {SQL.Ecto.over(EctoRepo), :sqlite}
        ],
        {statement, message} <- Skillbook.SQLConformance.refused(dialect) do
      error = %Error{kind: :refused, message: "#{message}\n  in: #{statement}", sql: statement}
      assert SQL.query(sql, statement) == {:error, error}

      assert {:error, %Error{kind: :refused}} =
               SQL.execute_batch(sql, "drop table t; " <> statement)
    end
  end

  test "semicolons in strings, names and comments do not end a statement", %{sql: sql} do
    for {statement, read} <- Skillbook.SQLConformance.quoted(:sqlite) do
      assert {statement, SQL.query!(sql, statement).rows} == {statement, [[read]]}
      assert SQL.execute_batch(sql, statement <> "\n; select 2") == :ok
    end
  end

  test "each write waits for other writers, whatever its first word is" do
    sql = SQL.Ecto.over(Turns)

    for {statement, turns} <- [
          {"select 1", false},
          {"with a as (select 1) select * from a", false},
          {"insert into t values (1)", true},
          {"with a as (select 1) insert into t select * from a", true},
          {"with a as (delete from t returning *) select * from a", true},
          {"explain analyze delete from t", true},
          {"select * from t for update", true}
        ] do
      SQL.query!(sql, statement)

      asked =
        for _ <- 1..10,
            {:asked, text} <- [receive(do: (message -> message), after: (0 -> nil))],
            do: text

      assert {statement, List.last(asked)} ==
               {statement, if(turns, do: "commit", else: statement)}

      assert Enum.any?(asked, &(&1 =~ "pg_advisory_xact_lock")) == turns
    end
  end

  test "a writer of parts waits for those of its parts, and takes its locks once" do
    locks = fn parts, waits ->
      sql = Turns |> SQL.Ecto.over(busy_timeout: 70) |> SQL.of_parts(parts, waits)
      {:ok, 1} = SQL.transaction(sql, fn sql -> SQL.transaction(sql, fn _ -> {:ok, 1} end) end)
      asked_of(&(&1 =~ ~r/lock/))
    end

    read = "select current_setting('lock_timeout')"
    [limit, back] = for value <- ["70", "'0'"], do: "set local lock_timeout = #{value}"
    assert [^read, ^limit, "select pg_advisory_xact_lock(" <> all, ^back] = locks.([:all], :wait)
    shared = "select pg_advisory_xact_lock_shared(" <> all

    assert [^read, ^limit, ^shared, "select pg_advisory_xact_lock(" <> a, ^back] =
             locks.([:a], :wait)

    assert [^read, ^limit, ^shared, one, other, ^back] = locks.([:b, :a], :wait)
    assert ("select pg_advisory_xact_lock(" <> a) in [one, other]

    assert locks.([:a], :now) ==
             [read, limit, shared, "set local lock_timeout = 1"] ++
               ["select pg_advisory_xact_lock(" <> a, back]

    # A transaction of the application may go on to other parts.
    Turns.transaction(fn -> SQL.transaction(handle([:a]), fn _ -> {:ok, 1} end) end, [])
    assert Enum.any?(asked_of(&(&1 =~ "lock(")), &(&1 == "select pg_advisory_xact_lock(" <> all))
    # A single statement is not of one part.
    SQL.query!(handle([:a]), "insert into t values (1)")
    assert asked_of(&(&1 =~ "lock(")) == ["select pg_advisory_xact_lock(" <> all]
  end

  defp handle(parts), do: Turns |> SQL.Ecto.over() |> SQL.of_parts(parts)

  defp asked_of(which) do
    receive do
      {:asked, text} -> if(which.(text), do: [text], else: []) ++ asked_of(which)
    after
      0 -> []
    end
  end

  test "a transaction commits, rolls back, and re-raises", %{sql: sql} do
    table(sql)
    add = fn id -> SQL.query!(sql, "insert into t values ($1, 'a')", [id]).num_rows end

    assert SQL.transaction(sql, fn _ -> {:ok, add.(1)} end) == {:ok, 1}
    assert SQL.transaction(sql, fn _ -> {:error, add.(2)} end) == {:error, 1}

    assert_raise RuntimeError, "boom", fn ->
      SQL.transaction(sql, fn _ -> add.(3) && raise("boom") end)
    end

    assert catch_throw(SQL.transaction(sql, fn _ -> add.(4) && throw(:ball) end)) == :ball
    assert catch_exit(SQL.transaction(sql, fn _ -> add.(5) && exit(:stage) end)) == :stage

    message =
      "expected the function of a transaction to return {:ok, value} or {:error, reason}, " <>
        "got: :ok"

    assert_raise ArgumentError, message, fn -> SQL.transaction(sql, fn _ -> :ok end) end
    assert SQL.query!(sql, "select id from t").rows == [[1]]
  end

  test "a nested transaction is a savepoint, also in a transaction of the repo", %{sql: sql} do
    for {inner, statements} <- [
          {{:ok, 1}, ["savepoint skillbook", "release savepoint skillbook"]},
          {{:error, :no},
           [
             "savepoint skillbook",
             "rollback to savepoint skillbook",
             "release savepoint skillbook"
           ]}
        ] do
      assert {:ok, ^inner} =
               EctoRepo.transaction(fn -> SQL.transaction(sql, fn _ -> inner end) end,
                 mode: :immediate
               )

      for statement <- statements, do: assert_receive({:statement, ^statement})
      refute_received {:statement, _}
    end
  end

  test "errors of the drivers have kinds" do
    sql = SQL.Ecto.over(Failing, busy_timeout: 70)

    postgres =
      &%{__struct__: Postgrex.Error, __exception__: true, postgres: %{code: &1, message: "no"}}

    exqlite =
      &%{__struct__: Exqlite.Error, __exception__: true, message: &1, statement: "select 1"}

    busy = "another process has held the database for more than 70 ms; try again"
    over = "this transaction was already rolled back by an earlier error; begin a new one"

    for {fails, kind, constraint, message} <- [
          {{:returns, postgres.(:unique_violation)}, :constraint, :unique, "no"},
          {{:returns, postgres.(:foreign_key_violation)}, :constraint, :foreign_key, "no"},
          {{:returns, postgres.(:not_null_violation)}, :constraint, :not_null, "no"},
          {{:returns, postgres.(:check_violation)}, :constraint, :check, "no"},
          {{:returns, postgres.(:exclusion_violation)}, :constraint, :other, "no"},
          {{:returns, postgres.(:undefined_table)}, :no_such_table, nil, "no"},
          {{:returns, postgres.(:syntax_error)}, :syntax, nil, "no"},
          {{:returns, postgres.(:lock_not_available)}, :busy, nil, busy},
          {{:returns, postgres.(:in_failed_sql_transaction)}, :closed, nil, over},
          {{:returns, postgres.(:disk_full)}, :other, nil, "no"},
          {{:returns, exqlite.("UNIQUE constraint failed: t.a")}, :constraint, :unique,
           "UNIQUE constraint failed: t.a"},
          {{:returns, exqlite.("no such table: t")}, :no_such_table, nil, "no such table: t"},
          {{:returns, exqlite.("near \"selec\": syntax error")}, :syntax, nil,
           "near \"selec\": syntax error"},
          {{:returns, exqlite.("constraint failed")}, :constraint, :other, "constraint failed"},
          {{:returns, exqlite.("disk I/O error")}, :other, nil, "disk I/O error"},
          {{:raises, ArgumentError.exception("expected 1 arguments")}, :params, nil,
           "expected 1 arguments"}
        ] do
      Process.put(:fails, fails)
      assert {:error, error} = SQL.query(sql, "select 1")
      expected = if kind == :busy, do: message, else: message <> "\n  in: select 1"
      assert {error.kind, error.constraint, error.message} == {kind, constraint, expected}
    end

    Process.put(
      :fails,
      {:raises,
       RuntimeError.exception("could not lookup Ecto repo Failing because it was not started")}
    )

    assert {:error, %Error{kind: :closed} = error} = SQL.query(sql, "select 1")

    assert error.message ==
             "the repo Skillbook.SQL.EctoTest.Failing is not running; start it before the " <>
               "book\n  in: select 1"

    Process.put(:fails, {:raises, RuntimeError.exception("a bug")})
    assert_raise RuntimeError, "a bug", fn -> SQL.query(sql, "select 1") end
  end

  test "values of PostgreSQL that SQLite does not have are numbers and texts" do
    Process.put(:fails, [[true, false, ~D[2026-03-01], ~U[2026-03-01 09:30:00Z], nil, 1.5, "a"]])

    assert SQL.query!(SQL.Ecto.over(Failing), "select 1").rows ==
             [[1, 0, "2026-03-01", "2026-03-01T09:30:00Z", nil, 1.5, "a"]]
  end

  test "a module that is not a repo and other adapters are refused" do
    for {options, message} <- [
          {[repo: Nowhere, name: :a], "expected :repo to be an Ecto repo, got: Nowhere"},
          {[name: :a], "expected :repo to be an Ecto repo, got: nil"},
          {[repo: EctoRepo], "expected :name to be an atom, got: nil"},
          {[repo: EctoRepo, name: :a, migrate: 1], "expected :migrate to be a boolean, got: 1"},
          {[repo: EctoRepo, name: :a, busy_timeout: -1],
           "expected :busy_timeout to be milliseconds, got: -1"},
          {[repo: EctoRepo, name: :a, pool: 1],
           "expected the options [:repo, :name, :migrate, :busy_timeout], got: :pool"},
          {[repo: MySQL, name: :a],
           "expected the adapter of Skillbook.SQL.EctoTest.MySQL to be " <>
             "Ecto.Adapters.Postgres or Ecto.Adapters.SQLite3, got: Ecto.Adapters.MyXQL; give " <>
             "Skillbook its own database, such as store: \"skillbook.db\""}
        ] do
      assert_raise ArgumentError, message, fn -> SQL.Ecto.start_link(options) end
    end

    message = "expected the name of a running Skillbook.SQL.Ecto, got: :nobody"
    assert_raise ArgumentError, message, fn -> SQL.Ecto.handle(:nobody) end
  end

  describe "a book" do
    test "without its tables names the migration to write", %{sql: sql} do
      Process.flag(:trap_exit, true)

      assert {:error, error} =
               Skillbook.start_link(name: :ecto_without, store: {SQL.Ecto, repo: EctoRepo})

      assert Exception.message(error) ==
               "the application's database lacks Skillbook's tables, migration 1 (tasks and " <>
                 "memories), 2 (the store), 3 (runs of workflows), 4 (firings), 5 (the " <>
                 "documents of vaults), 6 (the ends of runs), 7 (schedules of the store), 8 " <>
                 "(the terms of vaults), 9 (one index for search), 10 (labels of tasks), " <>
                 "11 (vectors), 12 (digests of searched texts), 13 (approvals), " <>
                 "14 (connections), 15 (tokens and sessions of the web), " <>
                 "16 (conversations of agents), 17 (approvals of MCP servers), " <>
                 "18 (operations on schedules and breakers), 19 (tenants), " <>
                 "20 (spellings of titles), 21 (ages of rows), " <>
                 "22 (durable runs), 23 (labels of entries), 24 (changes of usage); " <>
                 "write and run a migration " <>
                 "of the application whose up/0 calls Skillbook.SQL.Migrations.Ecto.up() and " <>
                 "whose down/0 calls Skillbook.SQL.Migrations.Ecto.down(), " <>
                 "or give the store the option migrate: true"

      assert {:error, %Error{kind: :no_such_table}} =
               SQL.query(sql, "select * from skillbook_migrations")
    end

    test "works with existing tables, or creates them with migrate: true", %{sql: sql} do
      {:ok, _} = Migrations.run(sql)

      for options <- [[], [migrate: true]] do
        name = :"ecto_book_#{map_size(Map.new(options))}"

        store = {SQL.Ecto, [repo: EctoRepo] ++ options}
        {:ok, pid} = Skillbook.start_link(name: name, builtins: ["memory"], store: store)

        report =
          Skillbook.run(
            Skillbook.view(name),
            "```cmd\nmemory.save --content \"likes tea\"\nmemory.search --query tea\n```"
          )

        assert Enum.map(report.results, & &1.status) == [:ok, :ok]
        Supervisor.stop(pid)
        {:ok, [_ | _]} = Migrations.undo(sql, 1)
      end
    end

    test "refuses commands inside a transaction, at once and before they write", %{sql: sql} do
      {:ok, _} = Migrations.run(sql)
      store = {SQL.Ecto, repo: EctoRepo}
      start_supervised!({Skillbook, name: :ecto_inside, builtins: ["tasks"], store: store})
      view = Skillbook.view(:ecto_inside)
      run = fn command -> hd(Skillbook.run(view, "```cmd\n#{command}\n```").results) end

      message = fn name ->
        "`#{name}` was not run: its caller is in a transaction of the same database, and " <>
          "commands run in processes of their own, outside of it. Tell the user that the " <>
          "application must call Skillbook after the transaction."
      end

      for {begin, label} <- [
            {&EctoRepo.transaction(&1, mode: :immediate), "the repo"},
            {fn fun -> SQL.transaction(sql, fn _ -> {:ok, fun.()} end) end, "Skillbook.SQL"}
          ],
          name <- ["tasks.create", "tasks.search"] do
        command = if name == "tasks.create", do: name <> " --title Milk", else: name

        log =
          ExUnit.CaptureLog.capture_log(fn ->
            started = System.monotonic_time(:millisecond)
            {:ok, result} = begin.(fn -> run.(command) end)
            assert {label, result.status, result.content} == {label, :error, message.(name)}
            assert result.error.kind == :in_transaction
            assert System.monotonic_time(:millisecond) - started < 1000
          end)

        assert log =~
                 "skill #{name} was not run because its caller is in a transaction of the " <>
                   "book's database; call Skillbook.run/3 after the transaction, or begin it " <>
                   "in the handler"
      end

      # Texts without a handler run everywhere, and commands outside and inside a handler.
      assert {:ok, %{status: :help}} =
               EctoRepo.transaction(fn -> run.("get_skill: tasks") end, mode: :immediate)

      assert run.("tasks.search").content =~ "No tasks found"
      assert run.("tasks.create --title Milk").status == :ok
    end
  end

  test "migrations are undone from the last one, and run again", %{sql: sql} do
    versions = Enum.map(Migrations.list(nil), &elem(&1, 0))
    assert Migrations.run(sql, Migrations.list(1)) == {:ok, [1]}
    assert Migrations.run(sql) == {:ok, versions -- [1]}
    assert Migrations.undo(sql, 2) == {:ok, Enum.reverse(versions -- [1])}
    assert Migrations.undo(sql, 2) == {:ok, []}
    assert Migrations.undo(sql, 1) == {:ok, [1]}

    assert SQL.query!(
             sql,
             "select name from sqlite_master where name not like " <>
               "'sqlite_%'"
           ).rows == []

    assert Migrations.undo(sql, 1) == {:ok, []}

    assert Migrations.run(sql) == {:ok, versions}
  end
end
