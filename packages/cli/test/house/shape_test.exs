defmodule Skillbook.House.ShapeTest do
  # The shape that public functions share: their first argument and their options.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agenda, Agent, Catalog, Grammar, Help, Model, Oban, Package, Preflight}
  alias Skillbook.{Profile, Prompt, Router, Source, Store, Tools, Transcript, Usage, Vault, View}
  alias Skillbook.Workflow
  alias Skillbook.Prompt.Sections
  alias Skillbook.Test.Reflection

  describe "the first argument" do
    setup do
      {:ok, book: book(profiles: [[id: "default"], [id: "ann", skills: ["tasks.*"]]])}
    end

    test "is a view, or the name of a book with the option :profile", %{book: book} do
      view = Skillbook.view(book, "ann")
      {:ok, bob} = Profile.new(id: "bob")

      for {first, options, profile, others} <- [
            {view, [], "ann", []},
            {view, [limit: 1], "ann", [limit: 1]},
            {view, %{limit: 1}, "ann", [limit: 1]},
            {book, [], "default", []},
            {book, %{}, "default", []},
            {book, [profile: "ann", limit: 1], "ann", [limit: 1]},
            {book, %{profile: "ann", limit: 1}, "ann", [limit: 1]},
            {book, [profile: bob], "bob", []}
          ] do
        assert {%View{book: ^book} = view, ^others} = View.from(first, options)
        assert view.profile.id == profile
      end
    end

    test "is refused with what to write instead", %{book: book} do
      view = Skillbook.view(book, "ann")
      {:ok, catalog} = Catalog.load([Source.builtin()])
      first = "as the argument `view_or_book` of Skillbook.View.from/2, got: "
      a_view = "expected a Skillbook.View or the name of a book " <> first

      options =
        "expected a keyword list or a map with atoms as keys as the argument `options` of " <>
          "Skillbook.View.from/2, got: "

      profile = "expected a profile of the book #{inspect(book)} (\"ann\", \"default\"), got: "

      for {first, given, message} <- [
            {"book", [], a_view <> ~s("book")},
            {nil, [], a_view <> "nil"},
            {true, [], a_view <> "true"},
            {catalog, [],
             a_view <>
               inspect(catalog, limit: 5) <>
               "; Skillbook.View.new/2 returns the view of a catalog"},
            {:no_such_book, [], "expected the name of a running book, got: :no_such_book"},
            {book, [profile: "eve"], profile <> ~s("eve")},
            {book, [profile: nil], profile <> "nil"},
            {book, [profile: nil, profile: "ann"], profile <> "nil"},
            {view, [profile: "ann"],
             ~s(expected no option :profile beside a view, which is of the profile "ann"; ) <>
               "pass the name of the book instead of the view"},
            {view, %{"limit" => 1}, options <> ~s(%{"limit" => 1})},
            {view, view.profile, options <> inspect(view.profile, limit: 5)},
            {view, [1], options <> "[1]"},
            {view, nil, options <> "nil"}
          ] do
        error = catch_error(View.from(first, given))
        assert {%ArgumentError{}, ^message} = {error, Exception.message(error)}
      end
    end

    @tag :tmp_dir
    test "has the same meaning for every function", %{tmp_dir: folder} do
      first = start(folder)

      for {name, call, options} <- calls(folder) do
        view = Skillbook.view(first.book, "ann")
        own = call.(view, options)

        for options <- [[profile: "ann"] ++ options, Map.new([profile: "ann"] ++ options)] do
          assert {name, call.(first.book, options)} == {name, own}
        end

        # The profile counts: "default" sees what "ann" does not.
        assert {name, call.(first.book, options)} != {name, own}
      end
    end

    test "is named so in every module" do
      named = for {name, _call, _options} <- calls("."), do: name

      for {module, name, arity, ["view_or_book" | _]} <- Reflection.functions(),
          module != Skillbook.Test,
          # A book alone has those of all its profiles.
          {module, name} != {Skillbook, :approvals},
          # Runs and their costs have tests of their own.
          {module, name} not in [{Skillbook.Workflow, :runs}, {Skillbook.Workflow, :fetch_run}],
          {module, name} not in [{Skillbook.Agent.Runs, :list}, {Skillbook.Agent.Runs, :fetch}],
          {module, name} != {Usage, :costs},
          # Jobs need Oban; its own test has both first arguments.
          module != Skillbook.Oban do
        assert {module, name, arity} in named
      end

      views =
        for {module, name, arity, ["view" | _]} <- Reflection.functions(),
            module != View,
            do: {module, name, arity}

      # A call's context is of the view in which it was found.
      assert Enum.sort(views) == [{Skillbook.Executor, :context, 3}, {Skillbook.Test, :run, 2}]
    end
  end

  # A book whose profile "ann" sees tasks alone.
  defp start(folder) do
    write(folder, %{
      "skills/x/digest.md" => page("x.digest", schedule: "0 8 * * 1", run_as: "default"),
      "skills/x/flow.md" => page("x.flow", [], "## Behavior\n\n```cmd\ntasks.search\n```\n"),
      "notes/Plan.md" => "Sow the beans.\n",
      "pdf/SKILL.md" => "---\nname: pdf\ndescription: Fills in forms\n---\nFill.\n"
    })

    book =
      book(
        store: ":memory:",
        watch: false,
        sources: [Path.join(folder, "skills")],
        agent: [model: Model.Function.new(fn _messages, _options -> "Hello." end)],
        vaults: [
          [path: Path.join(folder, "notes"), name: "notes", labels: ["private"], files: true]
        ],
        profiles: [
          [id: "default", grants: ["private", "imported"], description: "Lights of the house"],
          [id: "ann", skills: ["tasks.*"]]
        ]
      )

    {:ok, _} = Vault.sync(book, "notes")
    {:ok, _} = Store.create(book, %{title: "Diary", kind: :note, content: "Dear."})
    Skillbook.run(book, "```cmd\nx.flow\n```")
    %{book: book}
  end

  # Each function, a call of it whose answer depends on the profile, and its other options.
  defp calls(folder) do
    now = [now: ~U[2026-03-01 09:30:00Z]]
    line = "memory.search --query tea"
    read = %{name: "memory.search", hash: "", command: "memory.search", answer: ""}
    left_out = %Transcript{profile: "", left_out: [read]}
    error = fn answer -> with {:error, error} <- answer, do: Exception.message(error) end
    said = fn result -> {result.status, result.content} end
    tool = %{"name" => "memory__search", "arguments" => %{"query" => "tea"}}
    path = fn file -> {:ok, file.path} end
    write = fn device, _max -> :file.write(device, "a") end

    [
      {{Skillbook, :run, 3},
       &Enum.map(Skillbook.run(&1, "```cmd\n#{line}\n```", &2).results, said), now},
      {{Skillbook, :carry_out, 3}, &said.(Skillbook.carry_out(&1, line, &2)), now},
      {{Skillbook, :prompt, 2}, &Skillbook.prompt(&1, &2), [sections: [:domains]]},
      {{Skillbook, :get, 3}, &error.(Skillbook.get(&1, "memory.search", &2)), []},
      {{Skillbook, :search, 3}, &Skillbook.search(&1, "remember facts", &2), [limit: 2]},
      {{Skillbook, :usage, 2}, &Skillbook.usage(&1, &2),
       [until: ~U[2100-01-01 00:00:00Z], since: ~U[2026-01-01 00:00:00Z]]},
      {{Skillbook, :schedule, 2}, &Skillbook.schedule(&1, &2), now},
      {{Skillbook, :pause_schedule, 3},
       &error.(Skillbook.pause_schedule(&1, "memory.search", &2)), [by: "Eve"]},
      {{Skillbook, :resume_schedule, 3},
       &error.(Skillbook.resume_schedule(&1, "memory.search", &2)), [by: "Eve"]},
      {{Skillbook, :run_schedule, 3}, &error.(Skillbook.run_schedule(&1, "memory.search", &2)),
       [by: "Eve"]},
      {{Skillbook, :reset_breaker, 3}, &error.(Skillbook.reset_breaker(&1, "memory.search", &2)),
       [by: "Eve"]},
      {{Agent, :run, 3},
       fn first, options ->
         {:ok, result} = Agent.run(first, "Hi", options)
         {result.text, Enum.map(result.transcript.messages, & &1.content)}
       end, [max_turns: 2]},
      {{Agent, :rehydrate, 3}, &Agent.rehydrate(&1, left_out, &2), [max_tokens: 500]},
      {{Agenda, :report, 2}, &Agenda.report(&1, &2), now},
      {{Grammar, :gbnf, 2}, &Grammar.gbnf(&1, &2), [names: ["*.search"]]},
      {{Help, :get, 3}, &error.(Help.get(&1, "memory.search", &2)), []},
      {{Help, :top_level, 2}, &Help.top_level(&1, &2), []},
      {{Help, :domain, 3}, &error.(Help.domain(&1, "memory", &2)), []},
      {{Help, :domain_all, 3}, &error.(Help.domain_all(&1, "memory", &2)), []},
      {{Help, :skill, 3}, &error.(Help.skill(&1, "memory.search", &2)), []},
      {{Oban, :insert, 3}, &error.(Oban.insert(&1, line, &2)), [oban: self()]},
      {{Oban, :changeset, 3}, &error.(Oban.changeset(&1, line, &2)), [queue: :other]},
      {{Preflight, :run, 3}, &Preflight.run(&1, "Remember facts about me", &2).picks,
       [stages: [:retrieval], threshold: 0]},
      {{Prompt, :text, 2}, &Prompt.text(&1, &2), [sections: [:domains]]},
      {{Sections, :text, 2}, &Sections.text(&1, &2),
       [sections: [{"Own", fn context -> context.profile.id end}]] ++ now},
      {{Preflight, :profile, 3}, &Preflight.profile(&1, "Lights of the house", &2).picks,
       [stages: [:retrieval], threshold: 0]},
      {{Router, :route, 3}, &error.(Router.route(&1, line, &2)), []},
      {{Tools, :definitions, 2}, &Tools.definitions(&1, &2), [names: ["*.search"]]},
      {{Tools, :list, 2}, &Tools.list(&1, &2), [names: ["*.search"]]},
      {{Tools, :call, 3}, &(&1 |> Tools.call(tool, &2) |> elem(1)), now},
      {{Usage, :report, 2}, &Usage.report(&1, &2),
       [until: ~U[2100-01-01 00:00:00Z], since: ~U[2026-01-01 00:00:00Z]]},
      {{Store, :create, 3},
       &error.(Store.create(&1, [title: "Tea", kind: :note, content: "Hot."], &2)), now},
      {{Store, :put_note, 4}, &error.(Store.put_note(&1, "Cups", "Two.", &2)),
       [fields: [tags: ["tea"]]] ++ now},
      {{Store, :put_all, 3},
       &Store.put_all(&1, [[title: "Diary", kind: :note, content: "Dear me."]], &2), now},
      {{Store, :update, 4}, &error.(Store.update(&1, "diary", [tags: ["me"]], &2)), now},
      {{Store, :fetch, 3}, &error.(Store.fetch(&1, "diary", &2)), []},
      {{Store, :list, 2}, &Store.list(&1, &2), [kind: :note]},
      {{Store, :history, 3}, &error.(Store.history(&1, "diary", &2)), []},
      {{Store, :version, 4}, &error.(Store.version(&1, "diary", 1, &2)), []},
      {{Store, :diff, 5}, &error.(Store.diff(&1, "diary", 1, 2, &2)), []},
      {{Store, :disable, 3}, &error.(Store.disable(&1, "diary", &2)), now},
      {{Store, :enable, 3}, &error.(Store.enable(&1, "diary", &2)), now},
      {{Store, :restore, 4}, &error.(Store.restore(&1, "diary", 1, &2)), now},
      {{Store, :delete, 3}, &error.(Store.delete(&1, "diary", &2)), now},
      {{Workflow, :runs, 2}, &Workflow.runs(&1, &2), [limit: 5]},
      {{Workflow, :fetch_run, 3},
       fn first, options ->
         book = if is_atom(first), do: first, else: first.book
         {:ok, [%{id: id}]} = Workflow.runs(View.all(book))
         Workflow.fetch_run(first, id, options)
       end, []},
      {{Vault, :names, 2}, &Vault.names(&1, &2), []},
      {{Vault, :search, 3}, &error.(Vault.search(&1, "beans", &2)), [limit: 1]},
      {{Vault, :read, 3}, &error.(Vault.read(&1, "Plan", &2)), [vault: "notes"]},
      {{Vault, :edit, 4}, &error.(Vault.edit(&1, "Plan", {:append, "Water."}, &2)), []},
      {{Vault, :open_file, 4}, &error.(Vault.open_file(&1, "vault:notes/Plan.md", path, &2)),
       [max_bytes: 100]},
      {{Vault, :save_file, 4}, &error.(Vault.save_file(&1, "vault:notes/a.bin", write, &2)),
       [replace: true]},
      {{Vault, :create, 3}, &error.(Vault.create(&1, [title: "Tea", content: "Hot."], &2)), []},
      {{Package, :export, 4},
       &error.(Package.export(&1, "memory.search", Path.join(folder, "out"), &2)), [force: true]},
      {{Package, :publish, 3}, &error.(Package.publish(&1, Path.join(folder, "site"), &2)),
       [names: ["memory.search"], force: true]},
      {{Package, :into_store, 3},
       fn first, options ->
         {:ok, [outcome]} = Package.into_store(first, Path.join(folder, "pdf"), options)
         {outcome.action, outcome.error}
       end, [accept: fn _question -> true end]}
    ]
  end

  describe "every public function" do
    # As of Finch and Mint: the accumulator of a stream that failed is of use.
    @with_accumulator [{Skillbook.HTTP, :stream, 4}]

    test "returns no tuple of three or more" do
      long =
        for {module, name, arity, type} <- Reflection.results(),
            Enum.any?(Reflection.tuple_sizes(type), &(&1 > 2)),
            do: {module, name, arity}

      assert long == @with_accumulator
    end

    test "that makes a value which may be wrong has a twin that raises" do
      functions =
        for {module, name, arity, _} <- Reflection.functions(), do: {module, name, arity}

      missing =
        for {module, :new, arity, type} <- Reflection.results(),
            Reflection.outcomes(type) == [:error, :ok],
            module != Skillbook.Oban,
            {module, :new!, arity} not in functions,
            do: {module, arity}

      assert missing == []
    end
  end

  @tag :tmp_dir
  test "options are keyword lists or maps", %{tmp_dir: folder} do
    write(folder, %{"tea.md" => page("tea", [], "Boil.\n")})
    {:ok, catalog} = Catalog.load([%{path: folder, kind: :notes}])
    function = Model.Function.new(fn _messages, _options -> "Hi." end)
    url = "http://127.0.0.1:1"
    messages = [%{role: :user, content: "Hi"}]

    for {name, call, options} <- [
          {Profile, &Profile.new!/1, [id: "a", preflight: [max: 2], assigns: %{b: 1}]},
          {Source, &Source.new!/1, [path: folder, trust: :low]},
          {:installed, &Source.list([{:installed, folder, &1}]), [name: "theirs"]},
          {:conventional, &Source.conventional/1, [home: folder, project: folder]},
          {View, &View.new!(catalog, &1).profile, [id: "a", grants: :all]},
          {:entries, &View.entries(View.all(catalog), &1), [kind: :note]},
          {Model.OpenAI, &Model.OpenAI.new!/1, [url: url, model: "m", key: {:env, "KEY"}]},
          {Model.Anthropic, &Model.Anthropic.new!/1, [model: "m", cache: [ttl: "1h"]]},
          {Model.Gemini, &Model.Gemini.new!/1, [model: "m"]},
          {Model.Responses, &Model.Responses.new!/1, [model: "m"]},
          {:chat, &Model.chat(function, messages, &1, fn _ -> :ok end), [temperature: 0.5]},
          {Skillbook.Embedder.OpenAI, &Skillbook.Embedder.OpenAI.new!/1, [url: url, model: "m"]},
          {Skillbook.Extractor, &Skillbook.Extractor.extract("```cmd\na.b", &1),
           [unclosed: :run]},
          {Skillbook.Lint, &Skillbook.Lint.run([folder], &1), [strict: true]},
          {Skillbook.HTTP, &Skillbook.HTTP.request(url, &1), [timeout: 1_000]},
          {Package, &Package.find(folder, &1), [path: "nothing"]},
          {Skillbook.Skill, &Skillbook.Skill.new/1, [name: "a.b"]}
        ] do
      assert {name, call.(Map.new(options))} == {name, call.(options)}
    end

    nested = %{agent: %{model: function, chat: %{temperature: 0.5}}, schedules: %{keep: 1}}
    start = Map.merge(nested, %{name: :of_maps, builtins: false, profiles: [%{id: "ann"}]})
    start_supervised!({Skillbook, start})
    options = %{profile: "ann", prompt: %{sections: [:rules]}, commands: %{timeout: 1_000}}
    assert {:ok, %{text: "Hi."}} = Agent.run(:of_maps, "Hi", options)
  end
end
