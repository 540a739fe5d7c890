defmodule Skillbook.Store.TableTest do
  use ExUnit.Case, async: true

  alias Skillbook.SQL.{Migrations, SQLite}
  alias Skillbook.Store.Table
  alias Skillbook.{SQL, Stored, StoredRows}

  test "an entry is written to and read from a row" do
    {:ok, _} = SQLite.start_link(path: ":memory:", name: :stored_row)
    sql = SQLite.handle(:stored_row)
    {:ok, _} = Migrations.run(sql)

    stored = %Stored{
      name: "milk",
      kind: :note,
      title: "Milk; '\"",
      content: "Two bottles.",
      tags: ["b", "a", "ä\"]"],
      labels: ["a", "b"],
      include_in_prompt: false,
      excluded_for: ["guest"],
      source: :import,
      author: "bob",
      version: 3,
      enabled: false,
      created_at: ~U[2026-03-01 09:30:00Z],
      updated_at: ~U[2026-03-02 09:30:00Z],
      hash: "00",
      attachments: ["x.png"]
    }

    StoredRows.write_rows(sql, [stored])

    [row] =
      SQL.query!(sql, "select #{Enum.join(Table.columns(), ", ")} from skillbook_entries").rows

    assert Table.from_row(row) == %{stored | id: 1}
  end

  test "labels and ids are stored sorted and unique, tags in their order" do
    assert Table.to_column(:labels, ["b", "a", "b"]) == ~s(["a","b"])
    assert Table.to_column(:excluded_for, ["b", "a"]) == ~s(["a","b"])
    assert Table.to_column(:tags, ["b", "a"]) == ~s(["b","a"])
  end

  test "inspect hides the id" do
    refute inspect(%Stored{id: 4711}) =~ "4711"
  end
end
