defmodule Skillbook.CLI.ServeProcessTest do
  # `serve` as a process of the system, from its start to its end by a signal, with tokens and
  # links of other processes.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.CommandLine, only: [build_command_line: 0]

  alias Skillbook.Test.Terminal

  @skillbook Skillbook.Test.Checkout.path("bin/skillbook")

  # Builds here if needed, so that no test does.
  setup_all do
    build_command_line()
    :ok
  end

  setup do
    folder = Path.join(System.tmp_dir!(), "serve_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(folder) end)
    write(folder, %{"skills/tea/SKILL.md" => "---\nname: tea\ndescription: Tea\n---\nBoil.\n"})
    cli = ["--dir", folder <> "/skills", "--db", folder <> "/test.db"]
    %{folder: folder, cli: cli, start: fn args -> start(folder, cli ++ ["serve" | args]) end}
  end

  defp start(folder, args) do
    env = [{~c"MIX_ENV", ~c"test"}, {~c"XDG_STATE_HOME", to_charlist(folder)}]

    # A shell cannot trap a signal that its parent ignores, as that of a background job does.
    args = ["--default-signal=INT", @skillbook | args]
    options = [:binary, :stderr_to_stdout, :exit_status, args: args, cd: folder, env: env]
    port = Port.open({:spawn_executable, System.find_executable("env")}, options)
    {port, until(port, "", ~r/Ctrl-C stops\.\n/)}
  end

  defp get(url, headers \\ []) do
    {:ok, response} = Skillbook.HTTP.request(method: :get, url: url, headers: headers)
    response
  end

  test "serves with a link and tokens, prints another link, and stops", context do
    {port, output} = context.start.(["--port", "0"])

    [_all, url, link] =
      Regex.run(
        ~r/\AServing the page, MCP, the API and discovery at (\S+)\n\n  (\S+)\n/,
        output
      )

    assert link =~ ~r<\A#{url}/open/[\w-]{43}\z>
    assert output =~ "\n  MCP: #{url}/mcp\n  the API: #{url}/api/skills\n"
    assert %{status: 200, headers: headers} = get(link)
    [cookie] = headers["set-cookie"]
    [pair | _attributes] = String.split(cookie, ";")
    assert get(url <> "/skills", [{"cookie", pair}]).status == 200
    assert get(link).status == 410

    # Another process of the same database makes a token and a link.
    {token, 0} = System.cmd(@skillbook, context.cli ++ ["token", "add"], system())
    token = token |> String.split() |> List.last()
    bearer = [{"authorization", "Bearer " <> token}]
    assert get(url <> "/api/skills/tea", bearer).body =~ ~s("content":"Boil.\\n")
    {link, 0} = System.cmd(@skillbook, context.cli ++ ["token", "link", "--url", url], system())
    assert get(link |> String.split() |> List.last()).status == 200

    {:os_pid, pid} = Port.info(port, :os_pid)
    {_, 0} = System.cmd("kill", ["-INT", "#{pid}"])

    output =
      until(port, "", ~r/Stopping; what has begun may take 15 s\. Ctrl-C again stops at once\.\n/)

    refute output =~ "error"
    assert_receive {^port, {:exit_status, 0}}
  end

  defp system, do: [env: [{"MIX_ENV", "test"}], stderr_to_stdout: true]

  test "runs schedules with --schedules", %{folder: folder, cli: cli, start: start} do
    page =
      "---\nname: a.late\ndescription: What is late\nschedule: 0 0 1 1 *\n---\n" <>
        "## Behavior\n\n```cmd\ntasks.search\n```\n"

    write(folder, %{"skills/a/late.md" => page})
    {port, output} = start.(["--port", "0", "--no-auth"])
    assert output =~ "\n1 scheduled skill does not run here; --schedules runs them.\nCtrl-C"
    Port.close(port)

    {_port, output} = start.(["--port", "0", "--no-auth", "--schedules"])
    assert output =~ "\n1 skill on a schedule.\nCtrl-C"
    {_asked, 0} = System.cmd(@skillbook, cli ++ ~w(schedule run a.late), system())

    assert Skillbook.Eventually.eventually(fn ->
             {output, 0} = System.cmd(@skillbook, cli ++ ~w(schedule --json), system())
             output =~ ~s("status":"ok")
           end)
  end

  test "answers the requests that have begun when SIGTERM ends it", context do
    {port, output} = context.start.(["--port", "0", "--no-auth", "--serve", "api,page"])
    [_all, url] = Regex.run(~r{at (http://127\.0\.0\.1:\d+)\n\n  http}, output)
    refute output =~ "/open/"
    assert get(url <> "/api/skills").status == 200
    # Another host is refused, although nobody is asked who they are.
    assert get(url <> "/api/skills", [{"host", "evil.example"}]).status == 421
    {:os_pid, pid} = Port.info(port, :os_pid)
    {_, 0} = System.cmd("kill", ["-TERM", "#{pid}"])
    assert_receive {^port, {:exit_status, 0}}
    assert {:error, _refused} = Skillbook.HTTP.request(method: :get, url: url)
  end

  test "serves the API on a unix socket", context do
    socket = Path.join(context.folder, "s")
    {port, output} = context.start.(["--socket", socket, "--serve", "api"])
    assert output =~ "Serving the API at unix:#{socket}\n"
    refute output =~ "/open/"
    assert File.stat!(socket).mode |> Bitwise.band(0o777) == 0o600

    {token, 0} =
      System.cmd(@skillbook, context.cli ++ ["token", "add", "--scope", "api"], system())

    token = token |> String.split() |> List.last()
    curl = ["-s", "-o", "-", "-w", " %{http_code}", "--unix-socket", socket]
    url = "http://localhost/api/skills/tea"
    assert {body, 0} = System.cmd("curl", curl ++ ["-H", "authorization: Bearer #{token}", url])
    assert body =~ ~s("content":"Boil.\\n")
    assert body =~ ~r/ 200\z/
    assert {body, 0} = System.cmd("curl", curl ++ [url])
    assert body =~ ~r/ 401\z/
    {:os_pid, pid} = Port.info(port, :os_pid)
    {_, 0} = System.cmd("kill", ["-TERM", "#{pid}"])
    assert_receive {^port, {:exit_status, 0}}
    refute File.exists?(socket)
  end

  @tag skip: Terminal.missing()
  test "on a terminal Enter prints another link, and Ctrl-C stops", context do
    words = Enum.map_join(context.cli ++ ["serve", "--port", "0"], " ", &"'#{&1}'")
    env = [{"MIX_ENV", "test"}, {"TERM", "xterm"}]
    port = Terminal.open("'#{@skillbook}' #{words}", context.folder, env)
    output = until(port, "", ~r/Ctrl-C stops\.\r?\n/)
    link = ~r{http://127\.0\.0\.1:\d+/open/[\w-]+}
    [first] = Regex.run(link, output)
    assert get(first).status == 200
    assert get(first).status == 410
    Port.command(port, "\n")
    [second] = Regex.run(link, until(port, "", ~r/Enter prints another one\.\r?\n/))
    assert second != first
    assert get(second).status == 200
    # The terminal sends SIGINT to all of its processes.
    Port.command(port, <<3>>)
    until(port, "", ~r/Stopping; what has begun may take 15 s\. Ctrl-C again stops at once\./)
    assert_receive {^port, {:exit_status, 0}}
  end
end
