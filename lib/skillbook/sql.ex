defmodule Skillbook.SQL do
  @moduledoc """
  Statements in, rows out, whatever the database is.

  A handle stands for a database: `Skillbook.SQL.SQLite.handle/1` gives one. Any process may use it.

  ## Placeholders and parameters

  Placeholders are `$1`, `$2` and so on, and take the parameter of that number, in whatever order the
  statement uses them. A parameter is one of

    * `nil`
    * an integer of 64 bits, a float, a string in UTF-8
    * `true` or `false`: stored as 1 and 0, and read back so
    * `{:blob, binary}`: any bytes; they are read back as a binary
    * a `Date`: stored as text, `"2026-03-01"`
    * a `DateTime`: stored as text in UTC, cut to whole seconds, `"2026-03-01T09:30:00Z"`; so the order of the
      texts is the order of the times

  ## Results

  `{:ok, %{columns: columns, rows: rows, num_rows: count}}`: the columns' names, a list of values for each
  row, and how many rows there are or, for a statement that gives none, how many it inserted, updated or
  deleted. What goes wrong is `{:error, %Skillbook.SQL.Error{}}`.

  ## Examples

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :sql_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:sql_example)
      iex> Skillbook.SQL.query!(sql, "create table notes (id integer primary key, title text not null, day text)")
      iex> Skillbook.SQL.query(sql, "insert into notes (title, day) values ($1, $2)", ["Milk", ~D[2026-03-01]])
      {:ok, %{columns: [], rows: [], num_rows: 1}}
      iex> Skillbook.SQL.query(sql, "select title, day from notes where id = $1", [1])
      {:ok, %{columns: ["title", "day"], rows: [["Milk", "2026-03-01"]], num_rows: 1}}
      iex> {:error, error} = Skillbook.SQL.query(sql, "insert into notes (title) values ($1)", [nil])
      iex> {error.kind, error.constraint}
      {:constraint, :not_null}
      iex> Skillbook.SQL.transaction(sql, fn sql ->
      ...>   Skillbook.SQL.query!(sql, "delete from notes")
      ...>   {:error, :changed_my_mind}
      ...> end)
      {:error, :changed_my_mind}
      iex> Skillbook.SQL.query!(sql, "select count(*) from notes").rows
      [[1]]

  ## What is refused

  A connection may be one of several that a handle uses, so a statement that would change only that one is an error of the kind
  `:refused`, and is not sent: transactions (`begin`, `commit`, `savepoint`), temporary tables, and

    * on SQLite `attach`, `detach`, `vacuum`, and a `pragma` with a value
    * on PostgreSQL `set`, `reset`, `discard`, `listen`, `unlisten`, `load`, `prepare`, `execute`, `deallocate`, cursors
      (`declare`, `fetch`, `move`, `close`) and `copy`

  What a function does that a statement calls is not seen: `select set_config('a.b', 'c', false)` runs.

  ## Connections

  A connection is a module with this behaviour whose struct is the handle. It gets parameters that are already
  `nil`, integers, floats, strings or `{:blob, binary}`.
  """

  alias Skillbook.SQL.Error
  alias Skillbook.Support.Options

  @typedoc "A handle: the struct of a module with this behaviour."
  @type t :: struct()

  @type dialect :: :sqlite | :postgres

  @type param ::
          nil
          | boolean()
          | integer()
          | float()
          | String.t()
          | {:blob, binary()}
          | Date.t()
          | DateTime.t()

  @typedoc "A statement with its parameters, as a connection gets it."
  @type statement :: {String.t(), [nil | number() | String.t() | {:blob, binary()}]}

  @type result :: %{columns: [String.t()], rows: [[term()]], num_rows: non_neg_integer()}

  @doc "Runs one statement; inside a transaction of the calling process, on that transaction's connection."
  @callback query(
              t(),
              statement :: String.t(),
              params :: [nil | number() | String.t() | {:blob, binary()}]
            ) ::
              {:ok, result()} | {:error, Error.t()}

  @doc "Runs statements in the transaction that the calling process is in, as `query/3`, up to the first that fails."
  @callback query_all(t(), [statement()]) :: {:ok, [result()]} | {:error, Error.t()}

  @doc "Runs the statements of a text, one after another, up to the first that fails."
  @callback execute_batch(t(), statements :: String.t()) :: :ok | {:error, Error.t()}

  @doc "Runs `fun` in a transaction, or in a savepoint if the calling process is in one already."
  @callback transaction(t(), fun :: (t() -> {:ok, value} | {:error, reason})) ::
              {:ok, value} | {:error, reason | Error.t()}
            when value: term(), reason: term()

  @doc "The same with statements that it begins with, as `query_all/2`; `fun` gets their results."
  @callback transaction(
              t(),
              [statement()],
              fun :: (t(), [result()] -> {:ok, value} | {:error, reason})
            ) ::
              {:ok, value} | {:error, reason | Error.t()}
            when value: term(), reason: term()

  @doc "Whether the calling process is in a transaction."
  @callback in_transaction?(t()) :: boolean()

  @doc "Which SQL the database speaks."
  @callback dialect(t()) :: dialect()

  @doc """
  Whether a book that starts brings the database to its tables, which it does where this is left out.

  If not, they belong to somebody else's migrations, and a book without them does not start.
  """
  @callback migrates?(t()) :: boolean()

  @optional_callbacks migrates?: 1, query_all: 2, transaction: 3

  @doc false
  # What `handle/1` of a connection says of a name that nothing runs under.
  @spec not_running!(module(), atom()) :: no_return()
  def not_running!(connection, name) do
    raise ArgumentError,
          "expected the name of a running #{inspect(connection)}, got: #{inspect(name)}"
  end

  @doc """
  Runs one statement.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :query_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:query_example)
      iex> Skillbook.SQL.query(sql, "select $2 || $1 as word", ["book", "skill"])
      {:ok, %{columns: ["word"], rows: [["skillbook"]], num_rows: 1}}
      iex> {:error, error} = Skillbook.SQL.query(sql, "select $1", [1, 2])
      iex> Exception.message(error)
      "expected 1 parameter, for $1, got 2\\n  in: select $1"
  """
  @spec query(t(), String.t(), [param()]) :: {:ok, result()} | {:error, Error.t()}
  def query(%connection{} = sql, statement, params \\ [])
      when is_binary(statement) and is_list(params) do
    with {:ok, {statement, params}} <- check({statement, params}),
         do: connection.query(sql, statement, params)
  end

  @doc "The same; gives the result itself and raises the error."
  @spec query!(t(), String.t(), [param()]) :: result()
  def query!(sql, statement, params \\ []) do
    case query(sql, statement, params) do
      {:ok, result} -> result
      {:error, error} -> raise error
    end
  end

  @doc """
  Runs statements with their parameters, one after another, up to the first that fails; gives a
  result for each.

  In a transaction, a connection takes them all at once where it can: that saves the way there and
  back.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :query_all_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:query_all_example)
      iex> {:ok, results} = Skillbook.SQL.query_all(sql, [{"select $1", ["one"]}, {"select 2", []}])
      iex> Enum.map(results, & &1.rows)
      [[["one"]], [[2]]]
  """
  @spec query_all(t(), [{String.t(), [param()]}]) :: {:ok, [result()]} | {:error, Error.t()}
  def query_all(%connection{} = sql, statements) do
    if function_exported?(connection, :query_all, 2) and connection.in_transaction?(sql) do
      with {:ok, checked} <- Options.each(statements, &check/1),
           do: connection.query_all(sql, checked)
    else
      Options.each(statements, fn {statement, params} -> query(sql, statement, params) end)
    end
  end

  defp check({statement, params}) do
    with :ok <- check_text(statement),
         {:ok, params} <- encode(params, 1, []),
         do: {:ok, {statement, params}}
  end

  @doc """
  Runs the statements of a text, without parameters, one after another, up to the first that fails.

  Migrations are such texts. Outside a transaction, what ran before the failing statement stays. If one of the statements is
  refused, none of them runs.
  """
  @spec execute_batch(t(), String.t()) :: :ok | {:error, Error.t()}
  def execute_batch(%connection{} = sql, statements) when is_binary(statements) do
    with :ok <- check_text(statements), do: connection.execute_batch(sql, statements)
  end

  @doc """
  Runs `fun` with the handle in a transaction, which nobody else writes during.

  `{:ok, value}` from `fun` commits, `{:error, reason}` rolls back, and either is given back; a raise, throw
  or exit in `fun` rolls back and goes on. If the commit itself fails, everything is rolled back and that
  error is given.

  All the calling process does with the database meanwhile belongs to the transaction, through whichever
  handle. A transaction in a transaction is a savepoint: its error takes back only what it did itself. Other
  processes see nothing of it before the commit; so `fun` must not wait for one that writes to the same
  database: that one waits for the transaction, and gets an error of the kind `:busy` in the end. If the
  process dies in the middle, the transaction is rolled back.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :transaction_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:transaction_example)
      iex> Skillbook.SQL.transaction(sql, fn sql ->
      ...>   Skillbook.SQL.query!(sql, "create table t (id integer)")
      ...>   {:ok, :created}
      ...> end)
      {:ok, :created}
  """
  @spec transaction(t(), (t() -> {:ok, value} | {:error, reason})) ::
          {:ok, value} | {:error, reason | Error.t()}
        when value: term(), reason: term()
  def transaction(%connection{} = sql, fun) when is_function(fun, 1),
    do: connection.transaction(sql, fun)

  @doc """
  The same with statements that the transaction begins with, as `query_all/2` runs them; `fun` gets
  their results too.

  If one of them fails, nothing was done, and its error is given.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :transaction_with_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:transaction_with_example)
      iex> Skillbook.SQL.transaction(sql, [{"select $1", [7]}], fn _sql, [result] -> {:ok, result.rows} end)
      {:ok, [[7]]}
  """
  @spec transaction(
          t(),
          [{String.t(), [param()]}],
          (t(), [result()] -> {:ok, value} | {:error, reason})
        ) ::
          {:ok, value} | {:error, reason | Error.t()}
        when value: term(), reason: term()
  def transaction(%connection{} = sql, statements, fun) when is_function(fun, 2) do
    if function_exported?(connection, :transaction, 3) do
      with {:ok, checked} <- Options.each(statements, &check/1),
           do: connection.transaction(sql, checked, fun)
    else
      transaction(sql, fn sql ->
        with {:ok, results} <- query_all(sql, statements), do: fun.(sql, results)
      end)
    end
  end

  @doc """
  Whether the calling process is in a transaction of this database.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :inside_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:inside_example)
      iex> {Skillbook.SQL.in_transaction?(sql), Skillbook.SQL.transaction(sql, &{:ok, Skillbook.SQL.in_transaction?(&1)})}
      {false, {:ok, true}}
  """
  @spec in_transaction?(t()) :: boolean()
  def in_transaction?(%connection{} = sql), do: connection.in_transaction?(sql)

  @doc """
  Which SQL the database speaks, `:sqlite` or `:postgres`, for the few statements that are written twice.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :dialect_example)
      iex> Skillbook.SQL.dialect(Skillbook.SQL.SQLite.handle(:dialect_example))
      :sqlite
  """
  @spec dialect(t()) :: dialect()
  def dialect(%connection{} = sql), do: connection.dialect(sql)

  defp check_text(statement) do
    if String.valid?(statement) do
      :ok
    else
      message = "expected a statement in UTF-8, got: #{inspect(statement, limit: 50)}"
      {:error, %Error{kind: :syntax, message: message, sql: statement}}
    end
  end

  @types "nil, a number, a boolean, a string, {:blob, binary}, a Date or a DateTime"

  defp encode([], _number, encoded), do: {:ok, Enum.reverse(encoded)}

  defp encode([param | rest], number, encoded) do
    case encode(param) do
      {:ok, value} -> encode(rest, number + 1, [value | encoded])
      {:error, expected} -> {:error, Error.param(number, param, expected)}
    end
  end

  defp encode(nil), do: {:ok, nil}
  defp encode(true), do: {:ok, 1}
  defp encode(false), do: {:ok, 0}
  defp encode(param) when is_float(param), do: {:ok, param}
  defp encode({:blob, bytes} = param) when is_binary(bytes), do: {:ok, param}
  defp encode(%Date{} = date), do: {:ok, Date.to_iso8601(date)}

  defp encode(%DateTime{} = time) do
    {:ok,
     time
     |> DateTime.shift_zone!("Etc/UTC")
     |> DateTime.truncate(:second)
     |> DateTime.to_iso8601()}
  end

  defp encode(param) when is_integer(param) do
    if param in -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF,
      do: {:ok, param},
      else: {:error, "an integer of 64 bits"}
  end

  defp encode(param) when is_binary(param) do
    if String.valid?(param),
      do: {:ok, param},
      else: {:error, "a string in UTF-8 (bytes are {:blob, binary})"}
  end

  defp encode(_param), do: {:error, @types}
end
