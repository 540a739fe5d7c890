defmodule Skillbook.Calendar do
  @moduledoc """
  Behaviour for calendar services, and the functions that call the one of an account.

  The commands `calendar.list`, `calendar.create`, `calendar.free` and so on work with every
  module that implements it: `Skillbook.Calendar.Google` uses Google Calendar's interface,
  `Skillbook.Calendar.Outlook` that of Microsoft 365, `Skillbook.Calendar.CalDAV` any server with
  CalDAV. The vendor of an account names its module under `calendar` (see
  `Skillbook.Connections.Vendor`).

  ## Times

  A `DateTime` that is given to a service, or returned by it, is in a zone of
  `Skillbook.Calendar.TimeZones`. That zone is a part of an event: a weekly meeting at 9:00 in
  `Europe/Berlin` stays at 9:00 there when the clocks change. An event of whole days has `Date`s
  instead, and its end is the day after its last one.

  ## Ids

  Ids of calendars and events are texts that only the service understands, without blanks and
  control characters. The id of an event is unique in its calendar. Each event of a series has
  an id of its own.

  ## Texts of strangers

  Anybody may send an invitation, so titles, descriptions, locations and names were written by
  others. A service returns them unchanged, in valid UTF-8. The commands mark them and show
  hidden characters.

  ## Errors

  Functions return `{:error, exception}`:

    * `Skillbook.NotFoundError` of the kind `"event"` or `"calendar"`
    * `Skillbook.ConnectionError`, if the account is not connected or lacks a scope
    * `Skillbook.ServiceError`, if the service fails, refuses the call or is too slow; of the kind
      `:conflict` if the event was changed since it was read

  All of them keep `account.deadline`.
  """

  alias Skillbook.Connections.Account

  @typedoc """
  A calendar.

    * `:id` - `nil` stands for the account's own calendar everywhere
    * `:zone` - its time zone, or `nil`
    * `:writable` - whether the account may change its events
  """
  @type calendar :: %{
          id: String.t(),
          name: String.t(),
          zone: String.t() | nil,
          primary: boolean(),
          writable: boolean()
        }

  @typedoc """
  The events to list: those that end after `:from` and begin before `:to`.

    * `:calendar` - the id of a calendar, or `nil`
    * `:text` - words that title, description, location or guests have, or `nil`
    * `:unanswered` - whether only invitations are listed that the user has not answered, a series
      once
    * `:limit` - the maximum number of events, 1 to 100
    * `:zone` - the zone of the times that are returned
  """
  @type query :: %{
          required(:calendar) => String.t() | nil,
          required(:from) => DateTime.t(),
          required(:to) => DateTime.t(),
          required(:text) => String.t() | nil,
          required(:limit) => pos_integer(),
          required(:zone) => String.t(),
          optional(:unanswered) => boolean()
        }

  @typedoc """
  A person who is invited.

    * `:response` - `"accepted"`, `"declined"`, `"tentative"` or `"needs_action"`
    * `:comment` - a text with the response, or `nil`
    * `:self` - whether this is the user of the account
  """
  @type attendee :: %{
          email: String.t(),
          name: String.t() | nil,
          response: String.t(),
          comment: String.t() | nil,
          optional: boolean(),
          self: boolean()
        }

  @typedoc """
  A reminder of an event.

    * `:method` - `"display"`, `"email"`, `"audio"` or another word of the service
    * `:minutes` - how long before the start, below 0 after it; `nil` for a reminder at a time
    * `:at` - that time, or `nil`
  """
  @type reminder :: %{
          method: String.t(),
          minutes: integer() | nil,
          at: DateTime.t() | nil
        }

  @typedoc """
  A file of an event: a link, or bytes in the event.

    * `:part` - its number in the event, from 1 on
    * `:size` - in bytes, if it is known
    * `:url` - the link, or `nil` for bytes, which `attachment/4` returns
  """
  @type attachment :: %{
          part: pos_integer(),
          name: String.t() | nil,
          type: String.t() | nil,
          size: non_neg_integer() | nil,
          url: String.t() | nil
        }

  @typedoc """
  An event: a single one, or one of a series.

    * `:version` - its state, by which a change of an event that has changed is refused
    * `:series` - the id of the series that it belongs to, or `nil`
    * `:original` - the start that the series gave it, or `nil`. Differs from `:start` if this
      event was moved
    * `:start`, `:end` - both a `DateTime` or both a `Date`
    * `:zone` - the zone that the event was written in, or `nil` for an event of whole days
    * `:repeat` - the rule of its series (RFC 5545, section 3.3.10), if it is known
    * `:attendees` - at most 50 of them, with the user if the user is invited
    * `:more_attendees` - whether there are more
    * `:organizer` - the address of the organizer, or `nil`
    * `:mine` - whether the account organizes it, so that others see its changes
    * `:answer` - the user's own response (`t:attendee/0`), or `nil` if the user is not invited
    * `:status` - `"confirmed"`, `"tentative"` or `"cancelled"`
    * `:conference` - the address of its video conference, or `nil`
    * `:reminders` - at most 20 of them, or `:default` for those of the calendar
    * `:attachments` - at most 50 of them
  """
  @type event :: %{
          id: String.t(),
          version: String.t() | nil,
          series: String.t() | nil,
          original: DateTime.t() | Date.t() | nil,
          title: String.t(),
          description: String.t() | nil,
          location: String.t() | nil,
          start: DateTime.t() | Date.t(),
          end: DateTime.t() | Date.t(),
          zone: String.t() | nil,
          repeat: String.t() | nil,
          attendees: [attendee()],
          more_attendees: boolean(),
          organizer: String.t() | nil,
          mine: boolean(),
          answer: String.t() | nil,
          status: String.t(),
          conference: String.t() | nil,
          reminders: [reminder()] | :default,
          attachments: [attachment()]
        }

  @typedoc """
  A new event.

    * `:key` - 32 hexadecimal digits that no other event has. If a call is repeated because its
      answer was lost, the service makes the event once
    * `:repeat` - a rule (RFC 5545, section 3.3.10), or `nil`
    * `:attendees` - the addresses of others
    * `:conference` - whether to add a video conference
    * `:reminders` - minutes before the start, or `nil` for the reminders of the calendar
    * `:attach` - addresses of files
    * `:notify` - whether the service sends invitations
  """
  @type new :: %{
          key: String.t(),
          title: String.t(),
          description: String.t() | nil,
          location: String.t() | nil,
          start: DateTime.t() | Date.t(),
          end: DateTime.t() | Date.t(),
          repeat: String.t() | nil,
          attendees: [String.t()],
          conference: boolean(),
          reminders: [non_neg_integer()] | nil,
          attach: [String.t()],
          notify: boolean()
        }

  @typedoc """
  Fields to change, and no others. `:start` and `:end` are given together; for a whole series they
  are those of the event that was read, and the others move by as much. `:repeat` is a rule, or
  `nil` for none. `:reminders` replaces the reminders on the screen, and `nil` brings back those
  of the calendar; `:attach` adds addresses of files.
  """
  @type changes :: %{
          optional(:title) => String.t(),
          optional(:description) => String.t() | nil,
          optional(:location) => String.t() | nil,
          optional(:start) => DateTime.t() | Date.t(),
          optional(:end) => DateTime.t() | Date.t(),
          optional(:repeat) => String.t() | nil,
          optional(:add_attendees) => [String.t()],
          optional(:remove_attendees) => [String.t()],
          optional(:conference) => true,
          optional(:reminders) => [non_neg_integer()] | nil,
          optional(:attach) => [String.t()]
        }

  @typedoc """
  The answer to an invitation.

    * `:response` - `"accepted"`, `"declined"` or `"tentative"`
    * `:comment` - a text for the organizer, or `nil`
  """
  @type answer :: %{response: String.t(), comment: String.t() | nil}

  @typedoc """
  The events of a series that are meant, and whether guests are told.

    * `:scope` - `:one`, `:following` (this one and all later ones) or `:all`
    * `:key` - as for `t:new/0`; this and the following events become a new series
  """
  @type options :: %{
          scope: :one | :following | :all,
          notify: boolean(),
          key: String.t()
        }

  @typedoc """
  An event that cannot be shown: it is not valid (`:invalid`), or its dates take too many steps to
  work out (`:budget`).
  """
  @type unreadable :: %{id: String.t(), title: String.t(), reason: :budget | :invalid}

  @typedoc """
  Events in order, whether there are more, and those in the same calendar that cannot be shown.
  """
  @type listing :: %{
          required(:events) => [event()],
          required(:more) => boolean(),
          optional(:unreadable) => [unreadable()]
        }

  @typedoc """
  The busy times of a person, in order, with the events whose times are not known if there are
  some; or why none is known.
  """
  @type busy ::
          {:ok, [{DateTime.t(), DateTime.t()}]}
          | {:ok, [{DateTime.t(), DateTime.t()}], [unreadable()]}
          | {:error, String.t()}

  @doc "Returns the calendars of the account, its own one first; at most 250."
  @callback calendars(Account.t()) :: {:ok, [calendar()]} | {:error, Exception.t()}

  @doc "Returns the zone of a calendar, or `nil` if it has none."
  @callback zone(Account.t(), calendar :: String.t() | nil) ::
              {:ok, String.t() | nil} | {:error, Exception.t()}

  @doc """
  Lists events, the earliest first, each event of a series by itself. `:more` is whether there are
  more than the limit.
  """
  @callback list(Account.t(), query()) :: {:ok, listing()} | {:error, Exception.t()}

  @doc "Returns an event, with its times in `zone`."
  @callback get(Account.t(), calendar :: String.t() | nil, id :: String.t(), String.t()) ::
              {:ok, event()} | {:error, Exception.t()}

  @doc "Makes an event, once."
  @callback create(Account.t(), calendar :: String.t() | nil, new()) ::
              {:ok, event()} | {:error, Exception.t()}

  @doc "Changes an event that was read before. Returns the event as it is now."
  @callback update(Account.t(), calendar :: String.t() | nil, event(), changes(), options()) ::
              {:ok, event()} | {:error, Exception.t()}

  @doc "Deletes an event that was read before."
  @callback delete(Account.t(), calendar :: String.t() | nil, event(), options()) ::
              :ok | {:error, Exception.t()}

  @doc """
  Answers the invitation to an event that was read before. Returns the event as it is now, and
  whether the service tells the organizer.
  """
  @callback answer(Account.t(), calendar :: String.t() | nil, event(), answer(), options()) ::
              {:ok, event(), told :: boolean()} | {:error, Exception.t()}

  @doc "Returns the bytes of an attachment that is no link, by its number in the event of an id."
  @callback attachment(
              Account.t(),
              calendar :: String.t() | nil,
              id :: String.t(),
              part :: pos_integer()
            ) ::
              {:ok, Skillbook.Drive.content()} | {:error, Exception.t()}

  @doc """
  Returns the busy times of people by their addresses, from one time to another. The address
  `"me"` is the account itself.
  """
  @callback busy(Account.t(), people :: [String.t()], DateTime.t(), DateTime.t()) ::
              {:ok, %{String.t() => busy()}} | {:error, Exception.t()}

  @doc "Whether a service makes video conferences."
  @callback conferences?(Account.t()) :: boolean()

  @doc "Whether a service tells guests about events; otherwise guests cannot be invited."
  @callback invitations?(Account.t()) :: boolean()

  @doc false
  @spec calendars(Account.t()) :: {:ok, [calendar()]} | {:error, Exception.t()}
  def calendars(account), do: adapter(account).calendars(account)

  @doc false
  @spec zone(Account.t(), String.t() | nil) :: {:ok, String.t() | nil} | {:error, Exception.t()}
  def zone(account, calendar), do: adapter(account).zone(account, calendar)

  @doc false
  @spec list(Account.t(), query()) :: {:ok, listing()} | {:error, Exception.t()}
  def list(account, query), do: adapter(account).list(account, query)

  @doc false
  @spec get(Account.t(), String.t() | nil, String.t(), String.t()) ::
          {:ok, event()} | {:error, Exception.t()}
  def get(account, calendar, id, zone), do: adapter(account).get(account, calendar, id, zone)

  @doc false
  @spec create(Account.t(), String.t() | nil, new()) :: {:ok, event()} | {:error, Exception.t()}
  def create(account, calendar, new), do: adapter(account).create(account, calendar, new)

  @doc false
  @spec update(Account.t(), String.t() | nil, event(), changes(), options()) ::
          {:ok, event()} | {:error, Exception.t()}
  def update(account, calendar, event, changes, options),
    do: adapter(account).update(account, calendar, event, changes, options)

  @doc false
  @spec delete(Account.t(), String.t() | nil, event(), options()) ::
          :ok | {:error, Exception.t()}
  def delete(account, calendar, event, options),
    do: adapter(account).delete(account, calendar, event, options)

  @doc false
  @spec answer(Account.t(), String.t() | nil, event(), answer(), options()) ::
          {:ok, event(), boolean()} | {:error, Exception.t()}
  def answer(account, calendar, event, answer, options),
    do: adapter(account).answer(account, calendar, event, answer, options)

  @doc false
  @spec attachment(Account.t(), String.t() | nil, String.t(), pos_integer()) ::
          {:ok, Skillbook.Drive.content()} | {:error, Exception.t()}
  def attachment(account, calendar, id, part),
    do: adapter(account).attachment(account, calendar, id, part)

  @doc false
  @spec unanswered([event()]) :: [event()]
  def unanswered(events) do
    events
    |> Enum.filter(&(&1.answer == "needs_action" and &1.status != "cancelled"))
    |> Enum.uniq_by(&(&1.series || &1.id))
  end

  @doc false
  @spec busy(Account.t(), [String.t()], DateTime.t(), DateTime.t()) ::
          {:ok, %{String.t() => busy()}} | {:error, Exception.t()}
  def busy(account, people, from, to), do: adapter(account).busy(account, people, from, to)

  @doc false
  @spec conferences?(Account.t()) :: boolean()
  def conferences?(account), do: adapter(account).conferences?(account)

  @doc false
  @spec invitations?(Account.t()) :: boolean()
  def invitations?(account), do: adapter(account).invitations?(account)

  defp adapter(account),
    do: Keyword.fetch!(account.vendor.services(account.options), :calendar)
end
