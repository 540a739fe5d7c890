defmodule Skillbook.Handlers.Email.Read do
  @moduledoc false
  # `email.read`: shows a conversation, one message of it, or the text of an attachment.

  @behaviour Skillbook.Handler

  alias Skillbook.{Connections, FlagError, Mail, NotFoundError, Result}
  alias Skillbook.Handlers.Email.Show
  alias Skillbook.Support.{Count, External}

  # Characters of one message. The run cuts a long result too, and `results.read` reads on in it.
  @max 20_000
  @max_one 100_000

  @impl true
  def execute(%{"attachment" => part, "id" => id}, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, file} <- Mail.attachment(account, id, part),
         do: Show.file(file, "the mail #{id}", account)
  end

  def execute(%{"id" => id} = flags, context) do
    with {:ok, account} <- Connections.account(context, :mail),
         {:ok, messages} <- Mail.read(account, id),
         {:ok, shown, text} <- shown(messages, id, flags),
         do: {:ok, Result.ok(text, data: shown, metadata: %{external: true})}
  end

  defp shown(messages, id, flags) do
    if flags["one"] == true or flags["from"] > 1,
      do: one(Enum.find(messages, &(&1.id == id)), id, length(messages), flags),
      else: thread(messages, flags)
  end

  defp thread(messages, flags) do
    limit = flags["limit"]
    shown = Enum.take(messages, -limit)
    count = Count.text(length(messages), "message")

    head =
      if length(shown) == length(messages),
        do: "#{count} in this conversation, oldest first",
        else:
          "The last #{limit} of #{count} in this conversation, oldest first; --limit shows more"

    blocks = for message <- shown, do: message(message, text(message, flags), 1, @max)
    {:ok, shown, Enum.join([head | blocks], "\n\n")}
  end

  defp one(nil, id, _count, _flags),
    do: {:error, %NotFoundError{kind: "mail", id: id, find: "email.search"}}

  defp one(message, _id, count, flags) do
    {text, _notes} = parts = text(message, flags)
    last = max(String.length(text), 1)
    about = if count == 1, do: "", else: "\n(one of #{count} messages of its conversation)"

    if flags["from"] > last do
      expected = "a whole number up to #{last}, the last character of this mail"
      FlagError.invalid("from", flags["from"], expected, "1")
    else
      {:ok, [message], message(message, parts, flags["from"], @max_one) <> about}
    end
  end

  # A message from a character on, with notes about it and its attachments.
  defp message(message, {text, notes}, from, max) do
    {_before, rest} = String.split_at(text, from - 1)
    {shown, left_out} = String.split_at(rest, max)
    state = if message.unread, do: "unread ", else: ""
    labels = if message.labels == [], do: "", else: " [#{Show.labels(message.labels)}]"

    origin =
      "#{state}mail #{message.id} of #{Show.time(message.date)}#{labels} from " <>
        "#{Show.address(message.from)} to #{recipients(message)}, subject " <>
        External.line(message.subject, 250)

    [
      External.block(origin, if(shown == "", do: "(no text)", else: shown), max: max),
      left_out != "" &&
        "(#{String.length(left_out)} more characters: email.read #{message.id} --one --from " <>
          "#{from + max})",
      notes(message, notes),
      attachments(message)
    ]
    |> Enum.filter(& &1)
    |> Enum.join("\n")
  end

  defp text(message, flags),
    do: Show.text(message, quotes: flags["quotes"] == true, html: flags["html"] == true)

  defp recipients(message) do
    to = if message.to == [], do: "nobody", else: Show.addresses(message.to)
    cc = if message.cc == [], do: "", else: ", cc #{Show.addresses(message.cc)}"
    reply_to = message.reply_to -- [message.from]

    answers =
      if reply_to == [], do: "", else: ", which asks for answers to #{Show.addresses(reply_to)}"

    to <> cc <> answers
  end

  defp notes(message, notes) do
    case message.problems ++ notes do
      [] -> nil
      notes -> "(" <> Enum.map_join(notes, "; ", &note/1) <> ")"
    end
  end

  # Problems may repeat words of the mail.
  defp note(text), do: text |> External.line(200) |> String.slice(1..-2//1)

  defp attachments(%{attachments: []}), do: nil

  defp attachments(%{attachments: files, id: id}) do
    {shown, rest} = Enum.split(files, 50)

    lines =
      for file <- shown,
          do:
            "  #{External.line(file.name, 150)}, #{Show.about_file(file)}: " <>
              "email.read #{id} --attachment #{file.part}"

    more = if rest == [], do: [], else: ["  and #{length(rest)} more"]
    Enum.join(["attachments:"] ++ lines ++ more, "\n")
  end
end
