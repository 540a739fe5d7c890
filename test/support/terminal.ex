defmodule Skillbook.Test.Terminal do
  @moduledoc false
  # Runs shell commands on a terminal, with `script` of util-linux. Other programs of that name
  # take other options, and some containers have no terminals.

  @doc "Why tests on a terminal are skipped here, or `false`."
  def missing do
    works? = script() && match?({_, 0}, run("true", stderr_to_stdout: true))
    if works?, do: false, else: "needs util-linux's script"
  end

  @doc "Runs a command to its end, with the options of `System.cmd/3`."
  def run(command, options), do: System.cmd(script(), arguments(command), options)

  @doc """
  Starts a command in a folder, and returns its port. A variable that is `nil` is not set.

  Without `exec`, some shells would stay above the command and die of Ctrl-C. A shell cannot trap
  a signal that its parent ignores, as that of a background job does.
  """
  def open(command, folder, env) do
    env =
      for {name, value} <- env,
          do: {to_charlist(name), if(value, do: to_charlist(value), else: false)}

    arguments = arguments("exec env --default-signal=INT " <> command)
    options = [:binary, :exit_status, args: arguments, cd: folder, env: env]
    Port.open({:spawn_executable, script()}, options)
  end

  defp script, do: System.find_executable("script")
  defp arguments(command), do: ["-qec", command, "/dev/null"]
end
