defmodule Skillbook.Connections.CalDAV do
  @moduledoc """
  Calendars on servers with CalDAV.

  ## Options

    * `:url` (URL) - the address of the server, or of a calendar. Required
    * `:username` (text) - required
    * `:password` (secret) - required
    * `:address` (text) - the user's e-mail address, by which invitations name the user. Defaults
      to those that the server knows, and the `:username`
  """

  @behaviour Skillbook.Connections.Vendor

  alias Skillbook.Connections.Account
  alias Skillbook.Support.Options

  @impl true
  def schema do
    [
      url: {~s(a URL such as "https://example.com/dav"), &Account.url?/1, :required},
      username: {"text", &Options.text?/1, :required},
      password: {:secret, :required},
      address: {"text", &Options.text?/1, :optional}
    ]
  end

  @impl true
  def auth(_options), do: {:secret, :password}

  @impl true
  def services(_options), do: [calendar: Skillbook.Calendar.CalDAV]

  @impl true
  def commands, do: %{}
end
