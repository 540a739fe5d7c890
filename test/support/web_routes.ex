defmodule Skillbook.Test.Routes do
  @moduledoc false
  # Every route that answers about one entry or lists entries. The leak tests ask each of them for
  # a hidden and for a missing entry, and compare the answers.
  #
  # A row is `{method, target, options of Requests}`; `NAME` stands for the name of the entry in
  # the target, and in the texts of the options. Add yours to the list of your area.

  @doc "The routes about an entry: their answers do not tell a hidden one from a missing one."
  def all, do: api() ++ page() ++ mcp() ++ discovery()

  defp api do
    [
      {"GET", "/api/skills/NAME", []},
      {"GET", "/api/skills", []},
      {"GET", "/api/skills?q=NAME", []},
      {"GET", "/api/skills?tag=NAME", []},
      {"GET", "/api/skills?kind=command", []},
      {"GET", "/api/skills?kind=skill&limit=1", []},
      {"GET", "/api/skills?kind=note&q=NAME", []},
      {"GET", "/api/skills?limit=1&cursor=NAME", []}
    ]
  end

  defp operator, do: [profile: "guest", operator: true]

  # Each page, by its table; `leaks_test.exs` checks that none with a name is missing.
  defp page do
    forms = [
      {"POST", "/skills/NAME/edit", form: %{"content" => "x", "description" => "x"}},
      {"POST", "/skills/NAME/source", form: %{"content" => "x", "digest" => "x"}},
      {"POST", "/skills/NAME/source", form: %{"content" => "x", "digest" => "x"}, as: operator()},
      {"GET", "/skills/NAME/source", as: operator()},
      {"GET", "/skills/NAME/history", as: operator()},
      {"POST", "/skills/NAME/fire", form: %{}},
      {"POST", "/skills/NAME/fire", form: %{}, as: operator()},
      {"POST", "/skills/NAME/change", form: %{"find" => "a", "replace" => "b"}},
      {"POST", "/skills/NAME/restore", form: %{"version" => "1"}},
      {"POST", "/skills/NAME/enable", form: %{}},
      {"POST", "/skills/NAME/disable", form: %{}},
      {"POST", "/skills/NAME/disable", form: %{"list" => "q=NAME"}},
      {"POST", "/skills/NAME/delete", form: %{}},
      {"POST", "/runs", form: %{"name" => "NAME", "action" => "pause"}},
      # An operator of a profile operates only what that profile sees.
      {"POST", "/runs", form: %{"name" => "NAME", "action" => "pause"}, as: operator()},
      {"POST", "/runs?format=json", form: %{"name" => "NAME", "action" => "run"}, as: operator()},
      {"POST", "/status", form: %{"name" => "NAME"}},
      {"POST", "/chat/NAME", form: %{"text" => "x"}},
      {"POST", "/chat/NAME", form: %{"decision" => "yes", "ref" => "NAME"}, as: operator()},
      {"POST", "/try/NAME", form: %{"step" => "show"}},
      {"POST", "/try/NAME?format=json", form: %{"step" => "show"}},
      {"POST", "/connections/google/connect", form: %{"for[]" => "NAME"}},
      {"POST", "/connections/NAME/connect", form: %{"for[]" => "email.search"}}
    ]

    for(
      path <- ~w(/ /new /import /nothing) ++ page_paths(),
      suffix <- ["", if(path =~ "?", do: "&", else: "?") <> "format=json"],
      do: {"GET", path <> suffix, []}
    ) ++ forms
  end

  defp page_paths do
    ~w(/skills /skills?q=NAME /skills?tag=NAME /skills?domain=NAME /skills?label=NAME
       /skills?by=user&q=NAME /skills?done=disabled&name=NAME
       /skills?as=NAME /skills/NAME /skills/NAME/files/notes/hoof.md /skills/NAME/edit
       /skills/NAME/source /skills/NAME/history /new/file
       /skills/NAME/change /skills/NAME/versions /skills/NAME/versions/1 /skills/NAME/delete
       /skills/NAME/export /prompt /prompt?format_of=notes /tools /explain?name=NAME
       /chat /chat/NAME /try
       /try/NAME /route?request=NAME /usage /runs /approvals /conversations /diagnostics
       /diagnostics?advice=1 /diagnostics/fix?path=NAME /status /connections
       /connections?connected=NAME /connections/NAME/finish
       /connections/NAME/callback?state=a&code=b /servers /servers/offer?name=NAME)
  end

  defp mcp do
    for {method, params} <- [
          {"tools/list", %{}},
          {"tools/call", %{name: "NAME", arguments: %{}}},
          {"tools/call", %{name: "get_skill", arguments: %{path: "NAME"}}},
          {"prompts/list", %{}},
          {"prompts/get", %{name: "NAME", arguments: %{}}},
          {"resources/list", %{}},
          {"resources/templates/list", %{}},
          {"resources/read", %{uri: "skill://NAME/SKILL.md"}},
          {"resources/read", %{uri: "note://NAME"}},
          {"resources/directory/read", %{uri: "skill://NAME"}},
          {"completion/complete",
           %{
             ref: %{type: "ref/resource", uri: "skill://{+skill}/{+file}"},
             argument: %{name: "skill", value: "NAME"}
           }},
          {"skills/list", %{}},
          {"skills/get", %{uri: "skill://NAME/SKILL.md"}},
          {"completion/complete",
           %{ref: %{type: "ref/prompt", name: "NAME"}, argument: %{name: "a", value: "N"}}}
        ],
        do: {"POST", "/mcp", mcp_message(method, params)}
  end

  @revision "2026-07-28"

  defp mcp_message(method, params) do
    meta = %{
      "io.modelcontextprotocol/protocolVersion" => @revision,
      "io.modelcontextprotocol/clientInfo" => %{"name" => "test", "version" => "1"},
      "io.modelcontextprotocol/clientCapabilities" => %{}
    }

    name = params[:name] || params[:uri]

    [
      json: %{jsonrpc: "2.0", id: 1, method: method, params: Map.put(params, :_meta, meta)},
      headers:
        [
          {"accept", "application/json, text/event-stream"},
          {"mcp-protocol-version", @revision},
          {"mcp-method", method}
        ] ++ if(name, do: [{"mcp-name", name}], else: [])
    ]
  end

  defp discovery do
    [
      {"GET", "/.well-known/agent-skills/index.json", []},
      {"GET", "/.well-known/agent-skills/NAME/SKILL.md", []},
      {"GET", "/.well-known/agent-skills/NAME.tar.gz", []},
      {"GET", "/.well-known/agent-skills/NAME", []}
    ]
  end
end
