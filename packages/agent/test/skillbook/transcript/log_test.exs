defmodule Skillbook.Transcript.LogTest do
  use Skillbook.SkillsCase, async: true

  import Bitwise
  import ExUnit.CaptureLog

  alias Skillbook.{Agent, Model, ModelError, OptionError, Transcript, TranscriptError}
  alias Skillbook.Support.JSON
  alias Skillbook.Transcript.{Log, Message}

  doctest Skillbook.Transcript.Log

  @moduletag :tmp_dir
  @at ~U[2026-03-01 08:00:00Z]

  # Doctests have no folder.
  setup context do
    {:ok, path: Path.join(context[:tmp_dir] || "", "a [b]{c}.jsonl")}
  end

  defp start(path, options \\ []),
    do: start_supervised!({Log, [path: path] ++ options}, id: make_ref())

  defp message(content, fields \\ []),
    do: struct!(%Message{kind: :input, content: content, at: @at}, fields)

  defp say(log, id, message, options \\ []),
    do: Log.on_event(log, [conversation: id] ++ options).({:message, message})

  defp contents(path) do
    {:ok, conversations} = Log.read(path)
    for c <- conversations, do: {c.id, Enum.map(c.transcript.messages, & &1.content)}
  end

  defp lines(path), do: path |> File.read!() |> String.split("\n", trim: true)

  test "has the messages of runs and of agents that they dispatch", %{path: path} do
    book = book(store: ":memory:", watch: false, profiles: [[id: "ann"]])
    log = start(path)

    model =
      Model.Function.new(fn messages, _options ->
        case List.last(messages).content do
          "Go." -> "```cmd\nagent.dispatch --mission Nested --skills memory.*\n```"
          "Nested" -> "```cmd\nmemory.save --content tea\n```"
          _ -> "Done."
        end
      end)

    options = [
      model: model,
      profile: "ann",
      on_event: Log.on_event(log, conversation: "c-1", profile: "ann")
    ]

    {:ok, result} = Agent.run(book, "Go.", options)
    {:ok, result} = Agent.run(book, "More.", [transcript: result.transcript] ++ options)

    assert {:ok, [%{id: "c-1", agent: nil} = own, %{id: "c-1", agent: "agent-1"} = nested]} =
             Log.read(path)

    assert own.transcript == %{result.transcript | view: nil}

    assert Enum.map(nested.transcript.messages, & &1.kind) ==
             [:prompt, :input, :reply, :report, :reply]

    assert {:ok, %{mode: mode}} = File.stat(path)
    assert (mode &&& 0o777) == 0o600
  end

  test "has what was said before a model failed", %{path: path} do
    book = book(builtins: false, watch: false)
    model = Model.Function.new(fn _, _ -> {:error, %ModelError{kind: :server, reason: "oh"}} end)
    on_event = path |> start() |> Log.on_event(conversation: "c")
    {:error, _} = Agent.run(book, "Hi", model: model, on_event: on_event)
    assert contents(path) == [{"c", ["Hi"]}]
  end

  test "every kind of message is read back", %{path: path} do
    log = start(path)
    call = %{id: "1", name: "x"}

    messages = [
      message("p", kind: :prompt),
      message("c", kind: :context),
      message("ü\n\"\u2028", activations: [%{name: "a", hash: "h", command: "c", answer: ""}]),
      message("r",
        kind: :reply,
        usage: %{prompt_tokens: 1, completion_tokens: 2, cached_tokens: 0, cache_write_tokens: 0},
        tool_calls: [Map.put(call, :arguments, "{}")],
        opaque: %{"a" => [1]}
      ),
      message("ok", kind: :result, call: call, error: true),
      message("n", kind: :news)
    ]

    for message <- messages, do: say(log, "c", message, profile: "ann")
    assert {:ok, [%{transcript: transcript}]} = Log.read(path)
    assert transcript == %Transcript{profile: "ann", messages: messages}
    assert length(lines(path)) == 6

    # A new prompt replaces the old one, and a call whose results are missing is left out.
    say(log, "c", message("p2", kind: :prompt), profile: "ann")
    say(log, "c", Enum.at(messages, 3), profile: "ann")
    assert contents(path) == [{"c", ["p2", "c", "ü\n\"\u2028", "r", "ok", "n"]}]
  end

  test "lines of many processes stay whole, within the sizes", %{path: path} do
    log = start(path, max_bytes: 20_000, keep: 3)

    1..20
    |> Enum.map(fn writer ->
      Task.async(fn ->
        for number <- 1..50, do: say(log, "c-#{writer}", message("#{writer}-#{number} ümlaut"))
      end)
    end)
    |> Task.await_many(:infinity)

    files = for name <- [path | Enum.map(1..3, &"#{path}.#{&1}")], do: File.read!(name)
    refute File.exists?("#{path}.4")

    for text <- files do
      assert byte_size(text) <= 20_000 and String.ends_with?(text, "\n")
      for line <- String.split(text, "\n", trim: true), do: assert({:ok, _} = JSON.decode(line))
    end

    # The newest lines of each writer are there, in their order.
    for {"c-" <> writer, contents} <- contents(path) do
      numbers =
        for c <- contents, do: c |> String.split(["-", " "]) |> Enum.at(1) |> String.to_integer()

      assert {writer, numbers} == {writer, Enum.to_list(hd(numbers)..50)}
    end
  end

  test "a line may be larger than a file, and keep: 0 keeps none", %{path: path} do
    log = start(path, max_bytes: 10, keep: 0)
    for text <- ["one", "two"], do: say(log, "c", message(text))
    assert contents(path) == [{"c", ["two"]}]
    assert Path.wildcard(Path.join(Path.dirname(path), "*")) == [path]
  end

  test "an incomplete line is ended and left out, others that are no message are errors",
       %{path: path} do
    say(start(path), "c", message("one"))
    whole = File.read!(path)
    File.write!(path, whole <> binary_part(whole, 0, 40))
    say(start(path), "c", message("two"))
    assert contents(path) == [{"c", ["one", "two"]}]

    rows = [
      {"{}\n", "#{path}:4", "a message of a log of version 2", "another value"},
      {String.replace(whole, ~s("input"), ~s("inputs")), "#{path}:1: messages[2].kind", nil, nil}
    ]

    before = File.read!(path)

    for {line, place, expected, got} <- rows do
      File.write!(path, before <> line)
      assert {:error, %TranscriptError{} = error} = Log.read(path)
      assert error.path == place
      if expected, do: assert({error.expected, error.got} == {expected, got})
    end

    missing = path <> "x"

    assert {:error, %TranscriptError{path: ^missing, got: "no such file or directory"}} =
             Log.read(missing)
  end

  describe ":redact" do
    test "changes messages and leaves some out", %{path: path} do
      redact = fn
        %{content: "drop"} -> nil
        message -> %{message | content: String.replace(message.content, "hunter2", "***")}
      end

      log = start(path, redact: redact)
      for text <- ["my hunter2", "drop", "fine"], do: say(log, "c", message(text))
      assert contents(path) == [{"c", ["my ***", "fine"]}]
    end

    test "that fails writes nothing and tells no text", %{path: path} do
      for {redact, reason} <- [
            {fn %{content: content} -> raise content end, ":redact raised RuntimeError"},
            {fn %{content: content} -> throw(content) end, ":redact ended with throw"},
            {fn message -> message.content end,
             "expected a message or nil of :redact, got another value"}
          ] do
        log = start(path, redact: redact)
        log_text = capture_log(fn -> assert say(log, "c", message("hunter2")) == :ok end)
        assert log_text =~ "a message of a conversation was not logged: #{reason}"
        refute log_text =~ "hunter2"
        refute File.exists?(path)
      end
    end
  end

  test "a log that cannot be written ends no run", %{tmp_dir: folder, path: path} do
    log = start(Path.join(folder, "none/a.jsonl"))

    assert capture_log(fn -> assert say(log, "c", message("x")) == :ok end) =~
             "was not logged: #{folder}/none/a.jsonl: no such file or directory"

    stopped = start(path)
    GenServer.stop(stopped)

    assert capture_log(fn -> assert say(stopped, "c", message("x")) == :ok end) =~
             "was not logged: the log #{inspect(stopped)} does not answer: "
  end

  test "wrong options", %{path: path} do
    Process.flag(:trap_exit, true)

    for {options, option} <- [
          {[], :path},
          {[path: path, keep: -1], :keep},
          {[path: path, name: {:local, :log}], :name},
          {[path: path, max_bytes: 0], :max_bytes},
          {[path: path, redact: 1], :redact},
          {%{path: path, rotate: 1}, :rotate}
        ],
        do: assert({:error, %OptionError{option: ^option}} = Log.start_link(options))

    assert_raise OptionError, "a conversation of a log needs the option :conversation", fn ->
      Log.on_event(self(), [])
    end

    assert_raise OptionError, ~r/expected text as the option :conversation/, fn ->
      Log.on_event(self(), conversation: 1)
    end

    assert Log.on_event(self(), conversation: "c").({:turn, 1}) == :ok
  end
end
