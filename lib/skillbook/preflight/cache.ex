defmodule Skillbook.Preflight.Cache do
  @moduledoc false
  # Keeps the picks for recent requests of a book in an ETS table, which the book's supervisor
  # owns. A key is a hash of everything that the picks depend on: the texts, what the profile
  # sees, and the settings. So rows are removed only when the table is full.

  alias Skillbook.Preflight.Pick

  @max_rows 1_000

  @spec new(atom()) :: :ok
  def new(book) do
    :ets.new(name(book), [:named_table, :public, read_concurrency: true])
    :ok
  end

  @spec key(term()) :: binary()
  def key(term), do: :crypto.hash(:sha256, :erlang.term_to_binary(term))

  @spec fetch(atom() | nil, binary()) :: {:ok, [Pick.t()]} | :error
  def fetch(nil, _key), do: :error

  def fetch(book, key) do
    case :ets.lookup(name(book), key) do
      [{_key, picks}] -> {:ok, picks}
      [] -> :error
    end
  rescue
    # The book has stopped since.
    ArgumentError -> :error
  end

  @spec put(atom() | nil, binary(), [Pick.t()]) :: :ok
  def put(nil, _key, _picks), do: :ok

  def put(book, key, picks) do
    table = name(book)
    if :ets.info(table, :size) >= @max_rows, do: :ets.delete_all_objects(table)
    :ets.insert(table, {key, picks})
    :ok
  rescue
    ArgumentError -> :ok
  end

  defp name(book), do: Module.concat(book, PreflightCache)
end
