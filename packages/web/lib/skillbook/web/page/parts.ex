defmodule Skillbook.Web.Page.Parts do
  @moduledoc false
  # The parts that pages are made of: regions that are updated, forms with their errors, lists,
  # badges, tables, times and diffs.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]

  alias Skillbook.Web.{Html, Request}
  alias Skillbook.Web.Page.Layout

  @doc """
  A region that the script replaces by the same region of the page, fetched again, when `/events`
  names one of the topics. `:announce` is read to users of screen readers afterwards.
  """
  @spec live(String.t(), String.t() | [String.t()], Html.content(), keyword()) :: Html.safe()
  def live(id, topics, content, options \\ []) do
    attributes = [id: id, data_live: List.wrap(topics), data_announce: options[:announce]]
    tag(:div, attributes, content)
  end

  @doc "A short mark. `kind` is `:plain`, `:good`, `:warn`, `:bad` or `:info`."
  @spec badge(Html.content(), atom()) :: Html.safe()
  def badge(text, kind \\ :plain), do: tag(:span, [class: ["badge", "badge-#{kind}"]], text)

  @doc "The kind of an entry."
  @spec kind(atom()) :: Html.safe()
  def kind(kind), do: tag(:span, [class: ["kind", "kind-#{kind}"]], Atom.to_string(kind))

  @doc "A time, to the minute and in UTC; the exact one is its attribute."
  @spec time(DateTime.t() | nil) :: Html.content()
  def time(nil), do: nil

  def time(%DateTime{} = time) do
    <<date::binary-size(10), "T", minute::binary-size(5), _::binary>> =
      exact = DateTime.to_iso8601(time)

    tag(:time, [datetime: exact], "#{date} #{minute} UTC")
  end

  @doc ~S"""
  The same in few characters: the time of day if it is within a day of `now`, else the date too.

      iex> alias Skillbook.Web.{Html, Page.Parts}
      iex> now = ~U[2026-11-28 15:14:00Z]
      iex> for time <- [~U[2026-11-29 02:00:00Z], ~U[2026-12-01 07:00:00Z]] do
      ...>   Html.text(Parts.short_time(time, now)) =~ ">02:00 UTC<"
      ...> end
      [true, false]
  """
  @spec short_time(DateTime.t(), DateTime.t()) :: Html.safe()
  def short_time(time, now) do
    near? = abs(DateTime.diff(time, now)) < 86_400
    format = if near?, do: "%H:%M UTC", else: "%a %d %b, %H:%M UTC"
    tag(:time, [datetime: DateTime.to_iso8601(time)], Calendar.strftime(time, format))
  end

  @doc """
  A table with a caption and named columns, which narrow screens show as a list. A row is a list
  of cells; the first one is its header.
  """
  @spec table(String.t(), [String.t()], [[Html.content()]], keyword()) :: Html.safe()
  def table(caption, columns, rows, options \\ []) do
    head = for column <- columns, do: tag(:th, [scope: "col", role: "columnheader"], column)

    # A table of many columns becomes a list earlier.
    many = if length(columns) > 5, do: "many"

    tag(:table, [class: ["cards", many, options[:class]], role: "table"], [
      tag(:caption, [class: if(options[:hide_caption], do: "hidden")], caption),
      tag(:thead, [role: "rowgroup"], tag(:tr, [role: "row"], head)),
      tag(:tbody, [role: "rowgroup"], Enum.map(rows, &row(columns, &1)))
    ])
  end

  defp row(columns, cells) do
    cells =
      for {{column, cell}, at} <- Enum.with_index(Enum.zip(columns, cells)) do
        # In a list the name of a column stands before its cell, unless that is empty.
        attributes = [data_column: if(at > 0 and cell not in [nil, false, "", []], do: column)]

        if at == 0,
          do: tag(:th, [scope: "row", role: "rowheader"] ++ attributes, cell),
          else: tag(:td, [role: "cell"] ++ attributes, cell)
      end

    tag(:tr, [role: "row"], cells)
  end

  @doc """
  A list of names and values; those without a value are left out. A long value is
  `{name, value, :wide}`.
  """
  @spec facts([{String.t(), Html.content()} | {String.t(), Html.content(), :wide}]) :: Html.safe()
  def facts(facts),
    do:
      tag(
        :dl,
        [class: "facts"],
        for(fact <- facts, elem(fact, 1) not in [nil, [], "", false], do: fact(fact))
      )

  defp fact({name, value}), do: tag(:div, [], [tag(:dt, [], name), tag(:dd, [], value)])

  defp fact({name, value, :wide}),
    do: tag(:div, [class: "wide"], [tag(:dt, [], name), tag(:dd, [], value)])

  @doc "The notice that something has been done."
  @spec done(String.t()) :: Html.safe()
  def done(text), do: tag(:div, [class: "notice good", role: "status"], tag(:p, [], text))

  @doc "A form with the method POST and the field that protects it from forgery."
  @spec form(Request.t(), [String.t()], Html.content(), keyword()) :: Html.safe()
  def form(request, segments, content, attributes \\ []) do
    action = Request.path(request, segments)
    tag(:form, [method: "post", action: action] ++ attributes, [Layout.csrf(request), content])
  end

  @doc "A form that is only a button."
  @spec button(Request.t(), [String.t()], Html.content(), keyword()) :: Html.safe()
  def button(request, segments, text, options \\ []) do
    fields =
      for {name, value} <- options[:fields] || [],
          do: tag(:input, type: "hidden", name: name, value: value)

    button = tag(:button, [type: "submit", class: options[:class]], text)
    form(request, segments, [fields, button], class: "inline")
  end

  @doc """
  A field of a form with its label, help and error. `input` is a function of the attributes that
  tie the input to them.
  """
  @spec field(String.t(), String.t(), keyword(), (keyword() -> Html.content())) :: Html.safe()
  def field(name, label, options, input) do
    {help, error} = {options[:help], options[:error]}
    id = "field-" <> name

    described = [if(help, do: id <> "-help"), if(error, do: id <> "-error")] |> Enum.filter(& &1)

    attributes = [
      id: id,
      name: name,
      required: options[:required],
      aria_invalid: if(error, do: "true"),
      aria_describedby: if(described != [], do: described)
    ]

    tag(:div, [class: ["field", error && "wrong", options[:wide] && "wide"]], [
      tag(:label, [for: id], [label, unless(options[:required], do: optional(options))]),
      help && tag(:p, [class: "help", id: id <> "-help"], help),
      error && tag(:p, [class: "error", id: id <> "-error"], error),
      input.(attributes)
    ])
  end

  defp optional(options),
    do: if(options[:optional], do: [" ", tag(:span, [class: "help"], "(optional)")])

  @doc "A field of one line."
  @spec text_field(String.t(), String.t(), String.t() | nil, keyword()) :: Html.safe()
  def text_field(name, label, value, options \\ []) do
    field(name, label, options, fn attributes ->
      more = ~w(list maxlength autocomplete autofocus spellcheck placeholder)a
      tag(:input, [type: "text", value: value] ++ attributes ++ Keyword.take(options, more))
    end)
  end

  @doc "A field of several lines."
  @spec text_area(String.t(), String.t(), String.t() | nil, keyword()) :: Html.safe()
  def text_area(name, label, value, options \\ []) do
    field(name, label, options, fn attributes ->
      more = [rows: options[:rows] || 6, spellcheck: options[:spellcheck], class: options[:class]]
      tag(:textarea, attributes ++ more, value || "")
    end)
  end

  @doc "A choice of `{value, text}`."
  @spec choice(String.t(), String.t(), String.t() | nil, [{String.t(), String.t()}], keyword()) ::
          Html.safe()
  def choice(name, label, chosen, items, options \\ []) do
    field(name, label, options, fn attributes ->
      tag(
        :select,
        attributes,
        for {value, text} <- items do
          tag(:option, [value: value, selected: value == chosen], text)
        end
      )
    end)
  end

  @doc "A box to tick; its value is `1`."
  @spec checkbox(String.t(), Html.content(), boolean(), keyword()) :: Html.safe()
  def checkbox(name, label, checked?, options \\ []) do
    id = "field-" <> name

    tag(:div, [class: "field check"], [
      tag(:input,
        type: "checkbox",
        id: id,
        name: name,
        value: options[:value] || "1",
        checked: checked?
      ),
      tag(:label, [for: id], label)
    ])
  end

  @doc """
  A summary of the errors of a form: each `{field, text}` links to its field; a field that is
  `nil` means the whole form. `nil` without errors.
  """
  @spec errors([{String.t() | nil, String.t()}]) :: Html.content()
  def errors([]), do: nil

  def errors(errors) do
    items =
      for {field, text} <- errors do
        text = sentence(text)
        tag(:li, [], if(field, do: tag(:a, [href: "#field-" <> field], text), else: text))
      end

    alert([tag(:h2, [], "Nothing was saved"), tag(:ul, [], items)])
  end

  @doc "The message of an error above a page."
  @spec failure(String.t()) :: Html.safe()
  def failure(text), do: alert(tag(:p, [], sentence(text)))

  @doc "A notice that gets the focus. `kind` is `:bad` or `:warn`."
  @spec alert(Html.content(), atom()) :: Html.safe()
  def alert(content, kind \\ :bad) do
    attributes = [class: "notice #{kind}", role: "alert", tabindex: "-1", data_focus: true]
    tag(:div, attributes, content)
  end

  @doc ~S"""
  A message of an error as a sentence.

      iex> Skillbook.Web.Page.Parts.sentence("expected a title, got: \"\"")
      "Expected a title, got: \"\"."
  """
  @spec sentence(String.t()) :: String.t()
  def sentence(text) do
    # A name at the beginning stays as it is.
    text =
      if text =~ ~r/\A[a-z]+[ ,:]/,
        do: String.replace(text, ~r/\A./, &String.upcase/1),
        else: text

    text <> if(text =~ ~r/[.!?:]\z/, do: "", else: ".")
  end

  @doc "The lines of a unified diff; a text without changes if it is empty."
  @spec diff(String.t(), String.t()) :: Html.safe()
  def diff("", label), do: tag(:p, [class: "help"], "#{label}: no changes.")

  def diff(text, label) do
    lines = text |> String.split("\n") |> drop_last_empty()

    tag(:figure, [class: "diff"], [
      tag(:figcaption, [], [label, " ", counts(lines)]),
      tag(:pre, [tabindex: "0"], Enum.map(lines, &diff_line/1))
    ])
  end

  defp drop_last_empty(lines),
    do: if(List.last(lines) == "", do: Enum.drop(lines, -1), else: lines)

  defp counts(lines) do
    {added, removed} =
      {Enum.count(lines, &match?("+" <> _, &1)), Enum.count(lines, &match?("-" <> _, &1))}

    tag(:span, [class: "help"], "#{added} added, #{removed} removed")
  end

  # The sign stays in the text, so that the color is not the only mark.
  defp diff_line("+" <> _ = line), do: [tag(:ins, [], line), "\n"]
  defp diff_line("-" <> _ = line), do: [tag(:del, [], line), "\n"]
  defp diff_line("@@" <> _ = line), do: [tag(:span, [class: "hunk"], line), "\n"]
  defp diff_line(line), do: [line, "\n"]

  @doc "Links to the pages of a list. `at` is the number of the page, from 1."
  @spec pages(Request.t(), [String.t()], map(), pos_integer(), pos_integer()) :: Html.content()
  def pages(_request, _segments, _query, _at, 1), do: nil

  def pages(request, segments, query, at, count) when is_integer(at) and is_integer(count) do
    to = fn number -> Layout.path(request, segments, Map.put(query, "page", number)) end

    tag(:nav, [class: "pages", aria_label: "Pages"], [
      if(at > 1, do: tag(:a, [href: to.(at - 1), rel: "prev"], "Previous")),
      tag(:span, [], "Page #{at} of #{count}"),
      if(at < count, do: tag(:a, [href: to.(at + 1), rel: "next"], "Next"))
    ])
  end

  @doc "The link to the next page of a list, after the last one shown."
  @spec further(Request.t(), String.t() | [String.t()], String.t() | pos_integer() | nil, text) ::
          Html.content()
        when text: String.t()
  def further(request, list, last, text \\ "Older")
  def further(_request, _list, nil, _text), do: nil

  def further(request, list, last, text),
    do: tag(:p, [], tag(:a, [href: Layout.path(request, List.wrap(list), after: last)], text))

  @doc ~S"""
  A number with its noun.

      iex> Skillbook.Web.Page.Parts.count(1, "entry", "entries")
      "1 entry"
      iex> Skillbook.Web.Page.Parts.count(10_000, "entry", "entries")
      "10,000 entries"
  """
  @spec count(non_neg_integer(), String.t(), String.t()) :: String.t()
  def count(1, one, _more), do: "1 " <> one
  def count(number, _one, more), do: number(number) <> " " <> more

  @doc "An integer with a comma between its thousands."
  @spec number(non_neg_integer()) :: String.t()
  def number(number) do
    number
    |> Integer.digits()
    |> Enum.reverse()
    |> Enum.chunk_every(3)
    |> Enum.map_join(",", &Enum.join/1)
    |> String.reverse()
  end

  @doc "The text in place of an empty list."
  @spec empty(Html.content()) :: Html.safe()
  def empty(content), do: tag(:div, [class: "empty"], content)

  @doc "The same with a link that leads on."
  @spec empty(Request.t(), Html.content(), {String.t(), [String.t()]}) :: Html.safe()
  def empty(request, text, {label, segments}) do
    link = tag(:a, [class: "button", href: Layout.path(request, segments)], label)
    empty([tag(:p, [], text), link])
  end

  @doc "The text in place of an empty list beside others, in one line."
  @spec none(Html.content()) :: Html.safe()
  def none(text), do: tag(:p, [class: "calm"], text)
end
