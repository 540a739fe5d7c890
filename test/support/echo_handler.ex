defmodule Skillbook.Test.EchoHandler do
  @moduledoc false
  # Answers with the flag `--text`; waits `--wait` milliseconds before that.

  def execute(flags, _context) do
    if wait = flags["wait"], do: Process.sleep(String.to_integer(wait))
    {:ok, "echo: #{flags["text"]}"}
  end
end
