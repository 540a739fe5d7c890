defmodule Skillbook.CLI.OptionsTest do
  # Each option of a book counts in each subcommand: it shows an entry there, or hides one.
  # Not async: the command line has one book, and these tests change the current folder.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.CLI.{Arguments, Session}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{Checkout, HostileServer}
  alias Skillbook.{Store, View}

  @moduletag :tmp_dir
  @moduletag :capture_log
  @moduletag timeout: 900_000

  # An option, and the entry that it shows or hides. A domain for each, so that a prompt has it.
  @options [
    dir: {["--dir", "more"], :shows, "extra.probe"},
    mcp: {:mcp, :shows, "docs.search"},
    vault: {["--vault", "notes"], :shows, "markdown.read"},
    db: {["--db", "other.db"], :shows, "stored-probe"},
    profile: {["--profile", "ann"], :hides, "banned.probe"},
    grant: {["--grant", "inner"], :shows, "hidden.probe"},
    builtins: {["--no-builtins"], :hides, "tasks.get"},
    pack: {["--no-builtins", "--pack", "memory"], :shows, "memory.search"}
  ]

  # Models are not offered it without an account, so most subcommands do not show it.
  @account {:account, {["--pack", "email"], :shows, "email.read"}}

  # The rows of each subcommand that differ, with the reason.
  @others %{
    # The store has no commands.
    "grammar" => [:db],
    # Notes are searched instead; the test of `search --vault` has them.
    "search" => [:vault],
    # It starts no book. All built-in commands are known to it, also those of a vault.
    "lint" => [:mcp, :db, :vault]
  }

  # These show no entries, or only to clients. They start their book in the same way, in a mode of
  # `Session`, unless they work with the folder of installed skills.
  @without_entries ~w(usage schedule breaker approvals runs servers serve mcp token connect
                      disconnect connections install update outdated restore remove import
                      completions init new)

  setup context do
    folder = context.tmp_dir
    echo = [handler: "Skillbook.Test.EchoHandler"]

    write(folder, %{
      "skills/own/probe.md" => page("own.probe", echo),
      "skills/hidden/probe.md" => page("hidden.probe", echo ++ [visibility_labels: "[inner]"]),
      "skills/banned/probe.md" =>
        page("banned.probe", echo ++ [exclude_from_prompt_profile_ids: "[ann]"]),
      "more/extra/probe.md" => page("extra.probe", echo),
      "notes/a.md" => "# A\n\nA note.\n"
    })

    File.cd!(folder, fn ->
      name = book(store: "other.db", builtins: false, watch: false)
      probe = %{title: "stored-probe", kind: :skill, description: "A probe", content: "Text."}
      {:ok, _} = Store.create(View.all(name), probe)
      stop_supervised!(name)
    end)

    :ok
  end

  # A server whose offers are approved, in the lock file and in the database.
  defp server(folder) do
    option = ["--mcp", "docs=#{HostileServer.start()}/honest"]

    File.cd!(folder, fn ->
      approve = option ++ ["servers", "--approve-all", "docs"]
      {_output, 0, _errors} = run_cli(approve)
      {_output, 0, _errors} = run_cli(["run", "-c", "tasks.search"])
      {_output, 0, _errors} = run_cli(approve)
    end)

    option
  end

  defp given(:mcp, server), do: server
  defp given(option, _server), do: option

  test "each option counts in each subcommand that shows entries", %{tmp_dir: folder} do
    server = server(folder)
    commands = for {name, _module} <- Arguments.commands(), name not in @without_entries, do: name

    for command <- commands,
        {option, {given, effect, name}} <- @options,
        option not in Map.get(@others, command, []) do
      shown? = File.cd!(folder, fn -> shown?(command, given(given, server), name) end)
      assert {command, option, shown?} == {command, option, effect == :shows}
    end

    # Without an option it is the other way round. `--pack` needs another one for that.
    for {option, {_given, effect, name}} <- @options, option != :pack do
      shown? = File.cd!(folder, fn -> shown?("list", [], name) end)
      assert {option, shown?} == {option, effect == :hides}
    end
  end

  test "each option counts in a book of each mode", %{tmp_dir: folder} do
    server = server(folder)
    modes = [:read, :write, :converse, :web, {:decide, nil}, {:serve, nil}]

    for mode <- modes, {option, {given, effect, name}} <- [@account | @options] do
      {:ok, options} =
        File.cd!(folder, fn -> Arguments.parse(given(given, server) ++ ["list"]) end)

      # The folder of databases and vaults.
      shown? =
        File.cd!(folder, fn ->
          Session.with_book(options, mode, fn book ->
            view = Session.view(book, options)
            {:named, View.named?(view, name)}
          end)
        end)

      assert {mode, option, shown?} == {mode, option, {:named, effect == :shows}}
    end
  end

  test "no subcommand starts a book of its own" do
    for path <- Checkout.sources("skillbook/cli/**/*.ex"),
        Checkout.read!(path) =~ ~r/(Skillbook|Book)\.start_link/,
        do: assert(path == "packages/cli/lib/skillbook/cli/session.ex")
  end

  # Whether a subcommand shows an entry.

  defp shown?("get", options, name), do: succeeds?(options ++ ["get", name])
  defp shown?("run", options, name), do: succeeds?(options ++ ["run", "-c", "get_skill: #{name}"])

  defp shown?(command, options, name) when command in ~w(export publish) do
    to = "out-#{System.unique_integer([:positive])}"
    {_output, _status, errors} = run_cli(options ++ [command, name, "--to", to])
    # Tools of servers are there, and have no page to export.
    not (errors =~ "unknown skill")
  end

  defp shown?("list", options, name), do: name in names(options ++ ["list", "--json"])

  defp shown?("search", options, name),
    do: name in names(options ++ ["search", name, "--limit", "1000", "--json"])

  # A tool may have another name.
  defp shown?("tools", options, name) do
    {output, 0, _errors} = run_cli(options ++ ["tools", "--names", name, "--shape", "mcp"])
    {:ok, tools} = JSON.decode(output)
    tools?(tools)
  end

  defp shown?("grammar", options, name) do
    {output, 0, _errors} = run_cli(options ++ ["grammar", "--names", name])
    output =~ ~s(::= "#{name}")
  end

  defp shown?("prompt", options, name), do: prompted?(run_cli(options ++ ["prompt"]), name)

  defp shown?("chat", options, name) do
    chat = ["chat", "--url", "http://127.0.0.1:9", "--model", "m"]
    prompted?(run_cli(":prompt\n", options ++ chat), name)
  end

  defp shown?("explain", options, name) do
    {output, _status, _errors} = run_cli(options ++ ["explain", name])
    output =~ "  used as `#{name}`" and not (output =~ "  hidden from `")
  end

  defp shown?("route", options, name) do
    {output, 0, _errors} = run_cli(options ++ ["route", name, "--json"])
    {:ok, report} = JSON.decode(output)
    name in for(stage <- report["stages"], found <- stage["candidates"], do: found["name"])
  end

  defp shown?("shell", options, name) do
    {_output, status, _errors} = run_cli("get_skill: #{name}\n", options ++ ["shell"])
    status == 0
  end

  # A page with examples competes with all entries.
  defp shown?("test", options, name) do
    File.mkdir_p!("tested")

    File.write!(
      "tested/asks.md",
      "---\nname: asks\ndescription: Asks\nexamples: [#{name}]\n---\nText.\n"
    )

    {output, _status, _errors} = run_cli(options ++ ["test", "tested", "--json"])
    {:ok, %{"results" => [result]}} = JSON.decode(output)
    name in for(found <- result["ranking"], do: found["name"])
  end

  defp shown?("lint", options, name) do
    File.mkdir_p!("linted")
    call = "```cmd\n#{name}\n```\n"
    File.write!("linted/calls.md", "---\nname: calls\ndescription: Calls\n---\n#{call}")
    profile = if "--profile" in options, do: [], else: ["--grant", "other"]
    {output, _status, _errors} = run_cli(options ++ profile ++ ["lint", "linted"])
    not (output =~ "there is no command `#{name}`")
  end

  defp tools?(tools), do: for(tool <- tools, do: tool["name"]) -- ["get_skill"] != []

  defp succeeds?(arguments), do: match?({_output, 0, _errors}, run_cli(arguments))

  defp names(arguments) do
    {output, _status, _errors} = run_cli(arguments)
    {:ok, entries} = JSON.decode(output)
    for entry <- entries, do: entry["name"]
  end

  # A prompt has each domain, and not all of its commands.
  defp prompted?({output, 0, _errors}, name) do
    domain = name |> String.split(".") |> hd()
    output =~ ~r/^(- `?|  )#{domain}\b/m
  end

  defp run_cli(input, arguments) do
    test = self()

    errors =
      capture_io(:stderr, fn ->
        output = capture_io(input, fn -> send(test, {:status, CLI.run(arguments)}) end)
        send(test, {:output, output})
      end)

    assert_receive {:status, status}
    assert_receive {:output, output}
    {output, status, errors}
  end
end
