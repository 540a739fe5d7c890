defmodule Skillbook.CLI.Lint do
  @moduledoc false
  # `skillbook lint`: runs `Skillbook.Lint`, and prints diagnostics as text, JSON or SARIF.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Sarif, Session, Targets, Terminal}
  alias Skillbook.Support.{JSON, ReadFile}
  alias Skillbook.{Diagnostic, Lint, Source}

  @impl true
  def switches, do: [format: {:one_of, [:text, :json, :sarif]}, fix: :boolean, strict: :boolean]

  @impl true
  def args(paths), do: Targets.check("lint", paths)

  @impl true
  def summary, do: "find mistakes in skills, and fix the unambiguous ones"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] lint [PATH ...] [--format FORMAT] [--fix] [--strict]

    Finds mistakes in skills. PATH is a folder of skills, the folder of one skill, or a file
    (default: the folders of --dir). Examples in pages may use commands of these folders and
    built-in commands.

    With --profile or --grant, only pages that the profile can see are checked, and only commands
    that it can see exist. docs/diagnostics.md explains each code.

    Options:
      --format FORMAT   text, json (an array of objects) or sarif (SARIF 2.1.0) (default: text)
      --fix             fix mistakes that have only one possible fix
      --strict          also run the validator of the Agent Skills format on each SKILL.md

    Exit status: 0 no errors or warnings, 1 errors or warnings, 2 wrong usage, 3 there is no pack
    of that name.

    Examples:
      skillbook lint
      skillbook lint skills --profile guest
      skillbook lint skills/email/send.md --fix
      skillbook lint skills --strict --format sarif > skills.sarif
    """
  end

  @impl true
  def run(%{args: [], dirs: []} = options) do
    if Session.modules() == [], do: nothing_to_lint(), else: lint(options)
  end

  def run(options), do: lint(options)

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

    put(options.flags[:format] || :text, diagnostics, options)
    if targets != [] and Enum.all?(targets, &empty?/1), do: warn_empty(targets)
    if Enum.any?(diagnostics, &(&1.severity != :info)), do: 1, else: 0
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

  defp put(:json, diagnostics, _options),
    do:
      diagnostics
      |> Enum.map(&(&1 |> relative() |> JSON.diagnostic()))
      |> Terminal.put_json()

  defp put(:sarif, diagnostics, _options),
    do: diagnostics |> Sarif.log(File.cwd!()) |> Terminal.put_json()

  defp put(:text, [], _options), do: Terminal.put("No problems found.")

  defp put(:text, diagnostics, options) do
    terminal = Terminal.new(options.color)

    for {path, of_file} <- diagnostics |> Enum.group_by(& &1.path) |> Enum.sort() do
      lines = lines(path)
      Enum.each(of_file, &Terminal.put([text(&1, lines, terminal), "\n"]))
    end

    Terminal.put(summary(diagnostics))
  end

  defp relative(diagnostic), do: %{diagnostic | path: Path.relative_to_cwd(diagnostic.path)}

  defp lines(path) do
    case ReadFile.regular(path) do
      {:ok, text} -> text |> String.split("\n") |> List.to_tuple()
      {:error, _} -> {}
    end
  end

  defp text(diagnostic, lines, terminal) do
    place =
      [Path.relative_to_cwd(diagnostic.path), diagnostic.line, diagnostic.column]
      |> Enum.reject(&is_nil/1)

    safe = &Terminal.line/1

    [
      Terminal.style(terminal, :bright, safe.(Enum.join(place, ":"))),
      ": ",
      Terminal.style(terminal, color(diagnostic.severity), to_string(diagnostic.severity)),
      [": ", safe.(diagnostic.message), " [", to_string(diagnostic.code), "]"],
      excerpt(diagnostic, lines, terminal),
      if(diagnostic.hint, do: ["\n  hint: ", safe.(diagnostic.hint)], else: []),
      if(diagnostic.fix, do: "\n  --fix corrects this", else: [])
    ]
  end

  defp color(:error), do: :red
  defp color(:warning), do: :yellow
  defp color(:info), do: :cyan

  # The line, with a caret under the column, if there is one.
  defp excerpt(%{line: line} = diagnostic, lines, terminal)
       when is_integer(line) and line <= tuple_size(lines) do
    text = elem(lines, line - 1)

    if String.valid?(text) do
      {line_excerpt, caret} = Diagnostic.excerpt(text, diagnostic.column || 1)
      number = to_string(line)

      caret =
        if diagnostic.column,
          do: ["\n  ", String.duplicate(" ", String.length(number)), " | ", caret],
          else: []

      [
        "\n  ",
        Terminal.style(terminal, :faint, [number, " | "]),
        line_excerpt,
        caret
      ]
    else
      []
    end
  end

  defp excerpt(_diagnostic, _lines, _terminal), do: []

  defp summary(diagnostics) do
    counts = Enum.frequencies_by(diagnostics, & &1.severity)

    for(
      {severity, word} <- [error: "error", warning: "warning", info: "info"],
      n = counts[severity],
      do: count(n, word)
    )
    |> Enum.join(", ")
  end

  defp count(1, word), do: "1 #{word}"
  defp count(n, "info"), do: "#{n} infos"
  defp count(n, word), do: "#{n} #{word}s"
end
