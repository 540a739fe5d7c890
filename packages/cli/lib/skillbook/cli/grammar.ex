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
  def run(options) do
    Tools.with_names(options, "grammar", fn view, names ->
      view |> Grammar.gbnf(names: names) |> String.trim_trailing()
    end)
  end
end
