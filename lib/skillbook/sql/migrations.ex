defmodule Skillbook.SQL.Migrations do
  @moduledoc """
  Creates and migrates the tables of a database.

  A book migrates its database when it starts. All pending migrations run in one transaction,
  together with their rows in `skillbook_migrations` (version, name and time). A migration that
  fails, or a process that dies, leaves the database unchanged. If several nodes start at the same
  time, the first one runs the migrations and the others wait.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :migrations_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:migrations_example)
      iex> {:ok, _versions} = Skillbook.SQL.Migrations.run(sql)
      iex> Skillbook.SQL.Migrations.run(sql)
      {:ok, []}

  ## Adding a migration

  Write a module `Skillbook.SQL.Migrations.V…` with this behaviour, and add it to the end of the
  list in this module with a version and a name. Never change a released migration.
  """

  alias Skillbook.SQL
  alias Skillbook.SQL.Error
  alias Skillbook.Support.UntilError

  @type migration :: {version :: pos_integer(), name :: String.t(), module()}

  @doc "The statements of the migration, in order; a text may hold several of them."
  @callback up(SQL.dialect()) :: [String.t()]

  @doc "The statements that undo the migration."
  @callback down(SQL.dialect()) :: [String.t()]

  @optional_callbacks down: 1

  # In the order of their versions.
  @migrations [
    {1, "tasks and memories", Skillbook.SQL.Migrations.V1},
    {2, "the store", Skillbook.SQL.Migrations.V2},
    {3, "runs of workflows", Skillbook.SQL.Migrations.V3},
    {4, "firings", Skillbook.SQL.Migrations.V4},
    {5, "the documents of vaults", Skillbook.SQL.Migrations.V5},
    {6, "the ends of runs", Skillbook.SQL.Migrations.V6},
    {7, "schedules of the store", Skillbook.SQL.Migrations.V7},
    {8, "the terms of vaults", Skillbook.SQL.Migrations.V8},
    {9, "one index for search", Skillbook.SQL.Migrations.V9},
    {10, "labels of tasks", Skillbook.SQL.Migrations.V10},
    {11, "vectors", Skillbook.SQL.Migrations.V11},
    {12, "digests of searched texts", Skillbook.SQL.Migrations.V12},
    {13, "approvals", Skillbook.SQL.Migrations.V13},
    {14, "connections", Skillbook.SQL.Migrations.V14},
    {15, "tokens and sessions of the web", Skillbook.SQL.Migrations.V15},
    {16, "conversations of agents", Skillbook.SQL.Migrations.V16},
    {17, "approvals of MCP servers", Skillbook.SQL.Migrations.V17},
    {18, "operations on schedules and breakers", Skillbook.SQL.Migrations.V18},
    {19, "tenants", Skillbook.SQL.Migrations.V19},
    {20, "spellings of titles", Skillbook.SQL.Migrations.V20},
    {21, "ages of rows", Skillbook.SQL.Migrations.V21},
    {22, "durable runs", Skillbook.SQL.Migrations.V22},
    {23, "labels of entries", Skillbook.SQL.Migrations.V23},
    {24, "changes of usage", Skillbook.SQL.Migrations.V24}
  ]

  @doc """
  Runs the pending migrations and returns their versions.

  The error of a failed migration names it; no migration has run then. A database with an unknown
  version was migrated by a newer Skillbook; it is an error of the kind `:newer`.
  """
  @spec run(SQL.t(), [migration()]) :: {:ok, [pos_integer()]} | {:error, Error.t()}
  def run(sql, migrations \\ @migrations) do
    with {:ok, [_ | _]} <- pending(sql, migrations) do
      # Read again under the transaction's lock: another process may have migrated since.
      SQL.transaction(sql, fn sql ->
        with {:ok, _} <- SQL.query(sql, table()),
             {:ok, pending} <- pending(sql, migrations),
             do: each(pending, sql, "failed", &(&1.up(SQL.dialect(sql)) ++ [record(&2, &3)]))
      end)
    end
  end

  @doc """
  Prepares a database for a book: runs the pending migrations or, for a connection with
  `c:Skillbook.SQL.migrates?/1` false, checks that none is pending.
  """
  @spec prepare(SQL.t()) :: :ok | {:error, Error.t()}
  def prepare(%connection{} = sql) do
    if Code.ensure_loaded?(connection) and function_exported?(connection, :migrates?, 1) and
         not connection.migrates?(sql) do
      case pending(sql, @migrations) do
        {:ok, []} -> :ok
        {:ok, missing} -> {:error, missing_error(missing)}
        error -> error
      end
    else
      with {:ok, _versions} <- run(sql), do: :ok
    end
  end

  @doc """
  Undoes migrations from the last version down to `version`, and returns their versions.

  The data in their tables is lost. With the first migration, the list of migrations is dropped
  too.
  """
  @spec undo(SQL.t(), pos_integer(), [migration()]) ::
          {:ok, [pos_integer()]} | {:error, Error.t()}
  def undo(sql, version, migrations \\ @migrations) do
    SQL.transaction(sql, fn sql ->
      with {:ok, pending} <- pending(sql, migrations),
           applied = Enum.reverse(migrations -- pending),
           {undone, left} = Enum.split_while(applied, &(elem(&1, 0) >= version)),
           {:ok, versions} <-
             each(
               undone,
               sql,
               "could not be undone",
               &(&1.down(SQL.dialect(sql)) ++ [forget(&2, &3)])
             ),
           :ok <- drop_table(sql, left),
           do: {:ok, versions}
    end)
  end

  defp drop_table(sql, []),
    do: SQL.execute_batch(sql, "drop table if exists skillbook_migrations")

  defp drop_table(_sql, _left), do: :ok

  # One call to the database per migration.
  defp each(migrations, sql, failed, statements) do
    UntilError.map(migrations, fn {version, name, module} ->
      case SQL.execute_batch(sql, Enum.join(statements.(module, version, name), ";\n")) do
        :ok ->
          {:ok, version}

        {:error, error} ->
          {:error,
           %{error | message: "migration #{version} (#{name}) #{failed}: #{error.message}"}}
      end
    end)
  end

  @doc "The migrations up to a version, or all for `nil`."
  @spec list(pos_integer() | nil) :: [migration()]
  def list(nil), do: @migrations
  def list(version), do: Enum.take_while(@migrations, &(elem(&1, 0) <= version))

  defp pending(sql, migrations) do
    with {:ok, applied} <- applied(sql) do
      known = Enum.map(migrations, &elem(&1, 0))

      case Enum.reject(applied, fn [version, _name] -> version in known end) do
        [] ->
          applied = Enum.map(applied, &hd/1)
          {:ok, Enum.reject(migrations, fn {version, _name, _module} -> version in applied end)}

        [newer | _] ->
          {:error, newer_error(newer, known)}
      end
    end
  end

  defp applied(sql) do
    case SQL.query(sql, "select version, name from skillbook_migrations order by version desc") do
      {:ok, %{rows: rows}} -> {:ok, rows}
      {:error, %Error{kind: :no_such_table}} -> {:ok, []}
      {:error, error} -> {:error, error}
    end
  end

  defp newer_error([version, name], known) do
    newest = Enum.max(known, fn -> 0 end)

    %Error{
      kind: :newer,
      message:
        "the database belongs to a newer Skillbook: it has migration #{version} (#{name}), " <>
          "this one knows migrations up to #{newest}; update Skillbook or use another database"
    }
  end

  defp missing_error(missing) do
    names =
      Enum.map_join(missing, ", ", fn {version, name, _module} -> "#{version} (#{name})" end)

    %Error{
      kind: :no_such_table,
      message:
        "the application's database lacks Skillbook's tables, migration #{names}; write and " <>
          "run a migration of the application whose up/0 calls " <>
          "Skillbook.SQL.Migrations.Ecto.up() and whose down/0 calls " <>
          "Skillbook.SQL.Migrations.Ecto.down(), or give the store the option migrate: true"
    }
  end

  defp table do
    """
    create table if not exists skillbook_migrations (
      version bigint primary key,
      name text not null,
      applied_at text not null
    )
    """
  end

  defp record(version, name) do
    at = DateTime.utc_now() |> DateTime.truncate(:second) |> DateTime.to_iso8601()

    "insert into skillbook_migrations (version, name, applied_at) " <>
      "values (#{version}, '#{name}', '#{at}')"
  end

  defp forget(version, _name), do: "delete from skillbook_migrations where version = #{version}"
end
