defmodule Skillbook.Seeds.CommandsTest do
  # The document about skills in Markdown: the commands that come with it, each with its flags.
  # The language of commands, help and the registry are in 002_test.exs.
  use Skillbook.SeedsCase,
    async: true,
    names: %{
      "2.4" => ~w(email.send --to --subject --body --cc --bcc --attachments),
      "2.5" => ~w(tasks.search --query --status --assignee --priority --tags --due-before
           --due-after --overdue --sort --limit todo in_progress blocked done cancelled critical
           high medium low due_date priority created_at updated_at me),
      "2.6" => ~w(workflows.daily_digest --recipient --include-weather schedule author created
           tasks.search calendar.list --date email.search --unread --after --label --limit
           email.send),
      "2.7" => ~w(email.draft --to --subject --body --tone formal casual friendly professional),
      "3.1" => ~w(email.send email.search email.read email.draft tasks.create tasks.search
           tasks.get tasks.update tasks.delete calendar.create calendar.list calendar.update
           drive.read drive.update drive.list drive.search hubspot.contacts hubspot.deals
           hubspot.notes memory.save memory.search markdown.edit markdown.create markdown.search
           workflow.build workflows.daily_digest workflows.weekly_report),
      "3.2" => ~w(email.send email.search email.draft --query --after --tone tasks.create --title
           --priority --due tasks.search tasks.update --id --status tasks.delete --parent),
      "8" => ~w(drive frontmatter tags path title words markdown.search),
      "9.2" => ~w(workflow.build --name --description --domain --steps --schedule author created),
      "9.3" => ~w(all help workflow.build),
      "10.2" => ~w(email.send tasks.search tasks.create memory.save --content --category
           memory.search --query),
      "11" =>
        [{"dispatch_agent", "agent.dispatch"}, {"agent_id", "--id"}] ++
          ~w(agent.dispatch --mission --skills --context --id),
      "14.2" => ~w(workflow.build markdown.search --help schedule),
      "15" => ~w(aliases writes delegate)
    }

  import Skillbook.Eventually, only: [eventually: 1]

  alias Skillbook.Test.Services
  alias Skillbook.{Model, SQL, Scheduler, Usage, Vault, View}

  @moduletag :tmp_dir

  @ann "ann@example.com"
  # The 16th of February 2026, 09:12 UTC, the day before the time of the rows.
  @date 1_771_233_120
  @document "application/vnd.google-apps.document"
  @folder "application/vnd.google-apps.folder"

  defp mail(fields),
    do: Map.merge(%{from: "Bob <bob@example.com>", date: @date}, Map.new(fields))

  defp mails do
    [
      mail(
        subject: "Q1 report",
        text: "The report is ready.",
        labels: ["INBOX", "UNREAD", "IMPORTANT"]
      ),
      mail(subject: "Lunch", text: "On Tuesday?", labels: ["INBOX"], date: @date - 400_000)
    ]
  end

  defp gmail(messages), do: %{messages: %{@ann => messages}, labels: %{@ann => []}}
  defp sent(world), do: Services.judge(world, "gmail.messages", user: @ann, q: "in:sent")
  defp text(mail), do: mail["text"] |> String.replace("\r\n", "\n") |> String.trim()
  defp header(mail, name), do: mail["headers"][name]

  # The id of a task in a result.
  defp id(text) do
    [id] = Regex.run(~r/T-\d+/, text)
    id
  end

  # 2.4: email.send

  row ["2.4", "3.1", "3.2"], "email.send: each flag" do
    files = [%{id: "file123", name: "plan.csv", mimeType: "text/csv", text: "a,b"}]
    {book, world} = office(seed: [drive: %{files: files}])

    check(book, [
      {~s(email.send --to bob@company.com --subject "Q1 Report" --body "Here it is."), "Sent"},
      {"email.send --to alice@co.com bob@co.com --subject Minutes --body Attached. " <>
         "--attachments file123", "alice@co.com, bob@co.com"},
      {"email.send --to bob@co.com --cc ann@co.com eve@co.com --bcc zoe@co.com " <>
         ~s(--subject Copies --body "A *word*."), ["cc ann@co.com", "bcc zoe@co.com"]}
    ])

    mails = Map.new(sent(world), &{hd(header(&1, "subject")), &1})
    assert text(mails["Q1 Report"]) == "Here it is."
    assert header(mails["Minutes"], "to") == ["alice@co.com, bob@co.com"]
    assert [%{"name" => "plan.csv"}] = mails["Minutes"]["attachments"]
    assert header(mails["Copies"], "cc") == ["ann@co.com, eve@co.com"]
    assert mails["Copies"]["html"] =~ "<em>word</em>"
  end

  @tag differs: "Each mail needs an approval, since it cannot be taken back."
  row "2.4", "email.send asks first" do
    {book, _world} = office()
    assert run(book, "email.send --to bob@co.com --subject A --body B").status == :ok
    assert_received {:asked, %{command: %{name: "email.send"}}}
  end

  row "2.4", "email.send without a required flag is an error that names it" do
    {book, world} = office()

    for {flag, line} <- [
          {"--to", "email.send --subject A --body B"},
          {"--subject", "email.send --to bob@co.com --body B"},
          {"--body", "email.send --to bob@co.com --subject A"}
        ] do
      assert "error: " <> text = answer(book, line)
      assert {line, text =~ flag} == {line, true}
    end

    assert sent(world) == []
  end

  row "2.4", "email.send is refused before anybody is asked if it cannot succeed" do
    {book, world} = office(connections: [], builtins: ["email"])
    line = "email.send --to bob@co.com --subject A --body B"
    assert %{status: :error} = run(book, line)
    refute_received {:asked, _}
    assert sent(world) == []
  end

  # 2.5: tasks.search

  defp tasks do
    book = book(store: ":memory:", watch: false)

    ids =
      for {name, flags} <- [
            a: "--title Late --due yesterday --priority high --tags Q1 backend --assignee me",
            b: "--title Soon --due tomorrow --priority low --tags Q1",
            c: "--title Critical --priority critical --status in_progress --tags backend Q1",
            d: "--title Stuck --status blocked --description \"The marketing report\"",
            e: "--title Finished --status done",
            f: "--title Dropped --status cancelled"
          ],
          line = "tasks.create " <> String.replace(flags, "yesterday", "2026-02-16"),
          do: {id(answer(book, line)), name}

    {book, Map.new(ids)}
  end

  # The tasks of an answer, by their letters in its order.
  defp letters(book, ids, line) do
    for [id] <- Regex.scan(~r/^T-\d+/m, answer(book, line)), do: ids[id]
  end

  row ["2.5", "3.1", "3.2"], "tasks.search: each flag" do
    {book, ids} = tasks()

    for {line, expected} <- [
          # Without flags: active tasks by due date.
          {"tasks.search", [:a, :b, :c, :d]},
          {"tasks.search --status overdue --assignee me", [:a]},
          {"tasks.search --tags Q1 backend --priority high critical", [:a, :c]},
          {"tasks.search --priority medium --status todo", []},
          {~s(tasks.search --query "marketing report" --due-before 2026-03-01), []},
          {~s(tasks.search --query "marketing report"), [:d]},
          {"tasks.search --status todo", [:a, :b]},
          {"tasks.search --status in_progress blocked", [:c, :d]},
          {"tasks.search --status done cancelled --sort created_at", [:e, :f]},
          {"tasks.search --assignee me", [:a]},
          {"tasks.search --due-before today", [:a]},
          {"tasks.search --due-after 2026-02-17", [:b]},
          {"tasks.search --due-before 2026-02-18 --due-after 2026-02-18", [:b]},
          {"tasks.search --overdue", [:a]},
          {"tasks.search --sort due_date", [:a, :b, :c, :d]},
          {"tasks.search --sort priority", [:c, :a, :d, :b]},
          {"tasks.search --priority low --sort updated_at", [:b]},
          {"tasks.search --limit 1", [:a]}
        ] do
      found = letters(book, ids, line)
      found = if line =~ ~r/sort (?:created|updated)_at/, do: Enum.sort(found), else: found
      # Tasks without a due date have no order among themselves.
      sorted = if line =~ ~r/--sort priority|--limit/, do: found, else: Enum.sort(found)
      assert {line, sorted} == {line, expected}
    end
  end

  row "2.5", "tasks.search: the default limit is 20" do
    book = book(store: ":memory:", watch: false)
    for n <- 1..22, do: run(book, "tasks.create --title Task#{n}")
    text = answer(book, "tasks.search")
    assert length(Regex.scan(~r/^T-\d+/m, text)) == 20
    assert text =~ "2 more"
  end

  row "2.5", "tasks.search: wrong values are errors that list the right ones" do
    {book, _} = tasks()

    check(book, [
      {"tasks.search --status late",
       ["error", "--status", "todo, in_progress, blocked, done, cancelled"]},
      {"tasks.search --priority huge", ["error", "critical, high, medium, low"]},
      {"tasks.search --sort name", ["error", "due_date, priority, created_at, updated_at"]},
      {"tasks.search --limit many", ["error", "--limit must be a whole number"]},
      {"tasks.search --due-before soon", ["error", "--due-before must be", "YYYY-MM-DD"]}
    ])
  end

  # 3.1 and 3.2: tasks

  row ["3.1", "3.2"], "tasks are created, read, changed and deleted" do
    book = book(store: ":memory:", watch: false)

    created = ~s(tasks.create --title "Review the PR" --priority high --due 2026-02-20)
    one = id(answer(book, created))
    child = id(answer(book, "tasks.create --title Part --parent #{one}"))

    check(book, [
      {"tasks.get #{one}", ["Review the PR", "high", "2026-02-20", "todo", "Part"]},
      {"tasks.get --id #{child}", one},
      {"tasks.update --id #{one} --status done --priority low --assignee me", "done"},
      {"tasks.get #{one}", ["done", "low", "default"]},
      {"tasks.delete --id #{child}", "Deleted"},
      {"tasks.search --query Part", ~r/no tasks|0 tasks/i},
      # Only marked as deleted.
      {"tasks.get #{child}", "deleted"},
      {"tasks.update --id #{child} --status todo", "error"}
    ])
  end

  # 2.6: the digest

  row "2.6", "workflows.daily_digest: what its page says" do
    view = View.all(book(store: ":memory:", watch: false))
    entry = View.fetch!(view, "workflows.daily_digest")
    # The days of the week at eight; it does not run unless the application asks for it.
    assert entry.schedule == "0 8 * * 1-5"
    assert entry.kind == :command
    assert entry.body =~ "tasks.search"
  end

  row "2.6", "the lines of a digest run as they are written" do
    {book, world} =
      office(seed: [gmail: gmail(mails()), calendar: %{zones: %{@ann => "Etc/UTC"}}])

    check(book, [
      {"tasks.create --title Late --due 2026-02-16 --assignee me", "T-"},
      {~s(calendar.create --title Standup --start "2026-02-17 14:00"), "Standup"},
      {"tasks.search --overdue --sort priority", "Late"},
      {"tasks.search --due-before 2026-02-17 --due-after 2026-02-17 --sort priority",
       ~r/no tasks|0 tasks/i},
      {"calendar.list --date 2026-02-17", "Standup"},
      {"email.search --unread --after 2026-02-16 --label important --limit 5", "Q1 report"},
      {~s(email.send --to me --subject "Daily Digest - 2026-02-17" --body "All of it"), "Sent"}
    ])

    assert [%{"headers" => %{"subject" => ["Daily Digest - 2026-02-17"]}}] = sent(world)
  end

  row "2.6", "workflows.daily_digest reads what is connected, and sends", context do
    {book, world} =
      office(
        seed: [gmail: gmail(mails()), calendar: %{zones: %{@ann => "Etc/UTC"}}],
        write_to: context.tmp_dir
      )

    run(book, "tasks.create --title Overdue-thing --due 2026-02-16 --assignee me")
    run(book, ~s(calendar.create --title Standup --start "2026-02-17 14:00"))
    Services.clear_log(world)
    result = run(book, "workflows.daily_digest --recipient bob@company.com --include-weather")
    assert result.status in [:ok, :template]
    text = result.content
    for word <- ["Overdue-thing", "Standup", "Q1 report", "eather"], do: assert(text =~ word)
    assert [mail] = sent(world)
    assert header(mail, "to") == ["bob@company.com"]
    assert text(mail) =~ "Overdue-thing"
  end

  row "2.6", "workflows.daily_digest says what it left out" do
    book = book(store: ":memory:", watch: false)
    result = run(book, "workflows.daily_digest")
    assert result.status in [:ok, :template]
    assert result.content =~ ~r/calendar/i and result.content =~ ~r/mail/i
  end

  row "2.6", "workflows.daily_digest --help has its flags" do
    text = answer(book(store: ":memory:", watch: false), "workflows.daily_digest --help")
    assert text =~ "--recipient" and text =~ "--include-weather"
  end

  row "2.6", "a page of one's own with these flags runs its steps", context do
    write(context.tmp_dir, %{
      "skills/own/digest.md" => """
      ---
      name: own.digest
      description: Sends an overview of the day
      schedule: "0 8 * * 1-5"
      author: assistant
      created: 2026-02-17
      ---

      ## Usage

      own.digest [--recipient <address>] [--include-weather]

      ## Flags

      --recipient        Who gets it (default: me)
      --include-weather  With the weather (a switch)

      ## Behavior

      ```cmd
      # name: late
      tasks.search --overdue --sort priority
      email.send --to {recipient} --subject "Overview of {today}" --body {late}
      ```
      """
    })

    {book, world} = office(sources: [Path.join(context.tmp_dir, "skills")])
    run(book, "tasks.create --title Overdue-thing --due 2026-02-16 --assignee me")

    check(book, [
      {"own.digest", "ok"},
      {"own.digest --recipient bob@company.com --include-weather", "bob@company.com"}
    ])

    assert mails = [_, _] = sent(world)
    for mail <- mails, do: assert(text(mail) =~ "Overdue-thing")
    entry = View.fetch!(Skillbook.view(book), "own.digest")
    assert {entry.data["author"], entry.data["created"]} == {"assistant", "2026-02-17"}
    assert entry.schedule == "0 8 * * 1-5"
  end

  # 2.7: email.draft

  row ["2.7", "3.1", "3.2"], "email.draft: each flag, and nothing is sent" do
    {book, world} = office()

    check(book, [
      {~s(email.draft --to bob@co.com --subject "Q1 Report" --body "Summary of the results"),
       ["bob@co.com", "Q1 Report", "Summary of the results", "email.send"]},
      {~s(email.draft --to alice@co.com --subject Coffee? --body "Shall we?" --tone casual),
       "Coffee?"},
      {"email.draft --to a@co.com --subject A --body B --tone formal", "a@co.com"},
      {"email.draft --to a@co.com --subject A --body B --tone friendly", "a@co.com"},
      {"email.draft --to a@co.com --subject A --body B --tone professional", "a@co.com"},
      {"email.draft --to a@co.com --subject A --body B --tone angry",
       ["error", "professional, formal, casual, friendly"]}
    ])

    assert sent(world) == []
    refute_received {:asked, _}
    drafts = Services.judge(world, "gmail.messages", user: @ann, q: "in:drafts")
    assert length(drafts) == 5
  end

  row "2.7", "a draft is sent by the line that its answer shows" do
    {book, world} = office()
    shown = answer(book, "email.draft --to bob@co.com --subject A --body Hello")

    line =
      shown |> String.split("\n") |> List.last() |> String.replace(~r/\A.*?(?=email\.send)/, "")

    assert "Sent" <> _ = answer(book, String.trim(line, "`"))
    assert [mail] = sent(world)
    assert text(mail) == "Hello"
  end

  # 3.1: the other commands

  row ["3.1", "3.2"], "email.search and email.read" do
    {book, _world} = office(seed: [gmail: gmail(mails())])

    check(book, [
      {~s(email.search --query "report" --after 2026-02-01), "Q1 report"},
      {"email.search --from bob --subject Lunch", "Lunch"},
      {"email.search --before 2026-02-15", ["Lunch", &(not (&1 =~ "Q1 report"))]},
      {"email.read m1", ["Q1 report", "| The report is ready."]},
      {"email.read --id m2", "| On Tuesday?"},
      {"email.read nothing", "error"},
      # A formal tone for a draft, and its line is the one that sends.
      {"email.draft --to alice@co.com --subject Proposal --body Text --tone formal", "email.send"}
    ])
  end

  row "3.1", "calendar.create, calendar.list and calendar.update" do
    {book, _world} = office(seed: [calendar: %{zones: %{@ann => "Europe/Berlin"}}])
    line = ~s(calendar.create --title Dentist --start "tomorrow 9:00" --duration 45m)
    %{data: %{id: id}} = run(book, line)

    check(book, [
      {"calendar.list --date tomorrow", ["09:00-09:45", "Dentist"]},
      {~s(calendar.update --id #{id} --start "tomorrow 10:00" --title Doctor), "10:00"},
      {"calendar.list --date tomorrow", ["10:00-10:45", "Doctor"]},
      {"calendar.list --date today", "No events"}
    ])
  end

  defp files do
    at = "2026-02-11T09:30:00.000Z"

    [
      %{id: "f1", name: "Plans", mimeType: @folder},
      %{
        id: "d1",
        name: "Q1",
        mimeType: @document,
        text: "Sales rose.",
        parents: ["f1"],
        modifiedTime: at
      },
      %{id: "t1", name: "Notes.md", text: "Buy tea.", modifiedTime: at}
    ]
  end

  row "3.1", "drive.list, drive.search, drive.read and drive.update" do
    {book, _world} = office(seed: [drive: %{files: files()}])

    check(book, [
      {"drive.list", ["Plans", "Notes.md"]},
      {"drive.list --folder Plans", "d1 document"},
      {"drive.search --query Sales", "d1 document"},
      {"drive.read t1", ["revision", "| Buy tea."]}
    ])

    [_, revision] = Regex.run(~r/revision (\S+)/, answer(book, "drive.read t1"))
    line = ~s(drive.update --id t1 --content "Buy milk.")
    assert %{status: :ok} = run(book, "#{line} --revision #{revision}")
    assert answer(book, "drive.read t1") =~ "| Buy milk."
    # Somebody else's text is not replaced by a text that was made from an older one.
    assert %{status: :error} = run(book, "#{line} --revision #{revision}")
  end

  row "3.1", "drive.update takes the revision that the conversation has read" do
    {book, _world} = office(seed: [drive: %{files: files()}])

    model =
      Model.Function.new(fn messages, _options ->
        case Enum.count(messages, &(&1.role == :assistant)) do
          0 -> "```cmd\ndrive.read t1\n```"
          1 -> ~s(```cmd\ndrive.update --id t1 --content "Buy milk."\n```)
          _ -> "Done."
        end
      end)

    {:ok, result} = Skillbook.Agent.run(book, "Milk, not tea", model: model)
    assert result.status == :done
    assert answer(book, "drive.read t1") =~ "| Buy milk."
  end

  row "3.1", "hubspot.contacts, hubspot.deals and hubspot.notes" do
    token = "pat-of-the-test"

    seed = %{
      contacts: [
        %{id: "101", properties: %{email: "ann@acme.example", firstname: "Ann", lastname: "Lee"}}
      ],
      deals: [
        %{
          id: "301",
          properties: %{
            dealname: "Acme renewal",
            amount: "12000",
            pipeline: "default",
            dealstage: "won"
          }
        }
      ],
      notes: [
        %{
          id: "901",
          properties: %{
            hs_note_body: "<p>Wants an offer</p>",
            hs_timestamp: "2026-02-10T09:00:00Z"
          }
        }
      ],
      associations: [["notes", "901", "contacts", "101"]],
      pipelines: [%{id: "default", label: "Sales", stages: [%{id: "won", label: "Won"}]}]
    }

    world = Services.world(hubspot_tokens: %{token => "all"}, hubspot: seed)
    quota = [search: :infinity, hubspot: :infinity]
    account = [token: fn -> token end, url: world.url, quota: quota]
    book = book(watch: false, builtins: ["hubspot"], connections: [hubspot: account])

    check(book, [
      {"hubspot.contacts --query Lee", ["101", "Ann Lee"]},
      {"hubspot.deals --stage Won", ["301", "Acme renewal", "12000"]},
      {"hubspot.notes --contact 101", ["901", "Wants an offer"]}
    ])
  end

  row ["3.1", "10.2"], "memory.save and memory.search" do
    book = book(store: ":memory:", watch: false)

    check(book, [
      {~s(memory.save --content "Likes tea in the morning" --category preference), "M-"},
      {"memory.save --content Moved", "M-"},
      {~s(memory.search --query "tea"), "Likes tea"},
      {"memory.search --category preference", ["Likes tea", &(not (&1 =~ "Moved"))]},
      {"memory.search --query coffee", ~r/no memories|nothing|none/i}
    ])
  end

  row ["3.1", "8", "14.2"], "markdown.create, markdown.edit and markdown.search", context do
    notes =
      write(Path.join(context.tmp_dir, "notes"), %{
        "plans/Q1.md" =>
          "---\ntitle: The plan\ntags: [work]\nstatus: open\n---\nStrategy of Q1.\n"
      })

    book = book(store: ":memory:", watch: false, vaults: [notes])
    {:ok, _} = Vault.sync(book, "notes")

    check(book, [
      {"markdown.search --query strategy", ["plans/Q1.md", "The plan", "3 words", "#work"]},
      {"markdown.search --tags work", "plans/Q1.md"},
      {"markdown.search --field status=open", "plans/Q1.md"},
      {"markdown.search --folder plans", "plans/Q1.md"},
      {~s(markdown.create --title Rome --content "Take the train." --tags travel), "Rome.md"},
      {"markdown.search --query train", "Rome.md"},
      {"markdown.edit --note Rome --operation find_replace --find train --replace plane", "Rome"},
      {"markdown.search --query plane", "Rome.md"},
      {"markdown.edit Rome --operation append --content Soon.", "Rome"},
      {"markdown.search --query nothing-such", "No notes found"}
    ])
  end

  row "8", "documents of a drive are in the index, with their fields" do
    at = "2026-02-11T09:30:00.000Z"
    text = "---\ntitle: The plan\ntags: [work]\n---\nOur frontmatter and words.\n"

    files = [
      %{id: "f1", name: "Vault", mimeType: @folder},
      %{id: "n1", name: "Q1.md", text: text, parents: ["f1"], modifiedTime: at}
    ]

    drive = [path: nil, name: "drive", drive: [profile: "default", folder: "f1"], labels: []]
    options = [seed: [drive: %{files: files}], vaults: [Keyword.delete(drive, :path)]]
    {book, world} = office(options)
    {:ok, _} = Vault.sync(book, "drive")
    {:ok, found} = Vault.search(Skillbook.view(book), "frontmatter")
    assert [hit] = found.hits
    assert {hit.path, hit.title, hit.tags, hit.word_count} == {"Q1.md", "The plan", ["work"], 4}
    assert answer(book, "markdown.search --query words") =~ "The plan"
    # A change of the drive is indexed.
    Skillbook.Test.Drives.put(world, [%{id: "n1", text: "All new.", modifiedTime: at}])
    {:ok, _} = Vault.sync(book, "drive")
    {:ok, found} = Vault.search(Skillbook.view(book), "frontmatter")
    assert found.hits == []
  end

  @tag differs:
         "Each database has the same index of our own, which does not rank by hidden notes."
  row "8", "the rank of a note does not depend on notes that the reader cannot see", context do
    open = %{"a.md" => "---\ntitle: A\n---\nThe path to tea.\n"}
    hidden = for n <- 1..5, into: open, do: {"h#{n}.md", "---\nlabels: [x]\n---\nTea, tea.\n"}

    [alone, among] =
      for {name, files} <- [{"alone", open}, {"among", hidden}] do
        notes = write(Path.join(context.tmp_dir, name), files)
        book = book(store: ":memory:", watch: false, vaults: [notes])
        {:ok, _} = Vault.sync(book, name)
        {:ok, found} = Vault.search(Skillbook.view(book), "tea")
        for hit <- found.hits, do: {hit.path, hit.title, hit.score}
      end

    assert [{"a.md", "A", _score}] = alone
    assert among == alone
  end

  # 9: workflow.build

  defp builder(context, options \\ []) do
    folder = Path.join(context.tmp_dir, "built")
    File.mkdir_p!(folder)
    {book([store: ":memory:", write_to: folder, watch: false] ++ options), folder}
  end

  row ["9.2", "14.2", "3.1"], "workflow.build: each flag", context do
    {book, folder} = builder(context)

    check(book, [
      {~s(workflow.build --name weekly_report --description "Sends the report of the week" ) <>
         ~s(--schedule "0 9 * * 1"), "workflows.weekly_report"},
      {~s(workflow.build --name client_onboard --description "Takes on a client" ) <>
         ~s(--steps "Create tasks, send a mail, note the contact"), "workflows.client_onboard"},
      {~s(workflow.build --name expense_report --domain finance --description "Sums up a month"),
       "finance.expense_report"}
    ])

    page = File.read!(Path.join(folder, "workflows/weekly_report.md"))
    assert page =~ ~r/\A---\nname: workflows.weekly_report\ndescription: Sends the report/
    for line <- ["schedule: ", "author: default", "created: 2026-02-17"], do: assert(page =~ line)
    for heading <- ["## Usage", "## Behavior"], do: assert(page =~ heading)
    assert File.read!(Path.join(folder, "workflows/client_onboard.md")) =~ "note the contact"
    assert File.exists?(Path.join(folder, "finance/expense_report.md"))

    # It can be called at once, and its schedule is registered.
    assert answer(book, "workflows.client_onboard") =~ "note the contact"
    assert View.fetch!(Skillbook.view(book), "workflows.weekly_report").schedule == "0 9 * * 1"

    assert eventually(fn ->
             Map.has_key?(Scheduler.registered(book), "workflows.weekly_report")
           end)
  end

  row "9.2", "workflow.build refuses taken, reserved and odd names", context do
    {book, _} = builder(context)
    build = &"workflow.build --name #{&1} --description \"Does it\""
    assert %{status: :ok} = run(book, build.("report"))

    for {name, word} <- [
          {"report", "report"},
          {"daily_digest", "workflows.daily_digest"},
          {"Weekly", "--name"},
          {"9lives", "--name"},
          {"with-dash", "--name"}
        ] do
      assert "error: " <> text = answer(book, build.(name))
      assert {name, text =~ word} == {name, true}
    end

    check(book, [
      {"workflow.build --name x", ["error", "--description"]},
      {"workflow.build --description x", ["error", "--name"]},
      {"workflow.build --name x --description y --schedule soon",
       ["error", "expected five fields", ~s(got "soon")]},
      {"workflow.build --name x --description y --domain Big --steps z", ["error", "--domain"]}
    ])
  end

  @tag differs: "The author is the profile that builds it, whose rights a schedule has."
  row "9.3", "the result of workflow.build, and the author of the page", context do
    {book, folder} = builder(context)
    result = run(book, "workflow.build --name late --description x")
    path = Path.join(folder, "workflows/late.md")
    assert {result.content =~ "workflows.late", result.effects} == {true, [:skill_created]}
    assert result.metadata == %{skill_name: "workflows.late", skill_path: path}
    assert View.fetch!(Skillbook.view(book), "workflows.late").data["author"] == "default"
  end

  row "9.3", "the actions all and help are reserved", context do
    {book, _} = builder(context)

    for name <- ["all", "help"] do
      text = answer(book, "workflow.build --name #{name} --description x")
      assert text =~ "error" and text =~ name
    end
  end

  @tag differs: "The domain is workflows by default, as in the document's code, and not custom."
  row "9.2", "workflow.build without --domain", context do
    {book, folder} = builder(context)
    assert answer(book, "workflow.build --name late --description x") =~ "workflows.late"
    assert File.exists?(Path.join(folder, "workflows/late.md"))
  end

  row ["9.2", "3.2"], "the index of workflows lists what was built", context do
    {book, _} = builder(context)
    run(book, ~s(workflow.build --name late --description "Sums up what is late"))
    assert answer(book, "get_skill: workflows") =~ "| workflows.late | Sums up what is late |"
  end

  @tag differs: "The review of a week is weekly_review: it asks the user, and sends nothing."
  row "3.1", "workflows.weekly_report is not among the built-in ones", context do
    {book, _} = builder(context)
    assert answer(book, "workflows.weekly_report") =~ "error: unknown skill"
    text = answer(book, "get_skill: workflows")
    for name <- ["workflows.daily_digest", "workflows.weekly_review"], do: assert(text =~ name)
    run(book, "workflow.build --name weekly_report --description Report --steps Write.")
    assert answer(book, "workflows.weekly_report") =~ "Write."
  end

  # 10.2: the quick reference

  row "10.2", "the shortcuts run as they are written" do
    {book, _world} = office()

    check(book, [
      {~s(email.send --to a@co.com --subject "..." --body "..."), "Sent"},
      {~s(tasks.create --title "..." --priority high --due 2026-03-01), "T-"},
      {~s(tasks.search --query "..." --status overdue --priority high), "error"},
      {~s(tasks.search --query a --status overdue --priority high), ~r/no tasks|0 tasks/i},
      {~s(memory.save --content "..." --category preference), "M-"},
      {~s(memory.search --query "a"), ~r/./}
    ])
  end

  row "10.2", "the quick reference has reading and sending before deleting" do
    {book, _world} = office()
    [_, quick] = String.split(Skillbook.prompt(Skillbook.view(book)), "## Quick reference\n\n")
    [quick | _] = String.split(quick, "\n## ")
    shown = for [_, name] <- Regex.scan(~r/^  ([\w.]+)/m, quick), do: name

    for name <- ~w(email.send email.search tasks.search tasks.create calendar.list memory.save
                   memory.search),
        do: assert({name, name in shown} == {name, true}, inspect(shown))

    place = fn name -> Enum.find_index(shown, &(&1 == name)) || 1_000 end
    assert place.("tasks.search") < place.("tasks.delete")
    assert place.("email.search") < place.("email.delete")
    assert shown != Enum.sort(shown)
  end

  row "10.2", "the quick reference begins with what the profile used most on earlier days" do
    {book, _world} = office(usage: [flush: 10])
    for _ <- 1..5, do: run(book, "tasks.search --status todo")

    # The counts are written after a moment.
    counted? = fn ->
      {:ok, report} = Usage.report(View.all(book), by: :name)
      Enum.any?(report.rows, &(&1.key == "tasks.search" and &1.run == 5))
    end

    assert eventually(counted?)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    yesterday = Date.to_iso8601(Date.add(Date.utc_today(), -1)) <> "T09"
    SQL.query!(sql, "update skillbook_usage set bucket = $1", [yesterday])
    [_, quick] = String.split(Skillbook.prompt(Skillbook.view(book)), "## Quick reference\n\n")
    assert "tasks.search " <> _ = String.trim_leading(quick)
  end

  # 11: agents

  @tag differs: "The tool is the command agent.dispatch, and its flag for the id is --id."
  row "11", "an agent has a mission, skills and a context" do
    test = self()

    model =
      Model.Function.new(fn messages, _options ->
        [first | _] = messages
        replies = Enum.count(messages, &(&1.role == :assistant))

        cond do
          first.content =~ "one mission" and replies == 0 ->
            send(test, {:agent, Enum.map_join(messages, "\n", & &1.content)})
            "```cmd\ntasks.search --overdue\n```"

          first.content =~ "one mission" ->
            "Nothing is late."

          replies == 0 ->
            ~s(```cmd\nagent.dispatch --id report_sender --mission "Look what is late" ) <>
              ~s(--skills tasks.search memory.save --context "Bob is bob@company.com"\n```)

          true ->
            send(test, {:report, List.last(messages).content})
            "All done."
        end
      end)

    book = book(store: ":memory:", watch: false)
    {:ok, result} = Skillbook.Agent.run(book, "Is something late?", model: model)
    assert result.text == "All done."
    assert_received {:agent, text}
    # It knows how to write commands, and the skills of its mission only.
    for part <- [
          "Look what is late",
          "Bob is bob@company.com",
          "tasks.search",
          "memory.save",
          "```cmd",
          "get_skill"
        ],
        do: assert({part, text =~ part} == {part, true})

    refute text =~ "tasks.delete"
    assert_received {:report, report}
    assert report =~ "Nothing is late."
  end

  # 14.2 and 15

  row "14.2", "a reply with three commands gives three results, in order" do
    book = book(store: ":memory:", watch: false)

    reply = """
    I do all three.

    ```cmd
    tasks.create --title "Call Bob" --due tomorrow
    tasks.search --query Bob
    tasks.search --help
    ```
    """

    report = Skillbook.run(Skillbook.view(book), reply)
    assert report.text == "I do all three."
    assert for(r <- report.results, do: r.status) == [:ok, :ok, :help]
    assert Enum.at(report.results, 1).content =~ "Call Bob"
    assert Enum.at(report.results, 2).content =~ "## Usage"
  end

  row "14.2", "a missing flag is an error that says so" do
    book = book(store: ":memory:", watch: false)

    check(book, [
      {"tasks.create", ["error", "--title is required and missing"]},
      {"memory.save --category x", ["error", "--content is required and missing"]}
    ])
  end

  row "14.2", "an entry with a schedule runs at its time", context do
    page = """
    ---
    name: own.morning
    description: Remembers the morning
    schedule: "0 8 * * *"
    run_as: default
    ---
    ## Behavior

    ```cmd
    memory.save --content "Good morning"
    ```
    """

    folder = write(Path.join(context.tmp_dir, "s"), %{"own/morning.md" => page})
    clock = :atomics.new(1, [])
    set = fn time -> :atomics.put(clock, 1, DateTime.to_unix(time)) end
    set.(~U[2026-03-01 07:59:30Z])
    now = fn -> DateTime.from_unix!(:atomics.get(clock, 1)) end

    book = book(sources: [folder], store: ":memory:", watch: false, schedules: [clock: now])
    assert Map.has_key?(Scheduler.registered(book), "own.morning")
    set.(~U[2026-03-01 08:00:00Z])
    Scheduler.Local.tick(book)
    Scheduler.await(book)
    assert answer(book, "memory.search --query morning") =~ "Good morning"
  end

  row "15", "an alias is another name for a command", context do
    page = page("own.search", [aliases: "[st]"], "## Behavior\n\n```cmd\ntasks.search\n```\n")
    folder = write(Path.join(context.tmp_dir, "s"), %{"own/search.md" => page})
    book = book(sources: [folder], store: ":memory:", watch: false)
    assert %{status: :ok} = run(book, "st")
  end

  row "15", "a profile that delegates reads itself, and leaves writing to agents" do
    profiles = [[id: "default", writes: :delegate]]
    book = book(store: ":memory:", watch: false, profiles: profiles)

    check(book, [
      {"tasks.search", ~r/no tasks|0 tasks/i},
      {"memory.search --query a", ~r/./},
      {"tasks.create --title A", ["error", "agent.dispatch"]},
      {"memory.save --content A", ["error", "agent.dispatch"]}
    ])

    assert Skillbook.prompt(Skillbook.view(book)) =~ "agent.dispatch"
  end

  @tag differs: "Pipes do not exist; a placeholder passes the result of a command on."
  row "15", "a result is passed on by a placeholder" do
    book = book(store: ":memory:", watch: false)
    run(book, "tasks.create --title Tea")
    assert answer(book, "tasks.search | memory.save") =~ "error"

    reply = "```cmd\ntasks.search --query Tea\nmemory.save --content {last}\n```"
    assert [_, %{status: :ok}] = Skillbook.run(Skillbook.view(book), reply).results
    assert answer(book, "memory.search --query Tea") =~ "Tea"
    # The option writes decides about such a command as about any other.
    profile = Skillbook.Profile.new!(id: "p", writes: :deny)
    assert [_, %{status: :error}] = Skillbook.run(Skillbook.view(book, profile), reply).results
  end
end
