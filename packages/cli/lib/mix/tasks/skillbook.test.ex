defmodule Mix.Tasks.Skillbook.Test do
  use Mix.Task

  @shortdoc "Tests and evaluates skills"

  @moduledoc """
  Tests the skills of an application: the `examples` of their pages, and the evaluations beside
  them.

      mix skillbook.test
      mix skillbook.test priv/skills/orders --only evaluations
      mix skillbook.test --url http://localhost:8080 --model qwen3 --record

  It is `mix skillbook test`, with the handlers of the application. The folder `priv/skills` is
  its `--dir`, if it exists and no other is given. `mix skillbook test --help` shows all options.
  """

  @requirements ["app.config"]

  @impl true
  def run(argv) do
    own? = "--dir" in argv or Enum.any?(argv, &String.starts_with?(&1, "--dir="))
    dir = if not own? and File.dir?("priv/skills"), do: ["--dir", "priv/skills"], else: []
    Mix.Tasks.Skillbook.run(dir ++ ["test" | argv])
  end
end
