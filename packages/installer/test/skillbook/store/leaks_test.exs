defmodule Skillbook.Store.LeaksTest do
  # Results of a profile do not depend on hidden entries, tasks, memories and runs: one book has
  # them in its store and files, another does not, and all calls return the same in both. They are
  # hidden by labels and exclusions, or by their tenant. Neither
  # do stored results end by a hidden change, nor does the number of the view's generation change.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Embedding.{Documents, Entries, Vectors}
  alias Skillbook.Prompt.Sections
  alias Skillbook.Search.Candidates
  alias Skillbook.Support.JSON

  alias Skillbook.{
    Agent,
    Approval,
    Book,
    Embedder,
    Entry,
    Grammar,
    Lint,
    Model,
    Native,
    Package,
    Preflight,
    Profile,
    Scheduler,
    Store,
    Stored,
    Tools,
    View
  }

  @moduletag :tmp_dir
  @moduletag :capture_log

  # For a long run: SKILLBOOK_LEAK_CASES=500 mix test test/skillbook/store/leaks_test.exs
  @cases String.to_integer(System.get_env("SKILLBOOK_LEAK_CASES", "3"))
  @seed String.to_integer(System.get_env("SKILLBOOK_LEAK_SEED", "1"))
  @steps 16

  @names ~w(milk bread haiku team-car stew note)
  @titles ["Milk", "milk", "Bread and butter", "haiku", "Stew", "post", "🎉"]
  # Slips and other spellings of names and titles.
  @misspelt ["mlik", "haik", "BREAD", "team car", "stews"]
  @unused ["milc", "breads", "mail.zend", "Bread", "zzz", "skills.creates", "haiku/a.md"]
  # A busy machine must not leave one out.
  @sections for name <- [:tasks, :memory], do: [name: name, timeout: 600_000]
  @asked @names ++ @titles ++ @misspelt ++ @unused
  @texts [
    "Two bottles.\n",
    "",
    "a\nb\na\n",
    "---\nname: x\ndescription: y\n---\nz",
    "---\nlabels: [a]\nallowed-tools: Read\n---\nTwo",
    "---\nexclude_from_prompt_profile_ids: [reader]\nvisibility_labels: b\n---\nz",
    "---\nlabel: [secret]\n---\nTwo",
    "Poems of stew [a](haiku)."
  ]
  @now ~U[2026-03-01 09:30:00Z]

  # The profile that writes what is hidden: it sees everything, or everything of another tenant.
  defp boss, do: %Profile{id: "boss", grants: :all, tenant: if(tenants?(), do: "far")}

  # Whether the tenant alone hides.
  defp tenants?, do: Process.get(:tenants, false)

  defp one_of(list), do: Enum.random(list)

  defp some_of(list), do: Enum.filter(list, fn _ -> :rand.uniform(2) == 1 end)

  # Profiles

  # Two profiles that see the same, except for exclusions. Entries that neither sees are hidden.
  # One case in three restricts their skills and writes.
  defp readers(number) do
    grants = some_of(["a", "b"])
    labels = one_of([[], [], some_of(grants)])
    tenant = if tenants?(), do: one_of(["near", "near", nil])
    reader = %Profile{id: "reader", grants: grants, tenant: tenant}
    other = %{reader | id: "other"}

    if rem(number, 3) == 0 do
      skills = [["m*", "h*", "skills.*", "notes.*"], ["skills.*", "notes.*", "*e*", "results.*"]]
      within = [[], [["*k*", "*s.*", "*e*"]]]
      rights = %{skills: one_of([:all | skills]), within: one_of(within)}
      writes = one_of([:run, :deny])

      {reader |> Map.merge(rights) |> Map.merge(%{labels: labels, writes: writes}),
       Map.merge(other, rights)}
    else
      {%{reader | labels: labels}, other}
    end
  end

  defp sees?(profile, stored) do
    {ids, globs} = {Profile.ids(profile), Profile.globs(profile)}

    Native.stored_visible(ids, profile.tenant, profile.grants, globs, [stored]) == [true]
  end

  defp hidden?(%Stored{} = stored, readers),
    do: readers |> Tuple.to_list() |> Enum.all?(&(not sees?(&1, stored)))

  # Files

  defp files(labels) do
    for number <- 1..4, into: %{} do
      name = one_of(@names)
      folder = one_of(["a", "m", "z"])

      front = [
        "name: #{name}",
        "description: #{one_of(["Poems", "About stew", "Two bottles"])}",
        "title: #{one_of([name | @titles])}",
        "tags: [#{one_of(["t", "u"])}]",
        one_of(["", "aliases: [post, #{one_of(@names)}]"]),
        one_of(["", "include_in_prompt: false"]),
        one_of(["", "proactive_for_profile_ids: [reader]"]),
        one_of(["", "visibility_labels: [a]"]),
        "trigger_keywords: [#{name}, three lines]"
      ]

      front =
        if labels == [],
          do: front,
          else: List.replace_at(front, 7, restriction(labels))

      text =
        "---\n#{front |> Enum.reject(&(&1 == "")) |> Enum.join("\n")}\n---\n" <>
          "#{one_of(["Three lines.", "Stew and milk.\n"])}\n"

      {"#{folder}#{length(labels)}#{number}/SKILL.md", text}
    end
  end

  defp restriction(labels),
    do: if(tenants?(), do: "", else: "visibility_labels: #{inspect(labels)}")

  # A skill whose folder workflow.build cannot use, and a page whose alias it could take.
  defp hidden_folders do
    labels = restriction(["secret"]) <> "\n"
    alias_of = "aliases: [workflows.post, ops.late]\n"

    %{
      "ops/SKILL.md" => "---\nname: ops\ndescription: About stew\n#{labels}---\nStew.\n",
      "far/post.md" =>
        "---\nname: far.post\ndescription: About stew\n#{alias_of}#{labels}---\nStew.\n"
    }
  end

  # Workflows in the folder that commands write to. Its index also lists the hidden ones, as
  # commands do.
  defp workflows(rows, labels, names) do
    rows = Enum.map_join(rows, "\n", &"| workflows.#{&1} | About stew |")

    index =
      "---\ndomain: workflows\ndescription: Flows\n---\n## Available Skills\n\n| Skill | " <>
        "Description |\n|---|---|\n#{rows}\n"

    for name <- names, into: %{"workflows/SKILL.md" => index} do
      front =
        "name: workflows.#{name}\ndescription: About stew\nschedule: '@daily'\nrun_as: " <>
          "default\n#{labels}"

      body = "# workflows.#{name}\n\n## Behavior\n\n```cmd\ntasks.search\n```\n"

      {"workflows/#{name}.md",
       "---\n#{front}---\n#{if name in ["late", "open"], do: body, else: "Say it.\n"}"}
    end
  end

  # Writes that a reader cannot see

  defp write_hidden(book, readers, now) do
    boss = Skillbook.view(book, boss())
    name = one_of(@names ++ @titles)
    options = [now: now, by: one_of([:user, :agent, :import])]

    case one_of([
           :create,
           :create,
           :create,
           :note,
           :update,
           :update,
           :delete,
           :disable,
           :enable,
           :restore,
           :read,
           :remember,
           :task,
           :task,
           :change_task,
           :run,
           :call
         ]) do
      :create ->
        Store.create(boss, hide(fields(), readers), options)

      :remember ->
        remember(book, 1, now)

      :call ->
        report = Skillbook.run(asking(book, boss()), cmd("memory.save --content Stew"), now: now)
        assert [%{status: :pending}] = report.results

      :task ->
        create_task(book, now)

      :change_task ->
        with [_ | _] = ids <- for({id, true} <- tasks(book, boss()), do: id),
             do: command(book, one_of(["tasks.update", "tasks.delete"]), change(one_of(ids)), now)

      :run ->
        Skillbook.run(boss, "```cmd\nworkflows.#{one_of(["open", "late"])}\n```", now: now)

      :note ->
        # Replacing a deleted entry would create a new one, which a reader sees.
        text = one_of(@texts)

        if hits_hidden?(boss, name, readers) and match?({:ok, _}, Store.fetch(boss, name)),
          do: Store.put_note(boss, name, text, options)

      :update ->
        if hits_hidden?(boss, name, readers),
          do: Store.update(boss, name, Map.drop(changes(), [:labels, :excluded_for]), options)

      :restore ->
        # An older version may be one that a reader saw.
        number = one_of([1, 2])

        with true <- hits_hidden?(boss, name, readers),
             {:ok, version} <- Store.version(boss, name, number),
             true <- hidden?(version.entry, readers),
             do: Store.restore(boss, name, number, options)

      :read ->
        Skillbook.run(boss, "```cmd\n#{name}\nget_skill: #{name}\nskills.list\n```", now: now)

      action ->
        if hits_hidden?(boss, name, readers), do: apply(Store, action, [boss, name, options])
    end
  end

  # The view of a profile whose writes wait for an approval.
  defp asking(book, profile), do: Skillbook.view(book, %{profile | writes: :ask})

  # A hidden task, often below or above a visible one.
  defp create_task(book, now) do
    parents = for {id, _hidden?} <- tasks(book, boss()), do: id

    given = %{
      title: "#{memory()} #{memory()}",
      labels: if(tenants?(), do: [], else: ["secret"]),
      parent: one_of([nil | parents]),
      assignee: one_of([nil, "reader", "other"]),
      due: one_of([nil, "today", "yesterday"])
    }

    command(book, "tasks.create", Map.reject(given, fn {_, value} -> value == nil end), now)
  end

  defp change(id), do: %{id: id, title: memory()}

  defp command(book, "tasks.delete", given, now),
    do: run_json(book, "tasks.delete", Map.take(given, [:id]), now)

  defp command(book, name, given, now), do: run_json(book, name, given, now)

  defp run_json(book, name, given, now) do
    view = Skillbook.view(book, boss())
    %{results: [result]} = Skillbook.run(view, "````cmd\n#{name} #{json(given)}\n````", now: now)
    assert result.status == :ok, result.content
  end

  # The ids of the tasks that a profile sees, in the order of a search, and whether each is hidden
  # from the readers.
  defp tasks(book, profile) do
    profile = %{profile | skills: :all, within: []}
    search = "tasks.search --status todo done --sort created_at --limit 100"
    %{results: [result]} = Skillbook.run(Skillbook.view(book, profile), cmd(search), now: @now)

    for task <- result.data.tasks,
        do: {task.id, task.labels == ["secret"] or task.tenant == "far"}
  end

  defp cmd(line), do: "````cmd\n#{line}\n````"

  # Memories of another profile, in the words of the readers' memories.
  defp remember(book, count, now) do
    for _ <- 1..count do
      given = %{
        content: "#{memory()} #{memory()}",
        category: one_of(["general", "fact"]),
        tags: ["stew"]
      }

      Skillbook.run(Skillbook.view(book, boss()), "````cmd\nmemory.save #{json(given)}\n````",
        now: now
      )
    end
  end

  defp memory,
    do: "#{one_of(["Likes", "Poems of", "About"])} #{one_of(["stew", "milk", "haiku"])}"

  defp hide(fields, readers),
    do: if(tenants?(), do: fields, else: hide_by_labels(fields, readers))

  defp hide_by_labels(fields, readers) do
    excluded = readers |> Tuple.to_list() |> Enum.map(& &1.id)

    hidden =
      one_of([
        %{},
        %{labels: one_of([["secret"], ["a", "secret"]]), excluded_for: []},
        %{labels: [], excluded_for: excluded, kind: :skill, description: "Stew"},
        %{labels: [], excluded_for: [], content: "---\nlabels: [secret]\n---\nTwo stews"}
      ])

    fields = Map.merge(fields, hidden)

    stored =
      struct!(
        Stored,
        Map.merge(
          %{name: Store.Fields.slug(fields.title)},
          Map.reject(fields, fn {_, value} -> value == nil end)
        )
      )

    if hidden?(stored, readers), do: fields, else: Map.merge(fields, %{labels: ["secret"]})
  end

  # Whether the call is about an entry, deleted or not, that no reader sees.
  defp hits_hidden?(boss, name, readers) do
    case Store.history(boss, name) do
      {:ok, [%{entry: entry} | _]} -> hidden?(entry, readers)
      _ -> false
    end
  end

  # A reader with few memories has its own numbers and order.
  defp remembered(book, profile) do
    report = Skillbook.run(Skillbook.view(book, profile), "```cmd\nmemory.search\n```", now: @now)
    [result] = report.results
    result.data
  end

  # Writes of a reader, the same in both books

  defp fields do
    %{
      name: one_of([nil | @names]),
      title: one_of(@titles),
      kind: one_of([:skill, :note]),
      description: one_of([nil, "About stew"]),
      content: one_of(@texts),
      tags: one_of([nil, [], ["t"], ["T", "u"]]),
      labels: one_of([nil, nil, [], ["a"], ["b"], ["secret"]]),
      excluded_for: one_of([nil, nil, nil, ["reader"], ["other"]]),
      proactive_for: one_of([nil, nil, ["reader"]]),
      include_in_prompt: one_of([nil, true, false]),
      schedule: one_of([nil, nil, "0 8 * * *", "*/5 * * * *", "* * * * *", ""]),
      timezone: one_of([nil, nil, nil, "Asia/Kolkata", ""])
    }
  end

  defp changes do
    text = one_of(["a", "Two", "z", "'", "stew"])

    edit =
      one_of([
        nil,
        {:replace, one_of(@texts)},
        {:append, text},
        {:prepend, text},
        {:delete, text},
        {:find_replace, text, "x", all?: one_of([true, false])}
      ])

    changes = fields() |> Map.drop([:name, :kind, :content]) |> Map.put(:edit, edit)
    Map.take(changes, Enum.take_random(Map.keys(changes), 2))
  end

  defp random_write(now) do
    if one_of([true, false]),
      do: {:store, random_call(now)},
      else: {one_of([:line, :line, :tool, :tool, :asked]), random_command(), now}
  end

  defp random_call(now) do
    name = one_of(@names ++ @titles ++ @misspelt)
    options = [now: now] ++ one_of([[], [by: :agent]])
    guarded = options ++ one_of([[], [], [expected_version: one_of([1, 2, 3])]])

    one_of([
      {:create, [fields(), options]},
      {:create, [fields(), options]},
      {:update, [name, changes(), guarded]},
      {:update, [name, changes(), guarded]},
      {:put_note, [one_of(@titles), one_of(@texts), guarded]},
      {:put_all, [[fields(), fields()], options]},
      {:delete, [name, guarded]},
      {:enable, [name, options]},
      {:disable, [name, guarded]},
      {:restore, [name, one_of([1, 2, 3]), guarded]}
    ])
  end

  # The command, its tool, and the arguments.
  defp random_command do
    name = one_of(@names ++ @titles)
    fields = fields() |> Map.drop([:kind]) |> Map.reject(fn {_, value} -> value in [nil, []] end)
    fields = Map.reject(fields, &match?({_, ""}, &1))
    note = Map.drop(fields, [:name, :schedule, :timezone])

    one_of([
      {"skills.create", "create_skill",
       fields |> Map.put_new(:name, one_of(@names)) |> Map.put(:description, "d")},
      {"skills.create", "create_skill",
       fields |> Map.put_new(:name, one_of(@names)) |> Map.put(:description, "d")},
      {"skills.update", "update_skill",
       Map.merge(Map.take(fields, [:title, :tags, :labels, :schedule]), %{
         name: name,
         operation: one_of(["append", "replace"]),
         content: "more stew"
       })},
      {"skills.update", "update_skill",
       %{
         name: name,
         operation: "delete",
         content: "Two",
         clear: one_of([["tags"], ["labels"], ["schedule"]])
       }},
      {"skills.delete", "delete_skill", %{name: name}},
      {"skills.disable", "disable_skill", %{name: name}},
      {"skills.enable", "enable_skill", %{name: name}},
      {"skills.restore", "skills__restore", %{name: name, version: one_of([1, 2])}},
      {"notes.add", "add_or_update_note", note},
      {"notes.add", "add_or_update_note", note},
      {"memory.save", "memory__save",
       Map.merge(
         %{content: memory()},
         one_of([%{}, %{category: "fact"}, %{tags: ["stew", "tea"]}])
       )},
      {"memory.save", "memory__save", %{content: "#{memory()}. #{memory()}."}},
      {"tasks.create", "tasks__create", %{title: memory(), description: memory()}},
      {"tasks.create", "tasks__create", %{title: memory(), parent: one_of([1, 2])}},
      {"tasks.create", "tasks__create", %{title: memory(), labels: [one_of(["a", "secret"])]}},
      {"tasks.update", "tasks__update", %{id: one_of([1, 2]), title: memory()}},
      {"tasks.update", "tasks__update",
       Map.merge(%{id: one_of([1, 2])}, one_of([%{parent: 3}, %{clear: ["parent"]}]))},
      {"tasks.update", "tasks__update", %{id: one_of([1, 2]), status: one_of(~w(done todo))}},
      {"tasks.delete", "tasks__delete", %{id: one_of([1, 2, 3])}},
      {"workflow.build", "workflow__build",
       %{
         name: one_of(~w(open late secret post deploy)),
         domain: one_of(~w(workflows workflows ops)),
         description: "Mine",
         steps: "Say stew."
       }},
      {"workflow.build", "workflow__build",
       %{name: one_of(~w(late secret)), description: "Mine", steps: "Say stew."}},
      {"workflow.delete", "workflow__delete",
       %{name: "#{one_of(~w(workflows ops))}.#{one_of(~w(open said late secret post))}"}},
      {"notes.delete", "delete_note", %{title: name}}
    ])
  end

  defp perform(book, profile, {:store, {call, arguments}}),
    do: apply(Store, call, [Skillbook.view(book, profile) | arguments])

  # Commands name tasks by their place in the list that the profile sees.
  defp perform(book, profile, {kind, {command, tool, given}, now})
       when is_map_key(given, :id) or is_map_key(given, :parent) do
    ids = for {id, _hidden?} <- tasks(book, profile), do: id

    given =
      Map.new(given, fn
        {key, place} when key in [:id, :parent] -> {key, Enum.at(ids, place, 99_999_999)}
        field -> field
      end)

    run_command(book, profile, {kind, {command, tool, given}, now})
  end

  defp perform(book, profile, act), do: run_command(book, profile, act)

  defp run_command(book, profile, {:line, {command, _tool, given}, now}) do
    report =
      book
      |> Skillbook.view(profile)
      |> Skillbook.run("````cmd\n#{command} #{json(given)}\n````", now: now)

    {report, to_string(report)}
  end

  # Waits for an approval.
  defp run_command(book, profile, {:asked, {command, _tool, given}, now}) do
    report = Skillbook.run(asking(book, profile), cmd("#{command} #{json(given)}"), now: now)
    if Enum.any?(report.results, &(&1.status == :pending)), do: Process.put(:waits, true)
    {report, to_string(report)}
  end

  defp run_command(book, profile, {:tool, {_command, tool, given}, now}),
    do: call(Skillbook.view(book, profile), tool, given, now)

  defp call(view, tool, given, now) do
    given = given |> json() |> JSON.decode() |> elem(1)

    Tools.call(view, %{"type" => "tool_use", "id" => "1", "name" => tool, "input" => given},
      now: now
    )
  end

  defp json(given),
    do:
      given
      |> Map.new(fn {key, value} -> {to_string(key), value} end)
      |> JSON.encode()

  # All that can be read

  defp everything(%{book: book, folder: folder} = world, profile) do
    view = Skillbook.view(book, profile)
    old = world.old[profile.id]

    [
      # The number itself depends on the paths of files, which differ here.
      changed: view.generation != old.generation,
      news: Skillbook.changes(old, view),
      prompts:
        for(format <- Skillbook.Prompt.formats(), do: Skillbook.prompt(view, format: format)),
      short:
        for(
          limit <- [200, 2_000],
          near <- [[], [nearest: @asked], [messages: [%{role: :user, content: "stew, tea"}]]],
          do: Skillbook.prompt(view, [max_chars: limit] ++ near)
        ),
      preloaded:
        Skillbook.prompt(view, sections: [:commands, :preloaded_skills], preloaded: @asked),
      entries: View.entries(view),
      domains: View.domains(view),
      count: View.count(view),
      diagnostics: View.diagnostics(view),
      tools: for(shape <- [:openai, :anthropic, :mcp], do: Tools.definitions(view, shape: shape)),
      chosen:
        for(
          limit <- [1, 5, 20],
          text <- ["stew", "Where is the milk?"],
          do:
            Tools.list(view,
              limit: limit,
              run_command: true,
              messages: [%{role: :user, content: text}]
            )
        ),
      approvals:
        for(
          limit <- [1, 100],
          do: Skillbook.approvals(view, status: Approval.statuses(), limit: limit)
        ),
      grammar: Grammar.gbnf(view),
      searches:
        for(query <- @asked ++ ["stew milk t", "thre lines"], do: Skillbook.search(view, query)),
      tagged: Skillbook.search(view, "stew", tags: ["t"], limit: 1),
      candidates:
        for(text <- @asked ++ ["Where is the stew?"], do: Candidates.find(view, text, 20)),
      embedded: Entries.progress(view),
      sections:
        for(
          text <- @asked,
          do: Sections.text(view, sections: @sections, message: text, now: @now)
        ),
      routed: routed(view),
      proactive: Native.view_proactive(view.ref),
      commands: lines(view, world),
      calls: calls(view),
      store: stored(view),
      got:
        for(
          name <- @asked,
          do: {View.fetch(view, name), Skillbook.get(view, name), View.tools(view, name)}
        ),
      scopes:
        for(
          asked <- @asked ++ ["*e*", "m*", "notes", "["],
          do: Agent.Scope.narrow(view, [asked])
        ),
      explained: for(name <- @names, do: explained(book, profile, name)),
      agenda: Skillbook.schedule(view, times: 2, last: 100),
      usage: for(by <- [:name, :profile, :event], do: Skillbook.usage(view, by: by)),
      lint: Lint.run([folder], profile: profile),
      examples: Skillbook.Test.run(view),
      exports: exported(view, folder)
    ]
  end

  defp lines(view, world) do
    lines =
      for name <- @asked,
          line <- [
            "get_skill: X",
            "X",
            "skills.read X",
            "skills.read X --version 1",
            "skills.history X",
            "skills.diff X",
            "skills.diff X --from 1 --to 3",
            "skills.load X",
            "notes.get X",
            "skills.search X"
          ],
          do: String.replace(line, "X", if(name =~ " ", do: inspect(name), else: name))

    fixed = [
      "get_skill",
      "get_skill: skills.all",
      "skills.list",
      "skills.list --include-disabled true",
      "notes.list",
      "skills.list --tag t",
      "notes.list --include-disabled true",
      "notes.list --tag u",
      "get_skill: workflows",
      "workflow.list",
      "memory.search",
      "memory.search --limit 1",
      "memory.search --category fact",
      "memory.search --query stew",
      "memory.search --query likes poems stew",
      "memory.search --query mil --limit 1",
      "memory.search --query haiku tea --category general",
      "tasks.search",
      "tasks.search --query stew",
      "tasks.search --query about hai --sort relevance",
      "tasks.search --status todo done --query milk",
      "tasks.search --status todo done --sort created_at --limit 2",
      "tasks.search --assignee me",
      "tasks.get T-1",
      "tasks.get T-#{world.secret}",
      "tasks.update T-#{world.secret} --title x",
      "tasks.delete T-#{world.secret}",
      "tasks.create --title x --parent T-#{world.secret}",
      "workflow.build --name a --description b --labels secret",
      "workflow.build --name a --description b --schedule @daily --run-as chief",
      "workflow.build --name a --description b --schedule @daily --run-as nobody"
    ]

    workflows =
      for name <- ["open", "said", "late", "secret", "none"],
          line <- [
            "workflow.show X",
            "workflow.show X --runs 1",
            "workflow.show X --run R-1",
            "workflow.run X --dry-run",
            "X"
          ],
          do: String.replace(line, "X", "workflows." <> name)

    tasks = for {id, _hidden?} <- tasks(world.book, view.profile), do: "tasks.get T-#{id}"
    lines = Enum.join(fixed ++ tasks ++ workflows ++ lines, "\n")
    report = Skillbook.run(view, cmd(lines), now: @now)
    # No answer has the file of a page that a hidden one pushed aside.
    refute to_string(report) =~ "~0"
    {report, to_string(report)}
  end

  # The picks of the router with their order, confidence and reasons, and what its stages have
  # seen; then the same from its cache. The model's reason depends on all that it is asked: the
  # whole catalog if it is small, and the candidates of keywords and words otherwise.
  defp routed(view) do
    model =
      Model.Function.new(fn messages, _options ->
        [_, name] = Regex.run(~r/"name":"(.*?)"/, List.last(messages).content)
        reason = messages |> :erlang.term_to_binary() |> Entry.digest()

        JSON.encode(%{
          skills: [%{name: name, confidence: 1, reason: reason}],
          no_skill_needed: false
        })
      end)

    for text <- @asked ++ ["Where is the stew?", "Poems of three lines, and two bottles of milk"],
        options <- [
          [],
          [threshold: 0.0, max: 10],
          [threshold: 0.0, model: model],
          [stages: [:model], model: model],
          [stages: [:keywords, :model], max: 1, model: model]
        ],
        _ <- 1..2 do
      result = Preflight.run(view, text, [timeout: 60_000] ++ options)
      if result.needed, do: Process.put(:routed, true)
      %{result | stages: Enum.map(result.stages, &Map.delete(&1, :duration))}
    end
  end

  defp calls(view) do
    for name <- @asked,
        {tool, key} <- [
          {"read_skill", :name},
          {"load_skill", :skill_id},
          {"get_note", :title},
          {"skills__history", :name},
          {"get_skill", :path},
          {"list_skills", :tag},
          {"list_notes", :tag},
          {"skills__diff", :name},
          {"#{name}", :x}
        ],
        do: call(view, tool, %{key => name}, @now)
  end

  defp stored(view) do
    numbers = for from <- [1, 2, 4], to <- [1, 3], do: {from, to}

    {Store.list(view, include_disabled: true), Store.list(view, tags: ["t"]),
     for(limit <- [1, 2, 3], place <- [nil, "bread", "milk"], do: pages(view, limit, place)),
     Store.list(view, kind: :note, source: :agent),
     for(
       name <- @asked,
       do:
         {Store.fetch(view, name), Store.history(view, name),
          Enum.map([1, 2, 3], &Store.version(view, name, &1)),
          Enum.map(numbers, fn {from, to} -> Store.diff(view, name, from, to) end)}
     )}
  end

  defp pages(view, limit, place) do
    {:ok, entries, next} = Store.page(view, limit: limit, after: place, include_disabled: true)
    [{entries, next} | if(next, do: pages(view, limit, next), else: [])]
  end

  # For trusted code, so it shows hidden entries; for visible ones it shows the profile's view.
  defp explained(book, profile, name) do
    for %{hidden: []} = file <- Skillbook.explain(book, name, profile: profile).files,
        file.state in [:used, :index],
        do: Map.take(file, [:path, :name, :source, :state, :prompt])
  end

  defp exported(view, folder) do
    for name <- @names do
      to = Path.join(folder, "../export")
      result = Package.export(view, name, to)

      files =
        for path <- Path.wildcard(to <> "/**"),
            File.regular?(path),
            do: {Path.relative_to(path, to), File.read!(path)}

      File.rm_rf!(to)
      {with({:ok, path} <- result, do: Path.basename(path)), files}
    end
  end

  # Values that differ in each run, whatever the entries are.
  defp same(term, folder) do
    term
    |> inspect(limit: :infinity, printable_limit: :infinity)
    |> String.replace(folder, "FOLDER")
    |> String.replace(~r/#(Reference|PID|Function)<[^>]*>/, "#")
    |> String.replace(~r/:?book_\d+/, "BOOK")
    |> String.replace(~r/duration: [\d.]+/, "duration: 0")
    |> String.replace(~r/\d+ ms/, "0 ms")
    |> String.replace(~r/--id [a-z2-7]{16}|id: "[a-z2-7]{16}"/, "ID")
    |> String.replace(~r/(since|until|asked_at|expires_at): ~U\[[^\]]*\]/, "TIME")
    |> String.replace(~r/A-[a-z2-9]{12}, until [\d: -]* UTC/, "A-REF, until TIME")
    |> String.replace(~r/A-[a-z2-9]{12}/, "A-REF")
    |> String.replace(~r/generation: \d+/, "generation: 0")
    |> String.replace(~r{(?<=["/])~\d\d/}, "")
    |> numbers_in_order()
  end

  # Tasks and runs have random numbers of eight digits. The first one of a text becomes 1.
  defp numbers_in_order(text) do
    numbers = Regex.scan(~r/(?<!\d)[1-9]\d{7}(?!\d)/, text) |> List.flatten() |> Enum.uniq()
    order = numbers |> Enum.with_index(1) |> Map.new()
    Regex.replace(~r/(?<!\d)[1-9]\d{7}(?!\d)/, text, &"##{order[&1]}")
  end

  defp assert_same(about, {one, one_folder}, {other, other_folder}) do
    [one, other] = [same(one, one_folder), same(other, other_folder)]

    if one != other do
      pieces = for text <- [one, other], do: String.split(text, ~r/(?<=[,}\n]) ?/)
      [one, other] = pieces

      differences =
        Enum.zip(one ++ [nil], other ++ [nil])
        |> Enum.reject(fn {a, b} -> a == b end)
        |> Enum.take(4)

      flunk(
        "#{about}\nwith and without what is " <>
          "hidden:\n#{inspect(differences, pretty: true, printable_limit: 2_000)}"
      )
    end
  end

  # Schedules run as these profiles, at times that the test sets, in both books.
  defp start(folder, files, hidden, [_boss, reader | _] = profiles) do
    write(folder, files)
    write(folder <> "_far", hidden)
    clock = :atomics.new(1, []) |> tap(&:atomics.put(&1, 1, DateTime.to_unix(@now)))
    read = fn -> clock |> :atomics.get(1) |> DateTime.from_unix!() end
    schedules = [clock: read, max_per_profile: 3]
    far = if hidden == %{}, do: [], else: [[path: folder <> "_far", tenant: "far"]]
    # Its readers may write there.
    near = [path: folder, tenant: reader.tenant]
    options = [store: ":memory:", sources: far ++ [near], write_to: folder, watch: false]
    options = [ask: fn _request -> :pending end] ++ options
    options = [embedder: embedder(), embedder_timeout: 60_000] ++ options
    book = book(options ++ [profiles: profiles, schedules: schedules])
    %{book: book, folder: folder, clock: clock}
  end

  # Each text has a vector of its own.
  defp embedder do
    Embedder.Function.new("digests", fn texts ->
      for text <- texts, do: for(<<byte <- :crypto.hash(:sha256, text)>>, do: byte - 100)
    end)
  end

  # Waits until all entries and memories have a vector: how far a book is, is a matter of time.
  defp embedded(%{book: book}) do
    book = Book.fetch!(book)
    all? = &match?({[], _}, &1.follow(book, 0))
    assert eventually(fn -> all?.(Entries) and Vectors.count(book.vectors) > 0 end)
    assert eventually(fn -> all?.(Documents) end)
  end

  defp fire(%{book: book, clock: clock}) do
    # All written entries are registered.
    _ = Scheduler.registered(book)

    at =
      DateTime.new!(
        clock |> :atomics.get(1) |> DateTime.from_unix!() |> DateTime.to_date() |> Date.add(1),
        ~T[08:00:00]
      )

    :atomics.put(clock, 1, DateTime.to_unix(at))
    Scheduler.Local.tick(book)
    Scheduler.await(book)
    {:ok, agenda} = Skillbook.schedule(View.all(book), last: 100)
    send(self(), {:fired, length(agenda.last)})
  end

  defp fired do
    receive do
      {:fired, count} -> [count > 0 | fired()]
    after
      0 -> []
    end
  end

  defp stored do
    receive do
      {:stored, count} -> [count | stored()]
    after
      0 -> []
    end
  end

  defp memories_seen do
    receive do
      {:seen, found} -> [found | memories_seen()]
    after
      0 -> []
    end
  end

  defp compare(about, {reader, other}, with, without) do
    for world <- [with, without], do: embedded(world)

    for profile <- [reader, other] do
      [one, two] = for world <- [with, without], do: everything(world, profile)

      for {{key, a}, {key, b}} <- Enum.zip(one, two),
          do:
            assert_same(
              "#{about.()}\n#{profile.id}: #{key}",
              {a, with.folder},
              {b, without.folder}
            )
    end
  end

  # Notes the outlets that differ for a reader who sees what is hidden: a leak there is found.
  defp leaks({reader, _other} = readers, with, without) do
    leaky = %{reader | grants: :all, tenant: if(tenants?(), do: :all), skills: :all, within: []}
    worlds = for world <- [with, without], do: look(world, {leaky, leaky})
    # Enough for a change of what is listed.
    for _ <- 1..24, do: write_hidden(with.book, readers, @now)

    [one, two] =
      for world <- worlds do
        embedded(world)
        # Calls that wait are those of one profile.
        calls = Skillbook.approvals(Skillbook.view(world.book, boss()))
        world |> everything(leaky) |> Keyword.put(:approvals, calls)
      end

    # The files of another tenant are in a folder that lint does not read.
    for {key, seen} <- one, key != :lint or not tenants?() do
      found = same(seen, with.folder) != same(two[key], without.folder)
      Process.put(:found, Map.update(Process.get(:found, %{}), key, found, &(&1 or found)))
    end
  end

  # Writes whose answers could show a hidden name or number, after hidden writes of the same kind.
  defp compare_writes(about, profile, with, without, now) do
    boss = Skillbook.view(with.book, boss())
    hidden = if tenants?(), do: "workflows.late", else: "workflows.open"
    %{results: [%{status: :ok}]} = Skillbook.run(boss, cmd(hidden), now: now)
    create_task(with.book, now)

    builds =
      for name <- ~w(late secret post deploy),
          domain <- ~w(workflows ops),
          line <- [
            "workflow.build --name #{name} --domain #{domain} --description Mine --steps Stew",
            "workflow.delete #{domain}.#{name}"
          ],
          do: line

    numbered =
      List.duplicate("tasks.create --title Stew", 3) ++ List.duplicate("workflows.open", 3)

    lines = cmd(Enum.join(numbered ++ ["workflow.show workflows.open" | builds], "\n"))

    [one, two] =
      for %{book: book} <- [with, without] do
        report = Skillbook.run(Skillbook.view(book, profile), lines, now: now)
        for %{data: %{id: id}} <- report.results, do: send(self(), {:number, {book, :task}, id})
        for %{data: %{run: id}} <- report.results, do: send(self(), {:number, {book, :run}, id})
        for %{effects: [:skill_created]} <- report.results, do: send(self(), :built)
        refute to_string(report) =~ "~0"
        {report, to_string(report)}
      end

    assert_same(about <> "\nwrites", {one, with.folder}, {two, without.folder})
  end

  # The numbers of a book's tasks and of its runs, in the order in which they were drawn.
  defp numbers do
    receive do
      {:number, from, number} -> [{from, number} | numbers()]
    after
      0 -> []
    end
  end

  # Long results that were stored before hidden changes can be read on after them.
  defp compare_stored(about, readers, with, without, now) do
    readers = Tuple.to_list(readers)

    stored =
      for world <- [with, without], profile <- readers, into: %{} do
        view = Skillbook.view(world.book, profile)
        lines = cmd("get_skill\nskills.list\ntasks.search --status todo done")
        report = Skillbook.run(view, lines, now: now, max_result: 60)
        ids = for %{metadata: %{cut: %{id: id}}} when id != nil <- report.results, do: id
        send(self(), {:stored, length(ids)})
        {{world.book, profile.id}, {view.generation, ids}}
      end

    for _ <- 1..4, do: write_hidden(with.book, List.to_tuple(readers), now)

    for profile <- readers do
      [one, two] =
        for world <- [with, without] do
          {generation, ids} = stored[{world.book, profile.id}]
          view = Skillbook.view(world.book, profile)
          assert view.generation == generation, about.() <> "\nthe generation changed"
          lines = Enum.map_join(ids, "\n", &"results.read --id #{&1} --from 20")
          report = Skillbook.run(view, cmd(lines), now: now)
          for result <- report.results, do: assert(result.status == :ok, about.())
          {report, to_string(report)}
        end

      assert_same(about.() <> "\nstored results", {one, with.folder}, {two, without.folder})
    end
  end

  defp look(world, readers) do
    old =
      for profile <- Tuple.to_list(readers),
          into: %{},
          do: {profile.id, Skillbook.view(world.book, profile)}

    Map.put(world, :old, old)
  end

  for {what, tenants?} <- [{"entries", false}, {"tenants", true}] do
    @tag timeout: :infinity
    test "hidden #{what} change no result", %{tmp_dir: folder} do
      Process.put(:tenants, unquote(tenants?))
      check(folder)
    end
  end

  defp check(folder) do
    for number <- @seed..(@seed + @cases - 1)//1 do
      :rand.seed(:exsss, number)
      readers = readers(number)
      seen = Map.merge(files([]), workflows(["open", "said"], "", ["open", "said"]))
      labels = restriction(["secret"]) <> "\n"
      hidden_workflows = workflows(["late", "open", "said", "secret"], labels, ["late", "secret"])
      hidden = Map.merge(files(["secret"]), files(["a", "secret"]))
      hidden = Map.merge(hidden, hidden_folders())
      # Folder names of one length, because results contain paths.
      all =
        if tenants?(), do: seen, else: hidden |> Map.merge(seen) |> Map.merge(hidden_workflows)

      far = if tenants?(), do: Map.merge(hidden, hidden_workflows), else: %{}
      profiles = [boss() | Tuple.to_list(readers)]
      # The other book lacks the profile too.
      with =
        start(
          Path.join(folder, "#{number}/a/skills"),
          all,
          far,
          profiles ++ [[id: "chief", grants: :all]]
        )

      without = start(Path.join(folder, "#{number}/b/skills"), seen, %{}, profiles)
      remember(with.book, 40, @now)
      for _ <- 1..5, do: create_task(with.book, @now)
      [{secret, true} | _] = tasks(with.book, boss())
      with = Map.put(with, :secret, secret)
      without = Map.put(without, :secret, 99_999_998)

      about = fn done ->
        fn ->
          "seed #{number}, #{inspect(readers)}, " <>
            "after\n#{Enum.map_join(Enum.reverse(done), "\n", &inspect/1)}"
        end
      end

      Enum.reduce(1..@steps, {look(with, readers), look(without, readers), []}, fn step,
                                                                                   {with, without,
                                                                                    done} ->
        now = DateTime.add(@now, step)
        for _ <- 1..2, do: write_hidden(with.book, readers, now)
        profile = readers |> Tuple.to_list() |> one_of()
        act = random_write(now)
        done = [{profile.id, act} | done]
        [one, two] = for world <- [with, without], do: perform(world.book, profile, act)
        assert_same(about.(done).(), {one, with.folder}, {two, without.folder})

        if rem(step, 8) == 0 do
          for world <- [with, without], do: fire(world)

          for profile <- Tuple.to_list(readers),
              do: compare_writes(about.(done).(), profile, with, without, now)

          compare(about.(done), readers, with, without)
          compare_stored(about.(done), readers, with, without, now)
          {look(with, readers), look(without, readers), done}
        else
          {with, without, done}
        end
      end)

      # Otherwise the test did nothing.
      {:ok, all} = Store.list(Skillbook.view(with.book, boss()), include_disabled: true)
      if Enum.any?(all, &hidden?(&1, readers)), do: send(self(), :hidden)
      assert %{total: total} = remembered(with.book, boss())
      assert total >= 40

      assert length(tasks(with.book, boss())) >= 5
      leaks(readers, with, without)

      for profile <- Tuple.to_list(readers),
          do: send(self(), {:seen, remembered(with.book, profile)})

      for world <- [with, without], do: stop_supervised!(world.book)
    end

    # A leak in any outlet would be found.
    assert for({key, false} <- Process.get(:found), do: key) == []
    assert Process.get(:routed)
    assert Process.get(:waits)
    assert Enum.any?(fired())
    assert Enum.any?(memories_seen(), &match?(%{total: total} when total > 0, &1))
    assert Enum.any?(stored(), &(&1 > 0))
    assert_receive :built
    assert_receive :hidden

    # Numbers that only grow would tell how many others were drawn between two of them. By chance
    # twelve of them grow once in 479 million cases.
    numbers = numbers() |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)) |> Enum.to_list()
    numbers = for {{_book, kind}, drawn} <- numbers, length(drawn) >= 12, do: {kind, drawn}
    assert numbers |> Enum.map(&elem(&1, 0)) |> Enum.uniq() |> Enum.sort() == [:run, :task]

    for {kind, drawn} <- numbers,
        do: assert(drawn != Enum.sort(drawn), "#{kind}s: #{inspect(drawn)}")
  end
end
