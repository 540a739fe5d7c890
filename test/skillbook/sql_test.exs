defmodule Skillbook.SQLTest do
  use ExUnit.Case, async: true

  doctest Skillbook.SQL
  doctest Skillbook.SQL.Error
  doctest Skillbook.SQL.SQLite
  doctest Skillbook.SQL.Migrations

  test "migrations are listed in order" do
    {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :migrations_in_order)

    {:ok, versions} =
      Skillbook.SQL.Migrations.run(Skillbook.SQL.SQLite.handle(:migrations_in_order))

    assert versions == versions |> Enum.sort() |> Enum.uniq()
  end
end
