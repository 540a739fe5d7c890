defmodule Skillbook.SQLTest do
  use ExUnit.Case, async: true

  doctest Skillbook.SQL
  doctest Skillbook.SQL.Error
  doctest Skillbook.SQL.SQLite
  doctest Skillbook.SQL.Migrations

  test "the list of migrations is in order" do
    {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :migrations_in_order)
    {:ok, versions} = Skillbook.SQL.Migrations.run(Skillbook.SQL.SQLite.handle(:migrations_in_order))
    assert versions == versions |> Enum.sort() |> Enum.uniq()
  end
end

defmodule Skillbook.SQL.SQLiteTest.Databases do
  import ExUnit.Callbacks

  def folder(_context) do
    folder =
      Path.join(System.tmp_dir!(), "skillbook_sql_#{System.unique_integer([:positive])}_#{System.pid()}")

    on_exit(fn -> File.rm_rf!(folder) end)
    folder
  end

  def file(context), do: start(context, Path.join([folder(context), "new", "folder", "skills.db"]))

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
  use Skillbook.SQLConformance, start: &Skillbook.SQL.SQLiteTest.Databases.memory/1, concurrent_reads: false
end

defmodule Skillbook.SQL.SQLiteTest do
  use ExUnit.Case, async: true
  use Skillbook.SQLConformance, start: &Skillbook.SQL.SQLiteTest.Databases.file/1
end
