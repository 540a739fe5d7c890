defmodule Skillbook.Embedding.Texts do
  @moduledoc false
  # A kind of text that a book embeds, such as the entries of its catalog. The list of them is in
  # `Skillbook.Embedding.Indexer`, which calls these functions from one process at a time. They
  # may throw `{:error, exception}`; then it tries again later.

  alias Skillbook.Book
  alias Skillbook.Embedding.{Table, Vectors}

  @typedoc "A text without a vector: its digest, and where the source finds the text again."
  @type missing :: {Table.digest(), term()}

  @typedoc "How far the texts of a kind were looked at."
  @type place :: term()

  @doc """
  Returns the texts of a kind that have no vector, and how far they were looked at. With the place
  of an earlier look only later texts need be looked at. With `nil` all are, and vectors of texts
  that no longer exist are removed.
  """
  @callback follow(Book.t(), place() | nil) :: {[missing()], place()}

  @doc "The texts themselves, without those that no longer exist."
  @callback texts(Book.t(), [missing()]) :: [{Table.digest(), String.t()}]

  @doc "The vectors of the texts."
  @callback vectors(Book.t()) :: Vectors.t()

  @doc """
  Whether the vectors of all texts are in memory. Otherwise they are in the database alone, until
  a search reads them.
  """
  @callback in_memory?() :: boolean()
end
