defmodule Skillbook.Handlers.Calendar.List do
  @moduledoc false
  # `calendar.list`: lists events of a day or between two times.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Calendar.{Text, Times}
  alias Skillbook.Support.{Count, External}
  alias Skillbook.{Calendar, Connections, Result}

  # Days after `--from`, and in which invitations are looked for.
  @days 7
  @ahead 60
  @max_limit 100

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, now} <- Times.now(flags, context, account),
         {:ok, from, to, notes} <- span(flags, now),
         query = query(flags, from, to, now.time_zone),
         {:ok, %{events: events, more: more} = found} <- list(account, query) do
      unreadable = found[:unreadable] || []
      text = text(events, more, unreadable, query) <> Text.notes(notes)

      {:ok,
       Result.ok(text,
         data: %{events: events, more: more, unreadable: unreadable},
         metadata: %{external: events != [] or unreadable != []}
       )}
    end
  end

  defp span(%{"unanswered" => true} = flags, now)
       when not is_map_key(flags, "date") and not is_map_key(flags, "from"),
       do: flags |> Map.put("from", "now") |> Times.span(now, @ahead)

  defp span(flags, now), do: Times.span(flags, now, @days)

  defp query(flags, from, to, zone) do
    %{
      calendar: flags["calendar"],
      from: from,
      to: to,
      text: flags["query"],
      unanswered: flags["unanswered"] == true,
      limit: flags["limit"],
      zone: zone
    }
  end

  # A day that the zone skipped.
  defp list(_account, %{from: same, to: same}), do: {:ok, %{events: [], more: false}}
  defp list(account, query), do: Calendar.list(account, query)

  # The note below says why.
  defp text([], _more, [], %{from: same, to: same}), do: "No events"

  defp text(events, more, unreadable, query) do
    word = if query.unanswered, do: "unanswered invitation", else: "event"
    head = if events == [], do: "No #{word}s", else: Count.text(length(events), word)

    rest =
      if more,
        do: ["more events follow; narrow the search, or raise --limit (at most #{@max_limit})"],
        else: []

    lines = Enum.map(events, &Text.line(&1, query.zone)) ++ rest ++ Text.unreadable(unreadable)
    outside? = events != [] or unreadable != []
    note = if outside?, do: [External.note("Titles and places")], else: []
    Enum.join(["#{head} #{describe(query)}" | lines] ++ note, "\n")
  end

  defp describe(query) do
    words = if query.text, do: "; text #{External.line(query.text, 80)}", else: ""
    "#{within(query.from, query.to)} (#{query.zone})#{words}"
  end

  # A day reads better than its edges.
  defp within(from, to) do
    last = DateTime.add(to, -1, :second, Calendar.TimeZones)
    midnights? = Enum.all?([from, to], &midnight?/1)

    cond do
      not midnights? -> "from #{stamp(from)} to #{stamp(to)}"
      DateTime.to_date(from) == DateTime.to_date(last) -> "on #{Text.day(from)}"
      true -> "from #{Text.day(from)} to #{Text.day(last)}"
    end
  end

  defp midnight?(time),
    do: Calendar.Words.midnight(DateTime.to_date(time), time.time_zone) == time

  defp stamp(time), do: Elixir.Calendar.strftime(time, "%a %Y-%m-%d %H:%M")
end
