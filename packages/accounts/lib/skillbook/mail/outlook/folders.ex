defmodule Skillbook.Mail.Outlook.Folders do
  @moduledoc false
  # The folders of a mailbox: those that every mailbox has, by their names in the interface, and
  # those of the user, by the names that the user sees.

  alias Skillbook.Connections.{Account, Graph}

  # The word of a label, and Microsoft's name. Every mailbox has these, but for the archive.
  @known [
    {"inbox", "inbox"},
    {"sent", "sentitems"},
    {"drafts", "drafts"},
    {"spam", "junkemail"},
    {"trash", "deleteditems"},
    {"archive", "archive"}
  ]
  @names Map.new(@known)

  @max 2_000

  @doc "Microsoft's name of a folder by its word, or `nil`."
  @spec known(String.t()) :: String.t() | nil
  def known(word), do: @names[word]

  @doc "The words of the known folders by their ids."
  @spec words(Account.t(), [String.t()], [{String.t(), String.t()}]) ::
          {:ok, %{String.t() => String.t()}} | {:error, Exception.t()}
  def words(account, scopes, headers) do
    parts = for {_word, name} <- @known, do: {"/me/mailFolders/#{name}", [], ["$select": "id"]}

    with {:ok, found} <- Graph.objects(account, parts, scopes: scopes, headers: headers) do
      {:ok,
       for(
         {{word, _name}, %{"id" => id}} when is_binary(id) <- Enum.zip(@known, found),
         into: %{},
         do: {id, word}
       )}
    end
  end

  @doc "All folders, each with its id and name."
  @spec list(Account.t(), [String.t()], [{String.t(), String.t()}]) ::
          {:ok, [%{id: String.t(), name: String.t()}]} | {:error, Exception.t()}
  def list(account, scopes, headers) do
    # The only request that also lists folders within others.
    options = [query: ["$select": "displayName"], headers: headers, scopes: scopes, limit: @max]

    with {:ok, %{items: items}} <- Graph.list(account, "/me/mailFolders/delta()", [], options) do
      {:ok,
       for(
         %{"id" => id, "displayName" => name} when is_binary(id) and is_binary(name) <- items,
         do: %{id: id, name: name}
       )}
    end
  end
end
