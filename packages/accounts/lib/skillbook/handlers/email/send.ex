defmodule Skillbook.Handlers.Email.Send do
  @moduledoc false
  # `email.send`: sends a mail.

  @behaviour Skillbook.Handler

  alias Skillbook.Connections.Account
  alias Skillbook.{Connections, Context, Mail, Result}
  alias Skillbook.Handlers.Email.{Compose, Show}

  @impl true
  def check(flags, context), do: Compose.check(flags, context)

  @impl true
  def execute(flags, context), do: deliver(context, &Compose.mail(&1, flags, context))

  @doc "Sends the mail that a function makes for the caller's account."
  @spec deliver(Context.t(), (Account.t() -> {:ok, Mail.mail()} | {:error, Exception.t()})) ::
          {:ok, Result.t()} | {:error, Exception.t()}
  def deliver(context, compose) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, mail} <- compose.(account),
         {:ok, sent} <- Mail.send(account, mail) do
      {:ok, Result.ok(text(mail, sent), data: sent, effects: [:mail_sent])}
    end
  end

  defp text(mail, sent) do
    files = length(mail.attachments)

    with_files =
      case files do
        0 -> ""
        1 -> " with 1 attachment"
        _ -> " with #{files} attachments"
      end

    id = if sent.id, do: " Its id is #{sent.id}.", else: ""
    "Sent#{with_files} to #{Show.recipients(mail)}.#{id}"
  end
end
