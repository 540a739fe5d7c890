defmodule Skillbook.Handlers.Email.Download do
  @moduledoc false
  # `email.download`: saves an attachment of a mail in a vault.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.Support.External
  alias Skillbook.{Connections, Mail, Result, Vault}

  @impl true
  def check(flags, context),
    do: Vault.File.check_target(context.view, flags["to"], options(flags))

  @impl true
  def execute(%{"id" => id} = flags, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, file} <- Mail.attachment(account, id, flags["attachment"]),
         {:ok, address} <- Vault.File.named(flags["to"], file.name),
         {:ok, saved} <-
           Vault.save_file(context.view, address, &write(&1, &2, file.data), options(flags)) do
      text = "Saved the attachment #{External.line(file.name)} as #{Files.saved(saved)}."
      data = %{name: file.name, type: file.type, saved: saved}
      {:ok, Result.ok(text, data: data, effects: [:file_saved])}
    end
  end

  defp options(flags), do: [replace: flags["overwrite"] == true]

  # `Vault.save_file/4` refuses one that is too large.
  defp write(device, max, data),
    do: :file.write(device, binary_part(data, 0, min(byte_size(data), max + 1)))
end
