defmodule Skillbook.CLI.Lint do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.Terminal
  alias Skillbook.Support.JSON
  alias Skillbook.{CLI, Diagnostic, Lint, Source}

  @impl true
  def switches, do: [format: {:one_of, [:text, :json, :sarif]}, fix: :boolean, strict: :boolean]

  @impl true
  def args(paths) do
    case Enum.reject(paths, &File.exists?/1) do
      [] -> {:ok, paths}
      [path | _] -> {:error, "`lint` expects folders or files, and there is nothing at #{path}"}
    end
  end

  @impl true
  def summary, do: "look for mistakes in skills, and fix those with one right answer"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] lint [PATH...] [--format text|json|sarif] [--fix] [--strict]

    Looks for mistakes in skills. PATH is a folder of skills, a skill's own folder, or a file; without one it is the folders
    of --dir. Examples may use the commands of these folders and the built-in ones. With --profile or --grant, pages that the
    profile does not see are passed over, and commands that it does not see are none. docs/diagnostics.md says what each code
    means.

      --format FORMAT   text, json (an array of objects) or sarif (SARIF 2.1.0); text if it is left out
      --fix             mend what can only be meant in one way
      --strict          each SKILL.md must pass the Agent Skills format's own validator

    Exit status: 0 nothing or only hints (info), 1 errors or warnings, 2 wrong usage.

    Examples:
      skillbook lint
      skillbook lint skills --profile guest
      skillbook lint skills/email/send.md --fix
      skillbook lint skills --strict --format sarif > skills.sarif
    """
  end

  @impl true
  def run(%{args: [], dirs: []}) do
    Terminal.complain(
      "`lint` expects folders or files; there is no ./skills here, and no --dir\nSee: skillbook lint --help"
    )

    2
  end

  def run(options) do
    dirs = Enum.map(options.dirs, &Path.expand/1)

    targets =
      if options.args == [],
        do: dirs,
        else: options.args |> Enum.map(&Path.expand/1) |> Enum.uniq()

    sources = targets |> Enum.map(&root(&1, dirs)) |> Enum.uniq()
    wanted = fn found -> Enum.any?(targets, &below?(found.path, &1)) end

    lint = [
      strict: options.flags[:strict] || false,
      profile: if(options.profile_given, do: CLI.Session.profile(options)),
      context: builtins(options, sources) ++ Enum.reject(dirs, &(&1 in sources))
    ]

    found =
      if options.flags[:fix] do
        {done, left} = Lint.fix(sources, lint, wanted)
        Enum.each(done, &tell/1)
        left
      else
        sources |> Lint.run(lint) |> Enum.filter(wanted)
      end

    put(options.flags[:format] || :text, found, options)
    if Enum.all?(targets, &empty?/1), do: nothing(targets)
    if Enum.any?(found, &(&1.severity != :info)), do: 1, else: 0
  end

  # Nothing wrong with nothing is worth a word: it may be the wrong folder.
  defp nothing(targets) do
    shown = Enum.map_join(targets, ", ", &Path.relative_to_cwd/1)
    Terminal.complain("there is no Markdown file to look at in #{shown}")
  end

  defp empty?(path) do
    if File.dir?(path),
      do: path |> Path.join("**/*.[mM][dD]") |> Path.wildcard() == [],
      else: path |> Path.extname() |> String.downcase() != ".md"
  end

  # What a page is depends on the folders above it, so it is read as a part of its source where that is known.
  defp root(path, dirs) do
    Enum.find(dirs, &below?(path, &1)) || if File.dir?(path), do: path, else: Path.dirname(path)
  end

  defp below?(path, root), do: path == root or String.starts_with?(path, root <> "/")

  # The built-in skills are no context of themselves; the build's folder of them may be a link to the project's.
  defp builtins(options, sources) do
    folders = for source <- sources, folder <- upwards(source), do: identity(folder)

    for builtin <- [Source.builtin(), Source.builtin(:vaults)],
        options.builtins,
        identity(builtin.path) not in folders,
        do: builtin
  end

  defp upwards(folder) do
    case Path.dirname(folder) do
      ^folder -> [folder]
      parent -> [folder | upwards(parent)]
    end
  end

  defp identity(folder) do
    with {:ok, stat} <- File.stat(folder), do: {stat.major_device, stat.inode}
  end

  defp tell({path, {:ok, count}}),
    do: IO.puts(:stderr, "fixed #{count(count, "place")} in #{Path.relative_to_cwd(path)}")

  defp tell({_path, {:error, error}}), do: Terminal.complain(Exception.message(error))

  defp put(:json, found, _options),
    do:
      found
      |> Enum.map(&(&1 |> relative() |> JSON.diagnostic()))
      |> JSON.encode()
      |> Terminal.put()

  defp put(:sarif, found, _options),
    do: found |> CLI.Sarif.log(File.cwd!()) |> JSON.encode() |> Terminal.put()

  defp put(:text, [], _options), do: Terminal.put("Nothing is wrong.")

  defp put(:text, found, options) do
    terminal = Terminal.new(options.color)

    for {path, of_file} <- found |> Enum.group_by(& &1.path) |> Enum.sort() do
      lines = lines(path)
      Enum.each(of_file, &Terminal.put([text(&1, lines, terminal), "\n"]))
    end

    Terminal.put(summary(found))
  end

  defp relative(found), do: %{found | path: Path.relative_to_cwd(found.path)}

  defp lines(path) do
    case File.read(path) do
      {:ok, text} -> text |> String.split("\n") |> List.to_tuple()
      {:error, _} -> {}
    end
  end

  defp text(found, lines, terminal) do
    place = [Path.relative_to_cwd(found.path), found.line, found.column] |> Enum.reject(&is_nil/1)
    safe = &Terminal.safe(terminal, &1)

    [
      Terminal.style(terminal, :bright, safe.(Enum.join(place, ":"))),
      ": ",
      Terminal.style(terminal, color(found.severity), to_string(found.severity)),
      [": ", safe.(found.message), " [", to_string(found.code), "]"],
      excerpt(found, lines, terminal),
      if(found.hint, do: ["\n  hint: ", safe.(found.hint)], else: []),
      if(found.fix, do: "\n  --fix mends this", else: [])
    ]
  end

  defp color(:error), do: :red
  defp color(:warning), do: :yellow
  defp color(:info), do: :cyan

  # The line, with a caret under the place if there is one.
  defp excerpt(%{line: line} = found, lines, terminal)
       when is_integer(line) and line <= tuple_size(lines) do
    text = elem(lines, line - 1)

    if String.valid?(text) do
      {shown, caret} = Diagnostic.excerpt(text, found.column || 1)
      number = to_string(line)

      caret =
        if found.column,
          do: ["\n  ", String.duplicate(" ", String.length(number)), " | ", caret],
          else: []

      [
        "\n  ",
        Terminal.style(terminal, :faint, [number, " | "]),
        Terminal.safe(terminal, shown),
        caret
      ]
    else
      []
    end
  end

  defp excerpt(_found, _lines, _terminal), do: []

  defp summary(found) do
    counts = Enum.frequencies_by(found, & &1.severity)

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
