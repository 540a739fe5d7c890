defmodule Skillbook.Test.GoogleVendor do
  @moduledoc false
  # Google's services with a token of the test server, instead of a sign-in.

  @behaviour Skillbook.Connections.Vendor

  alias Skillbook.Connections.{Account, Google}

  @impl true
  def schema, do: [token: {:secret, :required}]

  @impl true
  def auth(_options), do: {:secret, :token}

  @impl true
  defdelegate services(options), to: Google

  @impl true
  defdelegate commands, to: Google

  @impl true
  defdelegate rules, to: Google

  @doc """
  The account of a person in a world of `Skillbook.Test.Services`. Options are `:token`, a text,
  `:identity`, and `:time` in milliseconds.
  """
  def account(world, user, options \\ []) do
    token = options[:token] || world.tokens[user]

    %Account{
      book: nil,
      name: :google,
      vendor: __MODULE__,
      # Quotas are kept by profile.
      profile: "#{user} #{world.url}",
      url: world.url,
      options: %{token: fn -> token end},
      identity: Keyword.get(options, :identity, user),
      deadline: System.monotonic_time(:millisecond) + Keyword.get(options, :time, 60_000)
    }
  end
end
