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
  # The size of a flag's value for a first look.
  @value 16_000
  # A call that takes longer is measured with shorter texts instead of longer ones.
  @long 40_000
  # The pieces of which a text of nearly a megabyte is made, and its time in microseconds.
  @large ["9", "0.", "a ", "a: b\n", "\""]
  @megabyte 1_000_000 - 1_000
  # Microseconds: a second on a fast and quiet machine, and up to three elsewhere. Calls that grow
  # faster than their texts take minutes.
  @second 3_000_000
  # Below this time, in microseconds, a ratio says more about the measurement than about the call.
  @measured 1_000
  # A processor may be slow for most of the time, while its other threads are busy.
  @attempts 16
  # Milliseconds of a first look, and of a measurement. The clock of processor times may tick
  # every ten milliseconds, so a first look may find a time that is too short, and is not kept.
  @look 10
  @measurement 100

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

  test "nor do two doublings of a flag's value, for every command" do
    rows = TextFunctions.flags(&start_supervised!({Skillbook, &1}))
    assert length(rows) > 150

    slow =
      for {_function, what, call} <- rows,
          least = Cost.time(fn -> call.("a") end, 3),
          {name, text} <- HostileTexts.values(),
          size = size(call, text.(@value), least + @shortest),
          ratio = superlinear(call, text, size, @attempts),
          do: "#{what}, #{name}: #{ratio}"

    assert slow == []

    long =
      for {_function, what, call} <- rows,
          piece <- @large,
          text = String.duplicate(piece, div(@megabyte, byte_size(piece))),
          time = longer(call, text, @second),
          do: "#{what}, #{inspect(piece)}: #{round(time)} µs"

    assert long == []
  end

  test "nothing just below a megabyte takes longer than seconds", %{tmp_dir: folder} do
    slow =
      for {{module, function}, what, call} <- rows(folder),
          piece <- @large,
          text = String.duplicate(piece, div(@megabyte, byte_size(piece))),
          time = longer(call, text, @second),
          do: "#{inspect(module)}.#{function} #{what}, #{inspect(piece)}: #{round(time)} µs"

    assert slow == []
  end

  test "finds a function that takes quadratic time" do
    # A tenth of a microsecond for each byte, and some picoseconds for each pair of them: two
    # doublings take eleven times as long, far more than a busy machine adds to a first attempt.
    quadratic = fn text -> for _ <- 0..byte_size(text), do: :binary.match(text, "z") end

    repeat = &String.duplicate("a", &1)
    size = size(quadratic, repeat.(32_000), @shortest)

    # Other programs can hide the growth from one measurement, but never from each.
    found = Enum.find_value(1..5, fn _ -> superlinear(quadratic, repeat, size, @attempts) end)
    assert found =~ ~r/\A\d+, \d+, \d+, \d+ µs\z/

    linear = fn text -> for <<byte <- text>>, do: Integer.to_string(byte) end
    size = size(linear, repeat.(32_000), @shortest)
    refute superlinear(linear, repeat, size, @attempts)
  end

  defp rows(folder) do
    start = &start_supervised!({Skillbook, &1})
    folder |> TextFunctions.world(start) |> TextFunctions.rows()
  end

  # The processor time of a call, if it is longer, also without the time of other programs.
  defp longer(call, text, most) do
    if Cost.time(fn -> call.(text) end, 1) > most do
      time = Cost.cpu(fn -> call.(text) end, 1)
      if time > most, do: time
    end
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
        while = if(attempts == @attempts, do: @look, else: @measurement)
        min(Cost.cpu(fn -> call.(text) end, while), before)
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
      attempts == @attempts -> superlinear(call, text, size, attempts - 1)
      attempts > 1 -> superlinear(call, text, size, attempts - 1, times)
      true -> Enum.map_join(times, ", ", &round/1) <> " µs"
    end
  end
end
