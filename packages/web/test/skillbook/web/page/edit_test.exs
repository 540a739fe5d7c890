defmodule Skillbook.Web.Page.EditTest do
  # Creating, changing, enabling, deleting and restoring entries, and the right to.
  use Skillbook.SkillsCase, async: true

  import Skillbook.PageCase, only: [sent: 3]

  alias Skillbook.Store
  alias Skillbook.Test.{HtmlChecker, Requests}

  @text "# Milk\n\nTwo bottles.\n"

  setup do
    book = :"edit_#{System.unique_integer([:positive])}"

    start_supervised!(
      {Skillbook,
       name: book,
       builtins: true,
       store: ":memory:",
       profiles: [
         [id: "ann", grants: ["family"]],
         [id: "bea", grants: ["family"], labels: ["family"]],
         [id: "asks", writes: :ask],
         [id: "leaves", writes: :delegate],
         [id: "denied", writes: :deny]
       ]}
    )

    view = Skillbook.view(book, "ann")
    {:ok, milk} = Store.put_note(view, "Milk", @text, fields: %{tags: ["a, b", "c"]})
    {:ok, book: book, web: Requests.web(book), view: view, milk: milk.entry}
  end

  defp get(web, path, as \\ "ann"), do: checked(Requests.call(web, "GET", path, as: as))

  defp post(web, path, form, as \\ "ann"),
    do: checked(Requests.call(web, "POST", path, as: as, form: form))

  defp checked(response) do
    if Requests.header(response, "content-type") == "text/html; charset=utf-8",
      do: assert(HtmlChecker.page(response.body) == [])

    response
  end

  defp location(response), do: {response.status, Requests.header(response, "location")}

  describe "a new entry" do
    test "is shown before it is created", %{web: web, view: view} do
      form =
        sent(get(web, "/new").body, "preview", %{
          "title" => "Weekly <b>report</b>",
          "description" => "How it is built",
          "content" => "# Report\r\n\r\n<script>alert(1)</script>",
          "tags" => "x\r\n\r\n y ",
          "labels" => "family"
        })

      shown = post(web, "/new", form)
      assert shown.status == 200
      assert shown.body =~ ~s(<h2 id="preview">Preview</h2>)
      assert shown.body =~ "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"
      assert {:error, %{kind: :not_found}} = Store.fetch(view, "weekly-b-report-b")

      saved = post(web, "/new", sent(shown.body, "save", %{}))
      assert location(saved) == {303, "/skills/weekly-b-report-b?done=created"}
      {:ok, entry} = Store.fetch(view, "weekly-b-report-b")

      assert {entry.title, entry.tags, entry.labels} ==
               {"Weekly <b>report</b>", ["x", "y"], ["family"]}

      assert entry.content == "# Report\n\n<script>alert(1)</script>"
      assert {entry.kind, entry.source, entry.author} == {:skill, :user, "ann"}
    end

    test "is refused with the reason at its field", %{web: web} do
      given = %{"kind" => "note", "title" => "Tea", "content" => "x", "step" => "preview"}

      for {changes, field, text} <- [
            {%{"title" => ""}, "title",
             "Expected one line of 1 to 200 characters as the title of an entry, got: \"\". " <>
               "Write for example: Weekly report."},
            {%{"name" => "A b"}, "name",
             "Expected lowercase letters, digits and single dashes between them, at most 64 " <>
               "characters, as the name of an entry, got: \"A b\". Write for example: a-b."},
            {%{"name" => "milk"}, "name",
             "The store already has an entry \"milk\". Update it, or choose another name."},
            {%{"kind" => "skill"}, "description",
             "Expected text of 1 to 1024 characters for a skill as the description of an " <>
               "entry, got: \"\". Write for example: What it is for."},
            {%{"kind" => "command"}, "kind",
             "Expected :skill or :note as the kind of an entry, got: \"command\". Write for " <>
               "example: :note."},
            {%{"labels" => "boss"}, "labels",
             "Expected labels that this profile holds, got: \"boss\". Leave them out."},
            {%{"schedule" => "0 8"}, "schedule",
             "Expected five fields, or six with the second first, got \"0 8\"; write minute, " <>
               "hour, day of month, month and day of week, such as 0 9 * * 1, or a name such " <>
               "as @daily."},
            {%{"content" => "---\nvisibility-labels: [a]\n---\n"}, "content",
             "The frontmatter of the content: line 2: expected `visibility_labels`, got " <>
               "`visibility-labels`; write for example visibility_labels: [private, family]."}
          ] do
        response = post(web, "/new", Map.merge(given, changes))
        assert {changes, response.status} == {changes, 422}

        errors =
          for {"p", %{"class" => "error", "id" => id}, _} = error <-
                HtmlChecker.elements(response.body),
              do: {id, HtmlChecker.text(error)}

        links =
          for {"a", %{"href" => "#field-" <> name}, _} <- HtmlChecker.elements(response.body),
              do: name

        assert {changes, links} == {changes, [field]}

        assert errors == [{"field-#{field}-error", text}]

        assert response.body =~ "<title>Error: New entry · Skillbook</title>"
      end
    end
  end

  describe "an edit" do
    test "shows the difference, and is saved as it was shown", context do
      %{web: web, view: view, milk: milk} = context
      page = get(web, "/skills/milk/edit").body
      # Nothing is changed by the way of a browser.
      same = post(web, "/skills/milk/edit", sent(page, "preview", %{}))
      assert same.body =~ "Nothing is changed."

      form =
        sent(page, "preview", %{
          "content" => "# Milk\r\n\r\nThree bottles.\r\n",
          "tags" => "c\nd"
        })

      shown = post(web, "/skills/milk/edit", form)
      assert shown.body =~ "<del>-Two bottles.</del>"
      assert shown.body =~ "<ins>+Three bottles.</ins>"
      assert shown.body =~ "a, b, c"
      assert {:ok, ^milk} = Store.fetch(view, "milk")

      # A form that is no longer the one that was shown is shown again.
      other = sent(shown.body, "save", %{"title" => "Cream"})
      assert post(web, "/skills/milk/edit", other).body =~ "The change"
      assert {:ok, ^milk} = Store.fetch(view, "milk")

      saved = post(web, "/skills/milk/edit", sent(shown.body, "save", %{}))
      assert location(saved) == {303, "/skills/milk?done=saved"}
      {:ok, entry} = Store.fetch(view, "milk")

      assert {entry.content, entry.tags, entry.version} ==
               {"# Milk\n\nThree bottles.\n", ["c", "d"], 2}

      assert get(web, "/skills/milk?done=saved").body =~ "Your change is saved."
    end

    test "keeps the line ends of the text", %{web: web, view: view} do
      {:ok, _} = Store.put_note(view, "Windows", "a\r\nb\r\n")
      form = sent(get(web, "/skills/windows/edit").body, "preview", %{})
      assert post(web, "/skills/windows/edit", form).body =~ "Nothing is changed."
    end

    test "of another browser is a conflict, and no text is lost", %{web: web, view: view} do
      one = get(web, "/skills/milk/edit").body
      two = get(web, "/skills/milk/edit").body

      first =
        post(
          web,
          "/skills/milk/edit",
          sent(one, "preview", %{"content" => "# Milk\n\nOne bottle.\n"})
        )

      second =
        post(
          web,
          "/skills/milk/edit",
          sent(two, "preview", %{"content" => "# Cream\n\nTwo bottles.\n"})
        )

      assert {303, _} = location(post(web, "/skills/milk/edit", sent(first.body, "save", %{})))

      conflict = post(web, "/skills/milk/edit", sent(second.body, "save", %{}))
      assert conflict.status == 409
      assert conflict.body =~ "Somebody has changed this entry meanwhile"
      # The other change, and how the sent text differs from it.
      assert conflict.body =~ "<ins>+One bottle.</ins>"
      assert conflict.body =~ "<del>-One bottle.</del>"
      assert conflict.body =~ "<ins>+# Cream</ins>"
      assert {:ok, %{content: "# Milk\n\nOne bottle.\n", version: 2}} = Store.fetch(view, "milk")

      # The text that was sent is in the form, which now begins with the newest version.
      form = sent(conflict.body, "preview", %{})
      assert {form["version"], form["content"]} == {"2", "# Cream\r\n\r\nTwo bottles.\r\n"}
      again = post(web, "/skills/milk/edit", form)
      assert again.body =~ "<del>-One bottle.</del>"
      assert {303, _} = location(post(web, "/skills/milk/edit", sent(again.body, "save", %{})))

      assert {:ok, %{content: "# Cream\n\nTwo bottles.\n", version: 3}} =
               Store.fetch(view, "milk")
    end

    test "without a version, or without a form, is refused", %{web: web} do
      for {form, status} <- [
            {%{"content" => "x"}, 400},
            {%{"version" => "x"}, 400},
            {%{"version" => "-1"}, 400}
          ] do
        assert post(web, "/skills/milk/edit", form).status == status
      end

      assert Requests.call(web, "POST", "/skills/milk/edit", as: "ann", body: "{}").status == 400
    end

    test "keeps the labels that a profile must set", %{web: web, view: view} do
      {:ok, _} = Store.put_note(view, "Ours", "x", fields: %{labels: ["family"]})
      form = sent(get(web, "/skills/ours/edit", "bea").body, "preview", %{"labels" => ""})
      response = post(web, "/skills/ours/edit", form, "bea")

      assert {response.status, response.body =~ "which this profile must set on every entry"} ==
               {422, true}

      # An entry without it is not the profile's to change.
      form =
        sent(get(web, "/skills/milk/edit", "bea").body, "preview", %{
          "title" => "X",
          "labels" => "family"
        })

      assert post(web, "/skills/milk/edit", form, "bea").status == 422
    end
  end

  describe "the five operations" do
    for {operation, fields, expected} <- [
          {"find_replace", %{"find" => "Two", "text" => "Six"}, "# Milk\n\nSix bottles.\n"},
          {"find_replace", %{"find" => "l", "text" => "L", "all" => "1"},
           "# MiLk\n\nTwo bottLes.\n"},
          {"append", %{"text" => "And cream."}, "# Milk\n\nTwo bottles.\nAnd cream."},
          {"prepend", %{"text" => "Buy:"}, "Buy:\n# Milk\n\nTwo bottles.\n"},
          {"delete", %{"find" => "Two bottles.\r\n"}, "# Milk\n\n"},
          {"replace", %{"text" => "None.\r\n"}, "None.\n"}
        ] do
      test "#{operation} #{inspect(fields)}", %{web: web, view: view} do
        fields = Map.put(unquote(Macro.escape(fields)), "operation", unquote(operation))

        shown =
          post(
            web,
            "/skills/milk/change",
            sent(get(web, "/skills/milk/change").body, "preview", fields)
          )

        assert shown.body =~ ~s(<figure class="diff">)
        assert {:ok, %{version: 1}} = Store.fetch(view, "milk")
        saved = post(web, "/skills/milk/change", sent(shown.body, "save", %{}))
        assert location(saved) == {303, "/skills/milk?done=saved"}
        assert {:ok, %{content: unquote(expected), version: 2}} = Store.fetch(view, "milk")
      end
    end

    test "say which text does not occur", %{web: web} do
      page = get(web, "/skills/milk/change").body

      for {fields, field, text} <- [
            {%{"find" => "Wine"}, "find",
             "The text \"Wine\" does not occur in \"milk\"; the closest line is line 1: " <>
               "\"# Milk\". Copy the text exactly."},
            {%{"find" => ""}, "find", "Expected a text that occurs in the entry, got nothing."},
            {%{"operation" => "eval"}, "operation", "Expected one of the operations in the list."}
          ] do
        response = post(web, "/skills/milk/change", sent(page, "preview", fields))
        assert response.status == 422

        errors =
          for {"p", %{"class" => "error"}, _} = p <- HtmlChecker.elements(response.body), do: p

        errors = for p <- errors, do: {elem(p, 1)["id"], HtmlChecker.text(p)}
        assert errors == [{"field-#{field}-error", text}]
      end
    end
  end

  describe "an entry as a whole" do
    test "is disabled and enabled", %{web: web, view: view} do
      assert location(post(web, "/skills/milk/disable", %{})) ==
               {303, "/skills/milk?done=disabled"}

      assert {:ok, %{enabled: false}} = Store.fetch(view, "milk")
      assert location(post(web, "/skills/milk/enable", %{})) == {303, "/skills/milk?done=enabled"}
      assert {:ok, %{enabled: true}} = Store.fetch(view, "milk")
    end

    test "is switched in its row, back to the list as it was", %{web: web, view: view} do
      # The fields of the row's form, as a browser would send them.
      switch = fn query ->
        [{{"form", attributes, _}, fields}] =
          for {"form", _, _} = form <- HtmlChecker.elements(get(web, "/skills?" <> query).body),
              elements = HtmlChecker.elements(form),
              Enum.any?(elements, &match?({"button", %{"role" => "switch"}, _}, &1)),
              do: {form, for({"input", %{"name" => n, "value" => v}, _} <- elements, do: {n, v})}

        {attributes["action"], Map.new(fields)}
      end

      {path, form} = switch.("q=bottles&kind=note&page=1&done=x&format=html")
      assert {path, form["list"]} == {"/skills/milk/disable", "kind=note&page=1&q=bottles"}

      address = "/skills?kind=note&page=1&q=bottles&done=disabled&name=milk#switch-bWlsaw"
      assert location(post(web, path, form)) == {303, address}
      assert {:ok, %{enabled: false}} = Store.fetch(view, "milk")
      page = get(web, String.replace(address, "#switch-bWlsaw", "")).body
      assert page =~ "milk: It is disabled: nobody finds it until it is enabled."

      assert {"/skills/milk/enable", form} = switch.("enabled=disabled")
      to = "/skills?enabled=disabled&done=enabled&name=milk#switch-bWlsaw"
      assert location(post(web, "/skills/milk/enable", form)) == {303, to}
      assert {:ok, %{enabled: true}} = Store.fetch(view, "milk")

      # Only fields of the list are kept, whatever is sent: the address is on this server.
      for {list, kept} <- [
            {"", "done=enabled"},
            {"//evil.example/?q=x", "done=enabled"},
            {"q[]=x&as=bea&done=y&name=z&tag=a%26b", "tag=a%26b&done=enabled"},
            {"q=%FF", "done=enabled"}
          ] do
        to = "/skills?#{kept}&name=milk#switch-bWlsaw"
        assert location(post(web, "/skills/milk/enable", %{"list" => list})) == {303, to}
      end

      # No answer about an entry that is hidden or does not exist.
      for query <- ["done=disabled&name=nobody", "done=other&name=milk", "done[]=x&name[]=y"],
          do: refute(get(web, "/skills?" <> query).body =~ ~s(class="notice))
    end

    test "that the store does not let a profile change has no switch", %{web: web, view: view} do
      bea = Skillbook.view(view.book, "bea")
      {:ok, _} = Store.put_note(bea, "Tea", "Green.")

      for {as, switches} <- [{"ann", ["milk", "tea"]}, {"bea", ["tea"]}] do
        html = get(web, "/skills?source=store", as).body

        names =
          for {"button", %{"role" => "switch"}, [{"span", _, [name]} | _]} <-
                HtmlChecker.elements(html),
              do: name

        assert {as, names} == {as, switches}
      end

      assert post(web, "/skills/milk/disable", %{"list" => ""}, "bea").status == 403

      assert post(web, "/skills/tasks.get/disable", %{}).body =~
               "This entry comes from a file, and is changed there."
    end

    @tag :tmp_dir
    test "of the store is enabled again beside a file of its name", %{tmp_dir: folder} do
      write(folder, %{"milk/SKILL.md" => page("milk", [], "From a file.\n")})
      book = book(sources: [folder], builtins: false, store: ":memory:")
      view = Skillbook.view(book, "default")
      fields = %{name: "milk", title: "Milk", kind: :note, content: "Two."}
      {:ok, _} = Store.create(view, fields)
      {:ok, _} = Store.disable(view, "milk")
      web = Requests.web(book)
      list = get(web, "/skills", "default").body
      assert [_file] = Regex.scan(~r/State: /, list)
      assert [_stored] = Regex.scan(~r/role="switch"/, list)
      assert get(web, "/skills/milk", "default").body =~ "Enable it"

      assert location(post(web, "/skills/milk/enable", %{}, "default")) ==
               {303, "/skills/milk?done=enabled"}

      assert Skillbook.View.fetch!(Skillbook.view(book, "default"), "milk").source == "store"
    end

    test "is deleted after a question, and comes back", %{web: web, view: view} do
      page = get(web, "/skills/milk/delete").body
      assert page =~ "data-confirm"
      form = sent(page, "", %{})
      {:ok, _} = Store.put_note(view, "Milk", "New.")
      assert post(web, "/skills/milk/delete", form).status == 409
      form = sent(get(web, "/skills/milk/delete").body, "", %{})
      deleted = post(web, "/skills/milk/delete", form)
      assert location(deleted) == {303, "/skills/milk/versions?done=deleted"}
      assert get(web, "/skills/milk").status == 404
      versions = get(web, "/skills/milk/versions?done=deleted").body
      assert versions =~ "It is deleted."
      form = sent(get(web, "/skills/milk/versions/1").body, "", %{})

      for {number, status} <- [
            {"99", 404},
            {"9223372036854775808", 404},
            {String.duplicate("9", 30), 400}
          ] do
        assert post(web, "/skills/milk/restore", %{form | "number" => number}).status == status
      end

      assert location(post(web, "/skills/milk/restore", form)) ==
               {303, "/skills/milk?done=restored"}

      assert {:ok, %{content: @text}} = Store.fetch(view, "milk")
    end

    test "has its versions with their differences", %{web: web, view: view} do
      {:ok, _} = Store.update(view, "milk", %{edit: {:append, "Cream.\n"}, tags: []})
      {:ok, _} = Store.update(view, "milk", %{edit: {:append, "Tea."}})
      html = get(web, "/skills/milk/versions").body
      for n <- 1..3, do: assert(html =~ ~s(<a href="/skills/milk/versions/#{n}">Version #{n}</a>))
      assert get(web, "/skills/milk/versions/3").body =~ "<ins>+Tea.</ins>"
      refute get(web, "/skills/milk/versions/3").body =~ "<ins>+Cream.</ins>"
      assert get(web, "/skills/milk/versions/3?with=1").body =~ "<ins>+Cream.</ins>"

      for path <- ["4", "0", "x", "-1", "1.0"],
          do: assert(get(web, "/skills/milk/versions/" <> path).status == 404)

      {:ok, json} =
        Skillbook.Support.JSON.decode(get(web, "/skills/milk/versions?format=json").body)

      versions = for version <- json["versions"], do: {version["version"], version["action"]}
      assert versions == [{3, "update"}, {2, "update"}, {1, "create"}]
    end

    test "has its versions in pages", %{web: web, view: view} do
      write = fn n ->
        {:ok, _} = Store.update(view, "milk", %{edit: {:replace, "Bottles: #{n}.\n"}})
      end

      for n <- 2..103, do: write.(n)
      page = fn query -> get(web, "/skills/milk/versions?" <> query) end

      numbers = fn query ->
        {:ok, json} = Skillbook.Support.JSON.decode(page.("format=json" <> query).body)
        {for(version <- json["versions"], do: version["version"]), json["next"]}
      end

      assert numbers.("") == {Enum.to_list(103..4), 4}
      # While others write.
      write.(104)
      assert numbers.("&after=4") == {[3, 2, 1], nil}
      assert numbers.("&after=1") == {[], nil}
      assert page.("").body =~ ~s(<a href="/skills/milk/versions?after=5">Older</a>)
      refute page.("after=5").body =~ "Older"
      old = get(web, "/skills/milk/versions/2").body
      assert old =~ "<ins>+Bottles: 2.</ins>"
      assert get(web, "/skills/milk/versions/2?with=3").body =~ "<ins>+Bottles: 3.</ins>"
      form = sent(old, "", %{})

      assert location(post(web, "/skills/milk/restore", form)) ==
               {303, "/skills/milk?done=restored"}

      assert {:ok, %{content: "Bottles: 2.\n"}} = Store.fetch(view, "milk")
    end

    test "is downloaded as a folder of the format", %{web: web} do
      response = get(web, "/skills/milk/export")
      assert Requests.header(response, "content-type") == "application/gzip"
      disposition = ~s(attachment; filename="milk.tar.gz")
      assert Requests.header(response, "content-disposition") == disposition

      {:ok, [{~c"milk/SKILL.md", text}]} =
        :erl_tar.extract({:binary, response.body}, [:memory, :compressed])

      assert text =~ "Two bottles."
    end
  end

  describe "the profile's :writes" do
    @routes [
      {"GET", "/new", %{}},
      {"POST", "/new",
       %{"title" => "x", "content" => "x", "kind" => "note", "step" => "preview"}},
      {"GET", "/import", %{}},
      {"GET", "/skills/milk/edit", %{}},
      {"POST", "/skills/milk/edit", %{"version" => "1", "title" => "x", "content" => "x"}},
      {"GET", "/skills/milk/change", %{}},
      {"POST", "/skills/milk/change",
       %{"version" => "1", "operation" => "append", "text" => "x"}},
      {"GET", "/skills/milk/delete", %{}},
      {"POST", "/skills/milk/enable", %{}},
      {"POST", "/skills/milk/disable", %{"list" => "kind=note"}}
    ]

    for {as, allowed?, text} <- [
          {"ann", true, nil},
          {[profile: "asks", operator: true], true, nil},
          {"asks", false,
           "Changes of the profile &quot;asks&quot; need somebody&#39;s consent. " <>
             "Ask an operator of this book to make this one."},
          {"leaves", false,
           "The profile &quot;leaves&quot; leaves changes to agents. " <>
             "Sign in with one that makes them itself."},
          {"denied", false, "The profile &quot;denied&quot; may not change anything."},
          {[profile: "denied", operator: true], false,
           "The profile &quot;denied&quot; may not change anything."}
        ] do
      test "holds for #{inspect(as)}", %{web: web} do
        for {method, path, form} <- @routes do
          form = if method == "POST", do: [form: form], else: []
          response = Requests.call(web, method, path, [as: unquote(as)] ++ form)
          got = {path, response.status, response.body =~ unquote(text || "Skillbook")}

          if unquote(allowed?),
            do: assert(response.status in [200, 303]),
            else: assert(got == {path, 403, true})
        end

        # Actions without a right are not offered.
        assert get(web, "/skills/milk", unquote(as)).body =~ "/edit\"" == unquote(allowed?)
        list = get(web, "/skills", unquote(as)).body
        assert list =~ "/new\"" == unquote(allowed?)
        assert list =~ ~s(role="switch") == unquote(allowed?)
      end
    end
  end
end
