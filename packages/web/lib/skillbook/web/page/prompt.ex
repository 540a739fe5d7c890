defmodule Skillbook.Web.Page.Prompt do
  @moduledoc false
  # The system prompt of a profile: its sections with their sizes, the lines that a limit omits,
  # and the difference to the prompt before.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Web.Page.Shown
  alias Skillbook.Support.{Diff, Number}
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.Parts
  alias Skillbook.{Book, Prompt}

  @max_tokens 1_000_000
  # Lines of a section that were cut, in a page. The JSON has all of them.
  @max_lines 400
  # Characters of a section in a page.
  @max_text 100_000

  def show(request, _values) do
    view = Caller.view(request)
    options = options(request)
    %{text: text, parts: parts} = Prompt.parts(view, options)
    now = view |> Book.of!() |> Book.now()
    earlier = Shown.put(view, options, text, now)

    data = %{
      profile: view.profile.id,
      format: format(options),
      max_tokens: options[:max_tokens],
      tokens: Prompt.tokens(text),
      characters: String.length(text),
      digest: :sha256 |> :crypto.hash(text) |> Base.encode16(case: :lower),
      sections:
        for(part <- parts, do: Map.put(Map.delete(part, :text), :bytes, byte_size(part.text))),
      earlier: earlier && %{at: earlier.at, difference: Diff.unified(earlier.text, text)},
      text: text
    }

    reply(request, data, :try, :prompt, "Prompt", fn -> content(request, data, parts) end)
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

  defp content(request, data, parts) do
    [
      form(request, data),
      summary(data),
      if(data.sections == [],
        do:
          Parts.empty(
            request,
            "The prompt is empty: this profile sees nothing that a model may use.",
            {"Open the skills", ["skills"]}
          ),
        else: [sizes(data), cut(data), difference(data), texts(parts)]
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

  defp cut_count(data), do: data.sections |> Enum.map(&length(&1.cut)) |> Enum.sum()

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
          if(part.cut == [], do: "–", else: lines(length(part.cut)))
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
        for %{section: section, cut: [_ | _] = lines} <- data.sections do
          {shown, more} = Enum.split(lines, @max_lines)

          [
            tag(:h3, [], name(section)),
            tag(:pre, [tabindex: "0"], Enum.join(shown, "\n")),
            if(more != [], do: tag(:p, [], "and #{lines(length(more))} more"))
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

  defp texts(parts) do
    details =
      for part <- parts do
        tag(:details, [], [
          tag(:summary, [], "#{name(part.section)}, #{tokens(part.tokens)}"),
          tag(:pre, [tabindex: "0"], String.slice(part.text, 0, @max_text)),
          if(String.length(part.text) > @max_text,
            do: tag(:p, [], "The rest is in the JSON of this page.")
          )
        ])
      end

    section("text", "Text", details)
  end
end
