defmodule Skillbook.Handlers.Email.Archive do
  @moduledoc false
  # `email.archive`: takes mails out of the inbox.

  @behaviour Skillbook.Handler

  alias Skillbook.Support.Count
  alias Skillbook.{Connections, Mail, Result}

  @impl true
  def execute(%{"ids" => ids}, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         :ok <- Mail.archive(account, ids) do
      count = Count.text(length(ids), "mail")
      {:ok, Result.ok("Archived #{count}.", effects: [:mail_archived])}
    end
  end
end
