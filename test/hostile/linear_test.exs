defmodule Skillbook.Hostile.LinearTest do
  # Every public function that takes text takes linear time, over texts that are hostile to
  # parsers: twice the text takes at most 2.6 times as long, on the average of two doublings.
  use ExUnit.Case, async: false

  alias Skillbook.{Cost, HostileTexts, TextFunctions}

  @moduletag :guard
  @moduletag :capture_log
  @moduletag :tmp_dir

  @largest_ratio 2.6
  # The texts for a first look, in bytes: shorter ones for functions that take so many
  # microseconds longer for plain text of 16,000 bytes. A call is measured if its text takes
  # longer than @shortest.
  @sizes [{500, 32_000}, {2_000, 16_000}, {:infinity, 4_000}]
  @shortest 4_000
  # A call that takes longer is measured with shorter texts instead of longer ones.
  @long 40_000
  # Below this time, in microseconds, a ratio says more about the measurement than about the call.
  @measured 1_000
  @attempts 6

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
          size = size(call, long, least + @shortest),
          ratio = superlinear(call, text, size, @attempts),
          do: "#{inspect(module)}.#{function} #{what}, #{name}: #{ratio}"

    assert slow == []
  end

  test "finds a function that takes quadratic time" do
    # A fifth of a microsecond for each byte, and some picoseconds for each pair of them.
    quadratic = fn text ->
      for at <- 0..byte_size(text), do: :binary.match(text, "z", scope: {0, at})
    end

    repeat = &String.duplicate("a", &1)
    size = size(quadratic, repeat.(32_000), @shortest)
    assert superlinear(quadratic, repeat, size, @attempts) =~ ~r/\A\d+, \d+, \d+, \d+ µs\z/

    linear = fn text -> for <<byte <- text>>, do: Integer.to_string(byte) end
    size = size(linear, repeat.(32_000), @shortest)
    refute superlinear(linear, repeat, size, @attempts)
  end

  defp rows(folder) do
    start = &start_supervised!({Skillbook, &1})
    folder |> TextFunctions.world(start) |> TextFunctions.rows()
  end

  # The longest text to measure with; `nil` for a quick call, as most are.
  defp size(call, text, most) do
    shortest =
      Enum.reduce_while(1..3, nil, fn _, _ ->
        time = Cost.time(fn -> call.(text) end, 1)
        {if(time > most, do: :cont, else: :halt), time}
      end)

    cond do
      shortest <= most -> nil
      shortest <= @long -> min(64_000, 4 * byte_size(text))
      true -> byte_size(text)
    end
  end

  # The processor times at n, 2n, 4n and 8n in microseconds, if they grow too much; `nil` as soon
  # as they do not. Other programs make times longer, never shorter, so the shortest of all
  # attempts count.
  defp superlinear(call, text, size, attempts, before \\ [nil, nil, nil, nil])
  defp superlinear(_call, _text, nil, _attempts, _before), do: nil

  defp superlinear(call, text, size, attempts, before) do
    times =
      for {part, before} <- Enum.zip([8, 4, 2, 1], before) do
        text = text.(div(size, part))
        # Each attempt measures for longer than the one before.
        min(Cost.cpu(fn -> call.(text) end, 10 * (@attempts + 1 - attempts)), before)
      end

    # One doubling alone may cost more, where longer texts go to another reader or to another
    # scheduler. Two together must not.
    grows? =
      times
      |> Enum.chunk_every(3, 1, :discard)
      |> Enum.any?(fn [one, _two, four] ->
        one > @measured and four > @largest_ratio * @largest_ratio * one
      end)

    cond do
      not grows? -> nil
      attempts > 1 -> superlinear(call, text, size, attempts - 1, times)
      true -> Enum.map_join(times, ", ", &round/1) <> " µs"
    end
  end
end
