defmodule Skillbook.SQL.Values do
  @moduledoc false
  # Many values in one statement, whose text stays the same however many there are.

  alias Skillbook.{JSON, Options, SQL}

  # Rows written by one statement. SQLite looks for each parameter among those before it.
  @rows 50

  @doc """
  A condition that a column has one of some values, which are the parameter of that number, and the parameters.

  The type is `"text"` or `"bigint"`.
  """
  @spec any_of(SQL.t(), String.t(), String.t(), [String.t() | integer()], pos_integer()) ::
          {String.t(), [String.t()]}
  def any_of(sql, column, type, values, number) do
    case SQL.dialect(sql) do
      :sqlite ->
        {"#{column} in (select value from json_each($#{number}))", [JSON.encode(values)]}

      :postgres ->
        list = "json_array_elements_text(cast(cast($#{number} as text) as json))"
        {"#{column} = any(array(select cast(#{list} as #{type})))", [JSON.encode(values)]}
    end
  end

  @doc "The same for ids."
  @spec ids(SQL.t(), String.t(), [integer()], pos_integer()) :: {String.t(), [String.t()]}
  def ids(sql, column, ids, number), do: any_of(sql, column, "bigint", ids, number)

  @doc "Ids in an order, as a table `j` with the columns `id` and `place`; they are the parameter of that number."
  @spec ordered(SQL.t(), pos_integer()) :: String.t()
  def ordered(sql, number) do
    case SQL.dialect(sql) do
      :sqlite ->
        "(select value as id, key as place from json_each($#{number})) j"

      :postgres ->
        "(select cast(value as bigint) as id, place from " <>
          "json_array_elements_text(cast(cast($#{number} as text) as json)) with ordinality e (value, place)) j"
    end
  end

  @doc "Inserts rows, by as few statements as there may be; gives the rows that `rest` returns."
  @spec insert(SQL.t(), String.t(), [[SQL.param()]], String.t()) ::
          {:ok, [[term()]]} | {:error, SQL.Error.t()}
  def insert(sql, into, rows, rest \\ "")
  def insert(_sql, _into, [], _rest), do: {:ok, []}

  def insert(sql, into, [first | _] = rows, rest) do
    width = length(first)

    given =
      rows
      |> Enum.chunk_every(@rows)
      |> Options.each(fn rows ->
        values =
          Enum.map_join(0..(length(rows) - 1), ", ", fn row ->
            "(#{Enum.map_join(1..width, ", ", &"$#{row * width + &1}")})"
          end)

        with {:ok, %{rows: given}} <-
               SQL.query(sql, "insert into #{into} values #{values}#{rest}", Enum.concat(rows)),
             do: {:ok, given}
      end)

    with {:ok, given} <- given, do: {:ok, Enum.concat(given)}
  end
end
