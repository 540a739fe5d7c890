defmodule Skillbook.Catalog do
  @moduledoc """
  Loads and holds all entries of some sources, without any process.

  Use it in scripts and tests; every book has one too. Entries are read through a
  `Skillbook.View`. A catalog has one generation at a time. `reload/1` makes the next one;
  existing views keep theirs.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, entry} = Skillbook.View.fetch(Skillbook.View.all(catalog), "tasks.get")
      iex> entry.kind
      :command
      iex> Skillbook.Catalog.reload(catalog)
      {:ok, 2}
  """

  alias Skillbook.Catalog.Handlers
  alias Skillbook.Support.Arguments
  alias Skillbook.{Change, ConfigError, Diagnostic, Entry, Native, OptionError, Profile, Source}

  @type t :: %__MODULE__{
          ref: reference(),
          sources: [Source.t()],
          functions: %{optional(String.t()) => function()},
          fetch: {module(), atom(), [term()]} | nil
        }

  @enforce_keys [:ref, :sources]
  defstruct [:ref, :sources, :fetch, functions: %{}]

  @doc """
  Reads the sources, a list of the items that `Skillbook.Source.list/1` takes.

  If two sources have an entry of the same name, the later source wins, unless it has low trust.
  Profiles that do not see the later entry use the earlier one. Invalid files and missing folders
  are not errors: they are reported by `diagnostics/1`. So are handlers that do not exist in the
  running program; each load and full reload looks for them.

      iex> {:error, error} = Skillbook.Catalog.load([[path: "skills", trsut: :low]])
      iex> error.option
      :trsut
  """
  @spec load([Source.item()]) :: {:ok, t()} | {:error, OptionError.t() | ConfigError.t()}
  def load(sources) do
    with {:ok, sources} <- Source.list(sources) do
      {pages, functions} = pages(sources)
      {ref, handlers} = Native.catalog_load(sources, pages)
      catalog = %__MODULE__{ref: ref, sources: sources, functions: functions}
      publish(catalog, handlers)
      {:ok, catalog}
    end
  end

  @doc """
  Reads the sources again and returns the number of the new generation. Unchanged files are not
  read.

  If the last edit of a file broke it, its last valid version stays in use, with the warning
  `kept_last_good`; see [writing skills](docs/repairs.md).
  """
  @spec reload(t()) :: {:ok, pos_integer()}
  def reload(catalog) do
    Arguments.check!("Skillbook.Catalog.reload/1", catalog: {:catalog, catalog})
    {:ok, refresh(catalog, :all).generation}
  end

  @doc """
  Reads changed files again and returns the entries that differ.

  `:all` checks all files, like `reload/1`. A list names the files and folders that were created,
  changed, moved or deleted, as absolute paths or relative to the current folder. Only these are
  checked, and there is no new generation if nothing differs. List both the old and the new path
  of a moved file.

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_refresh")
      iex> _ = File.rm_rf!(folder)
      iex> File.mkdir_p!(folder)
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> page = Path.join(folder, "tea.md")
      iex> File.write!(page, "---\\nname: tea\\ndescription: Brews tea\\n---\\nBoil water.\\n")
      iex> Skillbook.Catalog.refresh(catalog, [page])
      %Skillbook.Change{generation: 2, added: ["tea"], changed: [], removed: []}
  """
  @spec refresh(t(), :all | [Path.t()]) :: Change.t()
  def refresh(%__MODULE__{} = catalog, :all) do
    {pages, _functions} = pages(catalog.sources)
    publish(catalog, Native.catalog_read(catalog.ref, pages))
  end

  def refresh(%__MODULE__{ref: ref} = catalog, paths) do
    unless is_list(paths) and Enum.all?(paths, &is_binary/1) do
      raise ArgumentError,
            "expected :all or a list of paths as the argument `paths` of " <>
              "Skillbook.Catalog.refresh/2, got: #{inspect(paths, limit: 5)}"
    end

    paths = Enum.map(paths, &Path.expand/1)

    code = code(catalog.sources)
    # `nil` keeps the pages of code.
    pages = if code != [] and Source.Code.touched?(code, paths), do: elem(pages(code), 0)

    case Native.catalog_read_paths(ref, paths, pages) do
      nil -> %Change{generation: generation(catalog), added: [], changed: [], removed: []}
      handlers -> publish(catalog, handlers)
    end
  end

  def refresh(catalog, _paths),
    do: Arguments.check!("Skillbook.Catalog.refresh/2", catalog: {:catalog, catalog})

  defp code(sources), do: Enum.filter(sources, &(&1.kind in [:code, :mcp]))

  # The pages of each source of code, and the functions among their handlers.
  defp pages(sources) do
    case code(sources) do
      [] -> {[], %{}}
      code -> Source.Code.pages(code)
    end
  end

  # The handlers are looked up before readers get the generation.
  defp publish(%{ref: ref, functions: functions}, handlers),
    do: change(Native.catalog_publish(ref, Handlers.problems(handlers, functions)))

  @doc false
  # Takes the pages of code and of servers again. No file is read.
  @spec refresh_pages(t()) :: Change.t()
  def refresh_pages(%__MODULE__{ref: ref} = catalog) do
    {pages, _functions} = pages(catalog.sources)

    case Native.catalog_read_paths(ref, [], pages) do
      nil -> %Change{generation: generation(catalog), added: [], changed: [], removed: []}
      handlers -> publish(catalog, handlers)
    end
  end

  @doc false
  # Puts rows of the store's table into the source of `Source.stored/0`: some new and changed
  # ones, or all. After the database became another one they may be those that are common to all
  # tenants or have a schedule; those of tenants are then fetched again. Makes a new generation if
  # an entry differs. Also returns the ids of rows that cannot be read and the reasons; these rows
  # are left out.
  @spec put_stored(t(), %{columns: [String.t()], rows: [[term()]]}, :some | :all | :replaced) ::
          {Change.t(), [{integer(), String.t()}]}
  def put_stored(%__MODULE__{ref: ref} = catalog, %{columns: columns, rows: rows}, which) do
    check_stored(catalog)
    {change, unread} = Native.catalog_store(ref, columns, rows, which)
    {change(change), unread}
  end

  @doc false
  # Fetches the rows of a tenant if they are not there, with the function of the field `:fetch`.
  # It gets the catalog and the tenant, and uses `begin/2`, `take_in/2` and `fetched/2`.
  @spec fetch(t(), Profile.tenant()) :: :ok | {:error, Exception.t()}
  def fetch(%__MODULE__{fetch: nil}, _tenant), do: :ok

  def fetch(%__MODULE__{ref: ref, fetch: {module, function, arguments}} = catalog, tenant) do
    if Native.catalog_has(ref, tenant),
      do: :ok,
      else: apply(module, function, [catalog, tenant | arguments])
  end

  @doc false
  # Begins to fetch the rows of a tenant, or those with a schedule.
  @spec begin(t(), Profile.tenant() | :scheduled) :: reference()
  def begin(%__MODULE__{ref: ref} = catalog, tenant) do
    check_stored(catalog)
    Native.catalog_fetch(ref, tenant)
  end

  @doc false
  # Takes in some rows, those of a tenant after those of another. They are read when somebody
  # needs their entries. Returns the ids of rows that cannot be read and the reasons.
  @spec take_in(reference(), rows :: %{columns: [String.t()], rows: [[term()]]}) ::
          [{integer(), String.t()}]
  def take_in(fetch, %{columns: columns, rows: rows}),
    do: Native.catalog_take_in(fetch, columns, rows)

  @doc false
  # Ends a fetch. If these were all, they are shown.
  @spec fetched(reference(), boolean()) :: :ok
  def fetched(fetch, whole? \\ true) do
    Native.catalog_fetched(fetch, whole?)
    :ok
  end

  @doc false
  # Returns the scheduled entries, or those of a name, of all labels: each with its row number in
  # the database and the ids of its authors; `nil` and `[]` for a file.
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

  @doc "Returns the number of the current generation: 1 after `load/1`, one more for each reload."
  @spec generation(t()) :: pos_integer()
  def generation(%__MODULE__{ref: ref}), do: Native.catalog_generation(ref)

  def generation(other),
    do: Arguments.check!("Skillbook.Catalog.generation/1", catalog: {:catalog, other})

  @doc "Returns the number of entries that `Skillbook.View.all/1` shows."
  @spec count(t()) :: non_neg_integer()
  def count(%__MODULE__{ref: ref} = catalog) do
    with {:error, error} <- fetch(catalog, :all), do: raise(error)
    Native.catalog_count(ref)
  end

  def count(other), do: Arguments.check!("Skillbook.Catalog.count/1", catalog: {:catalog, other})

  @doc """
  Returns the diagnostics of all files, sorted by path and line.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["no/such/folder"])
      iex> [diagnostic] = Skillbook.Catalog.diagnostics(catalog)
      iex> {diagnostic.code, diagnostic.severity}
      {:source_missing, :error}
  """
  @spec diagnostics(t()) :: [Diagnostic.t()]
  def diagnostics(%__MODULE__{ref: ref} = catalog) do
    # Without the database, those of the entries that are in memory.
    _ = fetch(catalog, :all)
    Native.catalog_diagnostics(ref)
  end

  def diagnostics(other),
    do: Arguments.check!("Skillbook.Catalog.diagnostics/1", catalog: {:catalog, other})

  @doc false
  # The diagnostics that are errors or warnings, of the records of the store that somebody reads,
  # if they have not been asked for; with `all?` also those that were, and of files. It is some of
  # them: also returns the place to go on from, or `nil`.
  @spec problems(t(), boolean(), non_neg_integer()) ::
          {[Diagnostic.t()], non_neg_integer() | nil}
  def problems(%__MODULE__{ref: ref}, all?, from), do: Native.catalog_problems(ref, all?, from)

  @doc false
  @spec errors(t()) :: [Diagnostic.t()]
  def errors(catalog), do: Enum.filter(diagnostics(catalog), &(&1.severity == :error))

  @doc false
  # The number of entries in memory, whoever may see them.
  @spec size(t()) :: non_neg_integer()
  def size(%__MODULE__{ref: ref}), do: Native.catalog_size(ref)

  @doc false
  # Entries of the store that nobody reads are packed. Those that are read take about so many
  # bytes at most. If there are more than `records`, those of a tenant are forgotten when nobody
  # reads them; with `nil` all stay.
  @spec limit(t(), pos_integer(), non_neg_integer() | nil) :: :ok
  def limit(%__MODULE__{ref: ref}, bytes, records) do
    Native.catalog_limit(ref, bytes, records)
    :ok
  end

  @doc false
  # Packs the entries of the store that were not read since this was called last, and forgets
  # those of tenants that nobody reads, if there are many. Gives free memory back to the system.
  @spec rest(t()) :: :ok
  def rest(%__MODULE__{ref: ref}) do
    Native.catalog_rest(ref)
    :ok
  end
end
