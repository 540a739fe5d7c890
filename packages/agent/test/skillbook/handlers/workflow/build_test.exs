defmodule Skillbook.Handlers.Workflow.BuildTest do
  use Skillbook.HandlerCase, async: true

  alias Skillbook.{Source, View}

  @moduletag :tmp_dir

  setup %{tmp_dir: root} do
    {:ok, root: root, context: read(context(write_to: root))}
  end

  defp check(context, rows) do
    for {line, text} <- rows, do: assert({line, run(context, line)} == {line, text})
  end

  describe "workflow.build" do
    test "takes flags, which commands can use", %{context: context, root: root} do
      steps =
        "```cmd\n# name: late\ntasks.search --overdue --limit {most}\n" <>
          "mail.send --to {to} --body {late}\n```\nSum it up."

      line =
        ~s(workflow.build --name late --description "What is late" --on-error continue ) <>
          ~s(--flags "--to  Who gets it (required, repeatable\)" "--most  How many at most, ) <>
          ~s(from 1 to 9 (default: 5\)" "--dry  Send nothing (a switch\)" ) <>
          "--steps <<END\n#{steps}\nEND"

      assert {:ok, result} = execute(context, String.replace(line, "\\)", ")"))

      assert result.content ==
               "Built workflows.late. Run it with: " <>
                 "workflows.late\nStep 2 would fail now: unknown skill \"mail.send\". " <>
                 "To list all skills, write: get_skill"

      assert [_, frontmatter, body] =
               String.split(File.read!(Path.join(root, "workflows/late.md")), "---\n")

      assert frontmatter =~ "\non_error: continue\n"

      assert body == """
             # workflows.late

             What is late

             ## Usage

             workflows.late --to <to>... [--most <most>] [--dry]

             ## Flags

             --to  Who gets it (required, repeatable)
             --most  How many at most, from 1 to 9 (default: 5)
             --dry  Send nothing (a switch)

             ## Behavior

             #{steps}
             """

      view = read(context).view
      {:ok, declaration} = View.flags(view, "workflows.late")

      assert Enum.map(declaration.flags, &{&1.name, &1.required, &1.several, &1.default}) ==
               [{"to", true, true, []}, {"most", false, false, ["5"]}, {"dry", false, false, []}]

      assert Skillbook.Lint.run([root], context: [Source.builtin(), Source.builtin(:agent)])
             |> Enum.map(& &1.code) == [
               :description_short,
               :example_unknown
             ]
    end

    test "does not write pages that cannot run", %{context: context, root: root} do
      build = &"workflow.build --name flow --description Flows #{&1}"
      block = &build.("--steps <<END\n```cmd\n#{&1}\n```\nEND")

      check(context, [
        {block.("tasks.search --assignee {who}"),
         "error: `workflows.flow` was not built: step 1 has the unknown placeholder {who}; " <>
           "known are {today}, {yesterday}, {now}, {user}, {last} and the numbers of earlier " <>
           "steps. For a literal brace, write {{"},
        {block.("tasks.search | notes.add"),
         "error: `workflows.flow` was not built: step 1 cannot be read: `|` is not " <>
           "supported: this is not a shell\n  tasks.search | notes.add\n               ^\n" <>
           "hint: write one command per line, and use {1} as a value for the result of the " <>
           "first; quote it (\"|\") if it is part of a value"},
        {build.("--flags to"),
         ~s(error: --flags must be a line for each flag of the workflow, as in the Flags ) <>
           ~s(section of a page, got "to". ) <>
           ~s(Write for example: --flags "--to  Who gets it (default: me\)")},
        {build.("--flags \"--to  Who\n## Behavior\""),
         ~s(error: --flags must be a line for each flag of the workflow, as in the Flags ) <>
           ~s(section of a page, got "--to  Who\\n## Behavior". ) <>
           ~s(Write for example: --flags "--to  Who gets it (default: me\)")},
        {build.("--on-error retry"),
         ~s(error: --on-error must be one of stop, continue, got "retry". Write for example: ) <>
           ~s(--on-error stop)}
      ])

      assert Path.wildcard(Path.join(root, "**/*.md")) == []
    end

    test "writes a page, which becomes a command", %{context: context, root: root} do
      line =
        ~s(workflow.build --name weekly_report --description "Report: the week's tasks" ) <>
          ~s(--schedule "0  9 * * 1" ) <>
          ~s(--timezone Europe/Berlin --tags report tasks --steps "List what is done." ) <>
          ~s("Write it up.\nIn three lines.")

      assert {:ok, result} = execute(context, line)

      assert result.content ==
               "Built workflows.weekly_report. Its schedule is " <>
                 "0 9 * * 1: at 09:00 on Mondays, Europe/Berlin; the next time is 2026-02-23 " <>
                 "09:00 +01:00. Run it with: workflows.weekly_report"

      path = Path.join(root, "workflows/weekly_report.md")
      assert result.data == %{name: "workflows.weekly_report", path: path}
      assert result.effects == [:skill_created]
      assert result.metadata == %{skill_name: "workflows.weekly_report", skill_path: path}

      assert File.read!(path) == """
             ---
             name: workflows.weekly_report
             description: 'Report: the week''s tasks'
             schedule: 0 9 * * 1
             timezone: Europe/Berlin
             run_as: alice
             tags:
             - report
             - tasks
             replaces: false
             author: alice
             created: 2026-02-17
             ---
             # workflows.weekly_report

             Report: the week's tasks

             ## Usage

             workflows.weekly_report

             ## Behavior

             1. List what is done.
             2. Write it up.
                In three lines.

             ## Examples

             workflows.weekly_report
             """

      {:ok, entry} = View.fetch(read(context).view, "workflows.weekly_report")

      assert %{
               kind: :command,
               domain: "workflows",
               description: "Report: the week's tasks",
               schedule: "0 9 * * 1",
               timezone: "Europe/Berlin",
               tags: ["report", "tasks"],
               handler: nil,
               usage: "workflows.weekly_report",
               data: %{"author" => "alice", "run_as" => "alice", "created" => "2026-02-17"}
             } = entry
    end

    test "several quoted values are steps, also single words", %{context: context, root: root} do
      rows = [
        {~s(--steps "one" "two"), "1. one\n2. two"},
        {~s(--steps 'one' 'two' 'three'), "1. one\n2. two\n3. three"},
        {~s(--steps="one" --steps="two"), "1. one\n2. two"},
        {~s(--steps “one” “two”), "1. one\n2. two"},
        {~s(--steps one two), "one two"},
        {~s(--steps "one two"), "one two"},
        {~s(--steps "one"), "one"}
      ]

      for {{steps, text}, index} <- Enum.with_index(rows) do
        run(context, "workflow.build --name n#{index} --description x #{steps}")
        page = File.read!(Path.join(root, "workflows/n#{index}.md"))
        assert page =~ "## Behavior\n\n#{text}\n\n## Examples"
      end

      line = ~s(workflow.build {"name": "j", "description": "x", "steps": ["one", "two"]})
      run(context, line)
      assert File.read!(Path.join(root, "workflows/j.md")) =~ "1. one\n2. two\n"
    end

    test "a schedule needs a workflow that runs without flags", %{context: context, root: root} do
      build = fn name, flags, steps ->
        steps = if steps, do: " --steps <<EOF\n```cmd\n#{steps}\n```\nEOF", else: ""

        run(
          context,
          ~s(workflow.build --name #{name} --description x --schedule @daily ) <>
            ~s(--flags "#{flags}"#{steps})
        )
      end

      error = fn name, problem ->
        "error: `workflows.#{name}` was not built: its schedule calls it without flags, and " <>
          "#{problem}. Give the flag a default in --flags, as in " <>
          ~s("--to  Who gets it (default: me\)", or leave out --schedule)
      end

      rows = [
        {"--to  Who (required)", nil, "it requires --to"},
        {"--to  Who (required)", "tasks.search --query {to}", "it requires --to"},
        {"--to  Who", "memory.save --content \"For {to}\"",
         "step 1 needs --to, which is not given and has no default"},
        {"--to  Who", "tasks.search --query {to}", nil},
        {"--to  Who (default: me)", "memory.save --content \"For {to}\"", nil},
        {"--dry  Nothing (a switch)", "memory.save --content {dry}", nil}
      ]

      for {{flags, steps, problem}, index} <- Enum.with_index(rows) do
        name = "s#{index}"
        text = build.(name, flags, steps)

        if problem do
          assert text == error.(name, problem)
          refute File.exists?(Path.join(root, "workflows/#{name}.md"))
        else
          assert text =~ "Built workflows.#{name}. Its schedule is @daily"
        end
      end

      # Without a schedule a required flag is fine.
      line = ~s|workflow.build --name r --description x --flags "--to  Who (required)"|
      assert run(context, line) =~ "Built workflows.r"
    end

    test "one text of steps stays one, and unquoted words become one", %{
      context: context,
      root: root
    } do
      for {name, steps, text} <- [
            {"a", "# Plan\n\n1. Search.\n", "# Plan\n\n1. Search."},
            {"b", ["Create", "tasks,", "send", "mail"], "Create tasks, send mail"},
            {"c", ["Create tasks", "report"], "1. Create tasks\n2. report"},
            {"d", nil, "Do what is described above, step by step, with the commands you have."}
          ] do
        flags = %{"name" => name, "description" => "x", "steps" => steps}
        assert {:ok, _} = execute(context, "workflow.build", flags)
        page = File.read!(Path.join(root, "workflows/#{name}.md"))
        assert page =~ "## Behavior\n\n#{text}\n\n## Examples"
      end
    end

    test "a new domain is a folder with only the page", %{context: context, root: root} do
      check(context, [
        {~s(workflow.build --name onboarding --description "Take on a client | fast" ) <>
           ~s(--domain client_care),
         "Built client_care.onboarding. Run it with: " <>
           "client_care.onboarding"}
      ])

      assert File.ls!(Path.join(root, "client_care")) == ["onboarding.md"]

      assert [domain] =
               for(
                 %{name: "client_care"} = domain <- View.domains(read(context).view),
                 do: domain
               )

      assert {domain.path, domain.description, domain.body} ==
               {nil, "client_care.onboarding",
                """
                # client_care

                | Skill | Description |
                |-------|-------------|
                | client_care.onboarding | Take on a client \\| fast |
                """}
    end

    test "the index file of a domain is not changed", %{
      context: context,
      root: root
    } do
      index = Path.join(root, "care/SKILL.md")

      text =
        "---\ndomain: care\ndescription: Care\n---\n# Care\n\n##  Available Skills\n\n" <>
          "## Notes\n\n- by hand\n"

      File.mkdir_p!(Path.dirname(index))
      File.write!(index, text)

      for name <- ~w(onboarding farewell),
          do: run(context, "workflow.build --name #{name} --description x --domain care")

      assert File.read!(index) == text

      assert [%{path: ^index, body: body}] =
               for(%{name: "care"} = d <- View.domains(read(context).view), do: d)

      assert body == """
             # Care

             ##  Available Skills

             | Skill | Description |
             |-------|-------------|
             | care.farewell | x |
             | care.onboarding | x |

             ## Notes

             - by hand
             """
    end

    test "the index of a built-in domain is not copied", %{context: context, root: root} do
      run(context, "workflow.build --name zebra --description Stripes")
      assert File.ls!(Path.join(root, "workflows")) == ["zebra.md"]

      builtin = Path.join(Source.builtin(:agent).path, "workflows/SKILL.md")

      assert [%{path: ^builtin, body: body}] =
               for(%{name: "workflows"} = d <- View.domains(read(context).view), do: d)

      for row <- [
            "| workflows.daily_digest | ",
            "| workflows.weekly_review | ",
            "| workflows.zebra | Stripes |\n"
          ],
          do: assert(body =~ row)
    end

    test "names that are taken or invalid", %{context: context, root: root} do
      name =
        "a name of at most 64 lower-case letters, digits and underscores, without a dot, that " <>
          "begins with a letter"

      build = fn name -> "workflow.build --description x --name #{name}" end
      File.mkdir_p!(Path.join(root, "workflows"))
      File.write!(Path.join(root, "workflows/draft.md"), "not yet a page")

      for bad <- [
            "Weekly",
            "1st",
            "_x",
            "a-b",
            "a.b",
            "workflows.report",
            "../x",
            "a/b",
            "ä",
            String.duplicate("a", 65)
          ] do
        assert run(context, build.(bad)) ==
                 ~s(error: --name must be #{name}, got ) <>
                   ~s("#{String.slice(bad, 0, 60)}#{if String.length(bad) > 60, do: "..."}". ) <>
                   "Write for example: --name weekly_report"

        assert run(context, "workflow.build --name ok --description x --domain #{bad}") =~
                 "error: --domain must be #{name}"
      end

      check(context, [
        {build.("all"),
         ~s(error: --name must be a name other than all and help, got "all". Write for ) <>
           ~s(example: --name weekly_report)},
        {build.("help"),
         ~s(error: --name must be a name other than all and help, got "help". Write for ) <>
           ~s(example: --name weekly_report)},
        {"workflow.build --description x --name ok --domain all",
         ~s(error: --domain must be a name other than all and help, got "all". Write for ) <>
           ~s(example: --domain workflows)},
        {build.("daily_digest"),
         ~s(error: --name must be a free name; workflows.daily_digest already exists, got ) <>
           ~s("daily_digest". Write for example: --name daily_digest_2)},
        {build.("search") <> " --domain tasks",
         ~s(error: --name must be a free name; tasks.search already exists, got "search". ) <>
           ~s(Write for example: --name search_2)},
        {build.("draft"),
         ~s(error: --name must be a free name; workflows.draft already exists, got "draft". ) <>
           ~s(Write for example: --name draft_2)},
        {build.("two words"),
         ~s(error: --name takes one value, got 2: "two", "words". Write for example: --name ) <>
           ~s(weekly_report)}
      ])

      assert run(context, "workflow.build", %{"name" => "a\n", "description" => "x"}) =~
               "error: --name must be #{name}"

      assert File.read!(Path.join(root, "workflows/draft.md")) == "not yet a page"

      assert File.ls!(root) == ["workflows"] and
               File.ls!(Path.join(root, "workflows")) == ["draft.md"]

      longest = String.duplicate("a", 64)
      assert run(context, build.(longest)) =~ "Built workflows.#{longest}"
    end

    test "other invalid flags", %{context: context, root: root} do
      check(context, [
        {"workflow.build",
         "error: --name and --description are required and missing. Add them as: --name " <>
           "VALUE --description VALUE"},
        {"workflow.build report --description x",
         ~s(error: "report" has no flag. Put a flag in front: --FLAG "report")},
        {"workflow.build --name x --description x --cron @daily",
         "error: unknown flag --cron. Known flags: --name, --description, --steps, --flags, " <>
           "--on-error, --domain, --schedule, --timezone, --run-as, --tags, --tag, --labels"},
        {"workflow.build --name x --description x --schedule daily",
         ~s(error: expected five fields, or six with the second first, got "daily"; write ) <>
           ~s(@daily)},
        {~s(workflow.build --name x --description x --schedule "0 22-2 * * 1"),
         ~s(error: expected the smaller value first in a range in the hour, got "22-2"; ) <>
           ~s(write 22-23,0-2)},
        {~s(workflow.build --name x --description x --schedule "0 0 30 2 *"),
         ~s(error: expected a day that exists, got "30 2 *"; ) <>
           "no year has such a day; write another day of month, month or day of week"},
        {"workflow.build --name x --description x --timezone Europe/Berlin",
         "error: --schedule is required and missing. Add it as: --schedule VALUE"},
        {"workflow.build --name x --description x --schedule @daily --timezone +01:00",
         ~s(error: expected the name of a time zone, got "+01:00"; ) <>
           "write a name such as Europe/Berlin, America/New_York or UTC"},
        {"workflow.build --name x --description x --schedule @daily --timezone Berlin",
         ~s(error: expected the name of a time zone, got "Berlin"; write Europe/Berlin)}
      ])

      for {flag, value} <- [
            {"description", "x\nhandler: Elixir.System"},
            {"schedule", "0 9 * * 1\nhandler: x"},
            {"timezone", "Europe/Berlin\nhandler: x"},
            {"tags", ["a", "b\nhandler: x"]}
          ] do
        flags =
          Map.merge(%{"name" => "x", "description" => "x", "schedule" => "@daily"}, %{
            flag => value
          })

        assert run(context, "workflow.build", flags) =~ "error: --#{flag} must be "
      end

      assert File.ls!(root) == []

      assert run(context, "workflow.build --name x --description x --schedule 0 9 * * 1") =~
               "Its schedule is 0 9 * * 1: at 09:00 on Mondays, UTC; the next time is "
    end

    test "YAML syntax in a description is text", %{context: context} do
      for {text, number} <-
            Enum.with_index([
              "a: b # c",
              "- x",
              "{x}",
              "'\"",
              "*a &b !c",
              "null",
              "yes",
              "2026-01-01",
              "---",
              "| x",
              "x\\n"
            ]) do
        assert run(context, "workflow.build", %{"name" => "w#{number}", "description" => text}) =~
                 "Built"

        {:ok, entry} = View.fetch(read(context).view, "workflows.w#{number}")
        assert entry.description == text
      end
    end

    test "a folder that is a skill takes no commands", %{context: context, root: root} do
      File.mkdir_p!(Path.join(root, "pdf"))

      File.write!(
        Path.join(root, "pdf/SKILL.md"),
        "---\nname: pdf\ndescription: Forms\n---\n# PDF\n"
      )

      assert run(context, "workflow.build --name fill --description x --domain pdf") ==
               ~s(error: --domain must be a folder of commands; pdf is a skill, got "pdf". ) <>
                 ~s(Write for example: --domain workflows)

      assert File.ls!(Path.join(root, "pdf")) == ["SKILL.md"]
    end

    test "links are not followed", %{context: context, root: root, tmp_dir: tmp} do
      outside = Path.join(tmp, "../outside-#{System.unique_integer([:positive])}")
      File.mkdir_p!(outside)
      on_exit(fn -> File.rm_rf!(outside) end)
      File.ln_s!(outside, Path.join(root, "finance"))

      assert run(context, "workflow.build --name x --description x --domain finance") ==
               "error: finance is a symbolic link, and links are not followed here: name a " <>
                 "folder or file in its place"

      assert File.ls!(outside) == []
    end

    test "without a folder the error names the option" do
      assert run(context(), "workflow.build --name x --description x") ==
               "error: `workflow.build` needs a folder to write skills to, and this book has " <>
                 "none. To enable it, set the option `write_to:`, " <>
                 "for example write_to: \"skills\""
    end
  end

  describe "in a book" do
    setup %{root: root} do
      hidden = Path.join(root, "hidden")
      File.mkdir_p!(Path.join(hidden, "ops"))

      File.write!(Path.join(hidden, "ops/deploy.md"), """
      ---
      name: ops.deploy
      description: Deploy
      visibility_labels: [staff]
      ---
      # ops.deploy
      """)

      book = :"workflows_#{System.unique_integer([:positive])}"

      start_supervised!(
        {Skillbook,
         name: book,
         sources: [hidden],
         builtins: ["workflow"],
         write_to: Path.join(root, "skills")}
      )

      {:ok, book: book}
    end

    defp reply(book, line) do
      book
      |> Skillbook.view("default")
      |> Skillbook.run("```cmd\n#{line}\n```", now: ~U[2026-02-17 12:00:00Z])
    end

    test "a built workflow runs in the next turn", %{book: book, root: root} do
      line =
        "workflow.build --name close --description Close the month --domain finance --steps " <>
          "Add it up"

      assert [%{status: :ok, effects: [:skill_created]}] = reply(book, line).results
      assert [%{status: :template, content: page}] = reply(book, "finance.close").results
      assert page =~ "## Behavior\n\nAdd it up\n"

      assert {:ok, index} = Skillbook.get(Skillbook.view(book, "default"), "finance")
      assert index =~ "| finance.close | Close the month |"
      assert File.exists?(Path.join(root, "skills/finance/close.md"))
    end

    # Two books, one of which has pages that the builder cannot see. Each row: the hidden pages,
    # in the folder of another source ("far") or in the one that is written to ("skills"), and
    # whether they keep the name for those who see both.
    test "a hidden page changes no answer, and is not replaced", %{tmp_dir: folder} do
      staff = "visibility_labels: [staff]\n"
      page = &"---\nname: #{&1}\ndescription: Deploy\n#{&2}#{staff}---\n# Deploy\n"
      skill = "---\nname: ops\ndescription: Ops\n#{staff}---\n# Ops\n"

      rows = [
        {%{"far/ops/deploy.md" => page.("ops.deploy", "")}, true},
        {%{"skills/ops/deploy.md" => page.("ops.deploy", "")}, true},
        {%{"skills/zzz/ops/deploy.md" => page.("ops.deploy", "")}, true},
        {%{"skills/ops/deploy.md" => page.("ops.deploy", "replaces: false\n")}, true},
        {%{"skills/ops/deploy.md" => page.("ops.other", "")}, false},
        {%{"skills/ops/deploy.md" => "not a page"}, false},
        {%{"skills/ops/SKILL.md" => skill}, false},
        {%{"skills/ops/SKILL.md" => skill, "skills/~02/ops/SKILL.md" => skill}, false},
        {%{"far/ops/ship.md" => page.("ops.ship", "aliases: [ops.deploy]\n")}, true},
        {%{
           "skills/ops/deploy.md" => page.("ops.deploy", ""),
           "skills/~02/ops/deploy.md" => page.("ops.x", ""),
           "skills/~03/ops/deploy.md" => page.("ops.y", "")
         }, true}
      ]

      for {{hidden, kept}, number} <- Enum.with_index(rows) do
        [with, without] =
          for {files, kind} <- [{hidden, "with"}, {%{}, "without"}] do
            root = Path.join(folder, "#{kind}#{number}")
            for name <- ["far", "skills"], do: File.mkdir_p!(Path.join(root, name))

            for {path, text} <- files do
              File.mkdir_p!(Path.dirname(Path.join(root, path)))
              File.write!(Path.join(root, path), text)
            end

            book = :"hidden_#{System.unique_integer([:positive])}"
            options = [sources: [Path.join(root, "far")], write_to: Path.join(root, "skills")]
            options = [name: book, builtins: true, watch: false] ++ options
            start_supervised!({Skillbook, options}, id: book)
            {book, root}
          end

        lines = [
          "workflow.build --name deploy --description Mine --domain ops --steps Mine",
          "get_skill: ops.deploy",
          "ops.deploy",
          "workflow.list --domain ops",
          "get_skill: ops",
          "workflow.build --name deploy --description Mine --domain ops --steps Mine",
          "workflow.delete ops.deploy",
          "ops.deploy"
        ]

        # One reply each: a built page can be used in the next one.
        [texts, others] =
          for {book, _root} <- [with, without] do
            for line <- lines do
              if line == "workflow.delete ops.deploy", do: send(self(), used(book))
              to_string(reply(book, line))
            end
          end

        assert {number, texts} == {number, others}
        assert hd(texts) =~ "Built ops.deploy. Run it with: ops.deploy"
        assert Enum.at(texts, 5) =~ "ops.deploy already exists"
        assert_receive used when is_binary(used)
        assert_receive "Mine"
        assert {number, used} == {number, if(kept, do: "Deploy", else: "Mine")}

        # All hidden files are as they were.
        {_book, root} = with
        for {path, text} <- hidden, do: assert(File.read!(Path.join(root, path)) == text)
      end
    end

    # The description of the page that a reader of all pages gets.
    defp used(book) do
      {:ok, entry} = View.fetch(View.all(book), "ops.deploy")
      entry.description
    end

    test "an index lists hidden commands only to their readers", %{
      book: book,
      root: root
    } do
      assert [%{status: :ok}] =
               reply(
                 book,
                 "workflow.build --name status --description Status " <>
                   "--domain ops"
               ).results

      assert File.ls!(Path.join(root, "skills/ops")) == ["status.md"]

      for {profile, sees} <- [{"default", false}, {Skillbook.Profile.unrestricted(), true}] do
        assert {:ok, index} = Skillbook.get(Skillbook.view(book, profile), "ops")
        assert index =~ "| ops.status | Status |"
        assert {profile, index =~ ~r/deploy/i} == {profile, sees}
      end
    end
  end
end
