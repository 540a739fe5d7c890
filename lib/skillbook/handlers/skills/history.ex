defmodule Skillbook.Handlers.Skills.History do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ["name"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ["name"]),
         {:ok, %{"name" => name}} <- Flags.cast_text(flags, "name", line: true),
         {:ok, versions} <- Store.history(context.view, name) do
      shown = Enum.map(versions, &Map.take(&1, [:version, :action, :by, :author, :at]))

      lines =
        Enum.map(
          versions,
          &"- version #{&1.version}: #{&1.action} by #{Written.who(&1.by, &1.author, &1.at)}"
        )

      name = with [%{entry: entry} | _] <- versions, do: entry.name, else: ([] -> name)
      text = Enum.join(["Versions of #{name}, the newest first:" | lines], "\n")
      {:ok, Result.ok(text, data: %{name: name, versions: shown})}
    end
  end
end
