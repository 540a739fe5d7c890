defmodule Skillbook.Support.JSONTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.JSON

  doctest Skillbook.Support.JSON
  doctest Skillbook.JSONError

  test "every term has a JSON form" do
    for {term, json} <- [
          {nil, "null"},
          {true, "true"},
          {false, "false"},
          {:ok, ~S("ok")},
          {1, "1"},
          {-1.5, "-1.5"},
          {"", ~S("")},
          {"é\"\\\n\t\e", ~S("é\"\\\n\t\u001b")},
          {<<255>>, ~S("<<255>>")},
          {[], "[]"},
          {[1, [nil]], "[1,[null]]"},
          {[a: 1, b: []], ~S({"a":1,"b":[]})},
          {[{:a, 1}, {:b, 1, 2}], ~S(["{:a, 1}","{:b, 1, 2}"])},
          {%{}, "{}"},
          {%{"b" => 1, a: 2}, ~S({"a":2,"b":1})},
          {~D[2026-11-23], ~S("2026-11-23")},
          {~U[2026-11-23 08:00:00Z], ~S("2026-11-23 08:00:00Z")},
          {%ArgumentError{message: "no"}, ~S("no")},
          {%Skillbook.CLI.Terminal{color: true, width: 3}, ~S({"color":true,"width":3})},
          {{1, 2}, ~S("{1, 2}")},
          {{"[]"}, ~S("{\"[]\"}")},
          {%{{"1"} => {"2"}, 3 => [{"a", 1}]}, ~S({"3":["{\"a\", 1}"],"{\"1\"}":"{\"2\"}"})},
          {[1 | 2], ~S("[1 | 2]")},
          {[a: <<255>>, é: :日本], ~S({"a":"<<255>>","é":"日本"})},
          {%{:é => 1, <<255>> => 2}, ~S({"<<255>>":2,"é":1})},
          {0x7FFF_FFFF_FFFF_FFFF, "9223372036854775807"},
          {-0x8000_0000_0000_0000, "-9223372036854775808"},
          {0xFFFF_FFFF_FFFF_FFFF, "18446744073709551615"},
          {[12_345_678_901_234_567_890_123], "[12345678901234567890123]"},
          {1.0e-7, "1e-7"},
          {1.0e20, "1e+20"}
        ] do
      assert JSON.encode(term) == json
    end
  end

  test "encoded values decode to the same" do
    for value <- [
          nil,
          true,
          0,
          -1.5,
          1.0e-7,
          1_234_567_890_123,
          "",
          "é\"\\\n\t\e\u2028😀",
          [],
          [1, [nil]],
          %{"b" => %{"" => []}}
        ] do
      assert value |> JSON.encode() |> JSON.decode() == {:ok, value}
    end
  end

  test "accepts any size and nesting" do
    long = Enum.to_list(1..100_000)
    assert JSON.encode(long) == "[#{Enum.join(long, ",")}]"

    for {deep, inner} <- [{%{"a" => 1}, ~S({"a":1})}, {{1}, ~S("{1}")}] do
      deep = Enum.reduce(1..100_000, deep, fn _, deep -> [deep] end)

      assert JSON.encode(deep) ==
               String.duplicate("[", 100_000) <> inner <> String.duplicate("]", 100_000)
    end
  end

  test "errors have a reason and a position" do
    for {text, message} <- [
          {"", "line 1, column 1: EOF while parsing a value"},
          {"[1,\n]", "line 2, column 1: trailing comma"},
          {<<"\n", 255>>, "line 2, column 1: expected UTF-8"},
          {String.duplicate("[", 5_000), "line 1, column 128: recursion limit exceeded"}
        ] do
      assert {:error, error} = JSON.decode(text)
      assert Exception.message(error) == message
    end
  end
end
