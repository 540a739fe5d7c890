defmodule Skillbook.Handlers.Calendar.Text do
  @moduledoc false
  # Shows events. Titles, places, names and descriptions come from anybody who sends an
  # invitation, so all of them go through `Skillbook.Support.External`.

  alias Skillbook.Calendar.{Recurrence, TimeZones}
  alias Skillbook.Support.{Count, External}

  @max_title 120
  @max_name 80
  # Events that cannot be shown.
  @max_unreadable 10
  @max_description 8_000
  # Guests that are listed by name.
  @max_guests 20

  @doc "An event on one line, with its id, and with `:zone` the name of the zone."
  @spec line(Skillbook.Calendar.event(), String.t(), :zone | nil) :: String.t()
  def line(event, zone, shown \\ nil) do
    facts =
      [
        event.status == "cancelled" && "cancelled",
        event.status == "tentative" && "tentative",
        event.location not in [nil, ""] && "at " <> External.line(event.location, @max_name),
        guests(event),
        (event.series || event.repeat) && "repeats",
        event.conference && "video conference"
      ]
      |> Enum.filter(& &1)

    facts = if facts == [], do: "", else: " (#{Enum.join(facts, "; ")})"
    zone_name = if shown == :zone and match?(%DateTime{}, event.start), do: " (#{zone})", else: ""
    "#{span(event.start, event.end, zone)}#{zone_name} #{title(event)}#{facts}; id #{event.id}"
  end

  @doc "Lines about events that cannot be shown."
  @spec unreadable([Skillbook.Calendar.unreadable()]) :: [String.t()]
  def unreadable(events) do
    {named, more} = Enum.split(events, @max_unreadable)

    lines =
      for event <- named do
        title = if event.title == "", do: "an event", else: title(event)
        "not shown: #{title}, since #{reason(event.reason)}; id #{event.id}"
      end

    if more == [], do: lines, else: lines ++ ["not shown either: #{length(more)} more of these"]
  end

  defp reason(:invalid), do: "it is not valid"

  defp reason(:budget),
    do: "its dates take too long to work out: its rules or time zones are too many or too odd"

  @doc "The title of an event, as a text of a stranger."
  @spec title(%{required(:title) => String.t(), optional(atom()) => term()}) :: String.t()
  def title(event), do: External.line(event.title, @max_title)

  defp guests(%{attendees: [], more_attendees: false}), do: nil
  defp guests(%{more_attendees: true}), do: "many guests"
  defp guests(%{attendees: list}), do: Count.text(length(list), "guest")

  @doc "When an event is, in words: days, or times in a zone."
  @spec span(DateTime.t() | Date.t(), DateTime.t() | Date.t(), String.t()) :: String.t()
  def span(%Date{} = start, ends, _zone) do
    last = Date.add(ends, -1)

    if Date.compare(last, start) == :gt,
      do: "#{day(start)} to #{day(last)} all day",
      else: day(start) <> " all day"
  end

  def span(%DateTime{} = start, ends, zone) do
    [start, ends] = for time <- [start, ends], do: TimeZones.shift(time, zone)
    offset? = start.utc_offset != ends.utc_offset

    if DateTime.to_date(start) == DateTime.to_date(ends),
      do: "#{day(start)} #{clock(start, offset?)}-#{clock(ends, offset?)}",
      else: "#{day(start)} #{clock(start, offset?)} to #{day(ends)} #{clock(ends, offset?)}"
  end

  @doc "A day with the name of its weekday."
  @spec day(DateTime.t() | Date.t()) :: String.t()
  def day(day), do: Calendar.strftime(day, "%a %Y-%m-%d")

  # The offset tells times apart while the clocks change.
  defp clock(time, false), do: Calendar.strftime(time, "%H:%M")
  defp clock(time, true), do: Calendar.strftime(time, "%H:%M (%z)")

  @doc "All of an event."
  @spec details(Skillbook.Calendar.event(), String.t()) :: String.t()
  def details(event, zone) do
    facts = [
      {"id", event.id},
      {"when", "#{span(event.start, event.end, zone)}#{in_zone(event, zone)}"},
      {"moved from", moved(event, zone)},
      {"status", event.status},
      {"where", unless(event.location in [nil, ""], do: External.line(event.location))},
      {"repeats", repeats(event)},
      {"organizer", organizer(event)},
      {"video conference", event.conference && External.line(event.conference)}
    ]

    Enum.join(
      [title(event)] ++
        for({name, fact} <- facts, fact, do: "#{name}: #{fact}") ++
        guest_lines(event) ++ description(event),
      "\n"
    )
  end

  defp in_zone(%{start: %Date{}}, _zone), do: ""
  defp in_zone(%{zone: zone}, zone), do: " (#{zone})"
  defp in_zone(%{zone: nil}, zone), do: " (#{zone})"
  defp in_zone(%{zone: other}, zone), do: " (#{zone}; the event is in #{other})"

  defp moved(%{original: nil}, _zone), do: nil
  defp moved(%{original: same, start: same}, _zone), do: nil
  defp moved(%{original: %Date{} = day}, _zone), do: day(day)

  defp moved(%{original: time} = event, zone) do
    unless match?(%DateTime{}, event.start) and DateTime.compare(time, event.start) == :eq do
      time = TimeZones.shift(time, zone)
      "#{day(time)} #{clock(time, false)}"
    end
  end

  defp repeats(%{repeat: nil, series: nil}), do: nil
  defp repeats(%{repeat: nil, series: series}), do: "as one of the series #{series}"

  defp repeats(%{repeat: rule}),
    do: if(Recurrence.plain?(rule), do: rule, else: External.line(rule))

  defp organizer(%{mine: true}), do: "the user"
  defp organizer(%{organizer: nil}), do: nil
  defp organizer(%{organizer: address}), do: External.line(address, @max_name)

  defp guest_lines(%{attendees: [], more_attendees: false}), do: []

  defp guest_lines(event) do
    {shown, rest} = Enum.split(event.attendees, @max_guests)

    more =
      cond do
        event.more_attendees -> ["  and more"]
        rest != [] -> ["  and #{length(rest)} more"]
        true -> []
      end

    ["guests:"] ++ Enum.map(shown, &("  " <> guest(&1))) ++ more
  end

  defp guest(guest) do
    name = if guest.name in [nil, ""], do: "", else: External.line(guest.name, @max_name) <> " "
    optional = if guest.optional, do: ", optional", else: ""
    response = String.replace(response(guest.response), "_", " ")
    "#{name}#{External.line(guest.email, @max_name)}: #{response}#{optional}"
  end

  defp response(known) when known in ~w(accepted declined tentative), do: known
  defp response(_), do: "no answer yet"

  defp description(%{description: text}) when text in [nil, ""], do: []

  defp description(%{description: text} = event) do
    origin = "description of the event #{event.id}"
    ["", External.block(origin, text, max: @max_description)]
  end

  @doc "Notes below a result, such as how an odd time was taken."
  @spec notes([String.t()]) :: String.t()
  def notes(notes), do: Enum.map_join(notes, &("\n" <> &1))
end
