defmodule Skillbook.GroupCommitConformance do
  @moduledoc false
  # The tests of `Skillbook.SQL.GroupCommit` that run on every connection, as a part of
  # `Skillbook.SQLConformance`.

  import ExUnit.Assertions
  import Skillbook.Eventually

  alias Skillbook.SQL
  alias Skillbook.SQL.GroupCommit

  def insert(id, result \\ nil) do
    {[{"insert into t values ($1)", [id]}], fn _sql, [%{num_rows: 1}] -> result || {:ok, id} end}
  end

  def ids(sql), do: List.flatten(SQL.query!(sql, "select id from t order by id").rows)

  @doc "Runs transactions that all wait for the one before them, and returns their results."
  def together(%{server: server, sql: sql}, transactions) do
    test = self()

    first =
      {[],
       fn _sql, [] ->
         send(test, {:begun, self()})
         receive do: (:go -> {:error, :first})
       end}

    blocking = Task.async(fn -> GroupCommit.run(server, sql, [first]) end)
    assert_receive {:begun, pid}

    tasks =
      for {transaction, at} <- Enum.with_index(transactions, 1) do
        task = Task.async(fn -> one(server, sql, transaction) end)
        # They come in order.
        assert eventually(fn -> length(:sys.get_state(server).waiting) == at end)

        task
      end

    send(pid, :go)
    assert Task.await(blocking, :infinity) == [{:error, :first}]
    Task.await_many(tasks, :infinity)
  end

  defp one(server, sql, transaction) do
    [result] = GroupCommit.run(server, sql, [transaction])
    result
  catch
    _kind, reason -> {:raised, reason, hd(__STACKTRACE__)}
  end

  def committed do
    receive do
      {:committed, values} -> values ++ committed()
    after
      0 -> []
    end
  end

  @doc "Starts the process of a test, which gets the committed values."
  def start(%{sql: sql} = context) do
    SQL.query!(sql, "create table t (id integer primary key)")
    test = self()

    arguments =
      [context.test, &send(test, {:committed, &1})] ++ List.wrap(if context[:last], do: &last/2)

    start = {GroupCommit, :start_link, arguments}
    {:ok, server: ExUnit.Callbacks.start_supervised!(%{id: GroupCommit, start: start})}
  end

  # Adds a row, and its number to the values.
  defp last(sql, [first | _] = values) do
    row = {"insert into t values ($1) returning id", [first + 1000]}

    with {:ok, [%{rows: [[id]]}]} <- SQL.commit(sql, [row]),
         do: {:ok, for(value <- values, do: {value, id})}
  end

  defmacro __using__(_options) do
    quote location: :keep do
      describe "transactions that wait together" do
        import Skillbook.GroupCommitConformance,
          only: [insert: 1, insert: 2, ids: 1, together: 2, committed: 0]

        alias Skillbook.SQL.{Error, GroupCommit}

        setup :start_group

        defp start_group(context), do: Skillbook.GroupCommitConformance.start(context)

        test "a transaction alone is committed or rolled back", %{sql: sql, server: server} do
          assert GroupCommit.run(server, sql, [insert(1)]) == [{:ok, 1}]
          assert_receive {:committed, [1]}
          assert GroupCommit.run(server, sql, [insert(2, {:error, :no})]) == [{:error, :no}]
          assert [{:error, %Error{kind: :constraint}}] = GroupCommit.run(server, sql, [insert(1)])
          assert GroupCommit.run(server, sql, []) == []
          assert ids(sql) == [1]
          refute_received {:committed, _}
        end

        test "those that wait are committed together, in order", %{sql: sql} = context do
          assert together(context, for(id <- 1..10, do: insert(id))) ==
                   for(id <- 1..10, do: {:ok, id})

          values = Enum.to_list(1..10)
          assert_receive {:committed, ^values}
          assert ids(sql) == values
        end

        test "each has its own answer, and undoes its own changes only", %{sql: sql} = context do
          assert [
                   {:ok, 1},
                   {:error, :no},
                   {:error, %Error{kind: :constraint, constraint: :unique}},
                   {:ok, 2}
                 ] =
                   together(context, [insert(1), insert(7, {:error, :no}), insert(1), insert(2)])

          assert_receive {:committed, [1, 2]}
          assert ids(sql) == [1, 2]
        end

        test "a later one sees the changes of those before it", context do
          count = {[{"select count(*) from t", []}], fn _sql, [%{rows: [[n]]}] -> {:ok, n} end}

          assert together(context, [insert(1), count, insert(2), count]) == [
                   {:ok, 1},
                   {:ok, 1},
                   {:ok, 2},
                   {:ok, 2}
                 ]
        end

        @tag :last
        test "the last statements of a transaction see the values of all",
             %{sql: sql} = context do
          assert GroupCommit.run(context.server, sql, [insert(1)]) == [{:ok, {1, 1001}}]

          assert together(context, [insert(7, {:error, :no}), insert(2), insert(3)]) ==
                   [{:error, :no}, {:ok, {2, 1002}}, {:ok, {3, 1002}}]

          assert_receive {:committed, [{1, 1001}]}
          assert_receive {:committed, [{2, 1002}, {3, 1002}]}

          # If they fail, nothing is written.
          SQL.query!(sql, "insert into t values (1005)")

          assert [{:error, %Error{kind: :constraint}}] =
                   GroupCommit.run(context.server, sql, [insert(5)])

          assert [{:error, %Error{}}, {:error, %Error{}}] =
                   together(context, [insert(5), insert(6)])

          assert ids(sql) == [1, 2, 3, 1001, 1002, 1005]
          refute_received {:committed, _}
        end

        test "after an unexpected error each runs alone", %{sql: sql} = context do
          for {first, fun, expected} <- [
                {10, fn _sql, _ -> raise "boom" end, %RuntimeError{message: "boom"}},
                {20, fn _sql, _ -> throw(:out) end, :out},
                {30, fn sql, _ -> SQL.query(sql, "select nothing from") end, :syntax}
              ] do
            odd = {[{"insert into t values (5)", []}], fun}
            given = [insert(first), odd, insert(first + 1)]
            assert [{:ok, ^first}, odd, {:ok, _}] = together(context, given)

            case odd do
              {:error, %Error{kind: kind}} ->
                assert kind == expected

              {:raised, reason, {__MODULE__, _function, _arity, _place}} ->
                assert reason == expected
            end

            # None was committed with the others, and none twice.
            assert committed() == [first, first + 1]
          end

          assert ids(sql) == [10, 11, 20, 21, 30, 31]
        end

        test "a group takes 64, and more of one caller come in several", %{
          sql: sql,
          server: server
        } do
          results = GroupCommit.run(server, sql, for(id <- 1..150, do: insert(id)))
          assert results == for(id <- 1..150, do: {:ok, id})

          for ids <- [1..64, 65..128, 129..150] do
            ids = Enum.to_list(ids)
            assert_receive {:committed, ^ids}
          end

          lists = for first <- [200, 300, 400], do: for(id <- 0..39, do: insert(first + id))
          tasks = for list <- lists, do: Task.async(fn -> GroupCommit.run(server, sql, list) end)
          results = Task.await_many(tasks, :infinity)
          assert Enum.map(results, &hd/1) == [{:ok, 200}, {:ok, 300}, {:ok, 400}]
          assert length(ids(sql)) == 270
        end

        @tag busy_timeout: 20
        test "all get the error of a database that is busy", %{sql: sql} = context do
          release =
            Skillbook.SQLConformance.hold(sql, &SQL.query!(&1, "insert into t values (7)"))

          results = GroupCommit.run(context.server, sql, [insert(1), insert(2)])
          assert [{:error, %Error{kind: :busy}}, {:error, %Error{kind: :busy}}] = results
          assert release.() == {:ok, :committed}
          assert ids(sql) == [7]
        end

        test "one that has waited too long does not begin", %{sql: sql, server: server} do
          message = "the database was busy with other writes for too long; nothing was written"

          assert GroupCommit.run(server, sql, [insert(1)], [:all], -1) == [
                   {:error, %Error{kind: :busy, message: message}}
                 ]

          assert ids(sql) == []
          refute_received {:committed, _}
        end

        test "an answer that cannot come is an error that says so", %{sql: sql, server: server} do
          test = self()

          hanging =
            {[],
             fn _sql, [] ->
               send(test, {:begun, self()})
               Process.sleep(:infinity)
             end}

          task = Task.async(fn -> GroupCommit.run(server, sql, [hanging]) end)
          assert_receive {:begun, pid}
          Process.exit(pid, :kill)

          message =
            "the database's writer stopped before it answered; the write may have been made"

          assert Task.await(task, :infinity) == [{:error, %Error{kind: :lost, message: message}}]

          message = "the database's writer does not run; nothing was written"

          assert GroupCommit.run(:nobody, sql, [insert(1)]) == [
                   {:error, %Error{kind: :closed, message: message}}
                 ]
        end

        test "many callers lose nothing", %{sql: sql, server: server} do
          results =
            1..16
            |> Enum.map(fn caller ->
              Task.async(fn ->
                for turn <- 1..25, do: GroupCommit.run(server, sql, [insert(caller * 100 + turn)])
              end)
            end)
            |> Task.await_many(:infinity)
            |> List.flatten()

          assert length(results) == 400
          assert for({:ok, id} <- results, do: id) |> Enum.sort() == ids(sql)
          assert committed() |> Enum.sort() == ids(sql)
        end
      end
    end
  end
end
