defmodule Skillbook.Skill do
  @moduledoc ~S'''
  Defines a command in an Elixir module: its page and its handler in one file.

      defmodule MyApp.Skills.Refund do
        @moduledoc """
        ## Behavior

        Refunds an order in full, or a part of it. Ask for the reason if the customer gave none.
        """

        use Skillbook.Skill,
          name: "orders.refund",
          description: "Refunds an order that was paid",
          effects: :write,
          flags: [
            order: [type: :text, required: true, description: "The number of the order"],
            amount: [type: :number, min: 0, description: "In euros; without it the whole order"]
          ]

        @impl true
        def execute(%{"order" => order} = flags, context) do
          MyApp.Orders.refund(order, flags["amount"], by: context.profile.id)
        end
      end

  List the modules in the `:sources` of a book, all of an application's or some:

      {Skillbook, name: MyApp.Skills, sources: ["skills", {:modules, :my_app}]}
      {Skillbook, name: MyApp.Skills, sources: [{:modules, [MyApp.Skills.Refund]}]}

  The module becomes a page: the options are its frontmatter, and the module's documentation is
  its text, or the description if it has none. The page is read like a file, so access,
  precedence, prompts, help, tools and lint are the same. `execute/2` is that of
  `Skillbook.Handler`.

  The page is checked when the module is compiled. An unknown option, a value that a page may not
  have, or a missing `execute/2` is a `CompileError` with the file and the line.

  ## Options

    * `:name` (text) - the name, as `domain.action`. Required
    * `:description` (text) - a sentence by which a model chooses the command. Required
    * `:flags` (keyword list) - the flags, each with its type or its keys, as `flags` of a page:
      `[limit: :integer]` or `[limit: [type: :integer, min: 1, default: 20]]`; `[]` for none.
      Without this option any flags are passed as they were written. Besides [the types of
      pages](docs/flags.md) a flag may have a structure: `{:list, type}`, `{:map, fields}` with
      fields as flags, `{:map, type}` for any keys, `{:union, types}`, `{:one_of, values}` and
      `:any`. Such a value is checked, and arrives as JSON has it
    * `:input_schema` (map) - the arguments as a JSON Schema, instead of `:flags`
    * `:effects` (`:read` or `:write`) - whether it changes data
    * `:examples` (list of texts) - requests that lead to it; `{:not, text}` for one that does not
    * `:title` (text), `:tags`, `:aliases`, `:requires`, `:trigger_keywords` (lists of texts)
    * `:labels` (list of texts) - its visibility labels
    * `:timeout` (milliseconds) - the time limit of `execute/2`
    * `:max_running` (integer) - how many calls may run at once
    * `:idempotent` (boolean) - whether a call whose end is unknown may run again, in a [durable
      run](docs/durable-runs.md)
    * `:approval` (`:required` or list of flags) - whether each call needs [an
      approval](docs/approvals.md#ask-before-a-command-runs), or with `["--to"]` those with one of
      the flags
    * `:schedule`, `:timezone`, `:run_as` (texts) - [when it runs](docs/schedules.md), and as whom
    * `:job` (keyword list) - how a queue runs it; see `Skillbook.Oban`
    * `:include_in_prompt`, `:user_invocable`, `:disable_model_invocation`, `:replaces` (booleans)
    * `:exclude_from_prompt_profile_ids`, `:proactive_for_profile_ids` (lists of texts)
    * `:tool` (text) - the name of its tool definition; also one of the aliases
    * `:output` (map) - the JSON Schema of the data of its results, an object, for clients of
      [MCP](docs/mcp-reference.md#tools-prompts-and-resources)
    * `:metadata` (keyword list or map) - further data

  [Writing skills](docs/skills.md) describes these fields of a page.

  ## Structured values

      iex> order =
      ...>   Skillbook.Skill.new!(
      ...>     name: "orders.create",
      ...>     description: "Creates an order",
      ...>     flags: [
      ...>       lines: [
      ...>         type: {:list, {:map, sku: [type: :text, required: true], count: :integer}},
      ...>         required: true
      ...>       ]
      ...>     ],
      ...>     run: fn %{"lines" => lines}, _context -> {:ok, inspect(lines)} end
      ...>   )
      iex> {:ok, catalog} = Skillbook.Catalog.load([order])
      iex> view = Skillbook.View.all(catalog)
      iex> to_string(Skillbook.run(view, """
      ...> ```cmd
      ...> orders.create --lines '[{"sku": "A-1", "count": 2}]'
      ...> ```
      ...> """))
      ~s([1] orders.create --lines '[{"sku": "A-1", "count": 2}]'\nok\n  ) <>
        ~s([%{"count" => 2, "sku" => "A-1"}])
      iex> to_string(Skillbook.run(view, """
      ...> ```cmd
      ...> orders.create --lines '[{"count": "two"}]'
      ...> ```
      ...> """))
      ~s([1] orders.create --lines '[{"count": "two"}]'\nerror\n) <>
        ~s(  --lines needs [0].sku, which is missing\n) <>
        ~s(  --lines must be a whole number at [0].count, got "two")

  ## Functions

  In scripts and Livebook a function can be a command, without a module:

      iex> add =
      ...>   Skillbook.Skill.new!(
      ...>     name: "math.add",
      ...>     description: "Adds two integers",
      ...>     flags: [a: :integer, b: [type: :integer, default: 1]],
      ...>     run: fn flags, _context -> {:ok, to_string(flags["a"] + flags["b"])} end
      ...>   )
      iex> {:ok, catalog} = Skillbook.Catalog.load([add])
      iex> view = Skillbook.View.all(catalog)
      iex> to_string(Skillbook.run(view, "```cmd\nmath.add --a 2\n```"))
      "[1] math.add --a 2\nok\n  3"
  '''

  alias Skillbook.Skill.Page
  alias Skillbook.{Context, Flags, OptionError, SkillError}

  @typedoc "A command made of code: an item of `Skillbook.Source.list/1`. Its fields are private."
  @type t :: %__MODULE__{
          name: String.t(),
          fields: [{String.t(), term()}],
          body: String.t(),
          path: String.t(),
          lines: {pos_integer(), pos_integer() | nil} | nil,
          handler: module() | (Flags.t(), Context.t() -> term())
        }

  @enforce_keys [:name, :fields, :body, :path, :handler]
  defstruct [:name, :fields, :body, :path, :lines, :handler]

  @doc false
  defmacro __using__(options) do
    quote do
      @behaviour Skillbook.Handler
      @before_compile Skillbook.Skill
      # Kept in the compiled file, where a source finds the skills of an application.
      Module.register_attribute(__MODULE__, :skillbook_skill, persist: true)
      @skillbook_skill true
      @skillbook_options {unquote(__CALLER__.line), unquote(options)}
    end
  end

  @doc false
  defmacro __before_compile__(env) do
    {line, options} = Module.get_attribute(env.module, :skillbook_options)
    skill = Page.of_module!(env, line, options, Module.get_attribute(env.module, :moduledoc))

    quote do
      @doc false
      def __skillbook_skill__, do: unquote(Macro.escape(skill))
    end
  end

  @doc """
  Makes a command of a function, for scripts, Livebook and tests.

  The result is an item of the `:sources` of a book and of `Skillbook.Catalog.load/1`. Takes the
  options above, and:

    * `:run` (function) - gets the flags and the `Skillbook.Context`, and returns what
      `c:Skillbook.Handler.execute/2` returns. Required
    * `:body` (text) - the text of the page. Defaults to the description

  The function belongs to the books and catalogs that list it, and ends with them.

      iex> {:error, error} = Skillbook.Skill.new(name: "math.add", run: fn _, _ -> :ok end)
      iex> Exception.message(error)
      "a skill needs the option :description"

      iex> {:error, error} =
      ...>   Skillbook.Skill.new(
      ...>     name: "math.add",
      ...>     description: "Adds two integers",
      ...>     schedule: "at noon",
      ...>     run: fn _flags, _context -> :ok end
      ...>   )
      iex> hd(error.diagnostics).code
      :schedule_invalid
  """
  @spec new(Skillbook.options()) :: {:ok, t()} | {:error, OptionError.t() | SkillError.t()}
  def new(options), do: Page.of_function(options)

  @doc "Like `new/1`, but raises the error."
  @spec new!(Skillbook.options()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, skill} -> skill
      {:error, error} -> raise error
    end
  end
