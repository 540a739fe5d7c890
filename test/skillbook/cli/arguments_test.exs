defmodule Skillbook.CLI.ArgumentsTest do
  use ExUnit.Case, async: true

  alias Skillbook.CLI
  alias Skillbook.CLI.Arguments

  test "what is not given has its default" do
    assert {:ok, options} = Arguments.parse(["--dir", "test", "list"])

    assert options == %Arguments{
             command: CLI.List,
             args: [],
             dirs: ["test"],
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

  test "global options stand before or after the command" do
    for argv <- [
          ~w(--dir test --dir lib --vault test --vault lib --db x.db --profile maria --grant a --grant b --color never --no-builtins list --json),
          ~w(list --json --dir test --dir lib --vault test --vault lib --db x.db --profile maria --grant a --grant b --color never --no-builtins),
          ~w(--dir test --db x.db --vault test --grant a list --vault lib --dir lib --json --grant b --profile=maria --color=never --no-builtins)
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
               flags: [json: true]
             } = options
    end
  end

  test "each command takes its arguments" do
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

  test "help is there for all and for each command" do
    for {argv, topic} <- [
          {[], nil},
          {~w(--help), nil},
          {~w(-h), nil},
          {~w(help), nil},
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

  test "wrong usage says what was expected and what came" do
    for {argv, message} <- [
          {~w(lst),
           "unknown command `lst`; did you mean `list`?\nThe commands are run, shell, chat, prompt, tools, grammar, get, list, search, usage, schedule, lint, explain, install, update, outdated, restore, remove, export, import, help."},
          {~w(xyz),
           "unknown command `xyz`\nThe commands are run, shell, chat, prompt, tools, grammar, get, list, search, usage, schedule, lint, explain, install, update, outdated, restore, remove, export, import, help."},
          {~w(help lst),
           "unknown command `lst`; did you mean `list`?\nThe commands are run, shell, chat, prompt, tools, grammar, get, list, search, usage, schedule, lint, explain, install, update, outdated, restore, remove, export, import, help."},
          {~w(--dri x list), "unknown option `--dri`; did you mean `--dir`?"},
          {~w(list --jsn), "unknown option `--jsn`; did you mean `--json`?"},
          {~w(get --json), "unknown option `--json`"},
          {~w(list --zzzz), "unknown option `--zzzz`"},
          {~w(list --db), "--db expects a value"},
          {~w(list --json=yes), "--json takes no value, got: yes"},
          {~w(list --color red), "--color expects one of auto, always, never, got: red"},
          {~w(list --dir no/such), "--dir expects a folder, and there is none at no/such"},
          {~w(search a --vault no/such),
           "--vault expects a folder, and there is none at no/such"},
          {~w(search a --vault mix.exs), "--vault expects a folder, and mix.exs is a file"},
          {~w(search a --vault test/support --vault lib/../test/support),
           "--vault expects folders of different names, and test/support and lib/../test/support are both named support"},
          {~w(run a b), "`run` takes one file, got also: b"},
          {~w(get a b), "`get` takes one path, got also: b"},
          {~w(list a), "`list` takes no argument, got: a"},
          {~w(prompt a), "`prompt` takes no argument, got: a"},
          {~w(search), "`search` expects words to look for"},
          {["search", " "], "`search` expects words to look for"},
          {~w(search a --limit x), "--limit expects a whole number from 1 to 1000, got: x"},
          {~w(search a --limit 0), "--limit expects a whole number from 1 to 1000, got: 0"},
          {~w(search a --limit 1001), "--limit expects a whole number from 1 to 1000, got: 1001"},
          {~w(search a --kind file), "--kind expects one of command, skill, note, got: file"},
          {~w(prompt --max-chars -1), "--max-chars expects a whole number from 0, got: -1"},
          {~w(prompt --format xlm),
           "--format expects one of default, xml, notes, list, got: xlm"},
          {~w(prompt --section rules --section x),
           "--section expects one of rules, domains, commands, skills, skill_list, available_skills, quick_reference, inline_skills, notes, notes_list, skill_catalog, preloaded_skills, other, other_notes, got: x"},
          {~w(lint --format xml), "--format expects one of text, json, sarif, got: xml"},
          {~w(list --dir mix.exs), "--dir expects a folder, and mix.exs is a file"},
          {~w(lint no/such), "`lint` expects folders or files, and there is nothing at no/such"},
          {~w(explain), "`explain` expects a name or a path"},
          {["explain", ""], "`explain` expects a name or a path"},
          {~w(explain a b), "`explain` takes one name, got also: b"},
          {~w(shell a), "`shell` takes no argument, got: a"}
        ] do
      assert {:error, ^message, _help} = Arguments.parse(argv)
    end
  end

  test "an error comes with where help is" do
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

  test "bin/skillbook knows which options take a value" do
    [_, names] = Regex.run(~r/^    (--.*)\) value=1/m, File.read!("bin/skillbook"))
    taking = for {name, type} <- Arguments.globals(), type != :boolean, do: "--#{name}"
    assert Enum.sort(String.split(names, " | ")) == Enum.sort(taking)
  end
end
