defmodule Skillbook.Web.Page.SkillsBrowserTest do
  # Skills and notes in a real Chromium: with the mouse, with the keyboard
  # alone, without script, and while others change something.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Store
  alias Skillbook.Test.Browser
  alias Skillbook.Web.Server

  @moduletag :capture_log
  @moduletag :tmp_dir
  @moduletag timeout: 300_000

  @report """
  # Weekly report

  The report goes to the **board** on Thursdays. See the [template](https://example.com/template).

  | Part | From | Pages |
  |---|---|--:|
  | Sales | the CRM | 2 |
  | Support | mails of the week | 1 |

  1. Collect the numbers
     - [x] sales
     - [ ] support
  2. Write the summary, at most ten lines

  ```sql
  select region, sum(amount) from orders where week = :week group by region
  ```

  > Numbers of the last week are final on Wednesday.
  """

  setup %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => page("mail.send", tags: "[mail]", effects: "write"),
      "mail/read.md" => page("mail.read", tags: "[mail]"),
      "pdf/SKILL.md" =>
        page("pdf", [license: "MIT"], "# PDF\n\nSee [forms](references/forms.md).\n"),
      "pdf/references/forms.md" => "# Forms\n"
    })

    book = :"skills_browser_#{System.unique_integer([:positive])}"

    start_supervised!(
      {Skillbook,
       name: book,
       sources: [[path: folder, name: "team"]],
       builtins: ["tasks.*"],
       store: Path.join(folder, "book.db"),
       watch: false,
       profiles: [[id: "default", grants: ["team", "imported"]], [id: "guest"]]}
    )

    fields = %{
      title: "Weekly report",
      description: "How the weekly report is built, and whom it goes to",
      content: String.replace(@report, "Thursdays", "Fridays"),
      tags: ["reports"],
      labels: ["team"]
    }

    view = Skillbook.view(book, "default")
    {:ok, _} = Store.create(view, fields)
    {:ok, _} = Store.update(view, "weekly-report", %{edit: {:replace, @report}})
    {:ok, _} = Store.put_note(view, "Milk", "Two bottles.", fields: %{tags: ["shopping"]})

    options = [book: book, port: 0, authenticate: fn _ -> {:ok, "default", operator: true} end]
    server = start_supervised!({Server, options}, id: :server)
    {:ok, book: book, view: view, url: Server.info(server).url, options: options, server: server}
  end

  defp names(page) do
    Browser.evaluate(
      page,
      "[...document.querySelectorAll('.entry-name a')].map(a => a.textContent)"
    )
  end

  test "a list is searched as you type, and its address can be shared", %{url: url} do
    page = Browser.open(url) |> Browser.goto("/skills")
    Browser.screenshot(page, "page-skills")
    # From the keyboard alone.
    Browser.press(page, "/")
    assert ["input", "q", ""] = Browser.focused(page)
    Browser.type(page, "#q", "bott")
    assert eventually(fn -> names(page) == ["milk"] end)
    assert Browser.url(page) == url <> "/skills?q=bott"
    # The number is announced, and the field keeps the focus and the text.
    assert Browser.text(page, "#status") == "1 entry"
    assert ["input", "q", "bott"] = Browser.focused(page)
    Browser.assert_sound(page)

    other = Browser.open(url) |> Browser.goto("/skills?q=bott")
    assert names(other) == ["milk"]
    # A filter keeps the search, and the other way around.
    Browser.goto(other, "/skills?domain=mail")
    Browser.type(other, "#q", "mail.s")
    assert eventually(fn -> hd(names(other)) == "mail.send" end)
    Browser.click(other, "a.chosen")
    Browser.wait_url(other, "**/skills?q=mail.s")
  end

  test "a change of somebody else appears without a reload", %{
    url: url,
    view: view,
    server: server
  } do
    list = Browser.open(url) |> Browser.goto("/skills?source=store")
    entry = Browser.open(url) |> Browser.goto("/skills/milk")
    assert names(list) == ["milk", "weekly-report"]
    assert eventually(fn -> Server.info(server).streams == 2 end)
    {:ok, _} = Store.put_note(view, "Bread", "One.")
    assert eventually(fn -> names(list) == ["bread", "milk", "weekly-report"] end)
    {:ok, _} = Store.put_note(view, "Milk", "Six bottles.")
    assert eventually(fn -> Browser.text(entry, ".rendered") == "Six bottles." end)
    Browser.assert_sound(list)
    Browser.assert_sound(entry)
  end

  test "a page that nobody sees keeps no connection", %{url: url, view: view, server: server} do
    page = Browser.open(url) |> Browser.goto("/skills?source=store")
    assert eventually(fn -> Server.info(server).streams == 1 end)
    hide(page, true)
    assert eventually(fn -> Server.info(server).streams == 0 end)
    {:ok, _} = Store.put_note(view, "Bread", "One.")
    hide(page, false)
    assert eventually(fn -> names(page) == ["bread", "milk", "weekly-report"] end)
    assert Server.info(server).streams == 1
  end

  defp hide(page, hidden?) do
    Browser.evaluate(page, """
    Object.defineProperty(document, "hidden", { configurable: true, get: () => #{hidden?} });
    document.dispatchEvent(new Event("visibilitychange"));
    """)
  end

  test "the server goes and comes back", context do
    %{url: url, view: view, server: server, options: options} = context
    page = Browser.open(url) |> Browser.goto("/skills?source=store")
    assert eventually(fn -> Server.info(server).streams == 1 end)
    %{port: port} = URI.parse(url)
    :ok = stop_supervised(:server)
    Browser.wait(page, "#connection")
    assert Browser.text(page, "#connection") =~ "Not connected."
    {:ok, _} = Store.put_note(view, "Bread", "One.")
    start_supervised!({Server, Keyword.put(options, :port, port)}, id: :server)
    Browser.wait(page, "#connection", :hidden)
    assert eventually(fn -> names(page) == ["bread", "milk", "weekly-report"] end)
  end

  test "two browsers edit one skill, and no text is lost", %{url: url, view: view} do
    [one, two] = for _ <- 1..2, do: Browser.open(url) |> Browser.goto("/skills/milk/edit")

    for {page, text} <- [{one, "Three bottles."}, {two, "Two bottles, and cream."}] do
      Browser.fill(page, [label: "Text, in Markdown"], text)
      Browser.click(page, role: "button", name: "Preview")
      Browser.wait(page, ".diff")
      Browser.assert_sound(page)
    end

    Browser.click(one, role: "button", name: "Save")
    Browser.wait_url(one, "**/skills/milk?done=saved")
    Browser.click(two, role: "button", name: "Save")
    Browser.wait(two, text: "Somebody has changed this entry meanwhile")
    # The answer has the status 409, which Chromium logs.
    assert [conflict] = Browser.problems(two)
    assert conflict =~ "409"
    Browser.assert_sound(two)
    Browser.screenshot(two, "page-conflict")
    assert Browser.value(two, label: "Text, in Markdown") == "Two bottles, and cream."
    assert {:ok, %{content: "Three bottles."}} = Store.fetch(view, "milk")
    Browser.fill(two, [label: "Text, in Markdown"], "Three bottles, and cream.")
    Browser.click(two, role: "button", name: "Preview")
    Browser.wait(two, role: "button", name: "Save")
    Browser.click(two, role: "button", name: "Save")
    Browser.wait_url(two, "**/skills/milk?done=saved")
    assert {:ok, %{content: "Three bottles, and cream."}} = Store.fetch(view, "milk")
  end

  test "an entry is written with the keyboard alone", %{url: url, view: view} do
    page = Browser.open(url) |> Browser.goto("/new")
    # The first stop is the way past the navigation.
    Browser.press(page, "Tab")
    assert ["a", "", "Skip to the content"] = Browser.focused(page)
    Browser.press(page, "Enter")
    focus = fn id -> tab_to(page, fn [_tag, at, _text] -> at == id end) end
    button = fn text -> tab_to(page, fn [tag, _id, at] -> tag == "button" and at == text end) end
    keys = fn text -> for key <- String.graphemes(text), do: Browser.press(page, key) end

    focus.("field-kind")
    keys.("N")
    focus.("field-title")
    keys.("Tea")
    focus.("field-content")
    keys.("Green")
    button.("Preview")
    Browser.press(page, "Enter")
    Browser.wait(page, "#preview")
    button.("Create")
    Browser.press(page, "Enter")
    Browser.wait_url(page, "**/skills/tea?done=created")
    assert {:ok, %{kind: :note, title: "Tea", content: "Green"}} = Store.fetch(view, "tea")
  end

  defp tab_to(page, there?, tries \\ 80) do
    Browser.press(page, "Tab")

    cond do
      there?.(Browser.focused(page)) -> :ok
      tries == 0 -> flunk("the keyboard does not lead there")
      true -> tab_to(page, there?, tries - 1)
    end
  end

  test "deleting asks in a dialog, which the keyboard leaves", %{url: url, view: view} do
    page = Browser.open(url) |> Browser.goto("/skills/milk")
    Browser.click(page, role: "link", name: "Delete")
    Browser.wait(page, "dialog[open]")
    Browser.assert_sound(page)
    Browser.press(page, "Escape")
    Browser.wait(page, "dialog[open]", :detached)
    assert ["a", "", "Delete"] = Browser.focused(page)
    Browser.click(page, role: "link", name: "Delete")
    Browser.wait(page, "dialog[open]")
    Browser.click(page, "dialog button.danger")
    Browser.wait_url(page, "**/skills/milk/versions?done=deleted")
    assert {:error, %{kind: :not_found}} = Store.fetch(view, "milk")
    Browser.click(page, role: "link", name: "Version 1")
    Browser.click(page, role: "button", name: "Restore this version")
    Browser.wait_url(page, "**/skills/milk?done=restored")
  end

  # Changes the milk of a list.
  defp append_cream(page) do
    Browser.click(page, role: "link", name: "milk")
    Browser.click(page, role: "link", name: "Change a part")
    Browser.select(page, [label: "Operation"], "append")
    Browser.fill(page, [label: "New text"], "And cream.")
    Browser.click(page, role: "button", name: "Preview")
    Browser.click(page, role: "button", name: "Save")
    Browser.wait_url(page, "**/skills/milk?done=saved")
  end

  test "an entry is switched in its row, with and without script", %{url: url, view: view} do
    for {script, width, theme} <- [{true, 1280, :light}, {false, 390, :dark}] do
      options = [script: script, width: width, theme: theme]
      page = Browser.open(url, options) |> Browser.goto("/skills?source=store&kind=note")
      if script, do: Browser.assert_sound(page)
      Browser.click(page, role: "switch", name: "milk")
      Browser.wait_url(page, "**/skills?kind=note&source=store&done=disabled&name=milk#*")
      assert {:ok, %{enabled: false}} = Store.fetch(view, "milk")
      # The switch has the focus again.
      assert Browser.text(page, "button[role=switch][aria-checked=false]") =~ "Off"
      if script, do: assert(["button", "switch-bWlsaw", _text] = Browser.focused(page))
      Browser.click(page, role: "switch", name: "milk")
      Browser.wait_url(page, "**/skills?kind=note&source=store&done=enabled&name=milk#*")
      assert {:ok, %{enabled: true}} = Store.fetch(view, "milk")
    end
  end

  test "everything works without script", %{url: url, view: view} do
    page = Browser.open(url, script: false) |> Browser.goto("/skills")
    Browser.fill(page, "#q", "bottles")
    Browser.click(page, role: "button", name: "Search")
    Browser.wait_url(page, "**/skills?q=bottles")
    assert Browser.count(page, ".entry-name a") == 1
    append_cream(page)
    Browser.click(page, role: "button", name: "Disable")
    Browser.wait_url(page, "**/skills/milk?done=disabled")
    Browser.click(page, role: "button", name: "Enable")
    Browser.click(page, role: "link", name: "Delete")
    Browser.wait_url(page, "**/skills/milk/delete")
    Browser.click(page, role: "button", name: "Delete")
    Browser.wait_url(page, "**/skills/milk/versions?done=deleted")
    assert {:error, %{kind: :not_found}} = Store.fetch(view, "milk")
  end

  test "a file is imported with its report, an entry downloaded", %{url: url, view: view} do
    text = "---\nname: tea\ndescription: Makes tea\n---\n```sh\ncurl https://tea.io/leaves\n```\n"
    page = Browser.open(url) |> Browser.goto("/import")
    Browser.assert_sound(page)
    Browser.upload(page, [label: "File"], "tea.md", "text/markdown", text)
    Browser.click(page, role: "button", name: "Review the file")
    Browser.wait(page, text: "tea.io")
    Browser.assert_sound(page)
    Browser.check(page, label: "Import tea")
    Browser.click(page, role: "button", name: "Import the ticked skills")
    Browser.click(page, role: "link", name: "tea")
    assert {:ok, %{source: :import}} = Store.fetch(view, "tea")
    assert {"tea.tar.gz", data} = Browser.download(page, role: "link", name: "Export")
    {:ok, files} = :erl_tar.extract({:binary, data}, [:memory, :compressed])
    assert [{~c"tea/SKILL.md", page}] = files
    assert page =~ "Makes tea"
  end

  test "a session that began with a token writes, and ends", %{book: book, view: view} do
    {:ok, made} = Skillbook.Web.Tokens.create(book, profile: "default", scopes: [:page])
    server = start_supervised!({Server, book: book, port: 0}, id: :tokens)
    page = Browser.open(Server.info(server).url) |> Browser.goto("/login")
    Browser.fill(page, [label: "Token"], made.secret.())
    Browser.click(page, role: "button", name: "Sign in")
    Browser.wait_url(page, "**/")
    Browser.goto(page, "/skills")
    append_cream(page)
    assert {:ok, %{content: "Two bottles.\nAnd cream."}} = Store.fetch(view, "milk")
    Browser.assert_sound(page)
    Browser.click(page, role: "button", name: "Sign out")
    Browser.wait_url(page, "**/login*")
  end

  test "the theme is the system's, or chosen and kept", %{url: url} do
    page = Browser.open(url, theme: :dark) |> Browser.goto("/skills")
    color = fn -> Browser.evaluate(page, "getComputedStyle(document.body).backgroundColor") end
    dark = color.()
    Browser.click(page, role: "button", name: "Theme: system")
    light = color.()
    assert light != dark
    Browser.goto(page, "/skills/milk")
    assert color.() == light
    Browser.click(page, role: "button", name: "Theme: light")
    assert color.() == dark
    Browser.assert_sound(page)
  end

  test "an entry and its versions fit on every screen", %{url: url} do
    for {name, options} <- [
          {"light", []},
          {"dark", [theme: :dark]},
          {"narrow", [width: 360, height: 740]}
        ],
        path <- ["/skills/weekly-report", "/skills/weekly-report/versions/2"] do
      page = Browser.open(url, options) |> Browser.goto(path)
      Browser.assert_sound(page)
      unless path =~ "versions", do: Browser.screenshot(page, "page-entry-#{name}")
    end
  end

  test "links of a document lead to its files", %{url: url} do
    page = Browser.open(url) |> Browser.goto("/skills/pdf")
    Browser.click(page, ".rendered a")
    Browser.wait_url(page, "**/skills/pdf/files/references/forms.md")
    assert Browser.text(page, "pre.source") =~ "# Forms"
  end
end
