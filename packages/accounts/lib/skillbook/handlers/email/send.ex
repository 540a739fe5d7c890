defmodule Skillbook.Handlers.Email.Send do
  @moduledoc false
  # `email.send`: sends a mail.

  @behaviour Skillbook.Handler

  alias Skillbook.{Connections, Mail, Result}
  alias Skillbook.Handlers.Email.{Compose, Show}

  @impl true
  def check(flags, context), do: Compose.check(flags, context)

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, mail} <- Compose.mail(account, flags, context),
         {:ok, sent} <- Mail.send(account, mail) do
      {:ok, Result.ok(text(mail, sent), data: sent, effects: [:mail_sent])}
    end
  end

  @doc "What was sent, to whom."
  @spec text(Mail.mail(), %{id: String.t(), thread: String.t()}) :: String.t()
  def text(mail, sent) do
    files = length(mail.attachments)

    with_files =
      case files do
        0 -> ""
        1 -> " with 1 attachment"
        _ -> " with #{files} attachments"
      end

    "Sent#{with_files} to #{Show.recipients(mail)}. Its id is #{sent.id}."
  end
end
