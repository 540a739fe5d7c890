defmodule Skillbook.CLI.Completions do
  @moduledoc false
  # `skillbook completions`: only the program `skillbook` writes them, from the texts of the help.

  @behaviour Skillbook.CLI.Subcommand

  @impl true
  def switches, do: []

  @impl true
  def args(words), do: {:ok, words}

  @impl true
  def run(_options) do
    {:error,
     "completions and man pages are written by the program `skillbook`; build it with\n" <>
       "cargo install --locked --path native/skillbook_cli"}
  end
end
