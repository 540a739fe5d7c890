defmodule Skillbook.Package do
  @moduledoc """
  Exports entries as folders in the Agent Skills format, and installs such folders from elsewhere.

  A source is a folder, an archive (`.zip`, `.tar`, `.tar.gz`, `.tgz`; a file or an https
  address), a git repository, or a website that publishes skills, such as `https://example.com`,
  or one of its skills, `https://example.com#name`. `install/2` copies its skills into a folder,
  which a book then reads as `{:installed, folder}` (`Skillbook.Source.list/1`).
  `skills.lock.json` in that folder records the source, the commit or digest, the content's hash
  and the accepted findings of each skill.

  Each skill is installed completely or not at all, nothing is written outside the folder, and
  nothing of a skill is run. `Skillbook.Package.Inspection` lists its scripts, commands, hosts
  and suspicious texts. The `:accept` function must accept that list when the skill is new, and
  again when an update adds to it. [Installing and sharing skills](packages.md) has the rules.

  ## Options

  All functions that take `options` accept these; each uses those that apply to it. Unknown
  options and wrong values raise `Skillbook.OptionError`.

    * `:to` - the folder of installed skills. Default: `".agents/skills"` in the current folder
    * `:names` - the skills to install: a list of names, titles or paths below the source, or
      `:all`. `install/2` requires it for a source with several skills
    * `:branch`, `:tag`, `:commit` - the revision of a git repository, at most one of them.
      Default: the repository's `HEAD`. A commit is written with all 40 or 64 digits
    * `:path` - a folder below the source to search for skills. Default: the whole source
    * `:accept` - a function that gets a `Skillbook.Package.Question` and returns whether to
      accept it. Default: nothing is accepted
    * `:strict` - whether a skill must pass the validator of the Agent Skills format. Default:
      `false`
    * `:force` - whether to replace a folder that was not installed or was changed by hand.
      Default: `false`
    * `:progress` - a function that is called with a line of text for each step. Default: none
    * `:lock_timeout` - how long to wait for the folder's lock, in milliseconds. Default: `10_000`
    * `:http` - options of `Skillbook.HTTP.request/2` for downloads, for example `:adapter` or
      `:cacertfile`
    * `:now` - the time to record in the lock file, a `DateTime`. Default: the current time

  ## Results

  Functions that change or check several skills return `{:ok, outcomes}`, with one
  `Skillbook.Package.Outcome` for each skill. A skill that fails has the action `:failed` and an
  error; the others continue. `{:error, error}` with a `Skillbook.PackageError` means that no
  skill was tried: the source cannot be opened, a name is unknown, or the folder is locked.

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "package-\#{System.unique_integer([:positive])}")
      iex> skills = Application.app_dir(:skillbook, "priv/skills")
      iex> {:ok, catalog} = Skillbook.Catalog.load([skills])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, path} = Skillbook.Package.export(view, "tasks.search", folder)
      iex> Path.relative_to(path, folder)
      "tasks-search"
      iex> options = [to: Path.join(folder, "installed"), accept: fn question -> question.new end]
      iex> {:ok, [outcome]} = Skillbook.Package.install(path, options)
      iex> {outcome.name, outcome.action}
      {"tasks-search", :installed}
      iex> {:ok, [outcome]} = Skillbook.Package.remove(["tasks-search"], options)
      iex> outcome.action
      :removed
      iex> File.rm_rf!(folder)
      iex> :ok
      :ok
  """

  alias Skillbook.Package.{Export, Install, IntoStore, LockFile, Outcome, Publish, Search, Skill}
  alias Skillbook.Package.Update
  alias Skillbook.Support.{Arguments, Options}
  alias Skillbook.{DocumentError, OptionError, PackageError, UnknownSkillError, View}

  @to ".agents/skills"
  @lock_timeout 10_000

  @typedoc "The result of a function that changes or checks several skills."
  @type outcomes :: {:ok, [Outcome.t()]} | {:error, PackageError.t()}

  @doc """
  Writes an entry as a folder in the Agent Skills format below `folder`, and returns its path.

  The folder's name is the entry's, in lower-case letters, digits and hyphens. `SKILL.md` has the
  fields of the format. Title, tags, author, version, schedule and time zone go into `metadata`.
  A note without a description gets its title as the description. The skill's other files are
  copied.

  The format has no visibility labels, so they are left out: everyone with access to the folder
  can read the entry.

  Exporting the same content again succeeds. Other content under that name is an error.

  ## Options

    * `:force` - whether to replace other content under that name. Default: `false`
  """
  @spec export(Skillbook.view_or_book(), String.t(), Path.t(), Skillbook.options()) ::
          {:ok, Path.t()}
          | {:error, UnknownSkillError.t() | PackageError.t() | DocumentError.t()}
  def export(view_or_book, name, folder, options \\ []) do
    types = [name: {:text, name}, folder: {:text, folder}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Package.export/4", types)
    validate!(options, Keyword.take(schema(), [:force]))
    Export.run(view, name, Path.expand(folder), with_defaults(options))
  end

  @doc """
  Writes entries into a folder for a web server, or sends them to a running book.

  In a folder, `.well-known/agent-skills/index.json` is in the Agent Skills Discovery format
  0.2.0, from which `install/2` and other programs install. An entry is a `SKILL.md` as
  `export/4` writes it, or, with more files, a `.tar.gz`. The same content has the same bytes on
  every machine. Publishing again replaces what has changed, and deletes the files of skills that
  the last index listed and that are no longer published. `Skillbook.Web` publishes without a
  folder.

  An https address is that of a book with `Skillbook.Web`, which imports each entry into its
  store, with low trust and the label `imported`. The profile of `:token` must be one that may
  write there and holds that label. An entry with more files, or a workflow, is an error, since
  the store has neither.

  The name is the entry's, in lower-case letters, digits and hyphens; of entries that then share a
  name, those with another name of their own get a part of its hash. Labels are left out: everyone
  who can read the folder can read the entries.

  Each outcome has the action `:published`, `:updated` (of a running book), `:unchanged`,
  `:removed` or `:failed`.

  ## Options

    * `:names` - the names of the entries, or `:all`, which is everything that the profile sees.
      Default: `:all`
    * `:force` - whether to replace an index, and files, that were not written by this function.
      Default: `false`
    * `:token` - a function without arguments that returns the token for a running book. Default:
      none
    * `:http` and `:progress`, as above

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "publish-\#{System.unique_integer([:positive])}")
      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, [outcome]} = Skillbook.Package.publish(view, folder, names: ["tasks.get"])
      iex> {outcome.name, outcome.action}
      {"tasks-get", :published}
      iex> File.ls!(Path.join(folder, ".well-known/agent-skills")) |> Enum.sort()
      ["index.json", "tasks-get"]
      iex> File.rm_rf!(folder)
      iex> :ok
      :ok
  """
  @spec publish(Skillbook.view_or_book(), Path.t(), Skillbook.options()) ::
          {:ok, [Outcome.t()]}
          | {:error, UnknownSkillError.t() | PackageError.t() | DocumentError.t()}
  def publish(view_or_book, place, options \\ []) do
    types = [place: {:text, place}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Package.publish/3", types)
    token = {"a function without arguments", &is_function(&1, 0)}
    taken = Keyword.take(schema(), [:names, :force, :http, :progress])
    validate!(options, [token: token] ++ taken)
    Publish.run(view, place, with_defaults(options))
  end

  @doc """
  Lists the skills of a source, sorted by path. Installs nothing.

  Uses the options `:branch`, `:tag`, `:commit`, `:path`, `:progress` and `:http`.
  """
  @spec find(String.t(), keyword()) :: {:ok, [Skill.t()]} | {:error, PackageError.t()}
  def find(source, options \\ []), do: Install.find(source, options!(options))

  @doc """
  Searches the skills of several sources by name and description, the best first. Installs
  nothing.

  Of a website only the index is read. Returns each skill with its source, and the errors of
  sources that cannot be read. Skills with a `:problem` are left out.

      {found, errors} = Skillbook.Package.search(["https://example.com"], "pull requests")
      for {source, skill} <- found, do: IO.puts("\#{source}#\#{skill.name}")

  ## Options

    * `:limit` - the maximum number of skills, 1 to 1,000. Default: `10`
    * `:progress` and `:http`, as above
  """
  @spec search([String.t()], String.t(), keyword()) ::
          {[{String.t(), Skill.t()}], [PackageError.t()]}
  def search(sources, query, options \\ []) do
    {limit, options} = options |> Options.keywords([:http]) |> Keyword.pop(:limit, 10)
    most = Skillbook.Catalog.Search.max_limit()

    arguments = [sources: {:list, sources}, query: {:text, query}]
    Arguments.check!("Skillbook.Package.search/3", arguments)

    validate!([sources: sources, limit: limit],
      sources: {"a list of texts", &Options.texts?/1},
      limit: {"an integer from 1 to #{most}", &(&1 in 1..most)}
    )

    Search.run(sources, query, limit, options!(options))
  end

  @doc """
  Installs skills of a source.

  A skill that is already installed from the same source is updated. Installed from another
  source, it is an error without `:force`.

      {:ok, outcomes} =
        Skillbook.Package.install("https://example.com/skills.git",
          names: ["pdf"],
          tag: "v1.2",
          accept: fn question -> question.inspection.findings == [] end
        )
  """
  @spec install(String.t(), keyword()) :: outcomes()
  def install(source, options \\ []), do: Install.run(source, options!(options))

  @doc """
  Writes skills of a source into the store of the view's book, where they can be edited.

  Each is written `by: :import`, which has low trust. Title, tags and schedule are read from the
  fields that `export/4` writes; other fields of the format are left out. The schedule of an
  imported skill never runs.

  The store has no files beside `SKILL.md`, so a skill with other files is an error; install it
  instead. A name that is already in the store is an error too, unless `:force` adds a new version
  of that entry.

  The store has no commands either, so an exported workflow becomes a page of the book's folder
  `:write_to`. The page says `trust: low`, and its steps do not run until somebody has reviewed it
  and removed that line. `:force` replaces only such a page.

  Uses all options except `:to` and `:lock_timeout`, and

    * `:labels` - visibility labels for new entries, which the profile must hold.
      Default: `["imported"]`
  """
  @spec into_store(Skillbook.view_or_book(), String.t(), Skillbook.options()) :: outcomes()
  def into_store(view_or_book, source, options \\ []) do
    type = [source: {:text, source}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Package.into_store/3", type)
    {labels, options} = Keyword.pop(options, :labels, ["imported"])
    IntoStore.run(view, source, labels, options!(options))
  end

  @doc """
  Updates installed skills from their sources: all of them, or those in `names`.

  A git repository is read at its branch or tag of the installation, which may have moved; a
  skill installed with `:commit` stays at that commit. A folder or an archive is read again. A
  website's index tells which skills have changed, and only those are fetched. A skill that was
  changed by hand is an error without `:force`.
  """
  @spec update([String.t()], keyword()) :: outcomes()
  def update(names \\ [], options \\ []), do: Update.run(names, options!(options))

  @doc """
  Makes the folder match the lock file, for all installed skills or those in `names`.

  Missing skills are fetched at the locked commit and must have the locked hash. A skill that was
  changed by hand is an error without `:force`, which replaces it.
  """
  @spec restore([String.t()], keyword()) :: outcomes()
  def restore(names \\ [], options \\ []), do: Update.restore(names, options!(options))

  @doc """
  Removes installed skills and their entries in the lock file.

  A skill that was changed by hand is an error without `:force`.
  """
  @spec remove([String.t()], keyword()) :: outcomes()
  def remove(names, options \\ []), do: Update.remove(names, options!(options))

  @doc """
  Compares installed skills with their sources, without changing anything.

  The action of each outcome is one of

    * `:current` - the source has the same skill
    * `:outdated` - the source has another commit (git), digest (website) or other content
    * `:pinned` - installed with `:commit`, so the source is not asked
    * `:changed` - changed by hand; `changes` of the outcome lists the files
    * `:failed` - the source cannot be reached, or the skill's folder is missing

  Two commits of a git repository may have the same skill.
  """
  @spec outdated([String.t()], keyword()) :: outcomes()
  def outdated(names \\ [], options \\ []), do: Update.outdated(names, options!(options))

  @doc """
  Returns the entries of a folder's lock file by name: maps with string keys, as in the file.

      iex> Skillbook.Package.installed("a-folder-without-skills")
      {:ok, %{}}
  """
  @spec installed(Path.t()) :: {:ok, %{String.t() => map()}} | {:error, PackageError.t()}
  def installed(folder \\ @to), do: folder |> Path.expand() |> LockFile.read()

  @doc false
  # The folder of installed skills without `:to`.
  def default_folder, do: @to

  # Options

  defp options!(options) do
    options = options |> Options.keywords([:http]) |> rename_patience()
    validate!(options, schema())
    with_defaults(options)
  end

  defp rename_patience([{_, _} | _] = options) do
    {patience, options} = Keyword.pop(options, :patience)

    if patience do
      IO.warn("the option :patience of Skillbook.Package is deprecated; write :lock_timeout")
      Keyword.put_new(options, :lock_timeout, patience)
    else
      options
    end
  end

  defp rename_patience(options), do: options

  defp validate!(options, schema) do
    with {:error, %OptionError{} = error} <- Options.validate(options, "packages", schema),
         do: raise(error)
  end

  # `:names`, `:now`, `:http` and the revisions have no default: without them they are absent.
  defp with_defaults(options) do
    [
      to: @to,
      path: "",
      accept: fn _question -> false end,
      strict: false,
      force: false,
      progress: fn _text -> :ok end,
      lock_timeout: @lock_timeout
    ]
    |> Keyword.merge(options)
    |> Keyword.update!(:to, &Path.expand/1)
  end

  defp schema do
    flag = {"a boolean", &is_boolean/1}
    text = {"text", &Options.text?/1}

    [
      to: {"a folder", &Options.text?/1},
      names: {"a list of names or :all", &(&1 == :all or Options.texts?(&1))},
      branch: text,
      tag: text,
      commit: text,
      path: text,
      accept: {"a function of one argument", &is_function(&1, 1)},
      strict: flag,
      force: flag,
      progress: {"a function of one argument", &is_function(&1, 1)},
      lock_timeout: {"milliseconds", &(is_integer(&1) and &1 >= 0)},
      http: {"options of Skillbook.HTTP", &Keyword.keyword?/1},
      now: {"a DateTime", &is_struct(&1, DateTime)}
    ]
  end
end
