defmodule Skillbook.Handlers.Drive.Search do
  @moduledoc false
  # `drive.search`: finds files by words, sort, folder, owner and time.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, Flags, Result}
  alias Skillbook.Support.{Count, External}

  @filters ~w(query type folder owner after before shared)

  @kinds Map.new(
           ~w(document spreadsheet presentation markdown text pdf image audio video folder)a,
           &{Atom.to_string(&1), &1}
         )

  @impl true
  def execute(flags, context) do
    with :ok <- Flags.require_any(flags, @filters),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, folder} <- folder(account, flags["folder"]),
         {:ok, found} <- Drive.search(account, query(flags, folder)) do
      {:ok, Result.ok(text(found), data: found, metadata: %{external: true})}
    end
  end

  defp folder(_account, nil), do: {:ok, nil}
  defp folder(account, text), do: Drive.folder(account, text)

  defp query(flags, folder) do
    %{
      text: flags["query"],
      kind: @kinds[flags["type"]],
      folder: folder && folder.id,
      drive: folder && folder.drive,
      owner: flags["owner"],
      after: flags["after"],
      before: flags["before"],
      shared: flags["shared"],
      limit: flags["limit"]
    }
  end

  defp text(%{files: []}), do: "No files found."

  defp text(%{files: files, more: more}) do
    count = Count.text(length(files), "file")
    lines = Enum.map(files, &Files.line/1)
    rest = if more, do: ["There are more; narrow the search, or raise --limit"], else: []
    Enum.join([count <> ":" | lines] ++ rest ++ [External.note("Names")], "\n")
  end
end
