defmodule Skillbook.CLI.NativeTest do
  # Runs lines through the program `skillbook` and through Elixir, and compares standard output,
  # standard error and the exit status byte for byte.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.Test.Checkout

  @moduletag :tmp_dir

  @root Path.dirname(Path.dirname(Checkout.path("bin/skillbook")))

  setup_all do
    {:ok, program: System.get_env("SKILLBOOK_PROGRAM") || build()}
  end

  defp build do
    profile = System.get_env("SKILLBOOK_CARGO_PROFILE", "release")
    arguments = ~w(build --profile #{profile} --locked --quiet -p skillbook_cli)
    {_, 0} = System.cmd("cargo", arguments, cd: @root, stderr_to_stdout: true)
    target = System.get_env("CARGO_TARGET_DIR") || Path.join(@root, "target")
    Path.join([Path.expand(target, @root), profile, "skillbook"])
  end

  # In `bin/skillbook` no application's handlers can be looked up.
  setup %{tmp_dir: folder} do
    Skillbook.Catalog.Handlers.standalone()
    here = File.cwd!()
    # The database of another test may be in the current folder.
    File.cd!(folder)

    on_exit(fn ->
      Application.delete_env(:skillbook, :standalone)
      File.cd!(here)
    end)
  end

  # The program may not hand a line over, so each is its own answer.
  defp native(program, args, folder) do
    errors = Path.join(folder, "errors")

    environment = [
      {"SKILLBOOK_NATIVE", "0"},
      {"SKILLBOOK_ELIXIR", Path.join(@root, "bin/skillbook")},
      {"MIX_ENV", "test"},
      {"SKILLBOOK_COLUMNS", System.get_env("SKILLBOOK_COLUMNS")}
    ]

    script = ~s(errors=$1; shift; exec "$@" 2>"$errors")

    {output, status} =
      System.cmd("sh", ["-c", script, "sh", errors, program | args], env: environment)

    {output, status, File.read!(errors)}
  end

  defp compare(lines, context, adapt \\ & &1) do
    %{program: program, tmp_dir: folder} = context

    for line <- lines do
      args = if is_binary(line), do: OptionParser.split(line), else: line
      assert {args, adapt.(native(program, args, folder))} == {args, adapt.(run_cli(args))}
    end
  end

  @names ~w(run shell chat prompt tools grammar get list search usage schedule breaker approvals
    runs servers serve token mcp connect disconnect connections init new lint test route explain
    install update outdated restore remove export publish import completions)

  test "help and version", context do
    compare(
      [
        "",
        "--help",
        "-h",
        "help",
        "help help",
        "--version",
        "-V",
        "--version list",
        "--help lint"
      ] ++
        for(name <- @names, line <- ["#{name} --help", "help #{name}"], do: line) ++
        ["-h serve", "serve --port 1 -h", "list --jsn --help", "help lst", "--help nothing"],
      context
    )
  end

  test "mistakes", context do
    File.write!("errors", "")

    compare(
      [
        "lst",
        "xyzzy",
        "completion",
        "help ls",
        "--dri x list",
        "--color red list",
        "list --color",
        "list --jsn",
        "list --no-json=x",
        "list --json=x",
        ["--profile", "", "list"],
        ["--grant", "", "list"],
        ["--profile", "a\nb", "explain", "tasks.create"],
        "list -q",
        "list -qr",
        "-V=x",
        "-h=x list",
        "-h=false xyzzy",
        "list --no-source",
        "list --diagnostics mail",
        "list --diagnostics --domain x",
        "get a b",
        "explain",
        "explain a b",
        ["explain", ""],
        "explain a --format xml --section rules",
        "prompt a",
        "prompt --format yaml",
        "prompt --section all",
        "prompt --format xml --section rules",
        "prompt --max-tokens -1",
        "prompt --max-tokens x",
        "search",
        ["search", " "],
        "search x --limit 0",
        "search x --limit 1001",
        "search x --limit",
        "search x --kind thing",
        "search x --lmit 3",
        "tools a",
        "tools --shape yaml",
        "tools --limit 0",
        "tools --limit",
        ["tools", "--names", "a[", "--names", "b"],
        "route",
        ["route", " "],
        "route x --jsn",
        "route x --url",
        "test no/such",
        "test --min-hit1 101",
        "test --pairs x",
        "test --only both",
        "test --only evaluations",
        "test --only evaluations --json",
        "--no-builtins test",
        "--dir no/such list",
        "--dir errors list",
        "lint no/such",
        "lint",
        "lint --format xml",
        "lint . --strct",
        "list --format xml",
        "search x --format yaml"
      ],
      context
    )
  end

  # Folders of skills of the project, with handlers of an application that is not loaded.
  defp folders(folder) do
    for {path, number} <-
          Enum.with_index([
            "test/support/fixtures/skills",
            "test/support/fixtures/reply_skills",
            "test/support/fixtures/notes",
            "test/support/fixtures/shop",
            "examples/support_bot/priv/skills",
            "examples/quantum/skills",
            "packages/mcp/test/support/mcp/skills",
            "priv/assistant"
          ]) do
      copy = Path.join(folder, "#{number}/#{Path.basename(path)}")
      File.mkdir_p!(Path.dirname(copy))
      File.cp_r!(Checkout.path(path), copy)

      for page <- Path.wildcard(Path.join(copy, "**/*.md")) do
        text = File.read!(page)
        File.write!(page, String.replace(text, "handler: Skillbook.", "handler: Other."))
      end

      copy
    end
  end

  # Pages with everything that a reader could stumble over.
  defp odd(folder) do
    write(folder, %{
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mails to people\n---\n# Mails\n",
      "mail/send.md" =>
        "---\nname: mail.send\ndescription: Sends: a message\nhandler: Other.App.Send\n" <>
          "tags: a, b\nexamples:\n  - Send a mail\n---\n## Usage\n\nmail.sned --to <a>\n",
      "mail/secret.md" =>
        "---\nname: mail.secret\ndescription: Für den Chef 見る\nvisibility_labels: [boss]\n" <>
          "---\nx\n",
      "odd name/SKILL.md" =>
        "---\nname: Odd\ndescription: \"a\\u202Eb\"\n---\nHidden \u202E text\n",
      "broken.md" => "---\nname: [\n---\n",
      "long.md" =>
        "---\nname: long\ndescription: #{String.duplicate("wörd ", 300)}\n---\n" <>
          String.duplicate("Line of text.\n", 900),
      "latin.md" => <<"---\nname: latin\ndescription: caf", 0xE9, "\n---\ntext\n">>,
      "none.md" => "no frontmatter\n",
      "pdf/SKILL.md" =>
        "---\nname: pdf\ndescription: Works with PDF files\nallowed-tools: Read\n---\n" <>
          "See [forms](forms.md) and [gone](gone.md).\n",
      "pdf/forms.md" => "# Forms\n",
      "pdf/picture.png" => <<137, "PNG\r\n", 26, 10, 0>>,
      "twice/a.md" => "---\nname: twice.a\ndescription: The first one of them\n---\nText\n",
      "twice/b.md" => "---\nname: twice.a\ndescription: The second one of them\n---\nText\n",
      ".gitignore" => "ignored.md\n[\n",
      "ignored.md" => "---\nname: ignored\ndescription: x\n---\n"
    })
  end

  test "lint", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))
    empty = Path.join(folder, "empty")
    File.mkdir_p!(empty)
    page = Path.join(odd, "mail/send.md")

    lines =
      for path <- [odd | folders(folder)],
          more <- [
            [],
            ["--strict"],
            ["--format", "json"],
            ["--format", "github"],
            ["--json", "--profile", "guest"],
            ["--strict", "--format", "sarif"],
            ["--color", "always"],
            ["--profile", "guest"],
            ["--grant", "boss", "--strict"]
          ],
          do: ["lint", path | more]

    compare(
      lines ++
        [
          ["lint", empty],
          ["lint", page],
          ["lint", page, Path.join(odd, "long.md")],
          ["--dir", odd, "lint"],
          ["--dir", odd, "lint", Path.join(odd, "mail")],
          ["--no-builtins", "lint", odd],
          ["--dir", odd, "--dir", hd(folders(folder)), "lint", "--format", "json"],
          ["lint", "errors"],
          ["lint", Checkout.path("priv/skills")],
          ["lint", Checkout.path("priv"), "--strict"]
        ],
      context
    )
  end

  test "lint --fix", %{tmp_dir: folder} = context do
    texts =
      for run <- [&native(context.program, &1, folder), &run_cli/1] do
        odd = odd(Path.join(folder, "odd"))
        result = run.(["lint", odd, "--fix"])
        {result, File.read!(Path.join(odd, "mail/send.md")), File.ls!(Path.join(odd, "mail"))}
      end

    assert [{{_, 1, "fixed " <> _}, text, names} = one, one] = texts
    assert text =~ ~s(description: "Sends: a message"\n)
    assert Enum.sort(names) == ["SKILL.md", "secret.md", "send.md"]
  end

  test "list", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))

    lines =
      for path <- [odd | folders(folder)],
          more <- [[], ["--format", "json"], ["--diagnostics"], ["--diagnostics", "--json"]],
          do: ["--dir", path, "list" | more]

    compare(
      lines ++
        [
          "list",
          "list TASK",
          "list mail zzz",
          "list --domain tasks",
          "list --domain nothing --source x",
          "list --source nothing --json",
          "list --color always",
          "--no-builtins list",
          "--no-builtins list --json",
          "--profile guest --grant boss list",
          ["--dir", odd, "--grant", "boss", "list"],
          ["--dir", odd, "--no-builtins", "list", "mail", "--color", "always"],
          ["--dir", odd, "--dir", odd, "--dir", Path.join(odd, "mail"), "list"]
        ],
      context
    )
  end

  test "the conventional folders are read", %{tmp_dir: folder} = context do
    page = "---\nname: NAME\ndescription: Says what to do\nhandler: Other.App.Run\n---\nText.\n"
    skill = fn name -> String.replace(page, "NAME", name) end

    write(folder, %{
      ".claude/skills/tea/SKILL.md" => skill.("tea"),
      ".claude/skills/both/SKILL.md" => skill.("both"),
      ".agents/skills/mate/SKILL.md" => skill.("mate"),
      ".agents/skills/skills.lock.json" => "{}",
      "skills/own.md" => skill.("own"),
      "skills/both.md" => skill.("both")
    })

    lines = ["list", "list --json", "list --diagnostics", "get tea", "explain both", "lint"]
    compare(lines ++ ["--dir .claude/skills list --json", "--dir .agents/skills lint"], context)
    {list, 0, _errors} = run_cli(~w(--no-builtins list --json))
    {:ok, entries} = Skillbook.Support.JSON.decode(list)

    assert for(entry <- entries, do: {entry["name"], entry["source"]}) ==
             [{"both", "skills"}, {"mate", ".agents"}, {"own", "skills"}, {"tea", ".claude"}]

    # Those that nobody named have low trust.
    {found, _status, _errors} = run_cli(~w(--no-builtins list --diagnostics))
    untrusted = Regex.scan(~r/(\w+)\/SKILL.md.* \[untrusted_field\]/, found)
    assert untrusted |> Enum.map(&List.last/1) |> Enum.sort() == ~w(both mate tea)

    # Installed skills are not the author's to mend, unless they are named.
    {linted, 0, _errors} = run_cli(~w(lint))
    refute linted =~ ".agents"

    # Two folders may be one.
    File.rm_rf!(Path.join(folder, ".agents"))
    File.ln_s!(".claude", Path.join(folder, ".agents"))
    compare(["list", "list --diagnostics", "lint"], context)
  end

  test "list fits into a terminal", context do
    odd = odd(Path.join(context.tmp_dir, "odd"))

    for columns <- ["40", "80", "0", "x", ""] do
      System.put_env("SKILLBOOK_COLUMNS", columns)
      compare([["--dir", odd, "list"], "list --color never"], context)
    end
  after
    System.delete_env("SKILLBOOK_COLUMNS")
  end

  test "get, search and explain", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))

    paths =
      ["", "mail", "mail.send", "mail.all", "pdf", "pdf/forms.md", "pdf/picture.png"] ++
        ["tasks", "tasks.create", "Mail Send", "mail.snd", "nothing at all", "mail.secret"] ++
        [~s(a "b" \\ c), "odd", String.duplicate("x", 200), "long", "agent.dispatch"]

    names = paths ++ [Path.join(odd, "mail/send.md"), Path.join(odd, "broken.md"), "broken.md"]
    queries = ["mail", "send a message", "due taks", "zzzz", "tasks.create", "見る", "mail.secrt"]

    compare(
      for(path <- paths, do: ["--dir", odd, "get", path]) ++
        for(path <- folders(folder), do: ["--dir", path, "get"]) ++
        for(name <- names, name != "", do: ["--dir", odd, "explain", name]) ++
        for(
          query <- queries,
          more <- [[], ["--json", "--limit", "3"], ["--color", "always", "--kind", "command"]],
          do: ["--dir", odd, "search", query | more]
        ) ++
        [
          ["--dir", odd, "--grant", "boss", "get", "mail.secret"],
          ["--dir", odd, "--grant", "boss", "--profile", "x", "explain", "mail.secret"],
          ["--dir", odd, "search", "message", "--tag", "a", "--tag", "b"],
          ["--dir", odd, "explain", "pdf", "--max-tokens", "100"]
        ],
      context
    )
  end

  test "prompt", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))
    formats = for format <- Skillbook.Prompt.formats(), do: ["--format", to_string(format)]
    sections = for section <- Skillbook.Prompt.sections(), do: ["--section", to_string(section)]
    message = ["--message", "Remember that I like tea", "--message", "Send a mail"]

    compare(
      for(more <- [[] | formats ++ sections], do: ["--dir", odd, "prompt" | more]) ++
        for(path <- folders(folder), do: ["--dir", path, "prompt", "--max-chars", "2000"]) ++
        [
          ["prompt", "--max-tokens", "300" | message],
          ["--dir", odd, "prompt", "--max-tokens", "500" | message],
          ["--no-builtins", "prompt"],
          ["prompt", "--section", "rules", "--section", "domains"],
          ["--dir", odd, "--grant", "boss", "prompt", "--max-chars", "0"]
        ],
      context
    )
  end

  test "tools", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))

    write(odd, %{
      "shop/find.md" =>
        "---\nname: shop.find\ntitle: \"Find\\u202E it\"\ndescription: Finds\nstrict: true\n" <>
          "tool: look_up\naliases: [look_up]\nflags:\n" <>
          "  due-day: {type: date, default: today, description: The day}\n" <>
          "  limit: {type: integer, min: 1, max: 9000000000, default: 20}\n" <>
          "  price: {type: number, min: 0.5, max: 10, default: 2.5}\n" <>
          "  code: {pattern: '[A-Z]{2,3}', required: true, repeatable: true}\n" <>
          "  état: {values: [ouvert, fermé], default: ouvert}\n---\nText\n",
      "shop/order.md" => """
      ---
      name: shop.order
      description: Orders
      handler: Other.App.Order
      input_schema:
        type: object
        required: [a b]
        oneOf: [{required: [note]}]
        $defs: {n: {type: number, multipleOf: 0.1}}
        properties:
          a b: {$ref: "#/$defs/n"}
          lines: {type: array, items: {anyOf: [{type: [integer, "null"]}, true]}}
          note: {type: [string, "null"], enum: [x, null], default: {b: 1, a: 2}}
      ---
      ## Usage

      shop.order
      """
    })

    lines =
      for path <- [odd | folders(folder)],
          more <- [[] | for(shape <- Skillbook.Tools.Shape.all(), do: ["--shape", "#{shape}"])],
          do: ["--dir", path, "tools" | more]

    compare(
      lines ++
        [
          "tools",
          "tools --shape mcp --shape gemini --names tasks.* --names memory.*",
          "tools --names nothing",
          "tools --limit 1",
          "--profile guest --no-builtins tools",
          ["--dir", odd, "--grant", "boss", "tools", "--limit", "5", "--shape", "anthropic"],
          ["--dir", odd, "--no-builtins", "tools", "--limit", "99999999999999999999"]
        ],
      context
    )

    {tools, 0, _errors} = run_cli(["--dir", odd, "tools", "--names", "shop.*"])
    {:ok, [_, %{"function" => find}, _]} = Skillbook.Support.JSON.decode(tools)
    assert find["name"] == "look_up"
    assert Map.keys(find["parameters"]["properties"]) == ~w(code due_day limit price)
  end

  # No two runs take the same time.
  defp untimed({output, status, errors}) do
    output = Regex.replace(~r/\d+\.\d ms/, output, "0.0 ms")
    {Regex.replace(~r/"duration":\d+/, output, ~s("duration":0)), status, errors}
  end

  test "route", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))

    requests = [
      "Send a mail to Bob",
      "Please send a message, could you",
      "remind me of the dentist tomorrow at nine",
      "What is due this week?",
      "Thanks a lot!",
      "für den Chef 見る",
      "zzzz",
      "mail.send",
      "a\nb \e[1mc",
      String.duplicate("send mail now? ", 1_200)
    ]

    lines =
      for request <- requests,
          more <- [[], ["--json"], ["--color", "always"], ["--grant", "boss"]],
          do: ["--dir", odd, "route", request | more]

    sets = for path <- folders(folder), do: ["--dir", path, "route", "How do I get a refund?"]

    compare(
      lines ++ sets ++ ["--no-builtins route x", "--profile guest route what is due"],
      context,
      &untimed/1
    )
  end

  test "test", %{tmp_dir: folder} = context do
    odd = odd(Path.join(folder, "odd"))

    page = fn name, description, examples ->
      "---\nname: #{name}\ndescription: #{description}\nexamples:\n#{examples}---\n# Steps\n"
    end

    alike =
      write(Path.join(folder, "alike"), %{
        "rain.md" =>
          page.("rain", "Forecasts rain and snow for a town", """
            - Will it rain in Berlin tomorrow?
            - Do I need an umbrella?
            - not: Write a poem about rain
            - not: Forecast rain for the town of Bonn
          """),
        "snow.md" =>
          page.("snow", "Forecasts snow and rain for a village", """
            - Is there snow on the roads?
            - Will it rain in the village of Aub?
          """),
        "deep/poem/SKILL.md" => page.("poem", "Writes poems", "  - Write a poem about rain\n"),
        "hidden.md" =>
          String.replace(
            page.("hidden", "Does things that models do not see", "  - Do a thing\n"),
            "\n---\n#",
            "\ndisable-model-invocation: true\n---\n#"
          ),
        "secret.md" =>
          String.replace(
            page.("secret", "Weather of the boss", "  - Weather of the boss\n"),
            "\n---\n#",
            "\nvisibility_labels: [boss]\n---\n#"
          )
      })

    below = Path.join(alike, "deep")

    lines =
      for path <- [odd, alike, below, Path.join(alike, "rain.md") | folders(folder)],
          more <- [
            [],
            ["--json"],
            ["--color", "always", "--pairs", "2"],
            ["--preflight", "--pairs", "0"],
            ["--profile", "guest"],
            ["--min-hit1", "50", "--grant", "boss"]
          ],
          do: ["test", path | more]

    dirs = for path <- folders(folder), do: ["--dir", path, "test", "--min-picked", "90"]

    compare(
      lines ++
        dirs ++
        [
          "test",
          "test --only examples --json",
          ["--dir", alike, "test"],
          ["--dir", alike, "test", below],
          ["--dir", odd, "--no-builtins", "test", alike, "--min-hit3", "100"],
          ["test", below, alike, "--only", "examples", "--format", "json"]
        ],
      context
    )

    # Evaluations need Elixir.
    write(alike, %{"deep/poem/evals.yaml" => "evaluations: []\n"})
    assert {"", 3, errors} = native(context.program, ["test", alike], folder)
    assert errors =~ "deep/poem/evals.yaml` needs Elixir"
    compare([["test", alike, "--only", "examples"]], context)
  end
end
