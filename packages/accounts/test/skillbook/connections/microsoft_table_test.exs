defmodule Skillbook.Connections.MicrosoftTableTest do
  # The commands on Microsoft's services: the requests that each sends, the scope that suffices
  # for it, and faults of the server at each of them. A person signs in for each run, with that
  # scope.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Microsoft
  alias Skillbook.Test.Connections, as: SignIns
  alias Skillbook.Test.{Faults, Services}

  @moduletag timeout: 900_000
  @now ~U[2026-03-02 08:00:00Z]
  @ann "ann@example.com"
  @bob "bob@example.com"

  @mail "AAkAL-1="

  @seed %{
    clients: [%{id: "app", redirects: ["http://127.0.0.1"]}],
    outlook: %{
      folders: %{@ann => ["Projects"]},
      messages: %{
        @ann => [
          %{
            from: "Bob <bob@example.com>",
            to: @ann,
            subject: "Numbers",
            text: "See the file.",
            attachments: [%{name: "n.txt", type: "text/plain", data: "1 2 3"}]
          },
          %{subject: "Old", folder: "Projects", categories: ["Work"]}
        ]
      }
    },
    onedrive: %{
      files: [
        %{id: "DIR1", name: "Plans", type: nil},
        %{id: "TXT1", name: "q1.txt", text: "Q1: 4"},
        %{id: "DOC1", name: "Plan.docx", type: "application/zip", text: "PK"},
        %{
          id: "TXT2",
          name: "open.txt",
          text: "x",
          permissions: [%{roles: ["read"], link: %{type: "view", scope: "anonymous"}}]
        }
      ]
    },
    outlook_calendar: %{
      events: %{
        @ann => [
          %{
            id: "AAkAE-review=",
            subject: "Review",
            start: %{dateTime: "2026-03-02T10:00:00", timeZone: "UTC"},
            end: %{dateTime: "2026-03-02T11:00:00", timeZone: "UTC"},
            attachments: [%{name: "n.txt", type: "text/plain", text: "1 2 3"}]
          },
          %{
            id: "AAkAE-invited=",
            subject: "Invited",
            start: %{dateTime: "2026-03-03T10:00:00", timeZone: "UTC"},
            end: %{dateTime: "2026-03-03T11:00:00", timeZone: "UTC"},
            from: @bob,
            attachments: [%{name: "n.txt", type: "text/plain", text: "1 2 3"}],
            attendees: [%{emailAddress: %{address: @ann}}]
          }
        ]
      }
    }
  }

  @event "AAkAE-review="
  @invited "AAkAE-invited="

  # {command, lines, change}: `change` is {judge, its query, a text}: a line changes the number of
  # things with this text by one; `nil` for a command that only reads, or whose change is the same
  # however often it is made.
  @rows [
    {"email.archive", ["email.archive #{@mail}"], nil},
    {"email.delete", ["email.delete #{@mail}"], nil},
    {"email.download", ["email.download #{@mail} --attachment 1 --to vault:work/"], nil},
    {"email.draft", ["email.draft --to bob@example.com --subject Plan --body Hi"],
     {"outlook.messages", [user: @ann], "Plan"}},
    {"email.forward", ["email.forward #{@mail} --to bob@example.com"],
     {"outlook.messages", [user: @bob], "Fwd: Numbers"}},
    {"email.label",
     [
       "email.label #{@mail} --add starred",
       "email.label #{@mail} --add Projects",
       "email.label #{@mail} --add New --create"
     ], nil},
    {"email.read", ["email.read #{@mail}", "email.read #{@mail} --attachment 1"], nil},
    {"email.search",
     ["email.search --unread --after yesterday --limit 5", "email.search --label Projects"], nil},
    {"email.send", ["email.send --to bob@example.com --subject Plan --body Hi"],
     {"outlook.messages", [user: @bob], "Plan"}},
    {"calendar.answer",
     [
       "calendar.answer #{@invited} --response accept --comment Yes",
       "calendar.answer #{@invited} --response decline",
       "calendar.answer #{@invited} --response tentative --notify none"
     ], nil},
    {"calendar.calendars", ["calendar.calendars"], nil},
    {"calendar.create", [~s(calendar.create --title Plan --start "tuesday 9:00")],
     {"outlook.events", [user: @ann], "Plan"}},
    {"calendar.delete", ["calendar.delete #{@event}"], nil},
    {"calendar.free", ["calendar.free --attendees bob@example.com --date tomorrow"], nil},
    {"calendar.get", ["calendar.get #{@event}", "calendar.get #{@event} --attachment 1"], nil},
    {"calendar.invite",
     [~s(calendar.invite --title Plan --start "tuesday 9:00" --attendees bob@example.com)],
     {"outlook.events", [user: @bob], "Plan"}},
    {"calendar.list", ["calendar.list --date today"], nil},
    {"calendar.update", ["calendar.update #{@event} --location Berlin"], nil},
    {"drive.create",
     [
       ~s(drive.create Plan --content "# Plan"),
       "drive.create Plan --type folder",
       "drive.create Plan --file vault:work/plan.txt",
       "drive.create Large --file vault:work/large.bin"
     ], {"onedrive.files", [user: @ann], "Plan.md"}},
    {"drive.download",
     ["drive.download TXT1 --to vault:work/", "drive.download DOC1 --to vault:work/plan.pdf"],
     nil},
    {"drive.list", ["drive.list", "drive.list Plans"], nil},
    {"drive.read", ["drive.read TXT1"], nil},
    {"drive.search", ["drive.search Q1", "drive.search --type folder"], nil},
    {"drive.share", ["drive.share TXT1 --to bob@example.com", "drive.share TXT1 --anyone"], nil},
    {"drive.access", ["drive.access TXT2"], nil},
    {"drive.unshare", ["drive.unshare TXT2 --anyone"], nil},
    {"drive.trash", ["drive.trash TXT1"], nil},
    {"drive.update",
     [
       "drive.update TXT1 --name q2.txt --folder Plans",
       ~s(drive.update TXT1 --content "Q1: 5" --revision c:.TXT1.1),
       "drive.update TXT1 --file vault:work/plan.txt",
       "drive.update TXT1 --file vault:work/large.bin"
     ], nil}
  ]

  # {name, fault, the result of a command that reads, and of one that writes}. A command that
  # writes may fail where Microsoft leaves open whether the change was made.
  @faults [
    {"429", [status: 429, reason: "TooManyRequests", retry_after: 0], :ok, :ok},
    {"503 activityLimitReached", [status: 503, reason: "activityLimitReached", retry_after: 0],
     :ok, :ok},
    {"401", [status: 401, reason: "InvalidAuthenticationToken"], :ok, :ok},
    {"503", [status: 503, reason: "serviceNotAvailable"], :ok, :any},
    {"500 after the change", [status: 500, reason: "generalException", applied: true], :ok, :any},
    {"no answer", [cut: 0], :ok, :any},
    {"no answer after the change", [cut: 0, applied: true], :ok, :any},
    {"a part of an answer", [cut: 95, applied: true], :ok, :any},
    {"HTML in place of JSON", [body: "<html>Sign in</html>", applied: true], :any, :any},
    {"429 without end", [status: 429, reason: "TooManyRequests", times: nil], :error, :error},
    {"429 with Retry-After of an hour",
     [status: 429, reason: "TooManyRequests", retry_after: 3600, times: nil], :error, :error},
    {"503 without end", [status: 503, reason: "serviceNotAvailable", times: nil], :error, :error},
    {"silence", [silent: true, times: nil], :error, :error},
    {"403 ErrorAccessDenied", [status: 403, reason: "ErrorAccessDenied", times: nil], :error,
     :error},
    {"507 insufficientStorage", [status: 507, reason: "insufficientStorage", times: nil], :error,
     :error},
    {"400", [status: 400, reason: "BadRequest", times: nil], :error, :error},
    {"404", [status: 404, reason: "ErrorItemNotFound", times: nil], :error, :error}
  ]

  # A folder that a mailbox does not have is left out; a file or a permission that is gone is
  # deleted.
  @not_found [
    "GET /me/mailFolders/{id}",
    "DELETE /me/drive/items/{id}",
    "DELETE /me/drive/items/{id}/permissions/{id}"
  ]

  @table Skillbook.Test.Checkout.path("docs/microsoft.md")

  test "the table of the docs: each command, the requests, the scope that suffices" do
    assert Enum.sort(for {command, _, _} <- @rows, do: command) ==
             Enum.sort(Map.keys(Microsoft.commands()))

    rows = for {command, lines, _change} <- @rows, do: row(command, methods(command, lines))
    docs = File.read!(@table)
    written = for "| `" <> _ = line <- String.split(docs, "\n"), line =~ "/me", do: line
    assert Enum.sort(written) == Enum.sort(rows)

    Faults.named!(@faults, docs)
  end

  # The requests of a command that may use only its first scope.
  defp methods(command, lines) do
    entries =
      Faults.methods(lines, fn line ->
        world = Services.make(@seed)
        {world, run(world, command, line)}
      end)

    Enum.reject(entries, &String.starts_with?(&1["method"], "microsoft."))
  end

  defp row(command, entries) do
    names = entries |> Enum.map(& &1["method"]) |> Enum.sort() |> Faults.names()
    scopes = command |> Microsoft.scopes() |> hd() |> String.replace(" ", "`, `")
    "| `#{command}` | #{names} | `#{scopes}` |"
  end

  test "each fault at each request: no command hangs, crashes, or makes a change twice" do
    runs = Faults.runs(@rows, @faults, &methods/2, &expected/2)

    signed = ["email.send", "email.read"]

    rows =
      for {command, [line | _], change} <- @rows, command in signed, do: {command, [line], change}

    token = fn _command, _line -> [%{"method" => "microsoft.token"}] end
    tokens = Faults.runs(rows, @faults, token, fn _run, _usual -> :any end)
    Faults.check(runs ++ tokens, world: fn -> Services.make(@seed) end, run: &with_fault/3)
    assert length(runs) > 300
  end

  defp expected(%{command: command, method: method, name: name}, usual) do
    cond do
      name == "404" and method in @not_found ->
        :ok

      # The address of an upload is the permission, so no other token helps.
      name == "401" and String.starts_with?(method, "onedrive.upload") ->
        :error

      # A folder is looked for by its name, too.
      name == "404" and {command, method} == {"drive.list", "GET /me/drive/items/{id}"} ->
        :any

      # The zone of a mailbox that has no schedules, such as a personal one, is not known.
      method == "POST /me/calendar/getSchedule" and command != "calendar.free" and
          name in ["403 ErrorAccessDenied", "400", "404"] ->
        :ok

      # The mail is sent, and only its id is not known.
      command == "email.forward" and method == "GET /me/mailFolders/{id}/messages" ->
        :any

      true ->
        usual
    end
  end

  defp with_fault(world, %{command: command, line: line, method: method, fault: fault}, limit),
    do: run(world, command, line, limit, [method: method] ++ fault)

  defp run(world, command, line, limit \\ 30_000, fault \\ nil) do
    book = :"microsoft_#{System.unique_integer([:positive])}"
    folder = Path.join(System.tmp_dir!(), "skillbook_#{book}_#{System.pid()}")
    File.mkdir_p!(folder)
    File.write!(Path.join(folder, "plan.txt"), "Plan")
    # Sent in a session.
    if line =~ "large.bin",
      do: File.write!(Path.join(folder, "large.bin"), String.duplicate("x", 4 * 1024 * 1024 + 1))

    vaults = if line =~ "vault:", do: [[path: folder, name: "work", files: true]], else: []

    {:ok, pid} =
      Skillbook.start_link(
        name: book,
        watch: false,
        builtins: [:microsoft],
        store: ":memory:",
        vaults: vaults,
        profiles: [[id: "ann", approved: ["*"]]],
        connections: [
          key: &SignIns.key/0,
          microsoft: [vendor: :microsoft, url: world.url, client_id: "app"]
        ]
      )

    {:ok, connection} = SignIns.connect(book, :microsoft, profile: "ann", for: [command])
    # Nothing else was asked for.
    assert connection.scopes -- ~w(openid profile email) ==
             command |> Microsoft.scopes() |> hd() |> String.split()

    if fault, do: fault(world, book, fault)
    options = [now: @now, timeout: limit]
    report = Skillbook.run(Skillbook.view(book, "ann"), "```cmd\n#{line}\n```", options)
    Supervisor.stop(pid)
    File.rm_rf!(folder)
    [result] = report.results
    result
  end

  # The authorization server fails when the token is renewed.
  defp fault(world, book, [{:method, "microsoft." <> _} | _] = fault) do
    SignIns.expire(book)
    Services.fault(world, fault)
  end

  defp fault(world, _book, fault), do: Services.fault(world, fault)
end
