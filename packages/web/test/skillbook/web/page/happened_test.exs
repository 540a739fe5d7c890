defmodule Skillbook.Web.Page.HappenedTest do
  # The pages about usage, runs, schedules, approvals and conversations.
  use Skillbook.PageCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{Agent, Book, Model, View}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{HtmlChecker, Requests}
  alias Skillbook.Usage.Writer

  @moduletag :tmp_dir
  @moduletag :capture_log
  @operator [profile: "root", operator: true]
  @profiles [
    [id: "root", grants: :all],
    [id: "ann"],
    [id: "bob"],
    [id: "reader", grants: :all, writes: :deny]
  ]

  setup %{tmp_dir: folder} do
    steps = "## Behavior\n\n```cmd\nx.run --to <b>\nx.fail\n```\n"

    write(folder, %{
      "x/run.md" => page("x.run", handler("Text")),
      "x/fail.md" => page("x.fail", handler("Raise")),
      "x/save.md" => page("x.save", handler("Text") ++ [approval: "required"]),
      "x/flow.md" => page("x.flow", [schedule: "\"0 8 * * *\""], steps)
    })

    served(
      sources: [folder],
      conversations: [],
      profiles: @profiles,
      schedules: [run_as: "ann"],
      usage: [flush: 3_600_000]
    )
  end

  defp run(book, id, lines),
    do: Skillbook.run(Skillbook.view(book, id), "```cmd\n#{Enum.join(lines, "\n")}\n```").results

  defp ask(book, id) do
    [%{status: :pending, data: approval}] = run(book, id, ["x.save --to tea"])
    approval
  end

  describe "/usage" do
    test "has the counts of each skill, its failures and the slowest", %{web: web, book: book} do
      run(book, "ann", ["x.run", "x.run", "x.fail"])
      run(book, "bob", ["x.run"])

      rows = fn as ->
        for row <- json(web, "/usage", as)["rows"], do: {row["key"], row["run"], row["failed"]}
      end

      assert rows.("ann") == [{"x.run", 2, 0}, {"x.fail", 0, 1}]
      assert rows.("bob") == [{"x.run", 1, 0}]
      assert rows.(@operator) == [{"x.run", 3, 0}, {"x.fail", 0, 1}]
      data = json(web, "/usage", @operator)
      assert ["x.fail"] == for(row <- data["failed"], do: row["key"])

      assert Enum.sort(["x.fail", "x.run"]) ==
               Enum.sort(for(row <- data["slowest"], do: row["key"]))

      assert [%{"name" => "x.fail", "profile" => "ann", "state" => "closed", "failures" => 1}] =
               data["breaker"]
    end

    test "has the costs of skills and profiles that the caller may see", context do
      %{web: web, book: book} = context
      assert json(web, "/usage", @operator)["costs"]["rows"] == []
      refute get(web, "/usage", @operator) =~ "Agents</h2>"
      sql = Book.sql(Book.fetch!(book))
      hour = div(System.os_time(:second), 3600)

      for {name, profile, tokens} <- [{"x.flow", "ann", 2_000}, {"", "bob", 1_000}],
          {event, count} <- [
            {"prompt", tokens},
            {"completion", 10},
            {"cached", 500},
            {"cost", tokens * 1_500}
          ],
          do: :ok = Writer.store(sql, [{{hour, "", name, profile, event}, count, 0}])

      keys = fn as, list ->
        for row <- json(web, "/usage", as)["costs"][list], do: {row["key"], row["cost"]}
      end

      assert keys.(@operator, "rows") == [{"x.flow", 0.003}, {"", 0.0015}]
      assert keys.(@operator, "profiles") == [{"ann", 0.003}, {"bob", 0.0015}]
      assert keys.("bob", "rows") == [{"", 0.0015}]
      assert keys.("bob", "profiles") == [{"bob", 0.0015}]

      html = get(web, "/usage", @operator)

      for text <- [
            "0.0045</strong> for 3,020 tokens",
            "Conversations",
            "0.0030",
            # The chart of days.
            ~r/x\.flow: 0\.0030</,
            ~r/<desc id="spent-description">[-\d]{10}: 0\.0045 \(UTC\)\.</
          ],
          do: assert(html =~ text)

      assert %{"series" => ["x.flow", ""], "columns" => [_ | _] = columns} =
               json(web, "/usage", @operator)["costs"]["columns"]

      assert List.last(columns)["spent"] == [3_000_000, 1_500_000]

      assert HtmlChecker.page(html) == []
      refute get(web, "/usage", "bob") =~ "0.0030"
    end

    test "has a bar for each day, with the counts of the table", %{web: web, book: book} do
      sql = Book.sql(Book.fetch!(book))
      hour = div(System.os_time(:second), 3600)

      for {hours, name, count} <- [
            {0, "x.run", 3},
            {30, "x.run", 2},
            {30, "x.fail", 5},
            {24 * 40, "x.run", 7}
          ],
          do: :ok = Writer.store(sql, [{{hour - hours, "", name, "ann", "run"}, count, 1_000}])

      for {days, columns, sum} <- [
            {1, 24..25, 3},
            {7, 7..8, 10},
            {30, 30..31, 10},
            {90, 90..91, 17}
          ] do
        %{"columns" => %{"series" => series, "columns" => all}} =
          json(web, "/usage?days=#{days}", "ann")

        assert length(all) in columns, inspect({days, length(all)})
        assert Enum.sum(Enum.flat_map(all, & &1["counts"])) == sum
        assert Enum.all?(all, &(length(&1["counts"]) == length(series)))

        bars =
          for {"rect", %{"class" => "series-" <> _}, _} <-
                HtmlChecker.elements(get(web, "/usage?days=#{days}", "ann")),
              do: 1

        assert length(bars) == all |> Enum.flat_map(& &1["counts"]) |> Enum.count(&(&1 > 0))
      end

      assert json(web, "/usage?days=x", "ann")["days"] == 7
    end

    test "joins the skills beyond the colors of a chart", context do
      %{web: web, book: book, tmp_dir: folder} = context

      write(
        folder,
        for(n <- 1..8, into: %{}, do: {"y/n#{n}.md", page("y.n#{n}", handler("Text"))})
      )

      Skillbook.reload(book)
      for n <- 1..8, do: run(book, "ann", List.duplicate("y.n#{n}", n))
      %{"series" => series, "columns" => columns} = json(web, "/usage", "ann")["columns"]
      assert series == ~w(y.n8 y.n7 y.n6 y.n5 others)
      assert List.last(columns)["counts"] == [8, 7, 6, 5, 10]
    end
  end

  describe "long lists" do
    test "of used skills and of runs have pages, and new counts are shown at once", context do
      %{web: web, book: book, tmp_dir: folder} = context
      names = for n <- 10..39, do: "y.n#{n}"
      write(folder, for(name <- names, into: %{}, do: {path(name), page(name, handler("Text"))}))
      Skillbook.reload(book)
      run(book, "ann", names)

      shown = fn path ->
        for {"th", %{"scope" => "row"}, [{"a", _, [name]}]} <-
              HtmlChecker.elements(get(web, path, "ann")),
            name in names,
            do: name
      end

      pages = [shown.("/usage?days=1"), shown.("/usage?days=1&page=2")]
      # The table of the slowest is on both.
      assert pages |> Enum.concat() |> Enum.uniq() |> Enum.sort() == names
      assert get(web, "/usage?days=1", "ann") =~ ~s(href="/usage?days=1&amp;page=2")
      run(book, "ann", ["y.n39"])
      assert [%{"key" => "y.n39", "run" => 2} | _] = json(web, "/usage?days=1", "ann")["rows"]
      assert json(web, "/", "ann")["ran"] == 31

      for _ <- 1..25, do: run(book, "ann", ["x.flow"])
      ids = for row <- json(web, "/runs", "ann")["runs"], do: row["id"]
      {newest, older} = Enum.split(ids, 20)
      assert get(web, "/runs", "ann") =~ ~s(href="/runs?run=#{List.last(newest)}">Older runs)
      path = "/runs?run=#{List.last(newest)}"
      assert for(row <- json(web, path, "ann")["runs"], do: row["id"]) == older
      refute get(web, path, "ann") =~ "Older runs"

      for wrong <- ["run=0", "run=x", "firing=x", "firing=2026-01-01T00:00:00Z"],
          do: assert(length(json(web, "/runs?" <> wrong, "ann")["runs"]) == 25)
    end

    defp path(name), do: String.replace(name, ".", "/") <> ".md"

    test "of schedules are cut until all are asked for", context do
      %{web: web, book: book, tmp_dir: folder} = context
      names = for n <- 10..34, do: "y.n#{n}"
      schedule = handler("Text") ++ [schedule: "\"0 9 * * *\"", run_as: "ann"]
      write(folder, for(name <- names, into: %{}, do: {path(name), page(name, schedule)}))
      Skillbook.reload(book)

      data = json(web, "/runs", "ann")
      assert {length(data["next"]), data["more"]} == {20, 6}
      assert get(web, "/runs", "ann") =~ ~s(href="/runs?next=all">All 26 schedules)
      assert length(json(web, "/runs?next=all", "ann")["next"]) == 26
      refute get(web, "/runs?next=all", "ann") =~ "All 26 schedules"
    end
  end

  describe "/runs" do
    test "shows runs, firings and the next ones on a time line and as tables", %{
      web: web,
      book: book
    } do
      run(book, "ann", ["x.flow"])
      data = json(web, "/runs", "ann")
      assert [%{"name" => "x.flow", "status" => "stopped", "ran" => 2, "id" => id}] = data["runs"]

      assert [
               %{
                 "name" => "x.flow",
                 "means" => "at 08:00 every day, UTC",
                 "run_as" => "ann",
                 "at" => [_, _, _]
               }
             ] = data["next"]

      body = get(web, "/runs?hours=168", "ann")
      assert body =~ ~s(class="mark bad")
      assert body =~ ~s(class="mark next")
      assert body =~ ~s(href="/runs/#{id}")
      assert body =~ ~s(href="/try/x.flow")
      assert json(web, "/runs", "bob")["runs"] == []
    end

    defp operate(web, fields, as, query \\ ""),
      do: Requests.call(web, "POST", "/runs" <> query, as: as, form: fields)

    test "an operator pauses and resumes a schedule, and runs it", %{web: web, book: book} do
      for {action, paused?, said} <- [
            {"pause", true, "x.flow is paused."},
            {"run", true, "x.flow runs now; the result comes under Last firings."},
            {"resume", false, "x.flow runs on its schedule again."}
          ] do
        response = operate(web, %{"name" => "x.flow", "action" => action}, @operator)
        path = "/runs?action=#{action}&asked=x.flow"
        assert {response.status, Requests.header(response, "location")} == {303, path}
        assert get(web, path, @operator) =~ ~s(role="status"><p>#{said}</p>)
        none = &String.replace(&1, "x.flow", "x.none")
        refute get(web, none.(path), @operator) =~ none.(said)
        [row] = json(web, "/runs", @operator)["next"]
        assert {action, row["paused"] != nil} == {action, paused?}
        body = get(web, "/runs", @operator)
        assert body =~ if(paused?, do: "Resume<span", else: "Pause<span")
        assert body =~ ~s(class="mark next") != paused?
      end

      # It ran as its schedule would.
      assert eventually(fn ->
               match?([%{"profile" => "ann"}], json(web, "/runs", "ann")["firings"])
             end)

      assert for(
               row <- json(web, "/status", @operator)["operations"],
               do: {row["action"], row["by"]}
             ) ==
               [{"resume", "root"}, {"run", "root"}, {"pause", "root"}]

      # As JSON.
      form = %{"name" => "x.flow", "action" => "pause"}
      response = operate(web, form, @operator, "?format=json")

      assert {:ok, %{"name" => "x.flow", "pause" => %{"by" => "root"}}} =
               JSON.decode(response.body)

      body = get(web, "/runs", @operator)
      assert body =~ "by root"

      # The others see that it is paused, not by whom, and have no buttons.
      body = get(web, "/runs", "bob")
      assert body =~ "paused"
      for text <- ["by root", "Resume", "Run as scheduled"], do: refute(body =~ text)
      assert get(web, "/runs?as=bob", @operator) =~ "paused"
      refute get(web, "/runs?as=bob", @operator) =~ "Resume"
      {:ok, _} = Skillbook.resume_schedule(View.all(book), "x.flow", by: "x")
    end

    test "nobody else operates, and a wrong request changes nothing", %{web: web, book: book} do
      form = %{"name" => "x.flow", "action" => "pause"}

      for {as, query, fields, status} <- [
            {"ann", "", form, 404},
            {[profile: "ann", operator: false], "", form, 404},
            {@operator, "?as=ann", form, 403},
            {[profile: "reader", operator: true], "", form, 403},
            {@operator, "", %{form | "action" => "stop"}, 400},
            {@operator, "", Map.delete(form, "name"), 400},
            {@operator, "", %{form | "name" => "x.none"}, 404},
            {@operator, "", %{form | "name" => "x.run"}, 422}
          ] do
        assert {as, fields, operate(web, fields, as, query).status} == {as, fields, status}
      end

      assert Requests.call(web, "POST", "/runs", as: @operator, body: "x").status == 400
      assert json(web, "/status", @operator)["operations"] == []
      refute get(web, "/runs", profile: "reader", operator: true) =~ "Run as scheduled"
      assert View.all(book)
    end

    test "says that a book without an engine runs no schedules", %{web: web, tmp_dir: folder} do
      text = "This book runs no schedules. At these times they run only in another process"
      body = get(web, "/runs", "ann")
      refute body =~ text
      assert body =~ ~r/<time [^>]*>\d{4}-\d\d-\d\d 08:00 UTC</

      start_supervised!(
        {Skillbook, name: :no_engine, sources: [folder], builtins: false, scheduler: false},
        id: :no_engine
      )

      body = get(Requests.web(:no_engine), "/runs", "default")
      assert body =~ text
      refute body =~ "nobody"
    end

    test "shows the steps of a run, escaped", %{web: web, book: book} do
      run(book, "ann", ["x.flow"])
      [%{"id" => id}] = json(web, "/runs", "ann")["runs"]
      data = json(web, "/runs/#{id}", "ann")

      assert [{"x.run --to \"<b>\"", "ok"}, {"x.fail", "error"}] ==
               for(s <- data["steps"], do: {s["command"], s["status"]})

      assert get(web, "/runs/#{id}", "ann") =~ "x.run --to &quot;&lt;b&gt;&quot;"

      for id <- ["0", "x", "12abc", "99999999999999999999999999"],
          do: assert(Requests.call(web, "GET", "/runs/#{id}", as: "ann").status == 404)
    end
  end

  describe "/status" do
    defp reset(web, fields, as, query \\ ""),
      do: Requests.call(web, "POST", "/status" <> query, as: as, form: fields)

    test "an operator resets a breaker for all profiles", %{web: web, book: book} do
      for id <- ["ann", "bob"], _ <- 1..5, do: run(book, id, ["x.fail"])
      assert [%{"state" => "open"}, _bob] = json(web, "/status", @operator)["breaker"]
      body = get(web, "/status", @operator)
      assert body =~ "out of service"
      assert body =~ "ann, bob"

      for {as, query, fields, status} <- [
            {"ann", "", %{"name" => "x.fail"}, 404},
            {@operator, "?as=ann", %{"name" => "x.fail"}, 403},
            {[profile: "reader", operator: true], "", %{"name" => "x.fail"}, 403},
            {@operator, "", %{}, 400},
            {@operator, "", %{"name" => "x.none"}, 404},
            {@operator, "", %{"name" => "x.flow"}, 422}
          ] do
        assert {as, fields, reset(web, fields, as, query).status} == {as, fields, status}
      end

      assert [_ann, _bob] = json(web, "/status", @operator)["breaker"]
      refute get(web, "/status", profile: "reader", operator: true) =~ "Reset"
      assert get(web, "/usage", @operator) =~ ~s(href="/status")
      refute get(web, "/usage", "ann") =~ ~s(href="/status")

      response = reset(web, %{"name" => "x.fail"}, @operator)
      assert {response.status, Requests.header(response, "location")} == {303, "/status"}
      assert json(web, "/status", @operator)["breaker"] == []
      body = get(web, "/status", @operator)
      assert body =~ "All skills work."
      assert body =~ "breaker reset"
    end
  end

  describe "/approvals" do
    test "an operator says yes: it runs, and who decided is kept", %{web: web, book: book} do
      %{ref: ref} = ask(book, "ann")
      assert get(web, "/approvals", @operator) =~ ref
      assert get(web, "/approvals/#{ref}", @operator) =~ "Yes, run it"
      form = %{"decision" => "yes", "reason" => "Fine <b>"}
      response = Requests.call(web, "POST", "/approvals/#{ref}", as: @operator, form: form)

      assert {response.status, Requests.header(response, "location")} ==
               {303, "/approvals/#{ref}"}

      {:ok, [approval]} = Skillbook.approvals(book, status: [:done])

      assert {approval.ref, approval.by, approval.reason, approval.result.status} ==
               {ref, "root", "Fine <b>", :ok}

      body = get(web, "/approvals/#{ref}", @operator)
      assert body =~ "Fine &lt;b&gt;"
      refute body =~ "Yes, run it"

      assert json(web, "/approvals?status=all", "ann")["approvals"] |> Enum.map(& &1["status"]) ==
               ["done"]

      assert json(web, "/approvals", "ann")["approvals"] == []
    end

    test "a call goes on when the browser of the one who decided has gone", context do
      %{tmp_dir: folder} = context
      write(folder, %{"x/slow.md" => page("x.slow", handler("Tell") ++ [approval: "required"])})

      book =
        book(
          sources: [folder],
          builtins: false,
          store: ":memory:",
          profiles: @profiles,
          assigns: %{tell: self()}
        )

      [%{data: %{ref: ref}}] = run(book, "ann", ["x.slow"])
      form = %{"decision" => "yes"}
      web = Requests.web(book)
      ask = fn -> Requests.call(web, "POST", "/approvals/#{ref}", as: @operator, form: form) end
      pid = spawn(ask)
      assert_receive {:handler, handler, _context}
      Process.exit(pid, :kill)
      send(handler, :go_on)

      done? = &match?({:ok, [%{ref: ^ref, by: "root"}]}, Skillbook.approvals(book, status: &1))

      assert eventually(fn -> done?.(:done) end)
    end

    test "are listed a page at a time", %{web: web, book: book} do
      for _ <- 1..60, id <- ["ann", "bob"], do: ask(book, id)

      refs = fn query ->
        for a <- json(web, "/approvals" <> query, @operator)["approvals"], do: a["ref"]
      end

      assert {length(refs.("")), length(refs.("?page=2"))} == {100, 20}
      assert refs.("") -- refs.("?page=2") == refs.("")
      assert get(web, "/approvals?status=all&page=2", @operator) =~ "Page 2 of 2"
    end

    test "an operator says no: it never runs", %{web: web, book: book} do
      %{ref: ref} = ask(book, "ann")

      assert %{status: 303} =
               Requests.call(web, "POST", "/approvals/#{ref}",
                 as: @operator,
                 form: %{"decision" => "no"}
               )

      assert {:ok, [%{ref: ^ref, by: "root", reason: nil}]} =
               Skillbook.approvals(book, status: [:denied])
    end

    test "nobody else decides, and each wrong request changes nothing", %{web: web, book: book} do
      %{ref: ref} = ask(book, "ann")
      yes = %{"decision" => "yes"}
      decide = &Requests.call(web, "POST", "/approvals/" <> &1, as: &2, form: &3)

      for {as, query, form, status} <- [
            {"ann", "", yes, 404},
            {"bob", "", yes, 404},
            {[profile: "ann", operator: false], "", yes, 404},
            {@operator, "?as=ann", yes, 403},
            {@operator, "", %{}, 422},
            {@operator, "", %{"decision" => "maybe"}, 422},
            {@operator, "", Map.put(yes, "reason", String.duplicate("x", 1_001)), 422},
            {@operator, "", Map.put(yes, "reason", "a\0b"), 422}
          ] do
        assert {as, form, decide.(ref <> query, as, form).status} ==
                 {as, form, status}
      end

      assert %{status: 404} =
               Requests.call(web, "POST", "/approvals/A-none", as: @operator, form: yes)

      assert %{status: 400} =
               Requests.call(web, "POST", "/approvals/#{ref}", as: @operator, body: "x")

      assert {:ok, [%{ref: ^ref, status: :pending}]} = Skillbook.approvals(book)
      assert get(web, "/approvals/#{ref}", "ann") =~ "An operator decides."
      assert Requests.call(web, "GET", "/approvals/#{ref}", as: "bob").status == 404
    end

    test "a page that has changed needs a second look", context do
      %{web: web, book: book, tmp_dir: folder} = context
      %{ref: ref} = ask(book, "ann")

      write(folder, %{
        "x/save.md" => page("x.save", handler("Text") ++ [approval: "required"], "Other.\n")
      })

      Skillbook.reload(book)

      response =
        Requests.call(web, "POST", "/approvals/#{ref}",
          as: @operator,
          form: %{"decision" => "yes"}
        )

      assert response.status == 409
      checked(response)
      assert response.body =~ "its page has changed since the call"
      assert response.body =~ ~s(name="force")

      assert %{status: 303} =
               Requests.call(web, "POST", "/approvals/#{ref}",
                 as: @operator,
                 form: %{"decision" => "yes", "force" => "1"}
               )

      # A second decision is too late.
      no = %{"decision" => "no"}
      again = Requests.call(web, "POST", "/approvals/#{ref}", as: @operator, form: no)

      assert {again.status, again.body =~ "was approved by root"} == {409, true}
    end
  end

  describe "/conversations" do
    setup %{book: book} do
      model =
        Model.Function.new(fn messages, _ ->
          if List.last(messages).content =~ ~r/\A\[1\]/,
            do: "Done <script>.",
            else: "```cmd\nx.run --to '<i>'\n```"
        end)

      {:ok, _} = Agent.run(book, "Do <b>it</b>", model: model, profile: "ann")
      :ok
    end

    test "show each message and command to an operator, escaped", %{web: web} do
      assert [
               %{
                 "title" => "Do <b>it</b>",
                 "profile" => "ann",
                 "turns" => 2,
                 "status" => "done",
                 "run" => run
               }
             ] = json(web, "/conversations", @operator)["conversations"]

      assert get(web, "/conversations", @operator) =~ "Do &lt;b&gt;it&lt;/b&gt;"
      body = get(web, "/conversations/#{run}", @operator)
      assert body =~ "Done &lt;script&gt;."
      assert body =~ "x.run --to &#39;&lt;i&gt;&#39;"
      kinds = for part <- json(web, "/conversations/#{run}", @operator)["parts"], do: part["kind"]
      assert kinds == ~w(message message message command message message)
    end

    test "do not exist for anybody else", %{web: web} do
      [%{"run" => run}] = json(web, "/conversations", @operator)["conversations"]
      missing = Requests.call(web, "GET", "/nowhere", as: "ann")

      for target <- ["/conversations", "/conversations/#{run}", "/conversations/none"] do
        assert Requests.call(web, "GET", target, as: "ann") == missing
        assert Requests.call(web, "GET", target <> "?as=ann", as: @operator).status == 404
      end

      refute get(web, "/usage", "ann") =~ "/conversations"
      assert get(web, "/usage", @operator) =~ "/conversations"
    end
  end

  test "pages of a book without a database say so", %{tmp_dir: folder} do
    book = book(sources: [folder], builtins: false, watch: false, profiles: @profiles)
    web = Requests.web(book)

    for {target, text} <- [
          {"/usage", "This book has no database"},
          {"/runs", "No workflow has run yet"},
          {"/approvals", "Approvals need a database."},
          {"/conversations", "This book does not store conversations"}
        ],
        do: assert(get(web, target, @operator) =~ text)

    assert View.all(book)
  end
end
