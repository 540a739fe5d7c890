defmodule Skillbook.TestTest do
  # The examples of skills, and assertions about single requests.
  use Skillbook.SkillsCase, async: true

  doctest Skillbook.Test
  doctest Skillbook.MisroutedError

  alias Skillbook.{Catalog, Lint, MisroutedError, Profile, Test, UnknownSkillError, View}

  @moduletag :tmp_dir

  # Names with a description and the lines of `examples`. The words of requests that find nothing
  # begin with a z.
  defp skills(folder, rows) do
    files =
      for {name, description, examples} <- rows, into: %{} do
        lines = Enum.map_join(examples, &"  - #{&1}\n")
        fields = "name: #{name}\ndescription: #{description}\nexamples:\n#{lines}"
        {"#{name}/SKILL.md", "---\n#{fields}---\nText.\n"}
      end

    write(folder, files)
    view(folder)
  end

  @weather [
    {"rain", "Forecasts rain, wind", ["rain zoo", "wind zoo", "not: rain verse"]},
    {"snow", "Forecasts snow, ice", ["wind forecasts zoo", "not: zoo"]},
    {"verse", "Writes verse, songs", ["zoo zebra"]}
  ]

  test "each example has its place, and what comes before it", %{tmp_dir: folder} do
    test = folder |> skills(@weather) |> Test.run()

    short =
      for result <- test.results,
          do:
            {result.name, result.request, result.not, result.rank, result.passed,
             Enum.map(result.ranking, & &1.name)}

    assert short == [
             {"rain", "rain zoo", false, 1, true, []},
             {"rain", "wind zoo", false, 1, true, []},
             {"rain", "rain verse", true, 1, false, ["rain"]},
             {"snow", "wind forecasts zoo", false, 2, true, ["rain", "snow"]},
             {"snow", "zoo", true, nil, true, []},
             {"verse", "zoo zebra", false, nil, false, []}
           ]

    assert {test.hit1, test.hit3, test.entries, test.unlisted} == {2 / 4, 3 / 4, 3, []}
    refute test.vectors

    [rain, snow] = Enum.at(test.results, 3).ranking
    assert {rain.rank, snow.rank} == {1, 2}
    assert Enum.map(rain.words, & &1.word) == ["wind", "forecasts"]
    assert Enum.map(snow.words, & &1.word) == ["forecasts"]
    assert rain.score > snow.score
    assert Enum.all?(rain.words ++ snow.words, &(&1.part > 0))
    assert rain.similarity == nil
  end

  test "only the first three are shown before an entry", %{tmp_dir: folder} do
    others = for number <- 1..12, do: {"rain#{number}", "Tells rain, wind", []}
    rows = [{"sky", "Clouds, wind", ["rain, wind"]}]

    for {count, rank, shown} <- [
          {0, 1, []},
          {1, 2, [1, 2]},
          {2, 3, [1, 2, 3]},
          {3, 4, [1, 2, 3, 4]},
          {9, 10, [1, 2, 3, 10]},
          {10, nil, [1, 2, 3]}
        ] do
      view = skills(Path.join(folder, "#{count}"), rows ++ Enum.take(others, count))
      [result] = Test.run(view).results
      assert {result.rank, Enum.map(result.ranking, & &1.rank)} == {rank, shown}
      assert result.passed == rank in 1..3

      if rank,
        do: assert({List.last(result.ranking)[:name], rank > 1} in [{nil, false}, {"sky", true}])
    end
  end

  test "pairs are those that take examples, then those that are alike", %{tmp_dir: folder} do
    view = skills(folder, @weather ++ [{"hail", "Forecasts ice, snow", []}])
    pairs = for pair <- Test.run(view).pairs, do: {pair.names, pair.taken, pair.words}

    assert [
             {["hail", "snow"], [0, 1], [_, _, "forecasts"]},
             {["rain", "snow"], [0, 1], []}
           ] = Enum.take(pairs, 2)

    assert Test.run(view, pairs: 1).pairs == Enum.take(Test.run(view).pairs, 1)
    assert Test.run(view, pairs: 0).pairs == []
    assert [%{names: ["hail", "snow"]}] = Test.run(view, only: ["hail"]).pairs
  end

  test "only some are tested, and all compete", %{tmp_dir: folder} do
    view = skills(folder, @weather)
    test = Test.run(view, only: ["snow", "unknown"])
    assert Enum.map(test.results, & &1.name) == ["snow", "snow"]
    assert hd(test.results).rank == 2
    assert test.entries == 1
    assert %Test{results: [], hit1: nil, hit3: nil, entries: 0} = Test.run(view, only: [])
  end

  test "an entry that models do not see is named, not tested", %{tmp_dir: folder} do
    write(folder, %{
      "a.md" => page("a", examples: "[a]", "disable-model-invocation": true),
      "b.md" => page("b", "disable-model-invocation": true)
    })

    assert %Test{results: [], unlisted: ["a"], entries: 0} = Test.run(view(folder))
  end

  test "a hidden entry neither competes nor is tested", %{tmp_dir: folder} do
    open = skills(Path.join(folder, "open"), @weather)
    skills(Path.join(folder, "all"), @weather)

    write(Path.join(folder, "all"), %{
      "secret.md" =>
        page("secret",
          examples: "[wind forecasts zoo, zoo zebra]",
          aliases: "[zoo, zebra]",
          visibility_labels: "[own]"
        )
    })

    {:ok, catalog} = Catalog.load([Path.join(folder, "all")])
    {:ok, guest} = View.new(catalog, id: "guest")
    assert Test.run(guest) == Test.run(open)
    assert Test.run(View.all(catalog)) != Test.run(open)
    options = [profile: %Profile{Profile.unrestricted() | id: "guest", grants: []}]
    refute inspect(Lint.run([Path.join(folder, "all")], options)) =~ "secret"
    assert {:error, %UnknownSkillError{}} = View.examples(guest, "secret")
  end

  test "nothing that a model reads has examples in it", %{tmp_dir: folder} do
    [with_examples, without] =
      for {name, more} <- [a: [examples: "[zebra, {not: zoo}]"], b: []] do
        root = Path.join([folder, "#{name}", "skills"])
        write(root, %{"rain/SKILL.md" => page("rain", more), "x/go.md" => page("x.go", more)})
        view = view(root)

        {Skillbook.search(view, "zebra"), Skillbook.search(view, "zoo"),
         Skillbook.search(view, "rain"), Skillbook.prompt(view),
         Skillbook.prompt(view, preloaded: ["rain"]), Skillbook.get(view, "rain"),
         Skillbook.get(view, "x.go"), Skillbook.Tools.definitions(view)}
      end

    assert {[], [], [_], _, _, _, _, _} = with_examples
    assert with_examples == without
  end

  describe "assert_routes/4" do
    test "passes up to the given place", %{tmp_dir: folder} do
      view = skills(folder, @weather)
      assert Test.assert_routes(view, "wind forecasts", "rain") == :ok
      assert Test.assert_routes(view, "wind forecasts", "snow", first: 2) == :ok
      assert Test.assert_routes(view, "verse", "verse", first: 10) == :ok

      book = book(sources: [folder], builtins: false)
      assert Test.assert_routes(book, "wind forecasts", "rain") == :ok
      assert Test.refute_routes(book, "zoo") == :ok
    end

    test "shows the ranking, and why", %{tmp_dir: folder} do
      view = skills(folder, @weather)

      for {request, name, options, headline, lines} <- [
            {"wind forecasts", "snow", [], "first, got it in place 2",
             ["  1  rain  N  wind N, forecasts N", "  2  snow  N  forecasts N"]},
            {"wind", "verse", [first: 3], "among the first 3, got others",
             ["  1  rain  N  wind N"]},
            {"zoo", "verse", [], "first, got no entry", []},
            {<<255>>, "verse", [], "first, got no entry", []}
          ] do
        error =
          assert_raise MisroutedError, fn ->
            Test.assert_routes(view, request, name, options)
          end

        [first | rest] = error |> Exception.message() |> String.split("\n")
        assert first == "expected #{inspect(request)} to lead to `#{name}` #{headline}"
        assert Enum.map(rest, &String.replace(&1, ~r/\d+\.\d+/, "N")) == lines
      end
    end

    test "says which entry is unknown, and which option is wrong", %{tmp_dir: folder} do
      view = skills(folder, @weather)

      assert_raise UnknownSkillError, fn -> Test.assert_routes(view, "rain", "rian") end

      for options <- [[first: 0], [first: 11], [frist: 1]] do
        assert_raise Skillbook.OptionError, fn ->
          Test.assert_routes(view, "rain", "rain", options)
        end
      end

      assert_raise Skillbook.OptionError,
                   "expected an integer from 0 to 1000 as the option :pairs of a test of " <>
                     "examples, got: -1",
                   fn -> Test.run(view, pairs: -1) end
    end
  end

  test "refute_routes/3 fails for what is picked", %{tmp_dir: folder} do
    view = skills(folder, @weather)
    assert Test.refute_routes(view, "zoo") == :ok
    assert Test.refute_routes(view, "rain", "snow") == :ok
    assert Test.refute_routes(view, "rain", "unknown") == :ok

    for name <- [nil, "rain"] do
      error =
        assert_raise MisroutedError, fn ->
          Test.refute_routes(view, "Forecasts rain, wind", name)
        end

      assert Exception.message(error) =~
               "expected \"Forecasts rain, wind\" not to lead to `rain`, but it is picked\n" <>
                 "  1  rain"

      assert {error.name, error.rank, error.expected} == {"rain", 1, :not_picked}
    end
  end
end
