defmodule Skillbook.CLI.Grammar do
  @moduledoc false
  # `skillbook grammar`: prints the result of `Skillbook.Grammar.gbnf/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Tools
  alias Skillbook.Grammar

  @impl true
  def switches, do: [names: :keep]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`grammar` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print a grammar of the commands for local models (GBNF)"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] grammar [--names GLOB ...]

    Prints a grammar in the format of llama.cpp. It restricts replies to the commands that the
    profile can see, with the flags that their pages declare. `chat --grammar` sends the same
    grammar.

    Options:
      --names GLOB      only entries with a matching name; repeatable

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
