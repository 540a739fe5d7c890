defmodule Skillbook.Web.Page.Skills do
  @moduledoc false
  # The list of skills, notes and commands: one's own first, the built-in ones behind a switch.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Entries, Entry, Excerpt, Files, Layout, Report, Rights}

  # Fields of the query that a list keeps when one of its entries is switched.
  @kept ["q", "page", "builtin"] ++
          for({key, _label} <- Entries.facets(), do: Atom.to_string(key))

  @on_page 50
  # Values of a filter before the rest is folded.
  @few 10

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
        builtin: list.builtin,
        filters: Map.new(list.counts, fn {key, counts} -> {key, Map.new(counts)} end)
      })
    else
      set = set(list)

      Layout.page(
        request,
        "Skills",
        [
          switched(request, query),
          search_form(request, list, set),
          live(
            "list",
            "skills",
            [
              tag(:div, [class: if(facets(list) != [], do: "with-filters")], [
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
  defp set(%{query: text, chosen: chosen} = list) do
    set = Map.new(chosen, fn {key, value} -> {to_string(key), value} end)
    set = if text == "", do: set, else: Map.put(set, "q", text)
    if list.builtin? and text == "", do: Map.put(set, "builtin", "1"), else: set
  end

  defp actions(request) do
    [
      tag(:a, [class: "button", href: Layout.path(request, ["import"])], "Import"),
      if(request.caller.operator? and Files.folder(request) != nil,
        do: tag(:a, [class: "button", href: Layout.path(request, ["new", "file"])], "New file")
      ),
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
        tag(:label, [for: "q", class: "hidden"], "Search skills"),
        tag(:input,
          type: "search",
          id: "q",
          name: "q",
          value: list.query,
          placeholder: "Search",
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
      if(total > 0 or set != %{}, do: tag(:p, [], count(total, "entry", "entries"))),
      builtin(request, list, set),
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
      if(facets(list) != [], do: tag(:a, [class: "to-filters", href: "#filters"], "Filters"))
    ])
  end

  # The switch of the built-in entries. A search has them anyway.
  defp builtin(_request, %{builtin: 0}, _set), do: nil
  defp builtin(_request, %{query: text}, _set) when text != "", do: nil

  defp builtin(request, list, set) do
    {set, text, pressed} =
      if list.builtin?,
        do: {Map.delete(set, "builtin"), "Hide built-in", "true"},
        else: {Map.put(set, "builtin", "1"), "Show #{number(list.builtin)} built-in", nil}

    href = Layout.path(request, ["skills"], set)
    tag(:a, [class: "builtin", href: href, aria_current: pressed], text)
  end

  defp entries(request, [], %{query: "", chosen: chosen} = list, query) when chosen == %{} do
    empty([
      tag(:strong, [], "No skills yet"),
      tag(:p, [], "A skill is a page of Markdown that tells the assistant how to do something."),
      tag(:p, [class: "buttons"], [
        if(query,
          do: tag(:a, [class: "button primary", href: Layout.path(request, ["new"])], "New skill")
        ),
        if(list.builtin > 0,
          do:
            tag(
              :a,
              [class: "button", href: Layout.path(request, ["skills"], builtin: 1)],
              "Show #{number(list.builtin)} built-in"
            )
        )
      ])
    ])
  end

  defp entries(request, [], _list, _query) do
    empty([
      tag(:p, [], "Nothing matches."),
      tag(:a, [class: "button", href: Layout.path(request, ["skills"])], "Show all")
    ])
  end

  defp entries(request, rows, _list, query) do
    kept = query && query |> Map.take(@kept) |> Enum.filter(&is_binary(elem(&1, 1)))
    list = kept && URI.encode_query(kept)
    rows = for(row <- rows, do: tag(:li, [], entry(request, row, list)))
    tag(:ul, [class: "entries"], rows)
  end

  # A kind, a state and a source look each like themselves: a tinted word, a badge, plain text.
  defp entry(request, row, list) do
    [
      kind(row.kind),
      tag(:div, [class: "entry-main"], [
        tag(:p, [class: "entry-name"], [
          tag(:a, [href: Layout.path(request, ["skills", row.name])], row.name),
          if(row.title not in [nil, row.name], do: tag(:span, [class: "entry-title"], row.title))
        ]),
        tag(:p, [class: "entry-text"], excerpt(row))
      ]),
      tag(:p, [class: "entry-mark"], mark(row)),
      tag(:p, [class: "entry-by"], written(row)),
      if(row.switch? and list != nil, do: switch(request, row, list), else: state(row))
    ]
  end

  # One state of a row; the switch shows whether it is off.
  defp mark(%{trust: :low}), do: badge("low trust", :warn)
  defp mark(%{schedule: schedule}) when schedule != nil, do: badge("scheduled", :info)
  defp mark(_row), do: nil

  # The switch

  defp switch(request, row, list) do
    action = if row.enabled, do: "disable", else: "enable"

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

  defp excerpt(%{snippet: {text, highlights}}) when text != "" do
    for part <- Excerpt.sentence(text, highlights) do
      case part do
        {:mark, text} -> tag(:mark, [], text)
        text -> text
      end
    end
  end

  defp excerpt(%{description: text}), do: String.slice(text, 0, 300)

  # An entry of the store has an author of a kind. A file has a source, and may name anybody.
  @max_author 60

  defp written(%{by: nil, author: nil} = row), do: row.source

  defp written(%{by: nil} = row),
    do: [row.source, ", by ", String.slice(row.author, 0, @max_author)]

  defp written(%{author: ""} = row), do: Atom.to_string(row.by)
  defp written(row), do: [Atom.to_string(row.by), ": ", String.slice(row.author, 0, @max_author)]

  # Those that would change the list.
  defp facets(list) do
    for {key, label} <- Entries.facets(),
        counts = list.counts[key],
        length(counts) > 1 or list.chosen[key],
        do: {key, label, counts}
  end

  defp filters(request, list, set) do
    facets = facets(list)

    if facets != [] do
      tag(:aside, [id: "filters", class: "filters", aria_label: "Filters"], [
        tag(:h2, [], "Filters"),
        for {key, label, counts} <- facets do
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
