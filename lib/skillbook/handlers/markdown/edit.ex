defmodule Skillbook.Handlers.Markdown.Edit do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Flags, Result, Vault}
  alias Skillbook.Handlers.Skills.Edited

  @operations ~w(append prepend find_replace replace)

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Flags.known(flags, ~w(note operation content vault) ++ Edited.flags()),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["note"]),
         :ok <- Flags.require(flags, ["note", "operation"]),
         {:ok, flags} <- Flags.cast_text(flags, "note", line: true),
         {:ok, flags} <- Flags.cast_text(flags, "vault", line: true),
         {:ok, flags} <- Edited.cast(flags, @operations),
         {:ok, edit} <- Edited.edit(flags),
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
      Result.ok("Edited #{edited.path} in the vault #{edited.vault}.", data: edited, effects: [:note_edited])
end
