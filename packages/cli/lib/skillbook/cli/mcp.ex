defmodule Skillbook.CLI.MCP do
  @moduledoc false
  # `skillbook mcp`: serves the book to one client of the Model Context Protocol, over standard
  # input and output.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Output, Session, Signals, Terminal}
  alias Skillbook.MCP.Stdio
  alias Skillbook.Native

  @impl true
  def switches do
    [ask: :boolean, tools: :keep, max_tools: {:number, 1, 10_000}, run_command: :boolean]
  end

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`mcp` takes no arguments, got: #{arg}"}

  @impl true
  def run(options) do
    globs = Keyword.get_values(options.flags, :tools)

    case Native.globs_check(globs) do
      {:error, {glob, reason}} ->
        message = "--tools expects a glob (#{reason}), got: #{glob}"
        Terminal.usage_error(message, "mcp --help")

      _ ->
        # Handlers that print would break the protocol, so their output goes where logs go.
        leader = Process.group_leader()
        Process.group_leader(self(), Process.whereis(:standard_error))

        try do
          Session.with_book(options, :converse, &serve(&1, options, globs, leader))
        after
          Process.group_leader(self(), leader)
        end
    end
  end

  defp serve(book, options, globs, leader) do
    profile = Session.profile(options)
    profile = if options.flags[:ask], do: %{profile | writes: :ask}, else: profile

    served = [tools: tools(options.flags, globs)]

    stop = fn -> Session.stop(book) end

    serve = fn -> Stdio.serve(book, profile, served, input(leader), &put/1, stop) end

    with {:error, reason} <- Signals.trap(serve),
         do: {:error, "cannot read standard input: #{inspect(reason)}"}
  end

  defp tools(flags, globs) do
    names = if globs == [], do: [], else: [names: globs]
    limit = if flags[:max_tools], do: [limit: flags[:max_tools]], else: []
    names ++ limit ++ [run_command: flags[:run_command] == true]
  end

  # bin/skillbook leaves standard input to us, which has no other way to bound a line.
  defp input(leader) do
    if System.get_env("SKILLBOOK_INPUT") == "1" do
      Stdio.port_lines(Port.open({:fd, 0, 0}, [:in, :binary, :eof]))
    else
      :io.setopts(leader, encoding: :latin1)
      Stdio.device_lines(leader)
    end
  end

  defp put(line) do
    Output.write(line)
  catch
    :exit, reason -> {:error, reason}
  end
end
