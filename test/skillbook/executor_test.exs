defmodule Skillbook.ExecutorTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Entry, Executor, HandlerError, NotFoundError, Result, Router, View}

  @moduletag :tmp_dir

  doctest Skillbook.Executor
  doctest Skillbook.HandlerError
  doctest Skillbook.ReturnedError

  defp execute(folder, handler, line \\ "x.run --day Friday", options \\ []) do
    write(folder, %{"x/run.md" => page("x.run", handler: handler)})
    view = view(folder)
    {:ok, routed} = Router.route(view, line)

    Executor.execute(
      routed,
      Executor.context(view, routed, Keyword.take(options, [:assigns])),
      Keyword.take(options, [:timeout])
    )
  end

  test "a skill without a handler returns its body as a template", %{tmp_dir: folder} do
    write(folder, %{"x/run.md" => page("x.run", [], "Do this.\n")})
    view = view(folder)
    {:ok, routed} = Router.route(view, "x.run --a b")

    assert {:ok, %Result{status: :template, content: "Do this."}} =
             Executor.execute(routed, Executor.context(view, routed))
  end

  test "accepts the documented return values of handlers", %{tmp_dir: folder} do
    assert {:ok, %Result{status: :ok, content: "flags: %{\"day\" => \"Friday\"}"}} =
             execute(folder, "Skillbook.TestHandlers.Text")

    assert {:ok, %Result{status: :ok}} = execute(folder, "Elixir.Skillbook.TestHandlers.Text")

    assert {:error, %RuntimeError{message: "no room on Friday"}} =
             execute(folder, "Skillbook.TestHandlers.ErrorText")

    assert {:error, %NotFoundError{id: "R-1"}} =
             execute(folder, "Skillbook.TestHandlers.ErrorStruct")
  end

  test "a crash is an error that names the skill and hides the rest", %{tmp_dir: folder} do
    for handler <- ~w(Raise Throw Exit Kill) do
      log =
        capture_log(fn ->
          assert {:error, %HandlerError{kind: :crash} = error} =
                   execute(folder, "Skillbook.TestHandlers.#{handler}")

          assert Exception.message(error) ==
                   "`x.run` failed: its handler crashed. It may have done part of its work: " <>
                     "check before you try again, or tell the user."
        end)

      assert log =~ "skill x.run crashed"
    end
  end

  describe "an ordinary answer of Elixir code" do
    # The shape of `Ecto.Changeset`.
    defmodule Changeset do
      defstruct action: nil, changes: %{}, errors: [], data: nil, valid?: true
    end

    defmodule Secret do
      defstruct [:token]
    end

    @in_log "it failed, and the reason is only in the log"

    defp answers do
      length = {"should be at least %{count} character(s)", count: 3, validation: :length}
      item = %Changeset{errors: [name: length], changes: %{name: "secret"}, valid?: false}
      valid = %Changeset{changes: %{name: "fine"}}
      changes = %{items: [valid, item], owner: item, note: "secret"}
      long = for n <- 10..70, into: %{}, do: {"k#{n}", n}
      first = for n <- 10..59, do: "k#{n}: #{n}"
      deep = %{a: %{b: %{c: %{d: %{e: %{f: 1}}}}}}

      [
        {:ok, "Done."},
        {:error, "it failed, and its handler gave no reason"},
        {{:error, nil}, "it failed, and its handler gave no reason"},
        {{:error, :not_found}, "not found"},
        {{:error, true}, "true"},
        {{:error, Skillbook.Entry}, "Skillbook.Entry"},
        {{:error, %Changeset{errors: [title: {"can't be blank", []}], valid?: false}},
         "title: can't be blank"},
        {{:error, %Changeset{errors: [], changes: changes, valid?: false}},
         "items[1].name: should be at least 3 character(s)\n" <>
           "owner.name: should be at least 3 character(s)"},
        {{:error, %Changeset{valid?: false}}, "invalid"},
        {{:error, %{title: ["can't be blank", "is odd"], due: %{"date" => :in_the_past}}},
         "due.date: in the past\ntitle: can't be blank, is odd"},
        {{:error, [title: "is taken", size: 3.5]}, "title: is taken\nsize: 3.5"},
        {{:error, ["one", "two"]}, "one\ntwo"},
        {{:error, {:timeout, 5_000}}, @in_log},
        {{:error, {:bad, "x"}}, @in_log},
        {{:error, {:not_found, %{id: "R-1"}}}, @in_log},
        {{:error, {:invalid, %Changeset{errors: [title: {"is odd", []}], valid?: false}}},
         @in_log},
        {{:error, {"a", 1}}, @in_log},
        {{:error, self()}, @in_log},
        {{:error, %{due: {:bad, "x"}, id: 7}}, "due: (only in the log)\nid: 7"},
        {{:error, %{}}, @in_log},
        {{:error, []}, @in_log},
        {{:error, [1 | 2]}, @in_log},
        {{:error, 404}, "404"},
        {{:error, ~c"enoent"}, "101\n110\n111\n101\n110\n116"},
        {{:error, %{due: ~D[2026-03-01], token: %Secret{token: "hidden"}}},
         "due: 2026-03-01\ntoken: #{inspect(Secret)}"},
        {{:error, %{cause: %ArgumentError{message: "odd"}}}, "cause: odd"},
        {{:error, %{bytes: <<255>>}}, "bytes: (only in the log)"},
        {{:error, %{text: String.duplicate("x", 600)}},
         "text: " <> String.duplicate("x", 494) <> "…"},
        {{:error, long}, Enum.join(first ++ ["and 11 more"], "\n")},
        {{:error, deep}, "a.b.c.d.e: (only in the log)"}
      ]
    end

    test "is shown in words, logged, and no failure", %{tmp_dir: folder} do
      write(folder, %{"x/call.md" => page("x.call", handler("Call"))})
      book = book(sources: [folder], builtins: false, breaker: [failures: 1, cooldown: 60_000])
      view = Skillbook.view(book)

      for {answer, text} <- answers() do
        run = fn ->
          call = fn _, _ -> answer end
          [result] = Skillbook.Reply.Pipeline.commands(view, ["x.call"], assigns: %{call: call})
          result
        end

        {result, log} = with_log([level: :info], run)
        assert result.content == text

        if answer == :ok do
          assert result.status == :ok
          refute log =~ "x.call"
        else
          reason = with {:error, reason} <- answer, do: reason, else: (:error -> nil)
          assert %Skillbook.ReturnedError{name: "x.call", reason: ^reason} = result.error

          told =
            if text =~ "in the log",
              do: {"warning", inspect(reason)},
              else: {"info", hd(String.split(text, "\n"))}

          {level, words} = told
          assert log =~ "[#{level}] skill x.call returned an error: #{words}"
        end
      end

      assert Skillbook.diagnostics(book) == []
    end

    test "is a crash if its text raises", %{tmp_dir: folder} do
      write(folder, %{"x/call.md" => page("x.call", handler("Call"))})
      view = view(folder)

      capture_log(fn ->
        for how <- [:throw, :exit], wrap <- [& &1, &%{cause: &1}] do
          call = fn _, _ -> {:error, wrap.(%Skillbook.TestHandlers.BadMessage{how: how})} end

          assert [%{error: %HandlerError{kind: :crash}}] =
                   Skillbook.Reply.Pipeline.commands(view, ["x.call"], assigns: %{call: call})
        end
      end)
    end
  end

  test "other return values are errors", %{tmp_dir: folder} do
    for handler <- ~w(Nonsense NotText NotUtf8 NoMetadata Broken) do
      log =
        capture_log(fn ->
          assert {:error, %HandlerError{kind: :bad_return} = error} =
                   execute(folder, "Skillbook.TestHandlers.#{handler}", "x.run")

          assert Exception.message(error) =~
                   "`x.run` failed: its handler returned an invalid value."
        end)

      assert log =~ "skill x.run: expected {:ok, text}"
    end
  end

  test "the caller survives every end of a handler", %{tmp_dir: folder} do
    write(folder, %{"x/call.md" => page("x.call", handler("Call"))})
    view = view(folder)

    capture_log(fn ->
      for reason <- [:noconnection, :normal, :kill, :shutdown, :noproc, {:nodedown, :a@b}, 1],
          how <- [&exit/1, &send_exit/1] do
        call = fn _, _ -> how.(reason) end

        assert [%{status: :error, error: %HandlerError{kind: :crash}}] =
                 Skillbook.Reply.Pipeline.commands(view, ["x.call"], assigns: %{call: call})
      end

      for {how, kind} <- [{:throw, :crash}, {:exit, :crash}, {:hang, :timeout}] do
        call = fn _, _ -> {:error, %Skillbook.TestHandlers.BadMessage{how: how}} end

        assert [%{status: :error, error: %HandlerError{kind: ^kind}}] =
                 Skillbook.Reply.Pipeline.commands(view, ["x.call"],
                   assigns: %{call: call},
                   timeout: 200
                 )
      end
    end)

    assert Process.info(self(), :messages) == {:messages, []}
  end

  defp send_exit(reason) do
    Process.exit(self(), reason)
    Process.sleep(:infinity)
  end

  test "verifies the entries that a handler reports to have read", %{tmp_dir: folder} do
    write(folder, %{"x/call.md" => page("x.call", handler("Call"))})
    view = view(folder)

    run = fn fields ->
      call = fn _, _ -> {:ok, struct!(Result.ok("text"), fields)} end
      [result] = Skillbook.Reply.Pipeline.commands(view, ["x.call"], assigns: %{call: call})
      result
    end

    # Reported entries are only accepted if the view shows them with this text.
    text = view |> View.fetch!("x.call") |> Entry.activation()

    for key <- [:activates, :parts] do
      for texts <- [
            :odd,
            [],
            [1],
            [text | text],
            [%{name: "x.call", hash: "0"}],
            [%{text | name: "x.gone"}],
            [%{text | name: <<255>>}],
            [Map.put(text, :more, 1)]
          ],
          do:
            assert(
              {texts, run.(metadata: %{key => texts, more: 1}).metadata} == {texts, %{more: 1}}
            )

      assert run.(metadata: %{key => [1, text], more: 1}).metadata == %{key => [text], more: 1}
    end

    capture_log(fn -> assert %{kind: :bad_return} = run.(status: :error, error: :odd).error end)
    error = %RuntimeError{message: "no"}
    assert run.(status: :error, error: error).error == error
  end

  test "stops a handler at its time limit", %{tmp_dir: folder} do
    capture_log(fn ->
      assert {:error, %HandlerError{kind: :timeout, timeout: 50} = error} =
               execute(folder, "Skillbook.TestHandlers.Hang", "x.run", timeout: 50)

      assert Exception.message(error) =~ "`x.run` was stopped: it took longer than 50 ms."
    end)
  end

  @tag :capture_log
  test "uses the time limit of the call, the page, the book, or half a minute", %{
    tmp_dir: folder
  } do
    rows = [
      {nil, nil, 15, 15},
      {nil, "1s", 15, 1_000},
      {nil, "20ms", nil, 20},
      {10, "1s", 1_000, 10},
      {10, nil, nil, 10},
      # An invalid limit is ignored.
      {nil, "soon", 15, 15},
      {nil, "2h", 15, 15}
    ]

    for {call, page, book, limit} <- rows do
      fields = if page, do: [timeout: page], else: []
      write(folder, %{"x/run.md" => page("x.run", handler("Hang") ++ fields)})

      view =
        if book,
          do: Skillbook.view(book(sources: [folder], builtins: false, timeout: book)),
          else: view(folder)

      {:ok, routed} = Router.route(view, "x.run")
      options = if call, do: [timeout: call], else: []
      answer = Executor.execute(routed, Executor.context(view, routed), options)
      assert {call, page, book, answer} == {call, page, book, {:error, timed_out(limit)}}
    end

    assert Skillbook.Book.fetch!(book(sources: [folder])).timeout == 30_000
  end

  defp timed_out(limit) do
    %HandlerError{
      kind: :timeout,
      name: "x.run",
      handler: "Skillbook.TestHandlers.Hang",
      timeout: limit
    }
  end

  test "invalid limits get a diagnostic", %{tmp_dir: folder} do
    for {field, value, expected} <- [
          {:timeout, "soon", "seconds, or a duration such as 500ms, 30s or 5m, of at most 1h"},
          {:max_running, "0", "a number from 1 to 1000000"}
        ] do
      write(folder, %{"x/run.md" => page("x.run", [{field, value}])})
      {:ok, catalog} = Skillbook.Catalog.load([folder])

      assert [%{code: :field_ignored, line: 4, message: message}] =
               Skillbook.Catalog.diagnostics(catalog)

      assert message =~ "expected #{expected} for `#{field}`, got "
    end

    write(folder, %{"x/run.md" => page("x.run", timeout: "1.5m", max_running: 3)})

    assert %{limits: %{timeout: 90_000, max_running: 3}} =
             Skillbook.View.fetch!(view(folder), "x.run")
  end

  test "logs the crash without the arguments of calls", %{tmp_dir: folder} do
    log =
      capture_log(fn -> execute(folder, "Skillbook.TestHandlers.Picky", "x.run --a secret") end)

    assert log =~ "skill x.run crashed: an exception was raised:\n    ** (FunctionClauseError)"
    assert log =~ "Skillbook.TestHandlers.Picky.execute/2"
    refute log =~ "secret"
    # Logged once, by the executor.
    refute log =~ "terminating"
  end

  test "processes linked to a handler end with its crash", %{tmp_dir: folder} do
    test = self()

    call = fn _, _ ->
      send(test, {:linked, spawn_link(fn -> Process.sleep(:infinity) end)})
      raise "oops"
    end

    capture_log(fn ->
      execute(folder, "Skillbook.TestHandlers.Call", "x.run", assigns: %{call: call})
    end)

    assert_receive {:linked, linked}
    ref = monitor(linked)
    assert_receive {:DOWN, ^ref, :process, _, _}, 60_000
  end

  test "only modules with execute/2 are handlers, and no atoms are created", %{tmp_dir: folder} do
    name = "Nowhere.Atom#{System.unique_integer([:positive])}"

    for handler <- [
          name,
          "String",
          "Skillbook",
          "erlang",
          "\"not a module\"",
          String.duplicate("A", 300)
        ] do
      capture_log(fn ->
        assert {:error, %HandlerError{kind: :missing} = error} = execute(folder, handler)
        assert Exception.message(error) =~ "`x.run` cannot run: its handler"
      end)
    end

    assert_raise ArgumentError, fn -> String.to_existing_atom("Elixir." <> name) end
  end

  test "a handler ends with its caller", %{tmp_dir: folder} do
    test = self()

    caller =
      spawn(fn ->
        execute(folder, "Skillbook.TestHandlers.Tell", "x.run", assigns: %{tell: test})
      end)

    assert_receive {:handler, handler, _context}, 60_000
    ref = monitor(handler)
    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^ref, :process, ^handler, :killed}, 60_000
  end
end
