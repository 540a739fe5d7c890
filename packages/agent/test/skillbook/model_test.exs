defmodule Skillbook.ModelTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Model, ModelError}

  doctest Skillbook.Model
  doctest Skillbook.Model.Function

  @hello [%{role: :user, content: "Hello"}]

  defp received(tag) do
    receive do
      {^tag, value} -> [value | received(tag)]
    after
      0 -> []
    end
  end

  test "the options of a chat are validated" do
    for {options, message} <- [
          {[temprature: 1],
           "unknown option :temprature for a model's answer, did you mean :temperature? The " <>
             "options are :stop, :temperature, :max_tokens, :tools, :tool_choice, " <>
             ":on_tool_call, :grammar, :schema, :extra, :timeout, :on_retry"},
          {[stop: "x"],
           "expected a list of texts as the option :stop of a model's answer, got: \"x\""}
        ] do
      model = Model.Function.new(fn _, _ -> "a" end)

      assert_raise Skillbook.OptionError, message, fn ->
        Model.chat(model, @hello, options, fn _ -> :ok end)
      end
    end
  end

  test "a function may stream its text, fail, or count tokens" do
    said = fn function ->
      Model.chat(Model.Function.new(function), @hello, [], &send(self(), {:text, &1}))
    end

    assert {:ok, %{text: "ab"}} =
             said.(fn _, _, on_text ->
               on_text.("a")
               on_text.("b")
               "ab"
             end)

    assert received(:text) == ["a", "b"]
    assert {:ok, %{text: "ab"}} = said.(fn _, _ -> ["a", "", "b"] end)
    assert received(:text) == ["a", "b"]
    error = %ModelError{kind: :server, reason: "oh"}
    assert {:error, ^error} = said.(fn _, _ -> {:error, error} end)

    counts = %{prompt_tokens: 1, completion_tokens: 1}

    answer = %{
      text: "a",
      usage: counts,
      finish_reason: :length
    }

    full =
      Map.merge(answer, %{
        usage: Map.merge(counts, %{cached_tokens: 0, cache_write_tokens: 0}),
        tool_calls: [],
        opaque: nil,
        model: nil
      })

    assert {:ok, ^full} = said.(fn _, _ -> answer end)
    assert {:ok, ^full} = said.(fn _, _ -> {:ok, answer} end)
    assert {:ok, %{text: "abc"}} = said.(fn _, _ -> ["a", [?b, "c"]] end)
    assert received(:text) == ["a", "a", "abc"]
  end

  test "a function may call tools" do
    earlier = %{id: "call_1", name: "one", arguments: "{}"}

    messages =
      @hello ++
        [
          %{role: :assistant, content: "", tool_calls: [earlier]},
          %{role: :tool, id: "call_1", name: "one", content: "ok", error: false}
        ]

    calls = [
      %{name: "two", arguments: %{"b" => 1, "a" => "x"}},
      %{id: "own", name: "three", arguments: ~s({"broken)},
      %{name: "four"}
    ]

    model = Model.Function.new(fn _, _ -> %{text: "Wait.", tool_calls: calls} end)
    options = [on_tool_call: &send(self(), {:piece, &1})]
    {:ok, answer} = Model.chat(model, messages, options, &send(self(), {:text, &1}))

    assert answer.tool_calls == [
             %{id: "call_2", name: "two", arguments: ~s({"a":"x","b":1})},
             %{id: "own", name: "three", arguments: ~s({"broken)},
             %{id: "call_4", name: "four", arguments: "{}"}
           ]

    assert {answer.text, answer.finish_reason} == {"Wait.", :tool_calls}

    assert received(:piece) ==
             for(
               {call, index} <- Enum.with_index(answer.tool_calls),
               do: Map.put(call, :index, index)
             )
  end
end
