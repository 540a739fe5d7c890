defmodule Skillbook.Web.Page.SkillsTest do
  # The list of skills and notes, and the page of each.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Store
  alias Skillbook.Test.{HtmlChecker, Requests}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => page("mail.send", tags: "[mail, out]", effects: "write"),
      "mail/read.md" => page("mail.read", tags: "[mail]"),
      "pdf/SKILL.md" =>
        page(
          "pdf",
          [license: "MIT", author: "Ann"],
          "# PDF\n\nSee [forms](references/forms.md).\n"
        ),
      "pdf/references/forms.md" => "# Forms <b>\n",
      "secret/SKILL.md" => page("secret-plan", [visibility_labels: "[boss]"], "Attack at dawn.\n")
    })

    book = :"page_#{System.unique_integer([:positive])}"

    start_supervised!({Skillbook,
     name: book,
     sources: [[path: folder, name: "files"]],
     builtins: true,
     store: ":memory:",
     watch: false,
     profiles: [
       [id: "ann", grants: ["family"]],
       [id: "boss", grants: :all],
       [id: "guest", writes: :deny],
       # Of the enabled entries it sees those that guest sees.
       [id: "planner", grants: ["plans"]]
     ]})

    ann = Skillbook.view(book, "ann")

    {:ok, _} =
      Store.put_note(ann, "Milk", "# Milk\n\nTwo bottles.",
        fields: %{tags: ["shopping"], labels: ["family"]}
      )

    {:ok, _} = Store.put_note(ann, "Old plan", "No.", by: :agent)
    {:ok, _} = Store.disable(ann, "old-plan")
    {:ok, book: book, web: Requests.web(book)}
  end

  defp get(web, target, as), do: Requests.call(web, "GET", target, as: as)

  defp shown(web, target, as) do
    %{status: 200, body: body} = get(web, target, as)
    assert HtmlChecker.page(body) == []
    body
  end

  defp names(html) do
    for {"p", %{"class" => "entry-name"}, [{"a", _, _} = link | _]} <- HtmlChecker.elements(html),
        do: HtmlChecker.text(link)
  end

  defp json(web, target, as) do
    response =
      Requests.call(web, "GET", target, as: as, headers: [{"accept", "application/json"}])

    assert Requests.header(response, "content-type") == "application/json"
    {:ok, json} = Skillbook.Support.JSON.decode(response.body)
    json
  end

  @names ~w(mail.read mail.send milk old-plan pdf secret-plan)

  # Of the names of a list those of this test, sorted; the built-in commands are in it too.
  defp own(names), do: Enum.filter(@names, &(&1 in names))

  test "built-in entries are behind a switch, except in a search and alone", %{web: web} do
    for {query, shown?} <- [
          {"", false},
          {"?kind=command", false},
          {"?builtin=1", true},
          {"?builtin=1&kind=command", true},
          {"?q=memory.save", true},
          # Nothing else matches.
          {"?domain=memory", true},
          {"?source=builtin", true}
        ] do
      target = "/skills" <> query
      list = json(web, target, "ann")
      names = for entry <- list["entries"], do: entry["name"]
      assert {query, "memory.save" in names} == {query, shown?}
      assert list["builtin"] > 0
    end

    [first | _] = json(web, "/skills?builtin=1", "ann")["entries"]
    assert first["name"] == "mail.read"
    assert shown(web, "/skills", "ann") =~ ~r{href="/skills\?builtin=1"[^>]*>Show \d+ built-in<}
    assert shown(web, "/skills?builtin=1", "ann") =~ ~r{href="/skills" [^>]*>Hide built-in<}
  end

  describe "the list" do
    test "is searched and filtered by its address", %{web: web} do
      for {query, expected} <- [
            {"", ~w(mail.read mail.send milk old-plan pdf)},
            {"?kind=note", ~w(milk old-plan)},
            {"?kind=skill", ~w(pdf)},
            {"?source=store", ~w(milk old-plan)},
            {"?source=files", ~w(mail.read mail.send pdf)},
            {"?domain=mail", ~w(mail.read mail.send)},
            {"?tag=out", ~w(mail.send)},
            {"?tag=mail&kind=command", ~w(mail.read mail.send)},
            {"?label=family", ~w(milk)},
            {"?label=boss", []},
            {"?author=Ann", ~w(pdf)},
            {"?author=ann", ~w(milk old-plan)},
            {"?by=user", ~w(milk)},
            {"?by=agent", ~w(old-plan)},
            {"?by=import", []},
            {"?by=file", []},
            {"?enabled=disabled", ~w(old-plan)},
            {"?enabled=enabled&source=store", ~w(milk)},
            {"?kind=nothing", []},
            {"?q=bottles", ~w(milk)},
            {"?q=botles", ~w(milk)},
            # A word that is still being typed, and an entry that no index has.
            {"?q=mai&domain=mail", ~w(mail.read mail.send)},
            {"?q=old+pl", ~w(old-plan)},
            {"?q=dawn", []},
            {"?q=secret-plan", []},
            {"?q=&kind=&tag=", ~w(mail.read mail.send milk old-plan pdf)},
            {"?q[]=a&kind[]=note&page=99", ~w(mail.read mail.send milk old-plan pdf)}
          ] do
        assert {query, web |> shown("/skills" <> query, "ann") |> names() |> own()} ==
                 {query, expected}

        names = for entry <- json(web, "/skills" <> query, "ann")["entries"], do: entry["name"]
        assert {query, own(names)} == {query, expected}
      end
    end

    test "counts the rows that a filter would leave", %{web: web} do
      filters = json(web, "/skills?source=store", "ann")["filters"]
      assert filters["kind"] == %{"note" => 2}
      assert filters["enabled"] == %{"enabled" => 1, "disabled" => 1}
      assert filters["by"] == %{"user" => 1, "agent" => 1}
      assert filters["source"]["files"] == 3
      assert filters["label"] == %{"family" => 1}
      refute Map.has_key?(json(web, "/skills", "ann")["filters"]["label"], "boss")
      assert json(web, "/skills", "boss")["filters"]["label"] == %{"family" => 1, "boss" => 1}
    end

    test "says who wrote each entry, and its state", %{web: web} do
      for {as, milk, plan} <- [
            {"ann", {:switch, "milkOn"}, {:switch, "old-planOff"}},
            # It may not write.
            {"guest", nil, {:text, "State: Off"}},
            # A view as another profile only reads.
            {[profile: "boss", operator: true], {:text, "State: On"}, {:text, "State: Off"}}
          ] do
        html = shown(web, if(is_list(as), do: "/skills?as=ann", else: "/skills"), as)
        rows = rows(html)

        expected = %{
          "mail.send" => {"files", {:text, "State: On"}},
          "pdf" => {"files, by Ann", {:text, "State: On"}},
          "milk" => milk && {"user: ann", milk},
          "old-plan" => {"agent: ann", plan}
        }

        for {name, row} <- expected, do: assert({as, name, rows[name]} == {as, name, row})
      end

      # Strangers write the author of a file.
      assert %{"author" => "ann", "by" => "agent"} =
               Enum.find(json(web, "/skills", "ann")["entries"], &(&1["name"] == "old-plan"))
    end

    # Of each row: who wrote it, and its switch or state.
    defp rows(html) do
      for {"li", _, _} = row <- HtmlChecker.elements(html),
          elements = HtmlChecker.elements(row),
          [{"p", _, [{"a", _, _} = link | _]}] <- [with_class(elements, "p", "entry-name")],
          into: %{} do
        [{"p", _, _} = written] = with_class(elements, "p", "entry-by")

        state =
          case with_class(elements, "button", "switch") do
            [{"button", %{"role" => "switch"}, _} = button] ->
              {:switch, HtmlChecker.text(button)}

            [] ->
              [state] = with_class(elements, "p", "entry-state")
              {:text, HtmlChecker.text(state)}
          end

        {HtmlChecker.text(link), {HtmlChecker.text(written), state}}
      end
    end

    defp with_class(elements, tag, class),
      do: for({^tag, %{"class" => ^class}, _} = element <- elements, do: element)

    test "has pages", %{book: book, web: web} do
      view = Skillbook.view(book, "ann")

      for n <- 10..64,
          do: {:ok, _} = Store.put_note(view, "Page #{n}", "x", fields: %{tags: ["many"]})

      for {page, first, links} <- [
            {"1", "page-10", ["/skills?page=2&tag=many"]},
            {"2", "page-60", ["/skills?page=1&tag=many"]},
            {"-3", "page-10", ["/skills?page=2&tag=many"]},
            {"7", "page-60", ["/skills?page=1&tag=many"]},
            {"x", "page-10", ["/skills?page=2&tag=many"]}
          ] do
        html = shown(web, "/skills?tag=many&page=#{page}", "ann")
        assert {page, hd(names(html))} == {page, first}

        found =
          for {"a", %{"rel" => rel, "href" => href}, _} <- HtmlChecker.elements(html),
              rel in ["prev", "next"],
              do: href

        assert {page, found} == {page, links}
      end
    end

    test "is kept only for its state, rights and query", %{
      book: book,
      web: web,
      tmp_dir: folder
    } do
      kept = Module.concat(book, EntryLists)
      boss = Skillbook.view(book, "boss")
      store = fn change -> fn -> assert {:ok, _} = change.() end end

      files = fn pages ->
        fn ->
          write(folder, pages)
          Skillbook.reload(book)
        end
      end

      hidden = page("mail.read", tags: "[mail]", visibility_labels: "[boss]")

      changes = [
        fn -> :ok end,
        files.(%{"mail/read.md" => hidden}),
        store.(fn -> Store.put_note(boss, "Tea", "Green.", fields: %{tags: ["shopping"]}) end),
        # Entries that are disabled are in no view.
        store.(fn -> Store.update(boss, "old-plan", %{tags: ["shopping"]}) end),
        store.(fn -> Store.update(boss, "old-plan", %{labels: ["plans"]}) end),
        store.(fn -> Store.delete(boss, "old-plan") end),
        files.(%{"mail/read.md" => page("mail.read", tags: "[shopping]")}),
        store.(fn -> Store.update(boss, "milk", %{labels: ["boss"]}) end)
      ]

      targets =
        for query <- [
              "",
              "?tag=shopping",
              "?q=mail",
              "?q=mil&kind=note",
              "?label=boss",
              "?page=2"
            ],
            as <- ["planner", "guest", "ann", "boss"],
            do: {"/skills" <> query, as}

      lists = fn before ->
        for {target, as} <- targets, do: before.() && json(web, target, as)
      end

      for {change, at} <- Enum.with_index(changes) do
        change.()
        first = lists.(fn -> true end)
        assert :ets.info(kept, :size) > 0
        again = lists.(fn -> true end)
        # Nothing of before, and nothing of another caller.
        anew = lists.(fn -> :ets.delete_all_objects(kept) end)
        assert {at, first} == {at, anew}
        assert {at, again} == {at, anew}
      end

      assert own(names(shown(web, "/skills", "guest"))) == ["mail.read", "mail.send", "pdf"]
    end

    test "has a way out when it is empty", %{web: web} do
      assert shown(web, "/skills?q=xyzzyqwx", "ann") =~ "<p>Nothing matches.</p>"
    end
  end

  describe "an entry" do
    test "has what loading says of its page", %{web: web, book: book, tmp_dir: folder} do
      steps = "## Behaviour\n\n```cmd\nmail.read --to {nmae}\n```\n"
      write(folder, %{"mail/late.md" => page("mail.late", [shedule: "0 9 * * 1"], steps)})
      :ok = Skillbook.reload(book)
      body = shown(web, "/skills/mail.late", "ann")

      for text <- [
            "expected the field `schedule`, got `shedule`, which has no effect",
            "expected the heading `Behavior`, got `Behaviour`; read as `Behavior`",
            "step 1 has the unknown placeholder {nmae}, so no call runs"
          ],
          do: assert(body =~ text)

      refute shown(web, "/skills/mail.read", "ann") =~ "expected the"
    end

    test "is shown rendered and as it is written", %{web: web} do
      html = shown(web, "/skills/pdf", "ann")
      assert html =~ ~s(<div class="rendered"><h2>PDF</h2>)

      assert html =~
               ~s(<a href="/skills/pdf/files/references/forms.md" rel="noreferrer nofollow">)

      assert html =~ "license: MIT"
      # A file is for operators to find, and cannot be edited here.
      refute html =~ "SKILL.md"
      refute html =~ "/skills/pdf/edit"
      boss = shown(web, "/skills/pdf", profile: "boss", operator: true)
      assert boss =~ "pdf/SKILL.md"
      assert boss =~ "Visible to profiles"
      refute html =~ "Visible to profiles"
    end

    test "of the store can be edited by a profile that may", %{web: web} do
      for {as, path, edits?} <- [
            {"ann", "/skills/milk", true},
            {"boss", "/skills/milk", true},
            {"ann", "/skills/mail.send", false},
            {[profile: "boss", operator: true], "/skills/milk?as=ann", false}
          ] do
        assert {as, path, shown(web, path, as) =~ "/edit\""} == {as, path, edits?}
      end
    end

    test "that is disabled says so", %{web: web} do
      html = shown(web, "/skills/old-plan", "ann")
      assert html =~ "Disabled: nobody finds it, and no prompt has it."
      assert html =~ ">Enable</button>"
    end

    test "has a page for each text file", %{web: web} do
      assert shown(web, "/skills/pdf/files/references/forms.md", "ann") =~ "# Forms &lt;b&gt;"

      for path <- ~w(SKILL.md references references/none.md ..%2Fsecret%2FSKILL.md x) do
        assert {path, get(web, "/skills/pdf/files/" <> path, "ann").status} == {path, 404}
      end
    end

    test "is JSON too", %{web: web} do
      json = json(web, "/skills/milk?format=json", "ann")
      assert %{"name" => "milk", "kind" => "note", "version" => 1, "editable" => true} = json
      assert json["content"] == "# Milk\n\nTwo bottles."
      refute Map.has_key?(json, "path")

      assert json(web, "/skills/pdf?format=json", profile: "boss", operator: true)["path"] =~
               "pdf/SKILL.md"
    end

    test "says in which lists of profiles it is, for operators", %{web: web} do
      html = shown(web, "/skills/milk", profile: "boss", operator: true)

      cells =
        for {"td", %{"data-column" => "Sees it"}, _} = cell <- HtmlChecker.elements(html),
            do: HtmlChecker.text(cell)

      # ann, boss, guest
      assert cells == ["yes", "yes", "no", "no"]
    end
  end

  describe "a hidden entry" do
    test "is like a missing one, on every route", %{web: web} do
      for {method, path} <- [
            {"GET", ""},
            {"GET", "/edit"},
            {"POST", "/edit"},
            {"GET", "/change"},
            {"POST", "/change"},
            {"GET", "/versions"},
            {"GET", "/versions/1"},
            {"POST", "/restore"},
            {"POST", "/enable"},
            {"POST", "/disable"},
            {"GET", "/delete"},
            {"POST", "/delete"},
            {"GET", "/export"},
            {"GET", "/files/a"}
          ],
          profile <- ["ann", "guest"],
          format <- ["", "?format=json"] do
        [hidden, missing] =
          for name <- ["secret-plan", "missing-one"] do
            target = "/skills/#{name}#{path}#{format}"

            options =
              if method == "POST", do: [form: %{"version" => "1", "number" => "1"}], else: []

            Requests.call(web, method, target, [as: profile] ++ options)
          end

        assert {method, path, hidden} == {method, path, missing}
        assert hidden.status in [403, 404]
      end
    end
  end

  describe "seen as another profile" do
    test "an operator sees what the profile sees, and links keep it", %{web: web} do
      boss = [profile: "boss", operator: true]
      assert "secret-plan" in names(shown(web, "/skills", boss))
      html = shown(web, "/skills?as=ann", boss)
      refute "secret-plan" in names(html)
      assert html =~ ~s(href="/skills/milk?as=ann")
      assert html =~ "You see the book as the profile "
      assert get(web, "/skills/secret-plan?as=ann", boss).status == 404
      refute shown(web, "/skills/pdf?as=ann", boss) =~ "SKILL.md"
    end

    test "nobody else does, and nothing is changed", %{web: web} do
      for {method, target, as, status} <- [
            {"GET", "/skills?as=boss", "ann", 404},
            {"GET", "/skills?as=ann", "ann", 404},
            {"GET", "/skills?as=nobody", [profile: "boss", operator: true], 404},
            {"GET", "/skills?as=", [profile: "boss", operator: true], 200},
            {"POST", "/skills/milk/disable?as=ann", [profile: "boss", operator: true], 403},
            {"GET", "/skills/milk/edit?as=ann", [profile: "boss", operator: true], 403},
            {"GET", "/new?as=ann", [profile: "boss", operator: true], 403}
          ] do
        response = Requests.call(web, method, target, as: as)
        assert {target, as, response.status} == {target, as, status}
        assert HtmlChecker.page(response.body) == []
      end
    end
  end

  test "missing pages and wrong methods have pages of their own", %{web: web} do
    for {method, target, status, text} <- [
          {"GET", "/nothing", 404, "There is nothing here, or you may not see it."},
          {"GET", "/skills/milk/nothing", 404, "There is nothing here, or you may not see it."},
          {"DELETE", "/skills/milk", 405, "This address takes GET, not DELETE."},
          {"GET", "/skills/milk/enable", 405, "This address takes POST, not GET."},
          {"GET", "/assets/app.css", 404, "There is nothing here, or you may not see it."}
        ] do
      response = Requests.call(web, method, target, as: "ann")
      assert {target, response.status, response.body =~ text} == {target, status, true}
      unless target =~ "assets", do: assert(HtmlChecker.page(response.body) == [])
    end
  end

  test "the style and the script are kept by browsers for good", %{web: web} do
    html = shown(web, "/skills", "ann")

    for {name, _, _} = element <- HtmlChecker.elements(html), name in ["link", "script"] do
      path = elem(element, 1)["href"] || elem(element, 1)["src"]
      response = Requests.call(web, "GET", path)
      assert response.status == 200
      assert Requests.header(response, "cache-control") == "public, max-age=31536000, immutable"
    end
  end

  describe "the stream of events" do
    test "names the topics that have changed for its caller, and nothing else", %{
      book: book,
      web: web
    } do
      {_, ann} = Requests.stream(web, "GET", "/events", as: "ann")
      {_, guest} = Requests.stream(web, "GET", "/events", as: "guest")
      assert_receive {:part, ^ann, "event: ready\ndata: \n\n"}
      assert_receive {:part, ^guest, "event: ready\ndata: \n\n"}

      {:ok, _} =
        Store.put_note(Skillbook.view(book, "ann"), "Tea", "x", fields: %{labels: ["family"]})

      assert_receive {:part, ^ann, "event: skills\ndata: \n\n"}
      refute_receive {:part, ^guest, "event: " <> _}, 300

      {:ok, _} =
        Store.put_note(Skillbook.view(book, "boss"), "Raid", "x", fields: %{labels: ["boss"]})

      refute_receive {:part, ^ann, "event: " <> _}, 400
    end
  end
end
