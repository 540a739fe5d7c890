defmodule Skillbook.Web.Page.Skills do
  @moduledoc false
  # The list of skills and notes, and the page of each.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Entries, Entry, Layout, Report, Rights}

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
    writes? = Rights.check(request) == :ok

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
          switched(request, query),
          search_form(request, list, set),
          live(
            "list",
            "skills",
            [
              tag(:div, [class: "with-filters"], [
                tag(:section, [aria_label: "Results"], [
                  summary(request, list, set, total),
                  entries(request, rows, list, if(writes?, do: query)),
                  pages(request, ["skills"], set, at, pages)
                ]),
                filters(request, list, set)
              ])
            ],
            announce: count(total, "entry", "entries")
          )
        ],
        section: :skills,
        actions: if(writes?, do: actions(request))
      )
    end
  end

  defp json(row) do
    snippet = with {text, _highlights} <- row.snippet, do: text
    %{row | snippet: snippet} |> Map.drop([:stored?, :switch?])
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

  defp entries(_request, [], %{query: "", chosen: chosen}, _query) when chosen == %{},
    do: empty("There are no skills and notes that you may see.")

  defp entries(request, [], _list, _query) do
    empty([
      "Nothing matches. ",
      tag(:a, [href: Layout.path(request, ["skills"])], "Show all entries")
    ])
  end

  defp entries(request, rows, _list, query) do
    rows = for(row <- rows, do: tag(:li, [], entry(request, row, query)))
    tag(:ul, [class: "entries"], rows)
  end

  defp entry(request, row, query) do
    [
      tag(:div, [class: "entry-head"], [
        tag(:p, [class: "entry-name"], [
          tag(:a, [href: Layout.path(request, ["skills", row.name])], row.name),
          if(row.title not in [nil, row.name], do: tag(:span, [class: "entry-title"], row.title))
        ]),
        tag(:p, [class: "entry-marks"], marks(row)),
        if(row.switch? and query != nil, do: switch(request, row, query), else: state(row))
      ]),
      tag(:p, [class: "entry-text"], excerpt(row))
    ]
  end

  # The switch

  # Fields of the query that a list keeps when one of its entries is switched.
  @kept ["q", "page"] ++ for({key, _label} <- Entries.facets(), do: Atom.to_string(key))

  defp switch(request, row, query) do
    action = if row.enabled, do: "disable", else: "enable"
    list = query |> Map.take(@kept) |> Enum.filter(&is_binary(elem(&1, 1))) |> URI.encode_query()

    button =
      tag(
        :button,
        [
          type: "submit",
          role: "switch",
          id: switch_id(row.name),
          class: "switch",
          aria_checked: to_string(row.enabled)
        ],
        [tag(:span, [class: "hidden"], row.name), shown_state(row)]
      )

    list = tag(:input, type: "hidden", name: "list", value: list)
    form(request, ["skills", row.name, action], [list, button], class: "entry-state")
  end

  # A file's entry is changed in its file, and always on.
  defp state(row), do: tag(:p, [class: "entry-state"], [hidden("State: "), on(row)])

  defp shown_state(row), do: tag(:span, [aria_hidden: "true"], on(row))
  defp hidden(text), do: tag(:span, [class: "hidden"], text)
  defp on(row), do: if(row.enabled, do: "On", else: "Off")

  # A name may have characters that no id has.
  defp switch_id(name), do: "switch-" <> Base.url_encode64(name, padding: false)

  @doc "The address of a list after one of its entries was switched. `list` is its query."
  @spec after_switch(Request.t(), String.t(), String.t(), String.t()) :: String.t()
  def after_switch(request, list, name, done) do
    kept = %{request | query: list} |> Request.query() |> Map.take(@kept)
    kept = Enum.filter(kept, &is_binary(elem(&1, 1)))
    query = kept ++ [done: done, name: name]
    Request.path(request, ["skills"], query) <> "#" <> switch_id(name)
  end

  # The answer to a switch. The entry need not be in the list any more.
  defp switched(request, %{"done" => done, "name" => name})
       when done in ["enabled", "disabled"] and is_binary(name) do
    if Entry.known?(request, name), do: done("#{name}: #{Entry.answer(done)}")
  end

  defp switched(_request, _query), do: nil

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
      badge(written(row)),
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

  # An entry of the store has an author of a kind. A file has a source, and may name anybody.
  @max_author 60

  defp written(%{by: nil, author: nil} = row), do: row.source

  defp written(%{by: nil} = row),
    do: [row.source, ", by ", String.slice(row.author, 0, @max_author)]

  defp written(%{author: ""} = row), do: Atom.to_string(row.by)
  defp written(row), do: [Atom.to_string(row.by), ": ", String.slice(row.author, 0, @max_author)]

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