end

defmodule Skillbook.SkillError do
  @moduledoc """
  Returned when the options of a `Skillbook.Skill` make no valid page.

  ## Fields

    * `:name` - the name of the command
    * `:diagnostics` - a list of `Skillbook.Diagnostic`, errors and warnings

  ## Examples

      iex> {:error, error} =
      ...>   Skillbook.Skill.new(
      ...>     name: "adding",
      ...>     description: "Adds two integers",
      ...>     run: fn _flags, _context -> :ok end
      ...>   )
      iex> Exception.message(error)
      "the skill adding: expected the name of a command, such as \\"math.add\\", got \\"adding\\""
  """

  alias Skillbook.Diagnostic

  @type t :: %__MODULE__{name: String.t(), diagnostics: [Diagnostic.t(), ...]}

  @enforce_keys [:name, :diagnostics]
  defexception [:name, :diagnostics]

  @impl true
  def message(%{name: name, diagnostics: diagnostics}),
    do: "the skill #{name}: " <> Enum.map_join(diagnostics, "; ", &problem/1)

  @doc false
  # A diagnostic without its place and its code, on one line.
  def problem(%Diagnostic{message: message, hint: nil}), do: message
  def problem(%Diagnostic{message: message, hint: hint}), do: "#{message}; #{hint}"
end
