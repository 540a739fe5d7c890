defmodule Skillbook.Entry do
  @moduledoc """
  One document with its metadata.

  ## Fields

    * `:name` - its name, which occurs once in a catalog
    * `:kind` - `:command` (`email.send`), `:skill` or `:note`
    * `:domain` - a command's domain, else `nil`
    * `:title` - the title; a note without one has its first heading or its file's name
    * `:description` - what it is for; `""` for a note without one
    * `:handler` - the module that runs it, as written; it is resolved only when it runs. `nil` too if its source has low
      trust
    * `:tags`, `:aliases`, `:requires`, `:allowed_tools` - lists of texts
    * `:labels` - the visibility labels, its own and its source's
    * `:effects` - `:read`, `:write` or `nil`; `effect/1` has what is taken if nothing is written
    * `:limits` - those of its handler that the page has: `:timeout`, how long it may take, in milliseconds, and
      `:max_running`, how many calls of it may run at a time
    * `:strict` - whether a command's flags are checked against its page also if it has no handler
    * `:schedule`, `:timezone` - as written, for `Skillbook.Schedule`; `nil` if they cannot be read. `:schedule` is `nil` too if
      its source has low trust or `:timezone` cannot be read
    * `:include_in_prompt` - whether it belongs into prompts; profiles may be named that differ
    * `:hidden_from_model` - whether only people and programs name it, and a model is not told of it
      (`disable-model-invocation`)
    * `:user_invocable` - whether people may name it (`user-invocable`)
    * `:triggers` - words that speak for it (`trigger_keywords`)
    * `:license`, `:compatibility` - texts or `nil`
    * `:metadata` - a map of texts, as the Agent Skills format has it
    * `:selection` - how its source's globs select it: `:available` or `:inline`
    * `:trust` - its source's trust: `:low`, `:medium` or `:high`; in the store that of who wrote it, `:low` if it was imported
    * `:files` - the other files of a skill's folder, relative to it, sorted
    * `:usage` - the first line of its Usage section
    * `:data` - the frontmatter as written, with string keys; in the store the columns under the same names
    * `:body` - the text after the frontmatter
    * `:path` - its file; in the store `store/NAME.md`
    * `:source` - its source's name
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
          effects: :read | :write | nil,
          limits: %{optional(:timeout) => pos_integer(), optional(:max_running) => pos_integer()},
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
          metadata: %{optional(String.t()) => String.t()},
          selection: :available | :inline,
          trust: :low | :medium | :high,
          files: [String.t()],
          usage: String.t() | nil,
          data: map(),
          body: binary(),
          path: String.t(),
          source: String.t()
        }

  # With more than 32 keys, `__struct__` among them, a map is a tree, and each entry costs twice the memory and the time.
  @enforce_keys [:name, :kind, :description, :body, :path, :source]
  defstruct [
    :name,
    :kind,
    :domain,
    :title,
    :description,
    :handler,
    :effects,
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

  @reading ~w(search get list read find show count)

  @doc """
  Whether running it changes something: `effects` of its frontmatter; else `:read` if it has no handler, or if the last part
  of its name is #{Enum.map_join(@reading, ", ", &"`#{&1}`")}; else `:write`.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> for name <- ["email.search", "email.send", "haiku"], do: Skillbook.Entry.effect(Skillbook.View.fetch!(view, name))
      [:read, :write, :read]
  """
  @spec effect(t()) :: :read | :write
  def effect(%__MODULE__{effects: effect}) when effect != nil, do: effect
  def effect(%__MODULE__{handler: nil}), do: :read

  def effect(%__MODULE__{name: name}) do
    if name |> String.split(".") |> List.last() |> Kernel.in(@reading), do: :read, else: :write
  end

  @doc false
  # The module that its page names. Nothing in a file ever becomes a new atom: the modules of all loaded applications have theirs.
  @spec fetch_handler(t()) :: {:ok, module()} | {:error, Exception.t() | nil}
  def fetch_handler(%__MODULE__{handler: handler}) when is_binary(handler) do
    module = String.to_existing_atom("Elixir." <> String.replace_prefix(handler, "Elixir.", ""))

    if Code.ensure_loaded?(module) and function_exported?(module, :execute, 2),
      do: {:ok, module},
      else: {:error, nil}
  rescue
    error in [ArgumentError, SystemLimitError] -> {:error, error}
  end

  def fetch_handler(_entry), do: {:error, nil}

  @doc false
  # Says which text a model was handed, so that it need not be sent twice.
  @spec activation(t()) :: %{name: String.t(), hash: String.t()}
  def activation(%__MODULE__{name: name, body: body}), do: %{name: name, hash: digest(body)}

  @doc false
  # What two texts that a model reads have in common only if they are the same.
  @spec digest(String.t()) :: String.t()
  def digest(text) do
    digest = :crypto.hash(:sha256, String.trim(text))
    digest |> binary_part(0, 8) |> Base.encode16(case: :lower)
  end
end
