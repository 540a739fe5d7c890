defmodule Skillbook.ConnectionError do
  @moduledoc """
  Returned when an account cannot be used, or cannot be connected.

  The message tells a model or a person the command that mends it. It has no secret.

  ## Fields

    * `:kind` - the kind of failure:
      * `:none` - the profile has no connection for this service
      * `:scope` - the connection lacks a scope that the command needs
      * `:revoked` - the person or the vendor has withdrawn the connection
      * `:secret` - a secret of the account cannot be read
      * `:key` - the key that encrypts tokens is missing, or another one
      * `:refused` - the vendor's sign-in refused the request
      * `:unavailable` - the vendor's sign-in failed or did not answer; worth another try
      * `:timeout` - the call had no time left
      * `:store` - the book has no database, or it failed
      * `:account` - the book has no account of this name
      * `:sign_in` - the account has no sign-in for people, and needs none
      * `:profile` - the profile may not use this account
      * `:state` - the answer of a sign-in that was not begun here, is used, or expired
      * `:denied` - the person has not allowed it
      * `:command` - no command of this name needs the account
      * `:discovery` - a server, or its authorization server, does not sign in as MCP demands
    * `:account` - the name of the account, or `nil`
    * `:profile` - the id of the profile, or `nil`
    * `:service` - the service, such as `:mail`, or `nil`
    * `:command` - the name of the command, or `nil`
    * `:scopes` - the scopes that are missing; any one of them suffices
    * `:server` - the address of the MCP server that is the account, or `nil`
    * `:reason` - more about it, or `nil`

  ## Examples

      iex> error = %Skillbook.ConnectionError{
      ...>   kind: :scope,
      ...>   account: :google,
      ...>   profile: "ann",
      ...>   command: "email.send",
      ...>   scopes: ["https://www.googleapis.com/auth/gmail.send"]
      ...> }
      iex> Exception.message(error)
      "the connection google of the profile ann lacks the scope " <>
        "https://www.googleapis.com/auth/gmail.send; a person can grant it with " <>
        "`bin/skillbook connect google --profile ann --for email.send`"
  """

  @type kind ::
          :none
          | :scope
          | :revoked
          | :secret
          | :key
          | :refused
          | :unavailable
          | :timeout
          | :store
          | :account
          | :sign_in
          | :profile
          | :state
          | :denied
          | :command
          | :discovery

  @type t :: %__MODULE__{
          kind: kind(),
          account: atom() | String.t() | nil,
          profile: String.t() | nil,
          service: atom(),
          command: String.t() | nil,
          scopes: [String.t()],
          server: String.t() | nil,
          reason: String.t() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :account, :profile, :service, :command, :server, :reason, scopes: []]

  @doc false
  # An error about an account as a profile uses it.
  @spec new(Skillbook.Connections.Account.t(), kind(), String.t() | nil) :: t()
  def new(account, kind, reason \\ nil) do
    %__MODULE__{
      kind: kind,
      account: account.name,
      profile: account.profile,
      command: account.command,
      server: account.server && place(account.server.url),
      reason: reason
    }
  end

  # A query may have a secret.
  defp place(url), do: to_string(%{URI.parse(url) | query: nil, fragment: nil})

  @impl true
  def message(%{kind: :none, account: nil} = error) do
    "the profile #{name(error.profile)} has no connection for #{error.service}: no account in " <>
      "the book's :connections offers it to this profile; see `bin/skillbook connect --help`"
  end

  def message(%{kind: :none} = error) do
    what = error.service || error.account

    "the profile #{name(error.profile)} has no connection for #{what}; a person can make it " <>
      "with #{connect(error)}"
  end

  def message(%{kind: :scope, scopes: [scope | _]} = error) do
    "#{connection(error)} lacks the scope #{scope}; a person can grant it with " <>
      connect(error)
  end

  def message(%{kind: :revoked} = error),
    do: "#{connection(error)} was withdrawn; a person can renew it with #{connect(error)}"

  def message(%{kind: :secret} = error),
    do: "#{account(error)} cannot be used: #{error.reason}"

  def message(%{kind: :key} = error), do: "#{connection(error)} cannot be read: #{error.reason}"

  def message(%{kind: :refused} = error),
    do: "the sign-in of #{account(error)} refused the request: #{error.reason}"

  def message(%{kind: :unavailable} = error),
    do: "the sign-in of #{account(error)} does not work at the moment: #{error.reason}"

  def message(%{kind: :timeout} = error),
    do: "#{connection(error)} had no token in time; try again"

  def message(%{kind: :store, reason: nil} = error) do
    "#{account(error)} needs a book with a database, which keeps its tokens; set the option " <>
      "`store`, for example store: \"skillbook.db\""
  end

  def message(%{kind: :store} = error),
    do: "the database of #{connection(error)} failed: #{error.reason}"

  def message(%{kind: :account, reason: nil}),
    do: "the book has no accounts; its option :connections, or `bin/skillbook connect`, adds them"

  def message(%{kind: :account} = error) do
    "expected the name of an account of the book's :connections#{of(error.reason)}, " <>
      "got: #{name(error.account)}"
  end

  def message(%{kind: :sign_in} = error),
    do: "#{account(error)} has its secret in the book's :connections; nobody signs in to it"

  def message(%{kind: :profile} = error),
    do: "the profile #{name(error.profile)} may not use #{account(error)}"

  def message(%{kind: :state} = error) do
    "expected the answer to a sign-in that was begun in the last 10 minutes, and the first " <>
      "one#{of(error.reason)}; begin again"
  end

  def message(%{kind: :denied} = error),
    do: "#{connection(error)} was not made: #{error.reason}"

  def message(%{kind: :command, command: nil} = error) do
    "the profile #{name(error.profile)} has no command that uses #{account(error)}; name the " <>
      "commands that the connection is for"
  end

  def message(%{kind: :command} = error) do
    "expected a command that uses #{account(error)}#{of(error.reason)}, " <>
      "got: #{name(error.command)}"
  end

  def message(%{kind: :discovery} = error),
    do: "the sign-in of #{account(error)} cannot be used: #{error.reason}"

  defp of(nil), do: ""
  defp of(more), do: " (#{more})"

  defp account(%{account: nil}), do: "a connection"
  defp account(%{server: url} = error) when url != nil, do: "the MCP server #{error.account}"
  defp account(error), do: "the account #{error.account}"

  defp connection(%{account: nil}), do: "the book's connections"

  defp connection(error),
    do: "the connection #{error.account} of the profile #{name(error.profile)}"

  # The id of a profile is a text of the application, or of its users.
  defp name(name) when is_binary(name), do: if(plain?(name), do: name, else: inspect(name))
  defp name(name), do: to_string(name)

  @doc false
  # The command line with which a person connects an account, as a model may pass it on.
  @spec connect(map()) :: String.t()
  def connect(error) do
    profile =
      if error.profile in [nil, "default"], do: "", else: " --profile #{word(error.profile)}"

    command = if error.command, do: " --for #{error.command}", else: ""
    {server, scopes} = at_server(error)
    "`bin/skillbook #{server}connect #{error.account}#{profile}#{command}#{scopes}`"
  end

  defp at_server(%{server: url} = error) when url != nil do
    scopes = for scope <- error.scopes, into: "", do: " --scope #{word(scope)}"
    {"--mcp #{word("#{error.account}=#{url}")} ", scopes}
  end

  defp at_server(_error), do: {"", ""}

  # A word of a shell's command line.
  defp word(text),
    do: if(plain?(text), do: text, else: "'" <> String.replace(text, "'", "'\\''") <> "'")

  defp plain?(text), do: text =~ ~r/\A[\w.@:+-]+\z/
end
