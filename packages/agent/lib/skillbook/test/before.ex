defmodule Skillbook.Test.Before do
  @moduledoc false
  # The version before of a skill, as a source that replaces the current one: from a folder, or
  # from the last commit of the git repository that the skill is in.

  alias Skillbook.Support.UntilError
  alias Skillbook.Test.{Evaluation, EvaluationFile}
  alias Skillbook.{Catalog, Entry, Source, View}

  @max_files 1_000

  @doc """
  Returns the options of a book with the version before, and a function that removes its files;
  `{:none, reason}` if there is none.
  """
  @spec sources(Evaluation.t(), keyword(), :git | Path.t()) ::
          {:ok, keyword(), (() -> term())} | {:none, String.t()} | {:error, Exception.t()}
  def sources(evaluation, book, before) do
    with {:ok, sources} <- Source.list(book[:sources] || []),
         {:ok, catalog} <- Catalog.load(all(sources, book)),
         {:ok, entry} <- entry(evaluation, View.all(catalog)),
         %Source{} = own <- Enum.find(all(sources, book), &(&1.name == entry.source)),
         place = Path.relative_to(Path.expand(entry.path), own.path),
         {:ok, files} <- files(entry, place, own, before) do
      folder = write(files)
      old = %{own | path: folder, name: own.name <> " before", optional: false}
      # A later source wins. Other sources after it still win over both.
      sources = Enum.flat_map(sources, &if(&1 == own, do: [&1, old], else: [&1]))
      sources = if old in sources, do: sources, else: [old | sources]
      {:ok, Keyword.put(book, :sources, sources), fn -> File.rm_rf!(folder) end}
    else
      nil -> {:none, "the skill is not in a folder"}
      other -> other
    end
  end

  defp all(sources, book) do
    builtin = Source.builtin()

    if Keyword.get(book, :builtins, false) in [false, []] or builtin in sources,
      do: sources,
      else: [builtin | sources]
  end

  defp entry(evaluation, view) do
    found =
      if evaluation.skill do
        with {:ok, entry} <- View.fetch(view, evaluation.skill), do: entry
      else
        Enum.find(View.entries(view), &(Path.expand(&1.path) == evaluation.beside))
      end

    case found do
      %Entry{name: name} -> View.fetch(view, name)
      nil -> {:none, "#{evaluation.path} lies beside no skill"}
      {:error, _} = error -> error
    end
  end

  # The files of the version before: paths below the source, and texts.

  defp files(entry, place, own, :git), do: from_git(entry, place, own)
  defp files(entry, place, _own, folder), do: from_folder(entry, place, folder)

  # The folder of a skill, or a page with its name.
  defp from_folder(%Entry{kind: :skill} = entry, place, folder) do
    page = Path.basename(place)
    roots = for within <- [Path.dirname(place), "."], do: Path.expand(within, folder)

    # A SKILL.md has the files beside it; another page has none.
    with true <- String.downcase(page) == "skill.md",
         root when is_binary(root) <- Enum.find(roots, &File.regular?(Path.join(&1, page))) do
      {:ok, for(path <- below(root), do: {below_source(place, path), read!(root, path)})}
    else
      _ -> page_in(entry, place, folder)
    end
  end

  defp from_folder(entry, place, folder), do: page_in(entry, place, folder)

  defp page_in(entry, place, folder) do
    candidates = [Path.join(folder, place), Path.join(folder, Path.basename(place))]

    case Enum.find(candidates, &File.regular?/1) do
      nil -> {:none, "#{folder} has no #{place} of #{entry.name}"}
      file -> {:ok, [{place, File.read!(file)}]}
    end
  end

  # The path of a file beside a page.
  defp below_source(place, name) do
    case Path.dirname(place) do
      "." -> name
      folder -> Path.join(folder, name)
    end
  end

  defp read!(root, path), do: File.read!(Path.join(root, path))

  defp below(root) do
    root
    |> Path.join("**")
    |> Path.wildcard()
    |> Enum.filter(&(File.regular?(&1) and EvaluationFile.format(&1) == nil))
    |> Enum.take(@max_files)
    |> Enum.map(&Path.relative_to(&1, root))
  end

  defp from_git(entry, place, own) do
    skill? = entry.kind == :skill and String.downcase(Path.basename(place)) == "skill.md"
    folder = Path.join(own.path, Path.dirname(place))
    wanted = if skill?, do: ".", else: Path.basename(place)

    with {:ok, listed} <-
           git(folder, ["ls-tree", "-r", "-z", "--name-only", "HEAD", "--", wanted]),
         names =
           for(
             name <- String.split(listed, "\0", trim: true),
             EvaluationFile.format(name) == nil,
             do: name
           ),
         true <-
           (names != [] and length(names) <= @max_files) || {:none, "it is not in a commit"},
         {:ok, files} <- blobs(folder, names),
         true <- changed?(files, folder) || {:none, "it has not changed since the last commit"} do
      {:ok, for({name, text} <- files, do: {below_source(place, name), text})}
    else
      {:none, reason} -> {:none, "there is no version of #{entry.name} before: #{reason}"}
    end
  end

  # Plumbing runs no filters or programs that the repository names.
  defp blobs(folder, names) do
    UntilError.map(names, fn name ->
      with {:ok, text} <- git(folder, ["cat-file", "blob", "HEAD:./" <> name]),
           do: {:ok, {name, text}}
    end)
  end

  defp changed?(files, folder),
    do: Enum.any?(files, fn {name, text} -> File.read(Path.join(folder, name)) != {:ok, text} end)

  defp git(folder, args) do
    case System.find_executable("git") do
      nil ->
        {:none, "git is not installed"}

      git ->
        case System.cmd(git, args, cd: folder, stderr_to_stdout: true) do
          {output, 0} ->
            {:ok, output}

          {output, _} ->
            {:none, "git says: " <> (output |> String.trim() |> String.slice(0, 200))}
        end
    end
  end

  defp write(files) do
    unique = "skillbook-before-#{System.pid()}-#{System.unique_integer([:positive])}"
    folder = Path.join(System.tmp_dir!(), unique)

    for {path, text} <- files do
      file = Path.join(folder, path)
      File.mkdir_p!(Path.dirname(file))
      File.write!(file, text)
    end

    folder
  end
end
