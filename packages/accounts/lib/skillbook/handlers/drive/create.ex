defmodule Skillbook.Handlers.Drive.Create do
  @moduledoc false
  # `drive.create`: makes a document from Markdown, a plain file, or a folder.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, DriveError, FlagError, Flags, Result}

  @no_content "--type folder makes a folder, which has no --content"

  @impl true
  def execute(flags, context) do
    with :ok <- content?(flags),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, folder} <- folder(account, flags["folder"]),
         :ok <- check_private(folder),
         {:ok, file} <- Drive.create(account, new(flags, folder)) do
      {:ok, Result.ok(text(file), data: file, effects: [:file_created])}
    end
  end

  defp content?(%{"type" => "folder"} = flags) do
    if Map.has_key?(flags, "content"),
      do: FlagError.conflict(["type", "content"], @no_content),
      else: :ok
  end

  defp content?(flags), do: Flags.require(flags, ["content"])

  # The top folder is not looked up, so that the command needs no scope to read.
  defp folder(_account, text) when text in [nil, "root"], do: {:ok, nil}
  defp folder(account, text), do: Drive.folder(account, text)

  # Everybody who sees a folder sees what is put there, and strangers share folders with the user.
  # `drive.update` moves files there, and asks before.
  defp check_private(nil), do: :ok
  defp check_private(%{shared: false, drive: nil}), do: :ok
  defp check_private(folder), do: {:error, %DriveError{kind: :shared, name: folder.name}}

  defp new(flags, folder) do
    new = %{name: flags["name"], content: flags["content"], folder: folder && folder.id}

    case flags["type"] do
      "document" -> Map.put(new, :kind, :document)
      "folder" -> Map.put(new, :kind, :folder)
      "markdown" -> file(new, "text/markdown", ".md")
      "text" -> file(new, "text/plain", ".txt")
    end
  end

  defp file(new, type, extension) do
    name = if Path.extname(new.name) == "", do: new.name <> extension, else: new.name
    Map.merge(new, %{kind: :file, type: type, name: name})
  end

  defp text(file) do
    case Files.url(file) do
      nil -> "Created #{Files.named(file)}."
      url -> "Created #{Files.named(file)}: #{url}"
    end
  end
end
