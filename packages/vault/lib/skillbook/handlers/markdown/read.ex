defmodule Skillbook.Handlers.Markdown.Read do
  @moduledoc false
  # `markdown.read`: shows the text of a note in a vault. The report cuts a long one, and
  # `results.read` reads on.

  @behaviour Skillbook.Handler

  alias Skillbook.{Result, Vault}
  alias Skillbook.Support.External
  alias Skillbook.Vault.Note

  @impl true
  def execute(flags, context) do
    with {:ok, note} <- Vault.read(context.view, flags["note"], vault: flags["vault"]),
         do: {:ok, Result.ok(text(note), data: note, metadata: metadata(note))}
  end

  defp metadata(%{external: true}), do: %{external: true}
  defp metadata(_note), do: %{}

  # A document of a drive is a stranger's text.
  defp text(%{external: true} = note) do
    tags = Enum.map_join(note.tags, &" #{External.line("#" <> &1, 60)}")
    origin = "#{External.line(note.path)} in the vault #{note.vault}"

    External.block("#{origin}: #{External.line(note.title)}#{tags}", note.content,
      max: Note.max_bytes()
    )
  end

  # The text comes last, so nothing of it can be taken for the line about the note.
  defp text(note) do
    tags = Enum.map_join(note.tags, &" ##{&1}")
    title = String.replace(note.title, ~r/\s+/u, " ")
    "#{note.path} in the vault #{note.vault}: #{title}#{tags}\n\n#{note.content}"
  end
end
