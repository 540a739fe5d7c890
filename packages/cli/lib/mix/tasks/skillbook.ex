defmodule Mix.Tasks.Skillbook do
  use Mix.Task

  @shortdoc "Skillbook's command line"

  alias Skillbook.CLI.Session

  @moduledoc """
  Runs Skillbook's command line in an application that depends on Skillbook.

      mix skillbook --dir priv/skills list
      mix skillbook run reply.md
      mix skillbook help

  The commands are those of `bin/skillbook`. The application is started first, so its handlers
  can run. Its modules with `use Skillbook.Skill` are a source before the folders of `--dir`. Its
  books do not run their schedules; `mix skillbook schedule --run` runs those of its own folders.

  `mix skillbook shell` has no line editor; `rlwrap mix skillbook shell` adds one.

  `Skillbook.CLI` lists the exit statuses.
  """

  # Compiles the application and reads its configuration.
  @requirements ["app.config"]

  @impl true
  def run(argv) do
    # Another node of the application may run the schedules, and a command must not.
    Application.put_env(:skillbook, :run_schedules, [Session.name()], persistent: true)
    Application.put_env(:skillbook, :modules, applications(), persistent: true)
    Mix.Task.run("app.start")

    case Skillbook.CLI.run(argv) do
      0 -> :ok
      status -> exit({:shutdown, status})
    end
  end

  # Those of the project: several in an umbrella.
  defp applications do
    case Mix.Project.apps_paths() do
      nil -> List.wrap(Mix.Project.config()[:app])
      paths -> Map.keys(paths)
    end
  end
end
