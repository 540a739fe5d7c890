defmodule Mix.Tasks.Skillbook do
  use Mix.Task

  @shortdoc "Skillbook's command line"

  @moduledoc """
  Runs Skillbook's command line in an application that has it as a dependency.

      mix skillbook run reply.md
      mix skillbook --dir priv/skills list
      mix skillbook help

  It is the command line of `bin/skillbook`, with the application started, so that its handlers have what they need.
  Lines of
  `mix skillbook shell` are not edited key by key; `rlwrap mix skillbook shell` helps.

  Ends with the exit status that `Skillbook.CLI` describes.
  """

  @requirements ["app.start"]

  @impl true
  def run(argv) do
    case Skillbook.CLI.run(argv) do
      0 -> :ok
      status -> exit({:shutdown, status})
    end
  end
end
