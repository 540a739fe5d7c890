defmodule Skillbook.Mail.IMAP.Labels do
  @moduledoc false
  # Labels in IMAP: the folder of a message, its flags and its keywords.

  alias Skillbook.Mail.IMAP.{Folders, Messages, Session, UTF7}
  alias Skillbook.NotFoundError
  alias Skillbook.Support.External

  @flags %{
    # Adding "unread" takes the flag away.
    "unread" => {:flag, "\\Seen", false},
    "starred" => {:flag, "\\Flagged", true},
    "important" => {:flag, "$Important", true}
  }

  @moves %{"inbox" => :inbox, "spam" => :spam, "trash" => :trash}
  # Only mails that the user wrote are there.
  @own ~w(sent drafts)

  @doc "The labels of a message with these flags in a folder."
  @spec of(Folders.folder(), [String.t()]) :: [String.t()]
  def of(folder, flags) do
    place = if folder.role in [nil, :archive, :all], do: folder.name, else: "#{folder.role}"

    marks =
      for word <- ["starred", "important"], {_, flag, _} = @flags[word], flag in flags, do: word

    # The others with `$` are for programs, such as `$MDNSent`.
    keywords =
      for flag <- flags, not String.starts_with?(flag, ["\\", "$"]), do: UTF7.decode(flag)

    [place] ++ marks ++ keywords
  end

  @doc "The keyword of a label, without blanks and the special characters of commands."
  @spec keyword(String.t()) :: String.t()
  def keyword(label),
    do: label |> String.replace(" ", "_") |> UTF7.encode(&(&1 not in ~c|() {%*"\\]|))

  @doc "Whether a selected folder has messages with this keyword."
  @spec has_keyword?(map(), String.t()) :: boolean()
  def has_keyword?(selected, keyword) do
    keyword = String.downcase(keyword)
    Enum.any?(selected.keywords, &(String.downcase(&1) == keyword))
  end

  @doc "The error of a label that is neither a folder nor a keyword."
  @spec missing(String.t(), [Folders.folder()]) :: NotFoundError.t()
  def missing(label, folders) do
    names = for folder <- folders, do: folder.name
    available = names |> Enum.sort() |> Enum.take(20)
    %NotFoundError{kind: "label", id: label, find: nil, available: available}
  end

  @doc "Adds and removes labels of messages (`c:Skillbook.Mail.label/3`)."
  @spec change(Session.t(), [Folders.folder()], [Messages.found()], map()) :: :ok
  def change(session, folders, found, changes) do
    add = Enum.map(changes.add, &read(session, folders, &1))
    remove = Enum.map(changes.remove, &read(session, folders, &1))

    for {label, {:flag, keyword, true} = change} <- Enum.zip(changes.add, add),
        change not in Map.values(@flags),
        do: check_keyword(session, folders, found, label, keyword, changes.create)

    for {folder, messages} <- Enum.group_by(found, &elem(&1, 0), &elem(&1, 1)) do
      uids = Enum.map(messages, & &1.uid)
      Session.call(session, {:select, folder.raw, false})

      for {:flag, flag, adds} <- add ++ Enum.map(remove, &inverse/1),
          do: Session.call(session, {:store, uids, adds, [flag]})

      case place(session, folders, folder, add, remove) do
        nil -> :ok
        %{raw: raw} when raw == folder.raw -> :ok
        target -> Session.call(session, {:move, uids, target.raw})
      end
    end

    :ok
  end

  # A label to add: a flag, or a folder to move to.
  defp read(session, folders, label) do
    word = String.downcase(label)

    cond do
      flag = @flags[word] ->
        flag

      role = @moves[word] ->
        {:move, role}

      word in @own ->
        hint = "only mails that you wrote are in #{word}; choose another label"
        Session.fail(Session.error(session.account, :invalid, hint: hint))

      folder = Folders.by_name(folders, label) ->
        move(session, folder)

      true ->
        {:flag, keyword(label), true}
    end
  end

  # By another name than `trash`, which callers can tell apart.
  defp move(session, %{role: :trash, name: name}) do
    hint = "#{External.line(name)} is the folder of deleted mails; call it trash"
    Session.fail(Session.error(session.account, :invalid, hint: hint))
  end

  defp move(_session, folder), do: {:move, folder}

  defp inverse({:flag, flag, adds}), do: {:flag, flag, not adds}
  defp inverse(move), do: move

  # The folder that messages of a folder are moved to, or `nil`.
  defp place(session, folders, folder, add, remove) do
    adds = for {:move, place} <- add, do: place
    leaves = for {:move, place} <- remove, do: place

    cond do
      adds != [] -> target(session, folders, List.last(adds))
      folder.role == :inbox and :inbox in leaves -> Folders.ensure(session, folders, :archive)
      folder.role in leaves or folder in leaves -> Folders.find(folders, :inbox)
      true -> nil
    end
  end

  defp target(session, folders, role) when is_atom(role),
    do: Folders.ensure(session, folders, role)

  defp target(_session, _folders, folder), do: folder

  # A keyword exists if a folder has it. A new one needs a server that takes any.
  defp check_keyword(session, folders, found, label, keyword, create?) do
    homes = found |> Enum.map(&elem(&1, 0)) |> Enum.uniq()
    select = &Session.call(session, {:select, &1.raw, false})

    cond do
      Enum.any?(homes ++ (folders -- homes), &has_keyword?(select.(&1), keyword)) -> :ok
      not create? -> Session.fail(missing(label, folders))
      Enum.all?(homes, &select.(&1).any_keyword) -> :ok
      true -> Session.fail(Session.error(session.account, :invalid, hint: no_keywords()))
    end
  end

  defp no_keywords,
    do: "the server stores no labels of one's own; use the name of a folder instead"
end
