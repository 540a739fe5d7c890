defmodule Skillbook.Lint do
  @moduledoc """
  Finds mistakes in skills, and fixes those with only one possible fix.

  `run/2` returns the diagnostics of loading, and checks the pages: whether the commands in
  their examples can be parsed and exist, whether Usage, Flags and Examples agree, whether
  the requests of [`examples`](finding.md#test-descriptions) lead to their skill, and whether
  texts have a size that models read well. [Diagnostics](diagnostics.md) explains every code.

  A handler is an error if the running program has no such module, so lint the skills of an
  application there: in its tests, or with `mix skillbook lint`. `bin/skillbook lint` has the code
  of Skillbook alone. It cannot know the handlers of other applications, and says so (`info`).

  Linting is for authors and other trusted code: without `:profile` it reads all pages, also those
  with visibility labels.

  ## Options of `run/2` and `fix/2`

    * `:context` - sources whose commands examples may use, without being linted themselves.
      Default: `[]`
    * `:profile` - a `Skillbook.Profile` or its options. Pages that the profile cannot see are not
      linted, and commands that it cannot see do not exist. Default: all pages and commands
    * `:strict` - whether to run the validator of the Agent Skills format on every `SKILL.md`,
      too. Default: `false`

  ## Examples

  The built-in skills have no diagnostics:

      iex> Skillbook.Lint.run([Skillbook.Source.builtin()])
      []

  A page with an unquoted colon, and a usage that names another command:

      iex> folder = Path.join(System.tmp_dir!(), "lint-\#{System.unique_integer([:positive])}")
      iex> page = \"""
      ...> ---
      ...> name: mail.send
      ...> description: Sends: a message to people
      ...> ---
      ...> ## Usage
      ...>
      ...> mail.sned --to <a>
      ...> \"""
      iex> {:ok, _} = Skillbook.Document.create(folder, "mail/send.md", page)
      iex> for found <- Skillbook.Lint.run([folder]), do: {found.line, found.code}
      [{3, :frontmatter_repaired}, {7, :example_unknown}]
      iex> {[{_path, {:ok, 1}}], left} = Skillbook.Lint.fix([folder])
      iex> for found <- left, do: {found.line, found.code}
      [{7, :example_unknown}]
      iex> File.rm_rf!(folder)
      iex> :ok
      :ok
  """

  alias Skillbook.Support.Options
  alias Skillbook.{Catalog, Diagnostic, Document, DocumentError, Native, Profile, Source, View}

  # A fix may reveal another mistake in the same line.
  @max_rounds 5

  @doc """
  Returns the diagnostics of sources, sorted by path, line and column.

  A source is an item of `Skillbook.Source.list/1`. Raises `Skillbook.OptionError` for an invalid
  source or option.
  """
  @spec run([Source.item()], keyword()) :: [Diagnostic.t()]
  def run(sources, options \\ []) do
    options = Options.keywords(options)
    with {:error, error} <- Options.validate(options, "lint", schema()), do: raise(error)
    sources = sources(sources)
    view = view(Keyword.get(options, :context, []) ++ sources, options[:profile])

    strict =
      if options[:strict],
        do: Enum.flat_map(sources, &strict/1),
        else: []

    strict =
      if options[:profile], do: Enum.filter(strict, &(&1.path in paths(view))), else: strict

    (View.diagnostics(view) ++ advice(view))
    |> Enum.filter(&of?(&1.path, sources))
    |> Enum.concat(strict)
    |> Enum.uniq()
    |> Enum.sort_by(&{&1.path, &1.line || 0, &1.column || 0, &1.code})
  end

  @doc """
  Applies the fixes of diagnostics to their files.

  Returns the number of applied fixes for each file, or the error of writing it. A file is
  replaced atomically. Of two fixes that overlap, only the first is applied, and a fixed line
  may have further mistakes; `fix/2` repeats until no fix is left.
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
  Runs `run/2` and `apply_fixes/1` until no fix is left, up to #{@max_rounds} times.

  Returns the applied fixes as `apply_fixes/1` does, and the remaining diagnostics as `run/2`
  does.
  """
  @spec fix([Source.item()], keyword()) ::
          {[{Path.t(), {:ok, pos_integer()} | {:error, DocumentError.t()}}], [Diagnostic.t()]}
  def fix(sources, options \\ []),
    do: fix(sources, options, fn _diagnostic -> true end, @max_rounds, %{})

  @doc false
  # Only fixes and returns diagnostics for which `wanted` returns true.
  def fix(sources, options, wanted, rounds \\ @max_rounds, done \\ %{}) do
    diagnostics = sources |> run(options) |> Enum.filter(wanted)
    fixable? = &(&1.fix && not match?({:error, _}, done[&1.path]))

    if rounds > 0 and Enum.any?(diagnostics, fixable?) do
      done = diagnostics |> Enum.filter(fixable?) |> apply_fixes() |> Enum.reduce(done, &add/2)

      fix(sources, options, wanted, rounds - 1, done)
    else
      {Enum.sort(done), diagnostics}
    end
  end

  defp add({path, {:ok, count}}, done),
    do: Map.update(done, path, {:ok, count}, fn {:ok, more} -> {:ok, count + more} end)

  defp add({path, error}, done), do: Map.put(done, path, error)

  defp apply_to(path, fixes) do
    with {:ok, _text, parts, count} <- fixed(path, fixes),
         {:ok, _} <- Document.replace(Path.dirname(path), Path.basename(path), parts),
         do: {:ok, count}
  end

  defp fixed(path, fixes) do
    with {:ok, text} <- Document.read(Path.dirname(path), Path.basename(path)) do
      {parts, count} = replace(text, fixes)
      {:ok, text, parts, count}
    end
  end

  @doc false
  # Returns the text of a file as it is, its text with the fixes of diagnostics, and their number,
  # without writing it.
  @spec preview(Path.t(), [Diagnostic.t()]) ::
          {:ok, String.t(), String.t(), non_neg_integer()} | {:error, DocumentError.t()}
  def preview(path, diagnostics) do
    fixes = for %{path: ^path, fix: fix} when fix != nil <- diagnostics, do: fix

    with {:ok, text, parts, count} <- fixed(path, fixes),
         do: {:ok, text, IO.iodata_to_binary(parts), count}
  end

  @doc false
  # The findings about the pages of a view, without those of loading.
  @spec advice(View.t()) :: [Diagnostic.t()]
  def advice(%View{ref: ref}), do: Native.lint_view(ref)

  # Of two fixes that overlap, the first is applied.
  defp replace(text, fixes) do
    {parts, count, done} =
      fixes
      |> Enum.uniq()
      |> Enum.sort()
      |> Enum.reduce({[], 0, 0}, fn
        {offset, length, new}, {parts, count, done} when offset >= done ->
          {[parts, binary_part(text, done, offset - done), new], count + 1, offset + length}

        _overlaps, replaced ->
          replaced
      end)

    {[parts, binary_part(text, done, byte_size(text) - done)], count}
  end

  defp sources(sources) do
    case Source.list(sources) do
      {:ok, sources} -> sources
      {:error, error} -> raise error
    end
  end

  defp of?(path, sources) do
    {code, folders} = Enum.split_with(sources, &(&1.kind == :code))

    Enum.any?(folders, &below?(path, &1.path)) or
      (code != [] and path in Source.Code.paths(code))
  end

  defp view(sources, profile) do
    with {:ok, catalog} <- Catalog.load(sources),
         {:ok, view} <- View.new(catalog, profile || Profile.unrestricted()) do
      view
    else
      {:error, error} -> raise error
    end
  end

  defp paths(view) do
    for page <- View.entries(view, []) ++ View.domains(view),
        page.path,
        into: MapSet.new(),
        do: page.path
  end

  defp below?(path, root), do: path == root or String.starts_with?(path || "", root <> "/")

  defp strict(%{kind: :code}), do: []
  defp strict(%{path: path}), do: Native.lint_strict(path)

  defp schema do
    [
      context: {"a list of sources", &is_list/1},
      profile: {"a profile or nil", &(is_nil(&1) or is_list(&1) or is_struct(&1, Profile))},
      strict: {"a boolean", &is_boolean/1}
    ]
  end
end
