defmodule Skillbook.Web.ResponseTest do
  # Answers that clients may keep: their etags, 304, and who may keep them. `published_test.exs`
  # has those of published skills.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.{RawHTTP, Requests}
  alias Skillbook.Web.{Response, Server, Tokens}

  @moduletag :tmp_dir

  @targets ["/api/skills", "/api/skills?q=tea", "/api/skills/tea", "/api/openapi.json"]

  setup %{tmp_dir: folder} do
    write(folder, %{
      "tea/SKILL.md" => skill("tea"),
      "milk/SKILL.md" => skill("milk"),
      "plan/SKILL.md" => skill("plan", "visibility_labels: [staff]\n")
    })

    profiles = [
      [id: "ann"],
      [id: "bea"],
      [id: "staff", grants: ["staff"]],
      [id: "near", tenant: "near"],
      [id: "far", tenant: "far"]
    ]

    options = [sources: [folder], builtins: false, watch: false, store: ":memory:"]
    name = book(options ++ [profiles: profiles])
    %{web: Requests.web(name), book: name}
  end

  defp skill(name, more \\ ""),
    do: "---\nname: #{name}\ndescription: Makes #{name}\n#{more}---\nDo it.\n"

  defp get(web, target, options \\ [as: "ann"]), do: Requests.call(web, "GET", target, options)
  defp etag(response), do: Requests.header(response, "etag")
  defp known(etag, as \\ "ann"), do: [as: as, headers: [{"if-none-match", etag}]]

  test "an answer of the API has an etag, for which a client gets 304", %{web: web} do
    for target <- @targets do
      full = get(web, target)
      assert "W/" <> strong = etag = etag(full)

      for {given, status} <- [
            {etag, 304},
            {strong, 304},
            {~s("a", #{etag}), 304},
            {~s(W/"a",#{etag}  , "b"), 304},
            {"*", 304},
            {~s("a"), 200},
            {"", 200},
            {String.trim(strong, "\""), 200},
            {String.upcase(strong), 200}
          ],
          method <- ["GET", "HEAD"] do
        got = Requests.call(web, method, target, known(given))
        assert {target, given, got.status} == {target, given, status}
        assert etag(got) == etag
        assert Requests.header(got, "cache-control") == "private, no-cache"
        assert Requests.header(got, "vary") == "authorization, cookie"
        if {method, status} == {"GET", 200}, do: assert(got.body == full.body)

        if status == 304 do
          assert got.body == ""
          for name <- ["content-type", "content-length"], do: refute(Requests.header(got, name))
          assert Requests.header(got, "x-content-type-options") == "nosniff"
        end
      end
    end
  end

  test "nothing else has one, and its status does not depend on one", %{web: web} do
    for {target, options, status} <- [
          {"/api/skills/none", [as: "ann"], 404},
          {"/api/skills/plan", [as: "ann"], 404},
          {"/api/skills?limit=0", [as: "ann"], 400},
          {"/api/none", [as: "ann"], 404},
          {"/api/skills", [], 401},
          {"/api/skills", [as: "ann", host: "evil.example"], 421},
          {"/skills", [as: "ann"], 200},
          {"/skills?format=json", [as: "ann"], 200},
          {"/prompt", [as: "ann"], 200}
        ] do
      got = get(web, target, options ++ [headers: [{"if-none-match", "*"}]])
      assert {target, got.status, etag(got)} == {target, status, nil}
      assert Requests.header(got, "cache-control") == "no-store"
    end

    headers = [{"if-none-match", "*"}]
    assert Requests.call(web, "POST", "/api/skills", as: "ann", headers: headers).status == 405
  end

  test "an etag changes with the answer, and only with it", context do
    %{web: web, tmp_dir: folder, book: book} = context
    before = Map.new(@targets, &{&1, etag(get(web, &1))})
    :ok = Skillbook.reload(book)
    for target <- @targets, do: assert(etag(get(web, target)) == before[target])

    rows = [
      {%{"milk/SKILL.md" => skill("milk", "title: Milk\n")}, ["/api/skills"]},
      {%{"plan/SKILL.md" => skill("plan", "visibility_labels: [staff]\ntitle: P\n")}, []},
      {%{"tea/SKILL.md" => skill("tea", "title: Tea\n")}, @targets -- ["/api/openapi.json"]}
    ]

    Enum.reduce(rows, before, fn {files, changed}, before ->
      write(folder, files)
      :ok = Skillbook.reload(book)

      for target <- @targets, into: %{} do
        got = get(web, target, known(before[target]))
        expected = if target in changed, do: 200, else: 304
        assert {changed, target, got.status} == {changed, target, expected}
        {target, etag(got)}
      end
    end)
  end

  test "one caller's etag gives another one no answer but its own", %{web: web, book: book} do
    fields = %{kind: :skill, name: "own", title: "Own", description: "", content: "Own.\n"}

    for id <- ["near", "far"] do
      view = Skillbook.view(book, id)
      {:ok, _} = Skillbook.Store.create(view, %{fields | description: "Of #{id}"}, by: :user)
    end

    for one <- ~w(ann bea staff near far),
        two <- ~w(ann bea staff near far),
        target <- @targets do
      mine = get(web, target, as: two)
      other = get(web, target, as: one)
      got = get(web, target, known(etag(other), two))
      same? = mine.body == other.body
      expected = if same?, do: {304, ""}, else: {200, mine.body}
      assert {one, two, target, {got.status, got.body}} == {one, two, target, expected}
      assert etag(got) == etag(mine)
      assert Requests.header(got, "cache-control") == "private, no-cache"
      # Each tenant has another list; those of one have the same.
      if target == "/api/skills", do: assert(same? == (one == two or {one, two} in same()))
    end
  end

  defp same, do: [{"ann", "bea"}, {"bea", "ann"}]

  test "a token that was revoked gets no 304", %{web: web, book: book} do
    {:ok, token} = Tokens.create(book, profile: "ann", scopes: [:api])
    bearer = [{"authorization", "Bearer " <> token.secret.()}]
    etag = etag(get(web, "/api/skills", headers: bearer))
    again = [headers: [{"if-none-match", etag} | bearer]]
    assert get(web, "/api/skills", again).status == 304
    :ok = Tokens.revoke(book, token.id)
    assert get(web, "/api/skills", again).status == 401
  end

  test "the server sends 304 without a body and a length", %{book: book} do
    options = [book: book, authenticate: :none, profile: "ann", port: 0]
    %{url: "http://" <> host = url} = Server.info(start_supervised!({Server, options}))

    ask = fn method, more ->
      socket = RawHTTP.connect(url)
      RawHTTP.put(socket, "#{method} /api/skills HTTP/1.1\r\nhost: #{host}\r\n#{more}\r\n")
      response = RawHTTP.response(socket, method: method)
      RawHTTP.close(socket)
      response
    end

    for method <- ["GET", "HEAD"] do
      assert {200, %{"etag" => etag, "content-length" => _}, _} = ask.(method, "")
      assert {304, headers, ""} = ask.(method, "if-none-match: #{etag}\r\n")
      assert headers["etag"] == etag
      refute is_map_key(headers, "content-length")
      refute is_map_key(headers, "content-type")
    end
  end

  test "an answer keeps its own etag, and an error gets none" do
    own = Response.put_header(Response.text(200, "a"), "etag", ~s("1"))
    assert etag(Response.private(own)) == ~s("1")

    assert etag(Response.private(Response.text(200, ["a", "b"]))) ==
             etag(Response.private(Response.text(200, "ab")))

    for status <- [304, 404],
        response = Response.text(status, "a"),
        do: assert(Response.private(response) == response)
  end
end
