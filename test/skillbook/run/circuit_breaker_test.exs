defmodule Skillbook.Run.CircuitBreakerTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.CircuitBreaker
  alias Skillbook.{Book, HandlerError, OutOfServiceError, Profile, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  doctest Skillbook.OutOfServiceError

  # Commands whose handler obeys its flag; after `failures` failures in a row they are out of
  # service.
  defp start(folder, breaker) do
    write(folder, %{
      "x/run.md" => page("x.run", handler("Call")),
      "x/other.md" => page("x.other", handler("Call"))
    })

    book = book(sources: [folder], builtins: false, watch: false, breaker: breaker)
    :telemetry.listen(book)
    book
  end

  defp run(book, does, line \\ "x.run") do
    [result] =
      Pipeline.commands(Skillbook.view(book), [line],
        assigns: %{call: call(does)},
        timeout: timeout(does)
      )

    result
  end

  defp call(:answer), do: fn _, _ -> {:ok, "fine"} end
  defp call(:error), do: fn _, _ -> {:error, "no such room"} end

  defp call(:error_result),
    do: fn _, _ -> {:ok, %Skillbook.Result{status: :error, content: "no"}} end

  defp call(:crash), do: fn _, _ -> raise "oops" end
  defp call(:hang), do: fn _, _ -> Process.sleep(:infinity) end
  defp call(:nonsense), do: fn _, _ -> :nonsense end

  defp timeout(:hang), do: 1
  defp timeout(_), do: 60_000

  defp in_service?(book), do: not match?(%OutOfServiceError{}, run(book, :answer).error)

  test "counts crashes, timeouts and invalid values as failures", %{tmp_dir: folder} do
    rows = [
      {~w(crash crash crash)a, false},
      {~w(hang hang hang)a, false},
      {~w(nonsense nonsense nonsense)a, false},
      {~w(crash hang nonsense)a, false},
      {~w(crash crash)a, true},
      {~w(crash crash answer crash crash)a, true},
      {~w(crash crash error crash crash)a, true},
      {~w(error error error error)a, true},
      {~w(error_result error_result error_result)a, true},
      {~w(crash crash answer crash crash crash)a, false}
    ]

    for {does, serves} <- rows do
      book = start(folder, failures: 3, cooldown: 600_000)
      for what <- does, do: refute(match?(%OutOfServiceError{}, run(book, what).error))
      assert {does, in_service?(book)} == {does, serves}
    end
  end

  test "a missing handler is not a failure", %{tmp_dir: folder} do
    book = start(folder, failures: 1, cooldown: 600_000)
    write(folder, %{"x/run.md" => page("x.run", handler: "Nowhere")})
    Skillbook.reload(book)
    for _ <- 1..3, do: assert(%HandlerError{kind: :missing} = run(book, :answer).error)
  end

  test "an open breaker runs nothing and reports it to model and operator", %{tmp_dir: folder} do
    book = start(folder, failures: 2, cooldown: 600_000)
    before = DateTime.utc_now()
    assert Skillbook.diagnostics(book) == []
    for _ <- 1..2, do: run(book, :crash)
    result = run(book, :answer)

    assert %OutOfServiceError{name: "x.run", failures: 2, since: since, retry_in: retry_in} =
             result.error

    assert DateTime.compare(since, before) != :lt and retry_in in 1..600
    time = Calendar.strftime(since, "%Y-%m-%d %H:%M:%S")

    assert result.content ==
             "`x.run` was not run: it failed 2 times in a row and is out of service since " <>
               "#{time} UTC. " <>
               "Try again in #{retry_in} s, and go on without it until then, or tell the user."

    assert [diagnostic] = Skillbook.diagnostics(book)
    path = Path.join(folder, "x/run.md")

    assert to_string(diagnostic) ==
             "#{path}: error: expected results of the handler Skillbook.TestHandlers.Call, " <>
               "got 2 failures in a row; " <>
               "`x.run` is out of service since #{String.replace(time, " ", "T")}Z " <>
               "for the profile \"default\" [out_of_service]\n" <>
               "  hint: see the log for the cause; after the cooldown the next call tries it " <>
               "again"

    assert diagnostic.code in Skillbook.Diagnostic.codes()
    # Another skill with the same handler has its own count, and help is no call.
    assert run(book, :answer, "x.other").status == :ok
    assert run(book, :answer, "x.run --help").status == :help

    assert_receive {[:skillbook, :breaker, :opened], %{failures: 2},
                    %{book: ^book, skill: "x.run", profile: "default"}}
  end

  describe "profiles" do
    defp run_as(book, profile, does) do
      view = Skillbook.view(book, %Skillbook.Profile{id: profile})
      [result] = Pipeline.commands(view, ["x.run"], assigns: %{call: call(does)})
      result
    end

    defp serves?(book, profile),
      do: not match?(%OutOfServiceError{}, run_as(book, profile, :answer).error)

    test "failures for one do not count for another", %{tmp_dir: folder} do
      book = start(folder, failures: 2, cooldown: 600_000)
      for _ <- 1..2, do: run_as(book, "ann", :crash)
      refute serves?(book, "ann")
      assert serves?(book, "bob")
      # Successes of one do not reset the count of another either.
      run_as(book, "bob", :crash)
      assert serves?(book, "carl")
      run_as(book, "bob", :crash)
      refute serves?(book, "bob")
      assert [%{message: message}] = Skillbook.diagnostics(book)
      assert message =~ ~r/out of service since \S+ for the profiles "ann", "bob"\z/
      for id <- ~w(dora eve), _ <- 1..2, do: run_as(book, id, :crash)
      assert [%{message: message}] = Skillbook.diagnostics(book)
      assert message =~ ~r/ for the profiles "ann", "bob", "dora" and 1 more\z/
    end

    test "see their own failures, and an unrestricted profile all", %{tmp_dir: folder} do
      book = start(folder, failures: 2, cooldown: 600_000)
      for id <- ["ann", "ann", "bob"], do: run_as(book, id, :crash)

      rows = fn view ->
        for row <- CircuitBreaker.list(Book.fetch!(book), view) do
          assert is_struct(row.retry_at, DateTime) == (row.state == :open)
          {row.name, row.profile, row.state, row.failures}
        end
      end

      {ann, bob} = {{"x.run", "ann", :open, 2}, {"x.run", "bob", :closed, 1}}

      for {view, expected} <- [
            {View.all(book), [ann, bob]},
            {Skillbook.view(book, Profile.new!(id: "ann")), [ann]},
            {Skillbook.view(book, Profile.new!(id: "bob", grants: :all)), [ann, bob]},
            {Skillbook.view(book, Profile.new!(id: "carl")), []},
            {Skillbook.view(book, Profile.new!(id: "ann", skills: ["x.other"])), []}
          ],
          do: assert(rows.(view) == expected)

      # A changed page counts anew.
      write(folder, %{"x/run.md" => page("x.run", handler("Call"), "Changed.\n")})
      Skillbook.reload(book)
      assert rows.(View.all(book)) == []
    end

    test "have a limited number of counts, and the oldest are dropped", %{tmp_dir: folder} do
      book = start(folder, failures: 1, cooldown: 600_000)
      view = Skillbook.view(book)
      {:ok, entry} = Skillbook.View.fetch(view, "x.run")
      {:ok, module} = Skillbook.Entry.fetch_handler(entry)
      book = Skillbook.Book.fetch!(book)

      {:ok, routed} = Skillbook.Router.route(view, "x.run")
      context = Skillbook.Executor.context(view, routed)

      context = fn number ->
        profile = %Skillbook.Profile{id: "p#{number}"}
        %{context | profile: profile}
      end

      sizes =
        for number <- 1..25_000 do
          :ok = CircuitBreaker.leave(book, context.(number), module, :failed)
          :ets.info(Module.concat(book.name, "CircuitBreaker"), :size)
        end

      assert Enum.max(sizes) == 10_000

      out? =
        &match?({:error, %OutOfServiceError{}}, CircuitBreaker.check(book, context.(&1), module))

      refute out?.(1)
      for number <- 20_001..25_000, do: assert(out?.(number))
    end
  end

  test "ignores further failures of concurrent calls once it is open", %{
    tmp_dir: folder
  } do
    book = start(folder, failures: 5, cooldown: 600_000)
    test = self()

    call = fn _, _ ->
      send(test, {:runs, self()})
      receive(do: (:fail -> raise "oops"))
    end

    view = Skillbook.view(book)

    for _ <- 1..30 do
      spawn_link(fn ->
        send(test, {:done, Pipeline.commands(view, ["x.run"], assigns: %{call: call})})
      end)
    end

    handlers = for _ <- 1..30, do: assert_receive({:runs, _}, 60_000) |> elem(1)
    for handler <- handlers, do: send(handler, :fail)
    for _ <- 1..30, do: assert_receive({:done, [%{error: %HandlerError{kind: :crash}}]}, 60_000)
    assert_receive {[:skillbook, :breaker, :opened], %{failures: 5}, _}
    refute_received {[:skillbook, :breaker, _], _, _}
    refute in_service?(book)
  end

  test "a changed or deleted page resets it", %{tmp_dir: folder} do
    book = start(folder, failures: 1, cooldown: 600_000)
    run(book, :crash)
    refute in_service?(book)
    text = page("x.run", handler("Call"), "Mended.\n")

    for {files, serves} <- [
          {%{"x/other.md" => page("x.other")}, false},
          {%{"x/run.md" => text}, true}
        ] do
      write(folder, files)
      Skillbook.reload(book)
      assert {files, in_service?(book)} == {files, serves}
      assert Skillbook.diagnostics(book) == [] == serves
    end

    run(book, :crash)
    File.rm!(Path.join(folder, "x/run.md"))
    Skillbook.reload(book)
    assert Skillbook.diagnostics(book) == []
  end

  test "new code of the handler resets it", %{tmp_dir: folder} do
    name = "Skillbook.Run.CircuitBreakerTest.Code#{System.unique_integer([:positive])}"

    code = fn body ->
      Code.compile_string("defmodule #{name} do def execute(_, _), do: #{body} end")
    end

    code.("raise \"old\"")
    write(folder, %{"x/code.md" => page("x.code", handler: name)})
    book = book(sources: [folder], builtins: false, breaker: [failures: 1, cooldown: 600_000])
    run(book, :answer, "x.code")
    assert %OutOfServiceError{} = run(book, :answer, "x.code").error
    Code.compiler_options(ignore_module_conflict: true)
    code.("{:ok, \"new\"}")
    Code.compiler_options(ignore_module_conflict: false)
    assert run(book, :answer, "x.code").content == "new"
  end

  describe "after the cooldown" do
    # Out of service, then ready to be tried.
    defp cooled(folder) do
      book = start(folder, failures: 2, cooldown: 1)
      for _ <- 1..2, do: run(book, :crash)

      assert_receive {[:skillbook, :breaker, :half_open], %{failures: 2}, %{skill: "x.run"}},
                     60_000

      book
    end

    test "one of fifty callers is the trial, the others get an error", %{tmp_dir: folder} do
      book = cooled(folder)
      test = self()

      call = fn _, _ ->
        send(test, {:tries, self()})
        receive(do: (:answer -> {:ok, "fine"}))
      end

      view = Skillbook.view(book)

      for _ <- 1..50 do
        spawn_link(fn ->
          send(test, {:done, hd(Pipeline.commands(view, ["x.run"], assigns: %{call: call}))})
        end)
      end

      assert_receive {:tries, handler}, 60_000
      # All the others are done before it is.
      done = for _ <- 1..49, do: assert_receive({:done, _}, 60_000) |> elem(1)
      refute_received {:tries, _}
      assert Enum.all?(done, &match?(%OutOfServiceError{failures: 2, retry_in: nil}, &1.error))

      assert hd(done).content =~
               "Another call is trying it right now: try again in a minute, and go on without " <>
                 "it until then, or tell the user."

      assert [%{code: :out_of_service}] = Skillbook.diagnostics(book)
      send(handler, :answer)
      assert_receive {:done, %{status: :ok}}, 60_000
      assert_receive {[:skillbook, :breaker, :closed], %{failures: 2}, %{skill: "x.run"}}
      assert in_service?(book)
      assert Skillbook.diagnostics(book) == []
      # It counts from the beginning again.
      run(book, :crash)
      assert in_service?(book)
    end

    test "a failed trial opens it again with the first time of failure", %{tmp_dir: folder} do
      book = cooled(folder)
      [{_, _, :half_open, 2, since, _}] = :ets.tab2list(Module.concat(book, "CircuitBreaker"))
      assert %HandlerError{kind: :crash} = run(book, :crash).error
      assert_receive {[:skillbook, :breaker, :opened], %{failures: 3}, %{skill: "x.run"}}

      assert_receive {[:skillbook, :breaker, :half_open], %{failures: 3}, %{skill: "x.run"}},
                     60_000

      assert [{_, _, :half_open, 3, ^since, _}] =
               :ets.tab2list(Module.concat(book, "CircuitBreaker"))

      # An error is an answer.
      assert run(book, :error).content == "no such room"
      assert in_service?(book)
    end

    test "another call is the trial if the first is killed", %{tmp_dir: folder} do
      book = cooled(folder)
      test = self()

      call = fn _, _ ->
        send(test, :tries)
        Process.sleep(:infinity)
      end

      view = Skillbook.view(book)
      caller = spawn(fn -> Pipeline.commands(view, ["x.run"], assigns: %{call: call}) end)
      assert_receive :tries, 60_000
      refute in_service?(book)
      Process.exit(caller, :kill)

      assert_receive {[:skillbook, :breaker, :half_open], %{failures: 2}, %{skill: "x.run"}},
                     60_000

      assert in_service?(book)
    end

    test "another call is the trial if the first gets no slot", %{tmp_dir: folder} do
      write(folder, %{
        "x/run.md" => page("x.run", handler("Call")),
        "x/other.md" => page("x.other", handler("Call"))
      })

      breaker = [failures: 1, cooldown: 1]
      limits = [max_running: 1, max_wait: 1]
      book = book([sources: [folder], builtins: false, watch: false, breaker: breaker] ++ limits)
      :telemetry.listen(book)
      run(book, :crash)
      assert_receive {[:skillbook, :breaker, :half_open], _, _}, 60_000
      test = self()

      call = fn _, _ ->
        send(test, {:runs, self()})
        receive(do: (:answer -> {:ok, "fine"}))
      end

      view = Skillbook.view(book)

      spawn_link(fn ->
        send(test, {:done, Pipeline.commands(view, ["x.other"], assigns: %{call: call})})
      end)

      assert_receive {:runs, handler}, 60_000
      assert %Skillbook.BusyError{} = run(book, :answer).error
      assert_receive {[:skillbook, :breaker, :half_open], _, _}, 60_000
      send(handler, :answer)
      assert_receive {:done, [%{status: :ok}]}, 60_000
      assert in_service?(book)
      assert_receive {[:skillbook, :breaker, :closed], _, _}, 60_000
    end

    test "earlier calls do not count", %{tmp_dir: folder} do
      book = start(folder, failures: 2, cooldown: 600_000)
      test = self()

      call = fn _, _ ->
        send(test, {:runs, self()})
        receive(do: (:answer -> {:ok, "fine"}))
      end

      view = Skillbook.view(book)

      spawn_link(fn ->
        send(test, {:done, hd(Pipeline.commands(view, ["x.run"], assigns: %{call: call}))})
      end)

      assert_receive {:runs, handler}, 60_000
      for _ <- 1..2, do: run(book, :crash)
      send(handler, :answer)
      assert_receive {:done, %{status: :ok}}, 60_000
      refute in_service?(book)
    end
  end

  test "without a breaker or a book, a failing handler is always called", %{
    tmp_dir: folder
  } do
    book = start(folder, false)
    for _ <- 1..7, do: assert(%HandlerError{} = run(book, :crash).error)
    assert in_service?(book)
    assert Skillbook.diagnostics(book) == []
    view = view(folder)
    assert view == %{view | book: nil}

    for _ <- 1..7 do
      assert [%{error: %HandlerError{}}] =
               Pipeline.commands(view, ["x.run"], assigns: %{call: call(:crash)})
    end
  end

  test "defaults to five failures and half a minute", %{tmp_dir: folder} do
    for {breaker, expected} <- [
          {[], {5, 30_000}},
          {[failures: 2], {2, 30_000}},
          {[cooldown: 1], {5, 1}}
        ] do
      book = start(folder, breaker)
      {failures, cooldown} = expected

      assert Enum.sort(Skillbook.Book.fetch!(book).breaker) == [
               cooldown: cooldown,
               failures: failures
             ]
    end

    book = book(sources: [folder], builtins: false)
    for _ <- 1..4, do: run(book, :crash)
    assert %HandlerError{} = run(book, :crash).error
    refute in_service?(book)
  end
end
