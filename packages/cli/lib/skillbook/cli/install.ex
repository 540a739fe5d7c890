defmodule Skillbook.CLI.Install do
  @moduledoc false
  # `skillbook install`: installs skills, with `Skillbook.Package.install/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Terminal}
  alias Skillbook.Package

  @impl true
  def switches, do: [to: :string, list: :boolean] ++ Packages.source_switches()

  @impl true
  def args([_source | _] = args), do: {:ok, args}

  def args([]),
    do: {:error, "`install` expects a folder, an archive, a git repository or a website"}

  @impl true
  def summary, do: "install skills from a folder, an archive, a git repository or a website"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] install SOURCE [NAME ...] [--all] [--to FOLDER] [--yes]

    Installs skills, which are folders with a SKILL.md. SOURCE is a folder, an archive (.zip,
    .tar, .tar.gz, .tgz; a file or an https address), a git repository (https://..., ssh://...,
    user@host:path, or a path) or a website that publishes skills (https://example.com, or
    https://example.com#NAME). A source with several skills needs NAME or --all.

    For each skill it lists its scripts, hosts, commands and suspicious texts, and asks. Without a
    terminal, only --yes installs. Nothing of a skill is run, and its scripts are not executable.
    FOLDER/skills.lock.json records the installed skills; `skillbook --dir FOLDER list` reads
    them. docs/packages.md has the rules.

    Options:
      --list            list the skills of the source, and install nothing
      --to FOLDER       folder to install into (default: .agents/skills)
      --all             all skills of the source
      --branch NAME     branch of a git repository
      --tag NAME        tag of a git repository
      --commit ID       commit of a git repository, with all its digits
      --path PATH       folder below the source to search for skills
      --yes             accept the skills without asking
      --strict          only skills that pass the validator of the Agent Skills format
      --force           replace a folder that was not installed or was changed by hand
      --json            print a JSON array with all findings

    Exit status: 1 if a skill was not installed.

    Examples:
      skillbook install https://github.com/anthropics/skills --list
      skillbook install https://github.com/anthropics/skills pdf docx
      skillbook install ~/Downloads/skills.zip --all --yes --to skills/vendor
      skillbook install git@example.com:team/skills.git review --tag v1.2
      skillbook install https://example.com#git-workflow
    """
  end

  @impl true
  def run(%{args: [source | names], flags: flags} = options) do
    cond do
      flags[:list] ->
        list(source, options)

      flags[:all] && names != [] ->
        Terminal.usage_error("`install` takes names or --all, got both", "install --help")

      true ->
        Packages.run(
          options,
          "install",
          [:to, :branch, :tag, :commit, :path, :strict, :force],
          fn given ->
            Package.install(
              source,
              Packages.chosen(names, options) ++ [accept: Packages.accept(options)] ++ given
            )
          end
        )
    end
  end

  defp list(source, options) do
    case Package.find(source, Keyword.take(options.flags, [:branch, :tag, :commit, :path])) do
      {:ok, skills} ->
        if options.flags[:json],
          do: put_json(skills),
          else: put(skills, Terminal.new(options.color))

        0

      {:error, error} ->
        Packages.complain(error, "install")
        1
    end
  end

  defp put_json(skills) do
    for(skill <- skills, do: Map.take(skill, [:name, :title, :description, :path, :problem]))
    |> Terminal.put_json()
  end

  defp put([], _terminal), do: Terminal.complain("no skill found: no folder has a SKILL.md")

  defp put(skills, terminal) do
    for skill <- skills do
      text =
        if skill.problem,
          do: skill.problem,
          else: skill.description |> String.split() |> Enum.join(" ")

      room = terminal.width || 10_000

      text =
        if String.length(text) > room - 2,
          do: String.slice(text, 0, max(room - 3, 10)) <> "…",
          else: text

      Terminal.put([
        Terminal.style(terminal, :bright, Terminal.line(skill.name)),
        Terminal.style(terminal, :faint, ["  ", Terminal.line(skill.path)]),
        "\n  ",
        Terminal.safe(text)
      ])
    end
  end
end
