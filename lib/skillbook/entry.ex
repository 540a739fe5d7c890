defmodule Skillbook.Entry do
  @moduledoc """
  A document of the catalog: a command, a skill or a note, with its metadata.

  `Skillbook.View.fetch/2` and `Skillbook.View.entries/2` return entries:

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, entry} = Skillbook.View.fetch(Skillbook.View.all(catalog), "tasks.get")
      iex> {entry.kind, entry.domain, entry.handler}
      {:command, "tasks", "Skillbook.Handlers.Tasks.Get"}

  ## Fields

  Identity:

    * `:name` - the name, unique in a view
    * `:kind` - `:command` (such as `email.send`), `:skill` or `:note`
    * `:domain` - the domain of a command, or `nil`
    * `:title` - the title, or `nil`; a note without one has its first heading or its file's name
    * `:description` - the description; `""` for a note without one
    * `:aliases`, `:tags` - lists of texts
    * `:triggers` - keywords for suggesting it (`trigger_keywords`)

  Content:

    * `:body` - the text after the frontmatter
    * `:usage` - the first line of the Usage section, or `nil`
    * `:data` - the frontmatter with string keys; in the store, with the columns by name in place
      of fields of the same name. Fields that are texts, such as `version`, and all scalars of
      `metadata` are texts as their author wrote them; other values have their YAML types. See
      `Skillbook.View.frontmatter/2` for the exact text
    * `:files` - the other files of a skill's folder, as sorted relative paths
    * `:requires` - the names of required skills
    * `:license`, `:compatibility` - texts or `nil`
    * `:metadata` - the frontmatter's mapping of this name, `%{}` without one: texts as their
      author wrote them, lists, maps and `nil`

  Running:

    * `:handler` - the handler as written, or `nil`; resolved when it runs. Always `nil` for
      sources of low trust
    * `:effects` - `:read` or `:write`; see `effect/1`
    * `:limits` - limits of the page: `:timeout` of its handler in milliseconds, `:max_running`,
      the number of concurrent calls, `:approval`, which is `:required` if each call needs an
      approval, or the flags, without dashes, whose calls do; `:idempotent`, `true` if a call
      whose end is unknown may run again; and its `:tenant`, if it has one; see `tenant/1`
    * `:strict` - whether the flags of a command without a handler are checked too
    * `:allowed_tools` - patterns of tools; see `Skillbook.View.tools/2`
    * `:schedule`, `:timezone` - as written, for `Skillbook.Schedule`; `nil` if invalid.
      `:schedule` is also `nil` for sources of low trust, and if `:timezone` is invalid

  Visibility:

    * `:labels` - the visibility labels of the entry and its source
    * `:include_in_prompt` - whether it is in prompts; profiles may differ
    * `:hidden_from_model` - whether it is hidden from models (`disable-model-invocation`)
    * `:user_invocable` - whether people may call it (`user-invocable`)
    * `:selection` - `:available` or `:inline`, the globs of the source that select it

  Origin:

    * `:path` - the file; in the store `store/NAME.md`
    * `:source` - the name of the source
    * `:trust` - the trust of the source: `:low`, `:medium` or `:high`; in the store the trust of
      the author, `:low` if it was imported
  """

  @type t :: %__MODULE__{
          name: String.t(),
          kind: :command | :skill | :note,
          domain: String.t() | nil,
          title: String.t() | nil,
          description: String.t(),
          handler: String.t() | nil,
          tags: [String.t()],
          labels: [String.t()],
          aliases: [String.t()],
          requires: [String.t()],
          effects: :read | :write,
          limits: %{
            optional(:timeout) => pos_integer(),
            optional(:max_running) => pos_integer(),
            optional(:approval) => :required | [String.t(), ...],
            optional(:idempotent) => true,
            optional(:tenant) => String.t()
          },
          strict: boolean(),
          allowed_tools: [String.t()],
          schedule: String.t() | nil,
          timezone: String.t() | nil,
          include_in_prompt: boolean(),
          hidden_from_model: boolean(),
          user_invocable: boolean(),
          triggers: [String.t()],
          license: String.t() | nil,
          compatibility: String.t() | nil,
          metadata: %{optional(String.t()) => metadata()},
          selection: :available | :inline,
          trust: :low | :medium | :high,
          files: [String.t()],
          usage: String.t() | nil,
          data: map(),
          body: binary(),
          path: String.t(),
          source: String.t()
        }

  @typedoc "A value of `metadata` in frontmatter."
  @type metadata ::
          String.t() | nil | [metadata()] | %{optional(String.t()) => metadata()}

  # At most 32 keys, with `__struct__`: larger maps are trees, which take twice the memory and the
  # time.
  @enforce_keys [:name, :kind, :description, :body, :path, :source]
  defstruct [
    :name,
    :kind,
    :domain,
    :title,
    :description,
    :handler,
    :schedule,
    :timezone,
    :license,
    :compatibility,
    :usage,
    :body,
    :path,
    :source,
    tags: [],
    labels: [],
    aliases: [],
    requires: [],
    effects: :read,
    limits: %{},
    strict: false,
    allowed_tools: [],
    include_in_prompt: true,
    hidden_from_model: false,
    user_invocable: true,
    triggers: [],
    metadata: %{},
    selection: :available,
    trust: :medium,
    files: [],
    data: %{}
  ]

  @doc """
  Returns whether running an entry has side effects: `:read` or `:write`.

  The `effects` of the frontmatter decide. Without them an entry is `:read` if it has no handler,
  or if the last part of its name is `search`, `get`, `list`, `read`, `find`, `show` or `count`.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> for name <- ["tasks.search", "tasks.create"] do
      ...>   Skillbook.Entry.effect(Skillbook.View.fetch!(view, name))
      ...> end
      [:read, :write]
  """
  @spec effect(t()) :: :read | :write
  def effect(%__MODULE__{effects: effects}), do: effects

  @doc """
  Returns the tenant that an entry belongs to, or `nil` if it is common to all tenants.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Entry.tenant(Skillbook.View.fetch!(view, "tasks.search"))
      nil
  """
  @spec tenant(t()) :: String.t() | nil
  def tenant(%__MODULE__{limits: limits}), do: limits[:tenant]

  @doc false
  # Returns the handler of an entry, or of the text of one: a module, or one of the functions of
  # its catalog. Only existing atoms are used, so a file cannot create new ones; the modules of
  # loaded applications have theirs.
  @spec fetch_handler(t() | String.t(), Skillbook.Source.Code.functions()) ::
          {:ok, module() | function()} | {:error, Exception.t() | nil}
  def fetch_handler(handler, functions \\ %{})

  def fetch_handler(%__MODULE__{handler: handler}, functions) when is_binary(handler),
    do: fetch_handler(handler, functions)

  def fetch_handler(handler, functions) when is_map_key(functions, handler),
    do: Map.fetch(functions, handler)

  def fetch_handler(handler, _functions) when is_binary(handler) do
    module = String.to_existing_atom("Elixir." <> String.replace_prefix(handler, "Elixir.", ""))

    if Code.ensure_loaded?(module) and function_exported?(module, :execute, 2),
      do: {:ok, module},
      else: {:error, nil}
  rescue
    error in [ArgumentError, SystemLimitError] -> {:error, error}
  end

  def fetch_handler(_entry, _functions), do: {:error, nil}

  @doc false
  # Identifies a text that a model has read, so that it is not sent twice.
  @spec activation(t()) :: %{name: String.t(), hash: String.t()}
  def activation(%__MODULE__{name: name, body: body}), do: %{name: name, hash: digest(body)}

  @doc false
  # A short hash of a text.
  @spec digest(String.t()) :: String.t()
  def digest(text) do
    digest = :crypto.hash(:sha256, String.trim(text))
    digest |> binary_part(0, 8) |> Base.encode16(case: :lower)
  end
end
