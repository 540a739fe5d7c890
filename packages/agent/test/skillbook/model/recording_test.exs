defmodule Skillbook.Model.RecordingTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Agent, Model, ModelError, OptionError, RecordingError}
  alias Skillbook.Model.{Function, Recording, Script}

  doctest Skillbook.Model.Recording
  doctest Skillbook.RecordingError

  @moduletag :tmp_dir

  setup context, do: {:ok, path: Path.join(context[:tmp_dir] || "", "calls/one.json")}

  defp user(text), do: %{role: :user, content: text}

  defp ask(model, messages, options \\ []) do
    messages = if is_binary(messages), do: [user(messages)], else: messages
    test = self()
    Model.chat(model, messages, options, &send(test, {:text, &1}))
  end

  defp record(path, answers, requests, options \\ []) do
    options = [path: path, model: Script.new(answers), record: true] ++ options
    recorder = Recording.new!(options)
    for request <- requests, do: {:ok, _} = ask(recorder, request)
    File.read!(path)
  end

  test "answers are given again, with their usage and calls", %{path: path} do
    usage = %{prompt_tokens: 5, completion_tokens: 2, cached_tokens: 3, cache_write_tokens: 0}
    call = %{id: "c-9", name: "tasks__get", arguments: ~S({"id": "T-1"})}

    answers = [
      %{text: "One", usage: usage, opaque: %{"secret" => "thoughts"}},
      %{text: "", tool_calls: [call]},
      %{text: "cut", finish_reason: :length}
    ]

    text = record(path, answers, ["a", "b", "c"])
    refute text =~ "thoughts"
    recording = Recording.new!(path: path)
    # In another order.
    assert {:ok, %{text: "cut", finish_reason: :length, usage: nil}} = ask(recording, "c")
    assert {:ok, %{text: "One", usage: ^usage, opaque: nil}} = ask(recording, "a")
    assert_receive {:text, "One"}

    test = self()
    options = [on_tool_call: &send(test, {:call, &1})]

    assert {:ok, %{tool_calls: [^call], finish_reason: :tool_calls}} =
             ask(recording, "b", options)

    assert_receive {:call, %{index: 0, id: "c-9", arguments: ~S({"id": "T-1"})}}
    assert Recording.verify!(recording) == :ok
  end

  test "a request that was recorded twice has two answers", %{path: path} do
    record(path, ["1", "2"], ["a", "a"])
    recording = Recording.new!(path: path)
    assert {:ok, %{text: "1"}} = ask(recording, "a")
    assert {:ok, %{text: "2"}} = ask(recording, "a")

    assert_raise RecordingError,
                 "#{path}: a request that was recorded 2 times is sent more often. If that is " <>
                   "right, record it again with the model and `record: true` " <>
                   "(in tests: SKILLBOOK_RECORD=1).",
                 fn -> ask(recording, "a") end
  end

  test "times, dates, UUIDs and ids of calls may differ, and nothing else", %{path: path} do
    uuid = "0b7f0b0e-9a51-4c1e-8d8e-2f7a3c1d4e5f"

    called = fn id, text ->
      [
        user("x"),
        %{role: :assistant, content: "", tool_calls: [%{id: id, name: "a", arguments: text}]},
        %{role: :tool, id: id, name: "a", content: "ok", error: false}
      ]
    end

    for {recorded, sent, same?} <- [
          {"now 2026-11-22T10:00:00Z", "now 2027-01-02T11:30:59.123Z", true},
          {"now 2026-11-22 10:00", "now 2027-01-02 11:30", true},
          {"due 2026-11-22", "due 2027-01-02", true},
          {"id #{uuid}", "id #{String.replace(uuid, "0", "1")}", true},
          {"T-30739173 T-30739174 T-30739173", "T-1234567 T-7654321 T-1234567", true},
          {"T-30739173 T-30739174 T-30739173", "T-1234567 T-7654321 T-7654321", false},
          {"T-30739173", "M-1234567", true},
          {"T-30739173", "T-1", false},
          {"read bb2xqz7hk3mmo5pa", "read ab2xqz7hk3mmo5pa", true},
          {"read internationalize", "read internationalise", false},
          {called.("call_1", "{}"), called.("call_x", "{}"), true},
          {"version 1.2.3", "version 1.2.4", false},
          {"due 2026-11-22", "due tomorrow", false},
          {"", " ", false},
          {called.("call_1", "{}"), called.("call_1", "{ }"), false},
          {[user("x")], [%{role: :system, content: "x"}], false}
        ] do
      record(path, ["yes"], [recorded])
      recording = Recording.new!(path: path)

      if same?,
        do: assert({:ok, %{text: "yes"}} = ask(recording, sent)),
        else: assert_raise(RecordingError, fn -> ask(recording, sent) end)
    end

    record(path, ["yes"], ["order 12"])
    recording = Recording.new!(path: path, ignore: [~r/order \d+/])
    assert {:ok, %{text: "yes"}} = ask(recording, "order 13")
  end

  test "options that decide about the answer count, and others do not", %{path: path} do
    schema = %{"type" => "object"}

    for {recorded, sent, same?} <- [
          {[], [timeout: 5, on_retry: fn _ -> :ok end], true},
          {[temperature: 0.0], [temperature: 0.0], true},
          {[temperature: 0.0], [temperature: 0.5], false},
          {[], [max_tokens: 5], false},
          {[stop: ["a"]], [stop: ["b"]], false},
          {[schema: schema], [], false},
          {[grammar: "root ::= a"], [grammar: "root ::= b"], false},
          {[extra: %{"user" => "ann"}], [extra: %{"user" => "bob"}], true},
          {[extra: %{"user" => "ann"}], [], false},
          {[tool_choice: :auto], [], true},
          {[tool_choice: :none], [], false}
        ] do
      recorder = Recording.new!(path: path, record: true, model: Script.new(["yes"]))
      ask(recorder, "a", recorded)
      recording = Recording.new!(path: path)

      if same?,
        do: assert({:ok, %{text: "yes"}} = ask(recording, "a", sent)),
        else: assert_raise(RecordingError, fn -> ask(recording, "a", sent) end)
    end

    refute File.read!(path) =~ "ann"
  end

  test "another request shows the difference", %{path: path} do
    record(path, ["1", "2"], ["first\nline", "second\nline"])
    recording = Recording.new!(path: path)
    assert {:ok, %{text: "1"}} = ask(recording, "first\nline")
    error = assert_raise RecordingError, fn -> ask(recording, "second\nlime") end
    assert {error.kind, error.number} == {:different, 2}

    assert Exception.message(error) == """
           #{path}: the request differs from the recorded request 2, and from all others. If \
           that is right, record it again with the model and `record: true` \
           (in tests: SKILLBOOK_RECORD=1).
           The difference (- recorded, + sent):

           @@ -1,4 +1,4 @@
            options: {}
            user:
            second
           -line
           +lime\
           """

    error = assert_raise RecordingError, fn -> Recording.verify!(recording) end

    assert Exception.message(error) ==
             "#{path}: the recorded request 2 was not sent. If that is right, record it again " <>
               "with the model and `record: true` " <>
               "(in tests: SKILLBOOK_RECORD=1).\nThe request:\n\n" <>
               "options: {}\nuser:\nsecond\nline"

    ask(recording, "second\nline")
    error = assert_raise RecordingError, fn -> ask(recording, "third") end

    assert Exception.message(error) ==
             "#{path}: expected at most 2 requests, as recorded, got another one. If that is " <>
               "right, record it again with the model and `record: true` " <>
               "(in tests: SKILLBOOK_RECORD=1).\nThe request:\n\n" <>
               "options: {}\nuser:\nthird"
  end

  test "secrets are not recorded", %{path: path} do
    {:ok, server} =
      Model.OpenAI.new(url: "http://127.0.0.1:1", model: "m", key: fn -> "own-key-123456" end)

    secrets = [
      "sk-proj-abcdefghij0123456789",
      "ghp_abcdefghij0123456789ab",
      "AKIAABCDEFGHIJKLMNOP",
      "Bearer abcdefghij0123456789",
      "xoxb-1234567890-abc",
      "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl",
      "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
      "our-secret",
      "number 4711"
    ]

    for secret <- secrets do
      options = [redact: ["our-secret", ~r/\b4711\b/]]
      request = "use #{secret} now"
      text = record(path, [fn _ -> "I use #{secret}" end], [request], options)
      plain = secret |> String.replace("number ", "") |> String.replace("Bearer ", "")
      refute text =~ plain
      assert text =~ "[redacted]"
      # The same request is found, without the secret.
      recording = Recording.new!([path: path] ++ options)
      assert {:ok, %{text: "I use " <> _}} = ask(recording, request)
    end

    # The key of the model itself, also from the environment.
    alias Skillbook.Model.Recording.Text
    redacted = &(&1 |> Text.redact(Text.secrets(%{model: server, redact: []})))
    assert redacted.(%{"a" => ["x own-key-123456"]}) == %{"a" => ["x [redacted]"]}
    System.put_env("SKILLBOOK_RECORDED_KEY", "environment-key")
    on_exit(fn -> System.delete_env("SKILLBOOK_RECORDED_KEY") end)
    server = %{server | key: {:env, "SKILLBOOK_RECORDED_KEY"}}
    redacted = &(&1 |> Text.redact(Text.secrets(%{model: server, redact: []})))
    assert redacted.("environment-key") == "[redacted]"

    for text <- ["skip", "task-abcdefghij0123456789", "Bearer"],
        do: assert(redacted.(text) == text)
  end

  test "a conversation is written once", %{path: path} do
    system = String.duplicate("The rules. ", 100)
    first = [%{role: :system, content: system}, user("one")]
    second = first ++ [%{role: :assistant, content: "1"}, user("two")]
    third = [%{role: :system, content: system}, user("other")]
    text = record(path, ["1", "2", "3"], [first, second, third])
    assert length(String.split(text, system)) == 2
    assert text =~ ~s("keep": [1,2])
    recording = Recording.new!(path: path)

    for {request, answer} <- [{second, "2"}, {third, "3"}, {first, "1"}] do
      assert {:ok, %{text: ^answer}} = ask(recording, request)
    end
  end

  test "a failure of the model is returned, and not recorded", %{path: path} do
    error = %ModelError{kind: :timeout, reason: "slow"}
    recorder = Recording.new!(path: path, record: true, model: Script.new([error, "yes"]))
    assert ask(recorder, "a") == {:error, error}
    refute File.exists?(path)
    ask(recorder, "a")
    assert {:ok, %{text: "yes"}} = ask(Recording.new!(path: path), "a")
    # A recorder that gets no answer leaves the file as it is.
    recorder = Recording.new!(path: path, record: true, model: Script.new([error, "no"]))
    ask(recorder, "a")
    assert {:ok, %{text: "yes"}} = ask(Recording.new!(path: path), "a")
    ask(recorder, "a")
    assert {:ok, %{text: "no"}} = ask(Recording.new!(path: path), "a")
  end

  test "calls at the same time are all recorded", %{path: path} do
    model = Function.new(fn [%{content: text}], _ -> "to " <> text end)
    recorder = Recording.new!(path: path, record: true, model: model)
    1..20 |> Task.async_stream(&ask(recorder, "#{&1}"), timeout: 60_000) |> Stream.run()
    recording = Recording.new!(path: path)
    for n <- 1..20, do: assert({:ok, %{text: "to " <> _}} = ask(recording, "#{n}"))
    assert Recording.verify!(recording) == :ok
  end

  test "a file that is no recording is an error", %{path: path} do
    assert {:error, %RecordingError{kind: :missing}} = Recording.new(path: path)
    File.mkdir_p!(Path.dirname(path))
    answer = ~s({"text": "a", "finish_reason": "stop"})
    call = &~s({"version": 1, "calls": [{"messages": [], "options": {}, "answer": #{&1}}]})

    for {text, got} <- [
          {"", "line 1, column 1: EOF while parsing a value"},
          {"[]", "JSON without `version` and `calls`"},
          {~s({"version": 2, "calls": []}), "version 2"},
          {~s({"version": 1, "calls": [1]}), "a call 1 that cannot be read"},
          {call.("{}"), "a call 1 that cannot be read"},
          {call.(~s({"text": 1, "finish_reason": "stop"})), "a call 1 that cannot be read"},
          {call.(~s({"text": "", "finish_reason": "odd"})), "a call 1 that cannot be read"},
          {~s({"version": 1, "calls": [{"keep": [1, 1], "messages": [], "options": {},
           "answer": #{answer}}]}), "a call 1 that cannot be read"}
        ] do
      File.write!(path, text)
      {:error, error} = Recording.new(path: path)
      assert Exception.message(error) == "#{path}: expected a recording, got: #{got}"
      assert_raise RecordingError, fn -> Recording.new!(path: path) end
    end

    File.write!(path, call.(answer))
    assert {:ok, _} = Recording.new(path: path)
  end

  test "wrong options are errors", %{path: path} do
    for {options, message} <- [
          {[], "a recording needs the option :path"},
          {[path: path, record: true], "a recording needs the option :model"},
          {[path: path, redact: ["a", 1]],
           "expected a list of texts and regular expressions as the option :redact of " <>
             "a recording, got: [\"a\", 1]"},
          {[path: path, ignore: ["a"]],
           "expected a list of regular expressions as the option :ignore of a recording, " <>
             "got: [\"a\"]"}
        ] do
      assert {:error, %OptionError{} = error} = Recording.new(options)
      assert Exception.message(error) == message
    end
  end

  defp start_book(name) do
    options = [builtins: ["memory", "tasks"], store: ":memory:", scheduler: false]
    start_supervised!({Skillbook, [name: name] ++ options})
  end

  test "a run with tools is the same from its recording", %{path: path} do
    book = :recorded_tools
    start_book(book)
    call = %{name: "memory__save", arguments: %{content: "Likes tea"}}

    last = fn messages ->
      assert %{role: :tool, error: false} = List.last(messages)
      "Noted."
    end

    model = Script.new([%{tool_calls: [call]}, last])
    recorder = Recording.new!(path: path, model: model, record: true)
    {:ok, %{text: "Noted."}} = Agent.run(book, "I like tea", model: recorder)
    stop_supervised!({Skillbook, book})

    start_book(book)
    recording = Recording.new!(path: path)
    assert Model.tools?(recording)
    assert {:ok, %{text: "Noted."} = result} = Agent.run(book, "I like tea", model: recording)
    assert Enum.any?(result.transcript.messages, &(&1.kind == :result))
    assert Recording.verify!(recording) == :ok
  end

  test "a run is the same from its recording", %{path: path} do
    start_book(:recorded)

    created = fn messages ->
      [id] = Regex.run(~r/T-\d+/, List.last(messages).content)
      "```cmd\ntasks.get #{id}\n```"
    end

    answers = ["```cmd\ntasks.create --title Tea\n```", created, "Done."]
    options = [path: path, model: Script.new(answers), record: true]
    {:ok, first} = Agent.run(:recorded, "Tea", model: Recording.new!(options))
    stop_supervised!({Skillbook, :recorded})

    start_book(:recorded)
    recording = Recording.new!(path: path)
    {:ok, second} = Agent.run(:recorded, "Tea", model: recording)
    assert Recording.verify!(recording) == :ok
    # The second run completes its own task.
    [_, report] =
      for %{kind: :report} = message <- second.transcript.messages, do: message.content

    assert report =~ ~r/T-\d+.*\nok\n/
    own = ~r/T-\d+|\d{4}-\S+Z/
    contents = &for(m <- &1.transcript.messages, do: String.replace(m.content, own, "<own>"))
    assert contents.(first) == contents.(second)
  end
end
