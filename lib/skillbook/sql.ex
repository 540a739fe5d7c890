defmodule Skillbook.SQL do
  @moduledoc """
  Runs SQL statements on SQLite, PostgreSQL or an Ecto repo, with the same parameters and results.

  The functions take a handle of a database, such as `Skillbook.SQL.SQLite.handle/1` returns. Any
  process may use it.

  ## Examples

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :sql_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:sql_example)
      iex> Skillbook.SQL.query!(sql, "create table notes (id integer primary key, day text)")
      iex> Skillbook.SQL.query(sql, "insert into notes (day) values ($1)", [~D[2026-03-01]])
      {:ok, %{columns: [], rows: [], num_rows: 1}}
      iex> Skillbook.SQL.query(sql, "select id, day from notes where id = $1", [1])
      {:ok, %{columns: ["id", "day"], rows: [[1, "2026-03-01"]], num_rows: 1}}
      iex> {:error, error} = Skillbook.SQL.query(sql, "insert into notes (id) values ($1)", [1])
      iex> {error.kind, error.constraint}
      {:constraint, :unique}
      iex> Skillbook.SQL.transaction(sql, fn sql ->
      ...>   Skillbook.SQL.query!(sql, "delete from notes")
      ...>   {:error, :changed_my_mind}
      ...> end)
      {:error, :changed_my_mind}
      iex> Skillbook.SQL.query!(sql, "select count(*) from notes").rows
      [[1]]

  ## Placeholders and parameters

  Placeholders are `$1`, `$2` and so on; the number is the parameter's position. A parameter is
  one of

    * `nil`
    * an integer of 64 bits, a float, a string in UTF-8
    * `true` or `false`: stored and read as 1 and 0
    * `{:blob, binary}`: any bytes; read as a binary
    * a `Date`: stored as text, `"2026-03-01"`
    * a `DateTime`: stored as text in UTC, truncated to seconds, `"2026-03-01T09:30:00Z"`; the
      texts sort like the times

  ## Results

  `{:ok, %{columns: columns, rows: rows, num_rows: count}}` with the names of the columns and a
  list of values per row. `num_rows` is the number of rows or, for a statement that returns none,
  the number of inserted, updated or deleted rows. Errors are `{:error, %Skillbook.SQL.Error{}}`.

  ## Refused statements

  A handle may use several connections. A statement that would change the state of one of them is
  not sent, and is an error of the kind `:refused`: transactions (`begin`, `commit`, `savepoint`),
  temporary tables, and

    * on SQLite `attach`, `detach`, `vacuum`, and a `pragma` with a value
    * on PostgreSQL `set`, `reset`, `discard`, `listen`, `unlisten`, `load`, `prepare`, `execute`,
      `deallocate`, cursors (`declare`, `fetch`, `move`, `close`) and `copy`

  Functions that a statement calls are not checked: `select set_config('a.b', 'c', false)` runs.

  ## Connections

  A connection is a module with this behaviour; its struct is the handle. Its callbacks get
  parameters that are already `nil`, integers, floats, strings or `{:blob, binary}`.

  To add one, also write `child_spec/1`, which takes `:name`, and `handle/1`, which returns the
  handle of that name. A book then takes it as `store: {Module, options}`. Its dialect is one of
  the two for which all statements are written. `c:query_all/2`, `c:transaction/3` and
  `c:commit/2` are optional: they save round trips to databases that take several statements at
  once. Only one transaction may write to a part at a time, so a transaction can read and write
  on the basis of the reads. `use Skillbook.SQLConformance, start: …` (in `test/support`) runs the
  suite that every connection must pass.
  """

  alias Skillbook.SQL.Error
  alias Skillbook.Support.UntilError

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

  @typedoc "A statement with its encoded parameters."
  @type statement :: {String.t(), [nil | number() | String.t() | {:blob, binary()}]}

  @type result :: %{columns: [String.t()], rows: [[term()]], num_rows: non_neg_integer()}

  @doc "Runs a statement; inside a transaction of the calling process, on its connection."
  @callback query(
              t(),
              statement :: String.t(),
              params :: [nil | number() | String.t() | {:blob, binary()}]
            ) ::
              {:ok, result()} | {:error, Error.t()}

  @doc "Runs statements in the calling process's transaction, up to the first that fails."
  @callback query_all(t(), [statement()]) :: {:ok, [result()]} | {:error, Error.t()}

  @doc "Runs the statements of a text, one after another, up to the first that fails."
  @callback execute_batch(t(), statements :: String.t()) :: :ok | {:error, Error.t()}

  @doc "Runs `fun` in a transaction, or in a savepoint if the calling process is in one already."
  @callback transaction(t(), fun :: (t() -> {:ok, value} | {:error, reason})) ::
              {:ok, value} | {:error, reason | Error.t()}
            when value: term(), reason: term()

  @doc "The same, but first runs statements as `query_all/2` does; `fun` gets their results."
  @callback transaction(
              t(),
              [statement()],
              fun :: (t(), [result()] -> {:ok, value} | {:error, reason})
            ) ::
              {:ok, value} | {:error, reason | Error.t()}
            when value: term(), reason: term()

  @doc "Whether the calling process is in a transaction."
  @callback in_transaction?(t()) :: boolean()

  @doc "The SQL dialect of the database."
  @callback dialect(t()) :: dialect()

  @doc """
  Whether a starting book creates and migrates its tables. Default: true.

  If false, the application's own migrations create them, and a book without them does not start.
  """
  @callback migrates?(t()) :: boolean()

  @doc """
  Commits the calling process's outermost transaction with these last statements, and returns
  their results. The function of the transaction runs no statement after it, and succeeds.
  """
  @callback commit(t(), [statement()]) :: {:ok, [result()]} | {:error, Error.t()}

  @doc """
  A handle whose transactions exclude only writers of the parts with these keys, and transactions
  of handles without keys. Without this callback all writers exclude each other.

  With `:now` a transaction does not wait for writers of these parts, and has the error `:busy`.
  """
  @callback of_parts(t(), keys :: [integer(), ...], :wait | :now) :: t()

  @optional_callbacks commit: 2, migrates?: 1, of_parts: 3, query_all: 2, transaction: 3

  @doc false
  # The error of a connection's `handle/1`.
  @spec not_running!(module(), atom()) :: no_return()
  def not_running!(connection, name) do
    raise ArgumentError,
          "expected the name of a running #{inspect(connection)}, got: #{inspect(name)}"
  end

  @doc """
  Runs a statement.

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

  @doc "Like `query/3`, but returns the result itself and raises errors."
  @spec query!(t(), String.t(), [param()]) :: result()
  def query!(sql, statement, params \\ []) do
    case query(sql, statement, params) do
      {:ok, result} -> result
      {:error, error} -> raise error
    end
  end

  @doc """
  Runs statements with their parameters in order, up to the first that fails, and returns their
  results.

  Inside a transaction they are sent to the database together if the connection supports it.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :query_all_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:query_all_example)
      iex> statements = [{"select $1", ["one"]}, {"select 2", []}]
      iex> {:ok, results} = Skillbook.SQL.query_all(sql, statements)
      iex> Enum.map(results, & &1.rows)
      [[["one"]], [[2]]]
  """
  @spec query_all(t(), [{String.t(), [param()]}]) :: {:ok, [result()]} | {:error, Error.t()}
  def query_all(%connection{} = sql, statements) do
    if function_exported?(connection, :query_all, 2) and connection.in_transaction?(sql) do
      with {:ok, checked} <- UntilError.map(statements, &check/1),
           do: connection.query_all(sql, checked)
    else
      UntilError.map(statements, fn {statement, params} -> query(sql, statement, params) end)
    end
  end

  defp check({statement, params}) do
    with :ok <- check_text(statement),
         {:ok, params} <- encode(params, 1, []),
         do: {:ok, {statement, params}}
  end

  @doc """
  Runs all statements of a text, without parameters, up to the first that fails.

  Outside a transaction, statements before the failing one keep their effect. If one of the
  statements is refused, none of them runs.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :batch_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:batch_example)
      iex> Skillbook.SQL.execute_batch(sql, "create table t (id int); insert into t values (7)")
      :ok
      iex> Skillbook.SQL.query!(sql, "select id from t").rows
      [[7]]
  """
  @spec execute_batch(t(), String.t()) :: :ok | {:error, Error.t()}
  def execute_batch(%connection{} = sql, statements) when is_binary(statements) do
    with :ok <- check_text(statements), do: connection.execute_batch(sql, statements)
  end

  @doc """
  Runs `fun` with the handle in a transaction. Only one transaction writes at any time.

  If `fun` returns `{:ok, value}`, the transaction is committed; if it returns `{:error, reason}`,
  it is rolled back. Both are returned. A raise, throw or exit in `fun` rolls back and is
  re-raised. If the commit fails, the transaction is rolled back and its error returned. If the
  process dies, the transaction is rolled back.

  All calls of this process to the database belong to the transaction. A transaction in a
  transaction is a savepoint: its error rolls back its own changes only.

  Other processes see the changes after the commit. `fun` must not wait for a process that writes
  to the same database, because that write waits for the transaction and fails with `:busy`.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :transact_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:transact_example)
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

  @doc false
  # A handle for transactions that change and depend on these parts only, such as the tasks of a
  # tenant. Writers of other parts do not wait for them, if the database can tell them apart.
  # `:all` among the parts stands for all, as does the handle itself.
  @spec of_parts(t(), [term(), ...], :wait | :now) :: t()
  def of_parts(%connection{} = sql, parts, waits \\ :wait) do
    if :all not in parts and parts?(sql),
      do: connection.of_parts(sql, parts |> Enum.map(&key/1) |> Enum.uniq(), waits),
      else: sql
  end

  @doc false
  # Whether writers of different parts go on at the same time.
  @spec parts?(t()) :: boolean()
  def parts?(%connection{} = sql),
    do: function_exported?(connection, :of_parts, 3) and dialect(sql) == :postgres

  defp key(part) do
    <<key::signed-64, _rest::binary>> = :erlang.md5(["skillbook ", :erlang.term_to_binary(part)])
    key
  end

  @doc """
  Like `transaction/2`, but first runs statements as `query_all/2` does; `fun` also gets their
  results.

  If one of them fails, the transaction is rolled back and the error returned.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :begin_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:begin_example)
      iex> Skillbook.SQL.transaction(sql, [{"select $1", [7]}], fn _sql, [result] ->
      ...>   {:ok, result.rows}
      ...> end)
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
      with {:ok, checked} <- UntilError.map(statements, &check/1),
           do: connection.transaction(sql, checked, fun)
    else
      transaction(sql, fn sql ->
        with {:ok, results} <- query_all(sql, statements), do: fun.(sql, results)
      end)
    end
  end

  @doc false
  # Runs the last statements of the calling process's transaction; where the database can, it
  # commits them in the same round trip, so that nobody waits long for what they lock.
  @spec commit(t(), [{String.t(), [param()]}]) :: {:ok, [result()]} | {:error, Error.t()}
  def commit(%connection{} = sql, statements) do
    if function_exported?(connection, :commit, 2) do
      with {:ok, checked} <- UntilError.map(statements, &check/1),
           do: connection.commit(sql, checked)
    else
      query_all(sql, statements)
    end
  end

  @doc """
  Whether the calling process is in a transaction of this database.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :inside_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:inside_example)
      iex> Skillbook.SQL.in_transaction?(sql)
      false
      iex> Skillbook.SQL.transaction(sql, &{:ok, Skillbook.SQL.in_transaction?(&1)})
      {:ok, true}
  """
  @spec in_transaction?(t()) :: boolean()
  def in_transaction?(%connection{} = sql), do: connection.in_transaction?(sql)

  @doc """
  The SQL dialect of the database, `:sqlite` or `:postgres`.

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
