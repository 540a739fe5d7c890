defmodule Skillbook.Web.API.DescriptionTest do
  # The description of the API, as openapi-spec-validator reads it, and the API as described: its
  # paths, fields of queries, and answers. The validator is that of bin/mcp-for-tests.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Support.JSON
  alias Skillbook.Test.Requests
  alias Skillbook.Web.API

  @moduletag :tmp_dir

  @files %{
    "tea/SKILL.md" => "---\nname: tea\ndescription: Brews tea\ntags: [hot]\n---\nBoil.\n",
    "cup/wash.md" => "---\nname: cup.wash\ntitle: Wash\ndescription: Washes\n---\n# Wash\n",
    "zebra/SKILL.md" => "---\nname: zebra\ndescription: Stripes\ntags: [far]\n---\nHoof.\n"
  }
  @profiles [[id: "ann", tenant: "near"], [id: "bob", tenant: "far"]]

  setup %{tmp_dir: folder} do
    write(folder, @files)
    name = book(sources: [folder], builtins: false, store: ":memory:", profiles: @profiles)
    %{web: Requests.web(name), book: name}
  end

  defp get(web, target, options \\ [as: "ann"]) do
    response = Requests.call(web, "GET", target, options)
    {:ok, term} = JSON.decode(response.body)
    {response.status, term}
  end

  defp described(web) do
    assert {200, description} = get(web, "/api/openapi.json")
    description
  end

  # The mistakes of the description and of `:changed` ones, whether `:fields` are as described,
  # and the mistakes of `:answers`.
  defp judged(description, given) do
    folder =
      System.get_env("SKILLBOOK_MCP") ||
        raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
                "bin/mcp-for-tests run mix test"

    script = Path.expand("../../../support/openapi.py", __DIR__)
    file = Path.join(System.tmp_dir!(), "openapi_#{System.unique_integer([:positive])}.json")
    on_exit(fn -> File.rm(file) end)
    none = %{changed: [], fields: [], answers: []}
    given = none |> Map.merge(Map.new(given)) |> Map.put(:description, description)
    File.write!(file, JSON.encode(given))
    assert {output, 0} = System.cmd(Path.join(folder, "bin/python"), [script, file])
    {:ok, %{"descriptions" => [[] | changed]} = judged} = JSON.decode(output)
    {changed, judged["fields"], judged["answers"]}
  end

  test "is valid, and mistakes in it are found", %{web: web} do
    description = described(web)
    assert description["openapi"] == "3.1.0"

    changed =
      for {path, wrong} <- [
            {["paths", "/skills", "get", "parameters"], [%{"name" => "q", "in" => "body"}]},
            {["paths", "/skills/{name}", "get", "parameters"], []},
            {["paths", "/skills/{name}", "get", "operationId"], "skills"},
            {["components", "schemas", "Error", "type"], "words"},
            {["info", "version"], nil}
          ],
          do: put_in(description, path, wrong)

    assert {[_ | _] = found, [], []} = judged(description, changed: changed)
    for {one, mistakes} <- Enum.zip(changed, found), do: refute({one, mistakes} == {one, []})
  end

  # A path without its names in braces, and its operation.
  defp targets(description) do
    for {path, methods} <- description["paths"], {"get", operation} <- methods do
      {"/api" <> String.replace(path, "{name}", "tea"), operation["operationId"]}
    end
  end

  test "has each path that is answered, and each of its paths is answered", %{web: web} do
    described = web |> described() |> targets() |> Enum.map(&elem(&1, 0))
    segments = ~w(openapi.json skills tea skill prompt search run files events) ++ ["", "*", "x"]

    for target <- described do
      assert {200, _} = get(web, target)
      assert %{status: 200} = Requests.call(web, "HEAD", target, as: "ann")
      assert %{status: 405} = Requests.call(web, "POST", target, as: "ann")
    end

    for one <- segments, two <- segments, three <- ["", "x"] do
      target = ["/api" | Enum.reject([one, two, three], &(&1 == ""))] |> Enum.join("/")
      {status, body} = get(web, target)
      missing? = body == %{"error" => "Not found. /api/openapi.json describes the API."}
      skill? = target =~ ~r{\A/api/skills/[^/]+\z}
      assert {target, missing?} == {target, target not in described and not skill?}
      if skill?, do: assert({target, status} == {target, if(target =~ "tea", do: 200, else: 404)})
    end
  end

  test "has conversations if they are served", %{web: web, book: book} do
    refute is_map_key(described(web)["paths"], "/chat")
    description = described(Requests.web(book, serve: [:api, :chat]))
    assert {[], [], []} = judged(description, [])
    assert %{"post" => %{"operationId" => "chat"}} = description["paths"]["/chat"]
  end

  # Values of fields that are described as right, and those that are not. `cursor` is a text, of
  # which only those of an answer are right.
  @fields [
    {"q", "", true},
    {"q", String.duplicate("x", 1_000), true},
    {"q", String.duplicate("x", 1_001), false},
    {"kind", "note", true},
    {"kind", "workflow", false},
    {"kind", "", false},
    {"limit", "1", true},
    {"limit", "1000", true},
    {"limit", "0", false},
    {"limit", "1001", false},
    {"limit", "ten", false},
    {"limit", "", false},
    {"other", "x", false},
    {"tags", "x", false}
  ]
  @tags [{["a"], true}, {["a", "b"], true}, {[""], false}, {Enum.map(1..21, &"#{&1}"), false}]

  test "fields of queries are answered as they are described", %{web: web} do
    fields = for {name, value, right?} <- @fields, do: {name, value, [{name, value}], right?}

    tags =
      for {values, right?} <- @tags,
          do: {"tag[]", values, for(v <- values, do: {"tag[]", v}), right?}

    rows = fields ++ tags
    given = for {name, value, _query, _right?} <- rows, do: ["skills", name, value]
    {[], found, []} = judged(described(web), fields: given)

    for {{name, value, query, right?}, described?} <- Enum.zip(rows, found) do
      {status, _body} = get(web, "/api/skills?" <> URI.encode_query(query))
      expected = {name, value, right?, if(right?, do: 200, else: 400)}
      assert {name, value, described?, status} == expected
    end
  end

  test "answers of each operation are as described, good ones and bad ones", context do
    %{web: web, book: book} = context
    {200, %{"next" => next}} = get(web, "/api/skills?limit=1")
    none = Requests.web(:openapi_of_no_book)
    wrong = [headers: [{"authorization", "Bearer sb_" <> String.duplicate("a", 43)}], peer: :unix]
    {:ok, token} = Skillbook.Web.Tokens.create(book, profile: "ann", scopes: [:mcp])
    mcp = [headers: [{"authorization", "Bearer " <> token.secret.()}]]
    description = described(web)

    rows =
      [
        {web, "skills", "/api/skills", [as: "ann"], 200},
        {web, "skills", "/api/skills?q=tea&kind=skill&tag[]=hot", [as: "ann"], 200},
        {web, "skills", "/api/skills?limit=1&cursor=" <> next, [as: "ann"], 200},
        {web, "skills", "/api/skills?limit=0", [as: "ann"], 400},
        {web, "skills", "/api/skills?cursor=x", [as: "ann"], 400},
        {web, "skill", "/api/skills/tea", [as: "ann"], 200},
        {web, "skill", "/api/skills/cup.wash", [as: "ann"], 200},
        {web, "skill", "/api/skills/none", [as: "ann"], 404},
        {web, "openapi", "/api/openapi.json", [as: "ann"], 200}
      ] ++
        for {target, operation} <- targets(description),
            {web, query, options, status} <- [
              {web, "?q=%ff", [as: "ann"], 400},
              {web, "", [], 401},
              {web, "", wrong, 401},
              {web, "", mcp, 403},
              {web, "?q=" <> String.duplicate("x", 9_000), [as: "ann"], 414},
              {web, "", [as: "ann", host: "evil.example"], 421},
              {none, "", [as: "ann"], 503}
            ],
            do: {web, operation, target <> query, options, status}

    answers =
      for {web, operation, target, options, status} <- rows do
        {got, body} = get(web, target, options)
        assert {target, got} == {target, status}
        [operation, got, body]
      end

    # The last ones are not as described.
    wrong = [["skills", 200, %{"skills" => [%{"name" => 1}]}], ["skill", 418, %{}]]
    {[], [], mistakes} = judged(description, answers: answers ++ wrong)
    {mistakes, found} = Enum.split(mistakes, -2)
    assert [[_ | _], ["418 is not described"]] = found

    for {[operation, status, body], found} <- Enum.zip(answers, mistakes),
        do: assert({operation, status, body, found} == {operation, status, body, []})
  end

  test "too many wrong tokens are answered as described", %{web: web} do
    peer = {10, 9, :rand.uniform(255), :rand.uniform(255)}

    answers =
      for number <- 1..21 do
        token = "sb_" <> String.pad_leading("#{number}", 43, "a")
        options = [headers: [{"authorization", "Bearer " <> token}], peer: peer]
        {status, body} = get(web, "/api/openapi.json", options)
        ["openapi", status, body]
      end

    assert ["openapi", 429, _body] = List.last(answers)
    assert {[], [], mistakes} = judged(described(web), answers: answers)
    assert Enum.concat(mistakes) == []
  end

  test "needs the caller that the rest of the API needs, and says nothing of one", context do
    %{web: web, book: book} = context
    assert {401, _} = get(web, "/api/openapi.json", [])
    assert described(web) == elem(get(web, "/api/openapi.json", as: "bob"), 1)
    text = Requests.call(web, "GET", "/api/openapi.json", as: "ann").body

    for name <- ~w(tea cup.wash Wash zebra hot far near ann bob) ++ [inspect(book)],
        do: refute({name, text =~ ~r/\b#{Regex.escape(name)}\b/} == {name, true})

    for {options, base, url} <- [
          {[], "", "http://127.0.0.1:4004/api"},
          {[url: "https://example.com/x"], "", "https://example.com/x/api"},
          {[url: "https://example.com"], "/skills", "https://example.com/skills/api"}
        ] do
      web = Requests.web(book, options)
      {200, description} = get(web, "/api/openapi.json", as: "ann", base: base)
      assert description["servers"] == [%{"url" => url}]
      assert description["security"] == [%{"token" => []}]
    end

    open = Requests.web(book, authenticate: :none, profile: "ann")
    {200, description} = get(open, "/api/openapi.json", [])
    assert description["security"] == [%{}, %{"token" => []}]
  end

  test "an operation that others may ask is none of the API", %{web: web} do
    {:ok, caller} = Skillbook.Web.Caller.new(web.book, "ann", via: :open)

    for path <- ["approvals", "runs", "schedule", "usage"] do
      request = %{Requests.request("GET", "/api/" <> path) | caller: caller}
      assert API.handle(request, web).status == 404
    end
  end
end
