defmodule Skillbook.CLI.Install do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Terminal}
  alias Skillbook.Package
  alias Skillbook.Support.JSON

  @impl true
  def switches, do: [to: :string, list: :boolean] ++ Packages.source_switches()

  @impl true
  def args([_source | _] = args), do: {:ok, args}
  def args([]), do: {:error, "`install` expects a folder, an archive or a git repository"}

  @impl true
  def summary, do: "install skills from a folder, an archive or a git repository"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] install SOURCE [NAME...] [--all] [--to FOLDER] [--yes]

    Installs skills (folders with a SKILL.md) of SOURCE: a folder, an archive (.zip, .tar, .tar.gz, .tgz; a file or https://…),
    or a git repository (https://…, ssh://…, user@host:path, or a path). Without a NAME the source must have one skill. Shows what each can do, and
    asks; where nobody can answer it is installed only with --yes. Nothing of a skill is run, and its scripts are not
    executable. FOLDER/skills.lock.json says what is installed. `skillbook --dir FOLDER list` reads what is there.
    docs/packages.md has the rules.

      --list            only list the skills of the source
      --all             all of them
      --to FOLDER       where to (default: .agents/skills)
      --branch NAME     of a git repository; also --tag NAME, or --commit ID with all its digits
      --path PATH       a folder below the source in which skills are looked for
      --yes             accept what the skills can do
      --strict          only skills that pass the Agent Skills format's own check
      --force           replace what is in the way or was changed by hand
      --json            as a JSON array, with all that was found

    Exit status: 1 if one of them was not installed.

    Examples:
      skillbook install https://github.com/anthropics/skills --list
      skillbook install https://github.com/anthropics/skills pdf docx
      skillbook install ~/Downloads/skills.zip --all --yes --to skills/vendor
      skillbook install git@example.com:team/skills.git review --tag v1.2
    """
  end

  @impl true
  def run(%{args: [source | names], flags: flags} = options) do
    cond do
      flags[:list] ->
        list(source, options)

      flags[:all] && names != [] ->
        Terminal.complain(
          "`install` takes names or --all, got both\nSee: skillbook install --help"
        )

        2

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
    |> JSON.encode()
    |> Terminal.put()
  end

  defp put([], _terminal), do: Terminal.complain("there is no skill: no folder with a SKILL.md")

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
        Terminal.style(terminal, :bright, skill.name),
        Terminal.style(terminal, :faint, ["  ", Terminal.safe(terminal, skill.path)]),
        "\n  ",
        Terminal.safe(terminal, text)
      ])
    end
  end
end
