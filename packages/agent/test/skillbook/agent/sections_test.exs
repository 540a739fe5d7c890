defmodule Skillbook.Agent.SectionsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agent, Model, OptionError, Transcript}

  @moduletag :tmp_dir
  @heading "Context from the application:\n\n"
  @replaced "This replaces the context that was given before.\n\n"
  @gone "The context from the application that was given before no longer applies."

  setup %{tmp_dir: folder} do
    write(folder, %{
      "haiku.md" => "---\nname: haiku\ndescription: Haiku\nlabels: [poet]\n---\nThree lines.\n"
    })

    {:ok, mood} = Elixir.Agent.start_link(fn -> "calm" end)
    section = {"Mood", fn _context -> Elixir.Agent.get(mood, & &1) end}

    book =
      book(
        sources: [folder],
        store: ":memory:",
        watch: false,
        profiles: [[id: "ann", grants: ["poet"]]],
        sections: [section, {"Said", fn %{assigns: assigns} -> assigns[:note] end}]
      )

    {:ok, book: book, mood: mood, folder: folder}
  end

  # Returns the result, and the messages that the model got.
  defp run(book, input, options \\ []) do
    test = self()

    model =
      Model.Function.new(fn messages, _options ->
        send(test, {:messages, messages})
        "Done with #{input}"
      end)

    {:ok, result} = Agent.run(book, input, [model: model, profile: "ann"] ++ options)
    assert_receive {:messages, messages}
    {result.transcript, messages}
  end

  defp contexts(transcript), do: for(%{kind: :context} = m <- transcript.messages, do: m.content)
  defp set(mood, text), do: Elixir.Agent.update(mood, fn _ -> text end)

  test "come before the input, only when their text has changed", %{book: book, mood: mood} do
    calm = @heading <> "Mood:\n  calm"
    {first, sent} = run(book, "One")
    assert Enum.map(first.messages, & &1.kind) == [:prompt, :context, :input, :reply]
    assert List.last(sent) == %{role: :user, content: calm <> "\n\nOne"}

    {second, sent_again} = run(book, "Two", transcript: first)
    assert contexts(second) == [calm]
    assert List.last(sent_again) == %{role: :user, content: "Two"}
    # The bytes before stay the same.
    assert List.starts_with?(sent_again, sent)

    set(mood, "angry")
    angry = @heading <> "Mood:\n  angry"
    {third, sent_third} = run(book, "Three", transcript: second)
    assert contexts(third) == [calm, @replaced <> angry]
    assert List.starts_with?(sent_third, sent_again)

    {fourth, _} = run(book, "Four", transcript: third)
    assert contexts(fourth) == contexts(third)

    set(mood, nil)
    {fifth, _} = run(book, "Five", transcript: fourth)
    assert contexts(fifth) == contexts(fourth) ++ [@gone]
    {sixth, _} = run(book, "Six", transcript: fifth)
    assert contexts(sixth) == contexts(fifth)

    set(mood, "calm")
    {seventh, _} = run(book, "Seven", transcript: sixth)
    assert contexts(seventh) == contexts(sixth) ++ [@replaced <> calm]
  end

  test "follow the call's assigns, and are told as an event", %{book: book} do
    test = self()

    {transcript, _} =
      run(book, "One",
        commands: [assigns: %{note: "hello"}],
        on_event: &send(test, {:event, &1})
      )

    text = @heading <> "Mood:\n  calm\n\nSaid:\n  hello"
    assert contexts(transcript) == [text]
    assert_receive {:event, {:context, ^text}}
  end

  test "of a run replace those of the book", %{book: book} do
    assert {%{messages: [%{kind: :prompt}, %{kind: :input} | _]}, _} =
             run(book, "One", sections: [])

    {transcript, _} = run(book, "One", sections: [{"Own", "yes"}])
    assert contexts(transcript) == [@heading <> "Own:\n  yes"]

    assert_raise OptionError, ~r/:sections of a run, got: :nope/, fn ->
      run(book, "One", sections: [:nope])
    end
  end

  defp through_json(transcript) do
    {:ok, read} = transcript |> Transcript.to_json() |> Transcript.from_json()
    read
  end

  test "a conversation from JSON keeps its messages, byte for byte", %{book: book, mood: mood} do
    {transcript, sent} = run(book, "One")

    Enum.reduce(2..8, {transcript, sent}, fn number, {transcript, sent} ->
      if rem(number, 2) == 0, do: set(mood, "mood #{number}")
      {transcript, more} = run(book, "Input #{number}", transcript: through_json(transcript))
      assert List.starts_with?(more, sent)
      {transcript, more}
    end)
  end

  test "a conversation from JSON of other rights, or of lost entries, loses them", context do
    %{book: book, mood: mood, folder: folder} = context
    {transcript, _} = run(book, "One")
    set(mood, "new")
    read = through_json(transcript)
    old = %{read | seen: nil}
    other = put_in(read.seen.rights, "other")
    many = put_in(read.seen.entries, nil)

    for transcript <- [old, other, many] do
      {continued, _} = run(book, "Two", transcript: transcript)
      assert contexts(continued) == [@heading <> "Mood:\n  new"]

      assert Enum.map(continued.messages, & &1.kind) ==
               [:prompt, :input, :reply, :context, :input, :reply]
    end

    # More entries are no loss.
    write(folder, %{"ode.md" => "---\nname: ode\ndescription: Ode\n---\nLong lines.\n"})
    Skillbook.reload(book)
    {continued, _} = run(book, "Two", transcript: read)
    assert [@heading <> "Mood:\n  calm", @replaced <> _] = contexts(continued)

    File.rm!(Path.join(folder, "haiku.md"))
    Skillbook.reload(book)
    {continued, messages} = run(book, "Two", transcript: read)
    assert contexts(continued) == [@heading <> "Mood:\n  new"]
    refute inspect(messages) =~ "calm"
  end

  test "a view that lost an entry removes them", %{book: book, folder: folder, mood: mood} do
    {transcript, _} = run(book, "One")
    set(mood, "new")
    {transcript, _} = run(book, "Two", transcript: transcript)
    assert length(contexts(transcript)) == 2
    File.rm!(Path.join(folder, "haiku.md"))
    Skillbook.reload(book)
    {transcript, messages} = run(book, "Three", transcript: transcript)
    assert contexts(transcript) == [@heading <> "Mood:\n  new"]
    refute inspect(messages) =~ "calm"
  end

  test "compaction keeps the newest only", %{book: book, mood: mood} do
    transcript =
      for number <- 1..6, reduce: nil do
        transcript ->
          set(mood, "mood #{number}")
          input = "Input #{number} " <> String.duplicate("word ", 100)
          book |> run(input, transcript: transcript) |> elem(0)
      end

    newest = @replaced <> @heading <> "Mood:\n  mood 6"
    assert length(contexts(transcript)) == 6 and List.last(contexts(transcript)) == newest
    compacted = Agent.compact(transcript, 700)
    assert contexts(compacted) == [newest]
    assert [:prompt, :note, :context | rest] = Enum.map(compacted.messages, & &1.kind)
    assert List.last(rest) == :reply and :input in rest
    # The smallest possible conversation still has it.
    assert contexts(Agent.compact(transcript, 1)) == [newest]

    # And it is not sent again.
    {continued, _} = run(book, "More", transcript: compacted)
    assert contexts(continued) == [newest]
  end

  test "dispatched agents and workflows of prose have none", %{book: book} do
    test = self()

    model =
      Model.Function.new(fn messages, _options ->
        send(test, {:messages, messages})

        if List.last(messages).content =~ "Dispatch!",
          do: "```cmd\nagent.dispatch --mission Nested --skills tasks.search\n```",
          else: "Done."
      end)

    {:ok, _} = Agent.run(book, "Dispatch!", model: model, profile: "ann")
    assert_receive {:messages, [_prompt, %{content: @heading <> _}]}
    assert_receive {:messages, [_prompt, %{content: "Nested" <> _} = nested]}
    refute nested.content =~ "Context from"
  end
end
