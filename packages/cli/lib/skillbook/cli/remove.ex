defmodule Skillbook.CLI.Remove do
  @moduledoc false
  # `skillbook remove`: removes installed skills.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches, do: [to: :string, force: :boolean, json: :boolean]

  @impl true
  def args([]), do: {:error, "`remove` expects the names of installed skills"}
  def args(names), do: {:ok, names}

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "remove", [:to, :force], fn given -> Package.remove(names, given) end)
  end
end
