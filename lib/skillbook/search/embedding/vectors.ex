defmodule Skillbook.Embedding.Vectors do
  @moduledoc false
  # Vectors in the memory of the native library, by digest of the text. A book has them twice: for
  # its entries and for documents in the database.

  alias Skillbook.Embedding.Table
  alias Skillbook.Native

  @type t :: reference()

  @spec new() :: t()
  def new, do: Native.vectors_new()

  @spec count(t()) :: non_neg_integer()
  def count(vectors), do: Native.vectors_count(vectors)

  @doc "The digests of all texts with a vector."
  @spec digests(t()) :: [Table.digest()]
  def digests(vectors), do: Native.vectors_digests(vectors)

  @doc "Adds vectors, or none of them if the size of one differs from those that are there."
  @spec put(t(), [Table.row()]) :: :ok | {:error, {pos_integer(), pos_integer()}}
  def put(vectors, rows), do: Native.vectors_put(vectors, rows)

  @doc "Removes all vectors, because the model has vectors of another size now."
  @spec clear(t()) :: :ok
  def clear(vectors), do: Native.vectors_clear(vectors)
end
