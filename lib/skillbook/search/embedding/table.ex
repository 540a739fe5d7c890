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

  @doc "Returns the stored vectors of some texts. With a `size`, only vectors of that size."
  @spec read(SQL.t(), String.t(), pos_integer() | nil, [digest()]) ::
          {:ok, [row()]} | {:error, SQL.Error.t()}
  def read(sql, model, size, digests) do
    {these, params} = Values.texts(sql, "hash", Enum.map(digests, &hash/1), 3)

    query =
      "select hash, vector from skillbook_vectors " <>
        "where model = $1 and (size = $2 or $2 = 0) and #{these}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [model, size || 0 | params]),
         do: {:ok, for([hash, vector] <- rows, do: {Base.decode16!(hash, case: :lower), vector})}
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
    with :ok <- mark(sql, model, Enum.sort(digests), today),
         do: delete(sql, Date.to_iso8601(Date.add(today, -@keep_days)))
  end

  defp mark(sql, model, digests, today) do
    [day, old] = for date <- [today, Date.add(today, -@mark_days)], do: Date.to_iso8601(date)

    digests
    |> Enum.chunk_every(@max_rows)
    |> UntilError.each(fn digests ->
      {these, params} = Values.texts(sql, "hash", Enum.map(digests, &hash/1), 4)

      update =
        "update skillbook_vectors set used_on = $1 " <>
          "where model = $2 and used_on < $3 and #{these}"

      SQL.query(sql, update, [day, model, old | params])
    end)
  end

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
