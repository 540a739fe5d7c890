defmodule Skillbook.Web.TasksBrowserTest do
  # Ten things that people come for, each from the first page, in a real Chromium. The number of
  # clicks is pinned, so that a change of the rooms shows what it costs. With SKILLBOOK_TASKS=1
  # the test prints them, with the seconds that the browser needs.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Model, Store}
  alias Skillbook.Test.{Browser, Connections}
  alias Skillbook.Web.Server

  @moduletag :capture_log
  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  setup %{tmp_dir: folder} do
    book = :"tasks_browser_#{System.unique_integer([:positive])}"
    refunds = "# Refunds\n\nUp to **50 EUR** you refund at once. Above that, ask Ann.\n"

    write(folder, %{
      "refunds.md" =>
        "---\nname: refunds\ndescription: When we pay back\ninclude_in_prompt: false\n---\n" <>
          refunds,
      "mail/send.md" =>
        page(
          "mail.send",
          [approval: "required", flags: "{to: {type: email}}"] ++ handler("Text")
        ),
      "nightly.md" => page("nightly", [schedule: "\"0 2 * * *\""] ++ handler("Raise")),
      "letter.md" => "---\nname: letter\ndescription: Writes: a letter\n---\nDear.\n"
    })

    model =
      Model.Function.new(fn messages, _options ->
        case List.last(messages).content do
          "Refund" <> _rest -> "I look that up.\n\n```cmd\nget_skill refunds\n```"
          "Write" <> _rest -> "I send it.\n\n```cmd\nmail.send --to ann@example.com\n```"
          _report -> "Up to 50 EUR you refund at once."
        end
      end)

    # Another website than the page, which allows everything.
    world = Connections.world()
    vendor = String.replace(world.url, "127.0.0.1", "localhost")

    start_supervised!(
      {Skillbook,
       name: book,
       builtins: ["tasks", "email"],
       connections: [
         key: &Connections.key/0,
         google: Connections.account(world, url: vendor)
       ],
       sources: [],
       write_to: folder,
       store: ":memory:",
       watch: false,
       agent: [model: model, protocol: :blocks],
       profiles: [[id: "default", writes: :run]],
       schedules: [run_as: "default"],
       usage: [flush: 3_600_000]}
    )

    view = Skillbook.view(book, "default")
    {:ok, _} = Store.put_note(view, "Minutes", "Short.")
    {:ok, _} = Store.put_note(view, "Minutes", "Shorter.")
    Skillbook.run(view, "```cmd\nmail.send --to bo@example.com\nnightly\n```")

    options = [book: book, port: 0, authenticate: :none, profile: "default"]
    pid = start_supervised!({Server, options})
    %{book: book, view: view, url: Server.info(pid).url, folder: folder, vendor: vendor}
  end

  # Runs the steps from the first page, and returns the clicks.
  defp clicks(page, steps) do
    Browser.goto(page, "/")

    steps
    |> Enum.map(fn
      {:click, place} ->
        Browser.click(page, place)
        1

      {:fill, place, text} ->
        Browser.fill(page, place, text)
        0

      {:see, text} ->
        Browser.wait(page, text: text)
        0

      {:find, place} ->
        Browser.wait(page, place)
        0
    end)
    |> Enum.sum()
  end

  defp link(name), do: {:click, [role: "link", name: name]}
  defp button(name), do: {:click, [role: "button", name: name]}

  @nothing_selected "#rooms a[href='/skills']"

  test "ten tasks", %{url: url, view: view, folder: folder, vendor: vendor} do
    page = Browser.open(url)

    tasks = [
      {"find a skill, and see why it is not in the prompt", 3,
       [
         {:click, @nothing_selected},
         link("refunds"),
         link("why, for this profile"),
         {:find, "svg[role=img]"}
       ]},
      {"write a command with a flag", 6,
       [
         {:click, @nothing_selected},
         link("New file"),
         {:fill, [label: "Name"], "mail.list"},
         {:fill, [label: "Description"], "Lists mails"},
         button("Add a flag"),
         {:fill, "#field-flag1_name", "from"},
         button("Write the page"),
         button("Preview"),
         button("Create"),
         {:see, "Lists mails"}
       ]},
      {"mend a typo", 4,
       [{:click, @nothing_selected}, link("letter"), link("Mend"), {:click, "main form button"}]},
      {"approve a call", 2,
       [link("Review " <> ref(view)), button("Yes, run it"), {:see, "done"}]},
      {"see last night's failure", 1, [link("See why nightly"), {:find, "#failed-heading"}]},
      {"turn a skill off", 2,
       [{:click, @nothing_selected}, {:click, [role: "switch", name: "minutes"]}, {:see, "Off"}]},
      {"connect an account", 2,
       [
         link("Accounts"),
         button("Connect google"),
         {:see, "google is connected as ann@example.com."}
       ]},
      {"try a request with the model", 2,
       [
         link("Try"),
         {:fill, "#text", "Refund an order?"},
         button("Send"),
         {:see, "Up to 50 EUR you refund at once."},
         {:find, ".saw a[href='/skills/refunds']"}
       ]},
      {"look at costs", 1, [link("Open the prompt"), {:find, "#sizes-heading"}]},
      {"find who changed a page", 3,
       [
         {:click, @nothing_selected},
         link("minutes"),
         link("Versions"),
         {:find, [role: "link", name: "Version 2"]}
       ]}
    ]

    for {task, expected, steps} <- tasks do
      {time, clicks} = :timer.tc(fn -> clicks(page, steps) end)
      assert {task, clicks} == {task, expected}

      if System.get_env("SKILLBOOK_TASKS"),
        do: IO.puts("| #{task} | #{clicks} | #{Float.round(time / 1_000_000, 1)} |")
    end

    assert File.read!(Path.join(folder, "letter.md")) =~ "description: \"Writes: a letter\""
    assert File.exists?(Path.join(folder, "mail/list.md"))
    assert {:ok, %{enabled: false}} = Store.fetch(view, "minutes")
    assert {:ok, [%{profile: "default"}]} = Skillbook.Connections.list(view.book)
    # Only the sign-in leaves the page. Its website has no icon.
    ours = Enum.reject(Browser.problems(page), &(&1 =~ vendor or &1 =~ "status of 404"))
    assert ours == []
  end

  defp ref(view) do
    {:ok, [%{ref: ref}]} = Skillbook.approvals(view)
    ref
  end

  for script <- [true, false] do
    test "a conversation waits for an approval, and goes on; script: #{script}", %{url: url} do
      page = Browser.open(url, script: unquote(script)) |> Browser.goto("/chat")
      Browser.fill(page, "#text", "Write to Ann")
      Browser.click(page, role: "button", name: "Send")
      Browser.wait(page, ".decide")
      if unquote(script), do: Browser.assert_sound(page)
      Browser.click(page, ".decide button.primary")
      Browser.wait(page, text: "Up to 50 EUR you refund at once.")
      assert Browser.count(page, ".decide") == 0
    end
  end

  test "a phone has one bar of 48 pixels, at its lower end", %{url: url} do
    page = Browser.open(url, width: 390, height: 780)

    for path <- ["/", "/skills", "/chat"] do
      Browser.goto(page, path)

      assert Browser.evaluate(page, """
             (() => {
               const bar = document.querySelector(".side");
               const { top, height, width } = bar.getBoundingClientRect();
               return [top, height, width];
             })()
             """) == [732, 48, 390]

      Browser.assert_sound(page)
    end
  end

  test "pictures of the rooms", %{url: url} do
    page = Browser.open(url)
    Browser.goto(page, "/") |> Browser.screenshot("page-home")
    Browser.goto(page, "/chat")
    Browser.fill(page, "#text", "Refund an order?")
    Browser.click(page, role: "button", name: "Send")
    Browser.wait(page, text: "Up to 50 EUR you refund at once.")
    Browser.screenshot(page, "page-chat")
    Browser.resize(page, 390, 780)
    Browser.goto(page, "/") |> Browser.screenshot("page-home-narrow")
  end
end
