defmodule Skillbook.Handlers.Calendar.Update do
  @moduledoc false
  # `calendar.update`: changes an event, or events of a series.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Calendar.{Create, Text, Times}
  alias Skillbook.{Calendar, Connections, FlagError, Flags, Result}

  @times ~w(start end duration all-day)
  @changes ~w(title description location repeat conference clear) ++
             ~w(add-attendees remove-attendees remind attach) ++ @times

  @impl true
  def check(flags, context) do
    with :ok <- Flags.require_any(flags, @changes),
         {:ok, _reminders} <- Times.reminders(flags),
         {:ok, account} <- Connections.account(context, :calendar),
         do: Create.able(flags, account, "add-attendees")
  end

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, now} <- Times.now(flags, context, account),
         calendar = flags["calendar"],
         {:ok, event} <- Calendar.get(account, calendar, flags["id"], now.time_zone),
         {:ok, changes, notes} <- changes(flags, event, now),
         options = options(flags),
         {:ok, changed} <- Calendar.update(account, calendar, event, changes, options) do
      text =
        "Changed #{scope(event, options.scope)}#{Text.line(changed, now.time_zone, :zone)}" <>
          "#{before(event, changed, now)}#{Text.extras(flags, changed)}#{Text.notes(notes)}"

      {:ok,
       Result.ok(text, data: changed, effects: [:event_updated], metadata: %{external: true})}
    end
  end

  @doc "The events of a series that `--scope` means, and whether guests are told."
  @spec options(Flags.t()) :: Calendar.options()
  def options(flags) do
    scope =
      case Map.get(flags, "scope", "one") do
        "one" -> :one
        "following" -> :following
        "all" -> :all
      end

    %{scope: scope, notify: Map.get(flags, "notify", "all") == "all", key: Create.key()}
  end

  @doc "The events that changed, if they are more than one."
  @spec scope(Calendar.event(), :one | :following | :all) :: String.t()
  def scope(%{series: nil}, _scope), do: ""
  def scope(_event, :one), do: "one event of the series: "
  def scope(_event, :following), do: "this and the following events: "
  def scope(_event, :all), do: "all events of the series: "

  defp changes(flags, event, now) do
    with :ok <- check_repeat(flags, event),
         {:ok, times, notes} <- times(flags, event, now),
         {:ok, reminders} <- Times.reminders(flags),
         {:ok, repeat} <- repeat(flags, Map.get(times, :start, event.start)) do
      texts = for name <- ~w(title description location), flags[name], do: {name, flags[name]}
      cleared = for name <- Map.get(flags, "clear", []), do: {name, nil}
      texts = for {name, text} <- texts ++ cleared, into: %{}, do: {field(name), text}

      guests =
        for {name, field} <-
              [{"add-attendees", :add_attendees}] ++
                [{"remove-attendees", :remove_attendees}],
            flags[name],
            into: %{},
            do: {field, flags[name]}

      conference = if flags["conference"] == true, do: %{conference: true}, else: %{}
      attach = if flags["attach"], do: %{attach: flags["attach"]}, else: %{}
      reminders = if reminders, do: %{reminders: reminders}, else: %{}
      parts = [times, repeat, guests, conference, attach, reminders]
      {:ok, Enum.reduce(parts, texts, &Map.merge(&2, &1)), notes}
    end
  end

  defp field("title"), do: :title
  defp field("description"), do: :description
  defp field("location"), do: :location
  defp field("reminders"), do: :reminders

  # One event of a series has no rule of its own.
  defp check_repeat(%{"repeat" => _} = flags, %{series: series}) when series != nil do
    if Map.get(flags, "scope", "one") == "one" do
      expected = "following or all, with --repeat for an event of a series"
      FlagError.invalid("scope", "one", expected, "all")
    else
      :ok
    end
  end

  defp check_repeat(_flags, _event), do: :ok

  defp times(flags, event, now) do
    if Enum.any?(@times, &Map.has_key?(flags, &1)) do
      with {:ok, {start, ends}, notes} <- Times.event(flags, now, {event.start, event.end}),
           do: {:ok, %{start: start, end: ends}, notes}
    else
      {:ok, %{}, []}
    end
  end

  defp repeat(%{"repeat" => _} = flags, start) do
    with {:ok, rule} <- Times.repeat(flags, start), do: {:ok, %{repeat: rule}}
  end

  defp repeat(_flags, _start), do: {:ok, %{}}

  defp before(event, changed, now) do
    if {event.start, event.end} == {changed.start, changed.end},
      do: "",
      else: "\nbefore: #{Text.span(event.start, event.end, now.time_zone)}"
  end
end
