defmodule Skillbook.Mail.IMAP.Messages do
  @moduledoc false
  # Messages of the folders of a mailbox: found by their ids, summarised, and read in pieces.
  #
  # A folder has to be selected before its messages are used, so all work goes folder by folder.

  alias Skillbook.Mail.IMAP.{Folders, Id, Labels, Session}
  alias Skillbook.Mail.MIME
  alias Skillbook.NotFoundError
  alias Skillbook.Support.Number

  @typedoc "A message in a folder: its UID, date, size, flags, and after `with_ids/2` its id."
  @type found :: {Folders.folder(), map()}

  # Bytes: of a piece of a message, of one that is read with others at once, and of one that is
  # read whole. Of larger ones, and when a conversation has more than @max_thread_bytes, only the
  # first piece is read.
  @piece 1024 * 1024
  @small 64 * 1024
  @max_whole 40 * 1024 * 1024
  @max_thread_bytes 64 * 1024 * 1024
  @max_thread 100
  # Messages that are read at once.
  @at_once 50
  # The bytes of a message for its snippet, and the characters of that.
  @beginning 8 * 1024
  @snippet 200

  @headers ~w(From To Cc Reply-To Subject Date Message-ID References In-Reply-To)

  # Ids

  @doc "The messages with these ids; ends the call if one is missing."
  @spec locate(Session.t(), [Folders.folder()], [String.t()]) :: [found()]
  def locate(session, folders, texts) do
    ids =
      for text <- Enum.uniq(texts) do
        case Id.parse(text) do
          {:ok, id} -> id
          :error -> Session.fail(missing(text))
        end
      end

    {found, left} =
      Enum.reduce_while(folders, {[], ids}, fn folder, {found, left} ->
        here = among(session, folder, left)
        gone = for {_, %{id: id}} <- here, do: id
        left = Enum.reject(left, &(&1.text in gone))
        if left == [], do: {:halt, {here ++ found, []}}, else: {:cont, {here ++ found, left}}
      end)

    if left != [], do: Session.fail(missing(hd(left).text))
    found
  end

  @doc "The error of an id without a message."
  @spec missing(String.t()) :: NotFoundError.t()
  def missing(id), do: %NotFoundError{kind: "mail", id: id, find: "email.search"}

  @doc "The messages of a folder with these ids."
  @spec among(Session.t(), Folders.folder(), [Id.t()]) :: [found()]
  def among(session, folder, ids) do
    case Session.ask(session, {:select, folder.raw, true}) do
      {:ok, %{messages: count}} when count > 0 ->
        days = Enum.map(ids, & &1.day)
        sizes = ids |> Enum.map(& &1.size) |> Enum.uniq()

        keys = [
          :undeleted,
          day(:since, Enum.min(days, Date), -1),
          day(:before, Enum.max(days, Date), 2),
          {:any, Enum.map(sizes, &{:size, &1})}
        ]

        texts = Enum.map(ids, & &1.text)

        session
        |> identified(Session.call(session, {:search, keys}))
        |> Enum.filter(&(&1.id in texts))
        |> Enum.uniq_by(& &1.id)
        |> Enum.map(&{folder, &1})

      # It may have been deleted since it was listed.
      _empty ->
        []
    end
  end

  @doc "A day as a condition of a search, moved by so many days."
  @spec day(:since | :before, Date.t(), integer()) :: tuple()
  def day(name, date, days) do
    date = Date.add(date, days)
    {name, date.year, date.month, date.day}
  end

  @doc "The same messages in the same order, with their ids. Those that have gone are left out."
  @spec with_ids(Session.t(), [found()]) :: [found()]
  def with_ids(session, found) do
    known =
      for {folder, uids} <- by_folder(session, found),
          message <- identified(session, uids),
          into: %{},
          do: {{folder.raw, message.uid}, message}

    for {folder, %{uid: uid}} <- found, message = known[{folder.raw, uid}], do: {folder, message}
  end

  # Selects each folder before its UIDs are handed out.
  defp by_folder(session, found) do
    found
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1).uid)
    |> Stream.each(fn {folder, _} -> Session.call(session, {:select, folder.raw, true}) end)
  end

  defp identified(_session, []), do: []

  defp identified(session, uids) do
    for message <- Session.call(session, {:fetch, uids, ["Message-ID"], nil}) do
      id = Id.make(message.date, message.size, parsed(message.headers).message_id)
      Map.put(message, :id, id)
    end
  end

  # Summaries

  @doc "Summaries of messages in the same order. Those that have gone meanwhile are left out."
  @spec summaries(Session.t(), [found()]) :: [map()]
  def summaries(session, found) do
    known =
      for {folder, uids} <- by_folder(session, found),
          summary <- details(session, folder, uids),
          into: %{},
          do: {summary.id, summary}

    for {_, message} <- found, summary = known[message.id], do: summary
  end

  @doc "Summaries of messages of the selected folder."
  @spec details(Session.t(), Folders.folder(), [pos_integer()]) :: [map()]
  def details(session, folder, uids) do
    for message <- Session.call(session, {:fetch, uids, @headers, {0, @beginning}}),
        do: summary(folder, message, parsed(message.piece))
  end

  # The beginning of a mail may end within its headers, which are therefore read by themselves.
  defp summary(folder, message, beginning) do
    mail = parsed(message.headers)
    references = Enum.uniq(mail.references ++ mail.in_reply_to)

    %{
      id: Id.make(message.date, message.size, mail.message_id),
      thread: Id.thread(List.first(references) || mail.message_id || ""),
      message_id: mail.message_id,
      references: references,
      from: List.first(mail.from),
      reply_to: mail.reply_to,
      to: mail.to,
      cc: mail.cc,
      subject: mail.subject,
      date: DateTime.from_unix!(message.date),
      unread: "\\Seen" not in message.flags,
      labels: Labels.of(folder, message.flags),
      snippet: snippet(beginning.text)
    }
  end

  @no_mail %{
    from: [],
    to: [],
    cc: [],
    bcc: [],
    reply_to: [],
    subject: "",
    date: nil,
    message_id: nil,
    in_reply_to: [],
    references: [],
    text: nil,
    html: nil,
    attachments: [],
    problems: []
  }

  defp parsed(raw) do
    case MIME.parse(raw) do
      {:ok, mail} -> mail
      {:error, error} -> %{@no_mail | problems: [Exception.message(error)]}
    end
  end

  # Plain text only: the beginning of HTML is hardly ever its text.
  defp snippet(nil), do: ""

  defp snippet(text) do
    words = text |> String.slice(0, 4 * @snippet) |> String.split()
    words |> Enum.join(" ") |> String.slice(0, @snippet)
  end

  # Texts

  @doc """
  A message and the latest of the others, oldest first. The others are read whole as long as all
  have no more than @max_thread_bytes together, the latest first.
  """
  @spec read(Session.t(), found(), [found()]) :: [map()]
  def read(session, asked, others) do
    others = others |> Enum.sort_by(&order/1, :desc) |> Enum.take(@max_thread - 1)

    {limited, _left} =
      Enum.map_reduce([asked | others], @max_thread_bytes, fn {folder, message}, left ->
        limit = if message.id == elem(asked, 1).id, do: @max_whole, else: left
        {{folder, Map.put(message, :limit, limit)}, max(left - message.size, 0)}
      end)

    # Times are in seconds, and an answer has more references than its question.
    limited
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Enum.flat_map(fn {folder, messages} -> texts(session, folder, messages) end)
    |> Enum.sort_by(&{DateTime.to_unix(&1.date), length(&1.references)})
  end

  defp order({_, message}), do: {message.date, message.uid}

  defp texts(session, folder, messages) do
    Session.call(session, {:select, folder.raw, true})
    known = Map.new(messages, &{&1.uid, &1})
    {small, large} = Enum.split_with(messages, &(&1.size <= @small))
    alone = Enum.map(large, &[&1])

    for chunk <- Enum.chunk_every(small, @at_once) ++ alone,
        uids = Enum.map(chunk, & &1.uid),
        message <- Session.call(session, {:fetch, uids, @headers, {0, @small}}),
        do: message(session, folder, message, known[message.uid].limit)
  end

  defp message(session, folder, message, limit) do
    {raw, problems} = raw(session, message, limit)
    mail = parsed(raw)

    folder
    |> summary(message, mail)
    |> Map.merge(%{
      body: body(mail),
      attachments: Enum.map(mail.attachments, &listed/1),
      problems: mail.problems ++ problems
    })
  end

  defp body(%{text: nil, html: nil}), do: []
  defp body(%{text: text, html: nil}), do: [{:plain, text}]
  defp body(%{text: nil, html: html}), do: [{:html, html}]
  defp body(%{text: text, html: html}), do: [{:either, text, html}]

  defp listed(attachment) do
    %{
      part: Integer.to_string(attachment.part),
      name: attachment.name || "part-#{attachment.part}",
      type: attachment.type,
      size: attachment.size
    }
  end

  # The bytes of a message, or its beginning with a note. `:piece` has the first ones.
  defp raw(session, %{size: size} = message, limit) when is_integer(size) and is_integer(limit) do
    length = if size <= limit, do: size, else: max(min(@piece, limit), @small)
    first = message.piece
    rest = pieces(session, message.uid, length, byte_size(first), [])
    note = "only the first #{length} of its #{size} bytes were read"
    {IO.iodata_to_binary([first | rest]), if(length < size, do: [note], else: [])}
  end

  defp pieces(_session, _uid, size, place, done) when place >= size, do: Enum.reverse(done)

  defp pieces(session, uid, size, place, done) do
    length = min(@piece, size - place)

    case Session.call(session, {:fetch, [uid], [], {place, length}}) do
      [%{piece: <<_, _::binary>> = piece}] ->
        pieces(session, uid, size, place + byte_size(piece), [piece | done])

      # Some servers are wrong about the size, and the message may have gone.
      _nothing ->
        Enum.reverse(done)
    end
  end

  @doc "An attachment of a message, or the end of the call."
  @spec attachment(Session.t(), found(), String.t()) :: map()
  def attachment(session, {_, %{size: size}}, _part) when size > @max_whole do
    hint =
      "the mail has #{size} bytes, and attachments are read of mails with up to " <>
        "#{@max_whole}; open it in a mail program"

    Session.fail(Session.error(session.account, :too_large, hint: hint))
  end

  def attachment(session, {folder, %{id: id} = message}, part) do
    Session.call(session, {:select, folder.raw, true})
    {raw, _} = raw(session, Map.put(message, :piece, ""), @max_whole)

    with {number, ""} <- Number.integer(part),
         %{} = found <- Enum.find(parsed(raw).attachments, &(&1.part == number)),
         {:ok, data} <- MIME.part(raw, number) do
      file = found |> listed() |> Map.take([:name, :type]) |> Map.put(:data, data)
      if found.charset, do: Map.put(file, :charset, found.charset), else: file
    else
      _none ->
        find = "email.read #{id}"
        Session.fail(%NotFoundError{kind: "attachment", id: "#{id}/#{part}", find: find})
    end
  end
end
