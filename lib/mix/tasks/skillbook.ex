defmodule Mix.Tasks.Skillbook do
  use Mix.Task

  @shortdoc "Skillbook's command line"

  @moduledoc """
  Runs Skillbook's command line in an application that depends on Skillbook.

      mix skillbook --dir priv/skills list
      mix skillbook run reply.md
      mix skillbook help

  The commands are those of `bin/skillbook`. The application is started first, so its handlers can
  run.

  `mix skillbook shell` has no line editor; `rlwrap mix skillbook shell` adds one.

  `Skillbook.CLI` lists the exit statuses.
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
