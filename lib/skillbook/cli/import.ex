defmodule Skillbook.CLI.Import do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Session, Terminal}
  alias Skillbook.Package

  @label "imported"

  @impl true
  def switches, do: Packages.source_switches()

  @impl true
  def args([_source | _] = args), do: {:ok, args}
  def args([]), do: {:error, "`import` expects a folder, an archive or a git repository"}

  @impl true
  def summary, do: "bring skills of a folder, an archive or a git repository into the store"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] import SOURCE [NAME...] [--all] [--yes]

    Writes skills of SOURCE (as `install` has it) into the store, where they can be changed and have versions. Shows what each can
    do, and asks; where nobody can answer it is imported only with --yes. They have low trust and the label imported, so that
    only who holds it sees them: skillbook --grant imported list. A skill with files beside its SKILL.md can only be installed.

      --all             all of them
      --branch NAME     of a git repository; also --tag NAME, or --commit ID with all its digits
      --path PATH       a folder below the source in which skills are looked for
      --yes             accept what the skills can do
      --strict          only skills that pass the Agent Skills format's own check
      --force           write a new version of an entry of that name
      --json            as a JSON array, with all that was found

    Exit status: 1 if one of them was not imported.

    Examples:
      skillbook import ~/notes/weekly-report
      skillbook import https://github.com/anthropics/skills brand-guidelines --yes
    """
  end

  @impl true
  def run(%{args: [source | names], flags: flags} = options) do
    if flags[:all] && names != [] do
      Terminal.complain("`import` takes names or --all, got both\nSee: skillbook import --help")
      2
    else
      Session.with_book(options, :write, fn book ->
        import_skills(view(book, options), source, names, options)
      end)
    end
  end

  # Who imports sees what they imported.
  defp view(book, options) do
    profile = Session.profile(options)
    Skillbook.view(book, %{profile | grants: [@label | profile.grants]})
  end

  defp import_skills(view, source, names, options) do
    chosen = Packages.chosen(names, options)

    Packages.run(options, "import", [:branch, :tag, :commit, :path, :strict, :force], fn given ->
      Package.into_store(
        view,
        source,
        chosen ++ [labels: [@label], accept: Packages.accept(options)] ++ given
      )
    end)
  end
end
