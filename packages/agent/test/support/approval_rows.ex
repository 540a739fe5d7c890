defmodule Skillbook.ApprovalRows do
  @moduledoc false
  # A handler that writes a row for each run, and functions for other virtual machines, which call
  # and approve it.

  @behaviour Skillbook.Handler

  alias Skillbook.{Book, Result, SQL}

  @impl true
  def execute(%{"name" => name} = flags, context) do
    SQL.query!(context.sql, "insert into ran (name) values ($1)", [name])
    if flags["hang"], do: Process.sleep(:infinity)
    {:ok, "Ran #{name}."}
  end

  @doc "A conversation that calls it; returns the reference of the call that waits."
  def ask(book, lines) do
    model = Skillbook.Model.Function.new(fn _, _ -> "```cmd\n#{Enum.join(lines, "\n")}\n```" end)
    {:ok, run} = Skillbook.Agent.run(book, "Go.", model: model, profile: "ann")
    Enum.map(run.pending, & &1.ref)
  end

  @doc """
  Approves all calls at once, at a time of the system in milliseconds, and returns the references
  of those that ran here.
  """
  def approve_all(book, refs, by, at) do
    Process.sleep(max(at - System.system_time(:millisecond), 0))

    refs
    |> Task.async_stream(
      fn ref ->
        case Skillbook.approve(book, ref, by: by) do
          {:ok, %{status: :done, result: %Result{status: :ok}}} -> {:ran, ref}
          {:error, %Skillbook.ApprovalError{kind: :decided}} -> :decided
        end
      end,
      max_concurrency: 4,
      timeout: 60_000
    )
    |> Enum.flat_map(fn
      {:ok, {:ran, ref}} -> [ref]
      {:ok, :decided} -> []
    end)
  end

  @doc "Starts an approval, and returns without waiting for its end."
  def approve_later(book, ref) do
    spawn(fn -> Skillbook.approve(book, ref, by: "Bob") end)
    :ok
  end

  @doc "Approves a call and goes on with its conversation; returns the text of the last reply."
  def resume(book, ref) do
    model = Skillbook.Model.Function.new(fn messages, _ -> List.last(messages).content end)
    {:ok, approval} = Skillbook.approve(book, ref, by: "Bob", resume: [model: model])
    {approval.status, approval.run.status, approval.run.text}
  end

  @doc "Creates the table of the runs."
  def create(book) do
    SQL.query!(Book.sql(Book.fetch!(book)), "create table ran (name text not null)")
    :ok
  end

  @doc "The names that ran, in any order."
  def ran(book) do
    sql = Book.sql(Book.fetch!(book))
    SQL.query!(sql, "select name from ran order by name").rows |> Enum.map(&hd/1)
  end
end
