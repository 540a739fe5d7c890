defmodule Skillbook.SQL.TenantsTest do
  # Writers of two books on one PostgreSQL: those of different tenants do not wait for each other.
  use Skillbook.SkillsCase, async: true

  import Skillbook.PostgresCase, only: [database: 0]
  import Skillbook.SQLConformance, only: [hold: 2]

  alias Skillbook.SQL.Postgres
  alias Skillbook.{Book, SQL, Store, StoreError}

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
    sql = fn parts -> first |> Book.fetch!() |> Book.sql() |> SQL.of_parts(parts) end
    task = &run(second, &1, "tasks.create --title Report")
    memory = &run(second, &1, "memory.save --content Tea")

    for {parts, rows} <- [
          {[{:tenant, "a"}],
           [
             {"bob", [true, true, true]},
             {"ann", [false, true, false]},
             {"common", [false, true, false]}
           ]},
          {[:entries, {:tenant, "a"}],
           [{"bob", [true, true, false]}, {"ann", [false, true, false]}]},
          {[{:memories, "ann"}],
           [
             {"bob", [true, true, true]},
             {"amy", [true, true, true]},
             {"ann", [true, false, true]}
           ]},
          {[:all], [{"bob", [false, false, false]}]}
        ] do
      release = hold(sql.(parts), &{:ok, &1})

      for {profile, expected} <- rows do
        name = "note-#{System.unique_integer([:positive])}"
        written = [task.(profile), memory.(profile), note(second, profile, name)]
        assert {parts, profile, Enum.map(written, &(&1 == :ok))} == {parts, profile, expected}
      end

      release.()
      assert {task.("ann"), memory.("ann"), note(second, "ann", "after")} == {:ok, :ok, :ok}
    end
  end

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
