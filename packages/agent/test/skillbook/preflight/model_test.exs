defmodule Skillbook.Preflight.ModelTest do
  # When the router asks its model, what the model sees, and which answers are read.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Model, Preflight, View}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.HTTPServer

  @moduletag :tmp_dir

  @lock "Is the front door locked?"
  @none ~S({"skills": [], "no_skill_needed": true})

  # A catalog of so many skills: two that the requests are about, and others. Words find neither
  # of the two for `@lock`.
  defp catalog(folder, count, more \\ %{}) do
    others =
      for n <- 1..(count - 2), into: %{} do
        name = "skill-#{String.pad_leading("#{n}", 3, "0")}"
        {"#{name}.md", "---\nname: #{name}\ndescription: About #{topic(n)}\n---\nText.\n"}
      end

    own = %{
      "home-automation.md" =>
        "---\nname: home-automation\ntitle: Home Automation\n" <>
          "description: Control lights, heating and sensors of the house\n" <>
          "trigger_keywords: [thermostat, smart home]\n---\nText.\n",
      "zebra.md" =>
        "---\nname: zebra\ndescription: Zebras, their stripes and their food\n" <>
          "trigger_keywords: [stripes]\n---\nText.\n"
    }

    write(folder, Map.merge(own, Map.merge(others, more)))
    {:ok, catalog} = Catalog.load([folder])
    {:ok, view} = View.new(catalog, id: "ann")
    view
  end

  # A word that only the skill of this number has.
  defp topic(n) do
    <<number::40, _rest::binary>> = :crypto.hash(:sha256, "#{n}")

    for(<<digit <- Integer.to_string(number, 20)>>, do: digit + if(digit < ?A, do: 49, else: 42))
    |> List.to_string()
  end

  defp model(answer) do
    test = self()

    Model.Function.new(fn [%{content: system}, %{content: text} | repair], options ->
      send(test, {:asked, shown(text), system, options, repair})
      answer
    end)
  end

  defp shown(text) do
    [_, skills] = Regex.run(~r/<skills>\n(.*)\n<\/skills>/s, text)

    for line <- String.split(skills, "\n", trim: true) do
      {:ok, %{"name" => name}} = JSON.decode(line)
      name
    end
  end

  # Whether the model was asked, with the names that it saw, and the picks.
  defp ask(view, messages, options, answer \\ @none) do
    options = Keyword.merge([model: model(answer), timeout: 30_000], options)
    result = Preflight.run(view, messages, options)

    asked =
      receive do
        {:asked, names, _system, _options, _repair} -> names
      after
        0 -> nil
      end

    stage = Enum.find(result.stages, &(&1.stage == :model))

    case asked do
      nil -> assert stage == nil or stage.status == :skipped
      _ -> assert stage.status == :ok
    end

    {asked, Enum.map(result.picks, &{&1.name, &1.stage})}
  end

  describe "is asked" do
    # The stages, the other options, the request, and whether it is asked.
    @rows [
      # Words find nothing, something, and the right one for certain.
      {nil, [], @lock, true},
      {nil, [], "zebra", true},
      {nil, [], "Zebras, their stripes of food", true},
      {[:model], [], @lock, true},
      {[:model], [], "stripes", true},
      {[:keywords, :model], [], @lock, true},
      {[:retrieval, :model], [], @lock, true},
      {[:retrieval, :model], [], "zebra", true},
      {nil, [threshold: 0.0], @lock, true},
      {nil, [threshold: 1.0], "zebra", true},
      {nil, [threshold: 1], "stripes", true},
      # A greeting is for the model to judge.
      {nil, [], "Good morning!", true},
      # A keyword is sure of its own entry, and says nothing of others.
      {nil, [], "Set the thermostat and feed the hippo", true},
      {nil, [max: 2], "Set the thermostat and feed the hippo", true},
      # No place is left.
      {nil, [max: 1], "Set the thermostat and feed the hippo", false},
      {nil, [max: 2], "Stripes on the thermostat of a hippo", false},
      # Nothing else is said.
      {nil, [], "Thermostat?", false},
      {nil, [], "the smart home", false},
      {[:keywords, :model], [], "Stripes, and the thermostat", false},
      # No word at all.
      {nil, [], "👍", false},
      {[:model], [], "?!", false},
      # The stage is not wanted, or there is no model.
      {[:keywords, :retrieval], [], @lock, false},
      {nil, [model: nil], @lock, false}
    ]

    for count <- [3, 19, 20, 21, 200] do
      test "of #{count} entries", %{tmp_dir: folder} do
        count = unquote(count)
        view = catalog(folder, count)
        names = for entry <- View.entries(view), do: entry.name
        assert length(names) == count

        for {stages, options, request, asked?} <- @rows do
          options = if(stages, do: [stages: stages], else: []) ++ options
          {seen, picks} = ask(view, request, options)
          assert {options, request, seen != nil} == {options, request, asked?}

          cond do
            seen == nil -> :ok
            count <= 20 -> assert {request, seen} == {request, names}
            true -> assert {request, length(seen) in 12..20} == {request, true}
          end

          # With an answer of "none", only keywords pick; so they do if it is not asked.
          if options[:model] != nil or asked?,
            do:
              assert({request, Enum.reject(picks, &(elem(&1, 1) == :keywords))} == {request, []})
        end
      end
    end

    test "unless nothing is left to pick", %{tmp_dir: folder} do
      for {files, request, asked?} <- [
            {[], @lock, false},
            {[:note], @lock, false},
            {[:hidden, :out], @lock, false},
            {[:one], "A thermostat for the hippo", false},
            {[:one], @lock, true},
            {[:one, :other], "A thermostat for the hippo", true},
            {[:one, :hidden, :out, :note], "A thermostat for the hippo", false}
          ] do
        texts = %{
          one: "name: one\ndescription: One\ntrigger_keywords: [thermostat]",
          other: "name: other\ndescription: Other",
          hidden: "name: hidden\ndescription: Hidden\nlabels: [boss]",
          out: "name: out\ndescription: Out\ninclude_in_prompt: false",
          note: "title: Note"
        }

        root = Path.join(folder, "#{System.unique_integer([:positive])}")

        for name <- files do
          place = if name == :note, do: "notes", else: "skills"
          write(root, %{"#{place}/#{name}.md" => "---\n#{texts[name]}\n---\nText.\n"})
        end

        for place <- ["notes", "skills"], do: File.mkdir_p!(Path.join(root, place))
        notes = [path: Path.join(root, "notes"), kind: :notes]
        {:ok, catalog} = Catalog.load([Path.join(root, "skills"), notes])
        {:ok, view} = View.new(catalog, id: "ann")
        {seen, _picks} = ask(view, request, [])
        assert {files, request, seen != nil} == {files, request, asked?}
        if seen, do: assert(seen -- ["one", "other"] == [])
      end
    end

    test "about a message without words that follows others", %{tmp_dir: folder} do
      view = catalog(folder, 3)

      messages = [
        %{role: :user, content: "It is cold."},
        %{role: :assistant, content: "Shall I turn the heating on?"},
        %{role: :user, content: "👍"}
      ]

      assert {[_, _, _], []} = ask(view, messages, [])
    end
  end

  describe "of a large catalog it sees" do
    test "what keywords and words find first, then others by name", %{tmp_dir: folder} do
      view = catalog(folder, 300)

      {seen, []} = ask(view, "The stripes of #{topic(7)}, #{topic(250)}", stages: [:model])
      # The keyword's entry, then those with a word.
      assert ["zebra" | rest] = seen
      assert Enum.sort(Enum.take(rest, 2)) == ["skill-007", "skill-250"]
      assert length(seen) == 12
      assert Enum.at(rest, 2) == "home-automation"
    end

    test "what the messages before were about", %{tmp_dir: folder} do
      view = catalog(folder, 300)

      messages = [
        %{role: :user, content: "What do zebras eat?"},
        %{role: :assistant, content: "Grass, says #{topic(99)}."},
        %{role: :user, content: "And #{topic(200)}?"}
      ]

      {seen, []} = ask(view, messages, [])
      assert ["skill-200" | rest] = seen
      assert ["skill-099", "zebra"] -- Enum.take(rest, 3) == []
    end

    test "at most 20 entries, of keywords at most 8 before the others", %{tmp_dir: folder} do
      many =
        for n <- 1..30, into: %{} do
          {"many#{n}.md",
           "---\nname: many#{n}\ndescription: Many\ntrigger_keywords: [hippo]\n---\nText.\n"}
        end

      view = catalog(folder, 60, many)
      {seen, picks} = ask(view, "A hippo with stripes and lights", max: 10, threshold: 0.96)
      assert picks == []
      assert length(seen) in 12..20
      assert "zebra" in seen and "home-automation" in seen
      assert Enum.all?(Enum.take(seen, 8), &(&1 == "zebra" or &1 =~ "many"))
    end

    test "what vectors find", %{tmp_dir: folder} do
      catalog(folder, 100)

      # The number of door and house, and a little of everything.
      embedder =
        Skillbook.Embedder.Function.new("doors", fn texts ->
          for text <- texts do
            [length(Regex.scan(~r/door|house/, text)) * 1.0, 0.1, String.length(text) / 1_000]
          end
        end)

      book = book(sources: [folder], builtins: false, embedder: embedder)
      view = Skillbook.view(book)
      :ok = Skillbook.Embedding.Entries.await(view, fn _ -> :ok end)
      {["home-automation" | rest], []} = ask(view, @lock, stages: [:model])
      assert length(rest) in 11..19
    end
  end

  describe "its answer" do
    # An answer, and the picks with their confidence and reason.
    test "is read in the forms of other routers", %{tmp_dir: folder} do
      view = catalog(folder, 3)

      one = fn list, name ->
        ~s({"#{list}": [{"#{name}": "zebra", "confidence": 0.95, "reason": "stripes"}],) <>
          ~s( "no_skill_needed": false})
      end

      for {answer, expected} <- [
            {one.("skills", "name"), [{"zebra", 0.95, "stripes"}]},
            {one.("selected_skills", "skill_id"), [{"zebra", 0.95, "stripes"}]},
            {one.("skills", "skill_id"), [{"zebra", 0.95, "stripes"}]},
            {one.("selected_skills", "title"), [{"zebra", 0.95, "stripes"}]},
            {~S({"selected_skills": [
                {"skill_id": "home-automation", "confidence": 0.95, "reason": "lights"},
                {"skill_id": "zebra", "confidence": 0.72, "reason": "food"}],
               "no_skill_needed": false}),
             [{"home-automation", 0.95, "lights"}, {"zebra", 0.72, "food"}]},
            {~S({"selected_skills": [], "no_skill_needed": true}), []},
            {~S({"selected_skills": []}), []},
            {~S({"no_skill_needed": true}), []},
            {~S({"skills": [{"name": "zebra", "confidence": 0.9}]}), [{"zebra", 0.9, ""}]},
            {~S({"skills": [{"name": "zebra", "confidence": 0.9, "reasoning": "so"}]}),
             [{"zebra", 0.9, "so"}]},
            # Titles, as a list alone.
            {~S(["Home Automation", "zebra"]),
             [{"home-automation", 1.0, ""}, {"zebra", 1.0, ""}]},
            {"[]", []},
            {~S({"selected_skills": ["HOME automation"]}), [{"home-automation", 1.0, ""}]},
            # More than may be picked, and names of none.
            {~S(["zebra", "no", "skill-001", "home-automation"]),
             [{"skill-001", 1.0, ""}, {"zebra", 1.0, ""}]},
            {"Sure!\n```json\n" <> one.("selected_skills", "skill_id") <> "\n```",
             [{"zebra", 0.95, "stripes"}]}
          ] do
        options = [model: model(answer), timeout: 30_000, stages: [:model]]
        result = Preflight.run(view, @lock, options)
        assert [%{stage: :model, status: :ok, error: nil}] = result.stages
        assert_received {:asked, _, _, _, []}
        picks = for pick <- result.picks, do: {pick.name, pick.confidence, pick.reason}
        assert {answer, Enum.sort(picks)} == {answer, Enum.sort(expected)}
        assert result.needed == (expected != [])
      end
    end

    test "in another form is asked for again, with the error", %{tmp_dir: folder} do
      view = catalog(folder, 3)

      for {answer, error} <- [
            {~S({"answer": "zebra"}), "expected the field `skills`, got: none"},
            {~S({"skills": "zebra"}), "at skills: expected a list, got: \"zebra\""},
            {~S({"skills": [{"name": "zebra", "confidence": "high", "reason": ""}]}),
             "at skills[0].confidence: expected a number, got: \"high\""},
            {~S({"skills": [{"confidence": 1}]}),
             "at skills[0]: expected the field `name`, got: none"},
            {~S([7]), "at skills[0]: expected an object, got: 7"},
            {"zebra", ~s(expected a JSON object, got: "zebra")}
          ] do
        result = Preflight.run(view, @lock, model: model(answer), timeout: 30_000)
        assert %{stage: :model, status: :failed, error: got} = List.last(result.stages)
        assert {answer, got =~ error, got} == {answer, true, got}
        assert_received {:asked, _, _, _, []}
        assert_received {:asked, _, _, _, [%{role: :assistant}, %{role: :user, content: repair}]}
        assert repair =~ error
      end
    end

    test "counts from the threshold on, and up to the maximum", %{tmp_dir: folder} do
      view = catalog(folder, 12)

      answer = fn confidences ->
        skills =
          for {confidence, n} <- Enum.with_index(confidences, 1),
              do: %{skill_id: "skill-00#{n}", confidence: confidence, reason: "r"}

        JSON.encode(%{selected_skills: skills, no_skill_needed: false})
      end

      for {options, confidences, expected} <- [
            {[], [0.4, 0.6, 0.5], ["skill-002", "skill-003"]},
            {[threshold: 0.0], [0.0, 0.1], ["skill-002", "skill-001"]},
            {[threshold: 0.9], [0.8, 1], ["skill-002"]},
            {[max: 1], [0.9, 0.95], ["skill-001"]},
            {[max: 2], [0.6, 0.9], ["skill-002", "skill-001"]}
          ] do
        options = [stages: [:model]] ++ options
        {_seen, picks} = ask(view, @lock, options, answer.(confidences))
        assert {options, picks} == {options, for(name <- expected, do: {name, :model})}
      end
    end

    test "does not push out what a keyword picked", %{tmp_dir: folder} do
      view = catalog(folder, 12)
      skills = for n <- 1..2, do: %{name: "skill-00#{n}", confidence: 1, reason: ""}
      answer = JSON.encode(%{skills: skills, no_skill_needed: false})
      {_seen, picks} = ask(view, "Set the thermostat and feed the hippo", [max: 2], answer)
      assert Enum.sort(picks) == [{"home-automation", :keywords}, {"skill-001", :model}]
    end
  end

  describe "stages: [:model]" do
    for count <- [3, 12, 300] do
      test "decides alone about #{count} entries", %{tmp_dir: folder} do
        view = catalog(folder, unquote(count))
        name = if unquote(count) == 300, do: "zebra", else: "home-automation"
        text = if unquote(count) == 300, do: "Do they eat zebras?", else: @lock

        answer =
          JSON.encode(%{
            selected_skills: [%{skill_id: name, confidence: 0.9, reason: "a door"}],
            no_skill_needed: false
          })

        options = [stages: [:model], model: model(answer), timeout: 30_000]
        result = Preflight.run(view, text, options)
        assert [%{name: ^name, stage: :model, confidence: 0.9, reason: "a door"}] = result.picks
        assert [%{stage: :model, status: :ok}] = result.stages
        assert_received {:asked, _names, system, options, []}
        # The schema is in the prompt and with the request, with the names.
        properties = options[:schema]["properties"]
        assert properties["skills"]["items"]["properties"]["name"]["enum"] |> is_list()
        assert properties["skills"]["maxItems"] == 3
        assert system =~ ~s("no_skill_needed":{"type":"boolean"})
      end
    end

    test "picks nothing if the model fails", %{tmp_dir: folder} do
      view = catalog(folder, 3)
      options = [stages: [:model], model: model("no"), timeout: 30_000, threshold: 0.0]
      assert %{picks: [], stages: [%{status: :failed}]} = Preflight.run(view, "zebra", options)
    end

    test "with a catalog that has none", %{tmp_dir: folder} do
      {:ok, catalog} = Catalog.load([folder])
      view = View.all(catalog)
      assert {nil, []} = ask(view, @lock, stages: [:model])
    end
  end

  test "without a time limit of the options it has three seconds", %{tmp_dir: folder} do
    view = catalog(folder, 3)
    test = self()

    told =
      Model.Function.new(fn _messages, options ->
        send(test, {:timeout, options[:timeout]})
        @none
      end)

    for {options, range} <- [
          {[], 2_000..3_000},
          {[timeout: 900], 300..900},
          {[timeout: 20_000], 15_000..20_000}
        ] do
      Preflight.run(view, @lock, [model: told] ++ options)
      assert_receive {:timeout, timeout}
      assert timeout in range
    end
  end

  test "a recorded model gives the same picks again", %{tmp_dir: folder} do
    view = catalog(Path.join(folder, "skills"), 12)
    path = Path.join(folder, "router.json")

    answer =
      ~S({"selected_skills": [{"skill_id": "home-automation", "confidence": 0.9,) <>
        ~S( "reason": "a door"}], "no_skill_needed": false})

    recorder = Model.Recording.new!(path: path, model: model(answer), record: true)
    run = &Preflight.run(view, @lock, model: &1, timeout: 30_000).picks
    assert [%{name: "home-automation", stage: :model}] = picks = run.(recorder)
    assert_received {:asked, _, _, _, _}

    recording = Model.Recording.new!(path: path)
    assert run.(recording) == picks
    assert Model.Recording.verify!(recording) == :ok
    refute_received {:asked, _, _, _, _}
  end

  # Its model has random weights, so only the grammar makes its answers valid.
  describe "llama.cpp's server" do
    setup do: %{url: HTTPServer.llama()}

    test "is held to the names by the grammar", %{url: url, tmp_dir: folder} do
      view = catalog(folder, 3)
      model = Model.OpenAI.new!(url: url, model: "chat", structured: :grammar, retries: 0)
      options = [model: model, stages: [:model], timeout: 120_000, threshold: 0.0, max: 1]

      for request <- [@lock, "What do zebras eat?"] do
        result = Preflight.run(view, request, options)
        assert [%{status: :ok, error: nil, candidates: candidates}] = result.stages
        assert Enum.all?(candidates, &(&1.name in ~w(home-automation skill-001 zebra)))
      end
    end
  end
end
