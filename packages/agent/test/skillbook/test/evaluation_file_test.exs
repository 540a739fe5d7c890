defmodule Skillbook.Test.EvaluationFileTest do
  # Files of evaluations in three formats: their fields, and the places of their mistakes.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test
  alias Skillbook.Test.{Evaluation, EvaluationFile}

  doctest Skillbook.Test.Evaluation
  doctest Skillbook.Test.Run

  @moduletag :tmp_dir

  defp read(folder, name, text) do
    write(folder, %{name => text})
    {evaluations, diagnostics} = Test.read_evaluations(Path.join(folder, name))

    lines =
      for diagnostic <- diagnostics do
        assert diagnostic.path == Path.join(folder, name)
        hint = if diagnostic.hint, do: " (#{diagnostic.hint})", else: ""
        "#{diagnostic.line} #{diagnostic.code}: #{diagnostic.message}#{hint}"
      end

    {evaluations, lines}
  end

  test "files are found beside skills and below folders", %{tmp_dir: folder} do
    write(folder, %{
      "mail/SKILL.md" => "",
      "mail/EVAL.md" => "",
      "mail/evals.yaml" => "",
      "mail/send.md" => "",
      "mail/send.evals.yaml" => "",
      "mail/send.eval.md" => "",
      "mail/sender.evals.yaml" => "",
      "pdf/SKILL.md" => "",
      "pdf/evals/evals.json" => "",
      "pdf/evals.json" => "",
      "pdf/my-evals.yaml" => "",
      "pdf/.hidden/evals.yaml" => "",
      "pdf/node_modules/evals.yaml" => "",
      "pdf/evals.recordings/evals.yaml" => ""
    })

    find = fn path ->
      for file <- EvaluationFile.find([Path.join(folder, path)]),
          do: Path.relative_to(file, folder)
    end

    assert find.("") ==
             ~w(mail/EVAL.md mail/evals.yaml mail/send.eval.md mail/send.evals.yaml
                mail/sender.evals.yaml pdf/evals/evals.json)

    assert find.("mail/send.md") == ~w(mail/send.eval.md mail/send.evals.yaml)
    assert find.("mail/SKILL.md") == ~w(mail/EVAL.md mail/evals.yaml)
    assert find.("mail/send.evals.yaml") == ~w(mail/send.evals.yaml)
    assert find.("none") == []
  end

  describe "our format" do
    test "has all fields", %{tmp_dir: folder} do
      write(folder, %{"mail/send.md" => page("mail.send")})

      {[one, two], []} =
        read(folder, "mail/send.evals.yaml", """
        # Comments and blank lines are fine.
        profile: support
        system: You are a clerk.
        max_turns: 5
        stubs:
          mail.find: Two mails
          mail.send: {error: no network}

        evaluations:
          - name: late
            request: Tell Bob that I am late
            now: 2026-03-01T08:00:00Z
            setup: [tasks.create --title Tea]
            ask: deny
            max_time: 1.5
            max_tokens: 9000
            repeat: 3
            files: [a.txt]
            calls:
              - mail.send --to bob
              - name: mail.send
                flags: {text: /late/, cc: [ann, joe]}
                exact: true
            not_calls: mail.delete*
            reads: [mail]
            answer:
              contains: sent
              not_contains: [error, failed]
              matches: "\\\\d+"
            rubric: It is polite.

          - request: [Hello, And now?]
            name: two messages
            skill: mail.find
            max_turns: 7
            answer: [hello, there]
        """)

      assert %Evaluation{
               name: "late",
               line: 10,
               format: :skillbook,
               profile: "support",
               system: "You are a clerk.",
               requests: ["Tell Bob that I am late"],
               now: ~U[2026-03-01 08:00:00Z],
               setup: ["tasks.create --title Tea"],
               ask: :deny,
               max_turns: 5,
               max_time: 1500,
               max_tokens: 9000,
               repeat: 3,
               stubs: %{"mail.find" => "Two mails", "mail.send" => {:error, "no network"}},
               calls: [
                 %{name: "mail.send", flags: %{"to" => "bob"}, exact: false},
                 %{
                   name: "mail.send",
                   flags: %{"text" => %Regex{source: "late"} = late},
                   exact: true
                 }
               ],
               not_calls: [%{name: "mail.delete*"}],
               reads: ["mail"],
               contains: ["sent"],
               not_contains: ["error", "failed"],
               matches: ["\\d+"],
               rubric: ["It is polite."],
               skill: nil
             } = one

      assert Regex.opts(late) == Regex.opts(~r/late/u)
      assert one.files == [Path.join(folder, "mail/a.txt")]
      assert one.beside == Path.join(folder, "mail/send.md")
      assert {two.line, two.skill, two.max_turns} == {32, "mail.find", 7}
      assert {two.requests, two.contains} == {["Hello", "And now?"], ["hello", "there"]}
      assert two.stubs == one.stubs
    end

    test "tells the place of a mistake", %{tmp_dir: folder} do
      for {lines, expected} <- [
            {["  request: Hi", "  answer: a"],
             "2 evaluation 1 needs `name` (write `name:` and a short title)"},
            {["  name: n", "  answer: a"],
             "2 evaluation 1 needs `request` (write `request:` and the words of a user)"},
            {["  name: n", "  request: Hi"],
             "2 the evaluation `n` checks nothing (write `calls:`, `not_calls:`, `reads:`, " <>
               "`answer:` or `rubric:`)"},
            {["  name: n", "  request: Hi", "  rubrik: a"],
             "4 unknown field `rubrik` of evaluation 1 (did you mean `rubric`?)"},
            {["  name: n", "  request: 5"],
             "3 expected text, or a list of texts as `request` of evaluation 1, got: 5"},
            {["  name: n", "  calls: [5]"],
             "3 expected commands, or `name` with `flags`, as `calls` of evaluation 1, got: 5"},
            {["  name: n", "  calls: []"],
             "3 expected commands, or `name` with `flags`, as `calls` of evaluation 1, got: []"},
            {["  name: n", "  calls:", "    - {name: a, flag: {}}"],
             "3 expected commands, or `name` with `flags`, as `calls` of evaluation 1, " <>
               ~s(got: {"flag":{},"name":"a"})},
            {["  name: n", "  calls: [{name: a, flags: {b: '/(/'}}]"],
             "3 expected commands, or `name` with `flags`, as `calls` of evaluation 1, " <>
               ~s(got: {"flags":{"b":"/(/"},"name":"a"})},
            {["  name: n", "  answer: {has: a}"],
             "3 expected the fields contains, not_contains, matches as `answer` of " <>
               ~s(evaluation 1, got: "has")},
            {["  name: n", "  answer: {matches: '('}"],
             "3 expected regular expressions as `answer` of " <>
               ~s(evaluation 1, got: "\(")},
            {["  name: n", "  stubs: {a: 5}"],
             "3 expected a text or `error: text` for each name as `stubs` of evaluation " <>
               "1, got: 5"},
            {["  name: n", "  ask: maybe"],
             ~s(3 expected `allow` or `deny` as `ask` of evaluation 1, got: "maybe")},
            {["  name: n", "  now: today"],
             "3 expected a time such as 2026-03-01T08:00:00Z as `now` of evaluation 1, " <>
               ~s(got: "today")},
            {["  name: n", "  max_turns: 0"],
             "3 expected a whole number from 1 as `max_turns` of evaluation 1, got: 0"},
            {["  name: n", "  max_time: -1"],
             "3 expected a number of seconds up to 86400 as `max_time` of evaluation 1, got: -1"},
            {["  name: n", "  repeat: 101"],
             "3 expected a whole number from 1 to 100 as `repeat` of evaluation 1, got: 101"},
            {["  name: n", "  setup: [\"tasks.create --title 'a\"]"],
             "3 expected commands as `setup` of evaluation 1, got: \"tasks.create --title 'a\""}
          ] do
        ["  " <> first | rest] = lines
        text = Enum.join(["evaluations:", "- " <> first | rest] ++ [""], "\n")
        [line | message] = String.split(expected, " ", parts: 2)
        assert {[], [error]} = read(folder, "evals.yaml", text)
        assert error == "#{line} evaluation_invalid: #{message}"
      end
    end

    test "tells mistakes of the file, and keeps what is right", %{tmp_dir: folder} do
      good = "  - {name: a, request: b, answer: c}\n"
      hint = "(write `evaluations:` and below it `- name: …`, `request: …`)"
      expected = "expected `evaluations`, a list of 1 to 1000, got: "

      for {text, count, errors} <- [
            {"", 0, ["1 evaluation_invalid: #{expected}none #{hint}"]},
            {"evaluations: []", 0, ["1 evaluation_invalid: #{expected}[] #{hint}"]},
            {"evaluations:\n  - 5\n", 0,
             [
               "2 evaluation_invalid: expected fields of evaluation 1, got: 5 (write " <>
                 "`name: …` " <>
                 "and `request: …`)"
             ]},
            {"evaluations:\n#{good}  - {name: A!, request: b, answer: c}\n", 1,
             [
               "3 evaluation_invalid: expected names that differ in letters and digits, got " <>
                 "`A!` after `a` in line 2 (give it another name)"
             ]},
            {"evaluations:\n#{good}  - {name: x}\n", 1,
             [
               "3 evaluation_invalid: evaluation 2 needs `request` (write `request:` and the " <>
                 "words of a user)"
             ]},
            # A wrong field of the file is one of all evaluations.
            {"skil: a\nevaluations:\n#{good}", 0,
             ["1 evaluation_invalid: unknown field `skil` of the file (did you mean `skill`?)"]},
            {"evaluations: [", 0, :broken},
            {"evaluations:\n#{good}evaluations:\n#{good}", 1, :broken}
          ] do
        {evaluations, found} = read(folder, "evals.yaml", text)
        assert length(evaluations) == count
        if errors == :broken, do: assert([_] = found), else: assert(found == errors)
      end

      assert {[], ["1 evaluation_invalid: expected UTF-8"]} = read(folder, "evals.yaml", <<255>>)
      large = String.duplicate("#", 1024 * 1024 + 1)

      assert {[], ["1 evaluation_invalid: expected up to 1048576 bytes"]} =
               read(folder, "evals.yaml", large)
    end
  end

  describe "SkillKit's format" do
    test "has cases below headings", %{tmp_dir: folder} do
      write(folder, %{"greeter/SKILL.md" => page("greeter")})

      {[one, two], []} =
        read(folder, "greeter/EVAL.md", """
        ## greets the user by name
        ### Prompt
        Hi, I'm Sam
        # not a heading of ours

        ### Step 1
        ### Expect
        The assistant greets Sam.

        ## handles a missing name
        ### prompt
        Hello there
        # EXPECT
        It invents no name.
        """)

      assert {one.name, one.line, one.format} == {"greets the user by name", 1, :skill_kit}
      assert one.requests == ["Hi, I'm Sam\n# not a heading of ours\n\n### Step 1"]
      assert one.rubric == ["The assistant greets Sam."]

      assert {two.line, two.requests, two.rubric} ==
               {10, ["Hello there"], ["It invents no name."]}

      assert one.beside == Path.join(folder, "greeter/SKILL.md")
    end

    test "has one case with a name, in two older forms", %{tmp_dir: folder} do
      text = """
      ---
      name: "greets"
      description: "Greets"
      ---
      ## Prompt
      Hi, I'm Sam

      ## Expect
      It greets Sam.
      """

      assert {[%{name: "greets", requests: ["Hi, I'm Sam"], rubric: ["It greets Sam."]}], []} =
               read(folder, "a.eval.md", text)

      text = """
      ---
      name: "greets"
      prompt: "Hi, I'm Sam"
      expect:
        response: ["Sam"]
        not_response: error
        tools: [bash]
      ---
      It greets Sam.
      """

      assert {[one], []} = read(folder, "a.eval.md", text)

      assert {one.contains, one.not_contains, one.rubric} ==
               {["Sam"], ["error"], ["It greets Sam."]}

      assert [%{name: "bash"}] = one.calls
    end

    test "tells what is not supported", %{tmp_dir: folder} do
      write(folder, %{"other/SKILL.md" => page("other"), "a.md" => page("a")})

      text = """
      ---
      skills:
        - other
        - "SkillKit.Tools.Shell"
      tools: ["SkillKit.Tools.Shell"]
      model: "anthropic://claude"
      agent: agents/a
      system: Be short.
      tag: x
      ---
      ## a
      ### Prompt
      b
      ### Expect
      c
      """

      {[one], found} = read(folder, "a.eval.md", text)
      assert one.system == "Be short."
      assert one.beside == Path.join(folder, "other/SKILL.md")

      assert found == [
               ~s(2 evaluation_unsupported: the skill "SkillKit.Tools.Shell" is not supported ) <>
                 "(name the skill by its folder)",
               "5 evaluation_unsupported: the field `tools` is not supported (the profile's " <>
                 "tools are used; stub commands in an evals.yaml)",
               "6 evaluation_unsupported: the field `model` is not supported (name the model " <>
                 "on " <>
                 "the command line, or as the option `:model`)",
               "7 evaluation_unsupported: the field `agent` is not supported (the profile of " <>
                 "the " <>
                 "run is used, with all of its skills)",
               "9 evaluation_unsupported: the field `tag` is not supported (name the skill by " <>
                 "its folder)"
             ]
    end

    test "tells the place of a mistake", %{tmp_dir: folder} do
      for {text, count, expected} <- [
            {"Text.\n", 0,
             "1 evaluation_invalid: expected a heading of level 2 for each evaluation, got " <>
               "none " <>
               "(write `## NAME`, `### Prompt` and `### Expect`)"},
            {"## a\n### Prompt\nb\n", 0,
             "1 evaluation_invalid: the evaluation `a` needs a section Expect (write " <>
               "`### Expect` and text below it)"},
            {"---\nsystem: x\n---\n\n## a\n### Expect\nb\n## c\n### Prompt\nd\n### Expect\ne\n",
             1,
             "5 evaluation_invalid: the evaluation `a` needs a section Prompt (write " <>
               "`### Prompt` and text below it)"},
            {"---\nname: a\nprompt: b\n---\n", 0,
             "1 evaluation_invalid: the evaluation `a` checks nothing (write `calls:`, " <>
               "`not_calls:`, `reads:`, `answer:` or `rubric:`)"}
          ] do
        assert {evaluations, [^expected]} = read(folder, "EVAL.md", text)
        assert length(evaluations) == count
      end
    end
  end

  describe "skill-creator's format" do
    test "has prompts and statements", %{tmp_dir: folder} do
      write(folder, %{"pdf/SKILL.md" => page("pdf"), "pdf/evals/files/a.txt" => "A"})

      {[one, two], found} =
        read(folder, "pdf/evals/evals.json", """
        {
          "skill_name": "pdf",
          "evals": [
            {
              "id": 1,
              "prompt": "Read it",
              "expected_output": "The text",
              "files": ["evals/files/a.txt", "../outside.txt"],
              "expectations": ["It has X", 5]
            },
            {
              "id": 2,
              "name": "second",
              "prompt": "Again",
              "assertions": [{"text": "It has Y"}],
              "weight": 3
            },
            {"id": 3, "prompt": "Nothing"},
            {"id": 4}
          ]
        }
        """)

      assert {one.name, one.line, one.format} == {"1", 6, :skill_creator}
      assert {one.requests, one.rubric} == {["Read it"], ["The text", "It has X"]}
      assert one.files == [Path.join(folder, "pdf/evals/files/a.txt")]
      assert one.beside == Path.join(folder, "pdf/SKILL.md")
      assert {two.name, two.rubric} == {"second", ["It has Y"]}
      hint = "(write it as a statement of `expectations`)"

      assert Enum.sort(found) == [
               "1 evaluation_invalid: evaluation 4 needs `prompt`, a text (write " <>
                 "\"prompt\": \"…\")",
               "14 evaluation_unsupported: the field `weight` is not supported #{hint}",
               "18 evaluation_invalid: the evaluation `3` checks nothing (write " <>
                 "\"expected_output\": \"…\" or \"expectations\": [\"…\"])",
               "6 evaluation_unsupported: a statement that is no text is not supported #{hint}",
               "6 evaluation_unsupported: the file ../outside.txt outside of the skill is not " <>
                 "supported #{hint}"
             ]
    end

    test "tells a file that is none", %{tmp_dir: folder} do
      for {text, expected} <- [
            {"{", "1 evaluation_invalid: expected JSON, got: EOF while parsing an object"},
            {"[]",
             "1 evaluation_invalid: expected an object with `evals`, a list of " <>
               "evaluations (write {\"skill_name\": \"…\", \"evals\": […]})"}
          ] do
        assert {[], [^expected]} = read(folder, "pdf/evals/evals.json", text)
      end
    end
  end
end
