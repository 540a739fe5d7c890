defmodule Skillbook.QueryPlan do
  @moduledoc false
  # A connection over SQLite that notes the statements of each call, so that a test can ask how
  # the database runs them: `store: {Skillbook.QueryPlan, path: ":memory:", name: :some_name}`.
  # `over/1` is one over any handle.

  @behaviour Skillbook.SQL

  alias Skillbook.SQL
  alias Skillbook.SQL.SQLite

  defstruct [:name, :inner]

  def child_spec(options) do
    :ets.new(options[:name], [:named_table, :public, :duplicate_bag])
    SQLite.child_spec(options)
  end

  def handle(name), do: %__MODULE__{name: name}

  def over(sql) do
    name = :"plans_#{System.unique_integer([:positive])}"
    :ets.new(name, [:named_table, :public, :duplicate_bag])
    %__MODULE__{name: name, inner: sql}
  end

  defp inner(%{inner: nil, name: name}), do: SQLite.handle(name)
  defp inner(%{inner: sql}), do: sql

  @doc """
  The steps of the statements of a call that read more of a table than they return: scans, and
  searches for which the index has only the tenant.
  """
  @spec scans(atom() | SQL.t(), (() -> term())) :: [step :: String.t()]
  def scans(sql, call) do
    scan = ~r/^SCAN (skillbook_|.$)|\(tenant=\?\)|Seq Scan on |Cond: \(tenant = '[^']*'::text\)$/
    for step <- steps(sql, call), step =~ scan, do: step
  end

  @doc "All steps of the statements of a call."
  @spec steps(atom() | SQL.t(), (() -> term())) :: [step :: String.t()]
  def steps(name, call) when is_atom(name), do: name |> handle() |> steps(call)

  def steps(%{name: name} = sql, call) do
    :ets.delete_all_objects(name)
    call.()
    explain = if dialect(sql) == :sqlite, do: "explain query plan ", else: "explain "

    # The book's own processes read too.
    for {statement, params} <-
          name |> :ets.lookup(self()) |> Enum.map(&elem(&1, 1)) |> Enum.uniq(),
        row <- SQL.query!(inner(sql), explain <> statement, params).rows,
        do: List.last(row)
  end

  @impl true
  def query(sql, statement, params) do
    note(sql, {statement, params})
    sql |> inner() |> SQL.query(statement, params)
  end

  @impl true
  def query_all(sql, statements) do
    Enum.each(statements, &note(sql, &1))
    sql |> inner() |> SQL.query_all(statements)
  end

  @impl true
  def execute_batch(sql, statements), do: sql |> inner() |> SQL.execute_batch(statements)

  @impl true
  def transaction(sql, fun), do: sql |> inner() |> SQL.transaction(fn _sql -> fun.(sql) end)

  @impl true
  def in_transaction?(sql), do: sql |> inner() |> SQL.in_transaction?()

  @impl true
  def dialect(sql), do: sql |> inner() |> SQL.dialect()

  defp note(sql, statement), do: :ets.insert(sql.name, {self(), statement})
end
