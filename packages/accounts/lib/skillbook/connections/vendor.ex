defmodule Skillbook.Connections.Vendor do
  @moduledoc """
  A vendor of accounts: the options of an account, how it signs in, and the scopes of commands.

  An account of a book's `:connections` names its vendor by `:vendor`: `:google`, `:microsoft`,
  `:hubspot`, `:imap`, `:caldav`, or a module with this behaviour.

      defmodule MyApp.Vendor do
        @behaviour Skillbook.Connections.Vendor

        def schema, do: [token: {:secret, :required}]
        def auth(_options), do: {:secret, :token}
        def services(_options), do: [mail: MyApp.Mail]
        def commands, do: %{}
      end
  """

  alias Skillbook.Connections.{CalDAV, Google, HubSpot, IMAP, Microsoft}

  @typedoc "A service that commands use, and the field `connection` of their pages."
  @type service :: :mail | :calendar | :drive | :hubspot

  @typedoc """
  An option of an account.

    * `{:secret, :required | :optional}` - a secret: `{:env, name}`, or a function of no argument
      or of the profile's id, which returns a text
    * `{:secret_or_text, …}` - a value that need not be secret, such as the id of a client
    * `{expected, check, …}` - another value
  """
  @type option ::
          {:secret | :secret_or_text, :required | :optional}
          | {String.t(), (term() -> boolean()), :required | :optional}

  @typedoc """
  The sign-in of an account.

    * `{:secret, option}` - the secret in this option is sent as it is
    * `:oauth` - people sign in by OAuth 2
    * `:service_account` - the key in the option `:service_account` signs requests for tokens
  """
  @type auth :: {:secret, atom()} | :oauth | :service_account

  @typedoc """
  The addresses of OAuth 2, and parameters that the vendor needs in addition.

    * `:authorize`, `:token` - the endpoints of RFC 6749
    * `:revoke` - the endpoint of RFC 7009, or `nil`
    * `:userinfo` - the endpoint of OpenID Connect for the person's address, or `nil`
    * `:identity_scopes` - the scopes that it needs
    * `:parameters` - of the authorization request
    * `:consent` - more of them, if no refresh token is kept yet
    * `:claims` - claims of the id token that hold the person's address, in order. Without them,
      the claim `email` of OpenID Connect counts, if the vendor says that it is verified
    * `:scope_prefix` - the beginning of a scope's full name, if answers may have it
  """
  @type oauth :: %{
          required(:authorize) => String.t(),
          required(:token) => String.t(),
          required(:revoke) => String.t() | nil,
          required(:userinfo) => String.t() | nil,
          required(:identity_scopes) => [String.t()],
          required(:parameters) => [{String.t(), String.t()}],
          required(:consent) => [{String.t(), String.t()}],
          optional(:claims) => [String.t()],
          optional(:scope_prefix) => String.t()
        }

  @doc "The options of an account, besides those that all accounts have."
  @callback schema() :: keyword(option())

  @doc "How an account with these options signs in."
  @callback auth(options :: map()) :: auth()

  @doc "The services of an account with these options, each with the module that implements it."
  @callback services(options :: map()) :: keyword(module())

  @doc """
  The scopes of each command. Any one of them suffices; the first is the least. One with blanks in
  it is several scopes, all of which are needed. Commands without scopes are not listed.
  """
  @callback commands() :: %{String.t() => [String.t(), ...]}

  @doc """
  The endpoints of OAuth 2 for an account with these options, for vendors with the sign-in
  `:oauth` or `:service_account`.
  """
  @callback oauth(options :: map()) :: oauth()

  @doc """
  The module with the rules of the vendor's interface: its failures, quotas and pages. Without it,
  those of HTTP apply.
  """
  @callback rules() :: module()

  @optional_callbacks oauth: 1, rules: 0

  @known [
    google: Google,
    microsoft: Microsoft,
    hubspot: HubSpot,
    imap: IMAP,
    caldav: CalDAV
  ]

  @services ~w(mail calendar drive hubspot)a

  # The services whose commands the name of a vendor means in the option `:builtins` of a book.
  @packs %{
    "google" => ~w(mail calendar drive)a,
    "microsoft" => ~w(mail calendar drive)a,
    "hubspot" => [:hubspot]
  }

  @doc false
  @spec services() :: [service()]
  def services, do: @services

  @doc false
  # The domain of a service's commands.
  @spec domain(service()) :: String.t()
  def domain(:mail), do: "email"
  def domain(service), do: Atom.to_string(service)

  @doc false
  # The domains that the name of a vendor means in the option `:builtins`.
  @spec packs() :: %{String.t() => [String.t()]}
  def packs,
    do: Map.new(@packs, fn {name, services} -> {name, Enum.map(services, &domain/1)} end)

  @doc false
  # The module of a vendor's name, or a module of the application.
  @spec fetch(term()) :: {:ok, module()} | :error
  def fetch(name) when is_atom(name) do
    with :error <- Keyword.fetch(@known, name) do
      if Code.ensure_loaded?(name) and function_exported?(name, :schema, 0),
        do: {:ok, name},
        else: :error
    end
  end

  def fetch(_other), do: :error

  @doc false
  # The names of the vendors that are built in.
  @spec names() :: [atom()]
  def names, do: Keyword.keys(@known)

  @doc false
  @spec expected() :: String.t()
  def expected do
    names = Enum.map_join(@known, ", ", fn {name, _module} -> inspect(name) end)
    "#{names} or a module of Skillbook.Connections.Vendor"
  end

  @doc false
  # The service of a command, by its domain.
  @spec service(String.t()) :: service() | nil
  def service("email." <> _action), do: :mail
  def service("calendar." <> _action), do: :calendar
  def service("drive." <> _action), do: :drive
  def service("hubspot." <> _action), do: :hubspot
  def service(_command), do: nil

  @doc false
  # The scopes of a command for a vendor, or of the vendor's table.
  @spec scopes(module(), String.t()) :: [String.t()]
  def scopes(vendor, command), do: Map.get(vendor.commands(), command, [])

  @doc false
  # The fewest scopes for all of these commands: the least of each, without those whose commands
  # are covered by another one.
  @spec least(module(), [String.t()]) :: [String.t()]
  def least(vendor, commands) do
    table = for command <- commands, [_ | _] = any <- [scopes(vendor, command)], do: any
    first = table |> Enum.flat_map(&String.split(hd(&1))) |> Enum.uniq()

    Enum.reduce(first, first, fn scope, kept ->
      others = List.delete(kept, scope)
      if Enum.all?(table, &granted?(&1, others)), do: others, else: kept
    end)
    |> Enum.sort()
  end

  @doc false
  # Whether one of a command's scopes is granted.
  @spec granted?([String.t()], [String.t()]) :: boolean()
  def granted?(any, granted),
    do: Enum.any?(any, fn scope -> Enum.all?(String.split(scope), &(&1 in granted)) end)
end
