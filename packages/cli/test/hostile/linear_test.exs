defmodule Skillbook.Hostile.LinearTest do
  # Every public function that takes text takes linear time, over texts that are hostile to
  # parsers. `values_test.exs` does so for the flags of commands.
  use ExUnit.Case, async: false

  alias Skillbook.{Cost, Growth, HostileTexts, TextFunctions}

  @moduletag :guard
  @moduletag :capture_log
  @moduletag :tmp_dir

  # The texts for a first look, in bytes: shorter ones for functions that take so many
  # microseconds longer for plain text of 16,000 bytes.
  @sizes [{500, 32_000}, {2_000, 16_000}, {:infinity, 4_000}]

  test "every public function that takes text is in the table", %{tmp_dir: folder} do
    rows = rows(folder)

    # A new function belongs into the table of Skillbook.TextFunctions, or, if its texts are short
    # by nature, into its list of others with the reason.
    assert TextFunctions.missing(rows) == {[], []}
  end

  test "two doublings of a text take at most 2.6 times as long each, on average", %{
    tmp_dir: folder
  } do
    texts =
      for {_, size} <- @sizes,
          into: %{},
          do: {size, for({name, text} <- HostileTexts.all(), do: {name, text, text.(size)})}

    slow =
      for {{module, function}, what, call} <- rows(folder),
          least = Cost.time(fn -> call.("a") end, 5),
          plain = Cost.time(fn -> call.(String.duplicate("word\n", 3_200)) end, 5),
          {_, first} = Enum.find(@sizes, fn {most, _} -> plain - least < most end),
          {name, text, long} <- texts[first],
          size = Growth.size(call, long, least),
          ratio = Growth.superlinear(call, text, size),
          do: "#{inspect(module)}.#{function} #{what}, #{name}: #{ratio}"

    assert slow == []
  end

  test "nothing just below a megabyte takes longer than seconds", %{tmp_dir: folder} do
    slow =
      for {{module, function}, what, call} <- rows(folder),
          text <- Growth.slow_megabytes(call),
          do: "#{inspect(module)}.#{function} #{what}, #{text}"

    assert slow == []
  end

  test "finds a function that takes quadratic time" do
    # A tenth of a microsecond for each byte, and some picoseconds for each pair of them: two
    # doublings take eleven times as long, far more than a busy machine adds to a first attempt.
    quadratic = fn text -> for _ <- 0..byte_size(text), do: :binary.match(text, "z") end

    repeat = &String.duplicate("a", &1)
    size = Growth.size(quadratic, repeat.(32_000), 0)

    # Other programs can hide the growth from one measurement, but never from each.
    found = Enum.find_value(1..5, fn _ -> Growth.superlinear(quadratic, repeat, size) end)
    assert found =~ ~r/\A\d+, \d+, \d+, \d+ µs\z/

    linear = fn text -> for <<byte <- text>>, do: Integer.to_string(byte) end
    size = Growth.size(linear, repeat.(32_000), 0)
    refute Growth.superlinear(linear, repeat, size)
  end

  defp rows(folder) do
    start = &start_supervised!({Skillbook, &1})
    folder |> TextFunctions.world(start) |> TextFunctions.rows()
  end
end
