defmodule Skillbook.Web.KeptListsTest do
  # Lists that the book keeps for a view (`Skillbook.Book.Cache.keep/3`): after each change every
  # caller gets the list that it would get without the cache, also if a caller with other rights
  # has asked before.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Book.Cache
  alias Skillbook.MCP.{Context, Skills, Tools}
  alias Skillbook.Store
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Requests

  @moduletag :tmp_dir
  @moduletag :capture_log

  @profiles [
    [id: "ann", grants: ["family"]],
    [id: "boss", grants: :all],
    # The same entries as ann, with other rules, which the definitions of tools name.
    [id: "asker", grants: ["family"], writes: :delegate],
    [id: "guest", writes: :deny],
    [id: "few", grants: :all, skills: ["mail.*"]]
  ]

  setup %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => page("mail.send", tags: "[mail]", effects: "write"),
      "mail/read.md" => page("mail.read", tags: "[mail]", schedule: "0 8 * * *"),
      "pdf/SKILL.md" => page("pdf", [author: "Ann"], "# PDF\n\nSee [forms](forms.md).\n"),
      "pdf/forms.md" => "# Forms\n",
      "plan/SKILL.md" =>
        page("secret-plan", [visibility_labels: "[boss]"], "At [dawn](no.md).\n"),
      "home/tea.md" => page("home.tea", visibility_labels: "[family]"),
      "broken.md" => "---\nname: broken\ndescription: [\n---\nNo.\n"
    })

    name = book(sources: [folder], store: ":memory:", watch: false, profiles: @profiles)
    {:ok, book: name, table: Cache.name(name, EntryLists)}
  end

  # Each list, for each caller.
  defp lists(book, before \\ fn -> :ok end) do
    web = Requests.web(book)

    pages =
      for target <- [
            "/skills",
            "/skills?author=Ann",
            "/skills?tag=mail&kind=command",
            "/try",
            "/try?q=MAIL",
            "/runs",
            "/diagnostics",
            "/diagnostics?advice=1&severity=warning",
            "/diagnostics?code=link_broken",
            "/status"
          ],
          [{:id, id} | _] <- @profiles,
          operator? <- [false, true] do
        before.()
        as = [profile: id, operator: operator?]
        response = Requests.call(web, "GET", target <> format(target), as: as)
        # The page of runs has the time.
        {target, id, operator?, String.replace(response.body, ~r/"now":"[^"]*"/, "")}
      end

    methods =
      for [{:id, id} | _] <- @profiles,
          options <- [[], [tools: [names: ["mail.*"]]], [tools: [limit: 3]]],
          {module, method} <- [{Tools, "tools/list"}, {Skills, "skills/list"}] do
        before.()
        view = Skillbook.view(book, id)
        context = %Context{view: view, profile: view.profile, revision: "2026-07-28"}
        {method, id, options, module.handle(method, %{}, %{context | options: options})}
      end

    pages ++ methods
  end

  defp format(target), do: if(target =~ "?", do: "&format=json", else: "?format=json")

  test "are those of the caller's own view, after each change", context do
    %{book: book, table: table, tmp_dir: folder} = context
    boss = Skillbook.view(book, "boss")

    files = fn pages ->
      fn ->
        write(folder, pages)
        Skillbook.reload(book)
      end
    end

    store = fn change -> fn -> assert {:ok, _} = change.() end end

    changes = [
      fn -> :ok end,
      files.(%{"mail/read.md" => page("mail.read", visibility_labels: "[boss]")}),
      files.(%{"home/tea.md" => page("home.tea", effects: "read", labels: "[family]")}),
      # Only the findings change: a file that is no entry, in no view.
      files.(%{"broken.md" => "---\nname: broken\n---\nSee [it](nowhere.md).\n"}),
      files.(%{"pdf/forms.md" => "# Other forms\n"}),
      store.(fn -> Store.put_note(boss, "Tea", "Green.", fields: %{tags: ["mail"]}) end),
      store.(fn -> Store.disable(boss, "tea") end),
      files.(%{"plan/SKILL.md" => page("secret-plan", [], "At [dawn](no.md).\n")})
    ]

    for {change, at} <- Enum.with_index(changes) do
      change.()
      first = lists(book)
      assert :ets.info(table, :size) > 0
      again = lists(book)
      anew = lists(book, fn -> :ets.delete_all_objects(table) end)

      for {{a, b}, c} <- first |> Enum.zip(again) |> Enum.zip(anew),
          do: assert({at, a, b} == {at, c, c})
    end
  end

  test "show a hidden entry in no list", %{book: book} do
    for {target, id, false, text} <- lists(book), id in ["ann", "guest", "asker"] do
      refute text =~ "secret-plan", "#{target} as #{id}"
      refute text =~ "broken", "#{target} as #{id}"
    end

    for {method, id, _options, {:ok, result}} <- lists(book), id in ["ann", "guest", "asker"] do
      refute JSON.encode(result) =~ "secret-plan", "#{method} as #{id}"
    end
  end

  test "are shared by profiles with the same rights, and not with other rules", context do
    %{book: book, table: table} = context

    kept = fn ids ->
      :ets.delete_all_objects(table)

      for id <- ids do
        view = Skillbook.view(book, id)
        context = %Context{view: view, profile: view.profile, revision: "2026-07-28"}
        assert {:ok, _} = Tools.handle("tools/list", %{}, context)
      end

      :ets.info(table, :size)
    end

    ann = Skillbook.view(book, "ann").profile
    assert kept.(["ann", "ann"]) == 1
    assert kept.(["ann", "asker"]) == 2
    assert kept.(["ann", "boss"]) == 2
    assert kept.(["ann", %{ann | grants: []}]) == 2
  end

  test "have pages of tools and skills for each cursor", %{tmp_dir: folder} do
    pages = for n <- 100..399, into: %{}, do: {"n/t#{n}.md", page("n.t#{n}")}
    write(Path.join(folder, "many"), pages)
    name = book(sources: [Path.join(folder, "many")], builtins: false, watch: false)
    view = Skillbook.view(name)
    context = %Context{view: view, profile: view.profile, revision: "2026-07-28"}
    context = %{context | options: [tools: [limit: 1_000]]}

    read = fn context, module, method, cursor ->
      {:ok, result} = module.handle(method, cursor, context)
      result
    end

    walk = fn walk, context, module, method, key, cursor ->
      result = read.(context, module, method, cursor)
      rows = result[key]

      case result do
        %{"nextCursor" => next} ->
          [rows | walk.(walk, context, module, method, key, %{"cursor" => next})]

        _last ->
          [rows]
      end
    end

    for {module, method, key, sizes} <- [
          {Tools, "tools/list", "tools", [128, 128, 45]},
          {Skills, "skills/list", "skills", List.duplicate(50, 6)}
        ] do
      # A view of a catalog has no book, and nothing is kept.
      without = %{context | view: %{view | book: nil}}
      all = walk.(walk, without, module, method, key, %{})
      assert Enum.map(all, &length/1) == sizes
      for _ <- 1..2, do: assert(walk.(walk, context, module, method, key, %{}) == all)

      # A cursor in the middle of a page that is kept.
      cursor = Skillbook.MCP.Pagination.cursor(key, "n.t150")
      rows = read.(context, module, method, %{"cursor" => cursor})[key]

      assert rows ==
               all
               |> List.flatten()
               |> Enum.drop_while(&(name(&1) <= "n.t150"))
               |> Enum.take(length(rows))

      assert length(rows) == hd(sizes)
    end
  end

  defp name(%{"name" => name}), do: String.replace(name, "__", ".")
  defp name(%{"frontmatter" => %{"metadata" => %{"command" => name}}}), do: name

  defp name(%{"uri" => uri}),
    do: uri |> URI.parse() |> Map.fetch!(:host) |> String.replace("-", ".")
end
