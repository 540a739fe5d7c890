defmodule Skillbook.Handlers.Drive.Trash do
  @moduledoc false
  # `drive.trash`: moves a file to the trash, or back.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, Result}

  @impl true
  def execute(flags, context) do
    restore? = flags["restore"] == true

    with {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.any_file(account, flags["id"]),
         {:ok, changed} <- Drive.update(account, file, %{trashed: not restore?}) do
      {:ok, result(restore?, changed)}
    end
  end

  defp result(true, file) do
    text = "Took #{Files.named(file)} out of the trash."
    Result.ok(text, data: file, effects: [:file_restored])
  end

  defp result(false, file) do
    text =
      "Moved #{Files.named(file)} to the trash. To take it back, write: " <>
        "drive.trash #{Files.id(file)} --restore"

    Result.ok(text, data: file, effects: [:file_trashed])
  end
end
