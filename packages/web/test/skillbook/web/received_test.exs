defmodule Skillbook.Web.ReceivedTest do
  # Skills that are sent to a running book.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages
  import Skillbook.Test.Requests, only: [call: 4, header: 2, web: 1, web: 2]

  alias Skillbook.{Package, Store, View}
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  @root "/.well-known/agent-skills/"
  @profiles [
    [id: "default"],
    [id: "editor", grants: ["imported"]],
    [id: "asked", grants: ["imported"], writes: :ask],
    [id: "agents", grants: ["imported"], writes: :delegate],
    [id: "reader", grants: ["imported"], writes: :deny]
  ]

  defp receiver(options \\ []) do
    book = book([store: ":memory:", builtins: false, profiles: @profiles] ++ options)
    {book, web(book)}
  end

  defp put(web, name, text, options \\ []) do
    options = Keyword.merge([as: "editor", headers: [{"content-type", "text/markdown"}]], options)

    headers = [{"accept", "application/json"} | options[:headers]]

    response =
      call(web, "PUT", @root <> name, [body: text] ++ Keyword.put(options, :headers, headers))

    {:ok, answer} = JSON.decode(response.body)
    {response.status, answer["action"] || answer["error"]}
  end

  test "imports a page with low trust and the label of imports" do
    {book, web} = receiver()
    text = skill("tea", "Boil water.\n")

    assert put(web, "tea/SKILL.md", text) == {201, "imported"}
    assert put(web, "tea/SKILL.md", text) == {200, "unchanged"}
    assert put(web, "tea/SKILL.md", text <> "Twice.\n") == {200, "updated"}

    view = Skillbook.view(book, "editor")
    assert %{trust: :low, labels: ["imported"], kind: :skill} = View.fetch!(view, "tea")
    assert {:ok, %{source: :import, author: "editor", version: 2}} = Store.fetch(view, "tea")
    assert {:error, _} = View.fetch(Skillbook.view(book, "default"), "tea")

    # A sender chooses neither trust nor handler nor schedule.
    hostile =
      "---\nname: hook\ndescription: Runs\ntrust: high\nhandler: Elixir.System\n" <>
        "schedule: '* * * * *'\nlabels: []\nmetadata: {schedule: '0 8 * * *'}\n---\n" <>
        "```cmd\ntea\n```\n"

    assert {201, "imported"} = put(web, "hook/SKILL.md", hostile)

    assert %{trust: :low, labels: ["imported"], handler: nil, schedule: nil} =
             View.fetch!(Skillbook.view(book, "editor"), "hook")

    assert Skillbook.Scheduler.registered(book) == %{}
  end

  test "hides no entry of a file, and tells nothing about hidden ones", %{tmp_dir: folder} do
    secret = String.replace(skill("secret"), "---\n#", "visibility_labels: [board]\n---\n#")
    write(folder, %{"tea/SKILL.md" => skill("tea"), "secret/SKILL.md" => secret})
    {book, web} = receiver(sources: [folder])
    view = fn -> Skillbook.view(book, %Skillbook.Profile{id: "all", grants: :all}) end

    for name <- ["tea", "secret", "absent"],
        do: assert(put(web, name <> "/SKILL.md", skill(name, "Sent\n")) == {201, "imported"})

    for name <- ["tea", "secret"],
        do: assert(%{trust: :medium, body: "# Page\n"} = View.fetch!(view.(), name))
  end

  test "refuses callers who may not write, and pages that cannot be imported" do
    {book, web} = receiver()

    {:ok, _} =
      Store.create(Skillbook.view(book, "editor"), %{
        title: "Own",
        description: "Own",
        content: "x"
      })

    command =
      "---\nname: w-late\ndescription: Late\nmetadata: {skillbook-command: w.late}\n---\n# Late\n"

    rows = [
      # callers
      {"tea", skill("tea"), [as: "default"], 403,
       "The profile \"default\" does not hold the label \"imported\", which a sent skill " <>
         "gets. Use one that does."},
      {"tea", skill("tea"), [as: "asked"], 403,
       "Changes of the profile \"asked\" need somebody's consent. Ask an operator of this " <>
         "book to make this one."},
      {"tea", skill("tea"), [as: "agents"], 403,
       "The profile \"agents\" leaves changes to agents. Sign in with one that makes them " <>
         "itself."},
      {"tea", skill("tea"), [as: "reader"], 403,
       "The profile \"reader\" may not change anything."},
      {"tea", skill("tea"), [as: nil], 401,
       "Sign in, or send a token: authorization: Bearer sb_…."},
      # pages
      {"tea", skill("tea"), [headers: [{"content-type", "application/gzip"}]], 415,
       "Expected text/markdown, got: \"application/gzip\""},
      {"tea", skill("tea"), [headers: []], 415, "Expected text/markdown, got: \"\""},
      {"tea", skill("coffee"), [], 422,
       ~s(tea has another name in its SKILL.md, "coffee"; send it under that name)},
      {"tea", "# Tea\n", [], 422, "tea has no description in its SKILL.md"},
      {"tea", "", [], 422, "tea has no description in its SKILL.md"},
      {"w-late", command, [], 422,
       ~s(w-late is the command "w.late", and the store holds skills and notes; use ) <>
         "`install`, which keeps it a command"},
      {"Tea", skill("Tea"), [], 422,
       ~s("Tea" is not a name of the Agent Skills format; write at most 64 small letters, ) <>
         "digits and hyphens"},
      # An entry that was written here is not replaced.
      {"own", skill("own"), [], 409,
       ~s(the store already has an entry "own". Update it, or choose another name)}
    ]

    for {name, text, options, status, message} <- rows do
      assert put(web, name <> "/SKILL.md", text, options) == {status, message}
    end

    for path <- ["tea", "tea.tar.gz", "index.json", "tea/a/SKILL.md", "tea/skill.md"],
        do: assert({404, "Only NAME/SKILL.md is written."} = put(web, path, skill("tea")))

    for {name, text} <- [
          {"bytes", <<255, 0, 1>>},
          {"large", skill("large", String.duplicate("a", 2_000_000))}
        ] do
      assert {422, _} = put(web, name <> "/SKILL.md", text)
    end

    assert for(entry <- View.entries(Skillbook.view(book, "editor")), do: entry.name) == ["own"]

    # The public reads only, and a book without a database stores nothing.
    public = web(book, publish: "editor")
    response = call(public, "PUT", @root <> "tea/SKILL.md", body: skill("tea"))
    assert {response.status, header(response, "www-authenticate")} == {401, "Bearer"}

    without = web(book(builtins: false, profiles: @profiles))
    assert {422, message} = put(without, "tea/SKILL.md", skill("tea"))
    assert message =~ "store"
  end

  test "sends entries to a running book with a token", %{tmp_dir: folder} do
    {book, _web} = receiver()
    server = start_supervised!({Skillbook.Web.Server, book: book, port: 0})
    %{url: url} = Skillbook.Web.Server.info(server)

    token = fn options ->
      {:ok, %{secret: secret}} = Skillbook.Web.Tokens.create(book, options)
      secret
    end

    source =
      write(Path.join(folder, "source"), %{
        "one/SKILL.md" => skill("one"),
        "two/SKILL.md" => skill("two"),
        "two/a.md" => "A",
        "w/late.md" => page("w.late")
      })

    view = view(source)
    push = fn options -> Package.publish(view, url, options) end
    writer = token.(profile: "editor", scopes: [:discovery, :page])

    assert {:ok, [one, two, late]} = push.(token: writer)
    assert {one.name, one.action} == {"one", :published}

    assert Exception.message(two.error) ==
             "two has more files, which the store of another book cannot hold; publish into " <>
               "a folder, from which it is installed"

    assert Exception.message(late.error) ==
             "w-late was refused by #{url}/.well-known/agent-skills (status 422): w-late is " <>
               "the command \"w.late\", and the store holds skills and notes; use `install`, " <>
               "which keeps it a command"

    assert actions(push.(token: writer, names: ["one"])) == [{"one", :unchanged}]
    assert View.fetch!(Skillbook.view(book, "editor"), "one").trust == :low

    unknown =
      "(status 401): Sign in, or send a token: authorization: Bearer sb_….; set the variable " <>
        "SKILLBOOK_TOKEN, or the option :token, to a token of that book"

    rows = [
      {nil, unknown},
      {fn -> "sb_wrong" end, unknown},
      {token.(profile: "editor", scopes: [:discovery]),
       "(status 403): The token is for reading. Writing needs the scopes discovery and page."},
      {token.(profile: "editor", scopes: [:api]),
       "(status 403): The token is not for this part of the server."},
      {token.(profile: "reader", scopes: [:discovery, :page]),
       "(status 403): The profile \"reader\" may not change anything."}
    ]

    for {token, message} <- rows do
      options = if token, do: [token: token], else: []
      assert [got] = messages(push.([names: ["one"]] ++ options))
      assert got == "one was refused by #{url}/.well-known/agent-skills #{message}"
    end

    # A server may repeat the token, and write to the terminal.
    secret = "sb_t0ken-of-ann"
    said = JSON.encode(%{error: "bad Bearer #{secret}\e[2J\u202E\n#{String.duplicate("x", 900)}"})
    head = {:head, 403, [{"content-length", "#{byte_size(said)}"}]}
    {_pid, lying} = Skillbook.Test.HTTPServer.start([[head, {:raw, said}]])
    {:ok, [got]} = Package.publish(view, lying, token: fn -> secret end, names: ["one"])
    message = Exception.message(got.error)
    assert message =~ "(status 403): bad Bearer [token] [2J"
    assert String.length(message) < 500
    refute message =~ ~r/[\e\n\x{202E}]/u

    # Other servers and addresses.
    refused = [
      {"http://example.com",
       "http://example.com is not an https address; write https://example.com"},
      {"https://example.com#one", "https://example.com is given with a name after #"}
    ]

    for {place, message} <- refused,
        do: assert(actions(Package.publish(view, place, names: ["one"])) == message)

    # The token goes to the address alone, whatever it answers.
    elsewhere = fn "https://example.com" <> _ ->
      {302, [{"location", "https://evil.example/"}], "moved"}
    end

    assert messages(
             Package.publish(view, "https://example.com", network(elsewhere, names: ["one"]))
           ) == [
             "https://example.com/.well-known/agent-skills is not a book that takes skills: " <>
               "its answer has the status 302; write the address of a running `skillbook serve`"
           ]

    assert_receive {:fetched, "https://example.com/.well-known/agent-skills/one/SKILL.md"}
    refute_received {:fetched, _}
  end
end
