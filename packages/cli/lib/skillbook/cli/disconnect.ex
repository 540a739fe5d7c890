defmodule Skillbook.CLI.Disconnect do
  @moduledoc false
  # `skillbook disconnect`: ends a connection.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Accounts, Session, Terminal}
  alias Skillbook.Connections

  @impl true
  def switches, do: []

  @impl true
  def args([account]), do: {:ok, [account]}
  def args([]), do: {:error, "`disconnect` needs an ACCOUNT; `connections` lists them"}
  def args([_, more | _]), do: {:error, "`disconnect` takes one ACCOUNT, got also: #{more}"}

  @impl true
  def summary, do: "end a connection, and delete its tokens"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] disconnect ACCOUNT

    Revokes the tokens of the profile of --profile at the vendor, and deletes them. They are
    deleted even if the vendor does not answer; then withdraw the access in the settings of your
    account.

    #{Accounts.help()}

    Exit status: 1 if there is no connection, or the vendor did not revoke it.

    Examples:
      skillbook disconnect google
      skillbook --profile ann disconnect google
    """
  end

  @impl true
  def run(%{args: [account]} = options) do
    with :ok <- Accounts.check(account),
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
