defmodule Skillbook.Catalog.SearchTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Catalog, Hit, OptionError, View}

  doctest Skillbook.Hit

  @fixtures "test/support/fixtures"

  setup_all do
    {:ok, catalog} =
      Catalog.load([@fixtures <> "/skills", [path: @fixtures <> "/notes", kind: :notes]])

    %{catalog: catalog, view: View.all(catalog)}
  end

  defp names(view, query, options \\ []),
    do: view |> Skillbook.search(query, options) |> Enum.map(& &1.name)

  test "a hit has the fields of the entry and the positions of words in the snippet", %{
    view: view
  } do
    assert [%Hit{} = hit] = Skillbook.search(view, "haiku")
    assert %{name: "haiku", kind: :skill, title: nil, description: "Write a haiku"} = hit
    assert hit.snippet == "Write a haiku"
    assert hit.highlights == [{8, 5}]
    assert is_float(hit.score) and hit.score == Float.round(hit.score, 3)
  end

  test "filters by kind, domain and tags", %{view: view} do
    rows = [
      {[kind: :command], ["email.search", "tasks.search"]},
      {[kind: :note], []},
      {[kind: nil, domain: nil], ["email.search", "tasks.search"]},
      {[domain: "tasks"], ["tasks.search"]},
      {[limit: 1], ["email.search"]},
      {[tags: ["no such tag"]], []}
    ]

    for {options, expected} <- rows do
      assert Enum.sort(names(view, "search", options)) == expected, inspect(options)
    end
  end

  test "finds only entries that the profile may see", %{catalog: catalog} do
    {:ok, guest} = View.new(catalog, id: "guest")
    {:ok, keeper} = View.new(catalog, id: "keeper", grants: ["private"])
    assert names(guest, "diary") == []
    assert names(keeper, "diary") == ["diary"]
  end

  test "returns nothing for a query that is not text", %{view: view} do
    for query <- ["", " ", "!?", <<255>>, "zzzz"], do: assert(Skillbook.search(view, query) == [])
  end

  test "rejects invalid options", %{view: view} do
    # A value that is neither a list nor a map is in the table of arguments_test.exs.
    for {options, message} <- [
          {[limits: 1],
           "unknown option :limits for a search, did you mean :limit? The options are :limit, " <>
             ":kind, :domain, :tags"},
          {[limit: 0],
           "expected an integer from 1 to 1000 as the option :limit of a search, got: 0"},
          {[limit: 1001],
           "expected an integer from 1 to 1000 as the option :limit of a search, got: 1001"},
          {[kind: :file],
           "expected :command, :skill, :note or nil as the option :kind of a search, got: :file"},
          {[domain: ""], "expected text or nil as the option :domain of a search, got: \"\""},
          {[tags: "a"], "expected a list of texts as the option :tags of a search, got: \"a\""}
        ] do
      error = assert_raise OptionError, fn -> Skillbook.search(view, "x", options) end
      assert Exception.message(error) == message
    end
  end
end
