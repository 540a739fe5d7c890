defmodule Skillbook.House.ReadmesTest do
  # The examples of the packages' own pages.
  use ExUnit.Case, async: true

  alias Skillbook.Test.{Checkout, Readmes}

  for page <- Readmes.modules(), do: doctest(page)

  test "each package has one" do
    assert length(Readmes.modules()) == length(Checkout.wildcard("packages/*/mix.exs"))

    for page <- Checkout.wildcard("packages/*/README.md"),
        do: assert({page, Checkout.read!(page) =~ "iex> "} == {page, true})
  end
end
