defmodule Skillbook.SQL.Error do
  @moduledoc """
  An error of a database, from the functions of `Skillbook.SQL`.

  ## Fields

    * `:kind` - the cause:
      * `:constraint` - a constraint of the schema was violated; `:constraint` says which
      * `:busy` - another process has held the database for too long; a retry may succeed
      * `:syntax` - the statement has a syntax error, or the text is not one statement
      * `:no_such_table` - the table does not exist
      * `:params` - the parameters do not match the placeholders, or have an unsupported type
      * `:refused` - the statement would change the state of one connection, such as `begin`
      * `:closed` - the database was closed, or the transaction is already over
      * `:timeout` - the statement exceeded its time limit
      * `:lost` - the connection to the server was lost before it answered; the statement may have
        been executed
      * `:cannot_open` - the file cannot be opened, or the server cannot be reached
      * `:moved` - the database's file was deleted or replaced while it was open
      * `:corrupt`, `:readonly` - the file is corrupt, or the database is read-only
      * `:newer` - a newer version of Skillbook has migrated the database
      * `:other` - any other error
    * `:constraint` - `:unique` (also of primary keys), `:foreign_key`, `:not_null`, `:check` or
      `:other`; `nil` with other kinds
    * `:message` - the text with the beginning of the statement
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
          | :moved
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
  # Converts a result of the native library.
  def result({:error, error}) when is_tuple(error), do: {:error, of(error)}
  def result(done), do: done

  @doc false
  def of({kind, constraint, message, sql}),
    do: %__MODULE__{kind: kind, constraint: constraint, message: message, sql: sql}

  @doc false
  def closed, do: %__MODULE__{kind: :closed, message: "the database is closed"}

  @doc false
  def busy(timeout) do
    %__MODULE__{
      kind: :busy,
      message: "another process has held the database for more than #{timeout} ms; try again"
    }
  end

  # Characters of a statement in a message.
  @max_quoted 500

  @doc false
  def in_statement(%__MODULE__{} = error, sql) do
    text = String.trim(sql)
    rest = if String.length(text) > @max_quoted, do: "…", else: ""
    text = String.slice(text, 0, @max_quoted) <> rest
    %{error | message: "#{error.message}\n  in: #{text}", sql: sql}
  end

  @doc false
  def param(number, value, expected) do
    %__MODULE__{
      kind: :params,
      message: "expected #{expected} as parameter $#{number}, got: #{inspect(value)}"
    }
  end
end
