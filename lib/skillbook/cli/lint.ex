defmodule Skillbook.CLI.Lint do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.{CLI, JSON, Lint, Source}
  alias Skillbook.CLI.Terminal

  # How much of a long line is shown before and after the place.
  @before 60
  @after_ 40

  @impl true
  def switches, do: [format: :string, fix: :boolean, strict: :boolean]

  @impl true
  def args([]), do: {:error, "`lint` expects folders or files"}

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
    Usage: skillbook [OPTIONS] lint PATH... [--format text|json|sarif] [--fix] [--strict]

    Looks for mistakes in skills. PATH is a folder of skills, a skill's own folder, or a file. Examples may use the built-in
    commands. docs/diagnostics.md says what each code means.

      --format FORMAT   text, json (an array of objects) or sarif (SARIF 2.1.0); text if it is left out
      --fix             mend what can only be meant in one way
      --strict          each SKILL.md must pass the Agent Skills format's own validator

    Exit status: 0 nothing or only hints (info), 1 errors or warnings, 2 wrong usage.

    Examples:
      skillbook lint skills
      skillbook lint skills/email/send.md --fix
      skillbook lint skills --strict --format sarif > skills.sarif
    """
  end

  @impl true
  def run(%{flags: flags} = options) do
    case flags[:format] || "text" do
      format when format in ~w(text json sarif) ->
        lint(options, format)

      other ->
        Terminal.complain(
          "--format expects one of text, json, sarif, got: #{other}\nSee: skillbook lint --help"
        )

        2
    end
  end

  defp lint(options, format) do
    targets = options.args |> Enum.map(&Path.expand/1) |> Enum.uniq()
    sources = targets |> Enum.map(&folder/1) |> Enum.uniq()
    files = Enum.reject(targets, &File.dir?/1)
    folders = targets -- files
    wanted = &(&1.path in files or Enum.any?(folders, fn folder -> below?(&1.path, folder) end))
    lint = [strict: options.flags[:strict] || false, context: context(options, sources)]

    found =
      if options.flags[:fix] do
        {done, left} = Lint.fix(sources, lint, wanted)
        Enum.each(done, &tell/1)
        left
      else
        sources |> Lint.run(lint) |> Enum.filter(wanted)
      end

    put(format, found, options)
    if Enum.any?(found, &(&1.severity != :info)), do: 1, else: 0
  end

  defp folder(path), do: if(File.dir?(path), do: path, else: Path.dirname(path))

  defp below?(path, folder), do: path == folder or String.starts_with?(path, folder <> "/")

  # The built-in skills are no context of themselves; the build's folder of them may be a link to the project's.
  defp context(options, sources) do
    builtin = Source.builtin()
    itself = identity(builtin.path)
    linted? = Enum.any?(sources, fn folder -> itself in Enum.map(upwards(folder), &identity/1) end)
    if options.builtins and not linted?, do: [builtin], else: []
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

  defp put("json", found, _options),
    do: found |> Enum.map(&(&1 |> relative() |> JSON.diagnostic())) |> JSON.encode() |> Terminal.put()

  defp put("sarif", found, _options),
    do: found |> Enum.map(&relative/1) |> CLI.Sarif.log() |> JSON.encode() |> Terminal.put()

  defp put("text", [], _options), do: Terminal.put("Nothing is wrong.")

  defp put("text", found, options) do
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

  # The line, or of a long one the part around the place, with a caret under the place.
  defp excerpt(%{line: line} = found, lines, terminal) when is_integer(line) and line <= tuple_size(lines) do
    text = lines |> elem(line - 1) |> String.trim_trailing("\r")

    if String.valid?(text) do
      {skipped, shown} = text |> String.to_charlist() |> part(found.column || 1)
      number = to_string(line)
      margin = String.duplicate(" ", String.length(number))
      shown = terminal |> Terminal.safe(shown |> List.to_string() |> String.replace("\t", " "))

      caret =
        if found.column, do: ["\n  ", margin, " | ", String.duplicate(" ", found.column - 1 - skipped), "^"]

      ["\n  ", Terminal.style(terminal, :faint, [number, " | "]), shown, caret || []]
    else
      []
    end
  end

  defp excerpt(_found, _lines, _terminal), do: []

  defp part(characters, column) do
    skipped = max(column - 1 - @before, 0)
    {skipped, characters |> Enum.drop(skipped) |> Enum.take(@before + @after_)}
  end

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
