defmodule Skillbook.Connection do
  @moduledoc """
  A connection of a profile to an account, as `Skillbook.Connections.list/2` returns it.

  ## Fields

    * `:account` - the name of the account, such as `:google`; a text for an MCP server
    * `:vendor` - the module of the vendor
    * `:profile` - the id of the profile; `nil` for an account with a secret of the application
      that is listed without a profile
    * `:tenant` - the tenant that it belongs to, or `nil`
    * `:status` - `:connected`, or `:revoked` if the person or the vendor has withdrawn it
    * `:identity` - the address of the person, or `nil` if it is unknown
    * `:services` - the services that can be used with its scopes
    * `:scopes` - the scopes that were granted
    * `:sign_in` - whether a person signed in; false for a secret of the application
    * `:connected_at`, `:renewed_at` - the times of the sign-in and of the last token, or `nil`

  It has no secret.
  """

  alias Skillbook.Connections.Account

  @type t :: %__MODULE__{
          account: atom() | String.t(),
          vendor: module(),
          profile: String.t() | nil,
          tenant: String.t() | nil,
          status: :connected | :revoked,
          identity: String.t() | nil,
          services: [Skillbook.Connections.Vendor.service()],
          scopes: [String.t()],
          sign_in: boolean(),
          connected_at: DateTime.t() | nil,
          renewed_at: DateTime.t() | nil
        }

  @enforce_keys [:account, :vendor, :profile]
  defstruct [
    :account,
    :vendor,
    :profile,
    :tenant,
    :identity,
    :connected_at,
    :renewed_at,
    status: :connected,
    services: [],
    scopes: [],
    sign_in: false
  ]

  @doc false
  # An account with a secret of the application.
  @spec new(Account.t(), String.t() | nil) :: t()
  def new(%Account{} = account, profile) do
    %__MODULE__{
      account: account.name,
      vendor: account.vendor,
      profile: profile,
      identity: account.identity,
      services: account.services
    }
  end

  @doc false
  # A row of the database.
  @spec new(Account.t(), Skillbook.Connections.Table.row(), [atom()]) :: t()
  def new(%Account{} = account, row, services) do
    %__MODULE__{
      account: account.name,
      vendor: account.vendor,
      profile: row.profile,
      tenant: row.tenant,
      status: row.status,
      identity: row.identity,
      services: services,
      scopes: row.scopes,
      sign_in: true,
      connected_at: row.connected_at,
      renewed_at: row.renewed_at
    }
  end
end
