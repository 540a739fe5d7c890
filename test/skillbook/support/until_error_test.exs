defmodule Skillbook.Support.UntilErrorTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.UntilError

  doctest UntilError

  test "calls the function with no item after the one that fails" do
    send_all = fn item ->
      send(self(), item)
      if item == 2, do: :full, else: {:ok, item}
    end

    assert UntilError.each([1, 2, 3], send_all) == :full
    assert_received 2
    refute_received 3
    assert UntilError.each([1, 3], send_all) == :ok
  end

  test "reduces up to the first error" do
    divide = fn item, acc -> if item == 0, do: {:error, :zero}, else: {:ok, div(acc, item)} end
    assert UntilError.reduce([2, 5], 100, divide) == {:ok, 10}
    assert UntilError.reduce([2, 0, 5], 100, divide) == {:error, :zero}
  end
end
