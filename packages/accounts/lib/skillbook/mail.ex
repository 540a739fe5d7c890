defmodule Skillbook.Mail do
  @moduledoc """
  Behaviour for mail services, and the functions that call the one of an account.

  The commands `email.search`, `email.read`, `email.send` and so on work with every module that
  implements it: `Skillbook.Mail.Gmail` uses Gmail's interface, `Skillbook.Mail.Outlook` that of
  Microsoft 365, `Skillbook.Mail.IMAP` any server with IMAP and SMTP. The vendor of an account
  names its module under `mail` (see `Skillbook.Connections.Vendor`).

  ## Ids

  Ids of messages, threads and drafts are texts that only the service understands. They have no
  blanks and no control characters, and stay valid while the message exists, also after
  `c:archive/2`.

  ## Texts of strangers

  Everything that a service returns was written by others: names, subjects, texts, the names of
  attachments and of labels. A service returns it unchanged, in valid UTF-8. The commands mark it
  and show hidden characters.

  ## Labels

  A label is a name such as `"invoices"`, or one of these words, which every service maps to its
  own folders and flags:

  | label | messages |
  |---|---|
  | `inbox` | not archived |
  | `unread` | not read yet |
  | `starred` | marked by the user; flagged, in IMAP |
  | `important` | marked as important |
  | `sent`, `drafts`, `spam`, `trash` | in these folders |

  Names are compared without case.

  ## Errors

  Functions return `{:error, exception}`:

    * `Skillbook.NotFoundError` of the kind `"mail"`, `"draft"`, `"label"` or `"attachment"`
    * `Skillbook.ConnectionError`, if the account is not connected or lacks a scope
    * `Skillbook.ServiceError`, if the service fails, refuses the call or is too slow
    * `Skillbook.MailError`, if the service cannot take the mail, or if it is not known whether a
      mail was sent

  All of them keep `account.deadline`.
  """

  alias Skillbook.Connections.Account
  alias Skillbook.MailError

  # Gmail's limit for mails of its interface.
  @max_recipients 500

  @typedoc "A mailbox of a header. `:name` is `nil` or decoded text."
  @type address :: %{name: String.t() | nil, address: String.t()}

  @typedoc """
  The conditions of a search. All of them must hold; `nil` is no condition.

    * `:text` - words and phrases, each of which is in the message (sender, recipients, subject or
      text), or with `:without` is not in it. Services need not ignore endings of words
    * `:from`, `:to` - an address, a part of one, or a name; `:to` includes copies
    * `:subject` - words of the subject
    * `:after` - received at this time or later
    * `:before` - received before this time
    * `:unread` - `true` for unread messages only, `false` for read ones
    * `:label` - a [label](#module-labels). Without one, spam and trash are left out
    * `:limit` - the maximum number of messages, 1 to 100
  """
  @type query :: %{
          text: [{:with | :without, String.t()}],
          from: String.t() | nil,
          to: String.t() | nil,
          subject: String.t() | nil,
          after: DateTime.t() | nil,
          before: DateTime.t() | nil,
          unread: boolean() | nil,
          label: String.t() | nil,
          limit: pos_integer()
        }

  @typedoc """
  A message without its text.

    * `:message_id`, `:references` - the headers of these names, ids without `<` and `>`.
      References include those of `In-Reply-To`
    * `:from` - the first author, or `nil`
    * `:reply_to` - empty without such a header
    * `:date` - when it was received, or `nil`
    * `:labels` - the words of the table above and the names of others
    * `:snippet` - the beginning of its text, or an empty text if the service has none
  """
  @type summary :: %{
          id: String.t(),
          thread: String.t(),
          message_id: String.t() | nil,
          references: [String.t()],
          from: address() | nil,
          reply_to: [address()],
          to: [address()],
          cc: [address()],
          subject: String.t(),
          date: DateTime.t() | nil,
          unread: boolean(),
          labels: [String.t()],
          snippet: String.t()
        }

  @typedoc """
  A message: the fields of `t:summary/0`, and

    * `:body` - its parts to show, in their order: `{:plain, text}`, `{:html, html}`, or
      `{:either, text, html}` for two forms of the same
    * `:attachments` - `:part` is for `c:attachment/3`, a text without blanks; `:size` in bytes
    * `:problems` - the faults of its structure, in words
  """
  @type message :: %{
          id: String.t(),
          thread: String.t(),
          message_id: String.t() | nil,
          references: [String.t()],
          from: address() | nil,
          reply_to: [address()],
          to: [address()],
          cc: [address()],
          subject: String.t(),
          date: DateTime.t() | nil,
          unread: boolean(),
          labels: [String.t()],
          snippet: String.t(),
          body: [
            {:plain, String.t()} | {:html, String.t()} | {:either, String.t(), String.t()}
          ],
          attachments: [
            %{part: String.t(), name: String.t(), type: String.t(), size: non_neg_integer()}
          ],
          problems: [String.t()]
        }

  @typedoc """
  A file. `:type` is its media type, such as `text/csv`, and `:charset` the character set of a
  text, if it is known.
  """
  @type file :: %{
          required(:name) => String.t(),
          required(:type) => String.t(),
          required(:data) => binary(),
          optional(:charset) => String.t() | nil
        }

  @typedoc """
  A mail to send.

    * `:to`, `:cc`, `:bcc` - addresses, such as `bob@example.com` or `Bob <bob@example.com>`
    * `:text` - the body in Markdown. It is sent as it is, and as HTML made from it
    * `:reply` - the message that it answers, or `nil`. Its `:message_id`, `:references` and
      `:thread` are used
    * `:draft` - the id of a draft that the mail replaces, or `nil`. `c:send/2` removes the draft,
      `c:draft/2` overwrites it
    * `:message_id` - its own Message-ID, without `<` and `>`, by which a service finds the mail
      again if the connection was lost while it was sent
    * `:date` - for its header
  """
  @type mail :: %{
          to: [String.t()],
          cc: [String.t()],
          bcc: [String.t()],
          subject: String.t(),
          text: String.t(),
          attachments: [file()],
          reply: summary() | nil,
          draft: String.t() | nil,
          message_id: String.t(),
          date: DateTime.t()
        }

  @typedoc "Where a mail that was sent is kept, if the service says so."
  @type sent :: %{id: String.t() | nil, thread: String.t() | nil}

  @doc "Finds messages, the latest first. `:more` is whether there are more than the limit."
  @callback search(Account.t(), query()) ::
              {:ok, %{messages: [summary()], more: boolean()}} | {:error, Exception.t()}

  @doc "Returns one message without its text."
  @callback get(Account.t(), id :: String.t()) :: {:ok, summary()} | {:error, Exception.t()}

  @doc """
  Returns the thread of a message, oldest first, without other drafts. A service returns at most
  the latest 100 messages, and always the one that was asked for. Reading marks nothing as read.
  """
  @callback read(Account.t(), id :: String.t()) :: {:ok, [message()]} | {:error, Exception.t()}

  @doc """
  Sends a mail. It is never sent twice: if the service does not answer, the mail is looked up
  among the sent ones, and if it is not there, the error is a `Skillbook.MailError` of the kind
  `:unclear`. A service that does not say under which id it keeps the mail returns `nil`.
  """
  @callback send(Account.t(), mail()) :: {:ok, sent()} | {:error, Exception.t()}

  @doc "Stores a draft."
  @callback draft(Account.t(), mail()) :: {:ok, %{id: String.t()}} | {:error, Exception.t()}

  @doc """
  Adds and removes labels of messages. Adding a label that does not exist creates it only with
  `:create`. To remove one that a message does not have is no error.
  """
  @callback label(Account.t(), ids :: [String.t()], %{
              add: [String.t()],
              remove: [String.t()],
              create: boolean()
            }) :: :ok | {:error, Exception.t()}

  @doc "Takes messages out of the inbox. Their ids stay valid."
  @callback archive(Account.t(), ids :: [String.t()]) :: :ok | {:error, Exception.t()}

  @doc "Returns an attachment, by the `:part` of `t:message/0`."
  @callback attachment(Account.t(), id :: String.t(), part :: String.t()) ::
              {:ok, file()} | {:error, Exception.t()}

  @doc "Returns the account's own address, the sender of its mails."
  @callback address(Account.t()) :: {:ok, String.t()} | {:error, Exception.t()}

  @doc "Whether the service sends to addresses with letters outside ASCII before the `@`."
  @callback utf8?(Account.t()) :: {:ok, boolean()} | {:error, Exception.t()}

  @doc "The most bytes that the attachments of a mail may have together."
  @callback max_attachments(Account.t()) :: pos_integer()

  @doc false
  @spec search(Account.t(), query()) ::
          {:ok, %{messages: [summary()], more: boolean()}} | {:error, Exception.t()}
  def search(account, query), do: adapter(account).search(account, query)

  @doc false
  @spec get(Account.t(), String.t()) :: {:ok, summary()} | {:error, Exception.t()}
  def get(account, id), do: adapter(account).get(account, id)

  @doc false
  @spec read(Account.t(), String.t()) :: {:ok, [message()]} | {:error, Exception.t()}
  def read(account, id), do: adapter(account).read(account, id)

  @doc false
  @spec send(Account.t(), mail()) :: {:ok, sent()} | {:error, Exception.t()}
  def send(account, mail),
    do: with(:ok <- check_recipients(mail), do: adapter(account).send(account, mail))

  @doc false
  @spec draft(Account.t(), mail()) :: {:ok, %{id: String.t()}} | {:error, Exception.t()}
  def draft(account, mail),
    do: with(:ok <- check_recipients(mail), do: adapter(account).draft(account, mail))

  @doc false
  @spec label(Account.t(), [String.t()], map()) :: :ok | {:error, Exception.t()}
  def label(account, ids, changes), do: adapter(account).label(account, ids, changes)

  @doc false
  @spec archive(Account.t(), [String.t()]) :: :ok | {:error, Exception.t()}
  def archive(account, ids), do: adapter(account).archive(account, ids)

  @doc false
  @spec attachment(Account.t(), String.t(), String.t()) ::
          {:ok, file()} | {:error, Exception.t()}
  def attachment(account, id, part), do: adapter(account).attachment(account, id, part)

  @doc false
  @spec address(Account.t()) :: {:ok, String.t()} | {:error, Exception.t()}
  def address(account), do: adapter(account).address(account)

  @doc false
  @spec utf8?(Account.t()) :: {:ok, boolean()} | {:error, Exception.t()}
  def utf8?(account), do: adapter(account).utf8?(account)

  @doc false
  @spec max_attachments(Account.t()) :: pos_integer()
  def max_attachments(account), do: adapter(account).max_attachments(account)

  defp check_recipients(mail) do
    case length(mail.to) + length(mail.cc) + length(mail.bcc) do
      size when size > @max_recipients ->
        {:error, %MailError{kind: :recipients, size: size, limit: @max_recipients}}

      _ ->
        :ok
    end
  end

  defp adapter(account), do: Keyword.fetch!(account.vendor.services(account.options), :mail)
end
