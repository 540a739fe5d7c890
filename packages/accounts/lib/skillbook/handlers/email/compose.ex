defmodule Skillbook.Handlers.Email.Compose do
  @moduledoc false
  # The mail that `email.send` and `email.draft` describe by the same flags.

  alias Skillbook.Connections.Account
  alias Skillbook.Handlers.Email.{Attachments, Show}
  alias Skillbook.Support.{Hidden, JSON, UntilError}
  alias Skillbook.Mail.Address

  alias Skillbook.{
    Command,
    Connections,
    Context,
    FlagError,
    Flags,
    Mail,
    MailError,
    NotFoundError
  }

  @addresses ~w(to cc bcc)
  # Flags that `email.send` takes, in the order of its page.
  @sent ~w(to cc bcc subject body attachments reply-to draft)

  @doc "Returns the mail, with its reply and its attachments looked up."
  @spec mail(Account.t(), Flags.t(), Context.t()) :: {:ok, Mail.mail()} | {:error, Exception.t()}
  def mail(account, flags, context) do
    with :ok <- check_all(flags),
         {:ok, reply} <- reply(account, flags["reply-to"]),
         {:ok, flags} <- cast_addresses(account, flags),
         {:ok, to, cc} <- recipients(account, flags, reply),
         {:ok, subject} <- subject(flags, reply),
         {:ok, files} <- Attachments.fetch(account, flags["attachments"] || [], context) do
      {:ok,
       %{
         to: to,
         cc: cc,
         bcc: without(flags["bcc"] || [], to ++ cc),
         subject: subject,
         text: flags["body"],
         attachments: files,
         reply: reply,
         draft: flags["draft"],
         message_id: message_id(account),
         date: context.now
       }}
    end
  end

  @doc "Returns a mail that sends another one on, with its attachments."
  @spec forward(Account.t(), Flags.t(), Context.t()) ::
          {:ok, Mail.mail()} | {:error, Exception.t()}
  def forward(account, %{"id" => id} = flags, context) do
    with {:ok, flags} <- cast_addresses(account, flags),
         {:ok, to, cc} <- recipients(account, flags, nil),
         {:ok, messages} <- Mail.read(account, id),
         %{} = message <- Enum.find(messages, &(&1.id == id)) || missing(id),
         {:ok, files} <- Attachments.of_mail(account, message) do
      {:ok,
       %{
         to: to,
         cc: cc,
         bcc: without(flags["bcc"] || [], to ++ cc),
         subject: "Fwd: " <> subject_of(message, ~r/\A(fwd?:\s*)+/i),
         text: flags["body"] || "",
         forwarded: Show.forwarded(message),
         attachments: files,
         reply: nil,
         draft: nil,
         message_id: message_id(account),
         date: context.now
       }}
    end
  end

  defp missing(id),
    do: {:error, %NotFoundError{kind: "mail", id: id, find: "email.search"}}

  @doc "Checks the recipients of a mail as far as no other mails are needed."
  @spec check_recipients(Flags.t(), Context.t()) :: :ok | {:error, Exception.t()}
  def check_recipients(flags, context) do
    with {:ok, cast} <- cast_all(flags, &(&1 != "me")), do: international(cast, context)
  end

  @doc """
  Checks the flags of a mail as far as no other mails are needed. The server is asked only for an
  address that not every server takes.
  """
  @spec check(Flags.t(), Context.t()) :: :ok | {:error, Exception.t()}
  def check(flags, context) do
    with :ok <- check_all(flags),
         :ok <- check_recipients(flags, context),
         {:ok, _subject} <- if(flags["reply-to"], do: {:ok, ""}, else: subject(flags, nil)),
         do: :ok
  end

  defp check_all(%{"all" => true} = flags), do: Flags.require(flags, ["reply-to"])
  defp check_all(_flags), do: :ok

  defp reply(_account, nil), do: {:ok, nil}
  defp reply(account, id), do: Mail.get(account, id)

  # "me" is the account's own address, which is looked up only then.
  defp cast_addresses(account, flags) do
    values = Enum.flat_map(@addresses, &List.wrap(flags[&1]))

    with {:ok, own} <- if("me" in values, do: Mail.address(account), else: {:ok, nil}) do
      flags
      |> Map.new(fn {name, value} ->
        {name, if(name in @addresses, do: own(value, own), else: value)}
      end)
      |> cast_all(fn _address -> true end)
    end
  end

  defp own(values, own),
    do: for(value <- List.wrap(values), do: if(value == "me", do: own, else: value))

  # Casts those of the addresses that are wanted.
  defp cast_all(flags, wanted?) do
    UntilError.reduce(@addresses, flags, fn name, flags ->
      case flags[name] |> List.wrap() |> Enum.filter(wanted?) do
        [] -> {:ok, flags}
        values -> cast(flags, name, values)
      end
    end)
  end

  # A name may stand before its address in words of its own.
  defp cast(flags, name, values) do
    text = Enum.map_join(values, &if(&1 =~ "@", do: &1 <> ", ", else: &1 <> " "))

    case Address.list(text) do
      {:ok, mailboxes} ->
        {:ok, Map.put(flags, name, mailboxes |> Enum.map(&Address.text/1) |> Enum.uniq())}

      :error ->
        with {:ok, _} <- flags |> Map.put(name, values) |> Flags.cast_emails(name),
             do: FlagError.invalid(name, hd(values), "e-mail addresses", "bob@example.com")
    end
  end

  # Letters outside ASCII before the @ need a server with SMTPUTF8 (RFC 6531).
  defp international(flags, context) do
    texts = for name <- @addresses, text <- flags[name] || [], text != "me", do: text

    case for text <- texts,
             %{address: one} = Address.mailbox(text),
             Address.international?(one),
             do: one do
      [] ->
        :ok

      addresses ->
        with {:ok, account} <- Connections.account(context, :mail),
             {:ok, false} <- Mail.utf8?(account),
             do: {:error, %MailError{kind: :international, addresses: addresses}},
             else:
               (
                 {:ok, true} -> :ok
                 error -> error
               )
    end
  end

  # Only drafts take recipients from the mail that they answer: the page of `email.send` requires
  # `--to`, so that an approval shows everybody who gets the mail.
  defp recipients(_account, flags, nil) do
    with :ok <- Flags.require(flags, ["to"]), do: {:ok, flags["to"], flags["cc"] || []}
  end

  defp recipients(account, flags, reply) do
    with {:ok, to} <- answered(flags["to"], reply),
         {:ok, others} <- others(account, flags["all"], reply),
         do: {:ok, to, without((flags["cc"] || []) ++ others, to)}
  end

  # By their addresses, each once.
  defp without(texts, others) do
    address = &Address.mailbox(&1).address
    known = MapSet.new(others, address)
    texts |> Enum.uniq_by(address) |> Enum.reject(&(address.(&1) in known))
  end

  defp answered([_ | _] = to, _reply), do: {:ok, to}

  # A mail can ask that answers go to somebody else than its sender. That is not followed unseen.
  defp answered(_none, %{from: from, reply_to: reply_to} = reply) do
    cond do
      from == nil or not address?(from.address) ->
        {:error, %MailError{kind: :address, id: reply.id}}

      other = Enum.find(reply_to, &(not same?(&1, from))) ->
        {:error, reply_to_error(reply, from, other)}

      true ->
        {:ok, [from.address]}
    end
  end

  # An address of a stranger that is none could look like another one, or like words of ours.
  defp address?(text), do: Address.valid?(text)

  defp same?(%{address: a}, %{address: b}), do: String.downcase(a) == String.downcase(b)

  defp reply_to_error(reply, from, other) do
    %MailError{kind: :reply_to, id: reply.id, addresses: [from.address, other.address]}
  end

  defp others(_account, switch, _reply) when switch != true, do: {:ok, []}

  defp others(account, true, reply) do
    with {:ok, own} <- Mail.address(account) do
      {:ok,
       for(
         %{address: address} <- reply.to ++ reply.cc,
         address?(address) and String.downcase(address) != String.downcase(own),
         do: address
       )}
    end
  end

  defp subject(%{"subject" => subject}, _reply), do: {:ok, subject}
  defp subject(flags, nil), do: with(:ok <- Flags.require(flags, ["subject"]), do: {:ok, ""})

  defp subject(_flags, reply), do: {:ok, "Re: " <> subject_of(reply, ~r/\A(re:\s*)+/i)}

  # On one line, without its first words.
  defp subject_of(message, first) do
    message.subject
    |> String.replace(~r/[\p{Cc}\p{Zl}\p{Zp}\s]+/u, " ")
    |> String.trim()
    |> String.replace(first, "")
  end

  # Unique, and unlike one that anybody else could guess.
  defp message_id(account) do
    domain =
      with address when is_binary(address) <- account.identity,
           [_, domain] <- String.split(address, "@"),
           true <- domain =~ ~r/\A[A-Za-z0-9.-]+\z/,
           do: domain,
           else: (_ -> "mail.invalid")

    Base.encode32(:crypto.strong_rand_bytes(20), case: :lower, padding: false) <> "@" <> domain
  end

  @doc """
  The line of `email.send` that sends this mail in place of the draft.

  Results of commands show hidden characters by their codes. A mail with such characters has a
  line in JSON, whose escapes stand for them.
  """
  @spec line(Mail.mail(), Flags.t()) :: String.t()
  def line(mail, flags) do
    given = %{
      "to" => mail.to,
      "cc" => mail.cc,
      "bcc" => mail.bcc,
      "subject" => mail.subject,
      "body" => mail.text,
      "attachments" => flags["attachments"] || [],
      "reply-to" => flags["reply-to"],
      "draft" => mail.draft
    }

    flags = for name <- @sent, given[name] not in [nil, []], into: %{}, do: {name, given[name]}
    line = Command.line(%Command{name: "email.send", raw: "", args: [], flags: flags})

    if Hidden.any?(line),
      do: "email.send " <> (flags |> JSON.encode() |> Hidden.json()),
      else: line
  end
end
