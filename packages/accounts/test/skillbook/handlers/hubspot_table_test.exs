defmodule Skillbook.Handlers.HubSpotTableTest do
  # HubSpot's commands: the methods that each calls, the scope that suffices for it, and faults of
  # the server at each of its methods.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.HubSpot
  alias Skillbook.Test.{Faults, Services}

  @moduletag timeout: 900_000
  @token "pat-1"

  @seed %{
    contacts: [%{id: "101", properties: %{email: "ann@acme.example", firstname: "Ann"}}],
    companies: [%{id: "55", properties: %{name: "Acme", domain: "acme.example"}}],
    deals: [
      %{id: "301", properties: %{dealname: "Old", pipeline: "default", dealstage: "contractsent"}}
    ],
    notes: [
      %{id: "901", properties: %{hs_note_body: "Old", hs_timestamp: "2026-02-10T09:00:00Z"}}
    ],
    tasks: [
      %{id: "801", properties: %{hs_task_subject: "Old", hs_timestamp: "2026-02-16T12:00:00Z"}}
    ],
    tickets: [
      %{id: "401", properties: %{subject: "Old", hs_pipeline: "0", hs_pipeline_stage: "1"}}
    ],
    calls: [
      %{id: "951", properties: %{hs_call_title: "Old", hs_timestamp: "2026-02-16T12:00:00Z"}}
    ],
    meetings: [
      %{id: "971", properties: %{hs_meeting_title: "Old", hs_timestamp: "2026-02-16T12:00:00Z"}}
    ],
    labels: [%{from: "deals", to: "contacts", id: 17, label: "Buyer"}]
  }

  # {command, lines, kind}: a line of a command that adds something adds one record of this kind.
  @rows [
    {"hubspot.contacts",
     [
       "hubspot.contacts ann --where city=",
       "hubspot.contacts --id 101",
       "hubspot.contacts --id 101 102"
     ], nil},
    {"hubspot.create_contact",
     ["hubspot.create_contact --email new@x.example --set city=Rome --associate company:55"],
     "contacts"},
    {"hubspot.update_contact",
     ["hubspot.update_contact 101 --set city=Rome --associate company:55"], nil},
    {"hubspot.companies",
     [
       "hubspot.companies acme --properties website",
       "hubspot.companies --id 55",
       "hubspot.companies --id 55 56"
     ], nil},
    {"hubspot.create_company", ["hubspot.create_company --name New --set city=Rome"],
     "companies"},
    {"hubspot.update_company", ["hubspot.update_company 55 --clear city --associate contact:101"],
     nil},
    {"hubspot.deals",
     [
       ~s(hubspot.deals old --stage "contract sent" --sort amount),
       "hubspot.deals --id 301",
       "hubspot.deals --id 301 302"
     ], nil},
    {"hubspot.create_deal",
     ["hubspot.create_deal --name New --set description=x --associate contact:101:buyer"],
     "deals"},
    {"hubspot.update_deal",
     [
       ~s(hubspot.update_deal 301 --stage "closed won" --set description=x ) <>
         "--associate contact:101:buyer company:55"
     ], nil},
    {"hubspot.notes",
     [
       "hubspot.notes old --properties hs_createdate",
       "hubspot.notes --id 901",
       "hubspot.notes --id 901 902"
     ], nil},
    {"hubspot.create_note",
     ["hubspot.create_note --body New --set hubspot_owner_id= --associate contact:101"], "notes"},
    {"hubspot.update_note",
     ["hubspot.update_note 901 --body New --set hubspot_owner_id= --associate contact:101"], nil},
    {"hubspot.tasks",
     [
       "hubspot.tasks old --where hs_timestamp<today",
       "hubspot.tasks --id 801",
       "hubspot.tasks --id 801 802"
     ], nil},
    {"hubspot.create_task",
     ["hubspot.create_task --title New --set hubspot_owner_id= --associate contact:101"],
     "tasks"},
    {"hubspot.update_task",
     ["hubspot.update_task 801 --status waiting --set hubspot_owner_id= --associate contact:101"],
     nil},
    {"hubspot.tickets",
     [
       "hubspot.tickets old --stage new --sort createdate",
       "hubspot.tickets --id 401",
       "hubspot.tickets --id 401 402"
     ], nil},
    {"hubspot.create_ticket",
     ["hubspot.create_ticket --title New --set source_type=x --associate contact:101"],
     "tickets"},
    {"hubspot.update_ticket",
     ["hubspot.update_ticket 401 --stage closed --set source_type=x --associate contact:101"],
     nil},
    {"hubspot.calls",
     [
       "hubspot.calls old --where hs_timestamp<today",
       "hubspot.calls --id 951",
       "hubspot.calls --id 951 952"
     ], nil},
    {"hubspot.create_call",
     ["hubspot.create_call --title New --set hubspot_owner_id= --associate contact:101"],
     "calls"},
    {"hubspot.update_call",
     ["hubspot.update_call 951 --status busy --set hubspot_owner_id= --associate contact:101"],
     nil},
    {"hubspot.meetings",
     [
       "hubspot.meetings old --where hs_timestamp<today",
       "hubspot.meetings --id 971",
       "hubspot.meetings --id 971 972"
     ], nil},
    {"hubspot.create_meeting",
     [
       "hubspot.create_meeting --title New --start 2026-02-16T15:00:00Z " <>
         "--set hubspot_owner_id= --associate contact:101"
     ], "meetings"},
    {"hubspot.update_meeting",
     [
       "hubspot.update_meeting 971 --outcome no_show --set hubspot_owner_id= " <>
         "--associate contact:101"
     ], nil}
  ]

  # {name, fault, the result of a command that reads, and of one that writes}.
  @faults [
    {"429 SECONDLY", [status: 429, reason: "SECONDLY", retry_after: 0], :ok, :ok},
    {"423", [status: 423, reason: "LOCKED", retry_after: 0], :ok, :ok},
    {"477", [status: 477, reason: "MIGRATION", retry_after: 0], :ok, :ok},
    {"502", [status: 502], :ok, :any},
    {"503", [status: 503], :ok, :any},
    {"504 after the change", [status: 504, applied: true], :ok, :any},
    {"524", [status: 524], :ok, :any},
    {"no answer", [cut: 0], :ok, :any},
    {"no answer after the change", [cut: 0, applied: true], :ok, :any},
    {"a part of an answer", [cut: 95, applied: true], :ok, :any},
    {"HTML in place of JSON", [body: "<html>Sign in</html>", applied: true], :any, :any},
    {"429 without end", [status: 429, reason: "TEN_SECONDLY_ROLLING", times: nil], :error,
     :error},
    {"429 with Retry-After of an hour",
     [status: 429, reason: "SECONDLY", retry_after: 3600, times: nil], :error, :error},
    {"503 without end", [status: 503, times: nil], :error, :error},
    {"silence", [silent: true, times: nil], :error, :error},
    {"429 DAILY", [status: 429, reason: "DAILY", times: nil], :error, :error},
    {"401", [status: 401, reason: "EXPIRED_AUTHENTICATION", times: nil], :error, :error},
    {"403 MISSING_SCOPES", [status: 403, reason: "MISSING_SCOPES", times: nil], :error, :error},
    {"400", [status: 400, reason: "VALIDATION_ERROR", times: nil], :error, :error},
    {"404", [status: 404, reason: "OBJECT_NOT_FOUND", times: nil], :error, :error},
    {"409", [status: 409, reason: "CONFLICT", times: nil], :error, :error}
  ]

  test "the table of the docs: each command, HubSpot's methods, the scope that suffices" do
    pages = Path.wildcard("priv/connections/hubspot/*.md")
    names = for page <- pages, Path.basename(page) != "SKILL.md", do: Path.basename(page, ".md")
    commands = for {command, _, _} <- @rows, do: command
    assert Enum.sort(commands) == names |> Enum.map(&("hubspot." <> &1)) |> Enum.sort()
    assert Enum.sort(Map.keys(HubSpot.commands())) == Enum.sort(commands)

    rows = for {command, lines, _kind} <- @rows, do: row(command, methods(command, lines))
    docs = Skillbook.Test.Checkout.read!("docs/hubspot.md")
    written = for "| `hubspot." <> _ = line <- String.split(docs, "\n"), do: line
    assert Enum.sort(written) == Enum.sort(rows)
    Faults.named!(@faults, docs)
  end

  # A stage is one of the deal's own pipeline, which is read first.
  defp scopes("hubspot.update_deal" = command),
    do: HubSpot.commands()[command] ++ ["crm.objects.deals.read"]

  defp scopes(command), do: HubSpot.commands()[command]

  defp row(command, entries) do
    methods = entries |> Enum.map(& &1["method"]) |> Enum.sort() |> Faults.names()
    "| `#{command}` | #{methods} | #{Faults.names(scopes(command))} |"
  end

  # The methods of a command that has these scopes and no other.
  defp methods(command, lines) do
    Faults.methods(lines, fn line ->
      world = world(scopes(command))
      {world, run(world, line)}
    end)
  end

  test "each fault at each method: no command hangs, crashes, or makes a change twice" do
    rows =
      for {command, lines, kind} <- @rows,
          do: {command, lines, kind && {"hubspot." <> kind, [], ""}}

    runs = Faults.runs(rows, @faults, &methods/2, &expected/2)
    no_secret = fn _run, result -> [{result.content =~ @token, "the token"}] end
    options = [world: fn -> world("all") end, run: &fault/3, short: 8_000, wrong: no_secret]
    Faults.check(runs, options)

    assert length(runs) > 500
  end

  # Labels are left out if they cannot be read.
  defp expected(%{method: "hubspot.pipelines.get_all", fault: fault}, usual),
    do: if(Keyword.has_key?(fault, :times), do: :any, else: usual)

  defp expected(_run, usual), do: usual

  defp fault(world, %{line: line, method: method, fault: fault}, limit) do
    Services.fault(world, [method: method] ++ fault)
    run(world, line, limit)
  end

  defp world(scopes), do: Services.make(hubspot_tokens: %{@token => scopes}, hubspot: @seed)

  defp run(world, line, limit \\ 30_000) do
    book = :"hubspot_table_#{System.unique_integer([:positive])}"
    account = [token: fn -> @token end, url: world.url]

    {:ok, pid} =
      Skillbook.start_link(
        name: book,
        watch: false,
        builtins: [:hubspot],
        connections: [hubspot: account]
      )

    view = Skillbook.view(book, "default")
    report = Skillbook.run(view, "```cmd\n#{line}\n```", timeout: limit)
    Supervisor.stop(pid)
    [result] = report.results
    result
  end
end
