defmodule Skillbook.CLI.Restore do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches, do: [to: :string, force: :boolean, json: :boolean]

  @impl true
  def args(names), do: {:ok, names}

  @impl true
  def summary, do: "bring installed skills to what the lock file says"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] restore [NAME...] [--to FOLDER] [--force]

    Brings the folder, or the skills named, to what its skills.lock.json says: what is missing is fetched at the locked commit
    and must have the locked content. Folders that the lock file does not name are left alone.

      --to FOLDER       the folder of installed skills (default: .agents/skills)
      --force           also replace what was changed by hand
      --json            as a JSON array

    Exit status: 1 if one of them could not be restored.

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
