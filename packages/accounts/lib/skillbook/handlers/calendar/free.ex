defmodule Skillbook.Handlers.Calendar.Free do
  @moduledoc false
  # `calendar.free`: finds times at which the user and others are free.

  @behaviour Skillbook.Handler

  alias Skillbook.Calendar.Free
  alias Skillbook.Handlers.Calendar.{Text, Times}
  alias Skillbook.Support.External
  alias Skillbook.{Calendar, Connections, FlagError, Result}

  # Days after `--from`, and the most that services answer for.
  @days 7
  @max_days 62

  @impl true
  def execute(flags, context) do
    with {:ok, minutes} <- Times.minutes(flags),
         {:ok, hours} <- Times.hours(flags),
         {:ok, account} <- Connections.account(context, :calendar),
         {:ok, now} <- Times.now(flags, context, account),
         {:ok, from, to, notes} <- Times.span(with_from(flags), now, @days),
         :ok <- check_length(flags, from, to),
         people = Enum.uniq(["me" | flags["attendees"] || []]),
         {:ok, busy} <- Calendar.busy(account, people, from, to) do
      query = %{
        from: later(from, full_minute(now)),
        to: to,
        zone: now.time_zone,
        hours: hours,
        weekends: flags["weekends"] == true,
        minutes: minutes
      }

      free = busy |> Map.values() |> Enum.flat_map(&times/1) |> Free.common(query, flags["limit"])
      unknown = for person <- people, {:error, reason} <- [busy[person]], do: {person, reason}
      unreadable = for {_person, {:ok, _, events}} <- busy, event <- events, do: event

      lines = [text(free, people, unknown, query) | Text.unreadable(Enum.uniq(unreadable))]
      note = if unreadable == [], do: [], else: [External.note("Titles")]
      text = Enum.join(lines ++ note, "\n") <> Text.notes(notes)

      {:ok,
       Result.ok(text,
         data: %{free: free, unknown: Map.new(unknown), unreadable: unreadable},
         metadata: %{external: unreadable != []}
       )}
    end
  end

  # Free times of the coming days, if nothing else is asked for.
  defp with_from(flags) do
    if Enum.any?(~w(date from to), &Map.has_key?(flags, &1)),
      do: flags,
      else: Map.put(flags, "from", "today")
  end

  defp check_length(flags, from, to) do
    if DateTime.diff(to, from) <= @max_days * 86_400,
      do: :ok,
      else: FlagError.invalid("to", flags["to"], "at most #{@max_days} days after --from")
  end

  defp times({:ok, busy}), do: busy
  defp times({:ok, busy, _unreadable}), do: busy
  defp times({:error, _}), do: []

  defp full_minute(%{second: 0} = now), do: now
  defp full_minute(now), do: DateTime.add(now, 60 - now.second, :second, Calendar.TimeZones)

  defp later(from, now), do: if(DateTime.compare(from, now) == :lt, do: now, else: from)

  defp text(free, people, unknown, query) do
    known = people -- Enum.map(unknown, &elem(&1, 0))
    names = Enum.map_join(known, ", ", &if(&1 == "me", do: "the user", else: &1))
    {first, last} = query.hours

    about =
      "at least #{duration(query.minutes)} between #{clock(first)} and #{clock(last)} " <>
        "(#{query.zone}) for #{names}"

    head =
      cond do
        known == [] -> "No free times are known"
        free == [] -> "No free times of #{about}"
        true -> "Free times of #{about}:"
      end

    lines =
      for {from, to} <- free do
        minutes = div(DateTime.diff(to, from), 60)
        "#{Text.span(from, to, query.zone)} (#{duration(minutes)})"
      end

    left_out = for {person, reason} <- unknown, do: "not known for #{person}: #{reason}"
    Enum.join([head | lines] ++ left_out, "\n")
  end

  defp clock(minute),
    do: "#{div(minute, 60)}:#{String.pad_leading("#{rem(minute, 60)}", 2, "0")}"

  defp duration(minutes) do
    case {div(minutes, 60), rem(minutes, 60)} do
      {0, minutes} -> "#{minutes} min"
      {hours, 0} -> "#{hours} h"
      {hours, minutes} -> "#{hours} h #{minutes} min"
    end
  end
end
