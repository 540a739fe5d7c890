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
  def summary, do: "restore installed skills from the lock file"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] restore [NAME ...] [--to FOLDER] [--force]

    Makes the installed skills match skills.lock.json: all of them, or the named ones. Missing
    skills are fetched at the locked commit and must have the locked content. Other folders are
    not changed.

    Options:
      --to FOLDER       folder of installed skills (default: .agents/skills)
      --force           replace skills that were changed by hand
      --json            print a JSON array

    Exit status: 1 if a skill could not be restored.

    Examples:
      skillbook restore
      skillbook restore pdf --force
    """
  end

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "restore", [:to, :force], fn given -> Package.restore(names, given) end)
  end
end
