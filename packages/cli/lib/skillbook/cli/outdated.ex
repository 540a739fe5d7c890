defmodule Skillbook.CLI.Outdated do
  @moduledoc false
  # `skillbook outdated`: compares installed skills with their sources.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches, do: [to: :string, json: :boolean]

  @impl true
  def args(names), do: {:ok, names}

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "outdated", [:to], fn given -> Package.outdated(names, given) end)
  end
end
