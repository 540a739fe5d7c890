defmodule Skillbook.Test.CaseTest do
  # `use Skillbook.Test`, by itself: each test here has a book of its own.
  use Skillbook.Test,
    sources: [Skillbook.Test.Checkout.path("test/support/fixtures/shop")],
    builtins: false,
    profiles: [[id: "support", writes: :ask], [id: "guest", skills: ["orders.find"]]],
    schedules: [run_as: "support"],
    profile: "support"

  alias Skillbook.{Agent, Context, MisroutedError, OptionError, ScriptError, Shop}

  defp failure(fun), do: assert_raise(ExUnit.AssertionError, fun).message

  test "each test has a book of its own, which stops after it", %{book: book} do
    assert is_atom(book)
    assert view().book == book
    assert view().profile.id == "support"
    assert view("guest").profile.id == "guest"
    assert %{store: {_, _}, watch: false} = Skillbook.Book.fetch!(book)
  end

  test "a task of a test finds its book", %{book: book} do
    assert Task.await(Task.async(fn -> view().book end), :infinity) == book

    test = self()
    spawn(fn -> send(test, {:error, catch_error(view())}) end)
    assert_receive {:error, %ArgumentError{message: message}}

    assert message ==
             "expected a test of a module with `use Skillbook.Test`, or a `Task` of it"
  end

  @tag skillbook: false
  test "without a book" do
    assert_raise ArgumentError, fn -> view() end
  end

  describe "run_skill" do
    test "runs a line, or a name with flags" do
      for arguments <- [
            ["orders.refund --id 7"],
            ["orders.refund", %{id: 7}],
            ["orders.refund", %{"id" => "7"}],
            ["orders.repay", %{id: 7}, []]
          ] do
        result = apply(Skillbook.Test, :run_skill, arguments)
        assert {result.status, result.name} == {:ok, "orders.refund"}
        assert result.content == "Refunded order 7 for nobody."
      end

      result = run_skill("orders.refund", %{id: 7}, assigns: %{user: "Ann"})
      assert result.content == "Refunded order 7 for Ann."
      assert run_skill("orders.refund", %{id: 0}).status == :error
      assert %{status: :error} = run_skill("orders.refund --id 7", profile: "guest")
      assert run_skill("orders.find --id 7", profile: "guest").content =~ "2 lamps"
    end

    test "answers questions" do
      for {ask, status, text} <- [
            {:allow, :ok, "Refunded order 7"},
            {:deny, :error, "the user declined"},
            {{:deny, "not today"}, :error, "not today"},
            {fn request -> if request.command.flags["id"] == 7, do: :deny, else: :allow end,
             :error, "the user declined"}
          ] do
        result = run_skill("orders.refund --id 7", ask: ask)
        assert result.status == status
        assert result.content =~ text
      end

      error = assert_raise OptionError, fn -> run_skill("orders.refund --id 7", ask: :maybe) end

      assert Exception.message(error) ==
               "expected :allow, :deny, {:deny, text}, :pending, {:pending, ref} or a " <>
                 "function of one argument as the option :ask of run_skill, got: :maybe"
    end

    test "stores a call that waits for an approval", %{book: book} do
      assert run_skill("orders.refund --id 7", ask: :pending).status == :pending
      %{ref: ref} = assert_asked("orders.refund", id: 7)
      refute_ran()
      assert {:ok, _} = Skillbook.approve(book, ref, by: "ann")
      assert_ran("orders.refund", id: 7)
    end

    @tag skillbook: [assigns: %{user: "Ann"}]
    test "has the assigns of the book" do
      assert run_skill("orders.refund --id 7").content == "Refunded order 7 for Ann."
      assert context(line: "orders.refund --id 7").assigns == %{user: "Ann"}
      assert context().assigns == %{user: "Ann"}
      assert context(assigns: %{user: "Bob"}).assigns == %{user: "Bob"}
    end

    @tag skillbook: [ask: :deny]
    test "asks as the tag of the test says" do
      assert run_skill("orders.refund --id 7").status == :error
    end
  end

  describe "assert_asked" do
    test "finds a question by name, flags and patterns" do
      run_skill(~s(orders.refund --id 7 --reason "came late" --tag a --tag b))

      for {name, flags} <- [
            {"orders.refund", []},
            {"orders.repay", []},
            {"orders.*", []},
            {"orders.refund --id 7", []},
            {"orders.refund", [id: 7]},
            {"orders.refund", %{"id" => "7"}},
            {"orders.refund", [id: 7.0, reason: ~r/late/]},
            {"orders.refund", [tag: ["a", "b"]]},
            {"orders.refund", [tag: ~r/^b$/]}
          ] do
        assert %Skillbook.Request{} = assert_asked(name, flags)
      end

      others = [[id: 8], [id: ""], [reason: ~r/early/], [reason: nil], [tag: ["a"]], [to: 1]]

      for flags <- others do
        assert_raise ExUnit.AssertionError, fn ->
          assert_asked("orders.refund", flags, timeout: 0)
        end
      end
    end

    test "says what was asked instead" do
      assert failure(fn -> assert_asked("orders.refund", [id: 7], timeout: 0) end) ==
               "expected a question about `orders.refund --id 7`, got none"

      run_skill(~s(orders.refund --id 8 --reason "it broke"))

      assert failure(fn -> assert_asked("orders.refund", [id: 7], timeout: 0) end) ==
               "expected a question about `orders.refund --id 7`, got others. Asked so far:\n" <>
                 ~s(  orders.refund --id 8 --reason "it broke")

      assert refute_asked("orders.refund", id: 7) == :ok
      assert refute_asked("orders.find") == :ok

      assert failure(fn -> refute_asked() end) ==
               "expected no question, got:\n" <>
                 ~s(  orders.refund --id 8 --reason "it broke")

      assert failure(fn -> refute_asked("orders.refund", id: ~r/8/) end) ==
               "expected no question of `orders.refund --id /8/`, got:\n" <>
                 ~s(  orders.refund --id 8 --reason "it broke")

      assert_raise ArgumentError, ~r/^expected a command, got: "/, fn -> assert_asked("\"") end
    end

    test "waits for another process" do
      task =
        Task.async(fn ->
          Process.sleep(50)
          run_skill("orders.refund --id 7")
        end)

      assert assert_asked("orders.refund", [id: 7], timeout: 5_000).profile.id == "support"
      assert Task.await(task, :infinity).status == :ok

      # Messages go to the process of the test.
      call = Task.async(fn -> catch_error(refute_asked()) end)
      assert %ArgumentError{} = Task.await(call, :infinity)
    end
  end

  describe "assert_ran" do
    test "finds runs of replies, workflows and agents, with cast flags" do
      run_skill("orders.close")
      assert assert_ran("orders.find", id: 7).flags == %{"id" => 7}
      assert assert_ran("orders.refund", reason: "closed").profile == "support"

      assert {:ok, %{content: "Refunded order 7 for nobody."}} =
               assert_ran("orders.refund").answer

      assert failure(fn -> assert_ran("orders.report") end) ==
               "expected a run of `orders.report`, got others. Ran so far:\n" <>
                 "  orders.find --id 7\n  orders.refund --id 7 --reason closed\n  orders.close"

      assert failure(fn -> refute_ran("orders.refund --id 7") end) ==
               "expected no run of `orders.refund --id 7`, got:\n" <>
                 "  orders.refund --id 7 --reason closed"
    end

    test "a command that was refused did not run" do
      run_skill("orders.refund --id 7", ask: :deny)
      run_skill("orders.refund --id x")
      run_skill("orders.none")
      assert refute_ran() == :ok

      assert failure(fn -> assert_ran("orders.refund") end) ==
               "expected a run of `orders.refund`, got none"

      assert {:error, _} =
               (
                 run_skill("orders.find --id 9")
                 assert_ran("orders.find").answer
               )
    end
  end

  describe "stubs" do
    @tag skillbook: [
           stubs: %{
             "orders.find" => "Order 7: a desk",
             "orders.refund" => {:error, "no money"},
             "orders.report" => &__MODULE__.report/2,
             "orders.close" => &__MODULE__.flags/1
           }
         ]
    test "answer instead of handlers, after all checks" do
      assert run_skill("orders.find --id 9").content == "Order 7: a desk"
      assert run_skill("orders.find --id x").status == :error
      assert run_skill("orders.refund --id 7").content == "no money"
      assert run_skill("orders.refund --id 7", ask: :deny).content =~ "declined"
      assert run_skill("orders.report").content == "support"
      assert run_skill("orders.close").content == "%{}"
    end

    def report(_flags, context), do: {:ok, context.profile.id}
    def flags(flags), do: {:ok, inspect(flags)}
  end

  describe "the clock" do
    @tag skillbook: [now: ~U[2026-03-01 10:00:00Z]]
    test "stands still, and moves" do
      assert now() == ~U[2026-03-01 10:00:00.000000Z]
      assert run_skill("orders.report").content == "Orders of 2026-03-01"
      assert advance(days: 1, hours: -2) == ~U[2026-03-02 08:00:00.000000Z]
      assert run_skill("orders.report").content == "Orders of 2026-03-02"
      assert context().now == now()
      assert advance(500) == ~U[2026-03-02 08:00:00.500000Z]
      assert advance(~U[2026-01-01 00:00:00Z]) == ~U[2026-01-01 00:00:00.000000Z]
      assert_raise OptionError, ~r/unknown option :day for advance\/1/, fn -> advance(day: 1) end
    end

    @tag skillbook: [now: :system]
    test "runs with the system's" do
      before = DateTime.utc_now()
      assert DateTime.diff(now(), before) in 0..5
      assert DateTime.diff(advance(hours: 1), DateTime.utc_now()) in 3590..3600
    end

    @tag skillbook: [now: ~U[2026-03-02 07:59:30Z]]
    test "moves schedules" do
      run_schedules()
      refute_ran("orders.report")
      advance(seconds: 31)
      run_schedules()
      assert assert_ran("orders.report").answer |> elem(1) |> Map.get(:content) =~ "2026-03-02"
    end

    # A schedule begins at the time of its registration: after the move it would miss this time.
    @tag skillbook: [now: ~U[2026-03-02 07:59:30Z]]
    test "moves schedules in the first line of a test too" do
      advance(seconds: 31)
      run_schedules()
      assert_ran("orders.report")
    end
  end

  describe "context" do
    test "is that of a call of the test" do
      context = context(assigns: %{user: "Ann"}, by: :user, write_to: "skills")
      assert %Context{entry: nil, by: :user, write_to: "skills"} = context
      assert {context.profile.id, context.book} == {"support", view().book}
      assert {:ok, _sql} = Context.fetch_sql(context)
      assert Shop.Refund.execute(%{"id" => 7}, context) == {:ok, "Refunded order 7 for Ann."}

      context = context(line: "orders.refund --id 7", profile: "support")
      assert {context.entry.name, context.command.flags} == {"orders.refund", %{"id" => "7"}}

      assert_raise Skillbook.UnknownSkillError, fn ->
        context(line: "orders.refund", profile: "guest")
      end
    end
  end

  describe "routes" do
    test "are those of the test's view" do
      assert assert_routes("Give the customer the money back", "orders.refund") == :ok
      assert assert_routes("money of an order", "orders.close", first: 3) == :ok
      assert refute_routes("Thank you!") == :ok
      assert refute_routes("Thank you!", "orders.find") == :ok

      assert_raise MisroutedError, fn ->
        assert_routes("the amount of an order", "orders.refund")
      end
    end
  end

  describe "script" do
    test "answers a run, with the questions and calls of the test", %{book: book} do
      model = script(["```cmd\norders.refund --id 7\n```", "Done."])
      options = [profile: "support", model: model]
      assert {:ok, %{text: "Done."}} = Agent.run(book, "Refund order 7", options)
      assert_asked("orders.refund", id: 7)
      assert_ran("orders.refund", id: 7)
    end

    test "calls commands as tools", %{book: book} do
      refund = %{name: "orders__refund", arguments: %{id: 7}}
      find = %{name: "run_command", arguments: %{command: "orders.find --id 7"}}

      echo = fn messages ->
        Enum.map_join(messages, "\n", &if(&1.role == :tool, do: &1.content, else: ""))
      end

      model = script([%{text: "I look.", tool_calls: [find, refund]}, echo])
      options = [profile: "support", model: model]
      {:ok, result} = Agent.run(book, "Refund order 7", options)
      assert result.status == :done
      assert result.text =~ "2 lamps"
      assert result.text =~ "Refunded order 7"
      assert_asked("orders.refund", id: 7)
      assert_ran("orders.find", id: 7)
      assert_ran("orders.refund", id: 7)
    end

    @tag skillbook: [ask: :deny]
    test "gets a refusal as the result of its call", %{book: book} do
      refund = %{name: "orders__refund", arguments: %{id: 7}}
      echo = fn messages -> List.last(messages).content end
      model = script([%{tool_calls: [refund]}, echo])
      {:ok, result} = Agent.run(book, "Refund it", profile: "support", model: model)
      assert result.text =~ "the user declined"
      assert_asked("orders.refund", id: 7)
      refute_ran("orders.refund")
    end

    test "a call waits for an approval, and its result goes on", %{book: book} do
      refund = %{name: "orders__refund", arguments: %{id: 7}}
      echo = fn messages -> List.last(messages).content end
      model = script([%{tool_calls: [refund]}, "It waits.", echo])
      options = [profile: "support", model: model, ask: fn _request -> :pending end]
      {:ok, %{status: :pending, pending: [%{ref: ref}]}} = Agent.run(book, "Refund", options)
      refute_ran("orders.refund")
      {:ok, approved} = Skillbook.approve(book, ref, by: "ann", resume: [model: model])
      assert approved.run.text =~ "Refunded order 7"
      assert_ran("orders.refund", id: 7)
    end

    test "must be used up" do
      assert_raise ScriptError, fn -> Skillbook.Model.Script.verify!(script_of_another_test()) end
    end

    # `script/1` checks at the end, which would fail this test.
    defp script_of_another_test, do: Skillbook.Model.Script.new(["a"])
  end
