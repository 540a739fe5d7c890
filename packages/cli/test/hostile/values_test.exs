defmodule Skillbook.Hostile.ValuesTest do
  # The values of flags take linear time, for every command, as texts do by `linear_test.exs`.
  use ExUnit.Case, async: false

  alias Skillbook.{Cost, Growth, HostileTexts, TextFunctions}

  @moduletag :guard
  @moduletag :capture_log

  # Bytes of a value for a first look.
  @value 16_000

  setup do
    rows = TextFunctions.flags(&start_supervised!({Skillbook, &1}))
    assert length(rows) > 150
    {:ok, rows: rows}
  end

  test "two doublings of a value take at most 2.6 times as long each", %{rows: rows} do
    slow =
      for {_function, what, call} <- rows,
          least = Cost.time(fn -> call.("a") end, 3),
          {name, text} <- HostileTexts.values(),
          size = Growth.size(call, text.(@value), least),
          ratio = Growth.superlinear(call, text, size),
          do: "#{what}, #{name}: #{ratio}"

    assert slow == []
  end

  test "nothing just below a megabyte takes longer than seconds", %{rows: rows} do
    slow =
      for {_function, what, call} <- rows,
          text <- Growth.slow_megabytes(call),
          do: "#{what}, #{text}"

    assert slow == []
  end
end
