defmodule Skillbook.CalendarError do
  @moduledoc """
  Returned when an event cannot be what a command asks for, although the service works.

  ## Fields

    * `:kind` - the reason:
      * `:rule` - a series moves to another day, and its rule names days in a way that does not
        move with it
      * `:repeat` - the service cannot keep this repetition
      * `:long_series` - the later part of a series cannot be counted
      * `:guests` - the service tells nobody about events, so nobody can be invited
      * `:conference` - the service makes no video conferences
      * `:reminders` - the service keeps one reminder of an event
      * `:links` - the service attaches no links to events
      * `:not_invited` - the user is not among the guests of the event that is answered
      * `:told` - the service tells the organizer of every answer, so it cannot be kept back
      * `:unreadable` - the event is not valid
      * `:budget` - the dates of the event take too many steps to work out
      * `:no_calendar` - the account has no calendar
    * `:id` - the event, or `nil`
    * `:rule` - the rule of the series, for `:rule` and `:repeat`

  ## Examples

      iex> rule = "FREQ=MONTHLY;BYMONTHDAY=1"
      iex> error = %Skillbook.CalendarError{kind: :rule, id: "e1", rule: rule}
      iex> error |> Exception.message() |> String.split("; ") |> List.last()
      "give the new rule too, with --repeat"
  """

  @type t :: %__MODULE__{
          kind:
            :rule
            | :repeat
            | :long_series
            | :guests
            | :conference
            | :reminders
            | :links
            | :not_invited
            | :told
            | :unreadable
            | :budget
            | :no_calendar,
          id: String.t() | nil,
          rule: String.t() | nil
        }

  alias Skillbook.Calendar.Recurrence
  alias Skillbook.Support.External

  @enforce_keys [:kind]
  defexception [:kind, :id, :rule]

  @impl true
  def message(%{kind: :rule} = error) do
    "the series of #{error.id} cannot move to another day by itself, since its rule names " <>
      "days (#{rule(error.rule)}); give the new rule too, with --repeat"
  end

  def message(%{kind: :repeat} = error) do
    "the calendar's service cannot keep the repetition #{rule(error.rule)}; it takes daily, " <>
      "weekly on days, and monthly or yearly on a day up to the 28th, on the last day " <>
      "(BYMONTHDAY=-1), or on a weekday such as BYDAY=2TU"
  end

  def message(%{kind: :long_series} = error) do
    "the series of #{error.id} is too long to be divided; change one event (--scope one) or " <>
      "all of them (--scope all)"
  end

  def message(%{kind: :guests}) do
    "this calendar's server tells nobody about events, so nobody can be invited; leave " <>
      "out the guests, and tell them by mail"
  end

  def message(%{kind: :conference}),
    do: "this calendar's server makes no video conferences; leave out --conference"

  def message(%{kind: :reminders}),
    do: "this calendar's service keeps one reminder of an event; give --remind one time"

  def message(%{kind: :links}) do
    "this calendar's service attaches no links to events; leave out --attach, and write the " <>
      "links into the description"
  end

  def message(%{kind: :not_invited} = error) do
    "the user is not among the guests of the event #{error.id}, so there is nothing to " <>
      "answer; `calendar.list --unanswered` lists the invitations"
  end

  def message(%{kind: :told}) do
    "this calendar's server tells the organizer of every answer; leave out --notify none"
  end

  def message(%{kind: :unreadable} = error) do
    "the event #{error.id} is not valid, so it is left as it is; change it in another program"
  end

  def message(%{kind: :budget} = error) do
    "the dates of the event #{error.id} take too many steps to work out, since its rules or " <>
      "time zones are too many or too odd, so it is left as it is; change it in another program"
  end

  def message(%{kind: :no_calendar}),
    do: "the account has no calendar yet; the user can make one in another program"

  # Invitations have rules of strangers.
  defp rule(rule), do: if(Recurrence.plain?(rule), do: rule, else: External.line(rule))
end
