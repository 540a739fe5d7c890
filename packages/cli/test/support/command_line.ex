defmodule Skillbook.Test.CommandLine do
  @moduledoc false
  # Runs the command line in the process of a test.

  import ExUnit.Assertions
  import ExUnit.CaptureIO

  alias Skillbook.CLI

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
