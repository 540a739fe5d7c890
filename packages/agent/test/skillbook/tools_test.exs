defmodule Skillbook.ToolsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Support.JSON
  alias Skillbook.Tools.Name
  alias Skillbook.{Catalog, OptionError, Result, Source, Tools, View}

  doctest Skillbook.Tools
  doctest Skillbook.Tools.Name
  doctest Skillbook.ToolCallError

  @moduletag :tmp_dir

  defp builtin do
    {:ok, catalog} = Catalog.load([Source.builtin(), Source.builtin(:agent)])
    View.all(catalog)
  end

  defp echo(folder) do
    write(folder, %{
      "x/echo.md" => page("x.echo", handler: "Skillbook.TestHandlers.Text"),
      "x/strict.md" =>
        page(
          "x.strict",
          [handler: "Skillbook.TestHandlers.Text", strict: true],
          "## Flags\n\n--count  How many, from 1 to 9 (required)\n"
        ),
      "two words.md" => page("two words", [], "Instructions."),
      "hidden.md" => page("hidden", ["disable-model-invocation": true], "Secret."),
      "labelled/SKILL.md" => page("labelled", [visibility_labels: "[red]"], "Red.")
    })

    view(folder)
  end

  describe "names" do
    @rows [
      {"tasks.search", "tasks__search"},
      {"tasks.add-tags", "tasks__add-tags"},
      {"pdf-processing", "pdf-processing"},
      {"a.b.c_d", "a__b__c_d"},
      {"a__b", nil},
      {"a_.b", nil},
      {"a._b", nil},
      {"3d-print", nil},
      {"-a", nil},
      {"_a", "_a"},
      {"run_command", nil},
      {".a", nil},
      {"a..b", nil},
      {"x-0123456789abcdef", nil},
      {"Übung", nil},
      {"notes/dinner", nil},
      {String.duplicate("a", 64), String.duplicate("a", 64)},
      {String.duplicate("a", 65), nil},
      {"b." <> String.duplicate("a", 61), "b__" <> String.duplicate("a", 61)},
      {"b." <> String.duplicate("a", 62), nil}
    ]

    test "are valid for all vendors, unique and reversible", %{tmp_dir: folder} do
      names = Enum.map(@rows, &elem(&1, 0)) ++ Enum.filter(Enum.map(@rows, &elem(&1, 1)), & &1)
      tools = names |> Enum.uniq() |> Enum.map(&Name.from/1)
      assert tools == Enum.uniq(tools)
      for tool <- tools, do: assert(tool =~ ~r/\A[a-zA-Z_][a-zA-Z0-9_-]{0,63}\z/)

      for {name, tool} <- @rows,
          tool != nil,
          do: assert(Name.from(name) == tool)

      for {name, nil} <- @rows, do: assert(Name.from(name) =~ ~r/-[0-9a-f]{16}\z/)

      files =
        for {{name, _}, number} <- Enum.with_index(@rows),
            into: %{},
            do: {"#{number}.md", page(name)}

      view = view(write(folder, files))

      for entry <- View.entries(view),
          do: assert(Name.resolve(view, Name.from(entry.name)) == entry.name)

      assert View.count(view) > 10
    end
  end

  describe "names that pages set" do
    defp tools(view), do: for(%{"name" => name} <- Tools.definitions(view, shape: :mcp), do: name)
    defp own(tool, fields \\ []), do: [tool: tool, aliases: "[#{tool}]"] ++ fields

    test "are used if vendors allow them and the page has them as an alias", %{
      tmp_dir: folder
    } do
      rows = [
        {own("make_note"), "make_note"},
        {own("make-note9"), "make-note9"},
        {own(String.duplicate("a", 64)), String.duplicate("a", 64)},
        {own(String.duplicate("a", 65)), "x__make"},
        {[tool: "make_note"], "x__make"},
        {[tool: "make_note", aliases: "[other]"], "x__make"},
        {own("get_skill"), "x__make"},
        {own("run_command"), "x__make"},
        {own("9make"), "x__make"},
        {own("_make"), "_make"},
        {own("tasks__get"), "x__make"},
        {own("make.note"), "x__make"},
        {own("make note"), "x__make"},
        {own("x-0123456789abcdef"), "x__make"},
        {own("Übung"), "x__make"},
        {own("5"), "x__make"},
        {own("[a]"), "x__make"}
      ]

      for {{fields, tool}, number} <- Enum.with_index(rows) do
        folder = write(Path.join(folder, "#{number}"), %{"x/make.md" => page("x.make", fields)})
        assert {fields, tools(view(folder))} == {fields, ["get_skill", tool]}
      end
    end

    test "belong to the first page by name and never equal another name", %{tmp_dir: folder} do
      write(folder, %{
        "x/a.md" => page("x.a", own("make")),
        "x/b.md" => page("x.b", own("make")),
        "x/c.md" => page("x.c", own("haiku")),
        "haiku.md" => page("haiku")
      })

      assert tools(view(folder)) == ["get_skill", "haiku", "make", "x__b", "x__c"]

      for {tool, name} <- [{"make", "x.a"}, {"x__a", "x.a"}, {"x__b", "x.b"}, {"haiku", "haiku"}],
          do: assert({%Result{name: ^name}, _} = Tools.call(view(folder), %{"name" => tool}))
    end

    test "hidden entries do not occupy one", %{tmp_dir: folder} do
      write(folder, %{
        "x/a.md" => page("x.a", own("make", visibility_labels: "[red]")),
        "x/b.md" => page("x.b", own("make"))
      })

      {:ok, catalog} = Catalog.load([folder])
      {:ok, guest} = View.new(catalog, id: "guest")
      assert tools(guest) == ["get_skill", "make"]
      assert {%Result{name: "x.b"}, _} = Tools.call(guest, %{"name" => "make"})
      assert tools(View.all(catalog)) == ["get_skill", "make", "x__b"]
    end

    test "are ignored for sources of low trust", %{tmp_dir: folder} do
      write(folder, %{"x/a.md" => page("x.a", own("make"))})
      {:ok, catalog} = Catalog.load([[path: folder, trust: :low]])
      assert tools(View.all(catalog)) == ["get_skill", "x__a"]
    end

    test "are suggested", %{tmp_dir: folder} do
      write(folder, %{"x/make_note.md" => page("x.make_note", own("write_note"))})

      assert {%Result{
                content:
                  ~s(unknown tool "write_noet"; did you mean ) <>
                    ~s(write_note? ) <> _
              }, _} = Tools.call(view(folder), %{"name" => "write_noet"})
    end
  end

  test "properties have _ for the dashes of flags, and reach the flags", %{tmp_dir: folder} do
    write(folder, %{
      "x/a.md" =>
        page(
          "x.a",
          [handler: "Skillbook.TestHandlers.Text"],
          "## Flags\n\n--due-day  A day (required)\n--c  C\n"
        )
    })

    view = view(folder)
    assert [_, %{"inputSchema" => schema}] = Tools.definitions(view, shape: :mcp)
    assert {Map.keys(schema["properties"]), schema["required"]} == {~w(c due_day), ["due_day"]}

    rows = [
      {%{"due_day" => "x"}, %{"due-day" => "x"}},
      {%{"due-day" => "x"}, %{"due-day" => "x"}},
      {%{"due-day" => "x", "due_day" => "y"}, %{"due-day" => ["x", "y"]}},
      {%{"due_day" => "x", "c" => 7}, %{"c" => "7", "due-day" => "x"}}
    ]

    for {arguments, flags} <- rows do
      assert {%Result{content: content}, _} =
               Tools.call(view, %{"name" => "x__a", "arguments" => arguments})

      assert content == "flags: #{inspect(flags)}"
    end

    assert {%Result{content: text}, _} =
             Tools.call(view, %{
               "name" => "x__a",
               "arguments" => %{"due_day" => "x", "c-d" => "z"}
             })

    assert text ==
             ~s(unknown property "c-d"; did you mean "c"? Known properties: "due_day", "c")

    assert {%Result{content: text}, _} = Tools.call(view, %{"name" => "x__a", "arguments" => "["})
    assert text =~ ~s(Write for example: {"due_day": "VALUE"})
  end

  describe "definitions" do
    test "in the shapes of vendors" do
      view = builtin()
      names = ["tasks.create"]

      assert [
               %{"type" => "function", "function" => %{"name" => "get_skill"}},
               %{"function" => function}
             ] = Tools.definitions(view, names: names)

      assert function["name"] == "tasks__create"
      assert function["description"] == "Add a task to the shared list"

      assert function["parameters"] == %{
               "type" => "object",
               "required" => ["title"],
               "additionalProperties" => false,
               "properties" => %{
                 "title" => %{
                   "type" => "string",
                   "maxLength" => 200,
                   "description" =>
                     "The work to do, one line of at most 200 characters (required, by name)"
                 },
                 "description" => %{
                   "type" => "string",
                   "maxLength" => 10_000,
                   "description" => "Details, as many lines as needed, at most 10,000 characters"
                 },
                 "status" => %{
                   "type" => "string",
                   "enum" => ["todo", "in_progress", "blocked", "done", "cancelled"],
                   "default" => "todo",
                   "description" =>
                     "One of: todo, in_progress, blocked, done, cancelled (default: todo)"
                 },
                 "priority" => %{
                   "type" => "string",
                   "enum" => ["critical", "high", "medium", "low"],
                   "default" => "medium",
                   "description" => "One of: critical, high, medium, low (default: medium)"
                 },
                 "assignee" => %{
                   "type" => "string",
                   "maxLength" => 100,
                   "description" =>
                     "The person responsible, one line of at most 100 characters; " <>
                       "me is the current user"
                 },
                 "tags" => %{
                   "type" => "array",
                   "items" => %{"type" => "string"},
                   "description" => "One or more words to find it by"
                 },
                 "due" => %{
                   "type" => "string",
                   "pattern" => "^([0-9]{4}-[0-9]{2}-[0-9]{2}|yesterday|today|tomorrow)$",
                   "description" => "The last day to finish it: YYYY-MM-DD, today or tomorrow"
                 },
                 "parent" => %{
                   "type" => ["string", "array"],
                   "items" => %{"type" => "string"},
                   "description" => "The id of the task that it is a part of"
                 },
                 "labels" => %{
                   "type" => "array",
                   "items" => %{"type" => "string"},
                   "description" =>
                     "One or more visibility labels: only readers with all of them see it"
                 }
               }
             }

      assert [_, %{"name" => "tasks__create", "input_schema" => schema}] =
               Tools.definitions(view, names: names, shape: :anthropic)

      assert schema == function["parameters"]

      assert [%{"annotations" => %{"readOnlyHint" => true}}, mcp] =
               Tools.definitions(view, names: names, shape: :mcp)

      assert %{"inputSchema" => ^schema, "annotations" => %{"readOnlyHint" => false}} = mcp
    end

    test "integers, switches, several values" do
      [_, %{"inputSchema" => %{"properties" => properties} = schema}] =
        Tools.definitions(builtin(), names: ["tasks.search"], shape: :mcp)

      assert %{"type" => "integer", "minimum" => 1, "maximum" => 100, "default" => 20} =
               properties["limit"]

      assert %{"type" => "boolean"} = properties["overdue"]

      assert %{"type" => "array", "items" => %{"enum" => ["critical" | _]}} =
               properties["priority"]

      assert %{"type" => "string", "enum" => ["due_date" | _]} = properties["sort"]
      assert %{"enum" => ["todo" | _]} = properties["status"]["items"]
      refute Map.has_key?(schema, "required")
    end

    test "commands and skills that models may see, sorted by name", %{tmp_dir: folder} do
      view = echo(folder)

      names = fn view, options ->
        for %{"name" => name} <- Tools.definitions(view, [shape: :mcp] ++ options), do: name
      end

      two_words = Name.from("two words")
      assert names.(view, []) == ["get_skill", "labelled", two_words, "x__echo", "x__strict"]
      assert names.(view, names: ["x.*"]) == ["get_skill", "x__echo", "x__strict"]
      assert names.(view, names: []) == ["get_skill"]
      assert names.(view, limit: 2) == ["get_skill", "labelled"]

      [%{"description" => text} | _] = Tools.definitions(view, shape: :mcp, limit: 2)
      assert text =~ "3 more are no tools for lack of room."

      {:ok, catalog} = Catalog.load([folder])
      {:ok, guest} = View.new(catalog, id: "guest")
      assert names.(guest, []) == ["get_skill", two_words, "x__echo", "x__strict"]
    end

    test "undeclared flags are open, and strict pages are closed", %{tmp_dir: folder} do
      [_, %{"inputSchema" => open}, %{"inputSchema" => closed}] =
        Tools.definitions(echo(folder), shape: :mcp, names: ["x.*"])

      assert open == %{"type" => "object", "properties" => %{}}
      assert %{"additionalProperties" => false, "required" => ["count"]} = closed
    end

    test "descriptions are limited, and have the usage if no flags are declared", %{
      tmp_dir: folder
    } do
      write(folder, %{
        "x/a.md" => page("x.a", [], "## Usage\n\nx.a <file>\n\n## Flags\n\nAny.\n"),
        "x/b.md" =>
          page("x.b", [], "## Usage\n\nx.b (--c <c> | --d <d>)\n\n## Flags\n\n--c  C\n--d  D\n"),
        "x/c.md" => "---\nname: x.c\ndescription: #{String.duplicate("é", 2000)}\n---\nText.\n"
      })

      [_, a, b, c] = Tools.definitions(view(folder), shape: :anthropic)
      assert a["description"] == "Does x.a Usage: x.a <file>"
      assert b["description"] == "Does x.b Exactly one of c, d is given."
      assert String.length(c["description"]) == 1024
    end

    test "wrong options" do
      assert_raise OptionError, ~r/expected one of :openai, :openai_strict, .*:mcp, :llama/, fn ->
        Tools.definitions(builtin(), shape: :xml)
      end

      assert_raise OptionError, ~r/\[/, fn -> Tools.definitions(builtin(), names: ["["]) end
    end
  end

  describe "run_command" do
    test "runs any command that the view has, as it is written", %{tmp_dir: folder} do
      view = echo(folder)
      call = &Tools.call(view, %{"name" => "run_command", "arguments" => &1})

      rows = [
        {~s({"command": "x.echo --a b c"}), :ok, ~s(flags: %{"a" => ["b", "c"]})},
        {~s({"command": "x.echo {\\"a\\": 1}"}), :ok, ~s(flags: %{"a" => 1})},
        {~s({"command": "two\\\\ words"}), :template, "Instructions."},
        {~s({"command": "x.strict --count 10"}), :error,
         ~s(--count must be a whole number from 1 to 9, got "10". Write for example: --count 1)},
        {~s({"command": ""}), :error, "expected a command, got none"},
        {~s({"command": 5}), :error,
         ~S(the arguments of run_command: expected the command as text in "command". ) <>
           ~S(Write for example: {"command": "domain.action --flag VALUE"})},
        {"{", :error,
         ~S(the arguments of run_command: not JSON: line 1, column 1: EOF while parsing an ) <>
           ~S(object. Write for example: {"command": "domain.action --flag VALUE"})}
      ]

      for {arguments, status, content} <- rows do
        assert {%Result{} = result, %{"content" => _}} = call.(arguments)
        assert {arguments, result.status} == {arguments, status}
        assert {arguments, hd(String.split(result.content, "\n"))} == {arguments, content}
      end

      assert {%Result{name: "labelled"}, _} = call.(~s({"command": "labelled"}))
      {:ok, guest} = View.new(elem(Catalog.load([folder]), 1), id: "guest")

      {hidden, _} =
        Tools.call(guest, %{"name" => "run_command", "arguments" => %{"command" => "labelled"}})

      {missing, _} =
        Tools.call(guest, %{"name" => "run_command", "arguments" => %{"command" => "labelles"}})

      assert hidden.status == :error
      assert hidden.content == String.replace(missing.content, "labelles", "labelled")
    end

    test "is no entry's name", %{tmp_dir: folder} do
      view = view(write(folder, %{"run_command.md" => page("run_command")}))
      own = Name.from("run_command")
      assert tools(view) == ["get_skill", own]
      assert {%Result{name: "run_command"}, _} = Tools.call(view, %{"name" => own})
    end

    test "is among the tools if it is asked for, and counts", %{tmp_dir: folder} do
      view = echo(folder)

      names = fn options ->
        for tool <- Tools.list(view, options), do: tool.name
      end

      assert names.(run_command: true, limit: 3) == ["get_skill", "run_command", "labelled"]
      assert names.(run_command: true, limit: 2) == ["get_skill", "run_command"]
      assert names.(run_command: true, limit: 1) == ["get_skill"]
      assert names.(limit: 1) == ["get_skill"]
    end
  end

  describe "few tools" do
    @few ["get_skill", "run_command", "search_skills"]

    # Commands of an application beside the built-in search, as trusted code or a profile sees
    # them.
    defp many(folder, number, profile \\ nil) do
      about = "What it does, in a sentence of eighty characters, as pages of commands have one."
      flags = "## Flags\n\n--id  The id (required)\n--limit  How many, from 1 to 100\n"
      fields = [handler: "Skillbook.TestHandlers.Text", strict: true, description: about]

      for n <- 1..number//1 do
        name = "many.act#{String.pad_leading("#{n}", 3, "0")}"

        fields =
          Enum.map_join([name: name] ++ fields, "\n", fn {key, value} -> "#{key}: #{value}" end)

        text = "---\n#{fields}\n---\n# #{name}\n\n#{flags}"
        write(folder, %{(String.replace(name, ".", "/") <> ".md") => text})
      end

      search = %{Source.builtin() | available: ["skills.search"]}
      {:ok, catalog} = Catalog.load([search, folder])
      if profile, do: elem(View.new(catalog, profile), 1), else: View.all(catalog)
    end

    defp names(view, options), do: for(tool <- Tools.list(view, options), do: tool.name)

    test "are chosen by :auto above its budget", %{tmp_dir: folder} do
      view = many(folder, 20)
      each = names(view, run_command: true)
      tokens = Tools.tokens(Tools.list(view, run_command: true))
      assert length(each) == 23

      for {options, expected} <- [
            {[], each},
            {[max_tokens: 1], each},
            {[form: :each, max_tokens: 1], each},
            {[form: :few], @few},
            {[form: :few, max_tokens: 1_000_000], @few},
            {[form: :auto], each},
            {[form: :auto, max_tokens: tokens + 1], each},
            {[form: :auto, max_tokens: tokens], each},
            {[form: :auto, max_tokens: tokens - 1], @few},
            {[form: :auto, max_tokens: 1], @few},
            # The budget is for the tools that the limit leaves.
            {[form: :auto, max_tokens: tokens - 1, limit: 22], Enum.take(each, 22)},
            {[form: :few, limit: 2], ["get_skill", "run_command"]},
            {[form: :few, names: ["many.*"]], ["get_skill", "run_command"]},
            {[form: :few, names: ["skills.*"]], @few}
          ] do
        assert {options, names(view, [run_command: true] ++ options)} == {options, expected}
      end

      assert names(view, form: :few) == @few
      assert names(view, form: :auto, max_tokens: 1) == @few
    end

    test "have a budget by default", %{tmp_dir: folder} do
      view = many(folder, 120)

      for {limit, few?} <- [{90, false}, {120, true}] do
        tools = Tools.list(view, limit: limit)
        assert {limit, Tools.tokens(tools) > 10_000} == {limit, few?}
        assert {limit, names(view, limit: limit, form: :auto) == @few} == {limit, few?}
      end
    end

    test "are as short for 200 commands as for one, and say how many there are", context do
      for number <- [1, 200] do
        view = many(Path.join(context.tmp_dir, "#{number}"), number)
        [get_skill | _] = tools = Tools.list(view, form: :few)
        assert get_skill.description =~ "skill. #{number} more are no tools for lack of room."
        assert Tools.tokens(tools) < 500
      end
    end

    test "have a search only for profiles that see it", %{tmp_dir: folder} do
      for {skills, expected} <- [
            {["*"], @few},
            {["many.*", "skills.search"], @few},
            {["many.*"], ["get_skill", "run_command"]}
          ] do
        view = many(folder, 2, id: "ann", skills: skills)
        assert {skills, names(view, form: :few)} == {skills, expected}
      end
    end

    # Each row: a call of the command's own tool, and its line. Both run the same.
    test "run what the tool of the command runs", %{tmp_dir: folder} do
      write(folder, %{
        "x/put.md" => page("x.put", handler: "Skillbook.TestHandlers.Text"),
        "x/raise.md" => page("x.raise", handler: "Skillbook.TestHandlers.Raise"),
        "x/asks.md" =>
          page("x.asks", handler: "Skillbook.TestHandlers.Text", approval: "required"),
        "x/secret.md" => page("x.secret", visibility_labels: "[red]"),
        "poem.md" => page("poem", [], "Instructions.")
      })

      many(folder, 1)

      book =
        book(
          sources: [folder],
          store: ":memory:",
          watch: false,
          profiles: [[id: "ann"], [id: "reader", writes: :deny]]
        )

      rows = [
        {"many__act001", %{id: "7", limit: 9}, "many.act001 --id 7 --limit 9"},
        {"many__act001", %{}, "many.act001"},
        {"many__act001", %{id: "7", limit: 101}, "many.act001 --id 7 --limit 101"},
        {"many__act001", %{id: "7", odd: 1}, "many.act001 --id 7 --odd 1"},
        {"x__put", %{a: "1"}, "x.put --a 1"},
        {"x__raise", %{}, "x.raise"},
        {"x__asks", %{}, "x.asks"},
        {"poem", %{}, "poem"},
        {"get_skill", %{path: "poem"}, "get_skill poem"},
        {"get_skill", %{path: "x.secret"}, "get_skill x.secret"}
      ]

      statuses =
        for {tool, arguments, line} <- rows, profile <- ["ann", "reader"] do
          view = Skillbook.view(book, profile)

          [direct, by_line] =
            for {name, arguments} <- [{tool, arguments}, {"run_command", %{command: line}}] do
              call = %{"name" => name, "arguments" => JSON.encode(arguments)}
              {result, _answer} = capture(fn -> Tools.call(view, call) end)
              error = result.error && result.error.__struct__
              {result.name, result.status, error, result.effects}
            end

          assert {line, profile, by_line} == {line, profile, direct}
          elem(direct, 1)
        end

      assert Enum.sort(Enum.uniq(statuses)) == [:error, :help, :ok, :pending, :template]
    end

    defp capture(work) do
      ExUnit.CaptureLog.capture_log(fn -> send(self(), {:worked, work.()}) end)
      assert_received {:worked, value}
      value
    end
  end

  describe "a list that is too long" do
    test "keeps the tools nearest to the messages, in their order", %{tmp_dir: folder} do
      write(folder, %{
        "a.md" => "---\nname: a\ndescription: Bake bread\n---\nText.",
        "b.md" => "---\nname: b\ndescription: Mend a bicycle\n---\nText.",
        "c.md" => "---\nname: c\ndescription: Sail a boat\n---\nText.",
        "d.md" => "---\nname: d\ndescription: Greet\nproactive_for_profile_ids: [all]\n---\nText."
      })

      {:ok, catalog} = Catalog.load([folder])
      {:ok, view} = View.new(catalog, id: "all")
      boat = [%{role: :user, content: "How do I sail my boat?"}]

      names = fn options ->
        for tool <- Tools.list(view, options), tool.entry, do: tool.name
      end

      rows = [
        {[limit: 5], ["a", "b", "c", "d"]},
        {[limit: 5, messages: boat], ["a", "b", "c", "d"]},
        {[limit: 4], ["a", "b", "d"]},
        {[limit: 3], ["a", "d"]},
        {[limit: 3, messages: boat], ["c", "d"]},
        {[limit: 2, messages: boat], ["d"]},
        {[limit: 3, messages: boat, names: ["a", "b"]], ["a", "b"]},
        {[limit: 2, messages: boat, names: ["a", "b"]], ["a"]},
        {[limit: 3, messages: [%{role: :user, content: "  "}]], ["a", "d"]},
        {[limit: 3, messages: [%{role: :assistant, content: "boat"}]], ["a", "d"]}
      ]

      for {options, expected} <- rows,
          do: assert({options, names.(options)} == {options, expected})
    end
  end

  describe "calls" do
    test "in the vendors' shapes, answered in the same", %{tmp_dir: folder} do
      view = echo(folder)
      text = ~s(flags: %{"a" => "b"})

      rows = [
        {%{
           "id" => "c1",
           "type" => "function",
           "function" => %{"name" => "x__echo", "arguments" => ~s({"a": "b"})}
         }, %{"role" => "tool", "tool_call_id" => "c1", "content" => text}},
        {%{
           "type" => "function_call",
           "call_id" => "c2",
           "name" => "x__echo",
           "arguments" => ~s({"a": "b"})
         }, %{"type" => "function_call_output", "call_id" => "c2", "output" => text}},
        {%{"type" => "tool_use", "id" => "c3", "name" => "x__echo", "input" => %{"a" => "b"}},
         %{
           "type" => "tool_result",
           "tool_use_id" => "c3",
           "content" => text,
           "is_error" => false
         }},
        {%{"functionCall" => %{"id" => "c4", "name" => "x__echo", "args" => %{"a" => "b"}}},
         %{
           "functionResponse" => %{
             "id" => "c4",
             "name" => "x__echo",
             "response" => %{"output" => text}
           }
         }},
        {%{name: "x__echo", args: %{a: "b"}},
         %{"functionResponse" => %{"name" => "x__echo", "response" => %{"output" => text}}}},
        {%{"name" => "x__echo", "arguments" => %{"a" => "b"}},
         %{"content" => [%{"type" => "text", "text" => text}], "isError" => false}},
        {%{name: "x.echo", arguments: %{a: "b"}},
         %{"content" => [%{"type" => "text", "text" => text}], "isError" => false}}
      ]

      for {call, answer} <- rows do
        assert {%Result{status: :ok, name: "x.echo", command: ~s(x.echo {"a":"b"})}, ^answer} =
                 Tools.call(view, call)
      end
    end

    test "without arguments, of skills, and of get_skill", %{tmp_dir: folder} do
      view = echo(folder)

      for none <- [nil, "", "{}", %{}] do
        assert {%Result{status: :template, content: "Instructions."}, _} =
                 Tools.call(view, %{"name" => Name.from("two words"), "arguments" => none})
      end

      assert {%Result{status: :template}, _} =
               Tools.call(view, %{
                 "name" => "two words",
                 "arguments" => %{"a" => ["b", 1], "c" => true}
               })

      assert {%Result{status: :help, content: list}, _} =
               Tools.call(view, %{"name" => "get_skill"})

      assert list =~ "two words"

      assert {%Result{status: :help, content: "Instructions."}, _} =
               Tools.call(view, %{"name" => "get_skill", "arguments" => %{"path" => "two words"}})
    end

    test "that are invalid tell the model what to write", %{tmp_dir: folder} do
      view = echo(folder)

      rows = [
        {%{"name" => "x__ehco"},
         ~s(unknown tool "x__ehco"; did you mean x__echo? To list all skills, call get_skill ) <>
           ~s(without arguments)},
        {%{"name" => "nothing-like-it"},
         ~s(unknown tool "nothing-like-it". To list all skills, call get_skill without ) <>
           ~s(arguments)},
        {%{"name" => <<255>>},
         ~s(unknown tool "<<255>>". To list all skills, call get_skill without arguments)},
        {%{"name" => "x__echo", "arguments" => ~s({"a": tru})},
         ~s(the arguments of x__echo: not JSON: line 1, column 10: expected ident. Write for ) <>
           ~s(example: {})},
        {%{"name" => "x__echo", "arguments" => "[1]"},
         ~s(the arguments of x__echo: expected one JSON object, got a list. Write for ) <>
           ~s(example: {})},
        {%{"name" => "x__strict", "arguments" => 5},
         ~s(the arguments of x__strict: expected one JSON object, got a number. Write for ) <>
           ~s(example: {"count": 1})},
        {%{"name" => "get_skill", "arguments" => "email"},
         ~s(the arguments of get_skill: not JSON: line 1, column 1: expected value. Write for ) <>
           ~s(example: {"path": "NAME"})},
        {%{"name" => nil},
         "expected a tool call with a name and arguments. Call for example get_skill without " <>
           "arguments"},
        {"text",
         "expected a tool call with a name and arguments. Call for example get_skill without " <>
           "arguments"},
        {%{"name" => "x__strict", "arguments" => %{"count" => 10}},
         ~s("count" must be a whole number from 1 to 9, got 10. Write for example: "count": 1)},
        {%{"name" => "x__strict", "arguments" => %{"count" => %{}}},
         ~s("count" must be a whole number from 1 to 9, got an object. Write for example: ) <>
           ~s("count": 1)}
      ]

      for {call, text} <- rows do
        assert {%Result{status: :error, content: ^text}, %{"isError" => true}} =
                 Tools.call(view, call)
      end

      assert {_, %{"content" => "error\nunknown tool" <> _}} =
               Tools.call(view, %{
                 "id" => "1",
                 "function" => %{"name" => "no", "arguments" => "{}"}
               })
    end

    test "find only visible entries", %{tmp_dir: folder} do
      echo(folder)
      {:ok, catalog} = Catalog.load([folder])
      {:ok, guest} = View.new(catalog, id: "guest")
      unknown = &(Tools.call(guest, %{"name" => &1}) |> elem(0) |> Map.fetch!(:content))
      assert String.replace(unknown.("labelled"), "labelled", "labexxed") == unknown.("labexxed")
      # A tool that is hidden from models can still be called by its name, like a command.
      assert {%Result{status: :template, content: "Secret."}, _} =
               Tools.call(guest, %{"name" => "hidden"})
    end

    @tag :capture_log
    test "options are those of a run", %{tmp_dir: folder} do
      write(folder, %{"x/tell.md" => page("x.tell", handler: "Skillbook.TestHandlers.Hang")})

      assert {%Result{status: :error}, _} =
               Tools.call(view(folder), %{"name" => "x__tell"}, timeout: 10)
    end

    test "a call returns the same as the command", %{tmp_dir: folder} do
      view = echo(folder)
      :rand.seed(:exsss, {1, 2, 3})

      for _ <- 1..300 do
        flags = for _ <- 1..(:rand.uniform(4) - 1)//1, into: %{}, do: {word(), value()}

        text =
          for {name, value} <- flags, into: "x.echo" do
            values = if value == true, do: [], else: List.wrap(value)
            Enum.join([" --" <> name | Enum.map(values, &quoted/1)], " ")
          end

        [written] = Skillbook.Reply.Pipeline.commands(view, [text])
        arguments = flags |> JSON.encode()
        same = &Map.drop(&1, [:duration, :command])

        for call <- [
              %{"function" => %{"name" => "x__echo", "arguments" => arguments}},
              %{function: %{name: "x.echo", arguments: flags}},
              %{"type" => "function_call", "name" => "x__echo", "arguments" => arguments},
              %{"type" => "tool_use", "name" => "x__echo", "input" => flags},
              %{"name" => "x__echo", "arguments" => flags}
            ] do
          {called, _} = Tools.call(view, call)
          assert same.(written) == same.(called)
        end

        assert written.content == "flags: #{inspect(flags)}"
      end
    end
  end

  defp word, do: Enum.random(~w(a bb c-d e_f limit q1))

  defp value do
    case :rand.uniform(4) do
      1 -> true
      2 -> for _ <- 1..(1 + :rand.uniform(3)), do: text()
      _ -> text()
    end
  end

  defp text do
    pieces = [" ", "a", "\"", "\\", "\n", "'", "é", "--x", "```", "{", "<<E", "|", "#", "“", "\t"]
    for _ <- 1..(:rand.uniform(8) - 1)//1, into: "", do: Enum.random(pieces)
  end

  defp quoted(text), do: ~s("#{String.replace(text, ["\\", "\""], &("\\" <> &1))}")
end
