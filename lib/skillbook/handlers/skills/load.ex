defmodule Skillbook.Handlers.Skills.Load do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Flags
  alias Skillbook.Handlers.Skills.Shown

  @kinds [:skill]

  @impl true
  def execute(flags, %{view: view} = context) do
    with {:ok, flags} <- Flags.known(flags, ["skill-id"]),
         {:ok, %{"skill-id" => id}} <- Shown.cast_name(flags, context.command.args, "skill-id") do
      case Shown.fetch(view, id, @kinds) do
        {:ok, entry} -> {:ok, Shown.result(view, entry, entry.name)}
        :error -> Shown.not_found(view, "skill", id, @kinds, & &1.name)
      end
    end
  end
end
