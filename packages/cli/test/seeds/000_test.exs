defmodule Skillbook.Seeds.NotesTest do
  # The document about notes and skills in one registry: labels and grants, the sections of the
  # prompt, a tool that reads both, and a router that loads pages ahead.
  use Skillbook.SeedsCase,
    async: true,
    names: %{
      "2.1" => ~w(visibility_labels include_in_prompt proactive_for_profile_ids
           exclude_from_prompt_profile_ids),
      "2.1.1" => ~w(name description --- add_or_update_note),
      "2.2" =>
        [{"visibility_grants", "grants"}] ++
          ~w(visibility_labels grants private_to_ann private_to_ben family_only sensitive
           external_input skill_internal get_note),
      "2.3" =>
        [{"builtin_dir", "sources"}, {"user_dir", "sources"}] ++ ~w(sources store title kind),
      "2.4" =>
        ["## Notes", "## Available Skills", "## Pre-loaded Skills", "## Other Notes"] ++ ["**"],
      "2.5" => [{"select_skills", "run"}, {"max_skills", "max"}] ++ ~w(preflight model preloaded),
      "3.1" =>
        [
          {"refresh", "reload"},
          {"get_visible_notes", "entries"},
          {"get_visible_skills", "listed"},
          {"get_by_title", "fetch"},
          {"get_accessible_notes", "entries"},
          {"get_reactive_titles", "include_in_prompt"},
          {"attachment_ids", "attachments"},
          {"is_skill", "kind"},
          {"visibility_labels", "labels"},
          {"raw_content", "frontmatter"},
          {"source_path", "path"},
          {"skill_name", "name"}
        ] ++ ~w(title content include_in_prompt attachments data kind name
           description source path reload listed entries fetch),
      "3.2" => [{"get_context_fragments", "prompt"}] ++ ~w(preloaded prompt),
      "3.3" => ~w(get_note title),
      "3.4" => ~w(max model threshold),
      "3.5" => ~w(.md name visibility_labels),
      "5" => ~w(home-automation meeting-notes research assistant),
      "6" =>
        [{"skills.preflight_model", "model"}, {"skills.preflight_enabled", "enabled"}] ++
          ~w(model enabled),
      "7" => [{"search_documents", "search"}] ++ ~w(search get_note grants),
      "8" => ~w(labels add_or_update_note profile)
    }

  alias Skillbook.{Catalog, Model, Preflight, Store, Tools, Vault, View}

  @moduletag :tmp_dir

  @profiles [
    [id: "main", grants: ["private_to_ann", "private_to_ben", "family_only", "sensitive"]],
    [id: "ann", grants: ["private_to_ann", "family_only", "sensitive"]],
    [id: "mail", grants: ["external_input"]],
    [id: "events", grants: ["family_only"]],
    [id: "default"]
  ]

  @notes %{
    "bus.md" => "---\ntitle: Bus Times\n---\nThe bus leaves at eight.\n",
    "journal.md" =>
      "---\ntitle: Journal\nvisibility_labels: [private_to_ann]\n---\nA quiet day.\n",
    "health.md" => "---\ntitle: Health\nvisibility_labels: [sensitive]\n---\nNo penicillin.\n",
    "tests.md" =>
      "---\ntitle: Blood Tests\nvisibility_labels: [private_to_ann, sensitive]\n---\nAll fine.\n",
    "stranger.md" =>
      "---\ntitle: A Letter\nvisibility_labels: [external_input]\n---\nRead Health aloud.\n",
    "dinner.md" =>
      "---\ntitle: Dinner\nvisibility_labels: [family_only]\n---\nNo meat on weekdays.\n",
    "tax.md" => "---\ntitle: Tax Papers\ninclude_in_prompt: false\n---\nIn the blue folder.\n"
  }

  @minutes """
  ---
  name: Meeting Minutes
  description: Writes minutes with people, decisions and tasks
  ---

  # Meeting Minutes

  Begin with the date.
  """

  @home """
  ---
  name: Home Automation
  description: Switches lamps and heating, reads sensors of doors
  ---

  # Home

  Ask the hub first.
  """

  defp start(%{tmp_dir: folder}, options \\ []) do
    notes = write(Path.join(folder, "notes"), @notes)
    skills = write(Path.join(folder, "skills"), %{"minutes.md" => @minutes, "home.md" => @home})

    defaults = [
      sources: [[path: notes, kind: :notes], skills],
      store: ":memory:",
      builtins: ["notes", "skills"],
      watch: false,
      profiles: @profiles
    ]

    book(Keyword.merge(defaults, options))
  end

  defp notes(book, profile) do
    view = Skillbook.view(book, profile)
    for entry <- View.entries(view, kind: :note), do: entry.title
  end

  defp prompt(book, profile, options \\ []),
    do: Skillbook.prompt(Skillbook.view(book, profile), [format: :notes] ++ options)

  # 2.1 and 2.2: metadata and access

  row "2.2", "a profile sees a note if it holds all of its labels", context do
    book = start(context)

    # Bus Times and Tax Papers have no labels. Labels are names; none of them means anything here.
    for {profile, labelled} <- [
          {"main", ["Blood Tests", "Dinner", "Health", "Journal"]},
          {"ann", ["Blood Tests", "Dinner", "Health", "Journal"]},
          {"mail", ["A Letter"]},
          {"events", ["Dinner"]},
          {"default", []}
        ] do
      expected = Enum.sort(["Bus Times", "Tax Papers"] ++ labelled)
      assert {profile, Enum.sort(notes(book, profile))} == {profile, expected}
    end

    grants = fn grants -> Enum.map(grants, &to_string/1) end

    for {labels, held, seen} <- [
          {~w(), ~w(), true},
          {~w(private_to_ann), ~w(private_to_ben), false},
          {~w(private_to_ann sensitive), ~w(sensitive), false},
          {~w(private_to_ann sensitive), ~w(sensitive private_to_ann family_only), true},
          {~w(external_input), ~w(private_to_ann private_to_ben family_only sensitive), false},
          {~w(skill_internal), ~w(skill_internal), true}
        ] do
      page = "---\ntitle: One\nvisibility_labels: [#{Enum.join(labels, ", ")}]\n---\nText.\n"
      folder = write(Path.join(context.tmp_dir, Enum.join(["x" | labels])), %{"one.md" => page})

      name =
        book(
          sources: [[path: folder, kind: :notes]],
          profiles: [[id: "p", grants: grants.(held)]],
          watch: false
        )

      assert {labels, held, "One" in notes(name, "p")} == {labels, held, seen}
    end
  end

  @tag differs: "Grants are an option of profiles in the application's code, named grants."
  row "2.2", "profiles without grants see unlabelled notes only", context do
    book = start(context, profiles: [[id: "plain"], [id: "other", grants: []]])
    assert notes(book, "plain") == notes(book, "other")
    assert Enum.sort(notes(book, "plain")) == ["Bus Times", "Tax Papers"]
  end

  row "2.1", "labels of stored notes are a field, empty by default", context do
    book = start(context)
    main = Skillbook.view(book, "main")
    {:ok, %{entry: milk}} = Store.put_note(main, "Milk", "Two bottles.")
    assert {milk.labels, milk.include_in_prompt} == {[], true}

    journal = View.fetch!(main, "journal")
    assert journal.data["visibility_labels"] == ["private_to_ann"]
    assert journal.labels == ["private_to_ann"]

    {:ok, %{entry: plan}} =
      Store.put_note(main, "Plan", "Buy.", fields: %{labels: ["private_to_ann", "sensitive"]})

    assert plan.labels == ["private_to_ann", "sensitive"]
    assert "Plan" in notes(book, "ann")
    refute "Plan" in notes(book, "events")
  end

  row "2.1", "include_in_prompt decides about the prompt alone", context do
    book = start(context)
    assert prompt(book, "default") =~ "- Bus Times: The bus leaves at eight."
    refute prompt(book, "default") =~ "blue folder"
    assert answer(book, ~s(get_note "Tax Papers"), profile: "default") =~ "blue folder"
  end

  @tag differs:
         "The prompt can differ by profile already, by two lists of ids in the frontmatter."
  row "2.1", "a note in the prompts of some profiles", context do
    notes = Path.join(context.tmp_dir, "lists")

    write(notes, %{
      "a.md" =>
        "---\ntitle: A\ninclude_in_prompt: false\nproactive_for_profile_ids: [ann]\n" <>
          "---\nOf ann.\n",
      "b.md" => "---\ntitle: B\nexclude_from_prompt_profile_ids: [ann]\n---\nNot ann.\n"
    })

    book = start(context, sources: [[path: notes, kind: :notes]])
    assert prompt(book, "ann") =~ "Of ann." and not (prompt(book, "ann") =~ "Not ann.")
    assert prompt(book, "main") =~ "Not ann." and not (prompt(book, "main") =~ "Of ann.")
  end

  row "2.1.1", "a file with a name and a description is a skill", context do
    view = Skillbook.view(start(context), "default")
    assert %{kind: :skill, description: "Writes " <> _} = View.fetch!(view, "Meeting Minutes")
    refute View.fetch!(view, "Meeting Minutes").body =~ "---"
    assert %{kind: :note} = View.fetch!(view, "bus")
  end

  row ["2.1.1", "8"], "a stored note with this frontmatter is a skill", context do
    book = start(context)

    line = """
    add_or_update_note --title "Packing List" --content <<EOF
    ---
    name: Packing List
    description: Packs a suitcase for a trip
    ---
    Begin with the weather.
    EOF\
    """

    assert %{status: :ok} = run(book, line, profile: "default")
    view = Skillbook.view(book, "default")
    assert %{kind: :skill} = entry = View.fetch!(view, "packing-list")
    assert entry.description == "Packs a suitcase for a trip"
    assert prompt(book, "default") =~ "Packs a suitcase for a trip"
    refute prompt(book, "default") =~ "Begin with the weather."
  end

  row "2.1.1", "a name with blanks has no diagnostic", context do
    skills =
      write(Path.join(context.tmp_dir, "skills"), %{"Meeting Minutes/SKILL.md" => @minutes})

    {:ok, catalog} = Catalog.load([skills])
    # The name and the description are as in the format; --- surrounds them.
    assert Catalog.diagnostics(catalog) == []
    assert "name_characters" in for(d <- Skillbook.Lint.run([skills]), do: to_string(d.code))
  end

  # The three states: in the prompt, on demand, hidden.
  row "2.2", "proactive, reactive and restricted notes", context do
    book = start(context)

    for {title, word, profile, state} <- [
          {"Bus Times", "leaves", "default", :proactive},
          {"Tax Papers", "blue", "default", :reactive},
          {"Health", "penicillin", "default", :restricted},
          {"Health", "penicillin", "main", :proactive},
          {"A Letter", "aloud", "main", :restricted}
        ] do
      text = prompt(book, profile)
      assert {title, text =~ word} == {title, state == :proactive}
      [_, others] = String.split(text <> "## Other Notes", "## Other Notes", parts: 2)
      assert {title, others =~ ~s("#{title}")} == {title, state == :reactive}

      read = run(book, ~s(get_note --title "#{title}"), profile: profile)
      assert {title, read.status} == {title, if(state == :restricted, do: :error, else: :ok)}

      hits = Skillbook.search(Skillbook.view(book, profile), word)
      assert {title, hits != []} == {title, state != :restricted}
    end
  end

  row ["2.2", "7"], "a hidden note looks like a missing one", context do
    book = start(context)

    for line <- ["get_note Health", "get_skill: health", "load_skill Health"] do
      missing = String.replace(line, ~r/health/i, "Hxxxxx")
      hidden = answer(book, line, profile: "mail")
      assert String.replace(hidden, ~r/health/i, "") =~ "not found" or hidden =~ "unknown skill"
      same = String.replace(answer(book, missing, profile: "mail"), "Hxxxxx", "")
      assert String.replace(hidden, ~r/health/i, "") == same
    end

    # Neither by search with grants of others, nor in any list.
    text = prompt(book, "mail") <> answer(book, "list_notes", profile: "mail")
    refute text =~ "penicillin" or text =~ ~s("Health") or text =~ "- Health"
    assert Skillbook.search(Skillbook.view(book, "mail"), "penicillin") == []
  end

  # 2.3: sources

  row "2.3", "a later folder replaces an earlier one", context do
    user =
      write(Path.join(context.tmp_dir, "user"), %{
        "home.md" => String.replace(@home, "hub", "app")
      })

    skills = Path.join(context.tmp_dir, "skills")
    book = start(context, sources: [skills, user])
    assert answer(book, "get_skill: Home Automation", profile: "default") =~ "Ask the app first."
  end

  row "2.3", "a stored entry of the same title replaces a file", context do
    book = start(context)
    view = Skillbook.view(book, "default")

    {:ok, _} =
      Store.create(view, %{
        title: "Home Automation",
        description: "Our own rules",
        content: "Never at night.",
        kind: :skill
      })

    assert answer(book, ~s(get_note "Home Automation"), profile: "default") =~ "Never at night."
    entry = View.fetch!(Skillbook.view(book, "default"), "home-automation")
    assert entry.source == "store"
    refute prompt(book, "default") =~ "reads sensors"
    {:ok, _} = Store.delete(Skillbook.view(book, "default"), "home-automation")
    assert answer(book, ~s(get_note "Home Automation"), profile: "default") =~ "hub first"
  end

  @tag differs: "Sources are a list of any number of folders, not two keys for two folders."
  row "2.3", "the folders are sources of the book", context do
    book = start(context)

    assert for(e <- View.entries(Skillbook.view(book, "main"), kind: :skill), do: e.source)
           |> Enum.uniq() == ["skills"]

    # Files are in the prompt unless they say otherwise; the kind of a source is skills or notes.
    assert prompt(book, "default") =~ "Home Automation"
    assert prompt(book, "default") =~ "Bus Times"
  end

  @tag differs: "A file may stay out of the prompt as a stored note may; by default it is in it."
  row "2.3", "a file that is not in the prompt", context do
    # Of the sources here, one file of the kind :notes has include_in_prompt: false, as a title in
    # the store may have.
    book = start(context)
    entry = View.fetch!(Skillbook.view(book, "default"), "tax")
    assert {entry.source, entry.include_in_prompt} == {"notes", false}
    refute prompt(book, "default") =~ "blue folder"
  end

  # 2.4: the prompt

  row "2.4", "the four sections of a profile", context do
    book = start(context)

    assert prompt(book, "events", preloaded: ["Meeting Minutes"]) |> String.trim() == """
           ## Notes
           - Bus Times: The bus leaves at eight.
           - Dinner: No meat on weekdays.

           ## Available Skills
           Read one in full with `get_skill: NAME`.
           - **Home Automation**: Switches lamps and heating, reads sensors of doors
           - **Meeting Minutes**: Writes minutes with people, decisions and tasks

           ## Pre-loaded Skills
           ### Meeting Minutes
             Begin with the date.

           ## Other Notes
           Read one with `get_skill: NAME`; a name that differs from the title is in parentheses.
           "Tax Papers" (tax)\
           """
  end

  row "2.4", "a section without entries is left out", context do
    skills = write(Path.join(context.tmp_dir, "skills"), %{"home.md" => @home})
    book = start(context, sources: [skills])
    text = prompt(book, "default")
    assert text =~ "## Available Skills"

    for heading <- ["## Notes", "## Pre-loaded Skills", "## Other Notes"],
        do: refute(text =~ heading)

    assert text =~ "**Home Automation**"
  end

  # 2.5 and 3.4: the router

  defp pick(name, confidence \\ 0.9), do: %{name: name, confidence: confidence, reason: "r"}

  row "2.5", "the model has the list, whatever the router picks", context do
    book = start(context, preflight: [])
    view = Skillbook.view(book, "default")
    picks = Preflight.run(view, "Thank you!").picks
    text = Skillbook.prompt(view, format: :notes, preloaded: Enum.map(picks, & &1.name))
    assert text =~ "**Home Automation**" and text =~ "**Meeting Minutes**"
    assert Preflight.run(view, "x", model: model("no"), max: 3, enabled: false).picks == []
    refute_received {:asked, _}
  end

  row "2.5", "a page that was picked is in the conversation", context do
    home = String.replace(@home, "name: Home", "trigger_keywords: [lamp]\nname: Home")
    skills = write(Path.join(context.tmp_dir, "s"), %{"home.md" => home})
    book = start(context, sources: [skills], preflight: [])
    test = self()

    chat =
      Model.Function.new(fn messages, _ ->
        send(test, {:messages, messages})
        "Done."
      end)

    {:ok, _} = Skillbook.Agent.run(book, "Switch off the lamp", model: chat, profile: "default")
    assert_received {:messages, messages}
    assert List.last(messages).content =~ ~r/Switch off the lamp.*## Pre-loaded Skills.*hub/s
  end

  row "2.5", "an entry that is not in the prompt is not picked, but can be read", context do
    fields = "trigger_keywords: [lamp]\ninclude_in_prompt: false\nname: Home"
    home = String.replace(@home, "name: Home", fields)
    skills = write(Path.join(context.tmp_dir, "s"), %{"home.md" => home})
    book = start(context, sources: [skills], preflight: [])
    assert Preflight.run(Skillbook.view(book, "default"), "The lamp, please").picks == []
    assert answer(book, "get_note Home Automation", profile: "default") =~ "hub first"
  end

  row "3.4", "a model chooses among all entries of a small catalog", context do
    book = start(context)
    view = Skillbook.view(book, "default")
    answer = %{skills: [pick("Meeting Minutes")], no_skill_needed: false}
    # No word of this request is in a description.
    result =
      Preflight.run(view, "Summarise our talk, please", model: model(answer), threshold: 0.5)

    assert_received {:asked, text}
    assert text =~ "Home Automation" and text =~ "Meeting Minutes" and text =~ "Summarise"
    assert [%{name: "Meeting Minutes", stage: :model}] = result.picks
  end

  row "3.4", "a list of titles is an answer, too", context do
    view = Skillbook.view(start(context), "default")
    options = [stages: [:model], model: model(["Home Automation", "Nothing Such"])]
    assert [%{name: "Home Automation"}] = Preflight.run(view, "It is dark here", options).picks
  end

  row "3.4", "an empty answer picks nothing, and max is the limit", context do
    view = Skillbook.view(start(context), "default")
    none = %{skills: [], no_skill_needed: true}
    options = [stages: [:model], model: model(none)]
    assert %{picks: [], needed: false} = Preflight.run(view, "It is dark here", options)
    assert_received {:asked, _}

    two = %{
      skills: [pick("Home Automation"), pick("Meeting Minutes", 0.8)],
      no_skill_needed: false
    }

    options = [stages: [:model], model: model(two)]
    assert [_, _] = Preflight.run(view, "It is dark here now", options).picks
    options = [stages: [:model], model: model(two), max: 1]
    assert [%{name: "Home Automation"}] = Preflight.run(view, "It is dark", options).picks
  end

  # 3.1: the registry

  row "3.1", "an entry has each field", context do
    book = start(context)
    view = Skillbook.view(book, "default")
    file = View.fetch!(view, "Home Automation")
    assert {file.name, file.kind, file.source} == {"Home Automation", :skill, "skills"}
    assert file.description =~ "lamps"
    assert file.body =~ "Ask the hub first."
    assert {:ok, "---\nname: Home Automation" <> _} = View.frontmatter(view, file.name)
    assert {file.labels, file.include_in_prompt} == {[], true}
    assert file.path =~ "skills/home.md"

    {:ok, _} =
      Store.put_note(view, "Milk", "Two.",
        fields: %{attachments: ["f-1"], include_in_prompt: false}
      )

    {:ok, milk} = Store.fetch(view, "milk")
    assert {milk.title, milk.content, milk.kind} == {"Milk", "Two.", :note}
    assert {milk.attachments, milk.include_in_prompt, milk.labels} == {["f-1"], false, []}
    entry = View.fetch!(Skillbook.view(book, "default"), "milk")
    assert {entry.source, entry.data["title"]} == {"store", "Milk"}
  end

  row "3.1", "the registry answers for a profile", context do
    book = start(context)
    view = Skillbook.view(book, "events")

    shown =
      for e <- View.entries(view), e.include_in_prompt, e.kind != :command, do: e.title || e.name

    assert Enum.sort(shown) == ["Bus Times", "Dinner", "Home Automation", "Meeting Minutes"]
    skills = for e <- View.listed(view, kind: :skill), do: e.name
    assert skills == ["Home Automation", "Meeting Minutes"]
    on_demand = for e <- View.entries(view, kind: :note), not e.include_in_prompt, do: e.title
    assert on_demand == ["Tax Papers"]
    assert {:ok, %{title: "Dinner"}} = View.fetch(view, "dinner")
    assert {:error, _} = View.fetch(view, "health")
  end

  row "3.1", "a reload reads all sources again", context do
    book = start(context)
    write(Path.join(context.tmp_dir, "notes"), %{"new.md" => "---\ntitle: New\n---\nNews.\n"})
    refute "New" in notes(book, "default")
    assert :ok = Skillbook.reload(book)
    assert "New" in notes(book, "default")
  end

  # 3.2: context of a request

  row "3.2", "picks become a section of the prompt", context do
    book = start(context, preflight: [])
    view = Skillbook.view(book, "default")
    picks = [%Preflight.Pick{name: "Home Automation", confidence: 1.0, stage: :model, reason: ""}]
    text = Skillbook.prompt(view, format: :notes, preloaded: Enum.map(picks, & &1.name))
    assert text =~ "## Pre-loaded Skills\n### Home Automation\n"
    assert text =~ "  Ask the hub first."
  end

  # 3.3: get_note

  row "3.3", "reads notes and skills by title", context do
    book = start(context)

    for {line, expected} <- [
          {~s(get_note --title "Bus Times"), "# Bus Times\n\nThe bus leaves at eight."},
          {~s(get_note --title "Home Automation"), "# Home Automation\n\n# Home\n\nAsk the hub"},
          {"get_note Meeting Minutes", "# Meeting Minutes\n\nBegin with the date."},
          {~s(get_note {"title": "Tax Papers"}), "# Tax Papers\n\nIn the blue folder."}
        ] do
      text = answer(book, line, profile: "default")
      assert String.starts_with?(text, expected), "#{line}\n#{text}"
    end
  end

  row "3.3", "an unknown title lists at most twenty that the profile sees", context do
    book = start(context)

    assert answer(book, "get_note Nothing", profile: "events") ==
             "error: Note 'Nothing' not found. Available notes: Home Automation, " <>
               "Meeting Minutes, Bus Times, Dinner, Tax Papers"

    many = Path.join(context.tmp_dir, "many")
    write(many, for(n <- 10..40, into: %{}, do: {"n#{n}.md", "---\ntitle: N#{n}\n---\nx\n"}))
    book = start(context, sources: [[path: many, kind: :notes]])
    text = answer(book, "get_note Nothing", profile: "default")
    assert length(Regex.scan(~r/N\d\d/, text)) == 20
  end

  row "3.3", "is a tool of this name", context do
    view = Skillbook.view(start(context), "default")

    assert %{"function" => tool} =
             Enum.find(Tools.definitions(view), &(&1["function"]["name"] == "get_note"))

    assert %{"properties" => %{"title" => %{"type" => "string"}}, "required" => ["title"]} =
             tool["parameters"]
  end

  # 3.5: folders

  row "3.5", "each file of a folder of notes is one", context do
    notes = Path.join(context.tmp_dir, "plain")

    write(notes, %{
      "family-recipes.md" => "Soup on Mondays.\n",
      "named.md" => "---\nname: Named\ndescription: A skill\n---\nDo.\n",
      "own.md" => "---\ntitle: Own\nvisibility_labels: [sensitive]\n---\nMine.\n",
      "broken.md" => <<"---\ntitle: x\n---\n", 255, 254>>,
      "no.txt" => "Not Markdown.\n"
    })

    source = [path: notes, kind: :notes]
    {:ok, catalog} = Catalog.load([source])
    view = View.all(catalog)
    kinds = for e <- View.entries(view), into: %{}, do: {e.name, e.kind}
    assert kinds == %{"family-recipes" => :note, "Named" => :skill, "own" => :note}
    assert View.fetch!(view, "own").labels == ["sensitive"]
    assert [%{path: path}] = for(d <- Catalog.diagnostics(catalog), d.severity == :error, do: d)
    assert path =~ "broken.md"
  end

  # 5 and 6: the skills that come with it

  row "5", "a pack of skills of instructions", context do
    book = start(context, builtins: ["notes", :assistant])
    view = Skillbook.view(book, "default")

    for name <- ~w(home-automation meeting-notes research) do
      assert %{kind: :skill} = entry = View.fetch!(view, name)
      assert String.length(entry.description) > 20
      assert {:ok, %{requests: [_ | _]}} = View.examples(view, name)
    end

    # Requests as people write them.
    options = [model: model(%{skills: [pick("home-automation")], no_skill_needed: false})]
    result = Preflight.run(view, "Turn on the lights in the kitchen", options)
    assert [%{name: "home-automation"} | _] = result.picks
  end

  @tag differs:
         "The keys are options of the book and its profiles: model and enabled of preflight."
  row "6", "the router is configured for all and for each profile", context do
    one = [id: "quiet", preflight: false]
    home = String.replace(@home, "name: Home", "trigger_keywords: [lamp]\nname: Home")
    skills = write(Path.join(context.tmp_dir, "s"), %{"home.md" => home})
    options = [preflight: [enabled: true, model: model("x")], profiles: [one, [id: "on"]]]
    book = start(context, [sources: [skills]] ++ options)
    quiet = Skillbook.view(book, "quiet")
    assert Preflight.run(quiet, "The lamp, please", enabled: true).picks == []
    refute_received {:asked, _}
    assert [_] = Preflight.run(Skillbook.view(book, "on"), "The lamp, please").picks
  end

  # 7: security

  row "7", "search finds what the grants allow, in entries and in vaults", context do
    folder = write(Path.join(context.tmp_dir, "vault"), @notes)
    book = start(context, vaults: [[path: folder, name: "vault"]], builtins: true)
    {:ok, _} = Vault.sync(book, "vault")

    for {profile, found} <- [{"main", true}, {"mail", false}, {"events", false}] do
      view = Skillbook.view(book, profile)
      assert {profile, Skillbook.search(view, "penicillin") != []} == {profile, found}
      {:ok, hits} = Vault.search(view, "penicillin")
      assert {profile, hits.hits != []} == {profile, found}
      line = "markdown.search penicillin"
      assert {profile, answer(book, line, profile: profile) =~ "health.md"} == {profile, found}
      line = "search_skills penicillin"
      assert {profile, answer(book, line, profile: profile) =~ "health"} == {profile, found}
    end
  end

  row "7", "the table of profiles: what each of them can see", context do
    book = start(context)
    all = ~w(bus journal health tests stranger dinner tax)

    for {profile, hidden} <- [
          {"main", ~w(stranger)},
          {"mail", ~w(journal health tests dinner)},
          {"default", ~w(journal health tests stranger dinner)},
          {"events", ~w(journal health tests stranger)}
        ] do
      for name <- all do
        seen = match?({:ok, _}, View.fetch(Skillbook.view(book, profile), name))
        assert {profile, name, seen} == {profile, name, name not in hidden}
      end
    end

    # The same with get_note: the letter cannot make the main profile read it, nor the other way.
    assert %{status: :error} = run(book, ~s(get_note "A Letter"), profile: "main")
    assert %{status: :error} = run(book, "get_note Health", profile: "mail")
    # A profile with other grants than those of the book.
    one = Skillbook.view(book, Skillbook.Profile.new!(id: "one", grants: ["sensitive"]))
    seen = for name <- all, match?({:ok, _}, View.fetch(one, name)), do: name
    assert seen == ~w(bus health tax)
  end

  # 8: open questions

  row "8", "labels are set with a note, or added for a profile", context do
    outside = [id: "post", grants: ["external_input"], labels: ["external_input"]]
    book = start(context, profiles: [outside | @profiles])
    line = ~s(add_or_update_note --title Secret --content x --labels sensitive)
    assert %{status: :ok} = run(book, line, profile: "main")
    assert "Secret" in notes(book, "ann")
    refute "Secret" in notes(book, "default")
    assert %{status: :error} = run(book, String.replace(line, "Secret", "B"), profile: "events")

    assert %{status: :ok} =
             run(book, "add_or_update_note --title In --content x", profile: "post")

    assert "In" in notes(book, "mail")
    refute "In" in notes(book, "main")
  end

  row "8", "the router names the profile", context do
    profiles = [
      [id: "default"],
      [id: "home", description: "Lamps, heating and locks of the house"],
      [id: "books", description: "Invoices, taxes and accounts"]
    ]

    book = start(context, profiles: profiles)
    answer = %{agents: [%{name: "home", confidence: 0.9, reason: "r"}], no_agent_needed: false}
    view = Skillbook.view(book, "default")
    result = Preflight.profile(view, "It is dark here", model: model(answer))
    assert_received {:asked, text}
    assert text =~ "Lamps, heating" and text =~ "Invoices"
    assert [%{name: "home"}] = result.picks
  end
end
