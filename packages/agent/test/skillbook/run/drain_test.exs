defmodule Skillbook.Run.DrainTest do
  # A book stops while commands, schedules, approved calls, workflows and agents run.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{Agent, AgentError, ApprovalError, Book, HandlerError, Model, ProfileError}
  alias Skillbook.{Scheduler, SQL, StoppedError, View, Workflow}
  alias Skillbook.Run.Drain
  alias Skillbook.Scheduler.Local

  @moduletag :tmp_dir
  @moduletag :capture_log

  doctest Skillbook.StoppedError

  @interrupted "`x.tell` was interrupted: the skills are being shut down. It may have done " <>
                 "part of its work: check before you try again, or tell the user."
  @stopped "`x.tell` was not run: the skills have just been shut down. Tell the user."

  setup %{tmp_dir: folder} do
    tell = handler("Tell")

    write(folder, %{
      "pages/x/tell.md" => page("x.tell", tell),
      "pages/x/pay.md" => page("x.pay", tell ++ [approval: "required"]),
      "pages/x/call.md" => page("x.call", handler("Call")),
      "pages/x/due.md" => page("x.due", tell ++ [schedule: "* * * * *", run_as: "default"]),
      "pages/x/two.md" => page("x.two", [], "## Behavior\n\n```cmd\nx.tell\nx.tell\n```\n")
    })

    :ok
  end

  defp start(folder, options \\ []) do
    name = :"drain_#{System.unique_integer([:positive])}"
    {assigns, options} = Keyword.pop(options, :assigns, %{})

    defaults = [
      name: name,
      sources: [Path.join(folder, "pages")],
      builtins: false,
      watch: false,
      drain: 60_000,
      assigns: Map.put(assigns, :tell, self())
    ]

    options = Keyword.merge(defaults, options)
    start_supervised!({Skillbook, options}, restart: :temporary, id: name)

    name
  end

  defp run(book, line) do
    Task.async(fn ->
      [result] = Skillbook.run(Skillbook.view(book), "```cmd\n#{line}\n```").results
      result
    end)
  end

  defp handlers(count) do
    for _ <- 1..count do
      assert_receive {:handler, pid, _context}
      pid
    end
  end

  # Stops a book, and returns when it waits for what runs.
  defp stop(book) do
    stop = Task.async(fn -> Supervisor.stop(book) end)
    assert eventually(fn -> Drain.state(book) != :open end)
    stop
  end

  defp counts(results) do
    Enum.frequencies_by(results, fn
      %{status: :ok} -> :finished
      %{error: %HandlerError{kind: kind}} -> kind
    end)
  end

  test "200 runs end, and nothing new begins", %{tmp_dir: folder} do
    book = start(folder)
    view = Skillbook.view(book)
    runs = for _ <- 1..200, do: run(book, "x.tell")
    handlers = handlers(200)
    stop = stop(book)

    [new] = Skillbook.run(view, "```cmd\nx.tell\n```").results
    assert {new.status, new.error.kind, new.content} == {:error, :stopped, @stopped}
    refute_received {:handler, _, _}

    for pid <- handlers, do: send(pid, :go_on)
    assert runs |> Task.await_many(:infinity) |> counts() == %{finished: 200}
    assert Task.await(stop, :infinity) == :ok
    assert Book.find(book) == nil
  end

  test "after its time, of 200 runs those that still run are interrupted, and none is lost", %{
    tmp_dir: folder
  } do
    book = start(folder, drain: 300)
    runs = for _ <- 1..200, do: run(book, "x.tell")
    handlers = handlers(200)
    stop = stop(book)
    for pid <- Enum.take(handlers, 150), do: send(pid, :go_on)

    results = Task.await_many(runs, :infinity)
    assert counts(results) == %{finished: 150, interrupted: 50}

    assert Enum.uniq(for %{status: :error} = result <- results, do: result.content) == [
             @interrupted
           ]

    assert Task.await(stop, :infinity) == :ok
  end

  test "handlers that trap exits end too", %{tmp_dir: folder} do
    test = self()

    call = fn _flags, _context ->
      Process.flag(:trap_exit, true)
      send(test, {:handler, self(), nil})
      Process.sleep(:infinity)
    end

    book = start(folder, drain: 50, assigns: %{call: call})
    task = run(book, "x.call")
    handlers(1)
    stop = stop(book)
    assert %{error: %HandlerError{kind: :interrupted}} = Task.await(task, :infinity)
    assert Task.await(stop, :infinity) == :ok
  end

  test "commands of a handler that runs still begin", %{tmp_dir: folder} do
    call = fn _flags, context ->
      # In a process of its own, too.
      nested = fn -> Skillbook.run(context.view, "```cmd\nx.tell\n```").results end
      [_first] = nested.()
      [second] = Task.await(Task.async(nested), :infinity)
      {:ok, second.content}
    end

    book = start(folder, assigns: %{call: call})
    task = run(book, "x.call")
    [first] = handlers(1)
    stop = stop(book)
    send(first, :go_on)
    [second] = handlers(1)
    send(second, :go_on)
    assert %{status: :ok, content: "went on"} = Task.await(task, :infinity)
    assert Task.await(stop, :infinity) == :ok
  end

  test "a stop without runs takes no time, and one after killed callers neither", %{
    tmp_dir: folder
  } do
    book = start(folder)
    # Not linked, so that the test lives on.
    {:ok, supervisor} = Task.Supervisor.start_link()
    view = Skillbook.view(book)
    command = fn -> Skillbook.run(view, "```cmd\nx.tell\n```") end
    task = Task.Supervisor.async_nolink(supervisor, command)
    handlers(1)
    Task.shutdown(task, :brutal_kill)
    {microseconds, :ok} = :timer.tc(fn -> Supervisor.stop(book) end)
    assert microseconds < 5_000_000
  end

  test "a part that fails and is started again stops no run", %{tmp_dir: folder} do
    book = start(folder)
    task = run(book, "x.tell")
    [handler] = handlers(1)
    watcher = GenServer.whereis(Module.concat(book, Watcher))
    Process.exit(watcher, :kill)

    assert eventually(fn ->
             GenServer.whereis(Module.concat(book, Watcher)) not in [nil, watcher]
           end)

    assert Drain.state(book) == :open
    send(handler, :go_on)
    assert %{status: :ok} = Task.await(task, :infinity)
  end

  test "a book that is killed leaves no caller without an answer", %{tmp_dir: folder} do
    book = start(folder)
    runs = for _ <- 1..20, do: run(book, "x.tell")
    handlers(20)
    Process.exit(Process.whereis(book), :kill)
    assert runs |> Task.await_many(:infinity) |> counts() == %{interrupted: 20}
  end

  test "the steps of a workflow that runs still begin, and its run is stored", context do
    %{tmp_dir: folder} = context
    store = Path.join(folder, "skills.db")

    for {ends, drain, status} <- [{:go_on, 60_000, "done"}, {:killed, 100, "interrupted"}] do
      book = start(folder, store: store, scheduler: false, drain: drain)
      task = run(book, "x.two")
      [first] = handlers(1)
      stop = stop(book)
      send(first, :go_on)
      [second] = handlers(1)
      if ends == :go_on, do: send(second, :go_on)
      assert Task.await(task, :infinity).status == if(ends == :go_on, do: :ok, else: :error)
      assert Task.await(stop, :infinity) == :ok

      book = start(folder, store: store, scheduler: false)
      {:ok, [run | _]} = Workflow.runs(View.all(book))
      assert {ends, run.status, run.ran} == {ends, status, 2}
      Supervisor.stop(book)
    end
  end

  describe "a scheduled run" do
    defp scheduled(folder, clock, options) do
      schedules = [clock: fn -> DateTime.from_unix!(:atomics.get(clock, 1)) end]
      schedules = schedules ++ Keyword.get(options, :schedules, [])
      options = Keyword.delete(options, :schedules)
      store = Path.join(folder, "skills.db")
      book = start(folder, [store: store, schedules: schedules] ++ options)
      _ = Scheduler.registered(book)
      book
    end

    defp firings(book) do
      {:ok, agenda} = Skillbook.schedule(View.all(book))
      for row <- agenda.last, do: {row.status, row.text}
    end

    test "ends, or is interrupted, and none begins", %{tmp_dir: folder} do
      clock = :atomics.new(1, [])

      for {ends, drain, minute, stored} <- [
            {:go_on, 60_000, 1, {:ok, "went on"}},
            {:killed, 100, 3, {:interrupted, String.replace(@interrupted, "x.tell", "x.due")}}
          ] do
        :atomics.put(clock, 1, 1_772_352_030 + minute * 60)
        book = scheduled(folder, clock, drain: drain)
        :atomics.put(clock, 1, 1_772_352_060 + minute * 60)
        Local.tick(book)
        [handler] = handlers(1)
        stop = stop(book)
        # The next time comes too late for this node.
        :atomics.put(clock, 1, 1_772_352_120 + minute * 60)
        if ends == :go_on, do: Local.tick(book)
        if ends == :go_on, do: send(handler, :go_on)
        assert Task.await(stop, :infinity) == :ok
        refute_received {:handler, _, _}

        # The time that was missed may run here.
        book = scheduled(folder, clock, schedules: [missed: :skip], drain: 0)
        assert {ends, stored} == {ends, Enum.find(firings(book), &(elem(&1, 0) != :missed))}
        Supervisor.stop(book)
        flush()
      end
    end

    test "that was interrupted runs again with `interrupted: :run`", %{tmp_dir: folder} do
      clock = :atomics.new(1, [])
      :atomics.put(clock, 1, 1_772_352_030)
      schedules = [interrupted: :run, lease: 300]
      book = scheduled(folder, clock, drain: 50, schedules: schedules)
      :atomics.put(clock, 1, 1_772_352_060)
      Local.tick(book)
      handlers(1)
      Supervisor.stop(book)

      book = scheduled(folder, clock, schedules: schedules, drain: 0)
      assert eventually(fn -> beat(book, clock) end)
      assert eventually(fn -> firings(book) == [{:ok, "went on"}] end)
    end

    # Until the lease of the stopped book is over.
    defp beat(book, clock) do
      :atomics.add(clock, 1, 1)
      Scheduler.Server.heartbeat(book)

      receive do
        {:handler, pid, _context} -> send(pid, :go_on)
      after
        100 -> nil
      end
    end

    defp flush do
      receive do
        {:handler, pid, _context} -> send(pid, :go_on) && flush()
      after
        0 -> :ok
      end
    end
  end

  test "an approved call ends, or is interrupted; one that waits goes on waiting", %{
    tmp_dir: folder
  } do
    store = Path.join(folder, "skills.db")

    for {ends, drain, status} <- [{:go_on, 60_000, :done}, {:killed, 100, :interrupted}] do
      options = [store: store, scheduler: false, ask: fn _request -> :pending end]
      book = start(folder, options ++ [drain: drain])
      refs = for _ <- 1..2, do: Task.await(run(book, "x.pay"), :infinity).data.ref
      [ref, waiting] = refs
      approve = fn ref -> Skillbook.approve(book, ref, by: "Bob") end
      approved = Task.async(fn -> approve.(ref) end)
      [handler] = handlers(1)
      stop = stop(book)

      assert {:error, %ApprovalError{kind: :stopping} = error} = approve.(waiting)

      assert Exception.message(error) ==
               "#{waiting} still waits: its book is stopping; approve it on another node, or " <>
                 "later"

      if ends == :go_on, do: send(handler, :go_on)
      assert {:ok, %{status: ^status}} = Task.await(approved, :infinity)
      assert Task.await(stop, :infinity) == :ok

      book = start(folder, options)
      {:ok, approvals} = Skillbook.approvals(book, status: [:pending, status])

      statuses =
        for approval <- approvals, approval.ref in refs, do: {approval.ref, approval.status}

      assert Map.new(statuses) == %{ref => status, waiting => :pending}
      Supervisor.stop(book)
    end
  end

  describe "an agent" do
    # A model that runs a command, of which the first turn reports; then something happens, and it
    # would answer.
    defp model(happen) do
      Model.Function.new(fn messages, _options ->
        case Enum.count(messages, &(&1.role == :assistant)) do
          0 ->
            "```cmd\nx.call\n```"

          1 ->
            happen.()
            "I go on.\n\n```cmd\nx.call\n```"

          _ ->
            "Done."
        end
      end)
    end

    defp agent(book, happen, options \\ []) do
      Agent.run(book, "Go.", [model: model(happen)] ++ options)
    end

    defp kinds(result), do: Enum.map(result.transcript.messages, & &1.kind)

    test "returns its conversation, whatever happens to its book", %{tmp_dir: folder} do
      own = fn _flags, _context -> {:ok, "called"} end
      options = [assigns: %{call: own}, store: ":memory:", scheduler: false, conversations: []]

      ends = [
        stopped: fn book -> Supervisor.stop(book) end,
        killed: fn book ->
          Process.exit(Process.whereis(book), :kill)
          assert eventually(fn -> Book.find(book) == nil end)
        end,
        draining: fn book -> stop(book) end
      ]

      for {name, ends} <- ends, protocol <- [:blocks, :tools] do
        book = start(folder, options)
        answer = agent(book, fn -> ends.(book) end, protocol: protocol)
        assert {name, {:error, %AgentError{error: error, result: result}}} = {name, answer}
        assert {name, error} == {name, %StoppedError{book: book}}
        # The report of the last turn says that nothing ran.
        assert {name, kinds(result)} ==
                 {name, [:prompt, :input, :reply, :report, :reply, :report]}

        assert List.last(result.transcript.messages).content =~ "have just been shut down"
        assert {name, result.turns, result.status} == {name, 2, :error}
      end
    end

    test "whose command runs while the book stops gets its result, and asks no more", %{
      tmp_dir: folder
    } do
      book = start(folder)
      model = Model.Function.new(fn _messages, _options -> "```cmd\nx.tell\n```" end)
      task = Task.async(fn -> Agent.run(book, "Go.", model: model) end)
      [handler] = handlers(1)
      stop = stop(book)
      send(handler, :go_on)
      assert {:error, %AgentError{error: %StoppedError{}} = error} = Task.await(task, :infinity)
      assert kinds(error.result) == [:prompt, :input, :reply, :report]
      assert List.last(error.result.transcript.messages).content == "[1] x.tell\nok\n  went on"

      assert Exception.message(error) ==
               "the run ended in turn 1: the book #{inspect(book)} stops or has stopped; go " <>
                 "on with the transcript when it runs again"

      assert Task.await(stop, :infinity) == :ok
    end

    test "returns its conversation when its database ends", %{tmp_dir: folder} do
      own = fn _flags, _context -> {:ok, "called"} end
      options = [assigns: %{call: own}, store: ":memory:", scheduler: false, conversations: []]

      for _ <- 1..10 do
        book = start(folder, options)

        kill = fn ->
          {_, parts, _, _} = book |> Supervisor.which_children() |> List.keyfind(:parts, 0)
          {_, database, _, _} = parts |> Supervisor.which_children() |> List.last()
          Process.exit(database, :kill)
        end

        # It is started again at some moment.
        case agent(book, kill) do
          {:ok, result} ->
            assert result.status == :done

          {:error, %AgentError{error: %kind{}, result: result}} ->
            assert kind in [SQL.Error, StoppedError]
            assert Enum.take(kinds(result), 5) == [:prompt, :input, :reply, :report, :reply]
        end
      end
    end

    test "returns its conversation when the function of profiles fails", %{tmp_dir: folder} do
      for {name, fails, kind} <- [
            {:raise, fn -> raise "no" end, :crash},
            {:throw, fn -> throw(:no) end, :crash},
            {:exit, fn -> exit(:no) end, :crash},
            {:error, fn -> {:error, %RuntimeError{message: "no"}} end, :error},
            {nil, fn -> nil end, :unknown},
            {:other, fn -> 1 end, :answer}
          ] do
        state = :atomics.new(1, [])

        profiles = fn id ->
          if :atomics.get(state, 1) == 0, do: {:ok, [id: id]}, else: fails.()
        end

        own = fn _flags, _context -> {:ok, "called"} end
        book = start(folder, profiles: profiles, assigns: %{call: own})
        answer = agent(book, fn -> :atomics.put(state, 1, 1) end, profile: "ann")

        assert {name, {:error, %AgentError{error: %ProfileError{kind: ^kind}, result: result}}} =
                 {name, answer}

        assert {name, kinds(result)} ==
                 {name, [:prompt, :input, :reply, :report, :reply, :report]}
      end
    end
  end
end
