defmodule Skillbook.Test.MCPJudges do
  @moduledoc false
  # Programs of others that judge the MCP server and client: the conformance suite, the Inspector,
  # and the official clients and servers. `bin/mcp-for-tests` installs them.

  import ExUnit.Assertions, only: [flunk: 1]

  alias Skillbook.Support.JSON

  @here __DIR__
  @timeout 180_000

  @doc "The folder of the programs."
  def folder do
    System.get_env("SKILLBOOK_MCP") ||
      raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
              "bin/mcp-for-tests run mix test"
  end

  @doc "The path of a file beside this one."
  def path(name), do: Path.join(@here, name)

  @doc "The path of a program: `node` or `python`."
  def program("node"), do: Path.join(folder(), "node_modules/.bin/node")
  def program("python"), do: Path.join(folder(), "bin/python")

  @doc "The folder of skills and commands that the judges look at."
  def skills, do: path("skills")

  @doc """
  Runs the conformance suite against a server. Returns the ids of the checks that failed, by the
  names of the scenarios that ran.
  """
  def conformance(url, folder, arguments) do
    suite = package("conformance/dist/index.js")
    arguments = [suite, "server", "--url", url, "-o", folder | arguments]
    {output, _status} = run("node", arguments)

    results =
      for file <- Path.wildcard(Path.join(folder, "server-*/checks.json")), into: %{} do
        [_, scenario] =
          Regex.run(
            ~r/\Aserver-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\z/,
            Path.basename(Path.dirname(file))
          )

        {:ok, checks} = JSON.decode(File.read!(file))
        failed = for %{"id" => id, "status" => "FAILURE"} <- checks, do: id
        {scenario, Enum.sort(Enum.uniq(failed))}
      end

    if results == %{}, do: flunk("the conformance suite ran nothing:\n" <> output)
    results
  end

  @doc "Runs the Inspector's command line. Returns its output, its errors and its status."
  def inspector(arguments) do
    launcher = package("inspector/clients/launcher/build/index.js")
    run("node", [launcher, "--cli" | arguments])
  end

  @doc "Runs a script beside this file. Returns its output as JSON; the test fails if it fails."
  def script(name, arguments) do
    program = if String.ends_with?(name, ".py"), do: "python", else: "node"

    case run(program, [path(name) | arguments]) do
      {output, 0} ->
        # Logs may follow.
        lines = for "{" <> _ = line <- String.split(output, "\n"), do: line
        {:ok, value} = lines |> List.last() |> JSON.decode()
        value

      {output, status} ->
        flunk("#{name} ended with #{status}:\n" <> output)
    end
  end

  @doc "A command that serves the book of the judges over standard input and output."
  def stdio do
    ebins = Path.join([:code.lib_dir(:skillbook), "..", "*", "ebin"])
    [System.find_executable("elixir"), "-pa", ebins, path("stdio.exs")]
  end

  @doc "Runs a program to its end."
  def run(program, arguments) do
    environment = [
      {"NODE_PATH", Path.join(folder(), "node_modules")},
      {"PYTHONDONTWRITEBYTECODE", "1"},
      # Settings and caches of the person who runs the tests are none of theirs.
      {"HOME", System.tmp_dir!()},
      {"PYTHONWARNINGS", "ignore"},
      {"NO_COLOR", "1"}
    ]

    task =
      Task.async(fn ->
        System.cmd(program(program), arguments, env: environment, stderr_to_stdout: true)
      end)

    case Task.yield(task, @timeout) || Task.shutdown(task, :brutal_kill) do
      {:ok, result} -> result
      nil -> flunk("#{program} #{Enum.join(arguments, " ")} has not ended after #{@timeout} ms")
    end
  end

  @doc """
  Starts a program that prints its URL, and ends when its standard input does. Returns the URL.
  """
  def start(program, arguments) do
    port =
      Port.open({:spawn_executable, program(program)}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: arguments,
        line: 4_096,
        env: [{~c"NODE_PATH", to_charlist(Path.join(folder(), "node_modules"))}]
      ])

    url(port, [])
  end

  defp url(port, lines) do
    receive do
      {^port, {:data, {:eol, "http" <> _ = url}}} -> url
      {^port, {:data, {_, line}}} -> url(port, [line | lines])
      {^port, {:exit_status, _}} -> flunk(Enum.join(Enum.reverse(lines), "\n"))
    after
      60_000 -> flunk("no URL in a minute:\n" <> Enum.join(Enum.reverse(lines), "\n"))
    end
  end

  defp package(path), do: Path.join([folder(), "node_modules/@modelcontextprotocol", path])
end
