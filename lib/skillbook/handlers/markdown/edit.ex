defmodule Skillbook.Handlers.Markdown.Edit do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Flags, Result, Vault}
  alias Skillbook.Handlers.Skills.Written

  @operations ~w(append prepend find_replace replace)
  @replacing ~w(find replace replace-all)

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Flags.known(flags, ~w(note operation content vault) ++ @replacing),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["note"]),
         :ok <- Flags.require(flags, ["note", "operation"]),
         {:ok, flags} <- Flags.cast_text(flags, "note", line: true),
         {:ok, flags} <- Flags.cast_text(flags, "vault", line: true),
         {:ok, flags} <- Flags.cast_one_of(flags, "operation", @operations),
         {:ok, flags} <- Flags.cast_boolean(flags, "replace-all"),
         {:ok, flags} <- Written.cast_content(flags, "content"),
         {:ok, flags} <- Written.cast_content(flags, "find"),
         {:ok, flags} <- Written.cast_content(flags, "replace"),
         {:ok, edit} <- edit(flags),
         {:ok, edited} <- Vault.edit(context.view, flags["note"], edit, vault: flags["vault"]) do
      {:ok, result(edited)}
    end
  end

  defp edit(%{"operation" => "find_replace"} = flags) do
    with :ok <- Flags.require(flags, ["find", "replace"]),
         :ok <- without(flags, ["content"], "--content is for the other operations"),
         do:
           {:ok, {:find_replace, flags["find"], flags["replace"], all?: Map.get(flags, "replace-all", false)}}
  end

  defp edit(%{"operation" => operation} = flags) do
    with :ok <- Flags.require(flags, ["content"]),
         :ok <- without(flags, @replacing, "it is for the operation find_replace"),
         do: {:ok, {String.to_existing_atom(operation), flags["content"]}}
  end

  defp without(flags, names, text) do
    case Enum.filter(names, &Map.has_key?(flags, &1)) do
      [] -> :ok
      given -> Written.conflict(["operation" | given], text)
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
