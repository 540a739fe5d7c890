defmodule Skillbook.CLI.ProcessTest do
  # Runs bin/skillbook as an operating system process, with the build of these tests.
  use ExUnit.Case, async: true

  import Skillbook.SkillsCase, only: [until: 3]
  import Skillbook.Test.CommandLine, only: [build_command_line: 0]

  alias Skillbook.Test.{ChatServer, Terminal}

  @skillbook Skillbook.Test.Checkout.path("bin/skillbook")
  @no_terminal Terminal.missing()

  # Builds here if needed, so that no test does.
  setup_all do
    build_command_line()
    :ok
  end

  setup %{test: test} do
    folder = Path.join(System.tmp_dir!(), "skillbook #{:erlang.phash2({test, System.pid()})}")
    on_exit(fn -> File.rm_rf!(folder) end)

    for {path, text} <- [
          {"skills/notes/SKILL.md", "---\ndomain: notes\ndescription: Nötes\n---\n# Notes\n"},
          {"skills/notes/echo.md",
           """
           ---
           name: notes.echo
           description: Says a text again, wörd for word
           handler: Skillbook.Test.EchoHandler
           ---
           # notes.echo

           ## Usage

           notes.echo --text <text> [--wait <ms>]
           """},
          {"good.md",
           "Hällo.\n\n```cmd\nnotes.echo --text one\nnotes.echo --text \"two\nlines\"\n```\n" <>
             "\nBye.\n"},
          {"bad.md", "```cmd\nnotes.eco --text one\nnotes.echo --text two\n```\n"},
          {"cut.md", "```cmd\nnotes.echo --text one\n"}
        ] do
      path = Path.join(folder, path)
      File.mkdir_p!(Path.dirname(path))
      File.write!(path, text)
    end

    {:ok, folder: folder}
  end

  defp environment(folder) do
    [
      {"MIX_ENV", "test"},
      {"XDG_STATE_HOME", folder},
      {"NO_COLOR", nil},
      {"TERM", "xterm"},
      {"LC_ALL", "C"}
    ]
  end

  # Standard output and the exit status. Standard error goes to a file, for `errors/1`.
  defp skillbook(folder, args, input \\ "") do
    File.write!(Path.join(folder, "in"), input)
    command = ~s(exec "$0" "$@" < in 2> err)
    args = ["-c", command, @skillbook, "--no-builtins", "--db", ":memory:" | args]
    System.cmd("sh", args, cd: folder, env: environment(folder))
  end

  defp errors(folder), do: File.read!(Path.join(folder, "err"))

  test "schedule --run runs skills until it is stopped, prose with a model", %{folder: folder} do
    tick = "schedule: '* * * * * *'\nhandler: Skillbook.Test.EchoHandler\n---\n"
    tea = "schedule: '* * * * * *'\n---\n## Behavior\n\nSee to the tea.\n"

    for {name, rest} <- [tick: tick, tea: tea],
        do:
          File.write!(
            Path.join(folder, "skills/notes/#{name}.md"),
            "---\ndescription: Is scheduled\n" <> rest
          )

    {_server, url} = ChatServer.start(List.duplicate(ChatServer.answer("The tea is ready."), 20))

    args = [
      "--no-builtins",
      "--db",
      ":memory:",
      "schedule",
      "--run",
      "--url",
      url,
      "--model",
      "m"
    ]

    env =
      for {name, value} <- environment(folder),
          do: {to_charlist(name), if(value, do: to_charlist(value), else: false)}

    options = [:binary, :stderr_to_stdout, :exit_status, args: args, cd: folder, env: env]
    port = Port.open({:spawn_executable, @skillbook}, options)

    # A full minute has no seconds.
    time = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d(:\\d\\d)?"
    output = until(port, "", ~r/^#{time}  notes\.tea  ok  .*\n  The tea is ready\.$/m)
    output = until(port, output, ~r/^#{time}  notes\.tick  (ok|failed)  /m)
    assert output =~ ~r/^notes\.tick  #{time} \+00:00  default  every second/m
    assert output =~ "skillbook: running the scheduled skills; Ctrl-C stops\n"
    assert_receive {:chat, %{body: %{"messages" => [_system, %{"content" => input}]}}}
    assert input =~ "See to the tea."

    {:os_pid, pid} = Port.info(port, :os_pid)
    {_, 0} = System.cmd("kill", ["-TERM", "#{pid}"])
    assert_receive {^port, {:exit_status, _status}}
  end

  test "one process reads the installation of another", %{folder: folder} do
    File.mkdir_p!(Path.join(folder, "from/mail"))

    File.write!(
      Path.join(folder, "from/mail/SKILL.md"),
      "---\nname: mail\ndescription: Writes mail\n---\nText\n"
    )

    assert {output, 0} = skillbook(folder, ["install", "from", "--yes"])
    assert output =~ ~r/\nmail  installed\nNext: skillbook get mail\n\z/
    assert {"mail  current\n", 0} = skillbook(folder, ["outdated"])
    assert {"mail  unchanged\n", 0} = skillbook(folder, ["update"])
    assert {"mail  unchanged\n", 0} = skillbook(folder, ["restore"])
  end

  test "run prints the reply, each command with its result, and the report", %{folder: folder} do
    assert {output, 0} = skillbook(folder, ["run", "good.md"])
    assert errors(folder) == ""

    assert ["", "To the user", text, "Command", first, "Command", second, "To the model", model] =
             String.split(output, ~r/── | ─+\n/u)

    assert text == "  Hällo.\n\n  Bye.\n\n"
    assert first =~ ~r/\A> notes.echo --text one\nok, .*\n  echo: one\n/
    assert second =~ ~r/\A> notes.echo --text "two\n  lines"\nok, .*\n  echo: two\n  lines\n/
    assert model =~ "echo: one"
    refute output =~ "\e["
  end

  test "run takes standard input, byte for byte", %{folder: folder} do
    text = File.read!(Path.join(folder, "good.md"))
    assert {output, 0} = skillbook(folder, ["run", "-"], text)
    assert output =~ "Hällo."
  end

  test "prints colours without a terminal only with --color always", %{folder: folder} do
    assert {output, 0} = skillbook(folder, ["--color", "always", "run", "good.md"])
    assert output =~ "\e[32mok\e[0m"
  end

  test "the exit status is 1 for a failed command and a cut-off block", %{folder: folder} do
    assert {output, 1} = skillbook(folder, ["run", "bad.md"])
    assert output =~ "notes.echo"
    assert output =~ "echo: two"

    assert {output, 1} = skillbook(folder, ["run", "cut.md"])
    assert output =~ "── Cut off, not run ─"
    refute output =~ "echo: one"
  end

  test "run -c prints the result of one command", %{folder: folder} do
    assert {output, 0} = skillbook(folder, ["run", "-c", "notes.echo --text 'a ``` b'"])
    assert output =~ ~r/\Aok, .*\n  echo: a ``` b\n\z/

    assert {output, 1} = skillbook(folder, ["run", "--command", "notes.eco"])
    assert output =~ ~r/\Aerror, .*\n  unknown skill "notes.eco"; did you mean notes.echo\?/

    assert {json, 0} = skillbook(folder, ["run", "--json", "-c", "notes.echo --text one"])

    assert {:ok, %{"text" => "", "results" => [%{"status" => "ok"}]}} =
             Skillbook.Support.JSON.decode(json)
  end

  test "a reply is an agent's, and a command of -c a user's", %{folder: folder} do
    write = ~s(skills.create NAME --title T --description D --content "Text.")

    cli = fn args, input ->
      File.write!(Path.join(folder, "in"), input)
      args = ["-c", ~s(exec "$0" "$@" < in), @skillbook, "--db", "s.db" | args]
      System.cmd("sh", args, cd: folder, env: environment(folder))
    end

    block = fn name -> "```cmd\n#{String.replace(write, "NAME", name)}\n```\n" end
    File.write!(Path.join(folder, "reply.md"), block.("from-file"))
    assert {_, 0} = cli.(["run", "reply.md"], "")
    assert {_, 0} = cli.(["run", "-"], block.("from-input"))
    assert {_, 0} = cli.(["run", "-c", String.replace(write, "NAME", "from-command")], "")

    for {name, source} <- [
          {"from-file", "agent"},
          {"from-input", "agent"},
          {"from-command", "user"}
        ] do
      {json, 0} = cli.(["run", "--json", "-c", "skills.read #{name}"], "")
      assert {name, json} == {name, json} and json =~ ~r/"source":"#{source}"/
    end
  end

  test "run prints the page of a command without a handler", %{folder: folder} do
    page = "---\nname: notes.greet\ndescription: Greets\n---\nSay hello.\n"
    File.write!(Path.join(folder, "skills/notes/greet.md"), page)
    assert {output, 0} = skillbook(folder, ["run", "-c", "notes.greet"])
    assert output =~ ~r/\Aok: a text for the model to read, .*\n  Say hello\.\n\z/
  end

  test "run --json prints one object", %{folder: folder} do
    assert {output, 0} = skillbook(folder, ["run", "good.md", "--json"])

    assert output =~
             ~r/\A\{"text":"Hällo\.\\n.*Bye\.","results":\[\{.*\}\],"incomplete":\[\],/

    assert output =~ ~r/\],"incomplete":\[\],"notes":\[\],"report":".*"\}\n\z/

    assert output =~ ~S("status":"ok")
  end

  test "list, get and prompt print skills", %{folder: folder} do
    assert {"notes.echo  command  skills  Says a text again, wörd for word\n", 0} =
             skillbook(folder, ["list"])

    assert {json, 0} = skillbook(folder, ["list", "--json"])
    assert json =~ ~S("name":"notes.echo")
    assert {body, 0} = skillbook(folder, ["get", "notes.echo"])
    assert body =~ "notes.echo --text <text> [--wait <ms>]"
    assert {prompt, 0} = skillbook(folder, ["prompt"])
    assert prompt =~ "notes"
    assert {"## Domains\n" <> _, 0} = skillbook(folder, ["prompt", "--section", "domains"])

    assert {"Left out for lack of space: " <> _, 0} =
             skillbook(folder, ["prompt", "--max-chars", "300"])

    assert {"", 2} = skillbook(folder, ["prompt", "--format", "xml", "--section", "rules"])

    assert errors(folder) ==
             "skillbook: --section and --format exclude each other\n" <>
               "See: skillbook prompt --help\n"

    assert {"", 1} = skillbook(folder, ["get", "notes.eco"])

    assert errors(folder) ==
             ~s(skillbook: unknown skill "notes.eco"; did you mean notes.echo or notes? ) <>
               "To list all skills, write: skillbook get\n"
  end

  test "list filters by words, source and domain", %{folder: folder} do
    for {path, name} <- [
          {"skills/mail/send.md", "mail.send"},
          {"more/mail/read.md", "mail.read"}
        ] do
      File.mkdir_p!(Path.join(folder, Path.dirname(path)))
      File.write!(Path.join(folder, path), "---\nname: #{name}\ndescription: Mails\n---\nText\n")
    end

    list = fn args ->
      {output, status} = skillbook(folder, ["--dir", "skills", "--dir", "more", "list" | args])
      names = for line <- lines(output), do: line |> String.split() |> hd()
      {names, status, errors(folder)}
    end

    none = "skillbook: no entry matches"

    for {args, names, status, errors} <- [
          {[], ~w(mail.read mail.send notes.echo), 0, ""},
          {["MAIL"], ~w(mail.read mail.send), 0, ""},
          {["mail", "send"], ~w(mail.send), 0, ""},
          {["again"], ~w(notes.echo), 0, ""},
          {["--source", "more"], ~w(mail.read), 0, ""},
          {["--source", "more", "--source", "skills"], ~w(mail.read mail.send notes.echo), 0, ""},
          {["--domain", "mail"], ~w(mail.read mail.send), 0, ""},
          {["--domain", "mail", "--source", "skills"], ~w(mail.send), 0, ""},
          {["--limit", "2"], ~w(mail.read mail.send), 0, ""},
          {["--limit", "1", "--after", "mail.read"], ~w(mail.send), 0, ""},
          {["mail", "--after", "mail.send"], [], 0, ""},
          {["nowhere"], [], 1, none <> "\n"},
          {["--source", "x"], [], 1, none <> "; the sources are more, skills\n"},
          {["--domain", "x"], [], 1, none <> "; the domains are mail, notes\n"}
        ] do
      assert {args, list.(args)} == {args, {names, status, errors}}
    end

    assert {json, 0} = skillbook(folder, ["list", "again", "--json"])
    assert {:ok, [%{"source" => "skills"}]} = Skillbook.Support.JSON.decode(json)
  end

  test "search and commands find the notes of a vault", %{folder: folder} do
    File.mkdir_p!(Path.join(folder, "my notes/plans"))
    File.write!(Path.join(folder, "my notes/plans/q1.md"), "# Q1\n\nThe quarterly plans. #work\n")
    File.write!(Path.join(folder, "my notes/other.md"), "A plan of each quarter.\n")
    search = &skillbook(folder, ["search", "--vault", "my notes" | &1])

    assert {"plans/q1.md  Q1  " <> rest, 0} = search.(["quarterly plan", "--tag", "work"])
    assert rest =~ ~r/\A\d\.\d{3}\n  Q1 The quarterly plans\. #work\n\z/
    assert errors(folder) == ""

    for {args, status, output, errors} <- [
          {["plan", "quarterly", "nowhere"], 0, ~r/\Aother\.md .*\nplans\/q1\.md /s,
           "no note has all words of `plan quarterly nowhere`; these have some\n"},
          {["plan", "--limit", "1"], 0, ~r/\Aother\.md [^\n]*\n [^\n]*\n\z/,
           "showing 1 of 2 notes; --limit shows more\n"},
          {["nowhere"], 1, ~r/\A\z/, "no note found for `nowhere`\n"},
          {["plan", "--kind", "skill"], 2, ~r/\A\z/,
           "--kind is for skills; --vault searches notes\nSee: skillbook search --help\n"},
          {["plan", "--limit", "101"], 2, ~r/\A\z/,
           "--limit expects at most 100 with --vault\nSee: skillbook search --help\n"}
        ] do
      {given, ^status} = search.(args)
      assert {args, given} == {args, String.trim_leading(given)} and given =~ output
      assert errors(folder) == "skillbook: " <> errors
    end

    {json, 0} = search.(["--json", ~s("quarterly plan")])

    assert {:ok, [%{"path" => "plans/q1.md", "highlights" => [[9, 9], [19, 5]]}]} =
             Skillbook.Support.JSON.decode(json)

    # Warnings about notes do not change the output.
    File.write!(Path.join(folder, "my notes/binary.md"), <<0xFF>>)
    assert {^json, 0} = search.(["--json", ~s("quarterly plan")])

    assert errors(folder) =~
             "[warning] the vault my notes: binary.md is not indexed: it is not text in UTF-8\n"

    File.rm!(Path.join(folder, "my notes/binary.md"))

    # With a database file and the built-in commands
    reply = "```cmd\nmarkdown.search quarter*\n```\n"
    command = ~s(printf '#{reply}' | "$0" --db n.db --vault 'my notes' run - --json)

    {json, 0} =
      System.cmd("sh", ["-c", command, @skillbook], cd: folder, env: environment(folder))

    {:ok, %{"results" => [%{"content" => "2 notes: text \"quarter*\"\n" <> _}]}} =
      Skillbook.Support.JSON.decode(json)

    assert File.exists?(Path.join(folder, "n.db"))
  end

  test "search prints matches, or an error without matches", %{folder: folder} do
    assert {output, 0} = skillbook(folder, ["search", "wörd", "agian"])
    assert output =~ ~r/\Anotes.echo  command  \d+\.\d{3}\n  Says a text again, wörd for word\n\z/
    assert errors(folder) == ""

    assert {output, 0} =
             skillbook(folder, ["--color", "always", "search", "text", "--kind", "command"])

    assert output =~ "\e[1mnotes.echo\e[0m  \e[2mcommand  "
    assert output =~ "Says a \e[1mtext\e[0m again"

    assert {json, 0} = skillbook(folder, ["search", "text", "--limit", "1", "--json"])
    assert json =~ ~S("highlights":[[7,4]])
    assert json =~ ~S("name":"notes.echo")

    for {args, output, status, message} <- [
          {["zzz"], "", 1, "nothing found for `zzz`"},
          {["zzz", "--json"], "[]\n", 1, "nothing found for `zzz`"},
          {["nots", "ehco", "--kind", "note"], "", 1,
           "nothing found for `nots ehco`; similar names: notes.echo"},
          {["text", "--tag", "none"], "", 1, "nothing found for `text`"}
        ] do
      assert {^output, ^status} = skillbook(folder, ["search" | args])
      assert errors(folder) == "skillbook: #{message}\n"
    end
  end

  test "reading creates no database", %{folder: folder} do
    {_, 0} =
      System.cmd(@skillbook, ["--no-builtins", "list"], cd: folder, env: environment(folder))

    refute File.exists?(Path.join(folder, ".skillbook"))
  end

  test "a file of accounts that came with a folder is not read", %{folder: folder} do
    path = Path.join(folder, ".skillbook/connections.json")
    File.mkdir_p!(Path.dirname(path))
    File.write!(path, ~s({"hubspot": {"token": {"env": "HOME"}, "url": "http://127.0.0.1:1"}}))

    options = [cd: folder, env: environment(folder), stderr_to_stdout: true]

    for {mode, status, expected} <- [
          {0o644, 3,
           "skillbook: cannot start: .skillbook/connections.json: others can read it; if you " <>
             "trust it, run: chmod 600 .skillbook/connections.json\n"},
          {0o600, 0, "hubspot"}
        ] do
      File.chmod!(path, mode)
      {output, got} = System.cmd(@skillbook, ["--no-builtins", "connections"], options)
      assert {mode, got} == {mode, status}
      assert output =~ expected
    end
  end

  test "counts diagnostics on standard error, and lists them with --diagnostics", %{
    folder: folder
  } do
    for name <- ~w(a b c d),
        do:
          File.write!(
            Path.join(folder, "skills/notes/#{name}.md"),
            "---\nname: notes.#{name}\n---\n"
          )

    assert {list, 0} = skillbook(folder, ["list"])
    assert list =~ "notes.echo"

    assert ["skillbook: 4 problems in the skills; `list --diagnostics` shows them all", _, _, _] =
             lines(errors(folder))

    assert {diagnostics, 1} = skillbook(folder, ["list", "--diagnostics"])
    for name <- ~w(a b c d), do: assert(diagnostics =~ "notes/#{name}.md")
    assert errors(folder) == ""
  end

  defp lines(text), do: String.split(text, "\n", trim: true)

  test "the exit status is 2 for wrong usage, with a hint to the help", %{folder: folder} do
    for {args, message} <- [
          {["lst"], "skillbook: unknown command `lst`; did you mean `list`?\n"},
          {["--dri", "x"], "skillbook: unknown option `--dri`; did you mean `--dir`?\n"},
          {["tools", "x"],
           "skillbook: `tools` takes no argument, got: x\nSee: skillbook tools --help\n"},
          {["list", "--limit", "0"],
           "skillbook: --limit expects a whole number from 1 to 1000, got: 0\n" <>
             "See: skillbook list --help\n"},
          {["list", "--diagnostics", "--limit", "1"],
           "skillbook: --diagnostics takes no words or filters\nSee: skillbook list --help\n"},
          {["list", "--diagnostics", "x"],
           "skillbook: --diagnostics takes no words or filters\nSee: skillbook list --help\n"},
          {["lint", "--no-builtins", "--dir", "skills/notes", "no"],
           "skillbook: `lint` expects folders or files, got: no, which does not exist\n" <>
             "See: skillbook lint --help\n"},
          {["run"],
           "skillbook: `run` expects a file with a model's reply, or - for standard input\n" <>
             "See: skillbook run --help\n"},
          {["run", "good.md", "-c", "notes.echo"],
           "skillbook: `run` takes a file or --command, got both: good.md\n"},
          {["list", "-c", "x"], "skillbook: unknown option `-c`\n"},
          {["run", "no/such.md"],
           "skillbook: cannot read no/such.md: no such file or directory\n"},
          {["run", "skills"],
           "skillbook: cannot read skills: expected a file with a model's reply, got a folder\n"}
        ] do
      assert {"", 2} = skillbook(folder, args)
      assert errors(folder) =~ message
    end
  end

  test "the exit status is 3 if the database cannot be opened", %{folder: folder} do
    assert {"", 3} = skillbook(folder, ["--db", "good.md/x.db", "list"])
    assert errors(folder) =~ ~r/\Askillbook: cannot start: .*good\.md/
  end

  test "a closed standard output is not an error", %{folder: folder} do
    File.write!(Path.join(folder, "skills/notes/echo.md"), String.duplicate("long\n", 200_000), [
      :append
    ])

    script = ~s("$0" --no-builtins --db :memory: get notes.echo 2> err | head -n 1)

    assert {line, 0} =
             System.cmd("sh", ["-c", script, @skillbook], cd: folder, env: environment(folder))

    assert line =~ "notes.echo"
    assert errors(folder) == ""
  end

  test "a failed write to standard output is an error of every command", %{folder: folder} do
    for {args, input} <- [
          {"tools", ""},
          {"--version", ""},
          {"run --help", ""},
          {"list --json", ""},
          {"run -c 'notes.echo --text one'", ""},
          {"shell", "notes.echo --text one\nnotes.echo --text two\n"}
        ],
        {output, problem} <- [{"/dev/full", "no space left on device"}, {"&-", "it is closed"}] do
      File.write!(Path.join(folder, "in"), input)
      script = ~s("$0" --no-builtins --db :memory: #{args} < in 2> err >#{output})

      assert {"", 1} ==
               System.cmd("sh", ["-c", script, @skillbook], cd: folder, env: environment(folder)),
             "#{args} > #{output}"

      assert errors(folder) == "skillbook: cannot write standard output: #{problem}\n"
    end
  end

  test "waits until a slow reader has taken the output", %{folder: folder} do
    File.write!(Path.join(folder, "skills/notes/echo.md"), String.duplicate("long\n", 50_000), [
      :append
    ])

    script = ~s["$0" --no-builtins --db :memory: get notes.echo | (sleep 1; tail -n 1)]

    assert {"long\n", 0} =
             System.cmd("sh", ["-c", script, @skillbook], cd: folder, env: environment(folder))
  end

  test "reads no more of a file, a device or a pipe than its limit", %{folder: folder} do
    for {script, status, error} <- [
          {~s("$0" run /dev/full), 2,
           "cannot read /dev/full: expected a reply of up to 16777216 bytes, got more"},
          {~s("$0" run - < /dev/zero), 2,
           "cannot read -: expected a reply of up to 16777216 bytes, got more"},
          {~s("$0" chat --url http://localhost:1 --model m --resume /dev/zero), 2,
           "cannot read /dev/zero: expected up to 67108864 bytes, got more"}
        ] do
      # In KiB; without the limit, the virtual machine would die of this one.
      script = "ulimit -v 6000000; #{script} 2> err"
      env = environment(folder)
      assert {"", ^status} = System.cmd("sh", ["-c", script, @skillbook], cd: folder, env: env)
      assert errors(folder) =~ "skillbook: #{error}\n"
    end
  end

  test "list --diagnostics fails for errors, not for warnings", %{folder: folder} do
    for {text, status} <- [
          {"---\nname: notes.a\ndescription: A\n---\nText\n", 0},
          {"---\nname: notes.other\ndescription: A\n---\nText\n", 0},
          {"---\nname: notes.a\n---\n", 1}
        ],
        flags <- [[], ["--json"]] do
      File.write!(Path.join(folder, "skills/notes/a.md"), text)
      assert {_, ^status} = skillbook(folder, ["list", "--diagnostics" | flags])
    end
  end

  describe "the shell" do
    test "reads lines from a pipe and prints only results", %{folder: folder} do
      input = "notes.echo --text one\n\nnotes.echo --text \"two\r\nlines\"\n"
      assert {output, 0} = skillbook(folder, ["shell"], input)
      assert [_, "  echo: one", _, "  echo: two", "  lines"] = lines(output)
      assert {_, 1} = skillbook(folder, ["shell"], "notes.eco\n:quit\nnotes.echo\n")
    end

    test "reports an incomplete command at the end of the input", %{folder: folder} do
      assert {"", 1} = skillbook(folder, ["shell"], "notes.echo --text \"one\n")

      assert errors(folder) ==
               "skillbook: the input ended inside a command, which did not run:\n" <>
                 "notes.echo --text \"one\n"
    end

    @tag skip: @no_terminal
    test "edits, completes and saves lines on a terminal, and stops a command",
         %{folder: folder} do
      {port, say} = on_terminal(folder, "shell")
      until(port, "", "skillbook> ")

      # Tab for the name and the flag, Backspace, and an insertion at the left.
      say.("notes.e\t--te\tneX\d\e[D\e[Do\e[F\r", "echo: one")
      say.("\e[A\d\d\dtwo\r", "echo: two")
      say.("notes.echo --text \"a\r", "...> ")
      say.(<<3>>, "skillbook> ")
      say.("notes.echo --wait 60000\r", "--wait 60000")
      say.(<<3>>, "stopped")
      say.(":profile\r", "default")
      Port.command(port, <<4>>)
      assert_receive {^port, {:exit_status, 0}}, 60_000

      assert File.read!(Path.join(folder, "skillbook/history")) =~ "notes.echo --text two\n"
    end

    @tag skip: @no_terminal
    test "colours depend on the output, not on the input", %{folder: folder} do
      run = fn more ->
        command = "'#{@skillbook}' --no-builtins --db :memory: list #{more}"
        Terminal.run(command, cd: folder, env: environment(folder))
      end

      assert {"", 0} = run.("> out")
      line = "notes.echo  command  skills  Says a text again, wörd for word\n"
      assert File.read!(Path.join(folder, "out")) == line
      assert {shown, 0} = run.("< good.md")
      assert shown =~ "\e[1mnotes.echo"
    end

    @tag skip: @no_terminal
    test "`new` asks a person, and nobody else", %{folder: folder} do
      {port, say} = on_terminal(folder, "new")
      until(port, "", "Name, such as reports.late or tea-rules> ")
      say.("tea-rules\n", "What is it for, and when is it used> ")
      say.("How to make tea for guests\n", "wrote      skills/tea-rules/SKILL.md")
      assert_receive {^port, {:exit_status, 0}}, 60_000

      for {more, expected} <- [{"", "a name"}, {"water-rules", "a description in quotes"}],
          pipe <- ["< /dev/null 2> err", "2> err | cat > out"] do
        command = "'#{@skillbook}' --no-builtins --db :memory: new #{more} #{pipe}"
        assert {"", _status} = Terminal.run(command, cd: folder, env: environment(folder))
        assert errors(folder) =~ "`new` expects #{expected}"
      end
    end

    # bin/skillbook on a terminal, and a function that types and waits for a text.
    defp on_terminal(folder, words) do
      command = ~s('#{@skillbook}' --no-builtins --db :memory: #{words})
      port = Terminal.open(command, folder, environment(folder))

      say = fn bytes, answer ->
        Port.command(port, bytes)
        until(port, "", answer)
      end

      {port, say}
    end
  end

  describe "the chat" do
    @block "Let me see.\n\n```cmd\nnotes.echo --text one\nnotes.eco\n```\n\nSo."

    @tag skip: @no_terminal
    test "prints commands on a terminal, and stops the model", %{folder: folder} do
      script = [
        ChatServer.answer([@block]),
        ChatServer.answer("One it is."),
        [ChatServer.head(), {:chunk, "data: #{ChatServer.delta("Well,\e[31m")}\n\n"}, :silent],
        ChatServer.answer("Fine.")
      ]

      {_server, url} = ChatServer.start(script)
      {port, say} = on_terminal(folder, "chat --url #{url} --model m")
      assert until(port, "", "you> ") =~ "Chatting with m."
      seen = say.("Say one.\r", "One it is.")
      assert seen =~ "\e[1m[1] notes.echo --text one\e[0m"
      assert seen =~ "\e[32mok\e[0m"
      assert say.("Why?\r", "Well,") =~ "Why?"
      seen = say.(<<3>>, "you> ")
      assert seen =~ "stopped"
      refute seen =~ "\e[31m"
      assert_receive :hung_up, 60_000
      say.("Then?\r", "Fine.")
      say.(":profile ann\r", "you (ann)> ")
      Port.command(port, <<4>>)
      assert_receive {^port, {:exit_status, 0}}, 60_000
    end

    @tag skip: @no_terminal
    test "asks on a terminal before a command with side effects", %{folder: folder} do
      write = ChatServer.answer("```cmd\nnotes.echo --text one\n```")
      script = [write, ChatServer.answer("Good."), write, write, ChatServer.answer("Fine.")]
      {_server, url} = ChatServer.start(script)
      {port, say} = on_terminal(folder, "chat --ask --url #{url} --model m")

      # The line editor redraws the prompt at each key, so each step waits for the text after
      # its answer.
      question = "Run it? y/n/always/later/why> "
      until(port, "", "you> ")
      say.("Say one.\r", question)
      say.("perhaps\r", ~r/y       run the command.*why> /s)
      say.("y\r", ~r/Good\..*you> /s)
      # Ctrl-C at the question stops the model. The next command is asked for again.
      say.("Again.\r", question)
      say.(<<3>>, ~r/stopped.*you> /s)
      say.("Once more.\r", question)
      say.("n\r", ~r/Fine\..*you> /s)
      Port.command(port, <<4>>)
      assert_receive {^port, {:exit_status, 0}}, 60_000
      # Answers are not in the history.
      assert lines(File.read!(Path.join(folder, "skillbook/history"))) == [
               "Say one.",
               "Again.",
               "Once more."
             ]
    end
  end
end
