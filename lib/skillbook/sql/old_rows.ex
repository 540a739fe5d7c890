defmodule Skillbook.SQL.OldRows do
  @moduledoc false
  # Deletes old rows of tables in small steps, for `Skillbook.Book.Pruner`.

  alias Skillbook.SQL
  alias Skillbook.SQL.Error

  # Rows of a step.
  @limit 200

  @doc "The most rows of a step."
  @spec limit() :: pos_integer()
  def limit, do: @limit

  @doc """
  A step over the rows of a table in the order of an index: reads the next keys, and deletes the
  rows up to the last of them that meet a condition.

    * `:table`, `:key` - the table, and the columns of the index, which are unique
    * `:old` - the column of the time, if the index begins with it; otherwise all rows are read
    * `:delete` - the condition of the rows that are deleted; `$1` is the time
  """
  @spec walk(SQL.t(), DateTime.t(), nil | [SQL.param()], keyword()) ::
          {:ok, non_neg_integer(), nil | [SQL.param()]} | {:error, Error.t()}
  def walk(sql, before, place, rule) do
    {table, key} = {rule[:table], Enum.join(rule[:key], ", ")}

    # Parameters that a statement does not have are an error.
    {old, params} = if rule[:old], do: {["#{rule[:old]} < $1"], [before]}, else: {[], []}
    next = if place, do: ["(#{key}) > (#{places(place, length(params) + 1)})"], else: []
    where = if old ++ next == [], do: "", else: "where #{Enum.join(old ++ next, " and ")} "
    keys = "select #{key} from #{table} #{where}order by #{key} limit #{@limit}"

    with {:ok, %{rows: [first | _] = rows}} <- SQL.query(sql, keys, params ++ (place || [])),
         last = List.last(rows),
         range =
           "(#{key}) >= (#{places(first, 2)}) and (#{key}) <= " <>
             "(#{places(last, 2 + length(first))})",
         delete =
           "delete from #{table} where #{Enum.join([range, rule[:delete] | old], " and ")}",
         {:ok, %{num_rows: count}} <- SQL.query(sql, delete, [before | first ++ last]) do
      {:ok, count, if(length(rows) == @limit, do: last)}
    else
      {:ok, %{rows: []}} -> {:ok, 0, nil}
      error -> error
    end
  end

  defp places(columns, from),
    do: Enum.map_join(from..(from + length(columns) - 1), ", ", &"$#{&1}")
end
