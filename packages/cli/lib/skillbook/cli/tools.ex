defmodule Skillbook.CLI.Tools do
  @moduledoc false
  # `skillbook tools`: prints the result of `Skillbook.Tools.definitions/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.{OptionError, Tools}
  alias Skillbook.Tools.Shape

  @impl true
  def switches,
    do: [shape: {:one_of, Shape.all()}, names: :keep, limit: {:number, 1, nil}]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`tools` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print the commands as tools for a model API (JSON)"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] tools [--shape SHAPE] [--names GLOB ...] [--limit N]

    Prints a JSON array for the field `tools` of a request: the definitions of get_skill and of
    the commands and skills that the profile can see.

    Options:
      --shape SHAPE     openai, openai_strict, openai_responses, anthropic, gemini, mcp, or llama
                        for llama.cpp and other servers of the OpenAI interface (default: openai)
      --names GLOB      only entries with a matching name; repeatable
      --limit N         maximum number of tools (default: 128); the description of get_skill has
                        the number of tools left out

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
      view |> Tools.definitions([{:names, names} | flags]) |> Terminal.json()
    end)
  end

  @doc "Prints the function's result for the view and the globs of `--names` (`nil` without)."
  def with_names(options, command, fun) do
    names = with [] <- Keyword.get_values(options.flags, :names), do: nil

    Session.with_book(options, :read, fn book ->
      Terminal.put(fun.(Session.view(book, options), names))
    end)
  rescue
    error in OptionError ->
      {:invalid, expected, glob} = error.problem

      Terminal.usage_error("--names expects #{expected}, got: #{glob}", "#{command} --help")
  end
end
