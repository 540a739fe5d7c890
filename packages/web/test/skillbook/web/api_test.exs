defmodule Skillbook.Web.APITest do
  # The read-only API: lists, filters, pages, one skill, and what it refuses.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Support.JSON
  alias Skillbook.Test.Requests
  alias Skillbook.View

  setup do
    folder = Path.join(System.tmp_dir!(), "api_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(folder) end)

    write(folder, %{
      "tea/SKILL.md" =>
        "---\nname: tea\ntitle: Tea\ndescription: Brews tea\ntags: [drink, hot]\n---\n" <>
          "Boil.\n",
      "milk/SKILL.md" => "---\nname: milk\ndescription: Warms milk\ntags: [drink]\n---\nWarm.\n",
      "cup/wash.md" => page("cup.wash", [tags: "[dishes]"], "# Wash\n"),
      "own/SKILL.md" =>
        "---\nname: own\ndescription: For people\ndisable-model-invocation: true\n---\nMe.\n",
      "secret/SKILL.md" =>
        "---\nname: secret\ndescription: Hides tea\nvisibility_labels: [staff]\n---\nHidden.\n"
    })

    name =
      book(
        sources: [folder],
        builtins: false,
        profiles: [[id: "guest"], [id: "staff", grants: ["staff"]]]
      )

    %{web: Requests.web(name), folder: folder, book: name}
  end

  defp get(web, target, as \\ "guest") do
    response = Requests.call(web, "GET", target, as: as)
    {:ok, term} = JSON.decode(response.body)
    assert Requests.header(response, "content-type") == "application/json"
    {response.status, term}
  end

  defp names(web, target, as \\ "guest") do
    {200, %{"skills" => skills}} = get(web, target, as)
    Enum.map(skills, & &1["name"])
  end

  test "lists the skills that a model of the profile is offered", %{web: web} do
    assert get(web, "/api/skills") ==
             {200,
              %{
                "next" => nil,
                "skills" => [
                  %{
                    "name" => "cup.wash",
                    "kind" => "command",
                    "title" => nil,
                    "description" => "Does cup.wash",
                    "tags" => ["dishes"]
                  },
                  %{
                    "name" => "milk",
                    "kind" => "skill",
                    "title" => nil,
                    "description" => "Warms milk",
                    "tags" => ["drink"]
                  },
                  %{
                    "name" => "tea",
                    "kind" => "skill",
                    "title" => "Tea",
                    "description" => "Brews tea",
                    "tags" => ["drink", "hot"]
                  }
                ]
              }}

    assert names(web, "/api/skills", "staff") == ["cup.wash", "milk", "secret", "tea"]
  end

  test "reads a skill with its content", %{web: web} do
    assert get(web, "/api/skills/tea") ==
             {200,
              %{
                "name" => "tea",
                "kind" => "skill",
                "title" => "Tea",
                "description" => "Brews tea",
                "tags" => ["drink", "hot"],
                "content" => "Boil.\n"
              }}
  end

  test "a hidden skill, a missing one and one that no model may read are the same bytes",
       context do
    %{web: web} = context

    responses =
      for name <- ["secret", "missing", "own", "SECRET", "tea%2F..", "a%0Ab", "%F0%9F%8D%B5"],
          do: Requests.call(web, "GET", "/api/skills/" <> name, as: "guest")

    assert [response] = Enum.uniq(responses)
    assert response.status == 404
    assert response.body == ~s({"error":"There is no skill of this name."})
    assert {200, %{"content" => "Hidden.\n"}} = get(web, "/api/skills/secret", "staff")
  end

  for {query, names} <- [
        {"tag=drink", ["milk", "tea"]},
        {"tag[]=drink&tag[]=hot", ["tea"]},
        {"tag=none", []},
        {"q=tea", ["tea"]},
        {"q=tea&tag=dishes", []},
        {"q=", ["cup.wash", "milk", "tea"]},
        {"q=Hides", []},
        {"kind=command", ["cup.wash"]},
        {"kind=skill", ["milk", "tea"]},
        {"kind=note", []},
        {"kind=skill&tag=hot", ["tea"]},
        {"kind=command&tag=hot", []},
        {"kind=skill&limit=1", ["milk"]},
        {"kind=skill&q=tea", ["tea"]},
        {"kind=command&q=tea", []},
        {"limit=1", ["cup.wash"]},
        {"limit=1000", ["cup.wash", "milk", "tea"]}
      ] do
    test "?#{query} lists #{inspect(names)}", %{web: web} do
      assert names(web, "/api/skills?" <> unquote(query)) == unquote(names)
    end
  end

  for {query, error} <- [
        {"limit=0", "Expected a number from 1 to 1000 as limit."},
        {"limit=1001", "Expected a number from 1 to 1000 as limit."},
        {"limit=ten", "Expected a number from 1 to 1000 as limit."},
        {"limit[]=1", "Expected a number from 1 to 1000 as limit."},
        {"tags=drink", "Expected the fields q, kind, tag, limit and cursor in the query."},
        {"kind=", "Expected command, skill or note as kind."},
        {"kind=workflow", "Expected command, skill or note as kind."},
        {"kind[]=skill", "Expected command, skill or note as kind."},
        {"q[]=x", "Expected one q."},
        {"q=" <> String.duplicate("x", 1_001), "Expected at most 1000 characters as q."},
        {"tag=", "Expected at most 20 tags, as tag or tag[]."},
        {Enum.map_join(1..21, "&", &"tag[]=#{&1}"), "Expected at most 20 tags, as tag or tag[]."},
        {"cursor=x", "Expected the next of an answer to the same query as cursor."},
        {"cursor=czE", "Expected the next of an answer to the same query as cursor."},
        {"q=tea&cursor=bnRlYQ", "Expected the next of an answer to the same query as cursor."},
        {"q=tea&cursor=czEwMDE", "Expected the next of an answer to the same query as cursor."}
      ] do
    test "?#{String.slice(query, 0, 40)} is refused: #{error}", %{web: web} do
      assert get(web, "/api/skills?" <> unquote(query)) == {400, %{"error" => unquote(error)}}
    end
  end

  test "kinds are those of the caller's view, and their pages have each skill once", context do
    %{folder: folder} = context
    hidden = "---\nvisibility_labels: [staff]\n---\nA hidden kettle.\n"
    notes = %{"plan.md" => "A kettle.\n", "week.md" => "Another kettle.\n", "secret.md" => hidden}
    write(folder <> "_notes", notes)
    on_exit(fn -> File.rm_rf!(folder <> "_notes") end)
    profiles = [[id: "guest"], [id: "staff", grants: ["staff"]]]
    sources = [folder, [path: folder <> "_notes", kind: :notes]]
    web = Requests.web(book(sources: sources, profiles: profiles))

    for as <- ["guest", "staff"], {query, limit} <- [{"", 1}, {"", 100}, {"q=kettle&", 1}] do
      view = Skillbook.view(web.book, as)
      all = pages(web, "/api/skills?#{query}limit=#{limit}", nil, as)

      of_kinds =
        for kind <- [:command, :skill, :note] do
          names = pages(web, "/api/skills?#{query}kind=#{kind}&limit=#{limit}", nil, as)
          shown = for entry <- View.listed(view, kind: kind), do: entry.name
          assert {kind, names -- shown} == {kind, []}
          if query == "", do: assert({kind, names} == {kind, shown})
          names
        end

      assert Enum.sort(Enum.concat(of_kinds)) == Enum.sort(all)
      assert {as, "secret" in all} == {as, as == "staff"}
    end
  end

  test "pages have every skill once, by name and by a query", %{folder: folder} do
    # Not below the folder that a book watches.
    folder = folder <> "_many"
    on_exit(fn -> File.rm_rf!(folder) end)

    write(
      folder,
      for number <- 1..57, into: %{} do
        {"many/s#{number}/SKILL.md",
         "---\nname: s#{number}\ndescription: A kettle of number #{number}\n---\nx\n"}
      end
    )

    web = Requests.web(book(sources: [folder], builtins: false))

    for query <- ["", "q=kettle&"], limit <- [1, 7, 56, 57, 58, 100] do
      names = pages(web, "/api/skills?#{query}limit=#{limit}", nil)
      assert names == Enum.uniq(names)
      assert Enum.count(names, &(&1 =~ ~r/\As\d/)) == 57
    end
  end

  defp pages(web, target, cursor, as \\ "default") do
    more = if cursor, do: "&cursor=" <> cursor, else: ""
    {200, %{"skills" => skills, "next" => next}} = get(web, target <> more, as)
    names = Enum.map(skills, & &1["name"])
    if next, do: names ++ pages(web, target, next, as), else: names
  end

  test "it is read-only, and has no other routes", %{web: web} do
    for method <- ~w(POST PUT PATCH DELETE), target <- ["/api/skills", "/api/skills/tea"] do
      response = Requests.call(web, method, target, as: "guest")
      assert {response.status, response.body} == {405, ~s({"error":"The API is read-only: GET."})}
      assert Requests.header(response, "allow") == "GET, HEAD"
    end

    for target <- ["/api", "/api/skills/tea/files", "/api/Skills", "/api/openapi.json/x"] do
      response = Requests.call(web, "GET", target, as: "guest")
      error = ~s({"error":"Not found. /api/openapi.json describes the API."})
      assert {response.status, response.body} == {404, error}
    end
  end

  test "a request sees one generation", %{web: web, folder: folder, book: book} do
    request = Requests.request("GET", "/api/skills")
    {:ok, caller} = Skillbook.Web.Caller.new(book, "guest", via: :open)
    write(folder, %{"new/SKILL.md" => "---\nname: new\ndescription: New\n---\nx\n"})
    :ok = Skillbook.reload(book)
    response = Skillbook.Web.API.handle(%{request | caller: caller}, web)
    refute IO.iodata_to_binary(response.body) =~ ~s("new")
    assert "new" in names(web, "/api/skills")
  end
end
