defmodule Skillbook.MCP.Pagination do
  @moduledoc false
  # Pages of a list. A cursor holds the key of the last item that a page had, so it needs no state
  # and stays valid when the list changes; a key of a client's own making only begins a page of
  # that client's own list elsewhere.

  alias Skillbook.MCP.Error

  # Bytes of a cursor, which clients write.
  @max 16_384

  @doc """
  Returns the page of a sorted list that the parameters ask for, and the fields for the next
  one. In place of a list, a function returns the items after a key, or all after `nil`.

      iex> {:ok, page, more} = Skillbook.MCP.Pagination.of(~w(a b c), %{}, "letters", 2, & &1)
      iex> page
      ["a", "b"]
      iex> params = %{"cursor" => more["nextCursor"]}
      iex> Skillbook.MCP.Pagination.of(~w(a b c), params, "letters", 2, & &1)
      {:ok, ["c"], %{}}
  """
  @spec of(
          [item] | (String.t() | nil -> Enumerable.t()),
          map(),
          String.t(),
          pos_integer(),
          (item -> String.t())
        ) ::
          {:ok, [item], map()} | {:error, Error.t()}
        when item: term()
  def of(items, params, list, size, key) do
    with {:ok, after_key} <- after_key(params, list) do
      case items |> rest(after_key, key) |> Enum.take(size + 1) |> Enum.split(size) do
        {page, []} -> {:ok, page, %{}}
        {page, _more} -> {:ok, page, %{"nextCursor" => cursor(list, key.(List.last(page)))}}
      end
    end
  end

  defp rest(items, after_key, _key) when is_function(items), do: items.(after_key)
  defp rest(items, nil, _key), do: items
  defp rest(items, after_key, key), do: Enum.drop_while(items, &(key.(&1) <= after_key))

  @doc "The cursor for the items after a key."
  @spec cursor(String.t(), String.t()) :: String.t()
  def cursor(list, key), do: Base.url_encode64(list <> "\n" <> key, padding: false)

  @doc "The key after which the page begins, or `nil` for the first page."
  @spec after_key(map(), String.t()) :: {:ok, String.t() | nil} | {:error, Error.t()}
  def after_key(params, list) do
    with %{"cursor" => cursor} <- params,
         true <- is_binary(cursor) and byte_size(cursor) <= @max,
         {:ok, text} <- Base.url_decode64(cursor, padding: false),
         [^list, key] <- String.split(text, "\n", parts: 2),
         true <- String.valid?(key) do
      {:ok, key}
    else
      %{} ->
        {:ok, nil}

      _ ->
        invalid()
    end
  end

  @doc "The error of a cursor that the server has not made."
  @spec invalid() :: {:error, Error.t()}
  def invalid,
    do: {:error, Error.params("expected a `cursor` that this list has returned as `nextCursor`")}
end
