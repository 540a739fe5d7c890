defmodule Skillbook.Embedding.Vectors do
  @moduledoc false
  # Vectors in the memory of the native library, by digest of the text. A book has them twice: for
  # its entries and for documents in the database.

  #
  # Those of documents leave memory when nobody has searched them for a while, or when there is no
  # room for them. A search reads them from the database again. Meanwhile the library has their
  # digests, in a sixtieth of the memory.

  alias Skillbook.Embedding.Table
  alias Skillbook.Support.UntilError
  alias Skillbook.{Book, Embedder, Native, SQL}

  @type t :: reference()

  @spec new() :: t()
  def new, do: Native.vectors_new()

  @spec count(t()) :: non_neg_integer()
  def count(vectors), do: Native.vectors_count(vectors)

  @doc "The texts among these that have a vector, in memory or in the database."
  @spec having(t(), [Table.digest()]) :: [Table.digest()]
  def having(vectors, digests), do: Native.vectors_having(vectors, digests)

  @doc "Adds vectors, or none of them if the size of one differs from those that are there."
  @spec put(t(), [Table.row()]) :: :ok | {:error, {pos_integer(), pos_integer()}}
  def put(vectors, rows), do: Native.vectors_put(vectors, rows)

  @doc "Notes that the database has the vectors of these texts."
  @spec know(t(), [Table.digest()]) :: :ok
  def know(vectors, digests), do: Native.vectors_know(vectors, digests)

  @doc "Notes that the database does not have the vectors of these texts after all."
  @spec lost(t(), [Table.digest()]) :: :ok
  def lost(vectors, digests), do: Native.vectors_lost(vectors, digests)

  @doc """
  If the vectors in memory take more bytes than this, removes those from memory that were not
  searched since the last call. The database has all of them. Returns how many stay.
  """
  @spec forget(t(), non_neg_integer()) :: non_neg_integer()
  def forget(vectors, bytes), do: Native.vectors_forget(vectors, bytes)

  # Texts per query.
  @max_read 500

  @doc """
  Reads vectors of these texts from the database into memory, of this size if it is known. A
  search does so, and waits as long as for the vector of its query; the next one reads those that
  are left.

  Returns the texts that were looked for and are not there.
  """
  @spec read(t(), Book.t(), [Table.digest()], pos_integer() | nil) :: [Table.digest()]
  def read(_vectors, _book, [], _size), do: []

  def read(vectors, book, digests, size) do
    task = Task.async(fn -> read_these(vectors, book, digests, size) end)

    case Task.yield(task, book.embedder_timeout) || Task.shutdown(task, :brutal_kill) do
      {:ok, missing} -> missing
      nil -> []
    end
  end

  # An error is that of the search, which reads the database too, or of the indexer.
  defp read_these(vectors, book, digests, size) do
    sql = Book.sql(book)
    model = Embedder.info(book.embedder).model

    digests
    |> Enum.chunk_every(@max_read)
    |> UntilError.reduce([], fn some, missing ->
      with {:ok, found} <- put_stored(vectors, sql, model, size, some) do
        found = MapSet.new(found)
        {:ok, Enum.reject(some, &MapSet.member?(found, &1)) ++ missing}
      end
    end)
    |> case do
      {:ok, missing} -> missing
      {:error, _error} -> []
    end
  rescue
    # The database is restarting.
    ArgumentError -> []
  catch
    :exit, _reason -> []
  end

  @doc """
  Puts the vectors of these texts that the database has into memory. Returns their texts; none if
  the vectors have different sizes, because the model has changed meanwhile.
  """
  @spec put_stored(t(), SQL.t(), String.t(), pos_integer() | nil, [Table.digest()]) ::
          {:ok, [Table.digest()]} | {:error, SQL.Error.t()}
  def put_stored(vectors, sql, model, size, digests) do
    with {:ok, rows} <- Table.read(sql, model, size, digests, Date.utc_today()) do
      if put(vectors, rows) == :ok,
        do: {:ok, Enum.map(rows, &elem(&1, 0))},
        else: {:ok, []}
    end
  end

  @doc "Removes all vectors, because the model has vectors of another size now."
  @spec clear(t()) :: :ok
  def clear(vectors), do: Native.vectors_clear(vectors)
end
