defmodule Skillbook.Web.Page.Prompt do
  @moduledoc false
  # The system prompt of a profile: its sections with their sizes, the lines that a limit omits,
  # and the difference to the prompt before.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Cache
  alias Skillbook.Support.{Diff, Number}
  alias Skillbook.Usage.MostRun
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Parts, Shown}
  alias Skillbook.{Book, Prompt, View}

  @max_tokens 1_000_000
  # Lines of a section that were cut, in a page. The JSON has all of them.
  @max_lines 400
  # Bytes of a section in a page.
  @max_text 100_000

  def show(request, _values) do
    view = Caller.view(request)
    options = options(request)
    made = made(view, options)
    now = view |> Book.of!() |> Book.now()
    earlier = Shown.put(view, options, made.text, now)

    data = %{
      profile: view.profile.id,
      format: format(options),
      max_tokens: options[:max_tokens],
      tokens: made.tokens,
      characters: made.characters,
      digest: made.digest,
      sections: made.sections,
      earlier: earlier && difference(view, earlier, made),
      text: made.text
    }

    if Request.wants_json?(request),
      do: Response.json(200, %{data | sections: Enum.map(data.sections, &json/1)}),
      else: reply(request, data, :try, :prompt, "Prompt", fn -> content(request, data) end)
  end

  # All of it grows with the catalog, so it is made once for what it depends on. Long texts are
  # kept as binaries, which are not copied.
  defp made(view, options) do
    key = {:prompt, View.state(view), view.profile.writes, MostRun.names(view), options}

    Cache.keep(view.book, key, fn ->
      %{text: text, parts: parts} = Prompt.parts(view, options)

      %{
        text: text,
        tokens: Prompt.tokens(text),
        characters: count(text, 0),
        digest: :sha256 |> :crypto.hash(text) |> Base.encode16(case: :lower),
        sections: Enum.map(parts, &section/1)
      }
    end)
  end

  defp section(part) do
    {shown, more} = Enum.split(part.cut, @max_lines)

    %{
      section: part.section,
      tokens: part.tokens,
      bytes: byte_size(part.text),
      text: beginning(part.text),
      cut: length(part.cut),
      cut_lines: [Enum.join(shown, "\n"), Enum.join(more, "\n")]
    }
  end

  defp json(%{cut: 0} = part), do: %{Map.drop(part, [:text, :cut_lines]) | cut: []}

  defp json(part) do
    lines = part.cut_lines |> Enum.reject(&(&1 == "")) |> Enum.join("\n") |> String.split("\n")
    %{Map.drop(part, [:text, :cut_lines]) | cut: lines}
  end

  # As limits count them.
  defp count(<<_::utf8, rest::binary>>, count), do: count(rest, count + 1)
  defp count(<<>>, count), do: count

  defp beginning(text) when byte_size(text) <= @max_text, do: text

  defp beginning(text) do
    with {_incomplete, whole, _rest} <-
           text |> binary_part(0, @max_text) |> :unicode.characters_to_binary(),
         do: whole
  end

  defp difference(view, %{at: at, text: text}, made) do
    key = {:prompt_difference, View.state(view), at, made.digest}
    difference = fn -> Diff.unified(text, made.text) end
    %{at: at, difference: Cache.keep(view.book, key, difference)}
  end

  # A limit that is no number is none, as in an empty field.
  defp options(request) do
    format =
      Enum.find(Prompt.formats(), :default, &(Atom.to_string(&1) == field(request, "format_of")))

    limit =
      case Number.integer(field(request, "max_tokens")) do
        {limit, ""} when limit in 1..@max_tokens -> [max_tokens: limit]
        _none -> []
      end

    if format == :tools, do: [protocol: :tools] ++ limit, else: [format: format] ++ limit
  end

  defp format(options), do: if(options[:protocol] == :tools, do: :tools, else: options[:format])

  defp content(request, data) do
    [
      form(request, data),
      if(data.sections == [],
        do:
          Parts.empty(
            request,
            "The prompt is empty: this profile sees nothing that a model may use.",
            {"Open the skills", ["skills"]}
          ),
        else: [summary(data), sizes(data), cut(data), difference(data), texts(data)]
      )
    ]
  end

  defp form(request, data) do
    query_form(request, ["prompt"], [
      select(
        "format_of",
        "Format",
        "#{data.format}",
        for(format <- Prompt.formats(), do: {"#{format}", "#{format}"})
      ),
      pair(
        "max_tokens",
        "Limit in tokens",
        tag(
          :input,
          id: "max_tokens",
          name: "max_tokens",
          type: "number",
          min: 1,
          max: @max_tokens,
          value: data.max_tokens,
          placeholder: "none"
        )
      )
    ])
  end

  defp summary(data) do
    Parts.live("summary", "skills", [
      tag(:p, [class: "lead"], [
        tag(:strong, [], tokens(data.tokens)),
        ", estimated, in #{Parts.count(data.characters, "character", "characters")} for the ",
        "profile ",
        tag(:strong, [], data.profile),
        ". ",
        left_out(cut_count(data), data.max_tokens)
      ])
    ])
  end

  defp left_out(_count, nil), do: nil
  defp left_out(0, _limit), do: "The limit leaves out nothing."
  defp left_out(count, _limit), do: "The limit leaves out #{lines(count)}."

  defp tokens(count), do: Parts.count(count, "token", "tokens")
  defp lines(count), do: Parts.count(count, "line", "lines")

  defp cut_count(data), do: data.sections |> Enum.map(& &1.cut) |> Enum.sum()

  defp sizes(data) do
    total = data.sections |> Enum.map(& &1.tokens) |> Enum.sum()

    rows =
      for part <- data.sections do
        [
          name(part.section),
          tokens(part.tokens),
          [
            tag(
              :meter,
              [min: 0, max: max(total, 1), value: part.tokens, aria_hidden: "true"],
              ""
            ),
            " #{div(part.tokens * 100, max(total, 1))} %"
          ],
          if(part.cut == 0, do: "–", else: lines(part.cut))
        ]
      end

    section(
      "sizes",
      "Sections",
      Parts.table(
        "Sections in their order, before the limit",
        ["Section", "Size", "Part", "Left out"],
        rows
      )
    )
  end

  defp name(section), do: section |> Atom.to_string() |> String.replace("_", " ")

  defp cut(data) do
    if cut_count(data) > 0 do
      lists =
        for %{section: section, cut: count, cut_lines: [shown, _more]} <- data.sections,
            count > 0 do
          [
            tag(:h3, [], name(section)),
            tag(:pre, [tabindex: "0"], shown),
            if(count > @max_lines, do: tag(:p, [], "and #{lines(count - @max_lines)} more"))
          ]
        end

      section("cut", "Left out by the limit", lists)
    end
  end

  defp difference(%{earlier: earlier}),
    do: section("difference", "Difference to the prompt before", changes(earlier))

  defp changes(nil) do
    Parts.empty(
      "No other prompt of this profile and format has been shown here since the book " <>
        "started. After the next change of a skill, this page shows the difference to now."
    )
  end

  defp changes(earlier) do
    at = Parts.time(earlier.at)

    [
      tag(:p, [], ["Compared with the prompt that was shown here at ", at, "."]),
      Parts.diff(earlier.difference, "Changes")
    ]
  end

  defp texts(data) do
    details =
      for part <- data.sections do
        tag(:details, [], [
          tag(:summary, [], "#{name(part.section)}, #{tokens(part.tokens)}"),
          tag(:pre, [tabindex: "0"], part.text),
          if(part.bytes > @max_text,
            do: tag(:p, [], "The rest is in the JSON of this page.")
          )
        ])
      end

    section("text", "Text", details)
  end
end
