defmodule Mix.Tasks.Skillbook.Gen.Workflow do
  use Mix.Task

  alias Skillbook.Support.Scaffold

  @shortdoc "Makes a workflow: a command that runs others"

  @moduledoc """
  Makes the page of a command that runs other commands in order, without a model.

      mix skillbook.gen.workflow reports.morning "Greets everybody in the morning"

  The name has a domain, a dot and a verb; the page is `priv/skills/reports/morning.md`. Replace
  the commands under its heading Behavior. See [workflows](docs/workflows.md).
  """

  @impl true
  def run(argv) do
    Scaffold.project!()
    {_, [name, description]} = Scaffold.parse!("skillbook.gen.workflow", argv, [], 2)
    Scaffold.create!([Scaffold.workflow(name, description)])
  end
end
