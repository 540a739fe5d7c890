defmodule Skillbook.FakeSQL do
  @moduledoc false
  # A connection over SQLite that can be made unavailable. It reports subscriptions to the process
  # `:test`.

  @behaviour Skillbook.SQL

  alias Skillbook.SQL.{Error, SQLite}

  defstruct [:name]

  def child_spec(options) do
    name = options[:name]
    :persistent_term.put({__MODULE__, name}, {:counters.new(1, []), options[:test]})
    SQLite.child_spec(name: name, path: options[:path])
  end

  def handle(name), do: %__MODULE__{name: name}

  @doc "Makes the database unavailable, or available again."
  def away(name, away?) do
    {counter, _test} = :persistent_term.get({__MODULE__, name})
    :counters.put(counter, 1, if(away?, do: 1, else: 0))
  end

  def listen(name, channel) do
    {_away, test} = :persistent_term.get({__MODULE__, name})
    if test, do: send(test, {:listens, self(), channel})
    :ok
  end

  @impl true
  def query(%{name: name}, statement, params) do
    if away?(name),
      do: {:error, gone()},
      else: SQLite.query(SQLite.handle(name), statement, params)
  end

  @impl true
  def execute_batch(%{name: name}, statements),
    do: SQLite.execute_batch(SQLite.handle(name), statements)

  @impl true
  def transaction(%{name: name}, fun),
    do: if(away?(name), do: {:error, gone()}, else: SQLite.transaction(SQLite.handle(name), fun))

  @impl true
  def in_transaction?(%{name: name}), do: SQLite.in_transaction?(SQLite.handle(name))

  @impl true
  def dialect(_sql), do: :sqlite

  defp away?(name), do: :counters.get(elem(:persistent_term.get({__MODULE__, name}), 0), 1) == 1
  defp gone, do: %Error{kind: :other, message: "the server is gone"}
end
