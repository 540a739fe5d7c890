defmodule Skillbook.CLI.Grammar do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Tools
  alias Skillbook.Grammar

  @impl true
  def switches, do: [names: :keep]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`grammar` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print a grammar that holds a local model to the commands, GBNF"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] grammar [--names GLOB …]

    Prints the grammar of replies whose commands are those that the profile may see, with the flags that their pages declare,
    as llama.cpp reads it. `chat --grammar` sends the same.

      --names GLOB      only entries of such a name; may be given several times

    Examples:
      skillbook grammar > commands.gbnf
      llama-cli --model qwen3.gguf --grammar-file commands.gbnf
      skillbook grammar --names 'tasks.*'
    """
  end

  @impl true
  def run(options) do
    Tools.with_names(options, "grammar", fn view, names ->
      view |> Grammar.gbnf(names: names) |> String.trim_trailing()
    end)
  end
end
