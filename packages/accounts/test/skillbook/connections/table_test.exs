defmodule Skillbook.Connections.TableTest do
  # The commands on Google's services: the methods that each calls, the scope that suffices for
  # it, and faults of the server at each of its methods.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Google
  alias Skillbook.Test.{Faults, Services}

  @moduletag timeout: 900_000
  @now ~U[2026-03-02 08:00:00Z]
  @ann "ann@example.com"
  @bob "bob@example.com"

  @seed %{
    gmail: %{
      messages: %{
        @ann => [
          %{
            from: "Bob <bob@example.com>",
            to: @ann,
            subject: "Numbers",
            text: "See the file.",
            attachments: [%{name: "n.txt", type: "text/plain", data: "1 2 3"}]
          }
        ]
      }
    },
    calendar: %{
      events: [
        %{
          id: "review1",
          calendar: @ann,
          summary: "Review",
          start: %{dateTime: "2026-03-02T10:00:00Z"},
          end: %{dateTime: "2026-03-02T11:00:00Z"}
        },
        %{
          id: "invited1",
          calendar: @bob,
          summary: "Lunch",
          attendees: [%{email: @ann}],
          start: %{dateTime: "2026-03-02T12:00:00Z"},
          end: %{dateTime: "2026-03-02T13:00:00Z"}
        }
      ]
    },
    drive: %{
      files: [
        %{id: "doc1", name: "Notes", mimeType: "application/vnd.google-apps.document", text: "A"},
        %{id: "doc2", name: "Old", permissions: [%{type: "anyone", role: "reader"}]},
        %{id: "txt1", name: "q1.txt", mimeType: "text/plain", text: "Q1: 4"},
        %{id: "dir1", name: "Plans", mimeType: "application/vnd.google-apps.folder"}
      ]
    }
  }

  # {command, lines, change, undone}: `change` is {judge, its query, a text}: a line changes the
  # number of things with this text, as Google's own client reads them, by one; `nil` for a
  # command that only reads, or whose change is the same however often it is made.
  @rows [
    {"email.archive", ["email.archive m1"], nil},
    {"email.delete", ["email.delete m1"], nil},
    {"email.download", ["email.download m1 --attachment 1 --to vault:work/"], nil},
    {"email.draft", ["email.draft --to bob@example.com --subject Plan --body Hi"],
     {"gmail.drafts", [user: @ann], "Plan"}},
    {"email.forward", ["email.forward m1 --to bob@example.com"],
     {"gmail.messages", [user: @ann, q: "in:sent"], "Fwd: Numbers"}},
    {"email.label", ["email.label m1 --add starred", "email.label m1 --add Work --create"], nil},
    {"email.read", ["email.read m1", "email.read m1 --attachment 1"], nil},
    {"email.search", ["email.search --unread --after yesterday --limit 5"], nil},
    {"email.send", ["email.send --to bob@example.com --subject Plan --body Hi"],
     {"gmail.messages", [user: @bob], "Plan"}},
    {"calendar.calendars", ["calendar.calendars"], nil},
    {"calendar.create", [~s(calendar.create --title Plan --start "tuesday 9:00")],
     {"calendar.events", [user: @ann], "Plan"}},
    {"calendar.delete", ["calendar.delete review1"], nil},
    {"calendar.free", ["calendar.free --attendees bob@example.com --date tomorrow"], nil},
    {"calendar.get", ["calendar.get review1"], nil},
    {"calendar.invite",
     [~s(calendar.invite --title Plan --start "tuesday 9:00" --attendees bob@example.com)],
     {"calendar.events", [user: @bob], "Plan"}},
    {"calendar.list", ["calendar.list --date today"], nil},
    {"calendar.answer", ["calendar.answer invited1 --response accept"], nil},
    {"calendar.update", ["calendar.update review1 --location Berlin"], nil},
    {"drive.create",
     [
       ~s(drive.create Plan --content "# Plan"),
       "drive.create Plan --type folder",
       "drive.create Plan --file vault:work/plan.txt"
     ], {"drive.files", [user: @ann], "Plan"}},
    {"drive.download",
     ["drive.download txt1 --to vault:work/", "drive.download doc1 --to vault:work/"], nil},
    {"drive.list", ["drive.list", "drive.list Plans"], nil},
    {"drive.read", ["drive.read doc1", "drive.read txt1"], nil},
    {"drive.search", ["drive.search Q1"], nil},
    {"drive.share", ["drive.share doc1 --to bob@example.com"],
     {"drive.permissions", [user: @ann, id: "doc1"], @bob}},
    {"drive.access", ["drive.access doc2"], nil},
    {"drive.unshare", ["drive.unshare doc2 --anyone"], nil},
    {"drive.trash", ["drive.trash doc1"], nil},
    {"drive.update",
     [
       "drive.update doc1 --name Minutes",
       "drive.update doc1 --folder Plans",
       "drive.update txt1 --file vault:work/plan.txt"
     ], nil}
  ]

  # {name, fault, the result of a command that reads, and of one that writes}. A command that
  # writes may fail where the vendor leaves open whether the change was made.
  @faults [
    {"429", [status: 429, reason: "rateLimitExceeded", retry_after: 0], :ok, :ok},
    {"403 rateLimitExceeded", [status: 403, reason: "rateLimitExceeded", retry_after: 0], :ok,
     :ok},
    {"403 userRateLimitExceeded", [status: 403, reason: "userRateLimitExceeded"], :ok, :ok},
    {"401", [status: 401, reason: "authError"], :ok, :ok},
    {"503", [status: 503, reason: "backendError"], :ok, :any},
    {"500 after the change", [status: 500, reason: "backendError", applied: true], :ok, :any},
    {"no answer", [cut: 0], :ok, :any},
    {"no answer after the change", [cut: 0, applied: true], :ok, :any},
    {"a part of an answer", [cut: 95, applied: true], :ok, :any},
    {"HTML in place of JSON", [body: "<html>Sign in</html>", applied: true], :any, :any},
    {"429 without end", [status: 429, reason: "rateLimitExceeded", times: nil], :error, :error},
    {"429 with Retry-After of an hour",
     [status: 429, reason: "rateLimitExceeded", retry_after: 3600, times: nil], :error, :error},
    {"503 without end", [status: 503, reason: "backendError", times: nil], :error, :error},
    {"silence", [silent: true, times: nil], :error, :error},
    {"403 insufficientPermissions", [status: 403, reason: "insufficientPermissions", times: nil],
     :error, :error},
    {"403 quotaExceeded", [status: 403, reason: "quotaExceeded", times: nil], :error, :error},
    {"400", [status: 400, reason: "badRequest", times: nil], :error, :error},
    {"404", [status: 404, reason: "notFound", times: nil], :error, :error}
  ]

  # A mail that is gone before it is read is left out; a folder is looked for by its name, too; a
  # permission that is gone is taken away.
  @not_found [
    {"drive.unshare doc2 --anyone", "drive.permissions.delete"},
    {"email.search --unread --after yesterday --limit 5", "gmail.users.messages.get"},
    {"drive.list Plans", "drive.files.get"}
  ]

  @signed ~w(email.send calendar.list drive.read)
  @table Skillbook.Test.Checkout.path("docs/connections-reference.md")

  test "the table of the docs: each command, the vendor's methods, the scope that suffices" do
    pages = Path.wildcard("priv/connections/{email,calendar,drive}/*.md")
    names = for page <- pages, Path.basename(page) != "SKILL.md", do: name(page)
    assert Enum.sort(for {command, _, _} <- @rows, do: command) == Enum.sort(names)

    rows = for {command, lines, _change} <- @rows, do: row(command, methods(command, lines))
    docs = File.read!(@table)
    written = for "| `" <> _ = line <- String.split(docs, "\n"), do: line
    assert Enum.sort(written) == Enum.sort(rows)

    Faults.named!(@faults, docs)
  end

  defp name(page), do: page |> Path.rootname() |> Path.split() |> Enum.take(-2) |> Enum.join(".")

  # The methods of a command that may use only its first scope.
  defp methods(command, lines) do
    [least | _] = Google.scopes(command)

    entries =
      Faults.methods(lines, fn line ->
        world = Services.make(Map.put(@seed, :delegated, [least]))
        {world, run(world, line)}
      end)

    Enum.reject(entries, &(&1["method"] == "oauth.token"))
  end

  defp row(command, entries) do
    names = entries |> Enum.map(& &1["method"]) |> Enum.sort() |> Faults.names()
    scope = command |> Google.scopes() |> hd() |> String.split("/") |> List.last()
    "| `#{command}` | #{names} | `#{scope}` |"
  end

  test "each fault at each method: no command hangs, crashes, or makes a change twice" do
    runs = Faults.runs(@rows, @faults, &methods/2, &expected/2)

    # The authorization server fails in the same ways, before there is a token.
    rows =
      for {command, [line | _], change} <- @rows,
          command in @signed,
          do: {command, [line], change}

    token = fn _command, _line -> [%{"method" => "oauth.token"}] end
    endless = fn run, _usual -> if Keyword.has_key?(run.fault, :times), do: :error, else: :any end
    tokens = Faults.runs(rows, @faults, token, endless)

    no_advice = fn %{name: name, method: method}, result ->
      [
        {name == "403 insufficientPermissions" and method != "oauth.token" and
           not (result.content =~ "allow it in the delegation of the domain"), "no next step"}
      ]
    end

    Faults.check(runs ++ tokens,
      world: fn -> Services.make(@seed) end,
      run: &fault/3,
      wrong: no_advice
    )

    assert length(runs) > 500
  end

  defp expected(%{name: "404", line: line, method: method}, _usual)
       when {line, method} in @not_found,
       do: :ok

  defp expected(_run, usual), do: usual

  defp fault(world, %{line: line, method: method, fault: fault}, limit) do
    Services.fault(world, [method: method] ++ fault)
    run(world, line, limit)
  end

  defp run(world, line, limit \\ 30_000) do
    book = :"table_#{System.unique_integer([:positive])}"
    folder = Path.join(System.tmp_dir!(), "skillbook_#{book}_#{System.pid()}")
    File.mkdir_p!(folder)
    File.write!(Path.join(folder, "plan.txt"), "Beans")
    vaults = if line =~ "vault:", do: [[path: folder, name: "work", files: true]], else: []

    {:ok, pid} =
      Skillbook.start_link(
        name: book,
        builtins: [:google],
        store: ":memory:",
        watch: false,
        vaults: vaults,
        profiles: [[id: "ann", approved: ["*"]]],
        connections: [google: Services.google(world)]
      )

    options = [now: @now, timeout: limit]
    view = Skillbook.view(book, "ann")
    %{results: [result]} = Skillbook.run(view, "```cmd\n#{line}\n```", options)
    Supervisor.stop(pid)
    # A command that fails leaves no file.
    if result.status == :error, do: ["plan.txt"] = File.ls!(folder)
    File.rm_rf!(folder)
    result
  end
end
