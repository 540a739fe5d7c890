defmodule Skillbook.Agent.HandOverTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Agent.Runs
  alias Skillbook.{Agent, Conversation, HandOverError, Model, OptionError, ProfileError}
  alias Skillbook.{Result, Transcript}

  doctest Skillbook.HandOverError

  @moduletag :tmp_dir

  defmodule Desk do
    @moduledoc false
    @behaviour Skillbook.Handler

    @impl true
    def execute(%{"to" => profile}, context),
      do: Skillbook.Agent.hand_over(context, profile, "Sorted.")

    # A handler that says it without having asked.
    def execute(%{"forge" => profile}, _context) do
      {:ok, Result.ok("Done.", metadata: %{hand_over: %{to: profile, reason: ""}})}
    end

    def execute(_flags, context) do
      %{id: id, tenant: tenant, others: others} = context.profile
      {:ok, inspect({id, tenant, others})}
    end
  end

  defp files do
    handler = [handler: inspect(Desk)]

    %{
      "desk/sort.md" => page("desk.sort", handler),
      "desk/who.md" => page("desk.who", handler),
      "billing/refund.md" => page("billing.refund", handler ++ [effects: "write"]),
      "billing/audit.md" => page("billing.audit", handler ++ [visibility_labels: "[auditors]"]),
      "support/reset.md" => page("support.reset", handler),
      "inner.md" =>
        "---\nname: inner\ndescription: Inner\nvisibility_labels: [billing]\n---\nInner text.",
      "tone.md" =>
        "---\nname: tone\ndescription: Tone of billing\ninclude_in_prompt: false\n" <>
          "proactive_for_profile_ids: [billing]\n---\nBe exact.",
      "not-for.md" =>
        "---\nname: not-for\ndescription: Not for it\n" <>
          "exclude_from_prompt_profile_ids: [billing]\n---\nText.",
      "desk/steps.md" =>
        page("desk.steps", [], """
        # desk.steps

        ## Behavior

        ```cmd
        agent.hand_over billing
        ```
        """)
    }
  end

  @profiles [
    [id: "ann", grants: ["billing"]],
    [id: "guest"],
    [id: "front", skills: ["agent.*", "desk.*"], description: "Sorts\nrequests"],
    [
      id: "billing",
      grants: ["billing", "auditors"],
      skills: ["billing.*", "agent.hand_over", "inner", "tone", "not-for"],
      description: "Invoices and refunds"
    ],
    [id: "support", skills: ["support.*", "agent.hand_over"], writes: :deny],
    [id: "north", tenant: "north"],
    [id: "south", tenant: "south"],
    [id: "operator", tenant: :all],
    [id: "labelled", grants: ["auditors"], labels: ["auditors"]]
  ]

  defp start(folder, options \\ []) do
    write(Path.join(folder, "skills"), files())
    agent = [hand_over: ["front", "billing", "support", "gone"]]
    {more, options} = Keyword.pop(options, :agent, [])

    options = Keyword.put_new(options, :profiles, @profiles)
    agent = [model: model([])] ++ Keyword.merge(agent, more)
    book([sources: [Path.join(folder, "skills")], watch: false, agent: agent] ++ options)
  end

  defp cmd(line), do: "```cmd\n#{line}\n```"

  # A model that gives these replies in order, and tells the test what it was asked.
  defp model(replies) do
    test = self()
    at = :counters.new(1, [])

    Model.Function.new(fn messages, options ->
      send(test, {:asked, messages, options})
      :counters.add(at, 1, 1)
      Enum.at(replies, :counters.get(at, 1) - 1) || raise "asked once too often"
    end)
  end

  defp run(book, replies, options \\ []) do
    test = self()
    on_event = &send(test, {:event, &1})
    defaults = [model: model(replies), profile: "ann", on_event: on_event]
    {:ok, result} = Agent.run(book, "Hello.", Keyword.merge(defaults, options))
    result
  end

  defp asked do
    receive do
      {:asked, messages, _options} -> [messages | asked()]
    after
      0 -> []
    end
  end

  defp handed_over do
    receive do
      {:event, {:handed_over, details}} -> [details | handed_over()]
      {:event, _other} -> handed_over()
    after
      0 -> []
    end
  end

  defp system(messages), do: hd(messages).content
  defp report(result, at), do: for(%{kind: :report} = m <- messages(result), do: m) |> Enum.at(at)
  defp messages(result), do: result.transcript.messages

  describe "a hand-over" do
    test "gives the next turn the other profile's prompt, view and tools", %{tmp_dir: folder} do
      book = start(folder)
      line = "agent.hand_over billing \"Asks for a refund\""
      replies = [cmd(line), cmd("billing.refund\ndesk.who"), "Refunded."]
      result = run(book, replies, leader: "front")

      assert {result.status, result.text, result.leader} == {:done, "Refunded.", "billing"}
      assert [front, billing, billing] = Enum.map(asked(), &system/1)
      assert front =~ "desk.who"
      refute front =~ "billing.refund"

      assert front =~ """
             ## Profiles

             If the request belongs to one of these, hand the conversation over with \
             `agent.hand_over PROFILE REASON`:

             - billing: Invoices and refunds
             - support\
             """

      assert billing =~ "billing.refund"
      assert billing =~ "- front: Sorts requests\n- support"
      # Of the profile that leads: what is proactive for it, and what excludes it.
      assert billing =~ "tone: Tone of billing"
      refute billing =~ "not-for"
      refute billing =~ "desk.who"

      assert report(result, 0).content == """
             [1] #{line}
             ok
               billing leads the conversation from your next reply on. Answer the user in its \
             place, with its skills.\
             """

      assert report(result, 1).content =~
               "[1] billing.refund\nok\n  {\"ann\", nil, [\"billing\"]}"

      assert report(result, 1).content =~ "[2] desk.who\nerror\n  unknown skill \"desk.who\"."
      assert [%{from: "front", to: "billing", reason: "Asks for a refund"}] == handed_over()
    end

    test "works by tools, and by a handler", %{tmp_dir: folder} do
      book = start(folder)
      call = %{name: "agent__hand_over", arguments: %{profile: "support"}}
      replies = [%{tool_calls: [call]}, "Hi."]
      test = self()
      at = :counters.new(1, [])

      tools =
        Model.Function.new(fn messages, options ->
          names = Enum.map(options[:tools], & &1.name)
          send(test, {:tools, system(messages), names})
          :counters.add(at, 1, 1)
          Enum.at(replies, :counters.get(at, 1) - 1)
        end)

      result = run(book, [], model: tools, protocol: :tools, leader: "front")
      assert {result.leader, result.text} == {"support", "Hi."}
      assert_received {:tools, prompt, first}
      assert prompt =~ "hand the conversation over with `agent__hand_over`:"
      assert_received {:tools, _prompt, second}
      assert "desk__who" in first and "desk__who" not in second
      assert "support__reset" in second and "support__reset" not in first

      result = run(book, [cmd("desk.sort --to billing"), "Hi."], leader: "front")
      assert result.leader == "billing"
      assert %{from: "front", to: "billing", reason: "Sorted."} in handed_over()
    end

    test "stays for the next runs, also through JSON", %{tmp_dir: folder} do
      book = start(folder)
      first = run(book, [cmd("agent.hand_over billing"), "Hi."])
      assert first.transcript.leader == "billing"
      {:ok, stored} = first.transcript |> Transcript.to_json() |> Transcript.from_json()
      assert stored.leader == "billing"
      asked()

      for transcript <- [first.transcript, stored] do
        second = run(book, ["Again."], transcript: transcript)
        assert second.leader == "billing"
        assert [[%{content: prompt} | _]] = asked()
        assert prompt =~ "billing.refund"
        refute prompt =~ "desk.who"
      end

      # The application no longer names it, and names another one to begin with.
      for {options, leader} <- [{[], "ann"}, {[leader: "front"], "front"}] do
        options = [transcript: stored, hand_over: ["support"]] ++ options
        assert run(book, ["Hi."], options).leader == leader
      end

      # A conversation without one has no such field.
      refute Transcript.to_json(Transcript.new("ann")) =~ "leader"
    end

    test "back to the profile of the run gives its rights back", %{tmp_dir: folder} do
      book = start(folder, agent: [hand_over: ["ann", "support"]])

      replies = [
        cmd("agent.hand_over support"),
        cmd("agent.hand_over ann"),
        cmd("desk.who"),
        "Done."
      ]

      result = run(book, replies)
      assert {result.leader, result.transcript.leader} == {"ann", nil}
      assert report(result, 2).content =~ "{\"ann\", nil, []}"
    end

    test "the last of a reply counts, and what comes after it runs as before", context do
      book = start(context.tmp_dir)
      lines = "agent.hand_over support\nagent.hand_over billing\ndesk.who"
      result = run(book, [cmd(lines), "Hi."])
      assert result.leader == "billing"
      assert [%{from: "ann", to: "billing"}] = handed_over()
      assert report(result, 0).content =~ "[3] desk.who\nok\n  {\"ann\", nil, []}"
    end

    test "is bounded in a run", %{tmp_dir: folder} do
      book = start(folder)

      replies =
        for number <- 1..6 do
          to = if rem(number, 2) == 1, do: "billing", else: "support"
          cmd("agent.hand_over #{to} #{number}")
        end

      result = run(book, replies ++ ["I stay."])
      assert {result.leader, length(handed_over())} == {"billing", 5}

      assert report(result, 5).content =~
               "the conversation was not handed over: that was done 5 times already. Answer " <>
                 "the user yourself, or say what you cannot do"
    end

    test "shares the budget of the run", %{tmp_dir: folder} do
      book = start(folder)
      result = run(book, [cmd("agent.hand_over billing"), "Hi."], max_turns: 1)
      assert {result.status, result.turns, result.leader} == {:max_turns, 1, "billing"}
    end
  end

  describe "access" do
    # The skills of a profile that leads, and of one that does not.
    test "a turn has the rights that both profiles have", %{tmp_dir: folder} do
      book = start(folder, agent: [hand_over: ["billing", "support", "operator", "labelled"]])
      names = ~w(desk.who billing.refund billing.audit support.reset inner)

      for {profile, leader, seen, writes} <- [
            {"ann", nil, ~w(desk.who billing.refund support.reset inner), :run},
            {"ann", "billing", ~w(billing.refund inner), :run},
            {"ann", "support", ~w(support.reset), :deny},
            {"ann", "operator", ~w(desk.who billing.refund support.reset), :run},
            {"guest", "billing", ~w(billing.refund), :run},
            {"guest", "operator", ~w(desk.who billing.refund support.reset), :run},
            {"front", "billing", [], :run},
            {"north", "billing", ~w(billing.refund), :run},
            {"operator", "billing", ~w(billing.refund), :run}
          ] do
        test = self()
        on_event = fn event -> send(test, {:event, event}) end
        options = [profile: profile, leader: leader, on_event: on_event]
        options = Keyword.reject(options, fn {_key, value} -> value == nil end)
        view = run(book, ["Hi."], options).transcript.view
        shown = for name <- names, match?({:ok, _}, Skillbook.View.fetch(view, name)), do: name
        assert {profile, leader, shown} == {profile, leader, seen}
        assert view.profile.writes == writes
        # The conversation stays with the profile of the run.
        assert view.profile.id == profile
        assert view.profile.tenant == Skillbook.view(book, profile).profile.tenant
      end
    end

    test "a profile of another tenant cannot lead, and says nothing of it", %{tmp_dir: folder} do
      book = start(folder, agent: [hand_over: ["north", "labelled"]])
      text = "cannot lead it. Answer the user yourself, or say what you cannot do"

      for {profile, to, allowed?} <- [
            {"north", "north", :leads},
            {"south", "north", false},
            {"ann", "north", false},
            {"operator", "north", true},
            # It would write what the profile of the run cannot see.
            {"ann", "labelled", false}
          ] do
        result = run(book, [cmd("agent.hand_over #{to}"), "Hi."], profile: profile)
        content = report(result, 0).content

        case allowed? do
          true -> assert result.leader == to
          false -> assert content =~ "the conversation was not handed over: #{to} #{text}"
          :leads -> assert content =~ "north leads the conversation already"
        end

        if allowed? != true, do: assert(result.leader == profile)
      end

      error = catch_error(run(book, ["Hi."], profile: "south", leader: "north"))
      assert %ProfileError{kind: :leader, reason: %OptionError{option: :tenant}} = error

      assert Exception.message(error) ==
               "the profile \"north\" of the book #{inspect(book)} cannot lead this " <>
                 "conversation: expected nil or the tenant of the conversation, \"south\", as " <>
                 "the option :tenant of a profile that leads, got: \"north\""
    end

    test "the model loses the texts that the other profile may not read", %{tmp_dir: folder} do
      book = start(folder, sections: [{"Rights", fn %{profile: p} -> inspect(p.others) end}])

      replies = [
        cmd("get_skill: inner\nget_skill: desk.who"),
        cmd("agent.hand_over support"),
        "Hi."
      ]

      run(book, replies)

      assert [_first, second, third] =
               Enum.map(asked(), &Enum.map_join(&1, "\n", fn m -> m.content end))

      assert second =~ "Inner text." and second =~ "The page of desk.who"
      refute third =~ "Inner text." or third =~ "The page of desk.who"
      assert second =~ "[]" and third =~ "[\"support\"]"
      refute third =~ "Rights\n  []"
    end

    test "errors name only what the application allows", %{tmp_dir: folder} do
      book = start(folder)
      not_over = "the conversation was not handed over: "
      one_of = not_over <> "expected one of the profiles front, billing, support, gone, got: "

      for {options, line, text} <- [
            {[], "agent.hand_over guest", one_of <> "\"guest\""},
            {[], "agent.hand_over nobody", one_of <> "\"nobody\""},
            {[], "agent.hand_over gone", not_over <> "gone cannot lead it."},
            {[leader: "billing"], "agent.hand_over billing", "billing leads the conversation"},
            {[hand_over: []], "agent.hand_over billing", not_over <> "this run may not do it."},
            {[], "desk.steps", not_over <> "a step of a workflow cannot do it."},
            {[], "desk.sort --to guest", one_of <> "\"guest\""}
          ] do
        result = run(book, [cmd(line), "Hi."], options)
        assert report(result, 0).content =~ text
        assert result.leader == (options[:leader] || "ann")
      end

      # Metadata alone gives no rights.
      for {to, leader} <- [{"guest", "ann"}, {"billing", "billing"}],
          do: assert(run(book, [cmd("desk.who --forge #{to}"), "Hi."]).leader == leader)

      assert handed_over() |> Enum.map(& &1.to) == ["billing"]

      [result] = Skillbook.run(Skillbook.view(book, "ann"), cmd("agent.hand_over front")).results
      assert %HandOverError{kind: :no_run} = result.error
    end

    test "agents that a run dispatches cannot hand over", %{tmp_dir: folder} do
      book = start(folder)
      dispatch = "agent.dispatch --mission Do. --skills agent.hand_over desk.who"
      replies = [cmd(dispatch), cmd("agent.hand_over billing"), "Done.", "Hi."]
      result = run(book, replies)
      assert result.leader == "ann"
      assert report(result, 0).content =~ "agent.hand_over billing: error: the conversation was"
    end

    test "a book that allows none has no such command", %{tmp_dir: folder} do
      write(folder, files())

      for {hand_over, there?} <- [{["billing"], true}, {[], false}] do
        agent = [model: model([]), hand_over: hand_over]
        book = book(sources: [folder], watch: false, profiles: @profiles, agent: agent)
        view = Skillbook.view(book, "ann")
        assert match?({:ok, _}, Skillbook.View.fetch(view, "agent.hand_over")) == there?
        assert Skillbook.prompt(view) =~ "agent.dispatch"
      end
    end
  end

  test "a conversation goes on with the profile that leads", %{tmp_dir: folder} do
    book = start(folder)
    model = model([cmd("agent.hand_over billing Refund"), "Hi.", "Again."])
    options = [book: book, id: "c-1", profile: "ann", run: [model: model, leader: "front"]]
    pid = start_supervised!({Conversation, options})
    :ok = Conversation.subscribe(pid)
    assert Conversation.info(pid).leader == "front"
    {:ok, result} = Conversation.ask(pid, "One")
    assert result.leader == "billing"
    details = %{from: "front", to: "billing", reason: "Refund"}
    assert_receive {:skillbook_conversation, "c-1", {:event, _turn, {:handed_over, ^details}}}
    assert Conversation.info(pid).leader == "billing"
    {:ok, result} = Conversation.ask(pid, "Two")
    assert {result.leader, result.text} == {"billing", "Again."}
  end

  test "a call that waits goes on with the profile that leads", %{tmp_dir: folder} do
    ask = fn %{entry: %{name: name}} ->
      if name == "billing.refund", do: :pending, else: :allow
    end

    profiles = [[id: "ann", grants: ["billing"], writes: :ask] | tl(@profiles)]
    book = start(folder, store: ":memory:", ask: ask, profiles: profiles)

    replies = [cmd("agent.hand_over billing"), cmd("billing.refund"), "It waits."]
    result = run(book, replies)
    assert {result.status, result.leader} == {:pending, "billing"}
    [%{ref: ref}] = result.pending
    asked()

    {:ok, approved} =
      Skillbook.approve(book, ref, by: "Bob", resume: [model: model(["Refunded."])])

    assert approved.result.content == "{\"ann\", nil, [\"billing\"]}"
    assert {approved.run.text, approved.run.leader} == {"Refunded.", "billing"}
    assert [[%{content: prompt} | _]] = asked()
    assert prompt =~ "billing.refund"
    refute prompt =~ "desk.who"
  end

  describe "a durable run" do
    # The journal has the result, and the conversation is still that of before.
    for {point, at} <- [{"after the result", :result}, {"after the hand-over", :handed_over}] do
      test "keeps the leader if it ends #{point}", %{tmp_dir: folder} do
        store = Path.join(folder, "book.db")
        book = start(folder, store: store, durable: [continue: false])
        test = self()

        on_event = fn event ->
          if elem(event, 0) == unquote(at), do: Process.exit(self(), :kill)
        end

        model = model([cmd("agent.hand_over billing Refund")])
        options = [model: model, profile: "ann", leader: "front", on_event: on_event]
        pid = spawn(fn -> Agent.run(book, "Hello.", options) end)
        monitor = monitor(pid)
        assert_receive {:DOWN, ^monitor, :process, _pid, _killed}
        [%{ref: ref}] = eventually(fn -> interrupted(book) != [] end) && interrupted(book)
        asked()
        options = [model: model(["Refunded."]), on_event: &send(test, {:event, &1})]
        {:ok, result} = Runs.continue(book, ref, options)
        assert {result.text, result.leader} == {"Refunded.", "billing"}
        assert [%{from: "front", to: "billing", reason: "Refund"}] = handed_over()
        assert [[%{content: prompt} | _]] = asked()
        assert prompt =~ "billing.refund"
      end
    end

    defp interrupted(book) do
      {:ok, runs} = Runs.list(book)
      for %{status: :interrupted} = run <- runs, do: run
    end
  end
end
