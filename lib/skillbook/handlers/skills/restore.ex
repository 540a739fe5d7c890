defmodule Skillbook.Handlers.Skills.Restore do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ~w(name version expected-version)),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ~w(name version)),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         {:ok, flags} <- Flags.cast_integer(flags, "version", min: 1),
         {:ok, flags} <- Flags.cast_integer(flags, "expected-version", min: 1),
         {:ok, stored} <-
           Store.restore(context.view, flags["name"], flags["version"], Written.options(context, flags)) do
      text =
        "#{stored.name} is as it was at version #{flags["version"]}; it is at version #{stored.version} now."

      disabled =
        if stored.enabled, do: "", else: "\nIt is disabled; `skills.enable #{stored.name}` undoes that."

      {:ok,
       Result.ok(text <> disabled, data: Map.take(stored, [:name, :version]), effects: [:skill_restored])}
    end
  end
end
