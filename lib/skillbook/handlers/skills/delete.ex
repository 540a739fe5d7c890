defmodule Skillbook.Handlers.Skills.Delete do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context), do: delete(flags, context, "name")

  @doc "Deletes the entry that a flag names."
  def delete(flags, context, name) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, [name, "expected-version"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, [name]),
         :ok <- Flags.require(flags, [name]),
         {:ok, flags} <- Flags.cast_text(flags, name, line: true),
         {:ok, flags} <- Flags.cast_integer(flags, "expected-version", min: 1),
         {:ok, deleted} <- Store.delete(context.view, flags[name], Written.options(context, flags)) do
      text =
        "Deleted the #{deleted.kind} #{deleted.name}; `skills.restore #{deleted.name} --version #{deleted.version}` " <>
          "brings it back."

      effect = if deleted.kind == :note, do: :note_deleted, else: :skill_deleted
      {:ok, Result.ok(text <> Written.back(context, deleted), data: %{deleted: true}, effects: [effect])}
    end
  end
end
