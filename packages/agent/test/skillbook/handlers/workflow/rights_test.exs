defmodule Skillbook.Handlers.Workflow.RightsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Profile, Scheduler, Source, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  @now ~U[2026-03-01 08:00:00Z]

  setup %{tmp_dir: folder} do
    root = Path.join(folder, "skills")
    other = Path.join(folder, "other")

    write(other, %{
      "workflows/far.md" =>
        page("workflows.far", [], "# workflows.far\n\n## Behavior\n\nSay it.\n")
    })

    profiles = [
      [id: "ann", grants: ["staff", "private"]],
      [id: "nightly", grants: ["staff"]],
      [id: "asks", grants: ["staff"], writes: :ask],
      [id: "admin", grants: :all],
      [id: "guest"],
      [id: "mail", grants: ["external"], labels: ["external"]],
      [id: "narrow", skills: ["workflow.*", "workflows.n*"]],
      [id: "narrower", skills: ["workflows.n*"]]
    ]

    options = [
      sources: [other],
      store: ":memory:",
      write_to: root,
      profiles: profiles,
      watch: false
    ]

    {:ok, book: book(options), root: root}
  end

  defp run(book, line, profile \\ "ann") do
    options = [now: @now, ask: fn _request -> :allow end]

    [result] =
      Skillbook.run(Skillbook.view(book, profile), "````cmd\n#{line}\n````", options).results

    result
  end

  # The names in the table of the index.
  defp listed(book) do
    {:ok, index} = Skillbook.get(Skillbook.view(book, "ann"), "workflows")
    ~r/^\| (workflows\.\w+)/m |> Regex.scan(index, capture: :all_but_first) |> List.flatten()
  end

  defp data(book, name), do: View.fetch!(Skillbook.view(book, Profile.unrestricted()), name).data

  describe "a built workflow" do
    test "has its builder as author, and runs as the builder", %{book: book} do
      assert %{status: :ok} = run(book, "workflow.build --name a --description x")
      assert %{"author" => "ann"} = data = data(book, "workflows.a")
      refute is_map_key(data, "run_as")

      assert %{status: :ok} =
               run(book, ~s(workflow.build --name b --description x --schedule "0 8 * * *"))

      assert %{"author" => "ann", "run_as" => "ann"} = data(book, "workflows.b")
      assert Map.keys(Scheduler.registered(book)) == ["workflows.b"]
    end

    test "runs as another profile only if its builder may see everything", %{book: book} do
      build = &"workflow.build --name #{&1} --description x --schedule @daily --run-as #{&2}"

      refused =
        &("--run-as must be the id of your own profile, which must be in the book with the " <>
            "same rights; only a profile that may see everything can name another, " <>
            "got \"#{&1}\".")

      for {builder, id, allowed} <- [
            {"ann", "ann", true},
            {"ann", "nightly", false},
            {"ann", "asks", false},
            {"ann", "guest", false},
            {"ann", "narrow", false},
            {"ann", "admin", false},
            {"ann", "nobody", false},
            {"ann", "mail", false},
            {"nightly", "ann", false},
            {"asks", "nightly", false},
            {"narrow", "narrower", false},
            {"mail", "guest", false},
            {"admin", "ann", true},
            {"admin", "nobody", false},
            {%Profile{id: "", grants: :all}, "admin", true}
          ] do
        name = "n_#{id}_#{if is_binary(builder), do: builder, else: "all"}"
        result = run(book, build.(name, id), builder)

        if allowed do
          assert {builder, id, result.status} == {builder, id, :ok}
          assert %{"run_as" => ^id} = data(book, "workflows.#{name}")
        else
          assert result.content == refused.(id)
        end
      end

      assert run(book, "workflow.build --name c --description x --run-as ann").content ==
               "--schedule is required and missing. Add it as: --schedule VALUE"
    end

    test "runs no more often than the book allows", %{book: book} do
      line = ~s(workflow.build --name a --description x --schedule "* * * * *")

      assert run(book, line).content ==
               "expected a schedule with at least 5 minutes between its times, got \"* * * * " <>
                 "*\", which runs at 2026-03-01T08:01:00Z and 1 minute later. Write for " <>
                 "example: */5 * * * *"

      assert %{status: :ok} =
               run(book, ~s(workflow.build --name a --description x --schedule "*/5 * * * *"))
    end

    test "counts toward the limit of scheduled workflows", %{tmp_dir: folder} do
      write_to = Path.join(folder, "bounded")
      schedules = [max_per_profile: 2]
      profiles = [[id: "ann"], [id: "bob"]]

      book =
        book(
          store: ":memory:",
          write_to: write_to,
          profiles: profiles,
          schedules: schedules,
          watch: false
        )

      build = fn profile, name, more ->
        run(book, "workflow.build --name #{name} --description x #{more}", profile).content
      end

      daily = "--schedule @daily"
      for name <- ["a", "b"], do: assert(build.("ann", name, daily) =~ ~r/\ABuilt /)

      assert build.("ann", "c", daily) ==
               "expected at most 2 entries with a schedule of one creator, got one more. " <>
                 "Remove the schedule of another entry, or delete that entry"

      assert build.("ann", "c", "") =~ ~r/\ABuilt /
      assert build.("bob", "d", daily) =~ ~r/\ABuilt /
      assert %{status: :ok} = run(book, "workflow.delete workflows.a")
      assert build.("ann", "e", daily) =~ ~r/\ABuilt /
    end

    test "of an unknown profile does not run on its schedule", %{
      book: book
    } do
      line = "workflow.build --name a --description x --schedule @daily"

      assert run(book, line, %Profile{id: "stranger"}).content ==
               "Built workflows.a. Its schedule is @daily, but it does not " <>
                 "run: expected one of the book's profiles as `run_as`, got \"stranger\"; " <>
                 "pass one as --run-as, or write it into the page. Run it with: " <>
                 "workflows.a"

      assert %{"author" => "stranger", "run_as" => "stranger"} = data(book, "workflows.a")
      assert Scheduler.registered(book) == %{}
    end

    test "of a narrowed profile does not run with all its rights", %{
      book: book
    } do
      ann = Skillbook.view(book, "ann").profile
      part = Profile.narrow(ann, ["workflow.*", "workflows.*"])
      line = "workflow.build --name a --description x --schedule @daily"

      assert run(book, line, part).content =~
               "--run-as must be the id of your own profile, which must be in the book with " <>
                 "the same"

      assert %{status: :ok} = run(book, "workflow.build --name a --description x", part)
    end

    test "has its builder's labels", %{book: book} do
      assert %{status: :ok} = run(book, "workflow.build --name a --description x", "mail")
      assert %{"visibility_labels" => ["external"]} = data(book, "workflows.a")
      assert {:error, _} = View.fetch(Skillbook.view(book, "ann"), "workflows.a")

      assert %{status: :ok} =
               run(book, "workflow.build --name b --description x --labels staff private")

      assert %{"visibility_labels" => ["private", "staff"]} = data(book, "workflows.b")
      assert {:error, _} = View.fetch(Skillbook.view(book, "nightly"), "workflows.b")

      assert run(book, "workflow.build --name c --description x --labels external").content ==
               "expected labels that this profile holds, got: \"external\". Leave them out"

      assert run(book, "workflow.build --name other --description x", "narrow").content =~
               "expected an entry that this profile can see, got \"workflows.other\""
    end
  end

  describe "workflow.delete" do
    test "removes page, row and schedule, and moves the file", %{
      book: book,
      root: root
    } do
      for name <- ["a", "b"],
          do:
            run(
              book,
              ~s(workflow.build --name #{name} --description "Does #{name}" --schedule "0 8 ) <>
                ~s(* * *")
            )

      page = File.read!(Path.join(root, "workflows/a.md"))
      result = run(book, "workflow.delete workflows.a")

      assert result.content ==
               "Deleted workflows.a. Its page was moved to the trash in the folder for " <>
                 "workflows; moving it back restores it."

      kept = Path.join(root, ".trash/20260301T080000Z/workflows/a.md")

      assert %{
               effects: [:skill_deleted],
               data: %{name: "workflows.a", path: "workflows/a.md", kept: ^kept}
             } = result

      assert File.read!(kept) == page
      refute File.exists?(Path.join(root, "workflows/a.md"))

      view = Skillbook.view(book, "ann")
      assert {:error, _} = View.fetch(view, "workflows.a")
      assert {:ok, index} = Skillbook.get(view, "workflows")
      assert index =~ "| workflows.b | Does b |" and not (index =~ "workflows.a")
      assert Map.keys(Scheduler.registered(book)) == ["workflows.b"]

      assert %{status: :ok} = run(book, "workflow.build --name a --description again")

      assert %{data: %{kept: second}} = run(book, "workflow.delete --name workflows.a")
      assert second == Path.join(root, ".trash/20260301T080000Z/workflows/a.2.md")
      assert File.read!(kept) == page

      # A person brings it back.
      File.rename!(kept, Path.join(root, "workflows/a.md"))
      Skillbook.reload(book)

      assert {:ok, %{description: "Does a"}} =
               View.fetch(Skillbook.view(book, "ann"), "workflows.a")
    end

    test "the index follows changes by hand", %{
      book: book,
      root: root
    } do
      for name <- ["a", "b", "c"], do: run(book, "workflow.build --name #{name} --description x")

      write(root, %{
        "workflows/hand.md" =>
          page("workflows.hand", [], "# workflows.hand\n\n## Behavior\n\nSay it.\n")
      })

      File.rm!(Path.join(root, "workflows/b.md"))

      # The index is right as soon as the book has read the folder.
      Skillbook.reload(book)
      {:ok, index} = Skillbook.get(Skillbook.view(book, "ann"), "workflows")
      assert index =~ "| workflows.hand | Does workflows.hand |" and not (index =~ "workflows.b ")
      assert run(book, "workflow.list").content =~ "\nworkflows.hand - Does workflows.hand"

      assert %{status: :ok} = run(book, "workflow.delete workflows.a")

      assert listed(book) ==
               ~w(workflows.c workflows.daily_digest workflows.far workflows.hand) ++
                 ~w(workflows.weekly_review)

      File.rm!(Path.join(root, "workflows/c.md"))
      assert %{status: :ok} = run(book, "workflow.build --name d --description x")

      assert listed(book) ==
               ~w(workflows.d workflows.daily_digest workflows.far workflows.hand) ++
                 ~w(workflows.weekly_review)
    end

    test "names the page that it uncovers", %{book: book, root: root} do
      text = page("workflows.far", [], "# workflows.far\n\n## Behavior\n\nSay it here.\n")
      write(root, %{"workflows/far.md" => text})
      Skillbook.reload(book)

      # Nobody is said to have built it.
      assert run(book, "workflow.delete workflows.far", "admin").content =~
               " workflows.far is now the page of the source other."
    end

    test "refuses pages of other sources and of other profiles", %{
      book: book,
      tmp_dir: folder
    } do
      run(book, "workflow.build --name private --description x --labels private")
      run(book, "workflow.build --name open --description x")

      only = "and commands delete only pages in the folder for workflows (the book's `write_to:`)"

      for {line, profile, text} <- [
            {"workflow.delete workflows.daily_digest", "ann",
             "`workflows.daily_digest` was not deleted: it comes with Skillbook, " <> only},
            {"workflow.delete workflows.far", "ann",
             "`workflows.far` was not deleted: it is from the source other, in " <>
               "#{folder}/other/workflows/far.md, " <>
               only},
            {"workflow.delete workflows.private", "nightly",
             String.replace(
               run(book, "workflow.delete workflows.privote", "nightly").content,
               "privote",
               "private"
             )},
            {"workflow.delete workflows.open", "mail",
             "\"workflows.open\" lacks \"external\", which this profile must set on every " <>
               "entry, so the profile cannot change it. Create an entry with another name"},
            {"workflow.delete workflows.open", "nightly",
             "`workflows.open` was not deleted: another profile built it, and only that " <>
               "profile, or one that may see everything, can delete it"},
            {"workflow.delete tasks.search", "ann",
             "--name must be the name of a workflow (`workflow.list` lists them), got " <>
               "\"tasks.search\". Write for example: --name workflows.report"},
            {"workflow.delete", "ann", "--name is required and missing. Add it as: --name VALUE"}
          ] do
        assert {line, run(book, line, profile).content} == {line, text}
      end

      assert {:ok, _} = View.fetch(Skillbook.view(book, "ann"), "workflows.private")
      assert {:ok, _} = View.fetch(Skillbook.view(book, "ann"), "workflows.open")
      assert %{status: :ok} = run(book, "workflow.delete workflows.open", "admin")
    end
  end

  describe "an index of another source" do
    test "stays hidden from other profiles", %{tmp_dir: folder} do
      for {name, fields, options} <- [
            {"own", [visibility_labels: "[hush]"], []},
            {"source", [], [labels: ["hush"]]},
            {"excluded", [exclude_from_prompt_profile_ids: "[bob]"], []}
          ] do
        more = Enum.map_join(fields, fn {field, value} -> "#{field}: #{value}\n" end)
        source = Path.join(folder, name)

        write(source, %{
          "a/SKILL.md" => "---\ndomain: a\ndescription: Merger\n#{more}---\n# A\n\nBuys ACME.\n",
          "a/pay.md" => page("a.pay", fields)
        })

        profiles = [[id: "ann", grants: ["hush"]], [id: "bob"]]
        sources = [Source.builtin(), Source.builtin(:agent), [path: source] ++ options]
        write_to = Path.join(folder, name <> "_built")

        book =
          book(
            sources: sources,
            builtins: false,
            write_to: write_to,
            profiles: profiles,
            watch: false
          )

        assert {name, "Built a.x. Run it with: a.x"} ==
                 {name,
                  run(
                    book,
                    "workflow.build --name x --description Mine " <>
                      "--domain a",
                    "bob"
                  ).content}

        assert {:ok, index} = Skillbook.get(Skillbook.view(book, "bob"), "a")
        assert {name, true, false} == {name, index =~ "| a.x | Mine |", index =~ "ACME"}

        assert [domain] =
                 for(
                   %{name: "a"} = domain <- View.domains(Skillbook.view(book, "bob")),
                   do: domain
                 )

        assert {name, "a.x"} == {name, domain.description}
        assert {:ok, index} = Skillbook.get(Skillbook.view(book, "ann"), "a")
        assert {name, true} == {name, index =~ "Buys ACME."}
      end
    end
  end
end
