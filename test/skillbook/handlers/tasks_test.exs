defmodule Skillbook.Handlers.TasksTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Handlers.Tasks.Task
  doctest Skillbook.NotFoundError
end

for dialect <- [:sqlite, :postgres] do
  defmodule Module.concat(Skillbook.Handlers.TasksTest, Macro.camelize("#{dialect}")) do
    use Skillbook.HandlerCase, async: true

    alias Skillbook.Handlers.Tasks.Task
    alias Skillbook.{FlagError, NotFoundError, Profile, SQL, StoreError}

    @moduletag :tmp_dir
    @moduletag dialect: dialect

    setup %{tmp_dir: folder, dialect: dialect} do
      {:ok, context: context(sql: database(folder, dialect))}
    end

    # Each row: a command and the text it must give; they run one after the other.
    defp check(context, rows) do
      for {line, text} <- rows do
        got = run(context, line)
        assert got == text, "#{line}\n  gave: #{inspect(got)}\n  expected: #{inspect(text)}"
      end
    end

    # The ids of a search, in order.
    defp ids(context, line) do
      assert {:ok, result} = execute(context, line)
      Enum.map(result.data.tasks, & &1.id)
    end

    describe "tasks.create" do
      test "stores the given fields", %{context: context} do
        check(context, [
          {~s(tasks.create --title "Review the PR"), "Created T-1 [todo, medium] Review the PR"},
          {~s(tasks.create --title Review the PR), "Created T-2 [todo, medium] Review the PR"},
          {"tasks.create --title Report --priority high --due 2026-03-01 --assignee me " <>
             "--tags reporting Q1 q1",
           "Created T-3 [todo, high, due 2026-03-01, @alice, #Q1 #reporting] Report"},
          {"tasks.create --title Ask --status In-Progress --assignee @bob --due yesterday " <>
             "--parent T-1",
           "Created T-4 [in_progress, medium, due 2026-02-16 (overdue), @bob] Ask"},
          {~s(tasks.create --title Sub --assignee "Bob Smith" --due today --parent 4),
           "Created T-5 [todo, medium, due 2026-02-17, @Bob Smith] Sub"},
          {"tasks.create --title Old --status done --due 2020-01-01",
           "Created T-6 [done, medium, due 2020-01-01] Old"}
        ])
      end

      test "returns the task as data", %{context: context} do
        assert {:ok, result} =
                 execute(context, "tasks.create", %{
                   "title" => "Report",
                   "description" => "All\nof it",
                   "priority" => "low",
                   "due" => "2026-03-01",
                   "tags" => ["b", "a"],
                   "assignee" => nil
                 })

        assert result.effects == [:task_created]

        assert result.data == %Task{
                 id: 1,
                 title: "Report",
                 description: "All\nof it",
                 status: "todo",
                 priority: "low",
                 due_date: ~D[2026-03-01],
                 tags: ["a", "b"],
                 created_by: "alice",
                 created_at: ~U[2026-02-17 12:00:00Z],
                 updated_at: ~U[2026-02-17 12:00:00Z]
               }

        assert {:ok, %{data: %{task: task}}} = execute(context, "tasks.get T-1")
        assert task == result.data
      end

      test "refuses invalid flags and stores nothing", %{context: context} do
        check(context, [
          {"tasks.create", "error: --title is required and missing. Add it as: --title VALUE"},
          {"tasks.create --title",
           ~s(error: --title needs a value and has none. Write for example: --title "some text")},
          {"tasks.create Review it",
           ~s(error: "Review it" has no flag. Put a flag in front: --FLAG "Review it")},
          {"tasks.create --title X --priority urgent",
           ~s(error: --priority must be one of critical, high, medium, low, got "urgent". ) <>
             ~s(Write for example: --priority critical)},
          {"tasks.create --title X --priority high low",
           ~s(error: --priority takes one value, got 2: "high", "low". Write for example: ) <>
             ~s(--priority critical)},
          {"tasks.create --title X --status open",
           ~s(error: --status must be one of todo, in_progress, blocked, done, cancelled, ) <>
             ~s(got "open". Write for example: --status todo)},
          {"tasks.create --title X --due monday",
           ~s(error: --due must be a day as YYYY-MM-DD, yesterday, today or tomorrow, got ) <>
             ~s("monday". Write for example: --due 2026-03-01)},
          {"tasks.create --title X --parent T-7",
           "error: there is no task T-7; `tasks.search` lists the tasks with their ids"},
          {"tasks.create --title X --parent first",
           ~s(error: --parent must be a task's id, got "first". Write for example: --parent ) <>
             ~s(T-12)},
          {"tasks.create --title X --due-date 2026-03-01",
           "error: unknown flag --due-date; did you mean --due? Known flags: --title, " <>
             "--description, --status, --priority, --assignee, --tags, --tag, --due, " <>
             "--parent, --labels"},
          {"tasks.search --status todo done", "No tasks found: status todo or done"}
        ])

        assert run(context, "tasks.create", %{"title" => "a\nb"}) ==
                 ~S(error: --title must be one line of text of at most 200 characters, not ) <>
                   ~S(empty, got "a\nb". Write for example: --title "some text")
      end

      test "a deleted task cannot be a parent", %{context: context} do
        check(context, [
          {"tasks.create --title X", "Created T-1 [todo, medium] X"},
          {"tasks.delete T-1", "Deleted T-1 X"},
          {"tasks.create --title Y --parent T-1",
           ~s(error: --parent must be a task that is not deleted, got "T-1".)}
        ])
      end

      test "ids are random numbers of eight digits", %{context: context} do
        for _ <- 1..40, do: run(context, "tasks.create --title X")
        rows = SQL.query!(context.sql, "select id, number from skillbook_tasks order by id").rows
        numbers = Enum.map(rows, &List.last/1)
        assert Enum.map(rows, &hd/1) == Enum.to_list(1..40)
        assert Enum.all?(numbers, &(&1 in 10_000_000..99_999_999))
        assert numbers == Enum.uniq(numbers)
        # Neither in order nor close together.
        refute numbers == Enum.sort(numbers)
        assert Enum.max(numbers) - Enum.min(numbers) > 10_000_000
      end

      test "a taken number is drawn again, and ids of before stay", %{context: context} do
        run(context, "tasks.create --title X")
        SQL.query!(context.sql, "update skillbook_tasks set number = 7")
        assert run(context, "tasks.get", %{"id" => "T-7"}) =~ "T-1 X"

        taken =
          for number <- [7, 7, 8],
              do:
                {"insert into skillbook_runs (number, name, profile, made_by, command, " <>
                   "status, steps, started_at) values ($1, 'x', 'x', 'x', 'x', 'x', 1, 'x') " <>
                   "on conflict (number) do nothing returning id", [number]}

        {:ok, drawn} = Agent.start_link(fn -> taken end)
        next = fn _ -> Agent.get_and_update(drawn, fn [next | rest] -> {next, rest} end) end
        assert {:ok, 1, _} = Skillbook.SQL.Numbers.insert(context.sql, next)
        assert {:ok, second, _} = Skillbook.SQL.Numbers.insert(context.sql, next)
        assert second > 1
        assert Agent.get(drawn, & &1) == []

        assert {:error, %SQL.Error{message: "expected a free number for a row, got none"}} =
                 Skillbook.SQL.Numbers.insert(context.sql, fn _ -> hd(taken) end)
      end
    end

    # A task exists only for profiles that hold its labels. Each profile sees its own and, of the
    # others, those that it shares by grants.
    describe "labels" do
      setup %{context: context} do
        profile = fn id, grants, labels ->
          profile = %Profile{id: id, grants: grants, labels: labels}

          %{
            context
            | profile: profile,
              view: %Skillbook.View{ref: nil, profile: profile, generation: 1}
          }
        end

        {:ok,
         all: %{context | profile: Profile.unrestricted()},
         main: profile.("main", [], []),
         mail: profile.("mail", ["external"], ["external"]),
         ann: profile.("ann", ["private", "external"], [])}
      end

      test "a task has those of its creator's profile and the given ones", context do
        %{main: main, mail: mail, ann: ann} = context

        for {who, line, labels} <- [
              {main, "tasks.create --title A", []},
              {mail, "tasks.create --title B", ["external"]},
              {mail, "tasks.create --title C --labels external", ["external"]},
              {ann, "tasks.create --title D --labels private external private",
               ["external", "private"]}
            ] do
          assert {:ok, %{data: task}} = execute(who, line)
          assert {line, task.labels} == {line, labels}
          assert {:ok, %{data: %{task: ^task}}} = execute(who, "tasks.get T-#{task.id}")
        end

        assert run(ann, "tasks.get T-4") =~ "\nlabels: external, private\n"

        for {who, line} <- [{main, "--labels private"}, {mail, "--labels private external"}] do
          assert {:error, %StoreError{kind: :label_not_held, labels: ["private"]}} =
                   execute(who, "tasks.create --title E #{line}")
        end
      end

      test "hide it from other profiles in each command", context do
        %{main: main, mail: mail, ann: ann, all: all} = context
        run(main, "tasks.create --title Beans")
        run(mail, ~s(tasks.create --title "Buy beans" --assignee main --tags t --parent T-1))
        run(ann, "tasks.create --title Beans --labels private --due today")
        run(ann, "tasks.create --title Sow --parent T-3")

        searches = [
          "tasks.search --status todo",
          "tasks.search --query beans",
          "tasks.search --query beans --sort created_at",
          "tasks.search --query bean sow",
          "tasks.search --assignee main",
          "tasks.search --tags t",
          "tasks.search --overdue",
          "tasks.search --due-before tomorrow --limit 1"
        ]

        seen = fn who ->
          for line <- searches do
            {:ok, %{data: %{tasks: tasks, total: total}}} = execute(who, line)
            {Enum.sort(Enum.map(tasks, & &1.id)), total}
          end
        end

        assert seen.(main) == [
                 {[1, 4], 2},
                 {[1], 1},
                 {[1], 1},
                 {[], 0},
                 {[], 0},
                 {[], 0},
                 {[], 0},
                 {[], 0}
               ]

        assert seen.(mail) == [
                 {[1, 2, 4], 3},
                 {[1, 2], 2},
                 {[1, 2], 2},
                 {[], 0},
                 {[2], 1},
                 {[2], 1},
                 {[], 0},
                 {[], 0}
               ]

        assert hd(seen.(ann)) == {[1, 2, 3, 4], 4}
        assert seen.(all) == seen.(ann)

        # Hidden parents and children do not exist.
        assert {:ok, %{data: %{children: []}}} = execute(main, "tasks.get T-1")
        assert {:ok, %{data: %{children: [%{id: 2}]}}} = execute(mail, "tasks.get T-1")

        assert {:ok, %{data: %{task: %{parent_id: nil}, parent: nil}}} =
                 execute(main, "tasks.get T-4")

        assert {:ok, %{data: %{task: %{parent_id: 3}, parent: %{id: 3}}}} =
                 execute(ann, "tasks.get T-4")

        missing = &"error: there is no task #{&1}; `tasks.search` lists the tasks with their ids"

        for {who, id} <- [{main, 2}, {main, 3}, {mail, 3}],
            line <- [
              "tasks.get T-X",
              "tasks.update T-X --status done",
              "tasks.delete T-X",
              "tasks.create --title Y --parent T-X",
              "tasks.update T-1 --parent T-X"
            ] do
          # Another profile's labels are checked first only where the task is visible.
          who = if line =~ "T-1 ", do: main, else: who
          line = String.replace(line, "T-X", "T-#{id}")
          assert {line, run(who, line)} == {line, missing.("T-#{id}")}
        end

        # The children that a finished task leaves open are those that the reader sees.
        assert run(main, "tasks.update T-1 --status done") ==
                 "Updated T-1 [done, medium] Beans\n  status: todo -> done"

        assert run(main, "tasks.update T-1 --status todo") =~ "Updated"

        assert run(ann, "tasks.update T-1 --status done") =~ "\nStill open below it: T-2"
      end

      test "a profile with labels of its own changes only tasks that have them", context do
        %{main: main, mail: mail, ann: ann} = context
        run(main, "tasks.create --title Surgery")
        run(mail, "tasks.create --title Letter")
        run(ann, "tasks.create --title Both --labels external private")

        refused =
          "error: T-1 lacks \"external\", which this profile must set on every task, so the " <>
            "profile cannot change it. Create another task"

        for line <- ["tasks.update T-1 --status done", "tasks.delete T-1"],
            do: assert(run(mail, line) == refused)

        assert run(main, "tasks.get T-1") =~ "status: todo"
        assert run(mail, "tasks.update T-2 --status done") =~ "Updated T-2"
        assert run(ann, "tasks.update T-2 --title Mail") =~ "Updated T-2"
        assert {:ok, %{data: %{task: task}}} = execute(mail, "tasks.get T-2")
        assert {task.title, task.labels} == {"Mail", ["external"]}
      end

      test "a hidden parent stays, and a cycle through hidden tasks is no error", context do
        %{main: main, ann: ann} = context
        run(ann, "tasks.create --title Top")
        run(ann, "tasks.create --title Middle --labels private --parent T-1")
        run(ann, "tasks.create --title Low --parent T-2")
        assert run(main, "tasks.update T-3 --title Lower") =~ "Updated"
        assert run(main, "tasks.update T-3 --clear parent") =~ "Nothing changed"
        assert {:ok, %{data: %{parent: %{id: 2}}}} = execute(ann, "tasks.get T-3")
        assert run(ann, "tasks.update T-1 --parent T-3") =~ "a task that is not itself below T-1"
        assert run(main, "tasks.update T-1 --parent T-3") =~ "parent: none -> T-3"
        assert {:ok, %{data: %{parent: %{id: 3}}}} = execute(ann, "tasks.get T-1")
        assert run(ann, "tasks.update T-1 --parent T-2") =~ "not itself below"
      end

      test "a deleted task exists only for its creator and for trusted code", context do
        %{main: main, ann: ann, all: all} = context
        run(main, "tasks.create --title Top")
        run(main, "tasks.create --title Low --parent T-1")
        assert run(ann, "tasks.delete T-1") == "Deleted T-1 Top\nStill open below it: T-2"

        missing = "error: there is no task T-1; `tasks.search` lists the tasks with their ids"

        for line <- ["tasks.get T-1", "tasks.delete T-1", "tasks.update T-1 --status done"],
            do: assert(run(ann, line) == missing)

        assert run(ann, "tasks.create --title X --parent T-1") == missing
        assert {:ok, %{data: %{task: %{parent_id: nil}}}} = execute(ann, "tasks.get T-2")

        for who <- [main, all] do
          assert run(who, "tasks.get T-1") =~ "\ndeleted: 2026-02-17T12:00:00Z"
          assert {:ok, %{data: %{parent: %{id: 1}}}} = execute(who, "tasks.get T-2")
          assert run(who, "tasks.delete T-1") =~ "T-1 was already deleted"
        end
      end

      test "the order of results does not depend on hidden tasks", context do
        %{main: main, ann: ann} = context

        for title <- ["beans and peas", "beans", "peas peas peas", "corn beans peas"],
            do: run(main, ~s(tasks.create --title "#{title}"))

        order = fn line ->
          {:ok, %{data: %{tasks: tasks, total: total}}} = execute(main, line)
          {Enum.map(tasks, & &1.title), total}
        end

        lines = [
          "tasks.search --query beans",
          "tasks.search --query peas beans",
          "tasks.search --query peas --sort priority",
          "tasks.search --status todo --sort created_at"
        ]

        before = Enum.map(lines, order)

        for n <- 1..60 do
          title = Enum.at(["peas", "peas beans", "corn", "beans beans"], rem(n, 4))
          run(ann, ~s(tasks.create --title "#{title}" --labels private))
        end

        assert Enum.map(lines, order) == before
      end
    end

    describe "tasks.get" do
      test "shows all fields", %{context: context} do
        run(context, ~s(tasks.create --title "The launch" --priority critical))

        run(context, "tasks.create", %{
          "title" => "Ask legal",
          "description" => "Section 4\nis unclear.",
          "due" => "2026-02-16",
          "assignee" => "bob",
          "tags" => ["law", "Q1"],
          "parent" => "T-1"
        })

        run(context, "tasks.create --title Write --parent T-2")
        run(context, "tasks.create --title Print --parent T-2 --status done")
        run(context, "tasks.create --title Gone --parent T-2")
        run(context, "tasks.delete T-5")

        assert run(later(context, 1), "tasks.update T-2 --status blocked") =~ "Updated"

        assert run(context, "tasks.get T-2") == """
               T-2 Ask legal
               status: blocked
               priority: medium
               due: 2026-02-16 (overdue)
               assignee: bob
               tags: law, Q1
               parent: T-1 [todo, critical] The launch
               created: 2026-02-17T12:00:00Z by alice
               updated: 2026-02-18T12:00:00Z
               children:
                 T-3 [todo, medium] Write
                 T-4 [done, medium] Print

               Section 4
               is unclear.\
               """

        assert {:ok, %{data: data}} = execute(context, "tasks.get --id t-2")
        assert %{task: %{id: 2}, parent: %{id: 1}, children: [%{id: 3}, %{id: 4}]} = data
      end

      test "leaves out empty fields", %{context: context} do
        run(context, "tasks.create --title X")

        text = """
        T-1 X
        status: todo
        priority: medium
        created: 2026-02-17T12:00:00Z by alice
        updated: 2026-02-17T12:00:00Z\
        """

        for id <- ["T-1", "t1", "1", "#1", "T-01"],
            do: assert(run(context, "tasks.get", %{"id" => id}) == text)

        assert run(context, "tasks.get", %{"id" => 1}) == text
      end

      test "a deleted task, and a deleted parent", %{context: context} do
        run(context, "tasks.create --title X")
        run(context, "tasks.create --title Y --parent T-1")
        run(context, "tasks.delete T-1")

        assert run(context, "tasks.get T-1") =~ "\ndeleted: 2026-02-17T12:00:00Z"
        assert run(context, "tasks.get T-2") =~ "\nparent: T-1 [deleted, todo, medium] X\n"
      end

      test "invalid ids", %{context: context} do
        check(context, [
          {"tasks.get", "error: --id is required and missing. Add it as: --id VALUE"},
          {"tasks.get T-9",
           "error: there is no task T-9; `tasks.search` lists the tasks with their ids"},
          {"tasks.get T-0",
           ~s(error: --id must be a task's id, got "T-0". Write for example: --id T-12)},
          {"tasks.get --id TASK_ID",
           ~s(error: --id must be a task's id, got "TASK_ID". Write for example: --id T-12)},
          {"tasks.get T-1000000000000000000",
           ~s(error: --id must be a task's id, got "T-1000000000000000000". Write for ) <>
             ~s(example: --id T-12)},
          {"tasks.get T-999999999999999999",
           "error: there is no task T-999999999999999999; `tasks.search` lists the tasks " <>
             "with their ids"},
          {"tasks.get T-1 T-2",
           ~s(error: "T-2" is one word too many: only --id may be given without the flag's ) <>
             ~s(name, once. Put a flag in front: --FLAG "T-2")}
        ])

        assert {:error, %NotFoundError{kind: "task", id: "T-9"}} =
                 execute(context, "tasks.get T-9")
      end
    end

    describe "tasks.update" do
      test "changes the given fields and reports them", %{context: context} do
        run(context, "tasks.create --title Report --tags Q1 draft")
        run(context, "tasks.create --title Launch")
        tomorrow = later(context, 1)

        check(tomorrow, [
          {"tasks.update T-1 --status done",
           "Updated T-1 [done, medium, #draft #Q1] Report\n  status: todo -> done"},
          {"tasks.update --id T-1 --priority High --due 2026-02-20 --assignee me",
           "Updated T-1 [done, high, due 2026-02-20, @alice, #draft #Q1] Report\n" <>
             "  priority: medium -> high\n  assignee: none -> alice\n  due: none -> 2026-02-20"},
          {"tasks.update T-1 --add-tags law q1 --remove-tags DRAFT",
           "Updated T-1 [done, high, due 2026-02-20, @alice, #law #Q1] Report\n" <>
             "  tags: draft, Q1 -> law, Q1"},
          {"tasks.update T-1 --tags new",
           "Updated T-1 [done, high, due 2026-02-20, @alice, #new] Report\n" <>
             "  tags: law, Q1 -> new"},
          {"tasks.update T-1 --clear tags --add-tags newer",
           "Updated T-1 [done, high, due 2026-02-20, @alice, #newer] Report\n" <>
             "  tags: new -> newer"},
          {"tasks.update T-1 --title The report --description All of it --parent T-2",
           "Updated T-1 [done, high, due 2026-02-20, @alice, #newer] The report\n" <>
             "  title: Report -> The report\n  description: none -> 9 characters\n" <>
             "  parent: none -> T-2"},
          {"tasks.update T-1 --clear description assignee due parent tags --status todo",
           "Updated T-1 [todo, high] The report\n  description: 9 characters -> none\n" <>
             "  status: done -> todo\n  assignee: alice -> none\n  due: 2026-02-20 -> none\n" <>
             "  parent: T-2 -> none\n  tags: newer -> none"}
        ])

        assert {:ok, %{data: %{task: task}}} = execute(context, "tasks.get T-1")

        assert %{
                 title: "The report",
                 status: "todo",
                 priority: "high",
                 description: nil,
                 assignee: nil,
                 due_date: nil,
                 parent_id: nil,
                 tags: [],
                 created_at: ~U[2026-02-17 12:00:00Z],
                 updated_at: ~U[2026-02-18 12:00:00Z]
               } = task
      end

      test "an update without changes leaves the task alone", %{context: context} do
        run(context, "tasks.create --title X --tags a")

        check(later(context, 1), [
          {"tasks.update T-1 --status todo", "Nothing changed: T-1 [todo, medium, #a] X"},
          {"tasks.update T-1 --add-tags A --remove-tags b --clear due",
           "Nothing changed: T-1 [todo, medium, #a] X"}
        ])

        assert {:ok, %{data: %{task: %{updated_at: ~U[2026-02-17 12:00:00Z]}}}} =
                 execute(context, "tasks.get T-1")

        assert {:ok, %{effects: []}} = execute(context, "tasks.update T-1 --status todo")

        assert {:ok, %{effects: [:task_updated]}} =
                 execute(context, "tasks.update T-1 --status done")
      end

      test "members of a JSON object that are null change nothing", %{context: context} do
        run(context, "tasks.create --title X --due 2026-03-01")

        assert run(context, "tasks.update", %{
                 "id" => 1,
                 "due" => nil,
                 "tags" => [],
                 "status" => "done"
               }) ==
                 "Updated T-1 [done, medium, due 2026-03-01] X\n  status: todo -> done"
      end

      test "refuses contradictions", %{context: context} do
        run(context, "tasks.create --title X")
        run(context, "tasks.create --title Y --parent T-1")
        run(context, "tasks.create --title Z --parent T-2")

        check(context, [
          {"tasks.update --status done",
           "error: --id is required and missing. Add it as: --id VALUE"},
          {"tasks.update T-9 --status done",
           "error: there is no task T-9; `tasks.search` lists the tasks with their ids"},
          {"tasks.update T-1",
           "error: one of --title, --description, --status, --priority, --assignee, --due, " <>
             "--parent, --tags, --add-tags, --remove-tags or --clear is required. Add for " <>
             "example: --title VALUE"},
          {"tasks.update T-1 --clear title",
           ~s(error: --clear must be one of description, assignee, due, parent, tags, got ) <>
             ~s("title". Write for example: --clear description)},
          {"tasks.update T-1 --due today --clear due tags",
           "error: --due and --clear contradict each other: a field is either set or " <>
             "cleared, not both"},
          {"tasks.update T-1 --tags a --remove-tags b",
           "error: --tags and --remove-tags contradict each other: --tags replaces all tags"},
          {"tasks.update T-1 --parent T-1",
           ~s(error: --parent must be another task than the one it is the parent of, got "T-1".)},
          {"tasks.update T-1 --parent T-2",
           ~s(error: --parent must be a task that is not itself below T-1, got "T-2".)},
          {"tasks.update T-1 --parent T-3",
           ~s(error: --parent must be a task that is not itself below T-1, got "T-3".)},
          {"tasks.update T-1 --parent T-8",
           "error: there is no task T-8; `tasks.search` lists the tasks with their ids"},
          {"tasks.update T-3 --parent T-1", "Updated T-3 [todo, medium] Z\n  parent: T-2 -> T-1"}
        ])

        assert {:error, %FlagError{kind: :conflict, flags: ["due", "clear"]}} =
                 execute(context, "tasks.update T-1 --due today --clear due")
      end

      test "finishing a task lists its open children", %{context: context} do
        run(context, "tasks.create --title X")
        run(context, "tasks.create --title Y --parent T-1")
        run(context, "tasks.create --title Z --parent T-1")
        run(context, "tasks.create --title Done --parent T-1 --status done")

        check(context, [
          {"tasks.update T-1 --status in_progress",
           "Updated T-1 [in_progress, medium] X\n  status: todo -> in_progress"},
          {"tasks.update T-1 --status done",
           "Updated T-1 [done, medium] X\n  status: in_progress -> done\n" <>
             "Still open below it: T-2, T-3"},
          {"tasks.update T-1 --status cancelled",
           "Updated T-1 [cancelled, medium] X\n  status: done -> cancelled"},
          {"tasks.update T-2 --status done",
           "Updated T-2 [done, medium] Y\n  status: todo -> done"}
        ])
      end
    end

    describe "tasks.delete" do
      test "marks a task as deleted", %{context: context} do
        run(context, "tasks.create --title X --tags a")
        run(context, "tasks.create --title Y --parent T-1")
        run(context, "tasks.create --title Z --parent T-1 --status done")

        assert {:ok,
                %{effects: [:task_deleted], data: %{archived_at: ~U[2026-02-17 12:00:00Z]}} =
                  result} = execute(context, "tasks.delete T-1")

        assert result.content == "Deleted T-1 X\nStill open below it: T-2"

        check(later(context, 1), [
          {"tasks.delete --id T-1", "T-1 was already deleted, at 2026-02-17T12:00:00Z"},
          {"tasks.update T-1 --status done",
           "error: the task T-1 was deleted at 2026-02-17T12:00:00Z and cannot be changed; " <>
             "`tasks.search` lists the existing tasks"},
          {"tasks.search --tags a",
           "No tasks found: status todo, in_progress or blocked; tagged a"},
          {"tasks.delete T-7",
           "error: there is no task T-7; `tasks.search` lists the tasks with their ids"},
          {"tasks.delete", "error: --id is required and missing. Add it as: --id VALUE"}
        ])

        assert {:ok, %{effects: []}} = execute(context, "tasks.delete T-1")
      end
    end

    describe "tasks.search" do
      setup %{context: context} do
        bob = %{context | profile: %Profile{id: "bob"}}

        # The comments name the ids, which the tests below use.
        for {context, days, line} <- [
              # 1
              {context, 0,
               "tasks.create --title Marketing report --priority high --due 2026-02-10 " <>
                 "--assignee me --tags Q1 backend"},
              # 2
              {context, 1,
               "tasks.create --title Backend release --priority critical --due 2026-02-20 " <>
                 "--assignee bob --tags q1 Backend ops"},
              # 3
              {bob, 2,
               "tasks.create --title Party --priority low --description Cake and reports"},
              # 4
              {context, 3, "tasks.create --title Taxes --due 2026-02-17 --status blocked"},
              # 5
              {bob, 4,
               "tasks.create --title Old report --due 2026-02-01 --status done --assignee me"},
              # 6
              {context, 5,
               "tasks.create --title Dropped --status cancelled --priority high --due " <>
                 "2026-02-01"},
              # 7
              {bob, 6,
               "tasks.create --title Late --due 2026-02-10 --priority critical --assignee " <>
                 "Bob --tags Q1"},
              # 8
              {context, 7, "tasks.create --title Someday --status in_progress"}
            ],
            do: assert("Created " <> _ = run(later(context, days), line))

        :ok
      end

      test "filters", %{context: context} do
        rows = [
          # The user's own open tasks: assigned to them, or created by them for nobody.
          {"tasks.search", [1, 4, 8]},
          {"tasks.search --sort priority", [1, 4, 8]},
          {"tasks.search --status todo in_progress blocked", [7, 1, 4, 2, 8, 3]},
          {"tasks.search --status done", [5]},
          {"tasks.search --status done cancelled", [6, 5]},
          {"tasks.search --status done,cancelled", [6, 5]},
          {"tasks.search --status Todo", [7, 1, 2, 3]},
          {"tasks.search --status overdue", [7, 1]},
          {"tasks.search --status overdue done", [5, 7, 1]},
          {"tasks.search --status overdue --assignee me", [1]},
          {"tasks.search --overdue", [7, 1]},
          {"tasks.search --overdue false", [7, 1, 4, 2, 8, 3]},
          {"tasks.search --overdue --status done cancelled", [6, 5]},
          {"tasks.search --assignee bob", [7, 2]},
          {"tasks.search --assignee BOB", [7, 2]},
          {"tasks.search --assignee me", [1]},
          {"tasks.search --priority high critical", [7, 1, 2]},
          {"tasks.search --tags Q1", [7, 1, 2]},
          {"tasks.search --tags Q1 backend", [1, 2]},
          {"tasks.search --tags Q1 backend ops", [2]},
          {"tasks.search --tags Q1 backend --priority critical", [2]},
          {"tasks.search --due-before 2026-02-17", [7, 1, 4]},
          {"tasks.search --due-before 2026-02-16", [7, 1]},
          {"tasks.search --due-after 2026-02-17", [4, 2]},
          {"tasks.search --due-after 2026-02-18", [2]},
          {"tasks.search --due-after today --due-before today", [4]},
          {"tasks.search --due_before yesterday", [7, 1]},
          {"tasks.search --query report", [1, 3]},
          {"tasks.search --query report --status done todo", [1, 5, 3]},
          {"tasks.search --query rep", [1, 3]},
          {"tasks.search --query marketing report", [1]},
          {"tasks.search --query report marketing", [1]},
          {"tasks.search --query marke report", []},
          {"tasks.search --query cakes", [3]},
          {"tasks.search --query report -marketing", [3]},
          {~s(tasks.search --query "what is the marketing report"), [1]},
          {"tasks.search --query nothing OR cakes", [3]},
          {~s(tasks.search --query 'report -"nothing here"'), [1, 3]},
          {"tasks.search --query nothing", []}
        ]

        for {line, expected} <- rows, do: assert({line, ids(context, line)} == {line, expected})
      end

      test "sorts, with ties in one order and empty dates last", %{context: context} do
        all = "tasks.search --status todo in_progress blocked done cancelled --sort "

        rows = [
          {"due_date", [6, 5, 7, 1, 4, 2, 8, 3]},
          {"priority", [7, 2, 6, 1, 5, 4, 8, 3]},
          {"created_at", [8, 7, 6, 5, 4, 3, 2, 1]}
        ]

        for {sort, expected} <- rows,
            do: assert({sort, ids(context, all <> sort)} == {sort, expected})

        run(later(context, 20), "tasks.update T-3 --priority medium")
        assert ids(context, all <> "updated_at") == [3, 8, 7, 6, 5, 4, 2, 1]
      end

      test "shows one task per line under the filters", %{context: context} do
        assert run(context, "tasks.search") == """
               3 tasks, by due date: status todo, in_progress or blocked; assigned to alice, \
               or to nobody and created by alice
               T-1 [todo, high, due 2026-02-10 (overdue), @alice, #backend #Q1] Marketing report
               T-4 [blocked, medium, due 2026-02-17] Taxes
               T-8 [in_progress, medium] Someday\
               """

        assert run(
                 context,
                 ~s(tasks.search --query "late report!" --assignee me --priority high low ) <>
                   ~s(--tags a b --overdue)
               ) ==
                 ~s(No tasks found: text "late report!"; status todo, in_progress or ) <>
                   ~s(blocked; priority high or low; ) <>
                   "assigned to alice; tagged a and b; due before 2026-02-17"

        assert run(context, "tasks.search --due-after 2027-01-01 --due-before 2027-02-01") ==
                 "No tasks found: status todo, in_progress or blocked; due up to 2027-02-01; " <>
                   "due from 2027-01-01 on"
      end

      test "says how many more tasks match", %{context: context} do
        assert run(context, "tasks.search --tags Q1 --limit 2") == """
               3 tasks, by due date: status todo, in_progress or blocked; tagged Q1
               T-7 [todo, critical, due 2026-02-10 (overdue), @Bob, #Q1] Late
               T-1 [todo, high, due 2026-02-10 (overdue), @alice, #backend #Q1] Marketing report
               1 more; narrow the search, or add --after 2026-02-10/high/T-1 to list them\
               """

        after_first = "tasks.search --tags Q1 --limit 1 --after 2026-02-10/critical/T-7"

        assert run(context, after_first) == """
               Further tasks, by due date: status todo, in_progress or blocked; tagged Q1
               T-1 [todo, high, due 2026-02-10 (overdue), @alice, #backend #Q1] Marketing report
               More follow; add --after 2026-02-10/high/T-1 to list them\
               """

        assert run(context, "tasks.search --tags Q1 --after none/low/T-1") ==
                 "No more tasks: status todo, in_progress or blocked; tagged Q1"

        refute run(context, "tasks.search --tags Q1 --limit 3") =~ "more"

        assert {:ok, %{data: %{total: 3, tasks: [_]}}} =
                 execute(context, "tasks.search --tags Q1 --limit 1")

        assert run(context, "tasks.search --query taxes") =~
                 "1 task, by relevance: text \"taxes\""
      end

      # The ids of all pages of two, with a change after each.
      defp pages(context, line, place, change) do
        more = if place, do: " --after #{place}", else: ""
        assert {:ok, result} = execute(context, line <> " --limit 2" <> more)
        assert length(result.data.tasks) <= 2
        change.(Enum.map(result.data.tasks, & &1.id))
        ids = Enum.map(result.data.tasks, & &1.id)
        next = result.data[:next]
        if next, do: ids ++ pages(context, line, next, change), else: ids
      end

      test "pages hold each task once, whatever is written between them", %{context: context} do
        # Many tasks share a date, a priority or a time.
        for number <- 1..8, day <- ["2026-03-01", "2026-03-02", nil] do
          due = if day, do: " --due #{day}", else: ""
          priority = Enum.at(~w(low high), rem(number, 2))
          run(context, "tasks.create --title Paged --tags paged --priority #{priority}#{due}")
        end

        for sort <- ~w(due_date priority created_at updated_at) do
          line = "tasks.search --tags paged --sort #{sort}"
          all = ids(context, line <> " --limit 100")
          assert pages(context, line, nil, fn _ids -> :ok end) == all

          # The last task of a page is deleted or moves to the front, and others are created.
          paged =
            pages(context, line, nil, fn ids ->
              run(context, "tasks.create --title New --due 2026-03-01 --tags paged")
              last = List.last(ids)

              if rem(last, 2) == 0,
                do: run(context, "tasks.delete --id #{last}"),
                else: run(context, "tasks.update --id #{last} --due 2020-01-01")
            end)

          assert Enum.filter(paged, &(&1 in all)) == all
        end
      end

      test "a place belongs to a sorted list", %{context: context} do
        for {line, text} <- [
              {"tasks.search --query taxes --after none/low/T-1",
               "error: --after and --query contradict each other: only a list with --sort has " <>
                 "pages"},
              {"tasks.search --sort created_at --after none/low/T-1",
               "error: --after must be the place that the last line of a list with the same " <>
                 ~s(--sort names, got "none/low/T-1". Write for example: --after ) <>
                 "2026-03-01T09:00:00Z/T-12"},
              {"tasks.search --after T-1",
               "error: --after must be the place that the last line of a list with the same " <>
                 ~s(--sort names, got "T-1". Write for example: --after 2026-03-01/high/T-12)}
            ] do
          assert {line, run(context, line)} == {line, text}
        end
      end

      test "any text is a valid query", %{context: context} do
        for query <- [
              ~s(report" OR title:*),
              "title:report",
              "report AND",
              "NOT report",
              "(report",
              "report*",
              "re-port ^ + -",
              "NEAR(report, 2)",
              "'; drop table skillbook_tasks; --",
              "{report}",
              "Ж́",
              "日本語",
              String.duplicate("x", 4096)
            ] do
          assert {:ok, _} = search(context, query), "failed for #{query}"
        end

        assert {:ok, %{data: %{total: 1}}} = search(context, ~s(party "cake"))
        assert {:ok, %{data: %{total: 2}}} = search(context, "--report*")
      end

      test "a query without words, or with too many", %{context: context} do
        for query <- ["?!", "-report"],
            do:
              assert(
                run(context, "tasks.search", %{"query" => query}) ==
                  "error: --query must be text with at least one word that is not excluded " <>
                    ~s(by -, at most 32 words, and at most 4096 bytes, got "#{query}". ) <>
                    ~s(Write for example: --query "some text")
              )

        many = fn n -> Enum.map_join(1..n, " ", &"w#{&1}") end
        assert {:ok, _} = search(context, many.(32))
        assert {:error, %FlagError{flag: "query"}} = search(context, many.(33))
      end

      test "refuses unknown values", %{context: context} do
        check(context, [
          {"tasks.search --status open",
           ~s(error: --status must be one of todo, in_progress, blocked, done, cancelled, ) <>
             ~s(overdue, got "open". Write for example: --status todo)},
          {"tasks.search --sort due_date priority",
           ~s(error: --sort takes one value, got 2: "due_date", "priority". Write for ) <>
             ~s(example: --sort due_date)},
          {"tasks.search --sort due",
           ~s(error: --sort must be one of due_date, priority, created_at, updated_at, got ) <>
             ~s("due". Write for example: --sort due_date)},
          {"tasks.search --limit 0",
           ~s(error: --limit must be a whole number from 1 to 100, got "0". Write for ) <>
             ~s(example: --limit 1)},
          {"tasks.search --limit 101",
           ~s(error: --limit must be a whole number from 1 to 100, got "101". Write for ) <>
             ~s(example: --limit 1)},
          {"tasks.search --overdue yes please",
           ~s(error: --overdue takes one value, got 2: "yes", "please". Write it as: --overdue)},
          {"tasks.search marketing",
           ~s(error: "marketing" has no flag. Put a flag in front: --FLAG "marketing")}
        ])
      end

      test "searches find the current text", %{context: context} do
        run(context, "tasks.update T-1 --title Sales figures")
        assert ids(context, "tasks.search --query marketing") == []
        assert ids(context, "tasks.search --query sales") == [1]
        run(context, "tasks.delete T-1")
        assert ids(context, "tasks.search --query sales") == []
      end

      test "a match in the title comes before one in the description", %{context: context} do
        run(context, ~s(tasks.create --title Zebra --description "about the budget"))
        run(context, ~s(tasks.create --title "Budget for zebras" --description "none"))
        assert ids(context, "tasks.search --query budget") == [10, 9]
      end

      defp search(context, query), do: execute(context, "tasks.search", %{"query" => query})
    end

    test "without a database the error names the option" do
      for line <- [
            "tasks.create --title X",
            "tasks.search",
            "tasks.get T-1",
            "tasks.update T-1 --status done",
            "tasks.delete T-1"
          ] do
        [name | _] = String.split(line)

        assert run(context(), line) ==
                 "error: `#{name}` needs a database, and this book has none. " <>
                   "To enable it, set the option `store:`, for example store: \"skillbook.db\""
      end
    end
  end
end
