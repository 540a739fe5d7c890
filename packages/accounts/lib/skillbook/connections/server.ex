defmodule Skillbook.Connections.Server do
  @moduledoc false
  # The vendor of servers at which people sign in, such as MCP servers. Other parts of a book name
  # them (`c:Skillbook.Part.sign_ins/1`). They offer no services, and their endpoints come from
  # `Skillbook.Connections.Discovery`.

  @behaviour Skillbook.Connections.Vendor

  alias Skillbook.Connections.Account
  alias Skillbook.{Book, Part}

  @doc "The accounts of a book's servers."
  @spec accounts(Book.t()) :: [Account.t()]
  def accounts(book),
    do: book.parts |> Part.flat(:sign_ins, [book]) |> Enum.map(&account(book, &1))

  defp account(book, server) do
    %Account{
      book: book.name,
      name: server.name,
      vendor: __MODULE__,
      profiles: if(server.profile == :caller, do: :all, else: [server.profile]),
      options: Map.new(server.options),
      server: server
    }
  end

  @impl true
  def schema, do: []

  @impl true
  def auth(_options), do: :oauth

  @impl true
  def services(_options), do: []

  @impl true
  def commands, do: %{}
end
