defmodule Skillbook.CLI.MCPProcessTest do
  # bin/skillbook mcp as clients start it.
  use ExUnit.Case, async: true

  import Skillbook.Test.CommandLine, only: [build_command_line: 0]

  alias Skillbook.Support.JSON
  alias Skillbook.Test.MCPJudges

  @skillbook Skillbook.Test.Checkout.path("bin/skillbook")
  @meta %{
    "io.modelcontextprotocol/protocolVersion" => "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities" => %{}
  }

  @tag :tmp_dir
  test "bin/skillbook mcp writes messages and nothing else", %{tmp_dir: folder} do
    build_command_line()

    File.mkdir_p!(Path.join(folder, "skills/notes"))

    File.write!(
      Path.join(folder, "skills/notes/echo.md"),
      "---\nname: notes.echo\ndescription: Says wörds\n" <>
        "handler: Skillbook.Test.PrintingHandler\n" <>
        "flags: {text: {type: text, required: true}}\n---\n"
    )

    lines = [
      %{"jsonrpc" => "2.0", "id" => 1, "method" => "tools/list", "params" => %{"_meta" => @meta}},
      %{
        "jsonrpc" => "2.0",
        "id" => 2,
        "method" => "tools/call",
        "params" => %{
          "name" => "notes__echo",
          "arguments" => %{"text" => "grün"},
          "_meta" => @meta
        }
      }
    ]

    input = Path.join(folder, "input")
    File.write!(input, Enum.map(lines, &[JSON.encode(&1), "\n"]))

    command = "#{@skillbook} --dir skills --db :memory: --no-builtins mcp < #{input} 2> errors"

    environment = [{"MIX_ENV", "test"}, {"LC_ALL", "C"}]
    {output, status} = System.cmd("sh", ["-c", command], cd: folder, env: environment)
    assert status == 0, File.read!(Path.join(folder, "errors"))

    answers =
      for line <- String.split(output, "\n", trim: true), into: %{} do
        {:ok, json} = JSON.decode(line)
        {json["id"], json["result"]}
      end

    assert ["get_skill", "notes__echo"] = Enum.map(answers[1]["tools"], & &1["name"])
    assert [%{"text" => "grün"}] = answers[2]["content"]
    assert File.read!(Path.join(folder, "errors")) =~ "printed by the handler"
  end

  test "the Inspector speaks with bin/skillbook mcp" do
    # The build of these tests, of which the Inspector tells no program that it starts.
    environment =
      for {name, _} = pair <- Map.put(System.get_env(), "MIX_ENV", "test"),
          String.starts_with?(name, ["MIX_", "SKILLBOOK_", "ELIXIR_"]),
          do: pair

    # Builds here if needed, which takes longer than the Inspector waits.
    build_command_line()
    passed = Enum.flat_map(environment, fn {name, value} -> ["-e", "#{name}=#{value}"] end)
    command = [@skillbook, "--no-builtins", "--dir", MCPJudges.skills(), "mcp"]
    options = ["--protocol-era", "modern", "--method", "skills/list", "--verify"]
    {output, 0} = MCPJudges.inspector(passed ++ command ++ options)
    assert output =~ "Verified 3 skills and 9 files: no conformance errors"
  end
end
