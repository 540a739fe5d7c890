defmodule Skillbook.Connections.Microsoft do
  @moduledoc """
  Accounts of Microsoft 365 and Outlook.com, by Microsoft Graph.

  ## Options

  People sign in (`bin/skillbook connect microsoft`) with an application that is registered with
  Microsoft:

    * `:client_id` (text or secret) - the application (client) id. Required
    * `:client_secret` (secret) - a client secret, for the platform "Web". Without one the
      application is a public client, which PKCE protects
    * `:tenant` (text) - who may sign in: the id or a domain of an organization,
      `"organizations"`, `"consumers"` (Outlook.com), or `"common"` for all of them. Defaults to
      `"common"`
  """

  @behaviour Skillbook.Connections.Vendor

  @read_mail ["Mail.Read", "Mail.ReadWrite"]
  @write_mail ["Mail.ReadWrite"]

  @read_events ["Calendars.Read", "Calendars.ReadWrite"]
  @write_events ["Calendars.ReadWrite"]

  @read_files ["Files.Read", "Files.ReadWrite"]
  @write_files ["Files.ReadWrite"]

  # Any one of a command's scopes suffices; the first is the least.
  @commands %{
    "email.search" => @read_mail,
    "email.read" => @read_mail,
    "email.download" => @read_mail,
    "email.draft" => @write_mail,
    # With `--draft` it needs that of `email.draft` too, and with `--reply-to` that of
    # `email.read`.
    "email.send" => ["Mail.Send"],
    "email.forward" => for(read <- @read_mail, do: read <> " Mail.Send"),
    "email.label" => @write_mail,
    "email.archive" => @write_mail,
    "email.delete" => @write_mail,
    "calendar.list" => @read_events,
    "calendar.get" => @read_events,
    "calendar.calendars" => @read_events,
    "calendar.free" => @read_events,
    "calendar.create" => @write_events,
    "calendar.invite" => @write_events,
    "calendar.answer" => @write_events,
    "calendar.update" => @write_events,
    "calendar.delete" => @write_events,
    "drive.search" => @read_files,
    "drive.list" => @read_files,
    "drive.read" => @read_files,
    "drive.download" => @read_files,
    "drive.access" => @read_files,
    "drive.create" => @write_files,
    "drive.update" => @write_files,
    "drive.share" => @write_files,
    "drive.unshare" => @write_files,
    "drive.trash" => @write_files
  }

  @impl true
  def schema do
    [
      client_id: {:secret_or_text, :required},
      client_secret: {:secret, :optional},
      tenant: {"the id or a domain of an organization, or common", &tenant?/1, :optional}
    ]
  end

  # It becomes a part of a path.
  defp tenant?(tenant),
    do: is_binary(tenant) and tenant =~ ~r/\A[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?\z/

  @impl true
  def auth(_options), do: :oauth

  @impl true
  def services(_options),
    do: [
      mail: Skillbook.Mail.Outlook,
      calendar: Skillbook.Calendar.Outlook,
      drive: Skillbook.Drive.OneDrive
    ]

  @impl true
  def commands, do: @commands

  @impl true
  def rules, do: Skillbook.Connections.Client.MicrosoftRules

  @doc "The scopes of a command: any one of them suffices, the first is the least."
  @spec scopes(String.t()) :: [String.t()]
  def scopes(command), do: Map.get(@commands, command, [])

  @impl true
  def oauth(options) do
    endpoint = "https://login.microsoftonline.com/#{options[:tenant] || "common"}/oauth2/v2.0/"

    %{
      authorize: endpoint <> "authorize",
      token: endpoint <> "token",
      # A person withdraws the access at https://myapps.microsoft.com.
      revoke: nil,
      userinfo: nil,
      # `offline_access` gives the token that renews the connection.
      identity_scopes: ["openid", "profile", "email", "offline_access"],
      parameters: [{"response_mode", "query"}],
      consent: [{"prompt", "select_account"}],
      claims: ["email", "preferred_username"],
      scope_prefix: "https://graph.microsoft.com/"
    }
  end
end
