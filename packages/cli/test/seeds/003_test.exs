defmodule Skillbook.Seeds.StoreTest do
  # The document about skills in a database: its columns, seven tools, the API of a sandbox, and a
  # page of settings.
  use Skillbook.SeedsCase,
    async: true,
    names: %{
      "storage" =>
        ~w(name title description content tags source version enabled) ++
          [{"_id", "name"}, {"created_on", "created_at"}, {"modified_on", "updated_at"}],
      "context" => ["## Available Skills", "read_skill", "tags"],
      "tools" => ~w(create_skill update_skill delete_skill list_skills read_skill enable_skill
           disable_skill required array string boolean enum),
      "create_skill" => ~w(create_skill name title description content tags version),
      "update_skill" => ~w(update_skill name title description tags operation content find replace
           replace_all find_replace append prepend delete version),
      "delete_skill" => ~w(delete_skill name deleted),
      "list_skills" =>
        ~w(list_skills tag include_disabled skills name title description tags source version),
      "read_skill" => ~w(read_skill name title description content tags source version),
      "enable_skill" => ~w(enable_skill name enabled),
      "disable_skill" => ~w(disable_skill name enabled),
      "sandbox" => [
        {"skills.list", "/api/skills"},
        {"skills.read", "/api/skills/quarterly-reports"},
        "/api/skills?tag=excel",
        "name",
        "title",
        "tags",
        "content"
      ],
      "by the user" => ["/new", "/import", ".md", "create_skill"],
      "by the agent" => ~w(update_skill append),
      "prompt" => ["save"],
      "page" => ~w(/skills title description user agent enable /edit /delete)
    }

  import Skillbook.PageCase, only: [sent: 3]

  alias Skillbook.{Extractor, Store, Tools, View}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{HtmlChecker, Requests}

  @text "# Reports\n\nISO dates only.\n"
  @reports %{
    "name" => "quarterly-reports",
    "title" => "Quarterly Reports",
    "description" => "How the reports of a quarter are built",
    "content" => @text,
    "tags" => ["excel", "finance"]
  }

  setup do
    {:ok, book: book(store: ":memory:", watch: false)}
  end

  # A call as OpenAI's API has it: the status, and the data of the result.
  defp call(book, name, arguments) do
    function = %{"name" => name, "arguments" => JSON.encode(arguments)}
    call = %{"id" => "c1", "type" => "function", "function" => function}
    {result, answer} = Tools.call(Skillbook.view(book), call)
    assert %{"role" => "tool", "tool_call_id" => "c1", "content" => _} = answer
    if result.status == :ok, do: result.data, else: {result.status, result.content}
  end

  defp reports(book), do: call(book, "create_skill", @reports)
  defp content(book), do: call(book, "read_skill", %{"name" => "quarterly-reports"}).content
  defp update(book, changes), do: call(book, "update_skill", named(changes))
  defp named(changes), do: Map.merge(%{"name" => "quarterly-reports"}, Map.new(changes))

  row "storage", "an entry has each column", %{book: book} do
    reports(book)
    {:ok, entry} = Store.fetch(Skillbook.view(book), "quarterly-reports")
    assert {entry.name, entry.title} == {"quarterly-reports", "Quarterly Reports"}
    assert {entry.description, entry.content} == {@reports["description"], @text}
    assert entry.tags == ["excel", "finance"]
    assert {entry.source, entry.version, entry.enabled} == {:agent, 1, true}
  end

  @tag differs: "The times are DateTimes named created_at and updated_at, as in other libraries."
  row "storage", "an entry has its times", %{book: book} do
    reports(book)
    update(book, title: "Reports")
    {:ok, entry} = Store.fetch(Skillbook.view(book), "quarterly-reports")
    assert %DateTime{time_zone: "Etc/UTC"} = entry.created_at
    assert DateTime.compare(entry.updated_at, entry.created_at) in [:gt, :eq]
    assert DateTime.to_iso8601(entry.updated_at) =~ ~r/\A\d{4}-\d\d-\d\dT[\d:.]+Z\z/
  end

  row "context", "the prompt lists names, descriptions and tags", %{book: book} do
    reports(book)
    text = "## Available Skills\n- quarterly-reports: #{@reports["description"]} [excel, finance]"
    assert Skillbook.prompt(Skillbook.view(book), format: :list) |> String.trim() == text
    update(book, tags: ["meta"])
    assert Skillbook.prompt(Skillbook.view(book), format: :list) =~ "[meta]\n"
    assert %{content: @text} = call(book, "read_skill", %{"name" => "quarterly-reports"})
  end

  row "tools", "the definitions have the parameters and their types", %{book: book} do
    tools =
      for %{"function" => tool} <- Tools.definitions(Skillbook.view(book), names: ["skills.*"]),
          into: %{},
          do: {tool["name"], tool["parameters"]}

    for {tool, required, types} <- [
          {"create_skill", ~w(name title description content),
           name: "string",
           title: "string",
           description: "string",
           content: "string",
           tags: "array"},
          {"update_skill", ~w(name),
           name: "string",
           title: "string",
           description: "string",
           tags: "array",
           operation: "string",
           content: "string",
           find: "string",
           replace: "string",
           replace_all: "boolean"},
          {"delete_skill", ~w(name), name: "string"},
          {"list_skills", [], include_disabled: "boolean"},
          {"read_skill", ~w(name), name: "string"},
          {"enable_skill", ~w(name), name: "string"},
          {"disable_skill", ~w(name), name: "string"}
        ] do
      schema = Map.fetch!(tools, tool)
      assert {tool, schema["type"], schema["required"] || []} == {tool, "object", required}

      for {name, type} <- types do
        property = schema["properties"][to_string(name)]
        assert {tool, name, property["type"]} == {tool, name, type}
        if type == "array", do: assert(property["items"]["type"] == "string")
      end
    end

    assert tools["update_skill"]["properties"]["operation"]["enum"] ==
             ~w(replace find_replace append prepend delete)
  end

  @tag differs: "The filter takes several tags and is named tags; the name tag is read as well."
  row "list_skills", "the definition has tags", %{book: book} do
    [_, %{"function" => tool}] = Tools.definitions(Skillbook.view(book), names: ["skills.list"])

    assert {tool["name"], tool["parameters"]["properties"]["tags"]["type"]} ==
             {"list_skills", "array"}

    reports(book)
    assert %{skills: [_]} = call(book, "list_skills", %{"tag" => "excel"})
    assert %{skills: []} = call(book, "list_skills", %{"tags" => ["excel", "meta"]})
  end

  row "create_skill", "returns the name and version 1", %{book: book} do
    assert call(book, "create_skill", @reports) == %{name: "quarterly-reports", version: 1}
    {:ok, entry} = Store.fetch(Skillbook.view(book), "quarterly-reports")

    for field <- ~w(name title description content tags)a,
        do: assert(Map.fetch!(entry, field) == @reports[to_string(field)])
  end

  row "create_skill", "refuses what is missing, taken or no slug", %{book: book} do
    for key <- ~w(name title description content) do
      assert {:error, text} = call(book, "create_skill", Map.delete(@reports, key))
      assert text =~ ~s("#{key}" is required and missing)
    end

    assert %{version: 1} = call(book, "create_skill", Map.delete(@reports, "tags"))
    assert {:error, text} = call(book, "create_skill", @reports)
    assert text =~ "already has an entry"
    assert {:error, text} = call(book, "create_skill", %{@reports | "name" => "Two Words"})
    assert text =~ "small letters" or text =~ "lowercase letters"
  end

  row "create_skill", "after a deletion begins at 1, or says that it continues", %{book: book} do
    reports(book)
    call(book, "delete_skill", %{"name" => "quarterly-reports"})

    line =
      ~s(create_skill --name quarterly-reports --title A --description "What a is" --content b)

    result = run(book, line)
    assert result.status == :ok
    assert result.data.version == 1 or result.content =~ ~r/continu|earlier|deleted/
  end

  row "update_skill", "each operation changes the content and the version", %{book: book} do
    reports(book)

    for {{changes, expected}, version} <-
          Enum.with_index(
            [
              {%{operation: "replace", content: "a b a"}, "a b a"},
              {%{operation: "find_replace", find: "a", replace: "c"}, "c b a"},
              {%{operation: "find_replace", find: "c b", replace: "a a"}, "a a a"},
              {%{operation: "find_replace", find: "a", replace: "d", replace_all: true}, "d d d"},
              {%{operation: "append", content: "end"}, "d d d\nend"},
              {%{operation: "prepend", content: "begin"}, "begin\nd d d\nend"},
              {%{operation: "delete", content: "d d d\n"}, "begin\nend"}
            ],
            2
          ) do
      assert update(book, changes) == %{name: "quarterly-reports", version: version}
      assert {changes, content(book)} == {changes, expected}
    end
  end

  row "update_skill", "fields alone leave the content", %{book: book} do
    reports(book)

    assert %{version: 2} =
             update(book, title: "New", description: "Another purpose", tags: ["one"])

    read = call(book, "read_skill", %{"name" => "quarterly-reports"})
    assert %{title: "New", description: "Another purpose", tags: ["one"], content: @text} = read
  end

  row "update_skill", "a text that is not there changes nothing", %{book: book} do
    reports(book)

    for changes <- [
          %{operation: "find_replace", find: "iso", replace: "x"},
          %{operation: "delete", content: "iso"},
          %{operation: "rewrite", content: "x"},
          %{}
        ] do
      assert {:error, _} = update(book, changes)
      assert content(book) == @text
    end

    assert {:error, text} = call(book, "update_skill", %{"name" => "none", "title" => "x"})
    assert text =~ "none"
  end

  row "delete_skill", "says whether it was deleted", %{book: book} do
    reports(book)
    assert call(book, "delete_skill", %{"name" => "quarterly-reports"}) == %{deleted: true}
    assert {:error, _} = View.fetch(Skillbook.view(book), "quarterly-reports")
  end

  @tag differs: "Deleting an unknown skill is an error with similar names, not deleted: false."
  row "delete_skill", "of an unknown name is an error", %{book: book} do
    reports(book)
    assert {:error, text} = call(book, "delete_skill", %{"name" => "quarterly-report"})
    assert text =~ "quarterly-reports"
  end

  row "list_skills", "by tag, and without the disabled ones", %{book: book} do
    reports(book)
    call(book, "create_skill", %{@reports | "name" => "other", "title" => "B", "tags" => ["x"]})
    names = fn arguments -> for s <- call(book, "list_skills", arguments).skills, do: s.name end

    assert names.(%{}) == ["other", "quarterly-reports"]
    assert names.(%{"tag" => "excel"}) == ["quarterly-reports"]
    call(book, "disable_skill", %{"name" => "other"})
    assert names.(%{}) == ["quarterly-reports"]
    assert names.(%{"include_disabled" => false}) == ["quarterly-reports"]
    assert names.(%{"include_disabled" => true}) == ["other", "quarterly-reports"]

    assert call(book, "list_skills", %{}).skills == [
             %{
               name: "quarterly-reports",
               title: "Quarterly Reports",
               description: @reports["description"],
               tags: ["excel", "finance"],
               source: :agent,
               version: 1
             }
           ]
  end

  row "read_skill", "returns all fields", %{book: book} do
    reports(book)

    assert call(book, "read_skill", %{"name" => "quarterly-reports"}) == %{
             name: "quarterly-reports",
             title: "Quarterly Reports",
             description: @reports["description"],
             content: @text,
             tags: ["excel", "finance"],
             source: :agent,
             version: 1
           }

    assert {:error, _} = call(book, "read_skill", %{"name" => "none"})
  end

  row ["enable_skill", "disable_skill"], "a disabled skill is in no list", %{book: book} do
    reports(book)
    name = "quarterly-reports"

    assert call(book, "disable_skill", %{"name" => name}) == %{name: name, enabled: false}
    refute Skillbook.prompt(Skillbook.view(book)) =~ name
    assert call(book, "enable_skill", %{"name" => name}) == %{name: name, enabled: true}
    assert Skillbook.prompt(Skillbook.view(book)) =~ name
  end

  row "tools", "are commands in a block, too", %{book: book} do
    check(book, [
      {~s(create_skill --name tea --title Tea --description "How tea is made" --content Boil),
       "version 1"},
      {"update_skill --name tea --operation find_replace --find Boil --replace Wait",
       "version 2"},
      {"read_skill tea", ["How tea is made", "Wait"]},
      {"list_skills", "tea: Tea"},
      {"disable_skill tea", "Disabled"},
      {"list_skills --include-disabled", "disabled"},
      {"enable_skill tea", "Enabled"},
      {"delete_skill tea", "Deleted"}
    ])
  end

  defp get(web, target) do
    response = Requests.call(web, "GET", target, as: "default")
    {:ok, data} = JSON.decode(response.body)
    {response.status, data}
  end

  row "sandbox", "the API lists and reads", %{book: book} do
    reports(book)
    web = Requests.web(book)
    {200, %{"skills" => [skill]}} = get(web, "/api/skills?tag=excel")

    assert Map.take(skill, ~w(name title description tags)) ==
             Map.take(@reports, ~w(name title description tags))

    {200, all} = get(web, "/api/skills")
    assert skill in all["skills"]
    {200, read} = get(web, "/api/skills/quarterly-reports")

    assert Map.take(read, ~w(name title description content tags)) ==
             Map.take(@reports, ~w(name title description content tags))

    assert {200, %{"skills" => []}} = get(web, "/api/skills?tag=none")
  end

  row "sandbox", "the API writes nothing", %{book: book} do
    reports(book)
    web = Requests.web(book)

    for method <- ~w(POST PUT PATCH DELETE), path <- ["", "/quarterly-reports"] do
      response = Requests.call(web, method, "/api/skills" <> path, as: "default", json: %{})
      assert {method, response.status} == {method, 405}
    end

    assert content(book) == @text
  end

  row "sandbox", "the API tells commands, skills and notes apart", %{book: book} do
    reports(book)
    {:ok, _} = Store.put_note(Skillbook.view(book), "Milk", "Two bottles.")
    web = Requests.web(book)
    {200, %{"kind" => "skill"}} = get(web, "/api/skills/quarterly-reports")
    {200, %{"skills" => skills}} = get(web, "/api/skills?kind=skill")
    assert for(s <- skills, do: {s["name"], s["kind"]}) == [{"quarterly-reports", "skill"}]
    {200, %{"skills" => commands}} = get(web, "/api/skills?kind=command&limit=1000")
    assert %{"kind" => "command"} = Enum.find(commands, &(&1["name"] == "tasks.get"))
    assert "skill" not in for(c <- commands, do: c["kind"])
  end

  # Sends a form as it was shown, with other values, and then as its preview shows it.
  defp send_form(web, path, changes) do
    form = sent(html(web, path), "preview", changes)
    shown = Requests.call(web, "POST", path, as: "default", form: form)
    assert {path, shown.status} == {path, 200}
    saved = sent(shown.body, "save", %{})
    Requests.call(web, "POST", path, as: "default", form: saved)
  end

  row "by the user", "a form creates a skill", %{book: book} do
    web = Requests.web(book)
    form = %{@reports | "tags" => "excel\nfinance"}
    assert send_form(web, "/new", form).status == 303
    {:ok, entry} = Store.fetch(Skillbook.view(book), "quarterly-reports")
    assert {entry.source, entry.tags} == {:user, ["excel", "finance"]}
    assert String.trim(entry.content) == String.trim(@text)
  end

  row "by the user", "the model saves what was said", %{book: book} do
    reply = """
    I keep that.

    ```cmd
    create_skill --name dates --title Dates --description "How we write dates" --content "ISO."
    ```
    """

    assert {:ok, %{commands: [_]}} = Extractor.extract(reply)
    report = Skillbook.run(Skillbook.view(book), reply)
    assert %{text: "I keep that.", results: [%{status: :ok}]} = report
    {:ok, entry} = Store.fetch(Skillbook.view(book), "dates")
    assert entry.source == :agent
  end

  row "by the user", "a file is read and saved", %{book: book} do
    web = Requests.web(book)
    page = "---\nname: tea\ndescription: How tea is made\n---\nBoil.\n"

    body =
      "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"tea.md\"\r\n" <>
        "content-type: text/markdown\r\n\r\n" <> page <> "\r\n--b--\r\n"

    type = [{"content-type", "multipart/form-data; boundary=b"}]
    shown = Requests.call(web, "POST", "/import", as: "default", headers: type, body: body)
    assert {shown.status, shown.body =~ "tea"} == {200, true}
    inputs = for {"input", input, _} <- HtmlChecker.elements(shown.body), do: input
    hidden = for %{"type" => "hidden"} = i <- inputs, do: {i["name"], i["value"]}
    boxes = for %{"type" => "checkbox"} = i <- inputs, do: {i["name"], i["value"]}
    saved = Requests.call(web, "POST", "/import", as: "default", form: hidden ++ boxes)
    assert saved.status in [200, 303]
    all = Skillbook.Profile.new!(id: "all", grants: :all)
    assert {:ok, %{source: :import}} = Store.fetch(Skillbook.view(book, all), "tea")
  end

  row "by the agent", "a correction changes the skill", %{book: book} do
    call(book, "create_skill", @reports)
    update(book, operation: "append", content: "Weeks begin on Monday.")
    assert content(book) == @text <> "Weeks begin on Monday."
    check(book, [{"update_skill quarterly-reports --operation append --content More", "3"}])
  end

  row "prompt", "asks the model to save how work is done", %{book: book} do
    assert Skillbook.prompt(Skillbook.view(book)) =~ ~r/^  skills .*save how it is done/m
  end

  defp html(web, target, as \\ "default") do
    response = Requests.call(web, "GET", target, as: as)
    assert {target, response.status} == {target, 200}
    assert HtmlChecker.page(response.body) == []
    response.body
  end

  row "page", "lists all skills, also the disabled ones", %{book: book} do
    reports(book)
    call(book, "disable_skill", %{"name" => "quarterly-reports"})
    html = html(Requests.web(book), "/skills?source=store")
    assert html =~ "quarterly-reports"
    assert html =~ @reports["title"]
    assert html =~ @reports["description"]
  end

  row "page", "the list says who wrote it, user or agent", %{book: book} do
    reports(book)
    view = Skillbook.view(book)
    {:ok, _} = Store.create(view, %{title: "Tea", description: "Makes tea", content: "x"})
    web = Requests.web(book)

    for {query, author} <- [{"q=quarterly", "agent"}, {"q=tea", "user"}] do
      html = html(web, "/skills?source=store&" <> query)
      texts = for {_, _, _} = part <- HtmlChecker.elements(html), do: HtmlChecker.text(part)
      assert Enum.any?(texts, &(&1 =~ ~r/\A(?:by )?#{author}\b/)), query
    end
  end

  row "page", "the list has a switch that turns a skill on and off", %{book: book} do
    reports(book)
    web = Requests.web(book)

    for {word, enabled} <- [{"disable", false}, {"enable", true}] do
      path = "/skills/quarterly-reports/#{word}"

      forms =
        for {"form", %{"action" => action}, _} = form <-
              HtmlChecker.elements(html(web, "/skills?source=store")),
            String.starts_with?(action, path),
            do: form

      assert [form] = forms
      {"form", %{"action" => action}, children} = form
      hidden = for {"input", %{"name" => n} = i, _} <- flat(children), do: {n, i["value"]}
      response = Requests.call(web, "POST", action, as: "default", form: hidden)
      assert {word, response.status} == {word, 303}
      {:ok, entry} = Store.fetch(Skillbook.view(book), "quarterly-reports")
      assert entry.enabled == enabled
    end
  end

  defp flat(children) do
    Enum.flat_map(children, fn
      {_, _, inner} = element -> [element | flat(inner)]
      _text -> []
    end)
  end

  row "page", "shows a skill with its Markdown", %{book: book} do
    reports(book)
    html = html(Requests.web(book), "/skills/quarterly-reports")
    assert html =~ ~r"<h\d[^>]*>Reports</h\d>"
    assert html =~ "<p>ISO dates only.</p>"
    assert html =~ "agent"
  end

  row "page", "a person changes what an agent wrote", %{book: book} do
    reports(book)
    web = Requests.web(book)
    path = "/skills/quarterly-reports/edit"
    assert send_form(web, path, %{"content" => "Only ISO dates."}).status == 303
    assert content(book) == "Only ISO dates."
    {:ok, entry} = Store.fetch(Skillbook.view(book), "quarterly-reports")
    assert {entry.version, entry.author} == {2, "default"}
  end

  row "page", "a person deletes a skill", %{book: book} do
    reports(book)
    web = Requests.web(book)
    path = "/skills/quarterly-reports/delete"
    form = sent(html(web, path), "delete", %{})
    response = Requests.call(web, "POST", path, as: "default", form: form)
    assert response.status == 303
    assert {:error, _} = View.fetch(Skillbook.view(book), "quarterly-reports")
  end
end
