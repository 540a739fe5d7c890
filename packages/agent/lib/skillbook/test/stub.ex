defmodule Skillbook.Test.Stub do
  @moduledoc false
  # The handler of entries whose handlers a test replaces.

  @behaviour Skillbook.Handler

  alias Skillbook.Book

  @typedoc "An answer, or a function that returns one; see `Skillbook.Handler`."
  @type t ::
          String.t()
          | {:error, term()}
          | (map() -> term())
          | (map(), Skillbook.Context.t() -> term())

  @impl true
  def execute(flags, context) do
    %{test: %{stubs: stubs}} = Book.fetch!(context.book)

    case Map.fetch!(stubs, context.entry.name) do
      fun when is_function(fun, 1) -> fun.(flags)
      fun when is_function(fun, 2) -> fun.(flags, context)
      text when is_binary(text) -> {:ok, text}
      {:error, _} = error -> error
    end
  end

  @doc "The expected value of an option with stubs, and its check."
  @spec schema() :: {String.t(), (term() -> boolean())}
  def schema do
    {"a map from names to texts, {:error, reason}, or functions of one or two arguments",
     &(is_map(&1) and Enum.all?(&1, fn {name, stub} -> is_binary(name) and stub?(stub) end))}
  end

  defp stub?({:error, _reason}), do: true
  defp stub?(stub), do: is_binary(stub) or is_function(stub, 1) or is_function(stub, 2)
end
