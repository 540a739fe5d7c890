defmodule Skillbook.Agent.OutputTest do
  # Answers of runs as data.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agent, FlagError, Model, ObjectError, OptionError}

  @schema %{
    "type" => "object",
    "properties" => %{
      "city" => %{"type" => "string", "maxLength" => 20},
      "people" => %{"type" => "integer", "minimum" => 0}
    },
    "required" => ["city"]
  }

  defmodule Booking do
    use Skillbook.Skill,
      name: "rooms.book",
      description: "A booking",
      flags: [
        room: [type: :text, required: true],
        day: :date,
        people: [type: :integer, min: 1, default: 2],
        tags: [type: :text, repeatable: true]
      ]

    @impl true
    def execute(_flags, _context), do: :ok
  end

  defmodule Plain do
    use Skillbook.Skill, name: "rooms.list", description: "A list"

    @impl true
    def execute(_flags, _context), do: :ok
  end

  setup do
    {:ok, book: book(builtins: ["tasks"], store: ":memory:", watch: false)}
  end

  defp run(book, replies, output, options \\ []) do
    test = self()
    {:ok, left} = Elixir.Agent.start_link(fn -> replies end)

    model =
      Model.Function.new(fn messages, _options ->
        send(test, {:asked, messages})
        Elixir.Agent.get_and_update(left, fn [reply | more] -> {reply, more} end)
      end)

    {:ok, result} = Agent.run(book, "Where?", [model: model, output: output] ++ options)
    result
  end

  test "an answer of a schema is checked and repaired once", %{book: book} do
    oslo = %{"city" => "Oslo"}

    for {replies, status, output, turns} <- [
          {[~s({"city": "Oslo"})], :done, oslo, 1},
          {[~s(Here it is:\n\n```json\n{"city": "Oslo"}\n```)], :done, oslo, 1},
          {["```cmd\ntasks.search\n```", ~s({"city": "Oslo", "people": 3})], :done,
           Map.put(oslo, "people", 3), 2},
          {["In Oslo.", ~s({"city": "Oslo"})], :done, oslo, 2},
          {[~s({"town": "Oslo"}), ~s({"city": "Oslo"})], :done, oslo, 2},
          {["In Oslo.", "I said: in Oslo."], :invalid_output, nil, 2},
          {[~s({"city": 1}), ~s({"city": "Oslo", "people": -1})], :invalid_output, nil, 2},
          {["In Oslo.", "```cmd\ntasks.search\n```", ~s({"city": "Oslo"})], :done, oslo, 3}
        ] do
      result = run(book, replies, @schema)
      got = {result.status, result.output, result.turns}
      assert {replies, got} == {replies, {status, output, turns}}
      if status == :invalid_output, do: assert(%ObjectError{} = result.error)
    end
  end

  test "the model reads the schema and what is wrong", %{book: book} do
    run(book, [~s({"city": 1}), ~s({"city": "Oslo"})], @schema)
    assert_received {:asked, [%{role: :system, content: prompt}, %{content: input}]}
    refute prompt =~ "JSON schema"

    assert String.starts_with?(
             input,
             "Where?\n\nYour answer, the reply without commands, must be one JSON object and " <>
               "nothing else. It must match this JSON schema: {"
           )

    assert input =~ ~s("maxLength":20)
    assert_received {:asked, [_, _, _, %{role: :user, content: repair}]}

    assert repair ==
             "Your answer cannot be used: the model's answer, at city: expected text, got: 1. " <>
               "Answer again, with one JSON object that matches the schema and nothing else."
  end

  test "an answer of a module has the types of its flags", %{book: book} do
    for {reply, output} <- [
          {~s({"room": "Blue"}), %{"room" => "Blue", "people" => 2}},
          {~s({"room": "Blue", "day": "2026-03-01", "people": "4", "tags": ["a"]}),
           %{"room" => "Blue", "day" => ~D[2026-03-01], "people" => 4, "tags" => ["a"]}}
        ] do
      assert %{status: :done, output: ^output} = run(book, [reply], Booking)
    end

    wrong = [~s({"day": "2026-03-01"}), ~s({"room": "Blue", "people": 0})]

    assert %{status: :invalid_output, output: nil, error: %FlagError{}} =
             run(book, wrong, Booking)

    assert_received {:asked, [_, %{content: input}]}
    assert input =~ ~s("room")
    assert_received {:asked, [_, %{content: _}]}
  end

  test "without the option the answer is text", %{book: book} do
    assert %{status: :done, output: nil, text: "In Oslo."} = run(book, ["In Oslo."], nil)
  end

  test "the option is checked", %{book: book} do
    for {output, expected} <- [
          {%{"type" => "array"}, "expected a JSON schema with \"type\" => \"object\""},
          {String, "expected a JSON schema or a module that uses Skillbook.Skill as the option"},
          {Plain, "expected a module of Skillbook.Skill with :flags as the option :output"},
          {"text", "expected a JSON schema, a module of Skillbook.Skill or nil as the option"}
        ] do
      error = catch_error(run(book, [], output))
      assert %OptionError{option: :output} = error
      assert String.starts_with?(Exception.message(error), expected)
    end
  end
end
