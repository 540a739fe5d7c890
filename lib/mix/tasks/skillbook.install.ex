defmodule Mix.Tasks.Skillbook.Install do
  use Mix.Task

  alias Skillbook.Support.Scaffold

  @shortdoc "Adds Skillbook to an application"

  @moduledoc """
  Adds Skillbook to the application of this project: a book in its supervision tree, the folder
  `priv/skills` with a first skill, a first command in a module, and their test.

      mix skillbook.install
      mix skillbook.install --name MyApp.Assistant

  Files that are there already stay as they are, so a second run changes nothing. A file with
  `children = [...]` in `start/2` gets the book; for any other, the task prints the child to add.

  ## Options

    * `--name MODULE` - the name of the book. Defaults to the application's module and `Skills`

  See also `mix skillbook.gen.skill`, `mix skillbook.gen.workflow` and
  `mix skillbook.gen.handler`.
  """

  @impl true
  def run(argv) do
    {app, module} = Scaffold.project!()
    {options, []} = Scaffold.parse!("skillbook.install", argv, [name: :string], 0)
    book = options[:name] || "#{module}.Skills"

    Scaffold.add([
      Scaffold.skill(
        "house-style",
        "How to write answers. Read it before you write to a customer"
      ),
      Scaffold.handler(app, module, "greetings.hello", "Greets somebody by name"),
      Scaffold.test(app, module)
    ])

    Scaffold.add_child(app, book)

    Mix.shell().info("""

    Take a view in each turn of a conversation, and run the model's reply:

        view = Skillbook.view(#{book})
        system_prompt = Skillbook.prompt(view)
        report = Skillbook.run(view, reply)

    `mix test` runs the first command.\
    """)
  end
end
