defmodule Skillbook.Web.Page.WrongTest do
  # The pages about diagnostics, their fixes, and the state of a book.
  use Skillbook.PageCase, async: true

  alias Skillbook.Test.{HtmlChecker, Requests}

  @moduletag :tmp_dir
  @moduletag :capture_log
  @operator [profile: "root", operator: true]

  @broken "---\nname: x.mail\ndescription: Sends: mail <b>now</b>\ntags: a, b\n---\n" <>
            "## Usage\n\nx.gone --to <a>\n"

  setup %{tmp_dir: folder} do
    {own, other} = {Path.join(folder, "own"), Path.join(folder, "other")}

    write(own, %{
      "x/mail.md" => @broken,
      "x/odd.md" => "no frontmatter",
      "x/deep/none.md" => "---\nname: none\n---\n"
    })

    write(other, %{"y/read.md" => "---\nname: y.read\ndescription: Reads: mail\n---\n# y\n"})

    {:ok, context} =
      served(
        sources: [
          [path: other, name: "other", trust: :low, labels: ["team"]],
          [path: folder <> "/gone", optional: true]
        ],
        write_to: own,
        profiles: [[id: "root", grants: :all], [id: "ann"]]
      )

    {:ok, context ++ [own: own, other: other]}
  end

  describe "/diagnostics" do
    test "have their place, the line itself and the meaning of the code", %{web: web, own: own} do
      data = json(web, "/diagnostics?code=frontmatter_repaired", @operator)

      assert %{
               "path" => path,
               "line" => 3,
               "entry" => "x.mail",
               "text" => "description: Sends: mail <b>now</b>",
               "fix" => true
             } = Enum.find(data["diagnostics"], &(&1["entry"] == "x.mail"))

      assert path == Path.join(own, "x/mail.md")
      body = get(web, "/diagnostics?code=frontmatter_repaired", @operator)
      assert body =~ ~s(title="#{path}">x/mail.md:3:)
      assert body =~ "description: Sends: mail &lt;b&gt;now&lt;/b&gt;\n"
      assert body =~ "Write the line as the message shows it"
      # A file that is no entry is read from its source.
      assert Enum.any?(
               json(web, "/diagnostics", @operator)["diagnostics"],
               &(&1["path"] == Path.join(own, "x/deep/none.md"))
             )
    end

    test "are filtered by severity and code, and have pages", %{web: web, own: own, book: book} do
      all = json(web, "/diagnostics", @operator)

      for {severity, count} <- all["severities"] do
        chosen = json(web, "/diagnostics?severity=#{severity}", @operator)["diagnostics"]

        assert {length(chosen), Enum.uniq(Enum.map(chosen, & &1["severity"]))} ==
                 {count, [severity]}
      end

      assert json(web, "/diagnostics?code=none", @operator)["diagnostics"] == []
      assert json(web, "/diagnostics?severity=none", @operator)["total"] == all["total"]

      write(
        own,
        for(
          n <- 1..60,
          into: %{},
          do: {"z/n#{n}.md", "---\nname: z.n#{n}\ndescription: A: b\n---\nText\n"}
        )
      )

      Skillbook.reload(book)
      body = get(web, "/diagnostics", @operator)
      assert body =~ "and 41 more files"
      assert length(String.split(body, "/diagnostics/fix?path=")) == 21
      %{"pages" => 2, "diagnostics" => first} = json(web, "/diagnostics", @operator)
      %{"diagnostics" => second} = json(web, "/diagnostics?page=2", @operator)
      assert length(first) == 50 and second != [] and first -- second == first

      for page <- ~w(0 3 x -1),
          do: assert(json(web, "/diagnostics?page=#{page}", @operator)["page"] == 1)
    end

    test "of pages come with a check on demand", %{web: web} do
      codes = fn target, as ->
        for one <- json(web, target, as)["diagnostics"], do: one["code"]
      end

      refute "example_unknown" in codes.("/diagnostics", "ann")
      assert "example_unknown" in codes.("/diagnostics?advice=1", "ann")
    end

    test "of another profile's view have no paths", %{web: web, own: own, book: book} do
      # A message that names another file.
      write(own, %{"a/one.md" => page("same"), "a/two.md" => page("same")})
      Skillbook.reload(book)

      messages = fn as ->
        for one <- json(web, "/diagnostics?code=duplicate_name", as)["diagnostics"],
            do: one["message"]
      end

      assert [message] = messages.(@operator)
      assert message =~ Path.join(own, "a/one.md")
      assert messages.("ann") == [String.replace(message, own <> "/", "")]
      data = json(web, "/diagnostics", "ann")
      assert Enum.map(data["diagnostics"], & &1["path"]) |> Enum.uniq() == [nil]

      entries = for one <- data["diagnostics"], do: one["entry"]
      assert "x.mail" in entries
      refute "y.read" in entries
      refute get(web, "/diagnostics", "ann") =~ own
      # The source has a label that `ann` does not have.
      refute get(web, "/diagnostics", "ann") =~ "y.read"
    end
  end

  describe "/diagnostics/fix" do
    defp preview(web, path, as \\ @operator),
      do: Requests.call(web, "GET", "/diagnostics/fix?path=#{URI.encode_www_form(path)}", as: as)

    defp digest(response) do
      [digest] =
        for {"input", %{"name" => "digest", "value" => value}, _} <-
              HtmlChecker.elements(response.body),
            do: value

      digest
    end

    defp fix(web, path, digest, as \\ @operator),
      do:
        Requests.call(web, "POST", "/diagnostics/fix",
          as: as,
          form: %{"path" => path, "digest" => digest}
        )

    test "shows the difference, and then writes it", %{web: web, own: own, book: book} do
      path = Path.join(own, "x/mail.md")
      assert get(web, "/diagnostics", @operator) =~ "/diagnostics/fix?path="
      response = checked(preview(web, path))
      assert response.body =~ "<del>-tags: a, b</del>"
      assert File.read!(path) == @broken

      assert %{status: 303} = fix(web, path, digest(response))

      assert File.read!(path) ==
               "---\nname: x.mail\ndescription: \"Sends: mail <b>now</b>\"\n" <>
                 "tags:\n- a\n- b\n---\n## Usage\n\nx.gone --to <a>\n"

      # The book has read it again, and nothing is left to fix.
      refute Enum.any?(Skillbook.diagnostics(book), &(&1.path == path and &1.fix != nil))
      assert preview(web, path).status == 404
    end

    test "writes nothing if the file has changed since the preview", %{web: web, own: own} do
      path = Path.join(own, "x/mail.md")
      digest = digest(preview(web, path))
      changed = String.replace(@broken, "a, b", "a, c")
      File.write!(path, changed)
      response = fix(web, path, digest)
      assert checked(response).status == 409
      assert response.body =~ "The file has changed since"
      assert File.read!(path) == changed
      # The new preview counts.
      assert %{status: 303} = fix(web, path, digest(response))
    end

    test "is only for files that the book writes to, and only for operators", context do
      %{web: web, own: own, other: other, tmp_dir: folder} = context
      write(folder, %{"outside.md" => @broken})
      File.ln_s!(Path.join(folder, "outside.md"), Path.join(own, "x/link.md"))
      mine = Path.join(own, "x/mail.md")
      digest = digest(preview(web, mine))

      for {path, as} <- [
            {Path.join(other, "y/read.md"), @operator},
            {Path.join(folder, "outside.md"), @operator},
            {Path.join(own, "../outside.md"), @operator},
            {Path.join(own, "x/../x/mail.md"), @operator},
            {Path.join(own, "x/link.md"), @operator},
            {Path.join(own, "x/gone.md"), @operator},
            {"x/mail.md", @operator},
            {"", @operator},
            {mine, "ann"},
            {mine, "root"}
          ] do
        assert {path, as, preview(web, path, as).status} == {path, as, 404}
        assert {path, as, fix(web, path, digest, as).status} == {path, as, 404}
      end

      assert File.read!(mine) == @broken
      assert File.read!(Path.join(folder, "outside.md")) == @broken
      refute get(web, "/diagnostics", @operator) =~ "y%2Fread.md"
    end
  end

  test "/status shows sources and services to an operator", %{
    web: web,
    own: own,
    other: other,
    book: book
  } do
    data = json(web, "/status", @operator)

    sources =
      for one <- data["sources"],
          into: %{},
          do: {one["name"], {one["state"], one["entries"], one["trust"]}}

    assert sources["other"] == {"ok", 1, "low"}
    assert sources["gone"] == {"missing", 0, "medium"}
    assert {"ok", _, "medium"} = sources["own"]
    assert Enum.find(data["sources"], &(&1["name"] == "own"))["errors"] > 0

    services = for one <- data["services"], into: %{}, do: {one["name"], one["state"]}

    assert services == %{
             "Database" => "ok",
             "Schedules" => "ok",
             "Embedder" => "off",
             "Agent" => "off"
           }

    body = get(web, "/status", @operator)
    assert body =~ own and body =~ other

    File.rm_rf!(other)

    assert %{"state" => "failed", "problem" => "no such file or directory"} =
             Enum.find(json(web, "/status", @operator)["sources"], &(&1["name"] == "other"))

    for as <- ["ann", "root"],
        do: assert(Requests.call(web, "GET", "/status", as: as).status == 404)

    assert book
  end

  describe "/connections" do
    setup %{tmp_dir: folder} do
      book = :"connections_#{System.unique_integer([:positive])}"
      key = Skillbook.Connections.generate_key()
      google = [client_id: "app", client_secret: fn -> "s3cret" end]

      start_supervised!(
        {Skillbook,
         name: book,
         sources: [],
         store: Path.join(folder, "connections.db"),
         connections: fn ->
           [key: fn -> key end, google: google, hubspot: [token: fn -> "t0ken" end]]
         end,
         profiles: [[id: "root"], [id: "ann"], [id: "bob"]]},
        id: book
      )

      # Withdrawn ones, whose end asks no vendor.
      sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))

      for id <- ["ann", "bob"] do
        Skillbook.SQL.query!(
          sql,
          "insert into skillbook_connections (profile, account, status, identity, scopes, " <>
            "key_id, secret, expires_at, version, revision, connected_at, renewed_at) values " <>
            "($1, 'google', 'revoked', $2, '', 'k', 'x', 0, 1, 1, $3, $3)",
          [id, "#{id}<b>@example.com", ~U[2026-03-01 08:00:00Z]]
        )
      end

      {:ok, book: book, web: Requests.web(book)}
    end

    defp accounts(web, as) do
      for one <- json(web, "/connections", as)["connections"],
          do: {one["account"], one["profile"], one["status"]}
    end

    test "are one's own, and all of them for an operator", %{web: web} do
      assert accounts(web, "ann") == [
               {"google", "ann", "revoked"},
               {"hubspot", "ann", "connected"}
             ]

      assert accounts(web, @operator) |> Enum.sort() == [
               {"google", "ann", "revoked"},
               {"google", "bob", "revoked"},
               {"hubspot", nil, "connected"}
             ]

      body = get(web, "/connections", "ann")
      assert body =~ "ann&lt;b&gt;@example.com"
      for text <- ["bob", "s3cret", "t0ken"], do: refute(body =~ text)
    end

    test "come in pages", %{web: web, book: book} do
      sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))

      insert = """
      with recursive n(n) as (select 100 union all select n + 1 from n where n < 219)
      insert into skillbook_connections (profile, account, status, scopes, key_id, secret,
        expires_at, version, revision, connected_at, renewed_at)
      select 'p' || n, 'google', 'revoked', '', 'k', 'x', 0, 1, 1, $1, $1 from n
      """

      Skillbook.SQL.query!(sql, insert, [~U[2026-03-01 08:00:00Z]])

      page = fn after_ -> json(web, "/connections?after=#{after_}", @operator) end
      profiles = fn page -> for one <- page["connections"], do: one["profile"] end
      first = page.("")
      assert first["next"] == "google p197"
      assert get(web, "/connections", @operator) =~ ~s(href="/connections?after=google+p197")
      second = page.("google+p197")
      assert second["next"] == nil
      refute get(web, "/connections?after=google+p197", @operator) =~ "Next</a>"

      assert profiles.(first) ++ profiles.(second) ==
               ["ann", "bob"] ++ for(n <- 100..219, do: "p#{n}") ++ [nil]

      # Those of others are not reached by a place among them.
      assert json(web, "/connections?after=google+a", "ann")["connections"] ==
               json(web, "/connections", "ann")["connections"]

      assert page.("nothing+ann") == first
    end

    test "end for their own profile, or by an operator", %{web: web, book: book} do
      disconnect = fn account, profile, as ->
        form = %{"profile" => profile}
        Requests.call(web, "POST", "/connections/#{account}", as: as, form: form).status
      end

      for {account, profile, as} <- [
            {"google", "bob", "ann"},
            {"google", "none", "ann"},
            {"google", "", "ann"},
            {"hubspot", "ann", "ann"},
            {"nothing", "ann", "ann"},
            {"hubspot", "ann", @operator},
            {"google", "", @operator},
            {"google", "a\nb", @operator}
          ],
          do:
            assert(
              {account, profile, disconnect.(account, profile, as)} == {account, profile, 404}
            )

      assert Requests.call(web, "POST", "/connections/google?as=ann",
               as: @operator,
               form: %{"profile" => "ann"}
             ).status == 403

      assert length(accounts(web, @operator)) == 3
      assert disconnect.("google", "ann", "ann") == 303
      assert disconnect.("google", "bob", @operator) == 303
      assert {:ok, [%{account: :hubspot}]} = Skillbook.Connections.list(book)
    end

    test "of a book without accounts are none", %{tmp_dir: folder} do
      web = Requests.web(book(sources: [folder], builtins: false))

      assert get(web, "/connections", profile: "default", operator: true) =~
               "This book has no accounts."
    end
  end
end
