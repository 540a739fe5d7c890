defmodule Mix.Tasks.Skillbook.Gen.Handler do
  use Mix.Task

  alias Skillbook.Support.Scaffold

  @shortdoc "Makes a command in a module"

  @moduledoc """
  Makes a command: one module with its page and the function that runs it, and a test.

      mix skillbook.gen.handler orders.find "Finds the order of a number"

  The name has a domain, a dot and a verb; the module is `MyApp.Skills.Orders.Find`. A book with
  the source `{:modules, :my_app}` has it after the next compilation. See
  [skills in modules](docs/handlers.md#write-a-skill-in-a-module).
  """

  @impl true
  def run(argv) do
    {_app, module} = Scaffold.project!()
    {_, [name, description]} = Scaffold.parse!("skillbook.gen.handler", argv, [], 2)

    Scaffold.create!([
      Scaffold.handler(module, name, description),
      Scaffold.handler_test(module, name)
    ])
  end
end
