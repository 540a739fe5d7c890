defmodule Skillbook.Test.CommandLine do
  @moduledoc false
  # Runs the command line in the process of a test.

  import ExUnit.Assertions
  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.Test.Checkout

  @doc """
  Builds what `bin/skillbook` runs in these tests, if it is not there: the program, which lists
  skills, and the Elixir command line, which has a database.
  """
  def build_command_line do
    skillbook = Checkout.path("bin/skillbook")
    args = ["--db", ":memory:", "list"]
    {_, 0} = System.cmd(skillbook, args, env: [{"MIX_ENV", "test"}], stderr_to_stdout: true)
  end

  @doc "Runs the command line: standard output, the exit status, and standard error."
  def run_cli(args) do
    output =
      capture_io(fn ->
        errors = capture_io(:stderr, fn -> send(self(), {:status, CLI.run(args)}) end)
        send(self(), {:errors, errors})
      end)

    assert_receive {:status, status}
    assert_receive {:errors, errors}
    {output, status, errors}
  end
end
