defmodule Skillbook.TranscriptTest do
  use ExUnit.Case, async: true

  alias Skillbook.Model.Media
  alias Skillbook.Support.JSON
  alias Skillbook.Transcript
  alias Skillbook.Transcript.Message

  doctest Skillbook.Transcript
  doctest Skillbook.Transcript.Message
  doctest Skillbook.TranscriptError

  @at ~U[2026-11-21 08:00:00.123456Z]

  defp message(kind, content, fields \\ []),
    do: struct!(Message, [kind: kind, content: content, at: @at] ++ fields)

  test "JSON can be read again" do
    activation = %{name: "haiku", hash: "00", command: "haiku", answer: "11"}

    transcript = %Transcript{
      profile: "ann",
      messages: [
        message(:prompt, "é😀\n\"\\\t\u2028"),
        message(:input, ""),
        message(:reply, "a",
          usage: %{
            prompt_tokens: 3,
            completion_tokens: 0,
            cached_tokens: 2,
            cache_write_tokens: 1
          }
        ),
        message(:report, "b", activations: [activation]),
        message(:reply, "",
          tool_calls: [
            %{id: "c1", name: "a", arguments: "{\"x\": 1"},
            %{id: "c2", name: "b", arguments: ""}
          ],
          opaque: %{"thoughts" => [%{"signature" => "é", "n" => 1.5, "last" => nil}]}
        ),
        message(:result, "", call: %{id: "c1", name: "a"}, error: true),
        message(:result, "ok", call: %{id: "c2", name: "b"}, activations: [activation]),
        message(:news, "c"),
        message(:note, "d")
      ],
      left_out: [activation]
    }

    assert transcript |> Transcript.to_json() |> Transcript.from_json() == {:ok, transcript}

    for fields <- [%{view: :any}, %{tools: [:any]}],
        do:
          assert(
            Transcript.to_json(Map.merge(transcript, fields)) == Transcript.to_json(transcript)
          )
  end

  # Of any bytes, types, URLs and names.
  defp random_part do
    type = Enum.random(["image/png", "application/pdf", "audio/wav", "application/x-a.b+c"])
    name = Enum.random([nil, "a.png", "é \"😀\" \\.pdf"])

    case :rand.uniform(4) do
      1 -> Media.new!(type: type, name: name, url: "https://a.example/%22?b='c'#d")
      2 -> Enum.random(["", "é😀\n\"", "text"])
      _ -> Media.new!(type: type, name: name, data: :rand.bytes(:rand.uniform(400)))
    end
  end

  test "JSON with images, files and audio can be read again" do
    :rand.seed(:exsss, {1, 2, 3})

    for _ <- 1..200 do
      parts = for _ <- 1..:rand.uniform(5), do: random_part()
      transcript = %Transcript{profile: "ann", messages: [message(:input, parts)]}
      json = Transcript.to_json(transcript)
      assert Transcript.from_json(json) == {:ok, transcript}
      assert json |> Transcript.from_json() |> elem(1) |> Transcript.to_json() == json
    end
  end

  test "parts of a message in JSON are checked" do
    part = &Map.merge(%{"type" => "image/png", "name" => nil}, &1)
    data = part.(%{"data" => "AAEC"})

    for {kind, content, expected} <- [
          {"input", ["a", data], :ok},
          {"input", [part.(%{"url" => "https://a"})], :ok},
          {"note", ["a"], ": expected text, for it is no input, result or report, got: a list"},
          {"input", [], ": expected text, got: []"},
          {"input", ["a", 1], "[1]: expected text, got: 1"},
          {"input", [part.(%{})], "[0]: expected the field `url`, got: none"},
          {"input", [part.(%{"data" => "AAEC", "url" => "https://a"})],
           ~s([0]: expected the fields type, name, data, got: also "url")},
          {"input", [Map.delete(data, "name")], "[0]: expected the field `name`, got: none"},
          {"input", [part.(%{"data" => "?"})], ~s([0].data: expected bytes in Base64, got: "?")},
          {"input", [part.(%{"data" => ""})], ~s([0].data: expected bytes, got: "")},
          {"input", [%{data | "type" => "png"}],
           ~s([0].type: expected a media type such as "image/png", got: "png")},
          {"input", [part.(%{"url" => "http://a"})],
           "[0].url: expected an https URL without a login, of at most 8192 bytes, " <>
             ~s(got: "http://a")}
        ] do
      messages = [fields(kind, %{"content" => content})]
      value = %{"version" => 3, "profile" => "a", "messages" => messages, "left_out" => []}
      value = Map.merge(value, %{"run" => nil, "seen" => nil})

      case value |> JSON.encode() |> Transcript.from_json() do
        {:ok, _} ->
          assert expected == :ok

        {:error, error} ->
          assert Exception.message(error) == "the transcript's messages[0].content" <> expected
      end
    end
  end

  test "inspecting one is short" do
    transcript = %Transcript{
      profile: "ann",
      view: :large,
      messages: [message(:prompt, "P"), message(:input, "I"), message(:input, "I")]
    }

    assert inspect(transcript) == ~s(#Skillbook.Transcript<"ann", [input: 2, prompt: 1]>)

    usage = %{prompt_tokens: 1, completion_tokens: 1}
    more = [usage: usage, turns: 1, transcript: transcript]
    result = struct!(Skillbook.Agent.Result, [status: :done, text: "Hi"] ++ more)
    assert inspect(result) =~ ~s(transcript: #Skillbook.Transcript<"ann", [input: 2, prompt: 1]>)
    assert String.length(inspect(result)) < 400
  end

  defp fields(kind, more \\ %{}) do
    Map.merge(
      %{
        "kind" => kind,
        "content" => "a",
        "at" => "2026-11-21T08:00:00Z",
        "activations" => [],
        "usage" => nil,
        "tool_calls" => [],
        "opaque" => nil,
        "call" => nil,
        "error" => false
      },
      more
    )
  end

  defp reply(ids) do
    calls = for id <- ids, do: %{"id" => id, "name" => "t", "arguments" => "{}"}
    fields("reply", %{"tool_calls" => calls})
  end

  defp result(id), do: fields("result", %{"call" => %{"id" => id, "name" => "t"}})

  test "calls and results belong together" do
    input = fields("input")

    for {messages, expected} <- [
          {[input, reply(["1", "2"]), result("1"), result("2"), fields("news")], :ok},
          {[reply(["1"]), result("1"), reply(["1"]), result("1")], :ok},
          {[reply([]), input], :ok},
          {[input, reply(["1", "2"]), result("1")],
           "the transcript's messages[3].kind: expected the result of the call \"2\", got: none"},
          {[reply(["1"]), input, result("1")],
           "the transcript's messages[1].kind: expected the result of the call \"1\", " <>
             "got: \"input\""},
          {[reply(["1", "2"]), result("2"), result("1")],
           "the transcript's messages[1].call: expected the next call of the reply before it, " <>
             "got: %{id: \"2\", name: \"t\"}"},
          {[input, result("1")],
           "the transcript's messages[1].call: expected the next call of the reply before it, " <>
             "got: %{id: \"1\", name: \"t\"}"},
          {[reply(["1"]), result("1"), result("1")],
           "the transcript's messages[2].call: expected the next call of the reply before it, " <>
             "got: %{id: \"1\", name: \"t\"}"},
          {[fields("result")],
           "the transcript's messages[0].call: expected the call of the result, got: nil"},
          {[fields("input", %{"call" => %{"id" => "1", "name" => "t"}})],
           "the transcript's messages[0].call: expected nil, for it is no result, " <>
             "got: %{id: \"1\", name: \"t\"}"},
          {[%{reply(["1"]) | "kind" => "note"}, result("1")],
           "the transcript's messages[0].tool_calls: expected none, for it is no reply, " <>
             "got: some"},
          {[fields("reply", %{"tool_calls" => [%{"id" => 1}]})],
           "the transcript's messages[0].tool_calls[0].id: expected text, got: 1"},
          {[fields("reply", %{"opaque" => []})],
           "the transcript's messages[0].opaque: expected an object or null, got: []"},
          {[fields("reply", %{"error" => 1})],
           "the transcript's messages[0].error: expected true or false, got: 1"},
          {[Map.delete(fields("input"), "call")],
           "the transcript's messages[0]: expected the field `call`, got: none"}
        ] do
      value = %{"version" => 2, "profile" => "a", "messages" => messages, "left_out" => []}

      case value |> JSON.encode() |> Transcript.from_json() do
        {:ok, _} -> assert expected == :ok
        {:error, error} -> assert Exception.message(error) == expected
      end
    end
  end

  test "a model gets calls and results, and other messages merged" do
    calls = [%{id: "c1", name: "t", arguments: "{}"}, %{id: "c2", name: "t", arguments: "{}"}]
    opaque = %{"a" => 1}

    transcript = %Transcript{
      profile: "a",
      messages: [
        message(:prompt, "P"),
        message(:news, "N"),
        message(:input, "I"),
        message(:reply, "", tool_calls: calls, opaque: opaque),
        message(:result, "R1", call: %{id: "c1", name: "t"}),
        message(:result, "R2", call: %{id: "c2", name: "t"}, error: true),
        message(:report, "T"),
        message(:note, "O"),
        message(:reply, "A"),
        message(:reply, "B"),
        message(:reply, "C", opaque: opaque)
      ]
    }

    assert Transcript.for_model(transcript) == [
             %{role: :system, content: "P"},
             %{role: :user, content: "N\n\nI"},
             %{role: :assistant, content: "", tool_calls: calls, opaque: opaque},
             %{role: :tool, id: "c1", name: "t", content: "R1", error: false},
             %{role: :tool, id: "c2", name: "t", content: "R2", error: true},
             %{role: :user, content: "T\n\nO"},
             %{role: :assistant, content: "A\n\nB"},
             %{role: :assistant, content: "C", opaque: opaque}
           ]

    assert Transcript.for_model(%{transcript | messages: []}) == []
  end

  test "an invalid value is an error with its path, also in version 1" do
    good = %{
      "version" => 1,
      "profile" => "ann",
      "messages" => [
        %{
          "kind" => "prompt",
          "content" => "a",
          "at" => "2026-11-21T08:00:00Z",
          "activations" => [],
          "usage" => nil
        },
        %{
          "kind" => "reply",
          "content" => "a",
          "at" => "2026-11-21T08:00:00Z",
          "activations" => [%{"name" => "a", "hash" => "b", "command" => "c", "answer" => "d"}],
          "usage" => %{"prompt_tokens" => 1, "completion_tokens" => 2}
        }
      ],
      "left_out" => []
    }

    read = fn value -> value |> JSON.encode() |> Transcript.from_json() end

    assert {:ok, %{messages: [_, %{usage: usage}]}} = read.(good)

    assert usage == %{
             prompt_tokens: 1,
             completion_tokens: 2,
             cached_tokens: 0,
             cache_write_tokens: 0
           }

    assert {:ok, _} = read.(good)

    message = fn place -> ["messages", Access.at(place)] end

    for {path, value, expected} <- [
          {["version"], 4, "the transcript's version: expected 1, 2 or 3, got: 4"},
          {["run"], 1, "the transcript's run: expected text, got: 1"},
          {["seen"], [], "the transcript's seen: expected an object, got: []"},
          {["seen"], %{"rights" => "a", "entries" => [1]},
           "the transcript's seen.entries[0]: expected text, got: 1"},
          {["profile"], 1, "the transcript's profile: expected text, got: 1"},
          {["leader"], 1, "the transcript's leader: expected text, got: 1"},
          {["waiting"], [1], "the transcript's waiting[0]: expected text, got: 1"},
          {["extra"], 1,
           "the transcript: expected the fields version, profile, messages, left_out, run, " <>
             "seen, leader, waiting, got: also \"extra\""},
          {["messages"], %{}, "the transcript's messages: expected a list, got: %{}"},
          {["left_out"], [1], "the transcript's left_out[0]: expected an object, got: 1"},
          {message.(0), "a", "the transcript's messages[0]: expected an object, got: \"a\""},
          {message.(1) ++ ["kind"], "prompt",
           "the transcript's messages[1].kind: expected a prompt only as the first message, " <>
             "got: \"prompt\""},
          {message.(1) ++ ["role"], "user",
           "the transcript's messages[1]: expected the fields kind, content, at, " <>
             "activations, usage, tool_calls, opaque, call, error, got: also \"role\""},
          {message.(1) ++ ["content"], nil,
           "the transcript's messages[1].content: expected text, got: nil"},
          {message.(1) ++ ["at"], "now",
           "the transcript's messages[1].at: expected a time such as " <>
             "\"2026-11-21T08:00:00Z\", got: \"now\""},
          {message.(1) ++ ["at"], "2026-11-21T08:00:00+01:00",
           "the transcript's messages[1].at: expected a time such as " <>
             "\"2026-11-21T08:00:00Z\", got: \"2026-11-21T08:00:00+01:00\""},
          {message.(1) ++ ["usage", "prompt_tokens"], -1,
           "the transcript's messages[1].usage.prompt_tokens: expected a whole number from " <>
             "0, got: -1"},
          {message.(1) ++ ["activations", Access.at(0), "hash"], 1,
           "the transcript's messages[1].activations[0].hash: expected text, got: 1"}
        ] do
      assert {:error, error} = good |> put_in(path, value) |> read.()
      assert Exception.message(error) == expected
    end

    for {json, expected} <- [
          {"", "the transcript: expected JSON, got: line 1, column 1: EOF while parsing a value"},
          {"[]", "the transcript: expected an object with the field `version`, got: none"},
          {~s({"version": 1}), "the transcript: expected the field `profile`, got: none"}
        ] do
      assert {:error, error} = Transcript.from_json(json)
      assert Exception.message(error) == expected
    end
  end

  test "the estimate of tokens" do
    for {text, tokens} <- [
          {"", 4},
          {"a", 5},
          {"abcd", 5},
          {"abcde", 6},
          {"é", 5},
          {"日本", 6},
          {"😀a", 6}
        ] do
      transcript = Transcript.add(Transcript.new("a"), message(:input, text))
      assert Transcript.tokens(transcript) == tokens, text
    end

    calls = [%{id: "c1", name: "abcd", arguments: "{}"}]

    for {fields, tokens} <- [
          {[], 4},
          {[tool_calls: calls], 4 + 6},
          {[opaque: %{}], 4 + 5},
          {[tool_calls: calls ++ calls, opaque: %{"a" => "日本"}], 4 + 12 + 8}
        ] do
      transcript = Transcript.add(Transcript.new("a"), message(:reply, "", fields))
      assert {fields, Transcript.tokens(transcript)} == {fields, tokens}
    end
  end

  test "the calls that wait are derived for JSON of a release that did not write them" do
    text = fn ref ->
      "`x.send` has not run yet: it waits for the approval #{ref}, until 2026-03-08 09:00 UTC."
    end

    report = &message(:report, &1)
    result = &message(:result, &1, call: %{id: "c1", name: "x__send"})
    call = message(:reply, "", tool_calls: [%{id: "c1", name: "x__send", arguments: "{}"}])
    joined = &report.("The result of the call that waited for #{&1}:\n\n[1] x.send\nok\n  Sent.")
    waits = "[1] x.list\nok\n  A\n\n[2] x.send\npending\n  #{text.("A-1")}"

    for {messages, waiting} <- [
          {[message(:input, "Hi")], []},
          {[report.(waits)], ["A-1"]},
          {[report.(waits <> "\n\n[3] x.send\npending\n  #{text.("shop:7.x")}")],
           ["A-1", "shop:7.x"]},
          {[report.(waits), report.(waits)], ["A-1"]},
          {[call, result.("pending\n#{text.("A-1")}")], ["A-1"]},
          # Of an agent that was dispatched.
          {[report.("[1] agent.dispatch\npending\n  It waits.\n\n  - x: #{text.("A-1")}")],
           ["A-1"]},
          {[report.(waits), joined.("A-1")], []},
          {[report.(waits), joined.("A-2")], ["A-1"]},
          # Texts of others.
          {[report.("[1] x.list\nok\n  pending\n  #{text.("A-1")}")], []},
          {[call, result.("ok\npending\n#{text.("A-1")}")], []},
          {[message(:input, "[1] x.send\npending\n  #{text.("A-1")}")], []},
          {[message(:reply, "pending\n  #{text.("A-1")}")], []},
          {[report.(waits), report.("[1] x.list\nok\n  #{joined.("A-1").content}")], ["A-1"]}
        ] do
      transcript = Enum.reduce(messages, Transcript.new("a"), &Transcript.add(&2, &1))
      {:ok, json} = transcript |> Transcript.to_json() |> JSON.decode()
      assert json["waiting"] == []

      old = json |> Map.delete("waiting") |> JSON.encode()
      assert {:ok, %{waiting: ^waiting}} = Transcript.from_json(old)
      assert {:ok, %{waiting: []}} = Transcript.from_json(JSON.encode(json))
    end
  end

  test "activations are unique, the most recent first, then removed ones" do
    activation = fn name, hash -> %{name: name, hash: hash, command: name, answer: hash} end

    transcript = %Transcript{
      profile: "a",
      messages: [
        message(:report, "", activations: [activation.("x", "1"), activation.("y", "1")]),
        message(:report, "", activations: [activation.("x", "2")])
      ],
      left_out: [activation.("z", "1"), activation.("y", "0")]
    }

    assert for(a <- Transcript.activations(transcript), do: {a.name, a.hash}) == [
             {"x", "2"},
             {"y", "1"},
             {"z", "1"}
           ]
  end
end
