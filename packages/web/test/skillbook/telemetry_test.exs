defmodule Skillbook.TelemetryTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Store.Follower
  alias Skillbook.{Agent, Connections, Embedder, EmbedderError, FakeSQL}
  alias Skillbook.{Model, ModelError, Scheduler, Telemetry}
  alias Skillbook.Test.HTTPServer

  @moduletag :tmp_dir
  @moduletag :capture_log

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/run.md" => page("x.run", handler("Text") ++ [aliases: "[start]"]),
      "x/list.md" => page("x.list", handler("ErrorText")),
      "x/crash.md" => page("x.crash", handler("Raise")),
      "x/hang.md" => page("x.hang", handler("Hang")),
      "x/odd.md" => page("x.odd", handler("Nonsense")),
      "x/gone.md" => page("x.gone", handler: "Nowhere"),
      "x/page.md" => page("x.page", [], String.duplicate("word ", 100)),
      "x/tell.md" => page("x.tell", handler("Tell"))
    })

    :ok
  end

  defp start(folder, options \\ []) do
    book =
      book([sources: [folder], builtins: false, watch: false, profiles: [[id: "ann"]]] ++ options)

    :telemetry.listen(book)
    {book, Skillbook.view(book, "ann")}
  end

  # The first attempt may fail before the test listens.
  defp fails_twice do
    calls = :counters.new(1, [])

    Embedder.Function.new("m", fn texts ->
      :counters.add(calls, 1, 1)

      if :counters.get(calls, 1) < 3,
        do: {:error, %EmbedderError{kind: :connection, reason: "refused"}},
        else: Enum.map(texts, fn _ -> [1.0] end)
    end)
  end

  defp received(seen \\ []) do
    receive do
      {[:skillbook | _] = name, measurements, metadata} ->
        received([{name, measurements, metadata} | seen])
    after
      0 -> Enum.reverse(seen)
    end
  end

  test "the router has a span, and an event for each stage, without texts", %{tmp_dir: folder} do
    write(folder, %{
      "tea.md" => "---\nname: tea\ndescription: Tea\ntrigger_keywords: [tea]\n---\nBoil.\n"
    })

    {book, view} = start(folder)
    common = %{book: book, profile: "ann", among: :skills}
    result = Skillbook.Preflight.run(view, "A cup of tea for hunter2")
    assert [%{name: "tea"}] = result.picks

    assert [
             {[:skillbook, :preflight, :start], %{system_time: _}, ^common},
             {[:skillbook, :preflight, :stage], %{duration: _}, keywords},
             {[:skillbook, :preflight, :stage], %{duration: _}, retrieval},
             {[:skillbook, :preflight, :stop], %{duration: _}, stop}
           ] = events = received()

    assert keywords == Map.merge(common, %{stage: :keywords, status: :ok})
    assert retrieval == Map.merge(common, %{stage: :retrieval, status: :ok})
    assert stop == Map.merge(common, %{picks: ["tea"], cached: false})
    refute inspect(events, limit: :infinity) =~ "hunter2"

    Skillbook.Preflight.run(view, "A cup of tea for hunter2")
    cached = Map.merge(common, %{picks: ["tea"], cached: true})
    assert [{_, _, ^common}, {[:skillbook, :preflight, :stop], _, ^cached}] = received()

    # The choice of a profile has the same events.
    Skillbook.Preflight.profile(view, "A cup of tea for hunter2")
    common = %{common | among: :profiles}
    retrieval = Map.merge(common, %{stage: :retrieval, status: :ok})
    stop = Map.merge(common, %{picks: [], cached: false})

    assert [
             {[:skillbook, :preflight, :start], %{system_time: _}, ^common},
             {[:skillbook, :preflight, :stage], %{duration: _}, ^retrieval},
             {[:skillbook, :preflight, :stop], %{duration: _}, ^stop}
           ] = events = received()

    refute inspect(events, limit: :infinity) =~ "hunter2"
  end

  test "each command has a start and a stop event", %{tmp_dir: folder} do
    {book, view} = start(folder)
    common = %{book: book, profile: "ann", tenant: nil, generation: view.generation}
    common = Map.merge(common, %{skill: nil, effect: nil})

    rows = [
      {"x.run --a secret", %{skill: "x.run", effect: :write}, :stop, %{status: :ok}},
      {"start --a secret", %{skill: "x.run", effect: :write}, :stop, %{status: :ok}},
      {"x.list", %{skill: "x.list", effect: :read}, :stop, %{status: :error}},
      {"x.page", %{skill: "x.page", effect: :read}, :stop,
       %{status: :template, reads: ["x.page"]}},
      {"x.crash --a secret", %{skill: "x.crash", effect: :write}, :exception,
       %{status: :error, kind: :crash}},
      {"x.hang", %{skill: "x.hang", effect: :write}, :exception,
       %{status: :error, kind: :timeout}},
      {"x.odd --a secret", %{skill: "x.odd", effect: :write}, :exception,
       %{status: :error, kind: :bad_return}},
      {"x.gone", %{skill: "x.gone", effect: :write}, :exception,
       %{status: :error, kind: :missing}},
      {"x.run --a secret --help", %{}, :stop, %{status: :help, reads: ["x.run"]}},
      {"get_skill: x.page", %{}, :stop, %{status: :help, reads: ["x.page"]}},
      {"get_skill: secret", %{}, :stop, %{status: :error}},
      {"password=secret", %{}, :stop, %{status: :error}},
      {"x.run 'secret", %{}, :stop, %{status: :error}}
    ]

    for {line, told, how, ended} <- rows do
      timeout = if line == "x.hang", do: 1, else: 60_000
      Pipeline.commands(view, [line], timeout: timeout)
      events = for {[_, :command, _], _, _} = event <- received(), do: event
      metadata = Map.merge(common, told)
      reads = if how == :stop, do: %{reads: []}, else: %{}
      both = metadata |> Map.merge(reads) |> Map.merge(ended)
      assert [{[_, _, :start], began, ^metadata}, {[_, _, ^how], measured, ^both}] = events
      assert Enum.sort(Map.keys(began)) == [:monotonic_time, :system_time]
      assert Enum.sort(Map.keys(measured)) == [:duration, :monotonic_time]
      assert measured.duration == measured.monotonic_time - began.monotonic_time
      refute inspect(events) =~ "secret"
    end
  end

  test "the events of a command have its profile's tenant", %{tmp_dir: folder} do
    {_book, %{profile: profile} = view} = start(folder)

    for tenant <- ["acme", :all, nil] do
      Pipeline.commands(%{view | profile: %{profile | tenant: tenant}}, ["x.list"])
      tenants = for {[_, :command, _], _, metadata} <- received(), do: metadata.tenant
      assert tenants == [tenant, tenant]
    end
  end

  test "an error in the caller's code is an exception of the command", %{tmp_dir: folder} do
    {book, view} = start(folder)
    agent = fn -> raise "oops" end
    assert_raise RuntimeError, fn -> Pipeline.commands(view, ["x.run"], agent: agent) end

    assert [{[_, _, :start], _, started}, {[_, _, :exception], %{duration: _}, ended}] =
             for({[_, :command, _], _, _} = event <- received(), do: event)

    assert %{book: ^book, skill: "x.run"} = started
    assert ended == Map.merge(started, %{status: :error, kind: :error})
  end

  test "events have flags with telemetry_flags: true", %{tmp_dir: folder} do
    {_, view} = start(folder, telemetry_flags: true)
    Pipeline.commands(view, ["x.run --a secret"])
    Pipeline.commands(view, ["x.run --a secret --help"])
    flags = for {[_, :command, _], _, metadata} <- received(), do: metadata[:flags]
    assert flags == [%{"a" => "secret"}, %{"a" => "secret"}, nil, nil]

    Pipeline.commands(view, ["x.run", "x.run --a {1}"])
    flags = for {[_, :command, :stop], _, metadata} <- received(), do: metadata[:flags]
    assert flags == [%{}, %{"a" => "{1}"}]
  end

  test "decisions", %{tmp_dir: folder} do
    {book, view} = start(folder)

    rows = [
      {:run, [], :ok},
      {:deny, [], :deny},
      {:delegate, [], :delegate},
      {:ask, [ask: fn _ -> :allow end], :ok},
      {:ask, [ask: fn _ -> :deny end], :denied},
      {:ask, [ask: fn _ -> raise "oops" end], :unanswered},
      {:ask, [], :unanswered}
    ]

    for {writes, options, decision} <- rows do
      Pipeline.commands(
        %{view | profile: %{view.profile | writes: writes}},
        ["x.run --a secret", "x.list"],
        options
      )

      assert [{_, %{duration: _}, metadata}] =
               for({[_, :policy, _], _, _} = event <- received(), do: event)

      assert metadata == %{
               book: book,
               profile: "ann",
               skill: "x.run",
               writes: writes,
               decision: decision
             }
    end
  end

  test "reloads", %{tmp_dir: folder} do
    {book, _} = start(folder)
    write(folder, %{"x/new.md" => page("x.new"), "x/page.md" => page("x.page")})
    File.rm!(Path.join(folder, "x/gone.md"))
    Skillbook.reload(book)
    assert [{[:skillbook, :catalog, :reload], measurements, metadata}] = received()
    assert %{entries: 8, added: 1, changed: 1, removed: 1} = measurements
    assert measurements.duration > 0 and metadata == %{book: book, generation: 2}
  end

  test "an exception is reported and raised again" do
    book = :"none_#{System.unique_integer([:positive])}"
    :telemetry.listen(book)
    metadata = %{book: book, profile: "ann", among: :skills}

    for {kind, fun} <- [
          error: fn -> raise "oops" end,
          throw: fn -> throw(1) end,
          exit: fn -> exit(:bye) end
        ] do
      caught =
        try do
          Telemetry.span([:skillbook, :preflight], metadata, fun)
        catch
          caught, _ -> caught
        end

      assert caught == kind
      assert_receive {[:skillbook, :preflight, :start], _, %{book: ^book}}

      assert_receive {[:skillbook, :preflight, :exception], %{duration: _},
                      %{book: ^book, kind: ^kind}}
    end
  end

  test "log lines have metadata of the call", %{tmp_dir: folder} do
    {book, view} = start(folder)
    test = self()
    run = fn -> Pipeline.commands(view, ["x.tell --a secret"], assigns: %{tell: test}) end
    task = Task.async(run)
    assert_receive {:handler, pid, _}, 60_000
    {:dictionary, dictionary} = Process.info(pid, :dictionary)
    metadata = dictionary[:"$logger_metadata$"]
    assert Map.take(metadata, [:skill, :command, :book, :profile]) == metadata
    assert metadata == %{skill: "x.tell", command: "x.tell", book: book, profile: "ann"}
    send(pid, :go_on)
    Task.await(task, :infinity)
  end

  # Runs of a model that answers after another attempt, fails, and is interrupted.
  defp converse(book) do
    error = %ModelError{kind: :server, reason: "oh"}

    answers =
      Model.Function.new(fn _messages, options ->
        options[:on_retry].(%{attempt: 2, delay: 1, error: error})
        "Done."
      end)

    Agent.run(book, "Go.", model: answers, profile: "ann")

    Agent.run(book, "Go.",
      model: Model.Function.new(fn _, _ -> {:error, error} end),
      profile: "ann"
    )

    assert_raise RuntimeError, fn ->
      Agent.run(book, "Go.", model: answers, profile: "ann", on_event: fn _ -> raise "oops" end)
    end
  end

  test "workflows and firings", %{tmp_dir: folder} do
    scheduled = [schedule: ~s("0 8 * * *"), run_as: "ann"]
    at = ~U[2026-03-01 08:00:00Z]

    write(folder, %{
      "x/flow.md" =>
        page(
          "x.flow",
          scheduled,
          "# x.flow\n\n## Behavior\n\n```cmd\nx.run\nx.list\nx.run\n```\n"
        ),
      "x/prose.md" => page("x.prose", scheduled),
      "x/raised.md" => page("x.raised", scheduled)
    })

    model =
      Model.Function.new(fn messages, _options ->
        if List.last(messages).content =~ "x.raised", do: raise("oops"), else: "Done."
      end)

    schedules = [clock: fn -> DateTime.add(at, 10) end]
    {book, view} = start(folder, store: ":memory:", agent: [model: model], schedules: schedules)
    common = %{book: book, profile: "ann"}

    Pipeline.commands(view, ["x.flow"])
    about = Map.put(common, :skill, "x.flow")
    stopped = Map.merge(about, %{status: :stopped, steps: 2})

    assert [{[_, _, :start], _, ^about}, {[_, _, :stop], %{duration: _}, ^stopped}] =
             for({[_, :workflow, _], _, _} = event <- received(), do: event)

    for {name, how, firing, workflow} <- [
          {"x.flow", :stop, %{status: :failed}, %{status: :stopped, steps: 2}},
          {"x.prose", :stop, %{status: :ok}, %{status: :done, steps: 0}},
          {"x.raised", :exception, %{kind: :error}, %{kind: :error}}
        ] do
      Scheduler.fire(book, name)
      Scheduler.await(book)
      about = Map.put(common, :skill, name)
      fired = Map.merge(about, %{at: at, attempt: 1})

      events =
        for {[_, kind, _], _, _} = event <- received(), kind in [:firing, :workflow], do: event

      assert [
               {[_, :firing, :start], _, ^fired},
               {[_, :workflow, :start], _, ^about},
               {[_, :workflow, ^how], %{duration: _}, workflow_ended},
               {[_, :firing, ^how], %{duration: _}, firing_ended}
             ] = events

      assert {workflow_ended, firing_ended} ==
               {Map.merge(about, workflow), Map.merge(fired, firing)}
    end
  end

  # An account whose sign-in answers with a token, and knows no address.
  defp connections do
    {_pid, url} =
      HTTPServer.start([
        HTTPServer.answer(~s({"access_token": "a", "refresh_token": "b", "expires_in": 3600})),
        [{:head, 404, [{"content-length", "0"}]}],
        HTTPServer.answer("{}")
      ])

    account = [vendor: Skillbook.Test.Connections.Vendor, client_id: "c", url: url]
    key = Connections.generate_key()
    [key: fn -> key end, google: account]
  end

  defp connect(book) do
    ann = [profile: "ann"]
    begin = ann ++ [redirect: "http://127.0.0.1:1/", for: ["email.search"]]
    {:ok, %{state: state}} = Connections.authorize(book, :google, begin)
    {:ok, _} = Connections.complete(book, %{"state" => state, "code" => "d"}, ann)
    {:ok, account} = Connections.account(Skillbook.Test.Connections.context(book, "ann"), :mail)
    request = [url: "https://gmail.googleapis.com/gmail/v1/users/me/profile"]
    {:ok, _} = Connections.Client.request(account, request, scopes: [])
  end

  test "every listed event is sent, with its fields", %{tmp_dir: folder} do
    scheduled = [schedule: ~s("0 8 * * *"), run_as: "ann"]

    write(folder, %{
      "x/call.md" => page("x.call", handler("Call")),
      "x/flow.md" =>
        page("x.flow", scheduled, "# x.flow\n\n## Behavior\n\n```cmd\nx.run\nx.run\n```\n"),
      "x/prose.md" => page("x.prose", scheduled)
    })

    notes = folder <> "-notes"
    on_exit(fn -> File.rm_rf!(notes) end)
    # More than one batch of 1,000.
    write(notes, Map.new(1..1001, &{"#{&1}.md", "note"}))

    {book, view} =
      start(folder,
        max_running: 1,
        max_wait: 1,
        max_result: 50,
        breaker: [failures: 1, cooldown: 1],
        vaults: [[path: notes, name: "notes"]],
        agent: [model: Model.Function.new(fn _messages, _options -> raise "oops" end)],
        embedder: fails_twice(),
        schedules: [clock: fn -> ~U[2026-03-01 08:00:10Z] end],
        store: {FakeSQL, name: :telemetry_store, path: ":memory:"},
        store_poll: 1,
        connections: connections()
      )

    test = self()
    connect(book)
    assert_receive {[_, :embedding, :retry], _, _} = retry, 60_000
    # The entries, and the notes that are indexed by then.
    assert_receive {[_, :embedding, :progress], %{done: n, total: n}, %{book: ^book}} = done
                   when n >= 11,
                   60_000

    Skillbook.search(view, "x")
    :ok = Follower.fetch(Skillbook.Book.fetch!(book).catalog, "acme", Skillbook.Book.fetch!(book))
    {:ok, _} = Skillbook.Vault.sync(book, "notes")
    FakeSQL.away(:telemetry_store, true)
    assert_receive {[_, :store, :away], _, _} = away, 60_000
    {:error, _} = Follower.sync(book, 1_000, 1)
    FakeSQL.away(:telemetry_store, false)
    assert_receive {[_, :store, :back], _, _} = back, 60_000
    run = fn line, assigns -> Pipeline.commands(view, [line], assigns: assigns) end
    run.("x.call", %{call: fn _, _ -> raise "oops" end})
    assert_receive {[_, :breaker, :half_open], _, _} = half_open, 60_000
    run.("x.call", %{call: fn _, _ -> {:ok, "fine"} end})
    run.("x.call", %{call: fn _, _ -> raise "oops" end})
    {:ok, [_]} = Skillbook.reset_breaker(view, "x.call", by: "Bob")
    run.("x.page", %{})
    task = Task.async(fn -> run.("x.tell", %{tell: test}) end)
    assert_receive {:handler, handler, _}, 60_000
    run.("x.run", %{})
    send(handler, :go_on)
    Task.await(task, :infinity)
    Skillbook.reload(book)
    converse(book)
    asked = %{view | profile: %{view.profile | writes: :ask}}
    Pipeline.commands(asked, ["x.run"], ask: fn _request -> :pending end)
    Skillbook.prompt(view, sections: [{"User", "Ann"}])
    Skillbook.Preflight.run(view, "x")
    catch_error(Skillbook.Preflight.run(%{view | ref: make_ref()}, "x"))
    :telemetry.listen(:telemetry_mcp)
    sources = [{:mcp, ["true"], label: "gone"}]
    start_supervised!({Skillbook, name: :telemetry_mcp, watch: false, sources: sources})
    assert_receive {[_, :mcp_client, :listed], _, _} = listed_server, 60_000
    for name <- ["x.flow", "x.prose"], do: Scheduler.fire(book, name)
    Scheduler.await(book)

    # One request of HTTP, of a client of MCP.
    params = %{"protocolVersion" => "2025-11-25", "capabilities" => %{}}
    web = Skillbook.Test.Requests.web(book)
    begin = %{"jsonrpc" => "2.0", "id" => 1, "method" => "initialize", "params" => params}
    headers = [{"accept", "application/json, text/event-stream"}]
    ask = &Skillbook.Test.Requests.call(web, "POST", "/mcp", json: &1, headers: &2, as: "ann")
    session = Skillbook.Test.Requests.header(ask.(begin, headers), "mcp-session-id")
    ping = %{"jsonrpc" => "2.0", "id" => 2, "method" => "ping"}
    assert ask.(ping, [{"mcp-session-id", session} | headers]).status == 200

    keys = fn map -> map |> Map.keys() |> Enum.sort() end

    told =
      for {[:skillbook | _] = name, measurements, metadata} <- [
            retry,
            done,
            away,
            back,
            listed_server,
            half_open | received()
          ],
          uniq: true do
        {name, keys.(measurements), keys.(metadata)}
      end

    listed =
      for event <- Telemetry.describe_events(),
          do: {event.name, Enum.sort(event.measurements), Enum.sort(event.metadata)}

    assert Enum.sort(told) == Enum.sort(listed)
  end
end
