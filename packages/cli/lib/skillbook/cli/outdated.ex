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
  def summary, do: "list installed skills and their state"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] outdated [NAME ...] [--to FOLDER] [--json]

    Lists installed skills, all of them or the named ones, with their state: current, outdated
    (the source has other content), pinned (to a commit) or changed (by hand). Changes nothing.

    Options:
      --to FOLDER       folder of installed skills (default: .agents/skills)
      --json            print a JSON array

    Exit status: 1 if a source cannot be reached or a skill's folder is missing.

    Examples:
      skillbook outdated
      skillbook outdated pdf --json
    """
  end

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "outdated", [:to], fn given -> Package.outdated(names, given) end)
  end
end
