defmodule Skillbook.Connections.Google do
  @moduledoc """
  Accounts of Google: mail, calendar and drive.

  ## Options

  People sign in (`bin/skillbook connect google`) with the client of an application that is
  registered with Google:

    * `:client_id` (text or secret) - the id of the client
    * `:client_secret` (secret) - its secret

  Or a service account acts for people of a Google Workspace domain, by domain-wide delegation:

    * `:service_account` (secret) - the JSON of its key
    * `:subject` (text, or function of the profile's id) - the address of the person
  """

  @behaviour Skillbook.Connections.Vendor

  alias Skillbook.Support.Options

  @mail "https://mail.google.com/"
  @gmail "https://www.googleapis.com/auth/gmail."
  @read_mail ["#{@gmail}readonly", "#{@gmail}modify", @mail]
  @write_mail ["#{@gmail}compose", "#{@gmail}modify", @mail]

  @calendar "https://www.googleapis.com/auth/calendar"
  @events ["#{@calendar}.events", @calendar]
  @read_events ["#{@calendar}.events.readonly", "#{@calendar}.readonly" | @events]

  @drive "https://www.googleapis.com/auth/drive"
  @read_drive ["#{@drive}.readonly", @drive]

  # Any one of a command's scopes suffices; the first is the least.
  @commands %{
    "email.search" => @read_mail,
    "email.read" => @read_mail,
    "email.download" => @read_mail,
    "email.draft" => @write_mail,
    "email.send" => ["#{@gmail}send" | @write_mail],
    # It also reads the mail.
    "email.forward" => ["#{@gmail}modify", @mail],
    "email.label" => ["#{@gmail}modify", @mail],
    "email.archive" => ["#{@gmail}modify", @mail],
    "email.delete" => ["#{@gmail}modify", @mail],
    "calendar.list" => @read_events,
    "calendar.get" => @read_events,
    "calendar.calendars" => [
      "#{@calendar}.calendarlist.readonly",
      "#{@calendar}.readonly",
      @calendar
    ],
    "calendar.create" => @events,
    "calendar.invite" => @events,
    "calendar.update" => @events,
    "calendar.delete" => @events,
    "calendar.answer" => @events,
    # `calendar.freebusy` would do for the busy times, but not for the calendar's time zone.
    "calendar.free" => ["#{@calendar}.events.freebusy", "#{@calendar}.readonly", @calendar],
    "drive.search" => @read_drive,
    "drive.list" => @read_drive,
    "drive.read" => @read_drive,
    "drive.download" => @read_drive,
    # In a folder that the application has not made, it needs the scope of `drive.update`.
    "drive.create" => ["#{@drive}.file", @drive],
    "drive.update" => [@drive],
    "drive.share" => [@drive],
    "drive.access" => @read_drive,
    "drive.unshare" => [@drive],
    "drive.trash" => [@drive]
  }

  @impl true
  def schema do
    [
      client_id: {:secret_or_text, :optional},
      client_secret: {:secret, :optional},
      service_account: {:secret, :optional},
      subject: {"text or a function of one argument, the profile's id", &subject?/1, :optional}
    ]
  end

  defp subject?(subject), do: Options.text?(subject) or is_function(subject, 1)

  @impl true
  def auth(%{service_account: _key}), do: :service_account
  def auth(_options), do: :oauth

  @impl true
  def services(_options) do
    [
      mail: Skillbook.Mail.Gmail,
      calendar: Skillbook.Calendar.Google,
      drive: Skillbook.Drive.Google
    ]
  end

  @impl true
  def commands, do: @commands

  @impl true
  def rules, do: Skillbook.Connections.Client.GoogleRules

  @doc "The scopes of a command: any one of them suffices, the first is the least."
  @spec scopes(String.t()) :: [String.t()]
  def scopes(command), do: Map.get(@commands, command, [])

  @impl true
  def oauth(_options) do
    %{
      authorize: "https://accounts.google.com/o/oauth2/v2/auth",
      token: "https://oauth2.googleapis.com/token",
      revoke: "https://oauth2.googleapis.com/revoke",
      userinfo: "https://openidconnect.googleapis.com/v1/userinfo",
      identity_scopes: ["openid", "email"],
      parameters: [{"access_type", "offline"}, {"include_granted_scopes", "true"}],
      consent: [{"prompt", "consent"}]
    }
  end
end
