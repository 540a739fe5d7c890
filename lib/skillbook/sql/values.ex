defmodule Skillbook.SQL.Values do
  @moduledoc false
  # Builds statements with many values: lists of texts or ids as one parameter, and inserts of
  # many rows. The text of a statement does not depend on the length of a list, so it is prepared
  # once. Also raises the numbers of the settings, and reads the times of rows.

  alias Skillbook.SQL
  alias Skillbook.Support.JSON

  # Rows per statement. SQLite looks up each parameter by a linear search.
  @max_rows 50

  @doc """
  A statement with its parameters that raises a number of the settings, and returns it.

  The row stays locked until the commit, so transactions commit in the order of their numbers.
  """
  @spec raise_setting(String.t()) :: {String.t(), []}
  def raise_setting(key) do
    number = "cast(cast(value as bigint) + 1 as text)"

    {"update skillbook_settings set value = #{number} where key = '#{key}' returning value", []}
  end

  @doc "A condition that a column is one of some texts, and its parameter with that number."
  @spec texts(SQL.t(), String.t(), [String.t()], pos_integer()) :: {String.t(), [String.t()]}
  def texts(sql, column, texts, number) do
    rows = text_rows(sql, number)

    these =
      if SQL.dialect(sql) == :sqlite,
        do: "#{column} in (#{rows})",
        else: "#{column} = any(array(#{rows}))"

    {these, [JSON.encode(texts)]}
  end

  @doc "A select of the texts in a parameter, which is a list of them in JSON."
  @spec text_rows(SQL.t(), pos_integer()) :: String.t()
  def text_rows(sql, number) do
    case SQL.dialect(sql) do
      :sqlite -> "select value from json_each($#{number})"
      :postgres -> "select json_array_elements_text(cast(cast($#{number} as text) as json))"
    end
  end

  @doc "The same for ids."
  @spec ids(SQL.t(), String.t(), [integer()], pos_integer()) :: {String.t(), [String.t()]}
  def ids(sql, column, ids, number) do
    these =
      case SQL.dialect(sql) do
        :sqlite -> "#{column} in (select value from json_each($#{number}))"
        :postgres -> "#{column} = any(cast(cast($#{number} as text) as bigint[]))"
      end

    {these, [list(sql, ids)]}
  end

  @doc """
  A table `j` with the columns `id` and `place` for ordered ids. Their parameter (`list/2`) has
  that number.
  """
  @spec ordered(SQL.t(), pos_integer()) :: String.t()
  def ordered(sql, number) do
    case SQL.dialect(sql) do
      :sqlite ->
        "(select value as id, key as place from json_each($#{number})) j"

      :postgres ->
        "unnest(cast(cast($#{number} as text) as bigint[])) with ordinality j (id, place)"
    end
  end

  @doc "Ids as a parameter."
  @spec list(SQL.t(), [integer()]) :: String.t()
  def list(sql, ids) do
    text = Enum.join(ids, ",")
    if SQL.dialect(sql) == :sqlite, do: "[#{text}]", else: "{#{text}}"
  end

  @doc "A text that both databases store. PostgreSQL cannot store NUL."
  @spec storable(String.t()) :: String.t()
  def storable(text), do: String.replace(text, "\0", "\uFFFD")

  @doc "A time of a row, which may have none."
  @spec time(String.t() | nil) :: DateTime.t() | nil
  def time(nil), do: nil

  def time(text) do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end

  @doc "Inserts rows with few statements, and returns the rows of a `returning` clause in `rest`."
  @spec insert(SQL.t(), String.t(), [[SQL.param()]], String.t()) ::
          {:ok, [[term()]]} | {:error, SQL.Error.t()}
  def insert(sql, into, rows, rest \\ "") do
    statements = for {statement, params} <- inserts(into, rows), do: {statement <> rest, params}

    with {:ok, results} <- SQL.query_all(sql, statements),
         do: {:ok, Enum.flat_map(results, & &1.rows)}
  end

  @doc """
  The statements that insert rows. `first` is an expression for the first column of all rows, with
  its parameters.
  """
  @spec inserts(String.t(), [[SQL.param()]], nil | {String.t(), [SQL.param()]}) :: [
          {String.t(), [SQL.param()]}
        ]
  def inserts(into, rows, first \\ nil) do
    {expression, params} = first || {nil, []}
    offset = length(params)

    for rows <- Enum.chunk_every(rows, @max_rows) do
      width = length(hd(rows))

      values =
        Enum.map_join(0..(length(rows) - 1), ", ", fn row ->
          places = for n <- 1..width, do: "$#{offset + row * width + n}"
          "(#{[expression | places] |> Enum.reject(&is_nil/1) |> Enum.join(", ")})"
        end)

      {"insert into #{into} values #{values}", params ++ Enum.concat(rows)}
    end
  end
end
