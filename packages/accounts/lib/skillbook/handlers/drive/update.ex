defmodule Skillbook.Handlers.Drive.Update do
  @moduledoc false
  # `drive.update`: replaces the text of a file, renames it or moves it.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, DriveError, Flags, Result}

  @impl true
  def execute(flags, context) do
    with :ok <- Flags.require_any(flags, ~w(content name folder)),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]),
         {:ok, flags} <- put_revision(flags, file, context.shown),
         {:ok, folder} <- folder(account, flags["folder"]),
         {:ok, changed} <- Drive.update(account, file, changes(flags, folder)) do
      text = "#{did(flags)} #{Files.named(changed)}, now revision #{Files.revision(changed)}."
      {:ok, Result.ok(text, data: changed, effects: [:file_updated])}
    end
  end

  # A text replaces all of the text before, so it must have been read.
  defp put_revision(%{"content" => _} = flags, file, shown)
       when not is_map_key(flags, "revision") do
    case Files.shown_revision(file, shown) do
      nil -> {:error, %DriveError{kind: :unread, name: file.name, ids: [Files.id(file)]}}
      revision -> {:ok, Map.put(flags, "revision", revision)}
    end
  end

  defp put_revision(flags, _file, _shown), do: {:ok, flags}

  defp folder(_account, nil), do: {:ok, nil}
  defp folder(account, text), do: Drive.folder(account, text)

  defp changes(flags, folder) do
    %{
      name: flags["name"],
      content: flags["content"],
      folder: folder && folder.id,
      revision: flags["revision"]
    }
  end

  defp did(flags) do
    done =
      for {flag, word} <- [{"content", "Wrote"}, {"name", "renamed"}, {"folder", "moved"}],
          Map.has_key?(flags, flag),
          do: word

    case done do
      [word] -> String.capitalize(word)
      words -> words |> Enum.join(" and ") |> String.capitalize()
    end
  end
end
