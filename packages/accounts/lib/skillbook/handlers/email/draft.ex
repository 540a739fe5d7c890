defmodule Skillbook.Handlers.Email.Draft do
  @moduledoc false
  # `email.draft`: stores a draft, and answers with the line that sends it.
  #
  # The tone is the model's work: it writes the body. The page says so.

  @behaviour Skillbook.Handler

  alias Skillbook.{Connections, Mail, Result}
  alias Skillbook.Handlers.Email.{Compose, Show}
  alias Skillbook.Support.{External, Hidden}

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, mail} <- Compose.mail(account, flags, context),
         {:ok, draft} <- Mail.draft(account, mail) do
      line = Compose.line(%{mail | draft: draft.id}, flags)
      data = %{id: draft.id, line: line, tone: flags["tone"]}
      effects = [:mail_drafted]
      {:ok, Result.ok(text(mail, draft.id, line, flags["tone"]), data: data, effects: effects)}
    end
  end

  defp text(mail, id, line, tone) do
    files =
      for file <- mail.attachments,
          do: "Attachment: #{External.line(file.name)}, #{Show.size(byte_size(file.data))}"

    bcc = if mail.bcc == [], do: [], else: ["Bcc: #{Enum.join(mail.bcc, ", ")}"]
    cc = if mail.cc == [], do: [], else: ["Cc: #{Enum.join(mail.cc, ", ")}"]
    head = ["To: #{Enum.join(mail.to, ", ")}"] ++ cc ++ bcc
    subject = ["Subject: #{Hidden.line(mail.subject)}"]

    """
    Stored the draft #{id}; it is not sent. Tone: #{tone}. Show it to the user:

    #{Enum.join(head ++ subject ++ files, "\n")}

    #{Hidden.visible(mail.text)}

    If the user approves, this sends it, in place of the draft:

    #{line}
    """
    |> String.trim_trailing()
  end
end
