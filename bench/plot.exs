defmodule Bench.Plot do
  @moduledoc false
  # Plots of benches as SVG, for docs/images.

  @style """
  <style>
  text { font: 12px sans-serif; fill: #333 }
  line { stroke: #8886 }
  .faster { fill: #2a7ab8 }
  .slower { fill: #d2691e }
  polyline { fill: none; stroke: #2a7ab8; stroke-width: 2 }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } }
  </style>
  """

  @doc "A picture of that width and height."
  def svg(width, height, shapes) do
    """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" role="img">
    #{@style}#{Enum.join(shapes, "\n")}
    </svg>
    """
  end

  @columns 3
  @width 300
  @height 150
  @margin 40

  @doc """
  A panel for each row, `{name, [{size, value, label}]}`: how its value grows with the size. Both
  axes are logarithmic, and a step of ten is equally long on all vertical ones, so a flat line
  costs the same at every size.
  """
  def panels(title, rows) do
    panels =
      for {{name, points}, index} <- Enum.with_index(rows) do
        {left, top} = {rem(index, @columns) * @width, 30 + div(index, @columns) * @height}
        [text(left + 10, top + 14, "start", name) | panel(points, left, top)]
      end

    height = 30 + ceil(length(rows) / @columns) * @height
    shapes = [text(10, 18, "start", title) | List.flatten(panels)]
    svg(@columns * @width, height, shapes)
  end

  # Three steps of ten around the middle of the values.
  defp panel(points, left, top) do
    logs =
      for {size, value, _label} <- points, do: {:math.log10(size), :math.log10(max(value, 0.001))}

    {sizes, values} = Enum.unzip(logs)
    {first, last} = Enum.min_max(sizes)
    {low, high} = Enum.min_max(values)
    middle = (low + high) / 2
    span = max(3.0, high - low)
    across = (@width - 2 * @margin) / max(last - first, 1)
    x = fn size -> left + @margin + (size - first) * across end
    y = fn value -> top + @height / 2 + 5 - (value - middle) / span * (@height - 70) end

    line = Enum.map_join(logs, " ", fn {size, value} -> "#{at(x.(size))},#{at(y.(value))}" end)

    labels =
      for {{size, value}, {number, _value, label}} <- Enum.zip(logs, points) do
        [
          text(x.(size), y.(value) - 8, "middle", label),
          text(x.(size), top + @height - 12, "middle", "#{number}"),
          ~s(<circle class="faster" cx="#{at(x.(size))}" cy="#{at(y.(value))}" r="3"/>)
        ]
      end

    [~s(<polyline points="#{line}"/>) | labels]
  end

  defp text(x, y, anchor, text),
    do: ~s(<text x="#{at(x)}" y="#{at(y)}" text-anchor="#{anchor}">#{escape(text)}</text>)

  @doc "A number of an SVG."
  def at(number), do: :erlang.float_to_binary(number * 1.0, decimals: 1)

  @doc "A text of an SVG."
  def escape(text),
    do: text |> to_string() |> String.replace("&", "&amp;") |> String.replace("<", "&lt;")
end
