defmodule Skillbook.MCP.ConformanceTest do
  # MCP's conformance suite against the server, over HTTP. The programs come from
  # `bin/mcp-for-tests run mix test`.
  use ExUnit.Case, async: true

  alias Skillbook.Test.{MCPBook, MCPJudges}

  @moduletag :tmp_dir

  # The suite reads resources, and answers a question, under names that only a server made for it
  # can have. A program in front of ours renames them; what is checked is the same.
  @renamed %{
    "resources-read-text" => "test://static-text=skill://static/text.txt",
    "resources-read-binary" => "test://static-binary=skill://static/image.png",
    "resources-templates-read" => "test://template/=skill://template/",
    "input-required-result-basic-elicitation" => ~s("user_name"="approval")
  }

  setup_all do
    # A book of its own, because scenarios change it.
    name = :"conformance_#{System.unique_integer([:positive])}"
    pages = MCPJudges.path("pages")
    sources = [pages, MCPJudges.skills() | MCPBook.commands()]
    {:ok, _} = MCPBook.start(name, sources: sources)
    options = [book: name, port: 0, authenticate: :none, profile: "ann"]
    {:ok, server} = Skillbook.Web.Server.start_link(options)
    [url: Skillbook.Web.Server.info(server).url <> "/mcp"]
  end

  for revision <- ["2026-07-28", "2025-11-25", "2025-06-18"] do
    test "all scenarios of #{revision}", %{url: url, tmp_dir: folder} do
      revision = unquote(revision)
      of_revision = ["--suite", "all", "--spec-version", revision]
      results = MCPJudges.conformance(url, Path.join(folder, "all"), of_revision)

      results =
        for {scenario, pair} <- @renamed, is_map_key(results, scenario), reduce: results do
          results ->
            front = MCPJudges.start("node", [MCPJudges.path("front.mjs"), url, pair])
            one = ["--scenario", scenario, "--spec-version", revision]
            Map.merge(results, MCPJudges.conformance(front, Path.join(folder, scenario), one))
        end

      assert map_size(results) > 25

      failed = for {scenario, [_ | _] = checks} <- results, into: %{}, do: {scenario, checks}
      expected = expected(revision)

      assert Enum.sort(Map.keys(failed)) == Enum.sort(Map.keys(expected)), inspect(failed)

      for {scenario, %{"checks" => checks, "reason" => reason}} <- expected do
        assert checks in ["all", failed[scenario]], inspect({scenario, failed[scenario]})
        assert String.length(reason) > 20
      end
    end
  end

  for scenario <- ~w(directory enumeration manifest) do
    test "the skills extension: #{scenario}", %{url: url, tmp_dir: folder} do
      scenario = "sep-2640-skills-" <> unquote(scenario)
      results = MCPJudges.conformance(url, folder, ["--scenario", scenario])
      assert results == %{scenario => []}

      # Nothing was skipped, and no advice was not followed.
      [file] = Path.wildcard(Path.join(folder, "*/checks.json"))
      {:ok, checks} = Skillbook.Support.JSON.decode(File.read!(file))
      assert length(checks) > 5
      assert Enum.uniq(for check <- checks, do: check["status"]) == ["SUCCESS"]
    end
  end

  # YAML, which is what frontmatter is.
  defp expected(revision) do
    text = File.read!(MCPJudges.path("expected_failures.yml"))
    Skillbook.Frontmatter.parse!("---\n" <> text <> "---\n").data[revision]
  end
end
