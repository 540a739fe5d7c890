defmodule Skillbook.Approval.ConversationTest do
  # Runs of an agent that end because a call waits, and conversations that go on with its result.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Agent, ApprovalError, Book, Model, OptionError, Result, SQL, Transcript}

  @moduletag :tmp_dir

  defmodule Keep do
    def execute(_flags, context) do
      %{results: [%{status: :pending}]} =
        Skillbook.run(context.view, "```cmd\nx.send\n```", agent: context.agent)

      {:ok, "Kept."}
    end
  end

  defp pages do
    %{
      "x/send.md" => page("x.send", handler("Text")),
      "x/pay.md" => page("x.pay", handler("Text") ++ [approval: "required"]),
      "x/list.md" => page("x.list", handler("Text")),
      "x/twice.md" =>
        page("x.twice", [approval: "required"], "## Behavior\n\n```cmd\nx.pay\n```\n"),
      "x/keep.md" => page("x.keep", handler: inspect(__MODULE__.Keep), effects: "read"),
      "x/steps.md" => page("x.steps", [], "## Behavior\n\n```cmd\nx.pay\n```\n"),
      "x/long.md" =>
        page("x.long", [approval: "required"], String.duplicate("A long line. ", 20)),
      "x/read.md" => page("x.read", [approval: "required"], "Read this page aloud.\n")
    }
  end

  # What a model says to a user whose call waits.
  @waits "It waits."

  defp next_reply([reply | more]), do: {reply, more}
  defp next_reply([]), do: {@waits, []}

  # A model that answers from a list, then that a call waits, and tells the test what it was
  # asked.
  defp model(replies) do
    test = self()
    {:ok, left} = Elixir.Agent.start_link(fn -> replies end)

    Model.Function.new(fn messages, _options ->
      send(test, {:asked, Enum.map(messages, &{&1.role, &1.content})})
      Elixir.Agent.get_and_update(left, &next_reply/1)
    end)
  end

  defp cmd(lines), do: "On it.\n\n```cmd\n#{lines}\n```"

  setup context do
    write(context.tmp_dir, pages())

    name =
      book(
        sources: [context.tmp_dir],
        store: ":memory:",
        watch: false,
        profiles: [[id: "ann", writes: :ask], [id: "bob"], [id: "del", writes: :delegate]],
        ask: fn _request -> :pending end
      )

    %{book: name}
  end

  defp last_asked do
    receive do
      {:asked, messages} -> last_asked(messages)
    after
      0 -> flunk("the model was not asked")
    end
  end

  defp last_asked(last) do
    receive do
      {:asked, messages} -> last_asked(messages)
    after
      0 -> last
    end
  end

  test "a run ends with what waits, of which the model tells the user", %{book: book} do
    model = model([cmd("x.list\nx.send --to a\nx.list"), "It waits until Bob agrees."])
    {:ok, result} = Agent.run(book, "Send it.", model: model, profile: "ann")

    assert {result.status, result.text, result.turns} ==
             {:pending, "It waits until Bob agrees.", 2}

    assert [%{name: "x.send", command: "x.send --to a", status: :pending} = approval] =
             result.pending

    assert approval.resumable
    assert [report, %{kind: :reply}] = Enum.take(result.transcript.messages, -2)
    assert report.kind == :report

    assert report.content =~
             "[2] x.send --to a\npending\n  `x.send` has not run yet: it waits for"

    assert report.content =~ "[3] x.list\nok\n"
    assert {:ok, [%{resumable: true, ref: ref}]} = Skillbook.approvals(book)
    assert ref == approval.ref
  end

  test "a conversation goes on with the result, once it is approved", %{book: book} do
    first = model([cmd("x.send --to a")])
    {:ok, %{pending: [approval]}} = Agent.run(book, "Send it.", model: first, profile: "ann")
    second = model([cmd("x.list"), "It is sent."])

    {:ok, approved} = Skillbook.approve(book, approval.ref, by: "Bob", resume: [model: second])
    assert %{status: :done, result: %Result{status: :ok}} = approved
    assert {approved.run.status, approved.run.text} == {:done, "It is sent."}

    assert Enum.map(approved.run.transcript.messages, & &1.kind) ==
             [:prompt, :input, :reply, :report, :reply, :report, :reply, :report, :reply]

    content = Enum.at(approved.run.transcript.messages, 5).content

    assert content ==
             "The result of the call that waited for #{approval.ref}:\n\n" <>
               "[1] x.send --to a\nok\n  flags: %{\"to\" => \"a\"}"

    assert [{:system, _}, {:user, "Send it."}, {:assistant, _}, {:user, report} | more] =
             last_asked()

    assert report =~ "[1] x.send --to a\npending\n"
    assert [{:assistant, @waits}, {:user, ^content} | _] = more
  end

  test "a conversation goes on with the refusal", %{book: book} do
    {:ok, %{pending: [approval]}} =
      Agent.run(book, "Send it.", model: model([cmd("x.send --to a")]), profile: "ann")

    options = [by: "Bob", reason: "Not today.", resume: [model: model(["Then not."])]]
    {:ok, denied} = Skillbook.deny(book, approval.ref, options)
    assert {denied.status, denied.run.status, denied.run.text} == {:denied, :done, "Then not."}
    {_role, report} = List.last(last_asked())

    assert report =~
             "The result of the call that waited for #{approval.ref}:\n\n[1] x.send --to a\n" <>
               "error\n  `x.send` was not run: it needs an approval, and it was declined: " <>
               "Not today."
  end

  test "a second call of the run goes on from where the first ended", %{book: book} do
    {:ok, %{pending: [one, two]}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to a\nx.send --to b")]), profile: "ann")

    resume = [model: model(["One is sent.", "Both are sent."])]
    {:ok, %{run: first}} = Skillbook.approve(book, one.ref, by: "Bob", resume: resume)
    assert {first.status, first.text} == {:done, "One is sent."}
    {:ok, %{run: second}} = Skillbook.approve(book, two.ref, by: "Bob", resume: resume)
    assert second.text == "Both are sent."
    texts = Enum.map(second.transcript.messages, & &1.content)
    assert Enum.any?(texts, &(&1 == "One is sent."))
    assert length(second.transcript.messages) == length(first.transcript.messages) + 2
  end

  test "a resumed conversation may wait again", %{book: book} do
    {:ok, %{pending: [one]}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to a")]), profile: "ann")

    resume = [model: model([cmd("x.send --to b"), @waits, "Done."])]
    {:ok, %{run: run}} = Skillbook.approve(book, one.ref, by: "Bob", resume: resume)
    assert %{status: :pending, pending: [two]} = run
    {:ok, %{run: run}} = Skillbook.approve(book, two.ref, by: "Bob", resume: resume)
    assert {run.status, run.text} == {:done, "Done."}
  end

  test "a given transcript goes on instead of the stored one", %{book: book} do
    {:ok, %{pending: [one], transcript: transcript}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to a")]), profile: "ann")

    options = [model: model(["It waits."]), profile: "ann", transcript: transcript]
    {:ok, %{transcript: longer}} = Agent.run(book, "And now?", options)
    resume = [model: model(["Sent."]), transcript: longer]
    {:ok, %{run: run}} = Skillbook.approve(book, one.ref, by: "Bob", resume: resume)
    assert "And now?" in Enum.map(run.transcript.messages, & &1.content)
  end

  test "the result joins the conversation as it is then", %{book: book} do
    for json? <- [false, true] do
      {:ok, %{pending: [one], transcript: transcript}} =
        Agent.run(book, "Go.", model: model([cmd("x.send --to a")]), profile: "ann")

      {:ok, read} = transcript |> Transcript.to_json() |> Transcript.from_json()
      transcript = if json?, do: read, else: transcript
      options = [model: model(["Noon."]), profile: "ann", transcript: transcript]
      {:ok, %{status: :done}} = Agent.run(book, "When is lunch?", options)

      options = [by: "Bob", resume: [model: model(["Sent."])]]
      {:ok, %{run: run}} = Skillbook.approve(book, one.ref, options)
      texts = for m <- run.transcript.messages, m.kind in [:input, :reply], do: m.content
      assert ["Go.", _, @waits, "When is lunch?", "Noon.", "Sent."] = texts
      assert [{:system, _} | _] = last_asked()

      # And what waits in it later has the same conversation.
      options = [model: model([cmd("x.send --to b")]), profile: "ann"]
      options = [transcript: run.transcript] ++ options
      {:ok, %{pending: [two]}} = Agent.run(book, "Again.", options)
      options = [by: "Bob", resume: [model: model(["Sent too."])]]
      {:ok, %{run: run}} = Skillbook.approve(book, two.ref, options)
      assert "When is lunch?" in Enum.map(run.transcript.messages, & &1.content)
      assert run.text == "Sent too."
    end
  end

  test "whether it can go on is the same everywhere", %{book: book} do
    :ok = Skillbook.subscribe(book)

    {:ok, %{pending: [approval], transcript: %{run: conversation}}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to a")]), profile: "ann")

    assert approval.resumable
    assert {approval.conversation, is_binary(conversation)} == {conversation, true}
    assert {:ok, [^approval]} = Skillbook.approvals(book)
    assert {:ok, [^approval]} = Skillbook.approvals(Skillbook.view(book, "ann"))
    # Subscribers hear of it once its conversation is stored.
    assert_receive {:skillbook_approval, ^book, ^approval}
    {:ok, done} = Skillbook.approve(book, approval.ref, by: "Bob")
    assert {done.status, done.resumable} == {:done, true}
    assert_receive {:skillbook_approval, ^book, %{status: :done}}
    refute_received {:skillbook_approval, ^book, _approval}
  end

  test "subscribers hear once of a call that waits, whoever called it", %{book: book} do
    :ok = Skillbook.subscribe(book)
    dispatch = cmd("agent.dispatch --mission \"Send it\" --skills x.send")
    loud = Model.Function.new(fn _, _ -> "```cmd\nx.send\n```" end)

    for {how, resumable, run} <- [
          {:own, true, fn -> Agent.run(book, "Go.", ann([cmd("x.send")])) end},
          {:agent, true, fn -> Agent.run(book, "Go.", ann([dispatch, cmd("x.send")])) end},
          {:no_run, false, fn -> Skillbook.run(Skillbook.view(book, "ann"), cmd("x.send")) end},
          # The run dies before it has stored its conversation.
          {:killed, false,
           fn ->
             die = fn event -> with {:result, _} <- event, do: Process.exit(self(), :kill) end

             pid =
               spawn(fn -> Agent.run(book, "Go.", [on_event: die, model: loud] ++ ann([])) end)

             monitor = Skillbook.Eventually.monitor(pid)
             assert_receive {:DOWN, ^monitor, :process, _pid, _reason}
           end},
          # A handler keeps it to itself.
          {:kept, false, fn -> Agent.run(book, "Go.", ann([cmd("x.keep"), "Done."])) end}
        ] do
      run.()
      assert_receive {:skillbook_approval, ^book, %{ref: ref, status: :pending} = approval}
      assert {how, approval.resumable} == {how, resumable}
      {:ok, _} = Skillbook.deny(book, ref, by: "Bob")
      assert_receive {:skillbook_approval, ^book, %{ref: ^ref, status: :denied}}
      refute_received {:skillbook_approval, ^book, _approval}
    end
  end

  defp ann([]), do: [profile: "ann", commands: [ask: &ask/1]]
  defp ann(replies), do: [model: model(replies)] ++ ann([])

  test "an approved call in whose result another waits, waits again", %{book: book} do
    resume = fn replies -> [by: "Bob", resume: [model: model(replies)]] end

    go_on = fn transcript, replies ->
      options = [model: model(replies), profile: "bob", transcript: transcript]
      Agent.run(book, "And?", options)
    end

    for how <- [:resumed, :elsewhere, :json] do
      options = [model: model([cmd("x.twice")]), profile: "bob"]
      {:ok, %{pending: [one], transcript: transcript}} = Agent.run(book, "Go.", options)

      {:ok, result} =
        if how == :resumed do
          {:ok, %{run: run}} = Skillbook.approve(book, one.ref, resume.(["It waits again."]))
          assert {run.status, run.text} == {:pending, "It waits again."}
          {:ok, run}
        else
          {:ok, %{result: %{status: :pending}}} = Skillbook.approve(book, one.ref, by: "Bob")
          {:ok, read} = transcript |> Transcript.to_json() |> Transcript.from_json()
          go_on.(if(how == :json, do: read, else: transcript), ["It waits again."])
        end

      assert [%{name: "x.pay", status: :pending, resumable: true} = two] = result.pending
      assert result.transcript.waiting == [two.ref]
      assert result.text == "It waits again."

      # It is decided elsewhere, or with its conversation.
      if how == :json do
        {:ok, _} = Skillbook.deny(book, two.ref, by: "Bob", reason: "no")
        {:ok, %{transcript: %{waiting: []} = told}} = go_on.(result.transcript, ["No."])
        assert Enum.any?(told.messages, &(&1.content =~ ~r/#{two.ref}.*it was declined: no/s))
      else
        {:ok, %{run: run}} = Skillbook.approve(book, two.ref, resume.(["Paid."]))
        assert {run.status, run.text, run.transcript.waiting} == {:done, "Paid.", []}
        texts = for %{kind: :input, content: text} <- run.transcript.messages, do: text
        assert texts == if(how == :resumed, do: ["Go."], else: ["Go.", "And?"])
      end
    end

    # Both were decided before the conversation goes on.
    options = [model: model([cmd("x.twice")]), profile: "bob"]
    {:ok, %{pending: [one], transcript: transcript}} = Agent.run(book, "Go.", options)
    {:ok, %{result: %{data: _}}} = Skillbook.approve(book, one.ref, by: "Bob")
    {:ok, [two]} = Skillbook.approvals(book)
    {:ok, _} = Skillbook.approve(book, two.ref, by: "Bob")
    {:ok, result} = go_on.(transcript, ["Paid."])
    assert {result.status, result.pending, result.transcript.waiting} == {:done, [], []}

    assert [_one, _two] =
             for(
               %{content: "The result of the call" <> _} <- result.transcript.messages,
               do: :joined
             )
  end

  test "the words of the model run nothing, whatever they are", %{book: book} do
    skipped =
      "Not run, because a call before it waits for an approval. If it is still wanted, " <>
        "write it again when that is decided."

    run = fn replies, options ->
      options = [model: tools(replies), profile: "ann"] ++ options
      {:ok, %{status: :pending, pending: [_]} = result} = Agent.run(book, "Go.", options)
      # Only the first reply has run something.
      assert {:ok, [_]} = Skillbook.approvals(book)
      result
    end

    failure = {:error, %Skillbook.ModelError{kind: :timeout, reason: "no answer"}}
    broken = {:error, %Skillbook.ModelError{kind: :cut_off, reason: "broken", text: "It wa"}}
    first = cmd("x.send --to a")
    [x, y] = [cmd("x.list\nx.send --to b"), "So.\n\n```cmd\nx.list\n```"]

    for {replies, options, text, last} <- [
          {[first, "It waits."], [], "It waits.", "It waits."},
          {[first, x], [], "On it.", "[1] x.list\nskipped\n  #{skipped}\n\n[2] x.send --to b"},
          {[first, y], [], "So.", "[1] x.list\nskipped\n  #{skipped}"},
          {[first, ""], [], "On it.", "[1] x.send --to a\npending"},
          {[first, failure], [], "On it.", "[1] x.send --to a\npending"},
          {[first, broken], [], "It wa", "The connection broke in the middle"},
          {[first], [max_turns: 1], "On it.", "[1] x.send --to a\npending"},
          {[first, %{text: "", tool_calls: [call("c1", "x__list")]}], [protocol: :tools],
           "On it.", "skipped\n" <> skipped}
        ] do
      result = run.(replies, options)
      assert {replies, result.text} == {replies, text}
      assert String.starts_with?(List.last(result.transcript.messages).content, last)
      assert {:ok, %{status: :denied}} = Skillbook.deny(book, hd(result.pending).ref, by: "Bob")
    end
  end

  test "nothing runs without a conversation, a model or right options", %{book: book} do
    view = Skillbook.view(book, "ann")
    %{results: [%{data: outside}]} = Skillbook.run(view, cmd("x.send --to a"))
    resume = [model: model([])]

    for decide <- [&Skillbook.approve/3, &Skillbook.deny/3] do
      {:error, error} = decide.(book, outside.ref, by: "Bob", resume: resume)

      assert Exception.message(error) ==
               "#{outside.ref} has no conversation to resume: it was not called in a run of " <>
                 "Skillbook.Agent, or the run was killed; decide without resume:"
    end

    {:ok, %{pending: [inside]}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to b")]), profile: "ann")

    {:error, error} = Skillbook.approve(book, inside.ref, by: "Bob", resume: true)
    assert %ApprovalError{kind: :agent} = error

    assert Exception.message(error) ==
             "expected a model to resume the conversation of #{inside.ref} with; write " <>
               "resume: [model: model], or give the book the option agent: [model: model]"

    for {option, value} <- [profile: "bob", max_turns: 0, more: 1] do
      options = [by: "Bob", resume: Keyword.put(resume, option, value)]

      assert {:error, %OptionError{option: ^option}} =
               Skillbook.approve(book, inside.ref, options)
    end

    {:ok, waiting} = Skillbook.approvals(book)
    assert Enum.map(waiting, & &1.ref) == [inside.ref, outside.ref]
  end

  test "a model that fails after the run leaves the result", %{book: book} do
    {:ok, %{pending: [approval]}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to a")]), profile: "ann")

    error = %Skillbook.ModelError{kind: :timeout, reason: "no answer"}
    failing = Model.Function.new(fn _messages, _options -> {:error, error} end)
    options = [by: "Bob", resume: [model: failing]]
    {:ok, %{status: :done, run: run}} = Skillbook.approve(book, approval.ref, options)
    assert {run.status, run.error} == {:error, error}
  end

  test "a step of a workflow and a dispatched agent end the run too", %{book: book} do
    {:ok, result} = Agent.run(book, "Go.", model: model([cmd("x.steps")]), profile: "bob")
    assert {result.status, Enum.map(result.pending, & &1.name)} == {:pending, ["x.pay"]}

    model = model([cmd("agent.dispatch --mission \"Send it\" --skills x.send"), cmd("x.send")])
    {:ok, result} = Agent.run(book, "Go.", model: model, profile: "ann", commands: [ask: &ask/1])
    assert {result.status, Enum.map(result.pending, & &1.name)} == {:pending, ["x.send"]}
    report = Enum.at(result.transcript.messages, -2).content
    assert report =~ "pending\n  agent-1 waits for an approval, after 2 turns."
    assert report =~ "- x.send: pending: `x.send` has not run yet: it waits for the approval"

    # The agent's own conversation goes on, with its own rights.
    [%{ref: ref}] = result.pending
    second = model([cmd("x.list"), "Sent."])
    {:ok, %{run: run}} = Skillbook.approve(book, ref, by: "Bob", resume: [model: second])
    assert hd(Enum.filter(run.transcript.messages, &(&1.kind == :input))).content == "Send it"
    assert {run.status, run.text} == {:done, "Sent."}

    assert Enum.any?(run.transcript.messages, &(&1.content =~ "No command or skill `x.list`")) or
             Enum.any?(run.transcript.messages, &(&1.content =~ "x.list\nerror"))
  end

  defp ask(%{entry: %{name: "agent.dispatch"}}), do: :allow
  defp ask(_request), do: :pending

  test "a call that an agent was delegated runs with the agent's rights", %{book: book} do
    model = model([cmd("agent.dispatch --mission Pay --skills x.pay"), cmd("x.pay --to a")])
    {:ok, %{pending: [approval]}} = Agent.run(book, "Go.", model: model, profile: "del")
    {:ok, done} = Skillbook.approve(book, approval.ref, by: "Bob")
    assert {done.status, done.result.content} == {:done, "flags: %{\"to\" => \"a\"}"}
  end

  test "a page of prose is followed by the book's agent, or by the conversation", context do
    %{book: book, tmp_dir: folder} = context

    {:ok, %{pending: [approval]}} =
      Agent.run(book, "Go.", model: model([cmd("x.read")]), profile: "bob")

    resume = [model: model(["Aloud."])]
    {:ok, approved} = Skillbook.approve(book, approval.ref, by: "Bob", resume: resume)
    assert {approved.result.status, approved.run.text} == {:template, "Aloud."}
    {_role, report} = List.last(last_asked())
    assert report =~ "[1] x.read\nok: instructions to follow\n  Read this page aloud."

    agent = [model: model(["I have read it."])]
    other = book(sources: [folder], store: ":memory:", profiles: [[id: "bob"]], agent: agent)
    %{results: [%{data: waiting}]} = Skillbook.run(Skillbook.view(other, "bob"), cmd("x.read"))
    {:ok, approved} = Skillbook.approve(other, waiting.ref, by: "Bob")
    assert {approved.result.status, approved.result.content} == {:ok, "I have read it."}
  end

  describe "native tool calls" do
    defp call(id, name, arguments \\ "{}"), do: %{id: id, name: name, arguments: arguments}

    defp tools(replies) do
      test = self()
      {:ok, left} = Elixir.Agent.start_link(fn -> replies end)

      Model.Function.new(fn messages, _options ->
        send(test, {:asked, messages})
        Elixir.Agent.get_and_update(left, &next_reply/1)
      end)
    end

    test "the result is a report after the words of the model", %{book: book} do
      calls = [call("c1", "x__list"), call("c2", "x__send", ~s({"to": "a"}))]
      first = tools([{:ok, %{text: "On it.", tool_calls: calls}}])
      options = [model: first, profile: "ann", protocol: :tools]
      {:ok, %{status: :pending, pending: [approval]} = run} = Agent.run(book, "Send it.", options)

      assert [_, %{kind: :result, call: %{id: "c2"}} = waiting, %{kind: :reply}] =
               Enum.take(run.transcript.messages, -3)

      assert waiting.content =~ "it waits for the approval #{approval.ref}"
      refute waiting.error

      resume = [model: tools(["It is sent."]), protocol: :tools]
      {:ok, approved} = Skillbook.approve(book, approval.ref, by: "Bob", resume: resume)
      assert {approved.run.status, approved.run.text} == {:done, "It is sent."}
      assert_receive {:asked, _}
      assert_receive {:asked, [_, _, _, %{role: :tool, id: "c1"}, %{role: :tool, id: "c2"}]}
      assert_receive {:asked, messages}
      assert [%{role: :assistant, content: @waits}, answer] = Enum.take(messages, -2)

      assert answer == %{
               role: :user,
               content:
                 "The result of the call that waited for #{approval.ref}:\n\n" <>
                   ~s([1] x.send {"to":"a"}\nok\n  flags: %{"to" => "a"})
             }
    end

    test "with on_error: :halt none runs after one that waits", %{book: book} do
      calls = [call("c1", "x__send", ~s({"to": "a"})), call("c2", "x__list")]
      model = tools([{:ok, %{text: "", tool_calls: calls}}])
      options = [model: model, profile: "ann", protocol: :tools, commands: [on_error: :halt]]
      {:ok, run} = Agent.run(book, "Send it.", options)
      assert [waiting, skipped, _reply] = Enum.take(run.transcript.messages, -3)
      assert waiting.content =~ "it waits for the approval"
      assert "skipped\n" <> _ = skipped.content
    end

    test "reads after a call that waits run, and results stay", %{book: book} do
      calls = [
        call("c1", "x__send", ~s({"to": "a"})),
        call("c2", "x__list"),
        call("c3", "run_command", ~s({"command": "x.send --to b"})),
        call("c4", "get_skill", ~s({"path": "x.list"}))
      ]

      first = tools([{:ok, %{text: "On it.", tool_calls: calls}}])
      options = [model: first, profile: "ann", protocol: :tools]
      {:ok, %{status: :pending, pending: [one, two]} = run} = Agent.run(book, "Send it.", options)
      results = fn run -> for %{kind: :result} = m <- run.transcript.messages, do: m end
      assert [a, list, b, page] = results.(run)

      assert a.content =~
               "pending\n`x.send` has not run yet: it waits for the approval #{one.ref}"

      assert b.content =~
               "pending\n`x.send` has not run yet: it waits for the approval #{two.ref}"

      assert "ok\n" <> _ = list.content
      assert "ok\n" <> _ = page.content

      # The second first: the one before it still waits.
      resume = [model: tools(["One is sent.", "Both are."]), protocol: :tools]
      {:ok, %{run: run}} = Skillbook.approve(book, two.ref, by: "Bob", resume: resume)
      assert run.text == "One is sent."
      assert [^a, ^list, ^b, ^page] = results.(run)
      assert Enum.at(run.transcript.messages, -2).content =~ ~s("to" => "b")
      assert {:ok, [%{ref: ref}]} = Skillbook.approvals(book)
      assert ref == one.ref
    end

    test "a text that is above is not repeated", %{book: book} do
      read = call("c1", "get_skill", ~s({"path": "x.long"}))
      ask = call("c2", "x__long")

      for {calls, text} <- [
            {[ask, read], ~s(The same is above, in the answer to `get_skill {"path":"x.long"}`)},
            {[ask], "A long line."}
          ] do
        first = tools([{:ok, %{text: "", tool_calls: calls}}])
        options = [model: first, profile: "bob", protocol: :tools]
        {:ok, %{pending: [approval]}} = Agent.run(book, "Read it.", options)
        resume = [model: tools(["Aloud."]), protocol: :tools]
        {:ok, %{run: run}} = Skillbook.approve(book, approval.ref, by: "Bob", resume: resume)
        assert run.text == "Aloud."
        report = Enum.at(run.transcript.messages, -2).content
        assert report =~ "[1] x.long\nok: instructions to follow\n  " <> text
      end
    end

    test "a step of a workflow and a dispatched agent wait as calls too", %{book: book} do
      first = tools([{:ok, %{tool_calls: [call("c1", "x__steps"), call("c2", "x__list")]}}])
      options = [model: first, profile: "bob", protocol: :tools]
      {:ok, %{status: :pending, pending: [pay]} = run} = Agent.run(book, "Pay.", options)
      assert pay.name == "x.pay"
      assert [%{content: "ok\n" <> _}, _reply] = Enum.take(run.transcript.messages, -2)
      resume = [model: tools(["Paid."]), protocol: :tools]
      {:ok, approved} = Skillbook.approve(book, pay.ref, by: "Ann", resume: resume)
      assert {approved.status, approved.run.status, approved.run.text} == {:done, :done, "Paid."}

      mission = ~s({"mission": "Send it", "skills": ["x.send"]})

      first =
        tools([
          {:ok, %{tool_calls: [call("c1", "agent__dispatch", mission)]}},
          {:ok, %{tool_calls: [call("c2", "x__send", ~s({"to": "a"}))]}}
        ])

      options = [model: first, profile: "ann", protocol: :tools, commands: [ask: &ask/1]]
      {:ok, %{status: :pending, pending: [send]} = run} = Agent.run(book, "Go.", options)
      report = Enum.at(run.transcript.messages, -2)
      assert {report.kind, report.call.id} == {:result, "c1"}
      assert report.content =~ "pending\nagent-1 waits for an approval, after 2 turns."

      # The agent's own conversation goes on.
      resume = [model: tools(["Sent."]), protocol: :tools]
      {:ok, %{run: run}} = Skillbook.approve(book, send.ref, by: "Bob", resume: resume)
      assert {run.status, run.text} == {:done, "Sent."}

      assert Enum.map(run.transcript.messages, & &1.kind) == [
               :prompt,
               :input,
               :reply,
               :result,
               :reply,
               :report,
               :reply
             ]

      assert %{content: "Send it"} = Enum.at(run.transcript.messages, 1)
      assert Enum.at(run.transcript.messages, 5).content =~ ~s("to" => "a")
    end

    test "a conversation with tools goes on with blocks", %{book: book} do
      first = tools([{:ok, %{text: "On it.", tool_calls: [call("c1", "x__send")]}}])
      options = [model: first, profile: "ann", protocol: :tools]
      {:ok, %{pending: [approval]}} = Agent.run(book, "Send it.", options)
      resume = [model: tools(["Sent."]), protocol: :blocks]
      {:ok, %{run: run}} = Skillbook.approve(book, approval.ref, by: "Bob", resume: resume)
      assert run.text == "Sent."
      assert_receive {:asked, _}
      assert_receive {:asked, _}
      assert_receive {:asked, [_, _, %{role: :assistant} = reply, %{role: :user} = report | more]}
      assert reply.content == "On it.\n\n```cmd\nx.send\n```"
      assert report.content =~ "[1] x__send\npending\n  `x.send` has not run yet"
      assert [%{role: :assistant}, %{role: :user, content: content}] = more
      assert content =~ "[1] x.send\nok\n  flags: %{}"
    end

    test "a refusal is an error", %{book: book} do
      first = tools([{:ok, %{text: "", tool_calls: [call("c1", "x__send")]}}])
      options = [model: first, profile: "ann", protocol: :tools]
      {:ok, %{pending: [approval]}} = Agent.run(book, "Send it.", options)
      resume = [model: tools(["Then not."]), protocol: :tools]
      options = [by: "Bob", reason: "No.", resume: resume]
      {:ok, %{run: run}} = Skillbook.deny(book, approval.ref, options)
      report = Enum.at(run.transcript.messages, -2)
      assert report.content =~ ~r/x.send\nerror\n.* it was declined: No./
      assert run.text == "Then not."
    end

    test "calls of one reply are answered one after the other", %{book: book} do
      calls = [call("c1", "x__send", ~s({"to": "a"})), call("c2", "x__send", ~s({"to": "b"}))]
      first = tools([{:ok, %{text: "", tool_calls: calls}}])
      options = [model: first, profile: "ann", protocol: :tools]
      {:ok, %{pending: [one, two]}} = Agent.run(book, "Send both.", options)
      resume = [model: tools(["One.", "Both."]), protocol: :tools]
      {:ok, %{run: run}} = Skillbook.approve(book, one.ref, by: "Bob", resume: resume)
      assert run.text == "One."
      {:ok, %{run: run}} = Skillbook.approve(book, two.ref, by: "Bob", resume: resume)
      assert run.text == "Both."
      kinds = Enum.map(run.transcript.messages, & &1.kind)

      assert Enum.take(kinds, -8) ==
               [:reply, :result, :result] ++ [:reply, :report, :reply, :report, :reply]

      report = Enum.at(run.transcript.messages, -2).content
      assert report =~ "The result of the call that waited for #{two.ref}:\n\n[1] x.send"
    end
  end

  test "the stored conversation is the whole one, and a larger one is left out", %{book: book} do
    {:ok, %{pending: [approval], transcript: transcript}} =
      Agent.run(book, "Go.", model: model([cmd("x.send --to a")]), profile: "ann")

    sql = Book.sql(Book.fetch!(book))
    query = "select transcript from skillbook_approvals where ref = $1"
    %{rows: [[json]]} = SQL.query!(sql, query, [approval.ref])
    assert {:ok, %{seen: %{entries: [_ | _]}} = read} = Transcript.from_json(json)
    assert %{transcript | view: nil} == %{read | seen: nil}

    large = String.duplicate("x", 4 * 1024 * 1024)

    log =
      capture_log(fn ->
        options = [model: model([cmd("x.send --to a")]), profile: "ann"]
        {:ok, %{pending: [approval]}} = Agent.run(book, large, options)
        assert {:ok, [%{ref: ref, resumable: false} | _]} = Skillbook.approvals(book)
        assert ref == approval.ref
      end)

    assert log =~ "was not stored, so it cannot be resumed: it is too large"
  end
end
