defmodule Skillbook.CLI.Update do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Packages
  alias Skillbook.Package

  @impl true
  def switches,
    do: [to: :string, yes: :boolean, strict: :boolean, force: :boolean, json: :boolean]

  @impl true
  def args(names), do: {:ok, names}

  @impl true
  def summary, do: "bring installed skills to what their sources have now"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] update [NAME...] [--to FOLDER] [--yes]

    Brings installed skills, or those named, to what their sources have now: the branch that was asked for, the folder or the
    archive. What a skill can do beyond what was accepted is shown, with what changed in these files, and asked about.

      --to FOLDER       the folder of installed skills (default: .agents/skills)
      --yes             accept what the skills can do
      --strict          only skills that pass the Agent Skills format's own check
      --force           replace what was changed by hand
      --json            as a JSON array, with all that was found

    Exit status: 1 if one of them could not be updated or was not accepted.

    Examples:
      skillbook update
      skillbook update pdf docx --yes
    """
  end

  @impl true
  def run(%{args: names} = options) do
    Packages.run(options, "update", [:to, :strict, :force], fn given ->
      Package.update(names, [accept: Packages.accept(options)] ++ given)
    end)
  end
end
