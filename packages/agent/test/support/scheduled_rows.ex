defmodule Skillbook.ScheduledRows do
  @moduledoc false
  # A handler that writes a row into the book's database, so that the runs of several virtual
  # machines can be counted.

  @behaviour Skillbook.Handler

  alias Skillbook.{Book, SQL, Scheduler}

  @impl true
  def execute(_flags, context) do
    SQL.query!(context.sql, "insert into ran (name) values ($1)", [context.entry.name])
    # A moment in which a node can be lost that has acted and not yet said so.
    Process.sleep(10)
    {:ok, "done"}
  end

  @doc "Says that a time of each entry has come."
  def fire(book, names, at), do: Enum.each(names, &Scheduler.fire(book, &1, at, at))

  @doc "How many are not under way any more."
  def over(book) do
    sql = book |> Book.fetch!() |> Book.sql()

    [[count]] =
      SQL.query!(sql, "select count(*) from skillbook_firings where status <> 'running'").rows

    count
  end
end
