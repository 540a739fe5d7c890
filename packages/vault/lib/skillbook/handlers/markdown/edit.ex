defmodule Skillbook.Handlers.Markdown.Edit do
  @moduledoc false
  # `markdown.edit`: edits the text of a note in a vault.

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
    do: Result.ok("Nothing changed: #{edited.path} in the vault #{edited.vault}.", data: edited)

  defp result(edited) do
    text = "Edited #{edited.path} in the vault #{edited.vault}."
    Result.ok(text, data: edited, effects: [:note_edited])
  end
end
