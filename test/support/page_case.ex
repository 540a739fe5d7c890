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
end
