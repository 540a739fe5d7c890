defmodule Skillbook.TestTest do
  # The examples of skills, and assertions about single requests.
  use Skillbook.SkillsCase, async: true

  doctest Skillbook.Test
  doctest Skillbook.MisroutedError

  alias Skillbook.{Catalog, Embedder, EmbedderError, Lint, MisroutedError, Profile, Test}
  alias Skillbook.{UnknownSkillError, View}

  @moduletag :tmp_dir

  # Names with a description and the lines of `examples`. The words of requests that find nothing
  # begin with a z. A keyword makes the router sure.
  defp skills(folder, rows) do
    files =
      for {name, description, examples} <- rows, into: %{} do
        lines = Enum.map_join(examples, &"  - #{&1}\n")
        fields = "name: #{name}\ndescription: #{description}\nexamples:\n#{lines}"
        fields = fields <> "trigger_keywords: [sure#{name}]\n"
        {"#{name}/SKILL.md", "---\n#{fields}---\nText.\n"}
      end

    write(folder, files)
    view(folder)
  end

  @weather [
    {"rain", "Forecasts rain, wind", ["rain zoo", "wind zoo", "not: surerain rain"]},
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
             {"rain", "surerain rain", true, 1, false, ["rain"]},
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
    assert Test.refute_routes(view, "surerain", "snow") == :ok
    assert Test.refute_routes(view, "surerain", "unknown") == :ok
    # The first one of a search is not picked if it hardly fits.
    assert Test.assert_routes(view, "The zebra of the zoo saw rain", "rain") == :ok
    assert Test.refute_routes(view, "The zebra of the zoo saw rain") == :ok

    for name <- [nil, "rain"] do
      error =
        assert_raise MisroutedError, fn -> Test.refute_routes(view, "Some surerain", name) end

      assert Exception.message(error) =~
               "expected \"Some surerain\" not to lead to `rain`, but it is picked\n  1  rain"

      assert {error.name, error.rank, error.expected} == {"rain", 1, :not_picked}
    end
  end

  describe "with a router" do
    # Of a model that always picks verse, and the names that are picked then.
    defp verse do
      Skillbook.Model.Function.new(fn _messages, _options ->
        ~S({"skills": [{"name": "verse", "confidence": 0.9, "reason": ""}]})
      end)
    end

    # The options of the book and of the call, the request, the entry, and what is raised.
    test "assertions are about its picks", %{tmp_dir: folder} do
      skills(folder, @weather)
      on = [preflight: []]
      asks = [preflight: [model: verse()]]

      for {of_book, options, request, name, message} <- [
            {on, [], "Some surerain", "rain", nil},
            {on, [], "The zebra has rain", "rain",
             "expected the router to pick `rain` for \"The zebra has rain\", it picks nothing"},
            {on, [preflight: false], "The zebra has rain", "rain", nil},
            {[preflight: nil], [], "The zebra has rain", "rain", nil},
            {[preflight: nil], on, "The zebra has rain", "rain",
             "expected the router to pick `rain` for \"The zebra has rain\", it picks nothing"},
            {asks, [], "The zebra has rain", "verse", nil},
            {asks, [first: 1], "The zebra has rain", "verse",
             "expected \"The zebra has rain\" to lead to `verse` first, got others"},
            {asks, [], "The zebra has rain", "rain",
             "expected the router to pick `rain` for \"The zebra has rain\", it picks `verse`"}
          ] do
        book = book([sources: [folder], builtins: false] ++ of_book)
        check = fn -> Test.assert_routes(book, request, name, options) end

        if message,
          do: assert(hd(String.split(message_of(check), "\n")) == message),
          else: assert(check.() == :ok)
      end

      book = book([sources: [folder], builtins: false] ++ asks)
      assert message_of(fn -> Test.refute_routes(book, "zoo") end) =~ "`verse`, but it is picked"
      assert Test.refute_routes(book, "zoo", "rain") == :ok
    end

    defp message_of(fun), do: Exception.message(assert_raise MisroutedError, fun)

    test "run/2 passes by its picks, and says how many there are", %{tmp_dir: folder} do
      view = skills(folder, [{"verse", "Writes", ["zoo", "not: zebra"]}, {"rain", "Rains", []}])

      for {options, router, picked, passed} <- [
            {[], false, 0.0, [false, true]},
            {[preflight: []], true, 0.0, [false, true]},
            {[preflight: [model: verse()]], true, 1.0, [true, false]},
            {[preflight: false], false, 0.0, [false, true]}
          ] do
        test = Test.run(view, options)
        assert {test.router, test.picked} == {router, picked}
        assert Enum.map(test.results, & &1.passed) == passed
        assert Enum.map(test.results, & &1.picked) == [picked == 1.0, picked == 1.0]
      end

      broken = Skillbook.Model.Function.new(fn _messages, _options -> "no" end)

      assert_raise RuntimeError,
                   "the stage :model of the router failed: the model's answer: expected a JSON" <>
                     " object, got: \"no\"",
                   fn -> Test.run(view, preflight: [model: broken]) end

      assert_raise Skillbook.OptionError, ~r/:preflight of a test of examples/, fn ->
        Test.run(view, preflight: true)
      end
    end
  end

  describe "with an embedder" do
    # Counts words of two subjects, so that requests and descriptions meet without a common word.
    defp embedder(calls \\ self()) do
      subjects = [~w(rain umbrella wet), ~w(verse poem rhyme)]

      Embedder.Function.new("subjects", fn texts ->
        send(calls, {:embedded, length(texts)})

        for text <- texts do
          words = text |> String.downcase() |> String.split(~r/\W+/)
          for(subject <- subjects, do: Enum.count(words, &(&1 in subject))) ++ [0.2]
        end
      end)
    end

    @rows [
      {"weather", "Tells the wind. Says whether it gets wet.",
       ["umbrella zoo", "not: rhyme zoo"]},
      {"poet", "Writes a poem", ["rhyme zoo", "umbrella zebra", "zoo"]},
      {"bard", "Writes a verse", []}
    ]

    test "requests lead by meaning, and the closest sentence is shown", %{tmp_dir: folder} do
      words = folder |> skills(@rows) |> Test.run()
      book = book(sources: [folder], builtins: false, embedder: embedder())
      test = book |> View.all() |> Test.run()

      ranks = &for result <- &1.results, do: {result.name, result.request, result.rank}

      assert ranks.(words) == [
               {"poet", "rhyme zoo", nil},
               {"poet", "umbrella zebra", nil},
               {"poet", "zoo", nil},
               {"weather", "umbrella zoo", nil},
               {"weather", "rhyme zoo", nil}
             ]

      assert [{"poet", "rhyme zoo", 2}, {"poet", "umbrella zebra", rank} | rest] = ranks.(test)
      assert rank in [nil, 2, 3]
      assert {"weather", "umbrella zoo", 1} in rest
      assert {test.vectors, words.vectors} == {true, false}

      [weather | _] = Enum.find(test.results, &(&1.request == "umbrella zebra")).ranking
      assert {weather.name, weather.words} == {"weather", []}
      assert weather.sentence == "Says whether it gets wet."
      assert weather.similarity > 0.9

      # A description of one sentence, and a pair without a common rare word.
      [bard, poet] = hd(test.results).ranking
      assert {bard.sentence, poet.sentence} == {"Writes a verse", "Writes a poem"}
      assert %{meaning: meaning} = Enum.find(test.pairs, &(&1.names == ["bard", "poet"]))
      assert meaning > 0.9
      assert Enum.all?(words.pairs, &(&1.meaning == nil))

      assert Test.assert_routes(book, "an umbrella", "weather") == :ok
      error = catch_error(Test.assert_routes(book, "an umbrella", "poet"))

      assert Exception.message(error) =~
               ~r/1  weather  +\S+  ~[01]\.\d\d\n     "Says whether it gets wet\."/
    end

    test "waits until the entries have vectors", %{tmp_dir: folder} do
      skills(folder, @rows)
      test = self()
      slow = embedder()

      gate =
        Embedder.Function.new("gate", fn texts ->
          send(test, {:called, self()})
          receive do: (:go -> :ok)
          {:ok, vectors} = Embedder.embed(slow, texts)
          for vector <- vectors, do: for(<<number::float-32-little <- vector>>, do: number)
        end)

      book = book(sources: [folder], builtins: false, embedder: gate)
      task = Task.async(fn -> book |> View.all() |> Test.run() end)
      assert_receive {:called, entries}
      assert Task.yield(task, 50) == nil
      send(entries, :go)

      assert %Test{vectors: true} = answer(task)
    end

    defp answer(task) do
      receive do
        {:called, embedder} ->
          send(embedder, :go)
          answer(task)
      after
        0 -> with nil <- Task.yield(task, 20), do: answer(task), else: ({:ok, test} -> test)
      end
    end

    @tag :capture_log
    test "an embedder that fails is an error", %{tmp_dir: folder} do
      skills(folder, @rows)
      down = Embedder.Function.new("down", fn _texts -> raise "down" end)
      book = book(sources: [folder], builtins: false, embedder: down)
      assert_raise EmbedderError, fn -> book |> View.all() |> Test.run() end
      assert_raise EmbedderError, fn -> Test.assert_routes(book, "a", "poet") end
    end

    test "a hidden entry changes nothing", %{tmp_dir: folder} do
      [open, all] = for name <- ["open", "all"], do: Path.join(folder, name)
      skills(open, @rows)
      skills(all, @rows)
      hidden = page("hidden", description: "An umbrella, a rhyme", labels: "[own]")
      write(all, %{"hidden.md" => hidden})

      [one, other] =
        for root <- [open, all] do
          profiles = [[id: "guest"]]
          options = [sources: [root], builtins: false, embedder: embedder(), profiles: profiles]
          Test.run(Skillbook.view(book(options), "guest"))
        end

      assert one == other
      assert one.vectors
    end
  end
end
