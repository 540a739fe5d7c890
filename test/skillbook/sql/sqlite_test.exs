defmodule Skillbook.SQL.SQLiteTest.Databases do
  import ExUnit.Callbacks

  def folder(_context) do
    folder =
      Path.join(
        System.tmp_dir!(),
        "skillbook_sql_#{System.unique_integer([:positive])}_#{System.pid()}"
      )

    on_exit(fn -> File.rm_rf!(folder) end)
    folder
  end

  def file(context),
    do: start(context, Path.join([folder(context), "new", "folder", "skills.db"]))

  def memory(context), do: start(context, ":memory:")

  def start(context, path) do
    name = :"sql_#{System.unique_integer([:positive])}"
    options = [path: path, name: name] ++ Keyword.take(Map.to_list(context), [:busy_timeout])
    start_supervised!({Skillbook.SQL.SQLite, options})
    Skillbook.SQL.SQLite.handle(name)
  end
end

defmodule Skillbook.SQL.SQLiteMemoryTest do
  use ExUnit.Case, async: true

  use Skillbook.SQLConformance,
    start: &Skillbook.SQL.SQLiteTest.Databases.memory/1,
    concurrent_reads: false
end

defmodule Skillbook.SQL.SQLiteTest do
  use ExUnit.Case, async: true
  use Skillbook.SQLConformance, start: &Skillbook.SQL.SQLiteTest.Databases.file/1

  import Skillbook.Eventually, only: [monitor: 1]

  alias Skillbook.SQL.SQLite
  alias Skillbook.SQL.SQLiteTest.Databases

  describe "start_link" do
    test "returns an error for a wrong path, without an exit" do
      folder = Databases.folder(%{})
      File.mkdir_p!(folder)
      File.write!(Path.join(folder, "text"), String.duplicate("This is not a database. ", 100))

      for {name, kind, reason} <- [
            {"", :cannot_open, "expected a file, it is a folder"},
            {"text", :corrupt, "file is not a database"},
            {"text/a.db", :cannot_open,
             "cannot create the folder #{folder}/text: File exists (os error 17)"}
          ] do
        path = Path.join(folder, name)
        message = "cannot open the database #{path}: #{reason}"

        assert SQLite.start_link(path: path, name: :never) ==
                 {:error, %Error{kind: kind, message: message}}
      end

      assert_raise ArgumentError, fn -> SQLite.handle(:never) end
    end

    test "refuses unknown options" do
      for {options, message} <- [
            {[pth: "a.db", name: :a],
             "expected the options [:path, :name, :busy_timeout], got: :pth"},
            {[name: :a], ~s(expected :path to be a file or ":memory:", got: nil)},
            {[path: "", name: :a], ~s(expected :path to be a file or ":memory:", got: "")},
            {[path: "a\0", name: :a],
             ~s(expected :path to be a file or ":memory:", got: <<97, 0>>)},
            {[path: ":memory:"], "expected :name to be an atom, got: nil"},
            {[path: ":memory:", name: "a"], ~s(expected :name to be an atom, got: "a")},
            {[path: ":memory:", name: :a, busy_timeout: -1],
             "expected :busy_timeout to be milliseconds, got: -1"}
          ] do
        assert_raise ArgumentError, message, fn -> SQLite.start_link(options) end
      end
    end

    test "returns the running database for a taken name" do
      {:ok, pid} = SQLite.start_link(path: ":memory:", name: :taken)

      assert SQLite.start_link(path: ":memory:", name: :taken) ==
               {:error, {:already_started, pid}}
    end
  end

  test "a name that is not running has no handle" do
    message = "expected the name of a running Skillbook.SQL.SQLite, got: :nobody"
    assert_raise ArgumentError, message, fn -> SQLite.handle(:nobody) end
  end

  test "a stopped database is closed, also for a running transaction", context do
    {:ok, pid} =
      SQLite.start_link(path: Path.join(Databases.folder(context), "a.db"), name: :stopped)

    sql = SQLite.handle(:stopped)
    SQL.query!(sql, "create table t (id integer)")
    closed = {:error, %Error{kind: :closed, message: "the database is closed"}}

    assert SQL.transaction(sql, fn sql ->
             SQL.query!(sql, "insert into t values (1)")
             GenServer.stop(pid)
             {:error, %Error{kind: :closed}} = SQL.query(sql, "select 1")
             {:ok, nil}
           end) == closed

    assert SQL.query(sql, "select 1") == closed
    assert SQL.transaction(sql, fn _ -> flunk("begun") end) == closed
    assert_raise ArgumentError, fn -> SQLite.handle(:stopped) end
  end

  test "a database restarted by its supervisor loses nothing", context do
    name = :restarted
    start_supervised!({SQLite, path: Path.join(Databases.folder(context), "a.db"), name: name})
    SQL.query!(SQLite.handle(name), "create table t (id integer)")
    before = Process.whereis(name)
    monitor = monitor(before)
    Process.exit(before, :kill)
    assert_receive {:DOWN, ^monitor, :process, _, :killed}

    # Until the new process runs, the name returns the old handle, which refuses writes.
    wait(fn -> match?({:ok, _}, SQL.query(SQLite.handle(name), "insert into t values (1)")) end)
    assert one(SQLite.handle(name), "select count(*) from t") == 1
  end

  @tag busy_timeout: 2000
  test "two databases on one file share it, and migrate once", context do
    path = Path.join(Databases.folder(context), "shared.db")
    both = for _ <- 1..2, do: Databases.start(context, path)

    ran =
      for sql <- both do
        Task.async(fn -> SQL.Migrations.run(sql, Enum.take(migrations(), 2)) end)
      end
      |> Task.await_many(:infinity)

    assert Enum.sort(Enum.flat_map(ran, fn {:ok, versions} -> versions end)) == [1, 2]

    for sql <- both,
        do:
          Task.async(fn -> for _ <- 1..20, do: SQL.query!(sql, "update u set id = id + 1") end)
          |> Task.await(:infinity)

    for sql <- both, do: assert(one(sql, "select id from u") == 47)
  end

  test "a write waits for another operating system process up to busy_timeout",
       context do
    path = Path.join(Databases.folder(context), "shared.db")

    [first, second] =
      for _ <- 1..2, do: Databases.start(Map.put(context, :busy_timeout, 50), path)

    SQL.query!(first, "create table t (id integer)")
    release = hold(first, &SQL.query!(&1, "insert into t values (1)"))

    assert SQL.query(second, "insert into t values (2)") ==
             {:error,
              %Error{
                kind: :busy,
                message:
                  "another process has held the database for more than 50 ms; try again\n  " <>
                    "in: insert into t values (2)",
                sql: "insert into t values (2)"
              }}

    assert {:error, %Error{kind: :busy}} = SQL.transaction(second, fn _ -> flunk("begun") end)
    assert release.() == {:ok, :committed}
    assert SQL.query!(second, "insert into t values (2)").num_rows == 1
  end

  test "a killed operating system process loses no acknowledged write",
       context do
    path = Path.join(Databases.folder(context), "killed.db")
    ebin = Application.app_dir(:skillbook, "ebin")

    script = ~S"""
    [path] = System.argv()
    {:ok, _} = Skillbook.SQL.SQLite.start_link(path: path, name: :killed)
    sql = Skillbook.SQL.SQLite.handle(:killed)
    Skillbook.SQL.query!(sql, "create table t (pair integer, half integer)")

    for pair <- Stream.iterate(1, &(&1 + 1)) do
      {:ok, _} =
        Skillbook.SQL.transaction(sql, fn sql ->
          for half <- 1..2,
              do: Skillbook.SQL.query!(sql, "insert into t values ($1, $2)", [pair, half])
          {:ok, nil}
        end)

      IO.puts("pair #{pair}")
    end
    """

    port =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        :exit_status,
        line: 100,
        args: ["-pa", ebin, "-e", script, path]
      ])

    acknowledged = await_pair(port, 20)
    {:os_pid, os_pid} = Port.info(port, :os_pid)
    {_, 0} = System.cmd("kill", ["-KILL", to_string(os_pid)])
    last = drain(port, acknowledged)

    sql = Databases.start(context, path)
    assert one(sql, "pragma integrity_check") == "ok"
    assert one(sql, "select max(pair) from t") >= last
    assert one(sql, "select count(*) from t") == 2 * one(sql, "select max(pair) from t")
  end

  defp await_pair(port, wanted) do
    receive do
      {^port, {:data, {:eol, "pair " <> number}}} ->
        number = String.to_integer(number)
        if number < wanted, do: await_pair(port, wanted), else: number

      {^port, {:exit_status, status}} ->
        flunk("the writer ended by itself with status #{status}")
    end
  end

  defp drain(port, last) do
    receive do
      {^port, {:data, {:eol, "pair " <> number}}} -> drain(port, String.to_integer(number))
      {^port, {:data, {:noeol, _}}} -> drain(port, last)
      {^port, {:exit_status, _}} -> last
    end
  end

  defp wait(fun), do: fun.() || (Process.sleep(5) && wait(fun))
end
