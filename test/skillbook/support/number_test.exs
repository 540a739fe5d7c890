defmodule Skillbook.Support.NumberTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.Number

  doctest Number

  # Functions that read numbers from text in one call of the virtual machine, of quadratic time.
  @forbidden [
    {[:Integer], :parse},
    {[:Float], :parse},
    {[:String], :to_integer},
    {[:String], :to_float},
    {[:List], :to_integer},
    {[:List], :to_float},
    {:erlang, :binary_to_integer},
    {:erlang, :binary_to_float},
    {:erlang, :list_to_integer},
    {:erlang, :list_to_float}
  ]

  test "no other module reads numbers from text" do
    found =
      for path <- Path.wildcard("lib/**/*.ex"),
          path != "lib/skillbook/support/number.ex",
          {place, function} <- calls(File.read!(path)),
          do: "#{path}:#{place} #{function}"

    assert found == [], "use Skillbook.Support.Number"
  end

  test "finds calls, captures and pipes" do
    for code <- [
          ~S'Integer.parse("1")',
          ~S'"1" |> Integer.parse()',
          ~S'Enum.map(list, &String.to_integer/1)',
          ~S':erlang.binary_to_integer("1")',
          ~S'with {f, ""} <- Float.parse(text), do: f'
        ] do
      assert [_call] = calls(code), code
    end

    assert calls(~S'Number.integer("1") + Integer.digits(1)') == []
  end

  defp calls(code) do
    {:ok, ast} = Code.string_to_quoted(code)

    {_ast, found} =
      Macro.prewalk(ast, [], fn
        {:., meta, [{:__aliases__, _, module}, function]} = node, found ->
          {node, add(found, module, function, meta)}

        {:., meta, [module, function]} = node, found when is_atom(module) ->
          {node, add(found, module, function, meta)}

        node, found ->
          {node, found}
      end)

    found
  end

  defp add(found, module, function, meta) do
    if {module, function} in @forbidden,
      do: [{meta[:line], "#{inspect(module)}.#{function}"} | found],
      else: found
  end

  # The text, and what each of the two reads.
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
