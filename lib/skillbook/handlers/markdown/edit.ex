defmodule Skillbook.Handlers.Markdown.Edit do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Skills.EditFlags
  alias Skillbook.{Result, Vault}

  @impl true
  def execute(flags, context) do
    with {:ok, edit} <- EditFlags.edit(flags),
         {:ok, edited} <- Vault.edit(context.view, flags["note"], edit, vault: flags["vault"]) do
      {:ok, result(edited)}
    end
  end

  defp result(%{changed: false} = edited),
    do:
      Result.ok("Nothing changed, it is so already: #{edited.path} in the vault #{edited.vault}.",
        data: edited
      )

  defp result(edited),
    do:
      Result.ok("Edited #{edited.path} in the vault #{edited.vault}.",
        data: edited,
        effects: [:note_edited]
      )
end
