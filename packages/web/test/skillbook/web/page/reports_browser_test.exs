defmodule Skillbook.Web.Page.ReportsBrowserTest do
  # The pages about prompts, runs and problems in a real Chromium: what a person does on them,
  # with and without script, and the pictures in the docs.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Test.Browser
  alias Skillbook.Usage.Writer
  alias Skillbook.Web.Server

  @moduletag :capture_log
  @moduletag :tmp_dir
  @moduletag timeout: 300_000

  setup %{tmp_dir: folder} do
    book = :"reports_browser_#{System.unique_integer([:positive])}"
    flags = "{to: {type: email, required: true}, copies: {type: integer, min: 1, max: 9}}"

    flow =
      "## Behavior\n\n```cmd\ntasks.search --status todo\nmemory.search --query digest\n```\n"

    write(folder, %{
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mails to customers\n---\n# Mail\n",
      "mail/send.md" =>
        page("mail.send", handler("Text") ++ [flags: flags, approval: "required"]),
      "mail/digest.md" => page("mail.digest", [schedule: "\"0 8 * * *\""], flow),
      "mail/old.md" =>
        "---\nname: mail.old\ndescription: Sends: an old mail\ntags: a, b\n---\n# Old\n",
      "mail/fails.md" => page("mail.fails", handler("Raise")),
      "haiku/SKILL.md" => page("haiku", trigger_keywords: "[haiku]")
    })

    start_supervised!(
      {Skillbook,
       name: book,
       builtins: ["tasks", "memory"],
       sources: [],
       write_to: folder,
       store: ":memory:",
       watch: false,
       conversations: [],
       schedules: [run_as: "default"],
       usage: [flush: 3_600_000]}
    )

    options = [book: book, port: 0, authenticate: :none, profile: "default"]
    pid = start_supervised!({Server, options})
    %{book: book, url: Server.info(pid).url, folder: folder}
  end

  for script <- [true, false] do
    test "a command is tried, waits, and is approved; script: #{script}", context do
      %{url: url, book: book} = context
      page = Browser.open(url, script: unquote(script))
      Browser.goto(page, "/try") |> Browser.click(role: "link", name: "mail.send")
      Browser.fill(page, [label: "--to"], "ann@example.com")
      Browser.fill(page, [label: "--copies (optional)"], "2")
      Browser.click(page, role: "button", name: "Show the command")
      Browser.wait(page, text: "mail.send --copies 2 --to ann@example.com")
      assert Browser.value(page, label: "--copies (optional)") == "2"
      Browser.click(page, role: "button", name: "Run it")
      Browser.wait(page, text: "waits for an approval")
      {:ok, [%{ref: ref}]} = Skillbook.approvals(book)
      Browser.click(page, role: "link", name: "The approval #{ref} that it waits for")
      Browser.fill(page, [label: "Reason (optional)"], "Ann asked for it")
      Browser.click(page, role: "button", name: "Yes, run it")
      Browser.wait(page, text: "Ann asked for it")

      assert {:ok, [%{ref: ^ref, result: %{status: :ok}}]} =
               Skillbook.approvals(book, status: :done)
    end
  end

  for script <- [true, false] do
    test "a schedule is paused, run and resumed, a breaker reset; script: #{script}", context do
      %{url: url, book: book} = context
      page = Browser.open(url, script: unquote(script)) |> Browser.goto("/runs")
      Browser.click(page, role: "button", name: "Pause mail.digest")
      Browser.wait(page, role: "button", name: "Resume mail.digest")
      if unquote(script), do: Browser.assert_sound(page)
      assert {:ok, %{next: [%{paused: %{by: "default"}}]}} = schedule(book)
      Browser.click(page, role: "button", name: "Run as scheduled mail.digest")

      assert eventually(fn ->
               match?({:ok, %{last: [%{name: "mail.digest", status: :ok}]}}, schedule(book))
             end)

      Browser.click(page, role: "button", name: "Resume mail.digest")
      Browser.wait(page, role: "button", name: "Pause mail.digest")
      assert {:ok, %{next: [%{paused: nil}]}} = schedule(book)

      for _ <- 1..5, do: Skillbook.run(book, "```cmd\nmail.fails\n```")
      Browser.goto(page, "/status")
      Browser.wait(page, text: "out of service")
      Browser.click(page, role: "button", name: "Reset mail.fails")
      Browser.wait(page, text: "All skills work.")
      if unquote(script), do: Browser.assert_sound(page)
    end
  end

  defp schedule(book), do: book |> Skillbook.View.all() |> Skillbook.schedule()

  test "a file is fixed after a look at the difference", %{url: url, folder: folder} do
    page = Browser.open(url) |> Browser.goto("/diagnostics")
    Browser.click(page, role: "link", name: "2 fixes of mail/old.md")
    Browser.wait(page, "figure.diff")
    Browser.click(page, "main form button")
    Browser.wait_url(page, "**/diagnostics")
    assert Browser.count(page, text: "old.md") == 0
    assert File.read!(Path.join(folder, "mail/old.md")) =~ "description: \"Sends: an old mail\""
  end

  test "lists change as things happen", %{url: url, book: book} do
    runs = Browser.open(url) |> Browser.goto("/runs")
    approvals = Browser.open(url) |> Browser.goto("/approvals")
    Browser.wait(runs, text: "No workflow has run yet.")
    Browser.wait(approvals, text: "Nothing waits for an approval.")
    Skillbook.run(book, "```cmd\nmail.digest\nmail.send --to a@b.co\n```")
    Browser.wait(runs, text: "2 of 2")
    Browser.wait(approvals, text: "mail.send --to a@b.co")
    for page <- [runs, approvals], do: Browser.assert_sound(page)
  end

  test "pictures of the pages", %{url: url, book: book} do
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    hour = div(System.os_time(:second), 3600)
    names = ~w(tasks.search memory.search mail.digest mail.send tasks.create haiku)

    rows =
      for day <- 0..6, {name, number} <- Enum.with_index(names), event <- ["run", "failed"] do
        count =
          if event == "run", do: rem(day * 7 + number * 5, 17) + 1, else: rem(day + number, 3)

        {{hour - day * 24, "", name, "default", event}, count, count * 1_000 * (number + 1)}
      end

    :ok = Writer.store(sql, Enum.filter(rows, &(elem(&1, 1) > 0)))
    page = Browser.open(url, width: 1100, height: 760)
    Browser.goto(page, "/prompt?max_tokens=500") |> Browser.screenshot("page-prompt")
    Browser.goto(page, "/usage") |> Browser.screenshot("page-usage")
    Browser.assert_sound(page)

    # As somebody who does not see paths.
    options = [book: book, port: 0, authenticate: fn _request -> {:ok, "default"} end]
    pid = start_supervised!(Supervisor.child_spec({Server, options}, id: :other))
    page = Browser.open(Server.info(pid).url, width: 1100, height: 760)
    Browser.goto(page, "/diagnostics") |> Browser.screenshot("page-diagnostics")
    Browser.assert_sound(page)
  end
end
