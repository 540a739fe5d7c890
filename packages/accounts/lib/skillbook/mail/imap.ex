defmodule Skillbook.Mail.IMAP do
  @moduledoc """
  Mail on any server with IMAP (RFC 3501) and SMTP (RFC 6409).

  Its options are those of `Skillbook.Connections.IMAP`. It needs the native library of
  connections (`config :skillbook, connections: true`).

  ## Labels

  In IMAP a message is in one folder and has keywords. Both are labels:

    * `inbox`, `sent`, `drafts`, `spam` and `trash` are folders, by the server's attributes
      (RFC 6154) or the usual names. Adding `inbox`, `spam` or `trash` moves a message there;
      removing one of these moves it to the inbox, and removing `inbox` archives it
    * `unread` and `starred` are flags, `important` is the keyword `$Important`
    * another name is the folder of this name, if there is one: adding it moves a message there,
      and removing it moves the message to the inbox. Otherwise it is a keyword, with `_` for
      blanks

  Archiving moves messages from the inbox to the folder for the archive, which is made if there is
  none.

  ## Threads

  Threads span folders: the answers in the folder of sent mails belong to the questions in the
  inbox. Servers group messages of one folder only, so threads are found by the headers
  `Message-ID`, `References` and `In-Reply-To`, in all folders but spam, trash and drafts.

  ## Sending

  A mail is handed to the SMTP server for all recipients or for none, and then stored among the
  sent mails, unless the server has done that itself. If the connection is lost after the mail was
  handed over, it is looked for among the sent mails, and never sent again.
  """

  @behaviour Skillbook.Mail

  alias Skillbook.Mail.Address
  alias Skillbook.Mail.IMAP.{Folders, Id, Labels, Messages, Search, Session}
  alias Skillbook.Mail.MIME
  alias Skillbook.{MailError, NotFoundError}

  # Bytes. Most servers take mails of 25 MB, and attachments grow by a third on their way.
  @max_attachments 18_000_000

  @impl true
  def max_attachments(_account), do: @max_attachments

  @impl true
  def utf8?(account), do: Session.run(account, "smtp.utf8", &Session.utf8?/1)

  @impl true
  def address(account), do: {:ok, address_of(sender(account))}

  defp address_of(text), do: Address.mailbox(text).address

  # As SMTP takes it.
  defp wire(text) do
    address = address_of(text)

    case Address.wire(address) do
      {:ok, address} -> address
      :error -> address
    end
  end

  defp sender(%{options: options}), do: options[:from] || options.username

  @impl true
  def search(account, query),
    do: Session.run(account, "imap.search", &Search.run(&1, Folders.list(&1), query))

  @impl true
  def get(account, id) do
    Session.run(account, "imap.get", fn session ->
      found = Messages.locate(session, Folders.list(session), [id])
      session |> Messages.summaries(found) |> one(id)
    end)
  end

  # It may have been deleted since it was found.
  defp one([summary], _id), do: summary
  defp one([], id), do: Session.fail(Messages.missing(id))

  @impl true
  def read(account, id) do
    Session.run(account, "imap.read", fn session ->
      folders = Folders.list(session)
      [asked] = Messages.locate(session, folders, [id])
      summary = session |> Messages.summaries([asked]) |> one(id)
      Messages.read(session, asked, Search.related(session, folders, asked, summary))
    end)
  end

  @impl true
  def attachment(account, id, part) do
    Session.run(account, "imap.attachment", fn session ->
      [found] = Messages.locate(session, Folders.list(session), [id])
      Messages.attachment(session, found, part)
    end)
  end

  @impl true
  def label(account, ids, changes) do
    result =
      Session.run(account, "imap.label", fn session ->
        folders = Folders.list(session)
        found = Messages.locate(session, folders, ids)
        Labels.change(session, folders, found, changes)
      end)

    with {:ok, _} <- result, do: :ok
  end

  @impl true
  def archive(account, ids), do: label(account, ids, %{add: [], remove: ["inbox"], create: false})

  # Writing

  @impl true
  def draft(account, mail) do
    with {:ok, raw} <- build(account, mail) do
      Session.run(account, "imap.draft", fn session ->
        folders = Folders.list(session)
        drafts = Folders.ensure(session, folders, :drafts)
        old = old_draft(session, folders, mail.draft)
        stored = store(session, drafts, ["\\Draft", "\\Seen"], raw, mail)
        delete(session, old)
        %{id: stored.id}
      end)
    end
  end

  @impl true
  def send(account, mail) do
    with {:ok, copy} <- build(account, mail),
         {:ok, raw} <- build(account, %{mail | bcc: []}) do
      Session.run(account, "imap.send", fn session ->
        folders = Folders.list(session)
        sent = Folders.ensure(session, folders, :sent)
        old = old_draft(session, folders, mail.draft)
        from = wire(sender(account))
        recipients = for list <- [mail.to, mail.cc, mail.bcc], text <- list, do: wire(text)

        case Session.submit(session, from, Enum.uniq(recipients), raw) do
          :ok -> kept(session, sent, copy, mail, old)
          :unclear -> find_unclear(session, sent, mail, old)
        end
      end)
    end
  end

  # The mail is sent, so a failure from here on must not look as if it were not.
  defp kept(session, sent, copy, mail, old) do
    Session.instead(%MailError{kind: :unsaved}, fn ->
      # Some servers store sent mails themselves.
      stored =
        find_mail(session, sent, mail.message_id) ||
          store(session, sent, ["\\Seen"], copy, mail)

      delete(session, old)
      Map.take(stored, [:id, :thread])
    end)
  end

  defp find_unclear(session, sent, mail, old) do
    Session.instead(%MailError{kind: :unclear}, fn ->
      stored = find_mail(session, sent, mail.message_id) || Session.fail(:unclear)
      delete(session, old)
      Map.take(stored, [:id, :thread])
    end)
  end

  defp build(account, mail), do: MIME.build(Map.put(mail, :from, sender(account)))

  # The draft that a mail replaces: only a mail in the folder of drafts is deleted.
  defp old_draft(_session, _folders, nil), do: nil

  defp old_draft(session, folders, id) do
    drafts = for %{role: :drafts} = folder <- folders, do: folder

    with {:ok, parsed} <- Id.parse(id),
         [found | _] <- Enum.flat_map(drafts, &Messages.among(session, &1, [parsed])) do
      found
    else
      _none -> Session.fail(%NotFoundError{kind: "draft", id: id, find: nil})
    end
  end

  defp delete(_session, nil), do: :ok

  defp delete(session, {folder, %{uid: uid}}) do
    Session.call(session, {:select, folder.raw, false})
    Session.call(session, {:delete, [uid]})
  end

  # Stores a mail of ours, and returns its summary.
  defp store(session, folder, flags, raw, mail) do
    Session.call(session, {:append, folder.raw, flags, raw})

    find_mail(session, folder, mail.message_id) ||
      Session.fail(
        Session.error(session.account, :bad_answer, hint: "the stored mail is missing")
      )
  end

  defp find_mail(session, folder, message_id) do
    Session.call(session, {:select, folder.raw, true})
    uids = Session.call(session, {:search, [:undeleted, {:header, "Message-ID", message_id}]})

    if uids != [],
      do: session |> Messages.details(folder, [Enum.max(uids)]) |> List.last()
  end
end
