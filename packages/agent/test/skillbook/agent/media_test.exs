defmodule Skillbook.Agent.MediaTest do
  # Images, files and audio in the inputs of runs.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.AgentRuns

  alias Skillbook.Model.{Media, Script}
  alias Skillbook.Test.Vendors
  alias Skillbook.Transcript.{Conversations, Log, Message}
  alias Skillbook.{Agent, Book, Conversation, Model, ModelError, Preflight, Profile, Transcript}

  @moduletag :tmp_dir
  @at ~U[2026-11-21 08:00:00Z]
  @bytes "the bytes of a picture"
  @photo Media.new!(type: "image/png", data: @bytes, name: "board.png")
  @note ~s([image: "board.png", image/png, 22 bytes])

  defmodule Hook do
    use Skillbook.Hook

    @impl true
    def before_turn(%{input: input}, options) do
      send(options[:test], {:input, input})
      options[:answer] || :cont
    end
  end

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/list.md" => page("x.list", handler("Text")),
      "board.md" => "---\nname: board\ndescription: Boards\n---\nThe board."
    })

    options = [sources: [folder], builtins: false, watch: false, store: ":memory:"]
    {:ok, options: options, folder: folder}
  end

  defp function(replies) do
    test = self()
    script = Script.new(replies)

    Model.Function.new(fn messages, options ->
      send(test, {:asked, messages})
      {:ok, answer} = Model.chat(script, messages, options, fn _text -> :ok end)
      answer.text
    end)
  end

  # The messages of each call of the model, without the system prompt.
  defp asked do
    receive do
      {:asked, messages} -> [Enum.reject(messages, &(&1.role == :system)) | asked()]
    after
      0 -> []
    end
  end

  for vendor <- Vendors.all(), protocol <- [:tools, :blocks] do
    test "a conversation of #{vendor} with #{protocol} has an image, and goes on", context do
      book = book(context.options)

      answers = [
        if(unquote(protocol) == :tools, do: {"x__list", "{}"}, else: "```cmd\nx.list\n```"),
        "A cat.",
        "Asleep."
      ]

      script = Vendors.start(unquote(vendor), Enum.map(answers, &Vendors.answer/1))
      options = [model: Vendors.model(script, cache: false), protocol: unquote(protocol)]
      {:ok, first} = Agent.run(book, ["What is this?", @photo], options)
      assert first.text == "A cat."
      {:ok, stored} = first.transcript |> Transcript.to_json() |> Transcript.from_json()
      {:ok, second} = Agent.run(book, "And now?", [transcript: stored] ++ options)
      assert second.text == "Asleep."
      assert %{"refused" => [], "bodies" => [_, _, _] = bodies} = Vendors.record(script)

      # It is sent each time.
      for body <- bodies,
          do: assert([_before, _after] = String.split(body, Base.encode64(@bytes)))
    end
  end

  test "the parts of an input stay in their order, with the messages beside it", context do
    book = book(context.options ++ [preflight: []])
    model = function(["Seen.", "Again."])
    input = ["Before:", @photo, "after the board:", @photo]
    result = ended(Agent.run(book, input, model: model))

    assert [[%{role: :user, content: ["Before:", @photo, "after the board:", @photo | rest]}]] =
             asked()

    # Skills are loaded by the words of the input.
    assert [preloaded] = rest
    assert preloaded =~ "The board."
    [input_message | _] = for %{kind: :input} = m <- result.transcript.messages, do: m
    assert input_message.content == input
  end

  test "what the model does not take is an error, and the conversation stays without it",
       context do
    book = book(context.options)
    script = Vendors.start("anthropic", [Vendors.answer("Hi."), Vendors.answer("Fine.")])
    {:ok, pid} = Conversation.start_link(book: book, id: "c", run: [model: Vendors.model(script)])

    memo = Media.new!(type: "audio/wav", data: "sound")
    assert {:ok, %{text: "Hi."}} = Conversation.ask(pid, "Hello")
    before = Conversation.transcript(pid)

    assert {:error, %{error: %ModelError{kind: :media} = error, result: result}} =
             Conversation.ask(pid, [memo])

    assert Exception.message(error) ==
             "the model does not take the messages: expected one of image/jpeg, image/png, " <>
               "image/gif, image/webp, application/pdf, text/plain for " <>
               "Skillbook.Model.Anthropic, got: audio/wav, 5 bytes in part 1 of message 1"

    assert {result.turns, result.transcript.messages} == {0, before.messages}
    assert {:ok, %{text: "Fine."}} = Conversation.ask(pid, ["And this?", @photo])
    assert %{"refused" => [], "bodies" => [_, _]} = Vendors.record(script)
  end

  test "a conversation as a process takes them, and tells them", context do
    book = book(context.options)
    model = function(["A cat.", "Asleep."])
    {:ok, pid} = Conversation.start_link(book: book, id: "c", run: [model: model])
    :ok = Conversation.subscribe(pid)
    input = ["What is this?", @photo]
    {:ok, turn} = Conversation.say(pid, input)
    assert_receive {:skillbook_conversation, "c", {:started, ^turn, ^input}}
    assert_receive {:skillbook_conversation, "c", {:ended, ^turn, {:ok, %{text: "A cat."}}}}
  end

  test "other values are refused where they are passed", context do
    book = book(context.options)
    {:ok, pid} = Conversation.start_link(book: book, run: [model: function([])])

    for {function, call} <- [
          {"`input` of Skillbook.Agent.run/3", &Agent.run(book, &1, model: function([]))},
          {"`input` of Skillbook.Conversation.say/2", &Conversation.say(pid, &1)},
          {"`input` of Skillbook.Conversation.ask/3", &Conversation.ask(pid, &1)}
        ],
        {value, shown} <- [{:hi, ":hi"}, {[], "[]"}, {["a", 1], ~s(["a", 1])}] do
      message =
        "expected text, or a list of texts and Skillbook.Model.Media, as the argument " <>
          "#{function}, got: #{shown}"

      assert_raise ArgumentError, message, fn -> call.(value) end
    end
  end

  test "a hook before a turn gets and changes them", context do
    for {answer, expected} <- [
          {nil, ["See", @photo]},
          {{:cont, "See it"}, "See it"},
          {{:cont, [@photo]}, [@photo]}
        ] do
      hooks = [{Hook, test: self(), answer: answer}]
      book = book(context.options ++ [hooks: hooks])
      {:ok, result} = Agent.run(book, ["See", @photo], model: function(["Seen."]))
      assert_receive {:input, ["See", @photo]}
      assert Enum.find(result.transcript.messages, &(&1.kind == :input)).content == expected
    end

    book = book(context.options ++ [hooks: [{Hook, test: self(), answer: {:cont, [@at]}}]])

    assert_raise ArgumentError, ~r"`input` of the callback before_turn/2 of a hook", fn ->
      Agent.run(book, "See", model: function([]))
    end
  end

  test "logs and records name them, and have no bytes", %{folder: folder} = context do
    path = Path.join(folder, "log.jsonl")
    log = start_supervised!({Log, path: path})
    book = book(context.options ++ [conversations: []])
    on_event = Log.on_event(log, conversation: "c")
    input = [@photo, "What is this?"]
    {:ok, _} = Agent.run(book, input, model: function(["A cat."]), on_event: on_event)
    text = "#{@note}\n\nWhat is this?"
    refute File.read!(path) =~ Base.encode64(@bytes)
    assert {:ok, [%{transcript: %{messages: messages}}]} = Log.read(path)
    assert text in Enum.map(messages, & &1.content)
    everybody = Profile.unrestricted()
    {:ok, [recorded]} = Conversations.list(Book.fetch!(book), everybody, 10)
    assert recorded.title == @note
    {:ok, _, parts} = Conversations.fetch(Book.fetch!(book), everybody, recorded.run)
    assert text in Enum.map(parts, & &1.content["content"])
    refute inspect(parts) =~ @bytes
  end

  test "a compaction drops them, and a summary names them", context do
    book = book(context.options)
    large = Media.new!(type: "application/pdf", data: String.duplicate("x", 200_000))

    messages =
      for {kind, content} <- [
            input: ["Read this", %{large | name: "terms.pdf"}],
            reply: "Done.",
            input: "And?",
            reply: "Nothing."
          ],
          do: %Message{kind: kind, content: content, at: @at}

    transcript = %Transcript{profile: "default", messages: messages}
    assert Transcript.tokens(transcript) in 4_000..4_100
    assert transcript |> Agent.compact(1_000) |> Transcript.tokens() < 100
    test = self()

    summing =
      Model.Function.new(fn [_, %{content: text}], _options ->
        send(test, {:summed_up, text})
        "They read terms.pdf."
      end)

    options = [transcript: transcript, max_context: 2_000, summary: [model: summing]]
    ended(Agent.run(book, "Go on.", [model: function(["Yes."])] ++ options))
    assert_received {:summed_up, text}
    assert text =~ ~s(Read this\n\n[file: "terms.pdf", application/pdf, 200000 bytes])
    refute inspect(asked()) =~ "Read this"
  end

  test "more bytes than a request may have drop the oldest messages", context do
    book = book(context.options)
    script = Vendors.start("openai", for(n <- 1..3, do: Vendors.answer("#{n}.")))
    model = Vendors.model(script, media: [max_total: 30])

    {:ok, result} =
      Enum.reduce(1..3, {:ok, nil}, fn number, {:ok, before} ->
        options = [model: model, transcript: before && before.transcript]
        Agent.run(book, ["Number #{number}", @photo], options)
      end)

    assert result.text == "3."
    assert %{"refused" => [], "bodies" => [_, _, last]} = Vendors.record(script)
    assert last =~ "Number 3"
    refute last =~ "Number 1"
    assert [_before, _after] = String.split(last, Base.encode64(@bytes))
  end

  test "an input without a reply does not count against the next one", context do
    book = book(context.options)
    failure = %{status: 400, error: %{message: "no"}}
    script = Vendors.start("openai", [failure, Vendors.answer("Seen.")])
    model = Vendors.model(script, media: [max_parts: 1])
    {:error, %{result: failed}} = Agent.run(book, ["First", @photo], model: model)
    options = [model: model, transcript: failed.transcript]
    assert {:ok, %{text: "Seen."}} = Agent.run(book, ["Second", @photo], options)
    assert %{"refused" => [], "bodies" => [_, last]} = Vendors.record(script)
    refute last =~ "First"
  end

  test "too many are refused before the run", context do
    book = book(context.options)
    model = Model.OpenAI.new!(url: "http://localhost:1", model: "m", media: [max_parts: 1])
    {:error, %{error: error, result: result}} = Agent.run(book, [@photo, @photo], model: model)

    assert {error.kind, result.turns, result.transcript.messages} == {:too_long, 0, []}
  end

  test "the words beside them find skills", context do
    book = book(context.options)
    messages = [%{role: :user, content: ["the board", @photo]}]
    view = Skillbook.view(book)
    assert %{picks: [%{name: "board"}]} = Preflight.run(view, messages)
    assert Skillbook.prompt(view, messages: messages) =~ "board"
  end
end
