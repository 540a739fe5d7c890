defmodule Skillbook.ExtractorTest do
  use ExUnit.Case, async: true

  alias Skillbook.{CommandError, Extractor}

  doctest Skillbook.Extractor

  @reply """
  Good morning!

  ```cmd
  tasks.search --overdue
  notes.add --body "two
  lines"
  ```

  Grüße…

  ```cmd
  get_skill: email
  """

  describe "extract/2" do
    test "an empty reply has nothing" do
      assert Extractor.extract("") == {:ok, %{commands: [], text: "", incomplete: []}}
    end

    test "a reply without blocks is text" do
      assert Extractor.extract("No commands.\n") ==
               {:ok, %{commands: [], text: "No commands.", incomplete: []}}
    end

    test "extracts blocks, and separately a block that was cut off" do
      assert {:ok, found} = Extractor.extract(@reply)
      assert found.commands == ["tasks.search --overdue", "notes.add --body \"two\nlines\""]
      assert found.text == "Good morning!\n\nGrüße…"
      assert found.incomplete == ["get_skill: email"]
    end

    test "runs the last block for callers that stop the model at the closing fence" do
      assert {:ok, found} = Extractor.extract(@reply, unclosed: :run)
      assert List.last(found.commands) == "get_skill: email"
      assert found.incomplete == []
    end

    test "invalid UTF-8 is an error with its position" do
      assert {:error, %CommandError{kind: :invalid_utf8, offset: 3} = error} =
               Extractor.extract("abc\xFFdef")

      assert Exception.message(error) ==
               "the text is not valid UTF-8: byte 3 does not begin a character\nhint: send " <>
                 "the reply as UTF-8"
    end

    test "large replies have the same result" do
      padding = String.duplicate("x\n", 100_000)
      assert {:ok, found} = Extractor.extract(@reply <> "```\n" <> padding)
      assert length(found.commands) == 3
      assert String.ends_with?(found.text, "x\nx")

      assert {:error, %CommandError{kind: :text_too_large}} =
               Extractor.extract(String.duplicate("x", 16 * 1024 * 1024 + 1))
    end

    test "options are checked" do
      assert_raise ArgumentError, ~r/unknown keys \[:unclosd\]/, fn ->
        Extractor.extract("", unclosd: :run)
      end

      assert_raise ArgumentError, ~r/got: :maybe/, fn ->
        Extractor.extract("", unclosed: :maybe)
      end

      assert_raise FunctionClauseError, fn -> apply(Extractor, :extract, [:text]) end
    end
  end

  describe "streams" do
    test "events do not depend on the chunks" do
      {:ok, whole} = Extractor.extract(@reply)

      for size <- [1, 2, 3, 7, 50, 10_000] do
        {events, state} =
          @reply |> chunks(size) |> Enum.flat_map_reduce(Extractor.new(), &Extractor.feed(&2, &1))

        {last, _state} = Extractor.finish(state)
        assert joined(events ++ last) == whole, "chunks of #{size} bytes"
      end
    end

    test "an error in any chunk ends the stream" do
      {events, state} = Extractor.feed(Extractor.new(), "a\xC3")
      assert events == [text: "a"]

      assert {[error: %CommandError{kind: :invalid_utf8, offset: 1}], state} =
               Extractor.feed(state, "(")

      assert {[], state} = Extractor.feed(state, "more")
      assert {[], _state} = Extractor.finish(state)
    end

    test "a state can be fed only once" do
      state = Extractor.new()
      Extractor.feed(state, "a")
      assert_raise ArgumentError, ~r/was fed before/, fn -> Extractor.feed(state, "b") end
    end

    test "a long chunk does not block a scheduler and has the same result" do
      text = String.duplicate("word\n", 50_000)
      {events, state} = Extractor.feed(Extractor.new(), text)
      {last, _} = Extractor.finish(state)
      assert joined(events ++ last).text == String.trim(text)
    end
  end

  defp chunks(text, size) when byte_size(text) <= size, do: [text]

  defp chunks(text, size),
    do: [
      binary_part(text, 0, size) | chunks(binary_part(text, size, byte_size(text) - size), size)
    ]

  defp joined(events) do
    {commands, text, open} =
      Enum.reduce(events, {[], "", []}, fn
        {:text, piece}, {commands, text, open} -> {commands, text <> piece, open}
        {:command, command}, {commands, text, open} -> {commands, text, open ++ [command]}
        {:block, :closed}, {commands, text, open} -> {commands ++ open, text, []}
        {:block, :incomplete}, acc -> acc
      end)

    %{commands: commands, text: text, incomplete: open}
  end
end
