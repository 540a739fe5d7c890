defmodule Skillbook.Web.Page.Usage do
  @moduledoc false
  # How often skills were read, run and failed, as a chart and as tables; the slowest, what the
  # runs of agents cost, and the skills that the circuit breaker watches.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Cache
  alias Skillbook.Run.CircuitBreaker
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.{Chart, Layout, Parts}
  alias Skillbook.{Book, Usage}

  # The periods: the text, its days, and the letters of a bucket that a bar stands for.
  @periods [
    {"1", "24 hours", 1, 13},
    {"7", "7 days", 7, 10},
    {"30", "30 days", 30, 10},
    {"90", "90 days", 90, 10}
  ]
  @default "7"
  # Rows that are kept, and those of a page.
  @max_rows 200
  @page_size 25
  # Rows of the tables of failures and of the slowest.
  @max_highest 10
  @conversations "Conversations"

  def show(request, _values) do
    view = Caller.view(request)
    book = Book.of!(view)
    until = Book.now(book)
    {id, text, days, letters} = List.keyfind(@periods, field(request, "days"), 0) || default()
    period = [since: DateTime.add(until, -days * 86_400 + 3600), until: until]

    with {:ok, counts} <- Usage.state(view, period[:since], until),
         key = {:usage_page, counts, id},
         {:ok, kept} <- Cache.keep_ok(view.book, key, fn -> read(view, period, letters) end) do
      data =
        Map.merge(kept, %{
          profile: view.profile.id,
          days: days,
          counted: book.store != nil and book.usage != false,
          since: period[:since],
          until: until,
          breaker: CircuitBreaker.list(book, view)
        })

      reply(request, data, :activity, :usage, "Usage", fn -> content(request, data, id, text) end)
    end
  end

  # Sums over all skills are made once for the counts.
  defp read(view, period, letters) do
    with {:ok, names} <- Usage.report(view, period),
         {:ok, times} <- Usage.report(view, [by: [:time, :name]] ++ period),
         {:ok, costs} <- Usage.costs(view, period),
         {:ok, spent} <- Usage.costs(view, [by: [:time, :name]] ++ period),
         {:ok, profiles} <- Usage.costs(view, [by: :profile] ++ period) do
      shown = [counts: & &1.count, failed: & &1.failed]

      data = %{
        total: names.total,
        unnamed: names.unnamed,
        rows: Enum.take(names.rows, @max_rows),
        more: max(length(names.rows) - @max_rows, 0),
        failed: highest(names.rows, &if(&1.failed > 0, do: &1.failed)),
        slowest: highest(names.rows, & &1.duration),
        columns: columns(times.rows, names.rows, period, letters, shown),
        costs: %{
          columns: columns(spent.rows, costs.rows, period, letters, spent: spent(costs.total)),
          total: costs.total,
          rows: Enum.take(costs.rows, @max_rows),
          profiles: Enum.take(profiles.rows, @max_rows)
        }
      }

      {:ok, data}
    end
  end

  defp default, do: List.keyfind(@periods, @default, 0)

  defp highest(rows, value) do
    rows
    |> Enum.filter(value)
    |> Enum.sort_by(&(-value.(&1)))
    |> Enum.take(@max_highest)
  end

  # The names with the highest counts have a series each, the others one together.
  defp columns(rows, names, period, letters, values) do
    {first, others} = names |> Enum.map(& &1.key) |> Enum.split(Chart.max_series() - 1)
    series = first ++ if(others == [], do: [], else: ["others"])

    sums = fn value ->
      Enum.reduce(rows, %{}, fn %{key: [time, name]} = row, sums ->
        name = if name in first, do: name, else: "others"
        Map.update(sums, {String.slice(time, 0, letters), name}, value.(row), &(&1 + value.(row)))
      end)
    end

    values = for {key, value} <- values, do: {key, sums.(value)}

    columns =
      for bucket <- buckets(period, letters) do
        for {key, sums} <- values,
            into: %{time: bucket},
            do: {key, Enum.map(series, &Map.get(sums, {bucket, &1}, 0))}
      end

    %{series: series, columns: columns}
  end

  # The chart of costs is one of tokens if no model has a price. Costs are whole billionths.
  defp spent(%{cost: cost}) when cost > 0, do: &round(&1.cost * 1_000_000_000)
  defp spent(_total), do: &(&1.prompt_tokens + &1.completion_tokens)

  defp buckets(period, letters) do
    step = if letters == 13, do: 3600, else: 86_400

    period[:since]
    |> Stream.iterate(&DateTime.add(&1, step))
    |> Stream.take_while(&(DateTime.compare(&1, period[:until]) != :gt))
    |> Stream.concat([period[:until]])
    |> Stream.map(&(&1 |> DateTime.to_iso8601() |> binary_part(0, letters)))
    |> Enum.uniq()
  end

  defp content(request, data, id, text) do
    [
      form(request, id),
      if(data.counted,
        do: [
          if(data.rows != [], do: summary(data, text)),
          over_time(request, data),
          rows(request, data),
          costs(request, data.costs)
        ],
        else: Parts.empty("This book has no database, or does not count usage.")
      ),
      breaker(request, data.breaker)
    ]
  end

  defp form(request, id) do
    periods = for {value, text, _days, _letters} <- @periods, do: {value, text}
    query_form(request, ["usage"], select("days", "Period", id, periods))
  end

  defp summary(%{total: total} = data, text) do
    tag(:p, [class: "lead"], [
      Parts.count(total.run, "run", "runs"),
      ", ",
      Parts.count(total.read, "read", "reads"),
      " and ",
      Parts.count(total.failed, "failure", "failures"),
      " in #{text}.",
      if(data.unnamed > 0,
        do:
          " #{Parts.number(data.unnamed)} more have no name, for there were too many names at " <>
            "once."
      )
    ])
  end

  defp over_time(request, %{rows: []}) do
    text = "Nothing was read or run in this time."
    Parts.empty(request, text, {"Try a command", ["try"]})
  end

  # Never the same chart twice, nor an empty one.
  defp over_time(_request, %{total: total} = data) do
    section("chart", "Over time", [
      tag(:div, [class: "beside"], [
        if(total.count > total.failed,
          do: chart(data.columns, "usage", "Reads, runs and failures", & &1.counts)
        ),
        if(total.failed > 0, do: chart(data.columns, "failures", "Failures", & &1.failed))
      ])
    ])
  end

  # Screen readers get the sums in the description.
  defp chart(%{series: series, columns: columns}, id, title, values, shown \\ &Parts.number/1) do
    sums =
      for column <- columns,
          sum = Enum.sum(values.(column)),
          sum > 0,
          do: "#{column.time}: #{shown.(sum)}"

    text = Enum.join(sums, ", ") <> " (UTC)."
    about = %{id: id, title: title <> " over time", description: text}
    columns = for column <- columns, do: {short(column.time), values.(column)}

    tag(:div, [], [tag(:h3, [], title), Chart.bars(about, series, columns, shown)])
  end

  # The month and day, or the hour.
  defp short(<<_day::binary-size(11), hour::binary-size(2)>>), do: hour <> ":00"
  defp short(<<_year::binary-size(5), day::binary>>), do: day

  defp rows(_request, %{rows: []}), do: nil

  defp rows(request, data) do
    {page, pages, shown} = page_of(request, data.rows, @page_size)

    caption =
      if data.more > 0,
        do: "The #{@max_rows} most used of #{Parts.number(@max_rows + data.more)} skills",
        else: "Skills, the most used first"

    [
      section("counts", "Skills", [
        Parts.table(
          caption,
          ["Skill", "Read", "Run", "Failed", "Average time"],
          Enum.map(shown, &row(request, &1))
        ),
        Parts.pages(request, ["usage"], %{"days" => data.days}, page, pages)
      ]),
      tag(:div, [class: "beside"], [
        section("failed", "Failures", failures(request, data.failed)),
        section("slowest", "Slowest", slowest(request, data.slowest))
      ])
    ]
  end

  defp failures(_request, []), do: Parts.none("Nothing failed.")

  defp failures(request, rows) do
    Parts.table(
      "Skills with the most failures",
      ["Skill", "Failed", "Of all calls"],
      for row <- rows do
        [
          entry(request, row.key),
          Parts.number(row.failed),
          part(row.failed, row.failed + row.run)
        ]
      end
    )
  end

  defp slowest(_request, []), do: Parts.none("Nothing ran.")

  defp slowest(request, rows) do
    Parts.table(
      "Skills with the longest average time",
      ["Skill", "Average time", "Calls"],
      for(
        row <- rows,
        do: [
          entry(request, row.key),
          milliseconds(row.duration),
          Parts.number(row.run + row.failed)
        ]
      )
    )
  end

  defp costs(_request, %{total: %{prompt_tokens: 0, completion_tokens: 0}}), do: nil

  defp costs(request, %{total: total, rows: rows, profiles: profiles, columns: columns}) do
    # Without prices all costs are 0.
    priced? = total.cost > 0
    name = fn key -> if key == "", do: @conversations, else: entry(request, key) end

    columns = %{
      columns
      | series: for(name <- columns.series, do: if(name == "", do: @conversations, else: name))
    }

    {title, shown} =
      if priced?,
        do: {"Costs", &cost(&1 / 1_000_000_000)},
        else: {"Tokens", &Parts.number/1}

    heads = ["Prompt tokens", "Cached", "Answer tokens"] ++ if(priced?, do: ["Cost"], else: [])

    section("costs", "Agents", [
      tag(:p, [class: "lead"], [
        if(total.cost > 0, do: [tag(:strong, [], cost(total.cost)), " for "]),
        tokens(total.prompt_tokens + total.completion_tokens),
        if(total.cost > 0, do: ", by the prices of this book.", else: ". No model has a price.")
      ]),
      tag(:div, [class: "beside"], chart(columns, "spent", title, & &1.spent, shown)),
      Parts.table(
        "Costs of skills, the highest first",
        ["Skill" | heads],
        Enum.map(rows, &cost_row(name.(&1.key), &1, priced?))
      ),
      Parts.table(
        "Costs of profiles, the highest first",
        ["Profile" | heads],
        Enum.map(profiles, &cost_row(&1.key, &1, priced?))
      )
    ])
  end

  defp cost_row(name, row, priced?) do
    counts = [row.prompt_tokens, row.cached_tokens, row.completion_tokens]
    [name | Enum.map(counts, &Parts.number/1)] ++ if(priced?, do: [cost(row.cost)], else: [])
  end

  defp tokens(count), do: Parts.number(count) <> if(count == 1, do: " token", else: " tokens")

  # A run may cost a part of a cent.
  defp cost(cost), do: :erlang.float_to_binary(cost / 1, decimals: 4)

  defp row(request, row) do
    [
      entry(request, row.key),
      Parts.number(row.read),
      Parts.number(row.run),
      if(row.failed > 0, do: Parts.badge(Parts.number(row.failed), :bad), else: "0"),
      milliseconds(row.duration)
    ]
  end

  defp part(_some, 0), do: "–"
  defp part(some, all), do: "#{div(some * 100, all)} %"

  defp breaker(_request, []) do
    section(
      "breaker",
      "Circuit breaker",
      Parts.none("All skills work.")
    )
  end

  defp breaker(request, rows) do
    section("breaker", "Circuit breaker", [
      Parts.table(
        "Skills that have failed since their last success",
        ["Skill", "Profile", "State", "Failures", "Out of service since", "Tried again at"],
        for row <- rows do
          [
            entry(request, row.name),
            row.profile,
            state(row.state),
            Parts.number(row.failures),
            Parts.time(row.since) || "–",
            Parts.time(row.retry_at) || "–"
          ]
        end
      ),
      tag(
        :p,
        [class: "help"],
        [
          "A success closes it, and so does a change of the page or of the handler's code",
          if(request.caller.operator?,
            do: [
              ", or an operator on the page ",
              tag(:a, [href: Layout.path(request, ["status"])], "Status")
            ]
          ),
          "."
        ]
      )
    ])
  end

  defp state(:closed), do: Parts.badge("runs", :plain)
  defp state(:open), do: Parts.badge("out of service", :bad)
  defp state(_trial), do: Parts.badge("is tried again", :warn)
end
