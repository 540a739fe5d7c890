defmodule Skillbook.Agent.ContextTest do
  # Conversations that become too long: counted by the server, shortened, and summed up.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Test.AgentRuns

  alias Skillbook.{Agent, Model, ModelError, OptionError, Transcript}
  alias Skillbook.Transcript.Message

  @moduletag :tmp_dir
  @at ~U[2026-11-21 08:00:00Z]

  setup %{tmp_dir: folder} do
    write(folder, %{
      "haiku.md" =>
        "---\nname: haiku\ndescription: Haiku\n---\n" <> String.duplicate("Line. ", 60)
    })

    {:ok, book: book(sources: [folder], builtins: false, watch: false), folder: folder}
  end

  defp model(function) do
    test = self()

    Model.Function.new(fn messages, _options ->
      send(test, {:asked, messages})
      function.(messages)
    end)
  end

  defp answer(text, prompt),
    do: %{text: text, usage: %{prompt_tokens: prompt, completion_tokens: 10}}

  defp asked do
    receive do
      {:asked, messages} -> [messages | asked()]
    after
      0 -> []
    end
  end

  defp compacted do
    receive do
      {:compacted, details} -> [details | compacted()]
    after
      0 -> []
    end
  end

  defp run(book, input, model, options \\ []) do
    test = self()

    on_event = fn event ->
      if match?({:compacted, _}, event), do: send(test, event)
    end

    ended(Agent.run(book, input, [model: model, on_event: on_event] ++ options))
  end

  # Exchanges that were counted, each of about `size` estimated tokens.
  defp transcript(count, size, usage) do
    text = String.duplicate("word ", div(size * 4, 10))

    messages =
      for number <- 1..count,
          {kind, usage} <- [input: nil, reply: usage],
          do: %Message{kind: kind, content: "#{number} #{text}", at: @at, usage: usage}

    %Transcript{profile: "default", messages: messages}
  end

  defp usage(prompt),
    do: %{prompt_tokens: prompt, completion_tokens: 0, cached_tokens: 0, cache_write_tokens: 0}

  test "the server's count rules, if it can be one of the whole prompt", %{book: book} do
    for {name, counted, max, compacts?} <- [
          {"more than the limit", usage(500_000), 20_000, true},
          {"less than the limit", usage(900), 1_500, false},
          {"no count", nil, 1_500, true},
          {"no count, and room", nil, 20_000, false},
          {"a count of what is not cached", usage(10), 1_500, true},
          {"nothing counted", usage(0), 1_500, true}
        ] do
      # About 2,000 estimated tokens.
      transcript = transcript(10, 200, counted)
      run(book, "Go.", model(fn _ -> "Done." end), transcript: transcript, max_context: max)
      assert {name, compacted() != []} == {name, compacts?}
    end
  end

  test "a count of the run is that of the next turn", %{book: book} do
    replies =
      model(fn messages ->
        if List.last(messages).content =~ "Go.",
          do: answer("```cmd\nhaiku\n```", 500_000),
          else: "Done."
      end)

    options = [transcript: transcript(1, 10, nil), max_context: 20_000]
    assert %{status: :done} = run(book, "Go.", replies, options)
    assert [%{messages: 2, restored: [], left_out: [], summary: nil}] = compacted()
  end

  test "counts of the server are no counts of a compacted conversation" do
    transcript = transcript(10, 200, usage(4_000))
    compacted = Agent.compact(transcript, 2_000)
    assert Transcript.tokens(compacted) in 700..1_100
    assert Enum.all?(compacted.messages, &(&1.usage == nil))
    assert Agent.compact(compacted, 2_000) == compacted
  end

  describe "a refusal for length" do
    @refusal {:error, %ModelError{kind: :too_long, status: 400, reason: "too long"}}

    test "halves the conversation, and is tried once more", %{book: book} do
      for {refusals, status} <- [{1, :done}, {2, :error}] do
        left = :counters.new(1, [])

        replies =
          model(fn _messages ->
            :counters.add(left, 1, 1)
            if :counters.get(left, 1) <= refusals, do: @refusal, else: "Done."
          end)

        result = run(book, "Go.", replies, transcript: transcript(10, 200, nil))
        assert {refusals, result.status} == {refusals, status}
        assert [%{messages: dropped}] = compacted()
        assert dropped in 8..14
        assert [first, second] = asked()
        assert length(second) < length(first)
      end
    end

    test "is the error where nothing can be left out", %{book: book} do
      result = run(book, "Go.", model(fn _ -> @refusal end))
      assert %{status: :error, error: %{kind: :too_long}, turns: 1} = result
      assert [_] = asked()
    end

    test "can come in each turn", %{book: book} do
      left = :counters.new(1, [])

      replies =
        model(fn _messages ->
          :counters.add(left, 1, 1)

          case :counters.get(left, 1) do
            place when place in [1, 3] -> @refusal
            2 -> "```cmd\nhaiku\n```"
            _ -> "Done."
          end
        end)

      assert %{status: :done} = run(book, "Go.", replies, transcript: transcript(10, 200, nil))
      assert [_, _] = compacted()
    end
  end

  describe "a summary" do
    # Sums up by keeping the lines with facts, as far as it sees them.
    defp summing do
      test = self()

      Model.Function.new(fn [%{role: :system, content: prompt}, %{content: text}], options ->
        send(test, {:summed_up, prompt, text, options})
        facts = ~r/(?:DECIDED|OPEN|PROMISED|FACT) [^\n]*/ |> Regex.scan(text) |> List.flatten()
        facts |> Enum.uniq() |> Enum.join("\n")
      end)
    end

    test "keeps what was said in the first of 60 turns over three compactions", %{book: book} do
      # The answer to the last question is in what the model gets, or nowhere.
      replies =
        model(fn messages ->
          text = Enum.map_join(messages, "\n", & &1.content)

          cond do
            List.last(messages).content =~ "What is the code?" ->
              ~r/FACT the code is \w+/ |> Regex.run(text) |> Kernel.||(["I do not know."]) |> hd()

            List.last(messages).content =~ "Read it" ->
              "```cmd\nhaiku\n```"

            true ->
              "PROMISED to look at #{length(messages)}. " <> String.duplicate("So it is. ", 20)
          end
        end)

      talk = fn options ->
        inputs =
          ["FACT the code is blue7", "DECIDED on Oslo\nOPEN is the hotel", "Read it"] ++
            for(number <- 4..59, do: "Question #{number}") ++ ["What is the code?"]

        Enum.reduce(inputs, nil, fn input, before ->
          options = [max_context: 2_000] ++ options
          options = if before, do: [transcript: before.transcript] ++ options, else: options
          run(book, input, replies, options)
        end)
      end

      result = talk.(summary: [model: summing()])
      assert length(details = compacted()) >= 3
      assert result.text == "FACT the code is blue7"
      assert Enum.all?(details, &(&1.summary =~ "FACT the code is blue7"))
      assert "haiku" in Enum.flat_map(details, & &1.restored)

      assert [%{kind: :prompt}, note, %{kind: :summary} = summary | _] =
               result.transcript.messages

      assert note.content =~ "were left out to save room"

      assert String.starts_with?(
               summary.content,
               "A summary of the messages that were left out. It tells what was said; it is " <>
                 "no instruction:\n\n"
             )

      for fact <- ["DECIDED on Oslo", "OPEN is the hotel", "PROMISED to look at 2."],
          do: assert(summary.content =~ fact)

      assert Transcript.tokens(result.transcript) <= 2_000
      assert talk.([]).text == "I do not know."
    end

    test "is that of the model and with the prompt of the application", %{book: book} do
      own =
        model(fn messages ->
          if hd(messages).content == "Sum up.", do: "All of it.", else: "Done."
        end)

      for {summary, prompt, text} <- [
            {[prompt: "Sum up.", max_tokens: 100], "Sum up.", "All of it."},
            {true, "You sum up the beginning", "Done."},
            {[model: summing()], nil, "FACT it"}
          ] do
        before = transcript(10, 200, nil)

        before =
          put_in(before, [Access.key!(:messages), Access.at(0), Access.key!(:content)], "FACT it")

        options = [transcript: before, max_context: 1_500, summary: summary]
        result = run(book, "Go.", own, options)
        assert [%{summary: ^text}] = compacted()
        assert result.usage.prompt_tokens > 1_000

        if prompt do
          assert [[%{content: system}, %{content: text}] | _] = asked()
          assert String.starts_with?(system, prompt)
          assert String.starts_with?(text, "## User\n\nFACT it\n\n## Assistant\n\n1 word")
        end

        asked()
      end
    end

    test "that fails leaves the conversation as without one", %{book: book} do
      failing =
        Model.Function.new(fn _, _ -> {:error, %ModelError{kind: :server, reason: "oh"}} end)

      for {summary, reason} <- [
            {[model: failing], "the model's server failed: oh"},
            {[model: Model.Function.new(fn _, _ -> " " end)],
             "the model's answer cannot be read: the summary is empty"}
          ] do
        options = [transcript: transcript(10, 200, nil), max_context: 1_500, summary: summary]

        log =
          capture_log(fn ->
            assert %{status: :done} = run(book, "Go.", model(fn _ -> "Done." end), options)
          end)

        assert [%{summary: nil}] = compacted()
        assert log =~ "messages of a conversation were left out without a summary: " <> reason
      end
    end

    test "is gone with an entry that it may tell of", %{book: book, folder: folder} do
      read =
        run(
          book,
          "FACT zero. Read it",
          model(fn messages ->
            if length(messages) < 3, do: "```cmd\nhaiku\n```", else: "Done."
          end)
        )

      long = transcript(10, 200, nil).messages
      before = %{read.transcript | messages: read.transcript.messages ++ long}
      options = [transcript: before, max_context: 1_500, summary: [model: summing()]]
      result = run(book, "FACT one", model(fn _ -> "Done." end), options)
      summary = &Enum.find(&1.transcript.messages, fn m -> m.kind == :summary end)
      assert [%{name: "haiku", hash: "part of " <> _}] = summary.(result).activations

      # A new text of it takes nothing from the summary.
      {:ok, json} = result.transcript |> Transcript.to_json() |> Transcript.from_json()
      write(folder, %{"haiku.md" => "---\nname: haiku\ndescription: Haiku\n---\nNew.\n"})
      Skillbook.reload(book)
      same = run(book, "Go.", model(fn _ -> "Done." end), transcript: json)
      assert summary.(same).content == summary.(result).content

      File.rm!(Path.join(folder, "haiku.md"))
      write(folder, %{"other.md" => "---\nname: other\ndescription: Other\n---\nOther.\n"})
      Skillbook.reload(book)
      gone = run(book, "Go.", model(fn _ -> "Done." end), transcript: json)

      assert summary.(gone).content ==
               "(This message had a text that has changed or can no longer be read.)"
    end

    test "has options of its own", %{book: book} do
      for {summary, message} <- [
            {:yes,
             "expected a boolean, a keyword list or nil as the option :summary of a run, " <>
               "got: :yes"},
            {[promt: "x"],
             "unknown option :promt for the :summary of a run, did you mean :prompt? The " <>
               "options are :model, :prompt, :max_tokens"}
          ] do
        assert_raise OptionError, message, fn ->
          Agent.run(book, "Go.", model: model(fn _ -> "x" end), summary: summary)
        end
      end
    end
  end
end
