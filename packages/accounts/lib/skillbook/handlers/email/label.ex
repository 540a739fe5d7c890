defmodule Skillbook.Handlers.Email.Label do
  @moduledoc false
  # `email.label`: adds and removes labels of mails.

  @behaviour Skillbook.Handler

  alias Skillbook.Support.Count
  alias Skillbook.{Connections, FlagError, Flags, Mail, Result}

  @impl true
  def execute(%{"ids" => ids} = flags, context) do
    changes = %{
      add: flags["add"] || [],
      remove: flags["remove"] || [],
      create: flags["create"] == true
    }

    with :ok <- Flags.require_any(flags, ["add", "remove"]),
         :ok <- check_trash(changes.add),
         {:ok, account} <- Connections.account(context, :mail),
         :ok <- Mail.label(account, ids, changes) do
      {:ok, Result.ok(text(ids, changes), effects: [:mail_labelled])}
    end
  end

  # Deleting asks, and this command does not.
  defp check_trash(labels) do
    case Enum.find(labels, &(String.downcase(&1) == "trash")) do
      nil ->
        :ok

      trash ->
        expected = "labels other than trash; `email.delete` deletes mails"
        FlagError.invalid("add", trash, expected)
    end
  end

  defp text(ids, changes) do
    done =
      [
        changes.add != [] && "added #{Enum.join(changes.add, ", ")}",
        changes.remove != [] && "removed #{Enum.join(changes.remove, ", ")}"
      ]
      |> Enum.filter(& &1)
      |> Enum.join("; ")

    "Changed the labels of #{Count.text(length(ids), "mail")}: #{done}."
  end
end
