defmodule Skillbook.ObanTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog, only: [with_log: 1]
  import Skillbook.Eventually

  alias Skillbook.Agent.{Result, Run, Runs}
  alias Skillbook.Model.Script
  alias Skillbook.Oban.Worker
  alias Skillbook.{ModelError, Profile, Skill}

  defmodule Weekly do
    @moduledoc false
    use Skillbook.Skill,
      name: "reports.weekly",
      description: "Writes the report of a week",
      effects: :write,
      job: [queue: "reports", max_attempts: 5, unique: 3600]

    @impl true
    def execute(flags, context) do
      {:ok, inspect({flags, context.profile.id, context.assigns.job})}
    end
  end

  @page """
  ---
  name: reports.count
  description: Counts the tasks with a tag
  ---
  ## Usage

  reports.count --limit <n>

  ## Flags

  --limit  How many, from 1 to 9 (required)

  ## Behavior

  ```cmd
  tasks.search --limit {limit}
  ```
  """

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "reports/count.md" => @page,
      "reports/prose.md" => page("reports.prose"),
      "reports/odd.md" => page("reports.odd", job: "{max_attempts: many}"),
      "reports/odder.md" => page("reports.odder", job: "{retries: 3}"),
      "reports/oddest.md" => page("reports.oddest", job: "daily")
    })

    me = self()

    skills =
      for {name, run} <- [
            crash: fn _, _ -> raise "no" end,
            slow: fn _, _ -> Process.sleep(:infinity) end,
            refuse: fn _, _ -> {:error, :not_yet} end,
            bad: fn _, _ -> :bad end,
            hold: fn _, _ ->
              send(me, {:holding, self()})
              Process.sleep(:infinity)
            end
          ] do
        Skill.new!(
          name: "jobs.#{name}",
          description: "Fails in one of the ways",
          effects: :read,
          timeout: if(name == :hold, do: 60_000, else: 100),
          max_running: 1,
          run: run
        )
      end

    book =
      book(
        sources: [folder, {:modules, [Weekly]}] ++ skills,
        store: ":memory:",
        max_wait: 100,
        breaker: [failures: 2, cooldown: 60_000],
        profiles: [[id: "ann"], [id: "bob", writes: :ask], [id: "reader", writes: :deny]]
      )

    %{book: book}
  end

  defp insert(book, command, options \\ []) do
    Skillbook.Oban.insert(book, command, [oban: self()] ++ options)
  end

  defp perform(book, command, profile \\ "ann", more \\ %{}) do
    args = %{"book" => Atom.to_string(book), "profile" => profile, "command" => command}
    job = %Oban.Job{id: 7, args: args, attempt: 2, inserted_at: DateTime.utc_now()}
    Worker.perform(Map.merge(job, more))
  end

  describe "insert/3" do
    test "has the fields of the page, which options replace", %{book: book} do
      view = Skillbook.view(book, "ann")
      assert {:ok, %{id: 7}} = insert(view, "reports.weekly --week 7", tags: ["q4"])
      assert_receive {:inserted, job}

      assert job.args == %{
               "book" => Atom.to_string(book),
               "profile" => "ann",
               "command" => "reports.weekly --week 7"
             }

      assert {job.worker, job.queue, job.max_attempts} == {"Skillbook.Oban.Worker", "reports", 5}
      assert {job.unique, job.tags} == {[period: 3600], ["q4"]}

      at = ~U[2026-11-27 08:00:00Z]
      options = [profile: "ann", queue: :other, unique: 60, scheduled_at: at, meta: %{"a" => 1}]
      assert {:ok, _job} = insert(book, "reports.weekly", options)
      assert_receive {:inserted, %{queue: "other", unique: [period: 60]} = job}
      assert job.meta == %{"a" => 1, "snooze_until" => DateTime.to_unix(at) + 86_400}
      assert {job.scheduled_at, job.args["profile"]} == {at, "ann"}
    end

    test "a page without the field is tried three times if it only reads", %{book: book} do
      assert {:ok, _job} = insert(book, "reports.count --limit 3", profile: "ann")
      assert_receive {:inserted, %{max_attempts: 3, queue: "default", unique: nil}}
      assert {:ok, _job} = insert(book, "memory.save --content Tea", profile: "ann")
      assert_receive {:inserted, %{max_attempts: 1}}
    end

    test "changeset/3 does not insert it", %{book: book} do
      assert {:ok, %Oban.Job{id: nil}} =
               Skillbook.Oban.changeset(book, "reports.weekly", profile: "ann")

      refute_received {:inserted, _job}
    end

    # The command, options, and the error.
    @rows [
      {"reports.wekly", [],
       "unknown skill \"reports.wekly\"; did you mean reports.weekly, reports.count or " <>
         "reports.odd? To list all skills, write: get_skill"},
      {"reports.count", [], "--limit is required and missing. Add it as: --limit VALUE"},
      {"reports.count --limit 10", [],
       "--limit must be a whole number from 1 to 9, got \"10\". Write for example: --limit 1"},
      {"reports.weekly", [profile: "reader"],
       "`reports.weekly` was not run: it changes something, and only commands that read may " <>
         "run here. Do not try again; tell the user what you would have done."},
      {"get_skill", [], "expected a command that runs for a job, got: \"get_skill\""},
      {"reports.weekly --help", [],
       "expected a command that runs for a job, got: \"reports.weekly --help\""},
      {"reports.odd", [],
       "expected a number above 0 as the option :max_attempts of the field `job` of " <>
         "reports.odd, got: \"many\""},
      {"reports.odder", [],
       "expected the keys queue, max_attempts, unique for the field `job` of reports.odder, " <>
         "got: \"retries\""},
      {"reports.oddest", [],
       "expected a mapping with queue, max_attempts or unique for the field `job` of " <>
         "reports.oddest, got: \"daily\""},
      {"reports.weekly", [quue: "a"],
       "unknown option :quue for a job, did you mean :queue? The options are :queue, " <>
         ":max_attempts, :priority, :schedule_in, :scheduled_at, :tags, :meta, :unique"},
      {"reports.weekly", [unique: 0],
       "expected a number of seconds, or options of Oban as the option :unique of a job, got: 0"},
      {"reports.weekly", [queue: String.duplicate("a", 129)],
       "queue: should be at most 128 character(s)"}
    ]
    for {{command, options, message}, number} <- Enum.with_index(@rows) do
      test "refuses at once, row #{number}", %{book: book} do
        options = Keyword.merge([profile: "ann"], unquote(options))
        assert {:error, error} = insert(book, unquote(command), options)
        assert Exception.message(error) == unquote(message)
        refute_received {:inserted, _job}
      end
    end

    test "refuses a view whose rights the job would not have", %{book: book} do
      {:ok, narrow} = Profile.new(id: "ann", skills: ["reports.*"])
      {:ok, other} = Profile.new(id: "eve")

      for profile <- [narrow, other] do
        assert {:error, error} = insert(Skillbook.view(book, profile), "reports.weekly")

        assert Exception.message(error) ==
                 "expected a profile of the book #{inspect(book)}, with its rights, " <>
                   "for a job, got: #{inspect(profile.id)}"
      end
    end

    test "a module with an invalid job does not compile" do
      code = """
      defmodule ObanInvalid do
        use Skillbook.Skill, name: "a.b", description: "Does it well", job: [queue: "a", retry: 1]
        def execute(_flags, _context), do: :ok
      end
      """

      error = assert_raise CompileError, fn -> Code.compile_string(code, "lib/x.ex") end

      assert Exception.message(error) ==
               "lib/x.ex:2: expected the keys queue, max_attempts, unique for the field `job` " <>
                 "of a.b, got: \"retry\""
    end
  end

  describe "perform/1" do
    test "runs the command as the profile, with the job in assigns", %{book: book} do
      assert {:ok, result} = perform(book, "reports.weekly --week 7")

      assert result.content ==
               inspect(
                 {%{"week" => "7"}, "ann",
                  %{attempt: 2, id: 7, max_attempts: 20, queue: "default"}}
               )

      assert {:ok, %{status: :ok}} = perform(book, "reports.count --limit 3")
    end

    test "cancels jobs that another try cannot mend", %{book: book} do
      for {command, profile, text} <- [
            {"reports.wekly", "ann", "unknown skill \"reports.wekly\""},
            {"reports.count", "ann", "--limit is required and missing"},
            {"reports.count --limit \"3", "ann", "the double quote that opens here"},
            {"reports.weekly", "reader", "only commands that read may run here"},
            {"reports.weekly", "bob", "`reports.weekly` was not run"},
            {"jobs.bad", "ann", "its handler returned an invalid value"},
            {"tasks.get T-1", "ann", "T-1"},
            {"get_skill", "ann", "expected a command that runs, got a request for help"},
            {"reports.prose", "ann", "its page is instructions for a model, and the book has no"},
            {"reports.weekly", "eve", "the book #{inspect(book)} has no profile \"eve\" any more"}
          ] do
        {outcome, _log} = with_log(fn -> perform(book, command, profile) end)
        assert {:cancel, reason} = outcome
        assert reason =~ text
      end

      assert Worker.perform(%Oban.Job{args: %{"book" => "a", "command" => 1}}) ==
               {:cancel,
                "expected the texts book, profile and command, or run and input, as arguments " <>
                  "of the job, got: \"book\", \"command\""}
    end

    test "completes a job whose command waits for an approval", %{tmp_dir: folder} do
      ask = fn _request -> :pending end
      profiles = [[id: "bob", writes: :ask]]
      sources = [folder, {:modules, [Weekly]}]
      book = book(sources: sources, store: ":memory:", profiles: profiles, ask: ask)
      {:ok, _job} = insert(book, "reports.weekly --week 7", profile: "bob")
      perform = fn -> perform(book, "reports.weekly --week 7", "bob") end
      assert {{:ok, %{status: :pending}}, log} = with_log(perform)
      assert log =~ "job 7: `reports.weekly` has not run yet: it waits for the approval"
      assert {:ok, [approval]} = Skillbook.approvals(book, [])
      assert {approval.profile, approval.flags} == {"bob", %{"week" => "7"}}
      assert {:ok, %{result: result}} = Skillbook.approve(book, approval.ref, by: "ann")
      assert result.content =~ ~s({%{"week" => "7"}, "bob")
    end

    test "tries again after an error, a crash and a timeout", %{book: book} do
      for {command, text} <- [
            {"jobs.refuse", "not yet"},
            {"jobs.crash", "its handler crashed"},
            {"jobs.slow", "took longer than 100 ms"}
          ] do
        {outcome, _log} = with_log(fn -> perform(book, command) end)
        assert {:error, reason} = outcome
        assert reason =~ text
      end

      assert Worker.backoff(%Oban.Job{attempt: 2}) == 17
      assert Worker.timeout(%Oban.Job{}) == :infinity
    end

    test "snoozes while the skill is out of service or busy, for a day", %{book: book} do
      with_log(fn -> for _ <- 1..2, do: {:error, _} = perform(book, "jobs.crash") end)
      assert {:snooze, seconds} = perform(book, "jobs.crash")
      assert seconds in 50..60

      holder = spawn(fn -> perform(book, "jobs.hold") end)
      assert_receive {:holding, _worker}
      assert perform(book, "jobs.hold") == {:snooze, 30}
      now = System.os_time(:second)
      late = %{meta: %{"snooze_until" => now - 1}}
      assert {:cancel, reason} = perform(book, "jobs.hold", "ann", late)
      assert reason =~ "too many commands were running"
      soon = %{meta: %{"snooze_until" => now + 60}}
      assert perform(book, "jobs.hold", "ann", soon) == {:snooze, 30}
      Process.exit(holder, :kill)
    end

    test "snoozes while the book does not run, and makes no atom of its name" do
      name = "Elixir.NoSuchBook#{System.unique_integer([:positive])}"
      args = %{"book" => name, "profile" => "ann", "command" => "reports.weekly"}
      job = %Oban.Job{id: 7, args: args, inserted_at: DateTime.utc_now()}
      assert Worker.perform(job) == {:snooze, 10}
      assert_raise ArgumentError, fn -> String.to_existing_atom(name) end
      yesterday = DateTime.add(DateTime.utc_now(), -86_401)

      assert Worker.perform(%{job | inserted_at: yesterday}) ==
               {:cancel, "the book #{name} does not run on this node"}
    end

    test "Oban's plugins insert jobs of the worker" do
      args = %{"book" => "a", "profile" => "b", "command" => "c"}
      assert %Oban.Job{args: ^args, worker: worker, max_attempts: 3} = Worker.new(args)
      assert worker == "Skillbook.Oban.Worker"
      assert Worker.__opts__()[:queue] == :default
      assert %Oban.Job{queue: "other"} = Worker.new(args, queue: :other)
    end
  end

  describe "a durable run" do
    @call "```cmd\njobs.note\n```"
    @input "Note it"

    # `jobs.note` tells the test, and waits for its answer if it is to.
    defp durable(answers, options \\ []) do
      me = self()

      note =
        Skill.new!(
          name: "jobs.note",
          description: "Notes something that must be noted once",
          effects: :write,
          run: fn _, _ ->
            send(me, {:noted, self()})
            if options[:wait], do: Process.sleep(:infinity)
            {:ok, "noted"}
          end
        )

      book(
        sources: [note],
        store: ":memory:",
        profiles: [[id: "ann"]],
        durable: [continue: false],
        agent: [model: Script.new(answers)]
      )
    end

    defp enqueued(book) do
      assert {:ok, _job} = Skillbook.Oban.insert_run(book, @input, oban: self(), profile: "ann")
      assert_receive {:inserted, job}
      %{job | id: 7, inserted_at: DateTime.utc_now()}
    end

    test "is enqueued with its ref, and the same input once in a time" do
      book = durable([])
      job = enqueued(book)
      args = %{"book" => Atom.to_string(book), "profile" => "ann", "input" => @input}
      assert {Map.delete(job.args, "run"), job.max_attempts, job.queue} == {args, 3, "default"}

      view = Skillbook.view(book, "ann")
      options = [oban: self(), unique: 60, queue: "agents"]
      assert {:ok, _job} = Skillbook.Oban.insert_run(view, @input, options)
      assert_receive {:inserted, %{queue: "agents", unique: unique, args: %{"run" => other}}}
      assert unique == [period: 60, keys: [:book, :profile, :input]]
      assert other != job.args["run"]
    end

    test "needs a book with :durable", %{book: book} do
      assert {:error, error} = Skillbook.Oban.insert_run(book, @input, profile: "ann")

      assert Exception.message(error) ==
               "the book keeps no durable runs; give it the options store: … and durable: true"
    end

    test "runs once, however often its job is tried" do
      book = durable([@call, "It is noted."])
      job = enqueued(book)
      assert {:ok, %Result{text: "It is noted."}} = Worker.perform(job)
      assert_receive {:noted, _worker}
      assert {:ok, %Run{status: :done, text: "It is noted.", ref: ref}} = Worker.perform(job)
      assert ref == job.args["run"]
      refute_received {:noted, _worker}
    end

    test "goes on where its model failed" do
      error = %ModelError{kind: :rejected, reason: "no credit", status: 402}
      book = durable([@call, error, fn messages -> "Read: " <> List.last(messages).content end])
      job = enqueued(book)
      assert {:error, text} = Worker.perform(job)
      assert text =~ "no credit"
      assert {:ok, [%{status: :failed, reason: reason}]} = Runs.list(book)
      assert reason =~ "no credit"

      assert {:ok, %Result{text: "Read: [1] jobs.note" <> _, turns: 2}} = Worker.perform(job)
      assert_receive {:noted, _worker}
      refute_received {:noted, _worker}
    end

    test "goes on where its process was killed, and repeats no call" do
      book = durable([@call, fn messages -> List.last(messages).content end], wait: true)
      job = enqueued(book)
      {attempt, monitor} = spawn_monitor(fn -> Worker.perform(job) end)
      assert_receive {:noted, _worker}
      assert Worker.perform(job) == {:snooze, 30}

      Process.exit(attempt, :kill)
      assert_receive {:DOWN, ^monitor, :process, _pid, :killed}
      assert eventually(fn -> match?({:ok, [%{status: :interrupted}]}, Runs.list(book)) end)
      assert {:ok, %Result{text: text}} = Worker.perform(%{job | attempt: 2})
      assert text =~ "`jobs.note` had begun"
      refute_received {:noted, _worker}
    end

    test "is cancelled if it was stopped, or cannot go on" do
      book = durable([@call, "Too late."], wait: true)
      job = enqueued(book)
      attempt = Task.async(fn -> Worker.perform(job) end)
      assert_receive {:noted, worker}
      assert Runs.stop(book, job.args["run"]) == :ok
      assert Worker.perform(job) == {:cancel, "the run was stopped"}
      Process.exit(worker, :kill)
      assert Task.await(attempt, :infinity) == {:snooze, 30}
      assert {:cancel, _} = Worker.perform(put_in(job.args["profile"], "eve"))
    end
  end
end
