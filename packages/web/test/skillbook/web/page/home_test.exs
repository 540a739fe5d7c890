defmodule Skillbook.Web.Page.HomeTest do
  # The first page, and the counts of the rooms.
  use Skillbook.PageCase, async: true

  alias Skillbook.{Store, View}
  alias Skillbook.Test.HtmlChecker

  @moduletag :capture_log
  @moduletag :tmp_dir
  @operator [profile: "root", operator: true]

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/fails.md" => page("x.fails", handler("Raise")),
      "x/hidden.md" => page("x.hidden", [visibility_labels: "[root]"] ++ handler("Raise")),
      "x/ask.md" => page("x.ask", handler("Text") ++ [approval: "required"]),
      "x/daily.md" => page("x.daily", schedule: "\"0 8 * * *\"", run_as: "ann")
    })

    served(
      sources: [folder],
      schedules: [],
      usage: [flush: 3_600_000],
      ask: fn _request -> :pending end,
      profiles: [[id: "ann", writes: :run], [id: "root", grants: :all], [id: "new"]]
    )
  end

  defp run(book, line, profile), do: Skillbook.run(book, "```cmd\n#{line}\n```", profile: profile)

  # The badges of the rooms.
  defp rooms(html) do
    for {"a", %{"href" => href}, children} <- HtmlChecker.elements(html),
        {"span", %{"class" => "attention"}, [count]} <- children,
        do: {href, count}
  end

  test "says what failed, waits and is due, each with its action", %{book: book, web: web} do
    run(book, "x.fails", "ann")
    run(book, "x.hidden", "root")
    run(book, "x.ask", "ann")
    {:ok, [%{ref: ref}]} = Skillbook.approvals(book)

    for {as, failed, approvals} <- [
          {"ann", ["x.fails"], []},
          {@operator, ["x.fails", "x.hidden"], [ref]}
        ] do
      data = json(web, "/", as)
      assert {as, Enum.sort(for one <- data["failed"], do: one["name"])} == {as, failed}
      assert {as, for(one <- data["approvals"], do: one["ref"])} == {as, approvals}
      assert [%{"name" => "x.daily", "run_as" => "ann"}] = data["due"]
      assert %{"prompt" => prompt, "tools" => tools} = data["tokens"]
      assert prompt > 0 and tools > 0
      html = get(web, "/", as)
      assert html =~ "href=\"/skills/x.fails\""
      assert {as, html =~ "href=\"/approvals/#{ref}\""} == {as, approvals != []}
      refute as == "ann" and html =~ "hidden.md"
    end

    assert get(web, "/", "ann") =~ "x.daily"
    assert rooms(get(web, "/skills", @operator)) == [{"/runs", "1"}]
    assert rooms(get(web, "/skills", "ann")) == []
    # The page of a missing entry is the same for each state of the book.
    assert rooms(get(web, "/skills/none", @operator)) == []
  end

  test "counts the errors of documents that the reader sees", %{book: book, web: web} = context do
    write(context.tmp_dir, %{"x/gone.md" => page("x.gone", handler: "Nowhere.Handler")})
    :ok = Skillbook.reload(book)
    assert {"/diagnostics", "1"} in rooms(get(web, "/skills", @operator))
    assert get(web, "/", @operator) =~ "href=\"/diagnostics\""
  end

  test "a new book has steps, and ticks those that are done", %{web: web, book: book} do
    assert [{"li", %{"class" => "done"}, _}, {"li", attributes, _}, _, _] =
             steps(get(web, "/", "new"))

    refute attributes["class"]
    run(book, "x.fails", "new")
    assert steps(get(web, "/", "new")) == []
  end

  test "a book without entries leads to the first skill" do
    {:ok, context} = served(profiles: [[id: "ann", writes: :run], [id: "guest", writes: :deny]])

    for {as, write?} <- [{"ann", true}, {"guest", false}] do
      html = get(context[:web], "/", as)
      assert length(steps(html)) == 4
      assert {as, html =~ ~s(href="/new")} == {as, write?}
      assert html =~ "http://127.0.0.1:4004/mcp"
    end

    {:ok, _} = Store.put_note(View.all(context[:book]), "Tea", "Green.")
    assert get(context[:web], "/skills", "ann") =~ "tea"
  end

  defp steps(html) do
    for {"ol", %{"class" => "first-steps"}, items} <- HtmlChecker.elements(html),
        item <- items,
        do: item
  end
end
