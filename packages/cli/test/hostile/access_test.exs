defmodule Skillbook.Hostile.AccessTest do
  # Attacks on access by way of commands: a mistake in a restriction opens nothing, and a hidden
  # entry behaves like a missing one. The property about all results is in
  # test/skillbook/store/leaks_test.exs.
  #
  # Not async: one test changes the current folder.
  use Skillbook.SkillsCase, async: false

  alias Skillbook.Prompt.Sections
  alias Skillbook.{Agent, Model, OptionError, Prompt, Tools, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  # Lines of frontmatter that were meant to restrict a document.
  @slips [
    "visibility-labels: [secret]",
    "visibility_label: [secret]",
    "Visibility_Labels: [secret]",
    "label: secret",
    "labels: {a: secret}",
    "labels:",
    "visibility_labels:",
    "visibility_labels: [secret]\nvisibility_labels: []",
    "labels: [secret]\nlabels: []",
    "exclude_from_prompt_profile_ids: {a: 1}",
    "exclude_from_prompt_profile_id: [main]",
    "allowed_tools: Read",
    "allowed-tools:",
    "metadata:\n  visibility_labels: [secret]",
    "include_in_prompt: maybe"
  ]

  # Those that were meant well and are read as meant, so only their readers see the document.
  @restrictions ["labels: [secret]", "visibility_labels: secret", "labels: secret"]

  @profiles [
    [id: "main"],
    [id: "mail", grants: ["external_input"], labels: ["external_input"]],
    [id: "all", grants: :all]
  ]

  defp start(folder, files \\ %{}, options \\ []) do
    write(folder, files)

    defaults = [sources: [folder], write_to: folder, store: ":memory:", profiles: @profiles]
    book(Keyword.merge(defaults, [watch: false] ++ options))
  end

  # The result of a command's line.
  defp run(book, profile, line, options \\ []) do
    lines = "````cmd\n#{line}\n````"
    %{results: [result]} = Skillbook.run(Skillbook.view(book, profile), lines, options)
    result
  end

  defp json(fields), do: Skillbook.Support.JSON.encode(fields)

  defp note(front, name \\ "diary"),
    do: "---\nname: #{name}\ndescription: About zebras\n#{front}\n---\nA zebra.\n"

  describe "a mistake in a restriction opens nothing" do
    test "in a file", %{tmp_dir: folder} do
      files =
        for {slip, number} <- Enum.with_index(@slips ++ @restrictions), into: %{} do
          {"diary#{number}.md", note(slip, "diary#{number}")}
        end

      book = start(folder, files)

      for {slip, number} <- Enum.with_index(@slips ++ @restrictions),
          profile <- ["main", "mail"] do
        name = "diary#{number}"
        view = Skillbook.view(book, profile)
        refute match?({:ok, _}, View.fetch(view, name)), slip
        assert {slip, run(book, profile, "get_skill: #{name}").status} == {slip, :error}
        assert Skillbook.search(view, "zebra") == []

        for format <- Prompt.formats(),
            do: refute(Skillbook.prompt(view, format: format) =~ "ebra")
      end

      # Their readers see those without a mistake.
      all = Skillbook.search(Skillbook.view(book, "all"), "zebra", limit: 50)
      assert length(all) == length(@restrictions)

      # Each mistake has an error that names the right spelling.
      errors =
        for %{code: code} = found when code in [:labels_invalid, :restriction_invalid] <-
              Skillbook.diagnostics(book) do
          assert found.severity == :error
          right = ~w(`labels` `allowed-tools` `include_in_prompt`)
          right = right ++ ~w(`visibility_labels` `exclude_from_prompt_profile_ids`)
          assert String.contains?(found.message, right), to_string(found)
          Path.basename(found.path)
        end

      slips = for number <- 0..(length(@slips) - 1), do: "diary#{number}.md"
      assert Enum.sort(Enum.uniq(errors)) == Enum.sort(slips)

      for {slip, number} <- Enum.with_index(@slips),
          do:
            assert({slip, run(book, "all", "get_skill: diary#{number}").status} == {slip, :error})
    end

    test "in the store", %{tmp_dir: folder} do
      book = start(folder)

      for slip <- @slips do
        given = %{title: "Diary", content: note(slip)}
        assert {slip, run(book, "main", "notes.add #{json(given)}").status} == {slip, :error}
        assert {slip, run(book, "all", "notes.get Diary").status} == {slip, :error}
      end

      # An edit does not open an entry that had a restriction.
      given = %{title: "Diary", content: note("labels: [secret]")}
      assert run(book, "all", "notes.add #{json(given)}").status == :ok

      for slip <- @slips do
        changes = %{name: "diary", operation: "replace", content: note(slip)}
        result = run(book, "all", "skills.update #{json(changes)}")
        assert {slip, result.status} == {slip, :error}
        assert run(book, "main", "notes.get Diary").status == :error
      end

      changes = %{name: "diary", operation: "replace", content: note("labels: [secret, more]")}
      assert run(book, "all", "skills.update #{json(changes)}").status == :ok
      assert run(book, "all", "notes.get Diary").status == :ok
    end

    test "in a vault", %{tmp_dir: folder} do
      vault = Path.join(folder, "vault")
      skills = Path.join(folder, "skills")
      lines = Enum.with_index(@slips ++ @restrictions)
      write(vault, Map.new(lines, fn {line, at} -> {"diary#{at}.md", note(line)} end))
      write(vault, %{"open.md" => "A zebra.\n"})
      book = start(skills, %{}, vaults: [[name: "vault", path: vault]])
      {:ok, _} = Skillbook.Vault.sync(book, "vault")
      found = run(book, "main", "markdown.search --query zebra")
      assert Enum.map(found.data.hits, & &1.path) == ["open.md"]

      for command <- ["markdown.read X", "markdown.edit X --operation append --content x"] do
        assert run(book, "main", String.replace(command, "X", "open")).status == :ok

        for {line, at} <- lines do
          result = run(book, "main", String.replace(command, "X", "diary#{at}"))
          assert {line, result.status} == {line, :error}
        end
      end
    end
  end

  test "a stored skill that allows only Read does not get Bash", %{tmp_dir: folder} do
    book = start(folder)

    given = %{
      name: "careful",
      title: "Careful",
      description: "d",
      content: note("allowed-tools: Read", "careful")
    }

    assert run(book, "main", "skills.create #{json(given)}").status == :ok
    given = %{title: "Careful note", content: note("allowed-tools: Read", "careful-note")}
    assert run(book, "main", "notes.add #{json(given)}").status == :ok
    view = Skillbook.view(book, "main")

    for name <- ["careful", "careful-note"] do
      assert View.allows_tool?(view, name, "Read")
      refute View.allows_tool?(view, name, "Bash")
    end
  end

  describe "tasks between profiles" do
    test "none is planted by outside input, nor changed by it", %{tmp_dir: folder} do
      book = start(folder)
      planted = run(book, "mail", ~s(tasks.create --title "Pay the invoice" --assignee main))
      assert planted.data.labels == ["external_input"]
      own = run(book, "main", ~s(tasks.create --title "Surgery on Monday")).data.id
      planted = planted.data.id
      assert run(book, "mail", "tasks.get T-#{planted}").status == :ok

      # The searches of the main profile find its own task at most.
      for line <- ["", " --query invoice", " --assignee main", " --status todo done"] do
        %{data: %{tasks: tasks, total: total}} = run(book, "main", "tasks.search" <> line)
        assert {line, Enum.map(tasks, & &1.id) -- [own], total in 0..1} == {line, [], true}
      end

      missing = fn id ->
        "there is no task T-#{id}; `tasks.search` lists the tasks with their ids"
      end

      for line <- [
            "tasks.get T-X",
            "tasks.update T-X --title x",
            "tasks.delete T-X",
            "tasks.create --title x --parent T-X"
          ],
          id <- [planted, 99_999_999],
          do:
            assert(run(book, "main", String.replace(line, "X", "#{id}")).content == missing.(id))

      # A task without labels is shared, but a profile with labels changes none of them.
      for line <- ["tasks.update T-#{own} --title Mine", "tasks.delete T-#{own}"],
          do: assert(run(book, "mail", line).content =~ ~s(lacks "external_input"))

      assert run(book, "main", "tasks.get T-#{own}").content =~ "Surgery on Monday"
    end

    test "outside input finds no private task and no deleted one", %{tmp_dir: folder} do
      profiles = [[id: "main", grants: ["private"], labels: ["private"]] | tl(@profiles)]
      book = start(folder, %{}, profiles: profiles)
      private = run(book, "main", ~s(tasks.create --title "Surgery on Monday")).data.id
      below = run(book, "main", "tasks.create --title Pack --parent T-#{private}").data.id
      shared = run(book, "all", "tasks.create --title Milk").data.id
      assert run(book, "all", "tasks.delete T-#{shared}").status == :ok

      for id <- [private, below, shared],
          line <- ["tasks.get T-X", "tasks.update T-X --title x", "tasks.delete T-X"] do
        result = run(book, "mail", String.replace(line, "X", "#{id}"))
        assert result.content =~ "there is no task T-#{id};"
      end

      for words <- ["", " --query surgery", " --query milk", " --status todo done"],
          do: assert(%{tasks: [], total: 0} = run(book, "mail", "tasks.search" <> words).data)

      # Labels that the profile does not hold cannot be put on a task either.
      assert run(book, "mail", "tasks.create --title x --labels private").status == :error
    end
  end

  describe "a hidden thing leaves no trace" do
    # The texts of both books for a reader.
    defp both(folder, hidden, lines, options \\ []) do
      for {name, files} <- [{"with", hidden}, {"none", %{}}] do
        book = start(Path.join(folder, name), files)
        if name == "with", do: Keyword.get(options, :do, fn _ -> :ok end).(book)
        report = for line <- lines, do: run(book, "main", line, now: ~U[2026-03-01 09:30:00Z])
        {book, Enum.map(report, & &1.content)}
      end
    end

    test "workflow.build knows no hidden names and domains", %{tmp_dir: folder} do
      hidden = %{
        "ops/SKILL.md" => note("labels: [secret]", "ops"),
        "workflows/late.md" => note("labels: [secret]", "workflows.late"),
        "far/post.md" => note("aliases: [workflows.post]\nlabels: [secret]", "far.post")
      }

      lines =
        for name <- ~w(ops.late workflows.late workflows.post workflows.none) do
          [domain, name] = String.split(name, ".")
          "workflow.build --name #{name} --domain #{domain} --description x --steps Stew"
        end

      [{_, with}, {_, none}] = both(folder, hidden, lines)
      assert with == none
      assert Enum.all?(with, &(&1 =~ "Built "))
    end

    test "ids of tasks, memories and runs do not count others", %{tmp_dir: folder} do
      page = %{
        "ops/go.md" =>
          page("ops.go", [], "# ops.go\n\n## Behavior\n\n```cmd\ntasks.search\n```\n")
      }

      book = start(folder, page)

      for _ <- 1..12 do
        run(book, "all", "tasks.create --title Other --labels x")
        run(book, "all", "memory.save --content Other")
        run(book, "all", "ops.go")
      end

      tasks = for _ <- 1..12, do: run(book, "main", "tasks.create --title Mine").data.id
      runs = for _ <- 1..12, do: run(book, "main", "ops.go").data.run

      for numbers <- [tasks, runs] do
        assert Enum.all?(numbers, &(&1 in 10_000_000..99_999_999))
        # Twelve random numbers are in order once in 479 million times.
        assert numbers != Enum.sort(numbers)
      end

      assert run(book, "main", "memory.save --content First").content =~ "Saved M-1 "
    end

    test "the order of memories does not change with others' rows", %{tmp_dir: folder} do
      own =
        for words <- ["stew", "milk stew", "haiku of milk", "stew stew tea"],
            do: "memory.save #{json(%{content: words})}"

      searches =
        for words <- ["stew", "milk stew", "tea milk"], do: "memory.search --query #{words}"

      flood = fn book ->
        for _ <- 1..30, do: run(book, "all", "memory.save #{json(%{content: "milk tea tea"})}")
      end

      [{_, with}, {_, none}] = both(folder, %{}, own ++ searches, do: flood)
      assert with == none
      assert length(Enum.uniq(with)) > 6
    end

    test "a hidden change ends no stored result and changes no generation", %{tmp_dir: folder} do
      book = start(folder, %{"open.md" => note("", "open")})
      view = Skillbook.view(book, "main")
      stored = run(book, "main", "get_skill", max_result: 60)
      assert %{metadata: %{cut: %{id: id}}} = stored
      generation = Skillbook.Catalog.generation(Skillbook.Book.fetch!(book).catalog)

      write(folder, %{"hidden.md" => note("labels: [secret]", "hidden")})
      Skillbook.reload(book)
      given = %{title: "Diary", content: note("labels: [secret]")}
      assert run(book, "all", "notes.add #{json(given)}").status == :ok

      assert Skillbook.Catalog.generation(Skillbook.Book.fetch!(book).catalog) > generation
      assert Skillbook.view(book, "main").generation == view.generation
      assert run(book, "main", "results.read --id #{id}").status == :ok
    end
  end

  describe "the start of a book" do
    test "its profiles are the declared ones, and no two have one id", %{tmp_dir: folder} do
      book = start(folder)

      for who <- [nil, "default", "", "Main", "nobody"] do
        assert_raise ArgumentError, ~r/main/, fn ->
          if who, do: Skillbook.view(book, who), else: Skillbook.view(book)
        end
      end

      doubled = [[id: "main"], [id: "all"], [id: "main", grants: :all]]

      assert {:error, %OptionError{option: :profiles} = error} =
               Skillbook.start_link(name: :doubled, sources: [folder], profiles: doubled)

      assert Exception.message(error) =~ "main"
    end

    test "a URL as the store writes nothing and is not printed", %{tmp_dir: folder} do
      File.cd!(folder, fn ->
        for scheme <- ["mysql", "postgress", "https", "sqlite", " postgres", ""] do
          url = "#{scheme}://ann:s3cret@host/db"
          assert {:error, error} = Skillbook.start_link(name: :refused, store: url)
          refute Exception.message(error) <> inspect(error) =~ "s3cret"
        end

        assert File.ls!(".") == []
      end)
    end
  end

  describe "an application's functions tell nothing of a hidden skill" do
    # Two books: in one, skills are hidden from the profile "main"; in the other they are missing.
    # Each row returns the same for it in both, and not for "all", which sees them.
    @secret ["x.pay", "x.spend"]
    @moment ~U[2026-03-01 09:30:00Z]

    defp worlds(folder, options \\ []) do
      write = handler("Text") ++ [effects: "write", approval: "required"]
      hidden = [visibility_labels: "[secret]"]
      prose = "Write to {to}, not to {x.pay}, {pay} or {secret}. Today is {today}.\n"
      flags = "\n## Flags\n\n- `--to` - the address\n"

      open = %{
        "x/send.md" => page("x.send", write),
        "x/late.md" => page("x.late", write),
        "x/look.md" => page("x.look", handler("Text") ++ [effects: "read"]),
        "x/letter.md" => page("x.letter", [], "# x.letter\n\n#{prose}#{flags}")
      }

      secret = %{
        "x/pay.md" =>
          page(
            "x.pay",
            write ++ hidden ++ [examples: "[Pay the milk bill]", trigger_keywords: "[surepay]"]
          ),
        "x/poem.md" => page("x.poem", hidden, "# x.poem\n\n#{prose}#{flags}"),
        "x/spend.md" =>
          page("x.spend", handler("Text") ++ hidden ++ [aliases: "[x.sent]", effects: "read"])
      }

      for {name, files} <- [{"with", Map.merge(open, secret)}, {"none", open}] do
        folder = Path.join(folder, "#{name}/skills")
        profiles = [[id: "main"], [id: "all", grants: :all]]
        defaults = [profiles: profiles, builtins: false, write_to: nil]
        book = start(folder, files, Keyword.merge(defaults, options))
        %{book: book, folder: folder}
      end
    end

    # References, ids and numbers of generations are random or depend on paths.
    defp plain(term, %{folder: folder}) do
      term
      |> inspect(limit: :infinity, printable_limit: :infinity)
      |> String.replace(folder, "FOLDER")
      |> String.replace(~r/#(Reference|PID|Function)<[^>]*>/, "#")
      |> String.replace(~r/:?book_\d+/, "BOOK")
      |> String.replace(~r/A-[a-z2-9]{12}/, "A-REF")
      |> String.replace(~r/~U\[[^\]]*\]|20\d\d-\d\d-\d\d \d\d:\d\d UTC/, "TIME")
      |> String.replace(~r/generation: \d+/, "generation: 0")
      |> String.replace(~r/(duration|time|milliseconds): [\d.]+/, "\\1: 0")
    end

    # What "all" reads differs, or the row would show nothing.
    defp assert_rows(worlds, rows) do
      for {name, row} <- rows do
        [with, none] = for world <- worlds, do: plain(row.(world, "main"), world)
        assert {name, with} == {name, none}
        for name <- @secret, do: refute(with =~ "The page of #{name}")
        [with, none] = for world <- worlds, do: plain(row.(world, "all"), world)
        assert {name, with == none} == {name, false}
      end
    end

    defp statuses, do: Skillbook.Approval.statuses()

    test "approvals: lists, counts, limits and errors", %{tmp_dir: folder} do
      ask = fn _request -> :pending end
      approvals = [max_waiting: 4]
      worlds = [with, none] = worlds(folder, ask: ask, approvals: approvals)

      pending = fn book, profile, line ->
        assert %{status: :pending, data: approval, content: text} = run(book, profile, line)
        {approval.ref, text}
      end

      # Calls of others, and calls of a skill that was visible then.
      for _ <- 1..3, do: pending.(with.book, "all", "x.pay")

      late =
        for %{book: book} = world <- worlds, into: %{} do
          {ref, text} = pending.(book, "main", "x.late --to a")
          {other, _} = pending.(book, "main", "x.late --to b")
          assert {:ok, [_, _]} = Skillbook.approvals(Skillbook.view(book, "main"))
          {book, {ref, other, plain(text, world)}}
        end

      [{_, _, one}, {_, _, two}] = for %{book: book} <- worlds, do: late[book]
      assert one == two

      File.write!(
        Path.join(with.folder, "x/late.md"),
        page("x.late", handler("Text") ++ [effects: "write", visibility_labels: "[secret]"])
      )

      File.rm!(Path.join(none.folder, "x/late.md"))
      for world <- worlds, do: Skillbook.reload(world.book)
      for world <- worlds, do: pending.(world.book, "main", "x.send --to c")

      list = fn options ->
        fn %{book: book}, profile ->
          {:ok, approvals} = Skillbook.approvals(Skillbook.view(book, profile), options)
          {length(approvals), approvals, Skillbook.approvals(book, [profile: profile] ++ options)}
        end
      end

      rows = [
        {"waiting", list.([])},
        {"all", list.(status: statuses())},
        {"one", list.(limit: 1)},
        {"call of a hidden one",
         fn world, profile -> run(world.book, profile, "x.pay").content end}
      ]

      assert_rows(worlds, rows)

      for world <- worlds do
        assert {:ok, [%{name: "x.send"}]} = Skillbook.approvals(world.book, profile: "main")
      end

      # The errors of decisions, and the place that calls of a skill no longer seen take.
      [one, two] =
        for %{book: book} = world <- worlds do
          {ref, other, _} = late[book]
          view = Skillbook.view(book, "main")

          answers = [
            Skillbook.approve(book, ref, by: "Bob"),
            Skillbook.deny(book, other, by: "Bob"),
            Skillbook.approvals(view, status: statuses()),
            for(_ <- 1..4, do: run(book, "main", "x.send --to d").content),
            Skillbook.approvals(view, status: statuses(), limit: 2)
          ]

          assert [{:error, %{kind: :entry}}, {:ok, %{status: :denied}} | _] = answers
          plain(answers, world)
        end

      assert one == two
      assert one =~ "4 calls wait for an approval already"
    end

    test "the request and the context that the :ask callback gets", %{tmp_dir: folder} do
      test = self()

      ask = fn request ->
        send(test, {:request, request})
        :deny
      end

      rows = [
        {"request",
         fn %{book: book}, profile ->
           run(book, profile, "x.send --to a", now: @moment)
           assert_receive {:request, request}
           view = request.context.view
           names = Enum.map(View.entries(view), & &1.name)

           {request, View.count(view), names, Skillbook.search(view, "pay"),
            View.fetch(view, "x.pay")}
         end}
      ]

      assert_rows(worlds(folder, ask: ask), rows)
    end

    test "tools: lists with a limit, their counts, and run_command", %{tmp_dir: folder} do
      view = fn %{book: book}, profile -> Skillbook.view(book, profile) end
      user = [%{role: :user, content: "Pay the milk bill with a poem"}]

      lists =
        for limit <- [1, 2, 3, 4, 128], messages <- [[], user], command <- [true, false] do
          options = [limit: limit, messages: messages, run_command: command]
          {options, fn world, profile -> Tools.list(view.(world, profile), options) end}
        end

      calls =
        for name <- ["x__pay", "x.pay", "x__spend", "pay"] do
          {name,
           fn world, profile ->
             call = %{"type" => "tool_use", "id" => "1", "name" => name, "input" => %{}}
             Tools.call(view.(world, profile), call)
           end}
        end

      commands =
        for line <- ["x.pay", "x.sent", "get_skill: x.poem", "get_skill"] do
          {line,
           fn world, profile ->
             given = %{"command" => line}

             call = %{
               "type" => "tool_use",
               "id" => "1",
               "name" => "run_command",
               "input" => given
             }

             Tools.call(view.(world, profile), call)
           end}
        end

      # A tool's name with one part may name nothing for anybody.
      calls = Enum.reject(calls, &(elem(&1, 0) == "pay"))

      lists =
        Enum.reject(lists, fn {options, _} -> options[:limit] == 1 and options[:run_command] end)

      assert_rows(worlds(folder), lists ++ calls ++ commands)
    end

    test "examples and evaluations", %{tmp_dir: folder} do
      write(folder, %{
        "e.evals.yaml" => """
        evaluations:
        - {name: pays, request: Pay, calls: [x.pay], answer: done}
        - {name: reads, request: Poem, reads: [x.poem], answer: done}
        """
      })

      {evaluations, []} = Skillbook.Test.read_evaluations(Path.join(folder, "e.evals.yaml"))

      model =
        Model.Function.new(fn messages, _options ->
          if Enum.any?(messages, &(&1.role == :assistant)),
            do: "done",
            else: "```cmd\nx.pay\nget_skill: x.poem\n```"
        end)

      message = fn fun ->
        try do
          fun.()
        rescue
          error -> Exception.message(error)
        end
      end

      rows = [
        {"run",
         fn %{book: book}, profile -> Skillbook.Test.run(Skillbook.view(book, profile)) end},
        {"assert_routes",
         fn %{book: book}, profile ->
           view = Skillbook.view(book, profile)

           for request <- ["Pay the milk bill", "Does x.spend"], name <- ["x.pay", "x.send"] do
             message.(fn -> Skillbook.Test.assert_routes(view, request, name) end)
           end
         end},
        {"refute_routes",
         fn %{book: book}, profile ->
           view = Skillbook.view(book, profile)
           message.(fn -> Skillbook.Test.refute_routes(view, "Some surepay", nil) end)
         end},
        {"evaluate",
         fn %{folder: folder}, profile ->
           profiles = [[id: "main"], [id: "all", grants: :all]]
           book = [sources: [folder], builtins: false, profiles: profiles]

           evaluations = for evaluation <- evaluations, do: %{evaluation | profile: profile}
           outcome = Skillbook.Test.evaluate(evaluations, book: book, model: model)
           for run <- outcome.runs, do: {run.status, run.text, Skillbook.Test.Run.failures(run)}
         end}
      ]

      assert_rows(worlds(folder), rows)
    end

    test "sections of the prompt, and pages of prose with placeholders", %{tmp_dir: folder} do
      section = fn %{view: view} ->
        Enum.map_join(View.entries(view), " ", & &1.name) <> inspect(Skillbook.get(view, "x.pay"))
      end

      sections = [{"Skills", section}, :tasks, :memory]

      prose =
        for line <- ["x.poem --to a", "x.poem", "x.poem --too a"] do
          {line, fn %{book: book}, profile -> run(book, profile, line, now: @moment) end}
        end

      rows = [
        {"text",
         fn %{book: book}, profile ->
           view = Skillbook.view(book, profile)
           Sections.text(view, sections: sections, message: "x.pay", now: @moment)
         end},
        {"prompt",
         fn %{book: book}, profile ->
           Skillbook.prompt(Skillbook.view(book, profile), sections: sections)
         end}
      ]

      worlds = worlds(folder)
      assert_rows(worlds, rows ++ prose)

      # Placeholders with the names of hidden skills are text, as those of missing ones.
      for %{book: book} <- worlds, profile <- ["main", "all"] do
        text = run(book, profile, "x.letter --to Bob", now: @moment).content
        assert text =~ "Write to Bob, not to {x.pay}, "
        assert text =~ "{secret}"
      end
    end

    # The profile loses its right to a page, or the page becomes hidden; in the other book the
    # page is deleted at the same moment.
    test "a skill that is lost between the turns of a run", %{tmp_dir: folder} do
      {:ok, grants} = Elixir.Agent.start_link(fn -> ["secret"] end)

      profiles = fn
        "ann" -> {:ok, [grants: Elixir.Agent.get(grants, & &1)]}
        _id -> nil
      end

      page = fn label ->
        fields = [effects: "read", visibility_labels: "[#{label}]"]
        page("x.mail", handler("Text") ++ fields)
      end

      files = %{
        "x/open.md" => page("x.open", handler("Text") ++ [effects: "read"]),
        "x/mail.md" => page.("secret")
      }

      lose = fn lost, world, book, mail ->
        if lost == :right, do: Elixir.Agent.update(grants, fn _ -> [] end)
        if world == :missing, do: File.rm!(mail)
        if {lost, world} == {:page, :hidden}, do: File.write!(mail, page.("inner"))
        Skillbook.reload(book)
      end

      transcripts =
        for lost <- [:right, :page],
            protocol <- [:blocks, :tools],
            world <- [:hidden, :missing],
            into: %{} do
          Elixir.Agent.update(grants, fn _ -> ["secret"] end)
          folder = Path.join(folder, "#{lost}/#{protocol}/#{world}/skills")
          book = start(folder, files, profiles: profiles, builtins: false, write_to: nil)
          turn = :counters.new(1, [])

          model =
            Model.Function.new(fn messages, options ->
              :counters.add(turn, 1, 1)
              tools = for tool <- options[:tools] || [], do: tool.name

              case :counters.get(turn, 1) do
                1 ->
                  assert inspect(messages) <> inspect(tools) =~ "mail"
                  "```cmd\nget_skill: x.mail\nx.mail\n```"

                2 ->
                  lose.(lost, world, book, Path.join(folder, "x/mail.md"))
                  "```cmd\nx.mail\nget_skill: x.mail\nget_skill\n```"

                3 ->
                  if lost == :right do
                    refute inspect(messages) =~ "The page of x.mail"
                    refute "x__mail" in tools
                  end

                  "```cmd\nx.mail\nget_skill: x.mail\nget_skill\nx.open\n```"

                4 ->
                  "Done."
              end
            end)

          {:ok, result} = Agent.run(book, "Go.", profile: "ann", model: model, protocol: protocol)
          assert {result.text, result.turns} == {"Done.", 4}

          messages =
            for message <- result.transcript.messages, do: {message.kind, message.content}

          tools = for tool <- result.transcript.tools || [], do: tool
          {{lost, protocol, world}, plain({messages, tools}, %{folder: folder})}
        end

      for lost <- [:right, :page], protocol <- [:blocks, :tools] do
        [hidden, missing] =
          for world <- [:hidden, :missing], do: transcripts[{lost, protocol, world}]

        assert {lost, protocol, hidden} == {lost, protocol, missing}
        assert hidden =~ "unknown skill"
      end
    end
  end

  test "crashes for one profile do not take a skill from another", %{tmp_dir: folder} do
    book = start(folder, %{"x/go.md" => page("x.go", handler("Call"))}, breaker: [failures: 5])
    crash = [assigns: %{call: fn _, _ -> raise "oops" end}]
    answer = [assigns: %{call: fn _, _ -> {:ok, "fine"} end}]
    for _ <- 1..5, do: assert(run(book, "mail", "x.go", crash).status == :error)
    assert run(book, "mail", "x.go", answer).content =~ "out of service"
    assert run(book, "main", "x.go", answer).content == "fine"
  end

  test "markdown.create writes no bad name and nothing outside", %{tmp_dir: folder} do
    vault = Path.join(folder, "a/vault")
    File.mkdir_p!(vault)
    File.ln_s!(folder, Path.join(vault, "link"))
    book = start(Path.join(folder, "skills"), %{}, vaults: [[name: "vault", path: vault]])

    titles = ["../up", "CON", "aux", "nul", "a\u200Bb", "a\u202Eb", ".hidden", "???", ".."]
    folders = ["..", "a/../../b", "link", "con/x", ".git", "a\u202Eb"]

    for {title, sub} <- Enum.map(titles, &{&1, nil}) ++ Enum.map(folders, &{"ok", &1}) do
      given = Map.reject(%{title: title, folder: sub, content: "x"}, fn {_, v} -> v == nil end)
      result = run(book, "main", "markdown.create #{json(given)}")
      assert {title, sub, result.status} == {title, sub, :error}
    end

    assert File.ls!(vault) == ["link"]
    assert run(book, "main", "markdown.create ok --content x").status == :ok
    assert Enum.sort(File.ls!(vault)) == ["link", "ok.md"]
    assert File.ls!(folder) == ["a"]
  end
end
