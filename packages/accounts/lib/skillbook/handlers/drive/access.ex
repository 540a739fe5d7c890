defmodule Skillbook.Handlers.Drive.Access do
  @moduledoc false
  # `drive.access`: lists who has access to a file.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, Result}
  alias Skillbook.Support.{Count, External}

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]),
         {:ok, permissions} <- Drive.permissions(account, file) do
      count = Count.text(length(permissions), "permission", "permissions")
      head = "#{Files.named(file)}, #{count}"
      lines = Enum.map_join(permissions, "\n", &line/1)
      text = External.block(head, lines, max: 40_000)
      data = %{file: file, permissions: permissions}
      {:ok, Result.ok(text, data: data, metadata: %{external: true})}
    end
  end

  defp line(%{to: :anyone, role: role}), do: "#{role}: everyone who has the link"

  defp line(%{to: {:domain, name}, role: role}),
    do: "#{role}: everyone of #{External.line(name, 80)}"

  defp line(%{to: {kind, address}, role: role, name: name}) do
    group = if kind == :group, do: "the group ", else: ""
    name = if name in [nil, "", address], do: "", else: " #{External.line(name, 80)}"
    "#{role}: #{group}#{External.line(address, 254)}#{name}"
  end
end
