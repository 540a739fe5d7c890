defmodule Skillbook.Model.ScriptTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Agent, Model, ModelError, ScriptError}
  alias Skillbook.Model.Script

  doctest Skillbook.Model.Script
  doctest Skillbook.ScriptError

  defp ask(script, text, options \\ []) do
    test = self()
    Model.chat(script, [%{role: :user, content: text}], options, &send(test, {:text, &1}))
  end

  test "each kind of answer" do
    error = %ModelError{kind: :server, status: 503, reason: "overloaded"}

    for {item, expected} <- [
          {"Hello", "Hello"},
          {["Hel", "", "lo"], "Hello"},
          {%{text: "Hi", finish_reason: :length}, "Hi"},
          {{:ok, %{text: "Hi"}}, "Hi"},
          {fn [%{content: text}] -> "You said: #{text}" end, "You said: x"},
          {fn _messages, options -> "#{options[:max_tokens]}" end, "7"},
          {fn _messages -> ["in", " pieces"] end, "in pieces"},
          {error, {:error, error}},
          {{:error, error}, {:error, error}},
          {fn _messages -> error end, {:error, error}}
        ] do
      case ask(Script.new([item]), "x", max_tokens: 7) do
        {:ok, answer} -> assert answer.text == expected
        failed -> assert failed == expected
      end
    end

    ask(Script.new([["a", "b"]]), "x")
    assert_receive {:text, "a"}
    assert_receive {:text, "b"}
  end

  test "tool calls" do
    calls = [%{name: "tasks__get", arguments: %{id: "T-1"}}]
    {:ok, answer} = ask(Script.new([%{tool_calls: calls}]), "x")
    assert answer.finish_reason == :tool_calls
    assert [%{name: "tasks__get", arguments: ~S({"id":"T-1"})}] = answer.tool_calls
  end

  test "a script with tool calls gets tools" do
    call = %{tool_calls: [%{name: "tasks__get", arguments: %{}}]}

    for {answers, options, tools?} <- [
          {["a"], [], false},
          {["a", call], [], true},
          {[{:ok, call}], [], true},
          {[call], [tools: false], false},
          {[fn _ -> call end], [], false},
          {[fn _ -> call end], [tools: true], true}
        ],
        do: assert(Model.tools?(Script.new(answers, options)) == tools?)

    assert_raise Skillbook.OptionError, ~r/^unknown option :tool for a script/, fn ->
      Script.new([], tool: true)
    end
  end

  test "an assertion in an answer fails in the test" do
    script = Script.new([fn messages -> assert messages == [] end])
    assert_raise ExUnit.AssertionError, fn -> ask(script, "x") end
  end

  test "too few and too many answers are errors" do
    script = Script.new(["a"])
    assert Script.calls(script) == 0

    assert_raise ScriptError,
                 ~s(expected 1 call of a model with a script of 1 answer, got 0; ) <>
                   ~s(the next answer is "a"),
                 fn -> Script.verify!(script) end

    ask(script, "x")
    assert Script.verify!(script) == :ok
    assert Script.calls(script) == 1

    long = Enum.map_join(1..22, "\n", &"line #{&1}")
    error = assert_raise ScriptError, fn -> ask(script, long) end
    lines = error |> Exception.message() |> String.split("\n")

    assert hd(lines) ==
             "expected at most 1 call of a model with a script of 1 answer, got call 2, " <>
               "whose last message is:"

    assert Enum.at(lines, 1) == "  line 1"
    assert List.last(lines) == "  … 2 more lines"
  end

  test "other answers are refused when the script is made" do
    for {answers, message} <- [
          {[1],
           "expected text, a list of texts, a map, a Skillbook.ModelError or a function of " <>
             "one or two arguments as the answer 1 of a script, got: 1"},
          {["a", [1]],
           "expected text, a list of texts, a map, a Skillbook.ModelError or a function of " <>
             "one or two arguments as the answer 2 of a script, got: [1]"},
          {"a", ~s(expected a list of answers for a script, got: "a")}
        ] do
      assert_raise ArgumentError, message, fn -> Script.new(answers) end
    end
  end

  test "a script answers a run" do
    start_supervised!({Skillbook, name: :scripted, store: ":memory:", scheduler: false})

    script =
      Script.new([
        "```cmd\nmemory.save --content \"Likes tea\"\n```",
        fn messages ->
          assert List.last(messages).content =~ "[1] memory.save"
          "Noted."
        end
      ])

    assert {:ok, %{status: :done, text: "Noted."}} =
             Agent.run(:scripted, "I like tea", model: script)

    assert Script.verify!(script) == :ok
  end
end
