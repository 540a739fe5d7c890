defmodule Skillbook.Run.PolicyTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.Reply.Pipeline

  alias Skillbook.{
    Catalog,
    Entry,
    Executor,
    Explanation,
    PolicyError,
    Prompt,
    Request,
    Router,
    Tools,
    View
  }

  @moduletag :tmp_dir

  doctest Skillbook.Entry
  doctest Skillbook.PolicyError
  doctest Skillbook.Request

  defp pages do
    %{
      "x/send.md" => page("x.send", handler("Text")),
      "x/list.md" => page("x.list", handler("Text")),
      "x/list_all.md" => page("x.list_all", handler("Text")),
      "x/tidy.md" => page("x.tidy", [effects: "write"], "Tidy up.\n"),
      "x/plain.md" => page("x.plain", [], "Look at it.\n")
    }
  end

  defp view(folder, profile) do
    {:ok, catalog} = Catalog.load([folder])
    {:ok, view} = View.new(catalog, [id: "ann"] ++ profile)
    view
  end

  defp run(view, line, options \\ []) do
    [result] = Pipeline.commands(view, [line], options)
    result
  end

  test "the duration of a result leaves out the time of a person's answer", context do
    pages = %{
      "x/send.md" => page("x.send", handler("Text")),
      "x/both.md" => page("x.both", [], "## Behavior\n\n```cmd\nx.send\nx.send\n```\n")
    }

    view = context.tmp_dir |> write(pages) |> view(writes: :ask)

    slowly = fn answer ->
      fn _request ->
        Process.sleep(1_500)
        answer
      end
    end

    for {line, status, answer} <- [
          {"x.send", :ok, :allow},
          {"x.send", :error, :deny},
          {"x.both", :ok, :allow}
        ] do
      result = run(view, line, ask: slowly.(answer))
      assert {line, result.status} == {line, status}
      assert result.duration < 1_400_000
    end
  end

  test "the frontmatter, the handler and the name decide", %{tmp_dir: folder} do
    handler = [handler: "Other.A"]

    rows = [
      {"a.send", [], :read},
      {"b.send", handler, :write},
      {"c.send", [effects: "read"] ++ handler, :read},
      {"d.search", [effects: "write"] ++ handler, :write},
      {"e.tidy", [effects: "write"], :write},
      {"f.research", handler, :write},
      {"g.search_all", handler, :write},
      {"search.h", handler, :write},
      {"i.y.list", handler, :read},
      {"search", handler, :read}
    ]

    actions = ~w(search get list read find show count)
    rows = rows ++ for action <- actions, do: {"x.#{action}", handler, :read}

    write(
      folder,
      for({name, fields, _} <- rows, into: %{}, do: {name <> ".md", page(name, fields)})
    )

    view = view(folder)

    for {name, _fields, effect} <- rows,
        do: assert({name, Entry.effect(View.fetch!(view, name))} == {name, effect})
  end

  test "decides by the profile's :writes", %{tmp_dir: folder} do
    write(folder, pages())
    allow = [ask: fn _ -> :allow end]
    refuse = [ask: fn _ -> :deny end]

    rows = [
      {[], [], :ok, :ok, :template},
      {[writes: :run], refuse, :ok, :ok, :template},
      {[writes: :deny], allow, :deny, :deny, :deny},
      {[writes: :delegate], allow, :delegate, :delegate, :delegate},
      {[writes: :ask], allow, :ok, :ok, :template},
      {[writes: :ask], refuse, :denied, :denied, :denied},
      {[writes: :ask, approved: ["x.send"]], refuse, :ok, :denied, :denied},
      {[writes: :ask, approved: ["x.s*", "x.tidy"]], refuse, :ok, :denied, :template},
      {[writes: :deny, approved: ["*"]], allow, :deny, :deny, :deny},
      {[writes: :delegate, approved: ["*"]], allow, :delegate, :delegate, :delegate}
    ]

    for {profile, options, sent, listed_all, tidied} <- rows do
      view = view(folder, profile)

      outcome = fn line ->
        result = run(view, line, options)
        if result.error, do: result.error.kind, else: result.status
      end

      assert {profile, outcome.("x.send"), outcome.("x.list_all"), outcome.("x.tidy")} ==
               {profile, sent, listed_all, tidied}

      # Reading is never asked about.
      assert {outcome.("x.list"), outcome.("x.plain"), outcome.("get_skill: x.tidy"),
              outcome.("x.send --help")} ==
               {:ok, :template, :help, :help}
    end
  end

  test "applies to calls of the executor too", %{tmp_dir: folder} do
    write(folder, pages())
    view = view(folder, writes: :deny)

    for {line, refused} <- [{"x.send", true}, {"x.tidy", true}, {"x.list", false}] do
      {:ok, routed} = Router.route(view, line)
      answer = Executor.execute(routed, Executor.context(view, routed))
      assert {line, match?({:error, %PolicyError{kind: :deny}}, answer)} == {line, refused}
    end
  end

  test "no spelling of a command bypasses it", %{tmp_dir: folder} do
    test = self()

    write(folder, %{
      "x/change.md" => page("x.change", handler("Call") ++ [aliases: "[x.list, alter, x.get]"]),
      "x/do.md" => page("x.do", handler("Call") ++ [effects: "read"]),
      "odd.md" => page("change it", handler("Call"))
    })

    names = ~w(x.change X.CHANGE X.Change x.list X.LIST alter x.get ｘ.change x.chang\u0435
           x/change x:change)

    behind = [
      "",
      " --a b",
      " {\"a\": \"b\"}",
      " {\"help\": false}",
      " --help=false",
      " <<E\na\nE",
      " # x.do"
    ]

    lines =
      for(name <- names, more <- behind, do: name <> more) ++
        [
          "\"x.change\"",
          "'x.list' --a",
          "\"change it\" --a",
          "get_skill: x.change\nx.change",
          "Command: x.change",
          "- x.change"
        ]

    tools = names ++ ["x__change", "x__list", Skillbook.Tools.Name.from("change it"), "change it"]

    calls =
      for tool <- tools, arguments <- [%{}, %{"a" => "b"}, %{"help" => false}] do
        json = Skillbook.Support.JSON.encode(arguments)

        [
          %{"function" => %{"name" => tool, "arguments" => json}},
          %{"type" => "function_call", "name" => tool, "arguments" => json},
          %{"type" => "tool_use", "name" => tool, "input" => arguments},
          %{"name" => tool, "arguments" => arguments}
        ]
      end
      |> List.flatten()

    call = fn _flags, context ->
      if context.entry.name == "x.do" do
        for view <- [context.view, %{context.view | profile: context.profile}],
            do: Pipeline.commands(view, ["x.change", "alter"], assigns: context.assigns)

        {:ok, routed} = Router.route(context.view, "x.change")
        # As written, with all that a handler has access to.
        Executor.execute(routed, %{context | entry: routed.entry})
        Executor.execute(routed, Executor.context(context.view, routed, assigns: context.assigns))
      else
        send(test, {:ran, context.command.raw})
      end

      {:ok, "done"}
    end

    options = [assigns: %{call: call}]

    attempts = fn view ->
      for line <- ["x.do" | lines], do: Pipeline.commands(view, [line], options)
      Skillbook.run(view, "```cmd\n#{Enum.join(lines, "\n")}\n```", options)
      for call <- calls, do: Skillbook.Tools.call(view, call, options)
    end

    capture_log(fn ->
      for writes <- [:deny, :delegate, :ask] do
        attempts.(view(folder, writes: writes))
        assert {writes, Process.info(self(), :messages)} == {writes, {:messages, []}}
      end

      # They are ways where writing is allowed.
      attempts.(view(folder, writes: :run))
      {:messages, ran} = Process.info(self(), :messages)
      assert length(ran) > 100
    end)
  end

  test "the error tells the model what to do instead", %{tmp_dir: folder} do
    write(folder, pages())
    deny = fn text -> [ask: fn _ -> {:deny, text} end] end

    rows = [
      {:deny, [],
       "`x.send` was not run: it changes something, and only commands that read may run here. " <>
         "Do not try again; tell the user what you would have done."},
      {:delegate, [],
       "`x.send` was not run: it changes something, and such commands must be delegated to an " <>
         "agent, but no agent is available. " <>
         "Tell the user what needs to be done."},
      {:ask, [ask: fn _ -> :deny end],
       "`x.send` was not run: it changes something, and the user declined. " <>
         "Do not try again unless the user asks for it."},
      {:ask, deny.("Not before Friday."),
       "`x.send` was not run: it changes something, and the user declined: Not before Friday."}
    ]

    for {writes, options, message} <- rows do
      assert run(view(folder, writes: writes), "x.send --to bob", options).content == message
    end
  end

  test "the error names agent.dispatch only if the profile sees it", %{tmp_dir: folder} do
    write(folder, Map.put(pages(), "agent/dispatch.md", page("agent.dispatch", handler("Text"))))
    assert run(view(folder, writes: :delegate), "agent.dispatch").status == :ok
    assert run(view(folder, writes: :deny), "agent.dispatch").error.kind == :deny

    assert run(view(folder, writes: :delegate), "x.send").content ==
             "`x.send` was not run: it changes something, and such commands must be delegated " <>
               "to an agent. " <>
               "Write: agent.dispatch --mission \"WHAT TO DO\" --skills x.send"

    hidden = view(folder, writes: :delegate, skills: ["x.*"])

    assert run(hidden, "x.send").error == %PolicyError{
             kind: :delegate,
             name: "x.send",
             dispatch: false
           }
  end

  describe "the model reads how to delegate" do
    @rule "- Only agents may run commands that change something. Write: " <>
            "`agent.dispatch --mission \"WHAT TO DO\" --skills NAME`.\n"
    @no_agent "- Commands that change something do not run here. Tell the user what needs to " <>
                "be done.\n"

    defp delegating(folder) do
      write(
        folder,
        Map.put(pages(), "agent/dispatch.md", page("agent.dispatch", handler("Text")))
      )

      {view(folder, writes: :run), view(folder, writes: :delegate)}
    end

    defp insert(prompt, run, rule) do
      rules = Prompt.text(run, sections: [:rules])

      if String.starts_with?(prompt, rules),
        do: String.replace_prefix(prompt, rules, rules <> rule)
    end

    test "in the rules of the prompt, and no other setting changes it", %{tmp_dir: folder} do
      {run, delegate} = delegating(folder)

      assert [_, end_of_prompt] = String.split(Prompt.text(delegate), "Do not invent any: ")

      assert end_of_prompt == """
             if nothing fits, say so.
             - Only agents may run commands that change something. Write: `agent.dispatch \
             --mission "WHAT TO DO" --skills NAME`.

             ## Domains

             `get_skill: NAME` lists a domain's commands, `get_skill: NAME.all` shows them in \
             full.

               agent  agent.dispatch
               x      x.list, x.list_all, x.plain, x.send, x.tidy
             """

      alone = view(folder, writes: :delegate, skills: ["x.*"])
      few = view(folder, writes: :run, skills: ["x.*"])

      formats =
        [[], [format: :default], [format: :xml], [format: :notes], [format: :list]] ++
          [[sections: [:rules]], [sections: [:commands, :rules]], [sections: [:commands]]] ++
          [[preloaded: ["x.tidy"]]]

      for options <- formats do
        plain = Prompt.text(run, options)

        for writes <- [:ask, :deny],
            do: assert(Prompt.text(view(folder, writes: writes), options) == plain)

        assert {options, Prompt.text(delegate, options)} ==
                 {options, insert(plain, run, @rule) || plain}

        plain = Prompt.text(few, options)

        assert {options, Prompt.text(alone, options)} ==
                 {options, insert(plain, few, @no_agent) || plain}
      end

      assert Prompt.text(view(folder, writes: :delegate, skills: ["y"])) == ""
    end

    test "within the limits of the prompt", %{tmp_dir: folder} do
      {run, delegate} = delegating(folder)
      size = String.length(@rule)

      for limit <- 0..(String.length(Prompt.text(delegate)) + 1) do
        text = Prompt.text(delegate, max_chars: limit)
        assert String.length(text) <= limit

        # The same as without the line and its length, unless only the line about omitted parts
        # fits.
        shorter = Prompt.text(run, max_chars: max(limit - size, 0))
        same = insert(shorter, run, @rule) || shorter
        assert text == same or (same == "" and text == Prompt.text(run, max_chars: limit))
        assert String.contains?(text, @rule) == String.contains?(text, "You act by writing")
      end

      for limit <- 0..700//7 do
        text = Prompt.text(delegate, max_tokens: limit)
        # Everything is ASCII.
        assert byte_size(text) <= 4 * limit
        assert String.contains?(text, @rule) == String.contains?(text, "You act by writing")
      end

      # An explanation counts the line too.
      {:ok, catalog} = Catalog.load([folder])
      whole = String.length(Prompt.text(delegate, sections: [:rules, :commands]))

      places =
        for limit <- (whole - size - 2)..whole do
          options = [max_chars: limit, sections: [:rules, :commands]]
          profile = [id: "ann", writes: :delegate]

          [%{prompt: place}] =
            Explanation.new(catalog, "x.tidy", [profile: profile] ++ options).files

          assert {limit, place =~ "left out"} ==
                   {limit, not (Prompt.text(delegate, options) =~ "x.tidy")}

          place
        end

      assert Enum.uniq(places) == [
               "left out of the section `commands` for lack of space",
               "in the section `commands`"
             ]
    end

    test "in the descriptions of tools, and in the error of a call", %{tmp_dir: folder} do
      long = String.duplicate("é", 2000)

      write(folder, %{
        "x/long.md" => "---\nname: x.long\ndescription: #{long}\neffects: write\n---\nText.\n"
      })

      {run, delegate} = delegating(folder)

      descriptions = fn view, options ->
        for %{"name" => name, "description" => text} <-
              Tools.definitions(view, [shape: :anthropic] ++ options),
            into: %{},
            do: {name, text}
      end

      arguments = &~s({"mission": "WHAT TO DO", "skills": ["#{&1}"]})
      rule = &" Only agents may run it. Call agent__dispatch with #{arguments.(&1)}."
      plain = descriptions.(run, [])
      told = descriptions.(delegate, [])

      for {tool, name} <- [
            {"x__send", "x.send"},
            {"x__list_all", "x.list_all"},
            {"x__tidy", "x.tidy"}
          ],
          do: assert(told[tool] == plain[tool] <> rule.(name))

      for tool <- ~w(get_skill agent__dispatch x__list x__plain),
          do: assert({tool, told[tool]} == {tool, plain[tool]})

      # A tool that is not offered is not named.
      for {options, profile} <- [{[names: ["x.*"]], []}, {[], [skills: ["x.*"]]}] do
        view = view(folder, [writes: :delegate] ++ profile)

        assert descriptions.(view, options)["x__send"] ==
                 "#{plain["x__send"]} It does not run here. Tell the user what needs to be done."
      end

      for writes <- [:ask, :deny],
          do: assert(descriptions.(view(folder, writes: writes), []) == plain)

      text = told["x__long"]
      assert String.length(text) == 1024
      assert String.ends_with?(text, "é…" <> rule.("x.long"))

      call = %{
        "type" => "tool_use",
        "id" => "1",
        "name" => "x__send",
        "input" => %{"to" => "bob"}
      }

      {result, _answer} = Tools.call(delegate, call)

      assert result.content ==
               "`x.send` was not run: it changes something, and such commands must be " <>
                 "delegated to an agent. Call agent__dispatch with " <> arguments.("x.send")
    end
  end

  describe "ask" do
    test "the callback gets the command", %{tmp_dir: folder} do
      write(folder, pages())
      test = self()

      ask = fn request ->
        send(test, request)
        :allow
      end

      view = view(folder, writes: :ask)
      assert run(view, "x.send --to bob", ask: ask, assigns: %{a: 1}).status == :ok

      assert_receive %Request{entry: %{name: "x.send"}, command: %{flags: %{"to" => "bob"}}} =
                       request

      assert {request.profile, request.context.view, request.context.assigns} ==
               {view.profile, view, %{a: 1}}
    end

    def deny(_request), do: {:deny, "by the module"}

    test "the callback of the run takes precedence over the book's", %{tmp_dir: folder} do
      write(folder, pages())

      book =
        book(sources: [folder], profiles: [[id: "ann", writes: :ask]], ask: {__MODULE__, :deny})

      view = Skillbook.view(book, "ann")
      assert %PolicyError{kind: :denied, text: "by the module"} = run(view, "x.send").error
      assert run(view, "x.send", ask: fn _ -> :allow end).status == :ok
    end

    test "invalid answers deny the command", %{tmp_dir: folder} do
      write(folder, pages())
      view = view(folder, writes: :ask)

      rows = [
        {nil, "expected the option :ask of the book or of the run, got none"},
        {fn _ -> raise "oops" end, "the :ask callback crashed: an exception was raised"},
        {fn _ -> throw(:allow) end, "the :ask callback crashed"},
        {fn _ -> exit(:normal) end, "the :ask callback crashed: normal"},
        {fn _ -> Process.exit(self(), :kill) end, "the :ask callback crashed: killed"},
        {fn _ -> true end,
         "expected :allow, :deny, {:deny, text}, :pending or {:pending, ref} of the :ask " <>
           "callback, got: true"},
        {fn _ -> {:deny, :no} end, "of the :ask callback, got: {:deny, :no}"},
        {fn _ -> {:deny, <<255>>} end, "of the :ask callback, got: {:deny, a text}"},
        {{Nowhere, :ask}, "the :ask callback crashed"}
      ]

      for {ask, line} <- rows do
        {result, log} = with_log(fn -> run(view, "x.send", if(ask, do: [ask: ask], else: [])) end)
        assert log =~ "skill x.send: " and log =~ line

        assert result.content ==
                 "`x.send` was not run: it changes something, and permission could not be " <>
                   "requested. " <>
                   "Tell the user what you would have done."
      end
    end

    test "an answer may take longer than the limit of a handler", %{tmp_dir: folder} do
      write(folder, pages())
      test = self()

      ask = fn _ ->
        Process.send_after(self(), :think, 60)
        receive(do: (:think -> send(test, :thought)))
        :deny
      end

      assert %PolicyError{kind: :denied} =
               run(view(folder, writes: :ask), "x.send", ask: ask, timeout: 1).error

      assert_receive :thought
    end

    test "the callback ends with the caller", %{tmp_dir: folder} do
      write(folder, pages())
      test = self()

      ask = fn _ ->
        send(test, {:asked, self()})
        Process.sleep(:infinity)
      end

      view = view(folder, writes: :ask)
      caller = spawn(fn -> run(view, "x.send", ask: ask) end)
      assert_receive {:asked, asked}, 60_000
      ref = monitor(asked)
      Process.exit(caller, :kill)
      assert_receive {:DOWN, ^ref, :process, ^asked, :killed}, 60_000
    end
  end
end
