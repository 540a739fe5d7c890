defmodule Skillbook.Mail.IMAP.Search do
  @moduledoc false
  # Searches of a mailbox and of conversations, in all folders that may have the messages. The
  # server compares texts; times are compared here, since it knows days only.

  alias Skillbook.Mail.IMAP.{Folders, Labels, Messages, Session}

  # The references of a message by which its thread is searched.
  @max_references 10
  # The messages of a thread in a folder, the last ones; more than a conversation shows.
  @max_related 200

  @roles ~w(inbox sent drafts spam trash)a

  @doc "The messages for a query of `Skillbook.Mail`."
  @spec run(Session.t(), [Folders.folder()], map()) :: %{messages: [map()], more: boolean()}
  def run(session, folders, query) do
    keys = keys(query)

    {found, known} =
      folders
      |> targets(query.label)
      |> Enum.flat_map_reduce(not keyword?(folders, query.label), fn target, known ->
        {folder, more, keyword} = target
        selected = Session.call(session, {:select, folder.raw, true})

        # Dovecot takes a keyword for known once it was searched for.
        if keyword == nil or Labels.has_keyword?(selected, keyword),
          do: {find(session, folder, selected, keys ++ more, query), true},
          else: {[], known}
      end)

    if not known, do: Session.fail(Labels.missing(query.label, folders))

    {candidates, rest} = found |> Enum.sort_by(&order/1, :desc) |> Enum.split(candidates(query))
    different = session |> Messages.with_ids(candidates) |> Enum.uniq_by(&elem(&1, 1).id)
    {shown, more} = Enum.split(different, query.limit)
    %{messages: Messages.summaries(session, shown), more: more != [] or rest != []}
  end

  # The folders to search, each with further conditions, and the keyword that one must have.
  defp targets(folders, nil), do: for(folder <- mine(folders), do: {folder, [], nil})

  defp targets(folders, label) do
    word = String.downcase(label)
    role = Enum.find(@roles, &(Atom.to_string(&1) == word))

    cond do
      role -> for %{role: ^role} = folder <- folders, do: {folder, [], nil}
      word == "unread" -> for folder <- mine(folders), do: {folder, [:unseen], nil}
      word == "starred" -> for folder <- mine(folders), do: {folder, [:flagged], nil}
      word == "important" -> with_keyword(folders, "$Important")
      folder = Folders.by_name(folders, label) -> [{folder, [], nil}]
      true -> with_keyword(folders, Labels.keyword(label))
    end
  end

  defp with_keyword(folders, keyword),
    do: for(folder <- mine(folders), do: {folder, [{:keyword, keyword}], keyword})

  # Whether the label is neither a word that every service knows nor a folder.
  defp keyword?(_folders, nil), do: false

  defp keyword?(folders, label) do
    words = Enum.map(@roles, &Atom.to_string/1) ++ ~w(unread starred important)
    String.downcase(label) not in words and Folders.by_name(folders, label) == nil
  end

  # Without spam and deleted mails. A folder of all mails has the others, too.
  defp mine(folders) do
    case Folders.find(folders, :all) do
      nil -> Enum.reject(folders, &(&1.role in [:spam, :trash]))
      all -> [all]
    end
  end

  defp keys(query) do
    text =
      for {how, text} <- query.text,
          do: if(how == :with, do: {:text, text}, else: {:not, [{:text, text}]})

    fields =
      for {name, value} <- [from: query.from, subject: query.subject], value != nil do
        {name, value}
      end

    to = if query.to, do: [{:any, for(name <- [:to, :cc, :bcc], do: {name, query.to})}], else: []
    read = %{true => [:unseen], false => [:seen], nil => []}
    # The days of servers are those of their own time zones.
    from = if query.after, do: [day(:since, query.after, -1)], else: []
    until = if query.before, do: [day(:before, query.before, 2)], else: []
    [:undeleted] ++ from ++ until ++ read[query.unread] ++ fields ++ to ++ text
  end

  defp day(name, time, days), do: Messages.day(name, DateTime.to_date(time), days)

  defp find(_session, _folder, %{messages: 0}, _keys, _query), do: []

  defp find(session, folder, _selected, keys, query) do
    found =
      for message <- latest(session, keys), within?(message.date, query), do: {folder, message}

    # One more says that there are more. A server may have thousands of folders.
    last(found, candidates(query) + 1)
  end

  # A message may be in two folders, so of twice as many the first different ones are taken.
  defp candidates(query), do: 2 * query.limit + 1

  defp last(found, count), do: found |> Enum.sort_by(&order/1, :desc) |> Enum.take(count)

  defp order({_folder, message}), do: {message.date, message.uid}

  defp latest(session, keys) do
    case Session.call(session, {:search, keys}) do
      [] -> []
      uids -> Session.call(session, {:fetch, uids, [], nil})
    end
  end

  defp within?(date, query) do
    (query.after == nil or date >= DateTime.to_unix(query.after)) and
      (query.before == nil or date < DateTime.to_unix(query.before))
  end

  @doc """
  The messages that name this one or one that it names, in all folders but spam, trash and drafts.
  Servers group messages of one folder only, and the answers are in another one.
  """
  @spec related(Session.t(), [Folders.folder()], Messages.found(), map()) :: [Messages.found()]
  def related(session, folders, {home, _} = asked, summary) do
    references = Enum.take(summary.references, @max_references)
    named = [summary.message_id | references] |> Enum.reject(&is_nil/1) |> Enum.uniq()
    headers = ["Message-ID", "References", "In-Reply-To"]
    any = for id <- named, header <- headers, do: {:header, header, id}

    others =
      for folder <- folders,
          any != [],
          folder.role not in [:spam, :trash, :drafts] or folder == home,
          {:ok, %{messages: count}} when count > 0 <-
            [Session.ask(session, {:select, folder.raw, true})],
          messages = latest(session, [:undeleted, :undraft, {:any, any}]),
          message <- last(Enum.map(messages, &{folder, &1}), @max_related),
          do: message

    session
    |> Messages.with_ids(others)
    |> Enum.reject(fn {_, message} -> message.id == elem(asked, 1).id end)
    |> Enum.uniq_by(fn {_, message} -> message.id end)
  end
end
