defmodule Skillbook.Handlers.Drive.Share do
  @moduledoc false
  # `drive.share`: gives people, groups, a domain or everyone access to a file.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.{Files, Grantees}
  alias Skillbook.{Connections, Drive, Flags, Result}

  @roles %{"reader" => :reader, "commenter" => :commenter, "writer" => :writer}

  @impl true
  def check(flags, _context) do
    with :ok <- Flags.require_any(flags, ~w(to group domain anyone)),
         {:ok, _flags} <- Grantees.cast(flags),
         do: :ok
  end

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Grantees.cast(flags),
         grants = grants(flags),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]),
         :ok <- share(account, file, grants) do
      text = "Shared #{Files.named(file)} with #{names(grants)} as #{flags["role"]}."
      {:ok, Result.ok(text, data: %{file: file, grants: grants}, effects: [:file_shared])}
    end
  end

  defp grants(flags) do
    for grantee <- Grantees.of(flags) do
      %{
        to: grantee,
        role: @roles[flags["role"]],
        notify: flags["quiet"] != true,
        message: flags["message"]
      }
    end
  end

  defp share(account, file, grants) do
    pairs = for grant <- grants, do: {grant.to, grant}
    reason = &"it is shared with #{&1}, and not with #{&2}"
    Grantees.each(file, pairs, &Drive.share(account, file, &1), reason)
  end

  defp names(grants), do: Grantees.names(Enum.map(grants, & &1.to))
end
