defmodule Skillbook.Lint do
  @moduledoc """
  Looks at skills as their author should before others get them.

  It gives the diagnostics of loading and, beyond those, looks at the pages: whether the commands in their examples can be
  read and exist, whether Usage, Flags and Examples agree, and whether texts have a size that models read well. Every code is
  in [Diagnostics](diagnostics.md).

  It looks at everything, for authors and other trusted code; with a profile only at what that one sees.

  ## Options of `run/2` and `fix/2`

    * `:context` - sources that are there too, so that examples may use their commands; nothing is said about them. None
      if it is left out
    * `:profile` - a `Skillbook.Profile` or its options: pages and files that it does not see are passed over, and
      commands that it does not see are none. Everything is looked at if it is left out
    * `:strict` - whether every `SKILL.md` must also pass the Agent Skills format's own validator; `false` if it is left out

  ## Examples

      iex> Skillbook.Lint.run([Skillbook.Source.builtin()])
      []

      iex> found = Skillbook.Lint.run(["test/support/fixtures/skills"], strict: true)
      iex> Enum.count(found, &(&1.code == :spec_violation)) > 0
      true
  """

  alias Skillbook.Support.Options
  alias Skillbook.{Catalog, Diagnostic, Document, DocumentError, Native, Profile, Source, View}

  # A fix may show what else is wrong with the same line.
  @rounds 5

  @doc """
  What is found in the sources (paths, options of `Skillbook.Source`, or sources), by path, line and column.

  Raises `Skillbook.OptionError` if a source or an option is none.
  """
  @spec run([Source.t() | Path.t() | keyword()], keyword()) :: [Diagnostic.t()]
  def run(sources, options \\ []) do
    with {:error, error} <- Options.validate(options, "lint", schema()), do: raise(error)
    sources = Enum.map(sources, &source/1)
    view = view(Keyword.get(options, :context, []) ++ sources, options[:profile])
    strict = if options[:strict], do: Enum.flat_map(sources, &strict(&1.path)), else: []

    strict =
      if options[:profile], do: Enum.filter(strict, &(&1.path in paths(view))), else: strict

    (View.diagnostics(view) ++ Native.lint_view(view.ref))
    |> Enum.filter(fn found -> Enum.any?(sources, &below?(found.path, &1.path)) end)
    |> Enum.concat(strict)
    |> Enum.uniq()
    |> Enum.sort_by(&{&1.path, &1.line || 0, &1.column || 0, &1.code})
  end

  @doc """
  Makes the fixes of diagnostics in their files, and gives for each file how many it made or why it could not.

  A file is replaced as a whole or not at all. Run again afterwards: a mended line can show what else is wrong with it, and
  of two fixes that overlap one is made.
  """
  @spec apply_fixes([Diagnostic.t()]) :: [
          {Path.t(), {:ok, pos_integer()} | {:error, DocumentError.t()}}
        ]
  def apply_fixes(diagnostics) do
    diagnostics
    |> Enum.filter(& &1.fix)
    |> Enum.group_by(& &1.path, & &1.fix)
    |> Enum.sort()
    |> Enum.map(fn {path, fixes} -> {path, apply_to(path, fixes)} end)
  end

  @doc """
  Fixes what can be fixed in the sources, as often as it takes, and gives what was done as `apply_fixes/1` does and what is
  left as `run/2` does.
  """
  @spec fix([Source.t() | Path.t() | keyword()], keyword()) ::
          {[{Path.t(), {:ok, pos_integer()} | {:error, DocumentError.t()}}], [Diagnostic.t()]}
  def fix(sources, options \\ []), do: fix(sources, options, fn _found -> true end, @rounds, %{})

  @doc false
  # Only of the diagnostics for which `wanted` is true.
  def fix(sources, options, wanted, rounds \\ @rounds, done \\ %{}) do
    found = sources |> run(options) |> Enum.filter(wanted)
    fixable? = fn one -> one.fix && not match?({:error, _}, done[one.path]) end

    if rounds > 0 and Enum.any?(found, fixable?) do
      done = found |> Enum.filter(fixable?) |> apply_fixes() |> Enum.reduce(done, &add/2)
      fix(sources, options, wanted, rounds - 1, done)
    else
      {Enum.sort(done), found}
    end
  end

  defp add({path, {:ok, count}}, done),
    do: Map.update(done, path, {:ok, count}, fn {:ok, more} -> {:ok, count + more} end)

  defp add({path, error}, done), do: Map.put(done, path, error)

  defp apply_to(path, fixes) do
    {folder, file} = {Path.dirname(path), Path.basename(path)}

    with {:ok, text} <- Document.read(folder, file),
         {parts, count} = replace(text, fixes),
         {:ok, _} <- Document.replace(folder, file, parts),
         do: {:ok, count}
  end

  # Of two that overlap the first is made.
  defp replace(text, fixes) do
    {parts, count, done} =
      fixes
      |> Enum.uniq()
      |> Enum.sort()
      |> Enum.reduce({[], 0, 0}, fn
        {offset, length, new}, {parts, count, done} when offset >= done ->
          {[parts, binary_part(text, done, offset - done), new], count + 1, offset + length}

        _overlaps, kept ->
          kept
      end)

    {[parts, binary_part(text, done, byte_size(text) - done)], count}
  end

  defp source(source) do
    case Source.new(source) do
      {:ok, source} -> source
      {:error, error} -> raise error
    end
  end

  defp view(sources, profile) do
    with {:ok, catalog} <- Catalog.load(sources),
         {:ok, view} <- View.new(catalog, profile || Profile.unrestricted()) do
      view
    else
      {:error, error} -> raise error
    end
  end

  # The documents that a view shows.
  defp paths(view) do
    for one <- View.entries(view, []) ++ View.domains(view),
        one.path,
        into: MapSet.new(),
        do: one.path
  end

  defp below?(path, root), do: path == root or String.starts_with?(path || "", root <> "/")

  # The files that the format's validator would be given; as at load, without what begins with a dot and without links.
  defp strict(folder) do
    names = folder |> File.ls() |> elem_or([]) |> Enum.sort()
    file = Enum.find(["SKILL.md", "skill.md"], &(&1 in names and kind(folder, &1) == :regular))

    own =
      with true <- file != nil, {:ok, text} <- File.read(Path.join(folder, file)) do
        path = Path.join(folder, file)
        for one <- Native.lint_strict(Path.basename(folder), text), do: %{one | path: path}
      else
        _ -> []
      end

    below = Enum.reject(names, &(String.starts_with?(&1, ".") or &1 == "node_modules"))
    folders = Enum.filter(below, &(String.valid?(&1) and kind(folder, &1) == :directory))
    own ++ Enum.flat_map(folders, &strict(Path.join(folder, &1)))
  end

  defp elem_or({:ok, value}, _default), do: value
  defp elem_or({:error, _}, default), do: default

  defp kind(folder, name) do
    case File.lstat(Path.join(folder, name)) do
      {:ok, %{type: type}} -> type
      {:error, _} -> nil
    end
  end

  defp schema do
    [
      context: {"a list of sources", &is_list/1},
      profile: {"a profile or nil", &(is_nil(&1) or is_list(&1) or is_struct(&1, Profile))},
      strict: {"a boolean", &is_boolean/1}
    ]
  end
end
