defmodule Skillbook.CLI.Lint do
  @moduledoc false
  # `skillbook lint`: runs `Skillbook.Lint`, and prints diagnostics as text, JSON or SARIF.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Targets, Terminal}
  alias Skillbook.{Lint, Native, Source}

  @impl true
  def switches,
    do: [format: {:one_of, [:text, :json, :sarif, :github]}, fix: :boolean, strict: :boolean]

  @impl true
  def args(paths), do: Targets.check("lint", paths)

  @impl true
  def run(options) do
    if Targets.of(options) == {[], []} and Session.modules() == [],
      do: nothing_to_lint(),
      else: lint(options)
  end

  defp nothing_to_lint do
    Terminal.usage_error(
      "`lint` expects folders or files; ./skills does not exist, and --dir is missing",
      "lint --help"
    )
  end

  defp lint(options) do
    case builtins(options) do
      {:ok, builtins} ->
        lint(options, builtins)

      {:error, error} ->
        Terminal.complain(["cannot start: ", Exception.message(error)])
        3
    end
  end

  # Examples may use all built-in commands, also those that need a vault or an account.
  defp builtins(%{builtins: wanted} = options) do
    with {:ok, chosen} <- Session.builtins(options) do
      if wanted == true or (is_list(wanted) and "*" in wanted),
        do: {:ok, Enum.map([:skills, :vaults, :connections], &Source.builtin/1)},
        else: {:ok, chosen}
    end
  end

  defp lint(options, builtins) do
    {targets, folders} = Targets.of(options)
    dirs = Enum.map(options.dirs, &Path.expand/1)
    modules = Session.modules()
    # Without paths, all folders and modules are linted.
    all? = options.args == []
    wanted = &(all? or Targets.below?(&1.path, targets))
    sources = if(all?, do: modules, else: []) ++ folders

    lint = [
      strict: options.flags[:strict] || false,
      profile: if(options.profile_given, do: Session.profile(options)),
      context: Targets.others(builtins, folders) ++ Enum.reject(modules ++ dirs, &(&1 in sources))
    ]

    diagnostics =
      if options.flags[:fix] do
        {done, left} = Lint.fix(sources, lint, wanted)
        Enum.each(done, &report_fix/1)
        left
      else
        sources |> Lint.run(lint) |> Enum.filter(wanted)
      end

    format = options.flags[:format] || :text
    terminal = Terminal.new(options.color)
    status = Terminal.printed(Native.report_lint(diagnostics, File.cwd!(), format, terminal))
    if targets != [] and Enum.all?(targets, &empty?/1), do: warn_empty(targets)
    status
  end

  # Without any Markdown file, the folder may be the wrong one.
  defp warn_empty(targets) do
    paths = Enum.map_join(targets, ", ", &Path.relative_to_cwd/1)
    Terminal.complain("no Markdown file in #{paths}")
  end

  defp empty?(path) do
    if File.dir?(path),
      do: path |> Path.join("**/*.[mM][dD]") |> Path.wildcard() == [],
      else: path |> Path.extname() |> String.downcase() != ".md"
  end

  defp report_fix({path, {:ok, count}}),
    do: Terminal.note("fixed #{count(count, "place")} in #{Path.relative_to_cwd(path)}")

  defp report_fix({_path, {:error, error}}), do: Terminal.complain(Exception.message(error))

  defp count(1, word), do: "1 #{word}"
  defp count(n, word), do: "#{n} #{word}s"
end
