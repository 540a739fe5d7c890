defmodule Skillbook.MCP.ClientOwnServerTest do
  # One book serves its entries over MCP, and another has it as a source.
  use ExUnit.Case, async: true

  import Skillbook.Eventually
  import Skillbook.SkillsCase, only: [write: 2]
  import Skillbook.Test.HostileServer, only: [book: 2]

  alias Skillbook.MCP.Client
  alias Skillbook.View
  alias Skillbook.Web.Server

  @moduletag :capture_log
  @moduletag :tmp_dir

  defp text(book, line),
    do: hd(Skillbook.run(View.all(book), "```cmd\n#{line}\n```").results).content

  test "every skill and command of a book can be used by another", %{tmp_dir: folder} do
    write(folder, %{
      "refunds/SKILL.md" =>
        "---\nname: refunds\ndescription: Refunds orders\nversion: 1.10\nmetadata:\n" <>
          "  a: true\n  b: [1, 2.5]\n---\n# Refunds\n\nAsk first.\n",
      "refunds/docs/a b.md" => "A file\n",
      "refunds/logo.png" => <<0, 255, 1>>,
      "secret/SKILL.md" =>
        "---\nname: secret\ndescription: Hidden\nvisibility_labels: [staff]\n---\nHidden\n",
      "tea/make.md" => "---\nname: tea.make\ndescription: Makes tea\n---\nBoil water.\n"
    })

    served = :"served_#{System.unique_integer([:positive])}"

    options = [sources: [folder], builtins: true, store: ":memory:", profiles: [[id: "default"]]]
    start_supervised!({Skillbook, [name: served] ++ options})

    server = start_supervised!({Server, book: served, port: 0, authenticate: :none})
    url = Server.info(server).url <> "/mcp"
    book = book(url, approve: :all, refresh: 20_000, timeout: 60_000)

    assert Skillbook.diagnostics(book) == []
    offers = Client.offers(book)
    skills = for %{kind: :skill} = offer <- offers, do: offer
    assert "docs/refunds" in Enum.map(skills, & &1.name)
    refute inspect(offers) =~ "secret"

    # Each file of each skill passes its checks.
    for %{name: name, files: files} <- skills, file <- files do
      assert {:ok, _bytes} = Client.read(book, name, file)
    end

    assert text(book, "get_skill: docs/refunds") =~ "| Ask first."
    assert text(book, "get_skill: docs/refunds/docs/a b.md") =~ "| A file"
    assert text(book, ~s(docs.tasks__create --title "Buy tea")) =~ "Buy tea"
    assert text(book, "docs.tasks__search") =~ "Buy tea"

    # A new skill arrives by the stream of changes, or at the next refresh.
    more = "---\nname: returns\ndescription: Takes goods back\n---\n# Returns\n"
    write(folder, %{"returns/SKILL.md" => more})
    assert eventually(fn -> text(book, "get_skill: docs/returns") =~ "| # Returns" end)
  end
end
