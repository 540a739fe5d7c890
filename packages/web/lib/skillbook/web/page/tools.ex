defmodule Skillbook.Web.Page.Tools do
  @moduledoc false
  # The tools of a profile, as a model gets them in the format of its vendor.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Cache
  alias Skillbook.Support.JSON
  alias Skillbook.Tools.Shape
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.Parts
  alias Skillbook.{Tools, View}

  @page_size 50

  def show(request, _values) do
    view = Caller.view(request)
    shape = Enum.find(Shape.all(), :openai, &(Atom.to_string(&1) == field(request, "shape")))

    all = all(view, shape)
    {page, pages, shown} = page_of(request, all.pages, 1)

    data = %{
      profile: view.profile.id,
      shape: shape,
      tokens: all.tokens,
      total: all.total,
      page: page,
      pages: pages,
      tools: Enum.flat_map(shown, &:erlang.binary_to_term/1)
    }

    reply(request, data, :try, :tools, "Tools", fn -> content(request, data) end)
  end

  # All tools are made once for each state of the view; a page reads its own.
  defp all(view, shape) do
    Cache.keep(view.book, {:tool_pages, View.state(view), shape}, fn ->
      tools =
        for tool <- Tools.list(view, run_command: true) do
          %{
            name: tool.name,
            entry: tool.entry,
            reads: tool.reads,
            tokens: Tools.tokens([tool]),
            definition: Tools.shape(tool, shape)
          }
        end

      pages = tools |> Enum.chunk_every(@page_size) |> Enum.map(&:erlang.term_to_binary/1)
      tokens = tools |> Enum.map(& &1.tokens) |> Enum.sum()
      %{total: length(tools), tokens: tokens, pages: pages}
    end)
  end

  defp content(request, data) do
    [
      form(request, data),
      Parts.live("summary", "skills", [
        tag(:p, [class: "lead"], [
          tag(:strong, [], Parts.count(data.total, "tool", "tools")),
          ", about #{tokens(data.tokens)}, for the profile ",
          tag(:strong, [], data.profile),
          "."
        ]),
        Parts.table(
          "Tools in the order that the model gets them",
          ["Tool", "Entry", "Effect", "Size"],
          for tool <- data.tools do
            [
              tag(:code, [], tool.name),
              if(tool.entry, do: entry(request, tool.entry), else: "–"),
              if(tool.reads, do: "reads", else: "writes"),
              tokens(tool.tokens)
            ]
          end
        ),
        Parts.pages(request, ["tools"], %{"shape" => data.shape}, data.page, data.pages)
      ]),
      tag(:h2, [], "Definitions"),
      for tool <- data.tools do
        tag(:details, [], [
          tag(:summary, [], tag(:code, [], tool.name)),
          tag(:pre, [tabindex: "0"], pretty(tool.definition, 0))
        ])
      end
    ]
  end

  defp form(request, data) do
    shapes = for shape <- Shape.all(), do: {"#{shape}", "#{shape}"}
    query_form(request, ["tools"], select("shape", "Protocol", "#{data.shape}", shapes))
  end

  defp tokens(count), do: Parts.count(count, "token", "tokens")

  # JSON with a line for each member.
  defp pretty(map, depth) when is_map(map) and map != %{} do
    members =
      for {key, value} <- Enum.sort(map),
          do: [indent(depth + 1), JSON.encode(key), ": ", pretty(value, depth + 1)]

    ["{\n", Enum.intersperse(members, ",\n"), "\n", indent(depth), "}"]
  end

  defp pretty(value, _depth), do: JSON.encode(value)

  defp indent(depth), do: String.duplicate("  ", depth)
end
