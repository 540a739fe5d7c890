defmodule Skillbook.QueryPlan do
  @moduledoc false
  # A connection over SQLite that notes the statements of each call, so that a test can ask how
  # the database runs them: `store: {Skillbook.QueryPlan, path: ":memory:", name: :some_name}`.

  @behaviour Skillbook.SQL

  alias Skillbook.SQL
  alias Skillbook.SQL.SQLite

  defstruct [:name]

  def child_spec(options) do
    :ets.new(options[:name], [:named_table, :public, :duplicate_bag])
    SQLite.child_spec(options)
  end

  def handle(name), do: %__MODULE__{name: name}

  @doc """
  The steps of the statements of a call that read more of a table than they return: scans, and
  searches for which the index has only the tenant.
  """
  @spec scans(atom(), (() -> term())) :: [step :: String.t()]
  def scans(name, call),
    do: for(step <- steps(name, call), step =~ ~r/^SCAN (skillbook_|.$)|\(tenant=\?\)/, do: step)

  @doc "All steps of the statements of a call."
  @spec steps(atom(), (() -> term())) :: [step :: String.t()]
  def steps(name, call) do
    :ets.delete_all_objects(name)
    call.()

    # The book's own processes read too.
    for {statement, params} <-
          name |> :ets.lookup(self()) |> Enum.map(&elem(&1, 1)) |> Enum.uniq(),
        explain = "explain query plan " <> statement,
        [_, _, _, step] <- SQL.query!(SQLite.handle(name), explain, params).rows,
        do: step
  end

  @impl true
  def query(%{name: name} = sql, statement, params) do
    note(sql, {statement, params})
    SQLite.query(SQLite.handle(name), statement, params)
  end

  @impl true
  def query_all(%{name: name} = sql, statements) do
    Enum.each(statements, &note(sql, &1))
    SQLite.query_all(SQLite.handle(name), statements)
  end

  @impl true
  def execute_batch(%{name: name}, statements),
    do: SQLite.execute_batch(SQLite.handle(name), statements)

  @impl true
  def transaction(%{name: name} = sql, fun),
    do: SQLite.transaction(SQLite.handle(name), fn _sql -> fun.(sql) end)

  @impl true
  def in_transaction?(%{name: name}), do: SQLite.in_transaction?(SQLite.handle(name))

  @impl true
  def dialect(_sql), do: :sqlite

  defp note(sql, statement), do: :ets.insert(sql.name, {self(), statement})
end
