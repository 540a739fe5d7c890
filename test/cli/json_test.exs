defmodule Skillbook.CLI.JSONTest do
  use ExUnit.Case, async: true

  alias Skillbook.CLI.JSON

  test "every term has a JSON form" do
    for {term, json} <- [
          {nil, "null"},
          {true, "true"},
          {false, "false"},
          {:ok, ~S("ok")},
          {1, "1"},
          {-1.5, "-1.5"},
          {"", ~S("")},
          {"é\"\\\n\t\e", ~S("é\"\\\n\t\u001B")},
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
          {{1, 2}, ~S("{1, 2}")}
        ] do
      assert IO.iodata_to_binary(JSON.encode(term)) == json
    end
  end
end
