defmodule Skillbook.Handlers.Calendar.Text do
  @moduledoc false
  # Shows events. Titles, places, names and descriptions come from anybody who sends an
  # invitation, so all of them go through `Skillbook.Support.External`.

  alias Skillbook.Calendar.{Recurrence, TimeZones}
  alias Skillbook.Handlers.Email.Show
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
        not event.mine && own_answer(event.answer),
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

  defp reason(:budget) do
    "its dates take too many steps to work out: its rules or time zones are too many or too odd"
  end

  @doc "The title of an event, as a text of a stranger."
  @spec title(%{required(:title) => String.t(), optional(atom()) => term()}) :: String.t()
  def title(event), do: External.line(event.title, @max_title)

  defp own_answer("needs_action"), do: "not answered"
  defp own_answer(answer) when answer in ~w(declined tentative), do: "answered: #{answer}"
  defp own_answer(_), do: nil

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
      {"the user's answer", event.answer && answer(event)},
      {"video conference", event.conference && External.line(event.conference)},
      {"reminders", reminders(event.reminders, zone)}
    ]

    Enum.join(
      [title(event)] ++
        for({name, fact} <- facts, fact, do: "#{name}: #{fact}") ++
        guest_lines(event) ++ attachments(event) ++ description(event),
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

  defp answer(%{answer: "needs_action", mine: false} = event),
    do: "none yet; `calendar.answer #{event.id} --response <answer>` answers"

  defp answer(event), do: shown_response(event.answer)

  @doc "The reminders and attachments of an event, if flags changed them."
  @spec extras(map(), Skillbook.Calendar.event()) :: String.t()
  def extras(flags, event) do
    remind? = flags["remind"] != nil or "reminders" in Map.get(flags, "clear", [])
    reminders = reminders(event.reminders, "UTC") || "none"
    remind = if remind?, do: "\nreminders: #{reminders}", else: ""
    links = Enum.map_join(flags["attach"] || [], &"\nattached: #{&1}")
    remind <> links
  end

  defp reminders(:default, _zone), do: "those of the calendar"
  defp reminders([], _zone), do: nil

  defp reminders(reminders, zone) do
    Enum.map_join(reminders, ", ", fn reminder ->
      method = if reminder.method == "display", do: "", else: " (#{method(reminder.method)})"
      at(reminder, zone) <> method
    end)
  end

  defp method("email"), do: "by mail"
  defp method("audio"), do: "with a sound"
  defp method(_), do: "otherwise"

  defp at(%{at: %DateTime{} = time}, zone) do
    time = TimeZones.shift(time, zone)
    "#{day(time)} #{clock(time, false)}"
  end

  defp at(%{minutes: 0}, _zone), do: "at the start"

  defp at(%{minutes: minutes}, _zone) when minutes < 0,
    do: duration(-minutes) <> " after the start"

  defp at(%{minutes: minutes}, _zone), do: duration(minutes) <> " before"

  defp duration(minutes) do
    {days, rest} = {div(minutes, 1_440), rem(minutes, 1_440)}
    parts = [{days, "d"}, {div(rest, 60), "h"}, {rem(rest, 60), "min"}]
    Enum.map_join(for({n, unit} <- parts, n > 0, do: "#{n} #{unit}"), " ", & &1)
  end

  # Files that are listed.
  @max_files 20

  defp attachments(%{attachments: []}), do: []

  defp attachments(%{attachments: files, id: id}) do
    {shown, rest} = Enum.split(files, @max_files)
    more = if rest == [], do: [], else: ["  and #{length(rest)} more"]
    ["attachments:"] ++ Enum.map(shown, &("  " <> file(&1, id))) ++ more
  end

  defp file(file, id) do
    name = if file.name in [nil, ""], do: "a file", else: External.line(file.name, @max_name)
    facts = [name, type(file.type), file.size && Show.size(file.size)]

    where =
      if file.url,
        do: External.line(file.url),
        else: "calendar.get #{id} --attachment #{file.part}"

    "#{Enum.join(Enum.filter(facts, & &1), ", ")}: #{where}"
  end

  defp type(nil), do: nil
  defp type(type), do: if(type =~ ~r/\A[\w.+-]+\/[\w.+-]+\z/, do: type)

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
    comment = if guest.comment in [nil, ""], do: "", else: ", " <> External.line(guest.comment)
    response = shown_response(guest.response)
    "#{name}#{External.line(guest.email, @max_name)}: #{response}#{optional}#{comment}"
  end

  defp shown_response(known) when known in ~w(accepted declined tentative), do: known
  defp shown_response(_), do: "no answer yet"

  defp description(%{description: text}) when text in [nil, ""], do: []

  defp description(%{description: text} = event) do
    origin = "description of the event #{event.id}"
    ["", External.block(origin, text, max: @max_description)]
  end

  @doc "Notes below a result, such as how an odd time was taken."
  @spec notes([String.t()]) :: String.t()
  def notes(notes), do: Enum.map_join(notes, &("\n" <> &1))
end
