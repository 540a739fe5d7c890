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
  def summary, do: "update installed skills from their sources"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] update [NAME ...] [--to FOLDER] [--yes]

    Updates installed skills from their branch, tag, folder or archive: all of them, or the named
    ones. It shows new findings with a diff of their files, and asks.

    Options:
      --to FOLDER       folder of installed skills (default: .agents/skills)
      --yes             accept the skills without asking
      --strict          only skills that pass the validator of the Agent Skills format
      --force           replace skills that were changed by hand
      --json            print a JSON array with all findings

    Exit status: 1 if a skill was not updated or not accepted.

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
