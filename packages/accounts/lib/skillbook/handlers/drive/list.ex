defmodule Skillbook.Handlers.Drive.List do
  @moduledoc false
  # `drive.list`: lists the files and folders in a folder.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, Result}
  alias Skillbook.Support.{Count, External}

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :drive),
         {:ok, folder} <- Drive.folder(account, flags["folder"]),
         query = %{folder: folder.id, drive: folder.drive, limit: flags["limit"]},
         {:ok, found} <- Drive.search(account, query) do
      data = Map.put(found, :folder, folder)
      {:ok, Result.ok(text(folder, found), data: data, metadata: %{external: true})}
    end
  end

  defp text(folder, %{files: []}), do: "The folder #{External.line(folder.name)} is empty."

  defp text(folder, %{files: files, more: more}) do
    count = Count.text(length(files), "entry", "entries")
    head = "#{count} in the folder #{External.line(folder.name)}:"
    rest = if more, do: ["There are more; raise --limit, or use `drive.search`"], else: []
    Enum.join([head | Enum.map(files, &Files.line/1)] ++ rest ++ [External.note("Names")], "\n")
  end
end
