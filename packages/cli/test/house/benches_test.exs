defmodule Skillbook.House.BenchesTest do
  # A bench uses functions that nobody else calls in its way, and weeks may pass between two runs
  # of it. So those that need no server, model or other program run here, with a few entries.
  use ExUnit.Case, async: true

  @cli Path.expand("../..", __DIR__)
  @benches Path.expand("../../bench", @cli)

  @moduletag timeout: 600_000

  @small [
    floors: [],
    load: ["5"],
    page: ["50", "files"],
    page: ["50", "store"],
    preflight: [],
    reloads: ["20"],
    rows: ["200"],
    schedules: ["20", "20"],
    vault: ["60"]
  ]

  for {bench, arguments} <- @small do
    test "bin/bench #{Enum.join([bench | arguments], " ")}" do
      path = Path.join(@benches, "#{unquote(bench)}.exs")
      arguments = ["run", "--no-compile", path | unquote(arguments)]
      options = [cd: @cli, env: [{"SKILLBOOK_POSTGRES", nil}], stderr_to_stdout: true]
      {printed, status} = System.cmd("mix", arguments, options)
      assert status == 0, printed
      assert printed =~ ~r/\d/
    end
  end
end
