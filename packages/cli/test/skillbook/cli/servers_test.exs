defmodule Skillbook.CLI.ServersTest do
  # Not async: the command line has one book, and its approvals are in the current folder.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.CLI.Arguments
  alias Skillbook.Support.JSON
  alias Skillbook.Test.HostileServer

  @moduletag :tmp_dir
  @moduletag :capture_log

  setup_all do
    %{address: HostileServer.start()}
  end

  defp cli(context, lie, arguments) do
    server = ["--mcp", "docs=#{context.address}/#{lie}", "--no-builtins"]
    File.cd!(context.tmp_dir, fn -> run_cli(server ++ arguments) end)
  end

  test "lists, shows, approves and revokes", context do
    {output, 0, ""} = cli(context, "honest", ["servers"])

    assert output == """
           docs.all_types  tool  new        "Tool all_types"
           docs.delete     tool  new        "Tool delete"
           docs.search     tool  new        "Tool search"
           docs/refunds    skill  new       "Process refund requests"
           """

    assert {_output, 1, errors} = cli(context, "honest", ["get", "docs/refunds"])

    assert hd(String.split(errors, "\n")) ==
             "skillbook: 4 tools and skills of MCP servers are not approved; `servers` shows them"

    refute errors =~ "problem"

    assert {"---\nname: refunds\n" <> _, 0, _errors} =
             cli(context, "honest", ["servers", "--show", "docs/refunds"])

    approve = ["servers", "--approve", "docs/refunds", "--approve", "docs.none", "--json"]
    {output, 1, errors} = cli(context, "honest", approve)
    assert errors =~ ~s(the MCP server docs: it offers no tool, prompt or skill named "docs.none")
    {:ok, offers} = JSON.decode(output)

    assert for(o <- offers, o["status"] == "approved", do: o["name"]) == ["docs/refunds"]

    # The next command finds the approval in the lock file.
    assert {"the skill refunds of the MCP server docs" <> _, 0, _errors} =
             cli(context, "honest", ["get", "docs/refunds"])

    assert {_output, 0, _errors} = cli(context, "honest", ["servers", "--approve-all", "docs"])
    assert {output, 0, ""} = cli(context, "honest", ["list", "--source", "docs"])
    assert length(String.split(output, "\n", trim: true)) == 4
    assert {_output, 0, _errors} = cli(context, "honest", ["servers", "--revoke", "docs/refunds"])
    assert {_output, 1, errors} = cli(context, "honest", ["get", "docs/refunds"])

    # Nobody is asked about what was refused.
    assert errors ==
             ~s(skillbook: unknown skill "docs/refunds"; did you mean docs, docs.delete or ) <>
               "docs.search? To list all skills, write: skillbook get\n"

    assert {output, 0, ""} = cli(context, "honest", ["servers"])
    assert output =~ "docs/refunds    skill  refused  "
  end

  test "the approvals are in the database if there is one", context do
    {_output, 0, ""} = cli(context, "honest", ["servers", "--approve", "docs/refunds"])
    lock = File.read!(Path.join(context.tmp_dir, ".skillbook/mcp.lock.json"))
    System.put_env("USER", "ann")

    # The file is taken over, and not written or read again.
    with_db = fn arguments -> cli(context, "honest", ["--db", "book.db" | arguments]) end
    arguments = ["servers", "--approve", "docs.search", "--revoke", "docs/refunds", "--json"]
    assert {output, 0, errors} = with_db.(arguments)
    assert errors == "" or errors =~ "has taken the approvals of the MCP server docs from "
    {:ok, offers} = JSON.decode(output)

    assert for(o <- offers, o["decided_by"], do: {o["name"], o["status"], o["decided_by"]}) ==
             [{"docs.search", "approved", "ann"}, {"docs/refunds", "refused", "ann"}]

    assert {output, 0, ""} = with_db.(["servers"])
    assert output =~ "docs.search     tool  approved "
    assert output =~ "docs/refunds    skill  refused  "
    assert File.read!(Path.join(context.tmp_dir, ".skillbook/mcp.lock.json")) == lock
  end

  test "approves what was shown, and nothing else", context do
    {_text, 0, errors} = cli(context, "honest", ["servers", "--show", "docs/refunds"])

    assert [_all, shown] =
             Regex.run(
               ~r"^to approve exactly this: servers --approve (docs/refunds@sha256:\w{64})$"m,
               errors
             )

    other = String.replace(shown, ~r/@.*/, "@sha256:" <> String.duplicate("0", 64))
    {_output, 1, errors} = cli(context, "honest", ["servers", "--approve", other])
    assert errors =~ "it has changed docs/refunds since that was read; read it again"
    assert {_output, 1, _errors} = cli(context, "honest", ["get", "docs/refunds"])
    assert {_output, 0, _errors} = cli(context, "honest", ["servers", "--approve", shown])
    assert {_output, 0, _errors} = cli(context, "honest", ["get", "docs/refunds"])
    {_text, 0, errors} = cli(context, "honest", ["servers", "--show", "docs/refunds"])
    refute errors =~ "to approve"
  end

  test "a server that cannot be used is an error", context do
    {output, 1, errors} = cli(context, "unauthorized", ["servers"])
    assert output == ""

    assert errors =~
             "the MCP server docs: the profile default has no connection for docs; a person " <>
               "can make it with `bin/skillbook --mcp 'docs=#{context.address}/unauthorized' " <>
               "connect docs`, or set the variable SKILLBOOK_MCP_TOKEN_DOCS; it has no tools"

    assert {output, 1, _errors} = cli(context, "unauthorized", ["list", "--diagnostics"])
    assert output =~ "[server_unavailable]"
  end

  test "a token comes from the environment", context do
    System.put_env("SKILLBOOK_MCP_TOKEN_DOCS", "s3cret-token")
    on_exit(fn -> System.delete_env("SKILLBOOK_MCP_TOKEN_DOCS") end)
    assert {output, 0, errors} = cli(context, "token", ["servers"])
    assert output =~ "docs.search"
    refute output <> errors =~ "s3cret"
    assert {"", 1, errors} = cli(context, "unauthorized", ["servers"])

    assert errors =~
             "the MCP server docs: it answered with 401: expected a token that it accepts; " <>
               "set the variable SKILLBOOK_MCP_TOKEN_DOCS; it has no tools"
  end

  @expected "--mcp expects LABEL=URL or LABEL=COMMAND, with lowercase letters, digits " <>
              "and - in LABEL, got: "

  test "wrong servers are wrong usage" do
    for {text, message} <- [
          {"docs", @expected <> "docs"},
          {"Docs=https://a.example", @expected <> "Docs=https://a.example"},
          {"docs=", @expected <> "docs="},
          {"docs='x", @expected <> "docs='x"},
          {"docs=ftp://a.example?key=s3cret",
           "--mcp: expected {:mcp, url, options} with an https URL, http only on this machine" <>
             ", or {:mcp, [program | arguments], options} for an MCP source, got: \"ftp://…\""}
        ] do
      assert {:error, ^message, "servers --help"} = Arguments.parse(["--mcp", text, "servers"])
    end

    assert {:ok, %{servers: [{:mcp, ["npx", "-y", "a b"], options}]}} =
             Arguments.parse(["--mcp", "files=npx -y 'a b'", "servers"])

    assert options == [label: "files", lock: ".skillbook/mcp.lock.json"]
    assert {"", "skillbook: `servers` needs --mcp LABEL=URL" <> _, 2} = usage(["servers"])
  end

  defp usage(arguments) do
    {output, status, errors} = run_cli(arguments)
    {output, errors, status}
  end
end
