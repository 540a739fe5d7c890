defmodule Skillbook.FlagsTest do
  use ExUnit.Case, async: true

  alias Skillbook.FlagError

  doctest Skillbook.Flags
  doctest Skillbook.FlagError
  doctest Skillbook.Handler
  doctest Skillbook.Context
  doctest Skillbook.Result
  doctest Skillbook.SetupError

  test "a conflict names both flags" do
    e = %FlagError{
      kind: :conflict,
      flags: ["due", "clear"],
      expected: "one sets what the other takes away"
    }

    assert Exception.message(e) ==
             "--due and --clear contradict each other: one sets what the other takes away"
  end
end
