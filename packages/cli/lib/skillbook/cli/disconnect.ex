defmodule Skillbook.CLI.Disconnect do
  @moduledoc false
  # `skillbook disconnect`: ends a connection.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Accounts, Servers, Session, Terminal}
  alias Skillbook.Connections

  @impl true
  def switches, do: []

  @impl true
  def args([account]), do: {:ok, [account]}
  def args([]), do: {:error, "`disconnect` needs an ACCOUNT; `connections` lists them"}
  def args([_, more | _]), do: {:error, "`disconnect` takes one ACCOUNT, got also: #{more}"}

  @impl true
  def run(%{args: [account]} = options) do
    with :ok <-
           if(Servers.sign_in?(options.servers, account), do: :ok, else: Accounts.check(account)),
         do: Session.with_book(options, :write, &disconnect(&1, account, options))
  end

  defp disconnect(book, account, options) do
    case Connections.disconnect(book, account, profile: options.profile) do
      {:ok, %{revoked: true}} ->
        Terminal.put(Terminal.line("Disconnected #{account}, for the profile #{options.profile}"))

      {:ok, %{reason: reason}} ->
        {:error,
         [
           "the tokens of #{account} are deleted, but the vendor has not revoked them: ",
           "#{reason}\n",
           "Withdraw the access of this application in the settings of your account."
         ]}

      {:error, error} ->
        {:error, error}
    end
  end
end
