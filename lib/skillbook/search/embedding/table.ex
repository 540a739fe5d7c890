defmodule Skillbook.Embedding.Table do
  @moduledoc false
  # The vectors of a model in the database, by digest of the text.
  #
  # Rows are shared by all books of the database and written once. Nobody knows who else needs a
  # row, so each book marks those that it needs with the day, and rows that no book has needed for
  # a long time are deleted.

  alias Skillbook.SQL
  alias Skillbook.SQL.Values
  alias Skillbook.Support.UntilError

  # Rows that no book has needed for so many days are deleted.
  @keep_days 90
  # A row is marked again after so many days, so that most days need no write.
  @mark_days 7
  # Digests per statement, and rows per deletion: other writers wait for it.
  @max_rows 500

  @type digest :: binary()
  @type row :: {digest(), Skillbook.Embedder.vector()}

  @doc """
  Returns the stored vectors of some texts. With a `size`, only vectors of that size. Rows that
  were marked long ago are marked again.
  """
  @spec read(SQL.t(), String.t(), pos_integer() | nil, [digest()], Date.t()) ::
          {:ok, [row()]} | {:error, SQL.Error.t()}
  def read(sql, model, size, digests, today) do
    {these, params} = Values.texts(sql, "hash", Enum.map(digests, &hash/1), 3)

    query =
      "select hash, vector, used_on from skillbook_vectors " <>
        "where model = $1 and (size = $2 or $2 = 0) and #{these}"

    old = marked_before(today)

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [model, size || 0 | params]),
         hashes = for([hash, _vector, used_on] <- rows, used_on < old, do: hash),
         :ok <- mark(sql, model, hashes, today) do
      {:ok, for([hash, vector, _] <- rows, do: {Base.decode16!(hash, case: :lower), vector})}
    end
  end

  @doc "Stores vectors. A row that another node has written stays, unless its size differs."
  @spec write(SQL.t(), String.t(), [row()], Date.t()) :: :ok | {:error, SQL.Error.t()}
  def write(sql, model, rows, today) do
    day = Date.to_iso8601(today)

    # Sorted by key, so that two nodes cannot deadlock.
    values =
      for {digest, vector} <- Enum.sort(rows),
          do: [model, hash(digest), div(byte_size(vector), 4), day, {:blob, vector}]

    conflict = """
     on conflict (model, hash) do update
    set size = excluded.size, vector = excluded.vector, used_on = excluded.used_on
    where skillbook_vectors.size <> excluded.size
    """

    columns = "skillbook_vectors (model, hash, size, used_on, vector)"
    insert = fn sql -> Values.insert(sql, columns, values, conflict) end
    with {:ok, _} <- SQL.transaction(sql, insert), do: :ok
  end

  @doc """
  Marks the rows that a book needs with a day, and deletes those that no book has needed for a
  long time, of all models.
  """
  @spec tidy(SQL.t(), String.t(), [digest()], Date.t()) :: :ok | {:error, SQL.Error.t()}
  def tidy(sql, model, digests, today) do
    with :ok <- mark(sql, model, Enum.map(digests, &hash/1), today),
         do: delete(sql, Date.to_iso8601(Date.add(today, -@keep_days)))
  end

  defp mark(sql, model, hashes, today) do
    # Sorted, so that two nodes cannot deadlock.
    hashes
    |> Enum.sort()
    |> Enum.chunk_every(@max_rows)
    |> UntilError.each(fn hashes ->
      {these, params} = Values.texts(sql, "hash", hashes, 4)

      update =
        "update skillbook_vectors set used_on = $1 " <>
          "where model = $2 and used_on < $3 and #{these}"

      SQL.query(sql, update, [Date.to_iso8601(today), model, marked_before(today) | params])
    end)
  end

  defp marked_before(today), do: today |> Date.add(-@mark_days) |> Date.to_iso8601()

  # In steps, because other writers wait for a statement.
  defp delete(sql, before) do
    delete = """
    delete from skillbook_vectors where used_on < $1 and (model, hash) in (
      select model, hash from skillbook_vectors where used_on < $1 limit #{@max_rows})
    returning 1
    """

    case SQL.query(sql, delete, [before]) do
      {:ok, %{rows: rows}} when length(rows) == @max_rows -> delete(sql, before)
      {:ok, _} -> :ok
      error -> error
    end
  end

  defp hash(digest), do: Base.encode16(digest, case: :lower)
end
