defmodule Skillbook.MCP.SourceTest do
  use ExUnit.Case, async: true

  alias Skillbook.{ConfigError, Source}

  @moduletag :tmp_dir

  defp config(root, text) do
    path = Path.join(root, "config.json")
    File.write!(path, text)
    path
  end

  defp message(path, result) do
    assert {:error, %ConfigError{path: ^path} = error} = result
    error |> Exception.message() |> String.replace(path, "config.json")
  end

  test "reads MCP servers", %{tmp_dir: root} do
    path =
      config(root, """
      {"skills": [
        {"mcp": "https://docs.example/mcp", "label": "docs", "token": {"env": "DOCS_TOKEN"},
         "tools": ["search*"], "skills": false, "read": ["search*"], "labels": ["staff"],
         "lock": "#{root}/mcp.lock.json", "optional": false},
        {"mcp": ["npx", "-y", "server"], "label": "files", "tools": false}
      ]}
      """)

    assert {:ok, [docs, files]} = Source.from_json(path)
    assert {docs.name, docs.kind, docs.trust, docs.optional} == {"docs", :mcp, :low, false}
    assert docs.labels == ["staff"]
    {:mcp, settings} = docs.code
    assert settings.place == {:url, "https://docs.example/mcp"}
    assert {settings.tools, settings.skills, settings.read} == {["search*"], false, ["search*"]}
    assert {settings.token, settings.approve} == {{:env, "DOCS_TOKEN"}, :ask}
    assert settings.lock == root <> "/mcp.lock.json"
    {:mcp, settings} = files.code
    assert {settings.place, settings.tools} == {{:command, ["npx", "-y", "server"]}, false}
    assert Source.list(config: path) == Source.from_json(path)

    rows = [
      {~s({"mcp": 1, "label": "a"}),
       "skills[0].mcp: expected a URL, or a list with a program and arguments"},
      {~s({"mcp": [1], "label": "a"}), "skills[0].mcp[0]: expected text, got: 1"},
      {~s({"mcp": "https://a.example"}), "skills[0]: an MCP source needs the option :label"},
      {~s({"mcp": "https://a.example", "label": "a", "token": "s3cret"}),
       ~s(skills[0].token: expected {"env": "NAME"}, the name of a variable)},
      {~s({"mcp": "https://a.example", "label": "a", "tools": 1}),
       "skills[0].tools: expected true, false or a list of globs"},
      {~s({"mcp": "https://a.example", "label": "a", "trust": "high"}),
       "skills[0].trust: unknown key. The keys are label, labels, lock, mcp, oauth, " <>
         "optional, prompts, read, skills, tenant, token, tools"}
    ]

    for {item, reason} <- rows do
      path = config(root, ~s({"skills": [#{item}]}))
      assert message(path, Source.from_json(path)) =~ reason
      refute message(path, Source.from_json(path)) =~ "s3cret"
    end
  end
end
