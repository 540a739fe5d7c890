defmodule Skillbook.EctoRepo do
  @moduledoc false
  # A fake of an application's Ecto repo on SQLite: the functions that `Skillbook.SQL.Ecto` uses,
  # as Ecto documents them. Like the adapter it takes the placeholders `?1` and `?2`, returns
  # errors as texts, and does not return the number of changed rows. It reports savepoints to the
  # calling process only.

  alias Skillbook.SQL
  alias Skillbook.SQL.SQLite

  defmodule Rollback do
    defexception [:value, message: "rollback"]
  end

  def __adapter__, do: Ecto.Adapters.SQLite3
  def config, do: [busy_timeout: 50]

  @doc "Sets the database of the repo, for the tests of one module."
  def put_database(name), do: :persistent_term.put(__MODULE__, name)

  def in_transaction?, do: Process.get(__MODULE__, false)

  def query(statement, [], [])
      when statement in ["savepoint skillbook", "release savepoint skillbook"],
      do: record(statement)

  def query("rollback to savepoint skillbook" = statement, [], []), do: record(statement)

  def query("select changes()", [], []),
    do: {:ok, result(["changes()"], [[Process.get(:changes)]])}

  def query(statement, params, []) do
    # The adapter does not support `$1`.
    false = String.replace(statement, ~r/'[^']*'/, "") =~ ~r/\$\d/

    case SQL.query(sql(), String.replace(statement, ~r/\?(?=\d)/, "$"), params) do
      {:ok, %{columns: [], num_rows: changes}} ->
        Process.put(:changes, changes)
        {:ok, result([], [])}

      {:ok, found} ->
        {:ok, result(found.columns, found.rows)}

      {:error, error} ->
        [message | _] = String.split(error.message, "\n")

        error = %{__struct__: Exqlite.Error, __exception__: true}
        {:error, Map.merge(error, %{message: message, statement: statement})}
    end
  end

  def transaction(fun, mode: :immediate) do
    Process.put(__MODULE__, true)

    SQL.transaction(sql(), fn _sql ->
      try do
        {:ok, fun.()}
      rescue
        rollback in Rollback -> {:error, rollback.value}
      end
    end)
  after
    Process.delete(__MODULE__)
  end

  def rollback(value), do: raise(%Rollback{value: value})

  defp record(statement) do
    send(self(), {:statement, statement})
    {:ok, result([], [])}
  end

  defp result(columns, rows), do: %{columns: columns, rows: rows, num_rows: length(rows)}

  defp sql, do: SQLite.handle(:persistent_term.get(__MODULE__))
end
