defmodule Skillbook.MCP.ClientJudgesTest do
  # The client against the official conformance suite, and servers made by others.
  # `bin/mcp-for-tests run mix test FILE` installs them.
  use ExUnit.Case, async: false

  import Skillbook.Test.HostileServer, only: [book: 2]

  alias Skillbook.View

  @moduletag :capture_log
  @support Path.expand("../../support/mcp", __DIR__)
  @client "mix run --no-compile test/support/mcp/conformance_client.exs"

  # Each scenario with its revision, `nil` for that of the suite, and the result that is expected.
  # A scenario that is expected to fail has its reason; if it begins to pass, the test fails.
  @scenarios [
    {"initialize", "2025-06-18", :passes},
    {"initialize", "2025-11-25", :passes},
    {"tools_call", "2025-06-18", :passes},
    {"tools_call", "2025-11-25", :passes},
    {"tools_call", "2026-07-28", :passes},
    {"request-metadata", nil, :passes},
    {"http-standard-headers", nil, :passes},
    {"http-custom-headers", nil, :passes},
    {"http-invalid-tool-headers", nil, :passes},
    {"json-schema-ref-no-deref", nil, :passes},
    {"sep-2322-client-request-state", nil, :passes},
    {"elicitation-sep1034-client-defaults", nil, :passes},
    {"sep-2640-client-no-prefetch", nil, :passes},
    {"sep-2640-client-verify-digest", nil, :passes},
    {"sep-2640-client-verify-size", nil, :passes},
    {"sep-2640-client-verify-frontmatter", nil, :passes},
    {"sse-retry", nil, :passes},
    {"auth/metadata-default", nil, :passes},
    {"auth/metadata-var1", nil, :passes},
    {"auth/metadata-var2", nil, :passes},
    {"auth/metadata-var3", nil, :passes},
    {"auth/basic-cimd", nil, :passes},
    {"auth/pre-registration", nil, :passes},
    {"auth/scope-from-www-authenticate", nil, :passes},
    {"auth/scope-from-scopes-supported", nil, :passes},
    {"auth/scope-omitted-when-undefined", nil, :passes},
    {"auth/scope-step-up", nil, :passes},
    {"auth/scope-retry-limit", nil, :passes},
    {"auth/token-endpoint-auth-basic", nil, :passes},
    {"auth/token-endpoint-auth-post", nil, :passes},
    {"auth/token-endpoint-auth-none", nil, :passes},
    {"auth/resource-mismatch", nil, :passes},
    {"auth/offline-access-scope", nil, :passes},
    {"auth/offline-access-not-supported", nil, :passes},
    {"auth/authorization-server-migration", nil, :passes},
    {"auth/iss-supported", nil, :passes},
    {"auth/iss-not-advertised", nil, :passes},
    {"auth/iss-supported-missing", nil, :passes},
    {"auth/iss-wrong-issuer", nil, :passes},
    {"auth/iss-unexpected", nil, :passes},
    {"auth/iss-normalized", nil, :passes},
    {"auth/metadata-issuer-mismatch", nil, :passes},
    {"json-schema-2020-12-preservation", "2026-07-28", :passes}
  ]

  setup_all do
    folder =
      System.get_env("SKILLBOOK_MCP") ||
        raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
                "bin/mcp-for-tests run mix test FILE"

    %{folder: folder, node: Path.join(folder, "node_modules/.bin/node")}
  end

  outcomes = %{passes: "OVERALL: PASSED", fails: "OVERALL: FAILED"}

  for {scenario, revision, expected} <- @scenarios do
    of_revision = if revision, do: ["--spec-version", revision], else: []

    test "the conformance suite: #{scenario} #{revision} #{expected}", context do
      suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js"

      arguments =
        [Path.join(context.folder, suite), "client", "--command", @client] ++
          ["--scenario", unquote(scenario), "--timeout", "120000"] ++ unquote(of_revision)

      {output, status} = System.cmd(context.node, arguments, stderr_to_stdout: true)
      outcome = if status == 0, do: "OVERALL: PASSED", else: "OVERALL: FAILED"
      assert output =~ outcome, output
      assert outcome == unquote(outcomes[expected]), output
    end
  end

  defp text(book, line),
    do: hd(Skillbook.run(View.all(book), "```cmd\n#{line}\n```").results).content

  test "FastMCP as a source, as a program and over HTTP", %{folder: folder} do
    python = Path.join(folder, "bin/python")
    script = Path.join(@support, "fast_server.py")
    program = book([python, script, "stdio"], approve: :all, timeout: 60_000)
    http = book(serve(python, script, "http"), approve: :all, timeout: 60_000)
    older = book(serve(python, script, "older"), approve: :all, timeout: 60_000)

    # The server has closed the stream of the call, and keeps the rest for a GET.
    assert text(older, "docs.slow") =~ "| the end"

    for book <- [program, http, older] do
      assert Skillbook.diagnostics(book) == []
      assert text(book, "docs.add 2 --b 3") =~ "| 5"

      assert text(book, ~s(docs.describe --words a --words b --options '{"x": 1}')) =~
               ~r/\| \{"words":\s*\["a",\s*"b"\],\s*"options":\s*\{"x":\s*1\}\}/

      assert text(book, "docs.fail") =~ "fail has failed:\n"
      assert text(book, "docs.fail") =~ "| no luck today"
      assert text(book, "docs.review 'a + b'") =~ "| Review this in a kind tone: a + b"
      assert text(book, "docs.review --tone sharp --code c") =~ "| Review this in a sharp tone: c"
      assert text(book, "docs.review") =~ "--code"
    end
  end

  test "the official TypeScript SDK as a source, with a skill", %{folder: folder, node: node} do
    command = [node, Path.join(@support, "official_server.mjs")]
    env = %{"SKILLBOOK_MCP" => folder}
    book = book(command, approve: :all, env: env, timeout: 60_000)
    assert Skillbook.diagnostics(book) == []
    assert text(book, "docs.echo --text 'a b'") =~ "| a b"
    assert text(book, "get_skill: docs/greet") =~ "| # Greet"
  end

  # Its address. It ends with the test.
  defp serve(python, script, how) do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    :gen_tcp.close(socket)
    options = [:binary, :stderr_to_stdout, args: [script, how, "#{port}"]]
    server = Port.open({:spawn_executable, python}, options)
    {:os_pid, pid} = Port.info(server, :os_pid)
    on_exit(fn -> System.cmd("kill", ["#{pid}"]) end)
    await(port, 300)
    "http://127.0.0.1:#{port}/mcp"
  end

  defp await(port, tries) do
    case :gen_tcp.connect({127, 0, 0, 1}, port, []) do
      {:ok, socket} ->
        :gen_tcp.close(socket)

      {:error, _reason} when tries > 0 ->
        Process.sleep(100)
        await(port, tries - 1)
    end
  end
end
