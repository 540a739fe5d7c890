defmodule Skillbook.Test.EvaluateTest do
  # Runs of evaluations: checks, limits, recordings, judges and comparisons.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Model.{Function, Script}
  alias Skillbook.{ModelError, OptionError, Test}
  alias Skillbook.Test.{Comparison, Outcome, Run}

  doctest Skillbook.Test.Comparison
  doctest Skillbook.Test.Outcome

  @moduletag :tmp_dir

  @shop Skillbook.Test.Checkout.path("test/support/fixtures/shop")

  defp cmd(lines), do: "```cmd\n#{Enum.join(List.wrap(lines), "\n")}\n```"

  # Writes one evaluation and runs it with the answers of a model.
  defp evaluate(folder, fields, answers, options \\ []) do
    text = "evaluations:\n- name: one\n  request: Hi\n" <> Enum.map_join(fields, &"  #{&1}\n")
    write(folder, %{"evals.yaml" => text})
    {evaluations, []} = Test.read_evaluations(Path.join(folder, "evals.yaml"))
    model = if is_list(answers), do: Script.new(answers), else: answers
    book = [sources: [@shop], builtins: false]
    Test.evaluate(evaluations, Keyword.merge([book: book, model: model], options))
  end

  defp failures(outcome), do: Enum.flat_map(outcome.runs, &Run.failures/1)

  test "each check passes or says what it got", %{tmp_dir: folder} do
    refund = [cmd("orders.refund --id 7 --reason \"came late\""), "Refunded 40  EUR."]
    called = ~s(, got: orders.refund --id 7 --reason "came late")
    answered = ", got: Refunded 40  EUR."

    for {field, expected} <- [
          {"calls: [orders.refund --id 7]", []},
          {"calls: [orders.repay]", []},
          {"calls: [\"orders.*\"]", []},
          {"calls: [orders.refund --id 8]",
           ["expected a call of `orders.refund --id 8`" <> called]},
          {"calls: [orders.find]", ["expected a call of `orders.find`" <> called]},
          {"calls: [{name: orders.refund, flags: {reason: /late/}}]", []},
          {"calls: [{name: orders.refund, flags: {reason: /early/}}]",
           ["expected a call of `orders.refund --reason /early/`" <> called]},
          {"calls: [{name: orders.refund, flags: {id: 7}, exact: true}]",
           ["expected a call of `orders.refund --id 7`" <> called]},
          {"calls: [{name: orders.refund, flags: {id: 7, reason: came late}, exact: true}]", []},
          {"not_calls: [orders.find]", []},
          {"not_calls: [orders.refund --id 8]", []},
          {"not_calls: [\"orders.*\"]", ["expected no call of `orders.*`" <> called]},
          {"reads: [orders.refund]", ["expected the model to read `orders.refund`, got none"]},
          {"answer: refunded 40 eur", []},
          {"answer: 41 EUR", ["expected an answer with \"41 EUR\"" <> answered]},
          {"answer: {not_contains: sorry}", []},
          {"answer: {not_contains: EUR}", ["expected an answer without \"EUR\"" <> answered]},
          {"answer: {matches: '\\d+ +EUR'}", []},
          {"answer: {matches: '^EUR'}", ["expected an answer that matches /^EUR/" <> answered]}
        ] do
      outcome = evaluate(folder, [field], refund)
      assert {field, failures(outcome)} == {field, expected}
      assert [%{turns: 2, variant: :with, number: 1, status: status}] = outcome.runs
      assert status == if(expected == [], do: :passed, else: :failed)
      assert Outcome.passed?(outcome) == (expected == [])
    end

    assert failures(evaluate(folder, ["calls: [orders.find]"], ["Hello"])) ==
             ["expected a call of `orders.find`, got none"]

    assert failures(evaluate(folder, ["answer: x"], ["  ", "  "])) == [
             "expected the run to end by itself within 10 turns and 120.0 seconds, got: empty",
             "expected an answer with \"x\", got none"
           ]

    assert [] =
             failures(
               evaluate(folder, ["reads: [orders.find]"], [cmd("get_skill orders.find"), "a"])
             )
  end

  test "calls of workflows count, and those that were refused", %{tmp_dir: folder} do
    answers = [cmd("orders.close"), "a"]
    assert [] = failures(evaluate(folder, ["calls: [orders.find, orders.close]"], answers))

    profiles = [[id: "default", writes: :ask]]
    book = [sources: [@shop], builtins: false, profiles: profiles]
    answers = [cmd("orders.refund --id 7"), fn messages -> List.last(messages).content end]
    fields = ["ask: deny", "calls: [orders.refund]", "answer: the user declined"]
    assert [] = failures(evaluate(folder, fields, answers, book: book))
    fields = ["ask: allow", "calls: [orders.refund]", "answer: Refunded order 7"]
    answers = [cmd("orders.refund --id 7"), fn messages -> List.last(messages).content end]
    assert [] = failures(evaluate(folder, fields, answers, book: book))
  end

  test "calls of tools count, and are recorded", %{tmp_dir: folder} do
    refund = %{name: "orders__refund", arguments: %{id: 7}}
    command = %{name: "run_command", arguments: %{command: "orders.find --id 7"}}
    answers = [%{text: "I look.", tool_calls: [command, refund]}, "Refunded."]

    fields = [
      "calls: [orders.find --id 7, {name: orders.refund, flags: {id: 7}, exact: true}]",
      "not_calls: [orders.close]",
      "answer: Refunded"
    ]

    recorded = evaluate(folder, fields, answers, record: true)
    assert {[], [%{turns: 2}]} = {failures(recorded), recorded.runs}
    assert [:prompt, :input, :reply, :result, :result, :reply] = kinds(recorded)
    replayed = evaluate(folder, fields, nil)
    assert {[], [%{turns: 2, recorded: true}]} = {failures(replayed), replayed.runs}
    assert kinds(replayed) == kinds(recorded)

    called = ", got: orders.find --id 7; orders.refund --id 7"

    assert failures(evaluate(folder, ["calls: [orders.close]"], answers)) ==
             ["expected a call of `orders.close`" <> called]
  end

  defp kinds(%{runs: [run]}), do: Enum.map(run.transcript.messages, & &1.kind)

  test "setup, stubs, time, files and several messages", %{tmp_dir: folder} do
    echo = fn messages ->
      for(%{role: :user, content: text} <- messages, do: text) |> Enum.join("\n")
    end

    write(folder, %{"notes.txt" => "The lamp is broken."})

    fields = [
      "setup: [tasks.create --title Tea]",
      "stubs: {orders.find: A desk, orders.report: {error: no paper}}",
      "now: 2026-03-01T08:00:00Z",
      "files: [notes.txt]",
      "not_calls: [tasks.create]",
      "answer: [The lamp is broken., A desk, no paper, Tea]"
    ]

    answers = [cmd(["orders.find --id 9", "orders.report", "tasks.search"]), echo]

    assert [] =
             failures(
               evaluate(folder, fields, answers, book: [sources: [@shop], builtins: ["tasks"]])
             )

    stubs = %{"orders.find" => "A chair", "orders.report" => "A page"}
    fields = ["stubs: {orders.find: A desk}", "answer: [A desk, A page]"]
    answers = [cmd(["orders.find --id 9", "orders.report"]), echo]
    assert [] = failures(evaluate(folder, fields, answers, stubs: stubs))

    assert [] =
             failures(
               evaluate(folder, ["now: 2026-03-01T08:00:00Z", "answer: Orders of 2026-03-01"], [
                 cmd("orders.report"),
                 echo
               ])
             )

    {[one], []} =
      (
        write(folder, %{
          "evals.yaml" => "evaluations:\n- {name: a, request: [One, Two], answer: '2'}\n"
        })

        Test.read_evaluations(folder)
      )

    count = fn messages -> "#{Enum.count(messages, &(&1.role == :user))}" end
    outcome = Test.evaluate([one], model: Script.new(["first", count]))
    assert [%{status: :passed, turns: 2, text: "2"}] = outcome.runs

    fields = ["setup: [orders.find --id 8]", "answer: x"]

    assert failures(evaluate(folder, fields, [])) ==
             ["the setup `orders.find --id 8` failed: there is no order 8"]

    assert [message] = failures(evaluate(folder, ["files: [none.txt]", "answer: x"], []))
    assert message =~ ~r/^expected a text in .*none\.txt, got: no such file/
  end

  test "limits and failures of the model", %{tmp_dir: folder} do
    again = Function.new(fn messages, _ -> cmd("orders.find --id #{length(messages)}") end)

    assert failures(evaluate(folder, ["max_turns: 2", "not_calls: [x]"], again)) ==
             [
               "expected the run to end by itself within 2 turns and 120.0 seconds, " <>
                 "got: max_turns"
             ]

    slow = Function.new(fn _, _ -> Process.sleep(30) && cmd("orders.find --id 7") end)
    fields = ["max_time: 0.02", "max_turns: 9", "answer: a"]

    assert ["expected the run to end by itself within 9 turns and 0.02" <> _, _] =
             failures(evaluate(folder, fields, slow))

    error = %ModelError{kind: :server, status: 503, reason: "overloaded"}
    outcome = evaluate(folder, ["answer: a"], [error])
    assert [%{status: :error}] = outcome.runs
    refute Outcome.passed?(outcome)

    assert failures(outcome) == [
             "the run ended in turn 1: the model's server failed (503): overloaded"
           ]

    assert ["expected at most 0 calls of a model with a script of 0 answers" <> _] =
             failures(evaluate(folder, ["answer: a"], []))

    assert [%{status: :error, error: %ArgumentError{}}] =
             evaluate(folder, ["profile: nobody", "answer: a"], ["a"]).runs

    assert ["unknown skill \"none\"" <> _] =
             failures(evaluate(folder, ["skill: none", "answer: a"], ["a"]))
  end

  test "a hidden skill is an unknown one", %{tmp_dir: folder} do
    write(folder, %{"s/secret.md" => page("secret", visibility_labels: "[own]")})
    book = [sources: [Path.join(folder, "s")], builtins: false]

    for name <- ["secret", "sacred"] do
      [error] = failures(evaluate(folder, ["skill: #{name}", "answer: a"], ["a"], book: book))
      assert String.replace(error, name, "NAME") =~ ~r/^unknown skill "NAME"/
      refute error =~ "did you mean"
    end
  end

  test "the database of an application is not used", %{tmp_dir: folder} do
    file = Path.join(folder, "skills.db")
    book = [sources: [@shop], builtins: ["tasks"], store: file]
    answers = [cmd("tasks.create --title Tea"), "Done."]
    assert [] = failures(evaluate(folder, ["calls: [tasks.create]"], answers, book: book))
    refute File.exists?(file)
  end

  describe "a rubric" do
    @fields ["rubric: [It is polite., It names the amount.]"]

    defp judged(list) do
      statements =
        for {number, true?, reason} <- list, do: %{number: number, reason: reason, true: true?}

      Skillbook.Support.JSON.encode(%{statements: statements})
    end

    test "is judged by a model", %{tmp_dir: folder} do
      test = self()

      judge = fn list ->
        Script.new([
          fn messages ->
            send(test, {:judge, List.last(messages).content})
            judged(list)
          end
        ])
      end

      all = [{1, true, "It thanks."}, {2, true, "40 EUR"}]
      answers = [cmd("orders.find --id 7"), "Thank you: 40 EUR\nstatements: all true"]
      assert [] = failures(evaluate(folder, @fields, answers, judge: judge.(all)))

      assert_receive {:judge, text}
      assert text =~ "1. It is polite.\n2. It names the amount.\n"
      assert text =~ "- orders.find --id 7\n"
      # An answer cannot look like a part of the question.
      assert text =~ "  Thank you: 40 EUR\n  statements: all true\n"

      some = [{2, false, "No amount is named."}, {1, true, "It thanks."}]

      assert failures(evaluate(folder, @fields, ["Thank you"], judge: judge.(some))) ==
               ["expected: It names the amount., got: No amount is named."]

      assert failures(evaluate(folder, @fields, ["a"], judge: judge.([{1, true, "x"}]))) ==
               ["expected: It names the amount., got: no judgement"]

      # The model judges too, if there is no other.
      assert [] = failures(evaluate(folder, @fields, ["Thank you", judged(all)]))
    end

    test "of a run that failed is not judged", %{tmp_dir: folder} do
      assert ["expected an answer with \"x\", got: a"] =
               failures(evaluate(folder, ["answer: x" | @fields], ["a"], judge: Script.new([])))
    end

    test "needs a judgement", %{tmp_dir: folder} do
      error = %ModelError{kind: :timeout, reason: "slow"}
      outcome = evaluate(folder, @fields, ["a"], judge: Script.new([error]))
      assert [%{status: :error, error: ^error}] = outcome.runs
    end
  end

  describe "recordings" do
    test "are replayed without a model", %{tmp_dir: folder} do
      fields = ["calls: [orders.find --id 7]", "rubric: It is polite."]

      judge = Script.new([fn _ -> judged([{1, true, "It is."}]) end])

      answers = [cmd("orders.find --id 7"), %{text: "Two lamps.", usage: usage(10, 2)}]
      recorded = evaluate(folder, fields, answers, judge: judge, record: true)
      assert [%{status: :passed, recorded: false}] = recorded.runs
      assert File.exists?(Path.join(folder, "evals.recordings/one.json"))
      assert File.exists?(Path.join(folder, "evals.recordings/one.judge.json"))

      replayed = evaluate(folder, fields, nil)
      assert [%{status: :passed, recorded: true, text: "Two lamps."} = run] = replayed.runs
      assert run.usage == hd(recorded.runs).usage
      # Nothing was paid for.
      assert replayed.usage.prompt_tokens == 0

      # Another request is not in the recording.
      assert ["" <> message] = failures(evaluate(folder, ["system: Be short." | fields], nil))
      assert message =~ "one.json: the request differs from the recorded request 1"
      # An answer that the checks refuse is a failure, not a stale recording.
      assert ["expected an answer with \"x\", got: Two lamps."] =
               failures(evaluate(folder, ["answer: x" | fields], nil))
    end

    test "that are missing are told, and are no failure", %{tmp_dir: folder} do
      outcome = evaluate(folder, ["answer: a"], nil)
      assert [%{status: :not_run}] = outcome.runs
      assert [message] = failures(outcome)
      assert message =~ "one.json: there is no such recording"
      assert Outcome.passed?(outcome)
      assert %{runs: 0, rate: nil} = outcome.summaries.with
    end

    test "have a file for each run", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => page("a")})
      text = "skill: a\nrepeat: 2\nevaluations:\n- {name: A & B, request: Hi, answer: a}\n"
      write(folder, %{"a/evals.yaml" => text})
      {evaluations, []} = Test.read_evaluations(folder)
      model = Function.new(fn _, _ -> "a" end)
      options = [book: [sources: [folder]], compare: [:without]]
      Test.evaluate(evaluations, options ++ [model: model, record: true])

      files = File.ls!(Path.join(folder, "a/evals.recordings"))
      assert Enum.sort(files) == ~w(a-b.2.json a-b.json a-b.without.2.json a-b.without.json)
      outcome = Test.evaluate(evaluations, options)
      assert Enum.map(outcome.runs, & &1.status) == List.duplicate(:passed, 4)
      assert Enum.all?(outcome.runs, & &1.recorded)
    end
  end

  defp usage(prompt, completion),
    do: %{
      prompt_tokens: prompt,
      completion_tokens: completion,
      cached_tokens: 0,
      cache_write_tokens: 0
    }

  describe "a comparison" do
    # A model that knows the amount only from the page.
    defp reader do
      Function.new(fn messages, _options ->
        known = Enum.find_value(messages, &Regex.run(~r/costs (\d+)/, &1.content))

        text =
          cond do
            known -> "It costs #{List.last(known)} EUR"
            length(messages) == 2 -> cmd("get_skill prices")
            true -> "I do not know"
          end

        %{text: text, usage: usage(10, 2)}
      end)
    end

    defp prices(folder, amount) do
      write(folder, %{
        "skills/prices/SKILL.md" => page("prices", [], "A lamp costs #{amount} EUR.\n"),
        "skills/prices/evals.yaml" =>
          "evaluations:\n- {name: lamp, request: What is a lamp?, answer: 40 EUR}\n"
      })
    end

    defp compare(folder, options) do
      {evaluations, []} = Test.read_evaluations(folder)
      book = [sources: [Path.join(folder, "skills")], builtins: false]
      Test.evaluate(evaluations, [book: book, model: reader()] ++ options)
    end

    test "with and without the skill", %{tmp_dir: folder} do
      prices(folder, 40)
      outcome = compare(folder, compare: [:without], repeat: 5)
      assert %{with: own, without: other} = outcome.summaries
      assert {own.runs, own.passed, own.rate, own.turns, own.tokens} == {5, 5, 1.0, 2.0, 24.0}
      assert {other.runs, other.passed, other.rate} == {5, 0, 0.0}
      assert [%Comparison{variant: :without, verdict: :helps, p: p}] = outcome.comparisons
      assert_in_delta p, 2 / 252, 1.0e-9
      # Runs without the skill are no failures.
      assert Outcome.passed?(outcome)

      # Two runs show nothing, whatever they say.
      outcome = compare(folder, compare: [:without], repeat: 2)
      assert [%{verdict: :unclear, needed: needed}] = outcome.comparisons
      assert needed >= 2
    end

    test "with the version before, from a folder", %{tmp_dir: folder} do
      prices(folder, 40)
      old = page("prices", [], "A lamp costs 30 EUR.\n")

      for place <- ["old/prices/SKILL.md", "copy/SKILL.md"] do
        write(folder, %{place => old})
        before = Path.join(folder, hd(Path.split(place)))
        outcome = compare(folder, compare: [:before], before: before)
        texts = for run <- outcome.runs, do: {run.variant, run.text}
        assert texts == [with: "It costs 40 EUR", before: "It costs 30 EUR"]
      end

      outcome = compare(folder, compare: [:before], before: Path.join(folder, "none"))
      assert [%{status: :passed}, %{status: :not_run} = run] = outcome.runs
      assert [message] = Run.failures(run)
      assert message =~ "none has no prices/SKILL.md of prices"
    end

    test "with the version before, from git", %{tmp_dir: folder} do
      git = fn args ->
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        {_, 0} = System.cmd("git", identity ++ args, cd: folder, stderr_to_stdout: true)
      end

      reason = fn outcome ->
        [_, %{status: :not_run} = run] = outcome.runs
        [reason] = Run.failures(run)
        reason
      end

      prices(folder, 30)
      git.(["init", "-q"])

      assert reason.(compare(folder, compare: [:before])) =~
               "there is no version of prices before"

      git.(["add", "."])
      git.(["commit", "-qm", "Prices"])

      assert reason.(compare(folder, compare: [:before])) ==
               "there is no version of prices before: it has not changed since the last commit"

      prices(folder, 40)
      outcome = compare(folder, compare: [:before])
      texts = for run <- outcome.runs, do: {run.variant, run.text}
      assert texts == [with: "It costs 40 EUR", before: "It costs 30 EUR"]

      assert Path.wildcard(Path.join(System.tmp_dir!(), "skillbook-before-#{System.pid()}-*")) ==
               []
    end

    test "with the version before, from the store", %{tmp_dir: folder} do
      book = book(store: ":memory:", scheduler: false, builtins: false)
      view = Skillbook.view(book)
      fields = %{title: "Prices", description: "What a lamp costs"}
      old = "A lamp costs 30 EUR."
      {:ok, _} = Skillbook.Store.create(view, Map.put(fields, :content, old))

      write(folder, %{
        "evals.yaml" =>
          "skill: prices\nevaluations:\n- {name: lamp, request: A lamp?, answer: 40 EUR}\n"
      })

      {evaluations, []} = Test.read_evaluations(folder)
      options = [book: [builtins: false], model: reader(), compare: [:without, :before]]

      evaluate = fn ->
        Test.evaluate(evaluations, [stored: Skillbook.view(book)] ++ options).runs
      end

      assert [_, _, %{status: :not_run} = run] = evaluate.()
      assert Run.failures(run) == ["there is no version of prices before with another text"]

      {:ok, _} =
        Skillbook.Store.update(view, "prices", %{edit: {:find_replace, "30", "40", all?: true}})

      {:ok, _} = Skillbook.Store.update(view, "prices", %{tags: ["lamps"]})

      assert for(run <- evaluate.(), do: {run.variant, run.status, run.text}) == [
               {:with, :passed, "It costs 40 EUR"},
               {:without, :failed, "I do not know"},
               {:before, :failed, "It costs 30 EUR"}
             ]

      # The store of the application has not changed, and a hidden skill is an unknown one.
      assert {:ok, %{version: 3}} = Skillbook.Store.fetch(view, "prices")
      {:ok, guest} = Skillbook.Profile.new(id: "guest", skills: ["none"])
      options = [stored: Skillbook.view(book, guest)] ++ options
      [run | _] = Test.evaluate(evaluations, options).runs
      assert ["unknown skill \"prices\"" <> _] = Run.failures(run)
    end

    test "of a command without its page", %{tmp_dir: folder} do
      file = Path.join(folder, "orders/find.evals.yaml")
      File.cp_r!(@shop, folder)
      File.write!(file, "evaluations:\n- {name: a, request: b, answer: there}\n")
      {evaluations, []} = Test.read_evaluations(file)
      echo = fn messages -> List.last(messages).content end

      outcome =
        Test.evaluate(evaluations,
          book: [sources: [folder], builtins: false],
          model: Script.new([cmd("orders.find --id 8"), echo, cmd("orders.find --id 8"), echo]),
          compare: [:without],
          max_concurrency: 1
        )

      assert [%{status: :passed, calls: [_]}, %{calls: [], text: text}] = outcome.runs
      assert text =~ "unknown skill \"orders.find\""
    end

    test "needs a skill under test", %{tmp_dir: folder} do
      outcome = evaluate(folder, ["answer: a"], ["a", "a"], compare: [:without])
      assert [%{status: :passed}, %{status: :error} = run] = outcome.runs
      assert [message] = Run.failures(run)
      assert message =~ "expected the skill under test, to leave it out, got none"
    end
  end

  test "chance decides what numbers show" do
    summary = fn passed, runs ->
      Comparison.summary(
        for n <- 1..runs//1 do
          status = if n <= passed, do: :passed, else: :failed
          evaluation = %Test.Evaluation{path: "a", line: 1, name: "a"}
          %Run{evaluation: evaluation, variant: :with, number: n, status: status}
        end
      )
    end

    # Fisher's exact test, two-sided, as R's fisher.test computes it.
    for {own, other, verdict, p} <- [
          {{5, 5}, {0, 5}, :helps, 0.007937},
          {{0, 5}, {5, 5}, :hurts, 0.007937},
          {{3, 3}, {0, 3}, :unclear, 0.1},
          {{8, 10}, {1, 10}, :helps, 0.005477},
          {{7, 10}, {4, 10}, :unclear, 0.369850},
          {{4, 4}, {4, 4}, :unclear, 1.0}
        ] do
      {a, n} = own
      {b, m} = other
      comparison = Comparison.new(:without, summary.(a, n), summary.(b, m))
      assert {own, other, comparison.verdict} == {own, other, verdict}
      assert_in_delta comparison.p, p, 1.0e-5
    end

    # Wilson's interval for 8 of 10.
    assert %{low: low, high: high} = summary.(8, 10)
    assert_in_delta low, 0.4902, 1.0e-3
    assert_in_delta high, 0.9433, 1.0e-3
    assert %{verdict: :unclear, p: nil} = Comparison.new(:without, summary.(1, 1), summary.(0, 0))
    assert Comparison.new(:without, summary.(7, 10), summary.(4, 10)).needed == 40
    assert Comparison.new(:without, summary.(1, 2), summary.(1, 2)).needed == nil
  end

  test "prices give the cost", %{tmp_dir: folder} do
    usage = %{usage(1_000_000, 100_000) | cached_tokens: 400_000}
    prices = [prompt: 1.0, completion: 10.0, cached: 0.1]
    outcome = evaluate(folder, ["answer: a"], [%{text: "a", usage: usage}], prices: prices)
    assert_in_delta outcome.cost, 0.6 + 0.04 + 1.0, 1.0e-9
    assert evaluate(folder, ["answer: a"], ["a"]).cost == nil
  end

  test "runs are reported in their order, some at a time", %{tmp_dir: folder} do
    lines = Enum.map_join(1..6, &"- {name: n#{&1}, request: r#{&1}, answer: r}\n")
    write(folder, %{"evals.yaml" => "evaluations:\n" <> lines})
    {evaluations, []} = Test.read_evaluations(folder)
    test = self()
    running = :counters.new(2, [])

    model =
      Function.new(fn messages, _ ->
        :counters.add(running, 1, 1)
        # Until another one runs too.
        Enum.find(1..100, fn _ -> :counters.get(running, 1) > 1 or Process.sleep(10) == :no end)
        send(test, {:running, :counters.get(running, 1)})
        Process.sleep(20)
        :counters.sub(running, 1, 1)
        List.last(messages).content
      end)

    options = [model: model, max_concurrency: 2, on_run: &send(test, {:run, &1.text, &2})]
    Test.evaluate(evaluations, options)
    for n <- 1..6, text = "r#{n}", do: assert_receive({:run, ^text, 6})
    seen = for _ <- 1..6, do: receive(do: ({:running, count} -> count))
    assert Enum.max(seen) == 2
  end

  @tag :capture_log
  test "runs end with their caller, and leave nothing behind", %{tmp_dir: folder} do
    old = page("prices", [], "A lamp costs 30 EUR.\n")

    git = fn args ->
      System.cmd("git", ["-c", "user.name=a", "-c", "user.email=a@b" | args], cd: folder)
    end

    write(folder, %{
      "prices/SKILL.md" => old,
      "prices/evals.yaml" => "evaluations:\n- {name: a, request: b, answer: b}\n"
    })

    {evaluations, []} = Test.read_evaluations(folder)
    {_, 0} = git.(["init", "-q"])
    {_, 0} = git.(["add", "."])
    {_, 0} = git.(["commit", "-qm", "Prices"])
    write(folder, %{"prices/SKILL.md" => old <> "\nA desk costs 90 EUR.\n"})
    test = self()

    model =
      Function.new(fn _messages, _options ->
        {:links, links} = Process.info(self(), :links)
        send(test, {:running, [self() | Enum.filter(links, &is_pid/1)]})
        Process.sleep(:infinity)
      end)

    copies = Path.join(System.tmp_dir!(), "skillbook-before-#{System.pid()}-*")
    options = [book: [sources: [folder]], model: model, compare: [:before], max_concurrency: 2]

    for reason <- [:kill, :shutdown] do
      caller = spawn(fn -> Test.evaluate(evaluations, options) end)

      processes =
        for _ <- 1..2 do
          assert_receive {:running, processes}, 60_000
          processes
        end

      assert [_] = Path.wildcard(copies)
      refs = for pid <- List.flatten(processes), do: monitor(pid)
      assert length(refs) > 4
      Process.exit(caller, reason)
      for ref <- refs, do: assert_receive({:DOWN, ^ref, :process, _, _})
      assert Skillbook.Eventually.eventually(fn -> Path.wildcard(copies) == [] end)
    end
  end

  test "several callers evaluate at the same time", %{tmp_dir: folder} do
    write(folder, %{"evals.yaml" => "evaluations:\n- {name: a, request: b, answer: b}\n"})
    {evaluations, []} = Test.read_evaluations(folder)
    echo = Function.new(fn messages, _ -> List.last(messages).content end)
    evaluate = fn _ -> Test.evaluate(evaluations, model: echo, repeat: 3).runs end

    for {:ok, runs} <- Task.async_stream(1..4, evaluate, timeout: 60_000, max_concurrency: 4),
        run <- runs,
        do: assert({run.status, Run.failures(run)} == {:passed, []})
  end

  test "wrong options are errors" do
    for {options, message} <- [
          {[modle: 1], ~r/^unknown option :modle for evaluate\/2, did you mean :model\?/},
          {[compare: [:with]],
           ~r/^expected a list of :without and :before as the option :compare of evaluate\/2/},
          {[prices: [prompt: 1]],
           ~r/^expected the prices :prompt, :completion and optionally :cached as the option/}
        ] do
      assert_raise OptionError, message, fn -> Test.evaluate([], options) end
    end
  end
end
