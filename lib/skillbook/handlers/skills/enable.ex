defmodule Skillbook.Handlers.Skills.Enable do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context) do
    with {:ok, stored} <- switch(flags, context, &Store.enable/3) do
      text = "Enabled #{stored.name}: it can be found and read again."
      {:ok, Result.ok(text, data: Map.take(stored, [:name, :enabled]), effects: [:skill_enabled])}
    end
  end

  @doc "Enables or disables the entry that a flag names."
  def switch(flags, context, fun) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ["name"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ["name"]),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         do: fun.(context.view, flags["name"], Written.options(context))
  end
end
