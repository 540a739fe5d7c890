defmodule Skillbook.Handlers.Drive.Unshare do
  @moduledoc false
  # `drive.unshare`: takes access to a file away from people, groups, a domain or everyone.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.{Files, Grantees}
  alias Skillbook.{Connections, Drive, DriveError, Flags, Result}

  @impl true
  def check(flags, _context) do
    with :ok <- Flags.require_any(flags, ~w(from domain anyone)),
         {:ok, _flags} <- Grantees.cast(flags),
         do: :ok
  end

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Grantees.cast(flags),
         {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]),
         {:ok, permissions} <- Drive.permissions(account, file),
         {:ok, taken} <- taken(file, permissions, wanted(flags)),
         :ok <- unshare(account, file, taken) do
      text = "#{Files.named(file)} is no longer shared with #{names(taken)}."

      {:ok,
       Result.ok(text,
         data: %{file: file, taken: Enum.map(taken, &elem(&1, 1))},
         effects: [:file_unshared]
       )}
    end
  end

  # `--from` has addresses of people and of groups.
  defp wanted(flags), do: Grantees.of(Map.put(flags, "to", flags["from"]))

  # All of them are found before any is taken.
  defp taken(file, permissions, wanted) do
    found = Enum.map(wanted, fn one -> Enum.find(permissions, &same?(&1.to, one)) end)
    pairs = Enum.zip(wanted, found)
    missing = for {one, nil} <- pairs, do: one

    cond do
      missing != [] ->
        error(file, :no_access, Grantees.names(missing))

      owner = Enum.find(pairs, &(elem(&1, 1).role == :owner)) ->
        error(file, :owner, names([owner]))

      true ->
        {:ok, pairs}
    end
  end

  defp same?({kind, address}, {:user, wanted}) when kind in [:user, :group],
    do: String.downcase(address) == String.downcase(wanted)

  defp same?({:domain, name}, {:domain, wanted}), do: String.downcase(name) == wanted
  defp same?(one, other), do: one == other

  defp error(file, kind, reason),
    do: {:error, %DriveError{kind: kind, name: file.name, ids: [Files.id(file)], reason: reason}}

  defp unshare(account, file, pairs) do
    reason = &"it is no longer shared with #{&1}, but still with #{&2}"
    Grantees.each(file, pairs, &Drive.unshare(account, file, &1), reason)
  end

  defp names(pairs), do: pairs |> Enum.map(&elem(&1, 0)) |> Grantees.names()
end
