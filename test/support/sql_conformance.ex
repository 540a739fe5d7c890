defmodule Skillbook.SQLConformance do
  @moduledoc """
  The tests of `Skillbook.SQL` that run on every connection.

      use Skillbook.SQLConformance, start: &MyTest.start_database/1

  ## Options

    * `:start` - called with the test's context, gives the handle of an empty database. A test's
      tag `:busy_timeout` is how many milliseconds a write of it waits for others.
    * `:concurrent_reads` - whether reads go on while another process writes. Default: true.
  """

  defmodule Tables do
    @moduledoc false
    @behaviour Skillbook.SQL.Migrations

    @impl true
    def up(_dialect) do
      [
        "create table t (id integer primary key, x text); create table u (id integer)",
        "insert into u values (7)"
      ]
    end
  end

  defmodule Row do
    @moduledoc false
    @behaviour Skillbook.SQL.Migrations

    @impl true
    def up(_dialect), do: ["insert into t (id, x) values (1, 'two')"]
  end

  defmodule Broken do
    @moduledoc false
    @behaviour Skillbook.SQL.Migrations

    @impl true
    def up(_dialect),
      do: [
        "create table broken (id integer); insert into u values (8)",
        "insert into nowhere values (1)"
      ]
  end

  defmodule Stuck do
    @moduledoc false
    @behaviour Skillbook.SQL.Migrations

    # Calls the function in its process dictionary, and never ends.
    @impl true
    def up(_dialect) do
      Process.get(__MODULE__).()
      Process.sleep(:infinity)
    end
  end

  @doc "Three migrations, the last of which fails."
  def migrations, do: [{1, "tables", Tables}, {2, "row", Row}, {3, "broken", Broken}]

  @doc "Parameters, the types of their columns, and the values that are read."
  def values(dialect) do
    blob = if dialect == :postgres, do: "bytea", else: "blob"

    [
      {"text", nil, nil},
      {"bigint", 0, 0},
      {"bigint", -0x8000_0000_0000_0000, -0x8000_0000_0000_0000},
      {"bigint", 0x7FFF_FFFF_FFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF},
      {"double precision", 0.1, 0.1},
      {"double precision", 5.0e-324, 5.0e-324},
      {"double precision", 2.0, 2.0},
      {"integer", true, 1},
      {"integer", false, 0},
      {"text", "", ""},
      {"text", "Grüße, 世界 🌍 'quoted'; --", "Grüße, 世界 🌍 'quoted'; --"},
      {"text", String.duplicate("ab", 100_000), String.duplicate("ab", 100_000)},
      {"text", ~D[0099-03-01], "0099-03-01"},
      {"text", ~U[2026-03-01 09:30:00Z], "2026-03-01T09:30:00Z"},
      {"text", ~U[2026-03-01 09:30:00.999999Z], "2026-03-01T09:30:00Z"},
      {"text", ~U[1969-12-31 23:59:59.900000Z], "1969-12-31T23:59:59Z"},
      {"text", berlin(), "2026-02-28T23:30:00Z"},
      {blob, {:blob, ""}, ""},
      {blob, {:blob, <<0, 255, 128, 0>>}, <<0, 255, 128, 0>>}
    ]
  end

  defp berlin do
    %DateTime{
      year: 2026,
      month: 3,
      day: 1,
      hour: 0,
      minute: 30,
      second: 0,
      microsecond: {5, 6},
      time_zone: "Europe/Berlin",
      zone_abbr: "CET",
      utc_offset: 3600,
      std_offset: 0
    }
  end

  @doc "Statements that every connection refuses, with the error message."
  def refused(dialect) do
    transaction =
      "transactions are begun and ended by the transaction function, not by statements"

    temporary =
      "temporary tables, views and triggers would exist in only one of several connections"

    attach = "`attach`, `detach` and `vacuum` would affect only one of several connections"
    session = &"`#{&1}` would affect only one of several connections"
    pragma = &"`pragma #{&1}` with a value would affect only one of several connections"

    both =
      for(word <- ~w(begin commit end rollback), do: {word, transaction}) ++
        [
          {"savepoint a", transaction},
          {"release a", transaction},
          {"/* a; */ rollback to a", transaction},
          {"create temp table a (x integer)", temporary},
          {"create temporary view a as select 1", temporary}
        ]

    case dialect do
      :sqlite ->
        both ++
          [
            {"create table temp.a (x)", temporary},
            {"create temp trigger a after insert on t begin select 1; end", temporary},
            {"attach ':memory:' as a", attach},
            {"detach main", attach},
            {"vacuum", attach},
            {"pragma foreign_keys = off", pragma.("foreign_keys")},
            {"explain pragma main.synchronous(off)", pragma.("synchronous")}
          ]

      :postgres ->
        both ++
          [
            {"abort", transaction},
            {"start transaction", transaction},
            {"prepare transaction 'a'", transaction},
            {"copy t to program 'cat'", session.("copy")},
            {"copy t from '/etc/passwd'", session.("copy")},
            {"create table pg_temp.a (x integer)", temporary},
            {"select 1 as x into temp a", temporary},
            {"declare a cursor for select 1", session.("declare")},
            {"fetch a", session.("fetch")},
            {"prepare a as select 1", session.("prepare")},
            {"set search_path = a", session.("set")},
            {"reset all", session.("reset")},
            {"listen a", session.("listen")},
            {"load 'a'", session.("load")},
            {"explain analyze execute a", session.("execute")}
          ]
    end
  end

  @doc "Statements with semicolons that do not end them, and the text that each reads."
  def quoted(dialect) do
    both = [
      {"select ';' as \"a;\"", ";"},
      {"select 'it''s; -- ' as a", "it's; -- "},
      {"select /* ; */ '/*' as a -- ;", "/*"},
      {"select '\\' as a", "\\"}
    ]

    case dialect do
      :sqlite ->
        both ++
          [{"select `a;` from (select ';' as [a;])", ";"}, {"select /* /* */ 'a' as a", "a"}]

      :postgres ->
        both ++
          [
            {"select $$;$$ as a", ";"},
            {"select $a$ $$; $b$ $a$ as a", " $$; $b$ "},
            {"select E'\\'; commit; --' as a", "'; commit; --"},
            {"select E'a' -- b'\n'\\'; commit; --' as a", "a'; commit; --"},
            {"select /* /* ; */ ; */ 'a' as a", "a"},
            {"select 'a' -- ;\r || ';' as a", "a;"}
          ]
    end
  end

  @doc "Runs `fun` in an open transaction of another process; call the result to end it."
  def hold(sql, fun) do
    test = self()

    task =
      Task.async(fn ->
        Skillbook.SQL.transaction(sql, fn sql ->
          fun.(sql)
          send(test, :held)

          receive do
            :go_on -> {:ok, :committed}
          end
        end)
      end)

    receive do
      :held -> :ok
    end

    fn ->
      send(task.pid, :go_on)
      Task.await(task, :infinity)
    end
  end

  @doc "Runs `fun` in another process, and kills the process soon after its `ready.()`."
  def kill(fun) do
    test = self()
    {pid, monitor} = spawn_monitor(fn -> fun.(fn -> send(test, :ready) end) end)

    receive do
      # Time for a statement after `ready.()` to start.
      :ready -> Process.sleep(30)
    end

    Process.exit(pid, :kill)

    receive do
      {:DOWN, ^monitor, :process, ^pid, :killed} -> :ok
    end
  end

  defmacro __using__(options) do
    quote location: :keep do
      import Skillbook.SQLConformance,
        only: [values: 1, refused: 1, quoted: 1, migrations: 0, hold: 2, kill: 1]

      alias Skillbook.SQL
      alias Skillbook.SQL.Error

      @start unquote(options[:start])

      setup context do
        {:ok, sql: @start.(context)}
      end

      defp table(%{sql: sql}) do
        SQL.query!(sql, "create table t (id integer primary key, x text)")
        :ok
      end

      defp count(sql), do: one(sql, "select count(*) from t")

      defp one(sql, statement) do
        [[value]] = SQL.query!(sql, statement).rows
        value
      end

      defp add(sql, id), do: SQL.query!(sql, "insert into t (id) values ($1)", [id])

      describe "values" do
        test "are read as documented", %{sql: sql} do
          for {{type, written, read}, index} <- Enum.with_index(values(SQL.dialect(sql))) do
            SQL.query!(sql, "create table v#{index} (x #{type})")
            SQL.query!(sql, "insert into v#{index} (x) values ($1)", [written])

            assert {written, SQL.query!(sql, "select x from v#{index}").rows} ==
                     {written, [[read]]}
          end
        end

        test "of other types are refused with the number of their parameter", %{sql: sql} do
          types = "nil, a number, a boolean, a string, {:blob, binary}, a Date or a DateTime"

          for {value, message} <- [
                {:atom, "expected #{types} as parameter $2, got: :atom"},
                {~N[2026-03-01 09:30:00],
                 "expected #{types} as parameter $2, got: ~N[2026-03-01 09:30:00]"},
                {[1], "expected #{types} as parameter $2, got: [1]"},
                {{:blob, 1}, "expected #{types} as parameter $2, got: {:blob, 1}"},
                {<<255>>,
                 "expected a string in UTF-8 (bytes are {:blob, binary}) as parameter $2, " <>
                   "got: <<255>>"},
                {0x8000_0000_0000_0000,
                 "expected an integer of 64 bits as parameter $2, got: 9223372036854775808"}
              ] do
            assert SQL.query(sql, "select $1, $2", [1, value]) ==
                     {:error, %Error{kind: :params, message: message}}
          end
        end
      end

      describe "a query" do
        setup :table

        test "takes parameters by number", %{sql: sql} do
          SQL.query!(sql, "insert into t (x, id) values ($2, $1)", [1, "one"])

          query = "select x from t where x = $2 and id = $1 and x = $2"

          assert SQL.query!(sql, query, [1, "one"]).rows ==
                   [
                     ["one"]
                   ]

          assert SQL.query!(sql, "select x from t where x = $2 and id = $1", [2, "one"]).rows ==
                   []
        end

        test "refuses parameters that do not match", %{sql: sql} do
          for {statement, params} <- [
                {"select x from t where id = $1", []},
                {"select x from t where id = $1", [1, 2]},
                {"select x from t where id = $2", [1, 2]},
                {"select x from t", [1]}
              ] do
            assert {:error, %Error{kind: :params, sql: ^statement}} =
                     SQL.query(sql, statement, params)
          end
        end

        test "counts rows", %{sql: sql} do
          for {statement, columns, rows, count} <- [
                {"insert into t (id) values (1), (2), (3)", [], [], 3},
                {"update t set x = 'a' where id > 1", [], [], 2},
                {"update t set x = 'a' where id > 9", [], [], 0},
                {"select id, x as text from t order by id", ["id", "text"],
                 [[1, nil], [2, "a"], [3, "a"]], 3},
                {"select id from t where id > 9", ["id"], [], 0},
                {"insert into t (id, x) values (4, 'b') returning x", ["x"], [["b"]], 1},
                {"create table other (id integer)", [], [], 0},
                {"delete from t", [], [], 4}
              ] do
            assert SQL.query(sql, statement) ==
                     {:ok, %{columns: columns, rows: rows, num_rows: count}}
          end
        end

        test "works after a change of the table", %{sql: sql} do
          add(sql, 1)
          assert SQL.query!(sql, "select * from t").columns == ["id", "x"]
          SQL.query!(sql, "alter table t add column y integer default 5")

          assert SQL.query!(sql, "select * from t") == %{
                   columns: ["id", "x", "y"],
                   rows: [[1, nil, 5]],
                   num_rows: 1
                 }
        end

        test "must be one valid statement", %{sql: sql} do
          for statement <- [
                "",
                "  -- nothing\n",
                "selec 1",
                "select y from t",
                "select 1; select 2",
                "select <<>>",
                <<255>>
              ] do
            assert {:error, %Error{kind: :syntax, sql: ^statement} = error} =
                     SQL.query(sql, statement)

            assert_raise Error, Exception.message(error), fn -> SQL.query!(sql, statement) end
          end

          assert {:error, %Error{kind: :no_such_table}} = SQL.query(sql, "select 1 from missing")

          assert {:error, %Error{kind: :no_such_table}} =
                   SQL.query(sql, "insert into missing values (1)")
        end

        test "that changes the state of a connection is refused with its whole batch",
             %{sql: sql} do
          for {statement, message} <- refused(SQL.dialect(sql)) do
            error = %Error{
              kind: :refused,
              message: "#{message}\n  in: #{statement}",
              sql: statement
            }

            assert SQL.query(sql, statement) == {:error, error}

            text = String.replace_prefix(statement, "/* a; */ ", "")
            error = %{error | message: "#{message}\n  in: #{text}", sql: text}

            assert SQL.execute_batch(sql, "insert into t (id) values (1); " <> statement) ==
                     {:error, error}
          end

          assert count(sql) == 0
        end

        test "ends after its strings, names and comments", %{sql: sql} do
          for {statement, read} <- quoted(SQL.dialect(sql)) do
            assert {statement, SQL.query!(sql, statement).rows} == {statement, [[read]]}

            error =
              "expected one statement, got several; send them one by one\n  in: " <>
                "#{statement}\n; select 2"

            assert {:error, %Error{message: ^error}} = SQL.query(sql, statement <> "\n; select 2")
            assert SQL.execute_batch(sql, statement <> "\n; select 2") == :ok
          end
        end
      end

      describe "a batch" do
        setup :table

        test "runs all its statements", %{sql: sql} do
          assert SQL.execute_batch(
                   sql,
                   "insert into t (id) values (1); insert into t (id) values (2); -- end"
                 ) == :ok

          assert count(sql) == 2
        end

        test "ends with the first that fails", %{sql: sql} do
          assert {:error, %Error{kind: :no_such_table}} =
                   SQL.transaction(sql, fn sql ->
                     with :ok <-
                            SQL.execute_batch(
                              sql,
                              "insert into t (id) values (1); insert into missing values (2)"
                            ) do
                       {:ok, :done}
                     end
                   end)

          assert count(sql) == 0
        end
      end

      describe "constraints" do
        test "are named in errors", %{sql: sql} do
          SQL.query!(sql, "create table parent (id integer primary key)")

          SQL.query!(sql, """
          create table child (
            id integer primary key, parent integer references parent (id),
            name text not null unique, age integer check (age > 0)
          )
          """)

          SQL.query!(sql, "insert into parent values (1)")
          SQL.query!(sql, "insert into child values (1, 1, 'a', 1)")

          for {statement, constraint} <- [
                {"insert into child values (1, 1, 'b', 1)", :unique},
                {"insert into child values (2, 1, 'a', 1)", :unique},
                {"insert into child values (2, 2, 'b', 1)", :foreign_key},
                {"delete from parent", :foreign_key},
                {"insert into child values (2, 1, null, 1)", :not_null},
                {"insert into child values (2, 1, 'b', 0)", :check}
              ] do
            assert {:error, %Error{kind: :constraint} = error} = SQL.query(sql, statement)
            assert {statement, error.constraint} == {statement, constraint}
          end
        end

        test "that are checked at the commit fail it and roll back", %{sql: sql} do
          SQL.query!(sql, "create table parent (id integer primary key)")

          SQL.query!(
            sql,
            "create table child (id integer references parent (id) deferrable initially deferred)"
          )

          assert {:error, %Error{kind: :constraint, constraint: :foreign_key}} =
                   SQL.transaction(sql, fn sql ->
                     SQL.query(sql, "insert into child values (1)")
                   end)

          assert one(sql, "select count(*) from child") == 0

          assert {:ok, _} =
                   SQL.transaction(sql, fn sql ->
                     SQL.query!(sql, "insert into child values (1)")
                     SQL.query(sql, "insert into parent values (1)")
                   end)
        end
      end

      describe "a transaction" do
        setup :table

        test "commits on ok", %{sql: sql} do
          assert SQL.transaction(sql, fn sql -> {:ok, add(sql, 1).num_rows} end) == {:ok, 1}
          assert count(sql) == 1
        end

        test "is visible to its process only", %{sql: sql} do
          refute SQL.in_transaction?(sql)

          {:ok, known} =
            SQL.transaction(sql, fn inner ->
              {:error, savepoint} =
                SQL.transaction(sql, fn sql -> {:error, SQL.in_transaction?(sql)} end)

              other = Task.await(Task.async(fn -> SQL.in_transaction?(sql) end), :infinity)
              {:ok, {SQL.in_transaction?(inner), SQL.in_transaction?(sql), savepoint, other}}
            end)

          assert known == {true, true, true, false}
          refute SQL.in_transaction?(sql)
          assert {:error, false} = SQL.transaction(sql, fn _sql -> {:error, false} end)
          refute SQL.in_transaction?(sql)
        end

        test "rolls back on an error, a raise, a throw, an exit and anything else", %{sql: sql} do
          assert SQL.transaction(sql, fn sql -> {:error, add(sql, 1).num_rows} end) == {:error, 1}

          assert_raise RuntimeError, "boom", fn ->
            SQL.transaction(sql, &(add(&1, 1) && raise("boom")))
          end

          assert catch_throw(SQL.transaction(sql, &(add(&1, 1) && throw(:ball)))) == :ball
          assert catch_exit(SQL.transaction(sql, &(add(&1, 1) && exit(:stage)))) == :stage

          message =
            "expected the function of a transaction to return {:ok, value} or {:error, " <>
              "reason}, got: :ok"

          assert_raise ArgumentError, message, fn ->
            SQL.transaction(sql, &(add(&1, 1) && :ok))
          end

          assert count(sql) == 0
          add(sql, 1)
          assert count(sql) == 1
        end

        test "continues after a failed statement", %{sql: sql} do
          assert {:ok, 1} =
                   SQL.transaction(sql, fn sql ->
                     {:error, %Error{}} =
                       SQL.transaction(sql, fn sql ->
                         SQL.query(sql, "insert into missing values (1)")
                       end)

                     {:ok, add(sql, 1).num_rows}
                   end)

          assert count(sql) == 1
        end

        test "in a transaction rolls back its own part only", %{sql: sql} do
          SQL.transaction(sql, fn sql ->
            add(sql, 1)

            assert {:ok, :inner} =
                     SQL.transaction(sql, fn sql ->
                       add(sql, 2)

                       fail = fn sql -> {:error, add(sql, 3).num_rows} end
                       assert SQL.transaction(sql, fail) == {:error, 1}

                       assert_raise RuntimeError, fn ->
                         SQL.transaction(sql, &(add(&1, 4) && raise("boom")))
                       end

                       {:ok, :inner}
                     end)

            assert SQL.transaction(sql, fn sql -> {:error, add(sql, 5).num_rows} end) ==
                     {:error, 1}

            add(sql, 6)
            {:ok, nil}
          end)

          assert SQL.query!(sql, "select id from t order by id").rows == [[1], [2], [6]]
        end

        test "rolls back its committed inner transactions", %{sql: sql} do
          SQL.transaction(sql, fn sql ->
            {:ok, _} = SQL.transaction(sql, fn sql -> {:ok, add(sql, 1)} end)
            {:error, :outer}
          end)

          assert count(sql) == 0
        end

        test "includes calls through the outer handle", %{sql: outer} do
          SQL.transaction(outer, fn inner ->
            add(outer, 1)
            assert count(outer) == 1
            assert count(inner) == 1
            {:error, :back}
          end)

          assert count(outer) == 0
        end

        test "of a killed process is rolled back", %{sql: sql} do
          kill(fn ready ->
            SQL.transaction(sql, fn sql ->
              add(sql, 1)

              SQL.transaction(sql, fn sql ->
                add(sql, 2) && ready.() && Process.sleep(:infinity)
              end)
            end)
          end)

          add(sql, 1)
          assert count(sql) == 1
        end

        test "of a process killed during a statement is rolled back and the statement cancelled",
             %{
               sql: sql
             } do
          kill(fn ready ->
            SQL.transaction(sql, fn sql ->
              add(sql, 1)
              ready.()
              SQL.query(sql, endless())
            end)
          end)

          add(sql, 1)
          assert count(sql) == 1
        end

        test "of a process killed while it waits never begins", %{sql: sql} do
          release = hold(sql, &add(&1, 1))

          kill(fn ready ->
            ready.()
            add(sql, 2)
          end)

          assert release.() == {:ok, :committed}
          add(sql, 3)
          assert SQL.query!(sql, "select id from t order by id").rows == [[1], [3]]
        end

        @tag busy_timeout: 50
        test "makes other writers wait, for a limited time", %{sql: sql} do
          release = hold(sql, &add(&1, 1))
          message = "another process has held the database for more than 50 ms; try again"

          with_insert = "with a as (select 9) insert into t (id) select * from a"

          for write <- [
                &SQL.query(&1, "delete from t"),
                &SQL.query(&1, with_insert),
                &SQL.execute_batch(&1, "delete from t")
              ] do
            assert write.(sql) == {:error, %Error{kind: :busy, message: message}}
          end

          assert SQL.transaction(sql, fn _sql -> flunk("begun") end) ==
                   {:error, %Error{kind: :busy, message: message}}

          assert release.() == {:ok, :committed}
          assert SQL.query!(sql, "delete from t").num_rows == 1
        end
      end

      describe "several processes" do
        setup :table

        test "lose no writes", %{sql: sql} do
          add(sql, 0)

          1..50
          |> Task.async_stream(
            fn index ->
              for _ <- 1..4 do
                if rem(index, 2) == 0 do
                  SQL.query!(sql, "update t set id = id + 1")
                else
                  SQL.transaction(sql, fn sql ->
                    next = one(sql, "select id from t") + 1
                    SQL.query(sql, "update t set id = $1", [next])
                  end)
                end
              end
            end,
            max_concurrency: 50,
            timeout: :infinity
          )
          |> Stream.run()

          assert one(sql, "select id from t") == 200
        end

        if Keyword.get(unquote(options), :concurrent_reads, true) do
          test "read the old state during a write, without waiting", %{sql: sql} do
            add(sql, 1)

            release =
              hold(sql, &(add(&1, 2) && SQL.query!(&1, "create table later (id integer)")))

            # The writer continues after these.
            for _ <- 1..30,
                do: Task.async(fn -> assert count(sql) == 1 end) |> Task.await(:infinity)

            assert {:error, %Error{kind: :no_such_table}} = SQL.query(sql, "select * from later")

            assert release.() == {:ok, :committed}
            assert count(sql) == 2
            assert SQL.query!(sql, "select * from later").rows == []
          end

          test "read during long reads, which stop when their process is killed", %{
            sql: sql
          } do
            # One more than can run concurrently: if they continued, the last one and the read
            # could not start.
            for _ <- 0..:erlang.system_info(:dirty_io_schedulers) do
              kill(fn ready ->
                ready.()
                SQL.query(sql, endless_read())
              end)

              assert count(sql) == 0
            end
          end
        end

        test "see a committed write immediately", %{sql: sql} do
          for id <- 1..20 do
            Task.async(fn -> add(sql, id) end) |> Task.await(:infinity)
            assert count(sql) == id
          end
        end
      end

      describe "statements that go together" do
        test "return a result each", %{sql: sql} do
          SQL.query!(sql, "create table t (id integer primary key, x text)")
          insert = {"insert into t (id, x) values ($1, $2)", [1, "one"]}
          select = {"select x from t where id = $1", [1]}

          for run <- [
                &SQL.transaction(&1, fn sql -> SQL.query_all(sql, &2) end),
                &SQL.query_all/2
              ] do
            assert {:ok,
                    [%{rows: [], num_rows: 1}, %{columns: ["x"], rows: [["one"]], num_rows: 1}]} =
                     run.(sql, [insert, select])

            SQL.query!(sql, "delete from t")
          end

          assert SQL.query_all(sql, []) == {:ok, []}

          assert SQL.transaction(sql, [insert, select], fn _, [_, %{rows: rows}] ->
                   {:ok, rows}
                 end) ==
                   {:ok, [["one"]]}

          assert SQL.query!(sql, "select id from t").rows == [[1]]
        end

        test "stop at the first failure, and the transaction is rolled back", %{sql: sql} do
          SQL.query!(sql, "create table t (id integer primary key)")

          statements = [
            {"insert into t values ($1)", [1]},
            {"insert into nowhere values (1)", []}
          ]

          never = fn _sql, _results -> flunk("expected no transaction") end

          assert {:error, %Error{kind: :no_such_table}} = SQL.transaction(sql, statements, never)
          refute SQL.in_transaction?(sql)

          assert {:error, %Error{kind: :params}} =
                   SQL.transaction(sql, [{"select $1", [{:no, 1}]}], never)

          assert {:error, %Error{kind: :no_such_table}} =
                   SQL.transaction(sql, fn sql -> SQL.query_all(sql, statements) end)

          assert SQL.query!(sql, "select id from t").rows == []

          # Nor a savepoint; the outer transaction continues.
          assert {:ok, :done} =
                   SQL.transaction(sql, fn sql ->
                     SQL.query!(sql, "insert into t values (2)")

                     {:error, %Error{kind: :no_such_table}} =
                       SQL.transaction(sql, statements, never)

                     {:ok, :done}
                   end)

          assert SQL.query!(sql, "select id from t").rows == [[2]]
        end
      end

      use Skillbook.GroupCommitConformance

      describe "migrations" do
        test "run once, in order, and are recorded", %{sql: sql} do
          assert SQL.Migrations.run(sql, Enum.take(migrations(), 1)) == {:ok, [1]}
          assert SQL.Migrations.run(sql, Enum.take(migrations(), 2)) == {:ok, [2]}
          assert SQL.Migrations.run(sql, Enum.take(migrations(), 2)) == {:ok, []}

          assert SQL.query!(sql, "select id, x from t").rows == [[1, "two"]]
          assert SQL.query!(sql, "select id from u").rows == [[7]]

          assert [[1, "tables", time], [2, "row", _]] =
                   SQL.query!(
                     sql,
                     "select version, name, applied_at from skillbook_migrations order by version"
                   ).rows

          assert {:ok, %DateTime{}, 0} = DateTime.from_iso8601(time)
        end

        test "of a new database run in one call each", %{sql: sql} do
          assert SQL.Migrations.run(sql, Enum.take(migrations(), 2)) == {:ok, [1, 2]}
        end

        test "that fail leave the database unchanged", %{sql: sql} do
          assert SQL.Migrations.run(sql, Enum.take(migrations(), 1)) == {:ok, [1]}

          assert {:error, %Error{kind: :no_such_table} = error} =
                   SQL.Migrations.run(sql, migrations())

          assert Exception.message(error) =~ "migration 3 (broken) failed: "

          assert {:error, %Error{kind: :no_such_table}} = SQL.query(sql, "select * from broken")

          assert {SQL.query!(sql, "select id from u").rows,
                  SQL.query!(sql, "select id from t").rows} ==
                   {[[7]], []}

          assert SQL.query!(sql, "select version from skillbook_migrations").rows == [[1]]
        end

        test "that are killed leave the database unchanged", %{sql: sql} do
          stuck = List.replace_at(migrations(), 2, {3, "stuck", Skillbook.SQLConformance.Stuck})

          # The first two are written by then.
          kill(fn ready ->
            Process.put(Skillbook.SQLConformance.Stuck, ready)
            SQL.Migrations.run(sql, stuck)
          end)

          assert SQL.Migrations.run(sql, Enum.take(migrations(), 2)) == {:ok, [1, 2]}
          assert SQL.query!(sql, "select id, x from t").rows == [[1, "two"]]
        end

        test "of a newer database are refused", %{sql: sql} do
          {:ok, [1, 2]} = SQL.Migrations.run(sql, Enum.take(migrations(), 2))

          assert SQL.Migrations.run(sql, Enum.take(migrations(), 1)) ==
                   {:error,
                    %Error{
                      kind: :newer,
                      message:
                        "the database belongs to a newer Skillbook: it has migration 2 (row), " <>
                          "this one knows migrations up to 1; update Skillbook or use " <>
                          "another database"
                    }}
        end

        test "of several processes run once", %{sql: sql} do
          ran =
            1..8
            |> Task.async_stream(fn _ -> SQL.Migrations.run(sql, Enum.take(migrations(), 2)) end,
              max_concurrency: 8
            )
            |> Enum.flat_map(fn {:ok, {:ok, versions}} -> versions end)

          assert Enum.sort(ran) == [1, 2]
        end
      end

      defp endless, do: "insert into t (id) " <> endless_read()

      defp endless_read do
        "with recursive n (i) as (select 10 union all select i + 1 from n) select i from n " <>
          "where i < 0"
      end
    end
  end
end
