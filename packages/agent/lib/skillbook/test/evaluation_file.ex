defmodule Skillbook.Test.EvaluationFile do
  @moduledoc false
  # Finds and reads files of evaluations, in Skillbook's format and in those of other programs.
  # A mistake is a diagnostic, and the evaluation that has it is left out.

  alias Skillbook.Diagnostic
  alias Skillbook.Support.ReadFile
  alias Skillbook.Test.Evaluation
  alias Skillbook.Test.Format

  @max_bytes 1024 * 1024
  @max_files 10_000
  @max_depth 16

  @doc "The files of evaluations at paths and below folders, sorted."
  @spec find([Path.t()]) :: [Path.t()]
  def find(paths) do
    paths |> Enum.flat_map(&find_below(&1, @max_depth)) |> Enum.uniq() |> Enum.sort()
  end

  defp find_below(path, depth) do
    if File.dir?(path), do: in_folder(path, depth), else: own(path)
  end

  # A page or a SKILL.md stands for the evaluations beside it.
  defp own(path) do
    if format(path) do
      [path]
    else
      base = Path.rootname(Path.basename(path))
      folder = Path.dirname(path)

      for name <- names(folder), beside?(name, base), do: Path.join(folder, name)
    end
  end

  defp beside?(name, base) do
    if String.downcase(base) == "skill",
      do: String.downcase(name) in ["evals.yaml", "eval.md"],
      else: format(name) != nil and String.starts_with?(name, base <> ".")
  end

  defp in_folder(_folder, 0), do: []

  # Links are not followed, so that no folder is searched twice.
  defp in_folder(folder, depth) do
    for name <- Enum.take(names(folder), @max_files),
        path = Path.join(folder, name),
        found <- below(path, name, depth),
        do: found
  end

  defp below(path, name, depth) do
    case File.lstat(path) do
      {:ok, %{type: :directory}} ->
        if String.ends_with?(name, ".recordings"), do: [], else: in_folder(path, depth - 1)

      {:ok, %{type: :regular}} ->
        if format(path), do: [path], else: []

      _ ->
        []
    end
  end

  defp names(folder) do
    case File.ls(folder) do
      {:ok, names} ->
        for name <- Enum.sort(names),
            not String.starts_with?(name, "."),
            name != "node_modules",
            do: name

      {:error, _} ->
        []
    end
  end

  @doc "The module that reads a file, by its name; `nil` for other files."
  @spec format(Path.t()) :: module() | nil
  def format(path) do
    with {:ok, format} <- fetch_format(path), do: format, else: (:error -> nil)
  end

  defp fetch_format(path) do
    name = path |> Path.basename() |> String.downcase()

    cond do
      name == "evals.yaml" or String.ends_with?(name, ".evals.yaml") -> {:ok, Format.Skillbook}
      name == "eval.md" or String.ends_with?(name, ".eval.md") -> {:ok, Format.SkillKit}
      Path.basename(path) == "evals.json" and in_evals?(path) -> {:ok, Format.SkillCreator}
      true -> :error
    end
  end

  defp in_evals?(path), do: path |> Path.dirname() |> Path.basename() == "evals"

  @doc "Reads files. Evaluations with an error are left out."
  @spec read([Path.t()]) :: {[Evaluation.t()], [Diagnostic.t()]}
  def read(paths) do
    read = Enum.map(paths, &read_file/1)
    {Enum.flat_map(read, &elem(&1, 0)), Enum.flat_map(read, &elem(&1, 1))}
  end

  defp read_file(path) do
    with {:ok, text} <- ReadFile.read(path, @max_bytes),
         true <- String.valid?(text),
         {:ok, format} <- fetch_format(path) do
      {evaluations, diagnostics} = format.read(text, path)
      {evaluations, repeated} = unique(evaluations)
      sorted = Enum.sort_by(diagnostics ++ repeated, & &1.line)
      {evaluations, Enum.map(sorted, &%{&1 | path: path})}
    else
      false -> {[], [%{invalid(1, "expected UTF-8") | path: path}]}
      :error -> {[], [%{invalid(1, "expected the name of a file of evaluations") | path: path}]}
      {:error, :efbig} -> {[], [%{invalid(1, "expected up to #{@max_bytes} bytes") | path: path}]}
      {:error, reason} -> {[], [%{invalid(1, "#{:file.format_error(reason)}") | path: path}]}
    end
  end

  # The names of recordings are made from these.
  defp unique(evaluations) do
    {kept, repeated} =
      Enum.reduce(evaluations, {%{}, []}, fn evaluation, {kept, repeated} ->
        slug = Evaluation.slug(evaluation.name)

        if is_map_key(kept, slug),
          do: {kept, [{evaluation, kept[slug]} | repeated]},
          else: {Map.put(kept, slug, evaluation), repeated}
      end)

    names = for {evaluation, _first} <- repeated, do: evaluation

    {Enum.filter(evaluations, &(&1 not in names and kept[Evaluation.slug(&1.name)] == &1)),
     for {evaluation, first} <- Enum.reverse(repeated) do
       invalid(
         evaluation.line,
         "expected names that differ in letters and digits, got `#{evaluation.name}` after " <>
           "`#{first.name}` in line #{first.line}",
         "give it another name"
       )
     end}
  end

  @doc "An error of a file."
  @spec invalid(pos_integer(), String.t(), String.t() | nil) :: Diagnostic.t()
  def invalid(line, message, hint \\ nil) do
    %Diagnostic{
      code: :evaluation_invalid,
      severity: :error,
      line: line,
      message: message,
      hint: hint
    }
  end

  @doc "A part of another program's format that has no meaning here."
  @spec unsupported(pos_integer(), String.t(), String.t()) :: Diagnostic.t()
  def unsupported(line, message, hint) do
    %Diagnostic{
      code: :evaluation_unsupported,
      severity: :warning,
      line: line,
      message: message,
      hint: hint
    }
  end
end
