defmodule Skillbook.CLI.Import do
  @moduledoc false
  # `skillbook import`: imports skills into the store, with `Skillbook.Package.into_store/3`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Session, Terminal}
  alias Skillbook.{Package, Store}

  @label "imported"
  # Names in the message about hidden skills.
  @max_listed 3

  @impl true
  def switches, do: Packages.source_switches()

  @impl true
  def args([_source | _] = args), do: {:ok, args}

  def args([]),
    do: {:error, "`import` expects a folder, an archive, a git repository or a website"}

  @impl true
  def summary,
    do: "import skills of a folder, an archive, a repository or a website into the store"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] import SOURCE [NAME ...] [--all] [--yes]

    Writes skills into the store, where they can be edited and have versions. SOURCE is as for
    `install`. For each skill it lists its scripts, hosts, commands and suspicious texts, and
    asks. Without a terminal, only --yes imports.

    Imported skills have low trust and the label `imported`, so only profiles with that label see
    them: skillbook --grant imported run -c skills.list. If --profile does not see them, a message
    says so. A skill with files beside its SKILL.md cannot be imported; install it instead. A
    workflow becomes a page in the last folder of --dir, or else in ./skills; its steps run once
    the line `trust: low` is removed from the page.

    Options:
      --all             all skills of the source
      --branch NAME     branch of a git repository
      --tag NAME        tag of a git repository
      --commit ID       commit of a git repository, with all its digits
      --path PATH       folder below the source to search for skills
      --yes             accept the skills without asking
      --strict          only skills that pass the validator of the Agent Skills format
      --force           add a new version to an entry of that name
      --json            print a JSON array with all findings

    Exit status: 1 if a skill was not imported.

    Examples:
      skillbook import ~/notes/weekly-report
      skillbook import https://github.com/anthropics/skills brand-guidelines --yes
    """
  end

  @impl true
  def run(%{args: [source | names], flags: flags} = options) do
    if flags[:all] && names != [] do
      Terminal.usage_error("`import` takes names or --all, got both", "import --help")
    else
      Session.with_book(options, :write, &import_skills(&1, source, names, options))
    end
  end

  # The profile of an import can see the imported skills.
  defp view(book, options) do
    profile = Session.profile(options)
    Skillbook.view(book, %{profile | grants: [@label | profile.grants]})
  end

  defp import_skills(book, source, names, options) do
    keys = [:branch, :tag, :commit, :path, :strict, :force]
    accept = [labels: [@label], accept: Packages.accept(options)]

    run = fn given ->
      given = Packages.chosen(names, options) ++ accept ++ given
      Package.into_store(view(book, options), source, given)
    end

    Packages.run(options, "import", keys, run, &tell_hidden(book, options, &1))
  end

  # Otherwise somebody who lists the skills next would miss them.
  defp tell_hidden(book, options, outcomes) do
    view = Session.view(book, options)

    hidden =
      for %{action: action, name: name} <- outcomes,
          action != :failed,
          match?({:error, _}, Store.fetch(view, name)),
          do: name

    if hidden != [] do
      Terminal.complain(
        "the profile #{options.profile} does not see #{listed(hidden)}, which " <>
          "#{if match?([_], hidden), do: "has", else: "have"} the label #{@label}; " <>
          "add --grant #{@label}, or in an application `grants: [\"#{@label}\"]` to the profile"
      )
    end
  end

  defp listed(names) do
    {first, more} = Enum.split(names, @max_listed)
    listed = Enum.join(first, ", ")
    if more == [], do: listed, else: "#{listed} and #{length(more)} more"
  end
end
