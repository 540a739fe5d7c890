defmodule Skillbook.Mail.IMAP.Folders do
  @moduledoc false
  # The folders of an account: their names as text, and which of them is the archive, the folder
  # of drafts and so on, by the attributes of RFC 6154 or by the usual names.

  alias Skillbook.Mail.IMAP.{Session, UTF7}

  @typedoc """
  `:raw` is the name as the server wrote it, `:name` the same as text. `:role` is what the folder
  is for.
  """
  @type folder :: %{raw: binary(), name: String.t(), role: role() | nil}
  @type role :: :inbox | :archive | :all | :drafts | :sent | :spam | :trash | :important

  @attributes %{
    "\\archive" => :archive,
    "\\all" => :all,
    "\\drafts" => :drafts,
    "\\sent" => :sent,
    "\\junk" => :spam,
    "\\trash" => :trash,
    "\\important" => :important
  }

  # Names that servers and mail programs give to these folders.
  @names %{
    "archive" => :archive,
    "archives" => :archive,
    "drafts" => :drafts,
    "sent" => :sent,
    "sent items" => :sent,
    "sent messages" => :sent,
    "sent mail" => :sent,
    "junk" => :spam,
    "junk e-mail" => :spam,
    "spam" => :spam,
    "trash" => :trash,
    "deleted items" => :trash,
    "deleted messages" => :trash
  }

  # The names of folders that are made when they are first needed.
  @made %{archive: "Archive", drafts: "Drafts", sent: "Sent", spam: "Junk", trash: "Trash"}

  # The inbox first, and those with strangers' mail last.
  @order [:inbox, :sent, :drafts, :archive, nil, :all, :important, :spam, :trash]

  @doc "The folders that have mails."
  @spec list(Session.t()) :: [folder()]
  def list(session) do
    listed =
      for {raw, attributes} <- Session.call(session, :folders),
          attributes = Enum.map(attributes, &String.downcase/1),
          "\\noselect" not in attributes and "\\nonexistent" not in attributes do
        {%{raw: raw, name: UTF7.decode(raw), role: marked(raw, attributes)}, attributes}
      end

    taken = for {%{role: role}, _} <- listed, role != nil, do: role

    listed
    |> Enum.map_reduce(taken, fn {folder, _}, taken -> named(folder, taken) end)
    |> elem(0)
    |> Enum.uniq_by(& &1.raw)
    |> Enum.sort_by(&Enum.find_index(@order, fn role -> role == &1.role end))
  end

  defp marked(raw, attributes) do
    if String.upcase(raw) == "INBOX",
      do: :inbox,
      else: Enum.find_value(attributes, &@attributes[&1])
  end

  # A name counts only if the server marks no folder for it, and for the first such folder.
  defp named(%{role: nil} = folder, taken) do
    role = @names[last(folder.name)]
    if role in [nil | taken], do: {folder, taken}, else: {%{folder | role: role}, [role | taken]}
  end

  defp named(folder, taken), do: {folder, taken}

  # `INBOX.Sent`, `[Gmail]/Sent Mail`
  defp last(name), do: name |> String.downcase() |> String.split(["/", "."]) |> List.last()

  @doc "The folder of a role, or `nil`."
  @spec find([folder()], role()) :: folder() | nil
  def find(folders, role), do: Enum.find(folders, &(&1.role == role))

  @doc "The folder of a role, which is made if there is none."
  @spec ensure(Session.t(), [folder()], role()) :: folder()
  def ensure(session, folders, role) do
    with nil <- find(folders, role) do
      name = beginning(folders) <> @made[role]
      Session.call(session, {:create, name})
      %{raw: name, name: name, role: role}
    end
  end

  # Some servers have all folders below the inbox: `INBOX.Sent`.
  defp beginning(folders) do
    others = for %{raw: raw, role: role} <- folders, role != :inbox, do: raw

    Enum.find(["INBOX.", "INBOX/"], "", fn beginning ->
      others != [] and Enum.all?(others, &String.starts_with?(&1, beginning))
    end)
  end

  @doc "The folder with this name, in any case: the whole name, or the last part of one."
  @spec by_name([folder()], String.t()) :: folder() | nil
  def by_name(folders, name) do
    name = String.downcase(name)

    Enum.find(folders, &(String.downcase(&1.name) == name)) ||
      Enum.find(folders, &(&1.role == nil and last(&1.name) == name))
  end
end
