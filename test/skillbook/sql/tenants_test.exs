defmodule Skillbook.SQL.TenantsTest do
  # Writers of two books on one PostgreSQL: those of different tenants do not wait for each other.
  use Skillbook.SkillsCase, async: true

  import Skillbook.PostgresCase, only: [database: 0]
  import Skillbook.SQLConformance, only: [hold: 2]

  alias Skillbook.SQL.Postgres
  alias Skillbook.{Book, SQL, Store, StoreError, View}

  @moduletag :capture_log

  @profiles [[id: "ann", tenant: "a"], [id: "amy", tenant: "a"], [id: "bob", tenant: "b"]] ++
              [[id: "common"]]

  defp books(options \\ []) do
    url = database()

    for _book <- 1..2 do
      store = {Postgres, [url: url] ++ options}
      book(builtins: ["tasks", "memory"], store: store, profiles: @profiles, watch: false)
    end
  end

  defp run(book, profile, line) do
    [result] = Skillbook.run(Skillbook.view(book, profile), "```cmd\n#{line}\n```").results
    if result.status == :ok, do: :ok, else: {:error, result.content}
  end

  defp note(book, profile, name) do
    case Store.put_note(Skillbook.view(book, profile), name, "Text of #{profile}.") do
      {:ok, _entry} -> :ok
      {:error, %StoreError{kind: kind}} -> kind
      {:error, %SQL.Error{kind: kind}} -> kind
    end
  end

  test "a transaction of a tenant keeps its own and common writers waiting" do
    [first, second] = books(queue_timeout: 300)
    task = &run(second, &1, "tasks.create --title Report")
    memory = &run(second, &1, "memory.save --content Tea")

    for {parts, rows} <- [
          {[{:tenant, "a"}],
           [
             {"bob", [true, true, true]},
             {"ann", [false, true, false]},
             {"common", [false, true, false]}
           ]},
          {[{:memories, "ann"}],
           [
             {"bob", [true, true, true]},
             {"amy", [true, true, true]},
             {"ann", [true, false, true]}
           ]},
          {[:all], [{"bob", [false, false, false]}]}
        ] do
      release = hold(SQL.of_parts(sql(first), parts), &{:ok, &1})

      for {profile, expected} <- rows do
        name = "note-#{System.unique_integer([:positive])}"
        written = [task.(profile), memory.(profile), note(second, profile, name)]
        assert {parts, profile, Enum.map(written, &(&1 == :ok))} == {parts, profile, expected}
      end

      release.()
      assert {task.("ann"), memory.("ann"), note(second, "ann", "after")} == {:ok, :ok, :ok}
    end
  end

  test "writers that come together with one that waits do not wait" do
    [first, second] = books()
    release = hold(SQL.of_parts(sql(first), [{:tenant, "a"}]), &{:ok, &1})
    ann = for n <- 1..3, do: Task.async(fn -> note(second, "ann", "ann-#{n}") end)
    bob = for n <- 1..9, do: Task.async(fn -> note(second, "bob", "bob-#{n}") end)
    assert Enum.uniq(Task.await_many(bob, :infinity)) == [:ok]
    assert Enum.map(ann, &Task.yield(&1, 0)) == [nil, nil, nil]
    release.()
    assert Task.await_many(ann, :infinity) == [:ok, :ok, :ok]
  end

  # Transactions of four tenants on two nodes, in random order, each open for a while.
  test "no reader misses a write, in whatever order transactions begin and end" do
    books = books()
    :ok = note(hd(books), "ann", "sample")
    {:ok, sample} = Store.fetch(Skillbook.view(hd(books), "ann"), "sample")

    last =
      for round <- 1..15, reduce: {0, ["sample"]} do
        {revision, names} ->
          open =
            for tenant <- 1..4 do
              name = "round-#{round}-#{tenant}"
              entry = %{sample | id: nil, name: name, title: name, tenant: "t#{tenant}"}
              {name, slow(Enum.random(books), entry)}
            end

          for {name, pid} <- Enum.shuffle(open), reduce: {revision, names} do
            {revision, names} ->
              other = "round-#{round}-beside-#{name}"
              :ok = note(Enum.random(books), "bob", other)
              ends = Enum.random([:commit, :commit, :rollback])
              send(pid, ends)
              assert_receive {^pid, result}, 60_000

              case {ends, result} do
                {:commit, {:ok, next}} ->
                  assert next > revision
                  for book <- books, do: :ok = Store.Follower.sync(book, next)
                  names = [name, other | names]
                  for book <- books, do: assert(Enum.sort(names) == names_of(book))
                  {next, names}

                {:rollback, {:error, :rollback}} ->
                  {revision, [other | names]}
              end
          end
      end

    assert {revision, _names} = last
    assert revision > 60
  end

  defp slow(book, entry) do
    {sql, test} = {SQL.of_parts(sql(book), [{:tenant, entry.tenant}]), self()}
    {first, fun} = Store.Table.transaction(%Skillbook.Profile{id: "slow"}, nil, &{&1, &2, &3})

    pid =
      spawn_link(fn ->
        result =
          SQL.transaction(sql, first, fn sql, found ->
            {sql, number, _named} = fun.(sql, found)
            {:ok, _entry} = Store.Table.put(sql, entry, :create, :user, number)
            send(test, {self(), :begun})

            receive do:
                      (
                        :commit -> Store.Table.commit(sql, [number])
                        :rollback -> {:error, :rollback}
                      )
          end)

        send(test, {self(), result})
      end)

    assert_receive {^pid, :begun}, 60_000
    pid
  end

  defp names_of(book) do
    for entry <- View.entries(View.all(book)), entry.source == "store", do: entry.name
  end

  defp sql(book), do: book |> Book.fetch!() |> Book.sql()

  test "names are those that one order of the writers gives, across tenants and common entries" do
    [first, second] = books()
    writers = [{first, "common"}, {second, "ann"}, {first, "amy"}, {second, "bob"}]

    write = fn {book, profile}, name ->
      Store.create(Skillbook.view(book, profile), fields(name))
    end

    kind = fn result -> with {:error, error} <- result, do: error.kind, else: (_ -> :ok) end

    orders =
      for {order, number} <- Enum.with_index(permutations(writers)), into: MapSet.new() do
        results = for writer <- order, do: {writer, kind.(write.(writer, "order-#{number}"))}
        Enum.sort(results)
      end

    assert MapSet.size(orders) > 1

    for round <- 1..40 do
      results =
        writers
        |> Enum.shuffle()
        |> Enum.map(&Task.async(fn -> {&1, kind.(write.(&1, "round-#{round}"))} end))
        |> Task.await_many(:infinity)

      assert Enum.sort(results) in orders
    end
  end

  defp fields(name), do: %{name: name, title: name, content: "Text.", description: "Text"}

  defp permutations([]), do: [[]]

  defp permutations(list),
    do: for(one <- list, rest <- permutations(list -- [one]), do: [one | rest])
end
