defmodule Skillbook.SQL.Numbers do
  @moduledoc false
  # Draws the numbers of rows that models and people see, such as `T-48291307`.
  #
  # A number is random, because the ids of rows would tell each profile how many rows the others
  # have written. It has eight digits, few enough for a model to copy. Numbers of older rows are
  # their ids, which have fewer digits.

  alias Skillbook.SQL
  alias Skillbook.SQL.Error

  @first 10_000_000
  @count 90_000_000
  @max_attempts 50

  @doc """
  Inserts a row with a free number: `{:ok, id, number}`.

  `insert` makes the statement for a number. The statement ends with `on conflict (number) do
  nothing returning id`.
  """
  @spec insert(SQL.t(), (pos_integer() -> {String.t(), [SQL.param()]})) ::
          {:ok, pos_integer(), pos_integer()} | {:error, Error.t()}
  def insert(sql, insert), do: insert(sql, insert, @max_attempts)

  # With ten million rows one attempt in nine fails, so so many failures do not happen by chance.
  defp insert(_sql, _insert, 0),
    do: {:error, %Error{kind: :constraint, message: "expected a free number for a row, got none"}}

  defp insert(sql, insert, attempts) do
    number = draw()
    {statement, params} = insert.(number)

    case SQL.query(sql, statement, params) do
      {:ok, %{rows: [[id]]}} -> {:ok, id, number}
      {:ok, %{rows: []}} -> insert(sql, insert, attempts - 1)
      error -> error
    end
  end

  # A sequence of a random generator could be continued by its readers, so this is not one.
  defp draw, do: @first + rem(:binary.decode_unsigned(:crypto.strong_rand_bytes(8)), @count)
end
