defmodule Skillbook.Support.NumberTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.Number

  doctest Number

  test "reads like Integer.parse and Float.parse, with a limit" do
    for text <-
          ["", "0", "-0", "+5", "7x", "x7", " 7", "--1", "1_000", "1.5", ".5", "1e3", "1.0e3"] ++
            ["-1.25e-3z", "1e", "1.", "٣", "18446744073709551615", "00012"] do
      assert Number.integer(text) == Integer.parse(text), text
      assert Number.float(text) == Float.parse(text), text
    end

    for base <- [8, 10, 16, 36],
        text <- ["17", "ff", "zz", "-7", "9"],
        do: assert(Number.integer(text, base) == Integer.parse(text, base))

    assert Number.integer(String.duplicate("9", 20)) == {99_999_999_999_999_999_999, ""}
    assert Number.integer("-" <> String.duplicate("9", 21) <> "x") == :error
    assert Number.integer(String.duplicate("f", 21), 16) == :error
    assert Number.float("0." <> String.duplicate("3", 58)) == {0.3333333333333333, ""}
    assert Number.float("0." <> String.duplicate("3", 59)) == :error
    assert Number.float("1.0e308") == {1.0e308, ""}
    assert Number.float("1.0e309") == :error
    assert_raise ArgumentError, fn -> Number.integer!(String.duplicate("1", 21)) end
    assert_raise ArgumentError, fn -> Number.integer!("1x") end
  end

  test "a million digits take no time" do
    digits = String.duplicate("7", 1_000_000)

    for function <- [&Number.integer/1, &Number.integer(&1, 16), &Number.float/1],
        text <- [digits, "-" <> digits, "1." <> digits, "1e" <> digits] do
      {:reductions, before} = Process.info(self(), :reductions)
      function.(text)
      {:reductions, now} = Process.info(self(), :reductions)
      assert now - before < 20_000
    end
  end
end
