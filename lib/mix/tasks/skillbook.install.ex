defmodule Mix.Tasks.Skillbook.Install do
  use Mix.Task

  alias Skillbook.Support.Scaffold

  @shortdoc "Adds Skillbook to an application"

  @moduledoc """
  Adds Skillbook to the application of this project: a book in its supervision tree, the folder
  `priv/skills` with a first skill, a first command in a module, and their test.

      mix skillbook.install
      mix skillbook.install --name MyApp.Assistant

  With [Igniter](https://hexdocs.pm/igniter), `mix igniter.install` adds the dependency too, and
  shows the changes before it makes them. Tried with Igniter 0.8.2.

      mix igniter.install skillbook@path:../skillbook
      mix igniter.install skillbook@git:https://example.com/skillbook.git@v0.1.0

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
    book = Scaffold.book!(options[:name], module)

    Scaffold.add(files(app, module))
    Scaffold.add_child(app, book)
    Mix.shell().info(["\n", next(book)])
  end

  defp files(app, module) do
    [
      Scaffold.skill(
        "house-style",
        "How to write answers. Read it before you write to a customer"
      ),
      Scaffold.handler(module, "greetings.hello", "Greets somebody by name"),
      Scaffold.test(app, module)
    ]
  end

  defp next(book) do
    """
    Take a view in each turn of a conversation, and run the model's reply:

        view = Skillbook.view(#{book})
        system_prompt = Skillbook.prompt(view)
        report = Skillbook.run(view, reply)

    `mix test` runs the first command.\
    """
  end

  # The callbacks of a task of Igniter, by which it needs no Igniter to be compiled. Attributes
  # hide the modules from the compiler's checks.
  @igniter Igniter
  @source Rewrite.Source
  @info Igniter.Mix.Task.Info
  @args Igniter.Mix.Task.Args

  @doc false
  def supports_umbrella?, do: false
  @doc false
  def installer?, do: true
  @doc false
  def info(_argv, _composing), do: struct(@info, schema: [name: :string])

  # Beside other installers with an option --name, ours is --skillbook.install.name.
  @doc false
  def parse_argv(argv) do
    argv = Enum.map(argv, &String.replace_prefix(&1, "--skillbook.install.", "--"))
    {options, _arguments, _others} = OptionParser.parse(argv, switches: [name: :string])
    struct(@args, options: options, argv: argv, argv_flags: argv)
  end

  @doc false
  def igniter(igniter) do
    {app, module} = Scaffold.project!()
    book = Scaffold.book!(igniter.args.options[:name], module)

    igniter =
      for {path, text} <- files(app, module), reduce: igniter do
        igniter ->
          if apply(@igniter, :exists?, [igniter, path]),
            do: igniter,
            else: apply(@igniter, :create_new_file, [igniter, path, text])
      end

    child = fn source ->
      case Scaffold.with_child(apply(@source, :get, [source, :content]), app, book) do
        {:ok, text} -> apply(@source, :update, [source, :content, text])
        :there -> source
        {:error, notice} -> {:notice, notice}
      end
    end

    igniter =
      case Scaffold.application_file() do
        nil -> apply(@igniter, :add_notice, [igniter, Scaffold.child_notice(app, book)])
        path -> apply(@igniter, :update_file, [igniter, path, child])
      end

    apply(@igniter, :add_notice, [igniter, next(book)])
  end
end
