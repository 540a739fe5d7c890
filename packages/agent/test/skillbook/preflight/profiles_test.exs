defmodule Skillbook.Preflight.ProfilesTest do
  # Which profiles the router may name to whom, and by which stages.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Embedder, Model, OptionError, Preflight, Profile, View}
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  @house "Lights, heating and locks of the house"

  # A model that sends what it is asked, and names the profile if it sees it.
  defp model(name) do
    test = self()

    Model.Function.new(fn [%{content: system}, %{content: text}], options ->
      [_, agents] = Regex.run(~r/<agents>\n(.*)\n<\/agents>/s, text)

      names =
        for line <- String.split(agents, "\n") do
          {:ok, %{"name" => name}} = JSON.decode(line)
          name
        end

      send(test, {:asked, names, system, text, options})
      agents = for one <- [name], do: %{name: one, confidence: 0.9, reason: "r"}
      JSON.encode(%{agents: agents, no_agent_needed: false})
    end)
  end

  # The profiles that the model sees, and the one that is picked.
  defp choose(view, name, options \\ []) do
    text = "Is the front door locked?"
    result = Preflight.profile(view, text, [model: model(name), timeout: 30_000] ++ options)

    seen =
      receive do
        {:asked, names, _system, _text, _options} -> names
      after
        0 -> []
      end

    {seen, Enum.map(result.picks, & &1.name)}
  end

  defp start(profiles, options \\ []) do
    defaults = [sources: [], builtins: false, store: ":memory:", profiles: profiles]
    book(Keyword.merge(defaults, options))
  end

  test "a profile is named only to those who have all its rights", %{tmp_dir: folder} do
    write(folder, %{
      "open.md" => "---\nname: open\ndescription: Open\n---\nText.\n",
      "home.md" => "---\nname: home\ndescription: Home\nlabels: [home]\n---\nText.\n",
      "not.md" =>
        "---\nname: not\ndescription: Not\nexclude_from_prompt_profile_ids: [lame]\n---\nText.\n"
    })

    # The rights of the caller, those of the other, and whether it is named.
    rows = [
      {[], [], true},
      {[grants: ["home"]], [grants: ["home"]], true},
      {[grants: ["home", "x"]], [grants: ["home"]], true},
      {[grants: :all], [grants: ["home"]], true},
      {[], [grants: ["home"]], false},
      {[grants: ["x"]], [grants: ["home"]], false},
      {[grants: ["home"]], [grants: :all], false},
      {[], [tenant: "acme"], false},
      {[tenant: "acme"], [tenant: "acme"], true},
      {[tenant: "acme"], [tenant: "globex"], false},
      {[tenant: "acme"], [], false},
      {[tenant: "acme"], [tenant: :all], false},
      {[tenant: :all], [tenant: "acme"], true},
      {[tenant: :all], [tenant: :all], true},
      {[skills: ["o*"]], [skills: ["o*"]], true},
      {[skills: ["o*", "x"]], [skills: ["o*"]], true},
      {[skills: ["o*"]], [], false},
      {[skills: ["open"]], [skills: ["op*"]], false},
      {[within: [["o*"]]], [skills: ["o*"]], true},
      {[], [within: [["o*"]]], true},
      {[tools: ["Read"]], [tools: ["Read"]], true},
      {[tools: ["Read"]], [], false},
      {[writes: :ask], [writes: :ask], true},
      {[writes: :ask], [writes: :deny], true},
      {[writes: :ask], [writes: :run], false},
      {[writes: :deny], [writes: :delegate], false},
      {[], [approved: ["email.send"]], false},
      {[approved: ["email.send"]], [approved: ["email.send"]], true},
      {[grants: ["home"], labels: ["home"]], [grants: ["home"], labels: ["home"]], true},
      {[grants: ["home"], labels: ["home"]], [grants: ["home"]], false},
      {[], [others: ["somebody"]], true},
      {[others: ["somebody"]], [], false},
      # A page excludes the caller by its id, and not the other.
      {[id: "lame"], [], false},
      {[id: "lame"], [skills: ["open"]], true},
      {[id: "fit"], [], true}
    ]

    for {caller, other, named?} <- rows do
      caller = Keyword.merge([id: "caller"], caller)
      other = Keyword.merge([id: "other", description: @house], other)
      book = start([caller, other], sources: [folder])
      view = Skillbook.view(book, caller[:id])

      expected = if named?, do: {["other"], ["other"]}, else: {[], []}
      assert {caller, other, choose(view, "other")} == {caller, other, expected}
      stop_supervised!(book)
    end
  end

  test "a profile without a description is not named, and one's own is" do
    book =
      start([
        [id: "ann", description: "Whatever ann asks for"],
        [id: "bare"],
        [id: "house", description: @house]
      ])

    view = Skillbook.view(book, "ann")
    assert choose(view, "ann") == {["ann", "house"], ["ann"]}
    assert choose(view, "bare") == {["ann", "house"], []}
    assert choose(Skillbook.view(book, "bare"), "house") == {["ann", "house"], ["house"]}
    # A narrowed caller has fewer rights than its own profile.
    narrow = Profile.narrow(Skillbook.view(book, "ann").profile, ["tasks.*"])
    assert choose(Skillbook.view(book, narrow), "ann") == {[], []}
    # Trusted code has all rights.
    assert choose(View.all(book), "house") == {["ann", "house"], ["house"]}
  end

  test "ids of the application take the place of rights, within the tenant" do
    fetch = fn
      "fetched" -> {:ok, description: "Fetched"}
      "foreign" -> {:ok, description: "Foreign", tenant: "globex"}
      "bare" -> {:ok, []}
      "broken" -> {:error, %RuntimeError{message: "down"}}
      _ -> nil
    end

    book =
      start([
        [id: "ann", tenant: "acme"],
        [id: "root", tenant: :all],
        [id: "chief", grants: :all, description: "Chief"],
        [id: "mate", tenant: "acme", grants: ["x"], description: "Mate"],
        [id: "operator", tenant: :all, description: "Operator"],
        fetch
      ])

    ids = ~w(chief mate operator fetched foreign bare broken nobody chief)
    log = ExUnit.CaptureLog.capture_log(fn -> send(self(), choose_both(book, ids)) end)
    assert_received {{~w(chief fetched mate), ["mate"]}, {all, ["mate"]}}
    assert all == ~w(chief fetched foreign mate operator)
    assert log =~ "down"

    # Without them nothing of the function is asked.
    assert choose(Skillbook.view(book, "ann"), "fetched") == {[], []}
    assert choose(Skillbook.view(book, "ann"), "mate", profiles: []) == {[], []}
  end

  defp choose_both(book, ids) do
    {choose(Skillbook.view(book, "ann"), "mate", profiles: ids),
     choose(Skillbook.view(book, "root"), "mate", profiles: ids)}
  end

  test "a profile that the caller may not use looks like a missing one" do
    others = [
      [id: "house", description: @house],
      [id: "garden", description: "Flowers, trees and watering"]
    ]

    secret = [id: "safe", grants: ["money"], description: "Lights and locks of the safe, doors"]

    results =
      for profiles <- [others, others ++ [secret]] do
        book = start([[id: "ann"]] ++ profiles)
        view = Skillbook.view(book, "ann")

        for text <- ["Locks of the safe", "Lights", "safe", "the house lights and heating"],
            options <- [[], [threshold: 0.0], [model: model("safe"), threshold: 0.0]],
            _ <- 1..2 do
          result = Preflight.profile(view, text, [timeout: 30_000] ++ options)

          asked =
            receive do
              {:asked, names, system, prompt, options} ->
                {names, system, prompt, options[:schema]}
            after
              0 -> nil
            end

          {%{result | stages: Enum.map(result.stages, &Map.delete(&1, :duration))}, asked}
        end
      end

    assert [same, same] = results
    assert Enum.any?(same, fn {result, _asked} -> result.picks != [] end)
    refute inspect(same, limit: :infinity, printable_limit: :infinity) =~ "safe, doors"
  end

  describe "the stages" do
    setup do
      profiles = [
        [id: "ann"],
        [id: "house", description: @house],
        [id: "bank", description: "Accounts, bills and payments"]
      ]

      %{profiles: profiles}
    end

    test "are words and the model, with the options of skills", %{profiles: profiles} do
      view = Skillbook.view(start(profiles), "ann")
      text = "Turn on the lights and the heating of the house"

      for {options, stages} <- [
            {[], [:retrieval]},
            {[stages: [:keywords]], []},
            {[stages: [:keywords, :retrieval, :model], model: model("bank")],
             [:retrieval, :model]},
            {[stages: [:model], model: model("bank")], [:model]}
          ] do
        result = Preflight.profile(view, text, [explain: true, timeout: 30_000] ++ options)
        assert Enum.map(result.stages, & &1.stage) == stages
        if options[:model], do: assert([%{name: "bank", stage: :model}] = result.picks)
      end

      result = Preflight.profile(view, text, threshold: 0.0, max: 5, explain: true)
      assert [%{name: "house", stage: :retrieval, reason: "words " <> _}] = result.picks
      assert %Preflight{picks: [], stages: []} = Preflight.profile(view, "  ")
      assert %Preflight{picks: [], stages: []} = Preflight.profile(view, text, enabled: false)
    end

    test "tell the model what it chooses", %{profiles: profiles} do
      view = Skillbook.view(start(profiles), "ann")
      Preflight.profile(view, "Hello?", model: model("house"), timeout: 30_000)
      assert_received {:asked, ["bank", "house"], system, text, options}
      assert system =~ "You choose which agent answers the last message of a conversation."
      assert text =~ ~s({"description":"#{@house}","name":"house"})
      assert text =~ "Choose 0 to 1 agents for the last message"
      properties = options[:schema]["properties"]
      assert properties["agents"]["items"]["properties"]["name"]["enum"] == ["bank", "house"]
    end

    test "are remembered, until a profile changes", %{profiles: profiles} do
      {:ok, agent} = Agent.start_link(fn -> "Fetched" end)
      fetch = fn id -> if id == "own", do: {:ok, description: Agent.get(agent, & &1)} end
      view = Skillbook.view(start(profiles ++ [fetch]), "ann")
      options = [model: model("own"), profiles: ["own", "house"], timeout: 30_000]
      run = fn -> length(Preflight.profile(view, "Hello?", options).stages) end
      assert {run.(), run.()} == {2, 0}
      Agent.update(agent, fn _ -> "Changed" end)
      assert {run.(), run.()} == {2, 0}
    end

    test "search by meaning, if the book has an embedder", %{profiles: profiles} do
      test = self()

      embedder =
        Embedder.Function.new("doors", fn texts ->
          send(test, {:embedded, texts})
          for text <- texts, do: [length(Regex.scan(~r/door|house/i, text)) * 1.0, 0.1]
        end)

      view = Skillbook.view(start(profiles, embedder: embedder, embedder_timeout: 10_000), "ann")
      run = &Preflight.profile(view, &1, stages: [:retrieval], threshold: 0.0, timeout: 30_000)
      assert [%{name: "house", reason: reason}] = run.("Is the front door shut?").picks
      assert reason =~ "similarity 1.0"
      assert_received {:embedded, [_, _] = texts}
      assert Enum.any?(texts, &(&1 =~ @house))
      assert_received {:embedded, ["Is the front door shut?"]}

      # The descriptions are embedded once.
      run.("Which door?")
      assert_received {:embedded, ["Which door?"]}
      refute_received {:embedded, _}
    end

    test "are off for a profile that says so", %{profiles: profiles} do
      book = start(profiles ++ [[id: "off", preflight: false]])
      assert choose(Skillbook.view(book, "off"), "house") == {[], []}
      assert choose(Skillbook.view(book, "off"), "house", enabled: true) == {[], []}
    end

    test "have a view without a book too" do
      {:ok, catalog} = Skillbook.Catalog.load([])
      assert choose(View.all(catalog), "house") == {[], []}
    end
  end

  test "ids that are no names of pages are never picked, or as they are" do
    ids = ["Ann Müller", "a/b", "a.b", "con: fig", "SKILL", "-", "true", "x\ny", " x "]
    book = start([[id: "ann"] | for(id <- ids, do: [id: id, description: "About #{id}"])])
    view = Skillbook.view(book, "ann")

    for id <- ids do
      expected = if id in ["x\ny", " x "], do: [], else: [id]
      assert {_seen, ^expected} = choose(view, id)
    end
  end

  test "wrong options say what is expected" do
    view = Skillbook.view(start([[id: "ann"]]), "ann")

    for {options, message} <- [
          {[profiles: "house"],
           "expected a list of at most 100 ids or nil as the option :profiles of a choice of a" <>
             " profile, got: \"house\""},
          {[profiles: for(n <- 1..101, do: "p#{n}")],
           "expected a list of at most 100 ids or nil as the option :profiles of a choice of a" <>
             " profile, got: #{inspect(for(n <- 1..101, do: "p#{n}"))}"},
          {[max: 0],
           "expected a whole number from 1 to 10 as the option :max of a preflight, got: 0"}
        ] do
      assert_raise OptionError, message, fn -> Preflight.profile(view, "x", options) end
    end

    for {description, valid?} <- [
          {"x", true},
          {nil, true},
          {String.duplicate("ü", 1_024), true},
          {String.duplicate("x", 1_025), false},
          {"", false},
          {" \n", false},
          {:x, false},
          {<<255>>, false}
        ] do
      assert match?({:ok, _}, Profile.new(id: "a", description: description)) == valid?
    end

    {:error, error} = Profile.new(id: "a", description: "")

    assert Exception.message(error) ==
             "expected text of 1 to 1024 characters or nil as the option :description of a " <>
               "profile, got: \"\""

    # It is of one profile, and no right.
    assert {:error, _} =
             Skillbook.start_link(name: :described_role, roles: [[id: "r", description: "x"]])

    assert Profile.same?(Profile.new!(id: "a"), Profile.new!(id: "a", description: "x"))
  end
end
