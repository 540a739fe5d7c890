defmodule Skillbook.Web.Page.Skills do
  @moduledoc false
  # The list of skills and notes, and the page of each.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Entries, Layout, Report, Rights}

  @on_page 50
  # Values of a filter before the rest is folded.
  @few 10

  @doc "The first page leads to the list."
  def home(request, _values), do: Response.redirect(303, Layout.path(request, ["skills"]))

  @doc "The list, searched and filtered by the query."
  def index(request, _values) do
    query = Request.query(request)
    list = request |> Caller.view() |> Entries.read(query, @on_page)
    %{rows: rows, total: total, page: at, pages: pages} = list

    if Request.wants_json?(request) do
      Response.json(200, %{
        entries: Enum.map(rows, &json/1),
        total: total,
        page: at,
        pages: pages,
        filters: Map.new(list.counts, fn {key, counts} -> {key, Map.new(counts)} end)
      })
    else
      set = set(list)

      Layout.page(
        request,
        "Skills and notes",
        [
          search_form(request, list, set),
          live(
            "list",
            "skills",
            [
              tag(:div, [class: "with-filters"], [
                tag(:section, [aria_label: "Results"], [
                  summary(request, list, set, total),
                  entries(request, rows, list),
                  pages(request, ["skills"], set, at, pages)
                ]),
                filters(request, list, set)
              ])
            ],
            announce: count(total, "entry", "entries")
          )
        ],
        section: :skills,
        actions: if(Rights.check(request) == :ok, do: actions(request))
      )
    end
  end

  defp json(row) do
    snippet = with {text, _highlights} <- row.snippet, do: text
    %{row | snippet: snippet} |> Map.delete(:stored?)
  end

  # The fields of the query that choose the list, for links.
  defp set(%{query: "", chosen: chosen}), do: Map.new(chosen, fn {k, v} -> {to_string(k), v} end)
  defp set(%{query: text} = list), do: Map.put(set(%{list | query: ""}), "q", text)

  defp actions(request) do
    [
      tag(:a, [class: "button", href: Layout.path(request, ["import"])], "Import"),
      tag(:a, [class: "button primary", href: Layout.path(request, ["new"])], "New")
    ]
  end

  defp search_form(request, list, set) do
    tag(
      :form,
      [
        role: "search",
        class: "search",
        method: "get",
        action: Request.path(request, ["skills"]),
        data_search: "list"
      ],
      [
        tag(:label, [for: "q", class: "hidden"], "Search skills and notes"),
        tag(:input,
          type: "search",
          id: "q",
          name: "q",
          value: list.query,
          placeholder: "Search names, descriptions and texts",
          autocomplete: "off",
          aria_keyshortcuts: "/"
        ),
        for {name, value} <- Map.delete(set, "q") do
          tag(:input, type: "hidden", name: name, value: value)
        end,
        Report.keep_as(request),
        tag(:button, [type: "submit"], "Search")
      ]
    )
  end

  defp summary(request, list, set, total) do
    tag(:div, [class: "summary"], [
      tag(:p, [], count(total, "entry", "entries")),
      for {key, label} <- Entries.facets(), value = list.chosen[key] do
        href = Layout.path(request, ["skills"], Map.delete(set, to_string(key)))

        tag(
          :a,
          [class: "chosen", href: href, aria_label: "Remove the filter #{label}: #{value}"],
          [
            "#{label}: ",
            value,
            tag(:span, [aria_hidden: "true"], " ×")
          ]
        )
      end,
      tag(:a, [class: "to-filters", href: "#filters"], "Filters")
    ])
  end

  defp entries(_request, [], %{query: "", chosen: chosen}) when chosen == %{},
    do: empty("There are no skills and notes that you may see.")

  defp entries(request, [], _list) do
    empty([
      "Nothing matches. ",
      tag(:a, [href: Layout.path(request, ["skills"])], "Show all entries")
    ])
  end

  defp entries(request, rows, _list),
    do: tag(:ul, [class: "entries"], for(row <- rows, do: tag(:li, [], entry(request, row))))

  defp entry(request, row) do
    [
      tag(:div, [class: "entry-head"], [
        tag(:p, [class: "entry-name"], [
          tag(:a, [href: Layout.path(request, ["skills", row.name])], row.name),
          if(row.title not in [nil, row.name], do: tag(:span, [class: "entry-title"], row.title))
        ]),
        tag(:p, [class: "entry-marks"], marks(row))
      ]),
      tag(:p, [class: "entry-text"], excerpt(row))
    ]
  end

  defp excerpt(%{snippet: {text, highlights}}) when text != "",
    do: highlighted(text, 0, highlights)

  defp excerpt(%{description: text}), do: String.slice(text, 0, 300)

  defp highlighted(text, from, [{at, length} | rest]) do
    [
      binary_part(text, from, at - from),
      tag(:mark, [], binary_part(text, at, length)),
      highlighted(text, at + length, rest)
    ]
  end

  defp highlighted(text, from, []), do: binary_part(text, from, byte_size(text) - from)

  defp marks(row) do
    [
      badge(Atom.to_string(row.kind)),
      badge(row.source),
      unless(row.enabled, do: badge("disabled", :warn)),
      if(row.trust == :low, do: badge("low trust", :warn)),
      if(row.schedule, do: badge("scheduled", :info)),
      for(label <- Enum.take(row.labels, 8), do: badge(["label: ", label], :info)),
      for(tag <- Enum.take(row.tags, 8), do: badge(["#", tag])),
      with at when at != nil <- row.updated_at do
        tag(:span, [class: "entry-time"], ["changed ", time(at)])
      end
    ]
  end

  defp filters(request, list, set) do
    tag(:aside, [id: "filters", class: "filters", aria_label: "Filters"], [
      tag(:h2, [], "Filters"),
      for {key, label} <- Entries.facets(),
          counts = list.counts[key],
          length(counts) > 1 or list.chosen[key] do
        {few, more} = Enum.split(counts, @few)

        tag(:details, [open: true], [
          tag(:summary, [], label),
          tag(:ul, [], Enum.map(few, &filter(request, key, &1, list, set))),
          if more != [] do
            tag(:details, [class: "more"], [
              tag(:summary, [], "#{length(more)} more"),
              tag(
                :ul,
                [],
                more |> Enum.take(500) |> Enum.map(&filter(request, key, &1, list, set))
              )
            ])
          end
        ])
      end
    ])
  end

  defp filter(request, key, {value, count}, list, set) do
    chosen? = list.chosen[key] == value
    name = to_string(key)
    query = if chosen?, do: Map.delete(set, name), else: Map.put(set, name, value)

    tag(:li, [], [
      tag(
        :a,
        [href: Layout.path(request, ["skills"], query), aria_current: if(chosen?, do: "true")],
        [
          tag(:span, [], value),
          tag(:span, [class: "count"], number(count))
        ]
      )
    ])
  end
end
