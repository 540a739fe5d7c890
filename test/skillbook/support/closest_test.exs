defmodule Skillbook.Support.ClosestTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.Closest

  test "returns the closest name, or nil" do
    for {word, meant} <- [
          {"staus", "status"},
          {"STATUS", "status"},
          {"due_before", "due-before"},
          {"dya", "day"},
          {"weather", nil},
          {"", nil},
          {String.duplicate("status", 10), nil}
        ] do
      assert Closest.to(word, ["status", "day", "due-before"]) == meant, word
    end

    assert Closest.to("status", []) == nil
    assert Closest.to("staus", ["status"], 0.99) == nil
  end
end
