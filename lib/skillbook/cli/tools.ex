defmodule Skillbook.CLI.Tools do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.JSON
  alias Skillbook.{OptionError, Tools}

  @impl true
  def switches,
    do: [shape: {:one_of, [:openai, :anthropic, :mcp]}, names: :keep, limit: {:number, 1, nil}]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`tools` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print the commands as the tools of a model's interface, JSON"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] tools [--shape SHAPE] [--names GLOB …] [--limit N]

    Prints the definitions of get_skill and of the commands and skills that the profile may see, as a JSON array for the
    field `tools` of a request.

      --shape SHAPE     openai (the default), anthropic or mcp
      --names GLOB      only entries of such a name; may be given several times
      --limit N         at most so many (default: 128); the description of get_skill says how many are left out

    Examples:
      skillbook tools
      skillbook tools --shape anthropic --names 'tasks.*' --names 'memory.*'
      skillbook --dir skills --profile mail tools --shape mcp
    """
  end

  @impl true
  def run(options) do
    with_names(options, "tools", fn view, names ->
      flags = Keyword.take(options.flags, [:shape, :limit])
      view |> Tools.definitions([{:names, names} | flags]) |> JSON.encode()
    end)
  end

  @doc "Prints what the function gives of the view and of the globs of `--names`, `nil` if there is none."
  def with_names(options, command, fun) do
    names = with [] <- Keyword.get_values(options.flags, :names), do: nil

    Session.with_book(options, :read, fn book ->
      Terminal.put(fun.(Session.view(book, options), names))
    end)
  rescue
    error in OptionError ->
      {:invalid, expected, glob} = error.problem

      Terminal.complain(
        "--names expects #{expected}, got: #{glob}\nSee: skillbook #{command} --help"
      )

      2
  end
end
