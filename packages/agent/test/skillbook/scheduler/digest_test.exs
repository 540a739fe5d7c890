defmodule Skillbook.Scheduler.DigestTest do
  # A daily digest from its first command to its end: built, picked up, scheduled, fired, its
  # report stored, moved, deleted.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Scheduler.Local
  alias Skillbook.{Change, Model, PostgresCase, Scheduler, Store, View}

  @moduletag :tmp_dir

  @patience 30_000
  @name "workflows.morning"

  @commands ~S"""
  workflow.build --name morning --description Digest --schedule "0 8 * * 1-5" --steps <<STEPS
  ```cmd
  # name: late
  tasks.search --overdue --assignee {user} --sort priority
  # name: due
  tasks.search --due-after {today} --due-before {today} --assignee {user}
  # name: wishes
  memory.search --query digest --category preference
  notes.add --title "Digest of {today}" --include-in-prompt false --content <<REPORT
  ## Late

  - {late}

  ## Today

  - {due}

  ## Wishes

  > {wishes}
  REPORT
  ```
  STEPS
  """

  @prose ~S"""
  workflow.build --name morning --description Digest --schedule "0 8 * * 1-5" --steps <<STEPS
  Search for late tasks and tasks due today with `tasks.search`, and for wishes with
  `memory.search`. Store it as one note with `notes.add`, under the title "Digest of" and the day.
  STEPS
  """

  # Searches, writes a note, and reports.
  defp model do
    Model.Function.new(fn messages, _options ->
      replies = Enum.count(messages, &(&1.role == :assistant))

      case replies do
        0 ->
          "Looking.\n\n```cmd\ntasks.search --overdue --assignee me\n" <>
            "memory.search --query digest --category preference\n```"

        1 ->
          late = messages |> found() |> String.split("\n") |> Enum.find(&(&1 =~ "Call the bank"))

          "```cmd\nnotes.add --title \"Digest of 2026-03-03\" --include-in-prompt false " <>
            "--content <<REPORT\n## Late\n\n#{late}\nREPORT\n```"

        2 ->
          "The digest is stored; the bank is late."
      end
    end)
  end

  defp found(messages) do
    [_, report] =
      messages
      |> List.last()
      |> Map.fetch!(:content)
      |> String.split("[1] tasks.search --overdue --assignee me\n")

    report
  end

  defp start(folder, dialect, options) do
    clock = :atomics.new(1, [])
    set = &:atomics.put(clock, 1, DateTime.to_unix(&1))
    set.(~U[2026-03-02 18:00:00Z])
    File.mkdir_p!(folder)

    store =
      case dialect do
        :sqlite -> ":memory:"
        :postgres -> {Skillbook.SQL.Postgres, url: PostgresCase.database()}
      end

    defaults = [
      sources: [folder],
      write_to: folder,
      store: store,
      # Entries that ann writes have her label.
      profiles: [[id: "ann", grants: ["ann"], labels: ["ann"]], [id: "bob"]],
      schedules: [clock: fn -> DateTime.from_unix!(:atomics.get(clock, 1)) end]
    ]

    book = book(defaults ++ options)
    :ok = Skillbook.subscribe(book)
    {book, set}
  end

  defp run(book, line, now) do
    [result] =
      Skillbook.run(Skillbook.view(book, "ann"), "````cmd\n#{line}\n````", now: now).results

    assert {line, :ok} == {line, result.status}, result.content
    result
  end

  # Waits until a generation with the workflow is announced to all subscribers.
  defp changed(book, field) do
    assert_receive {:skillbook, ^book, %Change{} = change}, @patience

    if @name in Map.fetch!(change, field),
      do: :sys.get_state(Module.concat(book, "Watcher")),
      else: changed(book, field)
  end

  defp agenda(book, profile, now) do
    {:ok, agenda} = Skillbook.schedule(Skillbook.view(book, profile), now: now, names: [@name])
    agenda
  end

  for dialect <- [:sqlite, :postgres], kind <- [:commands, :prose] do
    @tag dialect: dialect, kind: kind
    test "of #{kind} on #{dialect}", %{tmp_dir: folder, dialect: dialect, kind: kind} do
      folder = Path.join(folder, "skills")
      options = if kind == :prose, do: [agent: [model: model()]], else: []
      {book, set} = start(folder, dialect, options)
      evening = ~U[2026-03-02 18:00:00Z]

      for line <- [
            ~s(tasks.create --title "Call the bank" --due 2026-03-02 --priority high ) <>
              ~s(--assignee me),
            ~s(tasks.create --title "Send the plan" --due 2026-03-03 --assignee me),
            ~s(tasks.create --title "Somebody else's" --due 2026-03-03 --assignee bob),
            ~s(memory.save --content "The digest has no weather" --category preference)
          ],
          do: run(book, line, evening)

      built = run(book, if(kind == :prose, do: @prose, else: @commands), evening)

      assert String.starts_with?(
               built.content,
               "Built workflows.morning. Its schedule is 0 8 * * 1-5: " <>
                 "at 08:00 on Mondays to Fridays, UTC; the next time is 2026-03-03 08:00 " <>
                 "+00:00. Run"
             )

      changed(book, :added)

      # Only ann sees it and its results.
      assert %{data: %{"author" => "ann", "run_as" => "ann", "visibility_labels" => ["ann"]}} =
               View.fetch!(Skillbook.view(book, "ann"), @name)

      assert {:error, _} = View.fetch(Skillbook.view(book, "bob"), @name)

      assert %{next: [%{at: [~U[2026-03-03 08:00:00Z]], run_as: "ann"}], last: []} =
               agenda(book, "ann", evening)

      assert %{next: [], last: []} = agenda(book, "bob", evening)
      assert %{@name => %{expression: "0 8 * * 1-5"}} = Scheduler.registered(book)

      morning = ~U[2026-03-03 08:00:10Z]
      set.(morning)
      Local.tick(book)
      Scheduler.await(book)

      assert %{last: [%{status: :ok, at: ~U[2026-03-03 08:00:00Z], text: text, profile: "ann"}]} =
               agenda(book, "ann", morning)

      assert %{last: []} = agenda(book, "bob", morning)

      {:ok, note} = Store.fetch(Skillbook.view(book, "ann"), "Digest of 2026-03-03")
      assert %{author: "ann", source: :agent, labels: ["ann"], include_in_prompt: false} = note

      assert {:error, %{kind: :not_found}} =
               Store.fetch(Skillbook.view(book, "bob"), "Digest of 2026-03-03")

      sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
      note = %{note | content: Skillbook.Ordinals.from_numbers(note.content, sql)}

      case kind do
        :commands ->
          assert text =~ "workflows.morning ran its 4 steps."

          assert note.content == """
                 ## Late

                 - 1 task, by priority: status todo, in_progress or blocked; assigned to ann; \
                 due before 2026-03-03
                 - T-1 [todo, high, due 2026-03-02 (overdue), @ann] Call the bank

                 ## Today

                 - 1 task, by due date: status todo, in_progress or blocked; assigned to ann; \
                 due up to 2026-03-03; due from 2026-03-03 on
                 - T-2 [todo, medium, due 2026-03-03, @ann] Send the plan

                 ## Wishes

                 > 1 memory: all of "digest"; category preference
                 > M-1 [preference, 2026-03-02] The digest has no weather\
                 """

        :prose ->
          assert text == "The digest is stored; the bank is late."

          assert note.content ==
                   "## Late\n\n  T-1 [todo, high, due 2026-03-02 (overdue), @ann] Call the bank"
      end

      assert %{data: [%{status: "done", ran: ran}]} = run(book, "workflow.show #{@name}", morning)
      assert ran == if(kind == :prose, do: 3, else: 4)

      # Somebody moves it to nine o'clock.
      path = Path.join(folder, "workflows/morning.md")

      File.write!(
        folder <> ".moved",
        path |> File.read!() |> String.replace("0 8 * * 1-5", "0 9 * * 1-5")
      )

      # As an editor does it: nobody reads half of it.
      File.rename!(folder <> ".moved", path)
      changed(book, :changed)
      assert %{@name => %{expression: "0 9 * * 1-5"}} = Scheduler.registered(book)
      assert %{next: [%{at: [~U[2026-03-03 09:00:00Z]]}]} = agenda(book, "ann", morning)

      assert run(book, "workflow.delete #{@name}", morning).content =~
               "Deleted workflows.morning."

      changed(book, :removed)
      refute is_map_key(Scheduler.registered(book), @name)
      assert %{next: [], last: []} = agenda(book, "ann", morning)
      assert File.exists?(Path.join(folder, ".trash/20260303T080010Z/workflows/morning.md"))
    end
  end
end
