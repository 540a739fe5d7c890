defmodule Skillbook.TestModel do
  @moduledoc false
  # The model of the tests of the local embedder. Tests that need it fail without it.

  alias Skillbook.Embedder.Library

  @doc "The folder of the model, or an error that says how to get it."
  @spec folder!() :: Path.t()
  def folder! do
    with {:error, reason} <- Library.load(), do: raise(reason)

    System.get_env("SKILLBOOK_TEST_MODEL") ||
      raise "SKILLBOOK_TEST_MODEL is not set. To download the model and set it: " <>
              "bin/minilm-for-tests run mix test"
  end
end
