defmodule Skillbook.Search.CandidatesTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Catalog, Source, View}
  alias Skillbook.Search.Candidates

  setup_all do
    {:ok, catalog} = Catalog.load([Source.builtin()])
    %{view: View.all(catalog)}
  end

  test "finds the same entries as a search, with the parts of their scores", %{view: view} do
    for text <- ["remember this fact", "taks", "tasks.get", "no such words at all", ""] do
      found = Candidates.find(view, text, 5)
      hits = Skillbook.search(view, text, limit: 5)
      assert Enum.map(found, &{&1.name, &1.score}) == Enum.map(hits, &{&1.name, &1.score})
      assert Enum.all?(found, &(&1.words == &1.score and &1.similarity == nil))
    end

    assert [%{name: "tasks.get"}] = Candidates.find(view, "tasks.get", 1)
    assert Candidates.find(view, "zzzz", 5) == []
  end

  test "finds no hidden entries", %{view: view} do
    {:ok, catalog} = Catalog.load([Source.builtin()])
    {:ok, guest} = View.new(catalog, id: "guest", skills: ["memory.*"])
    assert "tasks.get" in Enum.map(Candidates.find(view, "tasks", 10), & &1.name)
    refute "tasks.get" in Enum.map(Candidates.find(guest, "tasks", 10), & &1.name)
  end
end
