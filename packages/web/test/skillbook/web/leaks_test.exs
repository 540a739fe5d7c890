defmodule Skillbook.Web.LeaksTest do
  # A hidden entry behaves as if it did not exist, on every route. Two books differ in entries
  # that the caller may not see; every request has the same bytes from both, whether it names such
  # an entry, a missing one or one that is visible. And in one book, a hidden name has the bytes
  # of a missing one. What is hidden has a label, or another tenant and no label.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agent, Model, Store, Web}
  alias Skillbook.MCP.Client
  alias Skillbook.Test.{Requests, Routes}

  @visible %{
    "tea/SKILL.md" => "---\nname: tea\ndescription: Brews tea\ntags: [drink]\n---\nBoil water.\n",
    "tea/notes/pot.md" => "A pot.\n",
    "cup/wash.md" =>
      "---\nname: cup.wash\ndescription: Washes cups\neffects: read\n---\n# Wash\n",
    "week.md" =>
      "---\nname: week\ndescription: A plan of the week\nworkflow: true\n---\n" <>
        "```cmd\ncup.wash\n```\n"
  }

  # Names of the same length, and of each kind. Their words are in no visible entry.
  @hidden %{
    "zebra/SKILL.md" =>
      "---\nname: zebra\ntitle: Zebraic\naliases: [zebru]\ndescription: Zebras quagga\n" <>
        "tags: [stripe]\nvisibility_labels: [staff]\n---\nQuagga.\n",
    "zebra/notes/hoof.md" => "A hoof.\n",
    "cup/zeb.md" =>
      "---\nname: cup.zebr\ndescription: Zebra cups\nvisibility_labels: [staff]\n---\n# Zeb\n",
    "zoo.md" =>
      "---\nname: zooze\ndescription: A zoo\nvisibility_labels: [staff]\nworkflow: true\n" <>
        "schedule: '@daily'\nrun_as: staff\n---\n```cmd\ncup.zebr\n```\n",
    # A command of the account.
    "email/search.md" =>
      "---\nname: email.search\ndescription: Zebra mails\nvisibility_labels: [staff]\n---\n# Z\n"
  }

  @common %{
    "fail.md" =>
      "---\nname: fail\ndescription: Fails\nhandler: Skillbook.Web.LeaksTest.Fail\n---\n",
    # A finding about a common file.
    "bad.md" => "---\nname: [\n---\n"
  }

  defmodule Fail do
    @behaviour Skillbook.Handler

    @impl true
    def execute(_flags, _context), do: raise("it fails")
  end

  @label "visibility_labels: [staff]\n"

  @hidden_names ["zebra", "zebru", "Zebraic", "cup.zebr", "zooze", "store-zebra", "stripe"] ++
                  ["email.search", "note-zebra", "staff"]
  @missing_names ["qqqqq", "store-qqqqq"]
  @visible_names ["tea", "cup.wash", "week", "note-pot"]

  setup context do
    tenants? = context[:tenants] == true
    {with_folder, with_book} = start(@visible, @hidden, tenants?, true)
    # The other book lacks the profile too, except where it is asked what the profile sees.
    staff? = not tenants? or context[:staff] == true
    {without_folder, without_book} = start(@visible, %{}, tenants?, staff?)
    staff = Skillbook.view(with_book, "staff")

    labels = if tenants?, do: [], else: ["staff"]

    for {name, kind} <- [{"store-zebra", :skill}, {"note-zebra", :note}] do
      fields = %{name: name, title: "Zebras of #{name}", kind: kind, content: "Quagga."}
      fields = Map.merge(fields, %{description: "Zebras quagga of the store", labels: labels})
      {:ok, _entry} = Store.create(staff, fields, by: :user)
    end

    # They are used, wait for an approval, and are talked about.
    assert [_, _] = Skillbook.run(staff, "```cmd\nzebra\nzooze\n```").results
    asking = Skillbook.view(with_book, %{staff.profile | writes: :ask})
    report = Skillbook.run(asking, "```cmd\nmemory.save --content Zebra\n```")
    assert [%{status: :pending}] = report.results
    model = Model.Function.new(fn _messages, _options -> "Zebras." end)
    assert {:ok, _result} = Agent.run(staff, "Zebras?", model: model)

    for book <- [with_book, without_book] do
      fields = %{name: "note-pot", title: "Pot", kind: :note, content: "A pot of tea."}
      {:ok, _entry} = Store.create(Skillbook.view(book, "guest"), fields, by: :user)
      # The numbers of generations differ by the writes.
      :ok = Skillbook.reload(book)
    end

    %{with: {with_folder, with_book}, without: {without_folder, without_book}}
  end

  defp start(visible, hidden, false, _staff?) do
    folder = folder(Map.merge(visible, hidden))
    staff = [id: "staff", grants: ["staff"], labels: ["staff"]]
    start_book(folder, [[path: folder, name: "files"]], [[id: "guest"], staff])
  end

  # The other tenant has profiles, folders, a vault and a server, and the common skill fails for
  # it.
  defp start(visible, hidden, true, staff?) do
    # Findings are sorted by their paths, so all folders have one parent.
    parent = folder(%{})
    folder = below(parent, "files", visible)
    far = Map.new(hidden, fn {path, text} -> {path, String.replace(text, @label, "")} end)
    near = [path: folder, name: "files", tenant: "near"]
    common = [path: below(parent, "common", @common), name: "common"]
    staff = if staff?, do: [[id: "staff", tenant: "far"]], else: []
    profiles = [[id: "guest", tenant: "near"], [id: "common"] | staff]

    if far == %{} do
      start_book(folder, [common, near], profiles)
    else
      server = {:mcp, "http://127.0.0.1:1/mcp", label: "zebsrv", timeout: 500, tenant: "far"}
      sources = [common, [path: below(parent, "far", far), tenant: "far"], server, near]

      vault = [
        path: below(parent, "vault", %{"zebra.md" => "Quagga."}),
        name: "zebras",
        tenant: "far"
      ]

      {_folder, book} = started = start_book(folder, sources, profiles, vaults: [vault])
      :ok = Client.await(book)
      assert {:error, _} = fail(book, "staff")
      started
    end
  end

  defp fail(book, profile) do
    %{results: [result]} = Skillbook.run(book, "```cmd\nfail\n```", profile: profile)
    {result.status, result.content}
  end

  defp folder(files) do
    folder = Path.join(System.tmp_dir!(), "leaks_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(folder) end)
    write(folder, files)
    folder
  end

  defp below(parent, name, files) do
    folder = Path.join(parent, name)
    write(folder, files)
    folder
  end

  defp start_book(folder, sources, profiles, options \\ []) do
    defaults = [
      sources: sources,
      builtins: ["memory"],
      store: ":memory:",
      connections: [google: [client_id: "app", client_secret: fn -> "s3cret" end]],
      ask: fn _request -> :pending end,
      conversations: [keep: 30],
      schedules: [run_as: "guest"],
      breaker: [failures: 1],
      watch: false,
      profiles: profiles
    ]

    {folder, book(defaults ++ options)}
  end

  # The response to a caller, without the parts that differ between any two books.
  defp answer({folder, book}, {method, target, options}, name) do
    encoded = URI.encode(name, &URI.char_unreserved?/1)
    target = String.replace(target, "NAME", encoded)
    options = options |> replace(name) |> Keyword.put_new(:as, "guest")
    {publish, options} = Keyword.pop(options, :publish, "guest")
    response = Requests.call(Requests.web(book, publish: publish), method, target, options)

    body =
      response.body
      |> String.replace(folder, "FOLDER")
      |> String.replace(~r/#{book}/, "BOOK")
      |> String.replace(~r/leaks_\d+/, "PARENT")

    body = String.replace(body, ~r/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)?/, "TIME")
    # Operators without a tenant see how often the catalog has changed.
    body = String.replace(body, ~r/("generation":|Generation<\D{1,20})\d+/, "\\1NUMBER")
    body = String.replace(body, ~r/"duration":\d+|\d[\d.]* (m|µ)?s\b/, "DURATION")
    {response.status, Enum.sort(response.headers), body}
  end

  defp replace(options, name) do
    Keyword.new(options, fn
      {key, %{} = fields} ->
        {key, deep(fields, name)}

      {key, value} when is_binary(value) ->
        {key, String.replace(value, "NAME", name)}

      {:headers, headers} ->
        {:headers, for({key, value} <- headers, do: {key, String.replace(value, "NAME", name)})}

      other ->
        other
    end)
  end

  defp deep(%{} = map, name), do: Map.new(map, fn {key, value} -> {key, deep(value, name)} end)
  defp deep(text, name) when is_binary(text), do: String.replace(text, "NAME", name)
  defp deep(other, _name), do: other

  for {what, tenants?} <- [{"hidden entries", false}, {"entries of another tenant", true}] do
    @tag tenants: tenants?
    test "a book with #{what} answers as one without them", context do
      same_answers(context)
    end

    @tag tenants: tenants?
    test "one of the #{what} has the answer of a missing name of the same length", context do
      missing_answers(context)
    end
  end

  # A leak in any route would be found: its answer to a caller who sees the entries differs.
  for {what, tenants?} <- [{"labels", false}, {"tenants", true}] do
    @tag tenants: tenants?, staff: true
    test "every route tells those who may see it what #{what} hide", context do
      same =
        for {method, target, options} = route <- Routes.all(),
            not without_entries?(target, options),
            staff = put_elem(route, 2, as_staff(options)),
            Enum.all?(@hidden_names, fn name ->
              answer(context.with, staff, name) == answer(context.without, staff, name)
            end),
            do: {method, target, options}

      # Tenants hide without labels.
      same = if context[:tenants], do: Enum.reject(same, &(elem(&1, 1) =~ "label=")), else: same
      assert same == []
    end
  end

  defp as_staff(options),
    do: Keyword.merge(options, as: [profile: "staff", operator: true], publish: "staff")

  @without_entries ~w(/chat /chat/NAME /skills/NAME/source /skills/NAME/history
                      /skills/NAME/fire /new /new/file /import /nothing /diagnostics/fix
                      /servers /servers/offer
                      /connections/NAME/finish /connections/NAME/callback
                      /connections/NAME/connect /.well-known/agent-skills/NAME)

  # Routes about accounts, servers and files, forms, and answers that are the same for all names.
  defp without_entries?(target, options) do
    path(target) in @without_entries or target =~ ~r/[?&](cursor|as)=NAME/ or
      options[:json][:method] == "resources/templates/list"
  end

  # An operator sees the book as all profiles of its own tenant, or as those without one.
  defp routes(%{tenants: true}) do
    operators =
      for {"GET", target, []} <- Routes.all(),
          id <- ["guest", "common"],
          do: {"GET", target, [as: [profile: id, operator: true]]}

    Routes.all() ++ operators
  end

  defp routes(_context), do: Routes.all()

  defp same_answers(context) do
    different =
      for {method, target, options} = route <- routes(context),
          name <- @hidden_names ++ @missing_names ++ @visible_names,
          [with_hidden, without] =
            for(key <- [:with, :without], do: answer(context[key], route, name)),
          with_hidden != without,
          uniq: true,
          do:
            "#{method} #{target} #{inspect(options[:as])} of #{name}: " <>
              diff(with_hidden, without)

    assert different == []
  end

  defp missing_answers(context) do
    for {method, target, _options} = route <- Routes.all(),
        {hidden, missing} <- [{"zebra", "qqqqq"}, {"store-zebra", "store-qqqqq"}] do
      {status, headers, body} = answer(context.with, route, hidden)
      hidden_answer = {status, headers, String.replace(body, hidden, missing)}
      missing_answer = answer(context.with, route, missing)

      assert hidden_answer == missing_answer,
             "#{method} #{target}: #{diff(hidden_answer, missing_answer)}"
    end
  end

  test "a stream of events says nothing about a change of a hidden entry", context do
    {folder, book} = context.with
    web = Requests.web(book)

    for {as, told?} <- [{"guest", false}, {"staff", true}] do
      {_response, pid} = Requests.stream(web, "GET", "/events", as: as)
      assert_receive {:part, ^pid, "event: ready" <> _}
      text = File.read!(Path.join(folder, "zebra/SKILL.md"))
      write(folder, %{"zebra/SKILL.md" => text <> "Changed for #{as}.\n"})
      :ok = Skillbook.reload(book)

      if told? do
        assert_receive {:part, ^pid, "event: " <> _}
        drain(pid)
      else
        refute_receive {:part, ^pid, "event: " <> _}, 500
      end

      # The stream works: a visible change is told.
      write(folder, %{"tea/SKILL.md" => @visible["tea/SKILL.md"] <> "Stir for #{as}.\n"})
      :ok = Skillbook.reload(book)
      assert_receive {:part, ^pid, "event: " <> _}
      Requests.close(pid)
      Process.unlink(pid)
      Process.exit(pid, :kill)
    end
  end

  defp drain(pid) do
    receive do
      {:part, ^pid, "event: " <> _} -> drain(pid)
    after
      500 -> :ok
    end
  end

  # The test could not fail if nobody saw the entries.
  test "the profile with the label sees them", context do
    for {_folder, book} <- [context.with],
        name <- ["zebra", "cup.zebr", "zooze", "store-zebra"] do
      web = Requests.web(book)
      assert Requests.call(web, "GET", "/api/skills/#{name}", as: "staff").status == 200
      assert Requests.call(web, "GET", "/api/skills/#{name}", as: "guest").status == 404
      assert Requests.call(web, "GET", "/skills/#{name}", as: "staff").status == 200
    end
  end

  test "every area has routes in the list, and every page with a name is there" do
    targets = for {_method, target, _options} <- Routes.all(), do: target

    for prefix <- ["/api", "/skills", "/mcp", "/.well-known/agent-skills"],
        do: assert(Enum.any?(targets, &String.starts_with?(&1, prefix)), prefix)

    listed = for {method, target, _options} <- Routes.all(), do: {method, path(target)}

    for {method, pattern, _module, _function} <- Web.Page.routes(), :name in pattern do
      assert {method, pattern(pattern)} in listed, "#{method} #{pattern(pattern)} is missing"
    end
  end

  defp path(target), do: target |> String.split("?") |> hd()

  defp pattern(pattern) do
    "/" <>
      Enum.map_join(pattern, "/", fn
        :name -> "NAME"
        {:rest, :path} -> "notes/hoof.md"
        atom when is_atom(atom) -> "1"
        text -> text
      end)
  end

  defp diff({one_status, one_headers, one}, {other_status, other_headers, other}) do
    headers = [one_headers -- other_headers, other_headers -- one_headers]

    changes =
      for {kind, part} <- String.myers_difference(one, other), kind != :eq, do: {kind, part}

    inspect([{one_status, other_status}, headers, changes], limit: 30, printable_limit: 300)
  end
end
