defmodule Skillbook.CLI.Usage do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.JSON

  # Longer bars say no more.
  @longest_bar 40
  @shortest_bar 5
  @widest_key 32
  @narrowest_key 8

  @impl true
  def switches,
    do: [
      since: :string,
      until: :string,
      by: {:one_of, [:name, :profile, :event, :time]},
      json: :boolean
    ]

  @impl true
  def args(globs), do: {:ok, globs}

  @impl true
  def summary, do: "show how often skills were read, run, and failed"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] usage [--since TIME] [--until TIME] [--by WHAT] [--json] [GLOB]...

    Shows how often the skills were read, run, and failed, and how long a run took on average; with globs, only of the
    names that one of them matches. Without --profile the counts of all profiles, else those of the profile.

      --since TIME      from when on: hours, days or weeks ago (12h, 7d, 4w), or a day (2026-03-01). Default: 7d
      --until TIME      until when, written the same way. Default: now
      --by WHAT         what the rows are about: name, profile, event or time. Default: name
      --json            as JSON, durations in milliseconds

    Examples:
      skillbook usage
      skillbook usage --since 4w --by time 'tasks.*'
      skillbook --db other.db usage --profile maria --json
    """
  end

  @impl true
  def run(options) do
    now = DateTime.utc_now()

    with {:ok, times} <- times(options.flags, now) do
      Session.with_book(options, :read, &show(&1, options, times))
    else
      {:error, message} ->
        Terminal.complain([message, "\nSee: skillbook usage --help"])
        2
    end
  end

  defp show(book, options, times) do
    view =
      if options.profile_given, do: Session.view(book, options), else: Skillbook.View.all(book)

    names = if options.args == [], do: [], else: [names: options.args]

    cond do
      Skillbook.Book.fetch!(book).store == nil ->
        Terminal.complain(
          "there is no database here, so nothing is counted; `skillbook run` makes one, --db FILE names another"
        )

        1

      true ->
        case Skillbook.usage(view, times ++ names ++ Keyword.take(options.flags, [:by])) do
          {:ok, report} -> put(report, options)
          {:error, error} -> Terminal.complain(Exception.message(error)) && 1
        end
    end
  end

  @doc "A time as it is written: so long before now, or a day."
  @spec times(keyword(), DateTime.t()) :: {:ok, keyword()} | {:error, String.t()}
  def times(flags, now) do
    Enum.reduce_while([:since, :until], {:ok, []}, fn name, {:ok, done} ->
      case flags[name] && time(flags[name], now) do
        nil ->
          {:cont, {:ok, done}}

        {:ok, time} ->
          {:cont, {:ok, [{name, time} | done]}}

        :error ->
          expected = "a number of hours, days or weeks (12h, 7d, 4w) or a day (2026-03-01)"
          {:halt, {:error, "--#{name} expects #{expected}, got: #{flags[name]}"}}
      end
    end)
  end

  @hours %{"h" => 1, "d" => 24, "w" => 168}

  defp time(text, now) do
    case Regex.run(~r/\A([1-9][0-9]{0,4})([hdw])\z/, text) do
      [_, number, unit] ->
        {:ok, DateTime.add(now, -String.to_integer(number) * @hours[unit] * 3600, :second)}

      nil ->
        with {:ok, date} <- Date.from_iso8601(text),
             do: DateTime.new(date, ~T[00:00:00]),
             else: (_ -> :error)
    end
  end

  defp put(report, options) do
    if options.flags[:json],
      do: report |> Map.from_struct() |> json() |> JSON.encode() |> Terminal.put(),
      else: report |> lines(Terminal.new(options.color)) |> Terminal.put()
  end

  defp json(report) do
    %{report | since: DateTime.to_iso8601(report.since), until: DateTime.to_iso8601(report.until)}
  end

  @doc "The report as lines of a table with bars, that fit the terminal."
  @spec lines(Skillbook.Usage.t(), Terminal.t()) :: iodata()
  def lines(%{rows: []} = report, _terminal) do
    [
      "Nothing was counted from #{day(report.since)} to #{day(report.until)}.\n",
      "Commands are counted as they run: try `skillbook shell`, or look further back with --since 4w."
    ]
  end

  def lines(report, terminal) do
    several = length(report.rows) > 1
    total = if several, do: [%{report.total | key: "total"}], else: []
    table = [heading(report.by) | Enum.map(report.rows ++ total, &cells(&1, terminal))]
    width = terminal.width || 80
    [_ | numbers] = widths(table)
    # Two blanks divide the columns.
    taken = Enum.sum(numbers) + 2 * length(numbers)
    table = Enum.map(table, fn [key | numbers] -> [cut(key, width - taken) | numbers] end)
    widths = widths(table)
    [heading | rows] = table
    room = width - hd(widths) - taken - 2
    bar = min(@longest_bar, room)
    most = report.rows |> Enum.map(& &1.count) |> Enum.max()

    [
      Terminal.style(terminal, :faint, line(heading, widths)),
      # The row of the total, if there is one, is left over.
      for {row, cells} <- Enum.zip(report.rows, rows) do
        bar = if bar >= @shortest_bar, do: ["  ", bar(row.count, most, bar, terminal)], else: []
        ["\n", line(cells, widths), Terminal.style(terminal, :cyan, bar)]
      end,
      if(several,
        do: ["\n", Terminal.style(terminal, :faint, line(List.last(rows), widths))],
        else: []
      ),
      if(report.unnamed > 0,
        do:
          "\n#{number(report.unnamed)} more, of which there were too many different ones at once to name them",
        else: []
      )
    ]
  end

  defp cells(row, terminal) do
    [
      key(row.key, terminal),
      number(row.read),
      number(row.run),
      number(row.failed),
      average(row.duration)
    ]
  end

  defp heading(by), do: [to_string(by), "read", "run", "failed", "average"]

  defp key("", _terminal), do: "(unrestricted)"
  defp key(key, terminal), do: Terminal.safe(terminal, key)

  defp cut(key, room) do
    room = room |> max(@narrowest_key) |> min(@widest_key)
    if String.length(key) > room, do: String.slice(key, 0, room - 1) <> "…", else: key
  end

  defp widths(table),
    do: Enum.zip_with(table, fn cells -> cells |> Enum.map(&String.length/1) |> Enum.max() end)

  defp line([key | numbers], [width | widths]) do
    [
      String.pad_trailing(key, width)
      | Enum.zip_with(numbers, widths, fn number, width ->
          ["  ", String.pad_leading(number, width)]
        end)
    ]
  end

  defp number(number) do
    number |> Integer.to_string() |> String.replace(~r/(?<=\d)(?=(\d{3})+\z)/, ",")
  end

  defp average(nil), do: "-"
  defp average(milliseconds) when milliseconds < 1, do: "< 1 ms"
  defp average(milliseconds) when milliseconds < 10_000, do: "#{round(milliseconds)} ms"
  defp average(milliseconds), do: "#{round(milliseconds / 1000)} s"

  @doc "A bar for a count, as long as its part of the most: eighths of a block on a terminal, else signs of ASCII."
  @spec bar(non_neg_integer(), pos_integer(), pos_integer(), Terminal.t()) :: String.t()
  def bar(count, most, width, %{color: true}) do
    eighths = max(1, round(count * width * 8 / most))
    last = Enum.at(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"], rem(eighths, 8))
    String.duplicate("█", div(eighths, 8)) <> last
  end

  def bar(count, most, width, _terminal),
    do: String.duplicate("#", max(1, round(count * width / most)))

  defp day(time), do: time |> DateTime.to_date() |> Date.to_iso8601()
end
