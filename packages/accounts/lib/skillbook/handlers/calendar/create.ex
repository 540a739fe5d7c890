defmodule Skillbook.Handlers.Calendar.Create do
  @moduledoc false
  # `calendar.create` and `calendar.invite`: makes an event. With guests a call asks before.

  @behaviour Skillbook.Handler

  alias Skillbook.Connections.Account
  alias Skillbook.Handlers.Calendar.{Text, Times}
  alias Skillbook.{Calendar, CalendarError, Connections, Flags, Result}

  @impl true
  def check(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         :ok <- able(flags, account),
         {:ok, _reminders} <- Times.reminders(flags),
         {:ok, now} when now != nil <- Times.known_now(flags, context),
         {:ok, {start, _ends}, _notes} <- Times.event(flags, now),
         {:ok, _rule} <- Times.repeat(flags, start) do
      :ok
    else
      {:ok, nil} -> :ok
      {:error, error} -> {:error, error}
    end
  end

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, now} <- Times.now(flags, context, account),
         {:ok, {start, ends}, notes} <- Times.event(flags, now),
         {:ok, rule} <- Times.repeat(flags, start),
         {:ok, reminders} <- Times.reminders(flags),
         new = %{new(flags, start, ends) | repeat: rule, reminders: reminders},
         {:ok, event} <- Calendar.create(account, flags["calendar"], new) do
      {:ok,
       Result.ok(text(event, flags, now) <> Text.notes(notes),
         data: event,
         effects: [:event_created],
         metadata: %{external: true}
       )}
    end
  end

  @doc "Whether the service has guests and conferences, as far as the flags ask for them."
  @spec able(Flags.t(), Account.t(), String.t()) :: :ok | {:error, CalendarError.t()}
  def able(flags, account, guests \\ "attendees") do
    cond do
      flags["conference"] == true and not Calendar.conferences?(account) ->
        {:error, %CalendarError{kind: :conference}}

      flags[guests] && not Calendar.invitations?(account) ->
        {:error, %CalendarError{kind: :guests}}

      true ->
        :ok
    end
  end

  defp new(flags, start, ends) do
    %{
      key: key(),
      title: flags["title"],
      description: flags["description"],
      location: flags["location"],
      start: start,
      end: ends,
      repeat: nil,
      reminders: nil,
      attach: flags["attach"] || [],
      attendees: flags["attendees"] || [],
      conference: flags["conference"] == true,
      notify: Map.get(flags, "notify", "all") == "all"
    }
  end

  @doc "A key that no other event has."
  @spec key() :: String.t()
  def key, do: Base.encode16(:crypto.strong_rand_bytes(16), case: :lower)

  defp text(event, flags, now) do
    invited =
      case flags["attendees"] do
        nil -> ""
        list -> "\n#{told(flags)}: #{Enum.join(list, ", ")}"
      end

    video = if event.conference, do: "\nvideo conference: #{event.conference}", else: ""
    rule = if event.repeat, do: "\nrepeats: #{event.repeat}", else: ""
    remind = Text.extras(flags, event)
    "Created #{Text.line(event, now.time_zone, :zone)}#{rule}#{invited}#{video}#{remind}"
  end

  defp told(%{"notify" => "none"}), do: "Added without an invitation by mail"
  defp told(_), do: "Invited"
end
