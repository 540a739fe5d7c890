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
  def summary, do: "remove installed skills"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] remove NAME... [--to FOLDER] [--force]

    Removes installed skills and their entries in the lock file.

    Options:
      --to FOLDER       folder of installed skills (default: .agents/skills)
      --force           also remove skills that were changed by hand
      --json            print a JSON array

    Exit status: 1 if a skill could not be removed.

    Examples:
      skillbook remove pdf
      skillbook remove pdf docx --to skills/vendor
    """
  end

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "remove", [:to, :force], fn given -> Package.remove(names, given) end)
  end
end
