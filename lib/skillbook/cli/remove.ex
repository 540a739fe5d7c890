defmodule Skillbook.CLI.Remove do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches, do: [to: :string, force: :boolean, json: :boolean]

  @impl true
  def args([]), do: {:error, "`remove` expects the names of installed skills"}
  def args(names), do: {:ok, names}

  @impl true
  def summary, do: "take installed skills away"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] remove NAME... [--to FOLDER] [--force]

    Takes installed skills away, and out of the lock file.

      --to FOLDER       the folder of installed skills (default: .agents/skills)
      --force           even if they were changed by hand
      --json            as a JSON array

    Exit status: 1 if one of them could not be removed.

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
