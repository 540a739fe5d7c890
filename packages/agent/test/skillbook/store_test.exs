defmodule Skillbook.StoreTest do
  use Skillbook.StoreConformance, start: &__MODULE__.start_store/1

  doctest Skillbook.Store
  doctest Skillbook.StoreError
  doctest Skillbook.Store.Version
  doctest Skillbook.Stored

  def start_store(context),
    do: Path.join(context.tmp_dir, "#{System.unique_integer([:positive])}/store.db")

  test "the store needs a database", %{tmp_dir: folder} do
    text =
      "the store needs a view of a running book that has a database. Start the book with the " <>
        "option store:, " <>
        ~s(for example store: "skillbook.db")

    {:ok, catalog} = Skillbook.Catalog.load([folder])

    for view <- [View.all(catalog), Skillbook.view(book(sources: [folder]), "default")] do
      assert error_text(Store.list(view)) == text
      assert error_text(Store.create(view, %{title: "Milk", content: "x"})) == text
    end
  end
end
