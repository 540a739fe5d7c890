# The table of vectors on both databases.
for dialect <- [:sqlite, :postgres] do
  defmodule Module.concat(Skillbook.Embedding.TableTest, Macro.camelize("#{dialect}")) do
    use ExUnit.Case, async: true

    alias Skillbook.Embedding.Table
    alias Skillbook.SQL
    alias Skillbook.SQL.{Migrations, SQLite}

    @moduletag dialect: dialect

    @today ~D[2026-03-01]

    setup %{dialect: dialect} do
      sql = open(dialect)
      {:ok, _} = Migrations.run(sql)
      %{sql: sql}
    end

    defp open(:postgres), do: Skillbook.PostgresCase.start()

    defp open(:sqlite) do
      name = :"vectors_#{System.unique_integer([:positive])}"
      start_supervised!({SQLite, path: ":memory:", name: name})
      SQLite.handle(name)
    end

    defp digest(n), do: binary_part(:crypto.hash(:sha256, "#{n}"), 0, 16)
    defp vector(n, size \\ 2), do: for(_ <- 1..size, into: <<>>, do: <<n::float-32-little>>)
    defp rows(numbers), do: for(n <- numbers, do: {digest(n), vector(n)})
    defp digests(numbers), do: Enum.map(numbers, &digest/1)

    # A book that needs this one.
    defp needed(n), do: fn digests -> Enum.filter(digests, &(&1 == digest(n))) end

    defp read(sql, numbers, options \\ []) do
      model = options[:model] || "m"
      today = options[:today] || @today
      {:ok, rows} = Table.read(sql, model, options[:size], digests(numbers), today)
      Enum.sort(rows)
    end

    test "returns the vectors of the digests that are there", %{sql: sql} do
      assert read(sql, 1..3) == []
      assert Table.write(sql, "m", rows(1..200), @today) == :ok
      assert Table.write(sql, "other", rows([300]), @today) == :ok
      assert read(sql, 1..200) == Enum.sort(rows(1..200))
      assert read(sql, [7, 201, 300]) == rows([7])
      assert read(sql, [7, 300], model: "other") == rows([300])
      assert read(sql, []) == []
    end

    test "keeps a row that is there, unless the size differs", %{sql: sql} do
      :ok = Table.write(sql, "m", rows(1..2), @today)
      :ok = Table.write(sql, "m", [{digest(1), vector(9)}, {digest(2), vector(9, 3)}], @today)
      assert read(sql, 1..2) == Enum.sort([{digest(1), vector(1)}, {digest(2), vector(9, 3)}])
      assert read(sql, 1..2, size: 2) == rows([1])
      assert read(sql, 1..2, size: 3) == [{digest(2), vector(9, 3)}]
      assert read(sql, 1..2, size: 4) == []
    end

    test "lists the digests, also with vectors of one size", %{sql: sql} do
      listed = fn size ->
        {:ok, all} = Agent.start_link(fn -> [] end)
        :ok = Table.each(sql, "m", size, fn some -> Agent.update(all, &(some ++ &1)) end)
        all |> Agent.get(& &1) |> Enum.sort()
      end

      assert listed.(nil) == []
      # More than a page.
      :ok = Table.write(sql, "m", rows(1..5_300), @today)
      :ok = Table.write(sql, "m", [{digest(6_000), vector(1, 3)}], @today)
      :ok = Table.write(sql, "other", rows([7_000]), @today)
      assert listed.(nil) == Enum.sort(digests([6_000 | Enum.to_list(1..5_300)]))
      assert listed.(2) == Enum.sort(digests(1..5_300))
      assert listed.(3) == digests([6_000])
      assert {:ok, known} = Table.known(sql, "m", 2, digests(5_250..7_000), @today)
      assert Enum.sort(known) == Enum.sort(digests(5_250..5_300))
    end

    test "rows that no book needs are deleted after 90 days", %{sql: sql} do
      :ok = Table.write(sql, "m", rows(1..1_300), @today)
      :ok = Table.write(sql, "old model", rows(1..10), @today)
      later = &Date.add(@today, &1)
      # The book needs one of them and marks it.
      assert Table.tidy(sql, "m", needed(5), later.(50)) == :ok
      assert Table.tidy(sql, "m", needed(5), later.(90)) == :ok
      assert length(read(sql, 1..1_300)) == 1_300
      assert Table.tidy(sql, "m", needed(5), later.(91)) == :ok
      assert read(sql, 1..1_300) == rows([5])
      assert read(sql, 1..10, model: "old model") == []
      assert Table.tidy(sql, "m", needed(0), later.(175)) == :ok
      assert read(sql, [5]) == rows([5])
      assert Table.tidy(sql, "m", needed(0), later.(200)) == :ok
      assert read(sql, [5]) == []
    end

    test "a row is marked once a week", %{sql: sql} do
      :ok = Table.write(sql, "m", rows([1]), @today)

      marked = fn days, mark ->
        mark.(Date.add(@today, days))
        {:ok, %{rows: [[day]]}} = SQL.query(sql, "select used_on from skillbook_vectors")
        Date.diff(Date.from_iso8601!(day), @today)
      end

      tidy = fn today -> :ok = Table.tidy(sql, "m", needed(1), today) end
      assert Enum.map([1, 7, 8, 9, 15, 16], &marked.(&1, tidy)) == [0, 0, 8, 8, 8, 16]
      # So is one that is read.
      read = fn today -> assert read(sql, [1], today: today) == rows([1]) end
      assert Enum.map([17, 23, 24, 25], &marked.(&1, read)) == [16, 16, 24, 24]
    end

    test "the migration can be undone", %{sql: sql} do
      assert Migrations.undo(sql, 11) == {:ok, Enum.to_list(24..11)}
      assert {:error, %{kind: :no_such_table}} = Table.read(sql, "m", nil, digests([1]), @today)
      assert Migrations.run(sql) == {:ok, Enum.to_list(11..24)}
      assert read(sql, [1]) == []
    end
  end
end
