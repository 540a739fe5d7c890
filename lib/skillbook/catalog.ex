defmodule Skillbook.Catalog do
  @moduledoc """
  All entries of some sources, without any process: for scripts, for tests, and behind every book.

  What a catalog holds is read through a `Skillbook.View`. A catalog has one generation at a time; `reload/1` makes the
  next one, and views that were made before keep the one they have.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> Skillbook.Catalog.count(catalog)
      8
      iex> Skillbook.Catalog.generation(catalog)
      1
      iex> Skillbook.Catalog.reload(catalog)
      {:ok, 2}
  """

  alias Skillbook.{Change, ConfigError, Diagnostic, Entry, Native, OptionError, Source}

  @type t :: %__MODULE__{ref: reference(), sources: [Source.t()]}

  @enforce_keys [:ref, :sources]
  defstruct [:ref, :sources]

  @doc """
  Reads the sources: a list as `Skillbook.Source.list/1` takes it.

  A later source's entry replaces an earlier one's of the same name, unless the later one has low trust; for a profile
  that does not see the later one the earlier one is used. What is wrong with a file, or with a whole source, is no error
  but one of the `diagnostics/1`.
  """
  @spec load([Source.item()]) :: {:ok, t()} | {:error, OptionError.t() | ConfigError.t()}
  def load(sources) when is_list(sources) do
    with {:ok, sources} <- Source.list(sources) do
      ref = Native.catalog_load(sources)
      {:ok, %__MODULE__{ref: ref, sources: sources}}
    end
  end

  @doc """
  Reads the same sources again and gives the number of the new generation. Files that are as they were are not read.

  A file that was used and is broken by its last edit stays in use as it was before, with the warning `kept_last_good`:
  [writing skills](docs/skills.md#diagnostics) has the rule.
  """
  @spec reload(t()) :: {:ok, pos_integer()}
  def reload(%__MODULE__{} = catalog), do: {:ok, refresh(catalog, :all).generation}

  @doc """
  Reads what changed and tells which entries differ.

  `:all` looks at everything, as `reload/1` does. A list of paths names files and folders that were made, changed, moved
  or deleted, absolute or relative to the current folder; only what they touch is looked at, and if nothing differs there
  is no new generation. A moved file or folder has two paths, its old one and its new one.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> Skillbook.Catalog.refresh(catalog, ["test/support/fixtures/skills/haiku.md"])
      %Skillbook.Change{generation: 1, added: [], changed: [], removed: []}
      iex> Skillbook.Catalog.refresh(catalog, :all).generation
      2
  """
  @spec refresh(t(), :all | [Path.t()]) :: Change.t()
  def refresh(%__MODULE__{ref: ref}, :all), do: change(Native.catalog_reload(ref))

  def refresh(%__MODULE__{ref: ref}, paths) when is_list(paths),
    do: change(Native.catalog_reload_paths(ref, Enum.map(paths, &Path.expand/1)))

  @doc false
  # Takes rows of the store's table, which came or changed, into the source that `Source.stored/0`
  # makes; the rows are all that there are, or only some. Only then is there a new generation if
  # anything differs. Gives besides the ids of the rows that cannot be read, which are left out, and
  # why.
  @spec put_stored(t(), rows :: %{columns: [String.t()], rows: [[term()]]}, :all | :some) ::
          {Change.t(), [{integer(), String.t()}]}
  def put_stored(%__MODULE__{ref: ref} = catalog, %{columns: columns, rows: rows}, which) do
    check_stored(catalog)
    {change, unread} = Native.catalog_store(ref, columns, rows, which == :all)
    {change(change), unread}
  end

  @doc false
  # The entries with a schedule, or those of a name, whoever sees them: each with its number in the database and who wrote what it
  # runs, or `nil` and nobody for one of a file.
  @spec scheduled(t(), String.t() | nil) :: [{pos_integer() | nil, [String.t() | nil], Entry.t()}]
  def scheduled(%__MODULE__{ref: ref}, name \\ nil), do: Native.catalog_scheduled(ref, name)

  defp check_stored(%__MODULE__{sources: sources}) do
    if not Enum.any?(sources, &(&1.kind == :stored)),
      do:
        raise(
          ArgumentError,
          "expected a catalog with the source of a store, got one of files alone"
        )
  end

  defp change({generation, added, changed, removed}),
    do: %Change{generation: generation, added: added, changed: changed, removed: removed}

  @doc "The number of the current generation: 1 after `load/1`, one more whenever sources were read again."
  @spec generation(t()) :: pos_integer()
  def generation(%__MODULE__{ref: ref}), do: Native.catalog_generation(ref)

  @doc "How many entries of the current generation `Skillbook.View.all/1` shows."
  @spec count(t()) :: non_neg_integer()
  def count(%__MODULE__{ref: ref}), do: Native.catalog_count(ref)

  @doc """
  What was found out about the files, by path and line.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/nowhere"])
      iex> [diagnostic] = Skillbook.Catalog.diagnostics(catalog)
      iex> {diagnostic.code, diagnostic.severity}
      {:source_missing, :error}
  """
  @spec diagnostics(t()) :: [Diagnostic.t()]
  def diagnostics(%__MODULE__{ref: ref}), do: Native.catalog_diagnostics(ref)
end
