defmodule Skillbook.Embedding.Entries do
  @moduledoc false
  # The entries of a catalog as texts to embed. Their vectors are in the native library.
  #
  # All entries are embedded that some profile may search, whatever their labels. A view compares
  # a query only with those that it lists.

  @behaviour Skillbook.Embedding.Source

  alias Skillbook.{Book, Native, View}

  @impl true
  def digests(book), do: Native.vectors_digests(book.vectors, book.catalog.ref)

  @impl true
  def texts(book, digests), do: Native.vectors_texts(book.catalog.ref, digests)

  @impl true
  def put(book, rows), do: Native.vectors_put(book.vectors, rows)

  @impl true
  def clear(book), do: Native.vectors_clear(book.vectors)

  @impl true
  def retain(book), do: Native.vectors_retain(book.vectors, book.catalog.ref)

  @doc """
  Returns how many of the entries that a view lists have a vector, and how many can have one;
  `nil` for a book without an embedder.
  """
  @spec progress(View.t()) :: %{done: non_neg_integer(), total: non_neg_integer()} | nil
  def progress(%View{book: name, ref: ref}) do
    with %Book{vectors: vectors} when vectors != nil <- name && Book.find(name) do
      {done, total} = Native.view_embedded(ref, vectors)
      %{done: done, total: total}
    else
      _ -> nil
    end
  end
end
