defmodule Skillbook.Agent.ResultMediaTest do
  # Images, sounds and files in the results of commands.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Test.AgentRuns

  alias Skillbook.{Agent, Model, Result, SQL, Transcript}
  alias Skillbook.Model.{Media, Script}
  alias Skillbook.Test.Vendors
  alias Skillbook.Transcript.Log

  @moduletag :tmp_dir
  @bytes "the bytes of a picture"
  @base64 Base.encode64(@bytes)

  defmodule Draw do
    @behaviour Skillbook.Handler

    @impl true
    def execute(_flags, context),
      do: {:ok, Result.ok("Drawn.", metadata: %{media: context.assigns[:media]})}
  end

  setup %{tmp_dir: folder} do
    fields = [handler: inspect(Draw), effects: "read"]
    write(folder, %{"x/draw.md" => page("x.draw", fields)})
    options = [sources: [folder], builtins: false, watch: false, store: ":memory:"]
    {:ok, options: options, folder: folder}
  end

  defp image(data \\ @bytes), do: %{type: "image/png", data: data}
  defp call(:tools), do: {"x__draw", "{}"}
  defp call(:blocks), do: "```cmd\nx.draw\n```"

  for vendor <- Vendors.all(), protocol <- [:tools, :blocks] do
    test "the model of #{vendor} sees the picture of a result with #{protocol}", context do
      book = book(context.options)
      answers = [call(unquote(protocol)), "A cat.", "Asleep."]
      script = Vendors.start(unquote(vendor), Enum.map(answers, &Vendors.answer/1))

      options = [
        model: Vendors.model(script, cache: false),
        protocol: unquote(protocol),
        assigns: %{media: [image()]}
      ]

      first = ended(Agent.run(book, "Draw a cat.", options))
      {:ok, stored} = first.transcript |> Transcript.to_json() |> Transcript.from_json()
      assert stored.messages == first.transcript.messages
      second = ended(Agent.run(book, "And now?", [transcript: stored] ++ options))
      assert {first.text, second.text} == {"A cat.", "Asleep."}
      assert %{"refused" => [], "bodies" => [before | bodies]} = Vendors.record(script)
      refute before =~ @base64

      # Without tools, the results of a conversation are written as a report.
      for body <- bodies, do: assert([_before, _after] = String.split(body, @base64))
    end
  end

  # A model that tells the message with the result.
  defp told(options, media) do
    test = self()
    script = Script.new([call(:blocks), "Seen."])

    function =
      Model.Function.new(fn messages, options ->
        send(test, {:last, List.last(messages).content})
        {:ok, answer} = Model.chat(script, messages, options, fn _text -> :ok end)
        answer.text
      end)

    run = [model: function, protocol: :blocks, assigns: %{media: media}]
    assert ended(Agent.run(book(options), "Draw.", run)).text == "Seen."
    assert_receive {:last, "Draw."}
    assert_receive {:last, content}
    content
  end

  test "media are beside the text, and notes are in it in place of those that are none",
       context do
    large = fn count -> for _ <- 1..count, do: image("x") end
    text = "[1] x.draw\nok\n  Drawn."

    for {media, expected} <- [
          {nil, text},
          {[], text},
          {"no list", text},
          {[image() | :improper], text},
          {[image()], [text, Media.new!(type: "image/png", data: @bytes)]},
          {[Map.put(image(), :uri, "file:///tmp/a.png")],
           [text, Media.new!(type: "image/png", data: @bytes, name: "a.png")]},
          {[Map.put(image(), :uri, "a\nb")], [text, Media.new!(type: "image/png", data: @bytes)]},
          {[%{type: "png", data: "x"}], text <> "\n[a medium that is none] is not shown"},
          {[%{type: "image/png", data: ""}, 7],
           text <> String.duplicate("\n[a medium that is none] is not shown", 2)},
          {large.(21),
           [text <> "\n[image: image/png, 1 bytes] is not shown"] ++
             List.duplicate(Media.new!(type: "image/png", data: "x"), 20)}
        ] do
      assert {media, told(context.options, media)} == {media, expected}
    end
  end

  test "what the model does not take is a note, and its run goes on", context do
    book = book(context.options)
    sound = %{type: "audio/wav", data: "sound"}

    for {limits, noted} <- [
          {[], "[audio: audio/wav, 5 bytes] is not shown"},
          {[max_bytes: 10], "[image: image/png, 22 bytes] is not shown"},
          {[max_total: 30], "[image: image/png, 22 bytes] is not shown"},
          {[types: []], "[image: image/png, 22 bytes] is not shown"}
        ] do
      answers = [call(:tools), "Seen."]
      script = Vendors.start("anthropic", Enum.map(answers, &Vendors.answer/1))
      model = Vendors.model(script, cache: false, media: limits)
      media = [image(), sound, image()]
      result = ended(Agent.run(book, "Draw.", model: model, assigns: %{media: media}))
      assert result.text == "Seen."
      assert %{"refused" => [], "bodies" => [_, body]} = Vendors.record(script)
      assert body =~ noted
    end
  end

  test "logs, kept conversations and results in journals have notes, and no bytes", context do
    path = Path.join(context.folder, "log.jsonl")
    secret = String.duplicate("s3cret", 1_000)

    text =
      capture_log(fn ->
        on_event = Log.on_event(start_supervised!({Log, path: path}), conversation: "c")
        store = Path.join(context.folder, "book.db")
        kept = [conversations: [], durable: true, profiles: [[id: "ann"]], store: store]
        book = book(Keyword.merge(context.options, kept))
        sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))

        shown = fn table ->
          %{rows: rows} = SQL.query!(sql, "select * from skillbook_#{table}")
          refute {table, rows} == {table, []}
          IO.puts(:stderr, inspect(rows, limit: :infinity, printable_limit: :infinity))
        end

        # A run that ends takes its calls out of the journal.
        model =
          Model.Function.new(fn messages, _options ->
            if length(messages) == 2, do: call(:blocks), else: shown.("agent_calls") && "Seen."
          end)

        run = [model: model, protocol: :blocks, profile: "ann"]
        run = [on_event: on_event, assigns: %{media: [image(secret)]}] ++ run
        assert ended(Agent.run(book, "Draw.", run)).text == "Seen."
        for table <- ~w(conversations conversation_parts), do: shown.(table)
      end)

    refute text =~ "s3crets3cret"
    refute text =~ String.slice(Base.encode64(secret), 0, 20)
    assert {:ok, [%{transcript: %{messages: messages}}]} = Log.read(path)
    assert Enum.any?(messages, &(&1.content =~ "[image: image/png, 6000 bytes]"))
    refute File.read!(path) =~ ~r/s3crets3cret|czNjcmV0czNjcmV0/

    result = Result.ok("Drawn.", metadata: %{media: [image(secret), 7]})

    assert Agent.ResultMedia.notes(result) ==
             ["[image: image/png, 6000 bytes]", "[a medium that is none]"]
  end
end
