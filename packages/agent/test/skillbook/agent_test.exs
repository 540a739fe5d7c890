defmodule Skillbook.AgentDocTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Agent
  doctest Skillbook.Agent.Result
  doctest Skillbook.AgentError
end

defmodule Skillbook.AgentTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.AgentRuns

  alias Skillbook.Test.{ChatServer, Vendors}
  alias Skillbook.Transcript.Message
  alias Skillbook.{Agent, Model, ModelError, Transcript, View}

  @moduletag :tmp_dir
  @at ~U[2026-11-21 08:00:00Z]

  defmodule Tell do
    @moduledoc false
    @behaviour Skillbook.Handler

    @impl true
    def execute(%{"fail" => text}, _context), do: {:error, text}

    def execute(%{"poll" => true}, _context), do: {:ok, "#{System.unique_integer()}"}
    def execute(_flags, %{agent: nil}), do: {:ok, "no run"}

    def execute(_flags, %{agent: agent} = context) do
      send(context.assigns.test, {:agent, agent})
      {:ok, "in a run"}
    end
  end

  defp files do
    %{
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mail\n---\n# Mail\n",
      "mail/send.md" => page("mail.send", handler: inspect(Tell)),
      "mail/draft.md" =>
        page("mail.draft", [], "# mail.draft\n\n" <> String.duplicate("Write it well. ", 20)),
      "poem.md" =>
        "---\nname: poem\ndescription: Poems\n---\n" <>
          String.duplicate("A line of five syllables. ", 20),
      "tiny.md" => "---\nname: tiny\ndescription: Tiny\n---\nBe brief.",
      "secret.md" =>
        "---\nname: secret\ndescription: Secret\nvisibility_labels: [inner]\n---\n" <>
          String.duplicate("Hush hush. ", 20)
    }
  end

  setup %{tmp_dir: folder} do
    write(folder, files())

    profiles = [
      [id: "default"],
      [id: "inner", grants: ["inner"]],
      [id: "other", grants: ["inner"]]
    ]

    book = book(sources: [folder], builtins: false, watch: false, profiles: profiles)
    {:ok, book: book, folder: folder}
  end

  # A model that returns these replies in order: texts, values for `Model.Function`, or functions
  # of the messages.
  defp script(replies) do
    calls = :counters.new(1, [])

    Model.Function.new(fn messages, options ->
      :counters.add(calls, 1, 1)

      reply =
        Enum.at(replies, :counters.get(calls, 1) - 1) ||
          flunk("the model was asked once too often")

      send(self(), {:asked, messages, options})
      if is_function(reply), do: reply.(messages), else: reply
    end)
  end

  defp run(book, replies, options \\ [], input \\ "Go.") do
    test = self()
    defaults = [model: script(replies), on_event: &send(test, {:event, &1}), clock: fn -> @at end]
    ended(Agent.run(book, input, Keyword.merge(defaults, options)))
  end

  defp cmd(lines), do: "```cmd\n#{lines}\n```"

  defp events do
    receive do
      {:event, event} -> [event | events()]
    after
      0 -> []
    end
  end

  defp events(kind), do: for({^kind, value} <- events(), do: value)

  # The messages of each call of the model.
  defp asked do
    receive do
      {:asked, messages, _options} -> [messages | asked()]
    after
      0 -> []
    end
  end

  defp last(messages), do: List.last(messages).content
  defp kinds(result), do: Enum.map(result.transcript.messages, & &1.kind)

  describe "a run" do
    test "goes on until a reply has no commands", %{book: book} do
      result =
        run(book, ["Looking.\n\n" <> cmd("mail.send --x\nmail.snd"), "Done."],
          commands: [assigns: %{test: self()}]
        )

      assert %{status: :done, text: "Done.", turns: 2, error: nil} = result
      assert kinds(result) == [:prompt, :input, :reply, :report, :reply]
      assert Enum.all?(result.transcript.messages, &(&1.at == @at))
      assert [first, second] = asked()
      assert [%{role: :system, content: prompt}, %{role: :user, content: "Go."}] = first
      assert prompt == Skillbook.prompt(Skillbook.view(book))
      assert [_, _, %{role: :assistant}, %{role: :user, content: report}] = second

      assert String.starts_with?(
               report,
               "[1] mail.send --x\nok\n  in a run\n\n" <>
                 "[2] mail.snd\nerror\n  unknown skill \"mail.snd\"; did you mean mail.send"
             )
    end

    test "emits all events in order", %{book: book} do
      run(book, ["Look.\n\n" <> cmd("tiny") <> "\n\nSo.", "Done."])

      assert [
               {:message, %{kind: :prompt}},
               {:message, %{kind: :input, content: "Go."}},
               {:turn, 1},
               {:text, "Look."},
               {:command, "tiny"},
               {:text, "\n\n"},
               {:text, "So."},
               {:usage, %{prompt_tokens: _, completion_tokens: _, estimated: true}},
               {:message, %{kind: :reply}},
               {:result, %{command: "tiny", content: "Be brief."}},
               {:message, %{kind: :report}},
               {:transcript, %{messages: [_, _, _, %{kind: :report}]}},
               {:turn, 2},
               {:text, "Done."},
               {:usage, _},
               {:message, %{kind: :reply, content: "Done."}},
               {:transcript, _}
             ] = events()
    end

    test "emits the same events however the text arrives", %{book: book} do
      reply =
        "Über `x`:\n\n```elixir\nf()\n```\n\n```cmd\ntiny\nmail.draft\n```\n\nAnd:\n\n" <>
          "```cmd\ntiny --help\n```\n~~ end ~~"

      [whole | others] =
        for pieces <- [[reply], String.codepoints(reply), for(<<byte <- reply>>, do: <<byte>>)] do
          run(book, [pieces, "Done."])
          events = events()

          {for({:text, text} <- events, into: "", do: text),
           for({:command, command} <- events, do: command)}
        end

      assert whole ==
               {"Über `x`:\n\n```elixir\nf()\n```\n\nAnd:\n\n~~ end ~~Done.",
                ["tiny", "mail.draft", "tiny --help"]}

      assert Enum.uniq(others) == [whole]
    end

    test "can send events to a process", %{book: book} do
      run(book, ["Done."], on_event: self())
      run = self()
      assert_receive {:skillbook_agent, ^run, {:text, "Done."}}
    end

    test "passes on the model's options and the remaining time", %{book: book} do
      run(book, ["Done."], chat: [temperature: 0.5], max_time: 1_000)
      assert_receive {:asked, _, options}
      assert options[:temperature] == 0.5
      assert options[:timeout] in 1..1_000
    end

    test "uses the model's token counts, and estimates others", %{book: book} do
      counted = %{
        text: cmd("tiny"),
        usage: %{
          prompt_tokens: 100,
          completion_tokens: 10,
          cached_tokens: 75,
          cache_write_tokens: 7
        },
        finish_reason: :stop
      }

      result = run(book, [counted, %{counted | text: "Done."}])

      assert result.usage == %{
               prompt_tokens: 200,
               completion_tokens: 20,
               cached_tokens: 150,
               cache_write_tokens: 14,
               estimated: false
             }

      assert List.last(result.transcript.messages).usage == counted.usage

      result = run(book, [counted, "Done."])
      assert %{estimated: true, prompt_tokens: prompt} = result.usage
      assert prompt > 200
    end

    test "puts the application's text before the skills", %{book: book} do
      result = run(book, ["Done."], system: "You are Ann.", prompt: [sections: [:rules]])

      assert hd(result.transcript.messages).content ==
               "You are Ann.\n\n" <> Skillbook.prompt(Skillbook.view(book), sections: [:rules])
    end

    test "is visible to handlers", %{book: book} do
      result =
        run(book, [cmd("mail.send"), "Done."],
          commands: [assigns: %{test: self()}],
          max_turns: 5,
          max_tokens: 10_000,
          depth: 2
        )

      assert result.status == :done
      assert_receive {:agent, agent}
      assert %{depth: 2, turns_left: 4, model: %Model.Function{}} = agent
      assert agent.time_left in 1..600_000
      assert agent.tokens_left in 1..9_999

      assert [%{content: "no run"}] =
               Skillbook.run(Skillbook.view(book), cmd("mail.send")).results
    end

    test "refuses invalid options", %{book: book} do
      for {options, message} <- [
            {[modle: 1], ~r/\Aunknown option :modle for a run, did you mean :model\?/},
            {[model: nil], "expected a model as the option :model of a run, got: nil"},
            {[chat: [x: 1]], ~r/\Aunknown option :x for a model's answer/},
            {[commands: [x: 1]], ~r/\Aunknown option :x for run/},
            {[max_turns: 0],
             "expected a whole number from 1 as the option :max_turns of a run, got: 0"}
          ] do
        assert_raise Skillbook.OptionError, message, fn -> run(book, [], options) end
      end

      assert_raise Skillbook.OptionError, "a run needs the option :model", fn ->
        Agent.run(book, "a", [])
      end
    end
  end

  test "sends the grammar of each turn's view", %{book: book, folder: folder} do
    more = fn _messages ->
      write(folder, %{"mail/more.md" => page("mail.more")})
      :ok = Skillbook.reload(book)
      cmd("tiny")
    end

    for {options, first, second} <- [
          {[], [], []},
          {[grammar: []], ["mail.draft", "mail.send"], ["mail.draft", "mail.more", "mail.send"]},
          {[grammar: [names: ["mail.s*"]]], ["mail.send"], ["mail.send"]}
        ] do
      assert %{status: :done} = run(book, [more, "Done."], options)
      assert grammars() == [first, second]
      File.rm!(Path.join(folder, "mail/more.md"))
      :ok = Skillbook.reload(book)
    end

    assert_raise Skillbook.OptionError, ~r/:names/, fn ->
      run(book, [], grammar: [names: "mail"])
    end
  end

  # The commands of `mail` in the grammar that each turn was asked with.
  defp grammars do
    receive do
      {:asked, _messages, options} ->
        names =
          Regex.scan(~r/^command-\d+ ::= "(mail\.\w+)"/m, Keyword.get(options, :grammar, ""))

        [Enum.map(names, &List.last/1) | grammars()]
    after
      0 -> []
    end
  end

  describe "an end" do
    test "at a limit leaves the conversation complete", %{book: book} do
      big = %{
        text: cmd("tiny"),
        usage: %{prompt_tokens: 50, completion_tokens: 50},
        finish_reason: :stop
      }

      for {replies, options, status, turns} <- [
            {[cmd("tiny"), cmd("tiny")], [max_turns: 2], :max_turns, 2},
            {[cmd("tiny"), "Done."], [max_turns: 2], :done, 2},
            {[big, big], [max_tokens: 200], :max_tokens, 2},
            {[big, big, "Done."], [max_tokens: 201], :done, 3}
          ] do
        result = run(book, replies, options)
        assert {result.status, result.turns} == {status, turns}
        asked = if status == :done, do: [:reply], else: []

        assert kinds(result) ==
                 [:prompt, :input] ++
                   List.flatten(
                     List.duplicate([:reply, :report], length(replies) - length(asked))
                   ) ++ asked
      end
    end

    test "at the time limit", %{book: book} do
      # The model uses the whole timeout.
      model =
        Model.Function.new(fn _messages, options ->
          receive do
          after
            options[:timeout] -> {:error, %ModelError{kind: :timeout, reason: "over"}}
          end
        end)

      assert %{status: :max_time, turns: 1, error: %{kind: :timeout}} =
               run(book, [], model: model, max_time: 300)

      assert %{status: :error, error: %{kind: :timeout}} =
               run(book, [], model: model, chat: [timeout: 20])
    end

    test "comes when the model is stuck", %{book: book} do
      fail = fn text -> cmd("mail.send --fail #{text}") end

      for {replies, options, status} <- [
            {List.duplicate(fail.("a"), 3), [], :stuck},
            {List.duplicate(fail.("a"), 2) ++ ["Done."], [], :done},
            {List.duplicate(fail.("a"), 2), [max_repeats: 2], :stuck},
            {[fail.("a"), fail.("b"), fail.("a"), fail.("b"), "Done."], [], :done},
            {[fail.("a"), fail.("a"), cmd("tiny"), fail.("a"), fail.("a"), "Done."], [], :done},
            {List.duplicate(cmd("mail.send --fail a\ntiny"), 3), [], :stuck},
            {List.duplicate(cmd("tiny"), 3) ++ ["Done."], [], :done},
            {List.duplicate(cmd("tiny"), 4), [], :stuck},
            {List.duplicate(cmd("tiny"), 3), [max_repeats: 1], :stuck},
            {List.duplicate(cmd("tiny"), 5) ++ ["Done."], [max_repeats: 5], :done},
            # A circle of several commands, and one that leaves it for a while.
            {List.duplicate(cmd("tiny"), 1) ++ List.duplicate(cmd("poem\ntiny"), 4), [], :stuck},
            {[cmd("tiny"), cmd("poem"), cmd("tiny"), cmd("poem"), cmd("tiny")], [], :stuck},
            {[cmd("tiny"), cmd("tiny"), cmd("tiny"), cmd("poem")] ++
               [cmd("tiny"), cmd("tiny"), "Done."], [], :done},
            {List.duplicate(cmd("mail.send --poll"), 9) ++ ["Done."], [], :done},
            {List.duplicate("```cmd\ntiny", 3), [], :stuck}
          ] do
        assert {replies, run(book, replies, options).status} == {replies, status}
      end
    end

    test "in a circle comes after the model was told", %{book: book} do
      result = run(book, List.duplicate(cmd("tiny"), 4))
      assert {result.status, result.turns} == {:stuck, 4}

      assert kinds(result) ==
               [:prompt, :input] ++
                 [:reply, :report, :reply, :report, :reply, :report, :note, :reply, :report]

      told =
        "Your last replies ran commands that gave the same results as before. Do something " <>
          "else, or write your answer to the user: if your next reply gives nothing new, the " <>
          "run ends."

      assert events(:repeated) == [told]
      assert [_, _, _, fourth] = asked()
      assert last(fourth) =~ told
    end

    test "with an error of the model is an exception that tells it", %{book: book} do
      error = %ModelError{kind: :rate_limited, status: 429, reason: "slow"}
      model = script([cmd("tiny"), {:error, error}])
      assert {:error, failed} = Agent.run(book, "Go.", model: model)

      assert Exception.message(failed) ==
               "the run ended in turn 2: the model's server accepts no more requests for now " <>
                 "(429): slow"

      assert {failed.error, failed.result.status} == {error, :error}
      assert_raise Skillbook.AgentError, Exception.message(failed), fn -> raise failed end
      model = script(["Done."])
      options = [model: model, transcript: failed.result.transcript]
      assert {:ok, %{status: :done}} = Agent.run(book, "Again.", options)
    end

    test "with an error keeps the conversation", %{book: book} do
      error = %ModelError{kind: :rate_limited, status: 429, reason: "slow"}
      result = run(book, [cmd("tiny"), {:error, error}])
      assert %{status: :error, error: ^error, turns: 2} = result
      assert kinds(result) == [:prompt, :input, :reply, :report]
    end

    test "at the limit of tokens is reported", %{book: book} do
      for {reason, status} <- [stop: :done, other: :done, length: :cut_off, filtered: :cut_off] do
        cut = %{text: "I would", usage: nil, finish_reason: reason}
        assert %{status: ^status, text: "I would"} = run(book, [cut])
        assert events(:cut_off) == if(status == :done, do: [], else: [reason])
      end
    end
  end

  describe "text that looks like a command" do
    @stray "I do it.\n\n```bash\nmail.send --to Ann\n```"

    test "is noted once, then it is an answer", %{book: book} do
      result = run(book, [@stray, @stray])
      assert %{status: :done, turns: 2} = result
      assert kinds(result) == [:prompt, :input, :reply, :note, :reply]
      assert [_, second] = asked()

      assert last(second) ==
               "Nothing ran: your reply has no cmd block, and text outside of cmd blocks is " <>
                 "for the user. If you meant to run this, write it in a block that opens with " <>
                 "```cmd:\n\n  mail.send --to Ann\n\nIf it was only meant to be read, repeat " <>
                 "your answer."
    end

    test "is noted in the report of other commands", %{book: book} do
      reply = "```cmd\ntiny\n```\n\n~~~elixir\n```cmd\nmail.send --to Ann\n```"
      result = run(book, [reply, "Done."])
      assert %{status: :done, turns: 2} = result
      assert kinds(result) == [:prompt, :input, :reply, :report, :reply]
      assert [_, second] = asked()

      note = "The code block that opens at line 5 of your reply was not closed"
      assert last(second) =~ ~r/\A\[1\] tiny\nok.*\n\n#{note}/s
    end

    test "is an answer after commands, and in a reply that was cut off", %{book: book} do
      assert %{status: :done, turns: 2} = run(book, [cmd("tiny"), @stray])
      cut = %{text: @stray, usage: nil, finish_reason: :length}
      assert %{status: :cut_off, turns: 1} = run(book, [cut])
      assert events(:note) == []
    end
  end

  describe "an incomplete reply" do
    test "with only an unclosed block is corrected by the model", %{book: book} do
      result = run(book, ["```cmd\ntiny\nmail.draft", fn messages -> last(messages) end])
      assert events(:incomplete) == [["tiny", "mail.draft"]]

      assert String.starts_with?(
               result.text,
               "[1] tiny\nnot run\n  The reply ended before the block of this command was closed"
             )
    end

    test "runs if the caller stops the model at the fence", %{book: book} do
      run(book, ["```cmd\ntiny", "Done."], commands: [unclosed: :run], chat: [stop: ["\n```"]])
      assert [%{command: "tiny", status: :template}] = events(:result)

      # But not where it was not the fence that stopped it.
      answer = %{text: "```cmd\ntiny", usage: nil, finish_reason: :stop}
      broken = {:error, %ModelError{kind: :cut_off, reason: "broken", text: answer.text}}

      for reply <- [
            %{answer | finish_reason: :length},
            %{answer | finish_reason: :filtered},
            broken
          ] do
        run(book, [reply, "Done."], commands: [unclosed: :run])
        events = events()
        assert for({:result, result} <- events, do: result) == []
        assert for({:incomplete, lines} <- events, do: lines) == [["tiny"]]
      end
    end

    test "at the limit of tokens says so", %{book: book} do
      cut = %{text: cmd("tiny") <> "\n\nThen I", usage: nil, finish_reason: :length}
      run(book, [cut, "Done."])
      assert [_, second] = asked()

      assert last(second) =~
               ~r/\A\[1\] tiny\n.*\n\nYour reply reached its limit of tokens and ends there.\z/s
    end

    test "after a broken connection is continued", %{book: book} do
      cut =
        {:error,
         %ModelError{
           kind: :cut_off,
           reason: "broken",
           text: cmd("tiny") <> "\n\n```cmd\nmail.dra"
         }}

      result = run(book, [cut, "the rest"])
      assert %{status: :done, turns: 2} = result
      assert kinds(result) == [:prompt, :input, :reply, :report, :note, :reply]
      assert {:event, {:cut_off, :broken}} in elem(Process.info(self(), :messages), 1)
      assert [_, second] = asked()

      note = "The connection broke at the end of your reply."
      assert last(second) =~ ~r/\A\[1\] tiny\n.*\n\n\[2\] mail.dra\nnot run\n.*\n\n#{note}/s

      assert Enum.map(events(:result), & &1.command) == ["tiny"]
    end

    test "that is continued has its whole text", %{book: book} do
      for {parts, text} <- [
            {["I lo", "ve it."], "I love it."},
            {["One ", "two"], "One two"},
            {["One.\n\n", "Two."], "One.\n\nTwo."},
            {["One.", "\n\nTwo."], "One.\n\nTwo."},
            {["One.", " ", " two."], "One.  two."},
            {["- a\n- b", "c\n- d"], "- a\n- bc\n- d"},
            {["Look.\n\n" <> cmd("tiny"), "So."], "Look.\n\nSo."},
            {["All said.", ""], "All said."},
            {[cmd("tiny"), "So."], "So."}
          ],
          kind <- [:cut_off, :server, :rate_limited, :connection] do
        {last, cut} = List.pop_at(parts, -1)
        left = :counters.new(1, [])

        model =
          Model.Function.new(fn _messages, _options, on_text ->
            :counters.add(left, 1, 1)
            part = Enum.at(parts, :counters.get(left, 1) - 1)
            for letter <- String.graphemes(part), do: on_text.(letter)

            if :counters.get(left, 1) <= length(cut),
              do: {:error, %ModelError{kind: kind, reason: "broken", text: part}},
              else: part
          end)

        result = run(book, [], model: model)
        label = {kind, parts, last}
        assert {label, result.status, result.text} == {label, :done, text}
        assert {label, Enum.join(events(:text))} == {label, text}
      end
    end

    test "that a vendor's server cannot go on with is continued too", %{book: book} do
      error = ~s({"type": "error", "error": {"type": "overloaded_error", "message": "Full"}})
      fault = "event: error\ndata: #{error}\n\n"

      for place <- 4..5 do
        first = Vendors.answer(%{text: ["I lo", "ve "]}, insert: [[place, fault]])
        script = Vendors.start("anthropic", [first, Vendors.answer("it.")])
        model = Vendors.model(script, retries: 0)
        result = run(book, [], model: model)
        sent = Enum.join(events(:text))
        assert {place, result.status, result.text} == {place, :done, sent}
        assert {place, String.ends_with?(sent, "it.")} == {place, true}
        assert {place, sent} in for(start <- ["I lo", "I love "], do: {place, start <> "it."})
        assert %{"refused" => [], "bodies" => [_, _]} = Vendors.record(script)
      end
    end

    test "that ends empty after a command is asked for again", %{book: book} do
      cut =
        {:error, %ModelError{kind: :cut_off, reason: "broken", text: "I look.\n" <> cmd("tiny")}}

      result = run(book, [cut, "", "Done."])
      assert {result.status, result.text, result.turns} == {:done, "Done.", 3}
    end

    test "after repeated breaks ends the run", %{book: book} do
      cut = {:error, %ModelError{kind: :cut_off, reason: "broken", text: "a"}}
      result = run(book, [cut, cut, cut])
      assert %{status: :error, turns: 3, error: %{kind: :cut_off}, text: "aaa"} = result
      assert %{status: :done, turns: 6} = run(book, [cut, cut, cmd("tiny"), cut, cut, "Done."])
    end

    test "after another failure ends the run without running commands", %{book: book} do
      error = %ModelError{kind: :bad_answer, reason: "oh", text: "So.\n\n" <> cmd("tiny")}
      result = run(book, [{:error, error}])
      assert %{status: :error, text: "So.", error: ^error} = result
      assert kinds(result) == [:prompt, :input, :reply, :note]
      assert events(:result) == []
    end

    test "with invalid UTF-8 is an error for the model", %{book: book} do
      result = run(book, [<<"a", 255>>, fn messages -> last(messages) end])
      assert result.text =~ ~r/\A\[1\] \(the whole reply\)\nerror\n/
    end
  end

  describe "text that is already in the conversation" do
    @above "The same is above, in the answer to `get_skill: mail.draft`; it is unchanged."

    test "is referred to", %{book: book} do
      for {first, second, pointed} <- [
            {"get_skill: mail.draft", "get_skill: mail.draft", true},
            {"get_skill: mail.draft", "mail.draft", true},
            {"get_skill: mail.draft", "mail.draft --help", true},
            {"get_skill: mail.draft", "get_skill: mail.all", false},
            {"get_skill: mail.draft", "get_skill: poem", false},
            {"get_skill: tiny", "get_skill: tiny", false},
            {"get_skill: mail", "get_skill: mail", false}
          ] do
        result = run(book, [cmd(first), cmd(second), "Done."])
        [_, report] = for %{kind: :report} = message <- result.transcript.messages, do: message
        assert {second, report.content =~ @above} == {second, pointed}
        if pointed, do: assert(report.activations == [])
      end
    end

    test "is referred to within one report", %{book: book} do
      result = run(book, [cmd("get_skill: mail.draft\nmail.draft"), "Done."])

      assert [%{content: content, activations: [%{name: "mail.draft"}]}] =
               for(%{kind: :report} = m <- result.transcript.messages, do: m)

      assert content =~ "[2] mail.draft\nok: instructions to follow\n  " <> @above

      result = run(book, [cmd("get_skill: mail.all"), cmd("get_skill: mail.all"), "Done."])

      assert [_, %{content: content}] =
               for(%{kind: :report} = m <- result.transcript.messages, do: m)

      assert content =~ "in the answer to `get_skill: mail.all`"
    end

    test "is complete in the event", %{book: book} do
      run(book, [cmd("poem"), cmd("poem"), "Done."])
      assert [%{content: same}, %{content: same}] = events(:result)
    end

    test "is sent again after a change", %{book: book, folder: folder} do
      change = fn _messages ->
        write(folder, %{
          "poem.md" =>
            "---\nname: poem\ndescription: Poems\n---\n" <> String.duplicate("New lines. ", 30)
        })

        Skillbook.reload(book)
        cmd("poem")
      end

      result = run(book, [cmd("poem"), change, cmd("poem"), "Done."])
      reports = for %{kind: :report} = message <- result.transcript.messages, do: message.content
      # The turn in which it changed has its own view.
      assert [_, second, third] = reports
      assert second =~ "The same is above"
      assert third =~ "New lines."
    end

    test "is sent again after it was removed", %{book: book} do
      result = run(book, [cmd("mail.draft"), "Done."])

      transcript =
        Agent.compact(run(book, ["More."], transcript: result.transcript).transcript, 1)

      assert [%{name: "mail.draft"}] = transcript.left_out
      result = run(book, [cmd("mail.draft"), "Done."], transcript: transcript)

      assert [%{content: content}] =
               for(%{kind: :report} = m <- result.transcript.messages, do: m)

      assert content =~ "Write it well."
    end
  end

  describe "the system prompt" do
    test "stays, and changes are sent as news", %{book: book, folder: folder} do
      change = fn _messages ->
        write(folder, %{"new.md" => "---\nname: new\ndescription: Brand new\n---\nHello."})
        Skillbook.reload(book)
        cmd("tiny")
      end

      result = run(book, [change, cmd("new"), "Done."])
      assert kinds(result) == [:prompt, :input, :reply, :report, :news, :reply, :report, :reply]
      assert [[prompt | _], [prompt | _] = second, [prompt | _]] = asked()

      assert last(second) =~
               "\n\n# Changes in the list of `get_skill`\n\nNew:\n\n- new: Brand new"

      assert ["# Changes" <> _] = events(:news)

      # And in the next run.
      File.rm!(Path.join(folder, "new.md"))
      Skillbook.reload(book)
      result = run(book, ["Done."], [transcript: result.transcript], "More.")
      assert [[^prompt | _] = messages] = asked()

      assert last(messages) ==
               "# Changes in the list of `get_skill`\n\nRemoved:\n\n- new\n\nMore."

      assert Enum.take(kinds(result), -3) == [:news, :input, :reply]
    end

    test "never mentions hidden entries", %{book: book, folder: folder} do
      change = fn _messages ->
        write(folder, %{
          "hidden.md" =>
            "---\nname: hidden\ndescription: X\nvisibility_labels: [inner]\n---\nHello."
        })

        Skillbook.reload(book)
        cmd("tiny")
      end

      refute :news in kinds(run(book, [change, "Done."]))
    end
  end

  test "a prompt that is too long keeps what is nearest to the first input", %{
    book: book,
    folder: folder
  } do
    for name <- ["tiny", "poem"] do
      text =
        "---\nname: #{name}\ndescription: #{String.duplicate(name <> " and more, ", 20)}\n---\n"

      write(folder, %{"#{name}.md" => text})
    end

    Skillbook.reload(book)
    prompt = [sections: [:skill_list], max_chars: 500]
    read = fn -> for [%{content: prompt} | _] <- asked(), do: prompt end

    assert %{transcript: transcript} = run(book, ["Hi."], [prompt: prompt], "A tiny question")
    assert [first] = read.()
    assert first =~ "- tiny: tiny and more"
    assert first =~ "Left out for lack of space: 1 skill. "
    refute first =~ "poem"

    # The same bytes for the next input, also if the prompt has to be made again.
    run(book, ["Hi."], [prompt: prompt, transcript: transcript], "Write poems")
    {:ok, read_again} = transcript |> Transcript.to_json() |> Transcript.from_json()
    run(book, ["Hi."], [prompt: prompt, transcript: read_again], "Write poems")
    assert read.() == [first, first]

    run(book, ["Hi."], [prompt: prompt], "Write poems")
    run(book, ["Hi."], [prompt: [nearest: ["tiny"]] ++ prompt], "Write poems")
    assert [other, ^first] = read.()
    assert other =~ "- poem: poem and more"
  end

  describe "a transcript" do
    test "can be continued", %{book: book} do
      first = run(book, ["Hello."], [], "Hi.")
      second = run(book, ["Fine."], [transcript: first.transcript], "How are you?")

      assert Enum.map(second.transcript.messages, & &1.kind) == [
               :prompt,
               :input,
               :reply,
               :input,
               :reply
             ]

      assert List.starts_with?(second.transcript.messages, first.transcript.messages)

      assert [_, [_, _, %{role: :assistant, content: "Hello."}, %{content: "How are you?"}]] =
               asked()
    end

    test "from JSON keeps its prompt unless skills changed", %{
      book: book,
      folder: folder
    } do
      keep = fn result ->
        {:ok, transcript} = result.transcript |> Transcript.to_json() |> Transcript.from_json()
        transcript
      end

      first = run(book, [cmd("mail.draft"), "Hello."], system: "You are Ann.")

      second =
        run(book, [cmd("mail.draft"), "Fine."], transcript: keep.(first), system: "You are Ann.")

      assert List.starts_with?(second.transcript.messages, first.transcript.messages)
      assert Enum.at(second.transcript.messages, -2).content =~ "The same is above"

      File.rm!(Path.join(folder, "tiny.md"))
      Skillbook.reload(book)
      third = run(book, ["Fine."], transcript: keep.(first), system: "You are Ann.")
      assert [%{content: new} | rest] = third.transcript.messages
      refute new =~ "tiny"
      assert List.starts_with?(rest, tl(first.transcript.messages))
    end

    test "of another profile is refused", %{book: book} do
      first = run(book, [cmd("secret"), "Hello."], profile: "inner")

      for {profile, message} <- [
            {"default",
             ~s(the transcript: expected one of the profile "default", got: one of "inner")},
            {"other",
             ~s(the transcript: expected one of the profile "other", got: one of "inner")}
          ] do
        assert_raise Skillbook.TranscriptError, message, fn ->
          run(book, ["No."], transcript: first.transcript, profile: profile)
        end
      end
    end

    test "loses texts that its profile may no longer see", %{book: book} do
      inner = %Skillbook.Profile{id: "ann", grants: ["inner"]}
      first = run(book, [cmd("secret"), cmd("tiny"), "Hello."], profile: inner)
      assert Transcript.to_json(first.transcript) =~ "Hush"

      transcript = %{
        first.transcript
        | left_out: [%{name: "secret", hash: "", command: "", answer: ""}]
      }

      second = run(book, ["Fine."], transcript: transcript, profile: %{inner | grants: []})
      assert [prompt, _, _, withdrawn, _, kept | _] = second.transcript.messages
      refute prompt.content =~ "secret"

      assert withdrawn.content =~
               "(This message had a text that has changed or can no longer be read."

      assert kept.content =~ "Be brief."
      refute Transcript.to_json(second.transcript) =~ "Hush"
      assert second.transcript.left_out == []

      # An entry that may be read again is kept by name.
      changed = %{
        first.transcript
        | view: nil,
          left_out: [%{name: "tiny", hash: "", command: "", answer: ""}]
      }

      third = run(book, ["Fine."], transcript: changed, profile: inner)
      assert [%{name: "tiny"}] = third.transcript.left_out
    end
  end

  test "a prompt with entries that are now hidden is replaced", %{
    tmp_dir: folder
  } do
    page = fn labels, text ->
      "---\nname: diary\ndescription: #{text}\nvisibility_labels: [#{labels}]\n---\nIt.\n"
    end

    write(folder, %{"diary/SKILL.md" => page.("", "Hush."), "open.md" => "# Open\n\nOpen.\n"})
    book = book(sources: [folder])
    model = Model.Function.new(fn _, _ -> "Done." end)

    run = fn transcript ->
      ended(Agent.run(book, "Hi", model: model, transcript: transcript)).transcript
    end

    first = run.(nil)
    assert hd(first.messages).content =~ "Hush."

    # Changes are sent as news and the prompt stays, unless an entry is gone.
    write(folder, %{"diary/SKILL.md" => page.("", "Loud.")})
    Skillbook.reload(book)
    second = run.(first)
    assert hd(second.messages) == hd(first.messages)
    write(folder, %{"diary/SKILL.md" => page.("inner", "Hush.")})
    Skillbook.reload(book)
    for transcript <- [first, second], do: refute(Transcript.to_json(run.(transcript)) =~ "Hush.")
  end

  describe "a transcript with parts of hidden texts" do
    test "loses them, whatever command returned them", %{tmp_dir: folder} do
      write(folder, %{
        "deep/SKILL.md" =>
          "---\nname: deep\ndescription: X\nvisibility_labels: [inner]\n---\n" <>
            String.duplicate("Hush ", 100),
        "deep/more.md" => "Hush, file.",
        "open/SKILL.md" =>
          "---\nname: open\ndescription: X\n---\n" <> String.duplicate("Loud ", 100),
        "open/more.md" => "Loud, file."
      })

      book = book(sources: [folder], max_result: 200)
      inner = %Skillbook.Profile{id: "ann", grants: ["inner"]}
      {:ok, seen} = Elixir.Agent.start_link(fn -> "" end)

      # Of each skill the page, cut, its second piece, the page as instructions, and a file.
      model =
        Model.Function.new(fn messages, _ ->
          said = List.last(messages).content
          id = with [_, id] <- Regex.run(~r/--id (\S+)/, said), do: id
          if is_binary(id), do: Elixir.Agent.update(seen, fn _ -> id end)
          id = Elixir.Agent.get(seen, & &1)

          case Enum.count(messages, &(&1.role == :assistant)) do
            0 -> cmd("get_skill: deep")
            1 -> cmd("results.read --id #{id} --from 210")
            2 -> cmd("deep")
            3 -> cmd("get_skill: deep/more.md")
            4 -> cmd("get_skill: open")
            5 -> cmd("open")
            6 -> cmd("get_skill: open/more.md")
            _ -> "Done."
          end
        end)

      run = fn options -> ended(Agent.run(book, "Hi", [model: model] ++ options)) end
      first = run.(profile: inner).transcript

      count = fn transcript, word ->
        Enum.count(transcript.messages, &(&1.kind == :report and &1.content =~ word))
      end

      assert {count.(first, "Hush"), count.(first, "Loud")} == {4, 3}

      # Parts are not restored.
      assert Transcript.activations(first) == []
      assert Agent.rehydrate(Skillbook.view(book, inner), first).text == ""
      {:ok, kept} = first |> Transcript.to_json() |> Transcript.from_json()

      for transcript <- [first, kept] do
        second = run.(profile: %{inner | grants: []}, transcript: transcript).transcript
        assert {count.(second, "Hush"), count.(second, "Loud")} == {0, 3}
        third = run.(profile: inner, transcript: transcript).transcript
        assert {count.(third, "Hush"), count.(third, "Loud")} == {4, 3}
      end
    end
  end

  describe "a transcript whose entries were replaced" do
    setup %{book: book} do
      profile = %Skillbook.Profile{id: "ann", grants: ["inner"]}
      result = run(book, [cmd("secret"), "Hello."], profile: profile)
      {:ok, profile: profile, transcript: result.transcript}
    end

    defp holds?(book, transcript, profile),
      do:
        Transcript.to_json(
          run(book, ["Fine."], transcript: transcript, profile: profile).transcript
        ) =~
          "Hush"

    test "by others with their name or alias loses their texts", %{
      book: book,
      folder: folder,
      transcript: transcript,
      profile: profile
    } do
      bare = %{profile | grants: []}
      assert holds?(book, transcript, profile)

      write(folder, %{
        "other.md" => "---\nname: other\ndescription: X\naliases: [secret]\n---\nAnother."
      })

      File.rm!(Path.join(folder, "secret.md"))
      Skillbook.reload(book)
      refute holds?(book, transcript, bare)

      write(folder, %{"other.md" => "---\nname: secret\ndescription: X\n---\nAnother."})
      Skillbook.reload(book)
      refute holds?(book, transcript, bare)
      {:ok, kept} = transcript |> Transcript.to_json() |> Transcript.from_json()
      refute holds?(book, kept, profile)
    end

    test "for the same profile stays, and the change is sent as news",
         %{book: book, folder: folder} = context do
      write(folder, %{
        "secret.md" => "---\nname: secret\ndescription: X\nvisibility_labels: [inner]\n---\nNew."
      })

      Skillbook.reload(book)
      assert holds?(book, context.transcript, context.profile)
      assert [news] = events(:news)
      assert news =~ "Changed:\n\n- secret"
    end
  end

  describe "compact/2" do
    # Conversations of random exchanges, as runs make them.
    defp conversation(seed) do
      :rand.seed(:exsss, {seed, 7, 7})
      text = fn -> String.duplicate("x", :rand.uniform(200)) end

      exchange = fn ->
        replies = for _ <- 1..:rand.uniform(3), kind <- [:reply, :report], do: kind

        [:input] ++
          Enum.random([[], [:news]]) ++ replies ++ Enum.random([[], [:note]]) ++ [:reply]
      end

      kinds = [:prompt | Enum.flat_map(1..:rand.uniform(5), fn _ -> exchange.() end)]

      messages =
        for {kind, place} <- Enum.with_index(kinds) do
          activation = %{name: "s#{place}", hash: "h", command: "c", answer: "a"}
          activations = if kind == :report, do: [activation], else: []
          %Message{kind: kind, content: text.(), at: @at, activations: activations}
        end

      %Transcript{profile: "a", messages: messages}
    end

    test "keeps replies with reports, alternating roles and activations" do
      for seed <- 1..300 do
        transcript = conversation(seed)
        budget = div(Transcript.tokens(transcript), :rand.uniform(5))
        compacted = Agent.compact(transcript, budget)

        assert hd(compacted.messages) == hd(transcript.messages)
        assert List.last(compacted.messages) == List.last(transcript.messages)
        last_input = transcript.messages |> Enum.reverse() |> Enum.find(&(&1.kind == :input))
        assert last_input in compacted.messages

        assert Enum.map_join(
                 Transcript.for_model(compacted),
                 &(&1.role |> to_string() |> String.first())
               ) =~
                 ~r/\As(ua)+\z/

        for {%{kind: :report}, place} <- Enum.with_index(compacted.messages) do
          assert Enum.at(compacted.messages, place - 1).kind == :reply
        end

        names = fn transcript -> transcript |> Transcript.activations() |> Enum.map(& &1.name) end
        assert names.(compacted) == names.(transcript)
        # Compacting again changes nothing, unless the required messages are larger.
        again = Agent.compact(compacted, budget)
        assert Transcript.tokens(again) <= max(budget, Transcript.tokens(compacted))
        assert names.(again) == names.(transcript)
      end
    end

    test "removes no more than necessary" do
      transcript = conversation(3)
      tokens = Transcript.tokens(transcript)
      assert Agent.compact(transcript, tokens) == transcript

      assert length(Agent.compact(transcript, tokens - 1).messages) <
               length(transcript.messages) + 1

      assert Transcript.tokens(Agent.compact(transcript, tokens - 30)) <= tokens
    end

    test "happens in a run, and read skills are restored", %{book: book} do
      long = String.duplicate("Words. ", 300)

      result =
        run(
          book,
          [
            cmd("mail.draft"),
            cmd("tiny") <> long,
            cmd("tiny") <> long,
            cmd("mail.draft"),
            "Done."
          ],
          max_context: 1_000
        )

      assert result.status == :done
      assert [%{restored: restored} | _] = events(:compacted)
      assert "mail.draft" in restored

      assert Enum.any?(
               result.transcript.messages,
               &(&1.kind == :note and &1.content =~ "You read this earlier")
             )

      # It is in the note, so the last answer points there.
      report = result.transcript.messages |> Enum.reverse() |> Enum.find(&(&1.kind == :report))
      assert report.content =~ "The same is above, in the answer to `get_skill: mail.draft`"
    end
  end

  describe "rehydrate/3" do
    defp read(names) do
      %Transcript{
        profile: "default",
        left_out: for(name <- names, do: %{name: name, hash: "", command: name, answer: ""})
      }
    end

    test "restores visible skills that fit, the most recent first", %{book: book} do
      inner = Skillbook.view(book, "inner")
      outer = Skillbook.view(book)

      for {view, names, room, restored, left_out} <- [
            {outer, [], 1_000, [], []},
            {outer, ["tiny", "poem"], 1_000, ["tiny", "poem"], []},
            {outer, ["poem", "tiny"], 1_000, ["poem", "tiny"], []},
            {outer, ["poem", "tiny"], 100, ["tiny"], ["poem"]},
            {outer, ["poem", "tiny"], 0, [], ["poem", "tiny"]},
            {outer, ["secret", "tiny"], 1_000, ["tiny"], []},
            {outer, ["secret", "tiny"], 0, [], ["tiny"]},
            {outer, ["gone"], 1_000, [], []},
            {inner, ["secret"], 1_000, ["secret"], []},
            {outer, ["mail.send --help"], 1_000, [], []}
          ] do
        given = Agent.rehydrate(view, read(names), max_tokens: room)

        assert {names, Enum.map(given.activations, & &1.name), given.left_out} ==
                 {names, restored, left_out}

        assert given.text == "" == (restored == [] and left_out == [])
        for name <- names -- (restored ++ left_out), do: refute(given.text =~ name)
        for name <- restored ++ left_out, do: assert(given.text =~ name)
      end
    end

    test "restores nothing that is still present", %{book: book} do
      result = run(book, [cmd("poem"), "Done."])
      assert Agent.rehydrate(Skillbook.view(book), result.transcript).text == ""
    end

    test "reads names that need quotes", %{tmp_dir: folder} do
      path = Path.join(folder, "odd")
      write(path, %{"a.md" => "---\nname: 'my \"odd\" skill'\ndescription: X\n---\nOdd."})
      view = view(path)
      assert [%{name: name}] = View.entries(view)
      assert Agent.rehydrate(view, read([name])).text =~ "Odd."
    end
  end

  test "works with a server that validates requests", %{
    book: book,
    folder: folder
  } do
    script = [
      ChatServer.refusal(429, "slow", [{"retry-after", "1"}]),
      ChatServer.answer(["Look.\n\n``", "`cmd\nmail.dra", "ft\n```"], usage: {10, 5}),
      [ChatServer.head(), {:chunk, "data: #{ChatServer.delta("Half a ")}\n\n"}],
      ChatServer.answer("sentence.", usage: {20, 5}),
      ChatServer.answer("More.")
    ]

    {_server, url} = ChatServer.start(script)
    model = Model.OpenAI.new!(url: url, model: "m", sleep: fn _ -> :ok end)
    result = run(book, [], model: model)
    assert %{status: :done, text: "Half a sentence.", turns: 3} = result
    assert %{prompt_tokens: prompt, completion_tokens: _, estimated: true} = result.usage
    assert prompt > 30
    assert [%{attempt: 2, delay: 1000}] = events(:retry)

    write(folder, %{"new.md" => "---\nname: new\ndescription: Brand new\n---\nHello."})
    Skillbook.reload(book)

    assert %{status: :done, text: "More."} =
             run(book, [], [model: model, transcript: result.transcript], "And?")

    assert_receive :played
  end
end
