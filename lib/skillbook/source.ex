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

  A path alone is a source of skills.

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

  alias Skillbook.{Native, OptionError, Options}

  @type t :: %__MODULE__{
          path: Path.t(),
          name: String.t(),
          kind: :skills | :notes,
          labels: [String.t()],
          optional: boolean(),
          trust: :none | :low | :medium | :high,
          available: [String.t()] | nil,
          inline: [String.t()] | nil
        }

  @enforce_keys [:path, :name]
  defstruct [:path, :name, :available, :inline, kind: :skills, labels: [], optional: false, trust: :medium]

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
      {:ok, struct!(%__MODULE__{path: path, name: Path.basename(path)}, Keyword.delete(options, :path))}
    end
  end

  @doc "The skills that come with Skillbook."
  @spec builtin() :: t()
  def builtin do
    %__MODULE__{path: Application.app_dir(:skillbook, "priv/skills"), name: "builtin", trust: :high}
  end

  defp fetch_path(options) do
    with :error <- Keyword.fetch(options, :path) do
      {:error, %OptionError{subject: "a source", option: :path, problem: :missing}}
    end
  end

  defp check_globs(options, option) do
    with {:error, {glob, reason}} <- Native.globs_check(options[option] || []) do
      {:error,
       %OptionError{subject: "a source", option: option, problem: {:invalid, "globs (#{reason})", glob}}}
    end
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
