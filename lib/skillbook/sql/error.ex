defmodule Skillbook.SQL.Error do
  @moduledoc """
  Why a database could not do what it was asked for.

  ## Fields

    * `:kind` - what it is about:
      * `:constraint` - a rule of the schema was broken; `:constraint` says which
      * `:busy` - someone else has held the database for too long; trying again may succeed
      * `:syntax` - the statement cannot be understood, or is not one statement
      * `:no_such_table` - a table that does not exist
      * `:params` - the parameters do not fit the placeholders, or are of a type that no database has
      * `:refused` - a statement that would change one connection of several, such as `begin`
      * `:closed` - the database was closed, or the transaction is already over
      * `:timeout` - the statement was stopped at its time limit
      * `:lost` - the connection to the server was lost before it answered: whether the statement was carried out is
        not known
      * `:cannot_open` - the database's file, or its server cannot be reached
      * `:corrupt`, `:readonly` - the database's file, or the server's
      * `:newer` - a newer version of Skillbook has written the database
      * `:other` - anything else
    * `:constraint` - `:unique` (also of primary keys), `:foreign_key`, `:not_null`, `:check` or `:other`;
      `nil` with other kinds
    * `:message` - the text, the beginning of the statement included
    * `:sql` - the whole statement, or `nil`

  ## Examples

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :error_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:error_example)
      iex> {:error, error} = Skillbook.SQL.query(sql, "select * from notes")
      iex> error.kind
      :no_such_table
      iex> Exception.message(error)
      "no such table: notes\\n  in: select * from notes"
  """

  @type kind ::
          :constraint
          | :busy
          | :syntax
          | :no_such_table
          | :params
          | :refused
          | :closed
          | :timeout
          | :lost
          | :cannot_open
          | :corrupt
          | :readonly
          | :newer
          | :other

  @type t :: %__MODULE__{
          kind: kind(),
          constraint: :unique | :foreign_key | :not_null | :check | :other | nil,
          message: String.t(),
          sql: String.t() | nil
        }

  @enforce_keys [:kind, :message]
  defexception [:kind, :constraint, :message, :sql]

  @doc false
  # The answer of the native library.
  def result({:error, error}) when is_tuple(error), do: {:error, of(error)}
  def result(done), do: done

  @doc false
  def of({kind, constraint, message, sql}),
    do: %__MODULE__{kind: kind, constraint: constraint, message: message, sql: sql}

  @doc false
  def closed, do: %__MODULE__{kind: :closed, message: "the database is closed"}

  @doc false
  def busy(patience) do
    %__MODULE__{
      kind: :busy,
      message: "another process has held the database for more than #{patience} ms; try again"
    }
  end

  @doc false
  # The text shows no more of a statement than this.
  @shown 500
  def in_statement(%__MODULE__{} = error, sql) do
    text = String.trim(sql)
    shown = if String.length(text) > @shown, do: String.slice(text, 0, @shown) <> "…", else: text
    %{error | message: "#{error.message}\n  in: #{shown}", sql: sql}
  end

  @doc false
  def param(number, value, expected) do
    %__MODULE__{
      kind: :params,
      message: "expected #{expected} as parameter $#{number}, got: #{inspect(value)}"
    }
  end
end
