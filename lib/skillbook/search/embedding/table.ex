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
    with {:ok, rows} <- rows(sql, "vector", model, size, digests, today),
         do: {:ok, for([hash, _, vector] <- rows, do: {digest(hash), vector})}
  end

  @doc "The texts among these that have a stored vector. Otherwise as `read/5`."
  @spec known(SQL.t(), String.t(), pos_integer() | nil, [digest()], Date.t()) ::
          {:ok, [digest()]} | {:error, SQL.Error.t()}
  def known(sql, model, size, digests, today) do
    with {:ok, rows} <- rows(sql, "size", model, size, digests, today),
         do: {:ok, for([hash | _] <- rows, do: digest(hash))}
  end

  @doc """
  Calls the function with all texts that have a stored vector of a model, thousands at a time.
  With a `size`, only vectors of that size.
  """
  @spec each(SQL.t(), String.t(), pos_integer() | nil, ([digest()] -> :ok | error)) :: :ok | error
        when error: {:error, SQL.Error.t()}
  def each(sql, model, nil, fun), do: each(sql, model, {"", []}, "", fun)
  def each(sql, model, size, fun), do: each(sql, model, {"and size = $3", [size]}, "", fun)

  # Rows of digests alone.
  @page 5_000

  defp each(sql, model, {condition, params}, last, fun) do
    query = """
    select hash from skillbook_vectors where model = $1 and hash > $2 #{condition}
    order by hash limit #{@page}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [model, last | params]),
         :ok <- fun.(Enum.map(rows, fn [hash] -> digest(hash) end)) do
      if length(rows) < @page,
        do: :ok,
        else: each(sql, model, {condition, params}, rows |> List.last() |> hd(), fun)
    end
  end

  defp rows(sql, column, model, size, digests, today) do
    {these, params} = Values.texts(sql, "hash", Enum.map(digests, &hash/1), 3)

    query =
      "select hash, used_on, #{column} from skillbook_vectors " <>
        "where model = $1 and (size = $2 or $2 = 0) and #{these}"

    old = marked_before(today)

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [model, size || 0 | params]),
         hashes = for([hash, used_on, _] <- rows, used_on < old, do: hash),
         :ok <- mark(sql, model, hashes, today),
         do: {:ok, rows}
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
  long time, of all models. The function returns the texts among some that the book needs.
  """
  @spec tidy(SQL.t(), String.t(), ([digest()] -> [digest()]), Date.t()) ::
          :ok | {:error, SQL.Error.t()}
  def tidy(sql, model, needed, today) do
    old = {"and used_on < $3", [marked_before(today)]}
    mark = fn digests -> mark(sql, model, digests |> needed.() |> Enum.map(&hash/1), today) end

    with :ok <- each(sql, model, old, "", mark),
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
  defp digest(hash), do: Base.decode16!(hash, case: :lower)
end
