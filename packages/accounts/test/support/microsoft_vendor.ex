defmodule Skillbook.Test.MicrosoftVendor do
  @moduledoc false
  # Microsoft's services with a token of the test server, instead of a sign-in.

  @behaviour Skillbook.Connections.Vendor

  alias Skillbook.Connections.Microsoft
  alias Skillbook.Test.GoogleVendor

  @impl true
  def schema, do: [token: {:secret, :required}]

  @impl true
  def auth(_options), do: {:secret, :token}

  @impl true
  defdelegate services(options), to: Microsoft

  @impl true
  defdelegate commands, to: Microsoft

  @impl true
  defdelegate rules, to: Microsoft

  @doc "The account of a person, with the options of `Skillbook.Test.GoogleVendor.account/3`."
  def account(world, user, options \\ []),
    do: %{GoogleVendor.account(world, user, options) | name: :microsoft, vendor: __MODULE__}
end
