defmodule Skillbook.HandlerCase do
  @moduledoc false
  # For tests that run command lines against their handlers, with a database of their own.
  #
  # `run/3` returns the text that a model would read: the content of the result, or "error: " and
  # the message of the error. Tasks are named `T-1`, `T-2` and so on in the order of their
  # creation, instead of by their random numbers; see `Skillbook.Ordinals`.

  use ExUnit.CaseTemplate

  alias Skillbook.{Book, Catalog, Context, Flags, Ordinals, Part, SQL, Source, View}

  using do
    quote do
      import Skillbook.HandlerCase
    end
  end

  @doc "A context whose time is noon of the 17th of February 2026 and whose user is alice."
  def context(fields \\ []) do
    struct!(
      %Context{
        view: nil,
        profile: %Skillbook.Profile{id: "alice"},
        entry: nil,
        command: nil,
        now: ~U[2026-02-17 12:00:00.123456Z]
      },
      fields
    )
  end

  @doc "The context with a new view of the built-in skills and its own folder, `write_to`."
  def read(context) do
    {:ok, catalog} = Catalog.load([Source.builtin() | packs()] ++ [context.write_to])
    assert Catalog.diagnostics(catalog) == []
    %{context | view: View.all(catalog)}
  end

  @doc "A handle for a new database with all tables; that of SQLite is in `folder`."
  def database(folder, dialect \\ :sqlite) do
    sql = start_database(folder, dialect)
    {:ok, _} = SQL.Migrations.run(sql)
    sql
  end

  defp start_database(_folder, :postgres), do: Skillbook.PostgresCase.start()

  defp start_database(folder, :sqlite) do
    name = :"handlers_#{System.unique_integer([:positive])}"
    start_supervised!({SQL.SQLite, path: Path.join(folder, "skillbook.db"), name: name}, id: name)
    SQL.SQLite.handle(name)
  end

  @doc "Runs a command line, or a name with a map of flags, as the executor hands it to the " <>
         "handler."
  def execute(context, line_or_name, flags \\ nil)
  def execute(context, line, nil), do: handle(context, Skillbook.Command.parse!(line))

  def execute(context, name, flags),
    do: handle(context, %Skillbook.Command{name: name, flags: flags, raw: name})

  defp handle(context, %{name: name} = command) do
    builtin = builtin()
    entry = View.fetch!(builtin, name)
    {:ok, declaration} = View.flags(builtin, name)
    {:ok, module} = Skillbook.Entry.fetch_handler(entry)
    options = [args: command.args, today: DateTime.to_date(context.now)]

    with {:ok, flags} <- Flags.cast_declared(command.flags, declaration, options) do
      flags = Ordinals.to_numbers(flags, context.sql)
      command = %{command | flags: flags, args: []}
      answer = module.execute(flags, %{context | entry: entry, command: command})
      Ordinals.from_numbers(answer, context.sql)
    end
  end

  # The pages do not change while tests run.
  defp builtin do
    with nil <- :persistent_term.get(__MODULE__, nil) do
      {:ok, catalog} = Catalog.load([Source.builtin() | packs()])
      :persistent_term.put(__MODULE__, View.all(catalog))
      builtin()
    end
  end

  # Those of the packages that are loaded, for a book that has all that they need.
  defp packs do
    book = %Book{name: __MODULE__, of_parts: %{vaults: [__MODULE__]}}
    for pack <- Part.flat(Part.installed(), :builtins, [book]), do: pack.source
  end

  @doc "As `execute/3`, but gives the text that goes to the model."
  def run(context, line_or_name, flags \\ nil) do
    case execute(context, line_or_name, flags) do
      {:ok, result} -> result.content
      {:error, text} when is_binary(text) -> "error: " <> text
      {:error, e} -> "error: " <> Exception.message(e)
    end
  end

  @doc "The context, the given days later."
  def later(context, days), do: %{context | now: DateTime.add(context.now, days * 86_400)}
end
