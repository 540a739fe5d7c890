defmodule Skillbook.MCP.ServerTest do
  use ExUnit.Case, async: true

  import Skillbook.SkillsCase, only: [write: 2]

  alias Skillbook.MCP.{Context, Error, Protocol, Server}
  alias Skillbook.{Result, Skill}

  @moduletag :tmp_dir
  @stateless "2026-07-28"
  @sessions ["2025-11-25", "2025-06-18"]

  @pages %{
    "post/send.md" => """
    ---
    name: post.send
    title: Send a letter
    description: Sends a letter
    labels: [staff]
    ---
    ## Flags

    --to  The recipient
    """,
    "reports/weekly.md" => """
    ---
    name: reports.weekly
    title: Weekly report
    description: Writes the weekly report
    flags:
      kind: {type: one_of, values: [short, long, longer], required: true, description: Its size}
      day: {type: date, words: true}
      draft: switch
    ---
    Write the {kind} report.

    Use the numbers of {day}.
    """,
    "reports/sum.md" => """
    ---
    name: reports.sum
    description: Adds up
    flags: {to: {type: text, required: true, description: For whom}}
    ---
    ## Behavior

    ```cmd
    numbers.add --a 1 --b 2
    ```
    """,
    "tea/SKILL.md" => """
    ---
    name: tea
    description: Makes tea
    ---
    Boil water.
    """,
    "hidden/SKILL.md" => """
    ---
    name: hidden
    description: Only for models
    user-invocable: false
    ---
    Text.
    """,
    "slash/SKILL.md" => """
    ---
    name: slash
    description: Only for people
    disable-model-invocation: true
    ---
    Text.
    """
  }

  defp commands do
    [
      Skill.new!(
        name: "numbers.add",
        description: "Adds two integers",
        effects: :read,
        flags: [a: [type: :integer, required: true], b: [type: :integer, default: 1]],
        metadata: %{},
        run: fn %{"a" => a, "b" => b}, context ->
          Skillbook.Context.report(context, 1, total: 2, text: "adding")
          {:ok, Result.ok("The sum is #{a + b}.", data: %{sum: a + b})}
        end
      ),
      Skill.new!(
        name: "numbers.fail",
        description: "Fails",
        flags: [],
        run: fn _flags, _context -> raise "no" end
      )
    ]
  end

  setup %{tmp_dir: folder, test: test} do
    book = :"#{test}"
    write(folder, @pages)

    {:ok, _pid} =
      start_supervised(
        {Skillbook,
         name: book,
         sources: [folder | commands()],
         builtins: false,
         store: ":memory:",
         profiles: [[id: "ann"], [id: "staff", grants: ["staff"]]]}
      )

    %{book: book}
  end

  defp context(book, options \\ []) do
    {id, options} = Keyword.pop(options, :as, "ann")
    view = Skillbook.view(book, id)
    struct!(%Context{view: view, profile: view.profile, revision: @stateless}, options)
  end

  defp result!(context, method, params \\ %{}) do
    {:reply, %{"jsonrpc" => "2.0", "id" => 7, "result" => result}} = ask(context, method, params)
    result
  end

  defp error!(context, method, params) do
    {:reply, %{"jsonrpc" => "2.0", "id" => 7, "error" => error}} = ask(context, method, params)
    {error["code"], error["message"]}
  end

  defp ask(context, method, params), do: Server.handle({:request, 7, method, params}, context)

  describe "methods" do
    test "exist in the revisions that have them", %{book: book} do
      only_stateless = ["server/discover"]
      only_sessions = ["ping", "resources/subscribe", "resources/unsubscribe"]

      for {method, revisions} <- Server.methods() do
        assert @stateless in revisions == method not in only_sessions, method
        assert "2025-11-25" in revisions == method not in only_stateless, method
        assert "2025-06-18" in revisions == method not in only_stateless, method
      end

      for revision <- Protocol.revisions(),
          method <- ["initialize", "nothing", "", "tools", "logging/setLevel"] do
        assert error!(context(book, revision: revision), method, %{}) ==
                 {-32_601, "unknown method \"#{method}\" in the revision #{revision}"}
      end

      assert error!(context(book), "ping", %{}) |> elem(0) == -32_601

      assert error!(context(book, revision: "2025-11-25"), "server/discover", %{}) |> elem(0) ==
               -32_601
    end

    test "of the newest revision have its fields in their results, of older ones not",
         %{book: book} do
      lists = ["tools/list", "prompts/list"]

      for method <- ["server/discover" | lists] do
        result = result!(context(book), method)
        assert %{"resultType" => "complete", "ttlMs" => 30_000} = result
        assert result["cacheScope"] == "private"

        assert %{"io.modelcontextprotocol/serverInfo" => %{"name" => "skillbook"}} =
                 result["_meta"]
      end

      call = %{"name" => "tea"}
      assert %{"resultType" => "complete"} = called = result!(context(book), "tools/call", call)
      refute Map.has_key?(called, "ttlMs")

      for method <- lists, revision <- @sessions do
        result = result!(context(book, revision: revision), method)
        assert [_list] = Map.keys(result) -- ["nextCursor"]
      end

      assert result!(context(book, revision: "2025-11-25"), "ping") == %{}
    end

    test "that crash are an error of the server, without its reason", %{book: book} do
      log =
        ExUnit.CaptureLog.capture_log(fn ->
          broken = %{context(book) | options: [tools: :none]}

          assert error!(broken, "tools/list", %{}) ==
                   {-32_603, "an error in the server; its operator finds it in the log"}
        end)

      assert log =~ "mcp tools/list:"
    end

    test "of notifications and responses have no answer", %{book: book} do
      for message <- [
            {:notification, "notifications/initialized", %{}},
            {:notification, "nothing", %{}},
            {:response, 1, {:ok, %{}}}
          ],
          do: assert(Server.handle(message, context(book)) == :accepted)
    end
  end

  describe "initialize" do
    test "agrees on a revision" do
      for {requested, agreed} <- [
            {"2025-11-25", "2025-11-25"},
            {"2025-06-18", "2025-06-18"},
            {"2025-03-26", "2025-11-25"},
            {"2026-07-28", "2025-11-25"},
            {"x", "2025-11-25"}
          ] do
        params = %{
          "protocolVersion" => requested,
          "capabilities" => %{"elicitation" => %{}, "sampling" => %{}},
          "clientInfo" => %{"name" => "an\u202e editor", "version" => "1"}
        }

        assert {:ok, result, fields} = Server.initialize(params)
        assert result["protocolVersion"] == agreed
        assert result["serverInfo"]["name"] == "skillbook"
        assert result["capabilities"]["tools"] == %{"listChanged" => true}
        assert fields.revision == agreed
        assert fields.capabilities == %{"elicitation" => %{}}
        assert fields.client == "an\\u{202E} editor"
      end
    end

    test "needs its fields" do
      for params <- [
            %{},
            %{"protocolVersion" => "2025-11-25"},
            %{"protocolVersion" => 1, "capabilities" => %{}},
            %{"protocolVersion" => "2025-11-25", "capabilities" => []}
          ] do
        assert {:error, %Error{code: -32_602, message: message}} = Server.initialize(params)

        assert message ==
                 "expected `protocolVersion` as text and `capabilities` as an object"
      end
    end
  end

  describe "fields of a request that says everything" do
    @version "io.modelcontextprotocol/protocolVersion"
    @capabilities "io.modelcontextprotocol/clientCapabilities"

    test "are read or refused" do
      none =
        "expected `_meta[\"#{@version}\"]` as in the revision 2026-07-28, or a session that " <>
          "began with `initialize`, as in 2025-11-25 and 2025-06-18"

      version =
        &"expected the protocol version 2026-07-28, 2025-11-25, 2025-06-18, got: \"#{&1}\""

      for {meta, code, message} <- [
            {nil, -32_602, none},
            {%{}, -32_602, none},
            {%{@version => 1, @capabilities => %{}}, -32_602, none},
            {%{@version => @stateless}, -32_602,
             "expected an object as `_meta[\"#{@capabilities}\"]`"},
            {%{@version => @stateless, @capabilities => []}, -32_602,
             "expected an object as `_meta[\"#{@capabilities}\"]`"},
            {%{@version => "2025-11-25", @capabilities => %{}}, -32_022, version.("2025-11-25")},
            {%{@version => "1900-01-01"}, -32_022, version.("1900-01-01")}
          ] do
        params = if meta, do: %{"_meta" => meta}, else: %{}
        assert {:error, error} = Server.fields(params)
        assert {error.code, error.message, error.status} == {code, message, 400}
      end

      assert {:error, error} = Server.fields(%{"_meta" => %{@version => "v9"}})
      assert error.data == %{"supported" => Protocol.revisions(), "requested" => "v9"}

      declared = %{"elicitation" => %{}}
      meta = %{@version => @stateless, @capabilities => declared}

      assert Server.fields(%{"_meta" => meta}) ==
               {:ok, %{revision: @stateless, capabilities: declared, client: nil}}
    end
  end

  describe "tools" do
    test "are the commands and skills that models may see", %{book: book} do
      tools = result!(context(book), "tools/list")["tools"]

      assert Enum.map(tools, & &1["name"]) ==
               ~w(get_skill hidden numbers__add numbers__fail reports__sum reports__weekly tea)

      staff = result!(context(book, as: "staff"), "tools/list")["tools"]
      assert "post__send" in Enum.map(staff, & &1["name"])

      add = Enum.find(tools, &(&1["name"] == "numbers__add"))
      assert add["inputSchema"]["properties"]["a"]["type"] == "integer"
      assert add["inputSchema"]["required"] == ["a"]

      # {tool, readOnly, destructive, idempotent, openWorld}
      for {name, reads, destroys, idempotent, open} <- [
            {"get_skill", true, false, true, false},
            {"numbers__add", true, false, true, true},
            {"numbers__fail", false, true, false, true},
            {"reports__sum", true, false, true, true},
            {"reports__weekly", true, false, true, false},
            {"tea", true, false, true, false}
          ] do
        tool = Enum.find(tools, &(&1["name"] == name))

        assert tool["annotations"] == %{
                 "readOnlyHint" => reads,
                 "destructiveHint" => destroys,
                 "idempotentHint" => idempotent,
                 "openWorldHint" => open
               }
      end
    end

    test "have valid names, and come in the same order and on pages", %{book: book} do
      many =
        for number <- 1..150,
            do: Skill.new!(name: "n.c#{number}", description: "d", run: fn _, _ -> :ok end)

      book = :"#{book} many"

      {:ok, _} =
        start_supervised({Skillbook, name: book, sources: many, builtins: false}, id: book)

      context = context(book, as: "default", options: [tools: [limit: 1_000]])

      first = result!(context, "tools/list")
      assert length(first["tools"]) == 128
      second = result!(context, "tools/list", %{"cursor" => first["nextCursor"]})
      assert length(second["tools"]) == 23
      refute Map.has_key?(second, "nextCursor")
      names = Enum.map(first["tools"] ++ second["tools"], & &1["name"])
      assert names == Enum.uniq(names)
      for name <- names, do: assert(name =~ ~r/\A[A-Za-z0-9_.-]{1,128}\z/)

      assert error!(context, "tools/list", %{"cursor" => "x"}) ==
               {-32_602, "expected a `cursor` that this list has returned as `nextCursor`"}
    end

    test "are called by the name of the tool or of the command", %{book: book} do
      for name <- ["numbers__add", "numbers.add"] do
        call = %{"name" => name, "arguments" => %{"a" => 40, "b" => 2}}

        assert %{
                 "content" => [%{"type" => "text", "text" => "The sum is 42."}],
                 "isError" => false
               } = result!(context(book), "tools/call", call)
      end

      assert %{"content" => [%{"text" => text}]} =
               result!(context(book), "tools/call", %{"name" => "tea"})

      assert text =~ "Boil water."
      assert result!(context(book), "tools/call", %{"name" => "get_skill"})["isError"] == false
    end

    test "that fail say so to the model", %{book: book} do
      ExUnit.CaptureLog.capture_log(fn ->
        for {call, text} <- [
              {%{"name" => "numbers__add"},
               "\"a\" is required and missing. Add it as: \"a\": \"VALUE\""},
              {%{"name" => "numbers__add", "arguments" => %{"a" => "x"}},
               "\"a\" must be a whole number, got \"x\". Write for example: \"a\": 10"},
              {%{"name" => "numbers__fail"}, ~r/failed/},
              {%{"name" => "get_skill", "arguments" => %{"path" => "nothing"}}, ~r/nothing/}
            ] do
          result = result!(context(book), "tools/call", call)
          assert result["isError"]
          assert [%{"type" => "text", "text" => got}] = result["content"]
          if is_binary(text), do: assert(got == text), else: assert(got =~ text)
        end
      end)
    end

    test "that do not exist, and calls that are no calls, are errors of the protocol",
         %{book: book} do
      for {params, message} <- [
            {%{}, "expected the name of a tool as `name`"},
            {%{"name" => 1}, "expected the name of a tool as `name`"},
            {%{"name" => "tea", "arguments" => []}, "expected an object as `arguments`"},
            {%{"name" => "tea", "arguments" => "x"}, "expected an object as `arguments`"},
            {%{"name" => "numbers__ad"},
             "unknown tool \"numbers__ad\"; did you mean numbers__add or numbers__fail? " <>
               "To list all skills, call get_skill without arguments"}
          ] do
        assert error!(context(book), "tools/call", params) == {-32_602, message}
      end
    end

    test "that are hidden are unknown, with the same bytes", %{book: book} do
      for name <- ["post__send", "post.send"] do
        hidden = error!(context(book), "tools/call", %{"name" => name})

        {code, message} =
          error!(context(book), "tools/call", %{"name" => String.replace(name, "send", "sent")})

        assert hidden == {code, String.replace(message, "sent", "send")}
        assert {-32_602, "unknown tool" <> _} = hidden
      end

      call = %{"name" => "post.send", "arguments" => %{"to" => "eve"}}
      assert result!(context(book, as: "staff"), "tools/call", call)["isError"] == false
    end

    test "can be chosen by globs, and others are unknown", %{book: book} do
      context = context(book, options: [tools: [names: ["numbers.*"]]])
      tools = result!(context, "tools/list")["tools"]
      assert Enum.map(tools, & &1["name"]) == ~w(get_skill numbers__add numbers__fail)
      call = %{"name" => "numbers__add", "arguments" => %{"a" => 1}}
      assert result!(context, "tools/call", call)["isError"] == false

      for name <- ["tea", "reports__weekly", "run_command"] do
        assert {-32_602, "unknown tool \"" <> _} =
                 error!(context, "tools/call", %{"name" => name})
      end

      # The prompt of a workflow asks for a call of its tool.
      prompts = result!(context, "prompts/list")["prompts"]
      assert Enum.map(prompts, & &1["name"]) == ~w(reports__weekly slash tea)
      sum = %{"name" => "reports__sum", "arguments" => %{"to" => "ann"}}
      assert {-32_602, "unknown prompt" <> _} = error!(context, "prompts/get", sum)

      context = context(book, options: [tools: [run_command: true]])
      assert "run_command" in Enum.map(result!(context, "tools/list")["tools"], & &1["name"])
      call = %{"name" => "run_command", "arguments" => %{"command" => "numbers.add --a 2"}}
      assert %{"content" => [%{"text" => "The sum is 3."}]} = result!(context, "tools/call", call)
    end

    test "report their progress to a client that asks for it", %{book: book} do
      test = self()
      progress = fn done, total, text -> send(test, {:progress, done, total, text}) end
      call = %{"name" => "numbers__add", "arguments" => %{"a" => 1}}
      result!(context(book, progress: progress), "tools/call", call)
      assert_receive {:progress, 1, 2, "adding"}

      result!(context(book, progress: progress), "tools/call", %{
        "name" => "reports__sum",
        "arguments" => %{"to" => "ann"}
      })

      assert_receive {:progress, 1, 1, "numbers.add --a 1 --b 2"}
    end
  end

  test "no method of any revision tells a hidden entry from a missing one", %{book: book} do
    {hidden, missing} = {"post.send", "post.sent"}
    shapes = [& &1, &String.replace(&1, ".", "__"), &"skill://#{&1}/SKILL.md", &"skill://#{&1}"]

    for revision <- Protocol.revisions(),
        {method, revisions} <- Server.methods(),
        revision in revisions,
        shape <- shapes do
      [of_hidden, of_missing] =
        for name <- [hidden, missing] do
          named = shape.(name)

          params = %{
            "name" => named,
            "uri" => named,
            "arguments" => %{},
            "ref" => %{"type" => "ref/prompt", "name" => named, "uri" => named},
            "argument" => %{"name" => "to", "value" => ""}
          }

          {:reply, answer} = ask(context(book, revision: revision), method, params)

          # The name itself comes back in errors.
          answer |> inspect(limit: :infinity) |> String.replace(named, "NAME")
        end

      assert of_hidden == of_missing, "#{method} of #{revision}"
      # The visible ones are there.
      if method == "tools/list", do: assert(of_hidden =~ "numbers__add")
    end
  end

  describe "data and media of results" do
    defp declared(folder, name, output, run) do
      page = """
      ---
      name: #{name}
      description: Returns data
      flags: {}
      effects: read
      output: #{output}
      handler: Skillbook.Test.EchoHandler
      ---
      """

      write(folder, %{"#{String.replace(name, ".", "/")}.md" => page})
      view = Skillbook.SkillsCase.view(folder)
      # The handler of the test takes the place of the page's.
      view = %{view | functions: %{"Skillbook.Test.EchoHandler" => run}}
      %Context{view: view, profile: view.profile, revision: @stateless}
    end

    @shape "{type: object, properties: {total: {type: integer}}, required: [total]}"

    test "data is in the result if its page declares it", %{tmp_dir: folder} do
      run = fn _flags, _context -> {:ok, Result.ok("Two.", data: %{total: 2})} end
      context = declared(folder, "sums.get", @shape, run)

      for revision <- Protocol.revisions() do
        context = %{context | revision: revision}
        tools = result!(context, "tools/list")["tools"]
        tool = Enum.find(tools, &(&1["name"] == "sums__get"))
        assert tool["outputSchema"]["required"] == ["total"]
        result = result!(context, "tools/call", %{"name" => "sums__get"})
        assert result["structuredContent"] == %{"total" => 2}
        assert [%{"text" => "Two."}] = result["content"]
      end
    end

    test "a module declares its data too" do
      schema = %{"type" => "object", "properties" => %{"total" => %{"type" => "integer"}}}
      run = fn _flags, _context -> {:ok, Result.ok("Two.", data: %{total: 2})} end
      options = [name: "sums.get", description: "Adds up", flags: [], run: run]
      skill = Skill.new!(options ++ [output: schema])
      {:ok, catalog} = Skillbook.Catalog.load([skill])
      view = Skillbook.View.all(catalog)
      context = %Context{view: view, profile: view.profile, revision: @stateless}
      assert [_get_skill, %{"outputSchema" => ^schema}] = result!(context, "tools/list")["tools"]
      result = result!(context, "tools/call", %{"name" => "sums__get"})
      assert result["structuredContent"] == %{"total" => 2}

      for wrong <- [%{}, %{"type" => "array"}, "object", [type: "object"]] do
        assert {:error, %{option: :output}} = Skill.new(options ++ [output: wrong])
      end
    end

    test "data that does not fit is an error of the author", %{tmp_dir: folder} do
      text =
        "`sums.get` ran, but its data is not as its page declares as `output`. Tell the user " <>
          "that its author has to correct it."

      long = %{total: String.duplicate("x", 1_100_000)}

      for data <- [nil, %{}, %{total: "2"}, [1], "2", long] do
        run = fn _flags, _context -> {:ok, Result.ok("Two.", data: data)} end
        context = declared(folder, "sums.get", @shape, run)

        log =
          ExUnit.CaptureLog.capture_log(fn ->
            result = result!(context, "tools/call", %{"name" => "sums__get"})
            assert %{"isError" => true, "content" => [%{"text" => ^text}]} = result
            refute Map.has_key?(result, "structuredContent")
          end)

        assert log =~ "skill sums.get: its data is not as its page declares"
      end
    end

    test "errors have no data, and a shape that cannot be checked is none", %{tmp_dir: folder} do
      fails = fn _flags, _context -> {:error, "no numbers"} end

      result =
        folder
        |> declared("sums.get", @shape, fails)
        |> result!("tools/call", %{"name" => "sums.get"})

      assert %{"isError" => true, "content" => [%{"text" => "no numbers"}]} = result

      run = fn _flags, _context -> {:ok, Result.ok("Two.", data: %{total: 2})} end

      for output <- ["{type: array}", "{type: object, oneOf: []}", "text", "{type: 1}", "[]"] do
        context = declared(folder, "sums.get", output, run)

        ExUnit.CaptureLog.capture_log(fn ->
          tools = result!(context, "tools/list")["tools"]
          refute Map.has_key?(Enum.find(tools, &(&1["name"] == "sums__get")), "outputSchema")
          result = result!(context, "tools/call", %{"name" => "sums.get"})
          refute Map.has_key?(result, "structuredContent")
          assert result["isError"] == false
        end)
      end
    end

    test "images, sounds and files are beside the text", %{tmp_dir: folder} do
      call = fn media ->
        run = fn _flags, _context -> {:ok, Result.ok("Here.", metadata: %{media: media})} end
        context = declared(folder, "sums.get", "none", run)

        result!(context, "tools/call", %{"name" => "sums.get"})["content"]
      end

      # {the medium, its content}
      for {medium, content} <- [
            {%{type: "image/png", data: <<0, 255>>},
             %{"type" => "image", "mimeType" => "image/png", "data" => "AP8="}},
            {%{type: "audio/wav", data: "x"},
             %{"type" => "audio", "mimeType" => "audio/wav", "data" => "eA=="}},
            {%{uri: "a:b", type: "text/csv", data: "1,2"},
             %{
               "type" => "resource",
               "resource" => %{"uri" => "a:b", "mimeType" => "text/csv", "text" => "1,2"}
             }},
            {%{uri: "a:b", type: "text/csv", data: <<255>>},
             %{
               "type" => "resource",
               "resource" => %{
                 "uri" => "a:b",
                 "mimeType" => "application/octet-stream",
                 "blob" => "/w=="
               }
             }},
            {%{uri: "a:b", type: "image/png", data: "x"},
             %{
               "type" => "resource",
               "resource" => %{"uri" => "a:b", "mimeType" => "image/png", "blob" => "eA=="}
             }}
          ] do
        ExUnit.CaptureLog.capture_log(fn ->
          assert [_text, ^content] = medium |> List.wrap() |> call.() |> with_text()
        end)
      end

      for wrong <- [
            %{type: "image/png", data: "x"},
            [%{type: "image/png"}],
            [%{type: "text/plain", data: "x"}],
            [%{type: "image/\r\nx", data: "x"}],
            [%{type: "image/png", data: 1}],
            [%{uri: "", type: "image/png", data: "x"}],
            [%{type: "image/png", data: "x"} | :improper],
            [%{type: "image/png", data: String.duplicate("x", 9_000_000)}],
            :none
          ] do
        log = ExUnit.CaptureLog.capture_log(fn -> assert [_text] = call.(wrong) end)
        assert log =~ "they are left out"
      end
    end

    defp with_text([_text | _] = content), do: content
  end

  describe "prompts" do
    test "are the pages that people call", %{book: book} do
      prompts = result!(context(book), "prompts/list")["prompts"]

      assert Enum.map(prompts, & &1["name"]) == ~w(reports__sum reports__weekly slash tea)
      weekly = Enum.find(prompts, &(&1["name"] == "reports__weekly"))
      assert weekly["title"] == "Weekly report"
      assert weekly["description"] == "Writes the weekly report"

      assert [%{"name" => "kind", "required" => true}, %{"name" => "day"}, %{"name" => "draft"}] =
               weekly["arguments"]

      staff = result!(context(book, as: "staff"), "prompts/list")["prompts"]
      assert "post__send" in Enum.map(staff, & &1["name"])
    end

    test "are filled in with their arguments", %{book: book} do
      get = fn name, arguments ->
        result =
          result!(context(book), "prompts/get", %{"name" => name, "arguments" => arguments})

        assert [%{"role" => "user", "content" => content}] = result["messages"]
        assert %{"type" => "text", "text" => text} = content
        text
      end

      assert get.("reports__weekly", %{"kind" => "short"}) == "Write the short report."

      assert get.("reports.weekly", %{"kind" => "long", "day" => "2026-03-01", "draft" => ""}) ==
               "Write the long report.\n\nUse the numbers of 2026-03-01."

      assert get.("tea", %{}) == "Boil water."

      # A workflow does not run here.
      assert get.("reports__sum", %{"to" => "ann"}) ==
               ~s(Call the tool reports__sum with the arguments {"to":"ann"}, and go on with ) <>
                 "its result."
    end

    test "that do not exist, or lack arguments, are errors", %{book: book} do
      unknown = &{-32_602, "unknown prompt #{inspect(&1)}"}

      for {params, error} <- [
            {%{}, {-32_602, "expected the name of a prompt as `name`"}},
            {%{"name" => "nothing"}, unknown.("nothing")},
            {%{"name" => "post__send"}, unknown.("post__send")},
            {%{"name" => "hidden"}, unknown.("hidden")},
            {%{"name" => "numbers__add"}, unknown.("numbers__add")},
            {%{"name" => "get_skill"}, unknown.("get_skill")},
            {%{"name" => "tea", "arguments" => []},
             {-32_602, "expected an object as `arguments`"}},
            {%{"name" => "tea", "arguments" => %{"a" => 1}},
             {-32_602, "expected texts as the values of `arguments`"}},
            {%{"name" => "reports__sum"}, {-32_602, "expected the argument \"to\""}},
            {%{"name" => "reports__sum", "arguments" => %{"to" => "a", "x" => "b"}},
             {-32_602, "unknown argument \"x\""}},
            {%{"name" => "reports__weekly"},
             {-32_602, "\"kind\" is required and missing. Add it as: \"kind\": \"VALUE\""}}
          ] do
        assert error!(context(book), "prompts/get", params) == error
      end
    end
  end

  describe "completion" do
    test "knows the values of flags", %{book: book} do
      complete = fn prompt, name, value ->
        params = %{
          "ref" => %{"type" => "ref/prompt", "name" => prompt},
          "argument" => %{"name" => name, "value" => value}
        }

        result!(context(book), "completion/complete", params)["completion"]
      end

      for {name, value, values} <- [
            {"kind", "", ~w(short long longer)},
            {"kind", "lo", ~w(long longer)},
            {"kind", "LO", ~w(long longer)},
            {"kind", "o", ~w(short long longer)},
            {"kind", "x", []},
            {"day", "y", ~w(yesterday today)},
            {"draft", "t", ~w(true)}
          ] do
        expected = %{"values" => values, "total" => length(values), "hasMore" => false}
        assert complete.("reports__weekly", name, value) == expected
      end
    end

    test "refuses what it does not know", %{book: book} do
      argument = %{"name" => "kind", "value" => ""}
      prompt = &%{"type" => "ref/prompt", "name" => &1}

      for {ref, argument, message} <- [
            {prompt.("nothing"), argument, "unknown prompt \"nothing\""},
            {prompt.("post__send"), argument, "unknown prompt \"post__send\""},
            {prompt.("reports__weekly"), %{argument | "name" => "x"}, "unknown argument \"x\""},
            {nil, argument, "expected a `ref` of the type ref/prompt or ref/resource"},
            {%{"type" => "x"}, argument,
             "expected a `ref` of the type ref/prompt or ref/resource"},
            {%{"type" => "ref/resource", "uri" => "x:{y}"}, argument,
             "unknown resource template \"x:{y}\""},
            {prompt.("tea"), %{},
             "expected an `argument` with a `name` and a `value`, a text of at most 1000 bytes"}
          ] do
        params = %{"ref" => ref, "argument" => argument}
        assert error!(context(book), "completion/complete", params) == {-32_602, message}
      end
    end
  end
end
