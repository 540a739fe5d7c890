defmodule Skillbook.Test.PrintingHandler do
  @moduledoc false
  # Answers with the flag `--text`, and prints to standard output, as handlers should not.

  def execute(%{"text" => text}, _context) do
    IO.puts("printed by the handler")
    {:ok, text}
  end
end
