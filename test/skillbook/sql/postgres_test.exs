defmodule Skillbook.SQL.PostgresTest do
  use ExUnit.Case, async: true

  import Skillbook.PostgresCase
  import Skillbook.SQLConformance, only: [hold: 2, kill: 1]

  alias Skillbook.SQL
  alias Skillbook.SQL.{Error, Postgres}

  describe "options" do
    test "are validated, and no error contains a password" do
      url = "expected :url to be postgres://user:password@host:port/database?sslmode=..."

      for {options, message} <- [
            {[name: nil], "expected :name to be an atom, got: nil"},
            {[name: "a"], ~s(expected :name to be an atom, got: "a")},
            {[pool_size: 0], "expected :pool_size to be a number of connections from 1, got: 0"},
            {[timeout: -1], "expected :timeout to be milliseconds, got: -1"},
            {[queue_timeout: :soon], "expected :queue_timeout to be milliseconds, got: :soon"},
            {[connect_timeout: 0], "expected :connect_timeout to be milliseconds, got: 0"},
            {[port: 65_536], "expected :port to be a number from 1 to 65535, got: 65536"},
            {[host: ""], ~s(expected :host to be a text, got: "")},
            {[host: "a\0"], "expected :host to be a text, got: <<97, 0>>"},
            {[ssl: "allow"],
             ~s(expected :ssl to be true, false or one of disable, prefer, require, ) <>
               ~s(verify-ca, verify-full, got: "allow")},
            {[password: 1], "expected :password to be a text"},
            {[password: "secret\0"], "expected :password to be a text"},
            {[url: 1], "expected :url to be a text"},
            {[url: "mysql://root:secret@a/b"], url},
            {[url: "postgres://app:sec ret@a/b"], url},
            {[url: "postgres://app:secret@a,b/c"], url},
            {[url: "postgres://app:secret@a/b?sslmod=require"],
             ~s(expected :url to have no parameters but application_name, connect_timeout, ) <>
               ~s(dbname, host, password, port, ) <>
               ~s(sslmode, sslrootcert, user, got: "sslmod")},
            {[url: "postgres://app:secret@a/b?port=x"],
             ~s(expected :port to be a number from 1 to 65535, got: "x")}
          ] do
        assert_raise ArgumentError, message, fn ->
          Postgres.start_link(Keyword.merge([name: :never], options))
        end
      end

      message = ~r/^expected the options \[:url, :name, .*\], got: :uri$/

      assert_raise ArgumentError, message, fn ->
        Postgres.start_link(name: :never, uri: "postgres://a:secret@b/c")
      end
    end

    test "override parts of the URL" do
      settings = Skillbook.SQL.Postgres.Settings

      for {options, expected} <- [
            {[url: "postgresql://app%40x:s%3A%2F:t@db.example/notes%20a"],
             %{
               host: "db.example",
               port: 5432,
               user: "app@x",
               password: "s:/:t",
               database: "notes a",
               ssl: "prefer"
             }},
            {[
               url:
                 "postgres://[::1]:6000/a?user=b&password=c+d&sslmode=verify-full" <>
                   "&sslrootcert=/ca.pem"
             ],
             %{
               host: "::1",
               port: 6000,
               user: "b",
               password: "c d",
               database: "a",
               ssl: "verify-full",
               ssl_ca_file: "/ca.pem"
             }},
            {[url: "postgres:///a?host=/run/postgresql", user: "b"],
             %{host: "/run/postgresql", database: "a"}},
            {[url: fn -> "postgres://a@b/c" end, database: "d", ssl: true],
             %{user: "a", host: "b", database: "d", ssl: "verify-full"}},
            {[user: "a", ssl: :verify_ca], %{host: "localhost", database: "a", ssl: "verify-ca"}},
            {[user: "a", ssl: false], %{ssl: "disable"}}
          ] do
        {:a, 10, address, _limits} = settings.read!([name: :a] ++ options)
        assert {options, Map.take(address, Map.keys(expected))} == {options, expected}
      end

      {:a, 3, _, limits} =
        settings.read!(name: :a, url: "postgres://a?connect_timeout=2", pool_size: 3, timeout: 7)

      assert limits == %{connect_timeout: 2000, timeout: 7, queue_timeout: 5000}
    end

    test "keep secrets out of supervisor reports" do
      spec = Postgres.child_spec(name: :a, url: "postgres://a:secret@b/c", password: "secret")
      refute inspect(spec, limit: :infinity) =~ "secret"

      sql = start(name: :secrets)
      state = inspect(:sys.get_state(sql.pool), limit: :infinity) <> inspect(sql)
      refute state =~ "skillbook@"
    end
  end

  describe "a database that cannot be opened" do
    test "is an error with its address and the reason, without the password" do
      uri = URI.parse(url())
      server = "#{uri.host}:#{uri.port}"

      for {changes, reason} <- [
            {[userinfo: "postgres:wrong"],
             ~s(cannot open the database #{server}/postgres: password authentication failed ) <>
               ~s(for user "postgres")},
            {[path: "/nowhere"],
             ~s(cannot open the database #{server}/nowhere: database "nowhere" does not exist)},
            {[port: 1],
             "cannot open the database #{uri.host}:1/postgres: Connection refused (os error 111)"}
          ] do
        url = uri |> struct!(changes) |> URI.to_string()
        error = {:error, %Error{kind: :cannot_open, message: reason}}
        assert Postgres.start_link(name: :never, url: url, queue_timeout: 200) == error
      end

      assert_raise ArgumentError, fn -> Postgres.handle(:never) end
    end

    test "because its server does not answer" do
      {:ok, listener} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
      {:ok, port} = :inet.port(listener)
      message = "cannot open the database 127.0.0.1:#{port}/a: no answer within 50 ms"

      assert Postgres.start_link(
               name: :never,
               host: "127.0.0.1",
               port: port,
               user: "a",
               connect_timeout: 50,
               queue_timeout: 200
             ) == {:error, %Error{kind: :cannot_open, message: message}}
    end

    test "returns an error without a server" do
      message = "expected the name of a running Skillbook.SQL.Postgres, got: :nobody"
      assert_raise ArgumentError, message, fn -> Postgres.handle(:nobody) end
    end
  end

  describe "values" do
    test "of the server's types are converted" do
      sql = start()

      for {expression, value} <- [
            {"true", 1},
            {"false", 0},
            {"(-32768)::int2", -32_768},
            {"9223372036854775807", 9_223_372_036_854_775_807},
            {"1.5::float4", 1.5},
            {"'abc'::varchar(5)", "abc"},
            {"'abc'::name", "abc"},
            {"sum(x) from (values (1::bigint), (9223372036854775806)) t (x)",
             9_223_372_036_854_775_807},
            {"sum(x) from (values (1::bigint), (9223372036854775807)) t (x)",
             9.223372036854776e18},
            {"avg(x) from (values (1), (2)) t (x)", 1.5},
            {"-0.05", -0.05},
            {"'{\"a\": 1}'::json", ~s({"a": 1})},
            {"'{\"a\":1}'::jsonb", ~s({"a": 1})},
            {"'\\x00ff'::bytea", <<0, 255>>},
            {"date '2026-02-28'", "2026-02-28"},
            {"timestamptz '2026-03-01 00:30:00.999+01'", "2026-02-28T23:30:00Z"},
            {"timestamp '1969-12-31 23:59:59.9'", "1969-12-31T23:59:59"},
            {"time '09:30:00.5'", "09:30:00"},
            {"'infinity'::timestamptz", "infinity"},
            {"'0009f1a0-0000-0000-0000-00000000000f'::uuid",
             "0009f1a0-0000-0000-0000-00000000000f"},
            {"null::int", nil},
            {"pg_notify('a', 'b')", nil}
          ] do
        assert {expression, SQL.query!(sql, "select #{expression}").rows} ==
                 {expression, [[value]]}
      end
    end

    test "of unsupported types are an error before anything is written" do
      sql = start()
      SQL.query!(sql, "create table t (x int)")

      assert_error(
        SQL.query(sql, "insert into t values (1) returning array[x] as list"),
        :other,
        "column `list` has the type _int4, which cannot be read; write list::text\n" <>
          "  in: insert into t values (1) returning array[x] as list"
      )

      assert SQL.query!(sql, "select count(*) from t").rows == [[0]]

      assert_error(
        SQL.query(sql, "select 'nan'::float8 as x"),
        :other,
        "expected a finite number in column `x`, got an infinite one\n  in: select " <>
          "'nan'::float8 as x"
      )
    end

    test "are converted to the type that the server expects, or refused" do
      sql = start()

      for {type, given, found} <- [
            {"boolean", true, 1},
            {"int2", 32_767, 32_767},
            {"int4", 2.0, 2},
            {"numeric(10,2)", 1.25, 1.25},
            {"float8", 3, 3.0},
            {"text", 5, "5"},
            {"jsonb", ~s({"b": [1]}), ~s({"b": [1]})},
            {"date", ~D[2026-03-01], "2026-03-01"},
            {"timestamptz", ~U[2026-03-01 09:30:00Z], "2026-03-01T09:30:00Z"},
            {"uuid", "0009f1a0-0000-0000-0000-00000000000f",
             "0009f1a0-0000-0000-0000-00000000000f"}
          ] do
        assert {type, SQL.query!(sql, "select $1::#{type}", [given]).rows} == {type, [[found]]}
      end

      for {type, given, message} <- [
            {"int2", 32_768,
             "expected an integer from -32768 to 32767 as parameter $1, got: 32768"},
            {"int4", -2_147_483_649,
             "expected an integer from -2147483648 to 2147483647 as parameter $1, got: " <>
               "-2147483649"},
            {"int8", "1; drop table t",
             "expected an integer from -9223372036854775808 to 9223372036854775807 as " <>
               "parameter $1, got: \"1; drop table t\""},
            {"bytea", "a", "expected bytes, {:blob, binary}, as parameter $1, got: \"a\""},
            {"text", {:blob, <<1, 2>>}, "expected text as parameter $1, got: 2 bytes"},
            {"text", "a\0b",
             ~S(expected text without NUL characters as parameter $1, got: "a\0b")},
            {"date", 5, "expected text for the type date as parameter $1, got: 5"},
            {"date", "soon", ~s(invalid input syntax for type date: "soon")}
          ] do
        statement = "select $1::#{type}"

        assert_error(
          SQL.query(sql, statement, [given]),
          :params,
          "#{message}\n  in: #{statement}"
        )
      end
    end

    test "are not changed, whatever they look like" do
      sql = start()
      SQL.query!(sql, "create table t (x text)")

      for text <- [
            "'; drop table t; --",
            "$1 $$ $a$",
            "\\'; E'\\''",
            "\u2028\u{10FFFF}\uFEFF\u202E",
            "%s %n \r\n\t",
            "{:blob, 1}"
          ] do
        assert SQL.query!(sql, "select $1", [text]).rows == [[text]]
        assert SQL.query!(sql, "insert into t values ($1) returning x", [text]).rows == [[text]]
      end

      assert SQL.query!(sql, "select count(*) from t").rows == [[6]]
    end
  end

  describe "errors" do
    test "have the server's text" do
      sql = start()
      SQL.query!(sql, "create table t (id int primary key, title text)")

      for {statement, kind, message} <- [
            {"select titel from t", :syntax,
             ~s(column "titel" does not exist, at character 8\n  hint: Perhaps you meant to ) <>
               ~s(reference the column "t.title".)},
            {"selec 1", :syntax, ~s(syntax error at or near "selec", at character 1)},
            {"select * from nowhere", :no_such_table,
             ~s(relation "nowhere" does not exist, at character 15)},
            {"select 1 / 0", :other, "division by zero"},
            {"vacuum t", :refused, "VACUUM cannot run inside a transaction block"},
            {"set statement_timeout = 0", :refused,
             "`set` would affect only one of several connections"},
            {"copy t from '/etc/passwd'", :refused,
             "`copy` would affect only one of several connections"},
            {"create temp table a (x int)", :refused,
             "temporary tables, views and triggers would exist in only one of several " <>
               "connections"},
            {"START TRANSACTION", :refused,
             "transactions are begun and ended by the transaction function, not by statements"},
            {"select 1; select 2", :syntax,
             "expected one statement, got several; send them one by one"}
          ] do
        assert_error(SQL.query(sql, statement), kind, "#{message}\n  in: #{statement}")
      end

      statement = "select $1, $2"
      message = "expected 2 parameters, for $1 to $2, got 1\n  in: select $1, $2"
      assert_error(SQL.query(sql, statement, [1]), :params, message)
    end

    test "in a transaction close it" do
      sql = start()
      SQL.query!(sql, "create table t (id int primary key)")
      over = "this transaction was already rolled back by an earlier error; begin a new one"

      assert {:error, %Error{kind: :closed, message: ^over}} =
               SQL.transaction(sql, fn sql ->
                 SQL.query!(sql, "insert into t values (1)")

                 assert {:error, %Error{constraint: :unique}} =
                          SQL.query(sql, "insert into t values (1)")

                 assert {:error, %Error{kind: :closed, message: ^over}} =
                          SQL.query(sql, "select 1")

                 {:ok, :unaware}
               end)

      assert SQL.query!(sql, "select count(*) from t").rows == [[0]]
    end
  end

  describe "a statement" do
    test "that looks like a read may write" do
      sql = start()
      SQL.query!(sql, "create table t (id int)")
      SQL.query!(sql, "create sequence s")
      with_insert = "with a as (insert into t values (1) returning id) select id from a"
      assert SQL.query!(sql, with_insert).rows == [[1]]
      assert SQL.query!(sql, "select nextval('s')").rows == [[1]]
      assert SQL.query!(sql, "select id from t for update").rows == [[1]]
      assert SQL.query!(sql, "(select 1) union (select 2) order by 1").rows == [[1], [2]]
      assert SQL.query!(sql, "show timezone").rows == [["UTC"]]
    end

    test "is cancelled at its time limit" do
      sql = start(timeout: 100)
      statement = "select pg_sleep(60)"
      message = "the statement was stopped at its time limit of 100 ms\n  in: #{statement}"
      assert_error(SQL.query(sql, statement), :timeout, message)

      SQL.query!(sql, "create table t (id int)")
      writing = "insert into t select 1 from pg_sleep(60)"

      assert_error(
        SQL.query(sql, writing),
        :timeout,
        "the statement was stopped at its time limit of 100 ms\n  in: #{writing}"
      )

      assert {:error, %Error{kind: :timeout}} = SQL.transaction(sql, &SQL.query(&1, statement))
      assert SQL.query!(sql, "select 1").rows == [[1]]
    end

    test "is prepared once, and again after a change of the tables" do
      url = database()
      sql = start(url: url, pool_size: 1)
      other = start(url: url, pool_size: 1)
      SQL.query!(other, "create table t (id int)")
      SQL.query!(other, "insert into t values (1)")
      select = fn sql -> SQL.query!(sql, "select * from t").rows end
      assert select.(sql) == [[1]]

      SQL.query!(other, "alter table t add column x text default 'a'")
      assert select.(sql) == [[1, "a"]]

      SQL.query!(other, "alter table t add column y int")
      assert {:ok, [[1, "a", nil]]} = SQL.transaction(sql, fn sql -> {:ok, select.(sql)} end)

      assert {:ok, [[1, "a"]]} =
               SQL.transaction(sql, fn sql ->
                 assert select.(sql) == [[1, "a", nil]]
                 :ok = SQL.execute_batch(sql, "alter table t drop column y")
                 assert select.(sql) == [[1, "a"]]
                 {:ok, select.(sql)}
               end)

      for number <- 1..200, do: SQL.query!(sql, "select #{number}")
      [[prepared]] = SQL.query!(sql, "select count(*) from pg_prepared_statements").rows
      assert prepared in 1..70
    end
  end

  describe "the pool" do
    test "is limited, with an error when it is exhausted" do
      sql = start(pool_size: 2, queue_timeout: 50)
      test = self()

      readers =
        for _ <- 1..2 do
          Task.async(fn ->
            send(test, :reads)
            SQL.query!(sql, "select pg_sleep(0.4)")
          end)
        end

      for _ <- 1..2, do: assert_receive(:reads)
      busy_until(fn -> SQL.query(sql, "select 1") end)
      Task.await_many(readers, :infinity)
      assert SQL.query!(sql, "select 1").rows == [[1]]
    end

    test "serves many processes, each with its own result" do
      sql = start(pool_size: 4)

      1..200
      |> Task.async_stream(
        fn n -> assert SQL.query!(sql, "select $1::int", [n]).rows == [[n]] end,
        max_concurrency: 100
      )
      |> Stream.run()

      [[count]] =
        SQL.query!(
          sql,
          "select count(*) from pg_stat_activity where datname = current_database()"
        ).rows

      # The listener connects for the first subscriber.
      assert count in 1..4
    end

    test "keeps connections for readers while many writers wait" do
      sql = start(pool_size: 2)
      SQL.query!(sql, "create table t (id int)")
      release = hold(sql, &SQL.query!(&1, "insert into t values (0)"))

      writers =
        for n <- 1..10,
            do: Task.async(fn -> SQL.query!(sql, "insert into t values ($1)", [n]) end)

      assert SQL.query!(sql, "select count(*) from t").rows == [[0]]
      release.()
      Task.await_many(writers, :infinity)
      assert SQL.query!(sql, "select count(*) from t").rows == [[11]]
    end

    test "frees the connections of killed processes and cancels their statements" do
      sql = start(pool_size: 1)
      SQL.query!(sql, "create table t (id int)")

      for fun <- [
            fn ready -> ready.() && SQL.query(sql, "select pg_sleep(60)") end,
            fn ready ->
              SQL.transaction(sql, fn sql ->
                SQL.query!(sql, "insert into t values (1)")
                ready.() && SQL.query(sql, "select pg_sleep(60)")
              end)
            end
          ] do
        kill(fun)
        SQL.query!(sql, "insert into t values (2)")

        active =
          "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%' and state " <>
            "= 'active' and pid <> pg_backend_pid()"

        wait(fn -> SQL.query!(sql, active).rows == [[0]] end)
      end

      assert SQL.query!(sql, "select id from t").rows == [[2], [2]]
    end

    test "replaces connections that the server has closed" do
      sql = start(pool_size: 1)
      [[pid]] = SQL.query!(sql, "select pg_backend_pid()").rows
      psql!(url(), "select pg_terminate_backend(#{pid}, 5000)")
      [[other]] = SQL.query!(sql, "select pg_backend_pid()").rows
      assert other != pid
    end

    test "that stops closes its callers' transactions" do
      sql = start(name: :stopped_postgres)
      closed = {:error, %Error{kind: :closed, message: "the database is closed"}}

      assert SQL.transaction(sql, fn sql ->
               SQL.query!(sql, "create table t (id int)")
               :ok = stop_supervised(:stopped_postgres)
               assert SQL.query(sql, "select 1") == closed
               {:ok, nil}
             end) == closed

      assert SQL.query(sql, "select 1") == closed
      assert SQL.transaction(sql, fn _ -> flunk("begun") end) == closed
      assert_raise ArgumentError, fn -> Postgres.handle(:stopped_postgres) end
    end
  end

  describe "two databases on one server" do
    test "that are the same database write one after another" do
      url = database()
      both = for _ <- 1..2, do: start(url: url, queue_timeout: 100)
      [first, second] = both
      SQL.query!(first, "create table t (id int)")
      release = hold(first, &SQL.query!(&1, "insert into t values (1)"))

      busy =
        {:error,
         %Error{
           kind: :busy,
           message: "another process has held the database for more than 100 ms; try again"
         }}

      assert SQL.query(second, "insert into t values (2)") == busy
      assert SQL.transaction(second, fn _ -> flunk("begun") end) == busy
      assert SQL.query!(second, "select count(*) from t").rows == [[0]]
      release.()
      assert SQL.query!(second, "insert into t values (2)").num_rows == 1
    end
  end

  describe "writers of parts" do
    defp insert(sql, parts, id) do
      sql
      |> SQL.of_parts(parts)
      |> SQL.transaction([{"insert into t values ($1)", [id]}], fn _sql, _found -> {:ok, id} end)
    end

    # With two pools the server decides, with one the pool.
    for pools <- [1, 2] do
      test "wait for those of the same part and of all, with #{pools} pools" do
        options = [url: database(), queue_timeout: 100]
        first = start(options)
        second = if unquote(pools) == 2, do: start(options), else: first
        SQL.query!(first, "create table t (id int)")
        insert = fn sql, id -> SQL.query!(sql, "insert into t values ($1)", [id]) end

        for {held, rows} <- [
              {[:a],
               [
                 {[:b], :goes_on},
                 {[:b, :c], :goes_on},
                 {[:a], :busy},
                 {[:b, :a], :busy},
                 {[:all], :busy},
                 {[:b, :all], :busy}
               ]},
              {[:a, :b], [{[:b], :busy}, {[:c], :goes_on}]},
              {[:all], [{[:a], :busy}, {[:all], :busy}]}
            ] do
          release = hold(SQL.of_parts(first, held), &insert.(&1, 0))

          for {parts, expected} <- rows do
            got = with {:ok, 1} <- insert(second, parts, 1), do: :goes_on, else: (_error -> :busy)

            assert {held, parts, got} == {held, parts, expected}
          end

          release.()
          assert insert(second, held, 2) == {:ok, 2}
        end
      end
    end

    test "leave connections for readers, and each write is there" do
      sql = start(pool_size: 4)
      SQL.query!(sql, "create table t (id int)")
      releases = for part <- [:a, :b], do: hold(SQL.of_parts(sql, [part]), &{:ok, &1})

      writers =
        for id <- 1..60 do
          parts = Enum.at([[:a], [:b], [:c], [:d], [:a, :b], [:all]], rem(id, 6))
          Task.async(fn -> insert(sql, parts, id) end)
        end

      assert SQL.query!(sql, "select count(*) from t").rows == [[0]]
      for release <- releases, do: release.()
      assert Task.await_many(writers, :infinity) == for(id <- 1..60, do: {:ok, id})
      assert SQL.query!(sql, "select count(*) from t").rows == [[60]]
    end
  end

  describe "listening" do
    test "sends notifications to the subscribers of their channel" do
      sql = start(name: :listening)
      assert Postgres.listen(:listening, "notes") == :ok
      assert Postgres.listen(:listening, "notes") == :ok
      assert Postgres.listen(:listening, ~s(odd "name"; --)) == :ok
      SQL.query!(sql, "select pg_notify('notes', $1), pg_notify('other', 'x')", ["one"])
      SQL.query!(sql, "select pg_notify($1, 'two')", [~s(odd "name"; --)])
      assert_receive {:skillbook_notify, "notes", "one"}
      assert_receive {:skillbook_notify, ~s(odd "name"; --), "two"}
      refute_received {:skillbook_notify, _, _}

      {:error, :back} =
        SQL.transaction(sql, fn sql ->
          SQL.query!(sql, "select pg_notify('notes', 'never')") && {:error, :back}
        end)

      SQL.query!(sql, "select pg_notify('notes', 'three')")
      assert_receive {:skillbook_notify, "notes", text}
      assert text == "three"
    end

    test "validates the channel" do
      for {channel, shown} <- [{"", ~s("")}, {:a, ":a"}, {"a\0", "<<97, 0>>"}] do
        message = "expected a channel, a text of 1 to 63 bytes, got: #{shown}"
        assert_raise ArgumentError, message, fn -> Postgres.listen(:any, channel) end
      end
    end

    test "continues after its connection was lost" do
      sql = start(name: :listening_on)
      Postgres.listen(:listening_on, "notes")

      listening =
        "select pid from pg_stat_activity where datname = current_database() and query like " <>
          "'listen %'"

      [[pid]] = SQL.query!(sql, listening).rows
      psql!(url(), "select pg_terminate_backend(#{pid}, 5000)")
      assert_receive {:skillbook_notify_lost, "notes"}
      SQL.query!(sql, "select pg_notify('notes', 'again')")
      assert_receive {:skillbook_notify, "notes", "again"}
    end
  end

  test "tests without a server name the command that starts one" do
    script = ~S"""
    System.delete_env("SKILLBOOK_POSTGRES")
    Skillbook.PostgresCase.url()
    """

    message =
      ~s(expected the URL of a PostgreSQL server in SKILLBOOK_POSTGRES; start one for the ) <>
        ~s(tests:\n\n    bin/postgres-for-tests run mix test)

    ebin = Application.app_dir(:skillbook, "ebin")
    {output, 1} = System.cmd("elixir", ["-pa", ebin, "-e", script], stderr_to_stdout: true)
    assert output =~ message
  end

  defp busy_until(fun) do
    case fun.() do
      {:error, %Error{kind: :busy, message: message}} ->
        assert message == "none of the 2 connections was free within 50 ms; try again"

      {:ok, _} ->
        # The readers have not begun yet.
        busy_until(fun)
    end
  end

  defp assert_error(result, kind, message) do
    assert {:error, %Error{} = error} = result
    assert {error.kind, Exception.message(error)} == {kind, message}
  end

  defp wait(fun), do: fun.() || (Process.sleep(5) && wait(fun))
end
