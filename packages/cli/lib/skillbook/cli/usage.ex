defmodule Skillbook.CLI.Usage do
  @moduledoc false
  # `skillbook usage`: prints the result of `Skillbook.usage/2` as a table with bars.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Arguments, Session, Terminal}
  alias Skillbook.Part
  alias Skillbook.Support.{Number, UntilError}

  # Widths in columns
  @max_bar 40
  @min_bar 5
  @max_key 32
  @min_key 8

  @impl true
  def switches,
    do: [since: :string, until: :string, json: :boolean] ++ Arguments.inputs([:usage])

  @impl true
  def args(globs), do: {:ok, globs}

  @impl true
  def run(options) do
    now = DateTime.utc_now()

    with {:ok, times} <- times(options.flags, now) do
      Session.with_book(options, :read, &show(&1, options, times))
    else
      {:error, message} -> Terminal.usage_error(message, "usage --help")
    end
  end

  defp show(book, options, times) do
    names = if options.args == [], do: [], else: [names: options.args]
    given = times ++ names ++ Keyword.take(options.flags, [:by, :limit, :after])

    with %{store: store} when store != nil <- Skillbook.Book.fetch!(book),
         {:ok, report} <- Skillbook.usage(Session.given_view(book, options), given) do
      put(report, options)
    else
      {:error, error} ->
        {:error, error}

      _book ->
        {:error, "no database here, so no usage; `skillbook run` creates one, --db names another"}
    end
  end

  @doc "The options `:since` and `:until` for the flags: a time before `now`, or a date."
  @spec times(keyword(), DateTime.t()) :: {:ok, keyword()} | {:error, String.t()}
  def times(flags, now) do
    expected = "hours, days or weeks ago (12h, 7d, 4w) or a date (2026-03-01)"

    UntilError.map(Keyword.take(flags, [:since, :until]), fn {name, text} ->
      with {:ok, time} <- time(text, now),
           do: {:ok, {name, time}},
           else: (:error -> {:error, "--#{name} expects #{expected}, got: #{text}"})
    end)
  end

  @hours %{"h" => 1, "d" => 24, "w" => 168}

  defp time(text, now) do
    case Regex.run(~r/\A([1-9][0-9]{0,4})([hdw])\z/, text) do
      [_, number, unit] ->
        {:ok, DateTime.add(now, -Number.integer!(number) * @hours[unit] * 3600, :second)}

      nil ->
        with {:ok, date} <- Date.from_iso8601(text),
             do: DateTime.new(date, ~T[00:00:00]),
             else: (_ -> :error)
    end
  end

  defp put(report, options) do
    if options.flags[:json],
      do: :usage |> Part.json(report) |> Terminal.put_json(),
      else: report |> lines(Terminal.new(options.color)) |> Terminal.put()
  end

  @doc "Formats the report as a table with bars that fits the terminal."
  @spec lines(Skillbook.Usage.t(), Terminal.t()) :: iodata()
  def lines(%{rows: []} = report, _terminal) do
    [
      "No skill was used from #{day(report.since)} to #{day(report.until)}.\n",
      "Run one with `skillbook shell`, or start earlier with --since 4w."
    ]
  end

  def lines(report, terminal) do
    several = length(report.rows) > 1
    total = if several, do: [%{report.total | key: "total"}], else: []
    table = [heading(report.by) | Enum.map(report.rows ++ total, &cells/1)]
    width = terminal.width || 80
    [_ | numbers] = widths(table)
    # Columns are separated by two spaces.
    taken = Enum.sum(numbers) + 2 * length(numbers)
    table = Enum.map(table, fn [key | numbers] -> [truncate(key, width - taken) | numbers] end)
    widths = widths(table)
    [heading | rows] = table
    room = width - hd(widths) - taken - 2
    bar = min(@max_bar, room)
    max = report.rows |> Enum.map(& &1.count) |> Enum.max()

    [
      Terminal.style(terminal, :faint, line(heading, widths)),
      # `rows` may have one more element, the total.
      for {row, cells} <- Enum.zip(report.rows, rows) do
        bar = if bar >= @min_bar, do: ["  ", bar(row.count, max, bar, terminal)], else: []
        ["\n", line(cells, widths), Terminal.style(terminal, :cyan, bar)]
      end,
      if(several,
        do: ["\n", Terminal.style(terminal, :faint, line(List.last(rows), widths))],
        else: []
      ),
      if(report.unnamed > 0,
        do: "\n#{number(report.unnamed)} more, without names: too many different names at once",
        else: []
      )
    ]
  end

  defp cells(row) do
    [
      key(row.key),
      number(row.read),
      number(row.run),
      number(row.failed),
      average(row.duration)
    ]
  end

  defp heading(by), do: [to_string(by), "read", "run", "failed", "average"]

  defp key(""), do: "(unrestricted)"
  defp key(key), do: Terminal.line(key)

  defp truncate(key, room) do
    room = room |> max(@min_key) |> min(@max_key)
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

  @doc "A bar for a count, relative to the maximum: block characters with colours, else ASCII."
  @spec bar(non_neg_integer(), pos_integer(), pos_integer(), Terminal.t()) :: String.t()
  def bar(count, max, width, %{color: true}) do
    eighths = max(1, round(count * width * 8 / max))
    last = Enum.at(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"], rem(eighths, 8))
    String.duplicate("█", div(eighths, 8)) <> last
  end

  def bar(count, max, width, _terminal),
    do: String.duplicate("#", max(1, round(count * width / max)))

  defp day(time), do: time |> DateTime.to_date() |> Date.to_iso8601()
end
