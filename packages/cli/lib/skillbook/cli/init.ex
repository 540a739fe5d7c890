defmodule Skillbook.CLI.Init do
  @moduledoc false
  # `skillbook init`: a folder of skills with a first skill and a first workflow.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.Scaffold
  alias Skillbook.{Document, Lint, Source}

  @impl true
  def switches, do: []

  @impl true
  def args([]), do: {:ok, []}

  def args([arg | _]),
    do: {:error, "`init` takes no argument, got: #{arg}; name a folder with --dir"}

  @impl true
  def run(options) do
    folder = folder(options)

    files = [
      Scaffold.skill("house-style", "How to write answers. Read it before you write", folder),
      Scaffold.workflow("reports.mine", "What somebody still has to do", folder, step())
    ]

    {there, missing} = Enum.split_with(files, fn {path, _text} -> File.exists?(path) end)
    for {path, _text} <- there, do: Terminal.put("unchanged  #{path}")

    with :ok <- write(missing) do
      for {path, _text} <- missing, do: lint(path, options)
      dir = if options.named, do: "--dir #{folder} ", else: ""

      Terminal.put("""
      Next: skillbook #{dir}run -c 'reports.mine --name Ann'
            skillbook new reports.late "What is late" --kind workflow
            docs/authoring.md goes from a page to a tested, scheduled skill\
      """)
    end
  end

  @doc "The folder that new pages are written to."
  @spec folder(Skillbook.CLI.Arguments.t()) :: Path.t()
  def folder(%{named: true, dirs: dirs}), do: List.last(dirs)
  def folder(_options), do: if(Session.modules() == [], do: "skills", else: "priv/skills")

  @doc "A step of a workflow, with a built-in command."
  def step, do: "tasks.search --assignee {name}"

  @doc "Writes new files, and says so. A file that is there is an error, and nothing is written."
  @spec write([{Path.t(), String.t()}]) :: :ok | {:error, String.t()}
  def write(files) do
    case Enum.find(files, fn {path, _text} -> File.exists?(path) end) do
      {path, _text} ->
        {:error, "#{path} exists already; choose another name, or remove it"}

      nil ->
        Enum.reduce_while(files, :ok, fn {path, text}, :ok ->
          # The folder of skills may be new.
          root = path |> Path.split() |> hd()

          with :ok <- File.mkdir_p(root),
               {:ok, _path} <- Document.create(root, Path.relative_to(path, root), text) do
            Terminal.put("wrote      #{path}")
            {:cont, :ok}
          else
            {:error, reason} when is_atom(reason) ->
              {:halt, {:error, "#{path}: #{:file.format_error(reason)}"}}

            {:error, error} ->
              {:halt, {:error, Exception.message(error)}}
          end
        end)
    end
  end

  @doc "Prints what lint says about a new page."
  @spec lint(Path.t(), Skillbook.CLI.Arguments.t()) :: :ok
  def lint(path, options) do
    full = Path.expand(path)

    for found <- Lint.run([Path.expand(folder(options))], context: [Source.builtin()]),
        found.path == full,
        do: Terminal.complain(to_string(%{found | path: path}))

    :ok
  end
end
