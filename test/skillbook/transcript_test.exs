defmodule Skillbook.TranscriptTest do
  use ExUnit.Case, async: true

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
        message(:reply, "a", usage: %{prompt_tokens: 1, completion_tokens: 0}),
        message(:report, "b", activations: [activation]),
        message(:news, "c"),
        message(:note, "d")
      ],
      left_out: [activation]
    }

    assert transcript |> Transcript.to_json() |> Transcript.from_json() == {:ok, transcript}
    assert Transcript.to_json(%{transcript | view: :any}) == Transcript.to_json(transcript)
  end

  test "an invalid value is an error with its path" do
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
    assert {:ok, _} = read.(good)

    message = fn place -> ["messages", Access.at(place)] end

    for {path, value, expected} <- [
          {["version"], 2, "the transcript's version: expected 1, got: 2"},
          {["profile"], 1, "the transcript's profile: expected text, got: 1"},
          {["extra"], 1,
           "the transcript: expected the fields version, profile, messages, left_out, got: " <>
             "also \"extra\""},
          {["messages"], %{}, "the transcript's messages: expected a list, got: %{}"},
          {["left_out"], [1], "the transcript's left_out[0]: expected an object, got: 1"},
          {message.(0), "a", "the transcript's messages[0]: expected an object, got: \"a\""},
          {message.(1) ++ ["kind"], "prompt",
           "the transcript's messages[1].kind: expected a prompt only as the first message, " <>
             "got: \"prompt\""},
          {message.(1) ++ ["role"], "user",
           "the transcript's messages[1]: expected the fields kind, content, at, " <>
             "activations, usage, got: also \"role\""},
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
