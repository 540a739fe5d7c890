defmodule Skillbook.Handlers.Drive.Update do
  @moduledoc false
  # `drive.update`: replaces the text or the bytes of a file, renames it or moves it.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.Support.MediaType
  alias Skillbook.{Connections, Drive, DriveError, FlagError, Flags, Result, Vault}

  @impl true
  def execute(flags, context) do
    with :ok <- Flags.require_any(flags, ~w(content file name folder)),
         :ok <- one_content(flags),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]),
         {:ok, flags} <- put_revision(flags, file, context.shown),
         {:ok, folder} <- folder(account, flags["folder"]),
         {:ok, changed} <-
           update(account, file, changes(flags, file, folder, context.shown), flags, context) do
      text = "#{did(flags)} #{Files.named(changed)}, now revision #{Files.revision(changed)}."
      {:ok, Result.ok(text, data: changed, effects: [:file_updated])}
    end
  end

  defp one_content(flags) do
    if Map.has_key?(flags, "content") and Map.has_key?(flags, "file"),
      do: FlagError.conflict(["file", "content"], "the file has one content"),
      else: :ok
  end

  defp update(account, file, changes, %{"file" => address}, context) do
    Vault.open_file(context.view, address, fn opened ->
      content = {:file, opened.device, opened.size}
      type = MediaType.of(opened.path)
      Drive.update(account, file, Map.merge(changes, %{content: content, type: type}))
    end)
  end

  defp update(account, file, changes, _flags, _context), do: Drive.update(account, file, changes)

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

  # The revision that the conversation has read last needs no flag. A file may have no text to
  # read, so bytes are replaced without a revision too.
  defp changes(flags, file, folder, shown) do
    %{
      name: flags["name"],
      content: flags["content"],
      folder: folder && folder.id,
      revision: flags["revision"] || (flags["file"] && Files.shown_revision(file, shown))
    }
  end

  defp did(flags) do
    done =
      for {flag, word} <- [
            {"content", "wrote"},
            {"file", "wrote"},
            {"name", "renamed"},
            {"folder", "moved"}
          ],
          Map.has_key?(flags, flag),
          do: word

    case done do
      [word] -> String.capitalize(word)
      words -> words |> Enum.join(" and ") |> String.capitalize()
    end
  end
end
