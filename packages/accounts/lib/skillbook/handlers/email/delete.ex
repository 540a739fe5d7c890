defmodule Skillbook.Handlers.Email.Delete do
  @moduledoc false
  # `email.delete`: moves mails to the trash. The page asks before it runs, and `email.label`,
  # which does not, refuses that label.

  @behaviour Skillbook.Handler

  alias Skillbook.Support.Count
  alias Skillbook.{Connections, Mail, Result}

  @impl true
  def execute(%{"ids" => ids}, context) do
    changes = %{add: ["trash"], remove: [], create: false}

    with {:ok, account} <- Connections.account(context, :mail),
         :ok <- Mail.label(account, ids, changes) do
      count = Count.text(length(ids), "mail")
      {:ok, Result.ok("Moved #{count} to the trash.", effects: [:mail_deleted])}
    end
  end
end
