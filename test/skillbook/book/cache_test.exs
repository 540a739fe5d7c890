defmodule Skillbook.Book.CacheTest do
  use ExUnit.Case, async: true

  alias Skillbook.Book.Cache

  setup do
    ets = :ets.new(:cache, [:public])
    {:ok, ets: ets, made: :counters.new(1, [])}
  end

  defp once(ets, make) do
    found = fn ->
      case :ets.lookup(ets, :value) do
        [{_, value}] -> {:ok, value}
        [] -> :error
      end
    end

    Cache.once(ets, :key, found, fn ->
      value = make.()
      :ets.insert(ets, {:value, value})
      value
    end)
  end

  test "of many processes one makes a value, and all get it", %{ets: ets, made: made} do
    test = self()

    make = fn ->
      :counters.add(made, 1, 1)
      send(test, {:making, self()})
      receive do: (:go -> :made)
    end

    tasks = for _ <- 1..50, do: Task.async(fn -> once(ets, make) end)
    assert_receive {:making, pid}
    # The others wait.
    refute_receive {:making, _pid}, 100
    send(pid, :go)
    assert Task.await_many(tasks, :infinity) == List.duplicate(:made, 50)
    assert :counters.get(made, 1) == 1
    assert :ets.tab2list(ets) == [value: :made]
  end

  test "another process makes it if the first one is killed or fails", %{ets: ets} do
    test = self()

    for fail <- [
          fn -> Process.exit(self(), :kill) end,
          fn -> exit(:shutdown) end
        ] do
      :ets.delete_all_objects(ets)

      first =
        spawn(fn ->
          once(ets, fn ->
            send(test, :making)
            receive do: (:go -> fail.())
          end)
        end)

      assert_receive :making
      second = Task.async(fn -> once(ets, fn -> :second end) end)
      assert Task.yield(second, 50) == nil
      send(first, :go)
      assert Task.await(second, :infinity) == :second
      assert :ets.tab2list(ets) == [value: :second]
    end
  end

  test "without the table, because the book has stopped, each makes it", %{ets: ets} do
    :ets.delete(ets)
    assert Cache.once(ets, :key, fn -> :error end, fn -> :made end) == :made
  end

  describe "a list" do
    setup do
      book = :"book_#{System.unique_integer([:positive])}"
      Cache.new(book)
      {:ok, book: book, table: Cache.name(book, EntryLists)}
    end

    test "is made once for its key, also if many need it at once", context do
      %{book: book, made: made} = context

      make = fn value ->
        fn ->
          :counters.add(made, 1, 1)
          value
        end
      end

      tasks = for _ <- 1..50, do: Task.async(fn -> Cache.keep(book, {:a, 1}, make.(:one)) end)
      assert Task.await_many(tasks, :infinity) == List.duplicate(:one, 50)
      assert :counters.get(made, 1) == 1
      assert Cache.keep(book, {:a, 2}, make.(:two)) == :two
      assert Cache.keep(book, {:a, 1}, make.(:three)) == :one
    end

    test "that is too large is not kept, and nobody waits for it", context do
      %{book: book, table: table, made: made} = context
      test = self()

      make = fn ->
        :counters.add(made, 1, 1)
        :binary.copy("x", 8 * 1024 * 1024)
      end

      large = make.()
      assert Cache.keep(book, :large, make) == large
      assert [{_key, :too_large, 0}] = :ets.tab2list(table)

      slow = fn ->
        send(test, {:making, self()})
        receive do: (:go -> large)
      end

      # Two make it at the same time.
      tasks = for _ <- 1..2, do: Task.async(fn -> Cache.keep(book, :large, slow) end)
      pids = for _ <- tasks, do: assert_receive({:making, pid} when is_pid(pid))
      for {:making, pid} <- pids, do: send(pid, :go)
      assert Task.await_many(tasks, :infinity) == [large, large]
    end

    test "that is not valid any more is made anew, and an error is not kept", %{book: book} do
      keep = fn now ->
        Cache.keep(book, :until, fn -> {now, now + 10} end, fn {_, until} -> now < until end)
      end

      assert Enum.map([0, 9, 10, 19], keep) == [{0, 10}, {0, 10}, {10, 20}, {10, 20}]

      assert {:error, %ArgumentError{}} =
               Cache.keep_ok(book, :ok, fn -> {:error, %ArgumentError{}} end)

      assert Cache.keep_ok(book, :ok, fn -> {:ok, 1} end) == {:ok, 1}
      assert Cache.keep_ok(book, :ok, fn -> {:error, %ArgumentError{}} end) == {:ok, 1}
    end

    test "makes room for others: by their number, and by their bytes", context do
      %{book: book, table: table} = context
      for n <- 1..1_000, do: Cache.keep(book, n, fn -> n end)
      assert :ets.info(table, :size) == 1_000
      Cache.keep(book, 1_001, fn -> 1_001 end)
      assert :ets.info(table, :size) == 1

      :ets.delete_all_objects(table)
      part = :binary.copy("x", 7 * 1024 * 1024)
      for n <- 1..9, do: Cache.keep(book, n, fn -> part end)
      assert :ets.info(table, :size) == 9
      Cache.keep(book, 10, fn -> part end)
      assert :ets.info(table, :size) == 1
    end

    test "is made by each where no book is, or it has stopped", %{book: book, table: table} do
      assert Cache.keep(nil, :key, fn -> :made end) == :made
      :ets.delete(table)
      assert Cache.keep(book, :key, fn -> :made end) == :made
    end
  end
end
