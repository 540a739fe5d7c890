defmodule Skillbook.Flags.CastTest do
  use ExUnit.Case, async: true

  alias Skillbook.{FlagError, Flags}

  # Each row has a name, the value of the flag, and the expected value or error text.
  defp check(rows, cast) do
    for {name, value, expected} <- rows do
      case {cast.(%{"f" => value}), expected} do
        {{:ok, flags}, {:error, text}} ->
          flunk("#{name}: expected the error #{inspect(text)}, got: #{inspect(flags["f"])}")

        {{:ok, flags}, expected} ->
          assert flags["f"] === expected, "#{name}: got #{inspect(flags["f"])}"

        {{:error, %FlagError{} = e}, {:error, text}} ->
          assert Exception.message(e) == text, "#{name}: got #{inspect(Exception.message(e))}"

        {{:error, e}, _} ->
          flunk("#{name}: got the error #{Exception.message(e)}")
      end
    end
  end

  defp message({:error, %FlagError{} = e}), do: Exception.message(e)

  describe "validate_enum/3" do
    @levels ~w(high in_progress low)

    test "accepts allowed and absent values" do
      for value <- ["high", ["high", "low"], nil, [], ["low"]],
          do: assert(Flags.validate_enum(%{"f" => value}, "f", @levels) == :ok)

      assert Flags.validate_enum(%{}, "f", @levels) == :ok
    end

    test "rejects other values" do
      rows = [
        {"urgent",
         ~s(--f must be one of high, in_progress, low, got "urgent". Write for example: --f ) <>
           ~s(high)},
        {"High",
         ~s(--f must be one of high, in_progress, low, got "High". Write for example: --f high)},
        {"in_progres",
         ~s(--f must be one of high, in_progress, low, got "in_progres". Write for example: ) <>
           ~s(--f in_progress)},
        {["high", "x", "y"],
         ~s(--f must be one of high, in_progress, low, got "x", "y". Write for example: --f ) <>
           ~s(high)},
        {5, "--f must be one of high, in_progress, low, got 5. Write for example: --f high"},
        {true, "--f needs a value and has none. Write for example: --f high"}
      ]

      for {value, text} <- rows,
          do: assert(message(Flags.validate_enum(%{"f" => value}, "f", @levels)) == text)
    end

    test "quotes an example with blanks" do
      assert message(Flags.validate_enum(%{"f" => "x"}, "f", ["on hold"])) ==
               ~s(--f must be one of on hold, got "x". Write for example: --f "on hold")
    end
  end

  test "cast_keyword/2" do
    check(
      [
        {"case", "High", "high"},
        {"dash", "in-progress", "in_progress"},
        {"blank", " In Progress ", "in_progress"},
        {"list", ["High", "in-progress"], ["high", "in_progress"]},
        {"list of one", ["High"], ["high"]},
        {"no value", true, true},
        {"number", 5, 5},
        {"absent", nil, nil}
      ],
      &Flags.cast_keyword(&1, "f")
    )
  end

  test "cast_integer/3" do
    plain = fn got ->
      {:error, "--f must be a whole number, got #{got}. Write for example: --f 10"}
    end

    check(
      [
        {"digits", "12", 12},
        {"blanks", " 12 ", 12},
        {"negative", "-5", -5},
        {"number", 12, 12},
        {"whole float", 12.0, 12},
        {"one in a list", ["12"], 12},
        {"absent", nil, nil},
        {"whole float in text", "7.0", 7},
        {"whole float in text", "-7.00", -7},
        {"fraction in text", "7.01", plain.(~s("7.01"))},
        {"a point alone", "7.", plain.(~s("7."))},
        {"an exponent", "7e1", plain.(~s("7e1"))},
        {"64 bits", "9223372036854775807", 9_223_372_036_854_775_807},
        {"64 bits", "-9223372036854775808", -9_223_372_036_854_775_808},
        {"more in text", "9223372036854775808", plain.(~s("9223372036854775808"))},
        {"more in JSON", 9_223_372_036_854_775_808, plain.("9223372036854775808")},
        {"a float that is exact", 9_007_199_254_740_992.0, 9_007_199_254_740_992},
        {"a larger one", 1.0e16, plain.("1.0e16")},
        {"no number", "NaN", plain.(~s("NaN"))},
        {"no number", "Infinity", plain.(~s("Infinity"))},
        {"fraction", "1.5", plain.(~s("1.5"))},
        {"float", 1.5, plain.("1.5")},
        {"word", "ten", plain.(~s("ten"))},
        {"trailing", "10x", plain.(~s("10x"))},
        {"empty", "", plain.(~s(""))},
        {"false", false, plain.("false")},
        {"object", %{"a" => 1}, plain.("an object")},
        {"no value", true, {:error, "--f needs a value and has none. Write for example: --f 10"}},
        {"several", ["5", "10"],
         {:error, ~s(--f takes one value, got 2: "5", "10". Write for example: --f 10)}}
      ],
      &Flags.cast_integer(&1, "f")
    )

    bounded = fn got ->
      {:error, "--f must be a whole number from 1 to 100, got #{got}. Write for example: --f 1"}
    end

    check(
      [
        {"least", "1", 1},
        {"greatest", "100", 100},
        {"below", "0", bounded.(~s("0"))},
        {"above", "101", bounded.(~s("101"))}
      ],
      &Flags.cast_integer(&1, "f", min: 1, max: 100)
    )

    check(
      [
        {"greatest", "5", 5},
        {"above", "6",
         {:error, ~s(--f must be a whole number up to 5, got "6". Write for example: --f 5)}}
      ],
      &Flags.cast_integer(&1, "f", max: 5)
    )
  end

  test "cast_number/3" do
    plain = fn got -> {:error, "--f must be a number, got #{got}. Write for example: --f 2.5"} end

    check(
      [
        {"fraction", "1.5", 1.5},
        {"whole", "2", 2.0},
        {"exponent", "1e3", 1000.0},
        {"integer", 2, 2.0},
        {"float", 2.5, 2.5},
        {"too great", "1e999", plain.(~s("1e999"))},
        {"comma", "1,5", plain.(~s("1,5"))},
        {"word", "x", plain.(~s("x"))},
        {"no value", true, {:error, "--f needs a value and has none. Write for example: --f 2.5"}}
      ],
      &Flags.cast_number(&1, "f")
    )

    check(
      [
        {"least", "0", 0.0},
        {"below", "-0.1",
         {:error, ~s(--f must be a number from 0 to 1, got "-0.1". Write for example: --f 0)}}
      ],
      &Flags.cast_number(&1, "f", min: 0, max: 1)
    )
  end

  test "cast_boolean/2" do
    error = fn got ->
      {:error, "--f must be a switch, alone or with true or false, got #{got}. Write it as: --f"}
    end

    check(
      [
        {"alone", true, true},
        {"JSON false", false, false},
        {"yes", "Yes", true},
        {"no", "no", false},
        {"1", 1, true},
        {"0", "0", false},
        {"on", "on", true},
        {"off", "off", false},
        {"absent", nil, nil},
        {"word", "report", error.(~s("report"))},
        {"2", 2, error.("2")},
        {"several", ["a", "b"],
         {:error, ~s(--f takes one value, got 2: "a", "b". Write it as: --f)}}
      ],
      &Flags.cast_boolean(&1, "f")
    )
  end

  test "cast_date/3" do
    error = fn got ->
      {:error, "--f must be a day as YYYY-MM-DD, got #{got}. Write for example: --f 2026-03-01"}
    end

    check(
      [
        {"a day", "2026-02-28", ~D[2026-02-28]},
        {"leap day", "2028-02-29", ~D[2028-02-29]},
        {"already one", ~D[2026-02-28], ~D[2026-02-28]},
        {"no leap day", "2026-02-29", error.(~s("2026-02-29"))},
        {"one digit", "2026-2-8", error.(~s("2026-2-8"))},
        {"German", "28.02.2026", error.(~s("28.02.2026"))},
        {"negative year", "-2026-02-28", error.(~s("-2026-02-28"))},
        {"date and time", "2026-02-28T10:00:00Z", error.(~s("2026-02-28T10:00:00Z"))},
        {"today unknown", "today", error.(~s("today"))},
        {"no value", true,
         {:error, "--f needs a value and has none. Write for example: --f 2026-03-01"}}
      ],
      &Flags.cast_date(&1, "f")
    )

    check(
      [
        {"yesterday", "yesterday", ~D[2026-02-27]},
        {"today", "TODAY", ~D[2026-02-28]},
        {"tomorrow", "tomorrow", ~D[2026-03-01]},
        {"a day", "2026-02-28", ~D[2026-02-28]},
        {"weekday", "monday",
         {:error,
          ~s(--f must be a day as YYYY-MM-DD, yesterday, today or tomorrow, got "monday". ) <>
            ~s(Write for example: --f 2026-03-01)}}
      ],
      &Flags.cast_date(&1, "f", today: ~D[2026-02-28])
    )
  end

  test "cast_datetime/2" do
    error = fn got ->
      {:error,
       "--f must be a date, a time and an offset in ISO 8601, got #{got}. Write for example: " <>
         "--f 2026-03-01T10:00:00+01:00"}
    end

    check(
      [
        {"UTC", "2026-03-01T10:00:00Z", ~U[2026-03-01 10:00:00Z]},
        {"offset", "2026-03-01T10:00:00-05:00", ~U[2026-03-01 15:00:00Z]},
        {"already one", ~U[2026-03-01 10:00:00Z], ~U[2026-03-01 10:00:00Z]},
        {"without offset", "2026-03-01T10:00:00", error.(~s("2026-03-01T10:00:00"))},
        {"day only", "2026-03-01", error.(~s("2026-03-01"))}
      ],
      &Flags.cast_datetime(&1, "f")
    )
  end

  test "cast_text/3" do
    error = fn got ->
      {:error, ~s(--f must be text, not empty, got #{got}. Write for example: --f "some text")}
    end

    check(
      [
        {"text", "Review the PR", "Review the PR"},
        {"forgotten quotes", ["Review", "the", "PR"], "Review the PR"},
        {"integer", 5, "5"},
        {"float", 1.5, "1.5"},
        {"words and a number", ["Q", 1], "Q 1"},
        {"lines", "one\ntwo\tthree", "one\ntwo\tthree"},
        {"absent", nil, nil},
        {"empty", "", error.(~s(""))},
        {"blanks", " \n ", error.(~S(" \n "))},
        {"NUL", "a\0b", error.(~S("a\0b"))},
        {"escape", "a\e[31m", error.(~S("a\e[31m"))},
        {"false", false, error.("false")},
        {"object", %{}, error.("an object")},
        {"object among words", ["a", %{}],
         {:error,
          ~s(--f takes one value, got 2: "a", an object. Write for example: --f "some text")}},
        {"no value", true,
         {:error, ~s(--f needs a value and has none. Write for example: --f "some text")}}
      ],
      &Flags.cast_text(&1, "f")
    )

    line = fn got ->
      {:error,
       ~s(--f must be one line of text of at most 5 characters, not empty, got #{got}. Write ) <>
         ~s(for example: --f "some text")}
    end

    check(
      [
        {"as long as allowed", "äöüßé", "äöüßé"},
        {"longer", "sechs6", line.(~s("sechs6"))},
        {"line break", "a\nb", line.(~S("a\nb"))},
        {"carriage return", "a\rb", line.(~S("a\rb"))},
        {"line separator", "a\u2028b", line.(inspect("a\u2028b"))}
      ],
      &Flags.cast_text(&1, "f", max: 5, line: true)
    )
  end

  test "truncates long values in errors" do
    {:error, e} = Flags.cast_integer(%{"f" => String.duplicate("x", 1000)}, "f")

    assert Exception.message(e) ==
             ~s(--f must be a whole number, got "#{String.duplicate("x", 60)}...". Write for ) <>
               ~s(example: --f 10)

    {:error, e} = Flags.cast_integer(%{"f" => Enum.map(1..9, &to_string/1)}, "f")

    assert Exception.message(e) ==
             ~s(--f takes one value, got 9: "1", "2", "3", "4", "5" and 4 more. Write for ) <>
               ~s(example: --f 10)
  end

  test "cast_list/2" do
    error = fn got ->
      {:error,
       "--f must be one or more values, each one line, got #{got}. Write for example: --f " <>
         "one two"}
    end

    check(
      [
        {"one", "Q1", ["Q1"]},
        {"several", ["Q1", "backend"], ["Q1", "backend"]},
        {"commas", "Q1, backend,ops", ["Q1", "backend", "ops"]},
        {"both", ["Q1,", "backend"], ["Q1", "backend"]},
        {"blanks inside", "to do,later", ["to do", "later"]},
        {"repeated", ["b", "a", "b"], ["b", "a"]},
        {"numbers", [1, 2], ["1", "2"]},
        {"absent", nil, nil},
        {"empty JSON list", [], []},
        {"nothing", "", error.(~s(""))},
        {"line break", ["a", "b\nc"], error.(~S("b\nc"))},
        {"object", ["a", %{}], error.(~s("a", an object))},
        {"no value", true,
         {:error, "--f needs a value and has none. Write for example: --f one two"}}
      ],
      &Flags.cast_list(&1, "f")
    )
  end

  test "cast_email/2 and cast_emails/2" do
    error = fn got ->
      {:error,
       "--f must be an e-mail address, got #{got}. Write for example: --f bob@example.com"}
    end

    check(
      [
        {"address", "bob.smith+x@mail.example.com", "bob.smith+x@mail.example.com"},
        {"blanks around", " bob@example.com ", "bob@example.com"},
        {"no at", "bob", error.(~s("bob"))},
        {"no dot", "bob@host", error.(~s("bob@host"))},
        {"two ats", "a@b@example.com", error.(~s("a@b@example.com"))},
        {"display name", "Bob <bob@example.com>", error.(~s("Bob <bob@example.com>"))},
        {"line break", "bob@example.com\nBcc: x@y.z", error.(~S("bob@example.com\nBcc: x@y.z"))},
        {"trailing dot", "bob@example.", error.(~s("bob@example."))},
        {"several", ["a@b.de", "c@d.de"],
         {:error,
          ~s(--f takes one value, got 2: "a@b.de", "c@d.de". Write for example: --f ) <>
            ~s(bob@example.com)}}
      ],
      &Flags.cast_email(&1, "f")
    )

    check(
      [
        {"one", "a@b.de", ["a@b.de"]},
        {"several", ["a@b.de", "c@d.de"], ["a@b.de", "c@d.de"]},
        {"commas", "a@b.de, c@d.de", ["a@b.de", "c@d.de"]},
        {"one wrong", ["a@b.de", "me"],
         {:error,
          ~s(--f must be one or more e-mail addresses, got "me". Write for example: --f ) <>
            ~s(bob@example.com ann@example.com)}}
      ],
      &Flags.cast_emails(&1, "f")
    )
  end
end
