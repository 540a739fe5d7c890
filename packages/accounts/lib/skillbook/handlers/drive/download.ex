defmodule Skillbook.Handlers.Drive.Download do
  @moduledoc false
  # `drive.download`: saves a file of the drive in a vault. Its bytes go to the file and never
  # into a result.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, DriveError, Result, Vault}

  @impl true
  def check(flags, context),
    do: Vault.File.check_target(context.view, flags["to"], options(flags))

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]),
         {:ok, format} <- format(file, Drive.formats(account, file), flags),
         {:ok, address} <- Vault.File.named(flags["to"], name(file, format)),
         save = &Drive.save(account, file, format, &1, &2),
         {:ok, saved} <- Vault.save_file(context.view, address, save, options(flags)) do
      text =
        "Saved #{Files.named(file)}, revision #{Files.revision(file)}, as #{Files.saved(saved)}."

      {:ok, Result.ok(text, data: %{file: file, saved: saved}, effects: [:file_saved])}
    end
  end

  defp options(flags), do: [replace: flags["overwrite"] == true]

  defp format(%{kind: :folder, name: name}, _formats, _flags),
    do: {:error, %DriveError{kind: :folder, name: name}}

  defp format(%{own: true} = file, [], _flags),
    do: {:error, %DriveError{kind: :no_bytes, name: file.name, reason: file.type}}

  # By the flag, else by the extension of the new name.
  defp format(file, formats, flags) do
    given = flags["type"] && flags["type"] |> String.downcase() |> String.trim_leading(".")
    named = flags["to"] |> Path.extname() |> String.trim_leading(".") |> String.downcase()

    cond do
      given != nil and given not in formats ->
        {:error, %DriveError{kind: :format, name: file.name, reason: given, ids: formats}}

      given != nil ->
        {:ok, given}

      named in formats ->
        {:ok, named}

      true ->
        {:ok, List.first(formats)}
    end
  end

  defp name(file, nil), do: file.name
  defp name(%{own: true} = file, format), do: file.name <> "." <> format

  # A file of another format than its own.
  defp name(file, format) do
    extension = Path.extname(file.name)

    if String.downcase(extension) == "." <> format,
      do: file.name,
      else: Path.basename(file.name, extension) <> "." <> format
  end
end
