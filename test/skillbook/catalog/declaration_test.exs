defmodule Skillbook.Catalog.DeclarationTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Declaration, Flag, FlagError, Flags, Source, View}

  doctest Skillbook.Declaration
  doctest Skillbook.Flag

  @moduletag :tmp_dir

  @page """
  ## Usage

  x.run --id <id> [--count <n>] [--to <name>...] [--mode <mode>] [--due <day>] \
  [--all] [--note <text>] [--tags <tags>] [(--on | --off)]

  ## Flags

  --id          Which (required)
  --count, --n  How many, from 1 to 9
  --to          Whom
  --mode        One of: in_progress, done (default: done)
  --due         When: YYYY-MM-DD, today or tomorrow
  --all         All of it (a switch)
  --note        At most 5 characters (text)
  --tags        One or more of: a, b
  --on          On
  --off         Off
  """

  defp declaration(folder, body \\ @page) do
    write(folder, %{"x/run.md" => page("x.run", [], body)})
    {:ok, declaration} = View.flags(view(folder), "x.run")
    declaration
  end

  defp error({:error, %FlagError{} = error}), do: Exception.message(error)
  defp error(:ok), do: :ok

  test "reads the declared flags of a page", %{tmp_dir: folder} do
    assert %Declaration{
             flags: flags,
             choices: [%{names: ["on", "off"], required: false}],
             words: false
           } = declaration(folder)

    assert Enum.map(flags, &{&1.name, &1.type, &1.several}) == [
             {"id", :value, false},
             {"count", :integer, false},
             {"to", :value, true},
             {"mode", :one_of, false},
             {"due", :date, false},
             {"all", :switch, false},
             {"note", :text, false},
             {"tags", :one_of, true},
             {"on", :switch, false},
             {"off", :switch, false}
           ]

    assert Enum.at(flags, 1) == %Flag{
             name: "count",
             names: ["count", "n"],
             description: "How many, from 1 to 9",
             type: :integer,
             min: 1,
             max: 9
           }

    assert %Flag{required: true, description: "Which (required)"} = hd(flags)
    assert %Flag{values: ["in_progress", "done"], default: ["done"]} = Enum.at(flags, 3)
    assert %Flag{values: ["yesterday", "today", "tomorrow"]} = Enum.at(flags, 4)
  end

  test "returns nil for prose and pages without flags", %{tmp_dir: folder} do
    assert declaration(folder, "## Flags\n\nIt takes --id.\n") == nil
    assert declaration(folder, "## Usage\n\nx.run --id <id>\n") == nil
    write(folder, %{"s/SKILL.md" => page("s", [], "## Flags\n\n--id  Which\n")})
    assert View.flags(view(folder), "s") == {:ok, nil}
    assert {:error, %{name: "x.rum", suggestions: ["x.run"]}} = View.flags(view(folder), "x.rum")
  end

  test "checks flags with the error texts of handlers", %{tmp_dir: folder} do
    declaration = declaration(folder)

    rows = [
      {%{"id" => "1"}, [], :ok},
      {%{}, ["1"], :ok},
      {%{}, [], "--id is required and missing. Add it as: --id VALUE"},
      {%{"id" => "1"}, ["2"],
       "\"2\" is one word too many: only --id may be given without the flag's name, once. " <>
         "Put a flag in front: --FLAG \"2\""},
      {%{"id" => "1", "cuont" => "2"}, [],
       "unknown flag --cuont; did you mean --count? Known flags: --id, --count, --n, --to, " <>
         "--mode, --due, --all, " <>
         "--note, --tags, --on, --off"},
      {%{"id" => true}, [],
       "--id needs a value and has none. Write for example: --id \"some text\""},
      {%{"id" => ["two", "words"]}, [], :ok},
      {%{"id" => "1", "n" => "9"}, [], :ok},
      {%{"id" => "1", "n" => "10"}, [],
       "--count must be a whole number from 1 to 9, got \"10\". Write for example: --count 1"},
      {%{"id" => "1", "count" => "1", "n" => "2"}, [],
       "--count takes one value, got 2: \"1\", \"2\". Write for example: --count 1"},
      {%{"id" => "1", "to" => ["a", "b"]}, [], :ok},
      {%{"id" => "1", "mode" => "In-Progress"}, [], :ok},
      {%{"id" => "1", "mode" => "doen"}, [],
       "--mode must be one of in_progress, done, got \"doen\". Write for example: --mode done"},
      {%{"id" => "1", "mode" => ["done", "in_progress"]}, [],
       "--mode takes one value, got 2: \"done\", \"in_progress\". Write for example: --mode " <>
         "in_progress"},
      {%{"id" => "1", "due" => "today"}, [], :ok},
      {%{"id" => "1", "due" => "soon"}, [],
       "--due must be a day as YYYY-MM-DD, yesterday, today or tomorrow, got \"soon\". Write " <>
         "for example: --due 2026-03-01"},
      {%{"id" => "1", "all" => true}, [], :ok},
      {%{"id" => "1", "all" => "of it"}, [],
       "--all must be a switch, alone or with true or false, got \"of it\". Write it as: --all"},
      {%{"id" => "1", "note" => ["a", "b"]}, [], :ok},
      {%{"id" => "1", "note" => "longer"}, [],
       "--note must be text of at most 5 characters, not empty, got \"longer\". Write for " <>
         "example: --note \"some text\""},
      {%{"id" => "1", "tags" => ["a", "b"]}, [], :ok},
      {%{"id" => "1", "tags" => "a,c"}, [],
       "--tags must be one of a, b, got \"c\". Write for example: --tags a"},
      {%{"id" => "1", "on" => true, "off" => true}, [],
       "--on and --off contradict each other: only one of them may be given"},
      {%{"id" => 1, "count" => 3, "to" => nil, "tags" => ["a"]}, [], :ok}
    ]

    for {flags, args, expected} <- rows,
        do: assert({flags, error(Flags.check(flags, declaration, args))} == {flags, expected})
  end

  test "reads words and required choices from Usage", %{tmp_dir: folder} do
    flags = "\n\n## Flags\n\n--id  Which\n--to  Whom\n"

    declaration =
      declaration(folder, "## Usage\n\nx.run <file> (--id <id> | --to <name>)#{flags}")

    assert Flags.check(%{"id" => "1"}, declaration, ["a", "b"]) == :ok

    assert error(Flags.check(%{}, declaration, ["a"])) ==
             "one of --id or --to is required. Add for example: --id VALUE"
  end

  test "accepts every example of the built-in pages" do
    {:ok, catalog} = Catalog.load([Source.builtin()])
    view = View.all(catalog)

    lines =
      for entry <- View.entries(view),
          [examples] <- [
            Regex.run(~r/## Examples\n\n(.*)\z/s, entry.body, capture: :all_but_first)
          ],
          line <- String.split(examples, "\n", trim: true),
          do: Skillbook.Command.parse!(line)

    assert length(lines) > 20

    for command <- lines do
      {:ok, declaration} = View.flags(view, command.name)
      flags = command.flags

      assert {command.raw, declaration && Flags.check(flags, declaration, command.args)} in [
               {command.raw, :ok},
               {command.raw, nil}
             ]
    end
  end

  test "checks flags before a handler runs or a strict page is returned",
       %{
         tmp_dir: folder
       } do
    write(folder, %{
      "x/handled.md" => page("x.handled", [handler: "Skillbook.TestHandlers.Text"], @page),
      "x/plain.md" => page("x.plain", [strict: true], @page),
      "x/prose.md" => page("x.prose", [strict: true], "## Flags\n\nAny.\n"),
      "x/loose.md" => page("x.loose", [], @page)
    })

    view = view(folder)

    statuses =
      &Enum.map(Skillbook.Reply.Pipeline.commands(view, &1), fn result -> result.status end)

    assert statuses.(["x.handled --id 1", "x.plain --id 1", "x.prose --z", "x.loose --z"]) == [
             :ok,
             :template,
             :template,
             :template
           ]

    for name <- ["x.handled", "x.plain"] do
      assert [%{status: :error, name: ^name, error: %FlagError{kind: :unknown}} = result] =
               Skillbook.Reply.Pipeline.commands(view, ["#{name} --id 1 --counts 2"])

      assert result.content =~ "did you mean --count?"
    end
  end
end
