defmodule Skillbook.SQL.Migrations do
  @moduledoc """
  Brings a database to the tables this version of Skillbook uses.

  A migration is a version (from 1), a name and a module that says what to run. All that a database
  lacks runs in one transaction, together with the rows in `skillbook_migrations`, which hold
  version, name and time: so a migration that fails, or a process that dies, leaves the database as
  it was. Several processes of the operating system may start at the same moment: the first runs
  them, the others wait for that and go on.

      iex> {:ok, _} = Skillbook.SQL.SQLite.start_link(path: ":memory:", name: :migrations_example)
      iex> sql = Skillbook.SQL.SQLite.handle(:migrations_example)
      iex> {:ok, _versions} = Skillbook.SQL.Migrations.run(sql)
      iex> Skillbook.SQL.Migrations.run(sql)
      {:ok, []}

  To add one, write a module `Skillbook.SQL.Migrations.V…` with this behaviour and put it at the end of the
  list in this module. One that was released is never changed again.
  """

  alias Skillbook.SQL
  alias Skillbook.SQL.Error
  alias Skillbook.Support.Options

  @type migration :: {version :: pos_integer(), name :: String.t(), module()}

  @doc "What to run, in this order, for a database of that dialect; a text may hold several statements."
  @callback up(SQL.dialect()) :: [String.t()]

  @doc "What takes it back."
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
    {9, "one index for search", Skillbook.SQL.Migrations.V9}
  ]

  @doc """
  Runs what the database does not have yet; gives the versions that this call ran.

  The error of a failing migration names it, and then none was run. A database with a version that
  is not in the list belongs to a newer Skillbook, and is refused with an error of the kind
  `:newer`: nothing is run.
  """
  @spec run(SQL.t(), [migration()]) :: {:ok, [pos_integer()]} | {:error, Error.t()}
  def run(sql, migrations \\ @migrations) do
    with {:ok, [_ | _]} <- pending(sql, migrations) do
      # The transaction has the lock, so what it sees is what counts: another process may have been
      # here since.
      SQL.transaction(sql, fn sql ->
        with {:ok, _} <- SQL.query(sql, table()),
             {:ok, pending} <- pending(sql, migrations),
             do: each(pending, sql, "failed", &(&1.up(SQL.dialect(sql)) ++ [record(&2, &3)]))
      end)
    end
  end

  @doc """
  What a book does before it uses a database: it runs what is missing or, if the connection says that its tables are
  somebody else's, finds out whether they are there.
  """
  @spec prepare(SQL.t()) :: :ok | {:error, Error.t()}
  def prepare(%connection{} = sql) do
    if Code.ensure_loaded?(connection) and function_exported?(connection, :migrates?, 1) and
         not connection.migrates?(sql) do
      with {:ok, [_ | _] = missing} <- pending(sql, @migrations),
           do: {:error, missing_error(missing)},
           else:
             (
               {:ok, []} -> :ok
               error -> error
             )
    else
      with {:ok, _versions} <- run(sql), do: :ok
    end
  end

  @doc """
  Takes back what the database has, from the last version down to `version`; gives the versions that this call took back.

  What their tables hold is gone.
  """
  @spec undo(SQL.t(), pos_integer(), [migration()]) ::
          {:ok, [pos_integer()]} | {:error, Error.t()}
  def undo(sql, version, migrations \\ @migrations) do
    SQL.transaction(sql, fn sql ->
      with {:ok, pending} <- pending(sql, migrations) do
        (migrations -- pending)
        |> Enum.reverse()
        |> Enum.take_while(&(elem(&1, 0) >= version))
        |> each(sql, "could not be taken back", &(&1.down(SQL.dialect(sql)) ++ [forget(&2, &3)]))
      end
    end)
  end

  # One call to the database each.
  defp each(migrations, sql, failed, statements) do
    Options.each(migrations, fn {version, name, module} ->
      case SQL.execute_batch(sql, Enum.join(statements.(module, version, name), ";\n")) do
        :ok ->
          {:ok, version}

        {:error, error} ->
          {:error,
           %{error | message: "migration #{version} (#{name}) #{failed}: #{error.message}"}}
      end
    end)
  end

  @doc "The migrations up to a version, or all."
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
          "this one knows them up to #{newest}; update Skillbook or use another database"
    }
  end

  defp missing_error(missing) do
    names =
      Enum.map_join(missing, ", ", fn {version, name, _module} -> "#{version} (#{name})" end)

    %Error{
      kind: :no_such_table,
      message:
        "the application's database does not have the tables of Skillbook, migration #{names}; write a migration " <>
          "of the application whose up/0 calls Skillbook.SQL.Migrations.Ecto.up() and whose down/0 calls " <>
          "Skillbook.SQL.Migrations.Ecto.down(), and run it, or give the store the option migrate: true"
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

    "insert into skillbook_migrations (version, name, applied_at) values (#{version}, '#{name}', '#{at}')"
  end

  defp forget(version, _name), do: "delete from skillbook_migrations where version = #{version}"
end
