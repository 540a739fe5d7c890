defmodule Skillbook.GrammarTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{
    Catalog,
    Declaration,
    Extractor,
    FlagError,
    Flags,
    GBNF,
    Grammar,
    Router,
    Source,
    View
  }

  doctest Skillbook.Grammar

  @moduletag :tmp_dir

  setup_all do
    {:ok, catalog} = Catalog.load([Source.builtin(), Source.builtin(:agent)])
    view = View.all(catalog)
    {:ok, view: view, rules: view |> Grammar.gbnf() |> GBNF.parse()}
  end

  defp block(lines), do: "```cmd\n#{Enum.join(List.wrap(lines), "\n")}\n```"

  defp examples(view) do
    for entry <- View.entries(view),
        [section] <- [Regex.run(~r/## Examples\n\n(.*)\z/s, entry.body, capture: :all_but_first)],
        line <- String.split(section, "\n", trim: true),
        do: line
  end

  test "accepts every example of the built-in pages", %{view: view, rules: rules} do
    lines = examples(view)
    assert length(lines) > 20
    for line <- lines, do: assert(GBNF.accepts?(rules, block(line)), line)
    assert GBNF.accepts?(rules, "On it.\n\n#{block(lines)}\n\nDone, `a` and ```b```.\n")
  end

  test "accepts and rejects replies", %{rules: rules} do
    accepted = [
      "",
      "Hello\n\n  world\n",
      "`code`, ``code`` and ~ a\n``\n~",
      block("get_skill"),
      block(["get_skill: tasks", "get_skill tasks.all", "get_skill: tasks.get"]),
      block("workflow.build --description a --tags b --name c --tags d"),
      block("skills.history a"),
      block("skills.history a b"),
      block("notes.get a b c"),
      block("skills.list a --include-disabled"),
      block("tasks.search"),
      block("tasks.search --overdue true --limit 1 --overdue false"),
      block("tasks.search --limit 1 --limit 100 --limit 42"),
      block("tasks.search --due-before today --due-after 2026-12-31"),
      block("tasks.search --query \"a \\\"b\\\" ``` --x\" --overdue"),
      "a\n#{block("tasks.get T-1")}\nb\n#{block("tasks.get \"T-2\"")}\n"
    ]

    refused = [
      "```\ncode\n```",
      "  ```elixir\n",
      "~~~ cmd\ntasks.get T-1\n~~~",
      block([]),
      block("tasks.gte T-1"),
      block("tasks.get T-1 T-2"),
      block("tasks.get --idd T-1"),
      block("tasks.search words"),
      block("tasks.search --status open"),
      block("tasks.search --sort due_date priority"),
      block("tasks.create"),
      block("tasks.create --priority high"),
      block("workflow.build --name a --tags b"),
      block("workflow.build a --tags b"),
      block("workflow.show a b"),
      block("tasks.search --limit 0"),
      block("tasks.search --limit 101"),
      block("tasks.search --limit many"),
      block("tasks.search --limit"),
      block("tasks.search --overdue yes"),
      block("tasks.search --due-before 2026-13-01"),
      block("tasks.search --due-before soon"),
      block("tasks.search --query"),
      block("tasks.search --query \"a\nb\""),
      block("tasks.search --query \"a"),
      block("tasks.search --query a | head"),
      block("get_skill: task"),
      "text #{block("tasks.get T-1")}",
      "```cmd\ntasks.get T-1\n",
      "```cmd\ntasks.get T-1\n``` and more"
    ]

    for text <- accepted, do: assert(GBNF.accepts?(rules, text), text)
    for text <- refused, do: refute(GBNF.accepts?(rules, text), text)
  end

  test "limits numbers to their range", %{tmp_dir: folder} do
    for {range, good, bad} <- [
          {"from 1 to 9", [1, 9], [0, 10, -1, "01"]},
          {"from 0 to 255", [0, 9, 10, 99, 100, 199, 200, 249, 250, 255],
           [256, 260, 300, 1000, "00"]},
          {"from 17 to 4321", [17, 19, 20, 99, 100, 999, 1000, 3999, 4000, 4299, 4321],
           [7, 16, 4322, 4330, 5000]},
          {"from 50 to 50", [50], [49, 51, 5]},
          {"from 3 on", [3, 10, 999_999], [2, 0, -3]},
          {"from -5 to 5", [-5, 3], ["a"]}
        ] do
      page = page("x.y", [], "## Flags\n\n--n  How many, #{range}\n")
      rules = write(folder, %{"x/y.md" => page}) |> view() |> Grammar.gbnf() |> GBNF.parse()
      for n <- good, do: assert(GBNF.accepts?(rules, block("x.y --n #{n}")), "#{n} #{range}")
      for n <- bad, do: refute(GBNF.accepts?(rules, block("x.y --n #{n}")), "#{n} #{range}")
    end
  end

  test "times and addresses", %{tmp_dir: folder} do
    rows = [
      {"ISO 8601 time with offset", ["2026-03-01T23:59:00Z", "2026-03-01T10:00:00+01:30"],
       ["2026-03-01", "2026-03-01T24:00:00Z", "2026-03-01T10:00:00"]},
      {"E-mail address", ["a@b.de", "a.b+c@d-e.co.uk"], ["a", "a@b", "@b.de", "a@b.de,c@d.de"]},
      {"URL", [~s("https://a.de"), ~s("http://a.de/b,c?d=e&f=g")],
       ["https://a.de", ~s("ftp://a.de"), ~s("https://")]}
    ]

    for {text, good, bad} <- rows do
      page = page("x.y", [], "## Flags\n\n--n  #{text}\n")
      view = folder |> write(%{"x/y.md" => page}) |> view()
      {:ok, declaration} = Skillbook.View.flags(view, "x.y")
      rules = view |> Grammar.gbnf() |> GBNF.parse()

      for n <- good do
        assert GBNF.accepts?(rules, block("x.y --n #{n}")), "#{n} #{text}"
        command = Skillbook.Command.parse!("x.y --n #{n}")
        assert Skillbook.Flags.check(command.flags, declaration) == :ok
      end

      for n <- bad, do: refute(GBNF.accepts?(rules, block("x.y --n #{n}")), "#{n} #{text}")
    end
  end

  test "limits numbers to their range for every pair of limits, in short rules", %{
    tmp_dir: folder
  } do
    limits = [0, 1, 7, 9, 10, 11, 19, 20, 90, 99, 100, 101, 190, 199, 209, 900, 999, 1000, 1001]

    for low <- limits, high <- limits, low <= high do
      page = page("x.y", [], "## Flags\n\n--n  How many, from #{low} to #{high}\n")
      grammar = write(folder, %{"x/y.md" => page}) |> view() |> Grammar.gbnf()
      rules = GBNF.parse(grammar)

      for limit <- limits, n <- [limit - 1, limit, limit + 1], n >= 0 do
        accepted = GBNF.accepts?(rules, block("x.y --n #{n}"))
        assert {low, high, n, accepted} == {low, high, n, n in low..high}
      end

      [rule] = for "command-1-1 ::=" <> rule <- String.split(grammar, "\n"), do: rule
      assert byte_size(rule) < 300
    end
  end

  test "stays short for numbers with a minimum only", %{view: view} do
    for line <- String.split(Grammar.gbnf(view), "\n"),
        line =~ "--expected-version",
        do: assert(byte_size(line) < 400, line)

    assert byte_size(Grammar.gbnf(view)) < 64_000
  end

  test "has only commands that models may see", %{tmp_dir: folder} do
    write(folder, %{
      "x/shown.md" => page("x.shown", [], "## Usage\n\nx.shown [<file>]\n\n## Flags\n\n--a  A\n"),
      "x/open.md" => page("x.open"),
      "x/hidden.md" => page("x.hidden", "disable-model-invocation": true),
      "x/red.md" => page("x.red", visibility_labels: "[red]"),
      "two words.md" => page("two words"),
      "x/bell.md" => "---\nname: \"x.be\\all\"\ndescription: Rings\n---\nText.\n",
      "pdf/SKILL.md" => page("pdf"),
      "pdf/forms.md" => "Forms."
    })

    {:ok, catalog} = Catalog.load([folder])
    {:ok, guest} = View.new(catalog, id: "guest")
    grammar = Grammar.gbnf(guest)
    refute grammar =~ "hidden"
    refute grammar =~ "red"

    rules = GBNF.parse(grammar)

    for line <- [
          "x.shown a b --a",
          "x.open a --any \"thing\"",
          "\"two words\"",
          "pdf",
          "get_skill: pdf/forms.md"
        ],
        do: assert(GBNF.accepts?(rules, block(line)), line)

    for line <- ["pdf a", "get_skill: pdf/other.md", "two words", "x.open -a"],
        do: refute(GBNF.accepts?(rules, block(line)), line)

    rules = guest |> Grammar.gbnf(names: ["pdf"]) |> GBNF.parse()
    assert GBNF.accepts?(rules, block("pdf"))
    refute GBNF.accepts?(rules, block("x.open"))
  end

  test "every accepted command is extracted and has an entry", %{view: view, rules: rules} do
    :rand.seed(:exsss, {4, 5, 6})

    for _ <- 1..400 do
      text = GBNF.generate(rules)
      assert {:ok, %{commands: commands, incomplete: []}} = Extractor.extract(text)
      assert length(commands) == text |> String.split("\n") |> count()

      for line <- commands do
        assert match?({:ok, _}, Router.route(view, line)) or
                 match?({:help, _}, Router.route(view, line)),
               text
      end
    end
  end

  # Repeated flags, flags that exclude each other, and patterns are left to the command.
  defp refused(view, lines) do
    for line <- lines,
        {:ok, %{declaration: %Declaration{} = declaration, command: command}} <-
          [Router.route(view, line)],
        {:error, error} <- [Flags.check(command.flags, declaration, command.args)],
        not left_to_command?(error, declaration),
        do: {line, Exception.message(error)}
  end

  defp left_to_command?(%FlagError{kind: :conflict}, _declaration), do: true
  defp left_to_command?(%FlagError{kind: :missing_any}, _declaration), do: true
  defp left_to_command?(%FlagError{kind: :too_many}, _declaration), do: true

  defp left_to_command?(%FlagError{kind: :missing}, declaration),
    do: Enum.count(declaration.flags, & &1.required) > 4

  defp left_to_command?(%FlagError{flag: name}, declaration),
    do: Enum.any?(declaration.flags, &(&1.name == name and &1.pattern != nil))

  # The lines of commands, each flag of which is written once.
  defp generated(view, name, count) do
    rules = view |> Grammar.gbnf(names: [name]) |> GBNF.parse()
    for _ <- 1..count, is_map_key(rules, "command-1"), do: GBNF.generate(rules, "command-1")
  end

  defp once?(line) do
    {:ok, words} = Skillbook.Command.tokenize(line)
    flags = for "--" <> name <- words, not String.contains?(name, " "), do: name
    flags == Enum.uniq(flags)
  end

  test "every accepted command of the built-in pages passes the checks of its flags", %{
    view: view
  } do
    :rand.seed(:exsss, {7, 8, 9})

    for entry <- View.listed(view, kind: :command) do
      lines = view |> generated(entry.name, 60) |> Enum.filter(&once?/1)
      assert refused(view, lines) == []
    end
  end

  test "so does every accepted command of random declarations", %{tmp_dir: folder} do
    :rand.seed(:exsss, {10, 11, 12})

    for number <- 1..60 do
      path = "#{number}/x/y.md"
      fields = ["strict: true", "flags:" | for(n <- 1..Enum.random(1..5), do: random_flag(n))]
      page = "---\nname: x.y\ndescription: X\n#{Enum.join(fields, "\n")}\n---\n# x.y\n"
      write(folder, %{path => page})
      view = view(Path.join(folder, "#{number}"))
      assert {:ok, %Declaration{error: nil}} = View.flags(view, "x.y")
      lines = view |> generated("x.y", 30) |> Enum.filter(&once?/1)
      assert {page, refused(view, lines)} == {page, []}
    end
  end

  defp random_flag(number) do
    type =
      Enum.random([
        "type: integer#{limits(&round/1)}",
        "type: number#{limits(& &1)}",
        "type: boolean",
        "type: date",
        "type: date, words: true",
        "type: datetime",
        "type: email",
        "type: url",
        "type: text",
        "type: text, max_length: #{Enum.random([1, 2, 5, 12, 19, 64, 150, 1_024])}",
        "type: text, line: true, max_length: #{Enum.random([3, 30, 200])}",
        "type: text, line: true",
        "values: [open, \"in progress\", \"-x\", \"a,b\", \"c\\\\d\"]"
      ])

    required = Enum.random(["", ", required: true"])

    more =
      if type == "type: boolean",
        do: "",
        else: Enum.random(["", ", repeatable: true", ", positional: false"])

    "  f#{number}: {#{type}#{required}#{more}}"
  end

  defp limits(convert) do
    [low, high] = Enum.sort([Enum.random(-30..30) * 1.0, Enum.random(-5..500) * 1.0])

    Enum.random([
      "",
      ", min: #{convert.(low)}",
      ", max: #{convert.(high)}",
      ", min: #{convert.(low)}, max: #{convert.(high)}"
    ])
  end

  # The lines between the fences.
  defp count(lines) do
    {count, _} =
      Enum.reduce(lines, {0, false}, fn
        "```cmd", {count, false} -> {count, true}
        "```", {count, true} -> {count, false}
        _, {count, inside} -> {if(inside, do: count + 1, else: count), inside}
      end)

    count
  end
end
