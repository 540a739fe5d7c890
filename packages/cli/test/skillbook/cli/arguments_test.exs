defmodule Skillbook.CLI.ArgumentsTest do
  use ExUnit.Case, async: true

  alias Skillbook.CLI
  alias Skillbook.CLI.Arguments

  test "missing options have their defaults" do
    assert {:ok, options} = Arguments.parse(["--dir", "test", "list"])

    assert options == %Arguments{
             command: CLI.List,
             args: [],
             dirs: ["test"],
             named: true,
             vaults: [],
             db: nil,
             profile: "default",
             grants: [],
             profile_given: false,
             color: :auto,
             builtins: true,
             flags: []
           }
  end

  test "takes global options before or after the command" do
    globals =
      ~w(--dir test --dir lib --vault test --vault lib --db x.db --profile maria) ++
        ~w(--grant a --grant b --color never --no-builtins)

    for argv <- [
          globals ++ ~w(list --json),
          ~w(list --json) ++ globals,
          ~w(--dir test --db x.db --vault test --grant a list --vault lib --dir lib --json) ++
            ~w(--grant b --profile=maria --color=never --no-builtins)
        ] do
      assert {:ok, options} = Arguments.parse(argv)

      assert %{
               command: CLI.List,
               dirs: ["test", "lib"],
               vaults: ["test", "lib"],
               db: "x.db",
               profile: "maria",
               grants: ["a", "b"],
               profile_given: true,
               color: :never,
               builtins: false,
               flags: [json: true, format: :json]
             } = options
    end
  end

  test "packs are added to the built-in commands, or are the only ones" do
    for {argv, builtins} <- [
          {[], true},
          {~w(--pack google), ["*", "google"]},
          {~w(--pack email --pack drive), ["*", "email", "drive"]},
          {~w(--no-builtins --pack email), ["email"]}
        ] do
      assert {:ok, %{builtins: ^builtins}} = Arguments.parse(argv ++ ["list"])
    end
  end

  test "parses the arguments of each command" do
    for {argv, command, args} <- [
          {~w(run reply.md), CLI.Run, ["reply.md"]},
          {~w(run -), CLI.Run, ["-"]},
          {~w(run -- --odd.md), CLI.Run, ["--odd.md"]},
          {~w(shell), CLI.Shell, []},
          {~w(chat --url http://a --model m), CLI.Chat, []},
          {~w(prompt), CLI.Prompt, []},
          {~w(get), CLI.Get, [""]},
          {~w(get tasks.create), CLI.Get, ["tasks.create"]},
          {~w(list), CLI.List, []},
          {~w(search due tasks --limit 3 --tag a), CLI.Search, ["due", "tasks"]},
          {~w(usage tasks.* --by time --since 2d), CLI.Usage, ["tasks.*"]},
          {~w(lint test lib), CLI.Lint, ["test", "lib"]},
          {~w(lint), CLI.Lint, []}
        ] do
      assert {:ok, %{command: ^command, args: ^args}} = Arguments.parse(argv)
    end
  end

  test "finds the help of all commands and of each command" do
    for {argv, topic} <- [
          {[], nil},
          {~w(--help), nil},
          {~w(-h), nil},
          {~w(help), nil},
          {~w(help help), nil},
          {~w(help --help), nil},
          {~w(--help help), nil},
          {~w(--dir test help), nil},
          {~w(help run), CLI.Run},
          {~w(run --help), CLI.Run},
          {~w(run -h), CLI.Run},
          {~w(--help run), CLI.Run},
          {~w(list --json --help), CLI.List}
        ] do
      assert Arguments.parse(argv) == {:help, topic}
    end
  end

  test "--json and --format json mean the same" do
    for {command, formats} <- [{"list", ~w(text json)}, {"lint", ~w(text json sarif)}],
        argv <- [["--json"] | for(format <- formats, do: ["--format", format])] do
      {:ok, %{flags: flags}} = Arguments.parse([command, "--dir", "test" | argv])
      assert {argv, flags[:json] || false} == {argv, "json" in argv or "--json" in argv}
      assert flags[:json] == nil or flags[:format] == :json
    end

    {:ok, %{flags: flags}} = Arguments.parse(~w(prompt --format tools))
    assert flags == [format: :tools]
  end

  test "wrong usage names the expected and the given value" do
    commands =
      "\nThe commands are run, shell, chat, prompt, tools, grammar, get, list, search, usage, " <>
        "schedule, breaker, approvals, runs, servers, serve, token, mcp, connect, " <>
        "disconnect, connections, init, new, lint, test, route, explain, install, update, " <>
        "outdated, restore, remove, export, publish, import, completions, help."

    for {argv, message} <- [
          {~w(lst), "unknown command `lst`; did you mean `list`?" <> commands},
          {~w(xyz), "unknown command `xyz`" <> commands},
          {~w(help lst), "unknown command `lst`; did you mean `list`?" <> commands},
          {~w(--dri x list), "unknown option `--dri`; did you mean `--dir`?"},
          {~w(list --jsn), "unknown option `--jsn`; did you mean `--json`?"},
          {~w(get --json), "unknown option `--json`"},
          {~w(list --zzzz), "unknown option `--zzzz`"},
          {~w(list --db), "--db expects a value"},
          {~w(list --json=yes), "--json takes no value, got: yes"},
          {~w(list --color red), "--color expects one of auto, always, never, got: red"},
          {~w(list --dir no/such), "--dir expects a folder, got: no/such, which does not exist"},
          {~w(search a --vault no/such),
           "--vault expects a folder, got: no/such, which does not exist"},
          {~w(search a --vault mix.exs),
           "--vault expects a folder, got: mix.exs, which is a file"},
          {~w(search a --vault test/support --vault lib/../test/support),
           "--vault expects folders with different names, got: test/support and " <>
             "lib/../test/support, both named support"},
          {~w(run a b), "`run` takes one file, got also: b"},
          {~w(get a b), "`get` takes one path, got also: b"},
          {~w(prompt a), "`prompt` takes no argument, got: a"},
          {~w(search), "`search` expects words to search for"},
          {["search", " "], "`search` expects words to search for"},
          {~w(search a --limit x), "--limit expects a whole number from 1 to 1000, got: x"},
          {~w(search a --limit 0), "--limit expects a whole number from 1 to 1000, got: 0"},
          {~w(search a --limit 1001), "--limit expects a whole number from 1 to 1000, got: 1001"},
          {~w(search a --kind file), "--kind expects one of command, skill, note, got: file"},
          {~w(prompt --max-chars -1), "--max-chars expects a whole number from 0, got: -1"},
          {~w(prompt --format xlm),
           "--format expects one of default, tools, xml, notes, list, got: xlm"},
          {~w(prompt --section rules --section x),
           "--section expects one of rules, tool_rules, domains, commands, skills, " <>
             "skill_list, " <>
             "available_skills, quick_reference, inline_skills, notes, notes_list, " <>
             "skill_catalog, preloaded_skills, other, other_notes, got: x"},
          {~w(lint --format xml), "--format expects one of text, json, sarif, github, got: xml"},
          {~w(list --format yaml), "--format expects one of text, json, got: yaml"},
          {~w(list --dir mix.exs), "--dir expects a folder, got: mix.exs, which is a file"},
          {~w(lint no/such),
           "`lint` expects folders or files, got: no/such, which does not exist"},
          {~w(explain), "`explain` expects a name or a path"},
          {["explain", ""], "`explain` expects a name or a path"},
          {~w(explain a b), "`explain` takes one name, got also: b"},
          {~w(shell a), "`shell` takes no argument, got: a"}
        ] do
      assert {:error, ^message, _help} = Arguments.parse(argv)
    end
  end

  test "an error has the arguments that print help" do
    for {argv, help} <- [
          {~w(lst), "--help"},
          {~w(--dri x), "--help"},
          {~w(list --jsn), "list --help"},
          {~w(--color red get), "get --help"},
          {~w(search), "search --help"}
        ] do
      assert {:error, _message, ^help} = Arguments.parse(argv)
    end

    assert Arguments.parse(~w(list --jsn --help)) == {:help, CLI.List}
  end

  test "help texts have the sections of all commands and lines of up to 100 columns" do
    for {name, module} <- [{"", nil} | Arguments.commands()] do
      text = CLI.Help.text(module)
      assert text =~ ~r/\AUsage: skillbook \[OPTIONS\] #{name}/
      pointer = if module, do: "\nskillbook --help lists them.", else: "\nGlobal options:\n"
      assert text =~ pointer
      assert text =~ "\nExamples:\n  skillbook "
      for line <- String.split(text, "\n"), do: assert(String.length(line) <= 100, line)
    end
  end

  test "bin/skillbook lists the options with a value" do
    [_, names] =
      Regex.run(~r/^    (--.*)\) value=1/m, Skillbook.Test.Checkout.read!("bin/skillbook"))

    taking = for {name, type} <- Arguments.globals(), type != :boolean, do: "--#{name}"
    assert Enum.sort(String.split(names, " | ")) == Enum.sort(taking)
  end
end
