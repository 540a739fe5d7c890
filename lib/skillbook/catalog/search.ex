defmodule Skillbook.Catalog.Search do
  @moduledoc false
  # Searches the entries of a view, by words and, if its book has an embedder, by meaning. The
  # index is in the memory of the native library, one for each generation, and so are the vectors.
  # For documents in the database see `Skillbook.Search.Index`.

  alias Skillbook.Embedding
  alias Skillbook.Support.Options
  alias Skillbook.{Book, Hit, Native, View}

  @default_limit 10
  @max_limit 1_000

  @doc "The maximum of the option `:limit`."
  def max_limit, do: @max_limit

  @spec search(View.t(), String.t(), keyword()) :: [Hit.t()]
  def search(%View{ref: ref} = view, query, options \\ []) when is_binary(query) do
    with {:error, error} <- Options.validate(options, "a search", schema()), do: raise(error)

    # A binary that is not UTF-8 has no words.
    if String.valid?(query) do
      limit = Keyword.get(options, :limit, @default_limit)

      Native.view_search(
        ref,
        query,
        limit,
        options[:kind],
        options[:domain],
        Keyword.get(options, :tags, []),
        meaning(view, query)
      )
    else
      []
    end
  end

  @doc """
  Returns the vectors of the view's book and the vector of a query, for the native library; `nil`
  if the view has no book, or the book no vectors.
  """
  @spec meaning(View.t(), String.t()) :: {reference(), Skillbook.Embedder.vector()} | nil
  def meaning(%View{book: nil}, _query), do: nil

  def meaning(%View{book: name} = view, query) do
    with %Book{vectors: vectors} = book when vectors != nil <- Book.find(name),
         :ok <- Embedding.Entries.read(view, book),
         # Before the first vector of an entry, that of the query is of no use.
         true <- Embedding.Vectors.count(vectors) > 0,
         vector when vector != nil <- Embedding.QueryVectors.vector(book, query) do
      {vectors, vector}
    else
      _ -> nil
    end
  end

  defp schema do
    [
      limit: {"an integer from 1 to #{@max_limit}", &(is_integer(&1) and &1 in 1..@max_limit)},
      kind: {":command, :skill, :note or nil", &(&1 in [:command, :skill, :note, nil])},
      domain: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      tags: {"a list of texts", &Options.texts?/1}
    ]
  end
end
