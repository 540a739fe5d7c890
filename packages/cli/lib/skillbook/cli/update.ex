defmodule Skillbook.CLI.Update do
  @moduledoc false
  # `skillbook update`: updates installed skills from their sources.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches,
    do: [to: :string, yes: :boolean, strict: :boolean, force: :boolean, json: :boolean]

  @impl true
  def args(names), do: {:ok, names}

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "update", [:to, :strict, :force], fn given ->
      Package.update(names, [accept: Packages.accept(options)] ++ given)
    end)
  end
end
