defmodule Skillbook.Seeds.RouterTest do
  # The document about skills in Markdown: pages, indexes, the language of commands, help, the
  # registry, validation, the prompt and schedules. Its commands are in 002_commands_test.exs.
  use Skillbook.SeedsCase,
    async: true,
    names: %{
      "2.2" => ~w(name description handler schedule author created tags),
      "2.3" => ["## Usage", "## Flags", "## Behavior", "## Examples"],
      "3.1" => ~w(email/SKILL.md email/send.md email/search.md),
      "3.2" => ["domain", "description", "## Available Skills", "## Common Patterns", "## Notes"],
      "3.3" => ["get_skill", "get_skill: email", "get_skill: email.send", "get_skill: email.all"],
      "3.5" => ~w(name_characters duplicate_name),
      "3.6" => ~w(domain),
      "4" => [{"extract_commands", "extract"}] ++ ["```cmd", "commands", "text", "extract"],
      "5.1" => ~w(tokenize parse flags),
      "5.2" => ~w(execute),
      "5.3" =>
        [{"skill_name", "name"}, {"skill_def", "entry"}, {"rest_tokens", "args"}] ++
          ~w(route name entry flags raw args --overdue),
      "5.4" => ~w(template content status),
      "5.5" => ~w(execute ok error),
      "5.6" => ~w(require validate_enum cast_integer cast_date apply_defaults),
      "6" =>
        [
          {"generate_top_level", "top_level"},
          {"generate_domain_help", "domain"},
          {"generate_skill_help", "skill"},
          {"generate_domain_all", "domain_all"}
        ] ++
          [
            "top_level",
            "domain",
            "skill",
            "domain_all",
            "get_skill: <domain>",
            "get_skill: <domain>.all",
            "--help"
          ],
      "7" =>
        [
          {"lookup", "fetch"},
          {"skill_exists?", "named?"},
          {"list_domain_indexes", "domains"},
          {"list_by_domain", "entries"},
          {"list_all", "entries"}
        ] ++
          ~w(fetch named? domains entries reload watch) ++
          [{":modified", "replace"}, {":removed", "rm!"}],
      "7.3" => ~w(name description domain handler schedule tags author body path),
      "9.4" =>
        ~w(name_missing description_missing name_reserved command_name) ++
          [{"all", "x.all"}, {"help", "x.help"}],
      "10.1" => ["```cmd", "get_skill", "--urgent", "--to ann bob", "Domains"],
      "12" => ~w(Quantum schedule Oban),
      "11.3" => [{"use_skill", "call"}] ++ ~w(arguments),
      "13" => [
        {"CLI.Extractor", "Extractor"},
        {"CLI.Help", "Help"},
        {"Skills.Router", "Router"},
        {"Skills.Registry", "View"},
        {"Skills.Executor", "Executor"},
        {"Skills.SkillDefinition", "Entry"},
        {"Skills.DomainIndex", "Domain"},
        {"Skills.FlagValidator", "Flags"},
        {"Skills.Validator", "Lint"},
        {"Skills.Handler", "Handler"},
        {"Skills.Result", "Result"},
        {"Skills.Context", "Context"},
        {"Skills.Workflow.Build", "Build"},
        {"Markdown.Indexer", "Vault"},
        {"Scheduler.SkillScheduler", "Scheduler"},
        {"Workers.ScheduledSkillWorker", "Oban"},
        {"Orchestrator.SubAgent", "Dispatch"}
      ],
      "14.1" => ~w(extract tokenize route)
    }

  import ExUnit.CaptureLog
  import Skillbook.Eventually, only: [eventually: 1]

  alias Skillbook.{
    Catalog,
    Command,
    Context,
    Executor,
    Extractor,
    FakeQuantum,
    Flags,
    Help,
    Lint,
    Result,
    Router,
    Schedule,
    Scheduler,
    View
  }

  @moduletag :tmp_dir

  defmodule Send do
    @moduledoc false
    @behaviour Skillbook.Handler

    @impl true
    def execute(%{"to" => "nobody"}, _context), do: {:error, "nobody has no mailbox"}
    def execute(flags, _context), do: {:ok, Result.ok("Sent.", data: flags)}
  end

  @index """
  ---
  domain: email
  description: Tools for mail
  ---

  # Email

  Send, find and draft mail.

  ## Available Skills

  | Skill | Description |
  |-------|-------------|
  | email.send | Sends a mail |

  ## Common Patterns

  - Send: `email.send --to bob@co.com --subject "Hi" --body "Hello"`

  ## Notes

  - Texts may have Markdown.
  """

  @send """
  ---
  name: email.send
  description: Sends a mail to one or more people
  handler: Skillbook.Seeds.RouterTest.Send
  tags: [email, communication]
  ---

  # email.send

  Sends a mail.

  ## Usage

  email.send --to <addresses> --subject <text> --body <text> [--cc <addresses>]

  ## Flags

  --to       One or more addresses, with blanks between them (required)
  --subject  The subject (text) (required)
  --body     The text (text) (required)
  --cc       One or more addresses of copies

  ## Behavior

  Sends at once.

  ## Examples

  email.send --to bob@company.com --subject "Q1 Report" --body "Here it is."
  """

  @search """
  ---
  name: email.search
  description: Finds mails
  author: assistant
  created: 2026-02-17
  schedule: "0 8 * * 1-5"
  ---

  # email.search

  ## Behavior

  Look for the mails that the user means.
  """

  @files %{
    "email/SKILL.md" => @index,
    "email/send.md" => @send,
    "email/search.md" => @search
  }

  defp skills(%{tmp_dir: folder}, changes \\ %{}),
    do: write(Path.join(folder, "skills"), Map.merge(@files, changes))

  defp load(context, changes \\ %{}) do
    {:ok, catalog} = Catalog.load([skills(context, changes)])
    View.all(catalog)
  end

  defp start(context, options \\ []) do
    defaults = [builtins: false, watch: false, sources: [skills(context)], scheduler: false]
    book(Keyword.merge(defaults, options))
  end

  defp codes(folder) do
    {:ok, catalog} = Catalog.load([folder])
    for d <- Catalog.diagnostics(catalog), do: {d.code, d.severity, Path.basename(d.path)}
  end

  # 2: the file of a skill

  row ["2.2", "7.3"], "an entry has each field of its frontmatter", context do
    view = load(context)
    send = View.fetch!(view, "email.send")
    assert {send.name, send.domain, send.kind} == {"email.send", "email", :command}
    assert send.description == "Sends a mail to one or more people"
    assert send.handler == "Skillbook.Seeds.RouterTest.Send"
    assert send.tags == ["email", "communication"]
    assert String.starts_with?(send.body, "\n# email.send\n")
    assert send.path =~ "email/send.md"

    search = View.fetch!(view, "email.search")
    assert {search.handler, search.schedule, search.tags} == {nil, "0 8 * * 1-5", []}
    assert {search.data["author"], search.data["created"]} == {"assistant", "2026-02-17"}
  end

  row "2.2", "name and description are enough", context do
    view = load(context, %{"own/act.md" => "---\nname: own.act\ndescription: Acts\n---\nDo.\n"})
    assert %{kind: :command, domain: "own"} = View.fetch!(view, "own.act")
  end

  row "2.3", "the sections of a page", context do
    view = load(context)
    text = Help.skill(view, "email.send") |> elem(1)

    for heading <- ["## Usage", "## Flags", "## Behavior", "## Examples"],
        do: assert(text =~ heading)

    assert View.fetch!(view, "email.send").usage =~ "email.send --to <addresses>"
    {:ok, declaration} = View.flags(view, "email.send")

    assert for(f <- declaration.flags, do: {f.name, f.required}) ==
             [{"to", true}, {"subject", true}, {"body", true}, {"cc", false}]
  end

  @tag differs: "The Flags section is read: handlers get values that are checked and converted."
  row "2.3", "flags are checked by the page, and then by the handler", context do
    book = start(context)

    check(book, [
      {"email.send --subject A --body B", "error: --to is required and missing"},
      {"email.send --to a@b.co --subject A --body B --bcc c@d.co", "error: unknown flag --bcc"},
      {"email.send --to nobody --subject A --body B", "Sent."}
    ])

    %{data: data} = run(book, ~s(email.send --to a@b.co c@d.co --subject Two words --body B))
    assert data == %{"to" => ["a@b.co", "c@d.co"], "subject" => "Two words", "body" => "B"}
  end

  # 3: folders

  row "3.1", "one file is one action, and SKILL.md the index", context do
    view = load(context)

    for {file, name} <- [
          {"email/send.md", "email.send"},
          {"email/search.md", "email.search"}
        ],
        do: assert(String.ends_with?(View.fetch!(view, name).path, file))

    assert length(View.names(view)) == 2
    assert [%{name: "email", path: path}] = View.domains(view)
    assert String.ends_with?(path, "email/SKILL.md")
  end

  row "3.2", "the index of a domain", context do
    view = load(context)
    assert [domain] = View.domains(view)
    assert {domain.name, domain.description} == {"email", "Tools for mail"}
    {:ok, text} = Help.domain(view, "email")

    for heading <- ["## Available Skills", "## Common Patterns", "## Notes"],
        do: assert(text =~ heading)

    # A row as its author wrote it, and one for a command that the author left out.
    assert text =~ "| email.send | Sends a mail |"
    assert text =~ "| email.search | Finds mails |"
  end

  row ["3.3", "6"], "four ways to read", context do
    book = start(context)

    check(book, [
      {"get_skill", ["Domains:", "email  Tools for mail"]},
      {"get_skill: email", ["# Email", "Send, find and draft mail."]},
      {"get_skill: email.send", ["# email.send", "## Flags", "--cc"]},
      {"get_skill: email.all", ["# email.search", "# email.send", "\n---\n"]},
      {"email.send --help", ["# email.send", "## Usage"]},
      {"email --help", "# Email"},
      {"get_skill: nothing", "error: unknown skill"},
      {"get_skill: email.nothing", "error: unknown skill"},
      {"get_skill: nothing.all", "error: unknown skill"},
      {"nothing --help", "error: unknown skill"}
    ])

    refute answer(book, "get_skill: email.all") =~ "Send, find and draft mail."
  end

  row "3.3", "the answer is a help, not a run", context do
    book = start(context)

    for line <- ["get_skill", "get_skill: email.all", "email.send --help"],
        do: assert(run(book, line).status == :help)
  end

  row "3.5", "names", context do
    root =
      skills(context, %{
        "email/two.md" => String.replace(@send, "name: email.send", "name: email.Send")
      })

    # A warning tells the author; capitals are usable in another spelling.
    assert Enum.any?(codes(root), fn {code, severity, _} ->
             code in [:name_characters, :name_differs] and severity == :warning
           end)

    root = skills(context, %{"email/two.md" => @send})
    assert {:duplicate_name, :warning, "two.md"} in codes(root)
  end

  row "3.5", "another case and a dash both warn", context do
    for name <- ["Email.Send", "email.bad-name"] do
      folder = Path.join(context.tmp_dir, name)
      file = Path.join("email", List.last(String.split(name, ".")) <> ".md")
      write(folder, %{file => page(name), "email/SKILL.md" => @index})

      assert {name, for({:name_characters, s, _} <- codes(folder), do: s)} == {name, [:warning]}
    end
  end

  @tag differs: "A name decides before the path, and a page in another folder gets a warning."
  row "3.6", "the domain comes from the path, unless the name says otherwise", context do
    files = %{
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mail\n---\n",
      "mail/find.md" => "---\ndescription: Finds\n---\nFind.\n",
      "other/send.md" => page("mail.send")
    }

    folder = write(Path.join(context.tmp_dir, "paths"), files)
    {:ok, catalog} = Catalog.load([folder])
    view = View.all(catalog)
    assert %{domain: "mail"} = View.fetch!(view, "mail.find")
    assert %{domain: "mail"} = View.fetch!(view, "mail.send")
    assert {:name_differs, :warning, "send.md"} in codes(folder)
  end

  # 4: the extractor

  row ["4", "14.1"], "commands and text of a reply" do
    reply = """
    I look for them and tell Bob.

    ```cmd
    tasks.search --status overdue --assignee me
    ```

    There are three.

    ```cmd
    email.send --to bob@co.com --subject "Overdue" --body "Three tasks"
    tasks.get T-1
    ```

    Done!
    """

    assert {:ok, found} = Extractor.extract(reply)

    assert found.commands == [
             "tasks.search --status overdue --assignee me",
             ~s(email.send --to bob@co.com --subject "Overdue" --body "Three tasks"),
             "tasks.get T-1"
           ]

    assert found.text == "I look for them and tell Bob.\n\nThere are three.\n\nDone!"

    for {text, commands, rest} <- [
          {"", [], ""},
          {"Only text.", [], "Only text."},
          {"```cmd\nget_skill\n```", ["get_skill"], ""},
          {"```elixir\nget_skill\n```", [], "```elixir\nget_skill\n```"},
          {"```cmd\n\n```", [], ""}
        ] do
      assert {:ok, %{commands: ^commands, text: ^rest}} = Extractor.extract(text)
    end
  end

  # 5: routing and running

  row ["5.1", "14.1"], "words and flags" do
    line = ~s(email.send --to bob@co.com --subject "Q1 Report" --body "See attached.")

    assert Command.tokenize(line) ==
             {:ok,
              [
                "email.send",
                "--to",
                "bob@co.com",
                "--subject",
                "Q1 Report",
                "--body",
                "See attached."
              ]}

    assert {:ok, command} = Command.parse(line)

    assert command.flags ==
             %{"to" => "bob@co.com", "subject" => "Q1 Report", "body" => "See attached."}

    for {line, flags} <- [
          {"a.b --overdue", %{"overdue" => true}},
          {"a.b --to x y", %{"to" => ["x", "y"]}},
          {"a.b --to x --overdue", %{"to" => "x", "overdue" => true}},
          {~s(a.b --t "x y" 'z w'), %{"t" => ["x y", "z w"]}}
        ] do
      assert {:ok, %{flags: ^flags}} = Command.parse(line)
    end
  end

  row ["5.3", "14.1"], "a line is routed to its entry", context do
    view = load(context)
    line = ~s(email.send --to a@b.co --subject Hi --body "Yo" )
    assert {:ok, routed} = Router.route(view, line)
    assert {routed.name, routed.entry.name} == {"email.send", "email.send"}
    assert routed.command.flags == %{"to" => "a@b.co", "subject" => "Hi", "body" => "Yo"}
    assert String.trim(routed.command.raw) == String.trim(line)
    assert {:ok, %{command: %{args: ["T-1"]}}} = Router.route(view, "email.search T-1 --overdue")
    assert {:help, text} = Router.route(view, "get_skill: email")
    assert text =~ "# Email"
    assert {:help, _} = Router.route(view, "email.send --help")
    assert {:error, error} = Router.route(view, "email.sent --to x")
    assert Exception.message(error) =~ ~s(unknown skill "email.sent"; did you mean email.send)
  end

  @tag differs: "Words before the first flag are arguments of the command, and are not lost."
  row "5.3", "positional words", context do
    {:ok, routed} = Router.route(load(context), "email.search one two --limit 5")
    assert routed.command.args == ["one", "two"]
    assert routed.command.flags == %{"limit" => "5"}
  end

  row ["5.2", "5.5", "13"], "a handler has one function, and what it returns", context do
    view = load(context)
    # The frontmatter field handler names the module.
    {:ok, routed} = Router.route(view, "email.send --to nobody --subject a --body b")

    context = %Context{
      view: view,
      profile: view.profile,
      entry: routed.entry,
      command: routed.command,
      now: now()
    }

    assert {:ok, %Result{content: "Sent."}} = Executor.execute(routed, context)
    # It can be called by itself.
    assert {:error, "nobody has no mailbox"} = Send.execute(%{"to" => "nobody"}, context)
    assert {:ok, %Result{status: :ok}} = Send.execute(%{"to" => "ann"}, context)
    assert Skillbook.Handler.behaviour_info(:callbacks) |> Keyword.has_key?(:execute)
  end

  row "5.4", "a page without a handler is the result", context do
    result = run(start(context), "email.search")
    assert result.status == :template
    assert result.content =~ "Look for the mails that the user means."
    # Its status tells that it is to be interpreted.
    view = load(context)
    report = Skillbook.run(view, "```cmd\nemail.search\n```")
    assert to_string(report) =~ ~r/instructions|follow/
  end

  # 5.6: helpers of handlers

  row "5.6", "required flags" do
    assert :ok = Flags.require(%{"to" => "a", "body" => "b"}, ["to", "body"])
    assert {:error, error} = Flags.require(%{"to" => "a"}, ["to", "subject", "body"])
    message = Exception.message(error)
    assert message =~ "--subject" and message =~ "--body" and not (message =~ "--to ")
  end

  row "5.6", "words of a list" do
    allowed = ~w(todo done)

    for flags <- [%{}, %{"status" => "todo"}, %{"status" => ["todo", "done"]}],
        do: assert({flags, Flags.validate_enum(flags, "status", allowed)} == {flags, :ok})

    assert {:error, _} = Flags.validate_enum(%{"status" => ["todo", "late"]}, "status", allowed)
    {:error, error} = Flags.validate_enum(%{"status" => "late"}, "status", allowed)
    assert Exception.message(error) =~ "todo" and Exception.message(error) =~ "late"
  end

  @tag differs: "Errors are exceptions with their data in fields, and a message for the model."
  row "5.6", "the errors of these functions" do
    allowed = ["todo"]

    for {{:error, error}, kind, flag} <- [
          {Flags.validate_enum(%{"status" => "late"}, "status", allowed), :invalid, "status"},
          {Flags.cast_integer(%{"limit" => "x"}, "limit"), :invalid, "limit"},
          {Flags.cast_date(%{"due" => "x"}, "due"), :invalid, "due"},
          {Flags.require(Flags.apply_defaults(%{}, %{}), ["to"]), :missing, "to"}
        ] do
      assert %Skillbook.FlagError{kind: ^kind, flag: ^flag} = error
      assert Exception.message(error) =~ "--" <> flag
    end
  end

  row "5.6", "numbers, dates and defaults" do
    assert Flags.cast_integer(%{"limit" => "5"}, "limit") == {:ok, %{"limit" => 5}}
    assert Flags.cast_integer(%{"limit" => 5}, "limit") == {:ok, %{"limit" => 5}}
    assert Flags.cast_integer(%{}, "limit") == {:ok, %{}}
    assert {:error, error} = Flags.cast_integer(%{"limit" => "5x"}, "limit")
    assert Exception.message(error) =~ "--limit"
    assert Flags.cast_date(%{"due" => "2026-03-01"}, "due") == {:ok, %{"due" => ~D[2026-03-01]}}
    assert {:error, error} = Flags.cast_date(%{"due" => "soon"}, "due")
    assert Exception.message(error) =~ "YYYY-MM-DD"

    assert Flags.apply_defaults(%{"limit" => 5}, %{"limit" => 20, "sort" => "due_date"}) ==
             %{"limit" => 5, "sort" => "due_date"}
  end

  # 6: help

  @tag differs: "The words of the help are ours; a line has a name and a description as there."
  row "6", "functions for each level", context do
    view = load(context)
    top = Help.top_level(view) |> elem(1)

    for line <- [
          "Domains:",
          "  email  Tools for mail",
          "get_skill: <domain>",
          "get_skill: <domain>.<action>",
          "get_skill: <domain>.all"
        ],
        do: assert({line, top =~ line} == {line, true})

    assert {:ok, "# Email" <> _} = Help.domain(view, "email")
    assert {:ok, "# email.send" <> _} = Help.skill(view, "email.send")
    assert {:ok, all} = Help.domain_all(view, "email")
    # Sorted by name, with a rule between them.
    assert [search, send] = String.split(all, "\n\n---\n\n")
    assert search =~ "# email.search" and send =~ "# email.send"

    for {function, name} <- [domain: "nix", skill: "nix", domain_all: "nix"],
        do: assert({:error, _} = apply(Help, function, [view, name]))

    # A command line with --help is answered by the same text.
    {:ok, text} = Help.skill(view, "email.send")
    assert Router.route(view, "email.send --help") == {:help, text}
  end

  # 7: the registry

  row "7", "lookups", context do
    view = load(context)
    assert {:ok, %{name: "email.send"}} = View.fetch(view, "email.send")
    assert {:error, _} = View.fetch(view, "email.sent")
    assert View.named?(view, "email.send") and not View.named?(view, "email.sent")

    assert for(e <- View.entries(view, domain: "email"), do: e.name) == [
             "email.search",
             "email.send"
           ]

    assert View.entries(view, domain: "nix") == []
    assert [%{name: "email"}] = View.domains(view)
    assert View.count(view) == 2
  end

  row ["7", "7.3"], "the index is an entry of its own", context do
    [domain] = View.domains(load(context))
    assert {domain.name, domain.description} == {"email", "Tools for mail"}
    assert domain.body =~ "## Common Patterns"
    assert domain.path =~ "email/SKILL.md"
  end

  row "7", "files that are created, modified and removed", context do
    root = skills(context)
    book = start(context, sources: [root], watch: true)

    description = fn name ->
      with {:ok, e} <- View.fetch(Skillbook.view(book), name), do: e.description
    end

    write(root, %{"email/read.md" => page("email.read")})
    assert eventually(fn -> description.("email.read") == "Does email.read" end)
    # A modified file.
    write(root, %{"email/read.md" => String.replace(page("email.read"), "Does", "Reads")})
    assert eventually(fn -> description.("email.read") == "Reads email.read" end)
    # A broken one keeps its last version, with a diagnostic.
    write(root, %{"email/read.md" => "---\nname: [\n---\n"})

    assert eventually(fn ->
             Enum.any?(Skillbook.diagnostics(book), &(&1.code == :kept_last_good))
           end)

    assert description.("email.read") == "Reads email.read"
    # A removed one.
    File.rm!(Path.join(root, "email/read.md"))
    assert eventually(fn -> match?({:error, _}, description.("email.read")) end)
    assert :ok = Skillbook.reload(book)
  end

  # 9.4: validation

  row "9.4", "what is missing or reserved", context do
    files = %{
      "x/SKILL.md" => "---\ndomain: x\ndescription: X\n---\n",
      "x/one.md" => "---\ndescription: One\n---\nText.\n",
      "x/two.md" => "---\nname: x.two\n---\nText.\n",
      "x/all.md" => page("x.all"),
      "x/help.md" => page("x.help")
    }

    found = codes(write(Path.join(context.tmp_dir, "x"), files))

    for code <- [
          {:name_missing, :warning, "one.md"},
          {:description_missing, :error, "two.md"},
          {:name_reserved, :error, "all.md"},
          {:name_reserved, :error, "help.md"}
        ],
        do: assert({code, code in found} == {code, true})
  end

  row "9.4", "lint knows the format of names", context do
    folder = write(Path.join(context.tmp_dir, "y"), %{"y/a.b.md" => page("y.a.b")})
    assert :command_name in for(d <- Lint.run([folder]), do: d.code)
  end

  row "9.4", "a page without text is an error when it is loaded", context do
    files = %{
      "x/SKILL.md" => "---\ndomain: x\ndescription: X\n---\n",
      "x/bare.md" => "---\nname: x.bare\ndescription: Has no text\n---\n\n"
    }

    folder = write(Path.join(context.tmp_dir, "x"), files)

    assert [{_code, :error, "bare.md"}] =
             for({c, s, "bare.md"} <- codes(folder), do: {c, s, "bare.md"})
  end

  # 10: the prompt

  row "10.1", "the rules of commands" do
    prompt = Skillbook.prompt(Skillbook.view(book(store: ":memory:", watch: false)))

    for part <- [
          "```cmd\n",
          "get_skill",
          "get_skill: NAME",
          "NAME.all",
          "--urgent",
          "--to ann bob",
          ~s(--title "Several words"),
          "Text outside of these blocks is your reply to the user.",
          "## Domains"
        ],
        do: assert({part, prompt =~ part} == {part, true})

    # Each domain on a line, with its description.
    assert prompt =~ ~r/^  tasks +Keep track of tasks/m
    assert prompt =~ ~r/^  memory +Remember facts/m
  end

  row "10.1", "an application adds what it knows of the user" do
    test = self()

    chat =
      Skillbook.Model.Function.new(fn messages, _ ->
        send(test, {:messages, Enum.map_join(messages, "\n", & &1.content)})
        "Fine."
      end)

    sections = [:tasks, :memory, {"User", fn _ -> "Her name is Ann." end}]
    book = book(store: ":memory:", watch: false, sections: sections)
    run(book, "tasks.create --title Tea-time --assignee me")
    run(book, ~s(memory.save --content "Likes tea from Assam"))
    {:ok, _} = Skillbook.Agent.run(book, "Which tea do I like?", model: chat)
    assert_received {:messages, text}
    # Beside the rules, with ```cmd and get_skill, and the Domains.
    for part <- ["Tea-time", "Likes tea from Assam", "Her name is Ann.", "## Domains"],
        do: assert({part, text =~ part} == {part, true})
  end

  row "11.3", "a tool call runs the same command", context do
    view = Skillbook.view(start(context))
    arguments = %{"to" => ["a@b.co"], "subject" => "Hi", "body" => "Yo"}
    function = %{"name" => "email__send", "arguments" => Skillbook.Support.JSON.encode(arguments)}
    call = %{"id" => "1", "type" => "function", "function" => function}
    {result, answer} = Skillbook.Tools.call(view, call)
    assert {result.status, result.data} == {:ok, arguments}
    assert answer["content"] =~ "Sent."
    line = "email.send --to a@b.co --subject Hi --body Yo"
    assert run(view.book, line).data == arguments
  end

  row "13", "the modules of the document have their place here" do
    for {module, functions} <- [
          {Extractor, [extract: 1, new: 0, feed: 2, finish: 1]},
          {Help, [top_level: 1, domain: 2, skill: 2, domain_all: 2]},
          {Router, [route: 2]},
          {View, [fetch: 2, entries: 2, domains: 1]},
          {Executor, [execute: 2]},
          {Skillbook.Entry, [__struct__: 0]},
          {Skillbook.Domain, [__struct__: 0]},
          {Flags,
           [require: 2, validate_enum: 3, cast_integer: 2, cast_date: 2, apply_defaults: 2]},
          {Lint, [run: 1]},
          {Skillbook.Handler, [behaviour_info: 1]},
          {Result, [ok: 2]},
          {Context, [fetch_sql: 1]},
          {Skillbook.Handlers.Workflow.Build, [execute: 2]},
          {Skillbook.Vault, [sync: 2, search: 2]},
          {Scheduler, [registered: 1]},
          {Skillbook.Oban, [insert: 2]},
          {Skillbook.Handlers.Agent.Dispatch, [execute: 2]}
        ] do
      assert Code.ensure_loaded?(module)
      for {name, arity} <- functions, do: assert(function_exported?(module, name, arity))
    end
  end

  # 12: schedules

  row "12", "each entry with a schedule is a job of Quantum", context do
    start_supervised!(FakeQuantum)

    page = page("own.daily", schedule: "'0 8 * * 1-5'", run_as: "default", handler: inspect(Send))

    folder = write(Path.join(context.tmp_dir, "s"), %{"own/daily.md" => page})
    clock = :atomics.new(1, [])
    set = &:atomics.put(clock, 1, DateTime.to_unix(&1))
    # A Tuesday.
    set.(~U[2026-02-17 07:59:30Z])

    book =
      book(
        sources: [folder],
        builtins: false,
        watch: false,
        store: ":memory:",
        scheduler: {Skillbook.Scheduler.Quantum, FakeQuantum},
        schedules: [clock: fn -> DateTime.from_unix!(:atomics.get(clock, 1)) end]
      )

    assert %{"own.daily" => %Schedule{expression: "0 8 * * 1-5"}} = Scheduler.registered(book)

    assert [%{schedule: %{text: "0 8 * * 1-5"}, task: {module, function, arguments}}] =
             for({_, %{task: {_, :fire, [^book, _]}} = job} <- FakeQuantum.jobs(), do: job)

    set.(~U[2026-02-17 08:00:00Z])
    apply(module, function, arguments)
    Scheduler.await(book)
    {:ok, agenda} = Skillbook.schedule(View.all(book))
    assert for(row <- agenda.last, do: {row.name, row.status}) == [{"own.daily", :ok}]
  end

  row "12", "a command is a job of Oban, checked before", context do
    book = start(context)
    view = Skillbook.view(book)
    line = ~s(email.send --to a@b.co --subject A --body B)
    changeset = Skillbook.Oban.changeset(view, line, [])
    assert inspect(changeset) =~ "email.send"
    assert {:error, error} = Skillbook.Oban.insert(view, "email.send --too a@b.co")
    assert Exception.message(error) =~ "unknown flag --too"
    assert Schedule.parse("0 8 * * 1-5") |> elem(0) == :ok
  end

  row "12", "expressions of five fields, and names" do
    from = ~U[2026-02-17 12:00:00Z]

    for {expression, next} <- [
          {"0 8 * * 1-5", ~U[2026-02-18 08:00:00Z]},
          {"0 9 * * 1", ~U[2026-02-23 09:00:00Z]},
          {"@daily", ~U[2026-02-18 00:00:00Z]},
          {"*/15 * * * *", ~U[2026-02-17 12:15:00Z]}
        ] do
      {:ok, schedule} = Schedule.parse(expression)
      assert {expression, Schedule.next(schedule, from)} == {expression, next}
    end
  end

  row "7", "a page that cannot be read is logged, and the others are used", context do
    root = skills(context, %{"email/broken.md" => "---\nname: [\n---\nText.\n"})
    {book, log} = with_log(fn -> start(context, sources: [root]) end)
    assert log =~ "broken.md"
    assert {:ok, _} = View.fetch(Skillbook.view(book), "email.send")
  end
end
