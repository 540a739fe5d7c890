defmodule Skillbook.Web.Page.Chart do
  @moduledoc false
  # Charts as SVG, made on the server. Colours are classes, so app.css decides about light and
  # dark, and no chart has an inline style. Each is an image with a title and a description for
  # screen readers, which has the values unless a table of the page does.
  #
  # A chart is 480 units wide, which fits narrow screens, and scales with its place. A time line
  # is drawn a second time for wide screens, and app.css shows one of them.

  import Skillbook.Web.Html, only: [tag: 3]

  alias Skillbook.Web.Html

  @width 480
  @wide 1_000
  @left 44
  @right 8
  @colours 5

  @typedoc "An id that is unique in its page, a title, and the message of the chart."
  @type about :: %{id: String.t(), title: String.t(), description: String.t()}

  @doc "How many series a chart of bars tells apart."
  @spec max_series() :: pos_integer()
  def max_series, do: @colours

  @doc """
  Stacked bars with a legend. `columns` has a label for each bar, and its values in the order of
  the series' names; `shown` makes the text of a value. No columns or only zeros make an empty
  chart.
  """
  @spec bars(about(), [String.t()], [{String.t(), [non_neg_integer()]}], shown) :: Html.safe()
        when shown: (non_neg_integer() -> String.t())
  def bars(about, series, columns, shown \\ &Integer.to_string/1)
      when length(series) <= @colours do
    top = columns |> Enum.map(&sum/1) |> Enum.max(fn -> 0 end) |> nice()
    {height, base} = {180, 150}
    scale = fn value -> value * (base - 12) / max(top, 1) end
    slot = (@width - @left - @right) / max(length(columns), 1)

    bars =
      for {{label, values}, place} <- Enum.with_index(columns) do
        {rects, _y} =
          values
          |> Enum.with_index()
          |> Enum.flat_map_reduce(base, fn
            {0, _series}, y ->
              {[], y}

            {value, number}, y ->
              height = scale.(value)
              name = Enum.at(series, number)

              {[
                 rect(
                   [
                     x: @left + place * slot + slot * 0.12,
                     y: y - height,
                     width: slot * 0.76,
                     height: height,
                     class: "series-#{number}"
                   ],
                   "#{label}, #{name}: #{shown.(value)}"
                 )
               ], y - height}
          end)

        rects
      end

    lines =
      for value <- Enum.uniq([0, div(top, 2), top]) do
        y = base - scale.(value)
        [line(@left, y, @width - @right, y, "grid"), text(@left - 6, y + 4, "end", shown.(value))]
      end

    image = svg(about, height, [lines, bars, axis(Enum.map(columns, &elem(&1, 0)), slot, base)])
    tag(:figure, [class: "chart"], [image, legend(series)])
  end

  defp sum({_label, values}), do: Enum.sum(values)

  # The top of the scale: 1, 2, 5, 10, 20, 50 …, and even, so that its half is whole.
  defp nice(top) when top <= 2, do: 2

  defp nice(top) do
    power = 10 |> :math.pow(floor(:math.log10(top))) |> round()
    step = Enum.find([1, 2, 5, 10], &(&1 * power >= top)) * power
    if rem(step, 2) == 0, do: step, else: step + 1
  end

  # The first, the last and some labels between, which do not overlap.
  defp axis([], _slot, _base), do: []

  defp axis(labels, slot, base) do
    every = max(ceil(length(labels) / 6), 1)

    for {label, place} <- Enum.with_index(labels),
        rem(place, every) == 0,
        do: text(@left + (place + 0.5) * slot, base + 18, "middle", label)
  end

  defp legend(series) do
    items =
      for {name, number} <- Enum.with_index(series) do
        swatch = tag(:span, [class: "swatch series-#{number}", aria_hidden: "true"], "")
        tag(:li, [], [swatch, name])
      end

    tag(:ul, [class: "legend"], items)
  end

  @typedoc """
  A mark on a time line: where it begins and ends, in milliseconds of Unix time, its class and its
  text.
  """
  @type mark :: %{
          from: integer(),
          to: integer() | nil,
          class: String.t(),
          text: String.t()
        }

  @doc """
  A time line from `first` to `last`: a row for each name, with its marks. A mark without an end,
  or shorter than it can be seen, is a dot. `now` is a line across.
  """
  @spec time_line(about(), {DateTime.t(), DateTime.t()}, DateTime.t(), [row]) :: [Html.safe()]
        when row: {String.t(), [mark()]}
  def time_line(about, span, now, rows) do
    for {width, class} <- [{@width, "narrow"}, {@wide, "broad"}] do
      about = if width == @wide, do: %{about | id: about.id <> "-broad"}, else: about
      tag(:figure, [class: "chart #{class}"], time_line(about, span, now, rows, width))
    end
  end

  # Names stand above their marks, or beside them if there is room.
  defp time_line(about, {first, last}, now, rows, width) do
    broad? = width == @wide
    {row, head, left} = if broad?, do: {26, 22, 190}, else: {34, 22, @right}
    height = head + row * length(rows) + 8
    seconds = max(DateTime.diff(last, first), 1)

    from = DateTime.to_unix(first, :millisecond)

    x = fn at ->
      part = ((at - from) / (seconds * 1000)) |> max(0) |> min(1)
      left + part * (width - left - @right)
    end

    parts = if broad?, do: [0, 1, 2, 3, 4], else: [0, 2, 4]

    ticks =
      for part <- parts do
        time = DateTime.add(first, div(seconds * part, 4))
        place = x.(DateTime.to_unix(time, :millisecond))
        anchor = %{0 => "start", 4 => "end"}[part] || "middle"

        [
          line(place, head - 4, place, height, "grid"),
          text(place, 13, anchor, tick(time, seconds))
        ]
      end

    lines =
      for {{name, marks}, number} <- Enum.with_index(rows) do
        y = head + number * row
        name = text(@right, y + if(broad?, do: 17, else: 12), "start", shorten(name, broad?))
        marks = Enum.map(seen(marks, x), &mark(&1, x, y + if(broad?, do: 8, else: 17)))
        [name, marks]
      end

    place = x.(DateTime.to_unix(now, :millisecond))

    current =
      if DateTime.compare(now, first) != :lt and DateTime.compare(now, last) != :gt,
        do: line(place, head - 4, place, height, "now"),
        else: []

    svg(about, height, [ticks, lines, current], width)
  end

  # Of marks that look the same and lie on each other, the last one, which is on top.
  defp seen(marks, x) do
    place = fn at -> at && round(x.(at)) end

    marks
    |> Enum.reverse()
    |> Enum.uniq_by(&{place.(&1.from), place.(&1.to), &1.class})
    |> Enum.reverse()
  end

  defp mark(%{to: nil} = mark, x, y), do: dot(mark, x, y)

  defp mark(mark, x, y) do
    width = x.(mark.to) - x.(mark.from)

    if width < 8,
      do: dot(mark, x, y),
      else:
        rect(
          [x: x.(mark.from), y: y, width: width, height: 10, rx: 2, class: mark.class],
          mark.text
        )
  end

  defp dot(mark, x, y) do
    attributes = [cx: number(x.(mark.from)), cy: number(y + 5), r: 5, class: mark.class]
    tag(:circle, attributes, tag(:title, [], mark.text))
  end

  defp tick(time, seconds) when seconds <= 2 * 86_400, do: Calendar.strftime(time, "%a %H:%M")
  defp tick(time, _seconds), do: Calendar.strftime(time, "%m-%d %H:%M")

  @typedoc "A stage: its text, whether it was passed, and a note. `:open` was not reached."
  @type stage :: {String.t(), :pass | :fail | :open, String.t()}

  @doc "The stages of a decision, from the first to the last."
  @spec stages(about(), [stage()]) :: Html.safe()
  def stages(about, stages) do
    {row, box} = {64, 46}

    parts =
      for {{text, state, note}, number} <- Enum.with_index(stages) do
        y = 4 + number * row
        {sign, class} = sign(state)

        [
          if(number > 0, do: line(24, y - row + box, 24, y, "link"), else: []),
          rect([x: 4, y: y, width: @width - 8, height: box, rx: 6, class: "stage #{class}"], nil),
          text(24, y + 30, "middle", sign, "sign #{class}"),
          text(46, y + 19, "start", text, "strong"),
          text(46, y + 37, "start", shorten(note))
        ]
      end

    image = svg(about, row * length(stages) - (row - box) + 8, parts)
    tag(:figure, [class: "chart"], image)
  end

  # The sign tells the states apart without colour.
  defp sign(:pass), do: {"✓", "pass"}
  defp sign(:fail), do: {"✗", "fail"}
  defp sign(:open), do: {"–", "open"}

  defp svg(about, height, children, width \\ @width) do
    {title, description} = {about.id <> "-title", about.id <> "-description"}

    attributes = [
      viewBox: "0 0 #{width} #{number(height)}",
      role: "img",
      aria_labelledby: "#{title} #{description}"
    ]

    tag(:svg, attributes, [
      tag(:title, [id: title], about.title),
      tag(:desc, [id: description], about.description),
      children
    ])
  end

  defp rect(attributes, title) do
    attributes =
      for {name, value} <- attributes,
          do: {name, if(is_number(value), do: number(value), else: value)}

    tag(:rect, attributes, if(title, do: tag(:title, [], title), else: ""))
  end

  defp line(x1, y1, x2, y2, class) do
    attributes = [x1: number(x1), y1: number(y1), x2: number(x2), y2: number(y2), class: class]
    tag(:line, attributes, "")
  end

  defp text(x, y, anchor, text, class \\ nil) do
    attributes = [x: number(x), y: number(y), text_anchor: anchor, class: class]
    tag(:text, attributes, text)
  end

  # Text that is longer is only in the table.
  defp shorten(text, broad? \\ false) do
    most = if broad?, do: 26, else: 56
    if String.length(text) > most, do: String.slice(text, 0, most - 1) <> "…", else: text
  end

  defp number(number) when is_integer(number), do: Integer.to_string(number)
  defp number(number), do: :erlang.float_to_binary(number / 1, [:compact, decimals: 2])
end
