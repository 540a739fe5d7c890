defmodule Skillbook.CLI.EvaluationsTest do
  # Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  import ExUnit.CaptureIO

  alias Skillbook.Support.JSON
  alias Skillbook.Test.ChatServer

  @moduletag :tmp_dir

  # A skill with two evaluations, below a folder that lines of the output are relative to.
  defp tea(folder, more \\ "") do
    write(folder, %{
      "tea.md" => "---\nname: tea\ndescription: How to brew tea\n---\nBoil water.\n",
      "tea.evals.yaml" => """
      #{more}
      evaluations:
        - {name: brews, request: Tea please, reads: [tea], answer: boil}
        - {name: thanks, request: Thank you, answer: welcome}
      """
    })
  end

  defp server(texts) do
    answers = for text <- texts, do: ChatServer.answer(text, usage: {100, 10})
    {_server, url} = ChatServer.start(answers)
    ["--url", url, "--model", "m", "--jobs", "1"]
  end

  defp run(folder, args) do
    {output, status, errors} = run_cli(["--no-builtins", "test", folder | args])
    folders = [folder <> "/", Path.relative_to_cwd(folder) <> "/"]
    {String.replace(output, folders, ""), status, errors}
  end

  @reads "```cmd\nget_skill tea\n```"

  test "evaluations are recorded with a model, and replayed without it", %{tmp_dir: folder} do
    tea(folder)

    assert run(folder, []) ==
             {"""
              None of 1 skill has examples.

              2 evaluations: 0 passed, 0 failed
              2 not run, for want of a recording; --url, --model and --record make it
              """, 0, ""}

    answers = [@reads, "Boil water", "You are welcome"]

    assert run(folder, server(answers) ++ ["--record", "--only", "evaluations"]) ==
             {"""
              2 evaluations: 2 passed, 0 failed
              tokens: 300 in prompts, 30 in replies
              """, 0, ""}

    # The files of the recordings are no part of the skills.
    assert {"2 evaluations: 2 passed, 0 failed, 2 of them from recordings\n", 0, ""} =
             run(folder, ["--only", "evaluations"])

    # A page names the evaluations beside it, and so does their own file.
    for file <- ["tea.md", "tea.evals.yaml"] do
      assert {"2 evaluations: 2 passed" <> _, 0, ""} =
               run(Path.join(folder, file), ["--only", "evaluations"])
    end

    # The skill has changed, so the recording says nothing about it.
    page = "---\nname: tea\ndescription: How to make tea\n---\nBoil water.\n"
    write(folder, %{"tea.md" => page})
    assert {output, 1, ""} = run(folder, ["--only", "evaluations"])
    assert output =~ "tea.evals.yaml:3 brews  not completed\n  tea.evals.recordings/brews.json: "
    assert output =~ "-- tea: How to brew tea"
    assert output =~ "+- tea: How to make tea"
    assert output =~ "2 evaluations: 0 passed, 2 failed, 2 of them from recordings\n"
    assert output =~ "2 recordings are not of this version; --url, --model and --record make them"
  end

  test "a failure says what was expected", %{tmp_dir: folder} do
    tea(folder)
    answers = ["No", "Welcome"]
    prices = ["--prompt-price", "2.0", "--reply-price", "10.0"]

    assert run(folder, server(answers) ++ prices) ==
             {"""
              None of 1 skill has examples.

              tea.evals.yaml:3 brews  failed
                expected the model to read `tea`, got none
                expected an answer with "boil", got: No

              2 evaluations: 1 passed, 1 failed
              tokens: 200 in prompts, 20 in replies; cost: 0.0006
              """, 1, ""}

    refute File.exists?(Path.join(folder, "tea.evals.recordings"))
  end

  test "a broken file is a failure", %{tmp_dir: folder} do
    tea(folder, "skil: tea")

    assert {output, 1, ""} = run(folder, ["--only", "evaluations"])

    assert output == """
           tea.evals.yaml:1: error: unknown field `skil` of the file \
           [evaluation_invalid]
             hint: did you mean `skill`?

           0 evaluations: 0 passed, 0 failed
           """
  end

  test "comparisons say what the skill is worth", %{tmp_dir: folder} do
    write(folder, %{
      "tea/SKILL.md" => "---\nname: tea\ndescription: Tea\n---\nBoil water.\n",
      "tea/evals.yaml" => "evaluations:\n  - {name: brews, request: Tea, answer: boil}\n",
      "old/SKILL.md" => "---\nname: tea\ndescription: Tea\n---\nNo water.\n"
    })

    with_skill = List.duplicate("Boil it", 5)
    without = List.duplicate("No idea", 5)
    flags = ["--only", "evaluations", "--repeat", "5", "--compare", "without"]
    target = Path.join(folder, "tea")

    assert run(target, server(with_skill ++ without) ++ flags) ==
             {"""
              1 evaluation in 5 runs: 5 passed, 0 failed
              tokens: 1000 in prompts, 100 in replies

                with the skill           5 of 5 passed (100%, 95% interval 57% to 100%), \
              110 tokens and 1.0 turns a run
                without the skill        0 of 5 passed (0%, 95% interval 0% to 43%), \
              110 tokens and 1.0 turns a run
              The skill helps: chance alone makes such a difference in 0.8% of comparisons.
              """, 0, ""}

    before = ["--compare", "before", "--before", Path.join(folder, "old")]
    flags = ["--only", "evaluations", "--repeat", "2"] ++ before

    {output, 0, ""} =
      run(target, server(List.duplicate("Boil it", 2) ++ ["x", "Boil it"]) ++ flags)

    assert output =~ "  with its version before  1 of 2 passed (50%, 95% interval 9% to 91%)"

    assert output =~
             "No difference is shown to runs with its version before: chance alone makes one " <>
               "of this size in 100.0% of comparisons. About 8 runs of each would show a " <>
               "difference of this size.\n"

    # Without a version before, the reason is told.
    flags = ["--only", "evaluations", "--compare", "before"]
    flags = flags ++ ["--before", Path.join(folder, "tea.recordings")]
    File.mkdir_p!(Path.join(folder, "tea.recordings"))
    {output, 0, ""} = run(target, server(["Boil it"]) ++ flags)
    assert output =~ ~r/with its version before: .*tea\.recordings has no SKILL\.md of tea\n/
    assert output =~ "Nothing to compare: no evaluation ran both with the skill and with its "
  end

  test "JSON has all runs", %{tmp_dir: folder} do
    tea(folder)
    {output, 1, ""} = run(folder, server([@reads, "Boil", "No"]) ++ ["--json"])
    {:ok, %{"results" => [], "evaluations" => evaluations}} = JSON.decode(output)
    assert [brews, thanks] = evaluations["runs"]
    assert %{"name" => "brews", "status" => "passed", "line" => 3, "turns" => 2} = brews
    assert [%{"kind" => "read", "passed" => true, "got" => nil}, _] = brews["checks"]
    assert %{"status" => "failed", "text" => "No", "variant" => "with"} = thanks
    assert [%{"expected" => "welcome", "got" => "No"}] = thanks["checks"]
    assert evaluations["usage"]["prompt_tokens"] == 300
    assert %{"with" => %{"runs" => 2, "passed" => 1}} = evaluations["summaries"]
    assert evaluations["diagnostics"] == []
  end

  test "a rubric is judged by another model", %{tmp_dir: folder} do
    write(folder, %{
      "tea/SKILL.md" => "---\nname: tea\ndescription: Tea\n---\nBoil water.\n",
      "tea/EVAL.md" => "## brews\n### Prompt\nTea\n### Expect\nIt is polite.\n"
    })

    judgement = ~s({"statements": [{"number": 1, "reason": "It says please.", "true": true}]})
    flags = server(["Please boil it", judgement]) ++ ["--judge-model", "judge"]
    {output, 0, ""} = run(Path.join(folder, "tea"), flags ++ ["--only", "evaluations"])
    assert output =~ "1 evaluation: 1 passed, 0 failed\n"
    assert_receive {:chat, %{body: %{"model" => "m"}}}
    assert_receive {:chat, %{body: %{"model" => "judge"}}}
  end

  test "profiles of files have the grants of the command line", %{tmp_dir: folder} do
    write(folder, %{
      "a.md" => page("a", visibility_labels: "[own]"),
      "a.evals.yaml" =>
        "profile: support\nskill: a\nevaluations:\n  - {name: n, request: Hi, answer: Hi}\n"
    })

    assert {output, 1, ""} = run(folder, server(["Hi"]) ++ ["--only", "evaluations"])
    assert output =~ "unknown skill \"a\""
    flags = ["--grant", "own", "--only", "evaluations"]
    assert {"1 evaluation: 1 passed" <> _, 0, ""} = run(folder, server(["Hi"]) ++ flags)
  end

  test "wrong flags are told", %{tmp_dir: folder} do
    for {flags, message} <- [
          {["--record"],
           "`test` needs --url URL, the model's server, for example http://localhost:8080, or " <>
             "--api NAME for that of a vendor"},
          {["--url", "http://localhost:1"], "`test` needs --model NAME, the name of the model"},
          {["--before", "none"], "--before expects a folder, got: none"},
          {["--compare", "with"], "--compare expects one of without, before, got: with"},
          {["--repeat", "0"], "--repeat expects a whole number from 1 to 100, got: 0"},
          {["--prompt-price", "1.0"],
           "--prompt-price and --reply-price belong together; got one of them"}
        ] do
      assert {"", 2, errors} = run(folder, flags)
      assert errors == "skillbook: #{message}\nSee: skillbook test --help\n"
    end

    assert {"There are no evaluations.\n", 2, errors} = run(folder, ["--only", "evaluations"])

    assert errors =~
             "nothing was tested: expected evaluations beside skills, such as evals.yaml\n"
  end

  test "mix skillbook.test runs the same command", %{tmp_dir: folder} do
    tea(folder)

    on_exit(fn ->
      for key <- [:run_schedules, :modules],
          do: Application.delete_env(:skillbook, key, persistent: true)
    end)

    args = ["--dir", folder, "--no-builtins", "--only", "evaluations"]
    output = capture_io(fn -> Mix.Tasks.Skillbook.Test.run(args) end)
    assert output =~ "2 evaluations: 0 passed, 0 failed\n2 not run"
    File.write!(Path.join(folder, "tea.evals.yaml"), "evaluations: 1\n")
    run = fn -> catch_exit(Mix.Tasks.Skillbook.Test.run(args)) end
    capture_io(fn -> assert run.() == {:shutdown, 1} end)
  end
end
