defmodule Skillbook.Agent.RunsTest do
  # Durable runs whose process is killed at each point, and those whose book or node ends.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Agent.Runs
  alias Skillbook.{Agent, Book, DurableRows, PostgresCase, SQL}

  doctest Skillbook.Agent.Runs
  doctest Skillbook.RunError

  @moduletag :tmp_dir

  @unknown "had begun when the run was interrupted, and whether it was done is unknown. It " <>
             "was not run again: check before you call it again, or tell the user."

  defp store(:sqlite, folder), do: Path.join(folder, "book.db")
  defp store(:postgres, _folder), do: {SQL.Postgres, url: PostgresCase.database(), pool_size: 4}

  defp durable_book(folder, options) do
    skills = Path.join(folder, "skills")
    write(skills, DurableRows.pages())

    book(
      Keyword.merge(
        [
          sources: [skills],
          store: store(:sqlite, folder),
          builtins: false,
          usage: false,
          watch: false,
          scheduler: false,
          durable: true,
          profiles: [[id: "ann"], [id: "bob", tenant: "b"]]
        ],
        options
      )
    )
  end

  # A run in a process of its own, which may be killed.
  defp run(book, name, points, options \\ []) do
    assigns = if points, do: %{points: points}, else: %{}
    on_event = fn _event -> DurableRows.point(points) end
    options = Keyword.merge([profile: "ann", assigns: assigns, on_event: on_event], options)
    pid = spawn(fn -> Agent.run(book, "Go #{name}.", options) end)
    monitor = monitor(pid)

    receive do
      {:DOWN, ^monitor, :process, _pid, reason} -> reason
    end
  end

  defp named(book, name) do
    {:ok, runs} = Runs.list(book, limit: 1_000)
    Enum.find(runs, &(&1.title == "Go #{name}."))
  end

  defp ended(book, name) do
    assert eventually(fn -> named(book, name).status not in [:running, :interrupted] end)
    named(book, name)
  end

  # The last request has the result of each command, or that its end is unknown.
  defp assert_told(name, ran, protocol) do
    text = last_asked(name)
    told = for one <- ~w(a b c d e f), text =~ "Ran #{name}#{one}.", do: one
    unknown = length(String.split(text, "`x.add` #{@unknown}")) - 1
    assert length(told) + unknown == 6, text
    assert told -- Map.keys(ran) == []
    if protocol == :blocks, do: assert(text =~ "[1] x.add --name #{name}a\n")
  end

  defp last_asked(name) do
    receive do
      {:asked, ^name, text} -> last_asked(name, text)
    after
      0 -> flunk("the model was not asked for the end of #{name}")
    end
  end

  defp last_asked(name, text) do
    receive do
      {:asked, ^name, later} -> last_asked(name, later)
    after
      0 -> text
    end
  end

  for database <- [:sqlite, :postgres], protocol <- [:blocks, :tools] do
    @tag database: database, protocol: protocol
    test "killed at any point, it ends the same: #{database}, #{protocol}", context do
      %{database: database, protocol: protocol, tmp_dir: folder} = context
      points = DurableRows.points(:"points_#{System.unique_integer([:positive])}", 0)
      model = DurableRows.model(points, protocol: protocol, tell: self())
      agent = [model: model, protocol: protocol]
      book = durable_book(folder, store: store(database, folder), agent: agent)
      DurableRows.create(book)

      assert run(book, "k0", points) == :normal
      assert %{status: :done, text: "All done, k0.", turns: 3, continued: 0} = named(book, "k0")
      once = Map.new(~w(a b c d e f), &{&1, 1})
      assert DurableRows.ran(book, "k0") == once
      count = DurableRows.count(points)
      assert count > 40

      counts =
        for at <- 1..count do
          name = "k#{at}"
          DurableRows.reset(points, at)
          assert run(book, name, points) == :killed

          if named(book, name) do
            # The process is gone, and its book continues the run at once.
            ended = ended(book, name)
            assert {ended.status, ended.text, ended.turns} == {:done, "All done, #{name}.", 3}
            assert ended.continued in 0..1
            ran = DurableRows.ran(book, name)
            for once <- ~w(a c), do: assert(Map.get(ran, once, 0) in 0..1, "#{at}: #{once}")
            for again <- ~w(b d e f), do: assert(ran[again] in 1..2, "#{at}: #{again}")
            assert_told(name, ran, protocol)
            Enum.count(~w(a c), &(not is_map_key(ran, &1)))
          else
            # Nobody has the run, since it had not begun.
            assert DurableRows.ran(book, name) == %{}
            :not_begun
          end
        end

      # Each of the two is killed once before it has done anything, after its beginning is stored.
      assert Enum.sum(Enum.reject(counts, &(&1 == :not_begun))) == 2
      assert Enum.count(counts, &(&1 == :not_begun)) < 5
    end
  end

  # A run that is killed at a point, and stays with nobody, since the book continues none.
  defp interrupted(context, options \\ []) do
    points = DurableRows.points(:"points_#{System.unique_integer([:positive])}", 0)
    {more, options} = Keyword.split(options, [:flags])
    model = DurableRows.model(points, [tell: self()] ++ more)
    options = Keyword.merge([agent: [model: model], durable: [continue: false]], options)
    book = durable_book(context.tmp_dir, options)
    DurableRows.create(book)
    {book, points}
  end

  # The points: the prompt and the input, turn, before and after the answer, its parts, ...; the
  # first handler is the first one after an answer.
  defp kill_in_handler(book, points, name, options) do
    at =
      Enum.find(1..100, fn at ->
        DurableRows.reset(points, at)
        :killed = run(book, "#{name}#{at}x", points, options)
        DurableRows.ran(book, "#{name}#{at}x") == %{"a" => 1}
      end)

    "#{name}#{at}x"
  end

  defp killed_in_handler(context, name, options \\ [], run_options \\ []) do
    {book, points} = interrupted(context, options)
    name = kill_in_handler(book, points, name, run_options)
    assert eventually(fn -> named(book, name).status == :interrupted end)
    {book, name, named(book, name).ref}
  end

  test "continue/3 goes on in the calling process, once", context do
    {book, name, ref} = killed_in_handler(context, "n")
    test = self()
    {:ok, result} = Runs.continue(book, ref, on_event: &send(test, &1))
    assert {result.status, result.text, result.turns} == {:done, "All done, #{name}.", 3}
    assert DurableRows.ran(book, name) == Map.new(~w(a b c d e f), &{&1, 1})
    assert last_asked(name) =~ "[1] x.add --name #{name}a\nerror\n  `x.add` #{@unknown}"
    # Events that it knew are not told again.
    assert_received {:result, %{status: :error, error: %{kind: :unknown_end}}}
    refute_received {:turn, 1}
    assert_received {:turn, 2}

    {:error, error} = Runs.continue(book, ref)
    assert Exception.message(error) == "the run #{ref} has ended already (done)"
    assert %{status: :done, continued: 1} = named(book, name)
  end

  test "a call whose beginning cannot be stored does not run, and the model is told", context do
    {book, _points} = interrupted(context)

    SQL.query!(Book.sql(Book.fetch!(book)), """
    create trigger full before insert on skillbook_agent_calls when new.status is null
    begin select raise(abort, 'database or disk is full'); end
    """)

    assert run(book, "u", nil) == :normal
    assert %{status: :done} = named(book, "u")
    # Those that may run twice are not stored before they do.
    assert Map.keys(DurableRows.ran(book, "u")) == ~w(b d e f)

    assert last_asked("u") =~
             "[1] x.add --name ua\nerror\n  `x.add` was not run: it could not be noted in the " <>
               "database before. Try again, or tell the user."
  end

  test "a call that waited before it was interrupted waits once", context do
    model =
      Skillbook.Model.Function.new(fn messages, _options ->
        if Enum.any?(messages, &(&1.role == :assistant)),
          do: "It waits.",
          else: "```cmd\nx.add --name wa\n```"
      end)

    test = self()

    book =
      durable_book(context.tmp_dir,
        agent: [model: model],
        durable: [continue: false],
        profiles: [[id: "ann", writes: :ask]],
        ask: fn request -> send(test, {:asked, request.ref}) && :pending end
      )

    DurableRows.create(book)
    id = "killed #{inspect(book)}"

    # Its approval is stored, and its result is not.
    :telemetry.attach_many(
      id,
      [[:skillbook, :approval, :changed]],
      fn _event, _measurements, metadata, _config ->
        if metadata.book == book, do: Process.exit(self(), :kill)
      end,
      nil
    )

    assert run(book, "w", nil) == :killed
    :telemetry.detach(id)
    assert_received {:asked, ref}
    assert eventually(fn -> named(book, "w").status == :interrupted end)
    {:ok, result} = Runs.continue(book, named(book, "w").ref)

    assert %{status: :pending, text: "It waits.", pending: [%{ref: ^ref, resumable: true}]} =
             result

    refute_received {:asked, _ref}
    assert {:ok, [%{ref: ^ref}]} = Skillbook.approvals(book)
    {:ok, %{status: :done}} = Skillbook.approve(book, ref, by: "Bob")
    assert DurableRows.ran(book, "w") == %{"a" => 1}
  end

  test "stop/3 ends it for good", context do
    {book, name, ref} = killed_in_handler(context, "s")
    :ok = Skillbook.subscribe(book)
    assert Runs.stop(book, ref) == :ok
    assert_received {:skillbook_agent_run, ^book, %{ref: ^ref, status: :stopped}}
    assert %{status: :stopped, text: nil} = named(book, name)
    {:error, error} = Runs.stop(book, ref)
    assert Exception.message(error) == "the run #{ref} has ended already (stopped)"
    {:error, error} = Runs.continue(book, ref)
    assert Exception.message(error) == "the run #{ref} has ended already (stopped)"
    assert DurableRows.ran(book, name) == %{"a" => 1}
  end

  test "a run that is stopped elsewhere calls nothing more", context do
    {book, _points} = interrupted(context)
    ref = fn -> named(book, "w").ref end
    stop = fn event -> with {:result, _first} <- event, do: Runs.stop(book, ref.()) end

    options = [profile: "ann", on_event: stop]
    {:error, error} = Agent.run(book, "Go w.", options)
    assert error.error.kind == :lost

    assert Exception.message(error.error) ==
             "the run #{ref.()} was stopped, or is continued by another process; it does not " <>
               "go on here"

    # Reads have no effect, so they are not checked.
    assert DurableRows.ran(book, "w") == %{"a" => 1, "b" => 1}
    assert named(book, "w").status == :stopped
  end

  test "an answer that comes after the end of its run is not in the conversation", context do
    {book, _points} = interrupted(context)
    answers = DurableRows.model(nil, protocol: :tools)

    model =
      Skillbook.Model.Function.new(fn messages, options ->
        :ok = Runs.stop(book, named(book, "l").ref)
        Skillbook.Model.chat(answers, messages, options, fn _text -> :ok end)
      end)

    options = [profile: "ann", model: model, protocol: :tools]
    {:error, %{error: %{kind: :lost}, result: result}} = Agent.run(book, "Go l.", options)
    assert Enum.map(result.transcript.messages, & &1.kind) == [:prompt, :input]
    assert DurableRows.ran(book, "l") == %{}
    # So it can go on.
    options = [profile: "ann", model: answers, protocol: :tools, transcript: result.transcript]
    assert {:ok, %{status: :done, text: "All done, l."}} = Agent.run(book, "Well?", options)
  end

  test "a run that ends its process again and again is given up", context do
    {book, points} = interrupted(context, durable: [max_continued: 2])
    DurableRows.reset(points, 0)
    # Its model always ends the process.
    dying = Skillbook.Model.Function.new(fn _, _ -> Process.exit(self(), :kill) end)
    :killed = run(book, "g", nil, model: dying)
    # The book's own model would end it well, so it is continued with the dying one.
    assert %{status: status} = ended(book, "g")
    assert status == :done

    other = durable_book(context.tmp_dir, agent: [model: dying], durable: [max_continued: 2])
    :killed = run(other, "h", nil)
    run = ended(other, "h")
    assert {run.status, run.continued} == {:failed, 3}

    assert run.reason ==
             "the run #{run.ref} was given up: it was continued 2 times, and each time its " <>
               "process or node ended before it did"

    # Somebody may still continue it.
    {:ok, result} = Runs.continue(other, run.ref, model: DurableRows.model(points))
    assert result.text == "All done, h."
    assert named(other, "h").status == :done
  end

  test "the rights are those that the profile has when it is continued", context do
    {book, name, ref} = killed_in_handler(context, "r")
    profiles = [[id: "ann", skills: ["x.get", "x.twice"]]]
    folder = context.tmp_dir
    :ok = stop_supervised(book)
    model = DurableRows.model(nil, tell: self())
    options = [agent: [model: model], durable: [continue: false], profiles: profiles]
    later = durable_book(folder, options)
    {:ok, result} = Runs.continue(later, ref)
    assert result.status == :done
    # The first call is known to have begun; the third is not allowed any more.
    assert DurableRows.ran(later, name) == Map.new(~w(a b d e f), &{&1, 1})
    assert last_asked(name) =~ "[3] x.add --name #{name}c\nerror\n  unknown"
  end

  test "a profile that is gone gives the run up", context do
    {book, name, ref} = killed_in_handler(context, "p")
    :ok = stop_supervised(book)
    model = DurableRows.model(nil)
    later = durable_book(context.tmp_dir, agent: [model: model], profiles: [[id: "bob"]])
    run = ended(later, name)
    assert {run.ref, run.status} == {ref, :failed}

    assert run.reason ==
             "the run #{ref} was not continued: its profile \"ann\" does not exist any more"
  end

  test "a book that stops gives its runs back at once, any number of times", context do
    {book, points} = interrupted(context, durable: [continue: false, lease: 60_000])
    DurableRows.reset(points, 0)
    test = self()

    waits =
      Skillbook.Model.Function.new(fn _, _ ->
        send(test, {:waits, self()})
        Process.sleep(:infinity)
      end)

    pid = spawn(fn -> Agent.run(book, "Go v.", profile: "ann", model: waits) end)
    assert_receive {:waits, ^pid}, 60_000
    assert named(book, "v").status == :running
    :ok = stop_supervised(book)

    model = DurableRows.model(nil)
    later = durable_book(context.tmp_dir, agent: [model: model], durable: [max_continued: 1])
    assert %{status: :done, continued: 0} = ended(later, "v")
    Process.exit(pid, :kill)
  end

  for database <- [:sqlite, :postgres] do
    @tag database: database
    test "200 runs that end at once are all stored by themselves: #{database}", context do
      test = self()

      model =
        Skillbook.Model.Function.new(fn _messages, _options ->
          send(test, {:waits, self()})
          receive do: (:go -> "Done.")
        end)

      book =
        durable_book(context.tmp_dir,
          store: store(context.database, context.tmp_dir),
          agent: [model: model],
          durable: [lease: 600_000]
        )

      tasks =
        for n <- 1..200, do: Task.async(fn -> Agent.run(book, "Go n#{n}.", profile: "ann") end)

      waiting = for _task <- tasks, do: assert_receive({:waits, pid}, 60_000) && pid
      began = System.monotonic_time(:millisecond)
      for pid <- waiting, do: send(pid, :go)

      assert Enum.all?(Task.await_many(tasks, 120_000), &match?({:ok, %{status: :done}}, &1))
      assert System.monotonic_time(:millisecond) - began < 30_000
      {:ok, runs} = Runs.list(book, limit: 1_000)
      assert Enum.count(runs, &match?(%{status: :done, continued: 0}, &1)) == 200
    end
  end

  test "an end is stored after a writer that has the database for too long", context do
    test = self()
    path = Path.join(context.tmp_dir, "busy.db")

    model =
      Skillbook.Model.Function.new(fn _messages, _options ->
        send(test, {:waits, self()})
        receive do: (:go -> "Done.")
      end)

    book =
      durable_book(context.tmp_dir,
        store: {SQL.SQLite, path: path, busy_timeout: 50},
        agent: [model: model]
      )

    run = Task.async(fn -> Agent.run(book, "Go busy.", profile: "ann") end)
    assert_receive {:waits, pid}, 60_000

    SQL.transaction(Book.sql(Book.fetch!(book)), fn _sql ->
      send(pid, :go)
      {:ok, Process.sleep(400)}
    end)

    assert {:ok, %{status: :done}} = Task.await(run, 60_000)
    assert %{status: :done, continued: 0} = named(book, "busy")
  end

  test "lists are of a profile and its tenant, in pages", context do
    {book, _points} = interrupted(context)
    for name <- ~w(one two three), do: :normal = run(book, name, nil)
    :normal = run(book, "four", nil, profile: "bob")
    {:ok, [four, three | _]} = Runs.list(book)
    assert {four.title, four.tenant, three.tenant} == {"Go four.", "b", nil}
    titles = fn {:ok, runs} -> Enum.map(runs, & &1.title) end
    ann = Skillbook.view(book, "ann")
    assert titles.(Runs.list(ann)) == ["Go three.", "Go two.", "Go one."]
    assert titles.(Runs.list(ann, limit: 1, after: three.ref)) == ["Go two."]
    assert titles.(Runs.list(book, tenant: nil)) == ["Go three.", "Go two.", "Go one."]
    assert titles.(Runs.list(Skillbook.view(book, "bob"))) == ["Go four."]
    {:error, error} = Runs.list(ann, after: four.ref)
    assert Exception.message(error) == ~s(no durable run has the ref "#{four.ref}")

    # `fetch/3` returns what the lists have.
    assert Runs.fetch(book, four.ref) == {:ok, four}
    assert Runs.fetch(ann, three.ref) == {:ok, three}
    assert Runs.fetch(book, four.ref, tenant: "b") == {:ok, four}

    for result <- [
          Runs.fetch(ann, four.ref),
          Runs.fetch(book, four.ref, tenant: nil),
          Runs.fetch(book, four.ref, tenant: "c")
        ],
        do: assert(result == {:error, error})

    assert {:error, %{option: :limit}} = Runs.fetch(book, four.ref, limit: 1)
  end

  test "a run that could not be continued is refused", context do
    {book, _points} = interrupted(context)
    off = durable_book(context.tmp_dir, durable: false)
    model = DurableRows.model(nil)
    stranger = %Skillbook.Profile{id: "eve"}

    for {book, options, message} <- [
          {off, [durable: true],
           "expected nil for a book without :durable, as the option :durable of a run, " <>
             "got: true"},
          {book, [profile: stranger],
           "expected false for a profile that is not one of the book's, as the option " <>
             ":durable of a run, got: true"},
          {book, [assigns: %{pid: self()}],
           "expected false for options that cannot be stored (expected assigns of texts, " <>
             "numbers, booleans, nil, atoms, times, lists and maps, got a process as `pid`), " <>
             "as the option :durable of a run, got: true"}
        ] do
      error =
        assert_raise Skillbook.OptionError, fn ->
          Agent.run(book, "Go.", [model: model] ++ Keyword.put_new(options, :profile, "ann"))
        end

      assert Exception.message(error) == message
      # Without a journal it runs.
      assert {:ok, %{status: :done}} =
               Agent.run(
                 book,
                 "Go z.",
                 [model: model, profile: "ann"]
                 |> Keyword.merge(options)
                 |> Keyword.put(:durable, false)
               )
    end

    {:error, error} = Runs.list(off)

    assert Exception.message(error) ==
             "the book keeps no durable runs; give it the options store: … and durable: true"

    {:error, error} = Runs.continue(book, "no")
    assert Exception.message(error) == ~s(no durable run has the ref "no")
    {:error, error} = Runs.continue(book, "no", profile: "ann")

    assert Exception.message(error) ==
             "expected no value, since the run has its own, as the option :profile of a " <>
               "continued run, got: \"ann\""
  end

  describe "a conversation" do
    alias Skillbook.Conversation

    defp start_conversation(book) do
      {:ok, pid} = Conversation.start_link(book: book, id: "c-1", profile: "ann", idle: :infinity)

      pid
    end

    test "has its transcript again, and goes on with its turn", context do
      {book, points} = interrupted(context)
      pid = start_conversation(book)
      {:ok, %{text: "All done, q."}} = Conversation.ask(pid, "Go q.")
      GenServer.stop(pid)

      # Another process, as on another node.
      pid = start_conversation(book)
      assert length(Conversation.transcript(pid).messages) == 7
      GenServer.stop(pid)

      # Killed in the middle of its turn.
      DurableRows.reset(points, 8)
      options = [conversation: "c-1", transcript: nil]
      assert run(book, "u", points, options) == :killed
      assert eventually(fn -> named(book, "u").status == :interrupted end)
      pid = start_conversation(book)
      {:ok, result} = Conversation.ask(pid, "Go u.")
      # The interrupted turn came first.
      assert named(book, "u").status == :done

      assert [%{content: "Go u."}, %{content: "Go u."}] =
               Enum.filter(result.transcript.messages, &(&1.kind == :input))
    end

    for continue <- [true, false] do
      @tag continue: continue
      test "killed at any point, its turn ends before the next one, continued: #{continue}",
           context do
        durable = [continue: context.continue]
        {book, points} = interrupted(context, durable: durable)
        Process.flag(:trap_exit, true)
        on_event = fn _event -> DurableRows.point(points) end
        commands = [assigns: %{points: points}]
        options = [book: book, id: "c-1", profile: "ann"]

        kill = fn name, at ->
          DurableRows.reset(points, at)
          options = Keyword.put(options, :run, commands: commands, on_event: on_event)
          {:ok, pid} = Conversation.start_link(Keyword.put(options, :id, name))
          :ok = Conversation.subscribe(pid)
          {:ok, _turn} = Conversation.say(pid, "Go #{name}.")

          receive do
            {:EXIT, ^pid, :killed} -> :killed
            {:skillbook_conversation, ^name, {:ended, _turn, {:ok, _result}}} -> :ended
          end
        end

        ended =
          Enum.find(1..100, fn at ->
            name = "k#{at}"

            if kill.(name, at) == :killed do
              # At once, while the turn before it may still run.
              {:ok, pid} = Conversation.start_link(Keyword.put(options, :id, name))
              {:ok, result} = Conversation.ask(pid, "Go #{name}.")
              assert result.text == "All done, #{name}."
              ran = DurableRows.ran(book, name)
              for once <- ~w(a c), do: assert(Map.get(ran, once, 0) in 0..1, "#{at}: #{once}")
              for again <- ~w(b d e f), do: assert(ran[again] in 1..2, "#{at}: #{again}")
              assert_told(name, ran, :blocks)
              inputs = Enum.count(result.transcript.messages, &(&1.kind == :input))
              began? = inputs == 2
              assert inputs in 1..2
              {:ok, runs} = Runs.list(book, limit: 1_000)
              assert Enum.count(runs, &(&1.conversation == name)) == if(began?, do: 2, else: 1)
              false
            else
              true
            end
          end)

        assert ended in 40..60
      end
    end

    test "goes on from what another process has said", context do
      {book, _points} = interrupted(context)
      [one, two] = for _process <- 1..2, do: start_conversation(book)
      {:ok, _result} = Conversation.ask(one, "Go m.")
      {:ok, _result} = Conversation.ask(two, "Still there?")
      {:ok, result} = Conversation.ask(one, "And now?")
      inputs = for %{kind: :input, content: text} <- result.transcript.messages, do: text
      assert inputs == ["Go m.", "Still there?", "And now?"]
    end

    test "that waits sleeps while other runs begin and end", context do
      {book, _points} = interrupted(context)
      pid = start_conversation(book)
      {:ok, %{status: :done}} = Conversation.ask(pid, "Go s.")
      asleep = {:current_function, {:erlang, :hibernate, 3}}
      assert eventually(fn -> Process.info(pid, :current_function) == asleep end)
      :erlang.trace(pid, true, [:receive])
      {:ok, %{status: :done}} = Agent.run(book, "Go t.", profile: "ann")
      refute_receive {:trace, ^pid, :receive, _message}, 50
    end

    @tag :capture_log
    test "goes on with its turn after its book has crashed", context do
      test = self()

      model =
        Skillbook.Model.Function.new(fn _, _ ->
          send(test, {:waits, self()})
          receive do: (:go -> "Done.")
        end)

      # The book continues none by itself.
      durable = [continue: false, lease: 1_000]
      {book, _points} = interrupted(context, agent: [model: model], durable: durable)
      pid = start_conversation(book)
      :ok = Conversation.subscribe(pid)
      {:ok, turn} = Conversation.say(pid, "Go c.")
      assert_receive {:waits, _model}, 60_000
      %{ref: ref} = named(book, "c")
      Process.exit(GenServer.whereis(book), :kill)
      assert_receive {:skillbook_conversation, _, {:ended, ^turn, {:error, _killed}}}, 60_000
      assert_receive {:skillbook_conversation, _, {:started, again, ^ref}}, 60_000
      assert_receive {:waits, model}, 60_000
      send(model, :go)

      assert_receive {:skillbook_conversation, _, {:ended, ^again, {:ok, %{text: "Done."}}}},
                     60_000

      assert %{status: :done, ref: ^ref} = named(book, "c")
      assert List.last(Conversation.transcript(pid).messages).content == "Done."
    end

    test "that is stopped is not continued", context do
      test = self()

      waits =
        Skillbook.Model.Function.new(fn _, _ ->
          send(test, :waits)
          Process.sleep(:infinity)
        end)

      {book, _points} = interrupted(context, agent: [model: waits], durable: true)
      pid = start_conversation(book)
      {:ok, _turn} = Conversation.say(pid, "Go i.")
      assert_receive :waits, 60_000
      :ok = Conversation.stop(pid)
      :ok = Runs.Server.sweep(book)
      assert named(book, "i").status == :stopped
      GenServer.stop(pid)
      pid = start_conversation(book)
      assert %{status: :idle} = Conversation.info(pid)
      assert [%{kind: :prompt}, %{kind: :input}] = Conversation.transcript(pid).messages
    end
  end
end
