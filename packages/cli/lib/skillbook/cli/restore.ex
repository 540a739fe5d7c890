defmodule Skillbook.CLI.Restore do
  @moduledoc false
  # `skillbook restore`: restores installed skills from the lock file.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches, do: [to: :string, force: :boolean, json: :boolean]

  @impl true
  def args(names), do: {:ok, names}

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "restore", [:to, :force], fn given -> Package.restore(names, given) end)
  end
end
