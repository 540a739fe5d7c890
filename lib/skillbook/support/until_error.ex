defmodule Skillbook.Support.UntilError do
  @moduledoc false
  # Goes through items until a function fails for one of them. The function's result for this item
  # is then the result for all.

  @doc """
  Maps the items.

      iex> half = &if(rem(&1, 2) == 0, do: {:ok, div(&1, 2)}, else: {:error, &1})
      iex> Skillbook.Support.UntilError.map([2, 4], half)
      {:ok, [1, 2]}
      iex> Skillbook.Support.UntilError.map([2, 3, 5], half)
      {:error, 3}
  """
  @spec map(Enumerable.t(), (item -> {:ok, value} | error)) :: {:ok, [value]} | error
        when item: term(), value: term(), error: term()
  def map(items, fun) do
    result =
      reduce(items, [], fn item, done ->
        with {:ok, value} <- fun.(item), do: {:ok, [value | done]}
      end)

    with {:ok, done} <- result, do: {:ok, Enum.reverse(done)}
  end

  @doc "Calls the function, which returns `:ok` or `{:ok, value}`, with each item."
  @spec each(Enumerable.t(), (item -> :ok | {:ok, term()} | error)) :: :ok | error
        when item: term(), error: term()
  def each(items, fun) do
    Enum.reduce_while(items, :ok, fn item, :ok ->
      case fun.(item) do
        :ok -> {:cont, :ok}
        {:ok, _value} -> {:cont, :ok}
        error -> {:halt, error}
      end
    end)
  end

  @doc "Reduces the items. The function returns `{:ok, acc}`."
  @spec reduce(Enumerable.t(), acc, (item, acc -> {:ok, acc} | error)) :: {:ok, acc} | error
        when item: term(), acc: term(), error: term()
  def reduce(items, acc, fun) do
    Enum.reduce_while(items, {:ok, acc}, fn item, {:ok, acc} ->
      case fun.(item, acc) do
        {:ok, acc} -> {:cont, {:ok, acc}}
        error -> {:halt, error}
      end
    end)
  end
end
