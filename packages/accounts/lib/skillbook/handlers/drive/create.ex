defmodule Skillbook.Handlers.Drive.Create do
  @moduledoc false
  # `drive.create`: makes a document from Markdown, a plain file, or a folder, or sends a file of
  # a vault, whose bytes the model does not see.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.Support.MediaType
  alias Skillbook.{Connections, Drive, DriveError, FlagError, Flags, Result, Vault}

  @no_content "--type folder makes a folder, which has no --content"
  @as_it_is "--file is sent as it is"

  @impl true
  def execute(flags, context) do
    with :ok <- Flags.require_any(flags, ["name", "file"]),
         :ok <- content?(flags),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, folder} <- folder(account, flags["folder"]),
         :ok <- check_private(folder),
         {:ok, file} <- create(account, flags, folder, context) do
      {:ok, Result.ok(text(file), data: file, effects: [:file_created])}
    end
  end

  defp content?(%{"file" => _} = flags) do
    case Enum.find(~w(content type), &Map.has_key?(flags, &1)) do
      nil -> :ok
      other -> FlagError.conflict(["file", other], @as_it_is)
    end
  end

  defp content?(%{"type" => "folder"} = flags) do
    if Map.has_key?(flags, "content"),
      do: FlagError.conflict(["type", "content"], @no_content),
      else: :ok
  end

  defp content?(flags), do: Flags.require(flags, ["content"])

  defp create(account, %{"file" => address} = flags, folder, context) do
    Vault.open_file(context.view, address, fn file ->
      Drive.create(account, %{
        name: flags["name"] || Path.basename(file.path),
        kind: :file,
        type: MediaType.of(file.path) || "application/octet-stream",
        content: {:file, file.device, file.size},
        folder: folder && folder.id
      })
    end)
  end

  defp create(account, flags, folder, _context), do: Drive.create(account, new(flags, folder))

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

    case flags["type"] || "document" do
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
