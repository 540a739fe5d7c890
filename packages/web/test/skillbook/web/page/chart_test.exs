defmodule Skillbook.Web.Page.ChartTest do
  use ExUnit.Case, async: true

  alias Skillbook.Test.HtmlChecker
  alias Skillbook.Web.Html
  alias Skillbook.Web.Page.Chart

  @about %{id: "c", title: "Title <b>", description: "Message & more"}

  defp elements(chart), do: chart |> Html.text() |> HtmlChecker.elements()

  defp named(elements, name),
    do: for({^name, attributes, children} <- elements, do: {attributes, children})

  defp number(text), do: text |> Float.parse() |> elem(0)

  test "a chart is an image with a title and a description" do
    for chart <- [
          Chart.bars(@about, [], []),
          Chart.bars(@about, ["a"], [{"1", [0]}]),
          Chart.time_line(
            @about,
            {~U[2026-03-01 00:00:00Z], ~U[2026-03-02 00:00:00Z]},
            ~U[2026-03-01 12:00:00Z],
            []
          ),
          Chart.stages(@about, [{"One", :pass, "note"}])
        ] do
      html = Html.text(chart)
      assert HtmlChecker.part(html) == []
      assert html =~ ~s(role="img" aria-labelledby="c-title c-description")

      assert html =~
               ~s(<title id="c-title">Title &lt;b&gt;</title>) <>
                 ~s(<desc id="c-description">Message &amp; more</desc>)

      refute html =~ "style"
    end
  end

  test "bars are as high as their values, one on the other" do
    chart = Chart.bars(@about, ["a", "b"], [{"Mon", [3, 1]}, {"Tue", [0, 2]}, {"Wed", [10, 0]}])

    bars =
      for {attributes, [{"title", _, [title]}]} <- chart |> elements() |> named("rect") do
        {title, attributes["class"], number(attributes["y"]), number(attributes["height"])}
      end

    # The scale goes to 10 in 138 units.
    assert bars == [
             {"Mon, a: 3", "series-0", 108.6, 41.4},
             {"Mon, b: 1", "series-1", 94.8, 13.8},
             {"Tue, b: 2", "series-1", 122.4, 27.6},
             {"Wed, a: 10", "series-0", 12.0, 138.0}
           ]
  end

  test "the scale ends at a round number above the highest bar" do
    for {highest, top} <- [
          {0, "2"},
          {1, "2"},
          {2, "2"},
          {3, "6"},
          {7, "10"},
          {10, "10"},
          {11, "20"},
          {480, "500"},
          {1_000_001, "2000000"}
        ] do
      texts =
        for {_, [text]} <-
              Chart.bars(@about, ["a"], [{"", [highest]}]) |> elements() |> named("text"),
            do: text

      assert {highest, Enum.at(texts, 2)} == {highest, top}
    end
  end

  test "marks that hide each other are one, with the text of the one on top" do
    {first, last} = {~U[2026-03-01 00:00:00Z], ~U[2026-03-02 00:00:00Z]}
    at = DateTime.to_unix(first, :millisecond) + 43_200_000

    marks =
      for {seconds, class, text} <- [
            {0, "good", "a"},
            {1, "good", "b"},
            {2, "bad", "c"},
            {3600, "good", "d"}
          ],
          do: %{from: at + seconds * 1000, to: nil, class: class, text: text}

    for chart <- Chart.time_line(@about, {first, last}, first, [{"x.run", marks}]) do
      dots =
        for {_attributes, [{"title", _, [text]}]} <- named(elements(chart), "circle"), do: text

      assert dots == ["b", "c", "d"]
    end
  end

  test "marks have their place in time, and none is outside" do
    {first, last} = {~U[2026-03-01 00:00:00Z], ~U[2026-03-02 00:00:00Z]}
    at = fn hour -> DateTime.to_unix(first, :millisecond) + hour * 3_600_000 end

    marks = [
      %{from: at.(0), to: at.(12), class: "mark good", text: "long"},
      %{from: at.(12), to: at.(12) + 1_000, class: "mark bad", text: "short"},
      %{from: at.(24), to: nil, class: "mark next", text: "point"},
      %{from: at.(-48), to: nil, class: "mark", text: "before"},
      %{from: at.(48), to: nil, class: "mark", text: "after"}
    ]

    # For narrow screens, and for broad ones.
    charts =
      Chart.time_line(@about, {first, last}, DateTime.add(first, 6 * 3600), [{"x.run", marks}])

    for {chart, {left, width, middle, right, now}} <-
          Enum.zip(charts, [
            {"8.0", "232.0", 240.0, 472.0, "124.0"},
            {"190.0", "401.0", 591.0, 992.0, "390.5"}
          ]) do
      elements = elements(chart)

      assert [{%{"x" => ^left, "width" => ^width, "class" => "mark good"}, _}] =
               named(elements, "rect")

      places =
        for {%{"cx" => place}, [{"title", _, [text]}]} <- named(elements, "circle"),
            do: {text, number(place)}

      first = number(left)
      assert places == [{"short", middle}, {"point", right}, {"before", first}, {"after", right}]

      assert [{%{"x1" => ^now}, _}] =
               for({%{"class" => "now"}, _} = line <- named(elements, "line"), do: line)
    end
  end

  test "stages differ by a sign, not only by a class" do
    stages = [{"A", :pass, ""}, {"B", :fail, "why"}, {"C", :open, String.duplicate("é", 80)}]

    texts =
      for {_, [text]} <- @about |> Chart.stages(stages) |> elements() |> named("text"), do: text

    long = String.duplicate("é", 55) <> "…"
    assert Enum.reject(texts, &(&1 == "")) == ["✓", "A", "✗", "B", "why", "–", "C", long]
  end
end
