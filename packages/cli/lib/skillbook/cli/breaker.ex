defmodule Skillbook.CLI.Breaker do
  @moduledoc false
  # `skillbook breaker reset NAME`: writes to the database, where running books see it. Their
  # failures are in their memory, so this process has none to show.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Arguments, Schedule, Session, Terminal}

  @impl true
  def switches, do: [by: :string] ++ Arguments.inputs([:reset_breaker])

  @impl true
  def args(["reset", name]), do: {:ok, [name]}
  def args(["reset"]), do: {:error, "`breaker reset` needs a NAME"}

  def args(["reset" | more]),
    do: {:error, "`breaker reset` takes one NAME, got: #{List.last(more)}"}

  def args([]), do: {:error, "`breaker` needs an action: breaker reset NAME"}
  def args([other | _]), do: {:error, "expected breaker reset NAME, got: #{other}"}

  @impl true
  def run(%{args: [name]} = options),
    do: Session.with_book(options, :read, &reset(&1, name, options))

  defp reset(book, name, options) do
    by = Schedule.by(options.flags)

    # Without a database, only this process would know.
    with %{store: store} when store != nil <- Skillbook.Book.fetch!(book),
         {:ok, _rows} <- Skillbook.reset_breaker(Session.given_view(book, options), name, by) do
      Terminal.put(
        Terminal.line("#{name} is in service again in all processes with this database")
      )
    else
      {:error, error} ->
        {:error, error}

      _book ->
        {:error, "expected the database of the books that run the skill; write --db PATH or URL"}
    end
  end
end
