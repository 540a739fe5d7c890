defmodule Skillbook.PageCase do
  @moduledoc false
  # For tests that read the pages of a book.

  use ExUnit.CaseTemplate

  alias Skillbook.Support.JSON
  alias Skillbook.Test.{HtmlChecker, Requests}

  using do
    quote do
      import Skillbook.{PageCase, SkillsCase}
    end
  end

  @doc "Starts a book in memory that follows no files, and returns it with its web."
  def served(options) do
    book =
      Skillbook.SkillsCase.book([builtins: false, store: ":memory:", watch: false] ++ options)

    {:ok, book: book, web: Requests.web(book)}
  end

  @doc "The body of a page."
  def get(web, target, as),
    do: checked(Requests.call(web, "GET", target, as: as)).body

  @doc "The response, whose body is a page without errors in its HTML."
  def checked(response) do
    assert HtmlChecker.page(response.body) == []
    response
  end

  @doc "The data of a page."
  def json(web, target, as) do
    target = target <> if(target =~ "?", do: "&", else: "?") <> "format=json"
    {:ok, data} = JSON.decode(Requests.call(web, "GET", target, as: as).body)
    data
  end

  @doc "The fields of a page's last form, as a browser would send them, with other values."
  def sent(html, button, changes) do
    {"form", _, children} =
      html
      |> HtmlChecker.elements()
      |> Enum.filter(&match?({"form", %{"method" => "post"}, _}, &1))
      |> List.last()

    children
    |> Enum.flat_map(&fields/1)
    |> Map.new()
    |> Map.merge(%{"step" => button})
    |> Map.merge(changes)
  end

  defp fields({"textarea", %{"name" => name}, _} = area),
    do: [
      {name,
       area
       |> HtmlChecker.text()
       |> String.replace_prefix("\n", "")
       |> String.replace(["\r\n", "\n"], "\r\n")}
    ]

  defp fields({"input", %{"type" => "checkbox"} = input, _}),
    do: if(input["checked"], do: [{input["name"], input["value"]}], else: [])

  defp fields({"input", %{"name" => name} = input, _}), do: [{name, input["value"] || ""}]

  defp fields({"select", %{"name" => name}, options}) do
    chosen = Enum.find(options, hd(options), &match?({"option", %{"selected" => _}, _}, &1))
    [{name, elem(chosen, 1)["value"]}]
  end

  defp fields({_name, _attributes, children}), do: Enum.flat_map(children, &fields/1)
  defp fields(_text), do: []
end
