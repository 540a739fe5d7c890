defmodule Skillbook.Embedding.Entries do
  @moduledoc false
  # The entries of a catalog as texts to embed. Their vectors are in the native library.
  #
  # All entries in memory are embedded that some profile may search, whatever their labels. Those
  # of a tenant are in memory once somebody reads them. A view compares a query only with those
  # that it lists.

  @behaviour Skillbook.Embedding.Texts

  alias Skillbook.Catalog.Watcher
  alias Skillbook.Embedding.{Indexer, Vectors}
  alias Skillbook.{Book, Native, View}

  # Those that are in memory are quickly looked at, so all are.
  @impl true
  def follow(book, _place) do
    missing = Native.vectors_follow(book.vectors, book.catalog.ref)
    {Enum.map(missing, &{&1, nil}), nil}
  end

  @impl true
  def texts(book, missing),
    do: Native.vectors_texts(book.catalog.ref, Enum.map(missing, &elem(&1, 0)))

  @impl true
  def vectors(book), do: book.vectors

  @impl true
  def in_memory?, do: true

  # A search waits for so many vectors. If there are more, the indexer reads them.
  @few 1_000

  @doc """
  Reads the vectors of a view's entries from the database, if they were made before and are not in
  memory. The first search of new entries does so, and waits as long as for the vector of its
  query.
  """
  @spec read(View.t(), Book.t()) :: :ok
  def read(_view, %{store: nil}), do: :ok

  def read(view, book) do
    with [_ | _] = missing when length(missing) <= @few <-
           Native.view_unembedded(view.ref, book.vectors) do
      # The indexer makes those that are not there.
      Vectors.read(book.vectors, book, missing, nil)
    end

    :ok
  end

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

  @doc """
  Waits until all entries that a view lists have a vector, except those that the embedder refuses.

  Returns the error of the embedder or the database if one fails. Meanwhile the function gets the
  progress of the book. The view is of a book with an embedder.
  """
  @spec await(View.t(), (Indexer.progress() -> term())) :: :ok | {:error, Exception.t()}
  def await(%View{book: book} = view, fun) do
    # In a process of its own, since the caller may have subscribed too.
    Task.await(
      Task.async(fn ->
        :ok = Watcher.subscribe(book)
        # So that a message about the entries of this view comes for certain.
        :ok = Indexer.refresh(book, __MODULE__)
        await(view, %{Indexer.progress(book) | total: :unknown}, fun)
      end),
      :infinity
    )
  end

  defp await(_view, %{error: error}, _fun) when error != nil, do: {:error, error}
  defp await(_view, %{done: done, total: done}, _fun), do: :ok

  defp await(view, progress, fun) do
    case progress(view) do
      %{done: done, total: done} ->
        :ok

      mine ->
        fun.(if progress.total == :unknown, do: mine, else: progress)

        receive do
          {:skillbook_embedding, _book, progress} -> await(view, progress, fun)
        end
    end
  end
end
