defmodule Skillbook.CLI.Install do
  @moduledoc false
  # `skillbook install`: installs skills, with `Skillbook.Package.install/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Terminal}
  alias Skillbook.Package

  # The default of `Skillbook.Package.install/2`.
  @folder ".agents/skills"

  @impl true
  def switches, do: [to: :string, list: :boolean] ++ Packages.source_switches()

  @impl true
  def args([_source | _] = args), do: {:ok, args}

  def args([]),
    do: {:error, "`install` expects a folder, an archive, a git repository or a website"}

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
          end,
          &next(&1, options.flags)
        )
    end
  end

  # The command that reads what is there now. Every command reads the default folder.
  defp next(outcomes, flags) do
    with %{name: name} <- Enum.find(outcomes, &(&1.action in [:installed, :unchanged])),
         false <- flags[:json] || false do
      to = flags[:to] || @folder
      dir = if Path.expand(to) == Path.expand(@folder), do: "", else: "--dir #{word(to)} "
      Terminal.put(["Next: skillbook ", Terminal.safe("#{dir}get #{word(name)}")])
    end
  end

  # A word of a shell.
  defp word(text) do
    if text =~ ~r{\A[\w./~-]+\z},
      do: text,
      else: "'" <> String.replace(text, "'", "'\\''") <> "'"
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
