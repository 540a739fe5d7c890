defmodule Skillbook.Handlers.Skills.Diff do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ~w(name from to)),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ["name"]),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         {:ok, flags} <- Flags.cast_integer(flags, "from", min: 1),
         {:ok, flags} <- Flags.cast_integer(flags, "to", min: 1),
         {:ok, versions} <- Store.history(context.view, flags["name"]),
         to = flags["to"] || hd(versions).version,
         from = flags["from"] || before(versions, to),
         {:ok, diff} <- Store.diff(context.view, flags["name"], from, to) do
      data = Map.merge(diff, %{name: hd(versions).entry.name, from: from, to: to})
      {:ok, Result.ok(text(data), data: data)}
    end
  end

  # Those that cannot be read here have numbers as well.
  defp before(versions, to),
    do: Enum.find_value(versions, to, &if(&1.version < to, do: &1.version))

  defp text(%{from: number, to: number} = diff),
    do: "#{diff.name}: version #{number} and version #{number} are one and the same. Name two of them."

  defp text(%{fields: [], content: ""} = diff),
    do: "#{diff.name}: versions #{diff.from} and #{diff.to} are the same."

  defp text(diff) do
    fields =
      for {field, old, new} <- diff.fields, do: "  #{field}: #{Written.show(old)} -> #{Written.show(new)}\n"

    "#{diff.name}: from version #{diff.from} to version #{diff.to}\n#{fields}#{diff.content}"
    |> String.trim_trailing("\n")
  end
end
