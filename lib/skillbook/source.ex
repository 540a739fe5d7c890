defmodule Skillbook.Source do
  @moduledoc """
  Describes a folder with skills or notes, or the skills of an application's modules.

  Lists of sources, as in the option `:sources` of a book, also take paths and shortcuts for
  several folders; see `list/1`.

  ## Options

    * `:path` (path) - the folder. `~` and paths relative to the current folder are expanded.
      Required
    * `:name` (text) - the name of the source. Defaults to the name of the folder
    * `:kind` (`:skills` or `:notes`) - in a folder of notes every Markdown file is an entry, with
      or without frontmatter. Defaults to `:skills`
    * `:labels` (list of texts) - visibility labels for all of its entries, in addition to their
      own. Defaults to `[]`
    * `:tenant` (text or `nil`) - the tenant that all of its entries belong to: other tenants, and
      profiles without one, do not see them. Defaults to `nil`, they are common to all
    * `:optional` (boolean) - whether the folder may be missing, which is only a warning. A book
      does not start without the folders of its other sources. Defaults to `false`
    * `:trust` (`:high`, `:medium`, `:low` or `:none`) - the trust in its content. A folder with
      `:none` is not read. Defaults to `:medium`
    * `:available` (list of globs) - the names of the entries to list. Defaults to all, if
      `:inline` is not set either
    * `:inline` (list of globs) - the names of the entries with their full text in the prompt

  Entries that match neither `:available` nor `:inline` are not used. In globs case matters, `*`
  matches any characters and `?` one character.

  ## Examples

      iex> {:ok, source} = Skillbook.Source.new(path: "/srv/notes", kind: :notes, labels: ["me"])
      iex> {source.name, source.kind, source.labels}
      {"notes", :notes, ["me"]}

      iex> {:ok, source} = Skillbook.Source.new("/srv/skills")
      iex> source.kind
      :skills

      iex> {:error, error} = Skillbook.Source.new(path: "/srv/notes", knd: :notes)
      iex> error |> Exception.message() |> String.split("? ") |> hd()
      "unknown option :knd for a source, did you mean :kind"
  """

  alias Skillbook.Source.Config
  alias Skillbook.Support.{Options, UntilError}

  alias Skillbook.{
    ConfigError,
    Diagnostic,
    Native,
    OptionError,
    Part,
    Profile,
    Skill,
    Source,
    SourceError
  }

  @typedoc "Where the pages of a source of code come from."
  @type code ::
          {:application, atom()}
          | {:modules, [module()]}
          | {:skill, Skill.t()}
          | {part :: atom(), settings :: struct()}

  @type t :: %__MODULE__{
          path: Path.t(),
          name: String.t(),
          kind: :skills | :notes | :stored | :code | :mcp,
          code: code() | nil,
          labels: [String.t()],
          tenant: String.t() | nil,
          optional: boolean(),
          implied: boolean(),
          trust: :none | :low | :medium | :high,
          available: [String.t()] | nil,
          inline: [String.t()] | nil
        }

  @typedoc "An item of a list of sources; see `list/1`."
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
          | {:priv, atom(), Path.t()}
          | {:priv, atom(), Path.t(), keyword()}
          | {:modules, atom() | [module()]}
          | {:modules, atom() | [module()], keyword()}
          | {:mcp, String.t() | [String.t()], keyword()}
          | Skill.t()

  @enforce_keys [:path, :name]
  defstruct [
    :path,
    :name,
    :available,
    :inline,
    :code,
    :tenant,
    kind: :skills,
    labels: [],
    optional: false,
    # A folder that nobody has named may be missing without a warning.
    implied: false,
    trust: :medium
  ]

  @doc """
  Makes a source from a path, from options, or from a source.

      iex> {:error, error} = Skillbook.Source.new(kind: :notes)
      iex> Exception.message(error)
      "a source needs the option :path"
  """
  @spec new(t() | Path.t() | Skillbook.options()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(%__MODULE__{} = source), do: {:ok, source}
  def new(path) when is_binary(path), do: new(path: path)

  def new(options) do
    options = Options.keywords(options)

    with :ok <- Options.validate(options, "a source", schema()),
         {:ok, path} <- fetch_path(options),
         :ok <- check_globs(options, :available),
         :ok <- check_globs(options, :inline) do
      path = Path.expand(path)
      source = %__MODULE__{path: path, name: Path.basename(path)}
      {:ok, struct!(source, Keyword.delete(options, :path))}
    end
  end

  @doc """
  Like `new/1`, but raises the error.

      iex> Skillbook.Source.new!(path: "/srv/skills", trust: :low).name
      "skills"
  """
  @spec new!(t() | Path.t() | Skillbook.options()) :: t()
  def new!(source) do
    case new(source) do
      {:ok, source} -> source
      {:error, error} -> raise error
    end
  end

  @doc """
  Makes sources from a list of items, in its order.

  ## Items

    * a path, the options of a source, or a source
    * `{:priv, application, path}` or `{:priv, application, path, options}` - a folder in the
      `priv` of an application, such as `{:priv, :my_app, "skills"}`. It is found wherever the
      application is installed, also in a release, while other relative paths start at the current
      folder. The options are those of a source
    * `:conventional` or `{:conventional, options}` - the sources of `conventional/1`
    * `{:config, path}` or `{:config, path, options}` - the sources of `from_json/2`
    * `{:installed, path}` or `{:installed, path, options}` - a folder of skills installed by
      `Skillbook.Package`. They come from other people, so the source has the trust `:low` and the
      label `"imported"`, unless the options of a source say otherwise
    * `{:modules, application}` or `{:modules, application, options}` - all modules of the
      application that `use Skillbook.Skill`; a list of modules in its place means only these. The
      options are `:name`, `:labels`, `:tenant`, `:available`, `:inline` and `:trust`, by default
      `:high`
    * a `Skillbook.Skill` - a command made of a function
    * `{:mcp, url, options}` or `{:mcp, [program | arguments], options}` - the tools and skills of
      an MCP server; see `Skillbook.MCP.Client`

  A folder that is listed twice is an error, unless its options differ, such as the globs or the
  labels.

  ## Examples

      iex> items = ["/srv/skills", {:conventional, home: "/home/ann", project: "/srv/app"}]
      iex> {:ok, sources} = Skillbook.Source.list(items)
      iex> Enum.map(sources, & &1.name)
      ["skills", "user .claude", "user .agents", "project .claude", "project .agents"]

      iex> {:ok, [source]} = Skillbook.Source.list([{:installed, "/srv/app/.agents/skills"}])
      iex> {source.name, source.trust, source.labels}
      {"installed", :low, ["imported"]}

      iex> {:ok, [source]} = Skillbook.Source.list([{:priv, :skillbook, "skills"}])
      iex> source.path == Application.app_dir(:skillbook, "priv/skills")
      true
  """
  @spec list([item()]) :: {:ok, [t()]} | {:error, OptionError.t() | ConfigError.t()}
  def list(items) do
    with :ok <- check_list(items),
         {:ok, sources} <- UntilError.map(items, &item/1),
         sources = Enum.concat(sources),
         :ok <- check_repeated(sources),
         :ok <- check_labels(sources),
         do: {:ok, sources}
  end

  # The options of one source are a list too.
  defp check_list(items) do
    if is_list(items) and not (items != [] and Keyword.has_key?(items, :path)),
      do: :ok,
      else: invalid("a list of sources, such as [\"skills\"],", ":sources", items)
  end

  # A folder that is listed twice would have all of its entries twice.
  defp check_repeated(sources) do
    sources
    |> Enum.reject(&(&1.kind == :stored or &1.trust == :none))
    |> Enum.frequencies_by(&%{&1 | name: "", optional: false, implied: false})
    |> Enum.find_value(:ok, fn
      {_source, 1} -> nil
      {%{path: path}, _many} -> invalid("each folder once", ":sources", path)
    end)
  end

  # The label of a server is the namespace of its names.
  defp check_labels(sources) do
    labels = for %{kind: :mcp, name: label} <- sources, do: label

    case labels -- Enum.uniq(labels) do
      [] -> :ok
      [label | _] -> invalid("each label of an MCP server once", ":sources", label)
    end
  end

  defp invalid(expected, subject, value) do
    {:error, %OptionError{subject: subject, option: nil, problem: {:invalid, expected, value}}}
  end

  defp item(:conventional), do: conventional([])
  defp item({:conventional, options}), do: conventional(options)
  defp item({:config, path}), do: from_json(path, [])
  defp item({:config, path, options}), do: from_json(path, options)
  defp item({:installed, path}), do: item({:installed, path, []})

  defp item({:installed, path, options} = item) when is_binary(path) do
    options = Options.keywords(options)

    if Keyword.keyword?(options) do
      defaults = [name: "installed", labels: ["imported"], trust: :low]
      item([path: path] ++ Keyword.merge(defaults, options))
    else
      invalid("{:installed, path, options}", "a source", item)
    end
  end

  defp item({:priv, application, path}), do: item({:priv, application, path, []})

  defp item({:priv, application, path, options} = item) do
    options = Options.keywords(options)

    with {:ok, folder} <- priv(application, path, item) do
      if Keyword.keyword?(options) and not Keyword.has_key?(options, :path),
        do: item([path: folder] ++ options),
        else: invalid("{:priv, application, path, options} without a :path", "a source", item)
    end
  end

  defp item({:modules, modules}), do: item({:modules, modules, []})

  defp item({:modules, modules, options}) do
    with {:ok, code, name} <- code(modules),
         :ok <- Options.validate(options, "a source of modules", code_schema()),
         :ok <- check_globs(options, :available),
         :ok <- check_globs(options, :inline) do
      {:ok, [struct!(%{of_code(code) | name: name}, options)]}
    end
  end

  defp item(%Skill{} = skill), do: {:ok, [of_code({:skill, skill})]}

  defp item(item) do
    with :other <- Part.first(Part.installed(), :source, [item]),
         :ok <- installed(item),
         {:ok, source} <- new(item),
         do: {:ok, [source]}
  end

  # A kind of source of a package.
  defp installed(item) when is_tuple(item) and is_atom(elem(item, 0)) do
    case Part.package(elem(item, 0)) do
      nil ->
        :ok

      package ->
        problem = {:package, package}
        {:error, %OptionError{subject: "a source", option: elem(item, 0), problem: problem}}
    end
  end

  defp installed(_item), do: :ok

  # The paths of its pages are those of the code, and do not begin with this one.
  defp of_code(code),
    do: %__MODULE__{path: "code", name: "functions", kind: :code, code: code, trust: :high}

  @doc false
  # Tells the servers among sources the name of their book.
  @spec of_book([t()], atom()) :: [t()]
  def of_book(sources, book) do
    Enum.map(sources, fn
      %{code: {:mcp, settings}} = source -> %{source | code: {:mcp, %{settings | book: book}}}
      source -> source
    end)
  end

  defp code(application) when is_atom(application) do
    case Application.load(application) do
      {:error, reason} when not is_tuple(reason) or elem(reason, 0) != :already_loaded ->
        invalid("{:modules, application} with an application that exists", "a source", {
          :modules,
          application
        })

      _loaded ->
        {:ok, {:application, application}, Atom.to_string(application)}
    end
  end

  defp code([_ | _] = modules) do
    case Enum.reject(modules, &(is_atom(&1) and Source.Code.skill?(&1))) do
      [] ->
        {:ok, {:modules, Enum.uniq(modules)}, "modules"}

      [other | _] ->
        invalid("{:modules, modules} with modules that use Skillbook.Skill", "a source", other)
    end
  end

  defp code(other) do
    expected = "{:modules, application} or {:modules, modules}"
    invalid(expected, "a source", {:modules, other})
  end

  # `path` may not leave the folder `priv`.
  defp priv(application, path, item) do
    with true <- is_atom(application) and Options.text?(path),
         {:ok, path} <- Path.safe_relative_to(path, "/"),
         {:ok, folder} <- app_dir(application) do
      {:ok, Path.join([folder, "priv", path])}
    else
      _ ->
        expected = "{:priv, application, path} with an application that is loaded and a path in "
        invalid(expected <> "its priv", "a source", shown(item))
    end
  end

  defp shown({:priv, application, path, []}), do: {:priv, application, path}
  defp shown(item), do: item

  defp app_dir(application) do
    {:ok, Application.app_dir(application)}
  rescue
    ArgumentError -> :error
  end

  @doc false
  # Returns the folders to watch for changes of a source.
  @spec folders(t()) :: [Path.t()]
  def folders(%__MODULE__{trust: :none}), do: []
  def folders(%__MODULE__{kind: :stored}), do: []

  def folders(%__MODULE__{kind: kind} = source) when kind in [:code, :mcp],
    do: Source.Code.folders(source)

  def folders(%__MODULE__{path: path}), do: [path]

  @doc false
  # Returns an error if the folder of a required source was missing when a catalog was loaded.
  @spec check_required([t()], [Diagnostic.t()]) :: :ok | {:error, SourceError.t()}
  def check_required(sources, diagnostics) do
    missing =
      for %{code: :source_missing} = found <- diagnostics, into: %{}, do: {found.path, found}

    Enum.find_value(sources, :ok, fn source ->
      with %{optional: false, path: path, name: name} <- source,
           %{message: reason} <- missing[path],
           do: {:error, %SourceError{source: name, path: path, reason: reason}},
           else: (_ -> nil)
    end)
  end

  @doc """
  Returns the conventional folders of Agent Skills: `.claude/skills` and `.agents/skills` of the
  user and of the project.

  The folders of the project come last, so its skills replace the user's. All of them may be
  missing.

  The user's folders have the trust `:medium`. A project may come from someone else, and its
  skills instruct the model, so its folders are only read with `trusted: true`; then they have the
  trust `:medium` too.

  ## Options

    * `:home` (path) - the user's home. Defaults to the home of the process
    * `:project` (path) - the folder of the project. Defaults to the current folder
    * `:trusted` (boolean) - whether the user trusts the project. Defaults to `false`

  If both paths lead to the same folder, it is listed once, as the user's.

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
  @spec conventional(Skillbook.options()) :: {:ok, [t()]} | {:error, OptionError.t()}
  def conventional(options \\ []) do
    options = Options.keywords(options)

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

      %__MODULE__{
        path: path,
        name: "#{whose} #{place}",
        trust: trust,
        optional: true,
        implied: true
      }
    end
  end

  # Two paths may lead to the same folder through a link.
  defp identity(path) do
    case File.stat(path) do
      {:ok, %{inode: inode, major_device: device}} when inode > 0 -> {device, inode}
      _ -> path
    end
  end

  @doc """
  Reads sources from a JSON file.

      {
        "skills": [
          {"root": "~/skills", "available": ["*"], "inline": ["critical-*"]},
          "vendor/skills"
        ]
      }

  The file contains an object with `skills`, or an object with `agents`: a list of objects, each
  with an `agentId` and `skills`. Other keys of these objects are ignored. Without `skills` there
  are no sources.

  Each of the `skills` is a path, or an object with the keys `root` (the folder, required),
  `available`, `inline`, `name`, `kind` (`"skills"` or `"notes"`), `labels`, `trust` (`"none"`,
  `"low"`, `"medium"` or `"high"`) and `optional`, which are the options above. Paths may begin
  with `~`; others are relative to the current folder. The file may have up to 1 MiB, and no
  duplicate keys. Errors have the line, the column and the path of the value.

  ## Options

    * `:agent` (text) - the id of the agent. Required if the file has `agents` and no `skills`
  """
  @spec from_json(Path.t(), Skillbook.options()) ::
          {:ok, [t()]} | {:error, ConfigError.t() | OptionError.t()}
  def from_json(path, options \\ []) do
    options = Options.keywords(options)

    with :ok <-
           Options.validate(options, "a configuration file", agent: {"text", &Options.text?/1}),
         {:ok, items} <- Config.read(Path.expand(path), options[:agent]),
         {:ok, sources} <- UntilError.map(items, &item/1),
         do: {:ok, Enum.concat(sources)}
  end

  # The packages of the built-in skills.
  @builtins %{
    skills: :skillbook,
    assistant: :skillbook,
    agent: :skillbook_agent,
    hand_over: :skillbook_agent,
    vaults: :skillbook_vault,
    connections: :skillbook_accounts
  }

  @doc """
  Returns a source of built-in skills: `:skills`; `:vaults` or `:connections`, those for books
  with vaults or connections; `:agent`, and `:hand_over` for books whose agents may hand
  conversations over; or `:assistant`, [instructions for an
  assistant](skills.md#begin-with-the-assistant-pack).

      iex> Skillbook.Source.builtin().trust
      :high
  """
  @spec builtin(:skills | :agent | :hand_over | :vaults | :connections | :assistant) :: t()
  def builtin(which \\ :skills) when is_map_key(@builtins, which),
    do: builtin(Map.fetch!(@builtins, which), which)

  @doc false
  # A folder of pages in the `priv` of a package.
  @spec builtin(atom(), atom()) :: t()
  def builtin(application, folder) do
    path = Application.app_dir(application, "priv/#{folder}")
    %__MODULE__{path: path, name: "builtin", trust: :high}
  end

  @doc false
  # Returns the source for the database of a book. Its path is not a folder, but the prefix of its
  # entries' paths.
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

  defp code_schema do
    schema()
    |> Keyword.take([:name, :labels, :tenant, :trust, :available, :inline])
    |> Keyword.put(:trust, {":high, :medium or :low", &(&1 in [:high, :medium, :low])})
  end

  defp schema do
    globs = {"a list of globs or nil", &(is_nil(&1) or Options.texts?(&1))}

    [
      path: {"a path", &Options.text?/1},
      name: {"text", &Options.text?/1},
      kind: {":skills or :notes", &(&1 in [:skills, :notes])},
      labels: {"a list of texts", &Options.texts?/1},
      tenant: {"text of 1 to 200 bytes or nil", &(is_nil(&1) or Profile.name?(&1))},
      optional: {"a boolean", &is_boolean/1},
      trust: {":high, :medium, :low or :none", &(&1 in [:high, :medium, :low, :none])},
      available: globs,
      inline: globs
    ]
  end
end