end

defmodule Skillbook.Test.CaseFailuresTest do
  # Whole modules that fail: run by ExUnit in this process, to see what it reports.
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  # Runs a module with one test in a system process of its own.
  defp run(folder, options, body, env \\ []) do
    file = Path.join(folder, "one_test.exs")

    File.write!(file, """
    {:ok, _} = Application.ensure_all_started(:skillbook_agent)
    ExUnit.start(autorun: false, colors: [enabled: false])
    defmodule OneTest do
      use Skillbook.Test, #{options}
      #{body}
    end
    %{total: total, failures: failures} = ExUnit.run()
    IO.puts("\#{total} ran, \#{failures} failed")
    """)

    paths =
      Enum.flat_map(
        Path.wildcard(Path.join(Mix.Project.build_path(), "lib/*/ebin")),
        &["-pa", &1]
      )

    {output, 0} = System.cmd("elixir", paths ++ [file], stderr_to_stdout: true, env: env)
    output
  end

  test "an unused answer of a script fails its test", %{tmp_dir: folder} do
    output = run(folder, "builtins: false", ~s(test "x" do script(["a"]\) end))
    assert output =~ "expected 1 call of a model with a script of 1 answer, got 0"
    assert output =~ "1 ran, 1 failed"
  end

  test "a wrong option is the error of the test", %{tmp_dir: folder} do
    output = run(folder, "sorces: []", ~s(test "x" do :ok end))
    assert output =~ "unknown option :sorces for a book, did you mean :sources?"
    output = run(folder, "now: 1", ~s(test "x" do :ok end))
    assert output =~ "expected a DateTime or :system as the option :now of a test, got: 1"
    output = run(folder, ~s(sources: ["none"]), ~s(test "x" do :ok end))
    assert output =~ "none"
    assert output =~ "1 ran, 1 failed"
  end

  test "evaluations are tests, recorded once", %{tmp_dir: folder} do
    skills = Path.join(folder, "skills")
    File.mkdir_p!(skills)

    File.write!(
      Path.join(skills, "tea.md"),
      "---\nname: tea\ndescription: Tea\n---\nBoil water.\n"
    )

    File.write!(Path.join(skills, "tea.evals.yaml"), """
    evaluations:
      - {name: brews, request: Tea please, answer: boil}
      - {name: thanks, request: Thank you, answer: welcome}
    """)

    options = "sources: [#{inspect(skills)}], builtins: false"
    # The model answers as the file says that is beside the test.
    File.write!(Path.join(folder, "answer"), "Boil it. You are welcome.")

    body = """
    defp model do
      Skillbook.Model.Function.new(fn _messages, _options ->
        File.read!(#{inspect(Path.join(folder, "answer"))})
      end)
    end

    evaluations #{inspect(skills)}, model: model()
    """

    output = run(folder, options, body)
    assert output =~ "2 ran, 2 failed"
    assert output =~ "brews.json: there is no such recording"
    assert output =~ "To make the recording, run the test with SKILLBOOK_RECORD=1 and the option"

    assert run(folder, options, body, [{"SKILLBOOK_RECORD", "1"}]) =~ "2 ran, 0 failed"
    File.rm!(Path.join(folder, "answer"))
    assert run(folder, options, body) =~ "2 ran, 0 failed"

    File.write!(Path.join(folder, "answer"), "Boil it.")
    output = run(folder, options, body, [{"SKILLBOOK_RECORD", "1"}])
    assert output =~ "2 ran, 1 failed"
    assert output =~ ~s(tea.evals.yaml:3 thanks)
    assert output =~ ~s(expected an answer with "welcome", got: Boil it.\n)
    assert output =~ "answer: Boil it."

    File.write!(Path.join(skills, "tea.evals.yaml"), "evaluations:\n  - {name: a}\n")
    output = run(folder, options, body)
    assert output =~ "1 ran, 1 failed"
    assert output =~ "tea.evals.yaml:2: error: evaluation 1 needs `request` [evaluation_invalid]"
  end
end
