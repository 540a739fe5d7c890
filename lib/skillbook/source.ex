defmodule Skillbook.Source do
  @moduledoc """
  A folder that entries come from.

  ## Options

    * `:path` - the folder; `~` and paths relative to the current folder are expanded. Required
    * `:name` - the name by which entries refer to it; the folder's name if it is left out
    * `:kind` - `:skills` (the default), or `:notes`: there every Markdown file is an entry, with or without frontmatter
    * `:labels` - visibility labels that all of its entries carry besides their own; none if it is left out
    * `:optional` - whether the folder may be missing without a diagnostic; `false` if it is left out
    * `:trust` - how far it is trusted: `:high`, `:medium` (the default), `:low`, or `:none`, of which nothing is read
    * `:available` - globs over names: which of its entries are listed. All if neither this nor `:inline` is given
    * `:inline` - globs over names: which of its entries stand in the prompt as a whole. An entry that no glob selects is
      not used. Case matters in globs; `*` stands for any characters, `?` for one

  A path alone is a source of skills. Where a list of sources is expected, other items may stand for several
  (`list/1`).

  ## Examples

      iex> {:ok, source} = Skillbook.Source.new(path: "/srv/notes", kind: :notes, labels: ["private"])
      iex> {source.name, source.kind, source.labels}
      {"notes", :notes, ["private"]}

      iex> {:ok, source} = Skillbook.Source.new("/srv/skills")
      iex> source.kind
      :skills

      iex> {:error, error} = Skillbook.Source.new(path: "/srv/notes", knd: :notes)
      iex> Exception.message(error)
      "unknown option :knd for a source, did you mean :kind? The options are :path, :name, :kind, :labels, :optional, :trust, :available, :inline"
  """

  alias Skillbook.Source.Config
  alias Skillbook.Support.Options
  alias Skillbook.{ConfigError, Native, OptionError}

  @type t :: %__MODULE__{
          path: Path.t(),
          name: String.t(),
          kind: :skills | :notes | :stored,
          labels: [String.t()],
          optional: boolean(),
          trust: :none | :low | :medium | :high,
          available: [String.t()] | nil,
          inline: [String.t()] | nil
        }

  @typedoc "What may stand in a list of sources; see `list/1`."
  @type item ::
          t()
          | Path.t()
          | keyword()
          | :conventional
          | {:conventional, keyword()}
          | {:config, Path.t()}
          | {:config, Path.t(), keyword()}
          | {:installed, Path.t()}
          | {:installed, Path.t(), keyword()}

  @enforce_keys [:path, :name]
  defstruct [
    :path,
    :name,
    :available,
    :inline,
    kind: :skills,
    labels: [],
    optional: false,
    trust: :medium
  ]

  @doc "Makes a source of a path, of options, or of a source."
  @spec new(t() | Path.t() | keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(%__MODULE__{} = source), do: {:ok, source}
  def new(path) when is_binary(path), do: new(path: path)

  def new(options) do
    with :ok <- Options.validate(options, "a source", schema()),
         {:ok, path} <- fetch_path(options),
         :ok <- check_globs(options, :available),
         :ok <- check_globs(options, :inline) do
      path = Path.expand(path)

      {:ok,
       struct!(%__MODULE__{path: path, name: Path.basename(path)}, Keyword.delete(options, :path))}
    end
  end

  @doc """
  Makes sources of a list, in its order.

  ## Items

    * a path, options of a source, or a source
    * `:conventional` or `{:conventional, options}` - the sources of `conventional/1`
    * `{:config, path}` or `{:config, path, options}` - the sources of `from_json/2`
    * `{:installed, path}` or `{:installed, path, options}` - a folder of skills that `Skillbook.Package` installed: other people's,
      so with the trust `:low` and the label `"imported"`, which only profiles see that hold it. Options of a source may say
      otherwise

  ## Examples

      iex> {:ok, sources} = Skillbook.Source.list(["/srv/skills", {:conventional, home: "/home/ann", project: "/srv/app"}])
      iex> Enum.map(sources, & &1.name)
      ["skills", "user .claude", "user .agents", "project .claude", "project .agents"]

      iex> {:ok, [source]} = Skillbook.Source.list([{:installed, "/srv/app/.agents/skills"}])
      iex> {source.name, source.trust, source.labels}
      {"installed", :low, ["imported"]}
  """
  @spec list([item()]) :: {:ok, [t()]} | {:error, OptionError.t() | ConfigError.t()}
  def list(items) when is_list(items) do
    with {:ok, sources} <- Options.each(items, &item/1), do: {:ok, Enum.concat(sources)}
  end

  defp item(:conventional), do: conventional([])
  defp item({:conventional, options}), do: conventional(options)
  defp item({:config, path}), do: from_json(path, [])
  defp item({:config, path, options}), do: from_json(path, options)
  defp item({:installed, path}), do: item({:installed, path, []})

  defp item({:installed, path, options}) when is_binary(path) and is_list(options) do
    item(
      [path: path] ++
        Keyword.merge([name: "installed", labels: ["imported"], trust: :low], options)
    )
  end

  defp item(source), do: with({:ok, source} <- new(source), do: {:ok, [source]})

  @doc """
  The folders where programs that know Agent Skills look for them: `.claude/skills` and `.agents/skills`, first the
  user's, then the project's, so that a project's skill replaces the user's of that name. None of them has to be there.

  The user's have the trust `:medium`. A project may be somebody else's, and its skills tell a model what to do: they are
  not read unless `:trusted` says that the user vouches for the project, and then they have the trust `:medium` too.

  ## Options

    * `:home` - the user's home; that of the process if it is left out
    * `:project` - the project's folder; the current one if it is left out
    * `:trusted` - whether the user vouches for the project; `false` if it is left out

  A folder that would occur twice, as when the project is the home itself, is used once, as the user's.

  ## Examples

      iex> {:ok, sources} = Skillbook.Source.conventional(home: "/home/ann", project: "/srv/app")
      iex> for source <- sources, do: {source.name, source.path, source.trust}
      [
        {"user .claude", "/home/ann/.claude/skills", :medium},
        {"user .agents", "/home/ann/.agents/skills", :medium},
        {"project .claude", "/srv/app/.claude/skills", :none},
        {"project .agents", "/srv/app/.agents/skills", :none}
      ]
  """
  @spec conventional(keyword()) :: {:ok, [t()]} | {:error, OptionError.t()}
  def conventional(options \\ []) do
    with :ok <- Options.validate(options, "the conventional places", conventional_schema()) do
      trust = if options[:trusted], do: :medium, else: :none
      home = Keyword.get_lazy(options, :home, &System.user_home/0)
      project = Keyword.get_lazy(options, :project, &File.cwd!/0)
      user = if home, do: places("user", home, :medium), else: []
      {:ok, Enum.uniq_by(user ++ places("project", project, trust), &identity(&1.path))}
    end
  end

  defp places(whose, folder, trust) do
    for place <- [".claude", ".agents"] do
      path = folder |> Path.join(place) |> Path.join("skills") |> Path.expand()
      %__MODULE__{path: path, name: "#{whose} #{place}", optional: true, trust: trust}
    end
  end

  # Two paths may lead to one folder by a link.
  defp identity(path) do
    case File.stat(path) do
      {:ok, %{inode: inode, major_device: device}} when inode > 0 -> {device, inode}
      _ -> path
    end
  end

  @doc """
  The sources that a JSON file names.

      {
        "skills": [
          {"root": "~/skills", "available": ["*"], "inline": ["critical-*"]},
          "vendor/skills"
        ]
      }

  The file holds an object with `skills`, or an object with `agents`: a list of objects, each with an `agentId` and its
  `skills`. All else in these objects is left to other programs. Without `skills` there are no sources.

  Each of the `skills` is a path or an object with the keys `root` (the folder, required), `available`, `inline`, `name`,
  `kind` (`"skills"` or `"notes"`), `labels`, `trust` (`"none"`, `"low"`, `"medium"` or `"high"`) and `optional`, as in
  the options above. Paths may begin with `~`; others are relative to the current folder. The file may have 1 MiB. A key may
  occur once in an object; errors tell the line and column and which value is meant.

  ## Options

    * `:agent` - the id of the agent whose sources are wanted; needed if the file has `agents` and no `skills`
  """
  @spec from_json(Path.t(), keyword()) ::
          {:ok, [t()]} | {:error, ConfigError.t() | OptionError.t()}
  def from_json(path, options \\ []) do
    with :ok <-
           Options.validate(options, "a configuration file", agent: {"text", &Options.text?/1}),
         {:ok, items} <- Config.read(Path.expand(path), options[:agent]) do
      Options.each(items, &new/1)
    end
  end

  @doc "The skills that come with Skillbook: `:skills`, those of any book, or `:vaults`, which a book with vaults has besides."
  @spec builtin(:skills | :vaults) :: t()
  def builtin(which \\ :skills) when which in [:skills, :vaults] do
    %__MODULE__{
      path: Application.app_dir(:skillbook, "priv/#{which}"),
      name: "builtin",
      trust: :high
    }
  end

  @doc false
  # What the database of a book holds, which is no folder: its path is what the paths of its entries begin with.
  @spec stored() :: t()
  def stored, do: %__MODULE__{path: "store", name: "store", kind: :stored}

  defp fetch_path(options) do
    with :error <- Keyword.fetch(options, :path) do
      {:error, %OptionError{subject: "a source", option: :path, problem: :missing}}
    end
  end

  defp check_globs(options, option) do
    with {:error, {glob, reason}} <- Native.globs_check(options[option] || []) do
      {:error,
       %OptionError{
         subject: "a source",
         option: option,
         problem: {:invalid, "globs (#{reason})", glob}
       }}
    end
  end

  defp conventional_schema do
    [
      home: {"a folder", &Options.text?/1},
      project: {"a folder", &Options.text?/1},
      trusted: {"a boolean", &is_boolean/1}
    ]
  end

  defp schema do
    globs = {"a list of globs or nil", &(is_nil(&1) or Options.texts?(&1))}

    [
      path: {"a path", &Options.text?/1},
      name: {"text", &Options.text?/1},
      kind: {":skills or :notes", &(&1 in [:skills, :notes])},
      labels: {"a list of texts", &Options.texts?/1},
      optional: {"a boolean", &is_boolean/1},
      trust: {":high, :medium, :low or :none", &(&1 in [:high, :medium, :low, :none])},
      available: globs,
      inline: globs
    ]
  end
end
