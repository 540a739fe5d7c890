defmodule Skillbook.Handlers.Email.Forward do
  @moduledoc false
  # `email.forward`: sends a mail on to others, with its attachments.

  @behaviour Skillbook.Handler

  alias Skillbook.{Connections, Mail, Result}
  alias Skillbook.Handlers.Email.{Compose, Send}

  @impl true
  def check(flags, context), do: Compose.check_recipients(flags, context)

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, mail} <- Compose.forward(account, flags, context),
         {:ok, sent} <- Mail.send(account, mail),
         do: {:ok, Result.ok(Send.text(mail, sent), data: sent, effects: [:mail_sent])}
  end
end
