defmodule Skillbook.MCP.JudgesTest do
  # Clients of others use our server: the official ones in TypeScript and Python, FastMCP's, and
  # the Inspector. The programs come from `bin/mcp-for-tests run mix test`.
  use ExUnit.Case, async: true

  alias Skillbook.Support.JSON
  alias Skillbook.Test.{MCPBook, MCPJudges}
  alias Skillbook.Web.Server

  # A book for each client, because clients change it.
  defp url(profile \\ "ann") do
    name = :"judges_#{System.unique_integer([:positive])}"
    sources = [MCPJudges.path("pages"), MCPJudges.skills() | MCPBook.commands()]
    {:ok, _} = MCPBook.start(name, sources: sources)
    {:ok, server} = Server.start_link(book: name, port: 0, authenticate: :none, profile: profile)
    Server.info(server).url <> "/mcp"
  end

  defp way("http"), do: ["http", url()]
  defp way("stdio"), do: ["stdio" | MCPJudges.stdio()]

  for script <- ["client.mjs", "client.py mcp", "client.py fastmcp"],
      revision <- ["2026-07-28", "2025-11-25"],
      way <- ["http", "stdio"] do
    test "#{script}, #{revision}, #{way}" do
      [script | which] = String.split(unquote(script))
      {revision, way} = {unquote(revision), unquote(way)}
      found = MCPJudges.script(script, which ++ [revision | way(way)])

      assert found["version"] == revision
      assert "test_simple_text" in found["tools"] and "get_skill" in found["tools"]
      assert found["call"] == "This is a simple text response for testing."

      # An approval: the client was asked, its user said yes, and the command ran.
      assert found["asked"] == ["Run \"test.elicitation\"?\nmessage: \"Hello\""]
      assert found["done"] == "Done."

      assert "skill://a-guide/assets/a%20table.csv" in found["resources"]
      assert found["templates"] == 1
      assert found["text"] == File.read!(MCPJudges.path("skills/a-guide/references/forms.md"))
      logo = File.read!(MCPJudges.path("skills/a-guide/assets/logo.png"))
      assert Base.decode64!(found["blob"]) == logo
      assert "test_prompt_with_arguments" in found["prompts"]
      assert found["prompt"] == "Prompt with arguments: arg1=one, arg2=two"

      # FastMCP has skills in the newest revision only, and the official Python client none.
      if script == "client.mjs" or {which, revision} == {["fastmcp"], "2026-07-28"} do
        assert "skill://a-guide/SKILL.md" in found["skills"]
        assert found["skills"] -- found["resources"] == []
        assert found["verified"] == length(found["resources"])
      end

      # FastMCP subscribes to nothing.
      unless which == ["fastmcp"],
        do: assert(found["notified"] == ["list", "skill://test-greeting/SKILL.md"])
    end
  end

  describe "the Inspector" do
    for era <- ["modern", "legacy"] do
      test "verifies all skills, #{era}" do
        arguments = [url(), "--transport", "http", "--protocol-era", unquote(era)]
        {output, 0} = MCPJudges.inspector(arguments ++ ["--method", "skills/list", "--verify"])
        reports = for "{" <> _ = line <- String.split(output, "\n"), do: line

        assert length(reports) > 15

        assert output =~
                 ~r/Verified #{length(reports)} skills and \d+ files: no conformance errors/

        for line <- reports, {:ok, report} = JSON.decode(line) do
          assert report["conformance"] == [] and report["frontmatter"] == []
          assert Enum.all?(report["files"], &(&1["status"] == "verified"))
        end
      end

      # {method and its arguments, a part of the answer}
      for {arguments, part} <- [
            {["tools/list"], ~s("name":"test_simple_text")},
            {["tools/call", "--tool-name", "test_simple_text"], "simple text response"},
            {["resources/list"], ~s("uri":"skill://a-guide/references/forms.md")},
            {["resources/templates/list"], "skill://{+skill}/{+file}"},
            {["resources/read", "--uri", "skill://a-guide/references/forms.md"], "# Forms"},
            {["resources/directory/read", "--uri", "skill://a-guide"], "inode/directory"},
            {["skills/get", "--uri", "skill://a-guide/SKILL.md"], ~s("version":"1.10")},
            {["prompts/list"], "test_simple_prompt"},
            {["prompts/get", "--prompt-name", "test_simple_prompt"], "simple prompt for testing"}
          ] do
        test "#{hd(arguments)}, #{era}" do
          options = ["--transport", "http", "--protocol-era", unquote(era), "--format", "json"]
          arguments = [url() | options] ++ ["--method" | unquote(arguments)]
          {output, 0} = MCPJudges.inspector(arguments)
          assert output =~ unquote(part)
        end
      end
    end
  end

  test "a book uses the skills of another book, and passes none of them on" do
    name = :"judges_#{System.unique_integer([:positive])}"
    source = {:mcp, url(), label: "far", approve: :all}
    {:ok, _} = Skillbook.start_link(name: name, sources: [source], builtins: false)
    :ok = Skillbook.MCP.Client.await(name)
    view = Skillbook.view(name)
    assert Skillbook.diagnostics(name) == []

    {:ok, page} = Skillbook.get(view, "far/a-guide")
    assert page =~ "the skill a-guide of the MCP server far (external_input: "
    assert page =~ "\n| # Guide\n"
    {:ok, forms} = Skillbook.get(view, "far/a-guide/references/forms.md")
    assert forms =~ "| Forms for every occasion: été, 日本."
    run = &hd(Skillbook.run(view, "```cmd\n#{&1}\n```").results).content
    assert run.("far.test_simple_text") =~ "| This is a simple text response for testing."

    # Their texts are from outside, which only `get_skill` and the results of commands say.
    context = %Skillbook.MCP.Context{
      view: view,
      profile: view.profile,
      revision: "2026-07-28"
    }

    names = Enum.map(Skillbook.View.entries(view), & &1.name)
    assert "far/a-guide" in names and "far.test_simple_text" in names

    for {method, key} <- [{"skills/list", "skills"}, {"resources/list", "resources"}],
        do: assert({:ok, %{^key => []}} = Skillbook.MCPCase.ask(context, method))

    for name <- names, file <- ["SKILL.md", "references/forms.md"] do
      uri = Skillbook.MCP.SkillURI.of(name, file)
      assert {-32_602, _} = Skillbook.MCPCase.error_at(context, "resources/read", uri)
      assert {-32_602, _} = Skillbook.MCPCase.error_at(context, "skills/get", uri)
    end
  end
end
