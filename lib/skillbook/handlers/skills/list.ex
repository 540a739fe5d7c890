defmodule Skillbook.Handlers.Skills.List do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context), do: list(flags, context, :skill)

  @doc "The entries of a kind."
  def list(flags, context, kind) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ["tag", "include-disabled"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["tag"]),
         {:ok, flags} <- Flags.cast_text(flags, "tag", line: true, max: 64),
         {:ok, flags} <- Flags.cast_boolean(flags, "include-disabled"),
         options = [
           kind: kind,
           tag: flags["tag"],
           include_disabled: Map.get(flags, "include-disabled", false)
         ],
         {:ok, stored} <- Store.list(context.view, options) do
      data =
        Enum.map(
          stored,
          &Map.merge(Written.timed(&1), Map.take(&1, [:name, :title, :description, :tags, :source, :version]))
        )

      {:ok, Result.ok(text(stored, kind, flags["tag"]), data: %{:"#{kind}s" => data})}
    end
  end

  defp text(stored, kind, tag) do
    tagged = if tag, do: " with the tag #{tag}", else: ""

    case length(stored) do
      0 -> "No #{kind}s in the store#{tagged}. `get_skill` lists all that there is, of files too."
      1 -> Enum.join(["1 #{kind} in the store#{tagged}:" | Enum.map(stored, &Written.line/1)], "\n")
      n -> Enum.join(["#{n} #{kind}s in the store#{tagged}:" | Enum.map(stored, &Written.line/1)], "\n")
    end
  end
end
